"""C4.5's pruning as J48 does it, as plain recursion over lists in float64, without anything of the library."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

from tests.c45 import Node, Rows, Table, classes, errors, total

SLACK, EQUAL = 0.1, 1e-6


def added(n: float, e: float, cf: float) -> float:
    """Weka's Stats.addErrs, from its description."""
    if e < 1:
        none = n * (1 - cf ** (1 / n))
        return none if e <= 0 else none + e * (added(n, 1, cf) - none)
    if e + 0.5 >= n:
        return max(n - e, 0)
    z, f = NormalDist().inv_cdf(1 - cf), (e + 0.5) / n
    r = (f + z * z / (2 * n) + z * (f / n - f * f / n + z * z / (4 * n * n)) ** 0.5) / (1 + z * z / n)
    return r * n - e


def expected(table: Table, rows: Rows, cf: float) -> float:
    weights = classes(table, rows)
    return errors(weights) + added(sum(weights), errors(weights), cf) if sum(weights) > 0 else 0.0


def split(table: Table, node: Node, rows: Rows) -> list[Rows]:
    """Rows of every branch; of unknown ones the shares that the known have."""
    assert node.test is not None
    f = node.test[1]
    groups: list[Rows] = [[] for _ in node.kids]
    unknown = []
    for row, w in rows:
        value = table.columns[f][row]
        branch = None if value is None else branch_of(node.test, value)
        (unknown if branch is None else groups[branch]).append((row, w))
    known = [total(group) for group in groups]
    share = [k / sum(known) if sum(known) > 0 else 1 / len(known) for k in known]
    return [g + [(row, w * s) for row, w in unknown if w * s > 0] for g, s in zip(groups, share, strict=True)]


def branch_of(test: tuple[str, int, Any], value: float) -> int | None:
    """The branch of a value, None of a category that the test does not list."""
    sign, _, point = test
    if sign == "in":
        return next((b for b, own in enumerate(point) if value in own), None)
    return int(value) if sign == "=" else int(value > point)


def of_branch(table: Table, node: Node, rows: Rows, cf: float) -> float:
    """Errors expected of a branch to which these rows are sent."""
    if not node.kids:
        return expected(table, rows, cf)
    return sum(of_branch(table, kid, own, cf) for kid, own in zip(node.kids, split(table, node, rows), strict=True))


def pruned(table: Table, node: Node, rows: Rows, cf: float = 0.25, raising: bool = True) -> Node:
    """The tree that is left, with the weights of these rows."""
    node = Node(classes(table, rows), node.test, node.kids)
    if not node.kids:
        return node
    parts = split(table, node, rows)
    node.kids = [pruned(table, kid, own, cf, raising) for kid, own in zip(node.kids, parts, strict=True)]
    heavy = 0
    for branch, own in enumerate(parts):
        heavy = branch if total(own) >= total(parts[heavy]) - EQUAL else heavy
    leaf, tree = expected(table, rows, cf), of_branch(table, node, rows, cf)
    branch_ = of_branch(table, node.kids[heavy], rows, cf) if raising else float("inf")
    if leaf <= tree + SLACK + EQUAL and leaf <= branch_ + SLACK + EQUAL:
        return Node(node.weights)
    if branch_ <= tree + SLACK + EQUAL:
        return pruned(table, node.kids[heavy], rows, cf, raising)
    return node
