"""Compile the kernels as CuPy does, with NVIDIA's compiler and without a GPU, and read what they take.

The compiler's log gives registers, shared memory and spills of every kernel; the PTX text gives the instructions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import pytest

from gputree.backends.gpu.driver import PLAIN, Flavour
from gputree.backends.source import read_kernel
from gputree.core.criteria import CRITERIA, TargetKind
from gputree.core.texts import c_text

ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
OF_CUPY = ("-ftz=true", "--device-as-default-execution-space")  # cupy.cuda.compiler adds them, and -arch=sm_..
REGISTERS = 65_536  # of a multiprocessor, of every architecture above
EIGHT = 8  # a thread's registers are handed out by eights
PLAIN_FILES = ("bags", "encode", "predict")
TARGET_FILES = ("histogram", "lookup", "partition")


@dataclass(frozen=True, slots=True)
class Budget:
    """Most that a kernel takes: `blocks` of `threads` fit a multiprocessor's registers, `shared` are static bytes."""

    threads: int
    blocks: int
    shared: int = 0

    @property
    def registers(self) -> int:
        """Of a thread."""
        return REGISTERS // (self.threads * self.blocks) // EIGHT * EIGHT


# By file and kernel. With too few threads at once nothing is done while memory answers, so each row says how many there
# must be. The registers that this leaves are those of the neediest kernel of its sort, rounded up to a step of the
# hardware (eight) or one more. A spill goes through memory itself, so none is allowed. Left alone, the compiler spills
# a few registers to have more blocks; a kernel where it did so names the blocks of this table in its launch bounds.
#   A thread a row: 1,280 threads, 1,024 where it adds what a row weighs; a card has 1,024 (7.5), 1,536 (8.6,
#   8.9, 12.0) or 2,048.
#   A warp a tile or a slot: the same, 768 where it adds channels.
#   A warp a pair: cuts keep the float64 sums of both directions of missing values, 384 threads; one category those of
#   both sides, 512; branches 640.
#   `count_shared` has two blocks, for 7.5 holds no more.
BUDGETS = {
    "bags": {
        "count_drawn": Budget(256, 5),
        "draw_rows": Budget(256, 5),
        "list_drawn": Budget(256, 5, shared=8 * 4),  # an int for each of 8 warps
        "running_sums": Budget(32, 32),  # one warp runs, so that it matters little
    },
    "encode": {
        "all_rows": Budget(256, 5),
        "count_missing": Budget(256, 5),
        "encode_bytes": Budget(256, 5, shared=4 * 255 * 8),  # 255 keys of 4 features
        "encode_wide": Budget(256, 5),
        "put_labels": Budget(256, 5),
        "take_columns": Budget(256, 5),
    },
    "histogram": {
        "count_cells": Budget(256, 5),
        "count_global": Budget(256, 4),
        "count_shared": Budget(512, 2),
        "make_cells": Budget(256, 4, shared=8 * 4),  # an int for each of 8 warps
        "make_keys": Budget(256, 5),
    },
    "known": {
        "search_groups": Budget(128, 5),
        "search_rest": Budget(128, 4),
        "search_ruled": Budget(128, 3),
    },
    "lookup": {
        "list_branches": Budget(128, 6),
        "order_cells": Budget(128, 6),
    },
    "partition": {
        "count_branches": Budget(128, 6, shared=4 * 64 * 8),  # 64 sides for each of 4 warps
        "move_rows": Budget(128, 10),
        "offsets": Budget(128, 10),
        "put_back": Budget(128, 8),
    },
    "predict": {
        "apply_forest": Budget(256, 5),
        "predict_forest": Budget(256, 5),
        "predict_shares": Budget(128, 8),
    },
    "search": {
        "best_of_slots": Budget(128, 10),
        "describe_slots": Budget(128, 6),
        "search_branches": Budget(128, 5),
        "search_cuts": Budget(128, 3),
    },
    "spread": {
        "count_shares": Budget(128, 8),
        "mark_rows": Budget(128, 8),
        "place_shares": Budget(128, 8),
    },
}

# ---- what is compiled ----


@dataclass(frozen=True, slots=True)
class Specialisation:
    """A kernel file and what it is compiled for."""

    file: str
    flavour: Flavour = PLAIN

    def __str__(self) -> str:
        kind, criterion = self.flavour.kind, self.flavour.criterion
        what = criterion.name if criterion else kind.value.replace(" ", "_") if kind else None
        return "-".join(filter(None, (self.file, what, "weighted" if self.flavour.weighted else None)))

    def text(self) -> str:
        """The text that the compiler is given."""
        criterion = self.flavour.criterion
        return read_kernel(f"{self.file}.cu", {} if criterion is None else {"criterion.cuh": c_text(criterion)})


def specialisations() -> Iterator[Specialisation]:
    """Every specialisation that the backend can ask for."""
    yield from map(Specialisation, PLAIN_FILES)
    for weighted in (False, True):
        for kind in TargetKind:
            yield from (Specialisation(file, Flavour(kind, weighted)) for file in TARGET_FILES)
        for criterion in dict.fromkeys(CRITERIA.values()):  # two names may mean one criterion
            yield Specialisation("search", Flavour(criterion.needs, weighted, criterion))
        yield Specialisation("spread", Flavour(TargetKind.COUNTS, weighted))
        for name in ("gain_ratio", "entropy"):
            yield Specialisation("known", Flavour(TargetKind.COUNTS, weighted, CRITERIA[name]))


