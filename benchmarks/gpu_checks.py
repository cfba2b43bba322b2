"""Correctness at size: every method of the backend protocol against the oracle, or against an exact statement."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu_tables import RECIPES, Generated, Table
from benchmarks.gpu_tools import Lab, LeftOut, Mismatch, same
from gputree.backends.cells import Cells
from gputree.backends.cuda import Cuda
from gputree.backends.nodes import Nodes, blank
from gputree.backends.oracle import Oracle
from gputree.backends.protocol import Bags, CodeSpec, Work
from gputree.backends.scan import scan_cells
from gputree.core.criteria import CRITERIA, TargetKind
from gputree.core.forest import Forest, Test
from gputree.core.keys import root_keys
from gputree.core.schema import Book, Cuts
from gputree.core.splits import MULTIWAY, NO_SPLITS, TEST, THRESHOLD, Limits, Search, Slots, Splits, Stop, choose
from gputree.core.target import Target, class_target, sum_target
from gputree.engine.grow import Progress, grow
from gputree.engine.recipe import Recipe
from gputree.engine.sampling import Sampler

READ_CELLS = 1 << 25  # channels of cells of a table that is read and compared whole, at most
ROW_BYTES = 180  # of a row of the largest table on the device, 28 columns
BEYOND = 1 << 31
GINI = Search((THRESHOLD, MULTIWAY), CRITERIA["gini"], Limits())


class Twin:
    """Two backends as one: what the first gives must equal what the second, the oracle, gives, to the bit."""

    name, note, device = "twin", "", "cpu"

    def __init__(self, ours: Cuda, oracle: Oracle) -> None:
        self.ours, self.oracle, self.work = ours, oracle, Work()
        self.table_bytes = ours.table_bytes  # as in a fit: growth leaves it to the device to cut tables
        self.values: Counter[str] = Counter()  # compared, by method

    def met(self, method: str, ours: Any, other: Any) -> Any:
        self.values[method] += same(method, ours, other)
        return other

    def close(self) -> None:
        self.ours.close()

    def finish_rows(self, shard: Any, search: Any) -> int:
        return self.ours.finish_rows(shard.ours, search)

    def edges(self, X: Any, spec: CodeSpec, weight: Any) -> Any:
        return self.met("edges", self.ours.edges(X, spec, weight), self.oracle.edges(X, spec, weight))

    def encode(self, X: Any, cuts: Any) -> Pair:
        pair = Pair(self.ours.encode(X, cuts), self.oracle.encode(X, cuts))
        self.met("encode", pair.ours.n_codes, pair.oracle.n_codes)  # the codes themselves show in tables
        return pair

    def open(self, codes: Any, target: Target, bags: Bags) -> Pair:
        return Pair(self.ours.open(codes.ours, target, bags), self.oracle.open(codes.oracle, target, bags))

    def totals(self, shard: Pair) -> Any:
        return self.met("totals", self.ours.totals(shard.ours), self.oracle.totals(shard.oracle))

    def histogram(self, shard: Pair, slots: Slots, features: Any) -> Pair:
        table = Pair(
            self.ours.histogram(shard.ours, slots, features), self.oracle.histogram(shard.oracle, slots, features)
        )
        if features.size * int(shard.ours.codes.n_codes.max(initial=0)) * len(slots.stats) <= READ_CELLS:
            self.met("read", self.ours.read(table.ours), self.oracle.read(table.oracle))
        return table

    def search(self, table: Pair, slots: Slots, search: Search, turn: int | None = None) -> Any:
        found = self.oracle.search(table.oracle, slots, search)
        self.met("search of all", self.ours.search(table.ours, slots, search), found)
        if turn is not None:
            best = self.ours.search(table.ours, slots, search, turn)
            self.met("search", choose(best, slots, turn), choose(found, slots, turn))
        return found

    def children(self, shard: Pair, splits: Splits) -> Any:
        return self.met("children", self.ours.children(shard.ours, splits), self.oracle.children(shard.oracle, splits))

    def partition(self, shard: Pair, splits: Splits, children: Any) -> None:
        self.ours.partition(shard.ours, splits, children)
        self.oracle.partition(shard.oracle, splits, children)
        # which rows they are shows in the next tables and in the leaves
        self.met("partition", shard.ours.size(children), shard.oracle.size(children))

    def extent(self, shard: Pair, nodes: Any) -> Any:
        return self.met("extent", self.ours.extent(shard.ours, nodes), self.oracle.extent(shard.oracle, nodes))

    def residuals(self, shard: Pair, nodes: Any, value: Any, criterion: Any) -> Any:
        ours = self.ours.residuals(shard.ours, nodes, value, criterion)
        return self.met("residuals", ours, self.oracle.residuals(shard.oracle, nodes, value, criterion))

    def apply(self, forest: Forest, X: Any) -> Any:
        return self.met("apply", self.ours.apply(forest, X), self.oracle.apply(forest, X))

    def predict(self, forest: Forest, X: Any) -> Any:
        return self.met("predict", self.ours.predict(forest, X), self.oracle.predict(forest, X))


@dataclass(frozen=True, slots=True)
class Pair:
    """The handles of both backends."""

    ours: Any
    oracle: Any

    @property
    def n_codes(self) -> NDArray[np.int64]:
        """Of codes."""
        codes: NDArray[np.int64] = self.oracle.n_codes
        return codes


def against_oracle(lab: Lab, name: str) -> list[dict[str, Any]]:
    """Grow one tree on both backends at once; every call of every method is compared."""
    table = RECIPES[name].table(lab.size(RECIPES[name].rows, 150))
    recipe = Recipe(table.search, Stop(lab.size(14, 3), 4), sampler=Sampler(1, table.max_features))
    most = Counter[str]()
    with lab.backend() as ours:
        twin = Twin(ours, Oracle())
        weight = table.target.weights.units
        cuts = twin.edges(table.X, CodeSpec(table.schema, table.max_codes), weight)
        forest = grow(twin, twin.encode(table.X, cuts), table.target, recipe, 5, lambda p: watch(most, p))
        rows = strangers(table)
        leaves = twin.apply(forest, rows)
        twin.predict(forest, rows.astype(np.float64))
        same("leaves of the rows of the fit", leaves[: table.target.n_rows], Oracle().apply(forest, table.X))
    return [
        {
            "check": name,
            "rows": table.X.shape[0],
            "features": table.X.shape[1],
            "cells": table.X.size,
            "nodes": forest.n_nodes,
            "live_slots": most["live"],
            "values_compared": dict(twin.values),
        }
    ]


def watch(most: Counter[str], progress: Progress) -> None:
    """Keep the largest number of open nodes."""
    most["live"] = max(most["live"], progress.open_nodes)


def strangers(table: Table) -> NDArray[np.float32]:
    """The rows of the fit, and rows with values and categories that it never saw."""
    odd = np.array([np.nan, -1.0, 3.5, 1e30, -1e30, np.inf], np.float32)
    more = np.random.default_rng(1).choice(odd, (64, table.X.shape[1]))
    for f, feature in enumerate(table.schema.features):
        if feature.categories:
            more[:, f] = np.where(np.isfinite(more[:, f]), -1.0, np.nan)
    return np.concatenate([table.X, more])


# --- statements about tables that the oracle would take too long for ------------------------------------------------


def beyond_2_31_cells(lab: Lab) -> list[dict[str, Any]]:
    """Two classes, 28 columns, more than 2^31 cells: cells 2^31 bytes and codes apart meet nowhere."""
    n = min(lab.size(80_000_000, 3000), lab.free() * 7 // 10 // ROW_BYTES)
    if not lab.toy and n * 28 <= BEYOND:
        raise LeftOut(f"the card has memory for {n:,} rows x 28 only; {BEYOND // 28 + 1:,} are beyond 2^31 cells")
    return large(lab, "beyond 2^31 cells", Generated(n, 28, 255), classes=2, depth=12)


def many_classes(lab: Lab) -> list[dict[str, Any]]:
    """300 classes, and 90% of the rows in one code."""
    made = Generated(lab.size(4_000_000, 600), lab.size(28, 3), 255, skewed=True)
    return large(lab, "300 classes, 90% in one code", made, lab.size(300, 60), 7)


def weighted_sums(lab: Lab) -> list[dict[str, Any]]:
    """Regression with weights."""
    return large(lab, "weighted regression", Generated(lab.size(6_000_000, 700), 28, 255), 0, 10)


def large(lab: Lab, name: str, made: Generated, classes: int, depth: int) -> list[dict[str, Any]]:
    """Grow on the device alone, then hold root, forest and leaves to what must be true of them."""
    depth, most = min(depth, lab.size(depth, 4)), Counter[str]()
    labels = made.labels(classes or 200)
    target, search = target_of(labels, classes)
    cuts = tuple(Cuts(np.arange(made.codes, dtype=np.float64)) for _ in range(made.n_features))
    with lab.backend() as backend, backend.driver.use():
        X = made.on_device(lab)
        codes = backend.encode(X, cuts)
        n_values = check_root(backend, made, codes, target, cuts)
        recipe = Recipe(search, Stop(depth))
        forest = grow(backend, codes, target, recipe, 3, lambda p: watch(most, p))
        leaves = backend.apply(forest, X)[:, 0]
        n_values += check_forest(forest, leaves, target)
        some = np.unique(np.linspace(0, made.n - 1, min(made.n, 50_000)).astype(np.int64))
        values = backend.predict(forest, X[int(some[-1]) :])
        n_values += same("apply to sampled rows", leaves[some], Oracle().apply(forest, made.rows(some))[:, 0])
        n_values += same("predict of the last row", values, forest.value[leaves[-1:]] + 0.0)
        del X
    return [
        {
            "check": name,
            "rows": made.n,
            "features": made.n_features,
            "cells": made.n * made.n_features,
            "nodes": forest.n_nodes,
            "live_slots": most["live"],
            "values_compared": {"statements": n_values},
        }
    ]


def target_of(labels: NDArray[np.int32], classes: int) -> tuple[Target, Search]:
    """Counts of the labels; without classes, weighted sums of the labels as numbers."""
    if classes:
        return class_target(labels[:, None], (classes,), None), GINI
    criterion = CRITERIA["squared_error"]
    weight = 1.0 + np.arange(labels.size) % 3
    return sum_target(labels[:, None].astype(np.float64), criterion, weight), replace(GINI, criterion=criterion)


def recount(target: Target, group: NDArray[Any], size: int) -> NDArray[np.int64]:
    """Channels of groups of rows, i8 (C, size), by NumPy's own additions of integers."""
    if target.labels is not None:
        classes = target.layout.sizes[0]
        flat = group.astype(np.int64) * classes + target.labels[0]
        return np.ascontiguousarray(np.bincount(flat, minlength=size * classes).reshape(size, classes).T)
    assert target.sums is not None
    assert target.weights.units is not None
    total = np.zeros((3, size), np.int64)
    for channel, values in zip(total, (target.weights.units, target.sums.values[0], np.int64(1)), strict=True):
        np.add.at(channel, group, values)
    return total


