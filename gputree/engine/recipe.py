"""A learner as a row of parts: what is searched, how it is scored, what limits growth. May import core."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from gputree.core.forest import SPREAD, STAY
from gputree.core.splits import Gate, Missing, Scan, Search, Stop
from gputree.engine.judge import Judge
from gputree.engine.sampling import FeatureDraws, Sampler

TABLE_BYTES = 1 << 28


class Order(Enum):
    """In which order open nodes are split."""

    LEVEL = "level by level"
    BEST = "best first"


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that the growth loop needs to know of a learner.

    ``stay``: values that a test has no branch for end at its node, and do not follow the child of larger weight.
    ``gate``: what else a test must pass to be chosen.
    ``judge`` sees the tests of every level before they are carried out, and may drop some.
    """

    search: Search
    stop: Stop = field(default_factory=Stop)
    order: Order = Order.LEVEL
    sampler: Sampler = field(default_factory=Sampler)
    table_bytes: int = TABLE_BYTES
    stay: bool = False
    gate: Gate | None = None
    judge: Judge | None = None

    @property
    def elsewhere(self) -> int | None:
        """Where a test sends the values that it has no branch for, None for the child of larger weight."""
        return SPREAD if self.search.missing is Missing.SPREAD else STAY if self.stay else None

    @property
    def others(self) -> int | None:
        """Where a test of categories sends those that its node did not meet: they are not the one that stands alone."""
        rest = any(generator.scan is Scan.ONE_AGAINST_REST for generator in self.search.generators)
        return 1 if rest else self.elsewhere

    @property
    def plain(self) -> bool:
        """Whether a node depends on nothing but its rows, and its test is the best score: subtrees may grow alone."""
        search, traced = self.search, self.search.criterion.traced
        rules = search.missing is Missing.BRANCH and search.cuts is None and self.gate is None and self.judge is None
        draws = self.sampler.feature_draws is FeatureDraws.CONTINUE and not self.sampler.once
        return traced and rules and draws and self.order is Order.LEVEL
