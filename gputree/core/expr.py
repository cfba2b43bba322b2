"""Scalar functions of the criteria, twice: on NumPy arrays, and on `Expr`, which records the C text of a formula.

On arrays, `log2`, `xlogx`, `ratio` and `absolute` use IEEE `+ - * /`, comparisons and exponent extraction only. Their
order of operations is their definition: `kernels/common.cuh` repeats it, so that every device computes the same bits.
Given an `Expr`, each returns the call of its twin (`gt_log2` ...). May import NumPy only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Expr:
    """The text of a C expression of type double; Python arithmetic on it gives the text of the result.

    Every operation adds its own parentheses, so C evaluates in Python's order.

    Examples
    --------
    >>> x, n = Expr("x"), Expr("n")
    >>> (x * x - 2 * ratio(x, n)).text
    '((x * x) - (2.0 * gt_ratio(x, n)))'
    """

    text: str

    __array_ufunc__ = None  # so that `np.float64(2) * expr` comes here, not into an object array

    def __add__(self, other: Expr | float) -> Expr:
        return Expr(f"({self.text} + {_text(other)})")

    def __radd__(self, other: float) -> Expr:
        return Expr(f"({_text(other)} + {self.text})")

    def __sub__(self, other: Expr | float) -> Expr:
        return Expr(f"({self.text} - {_text(other)})")

    def __rsub__(self, other: float) -> Expr:
        return Expr(f"({_text(other)} - {self.text})")

    def __mul__(self, other: Expr | float) -> Expr:
        return Expr(f"({self.text} * {_text(other)})")

    def __rmul__(self, other: float) -> Expr:
        return Expr(f"({_text(other)} * {self.text})")

    def __truediv__(self, other: Expr | float) -> Expr:
        return Expr(f"({self.text} / {_text(other)})")

    def __rtruediv__(self, other: float) -> Expr:
        return Expr(f"({_text(other)} / {self.text})")

    def __neg__(self) -> Expr:
        return Expr(f"(-{self.text})")


Scalar = TypeVar("Scalar", FloatArray, Expr)
"""What a criterion computes with: arrays, or the text of a formula."""


def _text(value: Expr | float) -> str:
    """C text of an operand; `repr` gives the shortest digits that read back as the same double."""
    if isinstance(value, Expr):
        return value.text
    number = float(value)
    if not math.isfinite(number) or number != value:
        raise ValueError(f"constant {value!r} in a formula; it must be finite and exact in float64: use another")
    return repr(number) if math.copysign(1.0, number) > 0 else f"({number!r})"


def constant(value: float, like: Scalar) -> Scalar:
    """Return a constant of the kind of ``like``: an array of its shape, or a literal."""
    if isinstance(like, Expr):
        return Expr(_text(value))
    return np.full(np.shape(like), value)


# 2 atanh(s) / (s ln 2) as a polynomial in s*s, lowest power first: interpolated at the 8 Chebyshev points of the range
# of s*s, 0 .. (sqrt 2 - 1)^4; relative error 1.4e-17, mostly from rounding the coefficients. The first is 2 / ln 2.
ATANH = (
    2.8853900817779268,
    0.9617966939259898,
    0.5770780163455203,
    0.4121985858409005,
    0.32059853491395984,
    0.262334352504183,
    0.2209130842311768,
    0.2136589569431927,
)
SQRT_HALF_BITS = np.int64(0x3FE6A09E667F3BCD)  # the image of sqrt(1/2) as an integer
MANTISSA_BITS = np.int64(52)
TINY = 2.0**-1022  # below it a double has no exponent of its own
_BLOCK = 8192  # numbers per pass: the temporaries stay in the cache (four times as fast as whole arrays of a million)
_TABLE_SIZE = 65536


@overload
def log2(x: Expr) -> Expr: ...
@overload
def log2(x: FloatArray) -> FloatArray: ...
def log2(x: FloatArray | Expr) -> FloatArray | Expr:
    """Logarithm to base 2 of finite x >= 0; exact for powers of two, relative error below 5e-16.

    x = m 2^e with m in [sqrt(1/2), sqrt(2)); with s = (m - 1) / (m + 1), log2(x) = e + 2 atanh(s) / ln 2. At 0 the
    value is -1077, a finite number, so that 0 * log2(0) is 0.

    Parameters
    ----------
    x : float64 array or Expr

    Returns
    -------
    float64 array of the same shape, or Expr

    Examples
    --------
    >>> log2(np.array([8.0, 0.5]))
    array([ 3., -1.])
    """
    if isinstance(x, Expr):
        return Expr(f"gt_log2({x.text})")
    return _by_blocks(_log2_block, x)


def _by_blocks(function: Callable[[FloatArray], FloatArray], x: FloatArray) -> FloatArray:
    values = np.asarray(x, dtype=np.float64)
    flat = values.reshape(-1)
    if flat.size <= _BLOCK:
        return function(flat).reshape(values.shape)
    out = np.empty_like(flat)
    for start in range(0, flat.size, _BLOCK):
        out[start : start + _BLOCK] = function(flat[start : start + _BLOCK])
    return out.reshape(values.shape)


def _log2_block(x: FloatArray) -> FloatArray:
    small = x < TINY
    any_small = bool(small.any())
    if any_small:
        x = x * np.where(small, 2.0**54, 1.0)
    bits = x.view(np.int64)
    exponent = (bits - SQRT_HALF_BITS) >> MANTISSA_BITS  # counts from sqrt(1/2), not from 1/2
    m = (bits - (exponent << MANTISSA_BITS)).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = z * ATANH[7]
    for coefficient in ATANH[6:0:-1]:
        p += coefficient
        p *= z
    p += ATANH[0]
    p *= s
    if any_small:
        exponent -= np.where(small, 54, 0)
    p += exponent
    return p


@lru_cache(maxsize=1)
def _xlogx_table() -> FloatArray:
    """Return the values at 0 .. 65535: class counts are whole numbers, and a look-up costs less than a logarithm."""
    x = np.arange(_TABLE_SIZE, dtype=np.float64)
    table = x * log2(x) + 0.0
    table.flags.writeable = False
    return table


@overload
def xlogx(x: Expr) -> Expr: ...
@overload
def xlogx(x: FloatArray) -> FloatArray: ...
def xlogx(x: FloatArray | Expr) -> FloatArray | Expr:
    """Return x log2(x) of finite x >= 0, and 0 at 0; relative error below 6e-16.

    Parameters
    ----------
    x : float64 array or Expr

    Returns
    -------
    float64 array of the same shape, or Expr

    Examples
    --------
    >>> xlogx(np.array([0.0, 1.0, 8.0]))
    array([ 0.,  0., 24.])
    """
    if isinstance(x, Expr):
        return Expr(f"gt_xlogx({x.text})")
    return _by_blocks(_xlogx_block, x)


def _xlogx_block(x: FloatArray) -> FloatArray:
    """Look up whole numbers below 65536, compute the others."""
    known = x < _TABLE_SIZE
    index = (x if known.all() else np.where(known, x, 0.0)).astype(np.intp)
    known = index == x
    if not known.any():
        return x * log2(x) + 0.0  # + 0.0 makes 0 of -0
    out = _xlogx_table().take(index)
    if known.all():
        return out
    others = x[~known]
    out[~known] = others * log2(others) + 0.0
    return out


@overload
def ratio(a: Expr, b: Expr) -> Expr: ...
@overload
def ratio(a: FloatArray, b: FloatArray) -> FloatArray: ...
def ratio(a: FloatArray | Expr, b: FloatArray | Expr) -> FloatArray | Expr:
    """Return a / b, and 0 where b is 0; arrays broadcast.

    Examples
    --------
    >>> ratio(np.array([1.0, 5.0]), np.array([4.0, 0.0]))
    array([0.25, 0.  ])
    """
    if isinstance(a, Expr) or isinstance(b, Expr):
        return Expr(f"gt_ratio({_operand(a)}, {_operand(b)})")
    dividend, divisor = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if divisor.all():
        return np.asarray(dividend / divisor)
    out = np.zeros(np.broadcast_shapes(dividend.shape, divisor.shape))
    return np.divide(dividend, divisor, out=out, where=divisor != 0.0)


def _operand(value: FloatArray | Expr) -> str:
    return _text(value if isinstance(value, Expr) else float(value))


@overload
def absolute(x: Expr) -> Expr: ...
@overload
def absolute(x: FloatArray) -> FloatArray: ...
def absolute(x: FloatArray | Expr) -> FloatArray | Expr:
    """Absolute value: the sign bit cleared."""
    if isinstance(x, Expr):
        return Expr(f"gt_abs({x.text})")
    return np.abs(x)
