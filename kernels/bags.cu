// Rows of bags: drawn by hash as gputree/core/bags.py says, then listed with how often each was drawn.

#include "device.cuh"

enum { GT_DRAWN_SPAN = 1024 };  // rows of a block: 256 threads, four each

// How often every row is drawn by every tree. Grid: any; a thread takes (tree, draw) pairs.
extern "C" __global__ void __launch_bounds__(256)
    draw_rows(const gt_u64* key,       // IN (trees,)
              int trees,
              const gt_i64* rows,      // IN (n,) grouped by stratum
              const gt_i64* ptr,       // IN (strata + 1,) rows before each stratum
              const gt_i64* draw_ptr,  // IN (strata + 1,) draws before each stratum
              int strata,
              const gt_u64* ends,      // IN (n,) cumulated draw weights inside each stratum
              int weighted, gt_i64 n,
              unsigned* often) {       // OUT (trees, n) zeros before
    const gt_i64 draws = draw_ptr[strata];
    for (gt_i64 i = GT_THREAD; i < draws * trees; i += GT_THREADS) {
        const gt_i64 tree = i / draws, number = i % draws;
        const int s = gt_find(draw_ptr, strata, number);
        const gt_u64 hash = gt_draw(key[tree], GT_BAG, (gt_u64)number);
        gt_i64 first = ptr[s];
        if (!weighted) {
            first += (gt_i64)gt_below(hash, (gt_u64)(ptr[s + 1] - first));
        } else {  // the first row whose end lies above the point
            const gt_u64 point = gt_below(hash, ends[ptr[s + 1] - 1]);
            for (gt_i64 stop = ptr[s + 1]; first < stop;) {
                const gt_i64 middle = first + (stop - first) / 2;
                if (ends[middle] <= point)
                    first = middle + 1;
                else
                    stop = middle;
            }
        }
        atomicAdd(&often[tree * n + rows[first]], 1u);
    }
}

// Rows drawn at all, by span, and those drawn too often for their words. Grid: (trees * spans of n).
extern "C" __global__ void __launch_bounds__(256)
    count_drawn(const unsigned* often,  // IN (trees, n)
                gt_i64 n, int bits,
                gt_i64* before,         // OUT (trees * spans + 1,): the count of a span at 1 + span
                unsigned* n_odd) {      // OUT (1,) 0 before
    const gt_i64 spans = (n + GT_DRAWN_SPAN - 1) / GT_DRAWN_SPAN, tree = blockIdx.x / spans;
    int count = 0;
    for (int round = 0; round < 4; ++round) {
        const gt_i64 row = blockIdx.x % spans * GT_DRAWN_SPAN + round * 256 + threadIdx.x;
        const unsigned times = row < n ? often[tree * n + row] : 0;
        count += __syncthreads_count(times > 0);
        if (times > 0xFFFFFFFFu >> bits) atomicAdd(n_odd, 1u);
    }
    if (threadIdx.x == 0) before[1 + blockIdx.x] = count;
}

// Words of the rows drawn at all, tree by tree and ascending: see gt_row. NumPy: flatnonzero(often), often[often > 0].
// Grid: (trees * spans of n).
extern "C" __global__ void __launch_bounds__(256)
    list_drawn(const unsigned* often,  // IN (trees, n)
               gt_i64 n, int bits,
               const gt_i64* before,   // IN (trees * spans + 1,) rows before each span
               unsigned* rows,         // OUT
               unsigned* n_odd,        // IN, OUT (1,) 0 before
               unsigned* odd) {        // OUT pairs of row and times, of those drawn too often for their words
    __shared__ int of_warp[8];
    const gt_i64 spans = (n + GT_DRAWN_SPAN - 1) / GT_DRAWN_SPAN, tree = blockIdx.x / spans;
    gt_i64 place = before[blockIdx.x];
    for (int round = 0; round < 4; ++round) {
        const gt_i64 row = blockIdx.x % spans * GT_DRAWN_SPAN + round * 256 + threadIdx.x;
        const unsigned count = row < n ? often[tree * n + row] : 0;
        const unsigned drawn = __ballot_sync(GT_EVERYONE, count > 0);
        __syncthreads();  // of_warp is no longer read
        if (GT_LANE == 0) of_warp[threadIdx.x >> 5] = __popc(drawn);
        __syncthreads();  // of_warp is there
        gt_i64 mine = place + __popc(drawn & gt_lanes_before());
        for (int w = 0; w < 8; ++w) {
            if (w < threadIdx.x >> 5) mine += of_warp[w];
            place += of_warp[w];
        }
        if (count == 0) continue;
        unsigned low = (unsigned)row, high = count - 1;
        if (count > 0xFFFFFFFFu >> bits) {
            low = atomicAdd(n_odd, 1u), high = 0xFFFFFFFFu >> bits;
            odd[2 * low] = (unsigned)row, odd[2 * low + 1] = count;
        }
        rows[mine] = low | high << bits;
    }
}

// Running sums in place. NumPy: x[:] = cumsum(x). Grid: (1), one warp.
extern "C" __global__ void __launch_bounds__(32)
    running_sums(gt_i64* x,  // IN, OUT (n,)
                 gt_i64 n) {
    gt_i64 carry = 0;
    for (gt_i64 i = GT_LANE; i < (n + 31) / 32 * 32; i += 32) {
        const gt_i64 sum = carry + gt_scan(i < n ? x[i] : 0);
        if (i < n) x[i] = sum;
        carry = __shfl_sync(GT_EVERYONE, sum, 31);
    }
}
