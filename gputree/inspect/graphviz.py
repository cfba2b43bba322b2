"""A tree in the DOT language of Graphviz. May import everything below."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from gputree.inspect.boxes import Boxes, Look, answer_lines, check_depth
from gputree.inspect.outline import Item, Limits, Outline

AT_MOST = re.compile(r" &lt;= (?=\S+$)")  # the sign of a test, which a number follows
NO_TEST = -1


def export_graphviz(
    decision_tree: Any,
    out_file: Any = None,
    *,
    max_depth: int | None = None,
    feature_names: Any = None,
    class_names: Any = None,
    label: str = "all",
    filled: bool = False,
    leaves_parallel: bool = False,
    impurity: bool = True,
    node_ids: bool = False,
    proportion: bool = False,
    rotate: bool = False,
    rounded: bool = False,
    special_characters: bool = False,
    precision: int = 3,
    fontname: str = "helvetica",
) -> str | None:
    r"""Write a tree in the DOT language, which ``dot -Tsvg tree.dot -o tree.svg`` turns into a picture.

    A box asks, the edges below it answer, as in `plot_tree`; names may hold any characters. Nothing is left out but
    what ``max_depth`` says; a box then tells how many nodes are below it. Lists of categories are cut with a count.

    Parameters
    ----------
    decision_tree : estimator
        A fitted tree of this library.
    out_file : str, path or file, optional
        Where to write; by default the text is returned.
    max_depth : int, optional
        Tests below this depth are left out, 0 shows the root's.
    feature_names : array-like of str (n_features,), optional
        By default the names of a frame's columns, else ``x[0]``, ``x[1]`` and so on.
    class_names : array-like of str (n_classes,) or bool, optional
        Names in the order of ``classes_``, which is the default; for one output only. True shows ``y[0]``, ``y[1]``
        and so on, False no class.
    label : {"all", "root", "none"}, default="all"
        Which boxes say what their numbers are.
    filled : bool, default=False
        Whether colours show the class and its majority, the size of a number, or the purity of several outputs.
    leaves_parallel : bool, default=False
        Whether all leaves stand at the bottom.
    impurity : bool, default=True
        Whether boxes show the impurity.
    node_ids : bool, default=False
        Whether boxes show the number of the node, which is that of ``apply`` and names the node in any case.
    proportion : bool, default=False
        Whether samples and classes are shown as shares.
    rotate : bool, default=False
        Whether the tree grows to the right instead of down.
    rounded : bool, default=False
        Whether boxes have round corners.
    special_characters : bool, default=False
        Whether labels are HTML, with a sign for "at most" in place of ``<=``.
    precision : int, default=3
        Decimals of numbers; a small threshold keeps as many digits.
    fontname : str, default="helvetica"
        Font of all texts.

    Returns
    -------
    str or None
        The text, None if it was written to ``out_file``.

    Raises
    ------
    ValueError
        If a parameter is out of range, or names do not fit the number of features or classes.
    TypeError
        If ``out_file`` is neither a path nor a file.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier, export_graphviz
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=1).fit(X, y)
    >>> print(export_graphviz(model, impurity=False))
    digraph Tree {
    node [shape=box, fontname="helvetica"] ;
    edge [fontname="helvetica"] ;
    0 [label="x[2] <= 2.45\nsamples = 150\nvalue = [50, 50, 50]\nclass = 0"] ;
    1 [label="samples = 50\nvalue = [50, 0, 0]\nclass = 0"] ;
    0 -> 1 [label="True"] ;
    2 [label="samples = 100\nvalue = [0, 50, 50]\nclass = 1"] ;
    0 -> 2 [label="False"] ;
    }
    """
    check_depth(max_depth)
    boxes = Boxes(decision_tree, feature_names, class_names, Look(label, impurity, node_ids, proportion, precision))
    page = Page(filled, rounded, rotate, leaves_parallel, special_characters, fontname)
    items = Outline(boxes.words, boxes.weight, Limits(max_depth)).items()
    return write("\n".join(["digraph Tree {", *page.head(), *page.body(boxes, items), "}"]), out_file)


@dataclass(frozen=True, slots=True)
class Page:
    """How the boxes of a tree are written."""

    filled: bool
    rounded: bool
    rotate: bool
    leaves_parallel: bool
    special_characters: bool
    fontname: str

    def head(self) -> Iterator[str]:
        """What holds for all boxes and edges."""
        style = ", ".join(["filled"] * bool(self.filled) + ["rounded"] * bool(self.rounded))
        font = f"fontname={quoted(self.fontname)}"
        style = f'style="{style}", color="black", ' if style else ""
        yield f"node [shape=box, {style}{font}] ;"
        if self.leaves_parallel:
            yield "graph [ranksep=equally, splines=polyline] ;"
        yield f"edge [{font}] ;"
        if self.rotate:
            yield "rankdir=LR ;"

    def body(self, boxes: Boxes, items: list[Item]) -> Iterator[str]:
        """A statement for every box, and for the edge that leads to it."""
        for item in items:
            fill = f', fillcolor="{boxes.colour(item)}"' if self.filled else ""
            yield f"{item.node} [label={self.text(boxes.lines(item))}{fill}] ;"
            if item.parent >= 0:
                answer = self.text(answer_lines(item.branch))
                yield f"{items[item.parent].node} -> {item.node} [label={answer}] ;"
        if self.leaves_parallel:
            yield from ranks(boxes, items)

    def text(self, lines: list[str]) -> str:
        """A label: a string in quotes, or HTML."""
        if self.special_characters:
            return "<" + "<br/>".join(AT_MOST.sub(" &le; ", escape(line, quote=False)) for line in lines) + ">"
        return quoted("\n".join(lines))


def quoted(text: str) -> str:
    """A string of DOT that shows just this text: Graphviz reads escapes in it, and HTML's names of characters."""
    for character, code in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("&", "&amp;")):
        text = text.replace(character, code)
    return f'"{text}"'


def ranks(boxes: Boxes, items: list[Item]) -> Iterator[str]:
    """Statements that put the tests of a depth on one level, and all leaves on another."""
    depth = boxes.words.forest.depth
    inner = {item.parent for item in items}
    level: dict[int, list[int]] = {}
    for place, item in enumerate(items):
        level.setdefault(int(depth[item.node]) if place in inner else NO_TEST, []).append(item.node)
    for key in sorted(level):
        yield f"{{rank=same ; {'; '.join(map(str, level[key]))}}} ;"


def write(text: str, out_file: Any) -> str | None:
    """Give the text back, or write it to a path or file."""
    if out_file is None:
        return text
    if isinstance(out_file, str | os.PathLike):
        with open(out_file, "w", encoding="utf-8") as file:
            file.write(text)
    elif hasattr(out_file, "write"):
        out_file.write(text)
    else:
        raise TypeError(f"out_file={out_file!r} must be None, a path, or a file that text can be written to")
    return None
