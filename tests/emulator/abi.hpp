// What the kernel text, the runtime and Python share. Python mirrors the structs of the second half in launch.py.

#pragma once

typedef unsigned long long emu_u64;

struct EmuDim {
    unsigned x, y, z;
};

// A call of a barrier or a warp operation in the text; its address is its identity.
struct EmuSite {
    const char* file;
    int line;
    const char* name;
};

// A parameter of a kernel: kind P(ointer) i(nteger) u(nsigned) f(loat) b(ool) s(truct); what a pointer points to alike.
struct EmuParam {
    char kind, pointee, is_const;
    unsigned char align;
    unsigned size;
};
struct EmuKernel {
    const char* name;
    void (*call)(void**);
    int n_params;
    const EmuParam* params;
    int max_threads;  // of __launch_bounds__, else 0
};

// A static __shared__ array; the table is written by compiler.py into the assembly text.
struct EmuShared {
    unsigned char* start;
    emu_u64 size;
    const char* name;
};

// ---- mirrored in launch.py ----

// Memory that a launch may touch: one array argument. Cells and state are shadows of the whole allocation, null where
// nothing is tracked: cells hold 64 bytes for every 2^shift bytes, state one byte for every byte (0 = never written).
struct EmuRange {
    unsigned char *start, *stop;
    unsigned char *cells, *state;  // shadow of `origin`
    unsigned char* origin;
    const char* name;
    int writable, itemsize, shift;
};

struct EmuCounters {
    emu_u64 blocks, threads, barriers, warp_operations, switches;
    emu_u64 shared_atomics, global_atomics;
    emu_u64 bytes_read, bytes_written;  // global, checked mode only; atomics not included
};

struct EmuReport {
    int failed;
    unsigned block[3], thread[3];
    int line;
    emu_u64 pc, other_pc;  // offsets into the image, 0 = none
    char file[200], message[600];
};

struct EmuLaunch {
    unsigned grid[3], block[3];
    unsigned shared_bytes, n_ranges;
    void** args;
    EmuRange* ranges;
    char* stacks;  // of emu_map_stacks, of any library of the process
    emu_u64 seed;
    unsigned epoch;  // in: the first free one; out: likewise
    int votes_order_memory;
    double seconds;  // CPU time allowed
    EmuCounters counters;
    EmuReport report;
};
