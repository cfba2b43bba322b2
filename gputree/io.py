"""The model file: a fitted tree or forest without pickle, checked before it is used. May import everything below.

Format 5. A zip archive whose members are stored, not compressed, and lie one behind the other; the data of each begin
at a multiple of 64 bytes, and so do those of the array in it. The members are, in this order:

- ``header.json``, one object in UTF-8. Integers and floats are told apart by the point or the exponent. Its fields:

  - ``format``: 5. ``gputree``: version that wrote the file. ``estimator``: name of the class.
  - ``parameters``: name -> value. JSON's own types mean themselves; all others are objects: ``{"float": "inf"}`` (or
    ``"-inf"``, ``"nan"``), ``{"tuple": [...]}``, ``{"dict": [[key, value], ...]}``, and of NumPy ``{"scalar": value,
    "dtype": "<i8"}`` and ``{"array": [...], "dtype": "<i8"}``, where dates and durations are integers; rules are
    ``{"rule": "stopping.MaxDepth", "fields": {"depth": 3}}``, of `gputree.stopping` and `gputree.pruning`, and
    trees without a fit ``{"estimator": "C45Classifier", "parameters": {...}}``.
  - ``features``: list of ``{"name", "kind": "numeric"}`` or ``{"name", "kind": "categorical", "categories": [...],
    "declared"}``, where the categories are written as parameters are. ``named``: whether X had column names.
  - ``layout``: ``{"kind", "sizes", "scale", "rows"}`` of the channels, see `gputree.core.target.Layout`.
    ``weight_unit``: weight of one unit in ``stats``. ``max_features``: as the fit understood it.
  - ``classes``: a list with one entry an output: the name of a member, or the list of the labels of an object array.
    ``list_of_classes``: whether ``classes_`` is a list. Both absent for regression.
  - ``fit_info``: what the fit did, see `gputree.learners.progress.FitInfo`.
  - ``fitted``: what a forest keeps of its fit, attribute -> value; of a tree why its leaves are some, where
    ``stopping`` was given, and the bounds of soft thresholds; ``_target_name``, the column that the command line
    learnt. Values are written as parameters are, arrays as
    ``{"member", "dtype"}``, lists of arrays as
    ``{"list": [...]}``, and how bags were drawn as ``{"bagging": {...}}`` with the fields of
    `gputree.learners.bagging.Bagging`: rows are drawn again, not listed.
  - ``fingerprint``: SHA-256 as hex over the arrays of the forest in order; of each the line ``<name> <dtype> <shape>``
    as Python writes them, such as ``roots <i4 (1,)``, with a line feed, and its bytes.
  - ``nodes``: the number of nodes N, in a compact file only.
  - ``rules``: what rules were made from the tree in the file, only where they are the model, see
    `gputree.storage.rules`.

- of a compact file, ``packed/leaf.npy``, where bit i, from the highest of each byte on, tells whether node i is a leaf,
  and ``packed/<field>.npy`` for the arrays of `gputree.core.packed.RULES` that do not follow from those before them, in
  the smallest type that holds their numbers: of all nodes, or of inner nodes or leaves alone as the rule says;
- of another file, ``forest/<field>.npy`` for each array of `gputree.core.forest.Forest`, little-endian;
- ``classes/<output>.npy`` for labels that are no Python objects, ``fitted/<name>.npy`` for arrays in ``fitted``. All
  arrays are in NPY format 1.0, in C order.

Format 4 had no ``pruning`` but that of C4.5. Format 3 had no rules. Format 2 had no compact files, no ``fitted`` and
single trees alone. Format 1 had no alignment, no ``declared``, no ``fingerprint`` and no ``met_missing``, and a field
``members`` with the type and shape of every array. Files of every format are read for ever, see
`gputree.storage.upgrade`.

The same model gives the same bytes. A file is written beside its place and moved there when it is whole.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gputree.core.checks import brief, what_is
from gputree.core.forest import Forest
from gputree.core.packed import LEAF, pack, unpack
from gputree.inspect.check import FOREST_TYPES, check_forest, expect
from gputree.learners import ESTIMATORS, MODELS
from gputree.learners.c45_rules import C45Rules
from gputree.storage.archive import content, read_directory, write_archive
from gputree.storage.arrays import as_npy, fingerprint, from_npy, little_endian
from gputree.storage.fitted import check_fitted
from gputree.storage.header import describe, read_model
from gputree.storage.place import Path_, map_file, read_file, require_place, whole_file
from gputree.storage.record import part, read_json
from gputree.storage.rules import describe_rules, read_rules
from gputree.storage.upgrade import FORMAT, Arrays, Parts, upgrade

__all__ = ["ESTIMATORS", "FORMAT", "HEADER", "load", "require_place", "save", "whole_file"]

HEADER = "header.json"
WHOLE, PACKED = "forest/", "packed/"  # members of arrays as they are, and of those that are needed

# What readers of bytes that anybody may have written raise. Errors of the file system are none of them.
BROKEN = (
    *(ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError),
    struct.error,
)


def save(model: Any, path: Path_, *, compact: bool = True) -> None:
    """Write a fitted tree or forest to a model file.

    Parameters
    ----------
    model : estimator
        A fitted tree or forest of `gputree`.
    path : str or path-like
        Where to; a file there is replaced, at once and only when the new one is complete.
    compact : bool, default=True
        Leave out what follows from the rest: a forest of two classes then takes some 8 bytes a node, not 110. False
        writes every array as it is in memory, to be mapped by `load`, or read by other programs.

    Raises
    ------
    TypeError
        If the model is of another class, or a parameter, category, label or attribute has a type that the file cannot
        hold.
    ValueError
        If the file could not be loaded, because parameters or arrays of the model were changed since the fit.
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
    grown, rules = model, {}
    if type(model) is C45Rules:
        check_is_fitted(model)
        grown, rules = model.tree_, {"rules": describe_rules(model)}
    if MODELS.get(type(grown).__name__) is not type(grown):
        raise TypeError(
            f"{what_is(grown)} cannot be saved; models are {', '.join(MODELS)} and C45Rules: of a pipeline "
            "save the last step, or use joblib for the whole"
        )
    check_is_fitted(grown)
    failed = "the model cannot be saved, because it could not be loaded"
    with explained(failed):
        arrays = packed_members(grown) if compact else whole_members(grown.forest_)
    header = describe(grown, arrays) | ({"nodes": grown.forest_.n_nodes} if compact else {}) | rules
    text = as_json({**header, "fingerprint": grown.forest_.fingerprint()})
    with explained(failed):
        build(read_json(text), dict(arrays))
    with whole_file(path) as file:
        write_archive(file, [(HEADER, [text]), *((name, as_npy(array)) for name, array in arrays.items())])


