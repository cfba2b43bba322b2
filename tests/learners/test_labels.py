"""Labels of every type and container: they come back as they were given, and a missing one is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn.tree

import gputree
from gputree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

CLASSIFIERS = [DecisionTreeClassifier, ExtraTreeClassifier]
REGRESSORS = [DecisionTreeRegressor, ExtraTreeRegressor]
X = np.arange(4.0)[:, None]
WORDS = ["b", "a", "b", "a"]
DAYS = np.array(["2021-01-01", "2020-01-01"] * 2, "M8[D]")

# What is given, and the type of array that comes back.
LABELS: dict[str, tuple[Callable[[], Any], Any]] = {
    "int": (lambda: [3, -1, 3, -1], np.int64),
    "range": (lambda: range(4), np.int64),
    "int8": (lambda: np.array([3, -1, 3, -1], np.int8), np.int8),
    "uint64": (lambda: np.array([2**64 - 1, 0] * 2, np.uint64), np.uint64),
    "big-endian": (lambda: np.array([3, 1, 3, 1], ">i4"), ">i4"),
    "float": (lambda: [1.0, 0.0, 1.0, 0.0], np.float64),
    "float32": (lambda: np.array([1, 0, 1, 0], np.float32), np.float32),
    "longdouble": (lambda: np.array([1, 0, 1, 0], np.longdouble), np.longdouble),
    "bool": (lambda: [True, False, True, False], np.bool_),
    "str": (lambda: WORDS, "<U1"),
    "tuple": (lambda: tuple(WORDS), "<U1"),
    "np.str_": (lambda: [np.str_(w) for w in WORDS], "<U1"),
    "big-endian text": (lambda: np.array(WORDS, ">U3"), ">U3"),
    "empty text": (lambda: ["a", "", "a", ""], "<U1"),
    "text of objects": (lambda: np.array(WORDS, object), object),
    "dates": (lambda: DAYS, "M8[D]"),
    "seconds": (lambda: DAYS.astype("M8[s]"), "M8[s]"),
    "durations": (lambda: np.array([2, 1, 2, 1], "m8[s]"), "m8[s]"),
    "pandas str": (lambda: pd.Series(WORDS), object),
    "pandas string": (lambda: pd.Series(WORDS, dtype="string"), object),
    "pandas string[pyarrow]": (lambda: pd.Series(WORDS, dtype="string[pyarrow]"), object),
    "pandas arrow string": (lambda: pd.Series(WORDS, dtype=pd.ArrowDtype(pa.string())), object),
    "pandas category": (lambda: pd.Series(pd.Categorical(WORDS)), object),
    "pandas ordered category": (lambda: pd.Series(pd.Categorical(WORDS, categories=["b", "a"], ordered=True)), object),
    "pandas category of int": (lambda: pd.Series(pd.Categorical([5, 3, 5, 3])), np.int64),
    "pandas Int64": (lambda: pd.Series([3, 1, 3, 1], dtype="Int64"), np.int64),
    "pandas Int8": (lambda: pd.Series([3, 1, 3, 1], dtype="Int8"), np.int8),
    "pandas Float64": (lambda: pd.Series([1, 0, 1, 0], dtype="Float64"), np.float64),
    "pandas boolean": (lambda: pd.Series([True, False] * 2, dtype="boolean"), np.bool_),
    "pandas arrow int": (lambda: pd.Series([3, 1, 3, 1], dtype="int64[pyarrow]"), np.int64),
    "pandas datetime": (lambda: pd.Series(DAYS), "M8[s]"),
    "pandas index": (lambda: pd.Index(WORDS), object),
    "polars String": (lambda: pl.Series(WORDS), "<U1"),
    "polars Enum": (lambda: pl.Series(WORDS, dtype=pl.Enum(["b", "a"])), object),
    "polars Categorical": (lambda: pl.Series(WORDS, dtype=pl.Categorical), object),
    "polars Boolean": (lambda: pl.Series([True, False] * 2), np.bool_),
    "polars Int8": (lambda: pl.Series([3, 1, 3, 1], dtype=pl.Int8), np.int8),
    "polars Date": (lambda: pl.Series(DAYS), "M8[D]"),
    "pyarrow string": (lambda: pa.array(WORDS), object),
    "pyarrow int8": (lambda: pa.array([3, 1, 3, 1], pa.int8()), np.int8),
    "pyarrow bool": (lambda: pa.array([True, False] * 2), np.bool_),
    "pyarrow dictionary": (lambda: pa.array(WORDS).dictionary_encode(), object),
    "pyarrow date": (lambda: pa.array(DAYS), "M8[D]"),
    "pyarrow chunks": (lambda: pa.chunked_array([WORDS[:2], WORDS[2:]]), object),
    "pandas column": (lambda: pd.DataFrame({"y": WORDS}), object),
    "polars column": (lambda: pl.DataFrame({"y": WORDS}), "<U1"),
    "pyarrow column": (lambda: pa.table({"y": WORDS}), object),
    "column of an array": (lambda: np.array(WORDS)[:, None], "<U1"),
}


def values(y: Any) -> list[Any]:
    """The labels as Python objects, one a row."""
    if isinstance(y, pa.Table):
        y = y["y"]
    flat: list[Any] = y.to_pylist() if hasattr(y, "to_pylist") else np.asarray(y).ravel().tolist()
    return flat


@pytest.mark.parametrize("kind", LABELS)
def test_labels_come_back_as_they_were_given(kind: str) -> None:
    """Values and type; classes are sorted; shares stand in their order; score agrees."""
    make, dtype = LABELS[kind]
    for cls in CLASSIFIERS:
        model = cls().fit(X, make())
        predicted = model.predict(X)
        assert predicted.dtype == model.classes_.dtype == np.dtype(dtype)
        assert predicted.tolist() == values(make())
        assert model.classes_.tolist() == sorted(set(values(make())))
        place = [model.classes_.tolist().index(label) for label in values(make())]
        assert model.predict_proba(X).argmax(axis=1).tolist() == place
        assert model.score(X, predicted) == 1


@pytest.mark.parametrize("kind", LABELS)
def test_classes_are_those_of_scikit_learn(kind: str) -> None:
    """Equal values in the same order; of columns that may have missing cells, scikit-learn makes floats."""
    make, _ = LABELS[kind]
    theirs = sklearn.tree.DecisionTreeClassifier().fit(X, make())
    assert DecisionTreeClassifier().fit(X, make()).classes_.tolist() == theirs.classes_.tolist()


SORTABLE: dict[str, list[Any]] = {
    "integers": [3, 1, 3, 1],
    "integers beyond 64 bits": [10**30, 1, 10**30, 1],
    "booleans": [True, False, True, False],
    "whole floats": [1.0, 0.0, 1.0, 0.0],
    "decimals": [Decimal("1.5"), Decimal("0.5")] * 2,
    "dates": [date(2021, 1, 1), date(2020, 1, 1)] * 2,
    "periods": [pd.Period("2021"), pd.Period("2020")] * 2,
}


@pytest.mark.parametrize("kind", SORTABLE)
def test_sortable_objects_are_labels(kind: str) -> None:
    """Columns of mixed frames arrive as objects: what has an order is a label, and comes back as the same object."""
    given = SORTABLE[kind]
    for y in (np.array(given, object), pd.Series(given, dtype=object)):
        model = DecisionTreeClassifier().fit(X, y)
        assert model.predict(X).tolist() == given
        assert model.classes_.tolist() == sorted(set(given))


def test_objects_without_an_order_are_refused() -> None:
    """Numbers beside text, complex numbers; floats that are no whole numbers are for a regression."""
    for given in ([1, "a"] * 2, [1j, 2] * 2, [0.5, 1.25] * 2, [date(2020, 1, 1), 1] * 2):
        for cls in CLASSIFIERS:
            with pytest.raises((TypeError, ValueError)):
                cls().fit(X, np.array(given, object))
            with pytest.raises((TypeError, ValueError)):
                cls().fit(X, given)


@pytest.mark.parametrize("label", [set, frozenset])
def test_labels_of_a_partial_order_are_refused(label: Any) -> None:
    """Neither {1} < {2} nor {2} < {1}: nothing is sorted, and no class is found twice."""
    with pytest.raises((TypeError, ValueError), match="order"):
        DecisionTreeClassifier().fit(X, [label([1]), label([2])] * 2)


def test_whole_numbers_as_objects_are_scored_and_saved(tmp_path: Any) -> None:
    """They are those numbers: metrics and the model file know them."""
    model = DecisionTreeClassifier().fit(X, np.array([3, 1, 3, 1], object))
    assert model.score(X, [3, 1, 3, 1]) == 1
    gputree.save(model, tmp_path / "tree.gputree")
    assert gputree.load(tmp_path / "tree.gputree").predict(X).tolist() == [3, 1, 3, 1]


def test_numbers_beside_text_in_a_list_are_no_text() -> None:
    """NumPy would make text of both."""
    with pytest.raises(TypeError, match=r"mixes in 1, an int, beside text"):
        DecisionTreeClassifier().fit(X, ["a", 1, "b", "a"])


# -- several outputs

OUTPUTS: dict[str, tuple[Callable[[], Any], list[list[Any]]]] = {
    "text": (lambda: [["x", "p"], ["y", "q"], ["x", "q"], ["y", "p"]], [["x", "y"], ["p", "q"]]),
    "numbers": (lambda: np.array([[3, 10], [1, 20], [3, 20], [1, 10]], np.int8), [[1, 3], [10, 20]]),
    "text frame": (lambda: pd.DataFrame({"a": [*"xyxy"], "b": [*"pqqp"]}), [["x", "y"], ["p", "q"]]),
    "categories": (
        lambda: pd.DataFrame({"a": pd.Categorical([*"xyxy"]), "b": pd.Categorical([*"pqqp"])}),
        [["x", "y"], ["p", "q"]],
    ),
    "booleans and integers": (
        lambda: pd.DataFrame({"a": [True, False] * 2, "b": [7, 9, 9, 7]}),
        [[False, True], [7, 9]],
    ),
    "floats and integers": (lambda: pd.DataFrame({"a": [1.0, 2.0] * 2, "b": [7, 9, 9, 7]}), [[1, 2], [7, 9]]),
    "nullable": (
        lambda: pd.DataFrame({"a": pd.array([1, 2] * 2, dtype="Int8"), "b": pd.array([7, 9, 9, 7], dtype="Int64")}),
        [[1, 2], [7, 9]],
    ),
    "polars": (lambda: pl.DataFrame({"a": [*"xyxy"], "b": [*"pqqp"]}), [["x", "y"], ["p", "q"]]),
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_every_output_has_its_own_labels(kind: str) -> None:
    make, classes = OUTPUTS[kind]
    for cls in CLASSIFIERS:
        model = cls().fit(X, make())
        assert [c.tolist() for c in model.classes_] == classes
        assert model.n_classes_ == [2, 2]
        assert model.predict(X).tolist() == np.asarray(make()).tolist()


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [*"xyxy"], "b": [7, 9, 9, 7]}),
        pd.DataFrame({"a": pd.Categorical([*"xyxy"]), "b": [True, False, False, True]}),
        pl.DataFrame({"a": [*"xyxy"], "b": [7, 9, 9, 7]}),
    ],
    ids=["text and numbers", "categories and booleans", "polars"],
)
def test_outputs_of_different_types_keep_them(frame: Any) -> None:
    """Text beside numbers: each column has its own classes, and each prediction is one of them."""
    model = DecisionTreeClassifier().fit(X, frame)
    assert model.classes_[0].tolist() == ["x", "y"]
    assert model.classes_[1].tolist() == sorted(set(frame["b"].to_list()))
    assert model.predict(X).tolist() == [list(row) for row in np.asarray(frame, object)]


# -- missing labels

MISSING: dict[str, Callable[[], Any]] = {
    "None": lambda: ["a", None, "b", "a"],
    "NaN": lambda: [0, np.nan, 1, 0],
    "objects with NaN": lambda: np.array(["a", np.nan, "b", "a"], object),
    "NaT": lambda: np.array(["2020", "NaT", "2021", "2020"], "M8[D]"),
    "no duration": lambda: np.array([1, "NaT", 2, 1], "m8[s]"),
    "pandas string": lambda: pd.Series(["a", pd.NA, "b", "a"], dtype="string"),
    "pandas Int64": lambda: pd.Series([1, None, 2, 1], dtype="Int64"),
    "pandas Float64": lambda: pd.Series([1, None, 2, 1], dtype="Float64"),
    "pandas boolean": lambda: pd.Series([True, None, False, True], dtype="boolean"),
    "pandas category": lambda: pd.Series(pd.Categorical(["a", None, "b", "a"])),
    "pandas arrow": lambda: pd.Series([1.0, None, 2, 1], dtype="double[pyarrow]"),
    "pandas datetime": lambda: pd.Series(pd.to_datetime(["2020", None, "2021", "2020"])),
    "polars String": lambda: pl.Series(["a", None, "b", "a"]),
    "polars Int64": lambda: pl.Series([1, None, 2, 1]),
    "polars Enum": lambda: pl.Series(["a", None, "b", "a"], dtype=pl.Enum(["a", "b"])),
    "polars Date": lambda: pl.Series([1, None, 2, 1]).cast(pl.Date),
    "pyarrow string": lambda: pa.array(["a", None, "b", "a"]),
    "pyarrow int": lambda: pa.array([1, None, 2, 1]),
    "pyarrow bool": lambda: pa.array([True, None, False, True]),
    "pyarrow dictionary": lambda: pa.array(["a", None, "b", "a"]).dictionary_encode(),
    "one output of two": lambda: pd.DataFrame({"a": ["x", None, "x", "y"], "b": [*"pqqp"]}),
    "numbers of two outputs": lambda: np.array([[0, 1], [np.nan, 1], [1, 0], [0, 0]]),
}


@pytest.mark.parametrize("kind", MISSING)
def test_a_missing_label_is_refused(kind: str) -> None:
    for cls in CLASSIFIERS + REGRESSORS:
        with pytest.raises(ValueError, match="y contains NaN; leave such rows out"):
            cls().fit(X, MISSING[kind]())


@pytest.mark.parametrize("learner", CLASSIFIERS + REGRESSORS)
def test_a_masked_label_is_missing(learner: Any) -> None:
    """A masked array without masked cells is an array."""
    whole = np.ma.array([0, 1, 0, 1], mask=[0, 0, 0, 0])
    assert learner().fit(X, whole).predict(X).tolist() == [0, 1, 0, 1]
    with pytest.raises(ValueError, match="y contains NaN"):
        learner().fit(X, np.ma.array([0, 1, 0, 1], mask=[0, 0, 0, 1]))


# -- targets of a regression

TARGETS: dict[str, Callable[[], Any]] = {
    "list": lambda: [1, 0, 2, 1],
    "int8": lambda: np.array([1, 0, 2, 1], np.int8),
    "float16": lambda: np.array([1, 0, 2, 1], np.float16),
    "big-endian": lambda: np.array([1, 0, 2, 1], ">f4"),
    "objects": lambda: np.array([1, Decimal(0), 2.0, np.float32(1)], object),
    "pandas Int64": lambda: pd.Series([1, 0, 2, 1], dtype="Int64"),
    "pandas arrow": lambda: pd.Series([1, 0, 2, 1], dtype="double[pyarrow]"),
    "pandas column": lambda: pd.DataFrame({"y": [1, 0, 2, 1]}),
    "polars": lambda: pl.Series([1, 0, 2, 1]),
    "polars Decimal": lambda: pl.Series([Decimal(1), Decimal(0), Decimal(2), Decimal(1)]),
    "pyarrow": lambda: pa.array([1, 0, 2, 1]),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_targets_of_any_type_are_numbers(kind: str) -> None:
    for cls in REGRESSORS:
        predicted = cls().fit(X, TARGETS[kind]()).predict(X)
        assert predicted.dtype == np.float64
        assert predicted.tolist() == [1, 0, 2, 1]


def test_two_targets_of_different_types_are_numbers() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "b": [True, False, False, True]})
    for table in (frame, pl.from_pandas(frame), frame.astype({"a": np.int8})):
        assert DecisionTreeRegressor().fit(X, table).predict(X).tolist() == [[1, 1], [2, 0], [3, 0], [4, 1]]


@pytest.mark.parametrize("y", [WORDS, DAYS, [1j, 2, 3, 4], [{1}] * 4], ids=["text", "dates", "complex", "sets"])
def test_targets_that_are_no_numbers_are_refused(y: Any) -> None:
    for cls in REGRESSORS:
        with pytest.raises((ValueError, TypeError), match=r"number|dates|[Cc]omplex"):
            cls().fit(X, y)
