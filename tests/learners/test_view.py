"""``tree_`` answers as scikit-learn's Tree does, but for the numbering of its nodes."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_iris, load_linnerud, load_wine
from sklearn.inspection import PartialDependenceDisplay, partial_dependence, permutation_importance
from sklearn.tree import DecisionTreeClassifier as Theirs
from sklearn.tree import DecisionTreeRegressor as TheirRegressor
from sklearn.utils.estimator_checks import check_estimator

import gputree
from gputree.core.schema import Feature, Kind, Schema
from gputree.learners.inputs import read_predict
from gputree.learners.view import Cuts, TreeView


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
@pytest.mark.parametrize("name", [name for name in gputree.__all__ if "Tree" in name and "Bagging" not in name])
def test_the_contract_of_scikit_learn(name: str) -> None:
    """Forests have tests of their own: where rows are drawn, weights are no copies, in scikit-learn's neither."""
    results = check_estimator(getattr(gputree, name)(), on_fail=None)
    failed = [r["check_name"] for r in results if r["status"] not in ("passed", "skipped")]
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 50


def test_metadata_that_can_be_asked_for_is_that_of_scikit_learn() -> None:
    def requests(model: Any) -> list[dict[str, Any]]:
        routing = model.get_metadata_routing()
        return [getattr(routing, method).requests for method in ("fit", "predict", "predict_proba", "score")]

    assert requests(gputree.DecisionTreeClassifier()) == requests(Theirs())


def view_of(model: Any) -> TreeView:
    """The view of a model, which knows the columns."""
    return replace(model.tree_, schema=model.schema_)


def walk(tree: Any, X: Any) -> list[int]:
    """The leaf of every row by the arrays that consumers read."""
    leaves = []
    for row in X:
        node = 0
        while tree.children_left[node] != -1:
            x = row[tree.feature[node]]
            left = tree.missing_go_to_left[node] if np.isnan(x) else x <= tree.threshold[node]
            node = int(tree.children_left[node] if left else tree.children_right[node])
        leaves.append(node)
    return leaves


def toys(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Booleans with holes, categories that rise and that do not, and two classes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "new": pd.array(rng.choice([True, False, None], n, p=[0.5, 0.4, 0.1]), "boolean"),
            "used": rng.random(n) < 0.5,
            "size": pd.Categorical(rng.choice(["S", "M", "L", None], n), ["S", "M", "L"], ordered=True),
            "price": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 5, n)),
        }
    )
    rising = X["size"].cat.codes * 2 + X["used"] * 3 + X["new"].fillna(False).astype(int) - X["price"].fillna(2)
    return X, (rising + rng.normal(size=n) > 3).to_numpy()


@pytest.mark.parametrize("seed", range(4))
def test_the_arrays_route_rows_of_booleans_and_categories(seed: int) -> None:
    X, y = toys(400, seed)
    columns = ["new", "used", "price"] if seed % 2 else ["new", "used", "size", "price"]
    model = gputree.DecisionTreeClassifier(max_depth=3 + seed).fit(X[columns], y ^ (seed > 1))
    tree = view_of(model)
    matrix = read_predict(model, X[columns])
    if np.isnan(Cuts.of(tree.forest, tree.schema).low).any():
        with pytest.raises(ValueError, match="'size' in two sets, which no threshold"):
            _ = tree.threshold
        return
    assert (model.forest_.kind == 3).any()
    assert walk(tree, matrix) == model.apply(X[columns]).tolist()
    np.testing.assert_array_equal(tree.apply(matrix), model.apply(X[columns]))


def test_booleans_always_have_a_threshold() -> None:
    for y in ([0, 0, 1, 1], [1, 1, 0, 0]):
        model = gputree.DecisionTreeClassifier().fit(pd.DataFrame({"a": [False, False, True, True]}), y)
        tree = view_of(model)
        assert tree.threshold.tolist() == [0.5, -2, -2]
        assert tree.value[tree.children_left[0], 0].tolist() == ([1, 0] if y[0] == 0 else [0, 1])
        assert walk(tree, [[0.0], [1.0]]) == model.apply(pd.DataFrame({"a": [False, True]})).tolist()


def lookup(codes: dict[int, int], unseen: int, n_categories: int) -> tuple[Any, Schema]:
    """A forest of one test of categories, whose codes have these branches."""
    model = gputree.DecisionTreeClassifier(categorical_split="multiway")
    forest = model.fit(pd.DataFrame({"a": ["x", "x", "y"]}), [0, 0, 1]).forest_
    forest = replace(
        forest,
        unseen=np.array([unseen, 0, 0], np.uint16),
        lookup_ptr=np.array([0, len(codes), len(codes), len(codes)], np.int64),
        lookup_code=np.array(sorted(codes), np.uint16),
        lookup_branch=np.array([codes[code] for code in sorted(codes)], np.uint16),
    )
    return forest, Schema((Feature("a", Kind.CATEGORICAL, tuple(range(n_categories))),))


