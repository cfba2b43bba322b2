"""Time, memory and accuracy of fitting one decision tree, beside scikit-learn in the same process.

    python -m benchmarks.bench_fit [--rows 400000] [--jobs depth10,unlimited,iris,memory,flights] [--save]

Prints figures and judges nothing: see README.md in this folder for what each job measures.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.data import XY, load

RESULTS = Path(__file__).parent / "results"

# Above 65,535 rows a feature is cut into 255 codes: the warm-up must compile what the measured fit will run.
WARM_UP_ROWS = 70_000
IRIS_RUNS = 200
IRIS_BAR_FACTOR, IRIS_BAR_MS = 3.0, 10.0
MEMORY_BAR_BYTES_PER_CELL = 3
# Stands in for the limit on the tables where a model does not report its own.
ASSUMED_TABLE_BYTES = 256 * 2**20


PACKAGES = ("numpy", "scikit-learn", "numba", "cupy-cuda12x", "cupy-cuda13x")
# OpenBLAS and the thread pools read these at import; a figure taken with one of them set is another figure.
SETTINGS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Machine:
    """`versions` and `settings` are (name, value) pairs; a setting that is not set has the value None."""

    cpu: str
    cores: int
    system: str
    python: str
    versions: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str | None], ...]

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {number}" for name, number in self.versions)
        settings = ", ".join(f"{name} {value or 'not set'}" for name, value in self.settings)
        return f"{self.cpu}, {self.cores} cores, {self.system}\nPython {self.python}, {versions}\n{settings}"


@dataclass(frozen=True)
class Options:
    rows: int
    runs: int
    device: str
    seed: int


@dataclass(frozen=True)
class Side:
    """One library in one comparison; times in seconds, in the order of the runs."""

    library: str
    times: tuple[float, ...]
    nodes: int
    accuracy: float

    @property
    def median(self) -> float:
        return statistics.median(self.times)


@dataclass(frozen=True)
class Comparison:
    """`ratio` is scikit-learn's median over ours: above 1, ours is faster. `bar` is in seconds, None without one."""

    job: str
    size: str
    parameters: str
    ours: Side
    peer: Side
    ratio: float
    bar: float | None = None

    def __str__(self) -> str:
        lines = [f"{self.job}: {self.size}, {self.parameters or 'default parameters'}"]
        for side in (self.ours, self.peer):
            low, high = _seconds(min(side.times)), _seconds(max(side.times))
            lines.append(
                f"  {side.library:<13} median {_seconds(side.median)} ({low} to {high}, {len(side.times)} runs), "
                f"accuracy {side.accuracy:.4f}, {side.nodes:,} nodes"
            )
        lines.append(f"  ratio scikit-learn / gputree: {self.ratio:.2f}")
        if self.bar is not None:
            lines.append(f"  bar for gputree: {_seconds(self.bar)} ({_within(self.ours.median, self.bar)})")
        return "\n".join(lines)


@dataclass(frozen=True)
class Memory:
    """Peak memory that a fit needs on top of what was held before it, X and y included in the latter."""

    job: str
    size: str
    cells: int
    extra_bytes: int
    table_bytes: int
    bar_bytes: int

    def __str__(self) -> str:
        per_cell = self.extra_bytes / self.cells
        return (
            f"{self.job}: {self.size}\n"
            f"  gputree       {_mib(self.extra_bytes)} extra at the peak, {per_cell:.2f} bytes a cell\n"
            f"  bar for gputree: {_mib(self.bar_bytes)} = {MEMORY_BAR_BYTES_PER_CELL} bytes a cell + "
            f"{_mib(self.table_bytes)} of tables ({_within(self.extra_bytes, self.bar_bytes)})"
        )


Result = Comparison | Memory


# --- jobs -----------------------------------------------------------------------------------------------------------


def depth10(options: Options) -> Result:
    X, y, holdout = _higgs(options)
    return _compare("depth10", (X, y), holdout, options, max_depth=10, criterion="gini")


