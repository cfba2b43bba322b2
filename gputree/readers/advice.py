"""What is odd about a table that can be read: columns that are text by mistake, dates, numbers of rows, ids.

A column of text gets a branch a category, so that one of these columns makes a large tree that knows nothing. May
import everything below.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.checks import row_number
from gputree.inspect.words import shortened
from gputree.learners.memorised import LEAST, MANY, NEARLY, look_like_dates, nearly_distinct
from gputree.readers.cells import is_number

COMMAS = re.compile(r"[-+]?(\d*|\d{1,3}([.'\s]\d{3})+),\d+([eE][-+]?\d+)?|[-+]?\d{1,3}(,\d{3})+(\.\d*)?")  # 1,5 1,000.5


def advice(table: Mapping[str, NDArray[Any]], features: Sequence[str], target: str | None) -> Iterator[str]:
    """A sentence a column that is odd."""
    for name in (*features, *([target] if target else [])):
        array = table[name]
        if array.dtype == object:
            remedy = "name another --target" if name == target else f"leave it out with `--exclude {shlex.quote(name)}`"
            yield from about_text(name, array.tolist(), remedy)
        elif name != target and counts_rows(array):
            yield f"column {name!r} looks like a row index; leave it out with `--exclude {shlex.quote(name)}`"


def about_text(name: str, cells: list[Any], remedy: str) -> Iterator[str]:
    """At most one sentence on a column of text."""
    times = Counter(cells)
    distinct = {cell for cell in times if isinstance(cell, str)}
    numbers = {cell for cell in distinct if is_number(cell)}
    n_known, n_numbers = (sum(times[cell] for cell in some) for some in (distinct, numbers))
    nearly = n_numbers >= NEARLY * n_known or (len(distinct) > MANY and len(numbers) >= NEARLY * len(distinct))
    what = f"column {name!r} is text"
    commas = {cell for cell in distinct if COMMAS.fullmatch(cell)}
    if commas and n_numbers + sum(times[cell] for cell in commas) >= NEARLY * n_known:
        such = next(cell for cell in cells if cell in commas)
        yield (
            f"{what} whose cells look like numbers with commas, such as {such!r}; write a decimal point (1.5) and no "
            f"thousands separator (1000), or {remedy}"
        )
    elif 0 < n_numbers < n_known and nearly:
        row = next(i for i, cell in enumerate(cells) if isinstance(cell, str) and cell not in numbers)
        share = f"{n_numbers:,} of its {n_known:,} known cells are numbers"
        yield (
            f"{what}, though {share}: the first that is none is {shortened(cells[row], 30)!r} in {row_number(row)}; "
            f"mend or empty such cells, or {remedy}"
        )
    elif look_like_dates(distinct):
        what += f" with {len(distinct):,} categories that look like dates or times"
        yield f"{what}; give numbers instead, or {remedy}"
    elif nearly_distinct(distinct, n_known):
        yield f"{what} with {len(distinct):,} categories in {n_known:,} known cells, nearly all distinct; {remedy}"


def counts_rows(array: NDArray[Any]) -> bool:
    """Whether a column of numbers is 0, 1, 2 ... or 1, 2, 3 ..."""
    n = array.size
    return n >= LEAST and array[0] in (0, 1) and bool((array == np.arange(n) + array[0]).all())
