"""The ID3 family on textbook tables, beside Weka's Id3, and in the traps of the texts (tests/data/id3_oracles.json)."""

from __future__ import annotations

import json
from itertools import product
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import LeaveOneOut, cross_val_score

from gputree import DecisionTreeClassifier, ID3Classifier, export_text, plot_tree, tree_html, trees_to_dataframe
from gputree.core.forest import Test
from gputree.datasets import Table, load_classroom, load_lenses, load_restaurant, load_weather
from gputree.impurity import entropy

ORACLES: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "id3_oracles.json").read_text())
TABLES = {
    "weather": load_weather,
    "lenses": load_lenses,
    "restaurant aima": load_restaurant,
    "restaurant chapter": lambda: load_restaurant("chapter"),
}


def parts(table: Table) -> tuple[pd.DataFrame, Any]:
    """Columns, whole numbers as integers, and labels."""
    frame = table.to_frame("pandas")
    X = frame.drop(columns=table.target)
    return X.astype({name: int for name in X if X[name].dtype == float}), frame[table.target].to_numpy()


def fitted(name: str, **settings: Any) -> tuple[ID3Classifier, pd.DataFrame, Any]:
    X, y = parts(TABLES[name]() if name in TABLES else load_classroom(name))  # type: ignore[arg-type]
    return ID3Classifier(**settings).fit(X, y), X, y


def nested(model: ID3Classifier, node: int = 0) -> Any:
    """The tree as {column: {value: branch}}, leaves as labels, None for null."""
    forest = model.forest_
    if forest.kind[node] == Test.LEAF:
        value = model._values[node]
        return None if np.isnan(value).any() else model.classes_[value.argmax()]
    feature = model.schema_.features[forest.feature[node]]
    ways = zip(feature.categories, forest.node(node).children, strict=True)
    return {feature.name: {str(value): nested(model, child) for value, child in ways}}


def read_weka(text: str) -> Any:
    """Weka's text as the same."""
    root: dict[str, Any] = {}
    path: list[dict[str, Any]] = [root]
    for line in text.split("\n"):
        depth = line.count("|")
        test, colon, label = line[3 * depth :].rpartition(": ") if ": " in line else (line[3 * depth :], "", "")
        column, _, value = test.partition(" = ")
        del path[depth + 1 :]
        branches = path[depth].setdefault(column, {})
        branches[value] = (None if label == "null" else label) if colon else {}
        path.append(branches[value])
    return root


# -- Weka


def test_the_reader_of_weka() -> None:
    text = "a = x\n|  b = 1: null\n|  b = 2: no\na = y: yes"
    assert read_weka(text) == {"a": {"x": {"b": {"1": None, "2": "no"}}, "y": "yes"}}


@pytest.mark.parametrize("name", ["weather", "lenses", "restaurant chapter"])
def test_trees_of_weka(name: str) -> None:
    """Weka removes no column and stops at gain 0; no node of these has it."""
    model, X, y = fitted(name, empty="null")
    assert nested(model) == read_weka(ORACLES["weka"][name])
    assert model.score(X, y) == 1.0


def test_weka_breaks_a_tie_of_the_restaurant_by_rounding() -> None:
    """Five columns tie exactly below Pat = Full: Hun is the first of them, Weka takes Type; both are consistent."""
    model, X, y = fitted("restaurant aima", empty="null")
    table = model.split_table(X, y, node=3)
    tie = ORACLES["restaurant"]["tied_at_Full"]
    assert [table.best, *table.tied] == tie["columns"]
    gains = [row.gain for row in table.rows if row.feature in tie["columns"]]
    assert gains == pytest.approx([tie["gain_bits"]] * 5, abs=1e-15)
    weka = read_weka(ORACLES["weka"]["restaurant aima"])
    assert list(weka["Pat"]["Full"]) == ["Type"]
    assert list(nested(model)["Pat"]["Full"]) == ["Hun"]
    first = ID3Classifier(empty="null").fit(X[["Type", *X.columns.drop("Type")]], y)  # Type is the first of them now
    assert list(nested(first)["Pat"]["Full"]) == ["Type"]


def test_leaving_one_out_counts_null_as_an_error() -> None:
    X, y = parts(load_weather())
    right = cross_val_score(ID3Classifier(empty="null"), X, y, cv=LeaveOneOut()).sum()
    assert len(X) - right == ORACLES["weka_leave_one_out_errors"]["weather"]


# -- chapters


@pytest.mark.parametrize("variant", ["chapter", "aima"])
@pytest.mark.parametrize("learner", ["id3", "learn-dt", "dtl"])
def test_restaurant(variant: str, learner: str) -> None:
    """T2: one cell decides. The leaf of French guests ties 2 : 2, which the book draws as Y and we give the first."""
    model, X, y = fitted(f"restaurant {variant}", variant=learner)
    gains = {row.feature: row.gain for row in model.split_table(X, y).rows}
    assert gains == pytest.approx(ORACLES["restaurant"][variant]["root_gain_bits"], abs=1e-15)
    assert agree(nested(model), ORACLES["restaurant"][variant]["tree"])


