"""Soft thresholds of C4.5 against release 8 (option -p), hand-worked numbers and plain recursion."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gputree import C45Classifier, C45Rules, export_graphviz, export_text, load, plot_tree, save
from gputree.core.forest import SPREAD, Test
from gputree.engine.pruning import Cases
from gputree.engine.soften import soft_bounds
from gputree.learners.held_out import cases_of
from gputree.pruning import Collapse, fitted_of, prune
from tests.backends.cards import emulate
from tests.learners.test_c45 import frame_of, random_table

RELEASE_8 = {  # column, threshold: lower and upper bound as the program prints them
    "weather_numeric": {("humidity", 75.0): (70.0, 80.155)},
    "iris": {
        ("petalwidth", 0.6): (0.415098, 0.705658),
        ("petalwidth", 1.7): (1.50809, 1.71838),
        ("petallength", 4.9): (4.82276, 5.05448),
        ("petalwidth", 1.5): (1.44572, 1.7),
    },
}


def soft(name: str, **settings: Any) -> tuple[C45Classifier, pd.DataFrame, NDArray[np.int64]]:
    X, y = frame_of(name)
    return C45Classifier(soft_thresholds=True, constants="c4.5", **settings).fit(X, y), X, y


@pytest.mark.parametrize("name", RELEASE_8)
def test_bounds_of_release_8(name: str) -> None:
    model, X, _ = soft(name)
    forest = model.forest_
    found = {
        (X.columns[forest.feature[i]], float(forest.low[i])): model.threshold_bounds_[i]
        for i in np.flatnonzero(forest.kind == Test.THRESHOLD)
    }
    assert found.keys() == RELEASE_8[name].keys()
    for test, bounds in RELEASE_8[name].items():
        assert [f"{bound:.6g}" for bound in found[test]] == [f"{bound:.6g}" for bound in bounds]
    assert np.isnan(model.threshold_bounds_[forest.kind != Test.THRESHOLD]).all()


def test_humidity_by_hand() -> None:
    """No error of five cases: Se = sqrt(.5 * 5.5 / 6) = .677; 70 makes none, 85 one, so .677 lies at 70 + .677 * 15.

    Below 70 there are no cases. 77 is (80.155 - 77) / (80.155 - 75) / 2 = .306 of the way from 75, where it is a half.
    """
    model, X, _ = soft("weather_numeric")
    node = int(np.flatnonzero(model.forest_.kind == Test.THRESHOLD)[0])
    upper = 70 + 15 * math.sqrt(0.5 * 5.5 / 6)
    assert model.threshold_bounds_[node].tolist() == [70.0, upper]
    rows = X.iloc[[0] * 7].assign(outlook=pd.Categorical(["sunny"] * 7, X["outlook"].cat.categories, ordered=True))
    rows["humidity"] = [60.0, 70.0, 72.5, 75.0, 77.0, 80.155, 90.0]
    low = [1, 1, 0.75, 0.5, (upper - 77) / (upper - 75) / 2, (upper - 80.155) / (upper - 75) / 2, 0]
    assert low[4] == pytest.approx(0.306, abs=0.0005)
    shares = model.predict_proba(rows)  # the first branch is all yes, class 0
    np.testing.assert_allclose(shares[:, 0], low, rtol=1e-12, atol=1e-15)
    hard = C45Classifier(constants="c4.5").fit(*frame_of("weather_numeric"))
    np.testing.assert_array_equal(hard.predict_proba(rows)[:, 0], [1, 1, 1, 1, 0, 0, 0])
    np.testing.assert_array_equal(model.apply(rows), hard.apply(rows))


def share_of_leaves(model: Any, row: list[float], node: int, soft: bool, own: float = 1.0) -> dict[int, float]:
    """Leaf -> share of a row of which a node has its ``own``."""
    forest, feature = model.forest_, int(model.forest_.feature[node])
    children = list(forest.node(node).children)
    if not children:
        return {node: own}
    x, weight = row[feature], model.layout_.weight(forest.stats.T)
    parts = {child: weight[child] / weight[node] for child in children}
    if forest.kind[node] == Test.LOOKUP and not math.isnan(x):
        codes, branches = forest.node(node).lookup
        parts = {children[b]: 1.0 for c, b in zip(codes, branches, strict=True) if c == x + 1} or parts
    elif not math.isnan(x):
        cut, (lower, upper) = float(forest.low[node]), model.threshold_bounds_[node].tolist()
        low = float(x <= cut)
        if soft and lower < x <= upper:
            low = 1 - 0.5 * ((x - lower) / (cut - lower)) if x <= cut else 0.5 * ((upper - x) / (upper - cut))
        parts = {children[0]: low, children[1]: 1.0 - low}
    found: dict[int, float] = {}
    for child, part in parts.items():
        if part > 0:
            found |= share_of_leaves(model, row, child, soft, own * part)
    return found


def shares(model: Any, row: list[float], node: int = 0, soft: bool = True) -> NDArray[np.float64]:
    parts = share_of_leaves(model, row, node, soft)
    return sum(part * model.forest_.value[leaf] for leaf, part in parts.items())


def numbers_of(X: pd.DataFrame) -> NDArray[np.float64]:
    """Categories as their numbers, NaN where missing."""
    columns = [X[c].cat.codes.replace(-1, np.nan) if c.startswith("c") else X[c] for c in X]
    return np.stack([np.asarray(column, float) for column in columns], axis=1)


def cases_below(model: Any, table: NDArray[np.float64], w: NDArray[np.float64]) -> dict[int, list[tuple[int, float]]]:
    """Training rows of every node with their weights; unknown ones go to all branches as the known ones do."""
    forest = model.forest_
    rows = {0: list(enumerate(w.tolist()))}
    for node in np.flatnonzero(forest.kind != Test.LEAF).tolist():
        f, children = int(forest.feature[node]), list(forest.node(node).children)
        parts: list[list[tuple[int, float]]] = [[] for _ in children]
        unknown = []
        for row, own in rows[node]:
            x = table[row, f]
            if math.isnan(x):
                unknown.append((row, own))
            elif forest.kind[node] == Test.LOOKUP:
                codes, branches = forest.node(node).lookup
                parts[int(branches[codes == x + 1][0])].append((row, own))
            else:
                parts[int(x > forest.low[node])].append((row, own))
        known = [sum(own for _, own in part) for part in parts]
        for child, part, k in zip(children, parts, known, strict=True):
            share = k / sum(known) if sum(known) else 1 / len(children)
            rows[child] = part + [(row, own * share) for row, own in unknown if share]
    return rows


@pytest.mark.parametrize("seed", range(20))
def test_bounds_by_counting(seed: int) -> None:
    """Mixed columns with missing cells, with weights and without: errors of each threshold at each value, counted."""
    X, y, w = random_table(seed, seed % 2 == 1)
    model = C45Classifier(soft_thresholds=True, confidence=0.4).fit(X, y, w)
    table, weight = numbers_of(X), np.ones(len(y)) if w is None else w
    below = cases_below(model, table, weight)
    for node in np.flatnonzero(model.forest_.kind == Test.THRESHOLD).tolist():
        f, cut = int(model.forest_.feature[node]), float(model.forest_.low[node])
        known = [(table[row, f], own, row) for row, own in below[node] if not math.isnan(table[row, f])]
        wrong = {
            (row, side): shares(model, table[row].tolist(), child, soft=False).argmax() != y[row]
            for _, _, row in known
            for side, child in enumerate(model.forest_.node(node).children)
        }
        values = sorted({x for x, _, _ in known})
        errors = {v: sum(own * wrong[row, int(x > v)] for x, own, row in known) for v in values}
        expected = bounds_of(values, errors, cut, sum(own for _, own, _ in known))
        assert model.threshold_bounds_[node] == pytest.approx(expected, rel=1e-6), node


def bounds_of(values: list[float], errors: dict[float, float], cut: float, n: float) -> tuple[float, float]:
    at = max((v for v in values if v <= cut), default=None)
    if at is None:
        return cut, cut
    e = errors[at]
    limit = e + math.sqrt((e + 0.5) * (n - e + 0.5) / (n + 1))
    lower, upper = values[0], values[-1]
    for a, b in pairwise(values):  # the last crossing up to the cut
        if b <= at and errors[a] > limit + 1e-9:
            lower = a + (b - a) * (errors[a] - limit) / (errors[a] - errors[b]) if errors[b] <= limit else lower
    for a, b in reversed(list(pairwise(values))):  # the first one beyond it
        if a >= at and errors[b] > limit + 1e-9:
            upper = a + (b - a) * (limit - errors[a]) / (errors[b] - errors[a]) if errors[a] <= limit else upper
    return min(lower, cut), max(upper, cut)


DEVICES = ["numpy", "jit", "emulated", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(8))
def test_predictions_weigh_both_branches(seed: int, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum over leaves from left to right, to the bit, of rows of the fit and of others."""
    if device == "jit":
        pytest.importorskip("numba", reason="expected: without Numba")
    X, y, w = random_table(seed, seed % 2 == 1)
    model = C45Classifier(soft_thresholds=True, pruning=None, device="numpy").fit(X, y, w)
    if device == "emulated":
        emulate(monkeypatch)
    other = C45Classifier(soft_thresholds=True, pruning=None, device="cuda" if device == "emulated" else device)
    other.fit(X, y, w)
    np.testing.assert_array_equal(other.threshold_bounds_, model.threshold_bounds_)
    more = X.copy()
    for name in [c for c in X if c.startswith("x")]:
        more[name] += np.linspace(-0.7, 0.7, len(X))
    for rows in (X, more):
        expected = np.stack([shares(model, row) for row in numbers_of(rows).tolist()])
        np.testing.assert_array_equal(other.predict_proba(rows), expected)


