"""What forests share: bags, one frontier for all trees, out-of-bag estimates, trees as views.

May import everything below.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from gputree.backends.arrays import to_host
from gputree.core.bags import Bags, Draws
from gputree.core.criteria import Criterion
from gputree.core.forest import Forest, joined
from gputree.core.keys import root_keys
from gputree.core.schema import Cuts, Schema
from gputree.core.target import Layout, Target, counting_rows
from gputree.core.warned import warn
from gputree.engine.grow import Watch, grow
from gputree.engine.recipe import Recipe
from gputree.engine.sampling import FeatureDraws
from gputree.learners.bagging import Bagging, draws_of_a_bag, listed
from gputree.learners.callbacks import CallbackSupportMixin, begin_fit, begin_trees, end_fit, end_trees, with_callbacks
from gputree.learners.forest_looks import ForestLooks
from gputree.learners.grower import Prepared, Rows
from gputree.learners.growth import REASONS, StoppedGrower
from gputree.learners.held_out import of_a_bag
from gputree.learners.out_of_bag import CHECK, OutOfBag
from gputree.learners.parameters import TREE_CONSTRAINTS
from gputree.learners.progress import reporter
from gputree.learners.rows_of_fit import as_fitted, read_cases
from gputree.learners.warm_start import changed_parameters, remember

POSITIONS = 1 << 22  # rows in the bags of the trees that are grown together
DEVICE_POSITIONS = 1 << 26  # ... on a device, where each tree has a count for every row while bags are drawn
MOST_TREES = 2**31 - 1  # each has a node, and those are numbered in 32 bits
TREE_ATTRIBUTES = (
    *("schema_", "layout_", "weight_unit_", "n_outputs_", "n_features_in_", "feature_names_in_", "max_features_"),
    *("classes_", "n_classes_", "fit_info_", "pruned_by_"),
)
FOREST_CONSTRAINTS: dict[str, Any] = {
    **{name: rule for name, rule in TREE_CONSTRAINTS.items() if name != "splitter"},
    "n_estimators": [Interval(Integral, 1, MOST_TREES, closed="both")],
    "bootstrap": ["boolean"],
    "feature_draws": [StrOptions({how.value for how in FeatureDraws})],
    "oob_score": ["boolean", callable],
    "oob_tol": [Interval(Real, 0.0, None, closed="left"), None],
    "n_jobs": [Interval(Integral, None, -1, closed="right"), Interval(Integral, 1, None, closed="left"), None],
    "warm_start": ["boolean"],
    "max_samples": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, None, closed="neither"),
        None,
    ],
}


def handed_down(giver: Any, taker: Any, names: Iterable[str]) -> Any:
    """The taker, with those of some attributes that the giver has."""
    for name in names:
        if hasattr(giver, name):
            setattr(taker, name, getattr(giver, name))
    return taker


class BaseForest(CallbackSupportMixin, ForestLooks, StoppedGrower):
    """Many trees on drawn rows, with features drawn in every node."""

    _parameter_constraints: ClassVar[dict[str, Any]] = FOREST_CONSTRAINTS
    _saved: ClassVar[tuple[str, ...]] = (
        *StoppedGrower._saved,
        *REASONS,
        *("seed_", "n_rows_", "bagging_", "_grown_by"),
        *("oob_score_", "oob_errors_", "oob_decision_function_", "oob_prediction_"),
    )

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            As in `DecisionTreeClassifier.fit`.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            Labels of any sortable type, or finite numbers whose sums and differences are floats.
        sample_weight : array-like of shape (n_rows,), optional
            Finite weights >= 0, not all 0. With ``bootstrap=True`` the probabilities of the draws, else the weights of
            the rows in every tree.

        Returns
        -------
        self
        """
        begin = time.perf_counter()
        self._check_parameters()
        before = self._kept()
        stale = [name for name in self.__dict__ if name.startswith("oob_") and name.endswith("_")]
        for name in (*stale, "pruned_by_"):
            self.__dict__.pop(name, None)  # of another fit
        begin_fit(self, self.n_estimators - (0 if before is None else before["forest_"].roots.size))
        try:
            ready = self._prepare(X, y, sample_weight)
            if before is not None:
                self._check_same(before, ready)
                self._check_rows(X, y, sample_weight)
            remember(self, self._grows_by())
            self.seed_ = ready.seed
            ready = self._finish(ready, self._work(begin, None if before is None else before["forest_"]))
        except BaseException:
            self.__dict__.update(before or {})  # the trees that were there stay
            raise
        self.fit_info_ = self._fit_info(begin, ready)
        end_fit(self)
        return self

    def _work(self, begin: float, old: Forest | None) -> Callable[[Prepared], None]:
        """What a fit does on its backend."""
        watch = reporter(begin, self.n_estimators) if self.verbose else None

        def work(ready: Prepared) -> None:
            estimates = self._estimates(ready)
            self._keep(self._grown_on(ready, watch, old, estimates), ready.rows.target)
            self._score_out_of_bag(ready, estimates)

        return work

    def _kept(self) -> dict[str, Any] | None:
        """What a warm start goes on from; otherwise forget the trees."""
        if not (self.warm_start and hasattr(self, "forest_")):
            self.__dict__.pop("forest_", None)
            return None
        if self.n_estimators < self.forest_.roots.size:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to the {self.forest_.roots.size} trees "
                "that are there when warm_start==True"
            )
        names = (*self._saved, "_told_apart")
        return {name: value for name, value in self.__dict__.items() if name.endswith("_") or name in names}

    def _check_same(self, before: dict[str, Any], ready: Prepared) -> None:
        """A warm start adds trees of the same table and parameters: what the old ones were made of must be there."""
        if "pruned_by_" in before:
            raise ValueError(
                f"warm_start=True adds trees to those that {before['pruned_by_']} has left, and the new ones would not "
                "be pruned: fit with warm_start=False, and prune all trees"
            )
        target, now = ready.rows.target, self.__dict__
        names = changed_parameters(before, self._grows_by())
        rows = before["layout_"].count(before["forest_"].stats[:1].T)[0]  # of positive weight, where all trees have all
        pairs = {
            "columns of X": (before["schema_"], now["schema_"]),
            "classes of y": (listed(before.get("classes_")), listed(now.get("classes_"))),
            "kind of y or weights": (before["layout_"], target.layout),
            "unit of the weights": (before["weight_unit_"], target.weights.unit),
            "rows or draws": tuple(
                n if kept["bagging_"] is None else listed(kept["bagging_"])
                for kept, n in ((before, rows), (now, ready.rows.n_rows))
            ),
            "seed": (before["seed_"], ready.seed),
        }
        if "_grown_by" not in before:  # a file of earlier versions
            pairs["rule of stopping"] = before.get("_stop_words"), self._stop_texts()
        changed = [name for name, (old, new) in pairs.items() if old != new] + [f"parameter {name}" for name in names]
        if changed:
            raise ValueError(
                f"warm_start=True adds trees of the same table and parameters, and the {' and the '.join(changed)} "
                "changed: give those of the first fit, or fit with warm_start=False"
            )

    def _check_rows(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> None:
        """A warm start adds trees of the same rows, which those that are there tell from others."""
        if y is None or issparse(X):  # trees that learn no y; a dense table of the rows may be too large
            return
        try:
            next(as_fitted(self, read_cases(self, X, y, sample_weight)))
        except ValueError as error:
            raise ValueError(
                f"warm_start=True adds trees of the rows of the first fit, and these are others ({error}): give those "
                "of the first fit, or fit with warm_start=False"
            ) from error

    def _grows_by(self) -> dict[str, Any]:
        """The parameters that trees must have in common, and others."""
        given: dict[str, Any] = self.get_params(deep=False)
        return given

    def _prepare(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Prepared:
        """Validate; the rows of positive weight, and how bags are drawn from them."""
        if (self.oob_score or self.oob_tol is not None) and not self.bootstrap:
            raise ValueError("Out of bag estimation only available if bootstrap=True")
        return super()._prepare(X, y, sample_weight)

    def _cells(self, rows: Rows) -> int:
        """Of all trees."""
        return super()._cells(rows) * int(self.n_estimators)

    def _rows(
        self, X: NDArray[Any], labels: NDArray[Any], weight: NDArray[np.float64] | None, criterion: Criterion, seed: int
    ) -> Rows:
        """Rows of every tree alike, or draws."""
        if self.bootstrap:
            return self._drawn(X, labels, weight, criterion)
        if self.max_samples is not None:
            raise ValueError("`max_sample` cannot be set if `bootstrap=False`: a tree then has all rows; leave it out")
        self.bagging_: Bagging | None = None
        self.n_rows_ = X.shape[0]
        return super()._rows(X, labels, weight, criterion, seed)

    def _drawn(
        self, X: NDArray[Any], labels: NDArray[Any], weight: NDArray[np.float64] | None, criterion: Criterion
    ) -> Rows:
        """Rows of a tree are drawn from those of positive weight; weights are the probabilities."""
        n, kept = X.shape[0], None
        sizes, strata = self._sizes(labels, weight)
        if weight is not None and not weight.all():
            kept = np.flatnonzero(weight)
            X, labels, weight = to_host(X)[kept], labels[kept], weight[kept]
            strata = None if strata is None else strata[kept]
        self.n_rows_ = n
        self.bagging_, total = Bagging(n, kept, sizes, weight, strata, self.bootstrap), int(sizes.sum())
        return Rows(X, counting_rows(self._bag_target(labels, criterion, total)), X.shape[0], total)

    def _sizes(
        self, labels: NDArray[Any], weight: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """Draws of a bag (S,), and from which of S strata every row (n,) is drawn; None for one of all rows."""
        return np.array([draws_of_a_bag(self.max_samples, labels.shape[0], weight)], np.int64), None

    @abstractmethod
    def _bag_target(self, labels: NDArray[Any], criterion: Criterion, draws: int) -> Target:
        """Channels of rows that are drawn so often in all."""

    def _recipe(self, criterion: Criterion, rows: Rows, schema: Schema) -> Recipe:
        """The recipe of every tree."""
        return self._drawing(super()._recipe(criterion, rows, schema))

    def _drawing(self, recipe: Recipe) -> Recipe:
        """A recipe with the forest's draws."""
        draws = None if self.bagging_ is None else self.bagging_.draws()
        how = FeatureDraws(self.feature_draws)
        return replace(recipe, sampler=replace(recipe.sampler, draws=draws, feature_draws=how))

    def _grown_on(self, ready: Prepared, watch: Watch | None, old: Forest | None, estimates: OutOfBag | None) -> Forest:
        """Encode, and grow the trees that are not there yet, some together."""
        self._begin_reasons(old)
        have, parts = (0, []) if old is None else (int(old.roots.size), [old])
        if old is not None and have == self.n_estimators:
            warn("Warm-start fitting without increasing n_estimators does not fit new trees.")
        if old is not None and estimates is not None:
            estimates.add(old)
        enough = have == self.n_estimators or (estimates is not None and estimates.settled())
        grown = None if enough else self._growing(ready, watch)
        together = self._together(ready)
        while grown is not None and have < self.n_estimators and not enough:
            until_check = CHECK - have % CHECK if self.oob_tol is not None else together
            n_trees = min(together, until_check, self.n_estimators - have)
            tasks = begin_trees(self, n_trees)
            parts.append(grown(range(have, have + n_trees)))
            have, enough = have + n_trees, end_trees(self, tasks)
            if estimates is not None:
                estimates.add(parts[-1])
                enough |= estimates.settled()
        return joined(parts)

    def _growing(self, ready: Prepared, watch: Watch | None) -> Callable[[range], Forest]:
        """What grows the trees of some numbers together."""
        backend, target, recipe, (codes, cuts) = ready.backend, ready.rows.target, ready.recipe, self._codes(ready)

        def grown(trees: range) -> Forest:
            own = replace(recipe, sampler=replace(recipe.sampler, first=trees[0], n_trees=len(trees)))
            forest = grow(backend, codes, target, own, self.seed_, watch)
            kept = self._finished(forest, trees, ready, cuts)
            self._add_reasons(own, target.layout, forest, kept)
            return kept

        return grown

    def _finished(self, forest: Forest, trees: range, ready: Prepared, cuts: tuple[Cuts, ...]) -> Forest:
        """Trees of these numbers as they are kept: each as a fit of its rows alone prunes it."""
        if self.bagging_ is None or not self._asks_rows:
            return self._pruned(forest, ready)
        return joined([self._pruned(forest.tree(i), self._alone(ready, t)) for i, t in enumerate(trees)])

    def _alone(self, ready: Prepared, t: int) -> Prepared:
        """The same with the rows of one tree, where such trees ask for them."""
        if self.bagging_ is None or not self._asks_rows:
            return ready
        return replace(ready, rows=of_a_bag(ready.rows, Bags(1, t, self.seed_, ready.recipe.sampler.draws)))

    def _together(self, ready: Prepared) -> int:
        """Trees that are grown together, so that they fit caches, or a device, which lists all rows for each."""
        n, draws = ready.rows.n_rows, ready.recipe.sampler.draws
        drawn = min(draws.total, n) if isinstance(draws, Draws) else n
        return max(1, POSITIONS // max(drawn, 1) if ready.backend.device == "cpu" else DEVICE_POSITIONS // n)

    def _seed(self) -> int:
        """As of a tree; a stream of seeds gives one for all trees that a warm start adds."""
        one = self.random_state is None or isinstance(self.random_state, Integral)
        return super()._seed() if one or not hasattr(self, "forest_") else self.seed_

    # -- trees

    @property
    def estimator_(self) -> Any:
        """A tree without a fit."""
        return self._tree_class()()

    @abstractmethod
    def _tree_class(self) -> Any:
        """The estimator of single trees."""

    def _unfitted(self) -> Any:
        """A tree without a fit, with the forest's parameters."""
        cls = self._tree_class()
        names = [name for name in cls().get_params() if hasattr(self, name) and name != "random_state"]
        return cls(**{name: getattr(self, name) for name in names}, random_state=self.seed_)

    def _tree(self, t: int) -> Any:
        """Tree t as an estimator."""
        model = handed_down(self, self._unfitted(), TREE_ATTRIBUTES)
        model.forest_, model._root_key = self.forest_.tree(t).lock(), int(root_keys(self.seed_, t))
        self._tell_reasons(model, t)
        return model

    @property
    def estimators_samples_(self) -> list[NDArray[np.int64]]:
        """Rows of every tree in the order of their draws, drawn anew at each call."""
        check_is_fitted(self, "forest_")
        return [self._bag(t) for t in range(self.forest_.roots.size)]

    def _bag(self, t: int) -> NDArray[np.int64]:
        """Rows of one tree's bag, as they were given."""
        if self.bagging_ is None:
            return np.arange(self.n_rows_)
        return self.bagging_.original(Bags(1, t, self.seed_, self.bagging_.draws()).drawn(0))

    @property
    def _values(self) -> NDArray[np.float64]:
        """What nodes are shown with, as of a tree."""
        values: NDArray[np.float64] = self.forest_.value
        return values

    # -- out of bag

    def _estimates(self, ready: Prepared) -> OutOfBag | None:
        """What collects out-of-bag estimates, if they are asked for."""
        if self.bagging_ is None or not (self.oob_score or self.oob_tol is not None):
            return None
        return OutOfBag(self, ready.backend, ready.rows, self.bagging_.draws())

    def _score_out_of_bag(self, ready: Prepared, estimates: OutOfBag | None) -> None:
        """Set what `oob_score` asks for."""
        if estimates is not None:
            self.oob_errors_ = np.array(estimates.errors)
        if self.oob_score and self.bagging_ is not None and estimates is not None:
            self._keep_out_of_bag(estimates.mean(), ready.rows.target, self.bagging_)

    def _ends(self, forest: Forest, layout: Layout) -> NDArray[np.float64]:
        """What rows that end in a node are told by its tree, f8 (N, O)."""
        return forest.value

    def _votes(self, told: NDArray[np.float64]) -> NDArray[np.float64]:
        """What a tree adds to predictions for rows, or nodes, that are told this (M, O)."""
        return told

    @abstractmethod
    def _keep_out_of_bag(self, mean: NDArray[np.float64], target: Target, bagging: Bagging) -> None:
        """Set the attributes of out-of-bag estimates from means (rows of positive weight, O)."""
