"""The command ``fit``. May import everything below."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from sklearn.base import is_outlier_detector

from gputree.backends import choose
from gputree.inspect.words import shortened
from gputree.io import require_place
from gputree.learners.memorised import MemorisedColumnWarning
from gputree.readers.cells import InputError, is_missing
from gputree.readers.learner import (
    FAMILIES,
    LEARNERS,
    called,
    check_parameters,
    check_weights,
    family_of,
    fitting,
    given_parameters,
    has_target,
    make_learner,
    option,
    parameters_of,
)
from gputree.readers.problem import (
    Plan,
    Problem,
    check_class_weight,
    check_signs,
    make_plan,
    read_problem,
    with_split,
)
from gputree.readers.rules import KNOWN, add_rule_option, given_rules, rule_help, rule_options
from gputree.readers.tables import save_model
from gputree.report import (
    LABEL,
    LONGEST,
    complain,
    count,
    cut_line,
    grown,
    parameter_help,
    predicted,
    scores,
    screen,
    show,
    show_out_of_bag,
    tree_size,
)

USUAL = next(iter(FAMILIES))  # where no learner is named


def asked_family(argv: Sequence[str]) -> tuple[str, ...]:
    """The classes whose parameters the help of a command line is about."""
    given = [a.partition("=")[2] or b for a, b in pairwise([*argv, ""]) if a.partition("=")[0] == "--learner"]
    with suppress(InputError):  # which the command says, where it is no question of help
        return family_of(given[-1]) if given else FAMILIES[USUAL]
    return FAMILIES[USUAL]


def add_fit_options(parser: argparse.ArgumentParser, argv: Sequence[str]) -> None:
    """Options of ``fit``: its own, and every parameter of every learner; those of one are explained."""
    parser.usage = "gputree fit TABLE --target COLUMN [--learner NAME] [-o MODEL] [options]"
    parser.add_argument("--target", metavar="COLUMN", help="what to predict")
    parser.add_argument("-o", "--output", metavar="MODEL", help="where to save the model")
    known = f"one of {', '.join(FAMILIES)}, or a class such as {next(iter(LEARNERS))} (default: {USUAL})"
    parser.add_argument("--learner", metavar="NAME", default=USUAL, help=known)
    out = "a column to leave out, such as an id, or several with commas; may be given again"
    parser.add_argument("--exclude", action="append", default=[], metavar="COLUMN", help=out)
    parser.add_argument("--sample-weight", metavar="COLUMN", help="a column with the weights of the rows, no feature")
    parser.add_argument("--drop-missing", action="store_true", help="leave out rows without a target")
    parser.add_argument("--verbose", action="store_true", help="print a line a level to stderr")
    names = asked_family(argv)
    group = parser.add_argument_group(
        f"parameters of {' and '.join(names)}",
        "Those of another learner: `gputree fit --learner NAME --help`.\n"
        "Lists: --monotonic-cst=-1,0,1. Dicts: --class-weight \"{'yes': 2, 'no': 1}\".",
    )
    texts = parameter_help(LEARNERS[name] for name in names)
    learner_of: dict[str, str] = {}
    for name in dict.fromkeys([*texts, *parameter_help(LEARNERS.values())]):
        if name == "verbose":
            continue
        own = next(learner for learner in (*names, *LEARNERS) if name in parameters_of(learner))
        learner_of[option(name)] = f" --learner {called(own)}"
        text = texts[name].replace("%", "%%") if name in texts else argparse.SUPPRESS
        if name in KNOWN:
            add_rule_option(group, name, text)
        else:
            group.add_argument(option(name), dest=f"p_{name}", default=argparse.SUPPRESS, metavar="VALUE", help=text)
    parser.set_defaults(learner_of=learner_of, rule_options=rule_options(KNOWN))  # for errors of options
    shown = [name for name in KNOWN if name in texts]
    if shown:
        parser.add_argument_group("rules", rule_help(shown))


def run_fit(args: argparse.Namespace) -> None:
    """Grow a tree or a forest from a table and save it.

    The target decides between classes and numbers, where a learner has both: text,
    booleans and whole numbers with at most 20 distinct values are classes, other
    numbers are not. Columns of numbers are tested by thresholds, columns of text or
    booleans by the best subset of their categories, or where there are more than
    two classes by one branch a category (--categorical-split); id3, c45 and mdl
    have a branch for each, and id3 takes whole numbers for categories. Empty cells
    and NA, N/A, NaN, nan, NULL and null are missing. isolation-forest and
    random-trees-embedding take no --target.
    """
    if args.output:
        require_place(args.output, args.table)
    family = family_of(args.learner)
    given = {**given_parameters(args), **given_rules(args, family[0])}
    check_target(args, family[0])
    check_parameters(family, given, args.verbose)
    choose(given.get("device", "auto"), 1)
    plan = make_plan(args)
    check_signs(given.get("monotonic_cst"), plan.features)
    problem = read_problem(args.table, plan, args.drop_missing)
    learner = fitting(family, problem.classes)
    model = make_learner(learner, with_split(given, learner, problem), args.verbose)
    check_class_weight(given.get("class_weight"), problem.y, plan.target)
    show_problem(problem, plan, model)
    weights = () if problem.weight is None else (problem.weight,)
    with warnings.catch_warnings():  # the advice above says it in the words of a table
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
        warnings.simplefilter("ignore", MemorisedColumnWarning)
        model.fit(problem.X, problem.y, *weights)
    if plan.target:
        grown(model)._target_name = plan.target
    save_model(model, args.output)
    show_fit(model, problem)


def check_target(args: argparse.Namespace, learner: str) -> None:
    """A target is there where the learner has one, and nowhere else; weights only where it takes some."""
    if has_target(learner) and not args.target:
        args.parser.error("the following arguments are required: --target")
    if args.target and not has_target(learner):
        raise InputError(f"--target {args.target}: {learner} has no target; leave it out, or --exclude the column")
    check_weights(learner, args.sample_weight)


def show_problem(problem: Problem, plan: Plan, model: Any) -> None:
    """Print what was read, and warn of what is odd about it."""
    missing = sum(int(is_missing(array).sum()) for array in problem.X.arrays)
    features = f"{count(len(problem.X.columns), 'feature')} ({len(problem.words)} of categories)"
    show("table", f"{count(problem.n_rows, 'row')}, {features}")
    if problem.words:
        show("categories", cut_line(problem.words, screen() - LABEL))
    show("missing", count(missing, "cell"))
    if problem.y is not None:
        show("target", f"{plan.target}: {problem.reason}")
    if problem.weight is not None:
        show("weights", f"{plan.weight}: {problem.weight.min():g} to {problem.weight.max():g}")
    multiway = model.get_params().get("categorical_split") == "multiway"
    show("learner", f"{type(model).__name__}{', a branch a category (--categorical-split)' if multiway else ''}")
    for sentence in (*problem.advice, *constant(problem, plan.target)):
        complain(sentence, "warning")


def constant(problem: Problem, target: str | None) -> list[str]:
    """A sentence if there is nothing to learn."""
    if problem.y is None or not (problem.y == problem.y[0]).all():
        return []
    label = shortened(str(problem.y[0]), LONGEST)
    return [f"column {target!r} is {label} in every row, so the tree is one leaf"]


def show_fit(model: Any, problem: Problem) -> None:
    """Print what was grown."""
    forest, info = grown(model).forest_, grown(model).fit_info_
    rate = problem.n_rows / max(info.seconds, 1e-9)
    show("tree", tree_size(forest))
    if hasattr(model, "rules_"):
        show("rules", count(len(model.rules_), "rule"))
    show("time", f"{info.seconds:.2f} s, {rate:,.0f} rows/s ({info.backend} on {info.device})")
    if info.note:
        complain(info.note, "note")
    if problem.y is not None:
        found = scores(model, problem.X, problem.y, problem.weight)
        show("training", "; ".join(f"{name} {text}" for name, text in found))
    elif is_outlier_detector(model):
        show("training", f"{count(int((predicted(model, problem.X) < 0).sum()), 'outlier')}")
    show_out_of_bag(model)
    show("fingerprint", model.fingerprint())
