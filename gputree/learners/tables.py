"""From a user's table to one float matrix and a schema. May import everything below and narwhals.

Numbers stay as they are (float32 stays float32, NaN is missing). A column of categories holds their numbers 0 .. K - 1,
NaN where missing, -1 for a value that is none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from gputree.core.checks import bare, brief, row_number, what_is
from gputree.core.schema import MAX_CODES, Feature, Kind, Schema
from gputree.learners.frames import Frame, Series, cells, columns_of, is_gone, missing_cells

UNKNOWN = -1.0
DATES = "turn dates into numbers (days since one of them, or year, month and weekday)"


@dataclass(frozen=True, slots=True)
class Reading:
    """Which columns hold categories: by their type, or those listed; and the values of those that are declared.

    ``integers``: whether integers are a type of categories.
    """

    by_type: bool = True
    listed: frozenset[int] = frozenset()
    declared: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    integers: bool = False


def reading(features: Any, declared: Any, names: Sequence[str]) -> Reading:
    """``categorical_features`` and ``categories`` as column numbers.

    Raises
    ------
    ValueError, TypeError
        If they name no column, or a mask has another length.
    """
    values = {
        place(column, names, "categories"): checked_categories(column, given)
        for column, given in dict(declared or {}).items()
    }
    if isinstance(features, str) or features is None:  # the parameter check lets only "from_dtype" through
        return Reading(features is not None, frozenset(), values)
    chosen = [bare(item) for item in np.ravel(np.array(features, object))]
    if chosen and all(isinstance(item, bool) for item in chosen):
        if len(chosen) != len(names):
            raise ValueError(f"categorical_features is a mask of {len(chosen)} values for {len(names)} columns")
        listed = [i for i, marked in enumerate(chosen) if marked]
    else:
        listed = [place(column, names, "categorical_features") for column in chosen]
    return Reading(False, frozenset(listed), values)


def checked_categories(column: Any, given: Any) -> tuple[Any, ...]:
    """The declared categories of one column.

    Raises
    ------
    ValueError, TypeError
        If they are no list of distinct texts, numbers or booleans.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray) or not len(given):
        raise TypeError(f"categories of column {column!r} must be a list of values, got {brief(given)}")
    values = tuple(given)
    refuse_odd([v for v in values if not is_gone(v)], str(column))
    if len(set(values)) != len(values) or any(is_gone(value) for value in values):
        raise ValueError(f"categories of column {column!r} must be distinct and not missing, got {brief(given)}")
    return values


def place(column: Any, names: Sequence[str], what: str) -> int:
    """Number of a column given by its number or name."""
    if isinstance(column, int | np.integer) and not isinstance(column, bool):
        if -len(names) <= column < len(names):
            return int(column) % len(names)
    elif str(column) in names:
        return names.index(str(column))
    known = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    raise ValueError(f"{what} names column {column!r}, which X does not have; its {len(names)} columns are {known}")


def read_schema(frame: Frame, how: Reading | None = None) -> Schema:
    """Kinds, names and categories of the columns of a frame, in order."""
    how = how or Reading()
    named = zip(columns_of(frame), frame.columns, strict=True)
    features = tuple(read_feature(column, str(name), i, how) for i, (column, name) in enumerate(named))
    for feature in features:
        if len(feature.categories) >= MAX_CODES:
            raise ValueError(
                f"column {feature.name!r} has {len(feature.categories):,} categories; at most {MAX_CODES - 1:,} are "
                "possible: leave it out, or group its values"
            )
    return Schema(features)


def read_feature(column: Series, name: str, i: int, how: Reading) -> Feature:
    """Kind and categories of one column of a frame; an empty column is numeric unless it was named."""
    if i in how.declared:
        return Feature(name, Kind.CATEGORICAL, how.declared[i], declared=True)
    if i in how.listed or (how.by_type and how.integers and only_integers(column)):
        return category_feature(column, name)
    if column.dtype.is_numeric() or (not typed_categories(column.dtype) and missing_cells(column).all()):
        return Feature(name)
    if column.dtype == nw.Boolean:
        return category_feature(column, name) if how.by_type else Feature(name)
    if not isinstance(column.dtype, nw.Categorical | nw.Enum | nw.String | nw.Object):
        raise TypeError(
            f"column {name!r} has type {type_of(column)}, which gputree does not read: columns may be numbers, "
            f"strings, booleans, categories or enums; {DATES}, or leave the column out"
        )
    if isinstance(column.dtype, nw.Object | nw.String):
        known = known_cells(column)
        if known and all(is_number(value) for value in known) and not (how.by_type and only_booleans(known)):
            return Feature(name)
    if not how.by_type and missing_cells(column).all():
        return Feature(name)
    if not how.by_type:
        refuse_odd(known_cells(column), name)
        raise TypeError(
            f"column {name!r} holds {known_cells(column)[0]!r}, which is no number, and categorical_features does not "
            "name it; add it there, or use categorical_features='from_dtype'"
        )
    return category_feature(column, name)


def typed_categories(dtype: Any) -> bool:
    """Whether a type alone says that a column holds categories, even where all of its cells are missing."""
    return dtype == nw.Boolean or isinstance(dtype, nw.Categorical | nw.Enum | nw.String)


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
    whole = integers(column)
    if whole is not None:
        return Feature(name, Kind.CATEGORICAL, tuple(np.unique(whole).tolist()))
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


