"""Bags of any trees: docstring and parameters each. May import everything below."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gputree.learners.bagged_trees import BaggedTrees, bag_constraints
from gputree.learners.forest_tasks import ForestClassifier, ForestRegressor, Score
from gputree.learners.tasks import ClassifierTree, RegressorTree
from gputree.learners.trees import DecisionTreeClassifier, DecisionTreeRegressor


class BaggingTreeClassifier(BaggedTrees, ForestClassifier):
    """A forest of C4.5, ID3 or other classification trees on drawn rows.

    The trees are what ``estimator`` grows, with its criterion, tests, missing values, limits and pruning; they grow
    together, a level of all trees at a time. Each has a bag of rows drawn with replacement, in which a row that was
    drawn k times weighs k: it is the tree of `estimator` fitted with these weights, but for bins (``max_bins``) and
    shares of rows (``min_samples_leaf=0.1``), which are those of the whole table.

    Parameters
    ----------
    estimator : classification tree of this library, optional
        A tree that is not fitted, such as ``C45Classifier()``; by default `DecisionTreeClassifier`. Its ``device``,
        ``verbose`` and ``random_state`` do not count. Not with ``class_weight``, rules of stopping that look at rows,
        rules of pruning that ask for others, or leaves that have no answer.
    n_estimators : int, default=10
        Trees.
    max_features : int, float, "sqrt", "log2" or None, default=None
        Features tried in a node, drawn anew, and the next ones while none of them gives a test (scikit-learn's
        `BaggingClassifier` draws them once a tree). None: as ``estimator`` has it.
    bootstrap : bool, default=True
        Draw the rows of every tree with replacement; else each tree has all rows. With it, ``sample_weight`` and
        ``class_weight`` are the probabilities of the draws, as in `RandomForestClassifier`.
    oob_score, oob_tol, n_jobs, warm_start, class_weight, max_samples, voting, feature_draws, device
        As in `RandomForestClassifier`.
    random_state : int, RandomState or None
        Seed of all draws; None is 0.
    verbose : int, default=0
        Print a line a level to stderr.

    Attributes
    ----------
    estimator_ : estimator
        A tree without a fit.
    estimators_ : sequence of estimators
        The trees, made when they are asked for.
    estimators_samples_ : list of int64 arrays
        Rows of every bag, drawn anew at each call.
    oob_decision_function_, oob_score_, oob_errors_ : as of `RandomForestClassifier`
    forest_ : Forest
        All fitted arrays.

    Raises
    ------
    ValueError
        When it is fitted, if ``estimator`` cannot grow in bags; the message says why.

    References
    ----------
    Breiman (1996), "Bagging predictors", Machine Learning 24:123-140. Quinlan (1996), "Bagging, boosting, and C4.5",
    AAAI-96, 725-730.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import BaggingTreeClassifier, C45Classifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BaggingTreeClassifier(C45Classifier(min_weight=3), n_estimators=5).fit(X, y)
    >>> weight = np.bincount(model.estimators_samples_[4], minlength=len(X))
    >>> alone = C45Classifier(min_weight=3).fit(X, y, sample_weight=weight)
    >>> model.estimators_[4].fingerprint() == alone.fingerprint()
    True
    """

    _usual = DecisionTreeClassifier
    _parameter_constraints: ClassVar[dict[str, Any]] = bag_constraints(ClassifierTree, ForestClassifier)

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_features: float | str | None = None,
        bootstrap: bool = True,
        oob_score: Score = False,
        oob_tol: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: Any = None,
        max_samples: Any = None,
        feature_draws: str = "continue",
        voting: str = "soft",
        device: str = "auto",
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.oob_tol = oob_tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.max_samples = max_samples
        self.feature_draws = feature_draws
        self.voting = voting
        self.device = device


class BaggingTreeRegressor(BaggedTrees, ForestRegressor):
    """A forest of any regression trees on drawn rows; see `BaggingTreeClassifier`.

    The trees are what ``estimator`` grows; they grow together, and each is that of `estimator` fitted with the numbers
    of draws of its bag as weights: the same tests and means, but for bins (``max_bins``) and shares of rows
    (``min_samples_leaf=0.1``), which are those of the whole table. `RandomForestRegressor` is this for
    `DecisionTreeRegressor`, with its parameters in one place.

    Parameters
    ----------
    estimator : regression tree of this library, optional
        A tree that is not fitted, such as ``ExtraTreeRegressor()``; by default `DecisionTreeRegressor`. Its
        ``device``, ``verbose`` and ``random_state`` do not count. Not with rules of stopping that look at
        rows, or rules of pruning that ask for others.
    n_estimators : int, default=10
        Trees.
    max_features : int, float, "sqrt", "log2" or None, default=None
        Features tried in a node, drawn anew, and the next ones while none of them gives a test (scikit-learn's
        `BaggingRegressor` draws them once a tree). None: as ``estimator`` has it.
    bootstrap : bool, default=True
        Draw the rows of every tree with replacement; else each tree has all rows. With it, ``sample_weight`` holds
        the probabilities of the draws, as in `RandomForestRegressor`.
    oob_score, oob_tol, n_jobs, warm_start, max_samples, feature_draws, device : as in `RandomForestRegressor`
        The same names and meanings.
    random_state : int, RandomState or None
        Seed of all draws; None is 0.
    verbose : int, default=0
        Print a line a level to stderr.

    Attributes
    ----------
    estimator_ : estimator
        A tree without a fit.
    estimators_ : sequence of estimators
        The trees, made when they are asked for.
    estimators_samples_ : list of int64 arrays
        Rows of every bag, drawn anew at each call.
    oob_prediction_, oob_score_, oob_errors_ : as of `RandomForestRegressor`
    forest_ : Forest
        All fitted arrays.

    Raises
    ------
    ValueError
        When it is fitted, if ``estimator`` cannot grow in bags; the message says why.

    References
    ----------
    Breiman (1996), "Bagging predictors", Machine Learning 24:123-140.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gputree import BaggingTreeRegressor, DecisionTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BaggingTreeRegressor(DecisionTreeRegressor(max_depth=4), n_estimators=5).fit(X, y)
    >>> weight = np.bincount(model.estimators_samples_[4], minlength=len(X))
    >>> alone = DecisionTreeRegressor(max_depth=4).fit(X, y, sample_weight=weight)
    >>> bool((model.estimators_[4].forest_.low == alone.forest_.low).all())
    True
    """

    _usual = DecisionTreeRegressor
    _parameter_constraints: ClassVar[dict[str, Any]] = bag_constraints(RegressorTree, ForestRegressor)

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_features: float | str | None = None,
        bootstrap: bool = True,
        oob_score: Score = False,
        oob_tol: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        max_samples: float | None = None,
        feature_draws: str = "continue",
        device: str = "auto",
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.oob_tol = oob_tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.max_samples = max_samples
        self.feature_draws = feature_draws
        self.device = device
