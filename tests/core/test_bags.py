"""Bags of rows: draws by hash, strata, probabilities; the same for a tree whatever is drawn with it."""

from __future__ import annotations

import numpy as np
import pytest

from gputree.core.bags import Bags, Listed, listed, multiplicities, smallest, strata
from gputree.core.keys import Stream, below, draw, root_keys


def sizes(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_draws_are_hashes_of_seed_tree_and_number() -> None:
    """Draw i of tree t is the high part of hash (seed, t, BAG, i) times n, spelt out."""
    bags = Bags(3, 4, 11, strata(None, 10, sizes(7), None, True))
    for tree in range(3):
        key = root_keys(11, 4 + tree)
        expected = [int(below(draw(key, Stream.BAG, i), 10)) for i in range(7)]
        assert bags.drawn(tree).tolist() == expected
        assert multiplicities(bags, tree, 10).tolist() == [expected.count(row) for row in range(10)]


def test_a_tree_has_its_bag_in_any_batch() -> None:
    draws = strata(None, 50, sizes(50), None, True)
    together = [Bags(10, 0, 3, draws).drawn(t).tolist() for t in range(10)]
    assert together == [Bags(1, t, 3, draws).drawn(0).tolist() for t in range(10)]
    assert together[5:] == [Bags(5, 5, 3, draws).drawn(t).tolist() for t in range(5)]
    assert len({tuple(bag) for bag in together}) == 10


def test_draws_are_uniform() -> None:
    """Chi-square of 40,000 draws from 40 rows: 39 degrees of freedom, mean 39, standard deviation 8.8."""
    count = multiplicities(Bags(1, 0, 5, strata(None, 40, sizes(40_000), None, True)), 0, 40)
    assert 15 < ((count - 1000) ** 2 / 1000).sum() < 75


def test_a_bag_lacks_a_share_of_one_over_e() -> None:
    draws = strata(None, 2000, sizes(2000), None, True)
    lacking = np.mean([(multiplicities(Bags(1, t, 0, draws), 0, 2000) == 0).mean() for t in range(30)])
    assert abs(lacking - np.exp(-1)) < 0.005


def test_draws_without_replacement_take_a_row_once() -> None:
    bags = Bags(2, 0, 1, strata(None, 30, sizes(12), None, False))
    for tree in range(2):
        rows = bags.drawn(tree)
        assert len(set(rows.tolist())) == 12
        key = root_keys(1, tree)
        hashes = sorted((int(draw(key, Stream.BAG, row)), row) for row in range(30))
        assert sorted(rows.tolist()) == sorted(row for _, row in hashes[:12])


def test_weighted_draws_without_replacement_are_draws_among_the_rows_that_are_left() -> None:
    """Two of three rows of weights 1, 2 and 5: a pair by hand is (a/8)(b/(8-a)) + (b/8)(a/(8-b))."""
    draws = strata(None, 3, sizes(2), np.array([1.0, 2.0, 5.0]), False)
    pairs = [tuple(Bags(1, t, 0, draws).drawn(0).tolist()) for t in range(20_000)]
    for (i, a), (j, b) in [((0, 1), (1, 2)), ((0, 1), (2, 5)), ((1, 2), (2, 5))]:
        share = a / 8 * b / (8 - a) + b / 8 * a / (8 - b)
        assert abs(pairs.count((i, j)) / 20_000 - share) < 4 * np.sqrt(share / 20_000)


def test_equal_weights_draw_without_replacement_as_none_do() -> None:
    bags = [Bags(1, 0, 3, strata(None, 90, sizes(30), w, False)).drawn(0) for w in (None, np.full(90, 0.7))]
    assert bags[0].tolist() == bags[1].tolist()


@pytest.mark.parametrize("size", [0, 1, 5, 9, 12, 20])
def test_smallest_values_are_the_first_of_a_stable_sort(size: int) -> None:
    values = np.array([3.0, 1, np.inf, 1, 2, np.inf, 0, 1, 3, np.inf, 2, 1])
    assert smallest(values, size).tolist() == sorted(np.argsort(values, kind="stable")[:size].tolist())


def test_listed_bags() -> None:
    bags = Bags(3, 0, 0, Listed(np.array([4, 1, 1, 0, 2, 2, 2]), np.array([0, 3, 4, 7])))
    assert [bags.drawn(t).tolist() for t in range(3)] == [[4, 1, 1], [0], [2, 2, 2]]
    rows, times, ends = listed(bags, 5)
    assert (rows.tolist(), times.tolist(), ends.tolist()) == ([1, 4, 0, 2], [2, 1, 1, 3], [0, 2, 3, 4])


def test_strata_are_drawn_by_themselves() -> None:
    labels = np.array([0, 1, 0, 2, 1, 0, 2, 2, 2, 0])
    rows = Bags(1, 0, 9, strata(labels, 10, sizes(4, 6, 0), None, True)).drawn(0)
    assert np.bincount(labels[rows], minlength=3).tolist() == [4, 6, 0]


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300])
def test_weights_are_probabilities(scale: float) -> None:
    weight = np.array([1.0, 2.0, 3.0, 94.0]) * scale
    count = multiplicities(Bags(1, 0, 2, strata(None, 4, sizes(100_000), weight, True)), 0, 4)
    share = np.array([0.01, 0.02, 0.03, 0.94])
    assert (np.abs(count / 100_000 - share) < 4 * np.sqrt(share / 100_000)).all()


def test_equal_weights_draw_evenly() -> None:
    count = multiplicities(Bags(1, 0, 2, strata(None, 5, sizes(50_000), np.full(5, 0.3), True)), 0, 5)
    assert (np.abs(count - 10_000) < 400).all()
