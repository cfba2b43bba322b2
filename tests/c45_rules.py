"""C4.5rules in plain Python over lists of rows: Quinlan (1993), chapter 5. For a few rules of each class.

A row is a tuple of values (None: missing), a condition a test (name, sign, value) with sign "<=", ">" or "=".
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

Cond = tuple[int, str, Any]
TAIL = (0, 0.001, 0.005, 0.01, 0.05, 0.10, 0.20, 0.40, 1.00)
DEVIATE = (4.0, 3.09, 2.58, 2.33, 1.65, 1.28, 0.84, 0.25, 0.0)


@dataclass
class Table:
    rows: list[tuple[Any, ...]]
    y: list[int]
    numeric: list[bool]
    n_classes: int
    cf: float = 0.25


@dataclass
class Found:
    conditions: list[Cond]
    label: int
    rows: set[int]
    error: float


def holds(row: tuple[Any, ...], condition: Cond) -> bool:
    column, sign, value = condition
    x = row[column]
    return x is not None and {"<=": lambda: x <= value, ">": lambda: x > value, "=": lambda: x == value}[sign]()


def covered(table: Table, conditions: list[Cond]) -> set[int]:
    return {i for i, row in enumerate(table.rows) if all(holds(row, c) for c in conditions)}


def added(n: int, e: int, cf: float) -> float:
    """The upper limit of errors, less the errors."""
    if e == 0:
        return n * (1 - cf ** (1 / n))
    if e + 0.5 >= n:
        return 0.67 * (n - e)
    i = next(i for i in range(1, 9) if cf <= TAIL[i])
    z = DEVIATE[i - 1] + (DEVIATE[i] - DEVIATE[i - 1]) * (cf - TAIL[i - 1]) / (TAIL[i] - TAIL[i - 1])
    c, r = z * z, e + 0.5
    return n * (r + c / 2 + math.sqrt(c * (r * (1 - r / n) + c / 4))) / (n + c) - e


def wrong(table: Table, rows: set[int], label: int) -> int:
    return sum(table.y[i] != label for i in rows)


def default_error(table: Table, label: int) -> float:
    return 1 - (table.y.count(label) + 1) / (len(table.y) + 2)


def pessimistic(table: Table, rows: set[int], label: int) -> float:
    e, n = wrong(table, rows, label), len(rows)
    return (e + added(n, e, table.cf)) / n if n else default_error(table, label)


def pruned(table: Table, path: list[Cond], label: int) -> Found | None:
    kept = list(path)
    while kept:
        now = covered(table, kept)
        without = [covered(table, kept[:d] + kept[d + 1 :]) for d in range(len(kept))]
        limit = pessimistic(table, now, label)
        limits = [pessimistic(table, rows, label) for rows in without]
        same = [
            bool(rows and now) and wrong(table, rows, label) / len(rows) <= wrong(table, now, label) / len(now)
            for rows in without
        ]
        going = [d for d in range(len(kept)) if limits[d] <= limit or same[d]]
        if not going:
            break
        least = min(limits[d] for d in going)
        del kept[max(d for d in going if limits[d] == least)]
    rows = covered(table, kept)
    error = pessimistic(table, rows, label)
    return Found(kept, label, rows, error) if kept and rows and error < default_error(table, label) else None


def branch_bits(table: Table, column: int) -> float:
    counts = Counter(row[column] for row in table.rows if row[column] is not None)
    if table.numeric[column]:
        return 1 + math.log2(len(counts)) / 2
    return -sum(n / len(table.rows) * math.log2(n / len(table.rows)) for n in counts.values())


def rule_bits(table: Table, rule: Found) -> float:
    bits = [branch_bits(table, column) for column in range(len(table.numeric))]
    shares = [b / sum(bits) for b in bits if b]
    attribute = -sum(p * math.log2(p) for p in shares)
    c = len(rule.conditions)
    each = sum(attribute + bits[column] for column, _, _ in rule.conditions)
    return each + math.log2(c) - math.log2(math.factorial(c))


def biased(n: float, e: float, x: float) -> float:
    if x < 1e-6:
        return 0 if e == 0 else 1e6
    if x >= n:
        return 0 if e == n else 1e6
    return -e * math.log2(x / n) - (n - e) * math.log2(1 - x / n)


def description(table: Table, rules: list[Found], label: int) -> float:
    n, rows = len(table.rows), set().union(*(rule.rows for rule in rules))
    fp, fired = wrong(table, rows, label), len(rows)
    fn = sum(table.y[i] == label for i in range(n) if i not in rows)
    theory = 0.5 * (sum(rule_bits(table, rule) for rule in rules) - math.log2(math.factorial(len(rules))))
    half = 0.5 * (fp + fn)
    if fired > n / 2:
        return theory + math.log2(n) + biased(fired, fp, half) + biased(n - fired, fn, fn)
    return theory + math.log2(n) + biased(fired, fp, fp) + biased(n - fired, fn, half)


def chosen(table: Table, rules: list[Found], label: int) -> list[Found]:
    subsets = (list(s) for r in range(len(rules) + 1) for s in itertools.combinations(rules, r))
    return min(subsets, key=lambda s: round(description(table, s, label), 9))


def ordered(table: Table, rules: list[Found]) -> list[Found]:
    left, found = set(range(len(table.rows))), []
    open_ = sorted({rule.label for rule in rules})
    while open_:
        rows = {c: left & set().union(*(r.rows for r in rules if r.label == c)) for c in open_}
        best = min(open_, key=lambda c: (wrong(table, rows[c], c), c))
        open_.remove(best)
        found += sorted((r for r in rules if r.label == best), key=lambda r: r.error)
        left -= rows[best]
    return found


def default(table: Table, rules: list[Found]) -> int:
    left = set(range(len(table.rows))) - set().union(*(r.rows for r in rules))
    count = Counter(table.y[i] for i in left)
    return max(range(table.n_classes), key=lambda c: (count[c], table.y.count(c), -c))


def polished(table: Table, rules: list[Found], otherwise: int) -> list[Found]:
    kept = [rule for rule in rules if rule.error <= 0.7]
    for place, rule in enumerate(kept):
        mine = {i for i in rule.rows if not any(i in before.rows for before in kept[:place])}
        after = {i: next((r.label for r in kept[place + 1 :] if i in r.rows), otherwise) for i in mine}
        if sum(table.y[i] == after[i] for i in mine) > sum(table.y[i] == rule.label for i in mine):
            return polished(table, kept[:place] + kept[place + 1 :], otherwise)
    return kept


def rules(table: Table, paths: list[tuple[list[Cond], int]]) -> tuple[list[Found], int]:
    """The list of rules and the default class."""
    made, seen = [], set()
    for path, label in paths:
        found = pruned(table, path, label)
        if found is not None and (frozenset(found.conditions), label) not in seen:
            seen.add((frozenset(found.conditions), label))
            made.append(found)
    kept = [r for c in range(table.n_classes) for r in chosen(table, [r for r in made if r.label == c], c)]
    in_order = ordered(table, kept)
    otherwise = default(table, in_order)
    return polished(table, in_order, otherwise), otherwise
