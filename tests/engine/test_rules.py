"""Rules from paths against C4.5 release 8, a plain recomputation (`tests.c45_rules`) and hand-worked numbers."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from gputree.core.conditions import Condition, Interval, Subset
from gputree.core.schema import Feature, Kind
from gputree.engine.rule_choice import Candidate, Size, default_label, in_order, polished, subset_counts, total_bits
from gputree.engine.rule_choice import Subset as Choice
from gputree.engine.rule_pruning import (
    ChiSquare,
    Pessimistic,
    RuleCases,
    as_bits,
    dependence,
    kept_conditions,
    pessimistic_errors,
    size,
)
from gputree.engine.rules_from_paths import Method, ordered_rules
from tests import c45_rules as plain

DATA = Path(__file__).parents[1] / "data"
TABLES = json.loads((DATA / "c45_trees.json").read_text())["tables"]
RULES = json.loads((DATA / "c45_rules.json").read_text())["tables"]
C45 = Method(Pessimistic(0.25), 0.25, True, 0)
LINE = re.compile(r"(?P<name>.+?) (?P<sign><=|>|=) (?P<value>.+?) ?:\s*(?P<rest>.*)")
LEAF = re.compile(r"(?P<label>.+) \((?P<weight>[\d.]+)(/[\d.]+)?\)")


def cases_of(name: str) -> RuleCases:
    """A table; classes in their declared order."""
    *columns, target = TABLES[name]["columns"]
    features = tuple(
        Feature(c["name"], Kind.NUMERIC)
        if c["type"] == "numeric"
        else Feature(c["name"], Kind.CATEGORICAL, tuple(c["levels"]))
        for c in columns
    )
    X = np.array([[number(v, f) for v, f in zip(row, features, strict=False)] for row in TABLES[name]["rows"]])
    y = np.array([target["levels"].index(row[-1]) for row in TABLES[name]["rows"]], np.int32)
    return RuleCases(X, features, y, len(target["levels"]))


def number(value: Any, feature: Feature) -> float:
    if value is None:
        return np.nan
    return float(value) if feature.kind == Kind.NUMERIC else float(feature.categories.index(value))


def printed_paths(text: str, subtrees: dict[str, str], above: tuple[Condition, ...] = ()) -> Any:
    """Paths, classes and weights of the leaves of a tree as C4.5 prints it."""
    path: list[Condition] = []
    for line in text.split("\n"):
        body = line.replace("|   ", "")
        found = LINE.match(body)
        assert found
        depth = (len(line) - len(body)) // 4
        path = [*path[:depth], condition(found["name"], found["sign"], found["value"])]
        if found["rest"].startswith("["):
            yield from printed_paths(subtrees[found["rest"][1:-1]], subtrees, (*above, *path))
        elif found["rest"]:
            leaf = LEAF.match(found["rest"])
            assert leaf
            yield (*above, *path), leaf["label"], float(leaf["weight"])


def condition(name: str, sign: str, value: str) -> Condition:
    if sign == "=":
        return Subset(name, (value,))
    return Interval(name, high=float(value)) if sign == "<=" else Interval(name, low=float(value))


def words(c: Condition) -> str:
    """A condition as C4.5rules prints it."""
    if isinstance(c, Subset):
        return f"{c.name} = {c.values[0]}"
    return f"{c.name} > {c.low:g}" if c.high is None else f"{c.name} <= {c.high:g}"


@pytest.mark.parametrize("name", [name for name in RULES if name != "breast_cancer_ljubljana"])
def test_the_rules_of_c45_from_its_own_trees(name: str) -> None:
    """Ordered list, accuracies, default and errors, from the tree as C4.5 prints it."""
    expected, cases = RULES[name], cases_of(name)
    levels = TABLES[name]["columns"][-1]["levels"]
    leaves = printed_paths(expected["tree"], expected.get("subtrees", {}))
    paths = [(path, levels.index(label)) for path, label, weight in leaves if weight >= 1]
    found, default = ordered_rules(paths, cases, C45)
    kept = [rule for i, rule in enumerate(expected["rules"]) if i not in expected["dropped"]]
    assert [sorted(map(words, rule.conditions)) for rule in found] == [sorted(rule[0]) for rule in kept]
    assert [levels[rule.label] for rule in found] == [rule[1] for rule in kept]
    assert [round(100 * (1 - rule.error), 1) for rule in found] == [rule[2] for rule in kept]
    assert levels[default] == expected["default"]
    label = np.full(cases.n, default)
    for rule in found[::-1]:
        label[np.unpackbits(rule.met.view(np.uint8))[: cases.n].astype(bool)] = rule.label
    assert int((label != cases.label).sum()) == expected["errors"]


def random_table(seed: int) -> tuple[plain.Table, RuleCases, list[tuple[list[plain.Cond], int]]]:
    """Three columns of categories and two of numbers, some missing; paths of two to four conditions."""
    rng = np.random.default_rng(seed)
    n, levels = int(rng.integers(20, 90)), ("a", "b", "c")
    columns: list[Any] = [rng.choice(levels, n).tolist() for _ in range(3)]
    columns += [rng.integers(0, 6, n).astype(float).tolist() for _ in range(2)]
    for column in columns:
        for i in np.flatnonzero(rng.random(n) < 0.1):
            column[i] = None
    noise = rng.random(n) < 0.15
    y = [int(bool((columns[0][i] == "a") != (columns[3][i] is not None and columns[3][i] > 2))) for i in range(n)]
    y = [2 if columns[1][i] == "c" and columns[4][i] == 5 else abs(v - int(noise[i])) for i, v in enumerate(y)]
    paths = []
    for _ in range(int(rng.integers(1, 14))):
        own = []
        for column in rng.choice(5, int(rng.integers(2, 5)), replace=False).tolist():
            sign = "=" if column < 3 else str(rng.choice(["<=", ">"]))
            own.append((column, sign, str(rng.choice(levels)) if column < 3 else float(rng.integers(0, 5))))
        rows = [i for i in range(n) if all(plain.holds(tuple(c[i] for c in columns), t) for t in own)]
        votes = np.bincount([y[i] for i in rows] or [0], minlength=3)
        paths.append((own, int(votes.argmax())))
    features = tuple(Feature(f"x{i}", Kind.CATEGORICAL, levels) if i < 3 else Feature(f"x{i}") for i in range(5))
    X = np.array([[number(columns[i][r], f) for i, f in enumerate(features)] for r in range(n)])
    table = plain.Table([tuple(c[r] for c in columns) for r in range(n)], y, [False] * 3 + [True] * 2, 3)
    return table, RuleCases(X, features, np.array(y, np.int32), 3), paths


@pytest.mark.parametrize("seed", range(40))
def test_the_rules_of_plain_python(seed: int) -> None:
    table, cases, paths = random_table(seed)
    expected, otherwise = plain.rules(table, paths)
    ours = [(tuple(condition(f"x{c}", sign, str(v)) for c, sign, v in path), label) for path, label in paths]
    found, default = ordered_rules(ours, cases, C45)
    want = [[condition(f"x{c}", sign, str(v)) for c, sign, v in rule.conditions] for rule in expected]
    assert [list(rule.conditions) for rule in found] == want
    assert [rule.label for rule in found] == [rule.label for rule in expected]
    np.testing.assert_allclose([rule.error for rule in found], [rule.error for rule in expected], rtol=1e-12)
    assert default == otherwise


def test_a_condition_goes_where_fisher_does_not_find_it() -> None:
    """Of 8 rows with a, 7 are right; without a, 1 of 3. p = (C(8,7)C(3,1) + C(8,8)C(3,0)) / C(11,8) = 25/165."""
    a = np.array([True] * 8 + [False] * 3)
    wrong = np.array([False] * 7 + [True] + [False, True, True])
    bits = [as_bits(a)]
    p = (math.comb(8, 7) * math.comb(3, 1) + math.comb(8, 8) * math.comb(3, 0)) / math.comb(11, 8)
    assert p == pytest.approx(25 / 165)
    for alpha, kept in ((None, [0]), (0.1, []), (0.2, [0])):
        assert kept_conditions(bits, as_bits(~wrong), as_bits(wrong), Pessimistic(0.25, alpha), 0.5) == kept


def test_p_values_of_chi_square_and_of_fisher() -> None:
    """A table of 50 rows by hand (chi-square 25/3); one with an expected count below 5; an empty row says nothing."""
    assert dependence(np.array([[20, 5], [10, 15]])) == pytest.approx(math.erfc(math.sqrt(25 / 6)))
    assert dependence(np.array([[20, 5], [10, 15]])) == pytest.approx(0.003892417122778637)
    assert dependence(np.array([[8, 2], [1, 5]])) == pytest.approx(0.034965034965034975)  # 280/8008
    assert dependence(np.array([[3, 1], [1, 3]])) == pytest.approx(34 / 70)
    assert dependence(np.array([[0, 0], [1, 3]])) == 1.0


def test_the_least_significant_condition_goes_first() -> None:
    """b has nothing to do with the class, a decides of it."""
    rng = np.random.default_rng(2)
    a, b = rng.random(200) < 0.5, rng.random(200) < 0.5
    wrong = ~a ^ (rng.random(200) < 0.1)
    right = as_bits(~wrong), as_bits(wrong)
    assert kept_conditions([as_bits(b), as_bits(a)], *right, ChiSquare(0.05), 0.5) == [1]
    assert kept_conditions([as_bits(b)], *right, ChiSquare(1.0), 0.5) == [0]
    p = scipy.stats.chi2_contingency([[sum(a & ~wrong), sum(a & wrong)], [sum(~a & ~wrong), sum(~a & wrong)]], False)[1]
    assert dependence(
        np.array([[sum(a & ~wrong), sum(a & wrong)], [sum(~a & ~wrong), sum(~a & wrong)]])
    ) == pytest.approx(p)


def test_limits_of_errors_of_rules() -> None:
    """Quinlan's 25% limits: of 4 right rows 1 - .25**(1/4) = 29.3%, and a rule for no row has the error of a guess."""
    found = pessimistic_errors(np.array([4, 0, 5]), np.array([0, 0, 5]), 0.25, 0.6)
    np.testing.assert_allclose(found, [1 - 0.25**0.25, 0.6, 1.0])


