"""Searches that set rows with a missing value aside, on the device. May import core."""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import numpy as np

from gputree.backends.gpu.driver import ints, longs
from gputree.backends.gpu.rows import WARPS
from gputree.backends.gpu.tables import Cells
from gputree.core.splits import Limits, Scan

if TYPE_CHECKING:
    from gputree.backends.gpu.search import Searcher

MOST_BRANCHES = 1 << 16  # a column has fewer categories


def most_branches(limits: Limits) -> int:
    """Most branches of a test as kernels take it, -1 for any number."""
    return -1 if limits.max_branches is None else min(limits.max_branches, MOST_BRANCHES)


def search_known(searcher: Searcher, cells: Cells) -> None:
    """Write the best test of every pair that has cells in this table."""
    driver, limits, warps = searcher.chunk.driver, searcher.scans.search.limits, searcher.warps()
    rule, shard = searcher.scans.search.cuts, searcher.chunk.shard
    assert rule is not None
    book, layout = shard.codes.on_device, shard.target.layout
    least = longs(limits.min_weight)
    groups = (*least, *longs(most_branches(limits)), *ints(limits.least_met, limits.heavy or 0), book.declared)
    carries = driver.empty(warps * layout.n_channels, np.int64)
    ways: dict[Scan, tuple[str, tuple[Any, ...]]] = {
        Scan.CUTS: ("search_ruled", (book.values, book.edges, book.offset, book.exact, carries)),
        Scan.BRANCHES: ("search_groups", groups),
        Scan.ONE_AGAINST_REST: ("search_rest", least),
    }
    given = driver.put([*astuple(rule), limits.min_info], np.float64)
    args = (*searcher.nodes(cells), given, driver.empty(warps * layout.n_outputs, np.float64))
    for scan, (name, more) in ways.items():
        if searcher.scans.any(searcher.chunk, scan):
            kernel = driver.kernel("known", name, searcher.flavour)
            kernel((warps // WARPS,), (32 * WARPS,), (*args, *more))
