"""Whether arrays from anywhere form trees that every walker may trust. May import everything below.

Each check says in a sentence what it found; nothing here trusts an index before it was compared with its range. All of
them go over whole arrays, so that a chain of a million nodes costs no more than a bush of as many.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.families import Family, against_rest, known_branches
from gputree.core.forest import SPREAD, STAY, Forest, Test
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
    "met_missing": ("u1", "N"),
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
BLANK = (
    *(("feature", -1), ("low", 0), ("first_child", -1), ("n_children", 0), ("missing", 0), ("unseen", 0)),
    *(("met_missing", 0), ("score", 0)),
)  # what a leaf has
WRAP = 2.0**60  # sums of 64-bit integers that overflowed are off by 2**64; sums of floats by far less than this
ROUNDING = 2.0**-20  # of the largest mean of a tree: more than any library's sums lose, and less than a mistake makes


def expect(condition: Any, message: str) -> None:
    """Refuse with a message.

    Raises
    ------
    ValueError
        If the condition is false.

    Examples
    --------
    >>> expect(2 < 1, "2 is not below 1")
    Traceback (most recent call last):
    ...
    ValueError: 2 is not below 1
    """
    if not condition:
        raise ValueError(message)


def check_forest(forest: Forest, schema: Schema, layout: Layout, clipped: bool = False) -> None:
    """Check that a forest holds trees one after another, breadth first, over these columns, with these channels.

    ``clipped`` says that monotone constraints may have moved values away from the shares of a node.

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
    family = Family.of(forest.n_children, forest.roots)
    check_finite(forest)
    check_stats(forest, layout, family)
    check_branches(forest, layout, family)
    check_values(forest, layout, family, clipped)


def check_shapes(forest: Forest, layout: Layout) -> None:
    """Types, and sizes that agree."""
    n = forest.kind.size
    width = sum(layout.sizes) if layout.counts else layout.n_outputs
    sizes = {
        "T": forest.roots.size,
        "N": n,
        "P": n + 1,
        "L": forest.lookup_code.size,
        "C": layout.n_channels,
        "O": width,
    }
    for name, (dtype, letters) in FOREST_TYPES.items():
        array, shape = getattr(forest, name), tuple(sizes[letter] for letter in letters)
        expect(array.dtype == np.dtype(dtype), f"{name} has type {array.dtype}, not {np.dtype(dtype)}")
        expect(array.shape == shape, f"{name} has shape {array.shape}, not {shape}")
    expect(n >= 1, "there are no nodes")


def check_links(forest: Forest) -> None:
    """Every node but the roots has one parent before it: in breadth-first order, children follow one another."""
    roots, n = forest.roots.astype(np.int64), forest.n_nodes
    expect(roots.size > 0, "there are no roots")
    expect(roots[0] == 0, f"the root is node {roots[0]}, not 0")
    expect((np.diff(roots, append=n) > 0).all(), "the roots do not ascend")
    known = (forest.kind == Test.LEAF) | (forest.kind == Test.THRESHOLD) | (forest.kind == Test.LOOKUP)
    expect(known.all(), "a node has an unknown kind")
    leaf = forest.kind == Test.LEAF
    for name, blank in BLANK:
        expect((getattr(forest, name)[leaf] == blank).all(), f"a leaf has {name} other than {blank}")
    expect((forest.n_children[~leaf] >= 2).all(), "a test has fewer than two children")
    family = Family.of(forest.n_children, roots)
    inner, count = family.inner, family.count
    expect((count[forest.kind[inner] == Test.THRESHOLD] == 2).all(), "a threshold has other than two children")
    expect(count.sum() == family.below.size, "the children are not all nodes but the roots")
    first = family.below[family.start]
    expect((forest.first_child[inner] == first).all(), "children are not in breadth-first order")
    expect((first > inner).all(), "a child comes before its parent")
    parent = np.repeat(inner, count)
    expect(
        (forest.parent[roots] == -1).all() and (forest.parent[family.below] == parent).all(),
        "parents differ from children",
    )
    tree = np.repeat(np.arange(roots.size), np.diff(roots, append=n))
    expect((tree[family.below] == tree[parent]).all(), "a child is in another tree than its parent")
    depth = forest.depth.astype(np.int64)
    expect(
        (depth[roots] == 0).all() and (depth[family.below] == depth[parent] + 1).all(),
        "a depth is not its parent's plus 1",
    )