def test_shares_add_up_and_hard_thresholds_stay() -> None:
    model, X, _ = soft("iris")
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
    hard = C45Classifier(constants="c4.5").fit(*frame_of("iris"))
    assert not hasattr(hard, "threshold_bounds_")
    assert hard.fingerprint() == model.fingerprint()
    again = model.set_params(soft_thresholds=False).fit(*frame_of("iris"))
    assert not hasattr(again, "threshold_bounds_")
    np.testing.assert_array_equal(again.predict_proba(X), hard.predict_proba(X))


def test_infinite_values_leave_thresholds_hard() -> None:
    x = np.array([-np.inf, -np.inf, 1.0, 2.0, 3.0, 4.0, np.inf, np.inf])
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    model = C45Classifier(soft_thresholds=True).fit(x[:, None], y)
    shares = model.predict_proba(np.array([-np.inf, 0.0, 2.0, 2.5, 3.0, np.inf])[:, None])
    assert np.isfinite(shares).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert shares[0].tolist() == [1.0, 0.0]
    assert shares[-1].tolist() == [0.0, 1.0]


def test_texts_and_pictures_print_the_bounds() -> None:
    model, _, _ = soft("weather_numeric")
    text = export_text(model)
    assert "humidity <= 75.00 [70.00,80.16]" in text
    assert "humidity >  75.00 [70.00,80.16]" in text
    assert "[70" in export_graphviz(model)
    pytest.importorskip("matplotlib")
    assert any("[70" in t.get_text() for t in plot_tree(model))


