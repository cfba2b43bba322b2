"""A tree as text, one line a branch and a leaf, in scikit-learn's format. May import everything below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from gputree.core.forest import Forest, Node, Test
from gputree.core.schema import Kind, Schema

LIST_WIDTH = 60  # characters that a list of categories may take before the rest is counted


def export_text(
    decision_tree: Any,
    *,
    feature_names: Any = None,
    class_names: Any = None,
    max_depth: int | None = 10,
    spacing: int = 3,
    decimals: int = 2,
    show_weights: bool = False,
) -> str:
    """Write the rules of a tree as text.

    The text of a tree of numeric tests that met no missing value is, character for character, that of
    `sklearn.tree.export_text` for the same tree. Beyond it:

    - A test of categories has one line a branch, with the categories that take it. ``(or other)`` marks the branch of
      every category that the node never met; those without a training row are counted in one line.
    - In such a tree, and where a test proves that missing values were met in training, every test says which branch
      they take, by ``(or missing)`` or a line of its own.
    - A leaf of several class outputs lists the class of each (scikit-learn prints a number without meaning), and a
      tree of one class prints that class.

    Parameters
    ----------
    decision_tree : estimator
        A fitted tree of this library.
    feature_names : array-like of str (n_features,), optional
        By default ``feature_0``, ``feature_1`` and so on, or the names of the columns if some hold categories.
    class_names : array-like of str (n_classes,), optional
        Names in the order of ``classes_``, which is the default; for one output only.
    max_depth : int or None, default=10
        Tests below this depth are cut off, with the depth of what is missing; None shows all.
    spacing : int, default=3
        Columns by which each level is indented.
    decimals : int, default=2
        Decimals of thresholds, values and weights.
    show_weights : bool, default=False
        Whether leaves of classes show the weight of every class.

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
    style = Style(max_depth, spacing, decimals, show_weights)
    return tree_text(decision_tree, feature_names, class_names, style)


@dataclass(frozen=True, slots=True)
class Style:
    """How much of a tree is written, and how."""

    max_depth: int | None = 10
    spacing: int = 3
    decimals: int = 2
    show_weights: bool = False
    longest: int | None = None  # characters of a category, of which longer ones lose their middle

    def check(self) -> None:
        """Refuse numbers out of range."""
        limits = [("spacing", self.spacing, 1), ("decimals", self.decimals, 0)]
        limits += [] if self.max_depth is None else [("max_depth", self.max_depth, 0)]
        for name, number, least in limits:
            if not isinstance(number, Integral) or number < least:
                raise ValueError(f"{name}={number!r} must be a whole number of at least {least}")


def tree_text(model: Any, feature_names: Any, class_names: Any, style: Style) -> str:
    """What `export_text` returns, in any style."""
    check_is_fitted(model)
    style.check()
    forest = model.forest_
    names = checked_feature_names(model.schema_, feature_names)
    tests = Tests(forest, model.schema_, names, style, shows_missing(model))
    leaves = Leaves(model, checked_classes(model, class_names), style)
    depth = forest.max_depth if style.max_depth is None else int(style.max_depth)
    return "".join(f"{line}\n" for line in lines(tests, leaves, depth, int(style.spacing)))


def fitting_decimals(model: Any, max_depth: int | None = None) -> int:
    """Decimals, 2 to 10, that leave the smallest threshold other than 0 at least three significant digits.

    Of a tree of numbers, the prediction farthest from 0 gets as many. Only nodes down to ``max_depth`` count.
    """
    check_is_fitted(model)
    forest: Forest = model.forest_
    near = forest.depth <= (forest.max_depth if max_depth is None else max_depth)
    low = np.abs(forest.low[near & (forest.kind == Test.THRESHOLD)])
    least = [low[(low > 0) & np.isfinite(low)].min(initial=np.inf)]
    least += [] if is_classifier(model) else [np.abs(forest.value).max() or np.inf]
    smallest = min(least)
    return int(np.clip(2 - np.floor(np.log10(smallest)), 2, 10)) if np.isfinite(smallest) else 2


