"""Arrays as members: NPY format 1.0, read without evaluating its header. May import everything below.

NumPy's own reader parses the header as Python; here a pattern finds the only form that NumPy writes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.inspect.check import expect
from gputree.inspect.values import plain_dtype
from gputree.storage.archive import ALIGNMENT, Chunks

MAGIC = b"\x93NUMPY\1\0"
LENGTH = 2  # bytes that hold the length of the header
HEADER = re.compile(
    rb"\{'descr': '([^']{1,20})', 'fortran_order': False, 'shape': \(((?:[0-9]{1,15}(?:, ?)?)*)\), \} *\n"
)


def little_endian(array: NDArray[Any]) -> NDArray[Any]:
    """The array in C order, little-endian."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


def as_npy(array: NDArray[Any]) -> Chunks:
    """The bytes of an NPY file, header and data; the data are not copied, and begin at a multiple of ALIGNMENT."""
    text = f"{{'descr': {array.dtype.str!r}, 'fortran_order': False, 'shape': {array.shape!r}, }}"
    length = len(MAGIC) + LENGTH + len(text) + 1
    padded = text + " " * (-length % ALIGNMENT) + "\n"
    head = MAGIC + len(padded).to_bytes(LENGTH, "little") + padded.encode("ascii")
    return head, raw(array)


def raw(array: NDArray[Any]) -> memoryview:
    """The bytes of an array in C order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def from_npy(data: memoryview, name: str) -> NDArray[Any]:
    """The array of an NPY file, a view of the data where they are aligned.

    Raises
    ------
    ValueError
        If these are no such bytes.
    """
    begin = len(MAGIC) + LENGTH
    expect(len(data) >= begin and bytes(data[: len(MAGIC)]) == MAGIC, f"{name} is no array of NPY format 1.0")
    start = begin + int.from_bytes(data[len(MAGIC) : begin], "little")
    found = HEADER.fullmatch(bytes(data[begin:start]))
    if found is None or start > len(data):
        raise ValueError(f"{name} has no header of NPY format 1.0")
    dtype = plain_dtype(found[1].decode("latin1"), "biufUSmM")
    shape = tuple(int(size) for size in found[2].decode("ascii").replace(",", " ").split())
    count = int(np.prod(shape, dtype=object)) if shape else 1
    size = count * dtype.itemsize
    expect(len(data) - start == size, f"{name} holds {len(data) - start} bytes of data, not {size}")
    if not count:
        return np.zeros(shape, dtype)
    array = np.frombuffer(data[start:], dtype).reshape(shape)
    return array if array.flags.aligned else array.copy()


def fingerprint(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 over arrays in order, as hex: name, type, shape and bytes of each, as `Forest.fingerprint` has it."""
    digest = hashlib.sha256()
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(raw(array))
    return digest.hexdigest()
