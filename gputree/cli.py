"""The command line: ``gputree demo``, ``fit``, ``evaluate``, ``predict``, ``prune``, ``show``, ``rules`` and others.

A mistake in the input ends with code 2, a file or device that cannot be used with code 1, always with a sentence
and never with a traceback. May import everything below.
"""

from __future__ import annotations

import argparse
import difflib
import importlib.metadata
import inspect
import os
import platform
import re
import sys
import time
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

import gputree
from gputree.backends import report as backend_report
from gputree.backends import wanted_device
from gputree.datasets import load_penguins, make_higgs_like
from gputree.inspect.text import export_text
from gputree.io import require_place, whole_file
from gputree.learners.frames import Columns
from gputree.readers.cells import InputError
from gputree.readers.fitter import add_fit_options, run_fit
from gputree.readers.pruner import add_prune_options, run_prune
from gputree.readers.rows import add_row_options, read_rows, show_rows
from gputree.readers.tables import load_model, read_table, tree_of
from gputree.report import (
    complain,
    count,
    hush,
    predicted,
    regression,
    rule_set,
    rules,
    screen,
    show,
    show_classes,
    show_model,
    tree_size,
    warnings_told,
    write_csv,
)

UNUSABLE, WRONG, STOPPED = 1, 2, 130  # exit codes
DEMO_ROWS = 1_000_000


