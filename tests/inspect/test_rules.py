"""Trees as sets of rules: one a leaf, exclusive and exhaustive, with the predictions of the tree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError

from gputree import (
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    RandomForestClassifier,
    RuleSet,
    rules,
)
from tests.model_files import odd_penguins, penguins

MODELS: dict[str, Any] = {
    "multiway": lambda X, y: DecisionTreeClassifier(categorical_split="multiway").fit(X, y),
    "binary": lambda X, y: DecisionTreeClassifier(categorical_split="binary").fit(X, np.asarray(y) == "Adelie"),
    "drawn": lambda X, y: ExtraTreeClassifier(categorical_split="binary", random_state=1).fit(X, y),
    "means": lambda X, y: DecisionTreeRegressor(categorical_split="binary").fit(X, np.arange(len(X)) % 17),
    "weights": lambda X, y: DecisionTreeClassifier(categorical_split="multiway", class_weight="balanced").fit(X, y),
    "root alone": lambda X, y: DecisionTreeClassifier().fit(X, ["only"] * len(X)),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_row_meets_one_rule_and_gets_what_the_tree_says(name: str) -> None:
    """Also rows with missing cells, and with categories that the fit did not meet."""
    X, y = penguins()
    model = MODELS[name](X, y)
    found = rules(model)
    assert found == model.rules()
    assert len(found) == model.get_n_leaves()
    for table in (X, odd_penguins()):
        assert (found.matches(table).sum(axis=1) == 1).all()
        np.testing.assert_array_equal(found.predict(table), model.predict(table))
        if hasattr(model, "predict_proba"):
            np.testing.assert_array_equal(found.predict_proba(table), model.predict_proba(table))
    assert RuleSet.from_text(found.to_text()) == found == RuleSet.from_text(found.to_text(80))
    assert sum(rule.weight or 0 for rule in found) == pytest.approx(found.weight)
    assert found.coverage.sum() == pytest.approx(1.0)


def test_a_condition_a_column_says_what_missing_values_and_others_do() -> None:
    """By hand: outlook has three declared branches, Rain the heaviest; wind met no missing value."""
    outlook = pd.Categorical(["Sun"] * 3 + ["Rain"] * 6 + ["Fog"] * 2, categories=["Sun", "Rain", "Fog"], ordered=True)
    wind = [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1.0, 2.0]
    y = ["out", "out", "out", "in", "in", "out", "out", "out", "in", "in", "in"]
    X = pd.DataFrame({"outlook": outlook, "wind": wind})
    found = DecisionTreeClassifier(categorical_split="multiway", criterion="gain_ratio").fit(X, y).rules()
    rain = "(outlook not in {Sun, Fog} or missing)"
    assert [str(rule) for rule in found] == [
        "if (outlook=Sun) then out",
        f"if {rain} and (wind<=2.5) then in",
        f"if {rain} and (2.5<wind<=5.5 or missing) then out",  # the heavier side, twice
        f"if {rain} and (wind>5.5) then in",
        "if (outlook=Fog) then in",
    ]


def test_missing_values_alone_on_one_side() -> None:
    X = pd.DataFrame({"c": np.array(["a", None, "b", None] * 30, object)})
    found = DecisionTreeClassifier().fit(X, [0, 1] * 60).rules()
    assert [str(rule) for rule in found] == ["if (c is known) then 0", "if (c is missing) then 1"]
    X = pd.DataFrame({"x": [1.0, np.nan, 2.0, np.nan] * 30})
    found = DecisionTreeClassifier().fit(X, [0, 1] * 60).rules()
    assert [str(rule) for rule in found] == ["if (x is known) then 0", "if (x is missing) then 1"]
    assert found.predict([[np.inf], [np.nan], [-np.inf]]).tolist() == [0, 1, 0]


def test_rows_that_c45_parts_meet_no_condition_on_what_they_miss() -> None:
    """A missing value goes down every branch: no rule says so, and the default is what the root says."""
    X = pd.DataFrame({"c": pd.Categorical(["a", "b", "b", None] * 5), "x": np.arange(20.0)})
    model = C45Classifier(pruning=None).fit(X, [0, 1, 1, 1] * 5)
    with pytest.warns(UserWarning, match="rows, at least 5 of the 20 of the fit, may meet no rule"):
        found = model.rules()
    assert C45Classifier().fit(X.dropna(), [0, 1, 1] * 5).rules().default is not None  # without a warning
    assert found.matches(X).sum(axis=1).tolist() == [1, 1, 1, 0] * 5
    assert found.predict(X).tolist() == [0, 1, 1, 1] * 5
    assert found.default is not None
    assert found.default.outcome == 1


def boolean(f: Any, d: int) -> tuple[pd.DataFrame, list[bool]]:
    cells = [[bool(i >> (d - 1 - k) & 1) for k in range(d)] for i in range(2**d)]
    return pd.DataFrame(cells, columns=[f"x{k + 1}" for k in range(d)]), [bool(f(*row)) for row in cells]


def test_the_formula_of_a_boolean_tree() -> None:
    """Nilsson, chapter 6, 6.1 and 6.5: x1x2 + x3x4 takes seven leaves, of which three say yes."""
    X, y = boolean(lambda a, b, c, d: (a and b) or (c and d), 4)
    model = DecisionTreeClassifier(criterion="entropy").fit(X, y)
    found = rules(model)
    assert len(found) == 7
    assert sorted(found.dnf(True).split(" + "), key=len) == ["x1 x2", "~x1 x3 x4", "x1 ~x2 x3 x4"]
    products = found.dnf(True).split(" + ")
    for row, label in zip(X.itertuples(index=False), y, strict=True):
        literals = {f"x{i + 1}": v for i, v in enumerate(row)} | {f"~x{i + 1}": not v for i, v in enumerate(row)}
        assert any(all(literals[name] for name in product.split()) for product in products) == label


def test_the_formula_of_the_papaya_tree() -> None:
    """Shalev-Shwartz and Ben-David, chapter 18: tasty if the colour is in its range and it gives way slightly."""
    X, y = boolean(lambda color, soft: color and soft, 2)
    found = DecisionTreeClassifier().fit(X, y).rules()
    assert len(found) == 3
    assert found.dnf(True) == "x1 x2"
    assert found.dnf("no such") == "0"
    assert DecisionTreeClassifier().fit(X, [True] * 4).rules().dnf(True) == "1"


def test_the_restaurant_in_rules() -> None:
    """Procaccia, lecture 16: a table whose rules, in any order, wait for a table as the guests did."""
    table = json.loads((Path(__file__).parents[1] / "data" / "c45_trees.json").read_text())["tables"]["restaurant_aima"]
    frame = pd.DataFrame(table["rows"], columns=[c["name"] for c in table["columns"]])
    y = frame.pop(table["target"])
    found = DecisionTreeClassifier(categorical_split="multiway", criterion="entropy").fit(frame, y).rules()
    assert found.predict(frame).tolist() == y.tolist()
    shuffled = RuleSet(found.rules[::-1], found.features, found.default, found.classes, found.dtype)
    assert shuffled.predict(frame).tolist() == y.tolist()
    assert "if (Pat=Some or missing) then Y" not in str(found)
    assert "if (Pat=Some) then Y" in str(found)


def test_numbers() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = DecisionTreeRegressor(max_depth=5).fit(X, y)
    found = model.rules()
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
    assert np.isnan(found.confidence).all()
    assert found.measured(X, y).weight == len(y)
    assert RuleSet.from_text(str(found)) == found


def test_what_has_no_rules_is_refused() -> None:
    X, y = penguins()
    forest = RandomForestClassifier(2, categorical_split="multiway").fit(X, y)
    with pytest.raises(TypeError, match="is a forest and no tree of gputree; give one of its trees"):
        rules(forest)
    with pytest.raises(NotFittedError):
        rules(DecisionTreeClassifier())
    two = DecisionTreeRegressor().fit(np.arange(8).reshape(-1, 1), np.arange(16).reshape(8, 2))
    with pytest.raises(
        ValueError, match="the tree has 2 outputs, and a rule has one outcome; fit one output at a time"
    ):
        rules(two)