def check_feature(feature: Feature) -> None:
    """Categories are distinct texts, numbers or booleans; a column of numbers has none."""
    name, categories = feature.name, feature.categories
    if feature.kind == Kind.NUMERIC:
        expect(not categories and not feature.declared, f"column {name!r} holds numbers and has categories")
    expect(len(categories) < MAX_CODES, f"column {name!r} has {len(categories)} categories, more than {MAX_CODES - 1}")
    plain = all(isinstance(c, str | bool | int | float | np.bool_ | np.number) and c == c for c in categories)
    expect(
        plain and len(set(categories)) == len(categories), f"the categories of column {name!r} are not distinct values"
    )


def check_tests(forest: Forest, schema: Schema) -> None:
    """Tests ask existing columns of the right kind and send every value to an existing branch."""
    inner = np.flatnonzero(forest.kind != Test.LEAF)
    feature = forest.feature[inner]
    expect(((feature >= 0) & (feature < schema.n_features)).all(), f"a test is of none of {schema.n_features} features")
    low, lookup = forest.low[inner], forest.kind[inner] == Test.LOOKUP
    expect(not np.isnan(low).any(), "a threshold is NaN")
    alone = low == np.inf
    fits = np.where(schema.kinds[feature] == Kind.CATEGORICAL, lookup | alone, ~lookup)
    expect(fits.all(), "a test does not fit the kind of its column")
    expect((low[lookup] == 0).all(), "a lookup has low other than 0")
    for name, may_stay in (("missing", forest.met_missing[inner] == 0), ("unseen", lookup)):
        branch = getattr(forest, name)[inner]
        there = (branch < forest.n_children[inner]) | (branch == SPREAD) | ((branch == STAY) & may_stay)
        expect(there.all(), f"{name} names a branch that is not there")
    expect((forest.met_missing <= 1).all(), "met_missing is neither 0 nor 1")
    asks = (forest.met_missing[inner] == 1) & (forest.missing[inner] == 1)
    expect(asks[alone].all(), "a threshold is infinite where the test does not ask whether a value is missing")


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


def check_finite(forest: Forest) -> None:
    """No NaN and no infinity where there must be none."""
    for name in ("value", "score", "impurity"):
        expect(np.isfinite(getattr(forest, name)).all(), f"{name} is not finite")
    expect((forest.impurity >= 0).all(), "an impurity is negative")


def check_stats(forest: Forest, layout: Layout, family: Family) -> None:
    """Counts are not negative, nodes are the sums of their children, and only branches of lookups may be empty."""
    stats = forest.stats
    counts = stats if layout.counts else stats[:, [0, *([layout.rows] if layout.rows > 0 else [])]]
    expect((counts >= 0).all(), "a count is negative")
    if family.inner.size:
        total = np.add.reduceat(stats[family.below], family.start, axis=0)
        own, apart = stats[family.inner], spread_rows(forest, layout, family)
        added = np.where(apart, total >= own, total == own)
        expect(added.all(), "the stats of a node are not the sum of its children's")
        if max(int(stats.max()), -int(stats.min())) * int(family.count.max()) >= 2**63:
            rough = np.add.reduceat(stats[family.below].astype(np.float64), family.start, axis=0)
            expect((np.abs(rough - stats[family.inner]) < WRAP).all(), "the stats of the children of a node overflow")
    for o in range(layout.n_outputs if layout.counts else 0):
        each = stats[:, layout.output(o)]
        expect((np.abs(each.sum(axis=1, dtype=np.float64)) < WRAP).all(), "the counts of a node overflow")
        expect((each.sum(axis=1) == layout.weight(stats.T)).all(), "the weights of a node differ by output")
    weight, rows = layout.weight(stats.T), layout.count(stats.T)
    expect(((weight > 0) == (rows > 0)).all(), "a node has rows without weight, or weight without rows")
    expect((rows <= weight).all(), "a node has more rows than units of weight")
    expect((weight[forest.roots] > 0).all(), "the root has no weight")
    above = forest.kind[forest.parent[family.below]]
    expect((weight[family.below][above != Test.LOOKUP] > 0).all(), "a branch of a threshold has no weight")
    expect((weight[family.inner] > 0).all(), "a test has no weight")


