"""Rules of pruning against formulas, plain recursion, an independent script's trees, and what users may get wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError

import gputree
from gputree import DecisionTreeClassifier, DecisionTreeRegressor, RandomForestClassifier, RandomForestRegressor
from gputree.core.forest import SPREAD, Forest, Test
from gputree.engine.pruning.bottom_up import cheaper_leaves, greedy_leaves
from gputree.engine.pruning.errors import ADDED
from gputree.inspect.check import check_forest
from gputree.pruning import Collapse, CostComplexity, ErrorBased, ReducedError, Rule, ValidationSet, prune
from tests.backends.test_methods import random_forest

DATA = Path(__file__).parent / "data"
GRID = json.loads((DATA / "error_limits.json").read_text())["grid"]
BITS = json.loads((DATA / "reduced_error.json").read_text())
REDUCED = {
    "if_no_worse": ReducedError(),
    "only_if_better": ReducedError(strict=True),
    "greedy": ReducedError(False, True),
}


@pytest.mark.parametrize("cf", sorted({row["CF"] for row in GRID}))
def test_limits_of_errors(cf: float) -> None:
    """C4.5's, J48's and the exact binomial limit on a grid of cases and errors."""
    rows = [row for row in GRID if row["CF"] == cf]
    N, E = (np.array([float(row[name]) for row in rows]) for name in ("N", "e"))
    for name in ("c45", "j48"):
        np.testing.assert_allclose(
            ADDED[name](N, E, cf), [row[f"{name}_added"] for row in rows], rtol=1e-12, atol=1e-14
        )
    exact = [i for i, row in enumerate(rows) if "exact_binomial_U" in row]
    limit = (E + ADDED["binomial"](N, E, cf))[exact] / N[exact]
    np.testing.assert_allclose(limit, [rows[i]["exact_binomial_U"] for i in exact], rtol=1e-12)


def test_no_case_adds_no_error() -> None:
    for added in ADDED.values():
        assert added(np.zeros(1), np.zeros(1), 0.25) == 0


def below(forest: Forest, marks: NDArray[np.bool_], cost: NDArray[np.float64], node: int) -> float:
    """What the branch of a node costs, by recursion."""
    if forest.kind[node] == Test.LEAF or marks[node]:
        return float(cost[node])
    return sum(below(forest, marks, cost, child) for child in forest.node(node).children)


def plain_bottom_up(forest: Forest, cost: NDArray[np.float64], strictly: bool) -> NDArray[np.bool_]:
    marks = np.zeros(forest.n_nodes, bool)

    def judge(node: int) -> None:
        for child in forest.node(node).children:
            judge(child)
        branch = below(forest, marks, cost, node)
        marks[node] = forest.kind[node] != Test.LEAF and (cost[node] < branch if strictly else cost[node] <= branch)

    for root in forest.roots.tolist():
        judge(root)
    return marks


def plain_greedy(forest: Forest, cost: NDArray[np.float64], strictly: bool) -> NDArray[np.bool_]:
    marks, none = np.zeros(forest.n_nodes, bool), np.zeros(forest.n_nodes)

    def leaves(node: int) -> float:
        return below(forest, marks, none + 1, node)

    def hidden(node: int) -> bool:
        return node >= 0 and (bool(marks[node]) or hidden(int(forest.parent[node])))

    while True:
        open_ = [i for i in np.flatnonzero(forest.kind != Test.LEAF).tolist() if not hidden(i)]
        gains = [(below(forest, marks, cost, i) - cost[i], leaves(i), -i) for i in open_]
        best = max(gains, default=(-1.0, 0, 0))
        if best[0] < 0 or (strictly and best[0] == 0):
            return marks
        marks[-best[2]] = True


@pytest.mark.parametrize("strictly", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_nodes_are_judged_as_by_recursion(seed: int, strictly: bool) -> None:
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, 3)
    cost = rng.integers(0, 4, forest.n_nodes) * np.where(forest.kind == Test.LEAF, 1.0, 2.0)
    pairs: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
        (cheaper_leaves, plain_bottom_up),
        (greedy_leaves, plain_greedy),
    ]
    for ours, plain in pairs:
        found, expected = (
            forest.collapse(m) for m in (ours(forest, cost, 0.0, strictly), plain(forest, cost, strictly))
        )
        assert found.fingerprint() == expected.fingerprint()


def as_dict(forest: Forest, node: int = 0) -> Any:
    if forest.kind[node] == Test.LEAF:
        return int(forest.value[node].argmax())
    zero, one = forest.node(node).children
    return {"x": int(forest.feature[node]) + 1, "1": as_dict(forest, one), "0": as_dict(forest, zero)}


@pytest.mark.parametrize("name", REDUCED)
def test_reduced_error_on_64_rows(name: str) -> None:
    """ID3's tree of 40 rows, pruned by the other 24."""
    rows = np.array(BITS["rows"])
    X, y = rows[:, :6].astype(float), rows[:, 6]
    full = DecisionTreeClassifier(criterion="entropy").fit(X[:40], y[:40])
    assert as_dict(full.forest_) == BITS["trees"]["full"]["tree"]
    model, oracle = prune(full, REDUCED[name], X[40:], y[40:]), BITS["trees"][name]
    assert as_dict(model.forest_) == oracle["tree"]
    assert (model.predict(X[:40]) != y[:40]).sum() == oracle["train_errors"]
    assert (model.predict(X[40:]) != y[40:]).sum() == oracle["val_errors"]


