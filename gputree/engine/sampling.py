"""Bags of rows and subsets of features, drawn by hash: the same whatever the order of growth. May import core."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from gputree.core.bags import Bags, Draws, Listed
from gputree.core.keys import Stream, below, draw
from gputree.core.splits import Slots


class FeatureDraws(Enum):
    """How the features of a node are drawn, and what follows where none of them has an admissible test."""

    CONTINUE = "continue"  # distinct features; the next ones are tried
    STOP = "stop"  # distinct features; the node stays a leaf
    REPEATS = "repeats"  # a feature may be drawn more than once; the node stays a leaf


@dataclass(frozen=True, slots=True)
class Sampler:
    """``n_trees`` trees from number ``first`` on, and how their rows are drawn, None for all rows.

    ``max_features`` features are drawn at a time in a node, None for as many as there are. ``once``: a column whose
    categories were looked up on the way to a node is not tried there again.
    """

    n_trees: int = 1
    max_features: int | None = None
    first: int = 0
    draws: Draws | Listed | None = None
    feature_draws: FeatureDraws = FeatureDraws.CONTINUE
    once: bool = False

    def bags(self, seed: int) -> Bags:
        """Rows of every tree, as a description."""
        return Bags(self.n_trees, self.first, seed, self.draws)

    def turn(self, n_features: int) -> int:
        """Features that a node draws at a time."""
        return min(self.max_features or n_features, n_features)

    def reach(self, n_features: int) -> int:
        """Features that a node draws in all while none has an admissible test."""
        return n_features if self.feature_draws is FeatureDraws.CONTINUE else self.turn(n_features)

    def features(self, slots: Slots, n_features: int, first: int, count: int) -> NDArray[np.int32]:
        """Features i4 (k, m) of the ranks ``first`` to ``first + count - 1`` in every node, as many as there are.

        Features of a node are ranked by their hash; turn t tries the ranks t * m to t * m + m - 1, m = max_features.
        With repeats, draw i is a feature by its own hash, and -1 stands for one that was drawn before.
        """
        if self.feature_draws is FeatureDraws.REPEATS:
            hashes = draw(slots.key[:, None], Stream.FEATURE, np.arange(first, first + count, dtype=np.uint64))
            drawn = np.sort(below(hashes, n_features).astype(np.int32), axis=1)
            return np.where(np.diff(drawn, axis=1, prepend=np.int32(-1)) > 0, drawn, np.int32(-1))
        if first == 0 and count >= n_features:
            return np.broadcast_to(np.arange(n_features, dtype=np.int32), (len(slots), n_features))
        ranks = draw(slots.key[:, None], Stream.FEATURE, np.arange(n_features, dtype=np.uint64))
        return np.argsort(ranks, axis=1, kind="stable")[:, first : first + count].astype(np.int32)
