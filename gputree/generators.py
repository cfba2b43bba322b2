"""Generators of tables: Boolean functions, the monk's problems, and a large table like HIGGS.

The same arguments give the same bytes on every platform and NumPy version: only the raw words of PCG64 are used, whose
stream NumPy guarantees (NEP 19), then integers and the correctly rounded operations ``+ - * sqrt``. Users import these
functions from `gputree.datasets`. May import core.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gputree.core.keys import below, unit

Bits = NDArray[np.int64]

_HIGGS_MEASURED = 21
_HIGGS_COLUMNS = 28
_HIGGS_WORDS = _HIGGS_MEASURED + 1  # 64-bit random words of a row: one a measured column, and one for the noise
_HIGGS_NOISE = 0.8  # a tree of depth 10 then reaches about 75 %, a perfect model 79 %
_CHUNK_ROWS = 16_384

_MOST_BITS = 64  # one random word holds the bits of a row
_MOST_FULL_BITS = 24  # 16,777,216 rows of a truth table


def make_higgs_like(n_rows: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Make a large, noisy two-class table with the shape of the HIGGS data: 28 columns, hard to learn.

    Columns 0 to 20 are independent and bell-shaped ("measured"; mean 0, variance 1, about 2**18 distinct values).
    Columns 21 to 27 are radii, distances and products of them, as the derived columns of HIGGS are. The class is the
    sign of a non-linear score of both plus noise: the classes are balanced, the score alone is right for 79 % of the
    rows, a decision tree of depth 10 grown on 400,000 rows for about 75 %.

    Parameters
    ----------
    n_rows : int
        Number of rows, at least 1.
    seed : int, default=0
        Non-negative. The first rows of a longer table with the same seed are the shorter table.

    Returns
    -------
    X : ndarray of shape (n_rows, 28), float32
        No missing values.
    y : ndarray of shape (n_rows,), int64
        0 or 1.

    Raises
    ------
    TypeError
        If `n_rows` or `seed` is not an integer.
    ValueError
        If `n_rows` is below 1 or `seed` below 0.

    Notes
    -----
    The same arguments give the same bytes on every platform and NumPy version. The layout follows Baldi, Sadowski &
    Whiteson (2014), *Nature Communications* 5: 4308; the values are not theirs.

    Examples
    --------
    >>> X, y = make_higgs_like(1000)
    >>> X.shape, X.dtype, y.shape
    ((1000, 28), dtype('float32'), (1000,))
    """
    n_rows, seed = _at_least("n_rows", n_rows, 1), _at_least("seed", seed, 0)
    X = np.empty((n_rows, _HIGGS_COLUMNS), dtype=np.float32)
    y = np.empty(n_rows, dtype=np.int64)
    words = np.random.PCG64(seed)
    for start in range(0, n_rows, _CHUNK_ROWS):
        rows = slice(start, min(start + _CHUNK_ROWS, n_rows))
        # The stream runs row by row, so the size of a chunk cannot change a value.
        raw = np.asarray(words.random_raw((rows.stop - start) * _HIGGS_WORDS), dtype=np.uint64)
        _higgs_chunk(_bell(raw.reshape(-1, _HIGGS_WORDS).T), X[rows], y[rows])
    return X, y


def _higgs_chunk(z: NDArray[np.float64], X: NDArray[np.float32], y: NDArray[np.int64]) -> None:
    """Fill `X` (n, 28) and `y` (n,) from the bell-shaped `z` (22, n)."""
    # No power, exp or hypot: their last bit differs between C libraries; the square root's does not.
    transverse, opening = _radius(z[0], z[1]), _radius(z[3], z[4])
    distance = np.abs(z[9] - z[10])
    product = z[12] * z[13]
    mass = np.sqrt(z[15] * z[15] + z[16] * z[16] + z[17] * z[17])
    jets, pair = _radius(z[6], z[7]), _radius(z[0], z[3]) * _radius(z[6], z[9])
    derived = (transverse, opening, jets, distance, product, pair, mass)
    score = 0.9 * (transverse - 1.25) + 0.7 * product + 0.6 * (mass - 1.6) * z[18]
    score -= 0.8 * (opening - 1.25) * (z[2] > 0)
    score += 0.4 * (distance - 1.13) - 0.5 * (np.abs(z[5]) - 0.8)
    X[:, :_HIGGS_MEASURED] = z[:_HIGGS_MEASURED].T
    X[:, _HIGGS_MEASURED:] = np.stack(derived, axis=1)
    y[:] = score + _HIGGS_NOISE * z[_HIGGS_MEASURED] > 0


