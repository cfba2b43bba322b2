"""IsolationForest: scores against plain recomputation, tests drawn as in the paper, and beside scikit-learn."""

from __future__ import annotations

import math
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import sklearn.ensemble
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.stats import kstest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_blobs
from sklearn.ensemble._iforest import _average_path_length
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import check_estimator

import gputree.learners.isolation
from gputree import IsolationForest
from gputree.core.forest import Test
from gputree.learners.isolation import average_path_length
from tests.backends.cards import emulate


def table(n: int = 400) -> NDArray[np.float64]:
    """Rounded, so that there are equal rows, with missing cells and an outlier."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(n, 4)), 1)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[0] = 9.0
    return X


# -- scores


def test_mean_depth_of_a_search() -> None:
    """Equation 1 of the paper by hand, and scikit-learn's function."""
    n = np.arange(0, 3000)
    found = average_path_length(n)
    assert found[:3].tolist() == [0.0, 0.0, 1.0]
    assert found[3] == pytest.approx(2 * (math.log(2) + 0.5772156649) - 2 * 2 / 3, rel=1e-9)
    assert average_path_length(256) == pytest.approx(10.2448, abs=5e-5)
    np.testing.assert_allclose(found, _average_path_length(n), rtol=0, atol=1e-12)


def plain_scores(model: Any, X: NDArray[Any], columns: NDArray[Any] | slice = slice(None)) -> NDArray[np.float64]:
    """From the trees: depth of the leaf, and the rows of its tree that lie in it, counted one by one."""

    def c(n: int) -> float:
        return 0.0 if n < 2 else 1.0 if n == 2 else 2 * (math.log(n - 1) + np.euler_gamma) - 2 * (n - 1) / n

    scores = []
    for i in range(len(X)):
        depths = []
        for tree, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
            leaves = tree.apply(X)
            inside = sum(leaves[row] == leaves[i] for row in set(rows.tolist()))
            depths.append(tree.decision_path(X[i : i + 1]).nnz - 1 + c(int(inside)))
        scores.append(-(2 ** -(sum(depths) / len(depths) / c(model.max_samples_))))
    return np.array(scores)


@pytest.mark.parametrize("parameters", [{}, {"max_samples": 30}, {"bootstrap": True, "max_samples": 0.5}], ids=str)
def test_scores_follow_their_definition(parameters: dict[str, Any]) -> None:
    X = table(60)
    model = IsolationForest(n_estimators=4, **parameters).fit(X)
    expected = plain_scores(model, X)
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-12)
    np.testing.assert_allclose(model.decision_function(X), expected + 0.5, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), np.where(expected < -0.5, -1, 1))


def test_contamination_is_a_share_of_the_rows() -> None:
    X = table()
    model = IsolationForest(contamination=0.1).fit(X)
    assert model.offset_ == np.percentile(model.score_samples(X), 10)
    assert (model.predict(X) == -1).sum() == 40
    np.testing.assert_array_equal(clone(model).fit_predict(X), model.predict(X))
    assert IsolationForest().fit(X).offset_ == -0.5
    weight = np.arange(len(X)) % 2
    weighted = clone(model).fit(X, sample_weight=weight)
    assert weighted.offset_ == np.percentile(weighted.score_samples(X[1::2]), 10)
    assert model.score_samples(X).argmin() == 0


def test_one_row() -> None:
    """No search is needed; the score is scikit-learn's."""
    X = np.zeros((1, 2))
    assert IsolationForest().fit(X).score_samples(X) == sklearn.ensemble.IsolationForest().fit(X).score_samples(X)


# -- trees


def test_tests_are_random() -> None:
    """In each node a feature by lot and a threshold uniform between the ends of its values in the node."""
    X = np.random.default_rng(1).normal(size=(64, 3))
    model = IsolationForest(n_estimators=300).fit(X)
    shares, features = [], []
    for tree, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        forest, path = tree.forest_, tree.decision_path(X[rows]).tocsc()
        for node in np.flatnonzero(forest.kind == Test.THRESHOLD)[:3]:
            x = X[rows][path[:, node].nonzero()[0], forest.feature[node]]
            shares.append((forest.low[node] - x.min()) / (x.max() - x.min()))
            features.append(forest.feature[node])
    assert kstest(shares, "uniform").pvalue > 0.01
    assert np.abs(np.bincount(features) / len(features) - 1 / 3).max() < 0.05


