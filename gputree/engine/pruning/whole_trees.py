"""The generic bottom-up procedure: at every node, what makes the best of some whole trees. May import core.

Nodes are visited from the leaves up, in depth-first order, and what a node can become is compared as whole trees: a
leaf of any class, one of its branches with all of its cases, or what it is. Which is best depends on the whole tree as
it stands then, so no node can be decided before the last; but what its options are depends on what stands below it
only. So many nodes are decided at once as if the tree went on to shrink as it did, then compared again with the whole
trees as they were, and from the first that is decided otherwise on the work is done anew.

References
----------
Shalev-Shwartz and Ben-David (2014), "Understanding Machine Learning", 18.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gputree.core.families import depths
from gputree.core.forest import Forest, Test, canonical_order, ranges
from gputree.core.routes import Parts, branch_shares, by_shares, levels, step
from gputree.engine.pruning.branches import depth_first
from gputree.engine.pruning.raising import moved
from gputree.engine.pruning.records import Cases, Fitted, settled

MOST_PARTS = 1 << 20  # parts of cases that walk down together
BLOCK, LEAST = 1 << 13, 1 << 8  # nodes that are decided together: at first, and at least
MOST_OPTIONS = 1 << 22  # of nodes that are decided together
SAME = 1e-12  # bounds that differ by less are equal

Floats: TypeAlias = NDArray[np.float64]
Ids: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Trees:
    """Whole trees, one a place: share of the cases that they get wrong, nodes and leaves, f8 (k,) each.

    ``forest`` makes one of them.
    """

    error: Floats
    n_nodes: Floats
    n_leaves: Floats
    forest: Callable[[int], Forest]


Score: TypeAlias = Callable[[Trees], Floats]
"""The bounds (k,) of whole trees, the smaller the better."""


@dataclass(frozen=True, slots=True)
class Options:
    """What nodes can become, arrays (m,), node after node, in the order in which the first of equals is taken.

    ``owner`` is the place of the node in its list. ``label`` is the class of a leaf, ``branch`` that which takes the
    place of the node; both -1: it stays as it is, the last option of every node. ``size`` f8 (3, m) is what stands
    there then: the weight of the cases that it gets wrong, nodes, leaves.
    """

    owner: Ids
    label: Ids
    branch: Ids
    size: Floats

    @property
    def start(self) -> Ids:
        """Where the options of every node begin."""
        return np.flatnonzero(np.diff(self.owner, prepend=-1))

    @property
    def unchanged(self) -> Ids:
        """The last option of every node."""
        return np.append(self.start[1:], self.owner.size) - 1

    def take(self, which: Ids) -> Options:
        """Some of them."""
        return Options(self.owner[which], self.label[which], self.branch[which], self.size[:, which])

    @classmethod
    def merged(cls, parts: list[Options]) -> Options:
        """Those of several lists of nodes, by their places in a common list."""
        names = ("owner", "label", "branch", "size")
        both = cls(*(np.concatenate([getattr(p, name) for p in parts], axis=-1) for name in names))
        return both.take(np.argsort(both.owner, kind="stable"))


@dataclass(frozen=True, slots=True)
class Places:
    """What stands in the places of a tree (N,): whose test, or a leaf; and the class of the cases that end there."""

    source: Ids
    leaf: NDArray[np.bool_]
    label: Ids

    @classmethod
    def of(cls, forest: Forest) -> Places:
        """The tree as it was."""
        return cls(np.arange(forest.n_nodes), forest.kind == Test.LEAF, forest.value.argmax(axis=1))

    def copy(self) -> Places:
        """The same, to be changed."""
        return Places(self.source.copy(), self.leaf.copy(), self.label.copy())

    def change(self, forest: Forest, node: Ids, chosen: Options) -> None:
        """Make of every node (k,) what its option says."""
        leaf, up = chosen.label >= 0, chosen.branch >= 0
        self.leaf[node[leaf]], self.label[node[leaf]] = True, chosen.label[leaf]
        child = forest.first_child[node[up]] + chosen.branch[up]
        for array in (self.source, self.leaf, self.label):
            array[node[up]] = array[child]

    def restore(self, node: Ids, before: Places) -> None:
        """Make nodes what they were."""
        for name in ("source", "leaf", "label"):
            getattr(self, name)[node] = getattr(before, name)[node]


class WholeTrees:
    """The state of one pruning of a forest of one tree.

    A place is a node of the tree as it was. ``size`` f8 (3, N) is what stands in a place: the weight of the cases that
    it gets wrong, nodes, leaves; ``total`` (3,) the whole tree.
    """

    def __init__(self, fitted: Fitted, cases: Cases, score: Score) -> None:
        assert cases.parts is not None
        forest = fitted.forest
        self.fitted, self.forest, self.cases, self.score = fitted, forest, cases, score
        self.before, self.now = Places.of(forest), Places.of(forest)
        self.divide = by_shares(branch_shares(forest, np.maximum(fitted.weight, 1)))
        below = branch_sizes(forest.parent.tolist())
        self.place = np.array(depth_first(forest.parent.tolist(), below))
        inner = np.flatnonzero(~self.before.leaf)
        self.order = inner[np.argsort(-self.place[inner])]  # depth first backwards: the last branch before the others
        self.at = self.ended(cases.parts)
        self.X, self.y = cases.X[self.at.row], cases.y[0][self.at.row]  # neighbours go down together
        self.at = replace(self.at, row=np.arange(len(self.at)))
        ends = self.place[self.at.node]
        self.first, self.stop = np.searchsorted(ends, self.place), np.searchsorted(ends, self.place + below)
        self.own = np.bincount(self.at.node, self.wrong(self.at), forest.n_nodes)
        leaf = self.before.leaf.astype(np.float64)
        self.size = np.array([self.own, leaf, leaf])
        self.total = np.array([self.own.sum(), float(forest.n_nodes), leaf.sum()])
        self.slope = np.zeros(3)  # what a decision changed of the whole tree, on average of late

    def ended(self, start: Parts) -> Parts:
        """Parts of the cases where they end, in depth-first order."""
        found = [at.take(ends) for at, ends in levels(self.forest, start, self.cases.X, self.divide)]
        at = Parts.joined(found)
        return at.take(np.argsort(self.place[at.node], kind="stable"))

    def wrong(self, at: Parts) -> Floats:
        """Weights (P,) of parts that end in nodes of another class, 0 of the others."""
        wrong: Floats = at.weight * (self.y[at.row] != self.now.label[at.node])
        return wrong

    def run(self, block: int = BLOCK) -> Forest:
        """Decide every node; the forest that is left. ``block``: how many nodes at once, at first."""
        first, most = 0, MOST_OPTIONS // self.fitted.layout.sizes[0] + LEAST
        while first < self.order.size:
            nodes = self.order[first : first + block]
            settled = self.decide(nodes)
            first += settled
            if block > 1:
                block = min(2 * block, most) if settled == nodes.size else max(block // 2, LEAST)
        return left(self.fitted, self.cases, self.now)

    def decide(self, nodes: Ids) -> int:
        """Decide nodes that follow one another; how many of them, from the first on, are decided for good."""
        expected = self.total[:, None] + self.slope[:, None] * np.arange(nodes.size)
        found: list[Options] = []
        taken: list[Options] = []
        depth = self.forest.depth[nodes]
        for level in np.unique(depth)[::-1].tolist():
            which = np.flatnonzero(depth == level)
            options = self.options(nodes[which])
            chosen = options.take(self.best(nodes[which], options, expected[:, which]))
            self.become(nodes[which], chosen)
            for own, all_ in ((options, found), (chosen, taken)):
                all_.append(replace(own, owner=which[own.owner]))
        return self.confirm(nodes, Options.merged(found), Options.merged(taken))

    def confirm(self, nodes: Ids, options: Options, taken: Options) -> int:
        """Decide again, with the whole trees as they were; undo what follows the first that was decided otherwise."""
        change = taken.size - options.size[:, options.unchanged]
        before = self.total[:, None] + np.cumsum(change, axis=1) - change
        chosen = taken if nodes.size == 1 else options.take(self.best(nodes, options, before))
        same = (chosen.label == taken.label) & (chosen.branch == taken.branch)
        last = nodes.size - 1 if same.all() else int(np.argmin(same))
        self.now.restore(nodes[last:], self.before)
        self.become(nodes[last : last + 1], chosen.take(np.array([last])))
        after = before[:, last] + chosen.size[:, last] - options.size[:, options.unchanged[last]]
        self.slope, self.total = (after - self.total) / (last + 1), after
        return last + 1

    def become(self, nodes: Ids, chosen: Options) -> None:
        """Make of every node what its option says."""
        self.now.change(self.forest, nodes, chosen)
        self.size[:, nodes] = chosen.size

    def best(self, nodes: Ids, options: Options, whole: Floats) -> Ids:
        """The best option of every node, for whole trees (3, k) that it is part of as it is.

        Of equals that with the fewest nodes, then the first. A whole tree that was guessed is no less than its part.
        """
        start, owner = options.start, options.owner
        sizes = np.maximum(whole - options.size[:, options.unchanged], 0.0)[:, owner] + options.size

        def forest(i: int) -> Forest:
            places = self.now.copy()
            places.change(self.forest, nodes[owner[[i]]], options.take(np.array([i])))
            return left(self.fitted, self.cases, places)

        bounds = self.score(Trees(sizes[0] / float(self.fitted.weight[0]), sizes[1], sizes[2], forest))
        least = np.minimum.reduceat(bounds, start)
        near = bounds <= (least + SAME * np.maximum(1.0, np.abs(least)))[owner]
        nodes_left = np.where(near, options.size[1], np.inf)
        place = np.flatnonzero(nodes_left == np.minimum.reduceat(nodes_left, start)[owner])
        best: Ids = place[np.searchsorted(place, start)]
        return best

    def options(self, nodes: Ids) -> Options:
        """What nodes of one depth (k,) can become: a leaf of any class, the last first; a branch, the last first."""
        counts = self.forest.stats[nodes, self.fitted.layout.output(0)].astype(np.float64)
        k, n_classes = counts.shape
        n_branches = self.forest.n_children[nodes].astype(np.intp)
        child, of = ranges(self.forest.first_child[nodes], n_branches), np.repeat(np.arange(k), n_branches)
        first = np.cumsum(n_branches) - n_branches
        whole = np.add.reduceat(self.size[:, child], first, axis=1)
        whole += [self.own[nodes], np.ones(k), np.zeros(k)]
        missed = counts.sum(axis=1, keepdims=True) - counts
        up = self.size[:, child]
        leaf = self.now.leaf[child]
        up[0] = np.where(leaf, missed[of, self.now.label[child]], up[0])
        up[0, ~leaf] += self.sent(nodes[of[~leaf]], child[~leaf])
        descending = np.arange(n_classes)[::-1]
        as_leaf = np.ones((3, k * n_classes))
        as_leaf[0] = missed[:, ::-1].ravel()
        none = np.full(max(child.size, k * n_classes), -1)
        back = np.lexsort((-child, of))
        return Options.merged(
            [
                Options(np.repeat(np.arange(k), n_classes), np.tile(descending, k), none[: k * n_classes], as_leaf),
                Options(of, none[: child.size], (child - self.forest.first_child[nodes][of])[back], up[:, back]),
                Options(np.arange(k), none[:k], none[:k], whole),
            ]
        )

    def sent(self, node: Ids, child: Ids) -> Floats:
        """Weight (p,) of the cases of nodes (p,) outside a branch of theirs (p,) that this would get wrong."""
        count = np.stack([self.first[child] - self.first[node], self.stop[node] - self.stop[child]], axis=1)
        start = np.stack([self.first[node], self.stop[child]], axis=1)
        batch = np.cumsum(count.sum(axis=1)) // MOST_PARTS
        wrong = np.zeros(node.size)
        for some in np.split(np.arange(node.size), np.flatnonzero(np.diff(batch)) + 1):
            at = self.at.take(ranges(start[some].ravel(), count[some].ravel()))
            at = replace(at, node=np.repeat(child[some], count[some].sum(axis=1)))
            order = some[np.argsort(self.place[child[some]])]
            begin = self.place[child[order]]
            for end in self.down(at):
                pair = order[np.searchsorted(begin, self.place[end.node], "right") - 1]
                wrong += np.bincount(pair, self.wrong(end), node.size)
        return wrong

    def down(self, at: Parts) -> Iterator[Parts]:
        """Parts where they end, below places in which they are."""
        while len(at):
            ends = self.now.leaf[at.node]
            yield at.take(ends)
            at = at.take(~ends)
            below, stays = step(self.forest, replace(at, node=self.now.source[at.node]), self.X, self.divide)
            if stays.any():
                yield at.take(stays)
            at = below


def branch_sizes(parent: list[int]) -> list[int]:
    """Nodes of every branch (N,), its own root included."""
    size = [1] * len(parent)
    for node in range(len(parent) - 1, 0, -1):
        size[parent[node]] += size[node]
    return size


def left(fitted: Fitted, cases: Cases, places: Places) -> Forest:
    """The forest of what stands in the places, with the counts of its cases and the classes of its leaves."""
    old, source, inner = fitted.forest, places.source, ~places.leaf
    first, count = old.first_child[source], old.n_children[source].astype(np.intp)
    order = canonical_order(old.roots, first, count, inner)
    if order.size == old.n_nodes:
        return old
    tests, parent = order[inner[order]], old.parent.copy()
    parent[ranges(first[tests], count[tests])] = np.repeat(tests, count[tests])
    forest = moved(old, source, parent).take(order, inner)
    forest = replace(forest, depth=depths(forest.n_children, forest.roots))
    raised = (source[order] != order) & inner[order]
    if raised.any():
        forest = settled(replace(fitted, forest=forest), cases, raised)
    return labelled(forest, fitted.layout.weight(forest.stats.T), places.label[order])


def labelled(forest: Forest, weight: NDArray[np.int64], label: Ids) -> Forest:
    """The forest whose leaves predict these classes (N,): all of it, where fewer of the cases are of that class."""
    other = np.flatnonzero((forest.kind == Test.LEAF) & (weight > 0) & (forest.value.argmax(axis=1) != label))
    if not other.size:
        return forest
    value = forest.value.copy()
    value[other] = np.arange(value.shape[1]) == label[other, None]
    return replace(forest, value=value)


def whole_trees(fitted: Fitted, cases: Cases, score: Callable[[float], Score], block: int = BLOCK) -> Forest:
    """Prune a tree; ``score`` makes the bound of the weight of its cases."""
    return WholeTrees(fitted, cases, score(float(fitted.weight[0]) * fitted.unit)).run(block)
