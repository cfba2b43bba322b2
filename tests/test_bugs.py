"""Small tables on which tree learners have gone wrong, each with the right answer by hand."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import gputree
from gputree.core.forest import Test

Classifier = gputree.DecisionTreeClassifier
Regressor = gputree.DecisionTreeRegressor
STEP = np.array([0, 0, 0, 0, 1, 1, 1, 1])


def column(*values: Any, dtype: Any = np.float64) -> NDArray[Any]:
    return np.array(values, dtype)[:, None]


def separates(X: Any, y: Any) -> bool:
    """Both learners give every training row back."""
    return bool((Classifier().fit(X, y).predict(X) == y).all() and (Regressor().fit(X, y).predict(X) == y).all())


# -- numeric precision


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_N01_the_midpoint_of_huge_values_does_not_overflow(dtype: Any) -> None:
    """2e38 and 3e38: the threshold lies between, though their sum exceeds float32; the same near float64's end."""
    model = Classifier().fit(column(2e38, 3e38, dtype=dtype), [0, 1])
    assert model.tree_.threshold[0] == pytest.approx(2.5e38)
    assert model.predict(column(2.4e38, 2.6e38, dtype=dtype)).tolist() == [0, 1]
    model = Classifier().fit(column(1.2e308, 1.7e308), [0, 1])
    assert 1.2e308 < model.tree_.threshold[0] < 1.7e308


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_N02_neighbouring_floats_are_told_apart(dtype: Any) -> None:
    """1000 and the next float: no midpoint lies below the upper one, and no child is empty."""
    X = column(1000, np.nextafter(dtype(1000), dtype(np.inf)), dtype=dtype)
    model = Classifier().fit(X, [0, 1])
    assert model.get_n_leaves() == 2
    assert model.predict(X).tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_N04_rows_close_together_arrive_where_they_were_counted(dtype: Any) -> None:
    """200 values 1e-9 apart: training predictions add up to y."""
    X = (1 + np.arange(200) * 1e-9).astype(dtype)[:, None]
    y = np.random.default_rng(0).integers(0, 50, 200)
    assert Regressor().fit(X, y).predict(X).sum() == pytest.approx(y.sum(), rel=1e-12)
    if dtype is np.float64:
        np.testing.assert_array_equal(Regressor().fit(X, y).predict(X), y)


def test_N05_dates_of_eight_digits_are_told_apart() -> None:
    """20180130 six times, 20180131 twelve times."""
    X = np.repeat([20180130, 20180131], [6, 12])[:, None]
    assert separates(X, np.repeat([0, 1], [6, 12]))
    assert Classifier().fit(X, X[:, 0]).tree_.threshold[0] == 20180130.5


def test_N07_integers_beyond_float32_are_told_apart() -> None:
    """2^24 and 2^24 + 1 are one number in float32."""
    assert separates(np.array([[2**24], [2**24 + 1]]), np.array([0, 1]))


