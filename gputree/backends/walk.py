"""Prediction on the NumPy backend: all rows walk down a tree together, a level a step. May import core."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import Forest, Test
from gputree.core.routes import branches_of


def walk(forest: Forest, root: int, X: NDArray[Any]) -> NDArray[np.int32]:
    """Leaf of every row of X f4/f8 (n, F) in one tree, i4 (n,)."""
    node = np.full(X.shape[0], root, np.int32)
    row = np.arange(X.shape[0]) if forest.kind[root] != Test.LEAF else np.zeros(0, np.intp)
    while row.size:
        at = node[row]
        x = X[row, forest.feature[at]].astype(np.float64, copy=False)
        at = (forest.first_child[at] + branches_of(forest, at, x)).astype(np.int32)
        node[row] = at
        row = row[forest.kind[at] != Test.LEAF]
    return node
