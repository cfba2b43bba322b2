"""Pictures of matplotlib: all is there or counted, nothing lies on anything else, all can be read."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import gputree
from gputree.inspect.boxes import Boxes, Look
from gputree.inspect.outline import Limits
from gputree.inspect.plot import plot_tree
from gputree.inspect.sketch import GAP, make_sketch
from tests.inspect.samples import MAKERS, ODD_NAMES, sample

may_leave_out = pytest.mark.filterwarnings("ignore:.* nodes have no room and are left out")


@pytest.fixture(autouse=True)
def canvas() -> Iterator[None]:
    matplotlib.use("agg")
    yield
    plt.close("all")


def boxes_of(drawn: list[Any]) -> list[Any]:
    return [a for a in drawn if a.get_bbox_patch() is not None]


def counted(drawn: list[Any]) -> tuple[set[int], int, int]:
    """Ids that are shown, leaves without rows that share a box, and nodes that are left out."""
    texts = [a.get_text() for a in boxes_of(drawn)]
    ids = [int(i) for text in texts for i in re.findall(r"^(?:node )?#(\d+)$", text, re.MULTILINE)]
    assert len(ids) == len(set(ids))
    more = [int(n) - 1 for text in texts for n in re.findall(r"^(\d+) leaves$", text, re.MULTILINE)]
    hidden = [
        int(n.replace(",", "")) for text in texts for n in re.findall(r"^\+ ([\d,]+) nodes?$", text, re.MULTILINE)
    ]
    return set(ids), sum(more), sum(hidden)


def extents(drawn: list[Any]) -> np.ndarray[Any, Any]:
    """Left, bottom, right, top of every text with its box, in pixels."""
    drawn[0].figure.canvas.draw()
    found = []
    for a in drawn:
        patch = a.get_bbox_patch()
        found.append((a if patch is None else patch).get_window_extent().extents)
    return np.array(found)


def overlaps(rectangles: np.ndarray[Any, Any]) -> int:
    """Pairs of rectangles that share more than a line of pixels."""
    low = np.maximum(rectangles[:, None, :2], rectangles[None, :, :2])
    high = np.minimum(rectangles[:, None, 2:], rectangles[None, :, 2:])
    both = ((high - low) > 1.0).all(axis=2)
    return int(np.triu(both, 1).sum())


@may_leave_out
@pytest.mark.parametrize("name", MAKERS)
def test_all_nodes_are_drawn_or_counted_and_none_on_another(name: str) -> None:
    model = sample(name)
    drawn = plot_tree(model, node_ids=True, filled=True, rounded=name == "iris")
    ids, more, hidden = counted(drawn)
    assert len(ids) + more + hidden == model.forest_.n_nodes
    assert ids <= set(range(model.forest_.n_nodes))
    rectangles = extents(drawn)
    assert overlaps(rectangles) == 0
    figure = drawn[0].figure
    assert (rectangles[:, :2] >= 0).all()
    assert (rectangles[:, 2:] <= figure.bbox.extents[2:]).all()
    assert (figure.get_size_inches() <= (40.1, 30.1)).all()
    assert drawn[0].get_fontsize() >= 6.5


@pytest.mark.parametrize("name", ["iris", "counties_subset", "counties_fan", "penguins_multiway", "odd", "outputs"])
def test_what_is_not_large_is_drawn_whole(name: str) -> None:
    model = sample(name)
    ids, more, hidden = counted(plot_tree(model, node_ids=True))
    assert (len(ids) + more, hidden) == (model.forest_.n_nodes, 0)


def test_a_given_size_of_text_draws_everything() -> None:
    drawn = plot_tree(sample("large"), fontsize=6, node_ids=True)
    assert counted(drawn) == (set(range(299)), 0, 0)
    assert drawn[0].get_fontsize() == 6
    assert overlaps(extents(drawn)) == 0


@pytest.mark.parametrize(
    ("name", "given", "remedy"),
    [
        ("large", True, "give larger axes, a smaller fontsize or a max_depth, or write all by export_graphviz"),
        ("wide", False, "give a fontsize or a max_depth, or write all by export_graphviz"),
    ],
)
def test_nodes_without_room_are_a_warning(name: str, given: bool, remedy: str) -> None:
    ax = plt.subplots()[1] if given else None
    with pytest.warns(UserWarning, match=r" nodes have no room and are left out, .*; " + remedy) as told:
        drawn = plot_tree(sample(name), ax=ax, node_ids=True)
    *_, hidden = counted(drawn)
    assert str(told[0].message).startswith(f"{hidden:,} of {sample(name).forest_.n_nodes:,} nodes")


def test_nodes_below_max_depth_are_left_out_by_wish() -> None:
    """Only those of no greater depth have no room."""
    depth = sample("large").forest_.depth
    with pytest.warns(UserWarning, match=" nodes have no room") as told:
        drawn = plot_tree(sample("large"), max_depth=6, ax=plt.figure(figsize=(2, 2)).gca(), node_ids=True)
    wanted, shown = int((depth <= 6).sum()), len(counted(drawn)[0])
    assert str(told[0].message).startswith(f"{wanted - shown} of {wanted} nodes")
    assert "or a smaller max_depth" in str(told[0].message)
    assert wanted < depth.size


def test_small_text_shows_all_nodes_in_given_axes() -> None:
    drawn = plot_tree(sample("iris"), ax=plt.subplots()[1], node_ids=True)
    assert counted(drawn) == (set(range(17)), 0, 0)
    assert 3 <= drawn[0].get_fontsize() < 5
    assert overlaps(extents(drawn)) == 0


@may_leave_out
def test_a_deep_chain_needs_no_recursion() -> None:
    assert sample("chain").get_depth() == 1499
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(250)
        drawn = plot_tree(sample("chain"), fontsize=0.5, node_ids=True)
    finally:
        sys.setrecursionlimit(limit)
    ids, _, hidden = counted(drawn)
    assert len(ids) == 1999
    assert len(ids) + hidden == 2999


@pytest.mark.parametrize("name", ["counties_multiway", "counties_fan", "large", "penguins_subset", "wide"])
def test_edges_pass_no_box(name: str) -> None:
    """An edge starts in its parent's box, ends at its child's, and touches no other box or text on its way."""
    boxes = Boxes(sample(name), None, None, Look())
    sketch = make_sketch(
        boxes, Limits(None, 150, 50), lambda text: (0.6 * max(map(len, text.split("\n"))), 1.2 * text.count("\n") + 1.2)
    )
    centres = [(*sketch.middle(i), *sketch.box[i]) for i in range(len(sketch.items))]
    told = [i for i, answer in enumerate(sketch.answers) if answer]
    centres += [(*sketch.answer_middle(i), *(sketch.answer[i] + GAP)) for i in told]
    x, y, width, height = np.array(centres).T
    low, high = np.stack([x - width / 2, y - height / 2]), np.stack([x + width / 2, y + height / 2])
    edges = sketch.edges()
    assert len(edges) >= len(sketch.items) - 1
    for edge in edges:
        points = np.concatenate([np.linspace(a, b, 200) for a, b in pairwise(edge)])
        inside = ((points[:, :, None] > low + 1e-6) & (points[:, :, None] < high - 1e-6)).all(axis=1).any(axis=0)
        start = ((low[:, :] < np.array(edge[0])[:, None]) & (np.array(edge[0])[:, None] < high)).all(axis=0)
        assert not (inside & ~start).any()


def test_the_texts_of_iris() -> None:
    iris = load_iris()
    model = gputree.DecisionTreeClassifier(max_depth=2).fit(iris.data, iris.target)
    drawn = plot_tree(model, feature_names=iris.feature_names, class_names=iris.target_names)
    assert [a.get_text() for a in drawn] == [
        "petal length (cm) <= 2.45\ngini = 0.667\nsamples = 150\nvalue = [50, 50, 50]\nclass = setosa",
        "gini = 0.0\nsamples = 50\nvalue = [50, 0, 0]\nclass = setosa",
        "petal width (cm) <= 1.75\ngini = 0.5\nsamples = 100\nvalue = [0, 50, 50]\nclass = versicolor",
        "gini = 0.168\nsamples = 54\nvalue = [0, 49, 5]\nclass = versicolor",
        "gini = 0.043\nsamples = 46\nvalue = [0, 1, 45]\nclass = virginica",
        *["True", "False"] * 2,
    ]
    assert len([c for c in drawn[0].axes.collections if isinstance(c, LineCollection)]) == 1


@pytest.mark.parametrize(
    ("options", "root"),
    [
        ({"impurity": False, "class_names": False}, "x[2] <= 2.45\nsamples = 150\nvalue = [50, 50, 50]"),
        ({"label": "none", "node_ids": True}, "#0\nx[2] <= 2.45\n0.667\n150\n[50, 50, 50]\n0"),
        ({"proportion": True, "precision": 1, "class_names": False},
         "x[2] <= 2.5\ngini = 0.7\nsamples = 100.0%\nvalue = [0.3, 0.3, 0.3]"),
        ({"class_names": True, "impurity": False, "feature_names": np.array(list("abcd"))},
         "c <= 2.45\nsamples = 150\nvalue = [50, 50, 50]\nclass = y[0]"),
        ({"class_names": np.array(["a", "b", "c"]), "feature_names": list("wxyz"), "max_depth": 0},
         "y <= 2.45\ngini = 0.667\nsamples = 150\nvalue = [50, 50, 50]\nclass = a\n+ 16 nodes"),
    ],
)  # fmt: skip
def test_options_change_the_text(options: dict[str, Any], root: str) -> None:
    drawn = plot_tree(sample("iris"), **options)
    assert drawn[0].get_text() == root


def test_labels_at_the_root_only() -> None:
    drawn = plot_tree(sample("iris"), label="root")
    assert "samples = 150" in drawn[0].get_text()
    assert not any("samples" in a.get_text() for a in drawn[1:])


def test_the_depth_is_a_limit() -> None:
    drawn = plot_tree(sample("iris"), max_depth=1, node_ids=True)
    assert counted(drawn) == ({0, 1, 2}, 0, 14)
    assert boxes_of(drawn)[2].get_bbox_patch().get_linestyle() == "--"


def test_categories_and_missing_values_stand_beside_edges() -> None:
    texts = [a.get_text() for a in plot_tree(sample("penguins_multiway"))]
    assert "True\nor missing" in texts
    assert {"Torgersen", "Dream"} <= set(texts)
    assert any(re.fullmatch(r"Biscoe\nor missing, or other", text) for text in texts)
    fan = [a.get_text() for a in plot_tree(sample("counties_fan"))]
    assert sum(bool(re.fullmatch(r"county \d\d(\nor .*)?", text)) for text in fan) == 33
    assert "county 33, county 34,\ncounty 35, county 36,\ncounty 37, ... 2 more" in fan
    assert "7 leaves\nno training rows" in "\n".join(fan)
    assert "missing" in fan  # which have a branch of their own


@may_leave_out
def test_many_branches_are_counted() -> None:
    drawn = plot_tree(sample("wide"))
    assert "+ 251 branches\n+ 251 nodes" in [a.get_text() for a in drawn]
    assert len(boxes_of(drawn)) == 1 + 50


def test_many_classes_are_named_by_weight() -> None:
    text = plot_tree(sample("classes"))[0].get_text()
    assert re.search(r"value = \{class number \d+: 2\d,\n(.*,\n)?.*\.\.\. 27 more\}", text), text
    assert max(map(len, text.split("\n"))) <= 36


def test_several_outputs() -> None:
    assert "value = [50, 50, 50] [50, 100]" in plot_tree(sample("class_outputs"))[0].get_text()
    assert "class = [0, 1]" in plot_tree(sample("class_outputs"))[0].get_text()
    assert "value = [1.0, 0.667]" in plot_tree(sample("outputs"))[0].get_text()


def test_a_small_threshold_keeps_its_digits() -> None:
    model = gputree.DecisionTreeRegressor().fit([[0.0001], [0.0002]], [1e-7, 3e-7])
    text = plot_tree(model, impurity=False)[0].get_text()
    assert text == "x[0] <= 0.00015\nsamples = 2\nvalue = 2e-07"


def test_a_long_name_keeps_its_threshold_in_one_line() -> None:
    model = gputree.DecisionTreeRegressor().fit([[1.0], [2.0]], [1.0, 2.0])
    text = plot_tree(model, feature_names=["length of the petals in mm ab"], precision=9)[0].get_text()
    assert text.startswith("length of the petals in mm ab <= 1.5\n")
    text = plot_tree(model, feature_names=["length of the petals in mm abc"], precision=9)[0].get_text()
    assert text.startswith("length of the petals in mm abc\n<= 1.5\n")


def test_odd_characters_are_drawn_as_they_are() -> None:
    """No formula is read into dollars, nothing breaks a line."""
    drawn = plot_tree(sample("odd"), filled=True)
    drawn[0].figure.canvas.draw()
    texts = [a.get_text() for a in drawn]
    assert any(text.startswith(ODD_NAMES[0]) for text in texts)
    assert {"$a$", "<x>", "'d\\ne'", "'b,c'", "''", "&lt;", "zzzzzzzzzzzzzz...zzzzzzzzzzzzz"} <= set(texts)
    assert not any(a.get_parse_math() for a in drawn)


def lightness(drawn: list[Any]) -> list[float]:
    return [min(to_rgb(a.get_bbox_patch().get_facecolor())) for a in boxes_of(drawn)]


def test_colours_show_class_and_majority() -> None:
    drawn = plot_tree(sample("iris"), filled=True)
    colours = {
        a.get_text().split("class = ")[1]: a.get_bbox_patch().get_facecolor()
        for a in boxes_of(drawn)
        if "gini = 0.0\n" in a.get_text()
    }
    assert len(set(colours.values())) == 3
    assert to_rgb(boxes_of(drawn)[0].get_bbox_patch().get_facecolor()) == (1, 1, 1)
    assert all(a.get_color() == "black" for a in boxes_of(drawn))


def test_colours_show_the_size_of_a_number() -> None:
    drawn = plot_tree(sample("penguins_subset"), filled=True)
    values = [float(a.get_text().split("value = ")[1]) for a in boxes_of(drawn)]
    order = np.argsort(values)
    light = np.array(lightness(drawn))[order]
    assert light[0] == 1
    assert (np.diff(light) <= 0).all()
    assert light[-1] < 0.5


def test_huge_numbers_have_colours() -> None:
    model = gputree.DecisionTreeRegressor().fit([[1.0], [2.0]], [-8e307, 8e307])
    assert lightness(plot_tree(model, filled=True))[1] == 1


@may_leave_out
def test_given_axes_are_cleared_and_filled() -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5))
    right.plot([1, 2])
    drawn = plot_tree(sample("large"), ax=right, node_ids=True)
    assert all(a.axes is right for a in drawn)
    assert not right.lines
    ids, _, hidden = counted(drawn)
    assert len(ids) + hidden == 299
    assert drawn[0].get_fontsize() >= 3
    assert overlaps(extents(drawn)) == 0
    assert plt.get_fignums() == [figure.number]
    assert left.get_children()


def test_an_empty_figure_of_the_user_is_filled() -> None:
    """``plt.figure(figsize=...)`` and then the call, as scikit-learn's users write it."""
    figure = plt.figure(figsize=(20, 10))
    drawn = plot_tree(sample("iris"))
    assert drawn[0].figure is figure
    assert tuple(figure.get_size_inches()) == (20, 10)


