"""What the columns of a table are, and how their values become codes.

Code 0 means missing; known values follow in order (numeric) or as categories. May import NumPy only.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

MISSING = 0
MAX_CODES = 65_535  # known codes of two bytes, where 0 is taken
ALL_CODES = 2**31 - 2  # no limit: more codes than a table has rows
BYTE_CODES = 255  # known codes that fit one byte beside MISSING
EXACT_ROWS = 65_535  # a table of at most this many rows is never approximated


class Kind(IntEnum):
    """How a column is read."""

    NUMERIC = 0
    CATEGORICAL = 1


@dataclass(frozen=True, slots=True)
class Feature:
    """One column: its name, its kind, and for a category column its values in order.

    ``declared``: whether the values were declared, by the type of the column or by the user, and not merely found in
    it; a test with a branch for each then has one for every declared value.
    """

    name: str
    kind: Kind = Kind.NUMERIC
    categories: tuple[Any, ...] = ()
    declared: bool = False


@dataclass(frozen=True, slots=True)
class Cuts:
    """The codes of one numeric column (or the count of categories of a category column).

    ``values`` f8 (codes,): exact codes are the distinct values themselves; else a representative of each code.
    ``edges`` f8 (codes - 1,): for quantile codes only, code c holds the values x with edges[c-2] < x <= edges[c-1].
    ``declared``: whether categories were declared, see `Feature`.
    """

    values: NDArray[np.float64]
    edges: NDArray[np.float64] | None = None
    kind: Kind = Kind.NUMERIC
    declared: bool = False

    @property
    def n_codes(self) -> int:
        """Number of known codes."""
        return self.values.size

    def seen(self, thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
        """The largest value that is not above each threshold (k,), which has one; of quantile codes the threshold.

        Examples
        --------
        >>> Cuts(np.array([65.0, 70.0, 75.0, 78.0, 85.0])).seen(np.array([77.5]))
        array([75.])
        """
        if self.edges is not None:
            return thresholds
        return self.values[np.searchsorted(self.values, thresholds, side="right") - 1]

    def among(self, x: NDArray[Any]) -> Cuts:
        """The same with none but the values that a part x f4/f8 (n,) of the column holds; of quantile codes all.

        Examples
        --------
        >>> Cuts(np.array([65.0, 70.0, 75.0])).among(np.array([75.0, np.nan, 65.0])).values
        array([65., 75.])
        """
        if self.edges is not None:
            return self
        met = np.bincount(self.code_of(x), minlength=self.n_codes + 1)[1:] > 0
        return replace(self, values=self.values[met])

    def code_of(self, x: NDArray[Any]) -> NDArray[Any]:
        """Codes of a column x f4/f8 (n,), MISSING where NaN; exact codes expect values that were seen."""
        keys: NDArray[Any] = self.values if self.edges is None else self.edges
        if x.dtype == np.float32:
            keys = floor_float32(keys)
        codes = np.searchsorted(keys, x, side="left").astype(code_dtype(self.n_codes))
        codes += codes.dtype.type(1)
        missing = np.isnan(x)
        if missing.any():
            codes[missing] = MISSING
        return codes


@dataclass(frozen=True, slots=True)
class Book:
    """The codes of all columns in flat arrays: code c of column f stands at ``offset[f] + c``.

    ``values`` f8 (missing as -inf), ``edges`` f8 with the edge behind each quantile code (NaN behind exact ones);
    offset i8, exact bool, kind u1 and declared i8 (F,), the number of declared categories.
    """

    values: NDArray[np.float64]
    edges: NDArray[np.float64]
    offset: NDArray[np.int64]
    exact: NDArray[np.bool_]
    kind: NDArray[np.uint8]
    declared: NDArray[np.int64]

    @classmethod
    def of(cls, cuts: tuple[Cuts, ...]) -> Book:
        """Lay the codes of all columns side by side."""
        sizes = np.array([c.n_codes + 1 for c in cuts], np.int64)
        edges = [np.full(c.n_codes + 1, np.nan) for c in cuts]
        for mine, cut in zip(edges, cuts, strict=True):
            if cut.edges is not None:
                mine[1:-1] = cut.edges
        return cls(
            np.concatenate([np.zeros(0), *(np.append(-np.inf, c.values) for c in cuts)]),
            np.concatenate([np.zeros(0), *edges]),
            np.cumsum(sizes) - sizes,
            np.array([c.edges is None for c in cuts], bool),
            np.array([c.kind for c in cuts], np.uint8),
            np.array([c.n_codes * c.declared for c in cuts], np.int64),
        )

    def thresholds(self, feature: NDArray[Any], cut: NDArray[Any], follow: NDArray[Any]) -> NDArray[np.float64]:
        """Raw thresholds between the last code to the left and the next code present, i (k,) each -> f8 (k,)."""
        base = self.offset[feature]
        middle = self.edges[base + (cut + follow - 1) // 2]  # the middle edge of an empty run of codes
        return np.where(self.exact[feature], midpoint(self.values[base + cut], self.values[base + follow]), middle)


def category_cuts(feature: Feature) -> Cuts:
    """The codes of a column of categories, which are numbered in order."""
    numbers = np.arange(len(feature.categories), dtype=np.float64)
    return Cuts(numbers, kind=Kind.CATEGORICAL, declared=feature.declared)


def floor_float32(x: NDArray[np.float64]) -> NDArray[np.float32]:
    """Round down to float32: for a float32 value v, v <= x in float64 exactly when v <= floor_float32(x)."""
    with np.errstate(over="ignore"):
        y = x.astype(np.float32)
        return np.where(y > x, np.nextafter(y, np.float32(-np.inf)), y)


def midpoint(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cut between neighbours a < b: a/2 + b/2 without overflow, and a itself where that is not in [a, b)."""
    with np.errstate(invalid="ignore"):
        t = a / 2 + b / 2
        return np.where((t >= a) & (t < b), t, a)


