"""Damage of every kind to model files: they are refused with a ValueError, or predict exactly what they did."""

from __future__ import annotations

import copy
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import gputree
from gputree.core.packed import RULES
from gputree.io import load, save
from tests.model_files import DATA, Parts, expected, made, npy, parts, penguins, predictions, rewrite, write

RIGHT = parts(DATA / "format_2.gputree")

# A message that begins so is an exception that a reader met, not a sentence that somebody wrote.
RAW = re.compile(r": (Key|Type|Index|Attribute|Overflow|Recursion|Assertion|Memory|System)Error|struct\.error|error: ")


def small() -> tuple[Any, NDArray[Any]]:
    """A tree with a threshold, a lookup, missing values and labels in a member, on two columns."""
    X = np.array([["x", 1.0], ["y", 2.0], ["z", 3.0], [None, 4.0]] * 3, object)
    X[:, 1] = np.arange(12.0)
    y = np.array([0, 1, 1, 2, 0, 1, 1, 2, 0, 0, 1, 2])
    model = gputree.DecisionTreeClassifier(max_depth=2, categorical_split="multiway", categorical_features=[0])
    return model.fit(X, y), X


class Damaged:
    """A file of which bytes are changed in place; `harmless` tells whether it still loads, and checks it if so."""

    def __init__(self, model: Any, X: Any, path: Path) -> None:
        self.path, self.X = path, X
        self.expected, self.fingerprint = model.predict_proba(X), model.fingerprint()
        save(model, path)
        self.data = path.read_bytes()
        self.file = os.open(path, os.O_RDWR)

    def put(self, place: int, data: bytes) -> None:
        os.pwrite(self.file, data, place)

    def harmless(self, mapped: bool) -> bool:
        try:
            model = load(self.path, mmap=mapped)
        except ValueError as error:
            message = str(error)
            assert "is no model file that this version reads: " in message, message
            assert not RAW.search(message), message
            return False
        assert model.fingerprint() == self.fingerprint
        np.testing.assert_array_equal(model.predict_proba(self.X), self.expected)
        return True


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[Damaged]:
    file = Damaged(*small(), tmp_path / "model")
    yield file
    os.close(file.file)


def flip(file: Damaged, places: range, patterns: list[int], mapped: bool) -> list[int]:
    """Change every byte by every pattern; give the places where that did no harm."""
    kept = []
    for place in places:
        before = file.data[place]
        for pattern in patterns:
            file.put(place, bytes([before ^ pattern]))
            if file.harmless(mapped):
                kept.append(place)
        file.put(place, bytes([before]))
    return kept


@pytest.mark.parametrize("mapped", [False, True])
def test_every_byte_changed(damaged: Damaged, mapped: bool) -> None:
    """What may change without harm is dates, versions and modes that zip tools look at, and nothing else."""
    places = range(len(damaged.data))
    kept = flip(damaged, places, [0x11] if mapped else [0xFF, 0x01], mapped)
    assert len(kept) < 0.06 * (1 if mapped else 2) * len(places)


@pytest.mark.slow
@pytest.mark.parametrize("mapped", [False, True])
def test_every_bit_changed(damaged: Damaged, mapped: bool) -> None:
    flip(damaged, range(len(damaged.data)), [1 << bit for bit in range(8)] + [0xFF, 0x0F, 0x55], mapped)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_byte_of_the_files_in_the_suite_changed(number: int, tmp_path: Path) -> None:
    data = (DATA / f"format_{number}.gputree").read_bytes()
    path, refused = tmp_path / "model", 0
    path.write_bytes(data)
    file = os.open(path, os.O_RDWR)
    rng = np.random.default_rng(number)
    for place in range(0, len(data), 3):
        os.pwrite(file, bytes([data[place] ^ int(rng.integers(1, 256))]), place)
        try:
            model = load(path, mmap=bool(place % 2))
        except ValueError as error:
            assert not RAW.search(str(error)), str(error)  # noqa: PT017
            refused += 1
        else:
            np.testing.assert_array_equal(model.forest_.value, load(DATA / f"format_{number}.gputree").forest_.value)
        os.pwrite(file, data[place : place + 1], place)
    os.close(file)
    assert refused > 0.9 * len(range(0, len(data), 3))
    np.testing.assert_array_equal(predictions(load(path)), expected(number))


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_runs_of_bytes_overwritten_moved_or_left_out(tmp_path: Path, draw: st.DataObject) -> None:
    data = (DATA / "format_2.gputree").read_bytes()
    start, other = (draw.draw(st.integers(0, len(data))) for _ in "ab")
    stop = draw.draw(st.integers(start, min(start + 500, len(data))))
    new = draw.draw(st.one_of(st.binary(max_size=40), st.just(data[other : other + stop - start])))
    (tmp_path / "model").write_bytes(data[:start] + new + data[stop:])
    try:
        found = load(tmp_path / "model", mmap=True).fingerprint()
    except ValueError as error:
        assert not RAW.search(str(error)), str(error)  # noqa: PT017
    else:
        assert found == RIGHT[0]["fingerprint"]


