"""A picture of a tree before it is drawn: its boxes, their texts, sizes and places. May import everything below.

Lengths are multiples of the size of the text, so that one sketch serves text of any size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gputree.inspect.boxes import Boxes, answer_lines
from gputree.inspect.layout import Hanging, Places, hang, levels, place
from gputree.inspect.outline import Item, Limits, Outline

PAD = 0.45  # around the text of a box
LABEL = 0.88  # size of the text beside edges
GAP = 0.3  # between that and its box, and to the end of the edge
MARGIN = 0.8  # around everything

Measure = Callable[[str], tuple[float, float]]  # width and height of a text
Sizes = NDArray[np.float64]  # (k, 2) widths and heights


@dataclass(frozen=True, slots=True)
class Sketch:
    """Boxes in preorder with their texts, the answers to their parents' tests (empty: none), and places.

    ``before`` f8 (k,) is the room that the answers take above the boxes of a level, or beside those of a column.
    """

    items: list[Item]
    texts: list[str]
    answers: list[str]
    box: Sizes
    answer: Sizes
    before: NDArray[np.float64]
    hanging: Hanging
    places: Places

    @property
    def size(self) -> tuple[float, float]:
        """Width and height with a margin around."""
        return self.places.width + 2 * MARGIN, self.places.height + 2 * MARGIN

    def middle(self, i: int) -> tuple[float, float]:
        """Where the text of a box is centred. Its answer stands above it, or to the left where the box hangs."""
        left, top = self.places.x[i] + MARGIN, self.places.y[i] + MARGIN
        if self.hanging.row[i] >= 0:
            return left + self.before[i] + self.box[i, 0] / 2, top + max(self.box[i, 1], self.answer[i, 1]) / 2
        return left + max(self.box[i, 0], self.answer[i, 0]) / 2, top + self.before[i] + self.box[i, 1] / 2

    def answer_middle(self, i: int) -> tuple[float, float]:
        """Where the text beside an edge is centred."""
        x, y = self.middle(i)
        if self.hanging.row[i] >= 0:
            return x - self.box[i, 0] / 2 - GAP - self.answer[i, 0] / 2, y
        return x, y - self.box[i, 1] / 2 - GAP - self.answer[i, 1] / 2

    def end(self, i: int) -> tuple[float, float]:
        """Where the edge to a box ends: shortly before its answer, of whose letters it is none."""
        x, y = self.answer_middle(i) if self.answers[i] else self.middle(i)
        width, height = self.answer[i] + 2 * GAP if self.answers[i] else self.box[i]
        return (x - width / 2, y) if self.hanging.row[i] >= 0 else (x, y - height / 2)

    def edges(self) -> list[list[tuple[float, float]]]:
        """A line for every box but the root, and one along every column of hanging boxes."""
        places, found = self.places, []
        ends: dict[tuple[int, float], float] = {}  # the lowest box of every column
        for i, item in enumerate(self.items):
            if item.parent < 0:
                continue
            x, y = self.end(i)
            if self.hanging.row[i] < 0:  # slanted between levels only, where nothing is in the way
                found.append([*self.stem(item.parent), (x, float(places.y[i]) + MARGIN), (x, y)])
            else:
                spine = float(places.spine[i]) + MARGIN
                found.append([(spine, y), (x, y)])
                ends[item.parent, spine] = y
        for (parent, spine), y in ends.items():
            start = places.top[places.level[parent] + 1] + MARGIN
            found.append([*self.stem(parent), (spine, start), (spine, y)])
        return found

    def stem(self, i: int) -> list[tuple[float, float]]:
        """From the middle of a box down to the end of its level, where the way is free."""
        x, y = self.middle(i)
        return [(x, y), (x, float(self.places.bottom[self.places.level[i]]) + MARGIN)]


def make_sketch(boxes: Boxes, limits: Limits, measure: Measure) -> Sketch:
    """Everything that is drawn of a tree within limits."""
    items = Outline(boxes.words, boxes.weight, limits).items()
    texts = ["\n".join(boxes.lines(item)) for item in items]
    answers = ["\n".join(answer_lines(item.branch)) for item in items]
    box = np.array([measure(text) for text in texts]) + 2 * PAD
    beside = np.array([measure(text) if text else (0.0, 0.0) for text in answers]) * LABEL
    parent = [item.parent for item in items]
    inner = set(parent)
    aspect = box[:, 1].mean() / (box[:, 0] + beside[:, 0]).mean()
    hanging = hang(parent, [i not in inner for i in range(len(items))], float(aspect))
    hangs = np.array(hanging.row) >= 0
    before = most_of(np.where(hangs, beside[:, 0], beside[:, 1]), groups(parent, hanging))
    before += np.where(before > 0, 2 * GAP, 0.0)
    width = np.where(hangs, before + box[:, 0], np.maximum(box[:, 0], beside[:, 0]))
    height = np.where(hangs, np.maximum(box[:, 1], beside[:, 1]), before + box[:, 1])
    return Sketch(items, texts, answers, box, beside, before, hanging, place(parent, hanging, width, height))


def groups(parent: list[int], hanging: Hanging) -> list[tuple[int, int]]:
    """What boxes are in line with: those of their level, or of their column."""
    level = levels(parent, hanging).tolist()
    columns = zip(parent, hanging.column, level, strict=True)
    return [(p, column) if column >= 0 else (-1, depth) for p, column, depth in columns]


def most_of(sizes: NDArray[np.float64], group: list[tuple[int, int]]) -> NDArray[np.float64]:
    """The largest size in the group of every box."""
    largest: dict[tuple[int, int], float] = {}
    for size, own in zip(sizes.tolist(), group, strict=True):
        largest[own] = max(size, largest.get(own, 0.0))
    return np.array([largest[own] for own in group])
