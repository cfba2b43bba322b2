"""The table of sizes: what it plans fits and covers everything; every row of it counts right under every limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from gputree.backends.cuda import Cuda
from gputree.backends.gpu import tables
from gputree.backends.gpu.driver import OLDEST, Driver
from gputree.backends.gpu.sizes import Plan, plan
from gputree.backends.oracle import Oracle
from gputree.backends.protocol import Backend, Bags, CodeSpec
from gputree.core.keys import root_keys
from gputree.core.splits import Slots
from tests.backends.conftest import Case, PlainTest, record
from tests.emulator.driver import KB, SHARED_LIMITS, Emulator, Properties

# ---- the plan ----

Sizes = tuple[int, int, int, int, int]  # codes, channels, bytes of a channel, features, bytes of shared memory


def grid() -> Iterator[Sizes]:
    codes, channels = (1, 2, 3, 33, 100, 255, 256), (1, 2, 3, 7, 12, 13, 41, 300, 1000, 5000)
    features = (1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 27, 28, 29, 32, 56, 57, 1000)
    limits = [*(KB * limit for limit in SHARED_LIMITS), 1000, 15]
    return product(codes, channels, (4, 8), features, limits)


def parts_of(whole: int, part: int) -> int:
    """How many parts cover the whole."""
    return len(range(0, whole, part))


def written(sizes: Sizes) -> tuple[int, int, int] | None:
    """The table in sizes.py, row by row: columns, features and channels of a block."""
    codes, channels, nbytes, features, limit = sizes
    record = min(features, 28)
    for columns, most in ((32, 28), (16, 16), (8, 8), (4, 4)):
        if codes * channels * columns * nbytes <= limit:
            return columns, min(record, most), channels
    fitting = [part for part in range(1, channels) if codes * part * 4 * nbytes <= limit]
    own = min(record, 4)
    if not fitting or parts_of(channels, fitting[-1]) * parts_of(record, own) > 16:
        return None
    return 4, own, fitting[-1]


def test_the_plan_is_what_is_written() -> None:
    for sizes in grid():
        found = plan(*sizes)
        assert (found and (found.columns, found.own, found.channels)) == written(sizes), sizes


def test_the_plan_fits_and_covers() -> None:
    n_found = 0
    for sizes in grid():
        codes, channels, nbytes, features, limit = sizes
        found = plan(*sizes)
        if found is None:
            continue
        n_found += 1
        assert found.cells == codes * found.channels
        assert found.nbytes == codes * found.channels * found.columns * nbytes <= limit, sizes
        by_feature, by_channel = parts_of(features, found.own), parts_of(channels, found.channels)
        assert found.parts == by_feature * by_channel, sizes  # all features and channels, no part empty
        # a lane has a feature, steps divide a warp, private copies divide the columns
        assert found.own <= found.lanes < 2 * found.own, sizes
        assert 32 % found.lanes == found.columns % found.lanes == 0, sizes
        assert parts_of(min(features, 28), found.own) * by_channel <= 16, sizes
    assert n_found > 1000


def test_more_shared_memory_never_makes_a_block_smaller() -> None:
    for codes, channels, nbytes, features, _ in grid():
        found = [plan(codes, channels, nbytes, features, KB * limit) for limit in SHARED_LIMITS]
        kept = [(p.columns, p.channels) if p else (0, 0) for p in found]
        assert kept == sorted(kept)


@pytest.mark.parametrize("cells", [1, 1000, 14_000])
@pytest.mark.parametrize("nbytes", [16, 20 * KB, 57 * KB, 227 * KB])
@pytest.mark.parametrize("parts", [1, 2, 14, 600])
def test_blocks_run_at_once(parts: int, nbytes: int, cells: int) -> None:
    """One block more for each part would not fit the device, find no tile, or have too few rows for its cells."""
    planned = Plan(own=4, lanes=4, channels=3, columns=4, parts=parts, cells=cells, nbytes=nbytes)

    def held(blocks: int) -> bool:
        """Whether a multiprocessor of 228 KB and of registers for two blocks holds so many."""
        return blocks * (nbytes + 1024) <= 228 * KB and blocks * 512 <= 1024

    def useful(shares: int, tiles: int, multiprocessors: int) -> bool:
        together = -(-shares * parts // multiprocessors)  # blocks of the busiest multiprocessor
        return shares <= tiles and held(together) and shares * 2 * cells <= tiles * 1024

    for tiles, multiprocessors in product((1, 3, 100, 10_000), (1, 20, 132)):
        shares = planned.shares(multiprocessors, 228 * KB, tiles)
        assert shares == 1 or useful(shares, tiles, multiprocessors)
        assert not useful(shares + 1, tiles, multiprocessors)


# ---- every row, counted ----


@dataclass(frozen=True)
class Row:
    """A row of the table: so many columns, codes and features; `passes` over the channels, 3 of 29 features = none."""

    columns: int
    codes: int
    features: int
    passes: int = 1

    def fitting(self, nbytes: int, limit: int) -> int:
        """The most channels that a block can hold."""
        return KB * limit // (self.codes * self.columns * nbytes)

    def channels(self, nbytes: int, limit: int) -> int:
        """The most that one pass takes, or the fewest that need the passes."""
        return max(1, self.passes - 1) * self.fitting(nbytes, limit) + (self.passes > 1)


ROWS = {
    "32 columns": Row(32, 33, 30),
    "32 columns, copies": Row(32, 40, 3),
    "16 columns": Row(16, 65, 20),
    "8 columns": Row(8, 129, 9),
    "4 columns": Row(4, 256, 5),
    "2 passes": Row(4, 201, 6, passes=2),
    "5 passes": Row(4, 256, 3, passes=5),
    "global memory": Row(4, 256, 29, passes=3),
}


def case_of(row: Row, limit: int, weighted: bool) -> Case:
    """A table of the row's size: the first column has all codes, the others fewer; all have missing values."""
    rng, nbytes = np.random.default_rng(limit), 8 if weighted else 4
    n = row.codes * row.fitting(nbytes, limit) + 300  # rows that pay for shared memory
    X = np.column_stack([rng.permutation(n) % max(2, row.codes - 1 - 7 * f) for f in range(row.features)]).astype(float)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[: row.codes - 1, 0] = np.arange(row.codes - 1)
    classes = row.channels(nbytes, limit) - weighted  # beside the weights, a channel counts rows
    weight = rng.lognormal(sigma=3.0, size=n) if weighted else None
    return Case(X, rng.integers(0, classes, (n, 1)), weight, sizes=(classes,), category=())