def load(path: Path_, mmap: bool = False) -> Any:
    """Read a fitted tree or forest from a model file.

    Nothing in the file is executed, none of it is decompressed, and all of it is checked before the model is returned:
    a file from anywhere either loads or is refused.

    Parameters
    ----------
    path : str or path-like
        A file that `save` wrote, or without ``mmap`` a pipe that brings one.
    mmap : bool, default=False
        Map the file into memory instead of reading it. The arrays of a model that was saved with ``compact=False``
        then stay in the file, where processes that use it share them. The file must not be written into while the model
        is in use; `save` may replace it, though not on Windows, which locks mapped files.

    Returns
    -------
    estimator
        It predicts as the saved one did and has its parameters; its arrays are read-only.

    Raises
    ------
    ValueError
        If the file is no model file, is damaged or was written by a newer version; the message says what is wrong.
    OSError
        If there is no such file, or it cannot be read or mapped.

    Examples
    --------
    >>> import tempfile, gputree
    >>> model = gputree.DecisionTreeClassifier().fit([[1], [2]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gputree.save(model, folder + "/tree.gputree")
    ...     again = gputree.load(folder + "/tree.gputree", mmap=True)
    >>> again.predict([[2]]), again.fingerprint() == model.fingerprint()
    (array(['yes'], dtype='<U3'), True)
    """
    os.fspath(path)  # refuses numbers, which open() takes for files that are open
    data = map_file(path) if mmap else read_file(path)
    with explained(f"{os.fspath(path)} is no model file that this version reads"):
        return build(*read_parts(data))


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn whatever wrong content makes its readers raise into one kind of error."""
    try:
        yield
    except BROKEN as error:
        text = str(error) if isinstance(error, ValueError) and str(error) else f"{type(error).__name__}: {error}"
        raise ValueError(f"{what}: {text}") from error


def as_json(header: dict[str, Any]) -> bytes:
    """The text of a header, a field a line."""
    return json.dumps(header, indent=1, allow_nan=False).encode("ascii")


def read_parts(data: memoryview) -> Parts:
    """Header and arrays in the current format; the arrays are views of the data."""
    members = read_directory(data)
    expect(HEADER in members, f"it has no member {HEADER}")
    header = read_json(bytes(content(data, members.pop(HEADER))))
    number = part(header, "format", int)
    if number > FORMAT:
        writer = brief(header.get("gputree"))
        raise ValueError(
            f"it has format {brief(number)}, written by gputree {writer}; update gputree, which reads up to {FORMAT}"
        )
    expect(number >= 1, f"its format {brief(number)} is unknown")
    arrays = {name: from_npy(content(data, member), name) for name, member in members.items()}
    if number == 2:  # of its own arrays: those of the next format may differ
        check_fingerprint(header, fingerprint(fields_of(arrays, WHOLE)))
    return upgrade(header, arrays)


def fields_of(arrays: Arrays, folder: str) -> Arrays:
    """The members in a folder by their field of a forest."""
    return {
        name.removeprefix(folder).removesuffix(".npy"): array
        for name, array in arrays.items()
        if name.startswith(folder) and name.endswith(".npy")
    }


def check_fingerprint(header: dict[str, Any], found: str) -> None:
    """Compare the fingerprint with what the header says, and take it out of there."""
    expect(part(header, "fingerprint", str) == found, "its fingerprint is not that of its arrays")
    del header["fingerprint"]


def whole_members(forest: Forest) -> Arrays:
    """Every array of a forest."""
    return {f"{WHOLE}{name}.npy": little_endian(getattr(forest, name)) for name in FOREST_TYPES}


def packed_members(model: Any) -> Arrays:
    """What the forest of a model cannot do without."""
    packed = pack(model.forest_, model._meaning())
    packed[LEAF] = np.packbits(packed[LEAF])
    return {f"{PACKED}{name}.npy": little_endian(array) for name, array in packed.items()}


def build(header: dict[str, Any], arrays: Arrays) -> Any:
    """The model, if all of the file is consistent."""
    own: dict[str, Any] = {name: header.pop(name) for name in ("fingerprint", "nodes", "rules") if name in header}
    model = read_model(header, arrays)
    compact = "nodes" in own
    forest = read_packed(model, part(own, "nodes", int), arrays) if compact else read_whole(arrays)
    if "fingerprint" in own:
        check_fingerprint(own, forest.fingerprint())
    check_forest(forest, model.schema_, model.layout_, model.monotonic_cst is not None)
    check_fitted(model, forest)
    model.forest_ = forest.lock()
    return read_rules(model, part(own, "rules", dict)) if "rules" in own else model


def read_whole(arrays: Arrays) -> Forest:
    """The forest, from an array for every field and nothing else."""
    wanted = {f"{WHOLE}{name}.npy" for name in FOREST_TYPES}
    more, fewer = sorted(set(arrays) - wanted), sorted(wanted - set(arrays))
    expect(not more, f"it has the unknown member {brief(next(iter(more), ''))}")
    expect(not fewer, f"it has no member {next(iter(fewer), '')}")
    return Forest(**{name: native(array) for name, array in fields_of(arrays, WHOLE).items()})


def read_packed(model: Any, n_nodes: int, arrays: Arrays) -> Forest:
    """The forest, from what it cannot do without."""
    packed = {name: native(array) for name, array in fields_of(arrays, PACKED).items()}
    more = sorted(set(arrays) - {f"{PACKED}{name}.npy" for name in packed})
    expect(not more, f"it has the unknown member {brief(next(iter(more), ''))}")
    bits = packed.get(LEAF)
    if bits is None:
        raise ValueError(f"it has no member {PACKED}{LEAF}.npy")
    fits = bits.dtype == np.uint8 and n_nodes >= 1 and bits.shape == (-(-n_nodes // 8),)
    expect(fits, f"it has {brief(n_nodes)} nodes, and {LEAF} does not have as many bits")
    return unpack({**packed, LEAF: np.unpackbits(bits, count=n_nodes).view(bool)}, model._meaning())


def native(array: NDArray[Any]) -> NDArray[Any]:
    """A view of the array in the byte order of this machine, or a copy where that is another."""
    expect(array.dtype == array.dtype.newbyteorder("<"), f"an array has type {array.dtype.str}, not little-endian")
    return array.astype(array.dtype.newbyteorder("="), copy=False).view(np.ndarray)
