"""The subset computes what CUDA's functions do, and refuses what is not in it."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tests.emulator.compiler import HERE
from tests.emulator.conftest import OPTIONS
from tests.emulator.driver import Emulator
from tests.emulator.errors import CompileError, LaunchError


@pytest.fixture(scope="module")
def text() -> str:
    return '#line 1 "subset.cu"\n' + (HERE / "samples" / "subset.cu").read_text(encoding="utf-8")


@pytest.fixture
def emulator(checked):
    return Emulator(checked=checked, seed=1)


def signed(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def first_bit(x: int) -> int:
    return (x & -x).bit_length()


def integer_rows(x: int, y: int) -> list[int]:
    """In Python's integers what `integers` of subset.cu gives."""
    u32, v32, u64, v64 = x & 0xFFFFFFFF, y & 0xFFFFFFFF, x & (2**64 - 1), y & (2**64 - 1)
    return [
        *(u32.bit_count(), u64.bit_count(), first_bit(u32), first_bit(u64)),
        *(32 - u32.bit_length(), 64 - u64.bit_length()),
        *(u32 * v32 >> 32, signed(u32, 32) * signed(v32, 32) >> 32, signed(u64 * v64 >> 64, 64), x * y >> 64),
        *(min(x, y), max(x, y), x, u32 & 0x7F7FFFFF, x),
    ]


def test_integer_functions(emulator, load, text):
    rng = np.random.default_rng(0)
    a = np.concatenate([[0, 1, -1, 2**63 - 1, -(2**63)], rng.integers(-(2**63), 2**63 - 1, 27)])
    b = rng.permutation(a)
    out = emulator.xp.empty((15, 32), np.int64)
    load(emulator, text, "integers")((1,), (32,), (emulator.xp.asarray(a), emulator.xp.asarray(b), out))
    wanted = [integer_rows(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    np.testing.assert_array_equal(out.get(), np.array(wanted).T)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "uint64"])
def test_atomics(emulator, load, text, dtype):
    limits = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(limits.min, limits.max, 64, dtype=dtype, endpoint=True)
    start = np.array([1, x[0], x[0], limits.max, 0, 0, 5, 0, 0, 0], dtype)
    out = emulator.xp.asarray(start)
    load(emulator, text, f"atomics_{dtype}")((1,), (64,), (emulator.xp.asarray(x), out))
    with np.errstate(over="ignore"):
        folded = [x.sum(dtype=dtype) + start[0], x.min(), x.max(), np.bitwise_and.reduce(x) & start[3]]
    folded += [np.bitwise_or.reduce(x), np.bitwise_xor.reduce(x)]
    np.testing.assert_array_equal(out.get(), np.array([*folded, 77, 5, x[3], 77], dtype))
    assert emulator.counters[f"atomics_{dtype}"].global_atomics == 6 * 64 + 3


@pytest.mark.parametrize("width", [1, 2, 8, 32])
@pytest.mark.parametrize("by", [0, 1, 3, 8, 31])
def test_warp_operations(emulator, load, text, width, by):
    x = np.random.default_rng(2).random(64)
    out = emulator.xp.empty((9, 64), np.float64)
    args = (np.uint32(2**32 - 1), np.int32(by), np.int32(width), emulator.xp.asarray(x), out)
    load(emulator, text, "warp")((1,), (64,), args)
    for i, got in enumerate(out.get().T):
        first, lane = i - i % width, i % width
        warp = x[i - i % 32 : i - i % 32 + 32]
        near = [first + by % width, i - by if lane >= by else i, i + by if lane + by < width else i]
        other = i - i % 32 + ((i % 32) ^ by)
        near.append(other if other < first + width else i)
        votes = [float(sum(1 << j for j in range(32) if warp[j] > 0.5)), (warp > 0.98).any(), (warp > 0.02).all()]
        np.testing.assert_array_equal(got, [*x[near], *votes, np.float32(warp[0]), i - i % 32])


def test_a_mask_of_some_lanes(emulator, load, text):
    x = np.random.default_rng(3).random(64)
    out = emulator.xp.zeros((9, 64), np.float64)
    args = (np.uint32(0x0F0F), np.int32(0), np.int32(4), emulator.xp.asarray(x), out)
    load(emulator, text, "warp")((1,), (64,), args)
    lanes = [0, 1, 2, 3, 8, 9, 10, 11]
    lanes += [32 + i for i in lanes]
    np.testing.assert_array_equal(out.get()[0, lanes], x[[i - i % 4 for i in lanes]])
    assert out.get()[4, 40] == sum(1 << i for i in lanes[:8] if x[32 + i] > 0.5)
    assert (np.delete(out.get(), lanes, axis=1) == 0).all()


