"""A tree as HTML that folds, for notebooks: one piece, no scripts, nothing fetched. May import everything below."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import accumulate
from typing import Any

from gputree.inspect.boxes import MOST_NUMBERS, Boxes, Look, counted, hex_colour
from gputree.inspect.outline import Item, Limits, Outline
from gputree.inspect.words import cut_words, require_tree

MOST_LINES, WIDEST, DEEPEST = 400, 60, 60  # lines in all, branches of a test, and levels, which browsers bound too
LONGEST = 40  # characters of a name or category
LISTED, TOOLTIP = 50, 400  # characters of a list of categories in its line, and in the tooltip if it is cut there
ALL_OPEN, LEVELS_OPEN = 30, 3  # lines up to which a tree is unfolded; of larger ones, the first levels
STYLE = """
.gputree{font:13px/1.5 sans-serif;overflow-x:auto;white-space:nowrap;padding:4px 0}
.gputree details,.gputree .leaf{margin-left:1.3em}
.gputree summary{cursor:pointer;margin-left:-1.1em}
.gputree code{font-size:12px;background:none;color:inherit;padding:0}
.gputree i{display:inline-block;width:60px;height:.7em;margin:0 .5em;border:1px solid #8888}
.gputree i{background-origin:border-box}
.gputree .key i{width:.7em;margin:0 .3em 0 .8em}
.gputree small{opacity:.7;margin:0 .5em}
""".replace("\n", "")


def tree_html(model: Any, *, feature_names: Any = None, class_names: Any = None) -> str:
    """Write a tree as HTML: a line a node in the words of `export_text`, tests fold and unfold.

    A line says how one comes to its node, how many training rows did, and what the node predicts; a bar shows the
    shares of the classes, or where a number lies between the least and the greatest of the tree. The text is complete
    in itself: no script, no file, nothing from a network. Of a tree with more than 400 lines the nodes that most rows
    pass are written, and the others counted where they are left out.

    Parameters
    ----------
    model : estimator
        A fitted tree of this library.
    feature_names : array-like of str (n_features,), optional
        By default the names of a frame's columns, else ``x[0]``, ``x[1]`` and so on.
    class_names : array-like of str (n_classes,), optional
        Names in the order of ``classes_``, which is the default; for one output only.

    Returns
    -------
    str
        One ``div`` element.

    Raises
    ------
    ValueError
        If names do not fit the number of features or classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.inspect.html import tree_html
    >>> X, y = load_iris(return_X_y=True)
    >>> text = tree_html(DecisionTreeClassifier(max_depth=1).fit(X, y))
    >>> "<code>x[2] &lt;= 2.45</code>" in text
    True
    """
    require_tree(model)
    boxes = Boxes(model, feature_names, class_names, Look(longest=LONGEST))
    items = Outline(boxes.words, boxes.weight, Limits(DEEPEST, MOST_LINES, WIDEST)).items()
    parts = [f'<div class="gputree"><style>{STYLE}</style>', head(model, items), key(boxes), *body(boxes, items)]
    return "".join([*parts, "</div>"])


def head(model: Any, items: list[Item]) -> str:
    """What the tree is, how large, and how much of it is left out."""
    forest = model.forest_
    sizes = [counted(forest.n_nodes, "node", "nodes"), counted(forest.n_leaves, "leaf", "leaves")]
    hidden = sum(item.hidden for item in items)
    left_out = f"; {hidden:,} of them are counted but not shown" if hidden else ""
    return f"<div><b>{type(model).__name__}</b>: {', '.join(sizes)}, depth {forest.max_depth}{left_out}</div>"


def key(boxes: Boxes) -> str:
    """Which colour is which class."""
    if len(boxes.sizes) != 1 or boxes.sizes[0] > MOST_NUMBERS:
        return ""
    (labels,) = boxes.classes or [[]]
    colours = (f'<i style="background:{class_colour(boxes, c)}"></i>{escape(label)}' for c, label in enumerate(labels))
    return f'<div class="key">{"".join(colours)}</div>'


def body(boxes: Boxes, items: list[Item]) -> Iterator[str]:
    """The lines in preorder; a test is closed where the next line is not below it."""
    inner = {item.parent for item in items}
    unfolded = len(items) <= ALL_OPEN
    open_: list[int] = []
    for place, item in enumerate(items):
        while open_ and open_[-1] != item.parent:
            open_.pop()
            yield "</details>"
        text = line(boxes, item)
        if place in inner:
            start = "<details open>" if unfolded or len(open_) < LEVELS_OPEN else "<details>"
            yield f"{start}<summary>{text}</summary>"
            open_.append(place)
        else:
            yield f'<div class="leaf">{text}</div>'
    yield "</details>" * len(open_)


def line(boxes: Boxes, item: Item) -> str:
    """The way to a node, its rows, its prediction, and what is left out below it."""
    more = f"<small>+ {counted(item.hidden, 'node', 'nodes')}</small>" if item.hidden else ""
    if item.branches:
        return f"<code>+ {counted(item.branches, 'branch', 'branches')}</code>{more}"
    rows = "" if item.empty else f"<small>{counted(int(boxes.rows[item.node]), 'row', 'rows')}</small>"
    return f"{way(boxes, item)}{bar(boxes, item.node)}{prediction(boxes, item.node)}{rows}{more}"


def way(boxes: Boxes, item: Item) -> str:
    """How one comes to a node, in words; where a list of categories is cut, a tooltip has more of it."""
    if item.branch is None:
        return "<code>all rows</code>"
    parent = int(boxes.words.forest.parent[item.node])
    values = item.branch.values
    cut = cut_words(values, LISTED) != cut_words(values, None)
    title = f' title="{escape(cut_words(values, TOOLTIP))}"' if cut else ""
    return f"<code{title}>{escape(f'{boxes.words.name(parent)} {item.branch.text(LISTED)}')}</code>"


def prediction(boxes: Boxes, node: int) -> str:
    """The class of a node with its share, or its number."""
    (_, text), *_ = boxes.prediction(node)
    largest = float(boxes.value[node].max())
    share = f" {100 * largest:.0f}%" if len(boxes.sizes) == 1 and largest == largest else ""
    return f"<b>{escape(text)}</b>{share}"


def bar(boxes: Boxes, node: int) -> str:
    """Shares of the classes one after another, of many that of the first; or how large a number is."""
    value = boxes.value[node]
    if len(boxes.sizes) == 1:
        shown = range(value.size) if value.size <= MOST_NUMBERS else [int(value.argmax())]
        return gradient([(class_colour(boxes, c), float(value[c])) for c in shown if value[c] > 0])
    if boxes.sizes or value.size > 1:
        return " "  # several outputs: one bar would say too little
    return gradient([(hex_colour(0.0, 1.0), boxes.strength(node))])


def gradient(parts: list[tuple[str, float]]) -> str:
    """A bar of colours, each with its share of the length."""
    ends = accumulate(share for _, share in parts)
    stops = [f"{colour} 0 {100 * end:.0f}%" for (colour, _), end in zip(parts, ends, strict=True)]
    return f'<i style="background-image:linear-gradient(90deg,{",".join([*stops, "transparent 0"])})"></i>'


def class_colour(boxes: Boxes, number: int) -> str:
    """The colour of a class of a tree with one output."""
    return hex_colour(number / boxes.sizes[0], 1.0)
