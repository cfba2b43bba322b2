"""CSV that a frame library splits as the csv module does. May import everything below and a frame library.

A file is read in pieces that end where a record ends. A piece is *regular* if every line has one cell a column, quotes
stand around whole cells only, and nothing is in it that readers of CSV are known to differ about. Such a piece is given
to polars or pyarrow as text alone; what its cells mean is for `gputree.readers.cells` to say. All others are left to
the csv module, see `gputree.readers.delimited`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from gputree.readers.cells import MISSING, Spellings, as_numbers, object_array

PIECE = 16 * 2**20  # bytes that are read at a time
MARK = b"\xef\xbb\xbf"  # of UTF-8, at the beginning of files from Windows
LINE, RETURN, BLANK, QUOTE = 10, 13, 32, 34


def library() -> str | None:
    """A frame library that is installed."""
    return next((name for name in ("polars", "pyarrow") if find_spec(name)), None)


def pieces(path: str) -> Iterator[bytes]:
    """The bytes of a file, cut after line feeds outside quotes; ends early where a piece has none."""
    with open(path, "rb") as file:
        rest = b""
        while more := file.read(PIECE):
            piece = rest + more
            stop = last_line_end(piece)
            if not stop:
                return
            yield piece[:stop]
            rest = piece[stop:]
    if rest:
        yield rest


def last_line_end(piece: bytes) -> int:
    """Length up to the last line feed outside quotes, 0 if there is none."""
    end = piece.rfind(b"\n")
    inside = piece.count(b'"', 0, max(end, 0)) % 2
    while end >= 0 and inside:
        before = piece.rfind(b"\n", 0, end)
        inside ^= piece.count(b'"', before + 1, end) % 2
        end = before
    return end + 1


def tidy(piece: bytes, delimiter: str, n_columns: int) -> tuple[bytes, int]:
    """A regular piece without what the csv module skips (carriage returns, blanks before cells), and its lines.

    No lines if the piece is not regular.
    """
    text = piece.replace(b"\r\n", b"\n") if b"\r" in piece else piece
    text = text if text.endswith(b"\n") else text + b"\n"
    mark, quoted = delimiter.encode(), b'"' in text
    if b"\r" in text or b"\0" in text or MARK in text or not is_utf8(text) or (quoted and returns_inside(piece)):
        return text, 0
    if not quoted and (mark + b" " in text or b"\n " in text or text.startswith(b" ")):
        text = re.sub(rb"(?:^|(?<=[" + re.escape(mark) + rb"\n])) +", b"", text)
    return text, count_lines(np.frombuffer(text, np.uint8), mark[0], n_columns)


def returns_inside(piece: bytes) -> bool:
    """Whether a carriage return stands inside quotes, where it is part of a cell."""
    if b"\r" not in piece:
        return False
    data = np.frombuffer(piece, np.uint8)
    return bool((np.bitwise_xor.accumulate(data == QUOTE) & (data == RETURN)).any())


def is_utf8(text: bytes) -> bool:
    """Whether these bytes are text."""
    try:
        return text.isascii() or bool(text.decode())
    except UnicodeDecodeError:
        return False


def count_lines(data: NDArray[np.uint8], mark: int, n_columns: int) -> int:
    """Lines of a piece u1 (n,) that ends in a line feed; 0 if they are not regular.

    With two columns, lines end at ``line`` and each holds one delimiter, ``cell``, between its first and last byte::

        data    a , b ⏎ " , " , c ⏎
        line          x           x
        cell      x           x        the comma inside quotes is none
    """
    line, cell = data == LINE, data == mark
    quote = data == QUOTE
    if quote.any():
        inside = np.bitwise_xor.accumulate(quote)
        line, cell = line & ~inside, cell & ~inside
        blank = data == BLANK
        if blank[0] or (blank[1:] & (line | cell)[:-1]).any() or not quotes_fit(data, quote, mark):
            return 0
    ends, cells = np.flatnonzero(line), np.flatnonzero(cell)
    starts = np.append(0, ends[:-1] + 1)
    if not ends.size or cells.size != ends.size * (n_columns - 1) or (ends - starts).max() > csv.field_size_limit():
        return 0
    grid = cells.reshape(ends.size, n_columns - 1)
    fits = (grid[:, 0] >= starts) & (grid[:, -1] < ends) if n_columns > 1 else ends > starts
    return ends.size if fits.all() else 0


def quotes_fit(data: NDArray[np.uint8], quote: NDArray[np.bool_], mark: int) -> bool:
    """Whether quotes open where a cell begins and close where it ends, but for doubled ones."""
    places = np.flatnonzero(quote)
    if places.size % 2:
        return False
    opening, closing = places[::2], places[1::2]
    before = np.where(opening > 0, data[opening - 1], LINE)
    edges = np.array([mark, LINE, QUOTE], np.uint8)
    return bool(np.isin(before, edges).all() and np.isin(data[closing + 1], edges).all())


@dataclass(frozen=True)
class Frame:
    """Columns of text of some rows; a frame library makes numbers of them where all of them are plain ones.

    polars and pyarrow read no text as a number that Python does not, and none as another number: tests hold them to it.
    """

    columns: dict[str, nw.Series[Any]]
    n_rows: int

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A column as floats; ValueError where a cell is no number."""
        cells = self.columns[name]
        for prepare in (as_is, blanked):
            try:
                return np.array(prepare(cells).cast(nw.Float64()).to_numpy(), np.float64)
            except Exception:  # a cell that this library cannot read, Python perhaps can; each has errors of its own
                continue
        return as_numbers(self.cells(name))

    def cells(self, name: str) -> Sequence[str]:
        """A column as it is in the file."""
        return [cell or "" for cell in self.columns[name].to_list()]

    def texts(self, name: str, known: Spellings) -> NDArray[Any]:
        """What the cells of a column stand for, as objects; each distinct one is looked up once."""
        cells = self.columns[name].fill_null("")
        distinct = cells.unique().to_list()
        place = cells.replace_strict(distinct, range(len(distinct)), return_dtype=nw.Int64()).to_numpy()
        return object_array([known[cell] for cell in distinct])[place]


