"""Columns of text that a tree learns by heart: names of rows, and dates. May import everything below.

Such a column gets a test or a branch for nearly every row, which says nothing of rows that are new.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.schema import Schema
from gputree.core.warned import warn

MANY = 20  # categories that a column of text may have, however few rows there are
NEARLY = 0.9  # share of known cells that categories may have, and of categories that are dates where the column is one
LEAST = 10  # categories from which a column that names rows or holds dates is no accident
DATE = re.compile(
    r"\d{1,4}([-/._])\d{1,2}\1\d{1,4}([T ].*)?|\d{4}[-/._]\d{2}|\d{1,2}:\d{2}(:\d{2}.*)?"
    r"|\d{1,2}[- ][A-Za-z]{3,9}[- ,]+\d{2,4}([T ].*)?|[A-Za-z]{3,9}\.? \d{1,2},? \d{4}"  # 5 Jan 2024, January 5, 2024
)


class MemorisedColumnWarning(UserWarning):
    """The warning of such a column."""


def look_like_dates(texts: Collection[str]) -> bool:
    """Whether the categories of a column are dates or times.

    Examples
    --------
    >>> look_like_dates([f"2024-01-{day:02}" for day in range(1, 15)]), look_like_dates(list("abcdefghijk"))
    (True, False)
    """
    return len(texts) >= LEAST and sum(DATE.fullmatch(text) is not None for text in texts) >= NEARLY * len(texts)


def nearly_distinct(texts: Collection[str], n_known: int) -> bool:
    """Whether a column of so many known cells has nearly as many categories."""
    return len(texts) > max(MANY, n_known / 2) or len(texts) >= max(LEAST, NEARLY * n_known)


def warn_of_memorised(matrix: NDArray[Any], schema: Schema, listed: Collection[int]) -> None:
    """Warn of such columns of a fit, but for those whose categories the user has listed or asked for."""
    for i, feature in enumerate(schema.features):
        texts = [category for category in feature.categories if isinstance(category, str)]
        if feature.declared or i in listed:
            continue
        if look_like_dates(texts):
            odd, remedy = "look like dates or times", "turn them into numbers"
        elif nearly_distinct(texts, int(np.count_nonzero(~np.isnan(matrix[:, i])))):
            odd, remedy = "are nearly all distinct", "leave the column out"
        else:
            continue
        warn(
            f"column {feature.name!r} is text whose values {odd}, which a tree learns by heart; {remedy}, or name it "
            "in categorical_features if it holds categories",
            MemorisedColumnWarning,
        )
