"""One card for tests that ask nothing of an emulator: the emulated machine, or with ``-m gpu`` the real one.

Both are reached by the name `cupy`, so that whatever runs on the emulated machine is the code that runs on a card::

    @pytest.fixture(params=CARDS)
    def card(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Card:
        return open_card(request.param, monkeypatch)
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gputree
from gputree.backends import cuda
from tests.conftest import require_compiler
from tests.emulator.driver import Emulator

CARDS = ["emulated", pytest.param("cuda", marks=pytest.mark.gpu)]
ROWS, COLUMNS = 900, 6


def table(n: int = ROWS, columns: int = COLUMNS) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 50, (n, columns)).astype(np.float32)
    return X, (X[:, 0] + X[:, 1] * rng.random(n) > 40).astype(int)


def fit(device: str = "cuda", **parameters: Any) -> gputree.DecisionTreeClassifier:
    return gputree.DecisionTreeClassifier(device=device, **parameters).fit(*table())


def use(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """device="cuda" is this machine."""
    monkeypatch.setattr(cuda, "import_cupy", lambda: emulator.xp)
    monkeypatch.setattr(cuda, "COMPILED", {})


def emulate(monkeypatch: pytest.MonkeyPatch) -> Emulator:
    """The same, of a new machine."""
    require_compiler()
    emulator = Emulator(checked=False)
    use(emulator, monkeypatch)
    return emulator


@dataclass(frozen=True)
class Card:
    """A machine with CUDA devices: the module ``xp`` that stands for them, and the memory pools made since then."""

    xp: Any
    pools: list[Any]
    before: int = 0  # bytes that arrays of earlier tests hold

    @property
    def devices(self) -> int:
        return int(self.xp.cuda.runtime.getDeviceCount())

    def current_device(self) -> int:
        return int(self.xp.cuda.runtime.getDevice())

    def reserved(self) -> int:
        """Bytes that this process holds on the current device, arrays of the test included.

        Exact on a card too: it is what pools have taken and not given back, those of backends and, as far as in use,
        that of CuPy itself. The card's free memory would also show what other processes do on it at the same time.
        """
        default = self.xp.get_default_memory_pool()
        return int(default.used_bytes() + sum(pool.total_bytes() for pool in self.pools)) - self.before


def open_card(name: str, monkeypatch: pytest.MonkeyPatch) -> Card:
    """The real card ("cuda"), or a machine with three emulated ones ("emulated")."""
    if name == "emulated":
        require_compiler()
        stand_in(Emulator(devices=3), monkeypatch)
    xp, pools = cuda.import_cupy(), []
    made = xp.cuda.MemoryPool

    def make() -> Any:
        pools.append(made())
        return pools[-1]

    monkeypatch.setattr(xp.cuda, "MemoryPool", make)
    return Card(xp, pools, Card(xp, []).reserved())


def stand_in(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """``import cupy`` gives the emulator's module, which here also does what starts a kernel of CuPy's own."""
    xp: Any = emulator.xp
    monkeypatch.setattr(cuda, "COMPILED", {})
    monkeypatch.setitem(sys.modules, "cupy", xp)
    monkeypatch.setattr(xp, "__spec__", ModuleSpec("cupy", None), raising=False)
    monkeypatch.setattr(xp, "from_dlpack", lambda packed: packed.array, raising=False)
    monkeypatch.setattr(xp, "ascontiguousarray", lambda a: xp.asarray(np.ascontiguousarray(a._host)), raising=False)
