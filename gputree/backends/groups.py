"""Categories merged into groups, each a branch of one test (the option ``-s`` of C4.5), on the host. May import core.

All segments take a step together: each merges two of its groups, until none has two that it gains by. What a pair would
change is measured once, and again only where one of the two has grown. `gputree.core.splits.GroupRule` is what they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cells import Cells
from gputree.backends.nodes import Found, Lookup, Nodes, branch_gains, first_best
from gputree.core.criteria import CRITERIA
from gputree.core.forest import Test, ranges
from gputree.core.schema import run_starts
from gputree.core.scores import grid
from gputree.core.splits import NOT_MET, GroupRule

RATIO = CRITERIA["gain_ratio"]  # decides on merges, whatever scores the tests
PAIRS = 1 << 20  # of groups that are compared at a time

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of segments before they are merged.

    ``counts`` i8 (K, G) by class; ``seg`` (G,) ascending; ``terms`` f8 (3, S): what else adds to the gain and to the
    information of the tests, and the weights of the nodes. Groups are heavy from the weight ``heavy`` on.
    """

    counts: NDArray[np.int64]
    seg: NDArray[np.int64]
    terms: Floats
    heavy: int


Merge: TypeAlias = Callable[[Groups, GroupRule], NDArray[np.int64]]
"""A twin of `merged`: the first of the groups that each group (G,) is one with in the end."""


def scan_groups(
    cells: Cells, slot: NDArray[np.int64], nodes: Nodes, rule: GroupRule, merge: Merge | None = None
) -> tuple[Found, Lookup]:
    """One test a segment: a branch for each group of categories, and a last one for declared ones that are in none."""
    layout, limits, n_seg = nodes.layout, nodes.search.limits, slot.size
    leader = leaders(cells, slot, nodes, rule, merge or merged)
    light, heads = leader < 0, np.unique(leader[leader >= 0])
    n_groups, n_light = (np.bincount(cells.seg[which], minlength=n_seg) for which in (heads, light))
    place = np.searchsorted(heads, leader) - (np.cumsum(n_groups) - n_groups)[cells.seg]
    branch = np.where(light, n_groups[cells.seg], place)
    groups = joined(cells, branch, n_groups + (n_light > 0))
    count = n_groups + ((n_light > 0) | (cells.book.declared[cells.feature] > np.diff(cells.ptr)))
    rank = np.arange(groups.seg.size) - groups.ptr[groups.seg]
    large = (layout.weight(groups.stats) >= limits.min_weight) & (rank < n_groups[groups.seg])
    fine = np.bincount(groups.seg[large], minlength=n_seg) >= (limits.heavy or count)
    gain, info = branch_gains(groups, slot, nodes)
    found = Found(
        cells.pairs,
        np.where(fine, nodes.judged(slot, gain, info), -np.inf),
        gain,
        np.full(n_seg, Test.LOOKUP, np.uint8),
        np.zeros(n_seg, np.int32),
        np.zeros(n_seg),
        np.full(n_seg, NOT_MET, np.int32),
        count.astype(np.int32),
    )
    return found, group_lookup(cells, branch, n_groups, fine)


def joined(cells: Cells, branch: NDArray[np.int64], count: NDArray[np.int64]) -> Cells:
    """Cells by branch (M,), of which each segment has ``count`` (S,); they have no code."""
    ptr = np.concatenate([[0], np.cumsum(count)])
    stats = np.zeros((cells.stats.shape[0], int(ptr[-1])), np.int64)
    np.add.at(stats.T, ptr[:-1][cells.seg] + branch, cells.stats.T)
    return replace(cells, ptr=ptr, seg=np.repeat(np.arange(count.size), count), code=cells.code[:0], stats=stats)


def group_lookup(
    cells: Cells, branch: NDArray[np.int64], n_groups: NDArray[np.int64], fine: NDArray[np.bool_]
) -> Lookup:
    """The branch of every category that was met or declared, of the segments ``fine`` (S,) that have a test."""
    met, declared = fine[cells.seg], np.where(fine, cells.book.declared[cells.feature], 0)
    rest, code = np.repeat(np.arange(declared.size), declared), ranges(np.ones_like(declared), declared)
    keys = np.concatenate([cells.seg[met] << 16 | cells.code[met], rest << 16 | code])
    key, first = np.unique(keys, return_index=True)  # of a category that is there twice, the one that was met
    return cells.pairs[key >> 16], key & 0xFFFF, np.concatenate([branch[met], n_groups[rest]])[first]


