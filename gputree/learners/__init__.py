"""The scikit-learn estimators: a docstring, parameters and a recipe each."""

from typing import Any

from gputree.learners.bagging_forest import BaggingTreeClassifier, BaggingTreeRegressor
from gputree.learners.c45 import C45Classifier
from gputree.learners.extra_forest import ExtraTreesClassifier, ExtraTreesRegressor
from gputree.learners.extra_trees import ExtraTreeClassifier, ExtraTreeRegressor
from gputree.learners.id3 import ID3Classifier
from gputree.learners.isolation import IsolationForest
from gputree.learners.mdl import MDLTreeClassifier
from gputree.learners.random_forest import RandomForestClassifier, RandomForestRegressor
from gputree.learners.random_target import RandomTreesEmbedding
from gputree.learners.trees import DecisionTreeClassifier, DecisionTreeRegressor

ESTIMATORS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor)
}
MODELS: dict[str, Any] = ESTIMATORS | {  # what a model file may hold
    kind.__name__: kind
    for kind in (
        ID3Classifier,
        RandomForestClassifier,
        RandomForestRegressor,
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        RandomTreesEmbedding,
        IsolationForest,
        C45Classifier,
        BaggingTreeClassifier,
        BaggingTreeRegressor,
        MDLTreeClassifier,
    )
}
