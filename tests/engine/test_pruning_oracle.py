"""Every rule of pruning on one table of 64 rows, and limits of errors, against other programs (`tests/data`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gputree import DecisionTreeClassifier
from gputree.core.description import code_length, risk_bound
from gputree.engine.pruning.errors import binomial_errors, c45_errors, j48_errors
from gputree.pruning import (
    BottomUp,
    ChiSquare,
    CostComplexity,
    ReducedError,
    RiskBound,
    ValidationSet,
    WholeTree,
    cost_complexity_path,
    prune,
)

DATA = Path(__file__).parents[1] / "data"
ORACLE = json.loads((DATA / "pruning_64_rows.json").read_text())
LIMITS = json.loads((DATA / "error_limits.json").read_text())["grid"]
RESULTS = ORACLE["results"]
ROWS = np.array(ORACLE["rows"])
X, Y = ROWS[:40, :6].astype(float), ROWS[:40, 6]
X_OTHER, Y_OTHER = ROWS[40:, :6].astype(float), ROWS[40:, 6]


def grown() -> DecisionTreeClassifier:
    return DecisionTreeClassifier(criterion="entropy").fit(X, Y)


def nested(model: Any, node: int = 0) -> Any:
    """A tree as the oracle writes it: the tested bit from 1 on, and what is below its values."""
    found = model.forest_.node(node)
    if found.is_leaf:
        return int(model.forest_.value[node].argmax())
    zero, one = (nested(model, child) for child in found.children)
    return {"x": found.feature + 1, "1": one, "0": zero}


def check(model: Any, expected: dict[str, Any]) -> None:
    assert nested(model) == expected["tree"]
    assert (model.forest_.n_nodes, model.get_n_leaves()) == (expected["nodes"], expected["leaves"])
    assert (model.predict(X) != Y).sum() == expected["train_errors"]
    assert (model.predict(X_OTHER) != Y_OTHER).sum() == expected["val_errors"]


def bound_for(m: int) -> Any:
    return lambda tree, _: float(risk_bound(tree.error, code_length(tree.n_nodes, 6), m))


def validation_error(tree: WholeTree, m: float) -> float:
    return float(np.mean(tree.predict(X_OTHER) != Y_OTHER))


def test_the_tree() -> None:
    check(grown(), RESULTS["full_id3"])


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        ("generic_bound18.1_m=40", bound_for(40)),
        ("generic_bound18.1_m=4000 (same tree, L_S from the 40 rows)", bound_for(4000)),
        ("generic_f=validation_error", validation_error),
    ],
    ids=["m=40", "m=4000", "validation"],
)
def test_every_step_of_the_generic_procedure(name: str, bound: Any) -> None:
    """The bound of all five whole trees at every node, in the order of the walk."""
    found = []

    def recorded(tree: WholeTree, m: float) -> float:
        assert m == 40
        found.append(bound(tree, m))
        return found[-1]

    pruned = prune(grown(), BottomUp(recorded), X, Y)
    expected = RESULTS[name]
    check(pruned, expected)
    np.testing.assert_allclose(np.reshape(found, (-1, 5)), [f for _, _, f in expected["steps"]], rtol=0, atol=1e-12)
    final = [min(f) for _, _, f in expected["steps"]][-1]
    assert min(found[-5:]) == pytest.approx(expected.get("final_f", final), abs=1e-12)


def test_the_bound() -> None:
    check(prune(grown(), RiskBound(0.05), X, Y), RESULTS["generic_bound18.1_m=40"])
    for case in ORACLE["bound"]:
        bits = code_length(case["n"], case["d"])
        found = risk_bound(case["L_S"], bits, case["m"], case["delta"])
        assert float(found) == pytest.approx(case["bound"], abs=1e-14)
    for case in ORACLE["code_length_bits"]:
        assert float(code_length(case["n"], case["d"])) == pytest.approx(case["bits"], abs=1e-12)


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (ReducedError(), "reduced_error_bottom_up_prune_if_no_worse"),
        (ReducedError(strict=True), "reduced_error_bottom_up_prune_only_if_better"),
        (ReducedError(greedy=True), "reduced_error_greedy_best_node_first"),
        (ValidationSet(), "validation_stop_split_must_improve"),
    ],
    ids=str,
)
def test_rules_of_validation_rows(rule: Any, name: str) -> None:
    check(prune(grown(), rule, X_OTHER, Y_OTHER), RESULTS[name])


def test_chi_square() -> None:
    check(prune(grown(), ChiSquare(0.05)), RESULTS["chi_square_post_pruning_alpha_0.05"])


def test_cost_complexity_of_errors() -> None:
    """Every tree of the path; with nodes counted instead of leaves, alpha is half of it."""
    model, expected = grown(), RESULTS["cost_complexity_misclassification"]
    for penalty, factor in (("leaves", 1.0), ("nodes", 0.5)):
        path = cost_complexity_path(model, penalty, "error")
        last = np.flatnonzero(np.diff(path.alphas, append=np.inf) > 1e-12)
        np.testing.assert_allclose(path.alphas[last] / factor, [s["alpha"] for s in expected], atol=1e-12)
        np.testing.assert_allclose(40 * path.impurities[last], [s["train_errors"] for s in expected], atol=1e-9)
        for step in expected:
            pruned = prune(model, CostComplexity(step["alpha"] * factor + 1e-9, penalty, "error"))
            assert pruned.get_n_leaves() == step["leaves"]
            assert (pruned.predict(X) != Y).sum() == step["train_errors"]


@pytest.mark.parametrize("case", LIMITS, ids=lambda c: f"{c['CF']}-{c['N']}-{c['e']}")
def test_limits_of_errors(case: dict[str, float]) -> None:
    n, e, cf = np.array([case["N"]], float), np.array([case["e"]], float), case["CF"]
    assert c45_errors(n, e, cf)[0] == pytest.approx(case["c45_added"], abs=1e-9)
    assert (e + c45_errors(n, e, cf))[0] / case["N"] == pytest.approx(case["c45_U"], abs=1e-9)
    assert j48_errors(n, e, cf)[0] == pytest.approx(case["j48_added"], abs=1e-9)
    if "exact_binomial_U" in case:
        assert (e + binomial_errors(n, e, cf))[0] / case["N"] == pytest.approx(case["exact_binomial_U"], abs=1e-9)
