"""Rules that count, and the rule of no gain. May import everything below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gputree.core.checks import whole
from gputree.core.forest import Marked
from gputree.core.splits import Stop
from gputree.engine.judge import Check, Proposals
from gputree.learners.stopped import Fit, Rule


def nowhere(proposed: Proposals, news: Sequence[Marked]) -> NDArray[np.bool_]:
    """Stop nothing."""
    return np.zeros(len(proposed), bool)


@dataclass(frozen=True, slots=True)
class MaxDepth(Rule):
    """Nodes of this depth are leaves; the root has depth 0.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier(stopping=MaxDepth(1)).fit([[0], [1], [2], [3]], [0, 1, 1, 0])
    >>> model.stop_reason_.tolist()
    ['', 'pure', 'depth 1']
    """

    depth: int
    follows_rows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        whole("depth", self.depth, 0)

    @property
    def why(self) -> str:
        """The depth."""
        return f"depth {self.depth}"

    def begin(self, fit: Fit) -> Check:
        """By depth alone."""
        return lambda proposed, news: proposed.depth >= self.depth


@dataclass(frozen=True, slots=True)
class MinSamples(Rule):
    """A node of fewer rows than ``split`` is a leaf, and one whose test makes a leaf of fewer than ``leaf``.

    Rows of weight 0 do not count.
    """

    split: int = 2
    leaf: int = 1
    follows_rows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        whole("split", self.split, 2)
        whole("leaf", self.leaf, 1)

    @property
    def why(self) -> str:
        """The numbers."""
        return f"fewer than {self.split} rows, or {self.leaf} in a leaf"

    def begin(self, fit: Fit) -> Check:
        """Count."""

        def check(proposed: Proposals, news: Sequence[Marked]) -> NDArray[np.bool_]:
            rows = proposed.layout.count(proposed.stats)
            least = np.minimum.reduceat(proposed.layout.count(proposed.children), proposed.tests.first_child)
            stops: NDArray[np.bool_] = (rows < self.split) | (least < self.leaf)
            return stops

        return check


@dataclass(frozen=True, slots=True)
class MaxNodes(Rule):
    """The tree has at most so many nodes, leaves included; grown best first, the best test of all leaves next.

    A test with more branches than nodes are left is passed over.

    References
    ----------
    Shalev-Shwartz and Ben-David (2014), "Understanding Machine Learning", 18.2.2.
    """

    nodes: int
    follows_rows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        whole("nodes", self.nodes, 1)

    @property
    def why(self) -> str:
        """The number."""
        return f"{self.nodes} nodes"

    def limit(self, stop: Stop) -> Stop:
        """The least of the limits."""
        return replace(stop, max_nodes=least(stop.max_nodes, self.nodes))

    def begin(self, fit: Fit) -> Check:
        """Growth keeps to it."""
        return nowhere


@dataclass(frozen=True, slots=True)
class MaxIterations(Rule):
    """So many tests are carried out, best first: an iteration turns the leaf with the best test of all into a node.

    References
    ----------
    Shalev-Shwartz and Ben-David (2014), "Understanding Machine Learning", 18.2 and 18.2.2.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> X, y = [[0], [1], [2], [3]], [0, 1, 0, 1]
    >>> DecisionTreeClassifier(stopping=MaxIterations(2)).fit(X, y).get_n_leaves()
    3
    """

    iterations: int
    follows_rows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        whole("iterations", self.iterations, 0)

    @property
    def why(self) -> str:
        """The number."""
        return f"{self.iterations} iterations"

    def limit(self, stop: Stop) -> Stop:
        """The least of the limits."""
        return replace(stop, max_splits=least(stop.max_splits, self.iterations))

    def begin(self, fit: Fit) -> Check:
        """Growth keeps to it."""
        return nowhere


def least(limit: int | None, other: int) -> int:
    """The smaller of two limits, of which one may be absent."""
    return int(other) if limit is None else min(limit, int(other))


@dataclass(frozen=True, slots=True)
class NoGain(Rule):
    """A node whose best test gains nothing is a leaf.

    References
    ----------
    Raschka, STAT 479 chapter 6, 6.3.

    Examples
    --------
    The exclusive or, which two tests would learn:

    >>> from gputree import DecisionTreeClassifier
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> DecisionTreeClassifier(stopping=NoGain()).fit(X, y).stop_reason_.tolist()
    ['no gain']
    """

    follows_rows: ClassVar[bool] = False

    @property
    def why(self) -> str:
        """No number."""
        return "no gain"

    def begin(self, fit: Fit) -> Check:
        """By the score, whose grid takes rounding for nothing."""
        return lambda proposed, news: proposed.splits.score <= 0.0
