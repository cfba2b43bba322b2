"""Labels: whatever they are, they come back; a class without rows keeps its column; what is no label is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import gputree
from tests.bugs.shared import EIGHT, LEARNERS, TASKS, WAYS, Classifier, Regressor

CLASSIFIERS = [Classifier, gputree.ExtraTreeClassifier]
CONTAINERS = {
    "array": np.array,
    "list": list,
    "tuple": tuple,
    "objects": lambda y: np.array(y, object),
    "Series": pd.Series,
    "string Series": lambda y: pd.Series(y, dtype="string"),
    "category": lambda y: pd.Series(y, dtype="category"),
    "polars": pl.Series,
    "pyarrow": pa.array,
    "column": lambda y: np.array(y)[:, None],
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_L01_text_labels_come_back(cls: Any, container: str) -> None:
    """In every container, and score and class weights know them."""
    labels = ["no", "yes", "no", "yes"]
    X, y = EIGHT[:4], CONTAINERS[container](labels)
    for way in WAYS.values():
        model = cls(**way).fit(X, y)
        assert model.predict(X).tolist() == labels
        assert model.score(X, labels) == 1
        assert model.classes_.tolist() == ["no", "yes"]
    weighted = cls(class_weight={"no": 1, "yes": 3}, max_depth=1).fit(np.zeros((4, 1)), y)
    assert weighted.predict_proba([[0.0]]).tolist() == [[0.25, 0.75]]


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("dtype", [float, np.float32, np.int64, np.int8])
def test_L02_labels_that_are_no_ranks_come_back(cls: Any, dtype: Any) -> None:
    """-3, 0, 4: three columns, no fourth; labels back; the shares stand under their own class."""
    X, y = np.arange(6)[:, None], np.array([-3, 0, 4] * 2).astype(dtype)
    model = cls().fit(X, y)
    assert model.classes_.tolist() == [-3, 0, 4]
    assert model.predict(X).tolist() == y.tolist()
    np.testing.assert_array_equal(model.predict_proba(X), y[:, None] == np.array([-3, 0, 4]))
    assert np.isneginf(model.predict_log_proba(X)[0, 1:]).all()


def test_L02_outputs_keep_their_own_labels() -> None:
    """-3, 0, 4 beside 10, 20: two lists of classes, two arrays of shares."""
    X, y = np.arange(6)[:, None], np.c_[[-3, 0, 4] * 2, [10, 20] * 3]
    model = Classifier().fit(X, y)
    assert [classes.tolist() for classes in model.classes_] == [[-3, 0, 4], [10, 20]]
    assert model.predict(X).tolist() == y.tolist()
    assert [p.shape for p in model.predict_proba(X)] == [(6, 3), (6, 2)]


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("label", [7, -7.0, "only", True])
def test_L04_one_class(cls: Any, label: Any) -> None:
    """Four times one label: it is predicted, with a share of 1 in the one column; weights and splits change nothing."""
    for way in WAYS.values():
        model = cls(**way).fit(EIGHT[:4], [label] * 4, [1, 2, 0, 1])
        assert model.predict([[1.0]]).tolist() == [label]
        assert model.predict_proba(EIGHT[:4]).tolist() == [[1.0]] * 4
        assert model.get_n_leaves() == 1
        assert model.feature_importances_.tolist() == [0]


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("gone", [0, 1, 2])
def test_L05_a_class_without_weight_keeps_its_column(cls: Any, gone: int) -> None:
    """First, middle or last, its rows have weight 0: a share of 0 everywhere, the others in their columns."""
    w = np.ones(3)
    w[gone] = 0
    model = cls().fit(EIGHT[:3], [10, 20, 30], w)
    assert model.classes_.tolist() == [10, 20, 30]
    left = [label for label in range(3) if label != gone]
    assert model.predict_proba(EIGHT[left]).tolist() == np.eye(3)[left].tolist()
    assert model.predict(EIGHT[left]).tolist() == [10 * (label + 1) for label in left]


def test_L05_a_class_that_class_weight_silences_keeps_its_column() -> None:
    """A class weight of 0 is absence of its rows, not of the class."""
    model = Classifier(class_weight={0: 1, 1: 0, 2: 1}).fit(EIGHT[:3], [0, 1, 2])
    assert model.predict_proba(EIGHT[[0, 2]]).tolist() == [[1, 0, 0], [0, 0, 1]]


NUMBERS = [
    np.array([250, 5], np.uint8),
    np.array([-128, 127], np.int8),
    np.array([1e12, -5]),
    np.array([2**64 - 1, 0], np.uint64),
    np.array([2**53 + 1, 2**53]),
    np.array([16777217, 16777216]),
    np.array([True, False]),
    np.array([1, 0], np.float16),
    np.array([3, 1], ">i4"),
]


@pytest.mark.parametrize("y", NUMBERS, ids=lambda y: f"{y.dtype.str} {y[0]}")
@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_L07_labels_keep_their_type_and_value(cls: Any, y: NDArray[Any]) -> None:
    """uint8 250 and 5; 1e12 and -5; integers that are one number in float64 or float32; booleans."""
    model = cls().fit(EIGHT[:2], y)
    predicted = model.predict(EIGHT[:2])
    assert predicted.dtype == model.classes_.dtype == y.dtype
    assert predicted.tolist() == y.tolist()


REFUSED: list[list[Any]] = [
    ["a", None, "b"],
    [0, np.nan, 1],
    ["a", 1, 2.5],
    [0.5, 1.5, 2.25],
    [0, np.inf, 1],
    [1, "a", 1],
]


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # scikit-learn's, on its way to refuse NaN
@pytest.mark.parametrize("y", REFUSED, ids=str)
@pytest.mark.parametrize("container", [list, lambda y: np.array(y, object), pd.Series], ids=["list", "array", "Series"])
def test_L08_missing_mixed_and_continuous_labels_are_refused(container: Any, y: list[Any]) -> None:
    """None, NaN, text beside numbers, real numbers, infinity: an error whatever the container, and no model."""
    for cls in CLASSIFIERS:
        model = cls()
        with pytest.raises((ValueError, TypeError)):
            model.fit(EIGHT[:3], container(y))
        assert not hasattr(model, "forest_")


@pytest.mark.parametrize("y", [[0, np.nan, 1], [0, np.inf, 1], ["a", "b", "c"], [0, None, 1]], ids=str)
def test_L08_targets_that_are_no_finite_numbers_are_refused(y: list[Any]) -> None:
    """A regression tree needs numbers."""
    for cls in (Regressor, gputree.ExtraTreeRegressor):
        for labels in (y, np.array(y, object), pd.Series(y)):
            with pytest.raises(ValueError, match=r"NaN|no number"):
                cls().fit(EIGHT[:3], labels)


@pytest.mark.parametrize("cls", LEARNERS)
def test_L10_y_and_weights_count_by_position(cls: Any) -> None:
    """Series whose indices run backwards or repeat."""
    X = pd.DataFrame({"x": [0, 1, 2, 3]}, index=[5, 5, 6, 7])
    for index in ([3, 2, 1, 0], [0, 0, 0, 0], [*"abcd"]):
        y, w = pd.Series([0, 0, 1, 1], index=index), pd.Series([1.0, 0, 2, 1], index=index)
        model = cls().fit(X, y, w)
        assert model.predict(X.iloc[[0, 2, 3]]).tolist() == [0, 1, 1]
        assert model.tree_.weighted_n_node_samples[0] == 4


@pytest.mark.parametrize("cls", LEARNERS)
def test_L11_lengths_that_differ_are_refused(cls: Any) -> None:
    """Three rows and two or four labels; three rows and two or four weights; one label for all."""
    for y in ([0, 1], [0, 1, 0, 1], [[0], [1]], [1]):
        with pytest.raises(ValueError, match=rf"y has {len(y)} rows and X has 3"):
            cls().fit(EIGHT[:3], y)
    for w in ([1, 1], [1, 1, 1, 1]):
        with pytest.raises(ValueError, match=r"sample_weight"):
            cls().fit(EIGHT[:3], [0, 1, 2], w)
    with pytest.raises(TypeError, match="at least 1 dimension"):
        cls().fit(EIGHT[:3], 1)


@pytest.mark.parametrize("cls", TASKS)
def test_y_is_asked_for(cls: Any) -> None:
    """None is no target, and neither is a table of three dimensions."""
    with pytest.raises(ValueError, match="y is None"):
        cls().fit(EIGHT[:3], None)
    with pytest.raises(ValueError, match="dim"):
        cls().fit(EIGHT[:3], np.zeros((3, 1, 1)))
