"""Missing values: a direction learnt, kept by every consumer, and never mixed up with a number or an unknown value."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import gputree
from tests.bugs.shared import (
    LEARNERS,
    TASKS,
    WAYS,
    Classifier,
    Regressor,
    assert_separates,
    column,
    leaf_rows,
    members,
    same_tests,
)

NAN = np.nan


def gappy(n: int = 200, share: float = 0.3) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 3)), rng.integers(0, 3, n)
    X[rng.random(X.shape) < share] = NAN
    return X, y


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("way", WAYS)
def test_M01_missing_against_one_known_value_is_a_split(depth: int, way: str) -> None:
    """Zeros and NaN, at the root and below one or two other splits."""
    x, y = [0, 0, 0, NAN, NAN], [0, 0, 0, 1, 1]
    rows, labels = [[v, 0] for v in x], list(y)
    for level in range(depth):
        rows, labels = rows + [[0, level + 1]] * 5, labels + [level + 2] * 5
    X = np.array(rows)
    for cls in TASKS:
        assert cls(**WAYS[way]).fit(X, labels).predict(X).tolist() == labels
    if not depth:
        assert Classifier(**WAYS[way]).fit(X, y).get_n_leaves() == 2


@pytest.mark.parametrize("split", ["binary", "multiway"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("known", ["a", True, 7.5])
def test_M01_missing_against_one_category_is_a_split(known: Any, way: str, split: str) -> None:
    """One category, or one number of a sparse column, beside missing cells: two leaves."""
    X, y = pd.DataFrame({"c": pd.Series([known, None, known, None, known], dtype=object)}), [0, 1, 0, 1, 0]
    for cls in TASKS:
        model = cls(categorical_split=split, **WAYS[way]).fit(X, y)
        assert model.predict(X).tolist() == y
        assert np.count_nonzero(leaf_rows(model)) == 2


def test_M01_missing_values_of_a_sparse_column() -> None:
    """The zeros that a sparse matrix does not store are known; its NaN are missing."""
    X = column(0, 0, 0, NAN, NAN)
    for make in (sp.csr_array, sp.csc_matrix):
        assert Classifier().fit(make(X), [0, 0, 0, 1, 1]).predict(make(X)).tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("way", WAYS)
def test_M02_missing_rows_are_counted_once(way: str) -> None:
    """Two NaN and four numbers: the NaN rows share a leaf, every number has its own."""
    X, y = column(NAN, NAN, 3, 4, 5, 6), np.arange(6.0)
    model = Regressor(**WAYS[way]).fit(X, y)
    assert model.predict(X).tolist() == [0.5, 0.5, 2, 3, 4, 5]
    assert sorted(leaf_rows(model)[leaf_rows(model) > 0].tolist()) == [1, 1, 1, 1, 2]


@pytest.mark.parametrize("way", WAYS)
def test_M02_every_node_holds_what_its_rows_say(way: str) -> None:
    """Rows, means, variances and Gini impurities of all nodes, from the rows that pass them."""
    X, y = gappy()
    for cls, spread in ((Regressor, np.var), (Classifier, gini)):
        model = cls(**WAYS[way]).fit(X, y)
        for node, rows in enumerate(members(model, X)):
            assert model.tree_.n_node_samples[node] == rows.size
            assert model.tree_.impurity[node] == pytest.approx(spread(y[rows]), abs=1e-12)


def gini(labels: NDArray[np.int64]) -> float:
    return float(1 - ((np.bincount(labels) / labels.size) ** 2).sum())


def test_M04_missing_values_have_a_side_of_their_own_at_every_depth() -> None:
    """Four NaN of class 1, then 0 to 5 of classes 0 0 0 0 1 1, depth 2."""
    X = column(*[NAN] * 4, *range(6))
    for cls in TASKS:
        model = cls(max_depth=2).fit(X, [1] * 4 + [0, 0, 0, 0, 1, 1])
        assert model.predict(column(NAN, 1.2, 4.8)).tolist() == [1, 0, 1]


@pytest.mark.parametrize("cls", LEARNERS)
def test_M04_copies_of_a_model_keep_the_direction(cls: Any, tmp_path: Path) -> None:
    """The model file, pickle, deepcopy and ``tree_``: rows with missing values arrive in the same leaves."""
    X, y = gappy()
    model = cls().fit(X, y)
    gputree.save(model, tmp_path / "tree.gputree")
    own = model.apply(X)
    for again in (gputree.load(tmp_path / "tree.gputree"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(again.apply(X), own)
    np.testing.assert_array_equal(model.tree_.apply(X), own)
    np.testing.assert_array_equal(by_hand(model.tree_, X), own)


def by_hand(tree: Any, X: NDArray[Any]) -> list[int]:
    """Leaves as another program would find them from scikit-learn's arrays."""
    leaves = []
    for x in X:
        node = 0
        while tree.children_left[node] >= 0:
            value = x[tree.feature[node]]
            left = tree.missing_go_to_left[node] if np.isnan(value) else value <= tree.threshold[node]
            node = tree.children_left[node] if left else tree.children_right[node]
        leaves.append(int(node))
    return leaves


