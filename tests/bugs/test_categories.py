"""Categories: exact means, values first met at predict, many of them, numbers that mean nothing, text in columns."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import gputree
from tests.bugs.shared import LEARNERS, TASKS, WAYS, Classifier, Regressor, leaf_rows, same_tests

SPLITS = ["binary", "multiway"]


def coded(model_class: Any, **settings: Any) -> Any:
    """A learner that reads its first column as categories, whatever the numbers in it."""
    return model_class(categorical_features=[0], **settings)


FORMS: dict[str, Callable[[list[str]], Any]] = {
    "text": lambda v: pd.DataFrame({"c": v}),
    "category": lambda v: pd.DataFrame({"c": pd.Categorical(v)}),
    "polars Enum": lambda v: pl.DataFrame({"c": pl.Series(v, dtype=pl.Enum(sorted(set(v))))}),
    "polars Categorical": lambda v: pl.DataFrame({"c": pl.Series(v, dtype=pl.Categorical)}),
    "dictionary": lambda v: pa.table({"c": pa.array(v).dictionary_encode()}),
    "array": lambda v: np.array(v, object)[:, None],
    "list": lambda v: [[each] for each in v],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("split", SPLITS)
def test_C01_means_of_categories_are_exact(form: str, split: str) -> None:
    """Values 10, 30 and 20 by category come back as 10, 30 and 20, in every form and under every way to grow."""
    X, y = FORMS[form](["a", "b", "c", "b"]), [10.0, 30, 20, 30]
    for way in WAYS.values():
        model = Regressor(categorical_split=split, **way).fit(X, y)
        assert model.predict(X).tolist() == y
        assert np.count_nonzero(leaf_rows(model)) == 3


@pytest.mark.parametrize("split", SPLITS)
def test_C01_shares_of_categories_are_exact(split: str) -> None:
    """Two classes in three categories, with weights: 1/4, 1 and 2/3."""
    X = pd.DataFrame({"c": [*"aabccc"]})
    shares = Classifier(categorical_split=split).fit(X, [0, 1, 1, 0, 1, 1], [3, 1, 9, 2, 2, 2]).predict_proba(X)[:, 1]
    assert shares.tolist() == [1 / 4, 1 / 4, 1, 2 / 3, 2 / 3, 2 / 3]


@pytest.mark.parametrize("new", ["z", "aa", "B", "", "a ", "c" * 999])
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("cls", LEARNERS)
def test_C02_an_unseen_category_follows_the_largest_child(cls: Any, split: str, new: str) -> None:
    """Three rows of a, two of b, one of c: whatever is none of them is told what a is told, or refused by name."""
    X, y = pd.DataFrame({"c": [*"aaabbc"], "d": [*"uuuuuu"]}), [0, 0, 0, 1, 1, 1]
    late = pd.DataFrame({"c": [new, "b"], "d": ["u", new]})
    model = cls(categorical_split=split, max_features=None).fit(X, y)
    assert model.predict(late).tolist() == [0, 1]
    strict = cls(categorical_split=split, unknown="error").fit(X, y)
    with pytest.raises(
        ValueError,
        match=r"column 'c' holds .* in row 0 \(counted from 0\), which is none of its categories 'a', 'b', 'c'",
    ):
        strict.predict(late)


def test_C02_a_category_declared_and_never_met_is_known_but_unmet() -> None:
    """It follows the larger child of a binary test, and predicts what the node would where it has its own branch."""
    X = pd.DataFrame({"c": pd.Categorical([*"aaabb"], categories=[*"abc"])})
    late = pd.DataFrame({"c": pd.Categorical(["c"], categories=[*"abc"])})
    for unknown in ("majority", "error"):
        assert Regressor(unknown=unknown).fit(X, [1, 1, 1, 6, 6]).predict(late).tolist() == [1]
        multiway = Regressor(unknown=unknown, categorical_split="multiway").fit(X, [1, 1, 1, 6, 6])
        assert multiway.predict(late).tolist() == [3]


def test_C02_categories_met_elsewhere_but_not_in_the_node() -> None:
    """The lower node met only a and b; c is known to the model and follows the larger of its children."""
    X = pd.DataFrame({"x": [0, 0, 0, 1, 1], "c": [*"aabcc"]})
    model = Regressor(categorical_features=["c"], max_features=None).fit(X, [1, 1, 2, 9, 9])
    late = pd.DataFrame({"x": [0, 0, 0, 1], "c": [*"cabz"]})
    assert model.predict(late).tolist() == [1, 1, 2, 9]


@pytest.mark.parametrize("split", SPLITS)
def test_C02_missing_is_not_unknown(split: str) -> None:
    """Where missing cells have a side of their own, unknown values do not follow them."""
    X = pd.DataFrame({"c": ["a", "a", "b", None, None, None, None]})
    model = Regressor(categorical_split=split).fit(X, [1, 1, 2, 7, 7, 7, 7])
    late = pd.DataFrame({"c": ["new", None, "b"]})
    assert model.predict(late)[1:].tolist() == [7, 2]
    assert model.predict(late)[0] in (1, 4 / 3)  # a's leaf, or the branch of known values that a leads


@pytest.mark.parametrize("top", [2_526_058, 2**31, 2**53])
@pytest.mark.parametrize("split", SPLITS)
def test_C04_memory_follows_distinct_values_not_their_size(top: int, split: str) -> None:
    """51 category numbers up to 2^53: right, and within a megabyte."""
    values = np.linspace(0, top, 51).astype(np.int64)
    X = np.tile(values, 4)[:, None]
    y = (np.arange(51) % 3 == 0).astype(int)[np.tile(np.arange(51), 4)]
    tracemalloc.start()
    model = coded(Classifier, categorical_split=split).fit(X, y)
    assert model.predict(X).tolist() == y.tolist()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize("values", [[-3, -1, -2], [0.5, -0.5, 1e300], [np.inf, -np.inf, 0.0], [2.0, True, 0]])
def test_C04_any_number_can_be_a_category(values: list[Any]) -> None:
    """Negative, fractional, huge and infinite numbers are names here; -1 is no mark for anything."""
    X = np.array([[v] for v in values], object)
    for table in (X, X.astype(float)):
        for split in SPLITS:
            assert coded(Regressor, categorical_split=split).fit(table, [5, 3, 4]).predict(table).tolist() == [5, 3, 4]


COUNTS = [2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 253, 254, 255, 256, 257, 1000]


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("split", SPLITS)
def test_C05_any_number_of_categories_about_the_powers_of_two(n: int, split: str) -> None:
    """A random half of n categories is one class: one binary test parts them, and unknown values still route."""
    rng = np.random.default_rng(n)
    names = np.array([f"k{i:05d}" for i in range(n)])
    label = rng.permutation(np.arange(n) % 2)
    X = pd.DataFrame({"c": np.repeat(names, 2)})
    model = Classifier(categorical_split=split).fit(X, np.repeat(label, 2))
    assert model.predict(X).tolist() == np.repeat(label, 2).tolist()
    assert model.get_n_leaves() == (2 if split == "binary" else n)
    assert model.predict(pd.DataFrame({"c": ["new", names[-1]]}))[1] == label[-1]


def test_C05_more_categories_than_15_bits_can_number() -> None:
    """32,769 and 65,534 categories are right; one more is refused by name."""
    for n in (32_769, 65_534):
        X, y = pd.DataFrame({"c": [f"k{i}" for i in range(n)]}), np.arange(n) % 2
        model = Classifier(categorical_features=["c"]).fit(X, y)
        assert model.get_n_leaves() == 2
        assert model.predict(X).tolist() == y.tolist()
    with pytest.raises(ValueError, match=r"column 'c' has 65,535 categories; at most 65,534"):
        Classifier(categorical_features=["c"]).fit(
            pd.DataFrame({"c": [f"k{i}" for i in range(65_535)]}), np.arange(65_535) % 2
        )


def renamed(n: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Category numbers of rows, and the same categories under other numbers."""
    rng = np.random.default_rng(seed)
    own = rng.integers(0, n, 200)
    return own, rng.permutation(10 * n)[:n][own]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("cls", TASKS)
