"""Forests whose trees are those of any classification tree: docstring and parameters. May import everything below."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from gputree.backends.protocol import Backend
from gputree.core.criteria import Criterion
from gputree.core.forest import Forest, joined
from gputree.core.packed import Meaning
from gputree.core.schema import Cuts, Schema
from gputree.core.target import Layout
from gputree.engine.pruning import Rule
from gputree.engine.recipe import Recipe
from gputree.learners.forest import TREE_ATTRIBUTES, handed_down
from gputree.learners.forest_tasks import ForestClassifier, Score
from gputree.learners.grower import Prepared, Rows
from gputree.learners.parameters import count_features
from gputree.learners.tasks import ClassifierTree
from gputree.learners.trees import DecisionTreeClassifier

OWN = (  # what the forest decides, and no tree
    *("n_estimators", "max_features", "bootstrap", "oob_score", "oob_tol", "n_jobs", "random_state", "verbose"),
    *("warm_start", "class_weight", "max_samples", "feature_draws", "voting", "device"),
)


class BaggingTreeClassifier(ForestClassifier):
    """A forest of C4.5, ID3 or other classification trees on drawn rows.

    The trees are what ``estimator`` grows, with its criterion, tests, missing values, limits and pruning; they grow
    together, a level of all trees at a time. Each has a bag of rows drawn with replacement, in which a row that was
    drawn k times weighs k: it is the tree of `estimator` fitted with these weights.

    Parameters
    ----------
    estimator : classification tree of this library, optional
        A tree that is not fitted, such as ``C45Classifier()``; by default `DecisionTreeClassifier`. Its ``device``,
        ``verbose`` and ``random_state`` do not count. Not with ``class_weight``, rules of stopping that look at rows,
        rules of pruning that ask for others, or leaves that have no answer.
    n_estimators : int, default=10
        Trees.
    max_features : int, float, "sqrt", "log2" or None, default=None
        Features tried in a node, drawn anew, and the next ones while none of them gives a test (scikit-learn's
        `BaggingClassifier` draws them once a tree). None: as ``estimator`` has it.
    bootstrap : bool, default=True
        Draw the rows of every tree with replacement; else each tree has all rows. With it, ``sample_weight`` and
        ``class_weight`` are the probabilities of the draws, as in `RandomForestClassifier`.
    oob_score, oob_tol, n_jobs, warm_start, class_weight, max_samples, voting, feature_draws, device
        As in `RandomForestClassifier`.
    random_state : int, RandomState or None
        Seed of all draws; None is 0.
    verbose : int, default=0
        Print a line a level to stderr.

    Attributes
    ----------
    estimator_ : estimator
        A tree without a fit.
    estimators_ : sequence of estimators
        The trees, made when they are asked for.
    estimators_samples_ : list of int64 arrays
        Rows of every bag, drawn anew at each call.
    oob_decision_function_, oob_score_, oob_errors_ : as of `RandomForestClassifier`
    forest_ : Forest
        All fitted arrays.

    Raises
    ------
    ValueError
        When it is fitted, if ``estimator`` cannot grow in bags; the message says why.

    References
    ----------
    Breiman (1996), "Bagging predictors", Machine Learning 24:123-140. Quinlan (1996), "Bagging, boosting, and C4.5",
    AAAI-96, 725-730.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import BaggingTreeClassifier, C45Classifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BaggingTreeClassifier(C45Classifier(min_weight=3), n_estimators=5).fit(X, y)
    >>> weight = np.bincount(model.estimators_samples_[4], minlength=len(X))
    >>> alone = C45Classifier(min_weight=3).fit(X, y, sample_weight=weight)
    >>> model.estimators_[4].fingerprint() == alone.fingerprint()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [ClassifierTree, None],
        **{name: rule for name, rule in ForestClassifier._parameter_constraints.items() if name in OWN},
    }

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_features: float | str | None = None,
        bootstrap: bool = True,
        oob_score: Score = False,
        oob_tol: float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: Any = None,
        max_samples: Any = None,
        feature_draws: str = "continue",
        voting: str = "soft",
        device: str = "auto",
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.oob_tol = oob_tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.max_samples = max_samples
        self.feature_draws = feature_draws
        self.voting = voting
        self.device = device

    # -- the tree that is asked

    @property
    def estimator_(self) -> Any:
        """A tree without a fit."""
        return DecisionTreeClassifier() if self.estimator is None else clone(self.estimator)

    def _tree_class(self) -> Any:
        """That of ``estimator``."""
        return type(self.estimator_)

    def _unfitted(self) -> Any:
        """A tree that runs where the forest does."""
        model = self.estimator_
        own = {"device": self.device, "random_state": getattr(self, "seed_", None)}
        return model.set_params(**{name: value for name, value in own.items() if name in model.get_params(deep=False)})

    def _learner(self) -> Any:
        """A tree that knows what the forest knows."""
        return handed_down(self, self._unfitted(), (*TREE_ATTRIBUTES, "forest_"))

    @property
    def criterion(self) -> str:
        """That of the trees."""
        return str(self.estimator_.criterion)

    @property
    def stopping(self) -> Any:
        """That of the trees."""
        return self.estimator_.stopping

    def _pruner(self) -> Rule | None:
        """That of the trees."""
        rule: Rule | None = self.estimator_._pruner()
        return rule

    @property
    def _asks_rows(self) -> bool:
        """As the trees."""
        return bool(self.estimator_._asks_rows)

    @property
    def monotonic_cst(self) -> Any:
        """That of the trees."""
        return self.estimator_.monotonic_cst

    @property
    def unknown(self) -> str:
        """What to do with values that are none of the categories, as the trees have it."""
        return str(self.estimator_.unknown)

    # -- what the tree says of a table

    def _check_parameters(self) -> None:
        """Those of the forest and of its trees."""
        self._validate_params()
        model = self.estimator_
        model._check_parameters()
        reason = model._why_alone()
        if reason:
            raise ValueError(f"estimator={model!r} cannot grow in bags: {reason}")

    def _cells(self, rows: Rows) -> int:
        """Of all trees."""
        return int(self._learner()._cells(rows)) * int(self.n_estimators)

    def _table(self, X: Any) -> tuple[Any, Schema]:
        """The tree reads it."""
        model = self._learner()
        read: tuple[Any, Schema] = model._table(X)
        self.__dict__.pop("feature_names_in_", None)
        handed_down(model, self, ("n_features_in_", "feature_names_in_"))
        return read

    def _read_target(self, y: Any, n_rows: int) -> NDArray[np.int32]:
        """The tree reads it."""
        model = self._learner()
        labels: NDArray[np.int32] = model._read_target(y, n_rows)
        handed_down(model, self, ("classes_", "n_classes_"))
        return labels

    def _weighed(self, rows: Rows) -> Rows:
        """In the unit of the trees."""
        weighed: Rows = self._learner()._weighed(rows)
        return weighed

    def _edges(self, backend: Backend, rows: Rows, schema: Schema) -> tuple[Cuts, ...]:
        """The codes of the trees."""
        cuts: tuple[Cuts, ...] = self._learner()._edges(backend, rows, schema)
        return cuts

    def _recipe(self, criterion: Criterion, rows: Rows, schema: Schema) -> Recipe:
        """That of the trees, with the forest's draws."""
        recipe = self._learner()._recipe(criterion, rows, schema)
        wanted = recipe.sampler.max_features
        if self.max_features is not None:
            wanted = count_features(self.max_features, schema.n_features)
        self.max_features_ = wanted or schema.n_features
        return self._drawing(replace(recipe, sampler=replace(recipe.sampler, max_features=wanted)))

    def _finished(self, forest: Forest, trees: range, ready: Prepared, cuts: tuple[Cuts, ...]) -> Forest:
        """Every tree as a fit of its rows alone leaves it."""
        model, done = self._learner(), []
        for i, t in enumerate(trees):
            tree, own, codes = forest.tree(i), self._alone(ready, t), cuts
            if own is not ready:
                tested = set(tree.feature.tolist())
                codes = tuple(c.among(own.rows.X[:, f]) if f in tested else c for f, c in enumerate(cuts))
            done.append(model._pruned(model._shaped(tree, own, codes), own))
        return joined(done)

    # -- what the tree says of rows

    def _read(self, X: Any, check_input: bool) -> Any:
        """The tree reads them."""
        check_is_fitted(self, "forest_")
        return self._learner()._read(X, check_input)

    def _ends(self, forest: Forest, layout: Layout) -> NDArray[np.float64]:
        """What the tree tells them."""
        told: NDArray[np.float64] = self._learner()._ends(forest, layout)
        return told

    def _meaning(self) -> Meaning:
        """That of the trees."""
        meaning: Meaning = self._learner()._meaning()
        return meaning

    def __sklearn_tags__(self) -> Any:
        """What the trees take."""
        tags, own = super().__sklearn_tags__(), self.estimator_.__sklearn_tags__()
        tags.input_tags, tags.target_tags, tags.classifier_tags = own.input_tags, own.target_tags, own.classifier_tags
        return tags
