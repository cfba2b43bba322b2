"""What the parts of `benchmarks.gpu` share: a clock, a budget of time, the device, comparisons, peak memory.

Everything here runs on CuPy, and at toy size on the emulator of the tests, which has no events: there the wall clock
is read. Of arrays on the device only what both have is used: allocate, copy, slice.
"""

from __future__ import annotations

import importlib
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gputree.backends.cuda import Cuda
from gputree.backends.gpu.driver import OPTIONS, PLAIN, Driver, Flavour

RUNS = 3
# One thread that is busy for some 0.1 ms, so that what is measured is in the device's queue before its turn comes.
DELAY = """extern "C" __global__ void delay(unsigned* x, int turns) {
    unsigned h = x[0];
    for (int i = 0; i < turns; ++i) h = (h ^ h >> 15) * 0x2C1B3C6Du + 1u;
    x[0] = h;
}
"""
TURNS = 20_000


class LeftOut(Exception):
    """A part does not fit into the time that is left, or needs what is not here."""


class Mismatch(AssertionError):
    """Two results that must be equal are not."""


# --- time -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Span:
    """Something timed; `seconds` is known when the device has passed its end."""

    ended: Callable[[], float]

    @property
    def seconds(self) -> float:
        return self.ended()


class Clock:
    """Times work on the device: by its events where it has them, else by the wall clock."""

    def __init__(self, xp: Any) -> None:
        self.xp, self.events = xp, hasattr(xp.cuda, "Event")
        self.busy: Any = None

    @contextmanager
    def span(self) -> Iterator[list[Span]]:
        """Time a block; the list holds its span afterwards."""
        found: list[Span] = []
        if self.events:
            self.delay()
            start, stop = self.xp.cuda.Event(), self.xp.cuda.Event()
            start.record()
            yield found
            stop.record()
            found.append(Span(lambda: self.between(start, stop)))
        else:
            begin = self.now()
            yield found
            seconds = self.now() - begin
            found.append(Span(lambda: seconds))

    def between(self, start: Any, stop: Any) -> float:
        stop.synchronize()
        return float(self.xp.cuda.get_elapsed_time(start, stop)) / 1000

    def now(self) -> float:
        self.xp.cuda.runtime.deviceSynchronize()
        return time.perf_counter()

    def delay(self) -> None:
        if self.busy is None:
            kernel = self.xp.RawModule(code=DELAY, options=OPTIONS).get_function("delay")
            self.busy = kernel, self.xp.zeros(1, np.uint32)
        kernel, x = self.busy
        kernel((1,), (1,), (x, np.int32(TURNS)))


@dataclass(frozen=True)
class Timing:
    """Seconds of several runs, in their order."""

    runs: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.runs)

    def record(self) -> dict[str, Any]:
        return {"median": self.median, "low": min(self.runs), "high": max(self.runs), "runs": list(self.runs)}


@dataclass
class Budget:
    """Seconds for the whole program, and what did not fit."""

    seconds: float
    begin: float = field(default_factory=time.perf_counter)

    @property
    def spent(self) -> float:
        return time.perf_counter() - self.begin

    @property
    def left(self) -> float:
        return self.seconds - self.spent

    def require(self, seconds: float, what: str) -> None:
        """Raise `LeftOut` if so much time is not left."""
        if seconds > self.left:
            raise LeftOut(f"{what} takes about {seconds:.0f} s; {max(self.left, 0):.0f} s are left")


def alternate(
    budget: Budget, sides: dict[str, Callable[[], Any]], warm_up: float, runs: int = RUNS
) -> dict[str, Timing]:
    """Wall times, in turn, of calls that end with their results on the host; their warm-up took ``warm_up`` seconds."""
    budget.require(runs * warm_up, f"{runs} runs of {', '.join(sides)}")
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(runs):
        for name, call in sides.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: Timing(tuple(seconds)) for name, seconds in times.items()}


# --- the device -----------------------------------------------------------------------------------------------------