@pytest.mark.parametrize("way", ["level by level", "best first"])
def test_C07_the_numbers_of_categories_mean_nothing(cls: Any, split: str, way: str) -> None:
    """Categories renumbered: the same rows share a leaf, and leaves hold the same values. Real weights part ties."""
    for seed in range(5):
        own, other = renamed(20, seed)
        rng = np.random.default_rng(seed)
        x, w = rng.normal(size=200), rng.random(200) + 0.1
        y = (own % 3 + rng.normal(size=200) > 1).astype(int)
        tables = [np.c_[numbers, x] for numbers in (own, other)]
        models = [coded(cls, categorical_split=split, max_depth=6, **WAYS[way]).fit(X, y, w) for X in tables]
        outputs = [model.predict(X) for model, X in zip(models, tables, strict=True)]
        np.testing.assert_array_equal(*outputs)
        assert len({model.get_n_leaves() for model in models}) == 1


@pytest.mark.parametrize("cls", LEARNERS)
@pytest.mark.parametrize("split", SPLITS)
def test_C07_names_that_sort_alike_give_the_same_arrays(cls: Any, split: str) -> None:
    """Numbers, text and booleans in the same order: the same tests, for drawn subsets too."""
    rng = np.random.default_rng(0)
    number, y = rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    x = rng.normal(size=60)
    forms = [number.astype(bool), np.array(["no", "yes"])[number], number * 1000 - 5, np.array(["B", "a"])[number]]
    models = [
        coded(cls, categorical_split=split, max_features=None).fit(pd.DataFrame({"c": form, "x": x}), y)
        for form in forms
    ]
    for model in models[1:]:
        same_tests(models[0], model)


