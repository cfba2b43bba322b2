"""Every protocol method of every backend against plain loops over rows."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

import gputree.backends.cells
import gputree.backends.oracle
from gputree.backends.oracle import Oracle
from gputree.backends.protocol import Backend, Bags, CodeSpec
from gputree.core.bags import Draws, Listed, strata
from gputree.core.criteria import CRITERIA
from gputree.core.forest import STAY, Forest, Test
from gputree.core.keys import Stream, draw, root_keys, unit
from gputree.core.schema import Cuts, Feature, Schema
from gputree.core.splits import (
    MULTIWAY,
    NOT_MET,
    RANDOM,
    RANDOM_SUBSET,
    SUBSET,
    THRESHOLD,
    Candidates,
    Generator,
    Limits,
    Search,
    Slots,
)
from gputree.core.target import counting_rows
from tests.backends.conftest import CATEGORIES, Case, Rows, classes, numbers, record, regrouped, table, weights

NUMERIC = Schema((Feature("x"),))
FIELDS = ("score", "gain", "kind", "cut", "low", "missing", "n_branches")
CELLS = ("lookup_pair", "lookup_code", "lookup_branch")


def same(a: Candidates, b: Candidates) -> None:
    for name in (*FIELDS, *CELLS):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


# -- edges and encode


def cuts_of(backend: Backend, x: Any, limit: int | None, weight: list[int] | None = None) -> Cuts:
    column = np.asarray(x)[:, None]
    units = None if weight is None else np.array(weight, np.int64)
    return backend.edges(column, CodeSpec(NUMERIC, limit), units)[0]


def code_weights(cuts: Cuts, x: Any, weight: list[int]) -> list[int]:
    """Weight of every code; a value is in the code after all edges below it."""
    assert cuts.edges is not None
    total = [0] * (len(cuts.edges) + 1)
    for value, w in zip(x, weight, strict=True):
        total[sum(edge < value for edge in cuts.edges)] += w
    return total


def check_edges(cuts: Cuts, x: Any) -> None:
    """Edges ascend, each at or above a value and below the next."""
    assert cuts.edges is not None
    assert all(a < b for a, b in pairwise(cuts.edges))
    gaps = list(pairwise(sorted({float(v) for v in x})))
    assert all(any(a <= edge < b for a, b in gaps) for edge in cuts.edges)


def test_edges_of_few_values_are_the_values(backend: Backend, case: Case) -> None:
    cuts = backend.edges(case.X, CodeSpec(case.schema()), None)
    for f, cut in enumerate(cuts):
        expected = list(map(float, range(CATEGORIES))) if f in case.category else case.values(f)
        assert cut.values.tolist() == expected
        assert cut.edges is None
        assert not np.signbit(cut.values[cut.values == 0]).any()


def test_encode_ranks_values(backend: Backend, case: Case) -> None:
    cuts = backend.edges(case.X, CodeSpec(case.schema()), None)
    codes = backend.encode(case.X, cuts)
    counts = [CATEGORIES if f in case.category else len(case.values(f)) for f in range(case.X.shape[1])]
    assert codes.n_codes.tolist() == counts
    if type(backend) is Oracle:  # elsewhere the codes are opaque, and seen by `read` below
        assert [c.tolist() for c in codes.columns] == case.codes()  # type: ignore[attr-defined]
        assert [c.dtype for c in codes.columns] == [np.uint8 if n <= 255 else np.uint16 for n in counts]  # type: ignore[attr-defined]


@pytest.mark.parametrize("limit", [2, 8, 255])
def test_edges_share_rows_evenly(backend: Backend, limit: int) -> None:
    x = np.random.default_rng(0).normal(size=1000)
    cuts = cuts_of(backend, x, limit)
    check_edges(cuts, x)
    assert cuts.n_codes == limit
    assert set(code_weights(cuts, x, [1] * 1000)) <= {1000 // limit, 1000 // limit + 1}


@pytest.mark.parametrize("limit", [2, 8, 64])
def test_edges_share_weight_evenly(backend: Backend, limit: int) -> None:
    """No code exceeds an equal share by more than the value that fills it; without weights copies count the same."""
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=500), rng.integers(1, 9, 500).tolist()
    cuts = cuts_of(backend, x, limit, w)
    check_edges(cuts, x)
    shares = code_weights(cuts, x, w)
    assert max(shares) < sum(w) / limit + 1 + max(w)
    assert shares[-1] > 0
    copies = cuts_of(backend, np.repeat(x, w), limit)
    np.testing.assert_array_equal(cuts.edges, copies.edges)
    np.testing.assert_array_equal(cuts.values, copies.values)


@pytest.mark.parametrize("below", [0, 50, 100], ids=["spike first", "spike amid", "spike last"])
def test_a_spike_does_not_eat_the_tail(backend: Backend, below: int) -> None:
    """900 rows of one value and 100 others: the 10 codes left share the others, on whichever side they lie."""
    others = [float(v) for v in range(101) if v != below]
    x = np.array(others + [float(below)] * 900)
    cuts = cuts_of(backend, x, 11)
    check_edges(cuts, x)
    shares = code_weights(cuts, x, [1] * 1000)
    assert 900 in shares, "the spike has a code of its own"
    shares.remove(900)
    assert max(shares) <= 20, f"an equal share is 10 rows, got {shares}"


def test_edges_do_not_see_missing_values_or_order(backend: Backend) -> None:
    x = np.random.default_rng(2).normal(size=400)
    mixed = np.random.default_rng(3).permutation(np.append(x, [np.nan] * 37))
    np.testing.assert_array_equal(cuts_of(backend, x, 16).edges, cuts_of(backend, mixed, 16).edges)


@pytest.mark.parametrize("distinct", [255, 256])
def test_edges_choose_by_distinct_values_in_large_tables(backend: Backend, distinct: int) -> None:
    """Beyond 65,535 rows, 255 values are exact and 256 are not; in smaller tables both are."""
    x = np.arange(65_536) % distinct / 3
    assert (cuts_of(backend, x, None).edges is None) == (distinct == 255)
    assert cuts_of(backend, x[1:], None).edges is None
    assert cuts_of(backend, x, None).n_codes == 255


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_missing_value_is_found(backend: Backend, dtype: type) -> None:
    X = np.zeros((33, 3), dtype)
    X[0] = [np.inf, -0.0, 1e-45]
    assert not backend.any_missing(X)
    for row, column in ((0, 0), (32, 2), (7, 1)):
        one = X.copy()
        one[row, column] = np.nan
        assert backend.any_missing(one)
        assert backend.any_missing(csr_matrix(one))
    assert not backend.any_missing(csr_matrix(X))
    assert not backend.any_missing(X[:0])


def test_encode_compares_in_float64(backend: Backend) -> None:
    """A float32 row belongs to the code whose float64 edges enclose it: the edge is not rounded to float32."""
    x = np.array([1.0, np.nextafter(np.float32(1), np.float32(2)), 2.0, -0.0, np.nan, np.inf, -np.inf], np.float32)
    edges = np.array([-0.0, 1.0 + 2.0**-30, 1.0 + 2.0**-23, 3e38, 1e300])
    cuts = Cuts(np.arange(6.0), edges)
    expected = [0 if math.isnan(v) else 1 + sum(e < float(v) for e in edges) for v in x]
    for column in (x, x.astype(np.float64)):
        codes = backend.encode(column[:, None], (cuts,))
        if type(backend) is Oracle:
            assert codes.columns[0].tolist() == expected  # type: ignore[attr-defined]


# -- open, totals, histogram, read


def test_totals(backend: Backend, case: Case) -> None:
    rows = Rows(backend, case)
    stats, extent = backend.totals(rows.shard)
    everyone = rows.channels(list(range(case.n)))
    assert stats.T.tolist() == [everyone, everyone]
    assert extent.tolist() == plain_extent(rows, [0, 1])


def test_one_table_serves_several_targets(backend: Backend) -> None:
    """Shards of the same codes do not see each other's labels."""
    first, second = table(40, y=np.zeros((40, 1), int)), table(40, y=np.full((40, 1), 2))
    cuts = backend.edges(first.X, CodeSpec(first.schema()), None)
    codes = backend.encode(first.X, cuts)
    shards = [backend.open(codes, case.target(), Bags(1)) for case in (first, second)]
    slots = Slots(
        np.zeros(1, np.int32), root_keys(0, np.arange(1)), np.array([[40], [0], [0]]), np.array([40]), np.zeros((2, 1))
    )
    counts = [backend.read(backend.histogram(s, slots, np.zeros((1, 1), np.int32)))[2].sum(axis=1) for s in shards]
    assert [c.tolist() for c in counts] == [[40, 0, 0], [0, 0, 40]]


