"""How large a fitted model is. May import everything below."""

from __future__ import annotations

from typing import Any

import numpy as np


def size_of(model: Any) -> int | None:
    """Size of a fitted model, in what models of its kind are made of.

    Parameters
    ----------
    model : estimator
        Fitted.

    Returns
    -------
    int or None
        Leaves of a tree or of all trees of a forest, rules of `C45Rules`, weights of a linear model or a net, rows that
        nearest neighbours keep; of pipelines and searches that of the model inside. None for other models.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.model_selection import size_of
    >>> X, y = load_iris(return_X_y=True)
    >>> size_of(DecisionTreeClassifier(max_depth=1).fit(X, y)), size_of(KNeighborsClassifier().fit(X, y))
    (2, 150)
    """
    inner = next(
        (getattr(model, name) for name in ("best_estimator_", "_final_estimator") if hasattr(model, name)), None
    )
    if inner is not None:
        return size_of(inner)
    if hasattr(model, "rules_"):
        return len(model.rules_)
    if hasattr(model, "forest_"):
        return int(model.forest_.n_leaves)
    if hasattr(model, "get_n_leaves"):
        return int(model.get_n_leaves())
    if hasattr(model, "coefs_"):
        return sum(int(part.size) for part in [*model.coefs_, *model.intercepts_])
    if hasattr(model, "coef_"):
        return int(model.coef_.size + getattr(model.intercept_, "size", 1))
    if hasattr(model, "n_samples_fit_"):
        return int(model.n_samples_fit_)
    sizes = [size_of(part) for part in np.ravel(np.array(getattr(model, "estimators_", ()), object))]
    return sum(size for size in sizes if size is not None) or None
