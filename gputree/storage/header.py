"""The header: what a model is beside its arrays, as JSON and back. May import everything below."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gputree
from gputree.core.checks import brief
from gputree.core.criteria import TargetKind
from gputree.core.schema import Feature, Kind, Schema
from gputree.core.target import Layout
from gputree.inspect.check import expect
from gputree.inspect.values import decode, encode, is_portable, object_array
from gputree.learners import MODELS
from gputree.learners.progress import FitInfo
from gputree.storage.fitted import add_fitted, describe_fitted
from gputree.storage.record import each, only, part, typed
from gputree.storage.upgrade import FORMAT, Arrays

LABELS = "biufUSmM"  # kinds of class arrays that are members; those of objects are listed in the header
FIELDS = frozenset(
    {
        *("format", "gputree", "estimator", "parameters", "features", "named", "layout", "weight_unit"),
        *("max_features", "fit_info", "fitted"),
    }
)
CLASS_FIELDS = frozenset({"classes", "list_of_classes"})


def describe(model: Any, arrays: Arrays) -> dict[str, Any]:
    """The header of a fitted model; adds its labels and what it keeps of its fit to the arrays.

    Raises
    ------
    TypeError
        If a parameter, a category, a label or an attribute has a type that JSON cannot hold; the message names it.
    """
    header = {
        "format": FORMAT,
        "gputree": gputree.__version__,
        "estimator": type(model).__name__,
        "parameters": {name: encode(v, f"parameter {name}") for name, v in model.get_params(deep=False).items()},
        "features": [feature_entry(feature) for feature in model.schema_.features],
        "named": hasattr(model, "feature_names_in_"),
        "layout": asdict(model.layout_) | {"kind": model.layout_.kind.value},
        "weight_unit": model.weight_unit_,
        "max_features": int(model.max_features_),
        "fit_info": asdict(model.fit_info_),
        "fitted": describe_fitted(model, arrays),
    }
    if model.layout_.counts:
        several = isinstance(model.classes_, list)
        labels = model.classes_ if several else [model.classes_]
        header["classes"] = [label_entry(o, each_, arrays) for o, each_ in enumerate(labels)]
        header["list_of_classes"] = several
    return header


def feature_entry(feature: Feature) -> dict[str, Any]:
    """One column."""
    entry: dict[str, Any] = {"name": feature.name, "kind": feature.kind.name.lower()}
    if feature.kind == Kind.CATEGORICAL:
        entry["categories"] = [encode(c, f"category {c!r} of column {feature.name!r}") for c in feature.categories]
        entry["declared"] = bool(feature.declared)
    return entry


def label_entry(o: int, labels: NDArray[Any], arrays: Arrays) -> Any:
    """The header's entry for the labels of an output; adds a member if they are no objects."""
    if labels.dtype == object:
        return [encode(label, f"label {label!r}") for label in labels.tolist()]
    if not is_portable(labels.dtype, LABELS):
        raise TypeError(
            f"classes_ has type {labels.dtype}, which a model file cannot hold; fit with text, integers or float64"
        )
    arrays[f"classes/{o}.npy"] = np.ascontiguousarray(labels)
    return f"classes/{o}.npy"


def read_model(header: dict[str, Any], arrays: Arrays) -> Any:
    """The model but for its forest; takes its labels and what it keeps of its fit out of the arrays.

    Raises
    ------
    ValueError
        If the header is not consistent; the message says what is wrong.
    """
    only(header, FIELDS | CLASS_FIELDS if "classes" in header else FIELDS, "the header")
    part(header, "gputree", str)
    model = read_estimator(header)
    model.schema_ = Schema(
        tuple(read_feature(entry) for entry in each(part(header, "features", list), dict, "features"))
    )
    model.layout_ = read_layout(part(header, "layout", dict))
    model.n_features_in_ = model.schema_.n_features
    expect(model.n_features_in_ >= 1, "it has no feature")
    if part(header, "named", bool):
        model.feature_names_in_ = np.array(model.schema_.names, dtype=object)
    model.weight_unit_ = part(header, "weight_unit", float)
    expect(0 < model.weight_unit_ < np.inf, f"its weight_unit is {model.weight_unit_}, which is not positive")
    model.max_features_ = part(header, "max_features", int)
    expect(1 <= model.max_features_ <= model.n_features_in_, f"its max_features is {brief(model.max_features_)}")
    model.n_outputs_ = model.layout_.n_outputs
    model.fit_info_ = read_fit_info(part(header, "fit_info", dict))
    add_fitted(model, part(header, "fitted", dict), arrays)
    counts = model.layout_.counts
    expect(("classes" in header) == counts == hasattr(model, "predict_proba"), "its estimator and its layout differ")
    if counts:
        add_classes(model, header, arrays)
    return model


