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
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_iris
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import gputree
import gputree.learners.bagged_trees
import gputree.learners.forest
from gputree import (
    BaggingTreeClassifier,
    BaggingTreeRegressor,
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
    ID3Classifier,
    MDLTreeClassifier,
)
from gputree.core.forest import SPREAD, Test
from gputree.core.keys import Stream, draw, root_keys
from gputree.learners.forest_uses import shuffles
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


def measured(n: int = 240) -> Table:
    """The columns of `mixed`, and whole multiples of 1/64, whose sums are exact on any scale."""
    frame, y = mixed(n)
    noise = np.random.default_rng(2).normal(size=n)
    return frame, np.rint(64 * ((y == "a") + 2 * frame["many"].fillna(0) + noise / 4)).to_numpy() / 64


def counted(n: int = 240) -> Table:
    """The same, and counts of events."""
    frame, y = measured(n)
    return frame, np.random.default_rng(3).poisson(np.exp(y / 3)).astype(float)


def paired(n: int = 240) -> Table:
    """Two outputs."""
    frame, y = measured(n)
    return frame, np.column_stack([y, y[::-1] ** 2])


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
    "means": (lambda: DecisionTreeRegressor(min_samples_leaf=3, ccp_alpha=0.01), measured),
    "means of counts": (lambda: DecisionTreeRegressor(criterion="poisson", max_leaf_nodes=20), counted),
    "two means": (lambda: DecisionTreeRegressor(categorical_split="multiway", max_depth=5), paired),
}
HOW = {True: (None,), False: ("soft", "hard")}
VOTES = [(name, how) for name, (tree, _) in TREES.items() for how in HOW[is_regressor(tree())]]
NAMES = pytest.mark.parametrize("name", TREES)


def bags_of(tree: Any) -> Any:
    """The class for such trees."""
    return BaggingTreeRegressor if is_regressor(tree) else BaggingTreeClassifier


def bags(name: str, **settings: Any) -> tuple[Any, pd.DataFrame, NDArray[Any]]:
    make, table = TREES[name]
    X, y = table()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* rows are in every bag")
        return bags_of(make())(make(), **{"n_estimators": 4, **settings}).fit(X, y), X, y


def told(model: Any, X: Any) -> NDArray[np.float64]:
    """Class shares, or numbers (n, outputs)."""
    return model.predict(X).reshape(len(X), -1) if is_regressor(model) else model.predict_proba(X)


def assert_same_tree(one: Any, other: Any) -> None:
    """To the bit; sums of numbers are on a scale of the rows of a fit, so that their tests and means are compared."""
    if not is_regressor(one):
        assert one.fingerprint() == other.fingerprint()
        return
    for name in ("kind", "feature", "low", "first_child", "missing", "lookup_code", "lookup_branch"):
        np.testing.assert_array_equal(getattr(one.forest_, name), getattr(other.forest_, name), err_msg=name)
    np.testing.assert_allclose(one.forest_.value, other.forest_.value, rtol=0, atol=1e-14)


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
        assert_same_tree(tree, alone)
        np.testing.assert_allclose(told(tree, X), told(alone, X), rtol=0, atol=1e-14 * is_regressor(tree))
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


@pytest.mark.parametrize(
    "tree",
    [
        DecisionTreeClassifier(max_features=2, categorical_split="multiway"),
        ExtraTreeClassifier(max_depth=6),
        DecisionTreeRegressor(max_features=1),
        ExtraTreeRegressor(max_depth=6),
    ],
    ids=lambda tree: type(tree).__name__,
)
def test_the_first_tree_is_the_tree_of_the_same_seed(tree: Any) -> None:
    """Columns and thresholds are drawn by the keys of nodes, and a tree alone has the key of the first root."""
    X, y = measured() if is_regressor(tree) else mixed()
    model = bags_of(tree)(tree, 2, random_state=11).fit(X, y)
    alone = [
        clone(tree).set_params(random_state=11).fit(X, y, sample_weight=np.bincount(rows, minlength=len(X)))
        for rows in model.estimators_samples_
    ]
    assert_same_tree(model.estimators_[0], alone[0])
    with pytest.raises(AssertionError):
        assert_same_tree(model.estimators_[1], alone[1])


