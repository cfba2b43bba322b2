"""What the command line reads and writes: tables from files, and reports as text. May import everything below.

A CSV file means the same wherever it is read, whatever is installed: it is read here, with the standard library.
Parquet carries its own types, so any frame library may read it.
"""

from __future__ import annotations

import csv
import difflib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from gputree.core.schema import Feature, Kind
from gputree.learners.tables import Columns

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "NULL", "null"})  # cells of a CSV file that hold nothing
DELIMITERS = (",", ";", "\t", "|")
CHUNK_ROWS = 20_000
WIDTH = 80
TOP = 10  # lines of a list that is cut

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
        return Columns(tuple(wanted), tuple(parquet_column(frame[name]) for name in wanted))
    return read_csv(path, names, wanted)


def require_column(name: str, names: Sequence[str], path: str) -> None:
    """Refuse a name that is no column; names like it help."""
    if name not in names:
        near = difflib.get_close_matches(name, names, 3, 0.5)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"its columns are {cut_list(names)}"
        raise InputError(f"{path} has no column {name!r}; {hint}")


def cut_list(texts: Sequence[str], most: int = TOP) -> str:
    """Texts with commas, cut with a count."""
    left = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {left} more" if left > 0 else "")


# CSV


def read_csv(path: str, names: list[str], wanted: Wanted) -> Columns:
    """Numbers where every cell of a column is one, else text; a second pass reads the text."""
    numbers: dict[str, list[NDArray[np.float64]]] = {
        name: [] for name, feature in wanted.items() if feature is None or feature.kind == Kind.NUMERIC
    }
    start = 0
    for rows in chunks(path, names):
        for name in list(numbers):
            cells = [row[names.index(name)] for row in rows]
            try:
                numbers[name].append(as_numbers(cells))
            except ValueError:
                if wanted[name] is not None:
                    refuse_text(path, name, cells, start)
                del numbers[name]
        start += len(rows)
    if start == 0:
        raise InputError(f"{path} has names of columns and no rows; a table needs at least one row")
    text = read_text(path, names, {name: wanted[name] for name in wanted if name not in numbers})
    arrays = (np.concatenate(numbers[name]) if name in numbers else text[name] for name in wanted)
    return Columns(tuple(wanted), tuple(arrays))


def as_numbers(cells: Sequence[str]) -> NDArray[np.float64]:
    """Cells as floats, NaN where missing; ValueError where one is no number."""
    if any("_" in cell for cell in cells):
        raise ValueError  # Python reads 2024_01 as 202401
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
    known = {name: {str(c): c for c in f.categories} if f else {} for name, f in wanted.items()}
    found: dict[str, list[Any]] = {name: [] for name in wanted}
    for rows in chunks(path, names) if wanted else ():
        for name, cells in found.items():
            place, values = names.index(name), known[name]
            cells.extend(None if row[place] in MISSING else values.setdefault(row[place], row[place]) for row in rows)
    return {name: object_array(cells) for name, cells in found.items()}


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


