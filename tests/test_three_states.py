"""Missing, unknown and known values through everything that reads a tree: one table by hand, all consumers."""

from __future__ import annotations

import html
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
import pytest

import gputree

matplotlib.use("Agg")
NOTHING, NEW = None, "z"


class Table(NamedTuple):
    """A column of which one test parts the rows, and what it says of a value of each state."""

    column: list[Any]
    y: list[int]
    settings: dict[str, Any]
    says: dict[Any, int]  # value -> class; z is in no row


def words(column: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({"c": pd.Series(column, dtype=object)})


MULTIWAY = {"categorical_split": "multiway"}
TABLES = {
    # the larger of a and b takes what is unknown; missing values have a branch of their own, even if it is larger
    "multiway": Table(
        [*"aaa", *"bb", *[None] * 4], [0] * 3 + [1] * 2 + [2] * 4, MULTIWAY, {"a": 0, "b": 1, None: 2, "z": 0}
    ),
    # no value is missing: they go where most rows go, as unknown ones do
    "multiway, none missing": Table([*"aa", *"bbb"], [0] * 2 + [1] * 3, MULTIWAY, {"a": 0, "b": 1, None: 1, "z": 1}),
    # missing values go with b, unknown ones with the larger side
    "subset": Table([*"aaaaa", *"bb", None], [0] * 5 + [1] * 3, {}, {"a": 0, "b": 1, None: 1, "z": 0}),
    "subset, none missing": Table([*"aaaaa", *"bb"], [0] * 5 + [1] * 2, {}, {"a": 0, "b": 1, None: 0, "z": 0}),
    # the sides weigh the same: what was not met goes to the first
    "subset, tied": Table([*"aa", *"bb"], [0] * 2 + [1] * 2, {}, {"a": 0, "b": 1, None: 0, "z": 0}),
    # the test asks only whether the value is there: an unknown one is, though more rows have none
    "known or missing": Table([*"ab", *[None] * 5], [0] * 2 + [1] * 5, {}, {"a": 0, "b": 0, None: 1, "z": 0}),
}


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest) -> Table:
    return TABLES[request.param]


def fit(table: Table) -> Any:
    model = gputree.DecisionTreeClassifier(max_depth=1, **table.settings)
    return model.fit(words(table.column), table.y)


def test_predict_apply_and_decision_path_agree(table: Table) -> None:
    model, X = fit(table), words(list(table.says))
    assert model.predict(X).tolist() == list(table.says.values())
    assert model.predict_proba(X).argmax(axis=1).tolist() == list(table.says.values())
    leaves = model.apply(X)
    assert model.forest_.value[leaves].argmax(axis=1).tolist() == list(table.says.values())
    paths = model.decision_path(X)
    assert [paths[i].indices.tolist() for i in range(len(X))] == [[0, leaf] for leaf in leaves]


def test_an_unknown_value_may_be_an_error_and_a_missing_one_never_is(table: Table) -> None:
    model = gputree.DecisionTreeClassifier(max_depth=1, unknown="error", **table.settings)
    model.fit(words(table.column), table.y)
    known = {value: label for value, label in table.says.items() if value != NEW}
    assert model.predict(words(list(known))).tolist() == list(known.values())
    with pytest.raises(
        ValueError, match=r"column 'c' holds 'z' in row 1 \(counted from 0\), which is none of its categories 'a', 'b'"
    ):
        model.predict(words(["a", NEW]))


def test_copies_and_files_keep_the_states(table: Table, tmp_path: Path) -> None:
    model, X = fit(table), words(list(table.says))
    gputree.save(model, tmp_path / "m")
    copies = [pickle.loads(pickle.dumps(model)), *(gputree.load(tmp_path / "m", mmap=m) for m in (False, True))]
    for copy in copies:
        assert copy.fingerprint() == model.fingerprint()
        assert copy.predict(X).tolist() == list(table.says.values())


