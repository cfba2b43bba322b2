"""Values of parameters, labels and categories as JSON, types kept; see `gputree.io`. May import everything below."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from gputree import stopping
from gputree.core.checks import brief
from gputree.engine import pruning
from gputree.inspect.check import expect
from gputree.learners import MODELS

NUMBERS = "biuf"
SCALARS = NUMBERS + "UmM"  # kinds of NumPy scalars, and of arrays but for those of objects
INTEGER_BITS = 1024  # a larger integer is no number that anybody means
REMEDY = "it holds None, bool, int, float, str, NumPy's scalars, rules, trees, and lists, tuples, dicts, arrays of them"
RULES: dict[str, Any] = {f"pruning.{name}": kind for name, kind in pruning.RULES.items()} | {
    f"stopping.{name}": kind for name, kind in stopping.RULES.items()
}
NAMES = {kind: name for name, kind in RULES.items()}
DTYPE = re.compile(r"[<>|][biufUSmM][0-9]{1,9}(\[[0-9]{0,6}[A-Za-z]{1,2}\])?|\|O", re.ASCII)


def encode(value: Any, what: str) -> Any:
    """A value as JSON, types kept.

    Raises
    ------
    TypeError
        If JSON cannot hold it so that the same value comes back; ``what`` names it.

    Examples
    --------
    >>> import numpy as np
    >>> encode([1, 2.5, ("a", None)], "it")
    [1, 2.5, {'tuple': ['a', None]}]
    >>> encode({np.int64(3): float("inf")}, "it")
    {'dict': [[{'scalar': 3, 'dtype': '<i8'}, {'float': 'inf'}]]}
    """
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is int and value.bit_length() <= INTEGER_BITS:
        return value
    if type(value) is float:
        return value if np.isfinite(value) else {"float": repr(value)}
    if type(value) in (list, tuple):
        items = [encode(item, what) for item in value]
        return items if type(value) is list else {"tuple": items}
    if type(value) in NAMES:
        own = {f.name: encode(getattr(value, f.name), what) for f in fields(value)}
        return {"rule": NAMES[type(value)], "fields": own}
    if MODELS.get(type(value).__name__) is type(value):
        given = value.get_params(deep=False)
        return {"estimator": type(value).__name__, "parameters": {n: encode(v, what) for n, v in given.items()}}
    if type(value) is dict:
        return {"dict": [[encode(key, what), encode(item, what)] for key, item in value.items()]}
    if isinstance(value, np.generic) and is_portable(value.dtype, SCALARS):
        return {"scalar": encode(plain_values(value), what), "dtype": value.dtype.newbyteorder("<").str}
    if type(value) is np.ndarray and has_lists(value):
        return {"array": encode(plain_values(value), what), "dtype": value.dtype.str}
    raise TypeError(
        f"{what} is {brief(value)} of type {type(value).__name__}, which a model file cannot hold; {remedy(value)}"
    )


def plain_values(value: Any) -> Any:
    """A NumPy scalar or array as Python's own values in lists: dates and durations as the integers that they are."""
    return (value.astype("i8") if value.dtype.kind in "mM" else value).tolist()


def has_lists(array: Any) -> bool:
    """Whether an array comes back from its values in lists, which show no shape where they are empty or hold lists."""
    if not is_portable(array.dtype, SCALARS + "O") or not array.ndim:
        return False
    return bool(array.ndim == 1 or (array.size and array.dtype != object))


def remedy(value: Any) -> str:
    """What to give instead of a value that JSON cannot hold."""
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return "give an int, which draws the same numbers at every fit"
    if isinstance(value, np.ndarray | np.generic):
        return "give a list, or a plain array of a type that every machine has, such as float64"
    if hasattr(value, "tolist"):  # series and indexes
        return "give a list or a NumPy array: .tolist(), .to_numpy()"
    if hasattr(value, "columns"):  # frames
        return "give a NumPy array: .to_numpy()"
    if isinstance(value, pruning.Rule):
        return "after the fit, set_params with None in its place takes it out of the model; the trees stay as they are"
    known = next((kind for kind in (bool, int, float, str, list, tuple, dict) if isinstance(value, kind)), None)
    if known is not None:
        limit = f" of at most {INTEGER_BITS} bits" if known is int else ""
        return f"give a plain {known.__name__}{limit}"
    return REMEDY


def is_portable(dtype: np.dtype[Any], kinds: str) -> bool:
    """Whether a NumPy type is one of these kinds, and one that every machine has: long double is none."""
    return dtype.kind in kinds and dtype.names is None and not (dtype.kind == "f" and dtype.itemsize > 8)


