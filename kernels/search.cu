// From tables to the best test of every slot. The order of operations is that of gputree/core/scores.py, the order of
// candidates that of gputree/backends/scan.py: a higher score, then missing values to the right, then the lowest cut
// ("missing against known" is the highest), then missing values to the left.
//
// A pair is a slot and one of its m features: pair = slot * m + number. A warp searches a pair, 32 cells a step:
//   cells  | missing | code 3 | code 4 | code 9 | ...      lane = cell
//   left     .         scan of the channels over the known cells; right = the node's channels - left

#include "cuts.cuh"

enum { GT_RIGHT = 0, GT_ALONE = 1, GT_LEFT = 2 };  // where missing values go: families of candidates in order
enum { GT_FAMILY = 1 << 17 };                      // rank = family * GT_FAMILY + cell; lower is better among equals

// The nodes' own terms, see scan.Nodes. Grid: any; a thread takes slots.
extern "C" __global__ void __launch_bounds__(128, 6)
    describe_slots(const gt_i64* stats,   // IN (n_channels, k)
                   int k, int outputs, const int* sizes,
                   const double* scales,  // IN (outputs,)
                   gt_i64* weight,        // OUT (k,)
                   gt_i64* mean,          // OUT (outputs, k)
                   double* own,           // OUT (outputs, k) value of the node itself
                   double* cancels) {     // OUT (k,) size of what cancels
    for (int slot = (int)GT_THREAD; slot < k; slot += (int)GT_THREADS) {
        gt_i64 total = stats[slot];
        for (int c = 1; GT_KIND == GT_COUNTS && c < sizes[0]; ++c) total += stats[(gt_i64)c * k + slot];
        weight[slot] = total;
        double size = 0.0;
        int channel = GT_KIND == GT_COUNTS ? 0 : 1;
        for (int o = 0; o < outputs; ++o) {
            const gt_i64 s = stats[(gt_i64)channel * k + slot], n = total > 1 ? total : 1;
            const gt_i64 m = GT_KIND == GT_CENTRED_SUMS ? s / n - (s % n < 0) : 0;  // rounds down
            double fold = 0.0;
            mean[(gt_i64)o * k + slot] = m;
            size += gt_scale((double)total, gt_float(s, total, m, scales[o]));
            for (int c = 0; c < gt_channels_of(sizes, o); ++c, ++channel) {
                const double X = gt_float(stats[(gt_i64)channel * k + slot], total, m, scales[o]);
                fold = gt_fold(fold, gt_term(X, (double)total, X, (double)total));
            }
            own[(gt_i64)o * k + slot] = gt_branch(fold, (double)total, (double)total);
        }
        cancels[slot] = size;
    }
}

// The last cell with a known value that is not above the drawn threshold, which is given too; -1 if nothing is known.
static __device__ __forceinline__ int gt_drawn_cell(const GtCells& view, const int* sizes, const GtDraw& random,
                                                    double* drawn) {
    const int first = gt_next(view, sizes, 0, 1), last = gt_next(view, sizes, view.width - 1, -1);
    if (first < 0) return -1;
    *drawn = random.threshold(random.value(view.code_at(first)), random.value(view.code_at(last)));
    int at = -1;
    for (int i = first; i <= last; i += 32) {
        const int mine = i + (int)GT_LANE;
        const bool met = mine <= last && view.weight(mine, sizes[0]) > 0;
        const unsigned below = __ballot_sync(GT_EVERYONE, met && random.value(view.code_at(mine)) <= *drawn);
        if (below) at = i + 31 - __clz((int)below);
    }
    return at;
}