def random_choice(seed: int, r: int, n: int) -> Choice:
    rng = np.random.default_rng(seed)
    own = rng.random(n) < 0.4
    met = np.stack([as_bits((rng.random(n) < 0.25) & (own | (rng.random(n) < 0.3))) for _ in range(r)])
    return Choice(met, as_bits(own), rng.random(r) * 8 + 2, Size(n, int(own.sum())))


@pytest.mark.parametrize("seed", range(5))
def test_counts_after_every_step_are_those_of_a_new_count(seed: int) -> None:
    """Rules are added and dropped at random; what is kept up to date equals what is counted from the rows."""
    choice, rng = random_choice(seed, 9, 150), np.random.default_rng(seed)
    for step in rng.integers(0, 9, 25).tolist():
        choice.toggle(step)
        bits = choice.bits()
        for i in [*range(9), None]:
            after = choice.chosen.copy()
            if i is not None:
                after[i] = ~after[i]
            union = np.bitwise_or.reduce(choice.met[after], initial=np.uint64(0))
            counts = [np.array([size(rows)]) for rows in (union, union & choice.own)]
            cost, number = np.array([choice.cost[after].sum()]), np.array([after.sum()])
            want = total_bits(cost, number, counts[0], counts[1], choice.n)[0]
            assert bits[9 if i is None else i] == pytest.approx(want, abs=1e-9)


