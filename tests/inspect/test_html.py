"""HTML for notebooks: well formed, harmless, bounded, and as complete as it says."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import gputree
from gputree.inspect.html import DEEPEST, MOST_LINES, tree_html
from tests.inspect.samples import MAKERS, ODD_NAMES, sample

VOID = {"br", "img", "hr"}


class Reader(HTMLParser):
    """Checks that elements nest, and collects the lines of a tree with their depths."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.titles: list[str] = []
        self.lines: list[tuple[int, str]] = []
        self.deepest = 0
        self.unfolded = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        assert not [name for name in given if name.startswith("on") or name in ("src", "href")]
        self.titles += [given["title"]] if given.get("title") else []
        self.unfolded += "open" in given
        if tag == "summary" or given.get("class") == "leaf":
            self.lines.append((self.open.count("details") - (tag == "summary"), ""))
        self.open.append(tag)
        self.deepest = max(self.deepest, len(self.open))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.lines and self.open[-1] != "style":
            depth, text = self.lines[-1]
            self.lines[-1] = depth, text + data


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert not reader.open
    return reader


@pytest.mark.parametrize("name", MAKERS)
def test_every_node_has_a_line_or_is_counted(name: str) -> None:
    model = sample(name)
    text = tree_html(model)
    found = read(text)
    assert found.tags <= {"div", "style", "details", "summary", "code", "i", "b", "small"}
    assert "url(" not in text
    assert "http" not in text
    hidden = sum(int(n.replace(",", "")) for _, line in found.lines for n in re.findall(r"\+ ([\d,]+) nodes?$", line))
    shared = sum(int(n) - 1 for _, line in found.lines for n in re.findall(r"\((\d+) categories, no training", line))
    rest = sum("branch" in line and line.startswith("+ ") for _, line in found.lines)
    assert len(found.lines) - rest + shared + hidden == model.forest_.n_nodes
    assert len(found.lines) <= MOST_LINES
    assert len(text) < 150_000
    assert max(depth for depth, _ in found.lines) <= DEEPEST
    says = re.search(r"; ([\d,]+) of them are counted but not shown", text)
    assert int(says[1].replace(",", "") if says else 0) == hidden


def test_three_hundred_nodes_are_all_there() -> None:
    found = read(tree_html(sample("large")))
    assert len(found.lines) == 299
    assert found.unfolded == 7  # three levels; the rest unfolds on demand


def test_the_lines_of_iris() -> None:
    iris = load_iris()
    model = gputree.DecisionTreeClassifier(max_depth=2).fit(iris.data, iris.target)
    text = tree_html(model, feature_names=iris.feature_names, class_names=iris.target_names)
    found = read(text)
    assert found.lines == [
        (0, "all rowssetosa 33%150 rows"),
        (1, "petal length (cm) <= 2.45setosa 100%50 rows"),
        (1, "petal length (cm) >  2.45versicolor 50%100 rows"),
        (2, "petal width (cm) <= 1.75versicolor 91%54 rows"),
        (2, "petal width (cm) >  1.75virginica 98%46 rows"),
    ]
    assert found.unfolded == 2
    assert text.count("setosa") == 3  # two lines and the key of colours
    assert "<b>DecisionTreeClassifier</b>: 5 nodes, 3 leaves, depth 2</div>" in text
    assert re.search(r"linear-gradient\(90deg,#\w{6} 0 91%,#\w{6} 0 100%,transparent 0\)", text)


def test_numbers_and_missing_values() -> None:
    lines = [line for _, line in read(tree_html(sample("counties_fan"))).lines]
    assert lines[0].startswith("all rows3")
    assert "county is missing" in "\n".join(lines)
    assert re.search(r"county in \{county 33, .* more\} \(7 categories, no training rows\)", "\n".join(lines))
    penguins = "\n".join(line for _, line in read(tree_html(sample("penguins_multiway"))).lines)
    assert "(or missing, or other)" in penguins
    outputs = [line for _, line in read(tree_html(sample("class_outputs"))).lines]
    assert outputs[0] == "all rows [0, 1]150 rows"
    assert read(tree_html(sample("root"))).lines == [(0, "all rowsone 100%2 rows")]


def test_a_list_that_is_cut_goes_on_in_a_tooltip() -> None:
    found = read(tree_html(sample("counties_subset")))
    assert any(len(title.split(", ")) > 10 for title in found.titles)
    assert max(map(len, found.titles)) <= 400


def test_odd_characters_are_escaped() -> None:
    text = tree_html(sample("odd"))
    found = read(text)
    lines = "\n".join(line for _, line in found.lines)
    assert f"{ODD_NAMES[0]} = <x>" in lines
    for word in ("$a$", "'b,c'", "'d\\ne'", "\\frac", "&lt;", "'\"q\"'", "''", "'... 3 more'"):
        assert f"{ODD_NAMES[0]} = {word}" in lines
    assert {"<b>", "&amp;", "cl$s"} <= set(re.findall(r"<b>|&amp;|cl\$s", lines))


def test_scripts_stay_text() -> None:
    model = gputree.DecisionTreeClassifier().fit([[1.0], [2.0]], ["<script>alert(1)</script>", '"><img src=x>'])
    text = tree_html(model, feature_names=["</code><script>alert(2)</script>"])
    assert "<script" not in text
    assert "<img" not in text
    assert "alert(2)" in text


def test_a_deep_chain_is_bounded() -> None:
    """Browsers stop nesting at some depth, so the tree does before."""
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(200)
        text = tree_html(sample("chain"))
    finally:
        sys.setrecursionlimit(limit)
    found = read(text)
    assert found.deepest < 2 * DEEPEST
    assert found.lines[-1] == (
        DEEPEST,
        f"x[0] >  {DEEPEST - 0.5}0 50%{1500 - DEEPEST:,} rows+ {2998 - 2 * DEEPEST:,} nodes",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_names": ["a"]}, "feature_names must contain 4 elements, got 1"),
        ({"class_names": np.array(["a"])}, "class_names must contain 3 elements, one for each class, got 1"),
    ],
)
def test_wrong_names_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tree_html(sample("iris"), **options)


def test_what_is_not_fitted_is_refused() -> None:
    with pytest.raises(NotFittedError):
        tree_html(gputree.DecisionTreeClassifier())
