// Stacks of their own for the threads of a block, and the switch between them.

#pragma once

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

// System V x86-64 is written by hand: swapcontext makes two system calls, which cost 60 times the switch itself.
#if !defined(__x86_64__) || defined(EMU_UCONTEXT)
#include <ucontext.h>
#endif

namespace emu {

enum : size_t { STACK = 64 << 10, GUARD = 16 << 10, MAX_THREADS = 1024 };

#if defined(__x86_64__) && !defined(EMU_UCONTEXT)

struct Context {
    void* sp;
};

extern "C" void emu_switch(Context* from, Context* to) __attribute__((visibility("hidden")));
asm(R"(
.text
.globl emu_switch
.hidden emu_switch
.type emu_switch, @function
emu_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq (%rsi), %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size emu_switch, .-emu_switch
)");

static inline void prepare(Context* context, char* stack, void (*entry)()) {
    void** top = (void**)(stack + STACK);
    *--top = nullptr;       // where entry would return to; keeps the stack aligned as after a call
    *--top = (void*)entry;  // taken by ret
    top -= 6;               // the registers popped before it
    memset(top, 0, 6 * sizeof(void*));
    context->sp = top;
}

#else

struct Context {
    ucontext_t ucontext;
};

static inline void emu_switch(Context* from, Context* to) { swapcontext(&from->ucontext, &to->ucontext); }

static inline void prepare(Context* context, char* stack, void (*entry)()) {
    getcontext(&context->ucontext);
    context->ucontext.uc_stack.ss_sp = stack;
    context->ucontext.uc_stack.ss_size = STACK;
    context->ucontext.uc_link = nullptr;
    makecontext(&context->ucontext, entry, 0);
}

#endif

// All stacks at once, pages without access below each; pages that no thread uses cost nothing. Kernels are compiled
// with -fstack-clash-protection, so that even a large frame meets the pages without access.
static inline char* map_stacks() {
    const size_t step = STACK + GUARD;
    char* base = (char*)mmap(nullptr, step * MAX_THREADS, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return nullptr;
    for (size_t i = 0; i < MAX_THREADS; ++i) mprotect(base + i * step, GUARD, PROT_NONE);
    return base + GUARD;
}

}  // namespace emu