@pytest.mark.parametrize(
    "draws",
    [
        strata(None, 40, np.array([15]), None, False),
        strata(None, 40, np.array([15]), np.arange(1.0, 41.0), False),
        Listed(np.array([3, 3, 9, 39, 0, 0, 0, 7]), np.array([0, 3, 8])),
    ],
    ids=["without replacement", "without replacement, weighted", "listed"],
)
def test_bags_of_every_kind(backend: Backend, draws: Draws | Listed) -> None:
    """Classes of the drawn rows, and how many of them differ."""
    case, bags = table(40, y=classes(40, 3)), Bags(2, 5, 9, draws)
    codes = backend.encode(case.X, backend.edges(case.X, CodeSpec(case.schema()), None))
    stats, _ = backend.totals(backend.open(codes, counting_rows(case.target()), bags))
    for t, found in enumerate(stats.T.tolist()):
        drawn = bags.drawn(t)
        assert found == [*np.bincount(case.y[drawn, 0], minlength=3), np.unique(drawn).size]


def plain_extent(rows: Rows, nodes: list[int]) -> list[list[list[float]]]:
    sums, outputs = rows.target.sums, rows.target.layout.n_outputs
    if sums is None:
        return [[[0.0, 0.0]] * outputs for _ in nodes]
    values = [[[float(sums.y[o, i]) for i in rows.nodes[node]] or [0.0] for o in range(outputs)] for node in nodes]
    return [[[min(part), max(part)] for part in node] for node in values]


def check_tables(rows: Rows, features: NDArray[np.int32]) -> None:
    """The table of all leaves, cell by cell."""
    slots = rows.slots(rows.leaves)
    pair, code, stats = rows.backend.read(rows.backend.histogram(rows.shard, slots, features))
    found = list(zip(pair.tolist(), code.tolist(), stats.T.tolist(), strict=True))
    expected = [
        (k * features.shape[1] + m, code, channels)
        for k, node in enumerate(rows.leaves)
        for m, feature in enumerate(features[k].tolist())
        if feature >= 0
        for code, channels in rows.cells(node, feature).items()
    ]
    assert found == expected


