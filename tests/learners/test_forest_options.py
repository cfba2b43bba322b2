"""Options of forests, against plain recomputation: draws of features, draws of classes, and when to stop."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import sklearn.ensemble
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

import gputree
import gputree.learners.forest
from gputree.core.forest import Test
from gputree.core.keys import Stream, child_keys, draw, root_keys
from gputree.learners.out_of_bag import OutOfBag
from tests.backends.cards import emulate

# -- draws of features


def table(n: int = 120) -> tuple[NDArray[Any], NDArray[Any]]:
    """Four columns that may be split, some rarely, and four of one value."""
    rng = np.random.default_rng(0)
    X = np.zeros((n, 8))
    X[:, [1, 4]] = np.round(rng.normal(size=(n, 2)), 1)
    X[:, 6] = rng.random(n) < 0.1
    X[:, 7] = rng.integers(0, 3, n)
    return X, (X[:, 1] + X[:, 7] + rng.normal(size=n) > 1).astype(int)


def drawn(how: str, key: Any, m: int, n_features: int) -> list[list[int]]:
    """The lists of features that a node tries one after the other."""
    hashes = [int(draw(key, Stream.FEATURE, i)) for i in range(n_features)]
    if how == "repeats":
        return [sorted({h * n_features >> 64 for h in hashes[:m]})]
    ranked = sorted(range(n_features), key=hashes.__getitem__)
    lists = [ranked[i : i + m] for i in range(0, n_features, m)]
    return lists if how == "continue" else lists[:1]


def stump(X: NDArray[Any], y: NDArray[Any], lists: list[list[int]]) -> tuple[int, float] | None:
    """The best test of the first features that have one."""
    for features in map(sorted, lists):
        found = gputree.DecisionTreeClassifier(max_depth=1).fit(X[:, features], y).forest_
        if found.kind[0] != Test.LEAF:
            return features[found.feature[0]], found.low[0]
    return None


@pytest.mark.parametrize("how", ["continue", "stop", "repeats"])
@pytest.mark.parametrize("m", [1, 3])
def test_features_of_a_node_are_those_that_its_key_draws(how: str, m: int) -> None:
    """Every node of every tree, from the key of its path and the rows that it holds."""
    X, y = table()
    model = gputree.RandomForestClassifier(
        4, bootstrap=False, max_features=m, max_depth=5, feature_draws=how, random_state=7
    ).fit(X, y)
    tried, kept = 0, 0
    for t, tree in enumerate(model.estimators_):
        forest, waiting = tree.forest_, [(0, root_keys(7, t), np.arange(len(X)))]
        while waiting:
            node, key, rows = waiting.pop()
            if len(np.unique(y[rows])) < 2 or forest.depth[node] == 5:
                continue
            expected = stump(X[rows], y[rows], drawn(how, key, m, 8))
            tried, kept = tried + 1, kept + (expected is None)
            if expected is None:
                assert forest.kind[node] == Test.LEAF
                continue
            assert (forest.feature[node], forest.low[node]) == expected
            left = X[rows, expected[0]] <= expected[1]
            for branch, part in enumerate((left, ~left)):
                waiting.append((forest.first_child[node] + branch, child_keys(key, branch), rows[part]))
    assert tried > 4
    assert (kept > 0) == (how != "continue")


def test_all_features_are_the_same_with_and_without_continuing() -> None:
    X, y = table()
    usual, stop = (
        gputree.RandomForestClassifier(5, max_features=None, feature_draws=how).fit(X, y)
        for how in ("continue", "stop")
    )
    assert stop.fingerprint() == usual.fingerprint()
    other = gputree.RandomForestClassifier(5, max_features=None, feature_draws="repeats").fit(X, y)
    assert other.fingerprint() != usual.fingerprint()


def test_draws_of_features_that_do_not_exist() -> None:
    X, y = table()
    with pytest.raises(ValueError, match="The 'feature_draws' parameter of RandomForestClassifier must be a str among"):
        gputree.RandomForestClassifier(feature_draws="once").fit(X, y)


# -- draws of classes


def rare(n: int = 200) -> tuple[NDArray[Any], NDArray[Any]]:
    """A class of 10 rows, one of 60 and one of 130, by name."""
    rng = np.random.default_rng(1)
    y = rng.permutation(np.repeat(["few", "more", "most"], [10, 60, 130]))
    return rng.normal(size=(n, 4)) + (y == "few")[:, None], y


def counted(model: Any, y: NDArray[Any]) -> list[list[int]]:
    """Draws of every class in every bag."""
    return [[int((y[rows] == name).sum()) for name in model.classes_] for rows in model.estimators_samples_]


FORESTS = pytest.mark.parametrize("cls", [gputree.RandomForestClassifier, gputree.ExtraTreesClassifier])


@FORESTS
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_bag_has_the_draws_asked_for(
    cls: Any, weighted: bool, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if device == "cuda":
        emulate(monkeypatch)
    X, y = rare()
    weight = np.arange(200) % 4.0 if weighted else None
    for max_samples in ({"most": 7, "few": 25, "more": 0}, [25, 0, 7], np.array([25, 0, 7])):
        model = cls(6, bootstrap=True, max_samples=max_samples, device=device).fit(X, y, weight)
        assert counted(model, y) == [[25, 0, 7]] * 6
        assert model.forest_.stats[model.forest_.roots, :3].tolist() == [[25, 0, 7]] * 6
        assert not weighted or all((rows % 4 > 0).all() for rows in model.estimators_samples_)


@FORESTS
def test_balanced_bags(cls: Any) -> None:
    """Equally many draws, the rest to the first classes; on average over bags what "balanced" gives."""
    X, y = rare()
    model = cls(60, bootstrap=True, class_weight="balanced_subsample").fit(X, y)
    assert counted(model, y) == [[67, 67, 66]] * 60
    drawn_by_chance = np.mean(counted(cls(60, bootstrap=True, class_weight="balanced").fit(X, y), y), axis=0)
    assert np.abs(drawn_by_chance - 200 / 3).max() < 4 * np.sqrt(200 * 2 / 9 / 60)
    half = cls(3, bootstrap=True, class_weight="balanced_subsample", max_samples=0.5).fit(X, y)
    assert counted(half, y) == [[34, 33, 33]] * 3
    without = cls(3, bootstrap=True, class_weight="balanced_subsample").fit(X, y, np.where(y == "few", 0.0, 1.0))
    assert counted(without, y) == [[0, 95, 95]] * 3


def test_roots_of_balanced_bags_are_those_of_scikit_learn() -> None:
    """Both give every class of a bag the same share."""
    X, y = rare()
    ours = gputree.RandomForestClassifier(5, class_weight="balanced_subsample", max_samples=198).fit(X, y)
    theirs = sklearn.ensemble.RandomForestClassifier(5, class_weight="balanced_subsample").fit(X, y)
    for tree in theirs.estimators_:
        np.testing.assert_allclose(tree.tree_.value[0, 0], 1 / 3, rtol=1e-12)
    np.testing.assert_allclose(ours.forest_.value[ours.forest_.roots], 1 / 3, rtol=1e-12)


def test_balanced_without_bags() -> None:
    """A tree of all rows has one bag: both words mean the same, as in scikit-learn."""
    X, y = rare()
    one, other = (
        gputree.ExtraTreesClassifier(3, class_weight=word).fit(X, y) for word in ("balanced", "balanced_subsample")
    )
    assert one.fingerprint() == other.fingerprint()
    np.testing.assert_allclose(one.forest_.value[one.forest_.roots], 1 / 3, rtol=1e-9)


@pytest.mark.parametrize("settings", [{}, {"class_weight": "balanced_subsample"}], ids=str)
def test_rows_of_weight_0_add_no_draws(settings: dict[str, Any]) -> None:
    """A bag has as many draws as rows of positive weight; which rows stand beside them does not count."""
    X, y = rare()
    weight = np.repeat([1.0, 0.0], len(X))
    alone = gputree.RandomForestClassifier(3, **settings).fit(X, y)
    beside = gputree.RandomForestClassifier(3, **settings).fit(np.concatenate([X, X + 1]), np.tile(y, 2), weight)
    assert [rows.size for rows in beside.estimators_samples_] == [len(X)] * 3
    assert (beside.bagging_.sizes == alone.bagging_.sizes).all()


def test_draws_of_classes_continue() -> None:
    X, y = rare()
    model = gputree.RandomForestClassifier(3, max_samples=[9, 9, 9], warm_start=True).fit(X, y)
    model.set_params(n_estimators=7).fit(X, y)
    at_once = gputree.RandomForestClassifier(7, max_samples=[9, 9, 9]).fit(X, y)
    assert model.fingerprint() == at_once.fingerprint()
    with pytest.raises(ValueError, match="the rows or draws changed"):
        model.set_params(n_estimators=8, max_samples=[9, 9, 8]).fit(X, y)


@pytest.mark.parametrize(
    ("max_samples", "message"),
    [
        ({"few": 1, "more": 2, "rest": 3}, "max_samples names 'rest'; the classes of y are 'few', 'more', 'most'"),
        ({"few": 1, "more": 2}, "max_samples has no number for class 'most'; give 0"),
        ([1, 2], "max_samples has 2 numbers, and y has 3 classes"),
        (np.array(5), "max_samples has 1 number, and y has 3 classes"),
        ([1, 2, -3], "max_samples=-3 for class 'most' must be a whole number of draws, from 0 to"),
        ([1, 0.5, 3], "max_samples=0.5 for class 'more' must be a whole number"),
        ([1, True, 3], "max_samples=True for class 'more' must be a whole number"),
        ([0, 0, 0], "max_samples is 0 for every class"),
    ],
)
def test_draws_of_classes_that_cannot_be(max_samples: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gputree.RandomForestClassifier(2, max_samples=max_samples).fit(*rare())


@pytest.mark.parametrize("max_samples", [10**30, 1e30, {"few": 10**30, "more": 1, "most": 1}])
def test_more_draws_than_rows_can_be_numbered(max_samples: Any) -> None:
    with pytest.raises(ValueError, match=r"max_samples=.*4,294,967,295"):
        gputree.RandomForestClassifier(2, max_samples=max_samples).fit(*rare())
    with pytest.raises(ValueError, match="n_estimators"):
        gputree.RandomForestClassifier(10**12).fit(*rare())


def test_draws_of_classes_that_contradict() -> None:
    X, y = rare()
    with pytest.raises(ValueError, match="for class 'few', which has no row of positive weight; give 0"):
        gputree.RandomForestClassifier(2, max_samples=[1, 1, 1]).fit(X, y, np.where(y == "few", 0.0, 1.0))
    for word in ("balanced_subsample", "balanced"):
        with pytest.raises(ValueError, match=f"and so would class_weight='{word}'"):
            gputree.RandomForestClassifier(2, max_samples=[1, 1, 1], class_weight=word).fit(X, y)
    with pytest.raises(ValueError, match="counts draws of the classes of one output, and y has 2"):
        gputree.RandomForestClassifier(2, class_weight="balanced_subsample").fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="The 'max_samples' parameter of RandomForestRegressor must be"):
        gputree.RandomForestRegressor(2, max_samples=[1, 1, 1]).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="`max_sample` cannot be set if `bootstrap=False`"):
        gputree.ExtraTreesClassifier(2, max_samples=[1, 1, 1]).fit(X, y)


# -- out-of-bag errors by number of trees, and when to stop


def plain_losses(model: Any, X: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Errors of the rows (n_trees, n_rows) under the first trees alone that have not drawn them, NaN where none."""
    losses, total, count = [], 0.0, np.zeros((len(X), 1))
    for tree, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        out = ~np.isin(np.arange(len(X)), rows)[:, None]
        said = tree.predict_proba(X) if hasattr(tree, "predict_proba") else tree.predict(X)[:, None]
        total, count = total + said * out, count + out
        with np.errstate(invalid="ignore"):
            mean = total / count
        wrong = model.classes_[mean.argmax(axis=1)] != y if hasattr(tree, "classes_") else (mean[:, 0] - y) ** 2
        losses.append(np.where(count[:, 0] > 0, wrong, np.nan))
    return np.array(losses)