MODELS = {
    "tree": lambda: (DecisionTreeClassifier(), load_breast_cancer(return_X_y=True)),
    "multiclass": lambda: (DecisionTreeClassifier(class_weight={0: 1.0, 1: 2.0, 2: 1.5}), load_iris(return_X_y=True)),
    "forest": lambda: (RandomForestClassifier(n_estimators=3), load_breast_cancer(return_X_y=True)),
    "forest of all rows": lambda: (
        RandomForestClassifier(n_estimators=2, bootstrap=False),
        load_breast_cancer(return_X_y=True),
    ),
}
RULES = [
    Collapse(),
    ErrorBased(raising=False),
    ErrorBased(),
    ErrorBased(0.4, "binomial"),
    ReducedError(),
    CostComplexity(0.01),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_pruned_models_are_sound(name: str, rule: Rule) -> None:
    """Smaller, consistent, the same when pruned again; the model itself stays; it can be saved."""
    model, (X, y) = MODELS[name]()
    model.fit(X, y)
    before, rows = model.fingerprint(), () if rule.needs.name == "NO_ROWS" else (X, y)
    pruned = prune(model, rule, *rows)
    check_forest(pruned.forest_, pruned.schema_, pruned.layout_)
    assert pruned.forest_.n_nodes <= model.forest_.n_nodes
    assert (pruned.forest_.stats[pruned.forest_.roots] == model.forest_.stats[model.forest_.roots]).all()
    assert prune(pruned, rule, *rows).fingerprint() == pruned.fingerprint()
    assert model.fingerprint() == before
    assert pruned.predict(X).shape == y.shape


def test_cost_complexity_is_that_of_a_fit() -> None:
    X, y = load_diabetes(return_X_y=True)
    for alpha in (0.0, 10.0, 200.0):
        pruned = prune(DecisionTreeRegressor().fit(X, y), CostComplexity(alpha))
        assert pruned.fingerprint() == DecisionTreeRegressor(ccp_alpha=alpha).fit(X, y).fingerprint()


def test_numbers_are_pruned_by_squared_differences() -> None:
    """No subtree does better on the validation rows; trees of a forest are pruned by themselves."""
    X, y = load_diabetes(return_X_y=True)
    model = DecisionTreeRegressor(max_depth=3).fit(X[::2], y[::2])
    pruned = prune(model, ReducedError(), X[1::2], y[1::2])
    best, inner = np.inf, np.flatnonzero(model.forest_.kind != Test.LEAF)
    for choice in range(1 << inner.size):
        marks = np.zeros(model.forest_.n_nodes, bool)
        marks[inner[[bool(choice >> i & 1) for i in range(inner.size)]]] = True
        other = gputree.pruning.with_forest(model, model.forest_.collapse(marks))
        best = min(best, float(((other.predict(X[1::2]) - y[1::2]) ** 2).sum()))
    assert ((pruned.predict(X[1::2]) - y[1::2]) ** 2).sum() == pytest.approx(best, rel=1e-12)
    forest = RandomForestRegressor(n_estimators=3).fit(X[::2], y[::2])
    smaller = prune(forest, ReducedError(), X[1::2], y[1::2])
    for tree, own in zip(forest, smaller, strict=True):
        assert prune(tree, ReducedError(), X[1::2], y[1::2]).fingerprint() == own.fingerprint()


def test_weights_of_validation_rows_are_copies() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model, times = DecisionTreeClassifier().fit(X[::2], y[::2]), np.random.default_rng(0).integers(0, 4, len(y[1::2]))
    weighted = prune(model, ReducedError(), X[1::2], y[1::2], times)
    copies = prune(model, ReducedError(), np.repeat(X[1::2], times, axis=0), np.repeat(y[1::2], times))
    assert weighted.fingerprint() == copies.fingerprint()


def test_estimates_of_other_trees_go() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(n_estimators=20, oob_score=True).fit(X, y)
    assert not hasattr(prune(model, Collapse()), "oob_score_")
    assert hasattr(model, "oob_score_")


class Stump(Rule):
    """A rule of a user: the root alone has a test."""

    needs = gputree.engine.pruning.Needs.NO_ROWS

    def __call__(self, fitted: Any, cases: Any = None) -> Forest:
        return fitted.forest.collapse(fitted.forest.depth > 0)


def test_a_rule_of_a_user() -> None:
    assert prune(DecisionTreeClassifier().fit(*load_iris(return_X_y=True)), Stump()).get_depth() == 1


def test_a_deep_tree() -> None:
    """No recursion: a chain of 20,000 tests."""
    n = 20_001
    X, y = np.arange(n, dtype=float)[:, None], (np.arange(n) % 2).astype(float)
    forest = DecisionTreeClassifier(max_depth=2).fit(X[:5], [0, 1, 0, 1, 0]).forest_
    node = np.arange(2 * n - 1)
    inner = (node % 2 == 0) & (node < 2 * n - 2)
    chain = replace(
        forest,
        kind=np.where(inner, np.uint8(Test.THRESHOLD), np.uint8(0)),
        first_child=np.where(inner, node + 1, -1).astype(np.int32),
        n_children=np.where(inner, 2, 0).astype(np.uint16),
        parent=np.where(node > 0, (node - 1) // 2 * 2, -1).astype(np.int32),
    )
    assert y.size == n
    for find in (cheaper_leaves, greedy_leaves):
        assert find(chain, np.ones(node.size), 0.0)[0]


X, Y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: prune(m, ErrorBased()), ValueError, "needs the rows of the fit"),
        (lambda m: prune(m, ReducedError()), ValueError, "needs validation rows"),
        (lambda m: prune(m, ReducedError(), X), ValueError, "needs validation rows"),
        (lambda m: prune(m, Collapse(), X, Y), ValueError, "needs no rows"),
        (lambda m: prune(m, ReducedError(), np.zeros((0, 1)), []), ValueError, "0 sample"),
        (lambda m: prune(m, ReducedError(), [[0.0, 1.0]], [0]), ValueError, "2 features"),
        (lambda m: prune(m, ReducedError(), X, [0, 1, 2, 1]), ValueError, "y holds 2, which is none of the 2 classes"),
        (lambda m: prune(m, ReducedError(), X, [0, 1]), ValueError, "y has 2 rows and X has 4"),
        (lambda m: prune(m, ReducedError(), X, Y, [-1, 1, 1, 1]), ValueError, "weights must be 0 or more"),
        (lambda m: prune(m, ErrorBased(), X, [0, 0, 0, 1]), ValueError, "give the rows and weights of the fit"),
        (lambda m: prune(m, ErrorBased(), X, Y, [1, 1, 1, 2]), ValueError, "give the rows and weights of the fit"),
        (lambda m: prune(m, ErrorBased), TypeError, "no rule of pruning"),
        (lambda m: prune(m, "error"), TypeError, "no rule of pruning"),
        (lambda m: prune(type(m), Collapse()), TypeError, "the class DecisionTreeClassifier is no tree or forest"),
        (lambda m: prune(object(), Collapse()), TypeError, "no tree or forest of gputree"),
        (lambda m: prune(DecisionTreeClassifier(), Collapse()), NotFittedError, "not fitted"),
        (lambda m: prune(DecisionTreeRegressor().fit(X, Y), Collapse()), ValueError, "counts errors of one output"),
        (lambda m: ErrorBased(cf=0.0), ValueError, "cf=0.0 must be a number above 0 and below 1"),
        (lambda m: ErrorBased(cf=1), ValueError, "cf=1 must be"),
        (lambda m: ErrorBased(cf="0.25"), ValueError, "must be a number"),
        (lambda m: ErrorBased(limit="exact"), ValueError, "must be one of 'j48', 'c45', 'binomial'"),
        (lambda m: ErrorBased(raising=1), ValueError, "must be True or False"),
        (lambda m: CostComplexity(-1.0), ValueError, "at least 0"),
    ],
)
def test_mistakes(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(DecisionTreeClassifier().fit(X, Y))


def test_unknown_columns_are_named() -> None:
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 0.0, 1.0]})
    model = DecisionTreeClassifier().fit(frame, [0, 1, 0])
    with pytest.raises(ValueError, match="c"):
        prune(model, ReducedError(), frame.rename(columns={"b": "c"}), [0, 1, 0])


