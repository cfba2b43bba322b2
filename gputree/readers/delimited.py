"""CSV files. May import everything below.

A file means what the csv module and Python's ``float`` make of it, whatever is installed; where polars or pyarrow is,
it splits the regular pieces of large files, which is quicker. The csv module reads on from the first piece that is not.
"""

from __future__ import annotations

import csv
import itertools
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from operator import itemgetter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gputree.core.checks import row_number
from gputree.core.schema import Kind
from gputree.learners.frames import Columns
from gputree.readers.cells import BOOLEANS, MISSING, InputError, Spellings, Wanted, as_numbers, is_number, object_array
from gputree.readers.regular import MARK, Splitter, library, pieces
from gputree.report import count

DELIMITERS = (",", ";", "\t", "|")
CHUNK_ROWS = 20_000  # rows that the csv module reads at a time
SMALL = 2**20  # bytes up to which importing a frame library takes longer than it saves


@dataclass(frozen=True)
class Form:
    """How a CSV file is written."""

    path: str
    delimiter: str
    names: tuple[str, ...]


class Block(Protocol):
    """Some rows of a file."""

    @property
    def n_rows(self) -> int:
        """How many."""

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A column as floats; ValueError where a cell is no number."""

    def cells(self, name: str) -> Sequence[str]:
        """A column as it is in the file."""

    def texts(self, name: str, known: Spellings) -> NDArray[Any]:
        """What the cells of a column stand for, as objects."""


@dataclass(frozen=True)
class Lines:
    """Rows that the csv module has read."""

    columns: dict[str, list[str]]
    n_rows: int

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A column as floats; ValueError where a cell is no number."""
        return as_numbers(self.columns[name])

    def cells(self, name: str) -> Sequence[str]:
        """A column as it is in the file."""
        return self.columns[name]

    def texts(self, name: str, known: Spellings) -> NDArray[Any]:
        """What the cells of a column stand for, as objects."""
        return object_array(list(map(known.__getitem__, self.columns[name])))


def read_form(path: str) -> Form:
    """Delimiter and names of columns, from the first line; the delimiter is what that line has most of."""
    with opened(path, 0) as file:
        first = file.readline()
        file.seek(0)
        delimiter = max(DELIMITERS, key=first.count)
        names = next(filter(None, csv_lines(file, delimiter)), [])
    if not names:
        raise InputError(f"{path} is empty; a table begins with a line of column names")
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise InputError(f"{path} has two columns called {twice!r}; give each its own name")
    if all(is_number(name) for name in names):
        raise InputError(f"the first line of {path} holds numbers only; it must hold the names of the columns")
    return Form(path, delimiter, tuple(names))


def read_csv(form: Form, wanted: Wanted) -> Columns:
    """Numbers where every cell of a column is one, else text; a second pass reads columns whose text comes late."""
    text = {name for name, feature in wanted.items() if feature is not None and feature.kind != Kind.NUMERIC}
    found = read_columns(form, wanted, text)
    late = {name: wanted[name] for name in wanted if name not in found}
    found |= read_columns(form, late, set(late)) if late else {}
    require_rows(form.path, max((array.size for array in found.values()), default=0))
    return Columns(tuple(wanted), tuple(found[name] for name in wanted))


def read_columns(form: Form, wanted: Wanted, text: set[str]) -> dict[str, NDArray[Any]]:
    """Columns of text, and of numbers, some of which the first rows show to be text; those that later rows do are left.

    Text is None where missing; a category of another type is found by its text.
    """
    known = {name: Spellings(feature.categories if feature else ()) for name, feature in wanted.items()}
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in wanted}
    start = 0
    for block in blocks(form, set(wanted)):
        for name, own in list(parts.items()):
            try:
                own.append(block.texts(name, known[name]) if name in text else block.numbers(name))
            except ValueError:
                if wanted[name] is not None:
                    own.append(known_numbers(form.path, name, block.cells(name), start))
                elif start:
                    del parts[name]
                else:
                    text.add(name)
                    own.append(block.texts(name, known[name]))
        start += block.n_rows
    return {name: np.concatenate(own) if own else np.zeros(0) for name, own in parts.items()}


