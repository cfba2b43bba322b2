"""Error, size and time of several models on several tables. May import everything below and narwhals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from gputree.core.checks import what_is
from gputree.inspect.words import told_apart
from gputree.model_selection.estimate import Case, ErrorEstimate
from gputree.model_selection.show import NAMES, WIDTH, frame_of, number, text_table, whole
from gputree.model_selection.splits import describe
from gputree.table import FrameLibrary, Table

LONGEST = 10  # characters of a name over a column


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """How several models did on several tables. It states no winner.

    Attributes
    ----------
    models, tables : tuple of str
        Their names.
    estimates : tuple of tuple of ErrorEstimate
        One of each model, table by table.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.model_selection import compare
    >>> models = {"stump": DecisionTreeClassifier(max_depth=1), "tree": DecisionTreeClassifier()}
    >>> result = compare(models, {"iris": load_iris(return_X_y=True)}, cv=5)
    >>> result.figures("error").round(4), result.ranks
    (array([[0.3333, 0.0333]]), array([[2., 1.]]))
    """

    models: tuple[str, ...]
    tables: tuple[str, ...]
    estimates: tuple[tuple[ErrorEstimate, ...], ...]

    def figures(self, name: str) -> NDArray[np.float64]:
        """An attribute of all estimates, such as "error", "size" or "fit_seconds", float64 (n_tables, n_models).

        NaN where a size is not known.
        """
        rows = [[np.nan if (v := getattr(e, name)) is None else float(v) for e in row] for row in self.estimates]
        return np.array(rows)

    @property
    def ranks(self) -> NDArray[np.float64]:
        """Rank of each model on each table by its error, 1 for the least, shared by equal ones (n_tables, n_models)."""
        ranks: NDArray[np.float64] = rankdata(self.figures("error"), axis=1)
        return ranks

    @property
    def mean_ranks(self) -> NDArray[np.float64]:
        """Mean rank of each model over the tables (n_models,)."""
        mean: NDArray[np.float64] = self.ranks.mean(axis=0)
        return mean

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """One row a table and model.

        Columns: ``table``, ``model``, ``error`` (mean of the folds), ``pooled``, ``standard_error``, ``train_error``,
        ``size``, ``fit_seconds``, ``predict_seconds``, ``rank``.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            What to build the frame with; by default the first of these that is installed.
        """
        columns: dict[str, Any] = {
            "table": np.repeat(self.tables, len(self.models)),
            "model": np.tile(self.models, len(self.tables)),
        }
        names = ("error", "pooled", "standard_error", "train_error", "size", "fit_seconds", "predict_seconds")
        columns |= {name: [getattr(e, name) for row in self.estimates for e in row] for name in names}
        return frame_of(columns | {"rank": self.ranks.ravel()}, library)

    def __str__(self) -> str:
        first = self.estimates[0][0]
        what = "wrong labels" if first.classes else "mean squared error"
        lines = [
            f"{describe(first.cv, first.fold_rows.size)}: {what}, mean of the folds; ranks by table, equal ones shared"
        ]
        errors = [[number(e.error) for e in row] for row in self.estimates]
        lines += self.blocks("table", dict(zip(self.tables, errors, strict=True)))
        lines += self.blocks("", dict(self.summary()))
        return "\n".join(lines)

    def summary(self) -> Iterator[tuple[str, list[str]]]:
        """What is printed below the errors: ranks, and means over the tables."""
        yield "mean rank", [f"{rank:.2f}" for rank in self.mean_ranks]
        yield (
            "mean size",
            [whole(None if np.isnan(s) else round(float(s), 1)) for s in self.figures("size").mean(axis=0)],
        )
        for name in ("fit", "predict"):
            yield f"{name}, seconds", [f"{s:.3g}" for s in self.figures(f"{name}_seconds").sum(axis=0)]

    def blocks(self, corner: str, rows: Mapping[str, list[str]]) -> Iterator[str]:
        """A line a row, as many models side by side as a line has room for."""
        heads = [name.rjust(LONGEST) for name in told_apart(self.models, LONGEST)]
        step = max(1, (WIDTH - NAMES) // (max(map(len, heads)) + 2))
        for first in range(0, len(self.models), step):
            own = slice(first, first + step)
            yield text_table([corner.ljust(NAMES), *heads[own]], [(name, *row[own]) for name, row in rows.items()])


def compare(models: Mapping[str, Any], tables: Mapping[str, Any], cv: Any = 10) -> Comparison:
    """Measure several models on several tables: error, size and time, and ranks by table.

    As the StatLog study did for trees, nets and nearest neighbours: no model was best on all tables there. Every model
    meets the same folds of a table. Ranks of few tables say little, and times are those of one fit and one prediction
    of all rows on this machine.

    Parameters
    ----------
    models : dict of str to estimator
        Classifiers, or regressors; pipelines of scikit-learn, too, which scale and encode as they need to.
    tables : dict of str to (X, y) or Table
        Of a table of `gputree.datasets` the target is y.
    cv : int, str or splitter, default=10
        As in `estimate_error`.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError, TypeError
        As `estimate_error`; or if there is no model or no table, or classifiers are mixed with regressors. What a
        model's own fit raises says also which model and table it was.

    Notes
    -----
    Michie, Spiegelhalter and Taylor (1994), *Machine Learning, Neural and Statistical Classification*; Nilsson,
    *Introduction to Machine Learning*, chapter 6, 6.7.

    Examples
    --------
    >>> from sklearn.datasets import load_iris, load_wine
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.model_selection import compare
    >>> models = {"tree": DecisionTreeClassifier(), "neighbours": KNeighborsClassifier()}
    >>> tables = {"iris": load_iris(return_X_y=True), "wine": load_wine(return_X_y=True)}
    >>> compare(models, tables, cv=5).mean_ranks
    array([1.5, 1.5])
    """
    given: Any
    for given, what in ((models, "models"), (tables, "tables")):
        if not isinstance(given, Mapping) or not given:
            raise ValueError(f"{what}={given!r} must be a dict of names to {what}, with at least one of them")
    rows = tuple(tuple(estimates(name, *parts(name, table), models, cv)) for name, table in tables.items())
    kinds = {e.classes for e in rows[0]}
    if len(kinds) > 1:
        raise ValueError(
            f"models {', '.join(map(repr, models))} mix classifiers and regressors, whose errors differ in kind"
        )
    return Comparison(tuple(map(str, models)), tuple(map(str, tables)), rows)


def parts(name: str, table: Any) -> tuple[Any, Any]:
    """X and y of a table."""
    if isinstance(table, Table):
        frame = nw.from_native(table.to_frame())
        return frame.drop(table.target).to_native(), table.column(table.target)
    if not isinstance(table, tuple | list) or len(table) != 2:
        raise TypeError(f"table {name!r} is {what_is(table)}; give (X, y), or a Table of gputree.datasets")
    return table[0], table[1]


def estimates(table: str, X: Any, y: Any, models: Mapping[str, Any], cv: Any) -> Iterator[ErrorEstimate]:
    """How wrong each model is on a table."""
    for name, model in models.items():
        try:
            yield Case.of(model, X, y, cv).estimates([model])[0]
        except Exception as error:
            error.add_note(f"in compare: model {name!r} on table {table!r}")
            raise
