"""Error and size of trees before and after each rule of pruning and of stopping, on real and generated tables.

    python -m benchmarks.pruning [--tables wine,noise20] [--folds 10] [--rows 2000] [--save]
    python -m benchmarks.pruning --write

All rules meet the same folds of a table, of classes in equal proportions. Rules that ask for rows which the fit has not
seen take a third of the rows for it, and are set beside the tree that is grown on the other two thirds. Prints, and
names no winner. ``--save`` also writes results/pruning-<date>.json; ``--write`` measures nothing and puts the newest of
these files into .docs/pruning.md and the docstring of gputree/pruning.py.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, train_test_split

from benchmarks.bench_fit import RESULTS
from benchmarks.data import CATEGORIES, XY, load
from benchmarks.pruning_report import BEST, Figures, blocks, write
from gputree import DecisionTreeClassifier, MDLTreeClassifier, stopping
from gputree.datasets import make_dnf
from gputree.engine.pruning import Needs
from gputree.model_selection import select
from gputree.model_selection.choose import chosen
from gputree.pruning import (
    BottomUp,
    ChiSquare,
    Collapse,
    CostComplexity,
    DescriptionLength,
    ErrorBased,
    ReducedError,
    RiskBound,
    ValidationSet,
    cost_complexity_path,
    prune,
)

Models: TypeAlias = Iterator[tuple[str, Any]]

NOISE = {f"noise{percent}": percent / 100 for percent in (0, 10, 20, 30)}
TERMS = ((1, 2, 3), (-1, 4, 5), (6, 7))  # of ten bits, three of which say nothing
TABLES = (
    *("digits", "breast_cancer", "wine", "penguins", "diabetes", "vote", "breast_cancer_ljubljana", "flights"),
    *NOISE,
)


def a_row_a_leaf(tree: Any, m: float) -> float:
    """A bound of one's own: a leaf counts as much as a row that is wrong."""
    return float(tree.error + tree.n_leaves / m)


PRUNERS = (
    *(Collapse(), ErrorBased(), ErrorBased(raising=False), ErrorBased(cf=0.05)),
    *(ChiSquare(), ChiSquare(alpha=0.01), RiskBound(), BottomUp(a_row_a_leaf), DescriptionLength()),
)
BY_OTHER_ROWS = (ReducedError(), ReducedError(strict=True), ReducedError(greedy=True), ValidationSet())
STOPPING = (
    *(stopping.NoGain(), stopping.MinSamples(leaf=5), stopping.ChiSquare(), stopping.ChiSquare(alpha=0.01)),
    *(stopping.CrossValidated(), stopping.SavesBits(), stopping.MaxDepth(depth=4), stopping.MaxDepth(depth=8)),
)
MOST = 20  # prices of a leaf that are tried
FOLDS = 5  # of the rows of the fit, by which one is chosen


@dataclass(frozen=True)
class Fold:
    """Rows to fit, and rows to judge by."""

    X: NDArray[Any]
    y: NDArray[Any]
    held_X: NDArray[Any]
    held_y: NDArray[Any]
    categories: tuple[int, ...]
    seed: int

    def tree(self, learner: Any = DecisionTreeClassifier, **settings: Any) -> Any:
        return learner(categorical_features=list(self.categories) or None, **settings)

    def wrong(self, model: Any) -> int:
        return int((model.predict(self.held_X) != self.held_y).sum())


def from_all_rows(fold: Fold) -> Models:
    """What prunes a tree without other rows, or ends its growth."""
    rows, grown = (fold.X, fold.y), fold.tree().fit(fold.X, fold.y)
    yield "grown", grown
    for rule in PRUNERS:
        yield name_of(rule), prune(grown, rule, *(rows if rule.needs is Needs.FIT else ()))
    alphas = select(fold.tree(), *rows, over={"ccp_alpha": prices(grown)}, cv=FOLDS)
    for by in ("best", "1se"):
        alpha = alphas.params[chosen(alphas.estimates, by)]["ccp_alpha"]
        yield f"CostComplexity, by folds, {by}", prune(grown, CostComplexity(alpha))
    for stop in STOPPING:
        yield f"stopping={name_of(stop)}", fold.tree(stopping=stop).fit(*rows)
    yield from zip(BEST, best_subtrees(fold, grown), strict=True)


def prices(grown: Any) -> list[float]:
    """Geometric means of neighbouring alphas of the cost-complexity sequence, and one that leaves a root alone."""
    alphas = np.unique(cost_complexity_path(grown).alphas)
    means = np.append(np.sqrt(alphas[:-1] * alphas[1:]), 2.0 * alphas[-1])
    places = np.unique(np.linspace(0, means.size - 1, MOST).round().astype(int))
    return [float(mean) for mean in means[places]]


def best_subtrees(fold: Fold, grown: Any) -> tuple[Any, Any]:
    """The trees that are best on the rows held out, of the cost-complexity sequence and of all subtrees."""
    alphas = np.unique(cost_complexity_path(grown).alphas).tolist()
    on_path = min((prune(grown, CostComplexity(alpha)) for alpha in alphas), key=fold.wrong)
    return on_path, prune(grown, ReducedError(), fold.held_X, fold.held_y)  # which finds the best of them


