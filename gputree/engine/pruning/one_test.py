"""Rules that ask of one test at a time whether it does any good. May import core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gputree.core.checks import open_unit
from gputree.core.families import Family
from gputree.core.forest import Forest, Test
from gputree.engine.independence import independence
from gputree.engine.pruning.records import Cases, Fitted
from gputree.engine.pruning.rules import ROUNDING, Needs, Rule, row_errors


@dataclass(frozen=True, slots=True)
class ChiSquare(Rule):
    """Cut tests at the ends of the tree whose branches could as well have come about by chance.

    From the leaves up, a test all of whose branches are leaves becomes one if p > alpha in Pearson's test of branches
    against classes, with (branches - 1)(classes - 1) degrees of freedom; branches and classes without rows do not
    count, and p is 1 where no freedom is left. Weights count as rows. It needs no rows: the forest holds the counts.

    Parameters
    ----------
    alpha : float in (0, 1), default=0.05

    Raises
    ------
    ValueError
        If alpha is not as it must be.

    References
    ----------
    Quinlan (1986), "Induction of decision trees", Machine Learning 1:81-106, section 4. Russell and Norvig,
    "Artificial Intelligence: a Modern Approach", 18.3 (pruning by chi-square from the leaves up).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.pruning import ChiSquare, prune
    >>> model = DecisionTreeClassifier().fit(*load_breast_cancer(return_X_y=True))
    >>> model.get_n_leaves(), prune(model, ChiSquare(0.01)).get_n_leaves()
    (22, 19)
    """

    alpha: float = 0.05
    needs: ClassVar[Needs] = Needs.NO_ROWS
    tree_by_tree: ClassVar[bool] = False
    of_classes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        open_unit("alpha", self.alpha)

    def __call__(self, fitted: Fitted, cases: Cases | None = None) -> Forest:
        """The forest that is left."""
        forest, family = fitted.forest, Family.of(fitted.forest.n_children, fitted.forest.roots)
        if not family.inner.size:
            return forest
        counts = np.asarray(forest.stats[family.below, fitted.layout.output(0)].T * fitted.unit, np.float64)
        chance = np.zeros(forest.n_nodes, bool)
        chance[family.inner] = independence(counts, family.start)[2] > self.alpha
        return forest.collapse(from_the_ends(forest, chance))


def from_the_ends(forest: Forest, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which marked tests, bool (N,), have nothing but leaves and such tests below them."""
    whole, parent = (marked | (forest.kind == Test.LEAF)).tolist(), forest.parent.tolist()
    for node in range(forest.n_nodes - 1, -1, -1):  # children follow their parents
        if parent[node] >= 0 and not whole[node]:
            whole[parent[node]] = False
    return np.array(whole) & marked


@dataclass(frozen=True, slots=True)
class ValidationSet(Rule):
    """Keep a test only if its branches, as leaves, get strictly more of other rows right than the leaf would.

    From the root down; what is below the first test that does not is gone: what growth leaves that is stopped by the
    same question. A test that pays only together with those below it goes too, as in exclusive or; `ReducedError`
    looks at what is below first. Errors, of classes or numbers, are those of `ReducedError`.

    References
    ----------
    Nilsson, "Introduction to Machine Learning", 6.4.3.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.pruning import ValidationSet, prune
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DecisionTreeClassifier().fit(X[::2], y[::2])
    >>> model.get_n_leaves(), prune(model, ValidationSet(), X[1::2], y[1::2]).get_n_leaves()
    (12, 3)
    """

    needs: ClassVar[Needs] = Needs.VALIDATION

    def __call__(self, fitted: Fitted, cases: Cases | None = None) -> Forest:
        """The forest that is left."""
        forest = fitted.forest
        leaf, below = row_errors(fitted, self.asked(cases))
        child = np.flatnonzero(forest.parent >= 0)
        below += np.bincount(forest.parent[child], leaf[child], forest.n_nodes)
        better = below < leaf - ROUNDING * float(leaf[forest.roots].max())
        return forest.collapse((forest.kind != Test.LEAF) & ~better)
