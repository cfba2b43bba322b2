"""Forests that vote and forests of means. May import everything below."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from gputree.backends.arrays import in_kind
from gputree.core.checks import brief, readable
from gputree.core.criteria import Criterion
from gputree.core.forest import Test
from gputree.core.target import Target, class_target, sum_target
from gputree.learners.bagging import Bagging, draws_of_a_bag, draws_of_classes, equal_draws, spread
from gputree.learners.forest import FOREST_CONSTRAINTS, BaseForest
from gputree.learners.forest_looks import FeatureLooks
from gputree.learners.forest_uses import DENSE_CELLS, membership, weighted_quantiles
from gputree.learners.labels import side_by_side
from gputree.learners.tasks import ClassifierTask, RegressorTask, checked_weight

Score: TypeAlias = "bool | Callable[[NDArray[Any], NDArray[Any]], float]"


class ForestClassifier(FeatureLooks, ClassifierTask, BaseForest):
    """Forests that vote on classes."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **FOREST_CONSTRAINTS,
        "class_weight": [dict, list, StrOptions({"balanced", "balanced_subsample"}), None],
        "max_samples": [*FOREST_CONSTRAINTS["max_samples"], dict, "array-like"],
        "voting": [StrOptions({"soft", "hard"})],
    }

    def predict_proba(self, X: Any) -> Any:
        """Mean class shares of the leaves, or with ``voting="hard"`` shares of the trees' votes.

        Returns
        -------
        float64 array (n_rows, n_classes), or a list of them for several outputs
            Columns in the order of ``classes_``.
        """
        shares = self._by_output(self._shares(X))
        return [in_kind(p, X) for p in shares] if isinstance(shares, list) else in_kind(shares, X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of the largest share, the first among equals: (n_rows,), or (n_rows, n_outputs)."""
        labels: NDArray[Any] = in_kind(self._labels(self._shares(X)), X)
        return labels

    def _weights(self, labels: NDArray[Any], weight: Any, n_rows: int) -> NDArray[np.float64] | None:
        """As of a tree; "balanced" counts the weights of the rows, as in scikit-learn's forests."""
        if self.class_weight == "balanced_subsample" and self.bootstrap:  # by numbers of draws
            return checked_weight(weight, labels)
        if self.class_weight not in ("balanced", "balanced_subsample"):
            return super()._weights(labels, weight, n_rows)
        given = checked_weight(weight, labels)
        total = np.ones(n_rows) if given is None else given.copy()
        for column in labels.T:
            sums = np.bincount(column, given)
            total *= (sums.sum() / ((sums > 0).sum() * np.where(sums > 0, sums, 1.0)))[column]
        return checked_weight(total, labels)

    def _sizes(
        self, labels: NDArray[Any], weight: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """Draws of every class where they are asked for by class."""
        equal, by_class = self.class_weight == "balanced_subsample", not is_one_number(self.max_samples)
        if not (equal or by_class):
            return super()._sizes(labels, weight)
        if labels.shape[1] > 1:
            what = "class_weight='balanced_subsample'" if equal else "max_samples by class"
            raise ValueError(f"{what} counts draws of the classes of one output, and y has {labels.shape[1]}")
        if by_class and self.class_weight is not None:
            raise ValueError(
                f"max_samples gives the draws of every class, and so would class_weight={self.class_weight!r}: leave "
                "one of them out"
            )
        own = labels[:, 0].astype(np.int64)
        rows = np.bincount(own if weight is None else own[weight > 0], minlength=self.classes_.size)
        if by_class:
            return draws_of_classes(self.max_samples, self.classes_, rows), own
        return equal_draws(draws_of_a_bag(self.max_samples, own.size, weight), rows), own

    def _shares(self, X: Any, check_input: bool = True) -> NDArray[np.float64]:
        """Means over the trees."""
        check_is_fitted(self, "forest_")
        forest, n_trees = self.forest_, self.forest_.roots.size
        told = self._ends(forest, self.layout_)
        votes = told if forest.spreads else self._votes(told)
        voting = forest if votes is forest.value else replace(forest, value=votes)
        if self.voting != "hard" or not forest.spreads:
            return self._sums(X, voting, check_input) / n_trees
        X = self._read(X, check_input)  # a row may end in several leaves of a tree, which has one vote
        each = (self._sums(X, voting.tree(t), check_input=False) for t in range(n_trees))
        return sum(map(self._votes, each), np.zeros((X.shape[0], votes.shape[1]))) / n_trees

    def _votes(self, told: NDArray[np.float64]) -> NDArray[np.float64]:
        """Class shares, or 1 for the largest class, the first among equals."""
        if self.voting != "hard":
            return told
        votes = np.zeros_like(told)
        first = 0
        for size in (c.size for c in self._class_lists()):
            largest = told[:, first : first + size].argmax(axis=1)
            votes[np.arange(len(told)), first + largest] = 1.0
            first += size
        return votes

    def _truth(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        """1 for the class of a row."""
        numbers = self._known_target(y, n_rows, self.n_outputs_)
        return np.concatenate([np.eye(c.size)[own] for c, own in zip(self._class_lists(), numbers, strict=True)], 1)

    def _target_truth(self, target: Target) -> NDArray[np.float64]:
        """1 for the class of a row."""
        assert target.labels is not None
        lists = self._class_lists()
        return np.concatenate([np.eye(c.size)[n] for c, n in zip(lists, target.labels, strict=True)], axis=1)

    def _losses(self, truth: NDArray[np.float64], found: NDArray[np.float64]) -> NDArray[np.float64]:
        """Share of the outputs whose class is wrong."""
        wrong, first, lists = np.zeros(len(truth)), 0, self._class_lists()
        for size in (c.size for c in lists):
            own = slice(first, first + size)
            wrong += truth[:, own].argmax(axis=1) != found[:, own].argmax(axis=1)
            first += size
        shares: NDArray[np.float64] = wrong / len(lists)
        return shares

    def _error_of_a_constant(self, truth: NDArray[np.float64]) -> float:
        """1: ``oob_tol`` is a share of rows."""
        return 1.0

    def _bag_target(self, labels: NDArray[Any], criterion: Criterion, draws: int) -> Target:
        """Label counts of rows without weights."""
        return class_target(labels, tuple(c.size for c in self._class_lists()), None)

    def _keep_out_of_bag(self, mean: NDArray[np.float64], target: Target, bagging: Bagging) -> None:
        """Shares and accuracy of the trees that have not seen a row."""
        shares = self._by_output(spread(mean, bagging))
        same = isinstance(shares, list) and len({p.shape[1] for p in shares}) == 1
        self.oob_decision_function_ = np.stack(shares, axis=2) if same else shares
        known = ~np.isnan(mean[:, 0])
        assert target.labels is not None
        truth = [c.take(n[known]) for c, n in zip(self._class_lists(), target.labels, strict=True)]
        found = self._labels(mean[known]) if known.any() else np.zeros(0)
        self.oob_score_ = scored(self.oob_score, accuracy_score, side_by_side(truth), found)


def is_one_number(max_samples: Any) -> bool:
    """Whether ``max_samples`` is for all classes together."""
    return max_samples is None or isinstance(max_samples, Real)


def scored(wanted: Any, usual: Any, truth: NDArray[Any], found: NDArray[Any]) -> Any:
    """The score that ``oob_score`` asks for; NaN where no row has an estimate."""
    if not truth.size:
        return np.nan
    if truth.ndim == 2 and truth.shape[1] == 1:
        truth = truth[:, 0]
    if callable(wanted):
        return wanted(truth, found)
    if usual is accuracy_score and truth.ndim == 2:  # all outputs right, whatever their classes
        return float(np.mean((truth == found).all(axis=1)))
    return float(usual(truth, found))


class ForestRegressor(FeatureLooks, RegressorTask, BaseForest):
    """Forests of means."""

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Mean of the trees' leaf means, float64 (n_rows,), or (n_rows, n_outputs)."""
        check_is_fitted(self, "forest_")
        mean = self._sums(X, self.forest_) / self.forest_.roots.size
        means: NDArray[np.float64] = in_kind(mean[:, 0] if self.n_outputs_ == 1 else mean, X)
        return means

    def predict_quantiles(
        self, X: Any, quantiles: ArrayLike = (0.05, 0.5, 0.95), *, X_train: Any, y_train: Any, sample_weight: Any = None
    ) -> NDArray[np.float64]:
        """Quantiles of y among the rows of the fit that share leaves with a row.

        Parameters
        ----------
        X : as in `predict`
        quantiles : array-like of float (n_quantiles,), in 0 .. 1
        X_train, y_train : the rows of the fit, one output
            All of them, in any order; those of weight 0 are left out, or have weight 0 here as well.
        sample_weight : array-like of float (n_train_rows,), optional
            Their weights in a leaf, all 1 by default.

        Returns
        -------
        float64 array (n_rows, n_quantiles)
            NaN where no row of positive weight shares a leaf.

        Raises
        ------
        ValueError, TypeError
            If a quantile is outside 0 .. 1, the fit had several outputs, X, y or weights cannot be read, or the rows
            are not those of the fit: there are more or fewer, a leaf that had some has none, or a mean outside of their
            y.

        References
        ----------
        Meinshausen (2006), "Quantile regression forests", Journal of Machine Learning Research 7:983-999, section 3.
        """
        with readable("quantiles", "numbers in 0 .. 1"):
            shares = np.asarray(quantiles, np.float64).reshape(-1)
        if not ((shares >= 0) & (shares <= 1)).all():
            raise ValueError(f"quantiles={brief(quantiles)} must lie in 0 .. 1")
        check_is_fitted(self, "forest_")
        if self.n_outputs_ > 1:
            raise ValueError(f"the fit had {self.n_outputs_} outputs, and quantiles are of one: fit one at a time")
        train = self._leaves(X_train)
        y = self._read_target(y_train, train.shape[0])[:, 0]
        weight = checked_weight(sample_weight, y)
        self._check_train(train, y, weight)
        theirs = membership(train, self.forest_.n_nodes, None)
        if weight is not None:
            theirs.data *= np.repeat(weight / weight.max(), np.diff(theirs.indptr))
            theirs.eliminate_zeros()
        sizes = np.asarray(theirs.sum(axis=0)).ravel()
        mine = membership(self._leaves(X), self.forest_.n_nodes, None)
        mine.data /= np.where(sizes > 0, sizes, 1.0)[mine.indices]
        step = max(1, DENSE_CELLS // max(1, train.shape[0]))
        blocks = [mine[first : first + step] @ theirs.T for first in range(0, mine.shape[0], step)]
        return np.concatenate([weighted_quantiles(block, y, shares) for block in blocks])

    def _check_train(self, leaves: NDArray[Any], y: NDArray[np.float64], weight: NDArray[np.float64] | None) -> None:
        """Refuse rows of y (n,) in leaves (n, T) that are not those of the fit, as far as leaves tell in any order."""
        remedy = "give all rows of the fit as X_train and y_train, without those of weight 0"
        counts = self.layout_.count(self.forest_.stats.T)
        there = np.ones(y.size, bool) if weight is None else weight > 0
        known, weighted = self._rows_known()
        if there.sum() != known and (there.sum() == self.n_rows_ or not weighted):
            raise ValueError(
                f"X_train has {there.sum():,} rows of positive weight, and the fit had {known:,}: {remedy}"
            )
        low, high = np.full(counts.size, np.inf), np.full(counts.size, -np.inf)
        for column in leaves[there].T:
            np.minimum.at(low, column, y[there])
            np.maximum.at(high, column, y[there])
        had = (self.forest_.kind == Test.LEAF) & (counts > 0)
        if (had & (low > high)).any():
            raise ValueError(
                f"{(had & (low > high)).sum():,} leaves of the trees have none of the {there.sum():,} rows of X_train, "
                f"and had some of the fit: {remedy}"
            )
        value, slack = self.forest_.value[:, 0], 1e-9 * np.abs(y).max(initial=0.0)
        odd = had & ((value < low - slack) | (value > high + slack))
        if odd.any() and getattr(self, "monotonic_cst", None) is None:  # which bounds the means
            raise ValueError(f"{odd.sum():,} leaves have a mean outside of y_train of their rows: {remedy}")

    def _rows_known(self) -> tuple[int, bool]:
        """Rows of positive weight of the fit, and whether weights differ."""
        if self.bagging_ is not None:
            kept = self.bagging_.kept
            return self.n_rows_ if kept is None else kept.size, self.bagging_.weight is not None
        root = self.forest_.stats[:1].T
        rows = int(self.layout_.count(root)[0])
        return rows, bool(self.layout_.weight(root)[0] * self.weight_unit_ != rows)

    def _truth(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        """The numbers."""
        return self._read_target(y, n_rows)

    def _target_truth(self, target: Target) -> NDArray[np.float64]:
        """The numbers."""
        assert target.sums is not None
        y: NDArray[np.float64] = target.sums.y.T
        return y

    def _losses(self, truth: NDArray[np.float64], found: NDArray[np.float64]) -> NDArray[np.float64]:
        """Squared error, mean over outputs."""
        losses: NDArray[np.float64] = ((truth - found) ** 2).mean(axis=1)
        return losses

    def _error_of_a_constant(self, truth: NDArray[np.float64]) -> float:
        """Mean squared error of the mean."""
        return float(self._losses(truth, truth.mean(axis=0)).mean())

    def _bag_target(self, labels: NDArray[Any], criterion: Criterion, draws: int) -> Target:
        """Sums of rows without weights."""
        self._check_numbers(labels)
        if self.oob_score or self.oob_tol is not None:
            with np.errstate(over="ignore"):
                self._check_reach(labels, np.ptp(labels, axis=0).max() ** 2 * labels.size)  # sum of squared errors
        return sum_target(labels, criterion, None, draws)

    def _keep_out_of_bag(self, mean: NDArray[np.float64], target: Target, bagging: Bagging) -> None:
        """Means and R^2 of the trees that have not seen a row."""
        whole = spread(mean, bagging)
        self.oob_prediction_ = whole[:, 0] if whole.shape[1] == 1 else whole
        known = ~np.isnan(mean[:, 0])
        assert target.sums is not None
        truth, found = target.sums.y.T[known], mean[known]
        self.oob_score_ = scored(self.oob_score, r2_score, truth, found if found.shape[1] > 1 else found[:, 0])
