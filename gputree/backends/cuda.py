"""The CUDA backend: arrays of CuPy and raw kernels, the same bits as the oracle. May import core and the protocol.

Rows, codes and tables stay on the device. A level costs one launch of each kernel for all nodes of all trees, whatever
their number, and two copies to the host: the best tests, and the channels and sizes of the branches; two more where
tests list categories.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.apart import search_apart
from gputree.backends.arrays import to_host
from gputree.backends.gpu import codes, rows, spread, walk
from gputree.backends.gpu.codes import DeviceCodes
from gputree.backends.gpu.driver import Driver
from gputree.backends.gpu.search import Searcher
from gputree.backends.gpu.shard import DeviceShard
from gputree.backends.gpu.tables import Chunk, chunks
from gputree.backends.oracle import Oracle
from gputree.backends.oracle import candidates as from_host
from gputree.backends.protocol import CodeSpec, DeviceError, Given, Subtrees, Work, require_known
from gputree.backends.spread import is_spread
from gputree.backends.untraced import search_untraced
from gputree.core.bags import Bags
from gputree.core.criteria import Criterion
from gputree.core.forest import Forest
from gputree.core.schema import MAX_CODES, Cuts, Kind, category_cuts, sorted_cuts
from gputree.core.splits import Candidates, Growth, Search, Slots, Splits
from gputree.core.target import Target

SHARE = 4  # a table takes at most this part of the free memory
TABLE_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Table:
    """A table to be counted: k slots and their features (k, m)."""

    shard: DeviceShard
    slots: Slots
    features: NDArray[np.int32]


class Cuda:
    """The backend of one CUDA device."""

    name = "cuda"
    note = ""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.device = f"cuda:{driver.device}"
        self.work = Work()
        with driver.use():
            self.table_bytes: int | None = min(TABLE_BYTES, driver.free() // SHARE)

    def close(self) -> None:
        """Give the memory back."""
        self.driver.close()

    def edges(self, X: Any, spec: CodeSpec, weight: NDArray[np.int64] | None) -> tuple[Cuts, ...]:
        """Sort every column on the device; the host draws the cuts."""
        found: list[Cuts] = []
        with self.driver.use():
            for feature, column in zip(spec.schema.features, codes.columns(self.driver, X), strict=True):
                if feature.kind == Kind.CATEGORICAL:
                    found.append(category_cuts(feature))
                elif weight is None:
                    self.driver.sort(column)
                    found.append(sorted_cuts(column.get(), None, spec.max_codes))
                else:
                    order = self.driver.argsort(column).get()
                    found.append(sorted_cuts(column.get()[order], weight[order], spec.max_codes))
                if found[-1].n_codes > MAX_CODES:
                    values = f"column {feature.name!r} has {found[-1].n_codes:,} distinct values"
                    remedy = "fit on device='cpu', or with max_bins='auto'"
                    raise DeviceError(f"max_bins=None: {values}, and CUDA tells {MAX_CODES:,} apart; {remedy}")
        return tuple(found)

    def any_missing(self, X: Any) -> bool:
        """Count what is missing."""
        with self.driver.use():
            return codes.any_missing(self.driver, X)

    def encode(self, X: Any, cuts: tuple[Cuts, ...]) -> DeviceCodes:
        """Codes of every column."""
        with self.driver.use():
            return codes.encode(self.driver, X, cuts)

    def open(self, codes: DeviceCodes, target: Target, bags: Bags) -> DeviceShard:
        """List the rows of every bag."""
        with self.driver.use():
            return rows.open_shard(codes, target, bags)

    def totals(self, shard: DeviceShard) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Channels and extent of the roots."""
        with self.driver.use():
            return rows.totals(shard)

    def histogram(self, shard: DeviceShard, slots: Slots, features: NDArray[np.int32]) -> Table:
        """A description: cells are counted as they are searched, some slots at a time."""
        return Table(shard, slots, features)

    def chunks(self, table: Table) -> Iterator[Chunk]:
        """The slots of a table, as many at a time as memory allows now."""
        return chunks(table.shard, table.slots, table.features, min(self.table_bytes or 0, self.driver.free() // SHARE))

    def read(self, table: Table) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """All cells, sorted by pair."""
        none = np.zeros(0, np.int64)
        found = [(none, none, np.zeros((table.shard.target.layout.n_channels, 0), np.int64))]
        first = 0
        with self.driver.use():
            for chunk in self.chunks(table):
                for pair, code, stats in (chunk.read(cells) for cells in chunk.tables()):
                    found.append((pair + first * chunk.m, code, stats))
                first += len(chunk.slots)
        pair, code, stats = (np.concatenate(part, axis=-1) for part in zip(*found, strict=True))
        order = np.lexsort((code, pair))
        return pair[order], code[order], stats[:, order]

    def search(self, table: Table, slots: Slots, search: Search, turn: int | None = None) -> Candidates:
        """The best test of every slot, or with ``turn=None`` of every slot and feature."""
        if not search.criterion.traced:
            self.work.rows += int(table.shard.size(slots.id).sum())
            read, layout = self.read(table), table.shard.target.layout
            return from_host(*search_untraced(read, table.shard.codes.book, table.features, slots, layout, search))
        if search.groups is not None:
            return search_apart(self, table, slots, search)
        require_known("cuda", search)
        k, m = table.features.shape
        width = m if turn is None else 1
        tests, lookups, first = [], [], 0
        with self.driver.use():
            for chunk in self.chunks(table):
                searcher, tables = Searcher.of(chunk, search), []
                for cells in chunk.tables():
                    searcher.search(cells)
                    tables.append(cells)
                    self.work.cells += cells.n_cells
                    self.work.table_bytes = max(self.work.table_bytes, int(cells.table.nbytes))
                found, pair = searcher.chosen(turn)
                test, code, branch = searcher.lookups(tables, found, pair)
                tests.append(found)
                lookups.append((test + first * width, code, branch))
                first += len(chunk.slots)
        record = candidates(tests, lookups, (k, width))
        self.work.rows += int(table.shard.size(slots.id).sum())
        self.work.batches += 1
        return record if turn is not None else replace(record, feature=table.features)

    def finish_rows(self, shard: DeviceShard, search: Search) -> int:
        """None: every node goes through the growth loop."""
        return 0

    def finish(
        self, shard: DeviceShard, slots: Slots, depth: NDArray[np.int32], growth: Growth, first: int
    ) -> Subtrees:
        """Never asked for."""
        raise NotImplementedError("the growth loop grows every node")

    def children(self, shard: DeviceShard, splits: Splits) -> NDArray[np.int64]:
        """Channels of the branches."""
        spreads = is_spread(splits) or shard.share is not None
        with self.driver.use():
            return spread.count_shares(shard, splits) if spreads else rows.count_branches(shard, splits)

    def partition(self, shard: DeviceShard, splits: Splits, children: NDArray[np.int32]) -> None:
        """Regroup rows by branch."""
        spreads = is_spread(splits) or shard.share is not None
        with self.driver.use():
            (spread.place_shares if spreads else rows.place_rows)(shard, splits, children)

    def extent(self, shard: DeviceShard, nodes: NDArray[np.int32]) -> NDArray[np.float64]:
        """Least and greatest y, known since the nodes were born."""
        return shard.extent[nodes]

    def residuals(
        self, shard: DeviceShard, nodes: NDArray[np.int32], value: NDArray[np.float64], criterion: Criterion
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Once a fit, on the host: a criterion's loss is a function of NumPy arrays."""
        with self.driver.use():
            grouped = shard.grouped()
        return Oracle().residuals(grouped, nodes, value, criterion)

    def apply(self, forest: Forest, X: Any) -> NDArray[np.int32]:
        """Leaves of all rows in all trees."""
        with self.driver.use():
            return walk.apply(self.driver, forest, X)

    def predict(self, forest: Forest, X: Any, share: Given = None, soft: Given = None) -> NDArray[np.float64]:
        """Sums of leaf values; with soft thresholds on the host."""
        if soft is not None:
            return Oracle().predict(forest, to_host(X), share, soft)
        with self.driver.use():
            return walk.predict(self.driver, forest, X, share)


def candidates(tests: list[NDArray[Any]], lookups: list[Any], shape: tuple[int, int]) -> Candidates:
    """The protocol's record of tests found chunk by chunk."""
    found = np.concatenate(tests)
    pair, code, branch = (np.concatenate(part) for part in zip(*lookups, strict=True))
    met = found["n_branches"] > 0
    return Candidates(
        score=np.where(met, found["score"], -np.inf).reshape(shape),
        gain=found["gain"].reshape(shape),
        kind=found["kind"].astype(np.uint8).reshape(shape),
        cut=found["cut"].reshape(shape),
        low=found["low"].reshape(shape),
        missing=np.where(met, found["missing"], -1).astype(np.int32).reshape(shape),
        n_branches=found["n_branches"].reshape(shape),
        feature=found["feature"].reshape(shape),
        lookup_pair=pair,
        lookup_code=code,
        lookup_branch=branch,
    )


COMPILED: dict[Any, Any] = {}  # kernels of this process, by device


def open_cuda(device: str) -> Cuda:
    """The backend of ``"cuda"`` (the current device) or ``"cuda:<number>"``.

    Raises
    ------
    DeviceError
        If CuPy, a driver or the device is not there, or the device is too old.
    """
    cupy = import_cupy()
    runtime = cupy.cuda.runtime
    if runtime.is_hip:
        raise DeviceError("this CuPy is built for ROCm, and the kernels are for CUDA")
    with working(cupy):
        count = runtime.getDeviceCount()
        number = int(device.partition(":")[2]) if ":" in device else runtime.getDevice()
        if number >= count:
            raise DeviceError(f"there are {count} CUDA devices, numbered from 0")
        return Cuda(Driver.of(cupy, number, COMPILED))


@contextmanager
def working(cupy: Any) -> Iterator[None]:
    """Turn what the runtime raises where it does not work into our error."""
    runtime = cupy.cuda.runtime
    try:
        yield
    except runtime.CUDARuntimeError as error:
        raise DeviceError(why_no_device(runtime, str(error))) from error


def why_no_device(runtime: Any, error: str) -> str:
    """What an error says of the machine, and what to do."""
    driver, wanted = (version(v()) for v in (runtime.driverGetVersion, runtime.runtimeGetVersion))
    if driver == (0, 0):
        return "no NVIDIA driver is installed"
    if driver < (wanted[0], 0):
        older = f"the driver serves CUDA {driver[0]}.{driver[1]} and this CuPy needs {wanted[0]}.0"
        return f"{older}: update the driver, or install CuPy for the driver's version instead"
    if "initialization error" in error:
        return f"a process that was forked after CUDA was used cannot use it ({error}): start it with 'spawn'"
    return f"there is no CUDA device ({error})"


def version(number: int) -> tuple[int, int]:
    """A version of CUDA as the runtime codes it: 13020 is 13.2."""
    return number // 1000, number % 1000 // 10


def import_cupy() -> Any:
    """CuPy, or why it cannot be had."""
    try:
        if "cupy" not in sys.modules:
            make_cache()
        import cupy
    except Exception as error:  # a broken installation raises whatever it likes
        lines = [line.strip() for line in str(error).splitlines() if line.strip(" -\n")] or [type(error).__name__]
        wheels = "'cupy-cuda13x[ctk]' (a driver of version 580 or later) or 'cupy-cuda12x[ctk]', not both"
        raise DeviceError(f"CuPy cannot be imported ({lines[0]}): pip install {wheels}") from error
    return cupy


def make_cache() -> None:
    """CuPy makes a folder for compiled kernels when it is imported: name one that can be made."""
    folder = os.environ.get("CUPY_CACHE_DIR") or os.path.expanduser("~/.cupy/kernel_cache")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        os.environ["CUPY_CACHE_DIR"] = tempfile.mkdtemp(prefix="gputree-cupy-")
