"""The best test of a column of categories in one node: the scalar form of `scan`'s."""

from __future__ import annotations

import math

import numpy as np
from numpy import float64, int64, uint16, uint64
from numpy.typing import NDArray

from gputree.backends.cpu.cells import channels_of, outputs_of, rows_of, weight_of
from gputree.backends.cpu.cuts import (
    BRANCHES,
    CELLS,
    CUT,
    GAIN,
    KIND,
    LOOKUP,
    LOW,
    MISSING,
    SCORE,
    draw_point,
    facts_of,
    folded,
    pair_gain,
    pair_info,
    parts_well,
    scan_cuts,
)
from gputree.backends.cpu.formulas import COUNTS, POSITIVE_SUMS, TWO_BRANCHES, gt_branch, gt_info, gt_term
from gputree.backends.cpu.marks import kernel
from gputree.backends.cpu.numbers import drawn, unit_of
from gputree.backends.cpu.records import Job, Layout, Node, Scratch
from gputree.backends.cpu.ruled import judged
from gputree.core.keys import Stream

CATEGORY_STREAM = np.uint64(Stream.CATEGORY)


@kernel
def branch_value(layout: Layout, node: Node, o: int, channel: NDArray[int64]) -> float:
    """The value of one branch with channels (C,) for one output."""
    weight, first = weight_of(layout, channel), layout.first[o]
    n, s = float64(weight), 0.0
    if COUNTS:
        for c in range(first, first + layout.sizes[o]):
            s = folded(s, gt_term(float64(channel[c]), n, node.X[c], node.N))
    else:
        x = float64(channel[first] - weight * node.mean[o]) * layout.scale[o]
        s = folded(s, gt_term(x, n, node.X[first], node.N))
    return gt_branch(s, n, node.N)


@kernel
def branches_gain(job: Job, node: Node, table: NDArray[int64], first: int, cells: int) -> tuple[float, float]:
    """Gain and information when every cell from the first on is a branch."""
    layout, scratch = job.layout, job.scratch
    channels = channels_of(layout)
    gain, info = 0.0, 0.0
    for o in range(outputs_of(layout)):
        more, info = 0.0, 0.0
        for i in range(first, cells):
            channel = table[scratch.place[i] * channels : (scratch.place[i] + 1) * channels]
            more += branch_value(layout, node, o, channel)
            info += gt_info(float64(weight_of(layout, channel)), node.N)
        gain += more - node.parent[o]
    return gain, info


@kernel
def branches_allowed(job: Job, table: NDArray[int64], first: int, cells: int) -> bool:
    """Whether every cell from the first on, or as many as must be, is large enough to be a branch."""
    layout, scratch, rules = job.layout, job.scratch, job.rules
    light = int64(0)
    for i in range(first, cells):
        begin = scratch.place[i] * channels_of(layout)
        channel = table[begin : begin + channels_of(layout)]
        light += 1 if weight_of(layout, channel) < rules.min_weight else 0
        if rules.min_rows > 1 and rows_of(layout, channel) < rules.min_rows:
            return False
        if POSITIVE_SUMS:
            for o in range(outputs_of(layout)):
                if channel[1 + o] <= 0:
                    return False
    return light == 0 if rules.heavy == 0 else cells - first - light >= rules.heavy


@kernel
def search_branches(job: Job, node: Node, feature: int, table: NDArray[int64], cells: int) -> None:
    """A branch for every category that was declared, or else met, and one for missing values, if these have one."""
    scratch, rules = job.scratch, job.rules
    known = 1 if scratch.code[0] == 0 else 0
    first = known if rules.spread else 0  # of the cells that are branches
    missing, met, declared = known - first, cells - first, job.meaning.declared[feature]
    count = declared + missing if declared > 0 else met
    if met < rules.least_met or count < 2 or (TWO_BRANCHES and count != 2) or (0 < rules.max_branches < count):
        return
    if not branches_allowed(job, table, first, cells):
        return
    gain, info = branches_gain(job, node, table, first, cells)
    scratch.figures[0, SCORE] = judged(rules, node, gain, info)
    scratch.figures[0, GAIN] = gain
    scratch.test[0, KIND] = LOOKUP
    scratch.test[0, BRANCHES] = count
    if missing:
        scratch.test[0, MISSING] = count - 1
    listed = declared if declared > 0 else cells - known
    for i in range(listed):
        scratch.look_code[0, i] = uint16(i + 1 if declared > 0 else scratch.code[known + i])
        scratch.look_branch[0, i] = uint16(i)
    scratch.test[0, CELLS] = listed


