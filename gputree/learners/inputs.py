"""X of a fit or a prediction, whatever it is: frame, array, list or sparse matrix. May import everything below."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from gputree.backends.arrays import on_device, to_host
from gputree.core.checks import readable
from gputree.core.schema import Feature, Schema
from gputree.learners.frames import Columns, Frame, as_frame
from gputree.learners.memorised import warn_of_memorised
from gputree.learners.tables import Reading, is_number, known_cells, read_matrix, read_schema, reading


def read_fit(model: Any, X: Any) -> tuple[Any, Schema]:
    """X as floats f4/f8 (n, F), dense or csc, and what its columns are; remembers their number and names.

    Raises
    ------
    TypeError, ValueError
        If X is no table, or a column cannot be read; the message names the column and the remedy.
    """
    if stays_on_device(X) and not (model.categories or lists_columns(model.categorical_features)):
        return checked_device_array(model, X, reset=True)
    X = to_host(X)
    frame = as_frame(X)
    if frame is not None and not frame.shape[1]:
        raise ValueError("Found a frame with 0 feature(s) while a minimum of 1 is required: give it a column")
    if frame is None:
        array = read_array(model, X, reset=True)
        names = default_names(array.shape[1])
        how = reading(model.categorical_features, model.categories, names)
        named = named_integers(model, X) if how.by_type else None
        if plain(array) and named is None and not how.listed and not how.declared:
            return array, Schema(tuple(Feature(name) for name in names))
        if not isinstance(array, np.ndarray):
            raise TypeError("X is sparse, and columns of categories were named; give a frame or a dense array")
        frame = Columns(names, tuple((array if named is None else named).T))
        if named is None:
            refuse_numeric_text(frame, how)
    else:
        validate_data(model, native(frame), skip_check_array=True, reset=True)
        if isinstance(frame, Columns):
            model.feature_names_in_ = np.array(frame.columns, dtype=object)
        how = reading(model.categorical_features, model.categories, [str(name) for name in frame.columns])
    schema = read_schema(frame, replace(how, integers=model._integers_are_names))
    matrix = read_matrix(frame, schema, "list the value in `categories`")
    warn_of_memorised(matrix, schema, how.listed)
    return matrix, schema


def read_predict(model: Any, X: Any) -> Any:
    """X as floats f4/f8 (n, F), dense or csr; columns must be those of the fit, by name where there are names."""
    schema = model.schema_
    if stays_on_device(X) and not schema.kinds.any():
        return checked_device_array(model, X, reset=False)[0]
    X = to_host(X)
    frame = as_frame(X)
    if frame is None:
        array = read_array(model, X, reset=False)
        if plain(array) and not schema.kinds.any():
            return array
        if not isinstance(array, np.ndarray):
            raise TypeError("the model was fitted on categories, and X is sparse; give a frame or a dense array")
        named = named_integers(model, X)
        frame = Columns(tuple(schema.names), tuple((array if named is None else named).T))
    else:
        if not isinstance(frame, Columns):  # whose names scikit-learn does not see
            validate_names(model, native(frame))
        check_names(schema.names, [str(name) for name in frame.columns])
    remedy = "fit without unknown='error'" if model.unknown == "error" else ""
    return read_matrix(frame, schema, remedy)


def named_integers(model: Any, X: Any) -> NDArray[Any] | None:
    """X as an array of integers or booleans, if it is one and the model takes these for names of values."""
    if not model._integers_are_names or issparse(X) or isinstance(X, np.ma.MaskedArray):
        return None
    array = np.asarray(X)
    if array.dtype == object:
        array = np.array(array.tolist())
    return array if array.dtype.kind in "biu" else None


def stays_on_device(X: Any) -> bool:
    """Whether X is a table of floats in device memory; other arrays there are copied to the host."""
    return on_device(X) and len(X.shape) == 2 and str(X.dtype).rpartition(".")[2] in ("float32", "float64")


def lists_columns(categorical_features: Any) -> bool:
    """Whether columns of categories are named, and not left to the types of a frame."""
    return not (categorical_features is None or isinstance(categorical_features, str))


def checked_device_array(model: Any, X: Any, reset: bool) -> tuple[Any, Schema]:
    """X where it is: rows and columns are counted, the values are not looked at."""
    n, n_features = X.shape
    if not n or not n_features:
        raise ValueError(f"Found array with {n} sample(s) and {n_features} feature(s) while a minimum of 1 is required")
    validate_data(model, X, skip_check_array=True, reset=reset)
    return X, Schema(tuple(Feature(name) for name in default_names(n_features)))


def native(frame: Frame) -> Any:
    """The frame as scikit-learn knows it."""
    return frame if isinstance(frame, Columns) else frame.to_native()


def validate_names(model: Any, X: Any) -> None:
    """scikit-learn's check of names, with the remedy."""
    try:
        validate_data(model, X, skip_check_array=True, reset=False)
    except ValueError as error:
        if "feature names" not in str(error).lower():
            raise
        raise ValueError(
            f"{error}\nGive X[list(model.feature_names_in_)], the columns of the fit in their order"
        ) from error


