"""Pruning: rules as small objects, for any fitted tree or forest, or as its ``pruning=``. May import everything below.

>>> from sklearn.datasets import load_wine
>>> from gputree import DecisionTreeClassifier
>>> from gputree.pruning import ErrorBased, prune
>>> X, y = load_wine(return_X_y=True)
>>> model = DecisionTreeClassifier().fit(X, y)
>>> smaller = prune(model, ErrorBased(), X, y)
>>> model.get_n_leaves() >= smaller.get_n_leaves()
True

A rule of your own says what it `Needs`, and makes of a `Fitted` tree the one that is left; `Cases` are the rows that it
asked for. A model takes it as ``pruning=`` too.

>>> from dataclasses import dataclass
>>> from typing import ClassVar
>>> from gputree.pruning import Needs, Rule
>>> @dataclass(frozen=True)  # then its fields are parameters, as in pruning__rows
... class Few(Rule):
...     "No node of less weight than that of some rows has a test."
...
...     rows: float
...     needs: ClassVar = Needs.NO_ROWS
...
...     def __call__(self, fitted, cases=None):
...         return fitted.forest.collapse(fitted.weight * fitted.unit < self.rows)
>>> model.get_n_leaves(), prune(model, Few(50)).get_n_leaves()
(12, 7)

What rules do to the error on rows held out, and to the size: "real", the mean over eight tables; "0 %" to "30 %", so
many wrong classes among 1,000 rows of a Boolean function; "leaves", of those of the tree before, the line above that is
not indented. Rules that need rows which the fit has not seen leave it two thirds of them. Rules of growth
(``stopping=``) and trees of minimum description length stand beside those of pruning.

The figures are of ``python -m benchmarks.pruning``:

wrong, %; 10 folds                 real    0 %   10 %   20 %   30 % leaves
grown                              18.1    0.0   19.6   34.7   42.9  100 %
  Collapse()                       18.1    0.0   18.6   32.9   42.0   99 %
  ErrorBased()                     17.3    0.0   11.7   24.0   34.8   66 %
  ErrorBased(raising=False)        17.2    0.0   11.7   24.0   34.7   67 %
  ErrorBased(cf=0.05)              16.6    0.0   12.2   25.1   33.3   46 %
  ChiSquare()                      18.3    0.0   13.3   27.6   34.8   78 %
  ChiSquare(alpha=0.01)            17.3    0.0   11.5   25.4   33.5   61 %
  RiskBound()                      18.8    6.3   14.9   26.3   36.8   11 %
  BottomUp(bound=a_row_a_leaf)     17.6    0.0   11.4   24.0   34.2   42 %
  DescriptionLength()              16.7    1.0   13.7   26.7   36.2   21 %
  CostComplexity, by folds, best   15.8    0.0   11.2   24.3   33.2   30 %
  CostComplexity, by folds, 1se    16.6    0.0   11.8   25.5   33.2   20 %
  stopping=NoGain()                18.1    0.0   19.4   34.7   42.9  100 %
  stopping=MinSamples(leaf=5)      17.4    1.1   12.4   28.1   39.0   31 %
  stopping=ChiSquare()             17.9    0.0   11.9   24.7   33.9   70 %
  stopping=ChiSquare(alpha=0.01)   16.5    0.1   13.1   27.0   37.1   49 %
  stopping=CrossValidated()        17.0    6.3   19.1   29.0   34.5   55 %
  stopping=SavesBits()             16.9    1.3   13.8   28.1   36.4   19 %
  stopping=MaxDepth(depth=4)       20.0    9.2   18.5   26.3   33.9   40 %
  stopping=MaxDepth(depth=8)       17.6    0.0   18.2   33.2   40.9   78 %
grown on two thirds                19.0    0.2   21.7   35.5   45.8  100 %
  ReducedError()                   16.4    0.0   12.4   25.5   36.9   37 %
  ReducedError(strict=True)        16.7    0.1   15.0   29.6   39.7   70 %
  ReducedError(greedy=True)        16.3    0.0   13.9   26.6   36.4   33 %
  ValidationSet()                  16.9   19.8   25.1   32.2   36.4   22 %
  stopping=Validation(X, y)        16.9   19.8   25.1   32.2   36.4   22 %
grown by bits                      16.6    0.0   19.4   34.5   43.5  100 %
  MDLTreeClassifier                15.7    1.0   13.7   26.7   36.2   22 %
grown by Wallace & Patrick         17.4    0.0   19.4   34.7   43.1  100 %
  MDLTreeClassifier                16.4    1.2   13.7   26.6   36.2   19 %

All tables, one by one, are in ``.docs/pruning.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from gputree.core.checks import lasting, shown, what_is
from gputree.core.warned import warn
from gputree.engine.pruning import (
    BottomUp,
    Cases,
    ChiSquare,
    Collapse,
    CostComplexity,
    DescriptionLength,
    ErrorBased,
    Fitted,
    Needs,
    Path,
    ReducedError,
    RiskBound,
    Rule,
    ValidationSet,
    WholeTree,
    what_is_left,
)
from gputree.learners.grower import Grower
from gputree.learners.held_out import check_rule, of_size_one
from gputree.learners.random_target import RandomTrees
from gputree.learners.rows_of_fit import are_of_the_fit, as_fitted, fitted_of, read_cases
from gputree.learners.stopped import with_forest

__all__ = [
    "BottomUp",
    "Cases",
    "ChiSquare",
    "Collapse",
    "CostComplexity",
    "DescriptionLength",
    "ErrorBased",
    "Fitted",
    "Needs",
    "Path",
    "ReducedError",
    "RiskBound",
    "Rule",
    "ValidationSet",
    "WholeTree",
    "cost_complexity_path",
    "prune",
]


def prune(model: Any, rule: Rule, X: Any = None, y: Any = None, sample_weight: ArrayLike | None = None) -> Any:
    """Prune a fitted tree, or every tree of a forest.

    Parameters
    ----------
    model : estimator
        A fitted tree or forest of this library; it stays as it is.
    rule : Rule
        How to prune: an object such as ``ErrorBased()``, also of a class of your own.
    X : array-like or frame of shape (n_rows, n_features), optional
        For a rule that asks for them: the rows of the fit (`ErrorBased` with raising, `RiskBound`, `BottomUp`,
        `DescriptionLength`), or rows that the fit has not seen (`ReducedError`, `ValidationSet`). Columns must be those
        of the fit.
    y : array-like of shape (n_rows,) or (n_rows, n_outputs), optional
        Their labels or numbers.
    sample_weight : array-like of shape (n_rows,), optional
        Their weights; those of the fit if they are its rows.

    Returns
    -------
    estimator
        Of the same class and parameters, with the trees that are left; without out-of-bag estimates, which were those
        of other trees. Its ``pruned_by_`` is the text of the rule.

    Warns
    -----
    UserWarning
        If the rule asks for rows that the fit has not seen, and gets those of the fit.

    Raises
    ------
    TypeError
        If the model is none of this library, or learns no y, or the rule is none, or gives no forest.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    ValueError
        If the rule asks for rows and gets none, or asks for none and gets some; if there are no rows, or their columns
        or labels are not those of the fit; if the rule asks for the rows of the fit and they are others; if it counts
        errors of classes and the model has none; if its thresholds are soft.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gputree import RandomForestClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> forest = RandomForestClassifier(n_estimators=5).fit(X[::2], y[::2])
    >>> pruned = prune(forest, ReducedError(), X[1::2], y[1::2])
    >>> forest.forest_.n_leaves, pruned.forest_.n_leaves
    (54, 37)
    >>> pruned.pruned_by_
    'ReducedError(strict=False, greedy=False)'
    """
    if not isinstance(rule, Rule):
        raise TypeError(
            f"{shown(rule)} is no rule of pruning; give prune(model, rule, X, y) an object such as "
            "gputree.pruning.ErrorBased() as its rule"
        )
    check_model(model, rule)
    model._require_hard(
        "the bounds of thresholds are those of the tree as it is; fit with pruning=rule, which softens what is left"
    )
    check_rows(rule, X, y, sample_weight)
    cases = None if rule.needs is Needs.NO_ROWS else read_cases(model, X, y, sample_weight)
    if cases is not None and rule.needs is Needs.VALIDATION and are_of_the_fit(model, cases):
        warn(
            f"{rule!r} needs {rule.needs.value}, and these are the rows of the fit, on which hardly a test does harm; "
            "keep some rows back from the fit, and give those",
        )
    other = with_forest(model, what_is_left(rule, fitted_of(model), told(rule, model, cases)))
    other.pruned_by_ = ", then ".join([*([model.pruned_by_] if hasattr(model, "pruned_by_") else []), lasting(rule)])
    return other


def told(rule: Rule, model: Any, cases: Cases | None) -> Iterator[Cases | None]:
    """What a rule is told of rows, tree by tree."""
    if cases is not None and rule.needs is Needs.FIT:
        return rows_of_trees(model, cases)
    return repeat(None if cases is None else of_size_one(cases))


def rows_of_trees(model: Any, cases: Cases) -> Iterator[Cases]:
    """The rows that the fit of every tree saw; says so where some of all rows were kept back from it."""
    try:
        yield from as_fitted(model, cases)
    except ValueError as error:
        pruner = model._pruner()
        if pruner is None or pruner.needs is not Needs.VALIDATION:
            raise
        raise ValueError(
            f"{error}. Of the rows that fit was given, pruning={pruner!r} keeps some back to prune by: fit with "
            "pruning=None to prune by all of them"
        ) from None


def cost_complexity_path(model: Any, penalty: str = "leaves", cost: str = "impurity") -> Path:
    """Every tree of minimal cost-complexity pruning, from a fitted tree to its root.

    Parameters
    ----------
    model : estimator
        A fitted tree of this library, pruned or not.
    penalty : {"leaves", "nodes"}, default="leaves"
        What alpha counts.
    cost : {"impurity", "error"}, default="impurity"
        Of the leaves, as in `CostComplexity`.

    Returns
    -------
    Path
        ``alphas`` and ``impurities``, float64 (n_steps,): from each alpha on, `CostComplexity` leaves the tree of this
        step, whose leaves cost so much; ``nodes``, intp (n_steps - 1,): the node that the next step makes a leaf.

    Raises
    ------
    TypeError
        If the model is none of this library, or learns no y.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    ValueError
        If it has several trees; if errors are asked for and it has no classes; if a parameter is not as it must be.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier().fit(*load_iris(return_X_y=True))
    >>> cost_complexity_path(model).alphas[-2:].round(4), cost_complexity_path(model, "nodes").alphas[-2:].round(4)
    (array([0.2598, 0.3333]), array([0.1299, 0.1667]))
    """
    rule = CostComplexity(0.0, penalty, cost)
    check_model(model, rule)
    if model.forest_.roots.size > 1:
        raise ValueError(
            f"{type(model).__name__} has {model.forest_.roots.size} trees, and a path is of one; "
            "give one of its estimators_"
        )
    return rule.path(fitted_of(model))


def check_model(model: Any, rule: Rule) -> None:
    """The model is fitted, and one that the rule is for."""
    if isinstance(model, type) or not isinstance(model, Grower):
        raise TypeError(
            f"{what_is(model)} is no tree or forest of gputree; give a fitted one (gputree.from_sklearn makes one)"
        )
    if isinstance(model, RandomTrees):
        raise TypeError(
            f"{type(model).__name__} learns no y, by which a rule could judge its trees; fit it with smaller ones: "
            "max_depth of RandomTreesEmbedding, max_samples of IsolationForest"
        )
    check_is_fitted(model, "forest_")
    cases = float(model.layout_.weight(model.forest_.stats[0])) * model.weight_unit_
    check_rule(rule, model.layout_, model, cases)


def check_rows(rule: Rule, X: Any, y: Any, sample_weight: Any) -> None:
    """Rows are there where the rule asks for some, and nowhere else."""
    if rule.needs is Needs.NO_ROWS and not (X is None and y is None and sample_weight is None):
        raise ValueError(f"{rule!r} needs no rows, and X, y or sample_weight was given; leave them out")
    if rule.needs is not Needs.NO_ROWS and (X is None or y is None):
        raise ValueError(f"{rule!r} needs {rule.needs.value}: give prune(model, rule, X, y)")
