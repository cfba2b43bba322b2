"""Weights: 0 is absence, k is k copies, the scale is free, and what is no weight is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

import gputree
from tests.bugs.shared import EIGHT, LEARNERS, STEP, TASKS, WAYS, Classifier, Regressor, same_tests

SPLITS = ["binary", "multiway"]
CLASSIFIERS = [Classifier, gputree.ExtraTreeClassifier]


def with_ghosts(n: int = 80) -> tuple[pd.DataFrame, NDArray[np.int64], NDArray[np.float64]]:
    """Rows, labels and weights; a third of the rows weighs nothing, and only these hold odd values and new labels."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=n), "k": rng.integers(0, 5, n).astype(float), "c": rng.choice([*"uv"], n)})
    y, w = rng.integers(0, 2, n), rng.integers(0, 3, n).astype(float)
    X["x"] = np.where(w == 0, rng.choice([np.inf, -1e300, np.nan, 0.01], n), X["x"])
    return X, y, w


@pytest.mark.parametrize(
    "settings", [{}, {"max_bins": 4}, {"min_samples_leaf": 3}, {"min_samples_split": 0.2}], ids=str
)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", LEARNERS)
def test_W01_rows_of_weight_zero_are_gone(cls: Any, way: str, settings: dict[str, Any]) -> None:
    """From bins, thresholds, counts and limits: the arrays of the table without them."""
    X, y, w = with_ghosts()
    keep = w > 0
    model = cls(**settings, **WAYS[way]).fit(X, y, w)
    assert model.fingerprint() == cls(**settings, **WAYS[way]).fit(X[keep], y[keep], w[keep]).fingerprint()
    assert model.tree_.n_node_samples[0] == keep.sum()


@pytest.mark.parametrize("bins", ["auto", 4])
def test_W01_a_ghost_between_the_classes_moves_no_threshold(bins: Any) -> None:
    """A hundred of them in the gap: 0 stays the middle of -5 and 5."""
    ghosts = np.linspace(-4, 4, 100)
    X, y = np.r_[[-5.0] * 40, [5.0] * 40, ghosts][:, None], np.r_[[0] * 40, [1] * 40, np.arange(100) % 2]
    model = Classifier(max_bins=bins).fit(X, y, np.r_[np.ones(80), np.zeros(100)])
    assert model.tree_.threshold.tolist() == [0, -2, -2]


@pytest.mark.parametrize("split", SPLITS)
def test_W01_a_category_of_ghosts_has_no_row(split: str) -> None:
    """It is a category of the column, which no training row took: the rule for those that a node never met."""
    X = pd.DataFrame({"c": [*"aaabg"]})
    model = Regressor(categorical_split=split).fit(X, [1, 1, 1, 6, 50], [1, 1, 1, 1, 0])
    assert model.predict(X).tolist() == [1, 1, 1, 6, 1]


@pytest.mark.parametrize("cls", TASKS)
def test_W01_ghosts_do_not_count_in_the_pruning_path(cls: Any) -> None:
    """The path of the table without them."""
    X, y, w = with_ghosts()
    keep = w > 0
    own, other = (
        cls().cost_complexity_pruning_path(X, y, w),
        cls().cost_complexity_pruning_path(X[keep], y[keep], w[keep]),
    )
    np.testing.assert_array_equal(own.ccp_alphas, other.ccp_alphas)
    np.testing.assert_array_equal(own.impurities, other.impurities)


@pytest.mark.parametrize("bad", [-1, -1e-300, -np.inf])
@pytest.mark.parametrize("cls", LEARNERS)
def test_W02_negative_weights_are_refused(cls: Any, bad: float) -> None:
    """1, -1, 1, 1: the message gives the value where it is a number; -0.0 is 0."""
    with pytest.raises(ValueError, match=r"sample_weight|infinity") as error:
        cls().fit(EIGHT[:4], [0, 1, 0, 1], [1, bad, 1, 1])
    assert str(float(bad)) in str(error.value) or np.isinf(bad)
    assert cls().fit(EIGHT[:4], [0, 1, 0, 1], [1, -0.0, 1, 1]).tree_.n_node_samples[0] == 3


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_W02_negative_class_weights_are_refused(cls: Any) -> None:
    """They would give negative counts just as well."""
    with pytest.raises(ValueError, match="-2"):
        cls(class_weight={0: 1, 1: -2}).fit(EIGHT[:4], [0, 1, 0, 1])


