"""Backends by device name. Only this module names them; each is imported when it is first chosen."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from gputree.backends.arrays import device_number, on_device, to_host
from gputree.backends.protocol import Backend
from gputree.core.splits import Search
from gputree.core.target import Layout

DEVICES = ("auto", "cpu", "numpy", "jit", "cuda")
JIT_CELLS = 1 << 20  # cells from which compiled kernels pay for their loading (measured)
COLD_CELLS = 1 << 22  # and if they are to be compiled first, which takes as long as NumPy for so many (24 s)
AUTO_CELLS = 1 << 22  # cells from which "auto" asks for a GPU: below, the CPU is done before one has started


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a backend can run here, and if not, why."""

    name: str
    device: str
    available: bool
    reason: str


Fit = tuple[Layout, Search]
"""What tells which kernels a fit needs."""


def choose(
    device: str, work: int, near: int | None = None, n_jobs: int | None = None, fit: Fit | None = None
) -> Backend:
    """The backend for a device name and an amount of work in cells (rows x columns x trees, more for many classes).

    ``near`` is the number of the CUDA device that holds the data, if one does: then "auto" and "cuda" mean that one.
    "cpu" is NumPy for little work and where Numba is not installed, else compiled kernels in ``n_jobs`` threads. Until
    those of a ``fit``, or of predictions, are in the cache, more work is little.

    "auto" takes ``GPUTREE_DEVICE`` where it is set. Every backend gives the same bits: the choice only shows in time.

    Raises
    ------
    ValueError
        If the device is unknown.
    RuntimeError
        If it is known but cannot be used here.
    """
    from gputree.backends.oracle import Oracle

    wanted, source = wanted_device(device)
    small = work < AUTO_CELLS and near is None
    if wanted == "cpu" or (wanted == "auto" and (small or importlib.util.find_spec("cupy") is None)):
        return choose_cpu(work, n_jobs, fit)
    if wanted in ("numpy", "jit"):
        return Oracle() if wanted == "numpy" else open_jit(n_jobs)
    from gputree.backends.cuda import open_cuda

    try:
        return open_cuda(wanted if ":" in wanted else "cuda" if near is None else f"cuda:{near}")
    except RuntimeError as error:
        if wanted == "auto":
            return choose_cpu(work, n_jobs, fit, f"CuPy is installed, but {error}")
        remedy = "unset it, or set it to auto or cpu" if source else "use device='cpu' or 'auto'"
        raise RuntimeError(f"device={wanted!r}{source} cannot be used: {error}; {remedy}") from error


def choose_cpu(work: int, n_jobs: int | None, fit: Fit | None, note: str = "") -> Backend:
    """NumPy, or compiled kernels where they are installed and worth it."""
    from gputree.backends.oracle import Oracle

    if work < JIT_CELLS or importlib.util.find_spec("numba") is None or (work < COLD_CELLS and is_cold(fit)):
        return Oracle(note)
    try:
        return open_jit(n_jobs, note)
    except RuntimeError as error:
        return Oracle(note or f"Numba is installed, but {error}")


def is_cold(fit: Fit | None) -> bool:
    """Whether the kernels of a fit, or of predictions, are still to be compiled."""
    from gputree.backends.cpu.host import is_pair, layout_of
    from gputree.backends.cpu.module import has_compiled

    if fit is None or not fit[1].criterion.traced:
        return not has_compiled()
    layout, search = fit
    return not has_compiled(search.criterion, is_pair(layout_of(layout, search.limits)))


def open_jit(n_jobs: int | None, note: str = "") -> Backend:
    """Compiled kernels in threads."""
    if why := why_no_numba():
        raise RuntimeError(f"device='jit' needs Numba: {why}")
    from gputree.backends.jit import Jit

    return Jit(n_jobs, note)


def why_no_numba() -> str:
    """Why compiled kernels cannot be used, empty if they can."""
    if importlib.util.find_spec("numba") is None:
        return "it is not installed: pip install gputree[cpu]"
    try:
        importlib.import_module("numba")
    except Exception as error:  # it looks at the versions of NumPy and LLVM when it is imported
        return f"it cannot be imported ({error})"
    return ""


def wanted_device(device: str) -> tuple[str, str]:
    """A device name, "auto" as the environment has it, and a remark on where it comes from."""
    given = os.environ.get("GPUTREE_DEVICE") if device == "auto" else None
    source = " (from the environment variable GPUTREE_DEVICE)" if given else ""
    wanted = given or device
    if not re.fullmatch(r"auto|cpu|numpy|jit|cuda(:[0-9]+)?", wanted):
        raise ValueError(f"device={wanted!r}{source} must be 'auto', 'cpu', 'numpy', 'jit', 'cuda' or 'cuda:<number>'")
    return wanted, source


def choose_or_cpu(device: str, work: int, near: int | None = None, n_jobs: int | None = None) -> Backend:
    """As `choose`, on the CPU where the device is not here: a model predicts wherever it was fitted."""
    try:
        return choose(device, work, near, n_jobs)
    except RuntimeError:
        return choose("cpu", work, None, n_jobs)


def any_missing(X: Any) -> bool:
    """Whether a table holds missing values, asked where it lies, or on the host where that cannot be.

    X f4/f8 (n, F), dense or sparse.
    """
    from gputree.backends.oracle import Oracle

    if on_device(X):
        from gputree.backends.cuda import open_cuda

        with suppress(RuntimeError), closing(open_cuda(f"cuda:{device_number(X)}")) as backend:
            return backend.any_missing(X)
    return Oracle().any_missing(to_host(X))


def report() -> list[Availability]:
    """Every backend and whether it can run here."""
    why = why_no_numba()
    jit = Availability("jit", "cpu", not why, f"Numba: {why}" if why else "")
    return [Availability("numpy", "cpu", True, ""), jit, report_cuda()]


def report_cuda() -> Availability:
    """The current CUDA device by name, or why there is none."""
    from gputree.backends.cuda import open_cuda

    try:
        backend = open_cuda("cuda")
    except RuntimeError as error:
        return Availability("cuda", "cuda", False, str(error))
    backend.close()
    return Availability("cuda", f"{backend.device} ({backend.driver.sizes.name})", True, "")
