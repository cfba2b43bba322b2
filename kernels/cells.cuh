// Tables as the searches read them, and the order of categories.
//
// A pair is a slot and one of its m features: pair = slot * m + number.

#pragma once

#include "device.cuh"

enum {  // splits.Scan
    GT_CUTS = 0, GT_ONE_CUT = 1, GT_BRANCHES = 2, GT_SUBSETS = 3, GT_ONE_SUBSET = 4, GT_ONE_AGAINST_REST = 5, GT_NO_SCAN = 6
};

// The best test of a pair or a slot; branches = 0: none. `rank` is the last rank of a subset's first side, or the code
// of the category that stands against all others.
struct GtBest {
    double score, gain, low;
    int feature, kind, cut, missing, branches, rank;
};

// A pair's cells: channel c of cell i is cells[c * stride + at(i)]; `order`, `code` may be null.
struct GtCells {
    const gt_cell* cells;
    const unsigned* order;
    const unsigned short* code;
    gt_i64 stride;
    int width;
    __device__ __forceinline__ int at(int i) const { return order ? (int)order[i] : i; }
    __device__ __forceinline__ int code_at(int i) const { return code ? code[at(i)] : at(i); }
    __device__ __forceinline__ gt_i64 get(int channel, int i) const { return (gt_i64)cells[channel * stride + at(i)]; }
    __device__ __forceinline__ gt_i64 weight(int i, int first_size) const {
        gt_i64 total = get(0, i);
        for (int c = 1; GT_KIND == GT_COUNTS && c < first_size; ++c) total += get(c, i);
        return total;
    }
};

// Where the cells of a table lie. Dense: first is null, cells of slot and number j at slot * cell_of[m] + cell_of[j],
// channels of a pair side by side. Sparse: cells first[pair] to end[pair], channels `n_cells` apart.
static __device__ __forceinline__ gt_i64 gt_place(const gt_i64* first, const int* cell_of, gt_i64 pair, int m) {
    return first ? first[pair] : pair / m * cell_of[m] + cell_of[pair % m];
}

static __device__ __forceinline__ GtCells gt_cells(const gt_cell* table, const gt_i64* first, const gt_i64* end,
                                                   const unsigned short* code, gt_i64 n_cells, const int* cell_of,
                                                   gt_i64 pair, int m, int n_channels) {
    const gt_i64 at = gt_place(first, cell_of, pair, m);
    const int width = first ? (int)(end[pair] - first[pair]) : cell_of[pair % m + 1] - cell_of[pair % m];
    return {table + (first ? at : at * n_channels), nullptr, first ? code + at : nullptr, first ? n_cells : width, width};
}

// How a pair's feature is searched; GT_NO_SCAN where the pair has no cells in this table.
static __device__ __forceinline__ int gt_scan_of(const int* features, const int* place_of, int lists, gt_i64 pair, int m,
                                                 const int* scans, bool sparse, int* feature) {
    const gt_i64 at = lists > 1 ? pair : pair % m;
    *feature = features[at];
    const int place = place_of[at];
    return place == GT_NOWHERE || (place < 0) != sparse ? GT_NO_SCAN : scans[*feature];
}

// A channel as the criterion reads it, see target.Layout.floats.
static __device__ __forceinline__ double gt_float(gt_i64 x, gt_i64 weight, gt_i64 mean, double scale) {
    if (GT_KIND == GT_COUNTS) return (double)x;
    if (GT_KIND == GT_RAW_SUMS) return (double)x * scale;
    return (double)(x - weight * mean) * scale;
}

// The value that a random threshold is compared with: that of the code, or one drawn for the category.
struct GtDraw {
    gt_u64 key;
    const double* values;  // of the feature's codes
    int feature, scan;
    __device__ __forceinline__ double value(int code) const {
        if (scan == GT_ONE_CUT) return values[code];
        return gt_unit(gt_draw(key, GT_CATEGORY, (gt_u64)feature << 16 | (gt_u64)code));
    }
    // Uniform between two values, below the larger one, see scan.draw_thresholds.
    __device__ __forceinline__ double threshold(double low, double high) const {
        const double u = gt_unit(gt_draw(key, GT_THRESHOLD, (gt_u64)feature));
        const double t = low * (1.0 - u) + high * u;
        return t >= low && t < high ? t : low;
    }
    // The branch of missing values, see scan.draw_sides.
    __device__ __forceinline__ int side() const { return (int)gt_below(gt_draw(key, GT_SIDE, (gt_u64)feature), 2); }
};
