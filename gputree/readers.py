"""Tables from files, for the command line. May import everything below.

A CSV file means the same wherever it is read, whatever is installed: it is read here, with the standard library.
Parquet carries its own types, so any frame library may read it.
"""

from __future__ import annotations

import argparse
import csv
import difflib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from gputree.core.schema import Feature, Kind
from gputree.learners.tables import Columns
from gputree.report import count, cut_list, is_number

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "NULL", "null"})  # cells of a CSV file that hold nothing
DELIMITERS = (",", ";", "\t", "|")
CHUNK_ROWS = 20_000
FEW = 20  # whole numbers with at most so many distinct values are classes


Wanted: TypeAlias = "Mapping[str, Feature | None]"  # columns to read, and what the model knows of each
Rows: TypeAlias = "Sequence[Sequence[str]]"


class InputError(ValueError):
    """Something in a table or on the command line that its author can mend."""


def column_names(path: str) -> list[str]:
    """Names of the columns of a table."""
    return list(read_parquet(path).columns) if is_parquet(path) else header(path)


def read_table(path: str, wanted: Wanted | None = None) -> Columns:
    """Read columns of a CSV or Parquet file: those wanted, in that order, or all.

    Raises
    ------
    InputError
        If the file is no table, lacks a column, or holds text where the model knows numbers.
    """
    names = column_names(path)
    if wanted is None:
        wanted = dict.fromkeys(names)
    for name in wanted:
        require_column(name, names, path)
    if is_parquet(path):
        frame = read_parquet(path)
        require_rows(path, len(frame))
        return Columns(tuple(wanted), tuple(parquet_column(frame[name]) for name in wanted))
    return read_csv(path, names, wanted)


def require_column(name: str, names: Sequence[str], path: str) -> None:
    """Refuse a name that is no column; names like it help."""
    if name not in names:
        near = difflib.get_close_matches(name, names, 3, 0.5)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"its columns are {cut_list(names)}"
        raise InputError(f"{path} has no column {name!r}; {hint}")


def require_rows(path: str, n_rows: int) -> None:
    """Refuse a table without rows."""
    if n_rows == 0:
        raise InputError(f"{path} has names of columns and no rows; a table needs at least one row")


# CSV


def read_csv(path: str, names: list[str], wanted: Wanted) -> Columns:
    """Numbers where every cell of a column is one, else text; a second pass reads the text."""
    numbers: dict[str, list[NDArray[np.float64]]] = {
        name: [] for name, feature in wanted.items() if feature is None or feature.kind == Kind.NUMERIC
    }
    start = 0
    for rows in chunks(path, names):
        columns = list(zip(*rows, strict=True))
        for name in list(numbers):
            cells = columns[names.index(name)]
            try:
                numbers[name].append(as_numbers(cells))
            except ValueError:
                if wanted[name] is not None:
                    refuse_text(path, name, cells, start)
                del numbers[name]
        start += len(rows)
    require_rows(path, start)
    text = read_text(path, names, {name: wanted[name] for name in wanted if name not in numbers})
    arrays = (np.concatenate(numbers[name]) if name in numbers else text[name] for name in wanted)
    return Columns(tuple(wanted), tuple(arrays))


def as_numbers(cells: Sequence[str]) -> NDArray[np.float64]:
    """Cells as floats, NaN where missing; ValueError where one is no number."""
    if "_" in "".join(cells):
        raise ValueError  # Python reads 2024_01 as 202401
    try:
        return np.array(list(map(float, cells)))
    except ValueError:
        return np.array([np.nan if cell in MISSING else float(cell) for cell in cells])


def refuse_text(path: str, name: str, cells: Sequence[str], start: int) -> None:
    """Name the first cell that is no number."""
    for place, cell in enumerate(cells):
        try:
            as_numbers([cell])
        except ValueError:
            raise InputError(
                f"{path} holds {cell!r} in column {name!r}, row {start + place + 1}, where the model knows numbers; "
                "give a number, or nothing where it is missing"
            ) from None


def read_text(path: str, names: list[str], wanted: Wanted) -> dict[str, NDArray[Any]]:
    """Columns of text, None where missing; a category of another type is found by its text."""
    known = {name: spellings(feature.categories) if feature else {} for name, feature in wanted.items()}
    found: dict[str, list[Any]] = {name: [] for name in wanted}
    for rows in chunks(path, names) if wanted else ():
        for name, cells in found.items():
            place, values = names.index(name), known[name]
            cells.extend(None if row[place] in MISSING else values.setdefault(row[place], row[place]) for row in rows)
    return {name: object_array(cells) for name, cells in found.items()}


def spellings(categories: Sequence[Any]) -> dict[str, Any]:
    """How a file may write each category: booleans as True, true or TRUE, all others as they are."""
    texts = {str(c): c for c in categories}
    booleans = [c for c in categories if isinstance(c, bool)]
    return texts | {text: c for c in booleans for text in (str(c).lower(), str(c).upper())}


def object_array(values: Sequence[Any]) -> NDArray[Any]:
    """An array of Python objects (n,)."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def header(path: str) -> list[str]:
    """The first line of a CSV file."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        names = next(records(path, file), [])
    if not names:
        raise InputError(f"{path} is empty; a table begins with a line of column names")
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise InputError(f"{path} has two columns called {twice!r}; give each its own name")
    if all(is_number(name) for name in names):
        raise InputError(f"the first line of {path} holds numbers only; it must hold the names of the columns")
    return names


