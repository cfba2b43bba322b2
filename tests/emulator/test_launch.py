"""Launches that CUDA would refuse, or take and misread, are refused; limits follow the device."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tests.emulator.conftest import OPTIONS
from tests.emulator.driver import SHARED_LIMITS, Emulator, Properties
from tests.emulator.errors import CUDADriverError, CUDARuntimeError, KernelError, LaunchError
from tests.emulator.module import Kernel

TEXT = """
typedef long long Long;
struct Pair { double a; int b; };
extern "C" __global__ void k(const double* x, Long n, unsigned char* out, bool flag, float scale) {
    if (threadIdx.x < n) out[threadIdx.x] = flag ? (unsigned char)(x[threadIdx.x] * scale) : 0;
}
extern "C" __global__ void pairs(const Pair* x, const uint4* y, const void* z, int* out) {
    out[0] = x[1].b + (int)y[0].w;
}
extern "C" __global__ void nothing() {}
extern "C" __global__ void dynamic(unsigned n) {
    extern __shared__ unsigned char cells[];
    cells[n - 1 - threadIdx.x] = 1;
}
extern "C" __global__ void static_part() { __shared__ int x[256]; x[threadIdx.x] = 1; }
extern "C" __global__ void shift(const int* from, int* to) { to[threadIdx.x] = from[threadIdx.x + 1]; }
extern "C" __global__ void spin(int* flag) { while (atomicAdd(flag, 0) == 0) {} }
"""


@pytest.fixture
def emulator(compiler):
    return Emulator(checked=True, seed=4)


def kernel(emulator: Emulator, name: str) -> Kernel:
    return emulator.load(TEXT, OPTIONS).get_function(name)


def arguments(emulator: Emulator, **changes: Any) -> tuple[Any, ...]:
    xp = emulator.xp
    values = {
        "x": xp.asarray(np.arange(4.0)),
        "n": np.int64(4),
        "out": xp.empty(4, np.uint8),
        "flag": np.bool_(True),
        "scale": np.float32(2),
    }
    return tuple({**values, **changes}.values())


def test_right_arguments_pass(emulator):
    args = arguments(emulator)
    kernel(emulator, "k")((1,), (32,), args)
    assert args[2].get().tolist() == [0, 2, 4, 6]
    kernel(emulator, "nothing")((1,), (32,), ())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": lambda xp: np.arange(4.0)}, "argument x is a host array; it must be a device array of float64"),
        ({"x": lambda xp: xp.zeros(4, np.float32)}, "argument x holds float32, 16 bytes; the kernel takes float64"),
        ({"x": lambda xp: xp.zeros(4, np.int64)}, "argument x holds int64"),
        ({"x": lambda xp: xp.zeros((4, 2))[:, 0]}, "argument x has strides .* it must be contiguous"),
        ({"x": lambda xp: None}, "argument x is NoneType"),
        ({"x": lambda xp: np.uint64(4096)}, "argument x is uint64"),
        ({"n": lambda xp: 4}, r"argument n is 4 of type int; pass np.int64\(...\)"),
        ({"n": lambda xp: np.int32(4)}, r"argument n is int32; the kernel takes int64: pass np.int64\(...\)"),
        ({"n": lambda xp: np.uint64(4)}, "argument n is uint64"),
        ({"n": lambda xp: np.array(4)}, "argument n is array"),
        ({"out": lambda xp: xp.empty(4, np.int8)}, "argument out holds int8"),
        ({"out": lambda xp: xp.empty(4, np.bool_)}, "argument out holds bool"),
        ({"flag": lambda xp: True}, r"pass np.bool\(...\)"),
        ({"scale": lambda xp: 2.0}, r"argument scale is 2.0 of type float; pass np.float32\(...\)"),
        ({"scale": lambda xp: np.float64(2)}, "argument scale is float64"),
        ({"more": lambda xp: np.int32(1)}, "k takes 5 arguments; it is given 6"),
    ],
)
def test_wrong_arguments_are_refused(emulator, changes, message):
    changed = {name: make(emulator.xp) for name, make in changes.items()}
    with pytest.raises(LaunchError, match=message):
        kernel(emulator, "k")((1,), (32,), arguments(emulator, **changed))
    assert emulator.launches == 0


def test_a_slice_may_not_be_left_and_arguments_may_overlap(emulator):
    x, shift = emulator.xp.asarray(np.arange(8, dtype=np.int32)), kernel(emulator, "shift")
    shift((1,), (1,), (x, x))
    assert x.get()[0] == 1
    with pytest.raises(KernelError, match=r"out of bounds: reads 4 bytes at byte 8 of `from` \(element 2 of 2\)"):
        shift((1,), (2,), (x[:2], x[4:]))
    with pytest.raises(KernelError, match=r"race: .* of `(from|to)`"):
        shift((1,), (4,), (x, x))


def test_too_few_arguments_are_refused(emulator):
    with pytest.raises(LaunchError, match="k takes 5 arguments; it is given 0"):
        kernel(emulator, "k")((1,), (32,), ())


def test_structs_and_vectors(emulator):
    xp = emulator.xp
    pair = np.dtype([("a", np.float64), ("b", np.int32)], align=True)
    x = np.zeros(2, pair)
    x["b"] = [3, 5]
    words, out = xp.asarray(np.arange(32, dtype=np.uint8)), xp.empty(1, np.int32)
    pairs = kernel(emulator, "pairs")
    pairs((1,), (1,), (xp.asarray(x), words, words, out))
    assert out.get() == 5 + 0x0F0E0D0C
    with pytest.raises(LaunchError, match=r"argument y begins at .*, no multiple of 16"):
        pairs((1,), (1,), (xp.asarray(x), words[8:24], words, out))
    with pytest.raises(LaunchError, match="argument y holds uint8, 8 bytes; the kernel takes a struct of 16 bytes"):
        pairs((1,), (1,), (xp.asarray(x), words[:8], words, out))
    with pytest.raises(LaunchError, match="argument x holds"):
        pairs((1,), (1,), (xp.asarray(np.zeros(2, "V12")), words, words, out))


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        ((0,), (32,), "grid"),
        ((1, 65536), (32,), "grid"),
        ((1, 1, 65536), (32,), "grid"),
        ((2**31,), (32,), "grid"),
        ((1,), (1025,), "block"),
        ((1,), (1, 1, 65), "block"),
        ((1,), (64, 32), "2048 threads in a block"),
        ((1,), (0,), "block"),
        ((1,), 32, "block"),
        ((1, 1, 1, 1), (32,), "grid"),
        ((1.0,), (32,), "grid"),
        ((2**30,), (32,), "the emulator runs at most"),
    ],
)
def test_wrong_sizes_are_refused(emulator, grid, block, message):
    with pytest.raises(LaunchError, match=message):
        kernel(emulator, "nothing")(grid, block, ())


@pytest.mark.parametrize("kilobytes", SHARED_LIMITS)
def test_shared_memory_follows_the_device(compiler, kilobytes):
    emulator = Emulator(checked=True, properties=Properties.of_shared_limit(kilobytes))
    dynamic, most = kernel(emulator, "dynamic"), kilobytes * 1024
    dynamic((1,), (32,), (np.uint32(48 * 1024),), shared_mem=48 * 1024)
    if most > 48 * 1024:
        with pytest.raises(LaunchError, match="at most 49152, unless max_dynamic_shared_size_bytes is set"):
            dynamic((1,), (32,), (np.uint32(most),), shared_mem=most)
    dynamic.max_dynamic_shared_size_bytes = most
    dynamic((1,), (32,), (np.uint32(most),), shared_mem=most)
    with pytest.raises(LaunchError, match=rf"max_dynamic_shared_size_bytes={most + 1}; this device allows 0 .. {most}"):
        dynamic.max_dynamic_shared_size_bytes = most + 1
    with pytest.raises(KernelError, match="of the dynamic shared memory, which has 64"):
        dynamic((1,), (32,), (np.uint32(65),), shared_mem=64)


def test_static_and_dynamic_shared_memory_share_the_limit(emulator):
    with_static = kernel(emulator, "static_part")
    assert (with_static.shared_size_bytes, with_static.max_dynamic_shared_size_bytes) == (1024, 47 * 1024)
    with pytest.raises(LaunchError, match=r"this device allows 0 \.\. 231424"):
        with_static.max_dynamic_shared_size_bytes = 227 * 1024


def test_too_much_static_shared_memory(emulator):
    text = 'extern "C" __global__ void k() { __shared__ double x[7000]; x[threadIdx.x] = 1; }'
    with pytest.raises(LaunchError, match="56000 bytes of static shared memory; at most 49152"):
        emulator.load(text, OPTIONS).get_function("k")


def test_a_launch_that_does_not_end_is_ended(checked):
    emulator = Emulator(checked=checked, seconds=0.2)
    with pytest.raises(KernelError, match=r"too long: the launch ran for more than 0.2 s"):
        kernel(emulator, "spin")((1,), (32,), (emulator.xp.zeros(1, np.int32),))
    flag = emulator.xp.asarray(np.ones(1, np.int32))
    kernel(emulator, "spin")((1,), (32,), (flag,))  # the next one works


def test_an_array_of_another_device_is_refused(compiler):
    emulator = Emulator(devices=2)
    with emulator.xp.cuda.Device(1):
        args = arguments(emulator)
    with pytest.raises(LaunchError, match="argument x lies on device 1; the current one is 0"):
        kernel(emulator, "k")((1,), (32,), args)
    with emulator.xp.cuda.Device(1):
        kernel(emulator, "k")((1,), (32,), args)


def test_a_failed_launch_leaves_the_device_usable(emulator):
    emulator.faults.fail_launch = 2
    nothing = kernel(emulator, "nothing")
    nothing((1,), (32,), ())
    with pytest.raises(CUDADriverError, match=r"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES.*nothing"):
        nothing((1,), (32,), ())
    nothing((1,), (32,), ())
    assert emulator.launches == 2


def test_a_lost_device_stays_lost(emulator):
    args = arguments(emulator)
    loaded = kernel(emulator, "k")
    emulator.faults.lose_device = emulator.faults.calls + 2
    loaded((1,), (32,), args)
    for _ in range(2):
        with pytest.raises(CUDARuntimeError, match="cudaErrorIllegalAddress"):
            loaded((1,), (32,), args)
        with pytest.raises(CUDARuntimeError, match="cudaErrorIllegalAddress"):
            args[2].get()


def test_bytes_and_atomics_are_counted(emulator, sample):
    xp, n = emulator.xp, 1000
    codes, out = xp.asarray(np.zeros(n, np.uint8)), xp.zeros(40, np.uint32)
    args = (codes, np.int32(n), np.int32(40), out)
    emulator.load(sample, OPTIONS).get_function("histogram")((3,), (64,), args, shared_mem=160)
    counters = emulator.counters["histogram"]
    assert (counters.bytes_read, counters.bytes_written) == (n, 0)
    assert (counters.shared_atomics, counters.global_atomics, counters.barriers) == (n, 3 * 40, 3 * 2)
    assert out.get()[0] == n


def test_launches_from_many_threads(emulator, sample):
    def run(seed: int) -> bool:
        xp, codes = emulator.xp, np.random.default_rng(seed).integers(0, 40, 200).astype(np.uint8)
        out = xp.zeros(40, np.uint32)
        args = (xp.asarray(codes), np.int32(200), np.int32(40), out)
        emulator.load(sample, OPTIONS).get_function("histogram")((2,), (32,), args, shared_mem=160)
        return bool((out.get() == np.bincount(codes, minlength=40)).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(40)))