def test_N08_integers_beyond_float64_are_one_value_or_told_apart() -> None:
    """2^53 and 2^53 + 1 as int64 are one number in float64: half of either, and nothing odd at predict."""
    X = np.array([[2**53], [2**53 + 1]])
    model = Classifier().fit(X, [0, 1])
    shares = model.predict_proba(X).tolist()
    assert shares in ([[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [0.0, 1.0]])


def test_N10_values_beyond_float32_stay_finite() -> None:
    """1e39 is infinite in float32."""
    assert separates(column(1e39, 2e39, np.inf, -1e39), np.array([0, 1, 2, 3]))


def test_N11_denormals_route_alike_at_fit_and_predict() -> None:
    """1e-40 times 1 to 4, and 1; as float32 too."""
    for dtype in (np.float32, np.float64):
        assert separates(column(1e-40, 2e-40, 3e-40, 4e-40, 1, dtype=dtype), np.array([0, 1, 0, 1, 0]))


@pytest.mark.parametrize("offset", [0, 1e3, 1e7, 1e8, 1e10, 1e12])
def test_N13_a_big_offset_of_y_does_not_hide_its_step(offset: float) -> None:
    """A step of 1 on top of the offset: split at 3.5, root variance 0.25, exact leaves."""
    model = Regressor().fit(np.arange(8)[:, None], offset + STEP)
    assert model.tree_.threshold[0] == 3.5
    assert model.tree_.impurity.tolist() == [0.25, 0, 0]
    assert model.tree_.value.ravel().tolist() == [offset + 0.5, offset, offset + 1]


def test_N14_a_constant_target_is_not_split() -> None:
    """1e9 + 0.1 a thousand times, with weights whose sums round: one leaf of that very value."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(1000, 3)), rng.random(1000) + 0.1
    for weight in (None, w):
        model = Regressor().fit(X, np.full(1000, 1e9 + 0.1), weight)
        assert model.get_n_leaves() == 1
        assert set(model.predict(X)) == {1e9 + 0.1}
        assert model.tree_.impurity[0] == 0


@pytest.mark.parametrize("scale", [1e-4, 1e-8, 1e-10, 1e-20, 1e-150, 1e-300])
def test_N16_N17_small_targets_are_split(scale: float) -> None:
    """No floor of the impurity: a step of any size is learnt."""
    X = np.arange(8)[:, None]
    model = Regressor().fit(X, STEP * scale)
    assert model.tree_.threshold[0] == 3.5
    np.testing.assert_array_equal(model.predict(X), STEP * scale)


@pytest.mark.parametrize("scale", [1e100, 1e160, 1e300])
def test_N17_huge_targets_are_split(scale: float) -> None:
    """Squares of y may overflow; the tree and its importances may not suffer."""
    X = np.arange(8)[:, None]
    model = Regressor().fit(X, STEP * scale)
    assert model.tree_.threshold[0] == 3.5
    np.testing.assert_array_equal(model.predict(X), STEP * scale)
    assert model.feature_importances_.tolist() == [1]


def test_N19_large_targets_come_back_exactly() -> None:
    """16777217 has more digits than float32 holds."""
    y = np.array([16777217, 0, 2**53 - 1, 123456789012.0625])
    np.testing.assert_array_equal(Regressor().fit(np.arange(4)[:, None], y).predict(np.arange(4)[:, None]), y)


def test_N20_sums_of_unlike_weights_do_not_lose_rows() -> None:
    """One row of weight 2^24 and value 0 beside 5,000 of weight 1 and value 1e6: the mean to 12 digits."""
    y, w = np.r_[0, np.full(5000, 1e6)], np.r_[2.0**24, np.ones(5000)]
    model = Regressor().fit(np.zeros((5001, 1)), y, w)
    assert model.predict([[0.0]])[0] == pytest.approx(297.93443249687647, rel=1e-12)


def test_N22_the_threshold_is_the_middle_of_a_gap() -> None:
    """50 rows at 0 and 50 at 10; also where other nodes fill the gap with codes, exact or binned."""
    X = np.repeat([0.0, 10.0], 50)[:, None]
    assert Classifier().fit(X, X[:, 0]).predict([[4.9], [5.1]]).tolist() == [0, 10]
    filled = np.r_[np.c_[X, np.zeros(100)], np.c_[np.linspace(0, 10, 400), np.ones(400)]]
    y = np.r_[X[:, 0], np.full(400, 5)].astype(int)
    assert Classifier().fit(filled, y).tree_.threshold[:2].tolist() == [0.5, 5]
    binned = Classifier(max_bins=32).fit(filled, y).tree_.threshold
    assert binned[0] == 0.5
    assert 4 < binned[1] < 6


@pytest.mark.parametrize(
    ("values", "dtype", "middle"),
    [
        ((200, 250), np.uint8, 225),
        ((-128, 127), np.int8, -0.5),
        ((60000, 65000), np.float16, 62496),
        ((-(2**31), 2**31 - 1), np.int32, -0.5),
        ((0, 2**64 - 2048), np.uint64, 2.0**63 - 1024),
    ],
)
def test_N23_midpoints_of_small_types_do_not_wrap(values: tuple[int, int], dtype: Any, middle: float) -> None:
    """The sum of the two values does not fit their type."""
    model = Classifier().fit(column(*values, dtype=dtype), [0, 1])
    assert model.tree_.threshold[0] == middle


def test_N25_dates_are_right_or_refused() -> None:
    """Steps of one second, as datetime64 array or frame: never merged in silence."""
    when = np.datetime64("2020-01-01T00:00:00") + np.arange(8)
    for X in (when[:, None], pd.DataFrame({"when": when})):
        try:
            model = Classifier().fit(X, STEP)
        except (TypeError, ValueError):
            continue
        assert model.predict(X).tolist() == STEP.tolist()


# -- determinism, ties, structure


def test_T01_three_fits_are_equal_to_the_bit() -> None:
    """The same seed, the same data: the same arrays."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 6)), rng.integers(0, 3, 500)
    for cls in (Classifier, Regressor, gputree.ExtraTreeClassifier, gputree.ExtraTreeRegressor):
        assert len({cls(random_state=4).fit(X, y).fingerprint() for _ in range(3)}) == 1


def test_T04_row_order_does_not_change_the_model() -> None:
    """One column, rows permuted."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 30, (200, 1)), rng.normal(size=200)
    order = rng.permutation(200)
    assert Regressor().fit(X[order], y[order]).fingerprint() == Regressor().fit(X, y).fingerprint()


@pytest.mark.parametrize("factor", [1.1, 1e-3, 1e6, 1e-30, 1e30])
def test_T05_a_common_factor_of_the_weights_does_not_change_the_tree(factor: float) -> None:
    """Real weights, too: the same tests."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 2, 300)
    for w in (rng.integers(1, 9, 300).astype(float), rng.random(300) + 0.01):
        for cls in (Classifier, Regressor):
            a, b = cls().fit(X, y, w).tree_, cls().fit(X, y, w * factor).tree_
            np.testing.assert_array_equal(a.feature, b.feature)
            np.testing.assert_array_equal(a.threshold, b.threshold)


def test_T07_an_increasing_map_of_x_keeps_training_predictions() -> None:
    """X and exp(X)."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    np.testing.assert_array_equal(Regressor().fit(X, y).predict(X), Regressor().fit(np.exp(X), y).predict(np.exp(X)))


def test_T08_max_depth_holds_beside_max_leaf_nodes() -> None:
    """Three rows, depth 1, 99 leaves allowed: three nodes."""
    assert Classifier(max_depth=1, max_leaf_nodes=99).fit([[0], [1], [2]], [0, 1, 2]).tree_.node_count == 3


def test_T10_the_least_share_of_weight_holds_without_weights() -> None:
    """A tenth of 170 rows: every leaf has at least 17."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(170, 4)), rng.integers(0, 2, 170)
    tree = Classifier(min_weight_fraction_leaf=0.1).fit(X, y).tree_
    assert tree.node_count > 3
    assert tree.n_node_samples[tree.children_left == -1].min() >= 17


@pytest.mark.parametrize("weight", [None, 1.0, 0.1, 0.7, 1 / 3])
@pytest.mark.parametrize("cls", [Classifier, Regressor])
def test_T11_an_exact_half_of_the_weight_is_allowed(cls: Any, weight: float | None) -> None:
    """Six rows of equal weight, half of it at least in a leaf: split in the middle."""
    w = None if weight is None else np.full(6, weight)
    model = cls(min_weight_fraction_leaf=0.5).fit(np.arange(6)[:, None], [0, 0, 0, 1, 1, 1], w)
    assert model.tree_.threshold[0] == 2.5


@pytest.mark.parametrize("offset", [0, 1e8])
def test_T13_a_decrease_that_is_just_met_splits(offset: float) -> None:
    """The decrease is 0.25: a limit of 0.25 splits, one of 0.2500001 does not."""
    X, y = np.arange(8)[:, None], offset + STEP
    assert Regressor(min_impurity_decrease=0.25).fit(X, y).get_n_leaves() == 2
    assert Regressor(min_impurity_decrease=0.2500001).fit(X, y).get_n_leaves() == 1


def test_T14_a_column_constant_in_one_node_is_tried_in_its_sibling() -> None:
    """Column 1 varies only where column 0 is 1."""
    X = np.array([[0, 0]] * 4 + [[1, 0]] * 2 + [[1, 1]] * 2)
    assert separates(X, np.array([0, 0, 0, 0, 1, 1, 2, 2]))


# -- overflow


def test_O02_more_leaves_than_16_bits_can_number() -> None:
    """81,920 cells of a grid, a value each."""
    grid = np.indices((64, 64, 20)).reshape(3, -1).T
    y = np.random.default_rng(0).permutation(len(grid))
    model = Regressor().fit(grid, y)
    assert model.get_n_leaves() == 81_920
    np.testing.assert_array_equal(model.predict(grid), y)


def test_O04_many_classes() -> None:
    """300 classes, one row each and more."""
    y = np.repeat(np.arange(300), 3)
    X = np.random.default_rng(0).permutation(300)[y][:, None]
    model = Classifier().fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    assert model.predict_proba(X).shape == (900, 300)


def test_O05_weights_whose_sum_exceeds_32_bits() -> None:
    """Integer weights 2^31, four times: the mean of 0 to 3."""
    model = Regressor().fit(np.zeros((4, 1)), [0, 1, 2, 3], np.full(4, 2**31))
    assert model.predict([[0.0]])[0] == 1.5


# -- missing values


@pytest.mark.parametrize("depth", [0, 1])
def test_M01_missing_against_one_known_value_is_a_split(depth: int) -> None:
    """Zeros and NaN, at the root and below a first split."""
    x, y = [0, 0, 0, np.nan, np.nan], [0, 0, 0, 1, 1]
    X = np.array([[v, 0] for v in x] + [[0, 1]] * (3 * depth))
    labels = y + [2] * (3 * depth)
    for cls in (Classifier, Regressor):
        assert cls().fit(X, labels).predict(X).tolist() == labels


def test_M02_missing_rows_are_counted_once() -> None:
    """Two NaN and four numbers: the NaN rows share a leaf, every number has its own."""
    X, y = column(np.nan, np.nan, 3, 4, 5, 6), np.arange(6.0)
    assert Regressor().fit(X, y).predict(X).tolist() == [0.5, 0.5, 2, 3, 4, 5]


def test_M04_missing_values_have_a_side_of_their_own_at_every_depth() -> None:
    """Four NaN of class 1, then 0 to 5 of classes 0 0 0 0 1 1, depth 2."""
    X = column(*[np.nan] * 4, *range(6))
    model = Classifier(max_depth=2).fit(X, [1] * 4 + [0, 0, 0, 0, 1, 1])
    assert model.predict(column(np.nan, 1.2, 4.8)).tolist() == [1, 0, 1]


def test_M05_poisson_with_missing_values_has_no_negative_impurity() -> None:
    """Counts on columns with many NaN."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), rng.poisson(2, 400)
    X[rng.random(X.shape) < 0.4] = np.nan
    assert Regressor(criterion="poisson").fit(X, y).tree_.impurity.min() >= 0


def test_M07_the_decision_path_ends_in_the_leaf_of_apply() -> None:
    """Rows with missing values included."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    X[rng.random(X.shape) < 0.3] = np.nan
    model = Classifier().fit(X, y)
    path = model.decision_path(X)
    last = [path.indices[path.indptr[i] : path.indptr[i + 1]].max() for i in range(200)]
    np.testing.assert_array_equal(last, model.apply(X))


def test_M08_a_column_of_missing_values_only_is_never_used() -> None:
    """Importance 0, and a table of nothing else gives one leaf."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.integers(0, 2, 100)
    X[:, 1] = np.nan
    assert Classifier().fit(X, y).feature_importances_[1] == 0
    assert Classifier().fit(X[:, 1:2], y).get_n_leaves() == 1
    assert gputree.ExtraTreeClassifier().fit(X[:, 1:2], y).get_n_leaves() == 1


@pytest.mark.parametrize("cls", [Classifier, Regressor])
def test_M10_missing_rows_of_weight_zero_count_for_nothing(cls: Any) -> None:
    """NaN rows of weight 0 leave the tree of the others."""
    X, y = column(np.nan, 0, 1, np.nan, 2), np.array([5, 0, 1, 5, 1])
    w = np.array([0, 1, 2, 0, 1.0])
    model = cls().fit(X, y, w)
    assert model.tree_.n_node_samples[0] == 3
    assert model.tree_.weighted_n_node_samples[0] == 4
    expected = cls().fit(X[w > 0], y[w > 0], w[w > 0])
    np.testing.assert_array_equal(model.tree_.threshold, expected.tree_.threshold)
    np.testing.assert_array_equal(model.tree_.missing_go_to_left, expected.tree_.missing_go_to_left)


# -- labels


CONTAINERS = [np.array, list, pd.Series, lambda y: np.array(y, object), lambda y: pd.Series(y, dtype="category")]


@pytest.mark.parametrize("container", CONTAINERS, ids=["array", "list", "Series", "object", "category"])
def test_L01_text_labels_come_back(container: Any) -> None:
    """In every container, and score works."""
    labels = ["no", "yes", "no", "yes"]
    X, y = np.arange(4)[:, None], container(labels)
    model = Classifier().fit(X, y)
    assert model.predict(X).tolist() == labels
    assert model.score(X, labels) == 1
    assert model.classes_.tolist() == ["no", "yes"]


def test_L02_labels_that_are_no_ranks_come_back() -> None:
    """-3, 0, 4.0: three columns, labels back."""
    X, y = np.arange(6)[:, None], np.array([-3, 0, 4.0] * 2)
    model = Classifier().fit(X, y)
    assert model.classes_.tolist() == [-3, 0, 4]
    assert model.predict_proba(X).shape == (6, 3)
    assert model.predict(X).tolist() == y.tolist()


def test_L04_one_class() -> None:
    """Four sevens: predict 7, shares of one column of ones."""
    model = Classifier().fit(np.arange(4)[:, None], [7, 7, 7, 7])
    assert model.predict([[1.0]]).tolist() == [7]
    assert model.predict_proba(np.arange(4)[:, None]).tolist() == [[1.0]] * 4


def test_L05_a_class_without_weight_keeps_its_column() -> None:
    """Its rows have weight 0: a share of 0 everywhere."""
    model = Classifier().fit([[0], [1], [2]], [0, 1, 2], [1, 0, 1])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict_proba([[0], [2]]).tolist() == [[1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("y", [np.array([250, 5], np.uint8), np.array([1e12, -5]), np.array([True, False])])
def test_L07_labels_keep_their_type_and_value(y: NDArray[Any]) -> None:
    """uint8 250 and 5; 1e12 and -5; booleans."""
    predicted = Classifier().fit([[0], [1]], y).predict([[0], [1]])
    assert predicted.dtype == y.dtype
    assert predicted.tolist() == y.tolist()


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # scikit-learn's, on its way to refuse NaN
@pytest.mark.parametrize("y", [["a", None, "b"], [0, np.nan, 1], ["a", 1, 2.5], [0.5, 1.5, 2.25]])
def test_L08_missing_mixed_and_continuous_labels_are_refused(y: list[Any]) -> None:
    """None, NaN, text beside numbers, real numbers: a ValueError or TypeError, whatever the container."""
    for labels in (y, np.array(y, object), pd.Series(y)):
        with pytest.raises((ValueError, TypeError)):
            Classifier().fit([[0], [1], [2]], labels)


def test_L10_y_counts_by_position() -> None:
    """A Series whose index runs backwards."""
    y = pd.Series([0, 0, 1, 1], index=[3, 2, 1, 0])
    X = pd.DataFrame({"x": [0, 1, 2, 3]})
    assert Classifier().fit(X, y).predict(X).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("cls", [Classifier, Regressor])
def test_L11_lengths_that_differ_are_refused(cls: Any) -> None:
    """Three rows and two labels; three rows and two weights."""
    with pytest.raises(ValueError, match=r"3.*2|2.*3"):
        cls().fit([[0], [1], [2]], [0, 1])
    with pytest.raises(ValueError, match=r"3|2"):
        cls().fit([[0], [1], [2]], [0, 1, 2], [1, 1])


# -- weights


@pytest.mark.parametrize("bins", ["auto", 4])
def test_W01_rows_of_weight_zero_shape_neither_bins_nor_thresholds(bins: Any) -> None:
    """A ghost between the classes would move the threshold."""
    rng = np.random.default_rng(0)
    X, ghosts = np.r_[rng.normal(size=40) - 5, rng.normal(size=40) + 5], rng.normal(size=100)
    y = np.repeat([0, 1], 40)
    expected = Classifier(max_bins=bins).fit(X[:, None], y).fingerprint()
    w = np.r_[np.ones(80), np.zeros(100)]
    model = Classifier(max_bins=bins).fit(np.r_[X, ghosts][:, None], np.r_[y, rng.integers(0, 2, 100)], w)
    assert model.fingerprint() == expected


@pytest.mark.parametrize("cls", [Classifier, Regressor])
def test_W02_negative_weights_are_refused(cls: Any) -> None:
    """1, -1, 1, 1: the message gives the value."""
    with pytest.raises(ValueError, match="-1"):
        cls().fit(np.arange(4)[:, None], [0, 1, 0, 1], [1, -1, 1, 1])


@pytest.mark.parametrize("w", [[0, 0], [np.nan, 1], [np.inf, 1], [1, 1, 1], [[1, 1], [1, 1]], ["a", "b"]])
@pytest.mark.parametrize("cls", [Classifier, Regressor])
def test_W04_weights_that_make_no_sense_are_refused(cls: Any, w: Any) -> None:
    """All 0, NaN, infinite, too many, two columns, text."""
    with pytest.raises(ValueError):  # noqa: PT011 - the text is scikit-learn's for some of them
        cls().fit([[0], [1]], [0, 1], w)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
def test_W05_weights_over_fifteen_decades_give_finite_impurities(criterion: str) -> None:
    """Never NaN, never negative; importances too."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(300, 3)), 10.0 ** rng.uniform(-15, 0, 300)
    y = rng.integers(1, 4, 300)
    cls = Classifier if criterion in ("gini", "entropy") else Regressor
    model = cls(criterion=criterion).fit(X, y, w)
    assert np.isfinite(model.tree_.impurity).all()
    assert model.tree_.impurity.min() >= 0
    assert model.feature_importances_.min() >= 0
    assert model.feature_importances_.sum() == pytest.approx(1)


@pytest.mark.parametrize("cls", [Classifier, Regressor])
def test_W07_a_weight_is_a_number_of_copies(cls: Any) -> None:
    """Weights 1 to 5 against repeated rows."""
    rng = np.random.default_rng(0)
    X, y, w = rng.integers(0, 9, (100, 3)), rng.integers(0, 4, 100), rng.integers(1, 6, 100)
    a, b = cls().fit(X, y, w).tree_, cls().fit(np.repeat(X, w, axis=0), np.repeat(y, w)).tree_
    for name in ("feature", "threshold", "value", "impurity", "weighted_n_node_samples"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_W08_class_weights_equal_explicit_weights() -> None:
    """Shares of the leaves carry them too; a class that is not there is refused."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (100, 2)), rng.integers(0, 2, 100)
    weighted = Classifier(class_weight={0: 1, 1: 5}).fit(X, y)
    assert weighted.fingerprint() == Classifier().fit(X, y, np.where(y == 1, 5.0, 1.0)).fingerprint()
    with pytest.raises(ValueError, match="class_weight"):
        Classifier(class_weight={0: 1, 7: 5}).fit(X, y)


# -- shapes and inputs


def test_S01_S02_fewer_rows_than_bins() -> None:
    """Six rows are told apart, whatever the number of bins."""
    X = np.arange(6)[:, None] * 1.5
    for bins in ("auto", 6, 16, 255, 65_535):
        assert Classifier(max_bins=bins).fit(X, np.arange(6)).predict(X).tolist() == list(range(6))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_S04_empty_tables_are_refused(shape: tuple[int, int]) -> None:
    """No rows, or no columns: a ValueError at fit; no rows at predict are refused or give none."""
    with pytest.raises(ValueError, match=r"0 sample|0 feature|minimum|empty"):
        Classifier().fit(np.empty(shape), np.zeros(shape[0], int))


def test_S05_every_container_gives_one_answer() -> None:
    """C, Fortran, strided, read-only, list, big-endian, memory map, frame."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    frozen = X.copy()
    frozen.setflags(write=False)
    same = [X, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], frozen, X.tolist(), X.astype(">f8")]
    assert len({Classifier().fit(each, y).fingerprint() for each in same}) == 1
    assert len({Classifier().fit(X, each).fingerprint() for each in (y, y.tolist(), y.astype(">i8"), y[:, None])}) == 1
    model = Classifier().fit(X, y)
    assert len({model.predict_proba(each).tobytes() for each in same}) == 1


def test_S05_a_memory_map_gives_the_same_answer(tmp_path: Any) -> None:
    """Read from disk, read-only."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert Classifier().fit(mapped, y).fingerprint() == Classifier().fit(X, y).fingerprint()


def test_S07_columns_in_another_order_are_refused() -> None:
    """By name; a wrong number of columns too."""
    X = pd.DataFrame({"a": [0, 1, 2, 3], "b": [3, 1, 2, 0]})
    model = Classifier().fit(X, [0, 0, 1, 1])
    with pytest.raises(ValueError, match="order"):
        model.predict(X[["b", "a"]])
    with pytest.raises(ValueError, match="missing"):
        model.predict(X[["a"]])
    with pytest.raises(ValueError, match=r"3 features.*2 features"):
        Classifier().fit(X.to_numpy(), [0, 0, 1, 1]).predict(np.zeros((2, 3)))


def test_S08_inputs_are_never_changed() -> None:
    """Fit and predict leave X, y and weights as they are."""
    X, y, w = np.array([[-0.0, np.nan], [1, 2.0], [3, 4.0]]), np.array([3.0, 1, 2]), np.array([1.0, 0, 2])
    before = [a.tobytes() for a in (X, y, w)]
    Regressor().fit(X, y, w).predict(X)
    assert [a.tobytes() for a in (X, y, w)] == before


@pytest.mark.parametrize("bins", ["auto", 4, 8, 16, 255])
@pytest.mark.parametrize("mirror", [1, -1])
def test_S10_the_tail_of_a_spike_is_found(bins: Any, mirror: int) -> None:
    """997 zeros, then 1, 2, 3; the class is 1 for 2 and 3. Also mirrored: zeros last."""
    X = mirror * np.r_[np.zeros(997), 1, 2, 3][:, None]
    y = (abs(X[:, 0]) > 1.5).astype(int)
    assert Classifier(max_bins=bins).fit(X, y).score(X, y) == 1


def test_S11_the_largest_value_is_split_off_whatever_the_number_of_rows() -> None:
    """n = 2 to 258; the last bin is never lost."""
    for n in range(2, 259):
        X, y = np.arange(n)[:, None], np.arange(n) == n - 1
        model = Classifier().fit(X, y)
        assert model.tree_.threshold[0] == n - 1.5
        assert model.get_n_leaves() == 2


def test_S13_clone_works_and_an_unfitted_model_says_so() -> None:
    """clone and get_params see parameters only; predict before fit is NotFittedError."""
    model = Classifier(max_depth=2).fit([[0], [1]], [0, 1])
    again = clone(model)
    assert again.get_params() == model.get_params()
    for method in (again.predict, again.predict_proba, again.apply, again.decision_path):
        with pytest.raises(NotFittedError):
            method([[0]])
    assert again.fit([[0], [1]], [0, 1]).fingerprint() == model.fingerprint()


@pytest.mark.parametrize("X", [np.zeros((2, 1), complex), np.zeros(2), np.zeros((2, 1, 1)), [["a"], ["b"]]])
def test_S14_what_is_no_table_of_numbers_is_refused(X: Any) -> None:
    """Complex numbers, one or three dimensions, text in an array."""
    with pytest.raises((ValueError, TypeError)):
        Classifier().fit(X, [0, 1])


# -- pruning, importances, export, copies


@pytest.mark.parametrize("cls", [Classifier, Regressor])
def test_P01_the_pruning_path_is_sorted_nested_and_ends_in_the_root(cls: Any) -> None:
    """Alphas from 0 upwards, impurities too, fewer leaves at each; a negative alpha is refused."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 9, (150, 3)), rng.integers(0, 4, 150)
    path = cls().cost_complexity_pruning_path(X, y)
    assert path.ccp_alphas[0] == 0
    assert (np.diff(path.ccp_alphas) >= 0).all()
    assert (np.diff(path.impurities) >= -1e-12).all()
    leaves = [cls(ccp_alpha=alpha).fit(X, y).get_n_leaves() for alpha in path.ccp_alphas]
    assert leaves == sorted(leaves, reverse=True)
    assert leaves[-1] == 1
    assert path.impurities[-1] == pytest.approx(cls().fit(X, y).tree_.impurity[0])
    with pytest.raises(ValueError, match="ccp_alpha"):
        cls(ccp_alpha=-0.1).fit(X, y)


@pytest.mark.parametrize("cls", [Classifier, Regressor])
def test_P02_weights_count_in_the_pruning_path(cls: Any) -> None:
    """Equal to that of repeated rows."""
    rng = np.random.default_rng(0)
    X, y, w = rng.integers(0, 6, (80, 2)), rng.integers(0, 3, 80), rng.integers(1, 5, 80)
    weighted = cls().cost_complexity_pruning_path(X, y, w)
    copied = cls().cost_complexity_pruning_path(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_array_equal(weighted.ccp_alphas, copied.ccp_alphas)
    np.testing.assert_array_equal(weighted.impurities, copied.impurities)
    assert not np.array_equal(weighted.impurities, cls().cost_complexity_pruning_path(X, y).impurities)


@pytest.mark.parametrize("cls", [Classifier, Regressor])
def test_I01_a_tree_without_a_split_has_importances_of_zero(cls: Any) -> None:
    """All X are 0: zeros, not 0/0."""
    assert cls().fit(np.zeros((6, 3)), [0, 1, 0, 1, 0, 1]).feature_importances_.tolist() == [0, 0, 0]


@pytest.mark.parametrize("cls", [Classifier, Regressor, gputree.ExtraTreeClassifier, gputree.ExtraTreeRegressor])
def test_I02_importances_sum_to_one_and_a_constant_column_has_none(cls: Any) -> None:
    """Exactly 0 for the constant."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(200, 2)), np.full(200, 3.0)])
    share = cls().fit(X, rng.integers(0, 3, 200)).feature_importances_
    assert share[2] == 0
    assert share.sum() == pytest.approx(1)


def test_E05_a_deep_tree_is_exported_without_recursion() -> None:
    """A chain of 1,200 levels, as text."""
    X, y = np.arange(1200.0)[:, None], np.arange(1200) % 2
    model = Classifier().fit(X, y)
    assert model.get_depth() == 1199
    assert len(gputree.export_text(model, max_depth=None).splitlines()) >= 1200


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_Z01_pickled_and_copied_models_live_on(protocol: int) -> None:
    """Every protocol of pickle, deepcopy; the copy predicts and can be fitted again."""
    X, y = np.arange(6)[:, None], [0, 0, 1, 1, 2, 2]
    for cls in (Classifier, Regressor):
        model = cls(max_leaf_nodes=3).fit(X, y)
        for again in (pickle.loads(pickle.dumps(model, protocol)), copy.deepcopy(model)):
            assert again.fingerprint() == model.fingerprint()
            assert again.predict(X).tolist() == y
            assert again.fit(X, y[::-1]).predict(X).tolist() == y[::-1]


def test_the_table_of_faults_XOR() -> None:
    """Four points, no gain at the root: learnt all the same, and every corner is a leaf."""
    X = np.array(list(itertools.product([0, 1], repeat=2)))
    model = Classifier().fit(X, X[:, 0] ^ X[:, 1])
    assert (model.forest_.kind == Test.LEAF).sum() == 4
    assert separates(X, X[:, 0] ^ X[:, 1])
