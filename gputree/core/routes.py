"""Where rows go, one step at a time; a test with SPREAD sends what it does not know down every branch, in shares.

At a test with STAY such a row ends. A threshold may be soft: then it has two bounds, and a value between them goes down
both branches, see `low_share`.

May import NumPy and core only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gputree.core.families import Family, first_largest
from gputree.core.forest import SPREAD, STAY, Forest, Test, ranges

MOST_PARTS = 1 << 22  # of a block of rows, which is cut where its rows fall into more
BOTH = SPREAD + 1  # the branch of a value between the bounds of a soft threshold


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of rows in nodes, arrays (P,): number of the row, node, and its share f8 or its weight i8 there."""

    row: NDArray[np.intp]
    node: NDArray[np.intp]
    weight: NDArray[Any]

    @classmethod
    def whole(cls, n_rows: int, node: int) -> Parts:
        """Every row in one node."""
        return cls(np.arange(n_rows), np.full(n_rows, node, np.intp), np.ones(n_rows))

    @classmethod
    def joined(cls, parts: list[Parts]) -> Parts:
        """Lists of parts one after another; at least one."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("row", "node", "weight")))

    def __len__(self) -> int:
        return self.row.size

    def take(self, which: NDArray[Any] | slice) -> Parts:
        """Some of them."""
        return Parts(self.row[which], self.node[which], self.weight[which])


Divide: TypeAlias = Callable[[NDArray[Any], NDArray[np.intp], NDArray[np.intp], Parts], NDArray[Any]]
"""Weights (C,) of the branches of spread parts, from the weights (S,) of these, the owner (C,) of each branch among
them, its node (C,), and the parts that the same step sent down one branch each."""


def branch_shares(forest: Forest, weight: NDArray[np.int64]) -> NDArray[np.float64]:
    """The part of its parent's training weight that every node has, f8 (N,), 1 in roots; weight i8 (N,).

    Quinlan (1993), "C4.5: Programs for Machine Learning", section 3.2.
    """
    above = np.where(forest.parent < 0, weight, weight[forest.parent])
    share: NDArray[np.float64] = weight / above
    return share


def steered(forest: Forest, weight: NDArray[np.int64]) -> Forest:
    """The forest in which the heaviest branch, the first among equals, takes all that a test would spread."""
    if not forest.spreads:
        return forest
    heaviest = np.zeros(forest.n_nodes, np.uint16)
    family = Family.of(forest.n_children, forest.roots)
    heaviest[family.inner] = family.largest(weight)
    to = {name: getattr(forest, name) for name in ("missing", "unseen")}
    return replace(forest, **{name: np.where(b == SPREAD, heaviest, b) for name, b in to.items()})


def branches_of(forest: Forest, node: NDArray[Any], x: NDArray[np.float64]) -> NDArray[np.int64]:
    """Branch of values x (n,), categories as their numbers, at the tests of nodes (n,); may be SPREAD or STAY."""
    branch = (~(x <= forest.low[node])).astype(np.int64)
    lookup = forest.kind[node] == Test.LOOKUP
    if lookup.any():
        branch[lookup] = look_up(forest, node[lookup], x[lookup])
    missing = np.isnan(x)
    if missing.any():
        branch[missing] = forest.missing[node[missing]]
    found: NDArray[np.int64] = branch
    return found


def look_up(forest: Forest, node: NDArray[Any], x: NDArray[np.float64]) -> NDArray[np.int64]:
    """Branch of category numbers x (n,) at LOOKUP nodes; what a node does not list follows `unseen`.

    The cells of a node are searched by halving, so that a row costs its path whatever the size of the forest. A node
    that lists every category up to x has it in place x, where it is looked for first.
    """
    low, stop, last = forest.lookup_ptr[node], forest.lookup_ptr[node + 1], forest.lookup_code.size - 1
    near = np.clip(np.nan_to_num(x), -1.0, last).astype(np.int64)  # x may be any number
    place = np.clip(low + near, 0, last)
    listed = (place >= low) & (place < stop) & (forest.lookup_code[place] == x + 1.0)
    rest = np.flatnonzero(~listed & (x == x))
    if rest.size:
        place[rest] = np.minimum(halved(forest, low[rest], stop[rest], x[rest] + 1.0), last)
        listed[rest] = (place[rest] < stop[rest]) & (forest.lookup_code[place[rest]] == x[rest] + 1.0)
    branch: NDArray[np.int64] = np.where(listed, forest.lookup_branch[place], forest.unseen[node]).astype(np.int64)
    return branch


def halved(
    forest: Forest, low: NDArray[np.int64], stop: NDArray[np.int64], code: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The first of the cells low .. stop - 1 (n,) whose code is not less than one (n,)."""
    high, last = stop.copy(), forest.lookup_code.size - 1
    while (open_ := low < high).any():
        middle = (low + high) // 2
        less = forest.lookup_code[np.minimum(middle, last)] < code
        low = np.where(open_ & less, middle + 1, low)
        high = np.where(open_ & ~less, middle, high)
    return low