def lines(tests: Tests, leaves: Leaves, max_depth: int, spacing: int) -> Iterator[str]:
    """The lines of a tree in preorder; a stack of lines to write and nodes to open, so depth costs no recursion."""
    forest = tests.forest
    below = heights(forest) if forest.max_depth > max_depth else None
    todo: list[tuple[int, int | str]] = [(1, int(forest.roots[0]))]
    while todo:
        level, item = todo.pop()
        indent = (("|" + " " * spacing) * level)[:-spacing] + "-" * spacing
        if isinstance(item, str):
            yield f"{indent} {item}"
        elif forest.kind[item] == Test.LEAF:
            yield f"{indent} {leaves.text(item)}"
        elif level > max_depth + 1 and below is not None:
            yield f"{indent} truncated branch of depth {below[item] + 1}"
        else:
            for text, child in reversed(tests.branches(forest.node(item))):
                todo.extend([(level + 1, child)] if child is not None else [])
                todo.append((level, text))


def heights(forest: Forest) -> list[int]:
    """Levels below every node; children follow their parents, so one pass from the last node suffices."""
    height = [0] * forest.n_nodes
    parent = forest.parent.tolist()
    for node in range(forest.n_nodes - 1, -1, -1):
        if parent[node] >= 0:
            height[parent[node]] = max(height[parent[node]], height[node] + 1)
    return height


def shows_missing(model: Any) -> bool:
    """Whether to say where missing values go: beside tests of categories, or where a test proves that some were met.

    A forest keeps no mark of its own. A threshold that met none sends them to the child with more rows, right when
    equal; one that asks for them, or sends them elsewhere, is a proof. A numeric tree that met some and sent all of
    them there cannot be told from a tree that met none.
    """
    forest: Forest = model.forest_
    if (forest.kind == Test.LOOKUP).any():
        return True
    rows = model.layout_.count(forest.stats.T)
    at = np.flatnonzero(forest.kind == Test.THRESHOLD)
    first = forest.first_child[at]
    usual = rows[first] <= rows[first + 1]
    return bool(((forest.low[at] == np.inf) | (forest.missing[at] != usual)).any())


Branch = tuple[str, int | None]  # a line, and the child that it opens


@dataclass(frozen=True, slots=True)
class Tests:
    """The texts of the branches of tests."""

    forest: Forest
    schema: Schema
    names: Sequence[str]
    style: Style
    missing: bool  # whether numeric tests say where missing values go

    def branches(self, node: Node) -> list[Branch]:
        """The lines under a test, in branch order."""
        kind = self.forest.kind[node.id]
        return self.lookup(node) if kind == Test.LOOKUP else self.threshold(node)

    def threshold(self, node: Node) -> list[Branch]:
        """Two lines; sklearn pads ``>`` with a blank."""
        name, low = self.names[node.feature], self.forest.low[node.id]
        missing = int(self.forest.missing[node.id])
        if low == np.inf and missing == 1:
            return [(f"{name} is known", node.children[0]), (f"{name} is missing", node.children[1])]
        texts = [f"{name} {sign} {low:.{self.style.decimals}f}" for sign in ("<=", "> ")]
        if self.missing:
            texts[missing] += " (or missing)"
        return list(zip(texts, node.children, strict=True))

    def lookup(self, node: Node) -> list[Branch]:
        """A line a branch that met rows, and one that counts the others."""
        name, categories = self.names[node.feature], self.schema.features[node.feature].categories
        codes, branch_of = node.lookup
        order = np.argsort(branch_of, kind="stable")
        groups = np.split(codes[order], np.searchsorted(branch_of[order], np.arange(1, len(node.children))))
        missing, unseen = int(self.forest.missing[node.id]), int(self.forest.unseen[node.id])
        found = []
        for branch, (child, own_codes) in enumerate(zip(node.children, groups, strict=True)):
            met = self.readable([categories[code - 1] for code in own_codes])
            if met or branch in (missing, unseen):
                own = [f"{name} {category_text(met)}"] if met else []
                own += ["or missing" if own else f"{name} is missing"] if branch == missing else []
                own += ["or other" if own else f"{name} is any other"] if branch == unseen else []
                marks = ", ".join(own[1:])
                found.append((own[0] + (f" ({marks})" if marks else ""), child))
        absent = np.setdiff1d(np.arange(1, len(categories) + 1), codes)
        return [*found, *self.absent(name, self.readable([categories[code - 1] for code in absent]))]

    def absent(self, name: str, texts: list[str]) -> list[Branch]:
        """One line for the categories that the node never met."""
        if not texts:
            return []
        what = category_text(texts) if len(texts) == 1 else f"is one of {len(texts)} more"
        return [(f"{name} {what}: no training rows, goes with (or other)", None)]

    def readable(self, categories: list[Any]) -> list[str]:
        """Categories as text."""
        longest = self.style.longest
        return [readable(str(c) if longest is None else shortened(str(c), longest)) for c in categories]


