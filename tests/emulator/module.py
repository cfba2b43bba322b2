"""`RawModule` and its kernels, called as CuPy's are and checked as CUDA would check them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tests.emulator import compiler
from tests.emulator.arguments import Arguments, check_arguments
from tests.emulator.errors import KernelError, LaunchError
from tests.emulator.launch import Declaration, Library, Request

if TYPE_CHECKING:
    from tests.emulator.driver import Emulator

Triple = tuple[int, int, int]
_GRID_LIMIT = (2**31 - 1, 65535, 65535)
_BLOCK_LIMIT = (1024, 1024, 64)
_MOST_BLOCKS = 1 << 22  # a launch of more would take minutes
_libraries: dict[str, Library] = {}


def _library(text: str, options: Sequence[str], arch: int, checked: bool) -> Library:
    path = compiler.build(text, options, arch, checked)
    if path.name not in _libraries:
        _libraries[path.name] = Library(path)
    return _libraries[path.name]


class RawModule:
    """Kernel text; compiled at the first `get_function`, like CuPy's.

    Parameters
    ----------
    emulator : Emulator
        The array module fills it in: call ``xp.RawModule(code=..., options=...)``.
    code : str
        CUDA C++ in the subset of ``cuda_subset.hpp``, with ``extern "C" __global__ void name(...)``.
    options : tuple of str
        ``--fmad=false`` must be there; ``-DNAME=VALUE`` specialises.
    """

    def __init__(self, emulator: Emulator, *, code: str, options: tuple[str, ...] = (), backend: str = "nvrtc") -> None:
        if backend != "nvrtc" or not isinstance(options, tuple):
            raise LaunchError(f"backend {backend!r} and options {options!r}; they must be 'nvrtc' and a tuple")
        self.code, self.options = code, options
        self._emulator = emulator
        self._loaded: Library | None = None

    def compile(self, log_stream: Any = None) -> None:
        if self._loaded is None:
            e = self._emulator
            self._loaded = _library(self.code, self.options, e.properties.arch, e.checked)

    def get_function(self, name: str) -> Kernel:
        self._emulator.faults.call("get_function")
        self.compile()
        assert self._loaded is not None
        if name not in self._loaded.kernels:
            known = ", ".join(self._loaded.kernels) or "none"
            raise LaunchError(f"no kernel {name!r} in this text; it has: {known}")
        names = compiler.parameter_names(self.code, name)
        return Kernel(self._emulator, self._loaded, self._loaded.kernels[name], names)


class Kernel:
    """A kernel that can be launched: ``kernel(grid, block, args, shared_mem=0)``."""

    def __init__(self, emulator: Emulator, library: Library, declared: Declaration, names: Sequence[str]) -> None:
        self._emulator, self._library, self._declared, self._names = emulator, library, declared, names
        self.name = declared.name
        self._dynamic = emulator.properties.shared_per_block - declared.shared_bytes
        if self._dynamic < 0:
            most = emulator.properties.shared_per_block
            raise LaunchError(f"{self.name}: {declared.shared_bytes} bytes of static shared memory; at most {most}")

    @property
    def shared_size_bytes(self) -> int:
        """Bytes of static shared memory."""
        return self._declared.shared_bytes

    @property
    def max_threads_per_block(self) -> int:
        return self._declared.max_threads or self._emulator.properties.max_threads_per_block

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        return self._dynamic

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        most = self._emulator.properties.shared_per_block_optin - self.shared_size_bytes
        if not 0 <= size <= most:
            raise LaunchError(f"{self.name}: max_dynamic_shared_size_bytes={size}; this device allows 0 .. {most}")
        self._dynamic = int(size)

    @property
    def attributes(self) -> dict[str, int]:
        names = ("shared_size_bytes", "max_threads_per_block", "max_dynamic_shared_size_bytes")
        return {name: getattr(self, name) for name in names}

    def __call__(self, grid: Any, block: Any, args: Any, *, shared_mem: int = 0) -> None:
        e = self._emulator
        sizes = self._check_sizes(grid, block), self._check_shared(shared_mem)
        arguments = check_arguments(self._declared, self._names, args)
        self._check_devices(arguments)
        e.faults.launch(self.name)
        ((grid3, block3), shared) = sizes
        ranges = arguments.ranges(e.checked, e.unwritten)
        counters = e.counters[self.name]
        counters.launches += 1
        seed = e.next_seed()
        request = Request(
            *(self._declared, grid3, block3, shared, arguments.addresses, ranges, seed, e.seed, e.seconds),
            votes_order_memory=e.votes_order_memory,
        )
        counters.add(self._library.run(request))
        self._look_around(arguments)

    def _look_around(self, arguments: Arguments) -> None:
        """Look for writes around arrays; in plain mode everything writable counts as written."""
        for name, array, const in arguments.arrays:
            if not (const or self._emulator.checked):
                array.memory.wrote(array._host)
            if (offset := array.memory.spoilt) is not None:
                text = f"out of bounds: wrote byte {offset} of the memory of `{name}`, which has {array.memory.nbytes}"
                raise KernelError(text, self.name, (), (), "an unknown line: plain mode", "", self._emulator.seed)

    def _check_devices(self, arguments: Arguments) -> None:
        current = self._emulator.current_device
        for name, array, _ in arguments.arrays:
            if array.memory.device != current:
                raise LaunchError(f"argument {name} lies on device {array.memory.device}; the current one is {current}")

    def _check_sizes(self, grid: Any, block: Any) -> tuple[Triple, Triple]:
        grid3, block3 = _triple("grid", grid, _GRID_LIMIT), _triple("block", block, _BLOCK_LIMIT)
        threads, blocks = block3[0] * block3[1] * block3[2], grid3[0] * grid3[1] * grid3[2]
        if threads > self.max_threads_per_block:
            raise LaunchError(
                f"{self.name}: {threads} threads in a block {block3}; at most {self.max_threads_per_block}"
            )
        if blocks > _MOST_BLOCKS:
            raise LaunchError(f"{self.name}: {blocks} blocks; the emulator runs at most {_MOST_BLOCKS}")
        return grid3, block3

    def _check_shared(self, shared_mem: Any) -> int:
        size = operator.index(shared_mem)
        if not 0 <= size <= self._dynamic:
            raise LaunchError(
                f"{self.name}: shared_mem={size}; at most {self._dynamic}, unless max_dynamic_shared_size_bytes is set"
            )
        return size


def _triple(what: str, value: Any, limit: Triple) -> Triple:
    if not isinstance(value, tuple) or not 1 <= len(value) <= 3:
        raise LaunchError(f"{what}={value!r}; it must be a tuple of one to three integers")
    if not all(isinstance(size, int) and not isinstance(size, bool) for size in value):
        raise LaunchError(f"{what}={value!r}; its sizes must be Python integers")
    full = (*value, 1, 1)[:3]
    if not all(1 <= size <= most for size, most in zip(full, limit, strict=True)):
        raise LaunchError(f"{what}={value!r}; its sizes must be in 1 .. {limit}")
    return full
