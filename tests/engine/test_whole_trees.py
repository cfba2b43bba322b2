"""The generic bottom-up procedure against plain recursion over whole trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gputree import C45Classifier, DecisionTreeClassifier, RandomForestClassifier, load, save
from gputree.core.description import code_length, risk_bound
from gputree.core.forest import SPREAD, STAY, Forest, Test
from gputree.core.routes import branches_of
from gputree.engine.pruning import BottomUp, RiskBound, whole_trees
from gputree.engine.pruning.bounds import count_tests
from gputree.inspect.check import check_forest
from gputree.pruning import as_fitted, fitted_of, prune, read_cases

Bound = Callable[[float, int, int], float]


@dataclass
class Node:
    """A place of a tree: whose test stands there, or what it predicts."""

    source: int
    label: int
    children: list[Node] = field(default_factory=list)

    def become(self, other: Node) -> None:
        self.source, self.label, self.children = other.source, other.label, other.children

    def nodes(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.nodes()


class Plain:
    """The procedure, in which every option is tried by predicting all rows once more with the whole tree."""

    def __init__(self, model: Any, X: NDArray[Any], y: NDArray[Any], weight: NDArray[Any], bound: Bound) -> None:
        forest: Forest = model.forest_
        self.forest, self.y, self.bound = forest, y, bound
        self.weight = weight
        self.branch = {}
        for node in np.flatnonzero(forest.kind != Test.LEAF).tolist():
            at = np.full(len(X), node)
            self.branch[node] = branches_of(forest, at, X[:, forest.feature[node]].astype(float)).tolist()
        heavy = model.layout_.weight(forest.stats.T)
        self.share = heavy / np.maximum(np.where(forest.parent < 0, heavy, heavy[forest.parent]), 1)
        self.root = self.node(0)
        self.n_classes = model.layout_.sizes[0]

    def node(self, i: int) -> Node:
        children = [self.node(child) for child in self.forest.node(i).children]
        return Node(i, int(self.forest.value[i].argmax()), children)

    def shares(self, node: Node, row: int) -> Iterator[tuple[int, float]]:
        if not node.children:
            yield node.label, 1.0
            return
        branch, first = self.branch[node.source][row], int(self.forest.first_child[node.source])
        if branch == STAY:
            yield node.label, 1.0
        elif branch == SPREAD:
            for number, child in enumerate(node.children):
                for label, share in self.shares(child, row):
                    yield label, share * self.share[first + number]
        else:
            yield from self.shares(node.children[branch], row)

    def now(self) -> float:
        wrong = sum(
            self.weight[row] * share
            for row in range(len(self.y))
            for label, share in self.shares(self.root, row)
            if label != self.y[row]
        )
        nodes = list(self.root.nodes())
        return self.bound(wrong / self.weight.sum(), len(nodes), sum(not node.children for node in nodes))

    def run(self, node: Node | None = None) -> Node:
        node = self.root if node is None else node
        if not node.children:
            return node
        for child in reversed(node.children):
            self.run(child)
        old = Node(node.source, node.label, node.children)
        options = [Node(node.source, label) for label in range(self.n_classes)[::-1]]
        options += [Node(c.source, c.label, c.children) for c in reversed(node.children)] + [old]
        tried = []
        for option in options:
            node.become(option)
            tried.append(self.now())
        near = [i for i, f in enumerate(tried) if f <= min(tried) + 1e-12 * max(1, abs(min(tried)))]
        node.become(options[min(near, key=lambda i: len(list(options[i].nodes())))])
        return node


def same(model: Any, i: int, node: Node, old: Forest) -> None:
    """Test by test and leaf by leaf."""
    forest = model.forest_
    found = forest.node(i)
    assert found.is_leaf == (not node.children)
    if found.is_leaf:
        if forest.stats[i].any():
            assert forest.value[i].argmax() == node.label
        return
    assert (found.feature, forest.low[i]) == (old.feature[node.source], old.low[node.source])
    for child, below in zip(found.children, node.children, strict=True):
        same(model, child, below, old)


def risk(n_tests: int, classes: int, m: float, delta: float = 0.05) -> Bound:
    return lambda error, n_nodes, n_leaves: float(risk_bound(error, code_length(n_nodes, n_tests, classes), m, delta))


def linear(error: float, n_nodes: int, n_leaves: int) -> float:
    return error + 0.013 * n_leaves


def sizes(error: float, n_nodes: int, n_leaves: int) -> float:
    """A bound that jumps with every node, so that all kinds of options are taken."""
    return n_nodes * 7919 % 101 // 9 + error + 0.001 * n_leaves


def table(seed: int, missing: bool, classes: int = 3) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(25, 50))
    X = pd.DataFrame({"a": rng.integers(0, 6, n).astype(float), "b": rng.integers(0, 2, n).astype(float)})
    X["c"] = pd.Categorical(rng.choice(list("uvwx"), n), categories=list("uvwxy"))
    y = np.where(rng.random(n) < 0.4, rng.integers(0, classes, n), (X["a"] > 2).astype(int) + (X["c"] == "u"))
    if missing:
        X.loc[rng.random(n) < 0.2, "a"] = np.nan
        X.loc[rng.random(n) < 0.2, "c"] = None
    return X, y.astype(np.int64)


def make(learner: str) -> Any:
    if learner == "spread":
        return C45Classifier(pruning=None, collapse=False, min_weight=1)
    return DecisionTreeClassifier(categorical_split="multiway" if learner == "multiway" else "binary")


@pytest.mark.parametrize("bound", ["risk", "linear", "sizes"])
@pytest.mark.parametrize("missing", [False, True], ids=["known", "missing"])
@pytest.mark.parametrize("learner", ["binary", "multiway", "spread"])
@pytest.mark.parametrize("seed", range(3))
def test_plain_recursion(learner: str, seed: int, missing: bool, bound: str) -> None:
    X, y = table(seed, missing, 2 if learner == "binary" else 3)
    y = np.minimum(y, 1) if learner == "binary" else y
    weight = np.random.default_rng(seed).integers(1, 4, len(y)).astype(float)
    model = make(learner).fit(X, y, weight)
    cases = read_cases(model, X, y, weight)
    n_classes = int(y.max()) + 1
    n_tests = count_tests(fitted_of(model), cases)
    f = {"risk": risk(n_tests, n_classes, 60.0 * weight.sum()), "linear": linear, "sizes": sizes}[bound]
    plain = Plain(model, cases.X, cases.y[0], weight, f).run()
    found = prune(model, BottomUp(lambda tree, m: f(tree.error, tree.n_nodes, tree.n_leaves)), X, y, weight)
    same(found, 0, plain, model.forest_)
    check_forest(found.forest_, found.schema_, found.layout_)


@pytest.mark.parametrize("block", [2, 3, 16, 1 << 20])
@pytest.mark.parametrize("learner", ["binary", "multiway", "spread"])
def test_nodes_decided_together(learner: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are guessed at once, and whatever is undone: the tree of one node after the other."""
    monkeypatch.setattr(whole_trees, "LEAST", 2)
    monkeypatch.setattr(whole_trees, "MOST_PARTS", 50)
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.integers(0, 12, (400, 5)).astype(float)).rename(columns=str)
    X["c"] = pd.Categorical(rng.choice(list("uvwx"), 400))
    X.loc[rng.random(400) < 0.1, "2"] = np.nan
    y = np.where(rng.random(400) < 0.3, rng.integers(0, 2, 400), X["0"] > X["1"])
    model = make(learner).fit(X, y)
    sizes = []
    for m in (400, 8000, 40_000):
        f = risk(58, 2, m)
        one_by_one = prune(model, BottomUp(lambda tree, _, f=f: f(tree.error, tree.n_nodes, tree.n_leaves)), X, y)

        def score(trees: Any, m: float = m) -> Any:
            return risk_bound(trees.error, code_length(trees.n_nodes, 58), m)

        fitted = fitted_of(model)
        (cases,) = as_fitted(model, read_cases(model, X, y, None))
        together = whole_trees.whole_trees(fitted, cases, lambda _: score, block)
        assert together.fingerprint() == one_by_one.forest_.fingerprint()
        sizes.append(together.n_nodes)
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_a_leaf_of_another_class_is_saved(tmp_path: Any) -> None:
    """A bound of one's own may want a leaf of a class that few of its rows have."""
    X, y = np.arange(6.0)[:, None], np.array([0, 0, 0, 1, 1, 0])
    model = DecisionTreeClassifier().fit(X, y)
    wanted = np.ones(6, np.intp)
    found = prune(model, BottomUp(lambda tree, m: float((tree.predict(X) != wanted).sum())), X, y)
    assert found.forest_.n_nodes == 1
    assert found.predict_proba(X).tolist() == [[0.0, 1.0]] * 6
    save(found, tmp_path / "model")
    assert load(tmp_path / "model").fingerprint() == found.fingerprint()


