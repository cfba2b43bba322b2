"""Impurities against the lectures' numbers, their definitions in exact fractions, and the criteria of fits."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputree.core.criteria import CRITERIA
from gputree.impurity import entropy, gini, information, train_error

EXAMPLES: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "classroom.json").read_text())["impurity"]
MEASURES: dict[str, Callable[[Any], Any]] = {"entropy": entropy, "gini": gini, "train_error": train_error}
NEAR = 4e-15

counts = st.lists(st.integers(0, 10**6), min_size=1, max_size=6).filter(any)
measures = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)


@pytest.mark.parametrize("name", MEASURES)
def test_three_measures_of_two_classes(name: str) -> None:
    a = np.array(EXAMPLES["shares"]["a"])
    assert MEASURES[name](np.stack([a, 1 - a], axis=1)) == pytest.approx(EXAMPLES["shares"][name], abs=1e-15)


def test_information_of_distributions() -> None:
    example = EXAMPLES["entropy"]
    found = [information(p) for p in example["distributions"]]
    assert found == pytest.approx(example["bits"], abs=1e-15)
    assert found == pytest.approx(example["printed"], abs=0.005)


def test_gini_of_counts() -> None:
    assert [gini(c) for c in EXAMPLES["gini"]["counts"]] == pytest.approx(EXAMPLES["gini"]["gini"], abs=1e-15)


def test_the_base_may_be_the_number_of_classes() -> None:
    example = EXAMPLES["base"]
    assert information(example["p"], base=3) == pytest.approx(example["base3"], abs=1e-15)
    assert entropy([1, 2, 2]) == pytest.approx(example["base2"], abs=1e-15)
    assert entropy([1, 1], base=math.e) == pytest.approx(math.log(2), abs=1e-15)


@pytest.mark.parametrize("name", MEASURES)
def test_gain_of_the_soccer_teams(name: str) -> None:
    """The error is stuck at a gain of 0 where the strictly concave measures are not."""
    example = EXAMPLES["fig_6_7"]
    parent, left, right = MEASURES[name](example["counts"])
    assert parent - (70 * left + 50 * right) / 120 == pytest.approx(example[f"{name}_gain"], abs=1e-15)


def test_entropies_of_the_soccer_teams() -> None:
    example = EXAMPLES["fig_6_7"]
    assert entropy(example["counts"]) == pytest.approx(example["entropy"], abs=1e-15)
    assert entropy(example["counts"][1:]).round(3).tolist() == [0.971, 0.795]  # type: ignore[union-attr]


def test_one_row_of_counts_gives_a_float_that_prints_as_in_books() -> None:
    assert repr(entropy([9, 5])) == "0.9402859586706311"
    assert [repr(measure([7])) for measure in MEASURES.values()] == ["0.0", "0.0", "0.0"]
    assert (entropy([1, 1]), entropy([5, 5, 5, 5]), gini([3, 1]), train_error([9, 5])) == (1.0, 2.0, 0.375, 5 / 14)


@measures
def test_leading_axes_are_kept(measure: Callable[[Any], Any]) -> None:
    table = np.arange(24).reshape(2, 3, 4)
    found = measure(table)
    assert (found.shape, found.dtype) == ((2, 3), np.float64)
    assert found.tolist() == [[measure(row) for row in block] for block in table]
    assert measure(np.zeros((0, 3))).shape == (0,)


@measures
def test_a_branch_without_rows_is_pure(measure: Callable[[Any], Any]) -> None:
    assert measure([[0, 0], [0, 3]]).tolist() == [0.0, 0.0]


@given(counts)
def test_gini_and_error_equal_their_fractions(c: list[int]) -> None:
    n = sum(c)
    assert gini(c) == pytest.approx(float(1 - sum(Fraction(x, n) ** 2 for x in c)), rel=NEAR, abs=0)
    assert train_error(c) == float(1 - Fraction(max(c), n))


@given(counts)
def test_entropy_equals_its_definition(c: list[int]) -> None:
    shares = [x / sum(c) for x in c if x]
    assert entropy(c) == pytest.approx(-math.fsum(p * math.log2(p) for p in shares), rel=NEAR, abs=NEAR)


@given(counts)
def test_bounds_and_order(c: list[int]) -> None:
    """0 <= error <= Gini <= entropy in bits; the most is reached by equal counts."""
    k = len(c)
    assert 0 <= train_error(c) <= gini(c) + NEAR <= entropy(c) + 2 * NEAR
    assert entropy(c) <= math.log2(k) + NEAR
    assert gini(c) <= 1 - 1 / k + NEAR
    assert entropy([7] * k) == pytest.approx(math.log2(k), rel=NEAR)
    assert (entropy(c) == 0) == (gini(c) == 0) == (train_error(c) == 0) == (sum(x > 0 for x in c) == 1)


@measures
@given(c=counts, factor=st.sampled_from([0.5, 3, 1e-300, 1e290, 2.0**-1060]))
def test_only_proportions_count(measure: Callable[[Any], Any], c: list[int], factor: float) -> None:
    assert measure(np.array(c) * factor) == pytest.approx(measure(c), rel=1e-12, abs=1e-14)
    assert measure([*c, 0]) == pytest.approx(measure(c), rel=NEAR, abs=NEAR)
    assert measure(c[::-1]) == pytest.approx(measure(c), rel=NEAR, abs=NEAR)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)), min_size=2, max_size=4))
def test_concave_measures_never_lose_by_a_split(children: list[tuple[int, int, int]]) -> None:
    table = np.array(children)
    weights = table.sum(axis=1)
    if weights.sum():
        for measure in MEASURES.values():
            assert measure(table) @ weights / weights.sum() <= measure(table.sum(axis=0)) + 1e-14


@given(counts)
def test_fits_use_the_same_impurities(c: list[int]) -> None:
    x, n = np.array(c, np.float64)[:, None], np.array([float(sum(c))])
    for name, measure in MEASURES.items():
        assert CRITERIA[name].impurity(x, n)[0] == pytest.approx(measure(c), rel=1e-12, abs=1e-12)


def test_numbers_of_other_types() -> None:
    assert information([Fraction(1, 3), Fraction(2, 3)]) == pytest.approx(entropy([1, 2]), abs=1e-15)
    assert entropy(np.array([True, True])) == entropy(np.array([1, 1], np.uint8)) == 1.0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: entropy([1, -1]), ValueError, "counts holds -1; each must be a finite number, 0 or more"),
        (lambda: gini([1, np.nan]), ValueError, "counts holds nan"),
        (lambda: train_error([1, np.inf]), ValueError, "counts holds inf"),
        (lambda: gini([]), ValueError, r"counts=\[\] must have at least one number along its last axis"),
        (lambda: gini(np.zeros((3, 0))), ValueError, "must have at least one number"),
        (lambda: entropy(5), ValueError, "counts=5 must have at least one number along its last axis"),
        (lambda: entropy(["a", "b"]), TypeError, r"counts=\['a', 'b'\] must be numbers"),
        (lambda: entropy([1j]), TypeError, "must be numbers"),
        (lambda: entropy([[1], [1, 2]]), TypeError, "must be numbers"),
        (lambda: entropy([1, None]), ValueError, "counts holds nan"),
        (lambda: entropy([1, 1], base=1), ValueError, "base=1 must be a finite number above 1; 2 gives bits"),
        (lambda: entropy([1, 1], base=math.nan), ValueError, "base=nan must be a finite number above 1"),
        (lambda: entropy([1, 1], base="two"), TypeError, "base='two' must be a number above 1"),  # type: ignore[arg-type]
        (lambda: information([0.5, 0.4]), ValueError, "p adds up to 0.9, not to 1; for counts call entropy"),
        (lambda: information(0.99), ValueError, "p=0.99 must have at least one number along its last axis"),
        (lambda: information([-0.5, 1.5]), ValueError, "p holds -0.5"),
    ],
)
def test_refusals_name_the_value_and_the_remedy(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
