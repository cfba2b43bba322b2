"""Rules of pruning as small frozen objects. May import core."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gputree.core.checks import at_least_nothing, one_of, open_unit, shown, yes_or_no
from gputree.core.forest import Forest, Test, joined
from gputree.core.routes import Parts, branch_shares, by_shares, levels
from gputree.engine.pruning.bottom_up import cheaper_leaves, greedy_leaves
from gputree.engine.pruning.errors import ADDED, check_j48
from gputree.engine.pruning.path import PENALTIES, Path, cost_complexity_path, prune
from gputree.engine.pruning.raising import EQUAL, SLACK, Limit, Raising
from gputree.engine.pruning.records import Cases, Fitted

COLLAPSED = 1e-3  # errors that a branch may save, and yet be collapsed
ROUNDING = 2.0**-40  # of all weights: costs that differ by less are equal
COSTS: dict[str, Callable[[Fitted], NDArray[np.float64] | None]] = {
    "impurity": lambda tree: None,
    "error": lambda tree: tree.errors()[1] / np.maximum(tree.errors()[0], tree.unit),
}
ROW_BLOCK = 1 << 16  # rows that walk down together


class Needs(Enum):
    """The rows that a rule asks for."""

    NO_ROWS = "no rows"
    FIT = "the rows of the fit"
    VALIDATION = "validation rows, which the fit has not seen"


class Rule(ABC):
    """What a pruner is: a function from a fitted tree, a forest of one, to the tree that is left.

    Trees of a forest are pruned one by one, each as if it were alone, by the rows of its own bag. A rule without rows
    that takes a forest of many trees, and does to each what it does to that alone, says so by ``tree_by_tree = False``
    in the class that says what a call does: a subclass with a call of its own is given one tree at a time again.
    """

    __module__ = "gputree.pruning"  # where users find it
    __slots__ = ()

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        calls = next(base for base in cls.__mro__ if "__call__" in vars(base) or "tree_by_tree" in vars(base))
        if "tree_by_tree" not in vars(calls):  # what is inherited is of another call
            cls.tree_by_tree = Rule.tree_by_tree  # type: ignore[method-assign]

    @property
    def of_classes(self) -> bool:
        """Whether it counts errors of one output of classes."""
        return False

    @property
    def counts_cases(self) -> bool:
        """Whether it counts cases by their weights, so that a factor of all weights may change what is left."""
        return self.of_classes and self.needs is not Needs.VALIDATION

    @property
    @abstractmethod
    def needs(self) -> Needs:
        """The rows that it asks for."""

    @property
    def tree_by_tree(self) -> bool:
        """Whether it is given one tree at a time, and not all at once."""
        return True

    @property
    def raises(self) -> bool:
        """Whether a branch may take the place of its test."""
        return self.needs is Needs.FIT

    @abstractmethod
    def __call__(self, fitted: Fitted, cases: Cases | None = None) -> Forest:
        """The forest that is left; the arrays of the given one stay as they are."""

    def asked(self, cases: Cases | None) -> Cases:
        """The rows that it asks for; raises ValueError where it was given none."""
        if cases is None:
            raise ValueError(f"{self!r} needs {self.needs.value}: give them as cases")
        return cases

    def forest_left(self, fitted: Fitted, cases: Cases | None) -> Forest:
        """What a call gives, if that is a forest of the same trees; else raises TypeError or ValueError."""
        found: Any = self(fitted, cases)
        remedy = "give what is left of fitted.forest, such as fitted.forest.collapse(marks)"
        if not isinstance(found, Forest):
            raise TypeError(f"{self!r} gave {shown(found)}, which is no forest; {remedy}")
        if not np.array_equal(found.stats[found.roots], fitted.forest.stats[fitted.forest.roots]):
            raise ValueError(
                f"{self!r} gave a forest whose trees hold other rows than those that it was given; {remedy}"
            )
        return found


def what_is_left(rule: Rule, fitted: Fitted, told: Iterable[Cases | None]) -> Forest:
    """The forest that a rule leaves; ``told`` is what it learns of rows, tree by tree."""
    if not rule.tree_by_tree:
        return rule.forest_left(fitted, None)
    trees = map(fitted.tree, range(fitted.forest.roots.size))
    return joined([rule.forest_left(tree, cases) for tree, cases in zip(trees, told, strict=False)])


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
    tree_by_tree: ClassVar[bool] = False
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
        nodes; with, it is that of sending the rows of tests down their heaviest branches, where these are no leaves.

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
        open_unit("cf", self.cf, "; C4.5 takes 0.25")
        one_of("limit", self.limit, ADDED)
        if self.limit == "j48":
            check_j48("cf", self.cf, "limit='j48'", "limit='c45' or 'binomial'")
        yes_or_no("raising", self.raising)

    @property
    def needs(self) -> Needs:
        """The rows of the fit, to send them down again."""
        return Needs.FIT if self.raising else Needs.NO_ROWS

    @property
    def tree_by_tree(self) -> bool:
        """Where it asks for the rows of each."""
        return self.raising

    def expected(self) -> Limit:
        """Errors to be expected of leaves."""
        added, cf = ADDED[self.limit], float(self.cf)
        return lambda total, wrong: wrong + added(total, wrong, cf)

    def __call__(self, fitted: Fitted, cases: Cases | None = None) -> Forest:
        """The forest that is left."""
        if self.raising:
            return Raising(fitted, self.asked(cases), self.expected()).run()
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

    Raises
    ------
    ValueError
        If a parameter is not as it must be.

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

    def __post_init__(self) -> None:
        yes_or_no("strict", self.strict)
        yes_or_no("greedy", self.greedy)

    def __call__(self, fitted: Fitted, cases: Cases | None = None) -> Forest:
        """The forest that is left."""
        forest = fitted.forest
        cost, kept = row_errors(fitted, self.asked(cases))
        find = greedy_leaves if self.greedy else cheaper_leaves
        return forest.collapse(find(forest, cost, ROUNDING * float(cost[forest.roots].max()), self.strict, kept))


@dataclass(frozen=True, slots=True)
class CostComplexity(Rule):
    """Minimal cost-complexity pruning: the smallest subtree of least impurity + alpha * leaves.

    In a search, ``{"pruning__alpha": [0.001, 0.01]}`` gives the rule of a model other alphas.

    Parameters
    ----------
    alpha : float >= 0
        In units of impurity, as scikit-learn's ``ccp_alpha``; 0 prunes nothing.
    penalty : {"leaves", "nodes"}, default="leaves"
        What is counted. Breiman and others count leaves; all nodes of a binary tree are twice as many, less one, so
        that half of an alpha for leaves does the same.
    cost : {"impurity", "error"}, default="impurity"
        Of the leaves: their impurity by the criterion of the fit, or the share of rows that are not of their class.

    Raises
    ------
    ValueError
        If a parameter is not as it must be.

    References
    ----------
    Breiman, Friedman, Olshen and Stone (1984), "Classification and Regression Trees", section 3.3. Raschka, STAT 479
    chapter 6, 6.11.1 (all nodes).

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
    penalty: str = "leaves"
    cost: str = "impurity"
    needs: ClassVar[Needs] = Needs.NO_ROWS
    tree_by_tree: ClassVar[bool] = False
    counts_cases: ClassVar[bool] = False  # shares of them

    def __post_init__(self) -> None:
        at_least_nothing("alpha", self.alpha)
        one_of("penalty", self.penalty, PENALTIES)
        one_of("cost", self.cost, COSTS)

    @property
    def of_classes(self) -> bool:
        """Of numbers there is no share that is wrong."""
        return self.cost == "error"

    def __call__(self, fitted: Fitted, cases: Cases | None = None) -> Forest:
        """The forest that is left."""
        return prune(fitted.forest, fitted.weight, float(self.alpha), self.penalty, COSTS[self.cost](fitted))

    def path(self, tree: Fitted) -> Path:
        """Every step up to the root, whatever alpha."""
        return cost_complexity_path(tree.forest, tree.weight, np.inf, self.penalty, COSTS[self.cost](tree))


