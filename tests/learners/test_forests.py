"""Forests: the same however they are grown, out-of-bag figures against plain recomputation, and beside scikit-learn."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import sklearn.ensemble
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.estimator_checks import check_estimator

import gputree
import gputree.learners.forest
import gputree.learners.isolation
from gputree.core.forest import Forest, Test
from tests.backends.cards import emulate

CLASSES = (
    gputree.RandomForestClassifier,
    gputree.RandomForestRegressor,
    gputree.ExtraTreesClassifier,
    gputree.ExtraTreesRegressor,
)
FORESTS = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
ALL = (*CLASSES, gputree.RandomTreesEmbedding, gputree.IsolationForest)
BACKENDS = {"numpy": ("numpy", None), "jit": ("jit", 1), "jit, two threads": ("jit", 2), "emulated": ("cuda", None)}


def table(cls: Any, n: int = 300) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(n, 6)), 1)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.nan_to_num(X[:, 0]) * 2 + np.nan_to_num(X[:, 1]) + rng.normal(size=n) * 0.3
    return X, (y if "Regressor" in cls.__name__ else np.digitize(y, [-1, 1]))


def quiet(model: Any, *args: Any) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* rows are in every bag")
        return model.fit(*args)


# -- one forest, however it is grown


@FORESTS
@pytest.mark.parametrize("bootstrap", [True, False])
def test_a_forest_is_its_trees(cls: Any, bootstrap: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, one by one, three at a time, and in two fits."""
    X, y = table(cls)
    model = cls(8, bootstrap=bootstrap, random_state=5, max_depth=7, max_features=2)
    at_once = clone(model).fit(X, y).fingerprint()
    for rows in (1, 3 * len(X)):
        monkeypatch.setattr(gputree.learners.forest, "POSITIONS", rows)
        assert clone(model).fit(X, y).fingerprint() == at_once
    warm = clone(model).set_params(n_estimators=3, warm_start=True).fit(X, y)
    assert warm.set_params(n_estimators=8).fit(X, y).fingerprint() == at_once
    assert warm.forest_.tree(2).fingerprint() == clone(model).fit(X, y).forest_.tree(2).fingerprint()
    assert clone(model).set_params(random_state=6).fit(X, y).fingerprint() != at_once


