"""What rules of pruning work on: a fitted forest, and the rows that it is judged by. May import core."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.criteria import Criterion
from gputree.core.families import Family, against_rest, known_branches
from gputree.core.forest import SPREAD, STAY, Forest, Test
from gputree.core.routes import Parts, by_cases, step
from gputree.core.summary import describe_counts
from gputree.core.target import Layout


@dataclass(frozen=True, slots=True)
class Fitted:
    """A forest and what its arrays mean; a case weighs ``1 / unit`` units. ``kinds`` are those of the columns (F,)."""

    forest: Forest
    layout: Layout
    unit: float
    criterion: Criterion
    kinds: NDArray[np.uint8]

    @property
    def weight(self) -> NDArray[np.int64]:
        """Weight of every node, i8 (N,), in units."""
        return self.layout.weight(self.forest.stats.T)

    def tree(self, number: int) -> Fitted:
        """One tree as a forest of its own."""
        return replace(self, forest=self.forest.tree(number))

    def errors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Cases of every node, and those that are not of its largest class, f8 (N,) each; of one output of classes."""
        counts = self.forest.stats[:, self.layout.output(0)]
        return misfits(counts, self.unit)


def misfits(counts: NDArray[np.int64], unit: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cases, and those not of the largest class, f8 (M,) each, from label counts i8 (M, K)."""
    total = counts.sum(axis=1)
    return total * unit, (total - counts.max(axis=1)) * unit


@dataclass(frozen=True, slots=True)
class Cases:
    """Rows X f4/f8 (n, F), what is known of each, (O, n), and their weights f8 (n,).

    ``y`` holds class numbers or numbers. ``parts`` are the rows in the roots with whole weights, where they are those
    of the fit.
    """

    X: NDArray[Any]
    y: NDArray[Any]
    weight: NDArray[np.float64]
    parts: Parts | None = None


def settled(fitted: Fitted, cases: Cases, raised: NDArray[np.bool_]) -> Forest:
    """The forest as a fit would have it after some branches, bool (N,), were put in the place of their tests."""
    forest = fitted.forest
    anew = passed_down(forest, raised)
    found = recounted(fitted, cases, anew)
    forest = directed(found, fitted.layout.weight(found.stats.T))
    lookups = forest.kind == Test.LOOKUP  # no case is missing where `missing` is another branch now
    if (forest.unseen == found.unseen)[lookups].all():
        return forest
    return recounted(replace(fitted, forest=forest), cases, anew)


def recounted(fitted: Fitted, cases: Cases, anew: NDArray[np.bool_]) -> Forest:
    """The forest with the label counts, shares and impurities that the cases of a fit give some nodes, bool (N,).

    All nodes below these are among them. A test that a case with a missing value comes to has met one.
    """
    forest, layout = fitted.forest, fitted.layout
    stats, met = np.where(anew[:, None], 0, forest.stats), forest.met_missing.copy()
    at, divide = cases.parts, by_cases(forest)
    on_the_way = passed_up(forest, anew) & (forest.kind != Test.LEAF)
    while at is not None and len(at):
        own = at.take(np.flatnonzero(anew[at.node]))
        first, flat = own.node * stats.shape[1], stats.reshape(-1)
        np.add.at(flat, first + cases.y[0][own.row], own.weight)
        if layout.rows >= 0:
            np.add.at(flat, first + layout.rows, 1)
        at = at.take(np.flatnonzero(on_the_way[at.node]))
        met[at.node[np.isnan(cases.X[at.row, forest.feature[at.node]])]] = 1
        at, _ = step(forest, at, cases.X, divide)
    return describe_counts(replace(forest, stats=stats, met_missing=met), layout, fitted.criterion)


def by_level(forest: Forest) -> list[NDArray[np.intp]]:
    """The nodes of every depth but that of the roots, the first first."""
    order = np.argsort(forest.depth, kind="stable")
    return np.split(order, np.cumsum(np.bincount(forest.depth))[:-1])[1:]


def passed_down(forest: Forest, marks: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Marked nodes, bool (N,), and all below them."""
    found = marks.copy()
    for nodes in by_level(forest):
        found[nodes] |= found[forest.parent[nodes]]
    return found


def passed_up(forest: Forest, marks: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Marked nodes, bool (N,), and all above them."""
    found = marks.copy()
    for nodes in by_level(forest)[::-1]:
        found[forest.parent[nodes[found[nodes]]]] = True
    return found


def directed(forest: Forest, weight: NDArray[np.int64]) -> Forest:
    """The forest whose tests send what they never met to the heaviest branch, as in a fit; weight i8 (N,)."""
    family = Family.of(forest.n_children, forest.roots)
    missing, unseen = forest.missing.copy(), forest.unseen.copy()
    own = ~np.isin(missing[family.inner], (SPREAD, STAY)) & (forest.met_missing[family.inner] == 0)
    missing[family.inner[own]] = family.largest(weight)[own]
    own = ~np.isin(unseen[family.inner], (SPREAD, STAY)) & ~against_rest(forest)[family.inner]
    unseen[family.inner[own]] = family.largest(np.where(known_branches(forest), weight, -1))[own]
    return replace(forest, missing=missing, unseen=unseen)
