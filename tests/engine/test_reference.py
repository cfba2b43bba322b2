"""Growth level by level gives the tree of the plain recursion in `tests.reference`, ties included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

import gputree
from tests.reference import COUNTS, Exact, Limits, Node, best_cuts, breadth_first, grow

# Few values and few rows: most nodes have ties among features, cuts and sides of missing values.
VALUES = st.sampled_from([-3.0, -0.5, 0.0, 0.25, 1.0, 7.0])


@st.composite
def tables(draw: st.DrawFn, criterion: str) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[np.float64] | None]:
    n, k = draw(st.integers(1, 24)), draw(st.integers(1, 4))
    values = VALUES | st.just(np.nan) if draw(st.booleans()) else VALUES
    X = draw(arrays.arrays(np.float64, (n, k), elements=values))
    top = draw(st.integers(0, 4))
    low = -top if criterion == "squared_error" else 0
    shape = (n, draw(st.integers(1, 2)))
    y = draw(arrays.arrays(np.int64, shape, elements=st.integers(low, top)))
    if criterion == "poisson":
        y[0] += 1  # a mean of zero is refused
    weight = draw(st.none() | arrays.arrays(np.float64, n, elements=st.integers(0, 3).map(float)))
    if weight is not None:
        weight[0] += 1
    return X, y if shape[1] > 1 else y[:, 0], weight


def fit(criterion: str, X: Any, y: Any, w: Any, **limits: Any) -> Any:
    learner = gputree.DecisionTreeClassifier if criterion in COUNTS else gputree.DecisionTreeRegressor
    return learner(criterion=criterion, **limits).fit(X, y, w).tree_


def check(tree: Any, nodes: list[Node], exact: Exact) -> None:
    """Every array of the tree, against the nodes of the recursion in the same order."""
    number = {id(node): i for i, node in enumerate(nodes)}
    child = [[number[id(kid)] for kid in node.kids] or [-1, -1] for node in nodes]
    tests = [(*node.cut,) if node.cut else (-2, -2.0, False) for node in nodes]
    np.testing.assert_array_equal(tree.feature, [t[0] for t in tests])
    np.testing.assert_array_equal(tree.threshold, [t[1] for t in tests])
    np.testing.assert_array_equal(tree.missing_go_to_left, [t[2] for t in tests])
    np.testing.assert_array_equal(tree.children_left, [left for left, _ in child])
    np.testing.assert_array_equal(tree.children_right, [right for _, right in child])
    np.testing.assert_array_equal(tree.n_node_samples, [len(node.rows) for node in nodes])
    np.testing.assert_array_equal(tree.weighted_n_node_samples, [exact.w[node.rows].sum() for node in nodes])
    np.testing.assert_allclose(tree.value, [value(exact, node) for node in nodes], rtol=1e-14, atol=1e-14)


def value(exact: Exact, node: Node) -> NDArray[np.float64]:
    """Shares of the classes, padded, or means: (outputs, classes)."""
    if exact.criterion not in COUNTS:
        return np.array([s / node.side.weight for s in node.side.sums])[:, None]
    sizes = [len(np.unique(column)) for column in exact.y.T]
    shares = np.split(np.array(node.side.sums) / node.side.weight, np.cumsum(sizes)[:-1])
    return np.array([np.append(s, np.zeros(max(sizes) - len(s))) for s in shares])


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
@settings(max_examples=150)
@given(data=st.data())
def test_level_by_level_equals_recursion(criterion: str, data: st.DataObject) -> None:
    X, y, w = data.draw(tables(criterion))
    depth, split, leaf = (data.draw(s) for s in (st.integers(1, 8), st.integers(2, 5), st.integers(1, 3)))
    tree = fit(criterion, X, y, w, max_depth=depth, min_samples_split=split, min_samples_leaf=leaf)
    exact = Exact(y, w, criterion)
    limits = Limits(max_depth=depth, min_samples_split=max(split, 2 * leaf), min_samples_leaf=leaf)
    check(tree, breadth_first(grow(X, exact, limits)), exact)


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
@settings(max_examples=40)
@given(data=st.data())
def test_least_weight_of_a_leaf(criterion: str, data: st.DataObject) -> None:
    X, y, _ = data.draw(tables(criterion))
    w = data.draw(arrays.arrays(np.float64, len(X), elements=st.integers(1, 3).map(float)))
    tree = fit(criterion, X, y, w, min_weight_fraction_leaf=0.1307)
    exact = Exact(y, w, criterion)
    check(tree, breadth_first(grow(X, exact, Limits(min_weight_leaf=0.1307 * w.sum()))), exact)


def test_xor_by_hand() -> None:
    """Both first splits gain nothing; the lowest feature and then the other part the classes."""
    X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])
    exact = Exact(y, None, "gini")
    nodes = breadth_first(grow(X, exact, Limits()))
    assert [node.cut.feature if node.cut else None for node in nodes] == [0, 1, 1, None, None, None, None]
    check(fit("gini", X, y, None), nodes, exact)


def test_missing_values_by_hand() -> None:
    """Missing against known parts the classes; the threshold says so by infinity."""
    X, y = np.array([[1.0], [2.0], [np.nan], [3.0], [np.nan]]), np.array([0, 0, 1, 0, 1])
    exact = Exact(y, None, "entropy")
    root = grow(X, exact, Limits())
    assert root.cut == (0, np.inf, False)
    assert [len(kid.rows) for kid in root.kids] == [3, 2]
    check(fit("entropy", X, y, None), breadth_first(root), exact)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
def test_the_screened_search_finds_what_the_plain_one_finds(criterion: str) -> None:
    """`best_cuts` leaves out none of the best, over tables small enough to score every test exactly."""
    rng = np.random.default_rng(0)
    for n in (5, 12, 40):
        X = rng.integers(0, 6, (n, 3)) / 2.0
        X[rng.random(X.shape) < 0.2] = np.nan
        exact = Exact(rng.integers(1, 4, n), rng.integers(1, 4, n).astype(float), criterion)
        root = grow(X, exact, Limits(max_depth=1, min_samples_leaf=2))
        found = best_cuts(X, exact, Limits(min_samples_leaf=2), exact.rows)
        record = max(gain for _, gain in found)
        first = next(cut for cut, gain in found if exact.equal(gain, record, root.side))
        assert root.cut is not None
        assert first[:2] == root.cut[:2]
