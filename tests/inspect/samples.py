"""Fitted trees of every shape that texts and pictures must cope with."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes, load_iris

import gputree
from gputree.datasets import load_penguins

ODD_NAMES = ['a "b" \\', "c & <d>", "x_$1$ {%}"]
ODD_WORDS = ["$a$", "b,c", "<x>", "d\ne", "\\frac", "&lt;", '"q"', "", " blank ", "... 3 more", "é\u202e", "z" * 70]


def counties(n: int = 1500) -> tuple[pd.DataFrame, Any]:
    """Forty declared categories of which seven never occur, missing values in every column, a boolean."""
    rng = np.random.default_rng(3)
    names = [f"county {i:02d}" for i in range(40)]
    county = rng.choice(names[:33], n).astype(object)
    age = rng.integers(18, 90, n).astype(float)
    smoker = (rng.random(n) < 0.3).astype(object)
    y = np.array([int(c[-2:]) % 7 * 100 for c in county]) + smoker.astype(int) * 50 + age
    county[::11], age[::7], smoker[::13] = None, np.nan, None
    frame = pd.DataFrame(
        {"county": pd.Categorical(county, categories=names), "age": age, "smoker": pd.array(smoker, dtype="boolean")}
    )
    return frame, y


def odd() -> tuple[pd.DataFrame, Any]:
    """Names and categories full of characters that mean something to a format."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({ODD_NAMES[0]: rng.choice(ODD_WORDS, 600), ODD_NAMES[1]: rng.random(600)})
    frame[ODD_NAMES[2]] = rng.choice(np.array([*ODD_WORDS[:4], None], object), 600)
    code = np.array([ODD_WORDS.index(word) for word in frame[ODD_NAMES[0]]])
    return frame, np.array(["cl$s", "<b>", "&amp;"])[(code + (frame[ODD_NAMES[1]] > 0.5)) % 3]


def two_outputs() -> tuple[Any, Any]:
    X, y = load_iris(return_X_y=True)
    return X[:, :2], np.stack([y, y > 0], axis=1)


MAKERS: dict[str, Callable[[], Any]] = {
    "iris": lambda: gputree.DecisionTreeClassifier().fit(*load_iris(return_X_y=True)),
    "penguins_multiway": lambda: gputree.DecisionTreeClassifier(max_leaf_nodes=9, categorical_split="multiway").fit(
        *penguins("species")
    ),
    "penguins_subset": lambda: gputree.DecisionTreeRegressor(max_leaf_nodes=9).fit(*penguins("body_mass_g")),
    "known_or_missing": lambda: gputree.DecisionTreeRegressor().fit(*holes()),
    "counties_multiway": lambda: gputree.DecisionTreeRegressor(max_depth=3, categorical_split="multiway").fit(
        *counties()
    ),
    "counties_subset": lambda: gputree.DecisionTreeRegressor(max_leaf_nodes=12).fit(*counties()),
    "counties_fan": lambda: gputree.DecisionTreeRegressor(max_depth=1, categorical_split="multiway").fit(*counties()),
    "large": lambda: gputree.DecisionTreeRegressor(max_leaf_nodes=150).fit(*load_diabetes(return_X_y=True)),
    "outputs": lambda: gputree.DecisionTreeRegressor(max_leaf_nodes=6).fit(*two_outputs()),
    "class_outputs": lambda: gputree.DecisionTreeClassifier(max_leaf_nodes=6).fit(*two_outputs()),
    "odd": lambda: gputree.DecisionTreeClassifier(max_leaf_nodes=30, categorical_split="multiway").fit(*odd()),
    "root": lambda: gputree.DecisionTreeClassifier().fit([[1.0], [2.0]], ["one", "one"]),
    "wide": lambda: gputree.DecisionTreeRegressor(categorical_split="multiway").fit(*wide()),
    "chain": lambda: gputree.DecisionTreeClassifier().fit(np.arange(1500.0)[:, None], np.arange(1500) % 2),
    "classes": lambda: gputree.DecisionTreeClassifier(max_leaf_nodes=5).fit(*many_classes()),
}


def penguins(target: str) -> tuple[pd.DataFrame, Any]:
    frame = load_penguins().to_frame("pandas")
    frame = frame[frame[target].notna()]
    y = frame[target].to_numpy()
    return frame.drop(columns=target), y if y.dtype == float else y.astype(object)


def holes() -> tuple[pd.DataFrame, Any]:
    """What is missing is all that counts."""
    rng = np.random.default_rng(8)
    word, x = rng.choice(np.array(["ash", "elm", None], object), 300), rng.random(300)
    yes = rng.choice(np.array([False, True, None], object), 300)
    x[rng.random(300) < 0.4] = np.nan
    frame = pd.DataFrame({"word": word, "x": x, "yes": pd.array(yes, dtype="boolean")})
    return frame, (frame.isna() * [4.0, 2.0, 1.0]).sum(axis=1).to_numpy()


def wide() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(6)
    return pd.DataFrame({"k": rng.choice([f"v{i}" for i in range(300)], 4000)}), rng.random(4000)


def many_classes() -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    return rng.random((500, 2)), rng.choice([f"class number {i}" for i in range(30)], 500)


@cache
def sample(name: str) -> Any:
    """One of the trees of MAKERS, fitted once."""
    return MAKERS[name]()
