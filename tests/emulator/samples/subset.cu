// Every function of the subset once; test_subset.py knows what it gives in Python.

__shared__ int at_file_scope[3];

static __device__ int in_a_function(int x) {
    __shared__ int held[4];
    held[threadIdx.x & 3] = x;
    return held[threadIdx.x & 3];
}

template <class T>
static __device__ T in_a_template(T x) {
    __shared__ T held;
    held = x;
    return held;
}

// One thread. Three places of shared memory that the compiler lays out in three ways.
extern "C" __global__ void shared_everywhere(int* out) {
    extern __shared__ __align__(16) unsigned char raw[];
    at_file_scope[2] = 5;
    ((int*)raw)[1] = 7;
    out[0] = in_a_function(3) + in_a_template(10) + (int)in_a_template(20.0) + at_file_scope[2] + ((int*)raw)[1];
}

// out (25, n): grid (1), block (n).
extern "C" __global__ void integers(const long long* a, const long long* b, long long* out) {
    const int i = threadIdx.x, n = blockDim.x;
    const long long x = a[i], y = b[i];
    int row = 0;
#define PUT(value) out[row++ * n + i] = (long long)(value)
    PUT(__popc((unsigned)x));
    PUT(__popcll(x));
    PUT(__ffs((int)x));
    PUT(__ffsll(x));
    PUT(__clz((int)x));
    PUT(__clzll(x));
    PUT(__umulhi((unsigned)x, (unsigned)y));
    PUT(__mulhi((int)x, (int)y));
    PUT(__umul64hi(x, y));
    PUT(__mul64hi(x, y));
    PUT(min(x, y));
    PUT(max(x, y));
    PUT(__double_as_longlong(__longlong_as_double(x)));
    PUT(__float_as_uint(__uint_as_float((unsigned)x & 0x7F7FFFFFu)));
    PUT(__ldg(a + i));
}

#define ATOMICS(name, T) \
    extern "C" __global__ void name(const T* x, T* out) { \
        const T v = x[threadIdx.x]; \
        atomicAdd(&out[0], v); \
        atomicMin(&out[1], v); \
        atomicMax(&out[2], v); \
        atomicAnd(&out[3], v); \
        atomicOr(&out[4], v); \
        atomicXor(&out[5], v); \
        if (threadIdx.x == 3) { \
            out[7] = atomicExch(&out[6], v); \
            out[8] = atomicCAS(&out[6], v, (T)77); \
            out[9] = atomicCAS(&out[6], v, (T)78); \
        } \
    }
ATOMICS(atomics_int32, int)
ATOMICS(atomics_uint32, unsigned)
ATOMICS(atomics_uint64, unsigned long long)

// out (9, 64): grid (1), block (64). Lanes outside `mask` do nothing.
extern "C" __global__ void warp(unsigned mask, int by, int width, const double* x, double* out) {
    const int i = threadIdx.x;
    if (!(mask >> (i & 31) & 1)) return;
    out[i] = __shfl_sync(mask, x[i], by, width);
    out[64 + i] = __shfl_up_sync(mask, x[i], by, width);
    out[128 + i] = __shfl_down_sync(mask, x[i], by, width);
    out[192 + i] = __shfl_xor_sync(mask, x[i], by, width);
    out[256 + i] = __ballot_sync(mask, x[i] > 0.5);
    out[320 + i] = __any_sync(mask, x[i] > 0.98);
    out[384 + i] = __all_sync(mask, x[i] > 0.02);
    __syncwarp(mask);
    out[448 + i] = (float)__shfl_sync(mask, (float)x[i], 0);
    out[512 + i] = __shfl_sync(mask, i, 0);
}

// out (blocks, threads, 4): the places of a grid and block of three dimensions, and three block-wide votes.
extern "C" __global__ void places(int* out) {
    const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int* mine = out + 4 * (block * (int)(blockDim.x * blockDim.y * blockDim.z) + thread);
    mine[0] = (int)(threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z + 1000 * blockIdx.x + 10000 * blockIdx.y +
                    100000 * blockIdx.z);
    mine[1] = __syncthreads_count(thread < 5);
    mine[2] = __syncthreads_or(thread == block);
    mine[3] = __syncthreads_and(thread != block);
}

// Vectors of every alignment. One thread.
extern "C" __global__ void vectors(const ulonglong2* x, float4* y, uchar4* z) {
    const ulonglong2 v = x[1];
    y[0] = make_float4((float)v.x, (float)v.y, 1.0f, 2.0f);
    const uint2 u = make_uint2(3, 4);
    z[0] = make_uchar4((unsigned char)u.x, (unsigned char)u.y, 5, 6);
}
