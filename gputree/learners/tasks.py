"""Classification and regression: what y is, what a leaf holds, what predict gives. May import everything below."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import compute_sample_weight
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from gputree.backends.arrays import in_kind, on_device, to_host
from gputree.core.checks import at_least_nothing, brief, readable
from gputree.core.criteria import Criterion
from gputree.core.target import Target, class_target, sum_target
from gputree.learners.base import BaseTree
from gputree.learners.labels import as_columns, classes_of, known_columns, numbers_of, side_by_side
from gputree.learners.parameters import TREE_CONSTRAINTS
from gputree.learners.tables import is_number


def checked_weight(weight: Any, X: NDArray[Any]) -> NDArray[np.float64] | None:
    """Weights f8 (n,): finite, not negative, not all 0."""
    if weight is None:
        return None
    array: NDArray[np.float64]
    with readable("sample_weight", "a finite number of 0 or more for each row"):
        array = _check_sample_weight(to_host(weight), X, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError("sample_weight holds NaN or infinity; weights must be finite numbers, 0 or more")
    if (array < 0).any():
        raise ValueError(f"sample_weight holds {float(array.min())!r}; weights must be 0 or more: leave such rows out")
    if not array.any():
        raise ValueError("sample_weight is 0 for every row; at least one weight must be positive")
    return array


def check_class_weight(given: Any, n_outputs: int) -> None:
    """Refuse weights of classes that are no numbers of 0 or more, in a dict for each output."""
    if isinstance(given, str):
        return
    each = given if isinstance(given, list) else [given]
    if (
        isinstance(given, list) != (n_outputs > 1)
        or len(each) != n_outputs
        or not all(isinstance(d, dict) for d in each)
    ):
        wanted = f"a list of {n_outputs} dicts, one for each output" if n_outputs > 1 else "a dict of weights by class"
        raise ValueError(f"class_weight={brief(given)} must be {wanted}, or 'balanced'")
    for label, weight in (item for own in each for item in own.items()):
        at_least_nothing(f"class_weight[{label!r}]", weight)


def as_numbers(y: NDArray[Any]) -> NDArray[np.float64]:
    """One output of a regression as floats."""
    if y.dtype.kind in "mM":
        raise ValueError(f"y has type {y.dtype}; turn dates and durations into numbers first")
    try:
        numbers: NDArray[np.float64] = y.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        odd = next((v for v in y.tolist() if not is_number(v)), y.flat[0])
        raise ValueError(
            f"y holds {odd!r}, which is no number that fits a float; a regression tree needs numbers, and "
            "DecisionTreeClassifier takes classes"
        ) from error
    return numbers


class ClassifierTask(ClassifierMixin):
    """Labels, class shares and classes of trees and forests."""

    _criteria: ClassVar[tuple[str, ...]] = (
        "gini",
        "entropy",
        "log_loss",
        "train_error",
        "gain_ratio",
        "twoing",
        "chi2",
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TREE_CONSTRAINTS,
        "class_weight": [dict, list, StrOptions({"balanced"}), None],
    }

    def _read_target(self, y: Any, n_rows: int) -> NDArray[np.int32]:
        """Class numbers (n, outputs); remembers the classes."""
        found = [classes_of(column) for column in as_columns(y, n_rows)]
        classes = [values for values, _ in found]
        single = len(classes) == 1
        self.classes_: Any = classes[0] if single else classes
        self.n_classes_: Any = classes[0].size if single else [c.size for c in classes]
        return np.stack([numbers for _, numbers in found], axis=1)

    def _known_target(self, y: Any, n_rows: int, n_outputs: int) -> NDArray[np.int32]:
        """Class numbers (outputs, n) of rows beside those of the fit."""
        columns = zip(known_columns(y, n_rows, n_outputs), self._class_lists(), strict=True)
        return np.stack([numbers_of(column, classes) for column, classes in columns])

    def _weights(self, labels: NDArray[Any], weight: Any, n_rows: int) -> NDArray[np.float64] | None:
        """Weights of the rows, times those of their classes."""
        given = checked_weight(weight, labels)
        if self.class_weight is None:
            return given
        check_class_weight(self.class_weight, labels.shape[1])
        names = [c[column] for c, column in zip(self._class_lists(), labels.T, strict=True)]
        by_class = compute_sample_weight(self.class_weight, side_by_side(names) if len(names) > 1 else names[0])
        total: NDArray[np.float64] = by_class if given is None else given * by_class
        if not (np.isfinite(total).all() and total.any()):
            raise ValueError(
                f"class_weight={brief(self.class_weight)} makes the weights of all rows 0, or some of them infinite: "
                "give a class that has rows a weight above 0, and smaller numbers"
            )
        return total

    def _class_lists(self) -> list[NDArray[Any]]:
        """Classes of every output."""
        return [self.classes_] if isinstance(self.classes_, np.ndarray) else list(self.classes_)

    def _target(self, labels: NDArray[Any], criterion: Criterion, weight: NDArray[np.float64] | None) -> Target:
        """Label counts."""
        return class_target(labels, tuple(c.size for c in self._class_lists()), weight)

    def _why_no_subsets(self) -> str:
        """More than two classes, or several outputs."""
        lists = self._class_lists()
        if len(lists) > 1:
            return f"y has {len(lists)} outputs"
        return f"y has {lists[0].size} classes" if lists[0].size > 2 else ""

    def _n_values(self) -> int:
        """Classes but one, at least one an output."""
        return sum(max(1, c.size - 1) for c in self._class_lists())

    @abstractmethod
    def _shares(self, X: Any, check_input: bool = True) -> NDArray[np.float64]:
        """Class shares of every row on the host, the outputs side by side."""

    def _by_output(self, shares: NDArray[np.float64]) -> Any:
        """Class shares (n, n_classes), a list of them for several outputs."""
        lists = self._class_lists()
        parts = np.split(shares, np.cumsum([c.size for c in lists])[:-1], axis=1)
        return parts[0] if isinstance(self.classes_, np.ndarray) else parts

    def _labels(self, shares: NDArray[np.float64]) -> NDArray[Any]:
        """The class of the largest share, the first among equals."""
        parts = self._by_output(shares)
        if not isinstance(parts, list):
            labels: NDArray[Any] = self.classes_.take(parts.argmax(axis=1))
            return labels
        return side_by_side([c.take(p.argmax(axis=1)) for c, p in zip(self.classes_, parts, strict=True)])

    def predict_log_proba(self, X: Any) -> Any:
        """Natural logarithm of `predict_proba`; -inf where a share is 0."""
        shares = self._by_output(self._shares(X))
        with np.errstate(divide="ignore"):
            logs = [in_kind(np.log(p), X) for p in (shares if isinstance(shares, list) else [shares])]
        return logs if isinstance(shares, list) else logs[0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on rows X with labels y, weighted by sample_weight (n_rows,) where that is given."""
        if not on_device(X):
            return float(super().score(X, to_host(y), to_host(sample_weight)))
        predicted = to_host(self.predict(X))
        return float(accuracy_score(to_host(y), predicted, sample_weight=to_host(sample_weight)))

    def __sklearn_tags__(self) -> Any:
        """Several outputs are allowed."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class ClassifierTree(ClassifierTask, BaseTree):
    """Trees whose leaves hold class shares."""

    __metadata_request__predict_proba: ClassVar[dict[str, str]] = {"check_input": UNUSED}

    def predict_proba(self, X: Any, check_input: bool = True) -> Any:
        """Class shares of the leaf of every row; where a tree spreads what a test does not know, of all its leaves.

        These count by their shares of the row: the products of (weight of a branch / weight of its test) on the way.

        Returns
        -------
        float64 array (n_rows, n_classes), or a list of them for several outputs
            Columns in the order of ``classes_``.
        """
        shares = self._by_output(self._shares(X, check_input))
        return [in_kind(p, X) for p in shares] if isinstance(shares, list) else in_kind(shares, X)

    def predict(self, X: Any, check_input: bool = True) -> NDArray[Any]:
        """Class of the largest share, the first among equals: (n_rows,), or (n_rows, n_outputs)."""
        labels: NDArray[Any] = in_kind(self._labels(self._shares(X, check_input)), X)
        return labels

    def _shares(self, X: Any, check_input: bool = True) -> NDArray[np.float64]:
        """Class shares of the leaves."""
        check_is_fitted(self, "forest_")
        return self._sums(X, self.forest_, check_input)


class RegressorTask(RegressorMixin):
    """Numbers of trees and forests."""

    _criteria: ClassVar[tuple[str, ...]] = ("squared_error", "poisson")

    def _read_target(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        """Finite numbers (n, outputs)."""
        numbers = np.stack([as_numbers(column) for column in as_columns(y, n_rows)], axis=1)
        if not np.isfinite(numbers).all():
            bad = numbers[~np.isfinite(numbers)][0]
            raise ValueError(f"Input y contains NaN or infinity ({bad}); leave such rows out")
        self._n_columns = numbers.shape[1]
        return numbers

    def _check_numbers(self, y: NDArray[np.float64]) -> None:
        """Differences, and sums over trees, are floats; Poisson targets are counts."""
        with np.errstate(over="ignore"):
            reach = max(np.ptp(y, axis=0).max(), np.abs(y).max() * float(getattr(self, "n_estimators", 1)))
        self._check_reach(y, reach)
        if self.criterion == "poisson":
            self._check_counts(y)

    def _check_reach(self, y: NDArray[np.float64], reach: float) -> None:
        """What is made of y must not leave the range of floats."""
        if not np.isfinite(reach):
            raise ValueError(
                f"y ranges from {float(y.min())!r} to {float(y.max())!r}, so that sums of it or of its squares leave "
                "the range of floats: divide y by a power of ten"
            )

    def _check_counts(self, y: NDArray[np.float64]) -> None:
        """Poisson targets are not negative and not all 0."""
        if (y < 0).any():
            raise ValueError(
                f"y holds {y.min()}; some value(s) of y are negative which is not allowed for Poisson regression"
            )
        if (y.max(axis=0) <= 0).any():
            raise ValueError(
                f"column {int(y.max(axis=0).argmin())} of y is 0 everywhere; its sum must be positive for Poisson "
                "regression"
            )

    def _weights(self, labels: NDArray[Any], weight: Any, n_rows: int) -> NDArray[np.float64] | None:
        """Weights of the rows."""
        return checked_weight(weight, labels)

    def _target(self, labels: NDArray[Any], criterion: Criterion, weight: NDArray[np.float64] | None) -> Target:
        """Fixed-point sums."""
        self._check_numbers(labels)
        return sum_target(labels, criterion, weight)

    def _why_no_subsets(self) -> str:
        """Several outputs."""
        return f"y has {self._n_columns} outputs" if self._n_columns > 1 else ""

    def _n_values(self) -> int:
        """One an output."""
        return int(self._n_columns)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 on rows X with numbers y, weighted by sample_weight (n_rows,) where that is given."""
        if not on_device(X):
            return float(super().score(X, to_host(y), to_host(sample_weight)))
        predicted = to_host(self.predict(X))
        return float(r2_score(to_host(y), predicted, sample_weight=to_host(sample_weight)))


class RegressorTree(RegressorTask, BaseTree):
    """Trees whose leaves hold means."""

    def predict(self, X: Any, check_input: bool = True) -> NDArray[np.float64]:
        """Mean of the leaf of every row, float64 (n_rows,), or (n_rows, n_outputs)."""
        check_is_fitted(self, "forest_")
        mean = self._sums(X, self.forest_, check_input)
        means: NDArray[np.float64] = in_kind(mean[:, 0] if self.n_outputs_ == 1 else mean, X)
        return means
