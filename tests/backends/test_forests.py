"""A fit on the GPU gives the forest of the oracle, array for array: on the emulator, and with `-m gpu` on a card."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

import gputree
from gputree.core.forest import Forest, Test
from tests.backends.cards import emulate
from tests.emulator.driver import Emulator

CRITERIA = ("gini", "entropy", "train_error", "gain_ratio", "twoing", "chi2", "squared_error", "poisson")
SUMS = ("squared_error", "poisson")
LIVE = 1000  # open nodes of one level


@pytest.fixture(params=["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator | None]:
    """device="cuda" is the emulator, or the card; afterwards all of its memory has been given back."""
    if request.param == "cuda":
        yield None
        return
    emulator = emulate(monkeypatch)
    yield emulator
    assert emulator.reserved == [0]


@dataclass(frozen=True)
class Job:
    """A table and a learner. ``learner`` is Decision or Extra; ``live``: a level has more than LIVE open nodes."""

    X: NDArray[Any]
    y: NDArray[Any]
    weight: NDArray[Any] | None = None
    learner: str = "Decision"
    live: bool = False
    parameters: dict[str, Any] = field(default_factory=dict)

    def fit(self, device: str) -> Any:
        kind = "Regressor" if self.y.dtype == np.float64 else "Classifier"
        cls = getattr(gputree, f"{self.learner}Tree{kind}")
        return cls(device=device, random_state=3, **self.parameters).fit(self.X, self.y, self.weight)


def noise(n: int, columns: int, seed: int = 0) -> NDArray[Any]:
    """Columns of normal numbers, one of few values, a tenth of the cells missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns)).astype(np.float32)
    X[:, 0] = np.floor(X[:, 0] * 2)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def categories(n: int, columns: int, each: int = 4, seed: int = 0) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, each, (n, columns)).astype(np.float64)
    X[rng.random(X.shape) < 0.02] = np.nan
    return X


def labels(n: int, classes: int, seed: int = 1) -> NDArray[Any]:
    return np.random.default_rng(seed).integers(0, classes, n)


def counts(n: int, seed: int = 2) -> NDArray[np.float64]:
    return np.random.default_rng(seed).poisson(2.0, n).astype(np.float64)


def weights(n: int) -> NDArray[np.float64]:
    return np.random.default_rng(4).integers(0, 5, n).astype(np.float64)


def grown_wide(criterion: str, learner: str) -> Job:
    """Labels that nothing explains and columns that part rows evenly: levels of many open nodes."""
    n, rng, even = 14_000, np.random.default_rng(0), criterion == "gain_ratio"  # which likes uneven parts
    sizes = [2] * 10 + ([2, 2, 2] if even else [3, 4, 4])
    X = rng.integers(0, sizes, (n, 13)).astype(np.float32)
    X[rng.random(n) < 0.01, 10] = np.nan
    y = counts(n) if criterion in SUMS else labels(n, 2)
    more = {"criterion": criterion, "categorical_features": [11, 12], "max_depth": 14 if criterion in SUMS else 12}
    return Job(X, y, learner=learner, live=True, parameters=more)


def grown_multiway(criterion: str, learner: str) -> Job:
    """Four categories with a branch each: 4**6 nodes at depth 6."""
    n = 8_500
    X = categories(n, 7)
    y = counts(n) if criterion in SUMS else labels(n, 3)
    more = {"criterion": criterion, "categorical_features": list(range(7)), "categorical_split": "multiway"}
    return Job(X, y, learner=learner, live=True, parameters={**more, "max_depth": 7})


def sample(load: Callable[..., Any], **parameters: Any) -> Job:
    X, y = load(return_X_y=True)
    return Job(X, y, parameters=parameters)


def mixed(n: int, y: NDArray[Any], **parameters: Any) -> Job:
    X = np.column_stack([noise(n, 4, 5), categories(n, 3, 9, 5)])
    return Job(X, y, parameters={"categorical_features": [4, 5, 6], **parameters})


def two_outputs(n: int) -> NDArray[Any]:
    return np.column_stack([labels(n, 2), labels(n, 3, 6)])


