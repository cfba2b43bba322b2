"""The fitted forest as a frozen struct of arrays, and the builder that grows it. May import NumPy and core only."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

NO_NODE = -1
SPREAD = 65_535  # in the place of a branch: the row goes to every branch, in shares of their training weights
STAY = 65_534  # in the place of a branch: a value for which the test has none ends at the node itself


class Test(IntEnum):
    """How a node sends a value to a branch."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    LEAF = 0
    THRESHOLD = 1  # branch 0 where x <= low, else 1
    INTERVAL = 2
    LOOKUP = 3  # branch of the category, listed in lookup_*
    OBLIQUE = 4


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Forest:
    """N nodes of T trees: tree by tree, breadth first; a child is ``first_child + branch``.

    A leaf has kind LEAF, feature and first_child -1, n_children 0. ``low`` is 0 in LOOKUP nodes and +inf where a test
    asks "known or missing". ``missing`` and ``unseen`` are the branches of a missing value and of a category that the
    test does not list; ``met_missing`` is 1 where training rows were missing there, else ``missing`` is the child of
    larger weight. Either may be STAY: such a value ends at the node; or SPREAD: see `gputree.core.routes`.
    ``lookup_ptr`` i8 (N + 1,) delimits the sorted codes and their branches of LOOKUP nodes.
    """

    roots: NDArray[np.int32]  # (T,)
    kind: NDArray[np.uint8]  # (N,)
    feature: NDArray[np.int32]  # (N,)
    low: NDArray[np.float64]  # (N,)
    first_child: NDArray[np.int32]  # (N,)
    n_children: NDArray[np.uint16]  # (N,)
    missing: NDArray[np.uint16]  # (N,)
    unseen: NDArray[np.uint16]  # (N,)
    met_missing: NDArray[np.uint8]  # (N,)
    lookup_ptr: NDArray[np.int64]  # (N + 1,)
    lookup_code: NDArray[np.uint16]
    lookup_branch: NDArray[np.uint16]
    stats: NDArray[np.int64]  # (N, C) channels
    score: NDArray[np.float64]  # (N,) score of the split on its grid, 0 in leaves
    parent: NDArray[np.int32]  # (N,) -1 in roots
    depth: NDArray[np.int32]  # (N,) 0 in roots
    impurity: NDArray[np.float64]  # (N,)
    value: NDArray[np.float64]  # (N, O')

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all trees."""
        return self.kind.size

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return int((self.kind == Test.LEAF).sum())

    @property
    def max_depth(self) -> int:
        """Depth of the deepest leaf; a root alone has depth 0."""
        return int(self.depth.max(initial=0))

    @property
    def spreads(self) -> bool:
        """Whether some test sends a row down every branch."""
        return bool(max(self.missing.max(initial=0), self.unseen.max(initial=0)) == SPREAD)  # no branch is as large

    def node(self, i: int) -> Node:
        """Read-only view of node i."""
        if not 0 <= i < self.n_nodes:
            raise IndexError(f"node {i} does not exist; nodes are 0 to {self.n_nodes - 1}")
        return Node(self, int(i))

    def fingerprint(self) -> str:
        """SHA-256 over every array (name, type, shape, little-endian bytes), as hex."""
        digest = hashlib.sha256()
        for f in fields(self):
            array = np.ascontiguousarray(getattr(self, f.name))
            array = array.astype(array.dtype.newbyteorder("<"), copy=False)
            digest.update(f"{f.name} {array.dtype.str} {array.shape}\n".encode())
            digest.update(array.reshape(-1).view(np.uint8).data)
        return digest.hexdigest()

    def tree(self, t: int) -> Forest:
        """One tree as a forest of its own; node order is canonical, so its nodes stand together."""
        first = int(self.roots[t])
        stop = int(self.roots[t + 1]) if t + 1 < self.roots.size else self.n_nodes
        cells = slice(*self.lookup_ptr[[first, stop]])
        shift = {"roots": first, "first_child": first, "parent": first, "lookup_ptr": self.lookup_ptr[first]}
        parts = {f.name: getattr(self, f.name)[first:stop] for f in fields(self)}
        parts |= {name: getattr(self, name)[cells] for name in ("lookup_code", "lookup_branch")}
        parts["roots"], parts["lookup_ptr"] = self.roots[t : t + 1], self.lookup_ptr[first : stop + 1]
        return Forest(**{name: shifted(part, -int(shift.get(name, 0))) for name, part in parts.items()})

    def lock(self) -> Forest:
        """The same forest with read-only arrays."""
        for f in fields(self):
            getattr(self, f.name).setflags(write=False)
        return self

    def collapse(self, leaves: ArrayLike) -> Forest:
        """The forest in which the marked nodes, bool (N,), are leaves and what lies below them is gone.

        Raises ValueError for other marks, such as numbers of nodes.
        """
        marks = np.asarray(leaves)
        if marks.dtype != bool or marks.shape != (self.n_nodes,):
            raise ValueError(
                f"leaves is an array {marks.shape} of type {marks.dtype}; give a bool for each of the {self.n_nodes} "
                "nodes"
            )
        inner = (self.kind != Test.LEAF) & ~marks
        order = canonical_order(self.roots, self.first_child, self.n_children, inner)
        return self.take(order, inner)

    def take(self, order: NDArray[np.intp], inner: NDArray[np.bool_]) -> Forest:
        """Keep the nodes of ``order`` in that order; those not ``inner`` (over old ids) become leaves."""
        new_id = np.full(self.n_nodes, NO_NODE, np.int32)
        new_id[order] = np.arange(order.size, dtype=np.int32)
        kind = self.kind.take(order)
        cut = np.flatnonzero((kind != Test.LEAF) & ~inner[order])  # places of those that become leaves

        def kept(array: NDArray[Any], blank: Any) -> NDArray[Any]:
            """A field that leaves leave blank."""
            taken = array.take(order)
            taken[cut] = blank
            return taken

        counts = kept(np.diff(self.lookup_ptr), 0)
        cells = ranges(self.lookup_ptr[:-1].take(order), counts)
        child, parent = kept(self.first_child, NO_NODE), self.parent.take(order)
        return replace(
            self,
            roots=new_id[self.roots],
            kind=kept(self.kind, Test.LEAF),
            feature=kept(self.feature, -1),
            low=kept(self.low, 0.0),
            first_child=np.where(child < 0, np.int32(NO_NODE), new_id.take(child, mode="wrap")),
            n_children=kept(self.n_children, 0),
            missing=kept(self.missing, 0),
            unseen=kept(self.unseen, 0),
            met_missing=kept(self.met_missing, 0),
            lookup_ptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            lookup_code=self.lookup_code.take(cells),
            lookup_branch=self.lookup_branch.take(cells),
            stats=self.stats.take(order, axis=0),
            score=kept(self.score, 0.0),
            parent=np.where(parent < 0, np.int32(NO_NODE), new_id.take(parent, mode="wrap")),
            depth=self.depth.take(order),
            impurity=self.impurity.take(order),
            value=self.value.take(order, axis=0),
        )


def shifted(numbers: NDArray[Any], by: int) -> NDArray[Any]:
    """Node numbers or positions moved by some places; those below 0 name nothing and stay."""
    return numbers if not by else np.where(numbers >= 0, numbers + numbers.dtype.type(by), numbers)


def joined(parts: Sequence[Forest]) -> Forest:
    """Forests one after another."""
    if len(parts) == 1:
        return parts[0]
    nodes = np.cumsum([0, *(p.n_nodes for p in parts)])
    cells = np.cumsum([0, *(p.lookup_code.size for p in parts)])
    arrays = {f.name: [getattr(p, f.name) for p in parts] for f in fields(Forest)}
    for name in ("roots", "first_child", "parent"):
        arrays[name] = [shifted(a, int(by)) for a, by in zip(arrays[name], nodes, strict=False)]
    arrays["lookup_ptr"] = [a[:-1] + by for a, by in zip(arrays["lookup_ptr"], cells, strict=False)] + [cells[-1:]]
    return Forest(**{name: np.concatenate(a) for name, a in arrays.items()})


def ranges(start: NDArray[Any], count: NDArray[Any]) -> NDArray[np.intp]:
    """The concatenated ranges start[i] .. start[i] + count[i] - 1."""
    total = int(count.sum())
    if total == 0:
        return np.zeros(0, np.intp)
    offset = np.cumsum(count) - count
    return np.repeat(start.astype(np.intp) - offset, count) + np.arange(total)


def fitting(sizes: NDArray[Any], most: int) -> Iterator[slice]:
    """Runs of things of these sizes (k,) that add up to at most so much; at least one thing a run.

    Examples
    --------
    >>> [(run.start, run.stop) for run in fitting(np.array([3, 4, 9, 1]), 8)]
    [(0, 2), (2, 3), (3, 4)]
    """
    total, first = np.cumsum(sizes), 0
    while first < total.size:
        before = int(total[first - 1]) if first else 0
        stop = max(int(np.searchsorted(total, before + most, side="right")), first + 1)
        yield slice(first, stop)
        first = stop


def canonical_order(
    roots: NDArray[Any], first_child: NDArray[Any], n_children: NDArray[Any], inner: NDArray[np.bool_]
) -> NDArray[np.intp]:
    """Old ids of the nodes reached through ``inner`` nodes, tree by tree and breadth first."""
    level, tree = roots.astype(np.intp), np.arange(roots.size)
    levels, trees = [level], [tree]
    while level.size:
        open_ = inner[level]
        counts = n_children[level[open_]].astype(np.intp)
        tree = np.repeat(tree[open_], counts)
        level = ranges(first_child[level[open_]], counts)
        levels.append(level)
        trees.append(tree)
    return np.concatenate(levels)[np.argsort(np.concatenate(trees), kind="stable")]


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a forest, for reading."""

    forest: Forest
    id: int

    @property
    def is_leaf(self) -> bool:
        """Whether the node has no test."""
        return bool(self.forest.kind[self.id] == Test.LEAF)

    @property
    def feature(self) -> int:
        """Number of the tested feature, -1 in a leaf."""
        return int(self.forest.feature[self.id])

    @property
    def children(self) -> range:
        """Ids of the children, in branch order."""
        first = int(self.forest.first_child[self.id])
        return range(first, first + int(self.forest.n_children[self.id]))

    @property
    def lookup(self) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
        """Codes that have a branch of their own choice, and these branches (LOOKUP nodes)."""
        cells = slice(*self.forest.lookup_ptr[self.id : self.id + 2])
        return self.forest.lookup_code[cells], self.forest.lookup_branch[cells]


