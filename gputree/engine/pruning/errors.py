"""Upper limits of errors that a node has not made yet. May import NumPy and SciPy only."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

Floats: TypeAlias = NDArray[np.float64]
Added: TypeAlias = Callable[[Floats, Floats, float], Floats]
"""Errors to be expected beyond those made: from weights N and errors E of nodes, and a confidence CF."""

TABLE = np.array(
    [
        [0.0, 0.001, 0.005, 0.01, 0.05, 0.10, 0.20, 0.40, 1.0],
        [4.0, 3.09, 2.58, 2.33, 1.65, 1.28, 0.84, 0.25, 0.0],
    ]
)  # CF, and the normal deviate that C4.5 prints for it
NO_ERROR, ONE_ERROR = 1e-6, 0.9999  # C4.5's: fewer errors are none; from there on the formula counts
MOST_J48 = 0.5  # CF from which on the normal deviate is negative
AT_MOST = 0.67  # of the cases left, where nearly all are errors


def c45_errors(N: Floats, E: Floats, cf: float) -> Floats:
    """What release 8 of C4.5 adds.

    Parameters
    ----------
    N, E : f8 array (M,)
        Weights of nodes and of their errors; 0 <= E <= N.
    cf : float in (0, 1)

    Returns
    -------
    f8 array (M,)
        0 where N is 0.

    Notes
    -----
    Quinlan (1993), "C4.5: Programs for Machine Learning", chapter 4: without errors the exact binomial limit, else
    the normal approximation with a continuity correction, with a deviate interpolated in a table. Between 0 and 1 error
    the two are interpolated.

    Examples
    --------
    Quinlan's U(1, 16) is .157:

    >>> round(float(1 + c45_errors(np.array([16.0]), np.array([1.0]), 0.25)[0]) / 16, 3)
    0.157
    """
    z = float(np.interp(cf, *TABLE))
    rest = np.where(E + 0.5 >= N, AT_MOST * (N - E), wilson(N, E, z))
    one = np.where(N <= 1.5, AT_MOST * (N - 1), wilson(N, np.ones_like(N), z))
    return with_few(N, np.where(E < NO_ERROR, 0.0, E), cf, np.where(E >= ONE_ERROR, rest, np.nan), one)


def j48_errors(N: Floats, E: Floats, cf: float) -> Floats:
    """What Weka's J48 adds: as `c45_errors`, with the exact normal deviate and all cases that are left as errors.

    Parameters and results are those of `c45_errors`.

    Examples
    --------
    >>> j48_errors(np.array([16.0]), np.array([1.0]), 0.25).round(4)
    array([1.4757])
    """
    z = float(ndtri(1.0 - cf))
    rest = np.where(E + 0.5 >= N, np.maximum(N - E, 0.0), wilson(N, E, z))
    one = np.where(N <= 1.5, np.maximum(N - 1, 0.0), wilson(N, np.ones_like(N), z))
    return with_few(N, E, cf, np.where(E >= 1.0, rest, np.nan), one)


def check_j48(name: str, cf: float, where: str, remedy: str) -> None:
    """Refuse a confidence of which `j48_errors` makes no limit; raises ValueError."""
    if cf > MOST_J48:
        raise ValueError(
            f"{name}={cf!r} must be at most {MOST_J48} with {where}, whose normal approximation expects fewer errors "
            f"than were made beyond it; give {remedy}"
        )


def binomial_errors(N: Floats, E: Floats, cf: float) -> Floats:
    """The exact binomial limit: U with P(at most E errors of N; U) = cf, times N, less E.

    Parameters and results are those of `c45_errors`.

    Notes
    -----
    Clopper and Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of the binomial",
    Biometrika 26:404-413; by the quantiles of the beta distribution, also for weights that are no whole numbers.

    Examples
    --------
    >>> ((1 + binomial_errors(np.array([16.0]), np.array([1.0]), 0.25)) / 16).round(4)
    array([0.1596])
    """
    left = np.maximum(N - E, 0.0)
    limit = np.where(left > 0, betaincinv(E + 1.0, np.where(left > 0, left, 1.0), 1.0 - cf), 1.0)
    return np.where(N > 0, N * limit - E, 0.0)


def wilson(N: Floats, E: Floats, z: float) -> Floats:
    """The upper limit for the share of errors with a continuity correction (Wilson 1927), times N, less E."""
    with np.errstate(divide="ignore", invalid="ignore"):
        e, c = E + 0.5, z * z
        p = (e + c / 2 + z * np.sqrt(np.maximum(e * (1 - e / N) + c / 4, 0.0))) / (N + c)
        limit: Floats = N * p - E
    return limit


def with_few(N: Floats, E: Floats, cf: float, more: Floats, one: Floats) -> Floats:
    """Where ``more`` is NaN for few errors, the binomial limit of none, or between it and that of ``one``."""
    with np.errstate(divide="ignore"):
        none = np.where(N > 0, N * -np.expm1(np.log(cf) / N), 0.0)
    few = np.where(E > 0, none + E * (one - none), none)
    return np.where(N > 0, np.where(np.isnan(more), few, more), 0.0)


ADDED: dict[str, Added] = {"j48": j48_errors, "c45": c45_errors, "binomial": binomial_errors}
