"""C4.5 against Weka's J48, C4.5 release 8, hand-worked numbers and plain recursion (`tests.c45`)."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from pandas.api.types import is_object_dtype
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import check_estimator

from gputree import BaggingTreeClassifier, DecisionTreeClassifier, RandomForestClassifier
from gputree import C45Classifier as PrunedC45Classifier
from gputree.core.forest import SPREAD, Test
from gputree.datasets import load_weather
from tests import c45
from tests.backends.cards import emulate
from tests.c45 import Node, Table

C45Classifier = partial(PrunedC45Classifier, pruning=None, collapse=False)  # as it is grown
DATA = json.loads(Path(__file__).parents[1].joinpath("data", "c45_trees.json").read_text())
TABLES, BINARY = DATA["tables"], DATA["j48_binary"]


def frame_of(name: str) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Columns with their declared categories, and class numbers in their declared order."""
    table = TABLES[name]
    columns = {c["name"]: c for c in table["columns"]}
    frame = pd.DataFrame(table["rows"], columns=list(columns))
    for c in columns.values():
        numeric = c["type"] == "numeric"
        frame[c["name"]] = frame[c["name"]].astype(float) if numeric else categorical(frame[c["name"]], c["levels"])
    target = frame.pop(table["target"])
    return frame, target.cat.codes.to_numpy(np.int64)


def categorical(values: Any, levels: list[Any]) -> pd.Categorical:
    return pd.Categorical(values, categories=levels, ordered=True)  # else gputree sorts them


def as_node(model: Any, i: int = 0) -> Node:
    """A fitted tree in the form of the recursion."""
    forest = model.forest_
    node = Node((forest.stats[i, : model.n_classes_] * model.weight_unit_).tolist())
    if forest.kind[i] != Test.LEAF:
        sign, point = ("=", 0.0) if forest.kind[i] == Test.LOOKUP else ("<=", float(forest.low[i]))
        if sign == "=" and model.categorical_split == "binary":
            code, branch = forest.node(i).lookup
            sign, point = "==", float(code[branch == 0][0] - 1)
        node.test = (sign, int(forest.feature[i]), point)
        node.kids = [as_node(model, int(child)) for child in forest.node(i).children]
    return node


def j48_text(model: Any, name: str) -> str:
    """The tree, collapsed if it was not pruned, as J48 prints it."""
    columns = {c["name"]: c for c in TABLES[name]["columns"]}
    levels = columns[TABLES[name]["target"]]["levels"]
    names = [c for c in columns if c != TABLES[name]["target"]]

    def branch_name(test: tuple[str, int, float], branch: int) -> str:
        sign, f, low = test
        if sign == "==":
            return f"{names[f]} {'=' if branch == 0 else '!='} {columns[names[f]]['levels'][int(low)]}"
        if sign == "=":
            return f"{names[f]} = {columns[names[f]]['levels'][branch]}"
        return f"{names[f]} {'<=' if branch == 0 else '>'} {low:.6f}".rstrip("0").rstrip(".")

    tree = as_node(model)
    return c45.text(c45.collapsed(tree) if model.pruning is None else tree, branch_name, lambda c: levels[c])


@pytest.mark.parametrize("name", TABLES)
def test_trees_of_j48(name: str) -> None:
    """Tests, cuts, weights and errors of unpruned trees, to the digits that J48 prints."""
    assert j48_text(C45Classifier().fit(*frame_of(name)), name) == TABLES[name]["j48"]["text"]


@pytest.mark.parametrize("name", BINARY)
def test_binary_trees_of_j48(name: str) -> None:
    """J48 -B: one category against the others, pruned."""
    assert j48_text(PrunedC45Classifier(categorical_split="binary").fit(*frame_of(name)), name) == BINARY[name]


