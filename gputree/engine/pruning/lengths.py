"""The rule of minimum description length, and what the message of any tree costs, node by node. May import core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gputree.core.checks import one_of, positive
from gputree.core.description import CODES, MessageParts
from gputree.core.expr import log2
from gputree.core.forest import SPREAD, STAY, Forest, Test
from gputree.core.message_length import MessageLength
from gputree.core.routes import by_cases, levels
from gputree.core.target import Layout
from gputree.engine.pruning.bottom_up import cheaper_leaves
from gputree.engine.pruning.records import Cases, Fitted
from gputree.engine.pruning.rules import Needs, Rule

SLACK = 1e-12  # by which two lengths may differ from rounding alone, relative to that of the largest root
CUTS = ("all", "sqrt")


@dataclass(frozen=True, slots=True)
class DescriptionLength(Rule):
    """Cut what makes the message longer that tells somebody who knows the columns of the rows their classes.

    The message is the tree, and which rows it gets wrong. From the tips up, a branch becomes a leaf of its largest
    class where ``tree_weight * tree + exception_weight * exceptions`` does not grow by it, in bits. It is the pruning
    of `MDLTreeClassifier`, for a tree that was grown by whatever rule.

    Parameters
    ----------
    tree_weight : float, default=1.0
        c_t, what a bit of the tree counts: above 1 makes smaller trees.
    exception_weight : float, default=1.0
        c_d, what a bit of the exceptions counts: above 1 makes larger trees.
    code : {"quinlan-rivest", "wallace-patrick"}, default="quinlan-rivest"
        "quinlan-rivest": a bit says whether a node is a leaf; a leaf names its class and which rows have others.
        "wallace-patrick": a node with r siblings, itself included, has a test with probability 1/r, and the classes of
        a leaf's rows are sent by their frequencies so far.
    numeric_cuts : {"all", "sqrt"}, default="all"
        "sqrt": of u cuts only sqrt(u) are paid for.

    Raises
    ------
    ValueError
        If a parameter is not as it must be.

    Notes
    -----
    A test names one of the columns whose categories have not each a branch above it already, and one of the u tests of
    that column that part the rows of its node: log2 u bits. Of numbers these are the cuts between different values,
    with missing values on either side of each, and missing against known; a parting of c categories in two is one of
    2^(c-1) - 1; a branch for each category costs nothing more. Weights count as rows.

    References
    ----------
    Quinlan and Rivest (1989), "Inferring decision trees using the minimum description length principle", Information
    and Computation 80:227-248. Wallace and Patrick (1993), "Coding decision trees", Machine Learning 11:7-22. Nilsson,
    "Introduction to Machine Learning", 6.4.4.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.pruning import DescriptionLength, prune
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DecisionTreeClassifier().fit(X, y)
    >>> model.get_n_leaves(), prune(model, DescriptionLength(), X, y).get_n_leaves()
    (22, 6)
    """

    tree_weight: float = 1.0
    exception_weight: float = 1.0
    code: str = "quinlan-rivest"
    numeric_cuts: str = "all"
    needs: ClassVar[Needs] = Needs.FIT
    of_classes: ClassVar[bool] = True
    raises: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive("tree_weight", self.tree_weight)
        positive("exception_weight", self.exception_weight)
        one_of("code", self.code, CODES)
        one_of("numeric_cuts", self.numeric_cuts, CUTS)

    def __call__(self, fitted: Fitted, cases: Cases | None = None) -> Forest:
        """The forest that is left."""
        cases = self.asked(cases)
        bits = self.bits(fitted, self.tests(fitted.forest, cases), cases.X.shape[1])
        return prune_by_length(fitted.forest, bits, self.lengths(fitted.unit))

    def lengths(self, unit: float) -> MessageLength:
        """The lengths by which growth chooses tests; a unit of weight stands for so many rows."""
        weights = {"tree": float(self.tree_weight), "errors": float(self.exception_weight)}
        return MessageLength(code=CODES[self.code], per_unit=unit, spaced=self.numeric_cuts == "sqrt", **weights)

    def tests(self, forest: Forest, cases: Cases) -> NDArray[np.float64]:
        """How many tests of its column every test was chosen among, whole numbers f8 (N,); 0 in leaves."""
        known, met = values_met(forest, cases)
        missing = met & ~np.isin(forest.missing, (SPREAD, STAY))  # of one branch, which was chosen
        cuts = self.lengths(1.0).cuts_tried(np.maximum(known - 1, 0))
        lookup = forest.kind == Test.LOOKUP
        tests = np.where(lookup, partings(known, forest.n_children), cuts * (1.0 + missing) + missing)
        return np.where(forest.kind == Test.LEAF, 0.0, tests)

    def bits(self, fitted: Fitted, tests: NDArray[np.float64], n_features: int) -> NodeBits:
        """What the nodes of a tree on so many columns cost, whose tests were chosen among ``tests`` (N,)."""
        lengths = self.lengths(fitted.unit)
        return NodeBits.of(fitted.forest, fitted.layout, lengths, n_features, lengths.test_bits(tests))


def values_met(forest: Forest, cases: Cases) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Different values of its column among the cases of every test, i8 (N,), and whether some are missing, bool."""
    known, met, inner = np.zeros(forest.n_nodes, np.int64), np.zeros(forest.n_nodes, bool), forest.kind != Test.LEAF
    rank = ranks(cases.X, np.unique(forest.feature[inner]))
    assert cases.parts is not None
    for level, _ in levels(forest, cases.parts, cases.X, by_cases(forest)):
        at = level.take(inner[level.node])
        own = rank[at.row, forest.feature[at.node]]
        met[at.node[own < 0]] = True
        pair = np.sort((at.node.astype(np.int64) << 32 | own)[own >= 0])  # of node and value
        np.add.at(known, pair[np.diff(pair, prepend=-1) > 0] >> 32, 1)
    return known, met


