"""Where the boxes of a tree stand: levels from the top down, no two boxes on each other. May import NumPy only.

The layout is that of Reingold and Tilford (1981), "Tidier drawings of trees", IEEE Transactions on Software Engineering
7:223-228, for boxes of any width and any number of children: a subtree is pushed against those to its left, level by
level, and once more against those to its right; the mean of the two keeps all distances, and is even. Many leaves of
one test hang in columns instead, from a line that runs down beside them. All lengths are in one unit, whatever it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ABREAST = 6  # leaves of one test that stand side by side; more of them hang in columns
GAP = 1.0  # between boxes side by side
LEVEL_GAP = 2.2  # between levels, for the edges
ROW_GAP = 0.7  # between boxes that hang below each other
TICK = 1.2  # from the line of a column to its boxes

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Hanging:
    """Which boxes hang in columns: number of the column among those of the parent and row in it, or -1."""

    column: list[int]
    row: list[int]


@dataclass(frozen=True, slots=True)
class Places:
    """Left and top of every box (k,); lines of columns at ``spine``, NaN for boxes that do not hang.

    ``top`` and ``bottom`` (levels,) bound the levels; y grows downwards.
    """

    x: Floats
    y: Floats
    spine: Floats
    level: NDArray[np.int64]
    top: Floats
    bottom: Floats
    width: float
    height: float


def hang(parent: Sequence[int], leaf: Sequence[bool], aspect: float) -> Hanging:
    """Hang the leaves of tests with many, in blocks about as wide as high.

    ``leaf`` tells which boxes have none below them, ``aspect`` is the height of a box over its width.
    """
    leaves: list[list[int]] = [[] for _ in parent]
    for i, p in enumerate(parent):
        if p >= 0 and leaf[i]:
            leaves[p].append(i)
    found = Hanging([-1] * len(parent), [-1] * len(parent))
    for own in leaves:
        if len(own) > ABREAST:
            columns = max(1, round(float(np.sqrt(len(own) * aspect))))
            rows = -(-len(own) // columns)
            for place, i in enumerate(own):
                found.column[i], found.row[i] = divmod(place, rows)
    return found


@dataclass(frozen=True, slots=True)
class Block:
    """What stands below one point of a line of siblings: the reach to its left and right (levels,), and its boxes."""

    left: Floats
    right: Floats
    boxes: tuple[int, ...]


def place(parent: Sequence[int], hanging: Hanging, width: Floats, height: Floats) -> Places:
    """Places of boxes in preorder; width and height (k,)."""
    level = levels(parent, hanging)
    offset = offsets(parent, hanging, width)
    anchor = np.zeros(len(parent))
    for i, p in enumerate(parent):
        anchor[i] = offset[i] + (anchor[p] if p >= 0 else 0.0)
    hangs = np.array(hanging.row) >= 0
    x = np.where(hangs, anchor + TICK, anchor - width / 2)
    left = min(float(x.min()), float(anchor.min()))
    top, bottom = bands(level, hanging, height)
    spine = np.where(hangs, anchor - left, np.nan)
    return Places(x - left, top[level], spine, level, top, bottom, float((x + width).max()) - left, float(bottom[-1]))


def levels(parent: Sequence[int], hanging: Hanging) -> NDArray[np.int64]:
    """Level of every box (k,): that below its parent's, and a row of a column each takes one more."""
    level = [0] * len(parent)
    for i, p in enumerate(parent):
        if p >= 0:
            level[i] = level[p] + 1 + max(hanging.row[i], 0)
    return np.array(level, np.int64)


def bands(level: NDArray[np.int64], hanging: Hanging, height: Floats) -> tuple[Floats, Floats]:
    """Top and bottom of every level; levels of nothing but further rows of columns are closer together."""
    tall = np.zeros(level.max() + 1)
    np.maximum.at(tall, level, height)
    gap = np.full(tall.size, ROW_GAP)
    gap[level[np.array(hanging.row) <= 0]] = LEVEL_GAP
    gap[0] = 0.0
    bottom = np.cumsum(gap + tall)
    return bottom - tall, bottom


def offsets(parent: Sequence[int], hanging: Hanging, width: Floats) -> Floats:
    """How far every box, or the line that it hangs from, is to the right of its parent's middle (k,)."""
    children: list[list[int]] = [[] for _ in parent]
    for i, p in enumerate(parent):
        if p >= 0:
            children[p].append(i)
    offset = np.zeros(len(parent))
    reach: dict[int, Block] = {}
    for i in range(len(parent) - 1, -1, -1):  # children come behind their parents
        blocks = [*columns(children[i], hanging, width), *(reach.pop(c) for c in children[i] if hanging.row[c] < 0)]
        blocks.sort(key=lambda block: block.boxes[0])
        at = abreast(blocks)
        for block, x in zip(blocks, at, strict=True):
            offset[list(block.boxes)] = x
        reach[i] = joined(i, float(width[i]) / 2, blocks, at)
    return offset


def columns(children: Sequence[int], hanging: Hanging, width: Floats) -> list[Block]:
    """The columns of hanging boxes among children."""
    found: dict[int, list[int]] = {}
    for c in children:
        if hanging.row[c] >= 0:
            found.setdefault(hanging.column[c], []).append(c)
    return [Block(np.zeros(len(own)), TICK + width[own], tuple(own)) for own in found.values()]


def abreast(blocks: Sequence[Block]) -> Floats:
    """Where blocks stand beside each other (blocks,), the first and the last equally far from 0."""
    if not blocks:
        return np.zeros(0)
    pushed_right = pushed([(block.left, block.right) for block in blocks])
    pushed_left = -pushed([(-block.right, -block.left) for block in reversed(blocks)])[::-1]
    at: Floats = (pushed_right + pushed_left - pushed_left[0]) / 2
    at -= at[-1] / 2
    return at


def pushed(blocks: Sequence[tuple[Floats, Floats]]) -> Floats:
    """Every block as far to the left as those before it allow, the first at 0 (blocks,)."""
    taken = np.full(max(left.size for left, _ in blocks), -np.inf)
    at = np.zeros(len(blocks))
    for i, (left, right) in enumerate(blocks):
        here = taken[: left.size]
        at[i] = float((here - left).max()) + GAP if i else 0.0
        np.maximum(here, at[i] + right, out=here)
    return at


def joined(box: int, half: float, blocks: Sequence[Block], at: Floats) -> Block:
    """A box with what stands below it."""
    depth = max((block.left.size for block in blocks), default=0)
    left, right = np.full(depth + 1, np.inf), np.full(depth + 1, -np.inf)
    left[0], right[0] = -half, half
    for block, x in zip(blocks, at, strict=True):
        below = slice(1, 1 + block.left.size)
        left[below] = np.minimum(left[below], x + block.left)
        right[below] = np.maximum(right[below], x + block.right)
    return Block(left, right, (box,))
