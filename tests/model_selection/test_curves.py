"""Learning curves: scikit-learn's numbers, parts of rows, and pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import validation_curve
from sklearn.neighbors import KNeighborsClassifier

from gputree import DecisionTreeClassifier, DecisionTreeRegressor, plot_tree
from gputree.model_selection import LearningCurve, learning_curve
from gputree.model_selection.curves import part_of


@pytest.mark.parametrize(
    ("model", "name", "values"),
    [
        (DecisionTreeClassifier(), "max_depth", [1, 2, 4]),
        (DecisionTreeClassifier(), "max_leaf_nodes", [2, 5]),
        (KNeighborsClassifier(), "n_neighbors", [1, 9]),
    ],
    ids=lambda value: str(value),
)
def test_errors_by_a_parameter_are_those_of_a_validation_curve(model: Any, name: str, values: list[int]) -> None:
    X, y = load_iris(return_X_y=True)
    curve = learning_curve(model, X, y, {name: values}, cv=4)
    train, test = validation_curve(model, X, y, param_name=name, param_range=values, cv=4)
    np.testing.assert_allclose(curve.train_errors, 1 - train, atol=1e-12)
    np.testing.assert_allclose(curve.errors, 1 - test, atol=1e-12)
    assert curve.values == tuple(values)


def test_training_errors_fall_with_depth_and_size() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    for over in ({"max_depth": [1, 2, 3, 5, 9]}, {"max_leaf_nodes": [2, 4, 8, 16]}):
        curve = learning_curve(DecisionTreeClassifier(criterion="train_error"), X, y, over, cv=3)
        assert (np.diff(curve.train_errors, axis=0) <= 0).all()
        assert (np.diff(curve.sizes) >= 0).all()


def test_errors_by_the_number_of_training_rows() -> None:
    """Every fold fits a part of its rows, the smaller one inside the larger, and is judged by all it holds out."""
    X, y = load_diabetes(return_X_y=True)
    pairs = [(np.arange(0, 300), np.arange(300, 442)), (np.arange(142, 442), np.arange(0, 142))]
    curve = learning_curve(DecisionTreeRegressor(max_depth=3), X, y, {"train_size": [30, 0.5, 1.0]}, cv=pairs)
    assert curve.values == (30, 150, 300)
    for v, size in enumerate([30, 0.5, 1.0]):
        for fold, (train, held) in enumerate(pairs):
            rows = part_of(train, size)
            model = DecisionTreeRegressor(max_depth=3).fit(X[rows], y[rows])
            assert curve.errors[v, fold] == pytest.approx(((model.predict(X[held]) - y[held]) ** 2).mean())
            assert curve.train_errors[v, fold] == pytest.approx(((model.predict(X[rows]) - y[rows]) ** 2).mean())
    assert set(part_of(pairs[0][0], 30)) < set(part_of(pairs[0][0], 150)) < set(range(300))
    assert np.unique(np.diff(part_of(pairs[0][0], 30))).size > 3  # drawn, not the first ones


def test_by_default_five_shares() -> None:
    X, y = load_iris(return_X_y=True)
    curve = learning_curve(DecisionTreeClassifier(), X, y)
    assert curve.values == (12, 39, 66, 93, 120)
    assert curve.errors.shape == (5, 5)
    assert curve.errors[0].mean() > curve.errors[-1].mean()


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ({}, "must be a dict of one name and its values"),
        ({"max_depth": [1], "max_leaf_nodes": [2]}, "must be a dict of one name"),
        ("max_depth", "must be a dict of one name"),
        ({"depth": [1]}, "over names 'depth'"),
        ({"train_size": 3}, "over gives train_size=3; give a list of at least one"),
        ({"train_size": []}, r"over gives train_size=\[\]; give a list of at least one"),
        ({"train_size": [1.5]}, "train_size=1.5 must be a share above 0"),
        ({"train_size": [0]}, "train_size=0 must be a share"),
        ({"train_size": [True]}, "train_size=True must be a share"),
        ({"train_size": [121]}, "train_size=121 rows, and a fold fits 120"),
    ],
    ids=str,
)
def test_what_cannot_be_varied_is_refused(over: Any, message: str) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        learning_curve(DecisionTreeClassifier(), X, y, over)


def made(values: tuple[Any, ...], folds: int = 3) -> LearningCurve:
    errors = np.linspace(0.1, 0.3, len(values) * folds).reshape(len(values), folds)
    return LearningCurve("Tree", "3 folds", True, "max_depth", values, errors / 2, errors, np.full(len(values), np.nan))


def test_the_picture(tmp_path: Any) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    curve = made((4, 1, 2))
    figure, ax = plt.subplots()
    assert curve.plot(ax) is ax
    train, held = ax.lines
    assert held.get_xdata().tolist() == [1, 2, 4]  # in order, whatever was given
    mean = curve.errors.mean(axis=1)
    np.testing.assert_allclose(held.get_ydata(), mean[[1, 2, 0]])
    np.testing.assert_allclose(train.get_ydata(), mean[[1, 2, 0]] / 2)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("max_depth", "share of wrong labels")
    assert all(float(tick).is_integer() for tick in ax.get_xticks())
    figure.savefig(tmp_path / "curve.png")
    plt.close(figure)
    figure, ax = plt.subplots()
    made((1, None)).plot(ax)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "None"]
    plt.close(figure)


def test_text_and_frames() -> None:
    curve = made((1, 2, None), folds=1)
    assert curve.standard_errors.tolist() == [0, 0, 0]
    assert str(curve).splitlines()[1].split() == ["max_depth", "training", "held", "out", "s.e.", "size"]
    assert str(curve).splitlines()[-1].split() == ["None", "0.1500", "0.3000", "0.0000", "-"]
    X, y = load_iris(return_X_y=True)
    frame = learning_curve(DecisionTreeClassifier(), X, y, {"max_depth": [1, 2]}, cv=3).to_frame("pandas")
    assert list(frame.columns) == ["max_depth", "train_error", "error", "standard_error", "size"]
    assert frame["max_depth"].tolist() == [1, 2]
    assert frame["size"].tolist() == [2, 3]


def test_pictures_share_no_axes() -> None:
    """A curve takes axes that are still empty, else a figure of its own."""
    plt = pytest.importorskip("matplotlib.pyplot")
    figure = plt.figure(figsize=(3, 2))
    first, second = made((1, 2)).plot(), made((1, 2)).plot()
    assert first.figure is figure
    assert second.figure is not figure
    tree = plot_tree(DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1]))
    assert made((1, 2)).plot().figure not in (second.figure, tree[0].figure)
    plt.close("all")
