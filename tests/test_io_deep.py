"""A chain of a million tests: saved, loaded and mapped in seconds, with nothing that goes down by recursion."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gputree
from gputree.core.forest import Forest
from gputree.io import load, save

DEPTH = 1_000_000


def chain(depth: int) -> Any:
    """Test i sends x <= i + 0.5 to a leaf of one row, of class 0 and 1 in turn, and the rest to test i + 1."""
    nodes = 2 * depth + 1
    test = np.concatenate([[0], 2 * np.arange(1, depth)])
    turn = np.arange(depth + 1)

    def spread(blank: float, values: Any, dtype: str) -> NDArray[Any]:
        array = np.full(nodes, blank, dtype)
        array[test] = values
        return array

    own = np.zeros((depth + 1, 2), np.int64)
    own[turn, turn % 2] = 1
    stats = np.zeros((nodes, 2), np.int64)
    stats[np.append(np.arange(1, nodes, 2), nodes - 1)] = own
    stats[test] = own[::-1].cumsum(axis=0)[::-1][:-1]
    right = (turn[:-1] < depth - 1).astype(int)  # the larger child; of the last two, the first
    parent, level = np.full(nodes, -1, np.int32), np.zeros(nodes, np.int32)
    parent[1:], level[1:] = np.repeat(test, 2), np.repeat(np.arange(1, depth + 1), 2)
    model = gputree.DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1])
    model.forest_ = Forest(
        roots=np.zeros(1, np.int32),
        kind=spread(0, 1, "u1"),
        feature=spread(-1, 0, "i4"),
        low=spread(0, turn[:-1] + 0.5, "f8"),
        first_child=spread(-1, 1 + 2 * turn[:-1], "i4"),
        n_children=spread(0, 2, "u2"),
        missing=spread(0, right, "u2"),
        unseen=spread(0, right, "u2"),
        met_missing=np.zeros(nodes, np.uint8),
        lookup_ptr=np.zeros(nodes + 1, np.int64),
        lookup_code=np.zeros(0, np.uint16),
        lookup_branch=np.zeros(0, np.uint16),
        stats=stats,
        score=np.zeros(nodes),
        parent=parent,
        depth=level,
        impurity=np.zeros(nodes),
        value=stats / stats.sum(axis=1, keepdims=True),
    )
    return model


def test_a_chain_of_a_million_tests(tmp_path: Path) -> None:
    model = chain(DEPTH)
    assert sys.getrecursionlimit() < 10_000
    begin = time.perf_counter()
    for mapped in (False, True):
        save(model, tmp_path / "model", compact=not mapped)
        again = load(tmp_path / "model", mmap=mapped)
        assert again.get_depth() == DEPTH
        assert again.get_n_leaves() == DEPTH + 1
        assert again.predict([[0.0], [1.0], [6.5], [7.5]]).tolist() == [0, 1, 0, 1]
    assert time.perf_counter() - begin < 60  # some two seconds
    assert again.fingerprint() == model.fingerprint()