def test_three_dimensions_and_votes_of_the_block(emulator, load, text):
    out = emulator.xp.empty((12, 30, 4), np.int32)
    load(emulator, text, "places")((3, 2, 2), (5, 3, 2), (out,))
    got = out.get()
    wanted = [x + 10 * y + 100 * z for z in range(2) for y in range(3) for x in range(5)]
    blocks = [1000 * x + 10000 * y + 100000 * z for z in range(2) for y in range(2) for x in range(3)]
    np.testing.assert_array_equal(got[:, :, 0], np.add.outer(blocks, wanted))
    assert (got[:, :, 1] == 5).all()
    assert (got[:, :, 2] == 1).all()
    assert (got[:, :, 3] == 0).all()
    counters = emulator.counters["places"]
    assert (counters.launches, counters.blocks, counters.threads, counters.barriers) == (1, 12, 360, 36)


def test_vectors(emulator, load, text):
    xp = emulator.xp
    y, z = xp.empty(4, np.float32), xp.empty(4, np.uint8)
    load(emulator, text, "vectors")((1,), (1,), (xp.asarray(np.arange(4, dtype=np.uint64)), y, z))
    assert (y.get().tolist(), z.get().tolist()) == ([2, 3, 1, 2], [3, 4, 5, 6])


def test_shared_memory_of_kernels_functions_templates_and_files(emulator, load, text):
    out = emulator.xp.empty(1, np.int32)
    kernel = load(emulator, text, "shared_everywhere")
    kernel((1,), (1,), (out,), shared_mem=8)
    assert out.get() == 3 + 10 + 20 + 5 + 7
    assert kernel.shared_size_bytes == 16 + 16 + 8 + 8  # of 12, 16, 4 and 8, in units of 8


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("out[0] = __activemask();", "__activemask"),
        ("atomicAdd((float*)out, 1.0f);", "deleted function"),
        ("out[0] = (int)log2(2.0);", "poisoned"),
        ("__shared__ int x = 3; out[0] = x;", "initial value"),
        ("extern __shared__ int x[4]; out[0] = x[0];", "write dynamic shared memory as"),
        ("out[0] = nothing;", "kernel.cu:1:.*nothing"),
    ],
)
def test_what_is_not_in_the_subset_does_not_compile(compiler, load, body, message):
    with pytest.raises(CompileError, match=message):
        load(Emulator(), f'extern "C" __global__ void k(int* out) {{ {body} }}', "k")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("__global__ void k(int* out) {}", OPTIONS, 'not extern "C"'),
        ('extern "C" __global__ void k(int* out) {}', (), "lack --fmad=false"),
        ('extern "C" __global__ void k(int* out) {}', (*OPTIONS, "--use_fast_math"), "the emulator knows"),
    ],
)
def test_what_the_loader_refuses(compiler, text, options, message):
    with pytest.raises(CompileError, match=message):
        Emulator().load(text, options).get_function("k")


def test_definitions_choose_kernels_and_bounds(compiler):
    text = """
        #if WIDE
        extern "C" __global__ void __launch_bounds__(THREADS * 2) wide(int* out) { out[0] = __CUDA_ARCH__; }
        #else
        extern "C" __global__ void narrow(int* out) { out[0] = 1; }
        #endif
    """
    emulator = Emulator()
    module = emulator.load(text, (*OPTIONS, "-DWIDE=1", "-DTHREADS=32"))
    with pytest.raises(LaunchError, match="no kernel 'narrow' in this text; it has: wide"):
        module.get_function("narrow")
    wide, out = module.get_function("wide"), emulator.xp.empty(1, np.int32)
    assert wide.attributes["max_threads_per_block"] == 64
    with pytest.raises(LaunchError, match="65 threads in a block"):
        wide((1,), (65,), (out,))
    wide((1,), (1,), (out,))
    assert out.get() == 900


def test_the_order_of_threads_differs_by_seed_alone(checked, load):
    text = """extern "C" __global__ void order(int* next, int* out) {
        const int at = atomicAdd(next, 1);
        out[at] = blockIdx.x * blockDim.x + threadIdx.x;
    }"""

    def run(seed: int) -> bytes:
        emulator = Emulator(checked=checked, seed=seed)
        out = emulator.xp.empty(96, np.int32)
        load(emulator, text, "order")((3,), (32,), (emulator.xp.zeros(1, np.int32), out))
        assert sorted(out.get()) == list(range(96))
        return out.get().tobytes()

    assert len({run(seed) for seed in range(10)}) == 10
    assert run(3) == run(3)
    assert struct.unpack("3i", run(3)[:12]) != (0, 1, 2)
