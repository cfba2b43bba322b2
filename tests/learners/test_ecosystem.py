"""Trees among the tools of scikit-learn, on one table of text, categories, booleans, numbers and missing cells."""

from __future__ import annotations

import pickle
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import sklearn.tree
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import RFE, SelectFromModel, SequentialFeatureSelector
from sklearn.impute import SimpleImputer
from sklearn.inspection import PartialDependenceDisplay, partial_dependence, permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    train_test_split,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from gputree import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.datasets import load_penguins

FOLDS = StratifiedKFold(3)
TEXT, NUMBERS = ["island", "sex"], ["bill_length_mm", "bill_depth_mm", "flipper_length_mm"]


@cache
def penguins() -> tuple[pd.DataFrame, NDArray[Any]]:
    """344 rows: text, a category with missing cells, a boolean, numbers with missing cells; three species."""
    frame = load_penguins().to_frame("pandas").sample(frac=1, random_state=0, ignore_index=True)
    frame["sex"], frame["late"] = frame["sex"].astype("category"), frame["year"] > 2008
    return frame.drop(columns=["species", "year"]), frame["species"].to_numpy(object)


def adelie() -> NDArray[np.bool_]:
    return np.asarray(penguins()[1] == "Adelie")


def weighed() -> tuple[pd.DataFrame, NDArray[np.float64]]:
    """The rows that were weighed, without and with their weight."""
    frame = penguins()[0].dropna(subset="body_mass_g", ignore_index=True)
    return frame.drop(columns="body_mass_g"), frame["body_mass_g"].to_numpy()


def three(**settings: Any) -> Any:
    """A tree for three classes."""
    return DecisionTreeClassifier(categorical_split="multiway", **{"max_depth": 4, **settings})


def two(**settings: Any) -> Any:
    """A tree for two classes."""
    return DecisionTreeClassifier(**{"max_depth": 4, **settings})


def mean(**settings: Any) -> Any:
    return DecisionTreeRegressor(**{"max_depth": 4, **settings})


def encoders() -> Any:
    """What users put before a tool that takes finite numbers only."""
    text = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(sparse_output=False))
    rest = make_column_selector(dtype_include=["number", "bool"])
    return ColumnTransformer([("text", text, TEXT), ("rest", SimpleImputer(), rest)])


# -- search and validation


def test_grid_search_over_splits_and_criteria() -> None:
    """The best of the grid is the model that its parameters make on the whole table."""
    X, _ = penguins()
    grid = {"categorical_split": ["binary", "multiway"], "criterion": ["gini", "entropy", "chi2"], "max_depth": [1, 3]}
    search = GridSearchCV(two(), grid, cv=FOLDS, error_score="raise").fit(X, adelie())
    assert len(search.cv_results_["params"]) == 12
    assert search.best_score_ > 0.95
    assert search.best_estimator_.fingerprint() == two(**search.best_params_).fit(X, adelie()).fingerprint()
    assert search.predict(X[:5]).tolist() == search.best_estimator_.predict(X[:5]).tolist()


def test_grid_search_counts_what_a_tree_refuses_as_failed() -> None:
    """Subsets of more than two categories need two classes: NaN for these, a warning with our reason, the rest wins."""
    X, y = penguins()
    search = GridSearchCV(three(), {"categorical_split": ["binary", "multiway"]}, cv=FOLDS)
    with (
        pytest.warns(sklearn.exceptions.FitFailedWarning, match="column 'island' has 3 categories"),
        pytest.warns(UserWarning, match="One or more of the test scores are non-finite"),
    ):
        search.fit(X, y)
    assert search.best_params_ == {"categorical_split": "multiway"}


