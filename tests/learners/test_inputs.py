"""X as an array, a list, a sparse matrix or an object: one answer for one table, or a refusal that names the remedy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from gputree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

LEARNERS = [DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor]
NAN = np.nan


def numbers(n: int = 30) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Small whole numbers, many of them 0: exact in every type, sparse enough, with ties."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (n, 4)) * (rng.random((n, 4)) < 0.4)
    return X.astype(np.float64), rng.integers(0, 3, n)


def one_answer(X: Any, other: Any, y: Any, w: Any = None) -> None:
    """Fitted on either and predicting either: the same arrays, the same leaves; of cuts and of random tests."""
    for cls in (DecisionTreeClassifier, ExtraTreeRegressor):
        model, twin = cls(random_state=1).fit(X, y, w), cls(random_state=1).fit(other, y, w)
        assert twin.fingerprint() == model.fingerprint()
        np.testing.assert_array_equal(twin.apply(X), model.apply(X))
        np.testing.assert_array_equal(model.apply(other), model.apply(X))


# -- types and memory

TYPES = [np.float16, np.float32, np.float64, np.longdouble, np.bool_, *"bhilBHILq", ">f4", ">f8", ">i2", "<u8"]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: np.dtype(dtype).str)
def test_equal_values_of_any_type(dtype: Any) -> None:
    """Half, single, double and long floats, booleans, integers of every width and byte order."""
    X, y = numbers()
    X = np.minimum(X, 1) if dtype is np.bool_ else X
    one_answer(X, X.astype(dtype), y)


FORMS: dict[str, Callable[[NDArray[Any]], Any]] = {
    "Fortran": np.asfortranarray,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "transposed": lambda X: X.T.copy().T,
    "not aligned": lambda X: np.frombuffer(b"." + X.tobytes(), np.uint8)[1:].view(X.dtype).reshape(X.shape),
    "a subclass": lambda X: X.view(type("Table", (np.ndarray,), {})),
    "objects": lambda X: X.astype(object),
    "whole objects": lambda X: X.astype(int).astype(object),
    "a list": lambda X: X.tolist(),
    "a tuple of tuples": lambda X: tuple(map(tuple, X.tolist())),
    "a list of arrays": list,
    "a list of NumPy's numbers": lambda X: [[np.float32(v) for v in row] for row in X],
    "decimals": lambda X: [[Decimal(int(v)) for v in row] for row in X],
    "fractions": lambda X: [[Fraction(int(v), 1) for v in row] for row in X],
    "masked, nothing hidden": np.ma.array,
    "something with __array__": lambda X: Holder(X),
    "a buffer": lambda X: memoryview(np.ascontiguousarray(X)),
    "a frame": pd.DataFrame,
}


class Holder:
    """What other libraries give: an object that can be turned into an array."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.array, dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("missing", [False, True])
def test_one_table_in_many_forms(form: str, missing: bool) -> None:
    """With NaN among the numbers, too, where the form can hold it."""
    X, y = numbers()
    if missing and form in ("decimals", "fractions", "whole objects"):
        return
    if missing:
        X[::7, 1] = NAN
    one_answer(X, FORMS[form](X), y)


