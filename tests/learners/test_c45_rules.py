"""C45Rules: data to rules against C4.5rules, trees that are given, files, and scikit-learn's contract."""

from __future__ import annotations

import copy
import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from gputree import (
    BaggingTreeClassifier,
    C45Classifier,
    C45Rules,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RuleSet,
    load,
    save,
)
from gputree.core.conditions import Interval, Subset
from tests.model_files import Parts, odd_penguins, parts, penguins, write

DATA = Path(__file__).parents[1] / "data"
TABLES = json.loads((DATA / "c45_trees.json").read_text())["tables"]
RULES = json.loads((DATA / "c45_rules.json").read_text())["tables"]


def table(name: str) -> tuple[pd.DataFrame, Any, dict[str, Any], list[str]]:
    """Columns, class numbers in their declared order, declared categories, and the classes."""
    columns = TABLES[name]["columns"]
    frame = pd.DataFrame(TABLES[name]["rows"], columns=[c["name"] for c in columns])
    levels = columns[-1]["levels"]
    y = np.array([levels.index(label) for label in frame.pop(columns[-1]["name"])])
    return frame, y, {c["name"]: c["levels"] for c in columns[:-1] if c["type"] == "nominal"}, levels


def words(condition: Any) -> list[str]:
    """A condition as C4.5rules prints it: the two sides of an interval are two."""
    if isinstance(condition, Subset):
        return [f"{condition.name} = {value}" for value in condition.values]
    assert isinstance(condition, Interval)
    low = [] if condition.low is None else [f"{condition.name} > {condition.low:g}"]
    return low + ([] if condition.high is None else [f"{condition.name} <= {condition.high:g}"])


@pytest.mark.parametrize("name", RULES)
def test_the_rules_of_c45_from_the_data(name: str) -> None:
    """Tree, ordered rules, accuracies, default and errors of C4.5 release 8.

    Where a class has more than ten rules, C4.5rules searches at random: of breast cancer, all rules for recurrence (the
    first class in the list) and the errors agree.
    """
    X, y, categories, levels = table(name)
    expected = RULES[name]
    model = C45Rules(C45Classifier(pruning=None, constants="c4.5", categories=categories)).fit(X, y)
    assert model.tree_.forest_.n_nodes == expected["size"]
    kept = [rule for i, rule in enumerate(expected["rules"]) if i not in expected["dropped"]]
    found = [
        [sorted(w for c in rule.conditions for w in words(c)), levels[rule.outcome], round(100 * rule.confidence, 1)]
        for rule in model.rules_
    ]
    want = [[sorted(conditions), label, accuracy] for conditions, label, accuracy in kept]
    if name == "breast_cancer_ljubljana":
        found, want = ([rule for rule in some if rule[1] == "recurrence-events"] for some in (found, want))
    assert found == want
    assert levels[model.rules_.default.outcome] == expected["default"]
    assert (model.predict(X) != y).sum() == expected["errors"]


def test_facts_of_the_rules_are_of_all_rows() -> None:
    """Of iris, whose second rule holds for 48 rows and is wrong in one; the default is left no row."""
    X, y = load_iris(return_X_y=True)
    found = C45Rules().fit(X, y).rules_
    assert [rule.weight for rule in found] == [50.0, 48.0, 46.0, 46.0]
    assert found.rules[1].shares == (0.0, 47 / 48, 1 / 48)
    assert (found.weight, found.shares, found.default.weight) == (150.0, (1 / 3, 1 / 3, 1 / 3), 0.0)
    measured = found.measured(X, y)
    assert [rule.shares for rule in measured] == [rule.shares for rule in found]


def test_missing_values_meet_no_condition() -> None:
    X, y = penguins()
    model = C45Rules().fit(X, y)
    gone = pd.DataFrame({name: [None] for name in X.columns}).astype(X.dtypes.to_dict(), errors="ignore")
    assert model.rules_.apply(gone).tolist() == [-1]
    assert model.predict(gone).tolist() == [model.rules_.default.outcome]
    assert model.predict(odd_penguins()).shape == (len(odd_penguins()),)


TREES: dict[str, Any] = {
    "default": None,
    "given": DecisionTreeClassifier(categorical_split="multiway", max_depth=4),
    "frozen": FrozenEstimator(
        DecisionTreeClassifier(categorical_split="multiway", min_samples_leaf=3).fit(*penguins())
    ),
}


