"""Rules that ask whether a test says anything of other rows. May import everything below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gputree.core.checks import open_unit, whole
from gputree.core.forest import Marked
from gputree.core.keys import Stream, draw
from gputree.engine.independence import independence
from gputree.engine.judge import Check, Proposals
from gputree.engine.pruning import Cases
from gputree.engine.pruning.rules import ROUNDING
from gputree.learners.held_out import of_size_one
from gputree.learners.stopped import Fit, Rule, Walkers
from gputree.learners.tasks import checked_weight


@dataclass(frozen=True, slots=True)
class ChiSquare(Rule):
    """A test whose branches could as well have come about by chance ends its node: p above ``alpha``.

    Pearson's statistic of branches x classes, without branches and classes that have no rows; (r - 1)(c - 1) degrees
    of freedom, p = 1 if there are none. Weights count as rows. One output of classes.

    References
    ----------
    Quinlan (1986), "Induction of decision trees", Machine Learning 1:81-106, section 4. Raschka, STAT 479 chapter 6,
    6.11.1. Procaccia, lecture 16.
    """

    alpha: float = 0.05
    follows_rows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        open_unit("alpha", self.alpha)

    @property
    def why(self) -> str:
        """The level."""
        return f"p > {self.alpha}"

    def begin(self, fit: Fit) -> Check:
        """From the counts of the branches."""
        fit.one_output("ChiSquare")
        unit, n_classes = fit.target.weights.unit, fit.layout.sizes[0]

        def check(proposed: Proposals, news: Sequence[Marked]) -> NDArray[np.bool_]:
            counts = np.asarray(proposed.children[:n_classes] * unit, np.float64)
            stops: NDArray[np.bool_] = independence(counts, proposed.tests.first_child)[2] > self.alpha
            return stops

        return check


@dataclass(frozen=True, slots=True, eq=False)
class Validation(Rule):
    """A test stays only if it gets strictly more of other rows right than the leaf would; of numbers, is closer.

    The rows follow the tree while it grows; where none reaches a node, its test does not stay.

    Parameters
    ----------
    X, y : as in `fit`, without rows of the fit
        Validation rows. Copies of the rule, as of `sklearn.base.clone`, share them.
    sample_weight : array-like of shape (n_rows,), optional
        Their weights.

    Raises
    ------
    ValueError
        If X or y is missing; in a fit, if they are not like its rows.

    References
    ----------
    Nilsson, "Introduction to Machine Learning", 6.4.3.
    """

    X: Any
    y: Any
    sample_weight: Any = None

    def __post_init__(self) -> None:
        if self.X is None or self.y is None:
            raise ValueError("Validation needs rows that the fit does not see, and their y: give Validation(X, y)")

    def __repr__(self) -> str:
        return f"Validation(<{self.X.shape[0] if hasattr(self.X, 'shape') else len(self.X)} rows>)"

    def __deepcopy__(self, memo: dict[int, Any]) -> Validation:
        return self

    @property
    def why(self) -> str:
        """No number."""
        return "no better on validation rows"

    def begin(self, fit: Fit) -> Check:
        """Read the rows, and put them into the root."""
        X, labels = fit.read(self.X, self.y)
        given = checked_weight(self.sample_weight, X)
        weight = of_size_one(Cases(X, labels, np.ones(X.shape[0]) if given is None else given)).weight
        walkers = Walkers(X)

        def check(proposed: Proposals, news: Sequence[Marked]) -> NDArray[np.bool_]:
            walkers.advance(news)
            row, place, child = walkers.meet(proposed)
            leaf = fit.predictions(proposed.stats)
            below = fit.branch_predictions(proposed.children, leaf[:, proposed.owner])
            own = labels[:, row]
            before = weight[row] * fit.losses(leaf[:, place], own)
            after = weight[row] * fit.losses(below[:, child], own)
            k = len(proposed)
            least = np.bincount(place, before, k) * (1.0 - ROUNDING)
            stops: NDArray[np.bool_] = np.bincount(place, after, k) >= least
            return stops

        return check


@dataclass(frozen=True, slots=True)
class CrossValidated(Rule):
    """A test ends its node if the error across folds rises by it.

    Every row of the fit belongs to one of ``cv`` folds of equal size, drawn by a hash of the seed and its number. It is
    predicted by the leaf, and by the branches of the test, as the rows of the other folds make them; the test itself
    was chosen on all rows.

    References
    ----------
    Nilsson, "Introduction to Machine Learning", 6.4.3.
    """

    cv: int = 5

    def __post_init__(self) -> None:
        whole("cv", self.cv, 2)

    @property
    def why(self) -> str:
        """The number of folds."""
        return f"worse across {self.cv} folds"

    def begin(self, fit: Fit) -> Check:
        """Draw the folds."""
        n = fit.target.n_rows
        if self.cv > n:
            raise ValueError(f"cv={self.cv} folds need as many rows, and the fit has {n}; give a smaller number")
        hashes = draw(np.array([fit.seed], np.uint64), Stream.FOLD, np.arange(n, dtype=np.uint64))
        fold = np.argsort(np.argsort(hashes, kind="stable")) % self.cv
        walkers, labels, units = Walkers(fit.X), fit.labels(), fit.units()

        def others(row: NDArray[np.intp], node: NDArray[Any], size: int) -> NDArray[np.int64]:
            own = fit.channels(row, node * self.cv + fold[row], size * self.cv).reshape(-1, size, self.cv)
            rest: NDArray[np.int64] = (own.sum(axis=2, keepdims=True) - own).reshape(-1, size * self.cv)
            return rest

        def check(proposed: Proposals, news: Sequence[Marked]) -> NDArray[np.bool_]:
            walkers.advance(news)
            row, place, child = walkers.meet(proposed)
            k, own = len(proposed), labels[:, row]
            leaf = fit.predictions(others(row, place, k))
            above = leaf.reshape(-1, k, self.cv)[:, proposed.owner].reshape(leaf.shape[0], -1)
            below = fit.branch_predictions(others(row, child, proposed.owner.size), above)
            before = units[row] * fit.losses(leaf[:, place * self.cv + fold[row]], own)
            after = units[row] * fit.losses(below[:, child * self.cv + fold[row]], own)
            stops: NDArray[np.bool_] = np.bincount(place, after, k) > np.bincount(place, before, k)
            return stops

        return check
