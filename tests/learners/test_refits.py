"""Fits on many subsets of a table: grown together they are what each fit alone gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.tree
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import KFold, LeaveOneOut

from gputree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
    RandomForestClassifier,
)
from gputree.backends.oracle import Oracle
from gputree.backends.protocol import DeviceError
from gputree.datasets import load_penguins
from gputree.learners import refits
from gputree.learners.refits import Joint, Refit, fit_each, refit_each
from gputree.stopping import MaxDepth, NoGain

Subsets = list[NDArray[np.intp]]


def all_but_one(n: int) -> Subsets:
    return [train for train, _ in LeaveOneOut().split(np.zeros((n, 1)))]


def thirds(n: int) -> Subsets:
    return [train for train, _ in KFold(3, shuffle=True, random_state=0).split(np.zeros((n, 1)))]


def resamples(n: int) -> Subsets:
    return list(np.random.default_rng(0).integers(0, n, (5, n)))


def part(X: Any, rows: NDArray[np.intp]) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def numbers(n: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Few and many distinct values, one column with missing ones; y with extremes that single rows hold."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, 4, n), rng.normal(size=n), np.round(rng.normal(size=n), 1)], axis=1).astype(float)
    X[rng.random(n) < 0.1, 1] = np.nan
    y = np.exp(rng.normal(size=n)) + X[:, 0]
    y[[3, 5]] = 40.125, -17.3
    return X, y


def labels(n: int, k: int = 3) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    X, y = numbers(n)
    return X, np.digitize(y, np.quantile(y, np.arange(1, k) / k))


def compare(model: Any, X: Any, y: Any, subsets: Subsets, same_trees: bool = True, together: bool = True) -> None:
    """All fits of the model against a loop, tree by tree and by what they predict of the rows that were left out."""
    joint = Joint.of(model, X, y, subsets)
    assert (joint is not None) == together
    rest = [np.setdiff1d(np.arange(len(y)), rows) for rows in subsets]

    def use(number: int, refit: Refit) -> tuple[str, NDArray[Any], NDArray[Any]]:
        rows = subsets[number]
        trees = refit.model.fingerprint() if hasattr(refit.model, "fingerprint") else ""
        return trees, refit.predict(rest[number]), refit.predict(rows)

    (found,) = refit_each([model], X, y, subsets, use)
    for (fingerprint, unseen, seen), rows, others in zip(found, subsets, rest, strict=True):
        alone = clone(model).fit(part(X, rows), y[rows])
        np.testing.assert_array_equal(unseen, alone.predict(part(X, others)))
        np.testing.assert_array_equal(seen, alone.predict(part(X, rows)))
        assert not same_trees or fingerprint == alone.fingerprint()


SETTINGS: list[dict[str, Any]] = [
    {},
    {"max_depth": 3, "min_samples_leaf": 0.05},
    {"max_leaf_nodes": 5, "min_impurity_decrease": 0.01},
    {"max_features": 1, "random_state": 7, "min_samples_split": 5},
    {"ccp_alpha": 0.02, "min_weight_fraction_leaf": 0.02},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "-".join(settings))
@pytest.mark.parametrize("cls", [DecisionTreeClassifier, ExtraTreeClassifier])
def test_trees_of_labels_are_those_of_the_loop(cls: Any, settings: dict[str, Any]) -> None:
    X, y = labels(40)
    compare(cls(**settings), X, y, all_but_one(40))
    compare(cls(**settings), X, y, thirds(40))


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "-".join(settings))
@pytest.mark.parametrize("cls", [DecisionTreeRegressor, ExtraTreeRegressor])
@pytest.mark.parametrize("n", [32, 41])  # 31 of 32 rows leave sums one bit more
def test_trees_of_numbers_are_those_of_the_loop(cls: Any, settings: dict[str, Any], n: int) -> None:
    """The range of y, and so the scale of the sums, changes where an extreme is left out."""
    X, y = numbers(n)
    compare(cls(**settings), X, y, all_but_one(n))
    compare(cls(**settings), X, y, thirds(n))


@pytest.mark.parametrize("criterion", ["entropy", "train_error", "gain_ratio", "twoing", "chi2"])
def test_every_criterion(criterion: str) -> None:
    X, y = labels(30)
    compare(DecisionTreeClassifier(criterion=criterion), X, y, all_but_one(30))


def test_poisson_and_several_outputs() -> None:
    X, y = numbers(30)
    compare(DecisionTreeRegressor(criterion="poisson"), X, np.maximum(y, 0), all_but_one(30))
    compare(DecisionTreeRegressor(), X, np.stack([y, -(y**2)], axis=1), all_but_one(30))
    compare(DecisionTreeClassifier(), X, np.stack([y > 1, X[:, 0] > 1], axis=1), all_but_one(30))


@pytest.mark.parametrize("cls", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_compiled_kernels_grow_the_same(cls: Any) -> None:
    pytest.importorskip("numba", reason="expected: without Numba")
    regression = issubclass(cls, DecisionTreeRegressor)
    X, y = numbers(60) if regression else labels(60)
    compare(cls(device="jit"), X, y, all_but_one(60))
    compare(cls(device="jit"), X, y, resamples(60), same_trees=False)
    found = [fingerprints(cls(device=device), X, y, all_but_one(60)) for device in ("numpy", "jit")]
    assert found[0] == found[1]


def fingerprints(model: Any, X: Any, y: Any, subsets: Subsets) -> list[str]:
    return refit_each([model], X, y, subsets, lambda _, refit: str(refit.model.fingerprint()))[0]


def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = labels(40)
    model = DecisionTreeClassifier(max_features=1)
    whole = fingerprints(model, X, y, all_but_one(40))
    monkeypatch.setattr(refits, "POSITIONS", 100)
    assert fingerprints(model, X, y, all_but_one(40)) == whole


@pytest.mark.parametrize("cls", [DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor])
def test_resamples_predict_what_the_loop_predicts(cls: Any) -> None:
    """Their trees count rows beside weights, so they are not the same arrays."""
    X, y = numbers(50) if issubclass(cls, DecisionTreeRegressor) else labels(50)
    compare(cls(), X, y, resamples(50), same_trees=False)
    compare(cls(min_samples_leaf=3), X, y, resamples(50), together=False)  # copies count there


def test_a_class_that_a_subset_lacks() -> None:
    X, y = labels(30)
    named = np.array(["a", "b", "c"])[y]
    named[4] = "only here"
    compare(DecisionTreeClassifier(), X, named, all_but_one(30), same_trees=False)


def test_sparse_tables() -> None:
    X, y = labels(40)
    for form in (csr_matrix, csc_matrix):
        compare(DecisionTreeClassifier(), form(np.nan_to_num(np.maximum(X, 0))), y, thirds(40))


def penguins(n: int) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Text, numbers and missing cells; a category that only one row has."""
    frame = load_penguins().to_frame("pandas").iloc[::6].head(n).reset_index(drop=True)
    frame.loc[2, "island"] = "Atlantis"
    return frame.drop(columns="species"), frame["species"].eq("Adelie").to_numpy()