def test_C08_text_that_reads_as_a_number_is_refused_with_the_column_and_the_value() -> None:
    """In lists and arrays of text; never cast in silence."""
    for X in ([["1.5"], ["2"]], np.array([["1.5"], ["2"]]), np.array([["1.5"], ["2"]], object)):
        for cls in LEARNERS:
            with pytest.raises(ValueError, match=r"column 'feature_0' holds numbers as text, such as '1.5'"):
                cls().fit(X, [0, 1])


def test_C08_text_in_a_column_of_numbers_is_refused_with_the_column_and_the_value() -> None:
    """At predict, as text, as a category, among numbers, in frames and lists."""
    X = pd.DataFrame({"x": [0.0, 1.0], "y": [1.0, 0.0]})
    model = Classifier().fit(X, [0, 1])
    for late in (["red", "1"], pd.Categorical(["red", "red"]), pd.Series([1.0, "red"], dtype=object)):
        with pytest.raises(TypeError, match=r"column 'y' was a column of numbers .* now holds ('red'|'1')"):
            model.predict(X.assign(y=late))
    with pytest.raises(TypeError, match=r"'feature_1' was a column of numbers .* now holds 'red'"):
        Classifier().fit(X.to_numpy(), [0, 1]).predict([[1.0, "red"]])


def test_C08_a_column_of_two_types_is_refused_with_the_column_and_the_types() -> None:
    """Numbers beside text have no common order."""
    for values in ([1, "a", 2], ["a", 2.5, None], [True, "a", "b"]):
        with pytest.raises(TypeError, match=r"column 'c' holds values of type \w+ and str"):
            Classifier().fit(pd.DataFrame({"c": pd.Series(values, dtype=object)}), [0, 1, 0])


