"""Rules as text that `gputree.core.rule_parser` reads again. May import core only.

The text is made of words, quoted texts and signs; blanks and line feeds between them do not matter. A text without
quotes is one or more words; whatever could be read otherwise is quoted as JSON quotes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from gputree.core.checks import what_is
from gputree.core.conditions import Condition, Interval

# What may follow a value, or a name.
VALUE_ENDS = frozenset(["if", "and", "then", "else", "or", "column", "class", "number", "conflict"])
KEYWORDS = VALUE_ENDS | {"in", "not", "is", "missing", "known"}
WORD = re.compile(r'[^\s"(){}\[\],<>=]+')
ATOM = re.compile(r'(?:"(?:\\.|[^"\\])*"|\S)+')  # where a line must not be broken
TRUTH = {"True": True, "False": False}


def value_of(text: str) -> Any:
    """The number or truth value that a text without quotes stands for, else the text itself."""
    if text in TRUTH:
        return TRUTH[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def literal(value: Any) -> str:
    """A label, category or number as text; numbers by `repr`.

    Raises
    ------
    TypeError
        If it is none of these.

    Examples
    --------
    >>> print(literal("stay in"), literal("x <= 3"), literal(0.1), literal("0.1"), literal("this or that"))
    stay in "x <= 3" 0.1 "0.1" "this or that"
    """
    if isinstance(value, np.bool_ | np.integer | np.floating) and not isinstance(value, np.longdouble):
        value = value.item()
    if isinstance(value, str):
        return word(str(value), VALUE_ENDS)
    if type(value) not in (bool, int, float):
        raise TypeError(
            f"{value!r} is {what_is(value)}, and the text of rules holds str, bool, int and float; "
            "turn such labels or categories into text before the fit"
        )
    return repr(value)


def word(text: str, keywords: frozenset[str] = KEYWORDS) -> str:
    """A text as it is, or in quotes where it could be read otherwise."""
    parts = text.split(" ")
    plain = all(WORD.fullmatch(part) and part not in keywords for part in parts) and text.isprintable()
    if plain and isinstance(value_of(text), str):
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())


def conditions_text(conditions: Sequence[Condition]) -> str:
    """Conditions in brackets, with "and" between them; ``()`` for none."""
    return " and ".join(f"({condition_text(c)})" for c in conditions) or "()"


def condition_text(condition: Condition) -> str:
    """One condition.

    Examples
    --------
    >>> from gputree.core.conditions import Interval, Subset
    >>> print(condition_text(Interval("age", 1.5, 30.0)), condition_text(Subset("sky", ("red", "grey"), others=True)))
    1.5<age<=30.0 sky not in {red, grey}
    """
    name = word(condition.name)
    if condition.known is not None:
        return f"{name} is {'known' if condition.known else 'missing'}"
    text = interval_text(name, condition) if isinstance(condition, Interval) else ""
    if not isinstance(condition, Interval):
        values = [literal(value) for value in condition.values]
        single = len(values) == 1 and not condition.others
        sign = "not in" if condition.others else "in"
        text = f"{name}={values[0]}" if single else f"{name} {sign} {{{', '.join(values)}}}"
    return text + (" or missing" if condition.missing else "")


def interval_text(name: str, interval: Interval) -> str:
    """``low<name<=high``, or one side of it."""
    low, high = interval.low, interval.high
    if high is None:
        return f"{name}>{literal(low)}"
    return f"{'' if low is None else f'{literal(low)}<'}{name}<={literal(high)}"


def facts_text(facts: Iterable[tuple[str, Any]]) -> str:
    """Numbers by name in square brackets, those that are not known left out; empty if all are."""
    found = [f"{name} {' '.join(map(literal, np.atleast_1d(n).tolist()))}" for name, n in facts if n not in (None, ())]
    return f" [{', '.join(found)}]" if found else ""


def wrapped(text: str, width: int) -> Iterator[str]:
    """A line in lines of at most that width, where blanks allow it; later lines are indented."""
    line = ""
    for atom in ATOM.findall(text):
        if line.strip() and len(line) + 1 + len(atom) > width:
            yield line
            line = "   "
        line = f"{line} {atom}" if line else atom
    yield line
