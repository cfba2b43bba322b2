"""One test a constructor parameter: a value that changes the tree, against scikit-learn's tree under that value."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import sklearn.datasets
import sklearn.tree
from numpy.typing import NDArray

import gputree
from gputree.pruning import CostComplexity, ReducedError
from gputree.stopping import MaxDepth
from tests.compare import cut_of, nodes_with_rows, walk

CLASSIFIERS = ["DecisionTreeClassifier", "ExtraTreeClassifier"]
REGRESSORS = ["DecisionTreeRegressor", "ExtraTreeRegressor"]
LEARNERS = CLASSIFIERS + REGRESSORS
ALPHA = 1e-3  # level of the tests on random trees: seeds are fixed, so a pass stays a pass


class Table(NamedTuple):
    X: NDArray[np.float32]
    y: NDArray[Any]
    w: NDArray[np.float64] | None = None


@cache
def table(name: str) -> Table:
    """1,000 noisy rows of five continuous columns; two thirds of the labels are the first class."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(1000, 5)) * 4096).astype(np.float32)
    mean = 10 + X[:, 0] / 2048 + (X[:, 1] > 0) * X[:, 2] / 4096
    y = np.round((mean + rng.normal(size=1000)) * 65536) / 65536
    if name in REGRESSORS:
        return Table(X, y)
    return Table(X, (y > np.quantile(y, 2 / 3)).astype(int))


@cache
def iris() -> Table:
    return Table(*sklearn.datasets.load_iris(return_X_y=True))


def criterion_of(name: str) -> str:
    return "gini" if name in CLASSIFIERS else "squared_error"


def fit(module: Any, name: str, data: Table, **settings: Any) -> Any:
    """A fitted learner that tries every cut of every feature, whatever the defaults of its class."""
    settings = {"splitter": "best", "max_features": None, "random_state": 0, **settings}
    return getattr(module, name)(**settings).fit(data.X, data.y, data.w)


def differ(a: Any, b: Any) -> bool:
    arrays = ("feature", "threshold", "children_left", "impurity")
    return any(not np.array_equal(getattr(a.tree_, x), getattr(b.tree_, x)) for x in arrays)


def check(name: str, data: Table | None = None, *, budget: bool = False, **settings: Any) -> Any:
    """Fit with and without the settings; the tree must differ, and be that of scikit-learn."""
    data = data or table(name)
    ours = fit(gputree, name, data, **settings)
    assert differ(ours, fit(gputree, name, data)), f"{settings} changes nothing"
    theirs = fit(sklearn.tree, name, data, **settings)
    criterion = settings.get("criterion", criterion_of(name))
    report = walk(ours.tree_, theirs.tree_, *data, criterion=criterion, budget=budget)
    assert report.nodes >= 0.5 * theirs.tree_.node_count, f"ties hide the tree: {report}"
    return ours


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("criterion", ["entropy", "log_loss"])
def test_criterion_of_classes(name: str, criterion: str) -> None:
    check(name, criterion=criterion, min_samples_leaf=5)


@pytest.mark.parametrize("name", REGRESSORS)
def test_criterion_of_numbers(name: str) -> None:
    data = table(name)
    check(name, data._replace(y=np.maximum(data.y, 0)), criterion="poisson", min_samples_leaf=5)


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("criterion", ["absolute_error", "friedman_mse"])
def test_criterion_that_is_not_offered_is_refused_with_the_alternatives(name: str, criterion: str) -> None:
    with pytest.raises(ValueError, match=criterion) as error:
        fit(gputree, name, table(name), criterion=criterion)
    assert "squared_error" in str(error.value)
    assert "poisson" in str(error.value)


LIMITS: list[dict[str, Any]] = [
    {"max_depth": 4},
    {"min_samples_split": 30},
    {"min_samples_split": 0.0613},
    {"min_samples_leaf": 9},
    {"min_samples_leaf": 0.0213},
    {"min_weight_fraction_leaf": 0.0213},
]


@pytest.mark.parametrize("limit", LIMITS, ids=str)
@pytest.mark.parametrize("name", LEARNERS)
def test_limits_of_a_node(name: str, limit: dict[str, Any]) -> None:
    check(name, **limit)


@pytest.mark.parametrize("name", LEARNERS)
def test_min_weight_fraction_leaf_weighs_rows(name: str) -> None:
    data = table(name)._replace(w=np.random.default_rng(1).integers(0, 6, 1000).astype(float))
    tree = check(name, data, min_weight_fraction_leaf=0.0313).tree_
    leaves = tree.children_left == -1
    assert tree.weighted_n_node_samples[leaves].min() >= 0.0313 * data.w.sum()


