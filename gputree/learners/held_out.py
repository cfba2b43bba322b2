"""Rows that a tree is pruned by: those of its fit, or some that are kept back. May import everything below."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.arrays import to_host
from gputree.core.bags import Bags, multiplicities
from gputree.core.checks import countable
from gputree.core.keys import Stream, draw
from gputree.core.routes import Parts
from gputree.core.target import Layout
from gputree.engine.pruning import Cases, Needs, Rule

if TYPE_CHECKING:
    from gputree.learners.grower import Rows


def dense(X: Any, which: NDArray[Any] | slice = slice(None)) -> NDArray[Any]:
    """Some rows of a table as an array, from a device or a sparse matrix too."""
    X = to_host(X)
    some: NDArray[Any] = X[which] if isinstance(X, np.ndarray) else X.tocsr()[which].toarray()
    return some


def check_rule(rule: Rule | None, layout: Layout, model: Any, cases: float) -> None:
    """Refuse a rule of pruning that is not for what a model is fitted to, a tree to so much weight."""
    if rule is None:
        return
    if rule.of_classes and not (layout.counts and layout.n_outputs == 1):
        raise ValueError(
            f"{rule!r} counts errors of one output of classes, and {type(model).__name__} has numbers or several "
            "outputs; give CostComplexity(alpha)"
        )
    if rule.counts_cases:
        countable(repr(rule), cases)
    if rule.raises and getattr(model, "monotonic_cst", None) is not None:
        raise ValueError(
            "a branch in the place of its test would undo monotonic_cst: give a rule that only cuts, such as "
            "ErrorBased(raising=False)"
        )


def check_rule_parameters(model: Any) -> None:
    """Refuse parameters that ask for two rules of pruning, and rules that no fit of a forest can follow."""
    if model.pruning is not None and model.ccp_alpha > 0.0:
        raise ValueError(
            f"pruning={model.pruning!r} and ccp_alpha={model.ccp_alpha!r} are two rules of pruning: leave one of them "
            "out; ccp_alpha=alpha is pruning=CostComplexity(alpha)"
        )
    reason = "" if model._one_tree else why_not_in_bags(model._pruner(), model.stopping)
    if reason:
        raise ValueError(f"{type(model).__name__} cannot follow a rule: {reason}")


def why_not_in_bags(pruner: Rule | None, stopping: Any) -> str:
    """Why trees with these rules cannot be those of a forest, and what to do; empty if they can."""
    if stopping is not None and stopping.follows_rows:
        return (
            f"stopping={stopping!r} follows the rows of one tree; give rules that look at counts alone, such as "
            "MaxDepth, ChiSquare or SavesBits"
        )
    if pruner is None or pruner.needs is not Needs.VALIDATION:
        return ""
    return (
        "bags keep no rows back to prune by; prune the fitted forest by rows of its own, "
        f"gputree.pruning.prune(forest, {pruner!r}, X, y), or give a rule that needs none"
    )


def wanted_cases(rule: Rule, rows: Rows) -> Iterator[Cases | None]:
    """For trees of the same rows these, or those kept back, as a rule asks for them."""
    return repeat(cases_of(rows) if rule.needs is Needs.FIT else rows.held)


def cases_of(rows: Rows) -> Cases:
    """The rows of the fit of one tree, with their whole weights in its root."""
    target = rows.target
    y = target.labels if target.sums is None else target.sums.y
    assert y is not None
    units = np.ones(rows.n_rows, np.int64) if target.weights.units is None else target.weights.units
    start = Parts(np.arange(rows.n_rows), np.zeros(rows.n_rows, np.intp), units)
    weight = (units * target.weights.unit).astype(np.float64)
    return Cases(dense(rows.X), y, weight, start)


def of_a_bag(rows: Rows, bag: Bags) -> Rows:
    """The rows that the bag of one tree has drawn, with their repeats as weights."""
    weights, times = rows.target.weights, multiplicities(bag, 0, rows.n_rows)
    drawn = np.flatnonzero(times)
    units = times[drawn] if weights.units is None else times[drawn] * weights.units[drawn]
    target = replace(rows.target.take(drawn), weights=replace(weights, units=units))
    return replace(rows, X=dense(rows.X, drawn), target=target, n_rows=drawn.size)


def of_size_one(cases: Cases) -> Cases:
    """The same rows with weights of at most 1: a common factor, a power of two, tells nothing."""
    largest = float(cases.weight.max(initial=0.0))
    return replace(cases, weight=np.ldexp(cases.weight, -math.frexp(largest)[1]))


def held_out(labels: NDArray[Any], weight: NDArray[np.float64], fraction: float, seed: int) -> NDArray[np.bool_]:
    """Which rows (n,) to keep back: of each class a fraction of those of positive weight, rounded down.

    Parameters
    ----------
    labels : int array (n,)
        Numbers of classes; the same for all rows where there are none.
    weight : f8 array (n,)
    fraction : float in (0, 1)
    seed : int
        Rows are ranked by a hash of it and their number.

    Raises
    ------
    ValueError
        If no class has rows enough.

    Examples
    --------
    >>> held_out(np.array([0, 0, 0, 1, 1]), np.ones(5), 0.5, 0)
    array([False, False,  True, False,  True])
    """
    row = np.flatnonzero(weight > 0)
    order = row[np.lexsort((draw(seed, Stream.HELD_OUT, row), labels[row]))]
    count = np.bincount(labels[order])
    rank = np.arange(order.size) - np.repeat(np.cumsum(count) - count, count)
    out = np.zeros(labels.size, bool)
    out[order] = rank < np.repeat(np.floor(fraction * count), count)
    if not out.any():
        raise ValueError(
            f"validation_fraction={fraction!r} keeps back no row to prune by: it is a share of the rows of each class "
            f"(of numbers, of all rows), rounded down, and of {count.max()} rows that is none; give a larger share, "
            "more rows, or a rule that needs no validation rows"
        )
    return out
