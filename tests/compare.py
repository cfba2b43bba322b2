"""Two judges for a fitted tree: `walk` holds it to scikit-learn's, `check_cuts` to brute force.

Both decide ties in the exact arithmetic of `tests.reference`, never by a tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.reference import COUNTS, GRID, Cut, Exact, Floats, Gain, Limits, Rows, Side, best_cuts, fits, midpoint

EPS = 2.0**-53  # one rounding
# The error of one real weight that became an integer, relative to the total, which then is from 2**41 (2**50 where no
# w*y is summed) to four times that: half a unit.
ROUNDED_WEIGHT = {"gini": 2.0**-51, "entropy": 2.0**-51, "squared_error": 2.0**-42, "poisson": 2.0**-42}
NOISE = Fraction(1, 10**12)  # scikit-learn's own rounding, relative to what it adds up
MERGED = np.float32(1e-7)  # scikit-learn takes closer neighbours for equal


def wide_gaps(X: NDArray[Any]) -> bool:
    """Whether X is a float32 table in which scikit-learn tells all distinct values apart."""
    columns = (np.unique(c[~np.isnan(c)]) for c in X.T)
    return X.dtype == np.float32 and all(bool((u[1:] > u[:-1] + MERGED).all()) for u in columns)


def cut_of(tree: Any, node: int) -> Cut:
    return Cut(int(tree.feature[node]), float(tree.threshold[node]), bool(tree.missing_go_to_left[node]))


def is_leaf(tree: Any, node: int) -> bool:
    return bool(tree.children_left[node] == -1)


def impurity(exact: Exact, rows: Rows) -> float:
    """The impurity of a node by its definition, in two passes: nothing cancels."""
    y, w, total = exact.y[rows], exact.w[rows], exact.w[rows].sum()
    if exact.criterion in COUNTS:
        shares = [np.bincount(np.unique(c, return_inverse=True)[1], w) / total for c in y.T]
        return float(np.mean([1 - p @ p if exact.criterion == "gini" else -(p @ np.log2(p)) for p in shares]))
    mean = w @ y / total
    loss = (y - mean) ** 2 if exact.criterion == "squared_error" else y * np.log(np.where(y > 0, y / mean, 1))
    return float(np.mean(w @ loss / total))


def grid(exact: Exact, parent: Side, gain: Gain) -> Fraction:
    """Scores closer than this may tie: one step of the grid, and the rounding of real weights."""
    step = 2 * GRID * max(abs(Fraction(gain)), exact.scale(parent))
    rounded = Fraction(len(exact.w) * ROUNDED_WEIGHT[exact.criterion]) if exact.rounded else 0
    return step + rounded * max(exact.scale(parent), abs(Fraction(exact.term(parent))))


def noise(exact: Exact, parent: Side, left: Side, right: Side) -> Fraction:
    """Differences below this are within the rounding of plain float64 sums, as scikit-learn forms them."""
    terms = abs(Fraction(exact.term(left))) + abs(Fraction(exact.term(right)))
    return NOISE * max(terms, exact.scale(parent))


@dataclass
class Report:
    """What a walk met. A path ends at a tie, unless both tests part the rows alike."""

    nodes: int = 0  # pairs of nodes compared
    ties: int = 0  # both tests are exactly as good
    near_ties: int = 0  # scikit-learn's is better by less than our grid of scores shows
    rounding: int = 0  # ours is better by less than scikit-learn's rounding
    stops: int = 0  # a leaf against a split, explained by a tie elsewhere or by equal priorities

    @property
    def lots(self) -> int:
        """Choices that the two programs may settle differently."""
        return self.ties + self.near_ties + self.rounding


class Pair(NamedTuple):
    """A node of ours and the node of theirs on the same path, with the rows that both hold."""

    ours: int
    theirs: int
    rows: Rows
    parent: Rows
    path: str


class Walk:
    """One comparison of two trees grown from the same table; ``budget``: a tie may change the tree elsewhere."""

    def __init__(self, ours: Any, theirs: Any, X: NDArray[Any], exact: Exact, budget: bool) -> None:
        self.ours, self.theirs, self.X, self.exact, self.budget = ours, theirs, X, exact, budget
        self.report = Report()
        self.mismatches: list[tuple[Pair, bool]] = []
        self.unit = max(1.0, impurity(exact, exact.rows))
        assert wide_gaps(X), "the table has values that scikit-learn merges; it proves nothing here"

    def run(self) -> Report:
        rows = self.exact.rows
        stack = [Pair(0, 0, rows, rows, "root")]
        while stack:
            pair = stack.pop()
            self.compare_numbers(pair)
            stack.extend(self.compare_tests(pair))
        self.settle_mismatches()
        return self.report

    def compare_numbers(self, pair: Pair) -> None:
        a, b, rows, _, path = pair
        self.report.nodes += 1
        ours, theirs = self.ours, self.theirs
        counts = int(ours.n_node_samples[a]), int(theirs.n_node_samples[b]), len(rows)
        assert len(set(counts)) == 1, f"{path}: n_node_samples: ours, scikit-learn, rows there: {counts}"
        weight = float(self.exact.w[rows].sum())
        for tree, i in ((ours, a), (theirs, b)):
            close(tree.weighted_n_node_samples[i], weight, self.weight_error(rows) * weight, f"{path}: weight")
        own, peer = self.impurity_errors(pair)
        close(ours.impurity[a], impurity(self.exact, rows), own, f"{path}: impurity against its definition")
        close(ours.impurity[a], theirs.impurity[b], own + peer, f"{path}: impurity")
        close(ours.value[a], theirs.value[b], self.value_error(rows), f"{path}: value")

    def weight_error(self, rows: Rows) -> float:
        """Relative error of a sum of weights: nil where they are short, else of plain sums and of rounded weights."""
        share = self.exact.w[rows].sum() / self.exact.w.sum()
        return len(rows) * (EPS + ROUNDED_WEIGHT[self.exact.criterion] / share) if self.exact.rounded else 0.0

    def impurity_errors(self, pair: Pair) -> tuple[float, float]:
        """What ours may err by (1e-12 in units of the root's impurity), and theirs beyond that in regression.

        scikit-learn's variance of a child is q/w - (s/w)**2 with sums q of w*y*y and s of w*y that for a right child
        are total - left. A sum of n terms errs by at most n*EPS times the sum of their magnitudes. With Q and W, the
        parent's q and weight, |s| <= sqrt(Q*W) and |mean| <= sqrt(Q/w), so that q, s (twice) and what is subtracted
        from them give less than 6 * n*EPS * Q/w * sqrt(W/w). Its Poisson loss adds y*log(y/mean) and takes the mean
        from such sums; there Q is the sum of what bounds |y*log(y/mean)| + y.
        """
        rows, parent, exact = pair.rows, pair.parent, self.exact
        own = (1e-12 + 4 * self.weight_error(rows)) * self.unit
        if exact.criterion in COUNTS:
            return own, own
        y = exact.y[parent].astype(np.float64)
        if exact.criterion == "squared_error":
            size = y * y
        else:
            size = y * (1 + 2 * np.abs(np.log(y[y > 0])).max(initial=0) + math.log(len(parent)))
        total, w = float((exact.w[parent] @ size).sum()), exact.w[rows].sum()
        return own, 6 * len(parent) * EPS * total / w * math.sqrt(exact.w[parent].sum() / w)

    def value_error(self, rows: Rows) -> float:
        """A mean errs by n*EPS of the mean magnitude (plain sums), and by the error of the weights."""
        relative = 1e-12 + 2 * self.weight_error(rows)
        if self.exact.criterion in COUNTS:
            return relative
        return (relative + len(rows) * EPS) * max(1.0, float(np.abs(self.exact.y[rows].astype(np.float64)).max()))

    def compare_tests(self, pair: Pair) -> list[Pair]:
        """The pairs below, where the two trees go on alike."""
        leaf_a, leaf_b = is_leaf(self.ours, pair.ours), is_leaf(self.theirs, pair.theirs)
        if leaf_a or leaf_b:
            return [] if leaf_a and leaf_b else self.leaf_against_split(pair, leaf_a)
        a, b = cut_of(self.ours, pair.ours), cut_of(self.theirs, pair.theirs)
        left_a, left_b = a.goes_left(self.X, pair.rows), b.goes_left(self.X, pair.rows)
        if np.isnan(self.X[pair.rows, a.feature]).any():
            same = a == b
        else:
            check_unmet_missing(a, left_a, self.exact.w[pair.rows], pair.path)
            same = a[:2] == b[:2]
        if not same:
            self.judge(pair, a, b)
        return self.descend(pair, left_a, left_b)

    def descend(self, pair: Pair, left_a: NDArray[np.bool_], left_b: NDArray[np.bool_]) -> list[Pair]:
        kids_a = self.ours.children_left[pair.ours], self.ours.children_right[pair.ours]
        kids_b = self.theirs.children_left[pair.theirs], self.theirs.children_right[pair.theirs]
        if np.array_equal(left_a, ~left_b):
            kids_b, left_b = kids_b[::-1], left_a
        if not np.array_equal(left_a, left_b):
            return []
        steps = (f"{pair.path} L", f"{pair.path} R")
        rows = (pair.rows[left_a], pair.rows[~left_a])
        return [Pair(int(kids_a[i]), int(kids_b[i]), rows[i], pair.rows, steps[i]) for i in (1, 0)]

    def judge(self, pair: Pair, a: Cut, b: Cut) -> None:
        """The tests differ: a tie, rounding, or a fault."""
        exact, parent = self.exact, self.exact.side(pair.rows)
        sides_a, sides_b = exact.sides(self.X, pair.rows, a), exact.sides(self.X, pair.rows, b)
        gain_a, gain_b = exact.gain(*sides_a, parent), exact.gain(*sides_b, parent)
        better = Fraction(gain_a) - Fraction(gain_b)
        story = f"{pair.path}: {len(pair.rows)} rows; ours {a}, exact gain {float(gain_a)!r}; scikit-learn {b}, exact "
        story += f"gain {float(gain_b)!r}"
        if exact.equal(gain_a, gain_b, parent):
            assert not same_neighbours(self.X[pair.rows, a.feature], a, b), f"{story}: between the same two values"
            self.report.ties += 1
        elif -grid(exact, parent, gain_b) <= better < 0:
            self.report.near_ties += 1
        elif 0 < better <= noise(exact, parent, *sides_b):
            self.report.rounding += 1
        else:
            raise AssertionError(f"{story}; ours is {'better' if better > 0 else 'worse'} by {abs(float(better)):.3g}")

    def leaf_against_split(self, pair: Pair, leaf_a: bool) -> list[Pair]:
        if leaf_a and self.exact.pure(pair.rows):
            self.report.rounding += 1  # scikit-learn's impurity is not quite zero where y does not vary
            return []
        who = "ours is a leaf, scikit-learn's splits on" if leaf_a else "scikit-learn's is a leaf, ours splits on"
        assert self.budget, f"{pair.path}: {len(pair.rows)} rows; {who} {self.split_there(pair, leaf_a)}"
        self.mismatches.append((pair, leaf_a))
        return []

    def split_there(self, pair: Pair, leaf_a: bool) -> Cut:
        return cut_of(self.theirs, pair.theirs) if leaf_a else cut_of(self.ours, pair.ours)

    def settle_mismatches(self) -> None:
        """Leaves against splits: without a tie among tests, only equal priorities in the queue can explain them."""
        self.report.stops = len(self.mismatches)
        if not self.mismatches or self.report.lots:
            return
        gains: dict[bool, list[Fraction]] = {True: [], False: []}
        for pair, leaf_a in self.mismatches:
            sides = self.exact.sides(self.X, pair.rows, self.split_there(pair, leaf_a))
            gains[leaf_a].append(Fraction(self.exact.gain(*sides, self.exact.side(pair.rows))))
        every = gains[True] + gains[False]
        step = grid(self.exact, self.exact.side(self.exact.rows), max(every))
        equal = gains[True] and gains[False] and max(every) - min(every) <= step
        paths = "; ".join(pair.path for pair, _ in self.mismatches)
        assert equal, f"other nodes are split than in scikit-learn, of gains {[float(g) for g in every]}: {paths}"


def close(a: Any, b: Any, bound: float, what: str) -> None:
    assert np.shape(a) == np.shape(b), f"{what}: shape {np.shape(a)}, not {np.shape(b)}"
    error = float(np.max(np.abs(np.asarray(a) - np.asarray(b))))
    assert error <= bound, f"{what}: {a!r} is not {b!r} (off by {error:.3g}, allowed {bound:.3g})"


def check_unmet_missing(cut: Cut, left: NDArray[np.bool_], weight: NDArray[Any], path: str) -> None:
    """A node that met no missing value sends them to the child of larger weight, left when equal."""
    own, whole = weight[left].sum(), weight.sum()
    assert cut.missing_left == (2 * own >= whole), f"{path}: {cut}, but {own} of {whole} go left"


def same_neighbours(x: NDArray[Any], a: Cut, b: Cut) -> bool:
    """Whether two tests of one feature differ in the threshold alone, with no value of the node between them."""
    low, high = sorted((a.threshold, b.threshold))
    return a.feature == b.feature and a.missing_left == b.missing_left and not ((x > low) & (x <= high)).any()


def walk(
    ours: Any,
    theirs: Any,
    X: NDArray[Any],
    y: NDArray[Any],
    w: Floats | None = None,
    *,
    criterion: str,
    budget: bool = False,
) -> Report:
    """Hold a tree of ours to scikit-learn's, node by node along the same paths; both are `tree_` objects.

    Where the tests differ, both are judged in exact arithmetic: ours may be as good (a tie) or better (rounding in
    scikit-learn), or worse by less than the grid shows. ``budget`` (best first, pruning): a tie may then change which
    nodes elsewhere are split, so a leaf against a split is no fault once there was a tie.
    """
    return Walk(ours, theirs, X, Exact(y, w, criterion), budget).run()


def nodes_with_rows(tree: Any, X: NDArray[Any], rows: Rows) -> Iterator[tuple[int, Rows, int]]:
    """Every node with its training rows and its depth."""
    stack = [(0, rows, 0)]
    while stack:
        node, rows, depth = stack.pop()
        yield node, rows, depth
        if not is_leaf(tree, node):
            left = cut_of(tree, node).goes_left(X, rows)
            stack.append((int(tree.children_right[node]), rows[~left], depth + 1))
            stack.append((int(tree.children_left[node]), rows[left], depth + 1))


@dataclass
class Searched:
    """What `check_cuts` met."""

    nodes: int = 0
    ties: int = 0  # nodes where another test is exactly as good
    near_ties: int = 0  # nodes where another is better by less than the grid shows
    slips: int = 0  # nodes where an exact tie went to a later test: the two scores rounded to either side of a step


def check_cuts(
    tree: Any,
    X: NDArray[Any],
    y: NDArray[Any],
    w: Floats | None = None,
    *,
    criterion: str,
    limits: Limits | None = None,
    sample: int | None = None,
) -> Searched:
    """Brute force at every node, or at the root and a sample of the others: no admissible test beats the chosen one.

    A leaf is to have a reason: a limit, one value of y, or no admissible test at all.
    """
    exact, limits, report = Exact(y, w, criterion), limits or Limits(), Searched()
    chosen = np.arange(tree.node_count)
    if sample is not None and sample < len(chosen):
        chosen = np.append(0, np.random.default_rng(0).choice(chosen[1:], sample - 1, replace=False))
    wanted = set(chosen.tolist())
    for node, rows, depth in nodes_with_rows(tree, X, exact.rows):
        if node in wanted and (not is_leaf(tree, node) or may_split(exact, limits, rows, depth)):
            report.nodes += 1
            check_node(tree, node, X, exact, limits, rows, report)
    return report


def may_split(exact: Exact, limits: Limits, rows: Rows, depth: int) -> bool:
    return depth < limits.max_depth and len(rows) >= limits.min_samples_split and not exact.pure(rows)


def check_node(tree: Any, node: int, X: NDArray[Any], exact: Exact, limits: Limits, rows: Rows, to: Searched) -> None:
    found = best_cuts(X, exact, limits, rows)
    if is_leaf(tree, node):
        assert not found, f"node {node}: a leaf of {len(rows)} rows, yet {found[0][0]} is admissible"
        return
    own, parent = cut_of(tree, node), exact.side(rows)
    check_threshold(X[rows, own.feature].astype(np.float64), own, f"node {node}")
    assert fits(X, exact, limits, rows, own), f"node {node}: {own} is not admissible"
    gain = exact.gain(*exact.sides(X, rows, own), parent)
    best, record = max(found, key=lambda pair: pair[1])
    story = f"node {node}: {len(rows)} rows; ours {own}, exact gain {float(gain)!r}; {best} gives {float(record)!r}"
    assert Fraction(record) - Fraction(gain) <= grid(exact, parent, record), story
    equal = [cut for cut, other in found if exact.equal(other, gain, parent)]
    to.near_ties += not exact.equal(record, gain, parent)
    to.ties += len(equal) > 1
    to.slips += not same_test(X, rows, equal[0], own)


def same_test(X: NDArray[Any], rows: Rows, a: Cut, b: Cut) -> bool:
    return a == b or (a[:2] == b[:2] and not np.isnan(X[rows, a.feature]).any())


def check_threshold(x: Floats, cut: Cut, path: str) -> None:
    """The threshold is the midpoint of two neighbouring values of the node, to the bit."""
    low, high = x[x <= cut.threshold], x[x > cut.threshold]
    if len(high) == 0:
        assert cut.threshold == math.inf, f"{path}: {cut}: every known value goes left"
        assert not cut.missing_left, f"{path}: {cut}: everything goes left"
        return
    wanted = midpoint(float(low.max()), float(high.min()))
    assert cut.threshold == wanted, f"{path}: {cut}: the midpoint is {wanted!r} ({wanted.hex()})"
