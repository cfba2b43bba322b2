"""Raising looks at the rows it needs and at no others, and comes to what plain recursion comes to."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gputree import C45Classifier, DecisionTreeClassifier, RandomForestClassifier, export_text, load, save
from gputree.core.forest import Test
from gputree.core.routes import Parts
from gputree.engine.pruning import Cases
from gputree.engine.pruning.raising import Raising
from gputree.engine.pruning.records import passed_down, passed_up, recounted
from gputree.pruning import ErrorBased, as_fitted, fitted_of, prune, read_cases
from tests import c45
from tests.c45_pruning import pruned
from tests.engine.test_pruning_properties import LEARNERS, case_of
from tests.learners.test_c45 import as_node, plain
from tests.learners.test_c45_groups import as_node as with_groups
from tests.learners.test_c45_pruning import as_table


def noisy(seed: int, n: int = 250) -> tuple[Any, Any]:
    """Two columns that tell about the class, and wrong labels in a quarter of the rows."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 40, (n, 3)).astype(float)
    y = (X[:, 0] > 20).astype(int) + (X[:, 1] > 30)
    return X, np.where(rng.random(n) < 0.25, rng.integers(0, 3, n), y)


def test_rows_are_left_alone_where_the_counts_of_the_fit_decide() -> None:
    """A leaf that takes the place of its test holds what the test holds: no row has to be sent anywhere."""
    X, y = noisy(0)
    model = DecisionTreeClassifier(max_depth=1).fit(X, y)
    none = Cases(np.empty((0, 3)), np.empty((1, 0), int), np.empty(0), Parts.whole(0, 0))
    state = Raising(fitted_of(model), none, ErrorBased().expected())
    left = prune(model, ErrorBased(raising=False)).forest_
    assert state.run().fingerprint() == left.fingerprint() == model.forest_.fingerprint()
    assert [v.node.tolist() for v in state.verdicts] == [[0]]
    assert state.verdicts[0].raised == state.verdicts[0].leaf


def test_plain_recursion() -> None:
    """Trees grown to purity, of whose branches some are raised, and some again where they then stand."""
    raised = 0
    for seed in range(12):
        X, y = noisy(seed)
        model = DecisionTreeClassifier().fit(X, y)
        table = c45.Table(X.T.tolist(), [], y.tolist(), 3, 0.0)
        expected = pruned(table, as_node(model), [(row, 1.0) for row in range(len(y))], 0.4)
        found = prune(model, ErrorBased(0.4), X, y)
        ours, theirs = list(c45.walk(as_node(found))), list(c45.walk(expected))
        assert [(node.test, node.weights) for node in ours] == [(node.test, node.weights) for node in theirs]
        raised += found.fingerprint() != prune(model, ErrorBased(0.4, raising=False)).fingerprint()
    assert raised >= 6


def words(seed: int) -> tuple[pd.DataFrame, Any]:
    """Three columns of categories, none of them declared, with few missing cells or none."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 40))
    columns = {f"c{i}": rng.choice(list("pqrstu")[: int(rng.integers(3, 7))], n) for i in range(3)}
    X = pd.DataFrame(columns, dtype=object)
    y = np.where(rng.random(n) < 0.3, pd.Categorical(X["c0"]).codes % 3, rng.integers(0, 3, n))
    y[:3] = 0, 1, 2
    for c in X if seed % 2 else ():
        X.loc[rng.random(n) < 0.05, c] = None
    return X, y


def spreads_unlisted(forest: Any) -> bool:
    """Whether rows of the fit came to a test that lists none of their categories, and were in several children."""
    tests = np.flatnonzero((forest.kind == Test.LOOKUP) & (forest.met_missing == 0))
    return any((forest.stats[forest.node(t).children].sum(axis=0) > forest.stats[t]).any() for t in tests)


UNLISTED = [("grouped", (30, 59, 76, 175)), ("multiway", (0, 20, 111, 131))]


@pytest.mark.parametrize(("split", "seeds"), UNLISTED)
def test_categories_that_a_raised_test_does_not_list(split: str, seeds: tuple[int, ...], tmp_path: Path) -> None:
    """Their rows go to every branch, in shares that are no whole cases; files keep such trees."""
    met = 0
    for seed in seeds:
        X, y = words(seed)
        model = C45Classifier(categorical_split=split, min_weight=1, confidence=0.4, device="numpy").fit(X, y)
        whole, (table, rows) = c45.collapsed(plain(X, y, None, "gain_ratio", 1.0, split)), as_table(X, y, None)
        ours, theirs = list(c45.walk(with_groups(model))), list(c45.walk(pruned(table, whole, rows, 0.4)))
        assert [node.test for node in ours] == [node.test for node in theirs]
        for a, b in zip(ours, theirs, strict=True):
            assert a.weights == pytest.approx(b.weights, rel=1e-6, abs=1e-9)
        met += spreads_unlisted(model.forest_)
        with pytest.warns(UserWarning, match="a category not listed, which no rule"):
            model.rules()
        assert re.search(r"\([\d.]+% of missing and other\)", export_text(model))
        save(model, tmp_path / "model.gputree")
        assert load(tmp_path / "model.gputree").fingerprint() == model.fingerprint()
    assert met == len(seeds)


@pytest.mark.parametrize("learner", LEARNERS)
def test_counts_of_raised_branches_are_those_of_all_rows(learner: str) -> None:
    """Only their rows were counted anew, and the others give what the forest has."""
    raised = 0
    for seed in range(60):
        case = case_of(learner, seed)
        found = case.pruned(ErrorBased(0.4))
        raised += found.fingerprint() != case.pruned(ErrorBased(0.4, raising=False)).fingerprint()
        check_all(found, *case.rows(ErrorBased()))
    assert raised >= 2


def test_counts_of_raised_branches_in_bags() -> None:
    """Every tree has rows of its own."""
    X, y = noisy(3)
    model = RandomForestClassifier(n_estimators=4).fit(X, y)
    found = prune(model, ErrorBased(0.4), X, y)
    assert found.fingerprint() != prune(model, ErrorBased(0.4, raising=False)).fingerprint()
    check_all(found, X, y)


def check_all(model: Any, *rows: Any) -> None:
    """The forest, with all rows counted from the roots down, is the forest."""
    told = as_fitted(model, read_cases(model, *rows, *(None,) * (3 - len(rows))))
    for number, cases in enumerate(told):
        tree = fitted_of(model).tree(number)
        again = recounted(tree, cases, np.ones(tree.forest.n_nodes, bool))
        for f in fields(again):
            np.testing.assert_array_equal(getattr(again, f.name), getattr(tree.forest, f.name), err_msg=f.name)


def test_marks_are_passed_down_and_up() -> None:
    """Two trees: of the first, a test below the root and all under it; of the second, nothing."""
    X, y = noisy(1)
    forest = RandomForestClassifier(n_estimators=2, max_depth=4).fit(X, y).forest_
    marks = np.zeros(forest.n_nodes, bool)
    marks[1] = True
    assert forest.kind[1] != Test.LEAF
    down, up = passed_down(forest, marks), passed_up(forest, marks)
    for node in range(forest.n_nodes):
        above = [node]
        while forest.parent[above[-1]] >= 0:
            above.append(int(forest.parent[above[-1]]))
        assert down[node] == (1 in above)
    assert np.flatnonzero(up).tolist() == [0, 1]