def test_a_picture_of_the_user_is_left_alone() -> None:
    figure, ax = plt.subplots()
    ax.plot([1, 2])
    drawn = plot_tree(sample("iris"))
    assert drawn[0].figure is not figure
    assert len(ax.lines) == 1
    again = plot_tree(sample("root"))
    assert again[0].figure is not drawn[0].figure
    assert plot_tree(sample("root"))[0].figure is not again[0].figure


def test_axes_in_a_part_of_a_figure() -> None:
    part = plt.figure(figsize=(12, 6)).subfigures(1, 2)[0]
    drawn = plot_tree(sample("iris"), ax=part.add_subplot())
    assert overlaps(extents(drawn)) == 0


def test_a_dark_style_stays_readable() -> None:
    with plt.style.context("dark_background"):
        plain, filled = plot_tree(sample("iris")), plot_tree(sample("iris"), filled=True)
    assert (plain[0].get_color(), filled[0].get_color()) == ("white", "black")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_depth": -1}, "max_depth=-1 must be None or a whole number of at least 0"),
        ({"max_depth": 1.5}, "max_depth=1.5 must be"),
        ({"label": "some"}, "label='some' must be one of 'all', 'root', 'none'"),
        ({"precision": None}, "precision=None must be a whole number"),
        ({"fontsize": 0}, "fontsize=0 must be None or a positive number of points"),
        ({"fontsize": "large"}, "fontsize='large' must be"),
        ({"feature_names": ["a"]}, "feature_names must contain 4 elements, got 1"),
        ({"class_names": ["a"]}, "class_names must contain 3 elements, one for each class, got 1"),
    ],
)
def test_a_wrong_parameter_is_refused_and_no_figure_left(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_tree(sample("iris"), **options)
    assert not plt.get_fignums()


def test_one_column_has_a_name() -> None:
    drawn = plot_tree(sample("chain"), feature_names=np.array(["only"]), max_depth=0)
    assert drawn[0].get_text().startswith("only <= 0.5")


def test_what_is_not_fitted_is_refused() -> None:
    with pytest.raises(NotFittedError):
        plot_tree(gputree.DecisionTreeClassifier())


def test_without_matplotlib_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"run `pip install matplotlib`"):
        plot_tree(sample("iris"))