@dataclass
class Lab:
    """The array module, the sizes to run at, and what is left of the time. `cache` holds tables that parts share."""

    xp: Any
    toy: bool
    budget: Budget
    clock: Clock
    device: int = 0
    compiled: dict[Any, Any] = field(default_factory=dict)
    cache: dict[str, Any] = field(default_factory=dict)

    def size(self, full: int, toy: int) -> int:
        return toy if self.toy else full

    @contextmanager
    def backend(self) -> Iterator[Cuda]:
        """A CUDA backend whose memory is given back."""
        backend = Cuda(Driver.of(self.xp, self.device, self.compiled))
        try:
            yield backend
        finally:
            backend.close()

    def free(self) -> int:
        return int(self.xp.cuda.runtime.memGetInfo()[0])

    def peer(self, name: str) -> Any:
        """A module, None where it cannot be imported; a broken installation raises whatever it likes."""
        try:
            return importlib.import_module(name)
        except Exception:
            return None


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel."""

    kernel: str
    span: Span


@dataclass
class TimedDriver(Driver):
    """A driver whose launches are timed one by one."""

    clock: Any = None
    launches: list[Launch] = field(default_factory=list)

    def kernel(self, file: str, name: str, flavour: Flavour = PLAIN) -> Any:
        return TimedKernel(Driver.kernel(self, file, name, flavour), name, self)

    def allow_shared(self, kernel: Any, nbytes: int) -> None:
        Driver.allow_shared(self, kernel.kernel, nbytes)


@dataclass(frozen=True)
class TimedKernel:
    kernel: Any
    name: str
    driver: TimedDriver

    def __call__(self, grid: Any, block: Any, args: Any, **options: Any) -> None:
        with self.driver.clock.span() as spans:
            self.kernel(grid, block, args, **options)
        self.driver.launches.append(Launch(self.name, spans[0]))


def describe_card(xp: Any, device: int) -> dict[str, Any]:
    """Name, driver, versions, sizes of the card."""
    found, runtime = xp.cuda.runtime.getDeviceProperties(device), xp.cuda.runtime
    return {
        "name": found["name"].decode(),
        "capability": f"{found['major']}.{found['minor']}",
        "multiprocessors": int(found["multiProcessorCount"]),
        "memory_bytes": int(found["totalGlobalMem"]),
        "driver": kernel_driver(),
        "cuda_of_driver": dotted(runtime.driverGetVersion()),
        "cuda": dotted(runtime.runtimeGetVersion()),
        "cupy": str(getattr(xp, "__version__", "")),
    }


def dotted(number: int) -> str:
    """13020 -> 13.2."""
    return f"{number // 1000}.{number % 1000 // 10}"


def kernel_driver() -> str:
    """The driver's version as Linux tells it, else empty."""
    try:
        words = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8").split()
    except OSError:
        return ""
    return next((word for word in words if word[0].isdigit() and "." in word), "")


class PeakMemory:
    """The most device memory in use at once, over what was in use before: asked for every millisecond."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.nbytes, self.done = lab, 0, threading.Event()

    def __enter__(self) -> PeakMemory:
        self.before = self.lab.free()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.done.set()
        self.thread.join()

    def watch(self) -> None:
        with self.lab.xp.cuda.Device(self.lab.device):  # a thread begins on device 0
            while not self.done.wait(0.001):
                self.nbytes = max(self.nbytes, self.before - self.lab.free())


# --- comparisons ----------------------------------------------------------------------------------------------------


def same(what: str, ours: Any, other: Any) -> int:
    """Raise `Mismatch` unless two results are equal to the bit; gives the number of values compared."""
    if is_dataclass(other):
        return sum(same(f"{what}.{f.name}", getattr(ours, f.name), getattr(other, f.name)) for f in fields(other))
    if isinstance(other, tuple):
        if len(ours) != len(other):
            raise Mismatch(f"{what}: {len(ours)} parts, not {len(other)}")
        return sum(same(f"{what}[{i}]", a, b) for i, (a, b) in enumerate(zip(ours, other, strict=True)))
    if not isinstance(other, np.ndarray):
        if ours != other:
            raise Mismatch(f"{what}: {ours!r}, not {other!r}")
        return 1
    if ours.shape != other.shape or ours.dtype != other.dtype:
        raise Mismatch(f"{what}: {ours.dtype} {ours.shape}, not {other.dtype} {other.shape}")
    wrong = np.flatnonzero(unlike(ours, other).ravel())
    if wrong.size:
        at = np.unravel_index(wrong[0], ours.shape)
        raise Mismatch(
            f"{what}: {wrong.size} of {ours.size} differ, first at {tuple(map(int, at))}: "
            f"{ours[at]!r}, not {other[at]!r}"
        )
    return int(ours.size)


def unlike(a: Any, b: Any) -> Any:
    """Where values differ; NaN equals NaN, -0.0 is not 0.0."""
    if a.dtype.kind != "f":
        return a != b
    return ((a != b) & ~(np.isnan(a) & np.isnan(b))) | (np.signbit(a) != np.signbit(b)) & (a == 0)
