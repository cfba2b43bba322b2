"""The CUDA backend on a machine that it shares: waits, memory, faults, devices, threads.

Tests that inject faults or count run on the emulated machine, the others also on a card; see test_device_arrays.py for
arrays in device memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gputree
from gputree.backends import AUTO_CELLS, cuda, report
from gputree.backends.gpu.driver import Driver
from gputree.backends.protocol import DeviceError, DeviceMemoryError
from tests.backends.cards import CARDS, ROWS, Card, fit, open_card, stand_in, table, use
from tests.conftest import require_compiler
from tests.emulator.driver import Emulator, Faults, Properties


@pytest.fixture(params=CARDS)
def card(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Card:
    return open_card(request.param, monkeypatch)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Emulator:
    """device="cuda" is this machine; tests may change its faults, devices and properties."""
    require_compiler()
    emulator = Emulator(checked=False)
    use(emulator, monkeypatch)
    return emulator


# -- waits


@pytest.mark.parametrize(
    ("waits", "parameters"),
    [
        (2, {}),
        (2, {"criterion": "squared_error"}),
        (2, {"max_features": 6}),
        (4, {"categorical_features": list(range(6))}),
        (4, {"categorical_features": list(range(6)), "categorical_split": "multiway", "min_samples_leaf": 2}),
    ],
    ids=str,
)
def test_a_level_copies_to_the_host_so_often(machine: Emulator, waits: int, parameters: dict[str, Any]) -> None:
    """The best tests, and the channels and sizes of the branches; of tests on categories, which ones and where to."""
    X, y = table()
    X = np.floor(X / 10)
    regression = parameters.get("criterion") == "squared_error"
    model = gputree.DecisionTreeRegressor if regression else gputree.DecisionTreeClassifier
    found = []
    for depth in (1, 2, 3):
        before = machine.transfers.synchronisations
        fitted = model(device="cuda", max_depth=depth, **parameters).fit(X, y)
        assert fitted.get_depth() == depth
        found.append(machine.transfers.synchronisations - before)
    assert np.diff(found).tolist() == [waits, waits]


def test_best_first_copies_three_times_a_step(machine: Emulator) -> None:
    """No more than level by level, for every group of nodes that is searched."""
    before = machine.transfers.synchronisations
    model = fit(max_leaf_nodes=9)
    columns, roots, searched = 6, 1, model.forest_.n_nodes // 2 + 1
    assert machine.transfers.synchronisations - before <= columns + 2 * (roots + searched)


def test_launches_do_not_grow_with_nodes(machine: Emulator) -> None:
    """A level of many nodes costs the launches of a level of few."""
    launches = []
    for depth in (3, 4, 5, 6, 7):
        before = machine.launches
        fit(max_depth=depth)
        launches.append(machine.launches - before)
    steps = np.diff(launches)
    assert steps.max() - steps.min() <= 1  # a level may count by one more kernel, for its small nodes


# -- memory


def test_memory_is_given_back(card: Card) -> None:
    model = fit()
    assert card.pools
    assert card.reserved() == 0
    model.predict(table()[0])
    assert card.reserved() == 0


def test_memory_is_given_back_after_a_refused_fit(card: Card) -> None:
    X, y = table()
    on_device = card.xp.asarray(X)
    held = card.reserved()
    assert held >= X.nbytes
    for labels, parameters, message in (
        (y[:-1], {}, "y has 899 rows and X has 900"),
        (np.where(y, np.nan, 0.0), {}, "NaN|missing"),
        (y, {"max_depth": 0}, "max_depth"),
    ):
        with pytest.raises(ValueError, match=message):
            gputree.DecisionTreeClassifier(device="cuda", **parameters).fit(on_device, labels)
        assert card.reserved() == held
    del on_device
    assert card.reserved() == 0


def test_memory_is_given_back_after_a_fit_that_stops(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a level, as by out of device memory; with a table of the host and one of the device."""

    def stop(*args: Any) -> None:
        assert card.reserved() > 0
        raise DeviceError("stopped")

    X, y = table()
    with monkeypatch.context() as patch:
        patch.setattr(cuda.Cuda, "partition", stop)
        for given in (X, card.xp.asarray(X)):
            with pytest.raises(RuntimeError, match="stopped"):
                gputree.DecisionTreeClassifier(device="cuda").fit(given, y)
    del given
    assert card.reserved() == 0
    assert fit().fingerprint() == fit("cpu").fingerprint()