NO_WEIGHTS: list[Any] = [
    [0, 0],
    [np.nan, 1],
    [np.inf, 1],
    [1, 1, 1],
    [1],
    [[1, 1], [1, 1]],
    ["a", "b"],
    [None, 1],
    [1j, 1],
    [],
]


@pytest.mark.parametrize("w", NO_WEIGHTS, ids=str)
@pytest.mark.parametrize("cls", LEARNERS)
def test_W04_weights_that_make_no_sense_are_refused(cls: Any, w: Any) -> None:
    """All 0, NaN, infinite, too many, too few, two columns, text, None, complex."""
    with pytest.raises((ValueError, TypeError)):
        cls().fit([[0], [1]], [0, 1], w)


@pytest.mark.parametrize(
    "w",
    [
        [1, 3],
        (1, 3),
        np.array([1, 3], np.uint8),
        np.array([1, 3], object),
        np.array([1, 0, 3])[::2],
        np.array([1, 3], ">f4"),
        pd.Series([1, 3], index=[9, 9]),
        pd.Series([1, 3], dtype="Int64"),
        pl.Series([1, 3]),
    ],
    ids=["list", "tuple", "uint8", "objects", "strided", "big-endian", "Series", "Int64", "polars"],
)
def test_W04_weights_in_every_container(w: Any) -> None:
    """1 and 3: a share of a quarter."""
    for cls in TASKS:
        assert cls().fit(np.zeros((2, 1)), [1, 0], w).tree_.weighted_n_node_samples[0] == 4
    assert Regressor().fit(np.zeros((2, 1)), [1, 0], w).predict([[0]]).tolist() == [0.25]


@pytest.mark.parametrize("cls", TASKS)
def test_W04_one_number_weighs_all_rows(cls: Any) -> None:
    """A scalar is that weight for each."""
    assert cls().fit([[0], [1]], [0, 1], 2.5).tree_.weighted_n_node_samples.tolist() == [5, 2.5, 2.5]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "criterion", ["gini", "entropy", "train_error", "gain_ratio", "chi2", "squared_error", "poisson"]
)
def test_W05_weights_over_fifteen_decades_give_finite_impurities(criterion: str, way: str) -> None:
    """Never NaN, never negative; importances too, which sum to 1."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(100, 3)), 10.0 ** rng.uniform(-15, 0, 100)
    y = rng.integers(1, 4, 100)
    cls = Regressor if criterion in ("squared_error", "poisson") else Classifier
    model = cls(criterion=criterion, **WAYS[way]).fit(X, y, w)
    assert np.isfinite(model.tree_.impurity).all()
    assert model.tree_.impurity.min() >= 0
    assert model.feature_importances_.min() >= 0
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("decades", [30, 300])
def test_W05_the_lightest_row_still_counts_as_a_row(decades: int) -> None:
    """Weights from 10^-decades to 1: every row has a leaf of its own, and the heavy ones make the mean of the root."""
    w = np.logspace(-decades, 0, 8)
    for cls in TASKS:
        assert cls().fit(EIGHT, np.arange(8), w).predict(EIGHT).tolist() == list(range(8))
    assert Regressor().fit(np.zeros((8, 1)), np.arange(8), w).predict([[0]])[0] == pytest.approx(7, abs=1e-3)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", LEARNERS)
def test_W07_a_weight_is_a_number_of_copies(cls: Any, way: str) -> None:
    """Weights 1 to 5 against repeated rows: numbers, categories and missing cells, drawn tests included."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.integers(0, 9, 80).astype(float), "c": rng.choice([*"uvwxy"], 80)})
    X = X.mask(rng.random(X.shape) < 0.1)
    y, w = rng.integers(0, 2, 80), rng.integers(1, 6, 80)
    for unit in (1, 1 / 3):
        a = cls(**WAYS[way]).fit(X, y, w * unit)
        b = cls(**WAYS[way]).fit(X.loc[X.index.repeat(w)], np.repeat(y, w))
        same_tests(a, b)
        for name in ("value", "impurity", "score"):
            np.testing.assert_array_equal(getattr(a.forest_, name), getattr(b.forest_, name))
        np.testing.assert_allclose(a.tree_.weighted_n_node_samples, b.tree_.n_node_samples * unit, rtol=1e-15)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_W08_class_weights_equal_explicit_weights(cls: Any, way: str) -> None:
    """Shares of the leaves carry them too, and they multiply the weights of the rows."""
    rng = np.random.default_rng(0)
    X, y, w = rng.integers(0, 4, (100, 2)), rng.integers(0, 2, 100), rng.integers(0, 3, 100)
    five = np.where(y == 1, 5.0, 1.0)
    model = cls(class_weight={0: 1, 1: 5}, **WAYS[way])
    assert model.fit(X, y).fingerprint() == cls(**WAYS[way]).fit(X, y, five).fingerprint()
    assert model.fit(X, y, w).fingerprint() == cls(**WAYS[way]).fit(X, y, five * w).fingerprint()


