"""Trees from and to scikit-learn's own classes. May import everything below."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import sklearn.tree
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from gputree.core.checks import what_is
from gputree.core.criteria import CRITERIA
from gputree.core.forest import Forest
from gputree.core.schema import Feature, Kind, Schema
from gputree.inspect.adopt import Source, depth_first
from gputree.inspect.words import require_tree
from gputree.learners import ESTIMATORS
from gputree.learners.base import BaseTree
from gputree.learners.inputs import default_names
from gputree.learners.progress import FitInfo
from gputree.learners.view import LEAF, UNDEFINED, TreeView

THEIRS = {name: getattr(sklearn.tree, name) for name in ESTIMATORS}
TARGETS = THEIRS | {"MDLTreeClassifier": sklearn.tree.DecisionTreeClassifier}


def to_sklearn(model: Any) -> Any:
    """Give a tree as scikit-learn's own estimator of the same name, or as its ``DecisionTreeClassifier``, fitted.

    It has the parameters that scikit-learn knows, its fitted attributes, and counts, weights, impurities, values,
    thresholds and the side of missing values as they are, with nodes numbered depth first; so scikit-learn's text,
    plots and pruning work, and whatever else takes only its classes. A test whether a value is missing becomes the
    threshold +inf, as there; a column of booleans is read as 0 and 1, as there.

    scikit-learn reads X as float32. A float64 value may go the other way where it lies closer to a threshold than half
    a step of float32 (some 6e-8 of its size); float32 values never do. scikit-learn refuses infinite values, and
    missing ones in an ``ExtraTree*`` with ``splitter="best"``. A criterion that it does not have stays the parameter:
    such a tree predicts, prints and plots, and scikit-learn refuses to fit it again.

    Parameters
    ----------
    model : DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor or MDLTreeClassifier
        A fitted tree of this library.

    Returns
    -------
    estimator
        Of the class of that name in ``sklearn.tree``; of an ``MDLTreeClassifier`` a ``DecisionTreeClassifier``.

    Raises
    ------
    TypeError
        If the model is no tree of this library, or of a kind that scikit-learn does not have.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    ValueError
        If a node tests a column of categories other than booleans, or has more than two branches.

    Examples
    --------
    >>> import sklearn.tree
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.inspect.convert import to_sklearn
    >>> X, y = load_iris(return_X_y=True)
    >>> print(sklearn.tree.export_text(to_sklearn(DecisionTreeClassifier(max_depth=1).fit(X, y))))
    |--- feature_2 <= 2.45
    |   |--- class: 0
    |--- feature_2 >  2.45
    |   |--- class: 1
    """
    require_tree(model)
    name = type(model).__name__
    if name not in TARGETS:
        raise TypeError(
            f"scikit-learn has no {name}, and its trees no branch for each value; give the tree on as "
            "gputree.export_dict(model)"
        )
    kind = TARGETS[name]
    refuse_categories(model)
    shared = set(kind().get_params()) - {"categorical_features"}  # which newer versions read in their own way
    own = clone(model)
    result = kind(**{name: getattr(own, name) for name in shared if hasattr(own, name)})
    result.n_features_in_, result.n_outputs_ = model.n_features_in_, model.n_outputs_
    result.max_features_ = model.max_features_
    if hasattr(model, "feature_names_in_"):
        result.feature_names_in_ = model.feature_names_in_.copy()
    if model.layout_.counts:
        several = isinstance(model.classes_, list)
        result.classes_ = alike(model.classes_) if several else model.classes_.copy()
        sizes = np.array(model.layout_.sizes, np.intp)
        result.n_classes_ = sizes if several else sizes[0]
    result.tree_ = sklearn_tree(replace(model.tree_, schema=model.schema_))
    return result


def alike(classes: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """Classes of several outputs in one type: scikit-learn predicts all outputs in that of the first."""
    kinds = sorted({own.dtype.kind for own in classes})
    if len(kinds) > 1:
        types = " and ".join(str(own.dtype) for own in classes)
        raise ValueError(
            f"the outputs have classes of types {types}, and scikit-learn's trees hold one type; fit with labels of "
            "one type, or one output at a time"
        )
    common = np.result_type(*classes)
    return [own.astype(common) for own in classes]


def refuse_categories(model: Any) -> None:
    """Refuse tests that scikit-learn's trees cannot hold."""
    forest: Forest = model.forest_
    for f, feature in enumerate(model.schema_.features):
        if feature.kind == Kind.NUMERIC:
            continue
        here = np.flatnonzero(forest.feature == f)
        wide = here[forest.n_children[here] > 2]
        if here.size and not is_boolean(feature):
            raise ValueError(
                f"node {here[0]} tests the categories of column {feature.name!r}, and scikit-learn's trees read only "
                "numbers; encode the column and fit again (sklearn.preprocessing.OneHotEncoder, or OrdinalEncoder if "
                "its values have an order), or give the tree on as gputree.export_dict(model)"
            )
        if wide.size:
            raise ValueError(
                f"node {wide[0]} tests column {feature.name!r} with {forest.n_children[wide[0]]} branches, and "
                "scikit-learn's nodes have two; fit with categorical_split='binary'"
            )


