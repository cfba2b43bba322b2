"""What every kernel must move at least: the bytes that `benchmarks.gpu_kernels` divides by its times.

Every input is read once, every output written once, nothing gathered twice. R rows, m features looked at, s bytes of a
raw value, w words of a record (4 bytes; 28 features and the label fill one of 8), k slots, W codes of a feature
(missing included), C channels, b bytes of a channel, t bytes of a row's target where it is not in the record, T bytes
of it in full.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

BEST = 48  # bytes of a test
DRAWN = 0.632  # 1 - 1 / e: of n rows, those that n draws meet


@dataclass(frozen=True)
class Load:
    """The sizes of one scene, by the letters of the head of this module."""

    R: int
    m: int = 28
    s: int = 4
    w: int = 8
    k: int = 1
    W: int = 256
    C: int = 2
    b: int = 4
    t: int = 0
    T: int = 4

    @property
    def table(self) -> int:
        return self.k * self.m * self.W * self.C * self.b


MODEL: dict[str, tuple[str, Callable[[Load], int]]] = {
    "take_columns": ("R m (s + 8)", lambda x: x.R * x.m * (x.s + 8)),
    "encode_bytes": ("R m s + 4 R ceil(m / 4)", lambda x: x.R * (x.m * x.s + 4 * -(-x.m // 4))),
    "encode_wide": ("R m (s + 2)", lambda x: x.R * x.m * (x.s + 2)),
    "count_missing": ("R m s", lambda x: x.R * x.m * x.s),
    "put_labels": ("8 R", lambda x: 8 * x.R),
    "all_rows": ("4 R", lambda x: 4 * x.R),
    "draw_rows": ("R (8 + 2 * 4)", lambda x: 16 * x.R),
    "count_drawn": ("4 R", lambda x: 4 * x.R),
    "list_drawn": ("4 R + 4 * 0.632 R", lambda x: 4 * x.R + 4 * int(DRAWN * x.R)),
    "count_shared": ("R (4 + 4 w + t) + table", lambda x: x.R * (4 + 4 * x.w + x.t) + x.table),
    "count_global": ("R (4 + 4 w + T) + 2 R m b", lambda x: x.R * (4 + 4 * x.w + x.T + 2 * x.m * x.b)),
    "make_keys": ("R m (4 + 2 + 8)", lambda x: x.R * x.m * 14),
    "count_cells": ("8 R m", lambda x: 8 * x.R * x.m),
    "running_sums": ("16 R m / 1024", lambda x: 16 * x.R * x.m // 1024),
    "make_cells": ("R m (8 + T)", lambda x: x.R * x.m * (8 + x.T)),
    "describe_slots": ("8 k C", lambda x: 8 * x.k * x.C),
    "order_cells": ("table", lambda x: x.table),
    "search_cuts": ("table + 48 k m", lambda x: x.table + BEST * x.k * x.m),
    "search_branches": ("table + 48 k m", lambda x: x.table + BEST * x.k * x.m),
    "best_of_slots": ("48 k m", lambda x: BEST * x.k * x.m),
    "list_branches": ("k W (C b + 2)", lambda x: x.k * x.W * (x.C * x.b + 2)),
    "count_branches": ("R (4 + 1 + 2 + T)", lambda x: x.R * (7 + x.T)),
    "offsets": ("8 * 2 R / 1024", lambda x: 16 * x.R // 1024),
    "move_rows": ("R (4 + 2 + 4)", lambda x: 10 * x.R),
    "put_back": ("R (4 + 4)", lambda x: 8 * x.R),
    "mark_rows": ("R (4 + 1 + 2)", lambda x: 7 * x.R),
    "count_shares": ("R (4 + 2 + 8 + T)", lambda x: x.R * (14 + x.T)),
    "place_shares": ("R (2 * 4 + 2 * 8 + 2)", lambda x: 26 * x.R),
    "search_ruled": ("table + 48 k m", lambda x: x.table + BEST * x.k * x.m),
    "search_groups": ("table + 48 k m", lambda x: x.table + BEST * x.k * x.m),
    "search_rest": ("table + 48 k m", lambda x: x.table + BEST * x.k * x.m),
    "apply_forest": ("R (m s + 4)", lambda x: x.R * (x.m * x.s + 4)),
    "predict_forest": ("R (m s + 2 * 8 C)", lambda x: x.R * (x.m * x.s + 16 * x.C)),
    "predict_shares": ("R (m s + 2 * 8 C)", lambda x: x.R * (x.m * x.s + 16 * x.C)),
}
