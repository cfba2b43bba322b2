"""Single trees: docstrings, parameters, and what tells labels from numbers. May import everything below."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import compute_sample_weight
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_array

from gputree.core.criteria import Criterion
from gputree.core.target import Target, class_target, sum_target
from gputree.learners.base import BaseTree


def as_columns(y: Any, n_rows: int) -> NDArray[Any]:
    """The y of a fit as a 2-D array (n, outputs), of whatever type its values have."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    array: NDArray[Any] = check_array(y, ensure_2d=False, dtype=None, ensure_all_finite=False, input_name="y")
    array = array.reshape(-1, 1) if array.ndim == 1 else array
    if array.shape[0] != n_rows:
        raise ValueError(
            f"y has {array.shape[0]} rows and X has {n_rows}: give one value or list of values for each row"
        )
    return array


def checked_weight(weight: Any, X: NDArray[Any]) -> NDArray[np.float64] | None:
    """Weights f8 (n,): finite, not negative, not all 0."""
    if weight is None:
        return None
    array: NDArray[np.float64] = _check_sample_weight(weight, X, dtype=np.float64)
    if (array < 0).any():
        raise ValueError(f"sample_weight holds {array.min()!r}; weights must be 0 or more: leave such rows out")
    if not array.any():
        raise ValueError("sample_weight is 0 for every row; at least one weight must be positive")
    return array


