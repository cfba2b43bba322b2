"""Single trees: docstring and parameters each. May import everything below."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gputree.learners.tasks import ClassifierTree, RegressorTree


class DecisionTreeClassifier(ClassifierTree):
    """A classification tree.

    Grown level by level from integer statistics: the same data, parameters and seed give the same arrays, bit for bit.
    Ties go to the higher score, then the lowest feature, then missing values to the right, then the lowest cut. Missing
    values take the better side, of a random cut one that is drawn; a node that met none sends them to the child of
    larger weight (the first when equal), and a category that it never met likewise. A test is ``x <= threshold`` in
    float64, or asks whether a category is one of some.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss", "train_error", "gain_ratio", "twoing", "chi2"}, default="gini"
        What a split is scored by. "gini": decrease of the chance that two rows of a node differ in class (CART).
        "entropy" or "log_loss": decrease of the entropy of the classes (ID3). "train_error": decrease of the share of
        rows that are not of the largest class. "gain_ratio": decrease of the entropy over the entropy of the branch
        sizes (C4.5). "twoing": how far the class shares of two branches lie apart (CART, 4.3.2). "chi2": Pearson's
        statistic of the table of branches and classes.
    splitter : {"best", "random"}, default='best'
        "best" tries every cut; "random" one uniform threshold a feature and node, with a side for missing
        values that is drawn, too (missing against known where the node has one value of the feature).
    max_depth : int, optional
        Greatest depth of a leaf; the root has depth 0.
    min_samples_split : int or float, default=2
        Least rows of a node that is split; a float is a share of the rows, rounded up. Rows of weight 0 do not count.
    min_samples_leaf : int or float, default=1
        Least rows of a leaf, in the same way.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the total weight in a leaf.
    max_features : int, float, "sqrt", "log2" or None, default=None
        Features tried in a node, drawn by a hash of the seed and the node's path. While none of them gives a split,
        the next ones are tried.
    random_state : int, RandomState or None
        Seed of all draws; None is 0. Ties are never drawn.
    max_leaf_nodes : int, optional
        Grow best first to so many leaves, if there are so many splits; a test with more branches than leaves are left
        is passed over.
    min_impurity_decrease : float, default=0.0
        A split must decrease the weighted impurity by at least this much; with "chi2" and "twoing" it is their own
        gain a row of the table.
    class_weight : dict, list of dicts, "balanced" or None
        Weights by class, times the weights of the rows.
    stopping : Rule, optional
        What else ends growth: `gputree.stopping`.
    ccp_alpha : float, default=0.0
        Collapse what minimal cost-complexity pruning finds too weak.
    pruning : Rule, optional
        How the grown tree is pruned: a rule of `gputree.pruning`, in the place of ``ccp_alpha``. One that asks for rows
        which the fit has not seen gets some that are kept back; the tree is grown on the others.
    validation_fraction : float in (0, 1), default=1/3
        Share of the rows of each class (of the first output), rounded down, that are kept back for such a rule, drawn
        by a hash of the seed.
    monotonic_cst : array-like of int (n_features,), optional
        1: the share of the second class may only rise with the feature, -1: only fall, 0: free. Two classes only.
    categorical_features : "from_dtype", array-like of int, str or bool, or None, default="from_dtype"
        Columns that hold categories: by their type (category, Enum, dictionary, string, boolean), by number or name, or
        by a mask. None: none.
    categories : dict, optional
        Column name or number -> its possible values in order. By default those that the type of a column lists, else
        those met in the fit.
    categorical_split : {"binary", "multiway"}, default="binary"
        "binary": the best of all ways to part the categories in two (of those in order of their means, where least
        rows or weights of a leaf forbid the best); with more than two
        categories, for two classes only. "multiway": a branch for each declared
        category, or for each that the node met where none are declared.
    unknown : {"majority", "error"}, default="majority"
        What a prediction does with a value that is none of the categories: follow the child of larger training weight,
        or raise.
    max_bins : int, None or "auto", default="auto"
        Most known codes of a feature. "auto": every distinct value where a feature has at most 255 of them or the
        table at most 65,535 rows, else 255 weighted quantiles. None: every distinct value, however many: the cuts are
        those between all values, as in scikit-learn. CUDA refuses more than 65,535.
    device : {"auto", "cpu", "numpy", "jit", "cuda", "cuda:<number>"}, default="auto"
        Where to grow and to predict; it cannot change the result. A prediction whose device is not there uses the CPU.
    verbose : int, default=0
        Print a line a level to stderr.

    Attributes
    ----------
    classes_ : array (n_classes,) or list of them
        Labels, as they were given.
    n_classes_, n_outputs_, n_features_in_, max_features_ : int
        Counts; ``n_classes_`` is a list for several outputs.
    feature_names_in_ : array of str
        Names of the columns, if X had any.
    stop_reason_ : array of str (n_nodes,)
        With ``stopping``: why each leaf is one.
    forest_ : Forest
        All fitted arrays.
    fit_info_ : FitInfo
        Where the fit ran, how much it visited and how long it took.

    References
    ----------
    Breiman, Friedman, Olshen and Stone (1984), "Classification and Regression Trees".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3).fit(X, y)
    >>> model.get_depth(), model.get_n_leaves()
    (3, 5)
    """

    def __init__(
        self,
        *,
        criterion: str = "gini",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = None,
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


class DecisionTreeRegressor(RegressorTree):
    """A regression tree.

    Grown level by level from integer statistics: the same data, parameters and seed give the same arrays, bit for bit.
    Ties go to the higher score, then the lowest feature, then missing values to the right, then the lowest cut. Missing
    values take the better side, of a random cut one that is drawn; a node that met none sends them to the child of
    larger weight (the first when equal), and a category that it never met likewise. A test is ``x <= threshold`` in
    float64, or asks whether a category is one of some.

    Parameters
    ----------
    criterion : {"squared_error", "poisson"}, default="squared_error"
        What a split is scored by. "squared_error": decrease of the variance; scikit-learn's "friedman_mse" is another
        name of it. "poisson": decrease of the Poisson deviance, for numbers of 0 or more such as counts.
        ("absolute_error" is not offered: a median is no sum over rows.) Splits see y in fixed point: differences below
        2**-61 of its range, times the number of rows, are not seen; values and impurities of nodes are exact to the
        last digits all the same.
    splitter : {"best", "random"}, default='best'
        "best" tries every cut; "random" one uniform threshold a feature and node, with a side for missing
        values that is drawn, too (missing against known where the node has one value of the feature).
    max_depth : int, optional
        Greatest depth of a leaf; the root has depth 0.
    min_samples_split : int or float, default=2
        Least rows of a node that is split; a float is a share of the rows, rounded up. Rows of weight 0 do not count.
    min_samples_leaf : int or float, default=1
        Least rows of a leaf, in the same way.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the total weight in a leaf.
    max_features : int, float, "sqrt", "log2" or None, default=None
        Features tried in a node, drawn by a hash of the seed and the node's path. While none of them gives a split,
        the next ones are tried.
    random_state : int, RandomState or None
        Seed of all draws; None is 0. Ties are never drawn.
    max_leaf_nodes : int, optional
        Grow best first to so many leaves, if there are so many splits; a test with more branches than leaves are left
        is passed over.
    min_impurity_decrease : float, default=0.0
        A split must decrease the weighted impurity by at least this much.
    stopping : Rule, optional
        What else ends growth: `gputree.stopping`.
    ccp_alpha : float, default=0.0
        Collapse what minimal cost-complexity pruning finds too weak.
    pruning : Rule, optional
        How the grown tree is pruned: a rule of `gputree.pruning`, in the place of ``ccp_alpha``. One that asks for rows
        which the fit has not seen gets some that are kept back; the tree is grown on the others.
    validation_fraction : float in (0, 1), default=1/3
        Share of the rows, rounded down, that are kept back for such a rule, drawn by a hash of the seed.
    monotonic_cst : array-like of int (n_features,), optional
        1: the mean may only rise with the feature, -1: only fall, 0: free. One output only.
    categorical_features : "from_dtype", array-like of int, str or bool, or None, default="from_dtype"
        Columns that hold categories: by their type (category, Enum, dictionary, string, boolean), by number or name, or
        by a mask. None: none.
    categories : dict, optional
        Column name or number -> its possible values in order. By default those that the type of a column lists, else
        those met in the fit.
    categorical_split : {"binary", "multiway"}, default="binary"
        "binary": the best of all ways to part the categories in two (of those in order of their means, where least
        rows or weights of a leaf forbid the best); with more than two
        categories, for one output only. "multiway": a branch for each declared
        category, or for each that the node met where none are declared.
    unknown : {"majority", "error"}, default="majority"
        What a prediction does with a value that is none of the categories: follow the child of larger training weight,
        or raise.
    max_bins : int, None or "auto", default="auto"
        Most known codes of a feature. "auto": every distinct value where a feature has at most 255 of them or the
        table at most 65,535 rows, else 255 weighted quantiles. None: every distinct value, however many: the cuts are
        those between all values, as in scikit-learn. CUDA refuses more than 65,535.
    device : {"auto", "cpu", "numpy", "jit", "cuda", "cuda:<number>"}, default="auto"
        Where to grow and to predict; it cannot change the result. A prediction whose device is not there uses the CPU.
    verbose : int, default=0
        Print a line a level to stderr.

    Attributes
    ----------
    n_outputs_, n_features_in_, max_features_ : int
        Counts.
    feature_names_in_ : array of str
        Names of the columns, if X had any.
    stop_reason_ : array of str (n_nodes,)
        With ``stopping``: why each leaf is one.
    forest_ : Forest
        All fitted arrays.
    fit_info_ : FitInfo
        Where the fit ran, how much it visited and how long it took.

    References
    ----------
    Breiman, Friedman, Olshen and Stone (1984), "Classification and Regression Trees".

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gputree import DecisionTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DecisionTreeRegressor(max_leaf_nodes=8).fit(X, y)
    >>> model.get_depth(), model.get_n_leaves()
    (5, 8)
    """

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: float | str | None = None,
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
