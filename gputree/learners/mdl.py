"""Trees of minimum description length: docstring, parameters and recipe. May import everything below."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from gputree.core.checks import countable
from gputree.core.criteria import Criterion
from gputree.core.description import CODES, MessageParts, label_bits
from gputree.core.forest import Forest, Test
from gputree.core.schema import Cuts, Schema
from gputree.engine.pruning import Cases, DescriptionLength
from gputree.engine.pruning.lengths import CUTS, prune_by_length
from gputree.engine.recipe import Recipe
from gputree.learners.grower import Prepared, Rows
from gputree.learners.held_out import cases_of
from gputree.learners.parameters import TREE_CONSTRAINTS
from gputree.learners.rows_of_fit import fitted_of
from gputree.learners.stopped import numbers_left
from gputree.learners.tasks import ClassifierTree

SHARED = (
    *("max_depth", "min_samples_split", "min_samples_leaf", "stopping", "pruning", "validation_fraction"),
    *("categorical_features", "categories", "unknown", "max_bins", "device", "verbose"),
)


class MDLTreeClassifier(ClassifierTree):
    """A classification tree that makes the shortest message: the tree, and the rows that it gets wrong.

    Somebody knows the columns of all rows and is to be sent their classes. A tree that says much about them shortens
    the message by more than it costs itself; what does not is left out, without rows set aside for the decision.

    Grown to purity: a node takes the test whose node and leaves cost least, even where the message becomes longer. Then
    pruned from the tips up: a branch becomes a leaf where the message does not become longer. Categories have a branch
    each, and are tested once on a path; a node that tests one of A columns pays log2 A bits, a cut among u candidates
    (missing values on either side of each, and missing against known, where a node has missing values) log2 u more.

    Growth looks at one test at a time and is no search: where tests say something together and none of them alone, as
    in "x2 if x1, else x3", a shorter message than that of the tree can exist.

    Parameters
    ----------
    code : {"quinlan-rivest", "wallace-patrick"}, default="quinlan-rivest"
        "quinlan-rivest": a bit says whether a node is a leaf; a leaf names its class and which rows have others.
        "wallace-patrick": a node with r siblings, itself included, has a test with probability 1/r, and the classes of
        a leaf's rows are sent by their frequencies so far.
    tree_weight : float, default=1.0
        What a bit of the tree counts: above 1 makes smaller trees.
    exception_weight : float, default=1.0
        What a bit of the exceptions counts: above 1 makes larger trees.
    numeric_cuts : {"all", "sqrt"}, default="all"
        "sqrt": of u cuts only sqrt(u), equally spaced, are tried and paid for.
    prune : bool, default=True
        Whether the grown tree is pruned by the message.
    max_depth : int, optional
        Greatest depth of a leaf; the root has depth 0.
    min_samples_split : int or float, default=2
        Least rows of a node that is split; a float is a share of the rows, rounded up. Rows of weight 0 do not count.
    min_samples_leaf : int or float, default=1
        Least rows of a leaf, in the same way.
    stopping : Rule, optional
        What else ends growth; see `gputree.stopping`.
    pruning, validation_fraction : as in `DecisionTreeClassifier`
        Another rule than the message, with ``prune=False``; rows are kept back by a hash of the seed 0.
    categorical_features : "from_dtype", array-like of int, str or bool, or None, default="from_dtype"
        Columns that hold categories: by their type (category, Enum, dictionary, string, boolean), by number or name, or
        by a mask. None: none.
    categories : dict, optional
        Column name or number -> its possible values in order. A declared category has a branch, and costs a leaf, also
        where no row has it.
    unknown : {"majority", "error"}, default="majority"
        What a prediction does with a value that is none of the categories: follow the child of larger training weight,
        or raise.
    max_bins : int, None or "auto", default="auto"
        Most known codes of a feature; as in `DecisionTreeClassifier`.
    device : {"auto", "cpu", "numpy", "jit", "cuda", "cuda:<number>"}, default="auto"
        Where rows are counted and parted, and where to predict; the bits of tests are computed on the host.
    verbose : int, default=0
        Print a line a level to stderr.

    Attributes
    ----------
    description_length_ : MessageParts
        Bits of the tree (``structure``, ``attributes``, ``classes``, with the sum ``tree``), of the ``exceptions`` and
        in ``total``, unweighted; beside them ``labels``, what the classes cost without a tree.
    classes_ : array (n_classes,)
        Labels, as they were given.
    n_classes_, n_features_in_ : int
        Counts.
    feature_names_in_ : array of str
        Names of the columns, if X had any.
    stop_reason_ : array of str (n_nodes,)
        With ``stopping``: why each leaf is one.
    forest_ : Forest
        All fitted arrays.
    fit_info_ : FitInfo
        Where the fit ran, how much it visited and how long it took.

    References
    ----------
    Quinlan and Rivest (1989), "Inferring decision trees using the minimum description length principle", Information
    and Computation 80:227-248; more than two classes, and cuts of numbers, are coded as described above. Wallace and
    Patrick (1993), "Coding decision trees", Machine Learning 11:7-22. Nilsson, "Introduction to Machine Learning",
    6.4.4.

    Examples
    --------
    Quinlan's 14 days: whatever is tested, the tree costs more than it saves.

    >>> from gputree import MDLTreeClassifier
    >>> from gputree.datasets import load_weather
    >>> table = load_weather()
    >>> X, y = table.to_frame("pandas").drop(columns="play"), table.column("play")
    >>> model = MDLTreeClassifier().fit(X, y)
    >>> model.get_n_leaves(), round(model.description_length_.total, 3), model.description_length_.labels
    (1, 15.967, 14.0)
    """

    criterion: ClassVar[str] = "entropy"  # of the impurities of nodes, in bits
    splitter: ClassVar[str] = "best"
    categorical_split: ClassVar[str] = "multiway"
    max_features: ClassVar[None] = None
    random_state: ClassVar[None] = None
    max_leaf_nodes: ClassVar[None] = None
    monotonic_cst: ClassVar[None] = None
    class_weight: ClassVar[None] = None
    min_weight_fraction_leaf: ClassVar[float] = 0.0
    min_impurity_decrease: ClassVar[float] = 0.0
    _asks_rows = True
    _saved: ClassVar[tuple[str, ...]] = (*ClassifierTree._saved, "_tests")
    _tests: NDArray[np.float64]  # (N,) of its column that each test was chosen among, 0 in leaves
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: rule for name, rule in TREE_CONSTRAINTS.items() if name in SHARED},
        "code": [StrOptions(set(CODES))],
        "tree_weight": [Interval(Real, 0.0, None, closed="neither")],
        "exception_weight": [Interval(Real, 0.0, None, closed="neither")],
        "numeric_cuts": [StrOptions(set(CUTS))],
        "prune": ["boolean"],
    }

    def __init__(
        self,
        *,
        code: str = "quinlan-rivest",
        tree_weight: float = 1.0,
        exception_weight: float = 1.0,
        numeric_cuts: str = "all",
        prune: bool = True,
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        stopping: Any = None,
        pruning: Any = None,
        validation_fraction: float = 1 / 3,
        categorical_features: ArrayLike | str | None = "from_dtype",
        categories: dict[Any, Any] | None = None,
        unknown: str = "majority",
        max_bins: int | str | None = "auto",
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.code = code
        self.tree_weight = tree_weight
        self.exception_weight = exception_weight
        self.numeric_cuts = numeric_cuts
        self.prune = prune
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.stopping = stopping
        self.pruning = pruning
        self.validation_fraction = validation_fraction
        self.categorical_features = categorical_features
        self.categories = categories
        self.unknown = unknown
        self.max_bins = max_bins
        self.device = device
        self.verbose = verbose

    @property
    def description_length_(self) -> MessageParts:
        """Bits of the message."""
        check_is_fitted(self, "forest_")
        if "_tests" not in vars(self):
            raise AttributeError(
                "description_length_ is not known where pruning put a branch in the place of its test; fit again, or "
                "prune by a rule that only cuts"
            )
        forest = self.forest_
        bits = self._rule().bits(fitted_of(self), self._tests, self.n_features_in_)
        rows = float(self.layout_.weight(forest.stats[0])) * self.weight_unit_
        return bits.total(forest.kind == Test.LEAF, label_bits(rows, self.layout_.sizes[0]))

    def _rule(self) -> DescriptionLength:
        """The rule that these parameters ask for."""
        return DescriptionLength(float(self.tree_weight), float(self.exception_weight), self.code, self.numeric_cuts)

    def _recipe(self, criterion: Criterion, rows: Rows, schema: Schema) -> Recipe:
        """Tests by their bits, a column of categories once on a path."""
        unit = rows.target.weights.unit
        countable("the message", rows.total_weight * unit)
        recipe = super()._recipe(self._rule().lengths(unit), rows, schema)
        limits = replace(recipe.search.limits, least_met=1)
        return replace(recipe, search=replace(recipe.search, limits=limits), sampler=replace(recipe.sampler, once=True))

    def _shaped(self, forest: Forest, ready: Prepared, cuts: tuple[Cuts, ...]) -> Forest:
        """As it is; counts the tests that each was chosen among."""
        self._tests = self._rule().tests(forest, coded(cases_of(ready.rows), cuts))
        return forest

    def _check_parameters(self) -> None:
        """And one rule of pruning at most."""
        super()._check_parameters()
        if self.prune and self.pruning is not None:
            raise ValueError(
                f"pruning={self.pruning!r} and prune=True are two rules of pruning: give prune=False, or leave the "
                "other out"
            )

    def _pruned(self, forest: Forest, ready: Prepared) -> Forest:
        """What the message leaves, or another rule."""
        kept = self._shortened(forest, ready) if self.prune else super()._pruned(forest, ready)
        tests = self._tests if kept is forest else numbers_left(self._tests, forest, kept)
        del self._tests
        if tests is not None:
            self._tests = tests
        return kept

    def _shortened(self, forest: Forest, ready: Prepared) -> Forest:
        """Pruned from the tips up, where the message does not become longer."""
        target, rule = ready.rows.target, self._rule()
        fitted = self._fitted(forest, target)
        bits = rule.bits(fitted, self._tests, ready.rows.X.shape[1])
        return prune_by_length(forest, bits, rule.lengths(fitted.unit))

    def _unpruned(self) -> Self:
        """The same without pruning."""
        return clone(self).set_params(prune=False, pruning=None)  # type: ignore[no-any-return]

    def _read_target(self, y: Any, n_rows: int) -> Any:
        """One output."""
        labels = super()._read_target(y, n_rows)
        if labels.shape[1] > 1:
            raise ValueError(f"y has {labels.shape[1]} outputs, and a message holds one; fit a tree for each")
        if len(getattr(y, "shape", ())) > 1:
            column_or_1d(labels, warn=True)  # scikit-learn's word on a column where a list is meant
        return labels

    def __sklearn_tags__(self) -> Any:
        """One output."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        tags.classifier_tags.multi_label = False
        return tags


def coded(cases: Cases, cuts: tuple[Cuts, ...]) -> Cases:
    """The cases with one value a code where codes are quantiles: growth tells no more apart."""
    binned = [f for f, cut in enumerate(cuts) if cut.edges is not None]
    if not binned:
        return cases
    X = cases.X.astype(np.float64)
    for f in binned:
        code = cuts[f].code_of(cases.X[:, f]).astype(np.intp)
        X[:, f] = np.where(code > 0, cuts[f].values[np.maximum(code, 1) - 1], np.nan)
    return replace(cases, X=X)
