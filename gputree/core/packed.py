"""A fitted forest without all that follows from the rest of it, and whole again. May import NumPy and core only.

One table, `RULES`, says of every array how it follows from those before it. What follows to the last bit is left out;
else an array is kept, of inner nodes or leaves alone where the others have a blank, in the smallest type that holds it.
So a forest that was changed by hand is packed like any other, only in more bytes. The rules are part of the model file:
a rule that changes needs a new format.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gputree.core.criteria import Criterion
from gputree.core.families import Family, add_up, depths, first_children, known_branches, parents, tree_ends
from gputree.core.forest import Forest, Test
from gputree.core.schema import Kind, Schema
from gputree.core.scores import gains_segmented, grid
from gputree.core.summary import count_impurity, count_shares
from gputree.core.target import Layout

Arrays: TypeAlias = dict[str, NDArray[Any]]
Part: TypeAlias = "NDArray[Any] | None"

LEAF = "leaf"  # bool (N,): the only array that nothing else says; and the nodes in it
INNER = "inner"
ALL, CELLS, NEVER = "all", "cells", "never"  # kept of all nodes; of the cells of lookups; by no forest in our order


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the arrays of a forest mean: channels, columns, and what scores and impurities were computed by."""

    layout: Layout
    schema: Schema
    criterion: Criterion


@dataclass(frozen=True, slots=True)
class Known:
    """The arrays so far, and what they mean."""

    meaning: Meaning
    arrays: Arrays = field(default_factory=dict)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.arrays[name]

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.arrays[LEAF].size

    def nodes(self, where: str) -> NDArray[np.bool_]:
        """Which nodes (N,) are leaves, or inner ones."""
        leaf: NDArray[np.bool_] = self.arrays[LEAF]
        return leaf if where == LEAF else ~leaf

    def family(self) -> Family:
        """Inner nodes and children."""
        return Family.of(self["n_children"], self["roots"])

    def weight(self) -> NDArray[np.int64]:
        """Weight of every node (N,)."""
        return self.meaning.layout.weight(self["stats"].T)

    def draft(self) -> Forest:
        """The forest; the arrays that are not known yet are empty."""
        return Forest(**{f.name: self.arrays.get(f.name, np.zeros(0)) for f in fields(Forest)})


@dataclass(frozen=True, slots=True)
class Rule:
    """How an array follows from those before it and from its part in some nodes, if that is given; None if it does not.

    ``where`` says of what it is kept.
    """

    dtype: Any
    follow: Callable[[Known, Part], Part]
    where: str


def blank(value: float, dtype: str, default: float) -> Rule:
    """One value in leaves, and another in inner nodes but where they have their own."""

    def follow(known: Known, part: Part) -> NDArray[Any]:
        full = np.full(known.n_nodes, value, dtype)
        full[known.nodes(INNER)] = default if part is None else part
        return full

    return Rule(dtype, follow, INNER)


def derived(dtype: str, make: Callable[[Known], Part], where: str = NEVER) -> Rule:
    """An array that follows whole or not at all."""
    return Rule(dtype, lambda known, part: make(known) if part is None else part, where)


def branches(make: Callable[[Known], NDArray[Any]]) -> Rule:
    """Branches of inner nodes (I,), 0 in leaves."""

    def follow(known: Known, part: Part) -> NDArray[Any]:
        full = np.zeros(known.n_nodes, np.uint16)
        full[known.nodes(INNER)] = make(known) if part is None else part
        return full

    return Rule("u2", follow, INNER)


def roots(known: Known) -> NDArray[np.int32]:
    """The first node, and those behind the end of a tree."""
    if (known["n_children"][known.nodes(INNER)] < 2).any():
        raise ValueError("a test has fewer than two children")
    return np.concatenate([[0], tree_ends(known["n_children"])[:-1]]).astype(np.int32)


def kinds(known: Known, part: Part) -> NDArray[np.uint8]:
    """Tests of categories look them up, unless they ask whether the value is missing."""
    schema, inner = known.meaning.schema, known.nodes(INNER)
    feature = np.clip(known["feature"][inner], 0, max(0, schema.n_features - 1))
    lookup = (schema.kinds[feature] == Kind.CATEGORICAL) & (known["low"][inner] != np.inf)
    full = np.zeros(known.n_nodes, np.uint8)
    full[inner] = np.where(lookup, np.uint8(Test.LOOKUP), np.uint8(Test.THRESHOLD)) if part is None else part
    return full


def pointers(known: Known) -> NDArray[np.int64]:
    """Where the cells of the nodes begin."""
    return np.concatenate([[0], np.cumsum(known["lookup_count"])]).astype(np.int64)


def checked_cells(known: Known, part: Part) -> Part:
    """Branches of cells, which the rules behind this one follow."""
    code, count = known["lookup_code"], known["lookup_count"]
    if part is None and code.size:
        return None
    cells = np.zeros(0, np.uint16) if part is None else part
    fits = (count >= 0).all() and (count <= code.size).all() and count.sum() == code.size == cells.size
    if not fits:
        raise ValueError("the cells of lookups are not as many as their nodes say")
    if (cells >= known["n_children"][np.repeat(np.arange(known.n_nodes), count)]).any():
        raise ValueError("a lookup names a branch that is not there")
    return cells


