"""``tree_``: a fitted tree under scikit-learn's array names, read only. May import core and backends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse

from gputree.backends import choose
from gputree.core.forest import Forest, Test
from gputree.core.routes import steered
from gputree.core.schema import Schema

LEAF = -1  # a missing child
UNDEFINED = -2  # feature and threshold of a leaf


@dataclass(frozen=True)
class TreeView:
    """One binary tree under the array names of ``sklearn.tree._tree.Tree``; every array is read-only.

    Node ids are breadth first: the root is 0, its children 1 and 2, then their children (scikit-learn numbers depth
    first). Arrays of children exist where every test has two branches, thresholds where every test of categories parts
    their numbers 0, 1, 2 ... at one place; its left child is then the one of the lower numbers, as in all tests.
    """

    forest: Forest
    weight_unit: float
    rows: NDArray[np.int64]
    weight: NDArray[np.int64]
    n_features: int
    n_classes: NDArray[np.intp]  # (outputs,); 1 for regression
    schema: Schema | None = None  # names and categories of the columns

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return self.forest.n_nodes

    capacity = node_count

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.forest.n_leaves

    @property
    def max_depth(self) -> int:
        """Depth of the deepest leaf; the root has depth 0."""
        return self.forest.max_depth

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.n_classes.size

    @property
    def max_n_classes(self) -> int:
        """Classes of the output that has most of them."""
        return int(self.n_classes.max())

    @cached_property
    def children_left(self) -> NDArray[np.intp]:
        """Left children (nodes,), -1 in leaves."""
        return self.child(0)

    @cached_property
    def children_right(self) -> NDArray[np.intp]:
        """Right children (nodes,), -1 in leaves."""
        return self.child(1)

    @cached_property
    def feature(self) -> NDArray[np.intp]:
        """Tested feature (nodes,), -2 in leaves."""
        return locked(np.where(self.inner, self.forest.feature, UNDEFINED).astype(np.intp))

    @cached_property
    def threshold(self) -> NDArray[np.float64]:
        """Threshold (nodes,), x <= threshold goes left; -2 in leaves, +inf where missing values alone go right.

        In a column of categories x is the number of the category, from 0. A value that is none of them has no number:
        it goes where ``forest_.unseen`` says.

        Raises
        ------
        ValueError
            If a test has more than two branches, or sends categories to them that no threshold parts.
        """
        self.require_binary()
        bad = np.flatnonzero((self.forest.kind == Test.LOOKUP) & np.isnan(self.cuts.low))
        if bad.size:
            raise ValueError(
                f"node {bad[0]} parts the categories of {self.column(int(bad[0]))} in two sets, which no threshold "
                "between their numbers tells apart; read model.forest_, or gputree.export_dict(model)"
            )
        return locked(np.where(self.inner, self.cuts.low, float(UNDEFINED)))

    @cached_property
    def missing_go_to_left(self) -> NDArray[np.uint8]:
        """Whether missing values go left (nodes,), 0 in leaves.

        Raises
        ------
        ValueError
            If a test sends them down both branches, or has more than two.
        """
        self.require_binary()
        if self.forest.spreads:
            raise ValueError(
                "tests of this tree send missing values down both branches in shares; read model.forest_.missing"
            )
        return locked((self.inner & ((self.forest.missing == 0) != self.cuts.swapped)).astype(np.uint8))

    @cached_property
    def impurity(self) -> NDArray[np.float64]:
        """Impurity (nodes,), the mean over outputs."""
        return locked(self.forest.impurity.copy())

    @cached_property
    def n_node_samples(self) -> NDArray[np.int64]:
        """Training rows of positive weight (nodes,)."""
        return locked(self.rows.copy())

    @cached_property
    def weighted_n_node_samples(self) -> NDArray[np.float64]:
        """Weight of the training rows (nodes,)."""
        return locked(self.weight * self.weight_unit)

    @cached_property
    def value(self) -> NDArray[np.float64]:
        """Class shares or means (nodes, outputs, max_n_classes)."""
        value = np.zeros((self.node_count, self.n_outputs, self.max_n_classes))
        for o, first in enumerate(np.cumsum(self.n_classes) - self.n_classes):
            value[:, o, : self.n_classes[o]] = self.forest.value[:, first : first + self.n_classes[o]]
        return locked(value)

    @property
    def inner(self) -> NDArray[np.bool_]:
        """Nodes that are no leaves."""
        inner: NDArray[np.bool_] = self.forest.kind != Test.LEAF
        return inner

    @cached_property
    def cuts(self) -> Cuts:
        """The tests as thresholds."""
        return Cuts.of(self.forest, self.schema)

    def child(self, side: int) -> NDArray[np.intp]:
        """Children of one side, 0 for left, -1 in leaves."""
        self.require_binary()
        branch = side ^ self.cuts.swapped
        return locked(np.where(self.inner, self.forest.first_child + branch, LEAF).astype(np.intp))

    def require_binary(self) -> None:
        """Refuse what two children cannot say."""
        wide = np.flatnonzero(self.inner & (self.forest.n_children != 2))
        if wide.size:
            raise ValueError(
                f"node {wide[0]} tests {self.column(int(wide[0]))} with {self.forest.n_children[wide[0]]} branches, "
                "and scikit-learn's arrays hold two children; fit with categorical_split='binary', or read "
                "model.forest_ or gputree.export_dict(model)"
            )

    def column(self, node: int) -> str:
        """The column that a node tests, for messages."""
        feature = int(self.forest.feature[node])
        return f"column {feature if self.schema is None else repr(self.schema.features[feature].name)}"

    def apply(self, X: ArrayLike) -> NDArray[np.intp]:
        """Leaf of every row (n_rows,), X float (n_rows, n_features) or sparse, with categories as their numbers."""
        table: Any = X
        table = table.tocsr() if issparse(X) else np.asarray(X)
        return choose("cpu", 0).apply(steered(self.forest, self.weight), table)[:, 0].astype(np.intp)

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Value of the leaf of every row (n_rows, outputs, max_n_classes), of one output (n_rows, n_classes).

        Raises
        ------
        ValueError
            If a test sends rows down several branches.
        """
        if self.forest.spreads:
            raise ValueError("rows of this tree may fall into several leaves; use the model's own predict_proba")
        values: NDArray[np.float64] = self.value[self.apply(X)]
        return values[:, 0] if self.n_outputs == 1 else values

    def decision_path(self, X: ArrayLike) -> csr_matrix:
        """Nodes that every row passes, a csr matrix (n_rows, nodes) of ones."""
        return paths(self.forest, self.apply(X))

    def compute_node_depths(self) -> NDArray[np.int64]:
        """Depth of every node, 1 for the root, as scikit-learn counts here."""
        return self.forest.depth.astype(np.int64) + 1

    def compute_feature_importances(self, normalize: bool = True) -> NDArray[np.float64]:
        """Impurity decrease by feature (n_features,), a share of the total if ``normalize``."""
        return importances(self.forest, self.weight, self.n_features, normalize)


