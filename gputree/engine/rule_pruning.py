"""Paths of a tree become rules of their own: conditions that do not help are dropped. May import core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gputree.core.conditions import Condition, Interval
from gputree.core.schema import Feature
from gputree.engine.independence import independence
from gputree.engine.pruning.errors import c45_errors

LEAST_EXPECTED = 5.0  # of a cell, for the chi-square distribution to be near enough

Bits = NDArray[np.uint64]  # rows of a table, 64 a word


def as_bits(rows: NDArray[np.bool_]) -> Bits:
    """Rows (n,) that are True, as bits; those beyond the last are False."""
    padded = np.zeros(-(-rows.size // 64) * 64, bool)
    padded[: rows.size] = rows
    return np.packbits(padded).view(np.uint64)


def size(bits: Bits) -> NDArray[np.int64]:
    """How many rows are in sets (..., words)."""
    counts: NDArray[np.int64] = np.bitwise_count(bits).sum(axis=-1, dtype=np.int64)
    return counts


@dataclass(frozen=True, slots=True)
class RuleCases:
    """The training rows: values f4/f8 (n, F), the columns, class numbers i4 (n,) and how many classes there are."""

    X: NDArray[Any]
    features: tuple[Feature, ...]
    label: NDArray[np.int32]
    n_classes: int

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.label.size

    def classes(self) -> Bits:
        """The rows of each class (n_classes, words)."""
        return np.stack([as_bits(self.label == c) for c in range(self.n_classes)])

    def counts(self, rows: Bits | None = None) -> NDArray[np.int64]:
        """How many of some rows, or of all, are of each class (n_classes,)."""
        label = self.label if rows is None else self.label[np.unpackbits(rows.view(np.uint8), count=self.n) > 0]
        return np.bincount(label, minlength=self.n_classes)

    def default_errors(self) -> NDArray[np.float64]:
        """What a rule for each class must do better than: the error of guessing it (n_classes,)."""
        return 1.0 - (self.counts() + 1) / (self.n + 2)

    def meeting(self, condition: Condition) -> Bits:
        """The rows that meet a condition; missing values meet none."""
        names = [feature.name for feature in self.features]
        column = names.index(condition.name)
        x = self.X[:, column].astype(np.float64, copy=False)
        return as_bits(~np.isnan(x) & holds(condition, x, self.features[column]))


def holds(condition: Condition, x: NDArray[np.float64], feature: Feature) -> NDArray[np.bool_]:
    """Whether known values f8 (n,) meet a condition."""
    if isinstance(condition, Interval):
        above = np.ones(x.size, bool) if condition.low is None else x > condition.low
        return above if condition.high is None else above & (x <= condition.high)
    named = np.isin(x, [feature.categories.index(value) for value in condition.values])
    met: NDArray[np.bool_] = named != condition.others
    return met


class Simplifier(Protocol):
    """Says which condition of a rule to drop."""

    def weakest(self, n: NDArray[np.int64], wrong: NDArray[np.int64], empty: float) -> int | None:
        """The condition to drop, None if all are to stay.

        Parameters
        ----------
        n, wrong : int64 array (d + 1,)
            Rows, and rows of other classes, that meet all conditions, and all but each of the d.
        empty : float
            The error of a rule that no row meets.
        """


def pessimistic_errors(
    n: NDArray[np.int64], wrong: NDArray[np.int64], confidence: float, empty: float
) -> NDArray[np.float64]:
    """Upper limits of the error rates of rules (k,); ``empty`` for those that no row meets."""
    cases = np.maximum(n, 1).astype(np.float64)
    errors = np.minimum(wrong, cases).astype(np.float64)
    rates = (errors + c45_errors(cases, errors, confidence)) / cases
    return np.where(n > 0, rates, empty)


@dataclass(frozen=True, slots=True)
class Pessimistic:
    """Drop a condition whose absence does not raise the pessimistic, or the plain, error rate.

    ``alpha``: also one that Fisher's exact test does not find to raise the share of the class; None: no such test.

    References
    ----------
    Quinlan (1993), "C4.5: Programs for Machine Learning", section 5.1.
    """

    confidence: float
    alpha: float | None = None

    def weakest(self, n: NDArray[np.int64], wrong: NDArray[np.int64], empty: float) -> int | None:
        """Of the conditions that may go, the one whose absence leaves the lowest error, the last among equals."""
        limit = pessimistic_errors(n, wrong, self.confidence, empty)
        with np.errstate(invalid="ignore"):
            rate = wrong / n
        may_go = (limit[1:] <= limit[0]) | (rate[1:] <= rate[0])
        if self.alpha is not None:
            may_go |= np.array([fisher(table, "greater") > self.alpha for table in tables(n, wrong)], bool)
        if not may_go.any():
            return None
        left = np.where(may_go, limit[1:], np.inf)[::-1]
        return left.size - 1 - int(left.argmin())


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """Drop the condition that depends least on the class, while one is not significant.

    References
    ----------
    Quinlan (1987), "Simplifying decision trees", International Journal of Man-Machine Studies 27:221-234.
    """

    alpha: float

    def weakest(self, n: NDArray[np.int64], wrong: NDArray[np.int64], empty: float) -> int | None:
        """The condition of the largest p-value, the last among equals."""
        p = np.array([dependence(table) for table in tables(n, wrong)])[::-1]
        return p.size - 1 - int(p.argmax()) if p.max() > self.alpha else None


def tables(n: NDArray[np.int64], wrong: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Rows that meet all conditions but one: whether that holds (rows), and whether the class is right (columns)."""
    right = n - wrong
    inside, outside = [right[0], wrong[0]], np.stack([right[1:] - right[0], wrong[1:] - wrong[0]], axis=1)
    return [np.array([inside, row]) for row in outside]


