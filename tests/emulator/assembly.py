"""Edit the compiler's assembly text: shared arrays get a zone behind them and go into a table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tests.emulator.errors import CompileError

ZONE = 64  # bytes behind every shared array that no thread may touch, as in runtime.cpp
_SECTION = 'emu_shared,"aw",@nobits'
_SHARED = re.compile(r"\s*\.section\s+emu_shared\b")
_OTHER = re.compile(r"\s*\.(section|text|data|bss|popsection|previous)\b")
_SIZE = re.compile(r"\s*\.size\s+(\w+), (\d+)")
_COMMON = re.compile(r"\s*\.comm\s+(_ZZL?(\d+)(\w+)),(\d+),(\d+)")
_LIBRARY_CALL = re.compile(r"^(\s*(?:call|jmp|bl|b)\s+)(memcpy|memmove|memset)(@PLT)?\s*$")


def edit_assembly(text: str, kernels: Sequence[str], checked: bool) -> str:
    """Return the text with zones and the table, and with copies and fills sent to the emulator's own."""
    missing = [name for name in kernels if not re.search(rf"^{name}:", text, re.MULTILINE)]
    if missing:
        raise CompileError(f'kernels {missing} are not extern "C": get_function would not find them')
    arrays: dict[str, int] = {}
    lines = list(_with_zones(text.splitlines(), arrays))
    if checked:
        lines = [_LIBRARY_CALL.sub(r"\1emu_\2", line) for line in lines]
    return "\n".join([*lines, *_table(arrays, kernels)]) + "\n"


def _with_zones(lines: Sequence[str], arrays: dict[str, int]) -> Iterator[str]:
    shared = False
    for line in lines:
        if _SHARED.match(line):
            shared = True
            yield f"\t.section\t{_SECTION}"
            continue
        shared = shared and not _OTHER.match(line)
        if common := _of_template(line):
            symbol, size, align = common
            arrays[symbol] = size
            yield from (f"\t.pushsection\t{_SECTION}", f"\t.balign\t{align}", f"{symbol}:")
            yield from (f"\t.zero\t{size + ZONE}", "\t.popsection")
            continue
        yield line
        if not shared:
            continue
        if size_line := _SIZE.match(line):
            arrays[size_line[1]] = int(size_line[2])
        elif line.strip().startswith(".zero"):
            yield f"\t.zero\t{ZONE}"
        elif re.match(r"\s*\.(byte|value|long|quad|string|ascii)\b", line):
            raise CompileError("a __shared__ variable cannot have an initial value")


def _of_template(line: str) -> tuple[str, int, int] | None:
    """Symbol, size and alignment of a variable in a template: such a one ignores the section that it is given."""
    found = _COMMON.match(line)
    if found is None or found[3][int(found[2]) : int(found[2]) + 1] != "I":  # I begins the template's arguments
        return None
    return found[1], int(found[4]), int(found[5])


def _table(arrays: dict[str, int], kernels: Sequence[str]) -> Iterator[str]:
    yield '\t.section\temu_table,"aw",@progbits'
    for i, (symbol, size) in enumerate(arrays.items()):
        yield f"\t.quad\t{symbol}, {size}, .Lemu_array{i}"
    yield '\t.section\t.rodata.emu,"a",@progbits'
    for i, symbol in enumerate(arrays):
        yield f'.Lemu_array{i}: .string "{array_name(symbol, kernels)}"'


def array_name(symbol: str, kernels: Sequence[str]) -> str:
    """Return "kernel:array" of a symbol, ":array" where it belongs to a function that several kernels may call."""
    inside = re.match(r"_ZZ(\d+)(\w+)$", symbol)
    owner = inside[2][: int(inside[1])] if inside else ""
    rest = inside[2][int(inside[1]) :] if inside else symbol
    last = re.search(r"E(\d+)(\w+)$", symbol) or re.search(r"_ZL?(\d+)(\w+)$", symbol)
    name = last[2][: int(last[1])] if last else symbol
    return f"{owner if owner in kernels and rest.startswith('E') else ''}:{name}"