@pytest.mark.parametrize("name", LEARNERS)
def test_max_leaf_nodes(name: str) -> None:
    assert check(name, budget=True, max_leaf_nodes=12).get_n_leaves() == 12


@pytest.mark.parametrize("name", LEARNERS)
def test_max_leaf_nodes_within_other_limits(name: str) -> None:
    check(name, budget=True, max_leaf_nodes=14, max_depth=5, min_samples_leaf=6, min_impurity_decrease=1e-4)


@pytest.mark.parametrize("name", LEARNERS)
def test_min_impurity_decrease(name: str) -> None:
    share = fit(sklearn.tree, name, table(name), max_depth=1).tree_.impurity[0]
    check(name, min_impurity_decrease=0.00413 * share)


@pytest.mark.parametrize("name", LEARNERS)
def test_ccp_alpha(name: str) -> None:
    share = fit(sklearn.tree, name, table(name), max_depth=1).tree_.impurity[0]
    check(name, budget=True, ccp_alpha=0.00313 * share)
    check(name, ccp_alpha=0.00113 * share, min_samples_leaf=10)


PATHS: dict[str, tuple[str, Callable[[], Table]]] = {
    "iris": ("DecisionTreeClassifier", lambda: Table(*sklearn.datasets.load_iris(return_X_y=True))),
    "diabetes": ("DecisionTreeRegressor", lambda: Table(*sklearn.datasets.load_diabetes(return_X_y=True))),
    "noisy labels": ("ExtraTreeClassifier", lambda: table("ExtraTreeClassifier")),
    "noisy numbers": ("ExtraTreeRegressor", lambda: table("ExtraTreeRegressor")),
}


@pytest.mark.parametrize("path", PATHS)
def test_cost_complexity_pruning_path(path: str) -> None:
    """With enough rows in every leaf, no two features tie and both programs prune the same tree."""
    name, load = PATHS[path]
    X, y, _ = load()
    settings = {"min_samples_leaf": 8, "splitter": "best", "max_features": None, "random_state": 0}
    ours, theirs = (
        getattr(m, name)(**settings).cost_complexity_pruning_path(X.astype(np.float32), y)
        for m in (gputree, sklearn.tree)
    )
    assert len(theirs.ccp_alphas) > 4
    unit = max(1.0, theirs.impurities[-1])
    np.testing.assert_allclose(ours.ccp_alphas, theirs.ccp_alphas, rtol=1e-12, atol=1e-12 * unit)
    np.testing.assert_allclose(ours.impurities, theirs.impurities, rtol=1e-12, atol=1e-12 * unit)


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("weights", [{0: 1, 1: 5}, "balanced"], ids=str)
def test_class_weight(name: str, weights: Any) -> None:
    data = table(name)
    ours = fit(gputree, name, data, class_weight=weights, min_samples_leaf=15)
    theirs = fit(sklearn.tree, name, data, class_weight=weights, min_samples_leaf=15)
    assert differ(ours, fit(gputree, name, data, min_samples_leaf=15))
    per_class = sklearn.utils.compute_sample_weight(weights, data.y)
    report = walk(ours.tree_, theirs.tree_, data.X, data.y, per_class, criterion="gini")
    assert report.nodes >= 0.9 * theirs.tree_.node_count, report


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_class_weight_multiplies_sample_weight(name: str) -> None:
    data = table(name)._replace(w=np.random.default_rng(1).integers(0, 4, 1000).astype(float))
    ours = fit(gputree, name, data, class_weight={0: 2, 1: 1}, max_depth=4)
    twice = data.w * np.where(data.y == 0, 2, 1)
    theirs = fit(sklearn.tree, name, data._replace(w=twice), max_depth=4)
    walk(ours.tree_, theirs.tree_, data.X, data.y, twice, criterion="gini")


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", LEARNERS)
def test_monotonic_cst(name: str, sign: int) -> None:
    """The tree follows the constraint where scikit-learn's does; values are held inside its bounds.

    Against the signal, whole features become useless, so few nodes are left to compare.
    """
    data, settings = table(name), {"monotonic_cst": [sign, 0, -sign, 0, 0], "min_samples_leaf": 10, "max_depth": 6}
    ours, theirs = (fit(module, name, data, **settings) for module in (gputree, sklearn.tree))
    assert differ(ours, fit(gputree, name, data, min_samples_leaf=10, max_depth=6))
    walk(ours.tree_, theirs.tree_, *data, criterion=criterion_of(name))
    rows = np.repeat(data.X[:50], 40, axis=0)
    rows[:, 0] = np.tile(np.linspace(-9000, 9000, 40), 50)
    output = ours.predict_proba(rows)[:, 1] if name in CLASSIFIERS else ours.predict(rows)
    assert (sign * np.diff(output.reshape(50, 40)) >= 0).all()