def is_boolean(feature: Feature) -> bool:
    """Whether a column holds booleans, whose numbers are what scikit-learn reads."""
    return feature.categories == (False, True) and isinstance(feature.categories[0], bool | np.bool_)


def sklearn_tree(view: TreeView) -> Any:
    """The nodes of a tree as scikit-learn's own structure, renumbered depth first."""
    from sklearn.tree._tree import NODE_DTYPE, Tree

    left, right = view.children_left, view.children_right
    place = depth_first(left, right).place
    inner = left >= 0
    fields = {
        "left_child": np.where(inner, place[left], LEAF),
        "right_child": np.where(inner, place[right], LEAF),
        "feature": np.where(inner, view.feature, UNDEFINED),
        "threshold": view.threshold,
        "impurity": view.impurity,
        "n_node_samples": view.n_node_samples,
        "weighted_n_node_samples": view.weighted_n_node_samples,
        "missing_go_to_left": view.missing_go_to_left,
    }
    nodes, values = np.zeros(view.node_count, NODE_DTYPE), np.zeros(view.value.shape)
    for name, array in fields.items():
        nodes[name][place] = array
    values[place] = view.value
    tree = Tree(view.n_features, view.n_classes.astype(np.intp), view.n_outputs)
    state = {"max_depth": view.max_depth, "node_count": view.node_count, "nodes": nodes, "values": values}
    tree.__setstate__(state)
    return tree


