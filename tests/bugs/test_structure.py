"""What may not change a tree, what a limit means when it is just met, and sizes beyond 16 and 32 bits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import is_classifier

from tests.bugs.shared import (
    EIGHT,
    LEARNERS,
    STEP,
    TASKS,
    WAYS,
    Classifier,
    Regressor,
    assert_separates,
    same_tests,
)

CLASS_CRITERIA = ["gini", "entropy", "train_error", "gain_ratio", "twoing", "chi2"]
NUMBER_CRITERIA = ["squared_error", "poisson"]


def learner(criterion: str, **settings: Any) -> Any:
    cls = Classifier if criterion in CLASS_CRITERIA else Regressor
    return cls(criterion=criterion, **settings)


def table(n: int = 60) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Real numbers, a column of few values, missing cells, labels 1 to 3."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(n, 3)), rng.integers(0, 4, n)]
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, rng.integers(1, 4, n)


def mixed_frame(n: int = 80) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Numbers, text and booleans with missing cells, two classes."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"x": rng.normal(size=n), "c": rng.choice([*"uvwxyz"], n), "b": rng.random(n) < 0.5})
    return X.mask(rng.random(X.shape) < 0.1), rng.integers(0, 2, n)


CRITERIA_AND_WAYS = [(criterion, "level by level") for criterion in CLASS_CRITERIA + NUMBER_CRITERIA]
CRITERIA_AND_WAYS += [(criterion, way) for criterion in ("gini", "poisson") for way in ("best first", "random tests")]


@pytest.mark.parametrize(("criterion", "way"), CRITERIA_AND_WAYS)
def test_T01_three_fits_are_equal_to_the_bit(criterion: str, way: str) -> None:
    """The same seed, the same data, with weights and without: the same arrays."""
    X, y = table(24)
    w = np.random.default_rng(2).random(y.size) + 0.1
    for weight in (None, w):
        models = [learner(criterion, random_state=4, **WAYS[way]).fit(X, y, weight) for _ in range(3)]
        assert len({model.fingerprint() for model in models}) == 1


def test_T02_several_threads_at_once_give_what_one_gives() -> None:
    """Eight fits and eight predictions of one model side by side: no state is shared."""
    X, y = table(500)
    models = [cls(random_state=seed) for cls in LEARNERS for seed in (0, 1)]
    alone = [model.fit(X, y).fingerprint() for model in models]
    shares = models[0].predict_proba(X)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda model: model.fit(X, y).fingerprint(), models))
        predicted = list(pool.map(lambda _: models[0].predict_proba(X), range(8)))
    assert together == alone
    assert all((each == shares).all() for each in predicted)


@pytest.mark.parametrize("cls", LEARNERS)
@pytest.mark.parametrize("way", WAYS)
def test_T04_row_order_does_not_change_the_model(cls: Any, way: str) -> None:
    """One column, many columns, missing cells, ties, weights: rows permuted, the same arrays."""
    rng = np.random.default_rng(0)
    X, y = table()
    w, order = rng.integers(1, 5, y.size) / 3, rng.permutation(y.size)
    for columns in ([0], [0, 1, 2, 3]):
        for weight in (None, w):
            own = cls(**WAYS[way]).fit(X[:, columns], y, weight)
            moved = cls(**WAYS[way]).fit(X[order][:, columns], y[order], None if weight is None else weight[order])
            assert moved.fingerprint() == own.fingerprint()


@pytest.mark.parametrize("cls", LEARNERS)
@pytest.mark.parametrize("split", ["binary", "multiway"])
def test_T04_row_order_does_not_order_categories(cls: Any, split: str) -> None:
    """Text, booleans and missing cells: rows permuted, the same arrays."""
    X, y = mixed_frame()
    order = np.random.default_rng(3).permutation(y.size)
    own = cls(categorical_split=split).fit(X, y)
    assert cls(categorical_split=split).fit(X.iloc[order], y[order]).fingerprint() == own.fingerprint()


@pytest.mark.parametrize("criterion", CLASS_CRITERIA + NUMBER_CRITERIA)
def test_T05_a_common_factor_of_the_weights_does_not_change_the_tree(criterion: str) -> None:
    """Whole and real weights, large and tiny factors: the same tests."""
    X, y = table(40)
    rng = np.random.default_rng(4)
    for w in (rng.integers(1, 9, y.size).astype(float), rng.random(y.size) + 0.01):
        own = learner(criterion).fit(X, y, w)
        for factor in (1.1, 1e-3, 1e6, 1e-30, 1e30):
            same_tests(own, learner(criterion).fit(X, y, w * factor))


@pytest.mark.parametrize("cls", LEARNERS)
@pytest.mark.parametrize("way", ["best first", "random tests"])
def test_T05_a_common_factor_changes_neither_queue_nor_draws(cls: Any, way: str) -> None:
    """The same, where nodes wait for each other and where thresholds are drawn."""
    X, y = table(40)
    w = np.random.default_rng(4).random(y.size) + 0.01
    for factor in (1.1, 1e-30, 1e30):
        same_tests(cls(**WAYS[way]).fit(X, y, w), cls(**WAYS[way]).fit(X, y, w * factor))


@pytest.mark.parametrize("factor", [0.7, 1e-30, 1e30])
@pytest.mark.parametrize("split", ["binary", "multiway"])
def test_T05_a_common_factor_does_not_change_sets_of_categories(split: str, factor: float) -> None:
    """Subsets and branches of categories under weights of any unit."""
    X, y = mixed_frame()
    w = np.random.default_rng(5).integers(1, 6, y.size)
    for cls in TASKS:
        models = [cls(categorical_split=split).fit(X, y, weight) for weight in (w, w * factor)]
        same_tests(*models)


@pytest.mark.parametrize(("criterion", "way"), [pair for pair in CRITERIA_AND_WAYS if pair[1] != "random tests"])
def test_T07_an_increasing_map_of_x_keeps_training_predictions(criterion: str, way: str) -> None:
    """X, exp(X), ranks and a power: the same leaf for every row."""
    X, y = table()
    ranks = np.where(np.isnan(X), np.nan, np.argsort(np.argsort(X, axis=0), axis=0))
    ranks[:, 3] = X[:, 3]
    own = learner(criterion, **WAYS[way]).fit(X, y).apply(X)
    for Z in (np.exp(X), ranks, X**3, 1e300 * X):
        np.testing.assert_array_equal(learner(criterion, **WAYS[way]).fit(Z, y).apply(Z), own)


def test_T08_max_depth_holds_beside_max_leaf_nodes() -> None:
    """Three rows, depth 1, 99 leaves allowed: three nodes."""
    for cls in TASKS:
        assert cls(max_depth=1, max_leaf_nodes=99).fit([[0], [1], [2]], [0, 1, 2]).tree_.node_count == 3


@pytest.mark.parametrize("cls", LEARNERS)
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_T08_no_leaf_lies_deeper_than_max_depth(cls: Any, depth: int) -> None:
    """Level by level and best first, with budgets below and above what the depth allows."""
    X, y = table()
    for leaves in (None, 3, 2**depth, 999):
        model = cls(max_depth=depth, max_leaf_nodes=leaves).fit(X, y)
        assert model.get_depth() <= depth
        assert model.get_n_leaves() <= min(2**depth, leaves or 2**depth)
        if leaves is None or leaves >= 2**depth:
            assert model.fingerprint() == cls(max_depth=depth).fit(X, y).fingerprint()


@pytest.mark.parametrize("cls", LEARNERS)
@pytest.mark.parametrize("leaves", [None, 40])
def test_T10_the_least_share_of_weight_holds_with_and_without_weights(cls: Any, leaves: int | None) -> None:
    """A tenth of 170 rows: every leaf has at least 17; with weights, a tenth of their sum."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(170, 4)), rng.integers(0, 2, 170)
    w = rng.integers(0, 7, 170) / 3
    for weight, least in ((None, 17), (w, w.sum() / 10)):
        tree = cls(min_weight_fraction_leaf=0.1, max_leaf_nodes=leaves).fit(X, y, weight).tree_
        assert tree.node_count > 3
        assert tree.weighted_n_node_samples[tree.children_left == -1].min() >= least * (1 - 1e-12)


