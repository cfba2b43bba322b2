"""Error-based pruning that may put the heaviest branch of a test in its place. May import core.

Cases are sent down again wherever the tree above them changes, so all nodes of one depth are judged at once, the
deepest first; a branch that was raised is judged anew, from its leaves up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gputree.core.families import depths
from gputree.core.forest import Forest, Test, canonical_order, ranges
from gputree.core.routes import Parts, by_cases, parted
from gputree.engine.pruning.records import Cases, Fitted, directed, misfits, recounted

Limit: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
"""Errors to be expected of leaves (M,), from their cases and the errors among these."""

SLACK = 0.1  # errors that a smaller tree may be expected to make more (Quinlan 1993)
EQUAL = 1e-6  # weights and errors that differ by less are equal in C4.5 and J48


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one look at some nodes found, arrays (k,): errors expected of a leaf, of the tree, of its heaviest branch.

    ``branch`` is the number of the heaviest branch. Nodes are numbered as before pruning.
    """

    node: NDArray[np.intp]
    cases: NDArray[np.float64]
    leaf: NDArray[np.float64]
    tree: NDArray[np.float64]
    raised: NDArray[np.float64]
    branch: NDArray[np.intp]


class Raising:
    """The state of one pruning.

    A place is a node of the forest as it was; ``source`` says whose test and children stand there now, ``parent`` in
    which place a node hangs, ``leaf`` whether the place has no test any more.
    """

    def __init__(self, fitted: Fitted, cases: Cases, limit: Limit) -> None:
        forest = fitted.forest
        self.fitted, self.forest, self.all, self.limit = fitted, forest, cases, limit
        self.source, self.parent = np.arange(forest.n_nodes), forest.parent.copy()
        self.leaf = forest.kind == Test.LEAF
        self.counts = np.zeros((forest.n_nodes, fitted.layout.sizes[0]), np.int64)
        self.errors = np.zeros(forest.n_nodes)  # expected of what stands in a place
        self.waiting = np.zeros(forest.n_nodes, bool)
        self.parts: dict[int, Parts] = {}  # of the cases in tests, by depth
        self.owner, self.place = np.zeros((2, forest.n_nodes), np.intp)
        self.divide = by_cases(forest)
        self.verdicts: list[Verdict] = []

    def run(self) -> Forest:
        """Judge every test; the forest that is left."""
        assert self.all.parts is not None
        self.settle(self.all.parts)
        while self.waiting.any():
            nodes = np.flatnonzero(self.waiting)
            depth = self.forest.depth[nodes]
            self.judge(nodes[depth == depth.max()])
        return self.left()

    def settle(self, at: Parts) -> None:
        """Send cases down from some places to the leaves, and have all tests on the way judged."""
        pieces = [at]
        while any(len(piece) for piece in pieces):
            there = np.flatnonzero(sum(np.bincount(p.node, minlength=self.leaf.size) for p in pieces))
            self.counts[there] = 0
            for piece in pieces:
                self.count(self.counts, piece)
            self.waiting[there] = ~self.leaf[there]
            self.errors[there] = self.limit(*misfits(self.counts[there], self.fitted.unit))
            at = Parts.joined([piece.take(np.flatnonzero(~self.leaf[piece.node])) for piece in pieces])
            self.keep(at)
            pieces = self.down(at)

    def count(self, counts: NDArray[np.int64], at: Parts) -> None:
        """Add the classes of cases to those of their nodes (nodes, classes)."""
        np.add.at(counts.reshape(-1), at.node * counts.shape[1] + self.all.y[0][at.row], at.weight)

    def keep(self, at: Parts) -> None:
        """Remember the cases of tests, in the place of those that were there."""
        new = np.zeros(self.forest.n_nodes, bool)
        new[at.node] = True
        depth = self.forest.depth[at.node]
        levels = np.flatnonzero(np.bincount(depth)).tolist()
        for level in levels:
            own = at if len(levels) == 1 else at.take(depth == level)
            old = self.parts.get(level)
            self.parts[level] = own if old is None else Parts.joined([old.take(~new[old.node]), own])

    def down(self, at: Parts) -> list[Parts]:
        """One step down from places."""
        return parted(self.forest, replace(at, node=self.source[at.node]), self.all.X, self.divide)[0]

    def cases_of(self, nodes: NDArray[np.intp]) -> Parts:
        """The cases in tests of one depth."""
        wanted = np.zeros(self.forest.n_nodes, bool)
        wanted[nodes] = True
        at = self.parts[int(self.forest.depth[nodes[0]])]
        return at.take(wanted[at.node])

    def judge(self, nodes: NDArray[np.intp]) -> None:
        """Make nodes of one depth leaves, put their heaviest branches in their place, or leave them."""
        self.waiting[nodes] = False
        count = self.forest.n_children[self.source[nodes]].astype(np.intp)
        child, first = ranges(self.forest.first_child[self.source[nodes]], count), np.cumsum(count) - count
        heaviest = self.heaviest(child, first, count)
        total, wrong = misfits(self.counts[nodes], self.fitted.unit)
        leaf, tree = self.limit(total, wrong), np.add.reduceat(self.errors[child], first)
        raised = self.branch(nodes, heaviest)
        self.verdicts.append(Verdict(nodes, total, leaf, tree, raised, heaviest - child[first]))
        flat = (leaf <= raised + SLACK + EQUAL) & (leaf <= tree + SLACK + EQUAL)
        up = ~flat & (raised <= tree + SLACK + EQUAL)
        self.leaf[nodes[flat]] = True
        self.errors[nodes] = np.where(flat, leaf, tree)
        if up.any():
            self.put_up(nodes[up], heaviest[up])

    def heaviest(self, child: NDArray[np.intp], first: NDArray[np.intp], count: NDArray[np.intp]) -> NDArray[np.intp]:
        """The heaviest children, the last among equals."""
        weight = self.counts[child].sum(axis=1) * self.fitted.unit
        near = np.flatnonzero(weight >= np.repeat(np.maximum.reduceat(weight, first), count) - EQUAL)
        last: NDArray[np.intp] = child[near[np.searchsorted(near, first + count) - 1]]
        return last

    def branch(self, nodes: NDArray[np.intp], heaviest: NDArray[np.intp]) -> NDArray[np.float64]:
        """Errors expected of the heaviest branches if all cases of the nodes went there."""
        at = self.cases_of(nodes)
        self.owner[nodes] = np.arange(nodes.size)
        own = self.owner[at.node]
        at = replace(at, node=heaviest[own])
        self.owner[heaviest] = np.arange(nodes.size)
        expected = np.zeros(nodes.size)
        pieces = [at]
        while any(len(piece) for piece in pieces):
            ends = [np.flatnonzero(self.leaf[piece.node]) for piece in pieces]
            ended = Parts.joined([piece.take(own) for piece, own in zip(pieces, ends, strict=True)])
            leaves = np.flatnonzero(np.bincount(ended.node))
            self.place[leaves] = np.arange(leaves.size)
            counts = np.zeros((leaves.size, self.counts.shape[1]), np.int64)
            self.count(counts, replace(ended, node=self.place[ended.node]))
            np.add.at(expected, self.owner[leaves], self.limit(*misfits(counts, self.fitted.unit)))
            pieces = self.down(Parts.joined([piece.take(np.flatnonzero(~self.leaf[piece.node])) for piece in pieces]))
            for piece in pieces:
                self.owner[piece.node] = self.owner[self.parent[piece.node]]
        return expected

    def put_up(self, nodes: NDArray[np.intp], branch: NDArray[np.intp]) -> None:
        """Put branches in the place of nodes, and send down all of their cases."""
        at = self.cases_of(nodes)
        self.source[nodes], self.leaf[nodes] = self.source[branch], self.leaf[branch]
        count = np.where(self.leaf[nodes], 0, self.forest.n_children[self.source[nodes]]).astype(np.intp)
        self.parent[ranges(self.forest.first_child[self.source[nodes]], count)] = np.repeat(nodes, count)
        self.settle(at)

    def left(self) -> Forest:
        """The forest of what stands in the places, with the counts of its cases."""
        forest = moved(self.forest, self.source, self.parent)
        order = canonical_order(forest.roots, forest.first_child, forest.n_children, ~self.leaf)
        forest = forest.take(order, ~self.leaf)
        forest = replace(forest, depth=depths(forest.n_children, forest.roots))
        parts = self.all.parts
        assert parts is not None
        new_root = np.zeros(self.forest.n_nodes, np.intp)
        new_root[self.forest.roots] = forest.roots
        cases = replace(self.all, parts=replace(parts, node=new_root[parts.node]))
        forest = recounted(replace(self.fitted, forest=forest), cases)
        return directed(forest, self.fitted.layout.weight(forest.stats.T))  # where no case is missing: no count changes


def moved(forest: Forest, source: NDArray[np.intp], parent: NDArray[np.int32]) -> Forest:
    """The forest in whose places (N,) the tests of other nodes stand, with their children."""
    count = np.diff(forest.lookup_ptr)[source]
    cells = ranges(forest.lookup_ptr[:-1][source], count)
    tests = ("kind", "feature", "low", "first_child", "n_children", "missing", "unseen", "met_missing", "score")
    return replace(
        forest,
        **{name: getattr(forest, name)[source] for name in tests},
        lookup_ptr=np.concatenate([[0], np.cumsum(count)]).astype(np.int64),
        lookup_code=forest.lookup_code[cells],
        lookup_branch=forest.lookup_branch[cells],
        parent=parent,
    )
