"""``pruning=`` of trees and forests: a fit with a rule is the fit without it, pruned; rows kept back are those told."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import gputree
from gputree import (
    BaggingTreeClassifier,
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    ID3Classifier,
    MDLTreeClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from gputree.core.forest import Forest
from gputree.learners.held_out import held_out
from gputree.model_selection import estimate_error, select
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
    prune,
)
from gputree.stopping import MaxDepth
from tests.backends.cards import emulate
from tests.learners.test_bagged_trees import mixed, named

CANCER, DIABETES = load_breast_cancer(return_X_y=True), load_diabetes(return_X_y=True)
TREES: dict[str, Callable[..., Any]] = {
    "tree": DecisionTreeClassifier,
    "best first": lambda **p: DecisionTreeClassifier(max_leaf_nodes=30, criterion="entropy", **p),
    "weights": lambda **p: DecisionTreeClassifier(class_weight={0: 1.0, 1: 2.5}, **p),
    "extra tree": lambda **p: ExtraTreeClassifier(random_state=3, **p),
    "id3": lambda **p: ID3Classifier(numeric="thresholds", base="classes", max_depth=8, **p),
    "message": lambda **p: MDLTreeClassifier(prune=False, **p),
}
FORESTS: dict[str, Callable[..., Any]] = {
    "forest": lambda **p: RandomForestClassifier(3, random_state=1, **p),
    "few draws": lambda **p: RandomForestClassifier(3, max_samples=0.5, class_weight="balanced", **p),
    "all rows": lambda **p: RandomForestClassifier(2, bootstrap=False, **p),
    "extra trees": lambda **p: ExtraTreesClassifier(2, random_state=1, **p),
}
NUMBERS: dict[str, Callable[..., Any]] = {
    "tree": DecisionTreeRegressor,
    "extra tree": lambda **p: ExtraTreeRegressor(random_state=3, **p),
    "forest": lambda **p: RandomForestRegressor(3, **p),
    "extra trees": lambda **p: ExtraTreesRegressor(2, bootstrap=True, **p),
}
RULES = [Collapse(), ChiSquare(0.01), CostComplexity(0.01), ErrorBased(), ErrorBased(raising=False)]
SLOW_RULES = [
    DescriptionLength(),
    RiskBound(n_tests=100),
    RiskBound(0.9),
    BottomUp(lambda tree, m: tree.error + tree.n_leaves / m),
]
NAMES = ["length", "bound of 100 tests", "bound of those counted", "own bound"]


def some_rows(table: Any, n: int = 200) -> Any:
    return tuple(part[:n] for part in table)


def rows_for(rule: Rule, X: Any, y: Any) -> tuple[Any, ...]:
    return (X, y) if rule.needs is Needs.FIT else ()


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("name", [*TREES, *FORESTS])
def test_a_fit_with_a_rule_is_a_fit_that_is_pruned(name: str, rule: Rule) -> None:
    """Trees of forests by the rows of their bags."""
    make, (X, y) = {**TREES, **FORESTS}[name], CANCER
    whole, model = make().fit(X, y), make(pruning=rule).fit(X, y)
    assert model.fingerprint() == prune(whole, rule, *rows_for(rule, X, y)).fingerprint()
    assert rule == Collapse() or model.forest_.n_nodes < whole.forest_.n_nodes  # pure leaves save every error
    assert model.pruning == rule


@pytest.mark.parametrize("rule", SLOW_RULES, ids=NAMES)
@pytest.mark.parametrize("name", ["tree", "id3", "message", "forest", "few draws", "all rows"])
def test_rules_of_whole_trees(name: str, rule: Rule) -> None:
    make, (X, y) = {**TREES, **FORESTS}[name], some_rows(CANCER)
    model = make(pruning=rule).fit(X, y)
    assert model.fingerprint() == prune(make().fit(X, y), rule, X, y).fingerprint()


MIXED: dict[str, tuple[Callable[..., Any], Callable[[], Any]]] = {
    "tree": (lambda **p: DecisionTreeClassifier(categorical_split="multiway", **p), mixed),
    "forest": (lambda **p: RandomForestClassifier(3, categorical_split="multiway", **p), mixed),
    "c4.5": (lambda **p: C45Classifier(**{"pruning": None, "collapse": False, **p}), mixed),
    "id3": (ID3Classifier, named),
    "null leaves": (lambda **p: ID3Classifier(empty="null", **p), named),
}


@pytest.mark.parametrize("rule", [ErrorBased(0.45), ReducedError(strict=True)], ids=str)
@pytest.mark.parametrize("name", MIXED)
def test_categories_and_missing_values(name: str, rule: Rule) -> None:
    make, table = MIXED[name]
    X, y = table()
    if rule.needs is Needs.FIT:
        assert make(pruning=rule).fit(X, y).fingerprint() == prune(make().fit(X, y), rule, X, y).fingerprint()
    elif name != "forest":
        out = held_out(np.unique(y, return_inverse=True)[1], np.ones(len(y)), 1 / 3, 0)
        grown = make().fit(X[~out], y[~out])
        assert make(pruning=rule).fit(X, y).fingerprint() == prune(grown, rule, X[out], y[out]).fingerprint()


@pytest.mark.parametrize("name", NUMBERS)
def test_cost_complexity_of_numbers_is_ccp_alpha(name: str) -> None:
    X, y = DIABETES
    models = [NUMBERS[name](**p).fit(X, y) for p in ({"pruning": CostComplexity(90.0)}, {"ccp_alpha": 90.0}, {})]
    assert models[0].fingerprint() == models[1].fingerprint() != models[2].fingerprint()


class Shallow(Rule):
    """A rule of a user, who asks for the rows of the fit and looks at their numbers."""

    needs = Needs.FIT

    def __call__(self, fitted: Any, cases: Any = None) -> Forest:
        assert cases.y.shape == (1, len(cases.X))
        forest: Forest = fitted.forest.collapse(fitted.forest.depth > 1)
        return forest


@pytest.mark.parametrize("make", [NUMBERS["tree"], NUMBERS["forest"], TREES["tree"], FORESTS["forest"]])
def test_a_rule_of_a_user_prunes_every_tree(make: Any) -> None:
    X, y = DIABETES if not is_classifier(make()) else CANCER
    assert make(pruning=Shallow()).fit(X, y).forest_.max_depth == 2


# ---- rows that are kept back ----


@pytest.mark.parametrize("rule", [ReducedError(), ReducedError(greedy=True), ValidationSet()], ids=str)
@pytest.mark.parametrize("name", ["tree", "best first", "extra tree", "id3", "message"])
def test_rows_kept_back_prune_what_the_others_grow(name: str, rule: Rule) -> None:
    X, y = CANCER
    settings = {"random_state": 5} if "random_state" in TREES[name]().get_params() else {}
    out = held_out(y, np.ones(len(y)), 0.25, settings.get("random_state", 0))
    grown = TREES[name]().set_params(**settings).fit(X[~out], y[~out])
    model = TREES[name](pruning=rule, validation_fraction=0.25).set_params(**settings).fit(X, y)
    assert model.fingerprint() == prune(grown, rule, X[out], y[out]).fingerprint()
    kept = np.bincount(y) - np.bincount(y) // 4
    assert model.forest_.stats[0, :2].tolist() == kept.tolist()


@pytest.mark.parametrize("outputs", [1, 2])
def test_numbers_are_kept_back_too(outputs: int) -> None:
    """A third of all rows."""
    X, y = DIABETES
    y = y if outputs == 1 else np.stack([y, X[:, 0] * y], axis=1)
    out = held_out(np.zeros(len(X), int), np.ones(len(X)), 1 / 3, 0)
    assert out.sum() == len(X) // 3
    grown = DecisionTreeRegressor().fit(X[~out], y[~out])
    model = DecisionTreeRegressor(pruning=ReducedError()).fit(X, y)
    assert model.fingerprint() == prune(grown, ReducedError(), X[out], y[out]).fingerprint()


def test_weights_of_rows_kept_back() -> None:
    """Rows of weight 0 are not kept back, the others count by their weights, of whatever size."""
    X, y = CANCER
    w = np.random.default_rng(2).integers(0, 4, len(y)).astype(float)
    out = held_out(y, w, 1 / 3, 0)
    assert (w[out] > 0).all()
    grown = DecisionTreeClassifier().fit(X[~out], y[~out], w[~out])
    expected = prune(grown, ReducedError(), X[out], y[out], w[out])
    for factor in (1.0, 2.0**-600, 2.0**600):
        model = DecisionTreeClassifier(pruning=ReducedError()).fit(X, y, factor * w)
        assert model.fingerprint() == expected.fingerprint()


@pytest.mark.parametrize(
    "model", [TREES["tree"](pruning=ReducedError()), FORESTS["forest"](pruning=ErrorBased())], ids=["tree", "forest"]
)
def test_sparse_tables(model: Any) -> None:
    X, y = CANCER
    X = np.where(np.median(X, axis=0) < X, X, 0.0)
    assert clone(model).fit(csr_array(X), y).fingerprint() == model.fit(X, y).fingerprint()


def test_classes_of_several_outputs() -> None:
    """Rows of each class of the first are kept back."""
    X, y = load_iris(return_X_y=True)
    both = np.stack([y, (X[:, 0] > 5.8).astype(int)], axis=1)
    model = DecisionTreeClassifier(pruning=ReducedError(), min_samples_leaf=2).fit(X, both)
    assert model.forest_.stats[0, :3].tolist() == [34, 34, 34]


# ---- beside other parameters ----


def test_reasons_of_leaves_tell_of_pruning() -> None:
    model = DecisionTreeClassifier(stopping=MaxDepth(6), pruning=ErrorBased(0.05)).fit(*CANCER)
    assert "pruned" in model.stop_reason_
    assert set(model.stop_reason_) <= {"", "pure", "depth 6", "pruned"}


def test_the_message_of_a_tree_that_another_rule_pruned() -> None:
    """That of a tree which was pruned after its fit; a raised branch has cuts that nobody has counted."""
    X, y = CANCER
    grown = MDLTreeClassifier(prune=False).fit(X, y)
    for rule in (Collapse(), ChiSquare(0.01), DescriptionLength()):
        model = MDLTreeClassifier(prune=False, pruning=rule).fit(X, y)
        assert model.description_length_ == prune(grown, rule, *rows_for(rule, X, y)).description_length_
    own = MDLTreeClassifier().fit(X, y)
    assert model.fingerprint() == own.fingerprint()
    assert model.description_length_ == own.description_length_
    raised = MDLTreeClassifier(prune=False, pruning=ErrorBased()).fit(X, y)
    other = prune(grown, ErrorBased(), X, y)
    assert hasattr(raised, "description_length_") == hasattr(other, "description_length_")


def test_the_path_of_alphas_is_that_of_the_grown_tree() -> None:
    plain, own = (m.cost_complexity_pruning_path(*CANCER) for m in (TREES["tree"](), TREES["tree"](pruning=Collapse())))
    np.testing.assert_array_equal(plain.ccp_alphas, own.ccp_alphas)


def test_bags_of_trees_that_are_pruned_alike() -> None:
    """A bag of trees with all features is the forest."""
    X, y = CANCER
    tree = DecisionTreeClassifier(pruning=ErrorBased())
    bags = BaggingTreeClassifier(tree, 3, random_state=1).fit(X, y)
    forest = RandomForestClassifier(3, max_features=None, random_state=1, pruning=ErrorBased()).fit(X, y)
    assert bags.fingerprint() == forest.fingerprint()
    assert [t.pruning for t in (*bags, *forest)] == [ErrorBased()] * 6


def test_trees_that_are_added_later_are_pruned() -> None:
    X, y = CANCER
    model = FORESTS["forest"](pruning=ErrorBased()).fit(X, y)
    late = FORESTS["forest"](pruning=ErrorBased(), warm_start=True).set_params(n_estimators=1).fit(X, y)
    assert late.set_params(n_estimators=3).fit(X, y).fingerprint() == model.fingerprint()


def test_estimates_out_of_bag_are_those_of_the_pruned_trees() -> None:
    X, y = CANCER
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few trees: some rows are in every bag
        model = RandomForestClassifier(8, oob_score=True, pruning=Collapse()).fit(X, y)
    shares, trees = np.zeros((len(y), 2)), np.zeros(len(y))
    for tree, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        unseen = np.setdiff1d(np.arange(len(y)), rows)
        shares[unseen] += tree.predict_proba(X[unseen])
        trees[unseen] += 1
    known = trees > 0
    expected = shares[known] / trees[known, None]
    np.testing.assert_allclose(model.oob_decision_function_[known], expected, rtol=0, atol=1e-15)


def test_searches_and_folds_take_rules() -> None:
    """scikit-learn's search, and our own, which grows folds together where no rule prunes."""
    X, y = some_rows(CANCER, 150)
    rules = [None, ErrorBased(raising=False), BottomUp(lambda tree, m: tree.error + tree.n_leaves / m), ReducedError()]
    folds = KFold(3)
    search = GridSearchCV(DecisionTreeClassifier(), {"pruning": rules}, cv=folds).fit(X, y)
    scores = [cross_val_score(DecisionTreeClassifier(pruning=rule), X, y, cv=folds).mean() for rule in rules]
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], scores)
    found = select(DecisionTreeClassifier(), X, y, over={"pruning": rules}, cv=folds)
    np.testing.assert_allclose([one.error for one in found.estimates], 1 - np.array(scores), rtol=1e-12)
    alone = estimate_error(DecisionTreeClassifier(pruning=rules[2]), X, y, cv=folds)
    assert alone.error == found.estimates[2].error


