"""A tree as a picture of matplotlib. May import everything below; matplotlib inside functions only."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from gputree.core.forest import Forest
from gputree.core.warned import warn
from gputree.inspect.boxes import HIDDEN, Boxes, Look, check_depth
from gputree.inspect.outline import Limits
from gputree.inspect.sketch import LABEL, PAD, Sketch, make_sketch

LONGEST = 30  # characters of a name or category
MOST_BOXES, MOST_AT_ALL = 400, 2000  # by default, and where the size of the text is given
WIDEST = 50  # branches of one test
SMALLEST, USUAL = 7.0, 9.0  # points of text in a figure of its own
SMALLEST_GIVEN, LARGEST_GIVEN = 3.0, 12.0  # in given axes
ROOM = (40.0, 30.0)  # inches that a figure of its own may take
LEAST_FIGURE = (2.5, 1.0)
MOST_PIXELS = 65_000  # what matplotlib can paint, less a little


def plot_tree(
    decision_tree: Any,
    *,
    max_depth: int | None = None,
    feature_names: Any = None,
    class_names: Any = None,
    label: str = "all",
    filled: bool = False,
    impurity: bool = True,
    node_ids: bool = False,
    proportion: bool = False,
    rounded: bool = False,
    precision: int = 3,
    ax: Any = None,
    fontsize: Any = None,
) -> list[Any]:
    """Draw a tree with matplotlib.

    A box asks, the edges below it answer: ``True`` and ``False`` to a threshold, the categories of the branch to a
    test of categories, with ``or missing`` and ``or other`` where missing values and categories that the test does not
    list go, or ``38.5% of missing`` where all branches take their share, and two numbers in brackets bound a soft
    threshold, as in `export_text`. Names and lists that are
    too long are cut; many leaves of one test hang in columns. Where not all nodes have room, those that most training
    rows pass are drawn, a box with others below it says how many, as in ``+ 127 nodes``, and a warning says how many in
    all. ``samples`` counts the training rows that come to a node; a row that a test sends down all of its branches
    counts whole in each of them, and in ``value`` with its share.

    Parameters
    ----------
    decision_tree : estimator
        A fitted tree of this library.
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
    impurity : bool, default=True
        Whether boxes show the impurity.
    node_ids : bool, default=False
        Whether boxes show the number of the node, which is that of ``apply``.
    proportion : bool, default=False
        Whether samples and classes are shown as shares.
    rounded : bool, default=False
        Whether boxes have round corners.
    precision : int, default=3
        Decimals of numbers; a small threshold keeps as many digits.
    ax : matplotlib Axes, optional
        Where to draw, with text of about 3 points or more; what was there is removed. By default the axes or figure
        that were just made and are still empty, else a new figure of fitting size, with text of about 7 points or more.
    fontsize : float, optional
        Points of the text, with which a figure of its own may be as large as it must and all of up to 2,000 boxes are
        drawn. By default what fits.

    Returns
    -------
    list of matplotlib Annotation
        The boxes, parents before children, then the texts beside edges.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If a parameter is out of range, or names do not fit the number of features or classes.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier, plot_tree
    >>> iris = load_iris()
    >>> model = DecisionTreeClassifier(max_depth=2).fit(iris.data, iris.target)
    >>> drawn = plot_tree(model, feature_names=iris.feature_names, class_names=iris.target_names, impurity=False)
    >>> print(drawn[0].get_text())
    petal length (cm) <= 2.45
    samples = 150
    value = [50, 50, 50]
    class = setosa
    """
    check_depth(max_depth)
    if fontsize is not None and not (isinstance(fontsize, Real) and 0 < float(fontsize) < np.inf):
        raise ValueError(f"fontsize={fontsize!r} must be None or a positive number of points")
    look = Look(label, impurity, node_ids, proportion, precision, LONGEST)
    boxes = Boxes(decision_tree, feature_names, class_names, look)
    paper = Paper.of(ax, None if fontsize is None else float(fontsize))
    sketch, size = paper.fit(boxes, max_depth)
    paper.prepare(sketch, size)
    fills = [boxes.colour(item) for item in sketch.items] if filled else []
    return draw(sketch, paper.ax, size, fills, "round" if rounded else "square")


class Ruler:
    """Measures text in multiples of its size; the same text is measured once."""

    def __init__(self, figure: Any, size: float) -> None:
        from matplotlib.text import Text

        self.text = Text(fontsize=size, parse_math=False, usetex=False)
        self.text.set_figure(figure)
        self.unit = size * figure.dpi / 72
        self.known: dict[str, tuple[float, float]] = {}

    def __call__(self, text: str) -> tuple[float, float]:
        """Width and height."""
        if text not in self.known:
            self.text.set_text(text)
            extent = self.text.get_window_extent()
            self.known[text] = extent.width / self.unit, extent.height / self.unit
        return self.known[text]


@dataclass(frozen=True, slots=True)
class Paper:
    """Axes to draw in, the points that they offer, and how large text may be there."""

    ax: Any
    own: bool  # whether the figure is ours, to be made as large as the drawing
    room: tuple[float, float]
    sizes: tuple[float, float]  # least and greatest size of text
    most: int  # boxes

    @classmethod
    def of(cls, ax: Any, fontsize: float | None) -> Paper:
        """The axes given, else those just made by the user, else a figure of our own."""
        plt = pyplot()
        ax = empty_axes(plt) if ax is None else ax
        own = ax is None
        most = MOST_BOXES if fontsize is None else MOST_AT_ALL
        if own:
            figure = plt.figure()
            ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
            widest = MOST_PIXELS / figure.dpi
            width, height = (widest, widest) if fontsize is not None else (min(side, widest) for side in ROOM)
            sizes = SMALLEST, USUAL
        else:
            extent, dpi = ax.get_window_extent(), whole_figure(ax).dpi
            width, height = extent.width / dpi, extent.height / dpi
            sizes = SMALLEST_GIVEN, LARGEST_GIVEN
        return cls(ax, own, (72 * width, 72 * height), sizes if fontsize is None else (fontsize, fontsize), most)

    def fit(self, boxes: Boxes, max_depth: int | None) -> tuple[Sketch, float]:
        """The largest drawing whose text is readable here, and the size of the text."""
        most, (least, greatest) = self.most, self.sizes
        ruler = Ruler(whole_figure(self.ax), greatest)
        while True:
            limits = Limits(max_depth, most, min(WIDEST, most))
            sketch = make_sketch(boxes, limits, ruler)
            size = min(greatest, self.largest(sketch))
            if size >= least or most <= 2:
                break
            most = max(2, int(len(sketch.items) * np.clip(size / least, 0.5, 0.9)))
        self.warn_of(boxes.words.forest, sketch, max_depth)
        # Small letters are painted in whole pixels, so they take other shares of their size.
        sketch = make_sketch(boxes, limits, Ruler(whole_figure(self.ax), size))
        return sketch, min(size, self.largest(sketch))

    def warn_of(self, forest: Forest, sketch: Sketch, max_depth: int | None) -> None:
        """Say how many nodes have no room; those below ``max_depth`` are left out by wish."""
        deepest = forest.max_depth if max_depth is None else max_depth
        wanted = int(np.count_nonzero(forest.depth <= deepest))
        left = wanted - sum(item.nodes for item in sketch.items)
        if left:
            fixed = self.sizes[0] == self.sizes[1]
            ways = "larger axes, a smaller fontsize" if not self.own else "" if fixed else "a fontsize"
            less = "a max_depth" if max_depth is None else "a smaller max_depth"
            warn(
                f"{left:,} of {wanted:,} nodes have no room and are left out, as dashed boxes say; give "
                f"{ways + ' or ' if ways else ''}{less}, or write all by export_graphviz",
            )

    def largest(self, sketch: Sketch) -> float:
        """The size of text at which a drawing fills the room."""
        return min(space / need for space, need in zip(self.room, sketch.size, strict=True))

    def prepare(self, sketch: Sketch, size: float) -> None:
        """Clear the axes and let one unit be the size of the text, the drawing in the middle."""
        room = np.array(self.room)
        if self.own:
            inches = np.maximum(np.array(sketch.size) * size / 72, LEAST_FIGURE)
            self.ax.figure.set_size_inches(*inches)
            room = 72 * inches
        self.ax.clear()
        self.ax.set_axis_off()
        spare = (room / size - sketch.size) / 2
        self.ax.set_xlim(-spare[0], sketch.size[0] + spare[0])
        self.ax.set_ylim(sketch.size[1] + spare[1], -spare[1])


def pyplot(name: str = "plot_tree") -> Any:
    """matplotlib.pyplot, or what to do to have it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{name} needs matplotlib, which cannot be imported ({error}); run `pip install matplotlib`"
        ) from error
    return plt


