"""Search on the NumPy backend: from cells to the best test of every segment. May import core.

Within a segment the order of candidates is the tie rule: missing to the right, then the lowest cut (the test "known or
missing" is the highest cut of all), then missing to the left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cells import Cells
from gputree.backends.groups import scan_groups
from gputree.backends.nodes import Found, Lookup, Nodes, Segments, blank, branch_gains, first_best, pair_gains
from gputree.core.forest import Test
from gputree.core.keys import Stream, below, draw, unit
from gputree.core.scores import grid
from gputree.core.splits import NOT_MET, CutRule, Missing, Scan, Slots

BLOCK = 1 << 20  # channels of cuts scored at once: the temporaries of many classes stay small
NO_CUTS = np.zeros(0, np.intp), np.zeros(0), np.zeros(0)


def scan_cells(cells: Cells, m: int, nodes: Nodes) -> Iterator[tuple[Found, Lookup | None]]:
    """The best tests of the cells' pairs, in the order in which ties are won."""
    scan = nodes.search.scan(int(cells.book.kind[cells.feature[0]]))
    own = Segments(cells, cells.pairs // m, nodes, cells.pairs[:0])
    if scan is not None and cells.code.size and nodes.search.missing is Missing.SPREAD:
        own = own.known()
    if scan is not None and own.cells.code.size:
        for found, lookup in scan_segments(own, scan):
            yield own.marked(found), lookup


def scan_segments(own: Segments, scan: Scan) -> Iterator[tuple[Found, Lookup | None]]:
    """The tests of one way to search."""
    cells, slot, nodes = own.cells, own.slot, own.nodes
    if scan is Scan.BRANCHES and nodes.search.groups is not None:
        yield scan_groups(cells, slot, nodes, nodes.search.groups)
    elif scan is Scan.BRANCHES:
        yield scan_branches(cells, slot, nodes)
    elif scan is Scan.ONE_AGAINST_REST:
        yield scan_rest(cells, slot, nodes)
    elif scan in (Scan.SUBSETS, Scan.ONE_SUBSET):
        yield scan_subsets(cells, slot, nodes, scan)
    else:
        value = raw_values(cells) if scan is Scan.ONE_CUT else None
        for found in CutScan.of(cells, slot, nodes, value, nodes.search.cuts).found():
            yield found, None


@dataclass(frozen=True, slots=True)
class CutScan:
    """Cuts after known codes of each segment; what lies left of one is a running sum less the segment's base.

    ``value`` f8 (M,), which ascends with the code, is what random thresholds ``drawn`` (S,) are compared with; missing
    values then take a side that is drawn, too, and stand against known ones where the threshold parts none. With a
    ``rule`` the cut is the first of greatest gain, and pays for the others.
    """

    cells: Cells
    slot: NDArray[np.int64]  # (S,) slot of each segment
    nodes: Nodes
    running: NDArray[np.int64]  # (C, M) running sums over all cells
    before: NDArray[np.int64]  # (C, S) running sums before each segment
    has_missing: NDArray[np.bool_]  # (S,)
    value: NDArray[np.float64] | None
    drawn: NDArray[np.float64] | None
    rule: CutRule | None = None

    @classmethod
    def of(
        cls,
        cells: Cells,
        slot: NDArray[np.int64],
        nodes: Nodes,
        value: NDArray[np.float64] | None,
        rule: CutRule | None = None,
    ) -> CutScan:
        """All cuts, or with values one random threshold a segment."""
        running = np.cumsum(cells.stats, axis=1)
        first = cells.ptr[:-1]
        drawn = None if value is None else draw_thresholds(cells, slot, nodes.slots, value)
        before = running[:, first] - cells.stats[:, first]
        return cls(cells, slot, nodes, running, before, cells.code[first] == 0, value, drawn, rule)

    def found(self) -> Iterator[Found]:
        """The three families in order: missing right, known against missing, missing left."""
        cells, missing = self.cells, self.has_missing
        at = self.inner_cuts()
        if not missing.any():
            yield self.best(at, self.before, 1)
            return
        known = self.before + np.where(missing, cells.stats[:, cells.ptr[:-1]], 0)
        last = cells.ptr[1:] - 1
        right, alone, left = at, last[missing & (cells.code[last] > 0)], at[missing[cells.seg[at]]]
        if self.drawn is not None and self.value is not None:  # one test, too, with missing values
            to_right = draw_sides(cells, self.slot, self.nodes.slots)
            right, left = at[(to_right | ~missing)[cells.seg[at]]], left[~to_right[cells.seg[left]]]
            alone = alone[self.value[alone] <= self.drawn[cells.seg[alone]]]
        yield self.best(right, known, 1)
        if self.nodes.search.limits.missing_alone:
            yield self.best(alone, known, 1, np.inf)
        yield self.best(left, self.before, 0)

    def inner_cuts(self) -> NDArray[np.intp]:
        """Cells followed by another known cell of their segment; where thresholds are drawn, those next to them."""
        cells = self.cells
        inner = (cells.seg[:-1] == cells.seg[1:]) & (cells.code[:-1] > 0)
        if self.drawn is not None and self.value is not None:
            drawn = self.drawn[cells.seg[:-1]]
            inner &= (self.value[:-1] <= drawn) & (self.value[1:] > drawn)
        if self.rule is not None:
            value = raw_values(cells)
            inner &= value[:-1] < value[1:] - self.rule.gap
        return np.flatnonzero(inner)

    def best(self, at: NDArray[np.intp], base: NDArray[np.int64], missing: int, low: float | None = None) -> Found:
        """The first best of every segment among cuts after the cells ``at`` (P,), ascending.

        base (C, S) is not part of the left side; ``missing`` is the branch of missing values; ``low`` replaces the
        threshold.
        """
        at = at[self.large_enough(at, base)]
        block = max(1, BLOCK // self.nodes.layout.n_channels)
        parts = [self.scored(at[first : first + block], base) for first in range(0, at.size, block)]
        at, gain, info = (np.concatenate(column) for column in zip(NO_CUTS, *parts, strict=True))
        pick, gain, score = self.picked(self.cells.seg[at], gain, info)
        at = at[pick]
        seg = self.cells.seg[at]
        return Found(
            self.cells.pairs[seg],
            score,
            gain,
            np.full(pick.size, Test.THRESHOLD, np.uint8),
            self.cells.code[at].astype(np.int32),
            self.thresholds(seg, at) if low is None else np.full(pick.size, low),
            np.where(self.has_missing[seg], np.int32(missing), np.int32(NOT_MET)),
            np.full(pick.size, 2, np.int32),
        )

    def scored(
        self, at: NDArray[np.intp], base: NDArray[np.int64]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
        """The allowed ones of some cuts, their gains, and their scores, or with a rule their information."""
        seg = self.cells.seg[at]
        left = self.running[:, at] - base[:, seg]
        fine = self.allowed(seg, left)
        if fine is not None:
            at, seg, left = at[fine], seg[fine], left[:, fine]
        gain, info = pair_gains(self.nodes, self.slot[seg], left)
        return at, gain, info if self.rule is not None else self.nodes.judged(self.slot[seg], gain, info)

    def picked(
        self, seg: NDArray[np.int64], gain: NDArray[np.float64], found: NDArray[np.float64]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
        """Places of the best cuts, one a segment, their gains and scores; ``found`` as `scored` gives it."""
        if self.rule is None:
            pick = first_best(seg, found)
            return pick, gain[pick], found[pick]
        nodes, slot = self.nodes, self.slot[seg]
        scale = nodes.layout.cancelling(nodes.search.criterion, nodes.slots.stats, gain=True)
        pick = first_best(seg, grid(gain, scale[slot]))
        slot, tries = slot[pick], np.bincount(seg)[seg[pick]] if seg.size else seg
        left = grid(gain[pick] - self.rule.cost(tries.astype(np.float64)), scale[slot])
        return pick, left, np.where(left > 0, nodes.judged(slot, left, found[pick]), -np.inf)

    def large_enough(self, at: NDArray[np.intp], base: NDArray[np.int64]) -> NDArray[np.bool_] | slice:
        """Cuts with enough rows and weight on both sides."""
        layout, limits, seg = self.nodes.layout, self.nodes.search.limits, self.cells.seg[at]
        least: list[tuple[Any, Callable[[NDArray[np.int64]], NDArray[np.int64]]]] = []
        if limits.min_rows > 1:  # every cut has something on both sides
            least.append((limits.min_rows, layout.count))
        if self.rule is not None:
            least.append((self.rule.side(self.nodes.weight.astype(np.float64))[self.slot[seg]], layout.weight))
        elif limits.min_weight > 1:
            least.append((limits.min_weight, layout.weight))
        fine = np.ones(at.size, bool)
        for bound, measure in least:
            left = measure(self.running)[at] - measure(base)[seg]
            whole = measure(self.nodes.slots.stats)[self.slot[seg]]
            fine &= (left >= bound) & (whole - left >= bound)
        return fine if least else slice(None)

    def allowed(self, seg: NDArray[np.int64], left: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Which cuts the criterion and the monotone constraints allow, None for all."""
        layout, monotone = self.nodes.layout, self.nodes.search.limits.monotone
        positive = self.nodes.search.criterion.positive_sums
        if monotone is None and not positive:
            return None
        right = self.nodes.slots.stats[:, self.slot[seg]] - left
        fine = np.ones(seg.size, bool)
        if positive:
            fine &= (np.minimum(left, right)[1 : 1 + layout.n_outputs] > 0).all(axis=0)
        if monotone is not None:
            sign = monotone[self.cells.feature[seg]]
            a, b = left[1] / layout.weight(left), right[1] / layout.weight(right)  # class 1's share, or the mean
            lower, upper = self.nodes.slots.bounds[:, self.slot[seg]]
            held = (np.minimum(a, b) >= lower) & (np.maximum(a, b) <= upper) & np.where(sign > 0, a <= b, a >= b)
            fine &= held | (sign == 0)  # a free feature may leave the bounds: the values are held inside afterwards
        return fine

    def thresholds(self, seg: NDArray[np.int64], at: NDArray[np.intp]) -> NDArray[np.float64]:
        """Raw thresholds of cuts after the cells ``at``; without a meaning in columns of categories."""
        feature, book = self.cells.feature[seg], self.cells.book
        low = book.thresholds(feature, self.cells.code[at], self.cells.code[at + 1])
        return low if self.drawn is None else np.where(book.exact[feature], self.drawn[seg], low)


def raw_values(cells: Cells) -> NDArray[np.float64]:
    """The value that stands for each cell's code; -inf for missing."""
    value: NDArray[np.float64] = cells.book.values[cells.book.offset[cells.feature[cells.seg]] + cells.code]
    return value


def draw_thresholds(
    cells: Cells, slot: NDArray[np.int64], slots: Slots, value: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A uniform threshold between the smallest and largest known value of every segment, below the largest."""
    last = cells.ptr[1:] - 1
    first = np.minimum(cells.ptr[:-1] + (cells.code[cells.ptr[:-1]] == 0), last)
    u = unit(draw(slots.key[slot], Stream.THRESHOLD, cells.feature.astype(np.uint64)))
    low, high = value[first], value[last]
    with np.errstate(invalid="ignore"):
        t = low * (1.0 - u) + high * u
        inside: NDArray[np.float64] = np.where((t >= low) & (t < high), t, low)
        return inside


def draw_sides(cells: Cells, slot: NDArray[np.int64], slots: Slots) -> NDArray[np.bool_]:
    """Whether missing values go right, for every segment."""
    to_right: NDArray[np.bool_] = below(draw(slots.key[slot], Stream.SIDE, cells.feature.astype(np.uint64)), 2) == 1
    return to_right


def scan_branches(cells: Cells, slot: NDArray[np.int64], nodes: Nodes) -> tuple[Found, Lookup]:
    """One test a segment: a branch for every category that was declared, or else met, and one for missing values."""
    layout, limits, criterion = nodes.layout, nodes.search.limits, nodes.search.criterion
    has_missing = cells.code[cells.ptr[:-1]] == 0
    met, declared = np.diff(cells.ptr), cells.book.declared[cells.feature]
    count = np.where(declared > 0, declared + has_missing, met)
    fine = np.minimum.reduceat(layout.count(cells.stats), cells.ptr[:-1]) >= limits.min_rows
    heavy = np.add.reduceat(layout.weight(cells.stats) >= limits.min_weight, cells.ptr[:-1], dtype=np.int64)
    fine &= heavy >= (met if limits.heavy is None else limits.heavy)
    fine &= (met >= limits.least_met) & (count >= 2) & ((count == 2) | (not criterion.two_branches))
    if criterion.positive_sums:
        sums = cells.stats[1 : 1 + layout.n_outputs].min(axis=0)
        fine &= np.minimum.reduceat(sums, cells.ptr[:-1]) > 0
    if limits.max_branches is not None:
        fine &= count <= limits.max_branches
    gain, info = branch_gains(cells, slot, nodes)
    found = Found(
        cells.pairs,
        np.where(fine, nodes.judged(slot, gain, info), -np.inf),
        gain,
        np.full(slot.size, Test.LOOKUP, np.uint8),
        np.zeros(slot.size, np.int32),
        np.zeros(slot.size),
        np.where(has_missing, count - 1, NOT_MET).astype(np.int32),
        count.astype(np.int32),
    )
    return found, branch_lookup(cells, has_missing, fine)


def branch_lookup(cells: Cells, has_missing: NDArray[np.bool_], fine: NDArray[np.bool_]) -> Lookup:
    """The branch of every category: of declared ones their place among all of them, of others among those met.

    Only the segments ``fine`` (S,) have a test, and thus cells.
    """
    declared = np.where(fine, cells.book.declared[cells.feature], 0)
    listed = fine & (declared == 0)
    known = np.flatnonzero((cells.code > 0) & listed[cells.seg])
    seg = np.repeat(np.arange(declared.size), declared)
    place = np.arange(seg.size) - (np.cumsum(declared) - declared)[seg]
    return (
        np.concatenate([cells.pairs[cells.seg[known]], cells.pairs[seg]]),
        np.concatenate([cells.code[known], place + 1]),
        np.concatenate([known - (cells.ptr[:-1] + has_missing)[cells.seg[known]], place]),
    )


def scan_subsets(cells: Cells, slot: NDArray[np.int64], nodes: Nodes, scan: Scan) -> tuple[Found, Lookup]:
    """The best cut of every segment's categories in order of their means, or of numbers drawn for them.

    Among all ways to part the categories in two, one of these cuts has the greatest gain if there are two classes or
    one number (Breiman, Friedman, Olshen and Stone 1984, theorem 4.5); least rows or weights of a side may forbid it.
    """
    random = scan is Scan.ONE_SUBSET
    value = drawn_values(cells, slot, nodes.slots) if random else target_means(cells, slot, nodes)
    order = np.lexsort((cells.code, np.where(cells.code == 0, -np.inf, value), cells.seg))
    has_missing = cells.code[cells.ptr[:-1]] == 0
    ranked = replace(
        cells,
        pairs=np.arange(slot.size),
        code=np.arange(order.size) - cells.ptr[cells.seg] + ~has_missing[cells.seg],
        stats=cells.stats[:, order],
    )
    best = blank(slot.size)
    for found in CutScan.of(ranked, slot, nodes, value[order] if random else None).found():
        best.put(found)
    alone = best.low == np.inf  # missing against known, as in numeric columns
    rank = np.empty(order.size, np.int64)
    rank[order] = ranked.code
    listed = np.flatnonzero((cells.code > 0) & ((best.score > -np.inf) & ~alone)[cells.seg])
    seg = cells.seg[listed]
    lookup = cells.pairs[seg], cells.code[listed], (rank[listed] > best.cut[seg]).astype(np.int64)
    return replace(
        best,
        pair=cells.pairs,
        kind=np.where(alone, best.kind, Test.LOOKUP).astype(np.uint8),
        cut=np.where(alone, cells.code[cells.ptr[1:] - 1], 0).astype(np.int32),
        low=np.where(alone, np.inf, 0.0),
    ), lookup


def target_means(cells: Cells, slot: NDArray[np.int64], nodes: Nodes) -> NDArray[np.float64]:
    """Share of the second class, or mean about that of the node, of every cell; 0 where no single number says it."""
    layout = nodes.layout
    if layout.n_outputs > 1 or (layout.counts and layout.sizes[0] > 2):
        return np.zeros(cells.code.size)
    weight = layout.weight(cells.stats)
    x = layout.floats(cells.stats, 0, weight, nodes.mean[0][slot[cells.seg]])
    mean: NDArray[np.float64] = x[-1] / weight
    return mean


def drawn_values(cells: Cells, slot: NDArray[np.int64], slots: Slots) -> NDArray[np.float64]:
    """A number in [0, 1) for every category of a node, drawn from the node's key."""
    index = cells.feature[cells.seg].astype(np.uint64) << np.uint64(16) | cells.code.astype(np.uint64)
    return unit(draw(slots.key[slot[cells.seg]], Stream.CATEGORY, index))


def scan_rest(cells: Cells, slot: NDArray[np.int64], nodes: Nodes) -> tuple[Found, Lookup]:
    """One category of every segment against the others that the node met and missing values: branch 0 against 1."""
    numbered = replace(cells, pairs=np.arange(slot.size))
    has_missing, nothing = cells.code[cells.ptr[:-1]] == 0, np.zeros((cells.stats.shape[0], slot.size), np.int64)
    each = CutScan(numbered, slot, nodes, cells.stats, nothing, has_missing, None, None)  # every cell is a left side
    several = np.diff(cells.ptr) > 1
    found = each.best(np.flatnonzero((cells.code > 0) & several[cells.seg]), nothing, 1, 0.0)
    alone = np.zeros(slot.size, np.int64)
    alone[found.pair] = found.cut
    listed = np.flatnonzero((cells.code > 0) & (alone > 0)[cells.seg])
    seg, code = cells.seg[listed], cells.code[listed]
    lookup = cells.pairs[seg], code, (code != alone[seg]).astype(np.int64)
    kind, cut = np.full_like(found.kind, Test.LOOKUP), np.zeros_like(found.cut)
    return replace(found, pair=cells.pairs[found.pair], kind=kind, cut=cut), lookup
