"""Rules of pruning against formulas, plain recursion, an independent script's trees, and what users may get wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.tree
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError

import gputree
from gputree import (
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    stopping,
)
from gputree.core.checks import countable
from gputree.core.forest import SPREAD, Forest, Test, joined
from gputree.engine.pruning import cost_complexity_path, nested
from gputree.engine.pruning import prune as one_alpha
from gputree.engine.pruning.bottom_up import cheaper_leaves, greedy_leaves
from gputree.engine.pruning.errors import ADDED
from gputree.engine.pruning.path import Heap, weakest_links
from gputree.inspect.check import check_forest
from gputree.learners.stopped import with_forest
from gputree.pruning import (
    BottomUp,
    ChiSquare,
    Collapse,
    CostComplexity,
    DescriptionLength,
    ErrorBased,
    Needs,
    ReducedError,
    RiskBound,
    Rule,
    ValidationSet,
    fitted_of,
    prune,
)
from gputree.pruning import cost_complexity_path as cost_path
from gputree.stopping import NoGain
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


@pytest.mark.filterwarnings("ignore:.* these are the rows of the fit")
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
        other = with_forest(model, model.forest_.collapse(marks))
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

    needs = Needs.NO_ROWS

    def __call__(self, fitted: Any, cases: Any = None) -> Forest:
        return fitted.forest.collapse(fitted.forest.depth > 0)


def test_a_rule_of_a_user() -> None:
    assert prune(DecisionTreeClassifier().fit(*load_iris(return_X_y=True)), Stump()).get_depth() == 1


class Giving(Stump):
    """Whatever a function makes of the forest."""

    def __init__(self, give: Callable[[Forest], Any]) -> None:
        self.give = give

    def __call__(self, fitted: Any, cases: Any = None) -> Any:
        return self.give(fitted.forest)


@pytest.mark.parametrize(
    ("give", "error", "message"),
    [
        (lambda forest: None, TypeError, "gave None of type NoneType, which is no forest; give what is left"),
        (lambda forest: forest.depth > 1, TypeError, "of type numpy.ndarray, which is no forest"),
        (
            lambda forest: forest.tree(0).collapse([True]),
            ValueError,
            r"an array \(1,\) of type bool; give a bool for each",
        ),
        (
            lambda forest: forest.collapse(forest.depth),
            ValueError,
            "of type int32; give a bool for each of the 7 ",
        ),
        (lambda forest: replace(forest, stats=forest.stats + 1), ValueError, "trees hold other rows than those"),
    ],
)
def test_rules_of_users_that_give_no_forest(give: Any, error: type[Exception], message: str) -> None:
    for call in (
        lambda: prune(DecisionTreeClassifier().fit(X, Y), Giving(give)),
        lambda: DecisionTreeClassifier(pruning=Giving(give)).fit(X, Y),
    ):
        with pytest.raises(error, match=message):
            call()


def test_marks_may_be_a_list() -> None:
    model = DecisionTreeClassifier().fit(X, Y)
    assert prune(model, Giving(lambda forest: forest.collapse((forest.depth > 0).tolist()))).get_n_leaves() == 2


@pytest.mark.parametrize(
    "rule",
    [Collapse(), ErrorBased(raising=False), ChiSquare(), CostComplexity(0.01, cost="error"), CostComplexity(0.03)],
)
def test_all_trees_at_once_are_pruned_as_each_alone(rule: Rule) -> None:
    """After the fit and in it, and where trees have rows of other numbers, as those of no fit do."""
    X, y = noisy()
    own = [fitted_of(DecisionTreeClassifier(min_samples_leaf=4).fit(X[:n], y[:n])) for n in (60, 25, 40)]
    together = rule(replace(own[0], forest=joined([tree.forest for tree in own])))
    assert together.fingerprint() == joined([rule(tree) for tree in own]).fingerprint()
    assert together.n_nodes < sum(tree.forest.n_nodes for tree in own)
    for given in ({}, {"class_weight": "balanced_subsample", "max_samples": 0.7}):
        model: Any = RandomForestClassifier(5, min_samples_leaf=4, **given).fit(X, y)
        fitted = fitted_of(model)
        alone = joined([rule(fitted.tree(t)) for t in range(5)])
        assert not rule.tree_by_tree
        assert alone.n_nodes < model.forest_.n_nodes
        assert prune(model, rule).forest_.fingerprint() == alone.fingerprint()
        assert model.set_params(pruning=rule).fit(X, y).forest_.fingerprint() == alone.fingerprint()


def alone(rule: Any, fitted: Any, cases: Any = None) -> Forest:
    """The tree as it is, if it is given alone."""
    assert fitted.forest.roots.size == 1
    return fitted.forest  # type: ignore[no-any-return]


class Mixin:
    """No rule, and yet what a call does."""

    __call__ = alone


@pytest.mark.parametrize("rule", [Collapse, ChiSquare, CostComplexity])
def test_a_call_of_a_user_is_given_one_tree_at_a_time(rule: type[Any]) -> None:
    """Though the class below it takes all; not where it says that it does too, or has no call of its own."""
    given = (0.1,) if rule is CostComplexity else ()
    model = RandomForestClassifier(2, max_depth=2).fit(*noisy())
    own = type("Own", (rule,), {"__call__": alone})
    for kind in (own, type("Below", (own,), {}), type("Mixed", (Mixin, rule), {})):
        assert prune(model, kind(*given)).fingerprint() == model.fingerprint()
    assert not type("Named", (rule,), {}).tree_by_tree
    assert not type("Says", (rule,), {"__call__": alone, "tree_by_tree": False}).tree_by_tree


@pytest.mark.parametrize("model", [DecisionTreeRegressor(), RandomForestRegressor(3)], ids=["tree", "forest"])
def test_a_rule_of_a_user_sees_the_rows_of_a_regression(model: Any) -> None:
    class Sized(Stump):
        needs = Needs.FIT

        def __call__(self, fitted: Any, cases: Any = None) -> Forest:
            assert np.bincount(cases.parts.node, cases.parts.weight).sum() == 442 * fitted.forest.roots.size
            return super().__call__(fitted)

    X, y = load_diabetes(return_X_y=True)
    model.fit(X, y)
    assert prune(model, Sized(), X, y).forest_.max_depth == 1


def test_rows_that_are_not_those_of_a_regression() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = DecisionTreeRegressor(max_depth=2).fit(X, y)
    with pytest.raises(ValueError, match=r"the rows have weights \[441.0\] and the fit had \[442.0\]"):
        prune(model, Asking(), X[1:], y[1:])


class Asking(Stump):
    """The same, if the rows are those of the fit."""

    needs = Needs.FIT
    raises = False


@pytest.mark.parametrize(
    "model",
    [DecisionTreeRegressor(max_depth=4), RandomForestRegressor(3), DecisionTreeRegressor(monotonic_cst=[1, 0, 0])],
)
@pytest.mark.parametrize("size", [1.0, 1e-300, 1e300])
def test_y_of_a_regression_is_that_of_the_fit(model: Any, size: float) -> None:
    """Not another with the same tests, such as 3y + 7 and -y."""
    X, _ = noisy()
    y = X[:, :2].sum(axis=1) * size
    model.fit(X, y)
    assert prune(model, Asking(), X, y).forest_.max_depth == 1
    for other in (3 * y + 7 * size, -y, y + 1e-6 * size):
        with pytest.raises(ValueError, match="y of the rows has other means in the nodes than that of the fit"):
            prune(model, Asking(), X, other)


@pytest.mark.parametrize("model", [DecisionTreeRegressor(max_depth=4), RandomForestRegressor(2)])
def test_y_of_the_fit_far_from_nothing(model: Any) -> None:
    """Numbers of a range that is small beside them, whose means are rounded."""
    X, _ = noisy()
    y = 1e9 * (1.0 + X[:, :2].sum(axis=1) * 2.0**-44)
    assert prune(model.fit(X, y), Asking(), X, y).forest_.max_depth == 1


@pytest.mark.parametrize("rule", [ReducedError(), ValidationSet()])
@pytest.mark.parametrize("model", [DecisionTreeClassifier(), RandomForestClassifier(3), DecisionTreeRegressor()])
def test_rows_of_the_fit_are_not_held_out(model: Any, rule: Rule) -> None:
    X, y = noisy()
    model.fit(X, y)
    with pytest.warns(UserWarning, match="needs validation rows, .* and these are the rows of the fit"):
        prune(model, rule, X, y)
    prune(model, rule, X[::2], y[::2])
    prune(model, rule, X[::2], y[::2], np.full(30, 1e308))


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, C45Classifier, DecisionTreeRegressor])
def test_a_fit_that_kept_rows_back(kind: type[Any]) -> None:
    """A rule that needs the rows of the fit says why all rows are not those."""
    X, y = noisy()
    model = kind(pruning=ReducedError()).fit(X, y)
    with pytest.raises(ValueError, match=r"the rows .* Of the rows that fit was given, pruning=ReducedError\(.* keeps"):
        prune(model, Asking(), X, y)
    with pytest.raises(ValueError, match=r"or a rule that needs none$"):
        prune(kind(pruning=None).fit(X, y), Asking(), X[1:], y[1:])
    prune(kind(pruning=None).fit(X, y).set_params(pruning=ReducedError()), Asking(), X, y)


def test_bags_are_of_as_many_rows_as_the_fit_had() -> None:
    X, y = noisy()
    for some in (X[:-1], np.concatenate([X, X[:1]])):
        with pytest.raises(ValueError, match=f"X has {len(some)} rows, and the fit had 60; give the rows of the fit"):
            prune(RandomForestClassifier(2).fit(X, y), ErrorBased(), some, np.resize(y, len(some)))


def test_cases_have_bounds() -> None:
    for cases in (2.0**-800, 2.0**100):
        countable("it", cases)
    for cases in (2.0**-801, 2.0**101, np.inf):
        with pytest.raises(ValueError, match="and it counts cases by them"):
            countable("it", cases)


def test_weights_that_conversion_rounded() -> None:
    X, y = noisy()
    w = np.random.default_rng(1).random(60)
    model = gputree.from_sklearn(sklearn.tree.DecisionTreeClassifier(min_samples_leaf=3).fit(X, y, w))
    with pytest.raises(ValueError, match=r"but for rounding: .* give a rule that needs no rows"):
        prune(model, ErrorBased(), X, y, w)


@pytest.mark.parametrize("model", [DecisionTreeClassifier(), RandomForestClassifier(2)])
def test_a_model_tells_what_it_was_pruned_by(model: Any, tmp_path: Path) -> None:
    """Its copies and files too, until it is fitted again."""
    X, y = noisy()
    pruned = prune(prune(model.fit(X, y), Collapse()), ErrorBased(0.1), X, y)
    assert not hasattr(model, "pruned_by_")
    gputree.save(pruned, tmp_path / "model")
    text = "Collapse(), then ErrorBased(cf=0.1, limit='j48', raising=True)"
    assert pruned.pruned_by_ == gputree.load(tmp_path / "model").pruned_by_ == text
    assert getattr(pruned, "estimators_", [pruned])[0].pruned_by_ == text
    assert not hasattr(pruned.fit(X, y), "pruned_by_")


def test_a_rule_that_no_file_holds(tmp_path: Path) -> None:
    X, y = noisy()
    model = DecisionTreeClassifier(pruning=BottomUp(lambda tree, m: tree.error)).fit(X, y)
    with pytest.raises(TypeError, match=r"set_params with None in its place takes it out"):
        gputree.save(model, tmp_path / "model")
    gputree.save(model.set_params(pruning=None), tmp_path / "model")
    assert gputree.load(tmp_path / "model").fingerprint() == model.fingerprint()


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
        (
            lambda m: prune(m, ReducedError(), X, [0, 1, 2, 1]),
            ValueError,
            "y holds 2, which is none of the 2 known classes",
        ),
        (lambda m: prune(m, ReducedError(), X, [0, 1]), ValueError, "y has 2 rows and X has 4"),
        (lambda m: prune(m, ReducedError(), X, Y, [-1, 1, 1, 1]), ValueError, "weights must be 0 or more"),
        (lambda m: prune(m, ErrorBased(), X, [0, 0, 0, 1]), ValueError, "give the rows and weights of the fit"),
        (lambda m: prune(m, ErrorBased(), X, Y, [1, 1, 1, 2]), ValueError, "give the rows and weights of the fit"),
        (
            lambda m: prune(m, ErrorBased(), np.zeros((4, 1)), Y),
            ValueError,
            "come to other leaves than those of the fit",
        ),
        (lambda m: prune(m, CostComplexity(0.1), sample_weight=[1, 1, 1, 1]), ValueError, "sample_weight was given"),
        (lambda m: ReducedError()(fitted_of(m)), ValueError, "needs validation rows, .*: give them as cases"),
        (lambda m: ErrorBased()(fitted_of(m)), ValueError, "needs the rows of the fit: give them as cases"),
        (lambda m: prune(m, NoGain()), TypeError, r"of type gputree\.stopping.*\.NoGain is no rule of pruning"),
        (
            lambda m: prune(m, pd.DataFrame(X), Y, Collapse()),
            TypeError,
            r"^.{,60} is no rule.*prune\(model, rule, X, y\)",
        ),
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


@pytest.mark.parametrize(
    "model", [gputree.IsolationForest(n_estimators=1), gputree.RandomTreesEmbedding(1)], ids=lambda m: type(m).__name__
)
def test_trees_without_a_target_are_refused(model: Any) -> None:
    model.fit(X)
    for call in (lambda: prune(model, CostComplexity(0.1)), lambda: cost_path(model)):
        with pytest.raises(TypeError, match=f"{type(model).__name__} learns no y"):
            call()


NOISY = {
    "tree": DecisionTreeClassifier(),
    "multiway": DecisionTreeClassifier(categorical_split="multiway", class_weight="balanced"),
    "bins": DecisionTreeClassifier(max_bins=5),
    "outputs": DecisionTreeClassifier(),
    "numbers": DecisionTreeRegressor(),
    "c4.5": gputree.C45Classifier(),
    "bags": gputree.BaggingTreeClassifier(gputree.C45Classifier(pruning=None), 2),
    "all rows": RandomForestClassifier(2, bootstrap=False),
}


@pytest.mark.parametrize("weights", ["none", "copies", "thirds", "real"])
@pytest.mark.parametrize("name", NOISY)
def test_rows_of_the_fit_are_known(name: str, weights: str) -> None:
    """With weights, some 0, and missing values; pruned trees too; and others are not, though classes weigh the same."""

    class Shallow(Stump):
        needs, raises = Needs.FIT, False

        def __call__(self, fitted: Any, cases: Any = None) -> Forest:
            assert fitted.forest.roots.size == 1
            return fitted.forest.collapse(fitted.forest.depth > 3)

    rng, (X, y) = np.random.default_rng(1), noisy(90)
    frame = pd.DataFrame(X.round(1)).rename(columns=str).assign(word=pd.Categorical(rng.choice(list("uvw"), 90)))
    frame.iloc[::9, 0], frame.iloc[::7, 3] = np.nan, None
    target = {"numbers": X[:, 1], "outputs": np.stack([y, y[::-1]], axis=1)}.get(name, y)
    frame = frame if name != "outputs" else frame.drop(columns="word")
    w = {"none": None, "copies": rng.integers(0, 3, 90), "thirds": rng.integers(0, 3, 90) / 3, "real": rng.random(90)}
    model = NOISY[name].fit(frame, target, w[weights])
    for rule in (Shallow(), *([ErrorBased(0.4)] if target is y else [])):
        pruned = prune(model, rule, frame, target, w[weights])
        assert prune(pruned, Shallow(), frame, target, w[weights]).forest_.n_nodes <= pruned.forest_.n_nodes
    with pytest.raises(ValueError, match=r"come to other leaves|the rows have weights|y of the rows"):
        prune(model, Shallow(), frame.iloc[::-1].reset_index(drop=True), target, w[weights])


def test_rows_of_weight_0_are_rows(tmp_path: Path) -> None:
    """Of a forest of all rows: it knows how many were given, and so does its file."""
    X, y = noisy()
    w = np.where(np.arange(60) % 4 == 0, 0.0, 1.0)
    model = RandomForestClassifier(2, bootstrap=False).fit(X, y, w)
    gputree.save(model, tmp_path / "forest")
    for some in (model, gputree.load(tmp_path / "forest")):
        assert some.n_rows_ == some.estimators_samples_[0].size == 60
        pruned = prune(some, ErrorBased(), X, y, w)
        kept = RandomForestClassifier(2, bootstrap=False).fit(X[w > 0], y[w > 0])
        assert pruned.fingerprint() == prune(kept, ErrorBased(), X[w > 0], y[w > 0]).fingerprint()


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


COUNTING = [
    gputree.C45Classifier(),
    gputree.MDLTreeClassifier(),
    *(gputree.DecisionTreeClassifier(pruning=rule) for rule in (ErrorBased(), RiskBound(), DescriptionLength())),
    *(gputree.DecisionTreeClassifier(stopping=rule) for rule in (stopping.ChiSquare(), stopping.SavesBits())),
]


@pytest.mark.parametrize("weight", [1e307, 1e-320])
@pytest.mark.parametrize("model", COUNTING, ids=str)
def test_weights_that_are_no_cases_are_refused(model: Any, weight: float) -> None:
    """By all that counts cases, of rows with missing values too; a tree alone takes them."""
    X, y = noisy()
    if isinstance(model, gputree.C45Classifier):
        X[3, 0] = np.nan
    with pytest.raises(ValueError, match="counts cases by them; multiply sample_weight"):
        model.fit(X, y, np.full(60, weight))
    usual = gputree.DecisionTreeClassifier().fit(X, y, np.full(60, weight))
    with pytest.raises(ValueError, match="counts cases by them"):
        prune(usual, ErrorBased(raising=False))
    assert usual.score(X, y) == 1.0
    assert np.isfinite(gputree.MDLTreeClassifier().fit(X, y, np.full(60, 1e28)).description_length_.total)


@pytest.mark.parametrize("weight", [1e30, 1e100, 1e-320])
@pytest.mark.parametrize("cost", ["impurity", "error"])
def test_shares_of_errors_know_no_unit(cost: str, weight: float) -> None:
    X, y = noisy()
    rule = CostComplexity(0.02, cost=cost)
    expected = prune(DecisionTreeClassifier().fit(X, y), rule).get_n_leaves()
    assert 1 < expected < DecisionTreeClassifier().fit(X, y).get_n_leaves()
    assert prune(DecisionTreeClassifier().fit(X, y, np.full(60, weight)), rule).get_n_leaves() == expected


def test_j48s_limit_is_one_of_more_errors() -> None:
    with pytest.raises(ValueError, match=r"cf=0.9 must be at most 0.5 with limit='j48'"):
        ErrorBased(cf=0.9)
    assert (ADDED["j48"](np.full(3, 16.0), np.array([0.0, 1.0, 4.0]), 0.5) >= 0).all()
    assert ErrorBased(cf=0.9, limit="binomial").cf == 0.9


def plain_path(forest: Forest, cost: list[int], counted: list[bool]) -> list[tuple[Fraction, set[int]]]:
    """Every alpha from which on a smaller tree is best, and the tests that are leaves then, by whole recomputation."""

    def below(node: int, marks: set[int]) -> tuple[int, int]:
        children = [] if node in marks else list(forest.node(node).children)
        found = [below(child, marks) for child in children]
        if not children:
            return cost[node], 1 if node in marks else int(counted[node])
        return sum(c for c, _ in found), int(counted[node]) + sum(n for _, n in found)

    def open_(node: int, marks: set[int]) -> list[int]:
        children = [] if node in marks else list(forest.node(node).children)
        return ([node] if children else []) + [n for child in children for n in open_(child, marks)]

    marks: set[int] = set()
    steps: list[tuple[Fraction, set[int]]] = []
    while nodes := open_(0, marks):
        strength = {}
        for node in nodes:
            branch, leaves = below(node, marks)
            strength[node] = Fraction(cost[node] - branch, leaves - 1) if leaves > 1 else Fraction(0)
        node = min(nodes, key=lambda n: (strength[n], n))
        marks = marks | {node}
        steps.append((max(strength[node], steps[-1][0] if steps else Fraction(0)), marks))
    return steps


@pytest.mark.parametrize("nodes", [False, True], ids=["leaves", "nodes"])
@pytest.mark.parametrize("seed", range(25))
def test_the_weakest_links_are_those_of_a_new_search_every_time(seed: int, nodes: bool) -> None:
    """Costs are small whole numbers, so that many links are as weak as others."""
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, 1)
    leaf = forest.kind == Test.LEAF
    cost = np.where(leaf, rng.integers(0, 3, leaf.size), rng.integers(3, 9, leaf.size))
    counted = leaf | nodes
    found = weakest_links(forest, cost.astype(float), counted)
    expected = plain_path(forest, cost.tolist(), counted.tolist())
    ends = sorted({float(alpha) for alpha, _ in expected})
    for alpha in [a + 1e-9 for a in ends]:
        marks = max((m for a, m in expected if a <= alpha), key=len)
        ours = found.steps & (found.alpha <= alpha)
        theirs = np.isin(np.arange(leaf.size), list(marks))
        assert forest.collapse(ours).fingerprint() == forest.collapse(theirs).fingerprint()


@pytest.mark.parametrize("penalty", ["leaves", "nodes"])
def test_one_path_has_the_trees_of_every_alpha(penalty: str) -> None:
    """In whatever order the alphas are given; trees are nested."""
    X, y = load_breast_cancer(return_X_y=True)
    model = DecisionTreeClassifier().fit(X, y)
    weight = model.layout_.weight(model.forest_.stats.T)
    path = cost_complexity_path(model.forest_, weight, np.inf, penalty)
    alphas = [0.0, *path.alphas[::-2].tolist(), 0.004, 1.0, 0.001]
    sizes = {}
    for alpha, forest in zip(alphas, nested(model.forest_, weight, alphas, penalty), strict=True):
        assert forest.fingerprint() == one_alpha(model.forest_, weight, alpha, penalty).fingerprint()
        sizes[alpha] = forest.n_nodes
    assert [sizes[alpha] for alpha in sorted(sizes)] == sorted(sizes.values(), reverse=True)
    for step, alpha in enumerate(path.alphas.tolist()):
        marks = np.zeros(weight.size, bool)
        marks[path.nodes[: np.searchsorted(path.alphas, alpha, "right") - 1]] = True
        assert step == 0 or one_alpha(model.forest_, weight, alpha, penalty).n_nodes == (
            model.forest_.collapse(marks).n_nodes
        )


@pytest.mark.parametrize("seed", range(5))
def test_heaps_give_their_largest_first(seed: int) -> None:
    """Joined, and put under larger numbers, in any order, with some taken off in between."""
    rng = np.random.default_rng(seed)
    heap, heaps = Heap(400), [(-1, list[int]()) for _ in range(3)]
    for i in range(400):
        heap.key[i] = 1000.0 + i if rng.random() < 0.3 else float(rng.integers(0, 50))
        which = int(rng.integers(3))
        top, own = heaps[which]
        if heap.key[i] >= 1000.0:
            heap.put(i, top)
            heaps[which] = i, [*own, i]
        else:
            heaps[which] = heap.joined(top, i), [*own, i]
        for _ in range(int(rng.integers(0, 2))):
            top, own = heaps[which]
            if own:
                assert heap.key[top] == max(heap.key[j] for j in own)
                heaps[which] = heap.without(top), [j for j in own if j != top]
        if rng.random() < 0.1:
            (a, left), (b, right) = heaps[0], heaps[1]
            heaps[0] = heap.joined(a, b) if b >= 0 else a, left + right
            heaps[1] = -1, []
    for top, own in heaps:
        for _ in range(len(own)):
            assert heap.key[top] == max(heap.key[j] for j in own)
            own.remove(top)
            top = heap.without(top)
        assert top == -1
