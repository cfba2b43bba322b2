"""The rule of bits saved. May import everything below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gputree.core.checks import positive
from gputree.core.description import QuinlanRivest
from gputree.core.expr import log2
from gputree.core.forest import Marked, Test
from gputree.core.lookups import LookedUp
from gputree.core.message_length import MessageLength
from gputree.engine.judge import Check, Proposals
from gputree.engine.pruning.lengths import partings
from gputree.learners.stopped import Fit, Rule


@dataclass(frozen=True, slots=True)
class SavesBits(Rule):
    """A test that does not shorten the message ends its node: the bits of Quinlan and Rivest.

    As `MDLTreeClassifier` counts them, but that a cut pays for all cuts of its column in the whole table, and a parting
    of c categories in two for all 2^(c - 1) - 1 of them. One output of classes.

    Parameters
    ----------
    tree_weight, exception_weight : float, default=1.0
        What a bit of the tree, and of its exceptions, counts.

    References
    ----------
    Quinlan and Rivest (1989), Information and Computation 80:227-248. Nilsson, "Introduction to Machine Learning",
    6.4.4.
    """

    tree_weight: float = 1.0
    exception_weight: float = 1.0
    code: ClassVar[QuinlanRivest] = QuinlanRivest()
    follows_rows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in ("tree_weight", "exception_weight"):
            positive(name, getattr(self, name))

    @property
    def why(self) -> str:
        """No number."""
        return "no bits saved"

    def begin(self, fit: Fit) -> Check:
        """Count the columns whose categories were looked up above each node."""
        fit.one_output("SavesBits")
        lengths, n_classes = MessageLength(per_unit=fit.target.weights.unit), fit.layout.sizes[0]
        used = LookedUp(fit.X.shape[1])

        def check(proposed: Proposals, news: Sequence[Marked]) -> NDArray[np.bool_]:
            for tests in news:
                used.follow(tests)
            left = fit.X.shape[1] - used.columns(proposed.splits.node).sum(axis=1)
            wrong = self.code.exceptions(lengths.counts(proposed.stats, n_classes))
            below = self.code.exceptions(lengths.counts(proposed.children, n_classes))
            saved = wrong - np.add.reduceat(below, proposed.tests.first_child)
            leaves = (proposed.splits.n_branches - 1.0) * (1.0 + self.code.label(n_classes))
            paid = 1.0 + leaves + log2(np.maximum(left, 1).astype(np.float64)) + choice_bits(proposed)
            stops: NDArray[np.bool_] = self.exception_weight * saved - self.tree_weight * paid <= 0.0
            return stops

        return check


def choice_bits(proposed: Proposals) -> NDArray[np.float64]:
    """Bits of a cut, or of a parting in two, among all of its column, f8 (k,)."""
    lookup, branches = proposed.tests.kind == Test.LOOKUP, proposed.tests.n_children
    tests = np.where(lookup, partings(proposed.codes, branches), proposed.codes - 1.0)
    return log2(np.maximum(tests, 1.0))
