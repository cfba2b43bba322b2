"""Split tables against the lectures' gains, rpart, fitted trees, and sums in exact fractions."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier as SklearnTree
from sklearn.tree import ExtraTreeClassifier as TheirExtraTree

from gputree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
    ExtraTreesClassifier,
    from_sklearn,
    load,
    save,
)
from gputree.core.forest import Test
from gputree.datasets import (
    Table,
    load_classroom,
    load_lenses,
    load_penguins,
    load_restaurant,
    load_weather,
    make_monks,
)
from gputree.impurity import entropy
from gputree.inspect.split_table import SplitTable, split_table, split_table_of
from gputree.model_selection import ByScore, select

EXAMPLES: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "classroom.json").read_text())
TABLES: dict[str, Callable[[], Table]] = {
    "exercise_18_2": lambda: load_classroom("exercise_18_2"),
    "dtl": lambda: load_classroom("dtl"),
    "xor": lambda: load_classroom("xor"),
    "eight_patterns": lambda: load_classroom("eight_patterns"),
    "restaurant_aima": load_restaurant,
    "restaurant_chapter": lambda: load_restaurant("chapter"),
    "weather": load_weather,
    "lenses": load_lenses,
}
CLASS_CRITERIA = ("entropy", "gini", "train_error", "gain_ratio", "log_loss", "chi2")


def parts(table: Table) -> tuple[pd.DataFrame, pd.Series]:
    frame = table.to_frame("pandas")
    return frame.drop(columns=table.target), frame[table.target]


def below(table: Table, **tests: str) -> tuple[pd.DataFrame, pd.Series]:
    """The rows that some tests let through, with all declared categories."""
    X, y = parts(table)
    kept = np.logical_and.reduce([X[name] == value for name, value in tests.items()])
    return X[kept], y[kept]


def read(name: str, criterion: str = "entropy") -> SplitTable:
    return split_table(*parts(TABLES[name]()), criterion=criterion)


@pytest.mark.parametrize(
    ("name", "criterion"),
    [(n, c) for n in TABLES for c in ("entropy", "gini", "train_error") if c in EXAMPLES["tables"][n]],
)
def test_every_gain_of_the_lectures(name: str, criterion: str) -> None:
    example = EXAMPLES["tables"][name]
    found, rounding = read(name, criterion), 6e-4 if name == "lenses" else 1e-14
    assert {row.feature: row.gain for row in found.rows} == pytest.approx(example[criterion], abs=rounding)
    assert found.best == example["best"]
    for row in found.rows:
        assert row.gain == pytest.approx(found.node.impurity - row.remainder, abs=1e-14)
        assert row.score == row.gain


@pytest.mark.parametrize("name", ["weather", "lenses"])
def test_split_info(name: str) -> None:
    example, found = EXAMPLES["tables"][name]["split_info"], read(name, "gain_ratio")
    assert {row.feature: row.split_info for row in found.rows} == pytest.approx(
        example, abs=6e-4 if name == "lenses" else 1e-14
    )
    for row in found.rows:
        assert row.score == row.gain_ratio == row.gain / row.split_info


@pytest.mark.parametrize("name", ["restaurant_aima", "eight_patterns"])
def test_printed_gains(name: str) -> None:
    found = read(name)
    for feature, printed in EXAMPLES["tables"][name]["printed"].items():
        assert found.row(feature).gain == pytest.approx(printed, abs=0.005)


def test_dtl_remainders_and_counts() -> None:
    example, found = EXAMPLES["tables"]["dtl"], read("dtl")
    assert {row.feature: row.remainder for row in found.rows} == pytest.approx(example["remainder"], abs=1e-14)
    for row in found.rows:
        assert [branch.label for branch in row.branches] == ["1", "2", "3"]
        assert [list(branch.counts) for branch in row.branches] == example["counts"][row.feature]


def test_exercise_below_the_root() -> None:
    X, y = parts(load_classroom("exercise_18_2"))
    found = split_table(X[X.x1 == 1], y[X.x1 == 1])
    expected = EXAMPLES["tables"]["exercise_18_2"]["below x1 = 1"]
    assert {name: found.row(name).gain for name in expected} == pytest.approx(expected, abs=1e-14)
    assert (found.best, found.tied, found.row("x1").test) == ("x2", ("x3",), "one value only")


@pytest.mark.parametrize(
    ("name", "tests"),
    [
        ("restaurant_aima", {"Pat": "Full"}),
        ("restaurant_aima", {"Pat": "Full", "Hun": "Y"}),
        ("restaurant_aima", {"Pat": "Full", "Hun": "Y", "Type": "Thai"}),
        ("restaurant_chapter", {"Pat": "Full"}),
        ("restaurant_chapter", {"Pat": "Full", "Est": "30-60"}),
    ],
)
def test_ties_go_to_the_first_column(name: str, tests: dict[str, str]) -> None:
    """The cell in which the two printed tables differ decides between Est and the published tree."""
    last = list(tests)[-1]
    example = EXAMPLES["tables"][name][f"below {last} = {tests[last]}"]
    found = split_table(*below(TABLES[name](), **tests))
    assert (found.best, found.row().gain) == (example["best"], pytest.approx(example["gain"], abs=1e-14))
    assert set(found.tied) == set(example.get("tied", ()))


def test_mean_squared_error() -> None:
    example = EXAMPLES["mse"]
    found = split_table([[0], [0], [0], [1]], example["y"], criterion="squared_error")
    row = found.row()
    assert found.node.impurity == pytest.approx(example["root"], abs=1e-15)
    assert (row.remainder, row.gain) == pytest.approx((example["remainder"], example["gain"]), abs=1e-14)
    assert [(branch.weight, branch.mean) for branch in row.branches] == [(3, 2.0), (1, 6.0)]


@pytest.mark.parametrize("where", ["root", "not overcast"])
def test_binary_tests_as_rpart_finds_them(where: str) -> None:
    X, y = parts(load_weather("numeric"))
    model = DecisionTreeClassifier(max_depth=3).fit(X, y)
    node = 0 if where == "root" else int(np.flatnonzero(model.forest_.stats.sum(axis=1) == 10)[0])
    found = split_table_of(model, X, y, node)
    for feature, expected in EXAMPLES["golf_rpart"][where].items():
        row = found.row(feature)
        assert row.gain * found.node.weight == pytest.approx(expected["improve"], rel=1e-12)
        if "cut" in expected:
            assert row.branches[0].label == f"<= {expected['cut']:g}"
        else:
            groups = {frozenset(branch.label.strip("{}").split(", ")) for branch in row.branches}
            assert groups == {frozenset(expected["left"]), frozenset(expected["right"])}
    assert found.best == next(iter(EXAMPLES["golf_rpart"][where]))


# What is written out


def sides(text: str) -> list[str]:
    """The sides of the (first) equation, each on one line."""
    body = text[re.search(r"^(Gain|Twoing|Chi2)\(", text, re.M).start() :]  # type: ignore[union-attr]
    return [" ".join(side.split()) for side in body.split(" = ")[1:]]


def worked(side: str, **symbols: Callable[..., Any]) -> Any:
    """The value of a side: every number a fraction, a share beside a symbol its factor."""
    text = re.sub(r"(\d) (?=[A-Z])", r"\1 * ", side.replace("[", "(").replace("]", ")").replace("^", "**"))
    text = re.sub(r"\|([^|]+)\|", r"abs(\1)", text)
    text = re.sub(r"\d+\.\d+|\d+", lambda m: f"F('{m.group()}')", text)
    return eval(text, {"F": Fraction, "abs": abs, **symbols})


def by_hand(X: pd.DataFrame, y: pd.Series, feature: str, measure: Callable[..., Any]) -> Any:
    """Gain of a branch for each value, from the rows themselves."""

    def impurity(labels: pd.Series) -> Any:
        return measure(*(Fraction(int((labels == c).sum()), len(labels)) for c in sorted(set(y))))

    groups = [y[X[feature] == value] for value in sorted(set(X[feature]))]
    return impurity(y) - sum(Fraction(len(group), len(y)) * impurity(group) for group in groups)


def gini_of(*p: Fraction) -> Fraction:
    return 1 - sum(q * q for q in p)


def error_of(*p: Fraction) -> Fraction:
    return 1 - max(p)


def entropy_of(*p: Fraction) -> float:
    return -sum(float(q) * math.log2(q) for q in p if q)


@pytest.mark.parametrize(("criterion", "symbol", "measure"), [("gini", "G", gini_of), ("train_error", "E", error_of)])
@pytest.mark.parametrize("name", TABLES)
def test_every_side_of_an_exact_sum_is_the_gain(
    name: str, criterion: str, symbol: str, measure: Callable[..., Any]
) -> None:
    X, y = parts(TABLES[name]())
    found = split_table(X, y, criterion=criterion)
    for row in found.rows:
        written = sides(found.show_work(row.feature, decimals=9))
        expected = by_hand(X, y, row.feature, measure)
        exact = written if "." not in written[-1] else written[:-1]
        assert [worked(side, **{symbol: measure}) for side in exact] == [expected] * len(exact)
        assert len(exact) >= 4
        assert float(written[-1].split("/")[0]) == pytest.approx(float(expected), abs=1e-9) or "/" in written[-1]
        assert row.gain == pytest.approx(float(expected), abs=1e-14)


@pytest.mark.parametrize("name", TABLES)
def test_every_side_of_a_sum_of_entropies_is_the_gain(name: str) -> None:
    X, y = parts(TABLES[name]())
    found = split_table(X, y)
    for row in found.rows:
        expected = by_hand(X, y, row.feature, entropy_of)
        first, *rounded = sides(found.show_work(row.feature, decimals=9))
        assert float(worked(first, H=entropy_of)) == pytest.approx(expected, abs=1e-14)
        assert [float(worked(side)) for side in rounded] == pytest.approx([expected] * 3, abs=1e-8)
        assert row.gain == pytest.approx(expected, abs=1e-14)


def test_the_classic_sum() -> None:
    assert read("weather").show_work() == (
        "outlook: sunny (n=5), overcast (n=4), rainy (n=5)\n"
        "classes: no, yes; H is the entropy in bits\n"
        "Gain(outlook) = H(5/14, 9/14) - [5/14 H(3/5, 2/5) + 4/14 H(0/4, 4/4)\n"
        "                + 5/14 H(2/5, 3/5)]\n"
        "              = 0.940 - [5/14 * 0.971 + 4/14 * 0.000 + 5/14 * 0.971]\n"
        "              = 0.940 - 0.694\n"
        "              = 0.247"
    )


def test_gain_ratio_is_worked_out_to_its_end() -> None:
    lines = read("weather", "gain_ratio").show_work().splitlines()
    assert lines[-4:] == [
        "SplitInfo(outlook) = H(5/14, 4/14, 5/14)",
        "                   = 1.577",
        "GainRatio(outlook) = 0.247 / 1.577",
        "                   = 0.156",
    ]


def test_chi_square_in_fractions() -> None:
    X, y = parts(load_weather())
    found = split_table(X, y, criterion="chi2")
    for row in found.rows:
        counts = [[Fraction(c) for c in branch.counts] for branch in row.branches]
        rows, columns = [sum(c) for c in counts], [sum(c) for c in zip(*counts, strict=True)]
        expected = [[r * c / len(y) for c in columns] for r in rows]
        cells = zip(chain(*counts), chain(*expected), strict=True)
        statistic = sum((o - e) ** 2 / e for o, e in cells)
        written = sides(found.show_work(row.feature))
        assert [worked(side) for side in written[:3]] == [statistic] * 3
        assert row.score == pytest.approx(float(statistic), rel=1e-12)
        assert row.gain == pytest.approx(float(by_hand(X, y, row.feature, gini_of)), abs=1e-14)


def test_twoing_in_fractions() -> None:
    X, y = parts(load_weather())
    found = split_table(X, y, criterion="twoing", split="binary")
    for row in found.rows:
        written = sides(found.show_work(row.feature))
        # for two classes half of the decrease of Gini's impurity (Breiman and others 1984, 4.3.2)
        gain = worked(written[2])
        assert [worked(side) for side in written[:3]] == [gain] * 3
        assert (row.score, row.gain) == pytest.approx((float(gain), 2 * float(gain)), abs=1e-14)


@pytest.mark.parametrize("weights", [None, [1, 2, 1, 3, 1, 1]])
def test_sums_of_squares_and_deviances(weights: list[int] | None) -> None:
    y, w = np.array([1.0, 2.0, 4.0, 6.0, 6.0, 9.0]), np.array(weights or [1] * 6)
    X = np.array([[1], [1], [1], [2], [2], [2]])

    def squares(v: Any, u: Any) -> float:
        return float(u @ (v - np.average(v, weights=u)) ** 2)

    def deviance(v: Any, u: Any) -> float:
        return float(u @ (v * np.log(v / np.average(v, weights=u))))

    for criterion, measure, symbol in (("squared_error", squares, "SS"), ("poisson", deviance, "D")):
        found = split_table(X, y, criterion=criterion, sample_weight=weights)
        expected = (measure(y, w) - measure(y[:3], w[:3]) - measure(y[3:], w[3:])) / w.sum()
        assert found.row().gain == pytest.approx(expected, rel=1e-12)
        first, *rounded = sides(re.sub(r" = (?=-?\d+\.?\d*[,)])", "=", found.show_work()))
        assert first.startswith(f"{symbol}(n={w.sum()}, mean={np.average(y, weights=w):.6g}) / {w.sum()} - [")
        assert [float(worked(side)) for side in rounded] == pytest.approx([expected] * len(rounded), rel=1e-4)


def test_poisson_is_worked_in_deviances() -> None:
    lines = split_table([[0], [0], [1]], [1, 3, 8], criterion="poisson").show_work().splitlines()
    assert lines[:3] == [
        "feature_0: <= 0.5 (n=2), > 0.5 (n=1)",
        "D is the sum of y log(y / mean), half the Poisson deviance",
        "Gain(feature_0) = D(n=3, mean=4) / 3 - [D(n=2, mean=2) + D(n=1, mean=8)] / 3",
    ]


# The tables of fitted trees


def mixed_table(seed: int, n: int = 120) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Numbers, words, declared categories and missing cells, with classes and weights."""
    rng = np.random.default_rng(seed)
    words = rng.choice(["ash", "birch", "cedar", "elm"], n).astype(object)
    words[rng.random(n) < 0.1] = None
    number = rng.integers(0, 9, n).astype(float)
    number[rng.random(n) < 0.1] = np.nan
    X = pd.DataFrame(
        {
            "number": number,
            "word": words,
            "declared": pd.Categorical(rng.choice(["a", "b"], n), categories=["a", "b", "never"]),
            "noise": rng.normal(size=n),
        }
    )
    y = (np.nan_to_num(number, nan=3) + (words == "ash") * 3 + rng.integers(0, 3, n) > 6).astype(int)
    return X, y, rng.integers(0, 4, n)