def test_randomized_search() -> None:
    X, y = weighed()
    space = {"min_samples_leaf": [1, 5, 20], "max_features": [None, "sqrt", 0.5], "ccp_alpha": [0.0, 100.0]}
    search = RandomizedSearchCV(mean(), space, n_iter=5, cv=3, random_state=0, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.7


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_cross_validation_on_frames(library: str) -> None:
    """Shares of every row from a model that did not see it; categories that only a test fold has are unknown."""
    X, y = penguins()
    table = X if library == "pandas" else pl.from_pandas(X)
    shares = cross_val_predict(three(), table, y, cv=FOLDS, method="predict_proba")
    by_hand = np.empty((len(y), 3))
    for train, test in FOLDS.split(X, y):
        by_hand[test] = three().fit(X.iloc[train], y[train]).predict_proba(X.iloc[test])
    np.testing.assert_array_equal(shares, by_hand)
    scores = cross_validate(three(), table, y, cv=FOLDS, scoring=["accuracy", "roc_auc_ovr"], return_train_score=True)
    assert scores["test_accuracy"].min() > 0.9
    assert scores["train_roc_auc_ovr"].min() > scores["test_roc_auc_ovr"].min()
    parts = train_test_split(table, y, random_state=0, stratify=y)
    assert three().fit(parts[0], parts[2]).score(parts[1], parts[3]) > 0.9


def test_a_category_that_the_training_folds_lack() -> None:
    """One row has an island of its own: its fold is predicted all the same, or refused by name where that is asked."""
    X, y = penguins()
    X = X.assign(island=np.where(X.index == 7, "Atlantis", X["island"]))
    assert cross_val_score(three(), X, y, cv=FOLDS, error_score="raise").min() > 0.9
    with pytest.raises(ValueError, match="column 'island' holds 'Atlantis'"):
        cross_val_predict(three(unknown="error"), X, y, cv=FOLDS)


def test_curves_of_learning_and_validation() -> None:
    """The smallest training set may hold no row of some class or category."""
    X, y = penguins()
    sizes, train, test = learning_curve(three(), X, y, cv=FOLDS, train_sizes=[10, 60, 200], error_score="raise")
    assert sizes.tolist() == [10, 60, 200]
    assert test[-1].mean() > test[0].mean()
    assert train.shape == test.shape == (3, 3)
    depths, _ = validation_curve(two(), X, adelie(), param_name="max_depth", param_range=[1, 2, 8], cv=FOLDS)
    assert (np.diff(depths.mean(axis=1)) >= 0).all()


# -- pipelines


def passed_through(kind: str) -> Any:
    """Numbers filled, categories as they are, in the container of that name."""
    columns = [("text", "passthrough", TEXT), ("numbers", SimpleImputer(), NUMBERS)]
    return ColumnTransformer(columns, verbose_feature_names_out=False).set_output(transform=kind)


@pytest.mark.parametrize("kind", ["pandas", "polars", "default"])
def test_columns_that_pass_a_pipeline(kind: str) -> None:
    """As a frame, and as the array of objects that transformers make by default: the same predictions."""
    X, y = penguins()
    direct = X[NUMBERS].fillna(X[NUMBERS].mean())
    expected = three().fit(pd.concat([X[TEXT], direct], axis=1), y)
    table = pl.from_pandas(X) if kind == "polars" else X
    model = make_pipeline(passed_through(kind), three()).fit(table, y)
    np.testing.assert_allclose(model.predict_proba(table), expected.predict_proba(pd.concat([X[TEXT], direct], axis=1)))
    names = ["island", "sex", *NUMBERS] if kind != "default" else [f"feature_{i}" for i in range(5)]
    assert model[-1].schema_.names == names


@pytest.mark.parametrize("density", [0.0, 1.0])
def test_encoders_before_a_tree(density: float) -> None:
    """One-hot columns, dense or sparse, missing cells as a column of their own: all species are told apart."""
    X, y = penguins()
    columns = [("text", OneHotEncoder(handle_unknown="ignore"), TEXT), ("numbers", "passthrough", NUMBERS)]
    model = make_pipeline(ColumnTransformer(columns, sparse_threshold=density), DecisionTreeClassifier()).fit(X, y)
    assert sklearn.utils.validation._num_features(model[:-1].transform(X)) == 9
    assert model.score(X, y) == 1
    rank = make_pipeline(ColumnTransformer([("text", OrdinalEncoder(), TEXT)]), DecisionTreeClassifier()).fit(X, y)
    assert rank.score(X, y) == three(max_depth=None).fit(X[TEXT], y).score(X[TEXT], y)


def test_a_pipeline_is_pickled_cloned_and_set() -> None:
    X, y = penguins()
    model = Pipeline([("keep", passed_through("pandas")), ("tree", three())]).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    other = clone(model).set_params(tree__max_depth=1, tree__criterion="entropy").fit(X, y)
    assert other[-1].get_depth() == 1
    assert model[-1].get_depth() == 4
    assert clone(other).get_params()["tree__criterion"] == "entropy"


def test_a_target_that_is_transformed() -> None:
    X, y = weighed()
    model = TransformedTargetRegressor(mean(), func=np.log, inverse_func=np.exp).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), np.exp(mean().fit(X, np.log(y)).predict(X)))