def _bell(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Turn each random word into the standardised sum of its four 16-bit quarters: bell-shaped and exact."""
    low = np.uint64(0xFFFF)
    total = words & low
    for shift in (16, 32, 48):
        total += (words >> np.uint64(shift)) & low
    centred = total.astype(np.float64) - 2 * 65_535.0
    return centred * (1.0 / 37_837.0)  # 37,837 = 65,536 * sqrt(4 / 12), the standard deviation of the sum


def _radius(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    root: NDArray[np.float64] = np.sqrt(a * a + b * b)
    return root


def make_parity(
    n_bits: int = 3, *, n_irrelevant: int = 0, n_rows: int | None = None, noise: float = 0.0, seed: int = 0
) -> tuple[Bits, Bits]:
    """Make a table of the parity of bits: 1 where an odd number of them is 1.

    Every test of one bit has gain 0 until all others are tested: the smallest tree has 2**n_bits leaves.

    Parameters
    ----------
    n_bits : int, default=3
        Number of bits that count, at least 1.
    n_irrelevant : int, default=0
        Number of further columns, behind the others, that the class does not depend on.
    n_rows : int, optional
        Number of rows, drawn independently. By default every row of the truth table once, in counting order with the
        first column slowest; that takes at most 24 columns, drawn rows at most 64.
    noise : float, default=0.0
        Chance, for each row by itself, that its class is the wrong one; 0 to 1.
    seed : int, default=0
        Non-negative. The first drawn rows of a longer table with the same seed are the shorter table.

    Returns
    -------
    X : ndarray of shape (n_rows, n_bits + n_irrelevant), int64
        0 or 1.
    y : ndarray of shape (n_rows,), int64
        0 or 1.

    Raises
    ------
    TypeError
        If a number is not of the type above.
    ValueError
        If a number is out of range.

    Notes
    -----
    Procaccia, lecture 16 (poll on the size of trees); two bits are his XOR.

    Examples
    --------
    >>> X, y = make_parity(2)
    >>> X.tolist(), y.tolist()
    ([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0])
    """
    n_bits, sample = _at_least("n_bits", n_bits, 1), Sample(n_rows, noise, seed)
    return _boolean(lambda bits: bits[:, :n_bits].sum(axis=1) % 2 == 1, n_bits, n_irrelevant, sample)


def make_majority(
    n_bits: int = 3, *, n_irrelevant: int = 0, n_rows: int | None = None, noise: float = 0.0, seed: int = 0
) -> tuple[Bits, Bits]:
    """Make a table of the majority of bits: 1 where more of them are 1 than 0.

    For an odd number d of bits the smallest tree has C(d + 1, (d + 1) / 2) leaves.

    Parameters
    ----------
    n_bits : int, default=3
        Number of bits that vote, at least 1; an even vote is 0.
    n_irrelevant, n_rows, noise, seed
        As for `make_parity`.

    Returns
    -------
    X : ndarray of shape (n_rows, n_bits + n_irrelevant), int64
        0 or 1.
    y : ndarray of shape (n_rows,), int64
        0 or 1.

    Raises
    ------
    TypeError
        If a number is not of its type.
    ValueError
        If a number is out of range.

    Notes
    -----
    Procaccia, lecture 16 (poll on the size of trees).

    Examples
    --------
    >>> make_majority(3)[1].tolist()
    [0, 0, 0, 1, 0, 1, 1, 1]
    """
    n_bits, sample = _at_least("n_bits", n_bits, 1), Sample(n_rows, noise, seed)
    return _boolean(lambda bits: 2 * bits[:, :n_bits].sum(axis=1) > n_bits, n_bits, n_irrelevant, sample)


def make_unanimity(
    n_bits: int = 3, *, n_irrelevant: int = 0, n_rows: int | None = None, noise: float = 0.0, seed: int = 0
) -> tuple[Bits, Bits]:
    """Make a table of unanimous votes: 1 where all bits are equal.

    The smallest tree has 2 d leaves for d >= 2 bits. Where only a unanimous yes counts, which takes d + 1 leaves, call
    `make_dnf` with all bits in one term.

    Parameters
    ----------
    n_bits : int, default=3
        Number of bits that vote, at least 1.
    n_irrelevant, n_rows, noise, seed
        As for `make_parity`.

    Returns
    -------
    X : ndarray of shape (n_rows, n_bits + n_irrelevant), int64
        0 or 1.
    y : ndarray of shape (n_rows,), int64
        0 or 1.

    Raises
    ------
    TypeError
        If a number is not of its type.
    ValueError
        If a number is out of range.

    Notes
    -----
    Procaccia, lecture 16 (poll on the size of trees).

    Examples
    --------
    >>> make_unanimity(3)[1].tolist()
    [1, 0, 0, 0, 0, 0, 0, 1]
    """
    n_bits, sample = _at_least("n_bits", n_bits, 1), Sample(n_rows, noise, seed)
    return _boolean(lambda bits: (bits[:, :n_bits] == bits[:, :1]).all(axis=1), n_bits, n_irrelevant, sample)


def make_dnf(
    terms: Sequence[Sequence[int]] = ((1, 2), (3, 4)),
    *,
    n_irrelevant: int = 0,
    n_rows: int | None = None,
    noise: float = 0.0,
    seed: int = 0,
) -> tuple[Bits, Bits]:
    """Make a table of a Boolean function in disjunctive normal form: 1 where some term holds.

    The default is x1 x2 + x3 x4, whose smallest tree tests x3 x4 in two places: 7 leaves for 4 distinct tests.

    Parameters
    ----------
    terms : sequence of sequences of int, default=((1, 2), (3, 4))
        Each term lists what must hold together: j stands for "bit j is 1", -j for "bit j is 0"; bits count from 1.
        Columns go up to the largest bit named.
    n_irrelevant, n_rows, noise, seed
        As for `make_parity`.

    Returns
    -------
    X : ndarray of shape (n_rows, largest bit + n_irrelevant), int64
        0 or 1.
    y : ndarray of shape (n_rows,), int64
        0 or 1.

    Raises
    ------
    TypeError
        If a number is not of its type.
    ValueError
        If a number is out of range, or if there is no term, or an empty one.

    Notes
    -----
    Nilsson, chapter 6, 6.1 and 6.5 (the problem of replicated subtrees).

    Examples
    --------
    A multiplexer: x2 where x1 is 1, else x3.

    >>> make_dnf([(1, 2), (-1, 3)])[1].tolist()
    [0, 1, 0, 1, 0, 0, 1, 1]
    """
    literals = [[_literal(j) for j in term] for term in terms]
    if not literals or not all(literals):
        raise ValueError(f"terms={terms!r} must hold at least one term, and each term at least one bit, as (1, 2) does")
    n_bits = max(abs(j) for term in literals for j in term)

    def holds(bits: Bits) -> NDArray[np.bool_]:
        value = np.zeros(bits.shape[0], bool)
        for term in literals:
            value |= np.all([bits[:, abs(j) - 1] == (j > 0) for j in term], axis=0)
        return value

    return _boolean(holds, n_bits, n_irrelevant, Sample(n_rows, noise, seed))


@dataclass(frozen=True, slots=True)
class Sample:
    """Which rows a table has, and how many of their classes are wrong: the parameters that generators share."""

    n_rows: int | None
    noise: float
    seed: int

    def words(self, n_cells: int) -> NDArray[np.uint64]:
        """Two random words a row (2, n): which cell it is, and whether its class is wrong. The stream runs by row."""
        seed = _at_least("seed", self.seed, 0)
        n_rows = n_cells if self.n_rows is None else _at_least("n_rows", self.n_rows, 1)
        raw = np.asarray(np.random.PCG64(seed).random_raw(2 * n_rows), dtype=np.uint64)
        return np.ascontiguousarray(raw.reshape(n_rows, 2).T)

    def wrong(self, words: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which classes are wrong (n,)."""
        return unit(words[1]) < _share("noise", self.noise)

    def cells(self, n_cells: int) -> tuple[Bits, NDArray[np.bool_]]:
        """Numbers of fewer than 2**32 cells (n,), all in order or some drawn, and which classes are wrong (n,)."""
        words = self.words(n_cells)
        cells = np.arange(n_cells) if self.n_rows is None else below(words[0], n_cells).astype(np.int64)
        return cells, self.wrong(words)


def _boolean(
    rule: Callable[[Bits], NDArray[np.bool_]], n_bits: int, n_irrelevant: int, sample: Sample
) -> tuple[Bits, Bits]:
    """Bits (n, columns) and their classes (n,)."""
    columns = n_bits + _at_least("n_irrelevant", n_irrelevant, 0)
    full = sample.n_rows is None
    if columns > (_MOST_FULL_BITS if full else _MOST_BITS):
        raise ValueError(
            f"{columns} columns are too many; at most {_MOST_FULL_BITS} for the whole truth table and {_MOST_BITS} for "
            "rows drawn from it: leave some out" + (", or give n_rows" if full else "")
        )
    words = sample.words(2**columns)
    number = np.arange(words.shape[1], dtype=np.uint64) if full else words[0]
    shifts = np.arange(columns - 1, -1, -1, dtype=np.uint64)
    X = ((number[:, None] >> shifts) & np.uint64(1)).astype(np.int64)
    return X, (rule(X) ^ sample.wrong(words)).astype(np.int64)


def _share(name: str, value: float) -> float:
    """A number from 0 to 1."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number from 0 to 1, got {value!r}; pass for example {name}=0.1") from None
    if math.isnan(number) or not 0 <= number <= 1:
        raise ValueError(f"{name} must be from 0 to 1, got {number}; 0.1 makes every tenth class wrong")
    return number


def _literal(value: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"terms must hold integers, got {value!r}; 3 stands for bit 3, -3 for its negation") from None
    if not number:
        raise ValueError("terms holds 0; bits count from 1: 3 stands for bit 3, -3 for its negation")
    return number


def _at_least(name: str, value: int, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}; pass for example {name}={least + 1}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    return number
