"""The model file: a fitted tree without pickle, checked before it is used. May import everything below.

Format 1. A zip archive whose members are stored, not compressed:

- ``header.json``, one object:

  - ``format``: 1. ``gputree``: version that wrote the file. ``estimator``: name of the class.
  - ``parameters``: name -> value. JSON's own types mean themselves (integers and floats are told apart by the point or
    exponent); every other value is an object of one key: ``{"float": "inf"}``, ``{"tuple": [...]}``,
    ``{"dict": [[key, value], ...]}``, ``{"scalar": value, "dtype": "<i8"}`` or ``{"array": [...], "dtype": "<i8"}``.
  - ``features``: list of ``{"name", "kind": "numeric"}`` or ``{"name", "kind": "categorical", "categories": [...]}``.
    ``named``: whether X had column names.
  - ``layout``: ``{"kind", "sizes", "scale", "rows"}`` of the channels. ``weight_unit``, ``max_features``: numbers.
  - ``classes``: a list with one entry an output: the name of a member, or the list of the labels of an object array.
    Absent for regression. ``list_of_classes``: whether ``classes_`` is a list.
  - ``fit_info``: what the fit did.
  - ``members``: member -> ``{"dtype", "shape"}`` of every other member.

- ``forest/<field>.npy`` for each array of `gputree.core.forest.Forest`, little-endian, and ``classes/<output>.npy`` for
  labels; NPY format 1.0 in C order, with the header that NumPy writes.

The same model gives the same bytes. A file is written beside its place and moved there when it is whole.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.lib.format import MAGIC_PREFIX, write_array
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import gputree
from gputree.core.criteria import TargetKind
from gputree.core.forest import Forest
from gputree.core.schema import Feature, Kind, Schema
from gputree.core.target import Layout
from gputree.inspect.check import FOREST_TYPES, check_tree, expect
from gputree.inspect.values import decode, encode, plain_dtype
from gputree.learners import trees
from gputree.learners.progress import FitInfo

FORMAT = 1
HEADER = "header.json"
ESTIMATORS: dict[str, Any] = {
    name: getattr(trees, name)
    for name in ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor")
}
LABELS = "biufUSmM"  # kinds of class arrays that are members; object arrays are listed in the header

# What the readers of zip, JSON and NPY raise for bytes that are none.
BROKEN = (
    *(zipfile.BadZipFile, ValueError, KeyError, TypeError, IndexError, AttributeError, RuntimeError, SyntaxError),
    *(EOFError, OverflowError, RecursionError, NotImplementedError, OSError, struct.error),
)
Path_: TypeAlias = "str | os.PathLike[str]"


def save(model: Any, path: Path_) -> None:
    """Write a fitted tree to a model file.

    Parameters
    ----------
    model : DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier or ExtraTreeRegressor
        A fitted tree.
    path : str or path-like
        Where to; a file there is replaced, at once and only when the new one is complete.

    Raises
    ------
    TypeError
        If the model is of another class, or a parameter or label has a type that the file cannot hold.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile, gputree
    >>> model = gputree.DecisionTreeRegressor().fit([[1], [2]], [3, 4])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gputree.save(model, folder + "/tree.gputree")
    ...     gputree.load(folder + "/tree.gputree").predict([[2]])
    array([4.])
    """
    if ESTIMATORS.get(type(model).__name__) is not type(model):
        raise TypeError(f"a {type(model).__name__} cannot be saved; models are {', '.join(ESTIMATORS)}")
    check_is_fitted(model)
    arrays = {f"forest/{name}.npy": little_endian(getattr(model.forest_, name)) for name in FOREST_TYPES}
    classes = [label_entry(o, labels, arrays) for o, labels in enumerate(class_arrays(model))]
    header = describe(model, classes)
    header["members"] = {name: {"dtype": a.dtype.str, "shape": list(a.shape)} for name, a in arrays.items()}
    text = json.dumps(header, indent=1, allow_nan=False)
    with whole_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        with member(archive, HEADER, len(text)) as out:
            out.write(text.encode())
        for name, array in arrays.items():
            with member(archive, name, array.nbytes) as out:
                write_array(out, array, version=(1, 0), allow_pickle=False)


def member(archive: zipfile.ZipFile, name: str, size: int) -> IO[bytes]:
    """A member to write, with a fixed date: the same model gives the same bytes."""
    info = zipfile.ZipInfo(name)
    info.create_system = 3  # whatever it is
    return archive.open(info, "w", force_zip64=size > 2**30)


def require_place(path: Path_) -> None:
    """Refuse a path that no file can be written to, before the work that the file is to hold.

    Raises
    ------
    OSError
        If the path is a folder, or lies in none that is there and may be written to.
    """
    target, name = Path(path), os.fspath(path)
    folder = target.parent
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file in it", name)
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {folder}; make it, or write elsewhere", name)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"the folder {folder} may not be written to; write elsewhere", name)


@contextmanager
def whole_file(path: Path_) -> Iterator[IO[bytes]]:
    """A file that takes its place when it is whole, or never."""
    require_place(path)
    target = Path(os.path.realpath(path))  # a link stays a link to the file that it names
    if target.exists() and not target.is_file():  # a pipe or a device is written to, never replaced
        with open(target, "wb") as stream:
            yield stream
        return
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, part)
        os.replace(part, target)
    except OSError as error:
        if error.errno is None:
            raise
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        part.unlink(missing_ok=True)


def little_endian(array: NDArray[Any]) -> NDArray[Any]:
    """The array in C order, little-endian."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


