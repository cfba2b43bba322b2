"""Generators: rules, counts, noise, seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from gputree import generators
from gputree.datasets import (
    make_dnf,
    make_higgs_like,
    make_majority,
    make_monks,
    make_parity,
    make_unanimity,
)

BOOLEAN: dict[str, Callable[..., Any]] = {
    "parity": make_parity,
    "majority": make_majority,
    "unanimity": make_unanimity,
    "dnf": lambda n_bits=3, **given: make_dnf([range(1, n_bits + 1)], **given),
}
every_function = pytest.mark.parametrize("make", BOOLEAN.values(), ids=BOOLEAN)


def minimal_leaves(y: np.ndarray) -> int:
    """Leaves of the smallest tree for a truth table whose axes are the bits, by trying every first test."""
    if (y == y.flat[0]).all():
        return 1
    tests = range(y.ndim)
    return min(minimal_leaves(y.take(0, axis=i)) + minimal_leaves(y.take(1, axis=i)) for i in tests)


@every_function
def test_the_whole_truth_table_in_counting_order(make: Callable[..., Any]) -> None:
    X, y = make(4)
    assert (X.shape, X.dtype, y.shape, y.dtype) == ((16, 4), np.int64, (16,), np.int64)
    assert (X @ [8, 4, 2, 1]).tolist() == list(range(16))
    wide, same = make(4, n_irrelevant=2)
    assert (wide @ [32, 16, 8, 4, 2, 1]).tolist() == list(range(64))
    np.testing.assert_array_equal(same, y.repeat(4))


@pytest.mark.parametrize(
    ("name", "leaves"),
    [
        ("parity", {1: 2, 3: 8}),
        ("dnf", {1: 2, 3: 4, 5: 6}),
        ("unanimity", {1: 1, 3: 6, 5: 10}),
        ("majority", {1: 2, 3: 6, 5: 20}),
    ],
)
def test_smallest_trees(name: str, leaves: dict[int, int]) -> None:
    """Procaccia, lecture 16, poll 1: 2^d leaves, d + 1, 2 d (d >= 2) and C(d + 1, (d + 1) / 2)."""
    found = {d: minimal_leaves(BOOLEAN[name](d)[1].reshape((2,) * d)) for d in leaves}
    assert found == leaves


def test_disjunctive_normal_form() -> None:
    """x1 x2 + x3 x4 has 7 ones of 16 and 7 leaves (Nilsson, 6.5); a multiplexer has 4 of 8 and 4."""
    X, y = make_dnf()
    np.testing.assert_array_equal(y, X[:, 0] * X[:, 1] | X[:, 2] * X[:, 3])
    assert (y.sum(), minimal_leaves(y.reshape((2,) * 4))) == (7, 7)
    X, y = make_dnf([(1, 2), (-1, 3)])
    np.testing.assert_array_equal(y, np.where(X[:, 0] == 1, X[:, 1], X[:, 2]))
    assert (y.sum(), minimal_leaves(y.reshape((2,) * 3))) == (4, 4)
    assert make_dnf([(1, 2, 3), (4, 5, 6)])[1].sum() == 15


def test_the_terms_may_come_from_an_iterator() -> None:
    np.testing.assert_array_equal(make_dnf(iter([(1, 2), (3, 4)]))[1], make_dnf()[1])  # type: ignore[arg-type]


@every_function
def test_drawn_rows_follow_rule_and_seed(make: Callable[..., Any]) -> None:
    X, y = make(3, n_irrelevant=1, n_rows=400, seed=5)
    table = make(3)[1]
    np.testing.assert_array_equal(y, table[X[:, :3] @ [4, 2, 1]])
    assert (abs(X.mean(axis=0) - 0.5) < 0.1).all()
    shorter, labels = make(3, n_irrelevant=1, n_rows=7, seed=5)
    np.testing.assert_array_equal(shorter, X[:7])
    np.testing.assert_array_equal(labels, y[:7])
    assert (make(3, n_irrelevant=1, n_rows=400, seed=6)[0] != X).any()


@every_function
def test_noise_flips_classes_and_nothing_else(make: Callable[..., Any]) -> None:
    X, y = make(3, n_rows=10_000, seed=1)
    same, noisy = make(3, n_rows=10_000, seed=1, noise=0.12)
    np.testing.assert_array_equal(X, same)
    assert abs((y != noisy).mean() - 0.12) < 0.01
    np.testing.assert_array_equal(make(3, n_rows=10_000, seed=1, noise=1.0)[1], 1 - y)


def test_noise_on_the_truth_table() -> None:
    clean, noisy = make_dnf(n_irrelevant=2)[1], make_dnf(n_irrelevant=2, noise=0.12, seed=3)[1]
    assert 0 < (clean != noisy).sum() < 20


def test_the_bytes_of_a_seed_are_fixed() -> None:
    """The raw words of PCG64 with seed 0, by hand: the last bits of every other one, and the noise of those between."""
    words = np.random.PCG64(0).random_raw(2 * 8).reshape(8, 2)
    X, y = make_parity(2, n_rows=8, noise=0.3)
    np.testing.assert_array_equal(X @ [2, 1], words[:, 0] & np.uint64(3))
    flipped = (words[:, 1] >> np.uint64(11)) < 0.3 * 2**53
    np.testing.assert_array_equal(y, X.sum(axis=1) % 2 ^ flipped)


def test_many_columns_are_drawn_but_not_listed() -> None:
    assert make_parity(64, n_rows=3)[0].shape == (3, 64)
    with pytest.raises(ValueError, match=r"25 columns are too many; at most 24 .* or give n_rows"):
        make_parity(25)
    with pytest.raises(ValueError, match="65 columns are too many"):
        make_majority(60, n_irrelevant=5, n_rows=3)


@pytest.mark.parametrize(("problem", "monks"), [(1, 216), (2, 142), (3, 228)])
def test_monks_by_their_rules(problem: Any, monks: int) -> None:
    """Counts of the published test sets, which are all 432 cells (Thrun and others 1991)."""
    table = make_monks(problem, noise=0.0)
    label = table.column("monk") == "yes"
    assert label.sum() == monks
    first = sum((table.column(name) == values[0]).astype(int) for name, values in table.categories.items())
    shape = table.column("body_shape")
    jacket = table.column("jacket_color")
    rules = {
        1: (table.column("head_shape") == shape) | (jacket == "red"),
        2: first == 2,
        3: ((jacket == "green") & (table.column("holding") == "sword")) | ((jacket != "blue") & (shape != "octagon")),
    }
    np.testing.assert_array_equal(label, rules[problem])
    assert len(set(zip(*table.columns[:-1], strict=True))) == 432


def test_monks_noise_and_drawn_rows() -> None:
    clean, noisy = (make_monks(3, noise=noise).column("monk") for noise in (0.0, None))
    assert 0.02 < (clean != noisy).mean() < 0.08
    long, short = make_monks(1, n_rows=2000, seed=2), make_monks(1, n_rows=10, seed=2)
    for a, b in zip(long.columns, short.columns, strict=True):
        np.testing.assert_array_equal(a[:10], b)
    assert len(set(zip(*long.columns[:-1], strict=True))) > 400


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: make_parity(0), ValueError, "n_bits must be at least 1, got 0"),
        (lambda: make_parity(2.5), TypeError, "n_bits must be an integer, got 2.5"),  # type: ignore[arg-type]
        (lambda: make_majority(3, n_irrelevant=-1), ValueError, "n_irrelevant must be at least 0, got -1"),
        (lambda: make_unanimity(3, n_rows=0), ValueError, "n_rows must be at least 1, got 0"),
        (lambda: make_parity(3, noise=1.5), ValueError, "noise must be from 0 to 1, got 1.5"),
        (lambda: make_parity(3, noise=float("nan")), ValueError, "noise must be from 0 to 1, got nan"),
        (lambda: make_parity(3, noise="much"), TypeError, "noise must be a number from 0 to 1, got 'much'"),  # type: ignore[arg-type]
        (lambda: make_parity(3, seed=-1), ValueError, "seed must be at least 0, got -1"),
        (lambda: make_monks(1, n_rows=-3), ValueError, "n_rows must be at least 1, got -3"),
        (lambda: make_dnf([]), ValueError, r"terms=\[\] must hold at least one term"),
        (lambda: make_dnf([(1,), ()]), ValueError, "each term at least one bit"),
        (lambda: make_dnf([(0, 1)]), ValueError, "terms holds 0; bits count from 1"),
        (lambda: make_dnf([("x1",)]), TypeError, "terms must hold integers, got 'x1'"),  # type: ignore[list-item]
    ],
)
def test_refusals(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_higgs_like_shape_and_balance() -> None:
    X, y = make_higgs_like(20_000, seed=3)
    assert X.shape == (20_000, 28)
    assert X.dtype == np.float32
    assert X.flags.c_contiguous
    assert y.shape == (20_000,)
    assert y.dtype == np.int64
    assert set(np.unique(y)) == {0, 1}
    assert np.isfinite(X).all()
    assert 0.4 < y.mean() < 0.6
    assert np.abs(X[:, :21].mean(axis=0)).max() < 0.05
    assert np.abs(X[:, :21].std(axis=0) - 1).max() < 0.05


def test_higgs_like_follows_the_seed() -> None:
    first, again, other = make_higgs_like(500, seed=7), make_higgs_like(500, seed=7), make_higgs_like(500, seed=8)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert (first[0] != other[0]).mean() > 0.9
    assert (first[1] != other[1]).any()


@pytest.mark.parametrize("chunk", [1, 31, 1000, 10_000])
def test_higgs_like_does_not_depend_on_chunks(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_higgs_like(1000)
    monkeypatch.setattr(generators, "_CHUNK_ROWS", chunk)
    np.testing.assert_array_equal(make_higgs_like(1000)[0], X)
    np.testing.assert_array_equal(make_higgs_like(1000)[1], y)


def test_higgs_like_longer_tables_begin_with_the_shorter() -> None:
    rows = generators._CHUNK_ROWS + 1
    X, y = make_higgs_like(rows)
    np.testing.assert_array_equal(make_higgs_like(33)[0], X[:33])
    np.testing.assert_array_equal(make_higgs_like(33)[1], y[:33])


def test_bell_from_its_definition() -> None:
    """Words whose four quarters are known: all zero, all 65535, and 1 + 2 + 3 + 4."""
    words = np.array([0, 2**64 - 1, 0x0001_0002_0003_0004], dtype=np.uint64)
    expected = np.array([-131_070.0, 131_070.0, 10 - 131_070.0]) * (1.0 / 37_837.0)
    np.testing.assert_array_equal(generators._bell(words), expected)


def test_higgs_like_derived_columns_follow_the_measured_ones() -> None:
    X, _ = make_higgs_like(2000)
    np.testing.assert_allclose(X[:, 21], np.hypot(X[:, 0], X[:, 1]), rtol=1e-5)
    np.testing.assert_allclose(X[:, 24], np.abs(X[:, 9] - X[:, 10]), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(X[:, 25], X[:, 12] * X[:, 13], rtol=1e-5)


def test_higgs_like_is_hard_but_learnable() -> None:
    X, y = make_higgs_like(80_000)
    tree = DecisionTreeClassifier(max_depth=10, random_state=0).fit(X[:60_000], y[:60_000])
    assert 0.65 < tree.score(X[60_000:], y[60_000:]) < 0.80


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_rows": 0}, ValueError, "n_rows must be at least 1, got 0"),
        ({"n_rows": 10, "seed": -1}, ValueError, "seed must be at least 0, got -1"),
        ({"n_rows": 1.5}, TypeError, "n_rows must be an integer, got 1.5"),
        ({"n_rows": 10, "seed": None}, TypeError, "seed must be an integer, got None"),
    ],
)
def test_higgs_like_refuses(arguments: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_higgs_like(**arguments)  # type: ignore[arg-type]