def agree(tree: Any, wanted: Any) -> bool:
    """Trees are equal; of a list of tied labels the least is it."""
    if not isinstance(wanted, dict):
        return bool(tree == (min(wanted) if isinstance(wanted, list) else wanted))
    ((column, branches),) = wanted.items()
    same = list(tree) == [column] and set(tree[column]) == set(branches)
    return same and all(agree(tree[column][value], branch) for value, branch in branches.items())


def test_restaurant_of_the_chapter_splits_on_the_misprint() -> None:
    """T2: with 0-30 the gain of Est is .585 where five columns tie at .2516 otherwise."""
    model, X, y = fitted("restaurant chapter")
    row = model.split_table(X, y, node=3).row()
    assert (row.feature, row.gain) == (
        "Est",
        pytest.approx(ORACLES["restaurant"]["gain_of_Est_at_Full_in_the_chapter"]),
    )


def test_exercise_18_2() -> None:
    """Greedy growth to depth 2 errs once in four; a tree of depth 2 without error exists: y = (x2 = x3)."""
    wanted = ORACLES["exercise_18_2"]
    for criterion in ("entropy", "gini", "train_error"):
        model, X, y = fitted("exercise_18_2", variant="binary", max_depth=2, criterion=criterion)
        assert next(iter(nested(model))) == wanted["id3_root"]
        assert 1 - model.score(X, y) == wanted["id3_depth2_train_error"]
    model, X, y = fitted("exercise_18_2", variant="binary", max_depth=2)
    assert [row.gain for row in model.split_table(X, y).rows] == pytest.approx(wanted["root_gain_bits"], abs=1e-15)
    below = model.split_table(X, y, node=1)
    assert [below.best, *below.tied] == ["x2", "x3"]
    assert below.row().gain == pytest.approx(wanted["gain_of_x2_and_x3_where_x1_is_1"], abs=1e-15)
    assert ((X["x2"] == X["x3"]) == y).all()
    whole, X, y = fitted("exercise_18_2", variant="binary")
    assert (whole.get_depth(), whole.score(X, y)) == (3, 1.0)


def test_dtl() -> None:
    """T3: "value 1 in feature 1" of the notes is of feature 2, where one row has it and the leaf is pure."""
    wanted = ORACLES["dtl"]
    model, X, y = fitted("dtl", variant="dtl")
    rows = model.split_table(X, y).rows
    assert [row.remainder for row in rows] == pytest.approx(wanted["weighted_entropy_bits"], abs=1e-15)
    assert shares_of(model) == wanted["tree"]
    assert (X["f2"] == "1").sum() == 1


def shares_of(model: ID3Classifier, node: int = 0) -> Any:
    """The tree with class shares in its leaves."""
    forest = model.forest_
    if forest.kind[node] == Test.LEAF:
        return forest.value[node].tolist()
    feature = model.schema_.features[forest.feature[node]]
    ways = zip(feature.categories, forest.node(node).children, strict=True)
    return {feature.name: {str(value): shares_of(model, child) for value, child in ways}}


def test_entropy_of_the_notes() -> None:
    """T1: .876 is printed for the shares 1/5, 2/5, 2/5 to base 3, where the formula gives .9602."""
    model = ID3Classifier(base="classes").fit([[0]] * 5, ["a", "b", "b", "c", "c"])
    by_hand = -(1 / 5 * log(1 / 5, 3) + 2 * 2 / 5 * log(2 / 5, 3))
    assert model.tree_.impurity[0] == pytest.approx(by_hand, abs=1e-15)
    assert by_hand == pytest.approx(ORACLES["dtl"]["entropy_base_3_of_1_2_2"], abs=1e-15)
    assert abs(by_hand - ORACLES["dtl"]["printed"]) > 0.08


def test_xor_is_learnt_but_not_by_who_stops_at_no_gain() -> None:
    model, X, y = fitted("xor")
    assert (model.get_depth(), model.score(X, y)) == (2, 1.0)
    assert [row.gain for row in model.split_table(X, y).rows] == [0.0, 0.0]
    model, X, y = fitted("xor", variant="generate-tree")
    assert (model.forest_.n_nodes, model.score(X, y)) == (1, 0.5)


@pytest.mark.parametrize("variant", ["id3", "generate-tree"])
def test_eight_patterns(variant: str) -> None:
    wanted = ORACLES["eight_patterns"]
    model, X, y = fitted("eight_patterns", variant=variant)
    assert nested(model) == wanted["tree"]
    assert model.tree_.impurity[0] == pytest.approx(wanted["entropy_bits"], abs=1e-15)
    assert [row.gain for row in model.split_table(X, y).rows] == pytest.approx(wanted["gain_bits"], abs=1e-15)


# -- traps


