"""Families of candidate tests, what limits them, and the choice of the best. May import NumPy and core only.

Every test of one feature is a map ``branch_of[code] -> branch``. A threshold stores it as the last code to the left, a
lookup as the list of codes that the node met with their branches; both add the branch of missing values.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.criteria import Criterion
from gputree.core.expr import log2
from gputree.core.forest import ranges
from gputree.core.schema import Kind

NOT_MET = -1  # branch of missing values where the node met none
COUNTED = -np.finfo(np.float64).max  # score of a test that counts in the mean of a `Gate` and is never taken
TEST = ("score", "gain", "kind", "cut", "low", "missing", "n_branches")  # fields that every record of tests has


class Scan(IntEnum):
    """What a generator enumerates."""

    CUTS = 0  # every cut between neighbouring codes of the node, missing on either side, missing against known
    ONE_CUT = 1  # one cut and one side for missing values, drawn; missing against known if the cut parts no values
    BRANCHES = 2  # one candidate: a branch for each category (declared, or met in the node), one for missing values
    SUBSETS = 3  # the cuts of CUTS between categories in order of their target means
    ONE_SUBSET = 4  # the cut of ONE_CUT between categories in an order drawn at random
    ONE_AGAINST_REST = 5  # a branch for one category that the node met, and one for all others


@dataclass(frozen=True, slots=True)
class Generator:
    """A family of candidate tests, and the kind of column that it serves."""

    scan: Scan
    serves: Kind


THRESHOLD = Generator(Scan.CUTS, Kind.NUMERIC)
RANDOM = Generator(Scan.ONE_CUT, Kind.NUMERIC)
MULTIWAY = Generator(Scan.BRANCHES, Kind.CATEGORICAL)
SUBSET = Generator(Scan.SUBSETS, Kind.CATEGORICAL)
RANDOM_SUBSET = Generator(Scan.ONE_SUBSET, Kind.CATEGORICAL)
ONE_AGAINST_REST = Generator(Scan.ONE_AGAINST_REST, Kind.CATEGORICAL)


class Missing(IntEnum):
    """What a test makes of rows whose value is missing."""

    BRANCH = 0  # they take one of the branches, each of which is tried
    SPREAD = 1  # the others alone are scored; they go to every branch with known rows, with a part of their weight


@dataclass(frozen=True, slots=True)
class Limits:
    """What a candidate must respect.

    ``min_rows`` rows and ``min_weight`` units of weight in every non-empty branch; ``monotone`` i1 (F,): the value of
    the left child may not be above (1) or below (-1) that of the right; None without constraints. ``max_branches`` of
    one test, None for any number. ``missing_alone``: missing against known values is a test, too.

    Of a test with a branch for each category ``least_met`` branches have rows (with 1, tests of declared categories may
    part nothing), and ``heavy`` of them weigh ``min_weight``, None for all. ``min_info``: least entropy of the weights
    of branches, in bits; a test of less is not taken.
    """

    min_rows: int = 1
    min_weight: int = 0
    monotone: NDArray[np.int8] | None = None
    max_branches: int | None = None
    missing_alone: bool = True
    least_met: int = 2
    heavy: int | None = None
    min_info: float = 0.0


@dataclass(frozen=True, slots=True)
class Stop:
    """When a node stays a leaf; ``min_rows`` in rows, ``min_gain`` in gain of the criterion.

    A test is taken if its score, on its grid, is above ``above``: with 0 rounding makes no gain of nothing. A class of
    at most ``slack`` units of weight does not count when a node is pure but for it. Growth best first ends with
    ``max_leaves`` leaves, ``max_nodes`` nodes or after ``max_splits`` tests of a tree.
    """

    max_depth: int | None = None
    min_rows: int = 2
    min_gain: float = 0.0
    max_leaves: int | None = None
    above: float = -np.inf
    slack: int = 0
    max_nodes: int | None = None
    max_splits: int | None = None

    @property
    def room(self) -> tuple[int, int, int]:
        """Leaves, nodes and tests that a root alone may still be given."""
        most = int(np.iinfo(np.int64).max)
        used = ((self.max_leaves, 1), (self.max_nodes, 1), (self.max_splits, 0))
        leaves, nodes, splits = (most if limit is None else limit - less for limit, less in used)
        return leaves, nodes, splits

    @property
    def bounded(self) -> bool:
        """Whether the order of tests decides which are carried out."""
        return any(limit is not None for limit in (self.max_leaves, self.max_nodes, self.max_splits))


@dataclass(frozen=True, slots=True)
class CutRule:
    """How C4.5 cuts a numeric column: at the first greatest gain, which pays for the number of cuts tried.

    A cut is tried if its values differ by more than ``gap`` and both sides weigh ``share`` of the known weight, but at
    least ``least`` and no more than ``most``; these and ``slack``, what rounding may miss, are in units of weight, of
    which a case has ``unit``. A gain that is used up leaves no test.

    References
    ----------
    Quinlan (1996), "Improved use of continuous attributes in C4.5", Journal of Artificial Intelligence Research
    4:77-90, section 3.
    """

    unit: float
    share: float
    least: float
    most: float
    slack: float
    gap: float

    def side(self, known: NDArray[np.float64]) -> NDArray[np.float64]:
        """Least weight of a side of a cut, from known weights f8 (S,)."""
        share = self.share * known
        return np.where(share <= self.least, self.least, np.minimum(share, self.most)) - self.slack

    def cost(self, tries: NDArray[np.float64]) -> NDArray[np.float64]:
        """What is taken off the gain where so many cuts were tried."""
        return self.unit * log2(tries)


@dataclass(frozen=True, slots=True)
class GroupRule:
    """How C4.5 merges categories into the branches of one test, two groups at a time.

    A category that weighs more than ``present``, in units, begins as a group, or joins that of its class where all its
    rows are of one; the others share a last branch, which stays as it is. Then the best pair of groups becomes one, as
    long as there are more than two and the gain ratio of the test rises by ``rise``, or fewer than two weigh
    `Limits.min_weight`. Where fewer than three do, the heaviest is in no pair.

    Pairs are compared in order of their first categories. One takes the place of the best so far if its ratio is no
    less, or if it keeps the part ``kept`` of the first gain and the best one does not. (So does C4.5 release 8; the
    book speaks of the best ratio alone.)

    References
    ----------
    Quinlan (1993), "C4.5: Programs for Machine Learning", chapter 7.
    """

    present: float
    rise: float
    kept: float


@dataclass(frozen=True, slots=True)
class Search:
    """One record for one search: generators (at most one a kind), criterion, limits.

    ``missing``: what is made of rows whose value is missing. ``cuts``: how numeric columns are cut; None: at the first
    greatest score. ``groups``: how the branches of categories are merged where rows are spread; None: they are not.
    """

    generators: tuple[Generator, ...]
    criterion: Criterion
    limits: Limits
    missing: Missing = Missing.BRANCH
    cuts: CutRule | None = None
    groups: GroupRule | None = None

    def scan(self, kind: int) -> Scan | None:
        """How columns of this kind are searched, None where no generator serves them."""
        return next((g.scan for g in self.generators if g.serves == kind), None)


@dataclass(frozen=True, slots=True)
class Growth:
    """What decides of whole subtrees; ``turn`` features are tried at a time."""

    search: Search
    stop: Stop
    turn: int


@dataclass(frozen=True, slots=True)
class Slots:
    """Open nodes: node id i4 (k,), key u8 (k,), channels i8 (C, k), rows i8 (k,), monotone bounds f8 (2, k)."""

    id: NDArray[np.int32]
    key: NDArray[np.uint64]
    stats: NDArray[np.int64]
    rows: NDArray[np.int64]
    bounds: NDArray[np.float64]

    def __len__(self) -> int:
        return self.id.size

    def take(self, which: NDArray[Any] | slice) -> Slots:
        """The slots at these places."""
        return Slots(self.id[which], self.key[which], self.stats[:, which], self.rows[which], self.bounds[:, which])


@dataclass(frozen=True, slots=True)
class Candidates:
    """Best test of every slot and feature, arrays (k, m), or of every slot (k, 1); -inf where none is found.

    ``feature`` is the column, -1 = none, ``cut`` the last code to the left, ``low`` the threshold (+inf where missing
    alone is split off, also from categories), ``missing`` the branch of missing values, SPREAD or NOT_MET. Tests with a
    lookup list their cells: the flat number of the slot-feature pair (ascending), code, branch.
    """

    score: NDArray[np.float64]
    gain: NDArray[np.float64]
    kind: NDArray[np.uint8]
    cut: NDArray[np.int32]
    low: NDArray[np.float64]
    missing: NDArray[np.int32]
    n_branches: NDArray[np.int32]
    feature: NDArray[np.int32]
    lookup_pair: NDArray[np.int64]
    lookup_code: NDArray[np.uint16]
    lookup_branch: NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Splits:
    """The chosen test of k nodes. ``lookup_ptr`` (k + 1,) delimits the cells of each."""

    node: NDArray[np.int32]
    feature: NDArray[np.int32]
    score: NDArray[np.float64]
    gain: NDArray[np.float64]
    kind: NDArray[np.uint8]
    cut: NDArray[np.int32]
    low: NDArray[np.float64]
    missing: NDArray[np.int32]
    n_branches: NDArray[np.int32]
    lookup_ptr: NDArray[np.int64]
    lookup_code: NDArray[np.uint16]
    lookup_branch: NDArray[np.uint16]

    def __len__(self) -> int:
        return self.node.size

    def take(self, which: NDArray[Any]) -> Splits:
        """The splits at these places, i (j,)."""
        count = np.diff(self.lookup_ptr)[which]
        cells = ranges(self.lookup_ptr[:-1][which], count)
        return Splits(
            **{name: getattr(self, name)[which] for name in ("node", "feature", *TEST)},
            lookup_ptr=np.concatenate([[0], np.cumsum(count)]).astype(np.int64),
            lookup_code=self.lookup_code[cells],
            lookup_branch=self.lookup_branch[cells],
        )


@dataclass(frozen=True, slots=True)
class Gate:
    """C4.5 takes a test only if it gains as much as the mean of all tests of the node, but for ``slack`` bits a case.

    The mean is over the columns ``averaged`` bool (F,) that hold an admissible test, however little it gains; without
    one there is no test.

    References
    ----------
    Quinlan (1993), "C4.5: Programs for Machine Learning", 2.2.
    """

    averaged: NDArray[np.bool_]
    slack: float

    def passed(
        self, score: NDArray[np.float64], gain: NDArray[np.float64], features: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Scores (k, m) as they are, -inf where the gain (k, m), in bits a case, is too small."""
        counts = (score > -np.inf) & self.averaged[features]
        number = counts.sum(axis=1)
        mean = np.where(counts, gain, 0.0).sum(axis=1) / np.maximum(number, 1)
        enough = (gain >= mean[:, None] - self.slack) & (number > 0)[:, None]
        return np.where(enough, score, -np.inf)