def in_small_pieces(backend: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Parameters that choose a backend, which then cuts its work so small that threads have some."""
    device, n_jobs = BACKENDS[backend]
    if device == "cuda":
        emulate(monkeypatch)
    if device == "jit":
        pytest.importorskip("numba", reason="expected: without Numba")
        import gputree.backends.jit as jit

        for name, size in (("PART_ROWS", 64), ("DRAWN_ROWS", 64), ("CHUNK", 32), ("FEATURES", 2), ("ROWS", 50)):
            monkeypatch.setattr(jit, name, size)
    return {"device": device, "n_jobs": n_jobs} if n_jobs else {"device": device}


def grown_together(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list to which every call of the growth loop adds its number of trees."""
    numbers: list[int] = []
    grow = gputree.learners.forest.grow

    def counted(backend: Any, codes: Any, target: Any, recipe: Any, *rest: Any) -> Any:
        numbers.append(recipe.sampler.n_trees)
        return grow(backend, codes, target, recipe, *rest)

    for module in (gputree.learners.forest, gputree.learners.isolation):
        monkeypatch.setattr(module, "grow", counted, raising=False)
    return numbers


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_a_forest_is_one_on_every_backend(
    cls: Any, bootstrap: bool, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Array for array: at once, one by one, three at a time and in two fits, whatever grows it."""
    X, y = table(cls, 150)
    known = cls().get_params().keys() - ({"max_features"} if cls is gputree.IsolationForest else set())  # by tree there
    given = {"random_state": 5, "max_depth": 6, "max_features": 2, "bootstrap": bootstrap}
    model = cls(n_estimators=7, device="numpy").set_params(**{k: v for k, v in given.items() if k in known})
    expected = clone(model).fit(X, y)
    model.set_params(**in_small_pieces(backend, monkeypatch))
    numbers = grown_together(monkeypatch)

    def check(found: Any, trees: list[int]) -> None:
        assert numbers == trees
        numbers.clear()
        for f in fields(Forest):
            np.testing.assert_array_equal(getattr(found.forest_, f.name), getattr(expected.forest_, f.name), f.name)
        assert found.fit_info_.device == ("cpu" if model.device != "cuda" else "cuda:0")

    check(clone(model).fit(X, y), [7])
    warm = clone(model).set_params(n_estimators=2, warm_start=True).fit(X, y)
    check(warm.set_params(n_estimators=7).fit(X, y), [2, 5])
    for most, trees in ((1, [1] * 7), (3, [3, 3, 1])):
        monkeypatch.setattr(gputree.learners.forest, "POSITIONS", most * len(X))
        monkeypatch.setattr(gputree.learners.forest, "DEVICE_POSITIONS", most * len(X))
        monkeypatch.setattr(gputree.learners.isolation, "EXACT_ROWS", most * len(X))
        check(clone(model).fit(X, y), trees)


@FORESTS
@pytest.mark.parametrize(
    "parameters",
    [
        {"bootstrap": True},
        {"bootstrap": True, "max_samples": 0.4, "min_samples_leaf": 3},
        {"bootstrap": True, "max_leaf_nodes": 12},
        {"bootstrap": False, "max_features": 2},
        {"bootstrap": True, "max_features": 1, "feature_draws": "stop"},
        {"bootstrap": False, "max_features": 3, "feature_draws": "repeats"},
        {"bootstrap": True, "ccp_alpha": 0.01},
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_forest_of_the_device_is_that_of_the_cpu(
    cls: Any, parameters: dict[str, Any], weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = emulate(monkeypatch)
    X, y = table(cls)
    weight = np.arange(len(X)) % 4.0 if weighted else None
    ours, theirs = (cls(4, device=device, **parameters).fit(X, y, weight) for device in ("cuda", "cpu"))
    assert ours.fingerprint() == theirs.fingerprint()
    assert ours.fit_info_.backend == "cuda"
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(ours.apply(X), theirs.apply(X))
    assert machine.reserved == [0]


def test_a_random_state_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One seed for all batches, and for a warm start."""
    X, y = load_iris(return_X_y=True)
    state = np.random.RandomState(4)
    at_once = gputree.RandomForestClassifier(6, random_state=state).fit(X, y)
    other = np.random.RandomState(4)
    other.randint(np.iinfo(np.int32).max)
    assert state.randint(1 << 30) == other.randint(1 << 30)
    monkeypatch.setattr(gputree.learners.forest, "POSITIONS", 1)
    model = gputree.RandomForestClassifier(3, random_state=np.random.RandomState(4), warm_start=True).fit(X, y)
    assert model.set_params(n_estimators=6).fit(X, y).fingerprint() == at_once.fingerprint()


def test_warm_starts_that_cannot_be() -> None:
    X, y = load_iris(return_X_y=True)
    model = gputree.RandomForestClassifier(5, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="n_estimators=3 must be larger or equal to the 5 trees"):
        model.set_params(n_estimators=3).fit(X, y)
    with pytest.warns(UserWarning, match="without increasing n_estimators does not fit new trees"):
        model.set_params(n_estimators=5).fit(X, y)


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("columns of X", lambda X, y: (X[:, :3], y)),
        ("classes of y", lambda X, y: (X[:100], y[:100])),
        ("rows or draws", lambda X, y: (X[:149], y[:149])),
    ],
)
@pytest.mark.parametrize("bootstrap", [True, False])
def test_a_warm_start_on_another_table_is_refused_and_harms_nothing(what: str, change: Any, bootstrap: bool) -> None:
    X, y = load_iris(return_X_y=True)
    model = gputree.RandomForestClassifier(4, bootstrap=bootstrap, warm_start=True).fit(X, y)
    before = model.fingerprint()
    with pytest.raises(ValueError, match=f"same table and parameters, and the .*{what}.* changed"):
        model.set_params(n_estimators=6).fit(*change(X, y))
    assert model.fingerprint() == before
    assert model.predict(X[140:143]).tolist() == [2, 2, 2]
    whole = gputree.RandomForestClassifier(6, bootstrap=bootstrap).fit(X, y)
    assert model.fit(X, y).fingerprint() == whole.fingerprint()


