"""The stand-in array allows what costs nothing hidden, counts what it does, and fails as a device does."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.emulator.driver import Emulator
from tests.emulator.errors import CUDARuntimeError, OutOfMemoryError, Refused
from tests.emulator.memory import Allocation

pytestmark = pytest.mark.usefixtures("compiler")  # memory needs no compiler, but the same system


@pytest.fixture
def emulator() -> Emulator:
    return Emulator(seed=2)


def test_copies_slices_and_views(emulator):
    xp, host = emulator.xp, np.arange(12, dtype=np.int32).reshape(3, 4)
    x = xp.asarray(host)
    np.testing.assert_array_equal(x[1:].get(), host[1:])
    np.testing.assert_array_equal(x[1].view(np.uint8).get(), host[1].view(np.uint8))
    np.testing.assert_array_equal(x.reshape(2, 6)[0, 2:5].get(), host.reshape(2, 6)[0, 2:5])
    assert x[2, 3].shape == ()
    assert x[2, 3].get() == 11
    assert x[1:].data.ptr == x.data.ptr + 16
    y = xp.empty(4, np.int32)
    y[...] = x[2]
    y[:1].fill(0)
    y[1:2].set(np.array([-2], np.int32))
    out = np.empty(4, np.int32)
    assert y.get(out=out) is out
    assert out.tolist() == [0, -2, 10, 11]
    assert (len(x), x.size, x.nbytes, x.ndim, x.itemsize, x.dtype) == (3, 12, 48, 2, 4, np.int32)


def test_sorting(emulator):
    x = emulator.xp.asarray(np.array([3, 1, 2, 1], np.uint64))
    assert x.argsort().get().tolist() == [1, 3, 2, 0]
    x.sort()
    assert x.get().tolist() == [1, 1, 2, 3]
    assert emulator.transfers.sorts == 2


REFUSED: dict[str, Callable[[Any], object]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "index": lambda x: [0, 1][x],
    "iteration": list,
    "in": lambda x: 1 in x,
    "asarray": np.asarray,
    "array function": lambda x: np.concatenate([x, x]),
    "ufunc": lambda x: np.add(np.ones(4), x),
    "add": lambda x: x + 1,
    "radd": lambda x: 1 + x,
    "iadd": lambda x: x.__iadd__(1),
    "compare": lambda x: x < 3,
    "equal": lambda x: x == x,
    "negative": lambda x: -x,
    "item": lambda x: x.item(),
    "sum": lambda x: x.sum(),
    "astype": lambda x: x.astype(float),
    "boolean index": lambda x: x[np.ones(4, bool)],
    "gather": lambda x: x[[0, 1]],
    "gather on the device": lambda x: x[x],
    "assign a scalar": lambda x: x.__setitem__(0, 1),
    "assign a host array": lambda x: x.__setitem__(slice(None), np.ones(4, np.int32)),
    "assign another shape": lambda x: x.__setitem__(slice(2), x),
    "set another type": lambda x: x.set(np.ones(4)),
    "set a list": lambda x: x.set([1, 2, 3, 4]),
    "fill from an array": lambda x: x.fill(x[0]),
    "fill with ones": lambda x: x.fill(1),
    "get with holes": lambda x: x[::2].get(),
    "reshape with holes": lambda x: x[::2].reshape(1, 2),
    "get into another type": lambda x: x.get(out=np.empty(4)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_would_wait_or_compute_is_refused(emulator, what):
    x = emulator.xp.asarray(np.arange(4, dtype=np.int32))
    waits = emulator.transfers.synchronisations
    with pytest.raises(Refused):
        REFUSED[what](x)
    assert emulator.transfers.synchronisations == waits


def test_other_names_are_absent(emulator):
    with pytest.raises(AttributeError, match="the stand-in array has no 'cumprod'"):
        emulator.xp.zeros(3).cumprod()
    with pytest.raises(AttributeError, match="the stand-in module has no 'where'"):
        emulator.xp.where(1, 2, 3)


def test_transfers_are_counted(emulator):
    xp, t = emulator.xp, emulator.transfers
    x = xp.asarray(np.arange(10.0))
    y = xp.zeros(10)
    y[:5] = x[5:]
    y.get()
    xp.asnumpy(x[:2])
    xp.cuda.get_current_stream().synchronize()
    assert (t.copies_to_device, t.bytes_to_device) == (1, 80)
    assert (t.copies_inside, t.bytes_inside, t.fills) == (1, 40, 1)
    assert (t.copies_to_host, t.bytes_to_host, t.synchronisations, t.allocations) == (2, 96, 3, 2)


def test_fresh_memory_is_garbage_of_the_seed(emulator):
    first, second = emulator.xp.empty(100, np.uint8).get(), emulator.xp.empty(100, np.uint8).get()
    assert (first != second).any()
    np.testing.assert_array_equal(Emulator(seed=2).xp.empty(100, np.uint8).get(), first)


def test_memory_ends_at_pages_without_access():
    memory = Allocation(1000, 0, np.random.default_rng(0))
    assert memory.start % 256 == 0
    assert memory.spoilt is None
    memory._zones[1][5] = 0
    assert memory.spoilt == 1005


def test_arrays_of_no_elements(emulator):
    x = emulator.xp.zeros((0, 3), np.int16)
    assert (x.get().shape, x.nbytes) == ((0, 3), 0)


def test_out_of_memory_after_a_number_of_bytes(emulator):
    emulator.faults.memory = 4096
    xp = emulator.xp
    kept = xp.zeros(256)
    with pytest.raises(OutOfMemoryError, match="Out of memory allocating 2,560 bytes"):
        xp.zeros(300)
    assert emulator.memory_info()[0] == 2048
    again = xp.zeros(256)
    assert (kept.nbytes, again.nbytes) == (2048, 2048)


def test_pools_keep_memory_until_they_are_told(emulator):
    xp = emulator.xp
    pool = xp.cuda.MemoryPool()
    with xp.cuda.using_allocator(pool.malloc):
        x = xp.zeros(1000, np.uint8)
    assert (pool.used_bytes(), pool.total_bytes(), emulator.reserved[0]) == (1024, 1024, 1024)
    del x
    gc.collect()
    assert (pool.used_bytes(), pool.total_bytes(), emulator.reserved[0]) == (0, 1024, 1024)
    pool.free_all_blocks()
    assert (pool.total_bytes(), emulator.reserved[0]) == (0, 0)


def test_a_full_pool_gives_back_before_it_fails(emulator):
    emulator.faults.memory = 2048
    x = emulator.xp.zeros(1024, np.uint8)
    del x
    assert emulator.xp.zeros(2048, np.uint8).nbytes == 2048


def test_devices_and_their_properties():
    emulator = Emulator(devices=2)
    cuda = emulator.xp.cuda
    assert cuda.runtime.getDeviceCount() == 2
    assert cuda.runtime.getDeviceProperties(1)["sharedMemPerBlockOptin"] == 227 * 1024
    assert cuda.Device(1).compute_capability == "90"
    with cuda.Device(1):
        x = emulator.xp.zeros(4)
    assert x.device == cuda.Device(1)
    assert cuda.runtime.getDevice() == 0
    assert emulator.reserved == [0, 512]
    with pytest.raises(CUDARuntimeError, match="cudaErrorInvalidDevice"):
        cuda.Device(2)


def test_no_device():
    cuda = Emulator(devices=0).xp.cuda
    assert not cuda.is_available()
    with pytest.raises(CUDARuntimeError, match="cudaErrorNoDevice"):
        cuda.runtime.getDeviceCount()


def test_a_lost_device_fails_every_call(emulator):
    x = emulator.xp.zeros(3)
    emulator.faults.lose_device = emulator.faults.calls + 1
    for call in (x.get, lambda: emulator.xp.zeros(3), emulator.synchronise, lambda: x.fill(0), emulator.memory_info):
        with pytest.raises(CUDARuntimeError, match="cudaErrorIllegalAddress"):
            call()
