"""Rows on the device where those with a missing value go to several branches. May import core.

Such rows have a weight at each position. The rows of nodes that are not split are dropped, for growth is level by
level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.gpu.driver import ARRAY, ints, longs, starts
from gputree.backends.gpu.rows import TILE, arguments, launch_warps
from gputree.backends.gpu.shard import DeviceShard
from gputree.core.splits import Splits


@dataclass(slots=True)
class Spread:
    """Splits whose rows have been counted and are still to be put down."""

    splits: Splits
    where: tuple[ARRAY, ...]  # first and last position, tiles, counts and branches of every split
    tiles: int
    known: ARRAY
    counts: ARRAY
    rows: NDArray[np.int64]  # of every branch


def count_shares(shard: DeviceShard, splits: Splits) -> NDArray[np.int64]:
    """Channels i8 (C, branches) of the branches of splits; keeps what `place_shares` needs."""
    driver, target = shard.driver, shard.target
    start, size = shard.start[splits.node], shard.size(splits.node)
    tiles, branch_ptr = starts(-(-size // TILE)), starts(splits.n_branches)
    count_ptr, n = starts(np.diff(tiles) * splits.n_branches), int(branch_ptr[-1])
    where = tuple(driver.put(a, np.int64) for a in (start, start + size, tiles, count_ptr, branch_ptr))
    known, counts = driver.zeros(n, np.int64), driver.zeros(int(count_ptr[-1]), np.uint32)
    totals = driver.zeros((1 + target.layout.n_channels, n), np.int64)
    here = (*longs(shard.positions), shard.branch_of, known)
    args = (*shard.gather(), *where, *ints(len(splits), TILE), *arguments(shard, splits), *shard.weights, *here)
    launch_warps(driver, driver.kernel("spread", "mark_rows", target.flavour), int(tiles[-1]), args)
    outputs = (*ints(target.layout.n_outputs), target.sizes, target.labels)
    args = (*longs(shard.codes.n), shard.rows, *where, *ints(len(splits), TILE), *outputs, *shard.weights)
    args = (*args, *here, counts, totals[1:], totals[0])
    launch_warps(driver, driver.kernel("spread", "count_shares", target.flavour), int(tiles[-1]), args)
    found = totals.get()
    shard.spread = Spread(splits, where, int(tiles[-1]), known, counts, found[0])
    return np.ascontiguousarray(found[1:])


def place_shares(shard: DeviceShard, splits: Splits, children: NDArray[np.int32]) -> None:
    """Hold the rows of the branches, one branch after another; children i4 (branches,) are the new nodes."""
    ready: Any = shard.spread
    if ready is None or ready.splits is not splits:
        count_shares(shard, splits)
        ready = shard.spread
    driver, flavour, shard.spread = shard.driver, shard.target.flavour, None
    first, stop, tiles, count_ptr, branch_ptr = ready.where
    k, ends = ints(len(splits)), starts(ready.rows)
    offsets = driver.kernel("partition", "offsets", flavour)
    launch_warps(driver, offsets, len(splits), (tiles, count_ptr, branch_ptr, *k, ready.counts))
    rows, share = driver.empty(int(ends[-1]), np.uint32), driver.empty(int(ends[-1]), np.int64)
    to = driver.put(ends[starts(splits.n_branches)[:-1]], np.int64)
    args = (shard.rows, first, stop, to, tiles, count_ptr, branch_ptr, *k, *ints(TILE), *shard.weights)
    args = (*args, *longs(shard.positions), shard.branch_of, ready.known, ready.counts, rows, share)
    launch_warps(driver, driver.kernel("spread", "place_shares", flavour), ready.tiles, args)
    shard.hold(rows, share, int(ends[-1]))
    shard.place(children, ends[:-1], ends[1:], np.zeros((children.size, shard.target.layout.n_outputs, 2)))