SLOW = pytest.mark.slow


# The header, in any order of damage, behind checksums that fit.


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths(item, (*path, key))


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The JSON value with another one at the end of this way."""
    if not path:
        return new
    changed = copy.copy(value)
    changed[path[0]] = put(value[path[0]], path[1:], new)
    return changed


OTHERS = [
    *(None, True, 0, -1, 1, 2**31, 2**63, 10**300, 0.5, -0.0, 1e308, "", "x", "forest/low.npy", "\ud800", [], {}),
    *([[]], ["x"], {"x": 1}, {"float": "nan"}, {"float": 1}, {"array": [1], "dtype": "<i8"}, {"tuple": []}, [[[[]]]]),
    *({"dict": []}, {"scalar": 1, "dtype": "<i8"}, {"scalar": {}, "dtype": "|b1"}, [1, 2, 3], [1.0]),
]


def survives(path: Path, X: Any) -> None:
    """Refused in a sentence, or a model that does everything without a surprise."""
    try:
        model = load(path)
    except ValueError as error:
        assert not RAW.search(str(error)), str(error)  # noqa: PT017
        return
    tree = model.estimators_[-1] if hasattr(model, "estimators_") else model
    with np.errstate(over="ignore", invalid="ignore"):  # a unit of weight may be huge
        gputree.export_text(tree)
    assert np.isfinite(model.feature_importances_).all()
    assert tree.tree_.node_count == tree.forest_.n_nodes
    assert repr(model)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            model.predict(X)
    except (ValueError, TypeError) as error:  # X has other columns or categories than this model, or there is no device
        assert re.search("column|feature names|device=", str(error))  # noqa: PT017


@pytest.mark.parametrize(
    "name", ["small", "forest of means", *(pytest.param(name, marks=SLOW) for name in ("declared means", "outputs"))]
)
def test_a_value_of_another_kind_in_every_place_of_the_header(name: str, tmp_path: Path) -> None:
    model, X = small() if name == "small" else made(name)
    save(model, tmp_path / "model", compact=False)
    header, arrays = parts(tmp_path / "model")
    members = {member: npy(array) for member, array in arrays.items()}
    for path in paths(header):
        for new in OTHERS:
            rewrite(tmp_path / "wrong", put(header, path, new), members)
            survives(tmp_path / "wrong", X)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["<i8", "counts", "float"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=5) | st.sampled_from(["dict", "tuple", "array", "scalar", "dtype", "float"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_random_changes_of_the_header(tmp_path: Path, draw: st.DataObject) -> None:
    header, arrays = RIGHT
    for _ in range(draw.draw(st.integers(1, 3))):
        path = draw.draw(st.sampled_from(list(paths(header))))
        kind = draw.draw(st.sampled_from(["put", "drop", "move", "swap"]))
        if kind == "drop" and path:
            above = copy.copy(at(header, path[:-1]))
            del above[path[-1]]
            header = put(header, path[:-1], above)
        elif kind == "swap":
            other = draw.draw(st.sampled_from(list(paths(header))))
            header = put(header, path, at(header, other)) if other[: len(path)] != path else header
        else:
            header = put(header, path, draw.draw(JSON))
        if not isinstance(header, dict):
            break
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(tmp_path / "wrong", header, arrays, repair=False)
        survives(tmp_path / "wrong", penguins()[0])


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


# The arrays, behind checksums and a fingerprint that fit.


EDGES = [0, 1, 2, 3, 127, 255, 256, 65534, 65535, 2**31 - 1, -1, -2, -(2**31), 2**62, -(2**63), 2**63 - 1]
FLOATS = [0.0, -0.0, 0.5, 1.0, -1.0, 2.0, 1e308, -1e308, 5e-324, np.inf, -np.inf, np.nan]


@pytest.fixture
def any_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if whoever edits a compact file knew how to compute its fingerprint."""

    def accept(header: dict[str, Any], _: str) -> None:
        del header["fingerprint"]

    monkeypatch.setattr("gputree.io.check_fingerprint", accept)


@pytest.mark.usefixtures("any_fingerprint")
@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize(
    "name",
    ["small", "declared means", "clipped", "missing alone", "forest of categories", "forest of means", "extra forest"],
)
def test_cells_of_arrays_changed(name: str, compact: bool, tmp_path: Path) -> None:
    """Every array, some cells, every edge value; what loads has the predictions that its own arrays say."""
    model, X = small() if name == "small" else made(name)
    save(model, tmp_path / "model", compact=compact)
    header, arrays = parts(tmp_path / "model")
    rng = np.random.default_rng(3)
    for member, array in arrays.items():
        for new in FLOATS if array.dtype.kind == "f" else EDGES:
            place = int(rng.integers(max(1, array.size)))
            if array.dtype.kind != "f" and not np.iinfo(array.dtype).min <= new <= np.iinfo(array.dtype).max:
                continue
            changed = array.copy()
            with np.errstate(over="ignore"):  # to infinity, in a short type
                changed.reshape(-1)[place : place + 1] = new
            write(tmp_path / "wrong", header, arrays | {member: changed})
            survives(tmp_path / "wrong", X)