def test_raising_and_monotonic_constraints() -> None:
    model = DecisionTreeClassifier(monotonic_cst=[1]).fit(X, Y)
    with pytest.raises(ValueError, match="would undo monotonic_cst"):
        prune(model, ErrorBased(), X, Y)


def golf() -> Any:
    """Five sunny days, three of clouds, five of rain, and one unknown."""
    sky = pd.Categorical(["sunny"] * 5 + ["cloudy"] * 3 + ["rainy"] * 5 + [None])
    return gputree.C45Classifier(pruning=None).fit(pd.DataFrame({"sky": sky}), [0] * 5 + [1] * 3 + [0, 1, 1, 1, 1, 0])


def test_texts_show_shares() -> None:
    text = gputree.export_text(golf())
    assert "sky = sunny (38.5% of missing and other)" in text
    assert "sky = cloudy (23.1% of missing and other)" in text
    assert "missing" not in gputree.export_text(golf(), show_missing=False)
    root = gputree.export_dict(golf())["nodes"][0]
    assert root["missing"] is None
    assert root["unseen"] is None


def test_what_arrays_of_scikit_learn_cannot_say() -> None:
    model = gputree.C45Classifier(pruning=None).fit([[0.0], [1.0], [2.0], [3.0], [np.nan]], [0, 0, 1, 1, 0])
    assert model.forest_.missing[0] == SPREAD
    for ask in (lambda: model.tree_.missing_go_to_left, lambda: model.tree_.predict([[np.nan]])):
        with pytest.raises(ValueError, match=r"down both branches|several leaves"):
            ask()
    with pytest.raises(TypeError, match="scikit-learn has no C45Classifier"):
        gputree.to_sklearn(model)
    assert model.tree_.apply([[np.nan]]) == model.apply([[np.nan]])


