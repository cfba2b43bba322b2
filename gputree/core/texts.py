"""The functions of a criterion as text: of C for the CUDA kernels, of Python for those that Numba compiles.

May import core only.
"""

from __future__ import annotations

from gputree.core.criteria import Criterion, Fold, TargetKind
from gputree.core.expr import Expr


def c_text(criterion: Criterion) -> str:
    """Return the C text of a criterion: `gt_term`, `gt_branch`, `gt_info`, `gt_final`, `gt_scale`, `GT_FOLD_MAX`.

    `GT_FOLD_MAX` is 1 for a maximum, 0 for a sum; either starts from 0. The text calls functions of
    `kernels/common.cuh`, which must come before it.

    Examples
    --------
    >>> from gputree.core.criteria import CRITERIA
    >>> print(c_text(CRITERIA["gini"]).splitlines()[1])
    static __device__ __forceinline__ double gt_term(double x, double n, double X, double N) { return (x * x); }
    """
    x, n, X, N, s, gain, info = (Expr(name) for name in ("x", "n", "X", "N", "s", "gain", "info"))
    functions = {
        "gt_term(double x, double n, double X, double N)": criterion.term(x, n, X, N),
        "gt_branch(double s, double n, double N)": criterion.branch(s, n, N),
        "gt_info(double n, double N)": criterion.info(n, N),
        "gt_final(double gain, double info, double N)": criterion.final(gain, info, N),
        "gt_scale(double N, double X)": criterion.scale(N, X),
    }
    lines = [f"#define GT_FOLD_MAX {int(criterion.fold is Fold.MAX)}"]
    for head, body in functions.items():
        lines.append(f"static __device__ __forceinline__ double {head} {{ return {body.text}; }}")
    return "\n".join(lines) + "\n"


def python_text(criterion: Criterion, pair: bool = False) -> str:
    """Return the Python text of a criterion: `gputree/backends/cpu/formulas.py` for this one.

    ``pair``: whether tables have one output and two channels, which loops then need not find out.

    Examples
    --------
    >>> from gputree.core.criteria import CRITERIA
    >>> print(python_text(CRITERIA["gini"]).splitlines()[7])
        return (x * x)
    """
    x, n, X, N, s, gain, info = (Expr(name) for name in ("x", "n", "X", "N", "s", "gain", "info"))
    functions = {
        "gt_term(x, n, X, N)": criterion.term(x, n, X, N),
        "gt_branch(s, n, N)": criterion.branch(s, n, N),
        "gt_info(n, N)": criterion.info(n, N),
        "gt_final(gain, info, N)": criterion.final(gain, info, N),
        "gt_scale(N, X)": criterion.scale(N, X),
        "gt_decrease(gain, N)": criterion.decrease(gain, N),
    }
    lines = [
        f"COUNTS = {criterion.needs is TargetKind.COUNTS}",
        f"PAIR = {pair}",
        f"FOLD_MAX = {criterion.fold is Fold.MAX}",
        f"TWO_BRANCHES = {criterion.two_branches}",
        f"POSITIVE_SUMS = {criterion.positive_sums}",
    ]
    for head, body in functions.items():
        lines += ["@kernel", f"def {head}:", f"    return {body.text}"]
    return "\n".join(lines) + "\n"
