"""Rows that a tree is pruned by: those of the fit, or some that are kept back. May import everything below."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.arrays import to_host
from gputree.core.keys import Stream, draw
from gputree.core.routes import Parts
from gputree.engine.pruning import Cases
from gputree.learners.grower import Rows


def dense(X: Any, which: NDArray[Any] | slice = slice(None)) -> NDArray[Any]:
    """Some rows of a table as an array, from a device or a sparse matrix too."""
    X = to_host(X)
    some: NDArray[Any] = X[which] if isinstance(X, np.ndarray) else X.tocsr()[which].toarray()
    return some


def cases_of(rows: Rows) -> Cases:
    """The rows of the fit of one tree, with their whole weights in its root."""
    target = rows.target
    assert target.labels is not None
    units = np.ones(rows.n_rows, np.int64) if target.weights.units is None else target.weights.units
    start = Parts(np.arange(rows.n_rows), np.zeros(rows.n_rows, np.intp), units)
    weight = (units * target.weights.unit).astype(np.float64)
    return Cases(dense(rows.X), target.labels, weight, start)


def held_out(labels: NDArray[Any], weight: NDArray[np.float64], fraction: float, seed: int) -> NDArray[np.bool_]:
    """Which rows (n,) to keep back: of each class a fraction of those of positive weight, rounded down.

    Parameters
    ----------
    labels : int array (n,)
        Numbers of classes.
    weight : f8 array (n,)
    fraction : float in (0, 1)
    seed : int
        Rows are ranked by a hash of it and their number.

    Raises
    ------
    ValueError
        If no class has rows enough.

    Examples
    --------
    >>> held_out(np.array([0, 0, 0, 1, 1]), np.ones(5), 0.5, 0)
    array([False, False,  True, False,  True])
    """
    row = np.flatnonzero(weight > 0)
    order = row[np.lexsort((draw(seed, Stream.HELD_OUT, row), labels[row]))]
    count = np.bincount(labels[order])
    rank = np.arange(order.size) - np.repeat(np.cumsum(count) - count, count)
    out = np.zeros(labels.size, bool)
    out[order] = rank < np.repeat(np.floor(fraction * count), count)
    if not out.any():
        raise ValueError(
            f"validation_fraction={fraction!r} of the rows of each class are kept back to prune by, and the largest "
            f"class has {count.max()}: give more rows, or another rule of pruning"
        )
    return out
