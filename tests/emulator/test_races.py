"""Random programs whose races are known: none is missed for long, and nothing else is reported."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest

from tests.emulator.compiler import HERE
from tests.emulator.conftest import OPTIONS, error_of
from tests.emulator.driver import Emulator

BLOCK, PHASES, PLACES = 64, 4, 8
READ, WRITE, ATOMIC = 1, 2, 3
NOTHING, SYNCWARP, BARRIER, VOTE = range(4)


class Access(NamedTuple):
    thread: int
    phase: int
    kind: int
    place: int


def accesses(program: np.ndarray) -> Iterator[Access]:
    for phase, _, thread in zip(*np.nonzero(program), strict=True):
        yield from (
            Access(int(thread), int(phase), (op - 1) % 3 + 1, (op - 1) // 3)
            for op in program[phase, _, thread : thread + 1].tolist()
        )


def ordered(a: Access, b: Access, ends: list[int], vote: int) -> bool:
    """Whether the rules of CUDA order two accesses of different threads."""
    if a.thread // BLOCK != b.thread // BLOCK or a.phase == b.phase:
        return False
    between = ends[min(a.phase, b.phase) : max(a.phase, b.phase)]
    return BARRIER in between or (a.thread // 32 == b.thread // 32 and (SYNCWARP in between or vote in between))


def races(program: np.ndarray, ends: list[int], shared: bool, vote: int) -> bool:
    for a, b in combinations(accesses(program), 2):
        if a.thread == b.thread or a.place != b.place or (shared and a.thread // BLOCK != b.thread // BLOCK):
            continue
        if {a.kind, b.kind} in ({READ}, {ATOMIC}) or ordered(a, b, ends, vote):
            continue
        return True
    return False


def draw(rng: np.random.Generator, kinds: list[int], blocks: int) -> tuple[np.ndarray, list[int]]:
    """Few accesses, so that about half of the programs race."""
    program = np.zeros((PHASES, 3, blocks * BLOCK), np.int32)
    for _ in range(rng.integers(2, 6)):
        at = (rng.integers(PHASES), rng.integers(3), rng.choice([0, 1, 5, 31, 32, 40]) + BLOCK * rng.integers(blocks))
        program[at] = 3 * rng.integers(3) + rng.choice(kinds)
    return program, rng.integers(0, 4, PHASES).tolist()


@pytest.mark.parametrize("votes", [False, True])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("cell", ["unsigned", "unsigned char"])
def test_exactly_the_races_are_reported(compiler, cell, shared, votes):
    emulator = Emulator(checked=True, seed=5, votes_order_memory=votes)
    word = cell == "unsigned"
    flags = (f"-DPLACES_IN_SHARED={int(shared)}", f"-DCELL={cell}", f"-DCELL_IS_WORD={int(word)}")
    text = (HERE / "samples" / "litmus.cu").read_text(encoding="utf-8")
    kernel = emulator.load(text, OPTIONS + flags).get_function("litmus")
    xp, rng, seen = emulator.xp, np.random.default_rng(int(word) + 2 * shared), []
    for _ in range(150):
        blocks = int(rng.integers(1, 3))
        program, ends = draw(rng, [READ, WRITE, ATOMIC] if word else [READ, WRITE], blocks)
        memory = xp.zeros(PLACES, np.uint32 if word else np.uint8)
        sink = xp.empty(blocks * BLOCK, np.uint32)
        args = (xp.asarray(program), xp.asarray(np.array(ends, np.int32)), np.int32(PHASES), memory, sink)
        wanted = races(program, ends, shared, VOTE if votes else SYNCWARP)
        error = error_of(lambda: kernel((blocks,), (BLOCK,), args))  # noqa: B023 - called at once
        assert error is None or (error.message.startswith("race: ") and error.other.startswith("kernel.cu:"))
        seen.append((wanted, error is not None))
    assert seen.count((False, True)) == 0
    assert seen.count((True, False)) == 0
    assert min(seen.count((True, True)), seen.count((False, False))) > 20
