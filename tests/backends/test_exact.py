"""max_bins=None: every distinct value is a code, however many; numbers up to four bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.tree
from numpy.typing import NDArray

import gputree
from gputree.backends import jit
from gputree.core.schema import ALL_CODES, MAX_CODES, code_dtype, numeric_cuts
from tests.backends.cards import emulate

WIDE = 70_000  # rows, and more values than two bytes tell apart


def table(n: int, columns: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Columns that are permutations of 0 .. n - 1: no value and no gain is tied; numbers to learn."""
    rng = np.random.default_rng(n)
    X = np.stack([rng.permutation(n) for _ in range(columns)], axis=1).astype(np.float32)
    Z = X.astype(np.float64) / n
    return X, np.sin(6 * Z[:, 0]) + Z[:, 1] ** 2 + Z[:, -2] * Z[:, -1] + 0.3 * rng.normal(size=n)


def same_nodes(ours: Any, theirs: Any) -> None:
    """Trees of `sklearn` are equal: tests, rows and children; values as far as sums in any order agree."""
    mine, other = ours.to_sklearn().tree_, theirs.tree_
    assert mine.node_count == other.node_count > 1000
    for name in ("feature", "threshold", "children_left", "children_right", "n_node_samples"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(other, name))
    np.testing.assert_allclose(mine.value, other.value, rtol=1e-9)


def test_codes_take_the_bytes_they_need() -> None:
    assert [code_dtype(n).itemsize for n in (255, 256, MAX_CODES, MAX_CODES + 1, ALL_CODES)] == [1, 2, 2, 4, 4]
    column = np.arange(WIDE, dtype=np.float64)
    assert numeric_cuts(column, None, ALL_CODES).n_codes == WIDE
    assert numeric_cuts(column, None, None).n_codes == 255
    assert numeric_cuts(column, None, ALL_CODES).code_of(column[::-1]).tolist() == list(range(WIDE, 0, -1))


@pytest.mark.parametrize("device", ["numpy", "jit"])
def test_a_small_table_is_exact_with_auto_too(device: str) -> None:
    if device == "jit":
        pytest.importorskip("numba")
    X, y = table(2000, 3)
    auto, exact = (gputree.DecisionTreeRegressor(max_bins=m, device=device).fit(X, y) for m in ("auto", None))
    assert auto.fingerprint() == exact.fingerprint()
    assert exact.get_params()["max_bins"] is None


def mixed(n: int = WIDE) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Columns with many values, with few, of categories, and with missing values."""
    X, y = table(n, 3)
    rng = np.random.default_rng(1)
    columns = np.column_stack([X, np.round(X[:, 0] / n * 40), rng.integers(0, 9, n)])
    columns[rng.random(columns.shape) < 0.05] = np.nan
    return columns, y


JOBS: dict[str, dict[str, Any]] = {
    "numbers": {},
    "classes": {},
    "random": {"splitter": "random"},
    "weights": {"min_samples_leaf": 9},
    "subsets": {"categorical_features": [4], "min_samples_leaf": 20},
    "branches": {"categorical_features": [4], "categorical_split": "multiway", "min_samples_leaf": 20},
    "best first": {"max_leaf_nodes": 60},
    "some columns": {"max_features": 2, "min_samples_leaf": 5},
}


@pytest.mark.parametrize("part_rows", [100, 1 << 13])
@pytest.mark.parametrize("name", JOBS)
def test_compiled_kernels_grow_numpys_trees(monkeypatch: pytest.MonkeyPatch, name: str, part_rows: int) -> None:
    """Small parts hold few of the codes, and are numbered anew; there are large nodes of few rows, too."""
    pytest.importorskip("numba")
    monkeypatch.setattr(jit, "PART_ROWS", part_rows)
    monkeypatch.setattr(jit, "DRAWN_ROWS", part_rows)
    X, y = mixed()
    kind = gputree.DecisionTreeClassifier if name != "numbers" else gputree.DecisionTreeRegressor
    target = y if name == "numbers" else (y > 1).astype(int)
    weight = np.random.default_rng(2).integers(0, 4, len(y)) if name == "weights" else None
    ours, theirs = (
        kind(max_bins=None, device=device, random_state=1, **{"max_depth": 12} | JOBS[name]).fit(X, target, weight)
        for device in ("jit", "numpy")
    )
    assert ours.fingerprint() == theirs.fingerprint()
    np.testing.assert_array_equal(ours.apply(X[:5000]), theirs.apply(X[:5000]))


@pytest.mark.parametrize("device", ["numpy", "jit"])
def test_a_wide_table_gives_scikit_learns_tree(device: str) -> None:
    if device == "jit":
        pytest.importorskip("numba")
    X, y = table(WIDE, 4)
    ours = gputree.DecisionTreeRegressor(min_samples_leaf=40, max_bins=None, device=device).fit(X, y)
    same_nodes(ours, sklearn.tree.DecisionTreeRegressor(min_samples_leaf=40, random_state=0).fit(X, y))


def test_400_000_rows_give_scikit_learns_tree() -> None:
    """Node for node; and the table has what quantiles would not tell apart."""
    pytest.importorskip("numba")
    X, y = table(400_000, 5)
    ours = gputree.DecisionTreeRegressor(min_samples_leaf=40, max_bins=None, device="jit").fit(X, y)
    same_nodes(ours, sklearn.tree.DecisionTreeRegressor(min_samples_leaf=40, random_state=0).fit(X, y))
    quantiles = gputree.DecisionTreeRegressor(min_samples_leaf=40, device="jit").fit(X, y)
    assert quantiles.fingerprint() != ours.fingerprint()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_forests_of_wide_columns(n_jobs: int) -> None:
    pytest.importorskip("numba")
    X, y = table(WIDE, 3)
    given: dict[str, Any] = {"n_estimators": 3, "max_depth": 9, "max_bins": None, "random_state": 0}
    ours = gputree.RandomForestRegressor(device="jit", n_jobs=n_jobs, **given).fit(X, y)
    assert ours.fingerprint() == gputree.RandomForestRegressor(device="numpy", **given).fit(X, y).fingerprint()


def test_cuda_refuses_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(WIDE, 2)
    emulate(monkeypatch)
    with pytest.raises(
        RuntimeError, match=r"max_bins=None: column 'feature_0' has 70,000 distinct values.*65,535.*device='cpu'"
    ):
        gputree.DecisionTreeRegressor(max_bins=None, max_depth=2, device="cuda").fit(X, y)
    few = X[:500], y[:500]
    trees = [gputree.DecisionTreeRegressor(max_bins=None, device=device).fit(*few) for device in ("cuda", "numpy")]
    assert trees[0].fingerprint() == trees[1].fingerprint()
