"""Several models on several tables: ranks by hand, figures of single estimates, and no winner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from gputree import DecisionTreeClassifier, DecisionTreeRegressor, RandomForestClassifier
from gputree.datasets import load_penguins, load_weather
from gputree.model_selection import Comparison, ErrorEstimate, compare, estimate_error


def made(wrong: int, size: int | None = 1) -> ErrorEstimate:
    loss = (np.arange(10) < wrong).astype(float)
    return ErrorEstimate("M", KFold(), True, np.zeros(10, np.int64), np.arange(10), loss, 0.0, size, 0.25, 0.5)


def test_ranks_by_hand() -> None:
    """Equal errors share their ranks: 1.5 of 1 and 2."""
    rows = ((made(1), made(3), made(1)), (made(2), made(1, None), made(3)))
    result = Comparison(("a", "b", "c"), ("first", "second"), rows)
    assert result.ranks.tolist() == [[1.5, 3, 1.5], [2, 1, 3]]
    assert result.mean_ranks.tolist() == [1.75, 2, 2.25]
    assert result.figures("error").tolist() == [[0.1, 0.3, 0.1], [0.2, 0.1, 0.3]]
    assert np.isnan(result.figures("size")[1, 1])
    lines = [line.split() for line in str(result).splitlines()]
    assert ["mean", "rank", "1.75", "2.00", "2.25"] in lines
    assert ["mean", "size", "1", "-", "1"] in lines
    assert ["fit,", "seconds", "0.5", "0.5", "0.5"] in lines
    assert not {"best", "winner", "wins"} & set(str(result).lower().split())


def models() -> dict[str, Any]:
    """Trees, nearest neighbours and a net, as in StatLog."""
    net = MLPClassifier(3, solver="lbfgs", alpha=1.0, max_iter=5000, random_state=0)
    return {
        "tree": DecisionTreeClassifier(),
        "forest": RandomForestClassifier(5),
        "neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier()),
        "net": make_pipeline(StandardScaler(), net),
    }


def test_trees_neighbours_and_a_net() -> None:
    iris, wine = load_iris(return_X_y=True), load_wine(return_X_y=True)
    tables = {"iris": iris, "wine": (wine[0][::3], wine[1][::3])}
    with threadpool_limits(1):  # small products in threads that others use take seconds
        result = compare(models(), tables, cv=3)
        for estimate, model in zip(result.estimates[1], models().values(), strict=True):
            np.testing.assert_array_equal(estimate.loss, estimate_error(model, *tables["wine"], 3).loss)
    assert (result.figures("fit_seconds") > 0).all()
    assert result.figures("size")[0, 2] == 150
    np.testing.assert_allclose(result.ranks.sum(axis=1), 10)
    frame = result.to_frame("pandas")
    assert frame.shape == (8, 10)
    assert frame["model"].tolist() == [*models(), *models()]
    assert frame.groupby("model")["rank"].mean().to_dict() == dict(zip(result.models, result.mean_ranks, strict=True))


def test_tables_of_textbooks_and_numbers() -> None:
    trees = {"gini": DecisionTreeClassifier(categorical_split="multiway"), "stump": DecisionTreeClassifier(max_depth=1)}
    for tree in trees.values():
        tree.set_params(categorical_split="multiway")
    result = compare(trees, {"weather": load_weather(), "penguins": load_penguins()}, cv=4)
    frame = load_weather().to_frame("pandas")
    expected = estimate_error(trees["gini"], frame.drop(columns="play"), frame["play"], 4)
    frames = compare(trees, {"weather": (frame.drop(columns="play"), frame["play"])}, cv=4)
    assert result.estimates[0][0].error == expected.error == frames.estimates[0][0].error
    X, _ = load_iris(return_X_y=True)
    numbers = compare({"tree": DecisionTreeRegressor()}, {"length": (X[:, 1:], X[:, 0])}, cv=3)
    assert "mean squared error" in str(numbers)


def test_text_of_80_columns_however_many_models() -> None:
    rows = tuple(tuple(made(i % 4) for i in range(12)) for _ in range(3))
    names = tuple(f"a model with a long name, number {i}" for i in range(12))
    text = str(Comparison(names, ("one", "two", "a table with a name that is far too long"), rows))
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("mean rank") == text.count("one ")


def test_long_names_stay_different() -> None:
    models = {f"tree of {n} long levels": DecisionTreeClassifier(max_depth=n) for n in (1, 2)}
    _, head, line, *_ = str(compare(models, {7: load_iris(return_X_y=True)}, cv=2)).split("\n")
    assert len(set(head.split("  ")[-2:])) == 2
    assert line.startswith("7 ")


def test_errors_say_which_model_and_table() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="max_depth") as caught:
        compare({"bad": DecisionTreeClassifier(max_depth=0)}, {"iris": (X, y)}, cv=3)
    assert caught.value.__notes__ == ["in compare: model 'bad' on table 'iris'"]
    for given, message in (
        (({}, {"iris": (X, y)}), "models={} must be a dict of names to models"),
        (([DecisionTreeClassifier()], {"iris": (X, y)}), "must be a dict of names to models"),
        (({"tree": DecisionTreeClassifier()}, {}), "tables={} must be a dict of names to tables"),
    ):
        with pytest.raises(ValueError, match=message):
            compare(*given)
    with pytest.raises(TypeError, match="table 'iris' is a Bunch; give"):
        compare({"tree": DecisionTreeClassifier()}, {"iris": load_iris()})
    with pytest.raises(ValueError, match="models 'a', 'b' mix classifiers and regressors"):
        compare({"a": DecisionTreeClassifier(), "b": DecisionTreeRegressor()}, {"iris": (X, y)}, cv=3)
