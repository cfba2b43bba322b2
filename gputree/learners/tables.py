"""From a user's table to one float matrix and a schema. May import everything below and narwhals.

Numbers stay as they are (float32 stays float32, NaN is missing). A column of strings, booleans, categories or enums
holds category numbers 0 .. K - 1, NaN where missing, -1 for a category that was never declared.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    frame = nw.from_native(X, eager_only=True, pass_through=True)
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
    """Kind and categories of one column of a frame."""
    if column.dtype.is_numeric():
        return Feature(name)
    if isinstance(column.dtype, nw.Categorical | nw.Enum):
        return Feature(name, Kind.CATEGORICAL, tuple(column.cat.get_categories().to_list()))
    if isinstance(column.dtype, nw.String | nw.Boolean | nw.Object):
        return Feature(name, Kind.CATEGORICAL, tuple(sorted_values(column, name)))
    raise TypeError(
        f"column {name!r} has type {column.dtype}, which gputree does not read; "
        "columns may be numbers, strings, booleans, categories or enums: convert it first"
    )


def sorted_values(column: Series, name: str) -> list[Any]:
    """Distinct known values in order."""
    values = {v for v in column.to_list() if v is not None and v == v}
    odd = next((v for v in values if not isinstance(v, str | bool)), None)
    if odd is not None:
        raise TypeError(
            f"column {name!r} mixes in {odd!r}, a {type(odd).__name__}, where text was due; "
            "give it one type (numbers, or strings)"
        )
    return sorted(values)


def read_matrix(frame: Frame, schema: Schema) -> NDArray[Any]:
    """The frame as floats (n, F): float32 if all its columns are, else float64."""
    columns = [read_column(frame[:, i], feature) for i, feature in enumerate(schema.features)]
    return np.stack(columns, axis=1)


def read_column(column: Series, feature: Feature) -> NDArray[Any]:
    """One column as floats: numbers, or category numbers."""
    if feature.kind == Kind.NUMERIC:
        if not column.dtype.is_numeric():
            raise TypeError(
                f"column {feature.name!r} was a column of numbers when the model was fitted and is now {column.dtype}; "
                "give numbers"
            )
        return numbers(column)
    if column.dtype.is_numeric():
        raise TypeError(
            f"column {feature.name!r} held categories when the model was fitted and is now {column.dtype}; "
            "give the same kind of values"
        )
    number = {value: float(i) for i, value in enumerate(feature.categories)}
    return np.array([np.nan if v is None or v != v else number.get(v, UNKNOWN) for v in column.to_list()], np.float64)


def numbers(column: Series) -> NDArray[Any]:
    """A numeric column as floats, null as NaN; float32 stays float32."""
    if column.null_count():
        return np.array([np.nan if v is None else v for v in column.to_list()], np.float64)
    array: NDArray[Any] = column.to_numpy()
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
