"""The best cut of one feature in one node: the scalar form of `gputree.backends.scan.CutScan`."""

from __future__ import annotations

import math

import numpy as np
from numpy import float64, int64
from numpy.typing import NDArray

from gputree.backends.cpu.cells import rows_of, weight_of
from gputree.backends.cpu.formulas import FOLD_MAX, POSITIVE_SUMS, gt_branch, gt_final, gt_info, gt_term
from gputree.backends.cpu.marks import kernel
from gputree.backends.cpu.numbers import drawn, on_grid, unit_of
from gputree.backends.cpu.records import Job, Layout, Meaning, Node
from gputree.core.forest import Test
from gputree.core.keys import Stream
from gputree.core.splits import NOT_MET

THRESHOLD, LOOKUP = int(Test.THRESHOLD), int(Test.LOOKUP)
THRESHOLD_STREAM = np.uint64(Stream.THRESHOLD)
SCORE, GAIN, LOW, POINT = 0, 1, 2, 3  # places in `Scratch.figures`
KIND, CUT, MISSING, BRANCHES, FEATURE, CELLS = 0, 1, 2, 3, 4, 5  # places in `Scratch.test`
_NOT_MET = int(NOT_MET)


@kernel
def folded(sum_so_far: float, term: float) -> float:
    """Join a term to those before it."""
    return max(sum_so_far, term) if FOLD_MAX else sum_so_far + term


@kernel
def pair_gain(layout: Layout, node: Node, left: NDArray[int64]) -> tuple[float, float]:
    """Gain and unrounded score of a test that sends channels ``left`` (C,) to one branch: `scan.score_pairs`."""
    weight = weight_of(layout, left)
    rest = node.weight - weight
    n, m, N = float64(weight), float64(rest), node.N
    gain, info = 0.0, 0.0
    for o in range(layout.first.size):
        first = layout.first[o]
        s, t = 0.0, 0.0
        if layout.counts:
            for c in range(first, first + layout.sizes[o]):
                x, X = float64(left[c]), node.X[c]
                s = folded(s, gt_term(x, n, X, N))
                t = folded(t, gt_term(X - x, m, X, N))
        else:
            mean = node.mean[o]
            x = float64(left[first] - weight * mean) * layout.scale[o]
            y = float64((node.total[first] - left[first]) - rest * mean) * layout.scale[o]
            s = folded(s, gt_term(x, n, node.X[first], N))
            t = folded(t, gt_term(y, m, node.X[first], N))
        gain += ((0.0 + gt_branch(s, n, N)) + gt_branch(t, m, N)) - node.parent[o]
        info = (0.0 + gt_info(n, N)) + gt_info(m, N)
    return gain, gt_final(gain, info, N)


@kernel
def admissible(job: Job, node: Node, feature: int, left: NDArray[int64]) -> bool:
    """Whether limits, criterion and monotone constraints allow a test."""
    layout, rules = job.layout, job.rules
    if rules.min_rows > 1:
        rows = rows_of(layout, left)
        if rows < rules.min_rows or node.rows - rows < rules.min_rows:
            return False
    weight = weight_of(layout, left)
    if rules.min_weight > 1 and (weight < rules.min_weight or node.weight - weight < rules.min_weight):
        return False
    if POSITIVE_SUMS:
        for o in range(layout.first.size):
            if left[1 + o] <= 0 or node.total[1 + o] - left[1 + o] <= 0:
                return False
    if rules.monotone.size == 0 or rules.monotone[feature] == 0:
        return True
    a = float64(left[1]) / float64(weight)
    b = float64(node.total[1] - left[1]) / float64(node.weight - weight)
    if min(a, b) < node.low or max(a, b) > node.high:
        return False
    return a <= b if rules.monotone[feature] > 0 else a >= b


@kernel
def consider(job: Job, node: Node, feature: int, cut: int, missing: int) -> bool:
    """Take the test that sends ``scratch.left`` to one branch if it is strictly better than what is found so far.

    Of scores on one grid none that is not greater before rounding is greater after it: most are not rounded.
    """
    scratch = job.scratch
    if not admissible(job, node, feature, scratch.left):
        return False
    gain, score = pair_gain(job.layout, node, scratch.left)
    if not score > scratch.figures[0, POINT]:
        return False
    scratch.figures[0, POINT] = score
    score = on_grid(score, node.scale)
    if not score > scratch.figures[0, SCORE]:
        return False
    scratch.figures[0, SCORE] = score
    scratch.figures[0, GAIN] = gain
    scratch.test[0, KIND] = THRESHOLD
    scratch.test[0, CUT] = cut
    scratch.test[0, MISSING] = missing
    scratch.test[0, BRANCHES] = 2
    return True


