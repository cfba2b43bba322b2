"""Error-based pruning that may put the heaviest branch of a test in its place. May import core.

What a test makes of its cases depends on them and on what is below it only. So tests are judged from the leaves up,
many at once, by the counts of the fit as far as these tell; only where a branch that is no leaf might take the place of
its test are the cases needed, and sent down. Below a branch that was raised all is judged anew, with all of its cases.
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
from gputree.engine.pruning.records import Cases, Fitted, misfits, settled

Floats: TypeAlias = NDArray[np.float64]
Ids: TypeAlias = NDArray[np.intp]
Limit: TypeAlias = Callable[[Floats, Floats], Floats]
"""Errors to be expected of leaves (M,), from their cases and the errors among these."""

SLACK = 0.1  # errors that a smaller tree may be expected to make more (Quinlan 1993)
EQUAL = 1e-6  # weights and errors that differ by less are equal in C4.5 and J48


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one look at some nodes found, arrays (k,): errors expected of a leaf, of the tree, of its heaviest branch.

    ``branch`` is the number of the heaviest branch. Nodes are numbered as before pruning.
    """

    node: Ids
    cases: Floats
    leaf: Floats
    tree: Floats
    raised: Floats
    branch: Ids


class Raising:
    """The state of one pruning.

    A place is a node of the forest as it was; ``source`` says whose test and children stand there now, ``parent`` in
    which place a node hangs, ``leaf`` whether the place has no test any more, ``counts`` which classes its cases have.
    """

    def __init__(self, fitted: Fitted, cases: Cases, limit: Limit) -> None:
        forest = fitted.forest
        self.fitted, self.forest, self.all, self.limit = fitted, forest, cases, limit
        self.source, self.parent = np.arange(forest.n_nodes), forest.parent.copy()
        self.leaf = forest.kind == Test.LEAF
        self.counts = forest.stats[:, fitted.layout.output(0)].copy()
        self.errors = self.expected(self.counts)  # of what stands in a place
        self.waiting: list[tuple[Ids, Parts]] = []  # tests to be judged, the last first, and their cases
        self.number = np.full(forest.n_nodes, -1)  # of places in a list, while it is in use
        self.divide = by_cases(forest)
        self.verdicts: list[Verdict] = []

    def run(self) -> Forest:
        """Judge every test; the forest that is left."""
        self.gather(self.judge_by_counts())
        while self.waiting:
            self.judge(*self.waiting.pop())
        return self.left()

    def judge_by_counts(self) -> NDArray[np.bool_]:
        """Judge the tests that the counts of the fit decide; which others there are, bool (N,)."""
        open_ = np.zeros(self.forest.n_nodes, bool)
        tests = np.flatnonzero(~self.leaf)
        depth = self.forest.depth[tests]
        order = tests[np.argsort(depth, kind="stable")]
        for nodes in np.split(order, np.cumsum(np.bincount(depth))[:-1])[::-1]:
            child, _, first = self.children(nodes)
            undecided = np.logical_or.reduceat(open_[child], first) | ~self.leaf[self.heaviest(nodes)]
            open_[nodes] = undecided
            self.judge(nodes[~undecided], NO_PARTS)
        return open_

    def gather(self, open_: NDArray[np.bool_]) -> None:
        """Have these tests judged: the cases of each, from the roots down."""
        assert self.all.parts is not None
        here, pieces = self.forest.roots.astype(np.intp), [self.all.parts]
        while (here := here[open_[here]]).size:
            at = Parts.joined([piece.take(np.flatnonzero(open_[piece.node])) for piece in pieces])
            self.waiting.append((here, at))
            here, pieces = self.children(here)[0], self.down(at)

    def children(self, nodes: Ids) -> tuple[Ids, Ids, Ids]:
        """Branches (C,) of tests (k,), the place of the test of each in the list, where those of each begin (k,)."""
        source = self.source[nodes]
        count = self.forest.n_children[source].astype(np.intp)
        owner = np.repeat(np.arange(nodes.size), count)
        return ranges(self.forest.first_child[source], count), owner, np.cumsum(count) - count

    def heaviest(self, nodes: Ids) -> Ids:
        """The heaviest branches of tests, the last among equals."""
        child, owner, first = self.children(nodes)
        weight = self.counts[child].sum(axis=1) * self.fitted.unit
        near = np.flatnonzero(weight >= np.maximum.reduceat(weight, first)[owner] - EQUAL)
        stop = first + self.forest.n_children[self.source[nodes]]
        last: Ids = child[near[np.searchsorted(near, stop) - 1]]
        return last

    def expected(self, counts: NDArray[np.int64]) -> Floats:
        """Errors expected of leaves (M, classes)."""
        return self.limit(*misfits(counts, self.fitted.unit))

    def judge(self, nodes: Ids, at: Parts) -> None:
        """Make tests leaves, put their heaviest branches in their place, or leave them; the cases are among these."""
        if not nodes.size:
            return
        child, _, first = self.children(nodes)
        heaviest, leaf = self.heaviest(nodes), self.errors[nodes]
        tree, raised = np.add.reduceat(self.errors[child], first), leaf.copy()
        asks = np.flatnonzero(~self.leaf[heaviest])  # a leaf in the place of its test is what the test is as a leaf
        raised[asks] = self.branch(heaviest[asks], self.moved(nodes[asks], heaviest[asks], at))
        total = misfits(self.counts[nodes], self.fitted.unit)[0]
        self.verdicts.append(Verdict(nodes, total, leaf, tree, raised, heaviest - child[first]))
        flat = (leaf <= raised + SLACK + EQUAL) & (leaf <= tree + SLACK + EQUAL)
        up = np.flatnonzero(~flat & (raised <= tree + SLACK + EQUAL))
        self.leaf[nodes[flat]] = True
        self.errors[nodes] = np.where(flat, leaf, tree)
        if up.size:
            self.put_up(nodes[up], heaviest[up], self.moved(nodes[up], nodes[up], at))

    def moved(self, nodes: Ids, to: Ids, at: Parts) -> Parts:
        """The cases of some places, in others."""
        self.number[nodes] = np.arange(nodes.size)
        own = self.number[at.node]
        self.number[nodes] = -1
        some = np.flatnonzero(own >= 0)
        return Parts(at.row[some], to[own[some]], at.weight[some])

    def branch(self, places: Ids, at: Parts) -> Floats:
        """Errors expected of what stands in places (k,), with these cases."""
        here, owner, pieces = places, np.arange(places.size), [at]
        expected = np.zeros(places.size)
        while here.size:
            flags = [self.leaf[piece.node] for piece in pieces]
            ended = [piece.take(np.flatnonzero(leaf)) for piece, leaf in zip(pieces, flags, strict=True)]
            going = [piece.take(np.flatnonzero(~leaf)) for piece, leaf in zip(pieces, flags, strict=True)]
            leaf = self.leaf[here]
            np.add.at(expected, owner[leaf], self.expected(self.counted(here[leaf], ended)))
            here, owner = here[~leaf], owner[~leaf]
            below, above, _ = self.children(here)
            here, owner, pieces = below, owner[above], self.down(Parts.joined(going))
        return expected

    def counted(self, places: Ids, pieces: list[Parts]) -> NDArray[np.int64]:
        """Classes of the cases in places, which are all that there are (k, classes)."""
        counts = np.zeros((places.size, self.counts.shape[1]), np.int64)
        self.number[places] = np.arange(places.size)
        for at in pieces:
            cell = self.number[at.node] * counts.shape[1] + self.all.y[0][at.row]
            np.add.at(counts.reshape(-1), cell, at.weight)
        self.number[places] = -1
        return counts

    def down(self, at: Parts) -> list[Parts]:
        """One step down from places."""
        return parted(self.forest, replace(at, node=self.source[at.node]), self.all.X, self.divide)[0]

    def put_up(self, nodes: Ids, branch: Ids, at: Parts) -> None:
        """Put branches in the place of tests, send down all of their cases, and have what is there judged."""
        self.source[nodes], self.leaf[nodes] = self.source[branch], self.leaf[branch]
        child, owner, _ = self.children(nodes)
        self.parent[child] = nodes[owner]
        here, pieces = nodes, [at]
        while here.size:
            self.counts[here] = self.counted(here, pieces)
            self.errors[here] = self.expected(self.counts[here])
            here = here[~self.leaf[here]]
            at = Parts.joined([piece.take(np.flatnonzero(~self.leaf[piece.node])) for piece in pieces])
            self.waiting.append((here, at))
            here, pieces = self.children(here)[0], self.down(at)

    def left(self) -> Forest:
        """The forest of what stands in the places, with the counts of its cases."""
        forest = moved(self.forest, self.source, self.parent)
        order = canonical_order(forest.roots, forest.first_child, forest.n_children, ~self.leaf)
        forest = forest.take(order, ~self.leaf)
        raised = (self.source[order] != order) & ~self.leaf[order]
        if not raised.any():
            return forest
        forest = replace(forest, depth=depths(forest.n_children, forest.roots))
        parts = self.all.parts
        assert parts is not None
        new_root = np.zeros(self.forest.n_nodes, np.intp)
        new_root[self.forest.roots] = forest.roots
        cases = replace(self.all, parts=replace(parts, node=new_root[parts.node]))
        return settled(replace(self.fitted, forest=forest), cases, raised)


NO_PARTS = Parts(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0, np.int64))


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
