"""Methods of the backend protocol one by one, on NumPy and compiled: for pytest-benchmark.

    python -m pytest benchmarks/bench_methods.py -n0 [--benchmark-autosave]
    BENCH_ROWS=20000 python -m pytest benchmarks/bench_methods.py -n0

BENCH_ROWS (default 100,000) rows of the table "higgs", 28 columns, 255 codes a column, two classes. The root is
searched, split, and its children searched; `finish` grows whole subtrees of nodes that it takes. `-n0`: under
pytest-xdist pytest-benchmark measures nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from benchmarks.data import load
from gputree.backends import choose
from gputree.backends.protocol import CodeSpec
from gputree.core.bags import Bags
from gputree.core.criteria import CRITERIA
from gputree.core.forest import Test
from gputree.core.keys import root_keys
from gputree.core.schema import Feature, Schema
from gputree.core.splits import NO_SPLITS, NOT_MET, THRESHOLD, Growth, Limits, Search, Slots, Stop
from gputree.core.target import class_target

ROWS = int(os.environ.get("BENCH_ROWS", "100000"))
CODES = 255
SEARCH = Search((THRESHOLD,), CRITERIA["gini"], Limits())
FINISHED = 4000  # rows of the table that `finish` is given, or fewer


@dataclass
class Scene:
    """A table on a backend, and its open nodes."""

    backend: Any
    rows: int

    def __post_init__(self) -> None:
        self.X, y = load("higgs", self.rows)
        self.labels, self.spec = y[:, None].astype(np.int32), CodeSpec(self.schema(), CODES)
        self.cuts = self.backend.edges(self.X, self.spec, None)
        self.codes = self.backend.encode(self.X, self.cuts)
        self.begin()

    def schema(self) -> Schema:
        return Schema(tuple(Feature(str(f)) for f in range(self.X.shape[1])))

    def begin(self) -> None:
        """All rows in the root once more."""
        self.shard = self.backend.open(self.codes, class_target(self.labels, (2,), None), Bags(1))
        self.nodes, self.stats = np.zeros(1, np.int32), self.backend.totals(self.shard)[0]

    def slots(self) -> Slots:
        bounds = np.repeat([[-np.inf], [np.inf]], self.nodes.size, axis=1)
        return Slots(self.nodes, root_keys(0, self.nodes), self.stats, self.stats.sum(axis=0), bounds)

    def search(self) -> Any:
        m = self.X.shape[1]
        features = np.broadcast_to(np.arange(m, dtype=np.int32), (self.nodes.size, m))
        return self.backend.search(self.backend.histogram(self.shard, self.slots(), features), self.slots(), SEARCH, m)

    def halves(self, feature: int) -> Any:
        """A cut of every open node in the middle of a column."""
        cut = int(self.codes.n_codes[feature]) // 2
        same = {"feature": feature, "kind": Test.THRESHOLD, "cut": cut, "missing": NOT_MET, "n_branches": 2}
        fields = {name: np.full(self.nodes.size, x, getattr(NO_SPLITS, name).dtype) for name, x in same.items()}
        return replace(NO_SPLITS, node=self.nodes, lookup_ptr=np.zeros(self.nodes.size + 1, np.int64), **fields)

    def split(self, splits: Any) -> None:
        self.stats = self.backend.children(self.shard, splits)
        self.nodes = self.nodes[-1] + 1 + np.arange(self.stats.shape[1], dtype=np.int32)
        self.backend.partition(self.shard, splits, self.nodes)


def edges(scene: Scene) -> Callable[[], Any]:
    return lambda: scene.backend.edges(scene.X, scene.spec, None)


def encode(scene: Scene) -> Callable[[], Any]:
    return lambda: scene.backend.encode(scene.X, scene.cuts)


def search_root(scene: Scene) -> Callable[[], Any]:
    return scene.search


def search_16(scene: Scene) -> Callable[[], Any]:
    """Sixteen nodes of about equal size."""
    for feature in range(4):
        scene.split(scene.halves(feature))
    return scene.search


def children(scene: Scene) -> Callable[[], Any]:
    """Children of the root with their channels, and its rows regrouped; opening it anew is timed with it."""

    def work() -> None:
        scene.begin()
        scene.split(scene.halves(0))

    return work


def finish(scene: Scene) -> Callable[[], Any]:
    """The whole tree of a small table; its opening is timed with it, as a fit has it."""
    growth, depth = Growth(SEARCH, Stop(), scene.X.shape[1]), np.zeros(1, np.int32)

    def work() -> Any:
        scene.begin()
        return scene.backend.finish(scene.shard, scene.slots(), depth, growth, 1)

    return work


METHODS = (edges, encode, search_root, search_16, children, finish)


@cache
def small_enough(device: str) -> int:
    """Rows that `finish` takes; 0: this backend leaves it to the levels."""
    return int(min(FINISHED, (backend := choose(device, 0)).finish_rows(Scene(backend, 400).shard, SEARCH)))


@pytest.mark.parametrize("device", ["numpy", "jit"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_method(benchmark: Any, method: Callable[[Scene], Callable[[], Any]], device: str) -> None:
    if device == "jit":
        pytest.importorskip("numba")
    rows = min(ROWS, small_enough(device)) if method is finish else ROWS
    if rows == 0:
        pytest.skip("this backend takes no whole subtrees")
    benchmark.group = f"{method.__name__}, {rows:,} rows"
    benchmark(method(Scene(choose(device, 0), rows)))
