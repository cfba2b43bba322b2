"""A tree as text, one line a branch and a leaf, in scikit-learn's format. May import everything below."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from gputree.core.forest import Forest, Test
from gputree.inspect.words import (
    LIST_WIDTH,
    Branch,
    Words,
    checked_classes,
    checked_names,
    cut_words,
    likeliest,
    listed,
    make_words,
    require_tree,
)

LINE_WIDTH = 80  # lists of categories are cut to keep lines within it, where names and depth allow
NARROWEST = 24  # of lists, however far a line is indented


def export_text(
    decision_tree: Any,
    *,
    feature_names: Any = None,
    class_names: Any = None,
    max_depth: int | None = 10,
    spacing: int = 3,
    decimals: int = 2,
    show_weights: bool = False,
    show_missing: bool | str = "auto",
    width: int | None = LINE_WIDTH,
) -> str:
    """Write the rules of a tree as text.

    The text of a tree of numeric tests that met no missing value is, character for character, that of
    `sklearn.tree.export_text` for the same tree and names. Beyond it:

    - A test of categories has one line a branch, with the categories that take it; a long list is cut, with the count
      of the rest, unless ``width`` gives it room.
    - ``(or missing)`` marks the branch that missing values take, ``(or other)`` that of every category which the test
      does not list; both may be one line. ``(38.5% of missing)`` is the share of their weight that a branch gets
      where a test sends them down all branches.
    - Leaves of declared categories that the node never met share one line, ``(no training rows)``: they predict what
      the node would.
    - Where the tree was grown with ``stopping``, every leaf says in brackets why it is one.
    - Thresholds of a feature that would all read ``0.00`` have digits instead: ``<= 1.25e-09``. So have the values of a
      tree of numbers.
    - ``<= 75.00 [70.00,80.16]`` is a soft threshold (`C45Classifier`): between the values in brackets, both branches
      have their say.
    - A leaf of several class outputs lists the class of each (scikit-learn prints a number without meaning), and a
      tree of one class prints that class.

    Parameters
    ----------
    decision_tree : estimator
        A fitted tree of this library.
    feature_names : array-like of str (n_features,), optional
        By default the names of a frame's columns, else ``feature_0``, ``feature_1`` and so on.
    class_names : array-like of str (n_classes,), optional
        Names in the order of ``classes_``, which is the default; for one output only.
    max_depth : int or None, default=10
        Tests below this depth are cut off, with the depth of what is missing; None shows all.
    spacing : int, default=3
        Columns by which each level is indented.
    decimals : int, default=2
        Decimals of thresholds, values and weights.
    show_weights : bool, default=False
        Whether leaves of classes show the weight of every class; a row that tests spread adds its share.
    show_missing : {"auto", True, False}, default="auto"
        Whether every test says where missing values and other categories go. "auto": if some test met a missing value
        or spread a category in training, or sends other categories down one branch. A test that tells missing from
        known values says so in any case.
    width : int or None, default=80
        Columns within which lists of categories are cut to keep lines, where names and depth allow; None shows all.

    Returns
    -------
    str
        Lines that end in a line feed.

    Raises
    ------
    ValueError
        If a parameter is out of range, or names do not fit the number of features or classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier, export_text
    >>> iris = load_iris()
    >>> model = DecisionTreeClassifier(max_depth=2).fit(iris.data, iris.target)
    >>> print(export_text(model, feature_names=iris.feature_names, class_names=iris.target_names))
    |--- petal length (cm) <= 2.45
    |   |--- class: setosa
    |--- petal length (cm) >  2.45
    |   |--- petal width (cm) <= 1.75
    |   |   |--- class: versicolor
    |   |--- petal width (cm) >  1.75
    |   |   |--- class: virginica
    """
    style = Style(max_depth, spacing, decimals, show_weights, show_missing, width=width)
    return tree_text(decision_tree, feature_names, class_names, style)


@dataclass(frozen=True, slots=True)
class Style:
    """How much of a tree is written, and how."""

    max_depth: int | None = 10
    spacing: int = 3
    decimals: int = 2
    show_weights: bool = False
    show_missing: bool | str = "auto"
    longest: int | None = None  # characters of a category, of which longer ones lose their middle
    width: int | None = LINE_WIDTH  # None: lists of categories are never cut

    def check(self) -> None:
        """Refuse numbers out of range."""
        limits = [("spacing", self.spacing, 1), ("decimals", self.decimals, 0)]
        limits += [] if self.max_depth is None else [("max_depth", self.max_depth, 0)]
        limits += [] if self.width is None else [("width", self.width, 1)]
        for name, number, least in limits:
            if not isinstance(number, Integral) or number < least:
                raise ValueError(f"{name}={number!r} must be a whole number of at least {least}")

    def number(self, value: float, largest: float = np.inf) -> str:
        """A number with its decimals; where the largest of its kind would be 0 with these, as many digits and one."""
        nothing = largest > 0 and float(f"{largest:.{self.decimals}f}") == 0
        return f"{value:.{self.decimals + 1}g}" if nothing else f"{value:.{self.decimals}f}"


def tree_text(model: Any, feature_names: Any, class_names: Any, style: Style) -> str:
    """What `export_text` returns, in any style."""
    require_tree(model)
    style.check()
    names = checked_names(model, feature_names, "feature_{}")
    largest = largest_thresholds(model.forest_, len(names))

    def threshold(value: float, feature: int) -> str:
        return style.number(value, float(largest[feature]))

    words = make_words(model, names, threshold, style.show_missing, style.longest)
    leaves = Leaves(model, checked_classes(model, class_names), style)
    return "".join(f"{line}\n" for line in lines(words, leaves, style))


def largest_thresholds(forest: Forest, n_features: int) -> NDArray[np.float64]:
    """The threshold of every feature that is farthest from 0, as a positive number (n_features,)."""
    largest = np.zeros(n_features)
    tests = np.flatnonzero((forest.kind == Test.THRESHOLD) & np.isfinite(forest.low))
    np.maximum.at(largest, forest.feature[tests], np.abs(forest.low[tests]))
    return largest


def fitting_decimals(model: Any, max_depth: int | None = None) -> int:
    """Decimals, 2 to 10, that leave the smallest threshold other than 0 at least three significant digits.

    Of a tree of numbers, the prediction farthest from 0 gets as many. Only nodes down to ``max_depth`` count.
    """
    require_tree(model)
    forest: Forest = model.forest_
    near = forest.depth <= (forest.max_depth if max_depth is None else max_depth)
    low = np.abs(forest.low[near & (forest.kind == Test.THRESHOLD)])
    least = [low[(low > 0) & np.isfinite(low)].min(initial=np.inf)]
    least += [] if is_classifier(model) else [np.abs(forest.value).max() or np.inf]
    smallest = min(least)
    return int(np.clip(2 - np.floor(np.log10(smallest)), 2, 10)) if np.isfinite(smallest) else 2


def lines(words: Words, leaves: Leaves, style: Style) -> Iterator[str]:
    """The lines of a tree in preorder; a stack of branches to write and nodes to open, so depth costs no recursion."""
    forest = words.forest
    max_depth = forest.max_depth if style.max_depth is None else int(style.max_depth)
    below = heights(forest) if forest.max_depth > max_depth else None
    spacing = int(style.spacing)
    todo: list[tuple[int, int, Branch | None]] = [(1, int(forest.roots[0]), None)]
    while todo:
        level, node, branch = todo.pop()
        indent = (("|" + " " * spacing) * level)[:-spacing] + "-" * spacing
        if branch is not None:
            yield branch_line(words.name(node), branch, indent, style.width)
        elif forest.kind[node] == Test.LEAF:
            yield f"{indent} {leaves.text(node)}{leaves.reason(node)}"
        elif level > max_depth + 1 and below is not None:
            yield f"{indent} truncated branch of depth {below[node] + 1}"
        else:
            for own in reversed(words.branches(node)):
                todo += [(level + 1, own.child, None), (level, node, own)]


def branch_line(name: str, branch: Branch, indent: str, width: int | None) -> str:
    """One branch of a test; a list of categories takes what is left of the line, but never less than is readable."""
    if width is None or not branch.values:
        return f"{indent} {name} {branch.text(None)}"
    taken = len(f"{indent} {name} {branch.text(0)}") - len(cut_words(branch.values, 0))
    room = min(width - taken, width - LINE_WIDTH + LIST_WIDTH)
    return f"{indent} {name} {branch.text(max(NARROWEST, room))}"


def heights(forest: Forest) -> list[int]:
    """Levels below every node; children follow their parents, so one pass from the last node suffices."""
    height = [0] * forest.n_nodes
    parent = forest.parent.tolist()
    for node in range(forest.n_nodes - 1, -1, -1):
        if parent[node] >= 0:
            height[parent[node]] = max(height[parent[node]], height[node] + 1)
    return height


class Leaves:
    """The texts of leaves."""

    def __init__(self, model: Any, classes: list[list[str]] | None, style: Style) -> None:
        self.classes, self.style = classes, style
        self.value: NDArray[np.float64] = model._values
        self.largest: list[float] = np.abs(self.value).max(axis=0).tolist()
        self.reasons = None if getattr(model, "stopping", None) is None else model.stop_reason_
        self.weight = model.layout_.weight(model.forest_.stats.T) * model.weight_unit_

    def reason(self, node: int) -> str:
        """Why it is a leaf, where the model knows."""
        return "" if self.reasons is None else f" ({self.reasons[node]})"

    def text(self, node: int) -> str:
        """What a leaf predicts."""
        if self.classes is None:
            texts = map(self.style.number, self.value[node].tolist(), self.largest)
            return f"value: [{', '.join(texts)}]"
        stops = np.cumsum([len(names) for names in self.classes])
        shares = np.split(self.value[node], stops[:-1])
        weights = [self.numbers(np.nan_to_num(share * self.weight[node])) for share in shares]
        labels = [likeliest(names, share) for names, share in zip(self.classes, shares, strict=True)]
        label = f"class: {listed(labels)}"
        return f"weights: {listed(weights)} {label}" if self.style.show_weights else label

    def numbers(self, values: NDArray[np.float64]) -> str:
        """Numbers in brackets."""
        return "[" + ", ".join(self.style.number(value) for value in values) + "]"