CRITERIA = ["poisson", "squared_error", "entropy", "train_error", "gini"]


def counts(criterion: str, weighted: bool) -> list[tuple[Any, list[NDArray[np.intp]], NDArray[np.int64]]]:
    """Trees of counts on columns with many missing cells, the rows of their nodes, and y."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 3)), rng.poisson(2, 150)
    X[rng.random(X.shape) < 0.4] = NAN
    cls = Regressor if criterion in ("poisson", "squared_error") else Classifier
    w = rng.random(150) + 0.1 if weighted else None
    models = [cls(criterion=criterion, **way).fit(X, y, w) for way in WAYS.values()]
    return [(model, members(model, X), y) for model in models]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_M05_no_impurity_is_negative(criterion: str, weighted: bool) -> None:
    """Of any node, with whole and real weights."""
    for model, _, _ in counts(criterion, weighted):
        assert model.tree_.impurity.min() >= 0


@pytest.mark.parametrize("criterion", CRITERIA)
def test_M05_the_impurity_of_a_pure_node_is_zero(criterion: str) -> None:
    """To the last digit, also under real weights."""
    for model, rows_of, y in counts(criterion, weighted=True):
        pure = [np.unique(y[rows]).size == 1 for rows in rows_of]
        assert not model.tree_.impurity[pure].any()


@pytest.mark.parametrize("cls", LEARNERS)
def test_M07_the_decision_path_ends_in_the_leaf_of_apply(cls: Any) -> None:
    """Rows with missing values, at fit or only at predict: a chain from the root, each node a child of the last."""
    X, y = gappy()
    model = cls().fit(X, y)
    late = X.copy()
    late[::3] = NAN
    for table in (X, late):
        path = model.decision_path(table)
        for i, leaf in enumerate(model.apply(table)):
            nodes = path.indices[path.indptr[i] : path.indptr[i + 1]]
            assert nodes[0] == 0
            assert nodes[-1] == leaf
            assert model.forest_.parent[nodes[1:]].tolist() == nodes[:-1].tolist()


@pytest.mark.parametrize("split", ["binary", "multiway"])
def test_M07_the_path_of_categories_ends_in_the_leaf_of_apply(split: str) -> None:
    """Missing, known and unknown categories."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": rng.choice(["u", "v", "w", None], 80), "d": rng.choice(["p", None], 80)})
    model = Regressor(categorical_split=split).fit(X, rng.normal(size=80))
    late = pd.DataFrame({"c": ["u", None, "new", "w"], "d": [None, "new", "p", None]})
    for table in (X, late):
        path = model.decision_path(table)
        assert path.indices[path.indptr[1:] - 1].tolist() == model.apply(table).tolist()
        assert (np.diff(path.indptr) == model.forest_.depth[model.apply(table)] + 1).all()


@pytest.mark.parametrize("cls", LEARNERS)
def test_M08_a_column_of_missing_values_only_is_never_used(cls: Any) -> None:
    """Importance 0 and the tree without it, and a table of nothing else gives one leaf."""
    X, y = gappy(share=0.0)
    X[:, 1] = NAN
    model = cls(max_features=None).fit(X, y)
    assert model.feature_importances_[1] == 0
    assert (model.forest_.feature != 1).all()
    assert cls(max_features=1).fit(X[:, 1:2], y).get_n_leaves() == 1


@pytest.mark.parametrize(
    "empty",
    [
        pd.DataFrame({"c": [None] * 4}),
        pd.DataFrame({"c": pd.Categorical([None] * 4, categories=["a", "b"])}),
        pd.DataFrame({"c": pd.array([None] * 4, dtype="boolean")}),
        pl.DataFrame({"c": pl.Series([None] * 4, dtype=pl.String)}),
        pl.DataFrame({"c": pl.Series([None] * 4, dtype=pl.Enum(["a", "b"]))}),
        pa.table({"c": pa.nulls(4)}),
        np.array([[None]] * 4, object),
    ],
    ids=["objects", "category", "boolean", "polars String", "polars Enum", "pyarrow null", "array"],
)
@pytest.mark.parametrize("split", ["binary", "multiway"])
def test_M08_a_column_without_values_of_any_type_gives_one_leaf(empty: Any, split: str) -> None:
    """Whatever its values could have been."""
    for cls in LEARNERS:
        model = cls(categorical_split=split).fit(empty, [0, 1, 1, 1])
        assert model.get_n_leaves() == 1
        assert model.predict(empty).tolist() == ([1] * 4 if hasattr(model, "classes_") else [0.75] * 4)


@pytest.mark.parametrize("cls", LEARNERS)
@pytest.mark.parametrize("way", WAYS)
def test_M10_missing_rows_of_weight_zero_count_for_nothing(cls: Any, way: str) -> None:
    """NaN rows of weight 0 leave the tree of the others, the side of missing values included."""
    X, y = column(NAN, 0, 1, NAN, 2), np.array([5, 0, 1, 5, 1])
    w = np.array([0, 1, 2, 0, 1.0])
    model = cls(**WAYS[way]).fit(X, y, w)
    assert model.tree_.n_node_samples[0] == 3
    assert model.tree_.weighted_n_node_samples[0] == 4
    same_tests(model, cls(**WAYS[way]).fit(X[w > 0], y[w > 0], w[w > 0]))


