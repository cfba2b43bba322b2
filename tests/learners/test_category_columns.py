"""Columns of categories: declared values that no row has, kinds of values, columns without values, many columns."""

from __future__ import annotations

from datetime import date
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

from gputree import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.learners.frames import as_frame
from gputree.learners.tables import read_matrix, read_schema

MULTIWAY = {"categorical_split": "multiway"}


def test_values_that_no_row_has_change_no_pruning() -> None:
    """Declared categories make branches without rows, which cost nothing and count for nothing."""
    rng = np.random.default_rng(0)
    c, x = rng.integers(0, 3, 300), rng.normal(size=300)
    y = (c == 1) ^ (x > 0.3) ^ (rng.random(300) < 0.1)
    few, many = (pd.DataFrame({"c": pd.Categorical(c, categories=range(k)), "x": x}) for k in (3, 50))
    paths = [DecisionTreeClassifier(**MULTIWAY).cost_complexity_pruning_path(X, y) for X in (few, many)]
    np.testing.assert_array_equal(paths[0].ccp_alphas, paths[1].ccp_alphas)
    for alpha in (0.002, 0.01, 0.03):
        models = [DecisionTreeClassifier(ccp_alpha=alpha, **MULTIWAY).fit(X, y) for X in (few, many)]
        np.testing.assert_array_equal(models[0].predict_proba(few), models[1].predict_proba(many))


def test_tests_without_rows_to_part_list_no_categories() -> None:
    """Nodes of one category each among thousands that are declared: work follows rows."""
    n = 8000
    names = [f"v{i}" for i in range(n)]
    X = pd.DataFrame({"c": pd.Categorical(np.repeat(names, 2), categories=names), "d": np.arange(2.0 * n)})
    y = np.random.default_rng(1).integers(0, 2, 2 * n)
    model = DecisionTreeClassifier(max_depth=2, **MULTIWAY).fit(X, y)
    assert model.forest_.lookup_code.size == n
    assert model.forest_.n_nodes < 3 * n


KINDS: dict[str, list[Any]] = {
    "text": ["a", "b", "a", "b"],
    "numbers": [1, 2, 1, 2],
    "booleans": [True, False, True, False],
    "dates": [date(2020, 1, 1), date(2020, 1, 2)] * 2,
    "lists": [[1], [2], [1], [2]],
}


@pytest.mark.parametrize("late", KINDS)
@pytest.mark.parametrize("fitted", ["text", "numbers", "booleans"])
def test_categories_of_another_kind_are_refused_by_name(fitted: str, late: str) -> None:
    """True is not 1, and one odd value among many is enough."""
    y = [0, 1, 0, 1]
    frame = pd.DataFrame({"c": pd.Series(KINDS[fitted], dtype=object)})
    model = DecisionTreeClassifier(categorical_features=["c"]).fit(frame, y)
    mixed = pd.DataFrame({"c": pd.Series([*KINDS[fitted][:3], KINDS[late][3]], dtype=object)})
    if fitted == late:
        assert model.predict(mixed).tolist() == y
        return
    with pytest.raises(TypeError, match=rf"column 'c' holds {fitted}, .* X has .* give the same kind of values"):
        model.predict(mixed)


@pytest.mark.parametrize(
    ("empty", "full"),
    [
        (pl.Series([None, None], dtype=pl.String), pl.Series(["a", None], dtype=pl.String)),
        (pl.Series([None, None], dtype=pl.Enum(["a", "b"])), pl.Series(["a", None], dtype=pl.Enum(["a", "b"]))),
        (pl.Series([None, None], dtype=pl.Boolean), pl.Series([True, None])),
        (pd.Series([None, None], dtype="str"), pd.Series(["a", None], dtype="str")),
        (pd.Series(pd.Categorical([None, None], ["a"])), pd.Series(pd.Categorical(["a", None], ["a"]))),
    ],
)
def test_a_column_of_categories_may_be_empty_in_a_fit(empty: Any, full: Any) -> None:
    """As in one fold of a cross-validation: its values are then unknown, or declared and unmet, and no error."""
    library = pl.DataFrame if isinstance(empty, pl.Series) else pd.DataFrame
    for settings in ({}, MULTIWAY, {"splitter": "random"}):
        model = DecisionTreeClassifier(**settings).fit(library({"c": empty, "x": [1.0, 2.0]}), [0, 1])
        assert model.predict(library({"c": full, "x": [1.0, 2.0]})).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (5, "must be a list of values, got 5"),
        (None, "must be a list of values, got None"),
        ("abc", "must be a list of values, got 'abc'"),
        ([], "must be a list of values"),
        ([["a"], ["b"]], "holds values of type list"),
        ([pd.Timestamp("2020")], "holds values of type Timestamp .*: turn dates into numbers"),
        (["a", "a"], "must be distinct"),
        (["a", None], "must be distinct and not missing"),
    ],
)
def test_odd_declarations_are_refused(given: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=rf"column 'c' .*{message}|column 'c' {message}"):
        DecisionTreeClassifier(categories={"c": given}).fit(pd.DataFrame({"c": ["a", "b"]}), [0, 1])


def test_a_frame_of_many_columns_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a column by its place makes narwhals list all names again: the columns come in one pass."""
    frame = as_frame(pd.DataFrame(np.zeros((2, 500))).set_axis([f"c{i}" for i in range(500)], axis=1))

    def refuse(self: Any, key: Any) -> Any:
        raise AssertionError(f"column {key} is asked for by itself")

    monkeypatch.setattr(nw.DataFrame, "__getitem__", refuse)
    assert frame is not None
    assert read_matrix(frame, read_schema(frame)).shape == (2, 500)


def test_columns_in_another_order_are_named_with_the_remedy() -> None:
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    for late in (X[["b", "a"]], X[["a"]], X.assign(c=1)):
        with pytest.raises(ValueError, match=r"X\[list\(model\.feature_names_in_\)\]"):
            DecisionTreeRegressor().fit(X, [0, 1]).predict(late)


def test_labels_of_time_zones_come_back() -> None:
    times = pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])).dt.tz_localize("Europe/Berlin")
    model = DecisionTreeClassifier().fit([[0], [1]], times)
    assert model.predict([[1], [0]]).tolist() == [times[1], times[0]]
