"""Whole fits with the public estimators, beside scikit-learn on this machine's CPU and other libraries on its GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench_fit import node_count
from benchmarks.data import XY, load
from benchmarks.gpu_tables import chessboard, flights
from benchmarks.gpu_tools import Lab, Mismatch, PeakMemory, Timing, alternate

HELD = 100_000  # rows that are held out, at most


@dataclass(frozen=True)
class Fit:
    """A table, the limits of the tree, and how many rows a CPU is given."""

    name: str
    table: str
    classifies: bool
    parameters: dict[str, Any] = field(default_factory=dict)
    cpu_rows: int = 50_000  # scikit-learn's: one core is at work
    equal_rows: int = 100_000  # on which device="cpu" must grow the same tree
    seconds: float = 60.0  # about, all libraries together


FITS = (
    Fit("10,000 rows", "small", True, {"max_depth": 10}, cpu_rows=10_000, seconds=5),
    Fit("355 classes", "classes355", True, {"max_depth": 14}, cpu_rows=20_000, equal_rows=2000, seconds=35),
    Fit("flights, regression", "flights", False, {"max_depth": 12, "min_samples_leaf": 20}, seconds=15),
    Fit("11 M rows, depth 8", "higgs", True, {"max_depth": 8}, seconds=60),  # and the table is made
    Fit("11 M rows, depth 10", "higgs", True, {"max_depth": 10}, seconds=50),
    Fit("11 M rows, depth 16", "higgs", True, {"max_depth": 16}, seconds=55),
)


def higgs(lab: Lab) -> XY:
    return load("higgs", lab.size(11_000_000 + HELD, 500))


def small(lab: Lab) -> XY:
    return load("higgs", lab.size(12_500, 250), 1)


TABLES: dict[str, Callable[[Lab], XY]] = {
    "higgs": higgs,
    "flights": flights,
    "classes355": lambda lab: chessboard(*((300, 4, 15) if lab.toy else (300_000, 19, 355))),
    "small": small,
}


@dataclass(frozen=True)
class Rows:
    """Rows to fit and rows to score on."""

    X: NDArray[Any]
    y: NDArray[Any]
    held_X: NDArray[Any]
    held_y: NDArray[Any]

    @classmethod
    def of(cls, lab: Lab, table: str) -> Rows:
        """The table, kept for other fits of this program."""
        if table not in lab.cache:
            X, y = TABLES[table](lab)
            order = np.random.default_rng(0).permutation(len(y)) if table == "flights" else slice(None)
            X, y = X[order], y[order]
            held = min(HELD, len(y) // 5)
            lab.cache[table] = cls(X[held:], y[held:], X[:held], y[:held])
        return lab.cache[table]

    def first(self, n: int) -> Rows:
        return Rows(self.X[:n], self.y[:n], self.held_X, self.held_y)


@dataclass(frozen=True)
class Side:
    """A library's model and the rows that it is given."""

    library: str
    model: Any
    rows: Rows

    def fit(self) -> None:
        self.model.fit(self.rows.X, self.rows.y)

    def record(self, timing: Timing, classifies: bool) -> dict[str, Any]:
        predicted = np.asarray(to_host(self.model.predict(self.rows.held_X))).ravel()
        truth = self.rows.held_y
        if classifies:
            score = float((predicted == truth).mean())
        else:
            score = 1.0 - float(((predicted - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())
        return {
            "library": self.library,
            "rows": len(self.rows.y),
            "seconds": timing.record(),
            "nodes": count_nodes(self.model),
            "accuracy" if classifies else "r2": score,
        }


def to_host(values: Any) -> Any:
    return values.get() if hasattr(values, "get") else values


def count_nodes(model: Any) -> int | None:
    """Nodes of a fitted model, None where it does not tell."""
    if hasattr(model, "get_booster"):
        return sum(text.count("\n") for text in model.get_booster().get_dump())
    return node_count(model) if hasattr(model, "tree_") else None


def measure(lab: Lab, name: str) -> list[dict[str, Any]]:
    """Equal to the CPU's tree on some rows; then all libraries in turn; the peak of the device's memory."""
    fit = next(f for f in FITS if f.name == name)
    if lab.toy:
        fit = replace(fit, parameters={**fit.parameters, "max_depth": 2})
    rows = Rows.of(lab, fit.table)
    equal = fingerprint(fit, rows)
    begin = time.perf_counter()
    first = Side("gputree", estimator(fit, "cuda"), rows)
    with PeakMemory(lab) as peak:
        first.fit()
    sides, unusable = warmed([first, *peers(lab, fit, rows)])
    times = alternate(lab.budget, {side.library: side.fit for side in sides}, time.perf_counter() - begin)
    return [
        {
            "fit": name,
            "features": rows.X.shape[1],
            "parameters": fit.parameters,
            "equal_to_cpu": equal,
            "peak_device_bytes": peak.nbytes,
            "libraries": [side.record(times[side.library], fit.classifies) for side in sides],
            "unusable": unusable,
        }
    ]


def warmed(sides: list[Side]) -> tuple[list[Side], dict[str, str]]:
    """Fit once all but the first, ours; a library of others that fails is left out, and what it said is kept."""
    usable, unusable = sides[:1], {}
    for side in sides[1:]:
        try:
            side.fit()
            side.model.predict(side.rows.held_X[:1])
        except Exception as error:
            unusable[side.library] = f"{type(error).__name__}: {error}"
        else:
            usable.append(side)
    return usable, unusable


def fingerprint(fit: Fit, rows: Rows) -> dict[str, Any]:
    """Fit the same rows on both devices; raise unless the forests are equal."""
    some = rows.first(min(fit.equal_rows, len(rows.y)))
    cuda, cpu = (estimator(fit, device).fit(some.X, some.y).fingerprint() for device in ("cuda", "cpu"))
    if cuda != cpu:
        raise Mismatch(f"{fit.name}: on {len(some.y):,} rows device='cuda' grows {cuda}, device='cpu' {cpu}")
    return {"rows": len(some.y), "fingerprint": cuda}


def estimator(fit: Fit, device: str) -> Any:
    from gputree import DecisionTreeClassifier, DecisionTreeRegressor

    kind = DecisionTreeClassifier if fit.classifies else DecisionTreeRegressor
    return kind(random_state=0, device=device, **fit.parameters)


def peers(lab: Lab, fit: Fit, rows: Rows) -> list[Side]:
    """scikit-learn on as many rows as take seconds; XGBoost and cuML where they are installed."""
    import sklearn.tree

    kind = sklearn.tree.DecisionTreeClassifier if fit.classifies else sklearn.tree.DecisionTreeRegressor
    found = [Side("scikit-learn", kind(random_state=0, **fit.parameters), rows.first(fit.cpu_rows))]
    depth = fit.parameters["max_depth"]
    if (xgboost := lab.peer("xgboost")) is not None and xgboost.build_info()["USE_CUDA"]:
        make = xgboost.XGBClassifier if fit.classifies else xgboost.XGBRegressor
        own = {"n_estimators": 1, "learning_rate": 1.0, "reg_lambda": 0.0, "max_depth": depth}
        found.append(Side("XGBoost", make(tree_method="hist", device="cuda", **own), rows))
    if (ensemble := lab.peer("cuml.ensemble")) is not None:
        make = ensemble.RandomForestClassifier if fit.classifies else ensemble.RandomForestRegressor
        own = {"n_estimators": 1, "bootstrap": False, "max_features": 1.0, "max_depth": depth, "n_bins": 256}
        y = rows.y.astype(np.int32 if fit.classifies else np.float32)
        found.append(Side("cuML", make(random_state=0, **own), Rows(rows.X, y, rows.held_X, rows.held_y)))
    return found
