"""Time and bytes a second of every kernel, called through the backend's own methods, beside a copy on the device.

`benchmarks.gpu_model` says what each must move at least.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu_model import MODEL, Load
from benchmarks.gpu_tables import Generated
from benchmarks.gpu_tools import RUNS, Lab, TimedDriver, Timing
from gputree.backends.cuda import Cuda
from gputree.backends.protocol import Bags, CodeSpec
from gputree.core.bags import strata
from gputree.core.criteria import CRITERIA
from gputree.core.forest import SPREAD, Forest, Test
from gputree.core.keys import root_keys
from gputree.core.routes import branch_shares
from gputree.core.schema import Cuts, Feature, Kind, Schema
from gputree.core.splits import (
    MULTIWAY,
    NO_SPLITS,
    ONE_AGAINST_REST,
    SUBSET,
    THRESHOLD,
    CutRule,
    Limits,
    Missing,
    Search,
    Slots,
    Splits,
    Stop,
)
from gputree.core.target import Target, class_target, refined, sum_target
from gputree.engine.grow import grow
from gputree.engine.recipe import Recipe


@dataclass(frozen=True)
class Scene:
    """One call of the backend, whose launches are timed."""

    name: str
    load: Load
    call: Callable[[], Any]


@dataclass
class Bench:
    """Times of the launches of all scenes, round by round."""

    lab: Lab
    driver: TimedDriver
    scenes: list[Scene] = field(default_factory=list)
    seconds: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    launches: dict[tuple[str, str], int] = field(default_factory=dict)
    copies: list[float] = field(default_factory=list)

    def add(self, name: str, load: Load, call: Callable[[], Any]) -> None:
        self.scenes.append(Scene(name, load, call))

    def run(self, runs: int = RUNS) -> list[dict[str, Any]]:
        """All scenes and the copy in turn, after a warm-up round."""
        copy = Copy.of(self.lab)
        for number in range(1 + runs):
            seconds = copy.seconds(self.lab)
            if number:
                self.copies.append(seconds)
            for scene in self.scenes:
                self.driver.launches.clear()
                scene.call()
                self.collect(scene, keep=number > 0)
        rate = copy.moved / Timing(tuple(self.copies)).median
        first = {"kernel": "copy", "scene": "device to device", "launches": 1, "model": "2 bytes a byte"}
        found = [figures(first, Timing(tuple(self.copies)), copy.moved, rate)]
        for scene in self.scenes:
            found += self.records(scene, rate)
        return found

    def collect(self, scene: Scene, keep: bool) -> None:
        """Add up the launches of one call by kernel."""
        total: dict[str, list[float]] = defaultdict(list)
        for launch in self.driver.launches:
            total[launch.kernel].append(launch.span.seconds)
        for kernel, seconds in total.items():
            self.launches[scene.name, kernel] = len(seconds)
            if keep:
                self.seconds[scene.name, kernel].append(sum(seconds))

    def records(self, scene: Scene, rate: float) -> list[dict[str, Any]]:
        found = []
        for (name, kernel), seconds in self.seconds.items():
            if name == scene.name:
                text, nbytes = MODEL[kernel]
                head = {"kernel": kernel, "scene": name, "launches": self.launches[name, kernel], "model": text}
                found.append(figures(head, Timing(tuple(seconds)), nbytes(scene.load), rate))
        return found


def figures(head: dict[str, Any], timing: Timing, nbytes: int, rate: float) -> dict[str, Any]:
    """A record of one kernel: seconds, bytes of the model, bytes a second, and their share of the copy's."""
    reached = nbytes / timing.median
    return {
        **head,
        "seconds": timing.record(),
        "bytes": nbytes,
        "bytes_per_second": reached,
        "share_of_copy": reached / rate,
    }


