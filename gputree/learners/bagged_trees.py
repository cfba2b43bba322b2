"""Forests whose trees are those of any tree of the library. May import everything below."""

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
from gputree.learners.forest import TREE_ATTRIBUTES, BaseForest, handed_down
from gputree.learners.grower import Grower, Prepared, Rows
from gputree.learners.parameters import count_features

OWN = (  # what the forest decides, and no tree
    *("n_estimators", "max_features", "bootstrap", "oob_score", "oob_tol", "n_jobs", "random_state", "verbose"),
    *("warm_start", "class_weight", "max_samples", "feature_draws", "voting", "device"),
)


def bag_constraints(tree: Any, forest: Any) -> dict[str, Any]:
    """What the parameters of a class of forests may be whose trees are of a class."""
    own: dict[str, Any] = {name: rule for name, rule in forest._parameter_constraints.items() if name in OWN}
    return {"estimator": [tree, None], **own}


class BaggedTrees(BaseForest):
    """What forests of given trees share: the tree reads tables and rows, and the forest draws."""

    _usual: ClassVar[type[Any]]  # of trees where none is given
    estimator: Any

    # -- the tree that is asked

    @property
    def _asked(self) -> Any:
        """The tree as it was given, to be read alone."""
        return self._usual() if self.estimator is None else self.estimator

    @property
    def estimator_(self) -> Any:
        """A tree without a fit."""
        return clone(self._asked)

    def _tree_class(self) -> Any:
        """That of ``estimator``."""
        return type(self._asked)

    def _unfitted(self) -> Any:
        """A tree that runs where the forest does."""
        settings = self._asked.get_params(deep=False)
        own = {"device": self.device, "random_state": getattr(self, "seed_", None)}
        return type(self._asked)(**settings | {name: value for name, value in own.items() if name in settings})

    def _learner(self) -> Any:
        """A tree that knows what the forest knows."""
        return handed_down(self, self._unfitted(), (*TREE_ATTRIBUTES, "_n_columns", "forest_"))

    @property
    def criterion(self) -> str:
        """That of the trees."""
        return str(self._asked.criterion)

    @property
    def stopping(self) -> Any:
        """That of the trees."""
        return self._asked.stopping

    def _pruner(self) -> Rule | None:
        """That of the trees."""
        rule: Rule | None = self._asked._pruner()
        return rule

    @property
    def _asks_rows(self) -> bool:
        """As the trees."""
        return bool(self._asked._asks_rows)

    @property
    def monotonic_cst(self) -> Any:
        """That of the trees."""
        return self._asked.monotonic_cst

    @property
    def unknown(self) -> str:
        """What to do with values that are none of the categories, as the trees have it."""
        return str(self._asked.unknown)

    # -- what the tree says of a table

    def _check_parameters(self) -> None:
        """Those of the forest and of its trees."""
        self._validate_params()
        model = self._asked
        model._check_parameters()
        reason = model._why_alone()
        if reason:
            raise ValueError(f"estimator={model!r} cannot grow in bags: {reason}")

    def _cells(self, rows: Rows) -> int:
        """Of all trees."""
        return int(self._learner()._cells(rows)) * int(self.n_estimators)

    def _grows_by(self) -> dict[str, Any]:
        """With the tree that is given, or the usual one."""
        return {**super()._grows_by(), "estimator": self._asked}

    def _table(self, X: Any) -> tuple[Any, Schema]:
        """The tree reads it."""
        model = self._learner()
        read: tuple[Any, Schema] = model._table(X)
        self.__dict__.pop("feature_names_in_", None)
        handed_down(model, self, ("n_features_in_", "feature_names_in_"))
        return read

    def _read_target(self, y: Any, n_rows: int) -> NDArray[Any]:
        """The tree reads it."""
        model = self._learner()
        labels: NDArray[Any] = model._read_target(y, n_rows)
        handed_down(model, self, ("classes_", "n_classes_", "_n_columns"))
        return labels

    def _weighed(self, rows: Rows, schema: Schema) -> Rows:
        """In the unit of the trees."""
        weighed: Rows = self._learner()._weighed(rows, schema)
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

    @property
    def _values(self) -> NDArray[np.float64]:
        """What the tree shows."""
        values: NDArray[np.float64] = self._learner()._values
        return values

    def _meaning(self) -> Meaning:
        """That of the trees."""
        meaning: Meaning = self._learner()._meaning()
        return meaning

    def __sklearn_tags__(self) -> Any:
        """What the trees take."""
        tree = self._asked if isinstance(self._asked, Grower) else self._usual()  # a fit refuses what is no tree
        tags, own = super().__sklearn_tags__(), tree.__sklearn_tags__()
        for name in ("input_tags", "target_tags", "classifier_tags", "regressor_tags"):
            setattr(tags, name, getattr(own, name))
        return tags
