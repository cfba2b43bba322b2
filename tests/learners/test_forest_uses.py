"""Importances on rows out of bag, and proximities, against loops over rows and trees."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.datasets import load_diabetes, load_iris

import gputree
import gputree.learners.forest_uses


def biased(n: int = 400) -> tuple[NDArray[Any], NDArray[Any]]:
    """One column of two values that matters, three of noise with many values (Strobl and others 2007)."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, n), rng.normal(size=n), rng.integers(0, 4, n), rng.integers(0, 20, n)])
    return X.astype(float), (rng.random(n) < 0.3 + 0.4 * X[:, 0]).astype(int)


def unseen(model: Any, n: int) -> list[NDArray[np.bool_]]:
    return [~np.isin(np.arange(n), rows) for rows in model.estimators_samples_]


# -- unbiased importances


@pytest.mark.parametrize(
    "cls", [gputree.RandomForestClassifier, gputree.RandomForestRegressor], ids=lambda c: c.__name__
)
def test_unbiased_importances_follow_their_definition(cls: Any) -> None:
    """For every unseen row, along its path: (mean of the child - mean of the node) times y."""
    X, y = load_iris(return_X_y=True) if "Classifier" in cls.__name__ else load_diabetes(return_X_y=True)
    model = cls(3, max_depth=4).fit(X, y)
    truth = np.eye(3)[y] if "Classifier" in cls.__name__ else y[:, None]
    expected = np.zeros(X.shape[1])
    for tree, out in zip(model.estimators_, unseen(model, len(X)), strict=True):
        forest, own = tree.forest_, np.zeros(X.shape[1])
        for row in np.flatnonzero(out):
            path = tree.decision_path(X[row : row + 1]).indices
            for node, child in pairwise(path):
                own[forest.feature[node]] += (forest.value[child] - forest.value[node]) @ truth[row]
        expected += own / out.sum()
    np.testing.assert_allclose(model.unbiased_importances(X, y), expected / 3, rtol=1e-9, atol=1e-12)


def test_noise_has_no_unbiased_importance() -> None:
    """The usual importance of the noisiest column is above that of the column that matters."""
    X, y = biased()
    model = gputree.RandomForestClassifier(100, max_features=None).fit(X, y)
    usual, found = model.feature_importances_, model.unbiased_importances(X, y)
    assert usual[1] > 2 * usual[0]
    assert found[0] > 0.05
    assert (np.abs(found[1:]) < 0.02).all()


# -- permutation importances


def test_permutation_importances_find_the_column_that_matters() -> None:
    X, y = biased()
    model = gputree.RandomForestClassifier(60).fit(X, y)
    found = model.permutation_importances(X, y)
    assert found[0] > 0.04
    assert (np.abs(found[1:]) < 0.03).all()
    again = gputree.RandomForestClassifier(60).fit(X, y).permutation_importances(X, y)
    np.testing.assert_array_equal(found, again)


def test_permutation_importances_of_groups() -> None:
    """Copies of a column hide each other; shuffled together they do not. A group of no column changes nothing."""
    X, y = biased()
    X = np.column_stack([X, X[:, 0]])
    model = gputree.RandomForestClassifier(60, max_features=1).fit(X, y)
    together, first, none = model.permutation_importances(X, y, [[0, 4], [0], []])
    assert together > first + 0.01
    assert none == 0


def test_permutation_importances_are_rises_of_the_error() -> None:
    """With columns that all trees ignore the error stays; the sum over rows is of unseen rows alone."""
    X, y = load_diabetes(return_X_y=True)
    X = np.column_stack([X, np.ones(len(X))])
    model = gputree.RandomForestRegressor(10, max_depth=4).fit(X, y)
    found = model.permutation_importances(X, y)
    assert found[-1] == 0
    assert found[[2, 8]].min() > 100  # body mass index and a blood value
    assert found.argmax() in (2, 8)


