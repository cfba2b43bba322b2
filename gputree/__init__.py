"""Decision trees for large tables, as scikit-learn estimators whose fitted arrays are reproducible to the bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gputree.inspect.convert import from_sklearn, to_sklearn
    from gputree.inspect.curves import plot_oob_errors
    from gputree.inspect.dump import export_dict, trees_to_dataframe
    from gputree.inspect.graphviz import export_graphviz
    from gputree.inspect.html import tree_html
    from gputree.inspect.plot import plot_tree
    from gputree.inspect.rules import rules
    from gputree.inspect.split_table import split_table
    from gputree.inspect.text import export_text
    from gputree.io import load, save
    from gputree.learners.bagging_forest import BaggingTreeClassifier, BaggingTreeRegressor
    from gputree.learners.c45 import C45Classifier
    from gputree.learners.c45_rules import C45Rules
    from gputree.learners.extra_forest import ExtraTreesClassifier, ExtraTreesRegressor
    from gputree.learners.extra_trees import ExtraTreeClassifier, ExtraTreeRegressor
    from gputree.learners.id3 import ID3Classifier
    from gputree.learners.isolation import IsolationForest
    from gputree.learners.mdl import MDLTreeClassifier
    from gputree.learners.random_forest import RandomForestClassifier, RandomForestRegressor
    from gputree.learners.random_target import RandomTreesEmbedding
    from gputree.learners.rule_set import RuleSet
    from gputree.learners.trees import DecisionTreeClassifier, DecisionTreeRegressor

_HOMES = {
    "BaggingTreeClassifier": "gputree.learners.bagging_forest",
    "BaggingTreeRegressor": "gputree.learners.bagging_forest",
    "C45Classifier": "gputree.learners.c45",
    "C45Rules": "gputree.learners.c45_rules",
    "RandomForestRegressor": "gputree.learners.random_forest",
    "RandomForestClassifier": "gputree.learners.random_forest",
    "ExtraTreesRegressor": "gputree.learners.extra_forest",
    "ExtraTreesClassifier": "gputree.learners.extra_forest",
    "ID3Classifier": "gputree.learners.id3",
    "IsolationForest": "gputree.learners.isolation",
    "RandomTreesEmbedding": "gputree.learners.random_target",
    "MDLTreeClassifier": "gputree.learners.mdl",
    "DecisionTreeClassifier": "gputree.learners.trees",
    "DecisionTreeRegressor": "gputree.learners.trees",
    "ExtraTreeClassifier": "gputree.learners.extra_trees",
    "ExtraTreeRegressor": "gputree.learners.extra_trees",
    "export_dict": "gputree.inspect.dump",
    "export_graphviz": "gputree.inspect.graphviz",
    "export_text": "gputree.inspect.text",
    "from_sklearn": "gputree.inspect.convert",
    "load": "gputree.io",
    "plot_oob_errors": "gputree.inspect.curves",
    "plot_tree": "gputree.inspect.plot",
    "rules": "gputree.inspect.rules",
    "RuleSet": "gputree.learners.rule_set",
    "save": "gputree.io",
    "split_table": "gputree.inspect.split_table",
    "to_sklearn": "gputree.inspect.convert",
    "tree_html": "gputree.inspect.html",
    "trees_to_dataframe": "gputree.inspect.dump",
}
_MODULES = ("datasets", "impurity", "model_selection", "pruning", "stopping")

__all__ = [
    "BaggingTreeClassifier",
    "BaggingTreeRegressor",
    "C45Classifier",
    "C45Rules",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "ID3Classifier",
    "IsolationForest",
    "MDLTreeClassifier",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "RandomTreesEmbedding",
    "RuleSet",
    "datasets",
    "export_dict",
    "export_graphviz",
    "export_text",
    "from_sklearn",
    "impurity",
    "load",
    "model_selection",
    "plot_oob_errors",
    "plot_tree",
    "pruning",
    "rules",
    "save",
    "split_table",
    "stopping",
    "to_sklearn",
    "tree_html",
    "trees_to_dataframe",
]


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that ``import gputree`` itself is quick."""
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"gputree.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'gputree' has no attribute {name!r}; it offers {', '.join(__all__)}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Names on offer."""
    return sorted([*__all__, "__version__"])
