"""Seconds of every rule of pruning on one large tree.

    python -m benchmarks.prune_times [--nodes 1000000] [--rules RiskBound,CostComplexity]

Half of the labels are drawn at random, so that the tree grows to purity, and half depend on the first column, so that
something is left. Rules that ask for rows get those of the fit, or as many new ones; `ErrorBased` with raising, which
sends rows down again, comes last. Prints the machine, the size of the tree, and of each rule the seconds of
one run and the nodes left.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.bench_fit import this_machine
from gputree import DecisionTreeClassifier
from gputree.engine.pruning import Needs
from gputree.pruning import (
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

COLUMNS = 4
ROWS_A_NODE = 2.2  # of such a table, about; more rows are drawn until there are nodes enough
RULES = (
    Collapse(),
    ErrorBased(raising=False),
    ReducedError(),
    ReducedError(greedy=True),
    ValidationSet(),
    ChiSquare(0.05),
    CostComplexity(1e-5),
    CostComplexity(1e-5, penalty="nodes"),
    CostComplexity(1e-5, cost="error"),
    DescriptionLength(),
    RiskBound(),
    ErrorBased(),
)


def table(n: int, seed: int) -> tuple[Any, Any]:
    """Rows whose label depends on the first column in half of the cases."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, COLUMNS)).astype(np.float32)
    return X, np.where(rng.random(n) < 0.5, X[:, 0] > 0, rng.random(n) < 0.5).astype(int)


def grown(nodes: int) -> tuple[Any, Any, Any]:
    """A tree of at least so many nodes, and its rows."""
    n = int(nodes * ROWS_A_NODE)
    while True:
        X, y = table(n, 0)
        model = DecisionTreeClassifier().fit(X, y)
        if model.forest_.n_nodes >= nodes:
            return model, X, y
        n = int(n * 1.1 * nodes / model.forest_.n_nodes)


def main() -> None:
    parser = argparse.ArgumentParser(description="Seconds of every rule of pruning on one large tree.")
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--rules", default="", help="names of rules, by default all")
    args = parser.parse_args()
    print(this_machine())
    begin = time.perf_counter()
    model, X, y = grown(args.nodes)
    size = f"{model.forest_.n_nodes:,} nodes, depth {model.get_depth()}, {len(y):,} rows"
    print(f"tree: {size} ({time.perf_counter() - begin:.1f} s)")
    other = table(len(y), 1)
    for rule in RULES:
        if args.rules and type(rule).__name__ not in args.rules.split(","):
            continue
        rows = {Needs.NO_ROWS: (), Needs.FIT: (X, y), Needs.VALIDATION: other}[rule.needs]
        begin = time.perf_counter()
        left = prune(model, rule, *rows)
        print(f"{time.perf_counter() - begin:8.2f} s  {left.forest_.n_nodes:>9,} nodes left  {rule!r}", flush=True)
    for penalty in ("leaves", "nodes") if not args.rules else ():
        begin = time.perf_counter()
        path = cost_complexity_path(model, penalty)
        print(
            f"{time.perf_counter() - begin:8.2f} s  {path.nodes.size:>9,} steps       cost_complexity_path({penalty!r})"
        )


if __name__ == "__main__":
    main()
