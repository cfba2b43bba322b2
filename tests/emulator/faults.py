"""Faults to put into the kernels of samples/kernels.cu, one edit each, and how each mode tells."""

from __future__ import annotations

from dataclasses import dataclass

RESULT = "another result"
EMPTY = "EMPTY"  # instead of an edit: xp.zeros gives garbage


@dataclass(frozen=True)
class Fault:
    """Replace `old` by `new` in the kernel that `case` runs.

    `checked` and `plain` are patterns of the error's message, or `RESULT`; None where the mode cannot tell. `line` is
    text of the line that the error must name, "" = that of the edit; alternatives stand between bars.
    """

    case: str
    old: str
    new: str
    checked: str
    plain: str | None
    line: str = ""


# ---- barriers and warps ----

_WAITING = {
    "barrier removed, sum": Fault(
        "block_sum",
        "__syncthreads();  // parts are written",
        ";",
        "race: (reads|writes) shared memory|uninitialised",
        RESULT,
        "part[",
    ),
    "barrier removed, counts": Fault(
        "histogram",
        "__syncthreads();  // cells are counted",
        ";",
        "race: (reads|updates) shared memory",
        RESULT,
        "cells[",
    ),
    "warp barrier removed": Fault(
        "swap_pairs", "__syncwarp();", "", "race: (reads|writes) shared|uninitialised", RESULT, "held["
    ),
    "shuffle instead of a warp barrier": Fault(
        "swap_pairs", "__syncwarp();", "__any_sync(ALL, 1);", "race: (reads|writes) shared memory", None, "held["
    ),
    "barrier in a branch": Fault(
        "histogram",
        "__syncthreads();  // cells are zero",
        "if (threadIdx.x < 32) __syncthreads();",
        "another barrier|ended|race|uninitialised",
        "another barrier|ended",
        "__syncthreads();|cells[",
    ),
    "two barriers for one": Fault(
        "histogram",
        "__syncthreads();  // cells are zero",
        "if (threadIdx.x < 32) { __syncthreads(); } else { __syncthreads(); }",
        "wait at another barrier",
        "wait at another barrier",
    ),
    "thread ends before a barrier": Fault(
        "histogram",
        "    __syncthreads();  // cells are counted",
        "    if (threadIdx.x >= n_codes) return; __syncthreads();",
        "ended",
        "ended",
    ),
    "mask of half a warp": Fault(
        "block_sum",
        "sum += __shfl_down_sync(ALL,",
        "sum += __shfl_down_sync(0xFFFFu,",
        "mask 0x0000ffff does not name|reads lane",
        "mask 0x0000ffff does not name|reads lane",
    ),
    "lane reads one that is not named": Fault(
        "best",
        "const int there = __shfl_down_sync(ALL, place, by);",
        "int there = 0; if (threadIdx.x < 8) there = __shfl_down_sync(0xFFu, place, by);",
        "lane",
        "lane",
        "__shfl_down_sync",
    ),
    "masks differ": Fault(
        "best",
        "__shfl_down_sync(ALL, top, by)",
        "__shfl_down_sync(threadIdx.x < 16 ? ALL : 0xFFFF0000u, top, by)",
        "gives mask|waits for this lane",
        "gives mask|waits for this lane",
    ),
    "shuffle in a branch": Fault(
        "block_scan",
        "const int other = __shfl_up_sync(ALL, sum, by);",
        "int other = 0; if (lane >= by) other = __shfl_up_sync(ALL, sum, by);",
        "lane",
        "lane",
        "sum, by);|__syncthreads();",
    ),
    "lane of the mask has ended": Fault(
        "block_scan",
        "int sum = x[threadIdx.x];",
        "int sum = x[threadIdx.x]; if (threadIdx.x == 40) return;",
        "ended",
        "ended",
        "sum, by);|__syncthreads();",
    ),
}

# ---- values ----

_VALUES = {
    "shared memory not cleared": Fault(
        "histogram",
        "cells[i] = 0;",
        ";",
        "uninitialised: updates 4 bytes of shared memory",
        RESULT,
        "atomicAdd(&cells",
    ),
    "part of shared memory not cleared": Fault(
        "histogram",
        "int i = threadIdx.x; i < n_codes; i += blockDim.x) cells[i] = 0",
        "int i = threadIdx.x + 1; i < n_codes; i += blockDim.x) cells[i] = 0",
        "uninitialised: (updates|reads) 4 bytes of shared memory",
        RESULT,
        "cells[",
    ),
    "result never cleared": Fault("histogram", EMPTY, "", "uninitialised: updates .*`out`", RESULT, "atomicAdd(&out"),
    "tie order reversed": Fault("best", "there < place", "there > place", RESULT, RESULT),
    "ties as they come": Fault("best", "score[i] > top", "score[i] >= top", RESULT, RESULT),
    "carry dropped": Fault("sum64", " + carry);", ");", RESULT, RESULT),
    "carry of a sum read again": Fault(
        "sum64",
        "atomicAdd(&low, add) + add < add",
        "(atomicAdd(&low, add), low < add)",
        "race: (reads|updates) shared memory",
        None,
    ),
    "order of atomics decides": Fault(
        "partition",
        "rows[goes_left ? rank : n_left + i - rank] = i",
        "rows[goes_left ? first[blockIdx.x] + atomicAdd(&before_warp[8], 1) : n_left + i - rank] = i",
        f"race|{RESULT}",
        RESULT,
    ),
    "race between blocks": Fault(
        "histogram", "atomicAdd(&out[i], cells[i])", "out[i] += cells[i]", "race: .*`out`.* of another block", None
    ),
    "plain access against atomics": Fault(
        "histogram",
        "atomicAdd(&cells[codes[i]], 1u);",
        "if (i % 64) atomicAdd(&cells[codes[i]], 1u); else cells[codes[i]]++;",
        "race: .* shared memory",
        None,
    ),
}

