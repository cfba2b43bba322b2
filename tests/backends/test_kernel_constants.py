"""Numbers and layouts that stand both in the kernels and in Python are the same in both."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from benchmarks import traffic_model
from gputree.backends.gpu import codes, rows, search, sizes, tables, walk
from gputree.backends.gpu.driver import KINDS
from gputree.backends.source import kernels_folder
from gputree.core import schema
from gputree.core.criteria import CRITERIA, TargetKind
from gputree.core.forest import SPREAD, STAY, Test
from gputree.core.keys import Stream
from gputree.core.splits import COUNTED, NOT_MET, Scan
from gputree.core.texts import c_text

LANES = 32  # of a warp, on every card
TYPES = {"double": "f8", "int": "i4", "unsigned short": "u2"}


@cache
def kernel_text() -> str:
    """All kernels, without comments."""
    files = sorted(kernels_folder().glob("*.cu*"))
    return re.sub(r"//.*", "", "\n".join(file.read_text(encoding="utf-8") for file in files))


def enums(text: str) -> list[dict[str, int]]:
    """Every enum, its names and values; each value is written out, as an expression that Python reads alike."""
    found = []
    for body in re.findall(r"\benum\s*\{([^}]*)\}", text):
        parts = [part.partition("=") for part in body.split(",")]
        found.append({name.strip(): int(eval(value, {"__builtins__": {}})) for name, _, value in parts})
    return found


def enum_with(name: str) -> dict[str, int]:
    """The enum that has this name, which no other one has."""
    (found,) = [enum for enum in enums(kernel_text()) if name in enum]
    return found


def number(name: str) -> int:
    return enum_with(name)[name]


def struct(text: str, name: str) -> np.dtype:
    """The layout of a struct of plain fields, as a C compiler lays it out."""
    (body,) = re.findall(rf"\bstruct\s+{name}\s*\{{([^}}]*)\}}", text)
    fields = []
    for line in filter(None, map(str.strip, body.split(";"))):
        (kind,) = [kind for kind in TYPES if line.startswith(f"{kind} ")]
        fields += [(field.strip(), TYPES[kind]) for field in line.removeprefix(kind).split(",")]
    return np.dtype(fields, align=True)


def places(dtype: np.dtype) -> list[tuple[str, np.dtype, int]]:
    """Name, type and offset of every field, in order."""
    assert dtype.names
    return [(name, *dtype.fields[name][:2]) for name in dtype.names]  # type: ignore[index]


def bounds(kernel: str) -> tuple[int, int]:
    """What a kernel is compiled for: threads of a block, and blocks that a multiprocessor has room for (1: unsaid)."""
    ((threads, blocks),) = re.findall(rf"__launch_bounds__\((\d+)(?:,\s*(\d+))?\)\s*{kernel}\(", kernel_text())
    return int(threads), int(blocks or 1)


# -- the readers


def test_enums_are_read() -> None:
    text = "enum { A = 0, B = 1 << 17 };\nenum { C = -0x7FFFFFFF - 1 };"
    assert enums(text) == [{"A": 0, "B": 131_072}, {"C": -(2**31)}]


def test_structs_are_laid_out_as_in_c() -> None:
    """A double begins at a multiple of 8, and the whole ends at one."""
    dtype = struct("struct Sample {\n int a;\n double b, c;\n unsigned short d;\n};", "Sample")
    assert places(dtype) == [("a", "i4", 0), ("b", "f8", 8), ("c", "f8", 16), ("d", "u2", 24)]
    assert dtype.itemsize == 32


# -- names with a meaning


def test_generators() -> None:
    assert enum_with("GT_CUTS") == {f"GT_{scan.name}": scan for scan in Scan} | {"GT_NO_SCAN": search.NO_SCAN}
    assert search.NO_SCAN not in list(Scan)


def test_kinds_of_nodes() -> None:
    assert enum_with("GT_LEAF") == {"GT_LEAF": Test.LEAF, "GT_TEST": Test.THRESHOLD, "GT_LOOKUP": Test.LOOKUP}


def test_streams_of_the_hash() -> None:
    assert enum_with("GT_CHILD") == {f"GT_{stream.name}": stream for stream in Stream}


def test_kinds_of_targets() -> None:
    assert enum_with("GT_COUNTS") == {f"GT_{kind.name}": KINDS[kind] for kind in TargetKind}


def test_values_that_stand_for_none() -> None:
    assert number("GT_NOT_MET") == NOT_MET
    assert number("GT_STAY") == STAY
    assert number("GT_SPREAD") == SPREAD
    (counted,) = re.findall(r"#define GT_COUNTED \((\S+)\)", kernel_text())
    assert float(counted) == COUNTED
    assert number("GT_NOWHERE") == codes.NOWHERE
    assert number("GT_MISSING") == schema.MISSING


def test_the_criterion_that_the_header_shows() -> None:
    text = (kernels_folder() / "criterion.cuh").read_text(encoding="utf-8")
    assert text.endswith(f'#include "common.cuh"\n\n{c_text(CRITERIA["gini"])}')


# -- sizes


def test_keys_of_a_byte() -> None:
    """The shared memory of `encode_bytes` holds the keys of every feature that the host encodes in a byte."""
    assert number("GT_BYTE_KEYS") == schema.BYTE_CODES


def test_codes_of_a_record() -> None:
    """A record has the fewest words that hold its codes and, in the last one, the label."""
    full = [number("GT_PER_WORD") * (words - 1) for words in codes.WORDS]
    assert [codes.record_words(n) for n in full] == list(codes.WORDS)
    assert [codes.record_words(n + 1) for n in full] == [*codes.WORDS[1:], codes.WORDS[-1]]
    assert full[-1] == sizes.RECORD


def test_entries_of_a_span() -> None:
    """A span is what the threads of a block take in whole rounds."""
    assert number("GT_SPAN") == tables.SPAN
    assert all(tables.SPAN % bounds(kernel)[0] == 0 for kernel in ("count_cells", "make_cells"))


@pytest.mark.parametrize("kernel", ["count_branches", "offsets", "move_rows", "put_back", "search_branches"])
def test_warps_of_a_block(kernel: str) -> None:
    assert number("GT_BLOCK_WARPS") == rows.WARPS
    assert bounds(kernel)[0] == LANES * rows.WARPS


def test_blocks_that_count_in_shared_memory() -> None:
    threads, blocks = bounds("count_shared")
    assert threads == sizes.THREADS
    assert threads * blocks == sizes.RESIDENT


def test_the_model_of_traffic() -> None:
    assert number("GT_SIDES") == traffic_model.SIDES
    assert struct(kernel_text(), "GtBest").itemsize == traffic_model.BEST


def test_ranks_do_not_meet() -> None:
    """A rank is a family and a cell, of which a feature has one for every code and one for missing values."""
    assert number("GT_FAMILY") >= 1 + schema.MAX_CODES
    families = len(enum_with("GT_RIGHT"))
    assert families == 3
    assert families * number("GT_FAMILY") <= 1 << 31  # an int


# -- records


def test_the_record_of_a_test() -> None:
    expected = [(name.replace("n_branches", "branches"), *rest) for name, *rest in places(search.BEST)]
    assert places(struct(kernel_text(), "GtBest")) == expected
    assert struct(kernel_text(), "GtBest").itemsize == search.BEST.itemsize == 8 * search.WORDS


def test_the_record_of_a_node() -> None:
    assert places(struct(kernel_text(), "GtNode")) == places(walk.NODE)
    assert struct(kernel_text(), "GtNode").itemsize == walk.NODE.itemsize


def test_the_record_of_a_spread_row() -> None:
    assert places(struct(kernel_text(), "GtFork")) == places(walk.FORK)
    assert bounds("predict_shares")[0] == walk.THREADS
