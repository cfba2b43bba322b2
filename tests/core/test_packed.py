"""Packed forests: what is left out, and that it comes back to the last bit."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

import gputree
from gputree.core import families
from gputree.core.forest import Forest, joined
from gputree.core.packed import RULES, pack, same_bits, unpack
from tests.model_files import MODELS, fitted

ALWAYS = {"leaf", "feature", "low", "counts"}  # what a forest of classes on numbers needs


def same_forest(a: Forest, b: Forest) -> None:
    for f in fields(Forest):
        assert same_bits(getattr(a, f.name), getattr(b, f.name)), f.name


def test_there_is_a_rule_for_every_array() -> None:
    others = {"counts", "sums", "lookup_count"}  # parts of stats, and what lookup_ptr follows from
    assert set(RULES) - others == {f.name for f in fields(Forest)}


@pytest.mark.parametrize("name", MODELS)
def test_every_forest_comes_back(name: str) -> None:
    model, _ = fitted(name)
    packed = pack(model.forest_, model._meaning())
    same_forest(unpack(packed, model._meaning()), model.forest_)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("numbers", {"met_missing", "missing"}),
        ("forest", {"met_missing", "missing"}),
        ("weights", {"met_missing", "missing"}),
        ("class outputs", {"met_missing", "missing"}),
        ("pruned", set()),
        ("clipped", {"value"}),
        ("regressor", {"sums", "value", "impurity"}),
        ("one class", set()),
    ],
)
def test_what_is_kept(name: str, more: set[str]) -> None:
    model, _ = fitted(name)
    packed = pack(model.forest_, model._meaning())
    assert set(packed) - ALWAYS == more


@pytest.mark.parametrize("criterion", ["gini", "entropy", "train_error", "gain_ratio", "twoing", "chi2"])
def test_scores_and_impurities_follow_from_the_counts(criterion: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 3, 300)
    for weight in (None, rng.uniform(0.1, 2, 300)):
        for max_leaf_nodes in (None, 20):
            model = gputree.DecisionTreeClassifier(criterion=criterion, max_leaf_nodes=max_leaf_nodes)
            model.fit(X, y, weight)
            assert set(pack(model.forest_, model._meaning())) == ALWAYS


def test_a_tree_by_hand() -> None:
    """Two rows of class 0 below 1.5, and one of class 1."""
    model = gputree.DecisionTreeClassifier().fit([[1.0], [1.0], [2.0]], [0, 0, 1])
    packed = pack(model.forest_, model._meaning())
    assert {name: array.tolist() for name, array in packed.items()} == {
        "leaf": [False, True, True],
        "feature": [0],
        "low": [1.5],
        "counts": [[2, 0], [0, 1]],
    }
    assert [packed[name].dtype for name in ("feature", "low", "counts")] == ["u1", "f4", "u1"]


CHANGES: list[dict[str, Any]] = [
    *({"feature": 7}, {"low": -0.0}, {"kind": 3}, {"met_missing": 1}, {"missing": 5}, {"unseen": 1}, {"value": 0.25}),
    *({"impurity": np.nan}, {"score": -0.0}, {"stats": 5}, {"stats": -(2**62)}),
]


PLACES = [(change, place) for change in CHANGES for place in (0, -1) if (next(iter(change)), place) != ("kind", -1)]


@pytest.mark.parametrize(("change", "place"), PLACES, ids=str)  # a leaf that is none has no children
@pytest.mark.parametrize("name", ["declared", "forest of means"])
def test_a_forest_that_was_changed_by_hand_comes_back_as_it_is(name: str, change: dict[str, Any], place: int) -> None:
    model, _ = fitted(name)
    ((field, value),) = change.items()
    array = getattr(model.forest_, field).copy()
    array.reshape(-1)[place] = value
    changed = replace(model.forest_, **{field: array})
    same_forest(unpack(pack(changed, model._meaning()), model._meaning()), changed)


def test_nodes_in_another_order_are_refused() -> None:
    model, _ = fitted("forest")
    turned = replace(model.forest_, parent=model.forest_.parent[::-1].copy())
    with pytest.raises(ValueError, match="parent is not what it is in a forest in canonical order"):
        pack(turned, model._meaning())


# Families


def random_tree(rng: np.random.Generator) -> list[int]:
    """Numbers of children, breadth first."""
    counts, waiting = [], 1
    while waiting:
        count = 0 if len(counts) > 40 else int(rng.choice([0, 2, 2, 3]))
        counts.append(count)
        waiting += count - 1
    return counts


@pytest.mark.parametrize("seed", range(8))
def test_links_follow_from_the_numbers_of_children(seed: int) -> None:
    """Beside a queue that hands out children one by one."""
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng) for _ in range(4)]
    roots, parent, depth, first = [], [], [], []
    for counts in trees:
        base = len(parent)
        roots.append(base)
        parent.append(-1)
        depth.append(0)
        for i, count in enumerate(counts):
            first.append(len(parent) if count else -1)
            parent += [base + i] * count
            depth += [depth[base + i] + 1] * count
    n_children = np.concatenate([np.array(counts) for counts in trees])
    starts: NDArray[Any] = np.array(roots)
    assert_array_equal(families.tree_ends(n_children), [*roots[1:], n_children.size])
    assert_array_equal(families.first_children(n_children, starts), first)
    assert_array_equal(families.parents(n_children, starts), parent)
    assert_array_equal(families.depths(n_children, starts), depth)
    leaf = n_children == 0
    leaves = rng.integers(-(2**60), 2**60, (int(leaf.sum()), 2)) // 64
    total = np.zeros((leaf.size, 2), np.int64)
    total[leaf] = leaves
    for node in range(leaf.size - 1, -1, -1):
        if parent[node] >= 0:
            total[parent[node]] += total[node]
    links = np.array(parent), np.array(depth), np.array(first)
    found = families.add_up(leaves, leaf, links)
    assert found is not None
    assert_array_equal(found, total)


@pytest.mark.parametrize("counts", [[2], [2, 0], [0, 2, 0], [2, 2, 0, 0]])
def test_trees_without_an_end_are_refused(counts: list[int]) -> None:
    with pytest.raises(ValueError, match="the children are not all nodes but the roots"):
        families.tree_ends(np.array(counts))


def test_trees_that_are_too_deep_to_add_up_keep_their_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "DEEPEST", 2)
    model, _ = fitted("forest")
    packed = pack(model.forest_, model._meaning())
    assert len(packed["counts"]) == model.forest_.n_nodes
    same_forest(unpack(packed, model._meaning()), model.forest_)


def test_forests_of_parts_are_packed_alike() -> None:
    model, _ = fitted("forest")
    trees = joined([model.forest_.tree(t) for t in range(20)])
    assert {name: array.tobytes() for name, array in pack(trees, model._meaning()).items()} == {
        name: array.tobytes() for name, array in pack(model.forest_, model._meaning()).items()
    }
