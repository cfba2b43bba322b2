"""C4.5 on a large mixed table, whole and with a tenth of its cells missing, beside c50py in alternating runs.

    python -m benchmarks.bench_c45 [--rows 400000] [--runs 3] [--limit 300] [--save]

`C45Classifier` (a branch a category, rows with a missing value in every branch) and `c50py.C5Classifier` (pip install
c50py), each with its defaults, get the same data frames. Sizes grow fourfold up to --rows; c50py is left out of those
that would take it longer than --limit seconds a fit, as its last two sizes foretell, and the ratio is that of the
largest size at which both ran. Prints figures and the bars they are held to, and judges nothing.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import importlib
import json
import math
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench_fit import RESULTS, this_machine

OURS, PEER = "gputree", "c50py"
SHARES = {"whole": 0.0, "missing": 0.1}  # of missing cells
CATEGORIES = (2, 3, 4, 5, 8, 10, 15, 20, 30, 40)
FASTER, SLOWER = 10.0, 3.0  # least ratio to the peer; most ratio of "missing" to "whole"
SMALLEST, STEP = 6_250, 4
HEAD = ("rows", "table", "library", "fit", "least", "most", "predict", "least", "most", "nodes", "accuracy")
WIDTHS = (8, 8, 8, 9, 9, 9, 9, 9, 9, 9, 9)


@dataclass
class Side:
    """One library on one table; times in seconds, in the order of the runs."""

    library: str
    fit: list[float] = field(default_factory=list)
    predict: list[float] = field(default_factory=list)
    nodes: int = 0
    accuracy: float = 0.0

    def median(self, what: str) -> float:
        return statistics.median(getattr(self, what))


@dataclass
class Entry:
    """Figures of one table."""

    table: str
    rows: int
    held: int
    sides: list[Side]

    def side(self, library: str) -> Side | None:
        return next((one for one in self.sides if one.library == library), None)


def make(rows: int, missing: float, seed: int = 0) -> tuple[Any, Any]:
    """Ten columns of numbers and ten of 2 to 40 categories, of which three and four tell about two classes."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(rows, 10))
    codes = np.stack([rng.integers(0, k, rows) for k in CATEGORIES], axis=1)
    effect = {j: rng.normal(size=CATEGORIES[j]) for j in (2, 4, 7)}
    score = numbers[:, 0] + numbers[:, 1] * np.where(codes[:, 0] == 0, 1.0, -1.0) + np.abs(numbers[:, 2])
    score += sum(values[codes[:, j]] for j, values in effect.items())
    y = np.where(score + rng.normal(size=rows) > np.median(score), "yes", "no")
    gone = rng.random((rows, 20)) < missing
    numbers[gone[:, :10]] = np.nan
    codes[gone[:, 10:]] = -1
    columns = {f"n{j}": numbers[:, j] for j in range(10)}
    for j, k in enumerate(CATEGORIES):
        columns[f"c{j}"] = pd.Categorical.from_codes(codes[:, j], [f"v{i}" for i in range(k)])
    return pd.DataFrame(columns), y


def model_of(library: str) -> Any:
    if library == OURS:
        from gputree import C45Classifier

        return C45Classifier()
    return importlib.import_module(PEER).C5Classifier()


def nodes_of(library: str, model: Any) -> int:
    if library == OURS:
        return int(model.forest_.n_nodes)
    nodes = [model.tree_]
    for node in nodes:
        nodes += node.children.values()
    return len(nodes)


def measure(table: str, rows: int, libraries: list[str], runs: int) -> Entry:
    """Fit and predict in turn; held-out rows are a quarter as many."""
    held = rows // 4
    X, y = make(rows + held, SHARES[table])
    train, test = (X[:rows], y[:rows]), (X[rows:].reset_index(drop=True), y[rows:])
    entry = Entry(table, rows, held, [Side(library) for library in libraries])
    for _ in range(runs):
        for side in entry.sides:
            model = model_of(side.library)
            gc.collect()
            side.fit.append(timed(lambda model=model: model.fit(*train))[0])
            seconds, found = timed(lambda model=model: model.predict(test[0]))
            side.predict.append(seconds)
            side.nodes, side.accuracy = nodes_of(side.library, model), float(np.mean(found == test[1]))
    return entry


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    found = work()
    return time.perf_counter() - begin, found


def foretold(entries: list[Entry], table: str, rows: int) -> float:
    """Seconds of a fit of the peer, as its two largest sizes foretell."""
    known = [(e.rows, e.side(PEER)) for e in entries if e.table == table]
    seen = [(n, side.median("fit")) for n, side in known if side is not None]
    if len(seen) < len(known) or not seen:
        return math.inf if known else 0.0
    if len(seen) == 1:
        return seen[0][1] * rows / seen[0][0]
    (a, s), (b, t) = seen[-2:]
    return t * (rows / b) ** max(1.0, math.log(t / s) / math.log(b / a))