class ClassifierTree(ClassifierMixin, BaseTree):
    """Trees whose leaves hold class shares."""

    _criteria = ("gini", "entropy", "log_loss", "train_error", "gain_ratio", "twoing", "chi2")
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseTree._parameter_constraints,
        "class_weight": [dict, list, StrOptions({"balanced"}), None],
    }

    def _read_target(self, y: Any, n_rows: int) -> NDArray[np.int32]:
        """Class numbers (n, outputs); remembers the classes."""
        array = as_columns(y, n_rows)
        check_classification_targets(array if array.shape[1] > 1 else array[:, 0])
        codes = [np.unique(column, return_inverse=True) for column in array.T]
        classes = [values for values, _ in codes]
        single = array.shape[1] == 1
        self.classes_: Any = classes[0] if single else classes
        self.n_classes_: Any = classes[0].size if single else [c.size for c in classes]
        return np.stack([inverse.astype(np.int32).ravel() for _, inverse in codes], axis=1)

    def _weights(self, labels: NDArray[Any], weight: Any, n_rows: int) -> NDArray[np.float64] | None:
        """Weights of the rows, times those of their classes."""
        given = checked_weight(weight, labels)
        if self.class_weight is None:
            return given
        names = [c[column] for c, column in zip(self._class_lists(), labels.T, strict=True)]
        by_class = compute_sample_weight(self.class_weight, np.stack(names, axis=1) if len(names) > 1 else names[0])
        return checked_weight(by_class if given is None else given * by_class, labels)

    def _class_lists(self) -> list[NDArray[Any]]:
        """Classes of every output."""
        return [self.classes_] if isinstance(self.classes_, np.ndarray) else list(self.classes_)

    def _target(self, labels: NDArray[Any], criterion: Criterion, weight: NDArray[np.float64] | None) -> Target:
        """Label counts."""
        return class_target(labels, tuple(c.size for c in self._class_lists()), weight)

    def _n_values(self) -> int:
        """Classes but one, over outputs."""
        return sum(c.size - 1 for c in self._class_lists())

    def predict_proba(self, X: Any, check_input: bool = True) -> Any:
        """Class shares of the leaf of every row.

        Returns
        -------
        float64 array (n_rows, n_classes), or a list of them for several outputs
            Columns in the order of ``classes_``.
        """
        leaves = self._leaves(X, check_input)
        shares = self.forest_.value[leaves]
        lists = self._class_lists()
        parts = np.split(shares, np.cumsum([c.size for c in lists])[:-1], axis=1)
        return parts[0] if isinstance(self.classes_, np.ndarray) else parts

    def predict_log_proba(self, X: Any) -> Any:
        """Natural logarithm of `predict_proba`; -inf where a share is 0."""
        shares = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return [np.log(p) for p in shares] if isinstance(shares, list) else np.log(shares)

    def predict(self, X: Any, check_input: bool = True) -> NDArray[Any]:
        """Class of the largest share, the first among equals: (n_rows,), or (n_rows, n_outputs)."""
        shares = self.predict_proba(X, check_input)
        if not isinstance(shares, list):
            labels: NDArray[Any] = self.classes_.take(shares.argmax(axis=1))
            return labels
        return np.stack([c.take(p.argmax(axis=1)) for c, p in zip(self.classes_, shares, strict=True)], axis=1)

    def __sklearn_tags__(self) -> Any:
        """Several outputs are allowed."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class RegressorTree(RegressorMixin, BaseTree):
    """Trees whose leaves hold means."""

    _criteria = ("squared_error", "poisson")

    def _read_target(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        """Finite numbers (n, outputs)."""
        array = as_columns(y, n_rows)
        try:
            numbers: NDArray[np.float64] = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"y holds {array.flat[0]!r}, which is no number; a regression tree needs numbers"
            ) from error
        if not np.isfinite(numbers).all():
            bad = numbers[~np.isfinite(numbers)][0]
            raise ValueError(f"Input y contains NaN or infinity ({bad}); leave such rows out")
        if self.criterion == "poisson":
            self._check_counts(numbers)
        self._n_columns = numbers.shape[1]
        return numbers

    def _check_counts(self, y: NDArray[np.float64]) -> None:
        """Poisson targets are not negative and not all 0."""
        if (y < 0).any():
            raise ValueError(
                f"y holds {y.min()}; some value(s) of y are negative which is not allowed for Poisson regression"
            )
        if (y.sum(axis=0) <= 0).any():
            raise ValueError("y is 0 everywhere; the sum of y must be positive for Poisson regression")

    def _weights(self, labels: NDArray[Any], weight: Any, n_rows: int) -> NDArray[np.float64] | None:
        """Weights of the rows."""
        return checked_weight(weight, labels)

    def _target(self, labels: NDArray[Any], criterion: Criterion, weight: NDArray[np.float64] | None) -> Target:
        """Fixed-point sums."""
        return sum_target(labels, criterion, weight)

    def _n_values(self) -> int:
        """One an output."""
        return int(self._n_columns)

    def predict(self, X: Any, check_input: bool = True) -> NDArray[np.float64]:
        """Mean of the leaf of every row, float64 (n_rows,), or (n_rows, n_outputs)."""
        leaves = self._leaves(X, check_input)
        value = self.forest_.value
        return value[leaves, 0] if self.n_outputs_ == 1 else value[leaves]


class DecisionTreeClassifier(ClassifierTree):
    """A classification tree.

    Grown level by level; the same tree, bit for bit, on every device and with any number of threads. Ties go to the
    higher score, then the lowest feature, then missing values to the right, then the lowest cut. Missing values take
    the better side; a node that met none sends them to the child with more rows. A test is ``x <= threshold`` in
    float64; a column of categories gets one branch per category.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss", "train_error", "gain_ratio", "twoing", "chi2"}, default="gini"
        What a split is scored by; "log_loss" is "entropy".
    splitter : {"best", "random"}, default='best'
        "best" tries every cut; "random" one uniform threshold a feature and node.
    max_depth : int, optional
        Greatest depth of a leaf; the root has depth 0.
    min_samples_split, min_samples_leaf : int or float, default=2 and 1
        Least rows of a node that is split, and of a leaf; a float is a share of the rows, rounded up. Rows of weight 0
        do not count.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the total weight in a leaf.
    max_features : int, float, "sqrt", "log2" or None, default=None
        Features tried in a node, drawn by a hash of the seed and the node's path. While none of them gives a split,
        the next ones are tried.
    random_state : int, RandomState or None
        Seed of all draws; None is 0. Ties are never drawn.
    max_leaf_nodes : int, optional
        Grow best first to exactly so many leaves, if there are so many.
    min_impurity_decrease : float, default=0.0
        A split must decrease the weighted impurity by at least this much.
    class_weight : dict, list of dicts, "balanced" or None
        Weights by class, times the weights of the rows.
    ccp_alpha : float, default=0.0
        Collapse what minimal cost-complexity pruning finds too weak.
    monotonic_cst : array-like of int (n_features,), optional
        1: the share of the second class may only rise with the feature, -1: only fall, 0: free. Two classes only.
    max_bins : int or "auto", default="auto"
        Most known codes of a feature. "auto": every distinct value where a feature has at most 255 of them or the
        table at most 65,535 rows, else 255 weighted quantiles.
    device : {"auto", "cpu", "cuda", "cuda:<number>"}, default="auto"
        Where to grow; it cannot change the result.
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
        ccp_alpha: float = 0.0,
        monotonic_cst: ArrayLike | None = None,
        max_bins: int | str = "auto",
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
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.device = device
        self.verbose = verbose


