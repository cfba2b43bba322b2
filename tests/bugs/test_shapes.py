"""Tables of odd shape and memory: few rows, no rows, spikes, columns in another order, things that are no table."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn.tree
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import gputree
from tests.bugs.shared import EIGHT, LEARNERS, STEP, TASKS, Classifier, Regressor, assert_separates

METHODS = ["predict", "apply", "decision_path"]


@pytest.mark.parametrize("bins", ["auto", 6, 7, 16, 255, 256, 65_535])
def test_S01_S02_fewer_rows_than_bins(bins: Any) -> None:
    """Six rows are told apart, whatever the number of bins."""
    assert_separates(np.arange(6)[:, None] * 1.5, np.arange(6), max_bins=bins)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_S02_one_two_and_three_rows(n: int) -> None:
    """As many leaves as rows, with every limit of rows that allows it."""
    for cls in LEARNERS:
        model = cls().fit(EIGHT[:n], np.arange(n))
        assert model.get_n_leaves() == n
        assert model.predict(EIGHT[:n]).tolist() == list(range(n))
        assert cls(min_samples_split=n + 1).fit(EIGHT[:n], np.arange(n)).get_n_leaves() == 1


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("cls", LEARNERS)
def test_S04_empty_tables_are_refused(cls: Any, shape: tuple[int, int]) -> None:
    """No rows, or no columns: a ValueError at fit, as an array and as frames."""
    X, y = np.empty(shape), np.zeros(shape[0], int)
    for table in (X, pd.DataFrame(X), pl.DataFrame(X) if shape[1] else X):
        with pytest.raises(ValueError, match=r"minimum of 1 is required"):
            cls().fit(table, y)


@pytest.mark.parametrize("cls", LEARNERS)
@pytest.mark.parametrize("method", METHODS)
def test_S04_no_rows_at_predict_are_refused(cls: Any, method: str) -> None:
    """With the right number of columns and with another."""
    model = cls().fit(EIGHT, STEP)
    for X in (np.empty((0, 1)), np.empty((0, 2)), np.empty((3, 0))):
        with pytest.raises(ValueError, match=r"minimum of 1 is required|features"):
            getattr(model, method)(X)


def same_table(tmp_path: Path) -> tuple[list[Any], Any]:
    """One table of float32 numbers in many kinds of memory, and labels for it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)).astype(np.float32), rng.integers(0, 3, 60)
    frozen = X.copy()
    frozen.setflags(write=False)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    wide = np.zeros((60, 8), np.float32)
    wide[:, ::2] = X
    forms = [X, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], wide[:, ::2], X[::-1][::-1], frozen, mapped]
    forms += [X.tolist(), X.astype(">f4"), X.astype(float), X.astype(">f8"), X.astype(object), X.astype(np.longdouble)]
    return [*forms, np.ma.array(X), [list(row) for row in X], tuple(map(tuple, X))], y


@pytest.mark.parametrize("cls", LEARNERS)
def test_S05_every_container_gives_one_answer(cls: Any, tmp_path: Path) -> None:
    """C, Fortran, strided in both directions, read-only, mapped, lists, big-endian, wider types: fit and predict."""
    forms, y = same_table(tmp_path)
    model = cls().fit(forms[0], y)
    for X in forms:
        assert cls().fit(X, y).fingerprint() == model.fingerprint()
        assert model.predict(X).tolist() == model.predict(forms[0]).tolist()


def test_S05_y_and_weights_in_every_kind_of_memory() -> None:
    """Strided, big-endian, read-only, as a column, as a list."""
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(60, 4)), rng.integers(0, 3, 60), rng.random(60)
    frozen, wide = y.copy(), np.repeat(y, 2)[::2]
    frozen.setflags(write=False)
    labels = [y, y.tolist(), y.astype(">i8"), y[:, None], frozen, wide]
    weights = [w, w.tolist(), w.astype(">f8"), np.repeat(w, 2)[::2], pd.Series(w)]
    for cls in TASKS:
        assert len({cls().fit(X, each, w).fingerprint() for each in labels}) == 1
        assert len({cls().fit(X, y, each).fingerprint() for each in weights}) == 1