JOBS: dict[str, Callable[[], Job]] = {
    **{
        f"{learner} {criterion}": lambda c=criterion, w=learner: grown_wide(c, w)  # type: ignore[misc]
        for criterion in CRITERIA
        for learner in ("Decision", "Extra")
    },
    **{
        f"multiway {criterion}": lambda c=criterion: grown_multiway(c, "Decision")  # type: ignore[misc]
        for criterion in CRITERIA
        if criterion != "twoing"  # of two branches only
    },
    "iris": lambda: sample(load_iris),
    "wine": lambda: sample(load_wine, criterion="entropy"),
    "breast cancer, two bytes": lambda: sample(load_breast_cancer),
    "digits, ten classes": lambda: sample(load_digits, criterion="gain_ratio"),
    "diabetes": lambda: sample(load_diabetes),
    "diabetes, best first": lambda: sample(load_diabetes, max_leaf_nodes=40),
    "diabetes, pruned": lambda: sample(load_diabetes, ccp_alpha=20.0),
    "best first": lambda: mixed(700, labels(700, 2), max_leaf_nodes=60),
    "best first of branches": lambda: mixed(700, labels(700, 4), max_leaf_nodes=60, categorical_split="multiway"),
    "weights": lambda: Job(noise(3000, 6), labels(3000, 3), weights(3000)),
    "real weights": lambda: Job(noise(1500, 6), labels(1500, 2), np.random.default_rng(8).random(1500)),
    "class weights": lambda: mixed(900, labels(900, 2), class_weight="balanced"),
    "weighted numbers": lambda: Job(noise(1500, 6), counts(1500), weights(1500)),
    "weighted counts": lambda: Job(noise(1500, 6), counts(1500), weights(1500), parameters={"criterion": "poisson"}),
    "two outputs": lambda: Job(noise(1200, 5), two_outputs(1200)),
    "three numbers": lambda: Job(noise(1200, 5), np.random.default_rng(1).normal(size=(1200, 3))),
    "41 classes": lambda: Job(noise(1500, 5), labels(1500, 41)),
    "300 classes": lambda: Job(noise(1200, 4), labels(1200, 300), parameters={"max_bins": 64}),
    "one class": lambda: Job(noise(100, 4), labels(100, 1)),
    "200 columns": lambda: Job(noise(400, 200), labels(400, 2)),
    "200 columns of bytes, some at a time": lambda: Job(
        noise(900, 200), labels(900, 3), parameters={"max_bins": 100, "max_features": "sqrt"}
    ),
    "two bytes, some at a time": lambda: Job(noise(900, 12), labels(900, 2), parameters={"max_features": 3}),
    "two bytes and more than a tile": lambda: Job(noise(5000, 3), labels(5000, 2), parameters={"max_depth": 6}),
    "300 categories": lambda: Job(
        categories(3000, 2, 300), labels(3000, 2), parameters={"categorical_features": [0, 1], "max_depth": 7}
    ),
    "300 branches": lambda: Job(
        categories(3000, 2, 300),
        labels(3000, 3),
        parameters={"categorical_features": [0, 1], "categorical_split": "multiway"},
    ),
    "declared categories": lambda: mixed(
        600, labels(600, 3), categorical_split="multiway", categories={4: list(range(14)), 5: list(range(9))}
    ),
    "least rows and weight": lambda: mixed(
        900, labels(900, 2), min_samples_leaf=7, min_weight_fraction_leaf=0.02, min_samples_split=30
    ),
    "monotone": lambda: Job(noise(900, 3), labels(900, 2), parameters={"monotonic_cst": [1, -1, 0]}),
    "monotone numbers": lambda: Job(noise(900, 3), counts(900), weights(900), parameters={"monotonic_cst": [1, -1, 0]}),
    "huge and tiny": lambda: Job(
        np.random.default_rng(3).choice([-np.inf, -1e300, -5e-324, 0.0, 5e-324, 1e300, np.inf, np.nan], (500, 3)),
        labels(500, 2),
    ),
    "all missing": lambda: Job(np.full((64, 2), np.nan), labels(64, 2)),
    "one row": lambda: Job(noise(1, 3), labels(1, 1)),
    "labels far from 0": lambda: Job(noise(800, 4), np.random.default_rng(1).normal(1e9, 1.0, 800)),
}


def live_nodes(forest: Forest) -> int:
    """Most inner nodes of one level from depth 6 on."""
    inner = forest.depth[(forest.kind != Test.LEAF) & (forest.depth >= 6)]
    return int(np.bincount(inner).max(initial=0))


@pytest.mark.parametrize("name", JOBS)
def test_forest_equals_the_oracles(device: Emulator | None, name: str) -> None:
    job = JOBS[name]()
    ours, theirs = job.fit("cuda"), job.fit("cpu")
    for f in fields(Forest):
        np.testing.assert_array_equal(getattr(ours.forest_, f.name), getattr(theirs.forest_, f.name), err_msg=f.name)
    assert ours.fingerprint() == theirs.fingerprint()
    assert (ours.fit_info_.backend, theirs.fit_info_.backend) == ("cuda", "numpy")
    assert not job.live or live_nodes(ours.forest_) > LIVE
    strange = np.vstack([job.X[:200], job.X[:50] + 0.5, np.full((2, job.X.shape[1]), np.nan), job.X[:9] + 400])
    np.testing.assert_array_equal(ours.apply(strange), theirs.apply(strange))
    np.testing.assert_array_equal(ours.predict(strange), theirs.predict(strange))


def test_there_are_many_jobs() -> None:
    assert len(JOBS) >= 40
