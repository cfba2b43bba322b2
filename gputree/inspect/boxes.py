"""What stands in the boxes of a picture of a tree, and their colours. May import everything below."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass
from itertools import accumulate
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import Test
from gputree.inspect.outline import Item
from gputree.inspect.words import (
    Branch,
    Words,
    checked_classes,
    checked_names,
    cut_words,
    likeliest,
    make_words,
    require_tree,
    told_apart,
)

LABELS = ("all", "root", "none")
IMPURITY = {"gain_ratio": "entropy", "twoing": "gini", "chi2": "gini"}  # criteria whose nodes show another's impurity
MOST_NUMBERS, TOP = 10, 3  # in a list; of more classes, the most frequent are listed by name
WRAP = 36  # characters of a line
EDGE_WIDTH, EDGE_LINES = 22, 3  # characters and lines of the categories beside an edge
HIDDEN = "#d9d9d9"
Fact = tuple[str, str]  # a label, and what it labels


@dataclass(frozen=True, slots=True)
class Look:
    """What boxes show: the parameters that `plot_tree` and `export_graphviz` share."""

    label: Any = "all"
    impurity: bool = True
    node_ids: bool = False
    proportion: bool = False
    precision: int = 3
    longest: int | None = None  # characters of a name, of which longer ones lose their middle

    def check(self) -> None:
        """Refuse values out of range."""
        if not isinstance(self.label, str) or self.label not in LABELS:
            raise ValueError(f"label={self.label!r} must be one of {', '.join(map(repr, LABELS))}")
        if not isinstance(self.precision, Integral) or self.precision < 0:
            raise ValueError(f"precision={self.precision!r} must be a whole number of at least 0")

    def rounded(self, value: float) -> str:
        """A number rounded as scikit-learn rounds it."""
        return str(float(round(float(value), int(self.precision))))

    def threshold(self, value: float, feature: int) -> str:
        """A threshold, of whatever feature."""
        return self.number(value)

    def number(self, value: float) -> str:
        """A number rounded, but never to nothing: a small one keeps its digits."""
        digits = max(int(self.precision), 1)
        small = value != 0 and abs(value) < 10.0 ** (1 - digits)
        return f"{value:.{digits}g}" if small else self.rounded(value)


def check_depth(max_depth: Any) -> None:
    """Refuse a depth that is none."""
    if max_depth is not None and (not isinstance(max_depth, Integral) or max_depth < 0):
        raise ValueError(f"max_depth={max_depth!r} must be None or a whole number of at least 0")


class Boxes:
    """The texts and colours of the boxes of a fitted tree."""

    def __init__(self, model: Any, feature_names: Any, class_names: Any, look: Look) -> None:
        require_tree(model)
        look.check()
        self.look, self.criterion = look, IMPURITY.get(model.criterion, model.criterion)
        names = checked_names(model, feature_names, "x[{}]")
        self.words: Words = make_words(model, names, look.threshold, longest=look.longest)
        self.classes = class_lists(model, class_names, look.longest)
        self.with_class = self.classes is not None and class_names is not False
        layout = model.layout_
        stats = model.forest_.stats.T
        self.rows, self.weight = layout.count(stats), layout.weight(stats)
        self.value: NDArray[np.float64] = model._values
        self.sizes: tuple[int, ...] = layout.sizes if layout.counts else ()
        self.stats, self.unit = stats[: sum(self.sizes)], float(model.weight_unit_)
        several = bool(self.sizes) or self.value.shape[1] > 1
        self.measure = (-model.forest_.impurity if several else self.value[:, 0]) / 2  # so that differences are finite
        self.span = float(self.measure.min()), float(self.measure.max())

    def lines(self, item: Item) -> list[str]:
        """The text of a box."""
        node, look = item.node, self.look
        more = [f"+ {counted(item.hidden, 'node', 'nodes')}"] if item.hidden else []
        if item.branches:
            return [f"+ {counted(item.branches, 'branch', 'branches')}", *more]
        full = look.label == "all" or (look.label == "root" and item.parent < 0)
        head = [f"{'node ' if full else ''}#{node}"] if look.node_ids else []
        if item.empty:
            head += [counted(item.nodes, "leaf", "leaves")] if item.nodes > 1 else []
            head += ["no training rows"]
            facts = self.prediction(node) if self.with_class or self.classes is None else iter(())
        else:
            inner = self.words.forest.kind[node] != Test.LEAF
            head += wrapped(self.words.question(node)) if inner else []
            facts = self.facts(node)
        lines = [line for label, text in facts for line in wrapped(f"{label} = {text}" if full else text)]
        return [*head, *lines, *more]

    def facts(self, node: int) -> Iterator[Fact]:
        """What a box says of a node besides its test."""
        if self.look.impurity:
            yield self.criterion, self.look.rounded(self.words.forest.impurity[node])
        share = 100.0 * self.rows[node] / max(int(self.rows[0]), 1)
        yield "samples", f"{share:.1f}%" if self.look.proportion else str(self.rows[node])
        if self.classes is not None:
            yield "value", self.shares(node)
        if self.classes is None or self.with_class:
            yield from self.prediction(node)

    def prediction(self, node: int) -> Iterator[Fact]:
        """What a node predicts: its class, or its number."""
        if self.classes is None:
            numbers = [self.look.number(float(v)) for v in self.value[node]]
            yield "value", number_list(numbers) if len(numbers) > 1 else numbers[0]
            return
        chosen = [likeliest(labels, v) for labels, v in zip(self.classes, self.split(self.value[node]), strict=True)]
        yield "class", chosen[0] if len(chosen) == 1 else f"[{cut_words(chosen, 2 * WRAP)}]"

    def shares(self, node: int) -> str:
        """Weights of the classes in a node, or their shares."""
        values = self.value[node] if self.look.proportion else self.stats[:, node] * self.unit
        whole = bool((np.mod(values, 1) == 0).all()) and not self.look.proportion
        texts = []
        for labels, own in zip(self.classes or [], self.split(values), strict=True):
            numbers = [str(int(v)) if whole else self.look.number(float(v)) for v in own]
            texts.append(number_list(numbers) if len(numbers) <= MOST_NUMBERS else top_list(labels, numbers, own))
        more = [f"... {len(texts) - MOST_NUMBERS} more outputs"] if len(texts) > MOST_NUMBERS else []
        return " ".join([*texts[:MOST_NUMBERS], *more])

    def split(self, values: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """The classes of one output after another."""
        return np.split(values, np.cumsum(self.sizes)[:-1])

    def colour(self, item: Item) -> str:
        """Hue of the class and strength of its majority; of numbers, how large; of several outputs, how pure."""
        if item.branches:
            return HIDDEN
        hue = int(self.value[item.node].argmax()) / self.sizes[0] if len(self.sizes) == 1 else 0.0
        return hex_colour(hue, self.strength(item.node))

    def strength(self, node: int) -> float:
        """How strong the colour of a node is, from 0 to 1."""
        if len(self.sizes) == 1:
            second, first = np.sort(np.append(self.value[node], 0.0))[-2:]
            return float((first - second) / (1 - second)) if second < 1 else 0.0
        least, greatest = self.span
        return (float(self.measure[node]) - least) / (greatest - least) if greatest > least else 0.0


def hex_colour(hue: float, strength: float) -> str:
    """A colour light enough for black text, from white at strength 0; hue 0 is scikit-learn's orange."""
    colour = hls_to_rgb((hue + 25 / 360) % 1.0, 0.65, 0.75)
    return "#" + "".join(f"{round(255 * (1 - strength * (1 - c))):02x}" for c in colour)


