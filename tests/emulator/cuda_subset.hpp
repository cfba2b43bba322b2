// The subset of CUDA C++ that the kernels may use, for a host compiler. compiler.py puts this before the kernel text.
//
// What is absent here is not in the subset: no float atomics (the order of additions would matter), no __activemask
// (its value is a matter of luck), no transcendental functions (their last bits differ between devices), no printf.

#pragma once

#include <math.h>
#include <stddef.h>

#include <type_traits>
#include <utility>

#include "abi.hpp"

#pragma GCC poison exp exp2 log log2 log10 pow sin cos tan expf exp2f logf log2f log10f powf sinf cosf tanf fma fmaf

#define __CUDACC__ 1
#define __global__ __attribute__((noinline, used))
#define __device__
#define __host__
#define __constant__ static const
// One block runs at a time, so a block's memory may be static. `used`: the runtime fills it behind the compiler's back.
#define __shared__ static __attribute__((section("emu_shared"), used))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
// Dropped: other threads do write behind such a pointer, across a barrier, and g++ would not read again.
#define __restrict__

// ---- what runtime.cpp gives ----

extern "C" {
// A thread never changes its place, so a function may ask once: hence `const`.
EmuDim emu_thread_idx() __attribute__((const));
EmuDim emu_block_idx() __attribute__((const));
EmuDim emu_block_dim() __attribute__((const));
EmuDim emu_grid_dim() __attribute__((const));
int emu_barrier(const EmuSite* site, int vote, int predicate);
emu_u64 emu_warp(const EmuSite* site, int operation, unsigned mask, emu_u64 value, int lane, int width);
void emu_atomic(const void* address, unsigned size, const void* pc);  // checked mode: may let other threads run first
extern EmuCounters emu_counters __attribute__((visibility("hidden")));
extern unsigned char emu_dynamic[] __attribute__((visibility("hidden")));
extern unsigned char __start_emu_shared[] __attribute__((visibility("hidden")));
extern unsigned char __stop_emu_shared[] __attribute__((visibility("hidden")));
}

#define threadIdx (emu_thread_idx())
#define blockIdx (emu_block_idx())
#define blockDim (emu_block_dim())
#define gridDim (emu_grid_dim())
enum { warpSize = 32 };

#define EMU_SITE(name) \
    ({ \
        static const EmuSite emu_site = {__FILE__, __LINE__, name}; \
        &emu_site; \
    })

// ---- vector types ----

#define EMU_VECTOR2(name, T, bytes) \
    struct __align__(bytes) name { \
        T x, y; \
    }; \
    static inline name make_##name(T x, T y) { return {x, y}; }
#define EMU_VECTOR4(name, T, bytes) \
    struct __align__(bytes) name { \
        T x, y, z, w; \
    }; \
    static inline name make_##name(T x, T y, T z, T w) { return {x, y, z, w}; }
#define EMU_VECTOR3(name, T) \
    struct name { \
        T x, y, z; \
    }; \
    static inline name make_##name(T x, T y, T z) { return {x, y, z}; }
EMU_VECTOR2(char2, signed char, 2)
EMU_VECTOR2(uchar2, unsigned char, 2)
EMU_VECTOR2(short2, short, 4)
EMU_VECTOR2(ushort2, unsigned short, 4)
EMU_VECTOR2(int2, int, 8)
EMU_VECTOR2(uint2, unsigned, 8)
EMU_VECTOR2(float2, float, 8)
EMU_VECTOR2(longlong2, long long, 16)
EMU_VECTOR2(ulonglong2, unsigned long long, 16)
EMU_VECTOR2(double2, double, 16)
EMU_VECTOR3(int3, int)
EMU_VECTOR3(uint3, unsigned)
EMU_VECTOR4(char4, signed char, 4)
EMU_VECTOR4(uchar4, unsigned char, 4)
EMU_VECTOR4(short4, short, 8)
EMU_VECTOR4(ushort4, unsigned short, 8)
EMU_VECTOR4(int4, int, 16)
EMU_VECTOR4(uint4, unsigned, 16)
EMU_VECTOR4(float4, float, 16)
typedef EmuDim dim3;

// ---- arithmetic ----

#define EMU_MINMAX(T) \
    static inline T min(T a, T b) { return b < a ? b : a; } \
    static inline T max(T a, T b) { return a < b ? b : a; }
