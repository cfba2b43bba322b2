"""Prediction on the NumPy backend: all rows walk down a tree together, a level a step. May import core."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import STAY, Forest, Test


def walk(forest: Forest, root: int, X: NDArray[Any]) -> NDArray[np.int32]:
    """Leaf of every row of X f4/f8 (n, F) in one tree, i4 (n,), or the node at which a row stays."""
    node = np.full(X.shape[0], root, np.int32)
    row = np.arange(X.shape[0]) if forest.kind[root] != Test.LEAF else np.zeros(0, np.intp)
    while row.size:
        at = node[row]
        x = X[row, forest.feature[at]].astype(np.float64, copy=False)
        branch = (~(x <= forest.low[at])).astype(np.int64)
        lookup = forest.kind[at] == Test.LOOKUP
        if lookup.any():
            branch[lookup] = look_up(forest, at[lookup], x[lookup])
        missing = np.isnan(x)
        if missing.any():
            branch[missing] = forest.missing[at[missing]]
        at = np.where(branch == STAY, at, forest.first_child[at] + branch).astype(np.int32)
        node[row] = at
        row = row[(branch != STAY) & (forest.kind[at] != Test.LEAF)]
    return node


def look_up(forest: Forest, node: NDArray[Any], x: NDArray[np.float64]) -> NDArray[np.int64]:
    """Branch of category numbers x (n,) at LOOKUP nodes; what a node does not list follows `unseen`.

    The cells of a node are searched by halving, so that a row costs its path whatever the size of the forest.
    """
    low, stop = forest.lookup_ptr[node], forest.lookup_ptr[node + 1]
    high, last = stop.copy(), forest.lookup_code.size - 1
    while (open_ := low < high).any():
        middle = (low + high) // 2
        less = forest.lookup_code[np.minimum(middle, last)] < x + 1.0
        low = np.where(open_ & less, middle + 1, low)
        high = np.where(open_ & ~less, middle, high)
    place = np.minimum(low, last)
    listed = (low < stop) & (forest.lookup_code[place] == x + 1.0)
    branch: NDArray[np.int64] = np.where(listed, forest.lookup_branch[place], forest.unseen[node]).astype(np.int64)
    return branch
