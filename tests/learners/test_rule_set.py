"""Sets of rules: predictions, votes, measures, frames of every kind."""

from __future__ import annotations

import copy
import pickle
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from gputree import DecisionTreeClassifier, RuleSet
from gputree.core.conditions import Interval, Subset
from gputree.core.rules import Rule
from gputree.core.schema import Feature, Kind

GOING_OUT = """
column Work in {False, True}
column Outlook in {Overcast, Rainy, Sunny}
column wind
class "<U7" in {cinema, go out, stay in}
conflict first

if (Work=True) then stay in [weight 4.0, confidence 0.9]
if (Outlook=Rainy) and (wind>3.0 or missing) then cinema [weight 2.0, confidence 0.5]
if (Outlook not in {Sunny} or missing) then stay in [confidence 0.25]
else go out
"""
TABLE = {
    "Work": [True, False, False, False, False, False],
    "Outlook": ["Sunny", "Rainy", "Rainy", "Rainy", None, "Hail"],
    "wind": [1.0, 3.5, 2.0, None, 9.0, 9.0],
}
ANSWERS = ["stay in", "cinema", "stay in", "cinema", "stay in", "stay in"]
FRAMES: dict[str, Any] = {
    "pandas": lambda: pd.DataFrame(TABLE),
    "pandas, categories": lambda: pd.DataFrame(TABLE).astype({"Outlook": "category"}),
    "polars": lambda: pl.DataFrame(TABLE),
    "polars, categories": lambda: pl.DataFrame(TABLE).with_columns(pl.col("Outlook").cast(pl.Categorical)),
    "pyarrow": lambda: pa.table(TABLE),
    "array": lambda: pd.DataFrame(TABLE).to_numpy(object),
}


def going_out(conflict: str = "first") -> RuleSet:
    return RuleSet.from_text(GOING_OUT.replace("conflict first", f"conflict {conflict}"))


@pytest.mark.parametrize("kind", FRAMES)
def test_the_first_rule_decides_in_every_kind_of_table(kind: str) -> None:
    """By hand: unknown weather is not sunny, no wind given is enough, missing weather meets the third rule."""
    found = going_out()
    X = FRAMES[kind]()
    assert found.predict(X).tolist() == ANSWERS
    assert found.predict(X).dtype == np.dtype("<U7")
    assert found.apply(X).tolist() == [0, 1, 2, 1, 2, 2]
    assert found.matches(X).tolist() == [
        [True, False, False],
        [False, True, True],
        [False, False, True],
        [False, True, True],
        [False, False, True],
        [False, False, True],
    ]
    assert found.conflicts(X).tolist() == [False, True, False, True, False, False]


def test_votes_are_weighted_by_confidence() -> None:
    """In rows 1 and 3 cinema has .5 and staying in .25; without a rule the default decides."""
    found, X = going_out("vote"), pd.DataFrame(TABLE)
    assert found.predict(X).tolist() == ANSWERS
    np.testing.assert_allclose(found.predict_proba(X)[1], [2 / 3, 0, 1 / 3])
    sunny = pd.DataFrame({"Work": [False], "Outlook": ["Sunny"], "wind": [0.0]})
    assert found.predict(sunny).tolist() == ["go out"]
    assert found.predict_proba(sunny).tolist() == [[0, 1, 0]]
    other = RuleSet.from_text(GOING_OUT.replace("conflict first", "conflict vote").replace("0.5]", "0.2]"))
    assert other.predict(X).tolist() == ["stay in"] * 6


def test_only_the_columns_that_rules_ask_for_are_read() -> None:
    """Others may be missing, of other types, or come in another order."""
    X = pd.DataFrame({"when": pd.Timestamp("2020-01-01"), **dict(reversed(TABLE.items()))})
    found = going_out()
    assert found.predict(X).tolist() == ANSWERS
    assert (
        RuleSet(found.rules[:1], found.features, found.default, found.classes, found.dtype).predict(X[["Work"]]).size
        == 6
    )
    with pytest.raises(ValueError, match=r"the columns of X are not those of the fit .*missing: 'Outlook'"):
        found.predict(X.drop(columns="Outlook"))


