"""A learner as a row of parts: what is searched, how it is scored, what limits growth. May import core."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from gputree.core.splits import Search, Stop
from gputree.engine.judge import Judge
from gputree.engine.sampling import Sampler

TABLE_BYTES = 1 << 28


class Order(Enum):
    """In which order open nodes are split."""

    LEVEL = "level by level"
    BEST = "best first"


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that the growth loop needs to know of a learner.

    ``judge`` sees the tests of every level before they are carried out, and may drop some.
    """

    search: Search
    stop: Stop = field(default_factory=Stop)
    order: Order = Order.LEVEL
    sampler: Sampler = field(default_factory=Sampler)
    table_bytes: int = TABLE_BYTES
    judge: Judge | None = None

    @property
    def plain(self) -> bool:
        """Whether the choice of a test is the plain order of scores, so that backends may grow whole subtrees."""
        return self.order is Order.LEVEL and self.search.criterion.traced and self.judge is None
