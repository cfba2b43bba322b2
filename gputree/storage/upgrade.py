"""From every older format to the next one, step by step. May import everything below.

A step takes header and arrays as its format wrote them and gives those of the next format. It knows only these two, so
that it need not change when a third one comes, and it trusts neither: what it gives is checked as any file is. **A new
parameter of an estimator, or a new meaning of anything, is a new format**: a step here, and one more file in
``tests/data``, where those of all formats stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gputree.inspect.check import expect
from gputree.storage.record import each, part

FORMAT = 5
TREES_OF_3 = ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor")
TREES_OF_4 = (*TREES_OF_3, "ID3Classifier", "MDLTreeClassifier")
FORESTS_OF_4 = ("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor")
NEW_IN_5: dict[str, dict[str, Any]] = {  # estimator -> parameters
    **{name: {"pruning": None, "validation_fraction": 1 / 3} for name in TREES_OF_4},
    **{name: {"pruning": None, "stopping": None} for name in FORESTS_OF_4},
    "C45Classifier": {"soft_thresholds": False},
}

Arrays: TypeAlias = dict[str, NDArray[Any]]
Parts: TypeAlias = tuple[dict[str, Any], Arrays]


def upgrade(header: dict[str, Any], arrays: Arrays) -> Parts:
    """Header and arrays of the current format.

    Raises
    ------
    ValueError
        If there is something in them that their own format does not have.
    """
    for number in range(header["format"], FORMAT):
        header, arrays = STEPS[number](header, arrays)
    return header, arrays


def from_1(header: dict[str, Any], arrays: Arrays) -> Parts:
    """Format 2 adds what was declared, what was met, three parameters of categories and the fingerprint.

    In format 1 every category column had branches for the categories that a node met, and a value that a node never met
    followed the child of most rows; a node that kept to this is not told from one that met it.
    """
    members = part(header, "members", dict)
    said = {name: (part(entry, "dtype", str), part(entry, "shape", list)) for name, entry in members.items()}
    found = {name: (array.dtype.str, list(array.shape)) for name, array in arrays.items()}
    expect(said == found, "its members are not those that the header lists")
    parameters = part(header, "parameters", dict)
    new = {"categorical_features": "from_dtype", "categories": None, "categorical_split": "multiway"}
    header = {name: value for name, value in header.items() if name != "members"}
    header |= {
        "format": 2,
        "parameters": {**parameters, **new, "unknown": "majority"},
        "features": [undeclared(entry) for entry in each(part(header, "features", list), dict, "features")],
    }
    return header, {**arrays, "forest/met_missing.npy": met_missing(arrays, part(header, "layout", dict))}


def undeclared(entry: dict[str, Any]) -> dict[str, Any]:
    """A column of categories of which none was declared, or one of numbers."""
    return {**entry, "declared": False} if "categories" in entry else entry


def met_missing(arrays: Arrays, layout: dict[str, Any]) -> NDArray[np.uint8]:
    """1 where missing values must have been met, because they do not follow the child of larger weight."""
    kind, count, missing = (plain(arrays, name, "u") for name in ("kind", "n_children", "missing"))
    stats = plain(arrays, "stats", "i", 2)
    sizes = each(part(layout, "sizes", list), int, "sizes")
    expect(sizes, "its layout has no outputs")
    classes = sizes[0] if part(layout, "kind", str) == "counts" else 1
    inner = np.flatnonzero(kind)
    branches = count[inner].astype(np.int64)
    whole = 1 + branches.sum() == kind.size == len(count) == len(missing) == len(stats) and (branches > 0).all()
    expect(whole, "the children are not all nodes but the root")
    met = np.zeros(kind.size, np.uint8)
    if inner.size:
        weight = stats[1:, :classes].sum(axis=1)
        start = np.cumsum(branches) - branches
        top = np.flatnonzero(weight == np.repeat(np.maximum.reduceat(weight, start), branches))
        met[inner] = missing[inner] != top[np.searchsorted(top, start)] - start
    return met


def plain(arrays: Arrays, name: str, kind: str, axes: int = 1) -> NDArray[Any]:
    """An array of the forest, if it is there with a type of this kind and so many axes."""
    array = arrays.get(f"forest/{name}.npy")
    if array is None:
        raise ValueError(f"it has no member forest/{name}.npy")
    expect(array.dtype.kind == kind and array.ndim == axes, f"{name} has type {array.dtype} and shape {array.shape}")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def from_2(header: dict[str, Any], arrays: Arrays) -> Parts:
    """Format 3 adds forests, which keep more of their fit, and forests without what follows from the rest."""
    expect("fitted" not in header, "its header has the unknown field 'fitted'")
    return {**header, "format": 3, "fitted": {}}, arrays


def from_3(header: dict[str, Any], arrays: Arrays) -> Parts:
    """Format 4 adds the rules that end growth, a parameter of trees."""
    if header.get("estimator") in TREES_OF_3:
        header = {**header, "parameters": {**part(header, "parameters", dict), "stopping": None}}
    return {**header, "format": 4}, arrays


def from_4(header: dict[str, Any], arrays: Arrays) -> Parts:
    """Format 5 adds rules as parameters: of pruning to trees, of both kinds to forests."""
    given = {name: with_new_in_5(value) for name, value in part(header, "parameters", dict).items()}
    given |= NEW_IN_5.get(part(header, "estimator", str), {})
    return {**header, "format": 5, "parameters": given}, arrays


def with_new_in_5(value: Any) -> Any:
    """A value of a parameter; a tree has the parameters of its class in format 5."""
    match value:
        case {"estimator": str(name), "parameters": dict(own), **rest} if not rest:
            return {**value, "parameters": own | NEW_IN_5.get(name, {})}
    return value


STEPS: dict[int, Callable[[dict[str, Any], Arrays], Parts]] = {1: from_1, 2: from_2, 3: from_3, 4: from_4}
