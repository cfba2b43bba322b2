"""Scores of candidate splits on NumPy arrays, and the grid on which they are compared.

The order of operations is that of the kernels. May import NumPy and `gputree.core.{criteria,expr}`.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gputree.core.criteria import Criterion
from gputree.core.expr import FloatArray


def parent(criterion: Criterion, X: FloatArray, N: FloatArray) -> FloatArray:
    """Return the parent's part of the gain: its value as a single branch.

    Parameters
    ----------
    X : float64 array (C, M)
        One output's channels.
    N : float64 array (M,)
        Weights.

    Returns
    -------
    float64 array (M,)
    """
    return criterion.value(X, N, X, N)


def gains(
    criterion: Criterion,
    x: Sequence[FloatArray],
    n: Sequence[FloatArray],
    X: FloatArray,
    N: FloatArray,
    own: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return gain and info of M candidates for one output; add gains over outputs, then apply ``criterion.final``.

    Additions run over channels, then over branches in order, from 0; the parent's part is subtracted last.

    Parameters
    ----------
    criterion : Criterion
    x : sequence of float64 arrays (C, M)
        Per branch, the output's channel totals.
    n : sequence of float64 arrays (M,)
        Per branch, its weight.
    X : float64 array (C, M) or (C, 1)
        The node's channel totals.
    N : float64 array (M,) or (1,)
        The node's weight.
    own : float64 array (M,), optional
        ``parent(criterion, X, N)`` where the caller has it.

    Returns
    -------
    gain, info : float64 arrays (M,)

    Examples
    --------
    Shalev-Shwartz and Ben-David, exercise 18.2: the first feature parts (2, 2) into (2, 1) and (0, 1).

    >>> from gputree.core.criteria import Entropy
    >>> one = np.ones(1)
    >>> x = [np.array([[2.0], [1.0]]), np.array([[0.0], [1.0]])]
    >>> gain, info = gains(Entropy(), x, [3 * one, one], np.array([[2.0], [2.0]]), 4 * one)
    >>> (gain / 4).round(4)
    array([0.3113])
    """
    gain = np.zeros(np.shape(n[0]))
    info = np.zeros(np.shape(n[0]))
    for x_branch, n_branch in zip(x, n, strict=True):
        gain += criterion.value(x_branch, n_branch, X, N)
        info += criterion.info(n_branch, N)
    gain -= parent(criterion, X, N) if own is None else own
    return gain, info


def gains_segmented(
    criterion: Criterion, x: FloatArray, n: FloatArray, X: FloatArray, N: FloatArray, starts: npt.NDArray[np.integer]
) -> tuple[FloatArray, FloatArray]:
    """Do the same as `gains` for any number of branches: a cell is a branch, consecutive cells form a candidate.

    Parameters
    ----------
    criterion : Criterion
    x : float64 array (C, cells)
    n : float64 array (cells,)
    X : float64 array (C, cells)
        The node's totals, repeated for each of its cells.
    N : float64 array (cells,)
    starts : integer array (candidates,)
        First cell of each candidate, ascending from 0; no candidate is empty.

    Returns
    -------
    gain, info : float64 arrays (candidates,)
    """
    sizes = np.diff(starts, append=n.size)
    owner = np.repeat(np.arange(starts.size), sizes)
    gain = np.zeros(starts.size)
    info = np.zeros(starts.size)
    # np.add.at adds cell by cell in order; np.add.reduceat adds in pairs
    np.add.at(gain, owner, criterion.value(x, n, X, N))
    np.add.at(info, owner, criterion.info(n, N))
    gain -= parent(criterion, X[:, starts], N[starts])
    return gain, info


FRACTION = np.uint64(0x000FFFFFFFFFFFFF)
POWER = np.uint64(0xFFF0000000000000)
ANCHOR = np.uint64(0x00C8000000000000)  # added to the bits of 2^k: the bits of 1.5 * 2^(k + 12)
LARGEST = np.uint64(0x7F20000000000000)  # 2^1011, the largest power whose anchor is finite


def grid(score: FloatArray, scale: FloatArray) -> FloatArray:
    """Round scores to the grid on which equal scores are ties.

    With q = 2^-40 times the least power of two not below max(abs(score), scale), a score becomes the nearest multiple
    of q, ties to even; 0 stays 0. Scores that differ by rounding errors alone become equal, unless a boundary between
    two multiples happens to lie between them. For one scale the map is monotone and idempotent: the order of two scores
    is never reversed, and rounding again changes nothing, for the powers of two, where q changes, lie on both grids.
    Infinite scores and those where score or scale exceeds 2^1011 stay as they are; below 2^-1022 the power is 2^-1022.

    Parameters
    ----------
    score, scale : float64 arrays
        They broadcast; scale >= 0.

    Returns
    -------
    float64 array

    Examples
    --------
    >>> grid(np.array([0.1 + 0.2]), np.array([1.0])) == grid(np.array([0.3]), np.array([1.0]))
    array([ True])
    """
    score = np.asarray(score, dtype=np.float64)
    size = np.maximum(np.abs(score), scale)
    bits = size.view(np.uint64)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is not used
        bits += FRACTION
        bits &= POWER
        off = bits > LARGEST
        bits += ANCHOR
        # One unit in the last place of the anchor, and of all sums with it, is q: the addition rounds.
        anchor = bits.view(np.float64)
        rounded = np.asarray(score + anchor)
        rounded -= anchor
    return np.where(off, score, rounded) if off.any() else rounded
