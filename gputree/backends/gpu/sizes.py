"""How a table is counted: which part of it a block keeps in shared memory. May import nothing of ours.

Shared cells of a block, with c codes, k channels, b bytes a channel, 32 lanes and L bytes of shared memory:

======================================  =======================================================================
the first that fits                     a block counts
======================================  =======================================================================
c * k * 32 * b <= L                     28 features, a record, in columns of their own: 32 lanes meet 32 banks
c * k * (16, 8, 4) * b <= L             16, 8 or 4 features, lanes in turn
c * part * 4 * b <= L, <= PARTS passes  4 features of a part of the channels, the rows read once for each part
else                                    nothing: rows are added in global memory
======================================  =======================================================================

With 16 features or fewer, several rows share a step; where there are more columns than features, each has its own copy
of the cells.
"""

from __future__ import annotations

from dataclasses import dataclass

RECORD = 28  # features of a full record
RESERVED = 1024  # bytes of shared memory that every block takes besides
COLUMNS = (32, 16, 8, 4)
PARTS = 16  # times that a record is read at most
THREADS = 512  # of a block
RESIDENT = 1024  # threads of a multiprocessor that the registers of `count_shared` leave room for
TILE = 1024  # rows that a block takes at a time
FLUSH = 2  # rows for each cell of a feature that a block adds to a table


@dataclass(frozen=True, slots=True)
class Plan:
    """``own`` features and ``channels`` of a block, ``columns`` of cells, ``parts`` that cover all.

    ``lanes`` is the power of two from ``own`` on; ``cells`` of a feature and ``nbytes`` are those of a block.
    """

    own: int
    lanes: int
    channels: int
    columns: int
    parts: int
    cells: int
    nbytes: int

    def shares(self, multiprocessors: int, shared: int, tiles: int) -> int:
        """Blocks of a part: as many as run at once, none without rows that pay for adding its cells to the table."""
        resident = max(1, min(shared // (self.nbytes + RESERVED), RESIDENT // THREADS))
        paid = tiles * TILE // (FLUSH * self.cells)
        return max(1, min(tiles, paid, resident * multiprocessors // self.parts))


def plan(codes: int, channels: int, nbytes: int, features: int, limit: int) -> Plan | None:
    """The first row of the table that fits, None for global memory."""
    wanted = min(features, RECORD)  # more would read two records of a row
    width = 1 << (wanted - 1).bit_length()
    for columns in COLUMNS:
        size = codes * channels * columns * nbytes
        if size <= limit:
            own = min(wanted, columns)
            return Plan(own, min(width, columns), channels, columns, -(-features // own), codes * channels, size)
    own, columns = min(wanted, COLUMNS[-1]), COLUMNS[-1]
    part = limit // (codes * columns * nbytes)
    passes = -(-channels // part) if part else PARTS + 1
    if passes * -(-wanted // own) > PARTS:
        return None
    size = codes * part * columns * nbytes
    return Plan(own, min(width, columns), part, columns, passes * -(-features // own), codes * part, size)
