"""The part of the `cupy` module that `cuda.py` may use, over an emulated device."""

from __future__ import annotations

import operator
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tests.emulator.device import DeviceArray
from tests.emulator.errors import CUDADriverError, CUDARuntimeError, OutOfMemoryError, Refused
from tests.emulator.memory import Allocation
from tests.emulator.module import Kernel, RawModule

if TYPE_CHECKING:
    from tests.emulator.driver import Emulator

Shape = int | tuple[int, ...]
_BLOCK = 512  # a pool's unit, as CuPy's


class MemoryPool:
    """As cupy.cuda.MemoryPool: what arrays give back stays reserved until `free_all_blocks`."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._used = [0] * max(emulator.devices, 1)
        self._kept = list(self._used)

    def malloc(self, size: int) -> Any:
        """Name this pool to ``using_allocator``; arrays call `take`."""
        raise Refused("allocate arrays with empty or zeros under using_allocator(pool.malloc)")

    def take(self, nbytes: int) -> int:
        size, device = -(-nbytes // _BLOCK) * _BLOCK, self._emulator.current_device
        if size > self._kept[device]:
            try:
                self._emulator.reserve(size)
            except OutOfMemoryError:
                self.free_all_blocks()
                self._emulator.reserve(size)
        else:
            self._kept[device] -= size
        self._used[device] += size
        return size

    def give(self, size: int, device: int) -> None:
        self._used[device] -= size
        self._kept[device] += size

    def free_all_blocks(self, stream: Any = None) -> None:
        device = self._emulator.current_device
        self._emulator.release(self._kept[device], device)
        self._kept[device] = 0

    def used_bytes(self) -> int:
        return self._used[self._emulator.current_device]

    def free_bytes(self) -> int:
        return self._kept[self._emulator.current_device]

    def total_bytes(self) -> int:
        return self.used_bytes() + self.free_bytes()


class Device:
    """As cupy.cuda.Device: ``with Device(1): ...`` makes it the current one."""

    def __init__(self, emulator: Emulator, number: int | None = None) -> None:
        self._emulator = emulator
        self.id = emulator.current_device if number is None else int(number)
        if not 0 <= self.id < emulator.devices:
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        self._before: list[int] = []

    def use(self) -> None:
        self._emulator.current_device = self.id

    def __enter__(self) -> Device:
        self._before.append(self._emulator.current_device)
        self.use()
        return self

    def __exit__(self, *error: object) -> None:
        self._emulator.current_device = self._before.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return self.id

    def synchronize(self) -> None:
        self._emulator.synchronise()

    @property
    def mem_info(self) -> tuple[int, int]:
        with self:
            return self._emulator.memory_info()

    @property
    def compute_capability(self) -> str:
        major, minor = self._emulator.properties.compute_capability
        return f"{major}{minor}"

    @property
    def attributes(self) -> dict[str, int]:
        p = self._emulator.properties
        return {
            "MultiProcessorCount": p.multiprocessors,
            "MaxSharedMemoryPerBlock": p.shared_per_block,
            "MaxSharedMemoryPerBlockOptin": p.shared_per_block_optin,
            "MaxSharedMemoryPerMultiprocessor": p.shared_per_multiprocessor,
            "MaxThreadsPerBlock": p.max_threads_per_block,
            "ComputeCapabilityMajor": p.compute_capability[0],
            "ComputeCapabilityMinor": p.compute_capability[1],
            "WarpSize": 32,
            "L2CacheSize": p.l2_size,
        }


class Stream:
    """As cupy.cuda.Stream; everything runs at once, so only its waits matter."""

    def __init__(self, emulator: Emulator, null: bool = False, non_blocking: bool = False) -> None:
        self._emulator, self.ptr = emulator, 0 if null else id(self)
        self._before: list[Stream] = []

    def __enter__(self) -> Stream:
        self._before.append(self._emulator.xp.cuda.stream)
        self._emulator.xp.cuda.stream = self
        return self

    def __exit__(self, *error: object) -> None:
        self._emulator.xp.cuda.stream = self._before.pop()

    def use(self) -> Stream:
        self._emulator.xp.cuda.stream = self
        return self

    def synchronize(self) -> None:
        self._emulator.synchronise()


class Cuda:
    """As cupy.cuda."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self.driver = SimpleNamespace(CUDADriverError=CUDADriverError)
        self.memory = SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
        self.runtime = SimpleNamespace(
            is_hip=False,
            CUDARuntimeError=CUDARuntimeError,
            getDeviceCount=self._count,
            getDevice=lambda: emulator.current_device,
            getDeviceProperties=self._properties,
            memGetInfo=emulator.memory_info,
            deviceSynchronize=emulator.synchronise,
            driverGetVersion=lambda: 13000,
            runtimeGetVersion=lambda: 13000,
        )
        self._default = MemoryPool(emulator)
        self._own = threading.local()  # CuPy's allocator is each thread's
        self.stream = Stream(emulator, null=True)

    @property
    def pool(self) -> MemoryPool:
        pool: MemoryPool = getattr(self._own, "pool", self._default)
        return pool

    def _count(self) -> int:
        if not self._emulator.devices:
            raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
        return self._emulator.devices

    def _properties(self, number: int) -> dict[str, Any]:
        p = self._emulator.properties
        Device(self._emulator, number)
        return {
            "name": p.name.encode(),
            "major": p.compute_capability[0],
            "minor": p.compute_capability[1],
            "multiProcessorCount": p.multiprocessors,
            "sharedMemPerBlock": p.shared_per_block,
            "sharedMemPerBlockOptin": p.shared_per_block_optin,
            "sharedMemPerMultiprocessor": p.shared_per_multiprocessor,
            "totalGlobalMem": p.total_memory,
            "l2CacheSize": p.l2_size,
            "maxThreadsPerBlock": p.max_threads_per_block,
            "warpSize": 32,
        }

    def is_available(self) -> bool:
        return self._emulator.devices > 0

    def Device(self, number: int | None = None) -> Device:
        return Device(self._emulator, number)

    def Stream(self, null: bool = False, non_blocking: bool = False) -> Stream:
        return Stream(self._emulator, null, non_blocking)

    def get_current_stream(self) -> Any:
        return self.stream

    def MemoryPool(self) -> MemoryPool:
        return MemoryPool(self._emulator)

    @contextmanager
    def using_allocator(self, malloc: Callable[[int], Any]) -> Iterator[None]:
        before, self._own.pool = self.pool, malloc.__self__  # type: ignore[attr-defined]
        try:
            yield
        finally:
            self._own.pool = before


