"""Errors by the number of training rows, or by a parameter.

May import everything below; matplotlib inside functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.checks import brief
from gputree.core.keys import Stream, draw
from gputree.inspect.plot import axes_for
from gputree.learners.refits import Refit, Subset, refit_each
from gputree.model_selection.choose import listed, values_of, with_params
from gputree.model_selection.estimate import Case
from gputree.model_selection.show import frame_of, headline, number, text_table, whole
from gputree.model_selection.sizes import size_of
from gputree.model_selection.splits import describe
from gputree.table import FrameLibrary

TRAIN_SIZE = "train_size"
SHARES = (0.1, 0.325, 0.55, 0.775, 1.0)  # scikit-learn's


@dataclass(frozen=True, slots=True, eq=False)
class LearningCurve:
    """Errors on the rows that were fitted and on those held out, by what was varied.

    Attributes
    ----------
    model, cv : str
        Class of the model, and what parted the rows, in words.
    classes : bool
        Whether errors are shares of wrong labels; else they are mean squared errors.
    name : str
        What was varied: a parameter, or ``"train_size"``.
    values : tuple
        Its values, of ``"train_size"`` the numbers of rows.
    train_errors, errors : float64 arrays (n_values, n_folds)
        Errors of every fold on the rows it fits and on those it holds out.
    sizes : float64 array (n_values,)
        Mean size of the fitted models, see `size_of`; NaN where it is not known.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.model_selection import learning_curve
    >>> curve = learning_curve(DecisionTreeClassifier(), *load_iris(return_X_y=True), over={"train_size": [0.5, 1.0]})
    >>> curve.values, curve.errors.shape
    ((60, 120), (2, 5))
    """

    model: str
    cv: str
    classes: bool
    name: str
    values: tuple[Any, ...]
    train_errors: NDArray[np.float64]
    errors: NDArray[np.float64]
    sizes: NDArray[np.float64]

    @property
    def standard_errors(self) -> NDArray[np.float64]:
        """Standard error of the mean over folds of the held-out errors (n_values,); 0 for one fold."""
        folds = self.errors.shape[1]
        spread: NDArray[np.float64] = self.errors.std(axis=1) / np.sqrt(max(folds - 1, 1))
        return spread

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """One row a value: what was varied by its name, ``train_error``, ``error``, ``standard_error``, ``size``.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            What to build the frame with; by default the first of these that is installed.
        """
        columns = {
            self.name: list(self.values),
            "train_error": self.train_errors.mean(axis=1),
            "error": self.errors.mean(axis=1),
            "standard_error": self.standard_errors,
            "size": self.sizes,
        }
        return frame_of(columns, library)

    def __str__(self) -> str:
        what = "wrong labels" if self.classes else "mean squared error"
        columns = self.train_errors.mean(axis=1), self.errors.mean(axis=1), self.standard_errors
        rows = [
            (str(value), *map(number, figures), whole(None if np.isnan(size) else float(size)))
            for value, size, *figures in zip(self.values, self.sizes, *columns, strict=True)
        ]
        table = text_table((self.name, "training", "held out", "s.e.", "size"), rows)
        return f"{headline(f'{self.model}, {self.cv}: {what}')}\n{table}"

    def plot(self, ax: Any = None) -> Any:
        """Draw both errors, the held-out one with a band of one standard error to either side.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default the axes or figure that were just made and are still empty, else a new figure.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = axes_for(ax, "LearningCurve.plot")
        numeric = all(is_finite(value) for value in self.values)
        x = np.array(self.values, float) if numeric else np.arange(len(self.values))
        mean, spread = self.errors.mean(axis=1), self.standard_errors
        order = np.argsort(x, kind="stable")
        ax.plot(x[order], self.train_errors.mean(axis=1)[order], "o--", label="training rows", clip_on=False)
        (line,) = ax.plot(x[order], mean[order], "o-", label="rows held out")
        ax.fill_between(x[order], (mean - spread)[order], (mean + spread)[order], color=line.get_color(), alpha=0.2)
        if not numeric:
            ax.set_xticks(x, list(map(str, self.values)))
        elif (x == x.round()).all():
            ax.locator_params(axis="x", integer=True)
        ax.set_xlabel("training rows" if self.name == TRAIN_SIZE else self.name)
        ax.set_ylabel("share of wrong labels" if self.classes else "mean squared error")
        ax.set_title(f"{self.model}, {self.cv}")
        ax.set_ylim(bottom=0)
        ax.legend()
        return ax


def is_finite(value: Any) -> bool:
    """Whether a value is a number that an axis can show."""
    numeric = type(value) not in (bool, np.bool_) and isinstance(value, Real)
    return numeric and bool(np.isfinite(float(value)))