def test_one_category_against_the_rest_by_hand() -> None:
    """Of three categories the second is pure: its entropy gain is taken, others and unmet categories go to branch 1."""
    X = pd.DataFrame({"c": categorical([*"aabbbcc"] * 2, list("abcd"))})
    y = np.array([0, 1, 0, 0, 0, 1, 1] * 2)
    forest = C45Classifier(categorical_split="binary", max_depth=1).fit(X, y).forest_
    gains = {}
    for v in range(3):
        parts = [np.bincount(y[where], minlength=2) for where in (X["c"].cat.codes == v, X["c"].cat.codes != v)]
        gain = c45.entropy(np.bincount(y)) - sum(p.sum() / len(y) * c45.entropy(p) for p in parts)
        gains[v] = gain / c45.entropy([p.sum() for p in parts])
    best = max(gains, key=lambda v: gains[v])
    assert forest.score[0] == pytest.approx(gains[best], rel=1e-9)
    codes, branch = forest.node(0).lookup
    assert codes.tolist() == [1, 2, 3]
    assert branch.tolist() == [int(v != best) for v in range(3)]
    assert forest.unseen[0] == 1


def test_categories_that_a_node_did_not_meet_are_among_the_others() -> None:
    """Of 40 rows b is one class; "d" is declared and never occurs, "z" is not declared: neither is b."""
    X = pd.DataFrame({"c": categorical([*"aabc"] * 10, list("abcd"))})
    y = np.array([0, 0, 1, 0] * 10)
    model = PrunedC45Classifier(categorical_split="binary").fit(X, y)
    codes, branch = model.forest_.node(0).lookup
    assert (codes.tolist(), branch.tolist()) == ([1, 2, 3], [1, 0, 1])
    assert (model.forest_.missing[0], model.forest_.unseen[0]) == (SPREAD, 1)
    found = model.predict_proba(pd.DataFrame({"c": ["a", "b", "d", "z", None]}))
    np.testing.assert_array_equal(found, [[1, 0], [0, 1], [1, 0], [1, 0], [0.75, 0.25]])
    assert model.forest_.n_nodes == 3


@pytest.mark.parametrize("criterion", ["gain", "gain ratio"])
@pytest.mark.parametrize("name", TABLES)
def test_sizes_of_c45(name: str, criterion: str) -> None:
    """Release 8 agrees with its own constants, too, and when it chooses by gain."""
    ours = {"gain": "entropy", "gain ratio": "gain_ratio"}[criterion]
    model = C45Classifier(criterion=ours, constants="c4.5").fit(*frame_of(name))
    assert len(list(c45.walk(c45.collapsed(as_node(model))))) == TABLES[name]["c4.5"][criterion]["size"]


def test_golf_with_an_unknown_outlook_by_hand() -> None:
    """Quinlan (1993), 3.1: .961 - .747 over 13 of 14 cases is .199, the split says 1.809, their ratio is .110."""
    X, y = frame_of("golf_unknown_outlook")
    model = C45Classifier().fit(X, y)
    forest, weight = model.forest_, model.forest_.stats[:, :2].sum(axis=1) * model.weight_unit_
    groups = {"sunny": (2, 3), "overcast": (3, 0), "rainy": (3, 2)}  # of cases with a known outlook
    base, after = c45.entropy((8, 5)), sum((a + b) / 13 * c45.entropy((a, b)) for a, b in groups.values())
    split = c45.entropy((5, 3, 5, 1))
    assert (round(base, 3), round(after, 3), round(13 / 14 * (base - after), 3)) == (0.961, 0.747, 0.199)
    assert (round(split, 3), round(13 / 14 * (base - after) / split, 3)) == (1.809, 0.110)
    assert X.columns[forest.feature[0]] == "outlook"
    assert forest.score[0] == pytest.approx(13 / 14 * (base - after) / split, rel=1e-9)
    kids = weight[1:4]
    assert kids == pytest.approx([5 + 5 / 13, 3 + 3 / 13, 5 + 5 / 13], rel=1e-12)
    assert [round(w, 1) for w in kids] == [5.4, 3.2, 5.4]
    assert kids.sum() == weight[0] == 14
    assert forest.missing[0] == forest.unseen[0] == SPREAD
    assert forest.met_missing[0] == 1


