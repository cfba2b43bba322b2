// Scalar functions shared by all kernels: the hash, the logarithm and the score grid.
//
// Compile with contraction off (NVRTC and nvcc: --fmad=false; g++ and clang++: -ffp-contract=off). The order of
// operations below is that of gputree/core/expr.py, keys.py and scores.py, so that a score has the same bits on every
// device; a fused multiply-add breaks it.
// Doubles only: -ftz=true flushes floats, never doubles. As plain C++: -D__device__= -D__forceinline__=inline.

#pragma once

enum { GT_MISSING = 0 };  // the code of a missing value in every feature
// keys.Stream
enum {
    GT_CHILD = 0, GT_FEATURE = 1, GT_THRESHOLD = 2, GT_BAG = 3, GT_DIRECTION = 4, GT_CATEGORY = 5, GT_SHUFFLE = 6,
    GT_COLUMN = 7, GT_TARGET = 8, GT_HELD_OUT = 9, GT_RESAMPLE = 10, GT_FOLD = 11, GT_HOLDOUT = 12,
    GT_PART = 13, GT_SIDE = 14
};

typedef long long gt_i64;
typedef unsigned long long gt_u64;

// The integer image of a double, and back.
#ifdef __CUDACC__
#define GT_BITS(x) __double_as_longlong(x)
#define GT_DOUBLE(bits) __longlong_as_double(bits)
#else
static inline gt_i64 gt_host_bits(double x) { gt_i64 bits; __builtin_memcpy(&bits, &x, 8); return bits; }
static inline double gt_host_double(gt_i64 bits) { double x; __builtin_memcpy(&x, &bits, 8); return x; }
#define GT_BITS(x) gt_host_bits(x)
#define GT_DOUBLE(bits) gt_host_double(bits)
#endif

// ---- keys.py ----

// Output i of the splitmix64 generator with seed key (Steele, Lea, Flood 2014).
static __device__ __forceinline__ gt_u64 gt_mix(gt_u64 key, gt_u64 i) {
    gt_u64 z = key + (i + 1) * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

static __device__ __forceinline__ gt_u64 gt_draw(gt_u64 key, int stream, gt_u64 i) {
    return gt_mix(gt_mix(key, (gt_u64)stream), i);
}

// A double in [0, 1) from the top 53 bits of a hash.
static __device__ __forceinline__ double gt_unit(gt_u64 h) { return (double)(h >> 11) * 1.1102230246251565e-16; }

// An integer in 0 .. n - 1: the high 64 bits of h * n, for n below 2^32.
static __device__ __forceinline__ gt_u64 gt_below(gt_u64 h, gt_u64 n) {
    return ((h >> 32) * n + (((h & 0xFFFFFFFFULL) * n) >> 32)) >> 32;
}

// ---- expr.py ----

// log2 of finite x >= 0; -1077 at 0, so that 0 * log2(0) is 0.
static __device__ __forceinline__ double gt_log2(double x) {
    gt_i64 shift = 0;
    if (x < 2.2250738585072014e-308) {
        x = x * 18014398509481984.0;
        shift = 54;
    }
    const gt_i64 bits = GT_BITS(x);
    const gt_i64 exponent = (bits - 0x3FE6A09E667F3BCDLL) >> 52;  // counts from sqrt(1/2), not from 1/2
    const double m = GT_DOUBLE(bits - exponent * 0x10000000000000LL);
    const double s = (m - 1.0) / (m + 1.0);
    const double z = s * s;
    double p = z * 0.2136589569431927;  // 2 atanh(s) / (s ln 2), see expr.py
    p = (p + 0.2209130842311768) * z;
    p = (p + 0.262334352504183) * z;
    p = (p + 0.32059853491395984) * z;
    p = (p + 0.4121985858409005) * z;
    p = (p + 0.5770780163455203) * z;
    p = (p + 0.9617966939259898) * z;
    p = (p + 2.8853900817779268) * s;
    return p + (double)(exponent - shift);
}

// x log2(x), and 0 at 0.
static __device__ __forceinline__ double gt_xlogx(double x) { return x * gt_log2(x) + 0.0; }

// a / b, and 0 where b is 0.
static __device__ __forceinline__ double gt_ratio(double a, double b) { return b == 0.0 ? 0.0 : a / b; }

static __device__ __forceinline__ double gt_abs(double x) { return GT_DOUBLE(GT_BITS(x) & 0x7FFFFFFFFFFFFFFFLL); }

// ---- scores.py ----

// The score rounded to a multiple of 2^-40 times the least power of two not below max(|score|, scale); see scores.grid.
static __device__ __forceinline__ double gt_grid(double score, double scale) {
    const double magnitude = gt_abs(score);
    const double size = magnitude < scale ? scale : magnitude;
    const gt_u64 power = ((gt_u64)GT_BITS(size) + 0x000FFFFFFFFFFFFFULL) & 0xFFF0000000000000ULL;
    if (power > 0x7F20000000000000ULL) return score;  // above 2^1011: the anchor would overflow
    // 1.5 * 2^12 * power: one unit in its last place is q
    const double anchor = GT_DOUBLE((gt_i64)(power + 0x00C8000000000000ULL));
    return (score + anchor) - anchor;
}