def all_features(rows: Rows) -> NDArray[np.int32]:
    width = rows.case.X.shape[1]
    return np.broadcast_to(np.arange(width, dtype=np.int32), (len(rows.leaves), width))


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_histogram_counts(backend: Backend, case: Case, steps: int) -> None:
    rows = regrouped(backend, case, steps)
    check_tables(rows, all_features(rows))
    rng = np.random.default_rng(4)  # each slot its own features, in any order, some places empty
    width = case.X.shape[1]
    own = rng.permuted(np.tile(np.arange(-1, width), (len(rows.leaves), 1)), axis=1)[:, :width]
    check_tables(rows, own.astype(np.int32))
    check_tables(rows, np.full((len(rows.leaves), 2), -1, np.int32))


# -- search

Cells = dict[int, list[int]]
Plain = tuple[list[int], int, int]  # codes to the left, cut, branch of missing values


def plain_candidates(cells: Cells) -> list[Plain]:
    """Every test in the order of the tie rule."""
    known = [code for code in cells if code]
    cuts = [([code for code in known if code <= cut], cut) for cut in known[:-1]]
    if 0 not in cells:
        return [(left, cut, NOT_MET) for left, cut in cuts]
    alone = [(known, known[-1], 1)] if known else []
    return [(left, cut, 1) for left, cut in cuts] + alone + [([0, *left], cut, 0) for left, cut in cuts]


def add(channels: list[list[int]]) -> list[int]:
    return [sum(column) for column in zip(*channels, strict=True)]


def part(rows: Rows, cells: Cells, codes: list[int]) -> list[int]:
    return add([cells[code] for code in codes]) if codes else [0] * rows.target.layout.n_channels


def weight_of(rows: Rows, stats: list[int]) -> int:
    layout = rows.target.layout
    return sum(stats[: layout.sizes[0]]) if layout.counts else stats[0]


def value(rows: Rows, stats: list[int]) -> Fraction:
    """Sum over channels of x^2 / n, in exact units."""
    layout, n = rows.target.layout, weight_of(rows, stats)
    total = Fraction(0)
    for o in range(layout.n_outputs):
        scale = Fraction(1) if layout.counts else Fraction(layout.scale[o])
        total += sum((x * scale) ** 2 for x in stats[layout.output(o)])
    return total / n if n else Fraction(0)


def gain(rows: Rows, parts: list[list[int]]) -> Fraction:
    return sum((value(rows, p) for p in parts), -value(rows, add(parts)))


def on_grid(score: Fraction, scale: Fraction) -> Fraction:
    """Nearest multiple of 2^-40 times the least power of two not below either."""
    size = max(abs(score), scale)
    if size == 0:
        return Fraction(0)
    power = Fraction(2) ** (math.frexp(float(size))[1] - 1)
    while power < size:
        power *= 2
    return round(score * 2**40 / power) * power / 2**40


def scored(rows: Rows, cells: Cells, tests: list[Plain]) -> list[tuple[Fraction, Plain]]:
    layout = rows.target.layout
    scale = Fraction(weight_of(rows, add(list(cells.values()))) * layout.n_outputs if layout.counts else 0)
    sides = [(part(rows, cells, t[0]), part(rows, cells, [c for c in cells if c not in t[0]])) for t in tests]
    return [(on_grid(gain(rows, list(s)), scale), t) for s, t in zip(sides, tests, strict=True)]


def allowed(rows: Rows, cells: Cells, test: Plain, feature: int, limits: Limits, bounds: list[float]) -> bool:
    rest = [c for c in cells if c not in test[0]]
    if rest == [0] and not limits.missing_alone:
        return False
    sides = [part(rows, cells, test[0]), part(rows, cells, rest)]
    layout, weight = rows.target.layout, [weight_of(rows, s) for s in sides]
    count = [s[layout.rows] if layout.rows >= 0 else w for s, w in zip(sides, weight, strict=True)]
    if min(count) < limits.min_rows or min(weight) < limits.min_weight:
        return False
    sign = 0 if limits.monotone is None else int(limits.monotone[feature])
    a, b = (s[1] / w for s, w in zip(sides, weight, strict=True)) if sign else (0.0, 0.0)  # bounds are such floats
    return sign == 0 or (all(bounds[0] <= v <= bounds[1] for v in (a, b)) and (b - a) * sign >= 0)


def threshold(rows: Rows, cells: Cells, feature: int, test: Plain) -> float:
    above = [code for code in cells if code > test[1]]
    if not above:
        return math.inf
    a, b = (rows.case.values(feature)[code - 1] for code in (test[1], above[0]))
    middle = a / 2 + b / 2
    return middle if a <= middle < b else a


