"""How the bags of a fitted forest were drawn. May import everything below."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.bags import Draws, strata


@dataclass(frozen=True, slots=True)
class Bagging:
    """How the bags of a forest were drawn from the rows of its fit: what draws them again.

    ``kept`` (n,) are the numbers of the rows of positive weight, ``size`` draws a bag, ``weight`` (n,) their
    probabilities or None; ``replace`` tells whether a row can be drawn again.
    """

    n_rows: int
    kept: NDArray[np.int64] | None
    size: int
    weight: NDArray[np.float64] | None
    replace: bool = True

    def draws(self) -> Draws:
        """The description that backends draw from."""
        n = self.n_rows if self.kept is None else self.kept.size
        return strata(None, n, np.array([self.size], np.int64), self.weight, self.replace)

    def original(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers in the table that was given."""
        return rows if self.kept is None else self.kept[rows]


def listed(value: Any) -> Any:
    """Arrays inside as lists or bytes, so that two values can be compared."""
    if isinstance(value, np.ndarray):
        return value.tolist() if value.dtype == object else (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, list):
        return [listed(part) for part in value]
    if isinstance(value, Bagging):
        return [listed(part) for part in (value.n_rows, value.kept, value.size, value.weight, value.replace)]
    return value


def spread(mean: NDArray[np.float64], bagging: Bagging) -> NDArray[np.float64]:
    """Estimates of the rows that were given; those of weight 0 took no part and have none."""
    if bagging.kept is None:
        return mean
    full = np.full((bagging.n_rows, mean.shape[1]), np.nan)
    full[bagging.kept] = mean
    return full


def draws_of_a_bag(max_samples: Any, n: int, weight: NDArray[np.float64] | None) -> int:
    """``max_samples`` as a number: all rows by default; a share is one of the weight of all rows."""
    if max_samples is None:
        return n
    if isinstance(max_samples, Integral):
        return int(max_samples)
    return max(1, int((n if weight is None else float(weight.sum())) * max_samples))
