"""The model file: what comes back, and what is refused."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

import gputree
from gputree.core.forest import Forest
from gputree.datasets import load_penguins
from gputree.inspect.check import FOREST_TYPES
from gputree.io import load, save


def penguins() -> tuple[pd.DataFrame, NDArray[Any]]:
    table = load_penguins()
    return table.to_frame("pandas").drop(columns="species"), table.column("species")


def numbers(n: int = 120) -> NDArray[np.float64]:
    X = np.random.default_rng(3).normal(size=(n, 4))
    X[::7, 1] = np.nan
    return X


def labels(values: Any, n: int = 120) -> NDArray[Any]:
    return np.asarray(values)[np.random.default_rng(5).integers(0, len(values), n)]


def classifier(y: NDArray[Any] | None = None, **parameters: Any) -> Any:
    return gputree.DecisionTreeClassifier(**parameters).fit(numbers(), labels([0, 1, 2]) if y is None else y)


def mixed() -> Any:
    return gputree.DecisionTreeClassifier(max_depth=4).fit(*penguins())


def declared() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "grade": pd.Categorical([3, 1, 2] * 40, categories=[3, 2, 1, 0], ordered=True),
            "yes": [True, False] * 60,
            "size": np.arange(120, dtype=np.float32),
        }
    )


MODELS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "numbers": lambda: (classifier(), numbers()),
    "extra": lambda: (gputree.ExtraTreeClassifier(random_state=4).fit(numbers(), labels(["a", "b"])), numbers()),
    "regressor": lambda: (gputree.DecisionTreeRegressor(max_depth=5).fit(numbers(), numbers()[:, 0]), numbers()),
    "poisson": lambda: (
        gputree.ExtraTreeRegressor(criterion="poisson").fit(numbers(), labels([0.0, 1.5, 2.0])),
        numbers(),
    ),
    "outputs": lambda: (gputree.DecisionTreeRegressor().fit(numbers(), numbers()[:, [0, 2, 3]]), numbers()),
    "class outputs": lambda: (
        classifier(np.stack([labels(["a", "b", "c"]), labels(["x", "y"])], axis=1)),
        numbers(),
    ),
    "frame": lambda: (mixed(), penguins()[0]),
    "categories": lambda: (gputree.DecisionTreeClassifier().fit(declared(), labels([0, 1])), declared()),
    "weights": lambda: (
        gputree.DecisionTreeClassifier(class_weight={0: 0.3, 1: 2, 2: 1}).fit(
            numbers(), labels([0, 1, 2]), np.linspace(0.1, 3, 120)
        ),
        numbers(),
    ),
    "root alone": lambda: (gputree.DecisionTreeRegressor().fit(numbers(), np.ones(120)), numbers()),
    "one class": lambda: (classifier(np.array(["only"] * 120)), numbers()),
}


def same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
        assert [type(v) for v in a.tolist()] == [type(v) for v in b.tolist()]
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        assert a == b


def same_model(a: Any, b: Any, X: Any) -> None:
    assert type(a) is type(b)
    assert a.fingerprint() == b.fingerprint()
    assert set(vars(a)) - {"_n_columns"} == set(vars(b)) - {"_n_columns"}
    for name in set(vars(b)) - {"forest_", "_n_columns"}:
        same(getattr(a, name), getattr(b, name))
    for f in fields(Forest):
        same(getattr(a.forest_, f.name), getattr(b.forest_, f.name))
    same(a.predict(X), b.predict(X))
    same(a.feature_importances_, b.feature_importances_)
    if hasattr(a, "predict_proba"):
        same(a.predict_proba(X), b.predict_proba(X))


@pytest.mark.parametrize("name", MODELS)
def test_what_is_saved_comes_back(name: str, tmp_path: Path) -> None:
    model, X = MODELS[name]()
    save(model, tmp_path / "model")
    same_model(model, load(tmp_path / "model"), X)


@pytest.mark.parametrize("name", MODELS)
def test_pickle_and_joblib(name: str, tmp_path: Path) -> None:
    model, X = MODELS[name]()
    same_model(model, pickle.loads(pickle.dumps(model)), X)
    joblib.dump(model, tmp_path / "model")
    same_model(model, joblib.load(tmp_path / "model"), X)


@pytest.mark.parametrize(
    "values",
    [
        ["a", "longer", "ümlaut \U0001f427"],
        np.array(["a", "b\0", ""], object),
        np.array([1, 2], np.uint8),
        np.array([1, 2], ">i2"),
        [-1.0, 2.0],
        np.array([1.0, 2.0], np.float32),
        [True, False],
        [-(2**62), 2**62],
    ],
    ids=str,
)
def test_labels_of_any_type(values: Any, tmp_path: Path) -> None:
    model = classifier(labels(values))
    save(model, tmp_path / "model")
    same_model(model, load(tmp_path / "model"), numbers())


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_features": 0.5, "min_samples_leaf": 0.01, "random_state": 12},
        {"max_features": 1.0, "min_samples_leaf": 1},
        {"max_features": 1, "class_weight": "balanced", "max_bins": 16},
        {"class_weight": {0: 1, 1: 2.5, 2: np.float64(3)}},
        {"max_depth": np.int64(4), "ccp_alpha": np.float32(0.001), "max_leaf_nodes": 9},
    ],
    ids=str,
)
def test_parameters_keep_their_types(parameters: dict[str, Any], tmp_path: Path) -> None:
    model = classifier(**parameters)
    save(model, tmp_path / "model")
    for name, value in load(tmp_path / "model").get_params().items():
        same(getattr(model, name), value)


@pytest.mark.parametrize("signs", [[1, 0, -1, 0], (1, 0, -1, 0), np.array([1, 0, -1, 0], np.int8)])
def test_monotonic_signs(signs: Any, tmp_path: Path) -> None:
    model = classifier(labels([0, 1]), monotonic_cst=signs)
    save(model, tmp_path / "model")
    same(signs, load(tmp_path / "model").monotonic_cst)


def test_keys_of_class_weights_keep_their_types(tmp_path: Path) -> None:
    weights = {np.str_("a"): 1.0, "b": 2}
    model = classifier(labels(["a", "b"]), class_weight=weights)
    save(model, tmp_path / "model")
    keys = load(tmp_path / "model").class_weight
    assert [type(k) for k in keys] == [np.str_, str]
    assert keys == weights


def test_a_loaded_model_can_be_fitted_and_saved_again(tmp_path: Path) -> None:
    model = mixed()
    save(model, tmp_path / "a")
    again = load(tmp_path / "a")
    save(again, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert again.fit(*penguins()).fingerprint() == model.fingerprint()


def test_nothing_is_compressed_and_nothing_is_pickled(tmp_path: Path) -> None:
    save(mixed(), tmp_path / "model")
    with zipfile.ZipFile(tmp_path / "model") as archive:
        for info in archive.infolist():
            assert info.compress_type == zipfile.ZIP_STORED
            if info.filename.endswith(".npy"):
                np.load(io.BytesIO(archive.read(info)), allow_pickle=False)


def test_every_array_of_a_forest_has_its_type_here() -> None:
    assert list(FOREST_TYPES) == [f.name for f in fields(Forest)]


def test_a_file_is_replaced_at_once_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model"
    save(classifier(), path)
    before = path.read_bytes()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gputree.io.write_array", full)
    with pytest.raises(OSError, match="No space left"):
        save(mixed(), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    class Mine(gputree.DecisionTreeClassifier):
        pass

    with pytest.raises(TypeError, match="a Mine cannot be saved; models are DecisionTreeClassifier, "):
        save(Mine().fit(numbers(), labels([0, 1])), tmp_path / "model")
    with pytest.raises(NotFittedError):
        save(gputree.DecisionTreeClassifier(), tmp_path / "model")
    with pytest.raises(
        TypeError, match="random_state is of type RandomState, which a model file cannot hold; give an int"
    ):
        save(classifier(random_state=np.random.RandomState(1)), tmp_path / "model")
    with pytest.raises(FileNotFoundError, match="there is no folder") as caught:
        save(classifier(), tmp_path / "no folder" / "model")
    assert caught.value.filename == str(tmp_path / "no folder" / "model")
    with pytest.raises(IsADirectoryError, match="this is a folder; name a file in it"):
        save(classifier(), tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_file_takes_the_place_of_what_it_replaces(tmp_path: Path) -> None:
    """Long names fit, links stay links, modes stay, and a pipe is written to."""
    longest, real, link = tmp_path / ("n" * 250), tmp_path / "real", tmp_path / "link"
    save(classifier(), longest)
    real.write_bytes(b"old")
    real.chmod(0o600)
    link.symlink_to(real)
    save(classifier(), link)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert load(real).fingerprint() == load(longest).fingerprint()
    save(classifier(), "/dev/null")
    assert not Path("/dev/null").is_file()
    assert sorted(os.listdir(tmp_path)) == ["link", "n" * 250, "real"]


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "model")


# Files that are wrong in one place: the archive is written anew, so that only the checks of the content can see it.


Parts = tuple[dict[str, Any], dict[str, NDArray[Any]]]


def parts(path: Path) -> Parts:
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
        return header, {name: np.load(io.BytesIO(archive.read(name))) for name in header["members"]}


def write(path: Path, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array)
            archive.writestr(name, buffer.getvalue())


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("io") / "model"
    save(mixed(), path)
    return path


def set_header(*keys: Any, to: Any) -> Callable[[Parts], None]:
    def change(found: Parts) -> None:
        place: Any = found[0]
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to

    return change


def set_cell(name: str, place: Any, to: Any) -> Callable[[Parts], None]:
    def change(found: Parts) -> None:
        found[1][f"forest/{name}.npy"][place] = to

    return change


def set_array(name: str, make: Callable[[NDArray[Any]], NDArray[Any]]) -> Callable[[Parts], None]:
    def change(found: Parts) -> None:
        array = make(found[1][f"forest/{name}.npy"])
        found[1][f"forest/{name}.npy"] = array
        found[0]["members"][f"forest/{name}.npy"] = {"dtype": array.dtype.str, "shape": list(array.shape)}

    return change


# Node 0 of the penguin tree tests a number, node 2 the island, and the last node is a leaf.
WRONG: list[tuple[Callable[[Parts], None], str]] = [
    (set_header("format", to=2), "it has format 2, written by gputree 0.1.0; update gputree"),
    (set_header("format", to=0), "its format 0 is unknown"),
    (set_header("format", to="1"), "its header names no format"),
    (set_header("estimator", to="Popen"), "its estimator 'Popen' is unknown"),
    (set_header("estimator", to="DecisionTreeRegressor"), "parameters are not those of the estimator"),
    (set_header("parameters", "max_depth", to="deep"), "The 'max_depth' parameter of DecisionTreeClassifier must be"),
    (set_header("parameters", "max_depth", to={"call": "x"}), "{'call': 'x'} is no value of this format"),
    (set_header("parameters", "depth", to=3), "parameters are not those of the estimator"),
    (set_header("features", 0, "kind", to="text"), "KeyError: 'TEXT'"),
    (set_header("features", 0, "kind", to="numeric"), "a test does not fit the kind of its column"),
    (set_header("features", 0, "name", to=3), "'3' stands where a value of type str belongs"),
    (set_header("features", 0, "categories", to=["a", "b"]), "a code that is no category"),
    (set_header("features", 0, "categories", to=["a", "a", "b"]), "categories of column 'island' are not distinct"),
    (set_header("features", to=[]), "it has no feature"),
    (set_header("layout", "kind", to="raw sums"), "its layout has classes and sums"),
    (set_header("layout", "sizes", to=[2]), "its classes do not fit its layout"),
    (set_header("layout", "sizes", to=[3.0]), "'3.0' stands where a value of type int belongs"),
    (set_header("layout", "scale", to=[0.0]), "the scale of its layout is not positive"),
    (set_header("layout", "rows", to=1), "its layout has rows in channel 1"),
    (set_header("weight_unit", to=-1.0), "its weight_unit is not positive"),
    (set_header("fit_info", to={}), "its fit_info has other fields"),
    (set_header("classes", to=[["a", "b"]]), "its classes do not fit its layout"),
    (set_header("members", "forest/low.npy", "shape", to=[3]), "forest/low.npy is not as the header says"),
    (set_header("members", "forest/low.npy", "dtype", to="<i8"), "forest/low.npy is not as the header says"),
    (set_header("members", "forest/low.npy", "dtype", to="|O"), "array type '|O' is not allowed here"),
    (lambda found: found[0].pop("layout"), "KeyError: 'layout'"),
    (lambda found: found[1].pop("forest/low.npy"), "its members are not those that the header lists"),
    (lambda found: found[1].update(more=np.zeros(1)), "its members are not those that the header lists"),
    (set_array("low", lambda a: a[:-1]), "low has shape"),
    (set_array("feature", lambda a: a.astype(np.int64)), "feature has type int64, not int32"),
    (set_array("value", lambda a: a[:, :2]), "value has shape"),
    (set_array("roots", lambda a: np.array([0, 1], np.int32)), "roots has shape (2,), not (1,)"),
    (set_cell("roots", 0, 1), "the root is node 1, not 0"),
    (set_cell("kind", 0, 2), "a node has an unknown kind"),
    (set_cell("kind", 0, 0), "a leaf has feature other than -1"),
    (set_cell("kind", -1, 1), "a test has no children"),
    (set_cell("n_children", 0, 3), "a threshold has other than two children"),
    (set_cell("first_child", 0, 0), "children are not in breadth-first order"),
    (set_cell("first_child", 0, 1000), "children are not in breadth-first order"),
    (set_cell("parent", 1, 1), "parents differ from children"),
    (set_cell("depth", 1, 2), "a depth is not its parent's plus 1"),
    (set_cell("feature", 0, 7), "a test is of none of 7 features"),
    (set_cell("feature", 0, 0), "a test does not fit the kind of its column"),
    (set_cell("low", 0, np.nan), "a threshold is NaN"),
    (set_cell("missing", 0, 2), "missing names a branch that is not there"),
    (set_cell("unseen", 0, 65535), "unseen names a branch that is not there"),
    (set_cell("lookup_ptr", 1, 1), "lookup_ptr does not rise from 0"),
    (set_cell("lookup_ptr", -1, 2**40), "lookup_ptr does not end at the number of cells"),
    (set_cell("lookup_ptr", slice(1, 3), 3), "a lookup has no cells, or another node has some"),
    (set_cell("lookup_code", 0, 0), "a code that is no category"),
    (set_cell("lookup_code", 1, 1), "the codes of a lookup do not ascend"),
    (set_cell("lookup_branch", 0, 9), "a lookup names a branch that is not there"),
    (set_cell("stats", (0, 0), -1), "a count is negative"),
    (set_cell("value", (0, 0), np.inf), "value is not finite"),
    (set_cell("value", (0, 0), 1.5), "a share of a class is not in 0 to 1"),
    (set_cell("score", 0, np.nan), "score is not finite"),
    (set_cell("impurity", 0, -1.0), "an impurity is negative"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_file_is_refused(change: Callable[[Parts], None], message: str, saved: Path, tmp_path: Path) -> None:
    found = parts(saved)
    change(found)
    write(tmp_path / "wrong", *found)
    with pytest.raises(ValueError, match="wrong is no model file that this version reads: ") as caught:
        load(tmp_path / "wrong")
    assert message in str(caught.value)


def test_the_wrong_files_are_wrong_in_one_place_only(saved: Path, tmp_path: Path) -> None:
    write(tmp_path / "right", *parts(saved))
    same_model(load(saved), load(tmp_path / "right"), penguins()[0])


@pytest.mark.parametrize("data", [b"", b"PK", b"not a model", b"\x00" * 5000])
def test_what_is_no_archive_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(ValueError, match="is no model file"):
        load(tmp_path / "x")


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"format": 1}', '{"format": NaN}', "1" * 5000])
def test_a_header_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        archive.writestr("header.json", text)
    with pytest.raises(ValueError, match="is no model file"):
        load(tmp_path / "x")


def test_a_compressed_archive_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", b" " * 10**8)
    with pytest.raises(ValueError, match="its members must be stored uncompressed"):
        load(tmp_path / "bomb")


def test_an_array_larger_than_the_file_is_refused(saved: Path, tmp_path: Path) -> None:
    header, arrays = parts(saved)
    shape = {"dtype": "<f8", "shape": [2**38]}
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**38},), }}\n"
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        header["members"]["forest/low.npy"] = shape
        archive.writestr("header.json", json.dumps(header))
        for name in arrays:
            archive.writestr(name, b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode())
        with pytest.raises(UserWarning, match="Duplicate"):
            archive.writestr("header.json", b"")
    with pytest.raises(ValueError, match="is no model file"):
        load(tmp_path / "x")


def test_a_changed_byte_is_refused_or_harmless(tmp_path: Path) -> None:
    X = pd.DataFrame({"a": ["x", "y", "z", None] * 3, "b": np.arange(12.0)})
    model = gputree.DecisionTreeClassifier(max_depth=2).fit(X, [0, 1, 1, 2] * 3)
    save(model, tmp_path / "model")
    data, expected = bytearray((tmp_path / "model").read_bytes()), model.predict_proba(X)
    path = tmp_path / "changed"
    rng = np.random.default_rng(0)
    refused = 0
    for place in range(0, len(data), 3):
        changed = bytearray(data)
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        try:
            np.testing.assert_array_equal(load(path).predict_proba(X), expected)
        except ValueError:
            refused += 1
    assert refused > len(data) / 3 * 0.7


def test_a_shortened_file_is_refused(tmp_path: Path) -> None:
    save(classifier(), tmp_path / "model")
    data = (tmp_path / "model").read_bytes()
    for size in range(0, len(data), 97):
        (tmp_path / "short").write_bytes(data[:size])
        with pytest.raises(ValueError, match="is no model file"):
            load(tmp_path / "short")