def test_a_warm_start_that_would_mix_trees_is_refused(tmp_path: Any) -> None:
    """Pruned and whole ones, those of several learners, or of other parameters, however long."""
    X, y = load_iris(return_X_y=True)
    forest = gputree.RandomForestClassifier(2, warm_start=True).fit(X, y)
    bags = gputree.BaggingTreeClassifier(gputree.C45Classifier(), 2, warm_start=True).fit(X, y)
    gputree.save(gputree.pruning.prune(forest, gputree.pruning.Collapse()), tmp_path / "pruned")
    id3 = gputree.ID3Classifier(numeric="thresholds")
    carts = gputree.BaggingTreeClassifier(gputree.DecisionTreeClassifier(max_depth=3), 2, warm_start=True).fit(X, y)
    wide = gputree.RandomForestClassifier(2, monotonic_cst=[0] * 40, warm_start=True)
    wide.fit(np.tile(X, 10), np.minimum(y, 1))
    for model, settings in (
        (forest, {"pruning": gputree.pruning.Collapse()}),
        (forest, {"criterion": "entropy"}),
        (forest, {"max_depth": 2}),
        (forest, {"ccp_alpha": 0.1}),
        (bags, {"estimator": id3}),
        (bags, {"estimator__pruning": None}),
        (carts, {"estimator__max_features": 1}),
    ):
        other = copy.deepcopy(model)
        (name,) = settings
        with pytest.raises(ValueError, match=f"and the parameter {name.partition('__')[0]} changed"):
            other.set_params(n_estimators=3, **settings).fit(X, y)
        assert other.fingerprint() == model.fingerprint()
    pruned = gputree.load(tmp_path / "pruned")
    with pytest.raises(ValueError, match=r"that Collapse\(\) has left, and the new ones would not be pruned"):
        pruned.set_params(n_estimators=3).fit(X, y)
    assert pruned.pruned_by_ == "Collapse()"
    with pytest.raises(ValueError, match="and the parameter monotonic_cst changed"):
        wide.set_params(n_estimators=3, monotonic_cst=[0] * 20 + [1] + [0] * 19).fit(np.tile(X, 10), np.minimum(y, 1))
    bags.set_params(n_estimators=3, estimator=gputree.C45Classifier(device="numpy")).fit(X, y)
    assert len(bags) == 3
    assert len(carts.set_params(n_estimators=3, estimator__max_depth=np.int64(3)).fit(X, y)) == 3


class Deep(gputree.stopping.Rule):
    """A rule that has no values to compare."""

    why = "deep"
    follows_rows = False

    def begin(self, fit: Any) -> Any:
        return gputree.stopping.MaxDepth(2).begin(fit)


