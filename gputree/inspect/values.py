"""Values of parameters and labels as JSON, types kept; see `gputree.io`. May import everything below."""

from __future__ import annotations

from typing import Any

import numpy as np

from gputree.inspect.check import expect


def encode(value: Any, what: str) -> Any:
    """A value as JSON, types kept."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if np.isfinite(value) else {"float": repr(value)}
    if type(value) in (list, tuple):
        items = [encode(item, what) for item in value]
        return items if type(value) is list else {"tuple": items}
    if type(value) is dict:
        return {"dict": [[encode(key, what), encode(item, what)] for key, item in value.items()]}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufU":
        key = "array" if isinstance(value, np.ndarray) else "scalar"
        return {key: encode(value.tolist(), what), "dtype": value.dtype.str}
    remedy = "it holds None, bool, int, float, str, and lists, dicts and arrays of them"
    if isinstance(value, np.random.RandomState | np.random.Generator):
        remedy = "give an int, which draws the same numbers at every fit"
    raise TypeError(f"{what} is of type {type(value).__name__}, which a model file cannot hold; {remedy}")


def decode(value: Any) -> Any:
    """The value that `encode` wrote."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"float": "inf" | "-inf" | "nan" as text, **rest} if not rest:
            return float(text)
        case {"tuple": list(items), **rest} if not rest:
            return tuple(decode(items))
        case {"dict": list(items), **rest} if not rest:
            return {decode(key): decode(item) for key, item in items}
        case {"array": list(items), "dtype": str(dtype), **rest} if not rest:
            return np.array(decode(items), plain_dtype(dtype, "biufU"))
        case {"scalar": item, "dtype": str(dtype), **rest} if not rest:
            return plain_dtype(dtype, "biufU").type(decode(item))
    raise ValueError(f"{str(value)[:80]} is no value of this format")


def plain_dtype(text: Any, kinds: str) -> np.dtype[Any]:
    """A NumPy type by its name, if it is of one of these kinds."""
    expect(isinstance(text, str) and 2 <= len(text) <= 20, f"{str(text)[:40]!r} is no array type")
    dtype: np.dtype[Any] = np.dtype(text)
    expect(dtype.kind in kinds and dtype.names is None, f"array type {text!r} is not allowed here")
    return dtype
