"""Lengths of messages that describe labels: by themselves, or by a tree and its exceptions. In bits.

May import NumPy and core only.

References
----------
Quinlan and Rivest (1989), "Inferring decision trees using the minimum description length principle", Information and
Computation 80:227-248. Wallace and Patrick (1993), "Coding decision trees", Machine Learning 11:7-22. Shalev-Shwartz
and Ben-David (2014), "Understanding Machine Learning", 18.1. Nilsson, "Introduction to Machine Learning", 6.4.4.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gputree.core.expr import log2

TABLE = 1 << 16
ADDED = 64  # below it, logarithms are added up
SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)  # of Stirling's formula, in 1/z, 1/z^3 ...
SHIFT = 8  # the series is used from here on, where it is exact to the last digits
LOG2_E = 1.4426950408889634
HALF_LOG2_TAU = 1.3257480647361593  # log2(2 pi) / 2


@lru_cache(maxsize=1)
def factorial_table() -> NDArray[np.float64]:
    """log2(x!) of 0 .. 65535."""
    table = stirling(np.arange(0.0, TABLE))
    table[0], table[1:ADDED] = 0.0, np.cumsum(log2(np.arange(1.0, ADDED)))  # nothing is exact, and so are few terms
    table.flags.writeable = False
    return table


def log2_factorial(x: ArrayLike) -> NDArray[np.float64]:
    """log2(x!) of numbers x >= 0 of any shape; of fractions log2 of the gamma function of x + 1.

    Examples
    --------
    >>> log2_factorial([0, 4, 0.5]).round(4)
    array([ 0.    ,  4.585 , -0.1743])
    """
    x = np.asarray(x, np.float64)
    known = (x < TABLE) & (x == np.floor(x))
    result = factorial_table()[np.where(known, x, 0.0).astype(np.intp)]
    return result if known.all() else np.where(known, result, stirling(x))


def stirling(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same by Stirling's series at x + 8, less the logarithm of the factors that this adds."""
    z = x + SHIFT
    more = np.ones(x.shape)
    for i in range(1, SHIFT + 1):
        more *= x + i
    series = np.zeros(x.shape)
    for coefficient in reversed(SERIES):
        series = series / (z * z) + coefficient
    return (z + 0.5) * log2(z) - z * LOG2_E + HALF_LOG2_TAU + series / z * LOG2_E - log2(more)


