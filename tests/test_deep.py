"""Trees that are as deep as they have rows: nothing recurses over depth, and nothing grows with 2 to its power."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gputree
from tests.inspect.chain import chain

MILLION = 1_000_000


def alternating(n: int) -> tuple[Any, Any]:
    """Every cut gains little, and the lowest is taken: each level parts one row from the rest."""
    return np.arange(float(n))[:, None], np.arange(n) % 2


def check(model: Any, X: Any, y: Any, folder: Path) -> None:
    """Look at it, save it, load it, predict with it."""
    text = gputree.export_text(model)
    assert text.count("\n") == 3 * 11 + 1
    assert f"truncated branch of depth {model.get_depth() - 10}" in text
    assert "nodes" in gputree.tree_html(model)
    gputree.save(model, folder / "deep")
    for other in (
        gputree.load(folder / "deep"),
        gputree.load(folder / "deep", mmap=True),
        pickle.loads(pickle.dumps(model)),
    ):
        assert other.fingerprint() == model.fingerprint()
        np.testing.assert_array_equal(other.predict(X), y)


@pytest.mark.parametrize("limit", [{}, {"max_leaf_nodes": 3000}, {"ccp_alpha": 1e-9}], ids=str)
def test_a_chain_is_fitted(limit: dict[str, Any], tmp_path: Path) -> None:
    X, y = alternating(3000)
    model = gputree.DecisionTreeClassifier(**limit).fit(X, y)
    assert (model.get_depth(), model.forest_.n_nodes) == (2999, 5999)
    check(model, X, y, tmp_path)
    assert model.decision_path(X[-1:]).nnz == 3000
    assert len(gputree.export_dict(model)["nodes"]) == len(model.trees_to_dataframe()) == 5999


@pytest.mark.slow
def test_a_deeper_chain_is_fitted(tmp_path: Path) -> None:
    """The rows of a level are visited one by one, so this takes a minute; codes of two bytes allow 65,534 levels."""
    X, y = alternating(20_000)
    model = gputree.DecisionTreeClassifier().fit(X, y)
    assert model.get_depth() == 19_999
    check(model, X[::4000], y[::4000], tmp_path)


@pytest.mark.slow
def test_a_chain_of_a_million_levels(tmp_path: Path) -> None:
    """Made by hand: to grow it, 5 * 10**11 rows would have to be visited."""
    model = chain(MILLION)
    check(model, [[0.0], [2.5], [999_999.5]], [0, 3, MILLION], tmp_path)
    assert model.decision_path([[1e9]]).nnz == MILLION + 1
    assert len(gputree.export_dict(model)["nodes"]) == 2 * MILLION + 1
    assert gputree.plot_tree(model, max_depth=3)
    assert gputree.to_sklearn(model).predict([[5.0]]).tolist() == [5]