def records(path: str, file: Any) -> Iterator[list[str]]:
    """Lines of a CSV file that are not blank, as cells; the delimiter is what the first line has most of."""
    try:
        first = file.readline()
        file.seek(0)
        delimiter = max(DELIMITERS, key=first.count)
        for record in csv.reader(file, delimiter=delimiter, skipinitialspace=True, strict=True):
            if record:
                yield record
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path} is neither CSV in UTF-8 nor Parquet: {error}") from error


def chunks(path: str, names: list[str]) -> Iterator[Rows]:
    """Rows of a CSV file, some thousands at a time."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        lines = itertools.islice(records(path, file), 1, None)
        start = 0
        while rows := list(itertools.islice(lines, CHUNK_ROWS)):
            ragged = next((i for i, row in enumerate(rows) if len(row) != len(names)), None)
            if ragged is not None:
                raise InputError(
                    f"row {start + ragged + 1} of {path} has {len(rows[ragged])} cells where the first line names "
                    f"{len(names)} columns; give each row one cell a column"
                )
            start += len(rows)
            yield rows


# Parquet


def is_parquet(path: str) -> bool:
    """Whether a file begins as Parquet does."""
    with open(path, "rb") as file:
        return file.read(4) == b"PAR1"


def read_parquet(path: str) -> nw.DataFrame[Any]:
    """A Parquet file as a frame of polars or pyarrow."""
    libraries: tuple[Literal["polars", "pyarrow"], ...] = ("polars", "pyarrow")
    library = next((name for name in libraries if find_spec(name)), None)
    if library is None:
        raise ImportError(f"{path} is Parquet, which needs polars or pyarrow; run `pip install polars`, or give CSV")
    try:
        return nw.read_parquet(path, backend=library)
    except Exception as error:  # each library has exceptions of its own
        raise InputError(f"{path} is no Parquet file that {library} reads: {error}") from error


def parquet_column(column: nw.Series[Any]) -> NDArray[Any]:
    """One column as floats with NaN, or objects with None."""
    if column.dtype.is_numeric():
        if column.dtype != nw.Float32 or column.null_count():
            column = column.cast(nw.Float64())
        return np.asarray(column.to_numpy(), dtype=None if column.dtype == nw.Float32 else np.float64)
    if isinstance(column.dtype, nw.String | nw.Boolean | nw.Categorical | nw.Enum):
        return object_array(column.to_list())
    raise InputError(
        f"column {column.name!r} has type {column.dtype}, which is neither number, text, boolean nor category; "
        "leave it out with --exclude, or convert it"
    )


# What to learn from a table


@dataclass(frozen=True)
class Problem:
    """Columns to learn from, and what to learn."""

    X: Columns
    y: NDArray[Any]
    learner: str
    reason: str


def read_problem(args: argparse.Namespace) -> Problem:
    """Features and target of a table, and the learner that fits them."""
    names = column_names(args.table)
    for name in [args.target, *args.exclude]:
        require_column(name, names, args.table)
    wanted = [name for name in names if name not in args.exclude]
    features = [name for name in wanted if name != args.target]
    if not features or args.target in args.exclude:
        raise InputError(f"{args.table} has no column left to learn from, or no target; exclude fewer columns")
    table = dict(zip(wanted, read_table(args.table, dict.fromkeys(wanted)).arrays, strict=True))
    y, X = table[args.target], Columns(tuple(features), tuple(table[name] for name in features))
    X, y = with_target(X, y, args.target, args.drop_missing)
    y, learner, reason = judge(y)
    return Problem(X, y, learner, reason)


def with_target(X: Columns, y: NDArray[Any], name: str, drop: bool) -> tuple[Columns, NDArray[Any]]:
    """The rows that have a target, if those without may be left out."""
    missing = is_missing(y)
    if missing.all() or (missing.any() and not drop):
        remedy = "" if missing.all() else ", or leave these rows out with --drop-missing"
        raise InputError(
            f"column {name!r} has no value in {count(int(missing.sum()), 'row')} of {y.size:,}; fill them in{remedy}"
        )
    return replace(X, arrays=tuple(array[~missing] for array in X.arrays)), y[~missing]


def judge(y: NDArray[Any]) -> tuple[NDArray[Any], str, str]:
    """Labels or numbers, the learner for them, and why."""
    if y.dtype == object and all(isinstance(label, bool) for label in y.tolist()):
        return y.astype(bool), "DecisionTreeClassifier", "booleans"
    if y.dtype == object:
        return y, "DecisionTreeClassifier", f"text, {count(len(set(y.tolist())), 'class')}"
    distinct = np.unique(y)
    if np.isfinite(y).all() and (y == np.rint(y)).all() and np.abs(y).max() < 2**53:
        learner = "DecisionTreeClassifier" if distinct.size <= FEW else "DecisionTreeRegressor"
        return y.astype(np.int64), learner, f"whole numbers, {distinct.size:,} distinct"
    return y, "DecisionTreeRegressor", f"numbers, {distinct.size:,} distinct"


def is_missing(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Cells that hold nothing."""
    if array.dtype == object:
        return np.array([value is None for value in array.tolist()], bool)
    found: NDArray[np.bool_] = np.isnan(array)
    return found
