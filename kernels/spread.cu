// Rows go to the branches of their nodes' tests where those with a missing value go to several: gputree/backends/spread.
//
// Three passes over tiles of rows, as in partition.cu: the branch of every row, and the known weight of every branch;
// how many rows, with what weight, come to each branch; and the rows themselves, put down branch by branch.

#include "test.cuh"

// The branches of a split and the shares of a row that goes to all of them.
struct GtShares {
    const gt_i64* known;  // (branches,)
    int branches, top;
    double total;
    __device__ __forceinline__ gt_i64 part(gt_i64 weight, int b) const {
        return (gt_i64)((double)weight * ((double)known[b] / total));
    }
    // What branch b has of a row of branch `own`, which may be GT_SPREAD; the heaviest one has what is left.
    __device__ __forceinline__ gt_i64 share(gt_i64 weight, int own, int b) const {
        if (own != GT_SPREAD) return own == b ? weight : 0;
        if (b != top) return part(weight, b);
        gt_i64 rest = weight;
#pragma unroll 1  // divisions of four branches at a time do not fit the registers
        for (int other = 0; other < branches; ++other) rest -= other == top ? 0 : part(weight, other);
        return rest;
    }
};

static __device__ GtShares gt_shares(const gt_i64* known, int branches) {
    GtShares shares = {known, branches, 0, 0.0};
    gt_i64 total = 0;
    for (int b = 0; b < branches; ++b) {
        total += known[b];
        if (known[b] > known[shares.top]) shares.top = b;
    }
    shares.total = (double)total;
    return shares;
}

// Branch of every row, GT_SPREAD where it goes to several, and the weight of the others in each branch.
// Grid: any; a warp takes tiles.
extern "C" __global__ void __launch_bounds__(128)
    mark_rows(const unsigned* records, int words, const unsigned short* wide, gt_i64 n,
              const unsigned* rows,           // IN row numbers, node by node
              const gt_i64* start, const gt_i64* stop, const gt_i64* tile_ptr, const gt_i64* count_ptr,
              const gt_i64* branch_ptr, int k, int tile,
              const int* place, const int* kind, const int* cut, const int* missing, const gt_i64* lookup_ptr,
              const unsigned short* lookup_code, const unsigned short* lookup_branch,
              const gt_i64* units, const unsigned* times, int how,
              unsigned short* branch_of,      // OUT (positions,)
              gt_i64* known) {                // OUT (branches,) zeros before
    for (gt_i64 t = GT_WARP; t < tile_ptr[k]; t += GT_WARPS) {
        const int s = gt_find(tile_ptr, k, t), where = place[s];
        const GtTest test = {kind[s], cut[s], missing[s], lookup_code + lookup_ptr[s], lookup_branch + lookup_ptr[s],
                             (int)(lookup_ptr[s + 1] - lookup_ptr[s])};
        const gt_i64 begin = start[s] + (t - tile_ptr[s]) * tile, end = min(begin + tile, stop[s]);
        for (gt_i64 p = begin + GT_LANE; p < end; p += 32) {
            const GtRow row = gt_row(rows[p], times, how);
            const int b = test.take(where >= 0 ? gt_byte_code(records, words, n, row.number, where)
                                               : (int)wide[(gt_i64)~where * n + row.number]);
            branch_of[p] = (unsigned short)b;
            if (b != GT_SPREAD) gt_add(&known[branch_ptr[s] + b], gt_weight(row, p, units, how));
        }
    }
}

