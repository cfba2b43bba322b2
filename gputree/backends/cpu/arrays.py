"""Arrays copied in loops: Numba compiles slices for seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import int32, int64, uint32
from numpy.typing import NDArray

from gputree.backends.cpu.marks import kernel


@kernel
def copy(into: NDArray[Any], array: NDArray[Any]) -> None:
    """Fill an array with the first numbers of another."""
    for i in range(into.size):
        into[i] = array[i]


@kernel
def permute(array: NDArray[Any], order: NDArray[uint32]) -> None:
    """Put an array into an order."""
    old = np.empty(array.size, array.dtype)
    copy(old, array)
    for i in range(array.size):
        array[i] = old[order[i]]


@kernel
def order_by_side(branch: NDArray[int32], size: NDArray[int64], order: NDArray[uint32]) -> None:
    """As `order_by_branch` for two branches, whose next places stay in registers."""
    right = int64(0)
    for i in range(branch.size):
        right += branch[i]
    size[0], size[1] = branch.size - right, right
    left, right = int64(0), branch.size - right
    for i in range(branch.size):
        side = int64(branch[i])
        order[right if side else left] = uint32(i)
        right += side
        left += 1 - side


@kernel
def order_by_branch(branch: NDArray[int32], size: NDArray[int64], order: NDArray[uint32]) -> None:
    """Places in order of their branch, as they come inside a branch; size (branches,) receives how many each has."""
    if size.size == 2:
        order_by_side(branch, size, order)
        return
    place = np.zeros(size.size + 1, int64)
    for i in range(branch.size):
        place[branch[i] + 1] += 1
    for b in range(size.size):
        size[b] = place[b + 1]
        place[b + 1] += place[b]
    for i in range(branch.size):
        order[place[branch[i]]] = uint32(i)
        place[branch[i]] += 1


@kernel
def gather(into: NDArray[Any], array: NDArray[Any], row: NDArray[uint32]) -> None:
    """Take the numbers of some rows."""
    for i in range(row.size):
        into[i] = array[row[i]]