def test_forests_of_bags() -> None:
    """Every tree by the rows of its own bag: as that tree alone, which has them as weights."""
    rng = np.random.default_rng(2)
    X = rng.integers(0, 9, (120, 4)).astype(float)
    y = np.where(rng.random(120) < 0.2, rng.integers(0, 3, 120), (X[:, 0] > 4) + (X[:, 1] > 6))
    model = RandomForestClassifier(n_estimators=4, random_state=1).fit(X, y)
    pruned = prune(model, RiskBound(n_tests=32), X, y)
    for tree in range(4):
        rows = np.bincount(model._bag(tree), minlength=120).astype(float)
        alone = prune(model.estimators_[tree], RiskBound(n_tests=32), X, y, rows)
        assert alone.forest_.n_nodes == pruned.forest_.tree(tree).n_nodes
        assert (alone.forest_.value == pruned.forest_.tree(tree).value).all()
    check_forest(pruned.forest_, pruned.schema_, pruned.layout_)
    assert pruned.forest_.n_nodes < model.forest_.n_nodes


def test_counting_tests() -> None:
    """Binary columns count once, numbers by their cuts, categories by their branches."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"bit": [0.0, 1.0] * 20, "number": np.arange(40.0) % 5, "same": 1.0})
    X["word"] = pd.Categorical(rng.choice(list("uvwx"), 40))
    y = (X["word"].isin(["u", "v"]) ^ (X["bit"] == 1) ^ (X["number"] > 2)).astype(int)
    X["other"] = pd.Categorical(list("xyz") + ["x"] * 37)  # which no test looks up
    for learner, tests in (("binary", 1 + 4 + 7 + 3), ("multiway", 1 + 4 + 1 + 1)):
        model = make(learner).fit(X, y)
        assert count_tests(fitted_of(model), read_cases(model, X, y, None)) == tests