EMU_MINMAX(int)
EMU_MINMAX(unsigned)
EMU_MINMAX(long)
EMU_MINMAX(unsigned long)
EMU_MINMAX(long long)
EMU_MINMAX(unsigned long long)

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(emu_u64 x) { return __builtin_popcountll(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((emu_u64)x) : 64; }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((emu_u64)a * b >> 32); }
static inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static inline emu_u64 __umul64hi(emu_u64 a, emu_u64 b) { return (emu_u64)((unsigned __int128)a * b >> 64); }
static inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }

template <class To, class From>
static inline To emu_bits(From x) {
    static_assert(sizeof(To) == sizeof(From), "sizes differ");
    To bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline long long __double_as_longlong(double x) { return emu_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return emu_bits<double>(x); }
static inline int __float_as_int(float x) { return emu_bits<int>(x); }
static inline float __int_as_float(int x) { return emu_bits<float>(x); }
static inline unsigned __float_as_uint(float x) { return emu_bits<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return emu_bits<float>(x); }

template <class T>
static inline T __ldg(const T* p) {
    return *p;
}

// Orders nothing here: blocks never wait for each other, and inside a block barriers do it.
static inline void __threadfence() {}
static inline void __threadfence_block() {}

// ---- barriers and warps; operation numbers as in runtime.cpp ----

#define __syncthreads() ((void)emu_barrier(EMU_SITE("__syncthreads"), 0, 0))
#define __syncthreads_count(...) emu_barrier(EMU_SITE("__syncthreads_count"), 1, (__VA_ARGS__) != 0)
#define __syncthreads_and(...) emu_barrier(EMU_SITE("__syncthreads_and"), 2, (__VA_ARGS__) != 0)
#define __syncthreads_or(...) emu_barrier(EMU_SITE("__syncthreads_or"), 3, (__VA_ARGS__) != 0)

template <class T>
static inline T emu_shuffle(const EmuSite* site, int operation, unsigned mask, T value, int lane, int width = 32) {
    static_assert(std::is_arithmetic<T>::value && (sizeof(T) == 4 || sizeof(T) == 8), "a shuffle takes 4 or 8 bytes");
    emu_u64 bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    bits = emu_warp(site, operation, mask, bits, lane, width);
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
static inline void emu_syncwarp(const EmuSite* site, unsigned mask = 0xFFFFFFFFu) { emu_warp(site, 0, mask, 0, 0, 32); }
static inline emu_u64 emu_vote(const EmuSite* site, int operation, unsigned mask, int predicate) {
    return emu_warp(site, operation, mask, predicate != 0, 0, 32);
}
#define __syncwarp(...) emu_syncwarp(EMU_SITE("__syncwarp") __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_sync(...) emu_shuffle(EMU_SITE("__shfl_sync"), 1, __VA_ARGS__)
#define __shfl_up_sync(...) emu_shuffle(EMU_SITE("__shfl_up_sync"), 2, __VA_ARGS__)
#define __shfl_down_sync(...) emu_shuffle(EMU_SITE("__shfl_down_sync"), 3, __VA_ARGS__)
#define __shfl_xor_sync(...) emu_shuffle(EMU_SITE("__shfl_xor_sync"), 4, __VA_ARGS__)
#define __ballot_sync(...) ((unsigned)emu_vote(EMU_SITE("__ballot_sync"), 5, __VA_ARGS__))
#define __any_sync(...) ((int)emu_vote(EMU_SITE("__any_sync"), 6, __VA_ARGS__))
#define __all_sync(...) ((int)emu_vote(EMU_SITE("__all_sync"), 7, __VA_ARGS__))

// ---- atomics ----

enum { EMU_ADD, EMU_MIN, EMU_MAX, EMU_AND, EMU_OR, EMU_XOR, EMU_EXCH, EMU_CAS };

template <int operation, class T>
static inline T emu_next(T old, T value, T compare) {
    typedef typename std::make_unsigned<T>::type U;
    if (operation == EMU_ADD) return (T)((U)old + (U)value);
    if (operation == EMU_MIN) return value < old ? value : old;
    if (operation == EMU_MAX) return old < value ? value : old;
    if (operation == EMU_AND) return old & value;
    if (operation == EMU_OR) return old | value;
    if (operation == EMU_XOR) return old ^ value;
    return operation == EMU_EXCH || old == compare ? value : old;
}

#ifdef EMU_CHECKED
template <int operation, class T>
__attribute__((noinline, no_sanitize("thread", "undefined"))) static T emu_atomic_at(T* p, T value, T compare = 0) {
    emu_atomic(p, sizeof(T), __builtin_return_address(0));
#else
template <int operation, class T>
static inline T emu_atomic_at(T* p, T value, T compare = 0) {
    const bool shared =
        (size_t)((unsigned char*)p - __start_emu_shared) < (size_t)(__stop_emu_shared - __start_emu_shared);
    *(&emu_counters.shared_atomics + !shared) += 1;
#endif
    const T old = *p;
    *p = emu_next<operation>(old, value, compare);
    return old;
}

#define EMU_ATOMIC(name, operation, T) \
    static inline T name(T* p, T value) { return emu_atomic_at<operation, T>(p, value); }
#define EMU_ATOMICS(T) \
    EMU_ATOMIC(atomicAdd, EMU_ADD, T) \
    EMU_ATOMIC(atomicMin, EMU_MIN, T) \
    EMU_ATOMIC(atomicMax, EMU_MAX, T) \
    EMU_ATOMIC(atomicAnd, EMU_AND, T) \
    EMU_ATOMIC(atomicOr, EMU_OR, T) \
    EMU_ATOMIC(atomicXor, EMU_XOR, T) \
    EMU_ATOMIC(atomicExch, EMU_EXCH, T) \
    static inline T atomicCAS(T* p, T compare, T value) { return emu_atomic_at<EMU_CAS, T>(p, value, compare); }
EMU_ATOMICS(int)
EMU_ATOMICS(unsigned)
EMU_ATOMICS(unsigned long long)
EMU_ATOMIC(atomicMin, EMU_MIN, long long)
EMU_ATOMIC(atomicMax, EMU_MAX, long long)
static inline int atomicSub(int* p, int value) {
    return (int)emu_atomic_at<EMU_ADD, unsigned>((unsigned*)p, -(unsigned)value);
}
static inline unsigned atomicSub(unsigned* p, unsigned value) { return emu_atomic_at<EMU_ADD, unsigned>(p, -value); }
float atomicAdd(float*, float) = delete;     // the sum would depend on the order of the threads
double atomicAdd(double*, double) = delete;  // likewise

// ---- the table of kernels, filled in behind the kernel text ----

template <class T>
constexpr char emu_kind() {
    if (std::is_same<T, bool>::value) return 'b';
    if (std::is_floating_point<T>::value) return 'f';
    if (std::is_integral<T>::value) return std::is_signed<T>::value ? 'i' : 'u';
    return std::is_void<T>::value ? 'v' : 's';
}
template <class T>
constexpr unsigned emu_size() {
    if constexpr (std::is_void<T>::value)
        return 1;
    else
        return sizeof(T);
}
template <class T>
constexpr unsigned char emu_align() {
    if constexpr (std::is_void<T>::value)
        return 1;
    else
        return alignof(T);
}

template <class P>
constexpr EmuParam emu_param() {
    typedef typename std::remove_pointer<P>::type To;
    typedef typename std::remove_cv<To>::type Plain;
    static_assert(!std::is_reference<P>::value, "a kernel cannot take a reference");
    if (std::is_pointer<P>::value)
        return {'P', emu_kind<Plain>(), std::is_const<To>::value, emu_align<Plain>(), emu_size<Plain>()};
    return {emu_kind<Plain>(), 0, 0, emu_align<Plain>(), emu_size<Plain>()};
}

template <auto function>
struct EmuCaller;
template <class... P, void (*function)(P...)>
struct EmuCaller<function> {
    // one spare: an array cannot be empty
    static constexpr EmuParam params[sizeof...(P) + 1] = {emu_param<P>()..., {}};

    template <size_t... i>
    __attribute__((no_sanitize("thread", "undefined"))) static void spread(void** args,
                                                                           std::integer_sequence<size_t, i...>) {
        function(*(typename std::remove_cv<P>::type*)args[i]...);
    }
    __attribute__((no_sanitize("thread", "undefined"))) static void call(void** args) {
        (void)args;
        spread(args, std::make_integer_sequence<size_t, sizeof...(P)>());
    }
    static constexpr EmuKernel entry(const char* name, int max_threads) {
        return {name, call, (int)sizeof...(P), params, max_threads};
    }
};
