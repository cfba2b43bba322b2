"""Prediction of 100 rules on 20 mixed columns with 10% missing cells, beside the tree that they are made from.

    python -m pytest benchmarks/bench_rules.py -n0 [--benchmark-autosave]
    BENCH_ROWS=20000 python -m pytest benchmarks/bench_rules.py -n0

BENCH_ROWS (default 400,000) rows: ten columns of numbers, ten of eight categories each, of pandas' type or as text.
`-n0`: under pytest-xdist pytest-benchmark measures nothing.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gputree import DecisionTreeClassifier

ROWS = int(os.environ.get("BENCH_ROWS", "400000"))


@cache
def table() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"n{j}": rng.normal(size=ROWS) for j in range(10)})
    for j in range(10):
        frame[f"c{j}"] = pd.Categorical(rng.choice(list("abcdefgh"), ROWS))
    signal = frame["n0"] + frame["n1"] * (frame["c0"] == "a") + frame["c1"].isin(["b", "c"]) * frame["n2"]
    y = (signal + rng.normal(size=ROWS) / 2 > 0).to_numpy()
    return frame.mask(rng.random(frame.shape) < 0.1), y


@cache
def fitted() -> Any:
    X, y = table()
    return DecisionTreeClassifier(max_leaf_nodes=100).fit(X[:40_000], y[:40_000])


@pytest.mark.parametrize("cells", ["categories", "text"])
@pytest.mark.parametrize("what", ["rules", "rules, votes", "tree"])
def test_predict(benchmark: Any, what: str, cells: str) -> None:
    X, model = table()[0], fitted()
    if cells == "text":
        X = X.astype({name: object for name in X.columns if name.startswith("c")})
    rules = model.rules()
    assert len(rules) == 100
    if what == "rules, votes":
        rules = type(rules).from_text(rules.to_text().replace("conflict first", "conflict vote"))
    benchmark.group = f"{ROWS:,} rows, {cells}"
    found = benchmark(model.predict if what == "tree" else rules.predict, X)
    assert (found == model.predict(X)).all()