def sizes(rows: int) -> list[int]:
    """Rows and its fourths, from the smallest on."""
    found = [rows]
    while found[0] // STEP >= SMALLEST:
        found.insert(0, found[0] // STEP)
    return found


def bars(entries: list[Entry]) -> list[str]:
    """What the figures are held to."""
    found = []
    for table in SHARES:
        both = [e for e in entries if e.table == table and e.side(PEER)]
        for what in ("fit", "predict") if both else ():
            ours, peer = (both[-1].side(name).median(what) for name in (OURS, PEER))  # type: ignore[union-attr]
            bar = f" (bar {FASTER:g})" if what == "fit" else ""
            found.append(f"{what}, {table}, {both[-1].rows:,} rows: {peer / ours:.1f} times as fast as {PEER}{bar}")
        if len(both) > 1:
            (a, s), (b, t) = [(e.rows, e.side(PEER).median("fit")) for e in both[-2:]]  # type: ignore[union-attr]
            found.append(f"{PEER}, {table}: {b / a:.0f} times the rows take {t / s:.1f} times as long to fit")
    last = {table: [e for e in entries if e.table == table][-1].side(OURS) for table in SHARES}
    for what in ("fit", "predict"):
        ratio = last["missing"].median(what) / last["whole"].median(what)  # type: ignore[union-attr]
        found.append(f"{what}: with a tenth missing {ratio:.2f} times as long as whole (bar {SLOWER:g})")
    return found


def run(options: argparse.Namespace, folder: Path = RESULTS) -> list[Entry]:
    """Measure, print a line a library and table, then the bars, and write the file if it is asked for."""
    machine, entries = this_machine(), list[Entry]()
    peer = find_spec(PEER) is not None
    print(f"{machine}\n{f'{PEER} {version(PEER)}' if peer else f'{PEER} is not installed'}\n")
    print(row(HEAD), flush=True)
    if options.warm_up:
        measure("whole", options.warm_up, [OURS], 1), measure("missing", options.warm_up, [OURS], 1)
    for rows in sizes(options.rows):
        for table in SHARES:
            late = foretold(entries, table, rows)
            libraries = [OURS, PEER] if peer and late <= options.limit else [OURS]
            entries.append(measure(table, rows, libraries, options.runs))
            print("\n".join(lines(entries[-1])), flush=True)
            if peer and len(libraries) == 1 and math.isfinite(late):
                print(f"{'':<18}{PEER} would take about {late:,.0f} s a fit (from its smaller sizes), and is left out")
    print("", *bars(entries), sep="\n")
    if options.save:
        print(f"\nwritten: {save(asdict(machine), options, entries, folder)}")
    return entries


def lines(entry: Entry) -> list[str]:
    found = []
    for side in entry.sides:
        times = [f"{x:.3g}" for t in (side.fit, side.predict) for x in (statistics.median(t), min(t), max(t))]
        found.append(
            row((f"{entry.rows:,}", entry.table, side.library, *times, f"{side.nodes:,}", f"{side.accuracy:.4f}"))
        )
    return found


def row(cells: Any) -> str:
    return " ".join(
        f"{c:<{w}}" if 0 < i < 3 else f"{c:>{w}}" for i, (c, w) in enumerate(zip(cells, WIDTHS, strict=True))
    )


def save(machine: dict[str, Any], options: argparse.Namespace, entries: list[Entry], folder: Path) -> Path:
    """Write c45-<machine>-<date>.json: every time, and the bars as they were printed."""
    folder.mkdir(exist_ok=True)
    cpu = re.sub(r"[^a-z0-9]+", "-", machine["cpu"].lower()).strip("-")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    file = folder / f"c45-{cpu}-{machine['cores']}-cores-{today}.json"
    peer = version(PEER) if find_spec(PEER) else None
    content = {"machine": machine, "options": vars(options), PEER: peer}
    content |= {"results": [asdict(one) for one in entries], "bars": bars(entries)}
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return file


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_c45", description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=400_000, help="most rows to fit (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="timed fits of each library (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of a fit of c50py (default: %(default)s)")
    parser.add_argument("--warm-up", type=int, default=70_000, help="rows of a first fit (default: %(default)s)")
    parser.add_argument("--save", action="store_true", help="also write results/c45-<machine>-<date>.json")
    found = parser.parse_args(argv)
    if found.rows < 100 or found.runs < 1:
        parser.error(f"--rows {found.rows} --runs {found.runs}: at least 100 rows and a run are needed")
    return found


if __name__ == "__main__":
    run(arguments())