class ArrayModule:
    """As cupy itself: ``xp.empty``, ``xp.RawModule``, ``xp.cuda``, the names of NumPy's types."""

    ndarray, RawKernel = DeviceArray, Kernel
    bool_, float32, float64 = np.bool_, np.float32, np.float64
    int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
    uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self.cuda = Cuda(emulator)

    def RawModule(self, *, code: str, options: tuple[str, ...] = (), backend: str = "nvrtc") -> RawModule:
        return RawModule(self._emulator, code=code, options=options, backend=backend)

    def get_default_memory_pool(self) -> MemoryPool:
        return self.cuda.pool

    def _allocate(self, shape: Shape, dtype: DTypeLike, garbage: np.random.Generator | None) -> DeviceArray:
        self._emulator.transfers.allocations += 1
        sizes = tuple(shape) if isinstance(shape, tuple | list) else (operator.index(shape),)
        nbytes = int(np.prod(sizes, dtype=object)) * np.dtype(dtype).itemsize
        pool = self.cuda.pool
        taken, device = pool.take(nbytes), self._emulator.current_device
        memory = Allocation(nbytes, device, garbage)
        weakref.finalize(memory, pool.give, taken, device)
        return DeviceArray(self._emulator, memory, memory.bytes.view(dtype).reshape(sizes))

    def empty(self, shape: Shape, dtype: DTypeLike = float) -> DeviceArray:
        """Garbage, another one for every seed."""
        return self._allocate(shape, dtype, self._emulator.garbage)

    def zeros(self, shape: Shape, dtype: DTypeLike = float) -> DeviceArray:
        made = self._allocate(shape, dtype, self._emulator.garbage)
        made.fill(0)
        return made

    def sparse(self, shape: Shape, dtype: DTypeLike = float) -> DeviceArray:
        """Zeros that cost host memory only where they are touched: arrays beyond 2^31 cells. Not in CuPy."""
        return self._allocate(shape, dtype, None)

    def empty_like(self, like: DeviceArray) -> DeviceArray:
        return self.empty(like.shape, like.dtype)

    def zeros_like(self, like: DeviceArray) -> DeviceArray:
        return self.zeros(like.shape, like.dtype)

    def asarray(self, values: Any, dtype: DTypeLike | None = None) -> DeviceArray:
        """Copy host values to the device; a device array comes back as it is."""
        if isinstance(values, DeviceArray):
            if dtype not in (None, values.dtype):
                raise Refused(f"asarray of {values.dtype} to {dtype} computes with a kernel of CuPy's; write a kernel")
            return values
        host: NDArray[Any] = np.ascontiguousarray(values, dtype).reshape(np.shape(values))
        made = self.empty(host.shape, host.dtype)
        made.set(host)
        return made

    def array(self, values: Any, dtype: DTypeLike | None = None) -> DeviceArray:
        made = self.asarray(values, dtype)
        return made.copy() if made is values else made

    def ascontiguousarray(self, values: DeviceArray) -> DeviceArray:
        if not values.flags.c_contiguous:
            raise Refused(f"ascontiguousarray of strides {values.strides} computes; slice it otherwise")
        return values

    def asnumpy(self, values: DeviceArray) -> NDArray[Any]:
        return values.get()

    def sort(self, values: DeviceArray) -> DeviceArray:
        made = values.copy()
        made.sort()
        return made

    def argsort(self, values: DeviceArray) -> DeviceArray:
        return values.argsort()

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"the stand-in module has no {name!r}: the backend allocates, copies, slices, launches and sorts"
        )
