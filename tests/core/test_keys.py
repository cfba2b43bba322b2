import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputree.core.keys import Stream, below, child_keys, draw, mix, root_keys, unit

WORD = st.integers(0, 2**64 - 1)
# Output of the generator with seed 0: Vigna's splitmix64.c, https://prng.di.unimi.it/splitmix64.c
SEED_0 = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def python_mix(key: int, i: int) -> int:
    z = (key + (i + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def test_mix_gives_the_published_sequence() -> None:
    assert [int(mix(0, i)) for i in range(3)] == SEED_0
    np.testing.assert_array_equal(mix(0, np.arange(3)), np.array(SEED_0, np.uint64))


@given(WORD, WORD)
def test_mix_wraps_without_a_warning(key: int, i: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert int(mix(key, i)) == python_mix(key, i)
        assert int(mix(np.array([key], np.uint64), i)[0]) == python_mix(key, i)


def test_mix_of_scalars_is_a_scalar_and_arrays_broadcast() -> None:
    assert isinstance(mix(1, 2), np.uint64)
    table = mix(np.arange(3, dtype=np.uint64)[:, None], np.arange(4))
    assert table.shape == (3, 4)
    assert table[2, 3] == mix(2, 3)


def test_keys_are_draws() -> None:
    assert draw(7, Stream.BAG, 3) == mix(mix(7, int(Stream.BAG)), 3)
    np.testing.assert_array_equal(root_keys(7, np.arange(5)), mix(7, np.arange(5)))
    assert child_keys(7, 1) == draw(7, Stream.CHILD, 1)


def test_keys_of_a_forest_are_distinct() -> None:
    keys = root_keys(0, np.arange(100))
    for _ in range(10):
        keys = child_keys(keys[:, None], np.arange(2)).reshape(-1)
    assert len(np.unique(keys)) == 100 * 2**10


@pytest.mark.parametrize("stream", Stream)
def test_unit_is_uniform_in_every_stream(stream: Stream) -> None:
    u = unit(draw(root_keys(0, np.arange(1000))[:, None], stream, np.arange(100)))
    assert u.min() >= 0.0
    assert u.max() < 1.0
    counts = np.histogram(u, bins=64, range=(0, 1))[0]
    expected = u.size / 64
    assert np.sum((counts - expected) ** 2 / expected) < 63 + 5 * np.sqrt(2 * 63)  # chi-square, five sigma
    assert abs(u.mean() - 0.5) < 5 / np.sqrt(12 * u.size)


def test_streams_are_independent() -> None:
    keys = root_keys(0, np.arange(100_000))
    u = np.array([unit(draw(keys, stream, 0)) for stream in Stream])
    correlation = np.corrcoef(u) - np.eye(len(Stream))
    assert np.abs(correlation).max() < 5 / np.sqrt(keys.size)


def test_one_stream_does_not_bias_the_choice_of_another() -> None:
    # with one hash for both, the feature of the lowest hash would have a low threshold too
    keys = root_keys(0, np.arange(10_000))[:, None]
    features = np.arange(20)
    first = np.argmin(draw(keys, Stream.FEATURE, features), axis=1)
    thresholds = unit(draw(keys, Stream.THRESHOLD, features))
    chosen = np.take_along_axis(thresholds, first[:, None], axis=1)
    assert abs(chosen.mean() - 0.5) < 5 / np.sqrt(12 * 10_000)


def test_unit_keeps_the_top_53_bits() -> None:
    assert unit(0) == 0.0
    assert unit(2**64 - 1) == 1.0 - 2.0**-53
    assert unit(1 << 63) == 0.5
    assert unit(0x7FF) == 0.0


@given(WORD, st.integers(1, 2**32 - 1))
def test_below_is_the_high_word_of_the_product(h: int, n: int) -> None:
    assert int(below(h, n)) == h * n >> 64
    assert int(below(np.array([h], np.uint64), np.array([n]))[0]) == h * n >> 64


@pytest.mark.parametrize("n", [1, 2, 10, 2**31, 2**32 - 1])
def test_below_stays_below(n: int) -> None:
    assert int(below(2**64 - 1, n)) == n - 1
    assert int(below(0, n)) == 0


def test_below_refuses_what_it_cannot_multiply() -> None:
    with pytest.raises(ValueError, match=r"n=4294967296 outcomes; at most 2\*\*32 - 1"):
        below(1, 2**32)
