"""C4.5's pruning against Weka's J48, C4.5 release 8 and plain recursion (`tests.c45_pruning`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gputree import C45Classifier, load, save
from gputree.core.forest import SPREAD, Test
from gputree.engine.pruning import Cases, Fitted
from gputree.engine.pruning.raising import Raising
from gputree.engine.pruning.rules import ErrorBased
from gputree.learners.held_out import cases_of
from gputree.pruning import Collapse, ReducedError, fitted_of, prune
from tests import c45
from tests.c45_pruning import pruned
from tests.learners.test_c45 import TABLES, as_node, frame_of, j48_text, plain, random_table

PRUNED = json.loads(Path(__file__).parents[1].joinpath("data", "c45_pruned.json").read_text())["tables"]
J48 = [pytest.param(name, run, id=f"{name}-{i}") for name, own in PRUNED.items() for i, run in enumerate(own["j48"])]
RELEASE_8 = [pytest.param(name, run, id=f"{name}-{run['criterion']}") for name in PRUNED for run in PRUNED[name]["c45"]]


@pytest.mark.parametrize(("name", "run"), J48)
def test_trees_of_j48(name: str, run: dict[str, Any]) -> None:
    """Tests, cuts, weights and errors, to the digits that J48 prints; size and errors."""
    X, y = frame_of(name)
    settings = {name: run[name] for name in ("confidence", "min_weight")}
    model = C45Classifier(**settings, subtree_raising=run["raising"]).fit(X, y)
    assert j48_text(model, name) == run["text"].removeprefix("\n")
    assert (model.get_n_leaves(), model.forest_.n_nodes) == (run["leaves"], run["size"])
    assert (model.predict(X) != y).sum() == run["errors"]


def release_8(name: str, criterion: str) -> C45Classifier:
    ours = {"gain": "entropy", "gain ratio": "gain_ratio"}[criterion]
    return C45Classifier(criterion=ours, constants="c4.5").fit(*frame_of(name))


@pytest.mark.parametrize(("name", "run"), RELEASE_8)
def test_sizes_errors_and_estimates_of_release_8(name: str, run: dict[str, Any]) -> None:
    model, (X, y) = release_8(name, run["criterion"]), frame_of(name)
    assert model.forest_.n_nodes == run["size"]
    assert (model.predict(X) != y).sum() == run["errors"]
    leaves = model.forest_.kind == Test.LEAF
    fitted = fitted_of(model)
    share = ErrorBased(limit="c45").expected()(*fitted.errors())[leaves].sum() / len(y)
    assert 100 * share == pytest.approx(run["estimate"], abs=0.051)


def post_order(model: Any, node: int = 0) -> Iterator[int]:
    """Tests, children first."""
    for child in model.forest_.node(node).children:
        yield from post_order(model, child)
    if model.forest_.kind[node] != Test.LEAF:
        yield node


def training_cases(model: Any, X: Any, y: Any) -> tuple[Fitted, Cases]:
    """What the rules get in a fit of these rows."""
    ready = model._prepare(X, y, None)
    return fitted_of(model), cases_of(ready.rows)


@pytest.mark.parametrize(("name", "run"), [given for given in RELEASE_8 if given.values[1]["trace"]])
def test_traces_of_release_8(name: str, run: dict[str, Any]) -> None:
    """Cases and expected errors of leaf, branches and heaviest branch of every test, to the two digits printed."""
    X, y = frame_of(name)
    model = C45Classifier(**release_8(name, run["criterion"]).get_params() | {"pruning": None}).fit(X, y)
    state = Raising(*training_cases(model, X, y), ErrorBased(limit="c45").expected())
    state.run()
    seen: dict[int, tuple[float, ...]] = {}
    for v in state.verdicts:
        columns = (v.cases, v.tree, v.leaf, v.branch + 1, v.raised)
        seen |= {int(node): row for node, row in zip(v.node, np.column_stack(columns).tolist(), strict=True)}
    order = list(post_order(model))
    assert [X.columns[model.forest_.feature[node]] for node in order] == [row[0] for row in run["trace"]]
    for node, (_, cases, tree, wrong, more, branch, raised) in zip(order, run["trace"], strict=True):
        assert seen[node] == pytest.approx((cases, tree, wrong + more, branch, raised), abs=0.0101)


def test_shares_of_j48() -> None:
    """The golf table with an unknown outlook: rows with missing values, to the three digits printed."""
    X, y = frame_of("golf_unknown_outlook")
    oracle = PRUNED["golf_unknown_outlook"]["predict"]
    rows = pd.DataFrame(oracle["rows"], columns=[c["name"] for c in TABLES["golf_unknown_outlook"]["columns"]])
    rows = rows[X.columns].astype(X.dtypes)
    shares = C45Classifier().fit(X, y).predict_proba(rows)
    np.testing.assert_allclose(shares, oracle["shares"], atol=0.00051)


@pytest.mark.parametrize("raising", [True, False])
@pytest.mark.parametrize("seed", range(60))
def test_plain_recursion(seed: int, raising: bool) -> None:
    """Mixed columns with missing cells, weights and confidences: the same tests, the same weights."""
    X, y, w = random_table(seed, seed % 2 == 1)
    m, cf = [2.0, 1.0, 3.5][seed % 3], [0.25, 0.4, 0.1][seed // 3 % 3]
    model = C45Classifier(min_weight=m, confidence=cf, subtree_raising=raising).fit(X, y, w)
    whole, table, rows = c45.collapsed(plain(X, y, w, "gain_ratio", m)), *as_table(X, y, w)
    ours, theirs = list(c45.walk(as_node(model))), list(c45.walk(pruned(table, whole, rows, cf, raising)))
    assert [node.test for node in ours] == [node.test for node in theirs]
    for a, b in zip(ours, theirs, strict=True):
        assert a.weights == pytest.approx(b.weights, rel=1e-6, abs=1e-9)


def as_table(X: pd.DataFrame, y: NDArray[np.int64], w: Any) -> tuple[c45.Table, c45.Rows]:
    columns: list[list[float | None]] = []
    for column in X.columns:
        codes = X[column].astype("category").cat.codes.replace(-1, np.nan) if column.startswith("c") else X[column]
        columns.append([None if np.isnan(v) else float(v) for v in codes])
    weight = np.ones(len(y)) if w is None else w
    return c45.Table(columns, [], y.tolist(), int(y.max()) + 1, 0.0), list(enumerate(weight.tolist()))


def test_raising_happens() -> None:
    """The tables of `test_plain_recursion` ask for it."""
    raised = 0
    for seed in range(60):
        X, y, w = random_table(seed, seed % 2 == 1)
        trees = [C45Classifier(confidence=0.4, subtree_raising=up).fit(X, y, w).fingerprint() for up in (True, False)]
        raised += trees[0] != trees[1]
    assert raised >= 5


@pytest.mark.parametrize("seed", range(6))
def test_a_pruned_tree_holds_its_rows(seed: int) -> None:
    """Counts of all nodes are those of the rows that come there, pruning again changes nothing, files keep it."""
    X, y, _ = random_table(seed, False)
    X = X.fillna({name: 0.0 for name in X.columns if name.startswith("x")})
    X = X[[name for name in X.columns if name.startswith("x")] or X.columns[:0]].assign(one=np.arange(len(y)) % 7.0)
    model = C45Classifier(confidence=0.4).fit(X, y)
    leaves = model.apply(X)
    for leaf in np.unique(leaves):
        counts = np.bincount(y[leaves == leaf], minlength=model.n_classes_)
        np.testing.assert_array_equal(model.forest_.stats[leaf, : model.n_classes_], counts)
    assert prune(model, ErrorBased(cf=0.4), X, y).fingerprint() == model.fingerprint()


def test_what_a_fit_prunes_is_what_prune_does() -> None:
    X, y = frame_of("vote_missing")
    grown = C45Classifier(pruning=None, collapse=False).fit(X, y)
    collapsed = prune(grown, Collapse())
    assert collapsed.fingerprint() == C45Classifier(pruning=None).fit(X, y).fingerprint()
    assert prune(collapsed, ErrorBased(), X, y).fingerprint() == C45Classifier().fit(X, y).fingerprint()
    assert (grown.forest_.missing[grown.forest_.n_children > 0] == SPREAD).all()


def test_rows_kept_back_prune() -> None:
    """A third of each class, in whole rows, judges the tree that the others grow."""
    X, y = frame_of("breast_cancer_ljubljana")
    model = C45Classifier(pruning="reduced_error").fit(X, y)
    counts = np.bincount(y)
    assert (model.forest_.stats[0, :2] * model.weight_unit_).tolist() == (counts - counts // 3).tolist()
    assert model.get_n_leaves() < C45Classifier(pruning=None).fit(X, y).get_n_leaves()
    same = C45Classifier(pruning=ReducedError(), random_state=0).fit(X, y)
    assert same.fingerprint() == model.fingerprint()
    assert C45Classifier(pruning="reduced_error", random_state=1).fit(X, y).fingerprint() != model.fingerprint()
    with pytest.raises(ValueError, match="of 2 rows that is none"):
        C45Classifier(pruning="reduced_error").fit([[0.0], [1.0], [2.0]], [0, 0, 1])


def test_a_file_keeps_the_rule(tmp_path: Path) -> None:
    model = C45Classifier(pruning=ErrorBased(cf=0.1, raising=False)).fit(*frame_of("weather_nominal"))
    save(model, tmp_path / "model.gputree")
    again = load(tmp_path / "model.gputree")
    assert again.pruning == model.pruning
    assert again.fingerprint() == model.fingerprint()


def test_remedies_are_of_this_class() -> None:
    table = pd.DataFrame({"c": list("aabb")})
    assert C45Classifier(confidence=0.7, constants="c4.5").fit(table, [0, 0, 1, 1]).get_n_leaves() == 2
    assert C45Classifier(pruning=ErrorBased(0.7, "binomial")).fit(table, [0, 0, 1, 1]).get_n_leaves() == 2
    model = C45Classifier(unknown="error").fit(table, [0, 0, 1, 1])
    with pytest.raises(ValueError, match="or fit without unknown='error'"):
        model.predict(pd.DataFrame({"c": ["z"]}))
    with pytest.raises(ValueError, match=r"For numbers use DecisionTreeRegressor, or in split_table criterion="):
        C45Classifier().fit(table, [0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pruning": "errors"}, "'pruning' parameter"),
        ({"pruning": ErrorBased}, "'pruning' parameter"),
        ({"confidence": 0.0}, "'confidence' parameter"),
        ({"confidence": 1.0}, "'confidence' parameter"),
        ({"confidence": 0.7}, "confidence=0.7 must be at most 0.5 with constants='j48'"),
        ({"validation_fraction": 1.0}, "'validation_fraction' parameter"),
        ({"subtree_raising": "no"}, "'subtree_raising' parameter"),
    ],
)
def test_parameters_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        C45Classifier(**settings).fit([[0.0], [1.0]], [0, 1])
