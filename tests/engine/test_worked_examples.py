"""Root gains and small trees of textbook examples, from the engine (sources in tests/data/worked_examples.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gputree import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.backends.oracle import Oracle
from gputree.backends.protocol import Bags, CodeSpec
from gputree.core.criteria import CRITERIA
from gputree.core.forest import Test
from gputree.core.schema import Feature, Kind, Schema
from gputree.core.splits import MULTIWAY, THRESHOLD, Limits, Search, Slots
from gputree.core.target import class_target
from gputree.engine.grow import grow
from gputree.engine.recipe import Recipe

EXAMPLES: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "worked_examples.json").read_text())


def numbered(columns: list[list[Any]]) -> tuple[NDArray[np.float64], Schema]:
    """Columns of labels as category numbers, with their schema."""
    levels = [sorted(set(column)) for column in columns]
    matrix = np.array([[float(own.index(v)) for v in column] for own, column in zip(levels, columns, strict=True)]).T
    features = (Feature(str(i), Kind.CATEGORICAL, tuple(own)) for i, own in enumerate(levels))
    return matrix, Schema(tuple(features))


def root_gains(X: NDArray[np.float64], schema: Schema, y: list[int], criterion: str) -> NDArray[np.float64]:
    """Gain per row of the best test of every feature at the root."""
    backend, target = Oracle(), class_target(np.array(y).reshape(-1, 1), (max(y) + 1,), None)
    codes = backend.encode(X, backend.edges(X, CodeSpec(schema), None))
    shard = backend.open(codes, target, Bags())
    stats, _ = backend.totals(shard)
    slots = Slots(np.zeros(1, np.int32), np.zeros(1, np.uint64), stats, np.array([len(y)]), np.zeros((2, 1)))
    table = backend.histogram(shard, slots, np.arange(X.shape[1], dtype=np.int32)[None])
    search = Search((THRESHOLD, MULTIWAY), CRITERIA[criterion], Limits())
    gains: NDArray[np.float64] = backend.search(table, slots, search).gain[0] / len(y)
    return gains


@pytest.mark.parametrize("name", ["exercise_18_2", "dtl", "xor", "eight_patterns"])
def test_information_gain_of_every_feature(name: str) -> None:
    example = EXAMPLES[name]
    X, schema = numbered([list(column) for column in zip(*example["X"], strict=True)])
    assert root_gains(X, schema, example["y"], "entropy") == pytest.approx(example["gain_bits"], abs=1e-15)


@pytest.mark.parametrize(("criterion", "key"), [("gini", "gini_gain"), ("train_error", "train_error_gain")])
def test_exercise_18_2_by_other_criteria(criterion: str, key: str) -> None:
    example = EXAMPLES["exercise_18_2"]
    X, schema = numbered([list(column) for column in zip(*example["X"], strict=True)])
    assert root_gains(X, schema, example["y"], criterion) == pytest.approx(example[key], abs=1e-15)


def test_restaurant_gains_and_root() -> None:
    example = EXAMPLES["restaurant"]
    columns = [list(column) for column in zip(*example["rows"], strict=True)]
    X, schema = numbered(columns[:-1])
    y = [int(v == "Y") for v in columns[-1]]
    gains = dict(zip(example["columns"], root_gains(X, schema, y, "entropy"), strict=False))
    for column, printed in example["printed"].items():
        assert gains[column] == pytest.approx(printed, abs=5e-4)
    assert max(gains, key=lambda name: gains[name]) == "Pat"


def test_restaurant_tree_tests_one_branch_a_category() -> None:
    """Patrons: None and Some are leaves, Full goes on; the tree makes no error."""
    example = EXAMPLES["restaurant"]
    columns = [list(column) for column in zip(*example["rows"], strict=True)]
    X, schema = numbered(columns[:-1])
    y = np.array([int(v == "Y") for v in columns[-1]])
    backend = Oracle()
    codes = backend.encode(X, backend.edges(X, CodeSpec(schema), None))
    target = class_target(y.reshape(-1, 1), (2,), None)
    forest = grow(backend, codes, target, Recipe(Search((MULTIWAY,), CRITERIA["entropy"], Limits())), 0)
    full, none, some = (forest.node(c) for c in forest.node(0).children)  # in the order of their names
    assert none.is_leaf
    assert some.is_leaf
    assert forest.kind[full.id] == Test.LOOKUP
    assert (backend.predict(forest, X).argmax(axis=1) == y).all()


def test_xor_is_learnt_though_the_first_gain_is_zero() -> None:
    X, y = np.array(EXAMPLES["xor"]["X"]), np.array(EXAMPLES["xor"]["y"])
    model = DecisionTreeClassifier(criterion="entropy").fit(X, y)
    assert (model.get_depth(), model.score(X, y)) == (2, 1.0)
    assert model.forest_.score[0] == 0.0


def test_eight_patterns_give_the_conjunction_of_the_first_and_the_third() -> None:
    X, y = np.array(EXAMPLES["eight_patterns"]["X"]), np.array(EXAMPLES["eight_patterns"]["y"])
    tree = DecisionTreeClassifier(criterion="entropy").fit(X, y).tree_
    assert tree.feature.tolist() == [0, -2, 2, -2, -2]
    assert tree.impurity[0] == pytest.approx(0.8112781244591328, abs=1e-15)


@pytest.mark.parametrize("criterion", ["entropy", "gini", "train_error"])
def test_soccer_teams(criterion: str) -> None:
    """The decrease of entropy is .02 where that of the error is 0."""
    example = EXAMPLES["fig_6_7"]
    y = np.repeat([0, 1, 0, 1], example["left"] + example["right"])
    X = np.repeat([0, 1], [sum(example["left"]), sum(example["right"])]).reshape(-1, 1)
    tree = DecisionTreeClassifier(criterion=criterion, max_depth=1).fit(X, y).tree_
    share = tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
    key = {"train_error": "error_gain"}.get(criterion, f"{criterion}_gain")
    assert tree.impurity[0] - share[1:] @ tree.impurity[1:] == pytest.approx(example[key], abs=1e-15)


def test_mean_squared_error() -> None:
    example = EXAMPLES["mse"]
    tree = DecisionTreeRegressor(max_depth=1).fit([[0], [0], [0], [1]], example["y"]).tree_
    assert tree.impurity[0] == pytest.approx(example["root"], abs=1e-15)
    assert tree.impurity[1] * 0.75 + tree.impurity[2] * 0.25 == pytest.approx(example["weighted"], abs=1e-15)
