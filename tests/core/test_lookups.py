"""Columns looked up above nodes, level by level, against a walk up from every node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gputree.core.forest import Forest, Marked, Test, ranges
from gputree.core.lookups import LookedUp
from tests.backends.test_methods import random_forest


def recorded(forest: Forest, node: NDArray[Any]) -> Marked:
    """What growth records of some nodes."""
    count = np.diff(forest.lookup_ptr)[node]
    cells = ranges(forest.lookup_ptr[:-1][node], count)
    names = ("kind", "feature", "low", "first_child", "n_children", "missing", "unseen", "met_missing", "score")
    own = {name: getattr(forest, name)[node] for name in names}
    return Marked(
        node=node.astype(np.int32),
        **own,
        lookup_count=count,
        lookup_code=forest.lookup_code[cells],
        lookup_branch=forest.lookup_branch[cells],
    )


def above(forest: Forest, node: int) -> set[int]:
    found, parent = set(), int(forest.parent[node])
    while parent >= 0:
        cells = forest.lookup_ptr[parent + 1] - forest.lookup_ptr[parent]
        if forest.kind[parent] == Test.LOOKUP and cells <= forest.n_children[parent]:
            found.add(int(forest.feature[parent]))
        parent = int(forest.parent[parent])
    return found


@pytest.mark.parametrize("seed", range(8))
def test_the_columns_above_every_node(seed: int) -> None:
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, 3)
    forest = replace(forest, feature=np.where(forest.kind == Test.LEAF, -1, rng.integers(0, 19, forest.n_nodes)))
    used, inner = LookedUp(19), np.flatnonzero(forest.kind != Test.LEAF)
    for depth in range(forest.max_depth):
        used.follow(recorded(forest, inner[forest.depth[inner] == depth]))
    found = used.columns(np.arange(forest.n_nodes))
    assert [set(np.flatnonzero(row).tolist()) for row in found] == [above(forest, i) for i in range(forest.n_nodes)]


def test_no_test_and_no_column() -> None:
    assert LookedUp(3).columns(np.array([0, 7])).tolist() == [[False] * 3] * 2
    assert LookedUp(0).columns(np.array([0])).shape == (1, 0)
