"""Random forests: docstring and parameters each. May import everything below."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gputree.learners.forest_tasks import ForestClassifier, ForestRegressor, Score
from gputree.learners.trees import DecisionTreeClassifier, DecisionTreeRegressor


class RandomForestClassifier(ForestClassifier):
    """A forest of classification trees on drawn rows.

    Every tree has a bag of rows drawn with replacement and tries ``max_features`` features in a node, drawn anew, and
    the next ones while none of them gives a split. Draws are a hash of the seed and the tree's number, so a tree is
    the same whether it is grown alone, in any batch or later.

    Parameters
    ----------
    n_estimators : int, default=100
        Trees.
    criterion, max_depth, min_samples_split, ... : as in `DecisionTreeClassifier`
        The same names and meanings. ``max_features`` is "sqrt" by default; 1.0 means all features. Shares of rows are
        of all rows of the table, not of those of a bag, as in scikit-learn.
    bootstrap : bool, default=True
        Draw the rows of every tree with replacement; else each tree has all rows. With it, ``sample_weight`` and
        ``class_weight`` are the probabilities of the draws: "balanced" draws all classes equally often on average,
        "balanced_subsample" in every bag, the first classes once more where the draws cannot be parted.
    stopping : Rule, optional
        What else ends the growth of every tree: `gputree.stopping`, but for rules that look at rows. A rule sees the
        best test of the features that were drawn in a node.
    pruning : Rule, optional
        How every tree is pruned: a rule of `gputree.pruning`. One that asks for the rows of the fit gets those of the
        bag; one that asks for others is refused.
    oob_score : bool or callable, default=False
        Estimate from the trees whose bags lack a row; a callable takes (y_true, y_pred).
    oob_tol : float, optional
        Stop adding trees when more would gain no more than this; ``n_estimators`` is then the most. After every 20
        trees, the out-of-bag error of the first half of them less that of all, plus the standard error of this
        difference over rows, must be at most ``oob_tol`` of the rows. The error of T trees is about
        a + b / T, so the second half gained b / T, as much as all that could follow.
    n_jobs : int, optional
        Threads of compiled kernels, which "auto" and "cpu" take for large fits; by default all. It cannot change
        the result.
    warm_start : bool, default=False
        Keep the trees that are there and add those that are missing: 5 and then 10 are the 10 grown at once. The rows
        and the parameters that trees depend on must be those of the first fit; others are refused.
    max_samples : int, float, dict or array-like of int (n_classes,), optional
        Draws of a bag, by default as many as rows of positive weight; a float is a share of the rows or of the sum of
        their weights. A dict {class: draws}, or numbers in the order of ``classes_``, are draws of each class.
    voting : {"soft", "hard"}, default="soft"
        Mean class shares of the leaves, or one vote a tree.
    feature_draws : {"continue", "stop", "repeats"}, default="continue"
        Where none of the ``max_features`` drawn features gives a split: try the next ones, or keep the leaf. With
        "repeats" a feature may be drawn more than once, so that there are fewer different ones, and the leaf is kept
        (Shalev-Shwartz and Ben-David 2014, "Understanding Machine Learning", 18.3, taken literally).
    device : {"auto", "cpu", "numpy", "jit", "cuda", "cuda:<number>"}, default="auto"
        Where to grow and to predict; it cannot change the result.

    Attributes
    ----------
    estimators_ : sequence of `DecisionTreeClassifier`
        The trees, made when they are asked for.
    estimators_samples_ : list of int64 arrays
        Rows of every bag, drawn anew at each call.
    oob_decision_function_, oob_score_
        With ``oob_score``: estimates, NaN where a row is in every bag, and the score over the others.
    oob_errors_ : float64 array (n_trees,)
        With ``oob_score`` or ``oob_tol``: error by number of trees, a share of the rows.
    stop_reason_ : array of str (n_nodes,)
        With ``stopping``: why each leaf is one, tree after tree.
    forest_ : Forest
        All fitted arrays.

    References
    ----------
    Breiman (2001), "Random forests", Machine Learning 45:5-32. Shalev-Shwartz and Ben-David (2014), "Understanding
    Machine Learning", 18.3. Hastie, Tibshirani and Friedman (2009), "The Elements of Statistical Learning", 15.2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RandomForestClassifier(10).fit(X, y)
    >>> len(model.estimators_)
    10
    """

    splitter: ClassVar[str] = "best"

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: Score = False,
        oob_tol: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: Any = None,
        stopping: Any = None,
        ccp_alpha: float = 0.0,
        pruning: Any = None,
        max_samples: Any = None,
        monotonic_cst: ArrayLike | None = None,
        categorical_features: ArrayLike | str | None = "from_dtype",
        categories: dict[Any, Any] | None = None,
        categorical_split: str = "binary",
        unknown: str = "majority",
        max_bins: int | str | None = "auto",
        feature_draws: str = "continue",
        voting: str = "soft",
        device: str = "auto",
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.oob_tol = oob_tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.stopping = stopping
        self.ccp_alpha = ccp_alpha
        self.pruning = pruning
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.categories = categories
        self.categorical_split = categorical_split
        self.unknown = unknown
        self.max_bins = max_bins
        self.feature_draws = feature_draws
        self.voting = voting
        self.device = device

    def _tree_class(self) -> Any:
        """DecisionTreeClassifier."""
        return DecisionTreeClassifier


class RandomForestRegressor(ForestRegressor):
    """A forest of regression trees on drawn rows; see `RandomForestClassifier`.

    Parameters
    ----------
    n_estimators : int, default=100
        Trees.
    criterion, max_depth, min_samples_split, ... : as in `DecisionTreeRegressor`
        The same names and meanings; the default ``max_features=1.0`` means all features. Shares of rows are of all
        rows of the table, not of those of a bag, as in scikit-learn.
    bootstrap : bool, default=True
        Draw the rows of every tree with replacement; else each tree has all rows. With it, ``sample_weight`` holds
        the probabilities of the draws.
    stopping : Rule, optional
        What else ends the growth of every tree: `gputree.stopping`, but for rules that look at rows. A rule sees the
        best test of the features that were drawn in a node.
    pruning : Rule, optional
        How every tree is pruned: a rule of `gputree.pruning`. One that asks for the rows of the fit gets those of the
        bag; one that asks for others is refused.
    oob_score : bool or callable, default=False
        Estimate from the trees whose bags lack a row; a callable takes (y_true, y_pred).
    oob_tol : float, optional
        Stop adding trees when more would gain no more than this; ``n_estimators`` is then the most. After every 20
        trees, the out-of-bag error of the first half of them less that of all, plus the standard error of this
        difference over rows, must be at most ``oob_tol`` times the variance of y. The error of T trees is about
        a + b / T, so the second half gained b / T, as much as all that could follow.
    n_jobs : int, optional
        Threads of compiled kernels, which "auto" and "cpu" take for large fits; by default all. It cannot change
        the result.
    warm_start : bool, default=False
        Keep the trees that are there and add those that are missing: 5 and then 10 are the 10 grown at once. The rows
        and the parameters that trees depend on must be those of the first fit; others are refused.
    max_samples : int or float, optional
        Draws of a bag, by default as many as rows of positive weight; a float is a share of the rows or of the sum of
        their weights.
    feature_draws : {"continue", "stop", "repeats"}, default="continue"
        Where none of the ``max_features`` drawn features gives a split: try the next ones, or keep the leaf. With
        "repeats" a feature may be drawn more than once, so that there are fewer different ones, and the leaf is kept
        (Shalev-Shwartz and Ben-David 2014, "Understanding Machine Learning", 18.3, taken literally).
    device : {"auto", "cpu", "numpy", "jit", "cuda", "cuda:<number>"}, default="auto"
        Where to grow and to predict; it cannot change the result.

    Attributes
    ----------
    estimators_ : sequence of `DecisionTreeRegressor`
        The trees, made when they are asked for.
    estimators_samples_ : list of int64 arrays
        Rows of every bag, drawn anew at each call.
    oob_prediction_, oob_score_
        With ``oob_score``: estimates, NaN where a row is in every bag, and the score over the others.
    oob_errors_ : float64 array (n_trees,)
        With ``oob_score`` or ``oob_tol``: error by number of trees, mean squared over outputs.
    stop_reason_ : array of str (n_nodes,)
        With ``stopping``: why each leaf is one, tree after tree.
    forest_ : Forest
        All fitted arrays.

    References
    ----------
    Breiman (2001), "Random forests", Machine Learning 45:5-32. Hastie, Tibshirani and Friedman (2009), "The
    Elements of Statistical Learning", 15.2.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gputree import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RandomForestRegressor(10).fit(X, y)
    >>> len(model.estimators_)
    10
    """

    splitter: ClassVar[str] = "best"

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = 1.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        oob_score: Score = False,
        oob_tol: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        stopping: Any = None,
        ccp_alpha: float = 0.0,
        pruning: Any = None,
        max_samples: float | None = None,
        monotonic_cst: ArrayLike | None = None,
        categorical_features: ArrayLike | str | None = "from_dtype",
        categories: dict[Any, Any] | None = None,
        categorical_split: str = "binary",
        unknown: str = "majority",
        max_bins: int | str | None = "auto",
        feature_draws: str = "continue",
        device: str = "auto",
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.oob_tol = oob_tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.stopping = stopping
        self.ccp_alpha = ccp_alpha
        self.pruning = pruning
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.categories = categories
        self.categorical_split = categorical_split
        self.unknown = unknown
        self.max_bins = max_bins
        self.feature_draws = feature_draws
        self.device = device

    def _tree_class(self) -> Any:
        """DecisionTreeRegressor."""
        return DecisionTreeRegressor
