"""Broken kernels are caught: each is a right one with a line edited, run under many seeds."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.emulator.cases import CASES
from tests.emulator.conftest import Load, error_of
from tests.emulator.driver import Emulator
from tests.emulator.errors import KernelError
from tests.emulator.faults import EMPTY, FAULTS, RESULT, Fault

SEEDS = range(100, 112)


def edited(fault: Fault, sample: str) -> str:
    if fault.old == EMPTY:
        return sample
    assert sample.count(fault.old) == 1, fault.old
    return sample.replace(fault.old, fault.new)


def told(fault: Fault, load: Load, text: str, emulator: Emulator) -> str:
    """How a run betrays the fault; "" = not at all."""
    if fault.old == EMPTY:
        vars(emulator.xp)["zeros"] = emulator.xp.empty
    result: list[Any] = []
    error = error_of(lambda: result.extend(CASES[fault.case](emulator, partial(load, emulator, text))))
    if error is None:
        return "" if np.array_equal(result[0], result[1]) else RESULT
    assert error.kernel == fault.case
    assert error.seed == emulator.seed
    check_line(fault, text, error)
    return error.message


def check_line(fault: Fault, text: str, error: KernelError) -> None:
    if error.place.startswith("an unknown line"):  # plain mode finds some writes only after the block
        return
    file, _, number = error.place.partition(":")
    assert file == "kernels.cu"
    first = int(re.findall(r'#line (\d+) "kernels.cu"', text)[-1])
    line = text.split('"kernels.cu"\n')[-1].splitlines()[int(number.split()[0]) - first]
    wanted = fault.line or fault.new or fault.old
    assert any(part in line for part in wanted.split("|")), (error.place, line)


@pytest.mark.parametrize("name", FAULTS)
def test_broken_kernels_are_caught(load: Load, sample: str, checked: bool, name: str) -> None:
    fault = FAULTS[name]
    wanted = fault.checked if checked else fault.plain
    if wanted is None:
        return  # only the checks of every access can see it
    text = edited(fault, sample)
    found = [told(fault, load, text, Emulator(checked=checked, seed=seed)) for seed in SEEDS]
    right = [re.search(wanted, message) is not None for message in found]
    # random turns may hide a fault once in a while, where only the result tells
    assert sum(right) >= len(SEEDS) - (0 if checked else 2), sorted(set(found))