COMPACT = parts(DATA / "format_3.gputree")


@pytest.mark.usefixtures("any_fingerprint")
@pytest.mark.parametrize("right", [RIGHT, COMPACT], ids=["whole", "compact"])
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draw=st.data())
def test_random_bytes_as_arrays(right: Parts, tmp_path: Path, draw: st.DataObject) -> None:
    """Arrays of random sizes, types and bytes."""
    header, arrays = right
    for member in draw.draw(st.lists(st.sampled_from(list(arrays)), min_size=1, max_size=3, unique=True)):
        dtype = draw.draw(
            st.sampled_from([arrays[member].dtype.str, "<i8", "|u1", "<f8", "|b1", "<U3", "<M8[s]", "|S2"])
        )
        count = draw.draw(st.sampled_from([0, 1, arrays[member].size, arrays[member].size + 1]))
        raw = draw.draw(st.binary(min_size=8, max_size=64))
        size = count * np.dtype(dtype).itemsize
        array = np.frombuffer((raw * (size // len(raw) + 1))[:size], dtype).copy()
        fits = arrays[member].size == count
        arrays = arrays | {member: array.reshape(arrays[member].shape) if fits else array}
    write(tmp_path / "wrong", header, arrays)
    survives(tmp_path / "wrong", penguins()[0])


@pytest.mark.usefixtures("any_fingerprint")
@pytest.mark.parametrize("name", ["declared means", "forest of categories", "forest of means"])
def test_arrays_left_out_put_in_or_cut(name: str, tmp_path: Path) -> None:
    """Every array of a compact file absent, shorter, longer, folded; and those put in that it may or may not hold."""
    model, X = made(name)
    save(model, tmp_path / "model")
    header, arrays = parts(tmp_path / "model")
    n = model.forest_.n_nodes
    sizes = (1, n, n + 1, int((model.forest_.kind > 0).sum()), int((model.forest_.kind == 0).sum()))
    others = {f"packed/{rule}.npy": np.zeros(size, np.uint8) for rule in RULES for size in sizes}
    for member, array in arrays.items():
        versions = [array[:-1], np.concatenate([array, array[:1]]), array.reshape(-1, 1), array[:0], array[None]]
        for changed in versions:
            write(tmp_path / "wrong", header, arrays | {member: np.ascontiguousarray(changed)})
            survives(tmp_path / "wrong", X)
        write(tmp_path / "wrong", header, {key: value for key, value in arrays.items() if key != member})
        survives(tmp_path / "wrong", X)
    for member, array in others.items():
        write(tmp_path / "wrong", header, arrays | {member: array})
        survives(tmp_path / "wrong", X)
    for nodes in (0, -1, n - 1, n + 1, 10**30, True, None, 2.0):
        write(tmp_path / "wrong", {**header, "nodes": nodes}, arrays)
        survives(tmp_path / "wrong", X)


def test_a_compact_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    """Checksums of the archive that fit do not help: the fingerprint is that of the whole forest."""
    model, _ = made("forest of categories")
    save(model, tmp_path / "model")
    header, arrays = parts(tmp_path / "model")
    place = int(np.flatnonzero(arrays["packed/low.npy"] > 1)[0])
    changed = arrays["packed/low.npy"].copy()
    changed[place] = np.nextafter(changed[place], np.float64(0)) if changed.dtype == "f8" else changed[place] / 2
    write(tmp_path / "wrong", header, arrays | {"packed/low.npy": changed}, repair=False)
    with pytest.raises(ValueError, match="its fingerprint is not that of its arrays"):
        load(tmp_path / "wrong")


@pytest.mark.slow
def test_random_cells_of_many_arrays(tmp_path: Path) -> None:
    model, X = small()
    save(model, tmp_path / "model", compact=False)
    header, arrays = parts(tmp_path / "model")
    rng = np.random.default_rng(11)
    names = list(arrays)
    for _ in range(20_000):
        changed = dict(arrays)
        for _ in range(int(rng.integers(1, 4))):
            name = names[int(rng.integers(len(names)))]
            array = changed[name].copy()
            flat = array.reshape(-1)
            if flat.size:
                other = flat[int(rng.integers(flat.size))]  # a value that is at home in this array
                flat[int(rng.integers(flat.size))] = other
            changed[name] = array
        write(tmp_path / "wrong", header, changed)
        survives(tmp_path / "wrong", X)
