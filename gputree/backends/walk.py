"""Prediction on the NumPy backend: all rows walk down all trees together, a level a step. May import core."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import Forest, Test


def walk(forest: Forest, roots: NDArray[np.int32], X: NDArray[Any]) -> NDArray[np.int32]:
    """Leaves i4 (n, T) of rows X f4/f8 (n, F) in the trees of some roots i4 (T,)."""
    node = np.tile(roots, X.shape[0])
    walker = np.flatnonzero(forest.kind[node] != Test.LEAF)
    while walker.size:
        at = node[walker]
        x = X[walker // roots.size, forest.feature[at]].astype(np.float64, copy=False)
        at = (forest.first_child[at] + branches_of(forest, at, x)).astype(np.int32)
        node[walker] = at
        walker = walker[forest.kind[at] != Test.LEAF]
    return node.reshape(X.shape[0], roots.size)


def branches_of(forest: Forest, node: NDArray[Any], x: NDArray[np.float64]) -> NDArray[np.int64]:
    """Branch of values x (n,), categories as their numbers, at the tests of nodes (n,)."""
    branch: NDArray[np.int64] = (~(x <= forest.low[node])).astype(np.int64)
    lookup = forest.kind[node] == Test.LOOKUP
    if lookup.any():
        branch[lookup] = look_up(forest, node[lookup], x[lookup])
    missing = np.isnan(x)
    if missing.any():
        branch[missing] = forest.missing[node[missing]]
    return branch


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
