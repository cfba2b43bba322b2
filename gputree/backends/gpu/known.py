"""Searches that set rows with a missing value aside, on the device. May import core."""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING

import numpy as np

from gputree.backends.gpu.driver import ARRAY, ints, longs
from gputree.backends.gpu.rows import WARPS
from gputree.backends.gpu.tables import Cells
from gputree.core.splits import Scan

if TYPE_CHECKING:
    from gputree.backends.gpu.search import Searcher

MOST_BRANCHES = 1 << 16  # a column has fewer categories


def search_known(searcher: Searcher, cells: Cells) -> None:
    """Write the best test of every pair that has cells in this table."""
    rule = searcher.scans.search.cuts
    assert rule is not None
    least = searcher.scans.search.limits.min_info
    given = searcher.chunk.driver.put([*astuple(rule), least], np.float64)
    if searcher.scans.any(searcher.chunk, Scan.CUTS):
        search_ruled(searcher, cells, given)
    if searcher.scans.any(searcher.chunk, Scan.BRANCHES):
        search_groups(searcher, cells, given)


def search_ruled(searcher: Searcher, cells: Cells, rule: ARRAY) -> None:
    """Cuts of numeric columns."""
    driver, book = searcher.chunk.driver, searcher.chunk.shard.codes.on_device
    layout, warps = searcher.chunk.shard.target.layout, searcher.warps()
    weight, mean, own, cancels = searcher.terms
    args = (
        *(*searcher.where(cells), mean, searcher.stats, weight, own, cancels, rule),
        *(book.values, book.edges, book.offset, book.exact, driver.empty(warps * layout.n_channels, np.int64)),
        *(driver.empty(warps * layout.n_outputs, np.float64), searcher.best),
    )
    driver.kernel("known", "search_ruled", searcher.flavour)((warps // WARPS,), (32 * WARPS,), args)


def search_groups(searcher: Searcher, cells: Cells, rule: ARRAY) -> None:
    """Tests with a branch for each category."""
    driver, limits, warps = searcher.chunk.driver, searcher.scans.search.limits, searcher.warps()
    weight, mean, own, cancels = searcher.terms
    most = -1 if limits.max_branches is None else min(limits.max_branches, MOST_BRANCHES)
    args = (
        *(*searcher.where(cells), mean, searcher.stats, weight, own, cancels, rule),
        *(*longs(limits.min_weight, most), *ints(limits.least_met, limits.heavy or 0)),
        searcher.chunk.shard.codes.on_device.declared,
        driver.empty(warps * searcher.chunk.shard.target.layout.n_outputs, np.float64),
        searcher.best,
    )
    driver.kernel("known", "search_groups", searcher.flavour)((warps // WARPS,), (32 * WARPS,), args)