def decode(value: Any) -> Any:
    """The value that `encode` wrote.

    Raises
    ------
    ValueError
        If it wrote no such thing.

    Examples
    --------
    >>> decode({"dict": [[{"scalar": 3, "dtype": "<i8"}, {"tuple": [1, 2]}]]})
    {np.int64(3): (1, 2)}
    """
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
            return decode_dict(items)
        case {"array": list(items), "dtype": str(text), **rest} if not rest:
            return exactly(decode_array(items, plain_dtype(text, SCALARS + "O")), value)
        case {"rule": str(name), "fields": dict(own), **rest} if not rest:
            return decode_rule(name, own)
        case {"estimator": str(name), "parameters": dict(own), **rest} if not rest:
            return decode_estimator(name, own)
        case {"scalar": item, "dtype": str(text), **rest} if not rest and not isinstance(item, list):
            return exactly(decode_scalar(decode(item), plain_dtype(text, SCALARS)), value)
    raise ValueError(f"{brief(value)} is no value of this format")


def decode_dict(items: list[Any]) -> dict[Any, Any]:
    """A dict from its pairs."""
    if not all(type(pair) is list and len(pair) == 2 for pair in items):
        raise ValueError(f"{brief(items)} are no pairs of a dict")
    pairs = [(decode(key), decode(item)) for key, item in items]
    try:
        result = dict(pairs)
    except TypeError as error:  # a list, or a tuple that holds one
        raise ValueError(f"a key of a dict is a list, among {brief([key for key, _ in pairs])}") from error
    if len(result) != len(pairs):
        raise ValueError(f"two keys of a dict are equal, among {brief(list(result))}")
    return result


def decode_rule(name: str, own: dict[str, Any]) -> Any:
    """A rule of its kind and fields."""
    expect(name in RULES, f"{brief(name)} is no rule of pruning or stopping")
    known = fields(RULES[name])
    own = {f.name: encode(f.default, name) for f in known if f.default is not MISSING} | own  # newer than the file
    expect(set(own) == {f.name for f in known}, f"{brief(own)} are not the fields of the rule {name}")
    rule = RULES[name](**{key: decode(item) for key, item in own.items()})
    return exactly(rule, {"rule": name, "fields": own})


def decode_estimator(name: str, own: dict[str, Any]) -> Any:
    """An estimator without a fit; whoever takes it checks its parameters."""
    expect(name in MODELS, f"{brief(name)} is no estimator of this library")
    names = set(MODELS[name]().get_params())
    expect(set(own) == names, f"{brief(own)} are not the parameters of {name}")
    return MODELS[name](**{key: decode(item) for key, item in own.items()})


def decode_scalar(item: Any, dtype: np.dtype[Any]) -> Any:
    """A NumPy scalar from a value of Python."""
    if isinstance(item, str):
        return np.str_(item)  # an array would drop null characters from the end
    with np.errstate(all="ignore"):
        return np.array(item, "i8").view(dtype)[()] if dtype.kind in "mM" else np.array(item, dtype)[()]


def decode_array(items: list[Any], dtype: np.dtype[Any]) -> Any:
    """An array from nested lists; one of objects is a list of them."""
    values = decode(items)
    if dtype.kind == "U":  # an array of text is as wide as its longest text, however wide the file says it is
        longest = max(map(len, flat_texts(values)), default=0)
        fits = dtype.itemsize == 4 * max(1, longest)
        expect(fits, f"an array of type {dtype.str!r} with texts of {longest} letters is no value of this format")
    if dtype.kind == "O":
        return object_array(values)
    with np.errstate(all="ignore"):  # what does not fit comes out as another number, and is refused
        return np.array(values, "i8").view(dtype) if dtype.kind in "mM" else np.array(values, dtype)


def flat_texts(values: Any) -> Iterator[str]:
    """All texts of nested lists, without recursion."""
    todo = [values]
    while todo:
        item = todo.pop()
        if isinstance(item, list):
            todo.extend(item)
        elif isinstance(item, str):
            yield item


def exactly(result: Any, value: dict[str, Any]) -> Any:
    """The result, if `encode` makes the same JSON of it: no number was cut, no text shortened."""
    if encode(result, "it") != value:
        raise ValueError(f"{brief(value)} is no value of this format")
    return result


def plain_dtype(text: Any, kinds: str) -> np.dtype[Any]:
    """A NumPy type by its name, if it is of one of these kinds.

    Raises
    ------
    ValueError
        If it is none, or one that not every machine has.

    Examples
    --------
    >>> plain_dtype("<M8[ns]", "M")
    dtype('<M8[ns]')
    """
    if not isinstance(text, str) or not DTYPE.fullmatch(text):
        raise ValueError(f"{brief(text)} is no array type")
    try:
        dtype: np.dtype[Any] = np.dtype(text)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{brief(text)} is no array type") from error
    expect(is_portable(dtype, kinds) and dtype.itemsize > 0, f"array type {text!r} is not allowed here")
    return dtype


def object_array(values: list[Any]) -> Any:
    """An array of Python objects (n,).

    Examples
    --------
    >>> object_array(["a", (1, 2)])
    array(['a', (1, 2)], dtype=object)
    """
    array = np.empty(len(values), object)
    array[:] = values
    return array
