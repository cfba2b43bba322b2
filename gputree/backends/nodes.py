"""What a search on the NumPy backend reads of open nodes, and how it scores and records their tests. May import core.

Where rows with a missing value are spread, a test is scored on the known rows alone: every segment is then a node of
its own, from which the missing rows are taken away.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cells import Cells
from gputree.core.forest import SPREAD
from gputree.core.schema import run_starts
from gputree.core.scores import gains, gains_segmented, grid, parent
from gputree.core.splits import COUNTED, NOT_MET, TEST, Search, Slots
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

    def put(self, found: Found) -> None:
        """Where this holds every pair in order: keep what is strictly better; among equals the first stays."""
        better = found.score > self.score[found.pair]
        for name in TEST:
            getattr(self, name)[found.pair[better]] = getattr(found, name)[better]


def blank(size: int) -> Found:
    """No test for any pair."""
    return Found(
        np.arange(size),
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
    whole: NDArray[np.float64]  # (k,) weight, rows that are not looked at included
    aside: NDArray[np.float64] | None = None  # (k,) what such rows add to the information of a split

    @classmethod
    def of(cls, slots: Slots, layout: Layout, search: Search) -> Nodes:
        """The nodes' own terms, once for all features."""
        criterion = search.criterion
        weight, mean = layout.weight(slots.stats), layout.means(slots.stats)
        n = weight.astype(np.float64)
        floats = tuple(layout.floats(slots.stats, o, weight, mean[o]) for o in range(layout.n_outputs))
        own = np.stack([parent(criterion, x, n) for x in floats])
        scale = layout.cancelling(criterion, slots.stats)
        return cls(slots, layout, search, weight, mean, floats, own, scale, n)

    def judged(
        self, slot: NDArray[np.int64], gain: NDArray[np.float64], info: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Scores on their grid of tests of these gains and information, COUNTED where a split says too little.

        Beside cuts whose gain pays, all gains are on their grid, so that tests that part rows alike are equals.
        """
        criterion, whole, least = self.search.criterion, self.whole[slot], self.search.limits.min_info
        if self.search.cuts is not None:
            gain = grid(gain, self.layout.cancelling(criterion, self.slots.stats, gain=True)[slot])
        if self.aside is not None:
            info = info + self.aside[slot]
        score = grid(criterion.final(gain, info, whole), self.scale[slot])
        if least <= 0:
            return score
        return np.where(criterion.info(whole, whole) - info > least * whole, score, COUNTED)


@dataclass(frozen=True, slots=True)
class Segments:
    """Cells, the place of every segment (S,) among some nodes, and these; ``spread``: pairs that met missing values."""

    cells: Cells
    slot: NDArray[np.int64]
    nodes: Nodes
    spread: NDArray[np.int64]

    def known(self) -> Segments:
        """The same without cells of missing values, where there are some; every segment is a node of its own."""
        cells, first = self.cells, self.cells.ptr[:-1]
        met = cells.code[first] == 0
        if not met.any():
            return self
        count = np.diff(cells.ptr) - met
        live, keep = np.flatnonzero(count), cells.code > 0
        missing = np.where(met, cells.stats[:, first], 0)[:, live]
        rest = replace(
            cells,
            pairs=cells.pairs[live],
            feature=cells.feature[live],
            ptr=np.concatenate([[0], np.cumsum(count[live])]),
            seg=(np.cumsum(count > 0) - 1)[cells.seg[keep]],
            code=cells.code[keep],
            stats=cells.stats[:, keep],
        )
        return Segments(rest, np.arange(live.size), without(self.nodes, self.slot[live], missing), cells.pairs[met])

    def marked(self, found: Found) -> Found:
        """Tests with rows to spread say so."""
        if not self.spread.size:
            return found
        missing = np.where(np.isin(found.pair, self.spread), np.int32(SPREAD), np.int32(NOT_MET))
        return replace(found, missing=missing)


def without(nodes: Nodes, slot: NDArray[np.int64], missing: NDArray[np.int64]) -> Nodes:
    """A node for every segment: that of its slot less the channels ``missing`` (C, S)."""
    own = nodes.slots.take(slot)
    known = Nodes.of(replace(own, stats=own.stats - missing), nodes.layout, nodes.search)
    whole = nodes.whole[slot]
    aside = nodes.search.criterion.info(nodes.layout.weight(missing).astype(np.float64), whole)
    return replace(known, scale=nodes.scale[slot], whole=whole, aside=aside)


def pair_gains(
    nodes: Nodes, slot: NDArray[np.int64], left: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gain and information of binary candidates with channels ``left`` (C, P) on one side."""
    criterion, layout = nodes.search.criterion, nodes.layout
    weight = layout.weight(left)
    rest = nodes.weight[slot] - weight
    n, N = [weight.astype(np.float64), rest.astype(np.float64)], nodes.weight.astype(np.float64)[slot]
    gain, info = np.zeros(slot.size), np.zeros(slot.size)
    for o in range(layout.n_outputs):
        mean, X = nodes.mean[o][slot], nodes.floats[o][:, slot]
        x = layout.floats(left, o, weight, mean)
        exact = layout.counts  # then X - x is: counts are below 2**53
        other = X - x if exact else layout.floats(nodes.slots.stats[:, slot] - left, o, rest, mean)
        more, info = gains(criterion, [x, other], n, X, N, nodes.parent[o][slot])
        gain += more
    return gain, info


def branch_gains(
    cells: Cells, slot: NDArray[np.int64], nodes: Nodes
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gain and information when every cell is a branch, (S,) each."""
    layout, own = nodes.layout, slot[cells.seg]
    weight = layout.weight(cells.stats)
    n, N = weight.astype(np.float64), nodes.weight.astype(np.float64)[slot]
    gain, info = np.zeros(slot.size), np.zeros(slot.size)
    for o in range(layout.n_outputs):
        x = layout.floats(cells.stats, o, weight, nodes.mean[o][own])
        more, info = gains_segmented(
            nodes.search.criterion, x, n, nodes.floats[o][:, own], N[cells.seg], cells.ptr[:-1]
        )
        gain += more
    return gain, info


def first_best(seg: NDArray[np.int64], score: NDArray[np.float64]) -> NDArray[np.intp]:
    """Place of the first highest score of every run of equal ``seg``."""
    starts = run_starts(seg)
    if not starts.size:
        return starts
    top = np.maximum.reduceat(score, starts)
    place = np.flatnonzero(score == np.repeat(top, np.diff(starts, append=seg.size)))
    return place[run_starts(seg[place])]
