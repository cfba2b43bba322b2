"""From the paths of a tree to an ordered list of rules. May import core."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gputree.core.conditions import Condition, merged
from gputree.core.keys import mix
from gputree.core.rules import Rule
from gputree.engine.rule_choice import (
    Candidate,
    by_class,
    condition_bits,
    default_label,
    in_order,
    polished,
    rule_bits,
    worthwhile,
)
from gputree.engine.rule_pruning import Bits, RuleCases, Simplifier, kept_conditions, pessimistic_errors, size

Path = tuple[tuple[Condition, ...], int]  # conditions from the root to a leaf, and the number of its class


@dataclass(frozen=True, slots=True)
class Method:
    """How rules are made.

    ``simplifier`` drops conditions. ``confidence`` is that of pessimistic errors. ``by_bits``: whether the rules of
    each class are chosen by their description length, and rules go that others would do better; else rules go without
    which the list has no more errors, and a rule need not be better than a guess. ``seed`` keys the searches among many
    rules.
    """

    simplifier: Simplifier
    confidence: float
    by_bits: bool
    seed: int


def ordered_rules(paths: Iterable[Path], cases: RuleCases, method: Method) -> tuple[list[Candidate], int]:
    """The list of rules, and the class where none holds.

    References
    ----------
    Quinlan (1993), "C4.5: Programs for Machine Learning", chapter 5; without bits, Quinlan (1987), "Simplifying
    decision trees", International Journal of Man-Machine Studies 27:221-234.
    """
    rules = simplified(paths, cases, method)
    if method.by_bits:
        rules = best_rules(rules, cases, method.seed)
    ordered = in_order(rules, cases)
    default = default_label(ordered, cases)
    return polished(ordered, default, cases, margin=int(method.by_bits)), default


def simplified(paths: Iterable[Path], cases: RuleCases, method: Method) -> list[Candidate]:
    """The rules of paths without the conditions that do not help, each once; those that are no use are left out."""
    classes, order = cases.classes(), {feature.name: i for i, feature in enumerate(cases.features)}
    every, errors = np.bitwise_or.reduce(classes), cases.default_errors().tolist()
    known: dict[Condition, Bits] = {}
    found: dict[tuple[tuple[Condition, ...] | None, int], Candidate] = {}
    for conditions, label in paths:
        for condition in conditions:
            if condition not in known:
                known[condition] = cases.meeting(condition)
        empty, own = errors[label], classes[label]
        kept = kept_conditions([known[c] for c in conditions], own, every & ~own, method.simplifier, empty)
        rest = tuple(conditions[i] for i in kept)
        if not rest:
            continue
        met = np.bitwise_and.reduce([known[c] for c in rest])
        n, wrong = size(met[None]), size((met & ~own)[None])
        error = float(pessimistic_errors(n, wrong, method.confidence, empty)[0])
        if n[0] and (error < empty or not method.by_bits):
            found.setdefault((merged(rest, order), label), Candidate(rest, label, met, error))
    return list(found.values())


def best_rules(rules: Sequence[Candidate], cases: RuleCases, seed: int) -> list[Candidate]:
    """Of each class, the rules that say the most with the fewest bits."""
    bits, classes = condition_bits(cases), cases.classes()
    found: list[Candidate] = []
    for label, own in by_class(rules).items():
        cost = np.array([rule_bits(rule.conditions, bits) for rule in own])
        found += [own[i] for i in worthwhile(own, classes[label], cases, cost, int(mix(seed, label)))]
    return found


def published(rule: Candidate, labels: Sequence[object], cases: RuleCases) -> Rule:
    """A rule with one condition a column, its label, and what the training rows that meet it are."""
    order = {feature.name: i for i, feature in enumerate(cases.features)}
    counts = cases.counts(rule.met)
    n = int(counts.sum())
    conditions = merged(rule.conditions, order) or ()
    return Rule(conditions, labels[rule.label], float(n), 1.0 - rule.error, tuple((counts / n).tolist()))
