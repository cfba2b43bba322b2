"""gputree beside scikit-learn, LightGBM, XGBoost and YDF: time, size, score and memory of the same jobs in one table.

    python -m benchmarks.compare [--jobs tree10,treefull,forest20,...] [--rows 400000] [--runs 3] [--numpy] [--save]

Libraries fit in turn in one process, with the same rows and threads, after a warm-up of each on at most 70,000 rows; a
fit is all from float32 rows to the model, bins included. How each is set is told in `compare_peers`. Reported:
seconds (median, least, most), the ratio of the medians, gputree / the other, beside the bar it is held to, nodes grown,
accuracy (or R^2) and AUC on holdout rows, and the peak memory of a fit in an interpreter of its own, over X, y and what
a first fit leaves behind. Bars are for 400,000 x 28 on two cores. Prints figures and judges nothing.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import os
import re
import statistics
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench_fit import RESULTS, Machine, this_machine
from benchmarks.compare_peers import LIBRARIES, Library, Setting, memory_of, scores_of, warm_up
from benchmarks.data import XY, load

UNWANTED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
SCORE_BAR, MEMORY_BAR, ROWS_BAR = 0.003, 1.5, 1.3
CALLS = 100  # calls that are timed together where one row is predicted
WIDTHS = (16, 13, 8, 8, 8, 7, 6, 10, 8, 7, 7)
HEAD = ("job", "library", "seconds", "least", "most", "ratio", "bar", "nodes", "score", "AUC", "MiB")


@dataclass(frozen=True)
class Case:
    """One comparison. `share` is that of ``--rows``, `bars` are most ratios by library, `predict` rows to predict."""

    name: str
    setting: Setting
    table: str = "higgs"
    share: float = 1.0
    columns: int | None = None  # the first ones only
    bars: dict[str, float] = field(default_factory=dict)
    predict: tuple[int, ...] = ()
    scaling: str = ""  # what this case and the first of its job differ in
    memory: bool = True


TREE10, FOREST20 = Setting(depth=10), Setting(depth=16, trees=20, forest=True)
TREE_BARS = {"LightGBM": 0.6, "scikit-learn": 0.05}
FOREST_BARS = {"LightGBM": 0.5, "scikit-learn": 0.15, "XGBoost": 0.2}
SCALES = ((0.25, "rows / 4"), (1.0, "rows"), (4.0, "rows x 4"))
JOBS: dict[str, tuple[Case, ...]] = {
    "tree6": (Case("tree6", Setting(depth=6)),),
    "tree10": (Case("tree10", TREE10, bars=TREE_BARS),),
    "tree16": (Case("tree16", Setting(depth=16)),),
    "treefull": (Case("treefull", Setting(min_leaf=5), bars={"scikit-learn": 0.1}),),
    "forest20": (Case("forest20", FOREST20, bars=FOREST_BARS),),
    "forest20full": (Case("forest20full", Setting(trees=20, forest=True), bars={"scikit-learn": 0.2}),),
    "forest100": (Case("forest100", Setting(depth=16, trees=100, forest=True)),),
    "forest100full": (Case("forest100full", Setting(trees=100, forest=True)),),
    "regression": (Case("regression", replace(TREE10, classes=0), "regression"),),
    "classes100": (Case("classes100", replace(TREE10, classes=100), "classes100"),),
    "wide": (Case("wide", TREE10, "wide", 1 / 20),),
    "small": (Case("small", TREE10, share=1 / 40),),
    "flights": (Case("flights", Setting(min_leaf=20), "flights"),),
    "rows": tuple(Case(name, TREE10, share=share, scaling="rows", memory=False) for share, name in SCALES),
    "columns": tuple(Case(f"{n} columns", TREE10, columns=n, scaling="columns", memory=False) for n in (7, 14, 28)),
    "threads": tuple(
        Case(f"{kind} x{n}", replace(setting, threads=n), scaling="threads", memory=False)
        for kind, setting in (("tree10", TREE10), ("forest20", FOREST20))
        for n in (1, 2)
    ),
    "predict": (Case("predict", FOREST20, bars={"scikit-learn": 0.5}, predict=(100_000, 1), memory=False),),
}


@dataclass
class Side:
    """One library in one comparison; times in seconds, in the order of the runs. `problem` says why there are none."""

    library: str
    times: list[float] = field(default_factory=list)
    nodes: int = 0
    scores: dict[str, float] = field(default_factory=dict)
    memory: int | None = None
    compiled: float = 0.0  # seconds of the warm-up, where it compiled what no cache held
    problem: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.times)


@dataclass
class Entry:
    """Figures of one comparison."""

    job: str
    name: str
    size: str
    rows: int
    setting: Setting
    bars: dict[str, float]
    sides: list[Side]
    scaling: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def ours(self) -> Side | None:
        """The first of gputree's that ran."""
        return next((one for one in self.sides if one.library.startswith("gputree") and one.times), None)

    @property
    def peers(self) -> list[Side]:
        return [one for one in self.sides if one is not self.ours and one.times]

    @property
    def medians(self) -> dict[str, float]:
        return {one.library: one.median for one in self.sides if one.times}

    @property
    def ratios(self) -> dict[str, float]:
        return {one.library: self.ours.median / one.median for one in self.peers} if self.ours else {}


