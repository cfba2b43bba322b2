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


def cost_complexity_path(forest: Forest, weight: NDArray[np.float64], limit: float = np.inf) -> Path:
    """Weakest-link pruning (Breiman, Friedman, Olshen and Stone 1984, section 3.3) of a forest of one tree.

    The next node to collapse has the least g(t) = (R(t) - R(T_t)) / (leaves(T_t) - 1), the first in node order among
    equals; R is the share of the weight (N,) times the impurity. Stops at the first g above ``limit``.
    """
    cost = weight / weight[0] * forest.impurity
    inner = forest.kind != Test.LEAF
    leaves = np.where(inner, 0, 1)
    below = np.where(inner, 0.0, cost)  # R(T_t)
    for node in range(forest.n_nodes - 1, 0, -1):
        leaves[forest.parent[node]] += leaves[node]
        below[forest.parent[node]] += below[node]

    def strength(t: int) -> float:
        return float((cost[t] - below[t]) / (leaves[t] - 1))

    heap = [(strength(int(t)), int(t)) for t in np.flatnonzero(inner)]
    heapq.heapify(heap)
    alphas, impurities, nodes = [0.0], [float(below[0])], []
    gone = np.zeros(forest.n_nodes, bool)
    while heap:
        alpha, node = heapq.heappop(heap)
        if gone[node] or alpha != strength(node):
            continue  # an entry from before something below was collapsed
        if alpha > limit:
            break
        mark_below(forest, node, gone)
        fewer, more = leaves[node] - 1, cost[node] - below[node]
        above = node
        while above >= 0:
            leaves[above] -= fewer
            below[above] += more
            if above != node:
                heapq.heappush(heap, (strength(above), above))
            above = int(forest.parent[above])
        alphas.append(float(max(alpha, alphas[-1])))
        impurities.append(float(below[0]))
        nodes.append(node)
    return Path(np.array(alphas), np.array(impurities), np.array(nodes, np.intp))


def mark_below(forest: Forest, node: int, gone: NDArray[np.bool_]) -> None:
    """Mark a node and everything below it that is not marked yet."""
    stack = [node]
    while stack:
        t = stack.pop()
        gone[t] = True
        first = forest.first_child[t]
        stack.extend(c for c in range(first, first + forest.n_children[t]) if not gone[c])


def prune(forest: Forest, weight: NDArray[np.float64], alpha: float) -> Forest:
    """The smallest subtree that minimises impurity + alpha * leaves."""
    if alpha <= 0.0:
        return forest
    marks = np.zeros(forest.n_nodes, bool)
    marks[cost_complexity_path(forest, weight, alpha).nodes] = True
    return forest.collapse(marks)
