"""Which nodes of a tree a picture of it shows, and how many it leaves out. May import everything below."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import Forest, Test
from gputree.inspect.words import Branch, Words


@dataclass(frozen=True, slots=True)
class Limits:
    """What a picture has room for; None: everything."""

    max_depth: int | None = None  # tests below this depth are left out
    most: int | None = None  # boxes
    widest: int | None = None  # branches of a test


@dataclass(frozen=True, slots=True)
class Item:
    """One box of a picture.

    ``parent`` is the place of the parent's box, -1 for the root; ``branch`` the way here, None for the root and for
    the box that stands for so many hidden ``branches`` of its parent. ``nodes`` counts the nodes that a box shows: one,
    several leaves without rows, or none; ``hidden`` those that are left out there, so that all add up to the tree.
    """

    node: int
    parent: int
    branch: Branch | None
    nodes: int = 1
    hidden: int = 0
    branches: int = 0

    @property
    def empty(self) -> bool:
        """Whether no training row came here."""
        return self.branch is not None and self.branch.empty


Way = tuple[Branch | None, int, int]  # a branch, or None and the nodes and branches that are hidden


class Outline:
    """The boxes of a tree within limits: the nodes of largest weight first, each with all of its branches."""

    def __init__(self, words: Words, weight: NDArray[np.int64], limits: Limits) -> None:
        self.words, self.weight, self.limits = words, weight, limits
        self.size = subtree_sizes(words.forest)
        self.open: dict[int, list[Way]] = {}
        self.fill()

    def fill(self) -> None:
        """Open nodes while there is room; one that has no room does not keep smaller ones out."""
        forest, limits = self.words.forest, self.limits
        deepest = forest.max_depth if limits.max_depth is None else limits.max_depth
        root = int(forest.roots[0])
        boxes, heap = 1, [(0, root)]
        while heap:
            _, node = heappop(heap)
            if not self.is_inner(node) or forest.depth[node] >= deepest:
                continue
            ways = self.ways(node)
            if limits.most is None or boxes + len(ways) <= limits.most or node == root:
                self.open[node] = ways
                boxes += len(ways)
                for child in (branch.child for branch, _, _ in ways if branch is not None):
                    heappush(heap, (-int(self.weight[child]), child))

    def is_inner(self, node: int) -> bool:
        """Whether a node has a test."""
        return bool(self.words.forest.kind[node] != Test.LEAF)

    def ways(self, node: int) -> list[Way]:
        """The branches of a node, in order; of too many the lightest are hidden, but none that other values take."""
        branches = self.words.branches(node)
        widest = self.limits.widest
        if widest is None or len(branches) <= widest:
            return [(branch, 0, 0) for branch in branches]
        rank = [(not b.marks, -int(self.weight[b.child]), i) for i, b in enumerate(branches)]
        kept = sorted(i for _, _, i in sorted(rank)[: widest - 1])
        gone = [b for i, b in enumerate(branches) if i not in set(kept)]
        nodes = sum(int(self.size[child]) for b in gone for child in b.children)
        return [*((branches[i], 0, 0) for i in kept), (None, nodes, len(gone))]

    def items(self) -> list[Item]:
        """The boxes in preorder; the children of a box are in branch order."""
        found: list[Item] = []
        todo = [self.item(int(self.words.forest.roots[0]), -1, None)]
        while todo:
            item = todo.pop()
            found.append(item)
            ways = self.open.get(item.node, []) if item.nodes == 1 and not item.empty else []
            place = len(found) - 1
            for branch, nodes, branches in reversed(ways):
                if branch is None:
                    todo.append(Item(item.node, place, None, 0, nodes, branches))
                else:
                    todo.append(self.item(branch.child, place, branch))
        return found

    def item(self, node: int, parent: int, branch: Branch | None) -> Item:
        """The box of a node, or of several without rows."""
        hidden = 0 if node in self.open else int(self.size[node]) - 1
        return Item(node, parent, branch, 1 if branch is None else len(branch.children), hidden)


def subtree_sizes(forest: Forest) -> NDArray[np.int64]:
    """Nodes of the subtree of every node, itself included (N,); children follow their parents."""
    size = [1] * forest.n_nodes
    parent = forest.parent.tolist()
    for node in range(forest.n_nodes - 1, -1, -1):
        if parent[node] >= 0:
            size[parent[node]] += size[node]
    return np.array(size, np.int64)
