"""The sum behind a gain, written out as on a blackboard. May import everything below."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from gputree.inspect.words import shortened, told_apart

if TYPE_CHECKING:
    from gputree.inspect.split_records import SplitBranch, SplitRow, SplitTable

WIDTH = 80
NAME_WIDTH = 24
CLASSES = 6  # up to which all are shown, those without rows too
DIGITS = 9  # of the longest denominator that helps anyone

SYMBOLS = {
    "gini": ("G", "G is the Gini impurity, 1 - sum of p^2"),
    "train_error": ("E", "E is the training error, 1 - max p"),
    "squared_error": ("SS", "SS is the sum of squares about the mean"),
    "twoing": ("", ""),
    "chi2": ("", ""),
    "poisson": ("D", "D is the sum of y log(y / mean), half the Poisson deviance"),
}
ENTROPY = ("H", "H is the entropy in bits")


def work_text(table: SplitTable, row: SplitRow, decimals: int) -> str:
    """What `SplitTable.show_work` returns."""
    work = Work(table, row, decimals)
    writers: dict[str, Callable[[], Iterator[str]]] = {
        "gini": work.exact_gain,
        "train_error": work.exact_gain,
        "gain_ratio": work.gain_ratio,
        "twoing": work.twoing,
        "chi2": work.chi_square,
        "squared_error": work.sums,
        "poisson": work.sums,
    }
    return "\n".join([*work.legend(), *writers.get(table.criterion, work.entropy_gain)()])


class Work:
    """Writes the sum of one row of a table. Branches without rows are left out of it: their share is 0."""

    def __init__(self, table: SplitTable, row: SplitRow, decimals: int) -> None:
        self.table, self.row, self.node = table, row, table.node
        self.branches = [branch for branch in row.branches if branch.weight]
        self.name = shortened(row.feature, NAME_WIDTH)
        self.decimals = decimals

    def legend(self) -> Iterator[str]:
        """What the branches are, in order, and what the symbols mean."""
        labels = told_apart([b.label for b in self.row.branches], 40)
        sizes = [
            f"{label} (n={self.table.weight_text(b.weight)})"
            for label, b in zip(labels, self.row.branches, strict=True)
        ]
        yield from wrapped(f"{self.name}: ", [f"{size}," for size in sizes[:-1]] + sizes[-1:])
        meaning = SYMBOLS.get(self.table.criterion, ENTROPY)[1]
        classes = ", ".join(told_apart(self.table.classes, 40))
        yield from wrapped(
            "classes: " if classes else "", f"{classes}{'; ' * bool(classes and meaning)}{meaning}".split()
        )

    def entropy_gain(self) -> Iterator[str]:
        """Entropies have no fractions: decimals."""
        values = [self.decimal(branch.impurity) for branch in self.branches]
        yield from self.equation(
            f"Gain({self.name})",
            [*self.measures("H")],
            self.weighed(self.decimal(self.node.impurity), values),
            [f"{self.decimal(self.node.impurity)} - {self.decimal(self.row.remainder)}"],
            [self.decimal(self.row.gain)],
        )

    def gain_ratio(self) -> Iterator[str]:
        """The gain, the split info and their ratio."""
        yield from self.entropy_gain()
        sizes = [self.share(branch.weight, self.node.weight) for branch in self.branches]
        info = self.decimal(self.row.split_info)
        yield from self.equation(f"SplitInfo({self.name})", call("H", sizes), [info])
        quotient = f"{self.decimal(self.row.gain)} / {info}"
        yield from self.equation(f"GainRatio({self.name})", [quotient], [self.decimal(self.row.gain_ratio)])

    def exact_gain(self) -> Iterator[str]:
        """Gini's impurity and the training error are fractions."""
        measure = fraction_of_gini if self.table.criterion == "gini" else fraction_of_error
        own, parts = measure(self.node.counts), [measure(branch.counts) for branch in self.branches]
        remainder = sum(
            (Fraction(b.weight, self.node.weight) * part for b, part in zip(self.branches, parts, strict=True)),
            Fraction(0),
        )
        yield from self.equation(
            f"Gain({self.name})",
            [*self.measures(SYMBOLS[self.table.criterion][0])],
            self.weighed(self.exact(own), [self.exact(part) for part in parts]),
            [f"{self.exact(own)} - {self.exact(remainder)}"],
            self.result(own - remainder),
        )

    def twoing(self) -> Iterator[str]:
        """(pL pR / 4) (sum over classes of |p(j|L) - p(j|R)|)^2."""
        left, right = self.branches
        pairs = list(zip(left.counts, right.counts, strict=True))
        differences = [abs(Fraction(a, left.weight) - Fraction(b, right.weight)) for a, b in pairs]
        factor = Fraction(left.weight, self.node.weight) * Fraction(right.weight, self.node.weight) / 4
        p = [self.share(branch.weight, self.node.weight) for branch in self.branches]
        terms = [f"|{self.share(a, left.weight)} - {self.share(b, right.weight)}|" for a, b in pairs]
        total = sum(differences, Fraction(0))
        yield from self.equation(
            f"Twoing({self.name})",
            [f"{p[0]} * {p[1]} / 4 *", *summed("(", terms, ")^2")],
            [f"{self.exact(factor)} * ({self.exact(total)})^2"],
            self.result(factor * total * total),
        )

    def chi_square(self) -> Iterator[str]:
        """Pearson's sum of (observed - expected)^2 / expected over branches and classes."""
        unit = Fraction(self.table.unit).limit_denominator(10**DIGITS) or Fraction(self.table.unit)
        cells = [
            (count * unit, Fraction(branch.weight * total, self.node.weight) * unit)
            for branch in self.branches
            for count, total in zip(branch.counts, self.node.counts, strict=True)
            if total
        ]
        terms = [f"({self.exact(o)} - {self.exact(e)})^2 / {parenthesised(self.exact(e))}" for o, e in cells]
        parts = [(o - e) ** 2 / e for o, e in cells]
        yield from self.equation(
            f"Chi2({self.name})",
            summed("", terms, ""),
            summed("", [self.exact(part) for part in parts], ""),
            self.result(sum(parts, Fraction(0))),
        )

    def sums(self) -> Iterator[str]:
        """Sums of squares, or deviances, over the weight of the node."""
        symbol, n = SYMBOLS[self.table.criterion][0], self.table.weight_text(self.node.weight)
        named = [
            f"{symbol}(n={self.table.weight_text(b.weight)}, mean={self.plain(b.mean)})"
            for b in (self.node, *self.branches)
        ]
        totals = [self.plain(b.impurity * b.weight * self.table.unit) for b in (self.node, *self.branches)]
        yield from self.equation(
            f"Gain({self.name})",
            [f"{named[0]} / {n}", *summed("- [", named[1:], f"] / {n}")],
            [f"{totals[0]} / {n}", *summed("- [", totals[1:], f"] / {n}")],
            [f"{self.plain(self.node.impurity)} - {self.plain(self.row.remainder)}"],
            [self.plain(self.row.gain)],
        )

    def measures(self, symbol: str) -> Iterator[str]:
        """``H(9/14, 5/14) - [5/14 H(2/5, 3/5) + ...]``."""
        yield from self.measure(symbol, self.node)
        for i, branch in enumerate(self.branches):
            parts = list(self.measure(symbol, branch))
            parts[0] = f"{'+ ' if i else '- ['}{self.share(branch.weight, self.node.weight)} {parts[0]}"
            parts[-1] += "]" * (i == len(self.branches) - 1)
            yield from parts

    def measure(self, symbol: str, branch: SplitBranch) -> Iterator[str]:
        """``H(2/5, 3/5)``; of many classes those that are there, for a share of 0 adds nothing."""
        few = len(branch.counts) <= CLASSES
        yield from call(symbol, [self.share(count, branch.weight) for count in branch.counts if few or count])

    def weighed(self, own: str, values: Sequence[str]) -> list[str]:
        """``0.940 - [5/14 * 0.971 + ...]``."""
        pairs = zip(self.branches, values, strict=True)
        return [own, *summed("- [", [f"{self.share(b.weight, self.node.weight)} * {value}" for b, value in pairs], "]")]

    def share(self, part: int, whole: int) -> str:
        """A fraction as it is counted, not reduced."""
        return f"{self.table.weight_text(part)}/{self.table.weight_text(whole)}"

    def result(self, value: Fraction) -> list[str]:
        """A fraction and its decimals."""
        exact, rounded = self.exact(value), self.decimal(float(value))
        return [exact if value.denominator == 1 or "/" not in exact else f"{exact} = {rounded}"]

    def exact(self, value: Fraction) -> str:
        """A reduced fraction, or decimals where it is too long to be read."""
        return str(value) if len(str(value.denominator)) <= DIGITS else self.decimal(float(value))

    def decimal(self, value: float) -> str:
        """A number with its decimals, never -0."""
        return f"{round(value, self.decimals) + 0.0:.{self.decimals}f}"

    def plain(self, value: float) -> str:
        """A number of any size."""
        return f"{value:.6g}"

    def equation(self, head: str, *sides: Sequence[str]) -> Iterator[str]:
        """Lines that begin with ``=`` under each other."""
        for i, side in enumerate(sides):
            yield from wrapped(f"{head if not i else ' ' * len(head)} = ", side)