@dataclass(frozen=True, slots=True)
class Grown:
    """New nodes, arrays over the last axis: what one step of growth adds to the forest."""

    parent: NDArray[np.int32]
    depth: NDArray[np.int32]
    key: NDArray[np.uint64]
    stats: NDArray[np.int64]  # (C, k)
    bounds: NDArray[np.float64]  # (2, k) lowest and highest value that a monotone constraint allows


@dataclass(frozen=True, slots=True)
class Marked:
    """The tests of nodes that one step of growth split, arrays (k,) but for the cells of lookups."""

    node: NDArray[np.int32]
    kind: NDArray[np.uint8]
    feature: NDArray[np.int32]
    low: NDArray[np.float64]
    first_child: NDArray[np.int32]
    n_children: NDArray[np.uint16]
    missing: NDArray[np.uint16]
    unseen: NDArray[np.uint16]
    met_missing: NDArray[np.uint8]
    score: NDArray[np.float64]
    lookup_count: NDArray[np.int64]
    lookup_code: NDArray[np.uint16]
    lookup_branch: NDArray[np.uint16]

    def take(self, which: NDArray[np.intp]) -> Marked:
        """The tests at these places."""
        count = self.lookup_count[which]
        cells = ranges((np.cumsum(self.lookup_count) - self.lookup_count)[which], count)
        parts = {f.name: getattr(self, f.name)[which] for f in fields(self) if not f.name.startswith("lookup")}
        return Marked(
            **parts,
            lookup_count=count,
            lookup_code=self.lookup_code[cells],
            lookup_branch=self.lookup_branch[cells],
        )


