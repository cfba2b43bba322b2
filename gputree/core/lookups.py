"""Which columns of categories can tell a node nothing any more: those looked up above it.

May import NumPy and core only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import Marked, Test, ranges


class LookedUp:
    """Columns that a test above a node has parted category by category, while trees grow.

    Children share the set of their test, so that there are as many sets as such tests, and one more. ``sets`` u1
    (sets, n_features / 8) has a bit a column; ``number`` (N,) is the set of every node.

    Parameters
    ----------
    n_features : int
    """

    def __init__(self, n_features: int) -> None:
        self.n_features, self.n_sets = n_features, 1
        self.sets = np.zeros((1, -(-n_features // 8)), np.uint8)
        self.number = np.zeros(1, np.int32)

    def follow(self, tests: Marked) -> None:
        """Learn of tests that were carried out, after those above them."""
        count = tests.n_children.astype(np.intp)
        child = ranges(tests.first_child, count)
        self.number = roomy(self.number, 1 + int(max(child.max(initial=0), tests.node.max(initial=0))))
        number = self.number[tests.node]
        parting = np.flatnonzero((tests.kind == Test.LOOKUP) & (tests.lookup_count <= tests.n_children))
        new, feature = self.n_sets + np.arange(parting.size), tests.feature[parting]
        self.n_sets += parting.size
        self.sets = roomy(self.sets, self.n_sets)
        self.sets[new] = self.sets[number[parting]]
        self.sets[new, feature >> 3] |= np.uint8(128) >> (feature & 7).astype(np.uint8)
        number[parting] = new
        self.number[child] = np.repeat(number, count)

    def columns(self, node: NDArray[Any]) -> NDArray[np.bool_]:
        """The columns of some nodes, bool (k, n_features)."""
        number = np.where(node < self.number.size, self.number[np.minimum(node, self.number.size - 1)], 0)
        return np.unpackbits(self.sets[number], axis=1, count=self.n_features).astype(bool)


def roomy(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The array, with room for so many along its first axis: zeros, twice as many where it was full."""
    if size <= len(array):
        return array
    room = np.zeros((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    room[: len(array)] = array
    return room
