"""Rows walk down trees: the scalar form of `gputree.backends.walk`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy import float64, int32, int64, uint16, uint32
from numpy.typing import NDArray

from gputree.backends.cpu.marks import entry, float_of, kernel
from gputree.core.forest import SPREAD, STAY

BLOCK_ROWS = 1024  # that walk down a tree together, which then stays in cache
LOOKUP_BIT = 1 << 30  # of the feature
_STAY = int(STAY)
_FEATURE = LOOKUP_BIT - 1


class Tests(NamedTuple):
    """What a walk reads of a forest, by value."""

    node: NDArray[int64]  # (N, 2) image of the threshold; first child << 32 | LOOKUP_BIT | feature, below 0 in a leaf
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
def walk_block(tests: Tests, root: int, X: NDArray[Any], leaf: NDArray[uint32], waiting: NDArray[uint32]) -> None:
    """Leaves (B,) of rows X (B, F) in one tree; all rows take a step before any takes the next.

    So none waits for memory alone. Indices are unsigned: Numba looks for negative ones otherwise.
    """
    link, open_ = tests.node[root, 1], int64(0)
    for i in range(X.shape[0]):
        leaf[i] = uint32(root)
        waiting[i] = uint32(i)
        open_ += 1 if link >= 0 else 0
    while open_ > 0:
        left = int64(0)
        for j in range(open_):
            i = waiting[j]
            at = leaf[i]
            link = tests.node[at, 1]
            x = float64(X[i, uint32(link & _FEATURE)])
            if math.isnan(x):
                branch = int64(tests.missing[at])
            elif link & LOOKUP_BIT:
                branch = category_branch(tests, at, x)
            else:
                branch = int64(not (x <= float_of(tests.node[at, 0])))
            if branch == _STAY:
                continue
            child = uint32((link >> 32) + branch)
            leaf[i] = child
            waiting[left] = i
            left += int64(tests.node[child, 1] >= 0)
        open_ = left


@kernel
def leaves_of_block(tests: Tests, roots: NDArray[int32], X: NDArray[Any], leaves: NDArray[int32]) -> None:
    """Leaves (B, T) of rows X (B, F) in all trees."""
    leaf, waiting = np.empty(X.shape[0], uint32), np.empty(X.shape[0], uint32)
    for t in range(roots.size):
        walk_block(tests, int64(roots[t]), X, leaf, waiting)
        for row in range(X.shape[0]):
            leaves[row, t] = int32(leaf[row])


@entry
def leaves_of(given: tuple[Any, ...], roots: NDArray[int32], X: NDArray[Any], leaves: NDArray[int32]) -> None:
    """Leaves (n, T) of X f4/f8 (n, F); given are the fields of `Tests`."""
    tests = Tests(*given)
    for first in range(0, X.shape[0], BLOCK_ROWS):
        stop = min(first + BLOCK_ROWS, X.shape[0])
        leaves_of_block(tests, roots, X[first:stop], leaves[first:stop])


@entry
def add_values(
    given: tuple[Any, ...],
    roots: NDArray[int32],
    value: NDArray[float64],
    X: NDArray[Any],
    total: NDArray[float64],
) -> None:
    """Add the leaf values (N, O) of all trees, in order, to the totals (n, O) of X."""
    tests, leaves = Tests(*given), np.empty((BLOCK_ROWS, roots.size), int32)
    for first in range(0, X.shape[0], BLOCK_ROWS):
        stop = min(first + BLOCK_ROWS, X.shape[0])
        leaves_of_block(tests, roots, X[first:stop], leaves)
        for row in range(first, stop):
            for t in range(roots.size):
                for o in range(value.shape[1]):
                    total[row, o] += value[leaves[row - first, t], o]


Links = tuple[NDArray[uint16], NDArray[float64], NDArray[float64]]
"""Numbers of children, shares of the parents, and bounds of soft thresholds (N, 2), or (0, 2) where there are none."""


@kernel
def low_share(x: float, cut: float, low: float, high: float) -> float:
    """The part of a value between the bounds of a soft threshold that goes down its first branch."""
    return 1.0 - 0.5 * ((x - low) / (cut - low)) if x <= cut else 0.5 * ((high - x) / (high - cut))


@kernel
def spread_row(tests: Tests, links: Links, x: NDArray[Any], queue: Any, value: Any, total: Any) -> None:
    """Add the values (N, O) of the leaves that one row x (F,) falls into to its total (O,).

    The queue (nodes, and their shares of the row) begins with a root; since nodes are numbered breadth first, leaves
    leave it in order of their numbers.
    """
    (node, part), (n_children, share, bounds) = queue, links
    first, stop = int64(0), int64(1)
    while first < stop:
        at, own = node[first], part[first]
        first += 1
        link, branch = tests.node[at, 1], int64(STAY)
        if link >= 0:
            v = float64(x[uint32(link & _FEATURE)])
            if math.isnan(v):
                branch = int64(tests.missing[at])
            elif link & LOOKUP_BIT:
                branch = category_branch(tests, at, v)
            else:
                cut = float_of(tests.node[at, 0])
                branch = int64(not (v <= cut))
                if bounds.shape[0] and bounds[at, 0] < v <= bounds[at, 1]:
                    left = low_share(v, cut, bounds[at, 0], bounds[at, 1])
                    stop = push(queue, stop, link >> 32, own * left)
                    stop = push(queue, stop, (link >> 32) + 1, own * (1.0 - left))
                    continue
        if branch == STAY:
            for o in range(value.shape[1]):
                total[o] += own * value[at, o]
            continue
        child, last = (link >> 32) + branch, (link >> 32) + branch + 1
        if branch == SPREAD:
            child, last = link >> 32, (link >> 32) + int64(n_children[at])
        while child < last:
            stop = push(queue, stop, child, own * share[child] if branch == SPREAD else own)
            child += 1


@kernel
def push(queue: Any, stop: int, child: int, part: float) -> int:
    """Put a node behind the others, if it has a share of the row; where the queue now ends."""
    queue[0][stop], queue[1][stop] = child, part
    return stop + int64(part > 0.0)


@entry
def add_shares(
    given: tuple[Any, Any],
    roots: NDArray[int32],
    value: NDArray[float64],
    X: NDArray[Any],
    total: NDArray[float64],
) -> None:
    """`add_values` where tests spread rows; given are the fields of `Tests`, and the links of `spread_row`."""
    tests, links = Tests(*given[0]), given[1]
    queue = np.empty(value.shape[0] + 1, int64), np.empty(value.shape[0] + 1)
    for row in range(X.shape[0]):
        for t in range(roots.size):
            queue[0][0], queue[1][0] = roots[t], 1.0
            spread_row(tests, links, X[row], queue, value, total[row])
