// Rows go to the branches of their nodes' tests: count, move aside and put back, keeping the order inside a branch. Some
// splits at a time, so that what is moved aside takes little room, and is read again before it leaves the cache.
//
// A warp takes a tile of rows of one split. counts[count_ptr[split] + tile * branches + branch] is its own part of the
// counts, so nothing is shared; `offsets` turns counts into the positions where each tile writes.

#include "test.cuh"

enum { GT_SIDES = 64, GT_BLOCK_WARPS = 4 };  // totals that a warp keeps in shared memory; warps of a block

// Totals of the branches of one split, or of one tile of it: `all` apart by channel. Rows 0 .. n_channels - 1 hold the
// channels; of sums, then come `outputs` greatest images of y and as many of its least ones, inverted: 0 before.
struct GtTotals {
    gt_i64* at;
    gt_i64 all;
    int n_channels, outputs;
    __device__ __forceinline__ void add_row(GtRow row, gt_i64 p, gt_i64 n, int branch, const int* sizes,
                                            const int* labels, const gt_i64* units, const gt_i64* values, int how,
                                            const double* y) const {
        gt_channels(row, p, n, outputs, sizes, labels, units, values, how,
                    [&](int channel, gt_i64 value) { gt_add(&at[channel * all + branch], value); });
        for (int o = 0; GT_KIND != GT_COUNTS && o < outputs; ++o) {
            const gt_u64 image = gt_image(y[(gt_i64)o * n + row.number]);
            atomicMax((gt_u64*)&at[(n_channels + o) * all + branch], image);
            atomicMax((gt_u64*)&at[(n_channels + outputs + o) * all + branch], ~image);
        }
    }
    __device__ __forceinline__ int rows() const { return n_channels + (GT_KIND == GT_COUNTS ? 0 : 2 * outputs); }
    // Join `value` of row i.
    __device__ __forceinline__ void join(int i, int branch, gt_i64 value) const {
        if (i < n_channels)
            gt_add(&at[i * all + branch], value);
        else
            atomicMax((gt_u64*)&at[i * all + branch], (gt_u64)value);
    }
};

// One step of a warp: the number of its lanes in each branch b (-1: none) is added to count[b]; gives the lane's place
// among them, counted on from `count`.
static __device__ __forceinline__ unsigned gt_rank(int b, unsigned* count) {
    unsigned mine = 0;
    for (unsigned left = __ballot_sync(GT_EVERYONE, b >= 0); left;) {
        const int here = __shfl_sync(GT_EVERYONE, b, __ffs((int)left) - 1);
        const unsigned same = __ballot_sync(GT_EVERYONE, b == here);
        unsigned before = 0;
        if (GT_LANE == 0) before = count[here], count[here] = before + __popc(same);
        before = __shfl_sync(GT_EVERYONE, before, 0);
        if (b == here) mine = before + __popc(same & gt_lanes_before());
        left &= ~same;
    }
    return mine;
}

// Branch of every row, counts by tile, and the totals of every branch.
// Grid: any, of GT_BLOCK_WARPS warps; a warp takes tiles.
extern "C" __global__ void __launch_bounds__(128, 6)
    count_branches(const unsigned* records,        // IN (groups, n, words)
                   int words,
                   const unsigned short* wide,     // IN (n_wide, n)
                   gt_i64 n,
                   const unsigned* rows,           // IN words of rows, node by node
                   const gt_i64* start,            // IN (k,) first position of each split in `rows`
                   const gt_i64* stop,             // IN (k,)
                   const gt_i64* tile_ptr,         // IN (k + 1,) tiles before each split
                   const gt_i64* count_ptr,        // IN (k,) its first count
                   const gt_i64* branch_ptr,       // IN (k + 1,) branches before each split
                   int k, int tile,
                   const int* place,               // IN (k,) >= 0: of one byte, else ~place of two; GT_NOWHERE: none
                   const int* kind, const int* cut, const int* missing,  // IN (k,)
                   const gt_i64* lookup_ptr,       // IN (k + 1,)
                   const unsigned short* lookup_code, const unsigned short* lookup_branch,
                   int outputs, const int* sizes, const int* labels, const gt_i64* units, const gt_i64* values,
                   const unsigned* times, int how,
                   const double* y,                // IN (outputs, n) of sums
                   int n_channels,
                   const gt_i64* aside,            // IN (k,) rows before each split
                   unsigned short* branch_of,      // OUT (rows of all splits,)
                   unsigned* counts,               // OUT zeros before
                   gt_i64* totals,                 // OUT (GtTotals.rows, branches), zeros before
                   gt_i64* sizes_of) {             // OUT (branches,) rows of every branch, zeros before
    __shared__ gt_i64 kept[GT_BLOCK_WARPS][GT_SIDES];
    gt_i64* mine = kept[threadIdx.x >> 5];
    for (gt_i64 t = GT_WARP; t < tile_ptr[k]; t += GT_WARPS) {
        const int s = gt_find(tile_ptr, k, t), branches = (int)(branch_ptr[s + 1] - branch_ptr[s]);
        const GtTest test = {kind[s], cut[s], missing[s], lookup_code + lookup_ptr[s], lookup_branch + lookup_ptr[s],
                             (int)(lookup_ptr[s + 1] - lookup_ptr[s])};
        const GtTotals whole = {totals + branch_ptr[s], branch_ptr[k], n_channels, outputs};
        const int where = place[s];  // once: the compiler cannot know that no store changes it
        const bool keep = (gt_i64)branches * whole.rows() <= GT_SIDES;
        const GtTotals part = {keep ? mine : whole.at, keep ? branches : whole.all, n_channels, outputs};
        unsigned* count = counts + count_ptr[s] + (t - tile_ptr[s]) * branches;
        const gt_i64 begin = start[s] + (t - tile_ptr[s]) * tile, end = min(begin + tile, stop[s]);
        const gt_i64 away = aside[s] - start[s];
        for (int i = GT_LANE; keep && i < branches * whole.rows(); i += 32) mine[i] = 0;
        __syncwarp();  // totals are 0
        for (gt_i64 first = begin; first < end; first += 32) {
            const gt_i64 p = first + GT_LANE;
            const GtRow row = p < end ? gt_row(rows[p], times, how) : GtRow{0, 0};
            int b = p < end ? 0 : -1;
            if (p < end && where != GT_NOWHERE)
                b = test.take(where >= 0 ? gt_byte_code(records, words, n, row.number, where)
                                         : (int)wide[(gt_i64)~where * n + row.number]);
            if (p < end) branch_of[p + away] = (unsigned short)b;
            if (p < end && GT_WHOLE && outputs == 1 && where >= 0)  // the label is in the record
                gt_add(&part.at[gt_byte_label(records, words, n, row.number, where) * part.all + b], (gt_i64)1);
            else if (p < end)
                part.add_row(row, p, n, b, sizes, labels, units, values, how, y);
            gt_rank(b, count);
        }
        __syncwarp();  // totals and counts are added
        for (int i = GT_LANE; keep && i < branches * whole.rows(); i += 32)
            whole.join(i / branches, i % branches, mine[i]);
        for (int b = GT_LANE; b < branches; b += 32) gt_add(&sizes_of[branch_ptr[s] + b], (gt_i64)count[b]);
        __syncwarp();  // counts are read
    }
}

