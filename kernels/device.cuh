// What only a GPU needs: positions in a launch, warp sums, searches, the channels of a row. See common.cuh for the rest.
//
// A module is specialised by -DGT_KIND (what the channels mean) and -DGT_WEIGHTED (0: a row weighs 1 and counts once; 1:
// it weighs `units` and counts `times`, where there are such arrays, and a channel counts rows).

#pragma once

#include "common.cuh"

enum { GT_COUNTS = 0, GT_RAW_SUMS = 1, GT_CENTRED_SUMS = 2 };  // criteria.TargetKind
enum { GT_LEAF = 0, GT_TEST = 1, GT_LOOKUP = 3 };              // forest.Test
enum { GT_NOT_MET = -1 };                                      // splits.NOT_MET
enum { GT_STAY = 65534 };                                      // forest.STAY
enum { GT_SPREAD = 65535 };                                    // forest.SPREAD
enum { GT_PER_WORD = 4 };                                      // codes in a word of a record
enum { GT_NOWHERE = -0x7FFFFFFF - 1 };                         // the place of no feature

#ifndef GT_KIND
#define GT_KIND GT_COUNTS
#endif
#ifndef GT_WEIGHTED
#define GT_WEIGHTED 0
#endif
#define GT_WHOLE (GT_KIND == GT_COUNTS && !GT_WEIGHTED)  // every channel counts rows

// A channel of a table: 32 bits hold any number of rows.
#if GT_WHOLE
typedef unsigned gt_cell;
#else
typedef gt_i64 gt_cell;
#endif

#define GT_EVERYONE 0xFFFFFFFFu
#define GT_LANE (threadIdx.x & 31)
#define GT_WARP ((gt_i64)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5))
#define GT_WARPS ((gt_i64)gridDim.x * (blockDim.x >> 5))
#define GT_THREAD ((gt_i64)blockIdx.x * blockDim.x + threadIdx.x)
#define GT_THREADS ((gt_i64)gridDim.x * blockDim.x)

static __device__ __forceinline__ void gt_add(unsigned* at, unsigned value) { atomicAdd(at, value); }
static __device__ __forceinline__ void gt_add(gt_i64* at, gt_i64 value) { atomicAdd((gt_u64*)at, (gt_u64)value); }

// The largest i in 0 .. k - 1 with ptr[i] <= x; ptr[0] <= x.
static __device__ __forceinline__ int gt_find(const gt_i64* ptr, int k, gt_i64 x) {
    int low = 0, high = k;
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (ptr[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// How many of m ascending keys lie below x: NumPy's searchsorted(keys, x, side="left"). No branch depends on x.
static __device__ __forceinline__ int gt_below_keys(const double* keys, int m, double x) {
    int count = 0;
    for (int step = 1 << 16; step > 0; step >>= 1) {
        if (step > m) continue;
        const int next = count + step;
        count = next <= m && keys[next - 1] < x ? next : count;
    }
    return count;
}

// A float as a double, from its bits: CuPy compiles with -ftz=true, under which a plain conversion drops denormals.
static __device__ __forceinline__ double gt_widen(unsigned bits) {
    const unsigned fraction = bits & 0x7FFFFFu, exponent = bits >> 23 & 0xFFu;
    if (exponent == 0) {
        const double size = (double)fraction * 1.401298464324817e-45;
        return bits >> 31 ? -size : size;
    }
    return (double)__uint_as_float(bits);
}

// X[i] of a float32 or float64 array.
static __device__ __forceinline__ double gt_value(const void* X, int itemsize, gt_i64 i) {
    return itemsize == 4 ? gt_widen(((const unsigned*)X)[i]) : ((const double*)X)[i];
}

// Unsigned integers in the order of doubles (no NaN), all above 0; -0.0 comes right below 0.0.
static __device__ __forceinline__ gt_u64 gt_image(double x) {
    const gt_u64 bits = (gt_u64)GT_BITS(x);
    return bits >> 63 ? ~bits : bits | 0x8000000000000000ULL;
}

// Sum over the lanes up to this one.
static __device__ __forceinline__ gt_i64 gt_scan(gt_i64 value) {
    for (int by = 1; by < 32; by <<= 1) {
        const gt_i64 other = __shfl_up_sync(GT_EVERYONE, value, by);
        if (GT_LANE >= by) value += other;
    }
    return value;
}

static __device__ __forceinline__ unsigned gt_lanes_before() { return (1u << GT_LANE) - 1u; }

// Where the code of a feature lies: `place` counts the features of one byte, or those of two bytes, from 0.
//   bytes: records[group][row][word], four codes a word; the last word of a record holds the row's first label
//   two bytes: wide[place][row]
static __device__ __forceinline__ int gt_byte_code(const unsigned* records, int words, gt_i64 n, gt_i64 row, int place) {
    const int per_group = (words - 1) * GT_PER_WORD, group = place / per_group;
    const gt_i64 record = ((gt_i64)group * n + row) * words;
    return ((const unsigned char*)(records + record))[place - group * per_group];
}

// The first label of a row, from the record that holds this feature of one byte.
static __device__ __forceinline__ int gt_byte_label(const unsigned* records, int words, gt_i64 n, gt_i64 row, int place) {
    const gt_i64 group = place / ((words - 1) * GT_PER_WORD);
    return (int)records[(group * n + row + 1) * words - 1];
}

// A row, and how often it counts.
struct GtRow {
    gt_i64 number, often;
};

// What a word of `rows` says. how & 2: its low `how >> 8` bits are the number of a row, those above one less than how often
// it counts; or all of those above are set, and `times` has both where the low bits say.
static __device__ __forceinline__ GtRow gt_row(unsigned word, const unsigned* times, int how) {
    if (!GT_WEIGHTED || !(how & 2)) return {word, 1};
    const int bits = how >> 8;
    const unsigned low = word & ((1u << bits) - 1u), high = word >> bits;
    if (high != 0xFFFFFFFFu >> bits) return {low, (gt_i64)high + 1};
    return {times[2 * low], times[2 * low + 1]};
}

// The weight at position p of `rows`. how & 1: there are units, how & 4: they are by position.
static __device__ __forceinline__ gt_i64 gt_weight(GtRow row, gt_i64 p, const gt_i64* units, int how) {
    return GT_WEIGHTED && how & 1 ? units[how & 4 ? p : row.number] * row.often : row.often;
}

// What the row at position p of `rows` adds to the channels of its node: calls add(channel, value). `sizes` i4 (O,):
// classes of each output; how as in gt_weight.
template <class Add>
static __device__ __forceinline__ void gt_channels(GtRow row, gt_i64 p, gt_i64 n, int outputs, const int* sizes,
                                                   const int* labels, const gt_i64* units, const gt_i64* values,
                                                   int how, Add add) {
    const gt_i64 weight = gt_weight(row, p, units, how);
    int channel = 0;
    if (GT_KIND == GT_COUNTS) {
        for (int o = 0; o < outputs; ++o) {
            add(channel + labels[(gt_i64)o * n + row.number], weight);
            channel += sizes[o];
        }
    } else {
        add(0, weight);
        for (int o = 0; o < outputs; ++o) add(1 + o, values[(gt_i64)o * n + row.number] * row.often);
        channel = 1 + outputs;
    }
    if (GT_WEIGHTED) add(channel, (gt_i64)1);
}
