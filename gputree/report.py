"""Reports of the command line as text. May import everything below."""

from __future__ import annotations

import csv
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

WIDTH = 80
TOP = 10  # lines of a list that is cut
LABEL = 14  # width of the labels of a report


def cut_list(texts: Sequence[str], most: int = TOP) -> str:
    """Texts with commas, cut with a count."""
    left = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {left} more" if left > 0 else "")


def complain(message: str, kind: str = "error") -> None:
    """Print a message to stderr, wrapped."""
    width = max(40, shutil.get_terminal_size().columns)
    text = textwrap.fill(f"gputree: {kind}: {message}", width, subsequent_indent="  ", break_on_hyphens=False)
    print(text, file=sys.stderr)


def show(label: str, text: str) -> None:
    """Print a line of a report."""
    print(f"{label:<{LABEL}}{text}")


def count(n: int, noun: str) -> str:
    """``1 row``, ``2,000 rows``."""
    plural = {"class": "classes", "leaf": "leaves"}.get(noun, f"{noun}s")
    return f"{n:,} {noun if n == 1 else plural}"


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

    number = {key_of(label): i for i, label in enumerate(labels)}
    names = [str(label) for label in labels]
    codes = np.empty(values.size, np.int64)
    for i, value in enumerate(values.tolist()):
        key = key_of(value)
        if key not in number:
            number[key] = len(names)
            names.append(f"{value:g}" if isinstance(value, float) else str(value))
        codes[i] = number[key]
    return codes, names


def area_under_curve(truth: NDArray[np.int64], shares: NDArray[np.float64]) -> str:
    """Area under the ROC curve: of the second of two classes, else one against the rest, the mean over classes."""
    classes = [1] if shares.shape[1] == 2 else range(shares.shape[1])
    areas = [roc_auc_score(truth == c, shares[:, c]) for c in classes if 0 < (truth == c).sum() < truth.size]
    if not areas:
        return "not defined: the table holds one class only"
    if shares.shape[1] == 2:
        return f"{areas[0]:.4f}"
    return f"{np.mean(areas):.4f} (one against the rest, mean of {count(len(areas), 'class')})"


def confusion(truth: NDArray[np.int64], found: NDArray[np.int64], names: Sequence[str]) -> str:
    """The confusion matrix where it is narrow enough, else the worst classes and the most frequent confusions."""
    k = len(names)
    table = np.bincount(truth * k + found, minlength=k * k).reshape(k, k)
    short = [shortened(name, 16) for name in names]
    width = max(len(f"{table.max():,}"), *(len(name) for name in short)) + 2
    first = max(len("true"), *(len(name) for name in short))
    if first + width * k > WIDTH:
        return worst(table, [shortened(name, 24) for name in names])
    lines = [f"{'true':<{first}}" + "".join(f"{name:>{width}}" for name in short)]
    lines += [f"{short[i]:<{first}}" + "".join(f"{n:>{width},}" for n in table[i]) for i in range(k)]
    return "confusion (rows: true, columns: predicted)\n" + "\n".join(lines)


def shortened(text: str, width: int) -> str:
    """A text with its middle cut out: names differ at their ends as often as at their beginnings."""
    return text if len(text) <= width else f"{text[: width // 2 - 1]}...{text[2 - width // 2 :]}"


def worst(table: NDArray[np.int64], names: Sequence[str]) -> str:
    """Two lists: classes by recall, and pairs by count."""
    rows, right, called = table.sum(axis=1), np.diag(table), table.sum(axis=0)
    present = np.flatnonzero(rows)
    by_recall = present[np.argsort(right[present] / rows[present], kind="stable")][:TOP]
    lines = [f"classes of lowest recall (of {len(names)})", f"{'class':<26}{'rows':>10}{'recall':>10}{'precision':>11}"]
    for i in by_recall:
        precision = f"{right[i] / called[i]:.4f}" if called[i] else "-"
        lines.append(f"{names[i]:<26}{rows[i]:>10,}{right[i] / rows[i]:>10.4f}{precision:>11}")
    wrong = table - np.diag(right)
    pairs = [divmod(int(p), len(names)) for p in np.argsort(-wrong, axis=None, kind="stable")[:TOP]]
    pairs = [pair for pair in pairs if wrong[pair]]
    lines += ["", "most frequent confusions", f"{'true':<26}{'predicted':<26}{'rows':>10}"] if pairs else []
    return "\n".join([*lines, *(f"{names[i]:<26}{names[j]:<26}{wrong[i, j]:>10,}" for i, j in pairs)])


def regression(truth: NDArray[np.float64], found: NDArray[np.float64]) -> list[tuple[str, str]]:
    """RMSE and R2."""
    squared, spread = ((truth - found) ** 2).mean(), truth.var()
    r2 = f"{1 - squared / spread:.4f}" if spread > 0 else "not defined: the target is constant"
    return [("RMSE", f"{np.sqrt(squared):.6g}"), ("R2", r2)]


def parameter_help(learner: type) -> dict[str, str]:
    """Type and description of every parameter, from the docstring of an estimator."""
    lines = (learner.__doc__ or "").partition("Parameters\n")[2].partition("Attributes\n")[0].splitlines()
    found: dict[str, str] = {}
    current: list[str] = []
    for line in lines:
        name, colon, kind = line.strip().partition(" : ")
        if colon and line.startswith("    ") and not line.startswith("     "):
            current = [part for part in name.split(", ") if part.isidentifier()]
            found |= dict.fromkeys(current, f"{kind}.")
        elif line.startswith("     "):
            found |= {name: f"{found[name]} {line.strip()}" for name in current}
    return found


def write_csv(file: Any, names: Sequence[str], columns: Sequence[NDArray[Any]]) -> None:
    """Columns as CSV."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(zip(*(column.tolist() for column in columns), strict=True))