def test_frames_with_categories_and_missing_cells() -> None:
    X, y = penguins(45)
    compare(DecisionTreeClassifier(), X, y, all_but_one(45), same_trees=False)
    compare(DecisionTreeClassifier(categorical_split="multiway"), X, y, all_but_one(45), same_trees=False)
    compare(DecisionTreeRegressor(), X, y.astype(float), thirds(45), same_trees=False)
    declared = {"island": ["Atlantis", "Biscoe", "Dream", "Torgersen"], "sex": ["female", "male"]}
    compare(ExtraTreeClassifier(categories=declared), X, y, all_but_one(45))


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(class_weight="balanced"),
        DecisionTreeClassifier(unknown="error", categorical_features=[0]),
        ExtraTreeClassifier(categorical_features=[0]),
        RandomForestClassifier(3),
        sklearn.tree.DecisionTreeClassifier(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_would_differ_is_fitted_one_by_one(model: Any) -> None:
    """Class weights and categories of other rows, and models that are no single trees of this library."""
    X, y = labels(30, 2)
    own = hasattr(model, "fingerprint")
    compare(model, X, y, thirds(30), same_trees=own, together=False)


def test_quantile_codes_are_those_of_the_subset() -> None:
    X, y = load_diabetes(return_X_y=True)
    compare(DecisionTreeRegressor(max_bins=8), X[:90], y[:90], thirds(90), together=False)
    compare(DecisionTreeRegressor(max_bins=90), X[:90], y[:90], thirds(90))


def test_poisson_needs_a_positive_sum_in_every_subset() -> None:
    X, y = numbers(6)
    y = np.array([0.0, 0, 0, 5, 0, 0])
    model = DecisionTreeRegressor(criterion="poisson")
    with pytest.raises(ValueError, match="its sum must be positive"):
        refit_each([model], X, y, all_but_one(6), lambda *_: None)


def test_a_subclass_may_do_as_it_likes() -> None:
    class Own(DecisionTreeClassifier):
        pass

    X, y = labels(20)
    assert Joint.of(Own(), X, y, thirds(20)) is None


@pytest.mark.parametrize("cls", [ExtraTreeClassifier, ExtraTreeRegressor])
def test_a_stream_of_seeds_is_that_of_each_clone(cls: Any) -> None:
    """`clone` copies a RandomState, so every fit draws the same seed from it."""
    X, y = numbers(30) if issubclass(cls, ExtraTreeRegressor) else labels(30)
    compare(cls(random_state=np.random.RandomState(3)), X, y, all_but_one(30))


def test_a_device_that_fails_leaves_the_work_to_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(Oracle):
        def open(self, *given: Any) -> Any:
            raise DeviceError("the device is lost")

    X, y = labels(30)
    monkeypatch.setattr(refits, "choose", lambda *_: Failing())
    compare(DecisionTreeClassifier(), X, y, thirds(30))
    with pytest.raises(DeviceError, match="the device is lost"):
        compare(DecisionTreeClassifier(device="cpu"), X, y, thirds(30))


def test_models_that_differ_in_a_long_parameter() -> None:
    """As text, arrays of more than 1,000 numbers are abridged."""
    signs = np.zeros((2, 1100), int)
    signs[1, 500] = 1
    models = [DecisionTreeRegressor(monotonic_cst=row) for row in signs]
    assert len(refits.grown_alike(models)) == 2


def test_alphas_of_one_growth() -> None:
    X, y = load_iris(return_X_y=True)
    alphas = [0.0, 0.01, 0.02, 0.3]
    models: Sequence[Any] = [DecisionTreeClassifier(ccp_alpha=alpha) for alpha in alphas]
    models = [*models, DecisionTreeClassifier(max_depth=2, ccp_alpha=0.01)]
    subsets = thirds(150)
    found = refit_each(models, X, y, subsets, lambda _, refit: refit.model.fingerprint())
    loop = [[clone(model).fit(X[rows], y[rows]).fingerprint() for rows in subsets] for model in models]
    assert found == loop
    grown: list[int] = []
    original = refits.grow

    def counted(*args: Any) -> Any:
        grown.append(1)
        return original(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refits, "grow", counted)
        refit_each(models, X, y, subsets, lambda *_: None)
    assert len(grown) == 2


@pytest.mark.parametrize(("settings", "match"), [({"max_depth": 0}, "max_depth"), ({"criterion": "no"}, "criterion")])
def test_a_wrong_parameter_is_refused_as_in_a_fit(settings: dict[str, Any], match: str) -> None:
    X, y = labels(20)
    with pytest.raises(ValueError, match=match):
        refit_each([DecisionTreeClassifier(**settings)], X, y, thirds(20), lambda *_: None)


def test_one_growth_for_all_alphas_of_a_table() -> None:
    """Model by model what a fit of its own gives, in whatever order the alphas are."""
    X, y = numbers(80)
    stops = MaxDepth(4) | NoGain()
    models = [DecisionTreeRegressor(ccp_alpha=alpha, stopping=stops) for alpha in (0.05, 0.0, 3.0, 0.001, 0.05)]
    models += [DecisionTreeRegressor(ccp_alpha=0.01), ExtraTreeRegressor(ccp_alpha=0.01), ExtraTreeRegressor()]
    found = [fitted for fitted, seconds in fit_each(models, X, y) if seconds > 0]
    assert len(found) == len(models)
    for fitted, model in zip(found, models, strict=True):
        alone = clone(model).fit(X, y)
        assert fitted.get_params() == alone.get_params()
        assert fitted.fingerprint() == alone.fingerprint()
        np.testing.assert_array_equal(fitted.predict(X), alone.predict(X))
        assert sorted(vars(fitted)) == sorted(vars(alone))
        if model.stopping is not None:
            np.testing.assert_array_equal(fitted.stop_reason_, alone.stop_reason_)


@pytest.mark.parametrize("alphas", [[-1.0, 0.1], [0.1, -1.0], [0.1, "a"]])
def test_every_alpha_of_a_growth_is_checked(alphas: list[Any]) -> None:
    X, y = labels(20)
    models = [DecisionTreeClassifier(ccp_alpha=alpha) for alpha in alphas]
    with pytest.raises(ValueError, match="'ccp_alpha' parameter"):
        refit_each(models, X, y, thirds(20), lambda *_: None)
    with pytest.raises(ValueError, match="'ccp_alpha' parameter"):
        list(fit_each(models, X, y))


def test_what_is_odd_in_other_rows_is_nothing_to_a_subset() -> None:
    """The table as a whole is refused: a negative count, a label that is none."""
    X, y = numbers(30)
    y = np.abs(y)
    first = [np.arange(20), np.arange(5, 20)]
    negative, nameless = y.copy(), (y > 1).astype(object)
    negative[25], nameless[25] = -1.0, None
    for model, table, target in (
        (DecisionTreeRegressor(criterion="poisson"), X, negative),
        (DecisionTreeClassifier(), X, nameless),
    ):
        with pytest.raises((ValueError, TypeError)):
            clone(model).fit(table, target)
        assert Joint.of(model, table, target, first) is None
        assert len(refit_each([model], table, target, first, lambda *_: 0)[0]) == 2


def test_errors_of_the_program_are_not_taken_for_odd_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = labels(20)

    def broken(*_: Any) -> Any:
        raise RuntimeError("a defect")

    for name in ("_read_target", "_recipe", "_edges"):
        with monkeypatch.context() as patch:
            patch.setattr(DecisionTreeClassifier, name, broken)
            with pytest.raises(RuntimeError, match="a defect"):
                Joint.of(DecisionTreeClassifier(), X, y, thirds(20))