def test_a_table_of_points_has_fewer_thresholds_than_the_text_lists() -> None:
    """T6: thresholds 0 to m+1 are listed for m points; m-1 lie between two of them, and none between equal ones."""
    y = np.array([0, 1, 0, 1, 0])
    for x, values in (([1.0, 2, 3, 4, 5], 5), ([1.0, 1, 2, 2, 2], 2), ([1.0] * 5, 1)):
        model = ID3Classifier(numeric="thresholds").fit(np.array(x)[:, None], y)
        assert len(set(model.forest_.low[model.forest_.kind != Test.LEAF])) <= values - 1
        assert model.get_n_leaves() <= values
    assert model.forest_.n_nodes == 1


def test_binary_columns_have_one_test_each() -> None:
    """T7: "2^m potential splits" of m binary columns are m."""
    X = np.array(list(product((0, 1), repeat=4)))
    y = X.sum(axis=1) % 3 == 0
    rows = ID3Classifier().fit(X, y).split_table(X, y).rows
    assert len(rows) == 4
    assert all(len(row.branches) == 2 for row in rows)


def test_functions_are_fewer_than_trees() -> None:
    """T8: 2^(2^D) counts Boolean functions. Each is learnt; the trees that test a column once a path are more."""
    X = np.array(list(product((0, 1), repeat=2)))
    labellings = list(product((0, 1), repeat=4))
    trees = {export_text(ID3Classifier().fit(X, y)) for y in labellings}
    assert all(ID3Classifier().fit(X, y).predict(X).tolist() == list(y) for y in labellings)
    n_trees = 2
    for d in (1, 2):
        n_trees = 2 + d * n_trees**2  # a label, or one of d columns above two trees without it
    assert (len(trees), n_trees) == (2**2**2, 74)


def test_both_take_the_number_of_the_row() -> None:
    """A column without two equal values has the greatest gain, and on the weather the greatest ratio: .2470 > .1564."""
    X, y = parts(load_weather())
    X.insert(0, "day", np.arange(len(X)))
    id3 = ID3Classifier().fit(X, y)
    assert nested(id3) == {"day": {str(day): label for day, label in enumerate(y)}}
    ratio = DecisionTreeClassifier(criterion="gain_ratio", categorical_split="multiway", categories={"day": range(14)})
    ratio.fit(X, y)
    assert ratio.forest_.feature[0] == 0
    rows = {row.feature: row.gain_ratio for row in ratio.split_table(X, y).rows}
    assert (round(rows["day"], 4), round(rows["outlook"], 4)) == (0.2470, 0.1564)
    assert id3.predict(X.assign(day=99)).tolist() == ["yes"] * 14  # no other day is known: the majority of the root


# -- how it looks

NULL_TEXT = """\
|--- Pat = None
|   |--- class: N
|--- Pat = Some
|   |--- class: Y
|--- Pat = Full
|   |--- Est = 0-30
|   |   |--- class: N
|   |--- Est = 10-30
|   |   |--- class: Y
|   |--- Est = 30-60
|   |   |--- Bar = N
|   |   |   |--- class: N
|   |   |--- Bar = Y
|   |   |   |--- class: Y
|   |--- Est = >60
|   |   |--- class: N
|   |--- Est = 0-10 (no training rows)
|   |   |--- class: null
"""


def test_text_shows_empty_and_null_leaves() -> None:
    """Nothing says "or other": such a value ends at the node."""
    null, *_ = fitted("restaurant chapter", empty="null")
    assert export_text(null) == NULL_TEXT
    assert "weights: [0.00, 0.00] class: null" in export_text(null, show_weights=True)
    for settings, label in (({}, "N"), ({"literal_empty": "Y"}, "Y")):
        model, *_ = fitted("restaurant chapter", **settings)
        assert export_text(model) == NULL_TEXT.replace("null", label)


def test_pictures_show_empty_and_null_leaves() -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    null, *_ = fitted("restaurant chapter", empty="null", base="classes")
    texts = [box.get_text() for box in plot_tree(null, filled=True)]
    plt.close("all")
    assert "no training rows\nclass = null" in texts
    assert texts[0] == "Pat\nentropy = 1.0\nsamples = 12\nvalue = [6, 6]\nclass = N"
    assert "0-10" in texts
    html = tree_html(null)
    assert "<b>null</b><" in html
    assert "nan" not in html


def test_dumps_say_that_a_null_leaf_predicts_nothing() -> None:
    null, *_ = fitted("restaurant chapter", empty="null")
    tree = null.export_dict()
    json.dumps(tree, allow_nan=False)
    assert [node["value"] for node in tree["nodes"] if not node["rows"]] == [[None]]
    assert all(node["unseen"] == node["missing"] == node["id"] for node in tree["nodes"] if node["kind"] != "leaf")
    frame = trees_to_dataframe(null, "pandas")
    assert frame.loc[frame["Rows"] == 0, "Class"].isna().all()
    assert frame.loc[frame["Kind"] != "leaf", "Unseen"].tolist() == frame.loc[frame["Kind"] != "leaf", "ID"].tolist()


def test_impurities_of_the_weather_follow_the_base() -> None:
    model, *_ = fitted("weather", base=10)
    assert model.tree_.impurity[0] == pytest.approx(entropy([5, 9], base=10))
