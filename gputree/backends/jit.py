"""The fast CPU backend: kernels that Numba compiles, in threads. Equal to the oracle bit for bit.

Large nodes are searched feature by feature in parallel; small ones are grown to the end of their subtrees by one thread
each, on rows that fit its cache. May import core, the protocol and the oracle. Numba is imported when it is first used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from pickle import UnpicklingError
from threading import RLock, Timer
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.apart import search_apart
from gputree.backends.compiled import entry, marks
from gputree.backends.cpu.host import (
    block_of,
    by_rows,
    column_of,
    found_of,
    is_pair,
    job_of,
    layout_of,
    merge_with,
    places_of,
    room_of_nodes,
    room_of_parts,
    slots_of,
    source_of,
    subtrees_of,
    walk_of,
)
from gputree.backends.cpu.module import load_module
from gputree.backends.groups import RATIO
from gputree.backends.oracle import Oracle
from gputree.backends.oracle import Table as OracleTable
from gputree.backends.protocol import CodeSpec, Given, Subtrees, require_known, tell
from gputree.backends.shard import Codes, Shard
from gputree.backends.spread import is_spread
from gputree.core.bags import Bags
from gputree.core.criteria import Criterion
from gputree.core.forest import Forest
from gputree.core.schema import Book, Cuts, Kind, category_cuts, code_dtype, floor_float32, sorted_cuts
from gputree.core.splits import Candidates, Growth, Scan, Search, Slots, Splits, Stop
from gputree.core.target import Target

CHUNK = 1 << 11  # rows of a large node brought into cache at once
TABLE_BYTES = 1 << 18  # of the tables of features that are counted together
PART_BYTES = 1 << 18  # of the codes of a small node
PART_ROWS = 1 << 13  # rows of a small node
DRAWN_BYTES, DRAWN_ROWS = 1 << 23, 1 << 16  # the same where each column has one cut, drawn at random
FEATURES = 16  # columns of a large node searched by one thread at a time
ROWS = 1 << 14  # rows encoded or predicted by one thread at a time
CELLS = 1 << 17  # ... and cells: a part of a sparse table is made dense
TASKS = 8  # pieces of work a thread
COMPILING = RLock()
PATIENCE = 1.0  # seconds after which compiling is told; reading from disk takes less


def threads(n_jobs: int | None = None) -> int:
    """Threads to use: ``n_jobs`` as in joblib; None: all processors, or as many as ``OMP_NUM_THREADS`` allows."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs == 0:
        raise ValueError("n_jobs=0 has no meaning: give a number of threads, or -1 for all")
    if n_jobs is not None:
        return max(1, n_jobs if n_jobs > 0 else processors + 1 + n_jobs)
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return min(processors, int(limit)) if limit.isdecimal() and int(limit) else processors


class Entry:
    """A function that the host calls, compiled or read from disk by one process at a time.

    Numba numbers the files of a function's signatures without a lock: two processes that compile different ones at once
    would leave an index that names the wrong code.
    """

    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher = dispatcher
        self.known: set[Any] = set()
        self.lock = Path(dispatcher.py_func.__code__.co_filename).with_suffix(".lock")

    def __call__(self, *args: Any) -> Any:
        """The function's result."""
        key = kind_of(args)
        if key not in self.known:
            from numba import typeof

            with COMPILING, locked(self.lock):
                self.compile(tuple(typeof(value) for value in args))
            self.known.add(key)
        return self.dispatcher(*args)

    def compile(self, signature: tuple[Any, ...]) -> None:
        """Compile, or read what is on disk; what cannot be read, cut short by a full disk, is thrown away."""
        name, folder = self.dispatcher.py_func.__name__, self.lock.parent
        waiting = Timer(PATIENCE, tell, [f"compiling {name}, once for all fits: it will be kept in {folder}"])
        waiting.start()
        try:
            self.dispatcher.compile(signature)
        except (EOFError, UnpicklingError):
            for path in (self.lock.parent / "__pycache__").glob("*.nb[ci]"):
                path.unlink(missing_ok=True)
            self.dispatcher.compile(signature)
        finally:
            waiting.cancel()


