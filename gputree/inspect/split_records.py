"""What a split table holds: a record a feature, and their numbers as text and frame. May import everything below."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np

from gputree.inspect.split_text import table_text
from gputree.inspect.split_work import work_text
from gputree.inspect.words import cut_words
from gputree.table import FrameLibrary, Table

_NAN = float("nan")


@dataclass(frozen=True, slots=True)
class SplitBranch:
    """A branch of a test, or the node itself.

    Attributes
    ----------
    label : str
        The values that take it: ``sunny``, ``{hot, mild}``, ``<= 75``, ``missing``.
    rows : int
        Number of rows of positive weight.
    weight : int
        Their weight in units of ``SplitTable.unit``: the number of rows where there are no weights.
    counts : tuple of int
        The weight of each class, in the order of ``SplitTable.classes``; empty in a regression.
    mean : float
        Mean of y in a regression; NaN otherwise, and where there is no row.
    impurity : float
        Impurity by the criterion (that of Gini for ``twoing`` and ``chi2``, which have none); 0 without rows.
    """

    label: str
    rows: int
    weight: int
    counts: tuple[int, ...]
    mean: float
    impurity: float


@dataclass(frozen=True, slots=True)
class SplitRow:
    """The best test of one feature; without a test, numbers are NaN and there are no branches.

    Attributes
    ----------
    feature : str
        Name of the column.
    test : str
        The labels of the branches, or why there is no test.
    branches : tuple of SplitBranch
        In their order, branches of declared categories without rows included.
    remainder : float
        Mean impurity after the test, each branch by its share of the weight.
    gain : float
        Impurity of the node less the remainder.
    split_info : float
        Entropy in bits of the branches' shares of the weight.
    gain_ratio : float
        Gain over split info, 0 where that is 0.
    score : float
        What the criterion compares: the gain, or the gain ratio, the value of ``twoing``, the statistic of ``chi2``,
        bits saved a row.
    """

    feature: str
    test: str
    branches: tuple[SplitBranch, ...] = ()
    remainder: float = _NAN
    gain: float = _NAN
    split_info: float = _NAN
    gain_ratio: float = _NAN
    score: float = _NAN


@dataclass(frozen=True, slots=True)
class SplitTable:
    """The best test of every feature at a node; printing it gives a table of at most 80 columns.

    Attributes
    ----------
    criterion : str
        Name of the criterion.
    classes : tuple of str
        The classes in the order of all counts; empty in a regression.
    unit : float
        What one unit of weight is in the weights that were given; 1.0 without weights.
    node : SplitBranch
        The node before any test.
    rows : tuple of SplitRow
        One a feature, in the order of the columns.
    best : str or None
        The feature that a tree tests here: the best score, then the first column. None where no feature has a test.
    tied : tuple of str
        The other features whose score is as good, up to rounding.

    Examples
    --------
    >>> from gputree.datasets import load_classroom
    >>> from gputree.inspect.split_table import split_table
    >>> table = load_classroom("exercise_18_2").to_frame()
    >>> found = split_table(table[["x1", "x2", "x3"]], table["y"])
    >>> print(found)
    4 rows: 2 of 0, 2 of 1; entropy 1.000
    <BLANKLINE>
      feature                          remainder      gain  split info  gain ratio
    * x1                                   0.689     0.311       0.811       0.384
        <= 0.5 [1:0] | > 0.5 [1:2]
      x2                                   1.000     0.000       1.000       0.000
        <= 0.5 [1:1] | > 0.5 [1:1]
      x3                                   1.000     0.000       1.000       0.000
        <= 0.5 [1:1] | > 0.5 [1:1]
    <BLANKLINE>
    * best; branches show [0:1]
    >>> print(found.show_work())
    x1: <= 0.5 (n=1), > 0.5 (n=3)
    classes: 0, 1; H is the entropy in bits
    Gain(x1) = H(2/4, 2/4) - [1/4 H(1/1, 0/1) + 3/4 H(1/3, 2/3)]
             = 1.000 - [1/4 * 0.000 + 3/4 * 0.918]
             = 1.000 - 0.689
             = 0.311
    """

    criterion: str
    classes: tuple[str, ...]
    unit: float
    node: SplitBranch
    rows: tuple[SplitRow, ...]
    best: str | None
    tied: tuple[str, ...] = field(default=())

    def row(self, feature: str | None = None) -> SplitRow:
        """Give the record of one feature.

        Parameters
        ----------
        feature : str, optional
            Name of a column; by default the best.

        Returns
        -------
        SplitRow

        Raises
        ------
        ValueError
            If there is no such column, or none is the best because no column has a test.
        """
        wanted = self.best if feature is None else feature
        if wanted is None:
            raise ValueError("no column has a test here, so none is the best; name a column to see why")
        found = next((row for row in self.rows if row.feature == wanted), None)
        if found is None:
            known = [row.feature for row in self.rows]
            raise ValueError(f"no column {wanted!r} in this table; it has {cut_words(known, 60)}")
        return found

    def show_work(self, feature: str | None = None, decimals: int = 3) -> str:
        """Write out the sum behind a gain, with the fractions that one would put on a blackboard.

        Parameters
        ----------
        feature : str, optional
            Name of a column; by default the best.
        decimals : int, default=3
            Decimals of entropies and results, 0 to 15. Values of ``gini``, ``train_error``, ``twoing`` and ``chi2`` are
            written as exact fractions too, as long as these have at most nine digits.

        Returns
        -------
        str
            Lines of at most 80 columns: what the branches and symbols are, then the sum, ``=`` under ``=``.

        Raises
        ------
        ValueError
            If there is no such column, if it has no test, or if `decimals` is out of range.
        """
        if not isinstance(decimals, Integral) or not 0 <= decimals <= 15:
            raise ValueError(f"decimals={decimals!r} must be a whole number from 0 to 15")
        row = self.row(feature)
        if not row.branches:
            raise ValueError(f"column {row.feature!r} has no test here ({row.test}), so there is nothing to work out")
        return work_text(self, row, int(decimals))

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """Give the table as a data frame.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            What to build the frame with; by default the first of these that is installed.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            One row a feature: strings ``feature``, ``test`` and ``counts`` (branch by branch, the weights of the
            classes, or number and mean), float64 ``remainder``, ``gain``, ``split_info``, ``gain_ratio``, ``score``,
            missing where there is no test.

        Raises
        ------
        ImportError
            If the library (or, by default, each of the three) is not installed.
        ValueError
            If `library` is none of the three.
        """
        numbers = ("remainder", "gain", "split_info", "gain_ratio", "score")
        text = [[row.feature, row.test, " | ".join(self.amounts(b) for b in row.branches)] for row in self.rows]
        columns = [np.array(column, object) for column in zip(*text, strict=True)]
        columns += [np.array([getattr(row, name) for row in self.rows]) for name in numbers]
        return Table(("feature", "test", "counts", *numbers), tuple(columns), "gain", "").to_frame(library)

    def amounts(self, branch: SplitBranch) -> str:
        """What a branch holds as text: ``3:2`` by class, or ``n=5 mean=2.4``."""
        if not self.classes:
            return f"n={self.weight_text(branch.weight)}" + (f" mean={branch.mean:.4g}" if branch.weight else "")
        return ":".join(self.weight_text(count) for count in branch.counts)

    def weight_text(self, units: int) -> str:
        """A weight as it was given."""
        return str(units) if self.unit == 1 else f"{units * self.unit:.6g}"

    def __str__(self) -> str:
        return table_text(self)

    __repr__ = __str__
