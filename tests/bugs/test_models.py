"""What a fitted tree gives: pruning, importances, texts, copies and files, monotone predictions, exact fits."""

from __future__ import annotations

import copy
import itertools
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import BaggingClassifier
from sklearn.inspection import permutation_importance

import gputree
from gputree import export_text
from gputree.core.forest import Test
from tests.bugs.shared import EIGHT, LEARNERS, STEP, TASKS, WAYS, Classifier, Regressor, assert_separates, leaf_rows
from tests.model_files import parts, write

SPLITS = ["binary", "multiway"]


def penguin_like(n: int = 120) -> tuple[pd.DataFrame, Any]:
    """Numbers, text and booleans with missing cells; two classes that depend on them."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=n), "c": rng.choice([*"uvw"], n), "b": rng.random(n) < 0.5})
    y = ((X["x"] > 0) ^ (X["c"] == "u") ^ (rng.random(n) < 0.2)).astype(int)
    return X.mask(rng.random(X.shape) < 0.1), y


# -- pruning


@pytest.mark.parametrize(("cls", "split"), [(cls, SPLITS[i % 2]) for i, cls in enumerate([*LEARNERS, *TASKS[::-1]])])
def test_P01_the_pruning_path_is_sorted_nested_and_ends_in_the_root(cls: Any, split: str) -> None:
    """Alphas from 0 upwards, impurities too, each tree a top of the one before; a negative alpha is refused."""
    X, y = penguin_like(40)
    grow = cls(categorical_split=split)
    path = grow.cost_complexity_pruning_path(X, y)
    assert path.ccp_alphas[0] == 0
    assert (np.diff(path.ccp_alphas) >= 0).all()
    assert (np.diff(path.impurities) >= -1e-12).all()
    models = [cls(categorical_split=split, ccp_alpha=alpha).fit(X, y) for alpha in path.ccp_alphas]
    leaves = [model.get_n_leaves() for model in models]
    assert leaves == sorted(leaves, reverse=True)
    assert leaves[-1] == 1
    assert path.impurities[-1] == pytest.approx(grow.fit(X, y).tree_.impurity[0])
    for larger, smaller in itertools.pairwise(models):  # rows that share a leaf go on sharing it
        pairs = set(zip(larger.apply(X).tolist(), smaller.apply(X).tolist(), strict=True))
        assert len({leaf for leaf, _ in pairs}) == len(pairs)
    with pytest.raises(ValueError, match="ccp_alpha"):
        cls(ccp_alpha=-0.1).fit(X, y)


@pytest.mark.parametrize("cls", LEARNERS)
def test_P02_weights_count_in_the_pruning_path(cls: Any) -> None:
    """Equal to that of repeated rows, whatever the unit of the weights."""
    rng = np.random.default_rng(0)
    X, y, w = rng.integers(0, 6, (80, 2)), rng.integers(0, 3, 80), rng.integers(1, 5, 80)
    copied = cls().cost_complexity_pruning_path(np.repeat(X, w, axis=0), np.repeat(y, w))
    for unit in (1, 0.1, 2.0**-40):
        weighted = cls().cost_complexity_pruning_path(X, y, w * unit)
        np.testing.assert_array_equal(weighted.ccp_alphas, copied.ccp_alphas)
        np.testing.assert_array_equal(weighted.impurities, copied.impurities)
    assert not np.array_equal(copied.impurities, cls().cost_complexity_pruning_path(X, y).impurities)


# -- importances


@pytest.mark.parametrize("cls", LEARNERS)
def test_I01_a_tree_without_a_split_has_importances_of_zero(cls: Any) -> None:
    """All X are 0, or missing, or one category, or y is constant: zeros, not 0/0."""
    y = [0, 1, 0, 1, 0, 1]
    for X in (np.zeros((6, 3)), np.full((6, 3), np.nan), pd.DataFrame({name: ["only"] * 6 for name in "abc"})):
        assert cls().fit(X, y).feature_importances_.tolist() == [0, 0, 0]
    assert cls().fit(np.arange(18).reshape(6, 3), [7] * 6).feature_importances_.tolist() == [0, 0, 0]


@pytest.mark.parametrize("cls", LEARNERS)
@pytest.mark.parametrize("split", SPLITS)
def test_I02_importances_sum_to_one_and_a_constant_column_has_none(cls: Any, split: str) -> None:
    """Exactly 0 for a constant number, text and boolean; a stump gives 1 to its column."""
    X, y = penguin_like()
    X = X.assign(number=3.0, text="only", flag=True)
    model = cls(categorical_split=split).fit(X, y)
    assert model.feature_importances_[3:].tolist() == [0, 0, 0]
    assert model.feature_importances_.sum() == pytest.approx(1)
    stump = cls(categorical_split=split, max_depth=1, max_features=None).fit(X, y)
    assert sorted(stump.feature_importances_.tolist()) == [0, 0, 0, 0, 0, 1]


def test_U26_the_docstring_says_what_an_importance_means() -> None:
    """1.0, unused columns, and the alternative that readers want."""
    text = type(Classifier()).feature_importances_.__doc__
    assert "1.0 means" in text
    assert "has 0" in text
    assert permutation_importance.__name__ in text


# -- texts


def test_E01_quotes_brackets_and_line_feeds_stay_in_their_place() -> None:
    """Names of columns, categories and classes: one line a branch and a leaf, whatever is in them."""
    names = ['"quoted"', "a < b & c > d", "[x]", "{y}", "back\\slash", "two\nlines", "é, ß", ""]
    X = pd.DataFrame(np.eye(8), columns=names)
    y = np.array([f"class {name}" for name in names])
    model = Classifier().fit(X, y)
    lines = export_text(model, feature_names=names, max_depth=None).splitlines()
    assert len(lines) == model.forest_.n_nodes - 1 + model.get_n_leaves()
    for name in names:
        shown = name.replace("\n", "\\n")
        assert any(f"--- {shown} <= 0.50" in line for line in lines) or name == names[-1]
        assert any(line.endswith(f"class: class {shown}") for line in lines)


def test_E02_names_in_any_container_for_one_column_and_many() -> None:
    """A list, an array, a tuple, an index; a wrong number of names is refused with both numbers."""
    one, two = Classifier().fit([[0], [1]], [0, 1]), Classifier().fit([[0, 0], [0, 1]], [0, 1])
    for make in (list, np.array, tuple, pd.Index):
        assert "alone <= 0.50" in export_text(one, feature_names=make(["alone"]))
        assert "right <= 0.50" in export_text(two, feature_names=make(["left", "right"]), class_names=make(["n", "y"]))
    for names in ([], ["a"], ["a", "b", "c"]):
        with pytest.raises(ValueError, match=f"2 elements, got {len(names)}"):
            export_text(two, feature_names=names)


@pytest.mark.parametrize("low", [0.1, 1e-300, 123456789.123456789, 1e300, -(2.0**53)])
def test_E04_a_threshold_is_printed_with_as_many_digits_as_are_asked_for(low: float) -> None:
    """Neighbouring floats: with enough decimals the text parts them as the tree does, and none prints as an integer."""
    high = np.nextafter(low, np.inf)
    model = Classifier().fit([[low], [high]], [0, 1])
    text = export_text(model, decimals=400 if abs(low) < 1 else 30)
    printed = float(re.findall(r"<= (\S+)", text)[0])
    assert low <= printed < high
    assert printed == model.forest_.low[0]


def test_E05_a_deep_tree_needs_no_recursion(tmp_path: Path) -> None:
    """A chain of 1,100 levels: text, path, pruning, importances, pickle, deepcopy and the model file."""
    X, y = np.arange(1100.0)[:, None], np.arange(1100) % 2
    model = Classifier().fit(X, y)
    assert model.get_depth() == 1099
    assert len(export_text(model, max_depth=None).splitlines()) == 2 * 1099 + 1100
    assert model.decision_path(X[-1:]).nnz == 1100
    assert Classifier(ccp_alpha=1.0).fit(X, y).get_n_leaves() == 1
    assert model.feature_importances_.tolist() == [1]
    gputree.save(model, tmp_path / "deep.gputree")
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), gputree.load(tmp_path / "deep.gputree")):
        assert again.predict(X).tolist() == y.tolist()


def test_U17_commas_blanks_and_missing_text_survive_every_format(tmp_path: Path) -> None:
    """Names and categories that a file of joined names would break: the model file, pickle and text keep them apart."""
    values = ["a,b", "a", "b", " ", "", "NA", "nan", "None", "a: b", "'q'", '"', "x = y", "line\nfeed", None]
    X = pd.DataFrame({"one, two": values, "one": np.arange(14.0), " two ": values[::-1]})
    model = Regressor(categorical_split="multiway", categorical_features=["one, two", " two "]).fit(X, np.arange(14.0))
    gputree.save(model, tmp_path / "odd.gputree")
    for again in (gputree.load(tmp_path / "odd.gputree"), pickle.loads(pickle.dumps(model))):
        assert again.predict(X).tolist() == list(range(14))
        assert again.feature_names_in_.tolist() == list(X.columns)
    assert "is missing" in export_text(model)


# -- copies and files


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("cls", LEARNERS)
def test_Z01_pickled_and_copied_models_live_on(cls: Any, protocol: int) -> None:
    """Every protocol of pickle, deepcopy; the copy predicts and can be fitted again; ``tree_`` is not dragged along."""
    X, y = np.arange(6)[:, None], [0, 0, 1, 1, 2, 2]
    model = cls(max_leaf_nodes=3, splitter="best").fit(X, y)
    size = len(pickle.dumps(model, protocol))
    assert model.tree_.node_count == 5
    assert len(pickle.dumps(model, protocol)) == size
    for again in (pickle.loads(pickle.dumps(model, protocol)), copy.deepcopy(model)):
        assert again.fingerprint() == model.fingerprint()
        assert again.predict(X).tolist() == y
        assert again.tree_.node_count == 5
        assert again.fit(X, y[::-1]).predict(X).tolist() == y[::-1]


def test_Z01_an_unfitted_model_is_pickled_too() -> None:
    """Parameters and nothing else."""
    for cls in LEARNERS:
        again = pickle.loads(
            pickle.dumps(cls(max_depth=3, class_weight=None) if cls in TASKS[:1] else cls(max_depth=3))
        )
        assert again.get_params()["max_depth"] == 3
        assert not hasattr(again, "forest_")


@pytest.mark.parametrize("device", ["cuda", "cuda:2"])
def test_Z02_a_model_of_another_device_predicts_here(device: str, tmp_path: Path) -> None:
    """The device is a parameter, never a part of the fitted state; only a new fit on it is refused, with the remedy."""
    X, y = penguin_like()
    model = Classifier().fit(X, y)
    expected = model.predict_proba(X)
    model.set_params(device=device)
    gputree.save(model, tmp_path / "tree.gputree")
    for again in (model, pickle.loads(pickle.dumps(model)), gputree.load(tmp_path / "tree.gputree")):
        np.testing.assert_array_equal(again.predict_proba(X), expected)
        assert not any("cuda" in str(value) for name, value in vars(again).items() if name.endswith("_"))
    with pytest.raises(RuntimeError, match="use device='cpu' or 'auto'"):
        model.fit(X, y)


EDITS: dict[str, tuple[str, Any]] = {
    "a child far out of range": ("first_child", lambda a: np.r_[10**9, a[1:]]),
    "a child before its parent": ("first_child", lambda a: np.r_[0, a[1:]]),
    "a negative child": ("first_child", lambda a: np.r_[-5, a[1:]]),
    "a feature that is not there": ("feature", lambda a: np.r_[99, a[1:]]),
    "a negative feature": ("feature", lambda a: np.r_[-7, a[1:]]),
    "a threshold that is none": ("low", lambda a: np.r_[np.nan, a[1:]]),
    "a short array": ("low", lambda a: a[:-1]),
    "a kind that is none": ("kind", lambda a: np.r_[77, a[1:]]),
    "a side that is none": ("missing", lambda a: np.r_[9, a[1:]]),
    "a column of values too few": ("value", lambda a: a[:, :1]),
    "values that are none": ("value", lambda a: a * np.nan),
    "another type": ("feature", lambda a: a.astype(np.float64)),
    "a root that is not there": ("roots", lambda a: a + 1000),
}


@pytest.mark.parametrize("edit", EDITS)
def test_U01_an_edited_model_file_is_refused(edit: str, tmp_path: Path) -> None:
    """Whatever the arrays say, no walker follows an index that was not checked: a ValueError on load."""
    X, y = penguin_like()
    gputree.save(Classifier().fit(X[["x"]], y), tmp_path / "good.gputree", compact=False)
    header, arrays = parts(tmp_path / "good.gputree")
    write(tmp_path / "same.gputree", header, arrays)
    assert gputree.load(tmp_path / "same.gputree").predict(X[["x"]]).size == len(X)
    name, change = EDITS[edit]
    key = f"forest/{name}.npy"
    arrays[key] = change(arrays[key]).astype(None if edit == "another type" else arrays[key].dtype)
    write(tmp_path / "bad.gputree", header, arrays)
    with pytest.raises(ValueError, match=r"bad\.gputree|node|forest|root"):
        gputree.load(tmp_path / "bad.gputree")


def test_U02_formats_of_the_file_are_numbered(tmp_path: Path) -> None:
    """A file of the first format still predicts, and one of a format to come is refused with both numbers."""
    old = gputree.load(Path(__file__).parents[1] / "data" / "format_1.gputree")
    assert old.forest_.n_nodes > 1
    gputree.save(Classifier().fit(EIGHT, STEP), tmp_path / "new.gputree")
    header, arrays = parts(tmp_path / "new.gputree")
    write(tmp_path / "later.gputree", {**header, "format": 999}, arrays)
    with pytest.raises(ValueError, match="999"):
        gputree.load(tmp_path / "later.gputree")


# -- exact sums, monotone predictions, exact fits


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("split", SPLITS)
def test_U10_the_statistics_of_a_node_are_those_of_its_children(split: str, way: str) -> None:
    """To the unit, under real weights: no phantom of a subtraction anywhere."""
    X, y = penguin_like()
    w = np.random.default_rng(1).random(len(y)) + 0.01
    for cls in TASKS:
        forest = cls(categorical_split=split, **WAYS[way]).fit(X, y, w).forest_
        total = np.zeros_like(forest.stats)
        np.add.at(total, forest.parent[1:], forest.stats[1:])
        inner = forest.kind != Test.LEAF
        np.testing.assert_array_equal(total[inner], forest.stats[inner])


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", TASKS)
def test_U14_monotone_predictions_on_a_fine_grid(cls: Any, way: str, sign: int) -> None:
    """A thousand points, every background row: the output never goes the wrong way, weights and pruning included."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (sign * X[:, 0] + np.sin(4 * X[:, 0]) + X[:, 1] + rng.normal(size=300) > 0).astype(int)
    grid = np.linspace(-4, 4, 1000)
    for settings in ({}, {"ccp_alpha": 0.001}, {"max_bins": 16}, {"min_samples_leaf": 5}):
        model = cls(monotonic_cst=[sign, 0, -sign], **settings, **WAYS[way]).fit(X, y, rng.random(300) + 0.1)
        for f, direction in ((0, sign), (2, -sign)):
            rows = np.repeat(X[:5], 1000, axis=0)
            rows[:, f] = np.tile(grid, 5)
            output = model.predict(rows) if cls is Regressor else model.predict_proba(rows)[:, 1]
            assert (direction * np.diff(output.reshape(5, 1000)) >= 0).all()


