"""Rules that end growth: trusted trees, slow recomputation, and the reasons of leaves."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2_contingency
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.tree import DecisionTreeClassifier as Theirs

import gputree
from gputree import DecisionTreeClassifier, DecisionTreeRegressor, MDLTreeClassifier, export_text, pruning
from gputree.backends.oracle import Oracle
from gputree.core.forest import Test
from gputree.core.keys import Stream, draw
from gputree.model_selection import estimate_error
from gputree.stopping import (
    AllOf,
    AnyOf,
    ChiSquare,
    CrossValidated,
    MaxDepth,
    MaxIterations,
    MaxNodes,
    MinSamples,
    NoGain,
    Rule,
    SavesBits,
    Validation,
)
from tests.backends.cards import emulate
from tests.core.test_description import slow_exceptions

TRUSTED: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "message_lengths.json").read_text())
ROWS = np.array(TRUSTED["boolean"]["rows"])
X, Y, X_HELD, Y_HELD = ROWS[:40, :6], ROWS[:40, 6], ROWS[40:, :6], ROWS[40:, 6]
CANCER = load_breast_cancer(return_X_y=True)
XOR = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])


def grown(rule: Rule | None, **settings: Any) -> Any:
    """The tree of information gain for the Boolean table."""
    return DecisionTreeClassifier(criterion="entropy", stopping=rule, **settings).fit(X, Y)


def nested(model: Any, node: int = 0) -> Any:
    forest = model.forest_
    if forest.kind[node] == Test.LEAF:
        return int(forest.value[node].argmax())
    first = int(forest.first_child[node])
    return {"x": int(forest.feature[node]) + 1, **{str(b): nested(model, first + b) for b in (1, 0)}}


# ---- trusted trees ----


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (MaxDepth(99), "full_id3"),
        (ChiSquare(0.05), "chi_square_pre_pruning_alpha_0.05"),
        (ChiSquare(0.25), "chi_square_pre_pruning_alpha_0.25"),
        (Validation(X_HELD, Y_HELD), "validation_stop_split_must_improve"),
    ],
)
def test_the_boolean_table(rule: Rule, name: str) -> None:
    model, trusted = grown(rule), TRUSTED["boolean"]["results"][name]
    assert nested(model) == trusted["tree"]
    assert (model.forest_.n_nodes, model.forest_.n_leaves) == (trusted["nodes"], trusted["leaves"])
    assert (model.predict(X) != Y).sum() == trusted["train_errors"]
    assert (model.predict(X_HELD) != Y_HELD).sum() == trusted["val_errors"]


@pytest.mark.parametrize("rule", [NoGain(), ChiSquare(0.5), Validation(*XOR), SavesBits()])
def test_early_stopping_misses_the_exclusive_or(rule: Rule) -> None:
    """Both columns gain 0 at the root; without a rule two tests learn it."""
    X, y = np.tile(XOR[0], (3, 1)), np.tile(XOR[1], 3)
    model = DecisionTreeClassifier(criterion="entropy", stopping=rule).fit(X, y)
    assert model.get_n_leaves() == 1
    assert model.score(X, y) == 0.5
    assert model.stop_reason_.tolist() == [rule.why]
    full = DecisionTreeClassifier(criterion="entropy").fit(X, y)
    assert (full.get_depth(), full.score(X, y)) == (2, 1.0)


def test_chi_square_of_trusted_tables() -> None:
    """A rule at the p of a table keeps its test, and one just below does not."""
    for name, case in TRUSTED["chi_square"].items():
        if case is None or not 0 < case["p"] < 1:
            continue
        table = np.array(case["table"])
        X = np.repeat(np.arange(len(table)), table.sum(axis=1))[:, None]
        y = np.concatenate([np.repeat(np.arange(table.shape[1]), row) for row in table])
        for alpha, leaves in ((case["p"] * (1 + 1e-9), len(table)), (case["p"] * (1 - 1e-9), 1)):
            rule = ChiSquare(alpha) | MaxDepth(1)
            settings = {"categorical_features": [0], "categorical_split": "multiway"}
            model = DecisionTreeClassifier(criterion="entropy", stopping=rule, **settings).fit(X, y)
            assert model.get_n_leaves() == leaves, name


# ---- slow recomputation ----


def rows_of(model: Any, X: NDArray[Any]) -> list[NDArray[np.intp]]:
    """Rows that pass every node."""
    path = model.decision_path(X).toarray()
    return [np.flatnonzero(column) for column in path.T]


def children(model: Any, node: int) -> range:
    first = int(model.forest_.first_child[node])
    return range(first, first + int(model.forest_.n_children[node]))


def errors(prediction: int, y: NDArray[Any]) -> int:
    return int((y != prediction).sum())


def majority(y: NDArray[Any], above: int = 0) -> int:
    return int(np.bincount(y).argmax()) if y.size else above


def bound(full: Any, stops: Any) -> set[int]:
    """Nodes of a full tree that are left where a rule ends growth at some of its tests."""
    kept, todo = set(), [0]
    while todo:
        node = todo.pop()
        kept.add(node)
        if full.forest_.kind[node] != Test.LEAF and not stops(node):
            todo += children(full, node)
    return kept


def check(rule: Rule, full: Any, stops: Any, X: NDArray[Any], y: NDArray[Any]) -> None:
    """Growth with the rule gives the part of the full tree that the slow rule leaves."""
    model = clone(full).set_params(stopping=rule).fit(X, y)
    kept = sorted(bound(full, stops))
    assert 1 < len(kept) < full.forest_.n_nodes
    assert model.forest_.n_nodes == len(kept)
    np.testing.assert_array_equal(model.forest_.stats, full.forest_.stats[kept])
    np.testing.assert_array_equal(model.forest_.depth, full.forest_.depth[kept])


def cancer() -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    X, y = CANCER[0][:, :6].copy(), CANCER[1]
    y = y ^ (np.random.default_rng(0).random(y.size) < 0.1)
    return X[::2], y[::2], X[1::2], y[1::2]


def test_chi_square_of_every_node() -> None:
    X, y, _, _ = cancer()
    full = DecisionTreeClassifier().fit(X, y)
    rows = rows_of(full, X)

    def stops(node: int) -> bool:
        table = np.array([np.bincount(y[rows[child]], minlength=2) for child in children(full, node)])
        return bool(chi2_contingency(table, correction=False).pvalue > 0.001)

    check(ChiSquare(0.001), full, stops, X, y)


def test_validation_rows_of_every_node() -> None:
    X, y, X_held, y_held = cancer()
    full = DecisionTreeClassifier().fit(X, y)
    rows, held = rows_of(full, X), rows_of(full, X_held)

    def stops(node: int) -> bool:
        own = majority(y[rows[node]])
        split = sum(errors(majority(y[rows[c]], own), y_held[held[c]]) for c in children(full, node))
        return split >= errors(own, y_held[held[node]])

    check(Validation(X_held, y_held), full, stops, X, y)


def test_validation_rows_of_numbers() -> None:
    X, y = load_diabetes(return_X_y=True)
    X_held, y_held, X, y = X[300:], y[300:], X[:300], y[:300]
    full = DecisionTreeRegressor(min_samples_leaf=5).fit(X, y)
    rows, held = rows_of(full, X), rows_of(full, X_held)

    def loss(node: int, at: int) -> float:
        return float(((y_held[held[at]] - y[rows[node]].mean()) ** 2).sum())

    check(
        Validation(X_held, y_held),
        full,
        lambda node: sum(loss(c, c) for c in children(full, node)) >= loss(node, node),
        X,
        y,
    )


def test_folds_of_every_node() -> None:
    X, y, _, _ = cancer()
    full = DecisionTreeClassifier().fit(X, y)
    rows = rows_of(full, X)
    hashes = draw(np.array([0], np.uint64), Stream.FOLD, np.arange(len(y), dtype=np.uint64))
    fold = np.argsort(np.argsort(hashes)) % 4

    def across(node: int, above: int | None = None) -> int:
        wrong = 0
        for k in range(4):
            own, other = rows[node][fold[rows[node]] == k], rows[node][fold[rows[node]] != k]
            spare = 0 if above is None else majority(y[rows[above][fold[rows[above]] != k]])
            wrong += errors(majority(y[other], spare), y[own])
        return wrong

    check(
        CrossValidated(4),
        full,
        lambda node: sum(across(child, node) for child in children(full, node)) > across(node),
        X,
        y,
    )


def test_bits_of_every_node() -> None:
    X, y, _, _ = cancer()
    full = DecisionTreeClassifier(criterion="entropy").fit(X, y)
    rows = rows_of(full, X)

    def message(node: int) -> float:
        return 2 + slow_exceptions(np.bincount(y[rows[node]], minlength=2).tolist())

    def stops(node: int) -> bool:
        cuts = len(set(X[:, full.forest_.feature[node]].tolist())) - 1
        split = 1 + math.log2(X.shape[1]) + math.log2(cuts) + sum(map(message, children(full, node)))
        return split >= message(node)

    check(SavesBits(), full, stops, X, y)


def test_rows_gain_and_depth() -> None:
    X, y, _, _ = cancer()
    full = DecisionTreeClassifier().fit(X, y)
    count = full.tree_.n_node_samples
    check(MaxDepth(3), full, lambda node: full.forest_.depth[node] >= 3, X, y)
    check(MinSamples(split=30), full, lambda node: count[node] < 30, X, y)
    least = {n: min(count[c] for c in children(full, n)) for n in range(count.size) if full.forest_.n_children[n]}
    check(MinSamples(leaf=4), full, lambda node: least[node] < 4, X, y)
    check(MaxDepth(2) & MinSamples(split=100), full, lambda n: full.forest_.depth[n] >= 2 and count[n] < 100, X, y)
    check(MaxDepth(4) | MinSamples(split=40), full, lambda n: full.forest_.depth[n] >= 4 or count[n] < 40, X, y)


def test_min_samples_of_weights() -> None:
    """Rows of weight 0 are none, and a weight is no number of rows."""
    X, y, _, _ = cancer()
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 5.0)
    a = DecisionTreeClassifier(stopping=MinSamples(split=40)).fit(X, y, weight)
    b = DecisionTreeClassifier(stopping=MinSamples(split=40)).fit(X[weight > 0], y[weight > 0])
    assert a.get_n_leaves() == b.get_n_leaves()
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


@pytest.mark.parametrize("leaves", [2, 5, 17])
def test_nodes_and_iterations_are_best_first(leaves: int) -> None:
    """Of binary trees the three limits are one."""
    X, y, _, _ = cancer()
    theirs = DecisionTreeClassifier(max_leaf_nodes=leaves).fit(X, y)
    for rule in (MaxIterations(leaves - 1), MaxNodes(2 * leaves - 1), MaxNodes(2 * leaves)):
        model = DecisionTreeClassifier(stopping=rule).fit(X, y)
        assert model.fingerprint() == theirs.fingerprint()
        impure = (model.forest_.kind == Test.LEAF) & (model.forest_.impurity > 0)
        assert set(model.stop_reason_[impure]) == {rule.why}
    sklearn_ = Theirs(max_leaf_nodes=leaves, random_state=0).fit(X.astype(np.float32), y)
    assert sklearn_.tree_.node_count == theirs.forest_.n_nodes


def test_the_least_limit_counts() -> None:
    X, y, _, _ = cancer()
    sizes = {
        MaxNodes(9) | MaxIterations(2): 5,
        MaxIterations(8) | MaxNodes(7): 7,
        MaxNodes(1): 1,
        MaxIterations(0): 1,
        MaxNodes(9) | MaxNodes(5): 5,
    }
    for rule, nodes in sizes.items():
        assert DecisionTreeClassifier(stopping=rule).fit(X, y).forest_.n_nodes == nodes
    both = DecisionTreeClassifier(stopping=MaxNodes(9), max_leaf_nodes=2).fit(X, y)
    assert both.forest_.n_nodes == 3


def test_a_test_with_too_many_branches_is_passed_over() -> None:
    """Three categories, and 4 nodes."""
    X = np.array([["a"], ["b"], ["c"]] * 4, object)
    y = np.array([0, 1, 2] * 4)
    settings = {"categorical_split": "multiway"}
    assert DecisionTreeClassifier(stopping=MaxNodes(3), **settings).fit(X, y).forest_.n_nodes == 1
    assert DecisionTreeClassifier(stopping=MaxNodes(4), **settings).fit(X, y).forest_.n_nodes == 4


def test_rules_with_rows_follow_a_tree_that_grows_best_first() -> None:
    """The nodes that a rule stopped do not come back, in whatever order tests are carried out."""
    X, y, X_held, y_held = cancer()
    rule = Validation(X_held, y_held)
    level = DecisionTreeClassifier(stopping=rule).fit(X, y)
    best = DecisionTreeClassifier(stopping=rule | MaxNodes(1000)).fit(X, y)
    assert level.fingerprint() == best.fingerprint()


# ---- reasons ----


def test_every_leaf_has_a_reason() -> None:
    X, y, X_held, y_held = cancer()
    rules = [Validation(X_held, y_held), ChiSquare(0.2), MaxDepth(4) & MinSamples(split=9), MaxNodes(25), NoGain()]
    for rule in rules:
        model = DecisionTreeClassifier(stopping=rule, min_samples_split=4).fit(X, y)
        reason, leaf = model.stop_reason_, model.forest_.kind == Test.LEAF
        assert reason.shape == (model.forest_.n_nodes,)
        assert ((reason == "") == ~leaf).all()
        assert ((reason == "pure") == (leaf & (model.forest_.impurity == 0))).all()
        assert set(reason) <= {"", "pure", "too few rows", "no test", rule.why}
        assert rule.why in reason or rule == NoGain()


def test_the_first_rule_that_stops_is_the_reason() -> None:
    assert grown(MaxDepth(0) | ChiSquare(1e-9)).stop_reason_.tolist() == ["depth 0"]
    assert grown(ChiSquare(1e-9) | MaxDepth(0)).stop_reason_.tolist() == ["p > 1e-09"]
    assert grown(ChiSquare(1e-9) & MaxDepth(0)).stop_reason_.tolist() == ["p > 1e-09 and depth 0"]


def test_reasons_of_pruned_limits_and_depth() -> None:
    X, y, _, _ = cancer()
    model = DecisionTreeClassifier(stopping=ChiSquare(0.5), ccp_alpha=0.01, max_depth=6).fit(X, y)
    assert "pruned" in model.stop_reason_
    assert "max_depth" in DecisionTreeClassifier(stopping=NoGain(), max_depth=2).fit(X, y).stop_reason_
    assert "max_leaf_nodes" in DecisionTreeClassifier(stopping=NoGain(), max_leaf_nodes=4).fit(X, y).stop_reason_
    same_rows = DecisionTreeClassifier(stopping=NoGain()).fit([[1], [1]], [0, 1])
    assert same_rows.stop_reason_.tolist() == ["no test"]


def test_reasons_of_a_pruned_tree_stay_with_their_leaves() -> None:
    """What is left of the tree has the reasons that the whole tree had."""
    X, y, _, _ = cancer()
    whole = MDLTreeClassifier(stopping=MaxDepth(5), prune=False).fit(X, y)
    model = MDLTreeClassifier(stopping=MaxDepth(5)).fit(X, y)
    reasons = {tuple(row): reason for row, reason in zip(whole.forest_.stats.tolist(), whole.stop_reason_, strict=True)}
    assert "pruned" in model.stop_reason_
    for row, reason in zip(model.forest_.stats.tolist(), model.stop_reason_, strict=True):
        assert reason in ("pruned", reasons[tuple(row)])


def test_without_a_rule_there_are_no_reasons() -> None:
    with pytest.raises(AttributeError, match="stop_reason_ is there where stopping= is given"):
        _ = grown(None).stop_reason_
    assert "(" not in export_text(grown(None))


def test_the_text_says_why() -> None:
    text = export_text(grown(MaxDepth(1)), show_weights=True)
    assert text.splitlines()[1].endswith("class: 0 (depth 1)")
    X, y = load_diabetes(return_X_y=True)
    model = DecisionTreeRegressor(stopping=MaxDepth(1)).fit(X, y)
    assert export_text(model).count("(depth 1)") == 2


# ---- the contract ----


@pytest.mark.parametrize("device", ["jit", "cuda"])
def test_every_device_stops_at_the_same_nodes(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if device == "jit":
        pytest.importorskip("numba", reason="expected: without Numba")
    else:
        emulate(monkeypatch)
    X, y, X_held, y_held = (part[:120] for part in cancer())
    rules = (Validation(X_held, y_held), CrossValidated(3), ChiSquare(0.3) & NoGain() | SavesBits(0.1) | MaxNodes(11))
    for rule in rules:
        models = [DecisionTreeClassifier(stopping=rule, device=d).fit(X, y) for d in ("numpy", device)]
        assert models[0].fingerprint() == models[1].fingerprint()
        assert models[0].stop_reason_.tolist() == models[1].stop_reason_.tolist()


@pytest.mark.parametrize("name", ["DecisionTree", "ExtraTree"])
@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_every_tree_takes_rules(name: str, kind: str) -> None:
    X, y, X_held, y_held = cancer()
    model = getattr(gputree, f"{name}{kind}")(stopping=MaxDepth(3) | Validation(X_held, y_held) | CrossValidated(3))
    assert model.fit(X, y).get_depth() <= 3
    again = model.fit(X, y).fingerprint()
    assert clone(model).fit(X, y).fingerprint() == again


@pytest.mark.parametrize("name", ["C45Classifier", "ID3Classifier"])
def test_historical_learners_take_rules(name: str) -> None:
    """Rows that C4.5 sends down all branches take no part in a rule's count of rows of its own."""
    rng = np.random.default_rng(0)
    columns = rng.choice(["a", "b", "c"], (300, 4)).astype(object)
    y = np.where((columns[:, 0] == "a") ^ (rng.random(300) < 0.15), "no", "yes")
    if name == "C45Classifier":
        columns[::9, 0] = None
    settings = {"pruning": None} if name == "C45Classifier" else {}
    kind = getattr(gputree, name)
    full = kind(**settings).fit(columns[:200], y[:200])
    for rule in (ChiSquare(0.01), Validation(columns[200:], y[200:]), MaxDepth(1), SavesBits()):
        model = kind(stopping=rule, **settings).fit(columns[:200], y[:200])
        assert 1 < model.forest_.n_nodes < full.forest_.n_nodes
        assert rule.why in model.stop_reason_


