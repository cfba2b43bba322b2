"""Rules joined. May import everything below."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from gputree.core.splits import Stop
from gputree.engine.judge import Check
from gputree.learners.stopped import Fit, Rule


class Joinable(Rule):
    """A rule that may be joined to others."""

    def __or__(self, other: Rule) -> AnyOf:
        return AnyOf((*self.parts(), *other.parts()))

    def __and__(self, other: Rule) -> AllOf:
        return AllOf((self, other))


@dataclass(frozen=True, slots=True)
class AnyOf(Joinable):
    """Stops where one of some rules does; ``a | b``. A later rule sees what the earlier ones left."""

    rules: tuple[Rule, ...]

    @property
    def why(self) -> str:
        """One of its reasons."""
        return " or ".join(rule.why for rule in self.rules)

    def parts(self) -> tuple[Rule, ...]:
        """The rules."""
        return self.rules

    def begin(self, fit: Fit) -> Check:
        """Ask all of them."""
        checks = [rule.begin(fit) for rule in self.rules]
        return lambda proposed, news: np.any([check(proposed, news) for check in checks], axis=0)


@dataclass(frozen=True, slots=True)
class AllOf(Joinable):
    """Stops where all of some rules do; ``a & b``."""

    rules: tuple[Rule, ...]

    def __post_init__(self) -> None:
        odd = next((part for rule in self.rules for part in rule.parts() if part.limit(Stop()).bounded), None)
        if odd is not None:
            raise ValueError(f"{odd!r} bounds the whole tree and stops no node by itself; join it by |")

    @property
    def why(self) -> str:
        """All of its reasons."""
        return " and ".join(rule.why for rule in self.rules)

    def begin(self, fit: Fit) -> Check:
        """Ask all of them."""
        checks = [rule.begin(fit) for rule in self.rules]
        return lambda proposed, news: np.all([check(proposed, news) for check in checks], axis=0)


def whole(name: str, value: Any, least: int) -> None:
    """Refuse what is no whole number of at least some size."""
    if not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}")
