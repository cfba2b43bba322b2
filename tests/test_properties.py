"""What may not change a tree, and what every tree must satisfy, over random tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

import gputree
from gputree.core.forest import Forest, Test

CLASSES = ["gini", "entropy", "train_error", "gain_ratio", "twoing", "chi2"]
NUMBERS = ["squared_error", "poisson"]
VALUES = [-3.0, -0.5, 0.0, 0.25, 1.0, 2.5]  # few values: many ties
ANY_VALUE = [*VALUES, np.nan, np.inf, -np.inf, -0.0, 5e-324, -5e-324, 1e-310, 1e300, -1e300, 1.7e308, 0.1, 1e-45]
RESULT = ("feature", "low", "kind", "first_child", "n_children", "value", "impurity", "parent", "depth")


ROUTES = ("missing", "unseen", "met_missing", "lookup_ptr", "lookup_code", "lookup_branch")


def learner(criterion: str, **settings: Any) -> Any:
    cls = gputree.DecisionTreeClassifier if criterion in CLASSES else gputree.DecisionTreeRegressor
    return cls(criterion=criterion, **settings)


@st.composite
def tables(
    draw: st.DrawFn, criterion: str, values: list[float] | None = None, most: int = 20
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    n, k = draw(st.integers(1, most)), draw(st.integers(1, 3))
    elements = st.sampled_from(values or [*VALUES, np.nan])
    X = draw(arrays.arrays(np.float64, (n, k), elements=elements))
    least = 1 if criterion == "poisson" else 0
    return X, draw(arrays.arrays(np.int64, n, elements=st.integers(least, 4)))


def same(a: Forest, b: Forest, names: tuple[str, ...] = RESULT) -> None:
    for name in names:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


def members(model: Any, X: Any) -> list[NDArray[np.intp]]:
    """Rows that pass each node."""
    path = model.decision_path(X).tocsc()
    return [path.indices[path.indptr[i] : path.indptr[i + 1]] for i in range(model.forest_.n_nodes)]


def inner_nodes(forest: Forest) -> list[int]:
    return np.flatnonzero(forest.kind != Test.LEAF).tolist()


# -- weights are copies


@pytest.mark.parametrize("criterion", [*CLASSES, *NUMBERS])
@settings(max_examples=50)
@given(data=st.data())
def test_a_weight_is_a_number_of_copies(criterion: str, data: st.DataObject) -> None:
    """Sides of values that no node met are part of it: they follow weight."""
    X, y = data.draw(tables(criterion))
    w = data.draw(arrays.arrays(np.int64, len(X), elements=st.integers(1, 4)))
    w[0] = 1
    weighted = learner(criterion).fit(X, y, w)
    copied = learner(criterion).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    same(weighted.forest_, copied.forest_, (*RESULT, "score", *ROUTES))
    np.testing.assert_array_equal(weighted.tree_.weighted_n_node_samples, copied.tree_.weighted_n_node_samples)
    np.testing.assert_array_equal(weighted.apply(X), copied.apply(X))
    np.testing.assert_array_equal(weighted.feature_importances_, copied.feature_importances_)


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
@pytest.mark.parametrize(
    "limit", [{"max_leaf_nodes": 5}, {"max_bins": 3}, {"ccp_alpha": 0.02}, {"max_depth": 2}], ids=str
)
@settings(max_examples=30)
@given(data=st.data())
def test_a_weight_is_a_number_of_copies_under_limits(
    criterion: str, limit: dict[str, Any], data: st.DataObject
) -> None:
    X, y = data.draw(tables(criterion))
    w = data.draw(arrays.arrays(np.int64, len(X), elements=st.integers(1, 4)))
    w[0] = 1
    weighted = learner(criterion, **limit).fit(X, y, w)
    copied = learner(criterion, **limit).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    same(weighted.forest_, copied.forest_)


@pytest.mark.parametrize("criterion", [*CLASSES, *NUMBERS])
@settings(max_examples=30)
@given(data=st.data())
def test_a_weight_of_zero_is_absence(criterion: str, data: st.DataObject) -> None:
    """Rows of weight 0, of any value, leave every array as it is, the sides of values not met included."""
    X, y = data.draw(tables(criterion))
    w = data.draw(arrays.arrays(np.float64, len(X), elements=st.sampled_from([1.0, 2.0, 0.5])))
    other, _ = data.draw(tables(criterion, ANY_VALUE))
    ghosts = np.resize(other, (len(other), X.shape[1]))
    place = data.draw(st.permutations(range(len(X) + len(ghosts))))
    rows = np.concatenate([X, ghosts])[place]
    labels = np.concatenate([y, np.resize(y, len(ghosts))])[place]
    weights = np.concatenate([w, np.zeros(len(ghosts))])[place]
    keep = weights > 0
    expected = learner(criterion).fit(rows[keep], labels[keep], weights[keep])
    assert learner(criterion).fit(rows, labels, weights).fingerprint() == expected.fingerprint()


@pytest.mark.parametrize("criterion", ["gini", "squared_error", "poisson"])
@pytest.mark.parametrize("bad", [-1.0, -1e-300, np.nan, np.inf, -np.inf])
def test_odd_weights_are_refused(criterion: str, bad: float) -> None:
    with pytest.raises(ValueError, match=r"sample_weight|weights"):
        learner(criterion).fit([[0.0], [1.0], [2.0]], [1, 2, 1], [1.0, bad, 1.0])


@pytest.mark.parametrize("criterion", ["gini", "squared_error", "poisson"])
def test_weights_that_are_all_zero_are_refused(criterion: str) -> None:
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        learner(criterion).fit([[0.0], [1.0]], [1, 2], [0.0, 0.0])


# -- invariance


@pytest.mark.parametrize("criterion", [*CLASSES, *NUMBERS])
@settings(max_examples=30)
@given(data=st.data())
def test_the_order_of_rows_does_not_matter(criterion: str, data: st.DataObject) -> None:
    X, y = data.draw(tables(criterion))
    w = data.draw(st.none() | arrays.arrays(np.float64, len(X), elements=st.sampled_from([1.0, 3.0, 0.7, 1e-3])))
    order = np.array(data.draw(st.permutations(range(len(X)))))
    shuffled = None if w is None else w[order]
    expected = learner(criterion).fit(X, y, w).fingerprint()
    assert learner(criterion).fit(X[order], y[order], shuffled).fingerprint() == expected


def midpoint(a: float, b: float) -> float:
    t = a / 2 + b / 2
    return t if a <= t < b else a


@pytest.mark.parametrize(
    "change",
    [np.exp, np.arctan, lambda x: x**3 * 1e90, lambda x: x * 1e-300],
    ids=["exp", "arctan", "cube", "tiny"],
)
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
@settings(max_examples=30)
@given(data=st.data())
def test_increasing_maps_move_thresholds_only(
    criterion: str, change: Callable[[Any], Any], data: st.DataObject
) -> None:
    X, y = data.draw(tables(criterion))
    model, moved = learner(criterion).fit(X, y), learner(criterion).fit(change(X), y)
    same(model.forest_, moved.forest_, (*[n for n in RESULT if n != "low"], "stats", "missing", "unseen", "score"))
    rows = members(model, X)
    for i in inner_nodes(model.forest_):
        x, low = X[rows[i], model.forest_.feature[i]], model.forest_.low[i]
        if low == np.inf:
            assert moved.forest_.low[i] == np.inf
            continue
        a, b = x[x <= low].max(), x[x > low].min()
        assert moved.forest_.low[i] == midpoint(float(change(a)), float(change(b)))


FACTORS = [1.1, 1e-3, 1e6, 1e-30, 1e30, 3.0]


@pytest.mark.parametrize("criterion", [*CLASSES, *NUMBERS])
@settings(max_examples=30)
@given(data=st.data())
def test_a_common_factor_of_whole_weights_does_not_matter(criterion: str, data: st.DataObject) -> None:
    """Whole multiples of the least weight stay what they are, to the bit."""
    X, y = data.draw(tables(criterion))
    w = data.draw(arrays.arrays(np.float64, len(X), elements=st.integers(1, 9).map(float)))
    w[0] = 1
    expected = learner(criterion).fit(X, y, w).fingerprint()
    for factor in FACTORS:
        assert learner(criterion).fit(X, y, w * factor).fingerprint() == expected, factor


@pytest.mark.parametrize("criterion", [*CLASSES, *NUMBERS])
@settings(max_examples=30)
@given(data=st.data())
def test_a_common_factor_of_weights_keeps_the_structure(criterion: str, data: st.DataObject) -> None:
    """Weights of which the least divides not all others."""
    X, y = data.draw(tables(criterion))
    w = data.draw(arrays.arrays(np.float64, len(X), elements=st.sampled_from([2.0, 3.0, 5.0, 7.0])))
    expected = learner(criterion).fit(X, y, w).forest_
    for factor in FACTORS:
        same(learner(criterion).fit(X, y, w * factor).forest_, expected, ("feature", "low", "first_child", "missing"))


@pytest.mark.parametrize("factor", [1.0, *FACTORS])
@pytest.mark.parametrize("criterion", [*CLASSES, *NUMBERS])
def test_a_common_factor_of_weights_keeps_the_tie_of_xor(criterion: str, factor: float) -> None:
    """Both columns gain nothing, whatever the unit of the weights: the lower is split, with a score of 0."""
    X = [[0, 0], [0, 1], [1, 0], [1, 1]]
    forest = learner(criterion).fit(X, [1, 2, 2, 1], np.array([2.0, 3.0, 3.0, 2.0]) * factor).forest_
    assert forest.feature.tolist() == [0, 1, 1, -1, -1, -1, -1]
    assert forest.score[0] == 0


@pytest.mark.parametrize("factor", FACTORS)
def test_a_common_factor_of_weights_keeps_a_tie_of_cuts(factor: float) -> None:
    """Column 0 parts the sum 36 into 18 | 18 of weights 9 | 7, or 30 | 6 of 14 | 2: both 576/7, the lower wins."""
    X = [[1, 0, 0], [1, 0, 2], [2, 0, 2], [0, 0, 1], [0, 2, 0]]
    w = np.array([2.0, 3.0, 2.0, 7.0, 2.0])
    forest = learner("squared_error").fit(X, [3, 2, 3, 2, 2], w * factor).forest_
    assert forest.feature.tolist() == [0, -1, 0, 2, -1, -1, -1]
    assert forest.low[:3].tolist() == [0.5, 0.0, 1.5]


@settings(max_examples=50)
@given(data=st.data())
def test_a_shift_of_y_shifts_values_only(data: st.DataObject) -> None:
    X, y = data.draw(tables("squared_error"))
    shift = data.draw(st.sampled_from([1.0, -3.0, 1e6, 2.0**40, -1e12]))
    model, moved = learner("squared_error").fit(X, y), learner("squared_error").fit(X, y + shift)
    same(model.forest_, moved.forest_, ("feature", "low", "first_child", "missing", "score"))
    np.testing.assert_allclose(moved.forest_.impurity, model.forest_.impurity, rtol=1e-12)
    np.testing.assert_allclose(moved.forest_.value, model.forest_.value + shift, rtol=4e-16)


@pytest.mark.parametrize("criterion", NUMBERS)
@settings(max_examples=50)
@given(data=st.data())
def test_a_power_of_two_scales_values_to_the_bit(criterion: str, data: st.DataObject) -> None:
    X, y = data.draw(tables(criterion))
    y = y + data.draw(st.sampled_from([0.0, 0.1, 7.3]))
    factor = 2.0 ** data.draw(st.sampled_from([-300, -20, -1, 1, 30, 300]))
    model, scaled = learner(criterion).fit(X, y).forest_, learner(criterion).fit(X, y * factor).forest_
    same(model, scaled, ("feature", "low", "first_child", "missing", "score", "stats"))
    np.testing.assert_array_equal(scaled.value, model.value * factor)
    power = 2 if criterion == "squared_error" else 1
    np.testing.assert_array_equal(scaled.impurity, model.impurity * factor**power)


@pytest.mark.parametrize("criterion", CLASSES)
@settings(max_examples=20)
@given(data=st.data())
def test_names_of_labels_do_not_matter(criterion: str, data: st.DataObject) -> None:
    X, y = data.draw(tables(criterion))
    expected = learner(criterion).fit(X, y)
    for names in (np.array(list("abcde")), np.array([-7, 0, 3, 10**12, 2**62]), np.array([-9.0, -1, 0, 3, 1e12])):
        named = learner(criterion).fit(X, names[y])
        assert named.fingerprint() == expected.fingerprint()
        np.testing.assert_array_equal(named.predict(X), names[expected.predict(X)])


LAYOUTS: dict[str, Callable[[NDArray[Any]], Any]] = {
    "Fortran": np.asfortranarray,
    "strided": lambda a: np.repeat(np.repeat(a, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "big-endian": lambda a: a.astype(">f8"),
    "big-endian float32": lambda a: a.astype(">f4"),
    "float32": lambda a: a.astype(np.float32),
    "float16": lambda a: a.astype(np.float16),
    "object": lambda a: a.astype(object),
    "list": lambda a: a.tolist(),
    "frame": lambda a: pd.DataFrame(a).set_axis([f"feature_{i}" for i in range(a.shape[1])], axis=1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_the_layout_of_x_does_not_matter(criterion: str, layout: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.choice([*VALUES, np.nan, np.inf, -0.0], (60, 3))
    y = rng.integers(0, 3, 60)
    given_X = LAYOUTS[layout](X)
    model = learner(criterion).fit(given_X, y)
    plain = learner(criterion).fit(X, y)
    assert model.fingerprint() == plain.fingerprint()
    np.testing.assert_array_equal(model.predict(given_X), plain.predict(X))
    np.testing.assert_array_equal(model.apply(given_X), plain.apply(X))


def test_inputs_are_not_written() -> None:
    """Read-only input is no obstacle, writable input stays as it is."""
    rng = np.random.default_rng(1)
    X, y, w = rng.choice([*VALUES, np.nan, -0.0], (40, 3)), rng.normal(size=40), rng.integers(0, 3, 40).astype(float)
    before = [a.tobytes() for a in (X, y, w)]
    writable = learner("squared_error").fit(X, y, w)
    writable.predict(X)
    assert [a.tobytes() for a in (X, y, w)] == before
    for array in (X, y, w):
        array.setflags(write=False)
    assert learner("squared_error").fit(X, y, w).fingerprint() == writable.fingerprint()
    np.testing.assert_array_equal(writable.predict(X), writable.predict(X.copy()))


@pytest.mark.parametrize("y", [np.arange(6)[::-1], np.arange(6, dtype=">i4"), np.arange(12)[::2] / 2, list(range(6))])
def test_the_layout_of_y_does_not_matter(y: Any) -> None:
    X = np.asarray(y, float)[:, None]
    expected = learner("squared_error").fit(X, X[:, 0])
    assert learner("squared_error").fit(X, y).fingerprint() == expected.fingerprint()


# -- what every tree satisfies


@settings(max_examples=100)
@given(data=st.data())
def test_means_stay_inside_the_values(data: st.DataObject) -> None:
    X, _ = data.draw(tables("squared_error"))
    finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e150, max_value=1e150)
    y = data.draw(arrays.arrays(np.float64, len(X), elements=st.sampled_from([0.1, 1e9 + 0.1, 1 / 3]) | finite))
    w = data.draw(st.none() | arrays.arrays(np.float64, len(X), elements=st.sampled_from([1.0, 0.1, 1 / 3, 1e-9])))
    model = learner("squared_error").fit(X, y, w)
    for i, rows in enumerate(members(model, X)):
        assert y[rows].min() <= model.forest_.value[i, 0] <= y[rows].max()
        assert model.forest_.impurity[i] >= 0


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@settings(max_examples=100)
@given(data=st.data())
def test_children_that_differ_are_a_gain(criterion: str, data: st.DataObject) -> None:
    """And children alike in their shares are none; both exactly, for the score is on its grid."""
    X, y = data.draw(tables(criterion, most=40))
    forest = learner(criterion).fit(X, y).forest_
    for i in inner_nodes(forest):
        left, right = (forest.stats[c].tolist() for c in forest.node(i).children)
        alike = all(a * sum(right) == b * sum(left) for a, b in zip(left, right, strict=True))
        assert (forest.score[i] == 0) if alike else (forest.score[i] > 0), (left, right)


def impurity(criterion: str, counts: NDArray[np.int64]) -> float:
    p = counts[counts > 0] / counts.sum()
    if criterion == "gini":
        return 1 - float((p * p).sum())
    return -float((p * np.log2(p)).sum()) if criterion == "entropy" else 1 - float(p.max())


def decrease(criterion: str, x: NDArray[Any], y: NDArray[Any], cut: float) -> float:
    """Rows times the decrease of the impurity by one cut."""
    parts = [np.bincount(y[side], minlength=5) for side in (x <= cut, x > cut)]
    below = sum(float(p.sum()) * impurity(criterion, p) for p in parts)
    return len(y) * impurity(criterion, parts[0] + parts[1]) - below


@pytest.mark.parametrize("criterion", ["gini", "entropy", "train_error"])
@settings(max_examples=80)
@given(data=st.data())
def test_some_best_cut_is_a_boundary_point(criterion: str, data: st.DataObject) -> None:
    """Fayyad and Irani (1992): not between two values that hold one and the same class only."""
    n = data.draw(st.integers(2, 30))
    x = data.draw(arrays.arrays(np.int64, n, elements=st.integers(0, 12))).astype(float)
    y = data.draw(arrays.arrays(np.int64, n, elements=st.integers(0, 4)))
    values = np.unique(x).tolist()
    forest = learner(criterion, max_depth=1).fit(x[:, None], y).forest_
    if forest.n_nodes == 1:
        assert len(values) == 1 or len(np.unique(y)) == 1
        return
    gains = {(a, b): decrease(criterion, x, y, a) for a, b in pairwise(values)}
    boundary = [g for (a, b), g in gains.items() if len(np.unique(y[(x == a) | (x == b)])) > 1]
    assert max(boundary) == pytest.approx(max(gains.values()), abs=1e-9)
    assert forest.score[0] == pytest.approx(max(boundary), abs=1e-9)


# -- one comparison: rows go at predict where they went at fit


def check_routing(model: Any, X: Any, y: NDArray[np.int64]) -> None:
    """Counts of the rows that arrive in every node are its statistics, exactly."""
    forest = model.forest_
    _, labels = np.unique(y, return_inverse=True)
    for i, rows in enumerate(members(model, X)):
        assert np.bincount(labels[rows], minlength=forest.stats.shape[1]).tolist() == forest.stats[i].tolist()
    assert (forest.kind[model.apply(X)] == Test.LEAF).all()


@pytest.mark.parametrize("bins", ["auto", 3])
@pytest.mark.parametrize("splitter", ["best", "random"])
@settings(max_examples=80)
@given(data=st.data())
def test_rows_arrive_where_they_were_counted(splitter: str, bins: Any, data: st.DataObject) -> None:
    """Infinities, huge and denormal numbers, signed zeros, neighbouring floats, missing values."""
    near = data.draw(st.floats(allow_nan=False))
    values = [*ANY_VALUE, near, math.nextafter(near, math.inf), math.nextafter(near, -math.inf)]
    X, y = data.draw(tables("gini", values, most=30))
    settings = {"splitter": splitter, "max_bins": bins, "random_state": data.draw(st.integers(0, 9))}
    check_routing(learner("gini", **settings).fit(X, y), X, y)
    with np.errstate(over="ignore"):
        single = X.astype(np.float32)
    model = learner("gini", **settings).fit(single, y)
    check_routing(model, single, y)
    check_routing(model, single.astype(np.float64), y)


@pytest.mark.parametrize("bins", ["auto", 5])
@pytest.mark.parametrize(
    "x",
    [
        2**53 + np.arange(-20, 20, dtype=np.int64),
        2**62 + np.arange(0, 40 * 256, 256, dtype=np.int64),
        -(2**63) + np.arange(40, dtype=np.int64) * 999,
        np.arange(2**64 - 40 * 999, 2**64 - 1, 999, dtype=np.uint64)[:40],
        np.arange(40, dtype=np.uint8) + np.uint8(210),
        (60_000 + np.arange(40) * 32).astype(np.float16),
        np.arange(40) * 5e-324,
        1 + np.arange(40) * 2.0**-52,
        np.float32(1) + np.arange(40, dtype=np.float32) * np.float32(2.0**-23),
    ],
    ids=["2^53", "2^62", "int64", "uint64", "uint8", "float16", "denormal", "float64 steps", "float32 steps"],
)
def test_numbers_of_every_type_arrive_where_they_were_counted(x: NDArray[Any], bins: Any) -> None:
    y = np.random.default_rng(0).integers(0, 2, 40)
    for order in (np.arange(40), np.random.default_rng(1).permutation(40)):
        X = x[order][:, None]
        model = learner("gini", max_bins=bins).fit(X, y[order])
        check_routing(model, X, y[order])
        if bins == "auto":
            told_apart = len(np.unique(X.astype(np.float64 if X.dtype != np.float32 else np.float32)))
            assert (model.predict(X) == y[order]).all() or told_apart < len(np.unique(x))


# -- missing, unknown, known


@pytest.mark.parametrize(("x", "side"), [([0, 0, 0, 1], 0), ([0, 1, 1, 1], 1), ([0, 0, 1, 1], 0), ([0, 1], 0)])
def test_a_missing_value_that_no_row_had_follows_most_weight(x: list[float], side: int) -> None:
    """Left when equal; weights count, not rows."""
    X, y = np.array(x, float)[:, None], np.array(x) + 5
    for w, expected in ((None, side), (np.where(y == 5, 1.0, 100.0), 1), (np.where(y == 5, 100.0, 1.0), 0)):
        for criterion in ("gini", "squared_error"):
            model = learner(criterion).fit(X, y, w)
            assert model.predict([[np.nan]])[0] == 5 + expected
            assert (model.forest_.missing[0], model.forest_.met_missing[0]) == (expected, 0)


@settings(max_examples=50)
@given(data=st.data())
def test_unmet_missing_values_follow_most_weight_at_every_node(data: st.DataObject) -> None:
    X, y = data.draw(tables("gini"))
    model = learner("gini").fit(X, y)
    forest = model.forest_
    for i, rows in enumerate(members(model, X)):
        if forest.kind[i] == Test.LEAF:
            continue
        met = np.isnan(X[rows, forest.feature[i]]).any()
        assert forest.met_missing[i] == met
        left, right = (int(forest.stats[c].sum()) for c in forest.node(i).children)
        assert met or forest.missing[i] == (0 if left >= right else 1)


def frame(values: list[str | None], categories: str = "abcd") -> pd.DataFrame:
    return pd.DataFrame({"c": pd.Categorical(values, list(categories))})


def leaf_of(model: Any, value: str | None, categories: str = "abcd") -> int:
    return int(model.apply(frame([value], categories))[0])


def test_missing_unknown_and_known_stay_apart() -> None:
    """Six a, one b, two missing: a branch each. c was declared: a branch without rows; z is unknown: as most rows."""
    values = ["a"] * 6 + ["b"] + [None] * 2
    model = learner("gini", categorical_split="multiway").fit(frame(values), [0] * 6 + [1] + [2] * 2)
    forest = model.forest_
    a, b, nothing = (leaf_of(model, v) for v in ("a", "b", None))
    assert len({a, b, nothing}) == 3
    assert model.predict(frame(["a", "b", None])).tolist() == [0, 1, 2]
    unseen = forest.first_child[0] + forest.unseen[0]
    assert unseen == a, "the child with most rows"
    assert leaf_of(model, "z", "abcdz") == unseen
    empty = leaf_of(model, "c")
    assert forest.stats[empty].tolist() == [0, 0, 0]
    np.testing.assert_array_equal(forest.value[empty], forest.value[0], "as its parent")
    assert forest.n_children[0] == 5
    assert nothing == forest.first_child[0] + forest.missing[0]


def test_a_category_column_without_missing_values_sends_them_to_most_rows() -> None:
    model = learner("gini").fit(frame(["b"] * 4 + ["a"] * 2), [0] * 4 + [1] * 2)
    assert leaf_of(model, None) == leaf_of(model, "b") == leaf_of(model, "z", "abcdz")


@settings(max_examples=50)
@given(data=st.data())
def test_unknown_categories_follow_unseen(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 20))
    columns = [data.draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=n, max_size=n)) for _ in range(2)]
    y = data.draw(arrays.arrays(np.int64, n, elements=st.integers(0, 2)))
    X = pd.DataFrame({i: pd.Categorical(c, list("abc")) for i, c in enumerate(columns)}).set_axis(["u", "v"], axis=1)
    split = data.draw(st.sampled_from(["binary", "multiway"]))
    model = learner("entropy", categorical_split=split).fit(X, y if split == "multiway" else y > 1)
    forest = model.forest_
    node = 0
    while forest.kind[node] != Test.LEAF:
        test = forest.node(node)
        alone = {test.children[forest.missing[node]]} if forest.low[node] == np.inf or len(test.children) > 3 else set()
        node = int(forest.first_child[node] + forest.unseen[node])
        assert forest.stats[node].sum() == max(forest.stats[c].sum() for c in test.children if c not in alone)
    unknown = pd.DataFrame({"u": ["?"], "v": ["!"]})
    assert model.apply(unknown)[0] == node


@st.composite
def words(draw: st.DrawFn) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Two columns of letters with missing cells and a column of numbers; two labels."""
    n = draw(st.integers(2, 20))
    cells = st.lists(st.sampled_from([*"abcd", None]), min_size=n, max_size=n)
    frame = pd.DataFrame({name: pd.Series(draw(cells), dtype="str") for name in ("u", "v")})
    frame["x"] = draw(arrays.arrays(np.float64, n, elements=st.sampled_from([*VALUES, np.nan])))
    return frame, draw(arrays.arrays(np.int64, n, elements=st.integers(1, 2)))


