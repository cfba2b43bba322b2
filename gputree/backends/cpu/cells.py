"""From rows to cells: brought into cache, counted by (feature, code, channel), and present codes listed."""

from __future__ import annotations

from typing import Any

from numpy import int64, uint32, uint64
from numpy.typing import NDArray

from gputree.backends.cpu.arrays import gather
from gputree.backends.cpu.formulas import COUNTS, PAIR
from gputree.backends.cpu.marks import kernel, trailing_zeros
from gputree.backends.cpu.records import Job, Layout, Part, Scratch, Source
from gputree.core.splits import Scan

WORD = 64
ROWS = 64  # fetched together
CUTS, ONE_CUT = int(Scan.CUTS), int(Scan.ONE_CUT)
DENSE = 4  # codes per row from which present codes are remembered, not looked for


@kernel
def channels_of(layout: Layout) -> int:
    """Channels of a table."""
    return 2 if PAIR else layout.table


@kernel
def outputs_of(layout: Layout) -> int:
    """Outputs."""
    return 1 if PAIR else layout.first.size


@kernel
def classes_of(layout: Layout) -> int:
    """Channels whose sum is the weight, from the first on."""
    if not COUNTS:
        return 1
    return 2 if PAIR else layout.sizes[0]


@kernel
def load(source: Source, part: Part, first: int, n: int, feature: NDArray[int64]) -> None:
    """Bring what the rows at n positions add into cache, and their codes of some features."""
    row = source.row[first : first + n]
    at, weight, units = part.at, part.weight, source.units
    for i in range(n):
        at[i] = uint32(i)
        weight[i] = 1
    if source.times.size:
        times = source.times[first : first + n]
        for i in range(n):
            weight[i] = int64(times[i])
    for o in range(source.labels.shape[0]):
        gather(part.label[o], source.labels[o], row)
    for o in range(source.values.shape[0]):
        gather(part.value[o], source.values[o], row)
        gather(part.y[o], source.y[o], row)
        value = part.value[o]
        for i in range(n):
            value[i] *= weight[i]
    if units.size:
        for i in range(n):
            weight[i] *= units[row[i]]
    codes = source.codes
    for block in range(0, n, ROWS):  # in the order of rows, so that each is fetched once
        for j in range(feature.size):
            column, f = part.column[j], feature[j]
            for i in range(block, min(block + ROWS, n)):
                column[i] = codes[row[i], f]


@kernel
def add(job: Job, column: NDArray[Any], table: NDArray[int64], first: int, stop: int) -> None:
    """Add the rows first .. stop - 1 of a part to the table of one feature.

    Indices are unsigned, so that Numba does not look for negative ones.
    """
    layout, part, rows = job.layout, job.part, job.layout.rows
    channels, at, weight = channels_of(layout), part.at[first:stop], part.weight[first:stop]
    wide = uint64(channels)
    for o in range(outputs_of(layout)):
        channel = layout.first[o]
        if COUNTS:
            label = part.label[o, first:stop]
            for i in range(at.size):
                cell = uint64(column[at[i]]) * wide + uint64(channel) + uint64(label[i])
                table[cell] += weight[i]
        else:
            value = part.value[o, first:stop]
            for i in range(at.size):
                table[uint64(column[at[i]]) * wide + uint64(channel)] += value[i]
    if not COUNTS:
        for i in range(at.size):
            table[uint64(column[at[i]]) * wide] += weight[i]
    if 0 <= rows < channels:
        for i in range(at.size):
            table[uint64(column[at[i]]) * wide + uint64(rows)] += 1


@kernel
def is_linked(job: Job, feature: int) -> bool:
    """Whether the table of a feature lists rows by code: cells of many channels would be far more than its rows."""
    return COUNTS and not PAIR and job.meaning.linked[feature] != 0


