"""The nodes of a tree of scikit-learn as our arrays, for `gputree.inspect.convert`. May import everything below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.criteria import Criterion, TargetKind
from gputree.core.forest import NO_NODE, Forest, Test
from gputree.core.schema import floor_float32
from gputree.core.scores import gains, grid
from gputree.core.target import (
    COUNT_BITS,
    WEIGHT_BITS,
    Layout,
    Weights,
    fixed_point,
    scale_weights,
    value_exponent,
)

WHOLE = 2.0**-45  # relative distance from a whole number that the roundings of a share of a weight explain
SHARES = 1e-6  # and of the shares of all classes from 1: what counts, which old versions held, never are
LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, slots=True)
class Held:
    """What the nodes hold: channels i8 (N, C) with their meaning, the weight of one unit, and values f8 (N, O')."""

    stats: NDArray[np.int64]
    layout: Layout
    unit: float
    value: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Source:
    """The arrays of a tree of scikit-learn, renumbered breadth first.

    ``inner`` bool (N,); ``first`` i8 (N,) number of the left child, the right one is next; ``low`` f8 (N,) thresholds;
    ``value`` f8 (N, O') the columns of all outputs side by side.
    """

    inner: NDArray[np.bool_]
    first: NDArray[np.int64]
    feature: NDArray[np.int64]
    low: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    impurity: NDArray[np.float64]
    rows: NDArray[np.int64]
    weight: NDArray[np.float64]
    value: NDArray[np.float64]

    @classmethod
    def of(cls, model: Any, sizes: tuple[int, ...], matching: bool) -> Source:
        """Read a fitted estimator with these numbers of classes; ``matching`` moves thresholds to where it rounds."""
        tree = model.tree_
        order = breadth_first(tree.children_left, tree.children_right)
        inner = tree.children_left[order] >= 0
        first = np.where(inner, 2 * np.cumsum(inner) - 1, NO_NODE)
        feature, low = tree.feature[order], tree.threshold[order]
        if not ((feature >= 0) & (feature < tree.n_features) & ~np.isnan(low))[inner].all():
            raise ValueError("tree_ tests a column that is not there, or a threshold that is NaN; fit the model again")
        sizes = sizes or (1,) * tree.n_outputs
        return cls(
            inner,
            first,
            feature,
            np.where(inner, border(low) if matching else low, 0.0),
            tree.missing_go_to_left[order].astype(bool),
            np.clip(np.nan_to_num(tree.impurity[order], nan=0.0, posinf=LARGEST), 0.0, LARGEST),
            tree.n_node_samples[order].astype(np.int64),
            checked_weights(tree.weighted_n_node_samples[order]),
            np.concatenate([tree.value[order, o, :size] for o, size in enumerate(sizes)], axis=1),
        )

    def counts(self, sizes: tuple[int, ...], monotone: bool) -> Held:
        """Label counts whose shares are the values, in multiples of a common unit of weight."""
        leaf = ~self.inner
        share, rows = self.value[leaf], self.rows[leaf]
        starts = np.cumsum(sizes)[:-1]
        total = np.stack([own.sum(axis=1) for own in np.split(share, starts, axis=1)])
        if not ((share >= 0).all() and (np.abs(total - 1.0) <= SHARES).all()):
            raise ValueError(
                "a leaf of tree_ holds no shares of classes, which are 0 or more and add up to 1; fit without negative "
                "weights, and with scikit-learn 1.3 or newer"
            )
        units, unit = settled(*in_units(share * self.weight[leaf, None], rows, sizes[0], COUNT_BITS), share, sizes)
        weight = np.maximum(rows, np.stack([own.sum(axis=1) for own in np.split(units, starts, axis=1)]).max(axis=0))
        for own in np.split(units, starts, axis=1):  # views
            own[np.arange(weight.size), own.argmax(axis=1)] += weight - own.sum(axis=1)
        counted = bool((weight == rows).all())
        layout = Layout(TargetKind.COUNTS, sizes, (1.0,) * len(sizes), -1 if counted else sum(sizes))
        stats = self.added(units if counted else np.column_stack([units, rows]))
        whole = layout.weight(stats.T)[:, None]
        value: NDArray[np.float64] = stats[:, : sum(sizes)] / whole
        if monotone and sizes == (2,):
            value[:, 0] = 1.0 - value[:, 1]
        return Held(stats, layout, unit, value)

    def sums(self, criterion: Criterion) -> Held:
        """Fixed-point sums of the leaves' means, as `gputree.core.target.sum_target` forms them of rows."""
        leaf = ~self.inner
        y, rows = self.value[leaf], self.rows[leaf]
        if not np.isfinite(self.value).all():
            raise ValueError("a node of tree_ holds a value that is not finite; fit the model again on finite numbers")
        amount, unit = in_units(self.weight[leaf, None], rows, 1, WEIGHT_BITS)
        units = np.maximum(amount[:, 0], rows)
        centred = criterion.needs is TargetKind.CENTRED_SUMS
        deviation = (y - (y.min(axis=0) / 2 + y.max(axis=0) / 2 if centred else 0.0)).T
        shift = value_exponent(deviation)
        values, exponent = fixed_point(deviation, Weights(units, unit, True), int(units.sum()))
        scale = tuple(float(np.ldexp(1.0, shift.min() - e)) for e in exponent)
        counted = bool((units == rows).all())
        layout = Layout(criterion.needs, (1,) * y.shape[1], scale, -1 if counted else 1 + y.shape[1])
        columns = [units, *values, *([] if counted else [rows])]
        return Held(self.added(np.column_stack(columns)), layout, unit, self.value)

    def added(self, leaves: NDArray[np.int64]) -> NDArray[np.int64]:
        """Channels of all nodes (N, C) from those of the leaves."""
        stats = np.zeros((self.inner.size, leaves.shape[1]), np.int64)
        stats[~self.inner] = leaves
        return depth_first(self.first, self.first + 1).sums(stats)

    def forest(self, held: Held, criterion: Criterion) -> Forest:
        """All arrays."""
        inner, node = self.inner, np.flatnonzero(self.inner)
        parent = np.concatenate([[NO_NODE], np.repeat(node, 2)])
        weight = held.layout.weight(held.stats.T)
        left = self.first[node]
        heavier = np.zeros(inner.size, np.uint16)
        heavier[node] = weight[left + 1] > weight[left]
        alone = inner & (self.low == np.inf)  # known or missing
        missing = np.where(inner & ~self.missing_left, 1, 0)
        score = np.zeros(inner.size)
        score[node] = scores(held, criterion, node, left)
        blank = np.zeros(inner.size, np.uint16)
        return Forest(
            roots=np.zeros(1, np.int32),
            kind=np.where(inner, Test.THRESHOLD, Test.LEAF).astype(np.uint8),
            feature=np.where(inner, self.feature, -1).astype(np.int32),
            low=self.low,
            first_child=self.first.astype(np.int32),
            n_children=np.where(inner, 2, blank).astype(np.uint16),
            missing=missing.astype(np.uint16),
            unseen=np.where(alone, blank, heavier),
            met_missing=(alone | (missing != heavier)).astype(np.uint8),
            lookup_ptr=np.zeros(inner.size + 1, np.int64),
            lookup_code=blank[:0],
            lookup_branch=blank[:0],
            stats=held.stats,
            score=score,
            parent=parent.astype(np.int32),
            depth=depths(parent),
            impurity=self.impurity,
            value=held.value,
        )


def breadth_first(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.intp]:
    """Numbers of the nodes breadth first, children (N,).

    Raises
    ------
    ValueError
        If they do not form one tree.
    """
    n, a, b = left.size, left.tolist(), right.tolist()
    order = [0]
    sound = bool(((left < n) & (right < n) & ((left >= 0) == (right >= 0))).all())
    for node in order if sound else ():  # grows while it is read
        if a[node] >= 0:
            order += (a[node], b[node])
        if len(order) > n:  # a circle
            break
    if len(order) != n or len(set(order)) != n:
        raise ValueError("the nodes of tree_ do not form one tree; fit the model again")
    return np.array(order, np.intp)


def checked_weights(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights of nodes (N,), if all are positive."""
    bad = np.flatnonzero(~((weight > 0) & np.isfinite(weight)))
    if bad.size:
        raise ValueError(
            f"a node of tree_ weighs {weight[bad[0]]}, and must weigh more than 0; fit with sample_weight of 0 or more"
        )
    return weight


def border(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest float64 that rounds to a float32 of at most each threshold.

    That is the middle between the last float32 to the left and the next one, or what comes before it: a tie goes to
    the even one of the two. Thresholds beyond all finite float32 stay.
    """
    left = floor_float32(threshold)
    with np.errstate(over="ignore", invalid="ignore"):
        right = np.nextafter(left, np.float32(np.inf))
        middle = left.astype(np.float64) / 2 + right.astype(np.float64) / 2
        odd = (left.view(np.uint32) & 1).astype(bool)
        low = np.where(odd, np.nextafter(middle, -np.inf), middle)
    return np.where(np.isfinite(left) & np.isfinite(right), low, threshold)


def in_units(
    amount: NDArray[np.float64], rows: NDArray[np.int64], width: int, bits: int
) -> tuple[NDArray[np.int64], float]:
    """Amounts of weight f8 (L, k) as whole numbers with a total below 2**bits, and the weight of one.

    One is 1 where that is exact. The first ``width`` columns make up a leaf, and are to be no fewer than its rows (L,)
    where there is room.
    """
    near = np.rint(amount)
    if (np.abs(amount - near) <= amount * WHOLE).all() and near.sum() < 2.0**bits:
        units, unit = near.astype(np.int64), 1.0
    else:
        positive = amount > 0
        found = scale_weights(amount[positive], int(positive.sum()), bits)
        units, unit = np.zeros(amount.shape, np.int64), found.unit
        units[positive] = 1 if found.units is None else found.units
    lacking = float((rows / np.maximum(units[:, :width].sum(axis=1), 1)).max())
    factor = 2 ** min(int(np.ceil(np.log2(max(lacking, 1.0)))), room(units, bits))
    return units * factor, unit / factor


def room(units: NDArray[np.int64], bits: int) -> int:
    """By how many bits the units may grow."""
    return max(0, bits - int(units.sum()).bit_length())


def settled(
    units: NDArray[np.int64], unit: float, share: NDArray[np.float64], sizes: tuple[int, ...]
) -> tuple[NDArray[np.int64], float]:
    """Units (L, classes) in which the class of the largest share (L, classes) is the same, for each output.

    Shares that differ by a rounding error alone are equal in units: then a tiny one is added.
    """
    starts = np.cumsum(sizes)[:-1]
    best = [own.argmax(axis=1) for own in np.split(share, starts, axis=1)]
    parts = np.split(units, starts, axis=1)  # views
    if all((own.argmax(axis=1) == top).all() for own, top in zip(parts, best, strict=True)):
        return units, unit
    factor = 2 ** room(units, COUNT_BITS)
    units *= factor
    for own, top in zip(parts, best, strict=True):
        off = np.flatnonzero(own.argmax(axis=1) != top)
        own[off, top[off]] = own[off].max(axis=1) + 1
    return units, unit / factor


def scores(held: Held, criterion: Criterion, node: NDArray[np.intp], left: NDArray[np.int64]) -> NDArray[np.float64]:
    """Score of the tests of nodes (k,) with these left children, as the search gives it."""
    stats, layout = held.stats.T, held.layout
    weight, mean = layout.weight(stats), layout.means(stats[:, node])
    gain, info = np.zeros(node.size), np.zeros(node.size)
    for o in range(layout.n_outputs):
        own, *x = [layout.floats(stats[:, at], o, weight[at], mean[o]) for at in (node, left, left + 1)]
        n, N = [weight[at].astype(np.float64) for at in (left, left + 1)], weight[node].astype(np.float64)
        more, info = gains(criterion, x, n, own, N)
        gain += more
    final = criterion.final(gain, info, weight[node].astype(np.float64))
    return grid(final, layout.cancelling(criterion, stats[:, node]))


def depths(parent: NDArray[Any]) -> NDArray[np.int32]:
    """Depth of nodes that come after their parents (N,)."""
    depth = [0] * parent.size
    for node, above in enumerate(parent.tolist()):
        if above >= 0:
            depth[node] = depth[above] + 1
    return np.array(depth, np.int32)


@dataclass(frozen=True, slots=True)
class Places:
    """Number of every node in depth-first order, and of the nodes from it downwards, i8 (N,) each."""

    place: NDArray[np.int64]
    size: NDArray[np.int64]

    def sums(self, leaves: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of every node, what the leaves below it add up to; leaves i8 (N, C), 0 in inner nodes.

        The leaves of a node stand side by side in depth-first order.
        """
        running = np.zeros((leaves.shape[0] + 1, leaves.shape[1]), np.int64)
        running[self.place + 1] = leaves
        np.cumsum(running, axis=0, out=running)
        below: NDArray[np.int64] = running[self.place + self.size] - running[self.place]
        return below


def depth_first(left: NDArray[Any], right: NDArray[Any]) -> Places:
    """Depth-first order of nodes that come after their parents; children (N,), negative in leaves."""
    pairs = list(zip(left.tolist(), right.tolist(), strict=True))
    size, place = [1] * len(pairs), [0] * len(pairs)
    for node in range(len(pairs) - 1, -1, -1):
        a, b = pairs[node]
        if a >= 0:
            size[node] += size[a] + size[b]
    for node, (a, b) in enumerate(pairs):
        if a >= 0:
            place[a] = place[node] + 1
            place[b] = place[a] + size[a]
    return Places(np.array(place, np.int64), np.array(size, np.int64))
