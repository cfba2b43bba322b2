"""C4.5: docstring, parameters, constants and recipe. May import everything below."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import column_or_1d

from gputree.backends import any_missing
from gputree.backends.protocol import Backend
from gputree.core.checks import countable
from gputree.core.criteria import Criterion
from gputree.core.forest import Forest, Test
from gputree.core.schema import Cuts, Kind, Schema
from gputree.core.splits import (
    MULTIWAY,
    ONE_AGAINST_REST,
    THRESHOLD,
    CutRule,
    Gate,
    GroupRule,
    Limits,
    Missing,
    Search,
    Stop,
)
from gputree.core.target import refined
from gputree.core.warned import warn
from gputree.engine.pruning import Collapse, ErrorBased, ReducedError, Rule
from gputree.engine.pruning.errors import check_j48
from gputree.engine.recipe import Recipe
from gputree.engine.soften import soft_bounds
from gputree.learners.grower import Prepared, Rows
from gputree.learners.held_out import cases_of
from gputree.learners.parameters import TREE_CONSTRAINTS
from gputree.learners.tasks import ClassifierTree

TAKEN = (  # parameters that are those of other trees
    *("categorical_features", "categories", "stopping", "max_depth", "max_bins"),
    *("validation_fraction", "random_state", "device", "verbose"),
)


@dataclass(frozen=True, slots=True)
class Constants:
    """Numbers that define C4.5 (Quinlan 1993, 1996), as J48 has them where the two programs differ.

    Weights are compared but for ``weight_slack`` cases. A side of a cut weighs ``side_share`` of the known weight a
    class, at most ``side_most``, or ``min_weight``; values nearer than ``value_gap`` are not parted. A test gains the
    mean of the node less ``gain_slack`` bits; its branches have an entropy above ``split_least`` bits, its score is
    above ``score_least``. Columns of ``many_values`` of the weight as categories do not count in the mean. Categories
    above ``group_present`` cases begin as groups; a merge raises the ratio by ``group_rise``, and better keeps the part
    ``group_gain`` of the gain.
    """

    weight_slack: float = 1e-6
    side_share: float = 0.1
    side_most: float = 25.0
    value_gap: float = 1e-5
    gain_slack: float = 1e-3
    split_least: float = 1e-3
    score_least: float = 0.0
    many_values: float = 0.3
    group_present: float = 0.5
    group_rise: float = 1e-5
    group_gain: float = 0.5


MOST_GROUPED = 1_000  # categories of a column
CONSTANTS = {"j48": Constants(), "c4.5": Constants(weight_slack=0.0, score_least=-1e-3)}


class C45Classifier(ClassifierTree):
    """Quinlan's C4.5: a classification tree with a branch for each category, grown by gain ratio.

    A column of categories has a branch for each, a numeric column two, at the largest value of the table that is not
    above the middle of the two values. Numbers are numeric, integers too, unless `categorical_features` names the
    column. The test of a node is the one of greatest gain ratio among those that gain at least as much as the mean of
    all; ties go to the lowest column. What a cut gains is reduced by log2(cuts tried) / N.

    A row with a missing value counts in no test of that column, and the gain is scaled by the share of the others; it
    then goes to every branch, with a part of its weight: `forest_.missing` is 65535.

    Numbers nearer than 1e-5 are not parted, as in C4.5 and J48: multiply a column of smaller steps. A numeric column
    without a larger one gets no test, and the fit warns of it.

    Weights count as cases, in `min_weight` and in the cost of cuts: multiplying all of them by a factor may change the
    tree. Parts of weights are rounded to 2**-52 of the whole weight.

    Parameters
    ----------
    criterion : {"gain_ratio", "entropy"}, default="gain_ratio"
        "entropy": the greatest gain is taken (the option ``-g`` of C4.5).
    min_weight : float, default=2.0
        Least weight of two branches of a test; numeric columns may ask for more, see `Constants`.
    max_depth : int, optional
        Greatest depth of a leaf; the root has depth 0.
    stopping : Rule, optional
        What else ends growth: `gputree.stopping`.
    pruning : {"error", "reduced_error"}, rule of `gputree.pruning` or None, default="error"
        "error": by the errors that are to be expected, see `gputree.pruning.ErrorBased`. "reduced_error": by those on
        rows that are kept back, see `gputree.pruning.ReducedError`; the tree is grown on the others. None: not at all.
    soft_thresholds : bool, default=False
        Whether a prediction near a threshold weighs both branches (the option ``-p`` of C4.5): up to a lower bound all
        of a row goes down the first, at the threshold a half, from an upper bound on nothing, and between these in
        proportion. The bounds are where the training errors of a test, were it moved there, exceed its own by one
        standard error. `apply`, importances and `C45Rules` keep to the thresholds themselves; `rules` and
        `gputree.pruning.prune` refuse such a tree.
    confidence : float, default=0.25
        Confidence of "error": the smaller, the more is cut. At most 0.5 with the constants of J48.
    subtree_raising : bool, default=True
        Whether "error" may put the heaviest branch of a test in its place.
    collapse : bool, default=True
        Whether tests whose branches make no fewer errors in the fit become leaves, before any pruning and also without,
        see `gputree.pruning.Collapse`.
    validation_fraction : float in (0, 1), default=1/3
        Share of the rows of each class, rounded down, that are kept back for a rule that asks for validation rows.
    random_state : int, RandomState or None
        Seed of the choice of these rows; None is 0. Nothing else is drawn.
    categorical_split : {"multiway", "grouped", "binary"}, default="multiway"
        "grouped": branches of categories are merged, two at a time, while that raises the gain ratio (the option ``-s``
        of C4.5); the column may be tested again below. Declared categories that a node has no rows of share a last
        branch. At most 1,000 categories a column: time grows with their cube.
        "binary": of a column of categories, the best of them against all others, met in the fit or not (the option
        ``-B`` of J48); the column may be tested again below.
    constants : {"j48", "c4.5"}, default="j48"
        Numbers of Weka's J48, or of C4.5 release 8 where these differ: J48 compares weights with a tolerance and takes
        no test that gains nothing. (C4.5 holds numbers in 32 bits, which is not imitated.)
    class_weight : dict, "balanced" or None
        Weights by class, times the weights of the rows.
    categorical_features, categories, max_bins, device, verbose : as in `DecisionTreeClassifier`
        The same names, meanings and defaults. Of columns with more than `max_bins` codes the threshold is the edge of a
        code.
    unknown : {"spread", "error"}, default="spread"
        What a prediction does with a value that is none of the categories: as with a missing one, or raise. To a
        "binary" test it is one of the others.

    Attributes
    ----------
    classes_ : array (n_classes,)
        Labels, as they were given.
    n_classes_, n_outputs_, n_features_in_, max_features_ : int
        Counts.
    feature_names_in_ : array of str
        Names of the columns, if X had any.
    stop_reason_ : array of str (n_nodes,)
        With ``stopping``: why each leaf is one.
    forest_ : Forest
        All fitted arrays.
    threshold_bounds_ : float64 array (n_nodes, 2)
        With ``soft_thresholds``: lower and upper bound of every threshold, which lies between them; NaN in other nodes.
    fit_info_ : FitInfo
        Where the fit ran, how much it visited and how long it took.

    References
    ----------
    Quinlan (1993), "C4.5: Programs for Machine Learning". Quinlan (1996), "Improved use of continuous attributes in
    C4.5", Journal of Artificial Intelligence Research 4:77-90. Raschka, STAT 479 chapter 6, 6.5.3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import C45Classifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = C45Classifier().fit(X, y)
    >>> model.get_depth(), model.get_n_leaves(), float(model.forest_.low[0])
    (4, 5, 0.6)
    """

    _criteria: ClassVar[tuple[str, ...]] = ("gain_ratio", "entropy")
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: TREE_CONSTRAINTS[name] for name in TAKEN},
        "min_weight": [Interval(Real, 0.0, None, closed="neither")],
        "pruning": [StrOptions({"error", "reduced_error"}), Rule, None],
        "soft_thresholds": ["boolean"],
        "confidence": [Interval(Real, 0.0, 1.0, closed="neither")],
        "subtree_raising": ["boolean"],
        "collapse": ["boolean"],
        "constants": [StrOptions(set(CONSTANTS))],
        "categorical_split": [StrOptions({"multiway", "grouped", "binary"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "unknown": [StrOptions({"spread", "error"})],
    }
    _asks_rows = True
    splitter: ClassVar[str] = "best"
    _saved: ClassVar[tuple[str, ...]] = (*ClassifierTree._saved, "threshold_bounds_")
    monotonic_cst = None

    def __init__(
        self,
        *,
        criterion: str = "gain_ratio",
        min_weight: float = 2.0,
        max_depth: int | None = None,
        stopping: Any = None,
        pruning: Any = "error",
        soft_thresholds: bool = False,
        confidence: float = 0.25,
        subtree_raising: bool = True,
        collapse: bool = True,
        validation_fraction: float = 1 / 3,
        random_state: int | np.random.RandomState | None = None,
        categorical_split: str = "multiway",
        constants: str = "j48",
        class_weight: Any = None,
        categorical_features: Any = "from_dtype",
        categories: dict[Any, Any] | None = None,
        unknown: str = "spread",
        max_bins: int | str | None = "auto",
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.criterion = criterion
        self.min_weight = min_weight
        self.max_depth = max_depth
        self.stopping = stopping
        self.pruning = pruning
        self.soft_thresholds = soft_thresholds
        self.confidence = confidence
        self.subtree_raising = subtree_raising
        self.collapse = collapse
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.categorical_split = categorical_split
        self.constants = constants
        self.class_weight = class_weight
        self.categorical_features = categorical_features
        self.categories = categories
        self.unknown = unknown
        self.max_bins = max_bins
        self.device = device
        self.verbose = verbose

    def _read_target(self, y: Any, n_rows: int) -> NDArray[np.int32]:
        """Class numbers (n, 1)."""
        if getattr(y, "shape", ())[1:] == (1,):
            y = column_or_1d(y, warn=True)
        labels = super()._read_target(y, n_rows)
        if labels.shape[1] > 1:
            raise ValueError(f"y has {labels.shape[1]} columns, and C4.5 takes one: fit a tree for each of them")
        return labels

    def _weighed(self, rows: Rows, schema: Schema) -> Rows:
        """Weights that can be parted, where a test may not know a value: a missing one, or one that it does not list.

        Such are categories that were not declared, once pruning puts a test in the place of one above.
        """
        countable("C4.5", rows.total_weight * rows.target.weights.unit)
        met_only = any(f.kind == Kind.CATEGORICAL and not f.declared for f in schema.features)
        if not (met_only and self.categorical_split != "binary") and not any_missing(rows.X):
            return rows
        target = refined(rows.target, rows.total_weight)
        finer = rows.target.weights.unit / target.weights.unit  # a power of two
        return replace(rows, target=target, total_weight=int(rows.total_weight * finer))

    def _recipe(self, criterion: Criterion, rows: Rows, schema: Schema) -> Recipe:
        """Limits, the cost of cuts and the gate, in units of weight."""
        self.max_features_ = schema.n_features
        categorical = ONE_AGAINST_REST if self.categorical_split == "binary" else MULTIWAY
        constants, unit = CONSTANTS[self.constants], rows.target.weights.unit
        case = 1.0 / unit
        slack, least = constants.weight_slack * case, self.min_weight * case
        share = constants.side_share / rows.target.layout.sizes[0]
        cuts = CutRule(case, share, least, constants.side_most * case, slack, constants.value_gap)
        info = constants.split_least if self.criterion == "gain_ratio" else 0.0
        limits = Limits(min_weight=int(np.ceil(least - slack)), heavy=2, min_info=info)
        many = constants.many_values * rows.total_weight * rows.target.weights.unit
        groups = self._groups(case, schema) if self.categorical_split == "grouped" else None
        averaged = np.array([f.kind == Kind.NUMERIC or len(f.categories) < many for f in schema.features], bool)
        return Recipe(
            search=Search((THRESHOLD, categorical), criterion, limits, Missing.SPREAD, cuts, groups),
            stop=Stop(self.max_depth, min_gain=-np.inf, above=constants.score_least, slack=int(slack)),
            gate=Gate(averaged if averaged.any() else ~averaged, constants.gain_slack),
        )

    def _edges(self, backend: Backend, rows: Rows, schema: Schema) -> tuple[Cuts, ...]:
        """Codes of the columns; those whose numbers are too near to be parted are named."""
        cuts, gap = super()._edges(backend, rows, schema), CONSTANTS[self.constants].value_gap
        for feature, cut in zip(schema.features, cuts, strict=True):
            near = cut.kind == Kind.NUMERIC and not (cut.values[:-1] < cut.values[1:] - gap).any()
            if near and cut.n_codes > 1:
                warn(
                    f"column {feature.name!r} has no neighbouring values further apart than {gap:g}, and C4.5 parts no "
                    "nearer ones: it is not tested; multiply the column so that its steps are larger"
                )
        return cuts

    def _groups(self, case: float, schema: Schema) -> GroupRule:
        """How categories are grouped, with so many units of weight a case."""
        for feature in schema.features:
            if len(feature.categories) > MOST_GROUPED:
                raise ValueError(
                    f"column {feature.name!r} has {len(feature.categories):,} categories, and categorical_split="
                    f"'grouped' takes {MOST_GROUPED:,}: join some of them, or give 'multiway'"
                )
        own = CONSTANTS[self.constants]
        return GroupRule(own.group_present * case, own.group_rise, own.group_gain)

    def _shaped(self, forest: Forest, ready: Prepared, cuts: tuple[Cuts, ...]) -> Forest:
        """Thresholds are values of the table."""
        low = forest.low.copy()
        for f, cut in enumerate(cuts):
            own = np.flatnonzero((forest.feature == f) & (forest.kind == Test.THRESHOLD))
            low[own] = cut.seen(low[own])
        return replace(forest, low=low)

    def _unpruned(self) -> Self:
        """The same, as it is grown."""
        settings = {"pruning": None, "collapse": False, "soft_thresholds": False}
        return clone(self).set_params(**settings)  # type: ignore[no-any-return]

    def _why_alone(self) -> str:
        """Trees are added up without bounds."""
        return (
            "trees of bags have hard thresholds: give soft_thresholds=False"
            if self.soft_thresholds
            else super()._why_alone()
        )

    def _pruner(self) -> Rule | None:
        """How the tree is pruned."""
        if self.pruning == "error":
            limit = "c45" if self.constants == "c4.5" else "j48"
            if limit == "j48":
                other = f"constants='c4.5', or pruning=ErrorBased({self.confidence!r}, 'binomial')"
                check_j48("confidence", self.confidence, "constants='j48'", other)
            return ErrorBased(self.confidence, limit, self.subtree_raising)
        return ReducedError() if self.pruning == "reduced_error" else self.pruning

    def _pruned(self, forest: Forest, ready: Prepared) -> Forest:
        """What the rules leave; the bounds of its thresholds."""
        if self.collapse:
            forest = Collapse()(self._fitted(forest, ready.rows.target))
        forest = super()._pruned(forest, ready)
        if self.soft_thresholds:
            fitted = self._fitted(forest, ready.rows.target)
            self.threshold_bounds_ = np.array(soft_bounds(fitted, cases_of(ready.rows)).T, order="C")
        return forest

    def _soft(self) -> NDArray[np.float64] | None:
        """Those of this fit."""
        return self.threshold_bounds_.T if hasattr(self, "threshold_bounds_") else None

    def __sklearn_tags__(self) -> Any:
        """One output."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = tags.classifier_tags.multi_label = False
        return tags
