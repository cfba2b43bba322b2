"""JSON objects from anywhere, read field by field with the types that belong there. May import everything below."""

from __future__ import annotations

import json
import math
from collections.abc import Set
from typing import Any

from gputree.core.checks import brief
from gputree.inspect.check import expect

LONGEST = 400  # digits of a number; the length of an integer would decide on the time that it takes to read


def read_json(data: bytes) -> dict[str, Any]:
    """The object that a JSON text in UTF-8 holds, if it holds one; no name twice, no number that is none.

    Raises
    ------
    ValueError
        If it is no such text; the message says what is wrong.

    Examples
    --------
    >>> read_json(b'{"format": 2}')
    {'format': 2}
    """
    try:
        text = data.decode("utf-8")
        value = json.loads(
            text, parse_int=integer, parse_float=number, parse_constant=no_number, object_pairs_hook=distinct
        )
    except UnicodeDecodeError as error:
        raise ValueError(f"its header is no text in UTF-8 ({error})") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"its header is no JSON ({error})") from error
    except RecursionError as error:
        raise ValueError("its header is nested too deeply") from error
    record: dict[str, Any] = typed(value, dict, "its header")
    return record


def integer(text: str) -> int:
    """An integer of a length that anybody means."""
    expect(len(text) <= LONGEST, f"its header holds a number of {len(text)} digits")
    return int(text)


def number(text: str) -> float:
    """A float that is finite: others are written as objects."""
    value = float(text) if len(text) <= LONGEST else math.inf
    if not math.isfinite(value):
        raise ValueError(f"its header holds the number {brief(text)}, which is no float64")
    return value


def no_number(text: str) -> None:
    """JSON has no NaN and no Infinity."""
    raise ValueError(f"its header holds {text}, which is no JSON")


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, if no name comes twice: readers differ on which of them counts."""
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError(f"its header has two fields of one name, among {brief(list(record))}")
    return record


def typed(value: Any, kind: type[Any], what: str) -> Any:
    """The value, if it is of exactly this type.

    Raises
    ------
    ValueError
        If it is of another.

    Examples
    --------
    >>> typed(True, int, "the number")
    Traceback (most recent call last):
    ...
    ValueError: the number is True, which is no int
    """
    if type(value) is not kind:  # the message takes longer than the test
        raise ValueError(f"{what} is {brief(value)}, which is no {kind.__name__}")
    return value


def part(record: Any, name: str, kind: type[Any]) -> Any:
    """A field of an object, if it is there and of exactly this type.

    Raises
    ------
    ValueError
        If it is not.
    """
    expect(type(record) is dict and name in record, f"its header has no {name!r} where one belongs")
    return typed(record[name], kind, repr(name))


def each(values: list[Any], kind: type[Any], what: str) -> list[Any]:
    """The items of a list, if all of them are of exactly this type."""
    return [typed(value, kind, f"an item of {what!r}") for value in values]


def only(record: dict[str, Any], names: Set[str], what: str) -> None:
    """Refuse fields that nobody reads, and the absence of those that somebody does."""
    more, fewer = sorted(set(record) - names), sorted(names - set(record))
    found = [f"{word} {', '.join(map(brief, some))}" for word, some in (("unknown", more), ("missing", fewer)) if some]
    expect(not found, f"the fields of {what} are not those of this format: {'; '.join(found)}")
