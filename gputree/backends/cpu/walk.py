"""Rows walk down trees: the scalar form of `gputree.backends.walk`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy import float64, int32, int64, uint16, uint32, uint64
from numpy.typing import NDArray

from gputree.backends.cpu.marks import entry, float_of, kernel
from gputree.core.forest import STAY

BLOCK_ROWS = 1024  # that walk down a tree together, which then stays in cache
LOOKUP_BIT = 1 << 30  # of the feature
SECOND_BIT = 1 << 31  # a missing value goes to the second child
LEAF_BIT = -(1 << 63)
LEVELS = 8  # that all rows go down before those that arrived are sorted out
_STAY = int(STAY)
_FEATURE = LOOKUP_BIT - 1
_LOW = np.uint64(0xFFFFFFFF)
_NODE = np.uint32(0x7FFFFFFF)


class Tests(NamedTuple):
    """What a walk reads of a forest, by value.

    ``node`` has two words of each node: the image of its threshold, and, from the highest bit down, `LEAF_BIT`, the
    first child (31 bits), `SECOND_BIT`, `LOOKUP_BIT` and the feature (30 bits). The first child of a leaf is the leaf
    itself, its threshold infinite: a row that goes on stays there.
    """

    plain: bool  # two children everywhere, and all tests are thresholds
    node: NDArray[int64]  # (N, 2)
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
def under_way(node: NDArray[int64], leaf: NDArray[uint32], waiting: NDArray[uint64], rows: int) -> int:
    """List the rows that are not in a leaf yet: the number of a node and, in the lower half, of a row."""
    open_ = int64(0)
    for i in range(rows):
        waiting[open_] = uint64(leaf[i]) << uint64(32) | uint64(i)
        open_ += int64(node[leaf[i], 1] >= 0)
    return open_


@kernel
def go_down(node: NDArray[int64], X: NDArray[Any], leaf: NDArray[uint32]) -> None:
    """All rows take `LEVELS` steps in a tree of thresholds alone; nothing here waits for a comparison."""
    for _ in range(LEVELS):
        for i in range(X.shape[0]):
            link, low = node[leaf[i], 1], float_of(node[leaf[i], 0])
            x = float64(X[uint32(i), uint32(link & _FEATURE)])
            second = uint32(x > low) | uint32(not x <= low) & uint32(link >> 31) & uint32(1)
            leaf[i] = (uint32(link >> 32) & _NODE) + second


@kernel
def walk_block(tests: Tests, root: int, X: NDArray[Any], leaf: NDArray[uint32], waiting: NDArray[uint64]) -> None:
    """Leaves (B,) of rows X (B, F) in one tree; all rows take a step before any takes the next.

    So none waits for memory alone. While most are under way all are moved, which is quicker than to pick them. Indices
    are unsigned: Numba looks for negative ones otherwise.
    """
    rows = int64(X.shape[0])
    for i in range(rows):
        leaf[i] = uint32(root)
    open_ = under_way(tests.node, leaf, waiting, rows)
    while tests.plain and 2 * open_ > rows:
        go_down(tests.node, X, leaf)
        open_ = under_way(tests.node, leaf, waiting, rows)
    while open_ > 0:
        left = int64(0)
        for j in range(open_):
            at, i = uint32(waiting[j] >> uint64(32)), uint32(waiting[j] & _LOW)
            link = tests.node[at, 1]
            x = float64(X[i, uint32(link & _FEATURE)])
            if math.isnan(x) or link & LOOKUP_BIT:
                branch = int64(tests.missing[at]) if math.isnan(x) else category_branch(tests, at, x)
                if branch == _STAY:
                    continue
            else:
                branch = int64(not (x <= float_of(tests.node[at, 0])))
            child = uint32((link >> 32) + branch)
            leaf[i] = child
            waiting[left] = uint64(child) << uint64(32) | uint64(i)
            left += int64(tests.node[child, 1] >= 0)
        open_ = left


@entry
def leaves_of(given: tuple[Any, ...], roots: NDArray[int32], X: NDArray[Any], leaves: NDArray[int32]) -> None:
    """Leaves (n, T) of X f4/f8 (n, F); given are the fields of `Tests`."""
    tests, leaf, waiting = Tests(*given), np.empty(BLOCK_ROWS, uint32), np.empty(BLOCK_ROWS, uint64)
    for first in range(0, X.shape[0], BLOCK_ROWS):
        stop = min(first + BLOCK_ROWS, X.shape[0])
        for t in range(roots.size):
            walk_block(tests, int64(roots[t]), X[first:stop], leaf, waiting)
            for row in range(first, stop):
                leaves[row, t] = int32(leaf[row - first])


@entry
def add_values(
    given: tuple[Any, ...],
    roots: NDArray[int32],
    value: NDArray[float64],
    X: NDArray[Any],
    total: NDArray[float64],
) -> None:
    """Add the leaf values (N, O) of all trees, in order, to the totals (n, O) of X."""
    tests, leaf, waiting = Tests(*given), np.empty(BLOCK_ROWS, uint32), np.empty(BLOCK_ROWS, uint64)
    for first in range(0, X.shape[0], BLOCK_ROWS):
        stop = min(first + BLOCK_ROWS, X.shape[0])
        for t in range(roots.size):
            walk_block(tests, int64(roots[t]), X[first:stop], leaf, waiting)
            for row in range(first, stop):
                for o in range(value.shape[1]):
                    total[row, o] += value[leaf[row - first], o]


@kernel
def spread_row(
    tests: Tests, links: tuple[NDArray[uint16], NDArray[float64]], x: NDArray[Any], forks: Any, value: Any, total: Any
) -> None:
    """Add the values (N, O) of the leaves that one row x (F,) falls into, from left to right, to its total (O,).

    ``links`` are the numbers of children and the shares of their parents. ``forks`` are the tests on the way that
    spread the row: the next child of each, the end of its children and its share of the row; the first stands above
    the root.
    """
    (following, stop, whole), (n_children, share) = forks, links
    top = int64(1)
    while top > 0:
        if following[top - 1] == stop[top - 1]:
            top -= 1
            continue
        at = following[top - 1]
        following[top - 1] += 1
        own = whole[top - 1] * share[at] if top > 1 else whole[0]
        if not own > 0.0:
            continue
        link, branch = tests.node[at, 1], int64(_STAY)
        while link >= 0:
            v = float64(x[uint32(link & _FEATURE)])
            if math.isnan(v):
                branch = int64(tests.missing[at])
            elif link & LOOKUP_BIT:
                branch = category_branch(tests, at, v)
            else:
                branch = int64(not (v <= float_of(tests.node[at, 0])))
            if branch >= _STAY:
                break
            at = (link >> 32) + branch
            link, branch = tests.node[at, 1], int64(_STAY)
        if branch == _STAY:
            for o in range(value.shape[1]):
                total[o] += own * value[at, o]
            continue
        following[top], whole[top] = link >> 32, own
        stop[top] = following[top] + int64(n_children[at])
        top += 1


@entry
def add_shares(
    given: tuple[Any, Any, int],
    roots: NDArray[int32],
    value: NDArray[float64],
    X: NDArray[Any],
    total: NDArray[float64],
) -> None:
    """`add_values` where tests spread rows; given are the fields of `Tests`, the links of `spread_row`, the depth."""
    tests, links, levels = Tests(*given[0]), given[1], given[2] + 1
    following, stop, whole = np.empty(levels, int64), np.empty(levels, int64), np.empty(levels)
    for row in range(X.shape[0]):
        for t in range(roots.size):
            following[0], stop[0], whole[0] = roots[t], roots[t] + 1, 1.0
            spread_row(tests, links, X[row], (following, stop, whole), value, total[row])
