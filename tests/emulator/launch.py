"""The library of a kernel text, loaded: its kernels, and one call that runs a launch. Mirrors abi.hpp."""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess
import threading
from collections.abc import Sequence
from ctypes import POINTER, Structure, c_char, c_char_p, c_double, c_int, c_ubyte, c_uint, c_uint64, c_void_p
from dataclasses import dataclass, fields
from pathlib import Path

from tests.emulator.errors import KernelError


class _Param(Structure):
    _fields_ = (("kind", c_char), ("pointee", c_char), ("is_const", c_ubyte), ("align", c_ubyte), ("size", c_uint))


class _Kernel(Structure):
    _fields_ = (
        ("name", c_char_p),
        ("call", c_void_p),
        ("n_params", c_int),
        ("params", POINTER(_Param)),
        ("max_threads", c_int),
    )


class _Shared(Structure):
    _fields_ = (("start", c_void_p), ("size", c_uint64), ("name", c_char_p))


class Range(Structure):
    """Memory that a launch may touch; see EmuRange."""

    _fields_ = (
        *((name, c_void_p) for name in ("start", "stop", "cells", "state", "origin")),
        ("name", c_char_p),
        ("writable", c_int),
        ("itemsize", c_int),
        ("shift", c_int),
    )


@dataclass
class Counters:
    """What launches of one kernel did, added up. Bytes are global ones that the program read and wrote.

    They are counted in checked mode only, and without atomics.
    """

    launches: int = 0
    blocks: int = 0
    threads: int = 0
    barriers: int = 0
    warp_operations: int = 0
    switches: int = 0
    shared_atomics: int = 0
    global_atomics: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    def add(self, other: Structure | Counters) -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name, 0))


class _Counters(Structure):
    _fields_ = tuple((field.name, c_uint64) for field in fields(Counters)[1:])


class _Report(Structure):
    _fields_ = (
        ("failed", c_int),
        ("block", c_uint * 3),
        ("thread", c_uint * 3),
        ("line", c_int),
        ("pc", c_uint64),
        ("other_pc", c_uint64),
        ("file", c_char * 200),
        ("message", c_char * 600),
    )


class _Launch(Structure):
    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("n_ranges", c_uint),
        ("args", POINTER(c_void_p)),
        ("ranges", POINTER(Range)),
        ("stacks", c_void_p),
        ("seed", c_uint64),
        ("epoch", c_uint),
        ("votes_order_memory", c_int),
        ("seconds", c_double),
        ("counters", _Counters),
        ("report", _Report),
    )


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel as the compiler saw it: kinds and sizes as in EmuParam."""

    kind: str
    pointee: str
    const: bool
    align: int
    size: int


@dataclass(frozen=True)
class Declaration:
    """A kernel of a library."""

    number: int
    name: str
    parameters: tuple[Parameter, ...]
    max_threads: int
    shared_bytes: int  # static, with that of functions it may call


@dataclass(frozen=True)
class Request:
    """Everything that a launch is given."""

    kernel: Declaration
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_mem: int
    addresses: Sequence[int]  # of the argument values
    ranges: Sequence[Range]
    seed: int  # of this launch
    seed_shown: int  # of the emulator
    seconds: float
    votes_order_memory: bool


# Signals and the epochs of shadows are the process's: one launch at a time.
_lock = threading.Lock()
_epoch = 1
_stacks: int | None = None  # for all libraries: they take 2,048 of the 65,530 mappings that a process may have


class Library:
    """A loaded library; ``kernels`` by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._dll = ctypes.CDLL(str(path))
        self._dll.emu_launch.argtypes = (c_int, POINTER(_Launch))
        self._dll.emu_map_stacks.restype = c_void_p
        self._dll.emu_list.restype = POINTER(_Kernel)
        self._dll.emu_arrays.restype = POINTER(_Shared)
        self.kernels = {kernel.name: kernel for kernel in self._declarations()}

    def _declarations(self) -> list[Declaration]:
        shared = self._shared_bytes()
        found: list[Declaration] = []
        for number in itertools.count():
            entry = self._dll.emu_list()[number]
            if entry.name is None:
                return found
            name = entry.name.decode()
            raw = entry.params[: entry.n_params]
            params = tuple(
                Parameter(p.kind.decode(), p.pointee.decode(), bool(p.is_const), p.align, p.size) for p in raw
            )
            size = shared.get(name, 0) + shared.get("", 0)
            found.append(Declaration(number, name, params, entry.max_threads, size))
        raise AssertionError("unreachable")

    def _shared_bytes(self) -> dict[str, int]:
        """Bytes of static shared memory by kernel; "" = in functions."""
        n = c_int()
        entries = self._dll.emu_arrays(ctypes.byref(n))
        sizes: dict[str, int] = {}
        for entry in entries[: n.value]:
            if entry.size:
                owner = entry.name.decode().partition(":")[0]
                sizes[owner] = sizes.get(owner, 0) + (entry.size + 7) // 8 * 8
        return sizes

    def run(self, request: Request) -> _Counters:
        """Run a launch to its end, or raise `KernelError`."""
        global _epoch, _stacks
        launch = _Launch(
            grid=request.grid,
            block=request.block,
            shared_bytes=request.shared_mem,
            n_ranges=len(request.ranges),
            args=(c_void_p * max(len(request.addresses), 1))(*request.addresses),
            ranges=(Range * max(len(request.ranges), 1))(*request.ranges),
            seed=request.seed,
            votes_order_memory=request.votes_order_memory,
            seconds=request.seconds,
        )
        with _lock:
            _stacks = _stacks or self._dll.emu_map_stacks()
            launch.epoch, launch.stacks = _epoch, _stacks
            failed = not _stacks or self._dll.emu_launch(request.kernel.number, ctypes.byref(launch))
            _epoch = launch.epoch
        if failed:
            raise MemoryError("the host has no memory for the stacks and shadows of a launch")
        if launch.report.failed:
            raise self._error(request, launch.report)
        counters: _Counters = launch.counters
        return counters

    def _error(self, request: Request, report: _Report) -> KernelError:
        place = f"{report.file.decode()}:{report.line}" if report.line else self.line_of(report.pc)
        return KernelError(
            message=report.message.decode(errors="replace"),
            kernel=request.kernel.name,
            block=tuple(report.block),
            thread=tuple(report.thread),
            place=place,
            other=self.line_of(report.other_pc) if report.other_pc else "",
            seed=request.seed_shown,
        )

    def line_of(self, pc: int) -> str:
        """Return "file:line" in the kernel text of an offset into the library."""
        tool = shutil.which("addr2line")
        if not pc or tool is None:
            return f"offset {pc:#x} of {self.path}" if pc else "an unknown line"
        command = [tool, "-i", "-e", str(self.path), hex(pc)]
        frames = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
        # an atomic or a shuffle is written in the subset; who uses it comes behind it
        names = [frame.split(" (")[0].rpartition("/")[2] for frame in frames]
        return next((name for name in names if not name.startswith("cuda_subset.hpp")), "an unknown line")
