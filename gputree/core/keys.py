"""The counter-based hash behind every random choice: node keys, feature subsets, thresholds, bags and directions.

A draw is a function of (key, stream, index) and of nothing else, so it does not depend on the order in which nodes
grow, on batches, threads or devices. `kernels/common.cuh` holds the same functions in CUDA. May import NumPy only.
"""

from enum import IntEnum

import numpy as np
import numpy.typing as npt

UInt64s = npt.NDArray[np.uint64]
Integers = int | npt.NDArray[np.integer] | np.integer

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: the step between two states
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
_LOW_32 = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


class Stream(IntEnum):
    """What a draw is for: uses that shared a stream would be correlated."""

    CHILD = 0
    FEATURE = 1
    THRESHOLD = 2
    BAG = 3
    DIRECTION = 4
    CATEGORY = 5
    SHUFFLE = 6
    COLUMN = 7
    TARGET = 8
    HELD_OUT = 9
    RESAMPLE = 10
    FOLD = 11
    HOLDOUT = 12
    PART = 13
    SIDE = 14


def _words(value: Integers) -> UInt64s:
    return np.asarray(value, dtype=np.uint64)


def mix(key: Integers, i: Integers) -> UInt64s:
    """Hash a key and a counter: output ``i`` of the splitmix64 generator whose seed is ``key``.

    Parameters
    ----------
    key, i : int or integer array
        Values in 0 .. 2^64 - 1; they broadcast against each other.

    Returns
    -------
    ndarray of uint64, or np.uint64 for two scalars

    References
    ----------
    Steele, Lea, Flood (2014), "Fast splittable pseudorandom number generators", OOPSLA, with the constants of Vigna's
    `splitmix64.c` (Stafford's variant 13).

    Examples
    --------
    >>> hex(mix(0, 0))
    '0xe220a8397b1dcdaf'
    """
    with np.errstate(over="ignore"):  # arithmetic is modulo 2^64; NumPy warns about it for scalars
        z = _words(key) + (_words(i) + np.uint64(1)) * GOLDEN
        z = (z ^ (z >> np.uint64(30))) * MIX_1
        z = (z ^ (z >> np.uint64(27))) * MIX_2
        mixed: UInt64s = z ^ (z >> np.uint64(31))
    return mixed


def draw(key: Integers, stream: Stream, i: Integers) -> UInt64s:
    """Hash number ``i`` of one stream of a key: ``mix(mix(key, stream), i)``."""
    return mix(mix(key, int(stream)), i)


def root_keys(seed: int, trees: Integers) -> UInt64s:
    """Keys of the roots of the trees with the given numbers; ``seed`` in 0 .. 2^64 - 1."""
    return mix(seed, trees)


def child_keys(key: Integers, branch: Integers) -> UInt64s:
    """Keys of the children behind ``branch`` of the nodes with keys ``key``: a key names the path from the root."""
    return draw(key, Stream.CHILD, branch)


def unit(h: Integers) -> npt.NDArray[np.float64]:
    """Map hashes to float64 in [0, 1): their top 53 bits, times 2^-53, without rounding."""
    return (_words(h) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def below(h: Integers, n: Integers) -> UInt64s:
    """Map hashes to integers in 0 .. n - 1: the high 64 bits of the product h * n.

    Two products of 32 by 32 bits give them exactly, for with h = 2^32 a + b the product is 2^32 (a n) + b n, and
    a n + (b n >> 32) is at most (2^32 - 1)^2 + 2^32 - 1 and fits 64 bits.

    Parameters
    ----------
    h : int or array of uint64
        Hashes.
    n : int or integer array
        Numbers of outcomes, 1 .. 2^32 - 1.

    Raises
    ------
    ValueError
        If some ``n`` is 2^32 or more.

    Examples
    --------
    >>> int(below(2**63, 10))
    5
    """
    hashes, sizes = _words(h), _words(n)
    if (sizes > _LOW_32).any():
        raise ValueError(f"n={int(sizes.max())} outcomes; at most 2**32 - 1 = 4294967295 are possible: draw from fewer")
    low = (hashes & _LOW_32) * sizes
    high = (hashes >> _32) * sizes
    return (high + (low >> _32)) >> _32
