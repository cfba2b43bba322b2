"""The NumPy backend: the readable definition of every protocol method. May import core and the protocol.

A shard keeps one list of row numbers in which every node, open or closed, is one contiguous range: a split only
regroups the range of its node. Tables are counted feature by feature when they are searched, never kept whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cells import Cells, Entries, count_cells
from gputree.backends.nodes import Found, Lookup, Nodes, blank
from gputree.backends.protocol import CodeSpec, Given, Subtrees, Work
from gputree.backends.scan import scan_cells
from gputree.backends.shard import Codes, Shard
from gputree.backends.spread import is_spread, spread_rows
from gputree.backends.untraced import search_untraced
from gputree.backends.walk import walk
from gputree.core.bags import Bags, listed
from gputree.core.criteria import Criterion
from gputree.core.forest import SPREAD, Forest, Test, ranges
from gputree.core.routes import Parts, from_left, leaf_parts
from gputree.core.schema import Book, Cuts, Kind, category_cuts, numeric_cuts
from gputree.core.splits import TEST, Candidates, Growth, Search, Slots, Splits
from gputree.core.summary import order_free_sums
from gputree.core.target import Target

CHUNK = 1 << 17  # entries counted at once: features of small tables share one pass over NumPy
BLOCK = 1 << 18  # cells of X copied at once while encoding
ROW_BLOCK = 1 << 16  # rows predicted at once
CELL_BLOCK = 1 << 26  # ... and cells, of sparse rows made dense


@dataclass(frozen=True, slots=True)
class Table:
    """A table to be counted: k slots and their features (k, m)."""

    shard: Shard
    slots: Slots
    features: NDArray[np.int32]

    def chunks(self) -> Iterator[Cells]:
        """The cells, a few features at a time."""
        k, m = self.features.shape
        live = np.flatnonzero(self.shard.size(self.slots.id) > 0)
        shared = live.size == k and bool((self.features == self.features[:1]).all())
        everything = Entries.of(self.shard, self.slots.id) if shared else None
        kind = self.shard.codes.book.kind
        pending: list[tuple[int, NDArray[np.intp], Entries]] = []
        waiting = 0
        for feature, pairs in self.by_feature(live, shared):
            entries = everything or Entries.of(self.shard, self.slots.id[pairs // m])
            full = waiting + entries.row.size > CHUNK
            if pending and (full or kind[feature] != kind[pending[0][0]]):
                yield count_cells(self.shard, pending)
                pending, waiting = [], 0
            pending.append((feature, pairs, entries))
            waiting += entries.row.size
        if pending:
            yield count_cells(self.shard, pending)

    def by_feature(self, live: NDArray[np.intp], shared: bool) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """Features in order with the flat numbers of their slot-feature pairs, in slot order."""
        k, m = self.features.shape
        if shared:
            for place in np.argsort(self.features[0], kind="stable") if k else ():
                if self.features[0, place] >= 0:
                    yield int(self.features[0, place]), np.arange(k) * m + place
            return
        flat = self.features.ravel()
        pairs = (live[:, None] * m + np.arange(m)).ravel()
        order = pairs[np.argsort(flat[pairs], kind="stable")]
        order = order[flat[order] >= 0]
        starts = np.flatnonzero(np.diff(flat[order], prepend=-1))
        for pairs in np.split(order, starts[1:]):
            if pairs.size:
                yield int(flat[pairs[0]]), pairs


class Oracle:
    """The backend that defines the others, on NumPy alone."""

    name = "numpy"
    device = "cpu"
    table_bytes: int | None = None

    def __init__(self, note: str = "") -> None:
        self.note = note
        self.work = Work()

    def close(self) -> None:
        """Nothing is held."""

    def edges(self, X: NDArray[Any], spec: CodeSpec, weight: NDArray[np.int64] | None) -> tuple[Cuts, ...]:
        """Codes of every column from all rows."""
        cuts: list[Cuts] = []
        for first, block in column_blocks(X):
            for feature, column in zip(spec.schema.features[first:], block, strict=False):
                if feature.kind == Kind.CATEGORICAL:
                    cuts.append(category_cuts(feature))
                else:
                    cuts.append(numeric_cuts(column, weight, spec.max_codes))
        return tuple(cuts)

    def any_missing(self, X: Any) -> bool:
        """Look at all cells; those that a sparse table does not hold are 0."""
        held = X if isinstance(X, np.ndarray) else X.data
        return bool(np.isnan(held).any())

    def encode(self, X: NDArray[Any], cuts: tuple[Cuts, ...]) -> Codes:
        """Codes of every column."""
        columns: list[NDArray[Any]] = []
        for first, block in column_blocks(X):
            columns.extend(cut.code_of(column) for cut, column in zip(cuts[first:], block, strict=False))
        return Codes(tuple(columns), Book.of(cuts), np.array([cut.n_codes for cut in cuts], np.int64))

    def each(self, work: Callable[[Any], Any], pieces: Iterable[Any]) -> list[Any]:
        """What some work gives for each piece, one after another."""
        return [work(piece) for piece in pieces]

    def open(self, codes: Codes, target: Target, bags: Bags) -> Shard:
        """List the rows of every bag."""
        n, trees = target.n_rows, np.arange(bags.n_trees)
        if bags.draws is None:
            return Shard(codes, target, np.tile(np.arange(n), bags.n_trees), trees * n, (trees + 1) * n)
        rows, times, ends = listed(bags, n, self.each)
        return Shard(codes, target, rows, ends[:-1].copy(), ends[1:].copy(), narrow(times))

    def totals(self, shard: Shard) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Channels and extent of the roots."""
        roots = np.arange(shard.start.size, dtype=np.int32)
        entries = Entries.of(shard, roots)
        return entries.add_up(entries.seg, roots.size), self.extent(shard, roots)

    def histogram(self, shard: Shard, slots: Slots, features: NDArray[np.int32]) -> Table:
        """A description: cells are counted as they are searched."""
        self.work.rows += int(shard.size(slots.id).sum())
        self.work.batches += 1
        return Table(shard, slots, features)

    def read(self, table: Table) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """All cells, sorted by pair."""
        parts = list(table.chunks())
        channels = table.shard.target.layout.n_channels
        pair = np.concatenate([np.zeros(0, np.int64), *(c.pairs[c.seg] for c in parts)])
        code = np.concatenate([np.zeros(0, np.int64), *(c.code for c in parts)])
        stats = np.concatenate([np.zeros((channels, 0), np.int64), *(c.stats for c in parts)], axis=1)
        order = np.argsort(pair, kind="stable")
        return pair[order], code[order], stats[:, order]

    def search(self, table: Table, slots: Slots, search: Search, turn: int | None = None) -> Candidates:
        """Score every cut of every cell list; keep the best of each."""
        if not search.criterion.traced:
            return self.search_untraced(table, slots, search)
        k, m = table.features.shape
        best = blank(k * m)
        nodes = Nodes.of(slots, table.shard.target.layout, search)
        lookups: list[Lookup] = []
        for cells in table.chunks():
            self.work.cells += cells.code.size
            own = 2 * cells.stats.nbytes + cells.code.nbytes  # with its running sums
            self.work.table_bytes = max(self.work.table_bytes, own)
            for found, lookup in scan_cells(cells, m, nodes):
                best.put(found)
                if lookup is not None:
                    lookups.append(lookup)
        return candidates(best, table.features, lookups)

    def search_untraced(self, table: Table, slots: Slots, search: Search) -> Candidates:
        """The same from the table as it is read."""
        read, shard = self.read(table), table.shard
        self.work.cells += read[0].size
        return candidates(*search_untraced(read, shard.codes.book, table.features, slots, shard.target.layout, search))

    def finish_rows(self, shard: Shard, search: Search) -> int:
        """None: every node goes through the growth loop."""
        return 0

    def finish(self, shard: Shard, slots: Slots, depth: NDArray[np.int32], growth: Growth, first: int) -> Subtrees:
        """Never asked for."""
        raise NotImplementedError("the growth loop grows every node")

    def children(self, shard: Shard, splits: Splits) -> NDArray[np.int64]:
        """Sum the rows of every branch."""
        entries = Entries.of(shard, splits.node)
        branch = branches(shard, splits, entries.seg, entries.row)
        if is_spread(splits):
            spread = spread_rows(shard, splits, branch)
            shard.spread = splits, spread
            entries, branch = entries.shared(spread.source, spread.share), spread.branch
        return entries.add_up(branch, int(splits.n_branches.sum()))

    def partition(self, shard: Shard, splits: Splits, children: NDArray[np.int32]) -> None:
        """Sort the rows of the split nodes by branch, keeping their order inside a branch.

        Where rows are spread, the rows of all other nodes are dropped: they are closed, for growth is level by level.
        """
        if is_spread(splits):
            self.partition_spread(shard, splits, children)
            return
        seg, row = shard.segments(splits.node)
        branch = branches(shard, splits, seg, row)
        counts = np.bincount(branch, minlength=children.size)
        size = shard.size(splits.node)
        inside = np.cumsum(counts) - counts  # place of each branch if the split nodes stood side by side
        shift = np.repeat(shard.start[splits.node] - (np.cumsum(size) - size), splits.n_branches)
        order = np.sort((branch << 32) | np.arange(branch.size)) & 0xFFFFFFFF  # a stable sort by branch
        place = ranges(shard.start[splits.node], size)
        shard.rows[place] = row[order]
        if shard.times is not None:
            shard.times[place] = shard.times[place][order]
        if shard.share is not None:
            shard.share[place] = shard.share[place][order]
        shard.place(children, inside + shift, inside + shift + counts)

    def partition_spread(self, shard: Shard, splits: Splits, children: NDArray[np.int32]) -> None:
        """Hold nothing but the rows of the branches, one branch after another."""
        if shard.spread is None or shard.spread[0] is not splits:
            self.children(shard, splits)
        assert shard.spread is not None
        found, shard.spread = shard.spread[1], None
        order = np.argsort(found.branch, kind="stable")
        place = ranges(shard.start[splits.node], shard.size(splits.node))
        shard.hold(shard.rows[place[found.source[order]]], found.share[order])
        ends = np.cumsum(np.bincount(found.branch, minlength=children.size))
        shard.place(children, np.concatenate([[0], ends[:-1]]), ends)

    def extent(self, shard: Shard, nodes: NDArray[np.int32]) -> NDArray[np.float64]:
        """Min and max of y."""
        target = shard.target
        result = np.zeros((nodes.size, target.layout.n_outputs, 2))
        size = shard.size(nodes)
        full = size > 0
        if target.sums is None or not full.any():
            return result
        row = shard.rows_of(nodes)
        starts = (np.cumsum(size) - size)[full]
        for o, y in enumerate(target.sums.y):
            result[full, o, 0] = np.minimum.reduceat(y[row], starts)
            result[full, o, 1] = np.maximum.reduceat(y[row], starts)
        return result

    def residuals(
        self, shard: Shard, nodes: NDArray[np.int32], value: NDArray[np.float64], criterion: Criterion
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Every node in a power of two of its own, so that squares neither overflow nor vanish."""
        target, size = shard.target, shard.size(nodes)
        first, loss = np.zeros(value.shape), np.zeros(value.shape)
        if target.sums is None or not nodes.size:
            return first, loss
        row, starts = shard.rows_of(nodes), np.cumsum(size) - size
        units, exact = shard.units_of(nodes, row), target.weights.exact
        weight = size if units is None else np.add.reduceat(units, starts)
        for o, raw in enumerate(target.sums.y):
            unit = -np.frexp(np.maximum(np.maximum.reduceat(np.abs(raw[row]), starts), np.abs(value[:, o])))[1]
            y, v = np.ldexp(raw[row], np.repeat(unit, size)), np.ldexp(value[:, o], unit)
            each = y - np.repeat(v, size)
            mean = order_free_sums(each, units, starts, exact) / weight
            about = order_free_sums(criterion.loss(each, np.repeat(v, size)), units, starts, exact) / weight
            with np.errstate(over="ignore"):
                first[:, o] = np.ldexp(mean, -unit)
                loss[:, o] = np.ldexp(about - criterion.loss(mean, v), -target.layout.degree * unit)
        return first, loss

    def apply(self, forest: Forest, X: NDArray[Any]) -> NDArray[np.int32]:
        """Walk down as many trees together as a block of rows leaves room for."""
        leaves = np.empty((X.shape[0], forest.roots.size), np.int32)
        for first, block in row_blocks(X):
            trees = max(1, ROW_BLOCK // max(1, block.shape[0]))
            for t in range(0, forest.roots.size, trees):
                leaves[first : first + block.shape[0], t : t + trees] = walk(forest, forest.roots[t : t + trees], block)
        return leaves

    def predict(self, forest: Forest, X: NDArray[Any], share: Given = None, soft: Given = None) -> NDArray[np.float64]:
        """Add the trees in order."""
        total = np.zeros((X.shape[0], forest.value.shape[1]))
        if share is None:
            for leaves in self.apply(forest, X).T:
                total += forest.value[leaves]
            return total
        place = from_left(forest)
        for first, block in row_blocks(X):
            for root in forest.roots:
                for at in leaf_parts(forest, Parts.whole(block.shape[0], int(root)), block, share, place, soft):
                    np.add.at(total, first + at.row, at.weight[:, None] * forest.value[at.node])
        return total


def narrow(times: NDArray[np.int64]) -> NDArray[Any] | None:
    """Multiplicities in the smallest type that holds them, None where all are 1."""
    most = int(times.max(initial=1))
    return None if most == 1 else times.astype(np.min_scalar_type(most))


def column_blocks(X: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Columns of X as contiguous rows, a few at a time: (number of the first, (columns, n))."""
    width = max(1, min(X.shape[1], BLOCK // max(1, X.shape[0]) or 4))
    for first in range(0, X.shape[1], width):
        yield first, np.ascontiguousarray(dense(X[:, first : first + width]).T)


def row_blocks(X: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Rows of X, some at a time: (number of the first, (rows, F))."""
    step = max(1, min(ROW_BLOCK, CELL_BLOCK // max(X.shape[1], 1)))
    for first in range(0, X.shape[0], step):
        yield first, dense(X[first : first + step])


def dense(block: Any) -> NDArray[Any]:
    """A part of a table as an array, from a sparse matrix too."""
    array: NDArray[Any] = block if isinstance(block, np.ndarray) else block.toarray()
    return array


def branches(shard: Shard, splits: Splits, seg: NDArray[np.int64], row: NDArray[np.intp]) -> NDArray[np.int64]:
    """Number of the branch of every row of the split nodes, counted over all splits; seg is the place of its split.

    -1 for rows that are spread.
    """
    code = np.empty(seg.size, np.int64)
    feature = splits.feature[seg]
    for f in np.unique(splits.feature):
        here = np.flatnonzero(feature == f)
        code[here] = shard.codes.columns[f][row[here]]
    branch = (code > splits.cut[seg]).astype(np.int64)
    lookup = (splits.kind == Test.LOOKUP)[seg] & (code != 0)
    if lookup.any():
        keys = np.repeat(np.arange(len(splits)), np.diff(splits.lookup_ptr)) << 16 | splits.lookup_code
        branch[lookup] = splits.lookup_branch[np.searchsorted(keys, seg[lookup] << 16 | code[lookup])]
    missing = code == 0
    if missing.any():
        branch[missing] = splits.missing[seg[missing]]
    numbers = branch + (np.cumsum(splits.n_branches) - splits.n_branches)[seg]
    return np.where(branch == SPREAD, -1, numbers) if is_spread(splits) else numbers


def candidates(best: Found, features: NDArray[np.int32], lookups: list[Lookup]) -> Candidates:
    """The protocol's record of the best tests."""
    pair = np.concatenate([np.zeros(0, np.int64), *(p for p, _, _ in lookups)])
    order = np.argsort(pair, kind="stable")
    code = np.concatenate([np.zeros(0, np.uint16), *(c for _, c, _ in lookups)])[order]
    branch = np.concatenate([np.zeros(0, np.uint16), *(b for _, _, b in lookups)])[order]
    return Candidates(
        **{name: getattr(best, name).reshape(features.shape) for name in TEST},
        feature=features,
        lookup_pair=pair[order].astype(np.int64),
        lookup_code=code.astype(np.uint16),
        lookup_branch=branch.astype(np.uint16),
    )
