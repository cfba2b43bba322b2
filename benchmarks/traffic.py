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
import sys
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.traffic_model import BRANCHES, FLOOR, Level, Traffic, model, sectors
from gputree.backends.cuda import Cuda
from gputree.backends.gpu.driver import Driver
from gputree.backends.protocol import Bags, CodeSpec
from gputree.core.criteria import CRITERIA
from gputree.core.forest import Test
from gputree.core.keys import root_keys
from gputree.core.schema import Feature, Schema
from gputree.core.splits import NO_SPLITS, NOT_MET, THRESHOLD, Limits, Search, Slots, choose
from gputree.core.target import class_target

ROWS, CLASSES = (2_000, 20_000, 100_000), (2, 7, 30, 300)
MODEL_ROWS = 11_000_000  # too many for the emulator


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