// The best cut of a warp's pair: score, gain and rank in every lane; rank -1: none. With a `side`, that of missing
// values, only the cut behind cell `only` is one, and missing against known where it parts nothing; -1: any.
static __device__ void gt_best_cut(const GtSlot& slot, const GtLimits& limits, const GtCells& view, int only,
                                   int side, gt_i64* carry, GtBest& best) {
    const bool missing = view.code_at(0) == GT_MISSING && view.weight(0, slot.sizes[0]) > 0;
    const gt_i64 missing_weight = missing ? view.weight(0, slot.sizes[0]) : 0;
    const gt_i64 missing_rows = !missing || !GT_WEIGHTED ? missing_weight : view.get(slot.n_channels - 1, 0);
    const gt_i64 known = slot.weight - missing_weight, rows = slot.count(slot.weight);
    gt_i64 weight_before = 0, rows_before = 0;
    bool begun = false;
    for (int first = 0; first < view.width; first += 32) {
        const int i = first + (int)GT_LANE;
        const bool inside = i < view.width && view.code_at(i) != GT_MISSING;
        const gt_i64 own = inside ? view.weight(i, slot.sizes[0]) : 0;
        if (!__any_sync(GT_EVERYONE, own > 0)) continue;
        const gt_i64 weight = weight_before + gt_scan(own);
        const gt_i64 count =
            GT_WEIGHTED ? rows_before + gt_scan(inside ? view.get(slot.n_channels - 1, i) : 0) : weight;
        weight_before = __shfl_sync(GT_EVERYONE, weight, 31), rows_before = __shfl_sync(GT_EVERYONE, count, 31);
        GtCut cut;
        for (int d = 0; d < 2; ++d) {
            const gt_i64 w = weight + (d ? missing_weight : 0), c = count + (d ? missing_rows : 0);
            const bool drawn = side < 0 || i == only, here = side < 0 || !missing || side == 1 - d;
            const bool inner = weight < known && drawn && here;
            const bool alone = limits.alone && missing && d == 0 && weight == known && drawn;
            cut.weight[d] = w;
            cut.fine[d] = own > 0 && (alone || (inner && (missing || d == 0)));
            cut.fine[d] &= c >= limits.min_rows && rows - c >= limits.min_rows;
            cut.fine[d] &= w >= limits.min_weight && slot.weight - w >= limits.min_weight;
        }
        gt_score<false>(slot, limits, view, i, inside, missing, begun, carry, cut);
        begun = true;
        for (int d = 0; d < 1 + missing; ++d) {
            const int rank = (d ? GT_LEFT : weight == known ? GT_ALONE : GT_RIGHT) * GT_FAMILY + i;
            const bool better = best.rank < 0 || cut.score[d] > best.score ||
                                (cut.score[d] == best.score && rank < best.rank);
            if (cut.fine[d] && better) best.score = cut.score[d], best.gain = cut.gain[d], best.rank = rank;
        }
    }
    gt_best_lane(best);
}

// Write the test that a best cut stands for.
static __device__ void gt_describe(const GtSlot& slot, const GtCells& view, int scan, bool exact, const double* values,
                                   const double* edges, double drawn, GtBest& best) {
    const int family = best.rank / GT_FAMILY, i = best.rank % GT_FAMILY;
    const bool missing = view.code_at(0) == GT_MISSING && view.weight(0, slot.sizes[0]) > 0;
    const bool subset = scan == GT_SUBSETS || scan == GT_ONE_SUBSET;
    best.branches = 2, best.missing = missing ? family != GT_LEFT : GT_NOT_MET;
    best.kind = subset && family != GT_ALONE ? GT_LOOKUP : GT_TEST;
    best.cut = 0, best.low = 0.0, best.rank = i + !missing;
    if (family == GT_ALONE) {
        best.low = GT_DOUBLE(0x7FF0000000000000LL);  // infinity
        for (int q = 0; q < view.width; ++q) best.cut = max(best.cut, view.code_at(subset ? q : i));
    } else if (!subset) {
        const int cut = view.code_at(i), follow = view.code_at(gt_next(view, slot.sizes, i + 1, 1));
        const double a = values[cut], b = values[follow], t = a / 2 + b / 2;
        best.cut = cut;
        best.low = !exact ? edges[(cut + follow - 1) / 2] : scan == GT_ONE_CUT ? drawn : t >= a && t < b ? t : a;
    }
}