// Rows of every branch by tile, and the totals of every branch. Grid: any; a warp takes tiles.
extern "C" __global__ void __launch_bounds__(128, 8)
    count_shares(gt_i64 n, const unsigned* rows, const gt_i64* start, const gt_i64* stop, const gt_i64* tile_ptr,
                 const gt_i64* count_ptr, const gt_i64* branch_ptr, int k, int tile,
                 int outputs, const int* sizes, const int* labels,
                 const gt_i64* units, const unsigned* times, int how,
                 const unsigned short* branch_of,
                 const gt_i64* known,
                 unsigned* counts,         // OUT zeros before
                 gt_i64* totals,           // OUT (channels, branches) zeros before
                 gt_i64* sizes_of) {       // OUT (branches,) zeros before
    for (gt_i64 t = GT_WARP; t < tile_ptr[k]; t += GT_WARPS) {
        const int s = gt_find(tile_ptr, k, t), branches = (int)(branch_ptr[s + 1] - branch_ptr[s]);
        const GtShares shares = gt_shares(known + branch_ptr[s], branches);
        unsigned* count = counts + count_ptr[s] + (t - tile_ptr[s]) * branches;
        const gt_i64 begin = start[s] + (t - tile_ptr[s]) * tile, end = min(begin + tile, stop[s]);
        for (gt_i64 first = begin; first < end; first += 32) {
            const gt_i64 p = first + GT_LANE;
            const GtRow row = p < end ? gt_row(rows[p], times, how) : GtRow{0, 0};
            const gt_i64 weight = p < end ? gt_weight(row, p, units, how) : 0;
            const int own = p < end ? (int)branch_of[p] : 0;
            for (int b = 0; b < branches; ++b) {
                const gt_i64 share = shares.share(weight, own, b);
                const unsigned here = __ballot_sync(GT_EVERYONE, share > 0);
                if (GT_LANE == 0 && here) {
                    count[b] += __popc(here);
                    gt_add(&sizes_of[branch_ptr[s] + b], (gt_i64)__popc(here));
                }
                if (share == 0) continue;
                gt_i64* at = totals + branch_ptr[s] + b;
                for (int o = 0; o < outputs; at += sizes[o] * branch_ptr[k], ++o)
                    gt_add(at + labels[(gt_i64)o * n + row.number] * branch_ptr[k], share);
                if (GT_WEIGHTED) gt_add(at, (gt_i64)1);
            }
        }
    }
}

// Put rows and their shares down, branch by branch. Grid: any; a warp takes tiles.
extern "C" __global__ void __launch_bounds__(128, 8)
    place_shares(const unsigned* rows, const gt_i64* start, const gt_i64* stop,
                 const gt_i64* to,          // IN (k,) first position of each split in what is written
                 const gt_i64* tile_ptr, const gt_i64* count_ptr, const gt_i64* branch_ptr, int k, int tile,
                 const gt_i64* units, const unsigned* times, int how,
                 const unsigned short* branch_of,
                 const gt_i64* known,
                 unsigned* counts,          // IN places; used up
                 unsigned* into,            // OUT row numbers
                 gt_i64* weights) {         // OUT weight at each position
    for (gt_i64 t = GT_WARP; t < tile_ptr[k]; t += GT_WARPS) {
        const int s = gt_find(tile_ptr, k, t), branches = (int)(branch_ptr[s + 1] - branch_ptr[s]);
        const GtShares shares = gt_shares(known + branch_ptr[s], branches);
        unsigned* place = counts + count_ptr[s] + (t - tile_ptr[s]) * branches;
        const gt_i64 begin = start[s] + (t - tile_ptr[s]) * tile, end = min(begin + tile, stop[s]);
        for (gt_i64 first = begin; first < end; first += 32) {
            const gt_i64 p = first + GT_LANE;
            const GtRow row = p < end ? gt_row(rows[p], times, how) : GtRow{0, 0};
            const gt_i64 weight = p < end ? gt_weight(row, p, units, how) : 0;
            const int own = p < end ? (int)branch_of[p] : 0;
            for (int b = 0; b < branches; ++b) {
                const gt_i64 share = shares.share(weight, own, b);
                const unsigned here = __ballot_sync(GT_EVERYONE, share > 0);
                unsigned before = 0;
                if (GT_LANE == 0) before = place[b], place[b] = before + __popc(here);
                before = __shfl_sync(GT_EVERYONE, before, 0);
                if (share == 0) continue;
                const gt_i64 at = to[s] + before + __popc(here & gt_lanes_before());
                into[at] = (unsigned)row.number, weights[at] = share;
            }
        }
    }
}
