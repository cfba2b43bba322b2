"""The scikit-learn contract of single trees. May import everything below."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from gputree.backends.arrays import in_kind, to_host
from gputree.core.criteria import Criterion
from gputree.core.forest import Forest
from gputree.core.keys import root_keys
from gputree.core.target import Layout
from gputree.engine.pruning import Cases, Needs, cost_complexity_path
from gputree.learners.forest_uses import leaf_weights
from gputree.learners.grower import Prepared, Rows
from gputree.learners.growth import REASONS, StoppedGrower
from gputree.learners.held_out import dense, held_out, of_size_one, why_not_in_bags
from gputree.learners.looks import Looks
from gputree.learners.progress import reporter
from gputree.learners.view import TreeView, importances, paths


class BaseTree(Looks, StoppedGrower):
    """What classification and regression trees share."""

    __metadata_request__predict: ClassVar[dict[str, str]] = {"check_input": UNUSED}
    _saved: ClassVar[tuple[str, ...]] = (*StoppedGrower._saved, *REASONS, "_root_key")
    _one_tree: ClassVar[bool] = True
    validation_fraction: float = 1 / 3  # where a class has no such parameter

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Numbers (float32 is read as it is, everything else as float64; NaN is missing), also sparse; in a frame
            (pandas, polars, pyarrow, anything with an Arrow stream) or an array of objects also strings, booleans and
            categories.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            Labels of any sortable type, or finite numbers whose sums and differences are floats.
        sample_weight : array-like of shape (n_rows,), optional
            Finite weights >= 0, not all 0. A weight of 0 is absence, a weight of k is k copies.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or a value of the input is outside of what is allowed.
        TypeError
            If a column holds something that is neither number, text, boolean nor category.
        """
        begin = time.perf_counter()
        for name in ("forest_", *self._saved):
            self.__dict__.pop(name, None)  # a fit that fails leaves no model behind
        ready = self._prepare(X, y, sample_weight)
        target, self._root_key = ready.rows.target, int(root_keys(ready.seed, 0))
        watch = reporter(begin) if self.verbose else None

        def work(ready: Prepared) -> None:
            grown = self._grown(ready, watch)
            kept = self._pruned(grown, ready)
            self._keep(kept, target)
            self._begin_reasons()
            self._add_reasons(ready.recipe, target.layout, grown, kept)

        ready = self._finish(ready, work)
        self.fit_info_ = self._fit_info(begin, ready)
        return self

    def _unpruned(self) -> Self:
        """The same estimator, not fitted, that does not prune."""
        return clone(self).set_params(ccp_alpha=0.0, pruning=None)  # type: ignore[no-any-return]

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Bunch:
        """Effective alphas of minimal cost-complexity pruning, and the impurity of the leaves after each step.

        Grows a tree without pruning on (X, y), which are as in `fit`.

        Returns
        -------
        Bunch
            ``ccp_alphas`` and ``impurities``, float64 arrays (n_steps,).

        References
        ----------
        Breiman, Friedman, Olshen and Stone (1984), "Classification and Regression Trees", section 3.3.
        """
        model = self._unpruned().fit(X, y, sample_weight)
        path = cost_complexity_path(model.forest_, model.layout_.weight(model.forest_.stats.T))
        return Bunch(ccp_alphas=path.alphas, impurities=path.impurities)

    def _rows(
        self, X: NDArray[Any], labels: NDArray[Any], weight: NDArray[np.float64] | None, criterion: Criterion, seed: int
    ) -> Rows:
        """Those of positive weight, without those that are kept back where the rule of pruning asks for some."""
        rule = self._pruner()
        if rule is None or rule.needs is not Needs.VALIDATION:
            return super()._rows(X, labels, weight, criterion, seed)
        X, every = to_host(X), np.ones(labels.shape[0])
        classes = labels[:, 0] if labels.dtype.kind == "i" else np.zeros(labels.shape[0], np.intp)
        out = held_out(classes, every if weight is None else weight, self.validation_fraction, seed)
        held = Cases(dense(X, out), labels[out].T, (every if weight is None else weight)[out])
        rows = super()._rows(X[~out], labels[~out], None if weight is None else weight[~out], criterion, seed)
        return replace(rows, held=of_size_one(held))

    def _why_alone(self) -> str:
        """Why such trees cannot be those of a forest, and what to do; empty if they can."""
        if getattr(self, "class_weight", None) is not None:
            return "class_weight is the forest's, which draws rows by it: give it there"
        return why_not_in_bags(self._pruner(), self.stopping)

    def _ends(self, forest: Forest, layout: Layout) -> NDArray[np.float64]:
        """What rows that end in a node are told, f8 (N, O)."""
        return forest.value

    @property
    def _values(self) -> NDArray[np.float64]:
        """What nodes are shown with (N, values): their shares of classes or means; NaN: nothing."""
        values: NDArray[np.float64] = self.forest_.value
        return values

    @property
    def tree_(self) -> TreeView:
        """The tree under scikit-learn's array names; node ids are breadth first, scikit-learn's depth first."""
        check_is_fitted(self, "forest_")
        view: TreeView | None = self.__dict__.get("_view")
        if view is None or view.forest is not self.forest_:
            stats = self.forest_.stats.T
            view = TreeView(
                self.forest_,
                self.weight_unit_,
                self.layout_.count(stats),
                self.layout_.weight(stats),
                self.n_features_in_,
                np.array(self.layout_.sizes, np.intp),
                self.schema_,
            )
            self._view = view
        return view

    def _repr_html_inner(self) -> str:
        """scikit-learn's diagram, and below it the tree."""
        return f"{super()._repr_html_inner()}{self._tree_html()}"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """What notebooks show, in the same way."""
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._tree_html()
        return bundle

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: everything but the view, which is made anew."""
        return {name: value for name, value in super().__getstate__().items() if name != "_view"}

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Shares of the impurity decrease by feature, float64 (n_features,); all 0 for a tree without a split.

        1.0 means that all of the decrease is that column's; a column that no node tests has 0. Biased towards columns
        of many distinct values; see ``sklearn.inspection.permutation_importance``.
        """
        check_is_fitted(self, "forest_")
        weight = self.layout_.weight(self.forest_.stats.T)
        return importances(self.forest_, weight, self.n_features_in_, True)

    def get_depth(self) -> int:
        """Depth of the deepest leaf; 0 for a root alone."""
        check_is_fitted(self, "forest_")
        return self.forest_.max_depth

    def get_n_leaves(self) -> int:
        """Number of leaves."""
        check_is_fitted(self, "forest_")
        return self.forest_.n_leaves

    def apply(self, X: Any, check_input: bool = True) -> NDArray[np.int64]:
        """Leaf of every row, int64 (n_rows,). Node ids are breadth first (scikit-learn's are depth first).

        Where a tree spreads the rows that a test does not know over its branches (C4.5), this is the leaf that one
        comes to on the branch of largest training weight each time, the first among equals. `predict` adds up all
        leaves of such a row, so that its class may be another than this leaf's; `leaf_weights` has all of them.
        """
        leaves: NDArray[np.int64] = in_kind(self._leaves(X, check_input)[:, 0].astype(np.int64), X)
        return leaves

    def decision_path(self, X: Any, check_input: bool = True) -> csr_matrix:
        """Nodes that every row passes on its way to `apply`, a csr matrix (n_rows, n_nodes) of ones.

        Node ids are breadth first. Of a row that a tree spreads over several branches, the heaviest alone counts; see
        `apply`.
        """
        leaves = self._leaves(X, check_input)[:, 0]
        return paths(self.forest_, leaves)

    def leaf_weights(self, X: Any) -> csr_matrix:
        """What every leaf has to say in the prediction of every row, a csr matrix (n_rows, n_nodes); rows sum to 1.

        1 in one leaf, but for rows that a tree spreads over several branches, for a missing value or a soft threshold.
        ``leaf_weights(X) @ forest_.value`` is `predict_proba`, of numbers the prediction.

        Examples
        --------
        >>> from gputree import C45Classifier
        >>> X = [[0.0], [0.0], [0.0], [0.0], [1.0], [1.0]]
        >>> model = C45Classifier().fit(X, list("aaaabb"))
        >>> print(model.leaf_weights([[0.0], [float("nan")]]).toarray().round(2))
        [[0.   1.   0.  ]
         [0.   0.67 0.33]]
        """
        return leaf_weights(self, X)
