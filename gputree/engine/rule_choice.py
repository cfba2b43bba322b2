"""Which rules of a set are worth their bits, in what order they stand, and what holds where none does.

May import core. Everything here follows Quinlan (1993), "C4.5: Programs for Machine Learning", chapter 5, as revised in
1994 and 1995 (Quinlan, 1995, "MDL and categorical theories (continued)", ICML).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.conditions import Condition, Interval
from gputree.core.description import log2_factorial
from gputree.core.keys import Stream, draw, mix, unit
from gputree.core.schema import Kind
from gputree.engine.rule_pruning import Bits, RuleCases, as_bits, size

ALL_SUBSETS = 10  # rules of a class of which all subsets are tried
STARTS = 11  # of a search among more
REDUNDANCY = 0.5  # a theory has other wordings that say the same
IMPOSSIBLE = 1e6
WORDS = 1024  # of all subsets at a time
HOPELESS = 0.7  # a rule of a larger error never fires


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rule in the making: conditions (not yet one a column), class, rows that meet it, and pessimistic error."""

    conditions: tuple[Condition, ...]
    label: int
    met: Bits
    error: float


def condition_bits(cases: RuleCases) -> Callable[[Condition], float]:
    """What a condition costs: which column, and which of its tests."""
    branch = {feature.name: column_bits(cases, i) for i, feature in enumerate(cases.features)}
    total = sum(branch.values())
    share = [b / total for b in branch.values() if b > 0] if total else []
    column = -sum(p * np.log2(p) for p in share)
    categories = {feature.name: len(feature.categories) for feature in cases.features}

    def bits(condition: Condition) -> float:
        several = not isinstance(condition, Interval) and (len(condition.values) != 1 or condition.others)
        return float(column + (categories[condition.name] if several else branch[condition.name]))

    return bits


def column_bits(cases: RuleCases, i: int) -> float:
    """Bits of a test of column i: the entropy of its values, or half of what it takes to name a cut, and its side."""
    x = cases.X[:, i]
    _, counts = np.unique(x[~np.isnan(x)], return_counts=True)
    if cases.features[i].kind == Kind.NUMERIC:
        return 1.0 + float(np.log2(max(counts.size, 1))) / 2.0
    p = counts / cases.n
    return float(-(p * np.log2(p)).sum())


def rule_bits(conditions: Sequence[Condition], bits: Callable[[Condition], float]) -> float:
    """Bits of one rule, whose conditions may stand in any order."""
    c = len(conditions)
    return sum(map(bits, conditions)) + float(np.log2(c) - log2_factorial(c))


