"""Numbers that learners lost: huge, tiny, close together, far from zero. Every right answer is by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import gputree
from gputree import export_text
from gputree.pruning import ReducedError
from tests.bugs.shared import (
    EIGHT,
    FLOATS,
    INTEGERS,
    LEARNERS,
    STEP,
    TASKS,
    WAYS,
    Classifier,
    Regressor,
    assert_separates,
    column,
    every_model,
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_N01_the_midpoint_of_huge_values_does_not_overflow(dtype: Any) -> None:
    """2e38 and 3e38: the threshold lies between, though their sum exceeds float32; the same near float64's end."""
    X = column(2e38, 3e38, dtype=dtype)
    for cls in TASKS:
        model = cls().fit(X, [0, 1])
        assert model.tree_.threshold[0] == pytest.approx(2.5e38)
        assert model.predict(column(2.4e38, 2.6e38, dtype=dtype)).tolist() == [0, 1]
    model = Classifier().fit(column(1.2e308, 1.7e308), [0, 1])
    assert model.tree_.threshold[0] == pytest.approx(1.45e308)


@pytest.mark.parametrize("dtype", FLOATS)
def test_N01_the_ends_of_every_float_type_are_told_apart(dtype: Any) -> None:
    """The largest and the least number, 0, and their neighbours; cuts and random thresholds alike."""
    top = np.finfo(dtype).max
    below = np.nextafter(top, dtype(0))
    assert_separates(column(-top, -below, 0, below, top, dtype=dtype), [0, 1, 0, 1, 0])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("value", [1000.0, -1000.0, 1.0, 0.0])
def test_N02_neighbouring_floats_are_told_apart(dtype: Any, value: float) -> None:
    """A number and the next: no midpoint lies below the upper one, so the cut is the lower, and no child is empty."""
    low = dtype(value)
    X = np.array([[low], [np.nextafter(low, dtype(np.inf))]])
    assert_separates(X, [0, 1])
    model = Classifier().fit(X, [0, 1])
    assert model.get_n_leaves() == 2
    assert float(X[0, 0]) <= model.tree_.threshold[0] < float(X[1, 0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_N04_rows_close_together_arrive_where_they_were_counted(dtype: Any) -> None:
    """200 values 1e-9 apart: training predictions add up to y, and in float64 every row has its own."""
    X = (1 + np.arange(200) * 1e-9).astype(dtype)[:, None]
    y = np.random.default_rng(0).integers(0, 50, 200)
    for way in WAYS.values():
        assert Regressor(**way).fit(X, y).predict(X).sum() == pytest.approx(y.sum(), rel=1e-12)
    if dtype is np.float64:
        assert_separates(X, y)


def test_N04_a_type_at_predict_that_is_not_that_of_the_fit() -> None:
    """Equal numbers take equal ways, whether the model saw float32 or float64 and whichever it is given."""
    rng = np.random.default_rng(1)
    single = rng.normal(size=(300, 3)).astype(np.float32)
    y = rng.integers(0, 3, 300)
    for way in WAYS.values():
        models = [Classifier(**way).fit(X, y) for X in (single, single.astype(np.float64))]
        leaves = [model.apply(X) for model in models for X in (single, single.astype(np.float64))]
        assert all((each == leaves[0]).all() for each in leaves)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.float64, np.float32])
def test_N05_dates_of_eight_digits_are_told_apart(dtype: Any) -> None:
    """20180130 six times, 20180131 twelve times; float32 rounds the second to 20180132, which is told apart too."""
    X = np.repeat([20180130, 20180131], [6, 12]).astype(dtype)[:, None]
    assert_separates(X, np.repeat([0, 1], [6, 12]))


def test_N05_the_printed_date_parts_the_rows_as_the_tree_does() -> None:
    """The text says 20180130.50: a reader who applies it to the table gets the two groups."""
    X = np.repeat([20180130, 20180131], [6, 12])[:, None]
    model = Classifier().fit(X, X[:, 0])
    assert model.tree_.threshold[0] == 20180130.5
    assert "feature_0 <= 20180130.50" in export_text(model)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64, np.float64])