@kernel
def start_test(job: Job, feature: int) -> None:
    """Nothing found yet."""
    scratch = job.scratch
    scratch.figures[0, SCORE] = -math.inf
    scratch.figures[0, POINT] = -math.inf
    scratch.figures[0, GAIN] = 0.0
    scratch.figures[0, LOW] = 0.0
    scratch.test[0, KIND] = 0
    scratch.test[0, CUT] = 0
    scratch.test[0, MISSING] = _NOT_MET
    scratch.test[0, BRANCHES] = 0
    scratch.test[0, FEATURE] = feature
    scratch.test[0, CELLS] = 0


@kernel
def take_cells(job: Job, table: NDArray[int64], first: int, stop: int) -> None:
    """Add cells to the left side."""
    scratch, channels = job.scratch, job.layout.table
    left = scratch.left
    for i in range(first, stop):
        place = scratch.place[i] * channels
        for c in range(channels):
            left[c] += table[place + c]


@kernel
def scan_cuts(job: Job, node: Node, feature: int, table: NDArray[int64], cells: int, point: float) -> int:
    """The first best cut between cells: missing values right, then alone, then left; the cell before it, or -1.

    A ``point`` that is not NaN admits only the cut between the values around it.
    """
    scratch = job.scratch
    drawn_point = not math.isnan(point)
    known = 1 if scratch.code[0] == 0 else 0
    found = -1
    for family in range(1 + known):
        for c in range(scratch.left.size):
            scratch.left[c] = 0
        if family == 1:
            take_cells(job, table, int64(0), int64(1))
        missing = int64(1 - family if known else _NOT_MET)
        for i in range(known, cells - 1):
            take_cells(job, table, i, i + 1)
            if drawn_point and not (scratch.value[i] <= point < scratch.value[i + 1]):
                continue
            if consider(job, node, feature, scratch.code[i], missing):
                found = i
        if family == 0 and known and cells > 1 and job.rules.missing_alone:
            take_cells(job, table, cells - 1, cells)
            if consider(job, node, feature, scratch.code[cells - 1], missing):
                found = cells - 1
    return found


@kernel
def threshold(meaning: Meaning, feature: int, cut: int, follow: int) -> float:
    """As `schema.Book.thresholds`."""
    base = meaning.offset[feature]
    if meaning.exact[feature] == 0:
        return meaning.edges[base + (cut + follow - 1) // 2]
    a, b = meaning.values[base + cut], meaning.values[base + follow]
    t = a / 2 + b / 2
    return t if a <= t < b else a


@kernel
def draw_point(job: Job, node: Node, feature: int, cells: int) -> float:
    """As `scan.draw_thresholds`: a uniform number between the least and the largest value of known cells."""
    scratch = job.scratch
    first = min(1 if scratch.code[0] == 0 else 0, cells - 1)
    low, high = scratch.value[first], scratch.value[cells - 1]
    u = unit_of(drawn(node.key, THRESHOLD_STREAM, np.uint64(feature)))
    t = low * (1.0 - u) + high * u
    return t if low <= t < high else low


@kernel
def search_cuts(job: Job, node: Node, feature: int, table: NDArray[int64], cells: int, random: bool) -> None:
    """The best threshold of a numeric feature."""
    scratch, meaning = job.scratch, job.meaning
    point = math.nan
    for i in range(cells):
        scratch.place[i] = scratch.code[i]
        if random:
            scratch.value[i] = meaning.values[meaning.offset[feature] + scratch.code[i]]
    if random:
        point = draw_point(job, node, feature, cells)
    i = scan_cuts(job, node, feature, table, cells, point)
    if i < 0:
        return
    if i == cells - 1:
        scratch.figures[0, LOW] = math.inf
    elif random and meaning.exact[feature] != 0:
        scratch.figures[0, LOW] = point
    else:
        scratch.figures[0, LOW] = threshold(meaning, feature, scratch.code[i], scratch.code[i + 1])