def biased_bits(n: NDArray[np.float64], e: NDArray[np.float64], expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bits that tell which e of n cases are exceptions where so many are expected, all (k,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        p = expected / n
        found = -np.where(e > 0, e * np.log2(p), 0.0) - np.where(n > e, (n - e) * np.log2(1.0 - p), 0.0)
    found = np.where(expected < 1e-6, np.where(e == 0, 0.0, IMPOSSIBLE), found)
    return np.where(expected >= n, np.where(e == n, 0.0, IMPOSSIBLE), found)


def exception_bits(
    n: int, fired: NDArray[np.int64], wrong: NDArray[np.int64], lost: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Bits of the errors of rules for a class, (k,): cases that they fire for, wrongly so, and those that they miss."""
    f, fp, fn = (a.astype(np.float64) for a in (fired, wrong, lost))
    half = 0.5 * (fp + fn)
    many = biased_bits(f, fp, half) + biased_bits(n - f, fn, fn)
    few = biased_bits(f, fp, fp) + biased_bits(n - f, fn, half)
    bits: NDArray[np.float64] = np.log2(n) + np.where(f > n / 2, many, few)
    return bits


def worthwhile(
    rules: Sequence[Candidate], own: Bits, cases: RuleCases, cost: NDArray[np.float64], key: int
) -> list[int]:
    """The rules of one class that say the most with the fewest bits.

    Parameters
    ----------
    rules : sequence of Candidate
        All for one class.
    own : bits (words,)
        The rows of the class.
    cases : RuleCases
        The training rows.
    cost : float64 array (r,)
        Bits of each rule.
    key : int
        Of the draws of a search among more than ten rules.
    """
    met, n = np.stack([rule.met for rule in rules]), Size(cases.n, int(size(own)))
    if len(rules) <= ALL_SUBSETS:
        flags = np.arange(2 ** len(rules))[:, None] >> np.arange(len(rules)) & 1
        order = np.argsort(flags.sum(axis=1), kind="stable")
        fired, right = subset_counts(met, own)
        value = total_bits(flags @ cost, flags.sum(axis=1), fired, right, n)
        best = order[value[order].argmin()]
        return np.flatnonzero(flags[best]).tolist()
    subset, best, chosen = Subset(met, own, cost, n), np.inf, np.zeros(len(rules), bool)
    for s in range(STARTS):
        subset.start(unit(draw(mix(key, s), Stream.SHUFFLE, np.arange(len(rules)))) < s / (STARTS - 1))
        bits = subset.descend()
        if bits < best:
            best, chosen = bits, subset.chosen
    return [int(i) for i in np.flatnonzero(chosen)]


@dataclass(frozen=True, slots=True)
class Size:
    """Numbers of cases, and of those of the class."""

    cases: int
    own: int


def total_bits(
    cost: NDArray[np.float64],
    rules: NDArray[np.int64],
    fired: NDArray[np.int64],
    right: NDArray[np.int64],
    n: Size,
) -> NDArray[np.float64]:
    """Bits of subsets (k,) of rules and of their exceptions, from the sums of their costs and their numbers."""
    theory: NDArray[np.float64] = REDUNDANCY * (cost - log2_factorial(rules))
    return theory + exception_bits(n.cases, fired, fired - right, n.own - right)


def subset_counts(met: Bits, own: Bits) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of every subset of rules (r, words), by its bits: the rows that meet one of them, and those of the class."""
    counts = np.zeros((2, 2 ** len(met)), np.int64)
    for start in range(0, met.shape[1], WORDS):
        part, mine = met[:, start : start + WORDS], own[start : start + WORDS]
        union = np.zeros((1, part.shape[1]), np.uint64)
        for rule in part:
            union = np.concatenate([union, union | rule])
        counts += size(union), size(union & mine)
    return counts[0], counts[1]


class Subset:
    """A choice among the rules of a class, and what it would be after each rule is added or dropped.

    ``met`` (r, words) are the rows of the rules, ``own`` (words,) those of the class. ``change`` i8 (r, 2) is by how
    many rows, and rows of the class, the choice covers more or fewer when a rule is added or dropped.
    """

    def __init__(self, met: Bits, own: Bits, cost: NDArray[np.float64], n: Size) -> None:
        self.met, self.own, self.cost, self.n = met, own, cost, n
        self.start(np.zeros(len(met), bool))

    def start(self, chosen: NDArray[np.bool_]) -> None:
        """Begin with these rules (r,)."""
        self.chosen = chosen.copy()
        self.times = sum((rows_of(rule) for rule in self.met[chosen]), np.zeros(self.own.size * 64, np.int32))
        self.once, self.none = as_bits(self.times == 1), as_bits(self.times == 0)
        self.change = self.affected(self.met, slice(None), self.chosen)
        self.covered = np.array([size(~self.none), size(~self.none & self.own)])

    def affected(self, met: Bits, words: Any, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Of rules, the rows among some words that they alone cover, or would newly cover; and those of the class."""
        rows = met & np.where(chosen[:, None], self.once[words], self.none[words])
        return np.stack([size(rows), size(rows & self.own[words])], axis=1)

    def toggle(self, i: int) -> None:
        """Add or drop a rule; only words in which rows change are counted again."""
        sign = -1 if self.chosen[i] else 1
        self.covered += sign * self.change[i]
        self.times += sign * rows_of(self.met[i])
        once, none = as_bits(self.times == 1), as_bits(self.times == 0)
        words = np.flatnonzero((once ^ self.once) | (none ^ self.none))
        part = self.met[:, words]
        self.change -= self.affected(part, words, self.chosen)
        self.once, self.none = once, none
        self.change += self.affected(part, words, self.chosen)
        self.chosen[i] = ~self.chosen[i]
        self.change[i] = self.affected(self.met[[i]], slice(None), self.chosen[[i]])[0]

    def bits(self) -> NDArray[np.float64]:
        """Bits of the choice after each rule is added or dropped, and last as it is (r + 1,)."""
        sign = np.append(np.where(self.chosen, -1, 1), 0)
        counts = np.append(self.change, [[0, 0]], axis=0) * sign[:, None] + self.covered
        cost = np.append(self.cost, 0.0) * sign + float(self.cost[self.chosen].sum())
        return total_bits(cost, sign + int(self.chosen.sum()), counts[:, 0], counts[:, 1], self.n)

    def descend(self) -> float:
        """Add or drop the rule that saves the most bits, the first among equals, while some one saves any."""
        while True:
            *value, now = self.bits().tolist()
            step = int(np.argmin(value))
            if not value[step] < now:
                return float(now)
            self.toggle(step)


def rows_of(bits: Bits) -> NDArray[np.int32]:
    """The rows of a set (words,) as ones (rows,)."""
    return np.unpackbits(bits.view(np.uint8)).astype(np.int32)


def by_class(rules: Sequence[Candidate]) -> dict[int, list[Candidate]]:
    """The rules of each class that has some, by its number."""
    found: dict[int, list[Candidate]] = {}
    for rule in sorted(rules, key=lambda rule: rule.label):
        found.setdefault(rule.label, []).append(rule)
    return found


def any_of(rules: Sequence[Candidate], cases: RuleCases) -> Bits:
    """The rows that meet one of the rules (words,)."""
    met = np.zeros(-(-cases.n // 64), np.uint64)
    for rule in rules:
        met |= rule.met
    return met


def in_order(rules: Sequence[Candidate], cases: RuleCases) -> list[Candidate]:
    """Class by class, that whose rules are wrong on the fewest rows left comes next; inside by pessimistic error."""
    groups, found = by_class(rules), list[Candidate]()
    if not groups:
        return found
    order, left = list(groups), ~any_of([], cases)
    covered = np.stack([any_of(own, cases) for own in groups.values()])
    wrongly = np.ascontiguousarray((covered & ~cases.classes()[order]).T)  # (words, classes)
    wrong = size(wrongly.T).astype(np.float64)
    for _ in order:
        best = int(wrong.argmin())
        found += sorted(groups[order[best]], key=lambda rule: rule.error)
        wrong[best] = np.inf
        words = np.flatnonzero(covered[best] & left)  # only these are counted again
        gone = covered[best, words, None]
        wrong -= size((wrongly[words] & gone).T)
        wrongly[words] &= ~gone
        left &= ~covered[best]
    return found


def default_label(rules: Sequence[Candidate], cases: RuleCases) -> int:
    """The class of most rows that meet no rule; among equals the more frequent one, then the first."""
    left, every = cases.counts(~any_of(rules, cases)).tolist(), cases.counts().tolist()
    return max(range(len(every)), key=lambda c: (left[c], every[c], -c))


def polished(rules: Sequence[Candidate], default: int, cases: RuleCases, margin: int = 1) -> list[Candidate]:
    """The ordered list without rules in whose place what follows them would be right on so many rows more, or more."""
    deciding = Deciding([rule for rule in rules if rule.error <= HOPELESS], default, cases)
    while (worse := np.flatnonzero(deciding.there & (deciding.lost() >= margin))).size:
        deciding.drop(int(worse[0]))
    return [rule for rule, there in zip(deciding.rules, deciding.there, strict=True) if there]


class Deciding:
    """Which rule of an ordered list decides on every row, and which one would without it.

    ``first`` and ``second`` (n,) are the first two rules that are ``there`` and that a row meets; behind the last rule
    stands the default, which all rows meet. A rule that is dropped changes the rows alone that it is one of the two of.
    """

    def __init__(self, rules: Sequence[Candidate], default: int, cases: RuleCases) -> None:
        self.rules, self.cases = rules, cases
        self.label = np.array([*(rule.label for rule in rules), default])
        self.met = [rule.met.view(np.uint8) for rule in rules]
        self.there = np.ones(len(rules), bool)
        rows = np.arange(cases.n)
        self.first = self.next(rows, np.full(cases.n, -1))
        self.second = self.next(rows, self.first)

    def next(self, rows: NDArray[np.intp], after: NDArray[np.intp]) -> NDArray[np.intp]:
        """The next rule behind some places (k,) that each of the rows (k,) meets."""
        found, left = np.full(rows.size, len(self.rules)), np.arange(rows.size)
        for i in np.flatnonzero(self.there).tolist():
            row = rows[left]
            hit = (self.met[i][row >> 3] >> (7 - (row & 7)) & 1 > 0) & (after[left] < i)  # bits as of `as_bits`
            found[left[hit]] = i
            left = left[~hit]
        return found

    def lost(self) -> NDArray[np.int64]:
        """On how many rows more than each rule what follows it is right, of those that it decides (r,)."""
        right = [self.label[place] == self.cases.label for place in (self.first, self.second)]
        gain = np.bincount(self.first, right[1], self.label.size) - np.bincount(self.first, right[0], self.label.size)
        return gain[:-1].astype(np.int64)

    def drop(self, i: int) -> None:
        """Take a rule out of the list."""
        self.there[i] = False
        rows = np.flatnonzero((self.first == i) | (self.second == i))
        second = self.second[rows]
        self.first[rows] = np.where(self.first[rows] == i, second, self.first[rows])
        self.second[rows] = self.next(rows, second)
