"""Value grouping of C4.5 against release 8 (option -s), hand-worked numbers and plain recursion (`tests.c45`)."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import gputree.backends.groups
from gputree import C45Classifier, C45Rules, export_text, load, plot_tree, save
from gputree.core.forest import Test
from gputree.engine.pruning.rules import ErrorBased
from gputree.pruning import fitted_of
from tests import c45
from tests.backends.cards import emulate
from tests.c45_pruning import pruned
from tests.learners.test_c45 import categorical, frame_of, random_table
from tests.learners.test_c45 import plain as plain_tree
from tests.learners.test_c45_pruning import as_table

Grouped = partial(C45Classifier, categorical_split="grouped")
Grown = partial(Grouped, pruning=None, collapse=False)
TABLES = json.loads(Path(__file__).parents[1].joinpath("data", "c45_grouped.json").read_text())["tables"]
SHOWN = [(name, kind) for name, own in TABLES.items() for kind in ("grown", "pruned") if kind in own]

Shape = Any  # a leaf: its class and its cases; else the name of the column and {categories: Shape}


def shape_of_text(text: str) -> Shape:
    """A tree as C4.5 prints it."""
    lines = [(len(re.match(r"[| ]*", line)[0]) // 4, line.lstrip("| ")) for line in text.split("\n")]

    def read(depth: int) -> Shape:
        kids, name = {}, ""
        while lines and lines[0][0] == depth:
            name, sign, rest = lines.pop(0)[1].split(" ", 2)
            values, _, end = rest.partition(":")
            own = values.strip("{}").split(",") if sign == "in" else [values]
            kids[frozenset(own)] = leaf(end.strip()) if end else read(depth + 1)
        return name, kids

    def leaf(text: str) -> Shape:
        label, cases = re.fullmatch(r"(\S+) \(([\d.]+)(?:/[\d.]+)?\)", text).groups()
        return label, float(cases)

    return read(0)


def shape_of(model: Any, labels: list[str], node: int = 0) -> Shape:
    forest = model.forest_
    if forest.kind[node] == Test.LEAF:
        weight = forest.stats[node, : model.n_classes_].sum() * model.weight_unit_
        return labels[int(forest.value[node].argmax())], round(float(weight), 1)
    feature = model.schema_.features[forest.feature[node]]
    groups: dict[int, list[str]] = {}
    for code, branch in zip(*forest.node(node).lookup, strict=True):
        groups.setdefault(int(branch), []).append(str(feature.categories[code - 1]))
    children = forest.node(node).children
    return feature.name, {frozenset(own): shape_of(model, labels, children[b]) for b, own in groups.items()}


def labels_of(name: str) -> list[str]:
    data = json.loads(Path(__file__).parents[1].joinpath("data", "c45_trees.json").read_text())["tables"][name]
    return next(c["levels"] for c in data["columns"] if c["name"] == data["target"])


@pytest.mark.parametrize(("name", "kind"), SHOWN)
def test_trees_of_release_8(name: str, kind: str) -> None:
    """Tests, groups, classes and cases; of numeric weather and lenses too, where the others are as without grouping."""
    settings = {"pruning": None} if kind == "grown" else {}
    model = Grouped(constants="c4.5", **settings).fit(*frame_of(name))
    assert shape_of(model, labels_of(name)) == shape_of_text(TABLES[name][kind])


def possible_nodes(model: Any, node: int = 0, left: dict[int, set[int]] | None = None) -> int:
    """Nodes but those that no row can come to, for their categories are in another branch above; C4.5 drops these."""
    forest, left = model.forest_, left or {}
    if forest.kind[node] == Test.LEAF:
        return 1
    feature, count = int(forest.feature[node]), 1
    codes, branches = forest.node(node).lookup
    for b, child in enumerate(forest.node(node).children):
        own = {int(c) for c in codes[branches == b]} & left.get(feature, set(codes.tolist()))
        count += possible_nodes(model, child, left | {feature: own}) if own else 0
    return count


@pytest.mark.parametrize("name", TABLES)
def test_sizes_errors_and_estimates_of_release_8(name: str) -> None:
    (X, y), run = frame_of(name), TABLES[name]
    grown = Grouped(constants="c4.5", pruning=None).fit(X, y)
    assert grown.forest_.n_nodes == run["size_grown"]
    assert (grown.predict(X) != y).sum() == run["errors_grown"]
    model = Grouped(constants="c4.5").fit(X, y)
    assert possible_nodes(model) == run["size_pruned"]
    assert (model.predict(X) != y).sum() == run["errors_pruned"]
    leaves = model.forest_.kind == Test.LEAF
    fitted = fitted_of(model)
    share = ErrorBased(limit="c45").expected()(*fitted.errors())[leaves].sum() / len(y)
    assert 100 * share == pytest.approx(run["estimate"], abs=0.051)


def test_outlook_by_hand() -> None:
    """Sunny (2, 3) and rainy (3, 2) become one branch: gain .940 - 10/14, split H(4/14), ratio .226 / .863 = .262."""
    X, y = frame_of("weather_nominal")
    forest = Grown().fit(X, y).forest_
    gain, split = c45.entropy((9, 5)) - 10 / 14 * c45.entropy((5, 5)), c45.entropy((4, 10))
    assert (round(gain, 3), round(split, 3), round(gain / split, 3)) == (0.226, 0.863, 0.262)
    assert X.columns[forest.feature[0]] == "outlook"
    assert forest.score[0] == pytest.approx(gain / split, rel=1e-9)
    codes, branch = forest.node(0).lookup
    assert dict(zip(X["outlook"].cat.categories[codes - 1], branch.tolist(), strict=True)) == {
        "sunny": 0,
        "overcast": 1,
        "rainy": 0,
    }


def test_a_row_id_becomes_its_classes() -> None:
    """Values of one class are one group: what the multiway test refuses parts the classes without an error."""
    X, y = frame_of("weather_nominal")
    X = X.assign(id=categorical(range(14), list(range(14))))
    forest = Grouped().fit(X, y).forest_
    assert X.columns[forest.feature[0]] == "id"
    assert forest.n_nodes == 3
    branch = forest.node(0).lookup[1]
    np.testing.assert_array_equal(branch, np.where(y == y[0], 0, 1))
    assert forest.score[0] == pytest.approx(1.0)


def test_declared_categories_without_rows_share_the_last_branch() -> None:
    """A leaf of no weight with the class above; categories that were not declared are spread as missing ones are."""
    y = np.array([0] * 6 + [1] * 6 + [0] * 2 + [1] * 2)
    text = [*"aaaaaabbbbbb", *"cccc"]
    one_level = partial(Grown, max_depth=1)
    declared = one_level().fit(pd.DataFrame({"c": categorical(text, list("xabcy"))}), y).forest_
    codes, branch = declared.node(0).lookup
    last = declared.n_children[0] - 1
    assert codes.tolist() == [1, 2, 3, 4, 5]
    assert branch[[0, 4]].tolist() == [last, last]
    assert declared.stats[declared.node(0).children[last]].sum() == 0
    met = one_level().fit(pd.DataFrame({"c": np.array(text, object)}), y)
    assert met.forest_.n_children[0] == last
    weights = met.forest_.stats[1:, :2] * met.weight_unit_
    np.testing.assert_array_equal(weights, declared.stats[1 : met.forest_.n_nodes])
    np.testing.assert_allclose(met.predict_proba(pd.DataFrame({"c": ["z"]})), [[0.5, 0.5]])


def as_node(model: Any, i: int = 0) -> c45.Node:
    """A fitted tree in the form of the recursion."""
    forest = model.forest_
    node = c45.Node((forest.stats[i, : model.n_classes_] * model.weight_unit_).tolist())
    if forest.kind[i] == Test.LEAF:
        return node
    node.test = ("<=", int(forest.feature[i]), float(forest.low[i]))
    if forest.kind[i] == Test.LOOKUP:
        codes, branch = forest.node(i).lookup
        groups = tuple(tuple((codes[branch == b] - 1).tolist()) for b in range(forest.n_children[i]))
        node.test = ("in", int(forest.feature[i]), groups)
    node.kids = [as_node(model, int(child)) for child in forest.node(i).children]
    return node


@pytest.mark.parametrize("criterion", ["gain_ratio", "entropy"])
@pytest.mark.parametrize("seed", range(60))
def test_plain_recursion(seed: int, criterion: str) -> None:
    """Mixed columns with missing cells, with weights and without: the same groups, the same weights."""
    X, y, w = random_table(seed, seed % 2 == 1)
    m = [2.0, 1.0, 3.5][seed % 3]
    ours = list(c45.walk(as_node(Grown(criterion=criterion, min_weight=m).fit(X, y, w))))
    theirs = list(c45.walk(plain_tree(X, y, w, criterion, m, "grouped")))
    assert [node.test for node in ours] == [node.test for node in theirs]
    for a, b in zip(ours, theirs, strict=True):
        assert a.weights == pytest.approx(b.weights, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("raising", [True, False])
@pytest.mark.parametrize("seed", range(30))
def test_pruning_by_plain_recursion(seed: int, raising: bool) -> None:
    """Collapse, limits of errors and raised branches with groups above and below."""
    X, y, w = random_table(seed, seed % 2 == 1)
    model = Grouped(confidence=0.4, subtree_raising=raising).fit(X, y, w)
    whole, (table, rows) = c45.collapsed(plain_tree(X, y, w, "gain_ratio", 2.0, "grouped")), as_table(X, y, w)
    ours, theirs = list(c45.walk(as_node(model))), list(c45.walk(pruned(table, whole, rows, 0.4, raising)))
    assert [node.test for node in ours] == [node.test for node in theirs]
    for a, b in zip(ours, theirs, strict=True):
        assert a.weights == pytest.approx(b.weights, rel=1e-6, abs=1e-9)


def many_categories(seed: int, n: int = 600, n_classes: int = 3) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 60, n)
    y = (code % 7 + rng.normal(size=n) * 2 > 3).astype(int) + (rng.random(n) < 0.2) * (n_classes - 2)
    frame = pd.DataFrame({"c": pd.Categorical.from_codes(code, [f"v{i}" for i in range(70)])})
    frame["d"] = np.array(["p", "q", "r", "s", None], object)[rng.integers(0, 5, n)]
    return frame, y


def test_pairs_are_compared_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = many_categories(0)
    usual = Grown(device="numpy").fit(X, y).fingerprint()
    for few in (1, 100):
        monkeypatch.setattr(gputree.backends.groups, "PAIRS", few)
        assert Grown(device="numpy").fit(X, y).fingerprint() == usual


def test_weights_are_copies() -> None:
    X, y, _ = random_table(7, False)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    often = np.repeat(np.arange(len(y)), times)
    X = X.fillna({name: 0 for name in X.columns if name.startswith("x")})
    weighted, copies = Grown().fit(X, y, times).forest_, Grown().fit(X.iloc[often], y[often]).forest_
    np.testing.assert_array_equal(weighted.feature, copies.feature)
    np.testing.assert_array_equal(weighted.lookup_branch, copies.lookup_branch)
    np.testing.assert_allclose(weighted.value, copies.value, atol=1e-9)


DEVICES = ["jit", "emulated", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize(
    "case", ["mixed", "weights", "many categories", "no numbers", "many classes", "light", "by gain"]
)
@pytest.mark.parametrize("device", DEVICES)
def test_the_trees_of_the_oracle(device: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Array for array on every backend."""
    if device == "jit":
        pytest.importorskip("numba", reason="expected: without Numba")
    X, y, w = random_table(11, case == "weights")
    if case in ("many categories", "no numbers"):
        (X, y), w = many_categories(3), None
        X = X.assign(x=np.arange(len(y)) % 17.0) if case == "many categories" else X
    if case == "many classes":
        (X, y), w = many_categories(5, n_classes=5), None
    settings = {"by gain": {"criterion": "entropy"}, "light": {"min_weight": 1e-9}}.get(case, {})
    expected = Grouped(device="numpy", **settings).fit(X, y, w)
    if device == "emulated":
        emulate(monkeypatch)
        device = "cuda"
    got = Grouped(device=device, **settings).fit(X, y, w)
    assert got.fit_info_.backend != expected.fit_info_.backend
    assert got.fingerprint() == expected.fingerprint()
    np.testing.assert_array_equal(got.predict_proba(X), expected.predict_proba(X))


