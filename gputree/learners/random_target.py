"""Forests without a target: totally random trees and their embedding. May import everything below."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from gputree.backends.arrays import to_host
from gputree.core.criteria import Criterion
from gputree.core.forest import Test
from gputree.core.keys import Stream, draw, unit
from gputree.core.schema import Schema
from gputree.core.target import Target, sum_target
from gputree.engine.recipe import Recipe
from gputree.learners.extra_trees import ExtraTreeRegressor
from gputree.learners.forest import FOREST_CONSTRAINTS, BaseForest
from gputree.learners.grower import Rows
from gputree.learners.tasks import checked_weight

ABSENT = (  # parameters of forests that are constants here
    *("max_features", "bootstrap", "max_samples", "oob_score", "oob_tol", "feature_draws"),
    *("monotonic_cst", "ccp_alpha", "splitter"),
)


class RandomTrees(BaseForest):
    """Forests of one random feature and one random threshold a node.

    They grow on a target that is a hash of the row's number. Where one test is offered it decides nothing but the
    order of best first, and ``min_impurity_decrease``. Almost surely no two rows have the same, so a node ends only
    where no column has two known values or a limit says so.
    """

    criterion: ClassVar[str] = "squared_error"
    splitter: ClassVar[str] = "random"
    monotonic_cst: ClassVar[None] = None
    oob_score: ClassVar[bool] = False
    oob_tol: ClassVar[None] = None
    feature_draws: ClassVar[str] = "continue"
    _criteria: ClassVar[tuple[str, ...]] = (criterion,)

    def _read_target(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        """A hash of the row's number, in [0, 1)."""
        return unit(draw(0, Stream.TARGET, np.arange(n_rows)))[:, None]

    def _weights(self, labels: NDArray[Any], weight: Any, n_rows: int) -> NDArray[np.float64] | None:
        """Weights of the rows."""
        return checked_weight(weight, labels)

    def _target(self, labels: NDArray[Any], criterion: Criterion, weight: NDArray[np.float64] | None) -> Target:
        """Fixed-point sums."""
        return sum_target(labels, criterion, weight)

    def _bag_target(self, labels: NDArray[Any], criterion: Criterion, draws: int) -> Target:
        """Sums of rows without weights."""
        return sum_target(labels, criterion, None, draws)

    def _recipe(self, criterion: Criterion, rows: Rows, schema: Schema) -> Recipe:
        """One feature a node; that a value is missing says nothing by itself, and would part such rows at once."""
        recipe = super()._recipe(criterion, rows, schema)
        limits = replace(recipe.search.limits, missing_alone=False)
        return replace(
            recipe,
            search=replace(recipe.search, limits=limits),
            sampler=replace(recipe.sampler, max_features=1),
        )

    def _n_values(self) -> int:
        """One mean."""
        return 1

    def _tree_class(self) -> Any:
        """ExtraTreeRegressor."""
        return ExtraTreeRegressor

    def __sklearn_tags__(self) -> Any:
        """No target is read."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags


class RandomTreesEmbedding(TransformerMixin, RandomTrees):
    """Leaves of totally random trees as columns of zeros and ones.

    Each node tests one random feature at a uniform threshold between the smallest and the largest value in the node;
    missing values take either side by chance.

    Parameters
    ----------
    n_estimators : int, default=100
        Trees; each gives a row one 1.
    max_depth : int, optional, default=5
    min_samples_split, min_samples_leaf, max_leaf_nodes, ... : as in `ExtraTreeRegressor`
        The same names and meanings.
    sparse_output : bool, default=True
        Give a csr matrix, else an array.
    n_jobs : int, optional
        Threads of compiled kernels, which "auto" and "cpu" take for large fits; by default all. It cannot change
        the result.
    warm_start : bool, default=False
        Keep the trees that are there and add those that are missing: 5 and then 10 are the 10 grown at once. The rows
        and the parameters that trees depend on must be those of the first fit; others are refused.
    device : {"auto", "cpu", "numpy", "jit", "cuda", "cuda:<number>"}, default="auto"
        Where to grow and to find leaves; it cannot change the result.

    Attributes
    ----------
    one_hot_encoder_ : OneHotEncoder
        From the leaves of `apply` to the columns of `transform`.
    estimators_ : sequence of `ExtraTreeRegressor`
        The trees, made when they are asked for.
    forest_ : Forest
        All fitted arrays.

    References
    ----------
    Geurts, Ernst and Wehenkel (2006), "Extremely randomized trees", Machine Learning 63:3-42, section 2.
    Moosmann, Triggs and Jurie (2006), "Fast discriminative visual codebooks using randomized clustering forests", NIPS.

    Examples
    --------
    >>> from gputree import RandomTreesEmbedding
    >>> model = RandomTreesEmbedding(3, max_depth=1, sparse_output=False)
    >>> model.fit_transform([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1]]).sum(axis=1)
    array([3., 3., 3., 3., 3.])
    >>> model.get_feature_names_out()[:2].tolist()
    ['randomtreesembedding_0_1', 'randomtreesembedding_0_2']
    """

    max_features: ClassVar[int] = 1
    bootstrap: ClassVar[bool] = False
    max_samples: ClassVar[None] = None
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: rule for name, rule in FOREST_CONSTRAINTS.items() if name not in ABSENT},
        "sparse_output": ["boolean"],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_depth: int | None = 5,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        sparse_output: bool = True,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        categorical_features: ArrayLike | str | None = "from_dtype",
        categories: dict[Any, Any] | None = None,
        categorical_split: str = "binary",
        unknown: str = "majority",
        max_bins: int | str | None = "auto",
        device: str = "auto",
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.sparse_output = sparse_output
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.categorical_features = categorical_features
        self.categories = categories
        self.categorical_split = categorical_split
        self.unknown = unknown
        self.max_bins = max_bins
        self.device = device

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            As in `DecisionTreeClassifier.fit`.
        y : ignored
        sample_weight : array-like of shape (n_rows,), optional
            Finite weights >= 0, not all 0. A weight of 0 is absence.

        Returns
        -------
        self
        """
        self.fit_transform(X, y, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Any:
        """Grow the trees and give the leaves of the rows.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`

        Returns
        -------
        float64 csr matrix or array (n_rows, leaves of all trees)
        """
        super().fit(X, None, sample_weight)
        return self.one_hot_encoder_.transform(to_host(self.apply(X)))

    @property
    def one_hot_encoder_(self) -> Any:
        """What turns leaves into columns: every leaf has a row of the fit, so the trees tell them."""
        check_is_fitted(self, "forest_")
        trees = (self.forest_.tree(t) for t in range(self.forest_.roots.size))
        leaves = [np.flatnonzero(tree.kind == Test.LEAF) for tree in trees]
        encoder = OneHotEncoder(categories=leaves, sparse_output=self.sparse_output)
        return encoder.fit([[own[0] for own in leaves]])

    @property
    def _n_features_out(self) -> int:
        """Columns of `transform`, for names of columns."""
        return int(self.forest_.n_leaves)

    def transform(self, X: Any) -> Any:
        """1 where a row is in a leaf.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        float64 csr matrix or array (n_rows, leaves of all trees)
        """
        check_is_fitted(self, "forest_")
        return self.one_hot_encoder_.transform(to_host(self.apply(X)))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the columns, ``randomtreesembedding_<tree>_<leaf>``; leaves are numbered among all nodes of a tree.

        Parameters
        ----------
        input_features : array-like of str, optional
            Must be the names of the fit.

        Returns
        -------
        object array (leaves of all trees,)
        """
        check_is_fitted(self, "forest_")
        _check_feature_names_in(self, input_features, generate_names=False)
        leaves = enumerate(self.one_hot_encoder_.categories_)
        return np.array([f"randomtreesembedding_{tree}_{leaf}" for tree, own in leaves for leaf in own], dtype=object)
