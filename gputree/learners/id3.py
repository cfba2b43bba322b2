"""The ID3 family of multiway trees: docstring, parameters and recipe. May import everything below."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, column_or_1d

from gputree.backends.arrays import in_kind, to_host
from gputree.core.checks import row_number
from gputree.core.criteria import CRITERIA, Criterion, Entropy
from gputree.core.forest import Forest, Test
from gputree.core.schema import Cuts, Feature, Kind, Schema
from gputree.core.splits import MULTIWAY, THRESHOLD, Limits, Search, Stop
from gputree.core.summary import count_impurity
from gputree.core.target import Layout
from gputree.engine.recipe import Recipe
from gputree.engine.sampling import Sampler
from gputree.learners.grower import Prepared, Rows
from gputree.learners.inputs import read_fit
from gputree.learners.parameters import TREE_CONSTRAINTS
from gputree.learners.tasks import ClassifierTree

TWO_VALUES = ("binary", "generate-tree")  # variants whose columns have two values
FROM_PARENT = ("dtl", "learn-dt")  # variants that say what an empty branch predicts
SHARED = (
    *("max_depth", "stopping", "ccp_alpha", "pruning", "validation_fraction", "categorical_features", "categories"),
    *("max_bins", "device", "verbose"),
)


class ID3Classifier(ClassifierTree):
    """A classification tree of the ID3 family: a test has a branch for each value of a column.

    Columns of integers, booleans, strings and categories hold names of values. A column has the values that its type
    or ``categories`` declares, else those met in the fit; each has a branch wherever the column is tested, rows or not.
    Growth ends where a node is pure or has no column left that parts its rows, not where no test has a gain: exclusive
    or is learnt. The gain of a node of weight n, times n, is rounded to a multiple of 2**-40 of the least power of two
    not below n log2(n); equal multiples are ties, and go to the first column, of thresholds to the lowest. Majorities
    of equal weight are those of the first class. Programs that compare rounded sums break ties by their noise: of five
    equal columns of the restaurant Weka's Id3 takes another than the first.

    Parameters
    ----------
    variant : {"id3", "binary", "dtl", "learn-dt", "generate-tree"}, default="id3"
        Whose pseudo-code. All grow the same tree where all columns have two values and every node has a gain.

        - "id3": Quinlan's, a branch a value.
        - "binary": that of Shalev-Shwartz and Ben-David: columns have two values, and the branch of the greater one (1,
          True) comes first.
        - "dtl": DTL(X, Y, features, probs) of the lecture notes: an empty branch has the class shares of its parent.
        - "learn-dt": LEARN-DT of Russell and Norvig: an empty branch has the plurality of its parent.
        - "generate-tree": GenerateTree of Raschka: columns have two values, the branch of the smaller one comes first,
          and a node is a leaf where no test has a gain above 0.
    empty : {"parent", "null"}, default="parent"
        What a branch without rows predicts, and likewise a value at a node that the column did not have in the fit.
        "parent": what the node above predicts. "null", as in Quinlan's paper and Weka: nothing: `predict_proba` is NaN
        there, `predict` raises, `score` counts such rows as errors, and pictures say null. Not for "dtl" and
        "learn-dt".
    literal_empty : label, optional
        The class that these predict instead. Read to the letter, the listing of Shalev-Shwartz and Ben-David gives 1:
        all rows of an empty set are labelled 1.
    constant : {"skip", "test"}, default="skip"
        Whether a node tests columns in which its rows have one value. Listings that take the column of largest gain
        test them, to the letter, where all gains are 0 and they come first; the test costs nodes and parts nothing. A
        column is tested once on a path then. Columns that have one value in all are never tested.
    numeric : {"refuse", "thresholds"}, default="refuse"
        Columns of real numbers are refused, or asked whether x <= t. This is the reduction to indicator columns x < t,
        one for each t between neighbouring values (Shalev-Shwartz and Ben-David, 18.2.3): a used indicator parts
        nothing below, and the others remain. Only a later value that equals t goes the other way here.
    criterion : {"entropy", "gini", "train_error", "gain_ratio"}, default="entropy"
        What the gain of a test is the decrease of; "gain_ratio" divides that of the entropy by that of the branches.
    base : float or "classes", default=2
        Base of the logarithm of the entropies that the tree shows (``tree_.impurity``, `plot_tree`): 2 gives bits,
        "classes" (their number, as in the lecture notes of DTL) a scale from 0 to 1. All gains change by one factor:
        the tree is the same.
    max_depth : int, optional
        Greatest depth of a leaf, the root has depth 0; at the limit stands the majority.
    stopping : Rule, optional
        What else ends growth: `gputree.stopping`.
    ccp_alpha : float, default=0.0
        Collapse what minimal cost-complexity pruning finds too weak; the historical learners do not prune.
    pruning, validation_fraction : as in `DecisionTreeClassifier`
        The same names, meanings and defaults; rows are kept back by a hash of the seed 0.
    categorical_features : "from_dtype", array-like of int, str or bool, or None, default="from_dtype"
        Columns that hold names of values: by their type (integers too), by number or name, or by a mask; all others
        are real numbers then.
    categories : dict, optional
        Column name or number -> its possible values in order.
    max_bins : int, None or "auto", default="auto"
        Most thresholds and one of a column of real numbers, see `DecisionTreeClassifier`.
    device : {"auto", "cpu", "numpy", "jit", "cuda", "cuda:<number>"}, default="auto"
        Where to grow and to predict; it cannot change the result.
    verbose : int, default=0
        Print a line a level to stderr.

    Attributes
    ----------
    classes_, n_classes_, n_outputs_, n_features_in_, max_features_, feature_names_in_, forest_, fit_info_
        As of `DecisionTreeClassifier`.

    Notes
    -----
    `apply` gives the number of an inner node for a row that has a value there which the column did not have in the
    fit. `predict_proba` gives the class shares of the leaf in every variant. Missing values are refused.

    References
    ----------
    Quinlan (1986), "Induction of decision trees", Machine Learning 1:81-106. Shalev-Shwartz and Ben-David (2014),
    "Understanding Machine Learning", chapter 18. Russell and Norvig, "Artificial Intelligence: A Modern Approach", and
    Procaccia, lecture 16. Raschka, STAT 479 chapter 6.

    Examples
    --------
    >>> from gputree import ID3Classifier, export_text
    >>> from gputree.datasets import load_weather
    >>> frame = load_weather().to_frame("pandas")
    >>> model = ID3Classifier().fit(frame.drop(columns="play"), frame["play"])
    >>> print(export_text(model))
    |--- outlook = sunny
    |   |--- humidity = high
    |   |   |--- class: no
    |   |--- humidity = normal
    |   |   |--- class: yes
    |--- outlook = overcast
    |   |--- class: yes
    |--- outlook = rainy
    |   |--- windy = TRUE
    |   |   |--- class: no
    |   |--- windy = FALSE
    |   |   |--- class: yes
    """

    _criteria: ClassVar[tuple[str, ...]] = ("entropy", "gini", "train_error", "gain_ratio")
    _integers_are_names: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: TREE_CONSTRAINTS[name] for name in SHARED},
        "variant": [StrOptions({"id3", *TWO_VALUES, *FROM_PARENT})],
        "empty": [StrOptions({"parent", "null"})],
        "literal_empty": "no_validation",
        "constant": [StrOptions({"skip", "test"})],
        "numeric": [StrOptions({"refuse", "thresholds"})],
        "base": [Interval(Real, 1.0, None, closed="neither"), StrOptions({"classes"})],
    }
    # what other trees have as parameters
    splitter = "best"
    categorical_split = "multiway"
    unknown = "stay"
    random_state = None
    monotonic_cst = None
    class_weight = None

    def __init__(
        self,
        *,
        variant: str = "id3",
        empty: str = "parent",
        literal_empty: Any = None,
        constant: str = "skip",
        numeric: str = "refuse",
        criterion: str = "entropy",
        base: float | str = 2,
        max_depth: int | None = None,
        stopping: Any = None,
        ccp_alpha: float = 0.0,
        pruning: Any = None,
        validation_fraction: float = 1 / 3,
        categorical_features: ArrayLike | str | None = "from_dtype",
        categories: dict[Any, Any] | None = None,
        max_bins: int | str | None = "auto",
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.variant = variant
        self.empty = empty
        self.literal_empty = literal_empty
        self.constant = constant
        self.numeric = numeric
        self.criterion = criterion
        self.base = base
        self.max_depth = max_depth
        self.stopping = stopping
        self.ccp_alpha = ccp_alpha
        self.pruning = pruning
        self.validation_fraction = validation_fraction
        self.categorical_features = categorical_features
        self.categories = categories
        self.max_bins = max_bins
        self.device = device
        self.verbose = verbose

    def _check_parameters(self) -> None:
        """Variants that say what an empty branch predicts leave no choice."""
        super()._check_parameters()
        if self.variant in FROM_PARENT and (self.empty != "parent" or self.literal_empty is not None):
            raise ValueError(
                f"variant={self.variant!r} gives an empty branch what its parent predicts, and empty={self.empty!r}, "
                f"literal_empty={self.literal_empty!r} ask for something else; leave them out, or give variant='id3'"
            )

    def _table(self, X: Any) -> tuple[Any, Schema]:
        """Every column of names has the values of the whole table; those of "binary" count downwards."""
        matrix, schema = read_fit(self, X)
        refuse_gaps(matrix, schema)
        for feature in schema.features:
            if feature.kind == Kind.NUMERIC and self.numeric == "refuse":
                raise ValueError(
                    f"column {feature.name!r} holds real numbers, and ID3 tests names of values: turn them into "
                    "integers or text if that is what they are, or name the column in categorical_features; group them "
                    "(sklearn.preprocessing.KBinsDiscretizer); or give numeric='thresholds' to ask whether x <= t"
                )
            if self.variant in TWO_VALUES and len(feature.categories) > 2:
                raise ValueError(
                    f"column {feature.name!r} has {len(feature.categories)} values, and variant={self.variant!r} takes "
                    "columns of two: give variant='id3', or encode the column (sklearn.preprocessing.OneHotEncoder)"
                )
        if self.variant == "binary":
            named = schema.kinds == Kind.CATEGORICAL
            last = np.array([len(feature.categories) - 1 for feature in schema.features], matrix.dtype)
            matrix = np.where(named, last - matrix, matrix) if named.any() else matrix
        return matrix, Schema(tuple(self._declared(feature) for feature in schema.features))

    def _declared(self, feature: Feature) -> Feature:
        """A column with all its values, in the order of its branches."""
        if feature.kind == Kind.NUMERIC:
            return feature
        step = -1 if self.variant == "binary" else 1
        return replace(feature, declared=True, categories=feature.categories[::step])

    def _read_target(self, y: Any, n_rows: int) -> NDArray[np.int32]:
        """One output; ``literal_empty`` is one of its classes."""
        labels = super()._read_target(y, n_rows)
        if isinstance(y, np.ndarray) and labels.shape[1] == 1:
            column_or_1d(y, warn=True, dtype=object)  # scikit-learn's warning of columns
        if labels.shape[1] > 1:
            raise ValueError(
                f"y has {labels.shape[1]} outputs, and a tree of ID3 has one; fit a tree for each "
                "(sklearn.multioutput.MultiOutputClassifier), or use DecisionTreeClassifier"
            )
        literal = self.literal_empty
        if literal is not None and (np.ndim(literal) or literal not in self.classes_.tolist()):
            known = ", ".join(map(repr, self.classes_.tolist()[:8]))
            raise ValueError(f"literal_empty={literal!r} is no class of y, whose classes are {known}")
        return labels

    def _recipe(self, criterion: Criterion, rows: Rows, schema: Schema) -> Recipe:
        """Multiway tests and thresholds, without a least gain."""
        self.max_features_ = schema.n_features
        literal = self.constant == "test"
        return Recipe(
            search=Search((THRESHOLD, MULTIWAY), criterion, Limits(least_met=1 if literal else 2)),
            stop=Stop(self.max_depth, min_gain=-np.inf, above=0.0 if self.variant == "generate-tree" else -np.inf),
            sampler=Sampler(once=literal),
            stay=True,
        )

    def _shaped(self, forest: Forest, ready: Prepared, cuts: tuple[Cuts, ...]) -> Forest:
        """Entropies in their base."""
        layout = ready.rows.target.layout
        return replace(forest, impurity=count_impurity(forest, layout, self._shown(layout)))

    def _shown(self, layout: Layout) -> Criterion:
        """Entropies in their base."""
        criterion = CRITERIA[self.criterion]
        base = max(2, layout.sizes[0]) if self.base == "classes" else self.base
        return replace(criterion, base=float(base)) if isinstance(criterion, Entropy) else criterion

    def _read(self, X: Any, check_input: bool) -> Any:
        """X of a prediction, without missing values; an infinite number is no name of a value."""
        matrix = super()._read(X, check_input)
        for table in (matrix, X):
            if getattr(getattr(table, "dtype", None), "kind", "") == "f":
                refuse_gaps(table, self.schema_)
        return matrix

    def _blank(self) -> NDArray[np.float64] | None:
        """Class shares of what no row taught; None: those of the node above."""
        if self.literal_empty is not None:
            return np.array(self.classes_ == self.literal_empty, np.float64)
        return np.full(self.n_classes_, np.nan) if self.empty == "null" else None

    @property
    def _values(self) -> NDArray[np.float64]:
        """Class shares that leaves without rows are shown and predicted with."""
        blank, forest = self._blank(), self.forest_
        bare = (forest.kind == Test.LEAF) & (self.layout_.weight(forest.stats.T) == 0)
        return forest.value if blank is None else np.where(bare[:, None], blank, forest.value)

    def _ends(self, forest: Forest, layout: Layout) -> NDArray[np.float64]:
        """Class shares of leaves, and of the nodes at which values stay that the fit had not met."""
        blank = self._blank()
        bare = (forest.kind != Test.LEAF) | (layout.weight(forest.stats.T) == 0)
        return forest.value if blank is None else np.where(bare[:, None], blank, forest.value)

    def _why_alone(self) -> str:
        """Without rows a tree may have no answer."""
        if self.empty == "null" and self.literal_empty is None:
            return "empty='null' has no answer where there were no rows, and a forest needs one: give empty='parent'"
        return super()._why_alone()

    def _shares(self, X: Any, check_input: bool = True) -> NDArray[np.float64]:
        """Class shares of the nodes where rows end."""
        leaves = self._leaves(X, check_input)[:, 0]  # which asks whether there is a fit
        return self._ends(self.forest_, self.layout_)[leaves]

    def predict(self, X: Any, check_input: bool = True) -> NDArray[Any]:
        """Class of the largest share, the first among equals, (n_rows,).

        Raises
        ------
        ValueError
            With ``empty="null"`` if a row ends where no row of the fit was.
        """
        shares = self._shares(X, check_input)
        null = np.flatnonzero(np.isnan(shares[:, 0]))
        if null.size:
            raise ValueError(
                f"{row_number(null[0])} of X ends where no row of the fit was, in a null leaf, as do {null.size:,} in "
                "all: read predict_proba, which is NaN there, fit with empty='parent', or name a class as literal_empty"
            )
        labels: NDArray[Any] = in_kind(self._labels(shares), X)
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on rows X with labels y, weighted by sample_weight (n_rows,); null leaves are never right."""
        check_is_fitted(self, "forest_")
        if self._blank() is None or self.literal_empty is not None:
            return super().score(X, y, sample_weight)
        labels, found = np.asarray(to_host(y)).ravel(), self._answers(X)
        if labels.size != found.size:
            raise ValueError(f"y has {labels.size} rows and X has {found.size}: give one label for each row")
        return float(np.average(found == labels, weights=to_host(sample_weight)))

    def _answers(self, X: Any) -> NDArray[Any]:
        """As `predict`, None in null leaves."""
        shares = self._shares(X)
        found: NDArray[Any] = self._labels(np.nan_to_num(shares)).astype(object)
        if self.literal_empty is None:
            found[np.isnan(shares[:, 0])] = None
        return found

    def __sklearn_tags__(self) -> Any:
        """One output without missing values; sparse tables hold real numbers."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        tags.input_tags.sparse = self.numeric == "thresholds"
        tags.target_tags.multi_output = False
        tags.classifier_tags.multi_label = False
        return tags


def refuse_gaps(X: Any, schema: Schema) -> None:
    """Refuse missing values and infinite numbers in X (n, F), dense, sparse or on a device."""
    host = to_host(X)
    finite = np.isfinite(host.data if issparse(host) else host)
    if finite.all():
        return
    if issparse(host):
        host = host.toarray()
    row, column = np.argwhere(~np.isfinite(host))[0]
    raise ValueError(
        f"X contains NaN or infinity: column {schema.features[column].name!r} has {host[row, column]} in "
        f"{row_number(row)}, and ID3 has no rule for missing values; leave such rows out, fill them "
        "(sklearn.impute.SimpleImputer), give them a value of their own, or use DecisionTreeClassifier"
    )