def is_number(text: str) -> bool:
    """Whether a text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


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
            for place, row in enumerate(rows):
                if len(row) != len(names):
                    raise InputError(
                        f"row {start + place + 1} of {path} has {len(row)} cells where the first line names "
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


# Reports


def show(label: str, text: str) -> None:
    """Print a line of a report."""
    print(f"{label:<12}{text}")


def count(n: int, noun: str) -> str:
    """``1 row``, ``2,000 rows``."""
    return f"{n:,} {noun}{'' if n == 1 else 'es' if noun.endswith('s') else 's'}"


def label_key(value: Any) -> Any:
    """What makes a label in a file equal to a label of the model: the number it reads as, else its text."""
    text = str(value)
    return float(text) if is_number(text) and "_" not in text else text


def class_numbers(values: NDArray[Any], labels: Sequence[Any]) -> tuple[NDArray[np.int64], list[str]]:
    """Class numbers of labels as they are in a table, and names of all classes, those unknown to the model last."""
    number = {label_key(label): i for i, label in enumerate(labels)}
    names = [str(label) for label in labels]
    codes = np.empty(values.size, np.int64)
    for i, value in enumerate(values.tolist()):
        key = label_key(value)
        if key not in number:
            number[key] = len(names)
            names.append(f"{value:g}" if isinstance(value, float) else str(value))
        codes[i] = number[key]
    return codes, names


def area_under_curve(truth: NDArray[np.int64], shares: NDArray[np.float64]) -> str:
    """Area under the ROC curve: of the second of two classes, else one against the rest, the mean over classes."""
    classes = [1] if shares.shape[1] == 2 else range(shares.shape[1])
    areas = [roc_auc_score(truth == c, shares[:, c]) for c in classes if 0 < (truth == c).sum() < truth.size]
    if not areas:
        return "not defined: the table holds one class only"
    if shares.shape[1] == 2:
        return f"{areas[0]:.4f}"
    return f"{np.mean(areas):.4f} (one against the rest, mean of {count(len(areas), 'class')})"


def confusion(truth: NDArray[np.int64], found: NDArray[np.int64], names: Sequence[str]) -> str:
    """The confusion matrix where it is narrow enough, else the worst classes and the most frequent confusions."""
    k = len(names)
    table = np.bincount(truth * k + found, minlength=k * k).reshape(k, k)
    short = [name if len(name) <= 16 else name[:13] + "..." for name in names]
    width = max(len(f"{table.max():,}"), *(len(name) for name in short)) + 2
    first = max(len("true"), *(len(name) for name in short))
    if first + width * k > WIDTH:
        return worst(table, short)
    lines = [f"{'true':<{first}}" + "".join(f"{name:>{width}}" for name in short)]
    lines += [f"{short[i]:<{first}}" + "".join(f"{n:>{width},}" for n in table[i]) for i in range(k)]
    return "confusion (rows: true, columns: predicted)\n" + "\n".join(lines)


def worst(table: NDArray[np.int64], names: Sequence[str]) -> str:
    """Two lists: classes by recall, and pairs by count."""
    rows, right, called = table.sum(axis=1), np.diag(table), table.sum(axis=0)
    present = np.flatnonzero(rows)
    by_recall = present[np.argsort(right[present] / rows[present], kind="stable")][:TOP]
    lines = [f"classes of lowest recall (of {len(names)})", f"{'class':<18}{'rows':>10}{'recall':>10}{'precision':>11}"]
    for i in by_recall:
        precision = f"{right[i] / called[i]:.4f}" if called[i] else "-"
        lines.append(f"{names[i]:<18}{rows[i]:>10,}{right[i] / rows[i]:>10.4f}{precision:>11}")
    wrong = table - np.diag(right)
    pairs = [divmod(int(p), len(names)) for p in np.argsort(-wrong, axis=None, kind="stable")[:TOP]]
    pairs = [pair for pair in pairs if wrong[pair]]
    lines += ["", "most frequent confusions", f"{'true':<18}{'predicted':<18}{'rows':>10}"] if pairs else []
    return "\n".join([*lines, *(f"{names[i]:<18}{names[j]:<18}{wrong[i, j]:>10,}" for i, j in pairs)])


def regression(truth: NDArray[np.float64], found: NDArray[np.float64]) -> list[tuple[str, str]]:
    """RMSE and R2."""
    squared, spread = ((truth - found) ** 2).mean(), truth.var()
    r2 = f"{1 - squared / spread:.4f}" if spread > 0 else "not defined: the target is constant"
    return [("RMSE", f"{np.sqrt(squared):.6g}"), ("R2", r2)]


def parameter_help(learner: type) -> dict[str, str]:
    """Type and description of every parameter, from the docstring of an estimator."""
    lines = (learner.__doc__ or "").partition("Parameters\n")[2].partition("Attributes\n")[0].splitlines()
    found: dict[str, str] = {}
    current: list[str] = []
    for line in lines:
        name, colon, kind = line.strip().partition(" : ")
        if colon and line.startswith("    ") and not line.startswith("     "):
            current = name.split(", ")
            found |= dict.fromkeys(current, f"{kind}.")
        elif line.startswith("     "):
            found |= {name: f"{found[name]} {line.strip()}" for name in current}
    return found


def write_csv(file: Any, names: Sequence[str], columns: Sequence[NDArray[Any]]) -> None:
    """Columns as CSV."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(zip(*(column.tolist() for column in columns), strict=True))
