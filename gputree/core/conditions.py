"""Conditions on one column: what a path of a tree asks of it, and what a rule says. May import core only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from gputree.core.forest import Forest, Test
from gputree.core.schema import Feature, Kind, Schema


@dataclass(frozen=True, slots=True)
class Interval:
    """``low < x <= high`` on the column of this name; None is no bound. ``missing``: whether a missing value meets it.

    ``low`` = +inf leaves no known value.
    """

    name: str
    low: float | None = None
    high: float | None = None
    missing: bool = False

    def meet(self, other: Interval) -> Interval:
        """What both allow."""
        low = max((b for b in (self.low, other.low) if b is not None), default=None)
        high = min((b for b in (self.high, other.high) if b is not None), default=None)
        return Interval(self.name, low, high, self.missing and other.missing)

    @property
    def known(self) -> bool | None:
        """Whether all known values meet it (True), none (False) or some (None)."""
        if self.low == np.inf or (self.low is not None and self.high is not None and self.low >= self.high):
            return False
        return True if self.low is None and self.high in (None, np.inf) else None


@dataclass(frozen=True, slots=True)
class Subset:
    """Some categories of the column of this name; ``others``: all values but these, also those that nobody declared.

    ``missing``: whether a missing value meets it.
    """

    name: str
    values: tuple[Any, ...] = ()
    others: bool = False
    missing: bool = False

    def meet(self, other: Subset) -> Subset:
        """What both allow."""
        mine, theirs = set(self.values), set(other.values)
        if self.others and other.others:
            values = (*self.values, *(v for v in other.values if v not in mine))
        elif self.others:
            values = tuple(v for v in other.values if v not in mine)
        else:
            values = tuple(v for v in self.values if (v in theirs) != other.others)
        return Subset(self.name, values, self.others and other.others, self.missing and other.missing)

    @property
    def known(self) -> bool | None:
        """Whether all known values meet it (True), none (False) or some (None)."""
        return None if self.values else self.others


Condition: TypeAlias = Interval | Subset


def merged(conditions: Iterable[Condition], order: dict[str, int]) -> tuple[Condition, ...] | None:
    """Conditions as one a column, in the order of the columns; those that all values meet fall away.

    Parameters
    ----------
    conditions : iterable of Interval or Subset
        Those of one column are of one kind.
    order : dict
        Name of every column -> its place.

    Returns
    -------
    tuple of Interval or Subset, or None if no value of some column meets all.

    Examples
    --------
    >>> merged([Interval("age", low=3.0), Interval("age", high=7.5)], {"age": 0})
    (Interval(name='age', low=3.0, high=7.5, missing=False),)
    >>> merged([Interval("age", high=3.0), Interval("age", low=3.0)], {"age": 0}) is None
    True
    """
    found: dict[str, Any] = {}
    for condition in conditions:
        known = found.get(condition.name)
        found[condition.name] = condition if known is None else known.meet(condition)
    if any(c.known is False and not c.missing for c in found.values()):
        return None
    kept = [normal(c) for c in found.values() if not (c.known and c.missing)]
    return tuple(sorted(kept, key=lambda c: order[c.name]))


def normal(condition: Condition) -> Condition:
    """The one form of conditions that ask the same of known values."""
    if isinstance(condition, Interval):
        if condition.known is False:
            return replace(condition, low=float(np.inf), high=None)
        return replace(condition, high=None) if condition.high == np.inf else condition
    return condition


def listed(forest: Forest, schema: Schema, node: int) -> list[Condition]:
    """The known values that a test lists for each of its branches: missing values and others meet none."""
    feature = schema.features[forest.feature[node]]
    low = float(forest.low[node])
    if forest.kind[node] == Test.THRESHOLD and feature.kind == Kind.CATEGORICAL:  # known against missing
        return [Subset(feature.name, others=True), Subset(feature.name)]
    if forest.kind[node] == Test.THRESHOLD:
        return [Interval(feature.name, high=low), Interval(feature.name, low=low)]
    if forest.kind[node] == Test.LOOKUP:
        return [Subset(feature.name, values) for values in category_lists(forest, feature, node)]
    raise ValueError(f"node {node} has a test of kind {Test(forest.kind[node]).name}, which no rule can say")


def category_lists(forest: Forest, feature: Feature, node: int) -> list[tuple[Any, ...]]:
    """The categories that a LOOKUP node lists, by branch."""
    cells = slice(*forest.lookup_ptr[node : node + 2])
    lists: list[list[Any]] = [[] for _ in range(forest.n_children[node])]
    for code, branch in zip(forest.lookup_code[cells].tolist(), forest.lookup_branch[cells].tolist(), strict=True):
        lists[branch].append(feature.categories[code - 1])
    return [tuple(own) for own in lists]


def branches(forest: Forest, schema: Schema, node: int) -> list[Condition]:
    """What the branches of a test ask, all values shared out: missing ones, and categories that the test does not list.

    A value that a test sends down every branch, or keeps (SPREAD, STAY), meets the condition of none.
    """
    found = listed(forest, schema, node)
    unseen, missing = int(forest.unseen[node]), int(forest.missing[node])
    lists = [c.values for c in found if isinstance(c, Subset)]
    if forest.kind[node] == Test.LOOKUP and unseen < len(lists):
        feature = schema.features[forest.feature[node]]
        rest = {value for b, values in enumerate(lists) if b != unseen for value in values}
        if only_booleans(feature):
            found[unseen] = Subset(feature.name, tuple(v for v in feature.categories if v not in rest))
        else:
            found[unseen] = Subset(feature.name, tuple(v for v in feature.categories if v in rest), others=True)
    return [replace(c, missing=True) if b == missing else c for b, c in enumerate(found)]


def only_booleans(feature: Feature) -> bool:
    """Whether a column cannot hold values that were not declared."""
    return feature.categories == (False, True) and isinstance(feature.categories[0], bool | np.bool_)


def paths(forest: Forest, schema: Schema, full: bool = True) -> Iterator[tuple[int, tuple[Condition, ...]]]:
    """The leaves of the first tree from left to right, and the conditions on the way to each.

    ``full``: conditions as `branches` gives them; else as `listed` does.
    """
    conditions = branches if full else listed
    todo: list[tuple[int, tuple[Condition, ...]]] = [(int(forest.roots[0]), ())]
    while todo:
        node, above = todo.pop()
        if forest.kind[node] == Test.LEAF:
            yield node, above
            continue
        first = int(forest.first_child[node])
        own = conditions(forest, schema, node)
        todo += [(first + b, (*above, own[b])) for b in range(len(own) - 1, -1, -1)]