def class_lists(model: Any, class_names: Any, longest: int | None) -> list[list[str]] | None:
    """Names of the classes of every output; ``True`` asks for symbols."""
    symbols = class_names is True
    lists = checked_classes(model, None if isinstance(class_names, bool) else class_names)
    if lists is None:
        return None
    return [[f"y[{i}]" for i in range(len(own))] if symbols else told_apart(own, longest) for own in lists]


def number_list(numbers: Sequence[str]) -> str:
    """Numbers in brackets, many of them cut with a count."""
    left = len(numbers) - MOST_NUMBERS
    return "[" + ", ".join(numbers[:MOST_NUMBERS]) + (f", ... {left:,} more]" if left > 0 else "]")


def counted(n: int, one: str, several: str) -> str:
    """``1 node``, ``2,000 nodes``."""
    return f"{n:,} {one if n == 1 else several}"


def top_list(labels: Sequence[str], numbers: Sequence[str], values: NDArray[np.float64]) -> str:
    """The largest numbers with the names of their classes, and the count of the others that are not 0."""
    order = np.argsort(-values, kind="stable")[: np.count_nonzero(values)]
    left = order.size - TOP
    top = ", ".join(f"{labels[i]}: {numbers[i]}" for i in order[:TOP])
    return "{" + top + (f", ... {left:,} more}}" if left > 0 else "}")


def wrapped(text: str) -> list[str]:
    """A text in lines: a list breaks behind its items, other text at blanks, but not before a threshold."""
    if len(text) <= WRAP:
        return [text]
    lines: list[str] = []
    for piece in re.split(r"(?<=[,\]]) " if "," in text else r"(?<!<=) ", text):
        if lines and len(lines[-1]) + 1 + len(piece) <= WRAP:
            lines[-1] += f" {piece}"
        else:
            lines.append(piece)
    return lines


def answer_lines(branch: Branch | None) -> list[str]:
    """What stands beside the edge that leads to a box: the answer to the test above, and what else goes there."""
    if branch is None:
        return []
    lines = folded(branch.values) if branch.values else [branch.answer]
    return [*lines, *([", ".join(branch.marks)] if branch.marks and not branch.empty else [])]


def folded(texts: Sequence[str]) -> list[str]:
    """Categories in a few lines, the rest counted."""
    lines: list[str] = []
    while texts and len(lines) < EDGE_LINES - 1:
        ends = accumulate(len(text) + 2 for text in texts)
        n = max(1, sum(end <= EDGE_WIDTH + 2 for end in ends))
        lines.append(", ".join(texts[:n]) + ("," if n < len(texts) else ""))
        texts = texts[n:]
    return [*lines, *([cut_words(texts, EDGE_WIDTH)] if texts else [])]
