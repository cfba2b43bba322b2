// Tests that list categories: the order in which subsets are searched, and the branches of chosen tests.

#include "cells.cuh"

// Categories of each pair in order of their target means (or of numbers drawn for them), missing first; among equals the
// lower code. NumPy: lexsort((code, value)). Grid: any; a block takes pairs.
extern "C" __global__ void __launch_bounds__(128, 6)
    order_cells(const gt_cell* table, const gt_i64* first, const gt_i64* end, const unsigned short* code,
                gt_i64 n_cells, const int* cell_of, int k, int m, int n_channels, int sparse,
                const int* features, const int* place_of, int lists, const int* scans,
                int outputs, const int* sizes, const double* scales, const gt_i64* mean, const gt_u64* key,
                double* value,       // cells
                unsigned* order,     // OUT cells: ranked cells of each pair
                int* ranked) {       // OUT (pairs,) how many
    for (gt_i64 pair = blockIdx.x; pair < (gt_i64)k * m; pair += gridDim.x) {
        int f;
        const int scan = gt_scan_of(features, place_of, lists, pair, m, scans, sparse, &f);
        if (scan != GT_SUBSETS && scan != GT_ONE_SUBSET) continue;
        const GtCells view =
            gt_cells(table, sparse ? first : nullptr, end, code, n_cells, cell_of, pair, m, n_channels);
        const gt_i64 at = gt_place(sparse ? first : nullptr, cell_of, pair, m), slot = pair / m;
        const bool numbers = outputs == 1 && (GT_KIND != GT_COUNTS || sizes[0] <= 2);
        const int last = GT_KIND == GT_COUNTS ? sizes[0] - 1 : 1;
        for (int i = threadIdx.x; i < view.width; i += blockDim.x) {
            const gt_i64 weight = view.weight(i, sizes[0]);
            const GtDraw random = {key[slot], nullptr, f, scan};
            double x = 0.0;
            if (scan == GT_ONE_SUBSET)
                x = random.value(view.code_at(i));
            else if (numbers && weight > 0)
                x = gt_float(view.get(last, i), weight, mean[slot], scales[0]) / (double)weight;
            // smallest where missing; not a number, so never below another, where the code is not there
            value[at + i] = weight == 0 ? GT_DOUBLE(0x7FF8000000000000LL)
                            : view.code_at(i) == GT_MISSING ? GT_DOUBLE(-0x10000000000000LL) : x;
        }
        __syncthreads();  // values are there
        int met = 0;
        for (int i0 = 0; i0 < view.width; i0 += blockDim.x) {
            const int i = i0 + threadIdx.x;
            const double x = i < view.width ? value[at + i] : GT_DOUBLE(0x7FF8000000000000LL);
            met += __syncthreads_count(x == x);
            if (x != x) continue;
            int rank = 0;
            for (int q = 0; q < view.width; ++q) rank += value[at + q] < x || (value[at + q] == x && q < i);
            order[at + rank] = i;
        }
        if (threadIdx.x == 0) ranked[pair] = met;
    }
}

// Branches by code of chosen tests with a lookup. Grid: any; a block takes tests.
extern "C" __global__ void __launch_bounds__(128, 6)
    list_branches(const gt_cell* table, const gt_i64* first, const gt_i64* end, const unsigned short* code,
                  gt_i64 n_cells, const int* cell_of, int m, int n_channels, int sparse,
                  const int* place_of, int lists, const int* scans, const int* sizes,
                  const unsigned* order, const int* ranked, const gt_i64* declared,
                  const GtBest* chosen,           // IN (tests,)
                  const gt_i64* pairs,            // IN (tests,)
                  int tests,
                  int width,                      // most codes of a feature of categories, missing included
                  unsigned short* branch) {       // OUT (tests, width) one more than the branch, 0 = not listed, as before
    for (gt_i64 t = blockIdx.x; t < tests; t += gridDim.x) {
        const gt_i64 pair = pairs[t];
        if (chosen[t].branches == 0 || chosen[t].kind != GT_LOOKUP) continue;
        const int place = place_of[lists > 1 ? pair : pair % m], f = chosen[t].feature;
        if ((place < 0) != (sparse != 0)) continue;
        unsigned short* mine = branch + t * width;
        const GtCells view =
            gt_cells(table, sparse ? first : nullptr, end, code, n_cells, cell_of, pair, m, n_channels);
        if (scans[f] == GT_ONE_AGAINST_REST) {
            for (int i = threadIdx.x; i < view.width; i += blockDim.x) {
                const int c = view.code_at(i);
                if (c != GT_MISSING && view.weight(i, sizes[0]) > 0) mine[c] = 1 + (c != chosen[t].rank);
            }
        } else if (scans[f] != GT_BRANCHES) {
            const unsigned* rank = order + gt_place(sparse ? first : nullptr, cell_of, pair, m);
            const bool missing = view.code_at(0) == GT_MISSING && view.weight(0, sizes[0]) > 0;
            for (int r = missing + threadIdx.x; r < ranked[pair]; r += blockDim.x)
                mine[view.code_at((int)rank[r])] = 1 + (r + !missing > chosen[t].rank);
        } else if (declared[f] > 0) {
            for (int c = 1 + threadIdx.x; c <= declared[f]; c += blockDim.x) mine[c] = (unsigned short)c;
        } else if (threadIdx.x < 32) {
            int before = 0;
            for (int i0 = 0; i0 < view.width; i0 += 32) {
                const int i = i0 + (int)threadIdx.x;
                const bool met = i < view.width && view.code_at(i) != GT_MISSING && view.weight(i, sizes[0]) > 0;
                const unsigned cells = __ballot_sync(GT_EVERYONE, met);
                if (met) mine[view.code_at(i)] = (unsigned short)(1 + before + __popc(cells & gt_lanes_before()));
                before += __popc(cells);
            }
        }
    }
}