def test_categories_missing_values_and_names_of_validation_rows() -> None:
    """They are read as the rows of the fit: a frame with text, missing cells, and a category that it does not have."""
    rng = np.random.default_rng(0)
    color = rng.choice(["red", "green", "blue"], 200).astype(object)
    size = rng.normal(size=200)
    y = np.where((color == "red") ^ (rng.random(200) < 0.1), "no", "yes")
    color[::11], size[::7] = None, np.nan
    table = pd.DataFrame({"color": color, "size": size})
    held = table.iloc[150:].copy()
    held.loc[held.index[:3], "color"] = "pink"
    for split in ("binary", "multiway"):
        rule = Validation(held, y[150:])
        model = DecisionTreeClassifier(stopping=rule, categorical_split=split).fit(table[:150], y[:150])
        assert 1 < model.get_n_leaves() < 20
    with pytest.raises(ValueError, match="feature names should match"):
        DecisionTreeClassifier(stopping=Validation(held.rename(columns={"size": "weight"}), y[150:])).fit(table, y)


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        ([[0, 1, 0, 1, 0, 1]], [7], "y holds 7, which is none of the 2 known classes"),
        ([[0, 1, 0, 1, 0, 1]], [0, 1], "y has 2 rows and X has 1"),
        (np.zeros((0, 6)), [], "0 sample|is empty"),
        ([[0, 1]], [0], "2 features"),
        ([[0, 1, 0, 1, 0, 1]], [[0, 1]], "y has 2 outputs, and the fit had 1"),
    ],
)
def test_validation_rows_that_do_not_fit_are_refused(rows: Any, labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        grown(Validation(rows, labels))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MaxDepth(-1), "depth=-1 must be a whole number of at least 0"),
        (lambda: MaxDepth(1.5), "depth=1.5 must be a whole number"),  # type: ignore[arg-type]
        (lambda: MaxNodes(0), "nodes=0"),
        (lambda: MaxIterations(-1), "iterations=-1"),
        (lambda: MinSamples(split=1), "split=1"),
        (lambda: MinSamples(leaf=0), "leaf=0"),
        (lambda: ChiSquare(0.0), "alpha=0.0 must be a number above 0 and below 1"),
        (lambda: ChiSquare(1), "alpha=1 must be a number above 0"),
        (lambda: ChiSquare(True), "alpha=True must be"),
        (lambda: MaxDepth(True), "depth=True must be a whole number"),
        (lambda: MaxNodes(True), "nodes=True"),
        (lambda: MaxIterations(False), "iterations=False"),
        (lambda: MinSamples(leaf=True), "leaf=True"),
        (lambda: CrossValidated(True), "cv=True"),
        (lambda: SavesBits(exception_weight=True), "exception_weight=True must be a positive number"),
        (lambda: CrossValidated(1), "cv=1"),
        (lambda: SavesBits(tree_weight=0), "tree_weight=0 must be a positive number"),
        (lambda: MaxNodes(3) & NoGain(), "bounds the whole tree and stops no node by itself"),
        (lambda: Validation(None, None), r"give Validation\(X, y\)"),
        (lambda: Validation([[1]], None), r"give Validation\(X, y\)"),
        (lambda: AnyOf(()), "must be a tuple of rules"),
        (lambda: AllOf((NoGain(), "p")), "must be a tuple of rules"),  # type: ignore[arg-type]
    ],
)
def test_rules_out_of_range_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_more_folds_than_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="cv=5 folds need as many rows, and the fit has 4"):
        DecisionTreeClassifier(stopping=CrossValidated(5)).fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("rule", [ChiSquare(), SavesBits()])
