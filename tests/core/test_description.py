"""Lengths of messages: trusted values, and slow recomputation with whole numbers."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln

from gputree.core.description import (
    QuinlanRivest,
    WallacePatrick,
    binomial_bits,
    code_length,
    label_bits,
    log2_factorial,
    risk_bound,
)

TRUSTED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "message_lengths.json").read_text())


def test_factorials_of_whole_numbers_and_fractions() -> None:
    whole = [0, 1, 2, 5, 12, 170, 65_535, 65_536, 10**6, 2**40]
    exact = [math.log2(math.factorial(x)) for x in whole[:6]]
    assert_allclose(log2_factorial(whole[:6]), exact, rtol=4e-16, atol=1e-15)
    x = np.array([*whole, 0.25, 0.5, 7.5, 1e-9, 65_535.5, 12_345.678])
    assert_allclose(log2_factorial(x), gammaln(x + 1) / math.log(2), rtol=2e-15, atol=2e-14)


def test_labels_without_a_tree() -> None:
    for case in TRUSTED["labels"]:
        assert label_bits(case["m"], case["R"]) == pytest.approx(case["bits"], abs=1e-12)


def test_the_bound_of_all_trees() -> None:
    for case in TRUSTED["bound"]["code_length_bits"]:
        assert code_length(case["n"], case["d"]) == pytest.approx(case["bits"], abs=1e-12)
    for case in TRUSTED["bound"]["values"]:
        bits = code_length(case["n"], case["d"])
        assert risk_bound(case["L_S"], bits, case["m"], case["delta"]) == pytest.approx(case["bound"], abs=1e-14)


def test_the_alphabet_of_the_bound() -> None:
    """Of K classes d + K + 1 symbols; of thresholds one for each, in place of the columns."""
    assert code_length(7, 10, 4) == pytest.approx(8 * math.log2(15))
    thresholds = sum(len(set(column)) - 1 for column in ([1.0, 2.0, 2.0, 5.0], [0.0, 0.0, 0.0, 0.0]))
    assert code_length(3, thresholds) == pytest.approx(4 * math.log2(5))


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2, float("nan")])
def test_a_probability_out_of_range_is_refused(delta: float) -> None:
    with pytest.raises(ValueError, match=r"delta=.* must lie between 0 and 1"):
        risk_bound(0.1, 10.0, 100, delta)
    with pytest.raises(ValueError, match=r"n_rows=0 must be positive"):
        risk_bound(0.1, 10.0, 0)


def test_quinlan_and_rivest_as_printed() -> None:
    own = TRUSTED["quinlan_rivest"]
    lengths = own["L(n,k,b) = lg(b+1) + lg C(n,k)"]
    assert binomial_bits(14, 9, 14) == pytest.approx(lengths["L(14,9,14)"], abs=1e-12)
    assert binomial_bits(14, 5, 7) == pytest.approx(lengths["L(14,5,7)"], abs=1e-12)
    code = QuinlanRivest()
    leaf = 1 + code.label(2) + code.exceptions(np.array([[9.0], [5.0]]))[0]
    assert leaf == pytest.approx(own["single_leaf_total"], abs=1e-12)
    parts = np.array([[2, 3], [4, 0], [3, 2]], float).T  # outlook: sunny, overcast, rainy
    split = 1 + math.log2(4) + 3 * 2 + code.exceptions(parts).sum()
    assert split == pytest.approx(own["root_split_total_by_attribute"]["outlook"], abs=1e-12)


def slow_exceptions(counts: list[int]) -> float:
    """Two classes: L(n, k, (n + 1) // 2); more: class after class in descending order."""
    ordered = sorted(counts, reverse=True)
    n = sum(ordered)
    if len(counts) == 2:
        return math.log2((n + 1) // 2 + 1) + math.log2(math.comb(n, ordered[1]))
    bits = 0.0
    for own in ordered[:-1]:
        bits += math.log2(n + 1) + math.log2(math.comb(n, n - own))
        n -= own
    return bits


@pytest.mark.parametrize("n_classes", [1, 2, 3, 4, 7])
def test_exceptions_of_any_number_of_classes(n_classes: int) -> None:
    counts = np.random.default_rng(n_classes).integers(0, 9, (n_classes, 200))
    counts[:, ::7] = 0
    expected = [slow_exceptions(column) for column in counts.T.tolist()]
    assert_allclose(QuinlanRivest().exceptions(counts.astype(float)), expected, rtol=1e-13, atol=1e-12)


def test_wallace_and_patrick_as_printed() -> None:
    for name, bits in TRUSTED["wallace_patrick"].items():
        if not name.startswith("category"):
            continue
        for text, expected in bits.items():
            counts, alpha = text.split(",a=")
            own = np.array(json.loads(counts), float)[:, None]
            assert WallacePatrick(float(alpha)).exceptions(own)[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.5])
def test_classes_sent_one_by_one_in_any_order(alpha: float) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 40)
    for rows in (labels, rng.permutation(labels)):
        seen, bits = [0, 0, 0], 0.0
        for j, label in enumerate(rows):
            bits -= math.log2((seen[label] + alpha) / (j + 3 * alpha))
            seen[label] += 1
        own = np.bincount(labels, minlength=3).astype(float)[:, None]
        assert WallacePatrick(alpha).exceptions(own)[0] == pytest.approx(bits, rel=1e-13)


def test_the_shape_of_a_tree_of_wallace_and_patrick() -> None:
    """x1x2 + x3x4: six tests under the root's 1 - 1/4, seven leaves; below it a half each."""
    code = WallacePatrick()
    root, others = code.shape(False, [4], [True])[0], code.shape(False, [2], [False])[0]
    leaf = code.shape(True, [2], [False])[0]
    names = sum(map(math.log2, [4, 3, 3, 2, 2, 1]))
    total = root + 5 * others + 7 * leaf + names
    assert total == pytest.approx(TRUSTED["wallace_patrick_structure_of_x1x2+x3x4"], abs=1e-12)


@pytest.mark.parametrize("siblings", [2, 3, 7])
def test_probabilities_of_leaf_and_test_add_up_to_one(siblings: int) -> None:
    for code in (QuinlanRivest(), WallacePatrick()):
        for at_root in (True, False):
            both = [float(code.shape(leaf, [siblings], [at_root])[0]) for leaf in (True, False)]
            assert sum(2.0**-bits for bits in both) == pytest.approx(1.0)


def test_longer_codes_bound_less() -> None:
    bounds = [float(risk_bound(0.1, code_length(n, 5), 100)) for n in range(1, 30, 2)]
    assert all(a < b for a, b in pairwise(bounds))