class ForestBuilder:
    """A forest while it grows: nodes in order of birth, in arrays that double when they are full."""

    def __init__(self) -> None:
        self.n_nodes = 0
        self.nodes: Grown | None = None
        self.marked: list[Marked] = []

    def add(self, born: Grown) -> NDArray[np.int32]:
        """Append nodes; give their ids."""
        ids = np.arange(self.n_nodes, self.n_nodes + born.parent.size, dtype=np.int32)
        self.nodes = born if self.nodes is None else Grown(*self.appended(self.nodes, born))
        self.n_nodes += ids.size
        return ids

    def appended(self, old: Grown, born: Grown) -> Iterator[NDArray[Any]]:
        """Every array with the new nodes behind the old."""
        need = self.n_nodes + born.parent.size
        for f in fields(old):
            array, new = getattr(old, f.name), getattr(born, f.name)
            if need > array.shape[-1]:
                room = np.empty((*array.shape[:-1], max(need, 2 * array.shape[-1])), array.dtype)
                room[..., : self.n_nodes] = array[..., : self.n_nodes]
                array = room
            array[..., self.n_nodes : need] = new
            yield array

    def of(self, name: str, node: NDArray[Any] | slice) -> NDArray[Any]:
        """One field of some nodes."""
        array: NDArray[Any] = getattr(self.nodes, name)[..., node]
        return array

    def mark(self, tests: Marked) -> None:
        """Turn leaves into tests."""
        self.marked.append(tests)

    def freeze(self, committed: NDArray[np.bool_] | None = None) -> tuple[Forest, NDArray[np.intp]]:
        """The forest in canonical order, and the birth number of each of its nodes.

        ``committed`` bool (n_nodes,) tells which tests count (best first may search ahead); None: all.
        """
        forest = self.joined()
        inner = forest.kind != Test.LEAF
        if committed is not None:
            inner &= committed
        order = canonical_order(forest.roots, forest.first_child, forest.n_children, inner)
        return forest.take(order, inner), order

    def joined(self) -> Forest:
        """All nodes in order of birth, values and impurities still empty."""
        n, everyone = self.n_nodes, slice(0, self.n_nodes)
        parent = self.of("parent", everyone).copy()
        node, count = self.column("node", np.int32), self.column("lookup_count", np.int64)
        order = np.argsort(node, kind="stable")  # cells of LOOKUP nodes in node order
        cells = ranges((np.cumsum(count) - count)[order], count[order])
        per_node = np.zeros(n, np.int64)
        per_node[node] = count

        def spread(name: str, blank: Any, dtype: Any) -> NDArray[Any]:
            full = np.full(n, blank, dtype)
            full[node] = self.column(name, dtype)
            return full

        return Forest(
            roots=np.flatnonzero(parent < 0).astype(np.int32),
            kind=spread("kind", Test.LEAF, np.uint8),
            feature=spread("feature", -1, np.int32),
            low=spread("low", 0.0, np.float64),
            first_child=spread("first_child", NO_NODE, np.int32),
            n_children=spread("n_children", 0, np.uint16),
            missing=spread("missing", 0, np.uint16),
            unseen=spread("unseen", 0, np.uint16),
            met_missing=spread("met_missing", 0, np.uint8),
            lookup_ptr=np.concatenate([[0], np.cumsum(per_node)]).astype(np.int64),
            lookup_code=self.column("lookup_code", np.uint16)[cells],
            lookup_branch=self.column("lookup_branch", np.uint16)[cells],
            stats=np.ascontiguousarray(self.of("stats", everyone).T),
            score=spread("score", 0.0, np.float64),
            parent=parent,
            depth=self.of("depth", everyone).copy(),
            impurity=np.zeros(n),
            value=np.zeros((n, 0)),
        )

    def column(self, name: str, dtype: Any) -> NDArray[Any]:
        """One field of all tests, in order of marking."""
        return np.concatenate([np.zeros(0, dtype), *(getattr(m, name) for m in self.marked)]).astype(dtype, copy=False)