def test_clones_and_texts() -> None:
    model = DecisionTreeClassifier(pruning=ErrorBased(0.1))
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == "DecisionTreeClassifier(pruning=ErrorBased(cf=0.1, limit='j48', raising=True))"


@pytest.mark.filterwarnings("ignore")  # scikit-learn's own, about what it skips and what it casts
@pytest.mark.parametrize("cls", [DecisionTreeClassifier, ExtraTreeRegressor])
def test_the_contract_of_scikit_learn(cls: Any) -> None:
    results = check_estimator(cls(pruning=CostComplexity(1e-6)), on_fail=None)
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] not in ("passed", "skipped")]
    assert not failed


@pytest.mark.parametrize("rule", [ErrorBased(), ReducedError()], ids=str)
@pytest.mark.parametrize("device", ["jit", "cuda"])
def test_every_device_prunes_alike(device: str, rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    if device == "jit":
        pytest.importorskip("numba", reason="expected: without Numba")
    else:
        emulate(monkeypatch)
    X, y = some_rows(CANCER, 120)
    makes = [DecisionTreeClassifier, *([FORESTS["forest"]] if rule.needs is Needs.FIT else [])]
    for make in makes:
        models = [make(pruning=rule, device=d).fit(X, y) for d in ("numpy", device)]
        assert models[0].fingerprint() == models[1].fingerprint()


def test_files_keep_rules(tmp_path: Path) -> None:
    X, y = CANCER
    for make in (TREES["tree"], FORESTS["forest"]):
        model = make(pruning=ErrorBased(0.1)).fit(X, y)
        gputree.save(model, tmp_path / "model")
        again = gputree.load(tmp_path / "model")
        assert (again.pruning, again.fingerprint()) == (model.pruning, model.fingerprint())
    model = DecisionTreeClassifier(pruning=SLOW_RULES[-1]).fit(X, y)
    with pytest.raises(TypeError, match="parameter pruning is BottomUp"):
        gputree.save(model, tmp_path / "model")


@pytest.mark.parametrize("seed", [8, 13, 45])
def test_tests_are_counted_in_the_rows_of_each_bag(seed: int) -> None:
    """Not in all rows of the table, which have other values."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 12, (25, 2)).astype(float), rng.integers(0, 2, 25)
    whole, model = (RandomForestClassifier(3, random_state=seed, pruning=r).fit(X, y) for r in (None, RiskBound(0.999)))
    assert prune(whole, RiskBound(0.999), X, y).fingerprint() == model.fingerprint()


def test_parameters_of_rules_can_be_searched() -> None:
    """A model gets another rule; the rule that was given stays as it is. In bags, forests and with rules of growth."""
    rule, (X, y) = CostComplexity(0.5), some_rows(CANCER)
    search = GridSearchCV(DecisionTreeClassifier(pruning=rule), {"pruning__alpha": [0.4, 0.001]}, cv=3).fit(X, y)
    assert search.best_estimator_.pruning == CostComplexity(0.001)
    assert search.best_score_ == pytest.approx(
        cross_val_score(DecisionTreeClassifier(pruning=CostComplexity(0.001)), X, y, cv=3).mean()
    )
    assert rule == CostComplexity(0.5)
    bags = BaggingTreeClassifier(DecisionTreeClassifier(stopping=MaxDepth(3)))
    assert bags.set_params(estimator__stopping__depth=1).estimator.stopping == MaxDepth(1)
    told = ("pruning__beta is no parameter of pruning: CostComplexity has alpha", "pruning=None: give pruning= a rule")
    for names, text in zip(({"pruning__beta": 1}, {"pruning__alpha": 1, "pruning": None}), told, strict=True):
        with pytest.raises(ValueError, match=text):
            RandomForestClassifier(pruning=rule).set_params(**names)


# ---- what is refused ----

SEVERAL: NDArray[Any] = np.array([[0, 1], [1, 0], [0, 0], [1, 1]])


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (
            DecisionTreeClassifier(pruning="error"),
            [0, 1, 0, 1],
            "'pruning' parameter of DecisionTreeClassifier must be",
        ),
        (
            DecisionTreeClassifier(pruning=MaxDepth(1)),
            [0, 1, 0, 1],
            r"pruning=MaxDepth\(depth=1\) is a rule of gputree.stop",
        ),
        (RandomForestClassifier(pruning=ErrorBased), [0, 1, 0, 1], "'pruning' parameter of RandomForestClassifier"),
        (
            DecisionTreeClassifier(pruning=Collapse(), ccp_alpha=0.1),
            [0, 1, 0, 1],
            r"pruning=Collapse\(\) and ccp_alpha=0\.1 are two rules of pruning: leave one of them out",
        ),
        (
            MDLTreeClassifier(pruning=Collapse()),
            [0, 1, 0, 1],
            "and prune=True are two rules of pruning: give prune=False",
        ),
        (RandomForestRegressor(pruning=CostComplexity(1.0), ccp_alpha=0.1), [0, 1, 0, 1], "are two rules of pruning"),
        (
            DecisionTreeRegressor(pruning=Collapse()),
            [0, 1, 0, 1],
            "DecisionTreeRegressor has numbers or several outputs",
        ),
        (DecisionTreeClassifier(pruning=ErrorBased()), SEVERAL, "counts errors of one output of classes"),
        (DecisionTreeClassifier(pruning=ErrorBased(), monotonic_cst=[1]), [0, 1, 0, 1], "would undo monotonic_cst"),
        (
            RandomForestClassifier(pruning=ReducedError()),
            [0, 1, 0, 1],
            r"gputree\.pruning\.prune\(forest, ReducedError",
        ),
        (ExtraTreesRegressor(pruning=ValidationSet()), [0, 1, 0, 1], "bags keep no rows back to prune by"),
        (
            BaggingTreeClassifier(C45Classifier(pruning="reduced_error")),
            [0, 1, 0, 1],
            "bags keep no rows back to prune by",
        ),
        (
            DecisionTreeClassifier(pruning=ReducedError(), validation_fraction=1.0),
            [0, 1, 0, 1],
            "'validation_fraction'",
        ),
        (DecisionTreeClassifier(pruning=ReducedError()), [0, 1, 0, 1], "keeps back no row to prune by"),
    ],
    ids=[
        *(
            "a word",
            "of growth",
            "a class",
            "two rules",
            "and the message",
            "two rules of a forest",
            "numbers",
            "two outputs",
            "raised",
        ),
        *("rows for a forest", "rows for numbers", "rows for bags", "all rows", "too few rows"),
    ],
)
def test_what_is_refused(model: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.fit([[0.0], [1.0], [2.0], [3.0]], y)