@pytest.mark.parametrize(
    ("tree", "forest"),
    [
        (DecisionTreeClassifier(categorical_split="multiway"), gputree.RandomForestClassifier),
        (ExtraTreeClassifier(), gputree.ExtraTreesClassifier),
        (DecisionTreeRegressor(), gputree.RandomForestRegressor),
        (ExtraTreeRegressor(), gputree.ExtraTreesRegressor),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_forests_are_bags_of_their_trees(tree: Any, forest: Any) -> None:
    """To the bit, with all that is made of them."""
    X, y = measured() if is_regressor(tree) else mixed()
    tree = clone(tree).set_params(min_samples_leaf=2)
    more = {"bootstrap": True, "max_features": 2, "oob_score": True, "max_samples": 0.8, "random_state": 4}
    own = {name: getattr(tree, name) for name in ("min_samples_leaf", "categorical_split")}
    one, other = bags_of(tree)(tree, 30, **more).fit(X, y), forest(30, **more, **own).fit(X, y)
    assert one.fingerprint() == other.fingerprint()
    assert one.oob_score_ == other.oob_score_
    np.testing.assert_array_equal(one.oob_errors_, other.oob_errors_)
    np.testing.assert_array_equal(told(one, X), told(other, X))
    np.testing.assert_array_equal(one.unbiased_importances(X, y), other.unbiased_importances(X, y))
    if is_regressor(tree):
        quantiles = [model.predict_quantiles(X[:9], X_train=X, y_train=y) for model in (one, other)]
        np.testing.assert_array_equal(*quantiles)


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


@pytest.mark.parametrize(("name", "voting"), VOTES)
def test_predictions_are_those_of_the_trees(name: str, voting: str | None) -> None:
    """Their mean, or one vote each, also of a row that falls into several leaves."""
    model, X, _ = bags(name, **({"voting": voting} if voting else {}))
    each = np.stack([told(tree, X) for tree in model.estimators_])
    if voting == "hard":
        each = np.eye(3)[each.argmax(axis=2)]
    np.testing.assert_allclose(told(model, X), each.mean(axis=0), rtol=1e-15, atol=1e-15)
    if voting:
        assert model.predict(X).tolist() == model.classes_[told(model, X).argmax(axis=1)].tolist()
    for t, tree in enumerate(model.estimators_):
        np.testing.assert_array_equal(model.apply(X)[:, t], tree.apply(X))


@pytest.mark.parametrize(("name", "voting"), VOTES)
def test_out_of_bag_figures(name: str, voting: str | None) -> None:
    """From the trees whose bags lack a row, one by one."""
    model, X, y = bags(name, n_estimators=12, oob_score=True, **({"voting": voting} if voting else {}))
    total, count = np.zeros(told(model, X).shape), np.zeros(len(X))
    for tree, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        out = np.setdiff1d(np.arange(len(X)), rows)
        said = told(tree, X)[out]
        total[out] += np.eye(3)[said.argmax(axis=1)] if voting == "hard" else said
        count[out] += 1
    known = count > 0
    mean = total[known] / count[known, None]
    found = (model.oob_decision_function_ if voting else model.oob_prediction_).reshape(len(X), -1)
    np.testing.assert_allclose(found[known], mean, rtol=1e-15, atol=1e-15)
    assert np.isnan(found[~known]).all()
    if voting:
        assert model.oob_score_ == np.mean(model.classes_[mean.argmax(axis=1)] == y[known])
    else:
        assert model.oob_score_ == pytest.approx(r2_score(y[known], mean), rel=1e-12)


@NAMES
def test_permutation_importances(name: str) -> None:
    """Tree by tree and column by column, on frames whose column is in another order."""
    model, X, y = bags(name)

    def error(tree: Any, rows: pd.DataFrame, truth: NDArray[Any]) -> float:
        wrong = tree.predict(rows) != truth if is_classifier(tree) else (tree.predict(rows) - truth) ** 2
        return float(np.mean(wrong))

    expected = np.zeros(X.shape[1])
    for t, (tree, rows) in enumerate(zip(model.estimators_, model.estimators_samples_, strict=True)):
        out = np.setdiff1d(np.arange(len(X)), rows)
        seen = X.iloc[out].reset_index(drop=True)
        for f, order in enumerate(shuffles(0, t, out, X.shape[1])):
            other = seen.assign(**{X.columns[f]: seen.iloc[:, f].take(order).reset_index(drop=True)})
            expected[f] += (error(tree, other, y[out]) - error(tree, seen, y[out])) / 4
    np.testing.assert_allclose(model.permutation_importances(X, y), expected, rtol=1e-9, atol=1e-12)
    assert np.abs(expected).max() > 0.01


@NAMES
def test_files_and_pickles(name: str, tmp_path: Path) -> None:
    own = {} if is_regressor(TREES[name][0]()) else {"class_weight": "balanced"}
    model, X, _ = bags(name, oob_score=True, **own)
    gputree.save(model, tmp_path / "bags.gputree")
    gputree.save(model, tmp_path / "whole.gputree", compact=False)
    copies = [gputree.load(tmp_path / f"{name}.gputree") for name in ("bags", "whole")]
    for again in (*copies, pickle.loads(pickle.dumps(model))):
        assert again.fingerprint() == model.fingerprint()
        assert again.estimator.get_params() == model.estimator.get_params()
        np.testing.assert_array_equal(told(again, X), told(model, X))
        for attribute in ("oob_decision_function_", "oob_prediction_"):
            assert hasattr(again, attribute) == hasattr(model, attribute)
            np.testing.assert_array_equal(getattr(again, attribute, 0), getattr(model, attribute, 0))
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


@pytest.mark.filterwarnings("ignore:the tree sends rows down every branch")
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
        (C45Classifier(soft_thresholds=True), "trees of bags have hard thresholds"),
        (C45Classifier(pruning=ReducedError()), "bags keep no rows back to prune by"),
        (ID3Classifier(empty="null"), "empty='null' has no answer"),
        (DecisionTreeRegressor(stopping=CrossValidated(3)), "follows the rows of one tree"),
    ],
)
def test_trees_that_cannot_grow_in_bags(tree: Any, reason: str) -> None:
    X, y = named()
    with pytest.raises(ValueError, match=reason):
        bags_of(tree)(tree).fit(X, y)


