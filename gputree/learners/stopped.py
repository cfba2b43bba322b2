"""Growth that rules end: what a rule is, what it is told, and why each leaf is one. May import everything below."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cells import Entries
from gputree.core.checks import brief, countable, shown
from gputree.core.forest import Forest, ForestBuilder, Grown, Marked, Test
from gputree.core.routes import branches_of
from gputree.core.splits import Stop
from gputree.core.summary import coarse_means
from gputree.core.target import Layout, Target
from gputree.engine.judge import KEPT, MOST_RULES, Check, Judge, Proposals, stops_of
from gputree.engine.recipe import Order, Recipe

STALE = ("oob_score_", "oob_errors_", "oob_decision_function_", "oob_prediction_")  # of the trees as they were
WORDS = ("", "pure", "too few rows", "max_depth", "no test", "max_leaf_nodes", "pruned")
INNER, PURE, FEW, DEEP, NO_TEST, FULL, PRUNED = range(len(WORDS))


@dataclass(frozen=True, slots=True)
class Fit:
    """What rules are told of a fit: its rows on the host, and how rows of their own are read.

    ``read(X, y)`` gives them as the fit's: X f4/f8 (n, F), and class numbers i4 or numbers f8 (outputs, n).
    """

    X: NDArray[Any]
    target: Target
    seed: int
    read: Callable[[Any, Any], tuple[NDArray[Any], NDArray[Any]]]

    @property
    def layout(self) -> Layout:
        """The meaning of channels."""
        return self.target.layout

    def labels(self) -> NDArray[Any]:
        """Class numbers or numbers of the rows, (outputs, n)."""
        if self.target.sums is not None:
            return self.target.sums.y
        return np.zeros((0, self.target.n_rows), np.int32) if self.target.labels is None else self.target.labels

    def units(self) -> NDArray[np.int64]:
        """Weights of the rows."""
        units = self.target.weights.units
        return np.ones(self.target.n_rows, np.int64) if units is None else units

    def channels(self, rows: NDArray[np.intp], cell: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """Some rows added up in cells, i8 (C, size)."""
        target = self.target.take(rows)
        labels = () if target.labels is None else tuple(target.labels)
        sums = () if target.sums is None else tuple(target.sums.values)
        entries = Entries(cell, rows, size, target.layout, target.weights.units, labels, sums)
        return entries.add_up(cell, size)

    def predictions(self, stats: NDArray[np.int64]) -> NDArray[Any]:
        """What nodes with these channels (C, M) predict, (outputs, M): the class of most weight, or the mean."""
        if not self.layout.counts:
            return coarse_means(self.target, stats).T
        outputs = range(self.layout.n_outputs)
        return np.stack([stats[self.layout.output(o)].argmax(axis=0) for o in outputs])

    def branch_predictions(self, stats: NDArray[np.int64], above: NDArray[Any]) -> NDArray[Any]:
        """The same; a node without rows predicts what ``above`` (outputs, M) does."""
        return np.where(self.layout.weight(stats) > 0, self.predictions(stats), above)

    def losses(self, predicted: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
        """Wrong outputs of every row, or its squared error, f8 (n,), from (outputs, n) each."""
        if self.layout.counts:
            wrong: NDArray[np.float64] = (predicted != labels).sum(axis=0).astype(np.float64)
            return wrong
        away = labels - predicted
        total: NDArray[np.float64] = (away * away).sum(axis=0)
        return total

    def one_output(self, rule: str) -> None:
        """Refuse what a rule that counts cases of classes has no meaning for."""
        if not self.layout.counts or self.layout.n_outputs > 1:
            found = f"{self.layout.n_outputs} outputs" if self.layout.counts else "numbers"
            raise ValueError(f"{rule} needs one output of classes, and y has {found}; take another rule")
        countable(rule, float(self.units().sum()) * self.target.weights.unit)


class Rule(ABC):
    """A rule that ends growth; see `gputree.stopping`."""

    __module__ = "gputree.stopping"  # where users find it

    @property
    @abstractmethod
    def why(self) -> str:
        """What ``stop_reason_`` says of a leaf that this rule made."""

    @property
    def follows_rows(self) -> bool:
        """Whether it looks at more than the tests that are proposed and their counts: at rows, of one tree alone."""
        return True

    @abstractmethod
    def begin(self, fit: Fit) -> Check:
        """The check of one growth; raises ValueError where the rule does not fit the table."""

    def limit(self, stop: Stop) -> Stop:
        """The limits of growth with this rule."""
        return stop

    def parts(self) -> tuple[Rule, ...]:
        """Rules of which any stops."""
        return (self,)

    def __or__(self, other: Rule) -> AnyOf:
        check_joined(other)
        return AnyOf((*self.parts(), *other.parts()))

    def __and__(self, other: Rule) -> AllOf:
        check_joined(other)
        return AllOf((self, other))


def check_joined(other: Any) -> None:
    """Refuse to join a rule with anything else."""
    if not isinstance(other, Rule):
        raise TypeError(f"{shown(other)} is no rule of stopping; | and & join those of gputree.stopping")


def check_rules(rules: Any) -> None:
    """Refuse anything else."""
    if not isinstance(rules, tuple) or not rules or not all(isinstance(rule, Rule) for rule in rules):
        raise ValueError(f"rules={brief(rules)} must be a tuple of rules of gputree.stopping")


@dataclass(frozen=True, slots=True)
class AnyOf(Rule):
    """Stops where one of some rules does; ``a | b``. A later rule sees what the earlier ones left."""

    rules: tuple[Rule, ...]

    def __post_init__(self) -> None:
        check_rules(self.rules)

    @property
    def why(self) -> str:
        """One of its reasons."""
        return " or ".join(rule.why for rule in self.rules)

    def parts(self) -> tuple[Rule, ...]:
        """The rules, and those that they join in turn."""
        return tuple(part for rule in self.rules for part in rule.parts())

    @property
    def follows_rows(self) -> bool:
        """Whether one of them does."""
        return any(rule.follows_rows for rule in self.rules)

    def begin(self, fit: Fit) -> Check:
        """Ask all of them."""
        checks = [rule.begin(fit) for rule in self.rules]
        return lambda proposed, news: np.any([stops_of(check, proposed, news) for check in checks], axis=0)


@dataclass(frozen=True, slots=True)
class AllOf(Rule):
    """Stops where all of some rules do; ``a & b``."""

    rules: tuple[Rule, ...]

    def __post_init__(self) -> None:
        check_rules(self.rules)
        odd = next((part for rule in self.rules for part in rule.parts() if part.limit(Stop()).bounded), None)
        if odd is not None:
            raise ValueError(f"{odd!r} bounds the whole tree and stops no node by itself; join it by |")

    @property
    def why(self) -> str:
        """All of its reasons."""
        return " and ".join(rule.why for rule in self.rules)

    @property
    def follows_rows(self) -> bool:
        """Whether one of them does."""
        return any(rule.follows_rows for rule in self.rules)

    def begin(self, fit: Fit) -> Check:
        """Ask all of them."""
        checks = [rule.begin(fit) for rule in self.rules]
        return lambda proposed, news: np.all([stops_of(check, proposed, news) for check in checks], axis=0)


class Walkers:
    """Rows that follow the tests of a tree while it grows; ``rows`` are those of every node that holds some."""

    def __init__(self, X: NDArray[Any]) -> None:
        self.X, self.rows = X, {0: np.arange(X.shape[0])}

    def advance(self, marked: Sequence[Marked]) -> None:
        """Walk down the tests that were carried out, in their order; of rows that end at their test nothing is kept."""
        for tests in marked:
            row, place, branch = self.branches(tests)
            child = tests.first_child[place] + branch
            order = np.argsort(child, kind="stable")
            node, first = np.unique(child[order], return_index=True)
            for old in tests.node.tolist():
                self.rows.pop(old, None)
            self.rows.update(zip(node.tolist(), np.split(row[order], first[1:]), strict=False))

    def meet(self, proposed: Proposals) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
        """Rows in the nodes of some tests: their numbers, the test and the child that each would come to."""
        row, place, branch = self.branches(replace(proposed.tests, node=proposed.splits.node))
        return row, place, proposed.tests.first_child[place] + branch

    def branches(self, tests: Marked) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
        """Rows in the tested nodes that have a branch there, the place of the test, and the branch."""
        none = np.zeros(0, np.intp)
        own = [self.rows.get(node, none) for node in tests.node.tolist()]
        row, place = np.concatenate([none, *own]), np.repeat(np.arange(len(own)), [rows.size for rows in own])
        x = np.asarray(self.X[row, tests.feature[place]], np.float64).reshape(-1)
        branch = branches_of(stumps(tests), place, x)
        known = np.flatnonzero(branch < tests.n_children[place])
        return row[known], place[known], branch[known]


def stumps(tests: Marked) -> Forest:
    """Every test as the root of a tree of its own."""
    k = tests.node.size
    nothing = np.full(k, -1, np.int32)
    builder = ForestBuilder()
    builder.add(Grown(nothing, nothing, np.zeros(k, np.uint64), np.zeros((0, k), np.int64), np.zeros((2, k))))
    builder.mark(replace(tests, node=np.arange(k, dtype=np.int32)))
    return builder.joined()


def stopped(rule: Rule, recipe: Recipe, fit: Fit) -> Recipe:
    """A recipe whose growth a rule may end."""
    parts, stop = rule.parts(), recipe.stop
    if len(parts) > MOST_RULES:
        raise ValueError(f"stopping joins {len(parts)} rules; at most {MOST_RULES} are told apart")
    for part in parts:
        stop = part.limit(stop)
    judge = Judge(lambda: [part.begin(fit) for part in parts])
    return replace(recipe, stop=stop, order=Order.BEST if stop.bounded else recipe.order, judge=judge)


def reasons(rule: Rule, recipe: Recipe, layout: Layout, grown: Forest, kept: Forest) -> NDArray[np.uint8]:
    """Why each node of a tree is a leaf, as numbers of `words`, u1 (N,).

    ``kept`` is ``grown``, or what is left of it when some branches are made leaves.
    """
    codes = recipe.judge.codes.copy() if recipe.judge is not None else np.zeros(grown.n_nodes, np.uint8)
    stats, leaf = grown.stats.T, grown.kind == Test.LEAF
    few = layout.count(stats) < max(recipe.stop.min_rows, 2 * recipe.search.limits.min_rows)
    deep = grown.depth == (-1 if recipe.stop.max_depth is None else recipe.stop.max_depth)
    base = np.select([~leaf, grown.impurity == 0, few, deep], [INNER, PURE, FEW, DEEP], NO_TEST)
    ruled = leaf & (codes > 0) & (codes != KEPT)
    found = np.where(ruled, len(WORDS) - 1 + codes.astype(np.int64), base)
    full = len(WORDS) + len(rule.parts()) if bounded_by(rule) else FULL
    found = np.where(leaf & (codes == KEPT), full, found).astype(np.uint8)
    return found if kept is grown else reasons_left(found, grown, kept)


def reasons_left(codes: NDArray[np.uint8], grown: Forest, kept: Forest) -> NDArray[np.uint8]:
    """The codes of what pruning left of a tree, u1 (kept,): of leaves that it made, PRUNED."""
    old, leaf = origins(kept, grown), kept.kind == Test.LEAF
    same = leaf & (old >= 0) & (grown.kind[old] == Test.LEAF) & (kept.stats == grown.stats[old]).all(axis=1)
    return np.select([same, leaf], [codes[old], np.uint8(PRUNED)], np.uint8(INNER))


def words(rule: Rule) -> list[str]:
    """The texts of `reasons`."""
    return [*WORDS, *(part.why for part in rule.parts()), bounded_by(rule)]


def bounded_by(rule: Rule) -> str:
    """The rules that bound the size of a tree; empty where none does."""
    return " or ".join(part.why for part in rule.parts() if part.limit(Stop()).bounded)


def origins(kept: Forest, grown: Forest) -> NDArray[np.intp]:
    """The node of a grown forest at the place of every node of what is left of it, (N,); -1 where there is none."""
    old = [-1] * kept.n_nodes
    for root, own in zip(kept.roots.tolist(), grown.roots.tolist(), strict=True):
        old[root] = own
    first, count = kept.first_child.tolist(), kept.n_children.tolist()
    theirs, sizes = grown.first_child.tolist(), grown.n_children.tolist()
    for node, size in enumerate(count):
        if size and old[node] >= 0 and sizes[old[node]] == size:
            old[first[node] : first[node] + size] = range(theirs[old[node]], theirs[old[node]] + size)
    return np.array(old, np.intp)


def numbers_left(numbers: NDArray[Any], grown: Forest, kept: Forest) -> NDArray[Any] | None:
    """The numbers of what pruning left of a tree, (kept,), from those of its tests (N,); 0 in leaves.

    None where a test is not in its place any more, or has other rows.
    """
    old, inner = origins(kept, grown), kept.kind != Test.LEAF
    same = (old >= 0) & (kept.feature == grown.feature[old]) & (kept.stats == grown.stats[old]).all(axis=1)
    return np.where(inner, numbers[old], numbers.dtype.type(0)) if same[inner].all() else None


def with_forest(model: Any, forest: Forest) -> Any:
    """The same fitted model with other trees, what pruning left of its own."""
    other = object.__new__(type(model))
    other.__dict__.update({name: value for name, value in vars(model).items() if name not in (*STALE, "_view")})
    other.forest_ = forest.lock()
    if getattr(model, "stopping", None) is not None:
        other._stop_codes = reasons_left(model._stop_codes, model.forest_, forest)
    tests = other.__dict__.pop("_tests", None)
    left = None if tests is None else numbers_left(tests, model.forest_, forest)
    if left is not None:
        other._tests = left
    return other