@pytest.mark.parametrize("way", WAYS)
def test_U19_values_beyond_1e30_are_routed_as_they_were_counted(way: str) -> None:
    """From 1e30 to the largest float, with both signs, exact and in 16 codes: rows in a leaf as it counted them."""
    rng = np.random.default_rng(0)
    X = np.sign(rng.normal(size=(300, 1))) * 10.0 ** rng.uniform(30, 308, (300, 1))
    y = rng.integers(0, 4, 300)
    for cls in TASKS:
        for bins in ("auto", 16):
            for table in (X, np.float32(X.clip(-3e38, 3e38))):
                model = cls(max_bins=bins, **WAYS[way]).fit(table, y)
                arrived = np.bincount(model.apply(table), minlength=model.forest_.n_nodes)
                np.testing.assert_array_equal(arrived, leaf_rows(model))


@pytest.mark.parametrize("n_values", [30, 300, 3000])
def test_U20_an_unlimited_tree_has_no_training_error(n_values: int) -> None:
    """Random tests of many codes go on until every distinct row has its own label, whatever the features drawn."""
    rng = np.random.default_rng(0)
    X = np.unique(rng.integers(0, n_values, (600, 3)), axis=0)
    y = rng.integers(0, 5, len(X))
    for cls in LEARNERS:
        for settings in ({}, {"max_features": 1}, {"max_leaf_nodes": 10_000}):
            assert cls(random_state=3, **settings).fit(X, y).predict(X).tolist() == y.tolist()


def test_F05_all_rows_and_columns_are_learnt_exactly() -> None:
    """Mixed columns with missing cells: no two rows are alike, so every row is right."""
    X, y = penguin_like()
    X["x"] = np.arange(len(X))
    for cls in LEARNERS:
        assert cls().fit(X, y).predict(X).tolist() == list(y)
    assert_separates(X.to_numpy()[:, :1].astype(float), list(y))


@pytest.mark.parametrize("max_samples", [1, 2, 4])
def test_U23_bags_of_one_row_and_one_class(max_samples: Any) -> None:
    """Each tree sees one class or two; their mean has a column for each of the three, and sums to 1."""
    bag = BaggingClassifier(Classifier(), n_estimators=20, max_samples=max_samples, random_state=0)
    shares = bag.fit(EIGHT[:6], [0, 1, 2] * 2).predict_proba(EIGHT[:6])
    assert shares.shape == (6, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
