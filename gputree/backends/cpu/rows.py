"""Rows of large nodes: which branch each takes, what the branches hold, and rows regrouped."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import int32, int64, uint32
from numpy.typing import NDArray

from gputree.backends.cpu.arrays import order_by_branch, permute
from gputree.backends.cpu.marks import entry, kernel
from gputree.backends.cpu.records import Layout, Source


@kernel
def add_rows(source: Source, layout: Layout, span: tuple[int, int], total: NDArray[int64]) -> None:
    """Add the rows at positions first .. stop - 1 to channels (C,)."""
    row, units, none = source.row[span[0] : span[1]], source.units, source.times.size == 0
    times = source.times[span[0] : span[1]]
    for o in range(layout.first.size):
        channel = layout.first[o]
        if layout.counts:
            label = source.labels[o]
            for i in range(row.size):
                weight = int64(1) if none else int64(times[i])
                total[channel + label[row[i]]] += weight * units[row[i]] if units.size else weight
        else:
            value = source.values[o]
            for i in range(row.size):
                total[channel] += value[row[i]] * (int64(1) if none else int64(times[i]))
    if not layout.counts:
        for i in range(row.size):
            weight = int64(1) if none else int64(times[i])
            total[0] += weight * units[row[i]] if units.size else weight
    if layout.rows >= 0:
        total[layout.rows] = row.size


@kernel
def regroup_source(source: Source, first: int, order: NDArray[uint32]) -> None:
    """Put the rows from position ``first`` on into an order."""
    stop = first + order.size
    permute(source.row[first:stop], order)
    if source.times.size:
        permute(source.times[first:stop], order)


@kernel
def branch_map(test: NDArray[int64], lookup: NDArray[int64], n_codes: int) -> NDArray[int32]:
    """The branch of every code; test: feature, cut, missing, whether a lookup; cells (code, branch) of the lookup."""
    branch = np.empty(n_codes + 1, int32)
    branch[0] = int32(test[2])
    for code in range(1, n_codes + 1):
        branch[code] = int32(1 if code > test[1] else 0)
    for i in range(lookup.shape[0] if test[3] else 0):
        branch[lookup[i, 0]] = int32(lookup[i, 1])
    return branch


@entry
def sum_rows(given: tuple[tuple[Any, ...], tuple[Any, ...]], items: NDArray[int64], stats: NDArray[int64]) -> None:
    """Add the rows of nodes to channels (nodes, C); items i8 (k, 3): node, first and stop of its rows.

    Given are the fields of a source and a layout.
    """
    source, layout = Source(*given[0]), Layout(*given[1])
    for i in range(items.shape[0]):
        add_rows(source, layout, (items[i, 1], items[i, 2]), stats[items[i, 0]])


@entry
def split_rows(
    given: tuple[tuple[Any, ...], tuple[Any, ...]],
    n_codes: NDArray[int64],
    tests: NDArray[int64],
    lookup: NDArray[int64],
    children: tuple[NDArray[int64], NDArray[int64]],
) -> None:
    """Regroup the rows of nodes by branch, keeping their order; fill channels (branches, C) and sizes (branches,).

    tests i8 (k, 10): feature, cut, missing, whether a lookup, first and stop of its cells, of its rows, of its
    branches. Given are the fields of a source and a layout.
    """
    source, layout = Source(*given[0]), Layout(*given[1])
    stats, size = children
    for s in range(tests.shape[0]):
        test = tests[s]
        branch = branch_map(test, lookup[test[4] : test[5]], n_codes[test[0]])
        first, stop = test[6], test[7]
        own, row, codes, feature = np.empty(stop - first, int32), source.row, source.codes, test[0]
        for i in range(first, stop):
            own[i - first] = branch[codes[row[i], feature]]
        count, order = size[test[8] : test[9]], np.empty(stop - first, uint32)
        order_by_branch(own, count, order)
        regroup_source(source, first, order)
        for b in range(count.size):
            add_rows(source, layout, (first, first + count[b]), stats[test[8] + b])
            first += count[b]