FRAMES: dict[str, Callable[[dict[str, list[int]]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("method", METHODS)
def test_S07_other_columns_than_those_of_the_fit_are_refused(library: str, method: str) -> None:
    """In another order, too few, too many, under another name: never matched by place."""
    make = FRAMES[library]
    a, b = [0, 1, 2, 3], [3, 1, 2, 0]
    model = Classifier().fit(make({"a": a, "b": b}), [0, 0, 1, 1])
    for late, message in [
        ({"b": b, "a": a}, "order"),
        ({"a": a}, "missing:\n- b"),
        ({"a": a, "b": b, "c": a}, "unseen at fit time:\n- c"),
        ({"a": a, "B": b}, "unseen at fit time:\n- B"),
    ]:
        with pytest.raises(ValueError, match=message):
            getattr(model, method)(make(late))


@pytest.mark.parametrize("shape", [(2, 3), (2, 1), (1, 4)])
def test_S07_another_number_of_columns_is_refused(shape: tuple[int, int]) -> None:
    """An array has no names; the number must be right."""
    model = Classifier().fit(np.zeros((4, 2)), [0, 0, 1, 1])
    with pytest.raises(ValueError, match=rf"{shape[1]} features.*2 features"):
        model.predict(np.zeros(shape))


@pytest.mark.parametrize("cls", LEARNERS)
def test_S08_inputs_are_never_changed(cls: Any) -> None:
    """Fit, predict and the pruning path leave arrays as they are, bit for bit."""
    X, y, w = np.array([[-0.0, np.nan], [1, 2.0], [3, 4.0]]), np.array([3.0, 1, 2]), np.array([1.0, 0, 2])
    before = [a.tobytes() for a in (X, y, w)]
    model = cls(max_bins=2, class_weight={1: 2, 2: 1, 3: 1}) if "Classifier" in cls.__name__ else cls(max_bins=2)
    model.fit(X, y, w).predict(X)
    model.cost_complexity_pruning_path(X, y, w)
    assert [a.tobytes() for a in (X, y, w)] == before


def test_S08_frames_are_never_changed() -> None:
    """Values, types and index of frames, lists, and the parameters that are containers."""
    X = pd.DataFrame(
        {"c": pd.Categorical(["a", None, "b"]), "x": [1, None, -0.0], "o": ["p", None, "q"]}, index=[4, 4, 2]
    )
    kept, lists, signs = X.copy(deep=True), [["a", 1.0], ["b", None]], [0, 1, 0]
    model = Classifier(monotonic_cst=signs, categories={"o": ["p", "q"]}, class_weight={0: 1, 1: 2})
    params = copy.deepcopy(model.get_params())
    model.fit(X, [0, 1, 1]).predict(X)
    pd.testing.assert_frame_equal(X, kept)
    assert model.get_params() == params
    Classifier().fit(lists, [0, 1]).predict(lists)
    assert lists == [["a", 1.0], ["b", None]]


@pytest.mark.parametrize("bins", ["auto", 4, 5, 8, 15, 16, 255])
@pytest.mark.parametrize("mirror", [1, -1])
def test_S10_the_tail_of_a_spike_is_found(bins: Any, mirror: int) -> None:
    """997 zeros, then 1, 2, 3; the label is 1 for 2 and 3. Also mirrored: zeros last."""
    X = mirror * np.r_[np.zeros(997), 1, 2, 3][:, None]
    y = (abs(X[:, 0]) > 1.5).astype(int)
    for cls in TASKS:
        assert cls(max_bins=bins).fit(X, y).predict(X).tolist() == y.tolist()


def test_S11_the_largest_value_is_split_off_whatever_the_number_of_rows() -> None:
    """n = 2 to 258; the last bin is never lost."""
    for n in range(2, 259):
        X, y = np.arange(n)[:, None], np.arange(n) == n - 1
        model = Classifier().fit(X, y)
        assert model.tree_.threshold[0] == n - 1.5
        assert model.get_n_leaves() == 2


@pytest.mark.parametrize("n", [2, 31, 32, 33, 255, 256, 257])
def test_S11_both_ends_are_split_off_as_numbers_and_as_codes(n: int) -> None:
    """The least and the largest value, in regression, with as many codes as values, and reversed."""
    X = np.arange(n, dtype=float)[:, None]
    for end in (0, n - 1):
        for bins in ("auto", max(n, 2)):
            model = Regressor(max_bins=bins).fit(X[::-1], (X[::-1, 0] == end) * 7.0)
            assert model.predict(X).tolist() == ((X[:, 0] == end) * 7.0).tolist()


@pytest.mark.parametrize("cls", LEARNERS)
def test_S13_clone_works_and_an_unfitted_model_says_so(cls: Any) -> None:
    """clone and get_params see parameters only; whatever needs a tree is NotFittedError before fit."""
    model = cls(max_depth=2).fit([[0], [1]], [0, 1])
    again = clone(model)
    assert again.get_params() == model.get_params()
    methods = [*METHODS, "predict_proba", "predict_log_proba"] if hasattr(cls, "predict_proba") else METHODS
    for method in methods:
        with pytest.raises(NotFittedError):
            getattr(again, method)([[0]])
    for call in (again.get_depth, again.get_n_leaves, again.fingerprint, lambda: gputree.export_text(again)):
        with pytest.raises(NotFittedError):
            call()
    for name in ("tree_", "feature_importances_"):
        with pytest.raises(NotFittedError):
            getattr(again, name)
    assert again.fit([[0], [1]], [0, 1]).fingerprint() == model.fingerprint()


NO_TABLES: dict[str, Any] = {
    "complex": np.zeros((2, 1), complex),
    "complex objects": np.array([[1j], [2j]], object),
    "one dimension": np.zeros(2),
    "three dimensions": np.zeros((2, 1, 1)),
    "a number": np.array(3.0),
    "None": None,
    "text": "ab",
    "numbers as text": [["1"], ["2"]],
    "ragged": [[1], [2, 3]],
    "dictionaries": [{"a": 1}, {"a": 2}],
    "bytes": np.array([[b"a"], [b"b"]]),
    "a dictionary": {"a": [1, 2]},
    "records": np.array([(1, 2.0), (2, 3.0)], [("a", int), ("b", float)]),
    "a generator": (row for row in [[1], [2]]),
}


@pytest.mark.parametrize("kind", NO_TABLES)
@pytest.mark.parametrize("cls", TASKS)
def test_S14_what_is_no_table_is_refused(cls: Any, kind: str) -> None:
    """At fit and at predict."""
    with pytest.raises((ValueError, TypeError)):
        cls().fit(NO_TABLES[kind], [0, 1])
    if kind != "numbers as text":
        with pytest.raises((ValueError, TypeError)):
            cls().fit([[0], [1]], [0, 1]).predict(NO_TABLES[kind])


WHOLE = ["max_depth", "min_samples_split", "min_samples_leaf", "max_features", "max_leaf_nodes", "random_state"]
GIVEN: list[Any] = [
    3,
    np.int64(3),
    np.uint8(3),
    3.0,
    1.0,
    1,
    0,
    -1,
    0.5,
    np.float32(0.5),
    1e-9,
    1.5,
    True,
    "3",
    None,
    np.nan,
]


@pytest.mark.parametrize("value", GIVEN, ids=lambda v: f"{type(v).__name__} {v}")
@pytest.mark.parametrize("name", [*WHOLE, "min_weight_fraction_leaf", "min_impurity_decrease", "ccp_alpha"])
def test_U22_parameters_are_what_they_are_in_scikit_learn(name: str, value: Any) -> None:
    """NumPy's integers, floats that are whole, tiny shares, booleans, text: accepted or refused alike."""
    verdicts = [verdict(module, name, value) for module in (gputree, sklearn.tree)]
    assert verdicts[0] == verdicts[1]


def verdict(module: Any, name: str, value: Any) -> tuple[bool, bool]:
    """Whether a parameter is accepted, and whether the error names it."""
    try:
        module.DecisionTreeClassifier(**{name: value}).fit(EIGHT, STEP)
    except (ValueError, TypeError) as error:
        return False, name in str(error)
    return True, False


def test_U22_every_parameter_of_scikit_learn_is_one_of_ours() -> None:
    """With the same default, but for the seed, whose None means 0."""
    for name in gputree.learners.ESTIMATORS:
        ours, theirs = (inspect.signature(getattr(m, name)).parameters for m in (gputree, sklearn.tree))
        assert {key: p.default for key, p in theirs.items()} == {key: ours[key].default for key in theirs}
