"""Trees of minimum description length: trusted trees and lengths, slow recomputation, and exhaustive search."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.utils.estimator_checks import check_estimator

import gputree
from gputree import DecisionTreeClassifier, MDLTreeClassifier
from gputree.core.criteria import TargetKind
from gputree.core.forest import Forest, Test
from gputree.core.message_length import MessageLength
from gputree.core.target import Layout
from gputree.datasets import load_weather
from gputree.engine.pruning.lengths import NodeBits, prune_by_length
from gputree.pruning import CostComplexity, DescriptionLength, ErrorBased, prune
from tests.backends.cards import emulate
from tests.core.test_description import slow_exceptions
from tests.inspect.chain import chain

TRUSTED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "message_lengths.json").read_text())
BOOLEAN = TRUSTED["boolean"]
ROWS = np.array(BOOLEAN["rows"])


def boolean() -> tuple[NDArray[Any], NDArray[Any]]:
    """40 training rows of six bits."""
    return ROWS[:40, :6], ROWS[:40, 6]


def bits_of(n_columns: int, **settings: Any) -> Any:
    """Columns of declared bits."""
    return MDLTreeClassifier(categories={f: [0, 1] for f in range(n_columns)}, **settings)


def weather() -> tuple[pd.DataFrame, NDArray[Any]]:
    table = load_weather()
    return table.to_frame("pandas").drop(columns="play"), table.column("play")


def nested(forest: Forest, node: int = 0) -> Any:
    """A tree as the trusted file writes it: the class of a leaf, or the column and the branches by value."""
    first = int(forest.first_child[node])
    if forest.kind[node] == Test.LEAF:
        return int(forest.value[node].argmax())
    own = {str(branch): nested(forest, first + branch) for branch in (1, 0)}
    return {"x": int(forest.feature[node]) + 1, **own}


# ---- trusted trees ----


def test_the_boolean_table_grows_the_trusted_tree() -> None:
    X, y = boolean()
    model = bits_of(6, prune=False).fit(X, y)
    trusted = BOOLEAN["results"]["mdl_grown"]
    assert nested(model.forest_) == trusted["tree"]
    assert (model.forest_.n_nodes, model.forest_.n_leaves) == (trusted["nodes"], trusted["leaves"])
    assert model.description_length_.total == pytest.approx(trusted["bits"], abs=1e-9)
    assert (model.predict(ROWS[40:, :6]) != ROWS[40:, 6]).sum() == trusted["val_errors"]


def test_the_boolean_table_is_pruned_to_the_trusted_leaf() -> None:
    model = bits_of(6).fit(*boolean())
    trusted = BOOLEAN["results"]["mdl_grown_then_pruned"]
    assert nested(model.forest_) == trusted["tree"]
    assert model.description_length_.total == pytest.approx(trusted["bits"], abs=1e-9)


def test_another_tree_in_the_same_bits() -> None:
    """The tree of information gain costs what it should, and is pruned to the same leaf."""
    X, y = boolean()
    trusted = BOOLEAN["results"]["id3_then_mdl_pruned"]
    settings = {"categories": {f: [0, 1] for f in range(6)}, "categorical_split": "multiway"}
    model = DecisionTreeClassifier(criterion="entropy", **settings).fit(X, y)
    forest, nothing = model.forest_, np.zeros(model.forest_.n_nodes)
    bits = NodeBits.of(forest, model.layout_, MessageLength(), 6, nothing)
    assert bits.total(forest.kind == Test.LEAF, 0.0).total == pytest.approx(trusted["bits_before"], abs=1e-9)
    root = prune(model, DescriptionLength(), X, y).forest_
    assert root.n_nodes == 1
    left = NodeBits.of(root, model.layout_, MessageLength(), 6, np.zeros(1))
    assert left.total(np.ones(1, bool), 0.0).total == pytest.approx(trusted["bits"], abs=1e-9)


def test_the_weather_is_a_single_leaf() -> None:
    """As Quinlan and Rivest report for this table."""
    X, y = weather()
    own = TRUSTED["quinlan_rivest"]
    model = MDLTreeClassifier().fit(X, y)
    assert model.get_n_leaves() == 1
    assert set(model.predict(X)) == {"yes"}
    assert model.description_length_.total == pytest.approx(own["single_leaf_total"], abs=1e-9)
    assert model.description_length_.labels == 14.0
    grown = MDLTreeClassifier(prune=False, max_depth=1).fit(X, y)
    columns = [name.lower() for name in X.columns]
    totals = own["root_split_total_by_attribute"]
    best = min(totals, key=lambda name: totals[name])
    assert columns[grown.forest_.feature[0]] == best
    assert grown.description_length_.total == pytest.approx(totals[best], abs=1e-9)


def test_the_tree_of_information_gain_for_the_weather() -> None:
    X, y = weather()
    model = DecisionTreeClassifier(criterion="entropy", categorical_split="multiway").fit(X, y)
    forest = model.forest_
    bits = NodeBits.of(forest, model.layout_, MessageLength(), 4, np.zeros(forest.n_nodes))
    found, own = bits.total(forest.kind == Test.LEAF, 14.0), TRUSTED["quinlan_rivest"]["id3_tree"]
    assert found.tree == pytest.approx(own["tree_bits"], abs=1e-9)
    assert found.exceptions == pytest.approx(own["exception_bits"], abs=1e-9)
    assert found.total == pytest.approx(own["total"], abs=1e-9)


# ---- slow recomputation ----


def slow_length(model: Any, X: NDArray[Any], y: NDArray[Any], node: int = 0, left: int | None = None) -> float:
    """The message of a subtree on its own rows, by recursion, with whole numbers."""
    forest, left = model.forest_, X.shape[1] if left is None else left
    counts = [int((y == c).sum()) for c in range(len(model.classes_))]
    if forest.kind[node] == Test.LEAF:
        return 1 + math.log2(len(counts)) + slow_exceptions(counts)
    feature, first = int(forest.feature[node]), int(forest.first_child[node])
    x = X[:, feature].astype(float)
    known, gone = len(set(x[~np.isnan(x)].tolist())), int(np.isnan(x).any())
    tests = (known - 1) * (1 + gone) + gone
    if model.numeric_cuts == "sqrt":
        tests = math.isqrt(known - 1) * (1 + gone) + gone
    branch = np.where(np.isnan(x), forest.missing[node], ~(x <= forest.low[node])).astype(int)
    bits = 1 + math.log2(left) + math.log2(tests)
    return bits + sum(slow_length(model, X[branch == b], y[branch == b], first + b, left) for b in (0, 1))


@pytest.mark.parametrize("cuts", ["all", "sqrt"])
@pytest.mark.parametrize("name", ["iris", "iris with gaps", "noise", "breast cancer"])
@pytest.mark.parametrize("prune", [True, False])
def test_the_length_of_a_message_about_numbers(name: str, cuts: str, prune: bool) -> None:
    X, y = numbers(name)
    model = MDLTreeClassifier(numeric_cuts=cuts, prune=prune).fit(X, y)
    found = model.description_length_
    assert found.total == pytest.approx(slow_length(model, X, y), abs=1e-6)
    assert found.total == pytest.approx(found.structure + found.attributes + found.classes + found.exceptions)
    assert found.labels == pytest.approx(len(y) * math.log2(len(model.classes_)))


def numbers(name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(3)
    if name == "noise":
        return rng.integers(0, 30, (90, 3)).astype(float), rng.integers(0, 4, 90)
    if name == "breast cancer":
        table = load_breast_cancer()
        return table.data[:250, :8], table.target[:250]
    X, y = load_iris(return_X_y=True)
    if name == "iris with gaps":
        X[rng.random(X.shape) < 0.15] = np.nan
    return X, y


@pytest.mark.parametrize("cuts", ["all", "sqrt"])
@pytest.mark.parametrize("name", ["iris", "noise", "breast cancer"])
def test_the_root_takes_the_cut_that_costs_least(name: str, cuts: str) -> None:
    X, y = numbers(name)
    forest = MDLTreeClassifier(numeric_cuts=cuts, prune=False, max_depth=1).fit(X, y).forest_
    found = []
    for f in range(X.shape[1]):
        values = sorted(set(X[:, f].tolist()))
        places = list(range(len(values) - 1))
        if cuts == "sqrt":
            few = math.isqrt(len(places))
            places = [(2 * j + 1) * len(places) // (2 * few) for j in range(few)]
        for i in places:
            left = X[:, f] <= values[i]
            parts = [[int((y[side] == c).sum()) for c in range(y.max() + 1)] for side in (left, ~left)]
            bits = math.log2(len(places)) + sum(map(slow_exceptions, parts))
            found.append((round(bits, 9), f, (values[i] + values[i + 1]) / 2))
    _, feature, cut = min(found)
    assert (forest.feature[0], forest.low[0]) == (feature, pytest.approx(cut))


def test_more_classes_by_category_and_declared_ones() -> None:
    """A declared category that no row has costs a leaf: structure and class."""
    X = np.array([[0], [0], [0], [0], [1], [1], [1], [1], [2], [2]] * 3)
    y = np.array(["a"] * 4 + ["b"] * 4 + ["c"] * 2)
    y = np.concatenate([y] * 3)
    met = MDLTreeClassifier(categorical_features=[0]).fit(X, y)
    declared = MDLTreeClassifier(categories={0: [0, 1, 2, 3]}).fit(X, y)
    assert (met.get_n_leaves(), declared.get_n_leaves()) == (3, 4)
    more = declared.description_length_.total - met.description_length_.total
    assert more == pytest.approx(1 + math.log2(3))
    leaves = sum(slow_exceptions(counts) for counts in ([12, 0, 0], [0, 12, 0], [0, 0, 6]))
    assert met.description_length_.total == pytest.approx(1 + 0 + 3 * (1 + math.log2(3)) + leaves)


def test_the_code_of_wallace_and_patrick() -> None:
    """Three categories tell the classes: a fork of the root (of two columns), three leaves at 1 - 1/3 each."""
    X = np.array([[0, 1], [1, 0], [2, 1], [0, 0], [1, 1], [2, 0]] * 8)
    y = np.array([0, 1, 2, 0, 1, 2] * 8)
    model = MDLTreeClassifier(code="wallace-patrick", categorical_features=[0, 1]).fit(X, y)
    assert model.forest_.feature[0] == 0
    found = model.description_length_
    assert found.structure == pytest.approx(-math.log2(1 - 1 / 2) - 3 * math.log2(1 - 1 / 3))
    assert found.attributes == pytest.approx(1.0)
    assert found.classes == 0.0
    pure = sum(-math.log2((i + 1) / (i + 3)) for i in range(16))
    assert found.exceptions == pytest.approx(3 * pure)


# ---- exhaustive search ----


def shortest(X: NDArray[Any], y: NDArray[Any], sizes: tuple[int, ...] = ()) -> float:
    """The shortest message of all trees over bits, or columns of so many categories, and two classes.

    Each set of rows is a leaf, or tests a column not tested above.
    """
    sizes = sizes or (2,) * X.shape[1]

    @cache
    def best(fixed: tuple[int, ...]) -> float:
        rows = np.all([(X[:, f] == v) | (v < 0) for f, v in enumerate(fixed)], axis=0)
        counts = [int((y[rows] == c).sum()) for c in (0, 1)]
        bits, free = 2 + slow_exceptions(counts), [f for f, v in enumerate(fixed) if v < 0]
        for f in free:
            parts = (tuple(v if g == f else w for g, w in enumerate(fixed)) for v in range(sizes[f]))
            bits = min(bits, 1 + math.log2(len(free)) + sum(map(best, parts)))
        return bits

    return best((-1,) * X.shape[1])


def every_tree(X: NDArray[Any], y: NDArray[Any], free: tuple[int, ...]) -> list[float]:
    """The messages of all trees, one by one."""
    counts = [int((y == c).sum()) for c in (0, 1)]
    found = [2 + slow_exceptions(counts)]
    for f in free:
        sides = [every_tree(X[X[:, f] == v], y[X[:, f] == v], tuple(g for g in free if g != f)) for v in (0, 1)]
        found += [1 + math.log2(len(free)) + a + b for a, b in product(*sides)]
    return found


def truth_table(d: int, copies: int) -> NDArray[Any]:
    return np.tile(np.array(list(product([0, 1], repeat=d))), (copies, 1))


FUNCTIONS = {
    "one bit": lambda X: X[:, 0],
    "and": lambda X: X[:, 0] & X[:, -1],
    "or": lambda X: X[:, 0] | X[:, 1],
    "x1x2 + x3x4": lambda X: (X[:, 0] & X[:, 1]) | (X[:, 2 % X.shape[1]] & X[:, -1]),
}


@pytest.mark.parametrize("copies", [1, 2, 8])
@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_growth_and_pruning_reach_the_shortest_message(name: str, d: int, copies: int) -> None:
    """Of these functions and numbers of rows: greedy growth is no search, and must not be shorter than the shortest."""
    X = truth_table(d, copies)
    y = FUNCTIONS[name](X)
    model, least = bits_of(d).fit(X, y), shortest(X, y)
    assert model.description_length_.total == pytest.approx(least, abs=1e-9)


def test_the_reported_message_of_the_weather_is_the_shortest() -> None:
    """Of all trees with a branch a category; Quinlan and Rivest report the leaf."""
    X, y = weather()
    codes = np.stack([np.unique(X[name], return_inverse=True)[1] for name in X.columns], axis=1)
    labels = np.unique(y, return_inverse=True)[1]
    reported = TRUSTED["quinlan_rivest"]["single_leaf_total"]
    assert shortest(codes, labels, (3, 3, 2, 2)) == pytest.approx(reported, abs=1e-9)
    assert MDLTreeClassifier().fit(X, y).description_length_.total == pytest.approx(reported, abs=1e-9)


def test_the_trusted_message_of_the_boolean_table_is_the_shortest() -> None:
    """Of all trees over its six bits."""
    trusted = BOOLEAN["results"]["mdl_grown_then_pruned"]["bits"]
    assert shortest(*boolean()) == pytest.approx(trusted, abs=1e-9)


def test_growth_and_pruning_reach_the_shortest_message_of_every_function_of_two_bits() -> None:
    """The exclusive or too: growth goes on where the first test costs more than it saves."""
    for copies, bits in product((1, 2, 3, 8, 20), product((0, 1), repeat=4)):
        X, y = truth_table(2, copies), np.tile(bits, copies)
        if 0 < sum(bits) < 4:
            total = bits_of(2).fit(X, y).description_length_.total
            assert total == pytest.approx(shortest(X, y), abs=1e-9)


def test_growth_misses_what_no_single_test_shows() -> None:
    """x1 ? x2 : x3: the first test must be x1, which by itself says nothing."""
    X = truth_table(3, 8)
    y = np.where(X[:, 0] == 1, X[:, 1], X[:, 2])
    model = bits_of(3).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.description_length_.total > shortest(X, y) + 1


def test_the_search_misses_no_tree() -> None:
    rng = np.random.default_rng(1)
    for d in (1, 2, 3):
        X = rng.integers(0, 2, (14, d))
        y = rng.integers(0, 2, 14)
        assert min(every_tree(X, y, tuple(range(d)))) == pytest.approx(shortest(X, y), abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_a_grown_tree_is_never_shorter_than_the_shortest_nor_longer_than_a_leaf(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (60, 4))
    y = ((X[:, 0] & X[:, 1]) | X[:, 2]) ^ (rng.random(60) < seed / 50)
    total = bits_of(4).fit(X, y).description_length_.total
    leaf = 2 + slow_exceptions([int((y == 0).sum()), int((y == 1).sum())])
    assert shortest(X, y) - 1e-9 <= total <= leaf + 1e-9


# ---- the contract ----


@pytest.mark.parametrize("device", ["jit", "cuda"])
@pytest.mark.parametrize("name", ["iris with gaps", "noise", "weather", "boolean", "weights"])
def test_every_device_grows_the_same_tree(name: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if device == "jit":
        pytest.importorskip("numba", reason="expected: without Numba")
    else:
        emulate(monkeypatch)
    table: tuple[Any, ...] = (
        weather() if name == "weather" else boolean() if name == "boolean" else numbers(name.replace("weights", "iris"))
    )
    settings: dict[str, Any] = {"categories": {f: [0, 1] for f in range(6)}} if name == "boolean" else {}
    weight = np.random.default_rng(0).integers(0, 4, len(table[1])) if name == "weights" else None
    for extra in ({"prune": False}, {"code": "wallace-patrick"}, {"numeric_cuts": "sqrt", "prune": False}):
        models = [MDLTreeClassifier(device=d, **settings, **extra).fit(*table, weight) for d in ("numpy", device)]
        assert models[0].fingerprint() == models[1].fingerprint()
        assert models[0].description_length_ == models[1].description_length_


def test_weights_are_copies() -> None:
    X, y = numbers("noise")
    weight = np.random.default_rng(2).integers(0, 4, len(y))
    a = MDLTreeClassifier().fit(X, y, weight)
    b = MDLTreeClassifier().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert a.description_length_ == b.description_length_
    assert a.get_n_leaves() == b.get_n_leaves()
    assert a.description_length_.weighted(2, 3) == 2 * a.description_length_.tree + 3 * a.description_length_.exceptions
    halves = MDLTreeClassifier().fit(X, y, np.full(len(y), 2.5))
    assert halves.description_length_.labels == pytest.approx(2.5 * len(y) * math.log2(4))


def test_weights_of_tree_and_exceptions() -> None:
    X, y = numbers("breast cancer")
    sizes = [MDLTreeClassifier(exception_weight=w).fit(X, y).get_n_leaves() for w in (0.01, 1.0, 5.0, 100.0)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 1 < sizes[-1]
    weights: list[dict[str, Any]] = [{"tree_weight": 0.5}, {"exception_weight": 2.0}]
    a, b = (MDLTreeClassifier(**w).fit(X, y) for w in weights)
    assert a.get_n_leaves() == b.get_n_leaves()


def test_pruning_again_changes_nothing() -> None:
    X, y = numbers("breast cancer")
    model = MDLTreeClassifier().fit(X, y)
    assert prune(model, DescriptionLength(), X, y).fingerprint() == model.fingerprint()


def test_pruning_of_a_deep_tree_needs_no_recursion() -> None:
    """A chain of 30,000 tests that say nothing."""
    forest, layout = chain(30_000).forest_, Layout(TargetKind.COUNTS, (2,), (1.0,))
    forest = replace(forest, stats=np.column_stack([forest.stats[:, 0], forest.stats[:, 0] * 0]))
    bits = NodeBits.of(forest, layout, MessageLength(), 1, np.zeros(forest.n_nodes))
    assert prune_by_length(forest, bits, MessageLength()).n_nodes == 1


def test_several_outputs_are_refused() -> None:
    with pytest.raises(ValueError, match="y has 2 outputs, and a message holds one"):
        MDLTreeClassifier().fit([[1], [2]], [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"code": "rissanen"}, "'code' parameter"),
        ({"tree_weight": 0.0}, "'tree_weight' parameter"),
        ({"exception_weight": -1}, "'exception_weight' parameter"),
        ({"numeric_cuts": "few"}, "'numeric_cuts' parameter"),
    ],
)
def test_parameters_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MDLTreeClassifier(**settings).fit([[1], [2]], [0, 1])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("settings", [{}, {"code": "wallace-patrick", "prune": False, "numeric_cuts": "sqrt"}])
def test_the_contract_of_scikit_learn(settings: dict[str, Any]) -> None:
    results = check_estimator(MDLTreeClassifier(**settings), on_fail=None)
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] not in ("passed", "skipped")]
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 40


def test_a_saved_tree_knows_its_length(tmp_path: Path) -> None:
    X, y = numbers("iris with gaps")
    model = MDLTreeClassifier(prune=False).fit(X, y)
    gputree.save(model, tmp_path / "tree")
    again = gputree.load(tmp_path / "tree")
    assert again.description_length_ == model.description_length_
    assert len(model.cost_complexity_pruning_path(X, y).ccp_alphas) > 2


def test_what_else_shows_a_tree() -> None:
    """The table of splits compares by bits saved a row, and scikit-learn's tree predicts the same."""
    X, y = numbers("breast cancer")
    model = MDLTreeClassifier(max_depth=4).fit(X, y)
    table = model.split_table(X, y)
    assert table.best == f"feature_{model.forest_.feature[0]}"
    scores = {row.feature: row.score for row in table.rows}
    assert max(scores, key=lambda name: scores[name]) == table.best
    assert scores[table.best] * len(y) == pytest.approx(model.forest_.score[0])
    theirs = model.to_sklearn()
    np.testing.assert_array_equal(theirs.predict(X), model.predict(X))
    assert theirs.criterion == "entropy"
    assert model.export_dict()["estimator"] == "MDLTreeClassifier"


