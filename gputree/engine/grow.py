"""The growth loop: one frontier of open nodes of all trees, split level by level or best first.

May import core and the protocol, never a backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.protocol import SHARD, Backend, Codes, DeviceMemoryError
from gputree.core.families import first_largest
from gputree.core.forest import Forest, ForestBuilder, Grown, Marked, Test, fitting
from gputree.core.keys import child_keys
from gputree.core.lookups import LookedUp
from gputree.core.splits import NOT_MET, Growth, Slots, Splits, choose, concatenate
from gputree.core.summary import Figures, coarse_means, describe_counts, describe_sums, hold, two_sum
from gputree.core.target import Target
from gputree.engine.frontier import BestFirst, Frontier, LevelByLevel
from gputree.engine.judge import Proposals
from gputree.engine.recipe import Order, Recipe


@dataclass(frozen=True, slots=True)
class Progress:
    """What a watcher is told after each step: nodes so far, open nodes and the rows in them, and which trees grow."""

    nodes: int
    open_nodes: int
    open_rows: int
    first_tree: int
    n_trees: int


Watch = Callable[[Progress], None]


def grow(
    backend: Backend, codes: Codes, target: Target, recipe: Recipe, seed: int, watch: Watch | None = None
) -> Forest:
    """Grow all trees of a recipe; node order of the result is tree by tree, breadth first."""
    if recipe.judge is not None:
        recipe.judge.begin()
    bags = recipe.sampler.bags(seed)
    plan = Plan(backend, backend.open(codes, target, bags), target, recipe, codes.n_codes)
    frontier = plan.frontier()
    frontier.push(plan.best_splits(plan.finish_small(plan.plant(bags.keys()))))
    while splits := frontier.pop():
        slots = plan.finish_small(plan.split(splits))
        if watch is not None:
            trees = recipe.sampler.first, recipe.sampler.n_trees
            watch(Progress(plan.forest.n_nodes, len(slots), int(slots.rows.sum()), *trees))
        frontier.push(plan.best_splits(slots))
    return plan.finish(frontier.committed())


@dataclass(slots=True)
class Plan:
    """The parts that every step of growth needs, and the forest so far."""

    backend: Backend
    shard: SHARD
    target: Target
    recipe: Recipe
    n_codes: NDArray[np.int64]
    forest: ForestBuilder = field(default_factory=ForestBuilder)
    used: LookedUp = field(init=False)
    counted: tuple[Splits, NDArray[np.int64]] | None = None  # tests that were judged, and what their branches hold

    def __post_init__(self) -> None:
        self.used = LookedUp(self.n_codes.size)

    def plant(self, keys: NDArray[np.uint64]) -> Slots:
        """Add the roots; give those that may be split."""
        stats, extent = self.backend.totals(self.shard)
        trees = np.arange(stats.shape[1], dtype=np.int32)
        bounds = np.repeat([[-np.inf], [np.inf]], trees.size, axis=1)
        nothing = np.full(trees.size, -1, np.int32)
        depth = np.zeros(trees.size, np.int32)
        return self.add(Grown(nothing, depth, keys, stats, bounds), lambda open_: extent[open_])

    def split(self, splits: Splits) -> Slots:
        """Turn leaves into tests, add their children, regroup the rows; give the children that may be split."""
        stats = self.children(splits)
        parent = np.repeat(np.arange(len(splits)), splits.n_branches)
        first = np.cumsum(splits.n_branches) - splits.n_branches
        branch = np.arange(parent.size) - first[parent]
        self.mark(splits, stats, first, self.forest.n_nodes)
        born = Grown(
            splits.node[parent],
            self.forest.of("depth", splits.node[parent]) + np.int32(1),
            child_keys(self.forest.of("key", splits.node[parent]), branch),
            stats,
            self.bounds(splits, stats, parent, branch, first),
        )
        ids = np.arange(self.forest.n_nodes, self.forest.n_nodes + parent.size, dtype=np.int32)
        self.backend.partition(self.shard, splits, ids)
        return self.add(born, lambda open_: self.backend.extent(self.shard, open_))

    def mark(self, splits: Splits, stats: NDArray[np.int64], first: NDArray[Any], n_nodes: int) -> None:
        """Record tests and where their children (C, children) begin."""
        marked = tests(splits, self.target.layout.weight(stats), first, n_nodes)
        self.forest.mark(elsewhere(marked, self.recipe.elsewhere, self.recipe.others))
        if self.recipe.sampler.once:
            self.used.follow(marked)

    def children(self, splits: Splits) -> NDArray[np.int64]:
        """Channels of the branches of tests, which a judge may have asked for already."""
        if self.counted is not None and self.counted[0] is splits:
            return self.counted[1]
        return self.backend.children(self.shard, splits)

    def bounds(
        self, splits: Splits, stats: NDArray[np.int64], parent: NDArray[Any], branch: NDArray[Any], first: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Monotone bounds of children (2, children): split at the middle of the two values, else inherited."""
        bounds = self.forest.of("bounds", splits.node[parent])
        monotone = self.recipe.search.limits.monotone
        if monotone is None:
            return bounds
        sign = np.where(splits.n_branches == 2, monotone[splits.feature], 0)[parent]
        level = stats[1] / np.maximum(self.target.layout.weight(stats), 1)
        middle = (level[first] + level[first + 1])[parent] / 2
        upper = np.where(branch == 0, sign > 0, sign < 0)  # this child lies below the middle
        bounds[1] = np.where(upper, middle, bounds[1])
        bounds[0] = np.where(~upper & (sign != 0), middle, bounds[0])
        return bounds

    def add(self, born: Grown, extent: Callable[[NDArray[np.int32]], NDArray[np.float64]]) -> Slots:
        """Append nodes to the forest; give those that may be split."""
        ids = self.forest.add(born)
        rows, weight = self.target.layout.count(born.stats), self.target.layout.weight(born.stats)
        stop, limits = self.recipe.stop, self.recipe.search.limits
        open_ = (rows >= max(stop.min_rows, 2 * limits.min_rows)) & (weight >= 2 * limits.min_weight)
        if stop.max_depth is not None:
            open_ &= born.depth < stop.max_depth
        open_ &= ~self.pure_counts(born.stats)
        if not self.target.layout.counts and open_.any():
            span = extent(ids[open_])
            open_[open_] = (span[..., 0] < span[..., 1]).any(axis=1)
        return Slots(ids[open_], born.key[open_], born.stats[:, open_], rows[open_], born.bounds[:, open_])

    def pure_counts(self, stats: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Nodes with one class in every output; never true of sums, whose purity is min(y) == max(y)."""
        layout = self.target.layout
        if not layout.counts:
            return np.zeros(stats.shape[1], bool)
        pure = np.ones(stats.shape[1], bool)
        for o in range(layout.n_outputs):
            pure &= (stats[layout.output(o)] > self.recipe.stop.slack).sum(axis=0) <= 1
        return pure

    def finish_small(self, slots: Slots) -> Slots:
        """Let the backend grow the whole subtrees of small nodes, where it can; give the other slots."""
        if not self.recipe.plain:
            return slots
        small = slots.rows <= self.backend.finish_rows(self.shard, self.recipe.search)
        if not small.any():
            return slots
        own, first = slots.take(small), self.forest.n_nodes
        growth = Growth(self.recipe.search, self.recipe.stop, self.recipe.sampler.turn(self.n_codes.size))
        done = self.backend.finish(self.shard, own, self.forest.of("depth", own.id), growth, first)
        begin = np.cumsum(done.splits.n_branches) - done.splits.n_branches
        self.mark(done.splits, done.born.stats, begin, first)
        self.forest.add(done.born)
        return slots.take(~small)

    def best_splits(self, slots: Slots) -> Splits:
        """The best admissible test of every slot that has one."""
        found: list[Splits] = []
        waiting = list(self.batches(slots))[::-1]
        while waiting:
            batch = waiting.pop()
            try:
                found += list(self.settle(batch))
            except DeviceMemoryError:
                if len(batch) < 2:
                    raise
                half = len(batch) // 2
                waiting += [batch.take(slice(half, None)), batch.take(slice(0, half))]
        return self.judged(concatenate(found))

    def judged(self, splits: Splits) -> Splits:
        """Those of a level's tests that the recipe's judge keeps."""
        judge, layout = self.recipe.judge, self.target.layout
        if judge is None or not len(splits):
            return splits
        children = self.backend.children(self.shard, splits)
        first = np.cumsum(splits.n_branches) - splits.n_branches
        proposed = Proposals(
            splits,
            tests(splits, layout.weight(children), first, 0),
            self.forest.of("depth", splits.node),
            self.forest.of("stats", splits.node),
            children,
            layout,
            self.n_codes[splits.feature],
        )
        keep = judge.keeps(proposed, self.forest.marked)
        kept = splits if keep.all() else splits.take(np.flatnonzero(keep))
        self.counted = kept, children[:, np.repeat(keep, splits.n_branches)]
        return kept

    def settle(self, slots: Slots) -> Iterator[Splits]:
        """Try the next features until every slot has a test or none left to try.

        The first turn with an admissible test ends the search of a node. Each call searches twice as many turns as the
        one before, and what lies beyond a node's first good turn does not count.
        """
        n_features, stop, sampler = self.n_codes.size, self.recipe.stop, self.recipe.sampler
        turn, reach = sampler.turn(n_features), sampler.reach(n_features)
        first, count = 0, turn
        while first < reach and len(slots):
            features = self.features(slots, first, count)
            table = self.backend.histogram(self.shard, slots, features)
            found = self.backend.search(table, slots, self.recipe.search, None if self.recipe.gate else turn)
            weight = self.target.layout.weight(slots.stats)
            splits, places = choose(found, slots, turn, self.recipe.gate, weight)
            decrease = self.recipe.search.criterion.decrease(splits.gain, weight[places].astype(np.float64))
            order = np.flatnonzero((decrease >= stop.min_gain) & (splits.score > stop.above))
            yield splits if order.size == len(splits) else splits.take(order)
            slots = slots.take(np.setdiff1d(np.arange(len(slots)), places, assume_unique=True))
            first, count = first + count, turn if self.recipe.gate else 2 * count  # a gate may pass none of a turn

    def features(self, slots: Slots, first: int, count: int) -> NDArray[np.int32]:
        """The features of some ranks, i4 (k, m); -1 for what a slot is not to try."""
        sampler = self.recipe.sampler
        features = sampler.features(slots, self.n_codes.size, first, count)
        if not sampler.once:
            return features
        used = self.used.columns(slots.id)
        return np.where(np.take_along_axis(used, features, axis=1), np.int32(-1), features)

    def batches(self, slots: Slots) -> Iterator[Slots]:
        """Slots whose tables fit ``table_bytes`` together; at least one slot a batch."""
        if self.backend.table_bytes and self.recipe.search.criterion.traced and len(slots):
            yield slots
            return
        n_features = self.recipe.sampler.turn(self.n_codes.size)
        cell = 8 * (2 + self.target.layout.n_channels)  # its channels, its code, its segment
        widest = 1 + int(self.n_codes.max(initial=0))
        nbytes = np.minimum(slots.rows, widest) * (cell * n_features)
        yield from map(slots.take, fitting(nbytes, self.recipe.table_bytes))

    def finish(self, committed: NDArray[np.bool_] | None) -> Forest:
        """The forest in canonical order with values and impurities."""
        forest, birth = self.forest.freeze(committed)
        if self.recipe.judge is not None:
            self.recipe.judge.end(birth)
        criterion = self.recipe.search.criterion
        if self.target.sums is None:
            forest = describe_counts(forest, self.target.layout, criterion)
        else:
            leaf = np.flatnonzero((forest.kind == Test.LEAF) & (self.target.layout.weight(forest.stats.T) > 0))
            forest = describe_sums(forest, self.target, criterion, self.leaf_figures(forest, leaf, birth[leaf]))
        if self.recipe.search.limits.monotone is None:
            return forest
        return hold(forest, self.target, self.forest.of("bounds", birth))

    def leaf_figures(self, forest: Forest, leaf: NDArray[np.intp], birth: NDArray[np.intp]) -> Figures:
        """Means and impurities of leaves, which the backend knows by their numbers of birth."""
        born, criterion = birth.astype(np.int32), self.recipe.search.criterion
        low, high = np.moveaxis(self.backend.extent(self.shard, born), 2, 0)
        coarse = np.clip(coarse_means(self.target, forest.stats[leaf].T), low, high)
        first, loss = self.backend.residuals(self.shard, born, coarse, criterion)
        mean, rest = two_sum(coarse, first)
        inside = (mean >= low) & (mean <= high)
        loss = np.where(low < high, np.maximum(loss, 0.0), 0.0)
        return Figures(np.clip(mean, low, high), np.where(inside, rest, 0.0), loss)

    def frontier(self) -> Frontier:
        """An empty frontier in the recipe's order."""
        if self.recipe.order is Order.LEVEL:
            return LevelByLevel()
        return BestFirst(self.forest, self.recipe, self.target)


def tests(splits: Splits, weight: NDArray[np.int64], first: NDArray[Any], n_nodes: int) -> Marked:
    """What the forest records of new tests; weight (children,).

    A missing value that a node never met goes to the child of larger weight, the first among equals; so does a
    category, but never to a branch of missing values alone.
    """
    met = splits.missing != NOT_MET
    known = np.where(takes_known(splits, first), weight, -1)
    largest, largest_known = (first_largest(w, splits.n_branches, first) - first for w in (weight, known))
    return Marked(
        node=splits.node,
        kind=splits.kind,
        feature=splits.feature,
        low=splits.low,
        first_child=(n_nodes + first).astype(np.int32),
        n_children=splits.n_branches.astype(np.uint16),
        missing=np.where(met, splits.missing, largest).astype(np.uint16),
        unseen=largest_known.astype(np.uint16),
        met_missing=met.astype(np.uint8),
        score=splits.score,
        lookup_count=np.diff(splits.lookup_ptr),
        lookup_code=splits.lookup_code,
        lookup_branch=splits.lookup_branch,
    )


def elsewhere(marked: Marked, missing: int | None, others: int | None) -> Marked:
    """The same tests with other branches for missing values and categories that they did not meet, None: as it is."""
    if missing is not None:
        marked = replace(marked, missing=np.where(marked.met_missing == 1, marked.missing, np.uint16(missing)))
    if others is not None:
        marked = replace(marked, unseen=np.where(marked.kind == Test.LOOKUP, np.uint16(others), marked.unseen))
    return marked


def takes_known(splits: Splits, first: NDArray[Any]) -> NDArray[np.bool_]:
    """Which branches (children,) some known value takes."""
    lookup = splits.kind == Test.LOOKUP
    known = np.repeat(~lookup, splits.n_branches)
    known[np.repeat(first, np.diff(splits.lookup_ptr)) + splits.lookup_branch] = True
    alone = np.flatnonzero(~lookup & (splits.low == np.inf))
    known[first[alone] + splits.missing[alone]] = False
    return known