# ---- the compiler ----


class CompileError(Exception):
    """The compiler refused a text; its log."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What the compiler made of a text."""

    log: str
    ptx: str


def compiler() -> ModuleType:
    """NVIDIA's compiler; the test is skipped where it is not installed."""
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()  # the module loads the library at the first call
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"the kernels cannot be compiled ({error}): pip install cuda-bindings nvidia-cuda-nvrtc")
    return nvrtc


def compile_text(text: str, arch: int, options: tuple[str, ...]) -> Compiled:
    """Compile for one architecture."""
    nvrtc = compiler()
    given = [o.encode() for o in (*options, *OF_CUPY, f"-arch=sm_{arch}", "--ptxas-options=-v")]
    _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"kernel.cu", 0, [], [])
    try:
        (result,) = nvrtc.nvrtcCompileProgram(program, len(given), given)
        log = _read(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(f"{result.name} with {given}:\n{log}")
        return Compiled(log, _read(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX))
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _read(program, size_of, fill) -> str:
    _, size = size_of(program)
    text = b" " * size
    fill(program, text)
    return text.rstrip(b"\0").decode()


# ---- what it says ----


@dataclass(frozen=True, slots=True)
class Taken:
    """What a kernel takes: registers of a thread, static shared bytes, bytes of local memory and of spills."""

    registers: int
    shared: int
    frame: int
    spilled: int


_KERNEL = re.compile(
    r"Compiling entry function '(?P<name>\w+)'"
    r".*?(?P<frame>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
    r".*?Used (?P<registers>\d+) registers(?P<rest>[^\n]*)",
    re.DOTALL,
)
_SHARED = re.compile(r"(\d+) bytes smem")
_PLAIN_LINES = re.compile(
    r"ptxas info +: (\d+ bytes gmem.*|Compiling entry function .*|Function properties for .*|Used \d+ registers.*"
    r"|Compile time = .*)|(ptxas +\. +|    )\d+ bytes stack frame, .*| *"
)


def taken(log: str) -> dict[str, Taken]:
    """What every kernel of a log takes, by name."""
    found = {}
    for each in _KERNEL.finditer(log):
        shared = _SHARED.search(each["rest"])
        spilled = int(each["stores"]) + int(each["loads"])
        found[each["name"]] = Taken(
            int(each["registers"]), int(shared[1]) if shared else 0, int(each["frame"]), spilled
        )
    return found


def warnings(log: str) -> list[str]:
    """Lines of a log that say more than what the kernels take."""
    return [line for line in log.splitlines() if not _PLAIN_LINES.fullmatch(line)]


_BOUNDS = re.compile(r"\.entry (\w+)\([^)]*\)\s*\.maxntid (\d+)(?:, 1, 1)?\n(?:\.minnctapersm (\d+)\n)?")
# An instruction on floating-point numbers: its type is the last part, or stands before that of what is converted.
_FLOAT = re.compile(r"^\s*(?:@!?%p\d+\s+)?([a-z]\w*(?:\.\w+)*\.(?:b?f16\w*|b?f32|tf32|f64)(?:\.\w+)*)\s", re.MULTILINE)
# What is exact, rounded to nearest as IEEE 754 says, or cut off to an integer. Without .rn, a product and a sum may
# become one instruction.
_RIGHT = re.compile(
    r"(add|sub|mul|div)\.rn\.f64|cvt\.rn\.f64\.[su]\d+|cvt\.(ftz\.)?f64\.f32|cvt\.rzi\.[su]\d+\.f64"
    r"|(neg|abs|copysign|min|max|mov|selp|slct)\.f64|setp\.\w+(\.\w+)?\.f64|(ld|st)(\.\w+)*\.f64|ld(\.\w+)*\.f32"
    r"|setp\.(nan|num)(\.ftz)?\.f32"
)


def bounds(ptx: str) -> dict[str, tuple[int, int]]:
    """The launch bounds of every kernel, by name: threads of a block, and blocks at once, 0 where none are named."""
    return {name: (int(threads), int(blocks or 0)) for name, threads, blocks in _BOUNDS.findall(ptx)}


def inexact(ptx: str) -> list[str]:
    """The kinds of instructions whose results another processor may not give: contracted, approximate or float32."""
    return sorted({each for each in _FLOAT.findall(ptx) if not _RIGHT.fullmatch(each)})


def over_budget(compiled: Compiled, budgets: dict[str, Budget]) -> list[str]:
    """What breaks the budgets of a file."""
    found, named = taken(compiled.log), bounds(compiled.ptx)
    wrong = [f"{name}: no kernel or no budget" for name in sorted(found.keys() ^ budgets.keys())]
    for name in sorted(found.keys() & budgets.keys()):
        budget, kernel = budgets[name], found[name]
        if named.get(name) not in ((budget.threads, 0), (budget.threads, budget.blocks)):
            wrong.append(f"{name}: launch bounds {named.get(name)}, not {(budget.threads, budget.blocks)}")
        if kernel.registers > budget.registers:
            wrong.append(f"{name}: {kernel.registers} registers, above {budget.registers}")
        if kernel.shared != budget.shared:
            wrong.append(f"{name}: {kernel.shared} bytes of static shared memory, not {budget.shared}")
        if kernel.frame or kernel.spilled:
            wrong.append(f"{name}: {kernel.frame} bytes of local memory, {kernel.spilled} bytes of spills")
    return wrong
