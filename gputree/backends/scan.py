"""Search on the NumPy backend: from cells to the best test of every segment. May import core.

Within a segment the order of candidates is the tie rule: missing to the right, then the lowest cut (the test "known or
missing" is the highest cut of all), then missing to the left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cells import Cells
from gputree.core.forest import Test
from gputree.core.keys import Stream, draw, unit
from gputree.core.schema import run_starts
from gputree.core.scores import gains, gains_segmented, grid, parent
from gputree.core.splits import NOT_MET, Scan, Search, Slots
from gputree.core.target import Layout

Lookup = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # pair, code, branch of each cell


@dataclass(frozen=True, slots=True)
class Found:
    """One test for each of some pairs, arrays (j,)."""

    pair: NDArray[np.int64]
    score: NDArray[np.float64]
    gain: NDArray[np.float64]
    kind: NDArray[np.uint8]
    cut: NDArray[np.int32]
    low: NDArray[np.float64]
    missing: NDArray[np.int32]
    n_branches: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Best:
    """The best test so far of every pair, arrays (k * m,)."""

    score: NDArray[np.float64]
    gain: NDArray[np.float64]
    kind: NDArray[np.uint8]
    cut: NDArray[np.int32]
    low: NDArray[np.float64]
    missing: NDArray[np.int32]
    n_branches: NDArray[np.int32]

    def put(self, found: Found) -> None:
        """Keep what is strictly better: among equals the first stays."""
        better = found.score > self.score[found.pair]
        for f in fields(self):
            getattr(self, f.name)[found.pair[better]] = getattr(found, f.name)[better]


def blank(size: int) -> Best:
    """No test for any pair."""
    return Best(
        np.full(size, -np.inf),
        np.zeros(size),
        np.zeros(size, np.uint8),
        np.zeros(size, np.int32),
        np.zeros(size),
        np.full(size, NOT_MET, np.int32),
        np.zeros(size, np.int32),
    )


@dataclass(frozen=True, slots=True)
class Nodes:
    """What a search needs of the open nodes, arrays over slots."""

    slots: Slots
    layout: Layout
    search: Search
    weight: NDArray[np.int64]  # (k,)
    mean: NDArray[np.int64]  # (O, k)
    floats: tuple[NDArray[np.float64], ...]  # an output each: (channels, k)
    parent: NDArray[np.float64]  # (O, k) value of the node itself
    scale: NDArray[np.float64]  # (k,) size of what cancels

    @classmethod
    def of(cls, slots: Slots, layout: Layout, search: Search) -> Nodes:
        """The nodes' own terms, once for all features."""
        criterion = search.criterion
        weight, mean = layout.weight(slots.stats), layout.means(slots.stats)
        n = weight.astype(np.float64)
        floats = tuple(layout.floats(slots.stats, o, weight, mean[o]) for o in range(layout.n_outputs))
        own = np.stack([parent(criterion, x, n) for x in floats])
        scale = layout.cancelling(criterion, slots.stats)
        return cls(slots, layout, search, weight, mean, floats, own, scale)


def scan_cells(cells: Cells, m: int, nodes: Nodes) -> Iterator[tuple[Found, Lookup | None]]:
    """The best tests of the cells' pairs, in the order in which ties are won."""
    scan = nodes.search.scan(cells.groups[0][2].kind)
    if scan is None or not cells.code.size:
        return
    slot = cells.pairs // m
    if scan is Scan.BRANCHES:
        yield scan_branches(cells, slot, nodes)
        return
    cuts = CutScan.of(cells, slot, nodes, scan)
    for found in cuts.found():
        yield found, None