def leaders(cells: Cells, slot: NDArray[np.int64], nodes: Nodes, rule: GroupRule, merge: Merge) -> NDArray[np.int64]:
    """The first cell of the group of every cell (M,), -1 of those in none."""
    own = nodes.layout.output(0)
    stats = cells.stats[own]
    found = first_leaders(stats, cells, rule)
    kept = np.flatnonzero(found >= 0)
    heads, group = np.unique(found[kept], return_inverse=True)
    counts = np.zeros((stats.shape[0], heads.size), np.int64)
    np.add.at(counts.T, group, stats[:, kept].T)
    total, seg = nodes.slots.stats[own][:, slot], cells.seg[heads]
    rest = total.copy()
    np.subtract.at(rest.T, seg, counts.T)
    value, info = measured(rest)
    whole = nodes.whole[slot]
    unknown = RATIO.info(whole - nodes.weight[slot], whole)
    terms = np.stack([value - measured(total)[0], info + unknown, whole])
    into = merge(Groups(counts, seg, terms, nodes.search.limits.min_weight), rule)
    found[kept] = heads[into[group]]
    return found


def first_leaders(counts: NDArray[np.int64], cells: Cells, rule: GroupRule) -> NDArray[np.int64]:
    """The same before any two groups are merged; counts i8 (K, M) by class."""
    kept = np.flatnonzero(counts.sum(axis=0) > rule.present)
    n_classes, n_cells = counts.shape
    pure = (counts[:, kept] > 0).sum(axis=0) == 1
    kind = np.where(pure, counts[:, kept].argmax(axis=0), n_classes + kept)
    _, first, group = np.unique(cells.seg[kept] * (n_classes + n_cells) + kind, return_index=True, return_inverse=True)
    found = np.full(n_cells, -1, np.int64)
    found[kept] = kept[first[group]]
    return found