def test_a_warm_start_takes_the_same_object_where_there_are_no_values_to_compare(tmp_path: Any) -> None:
    """Functions and rules without fields: another is refused, and so is one that a file cannot hold."""
    X, y = load_iris(return_X_y=True)
    rules = [gputree.pruning.BottomUp(lambda tree, m, k=k: tree.error + k * tree.n_leaves) for k in (0, 1)]
    for name, one, other in (("pruning", *rules), ("stopping", Deep(), Deep())):
        model = gputree.RandomForestClassifier(1, max_depth=2, warm_start=True, **{name: one}).fit(X, y)
        for later in (copy.deepcopy(model), model):
            assert len(later.set_params(n_estimators=2).fit(X, y)) == 2
        with pytest.raises(ValueError, match=rf"{name}=.* cannot be told to be that of the first fit"):
            model.set_params(n_estimators=3, **{name: other}).fit(X, y)
    model = gputree.RandomForestClassifier(1, max_depth=2, warm_start=True, pruning=rules[0]).fit(X, y)
    gputree.save(model.set_params(pruning=None), tmp_path / "model")
    again = gputree.load(tmp_path / "model").set_params(n_estimators=2)
    with pytest.raises(ValueError, match="the parameter pruning changed"):
        again.fit(X, y)
    with pytest.raises(ValueError, match=r"pruning=.* cannot be told"):
        again.set_params(pruning=rules[0]).fit(X, y)


@pytest.mark.parametrize("bootstrap", [True, False])
def test_a_warm_start_on_other_rows_is_refused(bootstrap: bool) -> None:
    """As the trees that are there tell them, be there as many: other labels, numbers, or an order that bags number."""
    X, y = load_iris(return_X_y=True)
    for cls, own, others in (
        (gputree.RandomForestClassifier, y, [(X, np.roll(y, 20)), (X[::-1] * 2, y)] + [(X[::-1], y[::-1])] * bootstrap),
        (gputree.RandomForestRegressor, X[:, 0], [(X, 9 - X[:, 0]), (X, X[:, 0] + 1e-6)]),
    ):
        model = cls(3, bootstrap=bootstrap, warm_start=True).fit(X, own)
        before = model.fingerprint()
        for rows in others:
            with pytest.raises(ValueError, match=r"warm_start=True adds trees of the rows of the first fit, and these"):
                model.set_params(n_estimators=4).fit(*rows)
            assert model.fingerprint() == before
        assert len(model.fit(X, own)) == 4


def test_a_warm_start_takes_equal_parameters_however_written() -> None:
    """1 and 1.0 are one number, but where the one counts and the other is a share; a subclass may hold more."""
    X, y = load_iris(return_X_y=True)
    given = {"class_weight": {0: 1, 1: 2, 2: 1}, "criterion": "entropy", "ccp_alpha": 0, "max_features": 1}
    same = {"class_weight": {0: 1.0, 1: 2.0, 2: 1.0}, "criterion": "log_loss", "ccp_alpha": 0.0}
    model = gputree.RandomForestClassifier(2, warm_start=True, **given).fit(X, y)
    assert len(model.set_params(n_estimators=3, **same).fit(X, y)) == 3
    with pytest.raises(ValueError, match="the parameter max_features changed"):
        model.set_params(n_estimators=4, max_features=1.0).fit(X, y)
    model = gputree.RandomForestClassifier(2, warm_start=True, pruning=More(0.0)).fit(X, y)
    with pytest.raises(ValueError, match="cannot be told to be that of the first fit"):
        model.set_params(n_estimators=3, pruning=More(0.05)).fit(X, y)


class More(gputree.pruning.CostComplexity):
    """With something that is no field."""

    def __init__(self, more: float) -> None:
        super().__init__(0.0)
        object.__setattr__(self, "more", more)


def test_a_warm_start_counts_rows_of_positive_weight() -> None:
    """Where every tree has all rows, those of weight 0 are as if absent, and ``n_rows_`` may have counted others."""
    X, y = load_iris(return_X_y=True)
    weight = np.arange(150) % 3 > 0
    model = gputree.ExtraTreesClassifier(2, warm_start=True).fit(X, y, weight)
    model.n_rows_ = 100  # as in files of earlier versions
    assert model.set_params(n_estimators=4).fit(X, y, weight).n_rows_ == 150
    assert model.fingerprint() == gputree.ExtraTreesClassifier(4).fit(X[weight], y[weight]).fingerprint()


