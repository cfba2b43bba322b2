"""Search by criteria that no kernel computes: on the host, from the cells of a backend's table. May import core.

A backend counts as ever, and `read` gives its table; what follows is the same code for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cells import Cells
from gputree.backends.nodes import Found, Lookup, Nodes, blank
from gputree.backends.scan import CutScan, scan_cells
from gputree.core.criteria import Criterion
from gputree.core.schema import Book, Kind, run_starts
from gputree.core.scores import grid
from gputree.core.splits import Search, Slots
from gputree.core.target import Layout

Read = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]  # pair, code and channels of every cell


@dataclass(frozen=True, slots=True)
class SpacedCuts(CutScan):
    """Of the cuts of a segment as many as the criterion tries: those in the middle of as many equal parts."""

    def inner_cuts(self) -> NDArray[np.intp]:
        """Some of all cuts."""
        at = CutScan.inner_cuts(self)
        count = np.bincount(self.cells.seg[at], minlength=self.slot.size)
        few = self.nodes.search.criterion.cuts_tried(count)
        owner = np.repeat(np.arange(few.size), few)
        place = np.arange(owner.size) - (np.cumsum(few) - few)[owner]
        first = np.cumsum(count) - count
        return at[first[owner] + (2 * place + 1) * count[owner] // (2 * few[owner])]


def search_untraced(
    read: Read, book: Book, features: NDArray[np.int32], slots: Slots, layout: Layout, search: Search
) -> tuple[Found, NDArray[np.int32], list[Lookup]]:
    """Best test of every slot and feature i4 (k, m); its score is less what the criterion charges for it.

    Numeric columns are searched for cuts, and all others as the search says.
    """
    m, criterion, nodes = features.shape[1], search.criterion, Nodes.of(slots, layout, search)
    best, lookups, tests = blank(features.size), [], np.ones(features.size)
    for cells in by_kind(read, book, features, layout):
        scan: Iterator[tuple[Found, Lookup | None]] = scan_cells(cells, m, nodes)
        if book.kind[cells.feature[0]] == Kind.NUMERIC:
            cuts = SpacedCuts.of(cells, cells.pairs // m, nodes, None)
            scan = ((found, None) for found in cuts.found())
            tests[cells.pairs] = numbers_of_tests(cells, criterion, search.limits.missing_alone)
        for found, lookup in scan:
            best.put(found)
            if lookup is not None:
                lookups.append(lookup)
    charge = criterion.charge(best.n_branches.astype(np.float64), tests, layout.sizes[0])
    score = np.where(best.score > -np.inf, grid(best.gain - charge, np.repeat(nodes.scale, m)), -np.inf)
    return replace(best, gain=best.gain - charge, score=score), features, lookups


def by_kind(read: Read, book: Book, features: NDArray[np.int32], layout: Layout) -> Iterator[Cells]:
    """The cells of numeric columns, and those of categories."""
    pair, code, stats = read
    feature = features.reshape(-1)[pair].astype(np.int64)
    for kind in Kind:
        own = np.flatnonzero(book.kind[feature] == kind)
        if own.size:
            starts = run_starts(pair[own])
            ptr = np.append(starts, own.size)
            seg = np.repeat(np.arange(starts.size), np.diff(ptr))
            first = own[starts]
            yield Cells(pair[first], feature[first], book, layout, ptr, seg, code[own], stats[:, own])


def numbers_of_tests(cells: Cells, criterion: Criterion, alone: bool) -> NDArray[np.float64]:
    """Tests of every segment: its cuts, with missing values on either side, and missing against known ones."""
    missing = (cells.code[cells.ptr[:-1]] == 0).astype(np.int64)
    cuts = criterion.cuts_tried(np.maximum(np.diff(cells.ptr) - missing - 1, 0))
    tests: NDArray[np.float64] = (cuts * (1 + missing) + missing * alone).astype(np.float64)
    return tests
