"""What every rule of pruning keeps, on random trees: what is left is a part of what was grown, and adds up."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor
from gputree.core.description import code_length, risk_bound
from gputree.core.forest import Forest, Test
from gputree.engine.pruning import Needs
from gputree.inspect.check import check_forest
from gputree.pruning import (
    BottomUp,
    ChiSquare,
    Collapse,
    CostComplexity,
    ErrorBased,
    ReducedError,
    RiskBound,
    Rule,
    ValidationSet,
    cost_complexity_path,
    prune,
)


def a_row_a_leaf(tree: Any, m: float) -> float:
    return float(tree.error + tree.n_leaves / m)


CUT: list[Rule] = [
    Collapse(),
    ErrorBased(raising=False),
    ErrorBased(0.05, "c45", raising=False),
    ReducedError(),
    ReducedError(greedy=True),
    ReducedError(strict=True),
    ValidationSet(),
    CostComplexity(0.02),
    CostComplexity(0.01, "nodes"),
    CostComplexity(0.02, cost="error"),
    ChiSquare(0.1),
]  # they make leaves of tests, and look at nothing that this changes: a second time they find nothing to cut
RAISE: list[Rule] = [ErrorBased(), ErrorBased(0.4, "binomial"), RiskBound(0.3, 1), BottomUp(a_row_a_leaf)]


def named(rule: Rule) -> str:
    """The rule without the addresses of functions, which are others in each process."""
    return repr(rule).split(" at 0x")[0]


OF_NUMBERS = [rule for rule in CUT if not rule.of_classes]
LEARNERS = ("binary", "multiway", "spread")


@dataclass(frozen=True)
class Case:
    """A tree and the rows that it was grown from, and others."""

    model: Any
    X: pd.DataFrame
    y: NDArray[Any]
    weight: NDArray[np.float64]
    own: NDArray[np.bool_]

    def rows(self, rule: Rule) -> tuple[Any, ...]:
        """What a rule asks for."""
        which = {Needs.NO_ROWS: None, Needs.FIT: self.own, Needs.VALIDATION: ~self.own}[rule.needs]
        return () if which is None else (self.X[which], self.y[which], self.weight[which])

    def pruned(self, rule: Rule, model: Any = None) -> Any:
        return prune(self.model if model is None else model, rule, *self.rows(rule))


def learner_of(name: str, device: str = "numpy") -> Any:
    if name == "spread":  # a row whose value is missing goes down every branch, by shares
        return C45Classifier(pruning=None, collapse=False, min_weight=1, device=device)
    if name == "numbers":
        return DecisionTreeRegressor(device=device)
    return DecisionTreeClassifier(categorical_split=name, device=device)


def case_of(learner: str, seed: int, device: str = "numpy") -> Case:
    """A noisy table of numbers and categories, of 2 to 4 classes, weighted and with missing values or not."""
    rng = np.random.default_rng(seed)
    n, classes, (weighted, missing) = int(rng.integers(12, 90)), int(rng.integers(2, 5)), rng.random(2) < 0.5
    X = pd.DataFrame({"a": rng.integers(0, 9, n).astype(float), "b": rng.normal(size=n).round(1)})
    X["c"] = pd.Categorical(rng.choice(list("uvwx"), n), categories=list("uvwxy"))
    y = np.where(rng.random(n) < 0.35, rng.integers(0, classes, n), (X["a"] > 4).astype(int) + (X["c"] == "u"))
    y = np.minimum(y, classes - 1)
    y[-1] = y[0]
    y = np.unique(y, return_inverse=True)[1]
    if learner == "binary" and y.max() > 1:
        X = X.drop(columns="c")  # no best subset of categories is found for more than two classes
    if missing:
        X.loc[rng.random(n) < 0.2, "a"] = np.nan
        X.loc[rng.random(n) < 0.2, X.columns[-1]] = np.nan
    weight = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    own = rng.random(n) < 0.7
    own[np.unique(y, return_index=True)[1]], own[-1] = True, False  # every class is among the rows of the fit
    if learner == "numbers":
        y = y + rng.normal(size=n).round(1)
    return Case(learner_of(learner, device).fit(X[own], y[own], weight[own]), X, y, weight, own)


def cases(*learners: str) -> st.SearchStrategy[Case]:
    return st.builds(case_of, st.sampled_from(learners), st.integers(0, 10_000))


def asked(forest: Forest, node: int) -> tuple[Any, ...]:
    """What a node asks."""
    code, branch = forest.node(node).lookup
    names = ("kind", "feature", "low", "n_children")
    return *(getattr(forest, name)[node] for name in names), tuple(code), tuple(branch)


def is_part(old: Forest, new: Forest, raising: bool, place: tuple[int, int] = (0, 0)) -> bool:
    """Whether a new node is the old one, or a leaf in its place, or, with raising, what is below it.

    Where nothing is raised, the rows of a node are those that it had.
    """
    a, b = place
    if not raising and (old.stats[a] != new.stats[b]).any():
        return False
    if new.kind[b] == Test.LEAF:
        return True
    below = old.node(a).children
    same = asked(old, a) == asked(new, b)
    if same and all(is_part(old, new, raising, pair) for pair in zip(below, new.node(b).children, strict=True)):
        return True
    return raising and any(is_part(old, new, raising, (child, b)) for child in below)


def check_directions(forest: Forest, n_classes: int) -> None:
    """Where no row of the fit is missing, such a value follows the heavier of two branches, the first of equal ones."""
    for node in np.flatnonzero((forest.n_children == 2) & (forest.met_missing == 0) & (forest.missing < 2)).tolist():
        left, right = forest.stats[forest.node(node).children, :n_classes].sum(axis=1).tolist()
        assert forest.missing[node] == (right > left)


def test_directions_are_those_of_the_rows_that_a_raised_branch_has() -> None:
    """A branch with a missing value that its test had not met; and pruned again it stays as it is."""
    case = case_of("binary", 362)
    pruned = case.pruned(ErrorBased())
    check_sums(case, pruned)
    assert case.pruned(ErrorBased(), pruned).fingerprint() == pruned.fingerprint()


def check_sums(case: Case, model: Any) -> None:
    """Leaves, nodes and rows of a tree of classes agree with one another, and with what it predicts."""
    forest, K = model.forest_, model.n_classes_
    check_forest(forest, model.schema_, model.layout_)
    leaf = forest.kind == Test.LEAF
    assert model.get_n_leaves() == leaf.sum() == forest.n_nodes - (~leaf).sum()
    assert forest.n_nodes == 1 + forest.n_children.astype(int).sum()
    for node in np.flatnonzero(~leaf).tolist():
        assert (forest.stats[forest.node(node).children].sum(axis=0) == forest.stats[node])[:K].all()
    check_directions(forest, K)
    X, y, weight = case.X[case.own], case.y[case.own], case.weight[case.own]
    counts = forest.stats[:, :K] * model.weight_unit_
    np.testing.assert_allclose(counts[0], np.bincount(y, weight, K), rtol=1e-9)
    if isinstance(model, C45Classifier):
        return
    at = model.apply(X)
    assert leaf[at].all()
    found = np.zeros(counts.shape)
    np.add.at(found, (at, y), weight)
    np.testing.assert_array_equal(found[leaf], counts[leaf])
    label = forest.value.argmax(axis=1)
    wrong = (counts.sum(axis=1) - counts[np.arange(forest.n_nodes), label])[leaf].sum()
    assert weight[model.predict(X) != y].sum() == wrong


@pytest.mark.parametrize("rule", CUT, ids=named)
@settings(max_examples=12)
@given(case=cases(*LEARNERS))
def test_rules_that_cut(rule: Rule, case: Case) -> None:
    """A subtree of the grown tree, which errs no less on its rows; once more, the same."""
    pruned = case.pruned(rule)
    old, new = case.model.forest_, pruned.forest_
    assert is_part(old, new, raising=False)
    check_sums(case, pruned)
    assert errors(new, pruned.n_classes_) >= errors(old, pruned.n_classes_)
    assert case.pruned(rule, pruned).fingerprint() == pruned.fingerprint()


def errors(forest: Forest, n_classes: int) -> int:
    counts = forest.stats[forest.kind == Test.LEAF, :n_classes]
    return int((counts.sum(axis=1) - counts.max(axis=1)).sum())


@pytest.mark.parametrize("rule", OF_NUMBERS, ids=named)
@settings(max_examples=10)
@given(case=cases("numbers"))
def test_rules_that_cut_trees_of_numbers(rule: Rule, case: Case) -> None:
    pruned = case.pruned(rule)
    assert is_part(case.model.forest_, pruned.forest_, raising=False)
    check_forest(pruned.forest_, pruned.schema_, pruned.layout_)
    assert case.pruned(rule, pruned).fingerprint() == pruned.fingerprint()


@pytest.mark.parametrize("rule", RAISE, ids=named)
@settings(max_examples=12)
@given(case=cases(*LEARNERS))
def test_rules_that_raise(rule: Rule, case: Case) -> None:
    """Tests of the grown tree, in their order from the root down; error-based pruning finds no more in its own.

    A bound of the whole tree may: it falls while nodes shrink, and a node that was judged early is not judged again.
    Pruned again and again, the tree comes to an end.
    """
    left = case.model
    while (again := case.pruned(rule, left)).forest_.n_nodes < left.forest_.n_nodes:
        assert is_part(left.forest_, again.forest_, raising=True)
        check_sums(case, again)
        left = again
    assert again.fingerprint() == left.fingerprint()
    if isinstance(rule, ErrorBased):
        assert case.pruned(rule).fingerprint() == left.fingerprint()


@pytest.mark.parametrize(("rule", "seed"), [(RAISE[2], 0), (RAISE[3], 663)])
def test_bounds_of_whole_trees_may_find_more_when_asked_again(rule: Rule, seed: int) -> None:
    """Why the property above asks for no more: trees where they do, which are rare."""
    case = case_of("binary", seed)
    pruned = case.pruned(rule)
    assert case.pruned(rule, pruned).forest_.n_nodes < pruned.forest_.n_nodes < case.model.forest_.n_nodes


@settings(max_examples=25)
@given(case=cases(*LEARNERS))
def test_the_bound_never_becomes_larger(case: Case) -> None:
    """By the errors that predictions make, and the tree's size."""
    X, y, weight = case.X[case.own], case.y[case.own], case.weight[case.own]

    def bound(model: Any) -> float:
        wrong = weight[model.predict(X) != y].sum() / weight.sum()
        return float(risk_bound(wrong, code_length(model.forest_.n_nodes, 5, model.n_classes_), weight.sum()))

    if case.model.forest_.n_nodes > 1 and not isinstance(case.model, C45Classifier):
        assert bound(case.pruned(RiskBound(n_tests=5))) <= bound(case.model) + 1e-12