@dataclass(frozen=True, slots=True)
class Cuts:
    """The tests of a forest as thresholds, arrays (N,).

    ``low`` is NaN in lookups that no threshold can say. ``swapped`` marks lookups whose branch 1 takes the lower
    numbers, and is to be the left child.
    """

    low: NDArray[np.float64]
    swapped: NDArray[np.bool_]

    @classmethod
    def of(cls, forest: Forest, schema: Schema | None) -> Cuts:
        """Find the place where each lookup of two branches parts the numbers of its categories.

        What the lookup does not list follows ``unseen``, so it must lie on that side of the cut, too.
        """
        owner = np.repeat(np.arange(forest.n_nodes), np.diff(forest.lookup_ptr))
        code, one = forest.lookup_code.astype(np.int64), forest.lookup_branch == 1
        count, first, last = [np.zeros((2, forest.n_nodes), np.int64) for _ in range(3)]
        first += 1 << 16  # above every code
        for branch, here in enumerate((~one, one)):
            np.add.at(count[branch], owner[here], 1)
            np.minimum.at(first[branch], owner[here], code[here])
            np.maximum.at(last[branch], owner[here], code[here])
        lookup = (forest.kind == Test.LOOKUP) & (forest.n_children == 2)
        total = last.max(axis=0) if schema is None else n_categories(forest, schema)
        swapped = lookup & (last[0] >= first[1]) & (last[1] < first[0])
        left, right = np.where(swapped, 1, 0), np.where(swapped, 0, 1)
        nodes = np.arange(forest.n_nodes)
        up_to, n_left, n_right = last[left, nodes], count[left, nodes], count[right, nodes]
        cut = np.where(forest.unseen == left, total - n_right, up_to)  # the last code to the left
        tight = np.where(forest.unseen == left, first[right, nodes] > cut, n_left == up_to)
        good = lookup & (up_to < first[right, nodes]) & tight
        low = np.where(good, cut - 0.5, np.where(forest.kind == Test.LOOKUP, np.nan, forest.low))
        return cls(low, swapped & good)