@pytest.mark.parametrize("name", LEARNERS)
def test_max_bins(name: str) -> None:
    """Few bins give other, fewer thresholds; as many as there are values give the exact tree."""
    data = table(name)
    binned = fit(gputree, name, data, max_bins=8)
    exact = fit(gputree, name, data)
    assert differ(binned, exact)
    for f in range(data.X.shape[1]):
        used = binned.tree_.threshold[binned.tree_.feature == f]
        assert len(np.unique(used)) <= 15, "8 codes have 7 edges, and middles of runs of empty codes"
    assert not differ(fit(gputree, name, data, max_bins=65_535), exact)


@pytest.mark.parametrize("name", LEARNERS)
def test_device(name: str) -> None:
    data = table(name)
    trees = [fit(gputree, name, data, device=device) for device in ("auto", "cpu")]
    assert not differ(*trees)
    with pytest.raises(ValueError, match="abacus"):
        fit(gputree, name, data, device="abacus")


# Parameters that draw lots: trees of many seeds against those of scikit-learn.


def many(module: Any, name: str, n: int, **settings: Any) -> list[Any]:
    data = table(name)
    return [fit(module, name, data, random_state=seed, **settings).tree_ for seed in range(n)]


def same_mean(a: list[float], b: list[float]) -> None:
    """Two samples of trees have equal means (Welch's test)."""
    p = scipy.stats.ttest_ind(a, b, equal_var=False).pvalue
    assert p > ALPHA, f"means {np.mean(a):.4g} and {np.mean(b):.4g}, p {p:.2g}"


def same_counts(a: list[int], b: list[int], n_features: int) -> None:
    """Two samples of root features come from one distribution (chi-square test)."""
    counts = np.array([np.bincount(x, minlength=n_features) for x in (a, b)])
    counts = counts[:, counts.sum(axis=0) > 0]
    p = scipy.stats.chi2_contingency(counts).pvalue if counts.shape[1] > 1 else 1.0
    assert p > ALPHA, f"{counts.tolist()}, p {p:.2g}"


def mean_depth(tree: Any) -> float:
    """Mean depth of the leaves, by rows."""
    rows = np.arange(1000)
    data = table("DecisionTreeRegressor")
    parts = nodes_with_rows(tree, data.X, rows)
    return sum(len(r) * depth for node, r, depth in parts if tree.children_left[node] == -1) / 1000


@pytest.mark.parametrize(
    "settings", [{"min_samples_leaf": 5}, {"max_features": 2, "min_samples_split": 10}, {"max_depth": 3}], ids=str
)
@pytest.mark.parametrize("name", LEARNERS)
def test_splitter_random_has_the_statistics_of_sklearn(name: str, settings: dict[str, Any]) -> None:
    """Not with both max_features and min_samples_leaf: only ours goes on where the cuts drawn are not admissible."""
    ours, theirs = (many(m, name, 120, splitter="random", **settings) for m in (gputree, sklearn.tree))
    same_mean([t.node_count for t in ours], [t.node_count for t in theirs])
    same_mean([mean_depth(t) for t in ours], [mean_depth(t) for t in theirs])
    same_counts([t.feature[0] for t in ours], [t.feature[0] for t in theirs], 5)
    for tree in ours[:5]:
        assert tree.n_node_samples[tree.children_left == -1].min() >= settings.get("min_samples_leaf", 1)


@pytest.mark.parametrize("name", LEARNERS)
def test_splitter_random_draws_thresholds_uniformly(name: str) -> None:
    """One column leaves one threshold at the root, uniform between its least and greatest value."""
    data = table(name)
    data = data._replace(X=data.X[:, :1])
    drawn = [fit(gputree, name, data, splitter="random", max_depth=1, random_state=s).tree_ for s in range(400)]
    low, high = float(data.X.min()), float(data.X.max())
    thresholds = [float(t.threshold[0]) for t in drawn]
    assert min(thresholds) >= low
    assert max(thresholds) < high
    assert scipy.stats.kstest(thresholds, "uniform", (low, high - low)).pvalue > ALPHA


@pytest.mark.parametrize("max_features", [1, 3, 0.4, "sqrt", "log2"])
@pytest.mark.parametrize("name", LEARNERS)
def test_max_features_has_the_statistics_of_sklearn(name: str, max_features: Any) -> None:
    ours, theirs = (
        many(m, name, 80, max_features=max_features, min_samples_leaf=5, max_depth=6) for m in (gputree, sklearn.tree)
    )
    same_mean([t.node_count for t in ours], [t.node_count for t in theirs])
    same_counts([t.feature[0] for t in ours], [t.feature[0] for t in theirs], 5)
    # One level lower: the subset is drawn anew at every node.
    below = [
        [t.feature[t.children_left[0]] for t in trees if t.feature[t.children_left[0]] >= 0] for trees in (ours, theirs)
    ]
    same_counts(*below, 5)