# --- measuring ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def tables(table: str, rows: int, seed: int, columns: int | None) -> tuple[XY, XY]:
    """Rows to fit and holdout rows: a quarter as many, at most 100,000."""
    held = min(100_000, max(1, rows // 4))
    if table == "flights":  # all there are, of which four fifths are fitted at most
        X, y = load(table, 336_776, seed)
        rows = min(rows, len(y) * 4 // 5)
        held = min(held, len(y) - rows)
    else:
        X, y = load(table, rows + held, seed)
    X = np.ascontiguousarray(X[: rows + held, :columns])
    return (X[:rows], y[:rows]), (X[rows:], y[rows : rows + held])


def attempt(side: Side, work: Callable[[], Any]) -> Any:
    """The result of some work of a side; where it fails, the side says so, and its later work is left out."""
    try:
        return None if side.problem else work()
    except Exception as error:
        side.problem = f"failed: {type(error).__name__}: {error}".splitlines()[0]
        return None


def start(case: Case, options: argparse.Namespace, train: XY) -> dict[str, Side]:
    """The sides of a comparison, each after its warm-up."""
    sides = {name: Side(name, problem=LIBRARIES[name].missing()) for name in options.libraries}
    for name, side in sides.items():
        before, begin = compiled_files(), time.perf_counter()
        attempt(side, partial(warm_up, LIBRARIES[name], case.setting, *train))
        if compiled_files() != before:
            side.compiled = time.perf_counter() - begin
    return sides


def compiled_files() -> int:
    """Files of machine code that gputree keeps."""
    from gputree.backends.cpu.module import cache_folder

    return sum(1 for _ in cache_folder().rglob("*.nbc"))


def measure_fit(job: str, case: Case, options: argparse.Namespace) -> Iterator[Entry]:
    """Time fits in turn; the last models are counted and scored."""
    train, held = tables(case.table, int(options.rows * case.share), options.seed, case.columns)
    sides, models = start(case, options, train), dict[str, Any]()
    for _ in range(options.runs):
        for name, side in sides.items():
            models[name] = None
            gc.collect()
            models[name] = timed(side, partial(LIBRARIES[name].fit, case.setting, *train))
    for name, side in sides.items():
        attempt(side, partial(judge, side, LIBRARIES[name], models[name], case.setting, held))
        models[name] = None
    if case.memory and options.memory:
        weigh(sides, case.setting, train)
    yield entry(job, case, options, sides, train, len(held[1]))


def measure_predict(job: str, case: Case, options: argparse.Namespace) -> Iterator[Entry]:
    """Fit once, then time predictions in turn."""
    train, held = tables(case.table, int(options.rows * case.share), options.seed, case.columns)
    fitted = start(case, options, train)
    models = {name: attempt(side, partial(LIBRARIES[name].fit, case.setting, *train)) for name, side in fitted.items()}
    for name, side in fitted.items():
        attempt(side, partial(judge, side, LIBRARIES[name], models[name], case.setting, held))
    for rows in case.predict:
        X, calls = held[0][:rows], CALLS if rows == 1 else 1
        sides = {name: replace(side, times=[]) for name, side in fitted.items()}
        for _ in range(options.runs):
            for name, side in sides.items():
                timed(side, partial(LIBRARIES[name].predict, models[name], case.setting, X), calls)
        bars = case.bars if rows > 1 else {}
        one = replace(case, name=f"{case.name} {len(X):,}", bars=bars)
        yield entry(job, one, options, sides, train, len(held[1]))


def timed(side: Side, work: Callable[[], Any], calls: int = 1) -> Any:
    """The result of some work, whose time a call is added to the side's."""
    begin, found = time.perf_counter(), None
    for _ in range(calls):
        found = attempt(side, work)
    if not side.problem:
        side.times.append((time.perf_counter() - begin) / calls)
    return found


def judge(side: Side, library: Library, model: Any, setting: Setting, held: XY) -> None:
    side.nodes = library.nodes(model)
    side.scores = scores_of(library.predict(model, setting, held[0]), held[1], setting)


def weigh(sides: dict[str, Side], setting: Setting, train: XY) -> None:
    """Peak memory of a fit of each library; the file of the table lies in the temporary folder meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        for name, values in zip("Xy", train, strict=True):
            np.save(Path(folder) / f"{name}.npy", values)
        for name, side in sides.items():
            side.memory = attempt(side, partial(memory_of, name, setting, Path(folder)))


def entry(job: str, case: Case, options: argparse.Namespace, sides: dict[str, Side], train: XY, held: int) -> Entry:
    X = train[0]
    name = f"{len(X):,} rows" if case.scaling == "rows" else case.name
    size = f"{case.table} {X.shape[0]:,} x {X.shape[1]} {X.dtype}, {held:,} held out"
    found = Entry(job, name, size, len(X), case.setting, case.bars, list(sides.values()), case.scaling)
    return replace(found, notes=notes(found))


# --- the table ------------------------------------------------------------------------------------------------------


def notes(one: Entry) -> list[str]:
    """What is said below the lines of a comparison."""
    found = [
        f"compiled: {side.library}, whose warm-up took {side.compiled:.1f} s" for side in one.sides if side.compiled
    ]
    gaps = []
    for score, own in one.ours.scores.items() if one.ours else ():
        peers = [side for side in one.peers if not side.library.startswith("gputree")]
        others = [side.scores[score] for side in peers if score in side.scores]
        gaps += [f"{score} {max(others) - own:+.4f}"] if others else []
    if gaps:
        bar = f" (bar {SCORE_BAR})" if one.setting.classes else ""
        found.append(f"best of the others less gputree: {', '.join(gaps)}{bar}")
    other = next((side for side in one.peers if side.library == "LightGBM"), None)
    if one.ours and one.ours.memory and other and other.memory:
        found.append(f"memory: gputree / LightGBM {one.ours.memory / other.memory:.2f} (bar {MEMORY_BAR})")
    return found


def scaled(first: Entry, one: Entry) -> str:
    """Seconds of a comparison over those of the first of its job; by rows: seconds a row."""
    per = one.rows / first.rows if one.scaling == "rows" else 1.0
    before, now = first.medians, one.medians
    shares = [f"{name} {seconds / before[name] / per:.2f}" for name, seconds in now.items() if name in before]
    kind = f"seconds a row (bar {ROWS_BAR})" if one.scaling == "rows" else "seconds"
    return f"{kind} over those of {first.name}: {', '.join(shares)}"


def lines(one: Entry) -> Iterator[str]:
    """A line for each library, then what is said of all."""
    indent = " " * (WIDTHS[0] + 1)
    for i, side in enumerate(one.sides):
        name = one.name if i == 0 else ""
        if not side.times:
            yield f"{name:<{WIDTHS[0]}} {side.library:<{WIDTHS[1]}} {side.problem}"
            continue
        score = next((value for key, value in side.scores.items() if key != "AUC"), None)
        figures = (side.median, min(side.times), max(side.times), one.ratios.get(side.library))
        yield row(
            (
                *(name, side.library),
                *(short(value) for value in figures),
                *(short(one.bars.get(side.library)), f"{side.nodes:,}"),
                *("-" if value is None else f"{value:.4f}" for value in (score, side.scores.get("AUC"))),
                "-" if side.memory is None else f"{side.memory / 2**20:,.0f}",
            )
        )
        if side.problem:
            yield f"{indent}{side.problem}"
    for note in (one.size, *one.notes):
        yield textwrap.fill(note, 118, initial_indent=indent, subsequent_indent=f"{indent}  ")


def short(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def row(cells: Any) -> str:
    return " ".join(f"{c:<{w}}" if i < 2 else f"{c:>{w}}" for i, (c, w) in enumerate(zip(cells, WIDTHS, strict=True)))


# --- the command ----------------------------------------------------------------------------------------------------


def run(options: argparse.Namespace, folder: Path = RESULTS) -> list[Entry]:
    """Measure, print each comparison when it is done, and write the file after each job if it is asked for."""
    machine, found = described(options), list[Entry]()
    print(f"{machine}\n\n{row(HEAD)}\n{row(['-' * width for width in WIDTHS])}", flush=True)
    file = None
    for job in options.jobs:
        first: dict[Setting, Entry] = {}
        for case in JOBS[job]:
            try:
                measured = list((measure_predict if case.predict else measure_fit)(job, case, options))
            except ImportError as error:  # a real table that is not installed
                print(f"{case.name:<{WIDTHS[0]}} left out: {error}", flush=True)
                continue
            for one in measured:
                begin = first.setdefault(replace(one.setting, threads=0), one)
                if one.scaling and begin is not one:
                    one.notes.append(scaled(begin, one))
                found.append(one)
                print("\n".join(lines(one)), flush=True)
        file = save(machine, options, found, folder) if options.save else None
    if file:
        print(f"\nwritten: {file}")
    return found


def described(options: argparse.Namespace) -> Machine:
    """This machine with the versions of the libraries; a warning where figures would be others."""
    machine = this_machine()
    for name in UNWANTED:
        if os.environ.get(name):
            print(f"warning: {name} is set; unset it: matrix products of other sizes and paths are measured with it")
    here = [one for one in map(LIBRARIES.__getitem__, options.libraries) if not one.missing()]
    more = [(one.module, one.version()) for one in here if one.module != "sklearn"]
    if (load := os.getloadavg()[0]) > 0.5:
        print(f"warning: load average {load:.2f}: threads of OpenMP that wait for a core can take many times as long")
    return replace(machine, versions=(*machine.versions, *dict.fromkeys(more)))


def save(machine: Machine, options: argparse.Namespace, entries: list[Entry], folder: Path) -> Path:
    """Write compare-<machine>.json: all runs, and what is printed of them; other jobs that it has stay."""
    folder.mkdir(exist_ok=True)
    cpu = re.sub(r"[^a-z0-9]+", "-", machine.cpu.lower()).strip("-")
    file = folder / f"compare-{cpu}-{machine.cores}-cores.json"
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    measured = {"date": today, "machine": asdict(machine), "options": vars(options)}
    records = [asdict(one) | {"medians": one.medians, "ratios": one.ratios, **measured} for one in entries]
    before = json.loads(file.read_text(encoding="utf-8"))["results"] if file.exists() else []
    kept = [one for one in before if one["job"] not in {record["job"] for record in records}]
    content = {"results": sorted(kept + records, key=lambda one: list(JOBS).index(one["job"]))}
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return file


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__.split("\n")[0])
    names = [name for name in LIBRARIES if name != "gputree numpy"]
    parser.add_argument("--jobs", default=",".join(JOBS), help="which, in this order (default: %(default)s)")
    parser.add_argument("--libraries", default=",".join(names), help="which (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=400_000, help="rows to fit (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each library (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the tables (default: %(default)s)")
    parser.add_argument("--numpy", action="store_true", help="also measure gputree's NumPy backend")
    parser.add_argument("--no-memory", dest="memory", action="store_false", help="leave out the fits for their memory")
    parser.add_argument("--save", action="store_true", help="also write results/compare-<machine>.json")
    found = parser.parse_args(argv)
    for kind, known in (("jobs", JOBS), ("libraries", LIBRARIES)):
        chosen = [name for name in getattr(found, kind).split(",") if name]
        setattr(found, kind, chosen)
        strange = [name for name in chosen if name not in known]
        if strange:
            parser.error(f"no {strange[0]!r} among the {kind}; choose from {', '.join(known)}")
    if found.numpy and "gputree numpy" not in found.libraries:
        at = found.libraries.index("gputree jit") + 1 if "gputree jit" in found.libraries else 0
        found.libraries.insert(at, "gputree numpy")
    if found.rows < 400 or found.runs < 1:
        parser.error(f"--rows {found.rows} --runs {found.runs}: at least 400 rows and one run are needed")
    return found


def main(argv: list[str] | None = None) -> int:
    """The exit status: 1 where a library that is installed failed."""
    return int(any(side.problem.startswith("failed") for one in run(arguments(argv)) for side in one.sides))


if __name__ == "__main__":
    sys.exit(main())