def test_without_a_default_a_row_without_a_rule_is_refused() -> None:
    found = RuleSet.from_text("if (x<=1) then 1.5 if (x>2) then 2.5")
    assert found.predict([[0.0], [3.0]]).tolist() == [1.5, 2.5]
    with pytest.raises(
        ValueError, match=r"row 1 \(counted from 0\) meets no rule, and the set has no default; add one"
    ):
        found.predict([[0.0], [1.5], [3.0]])
    with pytest.raises(ValueError, match="these rules predict numbers, and have no classes; call predict"):
        found.predict_proba([[0.0]])
    with pytest.raises(ValueError, match="these rules predict numbers, and have no classes"):
        _ = found.classes_


def test_measures_by_hand() -> None:
    """Ten rows, two rules: a is 1 in rows 0-5 (four of them yes), b in rows 4-7 (one yes), and rows 8, 9 are no."""
    X = pd.DataFrame({"a": [1.0] * 6 + [0.0] * 4, "b": [0.0] * 4 + [1.0] * 4 + [0.0] * 2})
    y = np.array(["yes"] * 3 + ["no", "yes", "no", "no", "no", "no", "no"])
    found = RuleSet.from_text("if (a>0.5) then yes if (b>0.5) then no else no").measured(X, y)
    assert [rule.weight for rule in found] == [6, 4]
    assert [rule.shares for rule in found] == [(2 / 6, 4 / 6), (3 / 4, 1 / 4)]
    assert found.default == Rule((), "no", 2.0, 1.0, (1.0, 0.0))
    assert (found.weight, found.shares) == (10.0, (0.6, 0.4))
    np.testing.assert_allclose(found.coverage, [0.6, 0.4])
    np.testing.assert_allclose(found.support, [0.4, 0.3])
    np.testing.assert_allclose(found.confidence, [4 / 6, 3 / 4])
    np.testing.assert_allclose(found.lift, [4 / 6 / 0.4, 3 / 4 / 0.6])
    assert RuleSet.from_text(found.to_text()) == found
    doubled = RuleSet.from_text("if (a>0.5) then yes if (b>0.5) then no else no").measured(X, y, np.full(10, 2.0))
    assert [rule.weight for rule in doubled] == [12, 8]
    with pytest.raises(ValueError, match="y holds 'perhaps', which is none of the 2 known classes"):
        found.measured(X, np.array(["perhaps"] * 10))


def test_rules_of_a_vote_that_no_row_meets_keep_their_confidence() -> None:
    text = "if (a<=1) then x [confidence 0.5] if (a>100) then y [confidence 0.25] conflict vote else x"
    found = RuleSet.from_text(text).measured([[0.0], [1.0], [2.0]], ["x", "y", "x"])
    assert [(rule.weight, rule.confidence) for rule in found] == [(2.0, 0.5), (0.0, 0.25)]
    assert found.predict([[200.0]]).tolist() == ["y"]
    assert replace(found, conflict="first").measured([[0.0]], ["y"]).rules[1].confidence is None


def test_scores_are_accuracy_and_r2() -> None:
    found = RuleSet.from_text("if (a<=1) then x else y")
    assert found.score([[0.0], [1.0], [2.0], [3.0]], ["x", "y", "y", "z"]) == 0.5
    assert found.score([[0.0], [1.0]], ["x", "y"], [3, 1]) == 0.75
    numbers = RuleSet.from_text("if (a<=1) then 1.0 else 3.0")
    assert numbers.score([[0.0], [1.0], [2.0]], [1.0, 1.0, 4.0]) == pytest.approx(1 - 1 / 6)


def test_weights_that_add_up_to_too_much() -> None:
    found = RuleSet.from_text("if (a<=1) then x else y")
    with pytest.raises(ValueError, match="the weights of the rows add up to more than a float holds; multiply them"):
        found.measured([[0.0], [1.0]], ["x", "y"], [1e308, 1e308])
    model = DecisionTreeClassifier().fit([[0.0], [1.0]], ["x", "y"], [1e308, 1e308])
    with pytest.raises(ValueError, match="the weights of the rows add up to more than a float holds; multiply them"):
        model.rules()


def test_measures_that_are_not_known_are_nan() -> None:
    found = going_out()
    assert np.isnan(found.coverage).all()
    assert np.isnan(found.lift).all()
    assert np.isnan(found.confidence).tolist() == [False, False, False]


