"""CART in plain exact arithmetic: gains, a tree grown by recursion, and the best tests of a large node.

y and w are floats, hence whole multiples of a power of two: as integers their sums are exact, and a gain is an exact
fraction (Gini, squared error) or known to 60 digits (entropy, Poisson). Gains are in these integer units; a common
factor changes no comparison.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Gain = Fraction | decimal.Decimal

DIGITS = decimal.Context(prec=60)
GRID = Fraction(1, 2**40)  # scores are compared on a grid of this size relative to a power of two
SAME = Fraction(1, 10**40)  # logarithms known to 60 digits are equal when the first 40 agree
WEIGHT_BITS = 41  # weights whose sum needs no more bits are surely kept; others may be rounded
BAND = 1e-9  # see `best_cuts`
COUNTS = frozenset({"gini", "entropy"})


class Side(NamedTuple):
    """Weight and channel sums of a set of rows, as integers."""

    weight: int
    sums: tuple[int, ...]


class Cut(NamedTuple):
    """A test ``x[feature] <= threshold``; threshold inf asks "known or missing"."""

    feature: int
    threshold: float
    missing_left: bool

    def __str__(self) -> str:
        side = "left" if self.missing_left else "right"
        return f"x[{self.feature}] <= {self.threshold!r} ({self.threshold.hex()}), missing {side}"

    def goes_left(self, X: NDArray[Any], rows: Rows) -> NDArray[np.bool_]:
        x = X[rows, self.feature].astype(np.float64)
        return np.where(np.isnan(x), self.missing_left, x <= self.threshold)


@dataclass(frozen=True)
class Limits:
    """What a split must respect; ``min_samples_*`` count rows of positive weight."""

    max_depth: float = math.inf
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_leaf: float = 0.0


def whole(a: NDArray[Any]) -> NDArray[Any]:
    """The values times the least power of two that makes all of them integers, exactly (object dtype)."""
    a = np.asarray(a, np.float64)
    while not np.array_equal(np.floor(a), a):
        a = a * 2.0
    return np.array([int(v) for v in a.ravel()], dtype=object).reshape(a.shape)


def compact(a: NDArray[Any]) -> NDArray[Any]:
    """Integers as int64 where no sum over rows can overflow, which is much faster."""
    return a.astype(np.int64) if int(np.abs(a).sum()) < 2**62 else a


def one_hot(y: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([(c[:, None] == np.unique(c)).astype(np.int64) for c in y.T], axis=1)


@lru_cache(maxsize=200_000)
def ln(k: int) -> decimal.Decimal:
    return DIGITS.ln(decimal.Decimal(k))


class Exact:
    """Exact gains over the rows of one table; y (n,) or (n, O), w (n,) or None."""

    def __init__(self, y: NDArray[Any], w: Floats | None, criterion: str) -> None:
        self.y = np.asarray(y).reshape(len(y), -1)
        self.w = np.ones(len(y)) if w is None else np.asarray(w, np.float64)
        self.criterion, self.n_outputs = {"log_loss": "entropy"}.get(criterion, criterion), self.y.shape[1]
        self.rows = np.flatnonzero(self.w > 0)
        weight = whole(self.w)
        channels = one_hot(self.y) if self.criterion in COUNTS else whole(self.y)
        self.weight, self.sums = compact(weight), compact(compact(channels) * weight[:, None])
        self.rounded = int(weight.sum()).bit_length() > WEIGHT_BITS

    def side(self, rows: Rows) -> Side:
        return Side(int(self.weight[rows].sum()), tuple(int(s) for s in self.sums[rows].sum(axis=0)))

    def sides(self, X: NDArray[Any], rows: Rows, cut: Cut) -> tuple[Side, Side]:
        left = cut.goes_left(X, rows)
        return self.side(rows[left]), self.side(rows[~left])

    def admissible(self, side: Side) -> bool:
        """Whether a branch may look so: Poisson refuses a mean of zero."""
        return side.weight > 0 and (self.criterion != "poisson" or min(side.sums) > 0)

    def term(self, side: Side) -> Gain:
        """What one branch adds to a gain."""
        n, sums = side
        if self.criterion in ("gini", "squared_error"):
            return Fraction(sum(s * s for s in sums), n)
        with decimal.localcontext(DIGITS):
            if self.criterion == "poisson":
                return sum((s * (ln(s) - ln(n)) for s in sums if s), decimal.Decimal(0))
            return sum((s * ln(s) for s in sums if s), -self.n_outputs * n * ln(n))

    def gain(self, left: Side, right: Side, parent: Side) -> Gain:
        with decimal.localcontext(DIGITS):
            return self.term(left) + self.term(right) - self.term(parent)  # type: ignore[operator]

    def scale(self, parent: Side) -> Fraction:
        """The size of what cancels in a score; sums for squared error are re-centred, so nothing cancels there."""
        n, sums = parent
        if self.criterion == "gini":
            return Fraction(n * self.n_outputs)
        if self.criterion in COUNTS:
            return Fraction(n * math.log(n) * self.n_outputs)
        if self.criterion == "poisson":
            return sum((Fraction(s * (1 + abs(math.log(s / n)))) for s in sums if s), Fraction(0))
        return Fraction(0)

    def equal(self, a: Gain, b: Gain, parent: Side) -> bool:
        """Equal as real numbers; logarithms to 40 of their 60 digits."""
        if isinstance(a, Fraction):
            return a == b
        return abs(Fraction(a) - Fraction(b)) <= SAME * max(self.scale(parent), abs(Fraction(a)))

    def score(self, left: Side, right: Side, parent: Side) -> Fraction:
        """The exact gain on the grid of the tie rule."""
        gain = Fraction(self.gain(left, right, parent))
        if abs(gain) <= SAME * max(self.scale(parent), Fraction(1)):
            return Fraction(0)
        size = max(abs(gain), self.scale(parent))
        step = GRID * Fraction(2) ** math.ceil(math.log2(size))
        return round(gain / step) * step

    def pure(self, rows: Rows) -> bool:
        return bool((self.y[rows] == self.y[rows[0]]).all())


def midpoint(a: float, b: float) -> float:
    """The threshold between two neighbouring values."""
    t = a / 2 + b / 2
    return t if a <= t < b else a


def cuts(X: NDArray[Any], rows: Rows, feature: int) -> Iterator[Cut]:
    """Every test of one feature, in the order of the tie rule: missing to the right first, then the lowest cut."""
    x = X[rows, feature].astype(np.float64)
    values = [float(v) for v in np.unique(x[~np.isnan(x)])]
    thresholds = [midpoint(a, b) for a, b in pairwise(values)]
    yield from (Cut(feature, t, False) for t in thresholds)
    if np.isnan(x).any() and values:
        yield Cut(feature, math.inf, False)
        yield from (Cut(feature, t, True) for t in thresholds)


@dataclass
class Node:
    """A node of the recursion; ``kids`` is empty in a leaf."""

    rows: Rows
    side: Side
    cut: Cut | None = None
    kids: list[Node] = field(default_factory=list)


def grow(X: NDArray[Any], exact: Exact, limits: Limits, rows: Rows | None = None, depth: int = 0) -> Node:
    """The tree, depth first: the best cut of the node, then the same for either side."""
    rows = exact.rows if rows is None else rows
    node = Node(rows, exact.side(rows))
    if depth < limits.max_depth and len(rows) >= limits.min_samples_split and not exact.pure(rows):
        node.cut = best(X, exact, limits, rows)
    if node.cut is not None:
        left = node.cut.goes_left(X, rows)
        node.kids = [grow(X, exact, limits, side, depth + 1) for side in (rows[left], rows[~left])]
        known = not np.isnan(X[rows, node.cut.feature]).any()
        node.cut = (
            node.cut._replace(missing_left=bool(2 * exact.w[rows[left]].sum() >= exact.w[rows].sum()))
            if known
            else node.cut
        )
    return node


def best(X: NDArray[Any], exact: Exact, limits: Limits, rows: Rows) -> Cut | None:
    """The first of the best cuts: features ascending, then the order of `cuts`."""
    parent, found, record = exact.side(rows), None, None
    for cut in (c for f in range(X.shape[1]) for c in cuts(X, rows, f)):
        left = cut.goes_left(X, rows)
        if not allowed(exact, limits, rows[left], rows[~left]):
            continue
        score = exact.score(exact.side(rows[left]), exact.side(rows[~left]), parent)
        if record is None or score > record:
            found, record = cut, score
    return found


def allowed(exact: Exact, limits: Limits, left: Rows, right: Rows) -> bool:
    return (
        min(len(left), len(right)) >= max(1, limits.min_samples_leaf)
        and min(exact.w[left].sum(), exact.w[right].sum()) >= limits.min_weight_leaf
        and exact.admissible(exact.side(left))
        and exact.admissible(exact.side(right))
    )


def breadth_first(root: Node) -> list[Node]:
    """Nodes in the order in which the library numbers them."""
    order = [root]
    for node in order:  # grows while it is read
        order.extend(node.kids)
    return order


def channels(exact: Exact, rows: Rows) -> Floats:
    """Weight, rows and sums in float64, sums for squared error about the mean of the node; (n, 2 + C)."""
    w = exact.w[rows]
    if exact.criterion in COUNTS:
        sums = (exact.sums[rows] > 0) * w[:, None]
    else:
        y = exact.y[rows].astype(np.float64)
        sums = (y - (w @ y / w.sum() if exact.criterion == "squared_error" else 0.0)) * w[:, None]
    return np.column_stack([w, np.ones(len(rows)), sums]).astype(np.float64)


def float_term(exact: Exact, side: Floats) -> Floats:
    """`Exact.term` in float64, without the integer units; -inf where a side is refused."""
    n, sums = side[:, :1], side[:, 2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        if exact.criterion in ("gini", "squared_error"):
            return np.asarray((sums * sums / n).sum(1))
        logs = np.where(sums > 0, sums * np.log(sums / n), 0.0).sum(1)
        refused = (exact.criterion == "poisson") & (sums <= 0).any(1)
        return np.where(refused, -np.inf, logs)


def screen(exact: Exact, limits: Limits, x: Floats, table: Floats) -> tuple[Floats, Floats]:
    """Float64 gains of all tests of one feature in the order of `cuts`; thresholds, minus 0 or 1 for missing left."""
    known = ~np.isnan(x)
    order = np.argsort(x[known], kind="stable")
    values, left = x[known][order], np.cumsum(table[known][order], axis=0)
    missing, total = table[~known].sum(0), table.sum(0)
    ends = np.flatnonzero(values[1:] > values[:-1])
    sides, places = [left[ends]], [ends]
    if len(values) < len(x) and len(values):
        sides += [left[-1:], left[ends] + missing]
        places += [np.array([len(values) - 1]), ends + len(values)]
    a = np.concatenate(sides)
    b = total - a
    fits = np.minimum(a[:, 1], b[:, 1]) >= limits.min_samples_leaf
    fits &= np.minimum(a[:, 0], b[:, 0]) >= limits.min_weight_leaf * (1 - 1e-9)
    gain = float_term(exact, a) + float_term(exact, b) - float_term(exact, total[None])
    return np.where(fits, gain, -np.inf), np.concatenate(places)


def place_to_cut(x: Floats, feature: int, place: int) -> Cut:
    """The test behind a place of `screen`."""
    values = np.sort(x[~np.isnan(x)])
    side, end = divmod(place, max(1, len(values)))
    high = values[end + 1] if end + 1 < len(values) else None
    return Cut(feature, math.inf if high is None else midpoint(float(values[end]), float(high)), side == 1)


def best_cuts(X: NDArray[Any], exact: Exact, limits: Limits, rows: Rows) -> list[tuple[Cut, Gain]]:
    """The tests that may be the best of a node, with exact gains, in the order of the tie rule.

    All tests are scored in float64 first. A sum of n terms errs by n * 2**-53 of their magnitudes at most, 1e-11 for a
    table of 100,000 rows, and a gain is a few such sums: none that falls short of the best by `BAND` of the magnitudes
    can be the best in truth. Only the others are scored exactly.
    """
    table = channels(exact, rows)
    columns = [X[rows, f].astype(np.float64) for f in range(X.shape[1])]
    found = [screen(exact, limits, x, table) for x in columns]
    top = max((float(gain.max(initial=-np.inf)) for gain, _ in found), default=-np.inf)
    if top == -np.inf:
        return []
    size = max(abs(float(float_term(exact, table.sum(0)[None])[0])), top)
    likely = [
        place_to_cut(columns[f], f, int(place))
        for f, (gain, places) in enumerate(found)
        for place in places[gain >= top - BAND * size]
    ]
    parent = exact.side(rows)
    scored = [(cut, exact.sides(X, rows, cut)) for cut in likely if fits(X, exact, limits, rows, cut)]
    return [(cut, exact.gain(*sides, parent)) for cut, sides in scored]


def fits(X: NDArray[Any], exact: Exact, limits: Limits, rows: Rows, cut: Cut) -> bool:
    left = cut.goes_left(X, rows)
    return allowed(exact, limits, rows[left], rows[~left])
