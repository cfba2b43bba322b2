"""The scikit-learn estimators: a docstring, parameters and a recipe each."""

from typing import Any

from gputree.learners.extra_trees import ExtraTreeClassifier, ExtraTreeRegressor
from gputree.learners.trees import DecisionTreeClassifier, DecisionTreeRegressor

ESTIMATORS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor)
}
