"""The functions of a criterion as text: of C for the CUDA kernels, of Python for those that Numba compiles.

May import core only.
"""

from __future__ import annotations

from gputree.core.criteria import Criterion, Fold, TargetKind
from gputree.core.expr import Expr

FUNCTIONS = {
    "term": ("x", "n", "X", "N"),
    "branch": ("s", "n", "N"),
    "info": ("n", "N"),
    "final": ("gain", "info", "N"),
    "scale": ("N", "X"),
    "gain_scale": ("N", "X"),
}
"""Functions of a search, and their arguments."""
GROWTH = {"decrease": ("gain", "N")}  # ... of kernels that grow subtrees


def traced(criterion: Criterion, name: str) -> str:
    """The text of what a function of a criterion returns."""
    body: Expr = getattr(criterion, name)(*map(Expr, (FUNCTIONS | GROWTH)[name]))
    return body.text


def c_text(criterion: Criterion) -> str:
    """Return the C text of a criterion: `gt_` and a name of `FUNCTIONS` each, and `GT_FOLD_MAX`.

    `GT_FOLD_MAX` is 1 for a maximum, 0 for a sum; either starts from 0. The text calls functions of
    `kernels/common.cuh`, which must come before it.

    Examples
    --------
    >>> from gputree.core.criteria import CRITERIA
    >>> print(c_text(CRITERIA["gini"]).splitlines()[1])
    static __device__ __forceinline__ double gt_term(double x, double n, double X, double N) { return (x * x); }
    """
    lines = [f"#define GT_FOLD_MAX {int(criterion.fold is Fold.MAX)}"]
    for name in FUNCTIONS:
        head = ", ".join(f"double {argument}" for argument in FUNCTIONS[name])
        lines.append(
            f"static __device__ __forceinline__ double gt_{name}({head}) {{ return {traced(criterion, name)}; }}"
        )
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
    lines = [
        f"COUNTS = {criterion.needs is TargetKind.COUNTS}",
        f"PAIR = {pair}",
        f"FOLD_MAX = {criterion.fold is Fold.MAX}",
        f"TWO_BRANCHES = {criterion.two_branches}",
        f"POSITIVE_SUMS = {criterion.positive_sums}",
    ]
    for name, arguments in (FUNCTIONS | GROWTH).items():
        lines += ["@kernel", f"def gt_{name}({', '.join(arguments)}):", f"    return {traced(criterion, name)}"]
    return "\n".join(lines) + "\n"
