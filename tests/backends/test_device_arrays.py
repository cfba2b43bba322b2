"""Arrays in device memory: tables are used where they lie, and predictions come back there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gputree
from tests.backends.cards import CARDS, COLUMNS, ROWS, Card, fit, open_card, table, use
from tests.conftest import require_compiler
from tests.emulator.driver import Emulator


@pytest.fixture(params=CARDS)
def card(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Card:
    return open_card(request.param, monkeypatch)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Emulator:
    """device="cuda" is this machine, which counts its copies."""
    require_compiler()
    emulator = Emulator()
    use(emulator, monkeypatch)
    return emulator


# -- tables


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tables_in_device_memory_stay_there(card: Card, dtype: type) -> None:
    X, y = table()
    X[::7, 2] = np.nan
    on_device = card.xp.asarray(X.astype(dtype))
    host = gputree.DecisionTreeClassifier(device="cpu").fit(X.astype(dtype), y)
    model = gputree.DecisionTreeClassifier(device="cuda").fit(on_device, card.xp.asarray(y))
    assert model.fingerprint() == host.fingerprint()
    for name in ("predict", "predict_proba", "apply", "predict_log_proba"):
        result = getattr(model, name)(on_device)
        assert isinstance(result, card.xp.ndarray), name
        np.testing.assert_array_equal(result.get(), getattr(host, name)(X.astype(dtype)))
    assert model.score(on_device, card.xp.asarray(y)) == host.score(X.astype(dtype), y)
    assert (model.decision_path(on_device) != host.decision_path(X.astype(dtype))).nnz == 0


def test_a_table_in_device_memory_is_not_copied_to_the_host(machine: Emulator) -> None:
    X, y = table()
    on_device = machine.xp.asarray(X)
    before = machine.transfers.bytes_to_host
    gputree.DecisionTreeClassifier(device="cuda").fit(on_device, y)
    sorted_columns = COLUMNS * ROWS * 8  # come back, and the tree, but not the table again
    assert machine.transfers.bytes_to_host - before < 1.5 * sorted_columns


def test_missing_values_are_looked_for_on_the_device(machine: Emulator) -> None:
    X, y = table()
    X[5, 3] = np.nan
    on_device = machine.xp.asarray(X)
    before = machine.transfers.bytes_to_host
    assert gputree.backends.any_missing(on_device)
    assert machine.transfers.bytes_to_host - before == 8  # how many there are
    model = gputree.C45Classifier(device="cuda", max_depth=3).fit(on_device, y)
    assert machine.counters["count_missing"].launches == 2
    assert model.fingerprint() == gputree.C45Classifier(device="numpy", max_depth=3).fit(X, y).fingerprint()


def by_rows(xp: Any, X: NDArray[Any]) -> Any:
    return xp.asarray(X)


def by_columns(xp: Any, X: NDArray[Any]) -> Any:
    """Fortran's order, as data frames on a device keep their columns."""
    return xp.asarray(np.ascontiguousarray(X.T)).T


def some_rows(xp: Any, X: NDArray[Any]) -> Any:
    """The middle of a longer table: it begins inside the memory."""
    return xp.asarray(np.concatenate([X[:5] + 1, X, X[:5] + 2]))[5:-5]


def some_columns(xp: Any, X: NDArray[Any]) -> Any:
    """The middle of a wider table: gaps between the rows."""
    return xp.asarray(np.hstack([X[:, :1] + 1, X, X[:, :1] + 2]))[:, 1:-1]


def every_other_row(xp: Any, X: NDArray[Any]) -> Any:
    """Gaps of a row."""
    return xp.asarray(np.repeat(X, 2, axis=0))[::2]


@pytest.mark.parametrize("lay", [by_rows, by_columns, some_rows, some_columns, every_other_row])
def test_tables_of_every_layout(card: Card, lay: Callable[[Any, NDArray[Any]], Any]) -> None:
    X, y = table()
    on_device = lay(card.xp, X)
    assert on_device.shape == X.shape
    model = gputree.DecisionTreeClassifier(device="cuda").fit(on_device, y)
    assert model.fingerprint() == fit("cpu").fingerprint()
    np.testing.assert_array_equal(model.predict(on_device).get(), fit("cpu").predict(X))


@pytest.mark.parametrize("change", ["integers", "weights", "categories"])
def test_what_cannot_stay_on_the_device_is_copied(card: Card, change: str) -> None:
    X, y = table()
    weight = np.arange(ROWS) % 3.0 if change == "weights" else None
    more = {"categorical_features": [0]} if change == "categories" else {}
    X = X.astype(np.int32) if change == "integers" else X
    found, expected = (
        gputree.DecisionTreeClassifier(device=device, max_depth=4, **more).fit(put(X), y, weight)
        for device, put in (("cuda", card.xp.asarray), ("cpu", np.asarray))
    )
    assert found.fingerprint() == expected.fingerprint()
    np.testing.assert_array_equal(found.predict(card.xp.asarray(X)).get(), expected.predict(X))


def test_targets_and_weights_in_device_memory(card: Card) -> None:
    X, y = table()
    target, weight = np.column_stack([X[:, 0] * 0.5, y]), 1.0 + np.arange(ROWS) % 3
    found, expected = (
        gputree.DecisionTreeRegressor(device=device, max_depth=4).fit(put(X), put(target), put(weight))
        for device, put in (("cuda", card.xp.asarray), ("cpu", np.asarray))
    )
    assert found.fingerprint() == expected.fingerprint()
    predicted = found.predict(card.xp.asarray(X))
    assert isinstance(predicted, card.xp.ndarray)
    np.testing.assert_array_equal(predicted.get(), expected.predict(X))