@pytest.mark.parametrize("n_categories", [1, 2, 3, 4])
def test_a_threshold_of_categories_is_there_when_one_parts_them(n_categories: int) -> None:
    """Every test of up to four categories, listed or not, beside the attempt of every threshold."""
    for *wanted, unseen in product([None, 0, 1], repeat=n_categories + 1):
        codes = {code: branch for code, branch in enumerate(wanted, start=1) if branch is not None}
        if unseen is None or not codes:
            continue
        forest, schema = lookup(codes, unseen, n_categories)
        cuts = Cuts.of(forest, schema)
        branch = np.array([unseen if b is None else b for b in wanted])
        number, both = np.arange(n_categories), len(set(codes.values())) == 2
        fits = [
            (bool(swapped), cut - 0.5)
            for swapped in (0, 1)
            for cut in range(n_categories + 1)
            if (((number > cut - 0.5) ^ swapped) == branch).all()
        ]
        if np.isnan(cuts.low[0]):
            assert not fits or not both, (codes, unseen, fits)
        else:
            assert (bool(cuts.swapped[0]), cuts.low[0]) in fits, (codes, unseen)


def test_more_than_two_branches_have_no_children_arrays() -> None:
    X, y = toys(200, 0)
    model = gputree.DecisionTreeClassifier(categorical_split="multiway", max_depth=2).fit(X[["size", "price"]], y)
    tree = view_of(model)
    assert tree.feature.size == tree.n_node_samples.size == tree.value.shape[0] == tree.node_count
    assert tree.compute_feature_importances().sum() == pytest.approx(1.0)
    for name in ("children_left", "children_right", "threshold", "missing_go_to_left"):
        with pytest.raises(
            ValueError, match=r"node \d+ tests column 'size' with \d branches.*categorical_split='binary'"
        ):
            getattr(tree, name)


def test_sets_that_no_threshold_parts_have_children_all_the_same() -> None:
    X = pd.DataFrame({"colour": pd.Categorical(["a", "b", "c"] * 4, ["a", "b", "c"])})
    model = gputree.DecisionTreeClassifier().fit(X, [0, 1, 0] * 4)
    tree = view_of(model)
    assert tree.children_left.tolist() == [1, -1, -1]
    with pytest.raises(ValueError, match=r"node 0 parts the categories of column 'colour'.*export_dict"):
        _ = tree.threshold


def test_sparse_rows_go_to_the_same_leaves() -> None:
    X = np.random.default_rng(0).integers(0, 3, (100, 4)) * 1.0
    model = gputree.DecisionTreeClassifier().fit(X, X[:, 0] > X[:, 1])
    np.testing.assert_array_equal(model.tree_.apply(csr_matrix(X)), model.apply(X))
    assert (model.tree_.decision_path(csr_matrix(X)) != model.decision_path(X)).nnz == 0


def test_every_public_name_of_theirs_is_there() -> None:
    X, y = load_iris(return_X_y=True)
    theirs, ours = Theirs().fit(X, y).tree_, gputree.DecisionTreeClassifier().fit(X, y).tree_
    names = {name for name in dir(theirs) if not name.startswith("_")}
    assert names - set(dir(ours)) == {"compute_partial_dependence"}  # asked of scikit-learn's own classes only


def test_the_inspection_of_scikit_learn() -> None:
    X, y = load_wine(return_X_y=True)
    X = X.astype(np.float32)
    ours, theirs = gputree.DecisionTreeClassifier(max_depth=2).fit(X, y), Theirs(max_depth=2, random_state=0).fit(X, y)
    found, wanted = [permutation_importance(m, X, y, n_repeats=3, random_state=0) for m in (ours, theirs)]
    np.testing.assert_array_equal(found.importances, wanted.importances)
    found, wanted = [partial_dependence(m, X, [6], method=how) for m, how in ((ours, "auto"), (theirs, "brute"))]
    np.testing.assert_allclose(found["average"], wanted["average"])


def test_the_partial_dependence_of_categories() -> None:
    plots = pytest.importorskip("matplotlib.pyplot")
    plots.switch_backend("agg")
    X, y = toys(200, 1)
    X = X.drop(columns="new").assign(size=X["size"].fillna("S"))
    model = gputree.DecisionTreeClassifier(max_depth=4).fit(X, y)
    shown = PartialDependenceDisplay.from_estimator(model, X, ["used", "size"], categorical_features=["used", "size"])
    assert len(shown.bars_.ravel()) == 2
    plots.close("all")