def test_rules_of_classes_are_refused_for_numbers(rule: Rule) -> None:
    with pytest.raises(ValueError, match="needs one output of classes, and y has numbers"):
        DecisionTreeRegressor(stopping=rule).fit([[1], [2]], [0.5, 1.0])
    with pytest.raises(ValueError, match="needs one output of classes, and y has 2 outputs"):
        DecisionTreeClassifier(stopping=rule).fit([[1], [2]], [[0, 1], [1, 0]])


def test_something_else_than_a_rule_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'stopping' parameter .* instance of 'gputree\.stopping\.Rule'"):
        grown("chi-square")  # type: ignore[arg-type]
    for name, rule in (("stopping", pruning.ChiSquare()), ("pruning", ChiSquare())):
        with pytest.raises(TypeError, match=rf"{name}=ChiSquare.* give one of gputree\.{name}, or "):
            DecisionTreeClassifier(**{name: rule}).fit(X, Y)
    for join in (lambda r: r | 3, lambda r: r & pruning.ChiSquare(), lambda r: r | pruning.ChiSquare()):
        with pytest.raises(TypeError, match=r"(type int|pruning.*\.ChiSquare) is no rule of stopping; \| and & join"):
            join(MaxDepth(1))


@pytest.mark.parametrize("found", [np.ones(1, int), [0], True, None, np.ones(2, bool)], ids=repr)
@pytest.mark.parametrize("join", [lambda r: r, lambda r: NoGain() & r], ids=["alone", "joined"])
def test_a_check_gives_truth_values(found: Any, join: Any) -> None:
    class Odd(Rule):
        why = "odd"

        def begin(self, fit: Any) -> Any:
            return lambda proposed, news: found

    with pytest.raises(TypeError, match=r"Odd\.begin.* of a rule of stopping gave .* for 1 tests; give an array bool"):
        grown(join(Odd()))


