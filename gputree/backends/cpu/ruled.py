"""Cuts that pay for the number of those tried, and scores of splits that set rows aside: scalar forms of `scan`'s."""

from __future__ import annotations

import math

from numpy import float64, int64
from numpy.typing import NDArray

from gputree.backends.cpu.cells import channels_of, classes_of, rows_of
from gputree.backends.cpu.cuts import MISSING, admissible, facts_of, is_limited, note_cut, pair_gain, pair_info
from gputree.backends.cpu.formulas import gt_final, gt_info
from gputree.backends.cpu.marks import kernel
from gputree.backends.cpu.numbers import gt_log2, on_grid
from gputree.backends.cpu.records import Job, Node, Rules
from gputree.core.splits import COUNTED

CASE, SHARE, LEAST, MOST, SLACK, GAP = 0, 1, 2, 3, 4, 5  # places in `Rules.cuts`
_COUNTED = float(COUNTED)


@kernel
def judged(rules: Rules, node: Node, gain: float, info: float) -> float:
    """As `nodes.Nodes.judged`."""
    info += node.aside
    gain = on_grid(gain, node.gain_scale) if rules.cuts.size else gain
    score = on_grid(gt_final(gain, info, node.whole), node.scale)
    small = rules.min_info > 0.0 and not gt_info(node.whole, node.whole) - info > rules.min_info * node.whole
    return _COUNTED if small else score


@kernel
def least_side(rules: Rules, known: float) -> float:
    """As `splits.CutRule.side`."""
    cuts, share = rules.cuts, rules.cuts[SHARE] * known
    return (cuts[LEAST] if share <= cuts[LEAST] else min(share, cuts[MOST])) - cuts[SLACK]


@kernel
def scan_ruled(job: Job, node: Node, feature: int, table: NDArray[int64], cells: int) -> int:
    """The first cut of greatest gain after what it pays, as `scan.CutScan.best` finds it; the cell before it, or -1."""
    scratch, layout, rules, values = job.scratch, job.layout, job.rules, job.meaning.values
    known, channels, classes = int64(1) if scratch.code[0] == 0 else int64(0), channels_of(layout), classes_of(layout)
    left, place, code = scratch.left, scratch.place, scratch.code
    gap, first = rules.cuts[GAP], job.meaning.offset[feature]
    facts, limited, side = facts_of(layout, node), is_limited(rules, feature), least_side(rules, node.N)
    best, unrounded, gain_of_best, found = -math.inf, -math.inf, 0.0, int64(-1)
    weight, heavy, tries = int64(0), int64(0), int64(0)
    for c in range(channels):
        left[c] = 0
    for i in range(known, cells - 1):
        for c in range(channels):
            left[c] += table[place[i] * channels + c]
        for c in range(classes):
            weight += table[place[i] * channels + c]
        if float64(min(weight, facts.weight - weight)) < side:
            continue
        if not values[first + code[i]] < values[first + code[i + 1]] - gap:
            continue
        if rules.min_rows > 1 and min(rows_of(layout, left), node.rows - rows_of(layout, left)) < rules.min_rows:
            continue
        if limited and not admissible(job, node, feature, left):
            continue
        tries += 1
        gain = pair_gain(facts, left, weight)[0]
        if gain > unrounded:
            unrounded, rounded = gain, on_grid(gain, node.gain_scale)
            if rounded > best:
                best, gain_of_best, found, heavy = rounded, gain, i, weight
    if found < 0:
        return found
    paid = on_grid(gain_of_best - rules.cuts[CASE] * gt_log2(float64(tries)), node.gain_scale)
    if paid <= 0.0:
        return int64(-1)
    info = pair_info(heavy, facts.weight - heavy, node.N)
    note_cut(scratch, judged(rules, node, paid, info), paid, found, scratch.test[0, MISSING])
    return found