def check_names(fitted: list[str], given: list[str]) -> None:
    """Refuse other columns than those of the fit; scikit-learn sees only names that are text."""
    if given == fitted or (len(given) == len(fitted) and tuple(fitted) == default_names(len(fitted))):
        return  # the same, or fitted without names
    mine, theirs = set(fitted), set(given)
    extra, gone = [n for n in given if n not in mine], [n for n in fitted if n not in theirs]
    named = (("unseen at fit time", extra), ("missing", gone))
    parts = [f"{what}: {', '.join(map(repr, names))}" for what, names in named if names]
    place = next((i for i, (a, b) in enumerate(zip(given, fitted, strict=False)) if a != b), 0)
    found = "; ".join(parts) or f"column {place} is {given[place]!r} and was {fitted[place]!r}"
    wanted = ", ".join(map(repr, fitted[:8])) + (", ..." if len(fitted) > 8 else "")
    raise ValueError(f"the columns of X are not those of the fit ({found}); give them in this order: {wanted}")


def default_names(n_features: int) -> tuple[str, ...]:
    """Names of columns that have none."""
    return tuple(f"feature_{i}" for i in range(n_features))


def plain(array: Any) -> bool:
    """Whether this is a table of numbers, dense or sparse."""
    return bool(array.dtype != object)


def read_array(model: Any, X: Any, reset: bool) -> Any:
    """X as floats (float32 as it lies, else float64; infinities are values, NaN is missing), or as objects (n, F)."""
    if isinstance(X, np.ma.MaskedArray):
        mask, number = np.ma.getmaskarray(X), X.dtype.kind in "biuf"
        X = np.asarray(X).astype(np.float64 if number else object)
        X[mask] = np.nan if number else None
    if getattr(getattr(X, "dtype", None), "kind", "") in ("m", "M"):
        raise TypeError(f"X has type {X.dtype}; turn dates and durations into numbers first")
    if getattr(getattr(X, "dtype", None), "names", None):
        raise TypeError(f"X is a structured array with fields {', '.join(X.dtype.names)}; give pandas.DataFrame(X)")
    objects = as_objects(X)
    if objects is not None:
        checked: NDArray[Any] = validate_data(model, objects, reset=reset, dtype=None, ensure_all_finite=False)
        return checked
    sparse = "csc" if reset else "csr"
    dtypes = (np.float64, np.float32)
    try:
        with readable("X", "a frame, an array (n_rows, n_features), or a list of rows of equal length"):
            return validate_data(model, X, reset=reset, dtype=dtypes, ensure_all_finite=False, accept_sparse=sparse)
    except OverflowError as error:
        raise ValueError("X holds a number beyond the range of float64; leave it out, or scale the column") from error


def as_objects(X: Any) -> NDArray[np.object_] | None:
    """X as an array of objects if it holds objects or text, None otherwise: numbers are for scikit-learn's checks."""
    if issparse(X):
        return None
    array = np.asarray(X) if hasattr(X, "__array__") else list_array(X)
    if array is None or array.dtype.kind not in "OUST" or array.ndim != 2:
        return None
    if array.dtype == object and set(map(type, array.ravel())) <= {int, float, type(None)}:
        return None
    return array.astype(object)


def list_array(X: Any) -> NDArray[Any] | None:
    """Lists of rows as an array, of objects where there is text or nothing among the values."""
    try:
        array = np.asarray(X)
        return np.array(X, dtype=object) if array.dtype.kind in "US" else array
    except (ValueError, TypeError):  # ragged rows: scikit-learn says so
        return None


def refuse_numeric_text(frame: Frame, how: Reading) -> None:
    """Numbers written as text are neither numbers nor meant as categories, unless a frame or the user says so."""
    for i, name in enumerate(frame.columns):
        known = [] if i in how.listed or i in how.declared else known_cells(frame[:, i])
        if known and all(isinstance(v, str) and is_written_number(v) for v in known):
            raise ValueError(
                f"column {name!r} holds numbers as text, such as {known[0]!r}; turn it into numbers with "
                "astype(float), or name it in categorical_features"
            )


def is_written_number(text: str) -> bool:
    """Whether a text reads as a number."""
    try:
        return is_number(float(text))
    except ValueError:
        return False