class DecisionTreeRegressor(RegressorTree):
    """A regression tree.

    Grown level by level; the same tree, bit for bit, on every device and with any number of threads. Ties go to the
    higher score, then the lowest feature, then missing values to the right, then the lowest cut. Missing values take
    the better side; a node that met none sends them to the child with more rows. A test is ``x <= threshold`` in
    float64; a column of categories gets one branch per category.

    Parameters
    ----------
    criterion : {"squared_error", "poisson"}, default="squared_error"
        What a split is scored by: variance, or Poisson deviance.
    splitter : {"best", "random"}, default='best'
        "best" tries every cut; "random" one uniform threshold a feature and node.
    max_depth : int, optional
        Greatest depth of a leaf; the root has depth 0.
    min_samples_split, min_samples_leaf : int or float, default=2 and 1
        Least rows of a node that is split, and of a leaf; a float is a share of the rows, rounded up. Rows of weight 0
        do not count.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the total weight in a leaf.
    max_features : int, float, "sqrt", "log2" or None, default=None
        Features tried in a node, drawn by a hash of the seed and the node's path. While none of them gives a split,
        the next ones are tried.
    random_state : int, RandomState or None
        Seed of all draws; None is 0. Ties are never drawn.
    max_leaf_nodes : int, optional
        Grow best first to exactly so many leaves, if there are so many.
    min_impurity_decrease : float, default=0.0
        A split must decrease the weighted impurity by at least this much.
    ccp_alpha : float, default=0.0
        Collapse what minimal cost-complexity pruning finds too weak.
    monotonic_cst : array-like of int (n_features,), optional
        1: the mean may only rise with the feature, -1: only fall, 0: free. One output only.
    max_bins : int or "auto", default="auto"
        Most known codes of a feature. "auto": every distinct value where a feature has at most 255 of them or the
        table at most 65,535 rows, else 255 weighted quantiles.
    device : {"auto", "cpu", "cuda", "cuda:<number>"}, default="auto"
        Where to grow; it cannot change the result.
    verbose : int, default=0
        Print a line a level to stderr.

    Attributes
    ----------
    n_outputs_, n_features_in_, max_features_ : int
        Counts.
    feature_names_in_ : array of str
        Names of the columns, if X had any.
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
    (4, 8)
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
        ccp_alpha: float = 0.0,
        monotonic_cst: ArrayLike | None = None,
        max_bins: int | str = "auto",
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
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.device = device
        self.verbose = verbose


class ExtraTreeClassifier(ClassifierTree):
    """A classification tree of random thresholds.

    Grown level by level; the same tree, bit for bit, on every device and with any number of threads. Ties go to the
    higher score, then the lowest feature, then missing values to the right, then the lowest cut. Missing values take
    the better side; a node that met none sends them to the child with more rows. A test is ``x <= threshold`` in
    float64; a column of categories gets one branch per category.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss", "train_error", "gain_ratio", "twoing", "chi2"}, default="gini"
        What a split is scored by; "log_loss" is "entropy".
    splitter : {"best", "random"}, default='random'
        "best" tries every cut; "random" one uniform threshold a feature and node.
    max_depth : int, optional
        Greatest depth of a leaf; the root has depth 0.
    min_samples_split, min_samples_leaf : int or float, default=2 and 1
        Least rows of a node that is split, and of a leaf; a float is a share of the rows, rounded up. Rows of weight 0
        do not count.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the total weight in a leaf.
    max_features : int, float, "sqrt", "log2" or None, default='sqrt'
        Features tried in a node, drawn by a hash of the seed and the node's path. While none of them gives a split,
        the next ones are tried.
    random_state : int, RandomState or None
        Seed of all draws; None is 0. Ties are never drawn.
    max_leaf_nodes : int, optional
        Grow best first to exactly so many leaves, if there are so many.
    min_impurity_decrease : float, default=0.0
        A split must decrease the weighted impurity by at least this much.
    class_weight : dict, list of dicts, "balanced" or None
        Weights by class, times the weights of the rows.
    ccp_alpha : float, default=0.0
        Collapse what minimal cost-complexity pruning finds too weak.
    monotonic_cst : array-like of int (n_features,), optional
        1: the share of the second class may only rise with the feature, -1: only fall, 0: free. Two classes only.
    max_bins : int or "auto", default="auto"
        Most known codes of a feature. "auto": every distinct value where a feature has at most 255 of them or the
        table at most 65,535 rows, else 255 weighted quantiles.
    device : {"auto", "cpu", "cuda", "cuda:<number>"}, default="auto"
        Where to grow; it cannot change the result.
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
    forest_ : Forest
        All fitted arrays.
    fit_info_ : FitInfo
        Where the fit ran, how much it visited and how long it took.

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
    (3, 5)
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
        ccp_alpha: float = 0.0,
        monotonic_cst: ArrayLike | None = None,
        max_bins: int | str = "auto",
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
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.device = device
        self.verbose = verbose


