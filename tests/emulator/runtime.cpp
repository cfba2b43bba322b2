// Runs one launch after another; linked into the library of every kernel text. -DEMU_CHECKED adds the checks.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "scheduler.hpp"
#ifdef EMU_CHECKED
#include "hooks.hpp"
#endif

EmuCounters emu_counters;

// Dynamic shared memory lies in the section of the static arrays, so that one comparison finds both; no bytes in the
// file. The empty entry makes the table exist where no kernel has static arrays.
asm(R"(
.pushsection emu_shared,"aw",@nobits
.globl emu_dynamic
.hidden emu_dynamic
.balign 1024
emu_dynamic: .zero 262144 + 64
.popsection
.pushsection emu_table,"aw",@progbits
.balign 8
.quad 0, 0, 0
.popsection
)");

namespace emu {

enum : unsigned char { CANARY = 0xC5 };
enum { ZONE = 64 };

static EmuShared arrays[256];  // those that the running kernel may use, the dynamic one included
static unsigned n_arrays;

// The table names arrays "kernel:array", and ":array" in functions that any kernel may call.
static void list_arrays() {
    const size_t length = strlen(rt.kernel->name);
    n_arrays = 0;
    for (const EmuShared* s = __start_emu_table; s < __stop_emu_table && n_arrays < 255; ++s)
        if (s->size && (s->name[0] == ':' || (!strncmp(s->name, rt.kernel->name, length) && s->name[length] == ':')))
            arrays[n_arrays++] = *s;
    arrays[n_arrays++] = {emu_dynamic, rt.launch->shared_bytes, "dynamic"};
}

static void fill_garbage(unsigned char* p, emu_u64 size) {
    emu_u64 x = next_random() | 1, done = 0;
    for (; done + 8 <= size; done += 8) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;  // xorshift64: one word a nanosecond
        memcpy(p + done, &x, 8);
    }
    memcpy(p + done, &x, size - done);
}

static void spoil_shared() {
    for (unsigned i = 0; i < n_arrays; ++i) {
        fill_garbage(arrays[i].start, arrays[i].size);
        memset(arrays[i].start + arrays[i].size, CANARY, ZONE);
#ifdef EMU_CHECKED
        memset(shared_state + (arrays[i].start - __start_emu_shared), UNWRITTEN, arrays[i].size);
#endif
    }
}

// Plain mode sees a write behind an array only here.
static void check_zones() {
    for (unsigned i = 0; i < n_arrays; ++i)
        for (unsigned j = 0; j < ZONE; ++j)
            if (arrays[i].start[arrays[i].size + j] != CANARY)
                fail_at(nullptr,
                        "out of bounds: a thread of this block wrote byte %llu of the shared array %s, which has %llu",
                        arrays[i].size + j, arrays[i].name, arrays[i].size);
}

// ---- signals: a wild access, a division by zero, too long a run ----

static const void* pc_of(void* context) {
#if defined(__x86_64__)
    return (void*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (void*)((ucontext_t*)context)->uc_mcontext.pc;
#else
    return nullptr;
#endif
}

static void on_signal(int number, siginfo_t* info, void* context) {
    if (syscall(SYS_gettid) != rt.owner) {  // not ours: die of it as without us
        signal(number, SIG_DFL);
        return;
    }
    const char* pc = (const char*)pc_of(context);
    if (pc) ++pc;  // describe() looks one byte before a return address
    if (pc < __ehdr_start || pc > _end) pc = nullptr;
    if (number == SIGVTALRM)
        fail_pc(pc, 0, "too long: the launch ran for more than %g s; does a thread wait for another?",
                rt.launch->seconds);
    if (number == SIGFPE) fail_pc(pc, 0, "undefined: a division by zero, or the least number by -1");
    char text[200];
    where_global((const unsigned char*)info->si_addr, 1, text);
    for (unsigned i = 0; rt.current && i < MAX_THREADS; ++i)
        if ((size_t)(rt.current->stack - (char*)info->si_addr - 1) < GUARD)
            snprintf(text, sizeof text, "more than %zu bytes of local variables", (size_t)STACK);
    fail_pc(pc, 0, "out of bounds: touches %s", text);
}

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGVTALRM};