def choose(
    found: Candidates, slots: Slots, turn: int, gate: Gate | None = None, weight: NDArray[np.int64] | None = None
) -> tuple[Splits, NDArray[np.intp]]:
    """Best feature of every slot: the higher score, then the lower feature. Gives the splits and their slots' places.

    Of every ``turn`` columns in a row, the first that hold an admissible test decide. A gate needs the weights of the
    slots (k,).
    """
    features = found.feature
    score = np.where(features >= 0, found.score, -np.inf)
    number = np.arange(features.shape[1]) // turn
    good = (score > -np.inf).argmax(axis=1) // turn if features.size else np.zeros(len(score), np.intp)
    score = np.where(number == good[:, None], score, -np.inf)
    if gate is not None and weight is not None:
        score = gate.passed(score, found.gain / weight[:, None], features)
    best = score.max(axis=1, initial=-np.inf)
    tied = np.where(score == best[:, None], features, np.iinfo(np.int32).max)
    column = tied.argmin(axis=1)
    places = np.flatnonzero(best > -np.inf)
    pair = places * features.shape[1] + column[places]
    first = np.searchsorted(found.lookup_pair, pair, side="left")
    count = np.searchsorted(found.lookup_pair, pair, side="right") - first
    cells = ranges(first, count)
    chosen = Splits(
        node=slots.id[places],
        feature=features.reshape(-1)[pair],
        **{name: getattr(found, name).reshape(-1)[pair] for name in TEST},
        lookup_ptr=np.concatenate([[0], np.cumsum(count)]).astype(np.int64),
        lookup_code=found.lookup_code[cells],
        lookup_branch=found.lookup_branch[cells],
    )
    return chosen, places


NO_SPLITS = Splits(
    np.zeros(0, np.int32),
    np.zeros(0, np.int32),
    np.zeros(0),
    np.zeros(0),
    np.zeros(0, np.uint8),
    np.zeros(0, np.int32),
    np.zeros(0),
    np.zeros(0, np.int32),
    np.zeros(0, np.int32),
    np.zeros(1, np.int64),
    np.zeros(0, np.uint16),
    np.zeros(0, np.uint16),
)


def concatenate(parts: list[Splits]) -> Splits:
    """Splits of several batches as one."""
    if len(parts) == 1:
        return parts[0]
    parts = [NO_SPLITS, *parts]
    sizes = np.concatenate([np.diff(p.lookup_ptr) for p in parts])
    joined = {f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Splits)}
    return Splits(**{**joined, "lookup_ptr": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)})