def test_the_penalty_of_cuts_by_hand() -> None:
    """T15: petal length and width part iris alike, but width has fewer values to cut between and pays less."""
    X, y = frame_of("iris")
    forest = C45Classifier().fit(X, y).forest_
    gain = math.log2(3) - 2 / 3
    tries = 0
    for cut in sorted(set(X["petalwidth"]))[:-1]:
        low = (X["petalwidth"] <= cut).sum()
        tries += min(low, 150 - low) >= 5  # a tenth of 150 / 3
    assert X.columns[forest.feature[0]] == "petalwidth"
    split = c45.entropy((50, 100))
    assert forest.score[0] == pytest.approx((gain - math.log2(tries) / 150) / split, rel=1e-9)
    assert forest.low[0] == 0.6  # a value of the table, not the middle of 0.6 and 1.0


def test_cuts_are_values_of_the_whole_table() -> None:
    """Below the middle of two values of a node there may be values of other nodes: golf splits at 75, not at 70."""
    model = C45Classifier().fit(*frame_of("weather_numeric"))
    forest = model.forest_
    assert forest.low[forest.kind == Test.THRESHOLD].tolist() == [75.0]


def test_a_useless_column_changes_the_mean_of_gains() -> None:
    """T16: a column of gain 0 counts in the mean, one that is not admissible (a constant) does not."""
    y = np.array([0] * 6 + [1] * 4 + [0] * 2 + [1] * 4)
    much = categorical([*"aaabbb", *"bbcc", *"cd", *"dddd"], list("abcd"))
    little = categorical(["p"] * 14 + ["q"] * 2, ["p", "q"])
    X = pd.DataFrame({"much": much, "little": little})
    useless = categorical(["u", "v"] * 8, ["u", "v"])
    gains = [c45_gain(column, y) for column in (much, little, useless)]
    assert gains[2] == pytest.approx(0, abs=1e-12)
    constant = categorical(["c"] * 16, ["c", "d"])
    chosen = [
        C45Classifier().fit(X.assign(more=more), y).forest_.feature[0] for more in (constant, useless, useless.copy())
    ]
    expected = [first_choice(gains[:2], [much, little]), first_choice(gains, [much, little, useless])]
    assert chosen[:2] == expected
    ratios = [g / split_of(c) for g, c in zip(gains, (much, little, useless), strict=True)]
    assert ratios[1] > ratios[0]  # without the mean, the small column would be taken either way
    assert gains[1] < sum(gains[:2]) / 2 - 1e-3


def c45_gain(column: pd.Categorical, y: NDArray[np.int64]) -> float:
    parts = [np.bincount(y[column.codes == v], minlength=2) for v in range(len(column.categories))]
    return c45.entropy(np.bincount(y)) - sum(p.sum() / len(y) * c45.entropy(p) for p in parts if p.sum())


def split_of(column: pd.Categorical) -> float:
    return c45.entropy(np.bincount(column.codes))


def first_choice(gains: list[float], columns: list[pd.Categorical]) -> int:
    mean = sum(gains) / len(gains)
    ratios = [g / split_of(c) if g >= mean - 1e-3 else -1.0 for g, c in zip(gains, columns, strict=True)]
    return int(np.argmax(ratios))


def test_a_row_id_is_refused() -> None:
    """ID3 takes it, plain gain ratio too (.2470 > .1564): C4.5 wants two branches that weigh m."""
    X, y = frame_of("weather_nominal")
    X = X.assign(id=categorical(range(14), list(range(14))))
    plain = DecisionTreeClassifier(criterion="gain_ratio", categorical_split="multiway").fit(X, y)
    assert X.columns[plain.forest_.feature[0]] == "id"
    assert plain.forest_.score[0] == pytest.approx(0.940286 / math.log2(14), rel=1e-5)
    model = C45Classifier().fit(X, y)
    assert X.columns[model.forest_.feature[0]] == "outlook"
    assert model.forest_.score[0] == pytest.approx(0.2467498 / 1.5774063, rel=1e-6)