@dataclass(frozen=True)
class Copy:
    """A copy from device memory to device memory: it reads and writes every byte."""

    source: Any
    target: Any

    @classmethod
    def of(cls, lab: Lab) -> Copy:
        cells = lab.size(1 << 28, 1 << 16)
        return cls(*(lab.xp.zeros(cells, np.uint32) for _ in range(2)))

    @property
    def moved(self) -> int:
        return 2 * int(self.source.nbytes)

    def seconds(self, lab: Lab) -> float:
        with lab.clock.span() as spans:
            self.target[...] = self.source
        return spans[0].seconds


# --- scenes -----------------------------------------------------------------------------------------------------------


def measure(lab: Lab, name: str) -> list[dict[str, Any]]:
    """One group of scenes: they share tables, which are gone afterwards."""
    driver = TimedDriver.of(lab.xp, lab.device, lab.compiled)
    driver.clock = lab.clock
    backend, bench = Cuda(driver), Bench(lab, driver)
    with ExitStack() as stack:
        stack.callback(backend.close)
        stack.enter_context(driver.use())
        GROUPS[name](bench, backend)
        found = bench.run()
        bench.scenes.clear()
    return found


def exact(codes: int, m: int, kind: Kind = Kind.NUMERIC) -> tuple[Cuts, ...]:
    return tuple(Cuts(np.arange(codes, dtype=np.float64), kind=kind) for _ in range(m))


def two_classes(made: Generated) -> Target:
    return class_target(made.labels(2)[:, None], (2,), None)


def codes_group(bench: Bench, backend: Cuda) -> None:
    """Raw values to codes, labels into records, rows in order."""
    lab = bench.lab
    n, few = lab.size(11_000_000, 3000), lab.size(4_000_000, 2000)
    made, small = Generated(n, 28, 255), Generated(few, 4, 5000)
    X, narrow, target = made.on_device(lab), small.on_device(lab), two_classes(made)
    names = Schema(tuple(Feature(str(f)) for f in range(4)))
    codes = backend.encode(X, exact(255, 28))
    bench.add("encode 28 columns", Load(n), lambda: backend.encode(X, exact(255, 28)))
    bench.add("encode 4 of 5,000 codes", Load(few, m=4), lambda: backend.encode(narrow, exact(5000, 4)))
    bench.add("is a value missing", Load(n), lambda: backend.any_missing(X))
    bench.add("edges of 4 columns", Load(few, m=4), lambda: backend.edges(narrow, CodeSpec(names), None))
    # codes whose records do not hold the labels yet: else `open` finds them there
    bench.add("open", Load(n), lambda: backend.open(replace(codes, labelled=None), target, Bags(1)))
    drawn = Bags(draws=strata(None, n, np.array([n]), None, replace=True))
    bench.add("open, n rows drawn", Load(n, m=1), lambda: backend.open(codes, target, drawn))


def levels_group(bench: Bench, backend: Cuda) -> None:
    """Tables, searches and partitions of 28 columns at few, many and very many slots."""
    lab = bench.lab
    n = lab.size(11_000_000, 3000)
    made = Generated(n, 28, 255)
    target, codes = two_classes(made), backend.encode(made.on_device(lab), exact(255, 28))
    for depth in lab.size((0, 10, 15), (0, 3)):
        shard = backend.open(codes, target, Bags(1))
        nodes, stats = deepen(backend, shard, depth)
        level(bench, backend, shard, (nodes, stats), Load(n, k=nodes.size))


