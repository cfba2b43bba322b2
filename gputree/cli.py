"""The command line: ``gputree demo``, ``fit``, ``evaluate``, ``predict``, ``show``, ``fingerprint`` and ``info``.

A mistake in the input ends with code 2, a file or device that cannot be used with code 1, always with a sentence
and never with a traceback. May import everything below.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib.metadata
import inspect
import os
import platform
import sys
import textwrap
import time
import warnings
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

import gputree
from gputree.backends import report as backend_report
from gputree.core.forest import Test
from gputree.core.schema import Kind
from gputree.datasets import load_penguins, make_higgs_like
from gputree.inspect.text import export_text
from gputree.io import ESTIMATORS, load, save, whole_file
from gputree.learners.tables import Columns
from gputree.readers import InputError, column_names, is_missing, read_problem, read_table, with_target
from gputree.report import (
    LABEL,
    area_under_curve,
    class_numbers,
    complain,
    confusion,
    count,
    cut_list,
    parameter_help,
    regression,
    show,
    write_csv,
)

UNUSABLE, WRONG, STOPPED = 1, 2, 130  # exit codes
DEMO_ROWS = 1_000_000


class Parser(argparse.ArgumentParser):
    """An argument parser that suggests the option that was meant."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and where the help is; exit with code 2."""
        known = [option for action in self._actions for option in action.option_strings]
        unknown = message.removeprefix("unrecognized arguments: ")
        near = difflib.get_close_matches(unknown.split()[0].split("=")[0], known, 1) if unknown != message else []
        hint = f"; did you mean {near[0]}?" if near else f"; see `{self.prog} --help`"
        complain(message + hint)
        raise SystemExit(WRONG)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the name of the program; by default those of the process.

    Returns
    -------
    int
        0 if all went well, 2 if something in the input is wrong, 1 if a file or device cannot be used, 130 if stopped.
    """
    try:
        args, rest = make_parser().parse_known_args(argv)
        if rest:
            args.parser.error(f"unrecognized arguments: {' '.join(rest)}")
        args.run(args)
        sys.stdout.flush()
    except SystemExit as stop:
        return int(stop.code or 0)
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNUSABLE
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
        return UNUSABLE
    except (RuntimeError, ImportError, MemoryError) as error:
        complain(str(error) or "not enough memory")
        return UNUSABLE
    except (ValueError, TypeError) as error:
        complain(str(error))
        return WRONG
    except KeyboardInterrupt:
        complain("stopped")
        return STOPPED
    return 0


def make_parser() -> argparse.ArgumentParser:
    """All commands."""
    parser = Parser(prog="gputree", description="Decision trees for large tables.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"gputree {gputree.__version__}")
    parser.set_defaults(parser=parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    table = ("table", "CSV with a line of column names, or Parquet")
    model = ("model", "a file that `gputree fit` or gputree.save wrote")

    def command(run: Any, *arguments: tuple[str, str]) -> argparse.ArgumentParser:
        name, text = run.__name__.removeprefix("run_"), inspect.getdoc(run) or ""
        summary = text.split("\n")[0].rstrip(".")
        raw = argparse.RawDescriptionHelpFormatter
        own = commands.add_parser(name, help=summary, description=text, formatter_class=raw, allow_abbrev=False)
        for argument, what in arguments:
            own.add_argument(argument, help=what, metavar=argument.upper())
        own.set_defaults(run=run, parser=own)
        return own

    demo = command(run_demo)
    demo.add_argument("--rows", type=int, default=DEMO_ROWS, metavar="N", help="generated rows (default: %(default)s)")
    demo.add_argument("--verbose", action="store_true", help="print a line a level while the large tree grows")
    add_fit_options(command(run_fit, table))
    evaluate = command(run_evaluate, model, table)
    evaluate.add_argument("--target", metavar="COLUMN", help="the true values (default: the column the model lacks)")
    evaluate.add_argument("--drop-missing", action="store_true", help="leave out rows without a true value")
    predict = command(run_predict, model, table)
    predict.add_argument("--proba", action="store_true", help="write the share of every class as well")
    predict.add_argument("-o", "--output", metavar="CSV", help="where to (default: standard output)")
    shown = command(run_show, model)
    shown.add_argument("--max-depth", type=int, default=10, metavar="N", help="levels to show (default: %(default)s)")
    command(run_fingerprint, model)
    command(run_info)
    return parser


def add_fit_options(parser: argparse.ArgumentParser) -> None:
    """Options of ``fit``: its own, and every parameter of every learner."""
    parser.add_argument("--target", required=True, metavar="COLUMN", help="what to predict")
    parser.add_argument("-o", "--output", metavar="MODEL", help="where to save the model")
    parser.add_argument("--learner", metavar="NAME", help=f"one of {', '.join(ESTIMATORS)}")
    parser.add_argument("--exclude", nargs="+", default=[], metavar="COLUMN", help="columns to leave out, e.g. ids")
    parser.add_argument("--drop-missing", action="store_true", help="leave out rows without a target")
    parser.add_argument("--verbose", action="store_true", help="print a line a level to stderr")
    group = parser.add_argument_group(
        "parameters of the learner", "Lists: --monotonic-cst=-1,0,1. Dicts: --class-weight \"{'yes': 2, 'no': 1}\"."
    )
    told: set[str] = set()
    for learner in ESTIMATORS.values():
        texts = parameter_help(learner)
        for name in inspect.signature(learner).parameters:
            if name not in told | {"verbose"}:
                text = texts.get(name, "").replace("%", "%%")
                option = f"--{name.replace('_', '-')}"
                group.add_argument(option, dest=f"p_{name}", default=argparse.SUPPRESS, metavar="VALUE", help=text)
                told.add(name)


def parse_value(text: str) -> Any:
    """A parameter as it is written: none, a number, a list, a dict or a word. ``1`` and ``1.0`` are not the same."""
    if text.lower() == "none":
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text
    return list(value) if isinstance(value, tuple) else value


# fit


def run_fit(args: argparse.Namespace) -> None:
    """Grow a tree from a table and save it.

    Without --learner, the target decides: text, booleans and whole numbers with
    at most 20 distinct values are classes (DecisionTreeClassifier), other numbers
    are not (DecisionTreeRegressor). Columns of numbers are tested by thresholds,
    columns of text by one branch a category. Empty cells and NA, N/A, NaN, nan,
    NULL and null are missing.
    """
    problem = read_problem(args)
    model = make_learner(learner_name(args.learner) if args.learner else problem.learner, args)
    words = sum(array.dtype == object for array in problem.X.arrays)
    missing = sum(int(is_missing(array).sum()) for array in problem.X.arrays)
    show("table", f"{count(problem.y.size, 'row')}, {count(len(problem.X.columns), 'feature')} ({words} of text)")
    show("missing", count(missing, "cell"))
    show("target", f"{args.target}: {problem.reason}")
    show("learner", type(model).__name__)
    if (problem.y == problem.y[0]).all():
        complain(f"column {args.target!r} is {problem.y[0]} in every row, so the tree is one leaf", "warning")
    model.fit(problem.X, problem.y)
    model.feature_names_in_ = np.array(problem.X.columns, dtype=object)  # as a frame would have set it
    forest, info = model.forest_, model.fit_info_
    rate = problem.y.size / max(info.seconds, 1e-9)
    show("tree", f"{count(forest.n_nodes, 'node')}, {count(forest.n_leaves, 'leaf')}, depth {forest.max_depth}")
    show("time", f"{info.seconds:.2f} s, {rate:,.0f} rows/s ({info.backend} on {info.device})")
    show("training", "; ".join(f"{name} {text}" for name, text in scores(model, problem.X, problem.y)))
    show("fingerprint", model.fingerprint())
    if args.output:
        save(model, args.output)
        show("saved", f"{args.output} ({os.path.getsize(args.output):,} bytes)")
    else:
        complain("the model is not saved: give -o MODEL", "note")


def learner_name(name: str) -> str:
    """The class of this name, whatever the case of its letters."""
    names = {known.lower(): known for known in ESTIMATORS}
    if name.lower() not in names:
        near = difflib.get_close_matches(name.lower(), names, 1)
        hint = f"did you mean {names[near[0]]}?" if near else f"learners are {', '.join(ESTIMATORS)}"
        raise InputError(f"--learner {name} is unknown; {hint}")
    return names[name.lower()]


def make_learner(name: str, args: argparse.Namespace) -> Any:
    """An estimator with the parameters of the command line."""
    given = {key[2:]: parse_value(value) for key, value in vars(args).items() if key.startswith("p_")}
    odd = next((key for key in given if key not in inspect.signature(ESTIMATORS[name]).parameters), None)
    if odd is not None:
        raise InputError(f"--{odd.replace('_', '-')} is no parameter of {name}; leave it out")
    return ESTIMATORS[name](**given, verbose=int(args.verbose))


# What a model says about a table


def scores(model: Any, X: Any, y: NDArray[Any]) -> list[tuple[str, str]]:
    """Accuracy, or RMSE and R2."""
    found = predicted(model, X)
    if is_classifier(model):
        return [("accuracy", f"{np.mean(found == y):.4f}")]
    return regression(y.astype(np.float64), found)


def predicted(model: Any, X: Any, shares: bool = False) -> Any:
    """Predictions; our columns have no names that scikit-learn knows, and were read by name."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return model.predict_proba(X) if shares else model.predict(X)


