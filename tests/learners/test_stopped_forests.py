"""``stopping=`` of forests: each tree is that of its rows alone, and so are the reasons of its leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.utils.estimator_checks import check_estimator

import gputree
import gputree.learners.forest
from gputree import (
    BaggingTreeClassifier,
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    export_text,
)
from gputree.pruning import CostComplexity, ErrorBased, prune
from gputree.stopping import (
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

CANCER, DIABETES = load_breast_cancer(return_X_y=True), load_diabetes(return_X_y=True)
COUNTING: list[Rule] = [
    *(MaxDepth(3), MinSamples(split=20, leaf=4), MaxNodes(9), MaxIterations(3)),
    *(NoGain(), ChiSquare(0.01), SavesBits(0.5), MaxDepth(2) & ChiSquare(0.001) | MinSamples(split=30)),
]
OF_NUMBERS: list[Rule] = [MaxDepth(2), MinSamples(split=40), MaxNodes(5), NoGain() | MaxDepth(4)]


def alone(forest: Any, tree: Any, X: Any, y: Any, number: int) -> Any:
    """The tree of one bag, its repeats as weights."""
    return tree.fit(X, y, np.bincount(forest.estimators_samples_[number], minlength=len(X)))


def same_trees(a: Any, b: Any) -> None:
    assert a.fingerprint() == b.fingerprint()
    assert a.stop_reason_.tolist() == b.stop_reason_.tolist()


@pytest.mark.parametrize("rule", COUNTING, ids=str)
def test_each_tree_is_that_of_its_rows_alone(rule: Rule) -> None:
    X, y = CANCER
    model = RandomForestClassifier(3, max_features=None, random_state=2, stopping=rule).fit(X, y)
    whole = clone(model).set_params(stopping=None).fit(X, y)
    assert rule == NoGain() or model.forest_.n_nodes < whole.forest_.n_nodes
    for number, tree in enumerate(model.estimators_):
        same_trees(tree, alone(model, DecisionTreeClassifier(stopping=rule), X, y, number))
    told = np.concatenate([tree.stop_reason_ for tree in model.estimators_])
    assert told.tolist() == model.stop_reason_.tolist()


@pytest.mark.parametrize("rule", OF_NUMBERS, ids=str)
def test_trees_of_numbers(rule: Rule) -> None:
    X, y = DIABETES
    model = RandomForestRegressor(2, stopping=rule).fit(X, y)
    for number, tree in enumerate(model.estimators_):
        same_trees(tree, alone(model, DecisionTreeRegressor(stopping=rule), X, y, number))


def test_trees_of_all_rows() -> None:
    X, y = CANCER
    model = RandomForestClassifier(2, bootstrap=False, max_features=None, stopping=ChiSquare(0.001)).fit(X, y)
    for tree in model.estimators_:
        same_trees(tree, DecisionTreeClassifier(stopping=ChiSquare(0.001)).fit(X, y))


def test_bags_of_c45() -> None:
    X, y = CANCER
    tree = C45Classifier(stopping=MaxDepth(3) | ChiSquare(0.05))
    model = BaggingTreeClassifier(tree, 3).fit(X, y)
    for number, own in enumerate(model.estimators_):
        same_trees(own, alone(model, clone(tree), X, y, number))
    assert "pruned" in model.stop_reason_


# ---- however they are grown ----

RULE = MaxDepth(4) | ChiSquare(0.01)


def grown(n_trees: int = 5, **settings: Any) -> Any:
    return RandomForestClassifier(n_trees, random_state=1, **{"stopping": RULE, **settings})


def test_batches_and_later_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = CANCER
    whole = grown().fit(X, y)
    late = grown(2, warm_start=True).fit(X, y).set_params(n_estimators=5).fit(X, y)
    same_trees(late, whole)
    monkeypatch.setattr(gputree.learners.forest, "POSITIONS", 2 * len(y))
    same_trees(grown().fit(X, y), whole)
    with pytest.raises(ValueError, match="and the parameter stopping changed"):
        late.set_params(n_estimators=6, stopping=MaxDepth(5)).fit(X, y)
    late.set_params(stopping=RULE)
    same_trees(late, whole)


def test_a_fit_without_a_rule_forgets_the_reasons() -> None:
    model = grown().fit(*CANCER).set_params(stopping=None).fit(*CANCER)
    with pytest.raises(AttributeError, match="stop_reason_ is there where stopping= is given"):
        _ = model.stop_reason_
    assert model.fingerprint() == grown(stopping=None).fit(*CANCER).fingerprint()


@pytest.mark.parametrize("device", ["jit", "cuda"])
def test_every_device_stops_at_the_same_nodes(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if device == "jit":
        pytest.importorskip("numba", reason="expected: without Numba")
    else:
        emulate(monkeypatch)
    X, y = (part[:120] for part in CANCER)
    for rule in (RULE, SavesBits(0.1) | MaxNodes(11)):
        same_trees(*(grown(3, stopping=rule, device=d).fit(X, y) for d in ("numpy", device)))


# ---- what is left of them ----


def test_pruned_trees_tell_what_was_cut(tmp_path: Path) -> None:
    X, y = CANCER
    model, whole = grown(pruning=ErrorBased(0.05)).fit(X, y), grown().fit(X, y)
    same_trees(model, prune(whole, ErrorBased(0.05), X, y))
    assert {"", "pure", "depth 4", "pruned"} <= set(model.stop_reason_)
    for forest in (model, whole, prune(whole, CostComplexity(0.05))):
        gputree.save(forest, tmp_path / "model")
        again = gputree.load(tmp_path / "model")
        same_trees(again, forest)
        assert again.get_params() == forest.get_params()
    text = export_text(whole.estimators_[1])
    assert all(f"({reason})" in text for reason in set(whole.estimators_[1].stop_reason_) - {""})


class OfAUser(MaxDepth):
    """A rule that does not say that it only counts."""

    follows_rows = True


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(stopping=CrossValidated()),
        ExtraTreesRegressor(stopping=MaxDepth(2) | Validation([[0.0]], [1.0])),
        RandomForestRegressor(stopping=MaxDepth(2) & CrossValidated()),
        RandomForestClassifier(stopping=OfAUser(2)),
        BaggingTreeClassifier(DecisionTreeClassifier(stopping=CrossValidated())),
    ],
    ids=["folds", "any", "all", "of a user", "bags"],
)
def test_rules_that_look_at_rows_are_refused(model: Any) -> None:
    X, y = CANCER if is_classifier(model) else DIABETES
    with pytest.raises(ValueError, match="follows the rows of one tree; give rules that look at counts alone"):
        model.fit(X, y)


@pytest.mark.filterwarnings("ignore")  # scikit-learn's own, about what it skips and what it casts
@pytest.mark.parametrize("cls", [RandomForestClassifier, ExtraTreesRegressor])
def test_the_contract_of_scikit_learn(cls: Any) -> None:
    """That weights are copies is not so where rows are drawn: scikit-learn's forests say so too."""
    weights = dict.fromkeys(
        ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"), "draws"
    )
    model = cls(3, stopping=MaxDepth(40) | MinSamples(), pruning=CostComplexity(1e-6))
    results = check_estimator(model, on_fail=None, expected_failed_checks=weights)
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] not in ("passed", "skipped", "xfail")]
    assert not failed