def test_W08_leaves_carry_the_class_weight() -> None:
    """One row of each class in one leaf, the second five times as heavy: shares 1/6 and 5/6."""
    model = Classifier(class_weight={"n": 1, "y": 5}).fit([[0], [0]], ["n", "y"])
    assert model.predict_proba([[0]]).tolist() == [[1 / 6, 5 / 6]]
    assert model.tree_.weighted_n_node_samples.tolist() == [6]


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_W08_balanced_gives_every_class_the_same_weight(cls: Any) -> None:
    """scikit-learn's numbers, n / (classes * count); labels of any type."""
    y = np.array(["a"] * 6 + ["b"] * 3 + ["c"])
    weights = dict(zip([*"abc"], compute_class_weight("balanced", classes=np.array([*"abc"]), y=y), strict=True))
    X = np.random.default_rng(0).normal(size=(10, 2))
    assert cls(class_weight="balanced").fit(X, y).fingerprint() == cls(class_weight=weights).fit(X, y).fingerprint()
    root = cls(class_weight="balanced").fit(np.zeros((10, 1)), y).predict_proba([[0.0]])
    np.testing.assert_allclose(root, [[1 / 3, 1 / 3, 1 / 3]], rtol=1e-12)


def test_W08_every_output_has_class_weights_of_its_own() -> None:
    """A list of them, which multiply; a list of another length is refused."""
    X, y = EIGHT, np.c_[STEP, [0, 1] * 4]
    both = Classifier(class_weight=[{0: 1, 1: 2}, {0: 3, 1: 1}]).fit(X, y)
    by_hand = Classifier().fit(X, y, np.where(y[:, 0] == 1, 2, 1) * np.where(y[:, 1] == 0, 3, 1))
    assert both.fingerprint() == by_hand.fingerprint()
    with pytest.raises(ValueError, match="class_weight"):
        Classifier(class_weight=[{0: 1, 1: 2}]).fit(X, y)


@pytest.mark.parametrize("weights", [{0: 1, 7: 5}, {"0": 1, "1": 2}, "heavy", [1, 2], 3.0], ids=str)
def test_W08_class_weights_that_name_no_class_are_refused(weights: Any) -> None:
    """A class that is not there, another type of label, a word that is no rule."""
    with pytest.raises((ValueError, TypeError), match=r"class_weight|classes"):
        Classifier(class_weight=weights).fit(EIGHT, STEP)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({0: -1, 1: 1}, r"class_weight\[0\]=-1 must be a number of at least 0"),
        ({0: 1, 1: np.nan}, r"class_weight\[1\]=nan must be"),
        ({0: "a", 1: 1}, r"class_weight\[0\]='a' must be"),
        ({0: 0, 1: 0}, "class_weight={0: 0, 1: 0} makes the weights of all rows 0"),
        ([1, 2], r"class_weight=\[1, 2\] must be a dict"),
    ],
)
@pytest.mark.parametrize("cls", [Classifier, gputree.RandomForestClassifier])
def test_W08_class_weights_that_are_none_are_told_as_such(cls: Any, weights: Any, message: str) -> None:
    """And not as weights of the rows, which nobody gave."""
    with pytest.raises(ValueError, match=message):
        cls(class_weight=weights).fit(EIGHT, STEP)
    with pytest.raises(ValueError, match="must be a list of 2 dicts, one for each output"):
        cls(class_weight=weights).fit(EIGHT, np.c_[STEP, STEP])


@pytest.mark.parametrize("counts", [(3, 7), (3, 7, 11), (1, 2, 3, 5, 7), (13, 17, 19, 23), (97, 101)])
@pytest.mark.parametrize("order", [1, -1])
def test_U25_balanced_classes_in_one_leaf_are_tied_and_the_first_is_told(counts: tuple[int, ...], order: int) -> None:
    """Every class weighs the same by definition, whatever its weight rounds to; the first of them is predicted."""
    y = np.repeat(np.arange(len(counts)), counts)[::order]
    model = Classifier(class_weight="balanced").fit(np.zeros((y.size, 1)), y)
    assert model.predict([[0.0]]).tolist() == [0]