@kernel
def search_rest(job: Job, node: Node, feature: int, table: NDArray[int64], cells: int) -> None:
    """The best category against all others and, if they have a branch, missing values: `scan.scan_rest`."""
    scratch, rules, channels = job.scratch, job.rules, channels_of(job.layout)
    known = 1 if scratch.code[0] == 0 else 0
    facts, best, alone = facts_of(job.layout, node), -math.inf, int64(0)
    if cells - (known if rules.spread else 0) < 2:
        return
    for i in range(known, cells):
        left = table[scratch.place[i] * channels : (scratch.place[i] + 1) * channels]
        weight = weight_of(job.layout, left)
        if not parts_well(job, node, feature, left, weight):
            continue
        gain = pair_gain(facts, left, weight)[0]
        score = judged(rules, node, gain, pair_info(weight, facts.weight - weight, node.N))
        if score > best:
            best, alone = score, scratch.code[i]
            scratch.figures[0, GAIN] = gain
    if alone == 0:
        return
    scratch.figures[0, SCORE] = best
    if known and not rules.spread:
        scratch.test[0, MISSING] = 1
    list_alone(scratch, known, cells, alone)


@kernel
def list_alone(scratch: Scratch, known: int, cells: int, alone: int) -> None:
    """Note a test that sends one category to branch 0 and the others that were met to branch 1."""
    scratch.test[0, KIND], scratch.test[0, BRANCHES], scratch.test[0, CELLS] = LOOKUP, 2, cells - known
    for i in range(known, cells):
        scratch.look_code[0, i - known] = uint16(scratch.code[i])
        scratch.look_branch[0, i - known] = uint16(0 if scratch.code[i] == alone else 1)


@kernel
def category_value(job: Job, node: Node, feature: int, code: int, channel: NDArray[int64]) -> float:
    """The number by which a category is ordered: `scan.target_means`."""
    layout = job.layout
    if not job.rules.by_mean:
        return 0.0
    weight = weight_of(layout, channel)
    if COUNTS:
        return float64(channel[layout.sizes[0] - 1]) / float64(weight)
    return float64(channel[1] - weight * node.mean[0]) * layout.scale[0] / float64(weight)


@kernel
def before(scratch: Scratch, i: int, j: int) -> bool:
    """Whether the category at place i comes before that at place j."""
    a, b = scratch.value[i], scratch.value[j]
    return scratch.place[i] < scratch.place[j] if a == b else a < b


@kernel
def swap(scratch: Scratch, i: int, j: int) -> None:
    """Exchange two categories."""
    value, place = scratch.value[i], scratch.place[i]
    scratch.value[i], scratch.place[i] = scratch.value[j], scratch.place[j]
    scratch.value[j], scratch.place[j] = value, place


@kernel
def sift(scratch: Scratch, first: int, root: int, stop: int) -> None:
    """Let a category sink in the heap first .. stop - 1, the last in order on top."""
    while True:
        child = first + 2 * (root - first) + 1
        if child >= stop:
            return
        if child + 1 < stop and before(scratch, child, child + 1):
            child += 1
        if not before(scratch, root, child):
            return
        swap(scratch, root, child)
        root = child


@kernel
def sort_categories(scratch: Scratch, first: int, stop: int) -> None:
    """Heapsort: few categories are the rule, and many must not cost their square."""
    for root in range((first + stop) // 2, first - 1, -1):
        sift(scratch, first, root, stop)
    for last in range(stop - 1, first, -1):
        swap(scratch, first, last)
        sift(scratch, first, first, last)


@kernel
def search_subsets(job: Job, node: Node, feature: int, table: NDArray[int64], cells: int, random: bool) -> None:
    """The best cut of the categories in order of their means, or of numbers drawn for them."""
    scratch, channels = job.scratch, channels_of(job.layout)
    known = 1 if scratch.code[0] == 0 else 0
    largest = scratch.code[cells - 1]
    for i in range(cells):
        code = scratch.code[i]
        if code == 0:
            scratch.value[i] = -math.inf
        elif random:
            index = uint64(feature) << uint64(16) | uint64(code)
            scratch.value[i] = unit_of(drawn(node.key, CATEGORY_STREAM, index))
        else:
            channel = table[code * channels : (code + 1) * channels]
            scratch.value[i] = category_value(job, node, feature, code, channel)
    sort_categories(scratch, known, cells)
    for i in range(cells):
        scratch.code[i] = i + 1 - known
    point = draw_point(job, node, feature, cells) if random else math.nan
    found = scan_cuts(job, node, feature, table, cells, point)
    if found < 0:
        return
    if known and found == cells - 1:  # missing against known, as in numeric columns
        scratch.test[0, CUT] = largest
        scratch.figures[0, LOW] = math.inf
        return
    scratch.test[0, KIND] = LOOKUP
    scratch.test[0, CUT] = 0
    list_sides(scratch, known, cells, found)


@kernel
def list_sides(scratch: Scratch, known: int, cells: int, found: int) -> None:
    """List the categories in order of their codes: those up to the cell ``found`` go to branch 0."""
    for i in range(known, cells):
        scratch.value[i] = 0.0
        scratch.place[i] = 2 * scratch.place[i] + (1 if i > found else 0)
    sort_categories(scratch, known, cells)
    for i in range(known, cells):
        scratch.look_code[0, i - known] = uint16(scratch.place[i] // 2)
        scratch.look_branch[0, i - known] = uint16(scratch.place[i] % 2)
        scratch.place[i] //= 2
    scratch.test[0, CELLS] = cells - known
