"""Names and kinds of columns from fit to predict: matched by name, or refused with the name and the remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

from gputree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

LEARNERS = [DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor]
A, B, Y = [0.0, 1, 2, 3], [3.0, 1, 2, 0], [0, 1, 0, 1]
FRAMES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "record batch": pa.record_batch,
    "Arrow stream": lambda d: Stream(pa.table(d)),
}


class Stream:
    """A table of a library that nobody knows: all that it offers is an Arrow stream."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def numbers() -> Any:
    return DecisionTreeClassifier().fit(pd.DataFrame({"a": A, "b": B}), Y)


# -- names


@pytest.mark.parametrize("fitted", FRAMES)
@pytest.mark.parametrize("late", FRAMES)
def test_a_frame_of_one_library_predicts_for_a_frame_of_another(fitted: str, late: str) -> None:
    """Numbers, text, booleans and missing cells; the names are kept."""
    data = {"x": A, "c": ["u", "v", None, "v"], "b": [True, None, False, True]}
    for cls in LEARNERS:
        model = cls().fit(FRAMES[fitted](data), Y)
        assert model.feature_names_in_.tolist() == ["x", "c", "b"]
        assert model.n_features_in_ == 3
        assert model.predict(FRAMES[late](data)).tolist() == Y


@pytest.mark.parametrize("late", FRAMES)
@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"b": B, "a": A}, r"[Ff]eature names must be in the same order|another order"),
        ({"a": A}, r"missing.*\bb\b"),
        ({"a": A, "b": B, "c": A}, r"unseen.*\bc\b"),
        ({"a": A, "c": A}, r"unseen.*\bc\b"),
        ({"A": A, "B": B}, r"unseen.*\bA\b"),
    ],
    ids=["reordered", "missing", "extra", "another", "in capitals"],
)
def test_other_columns_are_refused_by_name(late: str, data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"(?s){message}"):
        numbers().predict(FRAMES[late](data))


def test_an_array_has_no_names_to_compare() -> None:
    """scikit-learn's warning, and the right answer where the columns are in their order."""
    X = np.c_[A, B]
    for late in (X, X.tolist()):
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            assert numbers().predict(late).tolist() == Y
    model = DecisionTreeClassifier().fit(X, Y)
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        with pytest.warns(UserWarning, match="X has feature names, but DecisionTreeClassifier was fitted without"):
            assert model.predict(make({"a": A, "b": B})).tolist() == Y
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.filterwarnings("ignore:X has feature names:UserWarning")  # they are compared all the same
@pytest.mark.parametrize(
    "names",
    [[0, 1], [10, 7], [("a", "x"), ("a", "y")], pd.MultiIndex.from_tuples([("a", "x"), ("b", "x")]), [2.5, 1.5]],
    ids=["range", "numbers", "tuples", "levels", "floats"],
)
def test_names_that_are_no_text_are_compared_too(names: Any) -> None:
    """scikit-learn does not look at them; a column in another place or under another name is refused all the same."""
    X = pd.DataFrame(np.c_[A, B])
    X.columns = names if isinstance(names, pd.MultiIndex) else pd.Index(names, tupleize_cols=False)
    model = DecisionTreeClassifier().fit(X, Y)
    assert model.predict(X).tolist() == Y
    assert model.predict(X.to_numpy()).tolist() == Y
    with pytest.raises(ValueError, match=r"column 0 is .* and was"):
        model.predict(X.iloc[:, ::-1])
    with pytest.raises(ValueError, match="unseen at fit time: 'p'"):
        model.predict(pd.DataFrame({"p": A, "q": B}))


def test_names_of_two_types_are_refused() -> None:
    """scikit-learn's message, which says what to do."""
    for names in ([0, "a"], [None, "a"]):
        with pytest.raises(TypeError, match=r"columns\.astype\(str\)"):
            DecisionTreeClassifier().fit(pd.DataFrame(np.c_[A, B], columns=names), Y)


@pytest.mark.parametrize("make", [pd.DataFrame, lambda X, columns: pa.table(list(X.T), names=columns)])
def test_two_columns_of_one_name_are_refused(make: Any) -> None:
    X = make(np.c_[A, B], columns=["a", "a"])
    with pytest.raises(ValueError, match=r"several columns of one name; rename them .*'a' 2 times"):
        DecisionTreeClassifier().fit(X, Y)
    with pytest.raises(ValueError, match="several columns of one name"):
        numbers().predict(X)