def kind_of(value: Any) -> Any:
    """What a signature depends on."""
    if isinstance(value, tuple):
        return tuple(kind_of(part) for part in value)
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.ndim, value.flags.c_contiguous, value.flags.f_contiguous, value.flags.writeable
    return type(value)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time, where the system has such locks and the folder can be written."""
    try:
        import fcntl

        handle = os.open(path, os.O_RDWR | os.O_CREAT)
    except (ImportError, OSError):
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@cache
def kernels(criterion: Criterion | None, pair: bool = False) -> ModuleType:
    """The compiled kernels of a criterion, or those that need none; ``pair``: of one output and two channels."""
    with COMPILING:
        return load_module(criterion, pair, marks() | {"entry": lambda function: Entry(entry(function))})


class Jit(Oracle):
    """The oracle's compiled twin."""

    name = "jit"

    def __init__(self, n_jobs: int | None = None, note: str = "") -> None:
        super().__init__(note)
        self.n_threads = threads(n_jobs)
        self.table_bytes = TABLE_BYTES  # of one thread: no level is cut for it

    def each(self, work: Callable[[Any], Any], pieces: Iterable[Any]) -> list[Any]:
        """What some work gives for each piece, in threads."""
        pieces = list(pieces)
        if self.n_threads < 2 or len(pieces) < 2:
            return [work(piece) for piece in pieces]
        with ThreadPoolExecutor(self.n_threads) as pool:
            return list(pool.map(work, pieces))

    def edges(self, X: NDArray[Any], spec: CodeSpec, weight: NDArray[np.int64] | None) -> tuple[Cuts, ...]:
        """A column a thread."""
        features = spec.schema.features
        if not isinstance(X, np.ndarray):
            X = X.tocsc()  # columns of a sparse table of rows take as long as the whole

        def cuts(f: int) -> Cuts:
            if features[f].kind == Kind.CATEGORICAL:
                return category_cuts(features[f])
            column = column_of(X, f)
            if weight is None:
                column.sort()
                return sorted_cuts(column, None, spec.max_codes)
            order = np.argsort(column, kind="stable")
            return sorted_cuts(column[order], weight[order], spec.max_codes)

        return tuple(self.each(cuts, range(len(features))))

    def encode(self, X: NDArray[Any], cuts: tuple[Cuts, ...]) -> Codes:
        """Codes by row, all of the width that the widest column needs."""
        X = by_rows(X)
        n_codes = np.array([cut.n_codes for cut in cuts], np.int64)
        table = np.empty((X.shape[0], len(cuts)), code_dtype(int(n_codes.max(initial=0))))
        keys = [cut.values if cut.edges is None else cut.edges for cut in cuts]
        flat = np.concatenate([np.zeros(0), *keys])
        flat = floor_float32(flat) if X.dtype == np.float32 else flat
        offset = np.cumsum([0, *(k.size for k in keys)]).astype(np.int64)
        run = kernels(None).encode_rows

        def encode(rows: slice) -> None:
            run(block_of(X, rows), flat, offset, table[rows])

        self.each(encode, row_blocks(X))
        return Codes(tuple(table.T), Book.of(cuts), n_codes)

    def open(self, codes: Codes, target: Target, bags: Bags) -> Shard:
        """List the rows of every bag, four bytes a row."""
        shard = super().open(codes, target, bags)
        shard.rows = shard.rows.astype(np.uint32, copy=False)
        return shard

    def totals(self, shard: Shard) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Channels and extent of the roots, some roots a thread."""
        roots = np.arange(shard.start.size, dtype=np.int32)
        items = np.stack([roots, shard.start, shard.stop], axis=1).astype(np.int64)
        given = source_of(shard), layout_of(shard.target.layout, None)
        stats = np.zeros((roots.size, shard.target.layout.n_channels), np.int64)
        run = kernels(None).sum_rows
        self.each(lambda piece: run(given, piece, stats), self.pieces(items, 1))
        return np.ascontiguousarray(stats.T), self.extent(shard, roots)

    def search(self, table: OracleTable, slots: Slots, search: Search, turn: int | None = None) -> Candidates:
        """Count and search some features of a slot at a time."""
        if not search.criterion.traced:
            return self.search_untraced(table, slots, search)
        if search.groups is not None:
            own = partial(merge_with, kernels(RATIO).merge_groups, self.each)
            return search_apart(self, table, slots, search, own)
        require_known(self.name, search)
        shard = table.shard
        features = np.array(table.features, order="C")  # Numba would compile once more for other arrays
        k, m = features.shape
        layout = layout_of(shard.target.layout, search.limits)
        width = int(shard.codes.n_codes.max(initial=0)) + 1
        fair = -(-m * k // (2 * self.n_threads))  # so that few large nodes keep all threads at work
        block = max(1, min(FEATURES, TABLE_BYTES // (8 * width * layout[-1]), m, fair))
        first = np.arange(0, m, block)
        cells = np.empty((k, first.size, 5), np.int64)
        cells[:, :, 0] = np.arange(k)[:, None]
        cells[:, :, 1], cells[:, :, 2] = first, np.minimum(first + block, m)
        cells[:, :, 3], cells[:, :, 4] = shard.start[slots.id][:, None], shard.stop[slots.id][:, None]
        items = cells.reshape(-1, 5)
        figures, tests = np.zeros((k * m, 3)), np.empty((k * m, 5), np.int64)
        given, fixed = slots_of(slots), job_of(shard, Growth(search, Stop(), m), layout)
        run = kernels(search.criterion, is_pair(layout)).search_items

        def work(piece: NDArray[np.int64]) -> Any:
            own = room_of_nodes(shard.codes, fixed, block, CHUNK, int((piece[:, 4] - piece[:, 3]).max()))
            return run((*fixed, *own), piece, given, features, (figures, tests))

        lookups = np.concatenate([np.zeros((0, 3), np.int64), *self.each(work, self.pieces(items, 3))])
        return found_of(figures, tests, features, lookups)

    def pieces(self, items: NDArray[np.int64], first: int) -> list[NDArray[np.int64]]:
        """Items of nodes, whose rows stand in columns ``first`` and the next, in pieces of about as many rows."""
        rows = np.cumsum(items[:, first + 1] - items[:, first] + 16)
        if not rows.size:
            return []
        n = min(items.shape[0], TASKS * self.n_threads)
        ends = np.searchsorted(rows, np.arange(1, n) * (rows[-1] / n))
        return [piece for piece in np.split(items, np.unique(ends)) if piece.size]

    def finish_rows(self, shard: Shard, search: Search) -> int:
        """Rows of the largest node that `finish` takes: more where no column has a table, for all cuts are drawn."""
        width = max(1, len(shard.codes.columns)) * (shard.codes.columns[0].itemsize if shard.codes.columns else 1)
        drawn = {search.scan(int(kind)) for kind in np.unique(shard.codes.book.kind)} == {Scan.ONE_CUT}
        rows, nbytes = (DRAWN_ROWS, DRAWN_BYTES) if drawn else (PART_ROWS, PART_BYTES)
        return int(np.clip(nbytes // width, 64, rows))

    def finish(self, shard: Shard, slots: Slots, depth: NDArray[np.int32], growth: Growth, first: int) -> Subtrees:
        """Whole subtrees of small nodes."""
        layout = layout_of(shard.target.layout, growth.search.limits)
        items = np.empty((len(slots), 4), np.int64)
        items[:, 0], items[:, 1] = np.arange(len(slots)), depth
        items[:, 2], items[:, 3] = shard.start[slots.id], shard.stop[slots.id]
        given, fixed = slots_of(slots), job_of(shard, growth, layout)
        run = kernels(growth.search.criterion, is_pair(layout)).finish_slots

        def work(piece: NDArray[np.int64]) -> Any:
            most = int((piece[:, 3] - piece[:, 2]).max())
            own = room_of_parts(shard.codes, fixed, most)
            return piece, run((*fixed, *own), piece, given)

        grown = subtrees_of(self.each(work, self.pieces(items, 2)), shard, slots, first)
        self.work.rows += int(shard.target.layout.count(grown.born.stats).sum())  # of the nodes that were split
        return grown

    def children(self, shard: Shard, splits: Splits) -> NDArray[np.int64]:
        """Regroup the rows, and sum those of every branch."""
        n_branches = splits.n_branches.astype(np.int64)
        tests, lookup = places_of(shard, splits)
        stats = np.zeros((int(n_branches.sum()), shard.target.layout.n_channels), np.int64)
        if is_spread(splits):
            return self.children_spread(shard, splits, stats)
        size = np.zeros(stats.shape[0], np.int64)
        source, layout = source_of(shard), layout_of(shard.target.layout, None)
        run = kernels(None).split_rows

        def work(piece: NDArray[np.int64]) -> None:
            run((source, layout), shard.codes.n_codes, piece, lookup, (stats, size))

        self.each(work, self.pieces(tests, 6))
        start = np.repeat(shard.start[splits.node], n_branches)
        inside = np.cumsum(size) - size
        start += inside - np.repeat(inside[tests[:, 8]], n_branches)
        shard.regrouped = splits, start, start + size
        return np.ascontiguousarray(stats.T)

    def children_spread(self, shard: Shard, splits: Splits, stats: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same where rows go to several branches: these are counted, then written down and summed."""
        tests, lookup = places_of(shard, splits)
        source, layout, run = source_of(shard), layout_of(shard.target.layout, None), kernels(None)
        own, known, size = np.empty(shard.rows.size, np.int32), stats[:, 0].copy(), stats[:, 0].copy()
        pieces = self.pieces(tests, 6)
        self.each(lambda p: run.count_spread(source, shard.codes.n_codes, p, lookup, (own, known, size)), pieces)
        stop = np.cumsum(size)
        rows, share = np.empty(int(stop[-1]), shard.rows.dtype), np.empty(int(stop[-1]), np.int64)
        into = (*source[:4], np.zeros(0, np.int64), rows, share)
        self.each(lambda p: run.place_spread((source, into, layout), p, (own, known, stop - size), stats), pieces)
        shard.spread = splits, (rows, share, stop - size, stop)
        return np.ascontiguousarray(stats.T)

    def partition(self, shard: Shard, splits: Splits, children: NDArray[np.int32]) -> None:
        """The rows were regrouped when they were summed: record the ranges."""
        if is_spread(splits):
            if shard.spread is None or shard.spread[0] is not splits:
                self.children(shard, splits)
            assert shard.spread is not None
            (rows, share, start, stop), shard.spread = shard.spread[1], None
            shard.hold(rows, share)
            shard.place(children, start, stop)
            return
        if shard.regrouped is None or shard.regrouped[0] is not splits:
            self.children(shard, splits)
        assert shard.regrouped is not None
        shard.place(children, *shard.regrouped[1:])
        shard.regrouped = None

    def apply(self, forest: Forest, X: NDArray[Any]) -> NDArray[np.int32]:
        """Rows walk down all trees, some rows a thread."""
        X = by_rows(X)
        leaves = np.empty((X.shape[0], forest.roots.size), np.int32)
        run, (tests, roots, _) = kernels(None).leaves_of, walk_of(forest)

        def work(rows: slice) -> None:
            run(tests, roots, block_of(X, rows), leaves[rows])

        self.each(work, row_blocks(X))
        return leaves

    def predict(self, forest: Forest, X: NDArray[Any], share: Given = None, soft: Given = None) -> NDArray[np.float64]:
        """Add the trees in order; with soft thresholds as the oracle does."""
        if soft is not None:
            return super().predict(forest, X, share, soft)
        X = by_rows(X)
        total = np.zeros((X.shape[0], forest.value.shape[1]))
        (given, roots, value), run = walk_of(forest), kernels(None).add_values
        if share is not None:
            links = np.array(forest.n_children), np.array(share)
            given, run = (given, links, forest.max_depth), kernels(None).add_shares
        self.each(lambda rows: run(given, roots, value, block_of(X, rows), total[rows]), row_blocks(X))
        return total


def row_blocks(X: NDArray[Any]) -> list[slice]:
    """Rows that a thread takes at a time."""
    step = max(1, min(ROWS, CELLS // max(1, X.shape[1])))
    return [slice(first, min(first + step, X.shape[0])) for first in range(0, X.shape[0], step)]
