"""Which rules a row meets: every value of a column allows a set of rules, kept as bits. May import core only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gputree.core.conditions import Condition, Interval, Subset
from gputree.core.schema import Feature, Kind

WORD = 64
BLOCK_RULES = 8 * WORD  # rules that are compared together: the cuts of a column in a block stay few
BLOCK_ROWS = 1 << 15


@dataclass(frozen=True, slots=True)
class Column:
    """What the values of one column allow: code c of it allows the rules whose bits are set in ``allowed[:, c]``.

    Numbers are cut at ``cuts`` f8 (k,): code c holds cuts[c-1] < x <= cuts[c]. Categories 0 .. K - 1 have the codes
    1 .. K, any other value 0 (``cuts`` is None). Missing values have the last code. ``allowed`` u8 (words, codes).
    """

    number: int
    cuts: NDArray[np.float64] | None
    allowed: NDArray[np.uint64]

    def codes(self, x: NDArray[np.float64]) -> NDArray[np.intp]:
        """Codes of values f8 (n,)."""
        missing = np.isnan(x)
        if self.cuts is None:
            codes = np.where(missing, 0.0, x + 1.0).astype(np.intp)
        else:
            codes = np.searchsorted(self.cuts, x, side="left")
        codes[missing] = self.allowed.shape[1] - 1
        return codes


@dataclass(frozen=True, slots=True)
class RuleBits:
    """The rules of a set, in blocks: of each its number of rules and its columns."""

    blocks: tuple[tuple[int, tuple[Column, ...]], ...]

    @classmethod
    def of(cls, rules: Sequence[Sequence[Condition]], features: Sequence[Feature]) -> RuleBits:
        """Lay out rules, each a list of conditions on distinct columns among these."""
        blocks = (rules[i : i + BLOCK_RULES] for i in range(0, len(rules), BLOCK_RULES))
        return cls(tuple((len(block), tuple(columns_of(block, features))) for block in blocks))

    def met(self, X: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether rows f8 (n, F) meet the rules, bool (n, R)."""
        parts = [unpacked(words_of(columns, size, X), size) for size, columns in self.blocks]
        return np.concatenate([np.zeros((X.shape[0], 0), bool), *parts], axis=1)

    def first(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        """The first rule that rows f8 (n, F) meet, i8 (n,); -1 where they meet none."""
        found = np.full(X.shape[0], -1, np.int64)
        open_, start = np.arange(X.shape[0]), 0
        for size, columns in self.blocks:
            words = words_of(columns, size, X if open_.size == X.shape[0] else X[open_])
            for w, word in enumerate(words):
                hit = (word != 0) & (found[open_] < 0)
                lowest = word[hit] & (~word[hit] + np.uint64(1))
                bit = np.bitwise_count(lowest - np.uint64(1)).astype(np.int64)
                found[open_[hit]] = start + w * WORD + bit
            open_, start = open_[found[open_] < 0], start + size
        return found


def columns_of(rules: Sequence[Sequence[Condition]], features: Sequence[Feature]) -> Iterator[Column]:
    """The columns that some rule asks about."""
    asked: dict[str, list[tuple[int, Condition]]] = {}
    for r, conditions in enumerate(rules):
        for condition in conditions:
            asked.setdefault(condition.name, []).append((r, condition))
    for number, feature in enumerate(features):
        if feature.name in asked:
            yield column_of(number, feature, asked[feature.name], len(rules))


def column_of(number: int, feature: Feature, asked: list[tuple[int, Condition]], n_rules: int) -> Column:
    """One column and the conditions of rules on it."""
    found = [b for _, c in asked if isinstance(c, Interval) for b in (c.low, c.high) if b is not None]
    bounds = np.unique(np.array(found, np.float64))
    cuts = bounds if feature.kind == Kind.NUMERIC else None
    categories = {value: code for code, value in enumerate(feature.categories, start=1)}
    n_known = len(categories if cuts is None else cuts) + 1
    allowed = np.ones((n_rules, n_known + 1), bool)
    for r, condition in asked:
        allowed[r, :-1] = among(condition, categories) if isinstance(condition, Subset) else between(condition, bounds)
        allowed[r, -1] = condition.missing
    return Column(number, cuts, packed(allowed))


def between(condition: Interval, cuts: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which codes of known numbers meet a condition, bool (k + 1,)."""
    codes = np.arange(cuts.size + 1)
    low = 0 if condition.low is None else int(np.searchsorted(cuts, condition.low)) + 1
    high = cuts.size if condition.high is None else int(np.searchsorted(cuts, condition.high))
    return (codes >= low) & (codes <= high)


def among(condition: Subset, categories: dict[object, int]) -> NDArray[np.bool_]:
    """Which codes of known categories meet a condition, bool (K + 1,)."""
    named = np.zeros(len(categories) + 1, bool)
    named[[categories[value] for value in condition.values]] = True
    met: NDArray[np.bool_] = named != condition.others
    return met


def packed(flags: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Flags (n, k) as words u8 (n / 64, k), rounded up: bit b of word w is flag 64 w + b."""
    n, k = flags.shape
    padded = np.zeros((-(-n // WORD) * WORD, k), bool)
    padded[:n] = flags
    bytes_ = np.packbits(np.ascontiguousarray(padded.T), axis=1, bitorder="little")
    return np.ascontiguousarray(bytes_.view(np.dtype("<u8")).astype(np.uint64).T)


def unpacked(words: NDArray[np.uint64], n: int) -> NDArray[np.bool_]:
    """Words u8 (n / 64, k) as flags (k, n)."""
    bytes_ = np.ascontiguousarray(words.T).astype(np.dtype("<u8")).view(np.uint8)
    return np.unpackbits(bytes_, axis=1, count=n, bitorder="little").view(bool)


def words_of(columns: Sequence[Column], n_rules: int, X: NDArray[np.float64]) -> NDArray[np.uint64]:
    """The rules of a block that rows f8 (n, F) meet, as words u8 (words, n)."""
    full = packed(np.ones((n_rules, 1), bool))
    words = np.repeat(full, X.shape[0], axis=1)
    for column in columns:
        codes = column.codes(X[:, column.number].astype(np.float64, copy=False))
        for word, allowed in zip(words, column.allowed, strict=True):
            word &= allowed[codes]
    return words
