// Searches that set rows with a missing value aside and score a test on the others alone, see nodes.Segments: the gain
// is that of the known rows, the information of the split counts the others as one more branch. Label counts only.

#include "cuts.cuh"

#define GT_COUNTED (-1.7976931348623157e308)  // splits.COUNTED

// splits.CutRule, and least information of a split.
struct GtRule {
    double unit, share, least, most, slack, gap, min_info;
    __device__ __forceinline__ double side(double known) const {
        const double own = share * known;
        return (own <= least ? least : own < most ? own : most) - slack;
    }
};

// The known rows of a pair: `slot` is the node without the others, with gains of its own size.
struct GtKnown {
    GtSlot slot;
    bool missing;
    double whole, aside, cancels;
    __device__ __forceinline__ double total(const GtCells& view, int channel) const {
        const gt_i64 away = missing ? view.get(channel, 0) : 0;
        return (double)(slot.stats[(gt_i64)channel * slot.k] - away);
    }
    // See nodes.Nodes.judged.
    __device__ __forceinline__ double judged(double gain, double info, double min_info) const {
        info += aside;
        const bool small = min_info > 0.0 && !(gt_info(whole, whole) - info > min_info * whole);
        return small ? GT_COUNTED : gt_grid(gt_final(gt_grid(gain, slot.cancels), info, whole), cancels);
    }
};

// Take the rows with a missing value away; `own` (outputs,) receives the value of the rest.
static __device__ GtKnown gt_known(const GtSlot& node, const GtCells& view, double* own) {
    const bool missing = view.code_at(0) == GT_MISSING && view.weight(0, node.sizes[0]) > 0;
    const gt_i64 away = missing ? view.weight(0, node.sizes[0]) : 0;
    GtKnown known = {node, missing, (double)node.weight, 0.0, node.cancels};
    known.slot.weight = node.weight - away, known.slot.own = own, known.slot.step = 1, known.slot.cancels = 0.0;
    known.aside = gt_info((double)away, known.whole);
    const double N = (double)known.slot.weight;
    int channel = 0;
    for (int o = 0; o < node.outputs; ++o) {
        double fold = 0.0;
        known.slot.cancels += gt_gain_scale(N, known.total(view, channel));
        for (const int end = channel + node.sizes[o]; channel < end; ++channel)
            fold = gt_fold(fold, gt_term(known.total(view, channel), N, known.total(view, channel), N));
        if (GT_LANE == 0) own[o] = gt_branch(fold, N, N);
    }
    __syncwarp();  // own is there
    return known;
}

// The first cut of greatest gain, less what it pays for those tried, see scan.CutScan.picked; rank -1: none.
static __device__ void gt_ruled_cut(const GtKnown& known, const GtRule& rule, const GtCells& view, const double* values,
                                    gt_i64* carry, GtBest& best) {
    const GtSlot& slot = known.slot;
    const GtLimits free = {0, 0, 0, 0, 0, 0.0, 0.0};
    const double side = rule.side((double)slot.weight);
    gt_i64 before = 0, heavy = 0;
    int tries = 0;
    bool begun = false;
    for (int first = 0; first < view.width; first += 32) {
        const int i = first + (int)GT_LANE;
        const bool inside = i < view.width && view.code_at(i) != GT_MISSING;
        const gt_i64 own = inside ? view.weight(i, slot.sizes[0]) : 0;
        const unsigned met = __ballot_sync(GT_EVERYONE, own > 0);
        if (!met) continue;
        GtCut cut;
        cut.weight[0] = cut.weight[1] = before + gt_scan(own);
        before = __shfl_sync(GT_EVERYONE, cut.weight[0], 31);
        const unsigned later = met & ~(gt_lanes_before() | 1u << GT_LANE);
        const int beyond = gt_next(view, slot.sizes, first + 32, 1);
        const int follow = later ? first + __ffs((int)later) - 1 : beyond;
        const gt_i64 rest = slot.weight - cut.weight[0], light = rest < cut.weight[0] ? rest : cut.weight[0];
        cut.fine[0] = own > 0 && follow >= 0 && (double)light >= side;
        if (cut.fine[0]) cut.fine[0] = values[view.code_at(i)] < values[view.code_at(follow)] - rule.gap;
        gt_score<true>(slot, free, view, i, inside, false, begun, carry, cut, known.missing);
        begun = true;
        tries += __popc(__ballot_sync(GT_EVERYONE, cut.fine[0]));
        if (cut.fine[0] && (best.rank < 0 || cut.score[0] > best.score))
            best.score = cut.score[0], best.gain = cut.gain[0], best.rank = i, heavy = cut.weight[0];
    }
    gt_best_lane(best);
    heavy = __shfl_sync(GT_EVERYONE, heavy, best.rank & 31);  // of the lane whose cell it is
    if (best.rank < 0) return;
    best.gain = gt_grid(best.gain - rule.unit * gt_log2((double)tries), slot.cancels);
    const double N = (double)slot.weight, info = 0.0 + gt_info((double)heavy, N);
    best.score = known.judged(best.gain, info + gt_info((double)(slot.weight - heavy), N), rule.min_info);
    if (!(best.gain > 0.0)) best.rank = -1;
}

