"""Options of forests, against plain recomputation: draws of features, draws of classes, and when to stop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gputree
from gputree.core.forest import Test
from gputree.core.keys import Stream, child_keys, draw, root_keys

# -- draws of features


def table(n: int = 120) -> tuple[NDArray[Any], NDArray[Any]]:
    """Four columns that may be split, some rarely, and four of one value."""
    rng = np.random.default_rng(0)
    X = np.zeros((n, 8))
    X[:, [1, 4]] = np.round(rng.normal(size=(n, 2)), 1)
    X[:, 6] = rng.random(n) < 0.1
    X[:, 7] = rng.integers(0, 3, n)
    return X, (X[:, 1] + X[:, 7] + rng.normal(size=n) > 1).astype(int)


def drawn(how: str, key: Any, m: int, n_features: int) -> list[list[int]]:
    """The lists of features that a node tries one after the other."""
    hashes = [int(draw(key, Stream.FEATURE, i)) for i in range(n_features)]
    if how == "repeats":
        return [sorted({h * n_features >> 64 for h in hashes[:m]})]
    ranked = sorted(range(n_features), key=hashes.__getitem__)
    lists = [ranked[i : i + m] for i in range(0, n_features, m)]
    return lists if how == "continue" else lists[:1]


def stump(X: NDArray[Any], y: NDArray[Any], lists: list[list[int]]) -> tuple[int, float] | None:
    """The best test of the first features that have one."""
    for features in map(sorted, lists):
        found = gputree.DecisionTreeClassifier(max_depth=1).fit(X[:, features], y).forest_
        if found.kind[0] != Test.LEAF:
            return features[found.feature[0]], found.low[0]
    return None


@pytest.mark.parametrize("how", ["continue", "stop", "repeats"])
@pytest.mark.parametrize("m", [1, 3])
def test_features_of_a_node_are_those_that_its_key_draws(how: str, m: int) -> None:
    """Every node of every tree, from the key of its path and the rows that it holds."""
    X, y = table()
    model = gputree.RandomForestClassifier(
        4, bootstrap=False, max_features=m, max_depth=5, feature_draws=how, random_state=7
    ).fit(X, y)
    tried, kept = 0, 0
    for t, tree in enumerate(model.estimators_):
        forest, waiting = tree.forest_, [(0, root_keys(7, t), np.arange(len(X)))]
        while waiting:
            node, key, rows = waiting.pop()
            if len(np.unique(y[rows])) < 2 or forest.depth[node] == 5:
                continue
            expected = stump(X[rows], y[rows], drawn(how, key, m, 8))
            tried, kept = tried + 1, kept + (expected is None)
            if expected is None:
                assert forest.kind[node] == Test.LEAF
                continue
            assert (forest.feature[node], forest.low[node]) == expected
            left = X[rows, expected[0]] <= expected[1]
            for branch, part in enumerate((left, ~left)):
                waiting.append((forest.first_child[node] + branch, child_keys(key, branch), rows[part]))
    assert tried > 4
    assert (kept > 0) == (how != "continue")


def test_all_features_are_the_same_with_and_without_continuing() -> None:
    X, y = table()
    usual, stop = (
        gputree.RandomForestClassifier(5, max_features=None, feature_draws=how).fit(X, y)
        for how in ("continue", "stop")
    )
    assert stop.fingerprint() == usual.fingerprint()
    other = gputree.RandomForestClassifier(5, max_features=None, feature_draws="repeats").fit(X, y)
    assert other.fingerprint() != usual.fingerprint()


def test_draws_of_features_that_do_not_exist() -> None:
    X, y = table()
    with pytest.raises(ValueError, match="The 'feature_draws' parameter of RandomForestClassifier must be a str among"):
        gputree.RandomForestClassifier(feature_draws="once").fit(X, y)
