"""A split table as text of at most 80 columns. May import everything below."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gputree.inspect.words import shortened, told_apart

if TYPE_CHECKING:
    from gputree.inspect.split_records import SplitBranch, SplitRow, SplitTable

WIDTH = 80
LABEL_WIDTH = 40  # of one branch: a group of categories may have any number
BRANCH_LINES = 3  # lines of branches a feature, before the rest is counted
FEATURES = 50  # features shown, before those of a lower score are counted
CLASSES = 6  # classes whose counts are shown one by one
HEADS = ("remainder", "gain", "split info", "gain ratio")
PLAIN = {"squared_error", "poisson"}  # impurities of any size, not shares
OWN_SCORE = {"twoing", "chi2"}
IMPURITIES = {
    "gini": "Gini impurity",
    "train_error": "training error",
    "twoing": "Gini impurity",
    "chi2": "Gini impurity",
    "squared_error": "mean squared error",
    "poisson": "half Poisson deviance",
}


def table_text(table: SplitTable) -> str:
    """The table as its `str`."""
    shown = shown_rows(table)
    names = told_apart([row.feature for row in shown], name_width(table) - 1)
    heads = [f"{head:>{2 + max(len(head), 8)}}" for head in heads_of(table)]
    lines = [heading(table), "", f"  {'feature':<{name_width(table)}}{''.join(heads)}"]
    for row, name in zip(shown, names, strict=True):
        mark = "*" if row.feature == table.best else "=" if row.feature in table.tied else " "
        if not row.branches:
            lines.append(f"{mark} {name:<{name_width(table)}}  {row.test}")
            continue
        numbers = zip(heads, values_of(table, row), strict=True)
        cells = "".join(f"{number(table, value):>{len(head)}}" for head, value in numbers)
        lines.append(f"{mark} {name:<{name_width(table)}}{cells}")
        lines.extend(f"    {line}" for line in branch_lines(table, row))
    left = len(table.rows) - len(shown)
    lines += [f"  ... {left:,} more features of lower scores"] if left else []
    return "\n".join([*lines, "", *legend(table)])


def heads_of(table: SplitTable) -> tuple[str, ...]:
    """Headings of the numbers."""
    return (table.criterion, *HEADS[:3]) if table.criterion in OWN_SCORE else HEADS


def values_of(table: SplitTable, row: SplitRow) -> tuple[float, ...]:
    """The numbers under `heads_of`."""
    if table.criterion in OWN_SCORE:
        return row.score, row.remainder, row.gain, row.split_info
    return row.remainder, row.gain, row.split_info, row.gain_ratio


def name_width(table: SplitTable) -> int:
    """Columns left for names."""
    return WIDTH - 2 - sum(2 + max(len(head), 8) for head in heads_of(table))


def number(table: SplitTable, value: float) -> str:
    """A number of the table: three decimals where it is a share or bits."""
    return f"{value:.4g}" if table.criterion in PLAIN else f"{round(value, 3) + 0.0:.3f}"


def shown_rows(table: SplitTable) -> Sequence[SplitRow]:
    """The features to show: all, or those of the highest scores, in their order."""
    if len(table.rows) <= FEATURES:
        return table.rows
    key = {row.feature: (row.feature != table.best, -row.score if row.branches else math.inf) for row in table.rows}
    first = sorted(table.rows, key=lambda row: key[row.feature])[:FEATURES]
    kept = {row.feature for row in first}
    return [row for row in table.rows if row.feature in kept]


def heading(table: SplitTable) -> str:
    """How many rows of what, on one line."""
    node, impurity = table.node, IMPURITIES.get(table.criterion, "entropy")
    rows = f"{node.rows:,} row{'s' * (node.rows != 1)}"
    weight = f" of weight {table.weight_text(node.weight)}" if (node.weight, table.unit) != (node.rows, 1.0) else ""
    tail = f"; {impurity} {number(table, node.impurity)}"
    if not table.classes:
        return f"{rows}{weight}: mean {node.mean:.4g}{tail}"
    counts = [table.weight_text(count) for count in node.counts]
    full = ", ".join(f"{count} of {name}" for count, name in zip(counts, table.classes, strict=True))
    if len(f"{rows}{weight}: {full}{tail}") <= WIDTH:
        return f"{rows}{weight}: {full}{tail}"
    most = node.counts.index(max(node.counts))
    name = shortened(table.classes[most], 20)
    return shortened(f"{rows}{weight}: {counts[most]} of {name}, {len(counts) - 1:,} more classes{tail}", WIDTH)


def amounts(table: SplitTable, branch: SplitBranch) -> str:
    """What a branch holds, in few characters."""
    if len(table.classes) <= CLASSES:
        return table.amounts(branch)
    if not branch.weight:
        return "0"
    most = branch.counts.index(max(branch.counts))
    return f"{table.weight_text(branch.weight)}, most {shortened(table.classes[most], 12)}"


def branch_lines(table: SplitTable, row: SplitRow) -> Iterator[str]:
    """Branches with what they hold, on a few lines; the rest is counted."""
    labels = told_apart([b.label for b in row.branches], LABEL_WIDTH)
    items = [f"{label} [{amounts(table, b)}]" for label, b in zip(labels, row.branches, strict=True)]
    lines, room = [""], WIDTH - 4 - len(" | ... 9,999 more")
    for i, item in enumerate(items):
        wider = f"{lines[-1]} | {item}" if lines[-1] else item
        if len(wider) <= room or not lines[-1]:
            lines[-1] = wider
        elif len(lines) < BRANCH_LINES:
            lines.append(item)
        else:
            lines[-1] += f" | ... {len(items) - i:,} more"
            break
    yield from (shortened(line, WIDTH - 4) for line in lines)


def legend(table: SplitTable) -> Iterator[str]:
    """What marks and counts mean."""
    marks = ["* best"] if table.best is not None else ["no column has a test"]
    marks += ["= as good, but a later column"] if table.tied else []
    if table.classes:
        order = ":".join(told_apart(table.classes, 12))
        few = len(table.classes) <= CLASSES
        marks.append(f"branches show [{order}]" if few else "branches show [weight]")
    line = ""
    for mark in marks:
        if line and len(line) + 2 + len(mark) > WIDTH:
            yield line
            line = mark
        else:
            line = f"{line}; {mark}" if line else mark
    yield shortened(line, WIDTH)