def ranks(X: NDArray[Any], columns: NDArray[np.int32]) -> NDArray[np.int32]:
    """Numbers of the values of some columns in their order, i4 (n, F); -1 where they are missing, and elsewhere."""
    rank = np.full(X.shape, -1, np.int32)
    for f in columns.tolist():
        missing = np.isnan(X[:, f])
        rank[~missing, f] = np.unique(X[~missing, f], return_inverse=True)[1]
    return rank


def partings(categories: NDArray[np.int64], branches: NDArray[np.uint16]) -> NDArray[np.float64]:
    """Ways to part categories in two, f8 (k,); with more branches, or one for each category, there is one way."""
    two = (branches == 2) & (categories > 2)
    return np.where(two, np.exp2(np.minimum(categories - 1.0, 1000.0)) - 1.0, 1.0)


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

    def total(self, leaf: NDArray[np.bool_], labels: float) -> MessageParts:
        """The length of the message of the nodes, of which some are leaves, bool (N,)."""
        return MessageParts(
            float(np.where(leaf, self.leaf, self.fork).sum()),
            float(self.test[~leaf].sum()),
            float(self.label[leaf].sum()),
            float(self.exceptions[leaf].sum()),
            labels,
        )


def attributes_left(forest: Forest, n_features: int) -> NDArray[np.int64]:
    """Columns that a node may test, i8 (N,): all but those whose categories have a branch each above it."""
    left, parent = [n_features] * forest.n_nodes, forest.parent.tolist()
    parted = ((forest.kind == Test.LOOKUP) & (np.diff(forest.lookup_ptr) <= forest.n_children)).tolist()
    for node, above in enumerate(parent):
        if above >= 0:
            left[node] = left[above] - parted[above]
    return np.array(left, np.int64)


def prune_by_length(forest: Forest, bits: NodeBits, criterion: MessageLength) -> Forest:
    """From the tips up, replace a branch by a leaf of its largest class where the message does not become longer."""
    leaf = criterion.tree * (bits.leaf + bits.label) + criterion.errors * bits.exceptions
    fork = criterion.tree * (bits.fork + bits.test)
    slack = SLACK * max(1.0, float(leaf[forest.roots].max()))
    return forest.collapse(cheaper_leaves(forest, leaf, slack, kept=fork))
