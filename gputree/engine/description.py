"""What the message of a grown tree costs, node by node, and pruning by it. May import core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gputree.core.description import DescriptionLength
from gputree.core.expr import log2
from gputree.core.forest import Forest, Test
from gputree.core.message_length import MessageLength
from gputree.core.target import Layout
from gputree.engine.pruning.bottom_up import cheaper_leaves

SLACK = 1e-12  # by which two lengths may differ from rounding alone, relative to that of the largest root


@dataclass(frozen=True, slots=True)
class NodeBits:
    """Bits of every node, f8 (N,) each: as a leaf its structure, class and exceptions, as a test structure and test."""

    leaf: NDArray[np.float64]
    label: NDArray[np.float64]
    exceptions: NDArray[np.float64]
    fork: NDArray[np.float64]
    test: NDArray[np.float64]

    @classmethod
    def of(
        cls, forest: Forest, layout: Layout, criterion: MessageLength, n_features: int, cuts: NDArray[np.float64]
    ) -> NodeBits:
        """Those of any forest on so many columns; ``cuts`` f8 (N,) are the bits of a test beside its column's name."""
        code, n_classes = criterion.code, layout.sizes[0]
        root = forest.parent < 0
        above = np.where(root, n_features, forest.n_children[forest.parent])
        left = attributes_left(forest, n_features)
        inner = forest.kind != Test.LEAF
        return cls(
            code.shape(True, above, root),
            np.full(root.size, code.label(n_classes)),
            code.exceptions(criterion.counts(forest.stats.T, n_classes)),
            code.shape(False, above, root),
            np.where(inner, log2(np.maximum(left, 1).astype(np.float64)) + cuts, 0.0),
        )

    @classmethod
    def grown(cls, forest: Forest, layout: Layout, criterion: MessageLength, n_features: int) -> NodeBits:
        """Those of a forest that was grown by this criterion."""
        return cls.of(forest, layout, criterion, n_features, chosen_bits(forest, layout, criterion))

    def total(self, leaf: NDArray[np.bool_], labels: float) -> DescriptionLength:
        """The length of the message of the nodes, of which some are leaves, bool (N,)."""
        return DescriptionLength(
            float(np.where(leaf, self.leaf, self.fork).sum()),
            float(self.test[~leaf].sum()),
            float(self.label[leaf].sum()),
            float(self.exceptions[leaf].sum()),
            labels,
        )


def attributes_left(forest: Forest, n_features: int) -> NDArray[np.int64]:
    """Columns that a node may test, i8 (N,): all but those whose categories were looked up above it."""
    left = [n_features] * forest.n_nodes
    lookup, parent = (forest.kind == Test.LOOKUP).tolist(), forest.parent.tolist()
    for node, above in enumerate(parent):
        if above >= 0:
            left[node] = left[above] - lookup[above]
    return np.array(left, np.int64)


def chosen_bits(forest: Forest, layout: Layout, criterion: MessageLength) -> NDArray[np.float64]:
    """Bits of the number of every test among all of its column, f8 (N,), in a forest grown by this criterion.

    The score of a test is what it saves less what it is charged; what is left beside its leaves is the logarithm of a
    whole number, so that the grid of scores costs no digits.
    """
    n_classes = layout.sizes[0]
    exceptions = criterion.code.exceptions(criterion.counts(forest.stats.T, n_classes))
    inner = np.flatnonzero(forest.kind != Test.LEAF)
    below = np.zeros(forest.n_nodes)
    child = np.flatnonzero(forest.parent >= 0)
    np.add.at(below, forest.parent[child], exceptions[child])
    saved = criterion.errors * (exceptions - below)[inner] - forest.score[inner]
    leaves = criterion.charge(forest.n_children[inner].astype(np.float64), np.ones(inner.size), n_classes)
    tests = np.rint(np.exp2(np.maximum(saved - leaves, 0.0) / criterion.tree))
    bits = np.zeros(forest.n_nodes)
    bits[inner] = criterion.test_bits(tests)
    return bits


def prune_by_length(forest: Forest, bits: NodeBits, criterion: MessageLength) -> Forest:
    """From the tips up, replace a branch by a leaf of its largest class where the message does not become longer."""
    leaf = criterion.tree * (bits.leaf + bits.label) + criterion.errors * bits.exceptions
    fork = criterion.tree * (bits.fork + bits.test)
    slack = SLACK * max(1.0, float(leaf[forest.roots].max()))
    return forest.collapse(cheaper_leaves(forest, leaf, slack, kept=fork))