@pytest.mark.parametrize("value", [-0.5, 0.5, 1.5, -1, 3, 4, 255, 65_535, 65_536, 1e9, 1e300, np.inf, -np.inf])
@pytest.mark.parametrize("split", SPLITS)
def test_U13_numbers_that_are_no_category_are_unknown(value: float, split: str) -> None:
    """Categories 0 to 2: no other number is rounded, cut off or wrapped to one of them."""
    X, y = np.array([[0.0], [0], [0], [1], [2]]), [5.0, 5, 5, 6, 7]
    model = coded(Regressor, categorical_split=split).fit(X, y)
    assert model.predict([[value]])[0] in (5, 5 + 1 / 4)  # the largest child's rows: three 0, or with one 6
    assert model.predict(X).tolist() == y
    with pytest.raises(ValueError, match=r"column 'feature_0' holds .* none of its categories 0.0, 1.0, 2.0"):
        coded(Regressor, categorical_split=split, unknown="error").fit(X, y).predict([[value]])


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("first", [0, 1])
def test_U13_missing_is_asked_before_the_set(split: str, first: int) -> None:
    """Whichever set category 0 is in, missing values go their own way."""
    X = np.array([[0.0], [0], [1], [1], [np.nan], [np.nan]])
    y = np.array([first, first, 1 - first, 1 - first, 7, 7])
    for way in WAYS.values():
        model = coded(Regressor, categorical_split=split, **way).fit(X, y)
        assert model.predict(X).tolist() == y.tolist()


@pytest.mark.parametrize("value", [0.5, 1.5, np.inf, -np.inf, 1e300])
def test_U13_numbers_of_categories_that_are_none_are_unknown(value: float) -> None:
    """Who hands in category numbers himself gets the way of an unknown one, without a warning of NumPy's."""
    model = Regressor(categorical_split="multiway").fit(pd.DataFrame({"c": [*"abccc"]}), [1, 2, 3, 3, 3])
    assert model.tree_.apply([[value]]).tolist() == model.tree_.apply([[-1.0]]).tolist()
    assert model.predict(np.array([[value]]), check_input=False).tolist() == [3]


def test_U13_a_set_may_be_empty() -> None:
    """Missing against all that is known: no category is on the other side, and every one is known."""
    X = pd.DataFrame({"c": ["a", "b", "c", None, None]})
    model = Classifier(categorical_split="binary", max_depth=1).fit(X, [0, 0, 0, 1, 1])
    assert model.predict(pd.DataFrame({"c": ["a", "b", "c", None, "new"]})).tolist() == [0, 0, 0, 1, 0]


@pytest.mark.parametrize("cls", TASKS)
def test_subsets_of_more_than_two_classes_or_outputs_are_refused_with_the_ways_out(cls: Any) -> None:
    """Three classes or two outputs; each way out that the message names works."""
    X = pd.DataFrame({"colour": ["red", "green", "blue"] * 4})
    y = [0, 1, 2] * 4 if cls is Classifier else np.tile([[0, 1], [1, 0], [2, 2]], (4, 1))
    with pytest.raises(ValueError, match="column 'colour' has 3 categories") as error:
        cls().fit(X, y)
    for remedy in ("categorical_split='multiway'", "splitter='random'", "OneHotEncoder", "leave it out"):
        assert remedy in str(error.value)
    for settings in ({"categorical_split": "multiway"}, {"splitter": "random"}):
        np.testing.assert_array_equal(cls(**settings).fit(X, y).predict(X), y)
    np.testing.assert_array_equal(cls().fit(pd.get_dummies(X), y).predict(pd.get_dummies(X)), y)


@pytest.mark.parametrize("cls", [gputree.ExtraTreeClassifier, gputree.ExtraTreeRegressor])
def test_drawn_subsets_have_no_limit_of_classes(cls: Any) -> None:
    """300 categories, ten classes: every category gets a leaf of its own in the end."""
    X, y = pd.DataFrame({"c": [f"k{i:03d}" for i in range(300)] * 2}), np.arange(600) % 10
    assert cls().fit(X, y).predict(X).tolist() == y.tolist()
