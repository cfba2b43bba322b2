"""The best cut of one feature in one node: the scalar form of `gputree.backends.scan.CutScan`."""

from __future__ import annotations

import math

import numpy as np
from numpy import float64, int64, uint64
from numpy.typing import NDArray

from gputree.backends.cpu.cells import channels_of, classes_of, is_linked, outputs_of, rows_of, weight_of
from gputree.backends.cpu.formulas import COUNTS, FOLD_MAX, PAIR, POSITIVE_SUMS, gt_branch, gt_final, gt_info, gt_term
from gputree.backends.cpu.marks import kernel
from gputree.backends.cpu.numbers import below, drawn, on_grid, unit_of
from gputree.backends.cpu.records import Facts, Job, Layout, Listed, Meaning, Node, Rules, Scratch
from gputree.core.forest import Test
from gputree.core.keys import Stream
from gputree.core.splits import NOT_MET

THRESHOLD, LOOKUP = int(Test.THRESHOLD), int(Test.LOOKUP)
THRESHOLD_STREAM, SIDE_STREAM = np.uint64(Stream.THRESHOLD), np.uint64(Stream.SIDE)
_TWO = np.uint64(2)
SCORE, GAIN, LOW, POINT = 0, 1, 2, 3  # places in `Scratch.figures`
KIND, CUT, MISSING, BRANCHES, FEATURE, CELLS = 0, 1, 2, 3, 4, 5  # places in `Scratch.test`
NO_BRANCH = int(NOT_MET)


@kernel
def folded(sum_so_far: float, term: float) -> float:
    """Join a term to those before it."""
    return max(sum_so_far, term) if FOLD_MAX else sum_so_far + term


@kernel
def facts_of(layout: Layout, node: Node) -> Facts:
    """What `pair_gain` reads of a node."""
    return Facts(layout.first, layout.sizes, layout.scale, node.total, node.X, node.mean, node.parent, node.weight)


@kernel
def pair_gain(facts: Facts, left: NDArray[int64], weight: int) -> tuple[float, float]:
    """Gain and unrounded score of a test that sends channels ``left`` (C,) to one branch: `scan.score_pairs`."""
    rest = facts.weight - weight
    n, m, N = float64(weight), float64(rest), float64(facts.weight)
    gain, info = 0.0, 0.0
    for o in range(1 if PAIR else facts.first.size):
        first = 0 if PAIR and COUNTS else facts.first[o]
        s, t = 0.0, 0.0
        if COUNTS:
            for c in range(first, first + (2 if PAIR else facts.sizes[o])):
                x, X = float64(left[c]), facts.X[c]
                s = folded(s, gt_term(x, n, X, N))
                t = folded(t, gt_term(X - x, m, X, N))
        else:
            mean, X = facts.mean[o], facts.X[first]
            x = float64(left[first] - weight * mean) * facts.scale[o]
            y = float64((facts.total[first] - left[first]) - rest * mean) * facts.scale[o]
            s = folded(s, gt_term(x, n, X, N))
            t = folded(t, gt_term(y, m, X, N))
        gain += ((0.0 + gt_branch(s, n, N)) + gt_branch(t, m, N)) - facts.parent[o]
        info = pair_info(weight, rest, N)
    return gain, gt_final(gain, info, N)


@kernel
def pair_info(weight: int, rest: int, N: float) -> float:
    """Information of a test whose two branches have these weights."""
    return (0.0 + gt_info(float64(weight), N)) + gt_info(float64(rest), N)


@kernel
def is_limited(rules: Rules, feature: int) -> bool:
    """Whether `admissible` has anything to say."""
    return POSITIVE_SUMS or (rules.monotone.size > 0 and rules.monotone[feature] != 0)


@kernel
def admissible(job: Job, node: Node, feature: int, left: NDArray[int64]) -> bool:
    """Whether the criterion and the monotone constraints allow a test."""
    layout, rules = job.layout, job.rules
    if POSITIVE_SUMS:
        for o in range(outputs_of(layout)):
            if left[1 + o] <= 0 or node.total[1 + o] - left[1 + o] <= 0:
                return False
    if rules.monotone.size == 0 or rules.monotone[feature] == 0:
        return True
    weight = weight_of(layout, left)
    a = float64(left[1]) / float64(weight)
    b = float64(node.total[1] - left[1]) / float64(node.weight - weight)
    if min(a, b) < node.low or max(a, b) > node.high:
        return False
    return a <= b if rules.monotone[feature] > 0 else a >= b


@kernel
def parts_well(job: Job, node: Node, feature: int, left: NDArray[int64], weight: int) -> bool:
    """Whether both branches are allowed of a test that sends channels ``left`` (C,) of this weight to one."""
    rules = job.rules
    if min(weight, node.weight - weight) < rules.min_weight:
        return False
    if rules.min_rows > 1 and min(rows_of(job.layout, left), node.rows - rows_of(job.layout, left)) < rules.min_rows:
        return False
    return admissible(job, node, feature, left)


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
    scratch.test[0, MISSING] = NO_BRANCH
    scratch.test[0, BRANCHES] = 0
    scratch.test[0, FEATURE] = feature
    scratch.test[0, CELLS] = 0


@kernel
def listed_of(job: Job, table: NDArray[int64]) -> Listed:
    """What `join` reads."""
    counted = job.layout.rows if job.layout.rows < channels_of(job.layout) else int64(-1)
    return Listed(job.part.label[0], job.part.weight, table.size - job.part.at.size, counted)


