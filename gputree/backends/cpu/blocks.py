"""Tables as threads take them: some rows, or a column, as arrays of their own. May import core."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.oracle import dense

ROWS = 1 << 14  # rows encoded or predicted by one thread at a time
CELLS = 1 << 17  # ... and cells: a part of a sparse table is made dense


def by_rows(X: Any) -> Any:
    """The table; a sparse one so that its rows are quick to take."""
    return X if isinstance(X, np.ndarray) else X.tocsr()


def row_blocks(X: NDArray[Any]) -> list[slice]:
    """Rows that a thread takes at a time."""
    step = max(1, min(ROWS, CELLS // max(1, X.shape[1])))
    return [slice(first, min(first + step, X.shape[0])) for first in range(0, X.shape[0], step)]


def block_of(X: NDArray[Any], rows: slice) -> NDArray[Any]:
    """Some rows as kernels take them, who are compiled once more for others."""
    block: NDArray[Any] = np.require(dense(X[rows]), requirements=["C", "W"])
    return block


def column_of(X: NDArray[Any], f: int) -> NDArray[Any]:
    """One column as an array of its own."""
    column: NDArray[Any] = np.array(dense(X[:, f : f + 1])[:, 0])
    return column
