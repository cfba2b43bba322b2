"""Errors of forests by number of trees, as a line of matplotlib. May import everything below; matplotlib inside."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gputree.inspect.plot import axes_for


def plot_oob_errors(model: Any, ax: Any = None) -> Any:
    """Draw the out-of-bag error of a forest by its number of trees.

    Parameters
    ----------
    model : forest
        Fitted with ``oob_score`` or ``oob_tol``.
    ax : matplotlib Axes, optional
        Where to draw; by default the axes or figure that were just made and are still empty, else a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the forest has no out-of-bag errors.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from sklearn.datasets import load_iris
    >>> from gputree import RandomForestClassifier, plot_oob_errors
    >>> model = RandomForestClassifier(30, oob_score=True).fit(*load_iris(return_X_y=True))
    >>> plot_oob_errors(model).get_xlabel()
    'trees'
    """
    check_is_fitted(model)
    errors = getattr(model, "oob_errors_", None)
    if errors is None:
        raise ValueError(f"{type(model).__name__} has no oob_errors_; fit a forest with oob_score=True or oob_tol")
    ax = axes_for(ax, "plot_oob_errors")
    ax.plot(np.arange(1, errors.size + 1), errors)
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("trees")
    ax.set_ylabel("out-of-bag error")
    return ax
