"""Frames of every library as columns, and what stands for one. May import everything below and narwhals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias, get_args

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from gputree.core.checks import what_is, with_article

ArrowLibrary: TypeAlias = Literal["pyarrow", "polars"]


@dataclass(frozen=True, slots=True)
class ArrayColumn:
    """One column of `Columns`, as far as this module asks a narwhals series: numbers, or objects with None."""

    values: NDArray[Any]

    @property
    def dtype(self) -> nw.dtypes.DType:
        """Numbers, or anything."""
        kinds = {"O": nw.Object(), "b": nw.Boolean(), "i": nw.Int64(), "u": nw.UInt64()}
        if self.values.dtype.kind in kinds:
            return kinds[self.values.dtype.kind]
        return nw.Float32() if self.values.dtype == np.float32 else nw.Float64()

    def to_list(self) -> list[Any]:
        """The values as Python objects."""
        values: list[Any] = self.values.tolist()
        return values

    def to_numpy(self) -> NDArray[Any]:
        """The array itself."""
        return self.values

    def null_count(self) -> int:
        """Missing numbers are NaN, which is no null."""
        return 0


@dataclass(frozen=True, slots=True)
class Columns:
    """A frame of NumPy arrays, for tables that are read where no frame library is installed.

    An array f4/f8 (n,) holds numbers, NaN where missing; an object array text or booleans, None where missing. Arrays
    of integers or booleans hold no missing values.
    """

    columns: tuple[str, ...]
    arrays: tuple[NDArray[Any], ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return (self.arrays[0].size if self.arrays else 0, len(self.arrays))

    def __getitem__(self, place: tuple[slice, int]) -> ArrayColumn:
        """``frame[:, i]``, column i."""
        return ArrayColumn(self.arrays[place[1]])


Frame: TypeAlias = nw.DataFrame[Any] | Columns
Series: TypeAlias = Any  # nw.Series, or ArrayColumn


def as_frame(X: Any) -> Frame | None:
    """X as a narwhals frame or what stands for one, None if it is neither."""
    if isinstance(X, Columns):
        return X
    try:
        frame = nw.from_native(X, allow_series=True, pass_through=True)
        if frame is X and hasattr(X, "__arrow_c_stream__"):  # a frame of a library that narwhals does not know
            frame = nw.from_arrow(X, backend=arrow_library(type(X).__name__))
    except DuplicateError as error:
        raise ValueError(f"X has several columns of one name; rename them ({' '.join(str(error).split())})") from error
    if isinstance(frame, nw.Series):
        raise TypeError(f"X is {what_is(X)}, one column; give a table (2D) that holds it, such as a data frame")
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(f"X is {what_is(X)}, whose rows are not there yet; call .collect() on it first")
    return frame if isinstance(frame, nw.DataFrame) else None


def arrow_library(name: str) -> ArrowLibrary:
    """A library that reads Arrow streams."""
    found = next((library for library in get_args(ArrowLibrary) if find_spec(library)), None)
    if found is None:
        raise ImportError(
            f"X is {with_article(name)}, which is read through Arrow; run `pip install pyarrow`, or give an array"
        )
    library: ArrowLibrary = found
    return library


def columns_of(frame: Frame) -> Iterator[Series]:
    """The columns in order; those of types that narwhals does not know, such as pandas' sparse ones, as arrays."""
    if isinstance(frame, Columns):
        yield from map(ArrayColumn, frame.arrays)
        return
    for column in frame.iter_columns():
        array = np.asarray(column.to_native()) if column.dtype == nw.Unknown else None
        if array is None or array.dtype.kind not in "biuf":
            yield column
        else:
            yield ArrayColumn(array.astype(np.float64 if array.dtype.kind in "iuf" else object))


def cells(column: Series) -> list[Any]:
    """The values of a column as Python objects."""
    values: list[Any] = column.to_list()
    return values


def is_gone(value: Any) -> bool:
    """Whether a Python object stands for a missing value: None, NaN, NaT or a library's own, which equals nothing."""
    if value is None:
        return True
    try:
        return not bool(value == value)
    except (TypeError, ValueError):  # pandas' NA has no truth; neither has an array
        return type(value).__name__ == "NAType"


def gone_objects(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Where an array of objects (n,) holds what stands for a missing value."""
    try:  # all at once, where every object can be compared with itself
        gone: NDArray[np.bool_] = np.equal(array, np.array(None, object)) | np.not_equal(array, array)
    except (TypeError, ValueError):
        gone = np.array([is_gone(v) for v in array.tolist()], bool)
    return gone


def missing_cells(column: Series) -> NDArray[np.bool_]:
    """Where a column has None, null, NA, NaT or NaN, bool (n,)."""
    if isinstance(column, ArrayColumn):
        array = column.values
        gone = gone_objects(array) if array.dtype == object else np.isnan(array)
    else:
        gone = column.is_null().to_numpy().astype(bool)
        if column.dtype.is_float():  # narwhals' is_nan is wrong for pandas' half floats of Arrow
            gone |= np.isnan(np.asarray(column.to_numpy(), np.float64))
    found: NDArray[np.bool_] = gone
    return found
