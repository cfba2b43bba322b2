"""Tables from CSV and Parquet files, and models where they are asked for. May import everything below.

A CSV file means the same wherever it is read, whatever is installed: see `gputree.readers.delimited`. Parquet carries
its own types, so any frame library may read it.
"""

from __future__ import annotations

import difflib
import os
import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from gputree.core.checks import what_is
from gputree.core.schema import Feature
from gputree.io import HEADER, load, save
from gputree.learners.frames import Columns
from gputree.readers.cells import InputError, Wanted, booleans_as_known, object_array
from gputree.readers.delimited import Form, read_csv, read_form, require_rows
from gputree.report import complain, cut_list, show

ZIP = b"PK\x03\x04"
COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


def column_names(path: str) -> list[str]:
    """Names of the columns of a table."""
    return list(read_parquet(path).columns) if is_parquet(path) else list(read_form(path).names)


def read_table(path: str, wanted: Wanted | None = None) -> Columns:
    """Read columns of a CSV or Parquet file: those wanted, in that order, or all.

    Raises
    ------
    InputError
        If the file is no table, lacks a column, or holds text where the model knows numbers.
    """
    source = read_parquet(path) if is_parquet(path) else read_form(path)
    names = list(source.names if isinstance(source, Form) else source.columns)
    if wanted is None:
        wanted = dict.fromkeys(names)
    for name in wanted:
        require_column(name, names, path)
    if isinstance(source, Form):
        return read_csv(source, wanted)
    require_rows(path, len(source))
    return Columns(tuple(wanted), tuple(parquet_column(source[name], wanted[name]) for name in wanted))


def require_column(name: str, names: Sequence[str], path: str) -> None:
    """Refuse a name that is no column; names like it help."""
    if name not in names:
        near = difflib.get_close_matches(name, names, 3, 0.65)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"its columns are {cut_list(names)}"
        raise InputError(f"{path} has no column {name!r}; {hint}")


def is_parquet(path: str) -> bool:
    """Whether a file begins as Parquet does; refuses what begins as a file of another kind."""
    with open(path, "rb") as file:
        begin = file.read(8)
    kind = next((kind for mark, kind in COMPRESSED.items() if begin.startswith(mark)), None)
    if kind:
        raise InputError(f"{path} is compressed ({kind}); decompress it first")
    if begin.startswith(ZIP):
        what = "is a model and no table" if is_model(path) else "is a zip archive; unpack it, or save the sheet as CSV"
        raise InputError(f"{path} {what}")
    return begin.startswith(b"PAR1")


def is_model(path: str) -> bool:
    """Whether a file is an archive with the header of a model."""
    try:
        with zipfile.ZipFile(path) as archive:
            return HEADER in archive.namelist()
    except zipfile.BadZipFile:
        return False


def load_model(path: str, table: str | None = None) -> Any:
    """A model; says so where the file is a table, or comes second."""
    if is_model(path):
        return load(path)
    with open(path, "rb") as file:
        archive = file.read(2) == b"PK"
    if table and os.path.isfile(table) and is_model(table):
        raise InputError(f"{path} is no model file, but {table} is; the model comes first: `{table} {path}`")
    if archive:
        return load(path)  # which says what is wrong with it
    raise InputError(f"{path} is no model file; `gputree fit` makes one from a table")


def save_model(model: Any, path: str | None) -> None:
    """Save a model if there is a place for it, and say so."""
    if path:
        save(model, path)
        show("saved", f"{path} ({os.path.getsize(path):,} bytes)")
    else:
        complain("the model is not saved: give `-o MODEL`", "note")


def tree_of(model: Any, number: int | None) -> Any:
    """The tree whose rules are printed: a model that is one, or one of a forest, None where no number is given."""
    if not hasattr(model, "estimators_"):
        if number is not None:
            raise InputError(f"--tree {number} chooses a tree of a forest, and {what_is(model)} is one tree")
        return model
    n_trees = len(model.estimators_)
    if number is not None and not 0 <= number < n_trees:
        raise InputError(f"--tree {number} is none of the {n_trees} trees; they are 0 to {n_trees - 1}")
    return None if number is None else model.estimators_[number]


def other_column(path: str, names: Sequence[str], known: Sequence[str]) -> str:
    """The only column of a table that is none of those known."""
    others = [name for name in names if name not in known]
    if len(others) != 1:
        what = f"are {len(others)} columns ({cut_list(others)})" if others else "is no column"
        raise InputError(f"there {what} in {path} beside those that the model reads; name the target with --target")
    return others[0]


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


def parquet_column(column: nw.Series[Any], feature: Feature | None) -> NDArray[Any]:
    """One column as floats with NaN, or objects with None."""
    if column.dtype.is_numeric():
        if column.dtype != nw.Float32 or column.null_count():
            column = column.cast(nw.Float64())
        return np.asarray(column.to_numpy(), dtype=None if column.dtype == nw.Float32 else np.float64)
    if isinstance(column.dtype, nw.String | nw.Boolean | nw.Categorical | nw.Enum):
        return object_array(booleans_as_known(column.to_list(), feature))
    raise InputError(
        f"column {column.name!r} has type {column.dtype}, which is neither number, text, boolean nor category; "
        "leave it out with --exclude, or convert it"
    )
