"""Frames of every library and kind of column: what is read, what is refused, and what the message says."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

from gputree import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.learners.tables import as_frame, read_matrix, read_schema

NAN = float("nan")
NUMBERS = [1.0, NAN, 3.0, 2.0]
TEXT = [0.0, NAN, 1.0, 0.0]  # the numbers of the categories of ["a", missing, "b", "a"]


def columns() -> dict[str, tuple[Any, list[float]]]:
    """A column of each kind with a missing cell, and the floats that it must become."""
    return {
        "pandas float": (pd.Series([1.0, None, 3.0, 2.0]), NUMBERS),
        "pandas float32": (pd.Series([1.0, None, 3.0, 2.0], dtype="float32"), NUMBERS),
        "pandas Int64": (pd.Series([1, None, 3, 2], dtype="Int64"), NUMBERS),
        "pandas Float64": (pd.Series([1, None, 3, 2], dtype="Float64"), NUMBERS),
        "pandas arrow int": (pd.Series([1, None, 3, 2], dtype="int64[pyarrow]"), NUMBERS),
        "pandas objects that are numbers": (pd.Series([1, pd.NA, 3.0, Decimal(2)], dtype=object), NUMBERS),
        "pandas str": (pd.Series(["a", None, "b", "a"]), TEXT),
        "pandas string": (pd.Series(["a", None, "b", "a"], dtype="string"), TEXT),
        "pandas string[pyarrow]": (pd.Series(["a", None, "b", "a"], dtype="string[pyarrow]"), TEXT),
        "pandas object NA": (pd.Series(["a", pd.NA, "b", "a"], dtype=object), TEXT),
        "pandas object NaN": (pd.Series(["a", NAN, "b", "a"], dtype=object), TEXT),
        "pandas boolean": (pd.Series([False, None, True, False], dtype="boolean"), TEXT),
        "pandas bool objects": (pd.Series([False, None, np.True_, False], dtype=object), TEXT),
        "pandas category": (pd.Series(["a", None, "b", "a"], dtype="category"), TEXT),
        "polars Int64": (pl.Series([1, None, 3, 2]), NUMBERS),
        "polars Float64, null": (pl.Series([1.0, None, 3.0, 2.0]), NUMBERS),
        "polars Float64, NaN": (pl.Series([1.0, NAN, 3.0, 2.0]), NUMBERS),
        "polars Decimal": (pl.Series([Decimal(1), None, Decimal(3), Decimal(2)]), NUMBERS),
        "polars String": (pl.Series(["a", None, "b", "a"]), TEXT),
        "polars Boolean": (pl.Series([False, None, True, False]), TEXT),
        "polars Categorical": (pl.Series(["a", None, "b", "a"], dtype=pl.Categorical), TEXT),
        "polars Enum": (pl.Series(["a", None, "b", "a"], dtype=pl.Enum(["a", "b"])), TEXT),
        "pyarrow int": (pa.chunked_array([[1, None, 3, 2]]), NUMBERS),
        "pyarrow string": (pa.chunked_array([["a", None, "b", "a"]]), TEXT),
        "pyarrow bool": (pa.chunked_array([[False, None, True, False]]), TEXT),
    }


def frame_of(column: Any) -> Any:
    """A frame of that one column, of the same library."""
    if isinstance(column, pd.Series):
        return pd.DataFrame({"c": column})
    return pl.DataFrame({"c": column}) if isinstance(column, pl.Series) else pa.table({"c": column})


@pytest.mark.parametrize("kind", columns())
def test_every_kind_of_column_is_read(kind: str) -> None:
    column, expected = columns()[kind]
    frame = as_frame(frame_of(column))
    assert frame is not None
    np.testing.assert_array_equal(read_matrix(frame, read_schema(frame))[:, 0], expected)
    model = DecisionTreeClassifier().fit(frame_of(column), [0, 1, 1, 0])
    assert model.predict(frame_of(column))[2] == 1


def test_a_missing_cell_only_at_predict() -> None:
    model = DecisionTreeClassifier().fit(pd.DataFrame({"i": [1, 2, 3, 4]}), [0, 0, 1, 1])
    late = pd.DataFrame({"i": pd.array([1, None, 3, 4], dtype="Int64")})
    assert model.predict(late).tolist() == [0, 1, 1, 1]  # right when the children are equal


def test_float32_frames_stay_float32() -> None:
    frame = as_frame(pd.DataFrame({"a": np.array([1, 2], np.float32), "b": np.array([3, 4], np.float32)}))
    assert frame is not None
    assert read_matrix(frame, read_schema(frame)).dtype == np.float32


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.Series([1, "a"], dtype=object), "column 'c' holds values of type int and str"),
        (pd.Series([True, "a"], dtype=object), "column 'c' holds values of type bool and str"),
        (pd.Series([{"k": 1}, {"k": 2}], dtype=object), "column 'c' holds values of type dict"),
        (pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"])), "column 'c' has type Datetime"),
        (pd.Series([[1], [2]], dtype=object), "column 'c'"),
    ],
)
def test_other_columns_are_refused_by_name(column: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        DecisionTreeClassifier().fit(frame_of(column), [0, 1])


def test_text_outside_of_a_frame_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="in a frame only"):
        DecisionTreeClassifier().fit([["a"], ["b"]], [0, 1])


def test_a_lazy_frame_says_what_to_do() -> None:
    with pytest.raises(TypeError, match="collect"):
        DecisionTreeClassifier().fit(pl.LazyFrame({"a": [1, 2]}), [0, 1])


def test_a_column_may_not_change_its_kind() -> None:
    frame = pd.DataFrame({"c": ["a", "b"], "x": [0.0, 1.0]})
    model = DecisionTreeClassifier().fit(frame, ["u", "v"])
    with pytest.raises(TypeError, match="column 'c' held categories"):
        model.predict(frame.assign(c=1.0))
    with pytest.raises(TypeError, match="column 'x' was a column of numbers"):
        model.predict(frame.assign(x="1"))
    with pytest.raises(TypeError, match="column 'c' holds categories, and X is a ndarray"):
        model.predict(np.zeros((2, 2)))


@pytest.mark.parametrize("y", [["b", "a", None], pd.Series(["b", "a", None]), pl.Series(["b", None, "a"]), [0, 1, NAN]])
@pytest.mark.parametrize("learner", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_a_missing_label_is_refused(learner: Any, y: Any) -> None:
    with pytest.raises(ValueError, match="y contains NaN"):
        learner().fit([[1], [2], [3]], y)


def test_too_many_categories_are_refused_by_name() -> None:
    frame = pd.DataFrame({"id": [f"id{i}" for i in range(65_535)]})
    with pytest.raises(ValueError, match=r"column 'id' has 65,535 categories; at most 65,534"):
        DecisionTreeClassifier().fit(frame, np.arange(65_535) % 2)


def test_booleans_are_numbers() -> None:
    """One-hot columns of pandas are boolean: the tree is that of 0 and 1."""
    rng = np.random.default_rng(0)
    frame = pd.get_dummies(pd.DataFrame({"c": rng.choice(["a", "b", "c"], 50)}))
    y = rng.integers(0, 2, 50)
    model, other = (DecisionTreeClassifier().fit(X, y) for X in (frame, frame.astype(int)))
    assert model.fingerprint() == other.fingerprint()
    assert model.tree_.children_left.size == model.tree_.node_count


def test_the_order_of_rows_does_not_order_categories() -> None:
    """A polars Categorical and an Arrow dictionary number their values as they come, without an order of their own."""
    rng = np.random.default_rng(1)
    values, y = rng.choice(["u", "v", "w", "x"], 60), rng.integers(0, 3, 60)
    back = np.arange(60)[::-1]
    for make in (
        lambda v: pl.DataFrame({"c": pl.Series(v, dtype=pl.Categorical)}),
        lambda v: pa.table({"c": pa.array(v).dictionary_encode()}),
        lambda v: pd.DataFrame({"c": pd.Categorical(v, categories=list(dict.fromkeys(v)))}),
    ):
        prints = {
            DecisionTreeClassifier().fit(make(values[order].tolist()), y[order]).fingerprint()
            for order in (np.arange(60), back)
        }
        assert len(prints) == 1


def test_a_declared_category_that_no_row_has_makes_no_branch() -> None:
    frame = pd.DataFrame({"c": pd.Categorical(["a", "b"] * 4, categories=[*"abcdefgh"])})
    model = DecisionTreeClassifier(max_leaf_nodes=2).fit(frame, [0, 1] * 4)
    assert (model.get_n_leaves(), model.score(frame, [0, 1] * 4)) == (2, 1.0)


@pytest.mark.parametrize("empty", [pd.Series([None, None]), pl.Series([None, None]), pa.chunked_array([pa.nulls(2)])])
def test_a_column_without_values_is_missing(empty: Any) -> None:
    frame = pd.DataFrame({"c": [1.0, 2.0]})
    assert DecisionTreeClassifier().fit(frame_of(empty), [0, 1]).get_n_leaves() == 1
    assert DecisionTreeClassifier().fit(frame, [0, 1]).predict(frame_of(empty)).tolist() == [1, 1]


def test_frames_without_rows_or_columns_are_refused() -> None:
    model = DecisionTreeClassifier().fit(pd.DataFrame({"c": [1.0, 2.0]}), [0, 1])
    with pytest.raises(ValueError, match="0 rows"):
        model.predict(pd.DataFrame({"c": np.zeros(0)}))
    with pytest.raises(ValueError, match="0 feature"):
        model.fit(pd.DataFrame(index=[0, 1]), [0, 1])


def test_arrays_of_dates_are_refused() -> None:
    days = np.array(["2020-01-01", "2020-01-02"], "M8[D]")
    with pytest.raises(TypeError, match="dates"):
        DecisionTreeClassifier().fit(days[:, None], [0, 1])
    with pytest.raises(ValueError, match="dates"):
        DecisionTreeRegressor().fit([[0], [1]], days)


@pytest.mark.parametrize("weight", [NAN, float("inf"), [1.0, float("inf")]])
def test_weights_must_be_finite(weight: Any) -> None:
    with pytest.raises(ValueError, match="weight"):
        DecisionTreeClassifier().fit([[0], [1]], [0, 1], sample_weight=weight)


def test_a_failed_fit_leaves_no_model() -> None:
    model = DecisionTreeClassifier().fit([[0], [1]], ["x", "y"])
    with pytest.raises(ValueError, match="NaN"):
        model.fit([[0], [1]], ["p", None])
    with pytest.raises(NotFittedError):
        model.predict([[0]])