def run_evaluate(args: argparse.Namespace) -> None:
    """Measure a model on a table with the true values."""
    model = load(args.model)
    if model.n_outputs_ > 1:
        raise InputError(f"{args.model} has {model.n_outputs_} outputs; `gputree evaluate` reads models of one")
    features = {feature.name: feature for feature in model.schema_.features}
    target = args.target or other_column(args.table, list(features))
    table = read_table(args.table, {**features, target: None})
    X, y = Columns(table.columns[:-1], table.arrays[:-1]), table.arrays[-1]
    if target in features:
        raise InputError(f"the model reads column {target!r}, so it cannot be the target; give another --target")
    X, y = with_target(X, y, target, args.drop_missing)
    show("table", f"{count(y.size, 'row')}, target {target}")
    if is_classifier(model):
        evaluate_classes(model, X, y)
        return
    if y.dtype == object:
        raise InputError(f"column {target!r} holds text such as {y[0]!r}, and the model predicts numbers")
    for name, text in regression(y, predicted(model, X)):
        show(name, text)


def evaluate_classes(model: Any, X: Columns, y: NDArray[Any]) -> None:
    """Accuracy, area under the curve, confusion."""
    truth, names = class_numbers(y, model.classes_.tolist())
    shares = predicted(model, X, shares=True)
    found = shares.argmax(axis=1)
    show("accuracy", f"{np.mean(truth == found):.4f}")
    show("AUC", area_under_curve(truth, shares))
    unknown = names[len(model.classes_) :]
    if unknown:
        complain(f"the model was never shown {count(len(unknown), 'class')}: {cut_list(unknown)}", "warning")
    print(f"\n{confusion(truth, found, names)}")


