"""What one level of a 28-column table moves and adds: a model from the kernels' text, beside the emulator's counts.

    python -m benchmarks.traffic [--rows 2000,20000,100000] [--classes 2,7,30,300]

The model knows the sizes of the level and how the host shares out the work (`gputree.backends.gpu.sizes`), and no run.
It counts two things. *Program bytes* are what threads load and store, each for itself: 28 lanes that load the same row
word count 28 times. The emulator counts the same, so the two are compared. *Sector bytes* are what memory must move
where a warp's loads of a sector of 32 bytes are one, and what stays in a cache between loads of a block costs nothing:
this is derived, not measured, and stands beside the floor of 40 bytes a row: row word in, record, row word out.

The level: slots of equal size whose rows lie at random in the table, every column 255 codes that are equally frequent
(the columns that make the slots have half of them in a slot), no missing values, labels at random.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import sys
from dataclasses import astuple, dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cuda import Cuda
from gputree.backends.gpu.driver import Driver
from gputree.backends.gpu.rows import TILE as WARP_TILE
from gputree.backends.gpu.sizes import THREADS, TILE, Plan, plan
from gputree.backends.protocol import Bags, CodeSpec
from gputree.core.criteria import CRITERIA
from gputree.core.forest import Test
from gputree.core.keys import root_keys
from gputree.core.schema import Feature, Schema
from gputree.core.splits import NO_SPLITS, NOT_MET, THRESHOLD, Limits, Search, Slots, choose
from gputree.core.target import class_target

CODE, SHORT, WORD, LONG = 1, 2, 4, 8  # bytes: codes; branches of rows; row words, labels, 32-bit numbers; 64-bit ones
LANES, SECTOR, BEST = 32, 32, 48  # BEST: bytes of a test as the search writes it
SIDES = 64  # totals of branches that a warp keeps in shared memory
BRANCHES = 2
FLOOR = WORD + SECTOR + WORD
MULTIPROCESSORS, SHARED_BLOCK, SHARED_MULTIPROCESSOR = 132, 227 << 10, 228 << 10  # of an H100
ROWS, CLASSES = (2_000, 20_000, 100_000), (2, 7, 30, 300)
MODEL_ROWS = 11_000_000  # too many for the emulator
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


# --- what the emulator counts ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class Grown:
    """Rows in open nodes of equal size on an emulated device."""

    emulator: Any
    backend: Cuda
    shard: Any
    nodes: NDArray[np.int32]
    stats: NDArray[np.int64]

    @classmethod
    def of(cls, level: Level) -> Grown:
        """All rows in one node, halved until there are enough."""
        from tests.emulator.driver import Emulator  # in a checkout only

        emulator, rng = Emulator(checked=True), np.random.default_rng(0)
        backend = Cuda(Driver.of(emulator.xp, 0))
        X, labels = columns(level, rng), rng.integers(0, level.classes, (level.rows, 1), dtype=np.int32)
        cuts = backend.edges(X, CodeSpec(Schema(tuple(Feature(str(f)) for f in range(level.features)))), None)
        shard = backend.open(backend.encode(X, cuts), class_target(labels, (level.classes,), None), Bags(1))
        grown = cls(emulator, backend, shard, np.zeros(1, np.int32), backend.totals(shard)[0])
        for bit in range(level.bits):
            grown.halve(bit, level.middle)
        return grown

    def halve(self, feature: int, cut: int) -> None:
        """Split every node behind one code of a column."""
        same = {"feature": feature, "kind": Test.THRESHOLD, "cut": cut, "missing": NOT_MET, "n_branches": BRANCHES}
        fields = {name: np.full(self.nodes.size, x, getattr(NO_SPLITS, name).dtype) for name, x in same.items()}
        ptr = np.zeros(self.nodes.size + 1, np.int64)
        self.split(replace(NO_SPLITS, node=self.nodes, lookup_ptr=ptr, **fields))

    def split(self, splits: Any) -> None:
        """What a level does with its tests."""
        self.stats = self.backend.children(self.shard, splits)
        self.nodes = self.nodes[-1] + 1 + np.arange(self.stats.shape[1], dtype=np.int32)
        self.backend.partition(self.shard, splits, self.nodes)

    def search(self, n_features: int) -> Any:
        """The best tests of the open nodes."""
        nodes, bounds = self.nodes, np.repeat([[-np.inf], [np.inf]], self.nodes.size, axis=1)
        slots = Slots(nodes, root_keys(0, nodes), self.stats, self.stats.sum(axis=0), bounds)
        features = np.broadcast_to(np.arange(n_features, dtype=np.int32), (nodes.size, n_features))
        table = self.backend.histogram(self.shard, slots, features)
        found = self.backend.search(table, slots, Search((THRESHOLD,), CRITERIA["gini"], Limits()), n_features)
        return choose(found, slots, n_features)[0]


def columns(level: Level, rng: np.random.Generator) -> NDArray[np.float32]:
    """Values 0 .. known - 1; that of column b is above the middle where bit b of the row's slot is set."""
    slot = rng.permutation(level.rows) % level.slots
    X = np.empty((level.rows, level.features), np.float32)
    for f in range(level.features):
        X[:, f] = rng.permutation(level.rows) % level.known
    for b in range(level.bits):
        for high, (first, stop) in enumerate(((0, level.middle), (level.middle, level.known))):
            where = np.flatnonzero(slot >> b & 1 == high)
            X[where, b] = first + rng.permutation(where.size) % (stop - first)
    return X


