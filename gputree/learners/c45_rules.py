"""Rules from a tree, as C4.5rules makes them: docstring, parameters and fit. May import everything below."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from gputree.backends.arrays import to_host
from gputree.core.conditions import paths
from gputree.core.forest import Forest
from gputree.core.rules import Rule
from gputree.core.schema import Feature
from gputree.engine.rule_pruning import ChiSquare, Pessimistic, RuleCases, Simplifier, size
from gputree.engine.rules_from_paths import Method, Path, ordered_rules, published
from gputree.learners.c45 import C45Classifier
from gputree.learners.inputs import read_predict
from gputree.learners.labels import as_columns, classes_of
from gputree.learners.rule_set import RuleSet
from gputree.learners.tasks import ClassifierTree

LEAST_WEIGHT = 1.0 - 1e-6  # of a leaf that becomes a rule, but for rounding


class C45Rules(ClassifierMixin, BaseEstimator):
    """Rules from a decision tree, as C4.5rules makes them.

    Every leaf of an unpruned tree is a rule, which then loses the conditions that do not help it. Of the rules of each
    class those stay that describe the rows in the fewest bits; the class whose rules are wrong least often comes first,
    and a class is found for the rows that meet no rule. Last, rules go that others would do better. Missing values meet
    no condition. Every row counts once.

    Parameters
    ----------
    tree : estimator, optional
        The tree to start from, of one output; by default ``C45Classifier(pruning=None, constants="c4.5")``. It is
        cloned and fitted; ``sklearn.frozen.FrozenEstimator(tree)`` keeps a fitted one.
    simplify : {"pessimistic", "fisher", "chi2"}, default="pessimistic"
        Which conditions go. "pessimistic": those without which the upper limit of the error is no higher; "fisher":
        also those that Fisher's exact test does not find to raise the share of the class; "chi2": those that do not
        depend on the class by a chi-square test (by Fisher's where an expected count is below 5), and then rules
        without which the list makes no more errors, in the place of the choice by bits.
    confidence : float, default=0.25
        Confidence level of the upper limit of errors; lower ones prune more.
    alpha : float, default=0.05
        Significance level of the tests.
    conflict : {"first", "vote"}, default="first"
        What decides where several rules hold: the first, or the votes of all of them, weighted by confidence.
    random_state : int, RandomState or None
        Seed of the searches among more than ten rules of a class; None is 0.

    Attributes
    ----------
    rules_ : RuleSet
        The rules. The confidence of a rule is 1 less the upper limit of its error, which C4.5rules prints.
    tree_ : estimator
        The fitted tree.
    classes_ : array (n_classes,)
        Labels, as they were given.
    n_classes_, n_outputs_, n_features_in_ : int
        Counts.
    feature_names_in_ : array of str
        Names of the columns, if X had any.

    References
    ----------
    Quinlan (1993), "C4.5: Programs for Machine Learning", chapter 5, as revised in release 8; for "chi2", Quinlan
    (1987), "Simplifying decision trees", International Journal of Man-Machine Studies 27:221-234.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import C45Rules
    >>> X, y = load_iris(return_X_y=True)
    >>> model = C45Rules().fit(X, y)
    >>> for rule in model.rules_:
    ...     print(rule)
    if (feature_3<=0.6) then 0
    if (feature_2<=4.9) and (0.6<feature_3<=1.7) then 1
    if (feature_3>1.7) then 2
    if (feature_2>4.9) then 2
    >>> round(model.score(X, y), 4)
    0.9733
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "tree": [object, None],
        "simplify": [StrOptions({"pessimistic", "fisher", "chi2"})],
        "confidence": [Interval(Real, 0.0, 1.0, closed="neither")],
        "alpha": [Interval(Real, 0.0, 1.0, closed="both")],
        "conflict": [StrOptions({"first", "vote"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        tree: Any = None,
        *,
        simplify: str = "pessimistic",
        confidence: float = 0.25,
        alpha: float = 0.05,
        conflict: str = "first",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.tree = tree
        self.simplify = simplify
        self.confidence = confidence
        self.alpha = alpha
        self.conflict = conflict
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Grow the tree, if it is not fitted, and make rules of it.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            As for the tree.
        y : array-like of shape (n_rows,)
            Labels.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter, X or y cannot be used; the message says what to do.
        """
        self._validate_params()
        if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        start = C45Classifier(pruning=None, constants="c4.5") if self.tree is None else clone(self.tree)
        start.fit(X, y)
        self.tree_ = fitted_tree(start)
        self._take_over(self.tree_)
        cases = self._cases(X, y)
        found, default = ordered_rules(self._paths(), cases, self._method())
        labels = self.classes_.tolist()
        covered = np.bitwise_or.reduce([rule.met for rule in found]) if found else np.uint64(0)
        every, left = size(cases.classes()), size(cases.classes() & ~covered)
        self.rules_ = RuleSet(
            tuple(published(rule, labels, cases) for rule in found),
            tuple(Feature(f.name, f.kind, f.categories) for f in self.schema_.features),
            Rule((), labels[default], float(left.sum()), *guess(left, default)),
            tuple(labels),
            self.classes_.dtype.str,
            float(cases.n),
            tuple((every / cases.n).tolist()),
            self.conflict,
        )
        return self

    def _take_over(self, tree: Any) -> None:
        """What the tree knows of the columns and labels."""
        self.schema_, self.n_features_in_, self.classes_ = tree.schema_, tree.n_features_in_, tree.classes_
        self.n_classes_, self.n_outputs_ = tree.n_classes_, 1
        if hasattr(tree, "feature_names_in_"):
            self.feature_names_in_ = tree.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _cases(self, X: Any, y: Any) -> RuleCases:
        """The rows of a fit; labels that the tree has not met are refused."""
        matrix = to_host(read_predict(self, X))
        (column,) = as_columns(y, matrix.shape[0])
        classes, number = classes_of(column)
        known = {label: i for i, label in enumerate(self.classes_.tolist())}
        odd = next((label for label in classes.tolist() if label not in known), None)
        if odd is not None:
            raise ValueError(
                f"y holds {odd!r}, which the fitted tree has not met; leave such rows out, or fit the tree"
            )
        label = np.array([known[label] for label in classes.tolist()], np.int32)[number]
        dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        return RuleCases(dense, self.schema_.features, label, len(known))

    def _paths(self) -> Iterator[Path]:
        """The leaves that training rows came to."""
        forest: Forest = self.tree_.forest_
        weight = self.tree_.layout_.weight(forest.stats.T) * self.tree_.weight_unit_
        for leaf, conditions in paths(forest, self.schema_, full=False):
            if weight[leaf] >= LEAST_WEIGHT:
                yield conditions, int(forest.value[leaf].argmax())

    def _method(self) -> Method:
        """The parameters as objects."""
        simplifier: Simplifier = Pessimistic(self.confidence, self.alpha if self.simplify == "fisher" else None)
        if self.simplify == "chi2":
            simplifier = ChiSquare(self.alpha)
        seed = self.random_state or 0
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
        return Method(simplifier, self.confidence, self.simplify != "chi2", int(seed))

    def fingerprint(self) -> str:
        """SHA-256 of the fitted arrays of the tree as hex."""
        check_is_fitted(self, "rules_")
        return self.tree_.fingerprint()

    @property
    def unknown(self) -> str:
        """What to do with values that are none of the categories, as the tree has it."""
        return str(self.tree_.unknown)

    @property
    def _integers_are_names(self) -> bool:
        """Whether a column of integers holds categories, as the tree has it."""
        return bool(self.tree_._integers_are_names)

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of every row, (n_rows,)."""
        matrix = self._read(X)
        return self.rules_._labels(matrix)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class shares of every row, float64 (n_rows, n_classes), see `RuleSet.predict_proba`."""
        matrix = self._read(X)
        return self.rules_._shares(matrix)

    def _read(self, X: Any) -> Any:
        """The columns that rules ask for."""
        check_is_fitted(self, "rules_")
        return to_host(read_predict(self, X))[:, list(self.rules_._asked)]

    def __sklearn_tags__(self) -> Any:
        """NaN is allowed, sparse matrices and categories too."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags


def fitted_tree(model: Any) -> ClassifierTree:
    """The tree in a fitted estimator, which may be frozen.

    Raises
    ------
    TypeError, ValueError
        If it is no classification tree of this library; if it has several outputs.
    """
    tree = getattr(model, "estimator", model)
    if not isinstance(tree, ClassifierTree):
        raise TypeError(
            f"tree is a {type(tree).__name__}, and rules are made of a classification tree of gputree, such as "
            "C45Classifier or DecisionTreeClassifier"
        )
    if tree.n_outputs_ > 1:
        raise ValueError(f"the tree has {tree.n_outputs_} outputs, and rules have one; fit one output at a time")
    return tree


def guess(counts: NDArray[np.int64], label: int) -> tuple[float | None, tuple[float, ...]]:
    """Share of a class and of all among so many rows (n_classes,); unknown where there is none."""
    n = int(counts.sum())
    return (float(counts[label] / n), tuple((counts / n).tolist())) if n else (None, ())
