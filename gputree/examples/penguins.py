"""Fit a tree on a real table with strings and missing cells, and read it: ``python -m gputree.examples.penguins``."""

from __future__ import annotations

import sys

from gputree import DecisionTreeClassifier, export_text
from gputree.datasets import load_penguins


def main() -> None:
    """Learn the species, print the tree and two figures."""
    table = load_penguins()
    frame = table.to_frame("pandas")
    X, y = frame.drop(columns=table.target), frame[table.target]
    model = DecisionTreeClassifier(max_depth=3, categorical_split="multiway").fit(X[::2], y[::2])
    print(export_text(model))
    print(f"accuracy on the other half: {model.score(X[1::2], y[1::2]):.3f}")
    print(f"fingerprint: {model.fingerprint()}")


if __name__ == "__main__":
    try:
        main()
    except ImportError as error:  # pandas is not there; the message says what to install
        sys.exit(str(error))
