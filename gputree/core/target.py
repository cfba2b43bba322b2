"""y and weights as integer channels: label counts, or fixed-point sums. May import NumPy and core only.

Statistics are integers so that the order of additions cannot matter. A *layout* says what the channels of a node
mean; a *target* is a layout with the rows' own numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.criteria import Criterion, TargetKind

SUM_BITS = 61  # sums of |w * y| stay below 2**61: s - n * (S // N) then fits 63 bits
WEIGHT_BITS = 44  # total of scaled real weights beside sums of w * y
COUNT_BITS = 53  # total of scaled real weights alone: every total is an exact float64
RATIO_BITS = 20  # weights that are whole multiples of one unit, up to this size, are kept as such
MOST_PARTS = 64  # the unit is the smallest weight, or a half, a third ... of it


@dataclass(frozen=True, slots=True)
class Weights:
    """Integer weights: ``units`` i8 (n,), None when all are 1; a real weight is units * ``unit``."""

    units: NDArray[np.int64] | None
    unit: float
    exact: bool  # the units are multiples, so a weight of k equals k copies


def scale_weights(weight: NDArray[np.float64] | None, n_rows: int, bits: int) -> Weights:
    """Weights > 0 f8 (n,) as integers: multiples of a common unit where there is one, else scaled by 2**k."""
    if weight is None or n_rows == 0:
        return Weights(None, 1.0, True)
    distinct = np.unique(weight)
    for parts in (*range(1, MOST_PARTS + 1), shared_parts(distinct)):
        unit = float(distinct[0]) / parts
        with np.errstate(over="ignore", divide="ignore"):
            ratio = distinct / unit
        whole = np.rint(ratio)
        if ratio[-1] > 2.0**RATIO_BITS:
            continue
        if bool((np.abs(ratio - whole) <= whole * 2.0**-50).all()):
            units = np.rint(weight / unit).astype(np.int64)
            return Weights(None if bool((units == 1).all()) else units, unit, True)
    shift = -int(np.frexp(distinct[-1])[1])
    weight = np.ldexp(weight, shift)  # the largest is about 1: neither denormal nor huge
    coarse = int(np.ceil(np.ldexp(weight, 20)).astype(np.int64).sum())  # an order-free bound of the total
    exponent = bits + 19 - coarse.bit_length()
    units = np.maximum(1, np.rint(np.ldexp(weight, exponent))).astype(np.int64)
    return Weights(units, float(np.ldexp(1.0, max(-exponent - shift, -1074))), False)


def shared_parts(distinct: NDArray[np.float64]) -> int:
    """Into how many parts the smallest of a few weights, such as those of classes, is cut so that all are multiples.

    distinct f8 (d,) ascending; 1 where there are many or no such number.
    """
    parts = 1
    with np.errstate(over="ignore"):
        ratios = (distinct / distinct[0]).tolist()
    for ratio in ratios if len(ratios) <= MOST_PARTS and ratios[-1] < 2.0**RATIO_BITS else ():
        parts = math.lcm(parts, Fraction(ratio).limit_denominator(2**RATIO_BITS).denominator)
        if parts > 2**RATIO_BITS:
            return 1
    return parts


@dataclass(frozen=True, slots=True)
class Layout:
    """What the channels of a node mean.

    Counts: ``sizes[o]`` channels for the classes of output o, one output after another; the weight of a node is the
    sum of the first output's. Sums: channel 0 is the weight, channel 1 + o the sum of output o. ``rows`` is the number
    of a channel that counts rows, or -1 where the weight is the count. ``scale[o]``, a power of two, turns a channel
    of output o into the float64 that the criterion reads.
    """

    kind: TargetKind
    sizes: tuple[int, ...]
    scale: tuple[float, ...]
    rows: int = -1

    @property
    def counts(self) -> bool:
        """Whether the channels are label counts."""
        return self.kind is TargetKind.COUNTS

    @property
    def degree(self) -> int:
        """Power of y in an impurity."""
        return {TargetKind.COUNTS: 0, TargetKind.RAW_SUMS: 1, TargetKind.CENTRED_SUMS: 2}[self.kind]

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.sizes)

    @property
    def n_channels(self) -> int:
        """Channels of a node, the row count included."""
        return (sum(self.sizes) if self.counts else 1 + len(self.sizes)) + (self.rows >= 0)

    def output(self, o: int) -> slice:
        """Channels over which a criterion folds for output o."""
        first = sum(self.sizes[:o]) if self.counts else 1 + o
        return slice(first, first + (self.sizes[o] if self.counts else 1))

    def weight(self, stats: NDArray[np.int64]) -> NDArray[np.int64]:
        """Weights of nodes from channels i8 (C, ...)."""
        total: NDArray[np.int64] = stats[0]
        for channel in stats[1 : self.sizes[0]] if self.counts else ():
            total = total + channel  # in a loop: NumPy's sum over a short first axis is slow
        return total

    def count(self, stats: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows of nodes from channels i8 (C, ...)."""
        rows: NDArray[np.int64] = stats[self.rows] if self.rows >= 0 else self.weight(stats)
        return rows

    def means(self, stats: NDArray[np.int64]) -> NDArray[np.int64]:
        """Whole-number means of nodes i8 (C, N) -> i8 (O, N), on which centred sums are re-centred; 0 otherwise."""
        if self.kind is not TargetKind.CENTRED_SUMS:
            return np.zeros((self.n_outputs, stats.shape[1]), np.int64)
        means: NDArray[np.int64] = stats[1 : 1 + self.n_outputs] // np.maximum(stats[0], 1)
        return means

    def cancelling(self, criterion: Criterion, stats: NDArray[np.int64], gain: bool = False) -> NDArray[np.float64]:
        """Size of what cancels in the scores, or the gains, of nodes i8 (C, k) -> f8 (k,), added over outputs."""
        weight, mean = self.weight(stats), self.means(stats)
        own, scale = criterion.gain_scale if gain else criterion.scale, np.zeros(weight.shape)
        for o in range(self.n_outputs):
            scale += own(weight.astype(np.float64), self.floats(stats, o, weight, mean[o])[0])
        return scale

    def floats(
        self, stats: NDArray[np.int64], o: int, weight: NDArray[np.int64], mean: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Channels of output o as the criterion reads them: i8 (C, M), weight and the node's mean (M,) -> f8."""
        x = stats[self.output(o)]
        if self.kind is TargetKind.CENTRED_SUMS:
            x = x - weight * mean
        y: NDArray[np.float64] = x.astype(np.float64)
        return y if self.counts else y * self.scale[o]


@dataclass(frozen=True, slots=True)
class Sums:
    """The rows' part of a regression target, arrays (O, n), and what decodes it, (O,) each.

    ``y`` f8 as given; ``values`` i8 fixed-point w * y with y = centre + values / w * 2**-exponent: differences of y
    below 2**-exponent, some 2**-61 of its range times the number of rows, are not seen by splits. (y - centre) *
    2**unit lies in [-1, 1].
    """

    y: NDArray[np.float64]
    values: NDArray[np.int64]
    centre: NDArray[np.float64]
    exponent: NDArray[np.int32]
    unit: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Target:
    """y and weights of the rows that take part (positive weight), ready to be added.

    Counts have ``labels`` i4 (O, n), class numbers; sums have ``sums``.
    """

    layout: Layout
    weights: Weights
    n_rows: int
    labels: NDArray[np.int32] | None = None
    sums: Sums | None = None

    def take(self, rows: NDArray[np.intp]) -> Target:
        """Some rows (k,), in the same channels and scale."""
        units = self.weights.units
        return replace(
            self,
            weights=self.weights if units is None else replace(self.weights, units=units[rows]),
            n_rows=rows.size,
            labels=None if self.labels is None else self.labels[:, rows],
            sums=self.sums and replace(self.sums, y=self.sums.y[:, rows], values=self.sums.values[:, rows]),
        )

    def decrease_scale(self, criterion: Criterion) -> float:
        """Factor from a gain to the weighted impurity decrease that users see, times the weight of the root.

        Infinite or 0 where the squares of y leave the range of floats.
        """
        unit = 0 if self.sums is None else int(self.sums.unit.min())
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(criterion.unit / self.layout.n_outputs, -self.layout.degree * unit))


