"""CuPy compiles a kernel once: its cache on disk is found by the next process, whatever the order of its hashes.

CuPy's own compiler path runs here without a card; only the loading of the binary is left out, for it needs a driver.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends.nvrtc import compiler

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
from cupy.cuda import compiler, function

compiled = []
inner = compiler._compile_using_nvrtc_no_warning

def count(source, *rest):
    compiled.append(source)
    return inner(source, *rest)

class Module:
    def load(self, cubin):
        assert len(cubin) > 1000

    def _set_mapping(self, mapping):
        pass

compiler._compile_using_nvrtc_no_warning = count
function.Module = Module
compiler._get_arch_for_options_for_nvrtc = lambda arch=None: ("-arch=sm_90", "cubin")  # it asks the device

from gputree.backends.gpu.driver import Flavour
from gputree.backends.source import read_kernel
from gputree.core.criteria import CRITERIA, TargetKind
from gputree.core.texts import c_text

flavours = [Flavour(TargetKind.COUNTS, False, CRITERIA["gini"]), Flavour(TargetKind.COUNTS, True, CRITERIA["gini"])]
for flavour in flavours:
    text = read_kernel("search.cu", {"criterion.cuh": c_text(flavour.criterion)})
    compiler._compile_module_with_cache(text, flavour.options(), arch="90")
print(len(compiled))
"""


def run(folder: Path, seed: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "CUPY_CACHE_DIR": str(folder), "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, text=True)


def compiled(process: subprocess.Popen[str]) -> int:
    text, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return int(text)


@pytest.fixture(autouse=True)
def _nvrtc() -> None:
    compiler()


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    assert compiled(run(tmp_path, 1)) == 2  # weights make another module
    assert compiled(run(tmp_path, 2)) == 0


def test_many_processes_fill_an_empty_cache(tmp_path: Path) -> None:
    """None of them fails; afterwards nothing is compiled."""
    for process in [run(tmp_path, seed) for seed in range(4)]:
        assert compiled(process) <= 2
    assert compiled(run(tmp_path, 9)) == 0
