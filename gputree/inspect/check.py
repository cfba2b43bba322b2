"""Whether arrays from anywhere form a tree that every walker may trust. May import everything below.

Each check says in a sentence what it found; nothing here trusts an index before it was compared with its range.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.forest import Forest, Test
from gputree.core.schema import MAX_CODES, Feature, Kind, Schema
from gputree.core.target import Layout

# Type and shape of every array: T trees, N nodes, P = N + 1, L cells of lookups, C channels, O values of a node.
FOREST_TYPES = {
    "roots": ("i4", "T"),
    "kind": ("u1", "N"),
    "feature": ("i4", "N"),
    "low": ("f8", "N"),
    "first_child": ("i4", "N"),
    "n_children": ("u2", "N"),
    "missing": ("u2", "N"),
    "unseen": ("u2", "N"),
    "lookup_ptr": ("i8", "P"),
    "lookup_code": ("u2", "L"),
    "lookup_branch": ("u2", "L"),
    "stats": ("i8", "NC"),
    "score": ("f8", "N"),
    "parent": ("i4", "N"),
    "depth": ("i4", "N"),
    "impurity": ("f8", "N"),
    "value": ("f8", "NO"),
}


def expect(condition: Any, message: str) -> None:
    """Refuse with a message.

    Raises
    ------
    ValueError
        If the condition is false.
    """
    if not condition:
        raise ValueError(message)


def check_tree(forest: Forest, schema: Schema, layout: Layout) -> None:
    """Check that a forest is one tree in breadth-first order, over these columns, with these channels.

    Raises
    ------
    ValueError
        If it is not; the message says what is wrong.
    """
    check_shapes(forest, layout)
    check_links(forest)
    for feature in schema.features:
        check_feature(feature)
    check_tests(forest, schema)
    check_lookups(forest, schema)
    check_numbers(forest, layout)


def check_shapes(forest: Forest, layout: Layout) -> None:
    """Types, and sizes that agree."""
    n = forest.kind.size
    width = sum(layout.sizes) if layout.counts else layout.n_outputs
    sizes = {"T": 1, "N": n, "P": n + 1, "L": forest.lookup_code.size, "C": layout.n_channels, "O": width}
    for name, (dtype, letters) in FOREST_TYPES.items():
        array, shape = getattr(forest, name), tuple(sizes[letter] for letter in letters)
        expect(array.dtype == np.dtype(dtype), f"{name} has type {array.dtype}, not {np.dtype(dtype)}")
        expect(array.shape == shape, f"{name} has shape {array.shape}, not {shape}")
    expect(n >= 1, "there are no nodes")


def check_links(forest: Forest) -> None:
    """Every node but the root has one parent before it: in breadth-first order, children follow one another."""
    expect(forest.roots[0] == 0, f"the root is node {forest.roots[0]}, not 0")
    inner = np.flatnonzero(forest.kind != Test.LEAF)
    leaf = np.flatnonzero(forest.kind == Test.LEAF)
    expect(np.isin(forest.kind, (Test.LEAF, Test.THRESHOLD, Test.LOOKUP)).all(), "a node has an unknown kind")
    for name, blank in (("feature", -1), ("first_child", -1), ("n_children", 0), ("missing", 0), ("unseen", 0)):
        expect((getattr(forest, name)[leaf] == blank).all(), f"a leaf has {name} other than {blank}")
    count = forest.n_children[inner].astype(np.int64)
    expect((count >= 1).all(), "a test has no children")
    expect((count[forest.kind[inner] == Test.THRESHOLD] == 2).all(), "a threshold has other than two children")
    first = 1 + np.cumsum(count) - count
    expect((forest.first_child[inner] == first).all(), "children are not in breadth-first order")
    expect(1 + count.sum() == forest.n_nodes, "the children are not all nodes but the root")
    expect((first > inner).all(), "a child comes before its parent")
    expect(
        forest.parent[0] == -1 and (forest.parent[1:] == np.repeat(inner, count)).all(), "parents differ from children"
    )
    depth = forest.depth.astype(np.int64)
    expect(depth[0] == 0 and (depth[1:] == depth[forest.parent[1:]] + 1).all(), "a depth is not its parent's plus 1")


def check_feature(feature: Feature) -> None:
    """Categories are distinct texts, numbers or booleans."""
    name, categories = feature.name, feature.categories
    expect(len(categories) < MAX_CODES, f"column {name!r} has {len(categories)} categories, more than {MAX_CODES - 1}")
    plain = all(isinstance(c, str | bool | int | float) for c in categories)
    expect(
        plain and len(set(categories)) == len(categories), f"the categories of column {name!r} are not distinct values"
    )


def check_tests(forest: Forest, schema: Schema) -> None:
    """Tests ask existing columns of the right kind and send every value to an existing branch."""
    inner = np.flatnonzero(forest.kind != Test.LEAF)
    feature = forest.feature[inner]
    expect(((feature >= 0) & (feature < schema.n_features)).all(), f"a test is of none of {schema.n_features} features")
    categorical = forest.kind[inner] == Test.LOOKUP
    expect(
        (categorical == (schema.kinds[feature] == Kind.CATEGORICAL)).all(), "a test does not fit the kind of its column"
    )
    expect(not np.isnan(forest.low).any(), "a threshold is NaN")
    for name in ("missing", "unseen"):
        expect(
            (getattr(forest, name)[inner] < forest.n_children[inner]).all(), f"{name} names a branch that is not there"
        )


def check_lookups(forest: Forest, schema: Schema) -> None:
    """Cells of lookups: ascending codes of existing categories, existing branches."""
    ptr = forest.lookup_ptr
    expect(ptr[0] == 0 and (ptr[1:] >= ptr[:-1]).all(), "lookup_ptr does not rise from 0")
    expect(ptr[-1] == forest.lookup_code.size, "lookup_ptr does not end at the number of cells")
    count = ptr[1:] - ptr[:-1]
    expect(((count > 0) == (forest.kind == Test.LOOKUP)).all(), "a lookup has no cells, or another node has some")
    owner = np.repeat(np.arange(forest.n_nodes), count)
    categories = np.array([len(f.categories) for f in schema.features])[forest.feature[owner]]
    code = forest.lookup_code.astype(np.int64)
    expect(((code >= 1) & (code <= categories)).all(), "a lookup has a code that is no category")
    expect((np.diff(owner << 16 | code) > 0).all(), "the codes of a lookup do not ascend")
    expect((forest.lookup_branch < forest.n_children[owner]).all(), "a lookup names a branch that is not there")


def check_numbers(forest: Forest, layout: Layout) -> None:
    """Counts are not negative, values are finite, shares lie in 0 to 1."""
    stats: NDArray[np.int64] = forest.stats
    weight = stats if layout.counts else stats[:, [0, *([layout.rows] if layout.rows > 0 else [])]]
    expect((weight >= 0).all(), "a count is negative")
    for name in ("value", "score", "impurity"):
        expect(np.isfinite(getattr(forest, name)).all(), f"{name} is not finite")
    expect((forest.impurity >= 0).all(), "an impurity is negative")
    if layout.counts:
        expect(((forest.value >= 0) & (forest.value <= 1)).all(), "a share of a class is not in 0 to 1")