@pytest.mark.parametrize(
    "names",
    [["feature_1", "feature_0"], ["x0", "x1"], ["", " "], ["a,b", '"q"'], ["é", "\n"], ["[x]", "<y"], ["{", ":"]],
)
def test_any_text_is_a_name(names: list[str]) -> None:
    """Even those that columns without names have."""
    X = pd.DataFrame(np.c_[A, B], columns=names)
    model = DecisionTreeClassifier().fit(X, Y)
    assert model.feature_names_in_.tolist() == names
    assert model.predict(X).tolist() == Y
    with pytest.raises(ValueError, match="order"):
        model.predict(X[names[::-1]])


def test_the_index_of_a_frame_means_nothing() -> None:
    X = pd.DataFrame({"a": A, "b": B})
    for index in ([3, 2, 1, 0], [0, 0, 0, 0], pd.date_range("2020", periods=4), [*"abcd"]):
        moved = X.set_index(pd.Index(index))
        assert DecisionTreeClassifier().fit(moved, Y).fingerprint() == numbers().fingerprint()
        assert numbers().predict(moved).tolist() == Y


def test_names_of_an_older_fit_are_forgotten() -> None:
    model = numbers()
    model.fit(np.c_[A, B], Y)
    assert not hasattr(model, "feature_names_in_")
    model.fit(pd.DataFrame({"p": A}), Y)
    assert model.feature_names_in_.tolist() == ["p"]
    assert model.n_features_in_ == 1


def test_a_failed_fit_leaves_no_model() -> None:
    model = numbers()
    with pytest.raises(ValueError, match="NaN"):
        model.fit([[0], [1]], ["p", None])
    with pytest.raises(NotFittedError):
        model.predict([[0]])


# -- kinds


def mixed() -> Any:
    X = pd.DataFrame({"c": [*"uvuv"], "x": A, "b": [True, False] * 2, "k": pd.Categorical([5, 3, 5, 3])})
    return X, DecisionTreeClassifier(categorical_split="multiway").fit(X, Y)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        (
            "x",
            ["q"] * 4,
            "column 'x' was a column of numbers when the model was fitted and now holds 'q'; give numbers",
        ),
        ("x", ["1"] * 4, "column 'x' was a column of numbers .* now holds '1'"),
        ("x", pd.Categorical(["u"] * 4), "column 'x' was a column of numbers .* now holds 'u'"),
        ("x", pd.to_datetime(["2020"] * 4), "column 'x' was a column of numbers .* now holds Timestamp"),
        ("x", pd.Series([1, 2, 3, "q"], dtype=object), "column 'x' was a column of numbers .* now holds 'q'"),
        (
            "c",
            [1.0] * 4,
            "column 'c' holds text, .* such as 'u', and X has 1.0 there, a float; give the same kind of values",
        ),
        ("c", [True] * 4, "column 'c' holds text, .* such as 'u', and X has True"),
        ("c", pd.Categorical([1] * 4), "column 'c' holds text, .* such as 'u', and X has 1"),
        ("c", pd.to_datetime(["2020"] * 4), "column 'c' holds text, .* such as 'u', and X has Timestamp"),
        ("b", ["True"] * 4, "column 'b' holds booleans, .* such as False, and X has 'True'"),
        ("k", ["5"] * 4, "column 'k' holds numbers, .* such as 3, and X has '5'"),
        ("x", [10**400, 1, 1, 1], "column 'x' holds a number beyond the range of float64"),
    ],
)
def test_a_column_may_not_change_its_kind(name: str, values: Any, message: str) -> None:
    X, model = mixed()
    with pytest.raises((TypeError, ValueError), match=message):
        model.predict(X.assign(**{name: values}))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("x", [0, 1, 2, 3]),
        ("x", pd.array([0, 1, 2, 3], dtype="Int8")),
        ("x", pd.Categorical([0.0, 1, 2, 3])),
        ("x", pd.Series([0, 1.0, np.int8(2), 3], dtype=object)),
        ("c", pd.Categorical([*"uvuv"], categories=[*"wvu"])),
        ("c", pd.array([*"uvuv"], dtype="string")),
        ("b", [1, 0, 1, 0]),
        ("b", [1.0, 0.0, 1.0, 0.0]),
        ("b", pd.array([True, False] * 2, dtype="boolean")),
        ("k", [5, 3, 5, 3]),
        ("k", [5.0, 3.0, 5.0, 3.0]),
    ],
)
def test_equal_values_of_another_type_are_the_same(name: str, values: Any) -> None:
    """Numbers are numbers, text is text, and True is 1."""
    X, model = mixed()
    assert model.apply(X.assign(**{name: values})).tolist() == model.apply(X).tolist()