def n_categories(forest: Forest, schema: Schema) -> NDArray[np.int64]:
    """Number of categories of the column that each node tests (N,), 0 in leaves and for numbers."""
    sizes = [len(feature.categories) for feature in schema.features]
    return np.array([*sizes, 0], np.int64)[forest.feature]  # -1 in leaves is the last


def locked(array: NDArray[Any]) -> NDArray[Any]:
    """The array, read-only."""
    array.setflags(write=False)
    return array


def decreases(forest: Forest, weight: NDArray[np.int64]) -> NDArray[np.float64]:
    """Impurity of every node less that of its children, by their shares of their root's weight (N,); 0 in leaves."""
    whole = np.repeat(np.maximum(weight[forest.roots], 1), np.diff(forest.roots, append=forest.n_nodes))
    cost: NDArray[np.float64] = weight / whole * forest.impurity
    child = np.flatnonzero(forest.parent >= 0)
    decrease = cost.copy()
    np.subtract.at(decrease, forest.parent[child], cost[child])
    decrease[forest.kind == Test.LEAF] = 0.0
    return decrease


def importances(forest: Forest, weight: NDArray[np.int64], n_features: int, normalize: bool) -> NDArray[np.float64]:
    """Mean decrease in impurity (Breiman, Friedman, Olshen and Stone 1984, section 5.3.4) of a tree (n_features,)."""
    decrease = decreases(forest, weight)
    inner = np.flatnonzero(forest.kind != Test.LEAF)
    largest = decrease[inner].max(initial=0.0)
    decrease = decrease / largest if normalize and largest > 0 else decrease  # the sum of huge ones may overflow
    total = np.zeros(n_features)
    np.add.at(total, forest.feature[inner], np.maximum(decrease[inner], 0.0))
    whole = total.sum()
    return total / whole if normalize and whole > 0 else total


def paths(forest: Forest, leaves: NDArray[Any]) -> csr_matrix:
    """Nodes on the way of every row, a csr matrix (n, nodes) of ones; leaves i4 (n,)."""
    length = forest.depth[leaves].astype(np.int64) + 1
    ptr = np.concatenate([[0], np.cumsum(length)])
    nodes = np.empty(ptr[-1], np.int64)
    node, row = leaves.copy(), np.arange(leaves.size)
    while row.size:
        nodes[ptr[row] + forest.depth[node]] = node
        node = forest.parent[node]
        row, node = row[node >= 0], node[node >= 0]
    return csr_matrix((np.ones(nodes.size, np.int64), nodes, ptr), shape=(leaves.size, forest.n_nodes))