MODELS = {
    "gini": DecisionTreeClassifier(),
    "entropy, multiway": DecisionTreeClassifier(criterion="entropy", categorical_split="multiway"),
    "gain ratio, limits": DecisionTreeClassifier(criterion="gain_ratio", min_samples_leaf=5, max_depth=5),
    "train error": DecisionTreeClassifier(criterion="train_error", class_weight="balanced", max_depth=4),
    "chi2, multiway": DecisionTreeClassifier(criterion="chi2", categorical_split="multiway", max_depth=4),
    "twoing": DecisionTreeClassifier(criterion="twoing", max_depth=4),
    "best first": DecisionTreeClassifier(max_leaf_nodes=12, ccp_alpha=0.005),
    "few codes": DecisionTreeClassifier(max_bins=4),
    "random": ExtraTreeClassifier(max_features=None, random_state=7),
    "squared error": DecisionTreeRegressor(max_depth=5),
    "squared error, multiway": DecisionTreeRegressor(max_depth=4, categorical_split="multiway"),
    "random numbers": ExtraTreeRegressor(max_features=None, random_state=3, max_depth=6),
}


@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
@pytest.mark.parametrize("name", MODELS)
def test_the_table_of_every_node_is_what_the_tree_saw(name: str, weighted: bool) -> None:
    X, y, w = mixed_table(len(name))
    weight = w if weighted else None
    model = MODELS[name].fit(X, y, weight)
    forest = model.forest_
    inner = np.flatnonzero(forest.kind != Test.LEAF)
    assert inner.size >= 3
    for node in inner[:: max(1, inner.size // 6)]:
        found = split_table_of(model, X, y, int(node), weight)
        row, children = found.row(), forest.node(node).children
        assert row.feature == X.columns[forest.feature[node]]
        assert [branch.rows for branch in row.branches] == model.layout_.count(forest.stats[children].T).tolist()
        assert [branch.weight for branch in row.branches] == model.layout_.weight(forest.stats[children].T).tolist()
        assert found.node.impurity == pytest.approx(forest.impurity[node], rel=1e-12, abs=1e-15)
        full = [branch for branch in row.branches if branch.weight]
        impurity = [forest.impurity[c] for c in children if model.layout_.weight(forest.stats[[c]].T)[0]]
        assert [branch.impurity for branch in full] == pytest.approx(impurity, rel=1e-12, abs=1e-15)
        assert row.gain == pytest.approx(found.node.impurity - row.remainder, abs=1e-12)
        assert all(other.score <= row.score * (1 + 1e-11) + 1e-11 for other in found.rows if other.branches)


def test_making_a_table_leaves_the_model_alone() -> None:
    X, y, _ = mixed_table(1)
    model = DecisionTreeClassifier(max_depth=3).fit(X, y)
    before = (model.fingerprint(), model.schema_, list(model.classes_))
    split_table_of(model, X.iloc[:50], np.where(y[:50], "yes", "no"))
    assert (model.fingerprint(), model.schema_, list(model.classes_)) == before


def test_other_rows_than_those_of_the_fit() -> None:
    X, y, _ = mixed_table(2, 400)
    model = DecisionTreeClassifier(max_depth=2).fit(X[:200], y[:200])
    found = split_table_of(model, X[200:], y[200:], 1)
    assert found.node.rows == model.decision_path(X[200:])[:, [1]].sum()
    passing = model.decision_path(X[200:])[:, [1]].toarray().ravel() > 0
    alone = split_table(X[200:][passing], y[200:][passing], criterion="gini", split="binary")
    assert [row.gain for row in alone.rows] == pytest.approx([row.gain for row in found.rows], abs=1e-14)


def test_a_leaf_shows_what_it_could_have_tested() -> None:
    X, y = parts(load_weather())
    model = DecisionTreeClassifier(criterion="entropy", categorical_split="multiway", max_depth=1).fit(X, y)
    assert model.forest_.kind[1] == Test.LEAF
    found = split_table_of(model, X, y, 1)
    assert (found.node.counts, found.best, found.row().gain) == ((3, 2), "humidity", pytest.approx(0.971, abs=5e-4))


def test_limits_of_the_model_hold() -> None:
    X, y = parts(load_weather())
    model = DecisionTreeClassifier(criterion="entropy", categorical_split="multiway", min_samples_leaf=5).fit(X, y)
    found = split_table_of(model, X, y)
    assert found.row("outlook").test == "no test within the limits"
    assert math.isnan(found.row("outlook").gain)
    assert found.best == "humidity"


def test_random_tests_are_drawn_again_from_a_state() -> None:
    """By the seed that it gave to the fit; the state is left alone."""
    X, y, _ = mixed_table(3)
    state = np.random.RandomState(0)
    model = ExtraTreeClassifier(max_features=None, random_state=state).fit(X, y)
    before = state.get_state()[2]
    for node in np.flatnonzero(model.forest_.kind != Test.LEAF)[:4].tolist():
        row, children = split_table_of(model, X, y, node).row(), model.forest_.node(node).children
        assert row.feature == X.columns[model.forest_.feature[node]]
        counts = model.layout_.count(model.forest_.stats[children].T)
        assert [branch.rows for branch in row.branches] == counts.tolist()
    assert state.get_state()[2] == before


def test_random_tests_of_a_tree_without_its_seed() -> None:
    """A state has moved on since the fit, and is left alone; a number is as it was."""
    X, y = mixed_table(3)[0][["number"]].fillna(0.0).to_numpy(), mixed_table(3)[1]
    for state in (np.random.RandomState(0), 3):
        model = from_sklearn(TheirExtraTree(random_state=state, max_depth=2).fit(X, y))
        if state == 3:
            assert split_table_of(model, X, y) == split_table_of(model, X, y)
            continue
        before = model.random_state.get_state()[2]
        with pytest.raises(ValueError, match=r"cannot be drawn again: random_state=.* has moved on .*; fit one with"):
            split_table_of(model, X, y)
        assert model.random_state.get_state()[2] == before


def test_random_tests_of_trees_that_grow_together() -> None:
    """Each knows its seed."""
    X, y, _ = mixed_table(3)
    X = X[["number"]].fillna(0.0).to_numpy()
    model = DecisionTreeClassifier(splitter="random", max_depth=2, random_state=np.random.RandomState(0))

    def first_test_again(model: Any, X: Any, y: Any) -> float:
        left = split_table_of(model, *seen[len(X)]).row().branches[0].rows
        return float(left == model.layout_.count(model.forest_.stats[[1]].T)[0])

    cuts = [(np.arange(90), np.arange(90, 120)), (np.arange(30, 120), np.arange(29))]
    seen = {len(test): (X[train], y[train]) for train, test in cuts}
    result = select(model, X, y, {"max_depth": [2]}, cv=cuts, rule=ByScore(first_test_again))
    assert result.best.scores.tolist() == [1.0, 1.0]


def test_the_table_of_every_tree_of_a_forest_is_its_own(tmp_path: Path) -> None:
    """Each draws other thresholds, also when it is saved alone."""
    X, y, _ = mixed_table(3)
    for tree in ExtraTreesClassifier(3, max_features=None).fit(X, y):
        save(tree, tmp_path / "tree")
        counts = tree.layout_.count(tree.forest_.stats[tree.forest_.node(0).children].T).tolist()
        for model in (tree, load(tmp_path / "tree")):
            assert [branch.rows for branch in model.split_table(X, y).row().branches] == counts


def test_monotone_bounds_are_known_at_the_root_only() -> None:
    X = np.arange(12.0).reshape(-1, 1)
    y = np.array([0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 1, 1])
    model = DecisionTreeClassifier(monotonic_cst=[1], max_depth=2).fit(X, y)
    assert split_table_of(model, X, y).best == "feature_0"
    with pytest.raises(ValueError, match="node=1 is bounded by the tests above it"):
        split_table_of(model, X, y, 1)


# Weights, missing and declared values


def test_weights_are_copies() -> None:
    X, y, w = mixed_table(4)
    for criterion in CLASS_CRITERIA:
        weighted = split_table(X, y, criterion=criterion, sample_weight=w)
        copies = np.repeat(np.arange(len(y)), w)
        copied = split_table(X.iloc[copies], y[copies], criterion=criterion)
        for a, b in zip(weighted.rows, copied.rows, strict=True):
            assert [branch.counts for branch in a.branches] == [branch.counts for branch in b.branches]
            assert (a.gain, a.remainder, a.score) == pytest.approx((b.gain, b.remainder, b.score), abs=1e-13)


def test_halves_are_written_as_they_were_given() -> None:
    X, y = parts(load_classroom("exercise_18_2"))
    found = split_table(X, y, criterion="gini", sample_weight=[0.5, 0.5, 0.5, 1.0])
    assert (found.unit, found.node.weight, found.node.rows) == (0.5, 5, 4)
    assert "G(1.5/2.5, 1/2.5)" in found.show_work()
    assert str(found).startswith("4 rows of weight 2.5: 1.5 of 0, 1 of 1; Gini impurity 0.480")
    chi = split_table(X, y, criterion="chi2", sample_weight=[0.5, 0.5, 0.5, 1.0])
    assert worked(sides(chi.show_work())[0]) == pytest.approx(chi.row().score, rel=1e-12)


def test_missing_values_have_a_branch_of_their_own_or_join_one() -> None:
    X, y = parts(load_weather("unknown"))
    found = split_table(X, y)
    assert [branch.label for branch in found.row("outlook").branches] == ["sunny", "overcast", "rainy", "missing"]
    assert found.row("outlook").branches[-1].counts == (0, 1)
    gone = split_table([[1.0], [2.0], [np.nan], [np.nan]], ["a", "b", "b", "b"])
    assert gone.row().test == "<= 1.5 | > 1.5 or missing"
    only = split_table([[1.0], [1.0], [np.nan]], ["a", "a", "b"])
    assert only.row().test == "known | missing"


def test_declared_categories_without_rows_are_shown_and_left_out_of_the_sum() -> None:
    X, y = parts(load_weather())
    kept = (X.outlook != "overcast").to_numpy()
    row = split_table(X[kept], y[kept]).row("outlook")
    assert [(branch.label, branch.weight) for branch in row.branches] == [("sunny", 5), ("overcast", 0), ("rainy", 5)]
    work = split_table(X[kept], y[kept]).show_work("outlook")
    assert "overcast (n=0)" in work
    assert "Gain(outlook) = H(5/10, 5/10) - [5/10 H(3/5, 2/5) + 5/10 H(2/5, 3/5)]" in work


def test_categories_that_read_like_lists_are_quoted() -> None:
    X = pd.DataFrame({"x": ["a, b", "c", "", "d"]})
    assert split_table(X, [0, 1, 0, 1]).row().test == "'' | 'a, b' | c | d"


# Text and frames


def long_table(n_classes: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(n_classes)
    n = 500
    X = pd.DataFrame(
        {
            "the name of a column that goes on for much longer than any line of text has room": rng.choice(
                [f"a category with a long name, number {i}" for i in range(40)], n
            ),
            "short": rng.choice([f"c{i}" for i in range(40)], n),
            "number": rng.normal(size=n) * 1e9,
            "constant": 1.0,
        }
    )
    return X, rng.choice([f"the class with the number {i}" for i in range(n_classes)], n)


@pytest.mark.parametrize("criterion", [*CLASS_CRITERIA, "twoing"])
@pytest.mark.parametrize("n_classes", [2, 30])
def test_text_is_at_most_80_columns_wide(criterion: str, n_classes: int) -> None:
    X, y = long_table(n_classes)
    split = "binary" if n_classes == 2 else "multiway"
    if criterion == "twoing" and split == "multiway":
        X = X[["number", "constant"]]
    found = split_table(X, y, criterion=criterion, split=split)
    texts = [str(found), *(found.show_work(row.feature) for row in found.rows if row.branches)]
    assert max(len(line) for text in texts for line in text.splitlines()) <= 80
    assert len(str(found).splitlines()) <= 4 + 4 * len(found.rows) + 2
    assert repr(found) == str(found)


def test_many_categories_are_counted_not_listed() -> None:
    X, y = long_table(2)
    text = str(split_table(X, y))
    assert re.search(r"\| \.\.\. \d+ more$", text, re.M)
    assert "constant                           one value only" in text


def test_many_features_are_counted_not_listed() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (60, 130)), rng.integers(0, 2, 60)
    found = split_table(X, y)
    text = str(found)
    assert "  ... 80 more features of lower scores" in text
    assert f"* {found.best} " in text
    shown = set(re.findall(r"^[*= ] (feature_\d+)", text, re.M))
    assert len(shown) == 50
    least = min(row.score for row in found.rows if row.feature in shown)
    assert all(row.score <= least for row in found.rows if row.feature not in shown)


def test_the_text_of_a_regression() -> None:
    assert str(split_table([[0], [0], [0], [1]], [1, 2, 3, 6], criterion="squared_error")) == (
        "4 rows: mean 3; mean squared error 3.5\n"
        "\n"
        "  feature                            remainder      gain  split info  gain ratio\n"
        "* feature_0                                0.5         3      0.8113       3.698\n"
        "    <= 0.5 [n=3 mean=2] | > 0.5 [n=1 mean=6]\n"
        "\n"
        "* best"
    )


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames(library: Any) -> None:
    pytest.importorskip(library)
    import narwhals.stable.v2 as nw

    X, y = parts(load_weather())
    found = split_table(X.assign(constant=1.0), y)
    frame = nw.from_native(found.to_frame(library), eager_only=True)
    assert frame.columns == ["feature", "test", "counts", "remainder", "gain", "split_info", "gain_ratio", "score"]
    assert frame["feature"].to_list() == [*X.columns, "constant"]
    assert frame["counts"].to_list()[0] == "3:2 | 0:4 | 2:3"
    assert frame["test"].to_list()[0] == "sunny | overcast | rainy"
    assert frame["gain"].to_list()[:4] == [row.gain for row in found.rows[:4]]
    assert frame["gain"].is_null().to_list() == [False] * 4 + [True]


def test_whole_numbers_of_classes_have_no_point() -> None:
    X, y = parts(load_classroom("dtl"))
    assert split_table(X, y).classes == ("0", "1")
    assert split_table(X, y * 12_345_678).classes == ("0", "12345678")
    assert split_table(X, np.where(y == 1, "yes", "no")).classes == ("no", "yes")


def test_a_table_of_the_monks() -> None:
    """Problem 1 is (head = body) or red: the jacket alone has a gain at first."""
    X, y = parts(make_monks(1))
    found = split_table(X, y)
    assert found.best == "jacket_color"
    assert {row.feature for row in found.rows if row.gain > 1e-12} == {"jacket_color"}


def test_numbers_agree_with_scikit_learn() -> None:
    table = load_penguins()
    X = np.stack([table.column(name) for name in ("bill_length_mm", "bill_depth_mm", "body_mass_g")], axis=1)
    known = ~np.isnan(X).any(axis=1)
    X, y = X[known], table.column("species")[known]
    found = split_table(X, y, criterion="entropy", split="binary")
    for i, row in enumerate(found.rows):
        tree = SklearnTree(criterion="entropy", max_depth=1).fit(X[:, [i]], y).tree_
        share = tree.weighted_n_node_samples[1:] / len(y)
        assert row.remainder == pytest.approx(share @ tree.impurity[1:], rel=1e-12)
        assert row.split_info == pytest.approx(entropy(share), rel=1e-12)


# Refusals


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"criterion": "variance"}, ValueError, "criterion='variance' is not offered; choose one of 'gini', 'entropy'"),
        ({"split": "three"}, ValueError, "split='three' is not offered; choose one of 'binary', 'multiway'"),
        ({"sample_weight": [-1] * 14}, ValueError, "sample_weight holds -1"),
    ],
)
def test_refusals(given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        split_table(*parts(load_weather()), **given)


def test_one_output_at_a_time() -> None:
    with pytest.raises(ValueError, match="y has 2 outputs, and a split table is about one; pass one column"):
        split_table([[0], [1]], [[0, 1], [1, 0]])


def test_unknown_columns_and_columns_without_a_test() -> None:
    found = split_table([[1, 2], [1, 3]], [0, 1])
    with pytest.raises(ValueError, match="no column 'x9' in this table; it has feature_0, feature_1"):
        found.show_work("x9")
    with pytest.raises(ValueError, match=r"column 'feature_0' has no test here \(one value only\)"):
        found.show_work("feature_0")
    with pytest.raises(ValueError, match="decimals=-1 must be a whole number from 0 to 15"):
        found.show_work(decimals=-1)
    empty = split_table([[1], [1]], [0, 1])
    assert (empty.best, empty.tied) == (None, ())
    assert str(empty).endswith("no column has a test; branches show [0:1]")
    with pytest.raises(ValueError, match="no column has a test here, so none is the best"):
        empty.show_work()


def test_models_and_nodes_that_are_none() -> None:
    X, y = parts(load_weather())
    with pytest.raises(NotFittedError):
        split_table_of(DecisionTreeClassifier(), X, y)
    with pytest.raises(TypeError, match="model is a DecisionTreeClassifier; give a tree of this library"):
        split_table_of(SklearnTree(), X, y)
    model = DecisionTreeClassifier(max_depth=1).fit(X, y)
    for node in (-1, 3, 1.5):
        with pytest.raises(ValueError, match=f"node={node} does not exist; the nodes of this tree are 0 to 2"):
            split_table_of(model, X, y, node)  # type: ignore[arg-type]
    left = model.apply(X) == 1
    with pytest.raises(ValueError, match="no row of X passes this node"):
        split_table_of(model, X[left], y[left], 2)
