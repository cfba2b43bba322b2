"""Trees whose rows are spread over branches are the oracle's on every backend, array for array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gputree import C45Classifier
from gputree.backends.gpu import search
from gputree.backends.protocol import DeviceError, require_known
from gputree.core.criteria import CRITERIA
from gputree.core.splits import MULTIWAY, ONE_AGAINST_REST, RANDOM, THRESHOLD, CutRule, Limits, Missing, Search
from tests.backends.cards import emulate

DEVICES = ["jit", "emulated", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "jit":
        pytest.importorskip("numba")
    if request.param != "emulated":
        yield request.param
        return
    emulator = emulate(monkeypatch)
    yield "cuda"
    assert emulator.reserved == [0]


def mixed(n: int, share: float, seed: int = 0) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Few and many values, text, declared categories of which some never occur; a share of the cells missing."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 6))
    y = np.digitize(z[:, 0] + z[:, 1] * (z[:, 2] > 0) + 0.5 * rng.normal(size=n), [-0.7, 0.7])
    text = np.array(["low", "middle", "high"], object)[np.digitize(z[:, 2], [-0.5, 0.5])]
    codes = np.clip((2 * z[:, 3] + 4).astype(int), 0, 7)
    columns: dict[str, Any] = {
        "few": z[:, 0].round(1),
        "many": z[:, 1],
        "text": text,
        "declared": pd.Categorical.from_codes(codes, [f"v{i}" for i in range(12)], ordered=True),
        "noise": z[:, 4].round(2),
    }
    frame = pd.DataFrame(columns)
    for name in frame:
        frame.loc[rng.random(n) < share, name] = None
    return frame, y


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "by gain": {"criterion": "entropy"},
    "constants of release 8": {"constants": "c4.5"},
    "light branches": {"min_weight": 0.5, "max_depth": 7},
    "quantile codes": {"max_bins": 20},
    "whole table known": {"share": 0.0},
    "much is missing": {"share": 0.5, "max_depth": 6},
    "some hundred rows": {"n": 2500, "max_depth": 5},
    "one column is empty": {"empty": True},
    "one against the rest": {"categorical_split": "binary"},
    "one against the rest by gain": {"categorical_split": "binary", "criterion": "entropy", "constants": "c4.5"},
    "one against the rest, much is missing": {"categorical_split": "binary", "share": 0.5, "max_depth": 6},
    "one of many": {"categorical_split": "binary", "names": 300, "n": 900, "min_weight": 0.5},
    "branches of many": {"names": 300, "n": 900, "min_weight": 0.5, "max_depth": 3},
}


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("case", CASES)
def test_the_trees_of_the_oracle(device: str, case: str, weighted: bool) -> None:
    settings = dict(CASES[case])
    X, y = mixed(settings.pop("n", 400), settings.pop("share", 0.15))
    if settings.pop("empty", False):
        X["nothing"] = np.nan
    if names := settings.pop("names", 0):
        drawn = np.random.default_rng(2).integers(0, names, len(y)) // (1 + y)
        X["tag"] = [None if i % 9 == 0 else f"t{v:03}" for i, v in enumerate(drawn)]
    w = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.5], len(y)) if weighted else None
    settings = {"pruning": None, "collapse": False} | settings  # the trees as they are grown
    expected, got = (C45Classifier(**settings, device=name).fit(X, y, w) for name in ("numpy", device))
    assert got.fit_info_.backend != expected.fit_info_.backend
    assert got.fingerprint() == expected.fingerprint()
    assert got.get_n_leaves() > 5
    np.testing.assert_array_equal(got.predict_proba(X), expected.predict_proba(X))


def test_lists_of_categories_are_made_some_tests_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """And hold what the nodes met: no more cells than rows of all levels, however many categories there are."""
    emulate(monkeypatch)
    X, y = mixed(300, 0.1)
    X["tag"] = [f"t{v:03}" for v in np.random.default_rng(3).permutation(np.arange(300) // 2 * 2)]
    settings: dict[str, Any] = {"categorical_split": "binary", "min_weight": 0.5, "pruning": None, "collapse": False}
    forest = C45Classifier(**settings, device="numpy").fit(X, y).forest_
    assert (forest.feature == 5).sum() > 5
    assert forest.lookup_code.size <= 300 * forest.max_depth
    monkeypatch.setattr(search, "LIST_BYTES", 1)
    assert C45Classifier(**settings, device="cuda").fit(X, y).fingerprint() == forest.fingerprint()


def test_mixtures_that_a_backend_does_not_know() -> None:
    rule = CutRule(1.0, 0.05, 2.0, 25.0, 0.0, 1e-5)
    known = Search((THRESHOLD, MULTIWAY), CRITERIA["gain_ratio"], Limits(heavy=2), Missing.SPREAD, rule)
    require_known("jit", known)
    require_known("jit", replace(known, generators=(THRESHOLD, ONE_AGAINST_REST)))
    require_known("jit", Search((RANDOM,), CRITERIA["gini"], Limits()))
    odd = [
        replace(known, cuts=None),
        replace(known, missing=Missing.BRANCH),
        replace(known, generators=(RANDOM, MULTIWAY)),
        replace(known, criterion=CRITERIA["twoing"]),
        replace(known, limits=Limits(min_rows=5)),
        Search((ONE_AGAINST_REST,), CRITERIA["gini"], Limits()),
    ]
    for mixture in odd:
        with pytest.raises(DeviceError, match="device='jit' does not know this mixture"):
            require_known("jit", mixture)
