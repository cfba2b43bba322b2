"""Rows walk down trees: the scalar form of `gputree.backends.walk`."""

from __future__ import annotations

import math
from typing import Any

from numpy import float64, int32, int64, uint8, uint16
from numpy.typing import NDArray

from gputree.backends.cpu.marks import entry, kernel, record
from gputree.core.forest import Test

LEAF, LOOKUP_TEST = int(Test.LEAF), int(Test.LOOKUP)


@record
class Tests:
    """The arrays of a forest that a walk reads."""

    kind: NDArray[uint8]
    feature: NDArray[int32]
    low: NDArray[float64]
    first_child: NDArray[int32]
    missing: NDArray[uint16]
    unseen: NDArray[uint16]
    lookup_ptr: NDArray[int64]
    lookup_code: NDArray[uint16]
    lookup_branch: NDArray[uint16]


@kernel
def category_branch(tests: Tests, node: int, x: float) -> int:
    """The branch of a category number."""
    low, high = tests.lookup_ptr[node], tests.lookup_ptr[node + 1]
    stop = high
    while low < high:
        middle = (low + high) // 2
        if tests.lookup_code[middle] < x + 1.0:
            low = middle + 1
        else:
            high = middle
    if low < stop and tests.lookup_code[low] == x + 1.0:
        return int64(tests.lookup_branch[low])
    return int64(tests.unseen[node])


@kernel
def leaf_of(tests: Tests, node: int, X: NDArray[Any], row: int) -> int:
    """The leaf of a row below a node."""
    while tests.kind[node] != LEAF:
        x = float64(X[row, tests.feature[node]])
        if math.isnan(x):
            branch = int64(tests.missing[node])
        elif tests.kind[node] == LOOKUP_TEST:
            branch = category_branch(tests, node, x)
        else:
            branch = int64(0) if x <= tests.low[node] else int64(1)
        node = int64(tests.first_child[node]) + branch
    return node


@entry
def leaves_of(
    given: tuple[Any, ...], roots: NDArray[int32], X: NDArray[Any], leaves: NDArray[int32], span: tuple[int, int]
) -> None:
    """Leaves (n, T) of rows first .. stop - 1 of X f4/f8 (n, F); given are the fields of `Tests`."""
    tests = Tests(*given)
    for row in range(span[0], span[1]):
        for t in range(roots.size):
            leaves[row, t] = leaf_of(tests, int64(roots[t]), X, row)


@entry
def add_values(
    given: tuple[Any, ...],
    roots: NDArray[int32],
    value: NDArray[float64],
    X: NDArray[Any],
    total: NDArray[float64],
    span: tuple[int, int],
) -> None:
    """Add the leaf values (N, O) of all trees, in order, to the totals (n, O) of rows first .. stop - 1."""
    tests, block = Tests(*given), 64
    for first in range(span[0], span[1], block):
        stop = min(first + block, span[1])
        for t in range(roots.size):
            for row in range(first, stop):
                leaf = leaf_of(tests, int64(roots[t]), X, row)
                for o in range(value.shape[1]):
                    total[row, o] += value[leaf, o]
