"""What the cases share: the learners, the ways to grow a tree, and the checks that every table must pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gputree
from gputree.core.forest import Test

Classifier = gputree.DecisionTreeClassifier
Regressor = gputree.DecisionTreeRegressor
TASKS = [Classifier, Regressor]
LEARNERS = [Classifier, Regressor, gputree.ExtraTreeClassifier, gputree.ExtraTreeRegressor]
WAYS: dict[str, dict[str, Any]] = {
    "level by level": {},
    "best first": {"max_leaf_nodes": 100_000},
    "random tests": {"splitter": "random"},
}
FLOATS = [np.float16, np.float32, np.float64]
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
STEP = np.array([0, 0, 0, 0, 1, 1, 1, 1])
EIGHT = np.arange(8.0)[:, None]


def column(*values: Any, dtype: Any = np.float64) -> NDArray[Any]:
    return np.array(values, dtype)[:, None]


def leaf_rows(model: Any) -> NDArray[np.int64]:
    """Training rows of every node, 0 where it is no leaf."""
    forest = model.forest_
    rows: NDArray[np.int64] = np.where(forest.kind == Test.LEAF, model.layout_.count(forest.stats.T), 0)
    return rows


def every_model(X: Any, y: Any, **settings: Any) -> Iterator[Any]:
    """Both tasks, grown in every way, without weights and with ones that are no whole numbers."""
    uneven = np.linspace(0.1, 0.7, len(y))
    for cls in TASKS:
        for way in WAYS.values():
            for weight in (None, uneven):
                yield cls(**way, **settings).fit(X, y, weight)


def assert_separates(X: Any, y: Any, **settings: Any) -> None:
    """Every training row gets its own label back, and arrives in the leaf where it was counted."""
    for model in every_model(X, y, **settings):
        assert model.predict(X).tolist() == list(y), model
        arrived = np.bincount(model.apply(X), minlength=model.forest_.n_nodes)
        np.testing.assert_array_equal(arrived, leaf_rows(model), err_msg=str(model))


def same_tests(a: Any, b: Any) -> None:
    """Two models ask the same of every row: features, thresholds, sides of missing values, sets of categories."""
    for name in ("kind", "feature", "low", "first_child", "missing", "lookup_code", "lookup_branch"):
        np.testing.assert_array_equal(getattr(a.forest_, name), getattr(b.forest_, name), err_msg=name)


def members(model: Any, X: Any) -> list[NDArray[np.intp]]:
    """Rows that pass each node."""
    path = model.decision_path(X).tocsc()
    return [path.indices[path.indptr[i] : path.indptr[i + 1]] for i in range(model.forest_.n_nodes)]
