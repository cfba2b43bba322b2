"""Compile `kernels/common.cuh` and what a test adds to it with the host's C++ compiler."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

COMMON = Path(__file__).resolve().parents[2] / "kernels" / "common.cuh"
# Contraction off, as on the device: a fused multiply-add would round once where NumPy rounds twice.
FLAGS = ["-O2", "-ffp-contract=off", "-shared", "-fPIC", "-D__device__=", "-D__forceinline__=inline"]

Call = Callable[..., None]


@pytest.fixture
def compile_c(tmp_path: Path) -> Callable[[str, str], Call]:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no host C++ compiler")

    def build(text: str, name: str) -> Call:
        source, library = tmp_path / "host.cpp", tmp_path / "host.so"
        source.write_text(f'#include "{COMMON}"\n{text}', encoding="utf-8")
        done = subprocess.run([compiler, *FLAGS, str(source), "-o", str(library)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        function = ctypes.CDLL(str(library))[name]
        function.restype = None

        def call(*arguments: int | np.ndarray) -> None:
            function(*(ctypes.c_long(a) if isinstance(a, int) else ctypes.c_void_p(a.ctypes.data) for a in arguments))

        return call

    return build
