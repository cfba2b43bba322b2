"""Soft thresholds: between which values a numeric test may be wrong about the branch. May import core.

A threshold is judged by the errors that its two subtrees make of the training rows that come to it. Moved to another
value it makes more; its bounds are where these exceed those at the threshold itself by one standard error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import Forest, Test
from gputree.core.routes import Parts, branch_shares, by_cases, leaf_parts, levels
from gputree.core.schema import run_starts
from gputree.engine.pruning.records import Cases, Fitted

ROWS = 1 << 16  # whose leaves are found at a time


def soft_bounds(fitted: Fitted, cases: Cases) -> NDArray[np.float64]:
    """Lower and upper bounds of the thresholds of a tree.

    Parameters
    ----------
    fitted : Fitted
        A tree of one output of classes, as it is after all pruning.
    cases : Cases
        The rows of its fit.

    Returns
    -------
    f8 array (2, N)
        NaN in other nodes. Both are the threshold itself where its rows say nothing, or the numbers between the bounds
        have no finite width.

    References
    ----------
    Quinlan (1993), "C4.5: Programs for Machine Learning", chapter 8.
    """
    forest = fitted.forest
    bounds = np.where(forest.kind == Test.THRESHOLD, forest.low, np.full((2, forest.n_nodes), np.nan))
    assert cases.parts is not None
    share = branch_shares(forest, fitted.weight)
    for level, _ in levels(forest, cases.parts, cases.X, by_cases(forest)):
        at = level.take(forest.kind[level.node] == Test.THRESHOLD)
        x = cases.X[at.row, forest.feature[at.node]].astype(np.float64)
        known = np.flatnonzero(~np.isnan(x))
        known = known[np.lexsort((x[known], at.node[known]))]
        at, x = at.take(known), x[known]
        if len(at):
            errors = [np.where(misled(forest, at, cases, side, share), at.weight, 0) for side in (0, 1)]
            curve = Curve.of(forest, at, x, errors)
            bounds[:, curve.node] = curve.bounds(fitted.unit)
    return bounds


def misled(forest: Forest, at: Parts, cases: Cases, side: int, share: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether the subtree of one branch gives cases in tests another class than theirs, (P,)."""
    found = np.empty(len(at), bool)
    for first in range(0, len(at), ROWS):
        own = at.take(slice(first, first + ROWS))
        start = Parts(np.arange(len(own)), (forest.first_child[own.node] + side).astype(np.intp), np.ones(len(own)))
        votes = np.zeros((len(own), forest.value.shape[1]))
        for leaf in leaf_parts(forest, start, cases.X[own.row], share):
            np.add.at(votes, leaf.row, leaf.weight[:, None] * forest.value[leaf.node])
        found[first : first + ROWS] = votes.argmax(axis=1) != cases.y[0][own.row]
    return found


@dataclass(frozen=True, slots=True)
class Curve:
    """Errors of some thresholds if they lay at the values of their cases.

    ``node`` (k,) are the tests, ``cut`` f8 (k,) where they lie, ``known`` and ``none`` i8 (k,) the weights of their
    cases, and of the errors among these if all took the second branch. ``owner`` (Q,) is the place of the test of a
    value ``x`` f8 (Q,), ascending in each, and ``errors`` i8 (Q,) the weight of its errors there; ``first`` (k,) is the
    first value of each test.
    """

    node: NDArray[np.intp]
    cut: NDArray[np.float64]
    known: NDArray[np.int64]
    none: NDArray[np.int64]
    owner: NDArray[np.intp]
    x: NDArray[np.float64]
    errors: NDArray[np.int64]
    first: NDArray[np.intp]

    @classmethod
    def of(cls, forest: Forest, at: Parts, x: NDArray[np.float64], errors: list[NDArray[np.int64]]) -> Curve:
        """From cases in order of their tests and values x (P,), and the weights of their errors in either branch."""
        begin = run_starts(at.node)
        owner = np.repeat(np.arange(begin.size), np.diff(begin, append=len(at)))
        none = np.add.reduceat(errors[1], begin)
        change = np.cumsum(errors[0] - errors[1])
        before = (change - (errors[0] - errors[1]))[begin]
        last = np.flatnonzero(np.append((owner[1:] != owner[:-1]) | (x[1:] != x[:-1]), True))
        here, node = owner[last], at.node[begin]
        return cls(
            node,
            forest.low[node],
            np.add.reduceat(at.weight, begin),
            none,
            here,
            x[last],
            none[here] + change[last] - before[here],
            run_starts(here),
        )

    def bounds(self, unit: float) -> NDArray[np.float64]:
        """Lower and upper bounds (2, k), where a case weighs ``1 / unit``."""
        left = self.x <= self.cut[self.owner]
        n_left = np.bincount(self.owner[left], minlength=self.node.size)
        own = np.where(n_left > 0, self.errors[np.maximum(self.first + n_left - 1, 0)], self.none) * unit
        n = self.known * unit
        limit = own + np.sqrt((own + 0.5) * (n - own + 0.5) / (n + 1.0))
        place, above = np.arange(self.x.size), self.errors * unit > limit[self.owner]
        stop = np.append(self.first[1:], self.x.size)
        below = np.maximum.reduceat(np.where(above & left, place, -1), self.first)
        beyond = np.minimum.reduceat(np.where(above & ~left, place, self.x.size), self.first)
        low = np.where(below < 0, self.x[self.first], self.crossing(below, limit / unit))
        high = np.where(beyond == self.x.size, self.x[stop - 1], self.crossing(beyond - 1, limit / unit))
        low, high = np.minimum(low, self.cut), np.maximum(high, self.cut)
        with np.errstate(over="ignore", invalid="ignore"):
            soft = np.isfinite(high - low) & (n_left > 0)
        return np.where(soft, np.stack([low, high]), self.cut)

    def crossing(self, place: NDArray[np.intp], limit: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where the line from the value at a place (k,) to the next one has so many errors."""
        place = np.clip(place, 0, max(self.x.size - 2, 0))
        follow = np.minimum(place + 1, self.x.size - 1)
        a, b = self.errors[place], self.errors[follow]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            crossing: NDArray[np.float64] = self.x[place] + (self.x[follow] - self.x[place]) * ((limit - a) / (b - a))
        return crossing
