"""Rows on the device, grouped by node, and what they add to tables. May import core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.gpu.codes import DeviceCodes
from gputree.backends.gpu.driver import ARRAY, Driver, Flavour, ints, longs
from gputree.backends.shard import Codes, Shard
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
    """Node i holds rows[start[i] : stop[i]], words as `kernels/device.cuh` reads them; a split regroups its range.

    ``bits`` are those of a row's number in a word that also says how often the row counts, 0 where each counts once;
    ``odd`` holds the rows that count too often for that. Where rows were spread over several nodes, ``share`` has a
    weight for each position. ``moved`` and ``branch_of`` take the rows of some splits while they are regrouped.
    """

    codes: DeviceCodes
    target: DeviceTarget
    rows: ARRAY  # u4 (positions,)
    odd: ARRAY  # u4 (2 k,) pairs of row and how often
    bits: int
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    extent: NDArray[np.float64]  # (nodes, O, 2) least and greatest y
    moved: ARRAY  # u4 (room,)
    branch_of: ARRAY  # u2 (room,)
    regrouped: Regrouped | None = None
    share: ARRAY | None = None  # i8 (positions,)
    spread: Any = None  # splits whose rows have been counted and are still to be spread

    @property
    def positions(self) -> int:
        """Rows of all nodes that are not split."""
        return int(self.rows.size)

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
        self.start[nodes], self.stop[nodes], self.extent[nodes] = start, stop, extent

    def grouped(self) -> Shard:
        """The rows on the host, one range a node."""
        rows, times = words_read(self.rows.get(), self.odd.get(), self.bits)
        codes = Codes((), self.codes.book, self.codes.n_codes)
        return Shard(codes, self.target.host, rows, self.start, self.stop, times)

    def hold(self, rows: ARRAY, share: ARRAY) -> None:
        """Hold only these rows, with these weights; no node has any until it is placed."""
        self.rows, self.share, self.bits = rows, share, 0
        self.odd = self.moved = self.driver.nothing(np.uint32)
        self.branch_of = self.driver.nothing(np.uint16)
        self.start[:], self.stop[:] = 0, 0

    @property
    def weights(self) -> tuple[object, ...]:
        """The arguments that tell a kernel the weight at a position."""
        units = self.target.units if self.share is None else self.share
        return (units, *self.repeats)

    @property
    def repeats(self) -> tuple[object, ...]:
        """The arguments that tell a kernel how often rows count, and whether they have weights."""
        units = self.target.host.weights.units is not None or self.share is not None
        return (self.odd, *ints(units + 2 * (self.bits > 0) + 4 * (self.share is not None) + (self.bits << 8)))

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
class Regrouped:
    """Splits whose rows stand branch by branch: first and last position of every branch, and its extent."""

    splits: Splits
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    extent: NDArray[np.float64]  # (branches, O, 2)


def word_bits(n: int) -> int:
    """Bits of the numbers of n rows."""
    return max(1, (n - 1).bit_length())


def words(rows: NDArray[np.uint32], times: NDArray[np.int64], n: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Words of rows that count so often, and pairs (2 k,) of those that count too often for them.

    Examples
    --------
    >>> import numpy as np
    >>> words(np.array([0, 2], np.uint32), np.array([3, 1]), 4)
    (array([8, 2], dtype=uint32), array([], dtype=uint32))
    """
    bits = word_bits(n)
    most = 0xFFFFFFFF >> bits
    odd = np.flatnonzero(times > most)
    low = rows.copy()
    low[odd] = np.arange(odd.size)
    high = np.minimum(times - 1, most).astype(np.uint32)
    return low | high << np.uint32(bits), np.stack([rows[odd], times[odd].astype(np.uint32)], axis=1).ravel()


def words_read(
    words: NDArray[np.uint32], odd: NDArray[np.uint32], bits: int
) -> tuple[NDArray[np.intp], NDArray[np.uint32] | None]:
    """The rows of words (n,), and how often each counts, None where each counts once."""
    if not bits:
        return words.astype(np.intp), None
    rows, times = words & np.uint32((1 << bits) - 1), (words >> np.uint32(bits)) + np.uint32(1)
    far = np.flatnonzero(times > 0xFFFFFFFF >> bits)
    place = rows[far].astype(np.intp)
    rows[far], times[far] = odd[2 * place], odd[2 * place + 1]
    return rows.astype(np.intp), times