def totals(known: Known, part: Part) -> Part:
    """Channels of leaves, and in inner nodes their sums."""
    links = known["parent"], known["depth"], known["first_child"]
    return None if part is None else add_up(part, known[LEAF], links)


def no_sums(known: Known) -> Part:
    """Sums of no output, where all channels are counts."""
    return np.zeros((known.n_nodes, 0), np.int64) if known.meaning.layout.counts else None


def stats(known: Known) -> NDArray[np.int64]:
    """All channels in order."""
    full = np.concatenate([known["counts"], known["sums"]], axis=1)
    return np.ascontiguousarray(full[:, np.argsort(np.concatenate(channels(known.meaning.layout)), kind="stable")])


def channels(layout: Layout) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Numbers of the channels that count, and of those that are sums of y."""
    is_sum = np.zeros(layout.n_channels, bool)
    is_sum[1 : 1 + (0 if layout.counts else layout.n_outputs)] = True
    return np.flatnonzero(~is_sum), np.flatnonzero(is_sum)


def heaviest(known: Known) -> NDArray[np.int64]:
    """Where a missing value goes that the node met none of."""
    return known.family().largest(known.weight())


def heaviest_known(known: Known) -> NDArray[np.int64]:
    """Where a value goes that the node did not meet: never to a branch of missing values alone."""
    return known.family().largest(np.where(known_branches(known.draft()), known.weight(), -1))


def scores(known: Known) -> NDArray[np.float64]:
    """Scores (I,) of the tests: the criterion of the children that have rows, in their order, on its grid."""
    layout, criterion, family = known.meaning.layout, known.meaning.criterion, known.family()
    weight = known.weight()
    child = family.below[weight[family.below] > 0]
    parent = known["parent"][child]
    starts = np.flatnonzero(np.diff(parent, prepend=-1))
    total, own = known["stats"].T[:, parent], known["stats"].T[:, child]
    means, N = layout.means(total), weight[parent].astype(np.float64)
    gain, info = np.zeros(starts.size), np.zeros(starts.size)
    for o in range(layout.n_outputs):
        X, x = (layout.floats(s, o, layout.weight(s), means[o]) for s in (total, own))
        more, info = gains_segmented(criterion, x, weight[child].astype(np.float64), X, N, starts)
        gain += more
    inner = known["stats"].T[:, parent[starts]]
    return grid(criterion.final(gain, info, N[starts]), layout.cancelling(criterion, inner))


def scored(known: Known, part: Part) -> Part:
    """Scores of inner nodes, 0 in leaves."""
    full, inner = np.zeros(known.n_nodes), known.nodes(INNER)
    found = scores(known) if part is None and inner.any() else part
    if found is not None:
        if found.size != inner.sum():
            return None
        full[inner] = found
    return full


def values(known: Known) -> Part:
    """Shares of classes, which follow from the counts; means do not."""
    return count_shares(known.draft(), known.meaning.layout) if known.meaning.layout.counts else None


def impurities(known: Known) -> Part:
    """Those of classes."""
    meaning = known.meaning
    return count_impurity(known.draft(), meaning.layout, meaning.criterion) if meaning.layout.counts else None


RULES: dict[str, Rule] = {
    "n_children": blank(0, "u2", 2),
    "roots": derived("i4", roots),
    "first_child": derived("i4", lambda known: first_children(known["n_children"], known["roots"])),
    "parent": derived("i4", lambda known: parents(known["n_children"], known["roots"])),
    "depth": derived("i4", lambda known: depths(known["n_children"], known["roots"])),
    "feature": blank(-1, "i4", -1),
    "low": blank(0.0, "f8", 0.0),
    "kind": Rule("u1", kinds, INNER),
    "met_missing": blank(0, "u1", 0),
    "lookup_count": blank(0, "i8", 0),
    "lookup_ptr": derived("i8", pointers),
    "lookup_code": derived("u2", lambda known: np.zeros(0, np.uint16), CELLS),
    "lookup_branch": Rule("u2", checked_cells, CELLS),
    "counts": Rule("i8", totals, LEAF),
    "sums": Rule("i8", lambda known, part: no_sums(known) if part is None else totals(known, part), LEAF),
    "stats": derived("i8", stats),
    "missing": branches(heaviest),
    "unseen": branches(heaviest_known),
    "value": derived("f8", values, ALL),
    "impurity": derived("f8", impurities, ALL),
    "score": Rule("f8", scored, INNER),
}


def pack(forest: Forest, meaning: Meaning) -> Arrays:
    """What a forest cannot do without: ``leaf`` bool (N,), and the arrays of `RULES` that their rules do not give.

    Parameters
    ----------
    forest : Forest
        Its nodes in canonical order; other forests are refused, or kept whole.
    meaning : Meaning
        What is given to `unpack` again.

    Returns
    -------
    dict of str to array
        In the order of `RULES`; the forest is not changed.

    Raises
    ------
    ValueError, IndexError
        If the arrays do not fit one another.
    """
    channel = channels(meaning.layout)
    whole = {f.name: getattr(forest, f.name) for f in fields(forest)}
    whole |= {name: forest.stats[:, own] for name, own in zip(("counts", "sums"), channel, strict=True)}
    whole["lookup_count"] = np.diff(forest.lookup_ptr)
    known = Known(meaning, {LEAF: forest.kind == Test.LEAF})
    packed: Arrays = {LEAF: known[LEAF]}
    with np.errstate(all="ignore"):
        for name in RULES:
            kept = needed(known, name, whole[name])
            packed |= {} if kept is None else {name: narrow(kept)}
            known.arrays[name] = whole[name]
    return packed


def needed(known: Known, name: str, array: NDArray[Any]) -> Part:
    """What must be kept of an array: nothing, its part in some nodes, or all of it."""
    rule = RULES[name]
    parts = [None, array[known.nodes(rule.where)]] if rule.where in (INNER, LEAF) else [None]
    for part in parts:
        made = rule.follow(known, part)
        if made is not None and same_bits(made, array):
            return part
    if rule.where == NEVER or array.dtype != np.dtype(rule.dtype):
        raise ValueError(f"{name} is not what it is in a forest in canonical order")
    return array


def same_bits(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether two arrays are equal, the sign of zero and what is not a number included."""
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    bits = f"u{a.dtype.itemsize}"
    return bool((np.ascontiguousarray(a).view(bits) == np.ascontiguousarray(b).view(bits)).all())