def counted(backend: Backend, case: Case) -> tuple[Any, ...]:
    """The table of three nodes: all rows, and a second tree's that are split 1 to 30 or so."""
    codes = backend.encode(case.X, backend.edges(case.X, CodeSpec(case.schema()), None))
    shard = backend.open(codes, case.target(), Bags(2))
    cut = max(1, int(codes.n_codes[1]) // 30)
    backend.partition(shard, record([PlainTest(1, 1, cut, missing=1)]), np.array([2, 3], np.int32))
    stats = np.zeros((case.target().layout.n_channels, 3), np.int64)  # counting does not look at them
    nodes = np.array([3, 0, 2], np.int32)
    slots = Slots(nodes, root_keys(11, nodes), stats, np.zeros(3, np.int64), np.zeros((2, 3)))
    features = np.broadcast_to(np.arange(case.X.shape[1], dtype=np.int32)[::-1], (3, case.X.shape[1]))
    return backend.read(backend.histogram(shard, slots, features))


def check(row: Row, limit: int, weighted: bool, checked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One table through the row of the plan that is meant, and cell for cell as the oracle counts it."""
    nbytes = 8 if weighted else 4
    wanted = (row.codes, row.channels(nbytes, limit), nbytes, row.features, KB * limit)
    plans: list[Plan | None] = []

    def recorded(*sizes: int) -> Plan | None:
        assert sizes == wanted
        plans.append(plan(*sizes))
        return plans[-1]

    monkeypatch.setattr(tables, "plan", recorded)
    device = replace(Properties.of_shared_limit(limit), multiprocessors=6)  # blocks take several tiles
    # cards of 48 KB alone are too old for the library; the table holds for them all the same
    device = replace(device, compute_capability=max(device.compute_capability, OLDEST))
    emulator = Emulator(checked=checked, properties=device)
    case = case_of(row, limit, weighted)
    found = counted(Cuda(Driver.of(emulator.xp, 0)), case)
    for mine, expected in zip(found, counted(Oracle(), case), strict=True):
        np.testing.assert_array_equal(mine, expected)
    used = {name for name in ("count_shared", "count_global") if emulator.counters[name].launches}
    (planned,) = plans
    if row.features == 29:
        assert planned is None
        assert used == {"count_global"}
        return
    assert planned is not None
    assert (planned.columns, parts_of(wanted[1], planned.channels)) == (row.columns, row.passes)
    assert used == {"count_shared", "count_global"}  # a node of few rows does not pay for a flush


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("weighted", [False, True], ids=["labels", "weights"])
@pytest.mark.parametrize("limit", SHARED_LIMITS)
@pytest.mark.parametrize("name", ROWS)
def test_every_row_counts_right(name: str, limit: int, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    check(ROWS[name], limit, weighted, False, monkeypatch)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("name", ROWS)
def test_every_row_is_free_of_races(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(ROWS[name], 48, name in ("8 columns", "2 passes"), True, monkeypatch)
