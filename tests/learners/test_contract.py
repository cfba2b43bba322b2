"""The contract of scikit-learn: metadata that is routed, tags, pages, and its own checks under many parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
import sklearn.tree
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder
from sklearn.utils import estimator_html_repr, get_tags
from sklearn.utils.estimator_checks import check_estimator

import gputree
from gputree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor
from gputree.datasets import load_penguins

LEARNERS = [DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor]
FOLDS = StratifiedKFold(3)


def penguins() -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """Text and numbers with missing cells; one species against the others."""
    frame = load_penguins().to_frame("pandas")
    return frame.drop(columns="species"), (frame["species"] == "Adelie").to_numpy()


def two(**settings: Any) -> Any:
    return DecisionTreeClassifier(**{"max_depth": 4, **settings})


def test_weights_are_routed_through_pipelines_and_searches() -> None:
    """They reach the tree in every fold and at the end, and the score where it asks for them."""
    X, y = penguins()
    w = np.linspace(0.1, 3, len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        tree = two().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipe = Pipeline([("same", FunctionTransformer()), ("tree", tree)])
        search = GridSearchCV(pipe, {"tree__max_depth": [1, 2]}, cv=FOLDS, error_score="raise")
        search.fit(X, y, sample_weight=w)
        found = search.best_estimator_[-1]
        scores = cross_validate(pipe, X, y, cv=FOLDS, params={"sample_weight": w})["test_score"]
    depth = search.best_params_["tree__max_depth"]
    assert found.fingerprint() == two(max_depth=depth).fit(X, y, w).fingerprint()
    assert found.fingerprint() != two(max_depth=depth).fit(X, y).fingerprint()
    by_hand = [two().fit(X.iloc[a], y[a], w[a]).score(X.iloc[b], y[b], w[b]) for a, b in FOLDS.split(X, y)]
    assert scores.tolist() == by_hand


def test_weights_that_nobody_asked_for_are_refused() -> None:
    """scikit-learn's rule: an explicit yes or no is needed."""
    X, y = penguins()
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(FunctionTransformer(), two())
        with pytest.raises(ValueError, match=r"sample_weight.*not explicitly set"):
            pipe.fit(X, y, sample_weight=np.ones(len(X)))


@pytest.mark.parametrize("cls", LEARNERS)
def test_tags_are_those_of_scikit_learn_and_more(cls: Any) -> None:
    """Missing values, sparse tables and several outputs as theirs; categories besides."""
    ours, theirs = get_tags(cls()), get_tags(getattr(sklearn.tree, cls.__name__)())
    assert ours.input_tags.allow_nan
    assert ours.input_tags.categorical
    assert ours.input_tags.sparse == theirs.input_tags.sparse
    for name in ("estimator_type", "target_tags", "classifier_tags", "regressor_tags"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert is_classifier(cls()) == ("Classifier" in cls.__name__)
    assert is_regressor(cls()) != is_classifier(cls())


PARAMETERISATIONS: list[dict[str, Any]] = [
    {"splitter": "best", "max_leaf_nodes": 60, "max_features": "sqrt", "random_state": 1},
    {"categorical_split": "multiway", "max_bins": 64, "min_weight_fraction_leaf": 0.01},
    {"splitter": "random", "max_depth": 20, "ccp_alpha": 1e-6, "categorical_features": None, "unknown": "error"},
]


@pytest.mark.filterwarnings("ignore")  # scikit-learn's own, about what it skips and what it casts
@pytest.mark.parametrize("settings", PARAMETERISATIONS, ids=lambda settings: "-".join(settings))
@pytest.mark.parametrize("cls", [DecisionTreeClassifier, ExtraTreeRegressor])
def test_the_contract_of_scikit_learn_under_other_parameters(cls: Any, settings: dict[str, Any]) -> None:
    results = check_estimator(cls(**settings), on_fail=None)
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] not in ("passed", "skipped")]
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 50


def test_every_tree_is_checked_here() -> None:
    """Forests are in test_forests.py, trees that scikit-learn does not have in files of their own."""
    trees = {name for name in gputree.__all__ if "TreeClassifier" in name or "TreeRegressor" in name}
    trees -= {"BaggingTreeClassifier", "BaggingTreeRegressor", "MDLTreeClassifier"}
    assert {cls.__name__ for cls in LEARNERS} == trees


@pytest.mark.parametrize("cls", LEARNERS)
def test_the_page_of_an_estimator(cls: Any) -> None:
    """Fitted and not; the name stands in it."""
    X, y = penguins()
    for model in (cls(max_depth=2), cls(max_depth=2).fit(X, y)):
        assert cls.__name__ in estimator_html_repr(model)
        assert cls.__name__ in estimator_html_repr(make_pipeline(OrdinalEncoder(), model))
    assert repr(cls(max_depth=2)) == f"{cls.__name__}(max_depth=2)"
