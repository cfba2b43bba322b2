"""Errors on rows held out: worked by hand, and what scikit-learn's functions give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier as TheirTree

from gputree import C45Rules, DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier, RandomForestClassifier
from gputree.datasets import load_weather
from gputree.model_selection import Bootstrap, Holdout, estimate_error, size_of

MAJORITY = DummyClassifier(strategy="most_frequent")


def test_mean_of_folds_and_pooled_by_hand() -> None:
    """Folds of 1 and 4 rows: 1/1 and 1/4 wrong are 5/8 as a mean and 2/5 together."""
    y = np.array([1, 0, 0, 0, 1, 0, 0])
    pairs = [([1, 2, 3, 4], [0]), ([0, 5, 6], [1, 2, 3, 4])]
    result = estimate_error(MAJORITY, np.zeros((7, 1)), y, cv=pairs)
    assert result.fold_errors.tolist() == [1.0, 0.25]
    assert result.fold_rows.tolist() == [1, 4]
    assert result.error == 0.625
    assert result.pooled == 0.4
    assert result.standard_error == pytest.approx(np.sqrt(0.4 * 0.6 / 5))
    assert result.train_error == 2 / 7


def test_squared_errors_by_hand() -> None:
    """Means 4.5 and 2 for what is held out: 1, 3 and 6."""
    y = np.array([1.0, 3, 6, 3])
    pairs = [([1, 2], [0]), ([0, 3], [1, 2])]
    result = estimate_error(DecisionTreeRegressor(max_depth=1), np.zeros((4, 1)), y, cv=pairs)
    assert result.loss.tolist() == [(4.5 - 1) ** 2, (2.0 - 3) ** 2, (2.0 - 6) ** 2]
    assert result.error == (12.25 + 8.5) / 2
    assert result.pooled == pytest.approx((12.25 + 1 + 16) / 3)


def test_leave_one_out_of_the_weather_is_that_of_weka() -> None:
    """Id3 of Weka 3.6.14 makes three errors, unclassified days included."""
    frame = load_weather().to_frame("pandas")
    id3 = DecisionTreeClassifier(criterion="entropy", categorical_split="multiway")
    result = estimate_error(id3, frame.drop(columns="play"), frame["play"], cv="loo")
    assert result.loss.sum() == 3
    assert result.error == result.pooled == pytest.approx(3 / 14)


@pytest.mark.parametrize("model", [DecisionTreeClassifier(), DecisionTreeClassifier(max_features=1, max_leaf_nodes=4)])
@pytest.mark.parametrize("cv", [10, KFold(7, shuffle=True, random_state=1), "loo"])
def test_folds_are_those_of_cross_val_score(model: Any, cv: Any) -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    result = estimate_error(model, X, y, cv)
    scores = cross_val_score(model, X, y, cv=LeaveOneOut() if cv == "loo" else cv)
    np.testing.assert_allclose(1 - result.fold_errors, scores, rtol=1e-15)
    assert result.error == pytest.approx(1 - scores.mean())


def test_leave_one_out_equals_that_of_their_tree() -> None:
    """On numbers without ties, at a depth where no two splits are equally good."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 3)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=80) > 0).astype(int)
    ours = estimate_error(DecisionTreeClassifier(max_depth=2), X, y, cv="loo")
    theirs = cross_val_predict(TheirTree(max_depth=2, random_state=0), X, y, cv=LeaveOneOut())
    np.testing.assert_array_equal(ours.loss, theirs != y)


def test_numbers_as_scikit_learn_scores_them() -> None:
    X, y = load_diabetes(return_X_y=True)
    for model in (DecisionTreeRegressor(max_depth=3), LinearRegression()):
        result = estimate_error(model, X, y, cv=5)
        scores = cross_val_score(model, X, y, cv=5, scoring="neg_mean_squared_error")
        np.testing.assert_allclose(result.fold_errors, -scores, rtol=1e-12)
        assert result.train_error == pytest.approx(((model.fit(X, y).predict(X) - y) ** 2).mean())


def test_the_bootstrap_and_632() -> None:
    """Efron's: the mean error on the rows that each resample lacks, and .368 of the training error."""
    X, y = load_iris(return_X_y=True)
    model, cv = KNeighborsClassifier(3), Bootstrap(8, random_state=3)
    result = estimate_error(model, X, y, cv)
    errors = [1 - model.fit(X[a], y[a]).score(X[b], y[b]) for a, b in cv.split(X)]
    assert result.error == pytest.approx(np.mean(errors))
    assert result.error_632 == pytest.approx(0.368 * (1 - model.fit(X, y).score(X, y)) + 0.632 * np.mean(errors))
    tree = estimate_error(DecisionTreeClassifier(), X, y, cv)
    errors = [1 - s for s in cross_val_score(DecisionTreeClassifier(), X, y, cv=cv)]
    np.testing.assert_allclose(tree.fold_errors, errors, rtol=1e-12, atol=1e-15)
    with pytest.raises(ValueError, match="error_632 is made of bootstrap resamples"):
        _ = estimate_error(model, X, y, 3).error_632


