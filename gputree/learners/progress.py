"""What a fit tells while it runs and when it is over. May import everything below."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from dataclasses import dataclass

from gputree.engine.grow import Progress, Watch


@dataclass(frozen=True, slots=True)
class FitInfo:
    """What a fit did: where it ran, how much it visited, and how long it took.

    ``levels`` is the depth of the tree plus one, ``rows_visited`` the rows added to tables over all levels,
    ``cells_scored`` the cells of tables searched (both without nodes that a backend grows to their end, as the compiled
    one does with all but large ones), ``seconds`` the wall time of the whole fit, ``peak_table_bytes`` the
    largest table at one time, in bytes, and ``table_bytes`` its limit. ``note`` tells why ``device="auto"`` passed
    over a faster backend that is installed, else it is empty.
    """

    device: str
    backend: str
    levels: int
    rows_visited: int
    cells_scored: int
    seconds: float
    peak_table_bytes: int
    table_bytes: int
    note: str = ""


def say(text: str) -> None:
    """Print a line about what takes its time; a fit goes on where nobody reads it."""
    with suppress(BrokenPipeError):
        print(f"[gputree] {text}", file=sys.stderr)


def reporter(begin: float, trees: int | None = None) -> Watch:
    """Print one line a step: nodes, open nodes, rows a second; of a forest also which of its ``trees`` grow."""
    last = [begin]

    def watch(progress: Progress) -> None:
        now = time.perf_counter()
        rate = progress.open_rows / max(now - last[0], 1e-9)
        last[0] = now
        line = f"{now - begin:7.1f} s  {progress.nodes:>9,} nodes  {progress.open_nodes:>9,} open"
        if trees is not None:
            line += f"  trees {progress.first_tree + 1} to {progress.first_tree + progress.n_trees} of {trees}"
        say(f"{line}  {rate:>13,.0f} rows/s")

    return watch
