"""Whether classes and branches are independent: Pearson's chi-square test of many tests at once. May import core."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from gputree.core.expr import ratio

Floats = NDArray[np.float64]


def independence(counts: Floats, start: NDArray[np.intp]) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Pearson's statistic of branches x classes, its degrees of freedom and p, (k,) each, of k tests.

    Parameters
    ----------
    counts : f8 array (K, M)
        Rows of every class in the branches of all tests.
    start : int array (k,)
        Where the branches of every test begin.

    Notes
    -----
    Branches and classes without rows do not count: r branches and c classes leave (r - 1)(c - 1) degrees of freedom,
    and without any p is 1.

    Examples
    --------
    >>> statistic, freedom, p = independence(np.array([[9.0, 3.0], [3.0, 9.0]]), np.array([0]))
    >>> statistic, freedom, p.round(4)
    (array([6.]), array([1]), array([0.0143]))
    """
    n = counts.sum(axis=0)
    total = np.add.reduceat(counts, start, axis=1)
    owner = np.repeat(np.arange(start.size), np.diff(start, append=n.size))
    parts = np.asarray(ratio(np.asarray(ratio(counts * counts, total[:, owner])).sum(axis=0), n))
    statistic = np.maximum(total.sum(axis=0) * (np.add.reduceat(parts, start) - 1.0), 0.0)
    freedom = (np.add.reduceat((n > 0).astype(np.int64), start) - 1) * ((total > 0).sum(axis=0) - 1)
    p = np.where(freedom > 0, chdtrc(np.maximum(freedom, 1), statistic), 1.0)
    return statistic, freedom, p