def test_what_is_no_tree() -> None:
    X, y = named()
    with pytest.raises(ValueError, match="The 'estimator' parameter of BaggingTreeClassifier must be an instance of"):
        BaggingTreeClassifier(DecisionTreeRegressor()).fit(X, y)
    with pytest.raises(ValueError, match="The 'estimator' parameter of BaggingTreeRegressor must be an instance of"):
        BaggingTreeRegressor(C45Classifier()).fit(X, y)
    with pytest.raises(ValueError, match="confidence"):
        BaggingTreeClassifier(C45Classifier(confidence=2.0)).fit(X, y)
    for what in (C45Classifier, 5):
        with pytest.raises((TypeError, ValueError), match=r"Cannot clone|must be an instance of"):
            cross_val_score(BaggingTreeClassifier(what), X, y, error_score="raise")


@pytest.mark.parametrize("limit", ["min_samples_leaf", "min_samples_split"])
def test_shares_of_rows_are_of_the_table(limit: str) -> None:
    """As in scikit-learn, and not of the rows that a bag has drawn."""
    X, y = load_iris(return_X_y=True)
    share, count = (BaggingTreeClassifier(DecisionTreeClassifier(**{limit: size}), 3).fit(X, y) for size in (0.1, 15))
    assert share.fingerprint() == count.fingerprint()
    forest = gputree.RandomForestClassifier(3, max_features=None, **{limit: 0.1}).fit(X, y)
    assert forest.fingerprint() == count.fingerprint()


def test_the_tree_that_is_given_is_read_and_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the same after a fit, which makes no clones of it."""
    tree = C45Classifier(min_weight=3.0)
    model = BaggingTreeClassifier(tree, 2, device="numpy", random_state=5)
    monkeypatch.setattr(gputree.learners.bagged_trees, "clone", None)
    X, y = load_iris(return_X_y=True)
    assert model.fit(X, y).predict(X).shape == y.shape
    assert model.estimator is tree
    assert vars(tree) == vars(C45Classifier(min_weight=3.0))
    monkeypatch.undo()
    assert model.estimator_ is not tree


def test_nested_parameters() -> None:
    model = BaggingTreeClassifier(C45Classifier()).set_params(estimator__min_weight=30.0, n_estimators=3)
    assert model.estimator.min_weight == 30.0
    assert model.fit(*load_iris(return_X_y=True)).estimators_[0].min_weight == 30.0
    assert model.estimator_.min_weight == 30.0
    assert not hasattr(model.estimator, "forest_")


@pytest.mark.filterwarnings("ignore")  # scikit-learn's own, about what it skips and what it casts
@pytest.mark.parametrize(
    "model",
    [
        BaggingTreeClassifier(),
        BaggingTreeClassifier(C45Classifier()),
        BaggingTreeClassifier(ID3Classifier(numeric="thresholds")),
        BaggingTreeRegressor(),
        BaggingTreeRegressor(ExtraTreeRegressor()),
    ],
    ids=str,
)
def test_the_contract_of_scikit_learn(model: Any) -> None:
    """That weights are copies is not so where rows are drawn: scikit-learn's forests say so too."""
    weights = dict.fromkeys(
        ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"), "draws"
    )
    results = check_estimator(model, on_fail=None, expected_failed_checks=weights)
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] not in ("passed", "skipped", "xfail")]
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 40
