"""The search and growth behind a split table. May import everything below.

Tests and gains come from the search that grows trees, and what their branches hold from growing each by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gputree.backends.arrays import to_host
from gputree.backends.protocol import Backend, Codes
from gputree.core.bags import Bags
from gputree.core.checks import brief
from gputree.core.criteria import Criterion
from gputree.core.forest import Forest, Test
from gputree.core.keys import child_keys, root_keys
from gputree.core.schema import Schema
from gputree.core.splits import Candidates, Slots, Splits, choose
from gputree.core.target import Target
from gputree.engine.grow import Plan
from gputree.engine.recipe import Recipe
from gputree.impurity import entropy
from gputree.inspect.split_records import SplitBranch, SplitRow, SplitTable
from gputree.inspect.words import plain, readable

_NAN = float("nan")


@dataclass(frozen=True, slots=True)
class At:
    """A node: which of all rows are in it bool (n,), None for all, and the key of its random draws."""

    inside: NDArray[np.bool_] | None = None
    key: int = 0


@dataclass(frozen=True, slots=True)
class Searched:
    """A node whose features were searched."""

    backend: Backend
    codes: Codes
    target: Target
    recipe: Recipe
    slots: Slots
    found: Candidates
    met: NDArray[np.int64]  # (F,) distinct values of every column

    @property
    def criterion(self) -> Criterion:
        """What scores the tests."""
        return self.recipe.search.criterion

    def test(self, feature: int) -> Splits:
        """The best test of one feature, none or one."""
        columns = self.found.feature
        alone = replace(self.found, feature=np.where(columns == feature, columns, np.int32(-1)))
        return choose(alone, self.slots, columns.size)[0]

    def grown(self, test: Splits | None = None) -> Forest:
        """A tree of the node alone, or of one test."""
        shard = self.backend.open(self.codes, self.target, Bags())
        plan = Plan(self.backend, shard, self.target, self.recipe, self.codes.n_codes)
        plan.plant(Bags().keys())
        if test is not None:
            plan.split(test)
        return plan.finish(None)


def path_key(model: Any, node: int) -> int:
    """The key that random draws at a node were made with."""
    forest, path = model.forest_, []
    while forest.parent[node] >= 0:
        parent = forest.parent[node]
        path.append(int(node - forest.first_child[parent]))
        node = parent
    key = getattr(model, "_root_key", None)
    if key is None:  # of older files and converted trees; a stream would give another seed at each call
        if not (model.random_state is None or isinstance(model.random_state, Integral)):
            raise ValueError(
                f"random thresholds cannot be drawn again: random_state={brief(model.random_state)} has moved on since "
                "the fit, and the tree does not keep its seed; fit one with a whole number as random_state"
            )
        key = root_keys(model._seed(), 0)
    for branch in reversed(path):
        key = child_keys(key, branch)
    return int(key)


def described(draft: Any, X: Any, y: Any, sample_weight: ArrayLike | None, at: At | None = None) -> SplitTable:
    """The table of a node; ``draft`` is an estimator that no one else uses."""
    node = searched(draft, X, y, sample_weight, at or At())
    schema: Schema = draft.schema_
    names = [plain(name) for name in schema.names]
    chosen = choose(node.found, node.slots, schema.n_features)[0]
    best = int(chosen.feature[0]) if len(chosen) else None
    tied = () if best is None else np.flatnonzero(node.found.score[0] == node.found.score[0, best])
    classes = tuple(class_text(label) for label in draft.classes_) if node.target.layout.counts else ()
    return SplitTable(
        draft.criterion,
        classes,
        node.target.weights.unit,
        branch_of(node, node.grown(), 0, "all"),
        tuple(row_of(node, schema, i, name) for i, name in enumerate(names)),
        None if best is None else names[best],
        tuple(names[i] for i in tied if i != best),
    )


def class_text(label: Any) -> str:
    """A class as text; those that are whole numbers without a point."""
    whole = isinstance(label, float | np.floating) and float(label).is_integer()
    return str(int(label)) if whole else plain(str(label))


def searched(draft: Any, X: Any, y: Any, sample_weight: ArrayLike | None, at: At) -> Searched:
    """Search all features of a node."""
    draft.device = "cpu"  # every device finds the same, and one node is little work
    ready = draft._prepare(to_host(X), y, sample_weight)
    backend, matrix, target = ready.backend, ready.rows.X, ready.rows.target
    if target.layout.n_outputs > 1:
        raise ValueError(f"y has {target.layout.n_outputs} outputs, and a split table is about one; pass one column")
    if at.inside is not None:
        weight = draft._weights(draft._read_target(y, at.inside.size), sample_weight, at.inside.size)
        rows = np.flatnonzero(at.inside if weight is None else at.inside[weight > 0])
        if not rows.size:
            raise ValueError("no row of X passes this node; give the rows that the tree was fitted on")
        matrix, target = matrix[rows], taken(target, rows)
    codes = backend.encode(matrix, draft._edges(backend, ready.rows, draft.schema_))
    shard = backend.open(codes, target, Bags())
    stats, _ = backend.totals(shard)
    bounds = np.array([[-np.inf], [np.inf]])
    slots = Slots(np.zeros(1, np.int32), np.array([at.key], np.uint64), stats, target.layout.count(stats), bounds)
    n_features = codes.n_codes.size
    table = backend.histogram(shard, slots, np.arange(n_features, dtype=np.int32)[None])
    found = backend.search(table, slots, ready.recipe.search)
    met = np.bincount(backend.read(table)[0], minlength=n_features)
    return Searched(backend, codes, target, ready.recipe, slots, found, met)


def taken(target: Target, rows: NDArray[np.intp]) -> Target:
    """The target of some of the rows, in the same units."""
    units, sums = target.weights.units, target.sums
    return replace(
        target,
        weights=replace(target.weights, units=None if units is None else units[rows]),
        n_rows=rows.size,
        labels=None if target.labels is None else np.ascontiguousarray(target.labels[:, rows]),
        sums=None if sums is None else replace(sums, y=sums.y[:, rows], values=sums.values[:, rows]),
    )


def row_of(node: Searched, schema: Schema, feature: int, name: str) -> SplitRow:
    """The record of one feature."""
    test = node.test(feature)
    if not len(test):
        return SplitRow(name, "one value only" if node.met[feature] < 2 else "no test within the limits")
    forest = node.grown(test)
    labels = list(labels_of(forest, schema))
    branches = tuple(branch_of(node, forest, 1 + i, label) for i, label in enumerate(labels))
    total = sum(branch.weight for branch in branches)
    remainder = sum(branch.weight / total * branch.impurity for branch in branches)
    info = float(entropy([branch.weight for branch in branches]))
    gain, score = gain_and_score(node, test, float(forest.impurity[0]) - remainder, total)
    ratio = gain / info if info else 0.0
    score = ratio if node.criterion.name == "gain_ratio" else score
    return SplitRow(name, " | ".join(labels), branches, remainder, gain, info, ratio, score)


def gain_and_score(node: Searched, test: Splits, difference: float, total: int) -> tuple[float, float]:
    """Gain a unit of weight, and what the criterion compares; ``difference`` is the gain from impurities."""
    # A score of 0 on its grid is one: what the gain holds beside it is rounding.
    own = float(test.gain[0]) / total if test.score[0] else 0.0
    if node.criterion.name == "chi2":
        return difference, own * total * total * node.target.weights.unit
    if node.criterion.name in ("twoing", "mdl"):
        return difference, own
    gain = own * node.target.decrease_scale(node.criterion) if own else 0.0
    return gain, gain


def branch_of(node: Searched, forest: Forest, child: int, label: str) -> SplitBranch:
    """What a node of a small tree holds."""
    layout, stats = node.target.layout, forest.stats.T[:, [child]]
    weight = int(layout.weight(stats)[0])
    counts = tuple(int(c) for c in stats[layout.output(0), 0]) if layout.counts else ()
    mean = _NAN if layout.counts or not weight else float(forest.value[child, 0])
    return SplitBranch(label, int(layout.count(stats)[0]), weight, counts, mean, float(forest.impurity[child]))


def labels_of(forest: Forest, schema: Schema) -> Iterator[str]:
    """What the branches of the root are called, in their order."""
    also = int(forest.missing[0]) if forest.met_missing[0] else -1
    if forest.kind[0] == Test.THRESHOLD and forest.low[0] == np.inf:
        yield from ("known", "missing") if also == 1 else ("missing", "known")
        return
    if forest.kind[0] == Test.THRESHOLD:
        low = f"{forest.low[0]:.10g}"
        own = [f"<= {low}", f"> {low}"]
    else:
        categories = schema.features[forest.feature[0]].categories
        groups: list[list[str]] = [[] for _ in range(forest.n_children[0])]
        for code, branch in zip(*forest.node(0).lookup, strict=True):
            groups[branch].append(readable(str(categories[code - 1])))
        own = [group[0] if len(group) == 1 else f"{{{', '.join(group)}}}" if group else "" for group in groups]
    for branch, text in enumerate(own):
        yield (f"{text} or missing" if text else "missing") if branch == also else text