def check_search(rows: Rows, limits: Limits, bounds: tuple[float, float] = (-np.inf, np.inf)) -> int:
    """Every numeric candidate of every leaf; gives how many pairs had a test."""
    features, slots = all_features(rows), rows.slots(rows.leaves)
    held = np.repeat(np.array(bounds)[:, None], len(slots), axis=1)
    slots = Slots(slots.id, slots.key, slots.stats, slots.rows, held)
    search = Search((THRESHOLD,), CRITERIA[rows.case.criterion], limits)
    found = rows.backend.search(rows.backend.histogram(rows.shard, slots, features), slots, search)
    n_found = 0
    for (k, f), score in np.ndenumerate(found.score):
        cells = rows.cells(rows.leaves[k], f)
        tests = [t for t in plain_candidates(cells) if allowed(rows, cells, t, f, limits, list(bounds))]
        if f in rows.case.category or not tests:
            assert score == -np.inf
            continue
        n_found += 1
        # max() keeps the first of equals, and the list is in the order of the tie rule
        best, test = max(scored(rows, cells, tests), key=lambda pair: pair[0])
        assert (found.cut[k, f], found.missing[k, f]) == test[1:]
        assert found.low[k, f] == threshold(rows, cells, f, test)
        assert score == pytest.approx(float(best), rel=1e-11, abs=1e-11)
        assert found.gain[k, f] == pytest.approx(float(best), rel=1e-10, abs=1e-10)
        assert (found.kind[k, f], found.n_branches[k, f]) == (Test.THRESHOLD, 2)
    return n_found


@pytest.mark.parametrize("steps", [0, 2])
def test_search_finds_the_best_cut(backend: Backend, case: Case, steps: int) -> None:
    if case.criterion == "poisson":
        case = Case(case.X, case.y, case.weight, "squared_error")
    n_found = check_search(regrouped(backend, case, steps), Limits())
    assert n_found > 0 or case.n < 2 or case.X.shape[1] < 4


@pytest.mark.parametrize(
    "limits", [Limits(4), Limits(1, 17), Limits(5, 23), Limits(40), Limits(missing_alone=False)], ids=str
)
@pytest.mark.parametrize("name", ["gini", "squared_error"])
def test_search_respects_sizes(backend: Backend, name: str, limits: Limits) -> None:
    y = numbers(65, 1) if name == "squared_error" else classes(65, 3)
    rows = regrouped(backend, table(65, y=y, weight=weights(65), criterion=name), 1)
    assert check_search(rows, limits) > 0 or limits.min_rows == 40


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", ["gini", "squared_error"])
def test_search_respects_monotone_constraints(backend: Backend, name: str, sign: int) -> None:
    y, sizes = (numbers(65, 1), (1,)) if name == "squared_error" else (classes(65, 2), (2,))
    rows = regrouped(backend, table(65, y=y, sizes=sizes, weight=weights(65), criterion=name), 1)
    limits = Limits(monotone=np.array([sign, -sign, 0, 0], np.int8))
    assert check_search(rows, limits) > 0
    stats = rows.channels(list(range(65)))
    middle = stats[1] / weight_of(rows, stats)
    assert check_search(rows, limits, (-np.inf, middle)) > 0
    check_search(rows, limits, (middle, np.inf))


def test_ties_go_right_then_to_the_lowest_cut(backend: Backend) -> None:
    """Codes 1 2 3 and missing, all of one mixture: every test gains nothing, the lowest cut with missing right wins."""
    X = np.repeat([1.0, 2.0, 3.0, np.nan], 2)[:, None]
    rows = Rows(backend, Case(X, np.tile([[0], [1]], (4, 1)), sizes=(2,), category=()), 1)
    slots = rows.slots([0])
    search = Search((THRESHOLD,), CRITERIA["gini"], Limits())
    found = backend.search(backend.histogram(rows.shard, slots, np.zeros((1, 1), np.int32)), slots, search)
    assert (found.score[0, 0], found.cut[0, 0], found.missing[0, 0], found.low[0, 0]) == (0.0, 1, 1, 1.5)


def test_known_against_missing_is_a_test(backend: Backend) -> None:
    rows = Rows(backend, Case(np.array([[4.0], [np.nan], [5.0]]), np.array([[0], [1], [0]]), category=()), 1)
    slots = rows.slots([0])
    search = Search((THRESHOLD,), CRITERIA["entropy"], Limits())
    found = backend.search(backend.histogram(rows.shard, slots, np.zeros((1, 1), np.int32)), slots, search)
    assert (found.low[0, 0], found.cut[0, 0], found.missing[0, 0]) == (np.inf, 2, 1)


def test_thresholds_of_quantile_codes_are_middle_edges(backend: Backend) -> None:
    """Codes 2 and 6 of 8 are left in the node: of the four edges between them, the second."""
    edges = np.arange(1.0, 8.0)
    rows = Rows(backend, Case(np.array([[1.5]] * 3 + [[5.5]] * 4), np.array([[0]] * 3 + [[1]] * 4), category=()), 1)
    codes = backend.encode(rows.case.X, (Cuts(np.arange(8) + 0.5, edges),))
    rows.shard = backend.open(codes, rows.target, Bags(1))
    slots = rows.slots([0])
    search = Search((THRESHOLD,), CRITERIA["gini"], Limits())
    found = backend.search(backend.histogram(rows.shard, slots, np.zeros((1, 1), np.int32)), slots, search)
    assert (found.cut[0, 0], found.low[0, 0]) == (2, 3.0)


def random_search(backend: Backend, case: Case, trees: int) -> tuple[Rows, Candidates]:
    rows = Rows(backend, case, trees)
    slots = rows.slots(rows.leaves)
    search = Search((RANDOM,), CRITERIA[case.criterion], Limits())
    return rows, backend.search(backend.histogram(rows.shard, slots, all_features(rows)), slots, search)


