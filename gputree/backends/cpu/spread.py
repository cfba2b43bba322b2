"""Rows of split nodes, of which those with a missing value go to several branches: `gputree.backends.spread`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import float64, int32, int64, uint32
from numpy.typing import NDArray

from gputree.backends.cpu.marks import entry, kernel
from gputree.backends.cpu.records import Layout, Source
from gputree.backends.cpu.rows import add_rows, branch_map
from gputree.core.forest import SPREAD

_SPREAD = int(SPREAD)


@kernel
def weight_at(source: Source, i: int) -> int:
    """The weight at a position."""
    weight = int64(source.times[i]) if source.times.size else int64(1)
    return weight * source.units[source.row[i]] if source.units.size else weight


@kernel
def part_weight(weight: int, known: NDArray[int64], part: NDArray[int64]) -> None:
    """The shares of a row for branches of known weights (branches,)."""
    total, top = int64(0), int64(0)
    for b in range(known.size):
        total += known[b]
        top = b if known[b] > known[top] else top
    rest = weight
    for b in range(known.size):
        part[b] = int64(math.floor(float64(weight) * (float64(known[b]) / float64(total))))
        rest -= part[b]
    part[top] += rest


@entry
def count_spread(
    given: tuple[Any, ...],
    n_codes: NDArray[int64],
    tests: NDArray[int64],
    lookup: NDArray[int64],
    found: tuple[NDArray[int32], NDArray[int64], NDArray[int64]],
) -> None:
    """The branch of every position i4 (P,), of every branch its known weight and its size i8 (branches,).

    Tests as in `rows.split_rows`; given are the fields of a source.
    """
    source, (own, known, size) = Source(*given), found
    for s in range(tests.shape[0]):
        test = tests[s]
        branch = branch_map(test, lookup[test[4] : test[5]], n_codes[test[0]])
        mine, count, codes, row = known[test[8] : test[9]], size[test[8] : test[9]], source.codes, source.row
        for i in range(test[6], test[7]):
            b = branch[codes[row[i], test[0]]]
            own[i] = b
            if b != _SPREAD:
                mine[b] += weight_at(source, i)
                count[b] += 1
        part = np.empty(count.size, int64)
        for i in range(test[6], test[7]):
            if own[i] == _SPREAD:
                part_weight(weight_at(source, i), mine, part)
                for b in range(part.size):
                    count[b] += 1 if part[b] > 0 else 0


@entry
def place_spread(
    given: tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]],
    tests: NDArray[int64],
    found: tuple[NDArray[int32], NDArray[int64], NDArray[int64]],
    stats: NDArray[int64],
) -> None:
    """Write down the rows and weights of every branch from its first position on; fill channels (branches, C).

    Given are the fields of the source, of the one that is filled, and of a layout; found: the branch of every position,
    known weights, and the first position of every branch.
    """
    source, into, layout = Source(*given[0]), Source(*given[1]), Layout(*given[2])
    own, known, first = found
    for s in range(tests.shape[0]):
        test = tests[s]
        mine, begin = known[test[8] : test[9]], first[test[8] : test[9]]
        at, part = begin.copy(), np.empty(mine.size, int64)
        for i in range(test[6], test[7]):
            b = int64(own[i])
            if b != _SPREAD:
                put(into, at, b, source.row[i], weight_at(source, i))
                continue
            part_weight(weight_at(source, i), mine, part)
            for b in range(part.size):
                if part[b] > 0:
                    put(into, at, b, source.row[i], part[b])
        for b in range(mine.size):
            add_rows(into, layout, (begin[b], at[b]), stats[test[8] + b])


@kernel
def put(into: Source, at: NDArray[int64], b: int, row: uint32, weight: int) -> None:
    """Write down a row of a branch."""
    into.row[at[b]] = row
    into.times[at[b]] = weight
    at[b] += 1
