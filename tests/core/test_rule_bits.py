"""Rules as bits against one comparison a row and condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gputree.core.conditions import Condition, Interval, Subset, merged
from gputree.core.rule_bits import BLOCK_RULES, RuleBits
from gputree.core.schema import Feature, Kind

FEATURES = (Feature("x"), Feature("c", Kind.CATEGORICAL, ("a", "b", "d")), Feature("y"), Feature("z"))
VALUES = [-np.inf, -1.5, -0.0, 0.0, 1.0, np.nextafter(1.0, 2.0), 2.0, 1e300, np.inf, np.nan]
BOUNDS = [None, -np.inf, -1.5, 0.0, 1.0, 2.0, 1e300, np.inf]


def meets(condition: Condition, value: float) -> bool:
    """The definition, of one value."""
    if np.isnan(value):
        return condition.missing
    if isinstance(condition, Interval):
        above = condition.low is None or value > condition.low
        return above and (condition.high is None or value <= condition.high)
    named = [FEATURES[1].categories.index(v) for v in condition.values]
    return (value in named) != condition.others


def slow(rules: Sequence[Sequence[Condition]], X: NDArray[Any]) -> NDArray[np.bool_]:
    column = {f.name: i for i, f in enumerate(FEATURES)}
    met = [[all(meets(c, row[column[c.name]]) for c in rule) for rule in rules] for row in X.astype(np.float64)]
    return np.array(met, bool).reshape(len(X), len(rules))


def random_rules(rng: np.random.Generator, n: int) -> list[list[Condition]]:
    rules: list[list[Condition]] = []
    for _ in range(n):
        own: list[Condition] = []
        for name in rng.choice(["x", "c", "y"], rng.integers(0, 4), replace=False).tolist():
            missing = bool(rng.random() < 0.4)
            if name == "c":
                values = tuple(rng.choice(["a", "b", "d"], rng.integers(0, 4), replace=False).tolist())
                own.append(Subset(name, values, bool(rng.random() < 0.5), missing))
            else:
                low, high = rng.choice(np.array(BOUNDS, object), 2)
                own.append(Interval(name, low, high, missing))
        rules.append(own)
    return rules


def random_rows(rng: np.random.Generator, n: int, dtype: Any) -> NDArray[Any]:
    X = rng.choice(VALUES, (n, 4)).astype(dtype)
    X[:, 1] = rng.choice([-1.0, 0.0, 1.0, 2.0, np.nan], n)  # -1 is a value that is no category
    return X


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("n_rules", [0, 1, 63, 64, 65, BLOCK_RULES + 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bits_say_what_a_comparison_of_every_condition_says(n_rules: int, dtype: Any) -> None:
    rng = np.random.default_rng(n_rules)
    rules, X = random_rules(rng, n_rules), random_rows(rng, 200, dtype)
    bits, want = RuleBits.of(rules, FEATURES), slow(rules, X)
    np.testing.assert_array_equal(bits.met(X), want)
    first = np.where(want.any(axis=1), want.argmax(axis=1) if n_rules else 0, -1)
    np.testing.assert_array_equal(bits.first(X), first)
    assert bits.first(X[:0]).size == 0


@pytest.mark.parametrize("seed", range(20))
def test_merged_conditions_ask_what_all_of_them_ask(seed: int) -> None:
    rng = np.random.default_rng(seed)
    path = [c for rule in random_rules(rng, 4) for c in rule]
    X = random_rows(rng, 300, np.float64)
    found = merged(path, {"x": 0, "c": 1, "y": 2})
    want = slow([path], X)[:, 0]
    if found is None:
        assert not want.any()
        return
    np.testing.assert_array_equal(slow([found], X)[:, 0], want)
    assert [c.name for c in found] == [n for n in ("x", "c", "y") if n in {c.name for c in found}]
    assert all(c.name in {p.name for p in path} for c in found)


def test_conditions_that_all_values_meet_fall_away_and_none_is_no_rule() -> None:
    order = {"x": 0, "c": 1}
    assert merged([Interval("x", missing=True), Subset("c", others=True, missing=True)], order) == ()
    assert merged([Interval("x", high=np.inf), Interval("x", low=np.inf, missing=True)], order) is None
    assert merged([Interval("x", high=1.0, missing=True), Interval("x", low=1.0, missing=True)], order) == (
        Interval("x", low=np.inf, missing=True),
    )
    assert merged([Subset("c", ("a",)), Subset("c", ("b",))], order) is None
    assert merged([Subset("c", ("a",), others=True), Subset("c", ("a", "b"))], order) == (Subset("c", ("b",)),)