@pytest.mark.parametrize(("penalty", "cost"), [("leaves", "impurity"), ("nodes", "impurity"), ("leaves", "error")])
@settings(max_examples=12)
@given(case=cases(*LEARNERS))
def test_the_sequence_of_cost_complexity_is_nested(penalty: str, cost: str, case: Case) -> None:
    """A tree at every alpha, each a part of the one before, the last a root; each costs what the path says."""
    path = cost_complexity_path(case.model, penalty, cost)
    assert (np.diff(path.alphas) >= 0).all()
    last = np.flatnonzero(np.append(np.diff(path.alphas) > 0, True))  # of equal alphas, the smallest tree
    trees = [prune(case.model, CostComplexity(float(alpha), penalty, cost)).forest_ for alpha in path.alphas[last]]
    for old, new in pairwise([case.model.forest_, *trees]):
        assert is_part(old, new, raising=False)
    assert [t.n_nodes for t in trees] == sorted({t.n_nodes for t in trees}, reverse=True)
    assert trees[-1].n_nodes == 1 or path.alphas[-1] == 0  # of alpha 0 the tree stays as it is
    K, total = case.model.n_classes_, case.model.forest_.stats[0, : case.model.n_classes_].sum()
    for tree, expected in zip(trees[1:], path.impurities[last][1:], strict=True):
        counts = tree.stats[tree.kind == Test.LEAF, :K]
        own = counts.sum(axis=1)
        risk = own - counts.max(axis=1) if cost == "error" else own * tree.impurity[tree.kind == Test.LEAF]
        assert risk.sum() / total == pytest.approx(expected, abs=1e-9)


