"""The text of rules, read: see `Parser` for the grammar. May import core only."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from gputree.core.conditions import Condition, Interval, Subset
from gputree.core.rule_words import KEYWORDS, VALUE_ENDS, WORD, value_of, word
from gputree.core.rules import Rule
from gputree.core.schema import Feature, Kind

TOKEN = re.compile(rf'\s+|(?P<text>"(?:\\.|[^"\\\n])*")|(?P<sign><=|[(){{}}\[\],<>=])|(?P<word>{WORD.pattern})')
SHOWN = 30  # characters of a text in a message


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text: kind "text" (quoted), "sign", "word" or "end", and where it begins."""

    kind: str
    text: str
    place: int

    def shown(self) -> str:
        """The token as a message names it."""
        cut = self.text if len(self.text) <= SHOWN else self.text[:SHOWN] + "..."
        return "the end of the text" if self.kind == "end" else cut if self.kind == "text" else repr(cut)


@dataclass(slots=True)
class Parsed:
    """What a text says: ``target`` is the type and the labels of classes, None for numbers or if it says nothing."""

    columns: dict[str, Feature] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    default: Rule | None = None
    target: tuple[str, tuple[Any, ...]] | None = None
    numbers: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    conflict: str = "first"


def known_number(condition: Subset) -> Interval:
    """A condition that asks whether a value is known, on a column of numbers."""
    return Interval(condition.name) if condition.others else Interval(condition.name, math.inf, missing=True)


