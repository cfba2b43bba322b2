"""Rows move to the branches of their tests; what branches add up to. May import core."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.gpu.codes import NOWHERE, DeviceCodes
from gputree.backends.gpu.driver import ARRAY, Driver, ints, longs, starts
from gputree.backends.gpu.shard import DeviceShard, DeviceTarget, Pending
from gputree.backends.protocol import DeviceError
from gputree.core.bags import Bags, Draws, listed
from gputree.core.splits import NO_SPLITS, Splits
from gputree.core.target import Target

TILE = 1024  # rows of a warp
WARPS = 4  # of a block
SPAN = 1024  # rows of a block that lists bags
MOST_ROWS = (1 << 32) - 1  # a row number is 32 bits
SIGN = np.uint64(1 << 63)


def open_shard(codes: DeviceCodes, target: Target, bags: Bags) -> DeviceShard:
    """List the rows of every bag."""
    driver, n = codes.driver, codes.n
    if n > MOST_ROWS:
        raise DeviceError(f"{n} rows; at most {MOST_ROWS} fit one device: fit on a part of them")
    on_device = DeviceTarget.of(driver, target)
    if target.labels is not None and target.layout.n_outputs == 1 and codes.labelled is not target:
        if codes.labelled is not None:  # another shard reads those labels
            codes = replace(codes, records=codes.records.copy())
        codes.labelled = target
        args = (on_device.labels, codes.records, *ints(codes.words), *longs(n), *ints(codes.groups))
        driver.launch(driver.kernel("encode", "put_labels"), n * codes.groups, 256, args)
    rows, times, ends = every_row(driver, n, bags.n_trees) if bags.draws is None else drawn_rows(driver, n, bags)
    extent = np.zeros((bags.n_trees, target.layout.n_outputs, 2))
    branch_of, moved = driver.empty(int(ends[-1]), np.uint16), np.zeros(bags.n_trees, bool)
    return DeviceShard(codes, on_device, int(ends[-1]), rows, branch_of, ends[:-1], ends[1:], extent, moved, times)


def every_row(driver: Driver, n: int, trees: int) -> tuple[ARRAY, None, NDArray[np.int64]]:
    """All rows for every tree."""
    rows = driver.empty(2 * n * trees, np.uint32)
    driver.launch(driver.kernel("encode", "all_rows"), n * trees, 256, (rows, *longs(n, n * trees)))
    return rows, None, np.arange(trees + 1, dtype=np.int64) * n


def drawn_rows(driver: Driver, n: int, bags: Bags) -> tuple[ARRAY, ARRAY, NDArray[np.int64]]:
    """Drawn rows and how often each, in two halves, and where each tree's begin and end."""
    draws, trees = bags.draws, bags.n_trees
    if not (isinstance(draws, Draws) and draws.replace):
        return listed_rows(driver, n, bags)
    often, spans = driver.zeros((trees, n), np.uint32), -(-n // SPAN)
    ends = driver.nothing(np.uint64) if draws.ends is None else driver.put(draws.ends, np.uint64)
    args = (
        *(driver.put(bags.keys(), np.uint64), *ints(trees), driver.put(draws.rows, np.int64)),
        *(driver.put(draws.ptr, np.int64), driver.put(starts(draws.sizes), np.int64), *ints(draws.sizes.size)),
        *(ends, *ints(draws.ends is not None), *longs(n), often),
    )
    driver.launch(driver.kernel("bags", "draw_rows"), draws.total * trees, 256, args)
    before = driver.zeros(trees * spans + 1, np.int64)
    driver.kernel("bags", "count_drawn")((trees * spans,), (256,), (often, *longs(n), before))
    driver.kernel("bags", "running_sums")((1,), (32,), (before, *longs(trees * spans + 1)))
    stops = before.get()[::spans]
    rows, times = (driver.empty(2 * int(stops[-1]), np.uint32) for _ in range(2))
    driver.kernel("bags", "list_drawn")((trees * spans,), (256,), (often, *longs(n), before, rows, times))
    return rows, times, stops


def listed_rows(driver: Driver, n: int, bags: Bags) -> tuple[ARRAY, ARRAY, NDArray[np.int64]]:
    """The same of bags that the host lists: draws without replacement, which are of few rows."""
    rows, times, stops = listed(bags, n)
    twice = np.concatenate([rows, rows]), np.concatenate([times, times])
    return driver.put(twice[0], np.uint32), driver.put(twice[1], np.uint32), stops


def totals(shard: DeviceShard) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Channels i8 (C, T) and extent f8 (T, O, 2) of the roots: tests with one branch."""
    trees = shard.start.size
    roots = replace(
        NO_SPLITS,
        node=np.arange(trees, dtype=np.int32),
        feature=np.full(trees, -1, np.int32),
        kind=np.zeros(trees, np.uint8),
        cut=np.zeros(trees, np.int32),
        missing=np.zeros(trees, np.int32),
        n_branches=np.ones(trees, np.int32),
        lookup_ptr=np.zeros(trees + 1, np.int64),
    )
    channels = count_branches(shard, roots)
    shard.extent = shard.pending.extent if shard.pending else shard.extent
    shard.pending = None
    return channels, shard.extent


def count_branches(shard: DeviceShard, splits: Splits) -> NDArray[np.int64]:
    """Channels i8 (C, branches) of the branches of splits; keeps what `move_rows` needs."""
    driver, target = shard.driver, shard.target
    where, counts, tiles = tiled(shard, splits)
    outputs = 0 if target.layout.counts else target.layout.n_outputs
    totals = driver.zeros((1 + target.layout.n_channels + 2 * outputs, int(splits.n_branches.sum())), np.int64)
    args = (
        *(*tested(shard, splits, where), *shard.channels, target.y, *ints(target.layout.n_channels)),
        *(*longs(shard.positions), shard.branch_of, counts, totals[1:], totals[0]),
    )
    launch_warps(driver, driver.kernel("partition", "count_branches", target.flavour), tiles, args)
    found = totals.get()
    rows, stats = found[0], found[1:]
    shard.pending = Pending(splits, where, counts, rows, extents(target, stats, rows), tiles)
    return np.ascontiguousarray(stats[: target.layout.n_channels])


def tiled(shard: DeviceShard, splits: Splits) -> tuple[tuple[ARRAY, ...], ARRAY, int]:
    """Where the rows of splits lie, counts of 0 for every branch of every tile, and the number of tiles.

    Where: first and last position, tiles, counts and branches of every split.
    """
    put, start, size = shard.driver.put, shard.start[splits.node], shard.size(splits.node)
    tiles, branch_ptr = starts(-(-size // TILE)), starts(splits.n_branches)
    count_ptr = starts(np.diff(tiles) * splits.n_branches)
    where = tuple(put(a, np.int64) for a in (start, start + size, tiles, count_ptr, branch_ptr))
    return where, shard.driver.zeros(int(count_ptr[-1]), np.uint32), int(tiles[-1])


def tested(shard: DeviceShard, splits: Splits, where: tuple[ARRAY, ...]) -> tuple[Any, ...]:
    """The arguments of a kernel that finds the branches of the rows of splits."""
    put, known = shard.driver.put, splits.feature >= 0
    place = np.full(len(splits), NOWHERE, np.int32)
    place[known] = shard.codes.place[splits.feature[known]]
    return (
        *(*shard.gather(), *where, *ints(len(splits), TILE)),
        *(put(a, np.int32) for a in (place, splits.kind, splits.cut, splits.missing)),
        put(splits.lookup_ptr, np.int64),
        *(put(a, np.uint16) for a in (splits.lookup_code, splits.lookup_branch)),
    )


def set_places(shard: DeviceShard, splits: Splits, where: tuple[ARRAY, ...], counts: ARRAY) -> None:
    """Turn the counts of branches by tile into the places where their rows begin, counted from those of the split."""
    driver = shard.driver
    _, _, tiles, count_ptr, branch_ptr = where
    kernel = driver.kernel("partition", "offsets", shard.target.flavour)
    launch_warps(driver, kernel, len(splits), (tiles, count_ptr, branch_ptr, *ints(len(splits)), counts))


def launch_warps(driver: Driver, kernel: Any, warps: int, args: tuple[Any, ...]) -> None:
    """Launch a kernel whose warps share the work."""
    driver.launch(kernel, 32 * warps, 32 * WARPS, args)


def extents(target: DeviceTarget, found: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Least and greatest y of branches f8 (branches, O, 2), 0 without rows, from their integer images."""
    outputs, c = target.layout.n_outputs, target.layout.n_channels
    result = np.zeros((rows.size, outputs, 2))
    if not target.layout.counts:
        high, low = found[c:].reshape(2, outputs, rows.size).view(np.uint64)
        image = np.stack([~low, high])
        bits = np.where(image >> np.uint64(63), image ^ SIGN, ~image)
        result[rows > 0] = bits.view(np.float64).T[rows > 0]
    return result


def move_rows(shard: DeviceShard, splits: Splits, children: NDArray[np.int32]) -> None:
    """Regroup rows by branch, keeping their order inside a branch; children i4 (branches,) are the new nodes."""
    if shard.pending is None or shard.pending.splits is not splits:
        count_branches(shard, splits)
    ready, shard.pending = shard.pending, None
    if ready is None or not children.size:
        return
    driver, start = shard.driver, shard.start[splits.node]
    to = np.where(start < shard.positions, start + shard.positions, start - shard.positions)
    set_places(shard, splits, ready.where, ready.counts)
    first, stop, *tiles = ready.where
    args = (first, stop, driver.put(to, np.int64), *tiles, *ints(len(splits), TILE), *longs(shard.positions))
    args = (*args, shard.branch_of, ready.counts, shard.rows, *shard.repeats)
    launch_warps(driver, driver.kernel("partition", "move_rows", shard.target.flavour), ready.tiles, args)
    inside = starts(ready.rows)[:-1]
    own = inside - np.repeat(inside[starts(splits.n_branches)[:-1]], splits.n_branches)
    begin = np.repeat(to, splits.n_branches) + own
    shard.moved[splits.node] = True
    shard.place(children, begin, begin + ready.rows, ready.extent)
