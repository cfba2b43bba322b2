"""Tables and dicts of trees say all that a prediction needs, and what they say is the tree."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import load_diabetes, load_iris, load_linnerud

import gputree
from gputree.datasets import load_penguins
from gputree.inspect.dump import export_dict, trees_to_dataframe
from tests.inspect.chain import chain


def penguins() -> tuple[Any, Any]:
    """Numbers, texts and missing cells of both, and a column of booleans."""
    table = load_penguins().to_frame("pandas")
    X = table.drop(columns="species").assign(heavy=table["body_mass_g"] > 4200)
    return X, table["species"]


def zoo(seed: int) -> tuple[Any, Any]:
    """Random categories, booleans and numbers with holes, and two classes."""
    rng = np.random.default_rng(seed)
    n = 300
    X = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue", "grey", None], n),
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L", "XL"], ordered=True),
            "wild": rng.random(n) < 0.5,
            "length": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(1)),
        }
    )
    y = (X["colour"].isin(["red", "blue"]) ^ (X["length"].fillna(1) > 0)) | (rng.random(n) < 0.1)
    return X, y.to_numpy()


def model_of(name: str) -> tuple[Any, Any]:
    """A fitted tree of some kind, and rows to predict, with missing cells and values that the fit never met."""
    if name.startswith("penguins"):
        X, y = penguins()
        split = "multiway" if name.endswith("multiway") else "binary"
        if split == "binary":
            X, y = X[y != "Gentoo"], y[y != "Gentoo"]
        new = X.assign(island=X["island"].where(X["year"] != 2008, "Atlantis"))
        return gputree.DecisionTreeClassifier(categorical_split=split, max_depth=5).fit(X, y), new
    if name.startswith("zoo"):
        X, y = zoo(len(name))
        settings = {"zoo": {}, "zoo multiway": {"categorical_split": "multiway"}, "zoo random": {"splitter": "random"}}
        weight = None if name == "zoo" else np.arange(len(y)) % 3 * 0.5
        new = X.assign(colour=X["colour"].where(X["length"] > -1, "pink"))
        return gputree.DecisionTreeClassifier(**settings[name]).fit(X, y, sample_weight=weight), new
    load = {"iris": load_iris, "diabetes": load_diabetes, "linnerud": load_linnerud}[name]
    X, y = load(return_X_y=True)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    kind = gputree.DecisionTreeClassifier if name == "iris" else gputree.DecisionTreeRegressor
    return kind(max_depth=6).fit(X, y), X


NAMES = ["penguins", "penguins multiway", "zoo", "zoo multiway", "zoo random", "iris", "diabetes", "linnerud"]


def cells(rows: Any) -> list[list[Any]]:
    """Rows as lists of Python values, None where missing."""
    columns = [rows[c].tolist() for c in rows.columns] if isinstance(rows, pd.DataFrame) else rows.T.tolist()
    return [[None if v is None or v != v else v for v in row] for row in zip(*columns, strict=True)]


def walk(tree: dict[str, Any], row: list[Any]) -> dict[str, Any]:
    """The leaf of a row, from the dict alone."""
    node = tree["nodes"][0]
    while node["kind"] != "leaf":
        value = row[node["feature"]]
        if value is None:
            child = node["missing"]
        elif node["kind"] == "known":
            child = node["children"][0]
        elif node["kind"] == "threshold":
            child = node["children"][0 if value <= float(node["threshold"]) else 1]
        else:
            lists = enumerate(node["categories"])
            child = next((node["children"][branch] for branch, own in lists if value in own), node["unseen"])
        node = tree["nodes"][child]
    return node


@pytest.mark.parametrize("name", NAMES)
def test_a_dict_predicts_as_its_model(name: str) -> None:
    model, new = model_of(name)
    tree = json.loads(json.dumps(export_dict(model), allow_nan=False))
    leaves = [walk(tree, row) for row in cells(new)]
    assert [leaf["id"] for leaf in leaves] == model.apply(new).tolist()
    if is_classifier(model):
        (output,) = tree["outputs"]
        classes = np.array(output["classes"], output["dtype"])
        np.testing.assert_array_equal([leaf["value"][0] for leaf in leaves], model.predict_proba(new))
        best = [int(np.argmax(leaf["value"][0])) for leaf in leaves]
        np.testing.assert_array_equal(classes[best], model.predict(new))
    else:
        predicted = np.array([leaf["value"] for leaf in leaves])
        np.testing.assert_array_equal(predicted.squeeze(), model.predict(new).squeeze())


@pytest.mark.parametrize("name", NAMES)
def test_a_frame_has_the_nodes_of_the_dict(name: str) -> None:
    model, _ = model_of(name)
    tree, frame = export_dict(model), trees_to_dataframe(model, "polars")
    columns = [feature["name"] for feature in tree["features"]]
    assert frame["ID"].to_list() == [f"0-{node['id']}" for node in tree["nodes"]]
    for row, node in zip(frame.iter_rows(named=True), tree["nodes"], strict=True):
        assert row["Tree"] == 0
        assert (row["Node"], row["Depth"], row["Kind"]) == (node["id"], node["depth"], node["kind"])
        assert row["Parent"] == (None if node["parent"] is None else f"0-{node['parent']}")
        assert (row["Rows"], row["Weight"], row["Impurity"]) == (node["rows"], node["weight"], node["impurity"])
        if node["parent"] is not None:
            assert tree["nodes"][node["parent"]]["children"][row["Branch"]] == node["id"]
        if node["kind"] == "leaf":
            empty = ("Feature", "Split", "Categories", "Children", "Missing", "Unseen")
            assert {row[column] for column in empty} == {None}
            continue
        assert row["Feature"] == columns[node["feature"]]
        assert row["Split"] == node.get("threshold")
        assert (row["Categories"] and json.loads(row["Categories"])) == node.get("categories")
        assert row["Children"].split() == [f"0-{child}" for child in node["children"]]
        assert row["Missing"] == f"0-{node['missing']}"
        assert row["MetMissing"] == node["met_missing"]
        assert (row["Gain"], row["Score"]) == (node["gain"], node["score"])
        if node["kind"] == "categories":
            assert row["Unseen"] == f"0-{node['unseen']}"


def test_gains_add_up_to_the_importances() -> None:
    model, _ = model_of("zoo")
    frame = trees_to_dataframe(model, "pandas")
    gain = frame.groupby("Feature")["Gain"].sum().reindex(model.schema_.names).fillna(0.0)
    np.testing.assert_allclose(gain / gain.sum(), model.feature_importances_, atol=1e-12)


def test_a_worked_tree() -> None:
    X = pd.DataFrame({"sky": ["sun", "sun", "rain", "rain", None, None], "wind": [1.0, 2.0, 1.0, 2.0, 1.0, 2.0]})
    y = ["go", "go", "stay", "stay", "go", "stay"]
    frame = trees_to_dataframe(gputree.DecisionTreeClassifier().fit(X, y, sample_weight=[1, 1, 1, 1, 2, 2]), "pandas")
    wanted = """
    ID   Parent Branch Kind        Feature  Categories         Children  Missing  Unseen  Rows  Weight  Class Share_go
    0-0  -      -1     categories  sky      [["sun"],["rain"]] 0-1+0-2   0-2      0-2     6     8.0     go    0.5
    0-1  0-0    0      leaf        -        -                  -         -        -       2     2.0     go    1.0
    0-2  0-0    1      threshold   wind     -                  0-3+0-4   0-3      -       4     6.0     stay  0.33
    0-3  0-2    0      known       sky      -                  0-5+0-6   0-6      0-5     2     3.0     go    0.67
    0-4  0-2    1      leaf        -        -                  -         -        -       2     3.0     stay  0.0
    0-5  0-3    0      leaf        -        -                  -         -        -       1     1.0     stay  0.0
    0-6  0-3    1      leaf        -        -                  -         -        -       1     2.0     go    1.0
    """
    names, *rows = [line.split() for line in wanted.strip().splitlines()]
    found = frame[names].astype({"Branch": str}).round(2).astype(object).fillna("-").astype(str)
    assert found.map(lambda text: text.replace(", ", ",").replace(" ", "+")).to_numpy().tolist() == rows
    assert frame["Split"].dropna().tolist() == [1.5]
    assert frame["MetMissing"].tolist() == [True, False, False, True, False, False, False]
    np.testing.assert_allclose(frame["Impurity"], [1 / 2, 0, 4 / 9, 4 / 9, 0, 0, 0])  # 1 - sum of squared shares
    np.testing.assert_allclose(frame["Gain"], [1 / 2 - 6 / 8 * 4 / 9, 0, (6 - 3) / 8 * 4 / 9, 3 / 8 * 4 / 9, 0, 0, 0])


def test_three_libraries_have_the_same_frame() -> None:
    model, _ = model_of("zoo multiway")
    pandas, polars, arrow = [trees_to_dataframe(model, library) for library in ("pandas", "polars", "pyarrow")]
    assert isinstance(pandas, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    assert isinstance(arrow, pa.Table)
    assert list(pandas.columns) == polars.columns == arrow.column_names
    assert polars.to_dict(as_series=False) == arrow.to_pydict()
    assert pandas["Share_True"].tolist() == polars["Share_True"].to_list()
    assert pandas["Parent"].isna().tolist() == [value is None for value in polars["Parent"]]
    assert trees_to_dataframe(model).equals(pandas)
    assert (str(pandas["Rows"].dtype), str(pandas["MetMissing"].dtype)) == ("int64", "bool")
    with pytest.raises(ValueError, match="library='dask' is not supported"):
        trees_to_dataframe(model, "dask")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("labels", "kind", "plain"),
    [
        ([3, 5], pl.Int64, [3, 5]),
        ([0.0, 2.0], pl.Float64, [0.0, 2.0]),
        ([False, True], pl.Boolean, [False, True]),
        (["a", "b"], pl.String, ["a", "b"]),
        (np.array([2, 2**63], np.uint64), pl.UInt64, [2, 2**63]),
        (np.array(["2020-01-01", "2021-01-01"], "M8[D]"), pl.String, ["2020-01-01", "2021-01-01"]),
        (np.array(["a", "b"], object), pl.String, ["a", "b"]),
    ],
)
def test_labels_keep_their_type(labels: Any, kind: Any, plain: Any) -> None:
    X, y = np.arange(4.0)[:, None], np.repeat(np.asarray(labels), 2)
    model = gputree.DecisionTreeClassifier().fit(X, y)
    frame = trees_to_dataframe(model, "polars")
    assert frame["Class"].dtype == kind
    assert {f"Share_{label}" for label in model.classes_} <= set(frame.columns)
    (output,) = export_dict(model)["outputs"]
    assert output["classes"] == plain
    assert np.dtype(output["dtype"]) == model.classes_.dtype
    json.dumps(output, allow_nan=False)


def test_several_outputs_have_numbered_columns() -> None:
    X, _ = load_iris(return_X_y=True)
    Y = np.stack([np.where(X[:, 0] > 5.5, "big", "small"), np.where(X[:, 3] > 1, "wide", "thin")], axis=1)
    model = gputree.DecisionTreeClassifier(max_depth=3).fit(X, Y)
    frame, tree = trees_to_dataframe(model, "polars"), export_dict(model)
    shares = [f"Share_{o}_{label}" for o, labels in enumerate(model.classes_) for label in labels]
    assert frame.columns[-6:] == ["Class_0", *shares[:2], "Class_1", *shares[2:]]
    leaves = model.apply(X)
    np.testing.assert_array_equal(frame["Class_1"].to_numpy()[leaves], model.predict(X)[:, 1])
    np.testing.assert_array_equal(frame[shares[2]].to_numpy()[leaves], model.predict_proba(X)[1][:, 0])
    assert [output["classes"] for output in tree["outputs"]] == [["big", "small"], ["thin", "wide"]]
    assert np.shape(tree["nodes"][0]["value"]) == (2, 2)
    model = gputree.DecisionTreeRegressor(max_depth=2).fit(*load_linnerud(return_X_y=True))
    frame = trees_to_dataframe(model, "polars")
    assert frame.columns[-3:] == ["Value_0", "Value_1", "Value_2"]
    np.testing.assert_array_equal(frame.select(pl.col("^Value_.*$")).to_numpy(), model.forest_.value)


def test_infinite_thresholds_are_written_as_text() -> None:
    model = gputree.DecisionTreeRegressor().fit([[-np.inf], [0.0], [np.nan]], [0.0, 1.0, 5.0])
    text = json.dumps(export_dict(model), allow_nan=False)
    found = [node for node in json.loads(text)["nodes"] if node["kind"] != "leaf"]
    assert {node.get("threshold") for node in found} == {None, "-inf"}
    known = next(node for node in found if node["kind"] == "known")
    assert known["missing"] == known["children"][1]
    assert known["met_missing"]


def test_columns_tell_what_they_are() -> None:
    model, _ = model_of("zoo")
    features = export_dict(model)["features"]
    assert features[1] == {"name": "size", "kind": "categorical", "categories": ["S", "M", "L", "XL"], "declared": True}
    assert features[2]["categories"] == [False, True]
    assert features[3] == {"name": "length", "kind": "numeric"}
    assert not features[0]["declared"]


def test_a_root_alone() -> None:
    model = gputree.DecisionTreeRegressor().fit([[1.0], [2.0]], [3.0, 3.0])
    (node,) = export_dict(model)["nodes"]
    assert node == {
        **{"id": 0, "parent": None, "depth": 0, "kind": "leaf", "rows": 2, "weight": 2.0, "impurity": 0.0},
        "value": [3.0],
    }
    frame = trees_to_dataframe(model, "pandas")
    assert frame.shape[0] == 1
    assert frame.loc[0, "Branch"] == -1


def test_depth_costs_no_recursion() -> None:
    model = chain(20_000)
    tree = json.loads(json.dumps(export_dict(model)))
    assert walk(tree, [4_321.5])["value"] == [4_322.0]
    assert walk(tree, [None])["id"] == model.apply([[np.nan]])[0]
    assert trees_to_dataframe(model, "polars")["Depth"].max() == 20_000


def test_what_is_no_fitted_tree_is_refused() -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.tree import DecisionTreeClassifier

    for export in (export_dict, trees_to_dataframe):
        with pytest.raises(TypeError, match="a DecisionTreeClassifier is no tree of gputree"):
            export(DecisionTreeClassifier())
        with pytest.raises(TypeError, match="the class ExtraTreeRegressor is no tree"):
            export(gputree.ExtraTreeRegressor)
        with pytest.raises(NotFittedError):
            export(gputree.DecisionTreeClassifier())


def test_the_trees_of_a_forest_in_one_frame() -> None:
    """Those of each tree one below the other; without y no values."""
    X, y = load_iris(return_X_y=True)
    frames = []
    for model in (gputree.RandomForestClassifier(3), gputree.BaggingTreeClassifier(gputree.ID3Classifier(), 3)):
        frame = model.fit(X.astype(int), y).trees_to_dataframe("pandas")
        for t, tree in enumerate(model.estimators_):
            own, alone = frame[frame.Tree == t].reset_index(drop=True), tree.trees_to_dataframe("pandas")
            ids = ["Tree", "ID", "Parent", "Children", "Missing", "Unseen"]
            pd.testing.assert_frame_equal(own.drop(columns=ids), alone.drop(columns=ids))
            assert own.ID.tolist() == [f"{t}-{n}" for n in alone.Node]
        frames.append(frame)
    assert frames[0].Tree.nunique() == 3
    assert "Value" not in gputree.IsolationForest(n_estimators=2).fit(X).trees_to_dataframe("pandas")
    with pytest.raises(TypeError, match="the class RandomForestClassifier is no tree of gputree"):
        trees_to_dataframe(gputree.RandomForestClassifier)