@pytest.mark.parametrize("low", [2**24, 1_517_270_400])
def test_N07_integers_beyond_float32_are_told_apart(low: int, dtype: Any) -> None:
    """2^24 and 2^24 + 1 are one number in float32, and so are two seconds of the year 2018."""
    assert_separates(np.array([[low], [low + 1]]).astype(dtype), [0, 1])


@pytest.mark.parametrize(
    "make",
    [
        lambda v: np.array(v)[:, None],
        lambda v: np.array(v, np.uint64)[:, None],
        lambda v: np.array(v, object)[:, None],
        lambda v: pd.DataFrame({"id": v}),
        lambda v: pd.DataFrame({"id": pd.array(v, dtype="Int64")}),
        lambda v: pl.DataFrame({"id": v}),
        lambda v: pa.table({"id": v}),
    ],
    ids=["int64", "uint64", "objects", "pandas", "Int64", "polars", "pyarrow"],
)
def test_N08_integers_beyond_float64_are_one_value_or_told_apart(make: Callable[[list[int]], Any]) -> None:
    """2^53 and 2^53 + 1 are one number in float64: half of either for both, and nothing odd at predict."""
    X = make([2**53, 2**53 + 1])
    for way in WAYS.values():
        shares = Classifier(**way).fit(X, [0, 1]).predict_proba(X).tolist()
        assert shares in ([[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [0.0, 1.0]])
        assert Regressor(**way).fit(X, [0, 1]).predict(X).tolist() in ([0.5, 0.5], [0, 1])


def test_N10_values_beyond_float32_stay_finite() -> None:
    """1e39 is infinite in float32; infinities are values of their own."""
    assert_separates(column(1e39, 2e39, np.inf, -1e39, -np.inf), [0, 1, 2, 3, 4])


def test_N10_infinities_have_finite_neighbours() -> None:
    """Both infinities beside the largest floats; thresholds are no NaN, and missing values are a thing apart."""
    X = column(-np.inf, -1.7e308, 1.7e308, np.inf, np.nan)
    assert_separates(X, [0, 1, 2, 3, 4])
    for model in every_model(X, [0, 1, 2, 3, 4]):
        assert not np.isnan(model.forest_.low).any()


@pytest.mark.parametrize(("dtype", "least"), [(np.float16, 6e-8), (np.float32, 1e-40), (np.float64, 5e-324)])
def test_N11_denormals_route_alike_at_fit_and_predict(dtype: Any, least: float) -> None:
    """Once, twice, three times and four times the same denormal, and 1; with both signs."""
    small = dtype(least) * np.array([1, 2, 3, 4], dtype)
    assert_separates(np.r_[-small, 0, small, 1].astype(dtype)[:, None], [0, 1, 0, 1, 0, 1, 0, 1, 0, 1])


OFFSETS = [0, 1e3, -1e7, 1e8, 1e10, -1e12]


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("way", WAYS)
def test_N13_a_big_offset_of_y_does_not_hide_its_step(offset: float, way: str) -> None:
    """A step of 1 on top of the offset: split at 3.5, root variance 0.25, exact leaves."""
    model = Regressor(**WAYS[way]).fit(EIGHT, offset + STEP)
    assert model.predict(EIGHT).tolist() == (offset + STEP).tolist()
    assert model.tree_.impurity[0] == 0.25
    if way != "random tests":
        assert model.tree_.threshold[0] == 3.5
        assert model.tree_.impurity.tolist() == [0.25, 0, 0]
        assert model.tree_.value.ravel().tolist() == [offset + 0.5, offset, offset + 1]


@pytest.mark.parametrize("offset", OFFSETS)
def test_N13_weights_and_other_outputs_do_not_bring_the_offset_back(offset: float) -> None:
    """Weights 3 and 1: the variance is 3/16. A second output without the offset leaves the first as it was."""
    w = np.where(STEP == 0, 3.0, 1.0)
    model = Regressor().fit(EIGHT, offset + STEP, w)
    assert model.tree_.impurity.tolist() == [0.1875, 0, 0]
    assert model.tree_.value[0].item() == offset + 0.25
    both = Regressor().fit(EIGHT, np.c_[offset + STEP, STEP[::-1]])
    np.testing.assert_array_equal(both.predict(EIGHT), np.c_[offset + STEP, STEP[::-1]])
    assert both.tree_.impurity.tolist() == [0.25, 0, 0]


@pytest.mark.parametrize("offset", [10, 1e3, 1e5])
def test_N13_poisson_sees_a_step_beside_an_offset(offset: float) -> None:
    """Counts are not centred, so the step must not be below a millionth of them; the leaves are exact all the same."""
    model = Regressor(criterion="poisson").fit(EIGHT, offset + STEP)
    assert model.tree_.threshold[0] == 3.5
    assert model.predict(EIGHT).tolist() == (offset + STEP).tolist()


@pytest.mark.parametrize("offset", [1e6, 1e8, 1e10])
def test_N13_the_deviance_of_a_step_beside_an_offset(offset: float) -> None:
    """Half the mean deviance of a step of 1 on m is 1 / 8m to first order; every row arrives in a leaf of its own."""
    model = Regressor(criterion="poisson").fit(EIGHT, offset + STEP)
    assert model.predict(EIGHT).tolist() == (offset + STEP).tolist()
    assert model.tree_.impurity[0] == pytest.approx(1 / (8 * (offset + 0.5)), rel=1e-6)


@pytest.mark.parametrize("value", [1e9 + 0.1, -1e9 - 0.1, 0.1, 0.0, 1e-300, 1e300, 5e-324])
def test_N14_a_constant_target_is_not_split(value: float) -> None:
    """A thousand times one number, with weights whose sums round: one leaf of that very value."""
    rng = np.random.default_rng(0)
    X, w, y = rng.normal(size=(1000, 3)), rng.random(1000) + 0.1, np.full(1000, value)
    for cls in (Regressor, gputree.ExtraTreeRegressor):
        for weight in (None, w):
            model = cls().fit(X, y, weight)
            assert model.get_n_leaves() == 1
            assert set(model.predict(X)) == {value}
            assert model.tree_.impurity[0] == 0
    if value > 0:
        assert Regressor(criterion="poisson").fit(X, y, w).predict(X[:1]).tolist() == [value]


@pytest.mark.parametrize("learner", LEARNERS)
def test_N14_constant_outputs_and_single_classes_are_not_split(learner: Any) -> None:
    """Two constant columns of y; no node is empty where one of them varies."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.tile([7, 3], (200, 1))
    assert learner().fit(X, y).get_n_leaves() == 1
    y[:, 1] = rng.integers(0, 4, 200)
    model = learner().fit(X, y)
    assert model.tree_.n_node_samples.min() >= 1
    assert (model.predict(X)[:, 0] == 7).all()


SCALES = [1e-4, 1e-8, 1e-10, 1e-20, 1e-150, 1e-300, 5e-324]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("way", WAYS)
def test_N16_N17_small_targets_are_split(scale: float, way: str) -> None:
    """No floor of the impurity: a step of any size is learnt, down to the least number above 0."""
    for weight in (None, np.full(8, 1e-30), np.linspace(0.1, 0.7, 8)):
        model = Regressor(**WAYS[way]).fit(EIGHT, STEP * scale, weight)
        np.testing.assert_array_equal(model.predict(EIGHT), STEP * scale)
        assert model.get_n_leaves() == 2 or way == "random tests"


@pytest.mark.parametrize("scale", SCALES)
def test_N17_a_small_output_is_learnt_beside_a_large_one(scale: float) -> None:
    """Two outputs, one of size 1 that steps at 5.5, one tiny that steps at 3.5: leaves hold both."""
    y = np.c_[EIGHT[:, 0] > 5, STEP * scale].astype(float)
    model = Regressor().fit(EIGHT, y)
    np.testing.assert_array_equal(model.predict(EIGHT), y)


@pytest.mark.parametrize("scale", [1e-4, 1e-20, 1e-150, 1e100])
def test_N17_poisson_knows_no_floor(scale: float) -> None:
    """Counts of any unit: 1 and 2 times the scale."""
    model = Regressor(criterion="poisson").fit(EIGHT, (1 + STEP) * scale)
    assert model.tree_.threshold[0] == 3.5
    np.testing.assert_array_equal(model.predict(EIGHT), (1 + STEP) * scale)


@pytest.mark.parametrize("scale", [1e100, 1e160, 1e300, 1.7e308])
@pytest.mark.parametrize("way", WAYS)
def test_N17_huge_targets_are_split(scale: float, way: str) -> None:
    """Squares of y may overflow; the tree and its importances may not suffer."""
    model = Regressor(**WAYS[way]).fit(EIGHT, STEP * scale)
    np.testing.assert_array_equal(model.predict(EIGHT), STEP * scale)
    assert model.feature_importances_.tolist() == [1]
    assert not np.isnan(model.tree_.impurity).any()


@pytest.mark.parametrize(
    ("model", "most"),
    [
        (Regressor(), 8.9e307),
        (gputree.RandomForestRegressor(4), 4.4e307),
        (gputree.ExtraTreesRegressor(4), 4.4e307),
        (gputree.BaggingTreeRegressor(n_estimators=4), 4.4e307),
        (gputree.RandomForestRegressor(40, oob_score=True), 2e153),
        (Regressor(pruning=ReducedError()), 8e153),
    ],
)
def test_N17_targets_that_leave_the_range_of_floats_are_refused(model: Any, most: float) -> None:
    """Differences, sums over trees and squared errors are floats; twice as much is refused."""
    y = np.where(STEP, most, -most)
    assert np.isfinite(model.fit(EIGHT, y).predict(EIGHT)).all()
    with pytest.raises(ValueError, match="leave the range of floats: divide y by a power of ten"):
        model.fit(EIGHT, 2 * y)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.float64, object])
def test_N19_large_targets_come_back_exactly(dtype: Any) -> None:
    """16777217 has more digits than float32 holds; each row is a leaf."""
    y = np.array([16777217, 0, 2**31 - 1, 123456789]).astype(dtype)
    for way in WAYS.values():
        assert Regressor(**way).fit(EIGHT[:4], y).predict(EIGHT[:4]).tolist() == y.tolist()


def test_N19_all_53_bits_of_a_target_come_back() -> None:
    """2^53 - 1 and a number with sixteenths; as one of two outputs, and as counts, too."""
    y = np.array([2**53 - 1, 0, 123456789012.0625, 16777217])
    X = EIGHT[:4]
    assert Regressor().fit(X, y).predict(X).tolist() == y.tolist()
    assert Regressor().fit(X, np.c_[y, -y]).predict(X).tolist() == np.c_[y, -y].tolist()
    assert Regressor(criterion="poisson").fit(X, y + 1).predict(X).tolist() == (y + 1).tolist()


def test_N20_sums_of_unlike_weights_do_not_lose_rows() -> None:
    """One row of weight 2^24 and value 0 beside 5,000 of weight 1 and value 1e6: the mean to 12 digits."""
    y, w = np.r_[0, np.full(5000, 1e6)], np.r_[2.0**24, np.ones(5000)]
    exact = 5000 * 1e6 / (2**24 + 5000)
    assert exact == pytest.approx(297.93443249687647, rel=1e-15)
    for criterion in ("squared_error", "poisson"):
        model = Regressor(criterion=criterion).fit(np.zeros((5001, 1)), y, w)
        assert model.predict([[0.0]])[0] == pytest.approx(exact, rel=1e-12)
    shares = Classifier().fit(np.zeros((5001, 1)), y > 0, w).predict_proba([[0.0]])
    np.testing.assert_allclose(shares, [[2**24 / (2**24 + 5000), 5000 / (2**24 + 5000)]], rtol=1e-15)


def test_N20_a_million_rows_are_added_without_loss() -> None:
    """0.1 a million times beside one 1e6: the mean is what exact sums give, in any order of the rows."""
    y = np.full(1_000_001, 0.1)
    y[0] = 1e6
    exact = math.fsum(y) / y.size
    for order in (slice(None), slice(None, None, -1)):
        model = Regressor().fit(np.zeros((y.size, 1)), y[order])
        assert model.predict([[0.0]])[0] == pytest.approx(exact, rel=1e-12)


def test_N22_the_threshold_is_the_middle_of_a_gap() -> None:
    """50 rows at 0 and 50 at 10; also where other nodes fill the gap with codes, exact or binned."""
    X = np.repeat([0.0, 10.0], 50)[:, None]
    for dtype in (np.float32, np.float64, np.int8):
        for cls in TASKS:
            model = cls().fit(X.astype(dtype), X[:, 0].astype(int))
            assert model.predict([[4.9], [5.1]]).tolist() == [0, 10]
    filled = np.r_[np.c_[X, np.zeros(100)], np.c_[np.linspace(0, 10, 400), np.ones(400)]]
    y = np.r_[X[:, 0], np.full(400, 5)].astype(int)
    assert Classifier().fit(filled, y).tree_.threshold[:2].tolist() == [0.5, 5]
    binned = Classifier(max_bins=32).fit(filled, y).tree_.threshold
    assert binned[0] == 0.5
    assert 4 < binned[1] < 6


@pytest.mark.parametrize("max_bins", [2, 3, 16, 255])
def test_N22_codes_that_no_row_of_a_node_has_do_not_pull_the_threshold(max_bins: int) -> None:
    """The two spikes at 0 and 10 have codes of their own however few there are: 4.9 and 5.1 part."""
    X = np.repeat([0.0, 10.0], 50)[:, None]
    model = Classifier(max_bins=max_bins).fit(X, X[:, 0] > 5)
    assert model.tree_.threshold[0] == 5


MIDDLES: list[tuple[tuple[int, int], Any, float]] = [
    ((200, 250), np.uint8, 225),
    ((-128, 127), np.int8, -0.5),
    ((60000, 65000), np.float16, 62496),
    ((32766, 32767), np.int16, 32766.5),
    ((65534, 65535), np.uint16, 65534.5),
    ((-(2**31), 2**31 - 1), np.int32, -0.5),
    ((2**32 - 2, 2**32 - 1), np.uint32, 2**32 - 1.5),
    ((-(2**63), 2**63 - 1024), np.int64, -512),
    ((0, 2**64 - 2048), np.uint64, 2.0**63 - 1024),
]


@pytest.mark.parametrize(("values", "dtype", "middle"), MIDDLES)
def test_N23_midpoints_of_small_types_do_not_wrap(values: tuple[int, int], dtype: Any, middle: float) -> None:
    """The sum of the two values does not fit their type; as an array and as a column of a frame."""
    X = column(*values, dtype=dtype)
    for table in (X, pd.DataFrame(X), pl.DataFrame({"x": X[:, 0]}) if dtype != np.float16 else X):
        assert Classifier().fit(table, [0, 1]).tree_.threshold[0] == middle
    assert_separates(X, [0, 1])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_N23_the_ends_of_every_integer_type_are_told_apart(dtype: Any) -> None:
    """The least value, the middle and one beside it; 64 bits are read as float64, whose neighbours lie 2048 apart."""
    info = np.iinfo(dtype)
    gap = 2048 if info.bits == 64 else 1
    values: NDArray[Any] = np.array([info.min, info.max // 2, info.max // 2 + gap, info.max - gap], dtype)
    assert_separates(values[:, None], [0, 1, 0, 1])


WHEN = np.datetime64("2020-01-01T00:00:00") + np.arange(8)
DATES: dict[str, Callable[[], Any]] = {
    "array": lambda: WHEN[:, None],
    "durations": lambda: (WHEN - WHEN[0])[:, None],
    "pandas": lambda: pd.DataFrame({"when": WHEN}),
    "pandas with a zone": lambda: pd.DataFrame({"when": pd.Series(WHEN).dt.tz_localize("UTC")}),
    "pandas durations": lambda: pd.DataFrame({"when": pd.Series(WHEN - WHEN[0])}),
    "objects": lambda: pd.DataFrame({"when": pd.Series(pd.Series(WHEN).tolist(), dtype=object)}),
    "polars": lambda: pl.DataFrame({"when": WHEN.astype("M8[us]")}),
    "polars dates": lambda: pl.DataFrame({"when": WHEN.astype("M8[D]")}),
    "pyarrow": lambda: pa.table({"when": WHEN}),
}


@pytest.mark.parametrize("kind", DATES)
def test_N25_dates_are_refused_with_the_remedy(kind: str) -> None:
    """Steps of one second, in every form of date: never read as something else, at fit or at predict."""
    X = DATES[kind]()
    with pytest.raises(TypeError, match=r"turn (dates|these values).* into"):
        Classifier().fit(X, STEP)
    model = Classifier().fit(pd.DataFrame({"when": np.arange(8.0)}), STEP)
    with pytest.raises(TypeError, match=r"date|when"):
        model.predict(X)
