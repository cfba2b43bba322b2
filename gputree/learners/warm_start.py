"""What the trees that a warm start adds must share with those that are there. May import everything below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from sklearn.base import BaseEstimator

from gputree.core.checks import bare, brief

ASIDE = (  # parameters that no tree depends on, and those whose meaning for the table is compared
    *("n_estimators", "n_jobs", "verbose", "warm_start", "device", "voting", "oob_score", "oob_tol", "unknown"),
    *("sparse_output", "contamination", "random_state", "bootstrap", "max_samples", "categorical_features"),
    "categories",
)


def text_of(value: Any, alone: list[Any]) -> str:
    """A value as text, by its parts however long it is; what has no parts to compare joins ``alone``.

    Examples
    --------
    >>> text_of({"a": [1, 2.5, None]}, [])
    "{'a': [1, 2.5, None]}"
    """
    value = bare(value)
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(sorted(f'{text_of(k, alone)}: {text_of(v, alone)}' for k, v in value.items()))}}}"
    if isinstance(value, list | tuple | range) or hasattr(value, "tolist"):
        parts: Iterable[Any] = value.tolist() if hasattr(value, "tolist") else value
        return f"[{', '.join(text_of(part, alone) for part in parts)}]"
    if is_dataclass(value) and not isinstance(value, type):
        return f"{name} {text_of({f.name: getattr(value, f.name) for f in fields(value)}, alone)}"
    if isinstance(value, BaseEstimator):
        return f"{name} {text_of(parameters_of_trees(value.get_params(deep=False)), alone)}"
    alone.append(value)
    return name


def parameters_of_trees(given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the parameters of an estimator that its trees depend on."""
    return {name: value for name, value in given.items() if name not in ASIDE}


def described(given: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, list[Any]]]:
    """The parameters that trees depend on as texts, and the objects in them that only identity tells from others."""
    alone: dict[str, list[Any]] = {name: [] for name in parameters_of_trees(given)}
    return {name: text_of(given[name], objects) for name, objects in alone.items()}, alone


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
