"""Minimal cost-complexity pruning: every tree of the sequence at once, from the leaves up. May import core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
    """Minimal cost-complexity path: step i collapses ``nodes[i]``; step 0 is the unpruned tree.

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
    """Weakest-link pruning (Breiman, Friedman, Olshen and Stone 1984, section 3.3) of trees, each as if it were alone.

    The next node to collapse has the least g(t) = (R(t) - R(T_t)) / (leaves(T_t) - 1), the first in node order among
    equals; R is the share of the weight (N,) times the impurity, or times the ``risk`` (N,). Stops at the first g above
    ``limit``. The ``penalty`` "nodes" counts all nodes in the place of leaves (Raschka, STAT 479, 6.11.1).
    """
    whole = np.repeat(weight[forest.roots], np.diff(forest.roots, append=forest.n_nodes))
    cost = weight / np.maximum(whole, 1) * (forest.impurity if risk is None else risk)
    found = weakest_links(forest, cost, PENALTIES[penalty](forest.kind == Test.LEAF) & (weight > 0))
    node = np.flatnonzero(found.steps)
    node = node[np.argsort(found.alpha[node], kind="stable")]
    node = node[: np.searchsorted(found.alpha[node], limit, side="right")]
    alphas = np.maximum.accumulate(np.append(0.0, found.alpha[node]))  # rounding makes some g less than nothing
    return Path(alphas, np.cumsum(np.append(found.unpruned, found.more[node])), node)


@dataclass(frozen=True, slots=True)
class Links:
    """When nodes collapse while alpha grows: ``alpha`` f8 (N,), and what the leaves then cost ``more``, f8 (N,).

    ``steps`` bool (N,): the tests that do so before a test above them does. ``unpruned`` is the cost of all leaves.
    """

    alpha: NDArray[np.float64]
    more: NDArray[np.float64]
    steps: NDArray[np.bool_]
    unpruned: float


def weakest_links(forest: Forest, cost: NDArray[np.float64], counted: NDArray[np.bool_]) -> Links:
    """The alpha of every test, from its cost as a leaf f8 (N,) and the nodes that are counted, bool (N,).

    A test collapses at the g of its branch as that is pruned by then. With all tests below it collapsed, g is as large
    as it can be; as long as the last of them would collapse no earlier than the test itself, it never does, and is
    taken back. What is left below a test is a heap, the last to collapse on top, and the test comes on top of that: so
    each enters a heap once and leaves it at most once, whatever the depth.
    """
    n, inner, child = forest.n_nodes, forest.kind != Test.LEAF, np.flatnonzero(forest.parent >= 0)
    above = forest.parent[child]
    flat = np.bincount(above, cost[child], n).tolist()  # the branch with all tests below it collapsed
    size = (counted + np.bincount(above, (inner | counted)[child], n)).astype(int).tolist()
    own, below, parent = cost.tolist(), np.where(inner, 0.0, cost).tolist(), forest.parent.tolist()
    test, steps, heap = inner.tolist(), inner.tolist(), Heap(n)
    alpha, more, fewer, tops = heap.key, [0.0] * n, [0] * n, [-1] * n
    for node in range(n - 1, -1, -1):  # children follow their parents
        if test[node]:
            top, branch, leaves = tops[node], flat[node], size[node]
            strength = (own[node] - branch) / (leaves - 1) if leaves > 1 else 0.0  # nothing: all rows are in one leaf
            while top >= 0 and alpha[top] >= strength:
                steps[top] = False
                branch, leaves = branch - more[top], leaves + fewer[top]
                top = heap.without(top)
                branch = branch if top >= 0 else below[node]  # nothing is collapsed: without rounding
                strength = (own[node] - branch) / (leaves - 1) if leaves > 1 else 0.0
            alpha[node], more[node], fewer[node] = strength, own[node] - branch, leaves - 1
            heap.put(node, top)
        if parent[node] >= 0:
            below[parent[node]] += below[node]
            if test[node]:
                tops[parent[node]] = heap.joined(tops[parent[node]], node)
    return Links(np.array(alpha), np.array(more), np.array(steps), sum(below[root] for root in forest.roots.tolist()))


class Heap:
    """Heaps of numbers 0 to n - 1 by their keys, the largest on top; -1 is an empty one.

    Fredman, Sedgewick, Sleator and Tarjan (1986), "The pairing heap: a new form of self-adjusting heap", Algorithmica
    1:111-129. ``part`` is the first of the heaps below a number, ``other`` the next one beside it.

    Examples
    --------
    >>> heap = Heap(3)
    >>> heap.key[:] = [2.0, 5.0, 3.0]
    >>> top = heap.joined(heap.joined(0, 1), 2)
    >>> top, heap.without(top), heap.without(heap.without(top))
    (1, 2, 0)
    """

    def __init__(self, n: int) -> None:
        self.key, self.part, self.other = [0.0] * n, [-1] * n, [-1] * n

    def put(self, one: int, top: int) -> None:
        """Make a number, of a key larger than all, the top of a heap."""
        self.part[one] = top
        if top >= 0:
            self.other[top] = -1

    def joined(self, one: int, two: int) -> int:
        """The top of both; the second is not empty."""
        if one < 0:
            return two
        if self.key[one] < self.key[two]:
            one, two = two, one
        self.other[two], self.part[one] = self.part[one], two
        return one

    def without(self, top: int) -> int:
        """The new top when the old one is taken off: what was below it is joined in pairs, and these from the last."""
        pairs, one = [], self.part[top]
        while one >= 0:
            two = self.other[one]
            if two < 0:
                pairs.append(one)
                break
            following = self.other[two]
            pairs.append(self.joined(one, two))
            one = following
        rest = -1
        for pair in reversed(pairs):
            rest = self.joined(rest, pair)
        return rest


def prune(
    forest: Forest,
    weight: NDArray[np.int64],
    alpha: float,
    penalty: str = "leaves",
    risk: NDArray[np.float64] | None = None,
) -> Forest:
    """The smallest subtree that minimises impurity (or risk) + alpha * leaves (or nodes)."""
    return next(nested(forest, weight, [alpha], penalty, risk))


def nested(
    forest: Forest,
    weight: NDArray[np.int64],
    alphas: Sequence[float],
    penalty: str = "leaves",
    risk: NDArray[np.float64] | None = None,
) -> Iterator[Forest]:
    """What `prune` leaves for each of some alphas, by one path; an alpha of 0 leaves the forest as it is."""
    most = max(alphas)
    path = cost_complexity_path(forest, weight, most, penalty, risk) if most > 0.0 else None
    for alpha in alphas:
        if path is None or alpha <= 0.0:
            yield forest
            continue
        marks = np.zeros(forest.n_nodes, bool)
        marks[path.nodes[: np.searchsorted(path.alphas[1:], alpha, side="right")]] = True
        yield forest.collapse(marks)
