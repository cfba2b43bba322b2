"""What is below every node while branches are collapsed, in whatever order. May import core."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import Forest, Test


class Branches:
    """Leaves and cost below every node while branches are collapsed, in logarithmic time whatever the depth.

    A branch has its ``kept`` cost (N,) besides that of its leaves.
    Nodes stand in depth-first order, so that what is below a node is a range; a Fenwick tree adds up the changes.
    """

    def __init__(self, forest: Forest, cost: NDArray[np.float64], kept: NDArray[np.float64] | float) -> None:
        inner, n = forest.kind != Test.LEAF, forest.n_nodes
        self.n_nodes, self.cost, parent = n, cost.tolist(), forest.parent.tolist()
        leaves, size = (~inner).astype(int).tolist(), [1] * n
        below = np.where(inner, kept, cost).tolist()
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
        """Leaves of the branch and their cost."""
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
