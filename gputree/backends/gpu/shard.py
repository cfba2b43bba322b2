"""Rows on the device, grouped by node, and what they add to tables. May import core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.gpu.codes import DeviceCodes
from gputree.backends.gpu.driver import ARRAY, Driver, Flavour, ints, longs
from gputree.backends.shard import Codes, Shard
from gputree.core.forest import ranges
from gputree.core.splits import Splits
from gputree.core.target import Layout, Target


@dataclass(frozen=True, slots=True)
class DeviceTarget:
    """Labels i4 (O, n), weights i8 (n,), fixed-point values i8 (O, n), y f8 (O, n): empty where there are none."""

    host: Target
    labels: ARRAY
    units: ARRAY
    values: ARRAY
    y: ARRAY
    sizes: ARRAY  # i4 (O,) classes of each output
    scales: ARRAY  # f8 (O,)

    @classmethod
    def of(cls, driver: Driver, target: Target) -> DeviceTarget:
        """Copy a target to the device."""
        nothing, sums = np.zeros(0), target.sums
        units = target.weights.units
        return cls(
            target,
            driver.put(nothing if target.labels is None else target.labels, np.int32),
            driver.put(nothing if units is None else units, np.int64),
            driver.put(nothing if sums is None else sums.values, np.int64),
            driver.put(nothing if sums is None else sums.y, np.float64),
            driver.put(target.layout.sizes, np.int32),
            driver.put(target.layout.scale, np.float64),
        )

    @property
    def layout(self) -> Layout:
        """What the channels mean."""
        return self.host.layout

    @property
    def channels(self) -> tuple[object, ...]:
        """The arguments that tell a kernel what a row adds."""
        return (*ints(self.layout.n_outputs), self.sizes, self.labels, self.units, self.values)

    @property
    def flavour(self) -> Flavour:
        """What kernels that add rows are specialised for."""
        return Flavour(self.layout.kind, self.layout.rows >= 0)

    @property
    def cell(self) -> type[np.uint32] | type[np.int64]:
        """The type of a channel in a table: 32 bits hold any number of rows."""
        return np.uint32 if self.layout.counts and self.layout.rows < 0 else np.int64


@dataclass(slots=True)
class DeviceShard:
    """Node i holds rows[start[i] : stop[i]]. Rows have two halves of ``positions``: a split moves them to the other.

    Once rows were spread over several nodes there is one half, and ``share`` has a weight for each of its positions.
    """

    codes: DeviceCodes
    target: DeviceTarget
    positions: int
    rows: ARRAY  # u4 (2 * positions,)
    branch_of: ARRAY  # u2 (positions,)
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    extent: NDArray[np.float64]  # (nodes, O, 2) least and greatest y
    moved: NDArray[np.bool_]  # (nodes,) split: its rows are where those of its children are
    times: ARRAY | None = None  # u4 (2 * positions,) how often each row counts, None = once
    pending: Pending | None = None
    share: ARRAY | None = None  # i8 (positions,)
    spread: Any = None  # splits whose rows have been counted and are still to be spread

    @property
    def driver(self) -> Driver:
        """The device."""
        return self.codes.driver

    def size(self, nodes: NDArray[Any]) -> NDArray[np.int64]:
        """Rows of nodes (k,)."""
        size: NDArray[np.int64] = self.stop[nodes] - self.start[nodes]
        return size

    def place(
        self, nodes: NDArray[np.int32], start: NDArray[Any], stop: NDArray[Any], extent: NDArray[np.float64]
    ) -> None:
        """Record the ranges and the extents of new nodes."""
        top = int(nodes.max(initial=-1)) + 1
        if top > self.start.size:
            more = max(top, 2 * self.start.size) - self.start.size
            self.start, self.stop = (np.concatenate([a, np.zeros(more, np.int64)]) for a in (self.start, self.stop))
            self.extent = np.concatenate([self.extent, np.zeros((more, *self.extent.shape[1:]))])
            self.moved = np.concatenate([self.moved, np.ones(more, bool)])
        self.start[nodes], self.stop[nodes], self.extent[nodes], self.moved[nodes] = start, stop, extent, False

    def grouped(self) -> Shard:
        """The rows on the host, one range a node, whether its children have moved them or not."""
        ends = np.flatnonzero(~self.moved)
        place = ranges(self.start[ends], self.size(ends))
        rows = np.empty(self.positions, np.intp)
        rows[place % self.positions] = self.rows.get()[place]
        start, times = self.start % max(self.positions, 1), None
        codes = Codes((), self.codes.book, self.codes.n_codes)
        if self.times is not None:
            times = np.empty(self.positions, np.uint32)
            times[place % self.positions] = self.times.get()[place]
        return Shard(codes, self.target.host, rows, start, start + self.stop - self.start, times)

    def hold(self, rows: ARRAY, share: ARRAY, positions: int) -> None:
        """Hold only these rows, with these weights; no node has any until it is placed."""
        self.rows, self.share, self.times, self.positions = rows, share, None, positions
        self.branch_of = self.driver.empty(positions, np.uint16)
        self.start[:], self.stop[:] = 0, 0

    @property
    def weights(self) -> tuple[object, ...]:
        """The arguments that tell a kernel the weight at a position."""
        units = self.target.units if self.share is None else self.share
        return (units, *self.repeats)

    @property
    def repeats(self) -> tuple[object, ...]:
        """The arguments that tell a kernel how often rows count, and whether they have weights."""
        times = self.driver.nothing(np.uint32) if self.times is None else self.times
        units = self.target.host.weights.units is not None or self.share is not None
        return (times, *ints(units + 2 * (self.times is not None) + 4 * (self.share is not None)))

    @property
    def channels(self) -> tuple[object, ...]:
        """The arguments that tell a kernel what a row adds."""
        outputs, sizes, labels, units, values = self.target.channels
        return (outputs, sizes, labels, units if self.share is None else self.share, values, *self.repeats)

    def gather(self) -> tuple[object, ...]:
        """The arguments that tell a kernel where the codes of rows are."""
        codes = self.codes
        return (codes.records, *ints(codes.words), codes.wide, *longs(codes.n), self.rows)


@dataclass(slots=True)
class Pending:
    """Splits whose rows have been counted and are still to be moved."""

    splits: Splits
    where: tuple[ARRAY, ...]  # first and last position, tiles, counts and branches of every split
    counts: ARRAY
    rows: NDArray[np.int64]  # of every branch
    extent: NDArray[np.float64]  # (branches, O, 2)
    tiles: int
