"""Frames of every library and kind of column: what is read, what is refused, and which columns hold categories."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from gputree import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.core.schema import Feature, Kind
from gputree.learners.frames import as_frame
from gputree.learners.tables import UNKNOWN, read_column, read_matrix, read_schema

NAN = float("nan")
NUMBERS = [1.0, NAN, 3.0, 2.0]
TEXT = [0.0, NAN, 1.0, 0.0]  # the numbers of the categories of ["a", missing, "b", "a"]


def arrow(values: list[Any], kind: Any) -> Any:
    """A column of pandas that is one of Arrow."""
    return pd.Series(pa.array(values, kind), dtype=pd.ArrowDtype(kind))


def columns() -> dict[str, tuple[Any, list[float]]]:
    """A column of each kind with a missing cell (where it can have one), and the floats that it must become."""
    text, mixed = ["a", None, "b", "a"], [1, pd.NA, 3.0, Decimal(2)]
    return {
        "pandas float": (pd.Series([1.0, None, 3.0, 2.0]), NUMBERS),
        "pandas float32": (pd.Series([1.0, None, 3.0, 2.0], dtype="float32"), NUMBERS),
        "pandas float16": (pd.Series(np.array(NUMBERS, np.float16)), NUMBERS),
        "pandas longdouble": (pd.Series(np.array(NUMBERS, np.longdouble)), NUMBERS),
        "pandas Int64": (pd.Series([1, None, 3, 2], dtype="Int64"), NUMBERS),
        "pandas UInt8": (pd.Series([1, None, 3, 2], dtype="UInt8"), NUMBERS),
        "pandas Float64": (pd.Series([1, None, 3, 2], dtype="Float64"), NUMBERS),
        "pandas arrow int": (pd.Series([1, None, 3, 2], dtype="int64[pyarrow]"), NUMBERS),
        "pandas arrow float16": (arrow([1.0, None, 3.0, 2.0], pa.float16()), NUMBERS),
        "pandas arrow decimal": (arrow([Decimal(1), None, Decimal(3), Decimal(2)], pa.decimal128(9, 2)), NUMBERS),
        "pandas objects that are numbers": (pd.Series(mixed, dtype=object), NUMBERS),
        "pandas fractions": (pd.Series([Fraction(1), None, 3, np.int8(2)], dtype=object), NUMBERS),
        "pandas objects with NaT": (pd.Series([1, pd.NaT, 3, 2], dtype=object), NUMBERS),
        "pandas sparse float": (pd.Series(pd.arrays.SparseArray(NUMBERS)), NUMBERS),
        "pandas sparse int": (pd.Series(pd.arrays.SparseArray([0, 0, 3, 2])), [0, 0, 3, 2]),
        "pandas sparse bool": (pd.Series(pd.arrays.SparseArray([False, False, True, False])), [0, 0, 1, 0]),
        "pandas str": (pd.Series(text), TEXT),
        "pandas string": (pd.Series(text, dtype="string"), TEXT),
        "pandas string[pyarrow]": (pd.Series(text, dtype="string[pyarrow]"), TEXT),
        "pandas object NA": (pd.Series(["a", pd.NA, "b", "a"], dtype=object), TEXT),
        "pandas object NaN": (pd.Series(["a", NAN, "b", "a"], dtype=object), TEXT),
        "pandas boolean": (pd.Series([False, None, True, False], dtype="boolean"), TEXT),
        "pandas bool objects": (pd.Series([False, None, np.True_, False], dtype=object), TEXT),
        "pandas category": (pd.Series(text, dtype="category"), TEXT),
        "pandas category of numbers": (pd.Series(pd.Categorical([3, None, 5, 3])), TEXT),
        "pandas intervals": (pd.cut(pd.Series([1.0, NAN, 9.0, 2.0]), [0, 5, 10]), TEXT),
        "pandas arrow dictionary": (arrow(text, pa.dictionary(pa.int32(), pa.string())), TEXT),
        "polars Int64": (pl.Series([1, None, 3, 2]), NUMBERS),
        "polars Int128": (pl.Series([1, None, 3, 2], dtype=pl.Int128), NUMBERS),
        "polars UInt64": (pl.Series([1, None, 3, 2], dtype=pl.UInt64), NUMBERS),
        "polars Float64, null": (pl.Series([1.0, None, 3.0, 2.0]), NUMBERS),
        "polars Float64, NaN": (pl.Series([1.0, NAN, 3.0, 2.0]), NUMBERS),
        "polars Float32": (pl.Series([1.0, None, 3.0, 2.0], dtype=pl.Float32), NUMBERS),
        "polars Decimal": (pl.Series([Decimal(1), None, Decimal(3), Decimal(2)]), NUMBERS),
        "polars String": (pl.Series(text), TEXT),
        "polars Boolean": (pl.Series([False, None, True, False]), TEXT),
        "polars Categorical": (pl.Series(text, dtype=pl.Categorical), TEXT),
        "polars Enum": (pl.Series(text, dtype=pl.Enum(["a", "b"])), TEXT),
        "pyarrow int": (pa.chunked_array([[1, None, 3, 2]]), NUMBERS),
        "pyarrow half": (pa.chunked_array([pa.array([1.0, None, 3.0, 2.0], pa.float16())]), NUMBERS),
        "pyarrow decimal": (pa.chunked_array([[Decimal(1), None, Decimal(3), Decimal(2)]]), NUMBERS),
        "pyarrow string": (pa.chunked_array([text]), TEXT),
        "pyarrow large string": (pa.chunked_array([pa.array(text, pa.large_string())]), TEXT),
        "pyarrow string view": (pa.chunked_array([pa.array(text, pa.string_view())]), TEXT),
        "pyarrow dictionary": (pa.chunked_array([pa.array(text).dictionary_encode()]), TEXT),
        "pyarrow bool": (pa.chunked_array([[False, None, True, False]]), TEXT),
        "pyarrow in chunks": (pa.chunked_array([["a", None], ["b", "a"]]), TEXT),
    }


def frame_of(column: Any) -> Any:
    """A frame of that one column, of the same library."""
    if isinstance(column, pd.Series):
        return pd.DataFrame({"c": column})
    return pl.DataFrame({"c": column}) if isinstance(column, pl.Series) else pa.table({"c": column})


@pytest.mark.parametrize("kind", columns())
def test_every_kind_of_column_is_read(kind: str) -> None:
    """Its floats, and a tree that tells its values apart, missing ones included."""
    column, expected = columns()[kind]
    frame = as_frame(frame_of(column))
    assert frame is not None
    np.testing.assert_array_equal(read_matrix(frame, read_schema(frame))[:, 0], expected)
    y = np.unique(expected, return_inverse=True)[1]
    model = DecisionTreeRegressor().fit(frame_of(column), y)
    assert model.predict(frame_of(column)).tolist() == y.tolist()


def test_float32_frames_stay_float32() -> None:
    frame = as_frame(pd.DataFrame({"a": np.array([1, 2], np.float32), "b": np.array([3, 4], np.float32)}))
    assert frame is not None
    assert read_matrix(frame, read_schema(frame)).dtype == np.float32


COLOUR = Enum("COLOUR", "RED GREEN")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.Series([1, "a"], dtype=object), "column 'c' holds values of type int and str"),
        (pd.Series([True, "a"], dtype=object), "column 'c' holds values of type bool and str"),
        (pd.Series([{"k": 1}, {"k": 2}], dtype=object), "column 'c' holds values of type dict"),
        (pd.Series([(1,), (2,)], dtype=object), "column 'c' holds values of type tuple"),
        (pd.Series([b"a", b"b"], dtype=object), "column 'c' holds values of type bytes"),
        (pd.Series(list(COLOUR), dtype=object), "column 'c' holds values of type COLOUR"),
        (pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"])), "column 'c' has type Datetime.*turn dates"),
        (pd.Series(pd.to_timedelta([1, 2])), "column 'c' has type Duration"),
        (pd.Series(pd.period_range("2020", periods=2)), "column 'c' has type"),
        (pd.Series([1j, 2j]), "column 'c' has type"),
        (pd.Series([[1], [2]], dtype=object), "column 'c'"),
        (pd.Series(pd.Categorical(pd.to_datetime(["2020", "2021"]))), "column 'c' holds values of type Timestamp"),
        (pl.Series([1, 2]).cast(pl.Date), "column 'c' has type Date"),
        (pl.Series([1, 2]).cast(pl.Time), "column 'c' has type Time"),
        (pl.Series([[1], [2]]), "column 'c' has type List"),
        (pl.Series([{"k": 1}, {"k": 2}]), "column 'c' has type Struct"),
        (pl.Series([b"a", b"b"]), "column 'c' has type Binary"),
        (pa.chunked_array([pa.array([1, 2], pa.date32())]), "column 'c' has type Date"),
    ],
)
def test_other_columns_are_refused_by_name(column: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        DecisionTreeClassifier().fit(frame_of(column), [0, 1])


def test_a_lazy_frame_says_what_to_do() -> None:
    with pytest.raises(TypeError, match="collect"):
        DecisionTreeClassifier().fit(pl.LazyFrame({"a": [1, 2]}), [0, 1])


def test_booleans_are_two_categories() -> None:
    """One-hot columns of pandas are boolean: the tree parts the rows as that of 0 and 1."""
    rng = np.random.default_rng(0)
    frame = pd.get_dummies(pd.DataFrame({"c": rng.choice(["a", "b", "c"], 50)}))
    y = rng.integers(0, 2, 50)
    model, other = (DecisionTreeClassifier().fit(X, y) for X in (frame, frame.astype(int)))
    np.testing.assert_array_equal(model.apply(frame), other.apply(frame.astype(int)))
    assert {f.categories for f in model.schema_.features} == {(False, True)}


def test_the_order_of_rows_does_not_order_categories() -> None:
    """A polars Categorical and an Arrow dictionary number their values as they come, without an order of their own."""
    rng = np.random.default_rng(1)
    values, y = rng.choice(["u", "v", "w", "x"], 60), rng.integers(0, 3, 60)
    makers: list[Callable[[list[str]], Any]] = [
        lambda v: pl.DataFrame({"c": pl.Series(v, dtype=pl.Categorical)}),
        lambda v: pa.table({"c": pa.array(v).dictionary_encode()}),
        lambda v: pd.DataFrame({"c": pd.Categorical(v, categories=list(dict.fromkeys(v)))}),
    ]
    for make in makers:
        model = DecisionTreeClassifier(categorical_split="multiway")
        first = model.fit(make(values.tolist()), y).fingerprint()
        assert model.fit(make(values[::-1].tolist()), y[::-1]).fingerprint() == first


def test_categories_with_an_order_of_their_own_keep_it() -> None:
    """An ordered category, an Enum, and values that the user lists."""
    values = ["low", "high", "mid"]
    order = ("low", "mid", "high")
    ordered = pd.DataFrame({"c": pd.Categorical(values, categories=order, ordered=True)})
    enum = pl.DataFrame({"c": pl.Series(values, dtype=pl.Enum(order))})
    listed = pd.DataFrame({"c": values})
    for X, settings in ((ordered, {}), (enum, {}), (listed, {"categories": {"c": list(order)}})):
        model = DecisionTreeRegressor(**settings).fit(X, [1, 2, 3])
        assert model.schema_.features[0].categories == order
        assert model.predict(X).tolist() == [1, 2, 3]


def test_a_declared_category_makes_a_branch_of_many_and_no_difference_to_two() -> None:
    frame, y = pd.DataFrame({"c": pd.Categorical(["a", "b"] * 4, categories=[*"abcdefgh"])}), [0, 1] * 4
    model = DecisionTreeClassifier(max_leaf_nodes=2).fit(frame, y)
    assert (model.get_n_leaves(), model.score(frame, y)) == (2, 1.0)
    assert DecisionTreeClassifier(max_leaf_nodes=2, categorical_split="multiway").fit(frame, y).get_n_leaves() == 1
    assert DecisionTreeClassifier(categorical_split="multiway").fit(frame, y).get_n_leaves() == 8


# -- which columns hold categories

TABLE = pd.DataFrame({"n": [1, 2, 3, 1], "c": ["u", "v", "u", "v"], "b": [True, False, True, True], "m": [5, 5, 7, 9]})
Y = [0, 1, 0, 1]


def kinds(model: Any) -> list[bool]:
    return (model.schema_.kinds == 1).tolist()


def plain() -> NDArray[Any]:
    return np.array([[1.0, 5], [2, 5], [3, 7], [1, 9]])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("from_dtype", [False, True, True, False]),
        ([0, 1], [True, True, False, False]),
        ([-1, 1], [False, True, False, True]),
        (["c", "m"], [False, True, False, True]),
        (np.array(["c", "b"]), [False, True, True, False]),
        ([True, True, False, False], [True, True, False, False]),
        (np.array([False, True, False, True]), [False, True, False, True]),
        (("c",), [False, True, False, False]),
        (pd.Index(["c"]), [False, True, False, False]),
        ([np.int64(0), "c"], [True, True, False, False]),
    ],
    ids=str,
)
def test_categories_by_number_name_mask_or_type(given: Any, expected: list[bool]) -> None:
    """What is not named is numbers, booleans too; a model so made reads the same table at predict."""
    model = DecisionTreeClassifier(categorical_features=given).fit(TABLE, Y)
    assert kinds(model) == expected
    assert model.predict(TABLE).tolist() == Y


def test_no_categories_and_columns_of_an_array() -> None:
    """None: all are numbers, and text is refused by name; columns of an array have numbers and names of their own."""
    assert kinds(DecisionTreeClassifier(categorical_features=None).fit(TABLE[["n", "b"]], Y)) == [False, False]
    for given in (None, [], ["n"], [False] * 4):
        with pytest.raises(
            TypeError, match="column 'c' holds 'u', which is no number, and categorical_features does not"
        ):
            DecisionTreeClassifier(categorical_features=given).fit(TABLE, Y)
    for given in ([1], [False, True], ["feature_1"]):
        assert kinds(DecisionTreeClassifier(categorical_features=given).fit(plain(), Y)) == [False, True]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"categorical_features": ["z"]},
            "names column 'z', which X does not have; its 4 columns are 'n', 'c', 'b', 'm'",
        ),
        ({"categorical_features": [4]}, "names column 4"),
        ({"categorical_features": [-5]}, "names column -5"),
        ({"categorical_features": [True, False]}, "a mask of 2 values for 4 columns"),
        ({"categorical_features": "c"}, "categorical_features"),
        ({"categories": {"z": ["a"]}}, "categories names column 'z'"),
        ({"categories": {"c": ["u", "u"]}}, "categories of column 'c' must be distinct and not missing"),
        ({"categories": {"c": ["u", None]}}, "categories of column 'c' must be distinct and not missing"),
        (
            {"categories": {"c": ["u"]}},
            r"column 'c' holds 'v' in row 1 \(counted from 0\), which is none of its categories 'u'.*`categories`",
        ),
        (
            {"categories": {"n": [1, 2]}},
            r"column 'n' holds 3 in row 2 \(counted from 0\), which is none of its categories 1, 2",
        ),
        ({"categories": [["u"]]}, "categories"),
        ({"unknown": "skip"}, "unknown"),
        ({"categorical_split": "ternary"}, "categorical_split"),
    ],
    ids=lambda v: str(v) if isinstance(v, dict) else "",
)
def test_columns_and_categories_that_are_not_there_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DecisionTreeClassifier(**settings).fit(TABLE, Y)


def test_categories_that_are_listed() -> None:
    """By name and number; a column of numbers becomes one of categories; a value that no row has is known."""
    settings = {"categories": {"c": ["v", "u", "w"], 0: [3, 2, 1]}, "categorical_split": "multiway"}
    model = DecisionTreeClassifier(**settings, unknown="error").fit(TABLE, Y)
    assert [f.categories for f in model.schema_.features] == [(3, 2, 1), ("v", "u", "w"), (False, True), ()]
    assert model.predict(TABLE.assign(c="w")).shape == (4,)
    with pytest.raises(ValueError, match=r"column 'c' holds 'x' in row 0.*fit without unknown='error'"):
        model.predict(TABLE.assign(c="x"))
    array = DecisionTreeClassifier(categories={1: [9, 7, 5]}).fit(plain(), Y)
    assert array.schema_.features[1].categories == (9, 7, 5)
    assert array.predict(plain()).tolist() == Y


CELLS = ["b", None, "a", "c d", "", "a", None, "b"]
TYPED: dict[str, Any] = {
    "pandas": lambda: pd.Series(pd.Categorical(CELLS)),
    "pandas, ordered": lambda: pd.Series(pd.Categorical(CELLS, categories=["c d", "b", "", "a"], ordered=True)),
    "pandas, arrow": lambda: pd.Series(CELLS, dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
    "polars": lambda: pl.Series(CELLS, dtype=pl.Categorical),
    "polars, enum": lambda: pl.Series(CELLS, dtype=pl.Enum(["", "a", "b", "c d"])),
    "pyarrow": lambda: pa.chunked_array([pa.array(CELLS).dictionary_encode()]),
}


@pytest.mark.parametrize("kind", TYPED)
@pytest.mark.parametrize("rows", [slice(0, 8), slice(1, 2), slice(0, 1)], ids=str)
def test_columns_of_categories_read_as_their_cells(kind: str, rows: slice) -> None:
    """By value, whatever the numbers of their own type; "" is a category that was not declared."""
    column = nw.from_native(TYPED[kind](), series_only=True)[rows]
    number = {"a": 0.0, "b": 1.0, "c d": 2.0, "": UNKNOWN, None: np.nan}
    found = read_column(column, Feature("c", Kind.CATEGORICAL, ("a", "b", "c d")))
    np.testing.assert_array_equal(found, [number[cell] for cell in CELLS[rows]])


def test_numbers_and_booleans_that_are_categories_read_as_their_cells() -> None:
    for cells, categories in (([3, 1, 2, 3], (1, 2)), ([True, False, True, True], (False, True))):
        column = nw.from_native(pd.Series(pd.Categorical(cells)), series_only=True)
        want = [float(categories.index(cell)) if cell in categories else UNKNOWN for cell in cells]
        assert read_column(column, Feature("c", Kind.CATEGORICAL, categories)).tolist() == want
