// Checked mode: every access against its allocation, against memory never written, and against races.
//
// A race is two accesses to a byte, not both reads and not both atomics, that nothing orders. Inside a block barriers
// order all threads and __syncwarp orders its lanes; nothing orders two blocks of a launch; launches are ordered. Each
// byte, or 4-byte word where no access is smaller, has a cell of four records: the first and the latest unordered
// writer (or atomic), and likewise readers.

#pragma once

#include "scheduler.hpp"

namespace emu {

enum Kind : unsigned char { READ = 0, WRITE = 1, ATOMIC = 2 };
enum {
    OUTSIDE = 0,
    UNWRITTEN = 1,
    WRITTEN = 2
};  // of a byte of shared memory; global bytes: 0 = never written, else 1

struct Record {
    unsigned epoch, time, pc;
    unsigned short thread;
    unsigned char bytes, kind;
};
struct Cell {
    Record writers[2], readers[2];
};
static_assert(sizeof(Cell) == 64, "abi.hpp and memory.py say 64");

static unsigned char* shared_state;  // one byte for every byte of the shared section
static Cell* shared_cells;
static int shared_shift;
static bool small_in_shared;               // seen so far; the next launch then has a cell for every byte
static unsigned short nearest_range[256];  // by call site: a site keeps to its array

static const char* const VERBS[] = {"reads", "writes", "updates"};

static bool ordered(const Record& r, bool shared) {
    if (r.epoch < rt.block_epoch) return shared || r.epoch < rt.launch_epoch;  // else: another block of this launch
    const Thread* me = rt.current;
    if (r.epoch < rt.epoch || r.thread == me->number) return true;
    return r.thread / WARP == me->number / WARP && me->seen[r.thread % WARP] >= r.time;
}

[[noreturn]] static void fail_race(const Record& r, Kind kind, const void* pc, const char* where) {
    static const char* const PAST[] = {"read", "write", "atomic update"};
    const bool other_block = r.epoch < rt.block_epoch;
    const EmuDim t = index_of(r.thread, rt.block_size);
    fail_pc(pc, r.pc, "race: %s %s, and nothing orders it after the %s by thread (%u, %u, %u) of %s block", VERBS[kind],
            where, PAST[r.kind], t.x, t.y, t.z, other_block ? "another" : "this");
}

static void keep(Record* slots, const Record& now, bool shared) {
    for (int i = 0; i < 2; ++i) {
        const bool past = slots[i].epoch < rt.epoch && ordered(slots[i], shared);  // before whatever may come
        // Whoever conflicts with it conflicts with `now` too; but an atomic does not stand for a plain write.
        const bool covered = !(slots[i].bytes & ~now.bytes) && (now.kind != ATOMIC || slots[i].kind == ATOMIC) &&
                             ordered(slots[i], shared);
        if (past || covered) {
            slots[i] = now;
            return;
        }
    }
    slots[1] = now;  // the first stays: whoever conflicts with neither is the first one itself
}

typedef void (*Where)(const unsigned char*, unsigned, char*);  // describes an address, for errors

static void check_cell(Cell* cell, unsigned char bytes, Kind kind, const void* pc, const unsigned char* address,
                       unsigned size, Where where) {
    const bool shared = where == nullptr;
    char text[200] = "shared memory";
    for (int i = 0; i < 2; ++i) {
        const Record &w = cell->writers[i], &r = cell->readers[i];
        const Record* against = nullptr;
        if ((w.bytes & bytes) && !(kind == ATOMIC && w.kind == ATOMIC) && !ordered(w, shared))
            against = &w;
        else if (kind != READ && (r.bytes & bytes) && !ordered(r, shared))
            against = &r;
        if (!against) continue;
        if (where) where(address, size, text);
        fail_race(*against, kind, pc, text);
    }
    const Thread* me = rt.current;
    const Record now = {rt.epoch, me->seen[lane_of(me)], offset_of(pc), (unsigned short)me->number, bytes, kind};
    keep(kind == READ ? cell->readers : cell->writers, now, shared);
}

static void check_cells(Cell* cells, size_t offset, int shift, Kind kind, const void* pc, const unsigned char* address,
                        unsigned size, Where where) {
    const size_t stop = offset + size, unit = (size_t)1 << shift;
    for (size_t i = offset >> shift, start = i << shift; start < stop; ++i, start += unit) {
        const size_t low = start < offset ? offset - start : 0, high = stop - start < unit ? stop - start : unit;
        check_cell(cells + i, (unsigned char)((1u << high) - (1u << low)), kind, pc, address, size, where);
    }
}

// ---- shared memory ----

static size_t shared_size() { return (size_t)(__stop_emu_shared - __start_emu_shared); }

[[noreturn]] static void fail_shared(const unsigned char* p, unsigned size, Kind kind, const void* pc) {
    const EmuShared* nearest = nullptr;
    for (const EmuShared* s = __start_emu_table; s < __stop_emu_table; ++s)
        if (s->size && s->start <= p && (!nearest || s->start > nearest->start)) nearest = s;
    if (p < emu_dynamic + DYNAMIC + 64 && p >= emu_dynamic)
        fail_pc(pc, 0, "out of bounds: %s %u bytes at byte %td of the dynamic shared memory, which has %u", VERBS[kind],
                size, p - emu_dynamic, rt.launch->shared_bytes);
    if (!nearest) fail_pc(pc, 0, "out of bounds: %s %u bytes before all shared arrays", VERBS[kind], size);
    fail_pc(pc, 0, "out of bounds: %s %u bytes at byte %td of the shared array %s, which has %llu", VERBS[kind], size,
            p - nearest->start, nearest->name, nearest->size);
}

static void shared_access(const unsigned char* p, unsigned size, Kind kind, const void* pc) {
    const size_t offset = (size_t)(p - __start_emu_shared);
    unsigned char* state = shared_state + offset;
    unsigned unwritten = 0;
    for (unsigned i = 0; i < size; ++i) {
        if (state[i] == OUTSIDE) fail_shared(p, size, kind, pc);
        unwritten += state[i] == UNWRITTEN;
        if (kind == WRITE) state[i] = WRITTEN;
    }
    // A vector may reach into padding, so of 16 bytes one is enough.
    if (unwritten && kind != WRITE && (size <= 8 || unwritten == size))
        fail_pc(pc, 0, "uninitialised: %s %u bytes of shared memory, of which this block wrote %u", VERBS[kind], size,
                size - unwritten);
    small_in_shared |= size < 4;
    check_cells(shared_cells, offset, shared_shift, kind, pc, p, size, nullptr);
}

// ---- global memory ----

static bool holds(const EmuRange* r, const unsigned char* p, unsigned size, bool write) {
    return p >= r->start && p + size <= r->stop && (!write || r->writable);
}

static EmuRange* range_of(const unsigned char* p, unsigned size, Kind kind, const void* pc) {
    unsigned short& guess = nearest_range[((size_t)pc >> 1) & 255];
    EmuRange* ranges = rt.launch->ranges;
    const bool write = kind != READ;
    if (guess < rt.launch->n_ranges && holds(ranges + guess, p, size, write)) return ranges + guess;
    for (unsigned i = 0; i < rt.launch->n_ranges; ++i)
        if (holds(ranges + i, p, size, write)) return ranges + (guess = (unsigned short)i);
    char text[200];
    where_global(p, size, text);
    for (unsigned i = 0; write && i < rt.launch->n_ranges; ++i)
        if (holds(ranges + i, p, size, false))
            fail_pc(pc, 0, "%s %s, which the kernel declares const", VERBS[kind], text);
    fail_pc(pc, 0, "out of bounds: %s %s", VERBS[kind], text);
}

static void global_access(const unsigned char* p, unsigned size, Kind kind, const void* pc) {
    if ((const char*)p >= __ehdr_start && (const char*)p < _end) {  // a constant of the kernel text
        if (kind != READ)
            fail_pc(pc, 0, "%s a static variable; only arguments and shared memory can be written", VERBS[kind]);
        return;
    }
    EmuRange* range = range_of(p, size, kind, pc);
    if (kind == READ) emu_counters.bytes_read += size;
    if (kind == WRITE) emu_counters.bytes_written += size;
    const size_t offset = (size_t)(p - range->origin);
    if (range->state) {
        unsigned char* state = range->state + offset;
        unsigned unwritten = 0;
        for (unsigned i = 0; i < size; ++i) {
            unwritten += !state[i];
            if (kind == WRITE) state[i] = 1;
        }
        if (unwritten && kind != WRITE && (size <= 8 || unwritten == size)) {
            char text[200];
            where_global(p, size, text);
            fail_pc(pc, 0, "uninitialised: %s %s, of which %u bytes were never written", VERBS[kind], text, unwritten);
        }
    }
    if (range->cells) check_cells((Cell*)range->cells, offset, range->shift, kind, pc, p, size, where_global);
}

static void access(const void* address, unsigned size, Kind kind, const void* pc) {
    if (!rt.current) return;
    if (--rt.patience == 0) take_turns();
    const unsigned char* p = (const unsigned char*)address;
    if ((size_t)((const char*)p - rt.current->stack) < STACK) {
        if (kind == ATOMIC) fail_pc(pc, 0, "an atomic on a local variable; it must be on shared or global memory");
    } else if ((size_t)(p - __start_emu_shared) < shared_size()) {
        shared_access(p, size, kind, pc);
    } else {
        global_access(p, size, kind, pc);
    }
}

static void map_shared_shadow() {
    if (shared_cells) return;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    shared_state = (unsigned char*)mmap(nullptr, shared_size(), PROT_READ | PROT_WRITE, flags, -1, 0);
    shared_cells = (Cell*)mmap(nullptr, shared_size() * sizeof(Cell), PROT_READ | PROT_WRITE, flags, -1, 0);
}

}  // namespace emu
