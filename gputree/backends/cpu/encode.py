"""Raw values to codes, row by row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import int64, uint32
from numpy.typing import NDArray

from gputree.backends.cpu.marks import entry, kernel

BLOCK = 1024  # rows searched in step


@entry
def encode_rows(X: NDArray[Any], keys: NDArray[Any], offset: NDArray[int64], codes: NDArray[Any]) -> None:
    """Codes (n, F) of X f4/f8 (n, F); of column f ``keys[offset[f] : offset[f + 1]]``.

    The code of x is 1 + how many keys lie below it, 0 where x is NaN: `schema.Cuts.code_of`.
    """
    x, found = np.empty(BLOCK, X.dtype), np.empty(BLOCK, uint32)
    for first in range(0, X.shape[0], BLOCK):
        n = min(BLOCK, X.shape[0] - first)
        for f in range(X.shape[1]):
            for i in range(n):
                x[i] = X[first + i, f]
            count_below(x[:n], keys[offset[f] : offset[f + 1]], found[:n])
            for i in range(n):
                codes[first + i, f] = 0 if math.isnan(x[i]) else found[i] + uint32(1)


@kernel
def count_below(x: NDArray[Any], keys: NDArray[Any], found: NDArray[uint32]) -> None:
    """How many of the sorted keys lie below each of some numbers.

    All numbers take a step of their search before any takes the next, so that no step waits for the one before it.
    """
    found[:] = 0
    n = keys.size
    while n > 1:
        half = uint32(n >> 1)
        for i in range(x.size):
            here = found[i]
            found[i] = here + half if keys[here + half - uint32(1)] < x[i] else here
        n -= int64(half)
    if n:
        for i in range(x.size):
            found[i] += uint32(keys[found[i]] < x[i])
