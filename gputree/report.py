"""Reports of the command line as text. May import everything below."""

from __future__ import annotations

import argparse
import csv
import inspect
import os
import re
import shutil
import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TextIO, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import roc_auc_score

from gputree.core.checks import what_is
from gputree.core.forest import Forest, Test
from gputree.core.schema import Kind
from gputree.inspect.text import NARROWEST, Style, fitting_decimals, tree_text
from gputree.inspect.words import shortened, told_apart
from gputree.learners import MODELS
from gputree.learners.frames import Columns
from gputree.readers.cells import InputError

WIDTH = 80
TOP = 10  # lines of a list that is cut
LONGEST = 40  # characters of a name in a list
LABEL = 14  # width of the labels of a report


Weight: TypeAlias = "NDArray[np.float64] | None"  # of rows; None for ones


# Text


def cut_list(texts: Sequence[str], most: int = TOP) -> str:
    """Texts with commas, cut with a count."""
    left = len(texts) - most
    return ", ".join(told_apart(texts[:most], LONGEST)) + (f" and {left:,} more" if left > 0 else "")


def screen() -> int:
    """Columns of the terminal, or `WIDTH` where the output is none; at least 40."""
    return max(40, shutil.get_terminal_size((WIDTH, 24)).columns)


def cut_line(texts: Sequence[str], width: int) -> str:
    """As many texts with commas as fit the width, at least one, and the count of the rest."""
    if len(", ".join(texts)) <= width:
        return ", ".join(texts)
    room = width - len(f" and {len(texts):,} more")
    ends = np.cumsum([len(text) + 2 for text in texts]) - 2
    return cut_list(texts, max(1, int(np.searchsorted(ends, room, side="right"))))