def from_sklearn(model: Any, *, thresholds: str = "matching") -> Any:
    """Give a tree of scikit-learn as an estimator of this library, fitted, that predicts the same.

    Kept are parameters, labels, column names, numbers of rows, impurities (0 where rounding made them negative or NaN),
    importances and the side of missing values. Nodes are renumbered breadth first.

    - Values and weights are equal to the last bit where the rows had no weights, or such as have exact sums. Else the
      weights of nodes and classes become multiples of one small weight, which moves them by less than 1e-10 of the
      whole, and shares of classes with them; means do not change, and the class of the largest share is always the
      same. With ``monotonic_cst`` inner nodes of classes hold what their leaves add up to.
    - Which nodes met missing values is not recorded there. Here it is said of those that send them elsewhere than to
      the child of larger weight, the first among equals, which is where they go unmet.

    Parameters
    ----------
    model : estimator
        A fitted ``DecisionTreeClassifier``, ``DecisionTreeRegressor``, ``ExtraTreeClassifier`` or
        ``ExtraTreeRegressor`` of ``sklearn.tree``.
    thresholds : {"matching", "same"}, default="matching"
        scikit-learn rounds X to float32 before it compares. "matching": thresholds are moved, by less than a step of
        float32, to the last float64 that it rounds to the left, so that every finite row goes the same way. "same":
        they are kept to the bit, and rows of float32 go the same way; what `to_sklearn` made comes back as it was.

    Returns
    -------
    estimator
        Of the class of that name in `gputree`.

    Raises
    ------
    TypeError
        If the model is none of these; a forest is none, its trees are.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    ValueError
        If its criterion is "absolute_error" or an object, a leaf holds negative weights, or `thresholds` is neither.

    Examples
    --------
    >>> import sklearn.tree
    >>> from sklearn.datasets import load_iris
    >>> from gputree.inspect.convert import from_sklearn
    >>> X, y = load_iris(return_X_y=True)
    >>> model = from_sklearn(sklearn.tree.DecisionTreeClassifier(max_depth=2).fit(X, y))
    >>> model.predict(X[::50]), model.tree_.n_node_samples
    (array([0, 1, 2]), array([150,  50, 100,  54,  46]))
    """
    if thresholds not in ("matching", "same"):
        raise ValueError(f"thresholds={thresholds!r} must be 'matching' or 'same'")
    result = unfitted(model)
    check_is_fitted(model)
    if model.tree_.n_features != model.n_features_in_:
        raise ValueError(f"tree_ reads {model.tree_.n_features} columns, and n_features_in_ is {model.n_features_in_}")
    result.n_features_in_, result.n_outputs_ = int(model.n_features_in_), int(model.n_outputs_)
    result.max_features_ = max(1, min(int(model.max_features_), result.n_features_in_))
    names = default_names(result.n_features_in_)
    if hasattr(model, "feature_names_in_"):
        result.feature_names_in_ = model.feature_names_in_.copy()
        names = tuple(str(name) for name in model.feature_names_in_)
    result.schema_ = Schema(tuple(Feature(name) for name in names))
    sizes: tuple[int, ...] = ()
    if hasattr(model, "classes_"):
        several = isinstance(model.classes_, list)
        result.classes_ = [own.copy() for own in model.classes_] if several else model.classes_.copy()
        sizes = tuple(int(own.size) for own in (model.classes_ if several else [model.classes_]))
        result.n_classes_ = list(sizes) if several else sizes[0]
    source, criterion = Source.of(model, sizes, thresholds == "matching"), CRITERIA[result.criterion]
    held = source.counts(sizes, result.monotonic_cst is not None) if sizes else source.sums(criterion)
    result.layout_, result.weight_unit_ = held.layout, held.unit
    result.forest_ = source.forest(held, criterion).lock()
    result.fit_info_ = FitInfo("cpu", "sklearn", result.forest_.max_depth + 1, 0, 0, 0.0, 0, 0)
    return result


def unfitted(model: Any) -> BaseTree:
    """An estimator of ours with the parameters of one of scikit-learn's."""
    name = type(model).__name__
    if type(model) is not THEIRS.get(name):
        hint = f"give a fitted {', '.join(THEIRS)} of sklearn.tree"
        if isinstance(model, BaseTree):
            hint = "it is a tree of gputree already"
        elif hasattr(model, "estimators_"):
            hint = "convert its trees one by one, which are in estimators_"
        elif isinstance(model, Pipeline) or hasattr(model, "best_estimator_"):
            hint = "convert the tree inside it, its last step or best_estimator_"
        raise TypeError(f"{what_is(model)} is none of the trees that can be converted; {hint}")
    ours = ESTIMATORS[name]()
    given = {k: v for k, v in clone(model).get_params().items() if k in ours.get_params()}
    given.pop("categorical_features", None)
    if given["criterion"] == "friedman_mse":  # whose impurity and values are those of the squared error
        given["criterion"] = "squared_error"
    ours.set_params(**given)
    if not isinstance(ours.criterion, str) or not isinstance(ours.splitter, str):
        raise ValueError(f"criterion={ours.criterion!r} and splitter={ours.splitter!r} must be names, not objects")
    ours._check_parameters()
    checked: BaseTree = ours
    return checked
