"""What each sample kernel computes, and the call that shows it: a run gives the result and the one wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core import expr, keys
from gputree.core.scores import grid
from tests.emulator.driver import Emulator
from tests.emulator.module import Kernel

Result = tuple[NDArray[Any], NDArray[Any]]  # got, wanted
Get = Callable[[str], Kernel]


def block_sum(e: Emulator, get: Get) -> Result:
    x = np.arange(500, dtype=np.uint32) * 7
    blocks = -(-len(x) // 128)
    out = e.xp.empty(blocks, np.uint64)
    get("block_sum")((blocks,), (128,), (e.xp.asarray(x), np.int64(len(x)), out))
    return out.get(), np.add.reduceat(x, range(0, len(x), 128), dtype=np.uint64)


def block_scan(e: Emulator, get: Get) -> Result:
    x = np.random.default_rng(1).integers(-9, 9, 192).astype(np.int32)
    y = e.xp.empty(192, np.int32)
    get("block_scan")((1,), (192,), (e.xp.asarray(x), y))
    return y.get(), np.cumsum(x, dtype=np.int32)


def histogram(e: Emulator, get: Get) -> Result:
    codes = np.random.default_rng(2).integers(0, 40, 700).astype(np.uint8)
    out = e.xp.zeros(40, np.uint32)
    get("histogram")((3,), (64,), (e.xp.asarray(codes), np.int32(700), np.int32(40), out), shared_mem=160)
    return out.get(), np.bincount(codes, minlength=40)


def sum64(e: Emulator, get: Get) -> Result:
    x = np.random.default_rng(3).integers(-(2**55), 2**55, 100)
    out = e.xp.empty(1, np.int64)
    get("sum64")((1,), (64,), (e.xp.asarray(x), np.int32(100), out))
    return out.get(), x.sum(keepdims=True)


def partition(e: Emulator, get: Get) -> Result:
    left = np.random.default_rng(4).random(450) < 0.4
    on_device = e.xp.asarray(left.view(np.uint8))
    counts, rows = e.xp.empty(2, np.int32), e.xp.empty(450, np.int32)
    get("count_left")((2,), (256,), (on_device, np.int32(450), counts))
    first = np.cumsum([0, *counts.get()])
    args = (on_device, e.xp.asarray(first[:-1].astype(np.int32)), np.int32(450), np.int32(first[-1]), rows)
    get("partition")((2,), (256,), args)
    return rows.get(), np.concatenate([np.flatnonzero(left), np.flatnonzero(~left)])


def best(e: Emulator, get: Get) -> Result:
    score = np.random.default_rng(5).integers(0, 4, 90) / 2
    score[[5, 37, 40]] = 9.0  # ties in a lane and between lanes
    out = e.xp.empty(1, np.int32)
    get("best")((1,), (32,), (e.xp.asarray(score), np.int32(90), out))
    return out.get(), np.array([score.argmax()])


def swap_pairs(e: Emulator, get: Get) -> Result:
    x = np.arange(64, dtype=np.int16)
    y = e.xp.empty(64, np.int16)
    get("swap_pairs")((1,), (64,), (e.xp.asarray(x), y))
    return y.get(), x ^ 1


def gather(e: Emulator, get: Get) -> Result:
    """4 GB of table, of which five pages are touched."""
    stride, rows = 4_000_000, np.array([0, 1, 600, 900, 1023], np.int32)
    table = e.xp.sparse((1024, stride), np.uint8)
    for row in rows:
        table[int(row), 17:18].set(np.array([row % 251], np.uint8))
    out = e.xp.empty(5, np.uint8)
    args = (table, np.int64(stride), e.xp.asarray(rows), np.int32(5), np.int32(17), out)
    get("gather")((1,), (32,), args)
    return out.get(), rows % 251


def add_records(e: Emulator, get: Get) -> Result:
    records = np.random.default_rng(6).integers(0, 99, (20, 4)).astype(np.uint32)
    out = e.xp.empty(20, np.uint32)
    get("add_records")((1,), (32,), (e.xp.asarray(records.view(np.uint8)), np.int32(20), out))
    return out.get(), records.sum(axis=1, dtype=np.uint32)


def scalars(e: Emulator, get: Get) -> Result:
    rng = np.random.default_rng(7)
    h = rng.integers(0, 2**64, 400, dtype=np.uint64)
    x = np.abs(h.view(np.float64))
    x = np.where(np.isfinite(x), x, 3.0)
    x[:4] = [0.0, 1.0, 5e-324, 2.0**1000]
    real, whole = e.xp.empty((4, 400), np.float64), e.xp.empty((3, 400), np.uint64)
    get("scalars")((13,), (32,), (e.xp.asarray(x), e.xp.asarray(h), np.int32(400), real, whole))
    with np.errstate(over="ignore"):
        floats = [expr.log2(x), expr.xlogx(x), keys.unit(h), grid(x, np.ones(400))]
    integers = [keys.mix(h, 7), keys.draw(h, keys.Stream.BAG, 3), keys.below(h, 1000003)]
    wanted = np.concatenate([np.array(floats).view(np.uint64), integers])
    return np.concatenate([real.get().view(np.uint64), whole.get()]), wanted


CASES: dict[str, Callable[[Emulator, Get], Result]] = {
    run.__name__: run
    for run in (
        *(block_sum, block_scan, histogram, sum64, partition, best),
        *(swap_pairs, gather, add_records, scalars),
    )
}