@kernel
def join(listed: Listed, table: NDArray[int64], code: int, left: NDArray[int64]) -> int:
    """Add the rows that are listed at a code to channels (C,); their weight."""
    total, k = int64(0), table[uint64(code)]
    while k:
        row = uint64(k - 1)
        weight = listed.weight[row]
        left[uint64(listed.label[row])] += weight
        if listed.counted >= 0:
            left[listed.counted] += 1
        total += weight
        k = table[uint64(listed.behind) + row]
    return total


@kernel
def scan_cuts(job: Job, node: Node, feature: int, table: NDArray[int64], cells: int, point: float) -> int:
    """The first best cut between cells: missing values right, then alone, then left; the cell before it, or -1.

    A ``point`` that is not NaN admits only the cut between the values around it, with missing values on the side drawn
    for them; where it parts no known values, missing ones stand against them.
    """
    scratch = job.scratch
    known = int64(1) if scratch.code[0] == 0 else int64(0)
    alone = 1 if known and cells > 1 and job.rules.missing_alone else 0
    side = int64(-1)  # drawn branch of missing values; -1: either
    if known and not math.isnan(point) and point < scratch.value[cells - 1]:
        alone, side = 0, draw_side(node.key, feature)
    left, place, channels = scratch.left, scratch.place, channels_of(job.layout)
    for c in range(channels):
        left[c] = 0
    right = int64(1) if known else int64(NO_BRANCH)
    found = int64(-1)
    if side != 0:
        found = scan_family(job, node, (feature, known, cells - 1 + alone, right, cells), table, point)
    if known and side != 1:
        linked, cell = is_linked(job, feature), place[0] * channels
        for c in range(channels):
            left[c] = 0 if linked else table[cell + c]
        if linked:
            join(listed_of(job, table), table, place[0], left)
        other = scan_family(job, node, (feature, known, cells - 1, int64(0), cells), table, point)
        found = other if other >= 0 else found
    return found


@kernel
def scan_family(
    job: Job, node: Node, family: tuple[int, int, int, int, int], table: NDArray[int64], point: float
) -> int:
    """The first cut that beats what is found so far, after the best of cells first .. stop - 1, or -1.

    family: feature, first, stop, the branch of missing values, all cells. ``scratch.left`` holds what is left of the
    first cell. Of scores on one grid none that is not greater before rounding is greater after it: few are rounded.
    """
    feature, first, stop, missing, cells = family
    scratch, layout, least, lightest = job.scratch, job.layout, job.rules.min_rows, job.rules.min_weight
    left, place, value, channels = scratch.left, scratch.place, scratch.value, channels_of(layout)
    facts, limited, at_point = facts_of(layout, node), is_limited(job.rules, feature), not math.isnan(point)
    classes, counted = classes_of(layout), layout.rows if layout.rows < channels else -1
    best, unrounded, gain_of_best, found = scratch.figures[0, SCORE], scratch.figures[0, POINT], 0.0, int64(-1)
    weight, scale, all_rows = weight_of(layout, left), node.scale, node.rows
    linked, listed = is_linked(job, feature), listed_of(job, table)
    for i in range(first, stop):
        cell = place[i] * channels
        for c in range(0 if linked else channels):
            left[c] += table[cell + c]
        for c in range(0 if linked else classes):
            weight += table[cell + c]
        if linked:
            weight += join(listed, table, place[i], left)
        rows = left[counted] if counted >= 0 else weight
        if least > 1 and min(rows, all_rows - rows) < least:
            continue
        if min(weight, facts.weight - weight) < lightest or (limited and not admissible(job, node, feature, left)):
            continue
        if at_point and i + 1 < cells and not (value[i] <= point < value[i + 1]):
            continue
        gain, score = pair_gain(facts, left, weight)
        if score > unrounded:
            unrounded, score = score, on_grid(score, scale)
            if score > best:
                best, gain_of_best, found = score, gain, i
    scratch.figures[0, POINT] = unrounded
    if found >= 0:
        note_cut(scratch, best, gain_of_best, found, missing)
    return found


@kernel
def note_cut(scratch: Scratch, score: float, gain: float, cell: int, missing: int) -> None:
    """Write down the cut behind a cell."""
    scratch.figures[0, SCORE], scratch.figures[0, GAIN] = score, gain
    scratch.test[0, KIND], scratch.test[0, BRANCHES] = THRESHOLD, 2
    scratch.test[0, CUT], scratch.test[0, MISSING] = scratch.code[cell], missing


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
    return draw_between(node.key, feature, scratch.value[first], scratch.value[cells - 1])


@kernel
def draw_between(key: np.uint64, feature: int, low: float, high: float) -> float:
    """A uniform number from ``low`` on, below ``high``."""
    u = unit_of(drawn(key, THRESHOLD_STREAM, uint64(feature)))
    t = low * (1.0 - u) + high * u
    return t if low <= t < high else low


@kernel
def draw_side(key: np.uint64, feature: int) -> int:
    """The branch of missing values: `scan.draw_sides`."""
    return int64(below(drawn(key, SIDE_STREAM, uint64(feature)), _TWO))


@kernel
def search_cuts(job: Job, node: Node, feature: int, table: NDArray[int64], cells: int, random: bool) -> None:
    """The best threshold of a numeric feature."""
    scratch, meaning = job.scratch, job.meaning
    point = math.nan
    if random:
        for i in range(cells):
            scratch.value[i] = meaning.values[meaning.offset[feature] + scratch.code[i]]
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
