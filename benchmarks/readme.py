"""The README's table of times, from the saved results of `benchmarks.compare`.

    python -m benchmarks.readme [--write]

Prints the lines between the marks in README.md, or writes them there.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from benchmarks.bench_fit import RESULTS

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- times: python -m benchmarks.readme --write -->\n", "<!-- end of times -->\n"
OURS, PEERS = "gputree jit", ("gputree exact", "scikit-learn", "LightGBM", "XGBoost", "YDF")
NAMES = {
    "tree6": "tree, depth 6",
    "tree10": "tree, depth 10",
    "tree16": "tree, depth 16",
    "treefull": "tree, no limit, 5 rows a leaf",
    "forest20": "20 trees, depth 16",
    "forest20full": "20 trees, no limit",
    "forest100": "100 trees, depth 16",
    "forest100full": "100 trees, no limit",
    "regression": "regression, depth 10",
    "classes100": "100 classes, depth 10",
    "wide": "1,000 columns, depth 10",
    "small": "tree, depth 10",
    "flights": "flights, 20 rows a leaf",
}


def newest(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """Comparisons of the file that was written last, by date."""
    files = [json.loads(path.read_text(encoding="utf-8"))["results"] for path in folder.glob("compare-*.json")]
    found: list[dict[str, Any]] = max(files, key=lambda results: max(one["date"] for one in results))
    return found


def section(results: list[dict[str, Any]]) -> str:
    """Machine and settings; seconds and memory of every job; what is reached on rows held out."""
    shown = [one for one in results if one["job"] in NAMES or one["name"].startswith("predict 100,000")]
    shown.sort(key=lambda one: [*NAMES, "predict"].index(one["job"]))
    machine, dates = shown[0]["machine"], sorted({one["date"] for one in shown})
    versions = dict(machine["versions"])
    named = ", ".join(f"{name} {versions[name]}" for name in ("scikit-learn", "lightgbm", "xgboost", "ydf", "numba"))
    measured = [name for name in (OURS, *PEERS) if any(side(one, name) for one in shown)]
    times = [[*what(one), *(seconds(one, name) for name in measured), memory(one)] for one in shown]
    reached = [[*what(one)[:1], *(score(one, name) for name in measured)] for one in shown if has_scores(one)]
    libraries = [name.removesuffix(" jit").replace(" exact", ", `max_bins=None`") for name in measured]
    return "\n".join(
        [
            f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, {named}; {' and '.join(dates)}.",
            "Seconds from float32 rows to the model, bins included, medians of alternating runs in one process; MiB",
            "that the fit takes over its table, gputree / LightGBM:",
            "",
            *table(["", "rows x columns", *libraries, "MiB"], times),
            "",
            "Accuracy (R^2 of numbers) on rows held out:",
            "",
            *table(["", *libraries], reached),
            "",
        ]
    )


def what(one: dict[str, Any]) -> list[str]:
    """The name of a job, and the size of its table."""
    size = one["size"].split(" float")[0].split(" ", 1)[1]
    return [NAMES.get(one["job"], "100,000 rows predicted by 20 trees"), size]


def side(one: dict[str, Any], library: str) -> dict[str, Any]:
    """What one library did, empty if it did not run."""
    return next((found for found in one["sides"] if found["library"] == library and found["times"]), {})


def seconds(one: dict[str, Any], library: str) -> str:
    """Two digits, or all before the point."""
    if not (times := side(one, library).get("times")):
        return "-"
    median = statistics.median(times)
    return f"{median:.2g}" if median < 100 else f"{median:.0f}"


def memory(one: dict[str, Any]) -> str:
    held = [side(one, name).get("memory") for name in (OURS, "LightGBM")]
    return " / ".join("-" if size is None else f"{size / 2**20:,.0f}" for size in held)


def has_scores(one: dict[str, Any]) -> bool:
    return not one["name"].startswith("predict")


def score(one: dict[str, Any], library: str) -> str:
    scores = side(one, library).get("scores") or {}
    found = scores.get("accuracy", scores.get("R2"))
    return "-" if found is None else f"{found:.4f}"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Lines of Markdown."""
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def replaced(text: str, new: str, begin: str = BEGIN, end: str = END) -> str:
    """The text with new lines between the marks."""
    before, rest = text.split(begin)
    return f"{before}{begin}{new}{end}{rest.split(end)[1]}"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readme", description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the lines into README.md")
    new = section(newest())
    if parser.parse_args(argv).write:
        README.write_text(replaced(README.read_text(encoding="utf-8"), new), encoding="utf-8")
    else:
        print(new, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
