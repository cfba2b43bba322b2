"""Bags of C4.5, ID3 and other trees: each is that of its rows alone, on every backend and however they are grown."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import check_estimator

import gputree
import gputree.learners.forest
from gputree import BaggingTreeClassifier, C45Classifier, DecisionTreeClassifier, ID3Classifier, MDLTreeClassifier
from gputree.core.forest import SPREAD, Test
from gputree.core.keys import Stream, draw, root_keys
from gputree.pruning import ErrorBased, ReducedError
from gputree.stopping import ChiSquare, CrossValidated, MaxDepth
from tests.backends.cards import emulate

Table = tuple[pd.DataFrame, NDArray[Any]]


def mixed(n: int = 240) -> Table:
    """Numbers, text and declared categories, a tenth of the cells missing."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 4))
    y = np.array(["a", "b", "c"])[np.digitize(z[:, 0] + z[:, 1] * (z[:, 2] > 0) + rng.normal(size=n) / 2, [-0.6, 0.6])]
    frame = pd.DataFrame(
        {
            "few": z[:, 0].round(1),
            "many": z[:, 1],
            "text": np.array(["low", "middle", "high"], object)[np.digitize(z[:, 2], [-0.5, 0.5])],
            "declared": pd.Categorical.from_codes(np.clip((2 * z[:, 3] + 3).astype(int), 0, 6), list("pqrstuvwx")),
        }
    )
    for name in frame:
        frame.loc[rng.random(n) < 0.1, name] = None
    return frame, y


def named(n: int = 240) -> Table:
    """Columns of names alone, nothing missing."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"c{i}": rng.integers(0, k, n) for i, k in enumerate((2, 3, 4, 5, 2))})
    return frame, np.minimum(frame["c0"] + (frame["c2"] > 1) + (rng.random(n) < 0.2), 2).to_numpy()


TREES: dict[str, tuple[Callable[[], Any], Callable[[], Table]]] = {
    "c4.5": (C45Classifier, mixed),
    "c4.5 as it is grown": (lambda: C45Classifier(pruning=None, collapse=False, constants="c4.5"), mixed),
    "c4.5 by gain, not raised": (lambda: C45Classifier(criterion="entropy", subtree_raising=False), mixed),
    "c4.5, light branches": (lambda: C45Classifier(min_weight=0.5, confidence=0.45), mixed),
    "id3": (ID3Classifier, named),
    "dtl, in its base": (lambda: ID3Classifier(variant="dtl", base="classes", max_depth=3), named),
    "id3, gain ratio": (lambda: ID3Classifier(criterion="gain_ratio", constant="test"), named),
    "c4.5, stopped": (lambda: C45Classifier(stopping=ChiSquare(0.2) | MaxDepth(4)), mixed),
    "message": (MDLTreeClassifier, mixed),
    "tree": (lambda: DecisionTreeClassifier(categorical_split="multiway", ccp_alpha=0.01), mixed),
    "tree, raised": (lambda: DecisionTreeClassifier(categorical_split="multiway", pruning=ErrorBased(0.4)), mixed),
}
NAMES = pytest.mark.parametrize("name", TREES)


def bags(name: str, **settings: Any) -> tuple[Any, pd.DataFrame, NDArray[Any]]:
    make, table = TREES[name]
    X, y = table()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* rows are in every bag")
        return BaggingTreeClassifier(make(), **{"n_estimators": 4, **settings}).fit(X, y), X, y


@pytest.fixture(params=["numpy", "jit", "emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "jit":
        pytest.importorskip("numba", reason="expected: without Numba")
    if request.param == "emulated":
        emulate(monkeypatch)
        return "cuda"
    return str(request.param)


@NAMES
def test_each_tree_is_that_of_its_rows_alone(name: str, device: str) -> None:
    """The multiplicities of the bag as weights; rows that are spread have shares of them."""
    model, X, y = bags(name, device=device)
    assert model.fit_info_.backend == device
    leaves = []
    for tree, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        times = np.bincount(rows, minlength=len(X))
        assert times.min() == 0
        assert times.max() > 1
        alone = clone(TREES[name][0]().set_params(device="numpy")).fit(X, y, sample_weight=times)
        assert tree.fingerprint() == alone.fingerprint()
        np.testing.assert_array_equal(tree.predict_proba(X), alone.predict_proba(X))
        assert type(tree) is type(alone)
        leaves.append(tree.get_n_leaves())
    assert max(leaves) > 2
    assert (model.forest_.missing == SPREAD).any() == name.startswith("c4.5")


@NAMES
def test_however_it_is_grown(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, one by one, three at a time, in two fits, in threads; with columns drawn in every node."""
    settings = {"n_estimators": 7, "max_features": 2, "random_state": 5}
    model, X, y = bags(name, **settings)
    at_once = model.fingerprint()
    for rows in (1, 3 * len(X)):
        monkeypatch.setattr(gputree.learners.forest, "POSITIONS", rows)
        assert bags(name, **settings)[0].fingerprint() == at_once
    warm = bags(name, **{**settings, "n_estimators": 3}, warm_start=True)[0]
    assert warm.set_params(n_estimators=7).fit(X, y).fingerprint() == at_once
    assert bags(name, n_estimators=7, random_state=5)[0].fingerprint() != at_once
    pytest.importorskip("numba", reason="expected: without Numba")
    for more in ({"device": "jit", "n_jobs": 1}, {"device": "jit", "n_jobs": 2}):
        assert bags(name, **settings, **more)[0].fingerprint() == at_once