@pytest.mark.parametrize("weight", [None, 1.0, 0.1, 0.7, 1 / 3, 1e-30])
@pytest.mark.parametrize("cls", TASKS)
def test_T11_an_exact_half_of_the_weight_is_allowed(cls: Any, weight: float | None) -> None:
    """Six rows of equal weight, half of it at least in a leaf: split in the middle."""
    w = None if weight is None else np.full(6, weight)
    for leaves in (None, 2):
        model = cls(min_weight_fraction_leaf=0.5, max_leaf_nodes=leaves).fit(EIGHT[:6], [0, 0, 0, 1, 1, 1], w)
        assert model.tree_.threshold[0] == 2.5


@pytest.mark.parametrize("cls", TASKS)
def test_T11_copies_of_rows_do_not_change_the_tree(cls: Any) -> None:
    """Every row twice, or with weight 2, or once: the same split at half of the weight."""
    X, y = EIGHT[:6], np.array([0, 0, 0, 1, 1, 1])
    models = [
        cls(min_weight_fraction_leaf=0.5).fit(X, y),
        cls(min_weight_fraction_leaf=0.5).fit(X, y, np.full(6, 2)),
        cls(min_weight_fraction_leaf=0.5).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2)),
    ]
    assert [model.tree_.threshold.tolist() for model in models] == [[2.5, -2, -2]] * 3


