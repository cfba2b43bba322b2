"""What the NumPy backend keeps of a table: codes by column, and rows grouped by node. May import core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import ranges
from gputree.core.schema import Book
from gputree.core.splits import Splits
from gputree.core.target import Target


@dataclass(frozen=True, slots=True)
class Codes:
    """Codes of every column (n,), one or two bytes each, and what they mean; n_codes i8 (F,)."""

    columns: tuple[NDArray[Any], ...]
    book: Book
    n_codes: NDArray[np.int64]


@dataclass(slots=True)
class Shard:
    """Rows grouped by node: node i holds rows[start[i] : stop[i]], each as often as ``times`` says, None = once.

    Once rows were spread over several nodes, ``share`` i8 holds what each place has of its row's weight.
    """

    codes: Codes
    target: Target
    rows: NDArray[Any]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    times: NDArray[Any] | None = None
    regrouped: tuple[Splits, NDArray[np.int64], NDArray[np.int64]] | None = None  # ranges of branches, where they are
    share: NDArray[np.int64] | None = None
    spread: tuple[Splits, Any] | None = None  # where rows go that are spread, kept between two calls

    def size(self, nodes: NDArray[Any]) -> NDArray[np.int64]:
        """Rows of nodes (k,)."""
        size: NDArray[np.int64] = self.stop[nodes] - self.start[nodes]
        return size

    def positions(self, nodes: NDArray[Any]) -> slice | NDArray[np.intp]:
        """Where the rows of nodes stand, node by node."""
        if nodes.size and bool((self.start[nodes[1:]] == self.stop[nodes[:-1]]).all()):
            return slice(int(self.start[nodes[0]]), int(self.stop[nodes[-1]]))
        return ranges(self.start[nodes], self.size(nodes))

    def rows_of(self, nodes: NDArray[Any]) -> NDArray[np.intp]:
        """Rows of nodes, node by node."""
        return self.rows[self.positions(nodes)].astype(np.intp, copy=False)

    def units_of(self, nodes: NDArray[Any], row: NDArray[np.intp]) -> NDArray[np.int64] | None:
        """Weights of the rows of nodes, multiplicity included; None where all are 1."""
        if self.share is not None:
            return self.share[self.positions(nodes)]
        units = None if self.target.weights.units is None else self.target.weights.units[row]
        if self.times is None:
            return units
        times = self.times[self.positions(nodes)].astype(np.int64)
        return times if units is None else times * units

    def segments(self, nodes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """Rows of nodes and the place of the node of each, ascending."""
        return np.repeat(np.arange(nodes.size), self.size(nodes)), self.rows_of(nodes)

    def hold(self, rows: NDArray[Any], share: NDArray[np.int64]) -> None:
        """Hold only these rows, with these weights; no node has any until it is placed."""
        self.rows, self.share, self.times = rows, share, None
        self.start[:], self.stop[:] = 0, 0

    def place(self, nodes: NDArray[Any], start: NDArray[Any], stop: NDArray[Any]) -> None:
        """Record the ranges of new nodes."""
        top = int(nodes.max(initial=-1)) + 1
        if top > self.start.size:
            grow = np.zeros(max(top, 2 * self.start.size) - self.start.size, np.int64)
            self.start, self.stop = np.concatenate([self.start, grow]), np.concatenate([self.stop, grow])
        self.start[nodes], self.stop[nodes] = start, stop
