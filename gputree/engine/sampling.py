"""Bags of rows and subsets of features, drawn by hash: the same whatever the order of growth. May import core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gputree.backends.protocol import Bags
from gputree.core.keys import Stream, draw
from gputree.core.splits import Slots


@dataclass(frozen=True, slots=True)
class Sampler:
    """``n_trees`` trees of all rows; ``max_features`` features tried at a time in a node, None for all."""

    n_trees: int = 1
    max_features: int | None = None

    def bags(self) -> Bags:
        """Rows of every tree, as a description."""
        return Bags(self.n_trees)

    def features(self, slots: Slots, n_features: int, turn: int) -> NDArray[np.int32] | None:
        """Features i4 (k, m) that turn number ``turn`` tries, None when there are none left.

        Features of a node are ranked by their hash; turn t tries the ranks t * m to t * m + m - 1.
        """
        m = n_features if self.max_features is None else self.max_features
        if turn * m >= n_features:
            return None
        if m >= n_features:
            return np.broadcast_to(np.arange(n_features, dtype=np.int32), (len(slots), n_features))
        ranks = draw(slots.key[:, None], Stream.FEATURE, np.arange(n_features, dtype=np.uint64))
        return np.argsort(ranks, axis=1, kind="stable")[:, turn * m : turn * m + m].astype(np.int32)