def class_arrays(model: Any) -> list[NDArray[Any]]:
    """Labels of every output; none for regression."""
    classes = getattr(model, "classes_", [])
    return classes if isinstance(classes, list) else [classes]


def label_entry(o: int, labels: NDArray[Any], arrays: dict[str, NDArray[Any]]) -> Any:
    """The header's entry for the labels of an output; adds a member if they are no objects."""
    if labels.dtype == object:
        return [encode(label, f"label {label!r}") for label in labels.tolist()]
    if labels.dtype.kind not in LABELS:
        raise TypeError(f"classes_ has type {labels.dtype}, which a model file cannot hold; fit with text or numbers")
    arrays[f"classes/{o}.npy"] = np.ascontiguousarray(labels)
    return f"classes/{o}.npy"


def describe(model: Any, classes: list[Any]) -> dict[str, Any]:
    """The header but for the members."""
    layout = asdict(model.layout_) | {"kind": model.layout_.kind.value}
    header = {
        "format": FORMAT,
        "gputree": gputree.__version__,
        "estimator": type(model).__name__,
        "parameters": {name: encode(v, f"parameter {name}") for name, v in model.get_params(deep=False).items()},
        "features": [feature_entry(feature) for feature in model.schema_.features],
        "named": hasattr(model, "feature_names_in_"),
        "layout": layout,
        "weight_unit": model.weight_unit_,
        "max_features": int(model.max_features_),
        "fit_info": asdict(model.fit_info_),
    }
    if classes:
        header |= {"classes": classes, "list_of_classes": isinstance(model.classes_, list)}
    return header


def feature_entry(feature: Feature) -> dict[str, Any]:
    """One column."""
    entry: dict[str, Any] = {"name": feature.name, "kind": feature.kind.name.lower()}
    if feature.kind == Kind.CATEGORICAL:
        entry["categories"] = [encode(c, f"category {c!r} of column {feature.name!r}") for c in feature.categories]
    return entry


def load(path: Path_) -> Any:
    """Read a fitted tree from a model file.

    Nothing in the file is executed, no array is read before its size is known to fit the file, and all of them are
    checked to form a tree before the model is returned: a file from anywhere either loads or is refused.

    Parameters
    ----------
    path : str or path-like
        A file that `save` wrote.

    Returns
    -------
    estimator
        It predicts as the saved one did and has its parameters.

    Raises
    ------
    ValueError
        If the file is no model file, is damaged or was written by a newer version; the message says what is wrong.
    OSError
        If there is no such file, or it cannot be read.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        with explained(f"{os.fspath(path)} is no model file that this version reads"):
            with zipfile.ZipFile(file) as archive:
                header, arrays = read_archive(archive, size)
            return build(header, arrays)


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn whatever a damaged file makes its readers raise into one kind of error."""
    try:
        yield
    except BROKEN as error:
        plain = type(error) in (ValueError, zipfile.BadZipFile) and str(error)
        raise ValueError(f"{what}: {error if plain else f'{type(error).__name__}: {error}'}") from error


