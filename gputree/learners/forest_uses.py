"""What a forest tells beyond predictions: importances without bias, leaves of rows, and which rows are alike.

May import everything below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from gputree.core.forest import Forest
from gputree.core.keys import Stream, draw, root_keys
from gputree.core.routes import Parts, branch_shares, from_left, leaf_parts
from gputree.learners.held_out import dense

DENSE_CELLS = 1 << 24  # of a matrix of proximities; larger ones are sparse


def upward_sums(forest: Forest, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums over the leaves below every node of one tree; ``sums`` (N, O) holds those of the leaves."""
    total = sums.copy()
    for level in range(forest.max_depth, 0, -1):
        nodes = np.flatnonzero(forest.depth == level)
        np.add.at(total, forest.parent[nodes], total[nodes])
    return total


def unbiased_importances(
    forest: Forest, leaves: NDArray[Any], y: NDArray[np.float64], n_features: int
) -> NDArray[np.float64]:
    """Impurity decrease of one tree on rows that it has not seen, (n_features,); ``leaves`` (n,), y f8 (n, O).

    MDI-oob of Li, Wang, Basu, Kumbier and Yu (2019), "A debiased MDI feature importance measure for random forests",
    NeurIPS, equation 7: the tree's own means, times what unseen rows of a node add up to. A split that only fits noise
    gains nothing there.
    """
    sums = np.zeros((forest.n_nodes, y.shape[1]))
    np.add.at(sums, leaves, y)
    product = (forest.value * upward_sums(forest, sums)).sum(axis=1)
    gain = np.zeros(forest.n_nodes)
    child = np.flatnonzero(forest.parent >= 0)
    np.add.at(gain, forest.parent[child], product[child])
    inner = np.flatnonzero(forest.feature >= 0)
    total = np.zeros(n_features)
    np.add.at(total, forest.feature[inner], (gain - product)[inner])
    return total / max(leaves.size, 1)


def shuffles(seed: int, tree: int, rows: NDArray[np.int64], groups: int) -> Iterator[NDArray[np.intp]]:
    """A permutation of some rows for each group of columns, by hash."""
    key = root_keys(seed, tree)
    for group in range(groups):
        index = (np.uint64(group) << np.uint64(40)) | rows.astype(np.uint64)
        yield np.argsort(draw(key, Stream.SHUFFLE, index), kind="stable")


def shuffled(X: NDArray[Any], columns: Sequence[int], order: NDArray[np.intp]) -> NDArray[Any]:
    """X with the values of some columns in another order of rows."""
    changed = X.copy()
    changed[:, columns] = X[order][:, columns]
    return changed


def membership(leaves: NDArray[Any], n_nodes: int, counted: NDArray[np.bool_] | None) -> csr_matrix:
    """1 where a row (n,) is in a leaf of the forest, csr (n, n_nodes); leaves (n, T), ``counted`` bool (n, T)."""
    counted = np.ones(leaves.shape, bool) if counted is None else counted
    row, tree = np.nonzero(counted)
    ptr = np.concatenate([[0], np.cumsum(counted.sum(axis=1))])
    return csr_matrix((np.ones(row.size), leaves[row, tree], ptr), shape=(leaves.shape[0], n_nodes))


def leaf_weights(model: Any, X: Any) -> csr_matrix:
    """What `leaf_weights` of trees and of forests give."""
    check_is_fitted(model, "forest_")
    forest: Forest = model.forest_
    if not forest.spreads:
        found = membership(model._leaves(X), forest.n_nodes, None)
    else:
        rows, place = dense(model._read(X, check_input=True)), from_left(forest)
        share, soft = branch_shares(forest, model.layout_.weight(forest.stats.T)), model._soft()
        wholes = [Parts.whole(rows.shape[0], int(root)) for root in forest.roots]
        at = Parts.joined([p for whole in wholes for p in leaf_parts(forest, whole, rows, share, place, soft)])
        found = csr_matrix((at.weight, (at.row, at.node)), shape=(rows.shape[0], forest.n_nodes))
    return csr_matrix(found / forest.roots.size)


def proximities(
    one: csr_matrix, other: csr_matrix, together: NDArray[np.float64] | int
) -> NDArray[np.float64] | csr_matrix:
    """Share of the trees in which two rows share a leaf, (n, m); sparse where it is large.

    ``together`` is the number of trees that count, for all pairs or (n, m).
    """
    same = one @ other.T
    if same.shape[0] * same.shape[1] > DENSE_CELLS and not isinstance(together, np.ndarray):
        same.data /= together  # scipy would multiply by the inverse, which rounds otherwise
        return csr_matrix(same)
    with np.errstate(invalid="ignore", divide="ignore"):
        dense: NDArray[np.float64] = np.asarray(same.todense()) / together
    return dense


def weighted_quantiles(
    weights: csr_matrix, y: NDArray[np.float64], quantiles: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Smallest y at which the summed weight reaches each share, f8 (n, Q), NaN without any; weights csr (n, rows)."""
    order = np.argsort(y, kind="stable")
    ranked = weights[:, order].tocsr()
    ranked.sort_indices()
    result = np.full((ranked.shape[0], quantiles.size), np.nan)
    for i in np.flatnonzero(np.diff(ranked.indptr)):
        own = slice(ranked.indptr[i], ranked.indptr[i + 1])
        total = np.cumsum(ranked.data[own])
        reached = np.searchsorted(total / total[-1], quantiles * (1.0 - 2.0**-40), side="left")
        result[i] = y[order][ranked.indices[own][np.minimum(reached, total.size - 1)]]
    return result