class ExtraTreeRegressor(RegressorTree):
    """A regression tree of random thresholds.

    Grown level by level; the same tree, bit for bit, on every device and with any number of threads. Ties go to the
    higher score, then the lowest feature, then missing values to the right, then the lowest cut. Missing values take
    the better side; a node that met none sends them to the child with more rows. A test is ``x <= threshold`` in
    float64; a column of categories gets one branch per category.

    Parameters
    ----------
    criterion : {"squared_error", "poisson"}, default="squared_error"
        What a split is scored by: variance, or Poisson deviance.
    splitter : {"best", "random"}, default='random'
        "best" tries every cut; "random" one uniform threshold a feature and node.
    max_depth : int, optional
        Greatest depth of a leaf; the root has depth 0.
    min_samples_split, min_samples_leaf : int or float, default=2 and 1
        Least rows of a node that is split, and of a leaf; a float is a share of the rows, rounded up. Rows of weight 0
        do not count.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the total weight in a leaf.
    max_features : int, float, "sqrt", "log2" or None, default=1.0
        Features tried in a node, drawn by a hash of the seed and the node's path. While none of them gives a split,
        the next ones are tried.
    random_state : int, RandomState or None
        Seed of all draws; None is 0. Ties are never drawn.
    max_leaf_nodes : int, optional
        Grow best first to exactly so many leaves, if there are so many.
    min_impurity_decrease : float, default=0.0
        A split must decrease the weighted impurity by at least this much.
    ccp_alpha : float, default=0.0
        Collapse what minimal cost-complexity pruning finds too weak.
    monotonic_cst : array-like of int (n_features,), optional
        1: the mean may only rise with the feature, -1: only fall, 0: free. One output only.
    max_bins : int or "auto", default="auto"
        Most known codes of a feature. "auto": every distinct value where a feature has at most 255 of them or the
        table at most 65,535 rows, else 255 weighted quantiles.
    device : {"auto", "cpu", "cuda", "cuda:<number>"}, default="auto"
        Where to grow; it cannot change the result.
    verbose : int, default=0
        Print a line a level to stderr.

    Attributes
    ----------
    n_outputs_, n_features_in_, max_features_ : int
        Counts.
    feature_names_in_ : array of str
        Names of the columns, if X had any.
    forest_ : Forest
        All fitted arrays.
    fit_info_ : FitInfo
        Where the fit ran, how much it visited and how long it took.

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
        ccp_alpha: float = 0.0,
        monotonic_cst: ArrayLike | None = None,
        max_bins: int | str = "auto",
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
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.max_bins = max_bins
        self.device = device
        self.verbose = verbose