// Counts of tiles become the places where they write, branch by branch and tile by tile.
// NumPy: counts.T.ravel().cumsum() - counts.T.ravel(). Grid: any; a warp takes splits.
extern "C" __global__ void __launch_bounds__(128)
    offsets(const gt_i64* tile_ptr, const gt_i64* count_ptr, const gt_i64* branch_ptr, int k,
            unsigned* counts) {  // IN, OUT: places from the first of the split on
    for (gt_i64 s = GT_WARP; s < k; s += GT_WARPS) {
        const gt_i64 tiles = tile_ptr[s + 1] - tile_ptr[s], branches = branch_ptr[s + 1] - branch_ptr[s];
        gt_i64 carry = 0;
        for (gt_i64 b = 0; b < branches; ++b) {
            for (gt_i64 t0 = 0; t0 < tiles; t0 += 32) {
                const gt_i64 t = t0 + GT_LANE;
                unsigned* at = counts + count_ptr[s] + t * branches + b;
                const gt_i64 own = t < tiles ? *at : 0, sum = gt_scan(own);
                if (t < tiles) *at = (unsigned)(carry + sum - own);
                carry += __shfl_sync(GT_EVERYONE, sum, 31);
            }
        }
    }
}

// Move rows aside, branch by branch. Grid: any; a warp takes tiles.
extern "C" __global__ void __launch_bounds__(128)
    move_rows(const gt_i64* start, const gt_i64* stop,
              const gt_i64* aside,          // IN (k,) rows before each split
              const gt_i64* tile_ptr, const gt_i64* count_ptr, const gt_i64* branch_ptr, int k, int tile,
              const unsigned short* branch_of,
              unsigned* counts,             // IN places; used up
              const unsigned* rows,         // IN
              unsigned* moved) {            // OUT (rows of all splits,)
    for (gt_i64 t = GT_WARP; t < tile_ptr[k]; t += GT_WARPS) {
        const int s = gt_find(tile_ptr, k, t);
        unsigned* place = counts + count_ptr[s] + (t - tile_ptr[s]) * (branch_ptr[s + 1] - branch_ptr[s]);
        const gt_i64 begin = start[s] + (t - tile_ptr[s]) * tile, end = min(begin + tile, stop[s]);
        const gt_i64 to = aside[s], away = to - start[s];
        for (gt_i64 first = begin; first < end; first += 32) {
            const gt_i64 p = first + GT_LANE;
            const int b = p < end ? (int)branch_of[p + away] : -1;
            const unsigned at = gt_rank(b, place);
            if (b >= 0) moved[to + at] = rows[p];
        }
    }
}

// Put them back, in their new order. Grid: any; a warp takes tiles.
extern "C" __global__ void __launch_bounds__(128, 8)
    put_back(const gt_i64* start, const gt_i64* stop, const gt_i64* aside, const gt_i64* tile_ptr, int k, int tile,
             const unsigned* moved,  // IN
             unsigned* rows) {       // OUT
    for (gt_i64 t = GT_WARP; t < tile_ptr[k]; t += GT_WARPS) {
        const int s = gt_find(tile_ptr, k, t);
        const gt_i64 begin = start[s] + (t - tile_ptr[s]) * tile, end = min(begin + tile, stop[s]);
        const gt_i64 away = aside[s] - start[s];
        for (gt_i64 p = begin + GT_LANE; p < end; p += 32) rows[p] = moved[p + away];
    }
}
