"""Nodes and their children in canonical order, where both follow from the numbers of children alone.

May import NumPy and core only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import NO_NODE, SPREAD, Forest, Test, ranges

DEEPEST = 4096  # levels that sums are taken over: each costs some array operations, however few its nodes are


@dataclass(frozen=True, slots=True)
class Family:
    """Inner nodes (I,) and all nodes but roots (N - T,): each inner one has ``count`` (I,) of these.

    They begin at place ``start`` (I,). Sound in canonical order, where the children of the nodes of a tree follow one
    another behind its root.
    """

    inner: NDArray[np.intp]
    count: NDArray[np.int64]
    start: NDArray[np.int64]
    below: NDArray[np.intp]

    @classmethod
    def of(cls, n_children: NDArray[Any], roots: NDArray[Any]) -> Family:
        """Those of trees with these roots; n_children (N,) is 0 in leaves."""
        inner = np.flatnonzero(n_children)
        count = n_children[inner].astype(np.int64)
        below = np.ones(n_children.size, bool)
        below[roots] = False
        return cls(inner, count, np.cumsum(count) - count, np.flatnonzero(below))

    def largest(self, numbers: NDArray[Any]) -> NDArray[np.int64]:
        """The branch of every inner node whose child has the largest of numbers (N,), the first among equals."""
        if not self.inner.size:
            return np.zeros(0, np.int64)
        return first_largest(numbers[self.below], self.count, self.start) - self.start


def first_largest(numbers: NDArray[Any], count: NDArray[Any], start: NDArray[Any]) -> NDArray[np.int64]:
    """Places (k,) of the largest of numbers in runs that follow one another, the first among equals.

    Runs are of ``count`` (k,) numbers, at least one, and begin at ``start`` (k,).

    Examples
    --------
    >>> first_largest(np.array([5, 3, 5, 1, 2]), np.array([3, 2]), np.array([0, 3]))
    array([0, 4])
    """
    place = np.flatnonzero(numbers == np.repeat(np.maximum.reduceat(numbers, start), count))
    found: NDArray[np.int64] = place[np.searchsorted(place, start)]
    return found


def tree_ends(n_children: NDArray[Any]) -> NDArray[np.intp]:
    """Where the trees end, (T,), from the numbers of children (N,): at the first node that nothing is open behind.

    Raises
    ------
    ValueError
        If the last tree has no end.

    Examples
    --------
    A tree of one test, then a leaf alone.

    >>> tree_ends(np.array([2, 0, 0, 0]))
    array([3, 4])
    """
    open_ = np.cumsum(n_children.astype(np.int64) - 1)  # nodes announced and not yet seen, less 1 a finished tree
    least = np.minimum.accumulate(np.concatenate([[0], open_]))
    ends = np.flatnonzero(np.diff(least)) + 1
    if not ends.size or ends[-1] != n_children.size:
        raise ValueError("the children are not all nodes but the roots")
    return ends


def first_children(n_children: NDArray[Any], roots: NDArray[Any]) -> NDArray[np.int32]:
    """First child of every node i4 (N,), -1 in leaves."""
    behind = children_before(n_children, roots)
    return np.where(n_children > 0, behind, NO_NODE).astype(np.int32)


def children_before(n_children: NDArray[Any], roots: NDArray[Any]) -> NDArray[np.int64]:
    """The node behind the children of all nodes before each of a tree, i8 (N,)."""
    count = n_children.astype(np.int64)
    starts = np.zeros(count.size, np.int64)
    starts[roots] = 1  # of the nodes up to here, the roots are no children
    behind: NDArray[np.int64] = np.cumsum(count) - count + np.cumsum(starts)
    return behind


def parents(n_children: NDArray[Any], roots: NDArray[Any]) -> NDArray[np.int32]:
    """Parent of every node i4 (N,), -1 of roots."""
    family = Family.of(n_children, roots)
    parent = np.full(n_children.size, NO_NODE, np.int32)
    parent[family.below] = np.repeat(family.inner, family.count)
    return parent


def depths(n_children: NDArray[Any], roots: NDArray[Any]) -> NDArray[np.int32]:
    """Depth of every node i4 (N,): a level ends where the children of the level before end."""
    behind, ends = children_before(n_children, roots).tolist(), [*roots[1:].tolist(), n_children.size]
    deeper = np.zeros(n_children.size + 1, np.int64)
    for root, end in zip(roots.tolist(), ends, strict=True):
        first, levels = root + 1, 0
        while first < end:
            deeper[first] += 1
            first, levels = behind[first], levels + 1
        deeper[end] -= levels
    return np.cumsum(deeper[:-1]).astype(np.int32)


def add_up(leaves: NDArray[np.int64], leaf: NDArray[np.bool_], links: tuple[Any, Any, Any]) -> NDArray[np.int64] | None:
    """Channels of all nodes (N, C) as sums of those of the leaves; None where trees are deeper than DEEPEST.

    ``links`` are parent, depth and first child of every node.
    """
    parent, depth, first_child = links
    deepest = int(depth.max(initial=0))
    if deepest > DEEPEST:
        return None
    total = np.zeros((leaf.size, leaves.shape[1]), np.int64)
    total[leaf] = leaves
    order = np.argsort(depth, kind="stable")
    ends = np.searchsorted(depth[order], np.arange(deepest + 2))
    for level in range(deepest, 0, -1):
        node = order[ends[level] : ends[level + 1]]
        starts = np.flatnonzero(first_child[parent[node]] == node)
        total[parent[node[starts]]] = np.add.reduceat(total[node], starts, axis=0)
    return total


def known_branches(forest: Forest) -> NDArray[np.bool_]:
    """Whether some known value leads from its parent to a node, bool (N,); true of roots."""
    known = np.ones(forest.n_nodes, bool)
    lookup = np.flatnonzero(forest.kind == Test.LOOKUP)
    known[ranges(forest.first_child[lookup], forest.n_children[lookup].astype(np.int64))] = False
    owner = np.repeat(np.arange(forest.n_nodes), np.diff(forest.lookup_ptr))
    known[forest.first_child[owner] + forest.lookup_branch] = True
    known[forest.first_child[np.flatnonzero(forest.low == np.inf)] + 1] = False
    return known


def against_rest(forest: Forest) -> NDArray[np.bool_]:
    """Tests of one category against all others, met or not, that spread missing values, bool (N,)."""
    alone: NDArray[np.bool_] = (forest.kind == Test.LOOKUP) & (forest.missing == SPREAD) & (forest.unseen == 1)
    return alone