@pytest.mark.parametrize("weight", [[1, 2, 3], [0.1, 0.2, 0.3]])
def test_equal_validation_errors_end_growth_whatever_the_unit(weight: list[float]) -> None:
    """1 + 2 wrong before and 3 after: the sums of tenths differ by their rounding."""
    rule = Validation([[1], [1], [1]], [1, 1, 0], weight)
    model = DecisionTreeClassifier(stopping=rule).fit([[0], [0], [0], [1], [1]], [0, 0, 0, 1, 1])
    assert model.get_n_leaves() == 1


def test_validation_rows_have_weights_that_are_copies() -> None:
    X, y, X_held, y_held = cancer()
    times = np.random.default_rng(0).integers(0, 4, len(y_held))
    copies = Validation(np.repeat(X_held, times, axis=0), np.repeat(y_held, times))
    expected = DecisionTreeClassifier(stopping=copies).fit(X, y).fingerprint()
    assert expected != DecisionTreeClassifier(stopping=Validation(X_held, y_held)).fit(X, y).fingerprint()
    for factor in (1.0, 1e-300, 1e300):
        rule = Validation(X_held, y_held, times * factor)
        assert DecisionTreeClassifier(stopping=rule).fit(X, y).fingerprint() == expected
    with pytest.raises(ValueError, match="weights must be 0 or more"):
        grown(Validation(X_held, y_held, -times))