def test_the_columns_of_a_root_are_those_that_its_key_draws() -> None:
    """The gate of C4.5 compares these alone; where none has a test the next ones are asked."""
    X, y = named()
    X = X.assign(nothing=0, none="x", null=1).astype("category")
    model = BaggingTreeClassifier(
        C45Classifier(max_depth=1, pruning=None, collapse=False), 30, bootstrap=False, max_features=2, random_state=3
    ).fit(X, y)
    skipped = 0
    for t, tree in enumerate(model.estimators_):
        hashes = [int(draw(root_keys(3, t), Stream.FEATURE, i)) for i in range(X.shape[1])]
        ranked = sorted(range(X.shape[1]), key=hashes.__getitem__)
        for turn in range(0, X.shape[1], 2):
            columns = sorted(ranked[turn : turn + 2])
            alone = C45Classifier(max_depth=1, pruning=None, collapse=False).fit(X.iloc[:, columns], y).forest_
            if alone.kind[0] != Test.LEAF:
                break
            skipped += 1
        assert tree.forest_.feature[0] == columns[alone.feature[0]]
    assert skipped


@NAMES
@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_predictions_are_those_of_the_trees(name: str, voting: str) -> None:
    """Their mean, or one vote each, also of a row that falls into several leaves."""
    model, X, _ = bags(name, voting=voting)
    each = np.stack([tree.predict_proba(X) for tree in model.estimators_])
    if voting == "hard":
        each = np.eye(3)[each.argmax(axis=2)]
    np.testing.assert_allclose(model.predict_proba(X), each.mean(axis=0), rtol=0, atol=1e-15)
    assert model.predict(X).tolist() == model.classes_[model.predict_proba(X).argmax(axis=1)].tolist()
    for t, tree in enumerate(model.estimators_):
        np.testing.assert_array_equal(model.apply(X)[:, t], tree.apply(X))


@NAMES
@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_out_of_bag_figures(name: str, voting: str) -> None:
    """From the trees whose bags lack a row, one by one."""
    model, X, y = bags(name, n_estimators=12, oob_score=True, voting=voting)
    total, count = np.zeros((len(X), 3)), np.zeros(len(X))
    for tree, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        out = np.setdiff1d(np.arange(len(X)), rows)
        shares = tree.predict_proba(X)[out]
        total[out] += shares if voting == "soft" else np.eye(3)[shares.argmax(axis=1)]
        count[out] += 1
    known = count > 0
    mean = total[known] / count[known, None]
    np.testing.assert_allclose(model.oob_decision_function_[known], mean, rtol=0, atol=1e-15)
    assert np.isnan(model.oob_decision_function_[~known]).all()
    assert model.oob_score_ == np.mean(model.classes_[mean.argmax(axis=1)] == y[known])
    assert model.permutation_importances(X, y).argmax() in (0, 2)