@pytest.mark.parametrize("start", TREES)
@pytest.mark.parametrize("simplify", ["pessimistic", "fisher", "chi2"])
def test_rules_start_from_any_tree_and_stay_whatever_is_done_with_them(
    start: str, simplify: str, tmp_path: Path
) -> None:
    """Pickled, copied, saved and loaded, or written as text."""
    X, y = penguins()
    model = C45Rules(TREES[start], simplify=simplify, conflict="vote").fit(X, y)
    assert model.score(X, y) > 0.9
    save(model, tmp_path / "compact")
    save(model, tmp_path / "whole", compact=False)
    others = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), clone(model).fit(X, y)]
    others += [load(tmp_path / "compact"), load(tmp_path / "whole", mmap=True)]
    for again in others:
        assert again.rules_ == model.rules_
        assert again.fingerprint() == model.fingerprint()
        assert repr(again) == repr(model)
        assert set(vars(again)) == set(vars(model))
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        assert again.predict(X).tolist() == model.predict(X).tolist()
    assert RuleSet.from_text(model.rules_.to_text()) == model.rules_
    if start == "frozen":
        assert model.tree_ is TREES[start].estimator


def test_a_fitted_tree_is_not_fitted_again_and_another_one_is_not_touched() -> None:
    X, y = penguins()
    tree = DecisionTreeClassifier(categorical_split="multiway", max_depth=3)
    model = C45Rules(tree).fit(X, y)
    assert not hasattr(tree, "forest_")
    frozen = C45Rules(FrozenEstimator(model.tree_)).fit(X, y)
    assert frozen.tree_ is model.tree_
    assert frozen.rules_ == model.rules_


def test_other_rows_than_those_of_a_fitted_tree_count() -> None:
    """The facts of rules are those of the new rows; a label that the tree has not met is refused."""
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier().fit(X, y)
    found = C45Rules(FrozenEstimator(tree)).fit(X[25:], y[25:]).rules_
    assert found.weight == 125
    assert [rule.shares for rule in found] == [rule.shares for rule in found.measured(X[25:], y[25:])]
    assert "if (feature_2<=2.45) then 0" in str(found)
    assert found.rules[0].weight == 25
    with pytest.raises(ValueError, match="y holds 3, which is none of the 3 known classes; leave such rows out"):
        C45Rules(FrozenEstimator(tree)).fit(X, y + 1)