@pytest.mark.parametrize("name", ["gini", "squared_error"])
def test_a_random_threshold_lies_inside_and_missing_values_take_a_drawn_side(backend: Backend, name: str) -> None:
    case = table(40, y=numbers(40, 1) if name == "squared_error" else classes(40, 3), criterion=name)
    rows, found = random_search(backend, case, 30)
    keys = rows.slots(rows.leaves).key
    for (k, f), score in np.ndenumerate(found.score):
        values, cells = case.values(f), rows.cells(k, f)
        if f in case.category or len(values) < 2:
            assert score == -np.inf
            continue
        low = found.low[k, f]
        assert values[0] <= low < values[-1]
        side = int(draw(keys[k], Stream.SIDE, f) >> np.uint64(63)) if 0 in cells else NOT_MET
        tests = [t for t in plain_candidates(cells) if t[1:] == (sum(v <= low for v in values), side)]
        ((best, test),) = scored(rows, cells, tests)
        assert (found.cut[k, f], found.missing[k, f]) == test[1:]
        assert score == pytest.approx(float(best), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("generator", [RANDOM, RANDOM_SUBSET], ids=["numbers", "categories"])
@pytest.mark.parametrize("alone", [False, True])
def test_missing_values_stand_against_known_ones_only_where_a_random_cut_parts_none(
    backend: Backend, generator: Generator, alone: bool
) -> None:
    """Of 400 roots each sends them right about as often as left (five standard errors), by the node's key alone."""
    X = np.array([[4.0, 0.0], [np.nan, np.nan], [4.0, 1.0], [np.nan, 2.0]])
    category = (0, 1) if generator is RANDOM_SUBSET else ()
    rows = Rows(backend, Case(X, np.array([[0], [1], [0], [1]]), sizes=(2,), category=category), 400)
    slots = rows.slots(rows.leaves)
    search = Search((generator,), CRITERIA["gini"], Limits(missing_alone=alone))
    found = backend.search(backend.histogram(rows.shard, slots, all_features(rows)), slots, search)
    assert set(found.low[:, 0]) == ({np.inf} if alone else {0.0})
    assert set(found.missing[:, 0]) == ({1} if alone else {NOT_MET})
    assert set(found.kind[:, 1]) == {Test.LOOKUP if generator is RANDOM_SUBSET else Test.THRESHOLD}
    assert found.missing[:, 1].tolist() == (draw(slots.key, Stream.SIDE, 1) >> np.uint64(63)).tolist()
    assert abs(found.missing[:, 1].mean() - 0.5) < 5 * 0.5 / 20


def test_random_thresholds_are_uniform(backend: Backend) -> None:
    """Kolmogorov's distance of 1,000 thresholds stays below its 1 % point; two columns are drawn apart."""
    X = np.column_stack([np.r_[0.0, np.linspace(0.9, 1.0, 9)]] * 2)
    _, found = random_search(backend, Case(X, np.arange(10)[:, None] % 2, sizes=(2,), category=()), 1000)
    drawn = np.sort(found.low, axis=0)
    distance = np.abs(drawn - (np.arange(1000)[:, None] + 0.5) / 1000).max(axis=0)
    assert (distance < 1.63 / math.sqrt(1000)).all()
    assert abs(np.corrcoef(found.low.T)[0, 1]) < 0.1


def plain_branches(rows: Rows, node: int, f: int, limits: Limits) -> tuple[Fraction, bool]:
    """Gain of a branch for every code present, and whether sizes allow it."""
    cells = rows.cells(node, f)
    layout = rows.target.layout
    counts = [c[layout.rows] if layout.rows >= 0 else weight_of(rows, c) for c in cells.values()]
    heavy = all(weight_of(rows, c) >= limits.min_weight for c in cells.values())
    fine = len(cells) >= 2 and min(counts) >= limits.min_rows and heavy
    return gain(rows, list(cells.values())) if cells else Fraction(0), fine


def categories_of(case: Case) -> Case:
    """The table, or another where it holds no proper categories or its criterion refuses branches."""
    if case.X.shape[1] < 4:
        return table(33, y=numbers(33, 1), weight=weights(33), criterion="squared_error")
    return replace(case, criterion="squared_error") if case.criterion == "poisson" else case


def search_categories(rows: Rows, generator: Generator, limits: Limits) -> Candidates:
    """The best tests of column 2 in every leaf."""
    slots, features = rows.slots(rows.leaves), np.full((len(rows.leaves), 1), 2, np.int32)
    search = Search((generator,), CRITERIA[rows.case.criterion], limits)
    return rows.backend.search(rows.backend.histogram(rows.shard, slots, features), slots, search)


@pytest.mark.parametrize("limits", [Limits(), Limits(3), Limits(1, 12)], ids=str)
def test_search_of_categories(backend: Backend, case: Case, limits: Limits) -> None:
    """A branch for every category that the node met, in order, and one more where some are missing."""
    rows = regrouped(backend, categories_of(case), 1)
    found = search_categories(rows, MULTIWAY, limits)
    for k, node in enumerate(rows.leaves):
        expected, fine = plain_branches(rows, node, 2, limits)
        if not fine:
            assert found.score[k, 0] == -np.inf
            continue
        missing = 0 in rows.cells(node, 2)
        assert found.gain[k, 0] == pytest.approx(float(expected), rel=1e-10, abs=1e-10)
        mine = found.lookup_pair == k
        present = [code for code in rows.cells(node, 2) if code]
        assert (found.kind[k, 0], found.n_branches[k, 0]) == (Test.LOOKUP, len(present) + missing)
        assert found.missing[k, 0] == (len(present) if missing else NOT_MET)
        assert found.lookup_code[mine].tolist() == present
        assert found.lookup_branch[mine].tolist() == list(range(len(present)))


def test_declared_categories_have_a_branch_each_met_or_not(backend: Backend, case: Case) -> None:
    """The same gains, and an empty branch for every category that the node never met."""
    case = categories_of(case)
    met, all_ = (regrouped(backend, replace(case, declared=declared), 1) for declared in (False, True))
    few, found = search_categories(met, MULTIWAY, Limits()), search_categories(all_, MULTIWAY, Limits())
    np.testing.assert_array_equal(found.score, few.score)
    np.testing.assert_array_equal(found.gain, few.gain)
    for k, node in enumerate(all_.leaves):
        if found.score[k, 0] > -np.inf:
            missing = 0 in all_.cells(node, 2)
            assert found.n_branches[k, 0] == CATEGORIES + missing
            assert found.missing[k, 0] == (CATEGORIES if missing else NOT_MET)
            assert found.lookup_code[found.lookup_pair == k].tolist() == list(range(1, CATEGORIES + 1))
            assert found.lookup_branch[found.lookup_pair == k].tolist() == list(range(CATEGORIES))


def all_partitions(cells: Cells) -> list[list[int]]:
    """One side of every way to part the codes, missing among them, into two sets that are not empty."""
    codes = list(cells)
    return [[codes[0], *more] for r in range(len(codes) - 1) for more in combinations(codes[1:], r)]


def sides_fit(rows: Rows, cells: Cells, side: list[int], limits: Limits) -> bool:
    test = (side, 0, NOT_MET)
    return allowed(rows, cells, test, 2, limits, [-np.inf, np.inf])


SUBSET_CASES = ("two classes", "weighted", "regression", "one class")


@pytest.fixture(params=SUBSET_CASES)
def subset_case(request: pytest.FixtureRequest) -> Case:
    two = classes(65, 2)
    return {
        "two classes": table(65, y=two, sizes=(2,)),
        "weighted": table(65, y=two, sizes=(2,), weight=weights(65)),
        "regression": table(65, y=numbers(65, 1), weight=weights(65), criterion="squared_error"),
        "one class": table(33, y=np.zeros((33, 1), int), sizes=(1,)),
    }[request.param]


@pytest.mark.parametrize("limits", [Limits(), Limits(4), Limits(1, 12)], ids=str)
def test_search_of_subsets(backend: Backend, subset_case: Case, limits: Limits) -> None:
    """No way to part the categories and the missing values in two gains more than what was found.

    Limits may forbid all of the cuts that the search looks at, so that with them the best is that of the cuts.
    """
    rows = regrouped(backend, subset_case, 1)
    found = search_categories(rows, SUBSET, limits)
    for k, node in enumerate(rows.leaves):
        cells = rows.cells(node, 2)
        possible = [s for s in all_partitions(cells) if sides_fit(rows, cells, s, limits)]
        if not np.isfinite(found.score[k, 0]):
            assert not possible or limits != Limits()
            continue
        side = side_of(found, k, cells)
        assert sides_fit(rows, cells, side, limits)
        mine = gain(rows, [part(rows, cells, s) for s in (side, [c for c in cells if c not in side])])
        assert found.gain[k, 0] == pytest.approx(float(mine), rel=1e-10, abs=1e-10)
        if limits == Limits():
            best = max(
                gain(rows, [part(rows, cells, s), part(rows, cells, [c for c in cells if c not in s])])
                for s in possible
            )
            assert float(best) == pytest.approx(float(mine), rel=1e-11, abs=1e-11)


def side_of(found: Candidates, k: int, cells: Cells) -> list[int]:
    """The codes in branch 0 of a test of categories, which lists every code of the node."""
    assert found.n_branches[k, 0] == 2
    assert (found.missing[k, 0] == NOT_MET) == (0 not in cells)
    missing = [0] if found.missing[k, 0] == 0 else []
    if found.kind[k, 0] == Test.THRESHOLD:
        assert (found.low[k, 0], found.missing[k, 0]) == (np.inf, 1)
        assert found.cut[k, 0] >= max(cells)
        return [code for code in cells if code]
    mine = found.lookup_pair == k
    assert found.lookup_code[mine].tolist() == [code for code in cells if code]
    branch = found.lookup_branch[mine].tolist()
    assert sorted(set(branch)) == [0, 1]
    return missing + [code for code, b in zip(found.lookup_code[mine].tolist(), branch, strict=True) if b == 0]


def test_ties_of_subsets(backend: Backend) -> None:
    """Codes 1 to 3 and missing of one mixture gain nothing: the first code alone goes left, missing to the right."""
    X = np.tile(np.array([0.0, 0.0, 1.0, 1.0, 2.0, 2.0, np.nan, np.nan]), 2)[:, None]
    case = Case(np.hstack([X, X, X]), np.tile([[0], [1]], (8, 1)), sizes=(2,))
    found = search_categories(Rows(backend, case, 1), SUBSET, Limits())
    assert (found.score[0, 0], found.missing[0, 0]) == (0.0, 1)
    assert found.lookup_branch.tolist() == [0, 1, 1]


def test_known_against_missing_is_a_test_of_categories(backend: Backend) -> None:
    """Missing alone has another class."""
    X = np.array([0.0, 1.0, 2.0, np.nan, np.nan])[:, None]
    case = Case(np.hstack([X, X, X]), np.array([[0], [0], [0], [1], [1]]), sizes=(2,))
    found = search_categories(Rows(backend, case, 1), SUBSET, Limits())
    assert (found.kind[0, 0], found.low[0, 0], found.missing[0, 0]) == (Test.THRESHOLD, np.inf, 1)
    assert found.lookup_code.size == 0


def test_search_of_random_subsets(backend: Backend, case: Case) -> None:
    """The categories whose number is at most a random one, both drawn from the node's key, go left."""
    rows = regrouped(backend, categories_of(case), 1)
    found = search_categories(rows, RANDOM_SUBSET, Limits())
    keys = rows.slots(rows.leaves).key
    for k, node in enumerate(rows.leaves):
        known = [code for code in rows.cells(node, 2) if code]
        if len(known) < 2 or found.kind[k, 0] == Test.THRESHOLD:
            continue
        number = {c: float(unit(draw(keys[k], Stream.CATEGORY, 2 << 16 | c))) for c in known}
        u = float(unit(draw(keys[k], Stream.THRESHOLD, 2)))
        cut = min(number.values()) * (1.0 - u) + max(number.values()) * u
        side = [code for code in side_of(found, k, rows.cells(node, 2)) if code]
        assert side == [code for code in known if number[code] <= cut]


# -- children, partition, extent, residuals


def test_children_add_up_branches(backend: Backend, case: Case) -> None:
    rows, rng = Rows(backend, case), np.random.default_rng(5)
    for _ in range(3):
        tests = rows.draw(rng)
        if not tests:  # growth ends when nothing is left to split
            return
        stats = backend.children(rows.shard, record(tests))
        assert stats.T.tolist() == [rows.channels(part) for part in rows.parts(tests)]
        rows.split(tests)


def test_partition_regroups_rows(backend: Backend, case: Case) -> None:
    """A column of row numbers tells which rows a node holds."""
    named = Case(np.column_stack([case.X, np.arange(case.n)]), case.y, case.weight, case.criterion, case.sizes)
    rows = regrouped(backend, named)
    features = np.full((len(rows.leaves), 1), named.X.shape[1] - 1, np.int32)
    slots = rows.slots(rows.leaves)
    pair, code, _ = backend.read(backend.histogram(rows.shard, slots, features))
    found = sorted(zip(pair.tolist(), (code - 1).tolist(), strict=True))
    assert found == sorted((k, i) for k, node in enumerate(rows.leaves) for i in rows.nodes[node])


def test_the_oracle_keeps_the_order_of_rows(case: Case) -> None:
    rows = regrouped(Oracle(), case)
    for node, expected in rows.nodes.items():
        found = rows.shard.rows_of(np.array([node])).tolist()
        assert found == expected if node in rows.leaves else sorted(found) == sorted(expected)


def test_extent(backend: Backend, case: Case) -> None:
    rows = regrouped(backend, case)
    found = backend.extent(rows.shard, np.array(rows.leaves, np.int32))
    assert found.tolist() == plain_extent(rows, rows.leaves)


def test_residuals(backend: Backend, case: Case) -> None:
    """Of every node that has rows, inner ones too, against exact fractions."""
    rows = regrouped(backend, case)
    nodes = [node for node, members in rows.nodes.items() if members]
    sums = rows.target.sums
    if sums is None or not nodes:
        return
    value = np.random.default_rng(3).uniform(0.5, 2.0, (len(nodes), sums.y.shape[0]))
    criterion = CRITERIA[case.criterion]
    first, loss = backend.residuals(rows.shard, np.array(nodes, np.int32), value, criterion)
    units = rows.target.weights.units
    for k, node in enumerate(nodes):
        w = [1 if units is None else int(units[i]) for i in rows.nodes[node]]
        for o, v in enumerate(value[k]):
            d = [Fraction(float(sums.y[o, i])) - Fraction(float(v)) for i in rows.nodes[node]]
            mean = sum(a * b for a, b in zip(w, d, strict=True)) / sum(w)
            assert first[k, o] == pytest.approx(float(mean), rel=1e-12, abs=1e-15)
            centre = float(Fraction(float(v)) + mean)
            about = np.array([float(x - mean) for x in d])
            each = criterion.loss(about, np.full(len(d), centre))
            assert loss[k, o] == pytest.approx(float(np.average(each, weights=w)), rel=1e-11, abs=1e-15)


# -- apply, predict


def random_forest(rng: np.random.Generator, trees: int, lookups: float = 0.4, deep: int = 5) -> Forest:
    """Trees with thresholds on column 0 and look-ups of 4 categories on column 1, a share of its own."""
    node: dict[str, list[Any]] = {name: [] for name in ("kind", "low", "first", "n", "missing", "parent", "depth")}
    cells: list[dict[int, int]] = []
    roots: list[int] = []

    def plant(parent: int, depth: int) -> None:
        for name, blank in zip(node, (Test.LEAF, 0.0, -1, 0, 0, parent, depth), strict=True):
            node[name].append(blank)
        cells.append({})

    for _ in range(trees):
        at = len(cells)
        roots.append(at)
        plant(-1, 0)
        while at < len(cells):
            if node["depth"][at] < rng.integers(0, deep):
                cells[at] = {} if rng.random() >= lookups else {int(c): int(c) % 3 for c in rng.permutation(4)[:2] + 1}
                node["kind"][at] = Test.LOOKUP if cells[at] else Test.THRESHOLD
                node["n"][at], node["first"][at] = 3 if cells[at] else 2, len(cells)
                node["low"][at] = 0.0 if cells[at] else float(rng.choice([-1, 0.0, -0.0, 0.1, 3e38, np.inf, -np.inf]))
                node["missing"][at] = int(rng.integers(node["n"][at]))
                for _ in range(node["n"][at]):
                    plant(at, node["depth"][at] + 1)
            at += 1
    return as_forest(rng, node, cells, roots)


def as_forest(
    rng: np.random.Generator, node: dict[str, list[Any]], cells: list[dict[int, int]], roots: list[int]
) -> Forest:
    n = len(cells)
    kind = np.array(node["kind"], np.uint8)
    pairs = [sorted(c.items()) for c in cells]
    return Forest(
        roots=np.array(roots, np.int32),
        kind=kind,
        feature=np.where(kind == Test.LEAF, -1, (kind == Test.LOOKUP) * 1).astype(np.int32),
        low=np.array(node["low"]),
        first_child=np.array(node["first"], np.int32),
        n_children=np.array(node["n"], np.uint16),
        missing=np.array(node["missing"], np.uint16),
        unseen=np.array([int(rng.integers(max(1, k))) for k in node["n"]], np.uint16),
        met_missing=np.zeros(n, np.uint8),
        lookup_ptr=np.cumsum([0, *(len(p) for p in pairs)]),
        lookup_code=np.array([code for p in pairs for code, _ in p], np.uint16),
        lookup_branch=np.array([branch for p in pairs for _, branch in p], np.uint16),
        stats=np.zeros((n, 1), np.int64),
        score=np.zeros(n),
        parent=np.array(node["parent"], np.int32),
        depth=np.array(node["depth"], np.int32),
        impurity=np.zeros(n),
        value=rng.normal(size=(n, 2)),
    )


def plain_leaf(forest: Forest, i: int, row: list[float]) -> int:
    node = forest.node(i)
    if node.is_leaf:
        return i
    x = row[node.feature]
    if math.isnan(x):
        branch = int(forest.missing[i])
    elif forest.kind[i] == Test.LOOKUP:
        codes, branches = node.lookup
        branch = dict(zip(codes.tolist(), branches.tolist(), strict=True)).get(int(x) + 1, int(forest.unseen[i]))
    else:
        branch = 0 if x <= forest.low[i] else 1
    if branch == STAY:
        return i
    return plain_leaf(forest, node.children[branch], row)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 500])
