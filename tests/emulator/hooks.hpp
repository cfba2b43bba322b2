// What `g++ -fsanitize=thread,...` calls; libtsan and libubsan are not linked.

#pragma once

#include "shadow.hpp"

#define EMU_HOOK extern "C" __attribute__((visibility("hidden"))) void
#define EMU_ACCESS(name, size, kind) \
    EMU_HOOK name(void* p) { emu::access(p, size, emu::kind, __builtin_return_address(0)); }
#define EMU_ACCESSES(size) \
    EMU_ACCESS(__tsan_read##size, size, READ) \
    EMU_ACCESS(__tsan_write##size, size, WRITE) \
    EMU_ACCESS(__tsan_unaligned_read##size, size, READ) \
    EMU_ACCESS(__tsan_unaligned_write##size, size, WRITE)
EMU_ACCESSES(1)
EMU_ACCESSES(2)
EMU_ACCESSES(4)
EMU_ACCESSES(8)
EMU_ACCESSES(16)

// Whole structs; in pieces that the checks of single accesses know.
static void emu_range(const void* p, size_t size, emu::Kind kind, const void* pc) {
    for (size_t done = 0; done < size; done += 16)
        emu::access((const char*)p + done, (unsigned)(size - done < 16 ? size - done : 16), kind, pc);
}
EMU_HOOK __tsan_read_range(void* p, size_t size) { emu_range(p, size, emu::READ, __builtin_return_address(0)); }
EMU_HOOK __tsan_write_range(void* p, size_t size) { emu_range(p, size, emu::WRITE, __builtin_return_address(0)); }
EMU_HOOK __tsan_init() {}
EMU_HOOK __tsan_func_entry(void*) {}
EMU_HOOK __tsan_func_exit() {}

// The compiler makes calls of large copies and fills; compiler.py renames them, so that they are seen.
extern "C" __attribute__((visibility("hidden"))) void* emu_memcpy(void* to, const void* from, size_t size) {
    emu_range(from, size, emu::READ, __builtin_return_address(0));
    emu_range(to, size, emu::WRITE, __builtin_return_address(0));
    return memmove(to, from, size);
}
extern "C" __attribute__((visibility("hidden"))) void* emu_memmove(void* to, const void* from, size_t size) {
    emu_range(from, size, emu::READ, __builtin_return_address(0));
    emu_range(to, size, emu::WRITE, __builtin_return_address(0));
    return memmove(to, from, size);
}
extern "C" __attribute__((visibility("hidden"))) void* emu_memset(void* to, int value, size_t size) {
    emu_range(to, size, emu::WRITE, __builtin_return_address(0));
    return memset(to, value, size);
}

extern "C" void emu_atomic(const void* address, unsigned size, const void* pc) {
    if ((size_t)address % size) emu::fail_pc(pc, 0, "misaligned: an atomic on %u bytes at %p", size, address);
    const bool shared = (size_t)((const unsigned char*)address - __start_emu_shared) < emu::shared_size();
    *(shared ? &emu_counters.shared_atomics : &emu_counters.global_atomics) += 1;
    emu::access(address, size, emu::ATOMIC, pc);
}

// ---- undefined behaviour; the data of every kind begins with the place in the text ----

struct EmuPlace {
    const char* file;
    unsigned line, column;
};
struct EmuType {
    unsigned short kind, info;
    char name[1];
};
struct EmuMismatch {
    EmuPlace place;
    const EmuType* type;
    unsigned char log_align, check;
};

EMU_HOOK __ubsan_handle_type_mismatch_v1(EmuMismatch* data, void* p) {
    const EmuSite site = {data->place.file, (int)data->place.line, ""};
    emu::fail_at(&site, "misaligned: %p is no multiple of %u, as %s must be", p, 1u << data->log_align,
                 data->type->name);
}
#define EMU_UNDEFINED(name, text, ...) \
    EMU_HOOK __ubsan_handle_##name(EmuPlace* place __VA_OPT__(, ) __VA_ARGS__) { \
        const EmuSite site = {place->file, (int)place->line, ""}; \
        emu::fail_at(&site, "undefined: %s", text); \
    }
EMU_UNDEFINED(out_of_bounds, "out of bounds: an index beyond its array", void*)
EMU_UNDEFINED(shift_out_of_bounds, "a shift by a negative number or by the width of the type or more", void*, void*)
EMU_UNDEFINED(add_overflow, "overflow of a signed addition", void*, void*)
EMU_UNDEFINED(sub_overflow, "overflow of a signed subtraction", void*, void*)
EMU_UNDEFINED(mul_overflow, "overflow of a signed multiplication", void*, void*)
EMU_UNDEFINED(negate_overflow, "overflow of a signed negation", void*)
EMU_UNDEFINED(divrem_overflow, "a division by zero, or the least number by -1", void*, void*)
EMU_UNDEFINED(float_cast_overflow, "a floating-point value outside the integer type it is cast to", void*)
EMU_UNDEFINED(builtin_unreachable, "code marked as unreachable")
EMU_UNDEFINED(missing_return, "the end of a function that must return a value")
