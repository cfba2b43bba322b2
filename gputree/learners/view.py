"""``tree_``: a fitted tree under scikit-learn's array names, read only. May import core and backends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from gputree.backends import choose
from gputree.core.forest import Forest, Test

LEAF = -1  # a missing child
UNDEFINED = -2  # feature and threshold of a leaf


@dataclass(frozen=True)
class TreeView:
    """One binary tree under the array names of ``sklearn.tree._tree.Tree``; every array is read-only.

    Node ids are breadth first: the root is 0, its children 1 and 2, then their children (scikit-learn numbers depth
    first). Arrays of children and thresholds exist for binary threshold tests only.
    """

    forest: Forest
    weight_unit: float
    rows: NDArray[np.int64]
    weight: NDArray[np.int64]
    n_features: int
    n_classes: NDArray[np.intp]  # (outputs,); 1 for regression

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
        """Threshold (nodes,), x <= threshold goes left; -2 in leaves, +inf where missing values alone go right."""
        self.require_binary()
        return locked(np.where(self.inner, self.forest.low, float(UNDEFINED)))

    @cached_property
    def missing_go_to_left(self) -> NDArray[np.uint8]:
        """Whether missing values go left (nodes,), 0 in leaves."""
        self.require_binary()
        return locked((self.inner & (self.forest.missing == 0)).astype(np.uint8))

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

    def child(self, branch: int) -> NDArray[np.intp]:
        """Children of one branch, -1 in leaves."""
        self.require_binary()
        return locked(np.where(self.inner, self.forest.first_child + branch, LEAF).astype(np.intp))

    def require_binary(self) -> None:
        """Refuse what two children and a threshold cannot say."""
        odd = np.flatnonzero(self.inner & (self.forest.kind != Test.THRESHOLD))
        if odd.size:
            raise ValueError(
                f"node {odd[0]} sends the categories of column {self.forest.feature[odd[0]]} to "
                f"{self.forest.n_children[odd[0]]} branches, which scikit-learn's arrays of two children and a "
                "threshold cannot hold; read model.forest_ instead"
            )

    def apply(self, X: ArrayLike) -> NDArray[np.intp]:
        """Leaf of every row (n_rows,), X float (n_rows, n_features) with categories as their numbers."""
        return choose("cpu", 0).apply(self.forest, np.asarray(X))[:, 0].astype(np.intp)

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Value of the leaf of every row (n_rows, outputs, max_n_classes), of one output (n_rows, n_classes)."""
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


def locked(array: NDArray[Any]) -> NDArray[Any]:
    """The array, read-only."""
    array.setflags(write=False)
    return array


def importances(forest: Forest, weight: NDArray[np.int64], n_features: int, normalize: bool) -> NDArray[np.float64]:
    """Mean decrease in impurity (Breiman, Friedman, Olshen and Stone 1984, section 5.3.4) of a tree (n_features,)."""
    cost = weight / max(weight[0], 1) * forest.impurity
    child = np.flatnonzero(forest.parent >= 0)
    inner = np.flatnonzero(forest.kind != Test.LEAF)
    decrease = cost.copy()
    np.subtract.at(decrease, forest.parent[child], cost[child])
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
