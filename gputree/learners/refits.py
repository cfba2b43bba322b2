"""Fits of one model on many subsets of the rows of a table: single trees grow together. May import everything below."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from gputree.backends import choose
from gputree.backends.arrays import on_device
from gputree.backends.protocol import Codes, DeviceError
from gputree.core.bags import Listed
from gputree.core.criteria import CRITERIA
from gputree.core.forest import Forest
from gputree.core.keys import root_keys
from gputree.core.schema import Cuts, Kind
from gputree.core.target import Target, counting_rows, on_the_scale_of
from gputree.engine.grow import grow
from gputree.engine.pruning import nested
from gputree.engine.recipe import Recipe
from gputree.learners.extra_trees import ExtraTreeClassifier, ExtraTreeRegressor
from gputree.learners.grower import Prepared, Rows
from gputree.learners.inputs import read_fit
from gputree.learners.stopped import with_forest
from gputree.learners.trees import DecisionTreeClassifier, DecisionTreeRegressor

POSITIONS = 1 << 20  # rows in the subsets that are grown together
TOGETHER = (DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor)

T = TypeVar("T")
Subset = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Refit:
    """A fitted model, and what it predicts for rows (k,) of the table that it was fitted on a part of."""

    model: Any
    predict: Callable[[Subset], NDArray[Any]]


def refit_each(
    models: Sequence[Any], X: Any, y: Any, subsets: Sequence[Subset], use: Callable[[int, Refit], T]
) -> list[list[T]]:
    """What ``use`` makes of the number of each subset and of a clone of each model fitted on it, model by model.

    Each fit is what ``clone(model).fit(X[rows], y[rows])`` gives. Subsets of a single tree of this library are bags of
    one frontier, which grow together; models that differ in ``ccp_alpha`` alone are grown once.
    """
    found: list[list[T]] = []
    for alike in grown_alike(models):
        joint = Joint.of(alike[0], X, y, subsets)
        if joint is not None:
            found += joint.use_each([model.ccp_alpha for model in alike], subsets, use)
            continue
        for model in alike:
            fits = (clone(model).fit(_safe_indexing(X, rows), _safe_indexing(y, rows)) for rows in subsets)
            found.append([use(i, Refit(fitted, partial(predicted, fitted, X))) for i, fitted in enumerate(fits)])
    return found


def fit_each(models: Sequence[Any], X: Any, y: Any) -> Iterator[tuple[Any, float]]:
    """A clone of every model fitted on all rows of a table, and the seconds that it took.

    Models that differ in ``ccp_alpha`` alone are grown once: what each cuts is a part of what the next larger alpha
    does. Each counts the time of that growth, and of its own cut.
    """
    for alike in grown_alike(models):
        begin = time.perf_counter()
        if len(alike) == 1:
            yield clone(alike[0]).fit(X, y), time.perf_counter() - begin
            continue
        grown, alphas = clone(alike[0]).set_params(ccp_alpha=0.0).fit(X, y), [model.ccp_alpha for model in alike]
        forests = nested(grown.forest_, grown.layout_.weight(grown.forest_.stats.T), alphas)
        growth_seconds = time.perf_counter() - begin
        for alpha in alphas:
            begin = time.perf_counter()
            fitted = with_forest(grown, next(forests)).set_params(ccp_alpha=alpha)
            yield fitted, growth_seconds + time.perf_counter() - begin


def grown_alike(models: Sequence[Any]) -> list[list[Any]]:
    """Runs of models that are grown alike, and pruned by different ``ccp_alpha``; refuses parameters as a fit does."""
    runs: list[list[Any]] = []
    for model in models:
        if type(model) in TOGETHER:
            model._check_parameters()
        if runs and grows_like(model, runs[-1][0]):
            runs[-1].append(model)
        else:
            runs.append([model])
    return runs


def grows_like(model: Any, other: Any) -> bool:
    """Whether two models are equal but for ``ccp_alpha``; a rule of pruning may be a function, which has no hash."""
    if type(model) not in TOGETHER or type(other) is not type(model) or not model.pruning is other.pruning is None:
        return False
    given = ({name: v for name, v in own.get_params().items() if name != "ccp_alpha"} for own in (model, other))
    return len(set(map(joblib.hash, given))) == 1


def predicted(model: Any, X: Any, rows: Subset) -> NDArray[Any]:
    """Predictions for rows of a table."""
    return answers(model, _safe_indexing(X, rows))


def answers(model: Any, X: Any) -> NDArray[Any]:
    """Predictions, None where a model has none."""
    return np.asarray(getattr(model, "_answers", model.predict)(X))


@dataclass(frozen=True, slots=True)
class Joint:
    """A table whose subsets can be grown together; ``model`` has read it, ``labels`` (n, O) are classes or numbers."""

    model: Any
    labels: NDArray[Any]
    ready: Prepared
    cuts: tuple[Cuts, ...]

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, subsets: Sequence[Subset]) -> Joint | None:
        """None where a fit of a subset alone could differ, or where the table as a whole is refused.

        What stays the same: codes that are distinct values (a cut lies between those of the node), and thus all tests;
        draws, as every tree has the key of the first; channels, on the scale of the subset. Class weights and
        quantiles would be those of other rows.
        """
        if type(model) not in TOGETHER or getattr(model, "class_weight", None) is not None or on_device(X):
            return None
        if model.stopping is not None or model.pruning is not None:
            return None  # whose rules follow the rows of one tree
        if any_repeats(subsets) and (model.min_samples_leaf, model.min_samples_split) != (1, 2):
            return None  # these count copies of rows in a fit of its own
        joint = cls.read(clone(model), X, y, len(subsets))
        if joint is None:
            return None
        exact = all(cut.edges is None for cut in joint.cuts)
        if exact and joint.same_categories() and joint.positive(subsets):
            return joint
        joint.ready.backend.close()
        return None

    @classmethod
    def read(cls, model: Any, X: Any, y: Any, n_subsets: int) -> Joint | None:
        """Read the table as a fit does; None where that refuses it, for a subset may do without what is odd in it."""
        model._check_parameters()
        try:
            matrix, model.schema_ = read_fit(model, X)
            labels = model._read_target(y, matrix.shape[0])
        except (ValueError, TypeError):
            return None
        try:
            target = model._target(labels, CRITERIA[model.criterion], None)
            rows = Rows(matrix, target, labels.shape[0], labels.shape[0])
            recipe = model._recipe(CRITERIA[model.criterion], rows, model.schema_)
            backend = choose(
                model.device, model._cells(rows) * n_subsets, None, model.n_jobs, (target.layout, recipe.search)
            )
            cuts = model._edges(backend, rows, model.schema_)
        except (ValueError, DeviceError):
            return None
        seed = model._seed()
        model._root_key = int(root_keys(seed, 0))  # of every tree
        return cls(model, labels, Prepared(backend, recipe, rows, seed), cuts)

    def same_categories(self) -> bool:
        """Whether categories that a subset lacks make no difference: unknown ones are no error, none are drawn."""
        found = [f for f in self.model.schema_.features if f.kind == Kind.CATEGORICAL]
        drawn = self.model.splitter == "random" and not all(f.declared for f in found)
        return not found or not (self.model.unknown == "error" or drawn)

    def positive(self, subsets: Sequence[Subset]) -> bool:
        """Whether Poisson's criterion has a positive sum in every subset."""
        return self.model.criterion != "poisson" or all((self.labels[rows].max(axis=0) > 0).all() for rows in subsets)

    def use_each(
        self, alphas: Sequence[float], subsets: Sequence[Subset], use: Callable[[int, Refit], T]
    ) -> list[list[T]]:
        """Grow all subsets, some together; where a device fails, all of them on the CPU."""
        found: dict[tuple[int, int], T] = {}

        def work(ready: Prepared) -> None:
            codes = ready.backend.encode(ready.rows.X, self.cuts)
            for numbers in self.batches(subsets):
                target = self.target([subsets[i] for i in numbers])
                forest = self.grown(ready, codes, target, [subsets[i] for i in numbers])
                for t, number in enumerate(numbers):
                    for a, fitted in enumerate(self.pruned(forest.tree(t), target, alphas)):
                        found[a, number] = use(number, Refit(fitted, partial(self.predicted, fitted)))

        self.model._finish(self.ready, work)
        return [[found[a, number] for number in range(len(subsets))] for a in range(len(alphas))]

    def batches(self, subsets: Sequence[Subset]) -> Iterator[list[int]]:
        """Numbers of subsets of equal size and, for sums, of equal range of y: those have one scale."""
        groups: dict[Any, list[int]] = {}
        for number, rows in enumerate(subsets):
            y = None if self.ready.rows.target.sums is None else self.labels[rows]
            span = () if y is None else (y.min(axis=0).tobytes(), y.max(axis=0).tobytes())
            groups.setdefault((rows.size, span), []).append(number)
        for (size, _span), numbers in groups.items():
            step = max(1, POSITIONS // max(size, 1))
            for first in range(0, len(numbers), step):
                yield numbers[first : first + step]

    def grown(self, ready: Prepared, codes: Codes, target: Target, subsets: Sequence[Subset]) -> Forest:
        """The trees of some subsets."""
        listed = Listed(np.concatenate(subsets).astype(np.int64), np.cumsum([0, *map(len, subsets)]), alike=True)
        recipe = self.recipe(replace(ready.rows, target=target, n_rows=subsets[0].size, total_weight=subsets[0].size))
        recipe = replace(recipe, sampler=replace(recipe.sampler, n_trees=len(subsets), draws=listed))
        return grow(ready.backend, codes, target, recipe, ready.seed)

    def pruned(self, tree: Forest, target: Target, alphas: Sequence[float]) -> Iterator[Any]:
        """Fitted models of one tree, cut back by each of some alphas."""
        kept = nested(tree, target.layout.weight(tree.stats.T), alphas)
        for alpha, forest in zip(alphas, kept, strict=True):
            fitted = copy.copy(self.model)
            fitted.ccp_alpha = alpha
            fitted._keep(forest, target)
            yield fitted

    def recipe(self, rows: Rows) -> Recipe:
        """The recipe of subsets of a size."""
        recipe: Recipe = self.model._recipe(CRITERIA[self.model.criterion], rows, self.model.schema_)
        return recipe

    def target(self, subsets: Sequence[Subset]) -> Target:
        """Channels of all rows as each of the subsets would have them; other rows than theirs count for nothing."""
        target = self.ready.rows.target
        if target.sums is not None:
            own = self.labels[subsets[0]]
            first: Target = self.model._target(own, CRITERIA[self.model.criterion], None)
            target = on_the_scale_of(first, np.clip(self.labels, own.min(axis=0), own.max(axis=0)))
        return counting_rows(target) if any_repeats(subsets) else target

    def predicted(self, fitted: Any, rows: Subset) -> NDArray[Any]:
        """Predictions for rows of the table, which need not be read again."""
        return np.asarray(fitted.predict(self.ready.rows.X[rows], check_input=False))


def any_repeats(subsets: Sequence[Subset]) -> bool:
    """Whether a row is in a subset more than once."""
    return any(rows.size and np.bincount(rows).max() > 1 for rows in subsets)