@pytest.mark.parametrize("offset", [0, 1e8])
@pytest.mark.parametrize("leaves", [None, 9])
def test_T13_a_decrease_that_is_just_met_splits(offset: float, leaves: int | None) -> None:
    """The decrease is 0.25: a limit of 0.25 splits, one of 0.2500001 does not; weights of any unit alike."""
    for w in (None, np.full(8, 0.1), np.full(8, 1e-30)):
        met, missed = (Regressor(min_impurity_decrease=d, max_leaf_nodes=leaves) for d in (0.25, 0.2500001))
        assert met.fit(EIGHT, offset + STEP, w).get_n_leaves() == 2
        assert missed.fit(EIGHT, offset + STEP, w).get_n_leaves() == 1


@pytest.mark.parametrize(("criterion", "decrease"), [("gini", 0.5), ("entropy", 1.0), ("train_error", 0.5)])
def test_T13_decreases_of_classes_that_are_just_met_split(criterion: str, decrease: float) -> None:
    """Four rows of each class, parted by one test: the impurity of the root is the decrease."""
    met, missed = (Classifier(criterion=criterion, min_impurity_decrease=d) for d in (decrease, decrease * 1.0000001))
    assert met.fit(EIGHT, STEP).get_n_leaves() == 2
    assert missed.fit(EIGHT, STEP).get_n_leaves() == 1


def test_T14_a_column_constant_in_one_node_is_tried_in_its_sibling() -> None:
    """Column 1 varies only where column 0 is 1; also where it is all missing in the other node, or of text."""
    X = np.array([[0, 0]] * 4 + [[1, 0]] * 2 + [[1, 1]] * 2, float)
    y = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    assert_separates(X, y)
    X[:4, 1] = np.nan
    assert_separates(X, y)
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] == 1, "t", "s")})
    assert Regressor().fit(frame, y).predict(frame).tolist() == y.tolist()


def test_O01_rows_times_columns_beyond_32_bits() -> None:
    """900,000 rows of 2,500 float32 columns, which share one row's memory: every row of a block gets its leaf."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2500)).astype(np.float32), np.arange(40)
    model = Regressor().fit(X, y)
    tall = np.broadcast_to(X[7], (900_000, 2500))
    assert tall.size > 2**31
    assert set(model.apply(tall).tolist()) == {model.apply(X[7:8]).item()}


def test_O02_more_leaves_than_16_bits_can_number() -> None:
    """81,920 cells of a grid, a value each; ids of children, parents and leaves do not wrap."""
    grid = np.indices((64, 64, 20)).reshape(3, -1).T
    y = np.random.default_rng(0).permutation(len(grid))
    model = Regressor().fit(grid, y)
    assert model.get_n_leaves() == 81_920
    np.testing.assert_array_equal(model.predict(grid), y)
    assert np.unique(model.apply(grid)).size == 81_920


@pytest.mark.parametrize("cls", LEARNERS)
def test_O04_many_classes(cls: Any) -> None:
    """300 classes of three rows: every row right, a share for each class; two outputs of 60."""
    y = np.repeat(np.arange(300), 3)
    X = np.random.default_rng(0).permutation(300)[y][:, None]
    model = cls().fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    X, y = X[y < 60], y[y < 60]
    both = cls().fit(X, np.c_[y, y[::-1]])
    np.testing.assert_array_equal(both.predict(X), np.c_[y, y[::-1]])
    if is_classifier(model):
        assert model.predict_proba(X).shape == (180, 300)
        assert [p.shape for p in both.predict_proba(X)] == [(180, 60)] * 2


@pytest.mark.parametrize("dtype", [np.uint32, np.int64, np.uint64, np.float32, np.float64])
@pytest.mark.parametrize("weight", [2**31, 2**62])
def test_O05_weights_whose_sum_exceeds_32_or_64_bits(weight: int, dtype: Any) -> None:
    """Weights 2^31 or 2^62, four times: the mean of 0 to 3, quarters of four classes, an exact total."""
    if dtype == np.uint32 and weight > 2**32:
        weight = 2**32 - 1
    w = np.full(4, weight).astype(dtype)
    model = Regressor().fit(np.zeros((4, 1)), [0, 1, 2, 3], w)
    assert model.predict([[0.0]])[0] == 1.5
    assert model.tree_.weighted_n_node_samples[0] == 4.0 * float(w[0])
    assert Classifier().fit(np.zeros((4, 1)), [0, 1, 2, 3], w).predict_proba([[0.0]]).tolist() == [[0.25] * 4]


def test_XOR_is_learnt() -> None:
    """Four points, no gain at the root: every corner is a leaf; also of three bits, text and booleans."""
    bits = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)])
    assert_separates(bits[::2, :2], bits[::2, 0] ^ bits[::2, 1])
    assert_separates(bits, bits.sum(axis=1) % 2)
    for frame in (pd.DataFrame(bits.astype(bool)), pd.DataFrame(np.where(bits == 1, "on", "off"))):
        for split in ("binary", "multiway"):
            model = Classifier(categorical_split=split).fit(frame, bits.sum(axis=1) % 2)
            assert model.score(frame, bits.sum(axis=1) % 2) == 1
            assert model.get_n_leaves() == 8