@kernel
def link(job: Job, column: NDArray[Any], table: NDArray[int64], first: int, stop: int) -> None:
    """List the rows first .. stop - 1 of a part: at their code 1 + the last of them, behind the codes those before."""
    at, behind = job.part.at[first:stop], table.size - job.part.at.size
    for i in range(at.size):
        code = uint64(column[at[i]])
        table[uint64(behind + first + i)] = table[code]
        table[code] = first + i + 1


@kernel
def count(job: Job, j: int, feature: int, table: NDArray[int64], span: tuple[int, int]) -> None:
    """Bring some rows of column j, which holds a feature, into its table."""
    if is_linked(job, feature):
        link(job, job.part.column[j], table, span[0], span[1])
    else:
        add(job, job.part.column[j], table, span[0], span[1])


@kernel
def is_sparse(job: Job, feature: int, rows: int) -> bool:
    """Whether the codes of a feature are too many for so few rows to look at each."""
    return bool(job.meaning.n_codes[feature] >= DENSE * rows)


@kernel
def number_codes(job: Job, n: int) -> None:
    """Number the codes of a part's n rows by those present, in columns cut anywhere that have many codes for n rows.

    What is counted and listed in the nodes of a part then depends on its rows, not on those of the table.
    """
    part, scratch, meaning = job.part, job.scratch, job.meaning
    for f in range(part.present.size):
        part.present[f] = 0
        if not is_sparse(job, f, n) or meaning.scan[f] != CUTS:
            continue
        column, names, number = part.column[f], part.names[f], scratch.number
        remember(part, column, scratch.bits[0], 0, n)
        present = list_remembered(scratch, scratch.bits[0], meaning.n_codes[f] // WORD + 1)
        for i in range(present):
            names[i] = uint32(scratch.code[i])
            number[names[i]] = uint32(i)
        for i in range(n):
            column[i] = number[column[i]]
        part.present[f] = present


@kernel
def remember(part: Part, column: NDArray[Any], bits: NDArray[uint64], first: int, stop: int) -> None:
    """Set the bits of the codes of some rows."""
    at = part.at[first:stop]
    for i in range(at.size):
        code = uint64(column[at[i]])
        bits[int64(code >> uint64(6))] |= uint64(1) << (code & uint64(63))


@kernel
def list_remembered(scratch: Scratch, bits: NDArray[uint64], n_words: int) -> int:
    """List the codes whose bits are set, ascending, and clear the bits; how many there are."""
    cells, code = 0, scratch.code
    for w in range(n_words):
        word = bits[w]
        while word != uint64(0):
            code[cells] = w * WORD + int64(trailing_zeros(word))
            cells += 1
            word &= word - uint64(1)
        bits[w] = uint64(0)
    return cells


@kernel
def list_counted(job: Job, feature: int, table: NDArray[int64], n_codes: int) -> int:
    """List the codes that have some weight, ascending; how many there are."""
    cells, code, channels = 0, job.scratch.code, channels_of(job.layout)
    last = classes_of(job.layout)
    if is_linked(job, feature):
        channels, last = 1, 1
    for c in range(n_codes + 1):
        weight = 0
        for i in range(c * channels, c * channels + last):
            weight += table[i]
        if weight > 0:
            code[cells] = c
            cells += 1
    return cells


@kernel
def weight_of(layout: Layout, channel: NDArray[int64]) -> int:
    """The weight that channels (C,) hold."""
    weight = channel[0]
    for c in range(1, classes_of(layout)):
        weight += channel[c]
    return weight


@kernel
def rows_of(layout: Layout, channel: NDArray[int64]) -> int:
    """The rows that channels (C,) hold."""
    return channel[layout.rows] if layout.rows >= 0 else weight_of(layout, channel)


@kernel
def forget(job: Job, feature: int, table: NDArray[int64], cells: int) -> None:
    """Clear the cells of a table."""
    place, channels = job.scratch.place, 1 if is_linked(job, feature) else channels_of(job.layout)
    for i in range(cells):
        first = place[i] * channels
        for c in range(channels):
            table[first + c] = 0