def test_validation_rows_are_one_table_however_often_it_is_cloned(tmp_path: Path) -> None:
    """Its text is short, and a file that cannot hold it says what to give."""
    rule = MaxDepth(2) | Validation(pd.DataFrame(X_HELD), Y_HELD)
    assert repr(rule) == "AnyOf(rules=(MaxDepth(depth=2), Validation(<24 rows>)))"
    model = DecisionTreeClassifier(stopping=rule)
    assert clone(model).stopping.rules[1].X is rule.rules[1].X
    with pytest.raises(TypeError, match=r"type DataFrame, which a model file cannot hold; .*\.to_numpy\(\)"):
        gputree.save(model.fit(pd.DataFrame(X), Y), tmp_path / "model")


def test_rules_in_a_search_and_in_a_file(tmp_path: Path) -> None:
    iris = load_iris(return_X_y=True)
    rules = [MaxDepth(1), ChiSquare(0.01) | MinSamples(leaf=3), MaxDepth(9) & NoGain()]
    search = GridSearchCV(DecisionTreeClassifier(), {"stopping": rules}, cv=3).fit(*iris)
    assert search.best_params_["stopping"] in rules
    for rule in (*rules, MaxNodes(9) | SavesBits() | CrossValidated(3)):
        model = DecisionTreeClassifier(stopping=rule).fit(*iris)
        gputree.save(model, tmp_path / "tree")
        again = gputree.load(tmp_path / "tree")
        assert again.stopping == rule
        assert again.stop_reason_.tolist() == model.stop_reason_.tolist()
        assert export_text(again) == export_text(model)