def test_near_values_are_not_parted() -> None:
    """T11: values within 1e-5 of each other count as one."""
    x = np.repeat([1.0, 1.0 + 9e-6], 20)
    y = np.repeat([0, 1], 20)
    with pytest.warns(UserWarning, match="no neighbouring values further apart"):
        assert C45Classifier().fit(x[:, None], y).get_n_leaves() == 1
    assert C45Classifier().fit(2 * x[:, None], y).get_n_leaves() == 2


@pytest.mark.parametrize("model", [C45Classifier(), BaggingTreeClassifier(C45Classifier(), 3)])
def test_columns_of_small_steps_are_warned_of(model: Any) -> None:
    """Once a fit, and not of a constant column or one with a larger step."""
    X = np.outer(np.arange(12), [1e-6, 0.0, 1.0])
    X[:, 2] = np.where(X[:, 2] > 3, 1.0, X[:, 0])
    near = r"column 'feature_0' has no neighbouring values further apart than 1e-05"
    with pytest.warns(UserWarning, match=near) as told:
        model.fit(X, np.arange(12) > 6)
    assert [one.filename for one in told] == [__file__]


def test_a_weight_of_two_up_to_rounding() -> None:
    """T11: three thirds of a row are less than one by rounding; J48 lets that pass, constants="c4.5" does not.

    Each value of a has three known rows and a third of each of the others: b parts it into 2 and 1 + 3 * 1/3. What
    rounding takes from the second and third value goes to the first, where either program takes b.
    """
    a, b = [*"pppqqqrrr", None, None, None], [*"uuvuuvuuv", *"vvv"]
    X = pd.DataFrame({"a": categorical(a, list("pqr")), "b": categorical(b, list("uv"))})
    y = np.array([0, 0, 1, 2, 2, 3, 4, 4, 5, 1, 3, 5])
    j48, release_8 = (C45Classifier(criterion="entropy", constants=name).fit(X, y) for name in ("j48", "c4.5"))
    assert j48.forest_.feature.tolist() == [0, 1, 1, 1, *[-1] * 6]
    assert release_8.forest_.feature.tolist() == [0, 1, -1, -1, -1, -1]
    weight = j48.forest_.stats[:, :6].sum(axis=1) * j48.weight_unit_
    assert weight[1] > 4 > weight[2] == weight[3]
    assert weight[1:4] == pytest.approx([4, 4, 4], rel=1e-12)


def random_table(seed: int, weighted: bool) -> tuple[pd.DataFrame, NDArray[np.int64], NDArray[np.float64] | None]:
    """Columns of numbers and of declared categories, a tenth of the cells missing."""
    rng = np.random.default_rng(seed)
    n, n_classes = int(rng.integers(20, 120)), int(rng.integers(2, 5))
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    columns: dict[str, Any] = {}
    for i in range(int(rng.integers(2, 6))):
        noise = rng.normal(size=n) + rng.normal() * y
        if rng.random() < 0.5:
            columns[f"x{i}"] = np.where(rng.random(n) < 0.1, np.nan, noise.round(int(rng.integers(0, 3))))
        else:
            levels = int(rng.integers(2, 7))
            code = np.clip((noise * 2 + levels / 2).astype(int), 0, levels - 1)
            code[rng.random(n) < 0.1] = -1
            columns[f"c{i}"] = pd.Categorical.from_codes(code, categories=[f"v{j}" for j in range(levels)])
    weight = rng.choice([0.5, 1.0, 1.25, 3.0], n) if weighted else None
    return pd.DataFrame(columns), y, weight