def noisy(n: int = 60) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + rng.normal(size=n) * 0.5 > 0).astype(int)


def test_rows_of_the_fit_are_known_by_weights_of_any_size() -> None:
    """A fit lifts weights that are too small for its unit to one unit; so does the rule that asks for its rows."""
    X, y = noisy()
    weight = np.ones(60)
    weight[::3] = 1e-15
    model = gputree.DecisionTreeClassifier().fit(X, y, sample_weight=weight)
    assert prune(model, ErrorBased(), X, y, weight).get_n_leaves() <= model.get_n_leaves()


@pytest.mark.parametrize("factor", [1e-300, 1e300, 1e308])
@pytest.mark.parametrize("rule", [ReducedError(), ReducedError(greedy=True), ValidationSet()])
def test_a_common_factor_of_validation_weights_tells_nothing(rule: Any, factor: float) -> None:
    X, y = noisy()
    model = gputree.DecisionTreeClassifier().fit(X[::2], y[::2])
    plain = prune(model, rule, X[1::2], y[1::2])
    assert prune(model, rule, X[1::2], y[1::2], np.full(30, factor)).fingerprint() == plain.fingerprint()


def test_j48s_limit_is_one_of_more_errors() -> None:
    with pytest.raises(ValueError, match=r"cf=0.9 must be at most 0.5 with limit='j48'"):
        ErrorBased(cf=0.9)
    assert (ADDED["j48"](np.full(3, 16.0), np.array([0.0, 1.0, 4.0]), 0.5) >= 0).all()
    assert ErrorBased(cf=0.9, limit="binomial").cf == 0.9