def test_a_warm_start_that_fails_keeps_its_trees() -> None:
    X, y = load_iris(return_X_y=True)
    model = gputree.RandomForestClassifier(4, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X[:100], y[:100], np.full(100, np.nan))
    assert model.predict(X[140:143]).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="the seed changed"):
        model.set_params(random_state=3, n_estimators=5).fit(X, y)
    with pytest.raises(ValueError, match="max_depth"):
        model.set_params(max_depth=-1).fit(X, y)
    assert model.predict(X[140:143]).tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    "cls", [gputree.RandomForestRegressor, gputree.RandomForestClassifier], ids=lambda c: c.__name__
)
@pytest.mark.parametrize(
    "parameters",
    [{"min_samples_leaf": 140}, {"min_samples_split": 280}, {"max_samples": 20, "min_samples_leaf": 10}],
    ids=str,
)
def test_some_roots_stay_leaves(cls: Any, parameters: dict[str, Any]) -> None:
    """Bags differ in how many rows they have, and so in whether they may be split."""
    X, y = load_diabetes(return_X_y=True)
    model = cls(20, **parameters).fit(X, y if "Regressor" in cls.__name__ else y > 150)
    leaves = [tree.get_n_leaves() for tree in model.estimators_]
    assert 1 in leaves
    assert max(leaves) > 1


# -- trees and bags


@FORESTS
def test_trees_are_those_of_their_rows(cls: Any) -> None:
    """A tree of a bag is the tree of copies of its rows, in everything that does not count rows."""
    X, y = table(cls)
    model = cls(4, bootstrap=True, max_features=None, max_bins=200, random_state=1)
    if "Extra" in cls.__name__:
        model.set_params(max_depth=1)
    model.fit(X, y)
    for tree, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        assert rows.size == len(X)
        leaves = tree.apply(X)
        for leaf in np.unique(leaves):
            inside = rows[leaves[rows] == leaf]
            if inside.size and "Regressor" in cls.__name__:
                np.testing.assert_allclose(tree.forest_.value[leaf, 0], y[inside].mean(), rtol=1e-12, atol=1e-12)
            elif inside.size:
                share = np.bincount(y[inside], minlength=3) / inside.size
                np.testing.assert_allclose(tree.forest_.value[leaf], share, rtol=1e-12)


def test_the_first_split_of_a_bag_is_that_of_copies() -> None:
    X, y = load_iris(return_X_y=True)
    forest = gputree.RandomForestClassifier(5, max_features=None, max_depth=3).fit(X, y)
    for tree, rows in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        alone = gputree.DecisionTreeClassifier(max_depth=3).fit(X[rows], y[rows])
        np.testing.assert_array_equal(tree.forest_.feature, alone.forest_.feature)
        np.testing.assert_array_equal(tree.forest_.low, alone.forest_.low)
        np.testing.assert_array_equal(tree.forest_.value, alone.forest_.value)


def test_trees_are_a_sequence() -> None:
    X, y = load_iris(return_X_y=True)
    model = gputree.ExtraTreesClassifier(6).fit(X, y)
    assert len(model.estimators_) == 6
    assert [t.get_n_leaves() for t in model.estimators_[1:3]] == [model.estimators_[i].get_n_leaves() for i in (1, 2)]
    assert model.estimators_[-1].fingerprint() == model.estimators_[5].fingerprint()
    assert isinstance(model.estimators_[0], gputree.ExtraTreeClassifier)
    with pytest.raises(IndexError, match="tree 6 does not exist; there are 6"):
        model.estimators_[6]
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        model.estimators_["6"]
    assert gputree.export_text(model.estimators_[0])
    sums = sum(t.predict_proba(X) for t in model.estimators_)
    np.testing.assert_allclose(model.predict_proba(X), sums / 6, rtol=0, atol=1e-15)


@FORESTS
def test_paths_and_leaves_are_those_of_the_trees(cls: Any) -> None:
    X, y = table(cls)
    model = cls(5, max_depth=4).fit(X, y)
    path, ptr = model.decision_path(X)
    leaves = model.apply(X)
    assert path.shape == (len(X), ptr[-1])
    for t, tree in enumerate(model.estimators_):
        np.testing.assert_array_equal(leaves[:, t], tree.apply(X))
        assert (path[:, ptr[t] : ptr[t + 1]] != tree.decision_path(X)).nnz == 0


