"""Between the protocol's records and those of the kernels. May import core, the protocol and the oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.cells import DENSE, WORD
from gputree.backends.cpu.finish import DEPTH, FIRST, PARENT, STATS, STOP
from gputree.backends.cpu.records import Layout as Layout_
from gputree.backends.cpu.walk import LEAF_BIT, LOOKUP_BIT, SECOND_BIT, Tests
from gputree.backends.groups import Groups, ends
from gputree.backends.nodes import blank
from gputree.backends.oracle import candidates, dense
from gputree.backends.protocol import Subtrees
from gputree.backends.shard import Codes, Shard
from gputree.core.criteria import TargetKind
from gputree.core.forest import Forest, Grown, Test
from gputree.core.schema import BYTE_CODES, Kind
from gputree.core.splits import Candidates, GroupRule, Growth, Limits, Missing, Scan, Search, Slots, Splits
from gputree.core.target import Layout

MOST = int(np.iinfo(np.int64).max)
LISTED = 8  # channels from which rows are listed, where cells of tables would be so many times as many
PIECES = 64  # of the segments whose categories are merged
WALKS: dict[int, tuple[tuple[Any, ...], NDArray[np.int32], NDArray[np.float64]]] = {}


def source_of(shard: Shard) -> tuple[Any, ...]:
    """The rows of a shard as kernels read them."""
    target, none = shard.target, np.zeros(0, np.int64)
    blank_rows, units, times = np.zeros((0, 0)), target.weights.units, shard.times
    if shard.share is not None:
        units, times = None, shard.share
    return (
        shard.codes.columns[0].base if shard.codes.columns else np.zeros((target.n_rows, 0), np.uint8),
        blank_rows.astype(np.int32) if target.labels is None else target.labels,
        blank_rows.astype(np.int64) if target.sums is None else target.sums.values,
        blank_rows if target.sums is None else target.sums.y,
        none if units is None else units,
        shard.rows,
        np.zeros(0, np.uint8) if times is None else times,
    )


def layout_of(layout: Layout, limits: Limits | None) -> tuple[Any, ...]:
    """A layout as kernels read it."""
    first = [layout.output(o).start for o in range(layout.n_outputs)]
    without = layout.rows >= 0 and (limits is None or limits.min_rows <= 1)
    return (
        np.array(first, np.int64),
        np.array(layout.sizes, np.int64),
        np.array(layout.scale, np.float64),
        layout.counts,
        layout.kind is TargetKind.CENTRED_SUMS,
        layout.rows,
        layout.n_channels,
        layout.n_channels - without,
    )


def is_pair(layout: tuple[Any, ...]) -> bool:
    """Whether tables have one output and two channels: two classes, or weight and sum."""
    kinds = Layout_(*layout)
    return kinds.first.size == 1 and kinds.table == 2 and kinds.sizes[0] == (2 if kinds.counts else 1)


def linked_columns(shard: Shard, search: Search, layout: tuple[Any, ...]) -> NDArray[np.uint8]:
    """Columns of numbers (F,) whose rows are listed by code: tables of so many classes would be mostly empty."""
    kinds, n_codes, kind = Layout_(*layout), shard.codes.n_codes, shard.codes.book.kind
    plain = kinds.counts and kinds.first.size == 1 and search.cuts is None and search.missing is not Missing.SPREAD
    cuts = np.array([search.scan(int(k)) in (Scan.CUTS, Scan.ONE_CUT) for k in kind], bool)
    many = (n_codes > BYTE_CODES) & (n_codes * kinds.table > LISTED * shard.target.n_rows)
    return (plain & (kinds.table >= LISTED) & cuts & many).astype(np.uint8)


def meaning_of(codes: Codes, search: Search, linked: NDArray[np.uint8]) -> tuple[Any, ...]:
    """What codes mean, as kernels read it."""
    book = codes.book
    scans = [search.scan(int(kind)) for kind in book.kind]
    return (
        book.values,
        book.edges,
        book.offset,
        codes.n_codes,
        book.declared,
        book.exact.astype(np.uint8),
        np.array([-1 if scan is None else int(scan) for scan in scans], np.int64),
        linked,
    )


def rules_of(growth: Growth, layout: Layout) -> tuple[Any, ...]:
    """Limits as kernels read them."""
    limits, stop, turn, cuts = growth.search.limits, growth.stop, growth.turn, growth.search.cuts
    monotone = np.zeros(0, np.int64) if limits.monotone is None else limits.monotone.astype(np.int64)
    by_mean = layout.n_outputs == 1 and not (layout.counts and layout.sizes[0] > 2)
    return (
        monotone,
        limits.min_rows,
        limits.min_weight,
        min(limits.max_branches or 0, MOST),
        limits.missing_alone,
        limits.least_met,
        by_mean,
        turn,
        MOST if stop.max_depth is None else min(stop.max_depth, MOST),
        stop.min_rows,
        float(stop.min_gain),
        float(stop.above),
        growth.search.missing is Missing.SPREAD,
        limits.heavy or 0,
        float(limits.min_info),
        np.zeros(0) if cuts is None else np.array([getattr(cuts, f.name) for f in fields(cuts)], np.float64),
    )


def job_of(shard: Shard, growth: Growth, layout: tuple[Any, ...]) -> tuple[tuple[Any, ...], ...]:
    """What all threads share of a `records.Job`."""
    meaning = meaning_of(shard.codes, growth.search, linked_columns(shard, growth.search, layout))
    return source_of(shard), layout, meaning, rules_of(growth, shard.target.layout)


def places_of(shard: Shard, splits: Splits) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tests (k, 10) as `rows.split_rows` reads them, and the cells of their lookups."""
    ends = np.cumsum(splits.n_branches.astype(np.int64))
    columns = (
        *(splits.feature, splits.cut, splits.missing, splits.kind == Test.LOOKUP),
        *(splits.lookup_ptr[:-1], splits.lookup_ptr[1:]),
        *(shard.start[splits.node], shard.stop[splits.node]),
        *(ends - splits.n_branches, ends),
    )
    tests = np.stack([column.astype(np.int64) for column in columns], axis=1)
    return tests, np.stack([splits.lookup_code, splits.lookup_branch], axis=1).astype(np.int64)


