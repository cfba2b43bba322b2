"""Rules that take the tree with the least bound of its error. May import core."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gputree.core.checks import open_unit, whole
from gputree.core.description import code_length, risk_bound
from gputree.core.forest import Forest, Test
from gputree.core.routes import Parts, branch_shares, leaf_parts
from gputree.core.schema import Kind
from gputree.engine.pruning.records import Cases, Fitted
from gputree.engine.pruning.rules import Needs, Rule
from gputree.engine.pruning.whole_trees import Floats, Score, Trees, whole_trees


@dataclass(frozen=True, slots=True)
class WholeTree:
    """A tree that a bound is asked for.

    Attributes
    ----------
    error : float
        Share of the weight of the rows of the fit that it gets wrong.
    n_nodes, n_leaves : int
    """

    error: float
    n_nodes: int
    n_leaves: int
    make: Callable[[], Forest]

    @property
    def forest(self) -> Forest:
        """Its arrays, a forest of one tree; made when it is asked for, in time linear in its nodes and the rows."""
        return self.make()

    def predict(self, X: NDArray[Any]) -> NDArray[np.intp]:
        """Numbers of the classes of rows, int (n,); X float (n, n_features) as the fit reads it."""
        forest = self.forest
        total = np.zeros((len(X), forest.value.shape[1]))
        share = branch_shares(forest, np.maximum(forest.stats[:, : total.shape[1]].sum(axis=1), 1))
        for at in leaf_parts(forest, Parts.whole(len(X), 0), np.asarray(X), share):
            np.add.at(total, at.row, at.weight[:, None] * forest.value[at.node])
        number: NDArray[np.intp] = total.argmax(axis=1)
        return number


@dataclass(frozen=True, slots=True)
class BottomUp(Rule):
    """Take, node by node, the best of some whole trees by any bound of the error, a function of your own too.

    From the leaves up, in depth-first order, the last branch first, a node becomes a leaf of any class, one of its
    branches, to which all of its rows are sent, or stays as it is: that for which the bound of the whole tree is least.
    Among equals (to 1e-12) the tree with the fewest nodes; then leaves of the last to the first class, the last to the
    first branch. The bound of what is left is never larger than that of the tree as it was.

    Parameters
    ----------
    bound : callable
        ``bound(tree, m) -> float``, the smaller the better, of a `WholeTree` with its ``error``, ``n_nodes``,
        ``n_leaves``, ``forest`` and ``predict(X)``, fitted to rows that weigh ``m``. It is called for every option of
        every node.

    Raises
    ------
    TypeError
        If the bound is no function.
    ValueError
        When it is used, if the bound gives no number.

    Notes
    -----
    A leaf of a class that others of its rows outnumber predicts that class alone. A value that a test spreads over its
    branches counts in each by its share. Model files cannot hold a function.

    References
    ----------
    Shalev-Shwartz and Ben-David (2014), "Understanding Machine Learning", 18.2.2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.pruning import BottomUp, prune
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier().fit(X, y)
    >>> smaller = prune(model, BottomUp(lambda tree, m: tree.error + tree.n_leaves / m), X, y)
    >>> model.get_n_leaves(), smaller.get_n_leaves()
    (9, 4)
    """

    bound: Callable[[WholeTree, float], float]
    needs: ClassVar[Needs] = Needs.FIT
    of_classes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not callable(self.bound):
            raise TypeError(f"bound={self.bound!r} must be a function of a tree and of the weight of the rows")

    def __call__(self, fitted: Fitted, cases: Cases | None = None) -> Forest:
        """The forest that is left."""
        return whole_trees(fitted, self.asked(cases), lambda m: lambda trees: self.bounds(trees, m), block=1)

    def bounds(self, trees: Trees, m: float) -> Floats:
        """One tree after another."""
        found = np.zeros(trees.error.size)
        for i, (error, n_nodes, n_leaves) in enumerate(zip(trees.error, trees.n_nodes, trees.n_leaves, strict=True)):
            tree = WholeTree(float(error), int(n_nodes), int(n_leaves), lambda i=i: trees.forest(i))  # type: ignore[misc]
            value = self.bound(tree, m)
            if not isinstance(value, Real) or math.isnan(value) or value == -math.inf:
                raise ValueError(
                    f"bound={self.bound!r} gave {value!r} for a tree of {n_nodes:g} nodes, and no number above -inf"
                )
            found[i] = value
        return found


@dataclass(frozen=True, slots=True)
class RiskBound(Rule):
    """Take the tree with the least bound of its true error: that on the rows of the fit, and what its size may hide.

    ``error + sqrt(((n + 1) log2(s) + ln(2 / delta)) / (2 m))`` for n nodes, m rows and an alphabet of s symbols: the
    tests, the classes and an end, d + 3 for d binary columns and two classes. The procedure is that of `BottomUp`.

    Parameters
    ----------
    delta : float in (0, 1), default=0.05
        The bound of all trees holds but with this probability.
    n_tests : int, optional
        Tests that a node may have. By default those that part the rows of the fit, in a forest those of the tree's
        bag: of a column of numbers one between two values that follow each other, so one of a binary column; of a
        column of categories one if tests have a branch a category, else all ways to part the categories in two.

    Raises
    ------
    ValueError
        If a parameter is not as it must be.

    References
    ----------
    Shalev-Shwartz and Ben-David (2014), "Understanding Machine Learning", equation 18.1 and 18.2.2.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.pruning import RiskBound, prune
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DecisionTreeClassifier().fit(X, y)
    >>> model.get_n_leaves(), prune(model, RiskBound(), X, y).get_n_leaves()
    (22, 2)
    """

    delta: float = 0.05
    n_tests: int | None = None
    needs: ClassVar[Needs] = Needs.FIT
    of_classes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        open_unit("delta", self.delta, ": how likely the bound fails")
        if self.n_tests is not None:
            whole("n_tests", self.n_tests, 1, ", or None to count them")

    def __call__(self, fitted: Fitted, cases: Cases | None = None) -> Forest:
        """The forest that is left."""
        cases = self.asked(cases)
        n_tests = int(self.n_tests) if self.n_tests is not None else count_tests(fitted, cases)
        classes = fitted.layout.sizes[0]

        def score(m: float) -> Score:
            return lambda trees: risk_bound(trees.error, code_length(trees.n_nodes, n_tests, classes), m, self.delta)

        return whole_trees(fitted, cases, score)


def count_tests(fitted: Fitted, cases: Cases) -> int:
    """Tests that part the cases, over all columns; where one has more than two branches, each category has its own."""
    forest = fitted.forest
    lookup = forest.kind == Test.LOOKUP
    categories = set(np.flatnonzero(fitted.kinds == Kind.CATEGORICAL).tolist())
    multiway = bool((forest.n_children[lookup] > 2).any())
    total = 0
    for f, column in enumerate(cases.X[cases.weight > 0].T):
        others = max(np.unique(column[~np.isnan(column)]).size - 1, 0)
        total += others if f not in categories else int(others > 0) if multiway else 2**others - 1
    return max(total, 1)
