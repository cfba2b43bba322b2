"""Rows of bags on the device: their bytes, rows drawn too often for their words, rows regrouped in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gputree
from gputree.backends.cuda import Cuda
from gputree.backends.gpu import rows
from gputree.backends.gpu.driver import Driver
from gputree.backends.gpu.shard import DeviceShard, word_bits, words, words_read
from gputree.backends.oracle import Oracle
from gputree.backends.protocol import Bags, CodeSpec
from gputree.core.bags import Draws, strata
from gputree.core.schema import Feature, Schema
from gputree.core.target import class_target, counting_rows
from tests.backends.cards import emulate
from tests.emulator.driver import Emulator


def table(n: int = 500) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)).round(1)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, np.digitize(np.nan_to_num(X[:, 0] + X[:, 1]) + rng.normal(size=n) / 2, [-0.5, 0.5])


def drawn(n: int, weight: NDArray[Any] | None = None) -> Draws:
    return strata(None, n, np.array([n]), weight, True)


def opened(backend: Any, bags: Bags, X: NDArray[Any], y: NDArray[Any]) -> Any:
    schema = Schema(tuple(Feature(f"x{i}") for i in range(X.shape[1])))
    codes = backend.encode(X, backend.edges(X, CodeSpec(schema), None))
    return backend.open(codes, counting_rows(class_target(y[:, None], (3,), None)), bags)


def held_bytes(shard: DeviceShard) -> int:
    return sum(a.nbytes for a in (shard.rows, shard.odd, shard.moved, shard.branch_of))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("trees", [1, 2, 6, 12, 40])
def test_bytes_of_a_row_of_a_tree(trees: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four of its word; six of the rows that are moved at a time, here those of the largest bag: five from seven on."""
    monkeypatch.setattr(rows, "ROOM", 1)
    X, y = table()
    shard = opened(Cuda(Driver.of(Emulator(checked=False).xp, 0)), Bags(trees, 0, 3, drawn(500)), X, y)
    sizes = [np.unique(Bags(trees, 0, 3, drawn(500)).drawn(t)).size for t in range(trees)]
    assert shard.positions == sum(sizes)
    assert held_bytes(shard) == 4 * sum(sizes) + 6 * max(sizes) + 4
    assert (held_bytes(shard) <= 5 * sum(sizes)) == (trees > 6)


@pytest.mark.parametrize("backend", ["numpy", "jit"])
def test_bytes_on_the_processor(backend: str) -> None:
    """Four of the number of a row, one of how often it was drawn."""
    X, y = table()
    if backend == "jit":
        pytest.importorskip("numba")
        from gputree.backends.jit import Jit

        used: Oracle = Jit(1)
    else:
        used = Oracle()
    shard = opened(used, Bags(6, 0, 3, drawn(500)), X, y)
    assert (shard.rows.nbytes + shard.times.nbytes) / shard.rows.size == 5


@pytest.mark.parametrize("bits", [1, 4, 20, 29, 30, 31])
def test_words_come_back(bits: int) -> None:
    rng = np.random.default_rng(bits)
    n = 1 << bits
    number = rng.integers(0, n, 1000).astype(np.uint32)
    times = rng.integers(1, 1 << rng.integers(1, 32, 1000), 1000)
    if bits < 10:
        times = np.minimum(times, (0xFFFFFFFF >> bits) + (np.arange(1000) < n))  # no more than there is room for
    assert word_bits(n) == bits
    word, odd = words(number, times, n)
    assert odd.size == 2 * (times > 0xFFFFFFFF >> bits).sum()
    found, often = words_read(word, odd, bits)
    assert often is not None
    np.testing.assert_array_equal(found, number)
    np.testing.assert_array_equal(often, times)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("checked", [False, True])
def test_rows_drawn_too_often_for_their_words(checked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bits for how often: from four on they are listed apart, in some order."""
    monkeypatch.setattr(rows, "word_bits", lambda n: 30)
    X, y = table()
    weight = np.random.default_rng(1).integers(1, 9, 500) ** 3.0
    bags = Bags(5, 2, 3, drawn(500, weight))
    shard = opened(Cuda(Driver.of(Emulator(checked=checked).xp, 0)), bags, X, y)
    theirs = opened(Oracle(), bags, X, y)
    number, often = words_read(shard.rows.get(), shard.odd.get(), 30)
    np.testing.assert_array_equal(number, theirs.rows)
    np.testing.assert_array_equal(often, theirs.times)
    assert shard.odd.size == 2 * (theirs.times > 3).sum() > 20


PARTS = pytest.mark.parametrize(("room", "bits"), [(1, None), (700, None), (1 << 22, 30), (1, 30)])


@PARTS
@pytest.mark.parametrize("kind", ["classes", "numbers", "c4.5", "best first"])
def test_forests_are_the_oracles(kind: str, room: int, bits: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is regrouped at a time, and however few bits are left."""
    machine = emulate(monkeypatch)
    monkeypatch.setattr(rows, "ROOM", room)
    if bits:
        monkeypatch.setattr(rows, "word_bits", lambda n: bits)
    X, y = table()
    weight = np.random.default_rng(1).integers(1, 9, 500) ** 2.0
    models = {
        "classes": gputree.RandomForestClassifier(6, max_bins=None, max_features=3),
        "numbers": gputree.RandomForestRegressor(5, max_features=2),
        "c4.5": gputree.BaggingTreeClassifier(gputree.C45Classifier(pruning=None), 4),
        "best first": gputree.RandomForestClassifier(4, max_leaf_nodes=9),
    }
    ours, theirs = (models[kind].set_params(device=d).fit(X, y, weight).fingerprint() for d in ("cuda", "numpy"))
    assert ours == theirs
    assert machine.counters["put_back"].launches > 0


def test_a_level_is_cut_into_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for one tree, each of five bags has a launch of its own; nothing is drawn again."""
    machine = emulate(monkeypatch)
    X, y = table()
    launches = []
    for room in (1 << 22, 1):
        monkeypatch.setattr(rows, "ROOM", room)
        before = machine.counters["put_back"].launches
        gputree.RandomForestClassifier(5, device="cuda", max_depth=1).fit(X, y)
        launches.append(machine.counters["put_back"].launches - before)
    assert launches[0] == 2  # roots and their branches
    assert 2 * 3 <= launches[1] <= 2 * 5
