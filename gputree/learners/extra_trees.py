"""Single trees of random tests: docstring and parameters each. May import everything below."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gputree.learners.tasks import ClassifierTree, RegressorTree


class ExtraTreeClassifier(ClassifierTree):
    """A classification tree of random thresholds.

    Each of ``max_features`` features offers one threshold, uniform between the smallest and the largest value in the
    node, and a side for missing values; the best of them is taken. (Where a column has one value in the node, missing
    values stand against it.) Made for ensembles: alone, prefer `DecisionTreeClassifier`.

    Parameters
    ----------
    splitter : {"random", "best"}, default="random"
    max_features : int, float, "sqrt", "log2" or None, default="sqrt"
    criterion, max_depth, min_samples_split, ... : as in `DecisionTreeClassifier`
        The same names, meanings and defaults.

    References
    ----------
    Breiman, Friedman, Olshen and Stone (1984), "Classification and Regression Trees".
    Geurts, Ernst and Wehenkel (2006), "Extremely randomized trees", Machine Learning 63:3-42.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import ExtraTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ExtraTreeClassifier(random_state=0, max_depth=3).fit(X, y)
    >>> model.get_depth(), model.get_n_leaves()
    (3, 7)
    """

    def __init__(
        self,
        *,
        criterion: str = "gini",
        splitter: str = "random",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = "sqrt",
        random_state: int | np.random.RandomState | None = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Any = None,
        stopping: Any = None,
        ccp_alpha: float = 0.0,
        pruning: Any = None,
        validation_fraction: float = 1 / 3,
        monotonic_cst: ArrayLike | None = None,
        categorical_features: ArrayLike | str | None = "from_dtype",
        categories: dict[Any, Any] | None = None,
        categorical_split: str = "binary",
        unknown: str = "majority",
        max_bins: int | str | None = "auto",
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.class_weight = class_weight
        self.stopping = stopping
        self.ccp_alpha = ccp_alpha
        self.pruning = pruning
        self.validation_fraction = validation_fraction
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.categories = categories
        self.categorical_split = categorical_split
        self.unknown = unknown
        self.max_bins = max_bins
        self.device = device
        self.verbose = verbose


class ExtraTreeRegressor(RegressorTree):
    """A regression tree of random thresholds.

    Each of ``max_features`` features offers one threshold, uniform between the smallest and the largest value in the
    node, and a side for missing values; the best of them is taken. (Where a column has one value in the node, missing
    values stand against it.) Made for ensembles: alone, prefer `DecisionTreeRegressor`.

    Parameters
    ----------
    splitter : {"random", "best"}, default="random"
    max_features : int, float, "sqrt", "log2" or None, default=1.0
    criterion, max_depth, min_samples_split, ... : as in `DecisionTreeRegressor`
        The same names, meanings and defaults.

    References
    ----------
    Breiman, Friedman, Olshen and Stone (1984), "Classification and Regression Trees".
    Geurts, Ernst and Wehenkel (2006), "Extremely randomized trees", Machine Learning 63:3-42.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gputree import ExtraTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ExtraTreeRegressor(random_state=0, max_leaf_nodes=8).fit(X, y)
    >>> model.get_depth(), model.get_n_leaves()
    (4, 8)
    """

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        splitter: str = "random",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = 1.0,
        random_state: int | np.random.RandomState | None = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        stopping: Any = None,
        ccp_alpha: float = 0.0,
        pruning: Any = None,
        validation_fraction: float = 1 / 3,
        monotonic_cst: ArrayLike | None = None,
        categorical_features: ArrayLike | str | None = "from_dtype",
        categories: dict[Any, Any] | None = None,
        categorical_split: str = "binary",
        unknown: str = "majority",
        max_bins: int | str | None = "auto",
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.stopping = stopping
        self.ccp_alpha = ccp_alpha
        self.pruning = pruning
        self.validation_fraction = validation_fraction
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.categories = categories
        self.categorical_split = categorical_split
        self.unknown = unknown
        self.max_bins = max_bins
        self.device = device
        self.verbose = verbose