def test_votes_need_confidences_and_classes() -> None:
    rule = Rule((Interval("x", high=1.0),), "a")
    with pytest.raises(ValueError, match="conflict='vote' needs the confidence of every rule"):
        RuleSet((rule,), (Feature("x"),), None, ("a",), conflict="vote")
    with pytest.raises(ValueError, match="conflict='vote' needs classes, and these rules predict numbers"):
        RuleSet((), (Feature("x"),), conflict="vote")
    with pytest.raises(ValueError, match="conflict='last' must be one of 'first', 'vote'"):
        RuleSet((), (Feature("x"),), None, ("a",), conflict="last")


X, C = Feature("x"), Feature("c", Kind.CATEGORICAL, ("a", "b"))
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"rules": [Rule((Interval("z", 1.0),), "p")]}, "rule 0: column 'z' is none of 'x', 'c'"),
    ({"rules": [Rule((Interval("x", 1.0), Interval("x", None, 2.0)), "p")]}, "column 'x' has several conditions; join"),
    ({"rules": [Rule((Interval("c", 1.0),), "p")]}, "column 'c' is categorical, so Interval"),
    ({"rules": [Rule((Subset("x", ("a",)),), "p")]}, "column 'x' is numeric, so Subset"),
    ({"rules": [Rule((Subset("c", ("z",)),), "p")]}, "'z' is none of the categories of column 'c': 'a', 'b'"),
    ({"rules": [Rule((Subset("c", ("a", "a")),), "p")]}, "have 'a' twice; give each once"),
    ({"rules": [Rule((Subset("c"),), "p")]}, "no value meets Subset"),
    ({"rules": [Rule((Subset("c", others=True, missing=True),), "p")]}, "every value meets Subset"),
    ({"rules": [Rule((Interval("x", 2.0, 2.0),), "p")]}, "no value meets Interval"),
    ({"rules": [Rule((Interval("x", 2.0, 2.0, True),), "p")]}, "no number meets Interval"),
    ({"rules": [Rule((Interval("x", missing=True),), "p")]}, "every value meets Interval"),
    ({"rules": [Rule((Interval("x", 1.0, np.inf),), "p")]}, "every number is at most the bound inf"),
    ({"rules": [Rule((Interval("x", np.nan),), "p")]}, "must be numbers, or None"),
    ({"rules": [Rule((), "q"), Rule((), "r")]}, "rule 1: outcome 'r' is none of the classes 'p', 'q'"),
    ({"rules": [Rule((), "p")], "classes": None}, "outcome 'p' is no number, and there are no classes"),
    ({"rules": [Rule((), "p", confidence=7.0)]}, "confidence=7.0 must be a number from 0 to 1"),
    ({"rules": [Rule((), "p", weight=np.inf)]}, "weight=inf must be a number of at least 0"),
    ({"rules": [Rule((), "p", shares=(0.6, 0.6))]}, "shares 0.6, 0.6 must be 2 numbers, one a class"),
    ({"rules": [Rule((), "p", shares=(1.0,))]}, "shares 1.0 must be 2 numbers"),
    ({"default": Rule((), "r")}, "the default: outcome 'r'"),
    ({"default": Rule((Interval("x", 1.0),), "p")}, "the default has conditions"),
    ({"weight": -1.0}, "weight=-1.0 must be a number of at least 0"),
    ({"shares": (1e308, 1e308)}, "must be 2 numbers"),
    ({"shares": (1.5, -0.5)}, "shares 1.5, -0.5 must be 2 numbers"),
    ({"classes": ("p", "p")}, "the classes have 'p' twice"),
    ({"classes": ("p", ["q"])}, "the classes hold ['q'] of type list; give text, numbers and booleans"),
    ({"rules": [Rule((), ["p"])]}, "rule 0: outcome ['p'] is none of the classes 'p', 'q'"),
    ({"rules": [Rule((Subset("c", (["a"],)),), "p")]}, "hold ['a'] of type list; give text"),
    ({"rules": [Rule((), "p", shares=((0.5,), (0.2, 0.3)))]}, "shares (0.5,), (0.2, 0.3) must be 2 numbers"),
    ({"classes": None, "shares": (0.5, 0.5)}, "shares 0.5, 0.5 are those of classes, and there are none; leave"),
    ({"features": (X, X)}, "the columns have 'x' twice"),
    ({"classes": ("p", "long"), "dtype": "<U1"}, "dtype='<U1' does not hold the classes 'p', 'long'"),
]


