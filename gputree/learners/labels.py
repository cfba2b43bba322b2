"""The y of a fit: one array an output, each of its own type. May import everything below and narwhals."""

from __future__ import annotations

from itertools import pairwise
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array

from gputree.backends.arrays import to_host
from gputree.core.checks import readable, what_is
from gputree.learners.frames import is_gone


def as_columns(y: Any, n_rows: int) -> list[NDArray[Any]]:
    """The y of a fit as arrays (n,), one an output.

    Raises
    ------
    ValueError, TypeError
        If y is missing in whole or part, has another number of rows than X, or mixes text with other values.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = to_host(y)
    frame = nw.from_native(y, allow_series=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        columns = [checked_array(series_array(frame[:, i]))[:, 0] for i in range(frame.shape[1])]
    else:
        columns = list(checked_array(series_array(y)).T)
    if not columns:
        raise ValueError("y has no column; give one value, or list of values, for each row")
    if any(missing_labels(column) for column in columns):
        raise ValueError("Input y contains NaN; leave such rows out, or give them a label or number of their own")
    if columns[0].size != n_rows:
        n = columns[0].size
        raise ValueError(f"y has {n} rows and X has {n_rows}: give one value or list of values for each row")
    return columns


def checked_array(y: Any) -> NDArray[Any]:
    """One array of labels as scikit-learn checks it, (n, outputs)."""
    array: NDArray[Any]
    with readable("y", "an array or a list of a value, or values, for each row"):
        array = check_array(y, ensure_2d=False, dtype=None, ensure_all_finite=False, input_name="y")
    if array.dtype.kind in "US" and not hasattr(y, "dtype") and not hasattr(y, "__array__"):
        odd = next((v for v in np.array(y, object).ravel() if not isinstance(v, str | bytes)), None)
        if odd is not None:
            raise TypeError(f"y mixes in {odd!r}, {what_is(odd)}, beside text; give labels of one type")
    return array.reshape(-1, 1) if array.ndim == 1 else array


def series_array(y: Any) -> Any:
    """A series as an array of its own type: whole numbers and booleans that may be null are no floats."""
    if isinstance(y, np.ma.MaskedArray):
        if np.ma.getmaskarray(y).any():
            raise ValueError("Input y contains NaN: some of its values are masked; leave such rows out")
        return np.asarray(y)
    series = nw.from_native(y, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        return y.astype(object) if getattr(getattr(y, "dtype", None), "kind", "") == "T" else y
    if series.dtype in (nw.Int128, nw.UInt128) or getattr(series.dtype, "time_zone", None):
        return np.array(series.to_list(), object)  # NumPy has no such type: the objects are the labels
    return np.array(series.to_list(), object) if series.null_count() else series.to_numpy()


def missing_labels(y: NDArray[Any]) -> bool:
    """Whether a label is None, NaN or a library's own missing value."""
    if y.dtype.kind == "f":
        return bool(np.isnan(y).any())
    if y.dtype != object:
        return bool(y.dtype.kind in "mM" and np.isnat(y).any())
    return any(is_gone(label) for label in y.tolist())


def classes_of(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Sorted classes (k,) and class numbers i4 (n,) of one output.

    Raises
    ------
    ValueError, TypeError
        If the labels are numbers with fractions, or have no common order.
    """
    if column.dtype == object and {type(label) for label in column} in ({int}, {float}, {bool}):
        column = np.array(column.tolist())  # beyond 64 bits they stay objects
    objects = column.dtype == object and not all(isinstance(label, str) for label in column)
    if objects and all(isinstance(label, Real) for label in column) and any(label % 1 for label in column):
        column = column.astype(np.float64)
    if not objects or column.dtype != object:
        check_classes(column)
    try:
        classes, numbers = np.unique(column, return_inverse=True)
        ordered = not objects or all(a < b for a, b in pairwise(classes))
    except TypeError:
        ordered = False
    if not ordered:
        types = " and ".join(sorted({type(label).__name__ for label in column}))
        raise TypeError(f"y holds labels of type {types}, without a common order; give labels of one type")
    return classes, numbers.astype(np.int32).ravel()


def known_columns(y: Any, n_rows: int, n_outputs: int) -> list[NDArray[Any]]:
    """The y of other rows as arrays (n,), as many as the fit had outputs.

    Raises
    ------
    ValueError, TypeError
        If they are others, or as `as_columns` says.
    """
    columns = as_columns(y, n_rows)
    if len(columns) != n_outputs:
        raise ValueError(f"y has {len(columns)} outputs, and the fit had {n_outputs}")
    return columns


def numbers_of(column: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int32]:
    """Class numbers i4 (n,) of labels among the classes of a fit, or of rules.

    Raises
    ------
    ValueError
        If a label is none of them.
    """
    number = {label: i for i, label in enumerate(classes.tolist())}
    labels = column.tolist()
    odd = next((label for label in labels if label not in number), None)
    if odd is not None:
        raise ValueError(f"y holds {odd!r}, which is none of the {classes.size} known classes; leave such rows out")
    return np.array([number[label] for label in labels], np.int32)


def check_classes(column: NDArray[Any]) -> None:
    """Refuse numbers with fractions and infinite ones, which are no classes."""
    if column.dtype.kind == "f" and np.isinf(column).any():
        raise ValueError("Input y contains infinity, which is no class; leave such rows out")
    try:
        with np.errstate(invalid="ignore"):  # of a cast that scikit-learn tries
            check_classification_targets(column)
    except ValueError as error:
        if "continuous" not in str(error):
            raise
        raise ValueError(
            f"{error} For numbers use DecisionTreeRegressor, or in split_table criterion='squared_error'"
        ) from error


def side_by_side(columns: list[NDArray[Any]]) -> NDArray[Any]:
    """Columns (n,) as one array (n, outputs), of objects where they are of different kinds."""
    if len({column.dtype.kind for column in columns}) > 1:
        columns = [column.astype(object) for column in columns]
    return np.stack(columns, axis=1)
