"""Rules of stopping and of pruning as the command line writes them. May import everything below.

A rule is its name, in any case, and what is not its default: ``chi-square``, ``chi-square:alpha=0.01``,
``error-based:cf=0.1,raising=false``. No character of it means anything to a shell.
"""

from __future__ import annotations

import argparse
import operator
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields
from functools import reduce
from typing import Any

from sklearn.utils._param_validation import StrOptions

from gputree import stopping
from gputree.engine.pruning import RULES
from gputree.readers.cells import InputError
from gputree.readers.learner import LEARNERS, Parameters, dashed, option, parse_value
from gputree.report import documented, screen, wrapped

NOT_WRITTEN = ("AnyOf", "AllOf", "Validation")  # joined by the option; rows are no text
PRUNING: dict[str, Any] = {dashed(rule.__name__): rule for rule in RULES.values()}
STOPPING: dict[str, Any] = {dashed(name): rule for name, rule in stopping.RULES.items() if name not in NOT_WRITTEN}
KNOWN = {"stopping": STOPPING, "pruning": PRUNING}  # by the parameter of a learner
TOLD = {"stopping": "any of several ends growth", "pruning": "one, or none"}
WRITTEN = "NAME, or NAME:PARAMETER=VALUE,PARAMETER=VALUE."
NAME_WIDTH = 22


def find_rule(what: str, name: str, known: Mapping[str, Any]) -> Any:
    """The class of a rule by its name.

    Raises
    ------
    InputError
        If it is none of those known.
    """
    kind = known.get(dashed(name).replace("_", "-"))
    if kind is None:
        raise InputError(f"{what} {name} is unknown; rules are {', '.join(known)}")
    return kind


def written(kind: Any) -> str:
    """A rule with its parameters: their defaults, or what must be given.

    Examples
    --------
    >>> written(PRUNING["error-based"]), written(STOPPING["max-depth"]), written(STOPPING["no-gain"])
    ('error-based:cf=0.25,limit=j48,raising=true', 'max-depth:depth=NUMBER', 'no-gain')
    """
    texts = [f"{f.name.replace('_', '-')}={default_text(f)}" for f in fields(kind)]
    return f"{dashed(kind.__name__)}{':' if texts else ''}{','.join(texts)}"


def default_text(field: Field[Any]) -> str:
    """What a parameter is by default, as `parse_value` reads it."""
    if field.default is MISSING:
        return "NUMBER"
    return str(field.default).lower() if isinstance(field.default, bool | None) else str(field.default)


def read_rule(what: str, text: str, known: Mapping[str, Any]) -> Any:
    """The rule that a text stands for.

    Parameters
    ----------
    what : str
        The option, for messages.
    text : str
        ``name`` or ``name:parameter=value,...``.
    known : mapping
        Names of rules -> their classes.

    Raises
    ------
    InputError
        If there is no such rule, or it has no such parameter, or needs one.
    ValueError
        If a value is not as it must be.

    Examples
    --------
    >>> read_rule("--pruning", "error-based:cf=0.1,raising=false", PRUNING)
    ErrorBased(cf=0.1, limit='j48', raising=False)
    """
    name, _, given = text.partition(":")
    kind = find_rule(what, name, known)
    own, values = {f.name: f for f in fields(kind)}, {}
    for assigned in given.split(",") if given else []:
        key, _, value = assigned.partition("=")
        key = key.strip().replace("-", "_")
        if key not in own or not value:
            raise InputError(f"{what} {text}: {assigned!r} sets no parameter of the rule; write {written(kind)}")
        if key in values:
            raise InputError(f"{what} {text} gives {key.replace('_', '-')} twice; leave one of the two out")
        values[key] = parse_value(f"{what} {text}:", value.strip())
    lacking = [f.name for f in own.values() if f.default is MISSING and f.name not in values]
    if lacking:
        raise InputError(f"{what} {text} needs {' and '.join(lacking)}; write {written(kind)}")
    return kind(**values)


def add_rule_option(group: Any, name: str, text: str) -> None:
    """The option of a parameter that is a rule; ``text`` is what the learner says of it, or `argparse.SUPPRESS`."""
    several = name == "stopping"
    again = " May be given again." if several else ""
    text = text if text == argparse.SUPPRESS else f"{text} Rules are listed below.{again}"
    action: Any = "append" if several else None
    group.add_argument(
        f"--{name}", dest=f"r_{name}", default=argparse.SUPPRESS, metavar="RULE", help=text, action=action
    )


def rule_options(known: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """What a parameter of a rule would be as an option -> how it is written, of rules by the option that takes them."""
    found: dict[str, list[str]] = {}
    for what, rules in known.items():
        for name, kind in rules.items():
            for own in fields(kind):
                parameter = option(own.name)
                found.setdefault(parameter, []).append(f"{option(what)} {name}:{parameter.strip('-')}")
    return found


def rule_help(names: Iterable[str]) -> str:
    """The rules that some parameters take, with parameters of their own and the defaults of these."""
    parts = [f"{WRITTEN} Their parameters and defaults:"]
    for name in names:
        lines = [rule_line(kind) for kind in KNOWN[name].values()]
        parts.append("\n".join([f"--{name}, {TOLD[name]}:", *lines]))
    return "\n\n".join(parts)


def rule_line(kind: Any) -> str:
    """A rule and its parameters as the help shows them.

    Examples
    --------
    >>> print(rule_line(PRUNING["error-based"]))
      error-based           cf=0.25 limit=j48 raising=true
    """
    name, _, given = written(kind).partition(":")
    line = f"  {name:<{NAME_WIDTH}}{given.replace(',', ' ')}"
    return wrapped(line.rstrip(), screen() - 2, " " * (NAME_WIDTH + 2))


def rule_paragraph(kind: Any) -> str:
    """A rule, its parameters, and what each of them means."""
    lines = [rule_line(kind)]
    for name, own in documented(kind).items():
        text = f"    {name.replace('_', '-')}: {own.kind}.{own.text}".replace("``", "")
        lines.append(wrapped(text, screen() - 2, " " * 8))
    return "\n".join(lines)


def given_rules(args: argparse.Namespace, learner: str) -> Parameters:
    """The parameters of a learner that are rules, where the command line has them; none is None.

    Raises
    ------
    InputError, ValueError
        As of `read_rule`.
    """
    given = vars(args)
    found: dict[str, Any] = {}
    if "r_stopping" in given:
        texts = [text for text in given["r_stopping"] if text.lower() != "none"]
        rules = [read_rule("--stopping", text, STOPPING) for text in texts]
        found["stopping"] = reduce(operator.or_, rules) if rules else None
    if "r_pruning" in given:
        text = given["r_pruning"]
        plain = None if text.lower() == "none" else text
        own = plain is None or text in words_of(learner)
        found["pruning"] = plain if own else read_rule("--pruning", text, PRUNING)
    return found


def words_of(learner: str) -> set[str]:
    """Words that a learner itself takes for rules of pruning."""
    options = LEARNERS[learner]._parameter_constraints.get("pruning", [])
    return {word for given in options if isinstance(given, StrOptions) for word in given.options}
