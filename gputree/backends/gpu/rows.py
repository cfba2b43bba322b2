"""Rows move to the branches of their tests; what branches add up to. May import core."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.gpu.codes import NOWHERE, DeviceCodes
from gputree.backends.gpu.driver import ARRAY, Driver, ints, longs, starts
from gputree.backends.gpu.shard import DeviceShard, DeviceTarget, Regrouped, word_bits, words
from gputree.backends.protocol import DeviceError
from gputree.core.bags import Bags, Draws, listed
from gputree.core.forest import fitting
from gputree.core.splits import NO_SPLITS, Splits
from gputree.core.target import Target

TILE = 1024  # rows of a warp
WARPS = 4  # of a block
SPAN = 1024  # rows of a block that lists bags
ROOM = 1 << 22  # rows that are regrouped at a time, or those of a tree: the room for them stays in the device's cache
MOST_ROWS = (1 << 32) - 1  # a row number is 32 bits
MOST_BITS = 31  # of a row number beside how often the row counts
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
    listed_bags = every_row(driver, n, bags.n_trees) if bags.draws is None else drawn_rows(driver, n, bags)
    rows, odd, bits, ends = listed_bags
    extent = np.zeros((bags.n_trees, target.layout.n_outputs, 2))
    room = max(int(np.diff(ends).max(initial=0)), min(int(ends[-1]), ROOM))
    aside = driver.empty(room, np.uint32), driver.empty(room, np.uint16)
    return DeviceShard(codes, on_device, rows, odd, bits, ends[:-1], ends[1:], extent, *aside)


def every_row(driver: Driver, n: int, trees: int) -> tuple[ARRAY, ARRAY, int, NDArray[np.int64]]:
    """All rows for every tree."""
    rows = driver.empty(n * trees, np.uint32)
    driver.launch(driver.kernel("encode", "all_rows"), n * trees, 256, (rows, *longs(n, n * trees)))
    return rows, driver.nothing(np.uint32), 0, np.arange(trees + 1, dtype=np.int64) * n


def drawn_rows(driver: Driver, n: int, bags: Bags) -> tuple[ARRAY, ARRAY, int, NDArray[np.int64]]:
    """Words of the drawn rows, pairs of those drawn too often for them, and where each tree's begin and end."""
    draws, trees = bags.draws, bags.n_trees
    if not (isinstance(draws, Draws) and draws.replace):
        return listed_rows(driver, n, bags)
    bits, often, spans = word_bits(n), driver.zeros((trees, n), np.uint32), -(-n // SPAN)
    if bits > MOST_BITS:
        raise DeviceError(f"bags of {n} rows; at most {1 << MOST_BITS} fit one device: fit on a part of them")
    ends = driver.nothing(np.uint64) if draws.ends is None else driver.put(draws.ends, np.uint64)
    args = (
        *(driver.put(bags.keys(), np.uint64), *ints(trees), driver.put(draws.rows, np.int64)),
        *(driver.put(draws.ptr, np.int64), driver.put(starts(draws.sizes), np.int64), *ints(draws.sizes.size)),
        *(ends, *ints(draws.ends is not None), *longs(n), often),
    )
    driver.launch(driver.kernel("bags", "draw_rows"), draws.total * trees, 256, args)
    before, n_odd = driver.zeros(trees * spans + 1, np.int64), driver.zeros(2, np.uint32)
    head = (often, *longs(n), *ints(bits), before)
    driver.kernel("bags", "count_drawn")((trees * spans,), (256,), (*head, n_odd))
    driver.kernel("bags", "running_sums")((1,), (32,), (before, *longs(trees * spans + 1)))
    stops = before.get()[::spans]
    rows, odd = driver.empty(int(stops[-1]), np.uint32), driver.empty(max(1, 2 * int(n_odd.get()[0])), np.uint32)
    driver.kernel("bags", "list_drawn")((trees * spans,), (256,), (*head, rows, n_odd[1:], odd))
    return rows, odd, bits, stops


def listed_rows(driver: Driver, n: int, bags: Bags) -> tuple[ARRAY, ARRAY, int, NDArray[np.int64]]:
    """The same of bags that the host lists: draws without replacement, which are of few rows."""
    rows, times, stops = listed(bags, n)
    if int(times.max(initial=1)) == 1:
        return driver.put(rows, np.uint32), driver.nothing(np.uint32), 0, stops
    own, odd = words(rows, times, n)
    return driver.put(own, np.uint32), driver.put([*odd, 0], np.uint32), word_bits(n), stops


def totals(shard: DeviceShard) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Channels i8 (C, T) and extent f8 (T, O, 2) of the roots: tests with one branch."""
    trees = shard.start.size
    nothing = np.zeros(trees)
    roots = replace(
        NO_SPLITS,
        score=nothing,
        gain=nothing,
        low=nothing,
        node=np.arange(trees, dtype=np.int32),
        feature=np.full(trees, -1, np.int32),
        kind=np.zeros(trees, np.uint8),
        cut=np.zeros(trees, np.int32),
        missing=np.zeros(trees, np.int32),
        n_branches=np.ones(trees, np.int32),
        lookup_ptr=np.zeros(trees + 1, np.int64),
    )
    channels = count_branches(shard, roots)
    assert shard.regrouped is not None
    shard.extent, shard.regrouped = shard.regrouped.extent, None
    return channels, shard.extent


def count_branches(shard: DeviceShard, splits: Splits) -> NDArray[np.int64]:
    """Channels i8 (C, branches) of the branches of splits; their rows are regrouped, some splits at a time."""
    target, start, size = shard.target, shard.start[splits.node], shard.size(splits.node)
    parts = list(fitting(size, shard.moved.size))
    several = [splits.take(np.arange(part.start, part.stop)) for part in parts] if len(parts) > 1 else [splits]
    waiting = []
    for part in several:  # a comprehension would hold the shard when a launch fails
        waiting.append(regroup(shard, part))
    found = np.concatenate([totals.get() for totals in waiting], axis=1)
    rows, stats = found[0], found[1:]
    begin = starts(rows)[:-1]
    begin += np.repeat(start - begin[starts(splits.n_branches)[:-1]], splits.n_branches)
    shard.regrouped = Regrouped(splits, begin, begin + rows, extents(target, stats, rows))
    return np.ascontiguousarray(stats[: target.layout.n_channels])


def regroup(shard: DeviceShard, splits: Splits) -> ARRAY:
    """Put the rows of splits in the order of their branches, and in the old one inside; what branches add up to."""
    driver, target = shard.driver, shard.target
    where, counts, tiles = tiled(shard, splits)
    aside, outputs = starts(shard.size(splits.node))[:-1], 0 if target.layout.counts else target.layout.n_outputs
    totals = driver.zeros((1 + target.layout.n_channels + 2 * outputs, int(splits.n_branches.sum())), np.int64)
    (first, stop, *ptr), before = where, driver.put(aside, np.int64)
    kernels = [driver.kernel("partition", n, target.flavour) for n in ("count_branches", "move_rows", "put_back")]
    args = (*tested(shard, splits, where), *shard.channels, target.y, *ints(target.layout.n_channels))
    launch_warps(driver, kernels[0], tiles, (*args, before, shard.branch_of, counts, totals[1:], totals[0]))
    set_places(shard, splits, where, counts)
    args = (first, stop, before, *ptr, *ints(len(splits), TILE), shard.branch_of, counts, shard.rows, shard.moved)
    launch_warps(driver, kernels[1], tiles, args)
    args = (first, stop, before, ptr[0], *ints(len(splits), TILE), shard.moved, shard.rows)
    launch_warps(driver, kernels[2], tiles, args)
    return totals


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


def place_rows(shard: DeviceShard, splits: Splits, children: NDArray[np.int32]) -> None:
    """Record where the rows of branches stand; children i4 (branches,) are the new nodes."""
    if shard.regrouped is None or shard.regrouped.splits is not splits:
        count_branches(shard, splits)
    assert shard.regrouped is not None
    ready, shard.regrouped = shard.regrouped, None
    shard.place(children, ready.start, ready.stop, ready.extent)
