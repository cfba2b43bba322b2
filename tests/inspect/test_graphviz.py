"""DOT: read back by a parser of its grammar, and by Graphviz itself where it is installed."""

from __future__ import annotations

import html
import io
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import gputree
from gputree.inspect.graphviz import export_graphviz
from tests.inspect.samples import MAKERS, ODD_NAMES, ODD_WORDS, sample

TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<word>[A-Za-z_][\w]*|-?\d+(?:\.\d+)?)|(?P<sign>->|[{}\[\];,=])|(?P<html><))"""
)


@dataclass
class Graph:
    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    edges: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    ranks: list[list[str]] = field(default_factory=list)
    settings: dict[str, dict[str, str]] = field(default_factory=dict)


def tokens(text: str) -> list[str]:
    """Words of DOT; strings keep their first quote, HTML its first bracket."""
    found, at = [], 0
    while text[at:].strip():
        match = TOKEN.match(text, at)
        assert match, text[at : at + 60]
        at = match.end()
        if match["html"]:
            depth, start = 1, at
            while depth:
                depth += {"<": 1, ">": -1}.get(text[at], 0)
                at += 1
            found.append("<" + text[start : at - 1])
        else:
            found.append(match["string"][:-1] if match["string"] else match["word"] or match["sign"])
    return found


def shown(token: str) -> str:
    """The text that Graphviz shows for a value."""
    if token[0] not in '"<':
        return token
    if token.startswith("<"):
        lines = [html.unescape(line) for line in token[1:].split("<br/>")]
        assert not re.search(r"[<>]|&(?!\w+;)", token[1:].replace("<br/>", ""))
        return "\n".join(lines)
    text = token[1:]
    assert not re.search(r"&(?!\w+;)", text)
    return html.unescape(re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text))


def parsed(text: str) -> Graph:
    """A graph from DOT as far as trees use it."""
    words, graph = tokens(text), Graph()
    assert words[:3] == ["digraph", "Tree", "{"]
    assert words[-1] == "}"
    statement: list[str] = []
    for word in words[3:-1]:
        if word == ";" and statement and (statement[0] != "{" or statement[-1] == "}"):
            read_statement(statement, graph)
            statement = []
        else:
            statement.append(word)
    assert not statement
    return graph


def read_statement(words: list[str], graph: Graph) -> None:
    if words[0] == "{":
        assert words[1:4] == ["rank", "=", "same"]
        graph.ranks.append([word for word in words[4:-1] if word != ";"])
        return
    attributes: dict[str, str] = {}
    if "[" in words:
        start = words.index("[")
        assert words[-1] == "]"
        inside = words[start + 1 : -1]
        for i in range(0, len(inside), 4):
            assert inside[i + 1] == "="
            assert inside[i + 3 : i + 4] in ([","], [])
            attributes[inside[i]] = shown(inside[i + 2])
        words = words[:start]
    match words:
        case [source, "->", target]:
            assert (source, target) not in graph.edges
            graph.edges[source, target] = attributes
        case ["node" | "edge" | "graph" as kind]:
            graph.settings[kind] = attributes
        case [name, "=", value]:
            graph.settings[name] = {name: value}
        case [name]:
            assert name not in graph.nodes
            graph.nodes[name] = attributes
        case _:
            raise AssertionError(words)


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_every_node_and_edge_is_written(name: str, special: bool) -> None:
    model = sample(name)
    graph = parsed(export_graphviz(model, node_ids=True, filled=True, special_characters=special))
    forest = model.forest_
    assert "0" in graph.nodes
    shared = 0
    for node, attributes in graph.nodes.items():
        assert attributes["label"].startswith(f"node #{node}\n")
        assert re.fullmatch(r"#[0-9a-f]{6}", attributes["fillcolor"])
        many = re.search(r"^(\d+) leaves$", attributes["label"], re.MULTILINE)
        shared += int(many[1]) - 1 if many else 0
    assert len(graph.nodes) + shared == forest.n_nodes
    expected = {(str(forest.parent[int(n)]), n) for n in graph.nodes if n != "0"}
    assert set(graph.edges) == expected
    assert all(edge["label"] for edge in graph.edges.values())


@pytest.mark.parametrize("special", [False, True])
def test_odd_characters_come_out_as_they_went_in(special: bool) -> None:
    graph = parsed(export_graphviz(sample("odd"), special_characters=special))
    labels = [edge["label"].split("\nor ")[0] for edge in graph.edges.values()]
    words = [word if word.isprintable() and word == word.strip() != "" else repr(word) for word in ODD_WORDS]
    words = ["'b,c'" if word == "b,c" else "'\"q\"'" if word == '"q"' else word for word in words]
    words[words.index("... 3 more")] = "'... 3 more'"
    assert set(labels) >= set(words)
    assert graph.nodes["0"]["label"].startswith(f"{ODD_NAMES[0]}\n")
    assert {n["label"].split("class = ")[1] for n in graph.nodes.values()} == {"cl$s", "<b>", "&amp;"}


def test_options_of_the_page() -> None:
    text = export_graphviz(
        sample("iris"), rounded=True, filled=True, rotate=True, leaves_parallel=True, fontname='a "b"', impurity=False
    )
    graph = parsed(text)
    look = {"shape": "box", "style": "filled, rounded", "color": "black", "fontname": 'a "b"'}
    assert graph.settings["node"] == look
    assert graph.settings["edge"] == {"fontname": 'a "b"'}
    assert graph.settings["rankdir"] == {"rankdir": "LR"}
    leaves = [str(i) for i in np.flatnonzero(sample("iris").forest_.n_children == 0)]
    assert sorted(graph.ranks[0]) == sorted(leaves)
    assert sorted(node for rank in graph.ranks for node in rank) == sorted(graph.nodes)
    assert "gini" not in text


def test_a_threshold_in_special_characters() -> None:
    text = export_graphviz(sample("iris"), special_characters=True, feature_names=["a <= b", "c", "d", "e <= 1"])
    assert "0 [label=<d &le; 2.45<br/>gini" in text
    assert "<e &lt;= 1 &le; 1.75<br/>" in text


def test_what_is_cut_off_is_counted() -> None:
    graph = parsed(export_graphviz(sample("iris"), max_depth=1))
    assert [n["label"].split("\n")[-1] for n in graph.nodes.values()] == ["class = 0", "class = 0", "+ 14 nodes"]


def test_a_file_a_path_or_a_text(tmp_path: Path) -> None:
    text = export_graphviz(sample("odd"))
    assert isinstance(text, str)
    assert export_graphviz(sample("odd"), tmp_path / "tree.dot") is None
    assert export_graphviz(sample("odd"), str(tmp_path / "other.dot")) is None
    memory = io.StringIO()
    assert export_graphviz(sample("odd"), memory) is None
    written = [(tmp_path / name).read_text(encoding="utf-8") for name in ("tree.dot", "other.dot")]
    assert [*written, memory.getvalue()] == [text] * 3
    with pytest.raises(TypeError, match="out_file=3 must be None, a path, or a file"):
        export_graphviz(sample("odd"), 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_depth": -1}, "max_depth=-1 must be None or a whole number of at least 0"),
        ({"label": None}, "label=None must be one of 'all', 'root', 'none'"),
        ({"precision": -1}, "precision=-1 must be a whole number"),
        ({"feature_names": list("abcde")}, "feature_names must contain 4 elements, got 5"),
        ({"feature_names": "abcd"}, "feature_names='abcd' must be a list of 4 names"),
        ({"class_names": ["a"]}, "class_names must contain 3 elements, one for each class, got 1"),
    ],
)
def test_a_wrong_parameter_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        export_graphviz(sample("iris"), **options)


@pytest.mark.parametrize("names", [["w", "x", "y", "z"], np.array(["w", "x", "y", "z"]), ("w", "x", "y", "z")])
def test_names_come_in_any_list(names: Any) -> None:
    assert '0 [label="y <= 2.45' in export_graphviz(sample("iris"), feature_names=names)


def test_one_column_has_a_name() -> None:
    text = export_graphviz(sample("chain"), feature_names=np.array(["only"]), max_depth=0)
    assert '0 [label="only <= 0.5' in text


def test_a_deep_chain_needs_no_recursion() -> None:
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(200)
        text = export_graphviz(sample("chain"))
    finally:
        sys.setrecursionlimit(limit)
    assert len(parsed(text).edges) == 2998


def test_what_is_not_fitted_is_refused() -> None:
    with pytest.raises(NotFittedError):
        export_graphviz(gputree.DecisionTreeClassifier())


@pytest.mark.parametrize("name", ["iris", "odd", "counties_fan", "class_outputs", "root"])
@pytest.mark.parametrize("options", [{}, {"special_characters": True, "leaves_parallel": True, "rotate": True}])
def test_graphviz_shows_the_same_texts(name: str, options: dict[str, Any]) -> None:
    """Where the program is there; the parser above holds it to the grammar everywhere."""
    text = export_graphviz(sample(name), **options)
    dot = shutil.which("dot")
    if dot is None:
        assert parsed(text).nodes
        return
    drawn = subprocess.run([dot, "-Tsvg"], input=text, capture_output=True, encoding="utf-8", check=True)
    texts = [e.text for e in ElementTree.fromstring(drawn.stdout).iter("{http://www.w3.org/2000/svg}text")]
    graph = parsed(text)
    labels = [attributes["label"] for attributes in [*graph.nodes.values(), *graph.edges.values()]]
    expected = [line for label in labels for line in label.split("\n")]
    assert sorted(" ".join(t.split()) for t in texts if t) == sorted(" ".join(t.split()) for t in expected if t)