def slots_of(slots: Slots) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.float64]]:
    """Channels (k, C), keys (k,) and bounds (k, 2) of open nodes."""
    return np.ascontiguousarray(slots.stats.T), slots.key, np.ascontiguousarray(slots.bounds.T)


def room_of_nodes(codes: Codes, fixed: tuple[Any, ...], features: int, rows: int, most: int) -> tuple[Any, Any]:
    """A thread's own part and scratch to search nodes of at most so many rows, some features and rows at a time.

    ``fixed`` as of `job_of`. All rows of a node are there at once where they are listed.
    """
    rows = max(rows, most) if fixed[2][-1].any() else rows
    return room(codes, fixed, (features, rows, features), codes.n_codes, 0)


def room_of_parts(codes: Codes, fixed: tuple[Any, ...], rows: int) -> tuple[Any, Any]:
    """The same to finish nodes of so many rows, feature by feature: codes that are more are numbered anew."""
    known = codes.n_codes
    cells = np.where(codes.book.kind == Kind.NUMERIC, np.minimum(known, DENSE * rows), known)
    return room(codes, fixed, (known.size, rows, 1), cells, 1 + int(known.max(initial=0)))


def categories_of(codes: Codes) -> int:
    """Categories of the column that has most."""
    return int(codes.n_codes[codes.book.kind == Kind.CATEGORICAL].max(initial=0))


