"""Trees go to scikit-learn and come from it with their predictions, counts and everything that its tools read."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.tree
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_linnerud, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import gputree
from gputree.inspect.adopt import border
from gputree.inspect.convert import from_sklearn, to_sklearn
from tests.inspect.chain import chain

TABLES = {
    "iris": load_iris,
    "diabetes": load_diabetes,
    "breast cancer": load_breast_cancer,
    "linnerud": load_linnerud,
}
ARRAYS = ("feature", "threshold", "impurity", "n_node_samples", "weighted_n_node_samples", "missing_go_to_left")
LINKS = ("children_left", "children_right")


def table(name: str, holes: bool = False) -> tuple[Any, Any]:
    """A real table, with or without missing cells; "labels" has two outputs of text."""
    X, y = TABLES["iris" if name == "labels" else name](return_X_y=True)
    if name == "labels":
        y = np.stack([np.array(["no", "yes", "maybe"])[y], np.where(X[:, 0] > 5.8, "long", "short")], axis=1)
    if holes:
        X = np.where(np.random.default_rng(1).random(X.shape) < 0.15, np.nan, X)
    return X, y


def weights(name: str, n: int) -> Any:
    """Weights of rows; those of the first three names have exact sums."""
    rng = np.random.default_rng(2)
    return {
        "none": None,
        "copies": rng.integers(0, 4, n),
        "halves": rng.integers(0, 5, n) * 0.5,
        "tenths": rng.integers(1, 5, n) * 0.1,
        "reals": rng.random(n),
        "tiny": rng.random(n) * 1e-200,
    }[name]


def kind(module: Any, name: str, tree: str = "DecisionTree") -> Any:
    """The class of trees for a table."""
    return getattr(module, tree + ("Regressor" if name in ("diabetes", "linnerud") else "Classifier"))


def hard_rows(X: NDArray[Any], tree: Any, n: int = 1500) -> NDArray[Any]:
    """Rows about the table, with many values that are a threshold, beside it, a tie of rounding, or missing."""
    rng = np.random.default_rng(3)
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    rows = rng.uniform(low - 0.1 * (high - low), high + 0.1 * (high - low), (n, X.shape[1]))
    rows[::3] = rows[::3].astype(np.float32)
    inner = np.flatnonzero((np.asarray(tree.feature) >= 0) & np.isfinite(tree.threshold))
    for row in range(n if inner.size else 0):
        node = rng.choice(inner)
        t = float(tree.threshold[node])
        near = [t, *np.nextafter(t, [-np.inf, np.inf])]
        single = np.float32(t)
        for other in np.nextafter(single, np.float32([-np.inf, np.inf])):
            tie = float(single) / 2 + float(other) / 2
            near += [float(single), float(other), tie, *np.nextafter(tie, [-np.inf, np.inf])]
        rows[row, tree.feature[node]] = rng.choice(near)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows


def shares(model: Any, rows: Any) -> Any:
    """Class shares of every output, or numbers."""
    return model.predict_proba(rows) if hasattr(model, "predict_proba") else model.predict(rows)


def as_list(arrays: Any) -> list[Any]:
    """One array an output."""
    return arrays if isinstance(arrays, list) else [arrays]


def assert_same(a: Any, b: Any) -> None:
    """Equal arrays, or lists of them."""
    for own, other in zip(as_list(a), as_list(b), strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("tree", ["DecisionTree", "ExtraTree"])
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("weight", ["none", "halves"])
@pytest.mark.parametrize("name", [*TABLES, "labels"])
def test_a_tree_comes_from_scikit_learn(name: str, weight: str, holes: bool, tree: str, tmp_path: Path) -> None:
    X, y = table(name, holes)
    theirs = kind(sklearn.tree, name, tree)(random_state=0).fit(X, y, sample_weight=weights(weight, len(X)))
    rows = hard_rows(X, theirs.tree_)
    ours = from_sklearn(theirs)
    assert type(ours) is kind(gputree, name, tree)
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))
    assert_same(shares(ours, rows), shares(theirs, rows))
    same, single = from_sklearn(theirs, thresholds="same"), rows.astype(np.float32)
    single[::7], single[3::7] = np.inf, -np.inf  # which scikit-learn's tree takes and its estimator refuses
    for model in (ours, same):
        np.testing.assert_array_equal(model.tree_.predict(single), theirs.tree_.predict(single))
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, atol=1e-12)
    gputree.save(ours, tmp_path / "tree")
    loaded = gputree.load(tmp_path / "tree")
    assert loaded.fingerprint() == ours.fingerprint()
    back = to_sklearn(same)
    for array in (*LINKS, *ARRAYS, "value"):
        np.testing.assert_array_equal(getattr(back.tree_, array), getattr(theirs.tree_, array), array)


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("weight", ["copies", "tenths", "reals", "tiny"])
@pytest.mark.parametrize("name", [*TABLES, "labels"])
def test_weights_come_with_it(name: str, weight: str, holes: bool, tmp_path: Path) -> None:
    X, y = table(name, holes)
    theirs = kind(sklearn.tree, name)(max_leaf_nodes=12, random_state=0).fit(
        X, y, sample_weight=weights(weight, len(X))
    )
    rows = hard_rows(X, theirs.tree_)
    ours = from_sklearn(theirs)
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))
    for own, other in zip(*[as_list(shares(model, rows)) for model in (ours, theirs)], strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12, atol=1e-12)
    back = to_sklearn(ours).tree_
    whole = theirs.tree_.weighted_n_node_samples[0]
    np.testing.assert_allclose(sorted(back.n_node_samples), sorted(theirs.tree_.n_node_samples))
    sizes = [np.sort(tree.weighted_n_node_samples) / whole for tree in (back, theirs.tree_)]
    np.testing.assert_allclose(*sizes, atol=1e-12)
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, atol=1e-9)
    gputree.save(ours, tmp_path / "tree")
    np.testing.assert_array_equal(gputree.load(tmp_path / "tree").predict(rows), ours.predict(rows))


def test_the_larger_class_stays_the_larger() -> None:
    """0.1 + 0.2 > 0.3 in floats alone: in units the two classes are equal, and the first would win."""
    X, y, weight = np.zeros((3, 1)), [0, 1, 1], [0.3, 0.1, 0.2]
    theirs = sklearn.tree.DecisionTreeClassifier().fit(X, y, sample_weight=weight)
    assert theirs.predict([[0.0]]) == [1]
    assert from_sklearn(theirs).predict([[0.0]]) == [1]
    Y = np.stack([y, [1, 0, 0], [2, 3, 4]], axis=1)
    theirs = sklearn.tree.DecisionTreeClassifier().fit(X, Y, sample_weight=weight)
    np.testing.assert_array_equal(from_sklearn(theirs).predict([[0.0]]), theirs.predict([[0.0]]))


def test_thresholds_lie_where_float32_rounds() -> None:
    rng = np.random.default_rng(0)
    t = np.concatenate(
        [
            rng.normal(size=300) * 10.0 ** rng.integers(-44, 38, 300),
            rng.normal(size=300).astype(np.float32),
            [0.0, -0.0, 1e-60, -1e-60, 1e-45, -1e-45, 3.4e38, -3.4e38, 2.0**-126],
        ]
    )
    low = border(t)
    with np.errstate(over="ignore"):
        assert (low.astype(np.float32) <= t).all()
        assert (np.nextafter(low, np.inf).astype(np.float32) > t).all()
    beyond = np.array([np.inf, -np.inf, 1e39, -1e39, np.finfo(np.float32).max])
    np.testing.assert_array_equal(border(beyond), beyond)


def test_a_decimal_between_two_others() -> None:
    """0.15 lies left of the threshold (0.1 + 0.2) / 2 of float32 numbers, and as a float32 right of it."""
    theirs = sklearn.tree.DecisionTreeRegressor().fit([[0.1], [0.2]], [0.0, 1.0])
    assert theirs.predict([[0.15]]) == from_sklearn(theirs).predict([[0.15]]) == [1.0]
    assert from_sklearn(theirs, thresholds="same").predict([[0.15]]) == [0.0]


@pytest.mark.parametrize("tree", ["DecisionTree", "ExtraTree"])
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("name", [*TABLES, "labels"])
def test_a_tree_goes_to_scikit_learn(name: str, holes: bool, tree: str) -> None:
    X, y = table(name, holes)
    ours = kind(gputree, name, tree)(random_state=3).fit(X, y, sample_weight=weights("copies", len(X)))
    theirs = to_sklearn(ours)
    assert type(theirs) is kind(sklearn.tree, name, tree)
    rows = hard_rows(X, ours.tree_).astype(np.float32)
    for model in (theirs, pickle.loads(pickle.dumps(theirs))):
        np.testing.assert_array_equal(model.predict(rows), ours.predict(rows))
        assert_same(shares(model, rows), shares(ours, rows))
    leaves = theirs.apply(rows)
    assert len(set(zip(leaves.tolist(), ours.apply(rows).tolist(), strict=True))) == len(set(leaves))
    path = theirs.decision_path(rows)
    np.testing.assert_array_equal(np.asarray(path.sum(axis=1)), np.asarray(ours.decision_path(rows).sum(axis=1)))
    assert (path[np.arange(len(rows)), leaves] == 1).all()
    np.testing.assert_allclose(theirs.feature_importances_, ours.feature_importances_, atol=1e-12)
    assert (theirs.get_depth(), theirs.get_n_leaves()) == (ours.get_depth(), ours.get_n_leaves())
    again = from_sklearn(theirs, thresholds="same")
    for field in ("kind", "feature", "low", "first_child", "missing", "unseen", "met_missing", "depth", "parent"):
        if field != "met_missing" or not holes:
            np.testing.assert_array_equal(getattr(again.forest_, field), getattr(ours.forest_, field), field)
    for field in ("value", "impurity"):
        np.testing.assert_array_equal(getattr(again.forest_, field), getattr(ours.forest_, field), field)
    if hasattr(ours, "classes_"):
        np.testing.assert_array_equal(again.forest_.stats, ours.forest_.stats)
        np.testing.assert_array_equal(again.forest_.score, ours.forest_.score)


def test_a_tree_of_theirs_and_ours_made_theirs_are_one() -> None:
    X, y = load_wine(return_X_y=True)
    X = X.astype(np.float32)
    ours = gputree.DecisionTreeClassifier(max_depth=2).fit(X, y)
    theirs = sklearn.tree.DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    made = to_sklearn(ours)
    assert made.get_params() == {**theirs.get_params(), "random_state": None}
    assert {name: type(value) for name, value in vars(made).items()} == {
        **{name: type(value) for name, value in vars(theirs).items()},
        "random_state": type(None),
    }
    for array in (*LINKS, *ARRAYS, "value"):
        np.testing.assert_allclose(getattr(made.tree_, array), getattr(theirs.tree_, array), err_msg=array)
    assert made.tree_.max_depth == theirs.tree_.max_depth


def test_what_scikit_learn_does_with_its_trees() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    ours = gputree.DecisionTreeClassifier(ccp_alpha=0.01).fit(X, y)
    made = to_sklearn(ours)
    check_is_fitted(made)
    assert made.feature_names_in_.tolist() == list(X.columns)
    features, names = list(X.columns), ["setosa", "versicolor", "virginica"]
    assert sklearn.tree.export_text(made, feature_names=features) == gputree.export_text(ours)
    given = {"feature_names": features, "class_names": names, "show_weights": True}
    assert sklearn.tree.export_text(made, **given) == gputree.export_text(ours, **given)
    dot = sklearn.tree.export_graphviz(made, filled=True)
    assert dot.count("->") == ours.tree_.node_count - 1
    path = made.cost_complexity_pruning_path(X, y)
    np.testing.assert_allclose(path.ccp_alphas, ours.cost_complexity_pruning_path(X, y).ccp_alphas, atol=1e-12)
    refitted = clone(made).fit(X, y)
    assert refitted.score(X, y) == made.score(X, y)
    made._prune_tree()
    assert made.get_n_leaves() == ours.get_n_leaves()
    text = sklearn.tree.export_text(refitted)
    assert sklearn.tree.export_text(to_sklearn(from_sklearn(refitted))) == text


def test_their_plot() -> None:
    plots = pytest.importorskip("matplotlib.pyplot")
    plots.switch_backend("agg")
    X, y = table("diabetes", holes=True)
    ours = gputree.DecisionTreeRegressor(max_depth=3).fit(X, y)
    _, ax = plots.subplots()
    shown = sklearn.tree.plot_tree(to_sklearn(ours), ax=ax, filled=True)
    assert sum("samples = " in box.get_text() for box in shown) == ours.tree_.node_count
    ax.figure.savefig(io.BytesIO(), format="svg")
    plots.close("all")


def test_missing_values_keep_their_side() -> None:
    X = np.array([np.nan] * 4 + [0.0, 1, 2, 3, 4, 5])[:, None]
    ours = gputree.DecisionTreeClassifier(max_depth=2).fit(X, [1, 1, 1, 1, 0, 0, 0, 0, 1, 1])
    rows = np.array([[np.nan], [1.2], [4.8]])
    made = to_sklearn(ours)
    assert made.predict(rows).tolist() == ours.predict(rows).tolist() == [1, 0, 1]
    path = made.decision_path(rows).toarray()
    assert path[np.arange(3), made.apply(rows)].tolist() == [1, 1, 1]
    alone = gputree.DecisionTreeRegressor().fit([[np.nan], [np.nan], [1.0], [2.0]], [5.0, 5.0, 1.0, 1.0])
    made = to_sklearn(alone).tree_
    assert (made.threshold[0], made.missing_go_to_left[0]) == (np.inf, 0)
    again = from_sklearn(to_sklearn(alone))
    assert again.fingerprint() == alone.fingerprint()
    assert "is missing" in gputree.export_text(again)


def test_a_side_that_no_rule_explains_was_met() -> None:
    X, y = table("breast cancer", holes=True)
    met = from_sklearn(sklearn.tree.DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)).forest_
    weight = met.stats.sum(axis=1)
    for node in np.flatnonzero(met.kind != 0):
        first, second = weight[met.first_child[node] : met.first_child[node] + 2]
        assert met.met_missing[node] == (met.low[node] == np.inf or met.missing[node] != (second > first))
    assert met.met_missing.any()


@pytest.mark.parametrize("y", [[0, 0, 1, 1, 1, 0], [1, 1, 0, 0, 0, 1]])
def test_booleans_are_read_as_numbers(y: list[int]) -> None:
    X = pd.DataFrame({"wet": [False, False, True, True, True, False], "price": [1.0, 2, 3, 4, 5, 6]})
    ours = gputree.DecisionTreeClassifier(max_depth=1).fit(X, y)
    assert ours.forest_.kind[0] == 3
    theirs = to_sklearn(ours)
    assert theirs.tree_.threshold[0] == 0.5
    assert theirs.predict(X).tolist() == ours.predict(X).tolist() == y
    holes = X.assign(wet=X["wet"].astype("boolean").mask(X["price"] == 1))
    ours = gputree.DecisionTreeClassifier().fit(holes, y)
    numbers = holes.astype({"wet": "Float64"}).astype({"wet": float})
    np.testing.assert_array_equal(to_sklearn(ours).predict(numbers), ours.predict(holes))
    assert from_sklearn(theirs).predict(X).tolist() == y


def test_what_their_trees_cannot_hold_is_refused() -> None:
    X = pd.DataFrame({"sky": ["sun", "rain", "snow"] * 4, "wet": pd.array([True, False, None] * 4, "boolean")})
    y = [0, 1, 0] * 4
    with pytest.raises(ValueError, match=r"node 0 tests the categories of column 'sky'.*OneHotEncoder"):
        to_sklearn(gputree.DecisionTreeClassifier().fit(X[["sky"]], y))
    wide = gputree.DecisionTreeClassifier(categorical_split="multiway").fit(X[["wet"]], y)
    with pytest.raises(ValueError, match=r"node 0 tests column 'wet' with 3 branches.*categorical_split='binary'"):
        to_sklearn(wide)
    untested = gputree.DecisionTreeClassifier().fit(X.assign(n=[1.0, 5, 1] * 4, sky="sun"), y)
    assert to_sklearn(untested).get_depth() == 1


@pytest.mark.parametrize("criterion", ["train_error", "gain_ratio", "twoing", "chi2"])
def test_a_criterion_of_ours_stays(criterion: str) -> None:
    X, y = table("iris", holes=True)
    ours = gputree.DecisionTreeClassifier(criterion=criterion, max_depth=3).fit(X, y)
    made = to_sklearn(ours)
    np.testing.assert_array_equal(made.predict(X), ours.predict(X))
    with pytest.raises(ValueError, match=f"Got '{criterion}' instead"):
        made.fit(X, y)
    again = from_sklearn(to_sklearn(ours), thresholds="same")
    np.testing.assert_array_equal(again.forest_.score, ours.forest_.score)


@pytest.mark.parametrize("name", ["breast cancer", "diabetes"])
def test_monotone_trees(name: str, tmp_path: Path) -> None:
    X, y = table(name, holes=True)
    signs = np.resize([1, -1, 0], X.shape[1])
    theirs = kind(sklearn.tree, name)(monotonic_cst=signs, max_depth=6, random_state=0).fit(X, y)
    ours, rows = from_sklearn(theirs), hard_rows(X, theirs.tree_)
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))
    np.testing.assert_allclose(shares(ours, rows), shares(theirs, rows), rtol=1e-12, atol=1e-15)
    gputree.save(ours, tmp_path / "tree")
    own = kind(gputree, name)(monotonic_cst=signs, max_depth=6).fit(X, y)
    single = rows.astype(np.float32)
    assert_same(shares(to_sklearn(own), single), shares(own, single))


def test_parameters_and_labels_are_kept() -> None:
    settings: dict[str, Any] = {"max_depth": 4, "min_samples_leaf": 2, "max_features": 9, "class_weight": {"a": 2.0}}
    X, y = load_iris(return_X_y=True)
    theirs = sklearn.tree.DecisionTreeClassifier(**settings, random_state=5).fit(X, np.array(["a", "b", "c"])[y])
    ours = from_sklearn(theirs)
    assert {name: ours.get_params()[name] for name in theirs.get_params()} == theirs.get_params()
    assert ours.max_features_ == 4
    assert ours.classes_.tolist() == ["a", "b", "c"]
    assert from_sklearn(to_sklearn(ours)).get_params() == ours.get_params()
    assert clone(ours).fit(X, theirs.classes_[y]).get_depth() <= 4
    (member, *_) = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y).estimators_
    np.testing.assert_array_equal(from_sklearn(member).predict_proba(X), member.predict_proba(X))


def test_what_is_no_tree_of_theirs_is_refused() -> None:
    X, y = load_iris(return_X_y=True)
    tree = sklearn.tree.DecisionTreeClassifier(random_state=0).fit(X, y)
    for model, hint in [
        (RandomForestClassifier(2).fit(X, y), "one by one, which are in estimators_"),
        (make_pipeline(StandardScaler(), tree), "its last step"),
        (GridSearchCV(tree, {"max_depth": [1]}).fit(X, y), "best_estimator_"),
        (gputree.DecisionTreeClassifier(), "a tree of gputree already"),
        (tree.tree_, "give a fitted DecisionTreeClassifier"),
        (sklearn.tree.DecisionTreeClassifier, "give a fitted DecisionTreeClassifier"),
    ]:
        with pytest.raises(TypeError, match=hint):
            from_sklearn(model)
    with pytest.raises(TypeError, match="no tree of gputree"):
        to_sklearn(tree)
    for convert, module in ((from_sklearn, sklearn.tree), (to_sklearn, gputree)):
        with pytest.raises(NotFittedError):
            convert(module.DecisionTreeClassifier())
    with pytest.raises(ValueError, match="thresholds='near' must be 'matching' or 'same'"):
        from_sklearn(tree, thresholds="near")
    with pytest.raises(ValueError, match="'absolute_error' must be one of"):
        from_sklearn(sklearn.tree.DecisionTreeRegressor(criterion="absolute_error").fit(X, y))


@pytest.mark.parametrize(
    ("field", "node", "value", "match"),
    [
        ("left_child", 0, 0, "do not form one tree"),
        ("right_child", 0, 99, "do not form one tree"),
        ("feature", 0, 4, "a column that is not there"),
        ("threshold", 0, np.nan, "NaN"),
        ("weighted_n_node_samples", 2, -1.0, "weighs -1.0"),
    ],
)
def test_nodes_that_form_no_tree_are_refused(field: str, node: int, value: float, match: str) -> None:
    X, y = load_iris(return_X_y=True)
    tree = sklearn.tree.DecisionTreeClassifier(random_state=0).fit(X, y)
    state = tree.tree_.__getstate__()
    state["nodes"] = state["nodes"].copy()
    state["nodes"][field][node] = value
    tree.tree_.__setstate__(state)
    with pytest.raises(ValueError, match=match):
        from_sklearn(tree)


def test_negative_weights_of_classes_are_refused() -> None:
    X, y = np.zeros((4, 1)), [0, 0, 1, 1]
    tree = sklearn.tree.DecisionTreeClassifier().fit(X, y, sample_weight=[-1, 0.5, 2, 2])
    with pytest.raises(ValueError, match="no shares of classes"):
        from_sklearn(tree)


def test_depth_costs_no_recursion_in_conversion() -> None:
    ours = chain(100_000)
    theirs = to_sklearn(ours)
    assert theirs.predict([[54_321.5]]) == [54_322.0]
    again = from_sklearn(theirs, thresholds="same")
    for field in ("low", "first_child", "missing", "depth", "parent", "value"):
        np.testing.assert_array_equal(getattr(again.forest_, field), getattr(ours.forest_, field), field)
    np.testing.assert_array_equal(again.layout_.weight(again.forest_.stats.T), ours.forest_.stats[:, 0])


def test_outputs_of_several_types_are_refused_and_longer_labels_are_kept() -> None:
    """scikit-learn predicts every output in the type of the first: longer text would be cut, dates become numbers."""
    X = [[0.0], [1.0]]
    for second in ([1, 2], np.array(["2020", "2021"], "M8[Y]"), [True, False]):
        model = gputree.DecisionTreeClassifier().fit(X, pd.DataFrame({"a": ["p", "q"], "b": second}))
        with pytest.raises(ValueError, match=r"the outputs have classes of types .* one type"):
            gputree.to_sklearn(model)
    y = pd.DataFrame({"a": ["p", "q"], "b": ["a long label", "b"]})
    model = gputree.DecisionTreeClassifier().fit(X, y)
    assert gputree.to_sklearn(model).predict(X).tolist() == model.predict(X).tolist() == y.to_numpy().tolist()