// The best cut of every pair of numbers. Grid: any; a warp takes pairs.
extern "C" __global__ void __launch_bounds__(128, 3)
    search_ruled(const gt_cell* table, const gt_i64* first, const gt_i64* end, const unsigned short* code,
                 gt_i64 n_cells, const int* cell_of, int k, int m, int n_channels, int sparse,
                 const int* features, const int* place_of, int lists, const int* scans,
                 int outputs, const int* sizes, const double* scales, const gt_i64* mean,
                 const gt_i64* stats, const gt_i64* weight, const double* own, const double* cancels,
                 GtBest* best,         // OUT (k * m,) zeros before
                 const double* rule,   // IN (7,) GtRule
                 double* owns,         // (warps, outputs)
                 const double* values, const double* edges, const gt_i64* offset, const unsigned char* exact,
                 gt_i64* carries) {    // (warps, n_channels)
    const GtRule given = {rule[0], rule[1], rule[2], rule[3], rule[4], rule[5], rule[6]};
    for (gt_i64 pair = GT_WARP; pair < (gt_i64)k * m; pair += GT_WARPS) {
        int f;
        if (gt_scan_of(features, place_of, lists, pair, m, scans, sparse, &f) != GT_CUTS) continue;
        const gt_i64 s = pair / m;
        const GtCells view = gt_cells(table, sparse ? first : nullptr, end, code, n_cells, cell_of, pair, m, n_channels);
        if (view.width == 0) continue;
        const GtSlot node = {stats + s, mean + s,   own + s,    scales,    sizes,     k,
                             k,         outputs, n_channels, weight[s], cancels[s]};
        const GtKnown known = gt_known(node, view, owns + GT_WARP * outputs);
        GtBest found = {0.0, 0.0, 0.0, f, GT_TEST, 0, known.missing ? GT_SPREAD : GT_NOT_MET, 2, -1};
        gt_ruled_cut(known, given, view, values + offset[f], carries + GT_WARP * n_channels, found);
        __syncwarp();  // own is read
        if (found.rank < 0) continue;
        const int cut = view.code_at(found.rank), follow = view.code_at(gt_next(view, sizes, found.rank + 1, 1));
        const double a = values[offset[f] + cut], b = values[offset[f] + follow], t = a / 2 + b / 2;
        found.cut = cut, found.rank = 0;
        found.low = !exact[f] ? edges[offset[f] + (cut + follow - 1) / 2] : t >= a && t < b ? t : a;
        if (GT_LANE == 0) best[pair] = found;
    }
}

// Gain, information and how many cells are met, and how many weigh enough, when every known cell is a branch.
struct GtSplit {
    double gain, info;
    int met, heavy;
};

static __device__ GtSplit gt_split(const GtKnown& known, const GtCells& view, gt_i64 min_weight) {
    const double N = (double)known.slot.weight;
    GtSplit split = {0.0, 0.0, 0, 0};
    int channel = 0;
    for (int o = 0; o < known.slot.outputs; channel += known.slot.sizes[o], ++o) {
        double more = 0.0;
        split.info = 0.0, split.met = 0, split.heavy = 0;
        for (int first = 0; first < view.width; first += 32) {
            const int i = first + (int)GT_LANE;
            const bool inside = i < view.width && view.code_at(i) != GT_MISSING;
            const gt_i64 w = inside ? view.weight(i, known.slot.sizes[0]) : 0;
            double fold = 0.0;
            for (int c = channel; w > 0 && c < channel + known.slot.sizes[o]; ++c)
                fold = gt_fold(fold, gt_term((double)view.get(c, i), (double)w, known.total(view, c), N));
            const double value = w > 0 ? gt_branch(fold, (double)w, N) : 0.0, own = gt_info((double)w, N);
            const unsigned cells = __ballot_sync(GT_EVERYONE, w > 0);
            split.met += __popc(cells);
            split.heavy += __popc(__ballot_sync(GT_EVERYONE, w > 0 && w >= min_weight));
#pragma unroll 4  // 32 steps at a time do not fit the registers
            for (int q = 0; q < 32; ++q) {  // in order: a sum by shuffles would round otherwise
                const double v = __shfl_sync(GT_EVERYONE, value, q), h = __shfl_sync(GT_EVERYONE, own, q);
                if (cells >> q & 1) more += v, split.info += h;
            }
        }
        split.gain += more - known.slot.own[o];
    }
    return split;
}

