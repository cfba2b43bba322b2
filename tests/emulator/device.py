"""The stand-in for CuPy's array: allocate, copy, slice, view, sort. Everything else raises `Refused`.

On the real device, what is refused here would start a kernel of CuPy's or wait for the device without saying so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tests.emulator.errors import Refused
from tests.emulator.memory import Allocation

if TYPE_CHECKING:
    from tests.emulator.driver import Emulator

_WAITS = (
    *("__array__", "__bool__", "__complex__", "__float__", "__index__", "__int__", "__iter__", "__contains__"),
    *("item", "tolist", "tobytes"),
)
_OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul"),
    *("lshift", "rshift", "and", "or", "xor"),
)
_COMPUTES = (
    *(
        "__array_ufunc__",
        "__array_function__",
        "__abs__",
        "__invert__",
        "__neg__",
        "__pos__",
        "astype",
        "sum",
        "cumsum",
    ),
    *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "max", "min", "argmax", "argmin", "nonzero", "take"),
    *(f"__{prefix}{name}__" for name in _OPERATORS for prefix in ("", "r", "i")),
)


@dataclass(frozen=True)
class Pointer:
    """As cupy.cuda.MemoryPointer: where an array begins."""

    ptr: int
    mem: Allocation


class DeviceArray:
    """An array in the emulated device's memory; made by the array module only."""

    def __init__(self, emulator: Emulator, memory: Allocation, host: NDArray[Any]) -> None:
        self._emulator, self.memory, self._host = emulator, memory, host

    # ---- what an array is ----

    shape = property(lambda self: self._host.shape)
    dtype = property(lambda self: self._host.dtype)
    size = property(lambda self: self._host.size)
    ndim = property(lambda self: self._host.ndim)
    nbytes = property(lambda self: self._host.nbytes)
    itemsize = property(lambda self: self._host.itemsize)
    strides = property(lambda self: self._host.strides)
    flags = property(lambda self: self._host.flags)

    @property
    def data(self) -> Pointer:
        return Pointer(self._host.__array_interface__["data"][0] if self.size else self.memory.start, self.memory)

    @property
    def device(self) -> Any:
        return self._emulator.xp.cuda.Device(self.memory.device)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        described = dict(self._host.__array_interface__)
        return {**described, "data": (self.data.ptr, False), "version": 3, "stream": None}

    def __len__(self) -> int:
        return len(self._host)

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device={self.memory.device})"

    __hash__ = object.__hash__

    # ---- views ----

    def _like(self, host: NDArray[Any]) -> DeviceArray:
        return DeviceArray(self._emulator, self.memory, host)

    def __getitem__(self, key: Any) -> DeviceArray:
        view = self._host[_basic(key)]
        if not isinstance(view, np.ndarray):  # a single element: a view without dimensions, as CuPy gives
            view = self._host[(*_basic(key), ...)]
        return self._like(view)

    def reshape(self, *shape: Any) -> DeviceArray:
        self._contiguous("reshape")
        return self._like(self._host.reshape(*shape))

    @property
    def T(self) -> DeviceArray:
        return self._like(self._host.T)

    def ravel(self) -> DeviceArray:
        return self.reshape(-1)

    def view(self, dtype: DTypeLike) -> DeviceArray:
        return self._like(self._host.view(dtype))

    def _contiguous(self, what: str) -> None:
        if not self._host.flags.c_contiguous:
            raise Refused(
                f"{what} of an array with strides {self.strides}: CuPy would copy it first; slice it otherwise"
            )

    # ---- copies ----

    def get(self, stream: Any = None, order: str = "C", out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Copy to the host; waits for the device."""
        self._contiguous("get")
        if out is not None and (out.shape, out.dtype) != (self.shape, self.dtype):
            raise Refused(f"get: out is {out.dtype} {out.shape}; it must be {self.dtype} {self.shape}")
        self._emulator.faults.call("copy")
        self._emulator.transfers.to_host(self.nbytes)
        if out is None:
            return self._host.copy()
        out[...] = self._host
        return out

    def set(self, values: Any, stream: Any = None) -> None:
        """Copy from the host."""
        self._contiguous("set")
        if not isinstance(values, np.ndarray) or (values.shape, values.dtype) != (self.shape, self.dtype):
            raise Refused(f"set takes a host array of {self.dtype} {self.shape}; it is given {_described(values)}")
        self._emulator.transfers.to_device(self.nbytes)
        self._write(values)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Copy inside the device."""
        target = self[key]
        if not isinstance(value, DeviceArray) or (value.shape, value.dtype) != (target.shape, target.dtype):
            raise Refused(
                f"assignment to {target.dtype} {target.shape} takes a device array of that kind; it is given "
                f"{_described(value)}: use set for host arrays, fill for one value"
            )
        self._emulator.transfers.inside(target.nbytes)
        target._copy_from(value)

    def copy(self) -> DeviceArray:
        made: DeviceArray = self._emulator.xp.empty(self.shape, self.dtype)
        made[...] = self
        return made

    def fill(self, value: Any) -> None:
        """Set every element to 0; does not wait."""
        if isinstance(value, DeviceArray | np.ndarray):
            raise Refused(f"fill takes one value; it is given {_described(value)}")
        if value != 0:
            raise Refused(f"fill with {value!r} computes with a kernel of CuPy's; only 0 is set by the driver")
        self._emulator.transfers.fills += 1
        self._write(value)

    def _write(self, values: Any) -> None:
        self._emulator.faults.call("copy")
        self._host[...] = values
        self.memory.wrote(self._host)

    def _copy_from(self, other: DeviceArray) -> None:
        self._emulator.faults.call("copy")
        self._host[...] = other._host
        if other.memory.tracked and self.memory.tracked:
            self.memory.state(self._host)[...] = other.memory.state(other._host)
        else:
            self.memory.wrote(self._host)

    # ---- sorting ----

    def sort(self, axis: int = -1) -> None:
        """Needs memory for a copy; without it CuPy raises a plain MemoryError, or in older versions sorts wrongly."""
        self._sorting()
        self._host.sort(axis=axis)

    def argsort(self, axis: int = -1) -> DeviceArray:
        """Stable, like CuPy's."""
        self._sorting()
        made: DeviceArray = self._emulator.xp.empty(self.shape, np.int64)
        made._write(self._host.argsort(axis=axis, kind="stable"))
        return made

    def _sorting(self) -> None:
        self._contiguous("sort")
        self._emulator.faults.call("sort")
        try:
            self._emulator.xp.empty(self.nbytes, np.uint8)
        except MemoryError as error:
            raise MemoryError("std::bad_alloc") from error
        self._emulator.transfers.sorts += 1

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"the stand-in array has no {name!r}: the backend allocates, copies, slices, launches and sorts"
        )


def _described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"{type(value).__name__} {getattr(value, 'dtype', '')} {'' if shape is None else shape}".strip()


def _basic(key: Any) -> tuple[Any, ...]:
    """Return the key as a tuple; refuse what would gather, or wait to count."""
    parts = key if isinstance(key, tuple) else (key,)
    for part in parts:
        plain = part is None or part is Ellipsis or isinstance(part, slice | int | np.integer)
        if not plain or isinstance(part, bool | np.bool_):
            raise Refused(f"index {_described(part)}: only integers and slices give a view; others gather and may wait")
    return parts


def _refuse(name: str, why: str) -> Callable[..., NoReturn]:
    def method(self: DeviceArray, *args: Any, **kwargs: Any) -> NoReturn:
        raise Refused(f"DeviceArray.{name}: {why}")

    return method


for _name in _WAITS:
    setattr(DeviceArray, _name, _refuse(_name, "waits for the device; copy with get()"))
for _name in _COMPUTES:
    setattr(DeviceArray, _name, _refuse(_name, "computes with a kernel of CuPy's; write a kernel"))