def wrapped(text: str, width: int, indent: str, first: str = "") -> str:
    """Text in lines that break between words, but never inside a command in backquotes, a path or an option.

    The first begins with ``first``, the others with ``indent``.
    """
    whole = re.sub("`[^`]*`", lambda command: command[0].replace(" ", "\0"), text)
    lines = textwrap.fill(
        whole, width, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    return lines.replace("\0", " ")


def complain(message: str, kind: str = "error") -> None:
    """Print a message to stderr, wrapped."""
    say(wrapped(f"gputree: {kind}: {message}", screen(), "  "), sys.stderr)


@contextmanager
def warnings_told() -> Iterator[None]:
    """Warnings of the library are sentences to the user, without the place in its text."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_, **__: complain(str(message), "warning")
        yield


def show(label: str, text: str) -> None:
    """Print a line of a report, wrapped."""
    say(wrapped(text, screen(), " " * LABEL, f"{label:<{LABEL}}"), sys.stdout)


def say(text: str, stream: TextIO) -> None:
    """Print a text at once; where nobody reads it any more, the work that it is about goes on."""
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:
        hush(stream)


def hush(stream: TextIO) -> None:
    """Let a stream go nowhere: its reader, `head` perhaps, has seen enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def count(n: int, noun: str) -> str:
    """``1 row``, ``2,000 rows``."""
    plural = {"class": "classes", "leaf": "leaves"}.get(noun, f"{noun}s")
    return f"{n:,} {noun if n == 1 else plural}"


def tree_size(forest: Forest) -> str:
    """Nodes, leaves and depth of a tree, and how many trees there are."""
    trees = f"{count(forest.roots.size, 'tree')}, " if forest.roots.size > 1 else ""
    return f"{trees}{count(forest.n_nodes, 'node')}, {count(forest.n_leaves, 'leaf')}, depth {forest.max_depth}"


def is_number(text: str) -> bool:
    """Whether a text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def label_key(value: Any) -> Any:
    """What makes a label in a file equal to a label of the model: the number it reads as, else its text."""
    text = str(value)
    return float(text) if is_number(text) and "_" not in text else text


def class_numbers(values: NDArray[Any], labels: Sequence[Any]) -> tuple[NDArray[np.int64], list[str]]:
    """Class numbers of labels as they are in a table, and names of all classes, those unknown to the model last."""
    booleans = all(isinstance(label, bool) for label in labels)  # files write them as true, True or TRUE

    def key_of(value: Any) -> Any:
        return str(value).lower() if booleans else label_key(value)

    names = [str(label) for label in labels]
    keys = [key_of(label) for label in labels]
    times = Counter(keys)
    number = {key: i for i, key in enumerate(keys) if times[key] == 1}  # 1 and 01 are one number, two labels
    exact = {name: i for i, name in enumerate(names)}
    codes = np.empty(values.size, np.int64)
    for i, value in enumerate(values.tolist()):
        key = key_of(value)
        if str(value) in exact:
            codes[i] = exact[str(value)]
            continue
        if key not in number:
            number[key] = len(names)
            names.append(f"{value:g}" if isinstance(value, float) else str(value))
        codes[i] = number[key]
    return codes, names


def area_under_curve(truth: NDArray[np.int64], shares: NDArray[np.float64], weight: Weight = None) -> str:
    """Area under the ROC curve: of the second of two classes, else one against the rest, the mean over classes."""
    if weight is not None:
        truth, shares, weight = truth[weight > 0], shares[weight > 0], weight[weight > 0]
    classes = [1] if shares.shape[1] == 2 else range(shares.shape[1])
    present = [c for c in classes if 0 < (truth == c).sum() < truth.size]
    areas = [roc_auc_score(truth == c, shares[:, c], sample_weight=weight) for c in present]
    if not areas:
        one = np.unique(truth).size < 2
        return f"not defined: the table holds {'one class only' if one else 'no class of the model beside others'}"
    if shares.shape[1] == 2:
        return f"{areas[0]:.4f}"
    return f"{np.mean(areas):.4f} (one against the rest, mean of {count(len(areas), 'class')})"


def confusion(truth: NDArray[np.int64], found: NDArray[np.int64], names: Sequence[str]) -> str:
    """The confusion matrix where it is narrow enough, else the worst classes and the most frequent confusions."""
    k = len(names)
    table = np.bincount(truth * k + found, minlength=k * k).reshape(k, k)
    short = told_apart(names, 16)
    width = max(len(f"{table.max():,}"), *(len(name) for name in short)) + 2
    first = max(len("true"), *(len(name) for name in short))
    if first + width * k > screen():
        return worst(table, told_apart(names, min(24, (screen() - 14) // 2)))
    lines = [f"{'true':<{first}}" + "".join(f"{name:>{width}}" for name in short)]
    lines += [f"{short[i]:<{first}}" + "".join(f"{n:>{width},}" for n in table[i]) for i in range(k)]
    return "confusion (rows: true, columns: predicted)\n" + "\n".join(lines)


def worst(table: NDArray[np.int64], names: Sequence[str]) -> str:
    """Two lists: classes by recall, and pairs by count."""
    rows, right, called = table.sum(axis=1), np.diag(table), table.sum(axis=0)
    present = np.flatnonzero(rows)
    by_recall = present[np.argsort(right[present] / rows[present], kind="stable")][:TOP]
    width = max(len("predicted"), *map(len, names)) + 2
    head = f"{'class':<{width}}{'rows':>10}{'recall':>10}{'precision':>11}"
    lines = [f"classes of lowest recall (of {len(names)})", head]
    for i in by_recall:
        precision = f"{right[i] / called[i]:.4f}" if called[i] else "-"
        lines.append(f"{names[i]:<{width}}{rows[i]:>10,}{right[i] / rows[i]:>10.4f}{precision:>11}")
    wrong = table - np.diag(right)
    pairs = [divmod(int(p), len(names)) for p in np.argsort(-wrong, axis=None, kind="stable")[:TOP]]
    pairs = [pair for pair in pairs if wrong[pair]]
    lines += ["", "most frequent confusions", f"{'true':<{width}}{'predicted':<{width}}{'rows':>10}"] if pairs else []
    return "\n".join([*lines, *(f"{names[i]:<{width}}{names[j]:<{width}}{wrong[i, j]:>10,}" for i, j in pairs)])


def regression(truth: NDArray[np.float64], found: NDArray[np.float64], weight: Weight) -> list[tuple[str, str]]:
    """RMSE and R2."""
    squared = np.average((truth - found) ** 2, weights=weight)
    spread = np.average((truth - np.average(truth, weights=weight)) ** 2, weights=weight)
    r2 = f"{1 - squared / spread:.4f}" if spread > 0 else "not defined: the target is constant"
    return [("RMSE", f"{np.sqrt(squared):.6g}"), ("R2", r2)]


def predicted(model: Any, X: Columns, shares: bool = False) -> Any:
    """Predictions; our columns have no names that scikit-learn knows, and were read by name."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return model.predict_proba(X) if shares else model.predict(X)


def grown(model: Any) -> Any:
    """The tree or forest that a model is, or that its rules were made from."""
    return model.tree_ if hasattr(model, "rules_") else model


def scores(model: Any, X: Columns, y: NDArray[Any], weight: Weight) -> list[tuple[str, str]]:
    """Accuracy, or RMSE and R2."""
    found = predicted(model, X)
    if is_classifier(model):
        return [("accuracy", f"{np.average(found == y, weights=weight):.4f}")]
    return regression(y.astype(np.float64), found, weight)


def show_classes(model: Any, X: Columns, y: NDArray[Any], weight: Weight) -> None:
    """Print accuracy, area under the curve, confusion."""
    truth, names = class_numbers(y, model.classes_.tolist())
    shares = predicted(model, X, shares=True)
    found = class_numbers(predicted(model, X), model.classes_.tolist())[0]
    show("accuracy", f"{np.average(truth == found, weights=weight):.4f}")
    show("AUC", area_under_curve(truth, shares, weight))
    unknown = names[len(model.classes_) :]
    if unknown:
        complain(f"the model was never shown {count(len(unknown), 'class')}: {cut_list(unknown)}", "warning")
    print(f"\n{confusion(truth, found, names)}")
    if weight is not None:
        print("\nAccuracy and AUC are weighted; the tables count rows.")


def show_model(model: Any) -> None:
    """Print what a model is and its size."""
    trees, kinds = grown(model), model.schema_.kinds
    forest, info = trees.forest_, trees.fit_info_
    print(folded(str(model), screen()))
    one = not hasattr(model, "n_rows_")
    show("size", tree_size(forest))
    tested = [trees.schema_.names[f] for f in np.unique(forest.feature[forest.kind != Test.LEAF])]
    if hasattr(model, "rules_"):
        tested = [condition.name for rule in model.rules_ for condition in rule.conditions]
        show("rules", f"{count(len(model.rules_), 'rule')}, {count(len(tested), 'condition')}")
    rows = int(trees.layout_.count(forest.stats.T)[0]) if one else model.n_rows_
    words, used = int((kinds == Kind.CATEGORICAL).sum()), len(set(tested))
    show("features", f"{kinds.size} ({words} of categories), {used} of them tested")
    names = class_names(model)
    if names:
        n_classes = f"{len(names):,}: "
        show("classes", n_classes + cut_line(names, screen() - LABEL - len(n_classes)))
    if hasattr(model, "pruned_by_"):
        show("pruned", shortened(f"by {model.pruned_by_}", screen() - LABEL))
    show("fitted", f"on {count(rows, 'row')} in {info.seconds:.2f} s ({info.backend} on {info.device})")
    show_out_of_bag(model)
    show("fingerprint", model.fingerprint())


def show_out_of_bag(model: Any) -> None:
    """Print the score on rows that were in no bag, where the fit has measured it."""
    if hasattr(model, "oob_score_"):
        show("out of bag", f"{'accuracy' if is_classifier(model) else 'R2'} {model.oob_score_:.4f}")


def rules(model: Any, args: argparse.Namespace) -> str:
    """A tree as text that fits the screen: names without their middle, thresholds with the decimals that they need."""
    decimals = fitting_decimals(model, args.max_depth) if args.decimals is None else args.decimals
    width = None if args.all_categories else screen()
    style = Style(args.max_depth, decimals=decimals, show_weights=args.show_weights, longest=LONGEST, width=width)
    text = tree_text(model, model.schema_.names, class_names(model), style)
    return text if width is None else f"{folded(text, width)}\n"


def folded(text: str, width: int) -> str:
    """Indented lines, those that are wider wrapped below themselves, where indents leave room for words."""
    lines: list[str] = []
    for line in text.splitlines():
        bars = re.match("[| ]*", line)
        indent = (bars[0] if bars else "") + " " * 6
        lines.append(line if len(line) <= width else wrapped(line, max(width, len(indent) + NARROWEST), indent))
    return "\n".join(lines)


def rule_set(model: Any, tree: Any) -> Any:
    """The rules that a model is, or those of its tree."""
    if tree is None:
        last = len(model.estimators_) - 1
        raise InputError(f"the trees of {what_is(model)} have rules; give --tree 0, or another up to {last}")
    if hasattr(model, "rules_"):
        return model.rules_
    return tree.rules()


def class_names(model: Any) -> list[str] | None:
    """Names of the classes of a model with one output of classes."""
    if not is_classifier(model) or model.n_outputs_ > 1:
        return None
    return told_apart([str(label) for label in model.classes_.tolist()], LONGEST)


# Help


@dataclass(frozen=True)
class Parameter:
    """What a docstring and a signature say of a parameter."""

    kind: str
    default: Any
    text: str


@cache
def documented(learner: type) -> dict[str, Parameter]:
    """The parameters of an estimator; several that share a line of its docstring have a default each."""
    text = (learner.__doc__ or "").partition("Parameters\n")[2]
    lines = re.split(r"\n *(?:Attributes|Raises|Notes|References|Examples)\n", text)[0].splitlines()
    defaults = {name: given.default for name, given in inspect.signature(learner).parameters.items()}
    found: dict[str, Parameter] = {}
    current: list[str] = []
    for line in lines:
        names, colon, kind = line.strip().partition(" : ")
        if colon and line.startswith("    ") and not line.startswith("     "):
            current = [name for name in names.split(", ") if name in defaults]
            kind = re.sub(", (default=.*|optional)$|as in .*", "", kind)
            found |= {name: Parameter(kind, defaults[name], "") for name in current}
        elif line.startswith("     "):
            found |= {name: replace(found[name], text=f"{found[name].text} {line.strip()}") for name in current}
    return found | {name: Parameter("", value, "") for name, value in defaults.items() if name not in found}


def parameter_help(learners: Iterable[type]) -> dict[str, str]:
    """Help of every parameter: as the first learner that has it says, then what others allow or take by default."""
    first: dict[str, Parameter] = {}
    texts: dict[str, str] = {}
    for learner in learners:
        for name, own in explained(learner).items():
            known = first.setdefault(name, own)
            if known is own:
                texts[name] = f"{own.kind}, default={own.default!r}.{own.text}"
            elif (own.kind, own.default) != (known.kind, known.default):
                same = set(re.split("[{}, ]+", own.kind)) == set(re.split("[{}, ]+", known.kind))
                kind = "" if same else f"{own.kind}, "
                texts[name] += f" {learner.__name__}: {kind}default={own.default!r}."
    return texts


def explained(learner: type) -> dict[str, Parameter]:
    """The parameters of an estimator; what its docstring leaves to another's is told by the first that tells it."""
    found = dict(documented(learner))
    for name, own in found.items():
        others = (documented(other)[name] for other in MODELS.values() if name in documented(other))
        told = own if own.kind and own.text else next((p for p in others if p.kind and p.text), own)
        found[name] = Parameter(own.kind or told.kind, own.default, told.text)
    return found


def write_csv(file: Any, names: Sequence[str], columns: Sequence[NDArray[Any]]) -> None:
    """Columns as CSV."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(zip(*(column.tolist() for column in columns), strict=True))
