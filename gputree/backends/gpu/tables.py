"""Tables on the device: dense for features of one byte, sparse for those of two, some slots at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.gpu.codes import NOWHERE
from gputree.backends.gpu.driver import ARRAY, Driver, ints, longs, starts
from gputree.backends.gpu.shard import DeviceShard
from gputree.backends.gpu.sizes import THREADS, TILE, plan
from gputree.backends.protocol import DeviceError
from gputree.core.splits import Slots

SPAN = 1024  # entries of a block of `make_cells`
KEY_BITS = 64


@dataclass(frozen=True, slots=True)
class Cells:
    """One table of a chunk on the device, see kernels/cells.cuh."""

    table: ARRAY
    first: ARRAY
    end: ARRAY
    code: ARRAY
    n_cells: int
    sparse: bool


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some slots of a table, their features and where these lie."""

    shard: DeviceShard
    slots: Slots
    features: NDArray[np.int32]  # (lists, m): one list for all slots, or one each
    place: NDArray[np.int32]  # (lists, m)
    cell_of: NDArray[np.int64]  # (m + 1,)
    on_features: ARRAY
    on_place: ARRAY
    on_cell_of: ARRAY

    @property
    def m(self) -> int:
        """Features of a slot."""
        return int(self.features.shape[1])

    @property
    def lists(self) -> int:
        """1, or the number of slots."""
        return int(self.features.shape[0])

    @property
    def driver(self) -> Driver:
        """The device."""
        return self.shard.driver

    def tables(self) -> Iterator[Cells]:
        """The dense table, where a feature has one byte, and the sparse one, where a feature has two."""
        if (self.place >= 0).any():
            yield self.dense()
        if ((self.place < 0) & (self.place != NOWHERE)).any():
            yield self.sparse()

    def read(self, cells: Cells) -> tuple[NDArray[np.int64], ...]:
        """Pair, code and channels (C, M) of the cells of one table."""
        parts = sparse_cells(self, cells) if cells.sparse else dense_cells(self, cells.table.get())
        return tuple(np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))

    def dense(self) -> Cells:
        """Count through shared memory where slots have the rows to pay for it, else in global memory."""
        driver, target = self.driver, self.shard.target
        channels, m = target.layout.n_channels, self.m
        n_cells = len(self.slots) * int(self.cell_of[-1])
        table = driver.zeros(n_cells * channels, target.cell)
        codes = int(np.diff(self.cell_of).max(initial=1))
        how = plan(codes, channels, np.dtype(target.cell).itemsize, m, driver.sizes.shared_block)
        rows = self.shard.size(self.slots.id)
        many = rows >= codes * how.channels if how else np.zeros(rows.size, bool)
        if how and many.any():
            which = np.flatnonzero(many)
            tiles = starts(-(-rows[which] // TILE))
            shares = how.shares(driver.sizes.multiprocessors, driver.sizes.shared_multiprocessor, int(tiles[-1]))
            sizes = ints(codes, how.lanes, how.own, how.channels, how.columns, shares)
            kernel = driver.kernel("histogram", "count_shared", target.flavour)
            driver.allow_shared(kernel, how.nbytes)
            args = (*self.gather(which, tiles, TILE), *sizes, *self.shard.channels, *ints(channels), table)
            kernel((shares * how.parts,), (THREADS,), args, shared_mem=how.nbytes)
        if not many.all():
            which = np.flatnonzero(~many)
            kernel = driver.kernel("histogram", "count_global", target.flavour)
            args = (*self.gather(which, starts(rows[which])), *self.shard.channels, *ints(channels), table)
            driver.launch(kernel, int(rows[which].sum()) * m, 256, args)
        nothing = driver.nothing
        return Cells(table, nothing(np.int64), nothing(np.int64), nothing(np.uint16), n_cells, False)

    def gather(self, which: NDArray[np.intp], ptr: NDArray[np.int64], tile: int | None = None) -> tuple[Any, ...]:
        """The arguments of dense counts: rows of some slots, features; ptr counts tiles or rows before each slot."""
        put, codes = self.driver.put, self.shard.codes
        node = self.slots.id[which]
        start, stop = self.shard.start[node], self.shard.stop[node]
        tiled = (put(stop, np.int64),) if tile else ()
        return (
            *(codes.records, *ints(codes.words), *longs(codes.n), self.shard.rows, put(start, np.int64), *tiled),
            *(put(ptr, np.int64), put(which, np.int32), *ints(which.size), *(ints(tile) if tile else ())),
            *(self.on_place, *ints(self.lists, self.m), self.on_cell_of),
        )

    def sparse(self) -> Cells:
        """Sort the rows of all pairs by code, then count runs."""
        driver, target, codes = self.driver, self.shard.target, self.shard.codes
        pick = np.flatnonzero(((self.place < 0) & (self.place != NOWHERE)).any(axis=0))
        rows = self.shard.size(self.slots.id)
        n_entries = int(rows.sum()) * pick.size
        bits = position_bits(self.shard)
        keys = driver.empty(n_entries, np.uint64)
        every = np.arange(rows.size)
        args = (
            *(codes.wide, *longs(codes.n), self.shard.rows, driver.put(self.shard.start[self.slots.id], np.int64)),
            *(driver.put(starts(rows), np.int64), driver.put(every, np.int32), *ints(rows.size)),
            *(self.on_place, *ints(self.lists, self.m), driver.put(pick, np.int32), *ints(pick.size, bits)),
            *(*self.shard.repeats, keys),
        )
        driver.launch(driver.kernel("histogram", "make_keys", target.flavour), n_entries, 256, args)
        driver.sort(keys)
        return self.run_lengths(keys, n_entries, bits)

    def run_lengths(self, keys: ARRAY, n_entries: int, bits: int) -> Cells:
        """Cells of sorted entries."""
        driver, target, pairs = self.driver, self.shard.target, len(self.slots) * self.m
        spans = -(-n_entries // SPAN)
        before = driver.zeros(spans + 1, np.int64)
        first, end = driver.zeros(pairs, np.int64), driver.zeros(pairs, np.int64)
        code = driver.empty(n_entries, np.uint16)
        stats = driver.zeros(target.layout.n_channels * n_entries, target.cell)
        count_cells = driver.kernel("histogram", "count_cells", target.flavour)
        running_sums = driver.kernel("bags", "running_sums")
        make_cells = driver.kernel("histogram", "make_cells", target.flavour)
        if spans:
            head = (keys, *longs(n_entries), *ints(bits), before)
            count_cells((spans,), (256,), head)
            running_sums((1,), (32,), (before, *longs(spans + 1)))
            args = (*head, self.shard.rows, *longs(self.shard.codes.n), *self.shard.channels, first, end, code, stats)
            make_cells((spans,), (256,), args)
        return Cells(stats, first, end, code, n_entries, True)


def dense_cells(chunk: Chunk, table: NDArray[Any]) -> Iterator[tuple[NDArray[np.int64], ...]]:
    """Pair, code and channels of the cells of a dense table on the host, pair by pair."""
    channels = chunk.shard.target.layout.n_channels
    per_slot = table.reshape(len(chunk.slots), -1)
    for pair in range(len(chunk.slots) * chunk.m):
        slot, j = divmod(pair, chunk.m)
        begin, end = chunk.cell_of[j : j + 2] * channels
        stats = per_slot[slot, begin:end].reshape(channels, -1).astype(np.int64)
        code = np.flatnonzero(chunk.shard.target.layout.weight(stats))
        yield np.full(code.size, pair), code, stats[:, code]


def sparse_cells(chunk: Chunk, cells: Cells) -> Iterator[tuple[NDArray[np.int64], ...]]:
    """The same of a sparse table."""
    first, end, code = cells.first.get(), cells.end.get(), cells.code.get().astype(np.int64)
    stats = cells.table.get().reshape(chunk.shard.target.layout.n_channels, -1).astype(np.int64)
    for pair in range(len(chunk.slots) * chunk.m):
        here = slice(first[pair], end[pair])
        yield np.full(end[pair] - first[pair], pair), code[here], stats[:, here]


def chunks(shard: DeviceShard, slots: Slots, features: NDArray[np.int32], budget: int) -> Iterator[Chunk]:
    """Slots some at a time, so that their tables fit ``budget`` bytes; at least one slot at a time.

    features i4 (k, m), -1 = none.
    """
    one_list = len(slots) <= 1 or features.strides[0] == 0 or bool((features == features[:1]).all())
    lists = features[:1] if one_list else features
    known = lists >= 0
    place = np.where(known, shard.codes.place[np.where(known, lists, 0)], NOWHERE)
    width = np.where(place >= 0, shard.codes.n_codes[np.where(known, lists, 0)] + 1, 0).max(axis=0, initial=0)
    cell_of = starts(width)
    channels = shard.target.layout.n_channels * np.dtype(shard.target.cell).itemsize
    n_wide = int(((place < 0) & (place != NOWHERE)).any(axis=0).sum())
    rows = shard.size(slots.id)
    nbytes = int(cell_of[-1]) * (channels + 12) + rows * n_wide * (channels + 40)
    least = KEY_BITS - 17 - position_bits(shard) if n_wide else KEY_BITS
    most = min((1 << min(least, 62)) // max(features.shape[1], 1), 1 << 24)
    if most < 1:
        size = f"{shard.codes.n} rows and {features.shape[1]} features are more than one sort can hold"
        raise DeviceError(f"{size}: fit on fewer, with max_bins=255, or on device='cpu'")
    total, first = np.cumsum(nbytes), 0
    while first < len(slots):
        before = int(total[first - 1]) if first else 0
        stop = min(max(int(np.searchsorted(total, before + budget, side="right")), first + 1), first + most)
        own = slice(None) if one_list else slice(first, stop)
        yield chunk(shard, slots.take(slice(first, stop)), lists[own], place[own], cell_of)
        first = stop


def position_bits(shard: DeviceShard) -> int:
    """Bits of a position among the rows of a shard."""
    return max(1, (shard.positions - 1).bit_length())


def chunk(
    shard: DeviceShard, slots: Slots, features: NDArray[np.int32], place: NDArray[np.int32], cell_of: NDArray[np.int64]
) -> Chunk:
    """Copy the features of some slots to the device."""
    put = shard.driver.put
    on = put(np.maximum(features, 0), np.int32), put(place, np.int32), put(cell_of, np.int32)
    return Chunk(shard, slots, features, place, cell_of, *on)
