"""Prediction on the NumPy backend: all rows walk down a tree together, a level a step. May import core."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import STAY, Forest, Test
from gputree.core.routes import branches_of


def walk(forest: Forest, root: int, X: NDArray[Any]) -> NDArray[np.int32]:
    """Leaf of every row of X f4/f8 (n, F) in one tree, i4 (n,), or the node at which a row stays."""
    node = np.full(X.shape[0], root, np.int32)
    row = np.arange(X.shape[0]) if forest.kind[root] != Test.LEAF else np.zeros(0, np.intp)
    while row.size:
        at = node[row]
        x = X[row, forest.feature[at]].astype(np.float64, copy=False)
        branch = branches_of(forest, at, x)
        at = np.where(branch == STAY, at, forest.first_child[at] + branch).astype(np.int32)
        node[row] = at
        row = row[(branch != STAY) & (forest.kind[at] != Test.LEAF)]
    return node
