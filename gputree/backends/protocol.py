"""What a backend offers to the growth loop: shapes and dtypes, nothing else. May import core only.

Codes and names in capitals are opaque handles; a backend may pack, tile, fuse and postpone behind them as it likes, as
long as every integer and every choice equals the oracle's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gputree.core.bags import Bags
from gputree.core.criteria import Criterion, TargetKind
from gputree.core.forest import Forest, Grown
from gputree.core.schema import Cuts, Schema
from gputree.core.splits import Candidates, Growth, Missing, Scan, Search, Slots, Splits
from gputree.core.target import Target


class DeviceError(RuntimeError):
    """A device failed, or cannot do what is asked."""


class DeviceMemoryError(DeviceError, MemoryError):
    """A device's memory is used up: a smaller table may still fit."""


SHARD = Any  # rows, their codes and channels, and the rows of every node so far
TABLE = Any  # channels by (slot, feature, code present in the slot)
Given: TypeAlias = NDArray[np.float64] | None  # numbers by node, where a forest needs them


HEARERS: list[Callable[[str], None]] = []


@contextmanager
def heard(hearer: Callable[[str], None]) -> Iterator[None]:
    """Tell someone of work that is done once for all fits, such as compiling, while the block runs."""
    HEARERS.append(hearer)
    try:
        yield
    finally:
        HEARERS.remove(hearer)


def tell(text: str) -> None:
    """Tell all who want to hear."""
    for hearer in tuple(HEARERS):
        hearer(text)


class Codes(Protocol):
    """Codes of the rows that take part, by feature; a handle that tells only how many there are."""

    @property
    def n_codes(self) -> NDArray[np.int64]:
        """Known codes of every feature, i8 (F,)."""


@dataclass(frozen=True, slots=True)
class CodeSpec:
    """How columns become codes: ``max_codes`` of a numeric column, None = automatic."""

    schema: Schema
    max_codes: int | None = None


@dataclass(slots=True)
class Work:
    """What a backend has done, for reports: rows added to tables, cells scored, the largest table in bytes."""

    rows: int = 0
    cells: int = 0
    table_bytes: int = 0
    batches: int = 0


@dataclass(frozen=True, slots=True)
class Subtrees:
    """What `finish` has grown: tests, also of nodes that it has grown itself, and the children of all of them in order.

    The children of a test come one after another, those of a later test behind them.
    """

    splits: Splits
    born: Grown


def require_known(name: str, search: Search) -> None:
    """Refuse what only NumPy searches: rules of C4.5 beside tests that C4.5 does not know.

    Raises
    ------
    DeviceError
        If rows with missing values are spread, or a split must have some information, and numeric columns are not cut
        by a `CutRule`; or if they are, and not in a tree like those of C4.5.
    """
    limits, scans = search.limits, {generator.scan for generator in search.generators}
    plain = search.missing is Missing.BRANCH and limits.min_info <= 0 and limits.heavy is None
    plain &= Scan.ONE_AGAINST_REST not in scans
    like = search.missing is Missing.SPREAD and limits.monotone is None and limits.min_rows <= 1
    like &= search.criterion.needs is TargetKind.COUNTS and not search.criterion.two_branches
    like &= scans <= {Scan.CUTS, Scan.BRANCHES, Scan.ONE_AGAINST_REST}
    if not (plain if search.cuts is None else like):
        raise DeviceError(
            f"device={name!r} does not know this mixture of C4.5's rules with others; use device='numpy', or 'auto', "
            "which takes it"
        )


