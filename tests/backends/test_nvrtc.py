"""The kernels compile for every card served and take no more than they may; CuPy itself where there is no GPU.

The compiler is NVIDIA's own and needs neither GPU nor driver. Most of a run is its time, half a second a text, so the
oldest card and the one that the kernels are tuned for are tried with every specialisation, the others with one of each
file, and the whole product with `-m slow`.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gputree.backends.gpu
from gputree.backends.gpu.driver import OPTIONS
from tests.backends import nvrtc
from tests.backends.nvrtc import ARCHITECTURES, BUDGETS, Specialisation, compile_text, specialisations

WHOLE = (75, 90)  # architectures that every specialisation is compiled for in a plain run


def cases() -> Iterator[pytest.param]:
    files = set()
    for each in specialisations():
        for arch in ARCHITECTURES:
            slow = arch not in WHOLE and each.file in files
            yield pytest.param(each, arch, marks=[pytest.mark.slow] * slow, id=f"{each}-sm_{arch}")
        files.add(each.file)


# ---- the kernels ----


@pytest.mark.parametrize(("what", "arch"), list(cases()))
def test_a_specialisation_compiles_within_its_budget(what: Specialisation, arch: int):
    compiled = compile_text(what.text(), arch, what.flavour.options())
    assert nvrtc.warnings(compiled.log) == []
    assert nvrtc.over_budget(compiled, BUDGETS[what.file]) == []
    assert nvrtc.inexact(compiled.ptx) == []


def calls() -> Iterator[tuple[str, bool]]:
    """Files that the backend takes kernels from, and whether it names a flavour."""
    for path in Path(gputree.backends.gpu.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "kernel":
                assert isinstance(node.args[0], ast.Constant), f"{path.name}:{node.lineno}: write the file's name out"
                yield node.args[0].value, len(node.args) + len(node.keywords) == 3


def test_the_specialisations_are_those_of_the_backend():
    tried = {(each.file, each.flavour != nvrtc.PLAIN) for each in specialisations()}
    assert tried == set(calls())


def test_every_kernel_with_a_budget_is_in_use():
    texts = [path.read_text(encoding="utf-8") for path in Path(gputree.backends.gpu.__file__).parent.glob("*.py")]
    words = {n.value for text in texts for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant)}
    assert {name for budgets in BUDGETS.values() for name in budgets} <= words


@pytest.mark.parametrize(
    ("threads", "blocks", "registers"),
    # 65,536 registers: 85.3 a thread, 51.2 and 64.0 before they are rounded down to a multiple of eight
    [(128, 6, 80), (256, 5, 48), (512, 2, 64)],
)
def test_a_budget_of_blocks_is_one_of_registers(threads, blocks, registers):
    assert nvrtc.Budget(threads, blocks).registers == registers


# ---- the checks see what they look for ----


def entry(body: str, bounds: str = "64") -> str:
    return f'extern "C" __global__ void __launch_bounds__({bounds}) f(int n, const int* in, int* out) {{ {body} }}'


def compiled_entry(body: str, options: tuple[str, ...] = OPTIONS) -> nvrtc.Compiled:
    return compile_text(entry(body), 90, options)


def test_shared_and_local_memory_are_read_from_the_log():
    # a hundred ints that no register can hold, for the place is not known before the run
    local = "int a[100]; for (int i = 0; i < 100; ++i) a[i] = in[i]; out[0] = a[n]; out[1] = a[out[2]];"
    found = compiled_entry(f"__shared__ int s[1000]; s[n] = in[n]; __syncthreads(); out[3] = s[in[n]]; {local}")
    kernel = nvrtc.taken(found.log)["f"]
    assert (kernel.shared, kernel.frame, kernel.spilled) == (4000, 400, 0)
    wrong = nvrtc.over_budget(found, {"f": nvrtc.Budget(64, 8)})
    assert wrong == [
        "f: 4000 bytes of static shared memory, not 0",
        "f: 400 bytes of local memory, 0 bytes of spills",
    ]


def test_spills_and_registers_are_read_from_the_log():
    # 64 numbers, all in use at the barrier: with 32 registers (two blocks of 1,024 threads) and then with enough
    body = "int a[64]; for (int i = 0; i < 64; ++i) a[i] = in[i * n]; __syncthreads();"
    body += "for (int i = 0; i < 64; ++i) out[i * n] = 5 * a[i] + a[63 - i];"
    tight = nvrtc.taken(compile_text(entry(body, "1024, 2"), 90, OPTIONS).log)["f"]
    assert tight.registers <= 32
    assert tight.spilled > 0
    assert tight.frame > 0
    found = compiled_entry(body)
    kernel = nvrtc.taken(found.log)["f"]
    assert kernel.registers >= 64
    assert (kernel.frame, kernel.spilled) == (0, 0)
    # 36.6 a thread
    assert nvrtc.over_budget(found, {"f": nvrtc.Budget(64, 28)}) == [f"f: {kernel.registers} registers, above 32"]


@pytest.mark.parametrize(("named", "wrong"), [("64, 4", []), ("64, 5", ["f: launch bounds (64, 5), not (64, 4)"])])
def test_blocks_that_launch_bounds_name_are_those_of_the_budget(named, wrong):
    found = compile_text(entry("out[n] = in[n];", named), 120, OPTIONS)
    assert nvrtc.over_budget(found, {"f": nvrtc.Budget(64, 4)}) == wrong


def test_other_blocks_and_other_kernels_break_a_budget():
    found = compiled_entry("out[n] = in[n];")
    assert nvrtc.over_budget(found, {"f": nvrtc.Budget(64, 8)}) == []
    assert nvrtc.over_budget(found, {"f": nvrtc.Budget(32, 8)}) == ["f: launch bounds (64, 0), not (32, 8)"]
    assert nvrtc.over_budget(found, {"g": nvrtc.Budget(64, 8)}) == [
        "f: no kernel or no budget",
        "g: no kernel or no budget",
    ]


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (entry("int unused; out[n] = in[n];"), OPTIONS, "never referenced"),
        (entry("out[n] = in[n];"), (*OPTIONS, "-ftz=false"), "nvrtc: warning"),
        # more threads at once than a multiprocessor holds
        (entry("out[n] = in[n];", "1024, 3"), OPTIONS, "ptxas warning"),
    ],
)
def test_a_warning_is_seen(text, options, said):
    assert any(said in line for line in nvrtc.warnings(compile_text(text, 90, options).log))


D, F = "const double a = ((double*)in)[0], b = ((double*)in)[1]; ((double*)out)[0]", "((float*)out)[0]"


@pytest.mark.parametrize(
    ("body", "options", "seen"),
    [
        (f"{D} = a * b + a;", OPTIONS, ""),
        (f"{D} = a / b;", OPTIONS, ""),
        (f"{D} = ((const float*)in)[0];", OPTIONS, ""),
        (f"{D} = a * b + a;", ("--std=c++17",), "fma.rn.f64"),
        (f"{D} = fma(a, b, a);", OPTIONS, "fma.rn.f64"),
        (f"{D} = sqrt(a);", OPTIONS, "sqrt.rn.f64"),
        (f"{F} = (float)n;", OPTIONS, "cvt.rn.f32.s32"),
        (f"{F} = ((const float*)in)[0] + ((const float*)in)[1];", OPTIONS, "add.rn.ftz.f32"),
        (f"atomicAdd(&{F}, 1.5f);", OPTIONS, "f32"),
        ("atomicAdd((double*)out, 1.5);", OPTIONS, "f64"),
        (f"out[0] = {F} < 1.5f;", OPTIONS, "setp"),
        ("const float a = ((const float*)in)[0]; out[0] = a != a;", OPTIONS, ""),
    ],
)
def test_inexact_instructions_are_seen(body, options, seen):
    found = nvrtc.inexact(compiled_entry(body, options).ptx)
    assert any(seen in each for each in found) if seen else found == []


def test_a_wrong_text_is_refused_with_the_compilers_words():
    with pytest.raises(nvrtc.CompileError, match='identifier "nothing" is undefined'):
        compiled_entry("out[n] = nothing;")


def test_no_compiler_is_a_skip_that_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    # not one that begins "expected:", which continuous integration would let pass
    with pytest.raises(
        pytest.skip.Exception, match=r"^the kernels cannot .*: pip install cuda-bindings nvidia-cuda-nvrtc"
    ):
        nvrtc.compiler()


# ---- CuPy without a GPU ----


@pytest.fixture
def cupy():
    found = pytest.importorskip("cupy", reason="CuPy is not installed: pip install 'gputree[cuda13]'")
    if found.cuda.is_available():
        pytest.skip("expected: this machine has a GPU")
    return found


def test_the_options_of_cupy_are_those_tried_here(cupy):
    from cupy.cuda import compiler

    text = inspect.getsource(compiler)
    assert [option for option in nvrtc.OF_CUPY if f"'{option}'" not in text] == []


def test_cupy_is_imported_without_a_driver_and_says_so(cupy):
    code = "import cupy; print(cupy.cuda.is_available())"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


def test_cupy_refuses_a_kernel_without_a_driver(cupy):
    module = cupy.RawModule(code=entry("out[n] = in[n];"), options=OPTIONS)
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match=r"cudaError(InsufficientDriver|NoDevice)"):
        module.get_function("f")
