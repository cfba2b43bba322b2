"""The kernels are held by the tests: each of many single edits of their text is caught by a small scenario.

An edit is caught where the emulator refuses what a thread does, or where what the backend says of the scenario is not
what the oracle says. The text to be replaced stands once in its file, so that the table follows the kernels or fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gputree.backends.cuda import Cuda
from gputree.backends.gpu import driver
from gputree.backends.oracle import Oracle
from gputree.backends.protocol import Backend, Bags, CodeSpec
from gputree.backends.source import kernels_folder, read_kernel
from gputree.core.bags import strata
from gputree.core.criteria import CRITERIA
from gputree.core.forest import SPREAD, STAY, Forest
from gputree.core.keys import root_keys
from gputree.core.routes import branch_shares
from gputree.core.schema import Feature, Kind, Schema
from gputree.core.splits import (
    MULTIWAY,
    ONE_AGAINST_REST,
    RANDOM,
    RANDOM_SUBSET,
    SUBSET,
    THRESHOLD,
    CutRule,
    Generator,
    Limits,
    Missing,
    Search,
    Slots,
    choose,
)
from gputree.core.target import counting_rows
from tests.backends.conftest import Case, PlainTest, Rows, record
from tests.backends.test_spread import spreading
from tests.backends.test_spread import table as missing_table
from tests.emulator.driver import Emulator, Properties
from tests.emulator.errors import KernelError

pytestmark = pytest.mark.usefixtures("compiler")

SEEDS = (1, 2)  # of the turns that threads take: each must tell, the first alone where turns do not matter
RESULT, RACE, NEW, MASK = "another result", "race: ", "uninitialised: ", "mask 0x0000ffff does not name"
BOUNDS, OVERFLOW, CAST = "out of bounds: ", "overflow of a signed", "outside the integer type"
UNORDERED, WRONG = f"{RACE}|{NEW}", f"{BOUNDS}|{RESULT}"
ANY = f"{UNORDERED}|{WRONG}"  # rows or cells in places of others: what is seen first depends on turns
Told = list[NDArray[Any]]

# ---- what a backend says of a table ----


def grown(
    backend: Backend,
    case: Case,
    searches: tuple[Search, ...] = (),
    steps: int = 1,
    trees: int = 2,
    upper: float = np.inf,
) -> Told:
    """Totals, children, tables, extents and searches of bags that random tests have split `steps` times."""
    rows, rng = Rows(backend, case, trees), np.random.default_rng(5)
    told = [*backend.totals(rows.shard)]
    for _ in range(steps):
        tests = rows.draw(rng)
        told.append(backend.children(rows.shard, record(tests)))
        rows.split(tests)
    told.append(backend.extent(rows.shard, np.array(rows.leaves, np.int32)))
    slots, m = rows.slots(rows.leaves), case.X.shape[1]
    slots = replace(slots, bounds=np.repeat([[-np.inf], [upper]], len(slots), axis=1))
    features = np.broadcast_to(np.random.default_rng(3).permutation(m).astype(np.int32), (len(slots), m))
    found = backend.histogram(rows.shard, slots, features)
    told += backend.read(found)
    for wanted in searches:
        told += best_tests(backend, found, slots, wanted)
    return told


def best_tests(backend: Backend, found: Any, slots: Slots, search: Search) -> Told:
    """The best test of every slot, and of every slot and feature where there is one."""
    m = found.features.shape[1]
    splits, places = choose(backend.search(found, slots, search, m), slots, m)
    every = backend.search(found, slots, search)
    met = every.score > -np.inf
    fields = ("score", "gain", "kind", "cut", "low", "missing", "n_branches")
    cells = [getattr(every, name) for name in ("score", "lookup_pair", "lookup_code", "lookup_branch")]
    chosen = [getattr(splits, name) for name in (*fields, "feature", "lookup_code", "lookup_branch")]
    return [places, *chosen, *cells, *(getattr(every, name)[met] for name in fields)]


def search(criterion: str, *generators: Any, **limits: Any) -> Search:
    return Search(generators or (THRESHOLD,), CRITERIA[criterion], Limits(**limits))


def columns(n: int, sizes: tuple[int, ...], missing: float = 0.1) -> NDArray[np.float64]:
    """Columns of so many distinct values, spread evenly, and of missing ones."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.permutation(n) % size for size in sizes]).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def labels(n: int, classes: int, outputs: int = 1) -> NDArray[np.int64]:
    return np.random.default_rng(2).integers(0, classes, (n, outputs))


def coded(backend: Backend, wanted: Search | None = None) -> Told:
    """Quantile codes of float32 values, denormal ones among them: tables and best cuts of all rows and of a few."""
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.normal(size=2100) * scale for scale in (1e-42, 1.0, 1.0, 1e30, 1.0)]).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    case = Case(X, labels(2100, 3), category=())
    cuts, told = backend.edges(X, CodeSpec(case.schema(), 40), None), []
    for n in (2100, 20):  # few rows leave runs of codes empty
        part = Case(X[:n], case.y[:n], category=())
        shard = backend.open(backend.encode(part.X, cuts), part.target(), Bags(1))
        stats, _ = backend.totals(shard)
        slots = Slots(np.zeros(1, np.int32), root_keys(11, np.zeros(1, int)), stats, np.array([n]), np.zeros((2, 1)))
        found = backend.histogram(shard, slots, np.arange(5, dtype=np.int32)[None])
        told += [stats, *backend.read(found), *best_tests(backend, found, slots, wanted or search("gini"))]
    return told


def bagged(backend: Backend, case: Case) -> Told:
    """Three bags of two strata with probabilities, and of all rows without; split once, tables of all branches."""
    told = []
    weight = np.random.default_rng(8).integers(1, 4, 1500) ** 20.0
    for draws in (
        strata(labels(1500, 2)[:, 0], 1500, np.array([900, 1300]), weight, True),
        strata(None, 1500, np.array([1500]), None, True),
    ):
        cuts = backend.edges(case.X, CodeSpec(case.schema()), None)
        shard = backend.open(backend.encode(case.X, cuts), counting_rows(case.target()), Bags(3, 2, 9, draws))
        stats, _ = backend.totals(shard)
        test = record([PlainTest(tree, 0, 20, 1) for tree in range(3)])
        children = backend.children(shard, test)
        backend.partition(shard, test, np.arange(3, 9, dtype=np.int32))
        slots = Slots(
            np.arange(3, 9, dtype=np.int32), root_keys(1, np.arange(6)), children, children[-1], np.zeros((2, 6))
        )
        table = backend.histogram(shard, slots, np.broadcast_to(np.arange(2, dtype=np.int32), (6, 2)))
        told += [stats, children, *backend.read(table)]
    return told


@dataclass(frozen=True)
class Tags(Case):
    """A case whose categories have 70 names."""

    def schema(self) -> Schema:
        names = tuple(map(str, range(70)))
        tags = Feature("tag", Kind.CATEGORICAL, names, self.declared)
        return Schema(tuple(tags if f in self.category else Feature(str(f)) for f in range(self.X.shape[1])))