class Parser:
    """Reads a text from left to right.

    | text       = statement ...
    | statement  = "column" name [ "in" set ]                              a column of numbers, or of these categories
    |            | "class" dtype "in" set [ facts ] | "number" [ facts ]   what rules predict, and the training rows
    |            | "conflict" ( "first" | "vote" )
    |            | "if" conditions "then" value [ facts ]
    |            | "else" value [ facts ]
    | conditions = condition { "and" condition } | "()"
    | condition  = "(" test [ "or" "missing" ] ")" | "(" name "is" ( "missing" | "known" ) ")"
    | test       = name "<=" n | name ">" n | n "<" name "<=" n | name "=" value | name [ "not" ] "in" set
    | set        = "{" [ value { "," value } ] "}"
    | facts      = "[" fact { "," fact } "]"
    | fact       = ( "weight" | "confidence" | "shares" ) n ...

    Columns that no statement declares are those of the conditions, with the categories that these name.
    """

    def __init__(self, text: str) -> None:
        self.text, self.found = text, Parsed()
        self.declared = False
        self.open: set[str] = set()  # columns of which it is only asked so far whether a value is known
        self.tokens = self.scan()
        self.token = next(self.tokens)

    def scan(self) -> Iterator[Token]:
        """All tokens, the last of which is the end."""
        place = 0
        while place < len(self.text):
            match = TOKEN.match(self.text, place)
            if match is None:
                self.fail(Token("text", self.text[place:].split("\n")[0], place), "a text in quotes that ends")
            if match.lastgroup:
                yield Token(match.lastgroup, match[0], place)
            place = match.end()
        yield Token("end", "", place)

    def fail(self, token: Token, wanted: str) -> NoReturn:
        """Say what stands where, and what is wanted."""
        line = self.text.count("\n", 0, token.place) + 1
        column = token.place - self.text.rfind("\n", 0, token.place)
        raise ValueError(f"line {line}, column {column}: {token.shown()} stands where the text of rules needs {wanted}")

    def step(self) -> Token:
        """Give the token that is up; the next one comes up."""
        token = self.token
        if token.kind != "end":
            self.token = next(self.tokens)
        return token

    def at(self, *texts: str) -> bool:
        """Whether one of these signs or keywords comes next."""
        return self.token.kind in ("sign", "word") and self.token.text in texts

    def take(self, *texts: str) -> str:
        """One of these signs or keywords."""
        if not self.at(*texts):
            self.fail(self.token, " or ".join(map(repr, texts)))
        return self.step().text

    def value(self, wanted: str = "a value", ends: frozenset[str] = VALUE_ENDS) -> Any:
        """A label, category, number or name: a quoted text, or words up to one of these."""
        if self.token.kind == "text":
            token = self.step()
            try:
                return json.loads(token.text)
            except ValueError:
                self.fail(token, "a text in quotes with the escapes of JSON")
        words = []
        while self.token.kind == "word" and self.token.text not in ends:
            words.append(self.step().text)
        if not words:
            hint = f", or {word(self.token.text)} in quotes" if self.token.text in ends else ""
            self.fail(self.token, wanted + hint)
        return value_of(" ".join(words))

    def name(self) -> str:
        """The name of a column."""
        token = self.token
        name = self.value("the name of a column", KEYWORDS)
        if not isinstance(name, str):
            self.fail(token, f'the name of a column; a name like this one is quoted: "{name}"')
        return name

    def number(self) -> float:
        """A number."""
        token = self.token
        number = self.value("a number")
        if type(number) not in (int, float) or number != number:
            self.fail(token, "a number")
        return float(number)

    def values(self) -> tuple[Any, ...]:
        """Values in curly brackets."""
        found: list[Any] = []
        self.take("{")
        while not self.at("}"):
            if found:
                self.take(",")
            token = self.token
            found.append(self.value())
            if found[-1] in found[:-1]:
                self.fail(token, "a value that was not listed before")
        self.take("}")
        return tuple(found)

    def parse(self) -> Parsed:
        """All statements."""
        readers = {
            "column": self.column,
            "class": self.classes,
            "number": self.numbers,
            "conflict": self.conflict,
            "if": self.rule,
            "else": self.default,
        }
        while self.token.kind != "end":
            readers[self.take(*readers)]()
        self.found.rules = [replace(r, conditions=tuple(map(self.settled, r.conditions))) for r in self.found.rules]
        return self.found

    def settled(self, condition: Condition) -> Condition:
        """The condition in the kind of its column, which may have come up later."""
        numeric = self.found.columns[condition.name].kind == Kind.NUMERIC
        return known_number(condition) if numeric and isinstance(condition, Subset) else condition

    def column(self) -> None:
        """A declared column."""
        token, name = self.token, self.name()
        if name in self.found.columns or self.found.rules:
            self.fail(token, "a column that was not named before; columns are declared once, before the rules")
        self.declared = True
        if self.at("in"):
            self.step()
            self.found.columns[name] = Feature(name, Kind.CATEGORICAL, self.values())
        else:
            self.found.columns[name] = Feature(name)

    def classes(self) -> None:
        """The type of labels, and the labels."""
        token = self.token
        dtype = self.value('the NumPy type of the labels, such as "<U3"', KEYWORDS)
        if not isinstance(dtype, str):
            self.fail(token, 'the NumPy type of the labels, such as "<U3"')
        self.take("in")
        self.found.target = dtype, self.values()
        self.found.facts = self.facts("weight", "shares")

    def numbers(self) -> None:
        """Rules predict numbers."""
        self.found.numbers = True
        self.found.facts = self.facts("weight")

    def conflict(self) -> None:
        """What decides where several rules hold."""
        self.found.conflict = self.take("first", "vote")

    def rule(self) -> None:
        """A rule."""
        conditions = self.conditions()
        self.take("then")
        self.found.rules.append(Rule(conditions, *self.outcome()))

    def default(self) -> None:
        """What holds where no rule does."""
        if self.found.default is not None:
            self.fail(self.token, "the end of the text: it has an 'else' already")
        self.found.default = Rule((), *self.outcome())

    def outcome(self) -> tuple[Any, float | None, float | None, tuple[float, ...]]:
        """A label or number, and what is known of it."""
        token = self.token
        value = self.value("a label or number")
        target = self.found.target
        if target is not None and value not in target[1]:
            self.fail(token, f"one of the classes: {', '.join(map(repr, target[1]))}")
        if self.found.numbers and type(value) not in (int, float):
            self.fail(token, "a number")
        facts = self.facts("weight", "confidence", "shares")
        return value, facts.get("weight"), facts.get("confidence"), facts.get("shares", ())

    def facts(self, *names: str) -> dict[str, Any]:
        """Numbers by name, if there are any."""
        found: dict[str, Any] = {}
        if not self.at("["):
            return found
        self.step()
        while not found or self.at(","):
            if found:
                self.step()
            name = self.take(*(name for name in names if name not in found))
            found[name] = self.shares() if name == "shares" else self.number()
        self.take("]")
        return found

    def shares(self) -> tuple[float, ...]:
        """Numbers side by side."""
        numbers: list[float] = []
        while self.token.kind == "word":
            token = self.step()
            number = value_of(token.text)
            if type(number) not in (int, float):
                self.fail(token, "a number")
            numbers.append(float(number))
        if not numbers:
            self.fail(self.token, "a number")
        return tuple(numbers)

    def conditions(self) -> tuple[Condition, ...]:
        """Conditions in brackets with "and" between them; empty brackets for none."""
        found: dict[str, Condition] = {}
        while not found or self.at("and"):
            if found:
                self.step()
            self.take("(")
            if not found and self.at(")"):
                self.step()
                return ()
            token, condition = self.token, self.condition()
            if condition.name in found:
                self.fail(token, f"another column: {condition.name!r} has a condition; join the two, as in 1<x<=2")
            found[condition.name] = condition
            self.take(")")
        return tuple(found.values())

    def condition(self) -> Condition:
        """One condition."""
        token = self.token
        start = self.value("the name of a column, or a number", KEYWORDS)
        if self.at("<"):
            self.step()
            if type(start) not in (int, float):
                self.fail(token, "a number before '<'; write x<=3 for an upper bound, which it includes")
            name = self.name()
            self.take("<=")
            return self.interval(token, Interval(name, float(start), self.number()))
        if not isinstance(start, str):
            self.fail(token, f'the name of a column; a name like this one is quoted: "{start}"')
        sign = self.take("<=", ">", "=", "in", "not", "is")
        if sign == "is":
            return self.state(start)
        if sign in ("<=", ">"):
            bound = self.number()
            own = Interval(start, high=bound) if sign == "<=" else Interval(start, low=bound)
            return self.interval(token, own)
        if sign == "not":
            self.take("in")
        return self.subset(start, sign)

    def interval(self, token: Token, found: Interval) -> Condition:
        """A condition on a column of numbers."""
        self.of_kind(token, found.name, Kind.NUMERIC)
        return Interval(found.name, found.low, found.high, self.or_missing())

    def subset(self, name: str, sign: str) -> Condition:
        """A condition on a column of categories."""
        token = self.token
        values = (self.value(),) if sign == "=" else self.values()
        feature = self.of_kind(token, name, Kind.CATEGORICAL)
        strange = [value for value in values if value not in feature.categories]
        if strange and self.declared:
            known = ", ".join(map(repr, feature.categories))
            self.fail(token, f"categories of column {name!r}, of which {strange[0]!r} is none: {known}")
        self.found.columns[name] = Feature(name, Kind.CATEGORICAL, (*feature.categories, *strange))
        return Subset(name, values, sign == "not", self.or_missing())

    def state(self, name: str) -> Condition:
        """Whether a value is known."""
        token = self.token
        known = self.take("known", "missing") == "known"
        if name not in self.found.columns:
            self.of_kind(token, name, Kind.CATEGORICAL)
            self.open.add(name)
        return Subset(name, (), known, not known)

    def or_missing(self) -> bool:
        """Whether missing values meet the condition as well."""
        if not self.at("or"):
            return False
        self.step()
        self.take("missing")
        return True

    def of_kind(self, token: Token, name: str, kind: Kind) -> Feature:
        """The column of this name, if it is of this kind."""
        feature = self.found.columns.get(name)
        if feature is None:
            if self.declared:
                self.fail(token, f"a declared column, and {name!r} is none: {', '.join(map(repr, self.found.columns))}")
            feature = Feature(name, kind)
        if name in self.open:
            self.open.remove(name)
            feature = Feature(name, kind)
        self.found.columns[name] = feature
        if feature.kind != kind:
            fits = "'<=' or '>'" if feature.kind == Kind.NUMERIC else "'=' or 'in'"
            self.fail(
                token, f"a condition with {fits}, because column {name!r} holds {feature.kind.name.lower()} values"
            )
        return feature
