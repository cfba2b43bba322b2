"""The best test of a node: features are counted and searched one after another."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import float64, int32, int64, uint64
from numpy.typing import NDArray

from gputree.backends.cpu.arrays import copy
from gputree.backends.cpu.categories import branch_value, search_branches, search_rest, search_subsets
from gputree.backends.cpu.cells import (
    CUTS,
    DENSE,
    ONE_CUT,
    WORD,
    channels_of,
    count,
    forget,
    is_sparse,
    list_counted,
    list_remembered,
    load,
    outputs_of,
    remember,
    rows_of,
    weight_of,
)
from gputree.backends.cpu.cuts import (
    CELLS,
    FEATURE,
    LOW,
    MISSING,
    SCORE,
    search_cuts,
    start_test,
    threshold,
)
from gputree.backends.cpu.drawn import search_drawn
from gputree.backends.cpu.formulas import COUNTS, gt_gain_scale, gt_info, gt_scale
from gputree.backends.cpu.marks import borrow, entry, kernel
from gputree.backends.cpu.records import Job, Layout, Meaning, Node, Part, Rules, Scratch, Source
from gputree.backends.cpu.ruled import scan_ruled
from gputree.core.forest import SPREAD
from gputree.core.splits import Scan

_SPREAD = int(SPREAD)
EVERY, ONE_SUBSET, REST = int(Scan.BRANCHES), int(Scan.ONE_SUBSET), int(Scan.ONE_AGAINST_REST)


@kernel
def node_of(layout: Layout, total: NDArray[int64], key: uint64, low: float, high: float) -> Node:
    """A node's own terms, once for all features: `scan.Nodes.of`."""
    outputs = outputs_of(layout)
    weight = weight_of(layout, total)
    X, mean, parent = np.empty(layout.n_channels), np.empty(outputs, int64), np.empty(outputs)
    scale, gain_scale = 0.0, 0.0
    for c in range(layout.n_channels):
        X[c] = float64(total[c])
    for o in range(outputs):
        first, mean[o] = layout.first[o], 0
        if not COUNTS:
            if layout.centred:
                mean[o] = total[first] // max(weight, 1)
            X[first] = float64(total[first] - weight * mean[o]) * layout.scale[o]
        scale += gt_scale(float64(weight), X[first])
        gain_scale += gt_gain_scale(float64(weight), X[first])
    N, rows = float64(weight), rows_of(layout, total)
    node = Node(total, X, mean, parent, weight, rows, N, scale, low, high, key, gain_scale, N, 0.0)
    for o in range(outputs):
        parent[o] = branch_value(layout, node, o, total)
    return node


@kernel
def known_node(layout: Layout, node: Node, missing: NDArray[int64]) -> Node:
    """The node without rows of these channels, whose value is missing, as `nodes.without`."""
    total = np.empty(layout.n_channels, int64)
    copy(total, node.total)
    for c in range(missing.size):
        total[c] -= missing[c]
    known = node_of(layout, total, node.key, node.low, node.high)
    known.scale, known.whole = node.scale, node.whole
    known.aside = gt_info(float64(node.weight - known.weight), node.whole)
    return known


@kernel
def search_cells(job: Job, node: Node, feature: int, table: NDArray[int64], cells: int) -> None:
    """The best test of one feature from its listed cells, into the first row of the scratch."""
    start_test(job, feature)
    scan = job.meaning.scan[feature]
    if scan < 0 or cells == 0:  # no generator serves columns of this kind, or the node has no rows
        return
    if job.rules.spread and job.scratch.code[0] == 0:
        if cells == 1:
            return
        channels = channels_of(job.layout)
        first = job.scratch.place[0] * channels
        node = known_node(job.layout, node, table[first : first + channels])
        job.scratch.test[0, MISSING] = _SPREAD
    search_scan(job, node, feature, table, cells)


@kernel
def search_scan(job: Job, node: Node, feature: int, table: NDArray[int64], cells: int) -> None:
    """The same where there is something to search."""
    scan, node = job.meaning.scan[feature], borrow(node)
    if scan == CUTS and job.rules.cuts.size:
        i = scan_ruled(job, node, feature, table, cells)
        if i >= 0:
            job.scratch.figures[0, LOW] = threshold(job.meaning, feature, job.scratch.code[i], job.scratch.code[i + 1])
    elif scan in (CUTS, ONE_CUT):
        search_cuts(job, node, feature, table, cells, scan == ONE_CUT)
    elif scan == EVERY:
        search_branches(job, node, feature, table, cells)
    elif scan == REST:
        search_rest(job, node, feature, table, cells)
    else:
        search_subsets(job, node, feature, table, cells, scan == ONE_SUBSET)