# -- ensembles


def test_bagging_hands_rows_on_as_they_are() -> None:
    """One bag of all rows is the tree itself, though the frame arrives as an array of objects."""
    X, y = penguins()
    bag = BaggingClassifier(three(), n_estimators=1, bootstrap=False).fit(X, y)
    np.testing.assert_array_equal(bag.predict_proba(X), three().fit(X, y).predict_proba(X))
    X, mass = weighed()
    forest = BaggingRegressor(mean(), n_estimators=1, bootstrap=False).fit(X, mass)
    np.testing.assert_array_equal(forest.predict(X), mean().fit(X, mass).predict(X))


@pytest.mark.parametrize("gone", [None, np.nan, pd.NA, pd.NaT], ids=["None", "NaN", "NA", "NaT"])
def test_bagging_keeps_every_kind_of_missing_cell(gone: Any) -> None:
    """Text and numbers as objects, with cells that mark a missing value in one of the ways of pandas."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": rng.choice([*"uvw"], 90), "x": rng.integers(0, 9, 90)}, dtype=object)
    X = X.mask(rng.random(X.shape) < 0.2, gone)
    y = (X["c"].isna() | (X["x"].fillna(0) == 3)).to_numpy()
    bag = BaggingClassifier(two(max_depth=None), n_estimators=1, bootstrap=False).fit(X, y)
    assert bag.score(X, y) == 1
    assert BaggingClassifier(two(), n_estimators=3, random_state=0).fit(X, y).predict(X).shape == (90,)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"i": pd.array([1, None, 3, 4] * 5, dtype="Int64"), "x": np.arange(20.0)}),
        pd.DataFrame({"i": pd.Series([1, pd.NA, 3, 4] * 5, dtype=object)}),
        pd.DataFrame({"b": pd.array([True, None, False, False] * 5, dtype="boolean"), "c": [*"uvwx"] * 5}),
    ],
    ids=["Int64", "objects", "boolean"],
)
def test_bagging_of_nullable_columns(frame: pd.DataFrame) -> None:
    """The rows of the one bag are told apart as the tree does."""
    y = np.arange(20) % 4 == 1
    bag = BaggingClassifier(two(), n_estimators=1, bootstrap=False).fit(frame, y)
    assert bag.predict(frame).tolist() == two().fit(frame, y).predict(frame).tolist() == y.tolist()


def test_bags_that_never_met_a_category() -> None:
    """Two rows a bag: most islands and sexes are unknown to most trees, and every prediction is one of the species."""
    X, y = penguins()
    bag = BaggingClassifier(three(), n_estimators=15, max_samples=2, random_state=0).fit(X, y)
    assert set(bag.predict(X)) <= set(y)
    np.testing.assert_allclose(bag.predict_proba(X).sum(axis=1), 1)
    some = BaggingClassifier(three(), n_estimators=15, max_features=2, random_state=0).fit(X, y)
    assert some.score(X, y) > 0.8
    out = BaggingClassifier(three(), n_estimators=40, oob_score=True, random_state=0).fit(X, y)
    assert out.oob_score_ > 0.9


def test_adaboost_behind_encoders() -> None:
    """scikit-learn's AdaBoost takes finite numbers: encoders first, then boosting of ours, as users do it."""
    X, y = penguins()
    with pytest.raises(ValueError, match="NaN"):
        AdaBoostClassifier(three(), n_estimators=2).fit(X, y)
    model = make_pipeline(encoders(), AdaBoostClassifier(two(max_depth=1), n_estimators=25)).fit(X, y)
    assert model.score(X, y) > DecisionTreeClassifier(max_depth=1).fit(X[NUMBERS], y).score(X[NUMBERS], y) + 0.1
    assert cross_val_score(model, X, y, cv=FOLDS, error_score="raise").min() > 0.9