def known(
    case: Case,
    criterion: str = "gain_ratio",
    rule: tuple[float, ...] = (1.0, 0.1, 2.0, 25.0, 0.0, 1e-5),
    least: float = 2.0,
    categories: Generator = MULTIWAY,
    **limits: Any,
) -> Search:
    """A search of known rows alone; weights of the rule (but its share) and ``least`` in cases."""
    one = 1.0 / case.target().weights.unit
    unit, share, low, high, slack, gap = rule
    cuts = CutRule(unit * one, share, low * one, high * one, slack * one, gap)
    given = Limits(min_weight=int(least * one), **{"heavy": 2, **limits})
    return Search((THRESHOLD, categories), CRITERIA[criterion], given, Missing.SPREAD, cuts)


def spread(backend: Backend, case: Case, searches: tuple[Search, ...] = (), steps: int = 3, trees: int = 2) -> Told:
    """Totals, tables and searches of known rows, of bags split without missing branches first, then with them."""
    cuts = backend.edges(case.X, CodeSpec(case.schema()), None)
    shard = backend.open(backend.encode(case.X, cuts), case.target(), Bags(trees))
    stats, m, told = backend.totals(shard)[0], case.X.shape[1], []
    ids, first, met = np.arange(trees, dtype=np.int32), trees, np.ones(trees, bool)
    for step in range(steps):
        tests = [_spreading(case, int(i), step) for i in ids]
        splits = record(tests)
        stats = backend.children(shard, splits)
        children = np.arange(first, first + stats.shape[1], dtype=np.int32)
        backend.partition(shard, splits, children)
        met = stats[-1] > 0
        ids, first, told = children[met], first + children.size, [*told, stats]
    stats = np.ascontiguousarray(stats[:, met])
    rows = stats.sum(axis=0) if case.weight is None else stats[-1]
    slots = Slots(ids, root_keys(1, ids), stats, rows, np.repeat([[-np.inf], [np.inf]], ids.size, axis=1))
    found = backend.histogram(shard, slots, np.broadcast_to(np.arange(m, dtype=np.int32), (ids.size, m)))
    told += backend.read(found)
    for wanted in searches:
        told += best_tests(backend, found, slots, wanted)
    return told


def _spreading(case: Case, node: int, step: int) -> PlainTest:
    """A test of the first column that sends missing values right, then tests that spread them, but in a fifth node."""
    names = len(case.schema().features[case.category[0]].categories) if case.category else 0
    missing = 1 if step == 0 or node % 5 == 4 else SPREAD
    if step == 1 and names:
        lookup = {code: code - 1 for code in range(1, names + 1)}
        return PlainTest(node, case.category[0], 0, missing, lookup, names)
    return PlainTest(node, 0 if step != 2 else 1, (20, 8, 1)[step], missing)