def narrow(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in the smallest type that holds them all.

    Examples
    --------
    >>> [narrow(np.array(a)).dtype.str for a in ([0, 255], [-1, 300], [0.5], [0.1])]
    ['|u1', '<i2', '<f4', '<f8']
    """
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            short = array.astype(np.float32)
        return short if same_bits(short.astype(array.dtype), array) else array
    low, high = int(array.min(initial=0)), int(array.max(initial=0))
    sign = "i" if low < 0 else "u"
    types = (np.dtype(f"{sign}{size}") for size in (1, 2, 4, 8))
    return array.astype(next(t for t in types if np.iinfo(t).min <= low and high <= np.iinfo(t).max))


def unpack(packed: Arrays, meaning: Meaning) -> Forest:
    """The forest that `pack` was given, to the last bit.

    Parameters
    ----------
    packed : dict of str to array
        From `pack`, or from anywhere: whatever is wrong in it, the forest holds no index that its own building would
        trip over. It is sound only after `gputree.inspect.check.check_forest`.
    meaning : Meaning
        As it was given to `pack`.

    Raises
    ------
    ValueError
        If an array is missing, too many, or of another size or type than its nodes ask for.
    """
    leaf = packed.get(LEAF, np.zeros(0))
    if leaf.ndim != 1 or leaf.dtype != bool or not leaf.size:
        raise ValueError("there are no nodes")
    strange = sorted(set(packed) - set(RULES) - {LEAF})
    if strange:
        raise ValueError(f"a forest has no array {strange[0]!r}")
    known = Known(meaning, {LEAF: leaf})
    with np.errstate(all="ignore"):
        for name, rule in RULES.items():
            given = widened(packed[name], name, rule.dtype) if name in packed else None
            known.arrays[name] = restored(known, name, given)
    return known.draft()


def widened(array: NDArray[Any], name: str, dtype: str) -> NDArray[Any]:
    """The numbers in their own type."""
    wide = np.dtype(dtype)
    if array.dtype.kind not in ("f" if wide.kind == "f" else "iu"):
        raise ValueError(f"{name} has type {array.dtype}, which is no shorter {wide}")
    full = array.astype(wide)
    if wide.kind != "f" and not (full == array).all():
        raise ValueError(f"{name} holds numbers beyond {wide}")
    return full


def restored(known: Known, name: str, given: Part) -> NDArray[Any]:
    """An array, from what was kept of it and by its rule."""
    rule = RULES[name]
    if given is not None:
        whole, part = shapes(known, name) if rule.where != CELLS else (given.shape[:1],) * 2
        if rule.where == NEVER or given.shape not in (whole, part):
            raise ValueError(f"{name} has shape {given.shape}, and its nodes ask for {part}")
        if given.shape == whole != part:
            return given
    made = rule.follow(known, given)
    if made is None:
        raise ValueError(f"there is no array {name!r}, and it does not follow from the others")
    return made


def shapes(known: Known, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of an array for all nodes, and for those that it is kept of."""
    layout, where = known.meaning.layout, RULES[name].where
    counts, sums = channels(layout)
    width = sum(layout.sizes) if layout.counts else layout.n_outputs
    tail = {"counts": (counts.size,), "sums": (sums.size,), "value": (width,)}.get(name, ())
    n_kept = int(known.nodes(where).sum()) if where in (INNER, LEAF) else known.n_nodes
    return (known.n_nodes, *tail), (n_kept, *tail)
