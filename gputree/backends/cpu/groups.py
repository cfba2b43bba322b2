"""Categories merged into groups: the scalar form of `gputree.backends.groups.merged`, of the criterion gain ratio."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import float64, int64
from numpy.typing import NDArray

from gputree.backends.cpu.formulas import gt_branch, gt_final, gt_info, gt_scale, gt_term
from gputree.backends.cpu.marks import entry, kernel
from gputree.backends.cpu.numbers import on_grid

HEAVY, RISE, KEPT = 0, 1, 2  # places in the rule


@kernel
def measured_pair(counts: NDArray[int64], a: int, b: int) -> tuple[float, float]:
    """As `groups.measured`, of two groups together, or of one that is given twice."""
    n = int64(0)
    for c in range(counts.shape[1]):
        n += counts[a, c] + (counts[b, c] if a != b else 0)
    weight, value = float64(n), 0.0
    for c in range(counts.shape[1]):
        value += gt_term(float64(counts[a, c] + (counts[b, c] if a != b else 0)), weight, 0.0, weight)
    return gt_branch(value, weight, weight), gt_info(weight, weight)


@kernel
def note_pair(counts: NDArray[int64], a: int, b: int, alone: NDArray[float64], change: NDArray[float64]) -> None:
    """What merging two groups, the first one first, would change."""
    gain, info = measured_pair(counts, a, b)
    change[a, b, 0] = gain - alone[a, 0] - alone[b, 0]
    change[a, b, 1] = info - alone[a, 1] - alone[b, 1]


@kernel
def best_pair(
    now: NDArray[float64], live: NDArray[int64], barred: int, least: float, change: NDArray[float64]
) -> tuple[int, int, float]:
    """The pair that `GroupRule` prefers and its score; now are gain, information and weight of the test."""
    top, kept, first, second = -np.inf, False, int64(0), int64(0)
    for i in range(live.size):
        a = live[i]
        if a == barred:
            continue
        for b in live[i + 1 :]:
            if b == barred:
                continue
            gain = now[0] + change[a, b, 0]
            score = on_grid(gt_final(gain, now[1] + change[a, b, 1], now[2]), gt_scale(now[2], now[2]))
            if score >= top or (gain >= least and not kept):
                top, kept, first, second = score, gain >= least, a, b
    return first, second, top


@kernel
def heaviest_group(counts: NDArray[int64], heavy: float) -> tuple[int, int]:
    """How many groups are heavy, and the heaviest, the first among equals."""
    n, top, most = int64(0), int64(0), int64(-1)
    for g in range(counts.shape[0]):
        weight = counts[g].sum()
        n += int64(weight >= heavy)
        if weight > most:
            top, most = int64(g), weight
    return n, top


@kernel
def merge_segment(
    counts: NDArray[int64], now: NDArray[float64], rule: NDArray[float64], room: Any, into: NDArray[int64]
) -> None:
    """Merge the groups (G, K) of one segment, and say into which of them each goes."""
    alone, change, every = room
    left = counts.shape[0]
    for a in range(left):
        every[a] = a
        alone[a] = measured_pair(counts, a, a)
        now[0] += alone[a, 0]
        now[1] += alone[a, 1]
    for a in range(left):
        for b in range(a + 1, left):
            note_pair(counts, a, b, alone, change)
    least = rule[KEPT] * now[0]
    while left > 2:
        heavy, top = heaviest_group(counts, rule[HEAVY])
        a, b, score = best_pair(now, every[:left], top if heavy < 3 else -1, least, change)
        own = on_grid(gt_final(now[0], now[1], now[2]), gt_scale(now[2], now[2]))
        if heavy >= 2 and not score >= own + rule[RISE]:
            return
        now[0] += change[a, b, 0]
        now[1] += change[a, b, 1]
        counts[a] += counts[b]
        counts[b] = 0
        into[b] = a
        place = np.searchsorted(every[:left], b)
        left -= 1
        every[place:left] = every[place + 1 : left + 1].copy()
        alone[a] = measured_pair(counts, a, a)
        for g in every[:left]:
            if g != a:
                note_pair(counts, min(a, g), max(a, g), alone, change)


@entry
def merge_groups(
    counts: NDArray[int64], ptr: NDArray[int64], terms: NDArray[float64], rule: NDArray[float64], into: NDArray[int64]
) -> None:
    """Merge the groups counts (G, K), which it uses up; those of a segment lie between two of ptr (S + 1,).

    terms (S, 3) are those of `groups.Groups`; into (G,) gets the place of a group in its segment.
    """
    most = 0
    for s in range(ptr.size - 1):
        most = max(most, ptr[s + 1] - ptr[s])
    room = np.empty((most, 2)), np.empty((most, most, 2)), np.empty(most, int64)
    for s in range(ptr.size - 1):
        own = slice(ptr[s], ptr[s + 1])
        merge_segment(counts[own], terms[s], rule, room, into[own])
