"""Impurities of class counts, for the blackboard: entropy, Gini's, training error. May import NumPy only.

Fits do not use these functions: there gains come from `gputree.core.criteria`, which computes the same bits on every
device. Tests hold the two equal.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gputree.core.checks import brief

__all__ = ["entropy", "gini", "information", "train_error"]

Impurity: TypeAlias = float | NDArray[np.float64]

_SUM_TO_ONE = 1e-9  # by how much the probabilities of a distribution may miss 1


def entropy(counts: ArrayLike, base: float = 2) -> Impurity:
    """Entropy of class counts: the sum of p log(1 / p) over the shares p of the classes.

    Parameters
    ----------
    counts : array-like of shape (..., n_classes)
        How many rows (or how much weight) each class has: finite numbers >= 0. Only their proportions matter.
    base : float, default=2
        Base of the logarithm, above 1: 2 gives bits, ``numpy.e`` nats, the number of classes the scale 0 to 1.

    Returns
    -------
    float, or ndarray of shape (...,), float64
        Between 0, for a single class, and the logarithm of ``n_classes``, for equal counts. 0 where there are no rows
        at all: a branch without rows weighs nothing, whatever its impurity.

    Raises
    ------
    TypeError
        If `counts` or `base` is not made of numbers.
    ValueError
        If a count is negative, NaN or infinite, if there is no class, or if `base` is not a number above 1.

    Notes
    -----
    Quinlan (1986), *Machine Learning* 1: 81-106; Raschka, STAT 479 chapter 6, 6.7; Nilsson, chapter 6, 6.2.2. The DTL
    lecture notes take the number of classes as the base, and print .876 where their formula gives the last value below.

    Examples
    --------
    Quinlan's 14 days, 9 with play and 5 without, then the days by outlook:

    >>> entropy([9, 5])
    0.9402859586706311
    >>> entropy([[2, 3], [4, 0], [3, 2]]).round(3)
    array([0.971, 0.   , 0.971])
    >>> round(entropy([1, 2, 2], base=3), 4)
    0.9602
    """
    return _returned(_entropy(_shares(_checked("counts", counts))) / _log_of(base))


def gini(counts: ArrayLike) -> Impurity:
    """Gini impurity of class counts: 1 less the sum of the squared shares of the classes.

    It is the chance that two rows, drawn with replacement, are of different classes.

    Parameters
    ----------
    counts : array-like of shape (..., n_classes)
        As for `entropy`.

    Returns
    -------
    float, or ndarray of shape (...,), float64
        Between 0, for a single class, and 1 - 1 / n_classes, for equal counts; 0 where there are no rows at all.

    Raises
    ------
    TypeError
        If `counts` is not made of numbers.
    ValueError
        If a count is negative, NaN or infinite, or if there is no class.

    Notes
    -----
    Breiman, Friedman, Olshen and Stone (1984), *Classification and Regression Trees*, 4.3; Raschka, STAT 479 chapter 6,
    6.9. Of two classes with shares a and 1 - a it is the 2a(1 - a) of Shalev-Shwartz and Ben-David, 18.2.1.

    Examples
    --------
    >>> gini([3, 1])
    0.375
    >>> gini([[1, 1], [7, 0]])
    array([0.5, 0. ])
    """
    amounts = _scaled(_checked("counts", counts))
    total = amounts.sum(axis=-1, keepdims=True)
    # x (N - x) / N^2 adds up to 1 - sum of (x / N)^2 without taking nearly equal numbers from each other.
    return _returned(_ratio(amounts * (total - amounts), total * total).sum(axis=-1))


def train_error(counts: ArrayLike) -> Impurity:
    """Share of the rows that are not of the most frequent class: the training error of a majority vote.

    Parameters
    ----------
    counts : array-like of shape (..., n_classes)
        As for `entropy`.

    Returns
    -------
    float, or ndarray of shape (...,), float64
        Between 0, for a single class, and 1 - 1 / n_classes, for equal counts; 0 where there are no rows at all.

    Raises
    ------
    TypeError
        If `counts` is not made of numbers.
    ValueError
        If a count is negative, NaN or infinite, or if there is no class.

    Notes
    -----
    Shalev-Shwartz and Ben-David, *Understanding Machine Learning*, 18.2.1; Raschka, STAT 479 chapter 6, 6.8.

    Examples
    --------
    >>> train_error([9, 5]) == 5 / 14
    True
    >>> train_error([[40, 80], [28, 42], [12, 38]])
    array([0.33333333, 0.4       , 0.24      ])
    """
    amounts = np.sort(_scaled(_checked("counts", counts)), axis=-1)
    return _returned(_ratio(amounts[..., :-1].sum(axis=-1), amounts.sum(axis=-1)))


def information(p: ArrayLike, base: float = 2) -> Impurity:
    """Information content I(p) of a probability distribution: the sum of p log(1 / p), its entropy.

    It differs from `entropy` in what it takes: probabilities that add up to 1, not counts. The chance q of one of two
    outcomes is the distribution (q, 1 - q), whose information is the lectures' B(q).

    Parameters
    ----------
    p : array-like of shape (..., n_outcomes)
        Probabilities >= 0 that add up to 1, within 1e-9, along the last axis.
    base : float, default=2
        Base of the logarithm, above 1: 2 gives bits, ``numpy.e`` nats.

    Returns
    -------
    float, or ndarray of shape (...,), float64
        Between 0, for a certain outcome, and the logarithm of ``n_outcomes``, for equally likely ones.

    Raises
    ------
    TypeError
        If `p` or `base` is not made of numbers.
    ValueError
        If a probability is negative, NaN or infinite, if they do not add up to 1, if there is no outcome, or if `base`
        is not a number above 1.

    Notes
    -----
    Procaccia, lecture 16; Nilsson, chapter 6, 6.2.2; Raschka, STAT 479 chapter 6, 6.7.

    Examples
    --------
    A fair coin, and one that shows heads 99 times in 100:

    >>> information([0.5, 0.5])
    1.0
    >>> round(information([0.99, 0.01]), 4)
    0.0808
    """
    shares = _checked("p", p)
    total = shares.sum(axis=-1)
    wrong = total[np.abs(total - 1) > _SUM_TO_ONE]
    if wrong.size:
        raise ValueError(f"p adds up to {wrong[0]:g}, not to 1; for counts call entropy, which divides by their sum")
    return _returned(_entropy(shares) / _log_of(base))


def _entropy(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    bits: NDArray[np.float64] = (shares * -np.log2(np.where(shares > 0, shares, 1.0))).sum(axis=-1)
    return bits


def _shares(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    amounts = _scaled(counts)
    return _ratio(amounts, amounts.sum(axis=-1, keepdims=True))


def _ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Part over whole, 0 where there is no whole."""
    return part / np.where(whole > 0, whole, 1.0)


