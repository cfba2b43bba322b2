"""What a grown forest's nodes hold: values and impurities. May import NumPy and core only.

Of regression trees the leaves are summed once more, about their own means: fixed point over the whole range of y is
coarse where one row is far from all others. Inner nodes follow from their children. A node without rows, the branch of
a category that was declared and not met, holds what its parent holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gputree.core.criteria import Criterion
from gputree.core.forest import Forest, Test
from gputree.core.target import Layout, Target

LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, slots=True)
class Figures:
    """Of nodes and outputs, f8 (k, O) each: the mean, what its float leaves out, and the mean loss about it."""

    mean: NDArray[np.float64]
    rest: NDArray[np.float64]
    loss: NDArray[np.float64]


def order_free_sums(
    x: NDArray[np.float64], units: NDArray[np.int64] | None, starts: NDArray[np.intp], exact: bool
) -> NDArray[np.float64]:
    """Sums of w * x over consecutive rows, f8 (k,), whatever the order of the rows inside each sum.

    x f8 (m,), whole weights ``units`` (m,) or None for ones; ``starts`` (k,) begins each sum; ``exact`` weights are
    multiplied as whole numbers, so that a weight of k is k copies. Terms are rounded to a common power of two
    of their sum, about 2**-62 of the largest term times the number of rows, and what that leaves out to a finer one.
    """
    sizes = np.diff(starts, append=x.size)
    units = np.ones(x.size, np.int64) if units is None else units
    terms = x if exact else x * units
    bits = np.maximum(np.frexp(np.add.reduceat(units, starts) if exact else sizes)[1], 1)
    exponent = 62 - bits - np.frexp(np.maximum.reduceat(np.abs(terms), starts))[1]
    finer = 61 - bits
    scaled = np.ldexp(terms, np.repeat(exponent, sizes))
    coarse = np.rint(scaled)
    rest = np.rint(np.ldexp(scaled - coarse, np.repeat(finer, sizes)))

    def added(values: NDArray[np.float64]) -> NDArray[np.float64]:
        whole = values.astype(np.int64)
        total = np.add.reduceat(whole * units if exact else whole, starts)
        return total.astype(np.float64)

    sums: NDArray[np.float64] = np.ldexp(added(coarse), -exponent) + np.ldexp(added(rest), -exponent - finer)
    return sums


def coarse_means(target: Target, stats: NDArray[np.int64]) -> NDArray[np.float64]:
    """Means of nodes as their channels i8 (C, k) give them, f8 (k, O)."""
    means = stats[1 : 1 + target.layout.n_outputs] / np.maximum(target.layout.weight(stats), 1)
    if target.sums is not None:
        means = target.sums.centre[:, None] + np.ldexp(means, -target.sums.exponent[:, None])
    transposed: NDArray[np.float64] = means.T
    return transposed


def describe_counts(forest: Forest, layout: Layout, criterion: Criterion) -> Forest:
    """Class shares and impurities from the label counts."""
    return replace(forest, value=count_shares(forest, layout), impurity=count_impurity(forest, layout, criterion))


def count_shares(forest: Forest, layout: Layout) -> NDArray[np.float64]:
    """Class shares of the nodes (N, classes), output by output."""
    stats = forest.stats.T
    value = np.ascontiguousarray((stats[: sum(layout.sizes)] / np.maximum(layout.weight(stats), 1)).T)
    inherit(value, forest, layout)
    return value


def count_impurity(forest: Forest, layout: Layout, criterion: Criterion) -> NDArray[np.float64]:
    """Impurities of the nodes (N,), the mean over outputs."""
    stats = forest.stats.T
    n = np.maximum(layout.weight(stats), 1).astype(np.float64)
    impurity = np.zeros(n.size)
    for o in range(layout.n_outputs):
        counts = stats[layout.output(o)]
        own = np.maximum(criterion.impurity(counts.astype(np.float64), n), 0.0)
        impurity += np.where((counts > 0).sum(axis=0) > 1, own, 0.0)  # no rounding where there is one class, or none
    mean: NDArray[np.float64] = impurity / layout.n_outputs
    return mean


def inherit(value: NDArray[np.float64], forest: Forest, layout: Layout) -> None:
    """Give nodes without rows the value (N, O) of their parents, which have some."""
    empty = np.flatnonzero(layout.weight(forest.stats.T) == 0)
    value[empty] = value[forest.parent[empty]]


def describe_sums(forest: Forest, target: Target, criterion: Criterion, leaves: Figures) -> Forest:
    """Means and impurities of all nodes from those of the leaves with rows, which come in node order.

    The loss of a node about its mean is that of its children about theirs plus the loss of the children's means about
    it: the law of total variance, and its like for every Bregman loss (Banerjee and others 2005, Clustering with
    Bregman divergences, theorem 1). Means are taken as differences from the first child's, so that a large offset of y
    costs no digits.
    """
    shape = forest.n_nodes, target.layout.n_outputs
    at = Figures(np.zeros(shape), np.zeros(shape), np.zeros(shape))
    weight = target.layout.weight(forest.stats.T)
    leaf = (forest.kind == Test.LEAF) & (weight > 0)
    at.mean[leaf], at.rest[leaf], at.loss[leaf] = leaves.mean, leaves.rest, leaves.loss
    by_depth = np.argsort(forest.depth, kind="stable")
    by_depth = by_depth[weight[by_depth] > 0]
    ends = np.searchsorted(forest.depth[by_depth], np.arange(forest.max_depth + 2))
    above = np.where(forest.parent < 0, weight, weight[forest.parent])
    share = (weight / above)[:, None]
    for first, stop in zip(ends[-2:0:-1], ends[:1:-1], strict=True):
        join_children(forest, target, criterion, at, by_depth[first:stop], share)
    inherit(at.mean, forest, target.layout)
    impurity = np.minimum(at.loss.sum(axis=1), LARGEST) / target.layout.n_outputs
    return replace(forest, value=at.mean, impurity=impurity)


def join_children(
    forest: Forest,
    target: Target,
    criterion: Criterion,
    at: Figures,
    node: NDArray[np.intp],
    shares: NDArray[np.float64],
) -> None:
    """Write the figures of the parents of all nodes of one depth; shares f8 (N, 1) of their parents' weight."""
    parent, first, inverse = np.unique(forest.parent[node], return_index=True, return_inverse=True)
    share = shares[node]
    base = at.mean[node[first]]
    away = (at.mean[node] - base[inverse]) + at.rest[node]
    shift = np.zeros(base.shape)
    np.add.at(shift, inverse, share * away)
    at.mean[parent], at.rest[parent] = two_sum(base, shift)
    sums = target.sums
    unit = np.zeros(base.shape[1], np.int32) if sums is None else sums.unit
    with np.errstate(over="ignore"):
        own = criterion.loss(np.ldexp(away - shift[inverse], unit), np.ldexp(at.mean[parent][inverse], unit))
        np.add.at(at.loss, parent[inverse], share * (at.loss[node] + np.ldexp(own, -target.layout.degree * unit)))


def two_sum(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A sum and its rounding error (Knuth, The Art of Computer Programming vol. 2, 4.2.2, theorem B)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def hold(forest: Forest, target: Target, bounds: NDArray[np.float64]) -> Forest:
    """Clip values to monotone bounds f8 (2, N), which are shares of class 1, or means in whole units."""
    value = forest.value.copy()
    if target.sums is None and value.shape[1] == 2:
        value[:, 1] = np.clip(value[:, 1], *bounds)
        value[:, 0] = 1.0 - value[:, 1]
    elif target.sums is not None:
        value[:, 0] = np.clip(value[:, 0], *(target.sums.centre[0] + np.ldexp(bounds, -target.sums.exponent[0])))
    return replace(forest, value=value)
