"""Estimates of rows from the trees that have not seen them, and when more trees gain too little.

May import everything below.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.arrays import to_host
from gputree.backends.protocol import Backend
from gputree.core.bags import Bags, Draws
from gputree.core.forest import Forest, joined
from gputree.core.routes import branch_shares
from gputree.core.warned import warn
from gputree.learners.grower import Rows

LEAVES = 1 << 26  # leaf numbers of rows x trees held at once
CHECK = 20  # trees between two looks at the rule


class OutOfBag:
    """Estimates of the rows of a fit by the trees that are there, and their error after each tree.

    ``total`` (n, O) sums what the ``count`` (n,) trees say whose bags lack a row, ``loss`` (n,) is its error, NaN
    where there is no such tree; ``errors`` holds the mean loss by number of trees.
    """

    def __init__(self, model: Any, backend: Backend, rows: Rows, draws: Draws) -> None:
        self.model, self.backend, self.draws = model, backend, draws
        self.X = rows.X if backend.device != "cpu" else to_host(rows.X)
        self.layout = rows.target.layout
        self.truth: NDArray[np.float64] = model._target_truth(rows.target)
        self.total, self.count = np.zeros(self.truth.shape), np.zeros(rows.n_rows, np.int64)
        self.loss = np.full(rows.n_rows, np.nan)
        self.errors: list[float] = []
        self.losses: dict[int, NDArray[np.float64]] = {}  # by number of trees

    def add(self, forest: Forest) -> None:
        """Take in the next trees."""
        step = max(1, LEAVES // self.count.size)
        for first in range(0, forest.roots.size, step):
            part = joined([forest.tree(t) for t in range(first, min(first + step, forest.roots.size))])
            for votes in self.votes(replace(part, value=self.model._ends(part, self.layout))):
                bag = Bags(1, len(self.errors), self.model.seed_, self.draws).drawn(0)
                out = np.bincount(bag, minlength=self.count.size) == 0
                self.add_tree(out, votes[out])

    def votes(self, forest: Forest) -> Iterator[NDArray[np.float64]]:
        """What each tree says of the rows, f8 (n, O)."""
        if not forest.spreads:
            votes = self.model._votes(forest.value)
            for leaves in self.backend.apply(forest, self.X).T:
                yield votes[leaves]
            return
        for tree in (forest.tree(t) for t in range(forest.roots.size)):
            share = branch_shares(tree, self.layout.weight(tree.stats.T))
            yield self.model._votes(self.backend.predict(tree, self.X, share))

    def add_tree(self, out: NDArray[np.bool_], votes: NDArray[np.float64]) -> None:
        """Take in what a tree says of the rows that it has not seen."""
        self.total[out] += votes
        self.count[out] += 1
        self.loss[out] = self.model._losses(self.truth[out], self.total[out] / self.count[out, None])
        known = self.loss[self.count > 0]
        self.errors.append(float(known.mean()) if known.size else np.nan)
        trees = len(self.errors)
        if self.model.oob_tol is not None and trees % (CHECK // 2) == 0:
            self.losses = {k: v for k, v in self.losses.items() if 2 * k >= trees} | {trees: self.loss.copy()}

    def settled(self) -> bool:
        """Whether all trees that could follow would gain no more than ``oob_tol``.

        The squared error of a mean of T trees is a + b / T (Hastie, Tibshirani and Friedman 2009, equation 15.1), so
        the second half of the trees gained b / T: as much as all that could follow. Shares of wrong rows nearly do so.
        """
        trees = len(self.errors)
        if self.model.oob_tol is None or trees == 0 or trees % CHECK:
            return False
        gain = self.losses[trees // 2] - self.loss
        gain = gain[~np.isnan(gain)]
        if gain.size < 2:
            return False
        most = gain.mean() + gain.std(ddof=1) / np.sqrt(gain.size)
        return bool(most <= self.model.oob_tol * self.model._error_of_a_constant(self.truth))

    def mean(self) -> NDArray[np.float64]:
        """Mean of the trees that have not seen a row, f8 (n, O), NaN where there is none."""
        if not self.count.all():
            warn(
                f"{int((self.count == 0).sum())} of {self.count.size} rows are in every bag and have no out-of-bag "
                "estimate (NaN); more trees would give them one",
            )
        with np.errstate(invalid="ignore"):
            mean: NDArray[np.float64] = self.total / np.where(self.count, self.count, np.nan)[:, None]
        return mean
