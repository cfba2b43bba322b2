"""What Numba supplies to the kernels, in plain Python: `gputree.backends.compiled` has the compiled forms."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass as record
from typing import Any, TypeVar

import numpy as np

__all__ = ["bits_of", "borrow", "entry", "float_of", "kernel", "record", "trailing_zeros"]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Mark a function that is compiled into those that call it."""
    return function


def entry(function: F) -> F:
    """Mark a function that the host calls, without the interpreter's lock; Numba keeps it on disk."""
    return function


def borrow(held: T) -> T:
    """A record that a parameter holds, for which no references are counted: that costs more than most reads.

    Arrays and records read from it live as long as the caller's; none may outlive it.
    """
    return held


def bits_of(x: float) -> np.int64:
    """The image of a double as an integer."""
    return np.int64(struct.unpack("<q", struct.pack("<d", x))[0])


def float_of(bits: int) -> float:
    """The double with this image."""
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


def trailing_zeros(word: np.uint64) -> int:
    """Number of the lowest set bit of a word that is not 0."""
    return (int(word) & -int(word)).bit_length() - 1