def fraction_of_gini(counts: Sequence[int]) -> Fraction:
    """1 less the sum of squared shares."""
    return 1 - sum((Fraction(count, sum(counts)) ** 2 for count in counts), Fraction(0))


def fraction_of_error(counts: Sequence[int]) -> Fraction:
    """Share of all but the most frequent."""
    return 1 - Fraction(max(counts), sum(counts))


def call(symbol: str, shares: Sequence[str]) -> list[str]:
    """``H(2/5, 3/5)`` in pieces between which a line may end."""
    pieces = [f"{share}," for share in shares]
    pieces[-1] = f"{pieces[-1][:-1]})"
    pieces[0] = f"{symbol}({pieces[0]}"
    return pieces if sum(map(len, pieces)) > WIDTH // 2 else [" ".join(pieces)]


def summed(begin: str, terms: Sequence[str], end: str) -> list[str]:
    """Terms with plus signs, in pieces."""
    pieces = [f"{'+ ' if i else begin}{term}" for i, term in enumerate(terms)]
    pieces[-1] += end
    return pieces


def parenthesised(text: str) -> str:
    """A fraction in parentheses, a number as it is."""
    return f"({text})" if "/" in text else text


def wrapped(head: str, pieces: Sequence[str]) -> Iterator[str]:
    """The pieces on lines of at most 80 columns, the first behind the head, the others below its end."""
    line = head
    room = WIDTH - len(head)
    for piece in (part for whole in pieces for part in ([whole] if len(whole) <= room else whole.split(" "))):
        if line.strip() and line != head and len(line) + len(piece) > WIDTH:
            yield line.rstrip()
            line = " " * len(head)
        line += f"{piece} "
    yield line.rstrip()
