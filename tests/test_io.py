"""The model file: what comes back, what cannot be saved, and where it lies."""

from __future__ import annotations

import copy
import errno
import mmap
import os
import pickle
import subprocess
import sys
import threading
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import gputree
from gputree.core.forest import Forest
from gputree.inspect.check import FOREST_TYPES
from gputree.io import load, save
from tests.model_files import (
    MODELS,
    classifier,
    labels,
    made,
    mixed,
    numbers,
    odd_penguins,
    penguins,
    same,
    same_model,
    some_weights,
)

SHORT = ["frame", "subsets", "declared means", "class outputs", "clipped"]


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_what_is_saved_comes_back(name: str, mapped: bool, tmp_path: Path) -> None:
    model, X = made(name)
    save(model, tmp_path / "model")
    same_model(model, load(tmp_path / "model", mmap=mapped), X)


@pytest.mark.parametrize("name", MODELS)
def test_pickle_and_joblib(name: str, tmp_path: Path) -> None:
    model, X = made(name)
    same_model(model, pickle.loads(pickle.dumps(model)), X)
    joblib.dump(model, tmp_path / "model")
    same_model(model, joblib.load(tmp_path / "model"), X)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", SHORT)
def test_every_protocol_of_pickle(name: str, protocol: int) -> None:
    model, X = made(name)
    assert model.tree_.node_count == model.forest_.n_nodes
    again = pickle.loads(pickle.dumps(model, protocol))
    del model._view  # which is no part of the state
    same_model(model, again, X)


@pytest.mark.parametrize("name", SHORT)
def test_copies_of_loaded_and_mapped_models(name: str, tmp_path: Path) -> None:
    model, X = made(name)
    save(model, tmp_path / "model")
    mapped = load(tmp_path / "model", mmap=True)
    for again in (copy.deepcopy(model), copy.deepcopy(mapped), pickle.loads(pickle.dumps(mapped))):
        same_model(model, again, X)
    os.remove(tmp_path / "model")
    same_model(model, mapped, X)