def require_rows(path: str, n_rows: int) -> None:
    """Refuse a table without rows."""
    if n_rows == 0:
        raise InputError(f"{path} has names of columns and no rows; a table needs at least one row")


def known_numbers(path: str, name: str, cells: Sequence[str], start: int) -> NDArray[np.float64]:
    """Cells of a column that the model knows as numbers, booleans as 1 and 0; the first that is neither is named."""
    cells = [BOOLEANS.get(cell, cell) for cell in cells]
    place = next((i for i, cell in enumerate(cells) if cell not in MISSING and not is_number(cell)), None)
    if place is None:
        return as_numbers(cells)
    raise InputError(
        f"{path} holds {cells[place]!r} in column {name!r}, {row_number(start + place)}, where the model knows "
        "numbers; give a number, or nothing where it is missing"
    )


def blocks(form: Form, wanted: Collection[str]) -> Iterator[Block]:
    """The wanted columns of all rows in order; the csv module reads what no frame library may."""
    if not wanted:
        return
    place = n_rows = 0
    name = library() if os.path.getsize(form.path) > SMALL else None
    if name:
        splitter = Splitter(name, form.delimiter, form.names, tuple(n for n in form.names if n in wanted))
        for piece in pieces(form.path):
            first = place == 0
            frame = splitter.split(piece.removeprefix(MARK) if first else piece, skip=int(first))
            if frame is None:
                break
            if frame.n_rows:
                yield frame
            place += len(piece)
            n_rows += frame.n_rows
    with opened(form.path, place) as file:
        rows = csv_lines(file, form.delimiter)
        if place == 0:
            next(filter(None, rows))  # the names
        yield from lines(form, records(rows, len(form.names)), wanted, n_rows)


def lines(form: Form, rows: Iterator[list[str]], wanted: Collection[str], start: int) -> Iterator[Lines]:
    """Rows of a CSV file, some thousands at a time."""
    places = {name: itemgetter(i) for i, name in enumerate(form.names) if name in wanted}
    while chunk := list(itertools.islice(rows, CHUNK_ROWS)):
        ragged = next((i for i, row in enumerate(chunk) if len(row) != len(form.names)), None)
        if ragged is not None:
            raise InputError(
                f"{row_number(start + ragged)} of {form.path} has {count(len(chunk[ragged]), 'cell')} where the first "
                f"line names {count(len(form.names), 'column')}; give each row one cell a column"
            )
        start += len(chunk)
        yield Lines({name: list(map(cell, chunk)) for name, cell in places.items()}, len(chunk))


def csv_lines(file: TextIOWrapper, delimiter: str) -> Iterator[list[str]]:
    """The cells of every line; a blank line has none."""
    return csv.reader(file, delimiter=delimiter, skipinitialspace=True, strict=True)


def records(found: Iterator[list[str]], n_columns: int) -> Iterator[list[str]]:
    """Lines that are rows: a blank one is a missing cell where a table has one column and other rows follow."""
    blank = 0
    for row in filter(None, found) if n_columns > 1 else found:
        if row:
            yield from itertools.repeat([""], blank)
            yield row
        blank = 0 if row else blank + 1


@contextmanager
def opened(path: str, place: int) -> Iterator[TextIOWrapper]:
    """The text of a file from a byte on, line ends as they are; what is no CSV is said in a sentence."""
    try:
        with open(path, "rb") as file:
            if not file.seekable():
                raise InputError(f"{path} is a pipe, and a table is read more than once; write it to a file first")
            file.seek(place)
            yield TextIOWrapper(file, encoding="utf-8" if place else "utf-8-sig", newline="")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is neither CSV in UTF-8 nor Parquet: a byte is no UTF-8, {error.reason}") from error
    except csv.Error as error:
        raise InputError(f"{path} is neither CSV in UTF-8 nor Parquet: {error}") from error