def from_two_thirds(fold: Fold) -> Models:
    """What asks rows that the fit has not seen."""
    X, other_X, y, other_y = train_test_split(fold.X, fold.y, test_size=1 / 3, stratify=fold.y, random_state=fold.seed)
    grown = fold.tree().fit(X, y)
    yield "grown on two thirds", grown
    for rule in BY_OTHER_ROWS:
        yield name_of(rule), prune(grown, rule, other_X, other_y)
    yield "stopping=Validation(X, y)", fold.tree(stopping=stopping.Validation(other_X, other_y)).fit(X, y)


def by_bits(fold: Fold, name: str = "grown by bits", **code: Any) -> Models:
    """Trees of minimum description length."""
    yield name, fold.tree(MDLTreeClassifier, prune=False, **code).fit(fold.X, fold.y)
    yield "MDLTreeClassifier", fold.tree(MDLTreeClassifier, **code).fit(fold.X, fold.y)


def by_other_bits(fold: Fold) -> Models:
    """The same in the code of Wallace and Patrick."""
    return by_bits(fold, "grown by Wallace & Patrick", code="wallace-patrick")


GROUPS: tuple[Callable[[Fold], Models], ...] = (from_all_rows, from_two_thirds, by_bits, by_other_bits)


def name_of(rule: Any) -> str:
    """A rule as it is written, with what is not its default."""
    given = {f.name: getattr(rule, f.name) for f in fields(rule) if getattr(rule, f.name) != f.default}
    texts = [f"{name}={getattr(value, '__name__', repr(value))}" for name, value in given.items()]
    return f"{type(rule).__name__}({', '.join(texts)})"


def table_of(name: str, rows: int) -> XY:
    """A table of classes, at most so many rows of it if it is real."""
    if name in NOISE:
        return make_dnf(TERMS, n_irrelevant=3, n_rows=1000, noise=NOISE[name])
    X, y = load(name)
    if rows < len(y):
        X, y = load(name, rows)
    return X, (y > np.median(y)).astype(np.int64) if name == "diabetes" else y


def measure(table: str, options: argparse.Namespace) -> list[Figures]:
    """Every method on the folds of one table, each after the tree that it is compared with."""
    X, y = table_of(table, options.rows)
    found: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    folds = StratifiedKFold(options.folds, shuffle=True, random_state=0)
    for seed, (own, held) in enumerate(folds.split(X, y)):
        fold = Fold(X[own], y[own], X[held], y[held], CATEGORIES.get(table, ()), seed)
        for group in GROUPS:
            before = ""
            for method, model in group(fold):
                before = before or method
                figures = (held.size, fold.wrong(model), int(model.get_n_leaves()))
                found.setdefault((before, method), []).append(figures)
    return [Figures(table, *names, *zip(*rows, strict=True)) for names, rows in found.items()]


def run(options: argparse.Namespace, folder: Path = RESULTS) -> list[Figures]:
    """Measure, print, and write the file if it is asked for."""
    figures = []
    for table in options.tables:
        figures += measure(table, options)
        print(f"{table}: {sum(figures[-1].held):,} rows", flush=True)
    print(f"\n{blocks(figures)}")
    if options.save:
        print(f"\nwritten: {save(options, figures, folder)}")
    return figures


def save(options: argparse.Namespace, figures: list[Figures], folder: Path) -> Path:
    """Write pruning-<date>.json: rows held out, those that were wrong, and leaves, by fold."""
    folder.mkdir(exist_ok=True)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    file = folder / f"pruning-{today}.json"
    records = ",\n".join(json.dumps(asdict(one)) for one in figures)  # a line each
    given = json.dumps({"folds": options.folds, "rows": options.rows})
    file.write_text(f'{{"date": "{today}", "options": {given}, "results": [\n{records}\n]}}\n', encoding="utf-8")
    return file


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pruning", description=__doc__.split("\n")[0])
    parser.add_argument("--tables", default=",".join(TABLES), help="which, in this order (default: %(default)s)")
    parser.add_argument("--folds", type=int, default=10, help="at least 2 (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=2000, help="most rows of a real table (default: %(default)s)")
    parser.add_argument("--save", action="store_true", help="also write results/pruning-<date>.json")
    parser.add_argument("--write", action="store_true", help="only put the newest saved file into the documentation")
    found = parser.parse_args(argv)
    found.tables = [name for name in found.tables.split(",") if name]
    strange = [name for name in found.tables if name not in TABLES]
    if strange:
        parser.error(f"no table {strange[0]!r}; choose from {', '.join(TABLES)}")
    if found.folds < 2:
        parser.error(f"--folds {found.folds}: a spread needs 2 at least")
    return found


if __name__ == "__main__":
    asked = arguments()
    if asked.write:
        write()
    else:
        run(asked)
