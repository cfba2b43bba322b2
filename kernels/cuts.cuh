// Gains of cuts between the cells of a pair, 32 a step, for a warp. See search.cu.

#pragma once

#include "cells.cuh"
#include "criterion.cuh"

static __device__ __forceinline__ double gt_fold(double total, double term) {
    return GT_FOLD_MAX ? (total < term ? term : total) : total + term;
}

static __device__ __forceinline__ int gt_channels_of(const int* sizes, int o) {
    return GT_KIND == GT_COUNTS ? sizes[o] : 1;
}

// What search kernels know of a slot.
struct GtSlot {
    const gt_i64* stats;  // (n_channels, k) from this slot on
    const gt_i64* mean;   // (outputs, k)
    const double* own;    // (outputs, step)
    const double* scales;
    const int* sizes;
    int k, step, outputs, n_channels;
    gt_i64 weight;
    double cancels;
    __device__ __forceinline__ gt_i64 count(gt_i64 whole) const {
        return GT_WEIGHTED ? stats[(gt_i64)(n_channels - 1) * k] : whole;
    }
};

// What a candidate must respect, see splits.Limits; `sign` of this feature's monotone constraint, bounds of the slot.
struct GtLimits {
    gt_i64 min_rows, min_weight;
    int positive, alone, sign;  // alone: missing against known is a candidate
    double lower, upper;
    __device__ __forceinline__ bool held(double a, double b) const {
        const double least = b < a ? b : a, most = a < b ? b : a;
        return sign == 0 || (least >= lower && most <= upper && (sign > 0 ? a <= b : a >= b));
    }
};

// Two ways to cut behind a lane's cell: missing values right (0) and left (1).
struct GtCut {
    gt_i64 weight[2];
    bool fine[2];
    double score[2], gain[2];
};

// Gains and scores of the lanes' cuts; moves `carry` (n_channels,), which only the last lane uses, on by 32 cells. APART:
// missing rows, in the first cell if some are `away`, are no part of the slot, and a cut is scored by its gain alone.
template <bool APART>
static __device__ void gt_score(const GtSlot& slot, const GtLimits& limits, const GtCells& view, int i, bool known,
                                bool missing, bool begun, gt_i64* carry, GtCut& cut, bool away = false) {
    const double N = (double)slot.weight;
    double info[2] = {0.0, 0.0}, n[2][2], level[2][2] = {{0.0, 0.0}, {0.0, 0.0}};
    for (int d = 0; d < 2; ++d) {
        n[d][0] = (double)cut.weight[d], n[d][1] = (double)(slot.weight - cut.weight[d]);
        cut.gain[d] = 0.0;
    }
    int channel = GT_KIND == GT_COUNTS ? 0 : 1;
    for (int o = 0; o < slot.outputs; ++o) {
        const gt_i64 mean = slot.mean[(gt_i64)o * slot.k];
        double fold[2][2] = {{0.0, 0.0}, {0.0, 0.0}};
        for (const int end = channel + gt_channels_of(slot.sizes, o); channel < end; ++channel) {
            const gt_i64 whole = slot.stats[(gt_i64)channel * slot.k] - (APART && away ? view.get(channel, 0) : 0);
            if (GT_KIND == GT_COUNTS && whole == 0) continue;  // every criterion's term of a class without rows is 0
            const gt_i64 before = begun && GT_LANE == 31 ? carry[channel] : 0;
            gt_i64 left = gt_scan(known ? view.get(channel, i) : 0) + __shfl_sync(GT_EVERYONE, before, 31);
            if (GT_LANE == 31) carry[channel] = left;
            const double X = gt_float(whole, slot.weight, mean, slot.scales[o]);
            for (int d = 0; d < 1 + missing; ++d) {
                if (d) left += view.get(channel, 0);
                const gt_i64 rest = slot.weight - cut.weight[d];
                const double x = gt_float(left, cut.weight[d], mean, slot.scales[o]);
                const double y = GT_KIND == GT_COUNTS ? X - x : gt_float(whole - left, rest, mean, slot.scales[o]);
                fold[d][0] = gt_fold(fold[d][0], gt_term(x, n[d][0], X, N));
                fold[d][1] = gt_fold(fold[d][1], gt_term(y, n[d][1], X, N));
                if (GT_KIND != GT_COUNTS && limits.positive) cut.fine[d] &= left > 0 && whole - left > 0;
                if (channel == 1) level[d][0] = (double)left / n[d][0], level[d][1] = (double)(whole - left) / n[d][1];
            }
        }
        for (int d = 0; d < 1 + missing; ++d) {
            double more = 0.0 + gt_branch(fold[d][0], n[d][0], N);
            more += gt_branch(fold[d][1], n[d][1], N);
            more -= slot.own[(gt_i64)o * slot.step];
            cut.gain[d] += more;
        }
    }
    for (int d = 0; d < 1 + missing; ++d) {
        info[d] = 0.0 + gt_info(n[d][0], N);
        info[d] += gt_info(n[d][1], N);
        cut.score[d] = gt_grid(APART ? cut.gain[d] : gt_final(cut.gain[d], info[d], N), slot.cancels);
        cut.fine[d] &= limits.held(level[d][0], level[d][1]);
    }
}

// The best test of all lanes, in every lane: the higher score, then the lower rank; rank -1: none.
static __device__ __forceinline__ void gt_best_lane(GtBest& best) {
    for (int by = 16; by > 0; by >>= 1) {
        const double score = __shfl_xor_sync(GT_EVERYONE, best.score, by);
        const double gain = __shfl_xor_sync(GT_EVERYONE, best.gain, by);
        const int rank = __shfl_xor_sync(GT_EVERYONE, best.rank, by);
        const bool better = best.rank < 0 || score > best.score || (score == best.score && rank < best.rank);
        if (rank >= 0 && better) best.score = score, best.gain = gain, best.rank = rank;
    }
}

// The first or last (`by` = 1 or -1) cell from `i` on, with i in 0 .. width - 1, that holds a known value; -1 if none.
static __device__ __forceinline__ int gt_next(const GtCells& view, const int* sizes, int i, int by) {
    for (; i >= 0 && i < view.width; i += 32 * by) {
        const int mine = i + by * (int)GT_LANE;
        const bool inside = mine >= 0 && mine < view.width;
        const bool met = inside && view.code_at(mine) != GT_MISSING && view.weight(mine, sizes[0]) > 0;
        const unsigned found = __ballot_sync(GT_EVERYONE, met);
        if (found) return i + by * (__ffs((int)found) - 1);
    }
    return -1;
}