def on_the_scale_of(target: Target, y: NDArray[np.float64]) -> Target:
    """Rows y f8 (n, O) without weights, of no wider range, in the channels and on the scale of a target of sums."""
    assert target.sums is not None
    sums = target.sums
    values = np.rint(np.ldexp((y - sums.centre).T, sums.exponent[:, None])).astype(np.int64)
    own = replace(sums, y=np.ascontiguousarray(y.T) + 0.0, values=values)
    return replace(target, n_rows=y.shape[0], sums=own)


def counting_rows(target: Target) -> Target:
    """The same with a channel that counts rows, which is needed where rows are drawn more than once."""
    if target.layout.rows >= 0:
        return target
    return replace(target, layout=replace(target.layout, rows=target.layout.n_channels))


def refined(target: Target, total: int | None = None) -> Target:
    """Label counts in the finest units of weight, so that the weight of a row can be parted.

    ``total`` are the units in a tree, of a bag with its repeats; by default those of all rows.
    """
    weights = target.weights
    if total is None:
        total = target.n_rows if weights.units is None else int(weights.units.sum())
    shift = COUNT_BITS - 1 - total.bit_length()
    if shift <= 0:
        return target
    units = np.ones(target.n_rows, np.int64) if weights.units is None else weights.units
    fine = Weights(units << shift, math.ldexp(weights.unit, -shift), weights.exact)
    return replace(counting_rows(target), weights=fine)