def low_share(x: NDArray[np.float64], cut: NDArray[np.float64], bounds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The part of each value x (n,) that goes down the first branch of a soft threshold; cut (n,), bounds (2, n).

    All of it up to the lower bound, a half at the cut, nothing from the upper bound on, and between these in proportion
    (Quinlan 1993, "C4.5: Programs for Machine Learning", chapter 8). Where bounds are NaN the threshold is hard.

    Examples
    --------
    >>> x = np.array([70.0, 72.5, 75.0, 77.5, 80.0])
    >>> low_share(x, np.full(5, 75.0), np.repeat([[70.0], [80.0]], 5, axis=1))
    array([1.  , 0.75, 0.5 , 0.25, 0.  ])
    """
    low, high = bounds
    with np.errstate(divide="ignore", invalid="ignore"):  # what is not between the bounds is not used
        between = np.where(x <= cut, 1.0 - 0.5 * ((x - low) / (cut - low)), 0.5 * ((high - x) / (high - cut)))
    share: NDArray[np.float64] = np.where((low < x) & (x <= high), between, x <= cut)
    return share


def parted(
    forest: Forest, at: Parts, X: NDArray[Any], divide: Divide, bounds: NDArray[np.float64] | None = None
) -> tuple[list[Parts], NDArray[np.bool_]]:
    """Parts in nodes with tests, one level down: that took one branch, that were spread, and that took both sides.

    Also which (P,) of them stay; X f4/f8 (n, F), bounds f8 (2, N) of soft thresholds, if any. A branch of no weight
    gets no part of a row.
    """
    x = X[at.row, forest.feature[at.node]].astype(np.float64, copy=False)
    branch = branches_of(forest, at.node, x)
    if bounds is not None:
        branch[(bounds[0, at.node] < x) & (x <= bounds[1, at.node])] = BOTH
    if int(branch.max(initial=0)) < STAY:
        return [Parts(at.row, forest.first_child[at.node] + branch, at.weight)], np.zeros(len(at), bool)
    stays, spreads = branch == STAY, np.flatnonzero(branch == SPREAD)
    known = np.flatnonzero(branch < STAY)
    own = at.take(known)
    down = [Parts(own.row, forest.first_child[own.node] + branch[known], own.weight)]
    if spreads.size:
        rest = at.take(spreads)
        count = forest.n_children[rest.node].astype(np.intp)
        owner, child = np.repeat(np.arange(len(rest)), count), ranges(forest.first_child[rest.node], count)
        down.append(weighty(Parts(rest.row[owner], child, divide(rest.weight, owner, child, down[0]))))
    if bounds is not None:
        soft = np.flatnonzero(branch == BOTH)
        down.append(both_sides(forest, at.take(soft), x[soft], bounds))
    return down, stays


def weighty(at: Parts) -> Parts:
    """Those parts that weigh something."""
    some = np.flatnonzero(at.weight > 0)
    return at if some.size == len(at) else at.take(some)


def both_sides(forest: Forest, at: Parts, x: NDArray[np.float64], bounds: NDArray[np.float64]) -> Parts:
    """What goes down either branch of soft thresholds, from parts whose values are x (P,)."""
    low = low_share(x, forest.low[at.node], bounds[:, at.node])
    first = forest.first_child[at.node].astype(np.intp)
    sides = [Parts(at.row, first, at.weight * low), Parts(at.row, first + 1, at.weight * (1.0 - low))]
    return weighty(Parts.joined(sides))


def step(
    forest: Forest, at: Parts, X: NDArray[Any], divide: Divide, bounds: NDArray[np.float64] | None = None
) -> tuple[Parts, NDArray[np.bool_]]:
    """`parted`, as one list."""
    down, stays = parted(forest, at, X, divide, bounds)
    return Parts.joined(down), stays


def levels(
    forest: Forest, at: Parts, X: NDArray[Any], divide: Divide, bounds: NDArray[np.float64] | None = None
) -> Iterator[tuple[Parts, NDArray[np.bool_]]]:
    """The parts and those of every step down from them, each with which (P,) of them end where they are."""
    while len(at):
        ends = forest.kind[at.node] == Test.LEAF
        down, ends[~ends] = step(forest, at.take(~ends), X, divide, bounds)
        yield at, ends
        at = down


def by_shares(share: NDArray[np.float64]) -> Divide:
    """Divide as the training weight was divided; share f8 (N,) as of `branch_shares`."""
    return lambda weight, owner, child, down: weight[owner] * share[child]


def by_cases(forest: Forest) -> Divide:
    """Divide whole-number weights as those that the test knows, with the remainder to the heaviest branch.

    Where it knows none, all branches get the same (as in Weka's J48). The first of the heaviest branches counts.
    """
    heard = np.zeros(forest.n_nodes, np.int64)

    def divide(weight: NDArray[Any], owner: NDArray[np.intp], child: NDArray[np.intp], down: Parts) -> NDArray[Any]:
        np.add.at(heard, down.node, down.weight)
        own, count = heard[child], np.bincount(owner)
        heard[down.node] = 0
        none = np.add.reduceat(own, np.cumsum(count) - count)[owner] == 0
        return shares(weight, count, np.where(none, 1, own))

    return divide


def shares(weight: NDArray[np.int64], count: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Shares of rows of these weights (P,): of each for ``count`` (P,) branches of weights ``known`` (sum of count,).

    Rounded down, and what is left goes to the heaviest branch, the first among equals.

    Examples
    --------
    >>> shares(np.array([13]), np.array([3]), np.array([5, 3, 5]))
    array([5, 3, 5])
    >>> shares(np.array([10, 1]), np.array([3, 2]), np.array([1, 1, 1, 1, 0]))
    array([4, 3, 3, 1, 0])
    """
    if not weight.size:
        return np.zeros(0, np.int64)
    first = np.cumsum(count) - count
    total = np.repeat(np.add.reduceat(known, first), count)
    share: NDArray[np.int64] = np.floor(np.repeat(weight, count) * (known / total)).astype(np.int64)
    share[first_largest(known, count, first)] += weight - np.add.reduceat(share, first)
    return share


def leaf_parts(
    forest: Forest,
    at: Parts,
    X: NDArray[Any],
    share: NDArray[np.float64],
    place: NDArray[np.int64] | None = None,
    bounds: NDArray[np.float64] | None = None,
) -> Iterator[Parts]:
    """The leaves and other nodes that rows end in with their shares, by row, from left to right; some rows at a time.

    Parameters
    ----------
    forest : Forest
    at : Parts
        One part a row, in order of rows, as of `Parts.whole`.
    X : f4/f8 array (n, F)
    share : f8 array (N,)
        As of `branch_shares`. The share of a leaf is the product of the shares of the branches that lead there and
        that more than this one took.
    place : i8 array (N,), optional
        As of `from_left`.
    bounds : f8 array (2, N), optional
        Of soft thresholds, see `low_share`.

    Examples
    --------
    A known value leads to one leaf, a missing one to both, 3 to 1.

    >>> from gputree import DecisionTreeClassifier
    >>> forest = DecisionTreeClassifier().fit([[0], [0], [0], [1]], [0, 0, 0, 1]).forest_
    >>> forest = replace(forest, missing=np.where(forest.kind > 0, np.uint16(SPREAD), np.uint16(0)))
    >>> share = branch_shares(forest, forest.stats.sum(axis=1))
    >>> for part in leaf_parts(forest, Parts.whole(2, 0), np.array([[1.0], [np.nan]]), share):
    ...     print(part.row, part.node, part.weight)
    [0 1 1] [2 1 2] [1.   0.75 0.25]
    """
    todo, place = [at], from_left(forest) if place is None else place
    while todo:
        some = todo.pop()
        found = in_leaves(forest, some, X, share, bounds)
        if found is None:
            half = len(some) // 2
            todo += [some.take(slice(half, None)), some.take(slice(half))]
        else:
            yield found.take(np.lexsort((place[found.node], found.row)))


def in_leaves(
    forest: Forest, at: Parts, X: NDArray[Any], share: NDArray[np.float64], bounds: NDArray[np.float64] | None
) -> Parts | None:
    """Parts where rows end; None where several rows have more than `MOST_PARTS`."""
    n_rows, found, size = len(at), [at.take(slice(0))], 0
    for level, ends in levels(forest, at, X, by_shares(share), bounds):
        found.append(level.take(ends))
        size += len(found[-1])
        if n_rows > 1 and size + len(level) > MOST_PARTS:
            return None
    return Parts.joined(found)


def from_left(forest: Forest) -> NDArray[np.int64]:
    """Place of every node in its tree, i8 (N,): a node comes before its branches, and these from left to right.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier
    >>> forest = DecisionTreeClassifier(max_leaf_nodes=4).fit(*load_iris(return_X_y=True)).forest_
    >>> forest.first_child.tolist(), from_left(forest).tolist()
    ([1, -1, 3, 5, -1, -1, -1], [0, 1, 2, 3, 6, 4, 5])
    """
    order = np.argsort(forest.depth, kind="stable")
    levels = np.split(order, np.searchsorted(forest.depth[order], np.arange(1, forest.max_depth + 1)))[1:]
    size = np.ones(forest.n_nodes, np.int64)
    for level in levels[::-1]:
        np.add.at(size, forest.parent[level], size[level])
    before, place = np.cumsum(size) - size, np.zeros(forest.n_nodes, np.int64)
    for level in levels:
        above = forest.parent[level]
        place[level] = place[above] + 1 + before[level] - before[forest.first_child[above]]
    return place
