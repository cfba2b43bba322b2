"""Backends by device name. Only this module names them; each is imported when it is first chosen."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass

from gputree.backends.protocol import Backend

DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a backend can run here, and if not, why."""

    name: str
    device: str
    available: bool
    reason: str


def choose(device: str, work: int) -> Backend:
    """The backend for a device name and an amount of work in cells (rows x columns).

    "auto" takes ``GPUTREE_DEVICE`` where it is set. Every backend gives the same bits: the choice only shows in time.

    Raises
    ------
    ValueError
        If the device is unknown.
    RuntimeError
        If it is known but cannot be used here.
    """
    wanted = (os.environ.get("GPUTREE_DEVICE", "auto") if device == "auto" else device) or "auto"
    if wanted.split(":")[0] not in DEVICES or (":" in wanted and not wanted.startswith("cuda:")):
        source = "" if device != "auto" else " (from the environment variable GPUTREE_DEVICE)"
        raise ValueError(f"device={wanted!r}{source} must be 'auto', 'cpu', 'cuda' or 'cuda:<number>'")
    if wanted.startswith("cuda"):
        raise RuntimeError(f"device={wanted!r} cannot be used: {cuda_reason()}; use device='cpu' or 'auto'")
    from gputree.backends.oracle import Oracle

    return Oracle()


def choose_or_cpu(device: str, work: int) -> Backend:
    """As `choose`, on the CPU where the device is not here: a model predicts wherever it was fitted."""
    try:
        return choose(device, work)
    except RuntimeError:
        return choose("cpu", work)


def cuda_reason() -> str:
    """Why the CUDA backend cannot be used."""
    return "this version of gputree has no CUDA backend yet"


def report() -> list[Availability]:
    """Every backend and whether it can run here."""
    numba = "installed" if importlib.util.find_spec("numba") else "not installed"
    return [
        Availability("numpy", "cpu", True, ""),
        Availability(
            "jit", "cpu", False, f"this version of gputree has no compiled CPU backend yet (Numba is {numba})"
        ),
        Availability("cuda", "cuda", False, cuda_reason()),
    ]