struct Guards {
    struct sigaction before[4];
    stack_t stack_before;
    timer_t timer;
    bool timed;

    void raise_them() {
        static char alternate[64 << 10];  // the stack in use may be the one that overflowed
        stack_t stack = {};
        stack.ss_sp = alternate, stack.ss_size = sizeof alternate;
        sigaltstack(&stack, &stack_before);
        struct sigaction action = {};
        action.sa_sigaction = on_signal;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        for (int i = 0; i < 4; ++i) sigaction(SIGNALS[i], &action, &before[i]);
        sigevent event = {};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = SIGVTALRM;
        event._sigev_un._tid = (pid_t)rt.owner;
        timed = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0;
        itimerspec when = {};
        when.it_value.tv_sec = (time_t)rt.launch->seconds;
        when.it_value.tv_nsec = (long)((rt.launch->seconds - (double)when.it_value.tv_sec) * 1e9);
        if (timed) timer_settime(timer, 0, &when, nullptr);
    }
    void lower() {
        if (timed) timer_delete(timer);
        for (int i = 0; i < 4; ++i) sigaction(SIGNALS[i], &before[i], nullptr);
        sigaltstack(&stack_before, nullptr);
    }
};

// ---- launches ----

static void run_blocks(const unsigned* order, unsigned n_blocks) {
    const unsigned* block = rt.launch->block;
    for (unsigned i = 0; i < n_blocks; ++i) {
        rt.block_index = index_of(order[i], rt.grid_size);
        begin_block(block[0] * block[1] * block[2]);
        spoil_shared();
        run_block();
        check_zones();
        emu_counters.blocks++;
        emu_counters.threads += rt.n_threads;
    }
}

static unsigned* random_order(unsigned n) {
    unsigned* order = (unsigned*)malloc(n * sizeof *order);
    for (unsigned i = 0; order && i < n; ++i) {
        const unsigned j = random_below(i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    return order;
}

static bool begin(const EmuKernel* kernel, EmuLaunch* launch) {
    rt.owner = syscall(SYS_gettid);
    rt.kernel = kernel, rt.launch = launch, rt.random = launch->seed, rt.current = nullptr;
    rt.grid_size = {launch->grid[0], launch->grid[1], launch->grid[2]};
    rt.block_size = {launch->block[0], launch->block[1], launch->block[2]};
    rt.launch_epoch = rt.epoch = launch->epoch;
    rt.n_stacks = MAX_THREADS;
    for (size_t i = 0; i < MAX_THREADS; ++i) rt.stacks[i] = launch->stacks + (MAX_THREADS - 1 - i) * (STACK + GUARD);
    emu_counters = {};
#ifdef EMU_CHECKED
    map_shared_shadow();
    if (shared_state == MAP_FAILED || (void*)shared_cells == MAP_FAILED) return false;
    memset(shared_state, OUTSIDE, shared_size());
    shared_shift = small_in_shared ? 0 : 2;
    memset(nearest_range, 0, sizeof nearest_range);
#endif
    list_arrays();
    return true;
}

}  // namespace emu

// 0 = done or reported; 1 = no memory for the launch itself.
extern "C" __attribute__((visibility("default"))) int emu_launch(int number, EmuLaunch* launch) {
    using namespace emu;
    if (!begin(&emu_kernels[number], launch)) return 1;
    const unsigned n_blocks = launch->grid[0] * launch->grid[1] * launch->grid[2];
    unsigned* volatile order = random_order(n_blocks);
    if (!order) return 1;
    static Guards guards;
    guards.raise_them();
    if (!sigsetjmp(rt.abort, 1)) run_blocks(order, n_blocks);
    guards.lower();
    rt.current = nullptr;
    free(order);
    launch->epoch = rt.epoch + 1;
    launch->counters = emu_counters;
    return 0;
}

extern "C" __attribute__((visibility("default"))) char* emu_map_stacks() { return emu::map_stacks(); }
extern "C" __attribute__((visibility("default"))) const EmuKernel* emu_list() { return emu_kernels; }
extern "C" __attribute__((visibility("default"))) const EmuShared* emu_arrays(int* n) {
    *n = (int)(__stop_emu_table - __start_emu_table);
    return __start_emu_table;
}