@dataclass(frozen=True, slots=True)
class CutScan:
    """Cuts between neighbouring known codes of each segment."""

    cells: Cells
    slot: NDArray[np.int64]  # (S,) slot of each segment
    nodes: Nodes
    at: NDArray[np.intp]  # (P,) cells with a cut after them
    left: NDArray[np.int64]  # (C, P) channels up to the cut, missing values included
    has_missing: NDArray[np.bool_]  # (S,)
    missing: NDArray[np.int64]  # (C, S) channels of the missing values
    drawn: NDArray[np.float64] | None  # (S,) random thresholds

    @classmethod
    def of(cls, cells: Cells, slot: NDArray[np.int64], nodes: Nodes, scan: Scan) -> CutScan:
        """Prefix sums over each segment."""
        running = np.cumsum(cells.stats, axis=1)
        first = np.minimum(cells.ptr[:-1], max(0, cells.code.size - 1))
        has_missing = cells.code[first] == 0
        missing = np.where(has_missing, cells.stats[:, first], 0)
        inner = (cells.seg[:-1] == cells.seg[1:]) & (cells.code[:-1] > 0)
        drawn = None
        if scan is Scan.ONE_CUT:
            drawn = draw_thresholds(cells, slot, nodes.slots)
            value = raw_values(cells)
            inner &= (value[:-1] <= drawn[cells.seg[:-1]]) & (value[1:] > drawn[cells.seg[:-1]])
        at = np.flatnonzero(inner)
        before = running[:, first] - cells.stats[:, first]
        return cls(cells, slot, nodes, at, running[:, at] - before[:, cells.seg[at]], has_missing, missing, drawn)

    def found(self) -> Iterator[Found]:
        """The three families in order: missing right, known against missing, missing left."""
        cells, seg = self.cells, self.cells.seg[self.at]
        cut, follow = cells.code[self.at], cells.code[np.minimum(self.at + 1, cells.code.size - 1)]
        if not self.has_missing.any():
            yield self.best(seg, self.left, cut, follow, np.int32(NOT_MET))
            return
        side = np.where(self.has_missing, 1, NOT_MET).astype(np.int32)
        yield self.best(seg, self.left - self.missing[:, seg], cut, follow, side[seg])
        last = cells.ptr[1:] - 1
        alone = np.flatnonzero(self.has_missing & (cells.code[last] > 0))
        known = self.nodes.slots.stats[:, self.slot[alone]] - self.missing[:, alone]
        yield self.best(alone, known, cells.code[last[alone]], None, np.int32(1))
        both = self.has_missing[seg]
        yield self.best(seg[both], self.left[:, both], cut[both], follow[both], np.int32(0))

    def best(
        self,
        seg: NDArray[np.int64],
        left: NDArray[np.int64],
        cut: NDArray[np.int64],
        follow: NDArray[np.int64] | None,
        missing: NDArray[np.int32] | np.int32,
    ) -> Found:
        """The first best of every segment among candidates (P,), sorted by segment."""
        slot = self.slot[seg]
        right = self.nodes.slots.stats[:, slot] - left
        fine = np.flatnonzero(admissible(self.nodes, self.feature_sign(seg), slot, left, right))
        if fine.size < seg.size:
            seg, slot, left, right, cut = seg[fine], slot[fine], left[:, fine], right[:, fine], cut[fine]
            follow = None if follow is None else follow[fine]
            missing = missing[fine] if missing.ndim else missing  # type: ignore[index]
        gain, score = score_pairs(self.nodes, slot, left, right)
        pick = first_best(seg, score)
        seg, cut = seg[pick], cut[pick]
        low = np.full(pick.size, np.inf) if follow is None else self.thresholds(seg, cut, follow[pick])
        return Found(
            self.cells.pairs[seg],
            score[pick],
            gain[pick],
            np.full(pick.size, Test.THRESHOLD, np.uint8),
            cut.astype(np.int32),
            low,
            np.broadcast_to(missing, score.shape)[pick],
            np.full(pick.size, 2, np.int32),
        )

    def feature_sign(self, seg: NDArray[np.int64]) -> NDArray[np.int8] | None:
        """Monotone constraint of each candidate's feature."""
        monotone = self.nodes.search.limits.monotone
        return None if monotone is None else monotone[self.cells.feature[seg]]

    def thresholds(
        self, seg: NDArray[np.int64], cut: NDArray[np.int64], follow: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Raw thresholds of the picked cuts, feature by feature (seg ascends)."""
        low = np.empty(seg.size)
        for first, stop, codes in self.cells.groups:
            part = slice(*np.searchsorted(seg, (first, stop)))
            if self.drawn is not None and codes.edges is None:
                low[part] = self.drawn[seg[part]]
            else:
                low[part] = codes.thresholds(cut[part], follow[part])
        return low


def raw_values(cells: Cells) -> NDArray[np.float64]:
    """The value that stands for each cell's code; -inf for missing."""
    value = np.empty(cells.code.size)
    for first, stop, codes in cells.groups:
        part = slice(cells.ptr[first], cells.ptr[stop])
        value[part] = np.concatenate([[-np.inf], codes.values])[cells.code[part]]
    return value


def draw_thresholds(cells: Cells, slot: NDArray[np.int64], slots: Slots) -> NDArray[np.float64]:
    """A uniform threshold between the smallest and largest known value of every segment, below the largest."""
    value = raw_values(cells)
    last = cells.ptr[1:] - 1
    first = np.minimum(cells.ptr[:-1] + (cells.code[cells.ptr[:-1]] == 0), last)
    u = unit(draw(slots.key[slot], Stream.THRESHOLD, cells.feature.astype(np.uint64)))
    low, high = value[first], value[last]
    with np.errstate(invalid="ignore"):
        t = low * (1.0 - u) + high * u
        inside: NDArray[np.float64] = np.where((t >= low) & (t < high), t, low)
        return inside


def admissible(
    nodes: Nodes,
    sign: NDArray[np.int8] | None,
    slot: NDArray[np.int64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Which binary candidates (P,) respect the limits and the criterion's own conditions."""
    layout, limits = nodes.layout, nodes.search.limits
    fine = np.minimum(layout.count(left), layout.count(right)) >= limits.min_rows
    if limits.min_weight > 0:
        fine &= np.minimum(layout.weight(left), layout.weight(right)) >= limits.min_weight
    if nodes.search.criterion.positive_sums:
        for o in range(layout.n_outputs):
            fine &= np.minimum(left[1 + o], right[1 + o]) > 0
    if sign is not None:
        a, b = left[1] / layout.weight(left), right[1] / layout.weight(right)  # class 1's share, or the mean
        lower, upper = nodes.slots.bounds[:, slot]
        held = (np.minimum(a, b) >= lower) & (np.maximum(a, b) <= upper) & np.where(sign > 0, a <= b, a >= b)
        fine &= held | (sign == 0)  # a free feature may leave the bounds: the values are held inside afterwards
    return fine


def score_pairs(
    nodes: Nodes, slot: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gain and score on its grid of binary candidates (P,)."""
    criterion, layout = nodes.search.criterion, nodes.layout
    weights = [layout.weight(left), layout.weight(right)]
    n = [w.astype(np.float64) for w in weights]
    N = nodes.weight.astype(np.float64)[slot]
    gain, info = np.zeros(slot.size), np.zeros(slot.size)
    for o in range(layout.n_outputs):
        mean = nodes.mean[o][slot]
        x = [layout.floats(stats, o, w, mean) for stats, w in zip((left, right), weights, strict=True)]
        more, info = gains(criterion, x, n, nodes.floats[o][:, slot], N, nodes.parent[o][slot])
        gain += more
    return gain, grid(criterion.final(gain, info, N), nodes.scale[slot])


def first_best(seg: NDArray[np.int64], score: NDArray[np.float64]) -> NDArray[np.intp]:
    """Place of the first highest score of every run of equal ``seg``."""
    starts = run_starts(seg)
    if not starts.size:
        return starts
    top = np.maximum.reduceat(score, starts)
    place = np.flatnonzero(score == np.repeat(top, np.diff(starts, append=seg.size)))
    return place[run_starts(seg[place])]


def scan_branches(cells: Cells, slot: NDArray[np.int64], nodes: Nodes) -> tuple[Found, Lookup]:
    """One test a segment: a branch for every declared category, and one more for missing values where there are any."""
    layout, limits, criterion = nodes.layout, nodes.search.limits, nodes.search.criterion
    count = np.diff(cells.ptr)
    fine = np.minimum.reduceat(layout.count(cells.stats), cells.ptr[:-1]) >= limits.min_rows
    fine &= np.minimum.reduceat(layout.weight(cells.stats), cells.ptr[:-1]) >= limits.min_weight
    fine &= count >= 2
    own = slot[cells.seg]
    weight = layout.weight(cells.stats)
    n, N = weight.astype(np.float64), nodes.weight.astype(np.float64)[slot]
    gain, info = np.zeros(slot.size), np.zeros(slot.size)
    for o in range(layout.n_outputs):
        x = layout.floats(cells.stats, o, weight, nodes.mean[o][own])
        more, info = gains_segmented(criterion, x, n, nodes.floats[o][:, own], N[cells.seg], cells.ptr[:-1])
        gain += more
    score = grid(criterion.final(gain, info, N), nodes.scale[slot])
    has_missing = cells.code[cells.ptr[:-1]] == 0
    categories = np.concatenate([np.full(stop - first, codes.n_codes) for first, stop, codes in cells.groups])
    found = Found(
        cells.pairs,
        np.where(fine, score, -np.inf),
        gain,
        np.full(slot.size, Test.LOOKUP, np.uint8),
        np.zeros(slot.size, np.int32),
        np.zeros(slot.size),
        np.where(has_missing, categories, NOT_MET).astype(np.int32),
        (categories + has_missing).astype(np.int32),
    )
    known = np.flatnonzero(cells.code > 0)
    return found, (cells.pairs[cells.seg[known]], cells.code[known], cells.code[known] - 1)
