"""Small nodes: their whole subtrees, depth first, on rows that stay in cache."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import float64, int32, int64, uint64
from numpy.typing import NDArray

from gputree.backends.cpu.arrays import copy, order_by_branch, permute
from gputree.backends.cpu.cells import load, number_codes, outputs_of, rows_of, weight_of
from gputree.backends.cpu.cuts import BRANCHES, CELLS, CUT, FEATURE, GAIN, KIND, LOOKUP, LOW, MISSING, SCORE
from gputree.backends.cpu.formulas import COUNTS, gt_decrease
from gputree.backends.cpu.marks import borrow, entry, kernel, record
from gputree.backends.cpu.numbers import drawn, mix
from gputree.backends.cpu.records import Job, Layout, Node, Part
from gputree.backends.cpu.rows import regroup_source
from gputree.backends.cpu.search import Given, job_of, keep_better, node_of, search_part
from gputree.core.keys import Stream

CHILD_STREAM, FEATURE_STREAM = np.uint64(Stream.CHILD), np.uint64(Stream.FEATURE)
PARENT, DEPTH, FIRST, STOP, STATS = 0, 1, 2, 3, 4  # columns of nodes; the channels follow
N_TEST = 8  # columns of tests: node, kind, feature, first child, branches, missing, cut, cells of the lookup


@record
class Grown:
    """What is grown: arrays that are replaced by longer ones when they are full, and how much of each is used.

    Nodes are numbered from 0 on; parents -1 - s are the slots.
    """

    node: NDArray[int64]  # (nodes, 4 + C) parent, depth, positions of the rows, channels
    key: NDArray[uint64]  # (nodes, 1)
    bounds: NDArray[float64]  # (nodes, 2)
    test: NDArray[int64]  # (tests, 8)
    figures: NDArray[float64]  # (tests, 2) low, score
    lookup: NDArray[int64]  # (cells, 2) code, branch
    used: NDArray[int64]  # (3,) nodes, tests, cells


@kernel
def longer(array: NDArray[int64], need: int) -> NDArray[int64]:
    """The array, or one twice as long that begins with it."""
    if need <= array.shape[0]:
        return array
    room = np.empty((max(need, 2 * array.shape[0]), array.shape[1]), array.dtype)
    for i in range(array.shape[0]):
        copy(room[i], array[i])
    return room


@kernel
def has_room(grown: Grown, nodes: int, cells: int) -> bool:
    """Whether there is room for them."""
    grown = borrow(grown)
    used, lookup = grown.used, grown.lookup.shape[0]
    fits = used[0] + nodes <= grown.node.shape[0] and used[1] < grown.test.shape[0]
    return fits and used[2] + cells <= lookup


@kernel
def make_room(grown: Grown, nodes: int, cells: int) -> None:
    """Room for some more nodes, one test and some cells of its lookup."""
    if has_room(grown, nodes, cells):
        return
    used = grown.used
    grown.node = longer(grown.node, used[0] + nodes)
    grown.key = longer(grown.key, used[0] + nodes)
    grown.bounds = longer(grown.bounds, used[0] + nodes)
    grown.test = longer(grown.test, used[1] + 1)
    grown.figures = longer(grown.figures, used[1] + 1)
    grown.lookup = longer(grown.lookup, used[2] + cells)


@kernel
def after(hash_a: uint64, a: int, hash_b: uint64, b: int) -> bool:
    """Whether ranked feature a comes after b."""
    return hash_a > hash_b or (hash_a == hash_b and a > b)


@kernel
def next_features(job: Job, key: uint64, tried: int, last: tuple[uint64, int]) -> int:
    """Put the features of the next turn, those ranked behind ``last``, into a heap with the last of them on top.

    As `sampling.Sampler.features`; how many there are.
    """
    scratch, n_features = job.scratch, job.meaning.n_codes.size
    turn, of_node = min(job.rules.turn, n_features - tried), mix(key, FEATURE_STREAM)
    rank, feature, size = scratch.rank, scratch.feature, int64(0)
    for f in range(n_features):
        h = mix(of_node, uint64(f))  # keys.draw
        if tried and not after(h, f, last[0], last[1]):
            continue
        if size < turn:
            i = size
            size += 1
            while i > 0 and after(h, f, rank[(i - 1) // 2], feature[(i - 1) // 2]):
                rank[i], feature[i] = rank[(i - 1) // 2], feature[(i - 1) // 2]
                i = (i - 1) // 2
        elif after(h, f, rank[0], feature[0]):
            continue
        else:
            i = sink(rank, feature, h, f, size)
        rank[i], feature[i] = h, f
    return size


@kernel
def sink(rank: NDArray[uint64], feature: NDArray[int64], h: uint64, f: int, size: int) -> int:
    """The place that a feature takes when the top of the heap is given up for it."""
    i = int64(0)
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and after(rank[child + 1], feature[child + 1], rank[child], feature[child]):
            child += 1
        if not after(rank[child], feature[child], h, f):
            return i
        rank[i], feature[i] = rank[child], feature[child]
        i = child
    return i


@kernel
def best_test(job: Job, node: Node, span: tuple[int, int]) -> bool:
    """Whether a node has an admissible test; it is then in the second row of the scratch."""
    scratch, n_features = job.scratch, job.meaning.n_codes.size
    scratch.figures[1, SCORE] = -math.inf
    if job.rules.turn >= n_features:
        for f in range(n_features):
            search_part(job, node, f, f, span)
            keep_better(job)
        return scratch.figures[1, SCORE] > -math.inf
    tried = int64(0)
    last = (uint64(0), int64(-1))
    while tried < n_features and scratch.figures[1, SCORE] == -math.inf:
        size = next_features(job, node.key, tried, last)
        last = (scratch.rank[0], scratch.feature[0])
        for j in range(size):
            search_part(job, node, scratch.feature[j], scratch.feature[j], span)
            keep_better(job)
        tried += size
    return scratch.figures[1, SCORE] > -math.inf


@kernel
def is_open(job: Job, grown: Grown, i: int, span: tuple[int, int]) -> bool:
    """Whether a new node may be split: `grow.Plan.add`."""
    grown = borrow(grown)
    layout, rules = job.layout, job.rules
    total = grown.node[i, STATS:]
    rows, weight = rows_of(layout, total), weight_of(layout, total)
    if rows < max(rules.stop_rows, 2 * rules.min_rows) or weight < 2 * rules.min_weight:
        return False
    if grown.node[i, DEPTH] >= rules.max_depth:
        return False
    for o in range(outputs_of(layout)):
        if COUNTS:
            classes = 0
            for c in range(layout.first[o], layout.first[o] + layout.sizes[o]):
                classes += 1 if total[c] > 0 else 0
            if classes > 1:
                return True
        else:
            y = job.part.y[o]
            for k in range(span[0] + 1, span[1]):
                if y[k] != y[span[0]]:
                    return True
    return False


@kernel
def branch_of(job: Job, code: int) -> int:
    """The branch that the best test gives to a code."""
    test = job.scratch.test[1]
    if code == 0:
        return test[MISSING]
    if test[KIND] != LOOKUP:
        return 1 if code > test[CUT] else 0
    low, high = 0, test[CELLS]
    while low < high:
        middle = (low + high) // 2
        if job.scratch.look_code[1, middle] < code:
            low = middle + 1
        else:
            high = middle
    return int64(job.scratch.look_branch[1, low])


@kernel
def regroup(job: Job, span: tuple[int, int], size: NDArray[int64]) -> None:
    """Sort the rows of a node by branch, keeping their order inside a branch; size (branches,) receives theirs."""
    part, order = job.part, job.scratch.order
    feature, at = job.scratch.test[1, FEATURE], part.at
    column = part.column[feature]
    first, stop = span
    branch, cut, lookup = job.scratch.branch, job.scratch.test[1, CUT], job.scratch.test[1, KIND] == LOOKUP
    present, names = part.present[feature], part.names[feature]
    for i in range(first, stop):
        code = int64(column[at[i]])
        if present:
            code = int64(names[code])
        branch[i - first] = int32(branch_of(job, code) if lookup or code == 0 else int64(code > cut))
    order_by_branch(branch[: stop - first], size, order)
    permute(part.at[first:stop], order)
    permute(part.weight[first:stop], order)
    for o in range(outputs_of(job.layout)):
        if COUNTS:
            permute(part.label[o, first:stop], order)
        else:
            permute(part.value[o, first:stop], order)
            permute(part.y[o, first:stop], order)


@kernel
def add_children(job: Job, grown: Grown, parent: int, span: tuple[int, int], size: NDArray[int64]) -> None:
    """Append the children of a node that is regrouped: their channels, keys and bounds."""
    grown = borrow(grown)
    layout, part, first_child = job.layout, job.part, grown.used[0]
    key, first = grown.key[parent, 0], span[0]
    for b in range(size.size):
        child = first_child + b
        for c in range(STATS, grown.node.shape[1]):
            grown.node[child, c] = 0
        grown.node[child, PARENT] = parent
        grown.node[child, DEPTH] = grown.node[parent, DEPTH] + 1
        grown.node[child, FIRST], grown.node[child, STOP] = first, first + size[b]
        grown.key[child, 0] = drawn(key, CHILD_STREAM, uint64(b))
        copy(grown.bounds[child], grown.bounds[parent])
        total = grown.node[child, STATS:]
        add_up(layout, part, total, (first, first + size[b]))
        if layout.rows >= 0:
            total[layout.rows] = size[b]
        first += size[b]
    grown.used[0] += size.size


@kernel
def add_up(layout: Layout, part: Part, total: NDArray[int64], span: tuple[int, int]) -> None:
    """Add some rows of a part to channels (C,)."""
    weight = part.weight[span[0] : span[1]]
    for o in range(outputs_of(layout)):
        channel = layout.first[o]
        if COUNTS:
            label = part.label[o, span[0] : span[1]]
            for i in range(weight.size):
                total[channel + int64(label[i])] += weight[i]
        else:
            value = part.value[o, span[0] : span[1]]
            for i in range(weight.size):
                total[channel] += value[i]
    if not COUNTS:
        for i in range(weight.size):
            total[0] += weight[i]


@kernel
def bound(job: Job, grown: Grown, feature: int, first_child: int) -> None:
    """Monotone bounds of two children: split at the middle of the two values: `grow.Plan.bounds`."""
    grown = borrow(grown)
    sign = job.rules.monotone[feature]
    if sign == 0:
        return
    a, b = grown.node[first_child, STATS:], grown.node[first_child + 1, STATS:]
    level_a = float64(a[1]) / float64(max(weight_of(job.layout, a), 1))
    level_b = float64(b[1]) / float64(max(weight_of(job.layout, b), 1))
    middle = (level_a + level_b) / 2
    lower, upper = (first_child, first_child + 1) if sign > 0 else (first_child + 1, first_child)
    grown.bounds[lower, 1] = middle
    grown.bounds[upper, 0] = middle


@kernel
def note_test(job: Job, grown: Grown, i: int, branches: int) -> None:
    """Append the best test as that of node i, whose children come next."""
    grown = borrow(grown)
    scratch, t = job.scratch, grown.used[1]
    test, cells = scratch.test[1], scratch.test[1, CELLS]
    grown.test[t, 0] = i
    grown.test[t, 1] = test[KIND]
    grown.test[t, 2] = test[FEATURE]
    grown.test[t, 3] = grown.used[0]
    grown.test[t, 4] = branches
    grown.test[t, 5] = test[MISSING]
    grown.test[t, 6] = test[CUT]
    grown.test[t, 7] = cells
    grown.figures[t, 0] = scratch.figures[1, LOW]
    grown.figures[t, 1] = scratch.figures[1, SCORE]
    for c in range(cells):
        grown.lookup[grown.used[2] + c, 0] = int64(scratch.look_code[1, c])
        grown.lookup[grown.used[2] + c, 1] = int64(scratch.look_branch[1, c])
    grown.used[1] += 1
    grown.used[2] += cells


@kernel
def split_node(job: Job, grown: Grown, i: int) -> None:
    """Give node i its best test and its children."""
    test = job.scratch.test[1]
    branches = test[BRANCHES]
    make_room(grown, branches, test[CELLS])
    span = (grown.node[i, FIRST], grown.node[i, STOP])
    first_child, size = grown.used[0], np.empty(branches, int64)
    note_test(job, grown, i, branches)
    regroup(job, span, size)
    add_children(job, grown, i, span, size)
    if job.rules.monotone.size and branches == 2:
        bound(job, grown, test[FEATURE], first_child)


@kernel
def grow_part(job: Job, grown: Grown, root: int) -> None:
    """Grow the subtree of a node whose rows are loaded."""
    stack, top = np.empty(64, int64), 1
    stack[0] = root
    while top:
        top -= 1
        i = stack[top]
        total = np.empty(grown.node.shape[1] - STATS, int64)
        copy(total, grown.node[i, STATS:])
        span = (grown.node[i, FIRST], grown.node[i, STOP])
        node = node_of(job.layout, total, grown.key[i, 0], grown.bounds[i, 0], grown.bounds[i, 1])
        if not best_test(job, node, span):
            continue
        figures = job.scratch.figures[1]
        if gt_decrease(figures[GAIN], node.N) < job.rules.min_gain or figures[SCORE] <= job.rules.above:
            continue
        first_child = grown.used[0]
        split_node(job, grown, i)
        for child in range(first_child, grown.used[0]):
            if is_open(job, grown, child, (grown.node[child, FIRST], grown.node[child, STOP])):
                if top == stack.size:
                    room = np.empty(2 * stack.size, int64)
                    copy(room[:top], stack)
                    stack = room
                stack[top] = child
                top += 1


@entry
def finish_slots(
    given: Given, items: NDArray[int64], slots: tuple[NDArray[int64], NDArray[uint64], NDArray[float64]]
) -> tuple[Any, ...]:
    """Grow the subtrees of small nodes; items i8 (I, 4): slot, depth, first and stop of its rows.

    Of the slots: channels (k, C), keys (k,), bounds (k, 2). The slots themselves are the first nodes, in the order of
    items; the rows of a node are given by their positions in the shard, which is regrouped. Gives what `Grown`
    holds.
    """
    return finish_all(job_of(given), items, slots)


@kernel
def finish_all(
    job: Job, items: NDArray[int64], slots: tuple[NDArray[int64], NDArray[uint64], NDArray[float64]]
) -> tuple[Any, ...]:
    """The same."""
    (stats, key, bounds), job = slots, borrow(job)
    grown = nothing_grown(STATS + stats.shape[1])
    make_room(grown, items.shape[0], int64(0))
    grown.used[0] = items.shape[0]
    everything = np.empty(job.meaning.n_codes.size, int64)
    for f in range(everything.size):
        everything[f] = f
    for i in range(items.shape[0]):
        slot, first, stop = items[i, 0], items[i, 2], items[i, 3]
        grown.node[i, PARENT], grown.node[i, DEPTH] = -1 - slot, items[i, 1]
        grown.node[i, FIRST], grown.node[i, STOP] = 0, stop - first
        copy(grown.node[i, STATS:], stats[slot])
        grown.key[i, 0] = key[slot]
        copy(grown.bounds[i], bounds[slot])
        load(job.source, job.part, first, stop - first, everything)
        number_codes(job, stop - first)
        begin = grown.used[0]
        grow_part(job, grown, i)
        regroup_source(job.source, first, job.part.at[: stop - first])
        for n in range(begin, grown.used[0]):
            grown.node[n, FIRST] += first
            grown.node[n, STOP] += first
    return grown.node, grown.key, grown.bounds, grown.test, grown.figures, grown.lookup, grown.used


@kernel
def nothing_grown(width: int) -> Grown:
    """No nodes yet."""
    return Grown(
        np.empty((64, width), int64),
        np.empty((64, 1), uint64),
        np.empty((64, 2)),
        np.empty((64, N_TEST), int64),
        np.empty((64, 2)),
        np.empty((64, 2), int64),
        np.zeros(3, int64),
    )
