"""A fitted tree of any depth, made by hand: every left child is a leaf."""

from __future__ import annotations

from typing import Any

import numpy as np

import gputree
from gputree.core.criteria import TargetKind
from gputree.core.forest import Forest, Test
from gputree.core.target import Layout


def chain(depth: int) -> Any:
    """A regression tree of one column: x <= 0, else x <= 1, else x <= 2 and so on, a row in every leaf; leaf i says i.

    Node 2 i has the test x <= i, node 2 i + 1 is its left child, a leaf.
    """
    model = gputree.DecisionTreeRegressor().fit([[0.0], [1.0]], [0.0, 1.0])
    node, n = np.arange(2 * depth + 1), 2 * depth + 1
    inner = (node % 2 == 0) & (node < 2 * depth)
    blank = np.zeros(n, np.uint16)
    rows = np.where(node % 2 == 0, depth + 1 - node // 2, 1)
    value = np.where(node % 2 == 0, (node // 2 + depth) / 2, node // 2)
    model.layout_ = Layout(TargetKind.CENTRED_SUMS, (1,), (1.0,))
    model.forest_ = Forest(
        roots=np.zeros(1, np.int32),
        kind=np.where(inner, Test.THRESHOLD, Test.LEAF).astype(np.uint8),
        feature=np.where(inner, 0, -1).astype(np.int32),
        low=np.where(inner, node / 2, 0.0),
        first_child=np.where(inner, node + 1, -1).astype(np.int32),
        n_children=np.where(inner, 2, blank),
        missing=np.where(inner & (node < 2 * depth - 2), 1, blank),
        unseen=np.where(inner & (node < 2 * depth - 2), 1, blank),
        met_missing=np.zeros(n, np.uint8),
        lookup_ptr=np.zeros(n + 1, np.int64),
        lookup_code=blank[:0],
        lookup_branch=blank[:0],
        stats=np.column_stack([rows, 2 * value * rows - depth * rows]).astype(np.int64),
        score=np.zeros(n),
        parent=np.where(node > 0, (node - 1) // 2 * 2, -1).astype(np.int32),
        depth=((node + 1) // 2).astype(np.int32),
        impurity=np.zeros(n),
        value=value[:, None].astype(np.float64),
    ).lock()
    return model
