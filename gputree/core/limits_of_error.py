"""C4.5's pessimistic estimate of errors. May import NumPy only."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Of the normal distribution: the share beyond z, as C4.5 tabulates it.
TAIL = (0.0, 0.001, 0.005, 0.01, 0.05, 0.10, 0.20, 0.40, 1.00)
Z = (4.0, 3.09, 2.58, 2.33, 1.65, 1.28, 0.84, 0.25, 0.00)
FEW, ONE = 1e-6, 0.9999  # errors below the first are none, below the second they are counted between 0 and 1


def added_errors(n: ArrayLike, errors: ArrayLike, confidence: float) -> NDArray[np.float64]:
    """Errors to add to those of a leaf or rule that covers n cases, so that the sum is an upper limit.

    Parameters
    ----------
    n : array-like of float (k,)
        Weights of the cases, above 0.
    errors : array-like of float (k,)
        Weights of the wrong ones, 0 to n.
    confidence : float
        Above 0 and below 1: how likely the true error is beyond the limit. Lower is more pessimistic.

    Returns
    -------
    float64 array (k,)

    References
    ----------
    Quinlan (1993), "C4.5: Programs for Machine Learning", section 4.2, with the constants of release 8: the exact
    binomial limit without errors, else the normal approximation with the correction for continuity; z is interpolated
    in a table (0.6925 for 25%, where the quantile is 0.6745).

    Examples
    --------
    >>> added_errors([6, 9, 1, 16], [0, 0, 0, 1], 0.25).round(3)
    array([1.238, 1.285, 0.75 , 1.507])
    """
    cases, wrong = np.broadcast_arrays(np.asarray(n, np.float64), np.asarray(errors, np.float64))
    none = cases * (1.0 - confidence ** (1.0 / cases))
    part = none + wrong * (wilson(cases, np.ones_like(cases), confidence) - none)
    limits = [wrong < FEW, wrong < ONE]
    added: NDArray[np.float64] = np.select(limits, [none, part], wilson(cases, wrong, confidence))
    return added


def wilson(n: NDArray[np.float64], errors: NDArray[np.float64], confidence: float) -> NDArray[np.float64]:
    """The same for one error or more."""
    c = float(np.interp(confidence, TAIL, Z)) ** 2
    e = errors + 0.5
    root = np.sqrt(np.maximum(c * (e * (1.0 - e / n) + c / 4.0), 0.0))
    return np.where(e >= n, 0.67 * (n - errors), n * (e + c / 2.0 + root) / (n + c) - errors)
