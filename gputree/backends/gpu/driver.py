"""What the CUDA backend knows of a device: array module, sizes, compiled kernels. May import core and source.

The array module is CuPy, or in the tests a stand-in that runs the same kernel text on the CPU. The backend allocates,
copies, slices and sorts its arrays; all arithmetic is done by kernels.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.protocol import DeviceError, DeviceMemoryError
from gputree.backends.source import read_kernel
from gputree.core.criteria import Criterion, TargetKind
from gputree.core.texts import c_text

ARRAY = Any  # an array on the device
OPTIONS = ("--fmad=false", "--std=c++17")  # contraction would round once where the CPU rounds twice
KINDS = {TargetKind.COUNTS: 0, TargetKind.RAW_SUMS: 1, TargetKind.CENTRED_SUMS: 2}
OLDEST = (7, 5)  # compute capability that CUDA 13 still serves
COMPILER = "install CUDA's compiler and headers with pip install 'cupy-cuda13x[ctk]' (or 12x)"
SHARED_BYTES = 48 << 10  # of a block without asking
BLOCKS = 16  # blocks of a plain launch for every multiprocessor, at most

_compiling = threading.Lock()


@dataclass(frozen=True, slots=True)
class Flavour:
    """What a module of kernels is specialised for; None where its text does not depend on it."""

    kind: TargetKind | None = None
    weighted: bool = False
    criterion: Criterion | None = None

    def options(self) -> tuple[str, ...]:
        """The compiler's options."""
        if self.kind is None:
            return OPTIONS
        return (*OPTIONS, f"-DGT_KIND={KINDS[self.kind]}", f"-DGT_WEIGHTED={int(self.weighted)}")


PLAIN = Flavour()


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the device has: multiprocessors, bytes of shared memory of a block and of a multiprocessor."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    shared_block: int
    shared_multiprocessor: int


