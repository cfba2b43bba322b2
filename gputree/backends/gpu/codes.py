"""Codes on the device: records of bytes for small features, columns of two bytes for others. May import core."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.arrays import adopt, on_device
from gputree.backends.gpu.driver import ARRAY, Driver, ints, longs
from gputree.backends.protocol import DeviceError
from gputree.core.schema import BYTE_CODES, Book, Cuts
from gputree.core.target import Target

BLOCK_BYTES = 1 << 28  # of raw values on the device at once
COLUMN_BYTES = 1 << 31  # ... and of columns that are sorted
PER_WORD = 4  # codes in a word of a record
WORDS = (2, 4, 8)  # of a record; the last holds the row's label
ENCODE_TILE = 1024  # rows of a block that encodes
NOWHERE = np.int32(np.iinfo(np.int32).min)  # the place of no feature


@dataclass(frozen=True, slots=True)
class DeviceBook:
    """The codes' values and edges, flat as in `Book`, and the kinds of the features."""

    values: ARRAY
    edges: ARRAY
    offset: ARRAY
    exact: ARRAY
    declared: ARRAY


@dataclass(slots=True)
class DeviceCodes:
    """Codes of n rows. ``place`` i4 (F,): number among the features of one byte, or ~number among those of two.

    ``labelled`` is the target whose labels stand in the records, if any.
    """

    driver: Driver
    n: int
    words: int
    groups: int
    records: ARRAY  # u4 (groups, n, words)
    wide: ARRAY  # u2 (n_wide, n)
    place: NDArray[np.int32]
    book: Book
    on_device: DeviceBook
    n_codes: NDArray[np.int64]
    labelled: Target | None = None


def record_words(n_bytes: int) -> int:
    """Words of a record: the fewest that hold all features beside the label, else those of a memory sector."""
    return next((w for w in WORDS if n_bytes <= PER_WORD * (w - 1)), WORDS[-1])


def encode(driver: Driver, X: Any, cuts: tuple[Cuts, ...]) -> DeviceCodes:
    """Codes of every column; X f4/f8 (n, F) on the host or the device, dense or sparse."""
    n, book = X.shape[0], Book.of(cuts)
    n_codes = np.array([cut.n_codes for cut in cuts], np.int64)
    small = np.flatnonzero(n_codes <= BYTE_CODES)
    large = np.flatnonzero(n_codes > BYTE_CODES)
    place = np.empty(n_codes.size, np.int32)
    place[small], place[large] = np.arange(small.size), ~np.arange(large.size)
    words = record_words(small.size)
    groups = -(-small.size // (PER_WORD * (words - 1)))
    records = driver.empty((groups, n, words), np.uint32)
    wide = driver.empty((large.size, n), np.uint16)
    keys = [cut.values if cut.edges is None else cut.edges for cut in cuts]
    flat = driver.put(np.concatenate([np.zeros(0), *keys]), np.float64)
    ptr = driver.put(np.cumsum([0, *(k.size for k in keys)]), np.int64)
    on_small, on_large = driver.put(small, np.int32), driver.put(large, np.int32)
    for block in row_blocks(driver, X):
        size, begin = block.size, np.int64(block.first)
        args = (*block.arguments, on_small, *ints(small.size), flat, ptr, records, *ints(words), *longs(n), begin)
        work = -(-size // ENCODE_TILE) * -(-small.size // PER_WORD) * 256
        driver.launch(driver.kernel("encode", "encode_bytes"), work, 256, args)
        args = (*block.arguments, on_large, *ints(large.size), flat, ptr, wide, *longs(n), begin)
        driver.launch(driver.kernel("encode", "encode_wide"), size * large.size, 256, args)
    return DeviceCodes(driver, n, words, groups, records, wide, place, book, device_book(driver, book), n_codes)


def device_book(driver: Driver, book: Book) -> DeviceBook:
    """Copy what searches need."""
    return DeviceBook(
        driver.put(book.values, np.float64),
        driver.put(book.edges, np.float64),
        driver.put(book.offset, np.int64),
        driver.put(book.exact, np.uint8),
        driver.put(book.declared, np.int64),
    )


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows of X on the device, from number ``first`` on: cell (r, f) at r * row_step + f * column_step."""

    array: ARRAY
    first: int
    size: int
    row_step: int
    column_step: int

    @property
    def arguments(self) -> tuple[Any, ...]:
        """How kernels take it."""
        return (self.array, *ints(self.array.itemsize), *longs(self.size, self.row_step, self.column_step))


def row_blocks(driver: Driver, X: Any) -> Iterator[Block]:
    """Rows of X f4/f8 (n, F) on the device, some at a time."""
    if on_device(X):
        yield device_block(driver, X)
        return
    n, n_features = X.shape
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    step = max(1, BLOCK_BYTES // max(1, np.dtype(dtype).itemsize * n_features))
    for first in range(0, n if n_features else 0, step):
        part = X[first : first + step]
        array = driver.put(part if isinstance(part, np.ndarray) else part.toarray(), dtype)
        yield Block(array, first, array.shape[0], n_features, 1)


def device_block(driver: Driver, X: Any) -> Block:
    """All of X, which lies on a device, where it lies; only what has gaps is copied."""
    array = adopt(driver.xp, X)
    if array.device.id != driver.device:
        where = f"X lies on device {array.device.id} and the work is to be done on device {driver.device}"
        raise DeviceError(f"{where}: give device='cuda:{array.device.id}', or X on the other")
    n, n_features = array.shape
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        return Block(array.T, 0, n, 1, n)
    return Block(array if array.flags.c_contiguous else driver.xp.ascontiguousarray(array), 0, n, n_features, 1)


def columns(driver: Driver, X: Any) -> Iterator[ARRAY]:
    """The columns of X one after another, f8 (n,) on the device; X is read once for a few of them."""
    n, n_features = X.shape
    room = min(COLUMN_BYTES, driver.free() // 6)  # two lots of columns and a sort at once
    step = max(1, min(n_features, room // max(1, 8 * n)))
    for feature in range(0, n_features, step):
        count = min(step, n_features - feature)
        values = driver.empty((count, n), np.float64)
        for block in row_blocks(driver, X):
            args = (*block.arguments, *ints(feature, count), values, *longs(n, block.first))
            driver.launch(driver.kernel("encode", "take_columns"), block.size * count, 256, args)
        yield from (values[c] for c in range(count))


def any_missing(driver: Driver, X: Any) -> bool:
    """Whether X f4/f8 (n, F) holds a missing value."""
    count = driver.zeros(1, np.int64)
    for block in row_blocks(driver, X):
        args = (*block.arguments, *ints(X.shape[1]), count)
        driver.launch(driver.kernel("encode", "count_missing"), block.size * X.shape[1], 256, args)
    return bool(count.get()[0])
