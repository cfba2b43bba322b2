"""The generic bottom-up procedure over all small trees: what is left never has a larger bound."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gputree.core.criteria import CRITERIA
from gputree.core.description import code_length, risk_bound
from gputree.core.forest import NO_NODE, Forest, Test
from gputree.core.routes import Parts
from gputree.core.schema import Kind
from gputree.core.summary import describe_counts
from gputree.core.target import class_target
from gputree.engine.pruning import Cases, Fitted, RiskBound, WholeTree

Shape = tuple[int, Any, Any] | None


def shapes(features: tuple[int, ...]) -> list[Shape]:
    """All trees over binary columns that test none twice on a path, up to the classes of their leaves."""
    found: list[Shape] = [None]
    for f in features:
        below = shapes(tuple(g for g in features if g != f))
        found += [(f, zero, one) for zero, one in itertools.product(below, below)]
    return found


@dataclass(frozen=True)
class Cells:
    """Every row of d bits once for each class, with a whole weight."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    weight: NDArray[np.int64]

    @classmethod
    def of(cls, ones: NDArray[np.int64], rows: int) -> Cells:
        """Of ``rows`` rows of every cell of the cube so many ``ones`` (2^d,) are of class 1."""
        d = ones.size.bit_length() - 1
        X = np.repeat(np.array(list(itertools.product((0.0, 1.0), repeat=d))), 2, axis=0)
        weight = np.stack([rows - ones, ones], axis=1).ravel()
        own = weight > 0
        return cls(X[own], np.tile([0, 1], ones.size)[own], weight[own])

    def cases(self) -> Cases:
        n = self.y.size
        start = Parts(np.arange(n), np.zeros(n, np.intp), self.weight)
        return Cases(self.X, self.y[None], self.weight.astype(float), start)


def forest_of(shape: Shape, cells: Cells) -> Fitted:
    """A tree of this shape, fitted to cells."""
    X, y, weight = cells.X, cells.y, cells.weight
    queue: list[tuple[Shape, NDArray[np.bool_], int, int]] = [(shape, np.ones(len(X), bool), NO_NODE, 0)]
    feature, child, stats = [], [], []
    for own, rows, _, depth in queue:
        feature.append(NO_NODE if own is None else own[0])
        child.append(NO_NODE if own is None else len(queue))
        stats.append(np.bincount(y[rows], weight[rows], minlength=2))
        if own is not None:
            one = X[:, own[0]] == 1
            queue += [(own[1 + side], rows & (one == side), len(feature) - 1, depth + 1) for side in (0, 1)]
    n, inner = len(queue), np.array(child) != NO_NODE
    layout = class_target(y[:, None].astype(np.int32), (2,), None).layout
    forest = Forest(
        roots=np.zeros(1, np.int32),
        kind=np.where(inner, Test.THRESHOLD, Test.LEAF).astype(np.uint8),
        feature=np.array(feature, np.int32),
        low=np.where(inner, 0.5, 0.0),
        first_child=np.array(child, np.int32),
        n_children=np.where(inner, 2, 0).astype(np.uint16),
        missing=np.zeros(n, np.uint16),
        unseen=np.zeros(n, np.uint16),
        met_missing=np.zeros(n, np.uint8),
        lookup_ptr=np.zeros(n + 1, np.int64),
        lookup_code=np.zeros(0, np.uint16),
        lookup_branch=np.zeros(0, np.uint16),
        stats=np.array(stats, np.int64),
        score=np.zeros(n),
        parent=np.array([above for _, _, above, _ in queue], np.int32),
        depth=np.array([depth for *_, depth in queue], np.int32),
        impurity=np.zeros(n),
        value=np.zeros((n, 2)),
    )
    criterion, numeric = CRITERIA["gini"], np.full(X.shape[1], Kind.NUMERIC, np.uint8)
    return Fitted(describe_counts(forest, layout, criterion), layout, 1.0, criterion, numeric)


def risk_of(forest: Forest, cells: Cells) -> float:
    """The bound, from predictions of the rows."""
    wrong = WholeTree(0.0, 0, 0, lambda: forest).predict(cells.X) != cells.y
    m = float(cells.weight.sum())
    bits = code_length(forest.n_nodes, cells.X.shape[1])
    return float(risk_bound(cells.weight[wrong].sum() / m, bits, m))