def category_text(texts: list[str]) -> str:
    """``= red``, or ``in {red, green, ... 37 more}`` for several."""
    if len(texts) == 1:
        return f"= {texts[0]}"
    width = np.cumsum([len(text) + 2 for text in texts])
    shown = max(1, int(np.searchsorted(width, LIST_WIDTH, side="right")))
    left = len(texts) - shown
    return "in {" + ", ".join(texts[:shown]) + (f", ... {left} more" if left else "") + "}"


def readable(text: str) -> str:
    """A category as it is, or quoted where it is empty or its text could be misread."""
    plain = text.isprintable() and text == text.strip() and not set(text) & set(",{}()'\"")
    return text if plain and text else repr(text)


def shortened(text: str, width: int) -> str:
    """A text with its middle cut out: names differ at their ends as often as at their beginnings."""
    return text if len(text) <= width else f"{text[: (width - 2) // 2]}...{text[len(text) - (width - 3) // 2 :]}"


class Leaves:
    """The texts of leaves."""

    def __init__(self, model: Any, classes: list[Sequence[Any]] | None, style: Style) -> None:
        self.classes, self.style = classes, style
        self.value: NDArray[np.float64] = model.forest_.value
        self.weight = model.layout_.weight(model.forest_.stats.T) * model.weight_unit_

    def text(self, node: int) -> str:
        """What a leaf predicts."""
        if self.classes is None:
            return f"value: {self.numbers(self.value[node])}"
        stops = np.cumsum([len(names) for names in self.classes])
        shares = np.split(self.value[node], stops[:-1])
        weights = [self.numbers(share * self.weight[node]) for share in shares]
        labels = [str(names[int(share.argmax())]) for names, share in zip(self.classes, shares, strict=True)]
        label = f"class: {listed(labels)}"
        return f"weights: {listed(weights)} {label}" if self.style.show_weights else label

    def numbers(self, values: NDArray[np.float64]) -> str:
        """Numbers in brackets."""
        return "[" + ", ".join(f"{value:.{self.style.decimals}f}" for value in values) + "]"


def listed(texts: list[str]) -> str:
    """One text as it is, several in brackets."""
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def checked_feature_names(schema: Schema, given: Any) -> Sequence[str]:
    """A name for every feature; sklearn uses no names of columns, but categories alone would say too little."""
    if given is None:
        own = (schema.kinds == Kind.CATEGORICAL).any()
        return schema.names if own else [f"feature_{i}" for i in range(schema.n_features)]
    names = [str(name) for name in given]
    if len(names) != schema.n_features:
        raise ValueError(f"feature_names must contain {schema.n_features} elements, got {len(names)}")
    return names


def checked_classes(model: Any, given: Any) -> list[Sequence[Any]] | None:
    """Names of the classes of every output; None for numbers."""
    if not is_classifier(model):
        return None
    own = model.classes_ if isinstance(model.classes_, list) else [model.classes_]
    if given is None:
        return own
    if len(own) > 1:
        raise ValueError(f"class_names name the classes of one output, and this tree has {len(own)}; leave them out")
    if len(given) != len(own[0]):
        raise ValueError(f"class_names must contain {len(own[0])} elements, one for each class, got {len(given)}")
    return [list(given)]