@pytest.mark.parametrize("cls", TASKS)
def test_M10_missing_rows_count_with_their_weight(cls: Any) -> None:
    """NaN rows of weight 3 are three NaN rows."""
    X, y = gappy(60)
    w = np.where(np.isnan(X).any(axis=1), 3, 1)
    copied = cls().fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    weighted = cls().fit(X, y, w)
    same_tests(weighted, copied)
    np.testing.assert_array_equal(weighted.tree_.weighted_n_node_samples, copied.tree_.weighted_n_node_samples)


VALUES = [1, None, 3, 2, None, 5, 3, 8]
FLOATS = [NAN if v is None else float(v) for v in VALUES]
LABELS = [0, 1, 1, 0, 1, 0, 1, 2]
NULLABLE = [*(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)), "Float32", "Float64"]
NULLABLE += ["int64[pyarrow]", "uint8[pyarrow]", "float[pyarrow]", "double[pyarrow]"]


@pytest.mark.parametrize("dtype", NULLABLE)
def test_M11_nullable_numbers_are_floats_with_missing_values(dtype: str) -> None:
    """The fitted arrays of float and NaN; also where cells are missing only at predict."""
    X, plain = pd.DataFrame({"x": pd.array(VALUES, dtype=dtype)}), pd.DataFrame({"x": FLOATS})
    for cls in TASKS:
        model, expected = cls().fit(X, LABELS), cls().fit(plain, LABELS)
        assert model.fingerprint() == expected.fingerprint()
        assert model.predict(X).tolist() == expected.predict(plain).tolist()
    full = Classifier().fit(plain.fillna(0), LABELS)
    assert full.predict(X).tolist() == full.predict(plain).tolist()


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt16, pl.Int64, pl.UInt64, pl.Float32, pl.Float64])
def test_M11_polars_nulls_are_missing_values(dtype: Any) -> None:
    """Null in a column of integers or floats."""
    X, plain = pl.DataFrame({"x": pl.Series(VALUES, dtype=dtype)}), pd.DataFrame({"x": FLOATS})
    model, expected = Classifier().fit(X, LABELS), Classifier().fit(plain, LABELS)
    assert model.fingerprint() == expected.fingerprint()
    assert model.predict(X).tolist() == expected.predict(plain).tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda v: pd.DataFrame({"b": pd.array(v, dtype="boolean")}),
        lambda v: pd.DataFrame({"b": pd.array(v, dtype="bool[pyarrow]")}),
        lambda v: pd.DataFrame({"b": pd.Series(v, dtype=object)}),
        lambda v: pl.DataFrame({"b": v}),
        lambda v: pa.table({"b": v}),
    ],
    ids=["boolean", "bool[pyarrow]", "objects", "polars", "pyarrow"],
)
def test_M11_nullable_booleans_are_zeros_ones_and_missing_values(make: Any) -> None:
    """The partition of 0, 1 and NaN, under any of the learners; missing only at predict as well."""
    values, y = [True, None, False, True, None, False], [0, 1, 2, 0, 1, 2]
    X, plain = make(values), np.array([[NAN if v is None else float(v)] for v in values])
    for cls in LEARNERS:
        assert cls().fit(X, y).predict(X).tolist() == y
        assert cls().fit(plain, y).predict(plain).tolist() == y
    known = Classifier().fit(make([True, False, False]), [1, 0, 0])
    assert known.predict(X).tolist() == [1, 0, 0, 1, 0, 0]  # missing values follow the child of larger weight


def test_a_missing_value_follows_the_child_of_larger_weight_where_a_node_met_none() -> None:
    """One row of weight 5 left, three rows of weight 1 right: left; of weight 3 right; of equal weights left."""
    X, y = column(0, 1, 1, 1), [0, 1, 1, 1]
    for w, side in (([5, 1, 1, 1], 0), ([2, 1, 1, 1], 1), ([3, 1, 1, 1], 0), (None, 1)):
        for cls in TASKS:
            assert cls().fit(X, y, w).predict([[NAN]]).tolist() == [side]


def test_a_category_that_a_node_never_met_follows_the_child_of_larger_weight() -> None:
    """The same rule for unknown categories, and for missing cells beside them."""
    X = pd.DataFrame({"c": ["a", "b", "b", "b"]})
    late = pd.DataFrame({"c": ["new", None]})
    for w, side in (([5, 1, 1, 1], 0), ([2, 1, 1, 1], 1), ([3, 1, 1, 1], 0), (None, 1)):
        for split in ("binary", "multiway"):
            model = Classifier(categorical_split=split).fit(X, [0, 1, 1, 1], w)
            assert model.predict(late).tolist() == [side, side]


def test_infinities_are_no_missing_values() -> None:
    """-inf, inf, a number and NaN are four values."""
    assert_separates(column(-np.inf, np.inf, 0, NAN), [0, 1, 2, 3])
