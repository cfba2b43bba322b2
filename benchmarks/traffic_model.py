"""What one level of a table moves and adds, as a model from the kernels' text: the half of `benchmarks.traffic`."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from functools import cached_property

from gputree.backends.gpu.rows import TILE as WARP_TILE
from gputree.backends.gpu.sizes import THREADS, TILE, Plan, plan

CODE, SHORT, WORD, LONG = 1, 2, 4, 8  # bytes: codes; branches of rows; row words, labels, 32-bit numbers; 64-bit ones
LANES, SECTOR, BEST = 32, 32, 48  # BEST: bytes of a test as the search writes it
SIDES = 64  # totals of branches that a warp keeps in shared memory
BRANCHES = 2
FLOOR = WORD + SECTOR + WORD
MULTIPROCESSORS, SHARED_BLOCK, SHARED_MULTIPROCESSOR = 132, 227 << 10, 228 << 10  # of an H100
KERNELS = (
    "describe_slots",
    "count",
    "search_cuts",
    "best_of_slots",
    "count_branches",
    "offsets",
    "move_rows",
    "put_back",
)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of global memory and atomics, as a program's threads issue them."""

    bytes_read: float = 0
    bytes_written: float = 0
    shared_atomics: float = 0
    global_atomics: float = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def nbytes(self) -> float:
        return self.bytes_read + self.bytes_written


