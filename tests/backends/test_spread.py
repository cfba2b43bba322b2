"""Rows that go down every branch: every backend against one plain recursion, bit for bit."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gputree.core.routes
from gputree.backends.cuda import Cuda
from gputree.backends.gpu import walk
from gputree.backends.gpu.driver import Driver
from gputree.backends.oracle import Oracle
from gputree.backends.protocol import Backend
from gputree.core.forest import SPREAD, STAY, Forest, Test
from gputree.core.routes import Parts, branch_shares, by_cases, from_left, leaf_parts, levels, steered
from tests.backends.test_methods import random_forest
from tests.conftest import require_compiler
from tests.emulator.driver import Emulator


def spreading(seed: int, trees: int) -> tuple[Forest, NDArray[np.int64]]:
    """Trees of which most tests spread missing values, and most lookups the unknown, and some keep them; and weights,
    0 in some leaves."""
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, trees)
    inner = forest.kind != Test.LEAF
    weight = np.where(inner, 0, rng.integers(0, 4, forest.n_nodes))
    for i in range(forest.n_nodes - 1, -1, -1):
        if inner[i]:
            children = forest.node(i).children
            weight[children[0]] += not weight[children].any()
            weight[i] = weight[children].sum()
    to = {name: getattr(forest, name).copy() for name in ("missing", "unseen")}
    for branch in to.values():
        drawn = rng.random(forest.n_nodes)
        branch[inner & (drawn < 0.7)] = SPREAD
        branch[inner & (drawn > 0.9)] = STAY
    return replace(forest, **to), weight


def table(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    return np.column_stack(
        [rng.choice([np.nan, -2.0, 0.0, 0.1, 5.0], n), rng.choice([-1.0, 0.0, 1.0, 2.0, 3.0, np.nan], n)]
    )


Bounds = NDArray[np.float64] | None


def plain_shares(
    forest: Forest, weight: NDArray[np.int64], i: int, row: list[float], own: float, bounds: Bounds = None
) -> dict[int, float]:
    """Leaf -> share, from left to right."""
    node = forest.node(i)
    if node.is_leaf:
        return {i: own}
    x = row[node.feature]
    branch = 0 if x <= forest.low[i] else 1
    if forest.kind[i] == Test.LOOKUP:
        codes, branches = node.lookup
        found = dict(zip(codes.tolist(), branches.tolist(), strict=True))
        branch = int(forest.unseen[i]) if math.isnan(x) else found.get(int(x) + 1, int(forest.unseen[i]))
    branch = int(forest.missing[i]) if math.isnan(x) else branch
    if branch == STAY:
        return {i: own}
    parts = {node.children[branch]: own} if branch != SPREAD else {}
    for child in node.children if branch == SPREAD else ():
        parts[child] = own * (weight[child] / weight[i])
    if bounds is not None and forest.kind[i] == Test.THRESHOLD and bounds[0, i] < x <= bounds[1, i]:
        cut, (low, high) = float(forest.low[i]), bounds[:, i].tolist()
        part = 1 - 0.5 * ((x - low) / (cut - low)) if x <= cut else 0.5 * ((high - x) / (high - cut))
        parts = dict(zip(node.children, (own * part, own * (1 - part)), strict=True))
    shares: dict[int, float] = {}
    for child, part in parts.items():
        if part > 0:
            shares |= plain_shares(forest, weight, child, row, part, bounds)
    return shares


@pytest.mark.parametrize("n", [0, 1, 33, 500])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predict_adds_shares_of_leaves_from_left_to_right(backend: Backend, n: int, dtype: type) -> None:
    forest, weight = spreading(3, 5)
    X = table(np.random.default_rng(1), n).astype(dtype)
    expected = np.zeros((n, 2))
    for i, row in enumerate(X.tolist()):
        for root in forest.roots.tolist():
            for leaf, share in plain_shares(forest, weight, root, row, 1.0).items():
                expected[i] += share * forest.value[leaf]
    np.testing.assert_array_equal(backend.predict(forest, X, branch_shares(forest, weight)), expected)
    assert forest.spreads


def test_little_room_on_the_device_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warp at a time: 300 rows in ten turns of its threads."""
    require_compiler()
    forest, weight = spreading(3, 5)
    X, share = table(np.random.default_rng(1), 300), branch_shares(forest, weight)
    monkeypatch.setattr(walk, "FORK_BYTES", 1)
    emulator = Emulator(checked=True)
    found = Cuda(Driver.of(emulator.xp, 0)).predict(forest, X, share)
    assert emulator.counters["predict_shares"].launches == 1
    np.testing.assert_array_equal(found, Oracle().predict(forest, X, share))


def test_places_from_left_by_plain_recursion() -> None:
    forest, _ = spreading(7, 4)
    expected = np.zeros(forest.n_nodes, int)

    def visit(node: int, place: int) -> int:
        expected[node] = place
        for child in forest.node(node).children:
            place = visit(child, place + 1)
        return place

    for root in forest.roots.tolist():
        visit(root, 0)
    np.testing.assert_array_equal(from_left(forest), expected)