def test_a_missing_cell_only_at_predict() -> None:
    """It follows the larger child, left when they are equal."""
    model = DecisionTreeClassifier().fit(pd.DataFrame({"i": [1, 2, 3, 4]}), [0, 0, 1, 1])
    late = pd.DataFrame({"i": pd.array([1, None, 3, 4], dtype="Int64")})
    assert model.predict(late).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("empty", [pd.Series([None, None]), pl.Series([None, None]), pa.chunked_array([pa.nulls(2)])])
def test_a_column_without_values_is_missing(empty: Any) -> None:
    """Whatever its type is called, at fit and at predict, for numbers and for text."""
    make = {pd.Series: pd.DataFrame, pl.Series: pl.DataFrame}.get(type(empty), pa.table)
    late = make({"c": empty})
    assert DecisionTreeClassifier().fit(late, [0, 1]).get_n_leaves() == 1
    for values in ([1.0, 2.0], ["u", "v"], [False, True]):
        assert DecisionTreeClassifier().fit(pd.DataFrame({"c": values}), [0, 1]).predict(late).tolist() == [0, 0]


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_arrays_for_a_model_of_frames() -> None:
    """Text in its place is read; numbers in the place of text are refused by name."""
    X, model = mixed()
    for late in (X.to_numpy(), X.to_numpy().tolist()):
        assert model.predict(late).tolist() == Y
    with pytest.raises(TypeError, match=r"column 'c' holds text, .* such as 'u', and X has 0\.0"):
        model.predict(np.zeros((2, 4)))
    with pytest.raises(ValueError, match="X has 3 features, but DecisionTreeClassifier is expecting 4"):
        model.predict(X.to_numpy()[:, :3])


def test_frames_without_rows_or_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="0 rows"):
        numbers().predict(pd.DataFrame({"a": [], "b": []}))
    for empty in (pd.DataFrame(index=[0, 1]), pl.DataFrame(), pa.table({})):
        with pytest.raises(ValueError, match="0 feature"):
            DecisionTreeClassifier().fit(empty, [0, 1])


# -- nothing is written


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_stay_as_they_are(library: str) -> None:
    """Fit, predict and the pruning path compare equal before and after: values, types, names, order."""
    data = {"x": [1.0, None, -0.0, 2], "c": ["u", None, "v", "u"], "b": [True, None, False, True]}
    X, kept = FRAMES[library](data), FRAMES[library](data)
    y, w = pd.Series(Y, index=[4, 3, 2, 1]), pd.Series([1.0, 0, 2, 1])
    y_kept, w_kept = y.copy(deep=True), w.copy(deep=True)
    for cls in LEARNERS:
        cls().fit(X, y, w).predict(X)
        cls().cost_complexity_pruning_path(X, y, w)
    assert X.equals(kept)
    assert repr(X.dtypes if library == "pandas" else X.schema) == repr(
        kept.dtypes if library == "pandas" else kept.schema
    )
    pd.testing.assert_series_equal(y, y_kept)
    pd.testing.assert_series_equal(w, w_kept)


def test_lists_and_arrays_of_objects_stay_as_they_are() -> None:
    rows, kept = [["u", 1, None], ["v", None, 2.5]], [["u", 1, None], ["v", None, 2.5]]
    array = np.array(rows, object)
    for X in (rows, array):
        DecisionTreeClassifier().fit(X, [0, 1]).predict(X)
    assert rows == kept == array.tolist()
