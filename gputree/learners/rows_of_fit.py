"""Whether rows are those of a fit: told by what the nodes of its trees have counted. May import everything below."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gputree.core.routes import Parts, by_cases, levels
from gputree.engine.pruning import Cases, Fitted
from gputree.learners.tasks import checked_weight

SAME = 1e-9  # of the range of y: rounding apart, means that differ by less are equal
ROUNDING = 2.0**-48  # and of the largest y
CONVERTED = 1e-6  # of the weight of a node: what conversion may have rounded
MOST = 2.0**62  # units of a row; no fit has as many


def fitted_of(model: Any) -> Fitted:
    """What rules read of a model."""
    return Fitted(model.forest_, model.layout_, model.weight_unit_, model._meaning().criterion, model.schema_.kinds)


def read_cases(model: Any, X: Any, y: Any, sample_weight: ArrayLike | None) -> Cases:
    """The rows as the trees read them."""
    matrix, numbers = model._read_rows(X, y, model.n_outputs_)
    weight = checked_weight(sample_weight, matrix)
    return Cases(matrix, numbers, np.ones(matrix.shape[0]) if weight is None else weight)


def are_of_the_fit(model: Any, cases: Cases) -> bool:
    """Whether rows are those of the fit, as far as its first tree tells."""
    try:
        next(as_fitted(model, cases))
    except ValueError:
        return False
    return True


def as_fitted(model: Any, cases: Cases) -> Iterator[Cases]:
    """For every tree the rows that its fit saw: of positive weight, of a bag with their repeats, whole in the root."""
    bagged = getattr(model, "bagging_", None) is not None
    if bagged and cases.weight.size != model.n_rows_:
        raise ValueError(f"X has {cases.weight.size} rows, and the fit had {model.n_rows_}; give the rows of the fit")
    if getattr(model, "class_weight", None) is not None:
        weight = model._weights(cases.y.T, cases.weight, cases.weight.size)
        cases = replace(cases, weight=cases.weight if weight is None else weight)
    with np.errstate(over="ignore"):
        units = np.rint(np.minimum(cases.weight / model.weight_unit_, MOST)).astype(np.int64)
    units = np.where(cases.weight > 0, np.maximum(units, 1), 0)  # as in the fit
    whole = None if bagged else weighing(cases, units, model.weight_unit_)
    for number in range(model.forest_.roots.size):
        if bagged:
            times = np.bincount(model._bag(number), minlength=cases.weight.size)
            whole = weighing(cases, times * round(1.0 / model.weight_unit_), model.weight_unit_)
        assert whole is not None
        check_same(fitted_of(model).tree(number), whole, getattr(model, "monotonic_cst", None) is not None)
        yield whole


def weighing(cases: Cases, units: NDArray[np.int64], unit: float) -> Cases:
    """The rows of positive weight, i8 (n,) in units, in the root."""
    row = np.flatnonzero(units)
    start = Parts(np.arange(row.size), np.zeros(row.size, np.intp), units[row])
    return Cases(cases.X[row], cases.y[:, row], (units[row] * unit).astype(np.float64), start)


def check_same(tree: Fitted, cases: Cases, bounded: bool) -> None:
    """The rows weigh in every node what the fit of the tree has counted there, and have its classes or means.

    Means that are ``bounded`` by constraints are not those of rows, but for that of the root.
    """
    layout, forest, unit = tree.layout, tree.forest, tree.unit
    label = cases.y + np.cumsum((0, *layout.sizes[:-1]))[:, None] if layout.counts else np.zeros_like(cases.y[:1])
    fit = forest.stats[:, : sum(layout.sizes) if layout.counts else 1]
    found, away = np.zeros(fit.shape, np.int64), np.zeros((forest.n_nodes, layout.n_outputs))
    y, value = (cases.y, forest.value) if layout.counts else scaled(cases.y, forest.value)
    assert cases.parts is not None
    for at, _ in levels(forest, cases.parts, cases.X, by_cases(forest)):
        for column in label.astype(np.intp):
            np.add.at(found.reshape(-1), at.node * fit.shape[1] + column[at.row], at.weight)
        if not layout.counts:
            np.add.at(away, at.node, at.weight[:, None] * (y[:, at.row].T - value[at.node]))
    least = (SAME * np.ptp(y, axis=1) + ROUNDING) * np.maximum(found[:, :1], 1)
    same = (np.abs(away) <= least).all(axis=1) | (bounded & (forest.parent >= 0))
    if (found == fit).all() and same.all():
        return
    remedy = "give the rows and weights of the fit, or a rule that needs none"
    if (found == fit).all():
        raise ValueError(f"y of the rows has other means in the nodes than that of the fit; {remedy}")
    if np.allclose(found, fit, CONVERTED, 0.0):
        raise ValueError(
            "the rows weigh in the nodes what those of the fit did, but for rounding: a tree that was fitted by "
            "scikit-learn to weights that are no whole numbers keeps them rounded; give a rule that needs no rows"
        )
    if (found[0] == fit[0]).all():
        raise ValueError(f"the rows come to other leaves than those of the fit; {remedy}")
    classes = "by class, " if layout.counts else ""
    weights = f"{(found[0] * unit).tolist()} {classes}and the fit had {(fit[0] * unit).tolist()}"
    raise ValueError(f"the rows have weights {weights}; {remedy}")


def scaled(y: NDArray[np.float64], value: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Numbers (O, n) and means (N, O) times a power of two for each output, so that sums of them are finite."""
    exponent = -np.frexp(np.maximum(np.abs(y).max(axis=1, initial=0.0), np.abs(value).max(axis=0)))[1]
    return np.ldexp(y, exponent[:, None]), np.ldexp(value, exponent)