def spread_rows(forest: Forest, layout: Layout, family: Family) -> NDArray[np.bool_]:
    """Where a row counts in several children: the channel of rows in tests that spread some, bool (I, C).

    A lookup may have met categories that it does not list, if pruning put it in the place of a test above.
    """
    missing = (forest.missing == SPREAD) & (forest.met_missing == 1)
    unlisted = (forest.unseen == SPREAD) & (forest.kind == Test.LOOKUP)
    spread = (missing | unlisted)[family.inner]
    apart: NDArray[np.bool_] = spread[:, None] & (np.arange(layout.n_channels) == layout.rows)
    return apart


def check_branches(forest: Forest, layout: Layout, family: Family) -> None:
    """Every branch is some value's, and values that a node never met follow the child of larger weight.

    The first format sent categories that a node never met to the child of most rows, whatever it was, and its files
    are to predict as they always did: both rules are allowed.
    """
    inner, known = family.inner, known_branches(forest)
    met = inner[(forest.met_missing[inner] == 1) & (forest.missing[inner] != SPREAD)]
    taken = known.copy()
    taken[forest.first_child[met] + forest.missing[met]] = True
    expect(taken.all(), "no value leads to a branch")
    weight, rows = layout.weight(forest.stats.T), layout.count(forest.stats.T)
    missing = forest.missing[inner]
    unmet = (forest.met_missing[inner] == 0) & ~np.isin(missing, (SPREAD, STAY))
    expect(
        (missing == family.largest(weight))[unmet].all(),
        "missing is not the child of larger weight where no row was missing",
    )
    heaviest = family.largest(np.where(known, weight, -1))
    unseen = forest.unseen[inner]
    free = np.isin(unseen, (SPREAD, STAY)) | against_rest(forest)[inner]
    fits = (unseen == heaviest) | (unseen == family.largest(rows)) | free
    expect(fits.all(), "unseen is not the child of larger weight")


def check_values(forest: Forest, layout: Layout, family: Family, clipped: bool) -> None:
    """Shares are those of the counts, means lie between those of the children, a node without rows has its parent's.

    A leaf of one output may be of one class alone: pruning gives it any.
    """
    value, weight = forest.value, layout.weight(forest.stats.T)
    empty = np.flatnonzero(weight == 0)
    expect((value[empty] == value[forest.parent[empty]]).all(), "a node without rows has not the value of its parent")
    if not layout.counts:
        check_means(value, family)
        return
    expect(((value >= 0) & (value <= 1)).all(), "a share of a class is not in 0 to 1")
    full = np.flatnonzero(weight > 0)
    share = forest.stats[full, : sum(layout.sizes)] / weight[full, None]
    one = ((value[full] == 0) | (value[full] == 1)).all(axis=1) & (value[full].sum(axis=1) == 1)
    labelled = one & (forest.kind[full] == Test.LEAF) & (layout.n_outputs == 1)
    counted = ((value[full] == share).all(axis=1) | labelled).all()
    if clipped and layout.sizes == (2,) and not counted:
        check_clipped(value, share[:, 1], np.searchsorted(full, forest.roots), forest.roots)
    else:
        expect(counted, "a share of a class is not that of its counts")


def check_clipped(value: NDArray[np.float64], share: NDArray[np.float64], places: Any, roots: Any) -> None:
    """Shares of two classes under monotone constraints (N, 2) beside those of the second class as counted (n,).

    ``places`` (T,) are those of the roots among the counted.
    """
    second = value[:, 1]
    expect((value[:, 0] == 1.0 - second).all(), "the shares of two classes do not add up to 1")
    expect((second[roots] == share[places]).all(), "the share of a class in the root is not that of its counts")
    within = (second >= share.min()) & (second <= share.max())
    expect(within.all(), "a share of a class is beyond those of all nodes")


def check_means(value: NDArray[np.float64], family: Family) -> None:
    """A mean lies between those of the children, clipped by monotone constraints or not, but for rounding."""
    if not family.inner.size:
        return
    lowest = np.minimum.reduceat(value[family.below], family.start, axis=0)
    highest = np.maximum.reduceat(value[family.below], family.start, axis=0)
    slack = np.abs(value).max(axis=0) * ROUNDING + np.finfo(np.float64).tiny
    mean = value[family.inner]
    with np.errstate(over="ignore"):
        inside = (mean >= lowest - slack) & (mean <= highest + slack)
    expect(inside.all(), "the mean of a node is beyond those of its children")
