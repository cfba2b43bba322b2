"""Backends, odd tables, and the plain lists that every protocol method is held to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gputree.backends.cuda import Cuda, open_cuda
from gputree.backends.gpu.driver import Driver
from gputree.backends.jit import Jit
from gputree.backends.oracle import Oracle
from gputree.backends.protocol import Backend, Bags, CodeSpec
from gputree.core.criteria import CRITERIA
from gputree.core.forest import Test
from gputree.core.keys import root_keys
from gputree.core.schema import Feature, Kind, Schema
from gputree.core.splits import NOT_MET, Slots, Splits
from gputree.core.target import Target, class_target, sum_target
from tests.conftest import require_compiler
from tests.emulator.driver import Emulator


def emulated(checked: bool) -> Backend:
    """The CUDA backend on the CPU."""
    require_compiler()
    return Cuda(Driver.of(Emulator(checked=checked).xp, 0))


BACKENDS: dict[str, Callable[[], Backend]] = {
    "numpy": Oracle,
    "jit": lambda: Jit(2),
    "emulated": lambda: emulated(checked=False),
    "checked": lambda: emulated(checked=True),
    "cuda": lambda: open_cuda("cuda"),
}
CATEGORIES = 5  # declared in every category column; the last never occurs


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.gpu] * (name == "cuda")) for name in BACKENDS])
def backend(request: pytest.FixtureRequest) -> Backend:
    return BACKENDS[request.param]()


@dataclass(frozen=True)
class Case:
    """A table: X f8 (n, F), y (n, O) class numbers or floats, whole weights (n,) or None."""

    X: NDArray[Any]
    y: NDArray[Any]
    weight: NDArray[np.float64] | None = None
    criterion: str = "gini"
    sizes: tuple[int, ...] = (3,)  # classes of each output
    category: tuple[int, ...] = (2,)  # category columns
    declared: bool = False

    @property
    def n(self) -> int:
        return len(self.X)

    def schema(self) -> Schema:
        names = tuple(str(i) for i in range(CATEGORIES))
        return Schema(
            tuple(
                Feature(str(f), Kind.CATEGORICAL, names, self.declared) if f in self.category else Feature(str(f))
                for f in range(self.X.shape[1])
            )
        )

    def target(self) -> Target:
        if self.criterion in ("squared_error", "poisson"):
            return sum_target(self.y, CRITERIA[self.criterion], self.weight)
        return class_target(self.y, self.sizes, self.weight)

    def codes(self) -> list[list[int]]:
        """Code of every row, column by column: the rank of its value, 0 where missing."""
        return [self.column_codes(f) for f in range(self.X.shape[1])]

    def column_codes(self, f: int) -> list[int]:
        column = [float(x) for x in self.X[:, f]]
        rank = {x: i + 1 for i, x in enumerate(sorted({x for x in column if not math.isnan(x)}))}
        if f in self.category:
            rank = {float(i): i + 1 for i in range(CATEGORIES)}
        return [0 if math.isnan(x) else rank[x] for x in column]

    def values(self, f: int) -> list[float]:
        """Value of code 1, of code 2 ..."""
        return sorted({float(x) + 0.0 for x in self.X[:, f] if not math.isnan(x)})


def table(n: int, seed: int = 0, distinct: int | None = None, **changes: Any) -> Case:
    """Columns: coarse numbers with missing and extreme values; all distinct; categories; constant."""
    rng = np.random.default_rng(seed)
    extreme = [-np.inf, np.inf, -1e300, 1e300, 5e-324, -5e-324, 0.0, -0.0, np.nan]
    coarse = np.where(rng.random(n) < 0.3, rng.choice(extreme, n), rng.integers(-3, 4, n) / 4)
    spread = rng.permutation(n) % (distinct or max(n, 1)) * 0.7
    category = rng.choice([0.0, 1.0, 2.0, 3.0, np.nan], n)
    X = np.column_stack([coarse, spread, category, np.full(n, 7.5)])
    return Case(**{"X": X, "y": rng.integers(0, 3, (n, 1)), **changes})


def weights(n: int) -> NDArray[np.float64]:
    return np.random.default_rng(9).integers(1, 6, n).astype(float)


def numbers(n: int, outputs: int) -> NDArray[np.float64]:
    return np.random.default_rng(8).integers(0, 9, (n, outputs)).astype(float)


def classes(n: int, *sizes: int) -> NDArray[Any]:
    return np.random.default_rng(7).integers(0, sizes, (n, len(sizes)))


CASES: dict[str, Callable[[], Case]] = {
    **{f"{n} rows": lambda n=n: table(n) for n in (0, 1, 2, 31, 32, 33)},  # type: ignore[misc]
    "all missing": lambda: table(33, X=np.full((33, 3), np.nan)),
    "one code": lambda: table(33, X=np.ones((33, 3))),
    "one class": lambda: table(33, y=np.zeros((33, 1), int), sizes=(1,)),
    "two classes": lambda: table(65, y=classes(65, 2), sizes=(2,)),
    "255 codes": lambda: table(300, distinct=255),
    "256 codes": lambda: table(300, distinct=256),
    "two outputs": lambda: table(64, y=classes(64, 3, 2), sizes=(3, 2)),
    "weights": lambda: table(64, weight=weights(64)),
    "many classes": lambda: table(90, y=classes(90, 41), sizes=(41,)),
    "regression": lambda: table(65, y=numbers(65, 1), criterion="squared_error"),
    "weighted regression": lambda: table(65, y=numbers(65, 2), weight=weights(65), criterion="squared_error"),
    "poisson": lambda: table(65, y=numbers(65, 1), weight=weights(65), criterion="poisson"),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


@dataclass(frozen=True)
class PlainTest:
    """The test of one node: a threshold on the code, or a branch for every category and for missing values."""

    node: int
    feature: int
    cut: int
    missing: int
    lookup: dict[int, int] = field(default_factory=dict)
    n_branches: int = 2

    def branch(self, code: int) -> int:
        if code == 0:
            return self.missing
        return self.lookup[code] if self.lookup else int(code > self.cut)


def record(tests: list[PlainTest]) -> Splits:
    """The protocol's record of tests."""
    cells = [sorted(t.lookup.items()) for t in tests]
    return Splits(
        node=np.array([t.node for t in tests], np.int32),
        feature=np.array([t.feature for t in tests], np.int32),
        score=np.zeros(len(tests)),
        gain=np.zeros(len(tests)),
        kind=np.array([Test.LOOKUP if t.lookup else Test.THRESHOLD for t in tests], np.uint8),
        cut=np.array([t.cut for t in tests], np.int32),
        low=np.zeros(len(tests)),
        missing=np.array([t.missing for t in tests], np.int32),
        n_branches=np.array([t.n_branches for t in tests], np.int32),
        lookup_ptr=np.cumsum([0, *(len(c) for c in cells)]),
        lookup_code=np.array([code for c in cells for code, _ in c], np.uint16),
        lookup_branch=np.array([branch for c in cells for _, branch in c], np.uint16),
    )


