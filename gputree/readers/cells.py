"""What a cell of a CSV file means, the same whatever reads the file. May import everything below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gputree.core.schema import Feature

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "NULL", "null"})  # cells that hold nothing
BOOLEANS = {"True": "1", "true": "1", "TRUE": "1", "False": "0", "false": "0", "FALSE": "0"}  # as a model knows numbers

Wanted: TypeAlias = "Mapping[str, Feature | None]"  # columns to read, and what the model knows of each


class InputError(ValueError):
    """Something in a table or on the command line that its author can mend."""


def as_numbers(cells: Sequence[str]) -> NDArray[np.float64]:
    """Cells as floats, NaN where missing; ValueError where one is no number."""
    if "_" in "".join(cells):
        raise ValueError  # Python reads 2024_01 as 202401
    try:
        return np.array(list(map(float, cells)), np.float64)
    except ValueError:
        return np.array([np.nan if cell in MISSING else float(cell) for cell in cells], np.float64)


def is_number(cell: str) -> bool:
    """Whether a known cell is a number by the rule of `as_numbers`."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def is_missing(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Values that are not there: None in an array of objects, else NaN."""
    if array.dtype == object:
        return np.array([value is None for value in array.tolist()], bool)
    found: NDArray[np.bool_] = np.isnan(array)
    return found


def object_array(values: Sequence[Any]) -> NDArray[Any]:
    """An array of Python objects (n,)."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


class Spellings(dict[str, Any]):
    """What the cells of a column of text stand for, as they are met.

    None for those that hold nothing; a category for its text, for booleans true and TRUE as well, for numbers whatever
    Python reads as the same; any other text for itself, one object for all cells that are equal.
    """

    def __init__(self, categories: Sequence[Any] = ()) -> None:
        booleans = [c for c in categories if isinstance(c, bool)]
        super().__init__({str(c): c for c in categories})
        self.update({text: c for c in booleans for text in (str(c).lower(), str(c).upper())})
        self.update(dict.fromkeys(MISSING))
        self.numbers = {float(c): c for c in categories if isinstance(c, Real) and not isinstance(c, bool)}

    def __missing__(self, cell: str) -> Any:
        value = self.numbers.get(float(cell), cell) if self.numbers and is_number(cell) else cell
        self[cell] = value
        return value


def booleans_as_known(values: list[Any], feature: Feature | None) -> list[Any]:
    """Booleans as the text that the model knows of a CSV file, such as ``true``; all others as they are."""
    written = {BOOLEANS[c] == "1": c for c in feature.categories if c in BOOLEANS} if feature else {}
    return [written.get(value, value) if isinstance(value, bool) else value for value in values] if written else values