def test_a_table_on_disk_and_a_table_that_may_not_be_written(tmp_path: Path) -> None:
    X, y = numbers()
    np.save(tmp_path / "X.npy", X)
    one_answer(X, np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    frozen = X.copy()
    frozen.setflags(write=False)
    one_answer(X, frozen, y)


@pytest.mark.parametrize("cls", LEARNERS)
def test_one_row_and_one_column(cls: Any) -> None:
    """A row is a leaf; a column is a tree; one of each, too; of any type."""
    for X in (np.array([[3.0, 4.0]]), [[3, 4]], sp.csr_array([[3.0, 4.0]]), pd.DataFrame({"a": ["p"], "b": [4]})):
        model = cls().fit(X, [7])
        assert (model.get_n_leaves(), model.predict(X).tolist()) == (1, [7])
    for X in (
        np.array([[1.0], [2.0]]),
        [["p"], ["q"]],
        sp.csc_array([[1.0], [2.0]]),
        pd.DataFrame({"a": [True, False]}),
    ):
        assert cls().fit(X, [7, 9]).predict(X).tolist() == [7, 9]


# -- missing cells


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, np.bool_])
def test_what_is_masked_is_missing(dtype: Any) -> None:
    """Integers and booleans as well, at fit and at predict; what lies under the mask does not matter."""
    X, y = numbers()
    X, mask = np.minimum(X, 1), np.random.default_rng(1).random(X.shape) < 0.3
    plain = np.where(mask, NAN, X)
    one_answer(plain, np.ma.array(X.astype(dtype), mask=mask), y)
    one_answer(plain, np.ma.array(np.where(mask, 1 - X, X).astype(dtype), mask=mask), y)


@pytest.mark.parametrize("dtype", ["<U1", object])
def test_masked_text_is_missing(dtype: Any) -> None:
    """No category of its own."""
    X = np.ma.array(np.array([["a"], ["b"], ["c"], ["c"]], dtype), mask=[[0], [1], [0], [1]])
    model = DecisionTreeClassifier().fit(X, [0, 1, 0, 1])
    assert model.schema_.features[0].categories == ("a", "c")
    assert model.predict(X).tolist() == [0, 1, 0, 1]
    assert model.predict(np.array([["a"], [None]], object)).tolist() == [0, 1]


@pytest.mark.parametrize("gone", [None, NAN, float("nan"), np.float32("nan")], ids=["None", "NaN", "nan", "float32"])
def test_missing_numbers_in_lists_and_objects(gone: Any) -> None:
    """None and NaN of any kind, in lists of lists and arrays of objects."""
    rows, y = [[1, gone], [2, 5], [gone, 5], [3, 6]], [0, 1, 2, 1]
    plain = np.array([[1, NAN], [2, 5], [NAN, 5], [3, 6]])
    one_answer(plain, rows, y)
    one_answer(plain, np.array(rows, object), y)


@pytest.mark.parametrize("gone", [pd.NA, pd.NaT], ids=["NA", "NaT"])
def test_the_missing_values_of_pandas_in_arrays_of_numbers(gone: Any) -> None:
    """What ``to_numpy`` makes of nullable columns."""
    X = np.array([[1], [gone], [3], [gone]], object)
    one_answer(np.array([[1], [NAN], [3], [NAN]]), X, [0, 1, 2, 1])


@pytest.mark.parametrize("gone", [None, NAN, pd.NA, pd.NaT], ids=["None", "NaN", "NA", "NaT"])
def test_missing_cells_beside_text(gone: Any) -> None:
    """In the column of text, and in a column of numbers beside it."""
    rows, y = [["a", 1], [gone, 2], ["b", gone], ["a", 1]], [0, 1, 2, 0]
    for X in (rows, np.array(rows, object)):
        model = DecisionTreeClassifier(categorical_split="multiway").fit(X, y)
        assert [f.categories for f in model.schema_.features] == [("a", "b"), ()]
        assert model.predict(X).tolist() == y


# -- sparse

SPARSE: dict[str, Callable[[NDArray[Any]], Any]] = {
    "csr array": sp.csr_array,
    "csc array": sp.csc_array,
    "coo array": sp.coo_array,
    "lil array": sp.lil_array,
    "dok array": sp.dok_array,
    "csr matrix": sp.csr_matrix,
    "csc matrix": sp.csc_matrix,
    "coo matrix": sp.coo_matrix,
    "float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "int16": lambda X: sp.csc_array(np.nan_to_num(X).astype(np.int16)) if not np.isnan(X).any() else sp.csc_array(X),
    "64-bit indices": lambda X: wide(sp.csr_array(X)),
    "zeros that are stored": lambda X: stored_zeros(sp.csr_array(X)),
    "cells in two parts": lambda X: sp.coo_array(
        (
            np.r_[X.ravel() / 2, X.ravel() / 2],
            (np.tile(np.indices(X.shape)[0].ravel(), 2), np.tile(np.indices(X.shape)[1].ravel(), 2)),
        ),
        shape=X.shape,
    ),
    "indices in no order": lambda X: unsorted(sp.csr_array(X)),
}