def test_what_a_card_holds_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measure of the tests above, against what the emulated machine has given."""
    require_compiler()
    emulator = Emulator()
    stand_in(emulator, monkeypatch)
    card = open_card("cuda", monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(cuda.Cuda, "close", lambda self: None)
        fit()
    assert card.reserved() == emulator.reserved[0] > table()[0].nbytes


def test_memory_is_given_back_after_a_failure(machine: Emulator) -> None:
    """Every launch fails in turn; each time an exception, no memory held, and the next fit works."""
    expected = fit("cpu", max_depth=3).fingerprint()
    before = machine.launches
    fit(max_depth=3)
    for number in range(1, machine.launches - before + 1):
        machine.faults = Faults(fail_launch=number)
        with pytest.raises(DeviceError, match=r"Emulated device failed: .*LAUNCH_OUT_OF_RESOURCES.*device='cpu'"):
            fit(max_depth=3)
        assert machine.reserved == [0], number
    machine.faults = Faults()
    assert fit(max_depth=3).fingerprint() == expected


def test_a_failed_fit_leaves_no_model(machine: Emulator) -> None:
    model = fit()
    machine.faults = Faults(fail_launch=4)
    with pytest.raises(DeviceError):
        model.fit(*table())
    assert not hasattr(model, "forest_")


@pytest.mark.parametrize("call", [1, 5, 20, 60, 100])
def test_a_lost_device_is_an_exception(machine: Emulator, call: int) -> None:
    machine.faults = Faults(lose_device=call)
    with pytest.raises(RuntimeError, match=r"illegal memory access"):
        fit()


def test_too_little_memory_is_a_memory_error(machine: Emulator) -> None:
    machine.faults = Faults(memory=20_000)
    with pytest.raises(
        MemoryError, match=r"Emulated device has no memory left .*fewer rows or use device='cpu'"
    ) as found:
        fit()
    assert isinstance(found.value, DeviceMemoryError)
    assert machine.reserved == [0]
    machine.faults = Faults()
    assert fit().fingerprint() == fit("cpu").fingerprint()


@pytest.mark.parametrize("kilobytes", [180, 250, 400])
def test_short_memory_shrinks_the_batch(machine: Emulator, kilobytes: int) -> None:
    """Levels whose tables do not fit are searched a part at a time, with the same result."""
    machine.faults = Faults(memory=kilobytes << 10)
    assert fit().fingerprint() == fit("cpu").fingerprint()


def test_a_batch_that_does_not_fit_is_halved(machine: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where free memory was overestimated, the exception of the first try is answered by two smaller ones."""
    monkeypatch.setattr(cuda, "TABLE_BYTES", 1 << 40)
    monkeypatch.setattr(Driver, "free", lambda self: 1 << 40)
    machine.faults = Faults(memory=400 << 10)
    assert fit().fingerprint() == fit("cpu").fingerprint()


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sort_without_memory_is_a_memory_error(
    machine: Emulator, monkeypatch: pytest.MonkeyPatch, weighted: bool
) -> None:
    """Older versions of CuPy sort wrongly then; so the memory is asked for first."""
    X, y = table()
    weight = np.arange(ROWS) % 3.0 if weighted else None
    sorted_before = machine.transfers.sorts
    machine.faults = Faults(memory=X.nbytes * 3 + (40 << 10))
    with pytest.raises(MemoryError, match="no memory left"):
        gputree.DecisionTreeClassifier(device="cuda").fit(X, y, weight)
    assert machine.transfers.sorts == sorted_before
    monkeypatch.setattr(Driver, "room", lambda self, array: None)
    machine.faults = Faults(memory=X.nbytes * 2 + (4 << 10))
    with pytest.raises(DeviceMemoryError, match="no memory left"):
        gputree.DecisionTreeClassifier(device="cuda").fit(X, y, weight)


