"""One random threshold of a numeric column in a small node, straight from its rows: as `search_cuts` in a table."""

from __future__ import annotations

import math
from typing import Any

from numpy import float64, int32, int64, uint64
from numpy.typing import NDArray

from gputree.backends.cpu.cells import channels_of, outputs_of, weight_of
from gputree.backends.cpu.cuts import (
    BRANCHES,
    CUT,
    GAIN,
    KIND,
    LOW,
    MISSING,
    NO_BRANCH,
    SCORE,
    THRESHOLD,
    draw_between,
    draw_side,
    facts_of,
    pair_gain,
    parts_well,
    start_test,
    threshold,
)
from gputree.backends.cpu.formulas import COUNTS, PAIR
from gputree.backends.cpu.marks import borrow, kernel
from gputree.backends.cpu.numbers import on_grid
from gputree.backends.cpu.records import Job, Node


@kernel
def gather_codes(code: NDArray[int32], column: NDArray[Any], at: NDArray[Any]) -> tuple[int, int, int]:
    """Bring the codes of rows together; the least, the least of a value, the greatest.

    Where no value is known the second is greater than all codes.
    """
    lowest, least, greatest = int32(2147483647), int32(2147483647), int32(-1)
    for i in range(at.size):
        c = int32(column[at[i]])
        code[i] = c
        lowest = min(lowest, c)
        least = min(least, c if c > 0 else int32(2147483647))
        greatest = max(greatest, c)
    return int64(lowest), int64(least), int64(greatest)


@kernel
def add_between(job: Job, code: NDArray[int32], first: int, last: int, begin: int) -> tuple[int, int]:
    """Put the channels of rows with codes first .. last into `Scratch.left`; the codes on either side of the cut.

    The rows are those from position ``begin`` of the part on. Given are the greatest code up to last, the least after.
    """
    layout, part, left, n = job.layout, job.part, job.scratch.left, code.size
    weight = part.weight[begin : begin + n]
    cut, follow = int32(-1), int32(2147483647)
    low, high = int32(first), int32(last)
    for i in range(n):
        c = code[i]
        cut = max(cut, c if c <= high else int32(-1))
        follow = min(follow, c if c > high else int32(2147483647))
    if PAIR and COUNTS:
        label, total, second = part.label[0, begin : begin + n], int64(0), int64(0)
        for i in range(n):
            w = weight[i] if low <= code[i] <= high else int64(0)
            total += w
            second += w * int64(label[i])
        left[0], left[1] = total - second, second
        return int64(cut), int64(follow)
    for c in range(channels_of(layout)):
        left[c] = 0
    for o in range(outputs_of(layout)):
        channel = layout.first[o]
        if COUNTS:
            labels = part.label[o, begin : begin + n]
            for i in range(n):
                left[uint64(channel + int64(labels[i]))] += weight[i] if low <= code[i] <= high else int64(0)
        else:
            values = part.value[o, begin : begin + n]
            for i in range(n):
                left[channel] += values[i] if low <= code[i] <= high else int64(0)
    if not COUNTS:
        for i in range(n):
            left[0] += weight[i] if low <= code[i] <= high else int64(0)
    if 0 <= layout.rows < channels_of(layout):
        for i in range(n):
            left[layout.rows] += 1 if low <= code[i] <= high else 0
    return int64(cut), int64(follow)


@kernel
def last_below(values: NDArray[float64], low: int, high: int, point: float) -> int:
    """The last code whose value is at most a point: that of low is, that of high is not."""
    while high - low > 1:
        middle = (low + high) // 2
        if values[middle] <= point:
            low = middle
        else:
            high = middle
    return low


@kernel
def search_drawn(job: Job, node: Node, j: int, feature: int, span: tuple[int, int]) -> None:
    """The test of a random threshold in column j of a part, which holds a feature, over some rows of a node."""
    start_test(job, feature)
    scratch, part, meaning, node = job.scratch, job.part, job.meaning, borrow(node)
    values = meaning.values[meaning.offset[feature] :]
    code = scratch.branch[: span[1] - span[0]]
    lowest, least, last = gather_codes(code, part.column[j], part.at[span[0] : span[1]])
    if least > last or lowest == last:  # no value, or one and nothing else
        return
    point = draw_between(node.key, feature, values[least], values[last])
    first, missing, has_missing, parts = int64(1), int64(NO_BRANCH), lowest == 0, point < values[last]
    if has_missing:
        missing = draw_side(node.key, feature) if parts else int64(1)
        first = int64(1) if missing else int64(0)
    if parts:
        last = last_below(values, least, last, point)
    elif not (has_missing and job.rules.missing_alone):
        return
    cut, follow = add_between(job, code, first, last, span[0])
    weight = weight_of(job.layout, scratch.left)
    if not parts_well(job, node, feature, scratch.left, weight):
        return
    gain, score = pair_gain(facts_of(job.layout, node), scratch.left, weight)
    scratch.figures[0, SCORE], scratch.figures[0, GAIN] = on_grid(score, node.scale), gain
    scratch.test[0, KIND], scratch.test[0, BRANCHES] = THRESHOLD, 2
    scratch.test[0, CUT], scratch.test[0, MISSING] = cut, missing
    if not parts:
        scratch.figures[0, LOW] = math.inf
    elif meaning.exact[feature] != 0:
        scratch.figures[0, LOW] = point
    else:
        scratch.figures[0, LOW] = threshold(meaning, feature, cut, follow)
