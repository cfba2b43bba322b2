"""``tree_`` answers as scikit-learn's Tree does, but for the numbering of its nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_linnerud, load_wine
from sklearn.tree import DecisionTreeClassifier as Theirs
from sklearn.tree import DecisionTreeRegressor as TheirRegressor
from sklearn.utils.estimator_checks import check_estimator

import gputree


def test_methods_of_the_view() -> None:
    X, y = load_wine(return_X_y=True)
    X = X.astype(np.float32)
    ours, theirs = gputree.DecisionTreeClassifier(max_depth=3).fit(X, y), Theirs(max_depth=3, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.tree_.predict(X), theirs.tree_.predict(X))
    np.testing.assert_array_equal(ours.tree_.apply(X), ours.apply(X))
    path = ours.tree_.decision_path(X)
    assert (path != ours.decision_path(X)).nnz == 0
    np.testing.assert_array_equal(np.asarray(path.sum(axis=1)), np.asarray(theirs.tree_.decision_path(X).sum(axis=1)))
    np.testing.assert_allclose(ours.tree_.compute_feature_importances(), theirs.tree_.compute_feature_importances())


def test_shapes_of_several_outputs() -> None:
    X, Y = load_linnerud(return_X_y=True)
    ours, theirs = gputree.DecisionTreeRegressor().fit(X, Y).tree_, TheirRegressor(random_state=0).fit(X, Y).tree_
    for name in ("n_outputs", "max_n_classes", "n_features", "node_count", "n_leaves"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert ours.value.shape == theirs.value.shape
    assert ours.n_classes.tolist() == theirs.n_classes.tolist()


def test_arrays_cannot_be_written() -> None:
    tree = gputree.DecisionTreeClassifier().fit([[0], [1]], [0, 1]).tree_
    with pytest.raises(ValueError, match="read-only"):
        tree.threshold[0] = 3.0


@pytest.mark.filterwarnings("ignore")  # scikit-learn's own, about what it skips and what it casts
@pytest.mark.parametrize("name", [name for name in gputree.__all__ if "Tree" in name])
def test_the_contract_of_scikit_learn(name: str) -> None:
    results = check_estimator(getattr(gputree, name)(), on_fail=None)
    failed = [r["check_name"] for r in results if r["status"] not in ("passed", "skipped")]
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 50


def test_metadata_that_can_be_asked_for_is_that_of_scikit_learn() -> None:
    def requests(model: Any) -> list[dict[str, Any]]:
        routing = model.get_metadata_routing()
        return [getattr(routing, method).requests for method in ("fit", "predict", "predict_proba", "score")]

    assert requests(gputree.DecisionTreeClassifier()) == requests(Theirs())
