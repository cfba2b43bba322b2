"""Small real tables that travel with the package, and generators of large ones.

Nothing here is fetched from a network. Sources and licences of the tables are in ``gputree/data/SOURCES.md``.
"""

from __future__ import annotations

import csv
import operator
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

__all__ = ["Table", "load_penguins", "make_higgs_like"]

FrameLibrary: TypeAlias = Literal["pandas", "polars", "pyarrow"]
_FRAME_LIBRARIES: tuple[FrameLibrary, ...] = get_args(FrameLibrary)

_PENGUIN_TEXT = frozenset({"species", "island", "sex"})
_PENGUIN_SOURCE = (
    "Horst AM, Hill AP, Gorman KB (2020), palmerpenguins, doi:10.5281/zenodo.3960218; data by Gorman KB, Williams TD, "
    "Fraser WR (2014), PLoS ONE 9(3): e90081, doi:10.1371/journal.pone.0090081. Licence: CC0 1.0"
)

_HIGGS_MEASURED = 21
_HIGGS_COLUMNS = 28
_HIGGS_WORDS = _HIGGS_MEASURED + 1  # 64-bit random words of a row: one a measured column, and one for the noise
_HIGGS_NOISE = 0.8  # a tree of depth 10 then reaches about 75 %, a perfect model 79 %
_CHUNK_ROWS = 16_384


@dataclass(frozen=True, eq=False)
class Table:
    """A small table: named columns, one of them the target.

    Parameters
    ----------
    names : tuple of str
        Column names, in the order of the source.
    columns : tuple of ndarray of shape (n_rows,)
        One array a name: float64 with NaN for a missing number, or object with None for a missing string.
    target : str
        Name of the column that a model usually predicts.
    source : str
        Who published the table, and its licence.

    Examples
    --------
    >>> table = load_penguins()
    >>> table.column("bill_length_mm")[:3]
    array([39.1, 39.5, 40.3])
    """

    names: tuple[str, ...]
    columns: tuple[NDArray[Any], ...]
    target: str
    source: str

    def column(self, name: str) -> NDArray[Any]:
        """Give the column called `name`.

        Parameters
        ----------
        name : str
            One of ``names``.

        Returns
        -------
        ndarray of shape (n_rows,)
            The array itself, not a copy.

        Raises
        ------
        ValueError
            If the table has no such column.
        """
        if name not in self.names:
            raise ValueError(f"no column {name!r} in this table; its columns are {', '.join(self.names)}")
        return self.columns[self.names.index(name)]

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """Give the table as a data frame.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            What to build the frame with; by default the first of these that is installed.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            Shape (n_rows, n_columns): float64 and string columns; a missing cell is the library's own missing value.

        Raises
        ------
        ImportError
            If the library (or, by default, each of the three) is not installed.
        ValueError
            If `library` is none of the three.
        """
        found = _frame_library(library)
        import narwhals as nw

        data = {name: _cells(column) for name, column in zip(self.names, self.columns, strict=True)}
        schema = {
            name: nw.String() if column.dtype == object else nw.Float64()
            for name, column in zip(self.names, self.columns, strict=True)
        }
        return nw.from_dict(data, schema=schema, backend=found).to_native()


def load_penguins() -> Table:
    """Load the Palmer penguins: size, sex and island of 344 penguins of three species.

    Returns
    -------
    Table
        344 rows, 8 columns. Strings: ``species`` (the target: Adelie, Chinstrap, Gentoo), ``island`` and ``sex`` (11
        missing). Numbers: ``bill_length_mm``, ``bill_depth_mm``, ``flipper_length_mm`` (millimetres) and
        ``body_mass_g`` (grams), each missing in the same 2 rows, and ``year`` (2007 to 2009).

    Notes
    -----
    Horst, Hill & Gorman (2020), *palmerpenguins*, doi:10.5281/zenodo.3960218; data of Gorman, Williams & Fraser (2014),
    *PLoS ONE* 9(3): e90081. Licence: CC0 1.0.

    Examples
    --------
    >>> table = load_penguins()
    >>> sorted(set(table.column(table.target)))
    ['Adelie', 'Chinstrap', 'Gentoo']
    """
    text = resources.files("gputree").joinpath("data/penguins.csv").read_text(encoding="utf-8")
    names, *rows = csv.reader(text.splitlines())
    columns = tuple(
        _strings(cells) if name in _PENGUIN_TEXT else _numbers(cells)
        for name, cells in zip(names, zip(*rows, strict=True), strict=True)
    )
    return Table(tuple(names), columns, target="species", source=_PENGUIN_SOURCE)