// The best cut of every pair that is searched by cuts. Grid: any; a warp takes pairs.
extern "C" __global__ void __launch_bounds__(128, 3)
    search_cuts(const gt_cell* table, const gt_i64* first, const gt_i64* end, const unsigned short* code,
                gt_i64 n_cells, const int* cell_of, int k, int m, int n_channels, int sparse,
                const int* features, const int* place_of, int lists, const int* scans,
                int outputs, const int* sizes, const double* scales, const gt_i64* mean,
                const gt_i64* stats, const gt_i64* weight, const double* own, const double* cancels,
                GtBest* best,               // OUT (k * m,) zeros before
                const gt_u64* key, const unsigned* order, const int* ranked,
                const double* bounds,       // IN (2, k)
                gt_i64 min_rows, gt_i64 min_weight, int positive, int alone,
                const signed char* signs,   // IN (F,) monotone constraints
                const double* values, const double* edges, const gt_i64* offset, const unsigned char* exact,
                gt_i64* carries) {          // (warps, n_channels)
    gt_i64* carry = carries + GT_WARP * n_channels;
    for (gt_i64 pair = GT_WARP; pair < (gt_i64)k * m; pair += GT_WARPS) {
        int f;
        const int scan = gt_scan_of(features, place_of, lists, pair, m, scans, sparse, &f);
        if (scan == GT_NO_SCAN || scan == GT_BRANCHES) continue;
        const gt_i64 s = pair / m;
        GtCells view = gt_cells(table, sparse ? first : nullptr, end, code, n_cells, cell_of, pair, m, n_channels);
        if (scan == GT_SUBSETS || scan == GT_ONE_SUBSET) {
            view.order = order + gt_place(sparse ? first : nullptr, cell_of, pair, m);
            view.width = ranked[pair];
        }
        if (view.width == 0) continue;
        const GtSlot slot = {stats + s, mean + s, own + s, scales, sizes, k, k, outputs, n_channels, weight[s], cancels[s]};
        const GtLimits limits = {min_rows, min_weight, positive, alone, signs[f], bounds[s], bounds[k + s]};
        const bool random = scan == GT_ONE_CUT || scan == GT_ONE_SUBSET;
        const GtDraw draw = {key[s], values + offset[f], f, scan};
        double drawn = 0.0;
        const int only = random ? gt_drawn_cell(view, sizes, draw, &drawn) : -1;
        GtBest found = {0.0, 0.0, 0.0, f, 0, 0, 0, 0, -1};
        gt_best_cut(slot, limits, view, only, random ? draw.side() : -1, carry, found);
        if (found.rank < 0) continue;
        gt_describe(slot, view, scan, exact[f], values + offset[f], edges + offset[f], drawn, found);
        if (GT_LANE == 0) best[pair] = found;
    }
}