def wide(X: Any) -> Any:
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def stored_zeros(X: Any) -> Any:
    X.data[::3] = np.where(np.isnan(X.data[::3]), NAN, 0)
    return X


def unsorted(X: Any) -> Any:
    for first, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[first:stop], X.data[first:stop] = X.indices[first:stop][::-1].copy(), X.data[first:stop][::-1].copy()
    X.has_sorted_indices = False
    return X


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("missing", [False, True])
def test_a_sparse_table_is_the_dense_table(kind: str, missing: bool) -> None:
    """What is not stored is 0, NaN is missing: bit for bit at fit and predict, with weights of 0 as well."""
    X, y = numbers()
    if missing:
        X[::7, 1] = NAN
    table = SPARSE[kind](X)
    kept = table.copy()
    w = np.random.default_rng(1).integers(0, 3, len(y))
    for weight in (None, w):
        one_answer(table.toarray(), table, y, weight)
    assert (table.toarray().tobytes(), table.nnz) == (kept.toarray().tobytes(), kept.nnz)


def test_sparse_and_dense_at_predict_whatever_the_fit_saw() -> None:
    X, y = numbers()
    for fitted in (X, sp.csr_matrix(X)):
        model = DecisionTreeClassifier().fit(fitted, y)
        for late in (X, sp.csr_array(X), sp.csc_matrix(X), sp.coo_array(X), X.tolist()):
            np.testing.assert_array_equal(model.predict_proba(late), model.predict_proba(X))
            np.testing.assert_array_equal(model.decision_path(late).toarray(), model.decision_path(X).toarray())


def test_sparse_tables_and_categories() -> None:
    """A sparse matrix has numbers only: categories are refused with the remedy, at fit and at predict."""
    X, y = numbers()
    for settings in ({"categorical_features": [0]}, {"categories": {0: [0, 1]}}):
        with pytest.raises(TypeError, match="give a frame or a dense array"):
            DecisionTreeClassifier(**settings).fit(sp.csr_array(X), y)
    model = DecisionTreeClassifier(categorical_features=[0], categorical_split="multiway").fit(X, y)
    with pytest.raises(TypeError, match="give a frame or a dense array"):
        model.predict(sp.csr_array(X))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_empty_sparse_tables_are_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        DecisionTreeClassifier().fit(sp.csr_array(shape), np.zeros(shape[0]))


# -- text, booleans and numbers as objects


def test_columns_of_an_array_of_objects_have_their_own_kinds() -> None:
    """Text, booleans, numbers and missing cells side by side, as a list and as an array: what a frame would read."""
    rows = [["a", True, 1, 2.5], ["b", False, None, NAN], ["a", None, 3, 1], [None, True, 2, 0]]
    frame = pd.DataFrame(rows, columns=[f"feature_{i}" for i in range(4)]).astype({"feature_1": object})
    y = [0, 1, 2, 1]
    expected = DecisionTreeClassifier(categorical_split="multiway").fit(frame, y)
    for X in (rows, np.array(rows, object)):
        model = DecisionTreeClassifier(categorical_split="multiway").fit(X, y)
        assert [f.categories for f in model.schema_.features] == [("a", "b"), (False, True), (), ()]
        assert model.fingerprint() == expected.fingerprint()
        assert model.predict(X).tolist() == y