def test_rules_of_the_same_name_are_told_apart_in_a_file(tmp_path: Path) -> None:
    """One that ends growth and one that prunes."""
    X, y, _, _ = cancer()
    model = gputree.C45Classifier(stopping=ChiSquare(0.4), pruning=pruning.ChiSquare(0.01)).fit(X, y)
    gputree.save(model, tmp_path / "tree")
    again = gputree.load(tmp_path / "tree")
    assert (again.stopping, again.pruning) == (ChiSquare(0.4), pruning.ChiSquare(0.01))
    assert again.stop_reason_.tolist() == model.stop_reason_.tolist()


@pytest.mark.parametrize("rule", [pruning.CostComplexity(0.01), pruning.ErrorBased(0.1), pruning.RiskBound()])
def test_pruning_of_a_fitted_tree_keeps_the_reasons_of_its_leaves(rule: Any, tmp_path: Path) -> None:
    X, y, _, _ = cancer()
    whole = DecisionTreeClassifier(stopping=ChiSquare(0.2)).fit(X, y)
    rows = () if isinstance(rule, pruning.CostComplexity) else (X, y)
    model = pruning.prune(whole, rule, *rows)
    assert model.get_n_leaves() < whole.get_n_leaves()
    leaf, reason = model.forest_.kind == Test.LEAF, model.stop_reason_
    assert ((reason == "") == ~leaf).all()
    assert "pruned" in reason
    before = {tuple(row): r for row, r in zip(whole.forest_.stats.tolist(), whole.stop_reason_, strict=True)}
    for row, own in zip(model.forest_.stats[leaf].tolist(), reason[leaf], strict=True):
        assert own in ("pruned", before.get(tuple(row)))
    gputree.save(model, tmp_path / "tree")
    assert gputree.load(tmp_path / "tree").stop_reason_.tolist() == reason.tolist()