def read_archive(archive: zipfile.ZipFile, size: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays; every member is stored as it is, so all of them together are no larger than the file."""
    infos = {info.filename: info for info in archive.infolist()}
    expect(len(infos) == len(archive.infolist()), "two members have one name")
    expect(HEADER in infos, f"it has no member {HEADER}")
    stored = all(i.compress_type == zipfile.ZIP_STORED and i.file_size == i.compress_size for i in infos.values())
    expect(stored and sum(i.file_size for i in infos.values()) <= size, "its members must be stored uncompressed")
    header = json.loads(archive.read(HEADER))
    expect(isinstance(header, dict) and type(header.get("format")) is int, "its header names no format")
    if header["format"] > FORMAT:
        writer = str(header.get("gputree"))[:40]
        raise ValueError(f"it has format {header['format']}, written by gputree {writer}; update gputree to read it")
    expect(header["format"] == FORMAT, f"its format {header['format']} is unknown")
    members = header["members"]
    expect(set(members) | {HEADER} == set(infos), "its members are not those that the header lists")
    return header, {name: read_array(archive, infos[name], members[name]) for name in members}


def read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, entry: dict[str, Any]) -> NDArray[Any]:
    """One array, if it is what the header says."""
    dtype, shape = plain_dtype(entry["dtype"], LABELS), entry["shape"]
    expect(
        all(type(n) is int and 0 <= n < 2**40 for n in shape) and len(shape) <= 2, f"{info.filename} has shape {shape}"
    )
    count = int(np.prod(shape, dtype=object)) if shape else 1
    with archive.open(info) as file:
        expect(file.read(8) == MAGIC_PREFIX + b"\1\0", f"{info.filename} is no NPY 1.0 array")
        text = file.read(int.from_bytes(file.read(2), "little")).decode("latin1")
        said = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
        expect(text.rstrip() == said, f"{info.filename} is not as the header says")
        data = file.read()
    expect(
        len(data) == count * dtype.itemsize, f"{info.filename} holds {len(data)} bytes, not {count * dtype.itemsize}"
    )
    return np.frombuffer(data, dtype).reshape(shape).copy()


def build(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
    """The model, if all of the file is consistent."""
    expect(header["estimator"] in ESTIMATORS, f"its estimator {str(header['estimator'])[:40]!r} is unknown")
    kind = ESTIMATORS[header["estimator"]]
    parameters = {name: decode(value) for name, value in header["parameters"].items()}
    expect(set(parameters) == set(kind().get_params()), "its parameters are not those of the estimator")
    model = kind(**parameters)
    model._check_parameters()
    model.schema_ = Schema(tuple(read_feature(entry) for entry in header["features"]))
    model.layout_ = read_layout(header["layout"])
    model.n_features_in_ = model.schema_.n_features
    expect(model.n_features_in_ >= 1, "it has no feature")
    if typed(header["named"], bool):
        model.feature_names_in_ = np.array(model.schema_.names, dtype=object)
    model.weight_unit_ = typed(header["weight_unit"], float)
    expect(0 < model.weight_unit_ < np.inf, "its weight_unit is not positive")
    model.max_features_ = typed(header["max_features"], int)
    model.n_outputs_ = model.layout_.n_outputs
    model.fit_info_ = read_fit_info(header["fit_info"])
    add_classes(model, header, arrays)
    model.forest_ = read_forest(arrays)
    check_tree(model.forest_, model.schema_, model.layout_)
    return model


def typed(value: Any, kind: Callable[..., Any]) -> Any:
    """The value, if it is of exactly this type."""
    expect(type(value) is kind, f"{str(value)[:40]!r} stands where a value of type {kind.__name__} belongs")
    return value


def read_feature(entry: dict[str, Any]) -> Feature:
    """One column."""
    kind = Kind[typed(entry["kind"], str).upper()]
    categories = tuple(decode(entry["categories"])) if kind == Kind.CATEGORICAL else ()
    return Feature(typed(entry["name"], str), kind, categories)


def read_layout(entry: dict[str, Any]) -> Layout:
    """The meaning of the channels."""
    sizes = tuple(typed(n, int) for n in entry["sizes"])
    scale = tuple(typed(x, float) for x in entry["scale"])
    layout = Layout(TargetKind(entry["kind"]), sizes, scale, typed(entry["rows"], int))
    expect(len(sizes) == len(scale) >= 1 and min(sizes) >= 1, "its layout has no outputs")
    expect(all(0 < x < np.inf for x in scale), "the scale of its layout is not positive")
    expect(layout.counts or set(sizes) == {1}, "its layout has classes and sums")
    expect(layout.rows in (-1, layout.n_channels - 1), f"its layout has rows in channel {layout.rows}")
    return layout


def read_fit_info(entry: dict[str, Any]) -> FitInfo:
    """What the fit did."""
    types = {f.name: {"str": str, "int": int, "float": float}[str(f.type)] for f in fields(FitInfo)}
    expect(set(entry) == set(types), "its fit_info has other fields")
    return FitInfo(**{name: typed(entry[name], kind) for name, kind in types.items()})


def add_classes(model: Any, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """``classes_`` and ``n_classes_`` of a classifier; takes their members out of the arrays."""
    expect(
        ("classes" in header) == model.layout_.counts == hasattr(model, "predict_proba"), "classes and estimator differ"
    )
    if not model.layout_.counts:
        return
    labels = [object_array(decode(e)) if isinstance(e, list) else arrays.pop(e) for e in header["classes"]]
    expect(all(c.ndim == 1 for c in labels), "its classes are no lists")
    expect(tuple(c.size for c in labels) == model.layout_.sizes, "its classes do not fit its layout")
    several = typed(header["list_of_classes"], bool)
    expect(several or len(labels) == 1, "its outputs have one list of classes")
    model.classes_ = labels if several else labels[0]
    model.n_classes_ = [c.size for c in labels] if several else labels[0].size


def object_array(values: list[Any]) -> NDArray[Any]:
    """An array of Python objects (n,)."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def read_forest(arrays: dict[str, NDArray[Any]]) -> Forest:
    """The forest, native byte order."""
    expect(set(arrays) == {f"forest/{name}.npy" for name in FOREST_TYPES}, "its arrays are not those of a forest")
    native = {
        n.removeprefix("forest/").removesuffix(".npy"): a.astype(a.dtype.newbyteorder("=")) for n, a in arrays.items()
    }
    return Forest(**native)
