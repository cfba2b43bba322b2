"""Records as compiled kernels read them, their own and borrowed ones."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gputree.backends.compiled import marks
from gputree.backends.cpu.marks import borrow

numba = pytest.importorskip("numba")


@dataclass
class Inner:
    array: NDArray[Any]
    number: float


@dataclass
class Outer:
    inner: Inner
    array: NDArray[Any]
    whole: int


def total(outer: Outer) -> float:
    outer = borrow(borrow(outer))
    array = outer.inner.array
    array[0] += 1.0  # views, not copies
    sum_ = outer.inner.number + outer.whole
    for x in outer.array:
        sum_ += x
    return sum_ + array[0] + array[1:].size


def of_arrays(a: NDArray[Any], b: NDArray[Any]) -> tuple[float, float]:
    outer = Outer(Inner(a, 0.5), b, 3)
    return total(outer), total(outer)


def test_borrowed_fields_are_those_of_the_record_and_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = of_arrays(np.array([10.0, 0.0, 0.0]), np.array([1.0, 2.0]))
    compiled = marks()
    for cls in (Inner, Outer):
        compiled["record"](cls)
    monkeypatch.setitem(globals(), "borrow", compiled["borrow"])
    monkeypatch.setitem(globals(), "total", compiled["kernel"](total))
    run = numba.njit(of_arrays)
    a, b = np.array([10.0, 0.0, 0.0]), np.array([1.0, 2.0])
    held = sys.getrefcount(a), sys.getrefcount(b)
    assert run(a, b) == plain == (19.5, 20.5)
    assert a.tolist() == [12.0, 0.0, 0.0]
    assert (sys.getrefcount(a), sys.getrefcount(b)) == held