def from_dict(model: Any, value: Any) -> int:
    tree = json.loads(json.dumps(gputree.export_dict(model)))
    root = tree["nodes"][0]
    if value is None:
        child = root["missing"]
    elif root["kind"] == "categories":
        listed = [value in group for group in root["categories"]]
        child = root["children"][listed.index(True)] if any(listed) else root["unseen"]
    else:  # whether the value is there
        child = root["children"][0]
    return int(np.argmax(tree["nodes"][child]["value"][0]))


def from_frame(model: Any, value: Any) -> int:
    frame = model.trees_to_dataframe("pandas").set_index("ID")
    root = frame.loc["0-0"]
    groups = json.loads(root["Categories"]) if isinstance(root["Categories"], str) else []
    listed = [value in group for group in groups]
    child = root["Children"].split()[listed.index(True) if any(listed) else 0]
    child = root["Missing"] if value is None else child if any(listed) or not groups else root["Unseen"]
    return int(frame.loc[child, "Class"])


def worded(tests: dict[str, int], value: Any) -> int:
    """The class behind the branch whose words fit the value; exactly one does. Edges answer the box "c is known"."""
    tests = {re.sub("^True", "is known", re.sub("^False", "is missing", text)): label for text, label in tests.items()}
    known = r"is known|known$"
    pattern = "missing" if value is None else rf"\b{value}\b|{known}" if value != NEW else rf"other|{known}"
    (found,) = {label for text, label in tests.items() if re.search(pattern, re.sub(r"^c\b", "", text))}
    return found


def from_text(model: Any, value: Any) -> int:
    lines = gputree.export_text(model, show_missing=True).splitlines()
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return worded({a.removeprefix("|--- "): int(b[-1]) for a, b in pairs}, value)


def from_dot(model: Any, value: Any) -> int:
    dot = gputree.export_graphviz(model)
    label = {a: int(b) for a, b in re.findall(r"(\d+) \[label=\".*?class = (\d)", dot)}
    edges = dict(re.findall(r"0 -> (\d+) \[.*?label=\"(.*?)\"", dot))
    return worded({text.replace("\\n", ", "): label[child] for child, text in edges.items()}, value)


def from_html(model: Any, value: Any) -> int:
    found = re.findall(r'class="leaf"><code>(.*?)</code>.*?<b>(\d)</b>', gputree.tree_html(model))
    return worded({html.unescape(text): int(label) for text, label in found}, value)


def from_plot(model: Any, value: Any) -> int:
    """Boxes come first, parent before children; then the words of the edges in the order of the children."""
    texts = [note.get_text() for note in gputree.plot_tree(model)]
    matplotlib.pyplot.close("all")
    leaves = [int(text[-1]) for text in texts if "class = " in text][1:]
    edges = [text.replace("\n", ", ") for text in texts if "class = " not in text]
    return worded(dict(zip(edges, leaves, strict=True)), value)


@pytest.mark.parametrize("reader", [from_dict, from_frame, from_text, from_dot, from_html, from_plot])
def test_every_export_says_where_each_state_goes(reader: Callable[[Any, Any], int], table: Table) -> None:
    model = fit(table)
    assert {value: reader(model, value) for value in table.says} == table.says


def test_scikit_learn_keeps_the_side_of_missing_numbers() -> None:
    """Of numbers: missing on the left, on the right, alone, and not met."""
    for x, y in [
        ([1, 2, 3, 4, np.nan], [0, 0, 1, 1, 0]),
        ([1, 2, 3, 4, np.nan], [0, 0, 1, 1, 1]),
        ([1, 2, 3, 4, np.nan], [0, 0, 0, 0, 1]),
        ([1, 2, 3, 4, 4], [0, 0, 1, 1, 1]),
    ]:
        X = np.array(x, float)[:, None]
        model = gputree.DecisionTreeClassifier().fit(X, y)
        late = np.array([[0.0], [2.5], [9.0], [np.nan]])
        theirs = gputree.to_sklearn(model)
        assert theirs.predict(late).tolist() == model.predict(late).tolist()
        assert gputree.from_sklearn(theirs).predict(late).tolist() == model.predict(late).tolist()
        assert model.predict(X).tolist() == y