def test_text_of_every_type_of_array() -> None:
    """Fixed width, objects, subclasses of str."""
    texts, y = [["a"], ["bb"], ["a"], ["bb"]], [0, 1, 0, 1]
    for X in (texts, np.array(texts), np.array(texts, ">U7"), np.array(texts, object), [[np.str_(t)] for [t] in texts]):
        model = DecisionTreeClassifier().fit(X, y)
        assert model.schema_.features[0].categories == ("a", "bb")
        for late in (texts, np.array(texts), np.array(texts, object)):
            assert model.predict(late).tolist() == y


@pytest.mark.parametrize("make", [lambda t: np.array(t, np.dtypes.StringDType()), lambda t: Holder(np.array(t))])
def test_text_of_variable_width_and_text_behind_an_interface(make: Any) -> None:
    """NumPy's StringDType, and an object whose array holds text."""
    texts, y = [["a"], ["bb"], ["a"], ["bb"]], [0, 1, 0, 1]
    model = DecisionTreeClassifier().fit(make(texts), y)
    assert model.predict(make(texts)).tolist() == y


@pytest.mark.parametrize("text", ["1", "1.5", "-2e3", " 7 ", "nan", "inf", "1_000"])
def test_numbers_as_text_are_refused_unless_they_are_named(text: str) -> None:
    """Neither numbers nor categories by themselves; a column of which one cell is a word is one of categories."""
    for X in ([[text], ["2"]], np.array([[text], ["2"]], object)):
        with pytest.raises(ValueError, match=r"column 'feature_0' holds numbers as text.*astype\(float\)"):
            DecisionTreeClassifier().fit(X, [0, 1])
        named = DecisionTreeClassifier(categorical_features=[0]).fit(X, [0, 1])
        assert named.predict(X).tolist() == [0, 1]
    assert DecisionTreeClassifier().fit([[text], ["word"]], [0, 1]).predict([[text], ["word"]]).tolist() == [0, 1]


@pytest.mark.parametrize("size", [10**30, -(10**300), 2**64])
def test_integers_beyond_64_bits_are_floats(size: int) -> None:
    for X in ([[size], [1]], np.array([[size], [1]], object), pd.DataFrame({"x": pd.Series([size, 1], dtype=object)})):
        assert DecisionTreeClassifier().fit(X, [0, 1]).predict(X).tolist() == [0, 1]


# -- what is no table, with the remedy

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "integers beyond float64": (lambda: [[10**400], [1]], "beyond the range of float64"),
    "complex": (lambda: np.array([[1j], [2]]), "Complex data not supported"),
    "dates": (lambda: np.array([["2020"], ["2021"]], "M8[D]"), "turn dates and durations into numbers"),
    "durations": (lambda: np.array([[1], [2]], "m8[s]"), "turn dates and durations into numbers"),
    "bytes": (lambda: np.array([[b"a"], [b"b"]]), "turn these into text"),
    "ragged numbers": (lambda: [[1], [2, 3]], "inhomogeneous shape"),
    "ragged text": (lambda: [["a"], ["b", "c"]], "inhomogeneous shape"),
    "lists in cells": (lambda: [[[1, 2]], [[3, 4]]], "dim 3"),
    "one dimension": (lambda: [1.0, 2.0], "Expected 2D array, got 1D array"),
    "one dimension of text": (lambda: ["a", "b"], r"Expected 2D array, got 1D|could not convert"),
    "text": (lambda: "abc", "X cannot be read .*give a frame, an array"),
    "a dictionary": (lambda: {"a": [1, 2]}, "X cannot be read .*not 'dict'.*a list of rows"),
    "a generator": (lambda: (row for row in [[1], [2]]), "X cannot be read .*not 'generator'"),
    "a number": (lambda: 3.0, "Expected 2D array, got scalar"),
    "nothing": (lambda: None, "Expected 2D array"),
    "an empty list": (lambda: [], "Expected 2D array"),
    "rows without cells": (lambda: [[], []], "minimum of 1 is required"),
    "a matrix": (lambda: np.asmatrix([[1], [2]]), "np.matrix is not supported"),
    "text beside numbers in one column": (lambda: [["a"], [1]], "column 'feature_0' holds values of type int and str"),
}