@FORESTS
def test_importances_are_the_mean_of_the_trees(cls: Any) -> None:
    X, y = table(cls)
    model = cls(5, max_depth=4).fit(X, y)
    mean = np.mean([t.feature_importances_ for t in model.estimators_], axis=0)
    np.testing.assert_allclose(model.feature_importances_, mean / mean.sum(), rtol=1e-12)
    assert not cls(3).fit(X, np.full(len(X), y[0])).feature_importances_.any()


def test_votes() -> None:
    """Each tree has one vote for the class of its leaf; ties go to the first class."""
    X, y = load_digits(return_X_y=True)
    model = gputree.RandomForestClassifier(6, max_depth=4, voting="hard").fit(X[:900], y[:900])
    votes = np.zeros((len(X), 10))
    for tree in model.estimators_:
        votes[np.arange(len(X)), tree.predict(X)] += 1
    np.testing.assert_array_equal(model.predict_proba(X), votes / 6)
    np.testing.assert_array_equal(model.predict(X), votes.argmax(axis=1))
    assert (np.sort(votes, axis=1)[:, -1] == np.sort(votes, axis=1)[:, -2]).any()


# -- out of bag


def plain_estimate(model: Any, X: NDArray[Any], value: Callable[[Any], NDArray[Any]]) -> NDArray[Any]:
    """Means over the trees that have not drawn a row, from the lists of rows."""
    total, count = 0.0, np.zeros(len(X))
    for tree, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        out = ~np.isin(np.arange(len(X)), rows)
        total = total + value(tree) * out[:, None]
        count += out
    with np.errstate(invalid="ignore"):
        return np.where(count > 0, 1, np.nan)[:, None] * total / np.maximum(count, 1)[:, None]


@pytest.mark.parametrize("n_estimators", [2, 30])
def test_out_of_bag_shares(n_estimators: int) -> None:
    X, y = load_iris(return_X_y=True)
    model = quiet(gputree.RandomForestClassifier(n_estimators, oob_score=True), X, y)
    expected = plain_estimate(model, X, lambda tree: tree.predict_proba(X))
    np.testing.assert_allclose(model.oob_decision_function_, expected, rtol=1e-12)
    known = ~np.isnan(expected[:, 0])
    assert known.all() == (n_estimators == 30)
    assert model.oob_score_ == accuracy_score(y[known], expected[known].argmax(axis=1))


def test_out_of_bag_means() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = gputree.RandomForestRegressor(25, oob_score=True, max_depth=5).fit(X, y)
    expected = plain_estimate(model, X, lambda tree: tree.predict(X)[:, None])[:, 0]
    np.testing.assert_allclose(model.oob_prediction_, expected, rtol=1e-12)
    assert model.oob_score_ == pytest.approx(r2_score(y, expected), rel=1e-12)


def test_out_of_bag_votes_and_own_scores() -> None:
    X, y = load_iris(return_X_y=True)
    wrong = lambda truth, found: float((truth != found).sum())  # noqa: E731
    model = gputree.RandomForestClassifier(30, oob_score=wrong, voting="hard").fit(X, y)
    expected = plain_estimate(model, X, lambda tree: np.eye(3)[tree.predict(X)])
    np.testing.assert_allclose(model.oob_decision_function_, expected, rtol=1e-12)
    assert model.oob_score_ == (expected.argmax(axis=1) != y).sum()
    yes = gputree.RandomForestClassifier(30, oob_score=np.True_).fit(X, y)
    assert yes.oob_score_ == gputree.RandomForestClassifier(30, oob_score=True).fit(X, y).oob_score_


