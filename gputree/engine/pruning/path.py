"""Pruning of grown forests on host arrays. May import core."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import Forest, Test


@dataclass(frozen=True, slots=True)
class Path:
    """Minimal cost-complexity path of one tree: step i collapses ``nodes[i]``; step 0 is the unpruned tree.

    ``alphas`` f8 (s,) are the effective alphas and ``impurities`` f8 (s,) the total leaf impurity after each step;
    ``nodes`` (s - 1,).
    """

    alphas: NDArray[np.float64]
    impurities: NDArray[np.float64]
    nodes: NDArray[np.intp]


def cost_complexity_path(forest: Forest, weight: NDArray[np.int64], limit: float = np.inf) -> Path:
    """Weakest-link pruning (Breiman, Friedman, Olshen and Stone 1984, section 3.3) of a forest of one tree.

    The next node to collapse has the least g(t) = (R(t) - R(T_t)) / (leaves(T_t) - 1), the first in node order among
    equals; R is the share of the weight (N,) times the impurity. Stops at the first g above ``limit``.

    Collapsing the weakest link never lowers the g of a node above it (a fraction grows when a part of smaller ratio
    leaves it), so an old entry of the heap is a lower bound and is put back when its node has risen meanwhile.
    """
    tree = Branches(forest, weight / max(int(weight[0]), 1) * forest.impurity, weight == 0)
    heap = [(tree.strength(t), t) for t in np.flatnonzero(forest.kind != Test.LEAF).tolist()]
    heapq.heapify(heap)
    alphas, impurities, nodes = [0.0], [tree.below(0)[1]], []
    while heap:
        alpha, node = heapq.heappop(heap)
        if tree.gone[node]:
            continue
        now = tree.strength(node)
        if now > alpha:
            heapq.heappush(heap, (now, node))
            continue
        if alpha > limit:
            break
        tree.collapse(node)
        alphas.append(max(alpha, alphas[-1]))
        impurities.append(tree.below(0)[1])
        nodes.append(node)
    return Path(np.array(alphas), np.array(impurities), np.array(nodes, np.intp))


class Branches:
    """Leaves and cost below every node while branches are collapsed, in logarithmic time whatever the depth.

    Nodes stand in depth-first order, so that what is below a node is a range; a Fenwick tree adds up the changes.
    """

    def __init__(self, forest: Forest, cost: NDArray[np.float64], empty: NDArray[np.bool_]) -> None:
        self.forest, self.cost = forest, cost.tolist()
        inner = forest.kind != Test.LEAF
        leaves = np.where(inner | empty, 0, 1)  # the branch of a declared category that no row has costs nothing
        below, size = np.where(inner, 0.0, cost), np.ones(forest.n_nodes, np.int64)
        parent = forest.parent.tolist()
        for node in range(forest.n_nodes - 1, -1, -1):
            above = parent[node]
            if above < 0:
                continue
            leaves[above] += leaves[node]
            below[above] += below[node]
            size[above] += size[node]
        self.at_first, self.size = (leaves.tolist(), below.tolist()), size.tolist()
        self.place = depth_first(forest, size)
        self.fewer, self.more = [0] * (forest.n_nodes + 1), [0.0] * (forest.n_nodes + 1)
        self.gone = np.zeros(forest.n_nodes, bool)

    def below(self, node: int) -> tuple[int, float]:
        """Leaves of the branch and their cost R(T_t)."""
        first, stop = self.place[node], self.place[node] + self.size[node]
        fewer, more = self.changes(stop), self.changes(first)
        return self.at_first[0][node] - (fewer[0] - more[0]), self.at_first[1][node] + (fewer[1] - more[1])

    def changes(self, stop: int) -> tuple[int, float]:
        """Leaves lost and cost gained in the places before ``stop``."""
        fewer, more = 0, 0.0
        while stop > 0:
            fewer += self.fewer[stop]
            more += self.more[stop]
            stop &= stop - 1
        return fewer, more

    def strength(self, node: int) -> float:
        """How much cost every leaf of the branch saves: g(t)."""
        leaves, cost = self.below(node)
        return float((self.cost[node] - cost) / (leaves - 1))

    def collapse(self, node: int) -> None:
        """Make a node a leaf."""
        leaves, cost = self.below(node)
        place = self.place[node] + 1
        while place <= self.forest.n_nodes:
            self.fewer[place] += leaves - 1
            self.more[place] += self.cost[node] - cost
            place += place & -place
        stack = [node]
        while stack:
            t = stack.pop()
            self.gone[t] = True
            first = int(self.forest.first_child[t])
            stack.extend(c for c in range(first, first + int(self.forest.n_children[t])) if not self.gone[c])


def depth_first(forest: Forest, size: NDArray[np.int64]) -> list[int]:
    """Place of every node in depth-first order, from the sizes of the branches; parents come before their children."""
    place, following = list(range(forest.n_nodes)), [0] * forest.n_nodes
    for node, above in enumerate(forest.parent.tolist()):
        if above >= 0:
            place[node] = following[above]
            following[above] += int(size[node])
        following[node] = place[node] + 1
    return place


def prune(forest: Forest, weight: NDArray[np.int64], alpha: float) -> Forest:
    """The smallest subtree that minimises impurity + alpha * leaves."""
    if alpha <= 0.0:
        return forest
    marks = np.zeros(forest.n_nodes, bool)
    marks[cost_complexity_path(forest, weight, alpha).nodes] = True
    return forest.collapse(marks)