@NAMES
def test_files_and_pickles(name: str, tmp_path: Path) -> None:
    model, X, _ = bags(name, oob_score=True, class_weight="balanced")
    gputree.save(model, tmp_path / "bags.gputree")
    gputree.save(model, tmp_path / "whole.gputree", compact=False)
    copies = [gputree.load(tmp_path / f"{name}.gputree") for name in ("bags", "whole")]
    for again in (*copies, pickle.loads(pickle.dumps(model))):
        assert again.fingerprint() == model.fingerprint()
        assert again.estimator.get_params() == model.estimator.get_params()
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.oob_decision_function_, model.oob_decision_function_)
        assert again.estimators_[2].fingerprint() == model.estimators_[2].fingerprint()


def test_values_that_no_row_had() -> None:
    """They end at the node, and a class may be named for them."""
    X, y = named()
    X["c3"] = X["c3"] % 4
    strange = X.assign(c3=2, c2=2)
    for literal in (None, 2):
        model = BaggingTreeClassifier(ID3Classifier(literal_empty=literal, categories={"c2": range(9)}), 5).fit(X, y)
        each = np.stack([tree.predict_proba(strange) for tree in model.estimators_])
        np.testing.assert_allclose(model.predict_proba(strange), each.mean(axis=0), rtol=0, atol=1e-15)


def test_rules_and_texts_of_the_trees() -> None:
    model, X, _ = bags("c4.5")
    for tree in model.estimators_:
        known = X.dropna()
        assert gputree.rules(tree).predict(known).tolist() == tree.predict(known).tolist()
        assert gputree.export_text(tree)


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        (C45Classifier(stopping=CrossValidated(3)), "follows the rows of one tree"),
        (C45Classifier(class_weight="balanced"), "class_weight is the forest's"),
        (C45Classifier(pruning=ReducedError()), "bags keep no rows back to prune by"),
        (ID3Classifier(empty="null"), "empty='null' has no answer"),
    ],
)
def test_trees_that_cannot_grow_in_bags(tree: Any, reason: str) -> None:
    X, y = named()
    with pytest.raises(ValueError, match=reason):
        BaggingTreeClassifier(tree).fit(X, y)


def test_what_is_no_tree() -> None:
    X, y = named()
    with pytest.raises(ValueError, match="The 'estimator' parameter of BaggingTreeClassifier must be an instance of"):
        BaggingTreeClassifier(gputree.DecisionTreeRegressor()).fit(X, y)
    with pytest.raises(ValueError, match="confidence"):
        BaggingTreeClassifier(C45Classifier(confidence=2.0)).fit(X, y)


def test_nested_parameters() -> None:
    model = BaggingTreeClassifier(C45Classifier()).set_params(estimator__min_weight=30.0, n_estimators=3)
    assert model.estimator.min_weight == 30.0
    assert model.fit(*load_iris(return_X_y=True)).estimators_[0].min_weight == 30.0
    assert model.estimator_.min_weight == 30.0
    assert not hasattr(model.estimator, "forest_")


@pytest.mark.filterwarnings("ignore")  # scikit-learn's own, about what it skips and what it casts
@pytest.mark.parametrize("tree", [None, C45Classifier(), ID3Classifier(numeric="thresholds")], ids=str)
def test_the_contract_of_scikit_learn(tree: Any) -> None:
    """That weights are copies is not so where rows are drawn: scikit-learn's forests say so too."""
    weights = dict.fromkeys(
        ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"), "draws"
    )
    results = check_estimator(BaggingTreeClassifier(tree), on_fail=None, expected_failed_checks=weights)
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] not in ("passed", "skipped", "xfail")]
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 40
