"""Scalar twins of `gputree.core.{expr,scores,keys}`: the same operations in the same order."""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.marks import bits_of, float_of, kernel
from gputree.core.expr import ATANH, MANTISSA_BITS, SQRT_HALF_BITS, TINY
from gputree.core.keys import GOLDEN, MIX_1, MIX_2
from gputree.core.scores import ANCHOR, FRACTION, LARGEST, POWER

_MANTISSA = int(MANTISSA_BITS)
_ONE = np.uint64(1)
_11, _27, _30, _31, _32 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_LOW_32 = np.uint64(0xFFFFFFFF)


@kernel
def gt_log2(x: float) -> float:
    """As `expr.log2`."""
    shift = 0
    if x < TINY:
        x *= 2.0**54
        shift = 54
    bits = bits_of(x)
    exponent = (bits - SQRT_HALF_BITS) >> _MANTISSA
    m = float_of(bits - (exponent << _MANTISSA))
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = z * ATANH[7]
    p = (p + ATANH[6]) * z
    p = (p + ATANH[5]) * z
    p = (p + ATANH[4]) * z
    p = (p + ATANH[3]) * z
    p = (p + ATANH[2]) * z
    p = (p + ATANH[1]) * z
    return (p + ATANH[0]) * s + np.float64(exponent - shift)


@kernel
def gt_xlogx(x: float) -> float:
    """As `expr.xlogx`."""
    return x * gt_log2(x) + 0.0


@kernel
def gt_ratio(a: float, b: float) -> float:
    """As `expr.ratio`."""
    return a / b if b != 0.0 else 0.0


@kernel
def gt_abs(x: float) -> float:
    """As `expr.absolute`."""
    return abs(x)


@kernel
def on_grid(score: float, scale: float) -> float:
    """As `scores.grid`."""
    bits = np.uint64(bits_of(max(abs(score), scale)))
    bits = (bits + FRACTION) & POWER
    if bits > LARGEST:
        return score
    anchor = float_of(np.int64(bits + ANCHOR))
    return (score + anchor) - anchor


@kernel
def mix(key: np.uint64, i: np.uint64) -> np.uint64:
    """As `keys.mix`."""
    z = key + (i + _ONE) * GOLDEN
    z = (z ^ (z >> _30)) * MIX_1
    z = (z ^ (z >> _27)) * MIX_2
    return z ^ (z >> _31)


@kernel
def drawn(key: np.uint64, stream: np.uint64, i: np.uint64) -> np.uint64:
    """As `keys.draw`."""
    return mix(mix(key, stream), i)


@kernel
def unit_of(h: np.uint64) -> float:
    """As `keys.unit`."""
    return np.float64(h >> _11) * 2.0**-53


@kernel
def below(h: np.uint64, n: np.uint64) -> np.uint64:
    """As `keys.below`."""
    return ((h >> _32) * n + (((h & _LOW_32) * n) >> _32)) >> _32