def other_column(path: str, features: list[str]) -> str:
    """The only column of a table that is no feature."""
    others = [name for name in column_names(path) if name not in features]
    if len(others) != 1:
        what = f"are {len(others)} columns ({cut_list(others)})" if others else "is no column"
        raise InputError(f"there {what} in {path} beside those that the model reads; name the target with --target")
    return others[0]


def run_predict(args: argparse.Namespace) -> None:
    """Write predictions for a table as CSV."""
    model = load(args.model)
    if args.proba and not is_classifier(model):
        raise InputError(f"--proba needs a classifier, and {args.model} is a {type(model).__name__}")
    X = read_table(args.table, {feature.name: feature for feature in model.schema_.features})
    names, columns = prediction_columns(model, X, args.proba)
    if not args.output:
        write_csv(sys.stdout, names, columns)
        return
    with whole_file(args.output) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        write_csv(text, names, columns)
        text.detach()


def prediction_columns(model: Any, X: Columns, proba: bool) -> tuple[list[str], list[NDArray[Any]]]:
    """Names and values of the columns of a file of predictions."""
    outputs = predicted(model, X).reshape(X.shape[0], -1)
    several = outputs.shape[1] > 1
    suffix = [f"_{o}" if several else "" for o in range(outputs.shape[1])]
    names, columns = [f"prediction{s}" for s in suffix], list(outputs.T)
    if proba:
        classes, shares = model.classes_, predicted(model, X, shares=True)
        for s, labels, table in zip(suffix, *([classes, shares] if several else [[classes], [shares]]), strict=True):
            names += [f"share{s}_{label}" for label in labels.tolist()]
            columns += list(table.T)
    return names, columns


