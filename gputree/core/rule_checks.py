"""Whether rules fit the table that they are about: one check for sets that are made and those that are read.

Each function raises ValueError. May import core only.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gputree.core.checks import at_least_nothing, is_number, one_of, shown
from gputree.core.conditions import Condition, Interval, Subset
from gputree.core.rules import Rule
from gputree.core.schema import Feature, Kind

ROUNDING = 1e-6  # that the sum of shares may miss 1 by
MOST = 10  # names in a message
TOO_LARGE = ": the weights of the rows add up to more than a float holds; multiply them by a small factor, such as 1e-9"
TESTS: dict[Kind, Any] = {Kind.NUMERIC: Interval, Kind.CATEGORICAL: Subset}


@dataclass(frozen=True, slots=True)
class Names:
    """What rules may name: columns, the categories of each, and labels (None: they predict numbers)."""

    columns: dict[str, Feature]
    categories: dict[str, frozenset[Any]]
    labels: dict[Any, None] | None

    @classmethod
    def of(cls, features: Sequence[Feature], classes: Sequence[Any] | None, dtype: str) -> Names:
        """Those of a table: no two are the same, and labels are of their type."""
        once("columns", [feature.name for feature in features])
        for feature in features:
            once(f"categories of column {feature.name!r}", feature.categories)
        once("classes", classes or ())
        if classes is not None and not fits(classes, dtype):
            raise ValueError(f"dtype={dtype!r} does not hold the classes {some(classes)}; leave it out, or give '|O'")
        known = {feature.name: frozenset(feature.categories) for feature in features}
        return cls({f.name: f for f in features}, known, None if classes is None else dict.fromkeys(classes))

    def check_rules(self, rules: Sequence[Rule], default: Rule | None) -> None:
        """Every rule is about this table, can hold, and has numbers that can be; messages have its place."""
        every = [(f"rule {i}", rule) for i, rule in enumerate(rules)]
        for place, rule in [*every, *([("the default", default)] if default else [])]:
            try:
                self.check_rule(rule)
            except ValueError as error:
                raise ValueError(f"{place}: {error}") from None
        if default is not None and default.conditions:
            raise ValueError(f"the default has conditions, and holds where no rule does: {default}; leave them out")

    def check_rule(self, rule: Rule) -> None:
        """The conditions, outcome and numbers of a rule."""
        names = [condition.name for condition in rule.conditions]
        if len(set(names)) < len(names):
            raise ValueError(f"column {repeated(names)!r} has several conditions; join them to one")
        for condition in rule.conditions:
            self.check_condition(condition)
        if self.labels is not None and not (can_be_told(rule.outcome) and rule.outcome in self.labels):
            raise ValueError(f"outcome {rule.outcome!r} is none of the classes {some(self.labels)}")
        if self.labels is None and (not is_number(rule.outcome) or rule.outcome != rule.outcome):
            raise ValueError(f"outcome {rule.outcome!r} is no number, and there are no classes; give either")
        if rule.confidence is not None and not (is_number(rule.confidence) and 0.0 <= rule.confidence <= 1.0):
            raise ValueError(f"confidence={rule.confidence!r} must be a number from 0 to 1")
        self.check_training(rule.weight, rule.shares)

    def check_training(self, weight: float | None, shares: Sequence[float]) -> None:
        """What training rows weigh, and the shares of the classes in that."""
        if weight is not None:
            at_least_nothing("weight", weight, TOO_LARGE if weight == math.inf else "")
        if len(shares) > 0 and self.labels is None:
            raise ValueError(f"shares {some(shares)} are those of classes, and there are none; leave them out")
        if len(shares) > 0:
            n = len(self.labels or ())
            numbers = len(shares) == n and all(is_number(share) and share >= 0.0 for share in shares)
            if not numbers or not abs(sum(map(float, shares)) - 1.0) <= ROUNDING:
                raise ValueError(
                    f"shares {some(shares)} must be {n} numbers, one a class, of at least 0, and sum up to 1"
                )

    def check_conflict(self, conflict: str, rules: Sequence[Rule]) -> None:
        """What decides where several rules hold; votes need classes and the confidence of every rule."""
        one_of("conflict", conflict, ("first", "vote"))
        if conflict == "vote" and self.labels is None:
            raise ValueError("conflict='vote' needs classes, and these rules predict numbers; give 'first'")
        silent = next((i for i, rule in enumerate(rules) if rule.confidence is None), None)
        if conflict == "vote" and silent is not None:
            raise ValueError(
                f"conflict='vote' needs the confidence of every rule, and rule {silent} has none; give one, leave the "
                "rule out, or give conflict='first'"
            )

    def check_condition(self, condition: Condition) -> None:
        """A condition of the kind of its column, that some value meets and some does not."""
        feature = self.columns.get(condition.name)
        if feature is None:
            raise ValueError(f"column {condition.name!r} is none of {some(self.columns)}")
        if not isinstance(condition, TESTS[feature.kind]):
            kind, wanted = feature.kind.name.lower(), TESTS[feature.kind].__name__
            raise ValueError(f"column {condition.name!r} is {kind}, so {condition} must be of type {wanted}")
        if isinstance(condition, Subset):
            once(f"values of {condition}", condition.values)
            odd = [value for value in condition.values if value not in self.categories[condition.name]]
            if odd:
                known = some(feature.categories)
                raise ValueError(f"{odd[0]!r} is none of the categories of column {condition.name!r}: {known}")
        else:
            check_bounds(condition)
        if condition.known is False and not condition.missing:
            raise ValueError(f"no value meets {condition}; leave the rule out")
        if condition.known is True and condition.missing:
            raise ValueError(f"every value meets {condition}; leave the condition out")


def check_bounds(condition: Interval) -> None:
    """The bounds of a condition are numbers, in the one form that they have."""
    low, high = condition.low, condition.high
    if any(bound is not None and (not is_number(bound) or bound != bound) for bound in (low, high)):
        raise ValueError(f"the bounds of {condition} must be numbers, or None")
    if high == math.inf:
        raise ValueError(f"every number is at most the bound inf of {condition}; give None")
    if condition.known is False and condition.missing and (low, high) != (math.inf, None):
        raise ValueError(f"no number meets {condition}; for missing values alone give low=inf, high=None")


def fits(classes: Sequence[Any], dtype: str) -> bool:
    """Whether an array of this type holds labels as they are."""
    labels = np.empty(len(classes), object)
    labels[:] = classes
    try:
        return bool(labels.astype(dtype).tolist() == list(classes))
    except (TypeError, ValueError, OverflowError):
        return False


def can_be_told(value: Any) -> bool:
    """Whether a value can be a label or a category; lists and arrays cannot."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def once(what: str, values: Sequence[Any]) -> None:
    """Nothing is listed twice, and nothing that cannot be told from others."""
    odd = [value for value in values if not can_be_told(value)]
    if odd:
        raise ValueError(f"the {what} hold {shown(odd[0])}; give text, numbers and booleans")
    if len(set(values)) < len(values):
        raise ValueError(f"the {what} have {repeated(values)!r} twice; give each once")


def repeated(values: Sequence[Any]) -> Any:
    """The first value that stood before, of values of which one did."""
    met: set[Any] = set()
    return next(value for value in values if value in met or met.add(value))  # type: ignore[func-returns-value]


def some(values: Collection[Any]) -> str:
    """Values as a message names them, not more than some."""
    first = ", ".join(map(repr, list(values)[:MOST]))
    return f"{first} and {len(values) - MOST} more" if len(values) > MOST else first
