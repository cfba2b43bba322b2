"""What to learn from a table. May import everything below."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from gputree.inspect.words import told_apart
from gputree.learners.frames import Columns
from gputree.readers.advice import advice
from gputree.readers.cells import InputError, is_missing, object_array
from gputree.readers.learner import LEARNER_VALUES, LEARNERS, Parameters, base_of, make_learner, parameters_of
from gputree.readers.tables import column_names, read_table, require_column
from gputree.report import count, cut_list

FEW = 20  # whole numbers with at most so many distinct values are classes


def check_class_weight(weights: Any, y: NDArray[Any] | None, target: str | None) -> None:
    """Refuse a weight for a label that is no class, and one that is no number."""
    if y is None or not isinstance(weights, dict):
        return
    classes = sorted(set(y.tolist()))
    for label, weight in weights.items():
        if label not in classes:
            known = cut_list([repr(c) for c in classes])
            what = f"{label!r}, which is no class of column {target!r}"
            raise InputError(f"--class-weight names {what}; its classes are {known}")
        if not isinstance(weight, int | float):
            raise InputError(f"--class-weight gives {label!r} the weight {weight!r}; weights are numbers of 0 or more")


@dataclass(frozen=True)
class Plan:
    """Columns of a table by their use, in the order of the table."""

    features: tuple[str, ...]
    target: str | None
    weight: str | None

    @property
    def wanted(self) -> tuple[str, ...]:
        """All columns to read."""
        return (*self.features, *filter(None, (self.target, self.weight)))


@dataclass(frozen=True)
class Problem:
    """Columns to learn from, what to learn if anything, and what its author should know of the table."""

    X: Columns
    y: NDArray[Any] | None
    weight: NDArray[np.float64] | None
    classes: bool  # whether y holds labels of classes
    reason: str
    words: tuple[str, ...]  # columns of text with their categories
    advice: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """Rows to learn from."""
        return self.X.shape[0]


def make_plan(args: argparse.Namespace) -> Plan:
    """What the columns of a table are for, from their names."""
    names = column_names(args.table)
    others = [name for name in (args.target, args.sample_weight) if name]
    excluded = [name for text in args.exclude for name in ([text] if text in names else text.split(","))]
    for name in [*others, *excluded]:
        require_column(name, names, args.table)
    if len(set(others)) < len(others):
        raise InputError(f"column {args.target!r} cannot be both --target and --sample-weight; name two columns")
    features = tuple(name for name in names if name not in [*others, *excluded])
    if not features or args.target in excluded:
        raise InputError(f"{args.table} has no column left to learn from, or no target; exclude fewer columns")
    return Plan(features, args.target, args.sample_weight)


def check_signs(signs: Any, features: tuple[str, ...]) -> None:
    """Refuse another number of signs than there are columns to learn from."""
    if isinstance(signs, list) and len(signs) != len(features):
        raise InputError(
            f"--monotonic-cst has {count(len(signs), 'sign')}, and there are {count(len(features), 'feature')}: "
            f"{cut_list(features)}; give one sign a feature, in this order"
        )


def read_problem(path: str, plan: Plan, drop: bool) -> Problem:
    """Features, target and weights of a table, and what is odd about them."""
    table = dict(zip(plan.wanted, read_table(path, dict.fromkeys(plan.wanted)).arrays, strict=True))
    found = tuple(advice(table, plan.features, plan.target))
    X = Columns(plan.features, tuple(as_integers(as_booleans(table[name])) for name in plan.features))
    keep: Any = with_target(table[plan.target], plan.target, drop) if plan.target else slice(None)
    weight = checked_weight(table[plan.weight][keep], plan.weight) if plan.weight else None
    X = replace(X, arrays=tuple(array[keep] for array in X.arrays))
    y, classes, reason = judge(table[plan.target][keep]) if plan.target else (None, False, "")
    return Problem(X, y, weight, classes, reason, categories(X), found)


def as_integers(array: NDArray[Any]) -> NDArray[Any]:
    """A column of whole numbers, none missing, as integers, which some learners take for names of values."""
    return array.astype(np.int64) if array.dtype == np.float64 and whole(array) else array


def whole(numbers: NDArray[np.float64]) -> bool:
    """Whether all numbers are whole, and so small that each has a float of its own."""
    return bool((np.abs(numbers) < 2**53).all() and (numbers == np.rint(numbers)).all())


def as_booleans(array: NDArray[Any]) -> NDArray[Any]:
    """A column of the words True and False, in one case, as booleans: so data frames read it too."""
    known = set(array.tolist()) - {None} if array.dtype == object else set()
    for words in (("True", "False"), ("true", "false"), ("TRUE", "FALSE")):
        if known and known <= set(words):
            return object_array([None if v is None else v == words[0] for v in array.tolist()])
    return array


def with_target(y: NDArray[Any], name: str, drop: bool) -> NDArray[np.bool_]:
    """Which rows have a target, if those without may be left out."""
    missing = is_missing(y)
    if missing.all() or (missing.any() and not drop):
        remedy = "" if missing.all() else ", or leave these rows out with --drop-missing"
        raise InputError(
            f"column {name!r} has no value in {count(int(missing.sum()), 'row')} of {y.size:,}; fill them in{remedy}"
        )
    known: NDArray[np.bool_] = ~missing
    return known


def checked_weight(weight: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Weights of the rows: numbers of at least 0, not all of them 0."""
    if weight.dtype == object:
        odd = next((value for value in weight.tolist() if value is not None), None)
        raise InputError(f"--sample-weight {name} holds text such as {odd!r}; weights are numbers of 0 or more")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if bad.size:
        found = "nothing" if np.isnan(weight[bad[0]]) else f"{weight[bad[0]]:g}"
        raise InputError(
            f"--sample-weight {name} holds {found} in {count(bad.size, 'row')}; "
            "give each row a finite weight of 0 or more"
        )
    if not weight.any():
        raise InputError(f"--sample-weight {name} is 0 in every row; at least one weight must be positive")
    return weight.astype(np.float64)