@pytest.mark.parametrize("stay", [0.0, 0.5])
@pytest.mark.parametrize(("lookups", "deep"), [(0.4, 5), (0.0, 5), (0.0, 24)])
def test_apply_and_predict_walk(backend: Backend, n: int, dtype: type, stay: float, lookups: float, deep: int) -> None:
    """NaN, infinities, signed zeros, values next to a threshold; categories known, not met, unknown (-1)."""
    rng = np.random.default_rng(6)
    forest = random_forest(rng, 7, lookups, deep)
    missing, unseen = (np.where(rng.random(forest.n_nodes) < stay, STAY, b) for b in (forest.missing, forest.unseen))
    forest = replace(forest, missing=missing.astype(np.uint16), unseen=unseen.astype(np.uint16))
    column = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 0.1, np.float32(0.1), -1, 3e38, 1e-45, 2], n)
    X = np.column_stack([column, rng.choice([-1.0, 0.0, 1.0, 2.0, 3.0, np.nan], n)]).astype(dtype)
    expected = [[plain_leaf(forest, int(root), row) for root in forest.roots] for row in X.tolist()]
    leaves = backend.apply(forest, X)
    assert leaves.dtype == np.int32
    assert leaves.shape == (n, 7)
    assert leaves.tolist() == expected
    assert backend.apply(forest, np.asfortranarray(X)).tolist() == expected
    total = np.zeros((n, 2))
    for i, row in enumerate(expected):
        for leaf in row:
            total[i] += forest.value[leaf]
    np.testing.assert_array_equal(backend.predict(forest, X), total)


# -- the oracle's own freedom: form and size of its tables


@pytest.mark.parametrize("dense", [0, 1 << 40], ids=["compact", "dense"])
@pytest.mark.parametrize("chunk", [1, 100, 1 << 40])
def test_form_and_size_of_tables_do_not_matter(
    case: Case, dense: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if dense and case.n == 300 and chunk == 1 << 40:
        chunk = 500  # keeps the dense table small
    rows = regrouped(Oracle(), case)
    slots, features = rows.slots(rows.leaves), all_features(rows)
    search = Search((THRESHOLD, MULTIWAY), CRITERIA[case.criterion], Limits())

    def run() -> Candidates:
        return rows.backend.search(rows.backend.histogram(rows.shard, slots, features), slots, search)

    usual = run()
    monkeypatch.setattr(gputree.backends.cells, "DENSE", dense)
    monkeypatch.setattr(gputree.backends.oracle, "CHUNK", chunk)
    check_tables(rows, features)
    same(run(), usual)