def make_higgs_like(n_rows: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Make a large, noisy two-class table with the shape of the HIGGS data: 28 columns, hard to learn.

    Columns 0 to 20 are independent and bell-shaped ("measured"; mean 0, variance 1, about 2**18 distinct values).
    Columns 21 to 27 are radii, distances and products of them, as the derived columns of HIGGS are. The class is the
    sign of a non-linear score of both plus noise: the classes are balanced, the score alone is right for 79 % of the
    rows, a decision tree of depth 10 grown on 400,000 rows for about 75 %.

    Parameters
    ----------
    n_rows : int
        Number of rows, at least 1.
    seed : int, default=0
        Non-negative. The first rows of a longer table with the same seed are the shorter table.

    Returns
    -------
    X : ndarray of shape (n_rows, 28), float32
        No missing values.
    y : ndarray of shape (n_rows,), int64
        0 or 1.

    Raises
    ------
    TypeError
        If `n_rows` or `seed` is not an integer.
    ValueError
        If `n_rows` is below 1 or `seed` below 0.

    Notes
    -----
    The same arguments give the same bytes on every platform and NumPy version: only the raw words of PCG64 are used,
    whose stream NumPy guarantees (NEP 19), then integer sums and the correctly rounded operations ``+ - * sqrt``.
    The layout follows Baldi, Sadowski & Whiteson (2014), *Nature Communications* 5: 4308; the values are not theirs.

    Examples
    --------
    >>> X, y = make_higgs_like(1000)
    >>> X.shape, X.dtype, y.shape
    ((1000, 28), dtype('float32'), (1000,))
    """
    n_rows, seed = _at_least("n_rows", n_rows, 1), _at_least("seed", seed, 0)
    X = np.empty((n_rows, _HIGGS_COLUMNS), dtype=np.float32)
    y = np.empty(n_rows, dtype=np.int64)
    words = np.random.PCG64(seed)
    for start in range(0, n_rows, _CHUNK_ROWS):
        rows = slice(start, min(start + _CHUNK_ROWS, n_rows))
        # The stream runs row by row, so the size of a chunk cannot change a value.
        raw = np.asarray(words.random_raw((rows.stop - start) * _HIGGS_WORDS), dtype=np.uint64)
        _higgs_chunk(_bell(raw.reshape(-1, _HIGGS_WORDS).T), X[rows], y[rows])
    return X, y


def _higgs_chunk(z: NDArray[np.float64], X: NDArray[np.float32], y: NDArray[np.int64]) -> None:
    """Fill `X` (n, 28) and `y` (n,) from the bell-shaped `z` (22, n)."""
    # No power, exp or hypot: their last bit differs between C libraries; the square root's does not.
    transverse, opening = _radius(z[0], z[1]), _radius(z[3], z[4])
    distance = np.abs(z[9] - z[10])
    product = z[12] * z[13]
    mass = np.sqrt(z[15] * z[15] + z[16] * z[16] + z[17] * z[17])
    jets, pair = _radius(z[6], z[7]), _radius(z[0], z[3]) * _radius(z[6], z[9])
    derived = (transverse, opening, jets, distance, product, pair, mass)
    score = 0.9 * (transverse - 1.25) + 0.7 * product + 0.6 * (mass - 1.6) * z[18]
    score -= 0.8 * (opening - 1.25) * (z[2] > 0)
    score += 0.4 * (distance - 1.13) - 0.5 * (np.abs(z[5]) - 0.8)
    X[:, :_HIGGS_MEASURED] = z[:_HIGGS_MEASURED].T
    X[:, _HIGGS_MEASURED:] = np.stack(derived, axis=1)
    y[:] = score + _HIGGS_NOISE * z[_HIGGS_MEASURED] > 0


def _bell(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Turn each random word into the standardised sum of its four 16-bit quarters: bell-shaped and exact."""
    low = np.uint64(0xFFFF)
    total = words & low
    for shift in (16, 32, 48):
        total += (words >> np.uint64(shift)) & low
    centred = total.astype(np.float64) - 2 * 65_535.0
    return centred * (1.0 / 37_837.0)  # 37,837 = 65,536 * sqrt(4 / 12), the standard deviation of the sum


def _radius(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    root: NDArray[np.float64] = np.sqrt(a * a + b * b)
    return root


def _at_least(name: str, value: int, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}; pass for example {name}={least + 1}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    return number


def _strings(cells: tuple[str, ...]) -> NDArray[np.object_]:
    return np.array([cell or None for cell in cells], dtype=object)


def _numbers(cells: tuple[str, ...]) -> NDArray[np.float64]:
    return np.array([float(cell) if cell else np.nan for cell in cells], dtype=np.float64)


def _cells(column: NDArray[Any]) -> list[Any]:
    """List the values with None for a missing one: polars and pyarrow keep NaN and missing apart."""
    cells = column.astype(object)
    if column.dtype != object:
        cells[np.isnan(column)] = None
    return list(cells)


def _frame_library(wanted: FrameLibrary | None) -> FrameLibrary:
    if wanted is not None and wanted not in _FRAME_LIBRARIES:
        raise ValueError(f"library={wanted!r} is not supported; choose one of {', '.join(_FRAME_LIBRARIES)}")
    candidates = _FRAME_LIBRARIES if wanted is None else (wanted,)
    for name in candidates:
        if find_spec(name) is not None:
            return name
    missing = " or ".join(candidates)
    raise ImportError(f"a data frame needs {missing}, which is not installed; run `pip install {candidates[0]}`")