def whole_figure(ax: Any) -> Any:
    """The figure of axes, be they in a part of it."""
    return ax.figure.canvas.figure


def axes_for(ax: Any, name: str) -> Any:
    """The axes given, else those just made by the user and still empty, else those of a new figure."""
    plt = pyplot(name)
    ax = empty_axes(plt) if ax is None else ax
    return plt.figure().gca() if ax is None else ax


def empty_axes(plt: Any) -> Any:
    """The current axes if nothing has been drawn there yet, or axes for a figure without any; None if in use."""
    if not plt.get_fignums():
        return None
    figure = plt.gcf()
    if figure.subfigs:
        return None
    ax = figure.gca()
    return None if ax.has_data() or ax.texts else ax


def draw(sketch: Sketch, ax: Any, size: float, fills: list[str], corners: str) -> list[Any]:
    """Draw the edges, the boxes and the texts beside edges; give the texts."""
    from matplotlib import rcParams
    from matplotlib.collections import LineCollection

    ink = rcParams["text.color"]
    ax.add_collection(LineCollection(sketch.edges(), colors=ink, linewidths=0.08 * size, alpha=0.6, zorder=1))
    common = {"ha": "center", "va": "center", "annotation_clip": False, "parse_math": False, "usetex": False}
    found = []
    for i, (item, text) in enumerate(zip(sketch.items, sketch.texts, strict=True)):
        face = fills[i] if fills else HIDDEN if item.branches else ax.get_facecolor()
        box = {
            "boxstyle": f"{corners},pad={PAD}",
            "facecolor": face,
            "edgecolor": ink,
            "linewidth": 0.08 * size,
            "linestyle": "--" if item.hidden or item.empty else "-",
        }
        colour = "black" if fills or item.branches else ink
        found.append(ax.annotate(text, sketch.middle(i), fontsize=size, color=colour, bbox=box, zorder=3, **common))
    for i, text in enumerate(sketch.answers):
        if text:
            found.append(ax.annotate(text, sketch.answer_middle(i), fontsize=LABEL * size, zorder=2, **common))
    return found