CATEGORICAL = [
    {"categorical_split": "binary"},
    {"categorical_split": "multiway"},
    {"splitter": "random", "random_state": 3},
    {"categorical_split": "multiway", "max_leaf_nodes": 6},
]


@pytest.mark.parametrize("options", CATEGORICAL, ids=str)
@pytest.mark.parametrize("criterion", ["gini", "gain_ratio", "squared_error", "poisson"])
@settings(max_examples=30)
@given(data=st.data())
def test_a_weight_is_a_number_of_copies_of_categories(
    criterion: str, options: dict[str, Any], data: st.DataObject
) -> None:
    X, y = data.draw(words())
    w = data.draw(arrays.arrays(np.int64, len(X), elements=st.integers(1, 4)))
    w[0] = 1
    weighted = learner(criterion, **options).fit(X, y, w)
    copied = learner(criterion, **options).fit(X.iloc[np.repeat(np.arange(len(X)), w)], np.repeat(y, w))
    same(weighted.forest_, copied.forest_, (*RESULT, "score", *ROUTES))


@pytest.mark.parametrize("options", CATEGORICAL, ids=str)
@settings(max_examples=30)
@given(data=st.data())
def test_rows_types_and_names_of_categories_do_not_matter(options: dict[str, Any], data: st.DataObject) -> None:
    """Order of rows, other names in the same order, other numbers of the same categories: the same arrays."""
    X, y = data.draw(words())
    model = learner("gini", **options).fit(X, y)
    order = data.draw(st.permutations(range(len(X))))
    assert learner("gini", **options).fit(X.iloc[order], y[order]).fingerprint() == model.fingerprint()
    renamed = X.replace({"a": "k1", "b": "k22", "c": "k3", "d": "zz"})
    assert learner("gini", **options).fit(renamed, y).fingerprint() == model.fingerprint()
    objects = np.array(X.astype(object))
    np.testing.assert_array_equal(
        learner("gini", **options).fit(objects, y).forest_.value, model.forest_.value, "the same in an array of objects"
    )


@settings(max_examples=60)
@given(data=st.data())
def test_rows_of_categories_arrive_where_they_were_counted(data: st.DataObject) -> None:
    X, y = data.draw(words())
    options = data.draw(st.sampled_from(CATEGORICAL))
    check_routing(learner("entropy", **options).fit(X, y), X, y)
