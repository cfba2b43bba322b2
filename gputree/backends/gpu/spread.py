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
from gputree.backends.gpu.rows import TILE, launch_warps, set_places, tested, tiled
from gputree.backends.gpu.shard import DeviceShard
from gputree.core.splits import Splits


@dataclass(slots=True)
class Spread:
    """Splits whose rows have been counted and are still to be put down."""

    splits: Splits
    where: tuple[ARRAY, ...]  # first and last position, tiles, counts and branches of every split
    tiles: int
    branch_of: ARRAY  # u2 (positions,)
    known: ARRAY
    counts: ARRAY
    rows: NDArray[np.int64]  # of every branch


def count_shares(shard: DeviceShard, splits: Splits) -> NDArray[np.int64]:
    """Channels i8 (C, branches) of the branches of splits; keeps what `place_shares` needs."""
    driver, target = shard.driver, shard.target
    where, counts, tiles = tiled(shard, splits)
    n = int(splits.n_branches.sum())
    known, totals = driver.zeros(n, np.int64), driver.zeros((1 + target.layout.n_channels, n), np.int64)
    branch_of = driver.empty(shard.positions, np.uint16)
    here = (*shard.weights, branch_of, known)
    args = (*tested(shard, splits, where), *here)
    launch_warps(driver, driver.kernel("spread", "mark_rows", target.flavour), tiles, args)
    outputs = (*ints(target.layout.n_outputs), target.sizes, target.labels)
    args = (*longs(shard.codes.n), shard.rows, *where, *ints(len(splits), TILE), *outputs, *here)
    args = (*args, counts, totals[1:], totals[0])
    launch_warps(driver, driver.kernel("spread", "count_shares", target.flavour), tiles, args)
    found = totals.get()
    shard.spread = Spread(splits, where, tiles, branch_of, known, counts, found[0])
    return np.ascontiguousarray(found[1:])


def place_shares(shard: DeviceShard, splits: Splits, children: NDArray[np.int32]) -> None:
    """Hold the rows of the branches, one branch after another; children i4 (branches,) are the new nodes."""
    ready: Any = shard.spread
    if ready is None or ready.splits is not splits:
        count_shares(shard, splits)
        ready = shard.spread
    driver, ends, shard.spread = shard.driver, starts(ready.rows), None
    set_places(shard, splits, ready.where, ready.counts)
    first, stop, *tiles = ready.where
    rows, share = driver.empty(int(ends[-1]), np.uint32), driver.empty(int(ends[-1]), np.int64)
    to = driver.put(ends[starts(splits.n_branches)[:-1]], np.int64)
    args = (shard.rows, first, stop, to, *tiles, *ints(len(splits), TILE), *shard.weights)
    args = (*args, ready.branch_of, ready.known, ready.counts, rows, share)
    launch_warps(driver, driver.kernel("spread", "place_shares", shard.target.flavour), ready.tiles, args)
    shard.hold(rows, share)
    shard.place(children, ends[:-1], ends[1:], np.zeros((children.size, shard.target.layout.n_outputs, 2)))