@pytest.mark.filterwarnings("ignore:.*matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_table_is_refused_with_a_reason(kind: str) -> None:
    make, message = REFUSED[kind]
    for cls in LEARNERS:
        with pytest.raises((ValueError, TypeError), match=message):
            cls().fit(make(), [0, 1])


ODD_OBJECTS: dict[str, Any] = {
    "dates": pd.Timestamp("2020-01-01"),
    "dictionaries": {"k": 1},
    "complex numbers": 1j,
}


@pytest.mark.parametrize("kind", ODD_OBJECTS)
def test_odd_objects_in_an_array_are_refused_by_column(kind: str) -> None:
    """As in a frame, where the message names the column and the remedy."""
    X = np.array([[1, ODD_OBJECTS[kind]], [2, ODD_OBJECTS[kind]]], object)
    with pytest.raises(TypeError, match=r"column 'feature_1' holds values of type .*turn (these|dates) into"):
        DecisionTreeClassifier().fit(X, [0, 1])


def test_a_column_is_no_table() -> None:
    """A Series is refused with the remedy, as a list of numbers is."""
    with pytest.raises((TypeError, ValueError), match=r"Series.*to_frame|one column|2D"):
        DecisionTreeClassifier().fit(pd.Series([1.0, 2.0]), [0, 1])


@pytest.mark.parametrize("odd", [5, "ab", {"a": 1}, len, [[1], [1, 2]]])
def test_what_are_no_labels_and_no_weights(odd: Any) -> None:
    """The message names the argument, and not only what NumPy makes of it."""
    for cls in LEARNERS:
        with pytest.raises((ValueError, TypeError), match=r"y cannot be read .*give an array or a list"):
            cls().fit([[1], [2]], odd)
        if not isinstance(odd, int):
            with pytest.raises((ValueError, TypeError), match=r"sample_weight cannot be read .*give a finite number"):
                cls().fit([[1], [2]], [0, 1], odd)


def test_text_among_weights() -> None:
    with pytest.raises(ValueError, match=r"sample_weight cannot be read \(could not convert string to float: 'a'\)"):
        DecisionTreeClassifier().fit([[1], [2]], [0, 1], ["a", "b"])


@pytest.mark.parametrize("odd", [np.array(["gini"]), np.array([1, 2]), pd.Series(["gini", "gini"]), ["gini"], None])
def test_a_criterion_is_a_word(odd: Any) -> None:
    with pytest.raises(ValueError, match=r"criterion=(.|\n)* must be one of 'gini', 'entropy'"):
        DecisionTreeClassifier(criterion=odd).fit([[1], [2]], [0, 1])


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, lambda columns: np.column_stack([*columns.values()])])
def test_text_that_a_tree_learns_by_heart_is_warned_of(kind: Any) -> None:
    """Names of rows and dates; no columns that were named, declared or have few values."""
    n = np.arange(30)
    name = np.array([f"r{i}" for i in n], dtype=object)
    date = np.array([f"2024-01-{1 + i % 12:02}" for i in n], dtype=object)
    few = np.array(["abc"[i % 3] for i in n], dtype=object)
    X, y = kind({"few": few, "date": date, "name": name}), n % 2
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        DecisionTreeClassifier().fit(X, y)
    assert [one.filename for one in told] == [__file__] * 2
    own = ["date", "name"] if hasattr(X, "columns") else ["feature_1", "feature_2"]
    assert [str(one.message).split(" is text")[0] for one in told] == [f"column {column!r}" for column in own]
    assert "look like dates or times, which a tree learns by heart; turn them into numbers" in str(told[0].message)
    assert "are nearly all distinct, which a tree learns by heart; leave the column out" in str(told[1].message)
    DecisionTreeClassifier(categorical_features=own).fit(kind({"few": n, "date": date, "name": name}), y)
    DecisionTreeClassifier(categories={own[0]: list(date[:12]), own[1]: list(name)}).fit(X, y)
