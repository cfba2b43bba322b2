"""Parameters of trees: what they may be, and what they mean for a table. May import everything below."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, InvalidParameterError, RealNotInt, StrOptions

from gputree.core.checks import brief
from gputree.core.criteria import Criterion
from gputree.core.schema import MAX_CODES, Schema
from gputree.engine.pruning import Rule as Pruner
from gputree.learners.stopped import Rule

TREE_CONSTRAINTS: dict[str, Any] = {
    "splitter": [StrOptions({"best", "random"})],
    "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    "min_samples_split": [
        Interval(Integral, 2, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
    ],
    "min_samples_leaf": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="neither"),
    ],
    "min_weight_fraction_leaf": [Interval(Real, 0.0, 0.5, closed="both")],
    "max_features": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
        StrOptions({"sqrt", "log2"}),
        None,
    ],
    "random_state": ["random_state"],
    "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
    "min_impurity_decrease": [Interval(Real, 0.0, None, closed="left")],
    "stopping": [Rule, None],
    "ccp_alpha": [Interval(Real, 0.0, None, closed="left")],
    "pruning": [Pruner, None],
    "validation_fraction": [Interval(Real, 0.0, 1.0, closed="neither")],
    "monotonic_cst": ["array-like", None],
    "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    "categories": [dict, None],
    "categorical_split": [StrOptions({"binary", "multiway"})],
    "unknown": [StrOptions({"majority", "error"})],
    "max_bins": [Interval(Integral, 2, MAX_CODES, closed="both"), StrOptions({"auto"}), None],
    "device": [str],
    "verbose": ["verbose"],
}


def fraction_of_rows(size: Any, n_rows: int, least: int) -> int:
    """A count of rows from a count or a share."""
    return int(size) if isinstance(size, Integral) else max(least, int(np.ceil(size * n_rows)))


def seed_of(random_state: Any) -> int:
    """One integer from ``random_state``, which a RandomState draws; None means 0."""
    if random_state is None or isinstance(random_state, Integral):
        return int(random_state or 0)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def count_features(wanted: Any, n_features: int) -> int:
    """``max_features`` as a number."""
    if wanted is None:
        return n_features
    if wanted == "sqrt":
        wanted = int(np.sqrt(n_features))
    elif wanted == "log2":
        wanted = n_features.bit_length() - 1
    elif not isinstance(wanted, Integral):
        wanted = int(wanted * n_features)
    return max(1, min(int(wanted), n_features))


def check_rule_kinds(model: Any) -> None:
    """Refuse a rule of stopping in the place of one of pruning, and the reverse; some have the same name."""
    for name, other, kind in (("pruning", "stopping", Rule), ("stopping", "pruning", Pruner)):
        value = getattr(model, name, None)
        if isinstance(value, kind):
            raise InvalidParameterError(
                f"{name}={brief(value)} is a rule of gputree.{other}; give one of gputree.{name}, or {other}= this one"
            )


def with_parameters_of_rules(model: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Parameters to be set, where ``pruning__alpha`` and the like have become new rules: rules do not change."""
    left = dict(given)
    for name in ("stopping", "pruning"):
        own = {key.partition("__")[2]: left.pop(key) for key in given if key.startswith(f"{name}__")}
        if not own:
            continue
        rule: Any = left.get(name, getattr(model, name, None))
        known = [f.name for f in fields(rule)] if is_dataclass(rule) else []
        strange = [key for key in own if key not in known]
        if strange:
            if rule is None:
                raise ValueError(f"{name}__{strange[0]} is a parameter of a rule, and {name}=None: give {name}= a rule")
            names = (
                f"{type(rule).__name__} has {', '.join(known)}" if known else f"{name}={brief(rule)} has none to set"
            )
            raise ValueError(f"{name}__{strange[0]} is no parameter of {name}: {names}")
        left[name] = replace(rule, **own)
    return left


def check_subsets(schema: Schema, reason: str, random: bool) -> None:
    """Refuse columns of more than two categories if there is a reason why their best subset cannot be found.

    ``random``: whether the learner could test random subsets.
    """
    wide = next((f for f in schema.features if len(f.categories) > 2), None)
    if reason and wide is not None:
        other = "splitter='random', " if random else ""
        raise ValueError(
            f"column {wide.name!r} has {len(wide.categories)} categories (an order of them is not used), and {reason}: "
            "the best test of two branches is found for two classes or one number only; give "
            f"categorical_split='multiway' (a branch for each category), {other}encode the column "
            "(sklearn.preprocessing.OneHotEncoder, or OrdinalEncoder if its values have an order), or leave it out"
        )


def check_multiway(criterion: Criterion, schema: Schema) -> None:
    """Refuse columns of categories where the criterion compares two branches only."""
    wide = next((f for f in schema.features if len(f.categories) > 2), None)
    if criterion.two_branches and wide is not None:
        raise ValueError(
            f"criterion={criterion.name!r} compares two branches, and column {wide.name!r} has "
            f"{len(wide.categories)} categories with a branch each; take another criterion, or encode the column"
        )


def monotone_signs(given: ArrayLike | None, schema: Schema, n_values: int) -> NDArray[np.int8] | None:
    """``monotonic_cst`` as signs (n_features,); n_values are the free numbers that a leaf holds."""
    if given is None:
        return None
    if n_values > 1:
        raise ValueError("monotonic_cst needs one output, and two classes at most; leave it out, or fit one at a time")
    signs = np.asarray(given)
    if signs.shape != (schema.n_features,) or not np.isin(signs, (-1, 0, 1)).all():
        raise ValueError(f"monotonic_cst={brief(given)} must hold -1, 0 or 1 for each of {schema.n_features} features")
    named = next((f.name for f, sign in zip(schema.features, signs, strict=True) if sign and f.categories), None)
    if named is not None:
        raise ValueError(f"monotonic_cst constrains column {named!r}, whose categories have no order; give it 0")
    return signs.astype(np.int8)