def test_texts_and_pictures_show_the_groups() -> None:
    X, y = frame_of("weather_nominal")
    model = Grouped(constants="c4.5").fit(X, y)
    lines = export_text(model).splitlines()
    assert lines[0] == "|--- outlook in {sunny, rainy}"
    assert "|--- outlook = overcast" in lines
    pytest.importorskip("matplotlib")
    texts = [t.get_text() for t in plot_tree(model)]
    assert any("sunny, rainy" in text for text in texts)


def test_rules_say_sets_of_categories() -> None:
    X, y = frame_of("weather_nominal")
    model = Grouped(constants="c4.5").fit(X, y)
    rules = model.rules()
    np.testing.assert_array_equal(rules.predict(X), model.predict(X))
    assert any("Outlook in {" in str(rule) or "outlook in {" in str(rule) for rule in rules)
    found = C45Rules(Grouped(pruning=None, constants="c4.5")).fit(X, y)
    assert found.score(X, y) >= 0.7


def test_a_file_keeps_the_groups(tmp_path: Path) -> None:
    X, y = frame_of("breast_cancer_ljubljana")
    model = Grouped().fit(X, y)
    for compact in (True, False):
        save(model, tmp_path / "model.gputree", compact=compact)
        again = load(tmp_path / "model.gputree")
        assert again.fingerprint() == model.fingerprint()
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_too_many_categories_are_refused_by_name() -> None:
    X = pd.DataFrame({"id": [f"row {i}" for i in range(1001)]})
    with pytest.raises(ValueError, match=r"column 'id' has 1,001 categories, and categorical_split='grouped' takes"):
        Grouped(categorical_features=["id"]).fit(X, np.arange(1001) % 2)