SAMPLES: dict[str, tuple[Any, Any, float]] = {
    "breast cancer": (load_breast_cancer, gputree.RandomForestClassifier, 0.01),
    "diabetes": (load_diabetes, gputree.RandomForestRegressor, 0.02),
    "digits": (load_digits, gputree.ExtraTreesClassifier, 0.02),
}


def sample(name: str) -> tuple[NDArray[Any], NDArray[Any], Any, float]:
    load, cls, tol = SAMPLES[name]
    X, y = load(return_X_y=True)
    return X, y, cls(400, bootstrap=True, max_depth=6, oob_tol=tol), tol


@pytest.mark.parametrize("name", SAMPLES)
def test_errors_by_number_of_trees(name: str) -> None:
    X, y, model, _ = sample(name)
    model.set_params(n_estimators=30).fit(X, y)
    np.testing.assert_allclose(model.oob_errors_, np.nanmean(plain_losses(model, X, y), axis=1), rtol=1e-9)
    assert not hasattr(model, "oob_score_")


@pytest.mark.parametrize("name", SAMPLES)
def test_it_stops_at_the_first_look_that_the_rule_allows(name: str) -> None:
    """And gives the forest of so many trees, grown at once."""
    X, y, model, tol = sample(name)
    model.fit(X, y)
    trees = len(model)
    assert 20 <= trees < 400
    assert trees % 20 == 0
    usual = type(model)(trees, bootstrap=True, max_depth=6, oob_score=True).fit(X, y)
    assert usual.fingerprint() == model.fingerprint()
    np.testing.assert_array_equal(usual.oob_errors_, model.oob_errors_)
    unit = y.var() if name == "diabetes" else 1.0
    losses, allowed = plain_losses(model, X, y), []
    for t in range(20, trees + 1, 20):
        gain = losses[t // 2 - 1] - losses[t - 1]
        gain = gain[~np.isnan(gain)]
        allowed.append(gain.mean() + np.sqrt(gain.var(ddof=1) / len(gain)) <= tol * unit)
    assert allowed == [False] * (trees // 20 - 1) + [True]


@pytest.mark.parametrize("name", SAMPLES)
def test_more_trees_would_not_gain_more_than_was_said(name: str) -> None:
    """Four times as many, over three seeds."""
    X, y, model, tol = sample(name)
    unit = y.var() if name == "diabetes" else 1.0
    for seed in range(3):
        first = clone(model).set_params(random_state=seed).fit(X, y)
        many = type(model)(4 * len(first), bootstrap=True, max_depth=6, oob_score=True, random_state=seed).fit(X, y)
        assert first.oob_errors_[-1] - many.oob_errors_[-1] <= tol * unit


def test_the_rule_by_hand() -> None:
    """Losses of eight rows after 10 and 20 trees: a mean gain of 1/8, with a standard error of 1/8."""
    model = gputree.RandomForestClassifier(2).fit([[0], [1]], [0, 1])
    for tol, stops in ((0.2499, False), (0.2501, True)):
        model.oob_tol = tol
        estimates = OutOfBag.__new__(OutOfBag)
        estimates.model, estimates.errors, estimates.truth = model, [0.0] * 20, np.zeros((8, 2))
        estimates.losses = {10: np.array([1.0, 1, 0, 0, 0, 0, 0, 0, np.nan])}
        estimates.loss = np.array([1.0, 0, 0, 0, 0, 0, 0, 0, 1])
        assert estimates.settled() == stops
        estimates.errors.append(0.0)
        assert not estimates.settled()


def test_a_warm_start_goes_on_to_the_same_end() -> None:
    X, y, model, _ = sample("diabetes")
    at_once = clone(model).fit(X, y)
    warm = clone(model).set_params(n_estimators=13, warm_start=True).fit(X, y)
    warm.set_params(n_estimators=400).fit(X, y)
    assert warm.fingerprint() == at_once.fingerprint()
    assert warm.fit(X, y).fingerprint() == at_once.fingerprint()
    np.testing.assert_array_equal(warm.oob_errors_, at_once.oob_errors_)


def test_a_device_stops_where_the_cpu_does(monkeypatch: pytest.MonkeyPatch) -> None:
    emulate(monkeypatch)
    X, y = load_diabetes(return_X_y=True)
    ours, theirs = (
        gputree.RandomForestRegressor(60, max_depth=3, oob_tol=0.05, device=device).fit(X, y)
        for device in ("cuda", "cpu")
    )
    assert ours.fit_info_.backend == "cuda"
    assert 20 <= len(ours) < 60
    assert ours.fingerprint() == theirs.fingerprint()
    np.testing.assert_array_equal(ours.oob_errors_, theirs.oob_errors_)


def test_a_margin_of_nothing_is_hard_to_meet() -> None:
    X, y, model, _ = sample("diabetes")
    assert len(model.set_params(oob_tol=0.0, n_estimators=60).fit(X, y)) == 60
    with pytest.raises(ValueError, match="Out of bag estimation only available if bootstrap=True"):
        model.set_params(bootstrap=False).fit(X, y)
    with pytest.raises(ValueError, match="The 'oob_tol' parameter of RandomForestRegressor must be a float"):
        model.set_params(oob_tol=-1.0).fit(X, y)


def test_the_plot_of_errors() -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    X, y = load_diabetes(return_X_y=True)
    model = gputree.RandomForestRegressor(20, max_depth=3, oob_score=True).fit(X, y)
    figure, axes = plt.subplots(1, 2, figsize=(12, 4))
    assert gputree.plot_oob_errors(model, axes[1]) is axes[1]
    (line,) = axes[1].lines
    np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 21))
    np.testing.assert_array_equal(line.get_ydata(), model.oob_errors_)
    assert all(tick.is_integer() for tick in axes[1].get_xticks())  # no half of a tree
    plt.close(figure)
    with pytest.raises(ValueError, match="has no oob_errors_; fit a forest with oob_score=True"):
        gputree.plot_oob_errors(gputree.DecisionTreeRegressor().fit(X, y))


