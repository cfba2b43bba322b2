"""A small table of named columns that becomes a frame of whichever library is installed. May import narwhals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

FrameLibrary: TypeAlias = Literal["pandas", "polars", "pyarrow"]
_FRAME_LIBRARIES: tuple[FrameLibrary, ...] = get_args(FrameLibrary)

Categories: TypeAlias = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Table:
    """A small table: named columns, one of them the target.

    Parameters
    ----------
    names : tuple of str
        Column names, in the order of the source.
    columns : tuple of ndarray of shape (n_rows,)
        One array a name: float64 with NaN for a missing number, or object with None for a missing string.
    target : str
        Name of the column that a model usually predicts.
    source : str
        Who published the table, and its licence.
    categories : mapping of str to tuple of str, optional
        The values that some columns of strings may have, in order, whether they occur in this table or not.

    Raises
    ------
    ValueError
        If a column of numbers is given categories, or if a value is none of its column's categories.

    Examples
    --------
    >>> from gputree.datasets import load_penguins
    >>> table = load_penguins()
    >>> table.column("bill_length_mm")[:3]
    array([39.1, 39.5, 40.3])
    """

    names: tuple[str, ...]
    columns: tuple[NDArray[Any], ...]
    target: str
    source: str
    categories: Categories = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, values in self.categories.items():
            column = self.column(name)
            if column.dtype != object:
                raise ValueError(f"column {name!r} holds numbers, which have no categories; leave its name out")
            odd = [cell for cell in column if cell is not None and cell not in values]
            if odd:
                raise ValueError(f"column {name!r} holds {odd[0]!r}; its categories are {', '.join(values)}: add it")

    def column(self, name: str) -> NDArray[Any]:
        """Give the column called `name`.

        Parameters
        ----------
        name : str
            One of ``names``.

        Returns
        -------
        ndarray of shape (n_rows,)
            The array itself, not a copy.

        Raises
        ------
        ValueError
            If the table has no such column.
        """
        if name not in self.names:
            raise ValueError(f"no column {name!r} in this table; its columns are {', '.join(self.names)}")
        return self.columns[self.names.index(name)]

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """Give the table as a data frame.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            What to build the frame with; by default the first of these that is installed.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            Shape (n_rows, n_columns): float64 and string columns; a missing cell is the library's own missing value.
            A column with categories keeps all of them in their order: as an ordered category (pandas), an Enum
            (polars), an ordered dictionary (pyarrow).

        Raises
        ------
        ImportError
            If the library (or, by default, each of the three) is not installed.
        ValueError
            If `library` is none of the three.
        """
        found = _frame_library(library)
        import narwhals as nw

        data = {name: _cells(column) for name, column in zip(self.names, self.columns, strict=True)}
        schema: dict[str, Any] = {
            name: nw.String() if column.dtype == object else nw.Float64()
            for name, column in zip(self.names, self.columns, strict=True)
        }
        if found != "pyarrow":  # which has no Enum
            schema |= {name: nw.Enum(values) for name, values in self.categories.items()}
        frame = nw.from_dict(data, schema=schema, backend=found).to_native()
        return _with_dictionaries(frame, self.categories) if found == "pyarrow" else frame


def _cells(column: NDArray[Any]) -> list[Any]:
    """List the values with None for a missing one: polars and pyarrow keep NaN and missing apart."""
    cells = column.astype(object)
    if column.dtype != object:
        cells[np.isnan(column)] = None
    return list(cells)


def _with_dictionaries(frame: Any, categories: Categories) -> Any:
    """A pyarrow table whose columns with categories are ordered dictionaries."""
    import pyarrow as pa

    for name, values in categories.items():
        number = {value: i for i, value in enumerate(values)}
        codes = pa.array([number.get(cell) for cell in frame[name].to_pylist()], pa.int32())
        column = pa.DictionaryArray.from_arrays(codes, pa.array(values, pa.string()), ordered=True)
        frame = frame.set_column(frame.column_names.index(name), name, column)
    return frame


def _frame_library(wanted: FrameLibrary | None) -> FrameLibrary:
    if wanted is not None and wanted not in _FRAME_LIBRARIES:
        raise ValueError(f"library={wanted!r} is not supported; choose one of {', '.join(_FRAME_LIBRARIES)}")
    candidates = _FRAME_LIBRARIES if wanted is None else (wanted,)
    for name in candidates:
        if find_spec(name) is not None:
            return name
    missing = " or ".join(candidates)
    raise ImportError(f"a data frame needs {missing}, which is not installed; run `pip install {candidates[0]}`")