def learning_curve(
    model: Any, X: Any, y: Any, over: Mapping[str, Sequence[Any]] | None = None, cv: Any = 5
) -> LearningCurve:
    """Errors of a model by the number of training rows, or by one of its parameters, such as depth or leaves.

    Parameters
    ----------
    model : estimator
        A classifier or regressor; it is cloned.
    X, y : table and labels or numbers
        As in `estimate_error`.
    over : dict of one name to a list, optional
        A parameter and its values (``{"max_depth": [1, 2, 3]}``), or ``"train_size"`` and shares in (0, 1] or numbers
        of the rows that a fold fits; by default the shares .1, .325, .55, .775 and 1. Which rows these are is drawn by
        a hash of their numbers; smaller ones are parts of larger ones.
    cv : int, str, splitter or iterable, default=5
        As in `estimate_error`.

    Returns
    -------
    LearningCurve

    Raises
    ------
    ValueError, TypeError
        As `estimate_error`, and if ``over`` names another number of things than one, or values that cannot be.

    Notes
    -----
    The error on training rows falls with size and depth; the one on rows held out may do either (Raschka, STAT 479
    chapter 6, 6.11; Nilsson, *Introduction to Machine Learning*, chapter 6, 6.4.3).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.model_selection import learning_curve
    >>> X, y = load_iris(return_X_y=True)
    >>> print(learning_curve(DecisionTreeClassifier(), X, y, over={"max_depth": [1, 2, None]}))
    DecisionTreeClassifier, 5 folds: wrong labels
    max_depth  training  held out    s.e.  size
    1            0.3333    0.3333  0.0000     2
    2            0.0383    0.0667  0.0236     3
    None         0.0000    0.0333  0.0183     8
    """
    case = Case.of(model, X, y, cv)
    given: Any = {TRAIN_SIZE: SHARES} if over is None else over
    if not isinstance(given, Mapping) or len(given) != 1:
        raise ValueError(
            f"over={brief(over)} must be a dict of one name and its values, such as {{'max_depth': [1, 2, 3]}}"
        )
    ((name, values),) = given.items()
    found: list[list[Measured]]
    if name == TRAIN_SIZE:
        subsets = [[part_of(train, size) for train in case.trains] for size in checked_sizes(values)]
        found = [measured(case, [model], rows)[0] for rows in subsets]
        shown: Sequence[Any] = [round(float(np.mean([part.size for part in rows]))) for rows in subsets]
    else:
        shown = values_of(model, case, name, values, model.get_params())
        found = measured(case, [with_params(model, {name: value}) for value in shown], case.trains)
    train, held, sizes = (np.array([[getattr(m, what) for m in row] for row in found]) for what in Measured.__slots__)
    words = describe(case.splitter, len(case.trains))
    return LearningCurve(type(model).__name__, words, case.classes, name, tuple(shown), train, held, sizes.mean(axis=1))


@dataclass(frozen=True, slots=True)
class Measured:
    """Errors of one fit on its own rows and on those held out, and its size."""

    train_error: float
    error: float
    size: float


def measured(case: Case, models: Sequence[Any], subsets: Sequence[Subset]) -> list[list[Measured]]:
    """Every model fitted on every subset, judged by it and by what the fold holds out."""
    judge: Callable[[int, Refit], Measured] = partial(measure, case, subsets)
    return refit_each(models, case.X, case.y, subsets, judge)


def measure(case: Case, subsets: Sequence[Subset], fold: int, refit: Refit) -> Measured:
    """One fit."""
    held, size = case.trains.held[fold], size_of(refit.model)
    train, error = (float(case.losses(rows, refit.predict(rows)).mean()) for rows in (subsets[fold], held))
    return Measured(train, error, np.nan if size is None else float(size))


def checked_sizes(sizes: Any) -> list[Any]:
    """Shares or numbers of rows.

    Raises
    ------
    ValueError
        If there is none, or one is out of range.
    """
    given = listed(TRAIN_SIZE, sizes)
    for size in given:
        rows = isinstance(size, int | np.integer) and not isinstance(size, bool) and size >= 1
        if not (rows or (isinstance(size, float) and 0 < size <= 1)):
            raise ValueError(f"train_size={brief(size)} must be a share above 0 and at most 1.0, or a number of rows")
    return given


def part_of(rows: Subset, size: Any) -> Subset:
    """Some of the rows that a fold fits: those whose numbers have the smallest hashes, in their order.

    Raises
    ------
    ValueError
        If there are not so many.
    """
    n = max(1, int(size * rows.size)) if isinstance(size, float) else int(size)
    if n > rows.size:
        raise ValueError(f"train_size={n} rows, and a fold fits {rows.size}; give at most so many, or shares")
    order = np.argsort(draw(0, Stream.PART, rows.astype(np.uint64)), kind="stable")
    return rows[np.sort(order[:n])]
