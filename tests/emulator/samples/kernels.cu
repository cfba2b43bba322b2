// Right kernels of every shape that the library uses. test_broken.py edits single lines of them.

#include "common.cuh"

#define ALL 0xFFFFFFFFu

// Sums of blocks: out[block] = x[block * n_per_block : ...].sum(). Grid (blocks), block (multiple of 32, at most 1024).
extern "C" __global__ void __launch_bounds__(1024) block_sum(const unsigned* x, long long n, unsigned long long* out) {
    __shared__ unsigned long long part[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long sum = i < n ? x[i] : 0;
    for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(ALL, sum, by);
    if (lane == 0) part[warp] = sum;
    __syncthreads();  // parts are written
    if (warp == 0) {
        sum = lane < warps ? part[lane] : 0;
        for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(ALL, sum, by);
        if (lane == 0) out[blockIdx.x] = sum;
    }
}

// Running sums of one block: y = cumsum(x). Grid (1), block (n, a multiple of 32).
extern "C" __global__ void block_scan(const int* x, int* y) {
    __shared__ int ends[32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int sum = x[threadIdx.x];
    for (int by = 1; by < 32; by <<= 1) {
        const int other = __shfl_up_sync(ALL, sum, by);
        if (lane >= by) sum += other;
    }
    if (lane == 31) ends[warp] = sum;
    __syncthreads();
    int before = 0;
    for (int i = 0; i < warp; ++i) before += ends[i];
    y[threadIdx.x] = before + sum;
}

// Counts of codes: out += bincount(codes). Any grid and block; dynamic shared memory of n_codes counters.
extern "C" __global__ void histogram(const unsigned char* codes, int n, int n_codes, unsigned* out) {
    extern __shared__ unsigned cells[];
    for (int i = threadIdx.x; i < n_codes; i += blockDim.x) cells[i] = 0;
    __syncthreads();  // cells are zero
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&cells[codes[i]], 1u);
    }
    __syncthreads();  // cells are counted
    for (int i = threadIdx.x; i < n_codes; i += blockDim.x) atomicAdd(&out[i], cells[i]);
}

// A sum of signed 64-bit numbers in shared memory, as two 32-bit adds: out[0] = x.sum(). Grid (1).
extern "C" __global__ void sum64(const long long* x, int n, long long* out) {
    __shared__ unsigned low, high;
    if (threadIdx.x == 0) low = high = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const unsigned add = (unsigned)x[i];
        const unsigned carry = atomicAdd(&low, add) + add < add;
        atomicAdd(&high, (unsigned)((unsigned long long)x[i] >> 32) + carry);
    }
    __syncthreads();
    if (threadIdx.x == 0) out[0] = (long long)((unsigned long long)high << 32 | low);
}

// The rows of each block that go left. Grid (blocks), block (256): counts[block] = left[block].sum().
extern "C" __global__ void count_left(const unsigned char* left, int n, int* counts) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int total = __syncthreads_count(i < n && left[i]);
    if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

// A stable partition: rows = concatenate([rows[left], rows[~left]]). first[block] = lefts of the blocks before.
extern "C" __global__ void partition(const unsigned char* left, const int* first, int n, int n_left, int* rows) {
    __shared__ int before_warp[9];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const bool goes_left = i < n && left[i];
    const unsigned lefts = __ballot_sync(ALL, goes_left);
    if (lane == 0) before_warp[warp + 1] = __popc(lefts);
    if (threadIdx.x == 0) before_warp[0] = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 0; w < blockDim.x / 32; ++w) before_warp[w + 1] += before_warp[w];
    }
    __syncthreads();
    const int rank = first[blockIdx.x] + before_warp[warp] + __popc(lefts & ((1u << lane) - 1));
    if (i < n) rows[goes_left ? rank : n_left + i - rank] = i;
}

// The best score and the lowest place that has it: out[0] = argmax(score). Grid (1), block (32).
extern "C" __global__ void best(const double* score, int n, int* out) {
    double top = -1.0;
    int place = n;
    for (int i = threadIdx.x; i < n; i += 32) {
        if (score[i] > top) top = score[i], place = i;
    }
    for (int by = 16; by > 0; by >>= 1) {
        const double other = __shfl_down_sync(ALL, top, by);
        const int there = __shfl_down_sync(ALL, place, by);
        if (other > top || (other == top && there < place)) top = other, place = there;
    }
    if (threadIdx.x == 0) out[0] = place;
}

// The neighbour in the warp, through shared memory: y[i] = x[i ^ 1]. Grid (1), block (64).
extern "C" __global__ void swap_pairs(const short* x, short* y) {
    __shared__ short held[64];
    held[threadIdx.x] = x[threadIdx.x];
    __syncwarp();
    y[threadIdx.x] = held[threadIdx.x ^ 1];
}

// One cell of every row of a wide table: out = table[rows, column]. Grid (1).
extern "C" __global__ void gather(const unsigned char* table, long long stride, const int* rows, int n, int column,
                                  unsigned char* out) {
    const int i = threadIdx.x;
    if (i < n) out[i] = table[rows[i] * stride + column];
}

// Records of 16 bytes, one load each: out[i] = records[i].sum(). Grid (1), block (n).
extern "C" __global__ void add_records(const unsigned char* records, int n, unsigned* out) {
    const int i = threadIdx.x;
    if (i >= n) return;
    const uint4 r = *(const uint4*)(records + 16 * i);
    out[i] = r.x + r.y + r.z + r.w;
}

// The functions of common.cuh, one row each.
extern "C" __global__ void scalars(const double* x, const unsigned long long* h, int n, double* real,
                                   unsigned long long* whole) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    real[i] = gt_log2(x[i]);
    real[n + i] = gt_xlogx(x[i]);
    real[2 * n + i] = gt_unit(h[i]);
    real[3 * n + i] = gt_grid(x[i], 1.0);
    whole[i] = gt_mix(h[i], 7);
    whole[n + i] = gt_draw(h[i], GT_BAG, 3);
    whole[2 * n + i] = gt_below(h[i], 1000003);
}