def test_out_of_bag_scores_of_several_outputs() -> None:
    """All outputs right, as in scikit-learn; an own score sees them together. Classes may differ in number."""
    X, y = load_iris(return_X_y=True)
    Y = np.column_stack([y > 0, y > 1]).astype(int)
    seen: list[Any] = []
    model = gputree.RandomForestClassifier(40, oob_score=True, max_depth=2).fit(X, Y)
    shares = model.oob_decision_function_
    assert shares.shape == (150, 2, 2)
    assert model.oob_score_ == (shares.argmax(axis=1) == Y).all(axis=1).mean()
    own = gputree.RandomForestClassifier(40, oob_score=lambda a, b: seen.append((a.shape, b.shape))).fit(X, Y)
    assert seen == [((150, 2), (150, 2))]
    assert own.oob_score_ is None
    mixed = gputree.RandomForestClassifier(40, oob_score=True).fit(X, np.column_stack([y, y > 1]))
    assert [p.shape for p in mixed.oob_decision_function_] == [(150, 3), (150, 2)]


def test_no_row_out_of_bag() -> None:
    X, y = load_iris(return_X_y=True)
    model = quiet(gputree.RandomForestClassifier(1, oob_score=True, max_samples=100_000), X, y)
    assert np.isnan(model.oob_score_)
    assert np.isnan(model.oob_decision_function_).all()


def test_balanced_classes_count_weights() -> None:
    X, y = load_iris(return_X_y=True)
    weight = np.where(y == 0, 10.0, 1.0)
    model = gputree.RandomForestClassifier(60, class_weight="balanced").fit(X, y, weight)
    share = np.mean([np.bincount(y[rows], minlength=3) / 150 for rows in model.estimators_samples_], axis=0)
    assert np.abs(share - 1 / 3).max() < 0.02
    root = gputree.ExtraTreesClassifier(1, class_weight="balanced").fit(X, y, weight).forest_.value[0]
    np.testing.assert_allclose(root, 1 / 3, rtol=1e-9)


def test_tiny_weights_are_not_drawn() -> None:
    n = 50_000
    weight = np.full(n, 1e-30)
    weight[0] = 1.0
    model = gputree.RandomForestClassifier(2, max_depth=1).fit(np.arange(n)[:, None], np.arange(n) % 2, weight)
    assert all((rows == 0).all() for rows in model.estimators_samples_)


def test_a_forest_is_a_sequence_of_trees() -> None:
    X, y = load_iris(return_X_y=True)
    model = gputree.RandomForestClassifier(3).fit(X, y)
    assert len(model) == 3
    assert [t.fingerprint() for t in model] == [t.fingerprint() for t in model.estimators_]
    assert model[1].fingerprint() == model.estimators_[1].fingerprint()


def test_rows_in_every_bag_are_named() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.warns(UserWarning, match=r"\d+ of 150 rows are in every bag") as told:
        gputree.RandomForestClassifier(1, oob_score=True).fit(X, y)
    assert told[0].filename == __file__


def test_rows_of_weight_zero_are_in_no_bag() -> None:
    X, y = load_iris(return_X_y=True)
    weight = np.where(np.arange(150) % 3, 1.0, 0.0)
    model = gputree.RandomForestClassifier(60, oob_score=True).fit(X, y, weight)
    assert all((rows % 3 > 0).all() for rows in model.estimators_samples_)
    assert np.isnan(model.oob_decision_function_[weight == 0]).all()
    assert not np.isnan(model.oob_decision_function_[weight > 0]).any()


def test_weights_are_probabilities_of_draws() -> None:
    """Row 7 of weight 150 is about half of every bag, and counts as often as it was drawn."""
    X, y = load_iris(return_X_y=True)
    weight = np.ones(150)
    weight[7] = 149
    model = gputree.RandomForestClassifier(20).fit(X, y, weight)
    share = np.mean([(rows == 7).mean() for rows in model.estimators_samples_])
    assert abs(share - 0.5) < 0.05
    assert all(int(t.forest_.stats[0, :3].sum()) == 150 for t in model.estimators_)