def walked(backend: Backend) -> Told:
    """Three trees: tests of a number (column 0) and of categories (column 1), some of which no test lists.

    Missing values stay at the root of the third.
    """
    kind = np.array([1, 0, 3, 0, 0, 0, 3, 0, 0, 1, 0, 0], np.uint8)
    first = np.array([1, -1, 3, -1, -1, -1, 7, -1, -1, 10, -1, -1], np.int32)
    blank = {name: np.zeros(12, t) for name, t in (("met_missing", "u1"), ("score", "f8"), ("impurity", "f8"))}
    forest = Forest(
        roots=np.array([0, 6, 9], np.int32),
        kind=kind,
        feature=np.where(kind == 0, -1, kind // 2).astype(np.int32),
        low=np.where(first == 10, -1.0, 0.0),
        first_child=first,
        n_children=np.where(kind == 0, 0, np.where(first == 3, 3, 2)).astype(np.uint16),
        missing=np.where(first == 10, STAY, first == 1).astype(np.uint16),
        unseen=np.where(first == 3, 2, first == 7).astype(np.uint16),
        lookup_ptr=np.repeat([0, 2, 3], [3, 4, 6]),
        lookup_code=np.array([1, 2, 4], np.uint16),
        lookup_branch=np.array([0, 1, 0], np.uint16),
        stats=np.zeros((12, 1), np.int64),
        parent=np.array([-1, 0, 0, 2, 2, 2, -1, 6, 6, -1, 9, 9], np.int32),
        depth=np.array([0, 1, 1, 2, 2, 2, 0, 1, 1, 0, 1, 1], np.int32),
        value=np.random.default_rng(6).normal(size=(12, 2)),
        **blank,
    )
    rng = np.random.default_rng(7)
    X = np.column_stack([rng.choice([-2.0, -1.0, 0.0, 1.0, np.nan], 300), rng.choice([-1.0, 0, 1, 2, 3, np.nan], 300)])
    return [backend.apply(forest, X), backend.predict(forest, X)]


def parted(backend: Backend) -> Told:
    """The sums of five trees, most of whose tests spread the rows that they do not know."""
    forest, weight = spreading(3, 5)
    X = missing_table(np.random.default_rng(7), 300)
    return [backend.predict(forest, X, branch_shares(forest, weight))]


def looked_for(backend: Backend) -> Told:
    """Whether a value of the last column alone is missing, of a column between, and of none."""
    X = np.ones((300, 5), np.float32)
    last, inner = X.copy(), X.copy()
    last[299, 4] = inner[7, 2] = np.nan
    return [np.array([backend.any_missing(x) for x in (last, inner, X)])]


FAR = 1 << 30


def far(backend: Backend) -> Told:
    """64 rows whose records lie behind 2^31 words of records; the oracle needs no such place."""
    rows = Rows(backend, Case(columns(64, (3,)), labels(64, 2), sizes=(2,), category=()), 1)
    if isinstance(backend, Cuda):
        shard, xp = rows.shard, backend.driver.xp
        records = xp.sparse((1, FAR + 64, 2), np.uint32)
        records[:, FAR:] = shard.codes.records
        shard.codes = replace(shard.codes, n=FAR + 64, records=records)
        shard.rows = xp.asarray(np.tile(np.arange(FAR, FAR + 64), 2).astype(np.uint32))
    slots = rows.slots([0])
    return [*backend.read(backend.histogram(rows.shard, slots, np.zeros((1, 1), np.int32)))]


SMALL, TWO = columns(1500, (40, 3, 4, 7, 2, 2)), columns(600, (40, 3, 4, 5), 0.2)
HEAVY = np.random.default_rng(8).lognormal(sigma=2.0, size=1500)
NEGATIVE = -1.0 - np.random.default_rng(9).random((1500, 2))
MIXTURE = np.tile([[0], [1]], (41, 1))  # of every code alike, so that all cuts are equals
EQUALS = Case(np.repeat(np.append(np.arange(40.0), np.nan), 2)[:, None] * np.ones(64), MIXTURE, sizes=(2,), category=())
SIGNS = np.array([1, -1, 0, 1], np.int8)
CATEGORIES = (search("gini", SUBSET), search("gini", MULTIWAY), search("gini", RANDOM_SUBSET, RANDOM))
WHOLE = np.random.default_rng(8).integers(1, 5, 1500).astype(float)
MIXED = Case(SMALL, labels(1500, 3), HEAVY)
FIRST = ~np.isnan(SMALL[:, 0]) & (SMALL[:, 0] % 20 < 5)
TOLD = Case(SMALL, np.where(FIRST, 0, labels(1500, 3)[:, 0])[:, None], WHOLE)  # the first column tells of the class
UNEVEN = columns(600, (40, 3, 10, 5), 0.2)
UNEVEN[:, 2] = np.digitize(UNEVEN[:, 2], [1, 3, 6]) + 0 * UNEVEN[:, 2]  # 1 to 4 tenths of the rows
FOUR = np.nan_to_num(UNEVEN[:, 2] % 2)
GROUPS = Case(UNEVEN, np.where(labels(600, 3)[:, 0] == 0, 1 - FOUR, FOUR).astype(int)[:, None], WHOLE[:600], sizes=(2,))
MOSTLY = replace(GROUPS, X=np.column_stack([UNEVEN[:, :2], np.minimum(UNEVEN[:, 2], 1)]))  # one category of nine tenths
DECLARED = replace(GROUPS, declared=True)
TAGS = columns(1500, (40, 3, 66, 1), 0.1)
TAGGED = Tags(TAGS, np.where(labels(1500, 3)[:, 0] == 0, 0, np.nan_to_num(TAGS[:, 2]) % 3).astype(int)[:, None], WHOLE)
PAIR = replace(TOLD, y=np.column_stack([TOLD.y[:, 0], labels(1500, 2)[:, 0]]), sizes=(3, 2))
LINE = np.arange(100.0)[:, None]
ENDS = Case(LINE, np.digitize(LINE, [9.5, 94.5]), category=())  # ten rows of one class, five of another
EVEN = Case(
    np.column_stack([np.zeros(80), np.where(np.arange(80) < 64, np.arange(80) % 4, np.nan)]),
    labels(80, 3),
    np.where(np.arange(80) < 64, 2.0, 7.0),
    category=(1,),
)
ONE = Case(np.array([[0.0, 0.0], [0.0, 1.0], [0.0, np.nan]]), np.array([[0], [1], [2]]), np.array([1.0, 48.0, 49.0]))
ONE = replace(ONE, category=(1,))  # 49 * (1 / 49) is below 1


def twins(c: int) -> Case:
    """Cuts behind code c and behind code 40 - c gain the same; so many rows are of missing values that both count."""
    x = np.repeat(np.append(np.arange(40.0), np.nan), 2)
    return Case(x[:, None], ((x < c) | (x >= 40 - c)).astype(int)[:, None], sizes=(2,), category=())


SCENARIOS: dict[str, Callable[[Backend], Told]] = {
    "labels": partial(grown, case=Case(SMALL, labels(1500, 3)), searches=(search("gini", min_rows=40),), steps=2),
    "few rows": partial(grown, case=Case(SMALL[:150], labels(150, 3)), steps=2, trees=70),
    "weights": partial(
        grown, case=Case(SMALL, labels(1500, 3), HEAVY), searches=(search("entropy", min_weight=3 << 47),), steps=2
    ),
    "two outputs": partial(grown, case=Case(SMALL, labels(1500, 6, 2) % (3, 2), sizes=(3, 2))),
    "wide": partial(grown, case=Case(columns(1300, (41,) * 33), labels(1300, 3), category=())),
    "many classes": partial(
        grown, case=Case(columns(6000, (100,)), labels(6000, 41), sizes=(41,), category=()), steps=0
    ),
    "numbers": partial(
        grown, case=Case(SMALL, NEGATIVE, criterion="squared_error"), searches=(search("squared_error"),), steps=2
    ),
    "zeros": partial(
        grown, case=Case(SMALL, (labels(1500, 30) == 0) * 1.0, criterion="poisson"), searches=(search("poisson"),)
    ),
    "monotone": partial(
        grown, case=Case(TWO, labels(600, 2), sizes=(2,)), searches=(search("gini", monotone=SIGNS),), upper=0.51
    ),
    "equals": partial(grown, case=EQUALS, searches=(search("gini"),), steps=0),
    "equal categories": partial(
        grown, case=Case(EQUALS.X[:6, :3], MIXTURE[:6], sizes=(2,)), searches=(search("gini", SUBSET),), steps=0
    ),
    "categories": partial(grown, case=Case(TWO, labels(600, 2), sizes=(2,)), searches=CATEGORIES, steps=2),
    "sparse": partial(grown, case=Case(columns(1100, (1000, 300, 4, 500, 400)), labels(1100, 3)), trees=8),
    "large": partial(
        grown, case=Case(columns(34_000, (40, 9)), labels(34_000, 2), sizes=(2,), category=()), steps=2, trees=1
    ),
    "bags": partial(bagged, case=Case(SMALL, labels(1500, 3))),
    "bags of numbers": partial(bagged, case=Case(SMALL, NEGATIVE, criterion="squared_error")),
    "coded": coded,
    "walked": walked,
    "walked in shares": parted,
    "looked for": looked_for,
    "far": far,
    "branches": partial(
        grown,
        case=Case(TWO, labels(600, 2), sizes=(2,), declared=True),
        searches=(search("gini", MULTIWAY, least_met=1), search("gini", MULTIWAY, max_branches=1)),
        steps=2,
    ),
    "one category": partial(
        grown,
        case=Case(columns(600, (4, 4), 0.0), labels(600, 2), sizes=(2,), category=(0, 1)),
        searches=(search("gini", MULTIWAY, least_met=1),),
    ),
    "branches of two outputs": partial(
        grown, case=Case(SMALL, labels(1500, 6, 2) % (3, 2), sizes=(3, 2)), searches=(search("entropy"),)
    ),
    "spread": partial(spread, case=MIXED),
    "spread evenly": partial(spread, case=EVEN, steps=2),
    "spread one unit": partial(spread, case=ONE, steps=2),
    "spread of two outputs": partial(spread, case=replace(PAIR, weight=HEAVY), steps=2),
    "known cuts": partial(
        spread,
        case=TOLD,
        searches=(
            known(TOLD),
            known(TOLD, rule=(1.0, 0.02, 2.0, 25.0, 0.0, 1e-5)),
            known(TOLD, "entropy", rule=(1.0, 0.1, 300.0, 400.0, 0.0, 1e-5)),
            known(TOLD, "entropy", rule=(1.0, 0.4, 2.0, 900.0, 100.0, 1e-5)),
            known(TOLD, rule=(30.0, 0.1, 2.0, 25.0, 0.0, 1e-5)),
            known(TOLD, rule=(1.0, 0.1, 2.0, 25.0, 0.0, 1.0)),
            known(TOLD, min_info=0.9),
        ),
        steps=1,
    ),
    "known few": partial(
        spread, case=TOLD, searches=(known(TOLD), known(TOLD, rule=(0.0, 0.0, 1.0, 1.0, 0.0, 1e-5))), steps=3
    ),
    "known ends": partial(
        spread,
        case=ENDS,
        searches=(
            known(ENDS, rule=(1.0, 0.1, 10.0, 25.0, 0.0, 1e-5)),
            known(ENDS, rule=(1.0, 0.1, 10.0, 5.0, 0.0, 1e-5)),
            known(ENDS, rule=(1.0, 0.1, 2.0, 9.0, 0.0, 0)),
        ),
        steps=0,
    ),
    "known twins in a lane": partial(spread, case=twins(4), searches=(known(twins(4)),), steps=0),
    "known twins in a warp": partial(spread, case=twins(10), searches=(known(twins(10)),), steps=0),
    "known groups": partial(
        spread,
        case=GROUPS,
        searches=(
            known(GROUPS),
            known(GROUPS, "entropy", max_branches=4),
            known(GROUPS, "entropy", max_branches=3),
            known(GROUPS, "entropy", least=100.0, heavy=3),
            known(GROUPS, "entropy", least=100.0, heavy=None),
            known(GROUPS, min_info=1.9),
        ),
        steps=1,
    ),
    "known groups of many": partial(spread, case=GROUPS, searches=(known(GROUPS),), steps=0, trees=40),
    "known and declared": partial(
        spread, case=DECLARED, searches=(known(DECLARED), known(DECLARED, least_met=1, heavy=1, min_info=0.0)), steps=2
    ),
    "known one": partial(
        spread,
        case=GROUPS,
        searches=(
            known(GROUPS, categories=ONE_AGAINST_REST),
            known(GROUPS, "entropy", categories=ONE_AGAINST_REST, least=200.0),
            known(GROUPS, "entropy", categories=ONE_AGAINST_REST, least=700.0),
            known(GROUPS, categories=ONE_AGAINST_REST, min_info=1.9),
        ),
        steps=1,
    ),
    "known one of nearly all": partial(
        spread, case=MOSTLY, searches=(known(MOSTLY, "entropy", least=100.0, categories=ONE_AGAINST_REST),), steps=1
    ),
    "known one of many": partial(spread, case=TAGGED, searches=(known(TAGGED, categories=ONE_AGAINST_REST),), steps=2),
    "known one of two outputs": partial(
        spread, case=PAIR, searches=(known(PAIR, "entropy", categories=ONE_AGAINST_REST),), steps=1
    ),
    "known tags": partial(spread, case=TAGGED, searches=(known(TAGGED), known(TAGGED, "entropy", heavy=60)), steps=1),
    "known heavy tags": partial(
        spread, case=replace(TAGGED, weight=HEAVY), searches=(known(TAGGED, "entropy", heavy=1, least=1e-9),), steps=1
    ),
    "known of two outputs": partial(
        spread, case=PAIR, searches=(known(PAIR), known(PAIR, "entropy"), known(PAIR, heavy=5)), steps=1
    ),
    "known sparse": partial(
        spread,
        case=Case(
            np.column_stack([columns(1100, (1000, 300, 4, 500)), np.arange(1100) % 400]), labels(1100, 3), WHOLE[:1100]
        ),
        searches=(known(TOLD, "entropy", rule=(0.0, 0.1, 2.0, 25.0, 0.0, 1e-5)),),
        steps=1,
    ),
    "known quantiles": partial(coded, wanted=known(EQUALS, "entropy", rule=(0.0, 0.1, 2.0, 25.0, 0.0, 0.0))),
}

# ---- edits ----

Edit = tuple[str, str, str, str]  # scenario, how it is told, text, what takes its place

HISTOGRAM: dict[str, Edit] = {
    "cells not cleared": ("labels", NEW, "i += blockDim.x) cells[i] = 0;", "i += blockDim.x) ;"),
    "high halves not cleared": ("weights", NEW, "(GT_BIG_CELL ? 2 : 1)", "1"),
    "no barrier behind zeros": ("labels", UNORDERED, "__syncthreads();  // cells are zero\n", "\n"),
    "no barrier before the flush": ("labels", RACE, "__syncthreads();  // rows are added", ""),
    "no barrier behind the flush": ("labels", RACE, "__syncthreads();  // cells are zero again", ""),
    "flush leaves cells": ("labels", RESULT, "cells[at] = 0;", ""),
    "flush leaves high halves": ("weights", RESULT, "if (GT_BIG_CELL) cells[n_cells + at] = 0;", ""),
    "private copies left out": ("weights", ANY, "column < columns; column += features", "column < features; column++"),
    "carry dropped": ("weights", RESULT, " + (before + low < low)", ""),
    "rows behind the slot": ("labels", ANY, "* tile, stop[s]), slot", "* tile, stop[s] + 9), slot"),
    "class tiles overlap": ("many classes", WRONG, "= first_channel + channels;", "= first_channel + channels + 1;"),
    "class tiles in one place": ("many classes", RESULT, "(first_channel + channel) * width", "channel * width"),
    "features of the first part": ("wide", RESULT, "first = part % parts * own", "first = 0"),
    "rows of others counted": ("few rows", ANY, "start[s] + (i / m - row_ptr[s])", "start[s] + i / m"),
    "keys of pairs mixed": ("sparse", RESULT, "(gt_u64)(slot * m + j) << 16", "(gt_u64)(slot * m + j) << 8"),
    "a cell for each row": ("sparse", RESULT, "keys[i] >> bits != keys[i - 1] >> bits", "true"),
    "cells of the last round": ("sparse", ANY, "count += __syncthreads_count", "count = __syncthreads_count"),
    "no barrier before of_warp": ("sparse", RACE, "__syncthreads();  // of_warp is no longer read", ""),
    "no barrier behind of_warp": ("sparse", UNORDERED, "__syncthreads();  // of_warp is there", ""),
    "pair ends early": ("sparse", RESULT, "end[pair] = mine + 1", "end[pair] = mine"),
    "own head not counted": ("sparse", ANY, "(gt_lanes_before() | 1u << GT_LANE)", "gt_lanes_before()"),
}
BAGS: dict[str, Edit] = {
    "carry of the wrong lane": ("sparse", ANY, "carry = __shfl_sync(GT_EVERYONE, sum, 31)", "carry = sum"),
    "no carry": ("sparse", ANY, "const gt_i64 sum = carry + gt_scan", "const gt_i64 sum = gt_scan"),
    "another stream": ("bags", RESULT, "GT_BAG, (gt_u64)number", "GT_CHILD, (gt_u64)number"),
    "draws of the first tree": ("bags", RESULT, "gt_draw(key[tree]", "gt_draw(key[0]"),
    "draws not added up": ("bags", ANY, "atomicAdd(&often[tree * n + rows[first]], 1u)", "often[rows[first]] = 1u"),
    "weights of draws ignored": ("bags", RESULT, "if (!weighted)", "if (true)"),
    "rows of the last round": ("bags", ANY, "count += __syncthreads_count", "count = __syncthreads_count"),
    "times of others": ("bags", RESULT, "high = count - 1;", "high = 0;"),
    "no barrier behind of_warp": ("bags", ANY, "__syncthreads();  // of_warp is there", ""),
}
DEVICE_IN_HISTOGRAM: dict[str, Edit] = {
    "drawn rows count once": ("bags", RESULT, "return {low, (gt_i64)high + 1};", "return {low, 1};"),
    "drawn numbers count once": ("bags of numbers", RESULT, "return {low, (gt_i64)high + 1};", "return {low, 1};"),
    "row of the slot before": ("few rows", ANY, "if (ptr[middle] <= x)", "if (ptr[middle] < x)"),
    "record at a 32-bit place": ("far", OVERFLOW, "((gt_i64)group * n + row) * words", "(int)row * words"),
    "codes of the first group": ("wide", RESULT, "((gt_i64)group * n + row) * words", "row * words"),
    "label of the record before": ("labels", BOUNDS, "(group * n + row + 1) *", "(group * n + row) *"),
    "label at a 32-bit place": ("far", OVERFLOW, "(group * n + row + 1) * words", "((int)row + 1) * words"),
    "outputs overlap": ("two outputs", RESULT, "channel += sizes[o]", "channel += sizes[o] - 1"),
    "rows weigh 1": ("weights", RESULT, "how & 1 ? units[how", "0 ? units[how"),
    "weights of whole rows": ("spread", RESULT, "how & 4 ? p : row.number", "row.number"),
    "weights of other rows": ("weights", ANY, "how & 4 ? p : row.number", "p"),
}
DEVICE_IN_SEARCH: dict[str, Edit] = {
    "scan leaves a lane out": ("labels", RESULT, "if (GT_LANE >= by) value", "if (GT_LANE > by) value"),
    "scan of half warps": (
        "labels",
        RESULT,
        "(GT_EVERYONE, value, by);\n        if",
        "(GT_EVERYONE, value, by, 16);\n        if",
    ),
    "mask of half a warp": ("labels", MASK, "__shfl_up_sync(GT_EVERYONE,", "__shfl_up_sync(0xFFFFu,"),
}
DEVICE_IN_ENCODE: dict[str, Edit] = {
    "equal keys are below": ("labels", ANY, "keys[next - 1] < x", "keys[next - 1] <= x"),
    "last key not seen": ("coded", RESULT, "next <= m && keys", "next < m && keys"),
    "signs of denormals": ("coded", RESULT, "return bits >> 31 ? -size : size", "return size"),
}
DEVICE_IN_PARTITION: dict[str, Edit] = {
    "order of negative values": (
        "numbers",
        RESULT,
        "return bits >> 63 ? ~bits : bits | 0x8000000000000000ULL",
        "return bits | 0x8000000000000000ULL",
    ),
}
ENCODE: dict[str, Edit] = {
    "no barrier before keys": ("wide", RACE, "__syncthreads();  // the keys of the last item are no longer read", ""),
    "no barrier behind keys": ("coded", UNORDERED, "__syncthreads();  // keys are there", ""),
    "missing values have a code": (
        "coded",
        RESULT,
        "const unsigned code = x != x ? 0 : 1 +",
        "const unsigned code = 1 +",
    ),
    "tile behind the rows": ("coded", BOUNDS, "min(begin + GT_TILE, n_block)", "begin + GT_TILE"),
    "labels of other rows": ("wide", RESULT, "labels[i % n]", "labels[i / groups]"),
    "known values are missing": ("looked for", RESULT, "mine += x != x;", "mine += x == x;"),
    "missing in the first column alone": (
        "looked for",
        RESULT,
        "i / columns * row_step + i % columns * column_step",
        "i / columns * row_step",
    ),
}
PARTITION: dict[str, Edit] = {
    "no __syncwarp behind zeros": ("labels", UNORDERED, "__syncwarp();  // totals are 0", ""),
    "no __syncwarp behind rows": ("labels", RACE, "__syncwarp();  // totals and counts are added", ""),
    "one lane counted": ("labels", ANY, "count[here] = before + __popc(same)", "count[here] = before + 1"),
    "lanes in one place": ("labels", ANY, "mine = before + __popc(same & gt_lanes_before())", "mine = before"),
    "carry of offsets lost": ("large", ANY, "carry += __shfl_sync", "carry = __shfl_sync"),
    "rows of all splits in one place": ("labels", ANY, "moved[to + at] = rows[p]", "moved[at] = rows[p]"),
    "rows not put back": ("labels", RESULT, "rows[p] = moved[p + away];", ";"),
    "rows of others put back": ("labels", ANY, "rows[p] = moved[p + away];", "rows[p] = moved[p - begin];"),
    "least value not inverted": ("numbers", RESULT, "+ branch], ~image);", "+ branch], image);"),
    "extremes added up": ("numbers", RESULT, "if (i < n_channels)", "if (i < rows())"),
}
PREDICT: dict[str, Edit] = {
    "unseen ignored": ("walked", RESULT, "lookup_branch[low] : at.unseen", "lookup_branch[low] : 0"),
    "missing as unseen": ("walked", RESULT, "return at.missing;", "return at.unseen;"),
    "nothing stays": ("walked", ANY, "*end < GT_STAY;", "*end < GT_STAY || nodes[node].kind != GT_LEAF;"),
    "the threshold goes right": ("walked", RESULT, "!(x <= at.low)", "!(x < at.low)"),
    "search behind the category": ("walked", RESULT, "lookup_code[middle] < x + 1.0", "lookup_code[middle] <= x + 1.0"),
    "last tree first": (
        "walked",
        RESULT,
        "int tree = 0; tree < T; ++tree) {\n            int end;",
        "int tree = T - 1; tree >= 0; --tree) {\n            int end;",
    ),
    "whole leaves": ("walked in shares", RESULT, "+= own * value", "+= value"),
    "shares of the branch alone": ("walked in shares", RESULT, "? top.own * share[top.next]", "? share[top.next]"),
    "last child left out": ("walked in shares", RESULT, "first + n_children[node]}", "first + n_children[node] - 1}"),
    "last trees of shares left out": ("walked in shares", RESULT, "{1.0, roots[tree],", "{1.0, roots[tree] + 1,"),
    "forks of one thread": ("walked in shares", ANY, "* GT_THREADS + GT_THREAD];", "* GT_THREADS];"),
}
LOOKUP: dict[str, Edit] = {
    "categories of one thread": ("categories", RESULT, "met += __syncthreads_count(x == x)", "met += x == x"),
    "ties of categories reversed": ("equal categories", RESULT, "== x && q < i)", "== x && q > i)"),
    "the cut goes right": ("categories", RESULT, "r + !missing > chosen", "r + !missing >= chosen"),
    "others stand alone": ("known one", RESULT, "c != chosen[t].rank", "c == chosen[t].rank"),
    "missing is listed": ("known one", ANY, "c != GT_MISSING && view.weight", "view.weight"),
    "unmet are listed": ("known one", RESULT, "c != GT_MISSING && view.weight(i, sizes[0]) > 0)", "c != GT_MISSING)"),
}
SEARCH: dict[str, Edit] = {
    "weight of the wrong lane": ("labels", RESULT, "(GT_EVERYONE, weight, 31)", "(GT_EVERYONE, weight, 30)"),
    "last of equals in a lane": (
        "equals",
        RESULT,
        "best.score && rank < best.rank);\n            if",
        "best.score);\n            if",
    ),
    "missing to the left first": ("equals", RESULT, "GT_RIGHT = 0, GT_ALONE = 1,", "GT_RIGHT = 3, GT_ALONE = 1,"),
    "last feature in a lane": ("equals", RESULT, "mine.feature < feature", "mine.feature > feature"),
    "last feature in a warp": ("equals", RESULT, "other_feature < feature", "other_feature > feature"),
    "few rows on the right": ("labels", RESULT, "&& rows - c >= limits.min_rows", ""),
    "little weight on the left": ("weights", RESULT, "w >= limits.min_weight && slot.weight - w", "slot.weight - w"),
    "means rounded to 0": ("numbers", RESULT, "s / n - (s % n < 0)", "s / n"),
    "edge of an empty run": ("coded", RESULT, "edges[(cut + follow - 1) / 2]", "edges[(cut + follow) / 2]"),
    "two branches with rows": ("branches", RESULT, "fine &= met >= least_met &&", "fine &= met >= 2 &&"),
    "one branch is enough": ("one category", RESULT, "least_met && count >= 2 &&", "least_met &&"),
    "missing counted twice": ("categories", RESULT, "missing ? (int)count - 1 :", "missing ? (int)count :"),
    "missing to the side not drawn": ("categories", RESULT, "side == 1 - d;", "side == d;"),
    "missing to either side": ("categories", RESULT, "drawn && here;", "drawn;"),
    "missing alone beside a cut": ("categories", RESULT, "weight == known && drawn;", "weight == known;"),
}
CELLS_IN_SEARCH: dict[str, Edit] = {
    "sums not centred": ("numbers", RESULT, "(double)(x - weight * mean) * scale", "(double)x * scale"),
    "drawn from the other end": ("categories", RESULT, "low * (1.0 - u) + high * u", "low * u + high * (1.0 - u)"),
    "sides of another stream": ("categories", RESULT, "gt_draw(key, GT_SIDE,", "gt_draw(key, GT_THRESHOLD,"),
}
COMMON_IN_SEARCH: dict[str, Edit] = {
    "scores not rounded": ("labels", RESULT, "return (score + anchor) - anchor;", "return score;"),
    "logarithm of another half": ("weights", RESULT, "0x3FE6A09E667F3BCDLL", "0x3FF0000000000000LL"),
}
TEST_IN_PARTITION: dict[str, Edit] = {
    "missing to the other side": ("numbers", ANY, "return missing;", "return kind == GT_LOOKUP ? missing : !missing;"),
    "the cut goes right": ("numbers", ANY, "return c > cut;", "return c >= cut;"),
    "branch of the next category": ("categories", ANY, "if (code[middle] < c)", "if (code[middle] <= c)"),
}
TEST_IN_SPREAD: dict[str, Edit] = {
    "missing not spread": ("spread", ANY, "return missing;", "return missing == GT_SPREAD ? 0 : missing;"),
    "the cut goes right": ("spread", RESULT, "return c > cut;", "return c >= cut;"),
    "branch of the next category": ("spread", ANY, "if (code[middle] < c)", "if (code[middle] <= c)"),
}
SPREADING: dict[str, Edit] = {
    "quotient before product": ("spread one unit", RESULT, "((double)known[b] / total)", "(double)known[b] / total"),
    "whole rows in all branches": ("spread", RESULT, "own == b ? weight : 0", "weight"),
    "remainder lost": ("spread", RESULT, "if (b != top) return part(weight, b);", "return part(weight, b);"),
    "remainder to the first": ("spread", RESULT, "if (known[b] > known[shares.top])", "if (false)"),
    "remainder to the last of equals": (
        "spread evenly",
        RESULT,
        "known[b] > known[shares.top]",
        "known[b] >= known[shares.top]",
    ),
    "remainder less the heaviest": ("spread", RESULT, "other == top ? 0 : part(weight, other)", "part(weight, other)"),
    "shares of the last weight": ("spread", f"{CAST}|{ANY}", "total += known[b];", "total = known[b];"),
    "spread rows are known": ("spread", ANY, "if (b != GT_SPREAD) gt_add", "gt_add"),
    "known rows, not weights": (
        "spread",
        RESULT,
        "gt_add(&known[branch_ptr[s] + b], gt_weight(row, p, units, how))",
        "gt_add(&known[branch_ptr[s] + b], (gt_i64)1)",
    ),
    "known weights of the first split": ("spread", f"{CAST}|{ANY}", "&known[branch_ptr[s] + b]", "&known[b]"),
    "a row a step counted": ("spread", ANY, "count[b] += __popc(here)", "count[b] += 1"),
    "a row a step told": ("spread", ANY, "(gt_i64)__popc(here)", "(gt_i64)1"),
    "rows of the first split": ("spread", ANY, "gt_add(&sizes_of[branch_ptr[s] + b]", "gt_add(&sizes_of[b]"),
    "totals of the first split": ("spread", RESULT, "totals + branch_ptr[s] + b", "totals + b"),
    "outputs overlap": ("spread of two outputs", RESULT, "at += sizes[o] * branch_ptr[k], ++o", "++o"),
    "rows weigh what they have": ("spread", RESULT, "gt_add(at, (gt_i64)1)", "gt_add(at, share)"),
    "shares are whole": ("spread", RESULT, "* branch_ptr[k], share);", "* branch_ptr[k], weight);"),
    "places not moved on": ("spread", ANY, "place[b] = before + __popc(here)", "place[b] = before"),
    "places of the first split": ("spread", ANY, "const gt_i64 at = to[s] + before", "const gt_i64 at = before"),
    "lanes in one place": ("spread", ANY, "before + __popc(here & gt_lanes_before())", "before"),
    "positions as rows": ("spread", ANY, "into[at] = (unsigned)row.number", "into[at] = (unsigned)p"),
    "whole weights put down": ("spread", RESULT, "weights[at] = share", "weights[at] = weight"),
}
CUTS_IN_SEARCH: dict[str, Edit] = {
    "last of equals in a warp": ("equals", RESULT, "(score == best.score && rank <", "(score == best.score && rank >"),
    "carry lost between chunks": ("labels", RESULT, "begun && GT_LANE == 31 ? carry[channel] : 0", "0"),
    "carry never begun": ("labels", NEW, "begun && GT_LANE == 31", "GT_LANE == 31"),
    "upper bound ignored": ("monotone", RESULT, "&& most <= upper", ""),
    "direction reversed": ("monotone", RESULT, "sign > 0 ? a <= b : a >= b", "sign > 0 ? a >= b : a <= b"),
    "sides without a sum": ("zeros", RESULT, "cut.fine[d] &= left > 0 && whole - left > 0", "cut.fine[d] &= true"),
    "own value of the first output": (
        "branches of two outputs",
        RESULT,
        "slot.own[(gt_i64)o * slot.step]",
        "slot.own[0]",
    ),
    "missing rows set aside": ("labels", RESULT, "(APART && away ?", "(i >= 0 && view.code_at(0) == 0 ?"),
}
CUTS_IN_KNOWN: dict[str, Edit] = {
    "last of equals in a warp": (
        "known twins in a warp",
        RESULT,
        "(score == best.score && rank <",
        "(score == best.score && rank >",
    ),
    "carry lost between chunks": ("known cuts", RESULT, "begun && GT_LANE == 31 ? carry[channel] : 0", "0"),
    "carry never begun": ("known cuts", NEW, "begun && GT_LANE == 31", "GT_LANE == 31"),
    "missing rows not set aside": ("known cuts", RESULT, "(APART && away ? view.get(channel, 0) : 0)", "0"),
    "first cell always set aside": ("known sparse", RESULT, "(APART && away ?", "(APART ?"),
    "cuts by their score": ("known few", RESULT, "APART ? cut.gain[d] :", "false ? cut.gain[d] :"),
    "own value of the node's step": (
        "known of two outputs",
        ANY,
        "slot.own[(gt_i64)o * slot.step]",
        "slot.own[(gt_i64)o * slot.k]",
    ),
    "next cell of a chunk": ("known few", ANY, "if (found) return i + by *", "if (found) return i + 0 *"),
}
KNOWN: dict[str, Edit] = {
    "share without a floor": ("known cuts", RESULT, "own <= least ? least :", "own <= least ? own :"),
    "share without a ceiling": ("known cuts", RESULT, "own < most ? own : most", "own"),
    "ceiling for all": ("known cuts", RESULT, "own < most ? own : most", "most"),
    "floor above the ceiling": ("known ends", RESULT, "own <= least ? least :", "own < least ? least :"),
    "slack added": ("known cuts", RESULT, "most) - slack", "most) + slack"),
    "missing rows in classes": ("known groups", RESULT, "missing ? view.get(channel, 0) : 0", "0"),
    "no information of missing rows": ("known cuts", RESULT, "info += aside;", ""),
    "least information of a case": ("known cuts", RESULT, "info > min_info * whole)", "info > min_info)"),
    "known rows' information": ("known cuts", RESULT, "!(gt_info(whole, whole) - info", "!(info"),
    "too little information taken": ("known cuts", RESULT, "return small ?", "return false ?"),
    "nothing asked is too little": ("known and declared", RESULT, "min_info > 0.0 && !", "!"),
    "ratio of known rows": (
        "known cuts",
        RESULT,
        "info, whole), cancels)",
        "info, (double)slot.weight), cancels)",
    ),
    "ratio of gains as they are": ("known groups", RESULT, "gt_grid(gain, slot.cancels), info", "gain, info"),
    "ratio on the grid of gains": ("known cuts", RESULT, "whole), cancels)", "whole), slot.cancels)"),
    "missing weight not set aside": ("known cuts", RESULT, "node.weight - away, known", "node.weight, known"),
    "values of the node's step": ("known of two outputs", ANY, "known.slot.step = 1", "known.slot.step = node.k"),
    "grid not begun": ("known sparse", RESULT, "known.slot.cancels = 0.0;", "known.slot.cancels += 0.0;"),
    "grid of scores": ("known cuts", RESULT, "+= gt_gain_scale(N,", "+= gt_scale(N,"),
    "all rows are missing": ("known cuts", RESULT, "gt_info((double)away,", "gt_info((double)node.weight,"),
    "value of the whole node": (
        "known of two outputs",
        RESULT,
        "own[o] = gt_branch(fold, N, N)",
        "own[o] = gt_branch(fold, known.whole, known.whole)",
    ),
    "all lanes write": ("known cuts", RACE, "if (GT_LANE == 0) own[o]", "own[o]"),
    "no __syncwarp behind own": ("known cuts", UNORDERED, "__syncwarp();  // own is there", ""),
    "no __syncwarp behind groups": (
        "known groups of many",
        RACE,
        "__syncwarp();  // own is read\n        const",
        "\n        const",
    ),
    "weight of a chunk": ("known cuts", RESULT, "before + gt_scan(own)", "gt_scan(own)"),
    "weight of the wrong lane": (
        "known cuts",
        RESULT,
        "(GT_EVERYONE, cut.weight[0], 31)",
        "(GT_EVERYONE, cut.weight[0], 30)",
    ),
    "own cell follows": ("known cuts", RESULT, "~(gt_lanes_before() | 1u << GT_LANE)", "~gt_lanes_before()"),
    "a later chunk follows": (
        "known cuts",
        WRONG,
        "later ? first + __ffs((int)later) - 1 : beyond",
        "later ? first + __ffs((int)later) : beyond",
    ),
    "chunks have no end": ("known cuts", RESULT, "first + 32, 1);", "first, 1);"),
    "light right sides": ("known ends", RESULT, "rest < cut.weight[0] ? rest : cut.weight[0]", "cut.weight[0]"),
    "light left sides": ("known ends", RESULT, "rest < cut.weight[0] ? rest : cut.weight[0]", "rest"),
    "sides above the limit": ("known ends", RESULT, "(double)light >= side", "(double)light > side"),
    "gap added": ("known cuts", RESULT, "- rule.gap;", "+ rule.gap;"),
    "gap reached": ("known cuts", RESULT, "values[view.code_at(i)] < values", "values[view.code_at(i)] <= values"),
    "missing rows are known": ("known cuts", RESULT, "carry, cut, known.missing)", "carry, cut, false)"),
    "tries of the last chunk": ("known cuts", RESULT, "tries += __popc", "tries = __popc"),
    "cells tried": ("known cuts", RESULT, "(GT_EVERYONE, cut.fine[0]));", "(GT_EVERYONE, own > 0));"),
    "last of equals in a lane": (
        "known twins in a lane",
        RESULT,
        "cut.score[0] > best.score))",
        "cut.score[0] >= best.score))",
    ),
    "weight of another lane's cut": (
        "known cuts",
        RESULT,
        "heavy = __shfl_sync(GT_EVERYONE, heavy, best.rank & 31);",
        "",
    ),
    "weight of no cut": ("known cuts", RESULT, "best.rank = i, heavy = cut.weight[0];", "best.rank = i;"),
    "a bit a try, not a case": ("known cuts", RESULT, "rule.unit * gt_log2", "gt_log2"),
    "cuts are paid for": ("known cuts", RESULT, "best.gain - rule.unit", "best.gain + rule.unit"),
    "gain not rounded": (
        "known cuts",
        RESULT,
        "gt_grid(best.gain - rule.unit * gt_log2((double)tries), slot.cancels)",
        "best.gain - rule.unit * gt_log2((double)tries)",
    ),
    "information of one side": ("known cuts", RESULT, "info + gt_info((double)(slot.weight - heavy), N)", "info"),
    "right side with the missing": (
        "known cuts",
        RESULT,
        "(double)(slot.weight - heavy)",
        "(known.whole - (double)heavy)",
    ),
    "information of cuts not asked": ("known cuts", RESULT, "N), rule.min_info)", "N), 0.0)"),
    "gains used up": ("known cuts", RESULT, "if (!(best.gain > 0.0)) best.rank = -1;", ""),
    "missing rows of cuts stay": (
        "known cuts",
        RESULT,
        "GT_TEST, 0, known.missing ? GT_SPREAD : GT_NOT_MET, 2",
        "GT_TEST, 0, GT_NOT_MET, 2",
    ),
    "carries of one warp": ("known cuts", ANY, "carries + GT_WARP * n_channels", "carries"),
    "owns of one warp": (
        "known cuts",
        ANY,
        "owns + GT_WARP * outputs);\n        GtBest found = {0.0, 0.0, 0.0, f, GT_TEST",
        "owns);\n        GtBest found = {0.0, 0.0, 0.0, f, GT_TEST",
    ),
    "owns of one warp of groups": (
        "known groups",
        ANY,
        "owns + GT_WARP * outputs);\n        const GtSplit",
        "owns);\n        const GtSplit",
    ),
    "cut before itself": (
        "known cuts",
        RESULT,
        "gt_next(view, sizes, found.rank + 1, 1)",
        "gt_next(view, sizes, found.rank, 1)",
    ),
    "middle at the left": ("known cuts", RESULT, "t = a / 2 + b / 2;", "t = a;"),
    "edge of an empty run": ("known quantiles", RESULT, "(cut + follow - 1) / 2]", "(cut + follow) / 2]"),
    "missing is a group": (
        "known groups",
        RESULT,
        "view.code_at(i) != GT_MISSING;\n            const gt_i64 w =",
        "true;\n            const gt_i64 w =",
    ),
    "groups of the first output": ("known of two outputs", RESULT, "channel += known.slot.sizes[o], ++o", "++o"),
    "groups of every output": (
        "known of two outputs",
        RESULT,
        "split.met = 0, split.heavy = 0;\n",
        "split.heavy = 0;\n",
    ),
    "heavy groups of every output": (
        "known of two outputs",
        RESULT,
        "split.met = 0, split.heavy = 0;\n",
        "split.met = 0;\n",
    ),
    "information of every output": ("known of two outputs", RESULT, "split.info = 0.0, split.met = 0", "split.met = 0"),
    "groups of the last chunk": ("known tags", RESULT, "split.met += __popc", "split.met = __popc"),
    "heavy groups of the last chunk": ("known tags", RESULT, "split.heavy += __popc", "split.heavy = __popc"),
    "all groups are heavy": ("known groups", RESULT, "w > 0 && w >= min_weight", "w > 0"),
    "groups backwards": ("known heavy tags", RESULT, "int q = 0; q < 32; ++q", "int q = 31; q >= 0; --q"),
    "groups without information": ("known groups", RESULT, "more += v, split.info += h", "more += v"),
    "own value added": ("known groups", RESULT, "more - known.slot.own[o]", "more + known.slot.own[o]"),
    "names not declared": ("known and declared", RESULT, "declared[f] > 0 ? declared[f] : split.met", "split.met"),
    "one group more": ("known and declared", RESULT, "split.met >= least_met", "split.met > least_met"),
    "any number of heavy groups": ("known groups", RESULT, "split.heavy >= (heavy > 0 ? heavy : split.met)", "true"),
    "all groups weigh enough": ("known groups", RESULT, "(heavy > 0 ? heavy : split.met)", "split.met"),
    "no group weighs enough": ("known groups", RESULT, "(heavy > 0 ? heavy : split.met)", "heavy"),
    "one branch fewer": ("known groups", RESULT, "count > max_branches", "count >= max_branches"),
    "branches not limited": ("known groups", RESULT, "max_branches >= 0 &&", "false &&"),
    "information of groups not asked": ("known groups", RESULT, "split.info, rule[6])", "split.info, rule[5])"),
    "missing rows of groups stay": (
        "known groups",
        RESULT,
        "known.missing ? GT_SPREAD : GT_NOT_MET, (int)count",
        "GT_NOT_MET, (int)count",
    ),
    "light categories": ("known one", RESULT, "w < min_weight || rest < min_weight", "rest < min_weight"),
    "light others": ("known one of nearly all", RESULT, "w < min_weight || rest < min_weight", "w < min_weight"),
    "missing is one": (
        "known one of nearly all",
        RESULT,
        "view.code_at(i) == GT_MISSING ? 0 : view.weight",
        "view.weight",
    ),
    "missing are others": ("known one", RESULT, "rest = slot.weight - w;", "rest = (gt_i64)known.whole - w;"),
    "others are one": ("known one", RESULT, "gt_term(X - x, n[1], X, N)", "gt_term(x, n[1], X, N)"),
    "value of one": ("known one", RESULT, "gt_branch(fold[1], n[1], N)", "gt_branch(fold[1], n[0], N)"),
    "own value of one added": ("known one", RESULT, "gain += more - slot.own[o]", "gain += more + slot.own[o]"),
    "information of one": ("known one", RESULT, "info + gt_info(n[1], N), min_info)", "info, min_info)"),
    "information of one not asked": ("known one", RESULT, "gt_info(n[1], N), min_info)", "gt_info(n[1], N), 0.0)"),
    "missing rows of one stay": (
        "known one",
        RESULT,
        "GT_LOOKUP, 0, known.missing ? GT_SPREAD : GT_NOT_MET, 2",
        "GT_LOOKUP, 0, GT_NOT_MET, 2",
    ),
    "any cell is one": (
        "known one",
        RESULT,
        "best.gain = gain, best.rank = i;\n    }",
        "best.gain = gain, best.rank = 1;\n    }",
    ),
}
# where the text stands and which kernels are compiled with the edit
FILES: dict[tuple[str, str], dict[str, Edit]] = {
    ("bags.cu", "bags.cu"): BAGS,
    ("histogram.cu", "histogram.cu"): HISTOGRAM,
    ("device.cuh", "histogram.cu"): DEVICE_IN_HISTOGRAM,
    ("device.cuh", "search.cu"): DEVICE_IN_SEARCH,
    ("device.cuh", "encode.cu"): DEVICE_IN_ENCODE,
    ("device.cuh", "partition.cu"): DEVICE_IN_PARTITION,
    ("encode.cu", "encode.cu"): ENCODE,
    ("partition.cu", "partition.cu"): PARTITION,
    ("test.cuh", "partition.cu"): TEST_IN_PARTITION,
    ("test.cuh", "spread.cu"): TEST_IN_SPREAD,
    ("spread.cu", "spread.cu"): SPREADING,
    ("predict.cu", "predict.cu"): PREDICT,
    ("lookup.cu", "lookup.cu"): LOOKUP,
    ("search.cu", "search.cu"): SEARCH,
    ("cuts.cuh", "search.cu"): CUTS_IN_SEARCH,
    ("cuts.cuh", "known.cu"): CUTS_IN_KNOWN,
    ("known.cu", "known.cu"): KNOWN,
    ("cells.cuh", "search.cu"): CELLS_IN_SEARCH,
    ("common.cuh", "search.cu"): COMMON_IN_SEARCH,
}

EDITS = [(*place, what) for place, edits in FILES.items() for what in edits]

# ---- tests ----


@cache
def truth(name: str) -> Told:
    """What the oracle says of a scenario."""
    return SCENARIOS[name](Oracle())


def fault_of(name: str, seed: int) -> str:
    """How the emulated device betrays itself in a scenario: a message, "" where it says what the oracle says."""
    device = replace(Properties.of_shared_limit(64), multiprocessors=1)  # few blocks, so that each does much
    emulator = Emulator(checked=True, seed=seed, properties=device, seconds=10.0)
    try:
        told = SCENARIOS[name](Cuda(driver.Driver.of(emulator.xp, 0)))
    except KernelError as error:
        return error.message
    pairs = list(zip(told, truth(name), strict=True))
    return "" if all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs) else RESULT


@pytest.mark.parametrize("name", SCENARIOS)
def test_right_kernels_pass(name: str) -> None:
    assert [fault_of(name, seed) for seed in SEEDS] == [""] * len(SEEDS)


@pytest.mark.parametrize(("file", "broken", "what"), EDITS)
def test_broken_kernels_are_caught(file: str, broken: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, sign, old, new = FILES[file, broken][what]
    assert (kernels_folder() / file).read_text(encoding="utf-8").count(old) == 1, "edit the table with the kernel"

    def edited(kernel: str, instead: Mapping[str, str]) -> str:
        text = read_kernel(kernel, instead)
        assert kernel != broken or text.count(old) == 1
        return text.replace(old, new) if kernel == broken else text

    monkeypatch.setattr(driver, "read_kernel", edited)
    found = [fault_of(name, seed) for seed in (SEEDS if sign != RESULT else SEEDS[:1])]
    assert all(re.search(sign, message) for message in found), found
