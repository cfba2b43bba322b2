"""C4.5's growth as plain recursion over lists in float64, without anything of the library: Quinlan (1993, 1996).

Weights are floats; a row is a number and a weight. Tests are tuples: ("<=", feature, threshold), ("=", feature) and
("==", feature, category), one against all others, and ("in", feature, the categories of each branch).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Rows = list[tuple[int, float]]
EPS, SLACK, GAP = 1e-3, 1e-6, 1e-5
NOISE = 1e-9  # a score is better if it is so by more than rounding


@dataclass
class Table:
    """Columns of numbers or category numbers (None: missing), class numbers; ``levels[f]`` is 0 of numeric columns."""

    columns: list[list[float | None]]
    levels: list[int]
    y: list[int]
    n_classes: int
    size: float
    m: float = 2.0
    by_ratio: bool = True
    split: str = "multiway"
    declared: bool = True  # categories that a node has no rows of are in its tests


@dataclass
class Node:
    weights: list[float]
    test: tuple[str, int, Any] | None = None
    kids: list[Node] = field(default_factory=list)


@dataclass
class Found:
    test: tuple[str, int, Any]
    gain: float
    split: float
    groups: list[Rows]


def classes(table: Table, rows: Rows) -> list[float]:
    weights = [0.0] * table.n_classes
    for row, w in rows:
        weights[table.y[row]] += w
    return weights


def total(rows: Rows) -> float:
    return sum(w for _, w in rows)


def entropy(weights: Sequence[float]) -> float:
    n = sum(weights)
    return -sum(w / n * math.log2(w / n) for w in weights if w > 0)


def judge(table: Table, rows: Rows, groups: list[Rows]) -> tuple[float, float]:
    """Gain a case, and the entropy of the groups with the unknown rows as one more."""
    known = [row for group in groups for row in group]
    n, k = total(rows), total(known)
    after = sum(total(g) / k * entropy(classes(table, g)) for g in groups if total(g) > 0)
    sizes = [total(g) for g in groups] + [n - k]
    return k / n * (entropy(classes(table, known)) - after), entropy([max(s, 0.0) for s in sizes])


def discrete(table: Table, rows: Rows, f: int) -> Found | None:
    groups = [[r for r in rows if table.columns[f][r[0]] == v] for v in range(table.levels[f])]
    if sum(total(g) >= table.m - SLACK for g in groups) < 2:
        return None
    if table.declared:
        return Found(("=", f, 0.0), *judge(table, rows, groups), groups)
    met = [v for v, group in enumerate(groups) if group]
    groups = [groups[v] for v in met]
    return Found(("in", f, tuple((v,) for v in met)), *judge(table, rows, groups), groups)


def against_rest(table: Table, rows: Rows, f: int) -> Found | None:
    known, best, top = [r for r in rows if table.columns[f][r[0]] is not None], None, -math.inf
    for v in range(table.levels[f]):
        one, others = ([r for r in known if (table.columns[f][r[0]] == v) == same] for same in (True, False))
        if min(total(one), total(others)) < table.m - SLACK or not one or not others:
            continue
        gain, split = judge(table, rows, [one, others])
        score = gain if not table.by_ratio else gain / split if split > EPS else -1e300
        if score > top + NOISE:
            best, top = Found(("==", f, float(v)), gain, split, [one, others]), score
    return best


def grouped(table: Table, rows: Rows, f: int) -> Found | None:
    """Values merged into branches (chapter 7 of the book), pair after pair as in release 8."""
    values = [[r for r in rows if table.columns[f][r[0]] == v] for v in range(table.levels[f])]
    groups = one_class_together(table, values)
    left = [v for v in range(len(values)) if not any(v in group for group in groups)]
    rest = tuple(v for v in left if table.declared or values[v])

    def judged(groups: list[tuple[int, ...]]) -> Found:
        every = [*groups, rest] if rest else groups
        parts = [[row for v in group for row in values[v]] for group in every]
        return Found(("in", f, tuple(every)), *judge(table, rows, parts), parts)

    def weight(group: tuple[int, ...]) -> float:
        return sum(total(values[v]) for v in group)

    if len(groups) < 2:
        return None
    now = judged(groups)
    least = now.gain / 2
    while len(groups) > 2:
        heavy = sum(weight(g) >= table.m - SLACK for g in groups)
        barred = max(groups, key=weight) if heavy < 3 else None
        pairs = [(a, b) for i, a in enumerate(groups) for b in groups[i + 1 :] if barred not in (a, b)]
        tests = [judged(sorted([*(g for g in groups if g not in (a, b)), tuple(sorted(a + b))])) for a, b in pairs]
        best = tests[0]
        for test in tests[1:]:
            if test.gain / test.split >= best.gain / best.split - NOISE or test.gain >= least > best.gain:
                best = test
        if heavy >= 2 and best.gain / best.split < now.gain / now.split + 1e-5:
            break
        now, groups = best, [g for g in best.test[2] if g != rest]
    return now if sum(weight(g) >= table.m - SLACK for g in groups) >= 2 else None


def one_class_together(table: Table, values: list[Rows]) -> list[tuple[int, ...]]:
    """Values of more than half a case, those together whose rows are all of the same class."""
    groups: dict[tuple[str, int], tuple[int, ...]] = {}
    for v, own in enumerate(values):
        if total(own) > 0.5:
            met = {table.y[row] for row, w in own if w > 0}
            key = ("class", met.pop()) if len(met) == 1 else ("value", v)
            groups[key] = (*groups.get(key, ()), v)
    return sorted(groups.values())


def continuous(table: Table, rows: Rows, f: int) -> Found | None:
    column = table.columns[f]
    known = sorted((r for r in rows if column[r[0]] is not None), key=lambda r: column[r[0]])
    n, k, tries, best = total(rows), total(known), 0, None
    least = 0.1 * k / table.n_classes
    least = table.m if least <= table.m else min(least, 25.0)
    for i in range(len(known) - 1):
        a, b = column[known[i][0]], column[known[i + 1][0]]
        low, high = known[: i + 1], known[i + 1 :]
        if not a < b - GAP or total(low) < least - SLACK or total(high) < least - SLACK:
            continue
        tries += 1
        gain, split = judge(table, rows, [low, high])
        if best is None or gain > best.gain + NOISE:
            best = Found(("<=", f, (a + b) / 2), gain, split, [low, high])
    if best is None or best.gain - math.log2(tries) / n <= NOISE:
        return None
    best.gain -= math.log2(tries) / n
    seen = max(x for x in column if x is not None and x <= best.test[2])
    best.test = ("<=", f, seen)
    return best


def choose(table: Table, rows: Rows) -> Found | None:
    nominal = {"multiway": discrete, "binary": against_rest, "grouped": grouped}[table.split]
    found = [(nominal if table.levels[f] else continuous)(table, rows, f) for f in range(len(table.columns))]
    many = [levels >= 0.3 * table.size for levels in table.levels]
    averaged = [t.gain for t, wide in zip(found, many, strict=True) if t and (not wide or all(many))]
    if not averaged:
        return None
    mean, best, top = sum(averaged) / len(averaged), None, NOISE
    for test in found:
        if test is None or test.gain < mean - EPS or (table.by_ratio and test.split <= EPS):
            continue
        score = test.gain / test.split if table.by_ratio else test.gain
        if score > top + NOISE:
            best, top = test, score
    return best


def grow(table: Table, rows: Rows) -> Node:
    weights = classes(table, rows)
    node, n = Node(weights), sum(weights)
    if n - max(weights) <= SLACK or n < 2 * (table.m - SLACK):
        return node
    found = choose(table, rows)
    if found is None:
        return node
    node.test = found.test
    known = sum(total(g) for g in found.groups)
    unknown = [r for r in rows if table.columns[found.test[1]][r[0]] is None]
    for group in found.groups:
        share = total(group) / known
        node.kids.append(grow(table, group + [(row, w * share) for row, w in unknown if share > 0]))
    return node


def walk(node: Node) -> Iterator[Node]:
    """Nodes breadth first."""
    level = [node]
    while level:
        yield from level
        level = [kid for n in level for kid in n.kids]


def collapsed(node: Node) -> Node:
    """Subtrees that save no error become leaves (section 4.2 of the book)."""
    kids = [collapsed(kid) for kid in node.kids]
    own = errors(node.weights)
    if not kids or sum(map(tree_errors, kids)) >= own - EPS:
        return Node(node.weights)
    return Node(node.weights, node.test, kids)


def errors(weights: Sequence[float]) -> float:
    return sum(weights) - max(weights)


def tree_errors(node: Node) -> float:
    return sum(map(tree_errors, node.kids)) if node.kids else errors(node.weights)


def text(node: Node, name: Callable[[tuple[str, int, float], int], str], label: Callable[[int], str]) -> str:
    """A tree as J48 prints it."""
    return "\n".join(lines(node, name, label, "", majority(node.weights, 0)))


def majority(weights: Sequence[float], above: int) -> int:
    return max(range(len(weights)), key=lambda c: (round(weights[c], 6), -c)) if sum(weights) > 0 else above


def lines(node: Node, name: Callable[..., str], label: Callable[[int], str], indent: str, above: int) -> Iterator[str]:
    own = majority(node.weights, above)
    if node.test is None:
        wrong = f"/{round(errors(node.weights), 2)}" if errors(node.weights) > SLACK else ""
        yield f": {label(own)} ({round(sum(node.weights), 2)}{wrong})"
        return
    for branch, kid in enumerate(node.kids):
        first, *rest = lines(kid, name, label, indent + "|   ", own)
        head = f"{indent}{name(node.test, branch)}"
        yield from [head + first, *rest] if kid.test is None else [head, first, *rest]