@dataclass(slots=True)
class Driver:
    """The array module ``xp`` on one device, its kernels, and a memory pool of its own."""

    xp: Any
    device: int
    sizes: Sizes
    pool: Any
    errors: tuple[type[Exception], ...]
    compiled: dict[Any, Any]
    dummies: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, xp: Any, device: int, compiled: dict[Any, Any] | None = None) -> Driver:
        """Ask the device for its sizes; refuse one that is too old. ``compiled`` holds kernels of earlier drivers."""
        found = xp.cuda.runtime.getDeviceProperties(device)
        sizes = Sizes(
            found["name"].decode(),
            (found["major"], found["minor"]),
            found["multiProcessorCount"],
            found["sharedMemPerBlockOptin"],
            found["sharedMemPerMultiprocessor"],
        )
        if sizes.capability < OLDEST:
            has, least = (".".join(map(str, c)) for c in (sizes.capability, OLDEST))
            raise DeviceError(f"{sizes.name} has compute capability {has}; at least {least} is needed")
        errors = (xp.cuda.runtime.CUDARuntimeError, xp.cuda.driver.CUDADriverError)
        return cls(xp, device, sizes, xp.cuda.MemoryPool(), errors, {} if compiled is None else compiled)

    @contextmanager
    def use(self) -> Iterator[None]:
        """Make the device current and allocate from the own pool; the device's errors become ours."""
        try:
            with self.xp.cuda.Device(self.device), self.xp.cuda.using_allocator(self.pool.malloc):
                yield
        except MemoryError as error:  # CuPy's own is one; a sort's workspace raises the plain one
            raise DeviceMemoryError(
                f"{self.sizes.name} has no memory left ({error}): free some, give fewer rows or use device='cpu'"
            ) from error
        except self.errors as error:
            raise DeviceError(f"{self.sizes.name} failed: {error}: start a new process or use device='cpu'") from error

    def close(self) -> None:
        """Give all memory back to the device, even a lost one."""
        self.dummies.clear()
        with suppress(*self.errors), self.xp.cuda.Device(self.device):
            self.pool.free_all_blocks()

    def free(self) -> int:
        """Bytes that can still be allocated."""
        free, _ = self.xp.cuda.runtime.memGetInfo()
        return int(free) + int(self.pool.free_bytes())

    # -- arrays

    def put(self, values: Any, dtype: Any) -> ARRAY:
        """Copy host values to the device."""
        return self.xp.asarray(np.ascontiguousarray(values, dtype))

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> ARRAY:
        """Garbage."""
        return self.xp.empty(shape, dtype)

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> ARRAY:
        """Zeros."""
        return self.xp.zeros(shape, dtype)

    def nothing(self, dtype: Any) -> ARRAY:
        """An array for an argument that a kernel does not read."""
        name = np.dtype(dtype).name
        if name not in self.dummies:
            self.dummies[name] = self.xp.zeros(1, dtype)
        return self.dummies[name]

    def sort(self, array: ARRAY) -> None:
        """Sort in place. The workspace is asked for beforehand: some versions of CuPy sort wrongly without it."""
        if array.size:
            self.room(array)
            array.sort()

    def argsort(self, array: ARRAY) -> ARRAY:
        """Order of the sorted values, i8 (n,)."""
        self.room(array)
        return array.argsort()

    def room(self, array: ARRAY) -> None:
        """Raise where there is no memory for the workspace of a sort: keys and numbers twice."""
        self.empty(array.nbytes + 16 * array.size + (1 << 16), np.uint8)

    # -- kernels

    def kernel(self, file: str, name: str, flavour: Flavour = PLAIN) -> Any:
        """A compiled kernel of ``kernels/<file>.cu``."""
        key = (self.device, file, flavour)
        if (key, name) in self.compiled:
            return self.compiled[key, name]
        with _compiling:
            if (key, name) not in self.compiled:
                if key not in self.compiled:
                    criterion = flavour.criterion
                    texts = {} if criterion is None else {"criterion.cuh": c_text(criterion)}
                    text = read_kernel(f"{file}.cu", texts)
                    self.compiled[key] = self.xp.RawModule(code=text, options=flavour.options())
                self.compiled[key, name] = self.function(self.compiled[key], name)
            return self.compiled[key, name]

    def function(self, module: Any, name: str) -> Any:
        """One kernel of a module, which compiles it when it is first asked."""
        try:
            try:
                return module.get_function(name)
            except OSError:  # CuPy's cache on disk cannot be written: do without
                with in_memory():
                    return module.get_function(name)
        except self.errors:
            raise
        except Exception as error:
            line = next(iter(str(error).splitlines()), type(error).__name__)
            what = f"the kernels cannot be compiled for {self.sizes.name} ({line})"
            raise DeviceError(f"{what}: {COMPILER}, or use device='cpu'") from error

    def allow_shared(self, kernel: Any, nbytes: int) -> None:
        """Let a kernel take this much shared memory; asked once, for the call may wait for the device."""
        with _compiling:
            if nbytes > self.compiled.get(id(kernel), SHARED_BYTES):
                kernel.max_dynamic_shared_size_bytes = self.compiled[id(kernel)] = nbytes

    def launch(self, kernel: Any, work: int, threads: int, args: tuple[Any, ...]) -> None:
        """Launch a kernel whose threads share ``work`` among themselves."""
        if work > 0:
            blocks = max(1, min(-(-work // threads), BLOCKS * self.sizes.multiprocessors))
            kernel((blocks,), (threads,), args)


@contextmanager
def in_memory() -> Iterator[None]:
    """Let CuPy compile without its cache on disk."""
    before = os.environ.get("CUPY_CACHE_IN_MEMORY")
    os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
    try:
        yield
    finally:
        os.environ.pop("CUPY_CACHE_IN_MEMORY")
        if before is not None:
            os.environ["CUPY_CACHE_IN_MEMORY"] = before


def ints(*values: Any) -> tuple[np.int32, ...]:
    """Arguments of a kernel's ``int`` parameters."""
    return tuple(np.int32(v) for v in values)


def longs(*values: Any) -> tuple[np.int64, ...]:
    """Arguments of a kernel's ``gt_i64`` parameters."""
    return tuple(np.int64(v) for v in values)


def starts(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Running sums from 0, i8 (k + 1,)."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