def plain(X: pd.DataFrame, y: NDArray[np.int64], w: Any, criterion: str, m: float, split: str = "multiway") -> Node:
    columns: list[list[float | None]] = []
    levels = []
    declared = not any(is_object_dtype(dtype) for dtype in X.dtypes)
    for name in X.columns:
        column = X[name].astype("category") if name.startswith("c") else X[name]
        codes = column.cat.codes if name.startswith("c") else column
        missing = codes < 0 if name.startswith("c") else codes.isna()
        columns.append([None if gone else float(v) for v, gone in zip(codes, missing, strict=True)])
        levels.append(len(column.cat.categories) if name.startswith("c") else 0)
    weight = np.ones(len(y)) if w is None else w
    size = float(weight.sum())
    table = Table(columns, levels, y.tolist(), int(y.max()) + 1, size, m, criterion == "gain_ratio", split, declared)
    return c45.grow(table, [(i, float(weight[i])) for i in range(len(y))])


@pytest.mark.parametrize("criterion", ["gain_ratio", "entropy"])
@pytest.mark.parametrize("split", ["multiway", "binary"])
@pytest.mark.parametrize("seed", range(60))
def test_plain_recursion(seed: int, split: str, criterion: str) -> None:
    """Mixed columns with missing cells, with weights and without: the same tests, the same weights."""
    X, y, w = random_table(seed, seed % 2 == 1)
    m = [2.0, 1.0, 3.5][seed % 3]
    model = C45Classifier(criterion=criterion, min_weight=m, categorical_split=split).fit(X, y, w)
    ours = list(c45.walk(as_node(model)))
    theirs = list(c45.walk(plain(X, y, w, criterion, m, split)))
    assert [node.test for node in ours] == [node.test for node in theirs]
    for a, b in zip(ours, theirs, strict=True):
        assert a.weights == pytest.approx(b.weights, rel=1e-6, abs=1e-9)


def test_weights_are_copies() -> None:
    """Without missing values to the bit; with them but for the rounding of shares."""
    X, y, _ = random_table(7, False)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    often = np.repeat(np.arange(len(y)), times)
    for table in (X.fillna({name: 0 for name in X.columns if name.startswith("x")}), X):
        weighted = C45Classifier().fit(table, y, times).forest_
        copies = C45Classifier().fit(table.iloc[often], y[often]).forest_
        np.testing.assert_array_equal(weighted.feature, copies.feature)
        np.testing.assert_allclose(weighted.value, copies.value, atol=1e-9)