class Rows:
    """A shard of ``trees`` bags, and beside it the rows of every node as plain lists."""

    def __init__(self, backend: Backend, case: Case, trees: int = 2) -> None:
        self.backend, self.case, self.target = backend, case, case.target()
        self.cuts = backend.edges(case.X, CodeSpec(case.schema()), None)
        self.shard = backend.open(backend.encode(case.X, self.cuts), self.target, Bags(trees))
        self.codes = case.codes()
        self.nodes: dict[int, list[int]] = {tree: list(range(case.n)) for tree in range(trees)}
        self.leaves = list(self.nodes)

    def channels(self, rows: list[int]) -> list[int]:
        """What rows add up to, one Python addition at a time."""
        layout, units = self.target.layout, self.target.weights.units
        total = [0] * layout.n_channels
        for i in rows:
            w = 1 if units is None else int(units[i])
            if self.target.labels is not None:
                for o, label in enumerate(self.target.labels[:, i]):
                    total[sum(layout.sizes[:o]) + int(label)] += w
            else:
                total[0] += w
                assert self.target.sums is not None
                for o, s in enumerate(self.target.sums.values[:, i]):
                    total[1 + o] += int(s)
            if layout.rows >= 0:
                total[layout.rows] += 1
        return total

    def cells(self, node: int, feature: int) -> dict[int, list[int]]:
        """Channels by code present, in order of the codes."""
        rows: dict[int, list[int]] = {}
        for i in self.nodes[node]:
            rows.setdefault(self.codes[feature][i], []).append(i)
        return {code: self.channels(rows[code]) for code in sorted(rows)}

    def slots(self, nodes: list[int]) -> Slots:
        stats = np.array([self.channels(self.nodes[i]) for i in nodes], np.int64).reshape(len(nodes), -1).T
        return Slots(
            np.array(nodes, np.int32),
            root_keys(11, np.array(nodes)),
            np.ascontiguousarray(stats),
            np.array([len(self.nodes[i]) for i in nodes], np.int64),
            np.repeat([[-np.inf], [np.inf]], len(nodes), axis=1),
        )

    def draw(self, rng: np.random.Generator) -> list[PlainTest]:
        """A random test for every leaf with rows; parts that stay empty are welcome."""
        return [self.draw_test(i, rng) for i in self.leaves if self.nodes[i]]

    def draw_test(self, node: int, rng: np.random.Generator) -> PlainTest:
        feature = int(rng.integers(self.case.X.shape[1]))
        present = sorted({self.codes[feature][i] for i in self.nodes[node]})
        if feature in self.case.category:
            lookup = {code: code - 1 for code in present if code} or {1: 0}
            return PlainTest(node, feature, 0, CATEGORIES if 0 in present else NOT_MET, lookup, CATEGORIES + 1)
        missing = int(rng.integers(2)) if 0 in present else NOT_MET
        return PlainTest(node, feature, int(rng.choice(present)), missing)

    def parts(self, tests: list[PlainTest]) -> Iterator[list[int]]:
        """Rows of every branch of every test."""
        for t in tests:
            rows: list[list[int]] = [[] for _ in range(t.n_branches)]
            for i in self.nodes[t.node]:
                rows[t.branch(self.codes[t.feature][i])].append(i)
            yield from rows

    def split(self, tests: list[PlainTest]) -> None:
        """Regroup the shard and the lists."""
        parts = list(self.parts(tests))
        children = range(len(self.nodes), len(self.nodes) + len(parts))
        self.backend.partition(self.shard, record(tests), np.array(children, np.int32))
        self.nodes |= dict(zip(children, parts, strict=True))
        self.leaves = [i for i in self.leaves if i not in {t.node for t in tests}] + list(children)


def regrouped(backend: Backend, case: Case, steps: int = 3, trees: int = 2) -> Rows:
    """Two bags, regrouped a few times by random tests."""
    rows, rng = Rows(backend, case, trees), np.random.default_rng(5)
    for _ in range(steps):
        if tests := rows.draw(rng):  # growth ends when nothing is left to split
            rows.split(tests)
    return rows