@pytest.mark.parametrize("name", SHORT)
def test_a_copy_can_be_fitted_again(name: str, tmp_path: Path) -> None:
    model, X = made(name)
    y = model.predict(X)
    save(model, tmp_path / "model")
    copies = [load(tmp_path / "model", mmap=True), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    expected = clone(model).fit(X, y)
    for again in copies:
        assert again.fit(X, y).fingerprint() == expected.fingerprint()


def test_the_state_is_arrays_and_plain_values() -> None:
    """No backend, no handle of a device: the device is a parameter, and what fit_info_ tells."""
    plain = {"builtins", "numpy", "gputree.core.schema", "gputree.core.target", "gputree.learners.bagging"}
    plain |= {"gputree.learners.stopped", "gputree.stopping.evidence", "gputree.engine.pruning.rules"}
    for name in MODELS:
        model = made(name)[0]
        state = model.__getstate__()
        fitted = {key: value for key, value in state.items() if key != "estimator"}  # a parameter, not fitted
        assert {type(value).__module__ for value in fitted.values()} <= plain | {"gputree.learners.progress"}
        assert {type(array) for array in state["forest_"].values()} == {np.ndarray}
        assert {type(value) for value in vars_of(state["fit_info_"])} <= {str, int, float}


def vars_of(record: Any) -> list[Any]:
    return [getattr(record, f.name) for f in fields(record)]


def test_a_model_of_another_device_predicts_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUTREE_DEVICE", raising=False)
    model = mixed()
    expected = model.predict_proba(penguins()[0])
    model.set_params(device="cuda:7")
    save(model, tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert again.device == "cuda:7"
        np.testing.assert_array_equal(again.predict_proba(penguins()[0]), expected)


@pytest.mark.parametrize("name", ["forest", "forest of categories", "forest of means", "extra forest of means"])
def test_a_loaded_forest_goes_on_where_the_saved_one_stopped(name: str, tmp_path: Path) -> None:
    """A warm start of a model from a file, or a pickle, gives the trees that one fit of all would have given."""
    model, X = made(name)
    y = {"forest": labels([0, 1, 2]), "forest of categories": penguins()[1]}.get(name, numbers()[:, 0] ** 2)
    weight = some_weights(len(y)) if model.bagging_ is not None and model.bagging_.weight is not None else None
    model.set_params(n_estimators=24, oob_score=False, warm_start=True)
    at_once = clone(model).fit(X, y, weight).fingerprint()
    model.set_params(n_estimators=20, warm_start=False).fit(X, y, weight)
    save(model, tmp_path / "model")
    earlier = copy.copy(model)
    earlier._grown_by = "one text in files of earlier versions"
    save(earlier, tmp_path / "earlier")
    for again in (load(tmp_path / "model"), load(tmp_path / "earlier"), pickle.loads(pickle.dumps(model))):
        again.set_params(n_estimators=24, warm_start=True)
        assert again.fit(X, y, weight).fingerprint() == at_once


def test_a_score_that_is_a_function_cannot_be_saved(tmp_path: Path) -> None:
    model = made("forest")[0].set_params(oob_score=np.mean)
    with pytest.raises(TypeError, match=r"parameter oob_score is .*, which a model file cannot hold"):
        save(model, tmp_path / "model")


@pytest.mark.parametrize(("kind", "share"), [("RandomForestClassifier", 0.15), ("ExtraTreesRegressor", 0.5)])
def test_a_forest_takes_a_part_of_the_bytes_of_scikit_learns(kind: str, share: float, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(3000, 8)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(float) + (X[:, 3] if kind.endswith("Regressor") else 0)
    parameters = {"n_estimators": 10, "max_depth": 16, "max_features": "sqrt", "random_state": 0}
    save(getattr(gputree, kind)(**parameters).fit(X, y), tmp_path / "ours")
    joblib.dump(getattr(sklearn.ensemble, kind)(**parameters).fit(X, y), tmp_path / "theirs")
    assert os.path.getsize(tmp_path / "ours") < share * os.path.getsize(tmp_path / "theirs")
    pickled = len(pickle.dumps(load(tmp_path / "ours")))
    assert pickled < share * os.path.getsize(tmp_path / "theirs")


# Types that come back.


@pytest.mark.parametrize(
    "values",
    [
        ["a", "longer", "ümlaut \U0001f427", "\ud800"],
        np.array(["a", "b\0", ""], object),
        np.array(["a", np.str_("b"), ""], object),
        np.array([1, 2], np.uint8),
        np.array([1, 2], ">i2"),
        [-1.0, 2.0],
        np.array([1.0, 2.0], np.float32),
        np.array([1.0, 2.0], np.float16),
        [True, False],
        [-(2**62), 2**62],
        np.array(["2020-01-31", "1677-01-01", "2262-01-01"], "M8[D]"),
        np.array([5, -7], "m8[25s]"),
        pd.Categorical(["b", "a", "b"]),
        pd.Categorical([3, 1]),
        pd.Series([1, 2], dtype="Int64"),
        pd.Series(["x", "y"]),
        pd.Series([True, False], dtype="boolean"),
        pd.to_datetime(["2020-01-01", "2021-01-01"]),
    ],
    ids=lambda values: f"{getattr(values, 'dtype', 'list')} {list(values)[:2]}",
)
def test_labels_of_any_type(values: Any, tmp_path: Path) -> None:
    y = values[np.random.default_rng(5).integers(0, len(values), 120)] if hasattr(values, "dtype") else labels(values)
    model = classifier(y)
    save(model, tmp_path / "model")
    same_model(model, load(tmp_path / "model"), numbers())


def test_labels_of_a_type_that_not_every_machine_has(tmp_path: Path) -> None:
    with pytest.raises(
        TypeError, match=r"classes_ has type .*, which a model file cannot hold; fit with text, integers"
    ):
        save(classifier(labels(np.array([1, 2], np.longdouble))), tmp_path / "model")


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("max_features", 0.5),
        ("max_features", 1.0),
        ("max_features", 1),
        ("max_features", "sqrt"),
        ("random_state", 2**31 - 1),
        ("class_weight", "balanced"),
        ("class_weight", {0: 1, 1: 2.5, 2: np.float64(3)}),
        ("class_weight", {np.int64(0): 1, 1.0: 2, np.uint8(2): np.float32(3)}),
        ("max_depth", np.int64(4)),
        ("ccp_alpha", np.float32(0.001)),
        ("min_impurity_decrease", 0.1 + 0.2),
        ("monotonic_cst", [1, 0, -1, 0]),
        ("monotonic_cst", (1, 0, -1, 0)),
        ("monotonic_cst", np.array([1, 0, -1, 0], np.int8)),
        ("monotonic_cst", np.array([1, 0, -1, 0], ">i4")),
        ("categorical_features", ["a", 1]),
        ("categorical_features", np.array(["a", 1], object)),
        ("categorical_features", np.array([True, False])),
        ("categorical_features", [np.str_("a"), np.int32(1)]),
        ("categorical_features", np.zeros(0, int)),
        ("categories", {"a": ["x", "y"], 1: (2, 1.5), np.str_("b"): [np.int8(3), True]}),
        ("categories", {"a": np.array([3, 1, 2]), "b": np.array(["x", "y"]), "c": [float("inf"), -0.0]}),
        ("categories", {}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_parameters_keep_their_types(parameter: str, value: Any, tmp_path: Path) -> None:
    model = classifier(labels([0, 1])).set_params(**{parameter: value})
    if parameter == "class_weight":
        model = classifier(class_weight=value)
    save(model, tmp_path / "model")
    for name, given in load(tmp_path / "model").get_params().items():
        same(getattr(model, name), given)


def test_keys_of_class_weights_keep_their_types(tmp_path: Path) -> None:
    for keys in ([np.str_("a"), "b"], ["a", "b"], [True, False], [np.bool_(True), False], [1.0, np.float32(2)]):
        weights = {keys[0]: 1.0, keys[1]: 2}
        save(classifier(labels(keys), class_weight=weights), tmp_path / "model")
        same(load(tmp_path / "model").class_weight, weights)


def test_dates_as_keys_of_class_weights(tmp_path: Path) -> None:
    model = classifier(labels(["a", "b"]))
    dates = [np.datetime64("2020-01-31"), np.datetime64("2020-01-31T12:00:00.000000001"), np.timedelta64(5, "D")]
    model.class_weight = dict.fromkeys(dates, 1)
    save(model, tmp_path / "model")
    again = list(load(tmp_path / "model").class_weight)
    same(dates, again)
    assert [date.dtype for date in again] == [date.dtype for date in dates]


@pytest.mark.parametrize(
    "values",
    [
        ["x", "y", "z"],
        [1, 3, 2],
        [1.5, -0.0, float("inf"), float("-inf")],
        [True, False],
        [2**100, -(2**100)],
        [np.int64(3), np.int64(1)],
        [np.str_("x"), "y"],
        [np.float32(0.1), np.float64(0.1), np.uint8(7)],
        ["x", 1, 2.5],
    ],
    ids=str,
)
def test_categories_keep_their_types(values: list[Any], tmp_path: Path) -> None:
    column = np.array([values[i % len(values)] for i in range(60)], object)
    X = pd.DataFrame({"a": column})
    model = gputree.DecisionTreeClassifier(categories={"a": values}, categorical_split="multiway")
    model.fit(X, np.arange(60) % 2)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    same_model(model, again, X)
    same(list(again.schema_.features[0].categories), values)


def test_values_that_were_missing_or_unknown(tmp_path: Path) -> None:
    model = mixed(categorical_features=["island", "sex"])
    save(model, tmp_path / "model")
    same_model(model, load(tmp_path / "model"), odd_penguins())
    strict = gputree.DecisionTreeClassifier(categorical_split="multiway", unknown="error").fit(*penguins())
    save(strict, tmp_path / "model")
    with pytest.raises(ValueError, match="'Nowhere'"):
        load(tmp_path / "model").predict(odd_penguins())


# What a file is.


def test_a_loaded_model_can_be_fitted_and_saved_again(tmp_path: Path) -> None:
    model = mixed()
    save(model, tmp_path / "a")
    again = load(tmp_path / "a", mmap=True)
    save(again, tmp_path / "a")  # over the file that is mapped
    save(again, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert again.fit(*penguins()).fingerprint() == model.fingerprint()


@pytest.mark.parametrize("mapped", [False, True])
def test_arrays_of_a_loaded_forest_are_read_only(mapped: bool, tmp_path: Path) -> None:
    save(mixed(), tmp_path / "model", compact=False)
    forest = load(tmp_path / "model", mmap=mapped).forest_
    for f in fields(Forest):
        array = getattr(forest, f.name)
        assert not array.flags.writeable
        assert array.flags.aligned
        assert array.flags.c_contiguous
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    assert isinstance(memory(forest.stats), mmap.mmap) == mapped


def memory(array: Any) -> Any:
    """What the numbers of an array lie in."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def test_saving_does_not_lock_the_arrays_of_a_model(tmp_path: Path) -> None:
    model = mixed()
    own = {f.name: getattr(model.forest_, f.name).copy() for f in fields(Forest)}
    model.forest_ = Forest(**own)
    save(model, tmp_path / "model")
    assert all(array.flags.writeable for array in own.values())


def test_every_array_of_a_forest_has_its_type_here() -> None:
    assert list(FOREST_TYPES) == [f.name for f in fields(Forest)]


# What cannot be saved.


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    class Mine(gputree.DecisionTreeClassifier):
        pass

    with pytest.raises(TypeError, match="a Mine cannot be saved; models are DecisionTreeClassifier, "):
        save(Mine().fit(numbers(), labels([0, 1])), tmp_path / "model")
    with pytest.raises(NotFittedError):
        save(gputree.DecisionTreeClassifier(), tmp_path / "model")
    with pytest.raises(FileNotFoundError, match="there is no folder") as caught:
        save(classifier(), tmp_path / "no folder" / "model")
    assert caught.value.filename == str(tmp_path / "no folder" / "model")
    with pytest.raises(IsADirectoryError, match="this is a folder; name a file in it"):
        save(classifier(), tmp_path)
    assert os.listdir(tmp_path) == []


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("random_state", np.random.RandomState(1), "of type RandomState, which a model file cannot hold; give an int"),
        ("categories", {"a": [pd.Timestamp("2020")]}, "of type Timestamp, .*; it holds None, bool, int"),
        ("categories", {"a": [b"x"]}, "b'x' of type bytes"),
        ("categories", {"a": {1, 2}}, "of type set"),
        ("categories", {"a": [10**400]}, "of type int, .*; give a plain int of at most 1024 bits"),
        ("categories", {"a": [Text("x")]}, "of type Text, .*; give a plain str"),
        ("categories", {"a": np.array(["1"], np.dtypes.StringDType())}, "of type ndarray, .*; give a list"),
        ("monotonic_cst", pd.Series([1, 0, 0, 0]), r"of type Series, .*; give a list or a NumPy array: \.tolist\(\)"),
        ("monotonic_cst", np.zeros(4, np.longdouble), "of type ndarray, .*; give a list, or a plain array"),
        ("monotonic_cst", np.zeros((0, 2)), "of type ndarray"),
    ],
    ids=lambda value: str(value)[:30].strip(),
)
def test_a_parameter_that_cannot_be_held_is_named(parameter: str, value: Any, message: str, tmp_path: Path) -> None:
    model = classifier(labels([0, 1])).set_params(**{parameter: value})
    with pytest.raises(TypeError, match=f"parameter {parameter} is .*{message}"):
        save(model, tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_what_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot be saved, because it could not be loaded: .*'max_depth' parameter"):
        save(classifier().set_params(max_depth=-1), tmp_path / "model")
    model = classifier()
    feature = model.forest_.feature.copy()
    feature[0] = 99
    model.forest_ = replace(model.forest_, feature=feature)
    with pytest.raises(ValueError, match="could not be loaded: a test is of none of 4 features"):
        save(model, tmp_path / "model")
    assert os.listdir(tmp_path) == []


# Its place.


def test_a_file_is_replaced_at_once_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model"
    save(classifier(), path)
    before = path.read_bytes()

    def full(file: Any, _: Any) -> None:
        file.write(b"the beginning")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("gputree.io.write_archive", full)
    with pytest.raises(OSError, match="No space left") as caught:
        save(mixed(), path)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


def test_a_file_takes_the_place_of_what_it_replaces(tmp_path: Path) -> None:
    """Long names fit, links stay links, modes stay, and a device is written to."""
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


def test_through_a_pipe(tmp_path: Path) -> None:
    """What comes through a pipe is the same file; it cannot be mapped."""
    os.mkfifo(tmp_path / "pipe")
    save(mixed(), tmp_path / "model")
    data: list[bytes] = []
    reader = threading.Thread(target=lambda: data.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    save(load(tmp_path / "model"), tmp_path / "pipe")
    reader.join(10)
    assert data == [(tmp_path / "model").read_bytes()]
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(data[0]))
    writer.start()
    same_model(load(tmp_path / "model"), load(tmp_path / "pipe"), penguins()[0])
    writer.join(10)
    with pytest.raises(OSError, match=r"only a file can be mapped, no pipe or device; load it with mmap=False"):
        load(tmp_path / "pipe", mmap=True)


def test_where_nothing_can_be_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENODEV, "No such device")

    save(mixed(), tmp_path / "model")
    monkeypatch.setattr("gputree.storage.place.mmap.mmap", refuse)
    with pytest.raises(OSError, match=r"it cannot be mapped \(.*No such device\); load it with mmap=False") as caught:
        load(tmp_path / "model", mmap=True)
    assert caught.value.filename == str(tmp_path / "model")


@pytest.mark.parametrize("mapped", [False, True])
def test_no_file(mapped: bool, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "model", mmap=mapped)
    with pytest.raises(TypeError, match="not int"):
        load(5, mmap=mapped)
    with pytest.raises(IsADirectoryError):
        load(tmp_path, mmap=mapped)
    with pytest.raises(OSError, match="device"):
        load("/dev/zero", mmap=mapped)
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="empty is no model file"):
        load(tmp_path / "empty", mmap=mapped)


SAVE_OFTEN = """
import sys, gputree
model = gputree.load(sys.argv[1])
for _ in range(15):
    gputree.save(model, sys.argv[2])
"""


def test_two_writers_leave_a_whole_file(tmp_path: Path) -> None:
    path, known = tmp_path / "model", set()
    for name, model in (("a", classifier()), ("b", mixed())):
        save(model, tmp_path / name)
        known.add(model.fingerprint())
    save(classifier(), path)
    command = [sys.executable, "-c", SAVE_OFTEN]
    writers = [subprocess.Popen([*command, str(tmp_path / name), str(path)]) for name in "ab"]
    while any(writer.poll() is None for writer in writers):
        assert load(path, mmap=True).fingerprint() in known
        time.sleep(0.002)
    assert [writer.wait() for writer in writers] == [0, 0]
    assert load(path).fingerprint() in known
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "model"]


def test_labels_are_an_array_of_their_own(tmp_path: Path) -> None:
    save(classifier(), tmp_path / "model")
    classes: NDArray[Any] = load(tmp_path / "model", mmap=True).classes_
    assert classes.flags.writeable
    assert classes.base is None
