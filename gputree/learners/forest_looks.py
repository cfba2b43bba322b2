"""Trees of forests as estimators, and methods that explain: importances without bias and by permutation, proximities.

May import everything below.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import index
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.utils.validation import check_is_fitted

from gputree.backends.arrays import in_kind
from gputree.core.checks import brief
from gputree.core.target import Target
from gputree.learners.forest_uses import leaf_weights, membership, proximities, shuffled, shuffles, unbiased_importances
from gputree.learners.held_out import dense
from gputree.learners.looks import FrameLooks
from gputree.learners.view import decreases, paths


class Trees(Sequence[Any]):
    """The trees of a forest as estimators, made when they are asked for."""

    def __init__(self, forest: Any) -> None:
        self._forest = forest

    def __len__(self) -> int:
        return int(self._forest.forest_.roots.size)

    @overload
    def __getitem__(self, i: int) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> list[Any]: ...
    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return [self[t] for t in range(*i.indices(len(self)))]
        i = index(i)
        if not -len(self) <= i < len(self):
            raise IndexError(f"tree {i} does not exist; there are {len(self)}")
        return self._forest._tree(i % len(self))


class FeatureLooks:
    """What forests of a target tell of features."""

    @abstractmethod
    def _truth(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        """y as leaf values are, f8 (n, O): shares of classes, or numbers."""

    @abstractmethod
    def _target_truth(self, target: Target) -> NDArray[np.float64]:
        """The same of the rows of a fit."""

    @abstractmethod
    def _losses(self, truth: NDArray[np.float64], found: NDArray[np.float64]) -> NDArray[np.float64]:
        """Error (n,) of each of n predictions that are leaf values."""

    @abstractmethod
    def _error_of_a_constant(self, truth: NDArray[np.float64]) -> float:
        """The unit of ``oob_tol``."""

    def _error(self, truth: NDArray[np.float64], found: NDArray[np.float64]) -> float:
        """Mean error of predictions that are leaf values."""
        return float(self._losses(truth, found).mean())

    def unbiased_importances(self: Any, X: Any, y: Any) -> NDArray[np.float64]:
        """Mean decrease in impurity on the rows that each tree has not seen, float64 (n_features,).

        Near 0, on either side, for a column of noise, where `feature_importances_` favours columns of many distinct
        values; in the unit of y squared, or of the Gini impurity.

        Parameters
        ----------
        X, y : as in the fit
            All rows of the fit in their order; ``bootstrap=True``.

        References
        ----------
        Li, Wang, Basu, Kumbier and Yu (2019), "A debiased MDI feature importance measure for random forests", NeurIPS.
        """
        rows, truth, out = self._out(X, y)
        leaves, forest = self._leaves(rows, check_input=False), self.forest_
        total = np.zeros(self.n_features_in_)
        for t, mask in enumerate(out.T):
            tree, inside = forest.tree(t), leaves[mask, t] - forest.roots[t]
            total += unbiased_importances(tree, inside, truth[mask], self.n_features_in_)
        mean: NDArray[np.float64] = total / forest.roots.size
        return mean

    def permutation_importances(
        self: Any, X: Any, y: Any, groups: Sequence[Sequence[int]] | None = None
    ) -> NDArray[np.float64]:
        """Rise of a tree's error on the rows that it has not seen when columns are shuffled, mean over trees.

        Parameters
        ----------
        X, y : as in the fit
            All rows of the fit in their order; ``bootstrap=True``.
        groups : sequence of sequences of int, optional
            Columns that are shuffled together; by default each alone.

        Returns
        -------
        float64 array (n_groups,)
            In shares of wrong rows, or mean squared error.

        References
        ----------
        Breiman (2001), "Random forests", Machine Learning 45:5-32, section 10.
        """
        rows, truth, out = self._out(X, y)
        groups = [[f] for f in range(self.n_features_in_)] if groups is None else groups
        if not all(np.ndim(g) == 1 and all(0 <= f < self.n_features_in_ for f in g) for g in groups):
            raise ValueError(f"groups={brief(groups)} must be lists of columns 0 .. {self.n_features_in_ - 1}")
        total = np.zeros(len(groups))
        for t, mask in enumerate(out.T):
            tree, seen, mine = self._tree(t), rows[mask], truth[mask]
            if not mask.any():
                continue
            told = replace(tree.forest_, value=self._ends(tree.forest_, self.layout_))
            before = self._error(mine, tree._sums(seen, told, check_input=False))
            orders = shuffles(self.seed_, t, np.flatnonzero(mask), len(groups))
            for g, (columns, order) in enumerate(zip(groups, orders, strict=True)):
                after = tree._sums(shuffled(seen, columns, order), told, check_input=False)
                total[g] += self._error(mine, after) - before
        mean: NDArray[np.float64] = total / self.forest_.roots.size
        return mean

    def _out(self: Any, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.bool_]]:
        """Rows of the fit as floats, their truth, and which trees have not seen them (n, T)."""
        check_is_fitted(self, "forest_")
        rows = dense(self._read(X, check_input=True))
        return rows, self._truth(y, rows.shape[0]), self._unseen(rows.shape[0])


class ForestLooks(FrameLooks):
    """What forests tell of their trees and of rows."""

    def __len__(self: Any) -> int:
        return len(self.estimators_)

    def __getitem__(self: Any, i: int | slice) -> Any:
        return self.estimators_[i]

    def __iter__(self: Any) -> Iterator[Any]:
        return iter(self.estimators_)

    @property
    def estimators_(self: Any) -> Trees:
        """The trees, each made when it is asked for, with the forest's seed and labels; to be read, not changed."""
        check_is_fitted(self, "forest_")
        return Trees(self)

    def apply(self: Any, X: Any) -> NDArray[np.int64]:
        """Leaf of every row in every tree, int64 (n_rows, n_trees), numbered inside the tree.

        Of a row that a tree spreads (C4.5), the leaf of the heaviest branches alone; `leaf_weights` has all.
        """
        leaves = self._leaves(X).astype(np.int64) - self.forest_.roots
        given: NDArray[np.int64] = in_kind(leaves, X)
        return given

    def decision_path(self: Any, X: Any) -> tuple[csr_matrix, NDArray[np.int64]]:
        """Nodes on the way of rows to `apply`, csr (n_rows, all nodes), and where the columns of each tree begin."""
        leaves = self._leaves(X)
        ptr = np.append(self.forest_.roots, self.forest_.n_nodes).astype(np.int64)
        trees = [paths(self.forest_.tree(t), leaves[:, t] - self.forest_.roots[t]) for t in range(leaves.shape[1])]
        return csr_matrix(hstack(trees, format="csr")), ptr

    @property
    def feature_importances_(self: Any) -> NDArray[np.float64]:
        """Mean over trees of the shares of their impurity decrease by feature, (n_features,), of sum 1.

        All 0 if no tree has a split. Biased towards columns of many distinct values.
        """
        check_is_fitted(self, "forest_")
        forest, n_trees = self.forest_, self.forest_.roots.size
        decrease = np.maximum(decreases(forest, self.layout_.weight(forest.stats.T)), 0.0)
        tree = np.repeat(np.arange(n_trees), np.diff(forest.roots, append=forest.n_nodes))
        inner = np.flatnonzero(forest.feature >= 0)
        total = np.zeros((n_trees, self.n_features_in_))
        np.add.at(total, (tree[inner], forest.feature[inner]), decrease[inner])
        whole = total.sum(axis=1)
        mean = (total[whole > 0] / whole[whole > 0, None]).sum(axis=0)
        shares: NDArray[np.float64] = mean / mean.sum() if mean.any() else mean
        return shares

    def leaf_weights(self, X: Any) -> csr_matrix:
        """What every leaf has to say in the prediction of every row, csr (n_rows, nodes of all trees); rows sum to 1.

        Column ``forest_.roots[t] + i`` is node i of tree t. ``leaf_weights(X) @ forest_.value`` is the mean over trees:
        the prediction, or with ``voting="soft"`` the `predict_proba`.
        """
        return leaf_weights(self, X)

    def proximity(self: Any, X: Any, other: Any = None, oob: bool = False) -> NDArray[np.float64] | csr_matrix:
        """Share of the trees in which two rows end in the same leaf.

        Parameters
        ----------
        X : as in `predict`
        other : as in `predict`, optional
            Rows to compare with; X by default.
        oob : bool, default=False
            Count only trees that have seen neither row; X are then all rows of the fit in their order. NaN where there
            is no such tree.

        Returns
        -------
        float64 array (n_rows, n_other), or a csr matrix where it would have over 2**24 cells
        """
        check_is_fitted(self, "forest_")
        n_nodes, leaves = self.forest_.n_nodes, self._leaves(X)
        if oob and other is not None:
            raise ValueError("oob=True compares the rows of the fit with each other; leave `other` out")
        if oob:
            out = self._unseen(leaves.shape[0])
            inside = membership(leaves, n_nodes, out)
            return proximities(inside, inside, out.astype(float) @ out.T.astype(float))
        mine = membership(leaves, n_nodes, None)
        theirs = mine if other is None else membership(self._leaves(other), n_nodes, None)
        return proximities(mine, theirs, int(self.forest_.roots.size))

    def _unseen(self: Any, n: int) -> NDArray[np.bool_]:
        """Which trees have not drawn a row of positive weight, bool (n, T); rows of weight 0 took no part."""
        if self.bagging_ is None:
            raise ValueError("every tree has seen all rows; fit with bootstrap=True")
        if n != self.n_rows_:
            raise ValueError(f"X has {n} rows, and the fit had {self.n_rows_}: give the rows of the fit in their order")
        kept = self.bagging_.kept
        part = np.ones(n, bool) if kept is None else np.bincount(kept, minlength=n) > 0
        return np.stack([part & (np.bincount(rows, minlength=n) == 0) for rows in self.estimators_samples_], axis=1)