@pytest.mark.parametrize(
    ("max_samples", "weight", "draws"), [(None, None, 150), (40, None, 40), (0.5, None, 75), (0.5, 2.0, 150)]
)
def test_sizes_of_bags(max_samples: Any, weight: float | None, draws: int) -> None:
    """A float is a share of the rows, or of the sum of their weights, as in scikit-learn 1.9."""
    X, y = load_iris(return_X_y=True)
    weights = None if weight is None else np.full(150, weight)
    model = gputree.RandomForestClassifier(2, max_samples=max_samples).fit(X, y, weights)
    assert [rows.size for rows in model.estimators_samples_] == [draws, draws]


def test_parameters_that_need_bags() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="Out of bag estimation only available if bootstrap=True"):
        gputree.RandomForestClassifier(2, bootstrap=False, oob_score=True).fit(X, y)
    with pytest.raises(ValueError, match="`max_sample` cannot be set if `bootstrap=False`"):
        gputree.ExtraTreesClassifier(2, max_samples=5).fit(X, y)


# -- the contract, and scikit-learn's forests


@FORESTS
def test_the_contract_of_scikit_learn(cls: Any) -> None:
    """scikit-learn's forests fail the two checks of equal weights and copies: bags draw rows."""
    drawn = dict.fromkeys(("check_sample_weight_equivalence_on_dense_data",), "bags draw rows")
    drawn |= {"check_sample_weight_equivalence_on_sparse_data": "bags draw rows"}
    model = cls(5)
    drawn = drawn if model.bootstrap else {}
    results = check_estimator(model, expected_failed_checks=drawn, on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []


@FORESTS
def test_pickles(cls: Any) -> None:
    X, y = table(cls)
    model = cls(3).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.estimators_[1].fingerprint() == model.estimators_[1].fingerprint()


def test_iris_error_of_breimans_forest() -> None:
    """randomForest in R, mtry 2, 500 trees, over seeds: mean 0.0444, standard deviation 0.0044."""
    X, y = load_iris(return_X_y=True)
    errors = [
        1 - gputree.RandomForestClassifier(500, max_features=2, oob_score=True, random_state=s).fit(X, y).oob_score_
        for s in range(5)
    ]
    assert abs(np.mean(errors) - 0.0444) < 3 * 0.0044


SAMPLES = {
    "breast cancer": (load_breast_cancer, "RandomForestClassifier", 0.02),
    "digits": (load_digits, "ExtraTreesClassifier", 0.02),
    "diabetes": (load_diabetes, "RandomForestRegressor", 0.05),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_scores_are_those_of_scikit_learn(name: str) -> None:
    """Mean of five seeds on every third row, the others for training."""
    load, cls, noise = SAMPLES[name]
    X, y = load(return_X_y=True)
    test = np.arange(len(y)) % 3 == 0
    scores = [
        np.mean(
            [getattr(module, cls)(40, random_state=s).fit(X[~test], y[~test]).score(X[test], y[test]) for s in range(5)]
        )
        for module in (gputree, sklearn.ensemble)
    ]
    assert abs(scores[0] - scores[1]) < noise


def test_categories_and_branches() -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    columns = {"a": rng.choice(list("xyz"), 200), "b": rng.normal(size=200), "c": rng.choice([True, None], 200)}
    frame = pd.DataFrame(columns)
    y = np.where((frame["a"] == "x") ^ (frame["b"] > 0), "yes", "no")
    for split in ("binary", "multiway"):
        model = gputree.RandomForestClassifier(20, categorical_split=split).fit(frame, y)
        assert model.score(frame, y) > 0.95
        assert (model.forest_.kind == Test.LOOKUP).any()


def test_every_forest_is_here() -> None:
    assert {cls.__name__ for cls in CLASSES} == {
        name for name in gputree.__all__ if "RandomForest" in name or "ExtraTrees" in name
    }