def test_adaboost_of_regression_is_that_of_scikit_learns_trees() -> None:
    """The same boosting around either tree, on numbers that need no encoder: weights are drawn alike."""
    X, y = weighed()
    Z = encoders().fit_transform(X).astype(np.float32)
    settings = {"n_estimators": 10, "random_state": 0}
    ours = AdaBoostRegressor(mean(min_samples_leaf=8), **settings).fit(Z, y)
    theirs = sklearn.tree.DecisionTreeRegressor(max_depth=4, min_samples_leaf=8, random_state=0)
    peer = AdaBoostRegressor(theirs, **settings).fit(Z, y)
    assert ours.score(Z, y) == pytest.approx(peer.score(Z, y), abs=0.01)


def test_votes() -> None:
    """Soft votes are the mean of the shares; of numbers, the mean."""
    X, y = penguins()
    trees = [("gini", three()), ("deep", three(max_depth=8, criterion="entropy"))]
    vote = VotingClassifier(trees, voting="soft").fit(X, y)
    shares = [tree.fit(X, y).predict_proba(X) for _, tree in trees]
    np.testing.assert_allclose(vote.predict_proba(X), (shares[0] + shares[1]) / 2)
    X, mass = weighed()
    both = VotingRegressor([("a", mean()), ("b", mean(max_depth=8))]).fit(X, mass)
    np.testing.assert_allclose(both.predict(X), (mean().fit(X, mass).predict(X) + both.estimators_[1].predict(X)) / 2)


@pytest.mark.parametrize("passthrough", [False, True])
def test_stacks(passthrough: bool) -> None:
    """Trees over trees; with the table passed through, the last one sees its text as well."""
    X, y = penguins()
    stack = StackingClassifier(
        [("a", three(max_depth=1)), ("b", three())], final_estimator=three(), cv=FOLDS, passthrough=passthrough
    )
    assert stack.fit(X, y).score(X, y) > 0.95
    X, mass = weighed()
    assert StackingRegressor([("a", mean())], final_estimator=mean(), cv=3).fit(X, mass).score(X, mass) > 0.7


def test_calibration() -> None:
    """Every method; with prefit-like folds the shares sum to 1."""
    X, y = penguins()
    for settings in ({"method": "sigmoid"}, {"method": "isotonic", "ensemble": False}):
        model = CalibratedClassifierCV(three(), cv=FOLDS, **settings).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
        assert model.score(X, y) > 0.9
    tuned = TunedThresholdClassifierCV(two(), cv=FOLDS).fit(X, adelie())
    assert tuned.score(X, adelie()) > 0.95


def test_several_classes_by_several_trees() -> None:
    """One against the rest sees the frame; one against one takes numbers only, so encoders come first."""
    X, y = penguins()
    assert OneVsRestClassifier(two()).fit(X, y).score(X, y) > 0.95
    with pytest.raises(ValueError, match="could not convert string to float"):
        OneVsOneClassifier(two()).fit(X, y)
    assert make_pipeline(encoders(), OneVsOneClassifier(two())).fit(X, y).score(X, y) > 0.95


