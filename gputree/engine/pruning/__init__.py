"""Pruning of grown forests on host arrays. May import core."""

from gputree.engine.pruning.path import Path, cost_complexity_path, prune
from gputree.engine.pruning.records import Cases, Fitted
from gputree.engine.pruning.rules import RULES, Collapse, CostComplexity, ErrorBased, Needs, ReducedError, Rule

__all__ = [
    "RULES",
    "Cases",
    "Collapse",
    "CostComplexity",
    "ErrorBased",
    "Fitted",
    "Needs",
    "Path",
    "ReducedError",
    "Rule",
    "cost_complexity_path",
    "prune",
]