def as_is(cells: nw.Series[Any]) -> nw.Series[Any]:
    """The column itself."""
    return cells


def blanked(cells: nw.Series[Any]) -> nw.Series[Any]:
    """The column with null for the cells that hold nothing."""
    frame, column = cells.to_frame(), nw.col(cells.name)
    return frame.select(nw.when(~column.is_in(sorted(MISSING))).then(column).alias("cells"))["cells"]


@dataclass(frozen=True)
class Splitter:
    """Splits regular pieces into columns."""

    library: str
    delimiter: str
    names: tuple[str, ...]
    wanted: tuple[str, ...]  # in the order of the file, at least one

    def split(self, piece: bytes, skip: int) -> Frame | None:
        """The wanted columns of a piece without its first lines; None if the piece is not regular."""
        text, lines = tidy(piece, self.delimiter, len(self.names))
        if not lines:
            return None
        places = [i for i, name in enumerate(self.names) if name in self.wanted]
        read = self.read_polars if self.library == "polars" else self.read_pyarrow
        try:
            frame = nw.from_native(read(text, places), eager_only=True)
        except Exception:  # whatever it is that this library does not like, the csv module has the last word
            return None
        if frame.shape != (lines, len(places)):
            return None
        rows = frame[skip:]
        return Frame({self.names[place]: rows[:, i] for i, place in enumerate(places)}, lines - skip)

    def read_polars(self, text: bytes, places: list[int]) -> Any:
        """Columns of text by polars."""
        import polars

        quote = '"' if b'"' in text else None
        return polars.read_csv(
            text, has_header=False, columns=places, separator=self.delimiter, quote_char=quote, infer_schema_length=0
        )

    def read_pyarrow(self, text: bytes, places: list[int]) -> Any:
        """Columns of text by pyarrow."""
        import pyarrow
        from pyarrow import csv as arrow

        names, quoted = [str(i) for i in range(len(self.names))], b'"' in text
        return arrow.read_csv(
            pyarrow.py_buffer(text),
            arrow.ReadOptions(column_names=names),
            arrow.ParseOptions(
                delimiter=self.delimiter, quote_char='"' if quoted else False, newlines_in_values=quoted
            ),
            arrow.ConvertOptions(
                column_types=dict.fromkeys(names, pyarrow.string()),
                include_columns=[names[i] for i in places],
                strings_can_be_null=False,
            ),
        )