def test_trees_end_where_rows_are_equal_or_at_the_limit() -> None:
    X = np.nan_to_num(table())
    model = IsolationForest(n_estimators=10, max_samples=100).fit(X)
    for tree, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        assert tree.get_depth() == 7  # 2^7 is the first power of two not below 100
        leaves, forest = tree.apply(X[rows]), tree.forest_
        for leaf in np.flatnonzero(forest.kind == Test.LEAF):
            inside = X[rows][leaves == leaf]
            assert len(inside)
            assert forest.depth[leaf] == 7 or (inside == inside[0]).all()
    assert IsolationForest(max_samples=2, n_estimators=3).fit(X).forest_.max_depth == 1
    assert IsolationForest(n_estimators=3).fit(np.ones((20, 2))).forest_.n_nodes == 3


def test_missing_values_take_either_side() -> None:
    """They are no test of their own, so a column of one value and missing ones parts nothing."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 2))
    X[rng.random(X.shape) < 0.2] = np.nan
    forest = IsolationForest(n_estimators=60).fit(X).forest_
    inner = (forest.kind != Test.LEAF) & (forest.met_missing == 1)
    assert abs(forest.missing[inner].mean() - 0.5) < 0.1
    assert np.isfinite(forest.low).all()
    alone = np.where(np.arange(50) % 5, 1.0, np.nan)[:, None]
    assert IsolationForest(n_estimators=2).fit(alone).forest_.n_nodes == 2


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize(("max_samples", "draws"), [("auto", 256), (40, 40), (0.25, 75), (1.0, 300), (1e-9, 1)])
def test_draws(max_samples: Any, draws: int, bootstrap: bool) -> None:
    model = IsolationForest(n_estimators=3, max_samples=max_samples, bootstrap=bootstrap).fit(table(300))
    assert model.max_samples_ == draws
    for tree, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        assert rows.size == draws
        assert np.unique(rows).size == int(tree.tree_.n_node_samples[0])
        assert (np.unique(rows).size == draws) == (not bootstrap or draws == 1)


def test_more_draws_than_rows() -> None:
    X = table(50)
    with pytest.warns(
        UserWarning, match=r"max_samples \(80\) is greater than the total number of samples \(50\)"
    ) as found:
        model = IsolationForest(n_estimators=2, max_samples=80).fit(X)
    assert model.max_samples_ == 50
    assert found[0].filename == __file__


@pytest.mark.parametrize("bootstrap", [False, True])
def test_weights_are_probabilities_of_draws(bootstrap: bool) -> None:
    """A third of the rows has weight 0, another 9 times that of the rest."""
    weight = np.tile([0.0, 1.0, 9.0], 200)
    model = IsolationForest(n_estimators=100, max_samples=20, bootstrap=bootstrap).fit(table(600), sample_weight=weight)
    drawn = np.concatenate(model.estimators_samples_) % 3
    assert not (drawn == 0).any()
    assert abs((drawn == 2).mean() - 0.9) < 0.02
    few = IsolationForest(n_estimators=2).fit(table(600), sample_weight=np.arange(600) < 10)
    assert few.max_samples_ == 10


def test_columns_of_trees() -> None:
    """Trees of drawn columns number them among themselves, as scikit-learn's do."""
    X = np.random.default_rng(3).normal(size=(200, 5))
    model = IsolationForest(n_estimators=40, max_features=2).fit(X)
    chosen = model.estimators_features_
    assert {c.size for c in chosen} == {2}
    assert len({tuple(c) for c in chosen}) > 5
    leaves = model.apply(X)
    for t, (tree, columns) in enumerate(zip(model.estimators_, chosen, strict=True)):
        used = model.forest_.tree(t).feature
        assert set(used[used >= 0]) == set(columns)
        assert tree.tree_.n_features == tree.n_features_in_ == 2
        np.testing.assert_array_equal(tree.apply(X[:, columns]), leaves[:, t])
    assert all(c.tolist() == [0, 1, 2, 3, 4] for c in IsolationForest(n_estimators=3).fit(X).estimators_features_)
    assert {c.size for c in IsolationForest(n_estimators=3, max_features=0.5).fit(X).estimators_features_} == {2}
    with pytest.raises(ValueError, match="max_features=6 must be <= n_features, and X has 5"):
        IsolationForest(max_features=6).fit(X)