class Backend(Protocol):
    """The methods of a backend. k slots, m features a slot, C channels, O outputs."""

    name: str
    device: str
    note: str  # why "auto" chose it although something faster is installed, else ""
    work: Work
    table_bytes: int | None  # of its largest table where it cuts tables itself, so that growth need not

    def close(self) -> None:
        """Give back what is held outside of Python's memory; handles are of no use afterwards."""

    def edges(self, X: NDArray[Any], spec: CodeSpec, weight: NDArray[np.int64] | None) -> tuple[Cuts, ...]:
        """X f4/f8 (n, F), dense or sparse, NaN = missing; weight i8 (n,) or None -> the codes of every column."""

    def any_missing(self, X: NDArray[Any]) -> bool:
        """Whether X f4/f8 (n, F), dense or sparse, holds NaN."""

    def encode(self, X: NDArray[Any], cuts: tuple[Cuts, ...]) -> Codes:
        """X f4/f8 (n, F) -> u1 or u2 codes by feature."""

    def open(self, codes: Any, target: Target, bags: Bags) -> SHARD:
        """Rows of all bags, each bag the rows of one root; node ids 0 .. T - 1."""

    def totals(self, shard: SHARD) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Channels of the roots i8 (C, T), and their extent as below."""

    def histogram(self, shard: SHARD, slots: Slots, features: NDArray[np.int32]) -> TABLE:
        """Channels of the codes present in k slots; features i4 (k, m), -1 = none. Exact integers."""

    def read(self, table: TABLE) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The cells of a table: pair i8 (M,) = slot * m + place, code i8 (M,), channels i8 (C, M), in that order."""

    def search(self, table: TABLE, slots: Slots, search: Search, turn: int | None = None) -> Candidates:
        """Best test of every slot and feature (k, m).

        With ``turn`` a backend may keep only what `core.splits.choose` would take with that turn, (k, 1). Of numeric
        columns with `Search.cuts` the gain is what is left of it.
        """

    def finish_rows(self, shard: SHARD, search: Search) -> int:
        """Rows of the largest node whose subtree `finish` grows; 0 where the backend has none."""

    def finish(self, shard: SHARD, slots: Slots, depth: NDArray[np.int32], growth: Growth, first: int) -> Subtrees:
        """Whole subtrees of small nodes, whose depths are i4 (k,); new nodes have the numbers from ``first`` on.

        Every node is what the growth loop would make of it.
        """

    def children(self, shard: SHARD, splits: Splits) -> NDArray[np.int64]:
        """Channels i8 (C, sum of n_branches) of the branches, split by split.

        Where `Splits.missing` is SPREAD, rows with a missing value go to several, see `backends.spread`.
        """

    def partition(self, shard: SHARD, splits: Splits, children: NDArray[np.int32]) -> None:
        """Regroup rows by branch. children i4 (sum of n_branches,): the new node of every branch.

        Where rows are spread, those of all nodes that are not split are dropped.
        """

    def extent(self, shard: SHARD, nodes: NDArray[np.int32]) -> NDArray[np.float64]:
        """Min and max of target.sums.y in nodes i4 (k,) -> f8 (k, O, 2); 0 for counts and in empty nodes."""

    def residuals(
        self, shard: SHARD, nodes: NDArray[np.int32], value: NDArray[np.float64], criterion: Criterion
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean of y - value in nodes i4 (k,), and mean loss about the mean of y, f8 (k, O) each, as value.

        The sums are those of `core.summary.order_free_sums`; the loss about the mean is that about ``value`` less
        criterion.loss(mean of y - value, value). No node is empty and the target is one of sums.
        """

    def apply(self, forest: Forest, X: NDArray[Any]) -> NDArray[np.int32]:
        """Leaves i4 (n, T) of rows X f4/f8 (n, F): raw numbers, categories as 0 .. K - 1, unknown ones -1, NaN."""

    def predict(self, forest: Forest, X: NDArray[Any], share: Given = None, soft: Given = None) -> NDArray[np.float64]:
        """Sum of the leaf values of all trees, added in order, f8 (n, O').

        A forest that spreads needs ``share`` f8 (N,), see `core.routes.branch_shares`: the values of the leaves that a
        row falls into are added from left to right, each times the share of the row, the product of those on the way.
        ``soft`` f8 (2, N) are bounds of soft thresholds, see `core.routes.low_share`, given with these.
        """