def targets_group(bench: Bench, backend: Cuda) -> None:
    """The root's table for other targets: weighted sums, 30 and 300 classes, 90% of rows in one code."""
    lab = bench.lab
    n, m = lab.size(4_000_000, 600), lab.size(28, 5)
    made, skewed = Generated(n, m, 255), Generated(n, m, 255, skewed=True)
    y = made.labels(200).astype(np.float64)
    sums = sum_target(y[:, None], CRITERIA["squared_error"], 1.0 + np.arange(n) % 3)
    cases = [
        ("two classes", made, two_classes(made), Load(n, m)),
        ("90% in one code", skewed, two_classes(skewed), Load(n, m)),
        ("weighted sums", made, sums, Load(n, m, C=3, b=8, t=16, T=16)),
    ]
    for c in (7, 30, 300):
        cases.append((f"{c} classes", made, class_target(made.labels(c)[:, None], (c,), None), Load(n, m, C=c)))
    for name, rows, target, load in cases:
        # codes of their own: `open` writes the labels into the records
        shard = backend.open(backend.encode(rows.on_device(lab), exact(255, m)), target, Bags(1))
        stats, _ = backend.totals(shard)
        search = Search((THRESHOLD,), CRITERIA["squared_error" if target.sums else "gini"], Limits())
        add_search(bench, backend, shard, (np.zeros(1, np.int32), stats), (f"root, {name}", load, search))


def sparse_group(bench: Bench, backend: Cuda) -> None:
    """Features of 5,000 codes: sorted entries."""
    lab = bench.lab
    n = lab.size(4_000_000, 2000)
    made = Generated(n, 4, 5000)
    shard = backend.open(backend.encode(made.on_device(lab), exact(5000, 4)), two_classes(made), Bags(1))
    stats, _ = backend.totals(shard)
    search = Search((THRESHOLD,), CRITERIA["gini"], Limits())
    root = np.zeros(1, np.int32), stats
    add_search(bench, backend, shard, root, ("root, 5,000 codes", Load(n, m=4, W=5001), search))


def categories_group(bench: Bench, backend: Cuda) -> None:
    """Columns of 100 categories: subsets, and a branch each."""
    lab = bench.lab
    n, m, depth = lab.size(4_000_000, 1500), 8, lab.size(8, 2)
    made = Generated(n, m, 100)
    codes = backend.encode(made.on_device(lab), exact(100, m, Kind.CATEGORICAL))
    shard = backend.open(codes, two_classes(made), Bags(1))
    root = deepen(backend, shard, depth)
    for name, generator in (("subsets", SUBSET), ("branches", MULTIWAY)):
        search = Search((generator,), CRITERIA["entropy"], Limits())
        load = Load(n, m=m, k=root[0].size, W=101, w=4)
        add_search(bench, backend, shard, root, (f"{root[0].size} slots, {name} of 100", load, search))


def shares_group(bench: Bench, backend: Cuda) -> None:
    """C4.5's searches among known rows, and rows whose shares are moved."""
    lab = bench.lab
    n, m = lab.size(4_000_000, 1500), 8
    made, rule = Generated(n, m, 100), CutRule(1.0, 0.05, 2.0, 25.0, 1e-6, 1e-5)
    target, X, root = refined(two_classes(made)), made.on_device(lab), np.zeros(1, np.int32)
    ids = np.arange(1, 3, dtype=np.int32)
    for name, generator in (("cuts", THRESHOLD), ("branches", MULTIWAY), ("one of", ONE_AGAINST_REST)):
        shard = backend.open(backend.encode(X, exact(100, m, generator.serves)), target, Bags(1))
        stats, _ = backend.totals(shard)
        search = Search((generator,), CRITERIA["gain_ratio"], Limits(heavy=2), Missing.SPREAD, rule)
        load = Load(n, m=m, W=101, C=3, b=8, T=16)
        add_search(bench, backend, shard, (root, stats), (f"root, {name} of known rows", load, search))

    def split() -> None:
        shard = backend.open(codes, target, Bags(1))
        backend.totals(shard)
        backend.children(shard, splits)
        backend.partition(shard, splits, ids)

    codes, splits = backend.encode(X, exact(100, m)), replace(cut(root, 0, 50), missing=np.full(1, SPREAD, np.int32))
    bench.add("root, in shares", load, split)


