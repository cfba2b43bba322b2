"""From a user's table to one float matrix and a schema. May import everything below and narwhals.

Numbers stay as they are (float32 stays float32, NaN is missing). A column of categories holds their numbers 0 .. K - 1,
NaN where missing, -1 for a value that is none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from importlib.util import find_spec
from numbers import Real
from typing import Any, Literal, TypeAlias, get_args

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from gputree.core.schema import MAX_CODES, Feature, Kind, Schema

UNKNOWN = -1.0
ArrowLibrary: TypeAlias = Literal["pyarrow", "polars"]


@dataclass(frozen=True, slots=True)
class ArrayColumn:
    """One column of `Columns`, as far as this module asks a narwhals series: floats, or objects with None."""

    values: NDArray[Any]

    @property
    def dtype(self) -> nw.dtypes.DType:
        """Numbers, or anything."""
        if self.values.dtype == object:
            return nw.Object()
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


@dataclass(frozen=True, slots=True)
class Reading:
    """Which columns hold categories: by their type, or those listed; and the values of those that are declared."""

    by_type: bool = True
    listed: frozenset[int] = frozenset()
    declared: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)


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
        raise TypeError(f"X is a {type(X).__name__}, one column; give a table (2D) that holds it, such as a data frame")
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(f"X is a {type(X).__name__}, whose rows are not there yet; call .collect() on it first")
    return frame if isinstance(frame, nw.DataFrame) else None


def arrow_library(name: str) -> ArrowLibrary:
    """A library that reads Arrow streams."""
    found = next((library for library in get_args(ArrowLibrary) if find_spec(library)), None)
    if found is None:
        raise ImportError(f"X is a {name}, which is read through Arrow; run `pip install pyarrow`, or give an array")
    library: ArrowLibrary = found
    return library


def reading(features: Any, declared: Any, names: Sequence[str]) -> Reading:
    """``categorical_features`` and ``categories`` as column numbers.

    Raises
    ------
    ValueError, TypeError
        If they name no column, or a mask has another length.
    """
    values = {place(column, names, "categories"): tuple(given) for column, given in dict(declared or {}).items()}
    for number, given in values.items():
        if len(set(given)) != len(given) or any(is_gone(value) for value in given):
            raise ValueError(f"categories of column {names[number]!r} must be distinct and not missing, got {given!r}")
    if isinstance(features, str) or features is None:  # the parameter check lets only "from_dtype" through
        return Reading(features is not None, frozenset(), values)
    chosen = [item.item() if isinstance(item, np.generic) else item for item in np.ravel(np.array(features, object))]
    if chosen and all(isinstance(item, bool) for item in chosen):
        if len(chosen) != len(names):
            raise ValueError(f"categorical_features is a mask of {len(chosen)} values for {len(names)} columns")
        listed = [i for i, marked in enumerate(chosen) if marked]
    else:
        listed = [place(column, names, "categorical_features") for column in chosen]
    return Reading(False, frozenset(listed), values)


def place(column: Any, names: Sequence[str], what: str) -> int:
    """Number of a column given by its number or name."""
    if isinstance(column, int | np.integer) and not isinstance(column, bool):
        if -len(names) <= column < len(names):
            return int(column) % len(names)
    elif str(column) in names:
        return list(names).index(str(column))
    known = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    raise ValueError(f"{what} names column {column!r}, which X does not have; its {len(names)} columns are {known}")


def read_schema(frame: Frame, how: Reading | None = None) -> Schema:
    """Kinds, names and categories of the columns of a frame, in order."""
    how = how or Reading()
    features = tuple(read_feature(column_of(frame, i), str(name), i, how) for i, name in enumerate(frame.columns))
    for feature in features:
        if len(feature.categories) >= MAX_CODES:
            raise ValueError(
                f"column {feature.name!r} has {len(feature.categories):,} categories; at most {MAX_CODES - 1:,} are "
                "possible: leave it out, or group its values"
            )
    return Schema(features)


def column_of(frame: Frame, i: int) -> Series:
    """One column; of types that narwhals does not know, such as pandas' sparse ones, as an array."""
    column: Series = frame[:, i]
    if column.dtype != nw.Unknown:
        return column
    array = np.asarray(column.to_native())
    if array.dtype.kind not in "biuf":
        return column
    return ArrayColumn(array.astype(np.float64 if array.dtype.kind in "iuf" else object))