def test_a_row_held_out_twice_counts_by_its_mean() -> None:
    """Row 0 is wrong once of twice, row 1 never: losses .5 and 0, whose deviation is .25."""
    y = np.array([0, 1, 1, 0])
    pairs = [([2], [0, 1]), ([3], [0]), ([2], [1])]
    result = estimate_error(MAJORITY, np.zeros((4, 1)), y, cv=pairs)
    assert result.loss.tolist() == [1, 0, 0, 0]
    assert result.standard_error == pytest.approx(0.25 / np.sqrt(2))


def test_a_class_that_a_fold_has_not_seen_is_a_mistake_or_by_itself_an_error() -> None:
    X, y = np.arange(6.0)[:, None], np.array(["a", "a", "b", "b", "b", "c"])
    result = estimate_error(DecisionTreeClassifier(), X, y, cv="loo")
    assert result.loss[5] == 1
    with pytest.raises(
        ValueError, match=r"class 'c' occurs in the held-out rows and not in those to fit on; leave its 1"
    ):
        estimate_error(DecisionTreeClassifier(), X, y, cv=[([0, 1, 2], [3, 5])])
    assert estimate_error(DecisionTreeRegressor(), X, np.arange(6.0), cv=[([0, 1, 2], [3, 5])]).pooled > 0


def test_labels_and_tables_of_every_form() -> None:
    pytest.importorskip("polars")
    iris = load_iris(as_frame=True)
    text = iris.target_names[iris.target]
    tables = [
        (iris.data, iris.target),
        (iris.data.to_numpy().tolist(), text.tolist()),
        (iris.data, iris.target.to_frame()),
    ]
    found = [estimate_error(DecisionTreeClassifier(), X, y, 5).fold_errors for X, y in tables]
    found.append(estimate_error(make_pipeline(StandardScaler(), TheirTree(random_state=0)), *tables[0], 5).fold_errors)
    polars = pytest.importorskip("polars")
    found.append(estimate_error(DecisionTreeClassifier(), polars.from_pandas(iris.data), iris.target, 5).fold_errors)
    assert all(errors.shape == (5,) for errors in found)
    for errors in (*found[1:3], found[4]):
        np.testing.assert_array_equal(errors, found[0])


def test_groups_come_as_pairs_and_repeats_as_they_are() -> None:
    X, y = load_iris(return_X_y=True)
    groups = np.arange(150) % 7
    pairs = list(GroupKFold(7).split(X, y, groups))
    result = estimate_error(DecisionTreeClassifier(), X, y, pairs)
    by_group = [y[groups == groups[b[0]]].size for _, b in pairs]
    assert result.fold_rows.tolist() == by_group
    masks = [(np.isin(np.arange(150), a), np.isin(np.arange(150), b)) for a, b in pairs]
    np.testing.assert_array_equal(estimate_error(DecisionTreeClassifier(), X, y, masks).loss, result.loss)
    halves = np.array([[np.arange(0, 150, 2), np.arange(1, 150, 2)]] * 2)
    as_lists = [(list(a), list(b)) for a, b in halves]
    by_array = estimate_error(DecisionTreeClassifier(), X, y, halves)
    np.testing.assert_array_equal(by_array.loss, estimate_error(DecisionTreeClassifier(), X, y, as_lists).loss)
    repeats = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    assert estimate_error(DecisionTreeClassifier(), X, y, repeats).loss.size == 300


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (1, "cv=1 folds of 20 rows; give a number from 2"),
        (21, "cv=21 folds of 20 rows"),
        ("hold", "cv='hold' must be one of 'loo', 'holdout', 'train-validation-test', 'bootstrap'"),
        (True, "cv=True must be a whole number of folds"),
        (2.5, "cv=2.5 must be a whole number of folds"),
        (None, "cv=None must be a whole number of folds"),
        ([], "has no fold"),
        ([1, 2], r"cv=\[1, 2\] must be a whole number of folds"),
        ([([0, 1],)], r"cv=\[\(\[0, 1\],\)\] must be a whole number of folds"),
        ([([0, 1], [2]), ([3, 4, 5], [5, 4, 6])], "fold 1 of cv fits 2 of the rows that it holds out, such as row 5"),
        (
            GroupKFold(2),
            r"by groups, which are not known here; give its folds as cv=list\(splitter.split",
        ),
        ([([0, 1], [])], "has no held-out rows, of 20 rows"),
        ([([], [1])], "has no rows to fit on"),
        ([([0, 1], [20])], r"cv names row 20 \(counted from 0\), and there are 20 rows"),
        ([([0, 1], [-1])], "cv names row -1"),
        ([([0, 1], [1.5])], "cv gives rows of type float64"),
        (Holdout(0.01), "fold 0 of cv has no held-out rows"),
    ],
    ids=str,
)
def test_what_parts_no_rows_is_refused(cv: Any, message: str) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises((ValueError, TypeError), match=message):
        estimate_error(DecisionTreeClassifier(), X[:20], y[40:60], cv)