def predict_group(bench: Bench, backend: Cuda) -> None:
    """Rows down a tree of depth 10; missing values down one branch, then down both."""
    lab = bench.lab
    n = lab.size(11_000_000, 3000)
    made = Generated(n, 28, 255)
    X = made.on_device(lab)
    recipe = Recipe(Search((THRESHOLD,), CRITERIA["gini"], Limits()), Stop(lab.size(10, 4)))
    forest: Forest = grow(backend, backend.encode(X, exact(255, 28)), two_classes(made), recipe, 1)
    bench.add(f"leaves, depth {forest.max_depth}", Load(n), lambda: backend.apply(forest, X))
    bench.add(f"values, depth {forest.max_depth}", Load(n), lambda: backend.predict(forest, X))
    spread = replace(forest, missing=np.where(forest.kind == Test.LEAF, np.uint16(0), np.uint16(SPREAD)))
    share = branch_shares(forest, forest.stats.sum(axis=1))
    bench.add(f"shares, depth {forest.max_depth}", Load(n), lambda: backend.predict(spread, X, share))


GROUPS: dict[str, Callable[[Bench, Cuda], None]] = {
    "codes": codes_group,
    "levels": levels_group,
    "targets": targets_group,
    "sparse": sparse_group,
    "categories": categories_group,
    "shares": shares_group,
    "predict": predict_group,
}

Nodes = tuple[NDArray[np.int32], NDArray[np.int64]]  # nodes and their channels


def level(bench: Bench, backend: Cuda, shard: Any, nodes: Nodes, load: Load) -> None:
    """Search all slots, then count and move their rows; what is moved is moved again from the same place."""
    name = f"{load.k:,} slots"
    add_search(bench, backend, shard, nodes, (name, load, Search((THRESHOLD,), CRITERIA["gini"], Limits())))
    splits = cut(nodes[0], shard.codes.n_codes.size - 1)
    ids = np.arange(2 * load.k, dtype=np.int32) + int(nodes[0].max()) + 1

    def split() -> None:
        backend.children(shard, splits)
        backend.partition(shard, splits, ids)

    bench.add(name, load, split)


def add_search(bench: Bench, backend: Cuda, shard: Any, nodes: Nodes, scene: tuple[str, Load, Search]) -> None:
    """Histogram and search of some nodes."""
    (ids, stats), (name, load, search) = nodes, scene
    slots = Slots(ids, root_keys(1, ids), stats, shard.size(ids), np.repeat([[-np.inf], [np.inf]], ids.size, axis=1))
    m = shard.codes.n_codes.size
    features = np.broadcast_to(np.arange(m, dtype=np.int32), (ids.size, m))
    bench.add(name, load, lambda: backend.search(backend.histogram(shard, slots, features), slots, search, m))


def deepen(backend: Cuda, shard: Any, depth: int) -> Nodes:
    """Split every node at the middle code of another column, so that nodes are of one size."""
    nodes, (stats, _) = np.zeros(1, np.int32), backend.totals(shard)
    for d in range(depth):
        splits = cut(nodes, d % shard.codes.n_codes.size, int(shard.codes.n_codes[0]) // 2)
        stats = backend.children(shard, splits)
        children = np.arange(2 * nodes.size, dtype=np.int32) + int(nodes.max()) + 1
        backend.partition(shard, splits, children)
        nodes = children
    return nodes, stats


def cut(nodes: NDArray[np.int32], f: int, code: int = 127) -> Splits:
    """Cut nodes behind one code of column f, missing values right."""
    k = nodes.size
    return Splits(
        nodes,
        np.full(k, f, np.int32),
        *(np.zeros(k) for _ in range(2)),
        np.full(k, Test.THRESHOLD, np.uint8),
        np.full(k, code, np.int32),
        np.zeros(k),
        np.ones(k, np.int32),
        np.full(k, 2, np.int32),
        np.zeros(k + 1, np.int64),
        NO_SPLITS.lookup_code,
        NO_SPLITS.lookup_branch,
    )
