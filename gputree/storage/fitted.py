"""What a forest keeps of its fit beside its trees, as JSON and members, and back. May import everything below.

The classes of estimators name these attributes themselves, in ``_saved``: values that JSON can hold, arrays, lists of
arrays, and how bags were drawn.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.core.checks import brief, what_is
from gputree.core.forest import Forest, Test
from gputree.core.packed import narrow
from gputree.inspect.check import expect
from gputree.inspect.values import decode, encode, plain_dtype
from gputree.learners.bagging import Bagging
from gputree.learners.growth import REASONS
from gputree.storage.record import each, only, part, typed
from gputree.storage.upgrade import Arrays

NUMBERS = "biuf"  # kinds of the arrays
PER_ROW = ("oob_decision_function_", "oob_prediction_")  # attributes with a value for every row of the fit
SEEDS = 2**32  # what `random_state` allows
KEYS = 2**64  # of random draws at a node


def describe_fitted(model: Any, arrays: Arrays) -> dict[str, Any]:
    """The header's entries of the attributes that a model has; adds their arrays.

    Raises
    ------
    TypeError
        If an attribute has a type that the file cannot hold; the message names it.
    """
    return {name: entry_of(getattr(model, name), name, arrays) for name in model._saved if name in vars(model)}


def entry_of(value: Any, name: str, arrays: Arrays) -> Any:
    """A value; arrays become members."""
    if isinstance(value, Bagging):
        record = {f.name: getattr(value, f.name) for f in fields(value)}
        return {"bagging": {key: entry_of(item, f"{name}.{key}", arrays) for key, item in record.items()}}
    if isinstance(value, list) and any(isinstance(item, np.ndarray) for item in value):
        return {"list": [entry_of(item, f"{name}.{i}", arrays) for i, item in enumerate(value)]}
    if isinstance(value, np.ndarray) and value.dtype.kind in NUMBERS:
        arrays[member(name)] = narrow(value)
        return {"member": member(name), "dtype": value.dtype.newbyteorder("<").str}
    return encode(value, f"attribute {name}")


def member(name: str) -> str:
    """Where an array lies in the file."""
    return f"fitted/{name}.npy"


def add_fitted(model: Any, entries: dict[str, Any], arrays: Arrays) -> None:
    """The attributes of a model; takes their members out of the arrays.

    Raises
    ------
    ValueError
        If there are others than its class keeps, or something in them is of another type.
    """
    strange = sorted(set(entries) - set(model._saved))
    expect(not strange, f"{what_is(model)} keeps no {brief(next(iter(strange), ''))} of its fit")
    for name, entry in entries.items():
        setattr(model, name, value_of(entry, name, arrays))


def value_of(entry: Any, name: str, arrays: Arrays) -> Any:
    """The value of an entry."""
    match entry:
        case {"bagging": dict(record), **rest} if not rest:
            only(record, {f.name for f in fields(Bagging)}, name)
            return Bagging(**{key: value_of(item, f"{name}.{key}", arrays) for key, item in record.items()})
        case {"list": list(items), **rest} if not rest:
            return [value_of(item, f"{name}.{i}", arrays) for i, item in enumerate(each(items, dict, name))]
        case {"member": str(listed), "dtype": str(text), **rest} if not rest:
            expect(listed == member(name), f"{name} is listed in {brief(listed)}, not in {member(name)}")
            expect(listed in arrays, f"it has no member {listed}")
            return full_array(arrays.pop(listed), plain_dtype(text, NUMBERS), listed)
    return decode(entry)


def full_array(array: NDArray[Any], dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    """The numbers in their own type, if it holds them."""
    expect(array.dtype.kind in NUMBERS, f"{name} has type {array.dtype}")
    with np.errstate(all="ignore"):
        full = array.astype(dtype.newbyteorder("="))
    same = full == array if dtype.kind != "f" else (full == array) | (full != full)
    expect(np.all(same), f"{name} does not fit its type {dtype.str}")
    return full


def check_fitted(model: Any, forest: Forest) -> None:
    """Check that what a forest keeps of its fit agrees with its trees; of a single tree, that it is one.

    Raises
    ------
    ValueError
        If it does not; the message says what is wrong.
    """
    check_reasons(model, forest)
    typed(getattr(model, "pruned_by_", ""), str, "what the trees were pruned by")
    key = typed(getattr(model, "_root_key", 0), int, "the key of the root")
    expect(0 <= key < KEYS, f"the key of the root is {brief(key)}, and keys are 0 to {KEYS - 1}")
    typed(getattr(model, "_target_name", ""), str, "the name of the target")
    if "seed_" not in model._saved:
        expect(forest.roots.size == 1, f"{what_is(model)} has one tree, and the file has {forest.roots.size}")
        check_tests(model, forest)
        check_bounds(model, forest)
        return
    for name in ("seed_", "n_rows_", "bagging_"):
        expect(hasattr(model, name), f"{what_is(model)} needs {name}, and the file has none")
    seed = typed(model.seed_, int, "the seed")
    expect(0 <= seed < SEEDS, f"the seed is {brief(seed)}, and seeds are 0 to {SEEDS - 1}")
    n_rows = typed(model.n_rows_, int, "the number of rows")
    stats = forest.stats[forest.roots].T
    rows = model.layout_.count(stats)
    with np.errstate(over="ignore"):  # no number of draws then
        draws = model.layout_.weight(stats) * model.weight_unit_
    if model.bagging_ is None:
        expect((stats == stats[:, :1]).all(), "a tree has other rows than the first, and the file has no bags")
    else:
        check_bagging(typed(model.bagging_, Bagging, "bagging_"), n_rows)
        total = int(model.bagging_.sizes.sum())
        expect((draws == total).all(), f"a tree has other draws than {total}")
    expect((rows <= n_rows).all(), f"the fit had {brief(n_rows)} rows, and a tree has more")
    if isinstance(getattr(model, "_grown_by", None), str):
        del model._grown_by  # one text in files of earlier versions
    grown_by = typed(getattr(model, "_grown_by", {}), dict, "what the trees were grown by")
    each([*grown_by, *grown_by.values()], str, "what the trees were grown by")
    for name in PER_ROW:
        value = getattr(model, name, None)
        for array in value if isinstance(value, list) else [value]:
            fits = not isinstance(array, np.ndarray) or array.shape[:1] == (n_rows,)
            expect(fits, f"{name} has another number of rows than {brief(n_rows)}")


def check_reasons(model: Any, forest: Forest) -> None:
    """A reason for every leaf where there is a rule, and none where there is none."""
    expect(
        all(hasattr(model, name) == (model.stopping is not None) for name in REASONS),
        "it has reasons of leaves without a rule, or a rule without reasons",
    )
    if model.stopping is None:
        return
    words, codes = typed(model._stop_words, list, "the texts of reasons"), model._stop_codes
    each(words, str, "the texts of reasons")
    expect(is_list(codes, np.uint8, forest.n_nodes), "there is not a reason for every node")
    expect((codes < len(words)).all(), "a leaf has a reason that is not there")


def check_tests(model: Any, forest: Forest) -> None:
    """A whole number of tests that each one was chosen among, where they are kept."""
    if hasattr(model, "_tests"):
        tests = model._tests
        expect(is_list(tests, np.float64, forest.n_nodes), "there is not a number of tests for every node")
        fits = (tests == np.where(forest.kind == Test.LEAF, 0.0, np.floor(np.maximum(tests, 1.0)))) & (tests < np.inf)
        expect(fits.all(), "a test was chosen among a number of tests that is none")


def check_bounds(model: Any, forest: Forest) -> None:
    """Every threshold lies between its bounds where there are some; the parameter may be that of a next fit."""
    if not hasattr(model, "threshold_bounds_"):
        return
    bounds, cut = model.threshold_bounds_, forest.kind == Test.THRESHOLD
    fits = isinstance(bounds, np.ndarray) and bounds.dtype == np.float64 and bounds.shape == (forest.n_nodes, 2)
    expect(fits, "there are not two bounds for every node")
    expect(np.isnan(bounds[~cut]).all(), "a node has bounds and no threshold")
    low, high = bounds[cut].T
    between = (low <= forest.low[cut]) & (forest.low[cut] <= high)
    with np.errstate(over="ignore", invalid="ignore"):
        expect((between & (np.isfinite(high - low) | (low == high))).all(), "a threshold is not between its bounds")


def check_bagging(bagging: Bagging, n_rows: int) -> None:
    """Rows that exist, probabilities that are some."""
    record = {f.name: getattr(bagging, f.name) for f in fields(bagging)}
    kept, weight, sizes, labels = (record[name] for name in ("kept", "weight", "sizes", "labels"))
    expect(part(record, "n_rows", int) == n_rows, f"the bags are of other rows than {brief(n_rows)}")
    typed(bagging.replace, bool, "whether rows are drawn again")
    n = n_rows
    if kept is not None:
        n = np.size(kept)
        expect(is_list(kept, np.int64, n) and n, "the rows that bags draw from are no list of numbers")
        inside = kept[0] >= 0 and kept[-1] < n_rows and (np.diff(kept) > 0).all()
        expect(inside, "bags draw from rows that are not there")
    expect(is_list(sizes, np.int64, np.size(sizes)) and np.size(sizes) > 0, "the draws of a bag are no list of numbers")
    expect((sizes >= 0).all() and 0 < sizes.sum() < 2**62, f"a bag has {brief(sizes.tolist())} draws")
    counts = np.array([n])
    if labels is not None:
        fits = is_list(labels, np.int64, n) and ((labels >= 0) & (labels < sizes.size)).all()
        expect(fits, "rows are drawn from strata that are not there")
        counts = np.bincount(labels, minlength=sizes.size)
    expect(counts.size == sizes.size, f"a bag is drawn from {sizes.size} strata, and the rows have one")
    enough = (counts > 0) if bagging.replace else (counts >= sizes)
    expect((enough | (sizes == 0)).all(), "a bag draws more rows of a stratum than there are")
    if weight is not None:
        fits = is_list(weight, np.float64, n) and ((weight > 0) & (weight < np.inf)).all()
        expect(fits, "a row is drawn with a probability that is none")


def is_list(array: Any, dtype: Any, size: int) -> bool:
    """Whether this is an array (size,) of this type."""
    return isinstance(array, np.ndarray) and array.dtype == dtype and array.shape == (size,)