def test_plain_data_has_the_bounds() -> None:
    model, _, _ = soft("weather_numeric")
    (node,) = (n for n in model.export_dict()["nodes"] if n["kind"] == "threshold")
    assert (node["threshold"], node["lower"], round(node["upper"], 3)) == (75.0, 70.0, 80.155)
    frame = model.trees_to_dataframe("pandas")
    assert frame["Lower"].dropna().tolist() == [70.0]
    assert frame["Upper"].dropna().round(3).tolist() == [80.155]
    hard = C45Classifier().fit(*frame_of("weather_numeric"))
    assert not {"Lower", "Upper"} & set(hard.trees_to_dataframe("pandas").columns)


def test_files_and_pickles_keep_the_bounds(tmp_path: Path) -> None:
    model, X, _ = soft("iris")
    save(model, tmp_path / "model.gputree")
    for again in (load(tmp_path / "model.gputree"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.threshold_bounds_, model.threshold_bounds_)
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_file_with_wrong_bounds_is_refused(tmp_path: Path) -> None:
    model, _, _ = soft("iris")
    for bad, message in (
        (model.threshold_bounds_[1:], "there are not two bounds for every node"),
        (np.where(np.isnan(model.threshold_bounds_), 0.0, model.threshold_bounds_), "a node has bounds and no thresh"),
        (model.threshold_bounds_ + 10.0, "a threshold is not between its bounds"),
    ):
        model.threshold_bounds_ = bad
        with pytest.raises(ValueError, match=message):
            save(model, tmp_path / "model.gputree")
        model = soft("iris")[0]


def test_a_hard_tree_is_saved_whatever_its_parameters_say_by_now(tmp_path: Path) -> None:
    _, X, y = soft("iris")
    model = C45Classifier().fit(X, y).set_params(soft_thresholds=True)
    save(model, tmp_path / "model.gputree")
    again = load(tmp_path / "model.gputree")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.soft_thresholds


def test_what_cannot_hold_the_bounds_refuses_by_name() -> None:
    model, X, y = soft("iris")
    with pytest.raises(ValueError, match="soft_thresholds=True: near a threshold rows go down both branches"):
        model.rules()
    with pytest.raises(ValueError, match="soft_thresholds=True: the bounds of thresholds are those of the tree"):
        prune(model, Collapse())
    with pytest.raises(TypeError, match="scikit-learn has no C45Classifier"):
        model.to_sklearn()
    assert C45Rules(model).fit(X, y).score(X, y) > 0.9  # rules are made of the thresholds themselves


def test_what_the_fit_was_counts_whatever_the_parameters_are(tmp_path: Path) -> None:
    model = soft("iris")[0].set_params(soft_thresholds=False)
    with pytest.raises(ValueError, match="fitted with soft_thresholds=True: near a threshold"):
        model.rules()
    with pytest.raises(ValueError, match="fitted with soft_thresholds=True: the bounds"):
        prune(model, Collapse())
    save(model, tmp_path / "model.gputree")
    again = load(tmp_path / "model.gputree")
    np.testing.assert_array_equal(again.threshold_bounds_, model.threshold_bounds_)
    hard = C45Classifier().fit(*frame_of("iris")).set_params(soft_thresholds=True)
    assert prune(hard, Collapse()).fingerprint() == hard.fingerprint()
    assert len(hard.rules()) == hard.get_n_leaves()


def test_rows_kept_back_do_not_move_the_bounds() -> None:
    X, y = frame_of("iris")
    model = C45Classifier(soft_thresholds=True, pruning="reduced_error").fit(X, y)
    ready = model._prepare(X, y, None)
    fitted = fitted_of(model)
    cases: Cases = cases_of(ready.rows)
    np.testing.assert_array_equal(soft_bounds(fitted, cases).T, model.threshold_bounds_)
    assert (model.forest_.missing[model.forest_.n_children > 0] == SPREAD).all()


@pytest.mark.parametrize("value", ["yes", 2, None])
def test_the_parameter_is_checked(value: Any) -> None:
    with pytest.raises(ValueError, match="'soft_thresholds' parameter"):
        C45Classifier(soft_thresholds=value).fit([[0.0], [1.0]], [0, 1])