def _scaled(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same proportions with the largest in [1/2, 1): a power of two is exact, and no square overflows."""
    scaled: NDArray[np.float64] = np.ldexp(counts, -np.frexp(counts.max(axis=-1, keepdims=True))[1])
    return scaled


def _returned(values: NDArray[np.float64]) -> Impurity:
    """A plain float for one row of counts; -0.0 becomes 0.0."""
    positive = values + 0.0
    return positive if np.ndim(positive) else float(positive)


def _checked(name: str, given: ArrayLike) -> NDArray[np.float64]:
    """Finite numbers >= 0 of shape (..., 1 or more)."""
    try:
        numbers = np.asarray(given).astype(np.float64, casting="unsafe" if _holds_objects(given) else "same_kind")
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}={brief(given)} must be numbers, one a class; give for example [9, 5]") from error
    if not numbers.ndim or not numbers.shape[-1]:
        raise ValueError(f"{name}={brief(given)} must have at least one number along its last axis, as [9, 5] has two")
    bad = numbers[~((numbers >= 0) & np.isfinite(numbers))]
    if bad.size:
        raise ValueError(f"{name} holds {bad[0]:g}; each must be a finite number, 0 or more: correct or leave it out")
    return numbers


def _holds_objects(given: ArrayLike) -> bool:
    """Whether these may be numbers of other libraries, as fractions are; text and complex numbers are not."""
    return np.asarray(given).dtype == object


def _log_of(base: float) -> float:
    try:
        number = float(base)
    except (TypeError, ValueError) as error:
        raise TypeError(f"base={base!r} must be a number above 1, such as 2 for bits") from error
    if not 1 < number < np.inf:
        raise ValueError(f"base={base!r} must be a finite number above 1; 2 gives bits, numpy.e nats")
    return float(np.log2(number))