def test_rules_of_many_fits_follow_the_rows_of_each() -> None:
    """Errors of folds are those of a loop of fits."""
    X, y, X_held, y_held = cancer()
    model = DecisionTreeClassifier(stopping=Validation(X_held, y_held) | CrossValidated(3))
    found = estimate_error(model, X, y, cv=KFold(4))
    loop = [1.0 - clone(model).fit(X[a], y[a]).score(X[b], y[b]) for a, b in KFold(4).split(X)]
    np.testing.assert_allclose([found.loss[found.fold == k].mean() for k in range(4)], loop)


def test_a_rule_of_ones_own() -> None:
    """A rule is its reason and a check; here no node may test the third column."""
    from gputree.engine.judge import Check

    class Never(Rule):
        @property
        def why(self) -> str:
            return "third column"

        def begin(self, fit: Any) -> Check:
            return lambda proposed, news: proposed.splits.feature == 2

    model = grown(Never() | MaxDepth(4))
    assert "third column" in model.stop_reason_
    assert 2 not in model.forest_.feature


def test_fits_on_parts_of_a_table_keep_to_the_rule() -> None:
    """They are not grown together: a rule follows one tree."""
    from gputree.learners.refits import Joint

    X, y, _, _ = cancer()
    halves = [np.arange(0, 100), np.arange(100, 200)]
    plain = Joint.of(DecisionTreeClassifier(), X, y, halves)
    assert plain is not None
    plain.ready.backend.close()
    assert Joint.of(DecisionTreeClassifier(stopping=MaxDepth(1)), X, y, halves) is None


def test_rules_that_are_joined_twice_bound_the_tree() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    nested = AnyOf((MaxNodes(3) | MaxDepth(50), NoGain()))
    flat = MaxNodes(3) | MaxDepth(50) | NoGain()
    sizes = [gputree.DecisionTreeClassifier(stopping=rule).fit(X, y).forest_.n_nodes for rule in (nested, flat)]
    assert sizes == [3, 3]


@pytest.mark.parametrize("rule", [NoGain(), MinSamples(leaf=9)], ids=repr)
def test_branches_are_counted_once_a_level(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, _, _ = cancer()
    counted = 0
    original = Oracle.children

    def children(self: Oracle, shard: Any, splits: Any) -> Any:
        nonlocal counted
        counted += 1
        return original(self, shard, splits)

    monkeypatch.setattr(Oracle, "children", children)
    model = DecisionTreeClassifier(stopping=rule, device="numpy").fit(X, y)
    assert counted <= model.get_depth() + 1
