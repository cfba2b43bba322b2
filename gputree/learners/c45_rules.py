"""Rules from a tree, as C4.5rules makes them: docstring, parameters and fit. May import everything below."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from gputree.backends.arrays import to_host
from gputree.core.checks import bare, what_is
from gputree.core.conditions import paths
from gputree.core.forest import Forest
from gputree.core.routes import Parts, branch_shares, leaf_parts
from gputree.core.rules import Rule
from gputree.core.schema import Feature, Schema
from gputree.engine.rule_choice import any_of
from gputree.engine.rule_pruning import ChiSquare, Pessimistic, RuleCases, Simplifier
from gputree.engine.rules_from_paths import Method, Path, ordered_rules, published
from gputree.learners.c45 import C45Classifier
from gputree.learners.inputs import read_predict
from gputree.learners.labels import as_columns, numbers_of
from gputree.learners.parameters import seed_of
from gputree.learners.rule_set import RuleSet
from gputree.learners.tasks import ClassifierTree

LEAST_ROWS = 1.0 - 1e-6  # in a leaf that becomes a rule, but for rounding of parts of rows


class C45Rules(ClassifierMixin, BaseEstimator):
    """Rules from a decision tree, as C4.5rules makes them.

    Every leaf of an unpruned tree is a rule, which then loses the conditions that do not help it. Of the rules of each
    class those stay that describe the rows in the fewest bits; the class whose rules are wrong least often comes first,
    and a class is found for the rows that meet no rule. Last, rules go that others would do better. Missing values meet
    no condition. Every row counts once, whatever the tree weighs it; so `fit` takes no ``sample_weight``.

    Parameters
    ----------
    tree : estimator, optional
        The tree to start from, of one output; by default ``C45Classifier(pruning=None, constants="c4.5")``. It is
        cloned and fitted; ``sklearn.frozen.FrozenEstimator(tree)`` keeps a fitted one. Soft thresholds count as hard.
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
        The fitted tree; its ``fit_info_`` has the seconds of the whole fit.
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
        begin = time.perf_counter()
        self._validate_params()
        if self.tree is not None:
            given_tree(self.tree)
        if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        start = C45Classifier(pruning=None, constants="c4.5") if self.tree is None else clone(self.tree)
        self.tree_ = fitted_tree(start.fit(X, y))
        self._take_over(self.tree_)
        cases = self._cases(X, y)
        found, default = ordered_rules(self._paths(cases), cases, self._method())
        labels, every = self.classes_.tolist(), cases.counts()
        left = cases.counts(~any_of(found, cases))
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
        self.tree_.fit_info_ = replace(self.tree_.fit_info_, seconds=time.perf_counter() - begin)  # of the whole fit
        return self

    def _take_over(self, tree: Any) -> None:
        """What the tree knows of the columns and labels; categories as the text of rules has them."""
        self.schema_ = Schema(
            tuple(replace(f, categories=tuple(map(bare, f.categories))) for f in tree.schema_.features)
        )
        self.n_features_in_, self.classes_ = tree.n_features_in_, tree.classes_
        self.n_classes_, self.n_outputs_ = tree.n_classes_, 1
        if hasattr(tree, "feature_names_in_"):
            self.feature_names_in_ = tree.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _cases(self, X: Any, y: Any) -> RuleCases:
        """The rows of a fit; labels that the tree has not met are refused."""
        matrix = to_host(read_predict(self, X))
        (column,) = as_columns(y, matrix.shape[0])
        dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        return RuleCases(dense, self.schema_.features, numbers_of(column, self.classes_), self.n_classes_)

    def _paths(self, cases: RuleCases) -> Iterator[Path]:
        """The leaves that a row came to, or parts of rows that make one."""
        forest: Forest = self.tree_.forest_
        share, rows = branch_shares(forest, self.tree_.layout_.weight(forest.stats.T)), np.zeros(forest.n_nodes)
        for at in leaf_parts(forest, Parts.whole(cases.n, int(forest.roots[0])), cases.X, share):
            rows += np.bincount(at.node, at.weight, forest.n_nodes)
        for leaf, conditions in paths(forest, self.schema_, full=False):
            if rows[leaf] >= LEAST_ROWS:
                yield conditions, int(forest.value[leaf].argmax())

    def _method(self) -> Method:
        """The parameters as objects."""
        simplifier: Simplifier = Pessimistic(self.confidence, self.alpha if self.simplify == "fisher" else None)
        if self.simplify == "chi2":
            simplifier = ChiSquare(self.alpha)
        return Method(simplifier, self.confidence, self.simplify != "chi2", seed_of(self.random_state))

    def fingerprint(self) -> str:
        """SHA-256 of the fitted arrays of the tree, and of the rules and what decides between them, as hex."""
        check_is_fitted(self, "rules_")
        return hashlib.sha256(f"{self.tree_.fingerprint()}\n{self.rules_!r}".encode()).hexdigest()

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

    def rules(self) -> RuleSet:
        """The rules, as of a tree."""
        check_is_fitted(self, "rules_")
        return self.rules_

    def _read(self, X: Any) -> Any:
        """The columns that rules ask for."""
        check_is_fitted(self, "rules_")
        return to_host(read_predict(self, X))[:, list(self.rules_._asked)]

    def __sklearn_tags__(self) -> Any:
        """NaN is allowed, sparse matrices and categories too."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags


def given_tree(model: Any) -> ClassifierTree:
    """The tree that an estimator is, or that is frozen in it.

    Raises
    ------
    TypeError
        If it is no classification tree of this library.
    """
    tree = model.estimator if isinstance(model, FrozenEstimator) else model
    if not isinstance(tree, ClassifierTree):
        raise TypeError(
            f"tree is {what_is(tree)}, and rules are made of a classification tree of gputree, such as C45Classifier() "
            "or DecisionTreeClassifier(); of a search, pipeline or forest give a tree in it"
        )
    return tree


def fitted_tree(model: Any) -> ClassifierTree:
    """The same of a fitted estimator, if it has one output."""
    tree = given_tree(model)
    if tree.n_outputs_ > 1:
        raise ValueError(f"the tree has {tree.n_outputs_} outputs, and rules have one; fit one output at a time")
    return tree


def guess(counts: NDArray[np.int64], label: int) -> tuple[float | None, tuple[float, ...]]:
    """Share of a class and of all among so many rows (n_classes,); unknown where there is none."""
    n = int(counts.sum())
    return (float(counts[label] / n), tuple((counts / n).tolist())) if n else (None, ())
