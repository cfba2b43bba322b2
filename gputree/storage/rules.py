"""Rules from a tree in the file of that tree. May import everything below.

The field ``rules`` of the header: ``parameters``, as those of other estimators but for ``tree``; ``tree``: "default",
"given" or "frozen", whether that parameter was None, a tree like the one in the file, or that tree itself; ``text``:
the rules, as `gputree.RuleSet.to_text` writes them.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from gputree.core.schema import Feature
from gputree.inspect.check import expect
from gputree.inspect.values import decode, encode
from gputree.learners.c45_rules import C45Rules
from gputree.learners.rule_set import RuleSet
from gputree.storage.record import only, part

TREES = ("default", "given", "frozen")


def describe_rules(model: C45Rules) -> dict[str, Any]:
    """The header's entry of the rules of a fitted model.

    Raises
    ------
    TypeError
        If a parameter, label or category has a type that the file cannot hold; the message names it.
    """
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name != "tree"}
    frozen = isinstance(model.tree, FrozenEstimator)
    return {
        "parameters": {name: encode(value, f"parameter {name}") for name, value in parameters.items()},
        "tree": "default" if model.tree is None else "frozen" if frozen else "given",
        "text": model.rules_.to_text(),
    }


def read_rules(tree: Any, entry: dict[str, Any]) -> C45Rules:
    """The model of rules whose tree this is, checked against it.

    Raises
    ------
    ValueError
        If the entry is not consistent, or the rules are of another table than the tree.
    """
    only(entry, {"parameters", "tree", "text"}, "the rules")
    start, parameters = part(entry, "tree", str), part(entry, "parameters", dict)
    expect(start in TREES, f"its rules start from a tree that is {start!r}, which is none of {', '.join(TREES)}")
    only(parameters, set(C45Rules().get_params(deep=False)) - {"tree"}, "the parameters of C45Rules")
    given = {"default": None, "given": clone(tree) if start == "given" else None, "frozen": FrozenEstimator(tree)}[
        start
    ]
    model = C45Rules(given, **{name: decode(value) for name, value in parameters.items()})
    model._validate_params()
    found = RuleSet.from_text(part(entry, "text", str))
    features = tuple(Feature(f.name, f.kind, f.categories) for f in tree.schema_.features)
    labels = tuple(tree.classes_.tolist()), tree.classes_.dtype.str
    same = (found.features, (found.classes, found.dtype), found.conflict) == (features, labels, model.conflict)
    expect(same and found.default is not None, "its rules are of another table than its tree")
    model.tree_, model.rules_ = tree, found
    model._take_over(tree)
    return model
