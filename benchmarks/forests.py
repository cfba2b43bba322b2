"""Held-out scores and times of forests beside scikit-learn's, over seeds.

    python -m benchmarks.forests [--tables flights,digits,breast_cancer,diabetes] [--rows 20000] [--seeds 10] [--save]

Seed s parts a table, or a sample of it, into two thirds to fit and one third to score, and is the ``random_state`` of
both libraries, which fit in turn with their defaults and ``n_jobs`` as given. Prints, and judges nothing: mean accuracy
or R^2, the mean difference (gputree less scikit-learn) with its standard error over seeds, and median seconds of a fit.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench_fit import RESULTS, this_machine
from benchmarks.data import load

TABLES = ("flights", "digits", "breast_cancer", "diabetes")
NUMBERS = ("diabetes",)  # tables whose y is a number
HEAD = (
    *("table", "forest", "gputree", "scikit-learn", "difference"),
    *("standard error", "seconds", "of scikit-learn", "ratio"),
)


@dataclass(frozen=True)
class Result:
    """Figures by seed, those of gputree and then those of scikit-learn."""

    table: str
    rows: int
    forest: str
    trees: int
    scores: tuple[tuple[float, float], ...]
    seconds: tuple[tuple[float, float], ...]

    @property
    def difference(self) -> float:
        return float(np.mean([ours - theirs for ours, theirs in self.scores]))

    @property
    def standard_error(self) -> float:
        differences = [ours - theirs for ours, theirs in self.scores]
        return statistics.stdev(differences) / len(differences) ** 0.5

    def line(self) -> tuple[str, ...]:
        ours, theirs = (statistics.median(side) for side in zip(*self.seconds, strict=True))
        return (
            *(f"{self.table} ({self.rows:,})", self.forest),
            *(f"{statistics.mean(side):.4f}" for side in zip(*self.scores, strict=True)),
            *(f"{self.difference:+.4f}", f"{self.standard_error:.4f}"),
            *(f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.2f}"),
        )


def measure(table: str, forest: str, options: argparse.Namespace) -> Result:
    """One forest on one table, seed by seed."""
    import sklearn.ensemble

    import gputree

    X, y = load(table)
    rows = min(len(y), options.rows)
    scores, seconds = [], []
    for seed in range(options.seeds):
        fit, held = np.split(np.random.default_rng(seed).permutation(len(y))[:rows], [rows * 2 // 3])
        models = [
            getattr(gputree, forest)(options.trees, random_state=seed, n_jobs=options.jobs, device=options.device),
            getattr(sklearn.ensemble, forest)(options.trees, random_state=seed, n_jobs=options.jobs),
        ]
        seconds.append(tuple(timed(model, X[fit], y[fit]) for model in models))
        scores.append(tuple(float(model.score(X[held], y[held])) for model in models))
    return Result(table, rows, forest, options.trees, tuple(scores), tuple(seconds))


def timed(model: Any, X: Any, y: Any) -> float:
    begin = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - begin


def run(options: argparse.Namespace, folder: Path = RESULTS) -> list[Result]:
    """Measure, print a line a forest and table, and write the file if it is asked for."""
    machine, results = this_machine(), []
    print(f"{machine}\n\n{options.trees} trees, {options.seeds} seeds, n_jobs={options.jobs}\n")
    print(row(HEAD), row(["-" * len(name) for name in HEAD]), sep="\n", flush=True)
    for table in options.tables:
        kind = "Regressor" if table in NUMBERS else "Classifier"
        for forest in (f"RandomForest{kind}", f"ExtraTrees{kind}"):
            results.append(measure(table, forest, options))
            print(row(results[-1].line()), flush=True)
    if options.save:
        print(f"\nwritten: {save(asdict(machine), options, results, folder)}")
    return results


def row(cells: Any) -> str:
    widths = (25, 22, *(max(len(name), 8) for name in HEAD[2:]))
    first, second, *others = zip(cells, widths, strict=True)
    return "  ".join([*(f"{c:<{w}}" for c, w in (first, second)), *(f"{c:>{w}}" for c, w in others)])


def save(machine: dict[str, Any], options: argparse.Namespace, results: list[Result], folder: Path) -> Path:
    """Write forests-<machine>-<date>.json: figures of every seed, and what is printed of them."""
    folder.mkdir(exist_ok=True)
    cpu = re.sub(r"[^a-z0-9]+", "-", machine["cpu"].lower()).strip("-")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    file = folder / f"forests-{cpu}-{machine['cores']}-cores-{today}.json"
    records = [asdict(one) | {"difference": one.difference, "standard_error": one.standard_error} for one in results]
    content = {"machine": machine, "options": vars(options), "results": records}
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return file


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forests", description=__doc__.split("\n")[0])
    parser.add_argument("--tables", default=",".join(TABLES), help="which, in this order (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=20_000, help="most rows of a table (default: %(default)s)")
    parser.add_argument("--trees", type=int, default=100, help="trees of a forest (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=10, help="at least 2 (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="n_jobs of both libraries (default: %(default)s)")
    parser.add_argument("--device", default="auto", help="device of gputree (default: %(default)s)")
    parser.add_argument("--save", action="store_true", help="also write results/forests-<machine>-<date>.json")
    found = parser.parse_args(argv)
    found.tables = [name for name in found.tables.split(",") if name]
    strange = [name for name in found.tables if name not in TABLES]
    if strange:
        parser.error(f"no table {strange[0]!r}; choose from {', '.join(TABLES)}")
    if found.seeds < 2:
        parser.error(f"--seeds {found.seeds}: a standard error needs 2 at least")
    return found


if __name__ == "__main__":
    run(arguments())
