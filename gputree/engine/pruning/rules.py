"""Rules of pruning as small frozen objects. May import core."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import Enum
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import Forest, joined
from gputree.core.routes import Parts, branch_shares, by_shares, levels
from gputree.engine.pruning.bottom_up import cheaper_leaves, greedy_leaves
from gputree.engine.pruning.errors import ADDED
from gputree.engine.pruning.path import prune
from gputree.engine.pruning.raising import EQUAL, SLACK, Limit, Raising
from gputree.engine.pruning.records import Cases, Fitted

COLLAPSED = 1e-3  # errors that a branch may save, and yet be collapsed
ROUNDING = 2.0**-40  # of all weights: costs that differ by less are equal
ROW_BLOCK = 1 << 16  # rows that walk down together


class Needs(Enum):
    """The rows that a rule asks for."""

    NO_ROWS = "no rows"
    FIT = "the rows of the fit"
    VALIDATION = "validation rows, which the fit has not seen"


class Rule(ABC):
    """What a pruner is: a function from a fitted forest to the forest that is left.

    ``of_classes``: whether it counts errors of one output of classes.
    """

    __slots__ = ()
    of_classes: ClassVar[bool] = False

    @property
    @abstractmethod
    def needs(self) -> Needs:
        """The rows that it asks for."""

    @abstractmethod
    def __call__(self, fitted: Fitted, cases: Cases | None = None) -> Forest:
        """The forest that is left; the arrays of the given one stay as they are."""


@dataclass(frozen=True, slots=True)
class Collapse(Rule):
    """Make a leaf of what does not save a training error: what C4.5 does to every branch that it has grown.

    From the leaves up, a test becomes a leaf unless its branches make at least 0.001 errors less on the rows of the fit
    than their commonest class does. It needs no rows: the forest holds the counts.

    References
    ----------
    Quinlan (1993), "C4.5: Programs for Machine Learning".

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.pruning import Collapse, prune
    >>> model = DecisionTreeClassifier(max_depth=1).fit([[0], [1], [2], [3], [4]], [0, 0, 0, 1, 0])
    >>> model.get_n_leaves(), prune(model, Collapse()).get_n_leaves()
    (2, 1)
    """

    needs: ClassVar[Needs] = Needs.NO_ROWS
    of_classes: ClassVar[bool] = True

    def __call__(self, fitted: Fitted, cases: Cases | None = None) -> Forest:
        """The forest that is left."""
        _, wrong = fitted.errors()
        return fitted.forest.collapse(cheaper_leaves(fitted.forest, wrong, COLLAPSED))


@dataclass(frozen=True, slots=True)
class ErrorBased(Rule):
    """C4.5's pruning: by the errors that are to be expected, from an upper limit of those made in the fit.

    From the leaves up, a test becomes a leaf if that is expected to make at most 0.1 errors more than its branches, and
    than its heaviest branch alone, to which all of its cases are sent; else this branch takes its place if it is
    expected to make at most 0.1 errors more than all, and is judged again with all of the cases.

    Parameters
    ----------
    cf : float in (0, 1), default=0.25
        Confidence of the limit: the smaller, the more is cut.
    limit : {"j48", "c45", "binomial"}, default="j48"
        What is added to the errors of a leaf. "j48": the normal approximation as Weka's J48 takes it. "c45": with the
        constants that C4.5 (release 8) prints. "binomial": the exact limit (Clopper and Pearson), which both take
        where there are no errors.
    raising : bool, default=True
        Whether a branch may take the place of its test. Without, no rows are needed, and the time is linear in the
        nodes; with, it is that of sending the rows of every test down its heaviest branch.

    Raises
    ------
    ValueError
        If a parameter is not as it must be.

    References
    ----------
    Quinlan (1993), "C4.5: Programs for Machine Learning", chapter 4.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.pruning import ErrorBased, prune
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DecisionTreeClassifier().fit(X, y)
    >>> model.get_n_leaves(), prune(model, ErrorBased(raising=False)).get_n_leaves()
    (22, 13)
    >>> prune(model, ErrorBased(cf=0.01), X, y).get_n_leaves()
    12
    """

    cf: float = 0.25
    limit: str = "j48"
    raising: bool = True
    of_classes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.cf, Real) or isinstance(self.cf, bool) or not 0.0 < self.cf < 1.0:
            raise ValueError(f"cf={self.cf!r} must be a number above 0 and below 1; C4.5 takes 0.25")
        if self.limit not in ADDED:
            raise ValueError(f"limit={self.limit!r} must be one of {', '.join(map(repr, ADDED))}")
        if not isinstance(self.raising, bool | np.bool_):
            raise ValueError(f"raising={self.raising!r} must be True or False")

    @property
    def needs(self) -> Needs:
        """The rows of the fit, to send them down again."""
        return Needs.FIT if self.raising else Needs.NO_ROWS

    def expected(self) -> Limit:
        """Errors to be expected of leaves."""
        added, cf = ADDED[self.limit], float(self.cf)
        return lambda total, wrong: wrong + added(total, wrong, cf)

    def __call__(self, fitted: Fitted, cases: Cases | None = None) -> Forest:
        """The forest that is left."""
        if self.raising and cases is not None:
            return Raising(fitted, cases, self.expected()).run()
        cost = self.expected()(*fitted.errors())
        return fitted.forest.collapse(cheaper_leaves(fitted.forest, cost, SLACK + EQUAL))


@dataclass(frozen=True, slots=True)
class ReducedError(Rule):
    """Cut what does no good on rows that the fit has not seen.

    The error of a node is the weight of the validation rows that its class is wrong for; for numbers, the sum of their
    squared differences from its mean. A row whose value is missing at a test that sends it down all branches counts in
    each by its share.

    Parameters
    ----------
    strict : bool, default=False
        False: a test becomes a leaf if that makes no more errors than its branches, also where no row comes. True: only
        if it makes less.
    greedy : bool, default=False
        False: from the leaves up. True: again and again the test where that saves most errors, the one with more leaves
        below it among equals.

    References
    ----------
    Quinlan (1987), "Simplifying decision trees", International Journal of Man-Machine Studies 27:221-234.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.pruning import ReducedError, prune
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DecisionTreeClassifier().fit(X[::2], y[::2])
    >>> model.get_n_leaves(), prune(model, ReducedError(), X[1::2], y[1::2]).get_n_leaves()
    (12, 5)
    """

    strict: bool = False
    greedy: bool = False
    needs: ClassVar[Needs] = Needs.VALIDATION

    def __call__(self, fitted: Fitted, cases: Cases | None = None) -> Forest:
        """The forest that is left."""
        assert cases is not None
        cost, roots = row_errors(fitted, cases), fitted.forest.roots
        find = greedy_leaves if self.greedy else cheaper_leaves
        return fitted.forest.collapse(find(fitted.forest, cost, ROUNDING * float(cost[roots].max()), self.strict))


@dataclass(frozen=True, slots=True)
class CostComplexity(Rule):
    """Minimal cost-complexity pruning: the smallest subtree of least impurity + alpha * leaves.

    Parameters
    ----------
    alpha : float >= 0
        In units of impurity, as scikit-learn's ``ccp_alpha``.

    Raises
    ------
    ValueError
        If alpha is no number of at least 0.

    References
    ----------
    Breiman, Friedman, Olshen and Stone (1984), "Classification and Regression Trees", section 3.3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.pruning import CostComplexity, prune
    >>> model = DecisionTreeClassifier().fit(*load_iris(return_X_y=True))
    >>> model.get_n_leaves(), prune(model, CostComplexity(0.02)).get_n_leaves()
    (9, 4)
    """

    alpha: float
    needs: ClassVar[Needs] = Needs.NO_ROWS

    def __post_init__(self) -> None:
        if not isinstance(self.alpha, Real) or not 0.0 <= self.alpha < np.inf:
            raise ValueError(f"alpha={self.alpha!r} must be a number of at least 0")

    def __call__(self, fitted: Fitted, cases: Cases | None = None) -> Forest:
        """The forest that is left."""
        forest, weight = fitted.forest, fitted.layout.weight
        trees = [forest.tree(t) for t in range(forest.roots.size)]
        return joined([prune(tree, weight(tree.stats.T), float(self.alpha)) for tree in trees])


RULES = {rule.__name__: rule for rule in (Collapse, ErrorBased, ReducedError, CostComplexity)}


def row_errors(fitted: Fitted, cases: Cases) -> NDArray[np.float64]:
    """What every node would cost as a leaf, f8 (N,): wrong classes or squared differences of the rows that come to it.

    Several outputs add up.
    """
    forest, answer = fitted.forest, answers(fitted)
    cost, divide = np.zeros(forest.n_nodes), by_shares(branch_shares(forest, fitted.weight))
    for first in range(0, len(cases.weight), ROW_BLOCK):
        rows = slice(first, first + ROW_BLOCK)
        X, y, weight = cases.X[rows], cases.y[:, rows], cases.weight[rows]
        for root in forest.roots.tolist():
            start = replace(Parts.whole(len(weight), root), weight=weight).take(weight > 0)
            for at, _ in levels(forest, start, X, divide):
                off = answer[:, at.node] - y[:, at.row]
                each = (off != 0 if fitted.layout.counts else off**2).sum(axis=0)
                np.add.at(cost, at.node, at.weight * each)
    return cost


def answers(fitted: Fitted) -> NDArray[Any]:
    """What every node predicts, (O, N): numbers of classes, the first of the largest share, or means."""
    value, sizes = fitted.forest.value, fitted.layout.sizes
    if not fitted.layout.counts:
        return value.T
    parts = np.split(value, np.cumsum(sizes)[:-1], axis=1)
    return np.stack([part.argmax(axis=1) for part in parts])
