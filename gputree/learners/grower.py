"""What all estimators share: validate, encode, grow, find leaves. May import everything below."""

from __future__ import annotations

import sys
import time
import traceback
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gputree.backends import choose, choose_or_cpu, wanted_device
from gputree.backends.arrays import device_number, on_device, to_host
from gputree.backends.oracle import dense
from gputree.backends.protocol import Backend, Codes, CodeSpec, DeviceError, heard
from gputree.core.checks import one_of
from gputree.core.criteria import CRITERIA, Criterion
from gputree.core.forest import Forest
from gputree.core.packed import Meaning, pack, unpack
from gputree.core.routes import branch_shares, steered
from gputree.core.schema import ALL_CODES, Cuts, Schema
from gputree.core.splits import MULTIWAY, RANDOM, RANDOM_SUBSET, SUBSET, THRESHOLD, Limits, Search, Stop
from gputree.core.target import Layout, Target
from gputree.engine.grow import Watch, grow
from gputree.engine.pruning import Cases, CostComplexity, Fitted, Needs, Rule, what_is_left
from gputree.engine.recipe import TABLE_BYTES, Order, Recipe
from gputree.engine.sampling import Sampler
from gputree.learners.held_out import check_rule, check_rule_parameters, wanted_cases
from gputree.learners.inputs import read_fit, read_predict, stays_on_device
from gputree.learners.labels import known_columns
from gputree.learners.parameters import (
    TREE_CONSTRAINTS,
    check_multiway,
    check_rule_kinds,
    check_subsets,
    count_features,
    fraction_of_rows,
    monotone_signs,
    seed_of,
    with_parameters_of_rules,
)
from gputree.learners.progress import FitInfo, say

CHANNELS = 16  # which a cell of NumPy's takes as long to count and score as one alone (measured: benchmarks/NOTES.md)
SLACK = 1.0 - 2.0**-40  # a least weight or decrease is met when only rounding is missing


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that take part in a fit, their target, and the numbers that limits are made of.

    ``held`` are rows kept back, by which the tree is pruned.
    """

    X: NDArray[Any]
    target: Target
    n_rows: int
    total_weight: int
    held: Cases | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a fit hands to the growth loop."""

    backend: Backend
    recipe: Recipe
    rows: Rows
    seed: int


def near(X: Any) -> int | None:
    """The device that holds a table, None for the host."""
    return device_number(X) if on_device(X) else None


@contextmanager
def released(backend: Backend) -> Iterator[None]:
    """Close a backend at the end; where the device fails or the user stops it, drop what the calls hold of it."""
    outer = sys.exc_info()[1]
    try:
        yield
    except (DeviceError, KeyboardInterrupt) as error:
        cause: BaseException | None = error
        seen = {id(outer)}
        while cause is not None and id(cause) not in seen:
            traceback.clear_frames(cause.__traceback__)
            seen.add(id(cause))
            cause = cause.__cause__ or cause.__context__
        raise
    finally:
        backend.close()


