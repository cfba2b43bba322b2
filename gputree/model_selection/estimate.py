"""The error of a model on rows that it has not seen. May import everything below."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import _safe_indexing, indexable

from gputree.core.checks import is_number, shown, what_is
from gputree.learners.refits import Refit, answers, fit_each, refit_each
from gputree.model_selection.show import frame_of, headline, number, whole
from gputree.model_selection.sizes import size_of
from gputree.model_selection.splits import Bootstrap, Trains, check_classes, describe, splitter_of, trains_of
from gputree.table import FrameLibrary

Judged: TypeAlias = "tuple[NDArray[np.float64], float | None]"  # losses of the rows of a fold, and its score


@dataclass(frozen=True, slots=True, eq=False)
class ErrorEstimate:
    """How wrong a model is on rows that it has not seen: of labels the share of wrong ones, of numbers squared errors.

    Attributes
    ----------
    model : str
        Class of the model.
    cv : object
        What parted the rows.
    classes : bool
        Whether errors are shares of wrong labels; else they are mean squared errors.
    fold, row : int64 arrays (m,)
        Fold and row of every prediction for a row held out.
    loss : float64 array (m,)
        What each is wrong by: 0 or 1, or the squared error (the mean over outputs).
    train_error : float
        Error of the model fitted on all rows that the folds name, on these rows (resubstitution).
    size : int or None
        Size of that model, see `size_of`: leaves of trees.
    fit_seconds, predict_seconds : float
        Time of that fit, and of its predictions for all rows. Of models that differ in ``ccp_alpha`` alone one is
        grown, and each has the time of that and of its own cut.
    scores : float64 array (folds,) or None
        What a scorer gives each fold, where `select` was given one (`ByScore`).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.model_selection import estimate_error
    >>> result = estimate_error(DecisionTreeClassifier(max_depth=2), *load_iris(return_X_y=True), cv=4)
    >>> result.fold_rows, result.fold_errors.round(4)
    (array([38, 38, 37, 37]), array([0.0526, 0.0526, 0.1081, 0.    ]))
    >>> round(result.error, 5), round(result.pooled, 5)
    (0.05334, 0.05333)
    """

    model: str
    cv: Any
    classes: bool
    fold: NDArray[np.int64]
    row: NDArray[np.int64]
    loss: NDArray[np.float64]
    train_error: float
    size: int | None
    fit_seconds: float
    predict_seconds: float
    scores: NDArray[np.float64] | None = None

    @property
    def fold_rows(self) -> NDArray[np.int64]:
        """Rows that each fold holds out, int64 (folds,)."""
        return np.bincount(self.fold)

    @property
    def fold_errors(self) -> NDArray[np.float64]:
        """Error of each fold, float64 (folds,)."""
        errors: NDArray[np.float64] = np.bincount(self.fold, self.loss) / self.fold_rows
        return errors

    @property
    def error(self) -> float:
        """Mean of the folds' errors, each counted alike (Nilsson, chapter 6, 6.4.2)."""
        if not self.classes:
            return float(self.fold_errors.mean())
        wrong, sizes = np.bincount(self.fold, self.loss), self.fold_rows
        shares = (Fraction(int(wrong[sizes == size].sum()), int(size)) for size in np.unique(sizes))
        return float(sum(shares, Fraction(0)) / sizes.size)  # exact: equal errors must not differ by rounding

    @property
    def pooled(self) -> float:
        """Error of all predictions together: another than `error` where folds differ in size."""
        return float(self.loss.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the pooled error from the losses of rows; of a row held out more than once from their mean.

        For labels that are held out once this is sqrt(R (1 - R) / n) (Breiman, Friedman, Olshen and Stone 1984, 3.4.3).
        """
        times = np.bincount(self.row)
        loss = np.bincount(self.row, self.loss)[times > 0] / times[times > 0]
        return float(loss.std() / np.sqrt(loss.size))

    @property
    def error_632(self) -> float:
        """The bootstrap's .632 estimate: .368 * train_error + .632 * error (Efron 1983).

        Raises
        ------
        ValueError
            If the rows were not held out by bootstrap resamples.
        """
        if not isinstance(self.cv, Bootstrap):
            raise ValueError(f"error_632 is made of bootstrap resamples, and cv was {self.cv}; give cv='bootstrap'")
        return 0.368 * self.train_error + 0.632 * self.error

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """One row a fold: ``fold``, ``rows`` held out, their ``error``.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            What to build the frame with; by default the first of these that is installed.
        """
        rows, errors = self.fold_rows, self.fold_errors
        return frame_of({"fold": range(rows.size), "rows": rows.tolist(), "error": errors.tolist()}, library)

    def __str__(self) -> str:
        rows = np.unique(self.row).size
        what = "wrong labels" if self.classes else "mean squared error"
        lines = [headline(f"{self.model}, {describe(self.cv, self.fold_rows.size)}, {rows} rows held out: {what}")]
        lines.append(f"mean of folds  {number(self.error)}")
        wrong = f" ({self.loss.sum():.0f} of {self.loss.size})" if self.classes else ""
        lines.append(f"pooled         {number(self.pooled)}{wrong}, standard error {number(self.standard_error)}")
        if isinstance(self.cv, Bootstrap):
            lines.append(f".632           {number(self.error_632)}")
        lines.append(
            f"training rows  {number(self.train_error)}, size {whole(self.size)}, fit {self.fit_seconds:.3g} s"
        )
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Case:
    """A table to judge models on: X as given, y (n,) or (n, O), and the rows that each fold fits and holds out."""

    X: Any
    y: NDArray[Any]
    classes: bool
    splitter: Any
    trains: Trains

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, cv: Any) -> Case:
        """Check what was given and part the rows."""
        fits = hasattr(model, "fit") and not isinstance(model, type)
        classes = fits and is_classifier(model)
        if not (classes or (fits and is_regressor(model))):
            raise TypeError(
                f"{what_is(model)} is neither a classifier nor a regressor; give one, as DecisionTreeClassifier()"
            )
        if y is None:
            raise ValueError("y=None leaves nothing to be wrong about; give the labels or numbers of the rows")
        X, y = indexable(X, y)
        y = as_array(y)
        splitter = splitter_of(cv, y, classes)
        case = cls(X, y, classes, splitter, trains_of(splitter, X, y))
        if classes:
            check_classes(case.trains, y)
        return case

    def take(self, rows: NDArray[np.intp]) -> tuple[Any, NDArray[Any]]:
        """Some rows of the table."""
        return _safe_indexing(self.X, rows), self.y[rows]

    def losses(self, rows: NDArray[np.intp], predicted: NDArray[Any]) -> NDArray[np.float64]:
        """What predictions for some rows (k,) are wrong by (k,); a row of labels is wrong if one of them is."""
        y = self.y[rows].reshape(rows.size, -1)
        predicted = predicted.reshape(y.shape)
        if self.classes:
            wrong: NDArray[np.float64] = (y != predicted).any(axis=1).astype(np.float64)
            return wrong
        squares: NDArray[np.float64] = ((y.astype(np.float64) - predicted) ** 2).mean(axis=1)
        return squares

    def estimate(self, model: Any, judged: Sequence[Judged], fitted: Fitted) -> ErrorEstimate:
        """Put together what the folds and the fit on all rows give."""
        losses, scores = zip(*judged, strict=True)
        held = self.trains.held
        return ErrorEstimate(
            type(model).__name__,
            self.splitter,
            self.classes,
            np.repeat(np.arange(len(held)), [rows.size for rows in held]),
            np.concatenate(held),
            np.concatenate(losses),
            fitted.train_error,
            size_of(fitted.model),
            fitted.fit_seconds,
            fitted.predict_seconds,
            None if None in scores else np.array(scores, np.float64),
        )

    def estimates(self, models: Sequence[Any], scorer: Any = None) -> list[ErrorEstimate]:
        """How wrong each model is, and what a scorer of scikit-learn gives it."""

        def judge(fold: int, refit: Refit) -> Judged:
            rows = self.trains.held[fold]
            score = scorer and scorer(refit.model, *self.take(rows))
            if scorer and not is_number(score):
                raise TypeError(f"the scorer gave {shown(score)} for fold {fold}; give one that returns a number")
            return self.losses(rows, refit.predict(rows)), scorer and float(score)

        judged = refit_each(models, self.X, self.y, self.trains, judge)
        found = zip(models, judged, self.fits(models), strict=True)
        return [self.estimate(model, own, fitted) for model, own, fitted in found]

    def fit(self, model: Any) -> Fitted:
        """Fit a clone on all rows that the folds name, and judge it by them."""
        return next(self.fits([model]))

    def fits(self, models: Sequence[Any]) -> Iterator[Fitted]:
        """The same of every model."""
        rows = self.trains.named()
        X, y = (self.X, self.y) if rows.size == len(self.y) else self.take(rows)
        for fitted, seconds in fit_each(models, X, y):
            begin = time.perf_counter()
            predicted = answers(fitted, X)
            end = time.perf_counter()
            yield Fitted(fitted, float(self.losses(rows, predicted).mean()), seconds, end - begin)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model fitted on all rows, its error on them, and how long it took."""

    model: Any
    train_error: float
    fit_seconds: float
    predict_seconds: float


def as_array(y: Any) -> NDArray[Any]:
    """The y of a table as an array (n,) or (n, O)."""
    array = np.asarray(y)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def estimate_error(model: Any, X: Any, y: Any, cv: Any = 10) -> ErrorEstimate:
    """Estimate the error of a model on rows that it has not seen.

    Single trees of this library (`DecisionTree*`, `ExtraTree*`) grow together for all folds, which are what
    scikit-learn's `cross_val_score` grows one after another. Other models, forests too, are fitted fold by fold: leave
    one out of many rows takes as many fits, where a forest has estimates out of bag (``oob_score``) for one.

    Parameters
    ----------
    model : estimator
        A classifier or regressor, of this library or with scikit-learn's methods; it is cloned.
    X : array-like or frame of shape (n_rows, n_features)
        As ``model.fit`` takes it.
    y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        Labels or numbers.
    cv : int, str, splitter or iterable, default=10
        A number of folds (of classes in equal proportions, as scikit-learn parts them); ``"loo"``, each row held out by
        itself; ``"holdout"``, a third; ``"train-validation-test"``, a quarter validates and a quarter is left out;
        ``"bootstrap"``, 100 resamples; a splitter of scikit-learn, `Holdout` or `Bootstrap`; or pairs of row numbers,
        such as ``list(GroupKFold(5).split(X, y, groups))`` where rows belong together.

    Returns
    -------
    ErrorEstimate

    Raises
    ------
    ValueError, TypeError
        If ``cv`` parts no rows, a part is empty, a fold fits rows that it holds out, a single fold judges by a class
        that is not among the rows to fit on, or the model is neither a classifier nor a regressor.

    Notes
    -----
    Nilsson, *Introduction to Machine Learning*, chapter 6, 6.4.2. A class that a fold of several has not seen counts as
    mistakes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.model_selection import estimate_error
    >>> X, y = load_iris(return_X_y=True)
    >>> result = estimate_error(DecisionTreeClassifier(max_depth=2), X, y, cv="loo")
    >>> result.fold_errors.size, int(result.loss.sum())
    (150, 7)
    """
    case = Case.of(model, X, y, cv)
    return case.estimates([model])[0]
