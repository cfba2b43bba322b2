"""The rows of every tree of a forest, as a description that any backend draws alike. May import NumPy and core only.

A draw is a function of the seed, the tree's number and the number of the draw, so a tree has the same bag whether it is
grown alone, in any batch, first or last, on any device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.expr import log2
from gputree.core.keys import Stream, below, draw, root_keys, unit

DRAW_BITS = 31  # total of draw weights: a hash is turned into a number below it


@dataclass(frozen=True, slots=True)
class Draws:
    """How the rows of a bag are drawn from strata.

    Stratum s are the rows ``rows[ptr[s] : ptr[s + 1]]``, of which ``sizes[s]`` are drawn, with replacement or without.
    ``ends`` u8 (n,), cumulated weights inside each stratum in the order of ``rows``: probabilities of the draws, or
    without replacement of each draw among the rows that are left; None: equal ones.
    """

    rows: NDArray[np.int64]
    ptr: NDArray[np.int64]
    sizes: NDArray[np.int64]
    replace: bool = True
    ends: NDArray[np.uint64] | None = None

    @property
    def total(self) -> int:
        """Draws of a bag."""
        return int(self.sizes.sum())


@dataclass(frozen=True, slots=True)
class Listed:
    """Bags that are written out: tree t has the rows ``rows[ptr[t] : ptr[t + 1]]``.

    ``alike``: all trees make the draws of the first, as fits of one tree on other rows do.
    """

    rows: NDArray[np.int64]
    ptr: NDArray[np.int64]
    alike: bool = False


@dataclass(frozen=True, slots=True)
class Bags:
    """Trees ``first`` to ``first + n_trees - 1`` of a seed; without ``draws`` each takes all rows once."""

    n_trees: int = 1
    first: int = 0
    seed: int = 0
    draws: Draws | Listed | None = None

    def keys(self) -> NDArray[np.uint64]:
        """Keys of the roots, u8 (T,)."""
        alike = isinstance(self.draws, Listed) and self.draws.alike
        return root_keys(self.seed, self.first + (0 if alike else 1) * np.arange(self.n_trees))

    def drawn(self, tree: int) -> NDArray[np.int64]:
        """Rows of the bag of one tree in the order of their draws; ``tree`` counts from ``first``."""
        assert self.draws is not None
        if isinstance(self.draws, Listed):
            return self.draws.rows[slice(*self.draws.ptr[tree : tree + 2])]
        return drawn_rows(self.draws, self.keys()[tree])


def strata(
    labels: NDArray[np.int64] | None,
    n: int,
    sizes: NDArray[np.int64],
    weight: NDArray[np.float64] | None,
    replace: bool,
) -> Draws:
    """Draws from strata of equal label i8 (n,), or of all rows; sizes (S,); draw weights f8 (n,) > 0 or None."""
    rows = np.arange(n) if labels is None else np.argsort(labels, kind="stable")
    counts = np.array([n]) if labels is None else np.bincount(labels, minlength=sizes.size)
    ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    if weight is None:
        return Draws(rows, ptr, sizes, replace)
    ends = np.empty(n, np.uint64)
    for first, stop in pairwise(ptr):
        ends[first:stop] = cumulated(weight[rows[first:stop]])
    return Draws(rows, ptr, sizes, replace, ends)


def cumulated(weight: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Cumulated whole draw weights of a total of about 2**31, in proportion to weights f8 (n,) > 0.

    A row that weighs less than some 2**-32 of all is never drawn.
    """
    largest = weight.max(initial=0.0)
    share = weight / largest if largest > 0 else weight
    scale = 2.0**DRAW_BITS / max(float(share.sum()), 1.0)
    return np.cumsum(np.rint(share * scale).astype(np.uint64))


def drawn_rows(draws: Draws, key: np.uint64) -> NDArray[np.int64]:
    """Rows of one bag in the order of their draws, stratum by stratum."""
    parts, number = [np.zeros(0, np.int64)], 0
    for s, size in enumerate(draws.sizes.tolist()):
        first, stop = int(draws.ptr[s]), int(draws.ptr[s + 1])
        if draws.replace:
            place = placed(draws, first, stop, draw(key, Stream.BAG, np.arange(number, number + size)))
        else:
            place = first + smallest(waits(draws, first, stop, draw(key, Stream.BAG, draws.rows[first:stop])), size)
        parts.append(draws.rows[place])
        number += size
    return np.concatenate(parts)


def placed(draws: Draws, first: int, stop: int, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Places in ``rows`` of draws with replacement from one stratum."""
    if draws.ends is None:
        return first + below(hashes, stop - first).astype(np.int64)
    point = below(hashes, draws.ends[stop - 1])
    return first + np.searchsorted(draws.ends[first:stop], point, side="right")


def waits(draws: Draws, first: int, stop: int, hashes: NDArray[np.uint64]) -> NDArray[Any]:
    """What draws without replacement from one stratum are ordered by: hashes u8 (n,), one a row.

    With weights, exponential waiting times of rate w: the next row to come is a draw of probability w among those that
    are left (Efraimidis and Spirakis 2006, "Weighted random sampling with a reservoir", Information Processing Letters
    97:181-185). Times ascend with the hashes, so equal weights give the draws without weights.
    """
    if draws.ends is None:
        return hashes
    weight = np.diff(draws.ends[first:stop], prepend=np.uint64(0)).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(weight > 0, -log2(1.0 - unit(hashes)) / weight, np.inf)


def smallest(values: NDArray[Any], size: int) -> NDArray[np.intp]:
    """Places of the ``size`` smallest values, ascending; the first among equals."""
    if size >= values.size:
        return np.arange(values.size)
    top = np.partition(values, size)[size]  # the first that is left out
    less = np.flatnonzero(values < top)
    return np.sort(np.concatenate([less, np.flatnonzero(values == top)[: size - less.size]]))


def listed(
    bags: Bags, n: int, each: Callable[[Callable[[int], Any], Iterable[int]], Iterable[Any]] = map
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]:
    """The distinct rows of all bags, ascending in each, how often each was drawn, and where bags begin and end.

    ``each`` is `map`, or does the same in threads.
    """

    def bag(tree: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        often = multiplicities(bags, tree, n)
        rows = np.flatnonzero(often).astype(np.uint32)
        return rows, often[rows]

    rows, times = zip(*each(bag, range(bags.n_trees)), strict=True)
    ends = np.cumsum([0, *(r.size for r in rows)]).astype(np.int64)
    return np.concatenate(rows), np.concatenate(times), ends


def multiplicities(bags: Bags, tree: int, n: int) -> NDArray[np.int64]:
    """How often each of n rows is in the bag of one tree."""
    return np.bincount(bags.drawn(tree), minlength=n)