def unlimited(options: Options) -> Result:
    X, y, holdout = _higgs(options)
    return _compare("unlimited", (X, y), holdout, options, min_samples_leaf=5)


def flights(options: Options) -> Result:
    # Rows come shuffled by the seed, so a tail is a sample; 336,776 is all of them.
    X, y = load("flights", 336_776, options.seed)
    rows = min(options.rows, len(y) * 4 // 5)
    held = slice(rows, rows + min(100_000, rows // 4))
    return _compare("flights", (X[:rows], y[:rows]), (X[held], y[held]), options, min_samples_leaf=20)


def iris(options: Options) -> Result:
    X, y = load("iris", 150, options.seed)
    result = _compare("iris", (X, y), (X, y), replace(options, runs=max(options.runs, IRIS_RUNS)))
    return replace(result, bar=IRIS_BAR_FACTOR * result.peer.median + IRIS_BAR_MS / 1000)


def memory(options: Options) -> Result:
    """Run `_memory_here` in a fresh interpreter, whose peak nothing else has raised."""
    settings = ["--rows", str(options.rows), "--device", options.device, "--seed", str(options.seed)]
    command = [sys.executable, "-m", "benchmarks.bench_fit", "--memory-here", *settings]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise RuntimeError(f"the memory job failed with status {answer.returncode}:\n{answer.stderr}")
    return Memory(**json.loads(answer.stdout.splitlines()[-1]))


JOBS: dict[str, Callable[[Options], Result]] = {
    "depth10": depth10,
    "unlimited": unlimited,
    "iris": iris,
    "memory": memory,
    "flights": flights,
}


def _higgs(options: Options) -> tuple[Any, Any, XY]:
    held = min(100_000, max(1, options.rows // 4))
    X, y = load("higgs", options.rows + held, options.seed)
    return X[: options.rows], y[: options.rows], (X[options.rows :], y[options.rows :])


def _compare(job: str, train: XY, holdout: XY, options: Options, **parameters: Any) -> Comparison:
    from sklearn.tree import DecisionTreeClassifier as Peer

    from gputree import DecisionTreeClassifier as Ours

    models = (
        ("gputree", Ours(random_state=0, device=options.device, **parameters)),
        ("scikit-learn", Peer(random_state=0, **parameters)),
    )
    X, y = train
    for _, model in models:
        model.fit(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])
    times: dict[str, list[float]] = {library: [] for library, _ in models}
    for _ in range(options.runs):
        # In turn, so that a slow spell of the machine meets both.
        for library, model in models:
            start = time.perf_counter()
            model.fit(X, y)
            times[library].append(time.perf_counter() - start)
    ours, peer = (
        Side(library, tuple(times[library]), node_count(model), float(model.score(*holdout)))
        for library, model in models
    )
    scored = "scored on the same rows" if holdout[1] is y else f"holdout {len(holdout[1]):,}"
    size = f"{X.shape[0]:,} x {X.shape[1]} {X.dtype}, {scored}"
    described = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    return Comparison(job, size, described, ours, peer, peer.median / ours.median)


def _memory_here(options: Options) -> Memory:
    """Measure in this process, which must have done nothing else."""
    from gputree import DecisionTreeClassifier

    X, y, _ = _higgs(options)
    model = DecisionTreeClassifier(max_depth=10, random_state=0, device=options.device)
    # Imports, compiled code and thread pools are paid once, not by the fit.
    model.fit(X[:2000], y[:2000])
    before = resident_bytes()
    model.fit(X, y)
    extra, tables = peak_bytes() - before, table_bytes_limit(model)
    size = f"{X.shape[0]:,} x {X.shape[1]} {X.dtype}, max_depth=10"
    return Memory("memory", size, X.size, extra, tables, MEMORY_BAR_BYTES_PER_CELL * X.size + tables)


# --- the machine ------------------------------------------------------------------------------------------------------


def this_machine() -> Machine:
    return Machine(
        cpu=_cpu_model(),
        cores=_usable_cores(),
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        versions=tuple((name, found) for name in PACKAGES if (found := _version(name))),
        settings=tuple((name, os.environ.get(name)) for name in SETTINGS),
    )


def resident_bytes() -> int:
    """Bytes of memory held now; the peak where the system does not tell."""
    return _from_status("VmRSS:") or peak_bytes()


def peak_bytes() -> int:
    """Most bytes of memory that this program has held.

    Linux hands ru_maxrss of the parent on to a child, which hides a child that needs less; VmHWM starts afresh.
    """
    unit = 1 if sys.platform == "darwin" else 1024
    return _from_status("VmHWM:") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _from_status(field: str) -> int:
    return 1024 * int((_first_line("/proc/self/status", field) or "0").split()[0])


def _cpu_model() -> str:
    return _first_line("/proc/cpuinfo", "model name\t:") or platform.processor() or platform.machine()


def _first_line(file: str, start: str) -> str:
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return ""
    return next((line.removeprefix(start).strip() for line in lines if line.startswith(start)), "")


def _usable_cores() -> int:
    # A container or taskset may grant fewer cores than the machine has.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


# --- hooks: what a fitted model tells -------------------------------------------------------------------------------


def node_count(model: Any) -> int:
    """Nodes of a fitted tree of either library."""
    tree = model.tree_ if hasattr(model, "tree_") else model.forest_
    return int(tree.node_count if hasattr(tree, "node_count") else tree.n_nodes)


def table_bytes_limit(model: Any) -> int:
    """Most bytes of tables that the fit was allowed to hold at once."""
    return int(getattr(getattr(model, "fit_info_", None), "table_bytes", ASSUMED_TABLE_BYTES))


# --- printing and saving --------------------------------------------------------------------------------------------


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.2f} ms"


def _mib(value: int) -> str:
    return f"{value / 2**20:.1f} MiB"


def _within(value: float, bar: float) -> str:
    return f"within: {value / bar:.2f} of it" if value <= bar else f"above: {value / bar:.2f} times it"


def _save(machine: Machine, options: Options, results: list[Result]) -> Path:
    RESULTS.mkdir(exist_ok=True)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    cpu = re.sub(r"[^a-z0-9]+", "-", machine.cpu.lower()).strip("-")
    file = RESULTS / f"fit-{cpu}-{machine.cores}-cores-{today}.json"
    content = {"machine": asdict(machine), "options": asdict(options), "results": [asdict(one) for one in results]}
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return file


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_fit", description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=400_000, help="rows to fit (default: %(default)s)")
    parser.add_argument("--jobs", default=",".join(JOBS), help="which, in this order (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="timed fits of each library (default: %(default)s)")
    parser.add_argument("--device", default="auto", help="device of gputree (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the tables (default: %(default)s)")
    parser.add_argument("--save", action="store_true", help="also write benchmarks/results/fit-<machine>-<date>.json")
    parser.add_argument("--memory-here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    arguments.jobs = [name for name in arguments.jobs.split(",") if name]
    for name in arguments.jobs:
        if name not in JOBS:
            parser.error(f"no job {name!r}; choose from {', '.join(JOBS)}")
    if arguments.rows < 100 or arguments.runs < 3:
        parser.error(f"--rows {arguments.rows} --runs {arguments.runs}: at least 100 rows and 3 runs are needed")
    return arguments


def main(argv: list[str] | None = None) -> None:
    arguments = _arguments(argv)
    options = Options(arguments.rows, arguments.runs, arguments.device, arguments.seed)
    if arguments.memory_here:
        print(json.dumps(asdict(_memory_here(options))))
        return
    machine = this_machine()
    print(machine, flush=True)
    results = []
    for name in arguments.jobs:
        results.append(JOBS[name](options))
        print(f"\n{results[-1]}", flush=True)
    if arguments.save:
        print(f"\nwritten: {_save(machine, options, results)}")


if __name__ == "__main__":
    main()
