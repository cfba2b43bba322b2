"""Bags of rows and subsets of features, drawn by hash: the same whatever the order of growth. May import core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gputree.core.bags import Bags, Draws, Listed
from gputree.core.keys import Stream, draw
from gputree.core.splits import Slots


@dataclass(frozen=True, slots=True)
class Sampler:
    """``n_trees`` trees from number ``first`` on, and how their rows are drawn, None for all rows.

    ``max_features`` features are tried at a time in a node, None for all.
    """

    n_trees: int = 1
    max_features: int | None = None
    first: int = 0
    draws: Draws | Listed | None = None

    def bags(self, seed: int) -> Bags:
        """Rows of every tree, as a description."""
        return Bags(self.n_trees, self.first, seed, self.draws)

    def features(self, slots: Slots, n_features: int, first: int, count: int) -> NDArray[np.int32]:
        """Features i4 (k, m) of the ranks ``first`` to ``first + count - 1`` in every node, as many as there are.

        Features of a node are ranked by their hash; turn t tries the ranks t * m to t * m + m - 1, m = max_features.
        """
        if first == 0 and count >= n_features:
            return np.broadcast_to(np.arange(n_features, dtype=np.int32), (len(slots), n_features))
        ranks = draw(slots.key[:, None], Stream.FEATURE, np.arange(n_features, dtype=np.uint64))
        return np.argsort(ranks, axis=1, kind="stable")[:, first : first + count].astype(np.int32)