def test_several_outputs_by_several_trees() -> None:
    """Labels of each output as they were; a chain takes numbers only."""
    X, y = penguins()
    labels = pd.DataFrame({"species": y, "home": np.where(adelie(), "here", "there")})
    model = MultiOutputClassifier(three()).fit(X, labels)
    np.testing.assert_array_equal(model.predict(X)[:, 0], three().fit(X, y).predict(X))
    assert [c.tolist() for c in model.classes_] == [["Adelie", "Chinstrap", "Gentoo"], ["here", "there"]]
    flags = np.c_[adelie(), y == "Gentoo"].astype(int)
    chain = make_pipeline(encoders(), ClassifierChain(two())).fit(X, flags)
    assert (chain.predict(X) == flags).mean() > 0.95
    X, mass = weighed()
    both = MultiOutputRegressor(mean()).fit(X, np.c_[mass, -mass]).predict(X)
    np.testing.assert_array_equal(both[:, 0], -both[:, 1])


# -- selection and inspection


def test_selection_by_importances() -> None:
    """The columns that the tree uses, from frames with text; elimination takes numbers only."""
    X, y = penguins()
    chosen = SelectFromModel(three(), threshold=1e-9).set_output(transform="pandas").fit(X, y)
    used = X.columns[three().fit(X, y).feature_importances_ > 0]
    assert chosen.transform(X).columns.tolist() == used.tolist()
    assert make_pipeline(chosen, three()).fit(X, y).score(X, y) > 0.95
    best = RFE(DecisionTreeClassifier(max_depth=4), n_features_to_select=2).fit(X[[*NUMBERS, "body_mass_g"]], y)
    assert best.get_feature_names_out().tolist() == ["bill_length_mm", "flipper_length_mm"]
    forward = SequentialFeatureSelector(two(), n_features_to_select=1, cv=FOLDS).fit(X[NUMBERS], adelie())
    assert forward.get_feature_names_out().tolist() == ["bill_length_mm"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")  # of scikit-learn's, for polars
def test_importances_by_permutation(library: str) -> None:
    """A column that the tree does not use has none; those that it uses have some."""
    X, y = penguins()
    table = X if library == "pandas" else pl.from_pandas(X)
    model = three().fit(table, y)
    drop = permutation_importance(model, table, y, n_repeats=3, random_state=0).importances_mean
    assert not drop[model.feature_importances_ == 0].any()
    assert drop[0] > 0.1


def test_partial_dependence_of_numbers_and_categories() -> None:
    """Brute force, by hand: the mean share of all rows with the column set to each value of the grid."""
    X, _ = penguins()
    model = two().fit(X, adelie())
    found = partial_dependence(model, X, ["bill_length_mm"], method="brute", grid_resolution=5)
    for value, average in zip(found["grid_values"][0], found["average"][0], strict=True):
        assert average == pytest.approx(model.predict_proba(X.assign(bill_length_mm=value))[:, 1].mean())
    islands = partial_dependence(model, X, ["island"], method="brute", categorical_features=["island"])
    for value, average in zip(islands["grid_values"][0], islands["average"][0], strict=True):
        assert average == pytest.approx(model.predict_proba(X.assign(island=value))[:, 1].mean())


def test_partial_dependence_is_drawn() -> None:
    plt = pytest.importorskip("matplotlib.pyplot", reason="expected: matplotlib comes with the extra `plot`")
    X, _ = penguins()
    model = two().fit(X, adelie())
    display = PartialDependenceDisplay.from_estimator(
        model, X, ["bill_length_mm", "island"], categorical_features=["island"], method="brute", grid_resolution=4
    )
    assert len(display.lines_[0]) + len(display.bars_[0]) > 1
    plt.close(display.figure_)
