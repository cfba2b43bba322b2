"""Who sees the tests of a level before they are carried out, and says which are kept. May import core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import Marked, ranges
from gputree.core.splits import Splits
from gputree.core.target import Layout

KEPT = 255  # code of a node whose test every rule kept
MOST_RULES = 200


@dataclass(frozen=True, slots=True)
class Proposals:
    """The best tests of k open nodes, before any is carried out.

    ``tests``: what the forest would record of them, the first child of each numbered among all ``children``, whose
    channels are i8 (C, sum of n_branches), test by test; ``depth`` i4 (k,) and ``stats`` i8 (C, k) of the nodes;
    ``codes`` i8 (k,) are the known codes of the tested columns, in the whole table.
    """

    splits: Splits
    tests: Marked
    depth: NDArray[np.int32]
    stats: NDArray[np.int64]
    children: NDArray[np.int64]
    layout: Layout
    codes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.splits)

    @property
    def owner(self) -> NDArray[np.intp]:
        """The place of every child's node among the k."""
        return np.repeat(np.arange(len(self)), self.splits.n_branches)

    def take(self, which: NDArray[np.intp]) -> Proposals:
        """Some of them, in ascending order."""
        own, count = self.splits.take(which), self.splits.n_branches[which]
        children = ranges(self.tests.first_child[which], count)
        begin = (np.cumsum(count) - count).astype(np.int32)
        return Proposals(
            own,
            replace(self.tests.take(which), first_child=begin),
            self.depth[which],
            self.stats[:, which],
            self.children[:, children],
            self.layout,
            self.codes[which],
        )


Check = Callable[[Proposals, Sequence[Marked]], NDArray[np.bool_]]
"""Which of some tests stop, bool (k,), from these and from the tests that were carried out since the call before."""


def stops_of(check: Check, proposed: Proposals, news: Sequence[Marked]) -> NDArray[np.bool_]:
    """What a check says, which may be a user's own.

    Raises
    ------
    TypeError
        If that is not one truth value for each test.
    """
    stops: Any = check(proposed, news)
    if not (isinstance(stops, np.ndarray) and stops.dtype == bool and stops.shape == (len(proposed),)):
        found = f"{stops.dtype} {stops.shape}" if isinstance(stops, np.ndarray) else type(stops).__name__
        raise TypeError(
            f"{getattr(check, '__qualname__', check)} of a rule of stopping gave {found} for {len(proposed)} tests; "
            f"give an array bool ({len(proposed)},) that is True where a node ends"
        )
    given: NDArray[np.bool_] = stops
    return given


@dataclass(slots=True)
class Judge:
    """Drops tests that one of some rules stops; remembers which rule it was.

    ``make`` gives fresh checks for every growth, in the order in which they are asked: a later one sees what the
    earlier ones kept. ``codes`` u1 (N,), in canonical order after growth: 0 where no test was proposed, 1 + the number
    of the rule that stopped it, or KEPT.
    """

    make: Callable[[], Sequence[Check]]
    checks: Sequence[Check] = ()
    seen: list[int] = field(default_factory=list)  # tests carried out that each check has been told of
    verdicts: list[tuple[NDArray[np.int32], NDArray[np.uint8]]] = field(default_factory=list)
    codes: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))

    def begin(self) -> None:
        """Forget earlier growth."""
        self.checks, self.verdicts = self.make(), []
        self.seen = [0] * len(self.checks)

    def keeps(self, proposed: Proposals, marked: Sequence[Marked]) -> NDArray[np.bool_]:
        """Which tests are kept, bool (k,); ``marked`` are all tests carried out so far."""
        codes, left = np.full(len(proposed), KEPT, np.uint8), np.arange(len(proposed))
        for number, check in enumerate(self.checks):
            if not left.size:
                break
            own = proposed if left.size == len(proposed) else proposed.take(left)
            stops = stops_of(check, own, marked[self.seen[number] :])
            self.seen[number] = len(marked)
            codes[left[stops]] = number + 1
            left = left[~stops]
        self.verdicts.append((proposed.splits.node, codes))
        kept: NDArray[np.bool_] = codes == KEPT
        return kept

    def end(self, birth: NDArray[np.intp]) -> None:
        """Number the verdicts as the nodes of the finished forest, whose numbers of birth are given (N,)."""
        top = max((int(node.max(initial=-1)) for node, _ in self.verdicts), default=-1)
        whole = np.zeros(max(int(birth.max(initial=-1)), top) + 1, np.uint8)
        for node, codes in self.verdicts:
            whole[node] = codes
        self.codes = whole[birth]
