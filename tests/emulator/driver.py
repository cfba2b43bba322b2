"""The emulated device: what it is, what it counts, how it fails."""

from __future__ import annotations

import os
import random
import threading
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from tests.emulator.array_module import ArrayModule
from tests.emulator.errors import CUDADriverError, CUDARuntimeError, OutOfMemoryError
from tests.emulator.launch import Counters
from tests.emulator.module import RawModule

KB = 1024
SHARED_LIMITS = {
    48: (6, 1),
    64: (7, 5),
    99: (8, 6),
    163: (8, 0),
    227: (9, 0),
}  # KB a block may opt in to: first such card
SEED_VARIABLE = "GPUTREE_EMULATOR_SEED"
_64_BITS = (1 << 64) - 1


@dataclass(frozen=True)
class Properties:
    """What a program may ask of a device. Sizes in bytes."""

    name: str = "Emulated device"
    compute_capability: tuple[int, int] = (9, 0)
    multiprocessors: int = 132
    shared_per_block: int = 48 * KB
    shared_per_block_optin: int = 227 * KB
    shared_per_multiprocessor: int = 228 * KB
    max_threads_per_block: int = 1024
    total_memory: int = 80 << 30
    l2_size: int = 50 << 20

    @classmethod
    def of_shared_limit(cls, kilobytes: int) -> Properties:
        """A device of the first generation with 48, 64, 99, 163 or 227 KB of shared memory for a block."""
        return cls(
            name=f"Emulated device, {kilobytes} KB of shared memory",
            compute_capability=SHARED_LIMITS[kilobytes],
            shared_per_block_optin=kilobytes * KB,
            shared_per_multiprocessor=(kilobytes + 1) * KB,
        )

    @property
    def arch(self) -> int:
        """The value of __CUDA_ARCH__."""
        return 100 * self.compute_capability[0] + 10 * self.compute_capability[1]


@dataclass
class Transfers:
    """Copies and waits so far; fills and sorts do not wait."""

    copies_to_host: int = 0
    bytes_to_host: int = 0
    copies_to_device: int = 0
    bytes_to_device: int = 0
    copies_inside: int = 0
    bytes_inside: int = 0
    fills: int = 0
    sorts: int = 0
    allocations: int = 0
    synchronisations: int = 0  # every copy to the host is one

    def to_host(self, nbytes: int) -> None:
        self.copies_to_host += 1
        self.bytes_to_host += nbytes
        self.synchronisations += 1

    def to_device(self, nbytes: int) -> None:
        self.copies_to_device += 1
        self.bytes_to_device += nbytes

    def inside(self, nbytes: int) -> None:
        self.copies_inside += 1
        self.bytes_inside += nbytes


@dataclass
class Faults:
    """Faults to inject; None = never. Numbers count from 1, from the moment that they are set on a new emulator."""

    memory: int | None = None  # bytes that can be allocated in all, instead of the device's memory
    fail_launch: int | None = None  # this launch finds no resources; the device stays usable
    lose_device: int | None = None  # this call (of any kind) fails, and every later one
    launches: int = 0
    calls: int = 0

    def call(self, what: str) -> None:
        self.calls += 1
        if self.lose_device is not None and self.calls >= self.lose_device:
            raise CUDARuntimeError(f"cudaErrorIllegalAddress: an illegal memory access was encountered ({what})")

    def launch(self, kernel: str) -> None:
        self.call(f"launch of {kernel}")
        self.launches += 1
        if self.launches == self.fail_launch:
            raise CUDADriverError(
                f"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: too many resources requested for launch of {kernel}"
            )


@dataclass(eq=False)
class Emulator:
    """A machine with emulated CUDA devices: the array module `xp` and what stands behind it.

    Attributes
    ----------
    checked : bool
        Compile kernels with hooks at every access: races, bounds, memory never written, undefined behaviour, bytes.
    seed : int
        Decides the turns of threads and blocks, and the garbage. By default $GPUTREE_EMULATOR_SEED, or drawn; printed.
    properties : Properties
        Of every device.
    devices : int
        How many there are; 0 = no driver.
    unwritten : bool
        In checked mode, reading global memory that was never written is an error.
    votes_order_memory : bool
        Shuffles and votes order the memory accesses of their lanes, as __syncwarp does. CUDA does not promise it.
    seconds : float
        CPU time that a launch may take.
    faults, transfers, counters
        What to inject; copies and waits; work by name of kernel.
    """

    checked: bool = False
    seed: int = field(
        default_factory=lambda: int(os.environ.get(SEED_VARIABLE) or random.SystemRandom().getrandbits(32))
    )
    properties: Properties = field(default_factory=Properties)
    devices: int = 1
    unwritten: bool = True
    votes_order_memory: bool = False
    seconds: float = 60.0
    faults: Faults = field(default_factory=Faults)
    transfers: Transfers = field(default_factory=Transfers)
    counters: dict[str, Counters] = field(default_factory=lambda: defaultdict(Counters))

    def __post_init__(self) -> None:
        self._thread = threading.local()
        print(f"emulator seed {self.seed}")
        self._seeds = self.seed * 0x9E3779B97F4A7C15
        self.garbage = np.random.default_rng(self.seed)
        self.reserved = [0] * max(self.devices, 1)
        self.xp = ArrayModule(self)

    @property
    def current_device(self) -> int:
        """Of the calling thread, as in CUDA."""
        return int(getattr(self._thread, "device", 0))

    @current_device.setter
    def current_device(self, number: int) -> None:
        self._thread.device = number

    def next_seed(self) -> int:
        self._seeds = (self._seeds + 0xD1342543DE82EF95) & _64_BITS
        return self._seeds

    def load(self, code: str, options: tuple[str, ...]) -> RawModule:
        """Return a module of kernels, as ``xp.RawModule`` does."""
        return RawModule(self, code=code, options=options)

    @property
    def launches(self) -> int:
        return sum(counters.launches for counters in self.counters.values())

    def synchronise(self) -> None:
        self.faults.call("synchronise")
        self.transfers.synchronisations += 1

    # ---- memory of the devices, as pools take it ----

    def limit(self) -> int:
        return self.properties.total_memory if self.faults.memory is None else self.faults.memory

    def memory_info(self) -> tuple[int, int]:
        """Free and total bytes of the current device."""
        self.faults.call("memory_info")
        return max(0, self.limit() - self.reserved[self.current_device]), self.properties.total_memory

    def reserve(self, nbytes: int) -> None:
        self.faults.call("malloc")
        total = self.reserved[self.current_device] + nbytes
        if total > self.limit():
            raise OutOfMemoryError(
                f"Out of memory allocating {nbytes:,} bytes (allocated so far: {total - nbytes:,} bytes)."
            )
        self.reserved[self.current_device] = total

    def release(self, nbytes: int, device: int) -> None:
        self.reserved[device] -= nbytes