def fisher(table: NDArray[np.int64], alternative: str) -> float:
    """p-value of Fisher's exact test of a table (2, 2)."""
    from scipy.stats import fisher_exact  # takes half a second to import

    return float(fisher_exact(table, alternative).pvalue)


def dependence(table: NDArray[np.int64]) -> float:
    """p-value of a table (2, 2): of chi-square without a correction, of Fisher's test where an expected count is small.

    1 where a row or column is empty.
    """
    rows, columns, total = table.sum(axis=1), table.sum(axis=0), table.sum()
    if not rows.all() or not columns.all():
        return 1.0
    expected = np.outer(rows, columns) / total
    if expected.min() < LEAST_EXPECTED:
        return fisher(table, "two-sided")
    return float(independence(table.T.astype(np.float64), np.array([0]))[2][0])


def without_each(conditions: Bits, every: Bits) -> Bits:
    """Of some rows (words,), those that meet all of d conditions (d, words), and all but each: (d + 1, words)."""
    d = len(conditions)
    ahead = np.tile(every, (d + 1, 1))  # those before i
    behind = ahead.copy()  # those after i
    for i in range(d):
        ahead[i + 1] = ahead[i] & conditions[i]
        behind[d - 1 - i] = behind[d - i] & conditions[d - 1 - i]
    return np.concatenate([ahead[d:], ahead[:d] & behind[1:]])


def kept_conditions(
    conditions: Sequence[Bits], own: Bits, others: Bits, simplifier: Simplifier, empty: float
) -> list[int]:
    """The conditions of a rule that stay.

    Parameters
    ----------
    conditions : sequence of bits (words,)
        The rows that meet each of them.
    own, others : bits (words,)
        The rows of the class, and those of all others.
    simplifier : Simplifier
        Says what to drop.
    empty : float
        The error of a rule that no row meets.
    """
    kept = list(range(len(conditions)))
    while kept:
        met = without_each(np.stack([conditions[i] for i in kept]), own | others)
        weakest = simplifier.weakest(size(met), size(met & others), empty)
        if weakest is None:
            break
        del kept[weakest]
    return kept