@pytest.mark.parametrize("name", LEARNERS)
def test_max_features_tries_further_features_until_one_can_be_split(name: str) -> None:
    data = table(name)
    X = np.zeros_like(data.X)
    X[:, 3] = data.X[:, 3]
    for seed in range(8):
        tree = fit(gputree, name, data._replace(X=X), max_features=1, random_state=seed, max_depth=2).tree_
        assert cut_of(tree, 0).feature == 3


@pytest.mark.parametrize("name", LEARNERS)
def test_random_state(name: str) -> None:
    """Seeds matter where lots are drawn, equal seeds give equal trees, and the best splitter draws none."""
    data = table(name)
    first, again, other = (fit(gputree, name, data, splitter="random", random_state=s) for s in (7, 7, 8))
    assert not differ(first, again)
    assert differ(first, other)
    assert not differ(fit(gputree, name, data, random_state=7), fit(gputree, name, data, random_state=8))
    assert not differ(
        fit(gputree, name, data, splitter="random", random_state=None),
        fit(gputree, name, data, splitter="random", random_state=0),
    )


def tree(seed: Any, **settings: Any) -> Any:
    return gputree.ExtraTreeClassifier(random_state=seed, **settings)


def forest(seed: Any, **settings: Any) -> Any:
    return gputree.RandomForestClassifier(2, random_state=seed, **settings)


def bag(seed: Any, **settings: Any) -> Any:
    return gputree.BaggingTreeClassifier(gputree.ExtraTreeClassifier(**settings), 2, random_state=seed)


IDLE = {"stopping": MaxDepth(99)}, {"pruning": CostComplexity(0.0)}


@pytest.mark.parametrize(
    ("make", "settings", "same"),
    [
        *((tree, idle, {}) for idle in ({}, *IDLE)),
        (tree, {"pruning": ReducedError()}, {"pruning": ReducedError()}),
        *((forest, idle, {}) for idle in IDLE),
        *((bag, idle, {}) for idle in IDLE),
    ],
)
def test_a_random_state_gives_one_seed_a_fit(
    make: Callable[..., Any], settings: dict[str, Any], same: dict[str, Any]
) -> None:
    """Whatever is drawn by it; the next fit has the next one, as in scikit-learn."""
    seeds = np.random.RandomState(3)
    drawn = make(np.random.RandomState(3), **settings)
    for _fit in range(2):
        known = make(int(seeds.randint(np.iinfo(np.int32).max)), **same)
        assert drawn.fit(*iris()).fingerprint() == known.fit(*iris()).fingerprint()


@pytest.mark.parametrize("device", ["numpy", "jit"])
@pytest.mark.parametrize("limit", ["max_depth", "max_leaf_nodes", "max_features"])
def test_a_limit_beyond_64_bits_is_none(limit: str, device: str) -> None:
    if device == "jit":
        pytest.importorskip("numba")
    model = gputree.DecisionTreeClassifier(device=device, **{limit: 10**30}).fit(*iris())
    assert model.fingerprint() == gputree.DecisionTreeClassifier().fit(*iris()).fingerprint()


def test_categories_are_refused_where_they_have_no_meaning() -> None:
    """Twoing compares two branches; categories have no order that a monotone constraint could follow."""
    frame = pd.DataFrame({"colour": ["red", "green", "blue", "red"], "x": [0.0, 1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match=r"'twoing' compares two branches, and column 'colour' has 3 categories"):
        gputree.DecisionTreeClassifier(criterion="twoing", categorical_split="multiway").fit(frame, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="constrains column 'colour'"):
        gputree.DecisionTreeClassifier(monotonic_cst=[1, 0]).fit(frame, [0, 1, 0, 1])
    model = gputree.DecisionTreeClassifier(monotonic_cst=[0, 1]).fit(frame, [0, 1, 0, 1])
    assert model.get_n_leaves() > 1


def test_a_poisson_branch_never_has_a_sum_of_zero() -> None:
    frame = pd.DataFrame({"colour": ["red", "green", "blue"] * 4, "x": np.arange(12.0)})
    y = np.where(frame["colour"] == "red", 0.0, np.arange(12.0) + 1)
    model = gputree.DecisionTreeRegressor(criterion="poisson").fit(frame, y)
    assert (model.predict(frame) > 0).all()