# -- proximities


def test_proximities() -> None:
    X, y = load_iris(return_X_y=True)
    model = gputree.RandomForestClassifier(12, max_depth=3).fit(X, y)
    leaves = model.apply(X)
    expected = (leaves[:, None] == leaves[None]).mean(axis=2)
    np.testing.assert_allclose(model.proximity(X), expected, rtol=0, atol=1e-15)
    np.testing.assert_allclose(model.proximity(X[:9], X), expected[:9], rtol=0, atol=1e-15)


def test_proximities_out_of_bag() -> None:
    X, y = load_iris(return_X_y=True)
    model = gputree.RandomForestClassifier(6, max_depth=3).fit(X, y)
    leaves, out = model.apply(X), np.array(unseen(model, 150)).T
    both = out[:, None] & out[None]
    with np.errstate(invalid="ignore"):
        expected = ((leaves[:, None] == leaves[None]) & both).sum(axis=2) / both.sum(axis=2)
    np.testing.assert_allclose(model.proximity(X, oob=True), expected, rtol=1e-12)
    assert np.isnan(expected).any()


def test_large_proximities_are_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = load_iris(return_X_y=True)
    model = gputree.RandomForestClassifier(5, max_depth=3).fit(X, y)
    dense = model.proximity(X)
    monkeypatch.setattr(gputree.learners.forest_uses, "DENSE_CELLS", 10)
    sparse = model.proximity(X)
    assert issparse(sparse)
    np.testing.assert_array_equal(sparse.toarray(), dense)


# -- quantiles


def test_quantiles_follow_their_definition() -> None:
    """Every tree gives each row of a leaf an equal part of its weight; y is cumulated in order."""
    X, y = load_diabetes(return_X_y=True)
    model = gputree.RandomForestRegressor(7, min_samples_leaf=5).fit(X[:300], y[:300])
    train, leaves, order = model.apply(X[:300]), model.apply(X[300:340]), np.argsort(y[:300])
    found = model.predict_quantiles(X[300:340], [0.1, 0.5, 1.0], X_train=X[:300], y_train=y[:300])
    for i, row in enumerate(leaves):
        same = train == row
        weight = (same / same.sum(axis=0)).mean(axis=1)[order]
        expected = [y[:300][order][np.flatnonzero(np.cumsum(weight) >= q - 1e-9)[0]] for q in (0.1, 0.5, 1.0)]
        assert found[i].tolist() == expected


def test_weights_of_quantiles() -> None:
    """A weight of 2 is a row twice, and a row of weight 0 is none."""
    X, y = load_diabetes(return_X_y=True)
    weight = np.arange(len(X)) % 3
    model = gputree.RandomForestRegressor(5, bootstrap=False, min_samples_leaf=5).fit(X, y, weight)
    rows = np.repeat(np.arange(len(X)), weight)
    found = model.predict_quantiles(X, X_train=X, y_train=np.where(weight == 0, 1e6, y), sample_weight=weight)
    np.testing.assert_array_equal(found, model.predict_quantiles(X, X_train=X[rows], y_train=y[rows]))


@pytest.mark.parametrize("bootstrap", [True, False])
def test_rows_of_weight_0_have_no_part_in_quantiles(bootstrap: bool) -> None:
    """They are left out, or have weight 0; without weights they would count as rows."""
    X, y = load_diabetes(return_X_y=True)
    weight = (y < 150).astype(float)
    model = gputree.RandomForestRegressor(5, bootstrap=bootstrap, min_samples_leaf=5).fit(X, y, weight)
    found = model.predict_quantiles(X, X_train=X[weight > 0], y_train=y[weight > 0])
    np.testing.assert_array_equal(found, model.predict_quantiles(X, X_train=X, y_train=y, sample_weight=weight))
    assert found.max() < 150
    with pytest.raises(ValueError, match=r"X_train has 442 rows of positive weight, and the fit had \d+: give all"):
        model.predict_quantiles(X, X_train=X, y_train=y)


