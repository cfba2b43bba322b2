"""Rules of pruning on models: against SciPy, scikit-learn and slow obvious recomputation; what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.tree
from numpy.typing import NDArray
from scipy.stats import chi2_contingency
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from gputree import (
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ID3Classifier,
    RandomForestClassifier,
    RandomForestRegressor,
    load,
    save,
)
from gputree.core.forest import Test
from gputree.engine.pruning import Needs
from gputree.inspect.check import check_forest
from gputree.inspect.values import decode, encode
from gputree.pruning import (
    BottomUp,
    ChiSquare,
    Collapse,
    CostComplexity,
    DescriptionLength,
    ErrorBased,
    ReducedError,
    RiskBound,
    ValidationSet,
    cost_complexity_path,
    prune,
)

X, Y = load_breast_cancer(return_X_y=True)
TRAIN, OTHER = slice(0, None, 2), slice(1, None, 2)
EVERY = [
    Collapse(),
    ErrorBased(),
    ErrorBased(raising=False),
    ReducedError(),
    ReducedError(greedy=True),
    ReducedError(strict=True),
    ValidationSet(),
    CostComplexity(0.004),
    CostComplexity(0.002, "nodes"),
    CostComplexity(0.003, "leaves", "error"),
    ChiSquare(0.001),
    RiskBound(0.2, 1),
    DescriptionLength(),
    DescriptionLength(0.5, 1.0, "wallace-patrick", "sqrt"),
]


def rows_of(rule: Any, X: Any, y: Any, train: Any = TRAIN, other: Any = OTHER) -> tuple[Any, ...]:
    """What a rule asks for."""
    which = {Needs.NO_ROWS: None, Needs.FIT: train, Needs.VALIDATION: other}[rule.needs]
    return () if which is None else (X[which], y[which])


def words(n: int = 160) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Numbers and categories, some missing, and noise."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.normal(size=n).round(1), "b": rng.integers(0, 5, n).astype(float)})
    X["c"] = pd.Categorical(rng.choice(list("uvwx"), n), categories=list("uvwxyz"))
    y = np.where(rng.random(n) < 0.25, rng.integers(0, 3, n), (X["b"] > 2).astype(int) + (X["c"] == "u"))
    X.loc[rng.random(n) < 0.1, "b"] = np.nan
    X.loc[rng.random(n) < 0.1, "c"] = None
    return X, y.astype(np.int64)


MODELS = {
    "tree": lambda: DecisionTreeClassifier(),
    "multiway": lambda: DecisionTreeClassifier(categorical_split="multiway"),
    "spread": lambda: C45Classifier(pruning=None, collapse=False, min_weight=1),
    "id3": lambda: ID3Classifier(),
    "bags": lambda: RandomForestClassifier(n_estimators=3),
    "forest": lambda: ExtraTreesClassifier(n_estimators=3),
}


@pytest.mark.parametrize("rule", EVERY, ids=repr)
@pytest.mark.parametrize("learner", MODELS)
def test_every_rule_on_every_model(rule: Any, learner: str, tmp_path: Any) -> None:
    """Smaller, sound, saved, and the same again when it is pruned by the same once more."""
    frame, y = words()
    y = np.minimum(y, 1) if learner in ("tree", "bags") else y
    if learner == "id3":
        frame = pd.DataFrame(
            {name: pd.Categorical(frame[name].astype(object).fillna("?").astype(str)) for name in "bc"}
        )
    train, other = np.arange(160) < 110, np.arange(160) >= 110
    model = MODELS[learner]().fit(frame[train], y[train])
    before = model.forest_.fingerprint()
    given = rows_of(rule, frame, y, train, other)
    pruned = prune(model, rule, *given)
    assert model.forest_.fingerprint() == before
    assert pruned.forest_.roots.size == model.forest_.roots.size
    assert pruned.forest_.n_nodes < model.forest_.n_nodes or learner == "id3"  # of few nodes, which some rules keep
    check_forest(pruned.forest_, pruned.schema_, pruned.layout_)
    save(pruned, tmp_path / "model")
    assert load(tmp_path / "model").fingerprint() == pruned.fingerprint()
    assert pruned.predict(frame).shape == y.shape
    if not isinstance(rule, ErrorBased | RiskBound):  # rows that were sent elsewhere may count otherwise there
        assert prune(pruned, rule, *given).forest_.fingerprint() == pruned.forest_.fingerprint()


def parts_left(model: Any, pruned: Any) -> int:
    """Tests of a pruned tree, all of them those of the tree as it was, where nothing is raised."""
    pairs, n = [(0, 0)], 0
    while pairs:
        old, new = pairs.pop()
        a, b = model.forest_.node(old), pruned.forest_.node(new)
        assert (model.forest_.stats[old] == pruned.forest_.stats[new]).all()
        if not b.is_leaf:
            assert (a.feature, model.forest_.low[old]) == (b.feature, pruned.forest_.low[new])
            pairs += list(zip(a.children, b.children, strict=True))
            n += 1
    return n


@pytest.mark.parametrize("rule", [r for r in EVERY if not isinstance(r, RiskBound | Collapse) and r != ErrorBased()])
def test_what_is_left_is_a_part(rule: Any) -> None:
    """And not the whole."""
    model = DecisionTreeClassifier().fit(X[TRAIN], Y[TRAIN])
    pruned = prune(model, rule, *rows_of(rule, X, Y))
    assert parts_left(model, pruned) == pruned.get_n_leaves() - 1 < model.get_n_leaves() - 1


# Chi-square


@pytest.mark.parametrize("alpha", [0.3, 0.05, 0.001])
def test_chi_square_by_scipy(alpha: float) -> None:
    """From the leaves up, with SciPy's test of the children's counts."""
    frame, y = words()
    weight = np.random.default_rng(0).integers(1, 3, y.size).astype(float)
    model = DecisionTreeClassifier(categorical_split="multiway").fit(frame, y, weight)
    forest = model.forest_
    counts = forest.stats[:, :3] * model.weight_unit_

    def ends(node: int) -> bool:
        """Whether a node is, or becomes, a leaf."""
        children = forest.node(node).children
        if not children or not min([ends(child) for child in children]):
            return not children
        table = counts[list(children)]
        table = table[table.any(axis=1)][:, table.any(axis=0)]
        p = chi2_contingency(table, correction=False).pvalue if min(table.shape) > 1 else 1.0
        expected[node] = p > alpha
        return bool(expected[node])

    expected = np.zeros(forest.n_nodes, bool)
    ends(0)
    assert expected.any()
    assert prune(model, ChiSquare(alpha)).forest_.fingerprint() == forest.collapse(expected).fingerprint()


def test_chi_square_where_no_freedom_is_left() -> None:
    """Pure branches of one class say nothing: p is 1."""
    model = DecisionTreeClassifier().fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    assert prune(model, ChiSquare(0.99)).get_n_leaves() == 2
    assert prune(model, ChiSquare(0.05)).get_n_leaves() == 1  # n = 3: chi-square 3, p = .083


# Cost complexity


@pytest.mark.parametrize("classes", [True, False], ids=["classes", "numbers"])
def test_the_path_is_scikit_learns(classes: bool) -> None:
    """And counting nodes halves every alpha of a binary tree."""
    data, y = load_iris(return_X_y=True) if classes else load_diabetes(return_X_y=True)
    data = data.astype(np.float32)[::3]
    y = y[::3]
    ours, theirs = (
        (DecisionTreeClassifier, sklearn.tree.DecisionTreeClassifier)
        if classes
        else (DecisionTreeRegressor, sklearn.tree.DecisionTreeRegressor)
    )
    model = ours().fit(data, y)
    path, expected = cost_complexity_path(model), theirs(random_state=0).cost_complexity_pruning_path(data, y)
    own = ours().cost_complexity_pruning_path(data, y)
    np.testing.assert_array_equal(path.alphas, own.ccp_alphas)
    np.testing.assert_array_equal(path.impurities, own.impurities)
    if classes:
        np.testing.assert_allclose(np.unique(path.alphas.round(10)), np.unique(expected.ccp_alphas.round(10)))
    nodes = cost_complexity_path(model, "nodes")
    np.testing.assert_allclose(nodes.alphas, path.alphas / 2, atol=1e-12)
    for alpha in (path.alphas[1:] + path.alphas[:-1])[1 :: 1 if classes else 5] / 2:
        trees = ours(ccp_alpha=alpha).fit(data, y), prune(model, CostComplexity(alpha))
        trees += (prune(model, CostComplexity(alpha / 2, "nodes")),)
        assert len({tree.forest_.fingerprint() for tree in trees}) == 1
        assert trees[0].get_n_leaves() < model.get_n_leaves()
        if classes:
            assert trees[0].get_n_leaves() == theirs(ccp_alpha=alpha, random_state=0).fit(data, y).get_n_leaves()


@pytest.mark.parametrize("penalty", ["leaves", "nodes"])
@pytest.mark.parametrize("cost", ["impurity", "error"])
def test_the_least_cost_of_all_subtrees(penalty: str, cost: str) -> None:
    """By the recursion of Breiman and others, in trees with any number of branches; trees are nested."""
    frame, y = words(70)
    model = DecisionTreeClassifier(categorical_split="multiway").fit(frame, y)
    forest, total = model.forest_, len(y)
    weight = forest.stats[:, :3].sum(axis=1)
    loss = weight * forest.impurity if cost == "impurity" else weight - forest.stats[:, :3].max(axis=1)

    def least(node: int, alpha: float) -> float:
        if not weight[node]:
            return 0.0
        children = forest.node(node).children
        own = loss[node] / total + alpha
        if not children:
            return own
        return min(own, sum(least(c, alpha) for c in children) + (alpha if penalty == "nodes" else 0.0))

    before = forest.n_nodes
    for alpha in (0.001, 0.004, 0.01, 0.03, 0.1):
        pruned = prune(model, CostComplexity(alpha, penalty, cost))
        own = pruned.forest_
        own_weight = own.stats[:, :3].sum(axis=1)
        own_loss = own_weight * own.impurity if cost == "impurity" else own_weight - own.stats[:, :3].max(axis=1)
        leaf = own.kind == Test.LEAF
        counted = (leaf | (penalty == "nodes")) & (own_weight > 0)
        assert own_loss[leaf].sum() / total + alpha * counted.sum() == pytest.approx(least(0, alpha))
        assert own.n_nodes <= before
        before = own.n_nodes
    path = cost_complexity_path(model, penalty, cost)
    assert (np.diff(path.alphas) >= 0).all()
    assert path.alphas.size == path.impurities.size == path.nodes.size + 1
    assert path.impurities[-1] == pytest.approx(loss[0] / total)


# Validation rows


@pytest.mark.parametrize("numbers", [False, True], ids=["classes", "numbers"])
def test_validation_set_by_hand(numbers: bool) -> None:
    """From the root down, as long as the children as leaves make less errors than the leaf."""
    data, y = load_diabetes(return_X_y=True) if numbers else (X, Y)
    model = (DecisionTreeRegressor if numbers else DecisionTreeClassifier)().fit(data[TRAIN], y[TRAIN])
    forest = model.forest_
    found = forest.value[:, 0] if numbers else forest.value.argmax(axis=1)
    marks = np.zeros(forest.n_nodes, bool)
    todo = [(0, data[OTHER], y[OTHER])]
    while todo:
        node, rows, truth = todo.pop()
        if forest.node(node).is_leaf:
            continue
        left = rows[:, forest.feature[node]] <= forest.low[node]
        below = [
            (c, rows[side], truth[side]) for c, side in zip(forest.node(node).children, (left, ~left), strict=True)
        ]

        def error(node: int, truth: Any) -> float:
            return float(((truth - found[node]) ** 2).sum() if numbers else (truth != found[node]).sum())

        if sum(error(c, t) for c, _, t in below) < error(node, truth):
            todo += below
        else:
            marks[node] = True
    pruned = prune(model, ValidationSet(), data[OTHER], y[OTHER])
    assert pruned.forest_.fingerprint() == forest.collapse(marks).fingerprint()


def test_exclusive_or() -> None:
    """No test pays alone: what looks at one test only cuts the root, what looks at what is below keeps both."""
    data = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 5)
    y = (data[:, 0] != data[:, 1]).astype(int)
    model = DecisionTreeClassifier().fit(data, y)
    held = data[4:], y[4:]
    assert prune(model, ValidationSet(), *held).get_n_leaves() == 1
    assert prune(model, ReducedError(), *held).get_n_leaves() == 4
    assert prune(model, ChiSquare(0.05)).get_n_leaves() == 4


@pytest.mark.parametrize("rule", [ReducedError(), ReducedError(greedy=True), ValidationSet()], ids=repr)
def test_rows_that_a_test_has_no_branch_for(rule: Any) -> None:
    """They end at the test with its class, whether it stays or not, so they change nothing."""
    frame = pd.DataFrame({"c": pd.Categorical(list("uuuvvvuuu"), categories=list("uvw"))})
    y = np.array([0, 0, 0, 1, 1, 1, 0, 0, 0])
    model = ID3Classifier(categories={"c": list("uvw")}).fit(frame, y)
    other = pd.DataFrame({"c": ["u", "v", "z", "z", "z"]})
    for truth, leaves in (np.array([0, 0, 1, 1, 1]), 1), (np.array([0, 1, 1, 1, 1]), 3):
        assert prune(model, rule, other[:2], truth[:2]).get_n_leaves() == leaves
        assert prune(model, rule, other, truth).get_n_leaves() == leaves


# What is refused


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RiskBound(0.0), "delta=0.0 must be a number above 0 and below 1"),
        (lambda: RiskBound(1), "delta=1 must be"),
        (lambda: RiskBound(float("nan")), "delta=nan must be"),
        (lambda: RiskBound("x"), "delta='x' must be"),
        (lambda: RiskBound(True), "delta=True must be"),
        (lambda: RiskBound(0.1, 0), "n_tests=0 must be a whole number"),
        (lambda: RiskBound(0.1, True), "n_tests=True must be a whole number"),
        (lambda: CostComplexity(True), "alpha=True must be a number of at least 0"),
        (lambda: ErrorBased(True), "cf=True must be a number above 0"),
        (lambda: ErrorBased(limit=["j48"]), r"limit=\[.j48.\] must be one of"),
        (lambda: ReducedError(1), "strict=1 must be True or False"),
        (lambda: ErrorBased(0.0), "cf=0.0 must be a number above 0 and below 1"),
        (lambda: ErrorBased(1.5), "cf=1.5 must be"),
        (lambda: ErrorBased(limit="x"), "limit='x' must be one of 'j48'"),
        (lambda: ChiSquare(0), "alpha=0 must be a number above 0 and below 1"),
        (lambda: CostComplexity(-1), "alpha=-1 must be a number of at least 0"),
        (lambda: CostComplexity(0.1, "all"), "penalty='all' must be one of 'leaves', 'nodes'"),
        (lambda: CostComplexity(0.1, "leaves", "gini"), "cost='gini' must be one of 'impurity', 'error'"),
    ],
)
def test_parameters_out_of_range(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_bound_must_be_a_function_that_gives_numbers() -> None:
    with pytest.raises(TypeError, match=r"bound=0\.5 must be a function"):
        BottomUp(0.5)  # type: ignore[arg-type]
    model = DecisionTreeClassifier().fit(X, Y)
    for value in (None, float("nan"), "x"):
        with pytest.raises(ValueError, match=f"gave {value!r} for a tree of"):
            prune(model, BottomUp(lambda tree, m, v=value: v), X, Y)  # type: ignore[misc]


@pytest.mark.parametrize("rule", [RiskBound(), BottomUp(lambda t, m: 0.0), ReducedError(), ValidationSet()])
def test_rows_that_are_missing_or_wrong(rule: Any) -> None:
    frame, y = pd.DataFrame(X[TRAIN, :3], columns=list("abc")), Y[TRAIN]
    model = DecisionTreeClassifier().fit(frame, y)
    for given in ((), (frame,)):
        with pytest.raises(ValueError, match=r"rows.*: give prune\(model, rule, X, y\)"):
            prune(model, rule, *given)
    with pytest.raises(ValueError, match=r"feature names|columns"):
        prune(model, rule, frame.rename(columns={"b": "q"}), y)
    with pytest.raises(ValueError, match=r"0 rows"):
        prune(model, rule, frame[:0], y[:0])
    with pytest.raises(ValueError, match="y holds 7, which is none of the 2 known classes"):
        prune(model, rule, frame, np.where(np.arange(y.size) == 3, 7, y))
    if rule.needs is Needs.FIT:
        with pytest.raises(ValueError, match="give the rows"):
            prune(model, rule, frame[:50], y[:50])
        raised = DecisionTreeClassifier(monotonic_cst=[1, 0, 0]).fit(frame, y)
        with pytest.raises(ValueError, match="would undo monotonic_cst"):
            prune(raised, rule, frame, y)


@pytest.mark.parametrize("rule", [ChiSquare(), RiskBound(), CostComplexity(0.1, cost="error")], ids=repr)
def test_errors_of_classes_need_classes(rule: Any) -> None:
    """And one output of them."""
    data, y = load_diabetes(return_X_y=True)
    pair = DecisionTreeClassifier(max_depth=2).fit(X, np.column_stack([Y, Y]))
    for model in (DecisionTreeRegressor(max_depth=2).fit(data, y), pair):
        with pytest.raises(ValueError, match="counts errors of one output of classes"):
            prune(model, rule, *rows_of(rule, data, y))


def test_a_path_is_of_one_tree() -> None:
    data, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(n_estimators=2, max_depth=2).fit(data, y)
    with pytest.raises(ValueError, match="has 2 trees, and a path is of one"):
        cost_complexity_path(model)
    assert cost_complexity_path(model.estimators_[0]).nodes.size == 3


@pytest.mark.parametrize("rule", EVERY, ids=repr)
def test_model_files_hold_rules(rule: Any) -> None:
    assert decode(encode(rule, "rule")) == rule


def test_model_files_hold_no_function() -> None:
    with pytest.raises(TypeError, match="which a model file cannot hold"):
        encode(BottomUp(lambda tree, m: 0.0), "rule")


def test_trees_that_prune_as_they_are_fitted() -> None:
    frame, y = words()
    for rule in (RiskBound(0.2, 1), ChiSquare(0.01), ValidationSet()):
        model = C45Classifier(pruning=rule, collapse=False).fit(frame, y)
        assert model.forest_.n_nodes < C45Classifier(pruning=None, collapse=False).fit(frame, y).forest_.n_nodes
