"""Prediction of 20 trees of depth 16, by rows, beside scikit-learn: for pytest-benchmark.

    python -m pytest benchmarks/bench_predict.py -n0 [--benchmark-autosave]
    BENCH_ROWS=20000 python -m pytest benchmarks/bench_predict.py -n0

BENCH_ROWS (default 100,000) rows of the table "higgs" are fitted, and as many others predicted, or 1,000, or one.
`-n0`: under pytest-xdist pytest-benchmark measures nothing. Libraries that are not installed are skipped.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import pytest

from benchmarks.compare_peers import LIBRARIES, Setting
from benchmarks.data import load

ROWS = int(os.environ.get("BENCH_ROWS", "100000"))
SETTING = Setting(depth=16, trees=20, forest=True)


@cache
def fitted(library: str) -> Any:
    X, y = load("higgs", ROWS)
    return LIBRARIES[library].fit(SETTING, X, y)


@pytest.mark.parametrize("rows", [1, 1000, ROWS])
@pytest.mark.parametrize("library", ["gputree jit", "gputree numpy", "scikit-learn"])
def test_predict(benchmark: Any, library: str, rows: int) -> None:
    reason = LIBRARIES[library].missing()
    if reason:
        pytest.skip(f"{library}: {reason}")
    model, X = fitted(library), load("higgs", ROWS, seed=1)[0][:rows]
    benchmark.group = f"{rows:,} rows"
    found = benchmark(LIBRARIES[library].predict, model, SETTING, X)
    assert found.shape == (min(rows, ROWS), 2)