def test_the_descent_ends_where_no_step_saves_bits_and_never_above_its_start() -> None:
    choice = random_choice(11, 14, 300)
    start = float(choice.bits()[-1])
    end = choice.descend()
    assert end == choice.bits()[-1] <= choice.bits()[:-1].min()
    assert end < start


def test_all_subsets_are_counted_in_parts_of_the_rows() -> None:
    """More words than are counted at a time."""
    rng = np.random.default_rng(0)
    rows, own = rng.random((3, 200_000)) < 0.1, rng.random(200_000) < 0.5
    fired, right = subset_counts(np.stack([as_bits(r) for r in rows]), as_bits(own))
    for s in range(8):
        union = np.zeros(200_000, bool)
        for i in range(3):
            union |= rows[i] & bool(s >> i & 1)
        assert (fired[s], right[s]) == (union.sum(), (union & own).sum())


def test_more_than_ten_rules_of_a_class_are_searched_the_same_way_every_time() -> None:
    """Draws are keyed: the same seed gives the same rules, and no rule is worth adding or dropping alone."""
    _, cases, _ = random_table(3)
    rng = np.random.default_rng(5)
    paths = []
    for _ in range(60):
        own = [condition(f"x{c}", "=", str(rng.choice(["a", "b", "c"]))) for c in rng.choice(3, 2, replace=False)]
        paths.append((tuple(own), int(rng.integers(0, 2))))
    first = ordered_rules(paths, cases, Method(ChiSquare(1.0), 0.25, True, 1))
    again = ordered_rules(paths, cases, Method(ChiSquare(1.0), 0.25, True, 1))
    assert [r.conditions for r in first[0]] == [r.conditions for r in again[0]]
    assert first[1] == again[1]