def only_integers(column: Series) -> bool:
    """Whether a column holds integers, by its type or, of objects, by all of its values."""
    if column.dtype != nw.Object:
        return bool(column.dtype.is_integer())
    known = known_cells(column)
    return bool(known) and all(isinstance(v, Integral) and not isinstance(v, bool | np.bool_) for v in known)


def integers(column: Series) -> NDArray[np.int64] | None:
    """The values of a column whose type is one of integers, if none is missing and all fit 64 bits with a sign."""
    if not column.dtype.is_integer() or column.null_count():
        return None
    array = column.to_numpy()
    if array.dtype.kind not in "iu" or (array.dtype == np.uint64 and array.max(initial=0) > np.iinfo(np.int64).max):
        return None
    whole: NDArray[np.int64] = array.astype(np.int64, copy=False)
    return whole


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
    strange = {kind for kind in set(map(type, known)) if kind_of(kind) == "other objects"}
    if strange:
        odd = next(v for v in known if type(v) in strange)
        remedy = DATES if isinstance(odd, date | time | timedelta) else "turn these into text, numbers or booleans"
        raise TypeError(
            f"column {name!r} holds values of type {type(odd).__name__} such as {str(odd)[:60]}; an argument must be a "
            f"string or a number: {remedy}, or leave the column out"
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
    columns = list(columns_of(frame))
    single = all(column.dtype == nw.Float32 for column in columns)
    matrix = np.empty(frame.shape, np.float32 if single else np.float64)
    for i, (column, feature) in enumerate(zip(columns, schema.features, strict=True)):
        matrix[:, i] = read_column(column, feature)
        if remedy and feature.kind == Kind.CATEGORICAL:
            for row in np.flatnonzero(matrix[:, i] == UNKNOWN)[:1]:
                refuse(column, feature, int(row), remedy)
    return matrix


def refuse(column: Series, feature: Feature, row: int, remedy: str) -> None:
    """Say which value is no category."""
    value, known = cells(column)[row], ", ".join(map(repr, feature.categories[:8]))
    more = f", ... {len(feature.categories) - 8} more" if len(feature.categories) > 8 else ""
    raise ValueError(
        f"column {feature.name!r} holds {value!r} in {row_number(row)}, which is none of its categories {known}{more}; "
        f"correct or leave out such rows, or {remedy}"
    )


def read_column(column: Series, feature: Feature) -> NDArray[Any]:
    """One column as floats: numbers, or category numbers."""
    missing = missing_cells(column)
    if missing.all():
        return np.full(missing.size, np.nan, np.float32)
    if feature.kind == Kind.NUMERIC:
        return numbers(column, missing, feature.name)
    numbered = numbered_integers(column, feature)
    if numbered is not None:
        return numbered
    number = {value: float(i) for i, value in enumerate(feature.categories)}
    typed = isinstance(column.dtype, nw.Categorical | nw.Enum)  # few values: they are looked up, not the cells
    held = column.drop_nulls() if typed else None
    known = (
        [v for v, gone in zip(cells(column), missing, strict=True) if not gone]
        if held is None
        else cells(held.unique())
    )
    if feature.categories:
        refuse_other_kind(known, feature)
    found: Any = np.array(list(map(number.get, known)), np.float64)  # NaN for None, which is no category
    found[np.isnan(found)] = UNKNOWN
    if held is not None:
        found = held.replace_strict(known, found.tolist(), return_dtype=nw.Float64()).to_numpy()
    result = np.full(missing.size, np.nan)
    result[~missing] = found
    return result


def numbered_integers(column: Series, feature: Feature) -> NDArray[np.float64] | None:
    """Category numbers of a column of integers, if its categories are integers too: as below, for all rows at once."""
    whole = integers(column)
    if whole is None or {type(category) for category in feature.categories} != {int}:
        return None
    values = np.array(feature.categories)
    if values.dtype != np.int64:
        return None
    order = np.argsort(values)
    place = order[np.minimum(np.searchsorted(values, whole, sorter=order), values.size - 1)]
    return np.where(values[place] == whole, place, UNKNOWN).astype(np.float64)


def refuse_other_kind(known: list[Any], feature: Feature) -> None:
    """Values must be text, numbers or booleans as the categories are; a number may stand for its equal, a boolean."""
    mine = {kind_of(type(category)) for category in feature.categories}
    odd = {kind for kind in set(map(type, known)) if kind_of(kind) not in mine}
    equal = set(feature.categories)
    for value in known if odd else ():
        if type(value) in odd and not (is_number(value) and value in equal):
            what = " and ".join(sorted(mine))
            raise TypeError(
                f"column {feature.name!r} holds {what}, its categories are such as {feature.categories[0]!r}, and X "
                f"has {value!r} there, {what_is(value)}; give the same kind of values"
            )


def kind_of(kind: type) -> str:
    """What values of a type are as categories."""
    if issubclass(kind, str):
        return "text"
    if issubclass(kind, bool | np.bool_):
        return "booleans"
    return "numbers" if issubclass(kind, Real | Decimal) else "other objects"


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
