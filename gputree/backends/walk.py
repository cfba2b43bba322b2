"""Prediction on the NumPy backend: all rows walk down a tree together, a level a step. May import core."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import Forest, Test


def walk(forest: Forest, keys: NDArray[np.int64], root: int, X: NDArray[Any]) -> NDArray[np.int32]:
    """Leaf of every row of X f4/f8 (n, F) in one tree, i4 (n,); keys are those of `lookup_keys`."""
    node = np.full(X.shape[0], root, np.int32)
    row = np.arange(X.shape[0]) if forest.kind[root] != Test.LEAF else np.zeros(0, np.intp)
    while row.size:
        at = node[row]
        x = X[row, forest.feature[at]].astype(np.float64, copy=False)
        branch = (~(x <= forest.low[at])).astype(np.int64)
        lookup = forest.kind[at] == Test.LOOKUP
        if lookup.any():
            branch[lookup] = look_up(forest, keys, at[lookup], x[lookup])
        missing = np.isnan(x)
        if missing.any():
            branch[missing] = forest.missing[at[missing]]
        at = (forest.first_child[at] + branch).astype(np.int32)
        node[row] = at
        row = row[forest.kind[at] != Test.LEAF]
    return node


def lookup_keys(forest: Forest) -> NDArray[np.int64]:
    """Node and code of every lookup cell as one number, ascending."""
    owner = np.repeat(np.arange(forest.n_nodes), np.diff(forest.lookup_ptr))
    return owner << 16 | forest.lookup_code


def look_up(forest: Forest, keys: NDArray[np.int64], node: NDArray[Any], x: NDArray[np.float64]) -> NDArray[np.int64]:
    """Branch of category numbers x (n,) at LOOKUP nodes; what a node never met follows `unseen`."""
    code = np.nan_to_num(x, nan=-1.0) + 1  # an unknown category, -1, becomes code 0, which no lookup lists
    wanted = node.astype(np.int64) << 16 | code.astype(np.int64)
    place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    branch: NDArray[np.int64] = np.where(keys[place] == wanted, forest.lookup_branch[place], forest.unseen[node])
    return branch.astype(np.int64)
