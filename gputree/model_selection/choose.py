"""Choosing parameters by the error on rows that were not fitted. May import everything below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import ParameterGrid

from gputree.core.checks import bare, brief, lasting, one_of
from gputree.learners.refits import answers
from gputree.model_selection.estimate import Case, ErrorEstimate
from gputree.model_selection.show import frame_of, headline, number, settings, text_table, whole
from gputree.model_selection.splits import Holdout, describe
from gputree.table import FrameLibrary

RULES = ("best", "1se")
SHOWN = 40  # lines of a printed selection


@dataclass(frozen=True, slots=True)
class ByScore:
    """A rule of `select` that goes by the mean score of the folds, the greatest being the best, and not by errors.

    Parameters
    ----------
    scoring : str or callable
        A scorer of scikit-learn by its name, such as "roc_auc", or a function ``(model, X, y) -> float``.
    rule : {"best", "1se"}, default="best"
        As of `select`; the standard error is that of the mean over folds. Errors are measured all the same.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not as it must be.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.model_selection import ByScore, select
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> select(DecisionTreeClassifier(), X, y, {"max_depth": [1, 3]}, cv=5, rule=ByScore("roc_auc")).best_params
    {'max_depth': 3}
    """

    scoring: Any
    rule: str = "best"

    def __post_init__(self) -> None:
        if not (isinstance(self.scoring, str) or callable(self.scoring)):
            raise TypeError(
                f"scoring={brief(self.scoring)} must be the name of a scorer of scikit-learn, such as 'roc_auc', or a "
                "function (model, X, y) -> float"
            )
        one_of("rule", self.rule, RULES)


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """What was tried, what came of it, and what was chosen.

    Attributes
    ----------
    params : tuple of dict
        Parameters of every candidate.
    estimates : tuple of ErrorEstimate
        How wrong each is.
    index : int
        Number of the one that was chosen.
    rule : {"best", "1se"} or ByScore
        By what.
    model : estimator
        A model of these parameters, fitted on all rows but those kept for the end (``best_estimator_`` of
        `GridSearchCV`).
    test_error : float or None
        Its error on rows kept for the end (``cv=Holdout(..., kept_size=...)``), which the choice has not seen.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.model_selection import select
    >>> X, y = load_iris(return_X_y=True)
    >>> print(select(DecisionTreeClassifier(), X, y, over={"max_depth": [1, 2]}, cv=5))
    DecisionTreeClassifier, 5 folds, rule 'best': wrong labels
                  error    s.e.  pooled  training  size
      max_depth=1  0.3333  0.0385  0.3333    0.3333     2
    * max_depth=2  0.0667  0.0204  0.0667    0.0400     3
    """

    params: tuple[dict[str, Any], ...]
    estimates: tuple[ErrorEstimate, ...]
    index: int
    rule: str | ByScore
    model: Any
    test_error: float | None = None

    @property
    def best_params(self) -> dict[str, Any]:
        """Parameters that were chosen."""
        return self.params[self.index]

    @property
    def best(self) -> ErrorEstimate:
        """How wrong they are; as the least of many errors it is too small on average."""
        return self.estimates[self.index]

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """One row a candidate.

        Columns: each parameter by its name; ``error`` (mean of the folds), ``pooled``, ``standard_error``,
        ``train_error``, ``size``, ``fit_seconds``; ``score`` (mean of the folds), by `ByScore`; ``chosen``.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            What to build the frame with; by default the first of these that is installed.
        """
        names = dict.fromkeys(name for params in self.params for name in params)
        columns = {name: [plain(params.get(name)) for params in self.params] for name in names}
        for name in ("error", "pooled", "standard_error", "train_error", "size", "fit_seconds"):
            columns[name] = [getattr(e, name) for e in self.estimates]
        if self.best.scores is not None:
            columns["score"] = [-badness(e)[0] for e in self.estimates]
        columns["chosen"] = [i == self.index for i in range(len(self.params))]
        return frame_of(columns, library)

    def __str__(self) -> str:
        first = self.best
        what = "wrong labels" if first.classes else "mean squared error"
        if first.scores is not None:
            what = f"mean score of the folds, and {what}"
        lines = [
            headline(f"{first.model}, {describe(first.cv, first.fold_rows.size)}, rule {lasting(self.rule)}: {what}")
        ]
        shown = self.shown()
        times = Counter(settings(params) for params in self.params)
        rows = [candidate_line(self.params[i], self.estimates[i], times) for i in shown]
        header = ("", *(() if first.scores is None else ("score",)), "error", "s.e.", "pooled", "training", "size")
        lines.append(text_table(header, rows, ["* " if i == self.index else "  " for i in shown]))
        if len(shown) < len(self.params):
            lines.append(f"({len(self.params) - len(shown)} more candidates: to_frame())")
        if self.test_error is not None:
            lines.append(f"error of the chosen one on rows kept for the end: {number(self.test_error)}")
        return "\n".join(lines)

    def shown(self) -> list[int]:
        """Candidates that are printed: all, or the best in their order."""
        order = np.argsort([badness(e)[0] for e in self.estimates], kind="stable")[: SHOWN - 1]
        return list(range(len(self.params))) if len(self.params) <= SHOWN else sorted({*order.tolist(), self.index})


def candidate_line(params: dict[str, Any], e: ErrorEstimate, times: Mapping[str, int]) -> tuple[str, ...]:
    """The cells of one candidate; ``times`` tells which short texts stand for several."""
    text = settings(params)
    score = () if e.scores is None else (float(e.scores.mean()),)
    figures = (*score, e.error, e.standard_error, e.pooled, e.train_error)
    return text if times[text] < 2 else settings(params, 17), *map(number, figures), whole(e.size)


def plain(value: Any) -> Any:
    """A parameter as a cell of a frame."""
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def select(model: Any, X: Any, y: Any, over: Any, cv: Any = 10, rule: str | ByScore = "best") -> Selection:
    """Choose the parameters of a model by its error on rows that it has not seen, and fit it with them.

    Every candidate meets the same folds. Single trees of this library grow together for all folds, and candidates that
    differ in ``ccp_alpha`` alone are grown once; scikit-learn's `GridSearchCV` takes the same models one by one.

    Parameters
    ----------
    model : estimator
        A classifier or regressor; a pipeline of scikit-learn, too. It is cloned.
    X, y : table and labels or numbers
        As in `estimate_error`.
    over : dict of str to list, or list of such
        Parameters and the values to try, all combinations of them, as in `GridSearchCV`. ``{"ccp_alpha": "path"}``
        tries every tree of the cost-complexity sequence of all rows: between two of its alphas their geometric mean,
        and at the end one that leaves a root alone.
    cv : int, str, splitter or iterable, default=10
        As in `estimate_error`. With ``"train-validation-test"`` or ``Holdout(kept_size=...)``, some rows are kept for
        the end and measure the chosen model (`Selection.test_error`).
    rule : {"best", "1se"} or ByScore, default="best"
        "best": the least error, of equal ones the smallest model, of these the first. "1se": the smallest model whose
        error is at most the least one and its standard error; of these the least error.
        A `ByScore` takes the greatest score of scikit-learn's instead.

    Returns
    -------
    Selection

    Raises
    ------
    ValueError, TypeError
        As `estimate_error`, and if ``over`` names no parameter or no value, "1se" compares models without a size, or
        the score is none or gives a fold no number.

    Notes
    -----
    Breiman, Friedman, Olshen and Stone (1984), *Classification and Regression Trees*, section 3.4: the sequence, the
    geometric means and the rule of one standard error. Procaccia, lecture 16: training, validation and test.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.model_selection import select
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> result = select(DecisionTreeClassifier(), X, y, over={"max_depth": [1, 2, 3, 4]}, rule="1se")
    >>> result.best_params
    {'max_depth': 2}
    """
    scoring, which = (rule.scoring, rule.rule) if isinstance(rule, ByScore) else (None, rule)
    one_of("rule", which, RULES)
    case = Case.of(model, X, y, cv)
    scorer = scorer_of(model, scoring)
    rows = case.trains.named()
    candidates = candidates_of(model, case, over)
    models = [with_params(model, params) for params in candidates]
    estimates = tuple(case.estimates(models, scorer))
    check_scores(candidates, estimates, scoring)
    index = chosen(estimates, which)
    fitted = case.fit(models[index]).model
    error = None
    if isinstance(case.splitter, Holdout) and case.splitter.kept_size > 0:
        test = np.setdiff1d(np.arange(len(case.y)), rows)
        error = float(case.losses(test, answers(fitted, case.take(test)[0])).mean())
    return Selection(tuple(candidates), estimates, index, rule, fitted, error)


def scorer_of(model: Any, scoring: Any) -> Any:
    """A scorer by its name, or as it is; None for none."""
    return None if scoring is None else check_scoring(model, scoring=scoring)


def check_scores(candidates: Sequence[Mapping[str, Any]], estimates: Sequence[ErrorEstimate], scoring: Any) -> None:
    """Refuse scores that are no numbers."""
    for params, e in zip(candidates, estimates, strict=True):
        scores = np.zeros(0) if e.scores is None else e.scores
        odd = np.flatnonzero(~np.isfinite(scores))
        if odd.size:
            raise ValueError(
                f"scoring={brief(scoring)} gives fold {odd[0]} {scores[odd[0]]} with {brief(params)}; "
                "take another, or fewer folds, so that each has all that it counts"
            )


def badness(e: ErrorEstimate) -> tuple[float, float]:
    """What a choice keeps small, and its standard error: the error, or the mean score with another sign."""
    if e.scores is None:
        return e.error, e.standard_error
    return -float(e.scores.mean()), float(e.scores.std() / np.sqrt(max(e.scores.size - 1, 1)))


def with_params(model: Any, params: Mapping[str, Any]) -> Any:
    """A clone with other parameters."""
    return clone(model).set_params(**{name: clone(value, safe=False) for name, value in params.items()})


def candidates_of(model: Any, case: Case, over: Any) -> list[dict[str, Any]]:
    """Every combination of parameters to try.

    Raises
    ------
    ValueError, TypeError
        If there is none, or one has a name that the model does not know, or no list of values.
    """
    known = model.get_params()
    found: list[dict[str, Any]] = []
    parts = over if isinstance(over, list | tuple) else [over]
    for part in parts if all(isinstance(part, Mapping) for part in parts) else []:
        grid = {name: values_of(model, case, name, values, known, part) for name, values in part.items()}
        found += [dict(params) for params in ParameterGrid(grid)] if grid else []
    if not found:
        raise ValueError(
            f"over={brief(over)} must name at least one parameter and its values, such as {{'max_depth': [2, 4]}}"
        )
    return found


def values_of(
    model: Any, case: Case, name: str, values: Any, known: Mapping[str, Any], tried: Collection[str] = ()
) -> Sequence[Any]:
    """The values of one parameter."""
    steps = name.split("__")  # set_params tells of the parts of rules, and of what is tried as a whole
    wholes = ["__".join(steps[:end]) for end in range(1, len(steps))]
    if name not in known and not any(is_dataclass(known.get(whole)) or whole in tried for whole in wholes):
        raise ValueError(
            f"over names {name!r}, which {type(model).__name__} does not have; its parameters are {', '.join(known)}"
        )
    if isinstance(values, str) and values == "path" and steps[-1] == "ccp_alpha":
        if len(steps) > 1:
            raise ValueError(
                f"over gives {name}='path', and the sequence is that of a tree alone, not of one within another model: "
                "give numbers, or the tree as the model"
            )
        return alphas_between(model, case)
    return listed(name, values)


def listed(name: str, values: Any) -> list[Any]:
    """The values of a parameter, plain ones for those of NumPy."""
    if isinstance(values, str) or not isinstance(values, Sequence | range | np.ndarray) or not len(values):
        raise ValueError(f"over gives {name}={brief(values)}; give a list of at least one value to try")
    return [bare(value) for value in values]


def alphas_between(model: Any, case: Case) -> list[float]:
    """Geometric means of neighbouring alphas of the cost-complexity sequence (Breiman et al. 3.4.2).

    The last one leaves a root alone in every fold: the weighted impurity of some of the rows is at most that of all.
    """
    if not hasattr(model, "cost_complexity_pruning_path"):
        raise ValueError(
            f"over gives ccp_alpha='path', which is that of one tree, and {type(model).__name__} has none; give numbers"
        )
    path = clone(model).cost_complexity_pruning_path(*case.take(case.trains.named()))
    alphas = np.unique(path.ccp_alphas)
    share = min(train.size for train in case.trains) / case.trains.named().size
    return [*np.sqrt(alphas[:-1] * alphas[1:]).tolist(), 2.0 * float(path.impurities[-1]) / share]


def chosen(estimates: Sequence[ErrorEstimate], rule: str) -> int:
    """Number of the candidate that a rule takes."""
    sizes = [e.size for e in estimates]
    if rule == "1se" and None in sizes:
        raise ValueError(
            f"rule='1se' takes the smallest model within one standard error, and {estimates[sizes.index(None)].model} "
            "has no size that is known here; use rule='best'"
        )
    ranked = [(badness(e)[0], -1 if e.size is None else e.size, i) for i, e in enumerate(estimates)]
    least = min(ranked)
    if rule == "best":
        return least[2]
    limit = least[0] + badness(estimates[least[2]])[1]
    return min((size, error, i) for error, size, i in ranked if error <= limit)[2]


@dataclass(frozen=True, slots=True)
class OneStandardError:
    """The rule of one standard error for scikit-learn's searches, given as their ``refit``.

    Of all candidates whose mean score is at least the best one less its standard error over the folds, the one with the
    least value of a parameter is taken; None counts as the largest.

    Parameters
    ----------
    parameter : str
        The parameter that makes the model larger.
    reverse : bool, default=False
        Whether it makes the model smaller, as ``ccp_alpha`` and ``min_samples_leaf`` do.
    scoring : str, default="score"
        Name of the score, where a search has several.

    Raises
    ------
    ValueError
        If the search has no such parameter.

    References
    ----------
    Breiman, Friedman, Olshen and Stone (1984), *Classification and Regression Trees*, section 3.4.3.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import GridSearchCV
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.model_selection import OneStandardError
    >>> rule = OneStandardError("max_depth")
    >>> search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2, 3, 4]}, cv=10, refit=rule)
    >>> search.fit(*load_breast_cancer(return_X_y=True)).best_params_
    {'max_depth': 2}
    """

    parameter: str
    reverse: bool = False
    scoring: str = "score"

    def __call__(self, cv_results: Mapping[str, Any]) -> int:
        """Number of the candidate."""
        values = cv_results.get(f"param_{self.parameter}")
        if values is None:
            names = ", ".join(name.removeprefix("param_") for name in cv_results if name.startswith("param_"))
            raise ValueError(f"parameter={self.parameter!r} is not searched over; {names} are")
        mean, spread = (np.asarray(cv_results[f"{what}_test_{self.scoring}"]) for what in ("mean", "std"))
        folds = sum(name.startswith("split") and name.endswith(f"_test_{self.scoring}") for name in cv_results)
        mean = np.where(np.ma.getmaskarray(values), np.nan, mean)  # grids without the parameter
        best = int(np.nanargmax(mean))
        enough = np.flatnonzero(mean >= mean[best] - spread[best] / np.sqrt(max(folds - 1, 1)))
        sign = -1 if self.reverse else 1
        return int(min(enough, key=lambda i: (sign * (np.inf if values[i] is None else values[i]), -mean[i])))