def read_estimator(header: dict[str, Any]) -> Any:
    """The estimator with its parameters, not fitted."""
    name = part(header, "estimator", str)
    expect(name in MODELS, f"its estimator {brief(name)} is unknown; known are {', '.join(MODELS)}")
    parameters = {name: decode(value) for name, value in part(header, "parameters", dict).items()}
    only(parameters, set(MODELS[name]().get_params()), f"the parameters of {name}")
    model = MODELS[name](**parameters)
    model._check_parameters()
    return model


def read_feature(entry: dict[str, Any]) -> Feature:
    """One column."""
    name, kind = part(entry, "name", str), part(entry, "kind", str)
    expect(kind in ("numeric", "categorical"), f"column {brief(name)} is of the unknown kind {brief(kind)}")
    if kind == "numeric":
        only(entry, {"name", "kind"}, f"column {brief(name)}")
        return Feature(name)
    only(entry, {"name", "kind", "categories", "declared"}, f"column {brief(name)}")
    categories = tuple(decode(part(entry, "categories", list)))
    return Feature(name, Kind.CATEGORICAL, categories, part(entry, "declared", bool))


def read_layout(entry: dict[str, Any]) -> Layout:
    """The meaning of the channels."""
    only(entry, {f.name for f in fields(Layout)}, "the layout")
    sizes = tuple(each(part(entry, "sizes", list), int, "sizes"))
    scale = tuple(each(part(entry, "scale", list), float, "scale"))
    kind = part(entry, "kind", str)
    expect(kind in [k.value for k in TargetKind], f"its layout is of the unknown kind {brief(kind)}")
    layout = Layout(TargetKind(kind), sizes, scale, part(entry, "rows", int))
    expect(len(sizes) == len(scale) >= 1 and min(sizes) >= 1, "its layout has no outputs")
    expect(all(0 < x < np.inf for x in scale), "the scale of its layout is not positive")
    expect(all(np.frexp(x)[0] == 0.5 for x in scale), "the scale of its layout is no power of two")
    expect(layout.counts or set(sizes) == {1}, "its layout has classes and sums")
    expect(layout.rows in (-1, layout.n_channels - 1), f"its layout has rows in channel {brief(layout.rows)}")
    return layout


def read_fit_info(entry: dict[str, Any]) -> FitInfo:
    """What the fit did."""
    types: dict[str, Callable[..., Any]] = {"str": str, "int": int, "float": float}
    entry = {"note": "", **entry}  # files of versions without a GPU have none
    only(entry, {f.name for f in fields(FitInfo)}, "fit_info")
    return FitInfo(**{f.name: part(entry, f.name, types[str(f.type)]) for f in fields(FitInfo)})  # type: ignore[arg-type]


def add_classes(model: Any, header: dict[str, Any], arrays: Arrays) -> None:
    """``classes_`` and ``n_classes_`` of a classifier; takes their members out of the arrays."""
    labels = [read_labels(o, entry, arrays) for o, entry in enumerate(part(header, "classes", list))]
    expect(tuple(c.size for c in labels) == model.layout_.sizes, "its classes do not fit its layout")
    several = part(header, "list_of_classes", bool)
    expect(several or len(labels) == 1, "its outputs have one list of classes")
    model.classes_ = labels if several else labels[0]
    model.n_classes_ = [c.size for c in labels] if several else labels[0].size


def read_labels(o: int, entry: Any, arrays: Arrays) -> NDArray[Any]:
    """The labels of output o, if they are distinct and none is missing."""
    if isinstance(entry, list):
        values = decode(entry)
        expect(all(isinstance(v, str) for v in values), f"the classes of output {o} hold something that is no text")
        expect(len(set(values)) == len(values), f"two classes of output {o} are equal")
        return np.asarray(object_array(values))
    name = f"classes/{o}.npy"
    listed = typed(entry, str, f"the entry of the classes of output {o}")
    expect(listed == name, f"the classes of output {o} are listed in {brief(listed)}, not in {name}")
    expect(name in arrays, f"it has no member {name}")
    labels = arrays.pop(name).copy()
    expect(labels.ndim == 1, f"{name} has shape {labels.shape}, and is no list of labels")
    check_bits(labels, name)
    ascending = (labels[:-1] < labels[1:]).all() and (labels == labels).all()
    expect(ascending, f"{name} does not hold distinct labels in order")
    return labels


def check_bits(labels: NDArray[Any], name: str) -> None:
    """Refuse bits that stand for no value of their type, which NumPy takes as they come."""
    if labels.dtype == bool:
        expect((labels.view(np.uint8) <= 1).all(), f"{name} holds something that is neither true nor false")
    if labels.dtype.kind == "U":
        letters = labels.view(np.dtype("u4").newbyteorder(labels.dtype.byteorder))
        expect((letters <= sys.maxunicode).all(), f"{name} holds characters that there are none of")