@settings(max_examples=25)
@given(case=cases(*LEARNERS))
def test_reduced_error_finds_the_best_of_all_subtrees(case: Case) -> None:
    """By the recursion: the rows of a node are got wrong by its leaf, or by its branches at their best."""
    X, y, weight = (part[~case.own] for part in (case.X, case.y, case.weight))
    if isinstance(case.model, C45Classifier) or not len(y):
        return
    forest, path = case.model.forest_, case.model.decision_path(X).toarray().astype(bool)
    wrong = ((forest.value.argmax(axis=1) != y[:, None]) * path * weight[:, None]).sum(axis=0)

    def least(node: int) -> float:
        children = forest.node(node).children
        return min(float(wrong[node]), sum(map(least, children))) if children else float(wrong[node])

    pruned = case.pruned(ReducedError())
    assert weight[pruned.predict(X) != y].sum() == least(0)


@pytest.mark.parametrize("rule", [*CUT, *RAISE], ids=named)
@pytest.mark.parametrize("learner", LEARNERS)
def test_compiled_growth_is_pruned_alike(learner: str, rule: Rule) -> None:
    pytest.importorskip("numba", reason="expected: without Numba")
    for seed in range(3):
        a, b = (case_of(learner, seed, device) for device in ("numpy", "jit"))
        assert a.model.fingerprint() == b.model.fingerprint()
        assert a.pruned(rule).fingerprint() == b.pruned(rule).fingerprint()
