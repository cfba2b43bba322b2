"""Prediction on the NumPy backend: all rows walk down all trees together, a level a step. May import core."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import STAY, Forest, Test
from gputree.core.routes import branches_of


def walk(forest: Forest, roots: NDArray[np.int32], X: NDArray[Any]) -> NDArray[np.int32]:
    """Leaves i4 (n, T) of rows X f4/f8 (n, F) in the trees of some roots i4 (T,), or the nodes at which rows stay."""
    node = np.tile(roots, X.shape[0])
    walker = np.flatnonzero(forest.kind[node] != Test.LEAF)
    while walker.size:
        at = node[walker]
        x = X[walker // roots.size, forest.feature[at]].astype(np.float64, copy=False)
        branch = branches_of(forest, at, x)
        at = np.where(branch == STAY, at, forest.first_child[at] + branch).astype(np.int32)
        node[walker] = at
        walker = walker[(branch != STAY) & (forest.kind[at] != Test.LEAF)]
    return node.reshape(X.shape[0], roots.size)