def test_a_table_in_device_memory_and_the_cpu(card: Card) -> None:
    X, y = table()
    on_device = card.xp.asarray(X)
    model = gputree.DecisionTreeClassifier(device="cpu").fit(on_device, y)
    assert model.fit_info_.backend == "numpy"
    assert model.fingerprint() == fit("cpu").fingerprint()
    assert isinstance(model.predict(on_device), card.xp.ndarray)


def test_a_table_of_the_host_gives_arrays_of_the_host(card: Card) -> None:
    X, y = table()
    model = gputree.DecisionTreeClassifier(device="cuda").fit(card.xp.asarray(X), y)
    predicted = model.predict(X)
    assert isinstance(predicted, np.ndarray)
    np.testing.assert_array_equal(predicted, fit("cpu").predict(X))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_split_tables_of_tables_in_device_memory(card: Card, device: str) -> None:
    X, y = table()
    on_device = card.xp.asarray(X)
    model = gputree.DecisionTreeClassifier(device=device, max_depth=3).fit(on_device, y)
    held = card.reserved()
    assert held >= X.nbytes
    assert str(model.split_table(on_device, y, node=1)) == str(model.split_table(X, y, node=1))
    assert card.reserved() == held


def test_other_shapes_in_device_memory_are_refused(card: Card) -> None:
    X, y = table()
    model = fit()
    with pytest.raises(ValueError, match=r"2D array|2 dimensions"):
        model.predict(card.xp.asarray(X[0]))
    with pytest.raises(ValueError, match="5 features"):
        model.predict(card.xp.asarray(np.ascontiguousarray(X[:, :5])))
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        gputree.DecisionTreeClassifier(device="cuda").fit(card.xp.asarray(X[:0]), y[:0])


# -- devices


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_the_work_goes_where_the_table_is(card: Card, device: str) -> None:
    """The last device, which stays not the current one if there are several; small work too."""
    X, y = table()
    last, current = card.devices - 1, card.current_device()
    with card.xp.cuda.Device(last):
        on_device = card.xp.asarray(X)
    model = gputree.DecisionTreeClassifier(device=device).fit(on_device, y)
    assert model.fit_info_.device == f"cuda:{last}"
    predicted = model.predict(on_device)
    assert predicted.device.id == last
    np.testing.assert_array_equal(predicted.get(), fit("cpu").predict(X))
    assert card.current_device() == current


def test_a_table_on_another_device_is_refused(card: Card) -> None:
    """By a backend that is already open, and gives its memory back."""
    if card.devices < 2:
        pytest.skip("expected: needs two CUDA devices, and this machine has one")
    X, y = table()
    with card.xp.cuda.Device(1):
        on_device = card.xp.asarray(X)
    with pytest.raises(RuntimeError, match=r"X lies on device 1 .* give device='cuda:1'"):
        gputree.DecisionTreeClassifier(device="cuda:0").fit(on_device, y)
    with card.xp.cuda.Device(0):
        assert card.reserved() == 0
    assert gputree.DecisionTreeClassifier(device="cuda:1").fit(on_device, y).fingerprint() == fit("cpu").fingerprint()


# -- arrays of other libraries


def test_arrays_with_dlpack_alone_are_read(card: Card) -> None:
    class Packed:
        def __init__(self, array: Any) -> None:
            self.array, self.shape, self.dtype = array, array.shape, array.dtype

        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, self.array.device.id)

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

    X, y = table()
    packed = Packed(card.xp.asarray(X))
    model = gputree.DecisionTreeClassifier(device="cuda").fit(packed, y)
    assert model.fingerprint() == fit("cpu").fingerprint()
    np.testing.assert_array_equal(model.predict(packed).get(), model.predict(X))


def test_tensors_of_pytorch_come_back_as_such(machine: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for PyTorch: what it gives, and what it is asked for."""

    class Tensor:
        __module__ = "torch"

        def __init__(self, array: Any) -> None:
            self.array, self.shape, self.device = array, array.shape, "cuda:0"
            self.dtype = f"torch.{array.dtype}"
            self.__cuda_array_interface__ = {}

        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

        def detach(self) -> Tensor:
            return self

        cpu = detach

        def numpy(self) -> NDArray[Any]:
            return np.asarray(self.array.get())

    def as_tensor(values: NDArray[Any], device: str) -> Tensor:
        assert device == "cuda:0"
        return Tensor(asarray(values))

    asarray = machine.xp.asarray
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=Tensor, as_tensor=as_tensor))
    monkeypatch.setattr(
        machine.xp, "asarray", lambda x, *rest: x.array if isinstance(x, Tensor) else asarray(x, *rest), raising=False
    )
    X, y = table()
    tensor = Tensor(asarray(X))
    model = gputree.DecisionTreeClassifier(device="cuda").fit(tensor, Tensor(asarray(y)))
    assert model.fingerprint() == fit("cpu").fingerprint()
    predicted = model.predict(tensor)
    assert isinstance(predicted, Tensor)
    np.testing.assert_array_equal(predicted.numpy(), fit("cpu").predict(X))
    assert gputree.DecisionTreeClassifier(device="cpu").fit(tensor, y).fingerprint() == model.fingerprint()