# ---- the rule, on any tree ----


@pytest.mark.parametrize("extra", [{}, {"code": "wallace-patrick"}, {"numeric_cuts": "sqrt"}, {"exception_weight": 3}])
@pytest.mark.parametrize("name", ["iris", "iris with gaps", "noise", "breast cancer"])
def test_the_rule_prunes_as_the_tree_does(name: str, extra: dict[str, Any]) -> None:
    X, y = numbers(name)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    grown = MDLTreeClassifier(prune=False, **extra).fit(X, y, weight)
    fitted = MDLTreeClassifier(**extra).fit(X, y, weight)
    pruned = prune(grown, DescriptionLength(**extra), X, y, weight)
    assert pruned.fingerprint() == fitted.fingerprint()
    assert pruned.description_length_ == fitted.description_length_


def shortest_pruning(model: Any, X: NDArray[Any], y: NDArray[Any], node: int = 0) -> float:
    """The shortest message of all trees that cutting branches of a binary tree leaves, by recursion."""
    forest = model.forest_
    counts = [int((y == c).sum()) for c in range(len(model.classes_))]
    leaf = 1 + math.log2(len(counts)) + slow_exceptions(counts)
    if forest.kind[node] == Test.LEAF:
        return leaf
    x = X[:, forest.feature[node]]
    left = x <= forest.low[node]
    bits = 1 + math.log2(X.shape[1]) + math.log2(len(set(x.tolist())) - 1)
    sides = zip(forest.node(node).children, (left, ~left), strict=True)
    return min(leaf, bits + sum(shortest_pruning(model, X[side], y[side], child) for child, side in sides))