def measure(level: Level) -> dict[str, Traffic]:
    """What the kernels do for one level: tables, the best tests, children, rows regrouped."""
    grown = Grown.of(level)
    grown.emulator.counters.clear()
    grown.split(grown.search(level.features))
    found: dict[str, Traffic] = {}
    for kernel, c in grown.emulator.counters.items():
        name = "count" if kernel in ("count_shared", "count_global") else kernel
        traffic = Traffic(c.bytes_read, c.bytes_written, c.shared_atomics, c.global_atomics)
        found[name] = found.get(name, Traffic()) + traffic
    return found


def total(traffic: dict[str, Traffic]) -> Traffic:
    """All kernels together."""
    return sum(traffic.values(), Traffic())


# --- the table ------------------------------------------------------------------------------------------------------

HEAD = (
    "| rows | classes | counted in | program bytes a row | bytes: model / counted | of them counting | sectors, rows "
    "| sectors, table | floor | shared atomics | global atomics | atomics: model / counted |\n|" + "--:|" * 12
)


def line(level: Level, found: dict[str, Traffic] | None) -> str:
    """A row of the table; found = None: the model alone."""
    said, adds, memory = model(level), level.rows * level.features, sectors(level)
    seen = said if found is None else found
    nbytes, atomics = total(seen).nbytes, total(seen).global_atomics
    pairs = (total(said).nbytes, nbytes), (total(said).global_atomics, atomics)
    ratios = [f"{a / b:.2f}" if found else "not run" for a, b in pairs]
    counts = nbytes, seen["count"].nbytes, sum(memory.values()) - memory["table"], memory["table"]
    per_row = [f"{x / level.rows:,.0f}" for x in counts]
    where = f"shared x {level.shared.parts}" if level.shared else "global"
    cells = [f"{level.rows:,}", f"{level.classes:,}", where, per_row[0], ratios[0], *per_row[1:]]
    cells += [f"{FLOOR:,}", f"{total(seen).shared_atomics / adds:,.2f}", f"{atomics / adds:,.2f}", ratios[1]]
    return f"| {' | '.join(cells)} |"


def numbers(least: int, text: str) -> list[int]:
    """Numbers with commas between them."""
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) >= least for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} must be whole numbers of at least {least}, as 2000,20000")
    return [int(part) for part in parts]


def arguments(argv: list[str] | None) -> argparse.Namespace:
    name, layout = "python -m benchmarks.traffic", argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(name, description=__doc__, formatter_class=layout)
    rows, classes = (",".join(map(str, some)) for some in (ROWS, CLASSES))
    rows += f", and {MODEL_ROWS:,} by the model alone"
    parser.add_argument("--rows", type=partial(numbers, 100), help=f"at least 100 (default: {rows})")
    parser.add_argument("--classes", type=partial(numbers, 2), default=CLASSES, help=f"at least 2 (default: {classes})")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    options = arguments(argv)
    from tests.emulator.compiler import CompilerMissing, find_compiler  # in a checkout only

    try:
        find_compiler()
    except CompilerMissing as missing:
        print(f"nothing can be counted: {missing}", file=sys.stderr)
        return 2
    print(HEAD)
    for level in (Level(rows, classes) for rows in options.rows or ROWS for classes in options.classes):
        with contextlib.redirect_stdout(io.StringIO()):  # the emulator's seed, which its errors tell again
            found = measure(level)
        print(line(level, found), flush=True)
    for classes in () if options.rows else options.classes:
        print(line(Level(MODEL_ROWS, classes), None))
    return 0


if __name__ == "__main__":
    sys.exit(main())