def code_dtype(n_codes: int) -> np.dtype[Any]:
    """Smallest unsigned type that holds MISSING and n_codes known codes."""
    return np.dtype(np.uint8 if n_codes <= BYTE_CODES else np.uint16 if n_codes <= MAX_CODES else np.uint32)


def numeric_cuts(column: NDArray[Any], weight: NDArray[np.int64] | None, max_codes: int | None) -> Cuts:
    """Exact codes where the distinct values fit, else at most max_codes weighted quantile codes.

    column f4/f8 (n,) without weight-0 rows, NaN = missing; weight i8 (n,) or None for ones. ``max_codes=None`` is the
    automatic choice: exact up to 255 distinct values, and up to 65,535 in a table of as many rows; else 255.
    """
    if weight is None:
        return sorted_cuts(np.sort(column), None, max_codes)
    order = np.argsort(column, kind="stable")
    return sorted_cuts(column[order], weight[order], max_codes)


def sorted_cuts(ordered: NDArray[Any], weight: NDArray[np.int64] | None, max_codes: int | None) -> Cuts:
    """`numeric_cuts` of a sorted column f4/f8 (n,), NaN last, and the weights in its order."""
    limit = max_codes if max_codes is not None else (MAX_CODES if ordered.size <= EXACT_ROWS else BYTE_CODES)
    ordered = ordered[: np.searchsorted(ordered, np.nan, side="left")]
    first = run_starts(ordered)
    distinct = ordered[first].astype(np.float64) + 0.0  # -0.0 and 0.0 are one value
    if distinct.size <= limit:
        return Cuts(distinct)
    ends = np.append(first[1:], ordered.size).astype(np.int64)
    return quantile_cuts(distinct, ends if weight is None else np.cumsum(weight)[ends - 1], limit)


def run_starts(ordered: NDArray[Any]) -> NDArray[np.intp]:
    """Positions where a new value begins in a sorted array."""
    if ordered.size == 0:
        return np.zeros(0, np.intp)
    return np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1])


def quantile_cuts(distinct: NDArray[np.float64], ends: NDArray[np.int64], n_codes: int) -> Cuts:
    """Quantile codes: a value that weighs a share by itself has its own code, the others share what is left equally.

    distinct f8 (v,) sorted; ends i8 (v,) cumulated weights; v > n_codes >= 2. Each code takes the fewest next values
    that reach an equal share, so a spike does not use up the resolution of the rest.
    """
    own = np.diff(ends, prepend=0)
    heavy = heavy_values(own, n_codes)
    own[heavy] = 0
    light = np.cumsum(own).data  # a memory view: plain ints without a copy, where bisect is ten times as fast
    spikes: list[int] = [*heavy.tolist(), distinct.size]
    last: list[int] = []  # index of the last value of each code
    start = spike = 0
    while start < distinct.size:
        left = n_codes - len(last)
        shared = left - (len(spikes) - 1 - spike)  # codes for light values
        stop = spikes[spike]  # no light code left: the run joins the next spike
        if left == 1:
            stop = distinct.size - 1
        elif start < stop and shared >= 1:
            before = light[start - 1] if start else 0
            share = -(-(light[-1] - before) // shared)
            stop = min(bisect_left(light, before + share, start), stop - 1)
        spike += stop == spikes[spike]
        last.append(stop)
        start = stop + 1
    upper = np.array(last, np.intp)
    lower = np.concatenate([[0], upper[:-1] + 1])
    edges = midpoint(distinct[upper[:-1]], distinct[upper[:-1] + 1])
    centres = midpoint(distinct[lower], distinct[upper])
    return Cuts(np.where(lower == upper, distinct[lower], centres), edges)


def heavy_values(weight: NDArray[np.int64], n_codes: int) -> NDArray[np.intp]:
    """Values whose weight i8 (v,) is at least an equal share of what the others leave to the other codes.

    Taking out values that weigh a share or more leaves a smaller one, so what was heavy stays so.
    """
    heavy, total = np.zeros(0, np.intp), int(weight.sum())
    while heavy.size < n_codes - 1:
        share = -(-(total - int(weight[heavy].sum())) // (n_codes - heavy.size))
        more = np.flatnonzero(weight >= max(share, 2))  # a weight of 1 is never a spike
        if more.size == heavy.size:
            break
        heavy = more
    return heavy


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table, in order."""

    features: tuple[Feature, ...]

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.features)

    @property
    def kinds(self) -> NDArray[np.uint8]:
        """Kind of every column, u1 (F,)."""
        return np.array([f.kind for f in self.features], np.uint8)

    @property
    def names(self) -> list[str]:
        """Name of every column."""
        return [f.name for f in self.features]