@pytest.mark.parametrize("name", ["iris", "noise", "breast cancer"])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_the_rule_finds_the_shortest_message_of_any_tree(name: str, criterion: str) -> None:
    X, y = numbers(name)
    model = DecisionTreeClassifier(criterion=criterion).fit(X, y)
    pruned = prune(model, DescriptionLength(), X, y)
    expected = shortest_pruning(model, X, y)
    assert length_by_rule(pruned, X, y) == pytest.approx(expected, abs=1e-6)
    assert length_by_rule(model, X, y) >= expected - 1e-6


def length_by_rule(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """The message of a whole binary tree of thresholds."""
    model.numeric_cuts = "all"
    return slow_length(model, X, y)


def test_a_parting_of_categories_pays_for_all_of_them() -> None:
    """Four categories in two: one of 2^3 - 1 ways; the column may be tested again, and is one of two."""
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.integers(0, 4, 400), rng.integers(0, 2, 400)])
    y = (X[:, 0] >= 2).astype(int)
    model = DecisionTreeClassifier(categorical_features=[0, 1], max_depth=1).fit(X, y)
    matrix = X.astype(float)
    rule, cases = DescriptionLength(), gputree.pruning.read_cases(model, matrix, y, None)
    (cases,) = gputree.pruning.as_fitted(model, cases)
    assert rule.tests(model.forest_, cases).tolist() == [7.0, 0.0, 0.0]
    fitted = gputree.pruning.fitted_of(model)
    bits = rule.bits(fitted, rule.tests(model.forest_, cases), 2)
    assert bits.test[0] == pytest.approx(1 + math.log2(7))
    assert prune(model, rule, X, y).get_n_leaves() == 2


