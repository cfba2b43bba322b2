"""Pruning of grown forests on host arrays. May import core."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import Forest, Test

PENALTIES: dict[str, Callable[[NDArray[np.bool_]], NDArray[np.bool_]]] = {
    "leaves": lambda leaf: leaf,
    "nodes": np.ones_like,
}  # which nodes count, bool (N,), from which are leaves


@dataclass(frozen=True, slots=True)
class Path:
    """Minimal cost-complexity path of one tree: step i collapses ``nodes[i]``; step 0 is the unpruned tree.

    ``alphas`` f8 (s,) are the effective alphas and ``impurities`` f8 (s,) the total leaf impurity after each step;
    ``nodes`` (s - 1,).
    """

    alphas: NDArray[np.float64]
    impurities: NDArray[np.float64]
    nodes: NDArray[np.intp]


def cost_complexity_path(
    forest: Forest,
    weight: NDArray[np.int64],
    limit: float = np.inf,
    penalty: str = "leaves",
    risk: NDArray[np.float64] | None = None,
) -> Path:
    """Weakest-link pruning (Breiman, Friedman, Olshen and Stone 1984, section 3.3) of a forest of one tree.

    The next node to collapse has the least g(t) = (R(t) - R(T_t)) / (leaves(T_t) - 1), the first in node order among
    equals; R is the share of the weight (N,) times the impurity, or times the ``risk`` (N,). Stops at the first g above
    ``limit``. The ``penalty`` "nodes" counts all nodes in the place of leaves (Raschka, STAT 479, 6.11.1).

    Collapsing the weakest link never lowers the g of a node above it (a fraction grows when a part of smaller ratio
    leaves it), so an old entry of the heap is a lower bound and is put back when its node has risen meanwhile.
    """
    cost = weight / max(int(weight[0]), 1) * (forest.impurity if risk is None else risk)
    tree = Branches(forest, cost, PENALTIES[penalty](forest.kind == Test.LEAF) & (weight > 0))
    heap = [(tree.strength(t, *tree.at_first(t)), t) for t in np.flatnonzero(forest.kind != Test.LEAF).tolist()]
    heapq.heapify(heap)
    alphas, impurities, nodes = [0.0], [tree.at_first(0)[1]], []
    while heap:
        alpha, node = heapq.heappop(heap)
        if tree.gone[node]:
            continue
        leaves, below = tree.below(node)
        now = tree.strength(node, leaves, below)
        if now > alpha:
            heapq.heappush(heap, (now, node))
            continue
        if alpha > limit:
            break
        tree.collapse(node, leaves, below)
        alphas.append(max(alpha, alphas[-1]))
        impurities.append(tree.below(0)[1])
        nodes.append(node)
    return Path(np.array(alphas), np.array(impurities), np.array(nodes, np.intp))


class Branches:
    """Leaves and cost below every node while branches are collapsed, in logarithmic time whatever the depth.

    What counts as a leaf, bool (N,), may be every node. A branch has its ``kept`` cost (N,) besides that of its leaves.
    Nodes stand in depth-first order, so that what is below a node is a range; a Fenwick tree adds up the changes.
    """

    def __init__(
        self,
        forest: Forest,
        cost: NDArray[np.float64],
        counted: NDArray[np.bool_],
        kept: NDArray[np.float64] | float = 0.0,
    ) -> None:
        inner, n = forest.kind != Test.LEAF, forest.n_nodes
        self.n_nodes, self.cost, parent = n, cost.tolist(), forest.parent.tolist()
        leaves = counted.astype(int).tolist()  # not the branch of a declared category that no row has: it costs nothing
        below = np.where(inner, kept, cost).tolist()
        size = (inner | counted).astype(int).tolist()  # what is added up in which order must not depend on the others
        for node in range(n - 1, -1, -1):
            above = parent[node]
            if above >= 0:
                leaves[above] += leaves[node]
                below[above] += below[node]
                size[above] += size[node]
        self.leaves, self.cost_below, self.size = leaves, below, size
        self.place = depth_first(parent, size)
        self.fewer, self.more = [0] * (n + 1), [0.0] * (n + 1)
        self.gone = [False] * n
        self.child, self.n_children = forest.first_child.tolist(), forest.n_children.tolist()

    def at_first(self, node: int) -> tuple[int, float]:
        """Leaves of the branch and their cost, before anything is collapsed."""
        return self.leaves[node], self.cost_below[node]

    def below(self, node: int) -> tuple[int, float]:
        """Leaves of the branch and their cost R(T_t)."""
        first = self.place[node]
        fewer, more = self.changes(first, first + self.size[node])
        return self.leaves[node] - fewer, self.cost_below[node] + more

    def changes(self, first: int, stop: int) -> tuple[int, float]:
        """Leaves lost and cost gained in the places from ``first`` on, before ``stop``."""
        fewer, more, lost, gained = 0, 0.0, self.fewer, self.more
        while stop > first:
            fewer += lost[stop]
            more += gained[stop]
            stop &= stop - 1
        while first > stop:
            fewer -= lost[first]
            more -= gained[first]
            first &= first - 1
        return fewer, more

    def strength(self, node: int, leaves: int, below: float) -> float:
        """How much cost every leaf of the branch saves: g(t); nothing, if all rows are in one leaf."""
        return (self.cost[node] - below) / (leaves - 1) if leaves > 1 else 0.0

    def savings(self, node: int, leaves: int, below: float) -> tuple[float, int]:
        """What a leaf would cost more than the branch, and its leaves, both to be as small as can be."""
        return self.cost[node] - below, -leaves

    def collapse(self, node: int, leaves: int, below: float) -> None:
        """Make a node a leaf that has so many leaves of such a cost."""
        place, lost, gained = self.place[node] + 1, self.fewer, self.more
        while place <= self.n_nodes:
            lost[place] += leaves - 1
            gained[place] += self.cost[node] - below
            place += place & -place
        stack = [node]
        while stack:
            t = stack.pop()
            self.gone[t] = True
            first = self.child[t]
            stack.extend(c for c in range(first, first + self.n_children[t]) if not self.gone[c])


def depth_first(parent: list[int], size: list[int]) -> list[int]:
    """Place of every node in depth-first order, from the sizes of the branches; parents come before their children.

    Trees stand one after another.

    Examples
    --------
    >>> depth_first([-1, 0, 0, 1, 1], [5, 3, 1, 1, 1])
    [0, 1, 4, 2, 3]
    """
    place, following, end = [0] * len(parent), [0] * len(parent), 0
    for node, above in enumerate(parent):
        if above < 0:
            place[node] = end
            end += size[node]
        else:
            place[node] = following[above]
            following[above] += size[node]
        following[node] = place[node] + 1
    return place


def prune(
    forest: Forest,
    weight: NDArray[np.int64],
    alpha: float,
    penalty: str = "leaves",
    risk: NDArray[np.float64] | None = None,
) -> Forest:
    """The smallest subtree that minimises impurity (or risk) + alpha * leaves (or nodes)."""
    if alpha <= 0.0:
        return forest
    marks = np.zeros(forest.n_nodes, bool)
    marks[cost_complexity_path(forest, weight, alpha, penalty, risk).nodes] = True
    return forest.collapse(marks)