def never_worse(small: Iterable[Shape], cells: Cells) -> None:
    """No tree is left with a larger bound than it had; some with a smaller one."""
    rule, cases, less = RiskBound(n_tests=cells.X.shape[1]), cells.cases(), 0
    for shape in small:
        fitted = forest_of(shape, cells)
        before = risk_of(fitted.forest, cells)
        after = risk_of(rule(fitted, cases), cells)
        assert after <= before + 1e-12
        less += after < before
    assert less


def noisy_xor(d: int, rows: int) -> Cells:
    """The first column against the last, 15 % of the classes wrong."""
    cube = np.array(list(itertools.product((0, 1), repeat=d)))
    share = np.where(cube[:, 0] != cube[:, -1], 0.85, 0.15)
    return Cells.of(np.random.default_rng(rows).binomial(rows, share), rows)


@pytest.mark.parametrize(("d", "rows"), [(1, 12), (2, 1), (2, 12), (3, 1), (3, 12)])
def test_all_trees_over_few_columns(d: int, rows: int) -> None:
    never_worse(shapes(tuple(range(d))), noisy_xor(d, rows))


def test_some_trees_over_four_columns() -> None:
    below = shapes((0, 1, 2))
    pick = np.random.default_rng(4).integers(0, len(below), (150, 2)).tolist()
    never_worse([(3, below[zero], below[one]) for zero, one in pick], noisy_xor(4, 12))


# ---- all trees over four columns, up to the names of the columns ----
#
# Where the classes of a cell depend on its number of ones alone, to exchange columns changes no count, and the rule
# reads of a test nothing but where it sends rows: trees that differ by the names of their columns are pruned alike. One
# of each such family stands for all: that whose columns are numbered as they are met.

COUNTS = {
    "parity": (1, 11, 2, 10, 1),
    "majority": (0, 1, 5, 11, 12),
    "two of four": (2, 3, 11, 3, 0),
    "noise": (5, 7, 6, 5, 7),
}  # rows of class 1 among 12 of a cell, by its number of ones


def by_ones(name: str, times: int = 1) -> Cells:
    ones = np.array(list(itertools.product((0, 1), repeat=4))).sum(axis=1)
    return Cells.of(times * np.array(COUNTS[name])[ones], 12 * times)


def columns(shape: Shape) -> list[int]:
    """The columns of a tree as they are met in preorder."""
    found: dict[int, None] = {}
    stack = [shape]
    while stack:
        own = stack.pop()
        if own is not None:
            found.setdefault(own[0])
            stack += (own[2], own[1])
    return list(found)


def renamed(shape: Shape, name: list[int]) -> Shape:
    return None if shape is None else (name[shape[0]], renamed(shape[1], name), renamed(shape[2], name))


@pytest.fixture(scope="module")
def representatives() -> list[Shape]:
    """One tree of every family; a family of k columns has 4! / (4 - k)! members, and all make all trees."""
    everything = shapes((0, 1, 2, 3))
    assert len(everything) == 1 + 4 * (1 + 3 * (1 + 2 * (1 + 1) ** 2) ** 2) ** 2 == 238_145
    found = [(shape, columns(shape)) for shape in everything]
    found = [(shape, own) for shape, own in found if own == list(range(len(own)))]
    assert sum(math.perm(4, len(own)) for _, own in found) == len(everything)
    return [shape for shape, _ in found]


@pytest.mark.parametrize("counts", COUNTS)
def test_the_names_of_columns_change_nothing(counts: str) -> None:
    rng, cells, below = np.random.default_rng(7), by_ones(counts), shapes((1, 2, 3))
    rule, cases = RiskBound(n_tests=4), cells.cases()
    for _ in range(8):
        zero, one = rng.integers(0, len(below), 2).tolist()
        shape, name = (0, below[zero], below[one]), rng.permutation(4)
        a, b = (rule(forest_of(own, cells), cases) for own in (shape, renamed(shape, name.tolist())))
        inner = a.kind != Test.LEAF
        np.testing.assert_array_equal(b.kind != Test.LEAF, inner)
        np.testing.assert_array_equal(b.feature[inner], name[a.feature[inner]])
        for array in ("first_child", "stats", "value"):
            np.testing.assert_array_equal(getattr(a, array), getattr(b, array))


@pytest.mark.slow
@pytest.mark.parametrize("counts", COUNTS)
def test_all_trees_over_four_columns(counts: str, representatives: list[Shape]) -> None:
    """With so many rows that the bound weighs their errors like the size of the tree."""
    never_worse(representatives, by_ones(counts, 4))
