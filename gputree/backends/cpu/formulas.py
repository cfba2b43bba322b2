"""The default criterion, Gini: `gputree.core.criteria.python_text` puts that of a fit in the place of this file."""

from __future__ import annotations

from gputree.backends.cpu.marks import kernel
from gputree.backends.cpu.numbers import gt_ratio

COUNTS = True
PAIR = False
FOLD_MAX = False
TWO_BRANCHES = False
POSITIVE_SUMS = False


@kernel
def gt_term(x: float, n: float, X: float, N: float) -> float:
    """What a channel of a branch adds."""
    return x * x


@kernel
def gt_branch(s: float, n: float, N: float) -> float:
    """The value of a branch."""
    return gt_ratio(s, n)


@kernel
def gt_info(n: float, N: float) -> float:
    """What a branch adds to the information of the split itself."""
    return 0.0


@kernel
def gt_final(gain: float, info: float, N: float) -> float:
    """The score."""
    return gain


@kernel
def gt_scale(N: float, X: float) -> float:
    """The size of what cancels."""
    return N


@kernel
def gt_decrease(gain: float, N: float) -> float:
    """The gain in the unit of a total."""
    return gain


@kernel
def gt_gain_scale(N: float, X: float) -> float:
    """The size of what cancels in the gain."""
    return N