def read_feature(column: Series, name: str, i: int, how: Reading) -> Feature:
    """Kind and categories of one column of a frame; an empty column is numeric unless it was named."""
    if i in how.declared:
        return Feature(name, Kind.CATEGORICAL, how.declared[i], declared=True)
    if i in how.listed:
        return category_feature(column, name)
    if column.dtype.is_numeric() or missing_cells(column).all():
        return Feature(name)
    if column.dtype == nw.Boolean:
        return category_feature(column, name) if how.by_type else Feature(name)
    if not isinstance(column.dtype, nw.Categorical | nw.Enum | nw.String | nw.Object):
        raise TypeError(
            f"column {name!r} has type {type_of(column)}, which gputree does not read: columns may be numbers, "
            "strings, booleans, categories or enums; turn dates into numbers (days since one of them, or year, month "
            "and weekday), or leave the column out"
        )
    if isinstance(column.dtype, nw.Object | nw.String):
        known = known_cells(column)
        if all(is_number(value) for value in known) and not (how.by_type and only_booleans(known)):
            return Feature(name)
    if not how.by_type:
        refuse_odd(known_cells(column), name)
        raise TypeError(
            f"column {name!r} holds {known_cells(column)[0]!r}, which is no number, and categorical_features does not "
            "name it; add it there, or use categorical_features='from_dtype'"
        )
    return category_feature(column, name)


def type_of(column: Series) -> str:
    """Type of a column in the words of narwhals, or else of its own library."""
    return str(column.dtype if column.dtype != nw.Unknown else getattr(column.to_native(), "dtype", "unknown"))


def category_feature(column: Series, name: str) -> Feature:
    """A column of categories: declared ones where the type of the column lists them, else those found in it."""
    if column.dtype == nw.Boolean:
        return Feature(name, Kind.CATEGORICAL, (False, True), declared=True)
    if isinstance(column.dtype, nw.Categorical | nw.Enum):
        declared = declared_values(column, name)
        if declared is not None:
            return Feature(name, Kind.CATEGORICAL, declared, declared=True)
    known = known_cells(column)
    if known and only_booleans(known):
        return Feature(name, Kind.CATEGORICAL, (False, True), declared=True)
    return Feature(name, Kind.CATEGORICAL, sorted_values(known, name))


def known_cells(column: Series) -> list[Any]:
    """The values that are not missing, as Python objects."""
    return [v for v, gone in zip(cells(column), missing_cells(column), strict=True) if not gone]


def is_number(value: Any) -> bool:
    """Whether a Python object is a number, booleans included."""
    return isinstance(value, Real | Decimal | np.bool_)


def only_booleans(known: list[Any]) -> bool:
    """Whether all values are booleans."""
    return all(isinstance(value, bool | np.bool_) for value in known)


def declared_values(column: Series, name: str) -> tuple[Any, ...] | None:
    """Categories of a category column: in their own order where they have one, else sorted, as strings are.

    None where they cannot be asked for, as of pandas' dictionaries of Arrow.
    """
    try:
        values = [v for v in column.cat.get_categories().to_list() if v is not None]
    except AttributeError:
        return None
    if isinstance(column.dtype, nw.Enum) or nw.is_ordered_categorical(column):
        return tuple(values)
    return sorted_values(values, name)


def refuse_odd(known: list[Any], name: str) -> None:
    """Refuse what is neither text nor number."""
    odd = next((v for v in known if not isinstance(v, str) and not is_number(v)), None)
    if odd is not None:
        raise TypeError(
            f"column {name!r} holds values of type {type(odd).__name__} such as {str(odd)[:60]}; an argument must be a "
            "string or a number: turn these values into text, numbers or booleans, or leave the column out"
        )


def sorted_values(known: list[Any], name: str) -> tuple[Any, ...]:
    """Distinct values in order, if they are text, numbers or booleans, of types that have a common order."""
    refuse_odd(known, name)
    try:
        return tuple(sorted(set(known)))
    except TypeError as error:
        names = sorted({type(value).__name__ for value in known})
        raise TypeError(
            f"column {name!r} holds values of type {' and '.join(names)}, which have no common order; "
            "give it one type: text, or numbers"
        ) from error


