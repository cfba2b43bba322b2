"""Isolation forests: how soon random tests part a row from the others. May import everything below."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_matrix, hstack
from sklearn.base import OutlierMixin
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from gputree.backends.arrays import in_kind, to_host
from gputree.core.bags import Bags, Listed, smallest
from gputree.core.criteria import Criterion
from gputree.core.forest import Forest
from gputree.core.keys import Stream, draw, root_keys
from gputree.core.schema import EXACT_ROWS, Schema
from gputree.core.warned import warn
from gputree.engine.grow import Watch, grow
from gputree.engine.recipe import Recipe
from gputree.learners.forest import FOREST_CONSTRAINTS
from gputree.learners.grower import Prepared, Rows
from gputree.learners.random_target import RandomTrees

AUTO_ROWS = 256  # of a bag: Liu, Ting and Zhou (2008), section 4.1


def average_path_length(rows: ArrayLike) -> NDArray[np.float64]:
    """Mean depth at which a search in a random tree of so many rows ends.

    c(n) = 2 H(n - 1) - 2 (n - 1) / n with H(i) taken as ln(i) + Euler's constant; c(2) = 1, and 0 below.

    Parameters
    ----------
    rows : array-like of int >= 0, any shape

    Returns
    -------
    float64 array of the same shape

    References
    ----------
    Liu, Ting and Zhou (2008), "Isolation forest", ICDM, equation 1.

    Examples
    --------
    >>> average_path_length([1, 2, 256]).round(4)
    array([ 0.    ,  1.    , 10.2448])
    """
    n = np.asarray(rows, np.float64)
    many = np.maximum(n, 3.0)
    length = 2.0 * (np.log(many - 1.0) + np.euler_gamma) - 2.0 * (many - 1.0) / many
    return np.where(n > 2, length, np.where(n == 2, 1.0, 0.0))


def draws_of_a_tree(max_samples: Any, n: int) -> int:
    """``max_samples`` as a number of rows; n rows have a positive weight."""
    if max_samples == "auto":
        return min(AUTO_ROWS, n)
    if not isinstance(max_samples, Integral):
        return max(1, int(max_samples * n))
    return min(int(max_samples), n)


def picked(X: Any, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Any:
    """Cells of some rows (n,) in columns (n, m) of their own, an array or a matrix (n, m) as X is one."""
    if isinstance(X, np.ndarray):
        return X[rows[:, None], columns]
    by_row = X.tocsr()
    return hstack([csc_matrix(by_row[rows, column].reshape(-1, 1)) for column in columns.T], format="csc")


class IsolationForest(OutlierMixin, RandomTrees):
    """Outliers are the rows that few random tests part from the others.

    Each tree has few rows. A node tests one random feature at a uniform threshold between the smallest and the largest
    value in the node, down to a depth of log2 of the tree's rows. Missing values take either side by chance, drawn for
    each node: a row that lacks some is parted from the crowd a little sooner, as in scikit-learn.

    Parameters
    ----------
    n_estimators : int, default=100
        Trees.
    max_samples : "auto", int or float, default="auto"
        Rows of a tree, by default 256 or all; a float is a share of the rows of positive weight, of which a tree has
        no more. Thresholds are exact up to 65,535 rows of
        a tree.
    contamination : "auto" or float, default="auto"
        Share of outliers among the rows of the fit, at most 0.5; "auto" parts at a score of -0.5.
    max_features : int or float, default=1.0
        Columns of a tree, drawn for it; a float is a share.
    bootstrap : bool, default=False
        Draw rows with replacement. ``sample_weight`` are the probabilities of draws either way.
    n_jobs : int, optional
        Threads of compiled kernels, which "auto" and "cpu" take for large fits; by default all. It cannot change
        the result.
    warm_start : bool, default=False
        Keep the trees that are there and add those that are missing: 5 and then 10 are the 10 grown at once. The rows
        and the parameters that trees depend on must be those of the first fit; others are refused.
    device : {"auto", "cpu", "numpy", "jit", "cuda", "cuda:<number>"}, default="auto"
        Where to grow and to score; it cannot change the trees.

    Attributes
    ----------
    offset_ : float
        ``decision_function`` is ``score_samples`` less this.
    max_samples_ : int
        Rows drawn for a tree.
    estimators_ : sequence of `ExtraTreeRegressor`
        The trees, made when they are asked for, on the columns ``estimators_features_``.
    estimators_samples_ : list of int64 arrays
        Rows of every tree, drawn anew at each call.
    forest_ : Forest
        All fitted arrays.

    References
    ----------
    Liu, Ting and Zhou (2008), "Isolation forest", ICDM 413-422.

    Examples
    --------
    >>> from gputree import IsolationForest
    >>> model = IsolationForest().fit([[-1.1], [0.3], [0.5], [100]])
    >>> model.predict([[0.1], [0], [90]])
    array([ 1,  1, -1])
    """

    max_leaf_nodes: ClassVar[None] = None
    min_samples_split: ClassVar[int] = 2
    min_samples_leaf: ClassVar[int] = 1
    min_weight_fraction_leaf: ClassVar[float] = 0.0
    min_impurity_decrease: ClassVar[float] = 0.0
    categorical_split: ClassVar[str] = "binary"
    max_bins: ClassVar[str] = "auto"
    _saved: ClassVar[tuple[str, ...]] = (*RandomTrees._saved, "max_samples_", "estimators_features_", "offset_")
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            name: FOREST_CONSTRAINTS[name]
            for name in (
                *("n_estimators", "bootstrap", "n_jobs", "random_state", "verbose", "warm_start"),
                *("categorical_features", "categories", "unknown", "device"),
            )
        },
        "max_samples": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
        ],
        "contamination": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="right")],
        "max_features": [Interval(Integral, 1, None, closed="left"), Interval(RealNotInt, 0, 1, closed="right")],
    }

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        max_samples: float | str = "auto",
        contamination: float | str = "auto",
        max_features: float = 1.0,
        bootstrap: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        categorical_features: ArrayLike | str | None = "from_dtype",
        categories: dict[Any, Any] | None = None,
        unknown: str = "majority",
        device: str = "auto",
    ) -> None:
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.contamination = contamination
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.categorical_features = categorical_features
        self.categories = categories
        self.unknown = unknown
        self.device = device

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the trees, and find the score that parts outliers from the others.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            As in `DecisionTreeClassifier.fit`.
        y : ignored
        sample_weight : array-like of shape (n_rows,), optional
            Finite weights >= 0, not all 0: probabilities of the draws. Rows of weight 0 take no part.

        Returns
        -------
        self
        """
        super().fit(X, None, sample_weight)
        if isinstance(self.max_samples, Integral) and self.max_samples > self.max_samples_:
            warn(
                f"max_samples ({self.max_samples}) is greater than the total number of samples ({self.max_samples_}). "
                "max_samples will be set to n_samples for estimation.",
            )
        self.offset_ = -0.5  # the score of a row whose depth is that of an average search
        if not isinstance(self.contamination, str):
            scores = self._scores(X)
            kept = slice(None) if sample_weight is None else np.asarray(to_host(sample_weight)) > 0
            self.offset_ = float(np.percentile(scores[kept], 100.0 * self.contamination))
        return self

    # -- growth

    @property
    def max_depth(self) -> int:
        """Depth limit of the trees, ceil(log2) of their rows."""
        return max(1, (self.max_samples_ - 1).bit_length())

    def _cells(self, rows: Rows) -> int:
        """Of the drawn rows."""
        return self.max_samples_ * int(rows.X.shape[1]) * self.n_estimators

    def _rows(
        self, X: NDArray[Any], labels: NDArray[Any], weight: NDArray[np.float64] | None, criterion: Criterion, seed: int
    ) -> Rows:
        """Rows are always drawn, by their weights."""
        return self._drawn(X, labels, weight, criterion)

    def _sizes(self, labels: NDArray[Any], weight: NDArray[np.float64] | None) -> tuple[NDArray[np.int64], None]:
        """``max_samples`` of the rows of positive weight."""
        n = labels.shape[0] if weight is None else int(np.count_nonzero(weight))
        self.max_samples_ = draws_of_a_tree(self.max_samples, n)
        return np.array([self.max_samples_], np.int64), None

    def _recipe(self, criterion: Criterion, rows: Rows, schema: Schema) -> Recipe:
        """``max_features`` are the columns of a tree."""
        if self.max_features > schema.n_features:
            raise ValueError(f"max_features={self.max_features} must be <= n_features, and X has {schema.n_features}")
        return super()._recipe(criterion, rows, schema)

    def _growing(self, ready: Prepared, watch: Watch | None) -> Callable[[range], Forest]:
        """Trees of few rows have codes of their own."""
        n_features, rows = self.schema_.n_features, ready.rows
        ready = replace(ready, rows=replace(rows, X=to_host(rows.X)))  # only drawn rows go to the device
        seeds = root_keys(self.seed_, np.arange(self.n_estimators))[:, None]
        order = draw(seeds, Stream.COLUMN, np.arange(n_features, dtype=np.uint64))
        self.estimators_features_ = [smallest(hashes, self.max_features_) for hashes in order]
        return lambda trees: self._grown_together(ready, watch, trees)

    def _together(self, ready: Prepared) -> int:
        """As many trees as stay exact together; trees of other columns alone, where some hold categories."""
        alike = self.max_features_ == self.schema_.n_features or not self.schema_.kinds.any()
        return max(1, EXACT_ROWS // self.max_samples_) if alike else 1

    def _grown_together(self, ready: Prepared, watch: Watch | None, trees: range) -> Forest:
        """Trees on the rows that one of them has drawn, or with rows of its own for each where columns differ."""
        rows, backend, columns = ready.rows, ready.backend, np.stack([self.estimators_features_[t] for t in trees])
        draws = ready.recipe.sampler.draws
        bags = np.concatenate([Bags(1, t, self.seed_, draws).drawn(0) for t in trees])
        ptr = np.arange(len(trees) + 1) * self.max_samples_
        own, places = np.unique(bags, return_inverse=True)
        X = rows.X[own]
        if columns.shape[1] < X.shape[1]:
            tree = np.repeat(np.arange(len(trees)), self.max_samples_)
            each, places = np.unique(tree * own.size + places, return_inverse=True)
            own, X = own[each % own.size], picked(X, each % own.size, columns[each // own.size])
        sampler = replace(ready.recipe.sampler, first=trees[0], n_trees=len(trees), draws=Listed(places, ptr))
        table = Rows(X, rows.target.take(own), own.size, rows.total_weight)
        schema = Schema(tuple(self.schema_.features[f] for f in columns[0]))
        codes = backend.encode(table.X, self._edges(backend, table, schema))
        recipe = replace(ready.recipe, sampler=sampler)
        forest = grow(backend, codes, table.target, recipe, self.seed_, watch)
        of_tree = np.repeat(np.arange(len(trees)), np.diff(forest.roots, append=forest.n_nodes))
        named = np.column_stack([columns, np.full(len(trees), -1)]).astype(np.int32)  # the feature of a leaf is -1
        return replace(forest, feature=named[of_tree, forest.feature])

    def _tree(self, t: int) -> Any:
        """A tree of some columns numbers its features among them, as scikit-learn's does."""
        model, columns = super()._tree(t).set_params(max_features=1), self.estimators_features_[t]
        place = np.append(np.full(self.n_features_in_, -1, np.int32), np.int32(-1))
        place[columns] = np.arange(columns.size)
        model.forest_ = replace(model.forest_, feature=place[model.forest_.feature]).lock()
        model.schema_ = Schema(tuple(self.schema_.features[f] for f in columns))
        model.n_features_in_ = columns.size
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_[columns]
        return model

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """No tree has learnt what matters."""
        raise AttributeError("the tests of an IsolationForest are drawn by chance, so no feature is important")

    # -- scores

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Opposite of the paper's score (n,), on the host."""
        check_is_fitted(self, "forest_")
        forest, usual = self.forest_, float(average_path_length(self.max_samples_))
        length = forest.depth + average_path_length(self.layout_.count(forest.stats.T))
        mean = self._sums(X, replace(forest, value=length[:, None]))[:, 0] / forest.roots.size
        scores: NDArray[np.float64] = -(2.0 ** -(mean / usual if usual else np.ones(mean.size)))
        return scores

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Opposite of the anomaly score: -2^(-E / c), E the mean depth of a row and c that of a search among all rows.

        The depth in a tree is that of the leaf plus what its rows would add, `average_path_length`; c is the latter of
        the rows of a tree (Liu, Ting and Zhou 2008, equation 2).

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        float64 array (n_rows,)
            In -1 .. 0; the lower, the more abnormal.
        """
        scores: NDArray[np.float64] = in_kind(self._scores(X), X)
        return scores

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """`score_samples` less ``offset_``, float64 (n_rows,): below 0 for outliers."""
        scores: NDArray[np.float64] = in_kind(self._scores(X) - self.offset_, X)
        return scores

    def predict(self, X: Any) -> NDArray[np.int64]:
        """-1 for outliers and 1 for the others, int64 (n_rows,)."""
        signs: NDArray[np.int64] = in_kind(np.where(self._scores(X) < self.offset_, -1, 1), X)
        return signs