@pytest.mark.parametrize("name", ["unbiased_importances", "permutation_importances"])
def test_rows_of_weight_0_have_no_part_in_importances(name: str) -> None:
    X, y = load_diabetes(return_X_y=True)
    weight = np.arange(len(X)) % 4 > 0
    model = gputree.RandomForestRegressor(5).fit(X, y, weight)
    np.testing.assert_array_equal(
        getattr(model, name)(X, np.where(weight, y, 1e6)), getattr(model, name)(X, np.where(weight, y, -5.0))
    )
    near = model.proximity(X, oob=True)
    assert np.isnan(near[~weight]).all()
    assert not np.isnan(near[weight][:, weight]).all()


def test_intervals_cover_what_they_say() -> None:
    """90% +- 3 of 2,000 held-out rows whose spread differs by row."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6000, 3))
    y = X[:, 0] * 2 + rng.normal(size=6000) * (0.2 + np.abs(X[:, 1]))
    model = gputree.RandomForestRegressor(30, min_samples_leaf=20, max_features=2).fit(X[:4000], y[:4000])
    low, high = model.predict_quantiles(X[4000:], [0.05, 0.95], X_train=X[:4000], y_train=y[:4000]).T
    inside = np.mean((y[4000:] >= low) & (y[4000:] <= high))
    assert abs(inside - 0.9) < 0.03
    wide = np.abs(X[4000:, 1]) > 0.7
    assert (high - low)[wide].mean() > 1.5 * (high - low)[np.abs(X[4000:, 1]) < 0.3].mean()


def test_quantiles_that_cannot_be() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = gputree.RandomForestRegressor(3).fit(X, y)
    with pytest.raises(ValueError, match=r"quantiles cannot be read .*give numbers in 0"):
        model.predict_quantiles(X, "a", X_train=X, y_train=y)
    with pytest.raises(ValueError, match=r"quantiles=\[5\] must lie in 0 \.\. 1"):
        model.predict_quantiles(X, [5], X_train=X, y_train=y)
    twice = np.tile(X, (2, 1)), np.r_[y, y + 1000.0]
    for train, text in (
        ((X[:400], y[:400]), r"X_train has 400 rows of positive weight, and the fit had 442: give all rows of the fit"),
        (twice, "X_train has 884 rows"),
        ((np.tile(X[:221], (2, 1)), y), r"leaves of the trees have none of the 442 rows .*give all rows of the fit"),
        ((X, y + 1000.0), "leaves have a mean outside of y_train"),
    ):
        with pytest.raises(ValueError, match=text):
            model.predict_quantiles(X, X_train=train[0], y_train=train[1])
    several = gputree.RandomForestRegressor(3).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="the fit had 2 outputs"):
        several.predict_quantiles(X, [0.5], X_train=X, y_train=y)


# -- errors


def test_what_needs_bags_and_the_rows_of_the_fit() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="every tree has seen all rows; fit with bootstrap=True"):
        gputree.ExtraTreesClassifier(3).fit(X, y).unbiased_importances(X, y)
    model = gputree.RandomForestClassifier(3).fit(X, y)
    with pytest.raises(ValueError, match="X has 100 rows, and the fit had 150"):
        model.permutation_importances(X[:100], y[:100])
    with pytest.raises(ValueError, match="oob=True compares the rows of the fit"):
        model.proximity(X, X[:5], oob=True)
    for groups in ([0, 1], [[-1]], [[9]]):
        with pytest.raises(ValueError, match=r"must be lists of columns 0 \.\. 3"):
            model.permutation_importances(X, y, groups)
    with pytest.raises(ValueError, match="y has 2 outputs, and the fit had 1"):
        model.unbiased_importances(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="y holds 7, which is none of the 3 known classes"):
        model.unbiased_importances(X, np.where(y == 0, 7, y))