class Once(argparse.Action):
    """Keeps a value that may be given once: of two, neither is what was meant."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        """Keep it, or refuse the second."""
        given = vars(namespace).setdefault("given", set())
        if self.dest in given:
            raise argparse.ArgumentError(self, "this is given twice; leave one of the two out")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """An argument parser that takes no option twice, unless it gathers values, and suggests the one that was meant."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.register("action", None, Once)

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and where the help is; exit with code 2."""
        option = message.removeprefix("argument ").partition(":")[0]
        which = (self.get_default("learner_of") or {}).get(option, "")
        told = next((action.help for action in self._actions if option in action.option_strings), None) or ""
        if told.startswith("bool") and message.endswith("expected one argument"):
            self.refuse(message, f"write `{option} true`")
        self.refuse(message, f"see `{self.prog}{which} --help`")

    def refuse(self, message: str, hint: str) -> NoReturn:
        """Print what is wrong and what to do; exit with code 2."""
        complain(f"{message}; {hint}")
        raise SystemExit(WRONG)

    def refuse_unknown(self, rest: Sequence[str], argv: Sequence[str]) -> NoReturn:
        """Refuse what is left of a command line, with what may have been meant by the first of it."""
        message = f"unrecognized arguments: {' '.join(rest)}"
        options = {option: action for action in self._actions for option in action.option_strings}
        if not rest[0].startswith("-"):
            read = list(argv[: len(argv) - argv[::-1].index(rest[0])])  # to the last of these words
            place = max((i for i, text in enumerate(read) if text.startswith("-")), default=0)
            option, _, value = read[place].partition("=")
            first, *more = [*filter(None, [value]), *read[place + 1 :]]
            more = [text for text in more if text != first and not os.path.exists(text)]  # but for the table
            if more and isinstance(options.get(option), argparse._AppendAction):
                self.refuse(message, f"write `{option} {first} {option} {more[0]}`")
            self.error(message)
        option, _, value = rest[0].partition("=")
        names = [name.strip("-") for name in options if name.startswith("--") and name != "--help"]
        near = difflib.get_close_matches(option.strip("-"), names, 1)
        if near:
            self.refuse(message, f"did you mean --{near[0]}?")
        rules = (self.get_default("rule_options") or {}).get(option, [])
        if rules:
            value = value or next(iter(rest[1:]), "VALUE")
            self.refuse(message, f"write {' or '.join(f'`{rule}={value}`' for rule in rules)}")
        self.error(message)


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
        argv = joined(sys.argv[1:] if argv is None else argv)
        args, rest = make_parser(argv).parse_known_args(argv)
        if rest:
            args.parser.refuse_unknown(rest, argv)
        with warnings_told():
            args.run(args)
        sys.stdout.flush()
    except SystemExit as stop:
        return int(stop.code or 0)
    except BrokenPipeError:
        hush(sys.stdout)
        return UNUSABLE
    except OSError as error:
        complain(f"{error.filename or 'standard output'}: {error.strerror}" if error.strerror else str(error))
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


def joined(argv: Sequence[str]) -> list[str]:
    """The arguments with ``--name -1,0`` as ``--name=-1,0``, whose value argparse would take for an option."""
    found: list[str] = []
    for text in argv:
        follows = found and found[-1].startswith("--") and "=" not in found[-1] and found[-1] != "--"
        if follows and re.match(r"-[\d.]", text):
            found[-1] += f"={text}"
        else:
            found.append(text)
    return found


def make_parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """All commands; the help of `fit` is about the learner that the arguments name."""
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
    add_fit_options(command(run_fit, table), argv)
    add_row_options(command(run_evaluate, model, table))
    predict = command(run_predict, model, table)
    predict.add_argument("--proba", action="store_true", help="write the share of every class as well")
    predict.add_argument("-o", "--output", metavar="CSV", help="where to (default: standard output)")
    add_prune_options(command(run_prune, model))
    shown = command(run_show, model)
    levels = "tests below this depth are cut off; 0 shows the root's test (default: %(default)s)"
    shown.add_argument("--max-depth", type=int, default=10, metavar="N", help=levels)
    digits = "decimals of numbers (default: 2 to 10, as the smallest threshold needs)"
    shown.add_argument("--decimals", type=int, metavar="N", help=digits)
    shown.add_argument("--show-weights", action="store_true", help="print the weight of every class in a leaf")
    shown.add_argument("--all-categories", action="store_true", help="cut no list of categories, however long")
    for own in (shown, command(run_rules, model)):
        own.add_argument("--tree", type=int, metavar="N", help="of a forest, print the rules of this tree, from 0 on")
    command(run_fingerprint, model)
    command(run_info)
    return parser


def run_evaluate(args: argparse.Namespace) -> None:
    """Measure a model on a table with the true values."""
    model = load_model(args.model, args.table)
    rows = read_rows(model, args)
    show_rows(rows)
    if is_classifier(model):
        show_classes(model, rows.X, rows.y, rows.weight)
        return
    for name, text in regression(rows.y, predicted(model, rows.X), rows.weight):
        show(name, text)


def run_predict(args: argparse.Namespace) -> None:
    """Write predictions for a table as CSV; of an embedding, leaves in its trees."""
    if args.output:
        require_place(args.output, args.model, args.table)
    model = load_model(args.model, args.table)
    if args.proba and not is_classifier(model):
        raise InputError(f"--proba needs a classifier, and {args.model} holds {type(model).__name__}")
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
    if not hasattr(model, "predict"):
        leaves = model.apply(X)
        return [f"leaf_{t}" for t in range(leaves.shape[1])], list(leaves.T)
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
    """Print a model: what it is, its size, and its rules or those of a tree."""
    model = load_model(args.model)
    tree = tree_of(model, args.tree)
    if hasattr(model, "rules_"):
        text = model.rules_.to_text(screen())
    elif tree is None:
        text = f"Trees of a forest have rules: give --tree 0, or another up to --tree {len(model.estimators_) - 1}.\n"
    else:
        text = rules(tree, args)
    show_model(model)
    print(f"\n{text}", end="")


def run_rules(args: argparse.Namespace) -> None:
    """Print a tree as rules, one a leaf, which gputree.RuleSet.from_text reads."""
    model = load_model(args.model)
    print(rule_set(model, tree_of(model, args.tree)).to_text(screen()), end="")


def run_fingerprint(args: argparse.Namespace) -> None:
    """Print the SHA-256 of the fitted arrays, which is equal on every device."""
    print(load_model(args.model).fingerprint())


def run_info(args: argparse.Namespace) -> None:
    """Print versions, backends, and why a backend cannot be used."""
    show("gputree", gputree.__version__)
    show("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} CPUs")
    for name in ["numpy", "scikit-learn", "narwhals", "polars", "pandas", "pyarrow", "cupy-cuda12x", "cupy-cuda13x"]:
        try:
            show(name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            show(name, "not installed")
    device, source = wanted_device("auto")
    show("device", f"{device}{source or ' (GPUTREE_DEVICE is not set)'}")
    for backend in backend_report():
        text = f"backend {backend.name}, {'available' if backend.available else f'not available: {backend.reason}'}"
        show(backend.device, text)


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
    model = gputree.DecisionTreeClassifier(categorical_split="multiway", max_leaf_nodes=9).fit(train, y[~held_out])
    print(export_text(model, feature_names=features))
    show("held out", f"accuracy {np.mean(model.predict(test) == y[held_out]):.4f} on {count(test.shape[0], 'row')}")
    show("fingerprint", model.fingerprint())

    extra = args.rows // 4
    print(f"\n{args.rows:,} generated rows x 28 columns, depth 10")
    X, labels = make_higgs_like(args.rows + extra)
    large = gputree.DecisionTreeClassifier(max_depth=10, verbose=int(args.verbose))
    first, seconds = fit_seconds(large, X[: args.rows], labels[: args.rows])
    info = large.fit_info_
    if first != seconds:
        show("first fit", f"{first:.2f} s, with kernels that had to be compiled or loaded")
    show("tree", tree_size(large.forest_))
    show("time", f"{seconds:.2f} s, {args.rows / seconds:,.0f} rows/s ({info.backend} on {info.device})")
    right = large.predict(X[args.rows :]) == labels[args.rows :]
    show("held out", f"accuracy {np.mean(right):.4f} on {count(extra, 'row')}")
    show("fingerprint", large.fingerprint())


def fit_seconds(model: Any, *table: NDArray[Any]) -> tuple[float, float]:
    """Seconds of the first fit, and of one whose kernels are there: NumPy has none to wait for."""
    times: list[float] = []
    while not times or (len(times) == 1 and model.fit_info_.backend != "numpy"):
        begin = time.perf_counter()
        model.fit(*table)
        times.append(time.perf_counter() - begin)
    return times[0], times[-1]


if __name__ == "__main__":
    sys.exit(main())