# -- devices


def test_the_current_device_stays_current(card: Card) -> None:
    for number in {0, card.devices - 1}:
        with card.xp.cuda.Device(number):
            assert fit("cuda").fit_info_.device == f"cuda:{number}"
            other = card.devices // 2
            assert fit(f"cuda:{other}").fit_info_.device == f"cuda:{other}"
            assert card.current_device() == number
    beyond = card.devices
    with pytest.raises(RuntimeError, match=rf"device='cuda:{beyond}' cannot be used: there are {beyond} CUDA devices"):
        fit(f"cuda:{beyond}")


def test_the_current_device_stays_current_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    require_compiler()
    machine = Emulator(devices=3)
    use(machine, monkeypatch)
    machine.current_device = 2
    machine.faults = Faults(fail_launch=3)
    with pytest.raises(DeviceError):
        fit("cuda:0")
    assert machine.current_device == 2


def test_the_current_stream_stays_current(card: Card) -> None:
    X, y = table()
    with card.xp.cuda.Stream(non_blocking=True) as stream:
        model = gputree.DecisionTreeClassifier(device="cuda").fit(card.xp.asarray(X), y)
        predicted = model.predict(card.xp.asarray(X)).get()
        assert card.xp.cuda.get_current_stream().ptr == stream.ptr
    assert model.fingerprint() == fit("cpu").fingerprint()
    np.testing.assert_array_equal(predicted, fit("cpu").predict(X))


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "cuda:-1", "cpu:0", ""])
def test_other_names_are_refused(device: str) -> None:
    with pytest.raises(ValueError, match="must be 'auto', 'cpu', 'numpy', 'jit', 'cuda' or 'cuda:<number>'"):
        fit(device)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (0, "no NVIDIA driver is installed"),
        (12_080, r"the driver serves CUDA 12\.8 and this CuPy needs 13\.0: update the driver, or install CuPy for"),
        (13_020, r"there is no CUDA device \(cudaErrorNoDevice"),
    ],
)
def test_a_driver_that_is_not_there_or_too_old(monkeypatch: pytest.MonkeyPatch, version: int, message: str) -> None:
    machine = Emulator(devices=0)
    use(machine, monkeypatch)
    monkeypatch.setattr(machine.xp.cuda.runtime, "driverGetVersion", lambda: version)
    with pytest.raises(RuntimeError, match=rf"device='cuda' cannot be used: {message}"):
        fit()


def test_a_card_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    use(Emulator(properties=Properties(name="Old card", compute_capability=(7, 0))), monkeypatch)
    with pytest.raises(RuntimeError, match=r"Old card has compute capability 7\.0; at least 7\.5 is needed"):
        fit()
    assert not report()[-1].available
    assert "Old card" in report()[-1].reason


