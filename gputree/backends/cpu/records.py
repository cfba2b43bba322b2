"""What the kernels work on. An array of size 0 stands for None.

Compiled, a record is one pointer: records by value would cost minutes of compilation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy import float64, int32, int64, uint8, uint16, uint32, uint64
from numpy.typing import NDArray

from gputree.backends.cpu.marks import record


@record
class Source:
    """The rows of a shard: codes by row (n, F), what a row adds, and rows grouped by node."""

    codes: NDArray[Any]  # u1, u2 or u4 (n, F)
    labels: NDArray[int32]  # (O, n) class numbers, or (0, 0)
    values: NDArray[int64]  # (O, n) fixed-point sums, or (0, 0)
    y: NDArray[float64]  # (O, n), or (0, 0)
    units: NDArray[int64]  # (n,) weights, or (0,)
    row: NDArray[uint32]  # (P,) row at each position
    times: NDArray[Any]  # (P,) how often, or (0,); where rows were spread, the weight, and there are no units


@record
class Layout:
    """What channels mean, see `gputree.core.target.Layout`; ``first`` channel of each output, ``rows`` -1 for none."""

    first: NDArray[int64]  # (O,)
    sizes: NDArray[int64]  # (O,)
    scale: NDArray[float64]  # (O,)
    counts: bool
    centred: bool
    rows: int  # channel of a node
    n_channels: int  # of a node
    table: int  # of a table: without that of rows where no limit asks for it


@record
class Meaning:
    """Codes of all columns, see `gputree.core.schema.Book`, and how each column is searched."""

    values: NDArray[float64]
    edges: NDArray[float64]
    offset: NDArray[int64]
    n_codes: NDArray[int64]
    declared: NDArray[int64]
    exact: NDArray[uint8]
    scan: NDArray[int64]  # (F,) number of `splits.Scan`, or -1
    linked: NDArray[uint8]  # (F,) whether rows are listed by code, and not counted


@record
class Rules:
    """What tests must respect, and when a node stays a leaf."""

    monotone: NDArray[int64]  # (F,), or (0,)
    min_rows: int
    min_weight: int
    max_branches: int  # 0 for any number
    missing_alone: bool  # whether missing against known values is a test
    least_met: int  # branches with rows of a test with a branch for each category
    by_mean: bool  # whether one number tells the target of a category
    turn: int  # features tried at a time
    max_depth: int
    stop_rows: int
    min_gain: float
    above: float
    spread: bool  # whether rows with a missing value are set aside, and spread
    heavy: int  # branches that weigh min_weight, 0 for all
    min_info: float
    cuts: NDArray[float64]  # the fields of `splits.CutRule`, or (0,)


@record
class Part:
    """Some rows in cache: codes by column as loaded; all else in node order, ``at`` the place in a column.

    A column whose codes are many for so few rows may hold their numbers among those present: ``names`` tells the codes.
    """

    column: NDArray[Any]  # u1, u2 or u4 (features, R)
    at: NDArray[uint32]  # (R,)
    label: NDArray[uint32]  # (O, R)
    weight: NDArray[int64]  # (R,)
    value: NDArray[int64]  # (O, R)
    y: NDArray[float64]  # (O, R)
    present: NDArray[int64]  # (features,) codes present, 0 where a column holds codes themselves
    names: NDArray[uint32]  # (features, R) the codes present, ascending


@record
class Scratch:
    """One thread's own room. Tables and bits are 0 between uses."""

    table: NDArray[int64]  # (features, codes * channels), or codes and rows, see `cells.link`
    bits: NDArray[uint64]  # (features, words) codes present
    number: NDArray[uint32]  # (codes,) of a code among those present
    code: NDArray[int64]  # of each cell, ascending; of subsets the rank
    place: NDArray[int64]  # of each cell in the table
    value: NDArray[float64]  # of each cell
    left: NDArray[int64]  # (channels,)
    figures: NDArray[float64]  # (2, 4) score, gain, low, score before rounding: of a feature, and of the node's best
    test: NDArray[int64]  # (2, 6) kind, cut, missing, branches, feature, cells of the lookup
    look_code: NDArray[uint16]  # (2, categories)
    look_branch: NDArray[uint16]  # (2, categories)
    rank: NDArray[uint64]  # heap of ranked features: hashes
    feature: NDArray[int64]  # ... and columns
    order: NDArray[uint32]  # (R,) rows of a node by branch
    branch: NDArray[int32]  # (R,)


@record
class Node:
    """An open node."""

    total: NDArray[int64]  # (C,)
    X: NDArray[float64]  # (C,) its channels as the criterion reads them
    mean: NDArray[int64]  # (O,)
    parent: NDArray[float64]  # (O,) its own part of the gain
    weight: int
    rows: int
    N: float
    scale: float
    low: float  # monotone bounds
    high: float
    key: uint64
    gain_scale: float
    whole: float  # weight with the rows that are set aside
    aside: float  # what these add to the information of a split


class Facts(NamedTuple):
    """What the gain of a cut depends on, by value: the loop over cuts must not fetch it anew."""

    first: NDArray[int64]
    sizes: NDArray[int64]
    scale: NDArray[float64]
    total: NDArray[int64]
    X: NDArray[float64]
    mean: NDArray[int64]
    parent: NDArray[float64]
    weight: int


class Listed(NamedTuple):
    """The rows that `cells.link` lists, by value: as `Part`; the one before row k is at ``behind`` + k in the table."""

    label: NDArray[uint32]  # (R,)
    weight: NDArray[int64]  # (R,)
    behind: int
    counted: int  # channel of the number of rows, or -1


@record
class Job:
    """Everything that stays the same while a thread works."""

    source: Source
    layout: Layout
    meaning: Meaning
    rules: Rules
    part: Part
    scratch: Scratch
