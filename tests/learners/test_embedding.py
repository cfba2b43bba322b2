"""RandomTreesEmbedding: leaves as columns, the same on every device, and beside scikit-learn."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sklearn.ensemble
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_iris, make_circles
from sklearn.decomposition import TruncatedSVD
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

import gputree.learners.forest
from gputree import RandomTreesEmbedding
from gputree.core.forest import Test
from tests.backends.cards import emulate

THEIRS = sklearn.ensemble.RandomTreesEmbedding


def table(n: int = 200) -> NDArray[np.float64]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def test_columns_are_leaves() -> None:
    X = table()
    model = RandomTreesEmbedding(6, max_depth=3)
    found = model.fit_transform(X)
    assert (found != clone(model).fit(X).transform(X)).nnz == 0
    leaves, dense = model.apply(X), found.toarray()
    assert dense.shape[1] == model.forest_.n_leaves
    names = model.get_feature_names_out()
    for name, column in zip(names, dense.T, strict=True):
        tree, leaf = map(int, name.removeprefix("randomtreesembedding_").split("_"))
        np.testing.assert_array_equal(column, leaves[:, tree] == leaf)
    assert model.transform(np.full((1, 4), np.nan)).sum() == 6


@pytest.mark.parametrize(
    ("parameters", "leaves"),
    [
        ({"max_depth": None}, 150),
        ({"max_depth": 1}, 2),
        ({"max_leaf_nodes": 7, "max_depth": None}, 7),
        ({"max_depth": None, "min_samples_split": 150}, 2),
        ({"max_depth": None, "min_samples_leaf": 76}, 1),
    ],
    ids=str,
)
def test_shapes_are_those_of_scikit_learn(parameters: dict[str, Any], leaves: int) -> None:
    """Where a limit fixes the number of leaves whatever is drawn."""
    X = np.random.default_rng(1).normal(size=(150, 3)).astype(np.float32)
    ours, theirs = (cls(4, **parameters).fit_transform(X) for cls in (RandomTreesEmbedding, THEIRS))
    assert isinstance(ours, csr_matrix)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype) == ((150, 4 * leaves), np.float64)


def test_names_are_those_of_scikit_learn() -> None:
    X, _ = load_iris(return_X_y=True)
    ours, theirs = (cls(3, max_depth=1).fit(X).get_feature_names_out() for cls in (RandomTreesEmbedding, THEIRS))
    assert ours.dtype == theirs.dtype
    assert ours.tolist() == theirs.tolist()


def test_arrays_and_frames() -> None:
    pytest.importorskip("pandas")
    X, _ = load_iris(return_X_y=True, as_frame=True)
    model = RandomTreesEmbedding(3, max_depth=2, sparse_output=False)
    assert isinstance(model.fit_transform(X), np.ndarray)
    frame = model.set_output(transform="pandas").transform(X)
    assert frame.columns.tolist() == model.get_feature_names_out(X.columns).tolist()
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        model.get_feature_names_out(["a", "b", "c", "d"])


def test_one_feature_by_lot() -> None:
    X = np.random.default_rng(1).normal(size=(100, 5))
    forest = RandomTreesEmbedding(400, max_depth=1).fit(X).forest_
    share = np.bincount(forest.feature[forest.roots], minlength=5) / 400
    assert np.abs(share - 0.2).max() < 0.07
    assert (forest.kind[forest.roots] == Test.THRESHOLD).all()


@pytest.mark.parametrize("parameters", [{}, {"max_depth": None}, {"max_leaf_nodes": 9}], ids=str)
def test_a_forest_is_its_trees(parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, one by one, and in two fits."""
    X = table()
    model = RandomTreesEmbedding(8, random_state=5, **parameters)
    at_once = clone(model).fit(X)
    monkeypatch.setattr(gputree.learners.forest, "POSITIONS", 1)
    assert clone(model).fit(X).fingerprint() == at_once.fingerprint()
    warm = clone(model).set_params(n_estimators=3, warm_start=True).fit(X)
    assert warm.set_params(n_estimators=8).fit(X).fingerprint() == at_once.fingerprint()
    assert (warm.transform(X) != at_once.transform(X)).nnz == 0
    assert clone(model).set_params(random_state=6).fit(X).fingerprint() != at_once.fingerprint()
    assert (pickle.loads(pickle.dumps(at_once)).transform(X) != at_once.transform(X)).nnz == 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("parameters", [{}, {"max_leaf_nodes": 9}], ids=str)
def test_a_forest_of_the_device_is_that_of_the_cpu(
    parameters: dict[str, Any], weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = emulate(monkeypatch)
    X, weight = table(), np.arange(200) % 4.0 if weighted else None
    ours, theirs = (RandomTreesEmbedding(4, device=d, **parameters).fit(X, None, weight) for d in ("cuda", "cpu"))
    assert ours.fingerprint() == theirs.fingerprint()
    assert ours.fit_info_.backend == "cuda"
    assert (ours.transform(X) != theirs.transform(X)).nnz == 0
    assert machine.reserved == [0]
    assert (clone(ours).fit_transform(machine.xp.asarray(X), None, weight) != theirs.transform(X)).nnz == 0


def test_weights_are_copies() -> None:
    X = np.random.default_rng(1).normal(size=(60, 3))
    times = np.arange(60) % 3
    weighted = RandomTreesEmbedding(5, max_depth=None).fit(X, sample_weight=times)
    copied = RandomTreesEmbedding(5, max_depth=None).fit(np.repeat(X, times, axis=0))
    np.testing.assert_array_equal(weighted.forest_.low, copied.forest_.low)
    np.testing.assert_array_equal(weighted.forest_.feature, copied.forest_.feature)


@pytest.mark.parametrize("cls", [RandomTreesEmbedding, THEIRS], ids=["ours", "scikit-learn"])
def test_circles_are_parted_by_a_line(cls: Any) -> None:
    X, y = make_circles(factor=0.5, random_state=0)
    model = make_pipeline(cls(30, random_state=1), TruncatedSVD(2, random_state=0), LinearSVC(random_state=0))
    assert model.fit(X, y).score(X, y) == 1.0


def test_the_contract_of_scikit_learn() -> None:
    results = check_estimator(RandomTreesEmbedding(5), on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []


def test_parameters_are_those_of_scikit_learn() -> None:
    assert RandomTreesEmbedding().get_params().items() >= THEIRS().get_params().items()
    X, _ = load_iris(return_X_y=True)
    public = {name for name in dir(THEIRS(2).fit(X)) if not name.startswith("_")}
    kept = {"estimator", "estimator_params", "class_weight", "param"}  # what its base classes are made of
    assert public - set(dir(RandomTreesEmbedding(2).fit(X))) <= kept
    with pytest.raises(ValueError, match="sparse_output"):
        RandomTreesEmbedding(sparse_output=2).fit(X)
