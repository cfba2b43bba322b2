"""Every split criterion, once.

A criterion is five scalar functions and a fold:

    value = branch(fold over an output's channels of term(x, n, X, N), n, N)
    gain  = sum over outputs of [sum over branches of value - value of the parent]
    info  = sum over branches of info(n, N)
    score = final(gain, info, N)

x is a channel's total in a branch and n the branch's weight; X and N are the node's. The functions run on NumPy arrays
(`gputree.core.scores`), and `gputree.core.texts` traces them into text for the kernels. May import NumPy and
`gputree.core.expr`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from gputree.core.expr import FloatArray, Scalar, absolute, constant, log2, ratio, xlogx

_LN2 = 0.6931471805599453


class Fold(Enum):
    """How the terms of an output's channels become one number, starting from 0."""

    SUM = "sum"
    MAX = "max"


class TargetKind(Enum):
    """The statistics that a criterion reads."""

    COUNTS = "counts"  # a channel per class: its weight
    RAW_SUMS = "raw sums"  # one channel: the sum of w * y
    CENTRED_SUMS = "centred sums"  # one channel: the sum of w * (y - the node's mean)


@dataclass(frozen=True)
class Criterion(ABC):
    """A split criterion; see the head of the module for the meaning of its functions.

    `term`, `branch`, `info`, `final`, `decrease` and `scale` take arrays or `Expr`; `impurity` and `loss` serve reports
    and take arrays only.

    Attributes
    ----------
    name : str
        Public name.
    fold : Fold
        How the channels' terms are joined.
    needs : TargetKind
        The statistics that `term` expects.
    two_branches : bool
        Whether the formula holds for binary splits only.
    positive_sums : bool
        Whether a branch whose sum is 0 is refused.
    unit : float
        Factor from gain / N to the unit of `impurity`.
    traced : bool
        Whether the functions are formulas of a few numbers, which kernels can compute; all others are scored on the
        host, from tables that a device has counted.
    """

    name: ClassVar[str]
    fold: ClassVar[Fold] = Fold.SUM
    needs: ClassVar[TargetKind] = TargetKind.COUNTS
    two_branches: ClassVar[bool] = False
    positive_sums: ClassVar[bool] = False
    unit: ClassVar[float] = 1.0
    traced: ClassVar[bool] = True

    @abstractmethod
    def term(self, x: Scalar, n: Scalar, X: Scalar, N: Scalar) -> Scalar:
        """Return what one channel of one branch adds to the fold."""

    @abstractmethod
    def branch(self, s: Scalar, n: Scalar, N: Scalar) -> Scalar:
        """Return the value of a branch whose terms folded to s."""

    def value(self, x: FloatArray, n: FloatArray, X: FloatArray, N: FloatArray) -> FloatArray:
        """Return the values of branches from one output's channels, f8 (C, M) -> (M,)."""
        return self.branch(fold(self.fold, self.term(x, n, X, N)), n, N)

    def info(self, n: Scalar, N: Scalar) -> Scalar:
        """Return what a branch adds to the information of the split itself."""
        return constant(0.0, n)

    def charge(self, branches: FloatArray, tests: FloatArray, classes: int) -> FloatArray:
        """Return what tests cost that have some branches and were chosen among some; it is taken from the score.

        Only of criteria that are not traced; the search of the others knows no such cost.
        """
        return np.zeros(np.shape(branches))

    def cuts_tried(self, cuts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return how many cuts of a column, equally spaced among so many, are tried; as `charge`."""
        return cuts

    def final(self, gain: Scalar, info: Scalar, N: Scalar) -> Scalar:
        """Return the score."""
        return gain

    def decrease(self, gain: Scalar, N: Scalar) -> Scalar:
        """Return the gain in the unit of a total: what adds up over the splits of a tree."""
        return gain

    @abstractmethod
    def scale(self, N: Scalar, X: Scalar) -> Scalar:
        """Return the size of what cancels in the score, for `grid`; add it over outputs, as the gain.

        X is the output's only channel where `needs` names sums, any channel otherwise.
        """

    def gain_scale(self, N: Scalar, X: Scalar) -> Scalar:
        """Return the same for the gain before `final`."""
        return self.scale(N, X)

    def impurity(self, X: FloatArray, N: FloatArray) -> FloatArray:
        """Return the impurity of nodes as users see it, from counts: Gini's for criteria that have none.

        Parameters
        ----------
        X : float64 array (C, nodes)
            Label counts of one output.
        N : float64 array (nodes,)
            Weights.

        Returns
        -------
        float64 array (nodes,)
        """
        return _mean(N - ratio(fold(Fold.SUM, X * X), N), N)

    def loss(self, d: FloatArray, v: FloatArray) -> FloatArray:
        """Return the loss of predicting v where v + d is true; its mean about the mean is the impurity."""
        raise TypeError(f"{self.name!r} reads counts and has no loss; its impurity comes from `impurity`")


@dataclass(frozen=True)
class Gini(Criterion):
    """Decrease of the Gini impurity 1 - sum of p^2, times N.

    References
    ----------
    Breiman, Friedman, Olshen, Stone (1984), "Classification and Regression Trees", 4.3. Shalev-Shwartz, Ben-David
    (2014), "Understanding Machine Learning", 18.2.1. Raschka, STAT 479 chapter 6, 6.9.
    """

    name = "gini"

    def term(self, x: Scalar, n: Scalar, X: Scalar, N: Scalar) -> Scalar:
        return x * x

    def branch(self, s: Scalar, n: Scalar, N: Scalar) -> Scalar:
        return ratio(s, n)

    def scale(self, N: Scalar, X: Scalar) -> Scalar:
        return N


@dataclass(frozen=True)
class Entropy(Criterion):
    """Information gain in bits, times N.

    ``base`` is that of the logarithm in `impurity`: another multiplies all gains by one factor, and so moves no choice.

    References
    ----------
    Quinlan (1986), "Induction of decision trees", Machine Learning 1:81-106. Raschka, STAT 479 chapter 6, 6.6.
    Procaccia, lecture 16. Nilsson, "Introduction to Machine Learning", 6.2.2.
    """

    name = "entropy"
    base: float = 2.0

    def term(self, x: Scalar, n: Scalar, X: Scalar, N: Scalar) -> Scalar:
        return xlogx(x)

    def branch(self, s: Scalar, n: Scalar, N: Scalar) -> Scalar:
        return s - xlogx(n)

    def scale(self, N: Scalar, X: Scalar) -> Scalar:
        return xlogx(N)

    def impurity(self, X: FloatArray, N: FloatArray) -> FloatArray:
        return _mean(xlogx(N) - fold(Fold.SUM, xlogx(X)), N) / float(np.log2(self.base))


@dataclass(frozen=True)
class GainRatio(Entropy):
    """Information gain over the entropy of the branch weights.

    References
    ----------
    Quinlan (1993), "C4.5: Programs for Machine Learning", 2.2. Raschka, STAT 479 chapter 6, 6.10.1.
    """

    name = "gain_ratio"

    def info(self, n: Scalar, N: Scalar) -> Scalar:
        return xlogx(n)

    def final(self, gain: Scalar, info: Scalar, N: Scalar) -> Scalar:
        return ratio(gain, xlogx(N) - info)

    def scale(self, N: Scalar, X: Scalar) -> Scalar:
        return constant(1.0, N)

    def gain_scale(self, N: Scalar, X: Scalar) -> Scalar:
        return super().scale(N, X)


@dataclass(frozen=True)
class TrainError(Criterion):
    """Decrease of the error of the majority vote, times N; the children's majorities less the parent's.

    References
    ----------
    Shalev-Shwartz, Ben-David (2014), 18.2.1. Raschka, STAT 479 chapter 6, 6.8.
    """

    name = "train_error"
    fold = Fold.MAX

    def term(self, x: Scalar, n: Scalar, X: Scalar, N: Scalar) -> Scalar:
        return x

    def branch(self, s: Scalar, n: Scalar, N: Scalar) -> Scalar:
        return s

    def scale(self, N: Scalar, X: Scalar) -> Scalar:
        return N

    def impurity(self, X: FloatArray, N: FloatArray) -> FloatArray:
        return _mean(N - fold(Fold.MAX, X), N)


@dataclass(frozen=True)
class Twoing(Criterion):
    """(pL pR / 4) (sum over classes of |p(j|L) - p(j|R)|)^2, times N.

    Both branches compute the same sum of differences, so each gives half the value (hence the 8); the parent's is 0.

    References
    ----------
    Breiman, Friedman, Olshen, Stone (1984), 4.3.2 and 11.8. Raschka, STAT 479 chapter 6, 6.5.4.
    """

    name = "twoing"
    two_branches = True

    def term(self, x: Scalar, n: Scalar, X: Scalar, N: Scalar) -> Scalar:
        return absolute(ratio(x, n) - ratio(X - x, N - n))

    def branch(self, s: Scalar, n: Scalar, N: Scalar) -> Scalar:
        return ratio(n * (N - n), N) * s * s / 8.0

    def scale(self, N: Scalar, X: Scalar) -> Scalar:
        return N


@dataclass(frozen=True)
class ChiSquare(Criterion):
    """Pearson's statistic of the table branches x classes: N (sum of x^2 / (X n) - 1).

    References
    ----------
    Kass (1980), "An exploratory technique for investigating large quantities of categorical data", Applied
    Statistics 29:119-127.
    """

    name = "chi2"

    def term(self, x: Scalar, n: Scalar, X: Scalar, N: Scalar) -> Scalar:
        return ratio(x * x, X)

    def branch(self, s: Scalar, n: Scalar, N: Scalar) -> Scalar:
        return ratio(s, n)

    def final(self, gain: Scalar, info: Scalar, N: Scalar) -> Scalar:
        return gain * N

    def decrease(self, gain: Scalar, N: Scalar) -> Scalar:
        return gain * N

    def scale(self, N: Scalar, X: Scalar) -> Scalar:
        return N  # what cancels in the gain is the parent's value, 1, and `final` multiplies the gain by N


@dataclass(frozen=True)
class SquaredError(Criterion):
    """Decrease of the sum of squared errors about the mean.

    The sums are centred on the node's mean before they become float64: nothing large cancels, so the scale is 0.

    References
    ----------
    Breiman, Friedman, Olshen, Stone (1984), 8.3. Raschka, STAT 479 chapter 6, 6.12.
    """

    name = "squared_error"
    needs = TargetKind.CENTRED_SUMS

    def term(self, x: Scalar, n: Scalar, X: Scalar, N: Scalar) -> Scalar:
        return x * x

    def branch(self, s: Scalar, n: Scalar, N: Scalar) -> Scalar:
        return ratio(s, n)

    def scale(self, N: Scalar, X: Scalar) -> Scalar:
        return constant(0.0, N)

    def loss(self, d: FloatArray, v: FloatArray) -> FloatArray:
        return d * d


@dataclass(frozen=True)
class Poisson(Criterion):
    """Decrease of half the Poisson deviance: sum over branches of x log(x / n), in base 2 here, in nats to users.

    References
    ----------
    McCullagh, Nelder (1989), "Generalized Linear Models", 2.3. Therneau, Atkinson, "An introduction to recursive
    partitioning using the rpart routines", section 8.
    """

    name = "poisson"
    needs = TargetKind.RAW_SUMS
    positive_sums = True
    unit = _LN2

    def term(self, x: Scalar, n: Scalar, X: Scalar, N: Scalar) -> Scalar:
        return x * log2(ratio(x, n))  # log2(0) is finite: 0 at x = 0

    def branch(self, s: Scalar, n: Scalar, N: Scalar) -> Scalar:
        return s

    def scale(self, N: Scalar, X: Scalar) -> Scalar:
        return X + absolute(X * log2(ratio(X, N)))

    def loss(self, d: FloatArray, v: FloatArray) -> FloatArray:
        y = np.maximum(v + d, 0.0)
        far = np.maximum(_LN2 * (y * (log2(y) - log2(v))) - d, 0.0)
        t = np.asarray(ratio(d, v))
        near = np.abs(t) < 0.01  # where the logarithms nearly cancel: v (t^2/2 - t^3/6 + t^4/12 - ...)
        t = np.where(near, t, 0.0)
        series = np.zeros(t.shape)
        for k in range(9, 1, -1):
            series = 1.0 / (k * (k - 1)) - t * series
        return np.where(near, v * (t * t * series), far)


_ENTROPY = Entropy()

CRITERIA: Mapping[str, Criterion] = MappingProxyType(
    {
        "gini": Gini(),
        "entropy": _ENTROPY,
        "log_loss": _ENTROPY,
        "train_error": TrainError(),
        "gain_ratio": GainRatio(),
        "twoing": Twoing(),
        "chi2": ChiSquare(),
        "squared_error": SquaredError(),
        "poisson": Poisson(),
    }
)
"""Public names of the criteria."""


def _mean(total: FloatArray, N: FloatArray) -> FloatArray:
    """Total over weight; never negative, though rounding may leave a total just below 0."""
    return np.maximum(ratio(total, N), 0.0)


def fold(how: Fold, terms: FloatArray) -> FloatArray:
    """Join terms (C, ...) over the first axis, channel by channel from 0, as the kernels do.

    Not ``terms.sum(0)``: NumPy may add in pairs, which rounds differently.
    """
    total = np.zeros(terms.shape[1:])
    for row in terms:
        if how is Fold.MAX:
            np.maximum(total, row, out=total)
        else:
            total += row
    return total