@dataclass(frozen=True)
class Level:
    """The sizes of a level."""

    rows: int
    classes: int
    slots: int = 4
    features: int = 28
    known: int = 255  # codes of a feature, beside the cell of missing values

    @property
    def codes(self) -> int:
        return self.known + 1

    @property
    def bits(self) -> int:
        """Halvings that make the slots."""
        return self.slots.bit_length() - 1

    @property
    def middle(self) -> int:
        """The code behind which a column is halved."""
        return (self.known + 1) // 2

    @property
    def pairs(self) -> int:
        return self.slots * self.features

    @property
    def cells(self) -> int:
        """Of the table, each with a channel for every class."""
        return self.pairs * self.codes

    @property
    def slot_rows(self) -> int:
        return self.rows // self.slots

    @property
    def probes(self) -> int:
        """Of a search for the slot of a row or tile."""
        return math.ceil(math.log2(self.slots))

    @property
    def present(self) -> float:
        """Classes met in a slot."""
        return distinct(self.classes, self.slot_rows)

    @property
    def tiles(self) -> int:
        """Of all splits, for `count_branches` and `move_rows`."""
        return self.slots * math.ceil(self.slot_rows / WARP_TILE)

    @cached_property
    def shared(self) -> Plan | None:
        """How rows are counted in shared memory; None: in global memory."""
        how = plan(self.codes, self.classes, WORD, self.features, SHARED_BLOCK)
        return how if how and self.slot_rows >= self.codes * how.channels else None

    def runs(self, how: Plan) -> tuple[int, list[int]]:
        """Blocks of a part, and the rows that are added up between two flushes."""
        each = math.ceil(self.slot_rows / TILE)
        tiles = self.slots * each
        shares = how.shares(MULTIPROCESSORS, SHARED_MULTIPROCESSOR, tiles)
        starts = sorted({tiles * i // shares for i in range(shares)} | {each * i for i in range(self.slots)})
        stops = [*starts[1:], tiles]
        return shares, [
            min((stop - start) * TILE, self.slot_rows - start % each * TILE)
            for start, stop in zip(starts, stops, strict=True)
        ]


def distinct(kinds: float, draws: float) -> float:
    """Expected number of different ones among draws from equally likely kinds."""
    return kinds * (1 - (1 - 1 / kinds) ** draws)


# --- program bytes and atomics, kernel by kernel ------------------------------------------------------------------


def model(level: Level) -> dict[str, Traffic]:
    """Traffic by kernel; "count" is the one of `count_shared` and `count_global` that the host takes."""
    count = count_shared(level, level.shared) if level.shared else count_global(level)
    others = (search_cuts, best_of_slots, count_branches, offsets, move_rows, put_back)
    return dict(zip(KERNELS, (describe_slots(level), count, *(kernel(level) for kernel in others)), strict=True))


def describe_slots(level: Level) -> Traffic:
    """Channels twice: for the weight, then for the terms; four numbers out."""
    return Traffic(level.slots * (2 * LONG * level.classes + LONG + 2 * WORD), level.slots * 4 * LONG)


def count_shared(level: Level, how: Plan) -> Traffic:
    """A row, its code and its label a lane; the flush adds every cell that is not 0."""
    shares, runs = level.runs(how)
    passes = how.parts // math.ceil(level.features / how.own)  # parts of the channels
    adds = level.rows * level.features
    # tile_ptr[k] and the first slot; then of each run tile_ptr, start, stop, slot_of, place_of and cell_of[m]
    begin = THREADS * how.parts * shares * LONG * (1 + level.probes)
    visits = THREADS * how.parts * len(runs) * (3 * LONG + 3 * WORD)
    flushed = level.features * sum(distinct(level.known * level.classes, rows) for rows in runs)
    read = begin + visits + passes * adds * (WORD + CODE + WORD) + flushed * 2 * WORD
    return Traffic(read, 0, adds, flushed)


def count_global(level: Level) -> Traffic:
    """A thread finds out all by itself for every row and feature."""
    adds = level.rows * level.features
    # row_ptr[k], the slot, start, row_ptr; slot_of, the row, place_of, three of cell_of, the label; the code
    each = LONG * (1 + level.probes + 2) + WORD * 7 + CODE
    return Traffic(adds * each, 0, 0, adds)


def search_cuts(level: Level) -> Traffic:
    """A warp a pair, a lane a cell: channels for the weight, then for the gain, each with the node's own total."""
    steps = math.ceil(level.codes / LANES)
    weight = WORD * (1 + level.classes)  # sizes[0] and the channels of a cell
    # features, place_of, scans, cell_of (3), weight, cancels, bounds (2), key, offset, signs
    head = 6 * WORD + 6 * LONG + CODE
    tail = LONG * 3 + CODE  # offset, two values, exact
    step = weight + 2 * LONG + WORD + LONG * level.classes + WORD * level.present  # mean, own, sizes
    lanes = head + tail + 3 * weight + steps * step  # 3: missing values, twice, and the next code behind the cut
    carries = LONG * level.present  # of one lane
    return Traffic(level.pairs * (LANES * lanes + (steps - 1) * carries), level.pairs * (steps * carries + BEST))


def best_of_slots(level: Level) -> Traffic:
    """Score, feature and branches of every pair; the best one is copied."""
    read = level.slots * (level.features * (LONG + 2 * WORD) + BEST)
    return Traffic(read, level.slots * (BEST + LONG))


def count_branches(level: Level) -> Traffic:
    """Row, test, code and label of every row; totals in shared memory where they fit."""
    keep = BRANCHES * level.classes <= SIDES
    # of a tile: tile_ptr (2), the split, branch_ptr (3), lookup_ptr (2), count_ptr, start, stop; place and the test
    tile = LANES * (LONG * (11 + level.probes) + WORD * 4) + BRANCHES * (LONG + WORD)
    row = WORD + CODE + WORD  # the row, code, label
    joined = level.tiles * BRANCHES * (1 + (level.classes if keep else 0))
    return Traffic(
        level.rows * (row + ranks()) + level.tiles * tile,
        level.rows * (SHORT + ranks()),
        level.rows if keep else 0,
        joined + (0 if keep else level.rows),
    )


def ranks() -> float:
    """Bytes a row of the running counts of branches, read and written once for 32 rows."""
    return BRANCHES * WORD / LANES


def offsets(level: Level) -> Traffic:
    """Counts in and out; each lane reads the ranges of its split."""
    counts = level.tiles * BRANCHES * WORD
    return Traffic(level.slots * LANES * 5 * LONG + counts, counts)


def move_rows(level: Level) -> Traffic:
    """Branch and word of every row; the word goes out."""
    # of a tile: tile_ptr (2), the split, count_ptr, branch_ptr (2), start, stop, aside
    tile = LANES * LONG * (8 + level.probes)
    row = SHORT + WORD
    return Traffic(level.rows * (row + ranks()) + level.tiles * tile, level.rows * (WORD + ranks()))


def put_back(level: Level) -> Traffic:
    """The word of every row, in and out."""
    # of a tile: tile_ptr (2), the split, start, stop, aside
    tile = LANES * LONG * (5 + level.probes)
    return Traffic(level.rows * WORD + level.tiles * tile, level.rows * WORD)


# --- sector bytes ---------------------------------------------------------------------------------------------------


def sectors(level: Level) -> dict[str, float]:
    """Bytes that memory moves for the rows of a level by kernel, and for its table."""
    parts = level.shared.parts if level.shared else 1
    return {
        # the label is in the record; each part of the features or classes reads row word and record again
        "count": level.rows * parts * (WORD + SECTOR),
        "count_branches": level.rows * (WORD + SECTOR + SHORT),
        "move_rows": level.rows * (WORD + SHORT + WORD),
        "put_back": level.rows * (WORD + WORD),  # where no cache helps; the room for moved rows is made to stay in one
        "table": table_sectors(level),
    }


def table_sectors(level: Level) -> float:
    """The table is zeroed and searched; sectors with rows are read and written once by the additions."""
    nbytes = WORD * level.cells * level.classes
    per = SECTOR // WORD
    touched = distinct(level.known * level.classes / per, level.slot_rows) * level.pairs * SECTOR
    return 2 * nbytes + 2 * touched
