"""Results as text of 80 columns and as data frames. May import everything below and narwhals."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill, wrap
from typing import Any

import narwhals.stable.v2 as nw

from gputree.table import FrameLibrary, _frame_library

WIDTH = 80
NAMES = 20  # of these, at least so many stay for the first column


def headline(text: str) -> str:
    """A sentence in lines of text."""
    return fill(text, WIDTH)


def frame_of(columns: dict[str, Any], library: FrameLibrary | None) -> Any:
    """Columns as a data frame of whichever library is installed."""
    return nw.from_dict(
        {name: list(cells) for name, cells in columns.items()}, backend=_frame_library(library)
    ).to_native()


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], marks: Sequence[str] | None = None) -> str:
    """Columns of text, the first to the left and in several lines where one would be too long, the others right."""
    marks = [""] * len(rows) if marks is None else marks
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    edge = max(map(len, marks), default=0)
    widths[0] = min(widths[0], max(NAMES, WIDTH - edge - sum(2 + w for w in widths[1:])))
    lines = []
    for mark, row in zip([" " * edge, *marks], [header, *rows], strict=True):
        first, *more = wrap(row[0], widths[0], subsequent_indent="  ", break_on_hyphens=False) or [row[0]]
        cells = [first.ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        lines += [f"{mark.ljust(edge)}{'  '.join(cells)}".rstrip(), *(f"{' ' * edge}{text}" for text in more)]
    return "\n".join(lines)


def number(value: float) -> str:
    """Four significant digits or decimals."""
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.5g}"


def whole(value: float | None) -> str:
    """A size; nothing where there is none."""
    return "-" if value is None else f"{value:.5g}" if value != int(value) else str(int(value))


def settings(params: dict[str, Any], digits: int = 6) -> str:
    """Parameters as they would be given."""
    return ", ".join(
        f"{name}={value if not isinstance(value, float) else float(f'{value:.{digits}g}')!r}"
        for name, value in params.items()
    )