def check_root(backend: Cuda, made: Generated, codes: Any, target: Target, cuts: tuple[Cuts, ...]) -> int:
    """Totals, table, search, children and partition of the root."""
    shard, m = backend.open(codes, target, Bags(1)), made.n_features
    stats, _ = backend.totals(shard)
    n_values = same("totals", stats, recount(target, np.zeros(made.n, np.int8), 1))
    node, bounds = np.zeros(1, np.int32), np.array([[-np.inf], [np.inf]])
    slots = Slots(node, root_keys(3, np.zeros(1, np.int64)), stats, np.array([made.n]), bounds)
    table = backend.histogram(shard, slots, np.arange(m, dtype=np.int32)[None])
    pair, code, cells = backend.read(table)
    for f in range(m):
        n_values += same(f"table of column {f} added up", cells[:, pair == f].sum(axis=1), stats[:, 0])
    for f in (0, m // 2, m - 1):
        own = recount(target, made.code(f), made.codes + 1)
        n_values += same(f"table of column {f}", cells[:, pair == f], own[:, code[pair == f]])
        n_values += same(f"codes of column {f}", code[pair == f], np.flatnonzero(own.any(axis=0)))
    search = Search(GINI.generators, CRITERIA["squared_error" if target.sums else "gini"], Limits())
    found = backend.search(table, slots, search)
    best = scan(pair, code, cells, Nodes.of(slots, target.layout, search), cuts)
    for name in TEST:
        n_values += same(f"search: {name}", getattr(found, name)[0], getattr(best, name))
    return n_values + check_split(backend, shard, (pair, code, cells), m - 1)


def scan(pair: NDArray[Any], code: NDArray[Any], cells: NDArray[Any], nodes: Nodes, cuts: tuple[Cuts, ...]) -> Any:
    """The oracle's choice for every column of the root, from a table that was read."""
    m = len(cuts)
    ptr = np.searchsorted(pair, np.arange(m + 1))
    every, best = np.arange(m), blank(m)
    for found, _ in scan_cells(Cells(every, every, Book.of(cuts), nodes.layout, ptr, pair, code, cells), m, nodes):
        best.put(found)
    return best


def check_split(backend: Cuda, shard: Any, table: tuple[Any, Any, Any], f: int) -> int:
    """Cut the root at code 100 of column f, missing values right: the parts' channels, and their tables."""
    pair, code, cells = table
    splits = Splits(
        np.zeros(1, np.int32),
        np.array([f], np.int32),
        *(np.zeros(1) for _ in range(2)),
        np.array([Test.THRESHOLD], np.uint8),
        np.array([100], np.int32),
        np.zeros(1),
        np.ones(1, np.int32),
        np.array([2], np.int32),
        np.zeros(2, np.int64),
        NO_SPLITS.lookup_code,
        NO_SPLITS.lookup_branch,
    )
    left = (pair == f) & (code <= 100) & (code > 0)
    right = (pair == f) & ((code > 100) | (code == 0))
    expected = np.stack([cells[:, left].sum(axis=1), cells[:, right].sum(axis=1)], axis=1)
    stats = backend.children(shard, splits)
    n_values = same("children", stats, expected)
    nodes = np.array([1, 2], np.int32)
    backend.partition(shard, splits, nodes)
    rows, bounds = shard.size(nodes), np.repeat([[-np.inf], [np.inf]], 2, axis=1)
    slots = Slots(nodes, root_keys(3, nodes), stats, rows, bounds)
    m = f + 1
    features = np.broadcast_to(np.arange(m, dtype=np.int32), (2, m))
    both, codes, parts = backend.read(backend.histogram(shard, slots, features))
    where = both % m * 65_536 + codes
    whole = np.zeros((stats.shape[0], int(where.max()) + 1), np.int64)
    for channel, values in zip(whole, parts, strict=True):
        np.add.at(channel, where, values)
    n_values += same("tables of both children together", whole[:, pair * 65_536 + code], cells)
    own = codes[both == f]  # of the left child
    return n_values + same("codes of the left child", own, code[left])


def check_forest(forest: Forest, leaves: NDArray[np.int32], target: Target) -> int:
    """Every node is the sum of its children; the rows that reach a leaf by their values add up to its channels."""
    n_values = 0
    inner = np.flatnonzero(forest.kind != Test.LEAF)
    first = forest.first_child[inner]
    together = forest.stats[first] + forest.stats[first + 1]
    n_values += same("children added up", together, forest.stats[inner])
    own = recount(target, leaves, forest.n_nodes)
    leaf = forest.kind == Test.LEAF
    n_values += same("rows of every leaf", own[:, leaf].T.copy(), forest.stats[leaf])
    if own[:, ~leaf].any():
        raise Mismatch("apply: rows end in nodes that are not leaves")
    if target.layout.kind is TargetKind.CENTRED_SUMS and forest.max_depth == 0:
        raise Mismatch("no split was found")
    return n_values