class Grower(BaseEstimator):
    """From a table and parameters to a forest; trees and forests say what they make of it."""

    _criteria: ClassVar[tuple[str, ...]]
    pruning: Any = None  # a rule, where a class has that parameter
    ccp_alpha: float = 0.0  # likewise
    n_jobs: int | None = None  # threads, where a class has no such parameter
    _saved: ClassVar[tuple[str, ...]] = ("_target_name", "pruned_by_")  # in a model file, if they are there
    _one_tree: ClassVar[bool] = False  # which rules may keep rows back from, and follow the rows of
    _integers_are_names: ClassVar[bool] = False  # whether a column of integers holds categories
    _parameter_constraints: ClassVar[dict[str, Any]] = TREE_CONSTRAINTS

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``pruning__alpha=0.1`` and the like give the model a rule that differs by it."""
        return super().set_params(**with_parameters_of_rules(self, params))  # type: ignore[no-any-return]

    def _fit_info(self, begin: float, ready: Prepared) -> FitInfo:
        """What the fit that has just ended did."""
        backend = ready.backend
        return FitInfo(
            backend.device,
            backend.name,
            self.forest_.max_depth + 1,
            backend.work.rows,
            backend.work.cells,
            time.perf_counter() - begin,
            backend.work.table_bytes,
            backend.table_bytes or ready.recipe.table_bytes,
            backend.note,
        )

    def _prepare(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Prepared:
        """Validate: everything that growth needs."""
        self.__dict__.pop("_target_name", None)  # of another fit
        self._check_parameters()
        seed = self._seed()  # drawn once, and handed on: a RandomState gives another number each time
        matrix, self.schema_ = self._table(X)
        labels = self._read_target(y, matrix.shape[0])
        weight = self._weights(labels, sample_weight, matrix.shape[0])
        criterion = CRITERIA[self.criterion]
        rows = self._weighed(self._rows(matrix, labels, weight, criterion, seed), self.schema_)
        check_rule(self._pruner(), rows.target.layout, self, rows.total_weight * rows.target.weights.unit)
        recipe = self._recipe(criterion, rows, self.schema_)
        backend = choose(self.device, self._cells(rows), near(rows.X), self.n_jobs, (rows.target.layout, recipe.search))
        return Prepared(backend, recipe, rows, seed)

    def _table(self, X: Any) -> tuple[Any, Schema]:
        """X of a fit as floats (n, F), and what its columns are."""
        return read_fit(self, X)

    def _cells(self, rows: Rows) -> int:
        """How much work a fit is: rows x columns x trees, times what many classes add."""
        return int(rows.X.shape[0]) * int(rows.X.shape[1]) * (1 + rows.target.layout.n_channels // CHANNELS)

    def _finish(self, ready: Prepared, work: Callable[[Prepared], None]) -> Prepared:
        """Do what a fit does on its backend; "auto" does it on the CPU where the device fails. Gives what was used."""
        try:
            with released(ready.backend), heard(say) if self.verbose else nullcontext():
                work(ready)
            return ready
        except DeviceError as error:
            if wanted_device(self.device)[0] != "auto":
                raise
            backend = choose("cpu", self._cells(ready.rows), None, self.n_jobs)
            backend.note = f"{ready.backend.device} was tried, but {error}"
        again = replace(ready, backend=backend)
        work(again)
        return again

    def _grown(self, ready: Prepared, watch: Watch | None) -> Forest:
        """Encode and grow."""
        codes, cuts = self._codes(ready)
        forest = grow(ready.backend, codes, ready.rows.target, ready.recipe, ready.seed, watch)
        return self._shaped(forest, ready, cuts)

    def _shaped(self, forest: Forest, ready: Prepared, cuts: tuple[Cuts, ...]) -> Forest:
        """A grown forest with thresholds and impurities as the learner has them; here as they are."""
        return forest

    def _codes(self, ready: Prepared) -> tuple[Codes, tuple[Cuts, ...]]:
        """Codes of the rows, on the backend's side, and what they mean."""
        backend, rows = ready.backend, ready.rows
        X = rows.X if backend.device != "cpu" else to_host(rows.X)
        cuts = self._edges(backend, replace(rows, X=X), self.schema_)
        return backend.encode(X, cuts), cuts

    @property
    def _asks_rows(self) -> bool:
        """Whether a grown tree is finished by the rows of its fit."""
        rule = self._pruner()
        return rule is not None and rule.needs is Needs.FIT

    def _pruner(self) -> Rule | None:
        """The rule that trees are pruned by; ``ccp_alpha`` stands for one."""
        return CostComplexity(float(self.ccp_alpha)) if self.ccp_alpha > 0.0 else self.pruning

    def _fitted(self, forest: Forest, target: Target) -> Fitted:
        """What rules read of grown trees."""
        return Fitted(forest, target.layout, target.weights.unit, self._shown(target.layout), self.schema_.kinds)

    def _pruned(self, forest: Forest, ready: Prepared) -> Forest:
        """What the rule of pruning leaves of trees, which all have the rows."""
        rule = self._pruner()
        fitted = self._fitted(forest, ready.rows.target)
        return forest if rule is None else what_is_left(rule, fitted, wanted_cases(rule, ready.rows))

    def _check_parameters(self) -> None:
        """Refuse a parameter by name, value and what is allowed."""
        hint = ""
        if isinstance(self.criterion, str) and self.criterion == "absolute_error":
            hint = "; the median is not a sum over rows, which every split here is scored from: use one of these"
        one_of("criterion", self.criterion, self._criteria, hint)
        check_rule_kinds(self)
        self._validate_params()
        check_rule_parameters(self)

    @abstractmethod
    def _read_target(self, y: Any, n_rows: int) -> NDArray[Any]:
        """Check y; class numbers i4 or numbers f8, (n, outputs)."""

    def _known_target(self, y: Any, n_rows: int, n_outputs: int) -> NDArray[Any]:
        """y of rows beside those of the fit: numbers, or class numbers among the classes of the fit, (outputs, n)."""
        known_columns(y, n_rows, n_outputs)
        return self._read_target(y, n_rows).T

    def _read_rows(self, X: Any, y: Any, n_outputs: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Rows beside those of the fit: as floats (n, F), and their y (outputs, n) as above."""
        matrix = dense(to_host(read_predict(self, X)))
        return matrix, self._known_target(y, matrix.shape[0], n_outputs)

    @abstractmethod
    def _weights(self, labels: NDArray[Any], weight: Any, n_rows: int) -> NDArray[np.float64] | None:
        """Weights of the rows f8 (n,), class weights included; None for ones."""

    @abstractmethod
    def _target(self, labels: NDArray[Any], criterion: Criterion, weight: NDArray[np.float64] | None) -> Target:
        """Channels of the rows that take part."""

    def _rows(
        self, X: NDArray[Any], labels: NDArray[Any], weight: NDArray[np.float64] | None, criterion: Criterion, seed: int
    ) -> Rows:
        """Leave out the rows of weight 0."""
        if weight is not None and not weight.all():
            keep, X = weight > 0, to_host(X)
            X, labels, weight = X[keep], labels[keep], weight[keep]
        target = self._target(labels, criterion, weight)
        units = target.weights.units
        return Rows(X, target, X.shape[0], X.shape[0] if units is None else int(units.sum()))

    def _weighed(self, rows: Rows, schema: Schema) -> Rows:
        """The rows in the unit of weight that the learner counts in; here as they are."""
        return rows

    def _edges(self, backend: Backend, rows: Rows, schema: Schema) -> tuple[Cuts, ...]:
        """Codes of the columns, from all rows."""
        most = ALL_CODES if self.max_bins is None else None if self.max_bins == "auto" else int(self.max_bins)
        return backend.edges(rows.X, CodeSpec(schema, most), rows.target.weights.units)

    def _recipe(self, criterion: Criterion, rows: Rows, schema: Schema) -> Recipe:
        """The row of parts that these parameters ask for."""
        least_weight = int(np.ceil(self.min_weight_fraction_leaf * rows.total_weight * SLACK))
        self._check_categories(criterion, schema)
        limits = Limits(
            fraction_of_rows(self.min_samples_leaf, rows.n_rows, 1),
            least_weight,
            monotone_signs(self.monotonic_cst, schema, self._n_values()),
            self.max_leaf_nodes,
        )
        self.max_features_ = count_features(self.max_features, schema.n_features)
        numeric, subset = (RANDOM, RANDOM_SUBSET) if self.splitter == "random" else (THRESHOLD, SUBSET)
        categorical = MULTIWAY if self.categorical_split == "multiway" else subset
        unit = rows.target.decrease_scale(criterion)  # 0 where the square of y is too small for a float
        least_gain = self.min_impurity_decrease * rows.total_weight / unit if unit else np.inf
        return Recipe(
            search=Search((numeric, categorical), criterion, limits),
            stop=Stop(
                self.max_depth,
                fraction_of_rows(self.min_samples_split, rows.n_rows, 2),
                least_gain * SLACK if self.min_impurity_decrease > 0 else -np.inf,
                self.max_leaf_nodes,
            ),
            order=Order.LEVEL if self.max_leaf_nodes is None else Order.BEST,
            sampler=Sampler(max_features=self.max_features_),
            table_bytes=TABLE_BYTES,
        )

    def _check_categories(self, criterion: Criterion, schema: Schema) -> None:
        """Refuse columns of more than two categories where no test of them can be found."""
        if self.categorical_split == "multiway":
            check_multiway(criterion, schema)
        elif self.splitter == "best":
            check_subsets(schema, self._why_no_subsets(), "splitter" in self.get_params(deep=False))

    @abstractmethod
    def _why_no_subsets(self) -> str:
        """Why the best subset of more than two categories cannot be found, empty if it can."""

    @abstractmethod
    def _n_values(self) -> int:
        """Free numbers that a leaf holds: a mean an output, or the classes but one."""

    def _seed(self) -> int:
        """The seed of a fit."""
        return seed_of(self.random_state)

    def _keep(self, forest: Forest, target: Target) -> None:
        """Store what a fitted model is made of."""
        self.forest_ = forest.lock()
        self.layout_ = target.layout
        self.weight_unit_ = target.weights.unit
        self.n_outputs_ = target.layout.n_outputs

    def _read(self, X: Any, check_input: bool) -> Any:
        """X of a prediction as backends take it."""
        check_is_fitted(self, "forest_")
        if check_input:
            return read_predict(self, X)
        if len(getattr(X, "shape", ())) != 2 or X.shape[1] != self.n_features_in_:
            shape = getattr(X, "shape", type(X).__name__)
            raise ValueError(f"X is {shape}, and check_input=False takes an array (n, {self.n_features_in_}) of floats")
        return X if stays_on_device(X) else to_host(X)

    def _leaves(self, X: Any, check_input: bool = True) -> NDArray[np.int32]:
        """Leaf of every row in every tree, i4 (n, T); where a test spreads rows, the heaviest branch has them."""
        X, forest = self._read(X, check_input), self.forest_
        if forest.spreads:
            forest = steered(forest, self.layout_.weight(forest.stats.T))
        return self._predicted(X, lambda backend, rows: backend.apply(forest, rows))

    def _sums(self, X: Any, forest: Forest, check_input: bool = True) -> NDArray[np.float64]:
        """Leaf values of all trees, added in order, f8 (n, O); where tests spread rows, by the shares of these."""
        X = self._read(X, check_input)
        if not forest.spreads:
            return self._predicted(X, lambda backend, rows: backend.predict(forest, rows))
        share, soft = branch_shares(forest, self.layout_.weight(forest.stats.T)), self._soft()
        return self._predicted(X, lambda backend, rows: backend.predict(forest, rows, share, soft))

    def _require_hard(self, why: str) -> None:
        """Refuse soft thresholds of the fit, whatever the parameters say by now."""
        if self._soft() is not None:
            raise ValueError(f"the tree was fitted with soft_thresholds=True: {why}")

    def _soft(self) -> NDArray[np.float64] | None:
        """Bounds of soft thresholds f8 (2, N), where a tree has some."""
        return None

    def _predicted(self, X: Any, work: Callable[[Backend, Any], NDArray[Any]]) -> NDArray[Any]:
        """What some work on rows gives; "auto" does it on the CPU where the device fails."""
        cells = X.shape[0] * X.shape[1] * self.forest_.roots.size
        backend = choose_or_cpu(self.device, cells, near(X), self.n_jobs)
        try:
            with released(backend):
                return work(backend, X if backend.device != "cpu" else to_host(X))
        except DeviceError:
            if wanted_device(self.device)[0] != "auto":
                raise
        return work(choose("cpu", cells, None, self.n_jobs), to_host(X))

    def fingerprint(self) -> str:
        """SHA-256 of the fitted arrays as hex: equal on every device for the same data, parameters and seed."""
        check_is_fitted(self, "forest_")
        return self.forest_.fingerprint()

    def _shown(self, layout: Layout) -> Criterion:
        """The criterion whose impurities nodes have."""
        return CRITERIA[self.criterion]

    def _meaning(self) -> Meaning:
        """What the arrays of the forest mean."""
        return Meaning(self.layout_, self.schema_, self._shown(self.layout_))

    def __getstate__(self) -> dict[str, Any]:
        """What pickle and copies keep: of the forest only what the rest of it does not give."""
        state = dict(super().__getstate__())
        if "forest_" in state:
            with suppress(
                ValueError, IndexError, AttributeError, KeyError
            ):  # a forest that was changed by hand stays whole
                state["forest_"] = pack(self.forest_, self._meaning())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The model again, its forest whole."""
        super().__setstate__(state)
        if isinstance(state.get("forest_"), dict):
            self.forest_ = unpack(state["forest_"], self._meaning()).lock()

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a forest."""
        return hasattr(self, "forest_")

    def __sklearn_tags__(self) -> Any:
        """NaN is allowed, sparse matrices, categories and several outputs too."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = True
        return tags
