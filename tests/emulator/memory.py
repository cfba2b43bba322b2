"""Device memory on the host: garbage at first, pages without access around it, shadows for the checks.

    | no access | zone | bytes ... | zone | no access |

An allocation starts at a multiple of 256, as CUDA's do, and ends at most 255 bytes before the pages without access.
The zones hold a pattern that is looked at after every launch.
"""

from __future__ import annotations

import ctypes
import weakref
from ctypes import c_int, c_long, c_size_t, c_void_p
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAGE, ALIGN = 4096, 256
GUARD, LARGE, LARGE_GUARD = 1 << 20, 1 << 31, 1 << 32  # an offset that lost its upper half stays in the large ones
CELL = 64  # bytes of shadow for every byte or word, as in shadow.hpp
CANARY = 0xC5
_NONE, _READ_WRITE = 0, 3
_PRIVATE_ANONYMOUS_NORESERVE = 0x02 | 0x20 | 0x4000

Bytes = NDArray[np.uint8]


@lru_cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.argtypes = (c_void_p, c_size_t, c_int, c_int, c_int, c_long)
    library.mmap.restype = c_void_p
    library.mprotect.argtypes = (c_void_p, c_size_t, c_int)
    library.munmap.argtypes = (c_void_p, c_size_t)
    return library


def _round_up(n: int, to: int) -> int:
    return -(-n // to) * to


def _map(size: int, protection: int) -> int:
    """Reserve addresses; pages cost memory when they are first touched."""
    address = _libc().mmap(None, size, protection, _PRIVATE_ANONYMOUS_NORESERVE, -1, 0)
    if address in (None, c_void_p(-1).value):
        raise MemoryError(f"the host gave no {size} bytes of addresses (errno {ctypes.get_errno()})")
    return int(address)


def _bytes_at(address: int, size: int) -> Bytes:
    """The bytes at an address as an array; whoever uses it keeps the mapping alive."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


class Shadow:
    """Zeroed memory beside an allocation, made when first asked for."""

    def __init__(self, size: int) -> None:
        self.size = max(size, 1)
        self.address = _map(self.size, _READ_WRITE)
        weakref.finalize(self, _libc().munmap, self.address, self.size)


class Allocation:
    """``nbytes`` of device memory, filled by ``garbage`` unless that is None (then zeros, not yet in memory)."""

    def __init__(self, nbytes: int, device: int, garbage: np.random.Generator | None) -> None:
        self.nbytes, self.device = nbytes, device
        self._body = _round_up(nbytes, ALIGN)
        self._pages = _round_up(self._body, PAGE)
        guard = GUARD if nbytes < LARGE else LARGE_GUARD
        size = self._pages + 2 * guard
        base = _map(size, _NONE)
        weakref.finalize(self, _libc().munmap, base, size)
        if self._pages and _libc().mprotect(base + guard, self._pages, _READ_WRITE):
            raise MemoryError(f"the host protects no more pages (errno {ctypes.get_errno()})")
        self.start = base + guard + self._pages - self._body
        self.bytes = _bytes_at(self.start, nbytes)
        self._zones = self._mark_zones(base + guard)
        self._state: Shadow | None = None
        self._cells: Shadow | None = None
        self.tracked = garbage is not None
        if garbage is not None and nbytes:
            self.bytes[:] = np.frombuffer(garbage.bytes(nbytes), np.uint8)

    def _mark_zones(self, first: int) -> tuple[Bytes, Bytes]:
        before = _bytes_at(first, self.start - first)
        behind = _bytes_at(self.start + self.nbytes, self._body - self.nbytes)
        before[:], behind[:] = CANARY, CANARY
        return before, behind

    @property
    def spoilt(self) -> int | None:
        """Return the offset from `start` of a byte that was written outside, or None."""
        for zone, offset in zip(self._zones, (self._body - self._pages, self.nbytes), strict=True):
            if (hits := np.flatnonzero(zone != CANARY)).size:
                return offset + int(hits[0])
        return None

    @property
    def state_address(self) -> int:
        """Address of one byte for every byte: 0 = never written; 0 where that is not tracked."""
        return self._state_shadow().address if self.tracked else 0

    @property
    def cells_address(self) -> int:
        """Address of the records of accesses, see shadow.hpp."""
        if self._cells is None:
            self._cells = Shadow(self.nbytes * CELL)
        return self._cells.address

    def _state_shadow(self) -> Shadow:
        if self._state is None:
            self._state = Shadow(self.nbytes)
        return self._state

    def state(self, like: NDArray[Any]) -> NDArray[Any]:
        """Return the state of the bytes of `like`, an array in this allocation: (shape, itemsize)."""
        offset = like.__array_interface__["data"][0] - self.start
        state = _bytes_at(self._state_shadow().address, self._state_shadow().size)
        shape, strides = (*like.shape, like.itemsize), (*like.strides, 1)
        return np.lib.stride_tricks.as_strided(state[offset:], shape, strides, writeable=True)

    def wrote(self, like: NDArray[Any]) -> None:
        """Note that all bytes of `like` have been written."""
        if self.tracked and like.size:
            self.state(like)[...] = 1