# ---- addresses ----

_ADDRESSES = {
    "read behind an array": Fault(
        "block_sum",
        "i < n ? x[i] : 0",
        "i <= n ? x[i] : 0",
        r"out of bounds: reads 4 bytes at byte 2000 of `x` \(element 500 of 500\)",
        RESULT,
    ),
    "read before an array": Fault(
        "block_scan",
        "int sum = x[threadIdx.x];",
        "int sum = x[(int)threadIdx.x - 1];",
        r"out of bounds: reads 4 bytes at byte -4 of `x` \(element -1 of 192\)",
        RESULT,
    ),
    "write behind an array": Fault(
        "partition",
        "const int rank = first",
        "const int rank = 1 + first",
        r"out of bounds: writes .* of `rows` \(element 450 of 450\)|race: writes .* of `rows`",
        f"out of bounds: wrote byte 180[0-3] of the memory of `rows`|{RESULT}",
        "rows[",
    ),
    "write behind a shared array": Fault(
        "partition",
        "int before_warp[9]",
        "int before_warp[8]",
        "out of bounds",
        "wrote byte 32 of the shared array partition:before_warp, which has 32",
        "before_warp[",
    ),
    "dynamic shared memory too small": Fault(
        "histogram",
        "i < n_codes; i += blockDim.x) cells[i] = 0",
        "i <= n_codes; i += blockDim.x) cells[i] = 0",
        "out of bounds: writes 4 bytes at byte 160 of the dynamic shared memory, which has 160",
        "wrote byte 160 of the shared array dynamic",
    ),
    "offset in 32 bits": Fault(
        "gather",
        "rows[i] * stride",
        "rows[i] * (int)stride",
        "overflow of a signed multiplication",
        "out of bounds: touches .*`table`",
    ),
    "unsigned offset in 32 bits": Fault(
        "gather", "rows[i] * stride + column", "(unsigned)rows[i] * 2u * (unsigned)stride / 2 + column", RESULT, RESULT
    ),
    "misaligned vector load": Fault(
        "add_records", "records + 16 * i", "records + 16 * i - 4 * (i > 0)", "misaligned: .* is no multiple of 16", None
    ),
    "write to a const array": Fault(
        "best", "out[0] = place", "*(double*)score = place", "which the kernel declares const", RESULT
    ),
    "local array too small": Fault(
        "swap_pairs",
        "__syncwarp();",
        "int a[4]; a[threadIdx.x % 5] = 1; if (a[threadIdx.x % 4] == 7) y[0] = 1; __syncwarp();",
        "an index beyond its array",
        None,
    ),
    "too many local variables": Fault(
        "best",
        "out[0] = place;",
        "{ volatile char t[70000]; t[place] = 1; out[0] = place + t[0] * 0; }",
        "bytes of local variables",
        "bytes of local variables",
        "t[place]|best",
    ),
    "atomic on a local variable": Fault(
        "best", "out[0] = place;", "{ int t = 0; atomicAdd(&t, place); out[0] = t; }", "on a local variable", None
    ),
    "static variable": Fault(
        "best",
        "out[0] = place;",
        "{ static int last; last += place; out[0] = last; }",
        "writes a static variable",
        None,
    ),
}

# ---- undefined operations ----

_UNDEFINED = {
    "shift by the width": Fault(
        "swap_pairs",
        "held[threadIdx.x] = x[threadIdx.x];",
        "held[threadIdx.x] = x[threadIdx.x] << (threadIdx.x & 32);",
        "undefined: a shift",
        None,
    ),
    "division by zero": Fault(
        "swap_pairs",
        "held[threadIdx.x] = x[threadIdx.x];",
        "held[threadIdx.x] = 7 / x[threadIdx.x];",
        "division by zero",
        "division by zero",
    ),
    "a cast of a huge double": Fault(
        "best", "out[0] = place;", "out[0] = (int)(score[0] * 1e300 + 1e300);", "outside the integer type", RESULT
    ),
    "signed overflow": Fault("block_scan", "sum += other", "sum += other + 0x7FFFFFF0", "overflow of a signed", RESULT),
}

FAULTS = {**_WAITING, **_VALUES, **_ADDRESSES, **_UNDEFINED}
