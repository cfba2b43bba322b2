"""The figures of `benchmarks.pruning` as text, and where the documentation shows them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench_fit import RESULTS
from benchmarks.readme import replaced

ROOT = Path(__file__).parents[1]
BEST = ("best on the path", "best of all subtrees")  # as the rows held out say, which no rule sees
SHORT = {
    **{
        "breast_cancer": "cancer",
        "flights": "flight",
        "penguins": "pengu.",
        "diabetes": "diab.",
        "breast_cancer_ljubljana": "ljubl.",
    },
    **{f"noise{percent}": f"{percent} %" for percent in (0, 10, 20, 30)},
}
WIDTH, CELL = 32, 7

PAGE = ROOT / ".docs" / "pruning.md"
PAGE_MARKS = "<!-- figures: python -m benchmarks.pruning --write -->\n", "<!-- end of figures -->\n"
MODULE = ROOT / "gputree" / "pruning.py"
MODULE_MARKS = (
    "The figures are of ``python -m benchmarks.pruning``:\n",
    "All tables, one by one, are in ``.docs/pruning.md``.\n",
)


@dataclass(frozen=True)
class Figures:
    """What one method did on one table, by fold: rows held out, those that were wrong, leaves.

    ``before`` is the method that made the tree as it was, itself for that one.
    """

    table: str
    before: str
    method: str
    held: tuple[int, ...]
    wrong: tuple[int, ...]
    leaves: tuple[int, ...]

    @property
    def errors(self) -> NDArray[np.float64]:
        """Share of wrong rows by fold, in per cent."""
        errors: NDArray[np.float64] = 100.0 * np.array(self.wrong) / np.array(self.held)
        return errors


class Results:
    """Figures by table and method."""

    def __init__(self, figures: Iterable[Figures]) -> None:
        self.found = {(one.table, one.before, one.method): one for one in figures}
        self.tables = list(dict.fromkeys(table for table, *_ in self.found))
        self.methods = list(dict.fromkeys((before, method) for _, before, method in self.found))

    @property
    def folds(self) -> int:
        """How many there were."""
        return len(next(iter(self.found.values())).held)

    def before(self, one: Figures) -> Figures:
        """The tree as it was."""
        return self.found[one.table, one.before, one.before]

    def error(self, one: Figures) -> str:
        """Mean of the folds."""
        return f"{one.errors.mean():.1f}"

    def spread(self, one: Figures) -> str:
        """Standard error of the mean; of a tree that was pruned, of the mean difference from the tree as it was."""
        own = one.errors if one.method == one.before else one.errors - self.before(one).errors
        return f"{own.std(ddof=1) / np.sqrt(own.size):.1f}"

    def leaves(self, one: Figures) -> str:
        """Mean of the folds."""
        mean = np.mean(one.leaves)
        return f"{mean:.1f}" if mean < 10 else f"{mean:.0f}"

    def ratio(self, one: Figures) -> str:
        """Wrong rows over those of the tree as it was."""
        grown = sum(self.before(one).wrong)
        return f"{sum(one.wrong) / grown:.2f}" if grown else "-"

    def grid(self, cell: Callable[[Figures], str], best: bool = False) -> str:
        """A line a method, indented below the tree as it was, and a column a table."""
        shown = [names for names in self.methods if (names[1] in BEST) == best]
        rows = [line("", (SHORT.get(table, table) for table in self.tables))]
        for before, method in shown:
            name = method if method == before else f"  {method}"
            rows.append(line(name, (cell(self.found[table, before, method]) for table in self.tables)))
        return "\n".join(rows)

    def means(self) -> str:
        """A line a method: error over the real tables, and by noise; leaves in per cent of those of the tree before."""
        noisy = [table for table in self.tables if table.startswith("noise")]
        real = [table for table in self.tables if table not in noisy]
        rows = [line(f"wrong, %; {self.folds} folds", ["real", *(SHORT[table] for table in noisy), "leaves"])]
        for before, method in (names for names in self.methods if names[1] not in BEST):
            own = [self.found[table, before, method] for table in real]
            kept = np.mean([np.mean(one.leaves) / np.mean(self.before(one).leaves) for one in own])
            cells = [f"{np.mean([one.errors.mean() for one in own]):.1f}"]
            cells += [self.error(self.found[table, before, method]) for table in noisy]
            rows.append(line(method if method == before else f"  {method}", [*cells, f"{100 * kept:.0f} %"]))
        return "\n".join(rows)


def line(name: str, cells: Iterable[str]) -> str:
    return name.ljust(WIDTH) + "".join(cell.rjust(CELL) for cell in cells)


def parts(figures: Iterable[Figures]) -> list[tuple[str, str]]:
    """Headings and grids."""
    found = Results(figures)
    return [
        (f"Wrong of the rows held out, per cent, mean of {found.folds} folds", found.grid(found.error)),
        ("Standard errors: of grown trees; of what the others differ from these", found.grid(found.spread)),
        ("Leaves, mean of the folds", found.grid(found.leaves)),
        ("The subtree with the fewest wrong of the rows held out: wrong, per cent", found.grid(found.error, best=True)),
        ("The same over the wrong of the grown tree", found.grid(found.ratio, best=True)),
    ]


def blocks(figures: Iterable[Figures]) -> str:
    """All that is printed."""
    return "\n\n".join(f"{heading}:\n\n{grid}" for heading, grid in parts(figures))


def newest(folder: Path = RESULTS) -> list[Figures]:
    """The figures that were saved last."""
    text = max(folder.glob("pruning-*.json")).read_text(encoding="utf-8")
    records = json.loads(text)["results"]
    return [Figures(*(tuple(v) if isinstance(v, list) else v for v in one.values())) for one in records]


def page_section(figures: Iterable[Figures]) -> str:
    """The lines between the marks of the page."""
    return "".join(f"\n{heading}:\n\n```text\n{grid}\n```\n" for heading, grid in parts(figures)) + "\n"


def module_section(figures: Iterable[Figures]) -> str:
    """The lines between the marks of the module's docstring."""
    return f"\n{Results(figures).means()}\n\n"


def places(figures: Iterable[Figures]) -> list[tuple[Path, tuple[str, str], str]]:
    """The files that show figures, the marks around these, and the lines between."""
    return [(PAGE, PAGE_MARKS, page_section(figures)), (MODULE, MODULE_MARKS, module_section(figures))]


def write() -> None:
    """Put the newest figures into the documentation."""
    for file, marks, new in places(newest()):
        file.write_text(replaced(file.read_text(encoding="utf-8"), new, *marks), encoding="utf-8")