def test_parameters_are_searched_through_the_tree() -> None:
    X, y = load_iris(return_X_y=True)
    grid = {"tree__min_weight": [2, 10], "confidence": [0.05, 0.5]}
    search = GridSearchCV(C45Rules(C45Classifier(pruning=None)), grid, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.9


def test_chi_square_leaves_what_depends_on_the_class() -> None:
    """y is whether a and b hold, c is noise: Quinlan (1987) drops c and the rules that need not be there."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((400, 3)) < 0.5, columns=["a", "b", "c"])
    y = (X["a"] & X["b"]).to_numpy()
    y = y ^ (rng.random(400) < 0.05)
    model = C45Rules(DecisionTreeClassifier(), simplify="chi2", alpha=0.01).fit(X, y)
    assert "if (a=True) and (b=True) then True" in str(model.rules_)
    assert not any(condition.name == "c" for rule in model.rules_ for condition in rule.conditions)
    assert model.score(X, y) > 0.9


def test_leaves_count_rows_whatever_these_weigh() -> None:
    """A common factor changes no tree; a class of weight 0 changes it, and its rows still meet rules."""
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(class_weight=dict.fromkeys(range(3), 0.01))
    assert C45Rules(tree).fit(X, y).rules_ == C45Rules(DecisionTreeClassifier()).fit(X, y).rules_
    found = C45Rules(DecisionTreeClassifier(class_weight={0: 1, 1: 1, 2: 0})).fit(X, y).rules_
    assert {rule.outcome for rule in found} == {0, 1}
    assert sum(rule.weight or 0 for rule in found) == 150


def test_the_fingerprint_is_also_that_of_the_rules() -> None:
    """Of one tree: other rules, or another way to decide between them."""
    X, y = load_iris(return_X_y=True)
    tree = FrozenEstimator(C45Classifier(pruning=None).fit(X, y))
    models = [C45Rules(tree, **given).fit(X, y) for given in ({}, {"confidence": 0.01}, {"conflict": "vote"})]
    assert len({model.fingerprint() for model in models}) == 3
    assert models[0].fingerprint() == clone(models[0]).fit(X, y).fingerprint()


def test_the_fingerprint_is_kept_in_a_file(tmp_path: Path) -> None:
    """In rules, categories that are numbers or texts of NumPy are those of Python from the start."""
    X = pd.DataFrame({"a": [1, 2, 3, 1, 2, 3] * 5, "b": np.array([np.str_(c) for c in "xyzxzy"] * 5, object)})
    tree = C45Classifier(pruning=None, min_weight=1, categories={"a": np.array([1, 2, 3])})
    model = C45Rules(tree).fit(X, [0, 1, 2, 0, 0, 1] * 5)
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").fingerprint() == model.fingerprint()


@pytest.mark.parametrize(("n_missing", "n_paths"), [(0, 1), (9, 1), (10, 2)])
def test_parts_of_rows_that_make_one_are_a_row(n_missing: int, n_paths: int) -> None:
    """A tenth of every row with a missing value goes to the leaf on the left; ten are 1 but for rounding."""
    tree = C45Classifier(pruning=None).fit([[0.0]] * 2 + [[1.0]] * 18, [0] * 2 + [1] * 18)
    X, y = [[1.0]] * 5 + [[np.nan]] * n_missing, [1] * 5 + [0] * n_missing
    model = C45Rules(FrozenEstimator(tree)).fit(X, y)
    assert len(list(model._paths(model._cases(X, y)))) == n_paths


def test_rules_are_given_as_of_a_tree() -> None:
    model = C45Rules()
    with pytest.raises(NotFittedError):
        model.rules()
    assert model.fit(*load_iris(return_X_y=True)).rules() is model.rules_


def test_one_class_and_no_rule() -> None:
    """All rows have one label: the default says it."""
    model = C45Rules().fit([[1.0], [2.0], [3.0]], ["a"] * 3)
    assert len(model.rules_) == 0
    assert model.predict([[0.0]]).tolist() == ["a"]
    assert model.predict_proba([[0.0]]).tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (C45Rules(simplify="gini"), "The 'simplify' parameter of C45Rules must be a str among"),
        (C45Rules(confidence=1.0), "The 'confidence' parameter of C45Rules must be a float in the range"),
        (C45Rules(alpha=-1), "The 'alpha' parameter of C45Rules must be a float in the range"),
        (C45Rules(conflict="all"), "The 'conflict' parameter of C45Rules must be a str among"),
    ],
)
def test_wrong_parameters_are_named(model: C45Rules, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.fit(*load_iris(return_X_y=True))


@pytest.mark.parametrize(
    ("tree", "what"),
    [
        (DecisionTreeRegressor(), "a DecisionTreeRegressor"),
        (FrozenEstimator(DecisionTreeRegressor()), "a DecisionTreeRegressor"),
        (GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}), "a GridSearchCV"),
        (BaggingTreeClassifier(), "a BaggingTreeClassifier"),
        (DecisionTreeClassifier, "the class DecisionTreeClassifier"),
        ([], "a list"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_tree_is_refused(tree: Any, what: str) -> None:
    """Before anything is fitted."""
    message = f"tree is {what}, and rules are made of a classification tree of gputree, such as C45Classifier()"
    with pytest.raises(TypeError, match=re.escape(message)):
        C45Rules(tree).fit(*load_iris(return_X_y=True))


def test_rules_that_are_not_fitted_say_so() -> None:
    X, _ = load_iris(return_X_y=True)
    with pytest.raises(NotFittedError):
        C45Rules().predict(X)


def other_label(found: Parts) -> None:
    found[0]["rules"]["text"] = found[0]["rules"]["text"].replace("Gentoo", "Gentoos")


def other_start(found: Parts) -> None:
    found[0]["rules"]["tree"] = "none"


def no_text(found: Parts) -> None:
    del found[0]["rules"]["text"]


def bad_text(found: Parts) -> None:
    found[0]["rules"]["text"] += "else"


def bad_parameter(found: Parts) -> None:
    found[0]["rules"]["parameters"]["alpha"] = 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_label, "its rules are of another table than its tree"),
        (other_start, "a tree that is 'none', which is none of default, given, frozen"),
        (no_text, "the fields of the rules are not those of this format: missing 'text'"),
        (bad_text, "it has an 'else' already"),
        (bad_parameter, "The 'alpha' parameter of C45Rules must be"),
    ],
)
def test_a_wrong_file_is_refused(change: Any, message: str, tmp_path: Path) -> None:
    save(C45Rules().fit(*penguins()), tmp_path / "model", compact=False)
    found = parts(tmp_path / "model")
    change(found)
    write(tmp_path / "wrong", *found)
    with pytest.raises(ValueError, match="wrong is no model file that this version reads: ") as caught:
        load(tmp_path / "wrong")
    assert message in str(caught.value)


@pytest.mark.filterwarnings("ignore")  # scikit-learn's own, about what it skips and what it casts
@pytest.mark.parametrize(
    "model", [C45Rules(), C45Rules(DecisionTreeClassifier(max_depth=3), simplify="chi2", conflict="vote")], ids=repr
)
def test_the_contract_of_scikit_learn(model: C45Rules) -> None:
    results = check_estimator(model, on_fail=None)
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] not in ("passed", "skipped")]
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 45