// The test with a branch for each category, of every pair that is searched so. Grid: any; a warp takes pairs.
extern "C" __global__ void __launch_bounds__(128, 5)
    search_branches(const gt_cell* table, const gt_i64* first, const gt_i64* end, const unsigned short* code,
                    gt_i64 n_cells, const int* cell_of, int k, int m, int n_channels, int sparse,
                    const int* features, const int* place_of, int lists, const int* scans,
                    int outputs, const int* sizes, const double* scales, const gt_i64* mean,
                    const gt_i64* stats, const gt_i64* weight, const double* own, const double* cancels,
                    GtBest* best,              // OUT (k * m,) zeros before
                    gt_i64 min_rows, gt_i64 min_weight, int positive, gt_i64 max_branches, int two_branches,
                    int least_met,             // branches with rows
                    const gt_i64* declared) {  // IN (F,) categories declared
    for (gt_i64 pair = GT_WARP; pair < (gt_i64)k * m; pair += GT_WARPS) {
        int f;
        const int scan = gt_scan_of(features, place_of, lists, pair, m, scans, sparse, &f);
        if (scan != GT_BRANCHES) continue;
        const gt_i64 s = pair / m;
        const GtCells view =
            gt_cells(table, sparse ? first : nullptr, end, code, n_cells, cell_of, pair, m, n_channels);
        if (view.width == 0) continue;
        const double N = (double)weight[s];
        double gain = 0.0, info = 0.0;
        bool fine = true;
        gt_i64 met = 0;
        int channel = GT_KIND == GT_COUNTS ? 0 : 1;
        for (int o = 0; o < outputs; channel += gt_channels_of(sizes, o), ++o) {
            const gt_i64 m_o = mean[(gt_i64)o * k + s];
            double more = 0.0;
            met = 0, info = 0.0;
            for (int i0 = 0; i0 < view.width; i0 += 32) {
                const int i = i0 + (int)GT_LANE;
                const gt_i64 w = i < view.width ? view.weight(i, sizes[0]) : 0;
                double fold = 0.0;
                for (int c = channel; w > 0 && c < channel + gt_channels_of(sizes, o); ++c) {
                    const double X = gt_float(stats[(gt_i64)c * k + s], weight[s], m_o, scales[o]);
                    fold = gt_fold(fold, gt_term(gt_float(view.get(c, i), w, m_o, scales[o]), (double)w, X, N));
                }
                const gt_i64 rows = GT_WEIGHTED && w > 0 ? view.get(n_channels - 1, i) : w;
                fine &= w == 0 || (w >= min_weight && rows >= min_rows);
                if (GT_KIND != GT_COUNTS && positive) fine &= w == 0 || view.get(channel, i) > 0;
                const double value = w > 0 ? gt_branch(fold, (double)w, N) : 0.0, own_info = gt_info((double)w, N);
                const unsigned cells = __ballot_sync(GT_EVERYONE, w > 0);
                met += __popc(cells);
                for (int q = 0; q < 32; ++q) {  // in order: a sum by shuffles would round otherwise
                    const double v = __shfl_sync(GT_EVERYONE, value, q), h = __shfl_sync(GT_EVERYONE, own_info, q);
                    if (cells >> q & 1) more += v, info += h;
                }
            }
            gain += more - own[(gt_i64)o * k + s];
        }
        const bool missing = view.code_at(0) == GT_MISSING && view.weight(0, sizes[0]) > 0;
        const gt_i64 count = declared[f] > 0 ? declared[f] + missing : met;
        fine &= met >= least_met && count >= 2 && (count == 2 || !two_branches) && (max_branches < 0 || count <= max_branches);
        if (!__all_sync(GT_EVERYONE, fine) || GT_LANE != 0) continue;
        best[pair] = {gt_grid(gt_final(gain, info, N), cancels[s]), gain, 0.0, f, GT_LOOKUP, 0,
                      missing ? (int)count - 1 : GT_NOT_MET, (int)count, 0};
    }
}

// The best feature of every slot: of every `turn` features in a row the first that hold a test; then the higher score;
// then the lower feature. See splits.choose. Grid: any; a warp takes slots.
extern "C" __global__ void __launch_bounds__(128)
    best_of_slots(const GtBest* best,   // IN (k, m)
                  int k, int m, int turn,
                  GtBest* chosen,       // OUT (k,) branches = 0 where no test is found
                  gt_i64* pair) {       // OUT (k,)
    for (gt_i64 slot = GT_WARP; slot < k; slot += GT_WARPS) {
        int at = -1, feature = 0;
        double score = 0.0;
        for (int begin = 0; begin < m && at < 0; begin += turn) {
            for (int j = begin + (int)GT_LANE; j < min(begin + turn, m); j += 32) {
                const GtBest& mine = best[slot * m + j];
                const bool better = at < 0 || mine.score > score || (mine.score == score && mine.feature < feature);
                if (mine.branches > 0 && better) at = j, score = mine.score, feature = mine.feature;
            }
            for (int by = 16; by > 0; by >>= 1) {
                const int other = __shfl_xor_sync(GT_EVERYONE, at, by);
                const int other_feature = __shfl_xor_sync(GT_EVERYONE, feature, by);
                const double other_score = __shfl_xor_sync(GT_EVERYONE, score, by);
                const bool better =
                    at < 0 || other_score > score || (other_score == score && other_feature < feature);
                if (other >= 0 && better) at = other, score = other_score, feature = other_feature;
            }
        }
        if (GT_LANE != 0) continue;
        GtBest none = {0.0, 0.0, 0.0, -1, 0, 0, 0, 0, 0};
        chosen[slot] = at < 0 ? none : best[slot * m + at];
        pair[slot] = at < 0 ? -1 : slot * m + at;
    }
}