@np.errstate(over="ignore")
def row_errors(fitted: Fitted, cases: Cases) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What every node would cost as a leaf, f8 (N,): wrong classes or squared differences of the rows that come to it.

    Several outputs add up. The second array is the part of those rows that a test has no branch for.

    Raises
    ------
    ValueError
        If squared differences leave the range of floats.
    """
    forest = fitted.forest
    cost, kept = np.zeros((2, forest.n_nodes))
    divide, guesses = by_shares(branch_shares(forest, fitted.weight)), predictions(fitted)
    for first in range(0, len(cases.weight), ROW_BLOCK):
        rows = slice(first, first + ROW_BLOCK)
        X, y, weight = cases.X[rows], cases.y[:, rows], cases.weight[rows]
        for root in forest.roots.tolist():
            start = replace(Parts.whole(len(weight), root), weight=weight)
            for at, ends in levels(forest, start.take(weight > 0), X, divide):
                found, own = guesses[:, at.node], y[:, at.row]
                loss = at.weight * (found != own if fitted.layout.counts else (found - own) ** 2).sum(axis=0)
                np.add.at(cost, at.node, loss)
                np.add.at(kept, at.node[ends], loss[ends])
    if not np.isfinite(cost).all():
        raise ValueError(
            f"y holds sizes up to {float(np.abs(cases.y).max())!r}, whose squared errors leave the range of floats: "
            "divide y by a power of ten, in the fit too"
        )
    kept[forest.kind == Test.LEAF] = 0.0
    return cost, kept


def predictions(fitted: Fitted) -> NDArray[Any]:
    """What every node predicts (O, N): numbers of classes, or means."""
    layout, value = fitted.layout, fitted.forest.value
    if not layout.counts:
        return value.T
    ends = np.cumsum(layout.sizes)
    return np.stack([value[:, end - size : end].argmax(axis=1) for end, size in zip(ends, layout.sizes, strict=True)])