# -- one forest, however it is grown

SETTINGS = pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"max_samples": 50, "max_features": 2},
        {"bootstrap": True, "max_samples": 100},
        {"bootstrap": True, "max_features": 0.5},
    ],
    ids=str,
)


@SETTINGS
def test_a_forest_is_its_trees(parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, one by one, three at a time, and in two fits."""
    X = table()
    model = IsolationForest(n_estimators=8, random_state=5, **parameters)
    at_once = clone(model).fit(X)
    for rows in (1, 3 * at_once.max_samples_):
        monkeypatch.setattr(gputree.learners.isolation, "EXACT_ROWS", rows)
        assert clone(model).fit(X).fingerprint() == at_once.fingerprint()
    warm = clone(model).set_params(n_estimators=3, warm_start=True).fit(X)
    assert warm.set_params(n_estimators=8).fit(X).fingerprint() == at_once.fingerprint()
    np.testing.assert_array_equal(warm.score_samples(X), at_once.score_samples(X))
    np.testing.assert_array_equal(warm.estimators_features_, at_once.estimators_features_)
    assert clone(model).set_params(random_state=6).fit(X).fingerprint() != at_once.fingerprint()
    again = pickle.loads(pickle.dumps(at_once))
    np.testing.assert_array_equal(again.score_samples(X), at_once.score_samples(X))


@SETTINGS
def test_a_sparse_table_gives_the_same_trees(parameters: dict[str, Any]) -> None:
    X, model = np.nan_to_num(table(), nan=0.0), IsolationForest(n_estimators=5, **parameters)
    assert clone(model).fit(csr_matrix(X)).fingerprint() == model.fit(X).fingerprint()


def test_trees_of_drawn_columns_of_categories() -> None:
    X = table().astype(object)
    X[:, 1] = np.where(np.arange(400) % 3, "a", "b")
    model = IsolationForest(n_estimators=6, max_features=2).fit(X)
    leaves = model.apply(X)
    for t, (tree, columns) in enumerate(zip(model.estimators_, model.estimators_features_, strict=True)):
        np.testing.assert_array_equal(tree.apply(X[:, columns]), leaves[:, t])


@SETTINGS
@pytest.mark.parametrize("weighted", [False, True])
def test_a_forest_of_the_device_is_that_of_the_cpu(
    parameters: dict[str, Any], weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = emulate(monkeypatch)
    X, weight = table(), np.arange(400) % 4.0 if weighted else None
    ours, theirs = (
        IsolationForest(n_estimators=4, device=device, **parameters).fit(X, sample_weight=weight)
        for device in ("cuda", "cpu")
    )
    assert ours.fingerprint() == theirs.fingerprint()
    assert ours.fit_info_.backend == "cuda"
    np.testing.assert_array_equal(ours.score_samples(X), theirs.score_samples(X))
    assert machine.reserved == [0]


def test_tables_in_device_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores come back there."""
    machine = emulate(monkeypatch)
    X = table()
    there, here = machine.xp.asarray(X), IsolationForest(n_estimators=3, contamination=0.1).fit(X)
    model = clone(here).set_params(device="cuda").fit(there)
    assert model.fingerprint() == here.fingerprint()
    for name in ("score_samples", "decision_function", "predict"):
        found = getattr(model, name)(there)
        assert isinstance(found, machine.xp.ndarray)
        np.testing.assert_array_equal(found.get(), getattr(here, name)(X))


def test_a_large_table_is_not_approximated() -> None:
    """Trees of few rows see exact values: the outlier is parted from the largest of the others."""
    X = np.random.default_rng(4).normal(size=(70_000, 1))
    X[7] = 1000.0
    weight = np.where(np.arange(70_000) == 7, 1e6, 1.0)  # so that the outlier is drawn
    model = IsolationForest(n_estimators=20).fit(X, sample_weight=weight)
    assert (model.forest_.low[model.forest_.roots] > 5).all()
    assert model.score_samples(X[:20]).argmin() == 7


def test_tables_of_any_kind() -> None:
    pd = pytest.importorskip("pandas")
    X = np.nan_to_num(table())
    usual = IsolationForest(n_estimators=5, contamination=0.1).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        framed = IsolationForest(n_estimators=5, contamination=0.1).fit(pd.DataFrame(X, columns=list("abcd")))
    sparse = IsolationForest(n_estimators=5, contamination=0.1, max_features=1.0).fit(csr_matrix(X))
    assert usual.fingerprint() == framed.fingerprint() == sparse.fingerprint()
    np.testing.assert_array_equal(sparse.score_samples(csr_matrix(X)), usual.score_samples(X))
    frame = pd.DataFrame({"a": ["x"] * 99 + ["y"], "b": np.zeros(100)})
    model = IsolationForest().fit(frame)
    assert model.predict(frame).tolist() == [1] * 99 + [-1]


def test_no_feature_is_important() -> None:
    assert not hasattr(IsolationForest(n_estimators=2).fit(table()), "feature_importances_")


def test_the_contract_of_scikit_learn() -> None:
    """The two checks that scikit-learn's own fails: rows are drawn."""
    drawn = {f"check_sample_weight_equivalence_on_{kind}_data": "rows are drawn" for kind in ("dense", "sparse")}
    results = check_estimator(IsolationForest(n_estimators=5), expected_failed_checks=drawn, on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []


def test_parameters_are_those_of_scikit_learn() -> None:
    ours, theirs = IsolationForest().get_params(), sklearn.ensemble.IsolationForest().get_params()
    assert ours.items() >= theirs.items()
    X, _ = load_iris(return_X_y=True)
    fitted = sklearn.ensemble.IsolationForest(n_estimators=2).fit(X)
    public = {name for name in dir(fitted) if not name.startswith("_")}
    kept = {"bootstrap_features", "estimator", "estimator_params"}  # what its base classes are made of
    assert public - set(dir(IsolationForest(n_estimators=2).fit(X))) <= kept
    for wrong in ({"contamination": 0.6}, {"max_samples": 1.5}, {"max_samples": 0}, {"max_features": 0.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            IsolationForest(**wrong).fit(X)


# -- beside scikit-learn


def rare_cancers() -> tuple[NDArray[Any], NDArray[Any]]:
    X, y = load_breast_cancer(return_X_y=True)
    rare = (y == 0) & (np.cumsum(y == 0) <= 40)
    keep = (y == 1) | rare
    return X[keep], rare[keep]


def strewn_blobs() -> tuple[NDArray[Any], NDArray[Any]]:
    X, _ = make_blobs(1000, 6, centers=3, cluster_std=2.5, random_state=0)
    strewn = np.random.default_rng(0).uniform(X.min(axis=0), X.max(axis=0), (50, 6))
    return np.vstack([X, strewn]), np.arange(1050) >= 1000


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("load", [rare_cancers, strewn_blobs], ids=lambda f: f.__name__)
def test_outliers_are_found_as_well_as_by_scikit_learn(load: Any, missing: float) -> None:
    """Mean areas of ten seeds differ by less than 3 standard errors of the paired differences, and 0.003."""
    X, outlier = load()
    areas = []
    for seed in range(10):
        table = np.where(np.random.default_rng(seed).random(X.shape) < missing, np.nan, X)
        models = (
            cls(n_estimators=60, random_state=seed) for cls in (IsolationForest, sklearn.ensemble.IsolationForest)
        )
        areas.append([roc_auc_score(outlier, -model.fit(table).score_samples(table)) for model in models])
    difference = np.subtract(*np.transpose(areas))
    assert np.mean(areas) > 0.8
    assert abs(difference.mean()) < 3 * difference.std(ddof=1) / np.sqrt(10) + 0.003