def test_the_rule_prunes_forests_and_c45() -> None:
    X, y = numbers("breast cancer")
    forest = gputree.RandomForestClassifier(3).fit(X, y)
    assert prune(forest, DescriptionLength(), X, y).forest_.n_leaves < forest.forest_.n_leaves
    alone = gputree.C45Classifier(pruning=None, collapse=False).fit(X, y)
    within = gputree.C45Classifier(pruning=DescriptionLength(), collapse=False).fit(X, y)
    assert prune(alone, DescriptionLength(), X, y).fingerprint() == within.fingerprint()
    assert within.get_n_leaves() < alone.get_n_leaves()


def test_quantile_codes_are_the_cuts_that_count() -> None:
    """Of 8 codes a column has at most 7 cuts, however many values."""
    X, y = numbers("breast cancer")
    model = MDLTreeClassifier(max_bins=8, prune=False, max_depth=1).fit(X, y)
    assert model._tests[0] == 7.0
    values = DecisionTreeClassifier(max_depth=1).fit(X, y)
    (cases,) = gputree.pruning.as_fitted(values, gputree.pruning.read_cases(values, X, y, None))
    column = X[:, values.forest_.feature[0]]
    assert DescriptionLength().tests(values.forest_, cases)[0] == len(set(column.tolist())) - 1


