"""From tables on the device to the best tests on the host. May import core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.gpu.driver import ARRAY, Flavour, ints, longs
from gputree.backends.gpu.known import most_branches, search_known
from gputree.backends.gpu.rows import WARPS, launch_warps
from gputree.backends.gpu.tables import Cells, Chunk
from gputree.core.forest import Test
from gputree.core.schema import Kind
from gputree.core.splits import Scan, Search

NO_SCAN = 6
SUBSETS = (Scan.SUBSETS, Scan.ONE_SUBSET)
CARRY_BYTES = 1 << 26  # running sums of all warps of a search
LIST_BYTES = 1 << 26  # branches by code of the tests that are listed at once
BEST = np.dtype(
    [("score", "f8"), ("gain", "f8"), ("low", "f8")]
    + [(n, "i4") for n in ("feature", "kind", "cut", "missing", "n_branches", "rank")]
)
WORDS = BEST.itemsize // 8  # a record of BEST as float64 numbers

Lookup = tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.uint16]]


@dataclass(frozen=True, slots=True)
class Scans:
    """How the columns are searched: on the host i4 (F,) and on the device, and what limits their tests."""

    host: NDArray[np.int32]
    scans: ARRAY
    signs: ARRAY
    search: Search

    @classmethod
    def of(cls, chunk: Chunk, search: Search) -> Scans:
        """Look up the generator of every column."""
        kinds = chunk.shard.codes.book.kind
        by_kind = {int(k): search.scan(int(k)) for k in Kind}
        host = np.array([NO_SCAN if (s := by_kind[int(k)]) is None else s for k in kinds], np.int32)
        monotone = search.limits.monotone
        signs = np.zeros(kinds.size, np.int8) if monotone is None else monotone
        return cls(host, chunk.driver.put(host, np.int32), chunk.driver.put(signs, np.int8), search)

    def any(self, chunk: Chunk, *scans: int) -> bool:
        """Whether a column of the chunk is searched in one of these ways."""
        return bool(np.isin(self.host[chunk.features[chunk.features >= 0]], scans).any())


@dataclass(slots=True)
class Searcher:
    """One chunk under search: its nodes' terms on the device, its tables, its best tests."""

    chunk: Chunk
    scans: Scans
    flavour: Flavour
    stats: ARRAY
    key: ARRAY
    terms: tuple[ARRAY, ...]  # weight, mean, own, cancels
    best: ARRAY
    ordered: dict[bool, tuple[ARRAY, ARRAY]]

    @classmethod
    def of(cls, chunk: Chunk, search: Search) -> Searcher:
        """Compute the nodes' own terms."""
        driver, layout, k = chunk.driver, chunk.shard.target.layout, len(chunk.slots)
        flavour = Flavour(layout.kind, layout.rows >= 0, search.criterion)
        stats = driver.put(chunk.slots.stats, np.int64)
        terms = (
            driver.empty(k, np.int64),
            *(driver.empty((layout.n_outputs, k), t) for t in (np.int64, np.float64)),
            driver.empty(k, np.float64),
        )
        target = chunk.shard.target
        args = (stats, *ints(k, layout.n_outputs), target.sizes, target.scales, *terms)
        driver.launch(driver.kernel("search", "describe_slots", flavour), k, 128, args)
        key, best = driver.put(chunk.slots.key, np.uint64), driver.zeros((k * chunk.m, WORDS), np.float64)
        return cls(chunk, Scans.of(chunk, search), flavour, stats, key, terms, best, {})

    def head(self, cells: Cells) -> tuple[Any, ...]:
        """The arguments that name a table."""
        return (cells.table, cells.first, cells.end, cells.code, *longs(cells.n_cells), self.chunk.on_cell_of)

    def where(self, cells: Cells) -> tuple[Any, ...]:
        """The arguments that name a table and the features of its pairs."""
        chunk, target = self.chunk, self.chunk.shard.target
        sizes = ints(len(chunk.slots), chunk.m, target.layout.n_channels, cells.sparse)
        outputs = (*ints(target.layout.n_outputs), target.sizes, target.scales)
        return (
            *self.head(cells),
            *sizes,
            chunk.on_features,
            chunk.on_place,
            *ints(chunk.lists),
            self.scans.scans,
            *outputs,
        )

    def nodes(self, cells: Cells) -> tuple[Any, ...]:
        """The arguments of a search: a table, the features of its pairs, the nodes' terms and the best tests."""
        weight, mean, own, cancels = self.terms
        return (*self.where(cells), mean, self.stats, weight, own, cancels, self.best)

    def search(self, cells: Cells) -> None:
        """Write the best test of every pair that has cells in this table."""
        scans = self.scans
        if scans.search.cuts is not None:
            search_known(self, cells)
            return
        if scans.any(self.chunk, *SUBSETS):
            self.order(cells)
        if scans.any(self.chunk, Scan.CUTS, Scan.ONE_CUT, *SUBSETS):
            self.cuts(cells)
        if scans.any(self.chunk, Scan.BRANCHES):
            self.branches(cells)

    def order(self, cells: Cells) -> None:
        """Rank the categories of every pair that is searched by subsets."""
        driver, chunk = self.chunk.driver, self.chunk
        value, order = driver.empty(cells.n_cells, np.float64), driver.empty(cells.n_cells, np.uint32)
        ranked = driver.zeros(len(chunk.slots) * chunk.m, np.int32)
        _, mean, *_ = self.terms
        args = (*self.where(cells), mean, self.key, value, order, ranked)
        driver.launch(
            driver.kernel("lookup", "order_cells", chunk.shard.target.flavour),
            len(chunk.slots) * chunk.m * 128,
            128,
            args,
        )
        self.ordered[cells.sparse] = order, ranked

    def ranks(self, cells: Cells) -> tuple[ARRAY, ARRAY]:
        """Order and number of ranked cells, if any column is searched by subsets."""
        nothing = self.chunk.driver.nothing
        return self.ordered.get(cells.sparse, (nothing(np.uint32), nothing(np.int32)))

    def limits(self) -> tuple[Any, ...]:
        """The arguments that limit candidates."""
        limits, criterion = self.scans.search.limits, self.scans.search.criterion
        return (*longs(limits.min_rows, limits.min_weight), *ints(criterion.positive_sums))

    def warps(self) -> int:
        """Warps of a search that each have running sums of their own."""
        channels, pairs = self.chunk.shard.target.layout.n_channels, len(self.chunk.slots) * self.chunk.m
        most = min(CARRY_BYTES // (8 * channels), 64 * self.chunk.driver.sizes.multiprocessors)
        return max(WARPS, min(pairs, most) // WARPS * WARPS)

    def cuts(self, cells: Cells) -> None:
        """Search by cuts."""
        driver, chunk, book = self.chunk.driver, self.chunk, self.chunk.shard.codes.on_device
        channels, warps = chunk.shard.target.layout.n_channels, self.warps()
        args = (
            *(*self.nodes(cells), self.key, *self.ranks(cells), driver.put(chunk.slots.bounds, np.float64)),
            *(*self.limits(), *ints(self.scans.search.limits.missing_alone), self.scans.signs),
            *(book.values, book.edges, book.offset, book.exact, driver.empty(warps * channels, np.int64)),
        )
        driver.kernel("search", "search_cuts", self.flavour)((warps // WARPS,), (32 * WARPS,), args)

    def branches(self, cells: Cells) -> None:
        """Search tests with a branch for each category."""
        driver, search = self.chunk.driver, self.scans.search
        args = (
            *(*self.nodes(cells), *self.limits(), *longs(most_branches(search.limits))),
            *(*ints(search.criterion.two_branches, search.limits.least_met), self.chunk.shard.codes.on_device.declared),
        )
        kernel = driver.kernel("search", "search_branches", self.flavour)
        launch_warps(driver, kernel, len(self.chunk.slots) * self.chunk.m, args)

    def chosen(self, turn: int | None) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The tests that the host sees and their pairs: the best of each slot, or with ``turn=None`` all."""
        driver, k, m = self.chunk.driver, len(self.chunk.slots), self.chunk.m
        if turn is None:
            return self.best.get().view(BEST)[:, 0], np.arange(k * m)
        best, pair = driver.empty((k, WORDS), np.float64), driver.empty(k, np.int64)
        kernel = driver.kernel("search", "best_of_slots", self.flavour)
        launch_warps(driver, kernel, k, (self.best, *ints(k, m, turn), best, pair))
        found = best.get().view(BEST)[:, 0]
        lookup = bool((found["kind"] == Test.LOOKUP).any())
        return found, pair.get() if lookup else np.zeros(k, np.int64)

    def lookups(self, tables: list[Cells], found: NDArray[Any], pair: NDArray[np.int64]) -> Lookup:
        """The cells of tests with a lookup, some tests at a time: place of the test in ``found``, code and branch."""
        test = np.flatnonzero((found["n_branches"] > 0) & (found["kind"] == Test.LOOKUP))
        width = 1 + int(self.chunk.shard.codes.n_codes[found["feature"][test]].max(initial=0))
        step = max(1, LIST_BYTES // (2 * width))
        parts = [(np.zeros(0, np.int64), np.zeros(0, np.uint16), np.zeros(0, np.uint16))]
        for first in range(0, test.size, step):
            some = test[first : first + step]
            listed = self.listed(tables, found[some], pair[some], width)
            place, code = np.nonzero(listed)
            parts.append((some[place], code.astype(np.uint16), listed[place, code] - np.uint16(1)))
        place, code, branch = (np.concatenate(part) for part in zip(*parts, strict=True))
        return place, code, branch

    def listed(
        self, tables: list[Cells], found: NDArray[Any], pair: NDArray[np.int64], width: int
    ) -> NDArray[np.uint16]:
        """One more than the branch of every code u2 (tests, width), 0 where it is not listed."""
        driver, chunk = self.chunk.driver, self.chunk
        branch = driver.zeros((found.size, width), np.uint16)
        tests = driver.put(np.ascontiguousarray(found).view(np.float64), np.float64)
        given = (chunk.shard.codes.on_device.declared, tests, driver.put(pair, np.int64), *ints(found.size, width))
        kernel = driver.kernel("lookup", "list_branches", chunk.shard.target.flavour)
        for cells in tables:
            args = (
                *(*self.head(cells), *ints(chunk.m, chunk.shard.target.layout.n_channels, cells.sparse)),
                *(chunk.on_place, *ints(chunk.lists), self.scans.scans, chunk.shard.target.sizes, *self.ranks(cells)),
            )
            driver.launch(kernel, found.size * 128, 128, (*args, *given, branch))
        host: NDArray[np.uint16] = branch.get()
        return host
