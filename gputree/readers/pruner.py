"""The command ``prune``. May import everything below."""

from __future__ import annotations

import argparse

from gputree.engine.pruning import Needs, Rule
from gputree.inspect.words import shortened
from gputree.io import require_place
from gputree.pruning import prune
from gputree.readers.cells import InputError
from gputree.readers.learner import dashed
from gputree.readers.rows import add_row_options, known_target, read_rows, show_rows
from gputree.readers.rules import PRUNING, WRITTEN, read_rule, rule_options, rule_paragraph
from gputree.readers.tables import load_model, save_model
from gputree.report import LABEL, scores, screen, show, tree_size


def add_prune_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``prune``."""
    parser.usage = "gputree prune MODEL --rule RULE [--table TABLE] [-o MODEL] [options]"
    parser.add_argument("--rule", metavar="RULE", help=f"{WRITTEN} Rules are listed below.")
    parser.add_argument("--table", metavar="TABLE", help="the rows that the rule needs, CSV or Parquet")
    add_row_options(parser)
    parser.add_argument("-o", "--output", metavar="MODEL", help="where to save the model")
    parser.set_defaults(rule_options=rule_options({"rule": PRUNING}))
    parser.add_argument_group("rules", "\n\n".join(map(rule_paragraph, PRUNING.values())))


def given_rule(args: argparse.Namespace) -> Rule:
    """The rule that the command line names; refused where it needs rows and there are none."""
    if not args.rule:
        args.parser.error("the following arguments are required: --rule")
    rule: Rule = read_rule("--rule", args.rule, PRUNING)
    if rule.needs is not Needs.NO_ROWS and not args.table:
        raise InputError(f"--rule {dashed(type(rule).__name__)} needs {rule.needs.value}; give them with --table")
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
    save_model(pruned, args.output)
    show("rule", shortened(repr(rule), screen() - LABEL))
    if rows:
        show_rows(rows)
    for label, some in (("before", model), ("after", pruned)):
        found = scores(some, rows.X, y, rows.weight) if rows and y is not None else []
        show(label, "; ".join([tree_size(some.forest_), *(f"{name} {text}" for name, text in found)]))
    show("fingerprint", pruned.fingerprint())