@pytest.mark.parametrize("tiny", [1e-9, 1.0])
def test_the_number_of_tests_does_not_depend_on_weights(tiny: float) -> None:
    X, y = numbers("iris with gaps")
    model = MDLTreeClassifier(tree_weight=tiny, exception_weight=tiny, prune=False).fit(X, y)
    assert model.description_length_.total == pytest.approx(slow_length(model, X, y), abs=1e-6)


def test_the_length_after_other_rules(tmp_path: Path) -> None:
    """What only cuts leaves the numbers of tests; what moves a branch does not."""
    X, y = numbers("noise")
    model = MDLTreeClassifier(prune=False).fit(X, y)
    cut = prune(model, CostComplexity(0.02))
    assert 1 < cut.get_n_leaves() < model.get_n_leaves()
    assert cut.description_length_.total == pytest.approx(slow_length(cut, X, y), abs=1e-6)
    gputree.save(cut, tmp_path / "cut")
    assert gputree.load(tmp_path / "cut").description_length_ == cut.description_length_
    moved = prune(model, ErrorBased(), X, y)
    with pytest.raises(AttributeError, match="put a branch in the place of its test"):
        _ = moved.description_length_


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"code": "rissanen"}, "code='rissanen' must be one of 'quinlan-rivest', 'wallace-patrick'"),
        ({"tree_weight": 0}, "tree_weight=0 must be a positive number"),
        ({"exception_weight": True}, "exception_weight=True must be a positive number"),
        ({"numeric_cuts": "few"}, "numeric_cuts='few' must be one of 'all', 'sqrt'"),
    ],
)
def test_parameters_of_the_rule_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DescriptionLength(**settings)
