"""Rows with true values for a model that is there already. May import everything below."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor

from gputree.learners.frames import Columns
from gputree.readers.cells import InputError
from gputree.readers.problem import checked_weight, with_target
from gputree.readers.tables import column_names, other_column, read_table, require_column
from gputree.report import class_numbers, count, cut_list, grown, show


@dataclass(frozen=True)
class Rows:
    """Features, true values and weights, and the names of the columns of the last two."""

    X: Columns
    y: NDArray[Any]
    weight: NDArray[np.float64] | None
    target: str
    weight_name: str | None


def add_row_options(parser: argparse.ArgumentParser) -> None:
    """Options that say what the columns of a table are."""
    usual = "the target of `gputree fit`, else the column that the model lacks"
    parser.add_argument("--target", metavar="COLUMN", help=f"the true values (default: {usual})")
    parser.add_argument("--sample-weight", metavar="COLUMN", help="a column with the weights of the rows")
    parser.add_argument("--drop-missing", action="store_true", help="leave out rows without a true value")


def read_rows(model: Any, args: argparse.Namespace) -> Rows:
    """The rows of a table, by the names of the model's features."""
    if model.n_outputs_ > 1:
        raise InputError(
            f"{args.model} has {model.n_outputs_} outputs; `gputree {args.run.__name__[4:]}` reads models of one"
        )
    if not (is_classifier(model) or is_regressor(model)):
        raise InputError(f"{args.model} holds {type(model).__name__}, which has no target to be measured by")
    features = {feature.name: feature for feature in model.schema_.features}
    others = [args.sample_weight] if args.sample_weight else []
    target = args.target or target_of(model, args.table, [*features, *others])
    for name, use in zip([target, *others], ("target", "weights"), strict=False):
        if name in features:
            raise InputError(f"the model reads column {name!r}, so it cannot be the {use}; name another column")
    table = read_table(args.table, {**features, **dict.fromkeys([target, *others])})
    arrays = dict(zip(table.columns, table.arrays, strict=True))
    keep = with_target(arrays[target], target, args.drop_missing)
    weight = checked_weight(arrays[args.sample_weight][keep], args.sample_weight) if others else None
    X, y = Columns(tuple(features), tuple(arrays[name][keep] for name in features)), arrays[target][keep]
    if not is_classifier(model) and y.dtype == object:
        raise InputError(f"column {target!r} holds text such as {y[0]!r}, and the model predicts numbers")
    return Rows(X, y, weight, target, args.sample_weight)


def target_of(model: Any, path: str, known: Sequence[str]) -> str:
    """The column that the fit learnt, else the only one of a table that is not known."""
    names = column_names(path)
    for name in known:
        require_column(name, names, path)
    target: str | None = getattr(grown(model), "_target_name", None)
    if target is None:
        return other_column(path, names, known)
    if target not in names:
        raise InputError(f"{path} has no column {target!r}, the target of the fit; name another with --target")
    return target


def show_rows(rows: Rows) -> None:
    """Print how many rows were read, and which columns are none of the features."""
    weights = f", weights {rows.weight_name}" if rows.weight_name else ""
    show("table", f"{count(rows.y.size, 'row')}, target {rows.target}{weights}")


def known_target(model: Any, rows: Rows) -> NDArray[Any]:
    """The true values as labels of the model, or as numbers.

    Raises
    ------
    InputError
        If some are no class of the model.
    """
    if not is_classifier(model):
        return rows.y
    number, names = class_numbers(rows.y, model.classes_.tolist())
    unknown = names[len(model.classes_) :]
    if unknown:
        raise InputError(
            f"column {rows.target!r} holds {count(len(unknown), 'class')} that the model was never shown: "
            f"{cut_list(unknown)}; leave these rows out"
        )
    labels: NDArray[Any] = model.classes_[number]
    return labels
