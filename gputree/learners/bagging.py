"""How the bags of a fitted forest were drawn. May import everything below."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.bags import Draws, strata

MOST_DRAWS = 2**32 - 1  # rows are numbered in 32 bits


@dataclass(frozen=True, slots=True)
class Bagging:
    """How the bags of a forest were drawn from the rows of its fit: what draws them again.

    ``kept`` (n,) are the numbers of the rows of positive weight, ``weight`` (n,) the probabilities of their draws or
    None. A bag has ``sizes`` (S,) draws, one number for each of the ``labels`` i8 (n,), or one for all rows;
    ``replace`` tells whether a row can be drawn again.
    """

    n_rows: int
    kept: NDArray[np.int64] | None
    sizes: NDArray[np.int64]
    weight: NDArray[np.float64] | None
    labels: NDArray[np.int64] | None = None
    replace: bool = True

    def draws(self) -> Draws:
        """The description that backends draw from."""
        n = self.n_rows if self.kept is None else self.kept.size
        return strata(self.labels, n, self.sizes, self.weight, self.replace)

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
        parts = (value.n_rows, value.kept, value.sizes, value.weight, value.labels, value.replace)
        return [listed(part) for part in parts]
    return value


def spread(mean: NDArray[np.float64], bagging: Bagging) -> NDArray[np.float64]:
    """Estimates of the rows that were given; those of weight 0 took no part and have none."""
    if bagging.kept is None:
        return mean
    full = np.full((bagging.n_rows, mean.shape[1]), np.nan)
    full[bagging.kept] = mean
    return full


def draws_of_a_bag(max_samples: Any, n: int, weight: NDArray[np.float64] | None) -> int:
    """``max_samples`` as a number: all rows of positive weight by default; a share is one of the weight of all rows."""
    if max_samples is None:
        return n if weight is None else int(np.count_nonzero(weight))
    draws = max_samples
    if not isinstance(max_samples, Integral):
        draws = (n if weight is None else float(weight.sum())) * max_samples
    if draws > MOST_DRAWS:
        raise ValueError(f"max_samples={max_samples!r} are {draws:,.0f} draws a tree, and {MOST_DRAWS:,} are the most")
    return max(1, int(draws))


def draws_of_classes(max_samples: Any, classes: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """``max_samples`` by class as numbers (k,); ``rows`` (k,) of positive weight."""
    names: list[Any] = classes.tolist()
    given: list[Any]
    if isinstance(max_samples, dict):
        strange, absent = ([c for c in a if c not in b] for a, b in ((max_samples, names), (names, max_samples)))
        if strange:
            raise ValueError(f"max_samples names {strange[0]!r}; the classes of y are {', '.join(map(repr, names))}")
        if absent:
            raise ValueError(f"max_samples has no number for class {absent[0]!r}; give 0 to draw none of its rows")
        given = [max_samples[name] for name in names]
    else:
        given = np.atleast_1d(np.asarray(max_samples, object)).tolist()
    if len(given) != len(names):
        held = "1 number" if len(given) == 1 else f"{len(given)} numbers"
        raise ValueError(f"max_samples has {held}, and y has {len(names)} classes: give one for each")
    for name, draws, there in zip(names, given, rows.tolist(), strict=True):
        if isinstance(draws, bool) or not isinstance(draws, Integral) or not 0 <= int(draws) <= MOST_DRAWS:
            raise ValueError(
                f"max_samples={draws!r} for class {name!r} must be a whole number of draws, from 0 to {MOST_DRAWS:,}"
            )
        if draws and not there:
            raise ValueError(f"max_samples={draws} for class {name!r}, which has no row of positive weight; give 0")
    if not any(given):
        raise ValueError("max_samples is 0 for every class; at least one number must be positive")
    return np.array(given, np.int64)


def equal_draws(total: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """``total`` draws in equal parts (k,) for the classes that have rows (k,), the rest to the first of them."""
    there = np.flatnonzero(rows)
    sizes = np.zeros(rows.size, np.int64)
    sizes[there] = total // there.size + (np.arange(there.size) < total % there.size)
    return sizes
