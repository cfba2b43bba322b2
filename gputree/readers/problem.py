"""What to learn from a table, and by which learner. May import everything below."""

from __future__ import annotations

import argparse
import ast
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.inspect.words import shortened
from gputree.learners import ESTIMATORS
from gputree.learners.frames import Columns
from gputree.readers.advice import advice
from gputree.readers.cells import InputError, is_missing, object_array
from gputree.readers.tables import column_names, read_table, require_column
from gputree.report import count, cut_list

FEW = 20  # whole numbers with at most so many distinct values are classes
BY_TARGET = ("DecisionTreeClassifier", "DecisionTreeRegressor")  # where no learner is named

Parameters = Mapping[str, Any]


# Learner and parameters


def learner_name(name: str) -> str:
    """The class of this name, whatever the case of its letters."""
    names = {known.lower(): known for known in ESTIMATORS}
    if name.lower() not in names:
        raise InputError(f"--learner {name} is unknown; learners are {', '.join(ESTIMATORS)}")
    return names[name.lower()]


def given_parameters(args: argparse.Namespace) -> Parameters:
    """Parameters of the learner that are on the command line."""
    given = {key[2:]: value for key, value in vars(args).items() if key.startswith("p_")}
    return {name: parse_value(option(name), text) for name, text in given.items()}


def option(name: str) -> str:
    """A parameter as it is written on the command line."""
    return f"--{name.replace('_', '-')}"


def parse_value(what: str, text: str) -> Any:
    """A parameter as it is written: none, a number, a list, a dict or a word. ``1`` and ``1.0`` are not the same."""
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        if text.lstrip()[:1] in tuple("{[('\""):
            example = "\"{'yes': 2, 'no': 1}\" or -1,0,1"
            raise InputError(
                f"{what} {text} is no Python literal; close every brace and quote, as in {example}"
            ) from error
        return text
    return list(value) if isinstance(value, tuple) else value


def make_learner(name: str, given: Parameters, verbose: bool) -> Any:
    """An estimator with these parameters, none of them out of range."""
    odd = next((key for key in given if key not in inspect.signature(ESTIMATORS[name]).parameters), None)
    if odd is not None:
        raise InputError(f"{option(odd)} is no parameter of {name}; leave it out")
    model = ESTIMATORS[name](**given, verbose=int(verbose))
    model._check_parameters()
    return model


def check_parameters(learner: str | None, given: Parameters) -> None:
    """Refuse parameters that no learner in question takes, before any table is read."""
    errors: list[str] = []
    for name in [learner_name(learner)] if learner else BY_TARGET:
        try:
            make_learner(name, given, False)
        except (ValueError, TypeError) as error:
            errors.append(str(error))
        else:
            return
    same = len(errors) == 1 or errors[0].replace(*BY_TARGET) == errors[1]
    raise InputError(errors[0] if same else f"{errors[0]} (for a target of numbers: {errors[1]})")


def check_class_weight(weights: Any, y: NDArray[Any], target: str) -> None:
    """Refuse a weight for a label that is no class, and one that is no number."""
    if not isinstance(weights, dict):
        return
    classes = sorted(set(y.tolist()))
    for label, weight in weights.items():
        if label not in classes:
            known = cut_list([repr(c) for c in classes])
            what = f"{label!r}, which is no class of column {target!r}"
            raise InputError(f"--class-weight names {what}; its classes are {known}")
        if not isinstance(weight, int | float):
            raise InputError(f"--class-weight gives {label!r} the weight {weight!r}; weights are numbers of 0 or more")


# Columns


@dataclass(frozen=True)
class Plan:
    """Columns of a table by their use, in the order of the table."""

    features: tuple[str, ...]
    target: str
    weight: str | None

    @property
    def wanted(self) -> tuple[str, ...]:
        """All columns to read."""
        return (*self.features, self.target, *([self.weight] if self.weight else []))


@dataclass(frozen=True)
class Problem:
    """Columns to learn from, what to learn, and what its author should know of the table."""

    X: Columns
    y: NDArray[Any]
    weight: NDArray[np.float64] | None
    learner: str
    reason: str
    words: tuple[str, ...]  # columns of text with their categories
    advice: tuple[str, ...]


def make_plan(args: argparse.Namespace) -> Plan:
    """What the columns of a table are for, from their names."""
    names = column_names(args.table)
    others = [args.target, *([args.sample_weight] if args.sample_weight else [])]
    for name in [*others, *args.exclude]:
        require_column(name, names, args.table)
    if args.target == args.sample_weight:
        raise InputError(f"column {args.target!r} cannot be both --target and --sample-weight; name two columns")
    features = tuple(name for name in names if name not in [*others, *args.exclude])
    if not features or args.target in args.exclude:
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
    """Features, target and weights of a table, the learner that fits them, and what is odd about them."""
    table = dict(zip(plan.wanted, read_table(path, dict.fromkeys(plan.wanted)).arrays, strict=True))
    found = tuple(advice(table, plan.features, plan.target))
    X = Columns(plan.features, tuple(as_booleans(table[name]) for name in plan.features))
    keep = with_target(table[plan.target], plan.target, drop)
    weight = checked_weight(table[plan.weight][keep], plan.weight) if plan.weight else None
    X = replace(X, arrays=tuple(array[keep] for array in X.arrays))
    y, learner, reason = judge(table[plan.target][keep])
    return Problem(X, y, weight, learner, reason, categories(X), found)


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


def judge(y: NDArray[Any]) -> tuple[NDArray[Any], str, str]:
    """Labels or numbers, the learner for them, and why."""
    classes, numbers = BY_TARGET
    if y.dtype == object and all(isinstance(label, bool) for label in y.tolist()):
        return y.astype(bool), classes, "booleans"
    if y.dtype == object:
        return y, classes, f"text, {count(len(set(y.tolist())), 'class')}"
    distinct = np.unique(y)
    if np.isfinite(y).all() and (y == np.rint(y)).all() and np.abs(y).max() < 2**53:
        learner = classes if distinct.size <= FEW else numbers
        return y.astype(np.int64), learner, f"whole numbers, {distinct.size:,} distinct"
    return y, numbers, f"numbers, {distinct.size:,} distinct"


def categories(X: Columns) -> tuple[str, ...]:
    """Columns of text, each with its number of categories."""
    text = [(name, array) for name, array in zip(X.columns, X.arrays, strict=True) if array.dtype == object]
    return tuple(f"{shortened(name, 30)} ({len(set(array.tolist()) - {None}):,})" for name, array in text)


def with_split(given: Parameters, learner: str, problem: Problem) -> Parameters:
    """A branch for each category, where a binary test of categories cannot be found and nothing else is asked for."""
    random = given.get("splitter", "random" if learner.startswith("Extra") else "best") == "random"
    wide = any(a.dtype == object and len(set(a.tolist()) - {None}) > 2 for a in problem.X.arrays)
    if random or not wide or "Classifier" not in learner or len(set(problem.y.tolist())) <= 2:
        return given
    return {"categorical_split": "multiway", **given}