def room(
    codes: Codes, fixed: tuple[Any, ...], sizes: tuple[int, int, int], most: NDArray[np.int64], numbered: int
) -> tuple[Any, Any]:
    """A part and a scratch for at ``most`` so many codes of each column (F,), which may be ``numbered`` anew.

    sizes: features and rows of the part, and tables.
    """
    kinds, linked, (features, rows, tables) = Layout_(*fixed[1]), fixed[2][-1] > 0, sizes
    outputs, n_features, cells = kinds.first.size, codes.n_codes.size, 1 + int(most.max(initial=0))
    counted = (1 + int(most[~linked].max(initial=0))) * kinds.table
    table = max(counted, cells) + rows if linked.any() else counted
    listed = 1 + categories_of(codes)
    part = (
        np.empty((features, rows), codes.columns[0].dtype if codes.columns else np.uint8),
        np.empty(rows, np.uint32),
        np.empty((outputs, rows), np.uint32),
        np.empty(rows, np.int64),
        np.empty((outputs, rows), np.int64),
        np.empty((outputs, rows)),
        np.zeros(features, np.int64),
        np.empty((features, rows if numbered else 0), np.uint32),
    )
    scratch = (
        np.zeros((tables, table), np.int64),
        np.zeros((tables, max(cells, numbered) // WORD + 1), np.uint64),
        np.empty(numbered, np.uint32),
        np.empty(cells, np.int64),
        np.empty(cells, np.int64),
        np.empty(cells),
        np.empty(kinds.table, np.int64),
        np.empty((2, 4)),
        np.empty((2, 6), np.int64),
        np.empty((2, listed), np.uint16),
        np.empty((2, listed), np.uint16),
        np.empty(n_features, np.uint64),
        np.empty(n_features, np.int64),
        np.empty(rows, np.uint32),
        np.empty(rows, np.int32),
    )
    return part, scratch


def walk_of(forest: Forest) -> tuple[tuple[Any, ...], NDArray[np.int32], NDArray[np.float64]]:
    """Tests, roots and values as kernels read them; made once for a forest that is locked."""
    if (found := WALKS.get(id(forest))) is not None:
        return found
    made = tests_of(forest), np.array(forest.roots), np.array(forest.value)
    if not any(getattr(forest, f.name).flags.writeable for f in fields(forest)):
        WALKS[id(forest)] = made
        finalize(forest, WALKS.pop, id(forest), None).atexit = False
    return made


def tests_of(forest: Forest) -> tuple[Any, ...]:
    """What a walk reads."""
    inner, lookup = forest.kind != Test.LEAF, forest.kind == Test.LOOKUP
    child = np.where(inner, forest.first_child, np.arange(forest.n_nodes)).astype(np.int64)
    bits = np.where(lookup, LOOKUP_BIT, 0) | np.where(forest.missing == 1, SECOND_BIT, 0) | forest.feature
    low = np.where(inner, forest.low, np.inf)
    node = np.stack([low.view(np.int64), child << 32 | np.where(inner, bits, LEAF_BIT)], axis=1)
    plain = not lookup.any() and bool(((forest.n_children == 2) & (forest.missing <= 1))[inner].all())
    rest = (getattr(forest, name) for name in Tests._fields[2:])
    return (plain, node, *(np.array(array) for array in rest))  # copies: Numba compiles once more for what is locked


def merge_with(run: Any, each: Callable[[Any, Any], Any], groups: Groups, rule: GroupRule) -> NDArray[np.int64]:
    """`groups.merged`, by the kernel `merge_groups`; ``each`` gives threads some segments."""
    first = np.concatenate([[0], np.cumsum(np.bincount(groups.seg, minlength=groups.terms.shape[1]))])
    into = np.arange(groups.seg.size) - first[groups.seg]
    limits = np.array([groups.heavy, rule.rise, rule.kept], np.float64)
    counts, terms = np.array(groups.counts.T, order="C"), np.array(groups.terms.T, order="C")
    step = max(1, terms.shape[0] // PIECES)

    def work(s: int) -> None:
        run(counts, first[s : s + step + 1], terms[s : s + step], limits, into)

    each(work, range(0, terms.shape[0], step))
    return ends(into + first[groups.seg])


def found_of(
    figures: NDArray[np.float64], tests: NDArray[np.int64], features: NDArray[np.int32], lookups: NDArray[np.int64]
) -> Candidates:
    """The protocol's record of the best tests."""
    best = blank(tests.shape[0])
    best.score[:], best.gain[:], best.low[:] = figures.T
    best.kind[:], best.cut[:], best.missing[:], best.n_branches[:] = tests[:, :4].T
    pair, code, branch = lookups.T
    return candidates(best, features, [(pair, code.astype(np.uint16), branch.astype(np.uint16))])


def subtrees_of(
    done: list[tuple[NDArray[np.int64], tuple[NDArray[Any], ...]]], shard: Shard, slots: Slots, first: int
) -> Subtrees:
    """What the threads have grown, as one: new nodes are numbered from ``first`` on, piece by piece.

    A piece is its items and the fields of `finish.Grown`; the slots themselves are its first nodes.
    """
    parts, shift = [], first
    for piece, (node, key, bounds, test, figures, lookup, used) in done:
        own, (n, t, c) = piece.shape[0], used
        ids = np.concatenate([slots.id[piece[:, 0]], shift + np.arange(n - own)]).astype(np.int64)
        node, test = node[own:n].copy(), test[:t].copy()
        node[:, PARENT], test[:, 0] = ids[node[:, PARENT]], ids[test[:, 0]]
        parts.append((node, key[own:n, 0], bounds[own:n], test, figures[:t], lookup[:c]))
        shift += n - own
    node, key, bounds, test, figures, lookup = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    shard.place(np.arange(first, shift), node[:, FIRST], node[:, STOP])
    parent, depth = node[:, PARENT].astype(np.int32), node[:, DEPTH].astype(np.int32)
    born = Grown(parent, depth, key, np.ascontiguousarray(node[:, STATS:].T), np.ascontiguousarray(bounds.T))
    return Subtrees(splits_of(test, figures, lookup), born)


def splits_of(test: NDArray[np.int64], figures: NDArray[np.float64], lookup: NDArray[np.int64]) -> Splits:
    """Tests of subtrees; columns as `finish.note_test` writes them."""
    return Splits(
        node=test[:, 0].astype(np.int32),
        feature=test[:, 2].astype(np.int32),
        score=figures[:, 1],
        gain=np.zeros(test.shape[0]),  # used up
        kind=test[:, 1].astype(np.uint8),
        cut=test[:, 6].astype(np.int32),
        low=figures[:, 0],
        missing=test[:, 5].astype(np.int32),
        n_branches=test[:, 4].astype(np.int32),
        lookup_ptr=np.concatenate([[0], np.cumsum(test[:, 7])]).astype(np.int64),
        lookup_code=lookup[:, 0].astype(np.uint16),
        lookup_branch=lookup[:, 1].astype(np.uint16),
    )


def by_rows(X: Any) -> Any:
    """The table; a sparse one so that its rows are quick to take."""
    return X if isinstance(X, np.ndarray) else X.tocsr()


def block_of(X: NDArray[Any], rows: slice) -> NDArray[Any]:
    """Some rows as kernels take them, who are compiled once more for others."""
    block: NDArray[Any] = np.require(dense(X[rows]), requirements=["C", "W"])
    return block


def column_of(X: NDArray[Any], f: int) -> NDArray[Any]:
    """One column as an array of its own."""
    column: NDArray[Any] = np.array(dense(X[:, f : f + 1])[:, 0])
    return column
