"""What the emulator raises.

Faults of the program derive from AssertionError, so that no handler of CUDA errors in the library can swallow them.
The others carry the names and bases of CuPy's, for the library must handle them.
"""

from __future__ import annotations

from dataclasses import dataclass


class CompilerMissing(Exception):
    """No host compiler: the emulator cannot run here."""


class CompileError(AssertionError):
    """The kernel text is not in the subset, or does not compile."""


class LaunchError(AssertionError):
    """A launch that CUDA would refuse, or take and then misread: wrong arguments or sizes."""


class Refused(AssertionError, TypeError):
    """Something that `cuda.py` must not do with a device array: it would wait for the device, or compute."""


@dataclass(eq=False)
class KernelError(AssertionError):
    """A fault inside a kernel."""

    message: str
    kernel: str
    block: tuple[int, ...]
    thread: tuple[int, ...]
    place: str  # "file:line", or what is known of it
    other: str  # of the other access of a race, else ""
    seed: int

    def __str__(self) -> str:
        other = f"\n  the other access: {self.other}" if self.other else ""
        return (
            f"kernel {self.kernel}: {self.message}\n"
            f"  at {self.place}, block {self.block}, thread {self.thread}{other}\n"
            f"  the threads take the same turns again with Emulator(seed={self.seed})"
        )


class CUDADriverError(RuntimeError):
    """As cupy.cuda.driver.CUDADriverError."""


class CUDARuntimeError(RuntimeError):
    """As cupy.cuda.runtime.CUDARuntimeError."""


class OutOfMemoryError(MemoryError):
    """As cupy.cuda.memory.OutOfMemoryError."""
