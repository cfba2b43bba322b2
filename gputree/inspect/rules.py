"""The rules of a tree, and rules as a table. May import everything below."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from gputree.core.conditions import Condition, Subset, merged, paths
from gputree.core.forest import Forest
from gputree.core.rule_words import condition_text, conditions_text, word
from gputree.core.rules import Rule
from gputree.core.schema import Feature
from gputree.core.warned import warn
from gputree.inspect.words import require_tree, spread_rows
from gputree.learners.rule_set import RuleSet, or_nan
from gputree.table import FrameLibrary, _frame_library


def rules(model: Any) -> RuleSet:
    """Give a tree as a set of rules, one a leaf from left to right.

    The conditions of a path on one column are one: an interval, or some categories. They say what missing values do,
    and what categories do that a test does not list (``not in {...}``), so that every row meets exactly one rule, and
    the set predicts as the tree does. (Where a tree sends a value down every branch, as C4.5 does with missing ones, or
    keeps it at the node, no condition holds for it, and the row may meet no rule: the default, the outcome of the root,
    then decides. A warning says so where rows of the fit went down every branch.)

    Parameters
    ----------
    model : estimator
        A fitted tree of this library, of one output.

    Returns
    -------
    RuleSet
        The weights, and the shares of the classes, are those of the leaves; the confidence of a rule is the share of
        its class.

    Raises
    ------
    TypeError
        If the model is no tree of this library.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    ValueError
        If it has several outputs or soft thresholds.

    Warns
    -----
    UserWarning
        If rows of the fit went down every branch of a test, for a missing value or a category that it does not list.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier, rules
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> found = rules(DecisionTreeClassifier(max_depth=2).fit(X, y))
    >>> for rule in found:
    ...     print(rule)
    if ("petal length (cm)"<=2.45) then 0
    if ("petal length (cm)">2.45 or missing) and ("petal width (cm)"<=1.75 or missing) then 1
    if ("petal length (cm)">2.45 or missing) and ("petal width (cm)">1.75) then 2
    """
    require_tree(model)
    forest: Forest = model.forest_
    if model.n_outputs_ > 1:
        raise ValueError(
            f"the tree has {model.n_outputs_} outputs, and a rule has one outcome; fit one output at a time, or read "
            "gputree.export_text(model)"
        )
    model._require_hard(
        "near a threshold rows go down both branches, which no rule says; fit with soft_thresholds=False, or read "
        "gputree.export_text(model)"
    )
    n_rows = int(model.layout_.count(forest.stats.T)[0])
    spread = spread_rows(model)
    if spread:
        warn(
            "the tree sends rows down every branch where a value is missing or a category not listed, which no rule "
            f"says: such rows, at least {spread:,} of the {n_rows:,} of the fit, may meet no rule and then get the "
            "outcome of the root, not that of the tree",
        )
    facts = Facts(model)
    order = {name: i for i, name in enumerate(model.schema_.names)}
    ways = ((leaf, merged(conditions, order)) for leaf, conditions in paths(forest, model.schema_))
    features = tuple(Feature(f.name, f.kind, f.categories) for f in model.schema_.features)
    found = tuple(facts.rule(leaf, conditions) for leaf, conditions in ways if conditions is not None)
    root = facts.rule(int(forest.roots[0]), ())
    classes = facts.classes
    return RuleSet(
        found,
        features,
        replace(root, weight=0.0),
        None if classes is None else tuple(classes.tolist()),
        "" if classes is None else classes.dtype.str,
        root.weight,
        root.shares,
    )


class Facts:
    """What the nodes of a tree predict, and how sure."""

    def __init__(self, model: Any) -> None:
        self.classes: NDArray[Any] | None = None
        if is_classifier(model):
            self.classes = model.classes_[0] if isinstance(model.classes_, list) else model.classes_
        self.value: NDArray[np.float64] = model.forest_.value
        with np.errstate(over="ignore"):  # a weight of inf is refused by name
            self.weight = model.layout_.weight(model.forest_.stats.T) * model.weight_unit_

    def rule(self, node: int, conditions: tuple[Condition, ...]) -> Rule:
        """The rule of a node."""
        value, weight = self.value[node], float(self.weight[node])
        if self.classes is None:
            return Rule(conditions, float(value[0]), weight)
        best = int(value.argmax())
        return Rule(conditions, self.classes[[best]].tolist()[0], weight, float(value[best]), tuple(value.tolist()))


def dnf(found: RuleSet, outcome: Any) -> str:
    """Write when an outcome holds, as a sum of products: one for each of its rules.

    In columns of booleans ``x`` stands for True and ``~x`` for False, whatever missing values do; other conditions
    stand in brackets.

    Parameters
    ----------
    found : RuleSet
        Such as `rules` gives.
    outcome : label or number
        Of the rules.

    Returns
    -------
    str
        ``"0"`` where no rule has the outcome, ``"1"`` for a rule without conditions.

    Examples
    --------
    >>> from gputree import RuleSet
    >>> text = "if (a=True) and (b=True) then yes if (a=False) and (c>2.5) then yes else no"
    >>> RuleSet.from_text(text).dnf("yes")
    'a b + ~a (c>2.5)'
    """
    features = {feature.name: feature for feature in found.features}
    products = [[factor(c, features[c.name]) for c in rule.conditions] for rule in found.of(outcome)]
    return " + ".join(" ".join(product) or "1" for product in products) or "0"


def factor(condition: Condition, feature: Feature) -> str:
    """A condition as a factor of a product."""
    boolean = set(feature.categories) <= {True, False}
    if boolean and isinstance(condition, Subset) and len(condition.values) == 1:
        return ("" if condition.values[0] != condition.others else "~") + word(feature.name)
    return f"({condition_text(condition)})"


def rules_to_frame(found: RuleSet, library: FrameLibrary | None = None) -> Any:
    """Give rules as a data frame, one row a rule and a last one for the default.

    Parameters
    ----------
    library : {"pandas", "polars", "pyarrow"}, optional
        What to build the frame with; by default the first of these that is installed.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame or pyarrow.Table
        ``Rule`` (int, -1 for the default), ``Conditions`` (text), ``Outcome`` (label or float), ``Length`` (int,
        number of conditions), and ``Weight``, ``Coverage``, ``Support``, ``Confidence``, ``Lift`` (float, missing
        where not known).
    """
    import narwhals as nw

    library = _frame_library(library)
    every = replace(found, rules=(*found.rules, *([found.default] if found.default else [])), conflict="first")
    kinds = {"i": nw.Int64(), "u": nw.UInt64(), "f": nw.Float64(), "b": nw.Boolean()}
    kind = kinds.get(np.dtype(found.dtype or float).kind, nw.String())
    outcomes = [rule.outcome for rule in every]
    columns: dict[str, tuple[Any, list[Any]]] = {
        "Rule": (nw.Int64(), [*range(len(found)), *([-1] if found.default else [])]),
        "Conditions": (nw.String(), [conditions_text(rule.conditions) for rule in every]),
        "Outcome": (kind, list(map(str, outcomes)) if kind == nw.String() else outcomes),
        "Length": (nw.Int64(), [len(rule.conditions) for rule in every]),
    }
    numbers = {"Weight": or_nan(rule.weight for rule in every), "Coverage": every.coverage}
    numbers |= {"Support": every.support, "Confidence": every.confidence, "Lift": every.lift}
    for name, values in numbers.items():
        columns[name] = nw.Float64(), [None if value != value else value for value in values.tolist()]
    data, types = {name: own[1] for name, own in columns.items()}, {name: own[0] for name, own in columns.items()}
    return nw.from_dict(data, schema=types, backend=library).to_native()
