"""What parameters of rules may be: one check for each kind of value. May import NumPy only.

Each raises ValueError, with the name, the value and what is allowed. True and False are no numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from reprlib import repr as shortened
from typing import Any

import numpy as np

LEAST_CASES, MOST_CASES = 2.0**-800, 2.0**100  # what formulas of cases take powers of and divide by
UNREADABLE = ("float() argument", "could not convert", "setting an array element", "Input should have at least 1 dim")


def bare(value: Any) -> Any:
    """A NumPy number, boolean or text as one of Python; other values as they are.

    Examples
    --------
    >>> bare(np.int64(3)), bare("a")
    (3, 'a')
    """
    return value.item() if isinstance(value, np.bool_ | np.number | np.str_) else value


def brief(value: Any) -> str:
    """A value for a message: on one line, and short.

    Examples
    --------
    >>> brief(list(range(1000)))
    '[0, 1, 2, 3, 4, 5, ...]'
    """
    return " ".join(shortened(value).split())


def shown(value: Any) -> str:
    """A value of a wrong kind for a message, and its class: several rules have one name.

    Examples
    --------
    >>> shown(3), shown(int)
    ('3 of type int', "<class 'int'>")
    """
    kind = type(value)
    place = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return brief(value) if isinstance(value, type) else f"{brief(value)} of type {place}{kind.__qualname__}"


def row_number(row: int) -> str:
    """A row of a table for a message: in memory and in files, rows are counted in one way.

    Examples
    --------
    >>> row_number(3)
    'row 3 (counted from 0)'
    """
    return f"row {row} (counted from 0)"


def with_article(name: str) -> str:
    """The name of a class with its article, by the sound of it: capitals and "nd" at its beginning are spelt.

    Examples
    --------
    >>> [with_article(name) for name in ("IsolationForest", "C45Rules", "ID3Classifier", "MDLTreeClassifier", "str")]
    ['an IsolationForest', 'a C45Rules', 'an ID3Classifier', 'an MDLTreeClassifier', 'a str']
    >>> with_article("ndarray"), with_article("OneHotEncoder")
    ('an ndarray', 'a OneHotEncoder')
    """
    vowels = "AEFHILMNORSX" if name[:2].isupper() else "AEIOaeio"
    an = name.startswith("nd") or (name[:1] in tuple(vowels) and not name.startswith(("One", "one")))
    return f"{'an' if an else 'a'} {name}"


def what_is(value: Any) -> str:
    """What a value of a wrong kind is, for a message.

    Examples
    --------
    >>> what_is([]), what_is(int)
    ('a list', 'the class int')
    """
    return f"the class {value.__name__}" if isinstance(value, type) else with_article(type(value).__name__)


def lasting(value: Any) -> str:
    """The text of a value, the same in every process: without addresses.

    Examples
    --------
    >>> lasting([lambda: 0, 1])
    '[<function <lambda>>, 1]'
    """
    return re.sub(" at 0x[0-9a-fA-F]+", "", repr(value))


def is_number(value: Any, kind: type = Real) -> bool:
    """Whether a value is a number of a kind, and no truth value, which Python takes for one.

    Examples
    --------
    >>> is_number(1), is_number(True), is_number(1.5, Integral), is_number("1")
    (True, False, False, False)
    """
    return isinstance(value, kind) and not isinstance(value, bool)


def whole(name: str, value: Any, least: int, hint: str = "") -> None:
    """Refuse what is no whole number of at least some size."""
    if not is_number(value, Integral) or value < least:
        raise ValueError(f"{name}={brief(value)} must be a whole number of at least {least}{hint}")


def open_unit(name: str, value: Any, hint: str = "") -> None:
    """Refuse what is no number between 0 and 1."""
    if not is_number(value) or not 0.0 < value < 1.0:
        raise ValueError(f"{name}={brief(value)} must be a number above 0 and below 1{hint}")


def at_least_nothing(name: str, value: Any, hint: str = "") -> None:
    """Refuse what is no finite number of 0 or more."""
    if not is_number(value) or not 0.0 <= value < math.inf:
        raise ValueError(f"{name}={brief(value)} must be a number of at least 0{hint}")


def positive(name: str, value: Any) -> None:
    """Refuse what is no finite number above 0."""
    if not is_number(value) or not 0.0 < value < math.inf:
        raise ValueError(f"{name}={brief(value)} must be a positive number")


def one_of(name: str, value: Any, known: Collection[str], hint: str = "") -> None:
    """Refuse a value that is none of those known."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name}={brief(value)} must be one of {', '.join(map(repr, known))}{hint}")


def yes_or_no(name: str, value: Any) -> None:
    """Refuse what is no truth value."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={brief(value)} must be True or False")


def countable(who: str, cases: float) -> None:
    """Refuse weights that add up to a number of cases which formulas cannot hold."""
    if not LEAST_CASES <= cases <= MOST_CASES:
        raise ValueError(
            f"the weights add up to {cases}, and {who} counts cases by them; multiply sample_weight so that a case "
            "weighs about 1"
        )


@contextmanager
def readable(name: str, wanted: str) -> Iterator[None]:
    """Say which argument it is where NumPy finds something that it cannot turn into an array of numbers or labels."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if not str(error).startswith(UNREADABLE):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name} cannot be read ({error}); give {wanted}") from error
