"""The compiled forms of `gputree.backends.cpu.marks`. Numba is imported when they are first asked for.

A record is a pointer to its fields, with a count of references. A borrowed one is the address alone, and what is read
from it has no owner either: Numba then has nothing to count, which in small nodes is a third of the time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from typing import Any

import numpy as np


def entry(function: Callable[..., Any]) -> Any:
    """A function that the host calls, kept on disk."""
    import numba

    return numba.njit(nogil=True, error_model="numpy", cache=True)(function)


@cache
def marks() -> dict[str, Any]:
    """The compiled forms by name, but for that of ``entry``."""
    import numba

    kernel = numba.njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
    return {
        "kernel": kernel,
        "borrow": borrowing(),
        "bits_of": kernel(lambda x: np.float64(x).view(np.int64)),
        "float_of": kernel(lambda bits: np.int64(bits).view(np.float64)),
        "record": record,
        "trailing_zeros": counting_zeros(),
    }


def counting_zeros() -> Any:
    """One instruction."""
    from llvmlite import ir
    from numba.core.types import uint64
    from numba.extending import intrinsic

    @intrinsic
    def trailing_zeros(context: Any, word: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

        return uint64(uint64), code

    return trailing_zeros


def record(cls: Any) -> Any:
    """A class whose instances are pointers to their fields."""
    from numba import types
    from numba.experimental import structref

    kind = structref.register(type(f"{cls.__name__}Type", (types.StructRef,), {"__module__": cls.__module__}))
    setattr(sys.modules[cls.__module__], kind.__name__, kind)
    structref.define_constructor(cls, kind, list(cls.__annotations__))
    structref.define_attributes(kind)
    return cls


def borrowing() -> Any:
    """`borrow`, with the type of borrowed records and how their fields are read."""
    from numba.core.types import Type
    from numba.core.typing.templates import AttributeTemplate
    from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model

    class Borrowed(Type):
        """A record that someone else holds."""

        def __init__(self, record: Any) -> None:
            self.record = record
            # short, for symbols repeat it; the same in every process, for they are kept on disk
            super().__init__(f"borrowed_{sha256(str(record).encode()).hexdigest()[:16]}")

    @register_model(Borrowed)
    class BorrowedModel(models.OpaqueModel):
        """The address of the fields."""

    @infer_getattr
    class BorrowedFields(AttributeTemplate):
        """Records in borrowed ones are borrowed."""

        key = Borrowed

        def generic_resolve(self, borrowed: Any, name: str) -> Any:
            field = borrowed.record.field_dict.get(name)
            return Borrowed(field) if is_record(field) else field

    @lower_getattr_generic(Borrowed)
    def read(context: Any, builder: Any, borrowed: Any, value: Any, name: str) -> Any:
        return read_field(context, builder, borrowed.record, value, name)

    @intrinsic
    def borrow(context: Any, held: Any) -> Any:
        known = isinstance(held, Borrowed)

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return args[0] if known else fields_at(context, builder, held, args[0])

        return (held if known else Borrowed(held))(held), code

    return borrow


def is_record(kind: Any) -> bool:
    """Whether a type is that of a `record`."""
    from numba import types

    return isinstance(kind, types.StructRef)


def fields_at(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The address of a record's fields."""
    from numba.core.cgutils import create_struct_proxy

    held = create_struct_proxy(kind)(context, builder, value=value)
    return context.nrt.meminfo_data(builder, held.meminfo)


def read_field(context: Any, builder: Any, kind: Any, address: Any, name: str) -> Any:
    """A field of the record of this kind at an address; arrays without their owner."""
    from numba.core.cgutils import create_struct_proxy, get_null_value
    from numba.core.types import Array

    data, field = kind.get_data_type(), kind.field_dict[name]
    place = builder.bitcast(address, context.get_value_type(data).as_pointer())
    value = getattr(create_struct_proxy(data)(context, builder, ref=place), name)
    if is_record(field):
        return fields_at(context, builder, field, value)
    if isinstance(field, Array):
        array = create_struct_proxy(field)(context, builder, value=value)
        array.meminfo = get_null_value(array.meminfo.type)
        array.parent = get_null_value(array.parent.type)
        return array._getvalue()
    return value