@kernel
def search_part(job: Job, node: Node, j: int, feature: int, span: tuple[int, int]) -> None:
    """Count column j of a part, which holds a feature, over some rows of a node, and search it."""
    if job.meaning.scan[feature] == ONE_CUT:
        search_drawn(job, node, j, feature, span)
        return
    scratch, part, column = job.scratch, job.part, job.part.column[j]
    first, stop = span
    table, bits, present = scratch.table[0], scratch.bits[0], part.present[j]
    last = present - 1 if present else job.meaning.n_codes[feature]
    count(job, j, feature, table, span)
    if last < DENSE * (stop - first):
        cells = list_counted(job, feature, table, last)
    else:
        remember(part, column, bits, first, stop)
        cells = list_remembered(scratch, bits, last // WORD + 1)
    copy(scratch.place[:cells], scratch.code)
    if present:
        names = part.names[j]
        for i in range(cells):
            scratch.code[i] = int64(names[scratch.code[i]])
    search_cells(job, node, feature, table, cells)
    forget(job, feature, table, cells)


@kernel
def keep_better(job: Job) -> None:
    """Take the test of a feature as the node's if its score is higher, or as high and its column lower."""
    scratch = job.scratch
    mine, best = scratch.figures[0, SCORE], scratch.figures[1, SCORE]
    if mine < best or mine == -math.inf:
        return
    if mine == best and scratch.test[0, FEATURE] > scratch.test[1, FEATURE]:
        return
    copy(scratch.figures[1], scratch.figures[0])
    copy(scratch.test[1], scratch.test[0])
    for c in range(scratch.test[0, CELLS]):
        scratch.look_code[1, c] = scratch.look_code[0, c]
        scratch.look_branch[1, c] = scratch.look_branch[0, c]


@kernel
def count_chunks(job: Job, first: int, stop: int, features: NDArray[int64]) -> None:
    """Count some features over the rows at positions first .. stop - 1, a part at a time (listed rows are in one)."""
    part, table, bits = job.part, job.scratch.table, job.scratch.bits
    for at in range(first, stop, part.at.size):
        n = min(part.at.size, stop - at)
        load(job.source, part, at, n, features)
        for j in range(features.size):
            count(job, j, features[j], table[j], (int64(0), n))
            if is_sparse(job, features[j], stop - first):
                remember(part, part.column[j], bits[j], int64(0), n)


Given = tuple[tuple[Any, ...], ...]
"""The fields of the records of a `Job`, in their order, as the host gives them."""


@kernel
def job_of(given: Given) -> Job:
    """Records from what the host gives."""
    source, layout, meaning = Source(*given[0]), Layout(*given[1]), Meaning(*given[2])
    return Job(source, layout, meaning, Rules(*given[3]), Part(*given[4]), Scratch(*given[5]))


@entry
def search_items(
    given: Given,
    items: NDArray[int64],
    slots: tuple[NDArray[int64], NDArray[uint64], NDArray[float64]],
    features: NDArray[int32],
    found: tuple[NDArray[float64], NDArray[int64]],
) -> NDArray[int64]:
    """Best tests of features ``features[slot, first:stop]`` of large nodes; cells of lookups (pair, code, branch).

    items i8 (I, 5): slot, first and stop of its features, first and stop of its rows. Features i4 (k, m), -1 = none. Of
    the slots: channels (k, C), keys (k,), bounds (k, 2). Into found: figures f8 (k * m, 3) and tests i8 (k * m, 5).
    """
    return search_all(job_of(given), items, slots, features, found)


@kernel
def search_all(
    job: Job,
    items: NDArray[int64],
    slots: tuple[NDArray[int64], NDArray[uint64], NDArray[float64]],
    features: NDArray[int32],
    found: tuple[NDArray[float64], NDArray[int64]],
) -> NDArray[int64]:
    """The same."""
    stats, key, bounds = slots
    job, figures, tests = borrow(job), found[0], found[1]
    lookups, n_lookups = np.empty((16, 3), int64), int64(0)
    own, place = np.empty(features.shape[1], int64), np.empty(features.shape[1], int64)
    for i in range(items.shape[0]):
        slot, n = items[i, 0], int64(0)
        for j in range(items[i, 1], items[i, 2]):
            own[n], place[n] = features[slot, j], slot * features.shape[1] + j
            n += 1 if features[slot, j] >= 0 else 0
        count_chunks(job, items[i, 3], items[i, 4], own[:n])
        node = node_of(job.layout, stats[slot], key[slot], bounds[slot, 0], bounds[slot, 1])
        for j in range(n):
            cells = search_counted(job, node, j, own[j], items[i, 4] - items[i, 3])
            copy(figures[place[j]], job.scratch.figures[0])
            copy(tests[place[j]], job.scratch.test[0])
            lookups, n_lookups = append_lookup(job, place[j], cells, lookups, n_lookups)
    return lookups[:n_lookups]


@kernel
def search_counted(job: Job, node: Node, j: int, feature: int, rows: int) -> int:
    """Search a feature that is counted in table j over so many rows; the cells of its lookup."""
    scratch, table, n_codes = job.scratch, job.scratch.table[j], job.meaning.n_codes[feature]
    if is_sparse(job, feature, rows):
        cells = list_remembered(scratch, scratch.bits[j], n_codes // WORD + 1)
    else:
        cells = list_counted(job, feature, table, n_codes)
    copy(scratch.place[:cells], scratch.code)
    search_cells(job, node, feature, table, cells)
    forget(job, feature, table, cells)
    return scratch.test[0, CELLS]


@kernel
def append_lookup(
    job: Job, pair: int, cells: int, lookups: NDArray[int64], n_lookups: int
) -> tuple[NDArray[int64], int]:
    """Add the lookup of a feature's test to a list that doubles when it is full."""
    if n_lookups + cells > lookups.shape[0]:
        longer = np.empty((max(2 * lookups.shape[0], n_lookups + cells), 3), int64)
        for i in range(n_lookups):
            copy(longer[i], lookups[i])
        lookups = longer
    for i in range(cells):
        lookups[n_lookups + i, 0] = pair
        lookups[n_lookups + i, 1] = job.scratch.look_code[0, i]
        lookups[n_lookups + i, 2] = job.scratch.look_branch[0, i]
    return lookups, n_lookups + cells
