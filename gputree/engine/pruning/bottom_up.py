"""Rules that look at one node and at what is left below it: linear time, no recursion. May import core."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import Forest, Test
from gputree.engine.pruning.branches import Branches


def cheaper_leaves(
    forest: Forest,
    cost: NDArray[np.float64],
    slack: float,
    strictly: bool = False,
    kept: NDArray[np.float64] | float = 0.0,
) -> NDArray[np.bool_]:
    """Which tests become leaves, bool (N,), when each is compared with what is left of its branch, from the leaves up.

    Parameters
    ----------
    forest : Forest
    cost : f8 array (N,)
        Of every node as a leaf; that of a branch is the sum of its leaves.
    slack : float
        A leaf may cost so much more than the branch; with ``strictly`` it must cost more than so much less.
    kept : f8 array (N,)
        What a branch costs besides its leaves: that of the cases which end at its test.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> forest = DecisionTreeClassifier().fit([[0], [1], [2], [3]], [0, 1, 0, 1]).forest_
    >>> forest.first_child
    array([ 1, -1,  3, -1,  5, -1, -1], dtype=int32)
    >>> cheaper_leaves(forest, np.array([2.0, 0.5, 1.0, 0.0, 1.0, 0.5, 0.5]), 0.0).nonzero()[0]
    array([2, 4])
    """
    own, parent = cost.tolist(), forest.parent.tolist()
    inner, leaf = (forest.kind != Test.LEAF).tolist(), [False] * forest.n_nodes
    below = np.broadcast_to(kept, forest.n_nodes).tolist()
    for node in range(forest.n_nodes - 1, -1, -1):  # children follow their parents
        best = own[node]
        if inner[node]:
            more = best - below[node]
            leaf[node] = more < -slack if strictly else more <= slack
            best = best if leaf[node] else below[node]
        if parent[node] >= 0:
            below[parent[node]] += best
    return np.array(leaf)


def greedy_leaves(
    forest: Forest,
    cost: NDArray[np.float64],
    slack: float,
    strictly: bool = False,
    kept: NDArray[np.float64] | float = 0.0,
) -> NDArray[np.bool_]:
    """Which tests become leaves, bool (N,), when the one that saves most is cut first, the larger branch among equals.

    A cut that saves something lowers what the nodes above it would save, so an entry of the heap is an upper bound, and
    is put back when its node has less to save meanwhile. Parameters are those of `cheaper_leaves`.
    """
    tree = Branches(forest, cost, kept)
    marks = np.zeros(forest.n_nodes, bool)
    heap = [(*tree.savings(t, *tree.at_first(t)), t) for t in np.flatnonzero(forest.kind != Test.LEAF).tolist()]
    heapq.heapify(heap)
    while heap:
        more, size, node = heapq.heappop(heap)
        if tree.gone[node]:
            continue
        leaves, below = tree.below(node)
        now = tree.savings(node, leaves, below)
        if now > (more, size):
            heapq.heappush(heap, (*now, node))
            continue
        if more > slack or (strictly and more >= -slack):
            break
        tree.collapse(node, leaves, below)
        marks[node] = True
    return marks
