"""The command ``prune``, and rules of pruning as it reads them. May import everything below."""

from __future__ import annotations

import argparse
from dataclasses import fields

from gputree.engine.pruning import Needs, Rule
from gputree.inspect.words import shortened
from gputree.io import require_place
from gputree.pruning import prune
from gputree.readers.cells import InputError
from gputree.readers.learner import dashed, given_parameters, option
from gputree.readers.rows import add_row_options, known_target, read_rows, show_rows
from gputree.readers.rules import PRUNING, find_rule
from gputree.readers.tables import load_model, save_model
from gputree.report import LABEL, WIDTH, documented, scores, show, tree_size


def add_prune_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``prune``: its own, and every parameter of every rule."""
    parser.add_argument("--rule", required=True, metavar="NAME", help=f"one of {', '.join(PRUNING)}")
    parser.add_argument("--table", metavar="TABLE", help="the rows that the rule needs, CSV or Parquet")
    add_row_options(parser)
    parser.add_argument("-o", "--output", metavar="MODEL", help="where to save the model")
    group = parser.add_argument_group("parameters of the rule")
    found: dict[str, list[str]] = {}
    for name, rule in PRUNING.items():
        for parameter, known in documented(rule).items():
            default = "" if isinstance(known.default, type) else f", default={known.default!r}"
            found.setdefault(parameter, []).append(f"{name}: {known.kind}{default}.{known.text}")
    for parameter, texts in found.items():
        text = " ".join(texts).replace("%", "%%").replace("``", "")
        group.add_argument(
            option(parameter), dest=f"p_{parameter}", default=argparse.SUPPRESS, metavar="VALUE", help=text
        )


def given_rule(args: argparse.Namespace) -> Rule:
    """The rule that the command line names, with its parameters, and with rows if it needs some."""
    kind, given = find_rule("--rule", args.rule, PRUNING), given_parameters(args)
    name, known = dashed(kind.__name__), [f.name for f in fields(kind)]
    odd = next((key for key in given if key not in known), None)
    if odd is not None:
        own = ", ".join(map(option, known)) or "no parameters"
        raise InputError(f"{option(odd)} is no parameter of the rule {name}, which has {own}; leave it out")
    if name == "cost-complexity" and "alpha" not in given:
        raise InputError("--rule cost-complexity needs --alpha, a number of at least 0")
    rule: Rule = kind(**given)
    if rule.needs is not Needs.NO_ROWS and not args.table:
        raise InputError(f"--rule {name} needs {rule.needs.value}; give them with --table")
    return rule


def run_prune(args: argparse.Namespace) -> None:
    """Prune a model by a rule, and save what is left.

    Some rules need the rows of the fit (risk-bound, description-length,
    error-based with raising), some need rows that the fit has not seen
    (reduced-error, validation-set), and the others none: --table. By any table,
    the model is measured before and after.
    """
    rule = given_rule(args)
    if args.output:
        require_place(args.output, args.model, *([args.table] if args.table else []))
    model = load_model(args.model, args.table)
    rows = read_rows(model, args) if args.table else None
    y = known_target(model, rows) if rows else None
    if rows is None or rule.needs is Needs.NO_ROWS:
        pruned = prune(model, rule)
    else:
        pruned = prune(model, rule, rows.X, y, rows.weight)
    show("rule", shortened(repr(rule), WIDTH - LABEL))
    if rows:
        show_rows(rows)
    for label, some in (("before", model), ("after", pruned)):
        found = scores(some, rows.X, y, rows.weight) if rows and y is not None else []
        show(label, "; ".join([tree_size(some.forest_), *(f"{name} {text}" for name, text in found)]))
    show("fingerprint", pruned.fingerprint())
    save_model(pruned, args.output)
