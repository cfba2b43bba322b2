"""Which open nodes are split next: all of them, or the best of each tree. May import core."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import ForestBuilder
from gputree.core.scores import grid
from gputree.core.splits import Splits, concatenate
from gputree.core.target import Target
from gputree.engine.recipe import Recipe

AHEAD = 1024  # best first carries out so many tests at once; what turns out not to be needed is dropped at the end
AHEAD_ROWS = 1 << 15  # ... as long as the others hold no more rows together than the first, or than this


class Frontier(Protocol):
    """Open nodes with their best tests."""

    def push(self, splits: Splits) -> None:
        """Add open nodes, in order of birth."""

    def pop(self) -> Splits | None:
        """The tests to carry out next, None when growth is over."""

    def committed(self) -> NDArray[np.bool_] | None:
        """Which nodes' tests count, bool (n_nodes,); None for all."""


class LevelByLevel:
    """Every open node is split at once."""

    def __init__(self) -> None:
        self.level: Splits | None = None

    def push(self, splits: Splits) -> None:
        """Replace the level."""
        self.level = splits

    def pop(self) -> Splits | None:
        """The whole level."""
        level, self.level = self.level, None
        return level if level is not None and len(level) else None

    def committed(self) -> None:
        """All tests count."""
        return None


@dataclass(slots=True)
class Queue:
    """Open nodes of one tree by (-score, age), what may still be added, and the scale of its scores.

    ``room`` counts leaves, nodes and tests. ``waiting`` holds the nodes whose tests were not carried out yet, those
    included that may never enter the queue.
    """

    room: tuple[int, int, int]
    scale: float
    heap: list[tuple[float, int, int]] = field(default_factory=list)
    waiting: list[tuple[float, int]] = field(default_factory=list)
    births: int = 0

    @property
    def budget(self) -> int:
        """An upper bound of the tests that may still take effect."""
        return min(self.room)

    def after(self, branches: int) -> tuple[int, int, int]:
        """What would be left after a test of so many branches; negative where it does not fit."""
        leaves, nodes, splits = self.room
        return leaves - (branches - 1), nodes - branches, splits - 1

    def fits(self, branches: int) -> bool:
        """Whether there is room for a test."""
        return min(self.after(branches)) >= 0


class BestFirst:
    """The open node of highest score is split next, as long as `Stop` leaves room for its test.

    Tests are carried out a few at a time ahead of their turn, but take effect in order: a node enters the queue when
    its parent's test takes effect, so the outcome does not depend on how far ahead the search runs. Scores are put on
    the root's grid; ties go to the older node.
    """

    def __init__(self, forest: ForestBuilder, recipe: Recipe, target: Target) -> None:
        self.forest, self.recipe, self.target = forest, recipe, target
        self.tree: dict[int, int] = {}  # root of a node
        self.queues: dict[int, Queue] = {}
        self.offers: dict[int, tuple[Splits, int]] = {}  # the test of an open node that was not carried out yet
        self.children: dict[int, list[tuple[int, float]]] = {}  # scored children of a node whose test was carried out
        self.branches: dict[int, int] = {}
        self.done: list[int] = []

    def push(self, splits: Splits) -> None:
        """Add open nodes; those whose parent has had its turn enter the queue."""
        parents = self.forest.of("parent", splits.node)
        for i in np.argsort(splits.node, kind="stable"):
            node, parent, score = int(splits.node[i]), int(parents[i]), float(splits.score[i])
            self.offers[node], self.branches[node] = (splits, int(i)), int(splits.n_branches[i])
            if parent >= 0:
                self.tree[node] = self.tree[parent]
                self.children[parent].append((node, score))
            else:
                self.plant(node, score)
            heapq.heappush(self.queues[self.tree[node]].waiting, (-score, node))

    def plant(self, root: int, score: float) -> None:
        """Open the queue of a tree."""
        own = self.target.layout.cancelling(
            self.recipe.search.criterion, self.forest.of("stats", slice(root, root + 1))
        )
        self.tree[root] = root
        self.queues[root] = Queue(self.recipe.stop.room, max(abs(score), float(own[0])))
        self.enter(self.queues[root], root, score)

    def enter(self, queue: Queue, node: int, score: float) -> None:
        """Put a node into its tree's queue."""
        rounded = float(grid(np.array([score]), np.array([queue.scale]))[0])
        heapq.heappush(queue.heap, (-rounded, queue.births, node))
        queue.births += 1

    def pop(self) -> Splits | None:
        """Let tests take effect as far as they were carried out; give the next ones."""
        wanted = [node for queue in self.queues.values() for node in self.advance(queue)]
        if not wanted:
            return None
        groups: dict[int, tuple[Splits, list[int]]] = {}
        for node in wanted:
            splits, i = self.offers.pop(node)
            self.children[node] = []
            groups.setdefault(id(splits), (splits, []))[1].append(i)
        return concatenate([splits.take(np.array(places)) for splits, places in groups.values()])

    def advance(self, queue: Queue) -> list[int]:
        """Nodes of one tree whose tests are to be carried out before its queue can move on."""
        while queue.heap and queue.budget > 0:
            node = queue.heap[0][2]
            fits = queue.fits(self.branches[node])
            if fits and node not in self.children:
                break
            heapq.heappop(queue.heap)
            if not fits:  # too many branches for what is left: it stays a leaf
                continue
            self.done.append(node)
            queue.room = queue.after(self.branches[node])
            for child, score in self.children.pop(node):
                self.enter(queue, child, score)
        if not queue.heap or queue.budget <= 0:
            queue.heap.clear()
            return []
        return self.ahead(queue, queue.heap[0][2])

    def ahead(self, queue: Queue, first: int) -> list[int]:
        """The node whose turn it is, and others whose tests were not carried out while they are few or small."""
        nodes, rows = [first], 0
        while queue.waiting and len(nodes) < min(AHEAD, queue.budget) and rows <= max(self.rows(first), AHEAD_ROWS):
            node = heapq.heappop(queue.waiting)[1]
            if node != first and node in self.offers and queue.fits(self.branches[node]):
                nodes.append(node)
                rows += self.rows(node)
        return nodes

    def rows(self, node: int) -> int:
        """Rows of a node."""
        return int(self.target.layout.count(self.forest.of("stats", slice(node, node + 1)))[0])

    def committed(self) -> NDArray[np.bool_]:
        """The nodes whose tests took effect."""
        marks = np.zeros(self.forest.n_nodes, bool)
        marks[self.done] = True
        return marks