@pytest.mark.parametrize("error", [ImportError("no module named 'cupy'"), OSError("libcuda.so is broken")], ids=repr)
def test_a_cupy_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    class Finder:
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
            if name == "cupy":
                raise error

    for module in [name for name in sys.modules if name.partition(".")[0] == "cupy"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    with pytest.raises(RuntimeError, match=r"CuPy cannot be imported .*pip install 'cupy-cuda13x\[ctk\]'"):
        fit()


def test_a_forked_process_is_told_so(machine: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """What CuPy raises in the child of a process that has used CUDA."""
    error = machine.xp.cuda.runtime.CUDARuntimeError("cudaErrorInitializationError: initialization error")

    def fail() -> int:
        raise error

    monkeypatch.setattr(machine.xp.cuda.runtime, "getDeviceCount", fail)
    with pytest.raises(RuntimeError, match=r"forked after CUDA was used.*'spawn'"):
        fit()


def test_no_compiler_for_the_card(machine: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    def module(**kwargs: Any) -> Any:
        raise RuntimeError("nvrtc: error: invalid value for --gpu-architecture (-arch)\nmore lines")

    class Module:
        def __init__(self, **kwargs: Any) -> None: ...
        def get_function(self, name: str) -> Any:
            module()

    monkeypatch.setattr(machine.xp, "RawModule", Module, raising=False)
    with pytest.raises(DeviceError, match=r"cannot be compiled for Emulated device \(nvrtc: error: invalid value"):
        fit()


def test_a_cache_that_cannot_be_written(machine: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy's cache on disk fails; the kernels are compiled in memory and the environment is as before."""
    made = machine.xp.RawModule
    tries: list[str | None] = []

    class Module:
        def __init__(self, **kwargs: Any) -> None:
            self.module = made(**kwargs)

        def get_function(self, name: str) -> Any:
            tries.append(cuda_cache())
            if cuda_cache() is None:
                raise PermissionError("[Errno 13] Permission denied: '/home/user/.cupy'")
            return self.module.get_function(name)

    monkeypatch.delenv("CUPY_CACHE_IN_MEMORY", raising=False)
    monkeypatch.setattr(machine.xp, "RawModule", Module, raising=False)
    assert fit().fingerprint() == fit("cpu").fingerprint()
    assert set(tries) == {None, "1"}
    assert cuda_cache() is None


def cuda_cache() -> str | None:
    return os.environ.get("CUPY_CACHE_IN_MEMORY")


# -- device="auto"


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work counts as large from one cell on."""
    monkeypatch.setattr("gputree.backends.AUTO_CELLS", 1)


def test_auto_takes_the_device_for_large_work(card: Card, large: None) -> None:
    info = fit("auto").fit_info_
    assert (info.backend, info.note) == ("cuda", "")


def test_auto_leaves_small_work_to_the_cpu(machine: Emulator) -> None:
    assert AUTO_CELLS > ROWS * 6
    assert fit("auto").fit_info_.backend == "numpy"
    assert not machine.launches


def test_auto_falls_back_and_says_why(monkeypatch: pytest.MonkeyPatch, large: None) -> None:
    use(Emulator(devices=0), monkeypatch)
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *rest: object())
    info = fit("auto").fit_info_
    assert info.backend == "numpy"
    assert "CuPy is installed, but there is no CUDA device" in info.note


def test_a_model_of_the_device_predicts_without_one(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = fit(), table()[0]
    expected = model.predict(X)
    np.testing.assert_array_equal(expected, fit("cpu").predict(X))
    use(Emulator(devices=0), monkeypatch)
    np.testing.assert_array_equal(model.predict(X), expected)


# -- threads


def test_fits_in_threads_do_not_disturb_each_other(card: Card) -> None:
    expected = [fit("cpu", max_depth=d).fingerprint() for d in range(2, 8)]
    found: dict[int, str] = {}

    def work(depth: int) -> None:
        found[depth] = fit(max_depth=depth).fingerprint()

    threads = [threading.Thread(target=work, args=(d,)) for d in range(2, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[d] for d in range(2, 8)] == expected
    assert card.reserved() == 0


# -- CuPy


def test_a_cupy_for_other_cards_is_refused(machine: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.xp.cuda.runtime, "is_hip", True)
    with pytest.raises(RuntimeError, match="this CuPy is built for ROCm"):
        fit()


def test_cupy_is_imported_where_its_cache_cannot_be_made() -> None:
    """The real package makes its folder at import, and fails with it."""
    program = "from gputree.backends.cuda import import_cupy; print(import_cupy().__name__)"
    environment = {**os.environ, "CUPY_CACHE_DIR": "/proc/nowhere", "PYTHONPATH": str(Path(__file__).parents[2])}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert run.stdout == "cupy\n", run.stderr


def test_the_extras_bring_a_compiler() -> None:
    """CuPy's wheels hold neither NVRTC nor the headers."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra in ("cuda12", "cuda13"):
        assert all("[ctk]" in requirement for requirement in project["optional-dependencies"][extra])