// The test with a branch for each category, of every pair that is searched so. Grid: any; a warp takes pairs.
extern "C" __global__ void __launch_bounds__(128, 5)
    search_groups(const gt_cell* table, const gt_i64* first, const gt_i64* end, const unsigned short* code,
                  gt_i64 n_cells, const int* cell_of, int k, int m, int n_channels, int sparse,
                  const int* features, const int* place_of, int lists, const int* scans,
                  int outputs, const int* sizes, const double* scales, const gt_i64* mean,
                  const gt_i64* stats, const gt_i64* weight, const double* own, const double* cancels,
                  GtBest* best,              // OUT (k * m,) zeros before
                  const double* rule,        // IN (7,) GtRule
                  double* owns,              // (warps, outputs)
                  gt_i64 min_weight, gt_i64 max_branches, int least_met,
                  int heavy,                 // branches that weigh min_weight, 0 for all
                  const gt_i64* declared) {  // IN (F,) categories declared
    for (gt_i64 pair = GT_WARP; pair < (gt_i64)k * m; pair += GT_WARPS) {
        int f;
        if (gt_scan_of(features, place_of, lists, pair, m, scans, sparse, &f) != GT_BRANCHES) continue;
        const gt_i64 s = pair / m;
        const GtCells view = gt_cells(table, sparse ? first : nullptr, end, code, n_cells, cell_of, pair, m, n_channels);
        if (view.width == 0) continue;
        const GtSlot node = {stats + s, mean + s,   own + s,    scales,    sizes,     k,
                             k,         outputs, n_channels, weight[s], cancels[s]};
        const GtKnown known = gt_known(node, view, owns + GT_WARP * outputs);
        const GtSplit split = gt_split(known, view, min_weight);
        __syncwarp();  // own is read
        const gt_i64 count = declared[f] > 0 ? declared[f] : split.met;
        const bool many = split.met >= least_met && split.heavy >= (heavy > 0 ? heavy : split.met);
        if (!many || count < 2 || (max_branches >= 0 && count > max_branches) || GT_LANE != 0) continue;
        best[pair] = {known.judged(split.gain, split.info, rule[6]), split.gain, 0.0, f, GT_LOOKUP, 0,
                      known.missing ? GT_SPREAD : GT_NOT_MET, (int)count, 0};
    }
}

// The first category of greatest score against all others; its cell is the rank, -1: none.
static __device__ void gt_lone_cell(const GtKnown& known, const GtCells& view, gt_i64 min_weight, double min_info,
                                    GtBest& best) {
    const GtSlot& slot = known.slot;
    const double N = (double)slot.weight;
    for (int i = (int)GT_LANE; i < view.width; i += 32) {
        const gt_i64 w = view.code_at(i) == GT_MISSING ? 0 : view.weight(i, slot.sizes[0]), rest = slot.weight - w;
        if (w == 0 || rest == 0 || w < min_weight || rest < min_weight) continue;
        const double n[2] = {(double)w, (double)rest};
        double gain = 0.0;
        int channel = 0;
        for (int o = 0; o < slot.outputs; ++o) {
            double fold[2] = {0.0, 0.0};
            for (const int end = channel + slot.sizes[o]; channel < end; ++channel) {
                const double X = known.total(view, channel), x = (double)view.get(channel, i);
                fold[0] = gt_fold(fold[0], gt_term(x, n[0], X, N));
                fold[1] = gt_fold(fold[1], gt_term(X - x, n[1], X, N));
            }
            double more = 0.0 + gt_branch(fold[0], n[0], N);
            more += gt_branch(fold[1], n[1], N);
            gain += more - slot.own[o];
        }
        const double info = 0.0 + gt_info(n[0], N), score = known.judged(gain, info + gt_info(n[1], N), min_info);
        if (best.rank < 0 || score > best.score) best.score = score, best.gain = gain, best.rank = i;
    }
    gt_best_lane(best);
}

// The best category against all others, of every pair that is searched so. Grid: any; a warp takes pairs.
extern "C" __global__ void __launch_bounds__(128, 4)
    search_rest(const gt_cell* table, const gt_i64* first, const gt_i64* end, const unsigned short* code,
                gt_i64 n_cells, const int* cell_of, int k, int m, int n_channels, int sparse,
                const int* features, const int* place_of, int lists, const int* scans,
                int outputs, const int* sizes, const double* scales, const gt_i64* mean,
                const gt_i64* stats, const gt_i64* weight, const double* own, const double* cancels,
                GtBest* best,        // OUT (k * m,) zeros before
                const double* rule,  // IN (7,) GtRule
                double* owns,        // (warps, outputs)
                gt_i64 min_weight) {
    for (gt_i64 pair = GT_WARP; pair < (gt_i64)k * m; pair += GT_WARPS) {
        int f;
        if (gt_scan_of(features, place_of, lists, pair, m, scans, sparse, &f) != GT_ONE_AGAINST_REST) continue;
        const gt_i64 s = pair / m;
        const GtCells view = gt_cells(table, sparse ? first : nullptr, end, code, n_cells, cell_of, pair, m, n_channels);
        if (view.width == 0) continue;
        const GtSlot node = {stats + s, mean + s,   own + s,    scales,    sizes,     k,
                             k,         outputs, n_channels, weight[s], cancels[s]};
        const GtKnown known = gt_known(node, view, owns + GT_WARP * outputs);
        GtBest found = {0.0, 0.0, 0.0, f, GT_LOOKUP, 0, known.missing ? GT_SPREAD : GT_NOT_MET, 2, -1};
        gt_lone_cell(known, view, min_weight, rule[6], found);
        __syncwarp();  // own is read
        if (found.rank < 0) continue;
        found.rank = view.code_at(found.rank);
        if (GT_LANE == 0) best[pair] = found;
    }
}
