"""What the trees that a warm start adds must share with those that are there. May import everything below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from sklearn.base import BaseEstimator

from gputree.core.checks import bare, brief

ASIDE = (  # parameters that no tree depends on, and those whose meaning for the table is compared
    *("n_estimators", "n_jobs", "verbose", "warm_start", "device", "voting", "oob_score", "oob_tol", "unknown"),
    *("sparse_output", "contamination", "random_state", "bootstrap", "max_samples", "categorical_features"),
    "categories",
)
TYPED = ("max_features", "min_samples_leaf", "min_samples_split", "stopping", "pruning", "estimator")  # numbers, shares


def text_of(value: Any, alone: list[Any], typed: bool = True) -> str:
    """A value as text, by its parts however long it is; what has no parts to compare joins ``alone``.

    ``typed``: whether 1 and 1.0 mean different things, as of ``max_features``.

    Examples
    --------
    >>> text_of({"a": [1, 2.5, None]}, []), text_of(1.0, []), text_of(1.0, [], typed=False)
    ("{'a': [1, 2.5, None]}", '1.0', '1')
    """
    value = bare(value)
    if not typed and isinstance(value, float) and value.is_integer():
        value = int(value)
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, Mapping):
        pairs = sorted(f"{text_of(k, alone, typed)}: {text_of(v, alone, typed)}" for k, v in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple | range) or hasattr(value, "tolist"):
        parts: Iterable[Any] = value.tolist() if hasattr(value, "tolist") else value
        return f"[{', '.join(text_of(part, alone, typed) for part in parts)}]"
    if "__dataclass_fields__" in vars(type(value)):  # of its own: a subclass may have more than fields
        return f"{name} {text_of({f.name: getattr(value, f.name) for f in fields(value)}, alone)}"
    if isinstance(value, BaseEstimator):
        return f"{name} {text_of(parameters_of_trees(value.get_params(deep=False)), alone)}"
    alone.append(value)
    return name


def parameters_of_trees(given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the parameters of an estimator that its trees depend on."""
    found = {name: value for name, value in given.items() if name not in ASIDE}
    if found.get("criterion") == "log_loss":
        found["criterion"] = "entropy"  # which is its other name
    return found


def described(given: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, list[Any]]]:
    """The parameters that trees depend on as texts, and the objects in them that only identity tells from others."""
    own = parameters_of_trees(given)
    alone: dict[str, list[Any]] = {name: [] for name in own}
    return {name: text_of(own[name], objects, name in TYPED) for name, objects in alone.items()}, alone


def remember(model: Any, given: Mapping[str, Any]) -> None:
    """Keep what parameters a fit has; of what only identity tells apart a file keeps nothing."""
    model._grown_by, alone = described(given)
    model.__dict__.pop("_told_apart", None)
    if any(alone.values()):
        model._told_apart = alone


def changed_parameters(before: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Names of the parameters that are not those of a fit, of which `remember` has kept some attributes.

    Raises
    ------
    ValueError
        If it cannot be told of one.
    """
    texts, alone = described(given)
    old, kept = before.get("_grown_by", {}), before.get("_told_apart", {})
    changed = [name for name, text in old.items() if texts.get(name) != text]
    for name in [] if changed else old:
        pairs = zip(kept.get(name, []), alone[name], strict=False)
        if len(kept.get(name, [])) != len(alone[name]) or any(mine is not other for mine, other in pairs):
            raise ValueError(
                f"warm_start=True adds trees of the same parameters, and {name}={brief(given[name])} cannot be told to "
                "be that of the first fit: what has no values to compare must be the same object; give that one, or "
                "fit with warm_start=False"
            )
    return changed