def read_matrix(frame: Frame, schema: Schema, remedy: str = "") -> NDArray[Any]:
    """The frame as floats (n, F): float32 if all its columns are, else float64.

    Raises
    ------
    TypeError
        If a column is of another kind than the schema says.
    ValueError
        If there is no row; or a value is none of its column's categories, and there is a remedy to name.
    """
    if not frame.shape[0]:
        raise ValueError("Found a frame with 0 rows while a minimum of 1 is required: give at least one row")
    single = all(frame[:, i].dtype == nw.Float32 for i in range(frame.shape[1]))
    matrix = np.empty(frame.shape, np.float32 if single else np.float64)
    for i, feature in enumerate(schema.features):
        matrix[:, i] = read_column(column_of(frame, i), feature)
        if remedy and feature.kind == Kind.CATEGORICAL:
            for row in np.flatnonzero(matrix[:, i] == UNKNOWN)[:1]:
                refuse(column_of(frame, i), feature, int(row), remedy)
    return matrix


def refuse(column: Series, feature: Feature, row: int, remedy: str) -> None:
    """Say which value is no category."""
    value, known = cells(column)[row], ", ".join(map(repr, feature.categories[:8]))
    more = f", ... {len(feature.categories) - 8} more" if len(feature.categories) > 8 else ""
    raise ValueError(
        f"column {feature.name!r} holds {value!r} in row {row}, which is none of its categories {known}{more}; "
        f"correct or leave out such rows, or {remedy}"
    )


def read_column(column: Series, feature: Feature) -> NDArray[Any]:
    """One column as floats: numbers, or category numbers."""
    missing = missing_cells(column)
    if missing.all():
        return np.full(missing.size, np.nan, np.float32)
    if feature.kind == Kind.NUMERIC:
        return numbers(column, missing, feature.name)
    known = [v for v, gone in zip(cells(column), missing, strict=True) if not gone]
    if text_categories(feature) and not any(isinstance(v, str) for v in known):
        raise TypeError(
            f"column {feature.name!r} held categories such as {feature.categories[0]!r} when the model was fitted and "
            f"now holds {known[0]!r}; give the same kind of values"
        )
    if feature.categories and not text_categories(feature) and all(isinstance(v, str) for v in known):
        raise TypeError(
            f"column {feature.name!r} held categories such as {feature.categories[0]!r} when the model was fitted and "
            f"now holds text such as {known[0]!r}; give the same kind of values"
        )
    number = {value: float(i) for i, value in enumerate(feature.categories)}
    result = np.full(missing.size, np.nan)
    result[~missing] = [number.get(v, UNKNOWN) for v in known]
    return result


def text_categories(feature: Feature) -> bool:
    """Whether all categories of a column are text."""
    return bool(feature.categories) and all(isinstance(c, str) for c in feature.categories)


def numbers(column: Series, missing: NDArray[np.bool_], name: str) -> NDArray[Any]:
    """A numeric column as floats, NaN where missing; float32 stays float32."""
    if column.dtype in (nw.Int128, nw.UInt128):
        column = column.cast(nw.Float64())
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


def is_gone(value: Any) -> bool:
    """Whether a Python object stands for a missing value: None, NaN, NaT or a library's own, which equals nothing."""
    if value is None:
        return True
    try:
        return not bool(value == value)
    except (TypeError, ValueError):  # pandas' NA has no truth; neither has an array
        return type(value).__name__ == "NAType"


def missing_cells(column: Series) -> NDArray[np.bool_]:
    """Where a column has None, null, NA, NaT or NaN, bool (n,)."""
    if isinstance(column, ArrayColumn):
        array = column.values
        gone = np.array([is_gone(v) for v in array.tolist()], bool) if array.dtype == object else np.isnan(array)
    else:
        gone = column.is_null().to_numpy().astype(bool)
        if column.dtype.is_float():  # narwhals' is_nan is wrong for pandas' half floats of Arrow
            gone |= np.isnan(np.asarray(column.to_numpy(), np.float64))
    found: NDArray[np.bool_] = gone
    return found
