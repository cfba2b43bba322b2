// State of the running launch, errors, and the random numbers behind every choice.

#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include "abi.hpp"
#include "fiber.hpp"

extern "C" {
extern EmuCounters emu_counters __attribute__((visibility("hidden")));
extern unsigned char emu_dynamic[] __attribute__((visibility("hidden")));
extern unsigned char __start_emu_shared[] __attribute__((visibility("hidden")));
extern unsigned char __stop_emu_shared[] __attribute__((visibility("hidden")));
extern EmuShared __start_emu_table[] __attribute__((visibility("hidden")));
extern EmuShared __stop_emu_table[] __attribute__((visibility("hidden")));
extern const EmuKernel emu_kernels[] __attribute__((visibility("hidden")));
extern char __ehdr_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));
}

namespace emu {

enum { WARP = 32, MAX_WARPS = MAX_THREADS / WARP, DYNAMIC = 256 << 10 };
enum State : unsigned char { NEW, READY, AT_BARRIER, AT_WARP, EXITED };

struct Thread {
    Context context;
    char* stack;
    const EmuSite* site;  // where it waits
    emu_u64 value, result;
    unsigned number, mask;
    int operation, lane, width, vote;
    State state;
    EmuDim index;
    // A vector clock over the lanes of the warp: seen[j] is the time of lane j that is known to lie before this one's
    // now; seen[own lane] is the thread's own time, which moves on at warp operations.
    unsigned seen[WARP];
};

struct Warp {
    unsigned lanes, waiting, exited, at_barrier;  // bit masks over lanes
    unsigned mask;                                // of the last to come to a warp operation
    const EmuSite* site;
};

struct Runtime {
    EmuLaunch* launch;
    const EmuKernel* kernel;
    Thread threads[MAX_THREADS];
    Warp warps[MAX_WARPS];
    Thread* ready[MAX_THREADS];
    char* stacks[MAX_THREADS];  // free ones, the last used on top: it is still in the cache
    Thread* current;
    const EmuSite* barrier_site;
    EmuDim block_index, block_size, grid_size;
    Context main;
    sigjmp_buf abort;
    long owner;  // the thread of the process that launched
    emu_u64 random;
    unsigned n_threads, n_ready, n_exited, n_at_barrier, n_stacks, votes;
    unsigned launch_epoch, block_epoch, epoch;  // epoch grows at every barrier and block, through all launches
    unsigned patience, restless;                // accesses left before a switch, and the most there can be
};

static Runtime rt;

static inline emu_u64 next_random() {  // splitmix64
    emu_u64 z = rt.random += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}
static inline unsigned random_below(unsigned n) { return (unsigned)((next_random() >> 32) * n >> 32); }

static inline unsigned offset_of(const void* pc) { return (unsigned)((const char*)pc - __ehdr_start); }
static inline unsigned lane_of(const Thread* t) { return t->number % WARP; }
static inline Warp* warp_of(const Thread* t) { return &rt.warps[t->number / WARP]; }

static inline EmuDim index_of(unsigned number, EmuDim size) {
    return {number % size.x, number / size.x % size.y, number / size.x / size.y};
}

// The array argument that an address lies in or nearest to.
static void where_global(const unsigned char* p, unsigned size, char* text) {
    const EmuRange* best = nullptr;
    emu_u64 least = ~0ULL;
    for (unsigned i = 0; i < rt.launch->n_ranges; ++i) {
        const EmuRange* r = &rt.launch->ranges[i];
        const emu_u64 gap = p < r->start ? (emu_u64)(r->start - p) : p >= r->stop ? (emu_u64)(p - r->stop) : 0;
        if (gap < least) least = gap, best = r;
    }
    if (!best) {
        snprintf(text, 200, "%u bytes at %p; the kernel has no array arguments", size, (const void*)p);
        return;
    }
    const long long at = p - best->start;
    snprintf(text, 200, "%u bytes at byte %lld of %s (element %lld of %lld)", size, at, best->name,
             (at < 0 ? at - best->itemsize + 1 : at) / best->itemsize,
             (long long)(best->stop - best->start) / best->itemsize);
}

// ---- errors: the first one is written down, then the launch is left for good ----

static void describe(const char* file, int line, const void* pc, unsigned other_pc, const char* format,
                     va_list values) {
    EmuReport* r = &rt.launch->report;
    r->failed = 1;
    r->line = line;
    r->pc = pc ? offset_of(pc) - 1 : 0;  // -1: inside the call, not behind it
    r->other_pc = other_pc ? other_pc - 1 : 0;
    snprintf(r->file, sizeof r->file, "%s", file ? file : "");
    vsnprintf(r->message, sizeof r->message, format, values);
    const EmuDim t = rt.current ? rt.current->index : EmuDim{0, 0, 0};
    const unsigned block[3] = {rt.block_index.x, rt.block_index.y, rt.block_index.z}, thread[3] = {t.x, t.y, t.z};
    memcpy(r->block, block, sizeof block);
    memcpy(r->thread, thread, sizeof thread);
}

[[noreturn]] static void give_up() { siglongjmp(rt.abort, 1); }

[[noreturn]] __attribute__((format(printf, 2, 3))) static void fail_at(const EmuSite* site, const char* format, ...) {
    va_list values;
    va_start(values, format);
    describe(site ? site->file : nullptr, site ? site->line : 0, nullptr, 0, format, values);
    give_up();
}

[[noreturn]] __attribute__((format(printf, 3, 4))) static void fail_pc(const void* pc, unsigned other,
                                                                       const char* format, ...) {
    va_list values;
    va_start(values, format);
    describe(nullptr, 0, pc, other, format, values);
    give_up();
}

}  // namespace emu
