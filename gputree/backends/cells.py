"""Tables of the NumPy backend: channels of the codes present in each slot, counted in one of two forms.

Dense: one counter for every (slot, code, channel), then the codes that occur. Compact: rows sorted by (slot, code),
then run lengths. Both give the same cells in the same order, so which one is chosen (by rows against slots x codes) can
only show in time and memory. May import core.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.shard import Shard
from gputree.core.schema import Book, run_starts
from gputree.core.target import Layout, Target

DENSE = 4  # counters per row up to which the dense form is used (measured: sorting a row costs about ten counters)


@dataclass(frozen=True, slots=True)
class Entries:
    """Rows that are to be added: their segment (ascending), their number, and what they add."""

    seg: NDArray[np.int64]
    row: NDArray[np.intp]
    n_seg: int
    layout: Layout
    weight: NDArray[np.int64] | None
    labels: tuple[NDArray[Any], ...]
    sums: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(cls, shard: Shard, nodes: NDArray[Any]) -> Entries:
        """Entries of nodes, one segment each."""
        target: Target = shard.target
        seg, row = shard.segments(nodes)
        times = 1 if shard.times is None else shard.times[shard.positions(nodes)].astype(np.int64)
        return cls(
            seg,
            row,
            nodes.size,
            target.layout,
            shard.units_of(nodes, row),
            () if target.labels is None else tuple(label[row] for label in target.labels),
            () if target.sums is None else tuple(values[row] * times for values in target.sums.values),
        )

    @classmethod
    def join(cls, parts: list[Entries]) -> Entries:
        """Entries side by side, segments numbered on."""
        if len(parts) == 1:
            return parts[0]
        shift = np.cumsum([0, *(p.n_seg for p in parts)])
        weights = [p.weight for p in parts if p.weight is not None]
        return cls(
            np.concatenate([p.seg + s for p, s in zip(parts, shift, strict=False)]),
            np.concatenate([p.row for p in parts]),
            int(shift[-1]),
            parts[0].layout,
            np.concatenate(weights) if weights else None,
            tuple(np.concatenate(column) for column in zip(*(p.labels for p in parts), strict=True)),
            tuple(np.concatenate(column) for column in zip(*(p.sums for p in parts), strict=True)),
        )

    def shared(self, place: NDArray[np.intp], weight: NDArray[np.int64]) -> Entries:
        """Some of the entries of a target of counts, with other weights."""
        labels = tuple(label[place] for label in self.labels)
        return replace(self, seg=self.seg[place], row=self.row[place], weight=weight, labels=labels)

    def add_up(self, index: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """Channels added at ``index`` (entries,) -> i8 (C, size)."""
        if self.layout.counts:
            parts = [
                added(label * np.int64(size) + index, self.layout.sizes[o] * size, self.weight).reshape(-1, size)
                for o, label in enumerate(self.labels)
            ]
        else:
            parts = [added(index, size, values)[None] for values in (self.weight, *self.sums)]
        if self.layout.rows >= 0:
            parts.append(added(index, size, None)[None])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def added(index: NDArray[np.int64], size: int, values: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Integer values (None: ones) added at ``index`` -> i8 (size,)."""
    if values is None:
        return np.bincount(index, minlength=size)
    total = np.zeros(size, np.int64)
    np.add.at(total, index, values)  # bincount would add in float64, inexact beyond 2**53
    return total


@dataclass(frozen=True, slots=True)
class Cells:
    """Codes present in segments, sorted by (segment, code); a segment is one slot-feature pair."""

    pairs: NDArray[np.int64]  # (S,) flat number of the pair
    feature: NDArray[np.int64]  # (S,)
    book: Book
    layout: Layout
    ptr: NDArray[np.int64]  # (S + 1,)
    seg: NDArray[np.int64]  # (M,)
    code: NDArray[np.int64]  # (M,)
    stats: NDArray[np.int64]  # (C, M)


def count_cells(shard: Shard, parts: list[tuple[int, NDArray[np.intp], Entries]]) -> Cells:
    """Cells of a few features; each part is a feature, its pairs and their entries."""
    entries = Entries.join([e for _, _, e in parts])
    codes = [shard.codes.columns[f][e.row] for f, _, e in parts]
    code = codes[0] if len(codes) == 1 else np.concatenate(codes)
    width = 1 + int(shard.codes.n_codes[[f for f, _, _ in parts]].max())
    size = entries.n_seg * width
    index = entries.seg * width + code
    if size * entries.layout.n_channels <= DENSE * entries.row.size:
        cell, stats = dense(entries, index, size)
    else:
        cell, stats = compact(entries, index)
    seg = cell // width
    return Cells(
        np.concatenate([pairs for _, pairs, _ in parts]).astype(np.int64),
        np.repeat(np.array([f for f, _, _ in parts], np.int64), [pairs.size for _, pairs, _ in parts]),
        shard.codes.book,
        entries.layout,
        np.searchsorted(seg, np.arange(entries.n_seg + 1)),
        seg,
        cell - seg * width,
        stats,
    )


def dense(entries: Entries, index: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cells that occur and their channels (C, M), through one counter for each of ``size`` places."""
    stats = entries.add_up(index, size)
    cell = np.flatnonzero(entries.layout.weight(stats))
    return cell, stats[:, cell]


def compact(entries: Entries, index: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same by sorting the rows."""
    order = np.argsort(index, kind="stable")
    starts = run_starts(index[order])
    cell = index[order[starts]]
    rank = np.empty(index.size, np.int64)
    rank[order] = np.repeat(np.arange(starts.size), np.diff(starts, append=index.size))
    return cell, entries.add_up(rank, starts.size)