@pytest.mark.parametrize(("given", "message"), WRONG, ids=[message for _, message in WRONG])
def test_rules_that_do_not_fit_their_table_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        RuleSet(**{"rules": (), "features": (X, C), "classes": ("p", "q"), **given})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("if (x<=1) then a [confidence 7]", "rule 0: confidence=7.0 must be a number from 0 to 1"),
        ("if (3<x<=2) then a", "rule 0: no value meets Interval"),
        ("if (c in {}) then a", "rule 0: no value meets Subset"),
        ("if (x<=1) then a else b [shares 0.6 0.6]", "the default: shares 0.6, 0.6 must be 2 numbers"),
        ('class "<U1" in {abc}', "dtype='<U1' does not hold the classes 'abc'"),
        ("conflict vote if (x<=1) then a", "needs the confidence of every rule, and rule 0 has none; give one, leave"),
    ],
)
def test_a_text_is_checked_in_the_same_way(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        RuleSet.from_text(text)


def test_many_classes_are_measured_as_by_a_loop() -> None:
    """Rules of 30 classes: weights by class, and rows whose rules disagree."""
    rng = np.random.default_rng(0)
    rules = tuple(Rule((Interval("x", a, a + 9.0),), int(rng.integers(30))) for a in rng.integers(0, 90, 40).tolist())
    found = RuleSet(rules, (Feature("x"),), Rule((), 0), tuple(range(30)))
    rows, y, weight = rng.integers(0, 101, (500, 1)), rng.integers(0, 30, 500), rng.integers(1, 4, 500).astype(float)
    met, measured = found.matches(rows), found.measured(rows, y, weight)
    for rule, own in zip(measured, met.T, strict=True):
        counts = [float(weight[own & (y == c)].sum()) for c in range(30)]
        assert (rule.weight, rule.shares) == (sum(counts), tuple(n / sum(counts) for n in counts))
    outcomes = [{rule.outcome for rule, holds in zip(rules, row, strict=True) if holds} for row in met]
    assert found.conflicts(rows).tolist() == [len(own) > 1 for own in outcomes]


def test_sparse_tables() -> None:
    X = np.random.default_rng(0).poisson(0.5, (100, 5)).astype(float)
    y = (X[:, 1] > X[:, 3]).astype(int)
    found = DecisionTreeClassifier().fit(X, y).rules()
    assert found.predict(scipy.sparse.csr_matrix(X)).tolist() == found.predict(X).tolist() == y.tolist()


def test_copies_are_equal_and_predict_the_same() -> None:
    found, X = going_out("vote"), pd.DataFrame(TABLE)
    found.predict(X)
    for again in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found), RuleSet.from_text(str(found))):
        assert again == found
        assert again.predict(X).tolist() == found.predict(X).tolist()
    assert found != going_out()
    assert len(found) == 3
    assert [rule.outcome for rule in found.of("stay in")] == ["stay in", "stay in"]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_has_a_row_a_rule_and_one_for_the_default(library: Any) -> None:
    frame = going_out().to_frame(library)
    rows = frame.to_pylist() if library == "pyarrow" else pd.DataFrame(frame, columns=frame.columns).to_dict("records")
    assert [row["Rule"] for row in rows] == [0, 1, 2, -1]
    assert [row["Outcome"] for row in rows] == ["stay in", "cinema", "stay in", "go out"]
    assert rows[1]["Conditions"] == "(Outlook=Rainy) and (wind>3.0 or missing)"
    assert [row["Length"] for row in rows] == [1, 2, 1, 0]
    assert [row["Confidence"] for row in rows][:3] == [0.9, 0.5, 0.25]


def test_labels_keep_their_type() -> None:
    for labels in ([3, 7], [True, False], [2.0, 4.0], ["b", "a"]):
        y = np.array(labels * 20)
        model = DecisionTreeClassifier().fit(np.arange(40).reshape(-1, 1) % 2, y)
        found = RuleSet.from_text(model.rules().to_text())
        assert found.predict([[0], [1]]).dtype == y.dtype
        assert found.predict([[0], [1]]).tolist() == labels
        assert found == model.rules()
