"""Learners and their parameters as the command line names them. May import everything below."""

from __future__ import annotations

import argparse
import ast
import difflib
import inspect
import re
from collections.abc import Mapping
from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin

from gputree.learners import MODELS
from gputree.learners.c45_rules import C45Rules
from gputree.readers.cells import InputError

LEARNERS: dict[str, Any] = {**MODELS, C45Rules.__name__: C45Rules}
CALLED = {"decision-tree": "cart", "random-forest": "forest", "mdltree": "mdl"}  # where a class has a longer name
LEARNER_VALUES = {"tree": "c45", "estimator": "cart"}  # parameters whose value is a learner, and the usual one

Parameters = Mapping[str, Any]


def dashed(name: str) -> str:
    """The name of a class as the command line writes it: ``ErrorBased`` is ``error-based``."""
    return re.sub("(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


def called(name: str) -> str:
    """A class as the command line calls it, whether it learns classes or numbers: ``forest`` for both."""
    stem = dashed(re.sub("(Classifier|Regressor)$", "", name))
    return CALLED.get(stem, stem)


FAMILIES: dict[str, tuple[str, ...]] = {
    family: tuple(name for name in LEARNERS if called(name) == family)
    for family in dict.fromkeys(map(called, LEARNERS))
}


def family_of(name: str) -> tuple[str, ...]:
    """Classes that a name stands for, of which the target chooses: a family's, or that of one, in any case."""
    known = FAMILIES | {own.lower(): (own,) for own in LEARNERS}
    key = name.lower().replace("_", "-").replace(".", "")
    if key not in known:
        near = difflib.get_close_matches(key, FAMILIES, 1) or difflib.get_close_matches(key, known, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise InputError(f"--learner {name} is unknown; {hint}learners are {', '.join(FAMILIES)}")
    return known[key]


def has_target(name: str) -> bool:
    """Whether a class learns what some column says."""
    return issubclass(LEARNERS[name], ClassifierMixin | RegressorMixin)


def fitting(family: tuple[str, ...], classes: bool) -> str:
    """The class of a family that learns classes, or numbers, if there is one."""
    kind = ClassifierMixin if classes else RegressorMixin
    return next((name for name in family if issubclass(LEARNERS[name], kind)), family[0])


def base_of(name: str, value: str) -> str:
    """The class that a parameter of a class names: one that learns the same."""
    return fitting(family_of(value), issubclass(LEARNERS[name], ClassifierMixin))


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


def make_learner(name: str, given: Parameters, verbose: bool = False) -> Any:
    """An estimator with these parameters, none of them out of range."""
    given = {**given, "verbose": 1} if verbose else given
    odd = next((key for key in given if key not in parameters_of(name)), None)
    if odd is not None:
        how = f"`gputree fit --learner {called(name)} --help`"
        raise InputError(f"{option(odd)} is no parameter of {name}; leave it out, {how} shows those that are")
    bases = {
        key: make_learner(base_of(name, given[key]), {}) for key in LEARNER_VALUES if isinstance(given.get(key), str)
    }
    model = LEARNERS[name](**{**given, **bases})
    getattr(model, "_check_parameters", model._validate_params)()
    return model


def parameters_of(name: str) -> Mapping[str, inspect.Parameter]:
    """Parameters of a class."""
    return inspect.signature(LEARNERS[name]).parameters


def check_parameters(names: tuple[str, ...], given: Parameters, verbose: bool) -> None:
    """Refuse parameters that no learner in question takes, before any table is read."""
    errors: list[str] = []
    for name in names:
        try:
            make_learner(name, given, verbose)
        except (ValueError, TypeError) as error:
            errors.append(str(error))
        else:
            return
    if len(names) == 1:
        raise InputError(errors[0])
    shared = {error.replace(name, called(name)) for error, name in zip(errors, names, strict=True)}
    both = f"{errors[0]} (for a target of numbers: {errors[1]})"
    raise InputError(shared.pop() if len(shared) == 1 else both)  # the target is not read yet: no class is meant


def check_weights(name: str, column: str | None) -> None:
    """Refuse weights where a class counts every row once."""
    if column and "sample_weight" not in inspect.signature(LEARNERS[name].fit).parameters:
        raise InputError(f"--sample-weight {column}: {name} counts every row once; leave it out")