def test_what_is_no_model_is_refused() -> None:
    class Neither(BaseEstimator):
        def fit(self, X: Any, y: Any) -> Any:
            return self

    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="Neither is neither a classifier nor a regressor"):
        estimate_error(Neither(), X, y)
    for wrong, what in (("tree", "a str"), (DecisionTreeClassifier, "the class DecisionTreeClassifier")):
        with pytest.raises(TypeError, match=f"{what} is neither a classifier nor a regressor; give one"):
            estimate_error(wrong, X, y)
    with pytest.raises(ValueError, match="y=None leaves nothing to be wrong about"):
        estimate_error(DecisionTreeClassifier(), X, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        estimate_error(DecisionTreeClassifier(), X, y[:-1])


def test_folds_of_rare_classes_warn_of_nothing() -> None:
    """scikit-learn warns where a class has fewer rows than there are folds."""
    y = np.array([0] * 10 + [1] * 9 + [2])
    assert estimate_error(DecisionTreeClassifier(), np.arange(20.0)[:, None], y, 5).loss.size == 20


def test_sizes_of_models() -> None:
    X, y = load_iris(return_X_y=True)
    tree = TheirTree(max_leaf_nodes=4, random_state=0).fit(X, y)
    assert size_of(tree) == size_of(DecisionTreeClassifier(max_leaf_nodes=4).fit(X, y)) == 4
    forest = RandomForestClassifier(3).fit(X, y)
    assert size_of(rules := C45Rules().fit(X, y)) == len(rules.rules_)
    assert size_of(forest) == sum(t.get_n_leaves() for t in forest.estimators_)
    search = GridSearchCV(TheirTree(random_state=0), {"max_leaf_nodes": [3]}).fit(X, y)
    assert size_of(make_pipeline(StandardScaler(), search).fit(X, y)) == 3
    assert size_of(MAJORITY.fit(X, y)) is None
    assert size_of(LinearRegression().fit(X, y)) == 5


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames(library: Any) -> None:
    pytest.importorskip(library)
    X, y = load_iris(return_X_y=True)
    frame = estimate_error(DecisionTreeClassifier(), X, y, 5).to_frame(library)
    columns = {"fold", "rows", "error"}
    assert set(getattr(frame, "column_names", None) or list(frame.columns)) == columns
    assert type(frame).__module__.startswith(library)
    with pytest.raises(ValueError, match="library='no' is not supported"):
        estimate_error(DecisionTreeClassifier(), X, y, 5).to_frame("no")  # type: ignore[arg-type]


def test_a_result_reads_as_text_of_80_columns() -> None:
    X, y = load_iris(return_X_y=True)
    result = estimate_error(DecisionTreeClassifier(max_depth=2), X, y, cv="loo")
    text = str(result)
    assert text.startswith("DecisionTreeClassifier, leave-one-out, 150 rows held out: wrong labels\n")
    assert f"({int(result.loss.sum())} of 150)" in text
    for cv in ("loo", "bootstrap", "holdout", 7):
        for model in (DecisionTreeClassifier(max_depth=1), DecisionTreeRegressor(max_depth=1)):
            lines = str(estimate_error(model, X, y * 1e6, cv)).splitlines()
            assert max(map(len, lines)) <= 80
            assert any(line.startswith(".632") for line in lines) == (cv == "bootstrap")
    with pytest.raises(AttributeError):
        result.train_error = 0  # type: ignore[misc]


def test_predictions_of_other_shapes_are_refused_nowhere_and_compared_row_by_row() -> None:
    """A row of several labels is wrong if one of them is."""

    class Second(ClassifierMixin, BaseEstimator):
        def fit(self, X: Any, y: Any) -> Any:
            self.classes_ = [np.unique(column) for column in y.T]
            return self

        def predict(self, X: Any) -> Any:
            return np.stack([X[:, 0], np.zeros(len(X))], axis=1).astype(int)

    X = np.array([[0], [1], [1], [0], [0]])
    y = np.array([[0, 0], [1, 0], [1, 1], [1, 1], [0, 0]])
    assert estimate_error(Second(), X, y, cv=[([4], [0, 1, 2, 3])]).loss.tolist() == [0, 0, 1, 1]


def test_a_null_leaf_is_an_error() -> None:
    """ID3 of `empty="null"` has no answer there; `score` counts it the same way."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (60, 3)), rng.integers(0, 2, 60)
    model, folds = ID3Classifier(empty="null"), KFold(3)
    found = estimate_error(model, X, y, cv=folds)
    scores = cross_val_score(model, X, y, cv=folds)
    np.testing.assert_allclose(found.fold_errors, 1 - scores)
    fitted = [clone(model).fit(X[train], y[train]).predict_proba(X[test]) for train, test in folds.split(X)]
    assert np.isnan(np.concatenate(fitted)).any()