def binomial_bits(n: ArrayLike, k: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """L(n, k, b) = log2(b + 1) + log2 C(n, k): which k of n things are odd, where k is known to be at most b.

    Parameters
    ----------
    n, k, b : array-like of numbers >= 0
        They broadcast; k <= n and k <= b.

    Returns
    -------
    float64 array

    References
    ----------
    Quinlan and Rivest (1989), section 3.

    Examples
    --------
    >>> binomial_bits(14, [9, 5], [14, 7]).round(3)
    array([14.874, 13.967])
    """
    n, k = np.asarray(n, np.float64), np.asarray(k, np.float64)
    some = log2_factorial(n) - log2_factorial(k) - log2_factorial(n - k)
    bits: NDArray[np.float64] = log2(np.asarray(b, np.float64) + 1.0) + some
    return bits


def label_bits(n_rows: float, n_classes: int) -> float:
    """m log2 R: the labels of m rows of R classes, each by itself.

    Examples
    --------
    >>> label_bits(14, 2), round(label_bits(150, 3), 3)
    (14.0, 237.744)
    """
    return float(n_rows * math.log2(n_classes))


@dataclass(frozen=True, slots=True)
class Code(ABC):
    """How a tree and its exceptions are sent to somebody who knows the attributes of all rows and not their classes."""

    name: ClassVar[str]

    @abstractmethod
    def shape(self, leaf: bool, above: ArrayLike, at_root: ArrayLike) -> NDArray[np.float64]:
        """Bits that say that a node is a leaf, or that it is none.

        ``above`` is the number of its parent's branches, or of the root the number of attributes; ``at_root`` which.
        """

    @abstractmethod
    def label(self, n_classes: int) -> float:
        """Bits that name the class of a leaf."""

    @abstractmethod
    def exceptions(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bits of the rows' classes beyond that of their leaf, from counts f8 (K, M) -> f8 (M,)."""


@dataclass(frozen=True, slots=True)
class QuinlanRivest(Code):
    """One bit a node; a leaf names its class, and which rows have others.

    Of two classes the k exceptions among n rows cost L(n, k, floor((n + 1) / 2)); of more, class after class in
    descending order costs L(rest, rest - its count, rest), until one is left.

    Examples
    --------
    >>> code = QuinlanRivest()
    >>> code.exceptions(np.array([[9.0, 4.0], [5.0, 0.0]])).round(3)
    array([13.967,  1.585])
    """

    name = "quinlan-rivest"

    def shape(self, leaf: bool, above: ArrayLike, at_root: ArrayLike) -> NDArray[np.float64]:
        """One bit."""
        return np.ones(np.shape(above))

    def label(self, n_classes: int) -> float:
        """The number of a class."""
        return math.log2(n_classes)

    def exceptions(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Class after class, from the most rows to the least."""
        ordered = np.sort(counts, axis=0)
        rest = np.cumsum(ordered, axis=0)[:0:-1]  # n, n - largest, ... while two classes or more are left
        most = np.floor((rest + 1.0) / 2.0) if len(counts) == 2 else rest
        bits = np.zeros(counts.shape[1])
        for own, left, limit in zip(ordered[:0:-1], rest, most, strict=True):
            bits += binomial_bits(left, left - own, limit)
        return bits


@dataclass(frozen=True, slots=True)
class WallacePatrick(Code):
    """A node with r siblings, itself included, has a test with probability 1/r, the root 1 - 1/A of A attributes.

    The classes of a leaf's rows are sent one by one, by their frequencies so far: the next row is of class m with
    probability (rows of class m + alpha) / (rows + K alpha).

    Parameters
    ----------
    alpha : float, default=1.0
        What every class counts before there is a row: 1 takes all compositions for equally likely.

    Examples
    --------
    >>> WallacePatrick().exceptions(np.array([[9.0, 4.0], [5.0, 0.0]])).round(3)
    array([14.874,  2.322])
    """

    name = "wallace-patrick"
    alpha: float = 1.0

    def shape(self, leaf: bool, above: ArrayLike, at_root: ArrayLike) -> NDArray[np.float64]:
        """By the number of siblings."""
        above = np.maximum(np.asarray(above, np.float64), 2.0)  # of a single attribute, the root is as likely a leaf
        rare, often = log2(above), log2(above) - log2(above - 1.0)
        return np.where(np.asarray(at_root) == leaf, rare, often)

    def label(self, n_classes: int) -> float:
        """Nothing: the rows say it."""
        return 0.0

    def exceptions(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Row after row."""
        n, a = counts.sum(axis=0), self.alpha
        bits = log2_gamma(n + len(counts) * a) - log2_gamma(len(counts) * a)
        for own in counts:
            bits -= log2_gamma(own + a) - log2_gamma(a)
        return bits


def log2_gamma(x: ArrayLike) -> NDArray[np.float64]:
    """log2 of the gamma function of x > 0."""
    x = np.asarray(x, np.float64)
    return log2_factorial(x) - log2(x)


CODES: dict[str, Code] = {code.name: code for code in (QuinlanRivest(), WallacePatrick())}


@dataclass(frozen=True, slots=True)
class MessageParts:
    """What the labels of a table cost, sent by a tree and its exceptions, in bits.

    Attributes
    ----------
    structure : float
        Which nodes are leaves.
    attributes : float
        What is tested, cuts included.
    classes : float
        The classes of the leaves.
    exceptions : float
        The rows of other classes.
    labels : float
        ``m log2 R``: the labels without a tree, each by itself.
    """

    structure: float
    attributes: float
    classes: float
    exceptions: float
    labels: float

    @property
    def tree(self) -> float:
        """T: the tree without its exceptions."""
        return self.structure + self.attributes + self.classes

    @property
    def total(self) -> float:
        """T + d."""
        return self.tree + self.exceptions

    def weighted(self, tree_weight: float, exception_weight: float) -> float:
        """c_t t + c_d d: what growth and pruning by these weights compare."""
        return tree_weight * self.tree + exception_weight * self.exceptions


def code_length(n_nodes: ArrayLike, n_tests: int, n_classes: int = 2) -> NDArray[np.float64]:
    """Bits of a tree in preorder: n + 1 symbols out of the tests, the classes and an end.

    Parameters
    ----------
    n_nodes : array-like of int
        Nodes, leaves included.
    n_tests : int
        Different tests: columns where these are binary, thresholds (distinct values less one, over all columns) where
        they are numbers.
    n_classes : int, default=2
        Labels of a leaf.

    Returns
    -------
    float64 array

    References
    ----------
    Shalev-Shwartz and Ben-David (2014), 18.1.

    Examples
    --------
    >>> code_length([1, 5], 2).round(3)
    array([ 4.644, 13.932])
    """
    bits: NDArray[np.float64] = (np.asarray(n_nodes, np.float64) + 1.0) * math.log2(n_tests + n_classes + 1)
    return bits


def risk_bound(error: ArrayLike, bits: ArrayLike, n_rows: float, delta: float = 0.05) -> NDArray[np.float64]:
    """Bound of the true error that holds for all trees at once with probability 1 - delta.

    The error on n rows, and the square root of (bits + ln(2 / delta)) / (2 n): bits as of `code_length` to base 2, the
    other logarithm natural.

    Parameters
    ----------
    error : array-like
        Share of the rows that a tree gets wrong.
    bits : array-like
        Length of the tree's code.
    n_rows : float
    delta : float, default=0.05
        Between 0 and 1.

    Returns
    -------
    float64 array

    Raises
    ------
    ValueError
        If delta or n_rows is out of range.

    References
    ----------
    Shalev-Shwartz and Ben-David (2014), equation 18.1.

    Examples
    --------
    >>> round(float(risk_bound(0.1, code_length(7, 3), 100)), 4)
    0.4491
    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta={delta!r} must lie between 0 and 1: it is the probability that the bound fails")
    if not n_rows > 0:
        raise ValueError(f"n_rows={n_rows!r} must be positive: the bound is about an error on rows")
    slack = (np.asarray(bits, np.float64) + math.log(2.0 / delta)) / (2.0 * n_rows)
    bound: NDArray[np.float64] = np.asarray(error, np.float64) + np.sqrt(slack)
    return bound