def plainly_polished(rules: list[Candidate], default: int, cases: RuleCases, margin: int) -> list[Candidate]:
    """Again and again the first rule that is no better than what follows it, row by row, by a walk of the list."""
    met = [np.unpackbits(rule.met.view(np.uint8))[: cases.n] > 0 for rule in rules]
    kept = [i for i, rule in enumerate(rules) if rule.error <= 0.7]
    while True:
        for place, i in enumerate(kept):
            lost = 0
            for row in range(cases.n):
                if met[i][row] and not any(met[j][row] for j in kept[:place]):
                    instead = next((rules[j].label for j in kept[place + 1 :] if met[j][row]), default)
                    lost += int(instead == cases.label[row]) - int(rules[i].label == cases.label[row])
            if lost >= margin:
                kept.remove(i)
                break
        else:
            return [rules[i] for i in kept]


def test_many_classes_are_ordered_as_by_a_count_of_every_row() -> None:
    """Of 40 classes, some without a rule; also no rule at all."""
    rng = np.random.default_rng(4)
    label = rng.integers(0, 40, 300).astype(np.int32)
    cases = RuleCases(np.zeros((300, 1)), (Feature("x"),), label, 40)
    rules = [
        Candidate((), c, as_bits((rng.random(300) < 0.04) | ((label == c) & (rng.random(300) < 0.6))), rng.random())
        for c in rng.integers(0, 40, 60).tolist()
    ]
    sets = [set(np.flatnonzero(np.unpackbits(rule.met.view(np.uint8)))) for rule in rules]
    table = plain.Table([()] * 300, label.tolist(), [], 40)
    expected = plain.ordered(
        table, [plain.Found([], r.label, own, r.error) for r, own in zip(rules, sets, strict=True)]
    )
    assert [(rule.label, rule.error) for rule in in_order(rules, cases)] == [(r.label, r.error) for r in expected]
    assert default_label(rules, cases) == plain.default(table, expected)
    assert in_order([], cases) == []


@pytest.mark.parametrize("margin", [0, 1])
@pytest.mark.parametrize("seed", range(12))
def test_rules_are_dropped_as_by_a_walk_of_the_list(seed: int, margin: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 140)), int(rng.integers(0, 25))
    cases = RuleCases(np.zeros((n, 1)), (Feature("x"),), rng.integers(0, 3, n).astype(np.int32), 3)
    share = rng.random()
    rules = [
        Candidate((), int(rng.integers(3)), as_bits(rng.random(n) < share), float(rng.choice([0.1, 0.7, 0.8])))
        for _ in range(k)
    ]
    expected = plainly_polished(rules, 1, cases, margin)
    found = polished(rules, 1, cases, margin)
    assert [id(rule) for rule in found] == [id(rule) for rule in expected]