# -- progress


def test_progress_by_level_and_tree(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gputree.learners.forest, "POSITIONS", 2 * 442)
    X, y = load_diabetes(return_X_y=True)
    gputree.RandomForestRegressor(5, max_depth=3, verbose=1).fit(X, y)
    told = re.findall(r"\[gputree\] .* trees (\d to \d of \d) ", capsys.readouterr().err)
    assert told == ["1 to 2 of 5"] * 3 + ["3 to 4 of 5"] * 3 + ["5 to 5 of 5"] * 3


class Heard:
    """A callback that notes what it is told, and wants no more trees after some."""

    def __init__(self, most: int = 100) -> None:
        self.most = most
        self.told: list[str] = []

    def setup(self, estimator: Any, context: Any) -> None:
        self.told.append(f"setup {context.max_subtasks}")

    def teardown(self, estimator: Any, context: Any) -> None:
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.told.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        self.told.append(f"end {context.task_name}")
        return self.told.count("end tree") >= self.most


def test_callbacks_hear_of_every_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn.callback")
    monkeypatch.setattr(gputree.learners.forest, "POSITIONS", 1)
    X, y = load_diabetes(return_X_y=True)
    usual, heard = gputree.RandomForestRegressor(3, max_depth=2), Heard()
    model = clone(usual).set_callbacks(heard).fit(X, y)
    assert heard.told == ["setup 3", "begin fit", *["begin tree", "end tree"] * 3, "end fit", "teardown"]
    assert model.fingerprint() == usual.fit(X, y).fingerprint()
    stopped = clone(usual).set_params(n_estimators=50).set_callbacks(Heard(3)).fit(X, y)
    assert stopped.fingerprint() == usual.fingerprint()
    failed = Heard()
    with pytest.raises(ValueError, match="contains NaN"):
        clone(usual).set_callbacks(failed).fit(X, np.full(442, np.nan))
    assert failed.told == ["setup 3", "begin fit", "teardown"]


def test_without_callbacks_in_scikit_learn() -> None:
    """In a process whose scikit-learn has none."""
    program = """
import sys
import sklearn.model_selection, sklearn.pipeline
from sklearn.datasets import load_iris
sys.modules["sklearn.callback"] = None
from gputree import RandomForestClassifier
model = RandomForestClassifier(3).fit(*load_iris(return_X_y=True))
print(len(model), hasattr(model, "set_callbacks"))
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["3", "False"]