def judge(y: NDArray[Any]) -> tuple[NDArray[Any], bool, str]:
    """Labels or numbers, whether they are classes, and why."""
    if y.dtype == object and all(isinstance(label, bool) for label in y.tolist()):
        return y.astype(bool), True, "booleans"
    if y.dtype == object:
        return y, True, f"text, {count(len(set(y.tolist())), 'class')}"
    distinct = np.unique(y).size
    if whole(y.astype(np.float64)):
        few = distinct <= FEW
        return y.astype(np.int64), few, f"whole numbers, {distinct:,} distinct{', taken as classes' if few else ''}"
    return y, False, f"numbers, {distinct:,} distinct"


def categories(X: Columns) -> tuple[str, ...]:
    """Columns of text, each with its number of categories."""
    text = {name: array for name, array in zip(X.columns, X.arrays, strict=True) if array.dtype == object}
    names = zip(told_apart(list(text), 30), text.values(), strict=True)
    return tuple(f"{name} ({len(set(array.tolist()) - {None}):,})" for name, array in names)


def with_split(given: Parameters, learner: str, problem: Problem) -> Parameters:
    """A branch for each category, where a binary test of categories cannot be found and nothing else is asked for.

    So have the trees that a learner is given.
    """
    known = parameters_of(learner)
    given = dict(given)
    for key, usual in LEARNER_VALUES.items():
        value = given.get(key, usual)
        split = with_split({}, base_of(learner, value), problem) if key in known and isinstance(value, str) else {}
        if split:
            given[key] = make_learner(base_of(learner, value), split)
    splitter = known["splitter"].default if "splitter" in known else getattr(LEARNERS[learner], "splitter", "")
    random = given.get("splitter", splitter) == "random"
    wide = any(a.dtype == object and len(set(a.tolist()) - {None}) > 2 for a in problem.X.arrays)
    several = problem.y is not None and len(set(problem.y.tolist())) > 2
    binary = "categorical_split" in known and known["categorical_split"].default == "binary"
    if random or not (issubclass(LEARNERS[learner], ClassifierMixin) and binary and wide and several):
        return given
    return {"categorical_split": "multiway", **given}