def measured(counts: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """What groups of these rows by class (K, G) add to the gain and to the information of a test, (G,) each."""
    n, x = counts.sum(axis=0).astype(np.float64), counts.astype(np.float64)
    return RATIO.value(x, n, x, n), RATIO.info(n, n)


def merged(groups: Groups, rule: GroupRule) -> NDArray[np.int64]:
    """The first of the groups that each group (G,) is one with in the end."""
    n = np.bincount(groups.seg, minlength=groups.terms.shape[1])
    stop, into = np.cumsum(n), np.arange(groups.seg.size)
    for segs in blocks(n * (n - 1) // 2):
        own = slice(int(stop[segs.start] - n[segs.start]), int(stop[segs.stop - 1]))
        part = Groups(groups.counts[:, own], groups.seg[own] - segs.start, groups.terms[:, segs], groups.heavy)
        work = Merging(part, rule)
        while work.step():
            pass
        into[own] = own.start + work.into()
    return into


def ends(to: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where chains of merges end: each group (G,) goes into another, or stays."""
    while (to != to[to]).any():
        to = to[to]
    return to


def blocks(size: NDArray[np.int64]) -> Iterator[slice]:
    """Segments of these sizes (S,), of `PAIRS` together; at least one at a time."""
    total, first = np.cumsum(size), 0
    while first < size.size:
        before = int(total[first - 1]) if first else 0
        stop = max(first + 1, int(np.searchsorted(total, before + PAIRS, side="right")))
        yield slice(first, stop)
        first = stop


def best_pairs(seg: NDArray[np.int64], score: Floats, keeps: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The places of the best pairs, one of each segment among pairs (P,) in order; see `GroupRule`.

    That is the last one of the highest score, unless it does not keep the gain: then the best among the next one that
    does and all behind it.
    """
    best = last_best(seg, score)
    poor = np.zeros(int(seg[-1]) + 1 if seg.size else 0, bool)
    poor[seg[best]] = ~keeps[best]
    found, left = [best[keeps[best]]], np.flatnonzero(poor[seg])
    while left.size:
        best = left[last_best(seg[left], score[left])]
        behind = left[keeps[left] & (left > at_segments(seg, best)[seg[left]])]
        next_ = behind[run_starts(seg[behind])]
        next_ = next_[~keeps[best][np.searchsorted(seg[best], seg[next_])]]
        found.append(best[~np.isin(seg[best], seg[next_])])
        left = left[left >= at_segments(seg, next_)[seg[left]]]
    return np.sort(np.concatenate(found))


def at_segments(seg: NDArray[np.int64], place: NDArray[np.intp]) -> NDArray[np.intp]:
    """The place of each segment among some (j,), one a segment; behind all of them where it has none."""
    found = np.full(int(seg[-1]) + 1, seg.size)
    found[seg[place]] = place
    return found


def last_best(seg: NDArray[np.int64], score: Floats) -> NDArray[np.intp]:
    """Place of the last highest score of every run of equal ``seg``."""
    return seg.size - 1 - first_best(seg[::-1], score[::-1])[::-1]


class Merging:
    """Groups of some segments, and tests of them, while groups are merged.

    ``counts`` i8 (K, G) by class, 0 of groups that are gone; ``to`` (G,) is the group that each was merged into.
    ``gain`` and ``info`` f8 (S,) are those of the tests, ``open`` bool (S,) whether more may be merged. ``pairs``
    (3, P), in order, are two groups and their open segment, and would change its two by ``change`` (2, P).
    """

    def __init__(self, groups: Groups, rule: GroupRule) -> None:
        self.counts, self.seg, self.rule, self.heavy = groups.counts.copy(), groups.seg, rule, groups.heavy
        self.gain, self.info, self.whole = groups.terms.copy()
        for total, own in zip((self.gain, self.info), measured(self.counts), strict=True):
            np.add.at(total, self.seg, own)
        self.least = rule.kept * self.gain
        number, self.to = np.bincount(self.seg, minlength=self.gain.size), np.arange(self.seg.size)
        self.open = number > 2
        later = np.where(self.open[self.seg], np.cumsum(number)[self.seg] - 1 - self.to, 0)
        first = np.repeat(self.to, later)
        self.pairs = np.stack([first, ranges(self.to + 1, later), self.seg[first]])
        self.change = self.changes(self.pairs)

    def changes(self, pairs: NDArray[np.int64]) -> Floats:
        """What merging pairs (3, P) would change, (2, P); some pairs at a time, for there may be many classes."""
        some = max(1, PAIRS // self.counts.shape[0])
        alone = np.stack(measured(self.counts))
        found = [np.zeros((2, 0))]
        for a, b, _ in (pairs[:, first : first + some] for first in range(0, pairs.shape[1], some)):
            found.append(np.stack(measured(self.counts[:, a] + self.counts[:, b])) - alone[:, a] - alone[:, b])
        return np.concatenate(found, axis=1)

    def step(self) -> bool:
        """Merge the best pair of every segment that gains by it; whether there was one."""
        weight = self.counts.sum(axis=0)
        heavy = np.bincount(self.seg[weight >= self.heavy], minlength=self.gain.size)
        (seg, change), at = (self.pairs[2], self.change), None
        if (heavy[seg] < 3).any():
            barred = self.heaviest(weight) & (heavy < 3)[self.seg]
            at = np.flatnonzero(~(barred[self.pairs[0]] | barred[self.pairs[1]]))
            seg, change = seg[at], change[:, at]
        gain, info = self.gain[seg] + change[0], self.info[seg] + change[1]
        score = self.ratio(gain, info, seg)
        pick = best_pairs(seg, score, gain >= self.least[seg])
        here = seg[pick]
        rises = score[pick] >= self.ratio(self.gain[here], self.info[here], here) + self.rule.rise
        rises |= heavy[here] < 2
        self.open[here[~rises]] = False
        self.merge(pick[rises] if at is None else at[pick[rises]])
        return bool(rises.any())

    def heaviest(self, weight: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which group (G,) is the heaviest of its segment, the first among equals."""
        found = np.zeros(self.seg.size, bool)
        found[first_best(self.seg, weight.astype(np.float64))] = True
        return found

    def ratio(self, gain: Floats, info: Floats, seg: NDArray[np.int64]) -> Floats:
        """Gain ratios of tests of some segments, on their grid."""
        whole = self.whole[seg]
        return grid(RATIO.final(gain, info, whole), RATIO.scale(whole, whole))

    def merge(self, which: NDArray[np.intp]) -> None:
        """Merge some pairs, at most one of a segment: the second group goes into the first."""
        a, b, seg = self.pairs[:, which]
        self.gain[seg] += self.change[0, which]
        self.info[seg] += self.change[1, which]
        self.counts[:, a] += self.counts[:, b]
        self.counts[:, b] = 0
        self.to[b] = a
        self.open &= np.bincount(self.seg[self.to == np.arange(self.to.size)], minlength=self.open.size) > 2
        fate = np.zeros(self.seg.size, np.uint8)
        fate[a], fate[b] = 1, 2  # has grown, is gone
        fates = fate[self.pairs[0]] | fate[self.pairs[1]]
        left = np.flatnonzero((fates < 2) & self.open[self.pairs[2]])
        self.pairs, self.change = self.pairs.take(left, axis=1), self.change.take(left, axis=1)
        again = np.flatnonzero(fates[left])
        self.change[:, again] = self.changes(self.pairs[:, again])

    def into(self) -> NDArray[np.int64]:
        """The group that each (G,) is in."""
        return ends(self.to)