def run_show(args: argparse.Namespace) -> None:
    """Print a model: what it is, its size, its rules."""
    model = load(args.model)
    forest, info, kinds = model.forest_, model.fit_info_, model.schema_.kinds
    print(model)
    show("size", f"{count(forest.n_nodes, 'node')}, {count(forest.n_leaves, 'leaf')}, depth {forest.max_depth}")
    rows = int(model.layout_.count(forest.stats.T)[0])
    words = int((kinds == Kind.CATEGORICAL).sum())
    used = np.unique(forest.feature[forest.kind != Test.LEAF]).size
    show("features", f"{kinds.size} ({words} of categories), {used} of them tested")
    if is_classifier(model) and model.n_outputs_ == 1:
        show("classes", f"{len(model.classes_)}: {cut_list([str(c) for c in model.classes_])}")
    show("fitted", f"on {count(rows, 'row')} in {info.seconds:.2f} s ({info.backend} on {info.device})")
    show("fingerprint", model.fingerprint())
    print(f"\n{export_text(model, feature_names=model.schema_.names, max_depth=args.max_depth)}", end="")


def run_fingerprint(args: argparse.Namespace) -> None:
    """Print the SHA-256 of the fitted arrays, which is equal on every device."""
    print(load(args.model).fingerprint())


def run_info(args: argparse.Namespace) -> None:
    """Print versions, backends, and why a backend cannot be used."""
    show("gputree", gputree.__version__)
    show("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} CPUs")
    for name in ("numpy", "scikit-learn", "narwhals", "polars", "pandas", "pyarrow", "numba"):
        try:
            show(name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            show(name, "not installed")
    show("device", os.environ.get("GPUTREE_DEVICE", "") or "auto (GPUTREE_DEVICE is not set)")
    for backend in backend_report():
        text = "available" if backend.available else f"not available: {backend.reason}"
        print(textwrap.fill(f"{backend.name:<{LABEL}}{backend.device}, {text}", 80, subsequent_indent=" " * LABEL))


def run_demo(args: argparse.Namespace) -> None:
    """Grow a small and a large tree, with nothing to download."""
    if args.rows < 10:
        raise InputError(f"--rows {args.rows} is too few; give 10 or more")
    table = load_penguins()
    features = tuple(name for name in table.names if name != table.target)
    held_out = np.arange(table.columns[0].size) % 3 == 2
    train, test = (Columns(features, tuple(table.column(f)[rows] for f in features)) for rows in (~held_out, held_out))
    y = table.column(table.target)
    print(f"Palmer penguins: {table.target} learnt from {count(train.shape[0], 'row')}, every third row held out\n")
    model = gputree.DecisionTreeClassifier(max_leaf_nodes=9).fit(train, y[~held_out])
    print(export_text(model, feature_names=features))
    show("held out", f"accuracy {np.mean(model.predict(test) == y[held_out]):.4f} on {count(test.shape[0], 'row')}")
    show("fingerprint", model.fingerprint())

    extra = args.rows // 4
    print(f"\n{args.rows:,} generated rows x 28 columns, depth 10")
    X, labels = make_higgs_like(args.rows + extra)
    begin = time.perf_counter()
    large = gputree.DecisionTreeClassifier(max_depth=10, verbose=int(args.verbose))
    large.fit(X[: args.rows], labels[: args.rows])
    seconds = time.perf_counter() - begin
    info = large.fit_info_
    show("tree", f"{count(large.forest_.n_nodes, 'node')}, {count(large.get_n_leaves(), 'leaf')}")
    show("time", f"{seconds:.2f} s, {args.rows / seconds:,.0f} rows/s ({info.backend} on {info.device})")
    right = large.predict(X[args.rows :]) == labels[args.rows :]
    show("held out", f"accuracy {np.mean(right):.4f} on {count(extra, 'row')}")
    show("fingerprint", large.fingerprint())


if __name__ == "__main__":
    sys.exit(main())
