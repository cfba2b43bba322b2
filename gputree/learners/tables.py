"""From a user's table to one float matrix and a schema. May import everything below and narwhals.

Numbers stay as they are (float32 stays float32, NaN is missing), booleans are 0 and 1. A column of strings, categories
or enums holds category numbers 0 .. K - 1, NaN where missing, -1 for a category that was never declared.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from gputree.core.schema import MAX_CODES, Feature, Kind, Schema

UNKNOWN = -1.0


@dataclass(frozen=True, slots=True)
class ArrayColumn:
    """One column of `Columns`, as far as this module asks a narwhals series: floats, or objects with None."""

    values: NDArray[Any]

    @property
    def dtype(self) -> nw.dtypes.DType:
        """Numbers, or text."""
        return nw.String() if self.values.dtype == object else nw.Float64()

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

    An array f4/f8 (n,) holds numbers, NaN where missing; an object array text or booleans, None where missing.
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
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(f"X is a {type(X).__name__}, whose rows are not there yet; call .collect() on it first")
    return frame if isinstance(frame, nw.DataFrame) else None


def read_schema(frame: Frame) -> Schema:
    """Kinds, names and categories of the columns of a frame, in order."""
    features = tuple(read_feature(frame[:, i], str(name)) for i, name in enumerate(frame.columns))
    for feature in features:
        if len(feature.categories) >= MAX_CODES:
            raise ValueError(
                f"column {feature.name!r} has {len(feature.categories):,} categories; at most {MAX_CODES - 1:,} are "
                "possible: leave it out, or group its values"
            )
    return Schema(features)


def read_feature(column: Series, name: str) -> Feature:
    """Kind and categories of one column of a frame; booleans are the numbers 0 and 1, an empty column is numeric."""
    if column.dtype.is_numeric() or column.dtype == nw.Boolean or missing_cells(column).all():
        return Feature(name)
    if isinstance(column.dtype, nw.Categorical | nw.Enum):
        return Feature(name, Kind.CATEGORICAL, declared_values(column, name))
    if isinstance(column.dtype, nw.String | nw.Object):
        known = [v for v, gone in zip(cells(column), missing_cells(column), strict=True) if not gone]
        if all(is_number(value) for value in known):
            return Feature(name)
        return Feature(name, Kind.CATEGORICAL, sorted_values(known, name))
    raise TypeError(
        f"column {name!r} has type {column.dtype}, which gputree does not read: columns may be numbers, strings, "
        "booleans, categories or enums; turn dates into numbers (days since one of them, or year, month and weekday)"
    )


def is_number(value: Any) -> bool:
    """Whether a Python object is a number, booleans included."""
    return isinstance(value, Real | Decimal | np.bool_)


def declared_values(column: Series, name: str) -> tuple[Any, ...]:
    """Categories of a category column: in their own order where they have one, else sorted, as strings are."""
    values = [v for v in column.cat.get_categories().to_list() if v is not None]
    if isinstance(column.dtype, nw.Enum) or nw.is_ordered_categorical(column):
        return tuple(values)
    return sorted_values(values, name)


def sorted_values(known: list[Any], name: str) -> tuple[Any, ...]:
    """Distinct values in order, if they are of types that have one."""
    try:
        return tuple(sorted(set(known)))
    except TypeError as error:
        names = sorted({type(value).__name__ for value in known})
        raise TypeError(
            f"column {name!r} holds values of type {' and '.join(names)}, which have no common order; "
            "give it one type: text, or numbers"
        ) from error


def read_matrix(frame: Frame, schema: Schema) -> NDArray[Any]:
    """The frame as floats (n, F): float32 if all its columns are, else float64."""
    if not frame.shape[0]:
        raise ValueError("Found a frame with 0 rows while a minimum of 1 is required: give at least one row")
    single = all(frame[:, i].dtype == nw.Float32 for i in range(frame.shape[1]))
    matrix = np.empty(frame.shape, np.float32 if single else np.float64)
    for i, feature in enumerate(schema.features):
        matrix[:, i] = read_column(frame[:, i], feature)
    return matrix


def read_column(column: Series, feature: Feature) -> NDArray[Any]:
    """One column as floats: numbers, or category numbers."""
    missing = missing_cells(column)
    if missing.all():
        return np.full(missing.size, np.nan, np.float32)
    if feature.kind == Kind.NUMERIC:
        return numbers(column, missing, feature.name)
    if column.dtype.is_numeric():
        raise TypeError(
            f"column {feature.name!r} held categories when the model was fitted and is now {column.dtype}; "
            "give the same kind of values"
        )
    number = {value: float(i) for i, value in enumerate(feature.categories)}
    return np.array(
        [np.nan if gone else number.get(v, UNKNOWN) for v, gone in zip(cells(column), missing, strict=True)], np.float64
    )


def numbers(column: Series, missing: NDArray[np.bool_], name: str) -> NDArray[Any]:
    """A numeric column as floats, NaN where missing; float32 stays float32."""
    if column.dtype.is_numeric():
        array: NDArray[Any] = (column.fill_null(0) if column.null_count() else column).to_numpy()
    else:
        array = np.array([0 if gone else v for v, gone in zip(cells(column), missing, strict=True)], object)
        odd = next((v for v in array if not is_number(v)), None)
        if odd is not None:
            raise TypeError(
                f"column {name!r} was a column of numbers when the model was fitted and now holds {odd!r}; give numbers"
            )
    try:
        floats = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    except OverflowError as error:
        raise ValueError(f"column {name!r} holds a number beyond the range of float64; scale it first") from error
    return np.where(missing, floats.dtype.type(np.nan), floats) if missing.any() else floats


def cells(column: Series) -> list[Any]:
    """The values of a column as Python objects."""
    values: list[Any] = column.to_list()
    return values


def missing_cells(column: Series) -> NDArray[np.bool_]:
    """Where a column has None, null, NA, NaT or NaN, bool (n,)."""
    if isinstance(column, ArrayColumn):
        array = column.values
        gone = (
            np.array([v is None or v != v for v in array.tolist()], bool) if array.dtype == object else np.isnan(array)
        )
    else:
        gone = column.is_null().to_numpy().astype(bool)
        if column.dtype.is_float():
            gone |= column.is_nan().fill_null(True).to_numpy().astype(bool)
    found: NDArray[np.bool_] = gone
    return found
