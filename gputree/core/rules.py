"""One rule: conditions, what follows from them, and how far to trust it. May import core only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gputree.core.conditions import Condition
from gputree.core.rule_words import conditions_text, literal


@dataclass(frozen=True, slots=True)
class Rule:
    """If all conditions hold, then the outcome.

    Parameters
    ----------
    conditions : tuple of Interval or Subset
        At most one a column; none: the rule holds for every row.
    outcome : str, int, float or bool
        A label, or a number.
    weight : float, optional
        Weight of the training rows that meet the conditions; of a default, of those that meet no rule.
    confidence : float, optional
        How likely the outcome is to be right, 0 to 1.
    shares : tuple of float
        Shares of the classes in that weight, in the order of the classes; empty for numbers, or if not known.

    Examples
    --------
    >>> from gputree.core.conditions import Interval, Subset
    >>> str(Rule((Subset("Outlook", ("Rainy",)), Interval("wind", low=3.5, missing=True)), "stay in"))
    'if (Outlook=Rainy) and (wind>3.5 or missing) then stay in'
    """

    conditions: tuple[Condition, ...]
    outcome: Any
    weight: float | None = None
    confidence: float | None = None
    shares: tuple[float, ...] = ()

    def __str__(self) -> str:
        return f"if {conditions_text(self.conditions)} then {literal(self.outcome)}"


def facts_of(rule: Rule) -> list[tuple[str, Any]]:
    """What is known of a rule, by name."""
    return [("weight", rule.weight), ("confidence", rule.confidence), ("shares", rule.shares)]


def as_number(rule: Rule) -> Rule:
    """A rule whose outcome is a float."""
    return replace(rule, outcome=float(rule.outcome))


def labels_of(outcomes: list[Any]) -> tuple[Any, ...]:
    """Distinct labels in order, if they have one."""
    labels = list(dict.fromkeys(outcomes))
    return tuple(sorted(labels) if len({isinstance(label, str) for label in labels}) == 1 else labels)


def type_of(classes: tuple[Any, ...]) -> str:
    """NumPy type of labels: their own where they have one in common, else that of objects."""
    same = len({type(label) for label in classes}) == 1 or not any(isinstance(c, str | bool) for c in classes)
    return np.array(classes).dtype.str if same else "|O"
