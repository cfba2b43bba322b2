"""Check the arguments of a launch against the kernel's declaration; CuPy would pass their bytes as they are."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.emulator.device import DeviceArray
from tests.emulator.errors import LaunchError
from tests.emulator.launch import Declaration, Parameter, Range
from tests.emulator.memory import Allocation

_WORDS = {"i": "int", "u": "uint", "f": "float"}


def _type_name(kind: str, size: int) -> str:
    return "bool" if kind == "b" else f"{_WORDS[kind]}{8 * size}" if kind in _WORDS else f"a struct of {size} bytes"


@dataclass
class Arguments:
    """Argument values as a launch needs them; keeps alive what the addresses point to."""

    addresses: list[int] = field(default_factory=list)
    arrays: list[tuple[str, DeviceArray, bool]] = field(default_factory=list)  # name, array, const
    kept: list[Any] = field(default_factory=list)

    def add(self, name: str, parameter: Parameter, value: Any) -> None:
        if parameter.kind == "P":
            check_array(name, parameter, value)
            self.arrays.append((name, value, parameter.const))
            held: Any = ctypes.c_void_p(value.data.ptr)
            self.addresses.append(ctypes.addressof(held))
        else:
            check_scalar(name, parameter, value)
            held = np.array(value)
            self.addresses.append(held.ctypes.data)
        self.kept.append(held)

    def of_memory(self, memory: Allocation) -> tuple[bool, int]:
        """Whether the kernel may write to an allocation, and the smallest itemsize that it is given for it."""
        same = [(const, array.itemsize) for _, array, const in self.arrays if array.memory is memory]
        return not all(const for const, _ in same), min(itemsize for _, itemsize in same)

    def ranges(self, checked: bool, track_unwritten: bool) -> list[Range]:
        found = []
        for name, array, const in self.arrays:
            memory = array.memory
            writable, smallest = self.of_memory(memory)
            shadow: dict[str, int | None] = {"origin": memory.start, "shift": 2 if smallest % 4 == 0 else 0}
            if checked:
                # where nobody writes there is no race
                shadow["cells"] = memory.cells_address if writable else None
                shadow["state"] = memory.state_address or None if track_unwritten else None
            stop = array.data.ptr + array.nbytes
            label = f"`{name}`".encode()
            self.kept.append(label)
            found.append(Range(array.data.ptr, stop, name=label, writable=not const, itemsize=array.itemsize, **shadow))
        return found


def check_array(name: str, parameter: Parameter, value: Any) -> None:
    """Refuse what is no contiguous device array of the type pointed to."""
    wanted = _type_name(parameter.pointee, parameter.size) if parameter.pointee != "v" else "any type"
    if not isinstance(value, DeviceArray):
        kind = "a host array" if isinstance(value, np.ndarray) else type(value).__name__
        raise LaunchError(f"argument {name} is {kind}; it must be a device array of {wanted}")
    if not value.flags.c_contiguous:
        raise LaunchError(f"argument {name} has strides {value.strides} for shape {value.shape}; it must be contiguous")
    fits = {
        "v": True,
        # a kernel may read an array of numbers as structs or vectors; the sizes must divide
        "s": value.itemsize == parameter.size or (value.dtype.kind != "V" and value.nbytes % parameter.size == 0),
    }.get(parameter.pointee, (value.dtype.kind, value.itemsize) == (parameter.pointee, parameter.size))
    if not fits:
        raise LaunchError(f"argument {name} holds {value.dtype}, {value.nbytes} bytes; the kernel takes {wanted}")
    if value.data.ptr % parameter.align:
        raise LaunchError(
            f"argument {name} begins at {value.data.ptr:#x}, no multiple of {parameter.align}, as {wanted} must"
        )


def check_scalar(name: str, parameter: Parameter, value: Any) -> None:
    """Refuse what is no NumPy scalar of the parameter's type."""
    wanted = _type_name(parameter.kind, parameter.size)
    if not isinstance(value, np.generic):
        raise LaunchError(f"argument {name} is {value!r} of type {type(value).__name__}; pass np.{wanted}(...)")
    kind = "s" if value.dtype.kind == "V" else value.dtype.kind
    if (kind, value.itemsize) != (parameter.kind, parameter.size):
        raise LaunchError(f"argument {name} is {value.dtype}; the kernel takes {wanted}: pass np.{wanted}(...)")


def check_arguments(kernel: Declaration, names: Sequence[str], values: Any) -> Arguments:
    """Return the values ready for a launch, or raise `LaunchError`."""
    if not isinstance(values, tuple | list):
        raise LaunchError(f"arguments of {kernel.name} are {type(values).__name__}; they must be a tuple")
    if len(values) != len(kernel.parameters):
        raise LaunchError(f"{kernel.name} takes {len(kernel.parameters)} arguments; it is given {len(values)}")
    if len(names) != len(values):
        names = [str(i) for i in range(len(values))]
    arguments = Arguments()
    for name, parameter, value in zip(names, kernel.parameters, values, strict=True):
        arguments.add(name, parameter, value)
    return arguments
