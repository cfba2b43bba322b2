"""The compiler's cache, and what happens without a compiler."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tests.conftest import EXPECTED
from tests.emulator import compiler as tool
from tests.emulator.compiler import HERE
from tests.emulator.conftest import OPTIONS
from tests.emulator.driver import Emulator
from tests.emulator.errors import CompilerMissing, KernelError

TEXT = """extern "C" __global__ void k(int* out) {
    __syncthreads();
    out[threadIdx.x] = __shfl_sync(0xFFFFFFFFu, threadIdx.x, 3);
}"""
RUN = f"""
from tests.emulator.driver import Emulator
e = Emulator()
out = e.xp.empty(32, "i4")
e.load({TEXT!r}, {OPTIONS!r}).get_function("k")((1,), (32,), (out,))
assert (out.get() == 3).all()
"""


@pytest.fixture
def fresh(compiler, tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tool.cache_folder.cache_clear()
    yield tmp_path / "gputree-emulator"
    tool.cache_folder.cache_clear()


def test_workers_that_compile_the_same_text_at_once(fresh, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(HERE.parents[1]))
    workers = [subprocess.Popen([sys.executable, "-c", RUN], stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for worker in workers:
        _, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors
    assert sorted(path.suffix for path in fresh.iterdir()) == [".o", ".so"]


def test_a_second_run_compiles_nothing(fresh, monkeypatch):
    path = tool.build(TEXT, OPTIONS, 900, False)
    monkeypatch.setattr(tool, "_run", lambda *command, what: pytest.fail(f"compiled {what}"))
    assert tool.build(TEXT, OPTIONS, 900, False) == path


def test_text_options_and_mode_decide_what_is_compiled(fresh):
    builds = [(TEXT, OPTIONS, 900, False), (TEXT + " ", OPTIONS, 900, False), (TEXT, (*OPTIONS, "-DX=1"), 900, False)]
    builds += [(TEXT, OPTIONS, 750, False), (TEXT, OPTIONS, 900, True)]
    assert len({tool.build(*build) for build in builds}) == 5


def test_a_cache_that_cannot_be_written_is_passed_by(fresh, monkeypatch):
    (fresh.parent / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(fresh.parent / "file"))
    tool.cache_folder.cache_clear()
    assert "gputree-emulator-" in tool.cache_folder().name


def test_no_compiler_is_said_and_no_expected_skip(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(
        CompilerMissing, match=r"no host compiler: the emulator needs g\+\+ 12 or later; install"
    ) as error:
        tool.find_compiler()
    assert not str(error.value).startswith(EXPECTED)


@pytest.mark.parametrize("version", ["Apple clang version 15", "9.4.0"])
def test_another_compiler_is_refused(monkeypatch, compiler, version):
    monkeypatch.setattr(tool, "_version", lambda path: version)
    with pytest.raises(CompilerMissing, match="the emulator needs GCC 12 or later"):
        tool.find_compiler()


def test_the_switch_for_other_processors(compiler, monkeypatch):
    monkeypatch.setattr(tool, "RUNTIME_DEFINES", ("-DEMU_UCONTEXT",))
    emulator = Emulator(checked=True)
    out = emulator.xp.empty(32, np.int32)
    emulator.load(TEXT, OPTIONS).get_function("k")((1,), (32,), (out,))
    assert (out.get() == 3).all()
    with pytest.raises(KernelError, match="out of bounds"):
        emulator.load(TEXT, OPTIONS).get_function("k")((1,), (32,), (out[1:],))
