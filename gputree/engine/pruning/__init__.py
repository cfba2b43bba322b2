"""Pruning of grown forests on host arrays. May import core."""

from typing import Any

from gputree.engine.pruning.bounds import BottomUp, RiskBound, WholeTree
from gputree.engine.pruning.lengths import DescriptionLength
from gputree.engine.pruning.one_test import ChiSquare, ValidationSet
from gputree.engine.pruning.path import Path, cost_complexity_path, nested, prune
from gputree.engine.pruning.records import Cases, Fitted
from gputree.engine.pruning.rules import Collapse, CostComplexity, ErrorBased, Needs, ReducedError, Rule, what_is_left

RULES: dict[str, Any] = {
    rule.__name__: rule
    for rule in (
        *(Collapse, ErrorBased, ReducedError, ValidationSet, CostComplexity, ChiSquare, RiskBound),
        DescriptionLength,
    )
}

__all__ = [
    "RULES",
    "BottomUp",
    "Cases",
    "ChiSquare",
    "Collapse",
    "CostComplexity",
    "DescriptionLength",
    "ErrorBased",
    "Fitted",
    "Needs",
    "Path",
    "ReducedError",
    "RiskBound",
    "Rule",
    "ValidationSet",
    "WholeTree",
    "cost_complexity_path",
    "nested",
    "prune",
    "what_is_left",
]
