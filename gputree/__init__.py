"""Decision trees for large tables, as scikit-learn estimators whose fitted arrays are reproducible to the bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gputree.inspect.text import export_text
    from gputree.io import load, save
    from gputree.learners.trees import (
        DecisionTreeClassifier,
        DecisionTreeRegressor,
        ExtraTreeClassifier,
        ExtraTreeRegressor,
    )

__all__ = [
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
    "export_text",
    "load",
    "save",
]

_HOMES = {
    "export_text": "gputree.inspect.text",
    "load": "gputree.io",
    "save": "gputree.io",
}


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that ``import gputree`` itself is quick."""
    if name not in __all__:
        raise AttributeError(f"module 'gputree' has no attribute {name!r}; it offers {', '.join(__all__)}")
    from importlib import import_module

    return getattr(import_module(_HOMES.get(name, "gputree.learners.trees")), name)


def __dir__() -> list[str]:
    """Names on offer."""
    return sorted([*__all__, "__version__"])