def some_bounds(forest: Forest, seed: int) -> NDArray[np.float64]:
    """About most thresholds, to one side of some alone, and none about some."""
    width = np.random.default_rng(seed).choice([0.0, 0.05, 0.5, 8.0], (2, forest.n_nodes))
    bounds = forest.low + np.array([[-1.0], [1.0]]) * width
    return np.where((forest.kind == Test.THRESHOLD) & np.isfinite(forest.low), bounds, np.nan)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_near_soft_thresholds_go_down_both_branches(backend: Backend, dtype: type) -> None:
    forest, weight = spreading(8, 5)
    X, bounds = table(np.random.default_rng(4), 300).astype(dtype), some_bounds(forest, 5)
    X[:, 0] += np.random.default_rng(6).choice([0.0, 0.02, -0.3], 300).astype(dtype)
    expected, several = np.zeros((300, 2)), 0
    for i, row in enumerate(X.astype(np.float64).tolist()):
        for root in forest.roots.tolist():
            found = plain_shares(forest, weight, root, row, 1.0, bounds)
            several += len(found) > len(plain_shares(forest, weight, root, row, 1.0))
            for leaf, share in found.items():
                expected[i] += share * forest.value[leaf]
    assert several > 50
    np.testing.assert_array_equal(backend.predict(forest, X, branch_shares(forest, weight), bounds), expected)


def test_rows_in_many_parts_are_walked_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    forest, weight = spreading(4, 1)
    X, share = np.full((9, 2), np.nan), branch_shares(forest, weight)
    usual = Parts.joined(list(leaf_parts(forest, Parts.whole(9, 0), X, share)))
    monkeypatch.setattr(gputree.core.routes, "MOST_PARTS", 2)
    blocks = list(leaf_parts(forest, Parts.whole(9, 0), X, share))
    assert len(blocks) == 9
    for name in ("row", "node", "weight"):
        np.testing.assert_array_equal(getattr(Parts.joined(blocks), name), getattr(usual, name))
    np.testing.assert_allclose(np.bincount(usual.row, usual.weight), 1.0, rtol=1e-12)


def test_apply_follows_the_heaviest_branch(backend: Backend) -> None:
    forest, weight = spreading(5, 3)
    X = table(np.random.default_rng(2), 100)
    leaves = backend.apply(steered(forest, weight), X)
    for row, found in zip(X.tolist(), leaves.tolist(), strict=True):
        for root, leaf in zip(forest.roots.tolist(), found, strict=True):
            assert leaf in plain_shares(forest, weight, root, row, 1.0)
    assert not steered(forest, weight).spreads


def whole_parts(forest: Forest, X: NDArray[Any], units: NDArray[np.int64]) -> NDArray[np.int64]:
    """Weights of all nodes of a tree after dividing whole numbers."""
    total = np.zeros(forest.n_nodes, np.int64)
    at = Parts(np.arange(len(X)), np.zeros(len(X), np.intp), units)
    for level, _ in levels(forest, at, X, by_cases(forest)):
        np.add.at(total, level.node, level.weight)
    return total


def test_whole_weights_are_divided_without_a_remainder() -> None:
    forest, _ = spreading(6, 1)
    rng = np.random.default_rng(3)
    X, units = table(rng, 200), rng.integers(1, 1000, 200)
    total = whole_parts(forest, X, units)
    assert total[0] == units.sum()
    for i in np.flatnonzero(forest.kind != Test.LEAF):
        assert total[i] == total[forest.node(int(i)).children].sum() or STAY in (forest.missing[i], forest.unseen[i])


def test_a_missing_case_is_divided_as_the_known_cases_are() -> None:
    """Quinlan's golf table with one outlook unknown: 5/13, 3/13 and 5/13 of the case; the first 5/13 is rounded up."""
    forest = spreading_root(3)
    X = np.array([0.0] * 5 + [1.0] * 3 + [2.0] * 5 + [np.nan])[:, None]
    total = whole_parts(forest, X, np.full(14, 1 << 20))
    unit = 1 << 20
    assert total[1:].tolist() == [5 * unit + 5 * unit // 13 + 1, 3 * unit + 3 * unit // 13, 5 * unit + 5 * unit // 13]
    none = whole_parts(forest, np.array([[np.nan]]), np.array([10]))
    assert none.tolist() == [10, 4, 3, 3]  # no case is known: equal parts, the rest to the first


def spreading_root(branches: int) -> Forest:
    """One test of as many categories."""
    blank = np.zeros(1 + branches)
    only = np.array([1] + [0] * branches)
    return Forest(
        roots=np.zeros(1, np.int32),
        kind=(only * Test.LOOKUP).astype(np.uint8),
        feature=(only - 1).astype(np.int32),
        low=blank,
        first_child=(2 * only - 1).astype(np.int32),
        n_children=(branches * only).astype(np.uint16),
        missing=(SPREAD * only).astype(np.uint16),
        unseen=(SPREAD * only).astype(np.uint16),
        met_missing=only.astype(np.uint8),
        lookup_ptr=np.array([0] + [branches] * (1 + branches)),
        lookup_code=np.arange(1, branches + 1, dtype=np.uint16),
        lookup_branch=np.arange(branches, dtype=np.uint16),
        stats=np.zeros((1 + branches, 1), np.int64),
        score=blank,
        parent=np.array([-1] + [0] * branches, np.int32),
        depth=(1 - only).astype(np.int32),
        impurity=blank,
        value=np.zeros((1 + branches, 1)),
    )
