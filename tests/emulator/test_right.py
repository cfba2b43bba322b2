"""Right kernels give the right result, whatever turns the threads take."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tests.emulator.cases import CASES
from tests.emulator.driver import Emulator

SEEDS = range(20)


@pytest.mark.parametrize("name", CASES)
def test_right_kernels_are_right_under_every_seed(load, sample, checked, name):
    for seed in SEEDS:
        emulator = Emulator(checked=checked, seed=seed)
        got, wanted = CASES[name](emulator, partial(load, emulator, sample))
        np.testing.assert_array_equal(got, wanted)
