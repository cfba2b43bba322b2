"""The best test of every feature, with the numbers of the lectures. May import everything below."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from gputree.core.checks import what_is
from gputree.inspect.split_records import SplitBranch, SplitRow, SplitTable
from gputree.inspect.split_search import At, described, path_key
from gputree.learners.base import BaseTree
from gputree.learners.trees import DecisionTreeClassifier, DecisionTreeRegressor

__all__ = ["SplitBranch", "SplitRow", "SplitTable", "split_table", "split_table_of"]

_SPLITS = ("binary", "multiway")


def split_table(
    X: Any, y: Any, *, criterion: str = "entropy", split: str = "multiway", sample_weight: ArrayLike | None = None
) -> SplitTable:
    """Compare the best tests of all features on a table, as lectures do before they draw the root of a tree.

    Parameters
    ----------
    X : array-like or frame of shape (n_rows, n_features)
        As for the fit of a tree: columns of numbers are tested by thresholds, columns of text and categories as `split`
        says.
    y : array-like of shape (n_rows,)
        Classes, or numbers for the criteria ``squared_error`` and ``poisson``.
    criterion : str, default="entropy"
        ``entropy``, ``gini``, ``train_error``, ``gain_ratio``, ``log_loss``, ``twoing`` or ``chi2`` for classes;
        ``squared_error`` or ``poisson`` for numbers.
    split : {"multiway", "binary"}, default="multiway"
        Whether a column of categories gets a branch for each, or the best two groups of them.
    sample_weight : array-like of shape (n_rows,), optional
        Finite weights >= 0, not all 0. A weight of 0 is absence, a weight of k is k copies.

    Returns
    -------
    SplitTable

    Raises
    ------
    ValueError, TypeError
        If `criterion` or `split` is not offered, if y has several outputs, and where a fit refuses its input.

    Notes
    -----
    Quinlan (1986), *Machine Learning* 1: 81-106; Shalev-Shwartz and Ben-David, 18.2.1; Raschka, STAT 479 chapter 6,
    6.8; Procaccia, lecture 16; Nilsson, chapter 6, 6.2.2. Rows whose value is missing count too: they have a branch of
    their own beside one for each category, and take the better side of a test of two branches.

    Examples
    --------
    >>> from gputree.datasets import load_weather
    >>> weather = load_weather().to_frame("pandas")
    >>> table = split_table(weather.drop(columns="play"), weather["play"])
    >>> table.best, [round(row.gain, 3) for row in table.rows]
    ('outlook', [0.247, 0.029, 0.152, 0.048])
    """
    if split not in _SPLITS:
        raise ValueError(f"split={split!r} is not offered; choose one of {', '.join(map(repr, _SPLITS))}")
    learner = _learner(criterion)
    return described(learner(criterion=criterion, categorical_split=split), X, y, sample_weight)


def split_table_of(model: Any, X: Any, y: Any, node: int = 0, sample_weight: ArrayLike | None = None) -> SplitTable:
    """Compare the best tests of all features at a node of a fitted tree, by the tree's own criterion and limits.

    What stops growth (depth, rows of a node, least decrease, number of leaves) and the draw of ``max_features`` do not
    count: every feature shows its best test, also at a leaf.

    Parameters
    ----------
    model : estimator
        A fitted tree of this library.
    X : array-like or frame of shape (n_rows, n_features)
        The rows that the tree was fitted on, or others with the same columns.
    y : array-like of shape (n_rows,)
        Their classes or numbers.
    node : int, default=0
        Number of the node, of whose rows the table is made: those whose ``decision_path`` passes it.
    sample_weight : array-like of shape (n_rows,), optional
        The weights of the fit.

    Returns
    -------
    SplitTable

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If `model` is no tree of this library.
    ValueError
        If there is no such node, or no row in it; if y has several outputs; at nodes below the root, if the tree has
        monotonic constraints; if thresholds are random and the tree, converted or of an older file, does not know the
        seed that its random_state gave.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_weather
    >>> weather = load_weather().to_frame("pandas")
    >>> X, y = weather.drop(columns="play"), weather["play"]
    >>> model = DecisionTreeClassifier(criterion="entropy", categorical_split="multiway").fit(X, y)
    >>> split_table_of(model, X, y, node=3).best
    'windy'
    """
    if not isinstance(model, BaseTree):
        raise TypeError(f"model is {what_is(model)}; give a tree of this library, such as DecisionTreeClassifier")
    check_is_fitted(model)
    last = model.forest_.n_nodes - 1
    if not isinstance(node, Integral) or not 0 <= node <= last:
        raise ValueError(f"node={node!r} does not exist; the nodes of this tree are 0 to {last}")
    if node and model.monotonic_cst is not None:
        raise ValueError(
            f"node={node} is bounded by the tests above it, for the tree has monotonic_cst; only the root's table, "
            "node=0, can be made"
        )
    inside = model.decision_path(X)[:, [int(node)]].toarray().ravel() > 0 if node else None
    key = path_key(model, int(node)) if model.splitter == "random" else 0
    return described(clone(model), X, y, sample_weight, At(inside, key))


def _learner(criterion: str) -> type[BaseTree]:
    """The tree that knows a criterion."""
    learners: tuple[type[BaseTree], ...] = (DecisionTreeClassifier, DecisionTreeRegressor)
    for learner in learners:
        if criterion in learner._criteria:
            return learner
    known = ", ".join(repr(name) for learner in learners for name in learner._criteria)
    raise ValueError(f"criterion={criterion!r} is not offered; choose one of {known}")
