"""One category against all others, on the NumPy backend (the option ``-B`` of J48). May import core."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cells import Cells
from gputree.backends.nodes import Found, Lookup, Nodes, first_best, pair_gains
from gputree.core.forest import Test
from gputree.core.splits import NOT_MET


def scan_rest(cells: Cells, slot: NDArray[np.int64], nodes: Nodes) -> tuple[Found, Lookup]:
    """The first best category of every segment that has two: branch 0, and 1 for the others and for missing values."""
    layout, limits, has_missing = nodes.layout, nodes.search.limits, cells.code[cells.ptr[:-1]] == 0
    fine = (cells.code > 0) & (np.diff(cells.ptr) > 1)[cells.seg]
    for least, measure in ((limits.min_rows, layout.count), (limits.min_weight, layout.weight)):
        own = measure(cells.stats)
        fine &= (own >= least) & (measure(nodes.slots.stats)[slot[cells.seg]] - own >= least)
    at = np.flatnonzero(fine)
    gain, info = pair_gains(nodes, slot[cells.seg[at]], cells.stats[:, at])
    score = nodes.judged(slot[cells.seg[at]], gain, info)
    pick = first_best(cells.seg[at], score)
    at = at[pick]
    seg, n = cells.seg[at], pick.size
    found = Found(
        cells.pairs[seg],
        score[pick],
        gain[pick],
        np.full(n, Test.LOOKUP, np.uint8),
        np.zeros(n, np.int32),
        np.zeros(n),
        np.where(has_missing[seg], 1, NOT_MET).astype(np.int32),
        np.full(n, 2, np.int32),
    )
    return found, listed(cells, seg, cells.code[at])


def listed(cells: Cells, seg: NDArray[np.int64], code: NDArray[np.int64]) -> Lookup:
    """All categories of the columns of some segments: those of ``code`` (j,) go to branch 0."""
    ends = np.append(cells.book.offset[1:], cells.book.values.size)
    count = (ends - cells.book.offset)[cells.feature[seg]] - 1
    owner = np.repeat(np.arange(seg.size), count)
    each = np.arange(owner.size) - (np.cumsum(count) - count)[owner] + 1
    return cells.pairs[seg[owner]], each, (each != code[owner]).astype(np.int64)