def class_target(y: NDArray[Any], n_classes: tuple[int, ...], weight: NDArray[np.float64] | None) -> Target:
    """Label counts. y i4 (n, O) class numbers, weight f8 (n,) > 0 or None."""
    weights = scale_weights(weight, y.shape[0], COUNT_BITS)
    rows = -1 if weights.units is None else sum(n_classes)
    layout = Layout(TargetKind.COUNTS, n_classes, (1.0,) * len(n_classes), rows)
    return Target(layout, weights, y.shape[0], labels=np.ascontiguousarray(y.T, np.int32))


def sum_target(
    y: NDArray[np.float64], criterion: Criterion, weight: NDArray[np.float64] | None, draws: int = 0
) -> Target:
    """Fixed-point sums. y f8 (n, O) finite, weight f8 (n,) > 0 or None; at most ``draws`` rows add up, or each once."""
    weights = scale_weights(weight, y.shape[0], WEIGHT_BITS)
    total = y.shape[0] if weights.units is None else int(weights.units.sum())
    total = max(total, draws * (1 if weights.units is None else int(weights.units.max())))
    centred = criterion.needs is TargetKind.CENTRED_SUMS
    centre = y.min(axis=0) / 2 + y.max(axis=0) / 2 if centred else np.zeros(y.shape[1])
    deviation = (y - centre).T
    unit = value_exponent(deviation)
    values, exponent = fixed_point(deviation, weights, total)
    scale = tuple(float(np.ldexp(1.0, unit.min() - e)) for e in exponent)  # one unit for all outputs
    layout = Layout(criterion.needs, (1,) * y.shape[1], scale, -1 if weights.units is None else 1 + y.shape[1])
    own = Sums(np.ascontiguousarray(y.T) + 0.0, values, centre, exponent, unit)  # -0.0 and 0.0 are one value
    return Target(layout, weights, y.shape[0], sums=own)


def value_exponent(y: NDArray[np.float64]) -> NDArray[np.int32]:
    """Exponents (O,) such that y (O, n) * 2**exponent lies in [-1, 1]."""
    exponent: NDArray[np.int32] = np.frexp(np.abs(y).max(axis=1, initial=0.0))[1].astype(np.int32)
    return -exponent


def fixed_point(y: NDArray[np.float64], weights: Weights, total: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """w * y as integers: y f8 (O, n) -> i8 (O, n) and the exponents (O,), so that sums of |w * y| stay bounded.

    Multiples keep "weight k is k copies" to the bit; real weights are multiplied first and rounded once.
    """
    exponent = value_exponent(y) + SUM_BITS - int(total).bit_length()
    scaled = np.ldexp(y, exponent[:, None])
    if weights.units is None:
        return np.rint(scaled).astype(np.int64), exponent
    if weights.exact:
        return np.rint(scaled).astype(np.int64) * weights.units, exponent
    return np.rint(scaled * weights.units).astype(np.int64), exponent