def test_growth_drops_what_is_closed() -> None:
    """Rows with all values missing go everywhere; a node has what came to it, in whole units."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 4, (300, 3)).astype(float)
    y = (X[:, 0] + X[:, 1] > rng.integers(1, 6, 300)).astype(int)
    X[rng.random(X.shape) < 0.3] = np.nan
    forest = C45Classifier(min_weight=1.0).fit(X, y).forest_
    inner = np.flatnonzero(forest.n_children)
    for i in inner:
        kids = forest.stats[forest.first_child[i] : forest.first_child[i] + forest.n_children[i]]
        np.testing.assert_array_equal(kids[:, :2].sum(axis=0), forest.stats[i, :2])  # classes are parted without loss
        assert kids[:, 2].sum() >= forest.stats[i, 2]  # rows are not: one may be in several branches


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("criterion", ["gain_ratio", "entropy"])
def test_compiled_kernels_give_the_same_bits(name: str, criterion: str) -> None:
    pytest.importorskip("numba", reason="expected: without Numba")
    X, y = frame_of(name)
    ours = [C45Classifier(criterion=criterion, device=device).fit(X, y).fingerprint() for device in ("numpy", "jit")]
    assert ours[0] == ours[1]


@pytest.mark.parametrize("seed", range(30))
def test_compiled_kernels_on_random_tables(seed: int) -> None:
    pytest.importorskip("numba", reason="expected: without Numba")
    X, y, w = random_table(seed, seed % 2 == 0)
    ours = [C45Classifier(device=device, min_weight=1.0).fit(X, y, w).fingerprint() for device in ("numpy", "jit")]
    assert ours[0] == ours[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"criterion": "gini"}, "criterion='gini' must be one of 'gain_ratio', 'entropy'"),
        ({"min_weight": 0}, "min_weight"),
        ({"constants": "c5.0"}, "constants"),
        ({"unknown": "majority"}, "unknown"),
    ],
)
def test_parameters_are_checked(settings: dict[str, Any], message: str) -> None:
    X, y = frame_of("weather_nominal")
    with pytest.raises(ValueError, match=message):
        C45Classifier(**settings).fit(X, y)


@pytest.mark.filterwarnings("ignore")  # scikit-learn's own, about what it skips
def test_contract_of_scikit_learn() -> None:
    check_estimator(C45Classifier())


def test_one_output_only() -> None:
    with pytest.raises(ValueError, match="y has 2 columns, and C4"):
        C45Classifier().fit([[0.0], [1.0]], [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("split", "given", "whole"),
    [
        ("multiway", None, False),
        ("grouped", None, False),
        ("binary", None, True),
        ("multiway", {"c": list("abc")}, True),
    ],
)
def test_weights_are_parted_where_a_test_may_not_know_a_category(split: str, given: Any, whole: bool) -> None:
    X, y = pd.DataFrame({"c": list("aabbcc") * 3}), [0, 0, 1, 1, 0, 1] * 3
    model = C45Classifier(categorical_split=split, categories=given)
    assert (model.fit(X, y).weight_unit_ == 1.0) == whole
    assert C45Classifier(categorical_split=split).fit(X.replace("a", None), y).weight_unit_ < 1.0


def test_weights_that_cannot_count_cases_are_refused() -> None:
    X, y = np.arange(20.0).reshape(-1, 1), np.arange(20) // 10
    with pytest.raises(ValueError, match="multiply sample_weight so that a case weighs about 1"):
        C45Classifier().fit(X, y, sample_weight=np.full(20, 5e-324))


def test_a_table_on_a_device_is_the_table_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether values are missing, and with that the unit of weights, is asked of the values, wherever they lie."""
    emulator = emulate(monkeypatch)
    X, y = load_iris(return_X_y=True)
    for table in (X, np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)):
        host = C45Classifier(device="cuda").fit(table, y)
        assert C45Classifier(device="cuda").fit(emulator.xp.asarray(table), y).fingerprint() == host.fingerprint()


def test_the_tables_of_its_nodes() -> None:
    """The root of weather has the gain and the gain ratio of the book: 0.247 of 1.577 bits."""
    weather = load_weather().to_frame("pandas")
    X, y = weather.drop(columns="play"), weather["play"]
    model = PrunedC45Classifier().fit(X, y)
    assert model.split_table(X, y).best == model.split_table(X, y, node=0).best == "outlook"
    assert "0.247       1.577       0.156" in str(model.split_table(X, y))


@pytest.mark.parametrize(
    "model",
    [
        PrunedC45Classifier(soft_thresholds=True),
        BaggingTreeClassifier(PrunedC45Classifier(), n_estimators=3),
        DecisionTreeClassifier(max_depth=3),
        RandomForestClassifier(3, max_depth=3),
    ],
)
def test_leaf_weights_are_what_predictions_are_made_of(model: Any) -> None:
    X, y = load_iris(return_X_y=True)
    X[::5, 2] = X[::3, 3] = np.nan
    weights = model.fit(X, y).leaf_weights(X)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    np.testing.assert_allclose(weights @ model.forest_.value, model.predict_proba(X), atol=1e-12)
    spread = np.diff(weights.indptr) > model.forest_.roots.size
    assert spread.any() == model.forest_.spreads
    if model.forest_.roots.size == 1:
        np.testing.assert_array_equal(weights[~spread].indices, model.apply(X[~spread]))
