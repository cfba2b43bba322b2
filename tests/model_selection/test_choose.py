"""Parameters chosen by hand-made errors, by brute force, and as scikit-learn's searches choose them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier as TheirTree

from gputree import DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier, RandomForestClassifier
from gputree.model_selection import ByScore, ErrorEstimate, Holdout, OneStandardError, estimate_error, select
from gputree.model_selection.choose import chosen
from gputree.pruning import CostComplexity, ErrorBased


def made(wrong: int, size: int | None, of: int = 100) -> ErrorEstimate:
    """So many wrong rows of one fold, by a model of a size."""
    loss = (np.arange(of) < wrong).astype(float)
    rows = np.arange(of)
    return ErrorEstimate("Model", KFold(), True, np.zeros(of, np.int64), rows, loss, 0.0, size, 0.0, 0.0)


def test_the_rules_by_hand() -> None:
    """The least error is .10 with a standard error of sqrt(.1 * .9 / 100) = .03: .13 is within it, .14 is not."""
    estimates = [made(30, 1), made(14, 3), made(13, 5), made(12, 6), made(10, 9), made(10, 8), made(11, 20)]
    assert chosen(estimates, "best") == 5  # of two equal errors the smaller model
    assert chosen(estimates, "1se") == 2
    assert chosen([*estimates, made(12, 5)], "1se") == 7  # of two equal sizes the lesser error
    assert chosen([made(5, None), made(4, None), made(4, None)], "best") == 1  # the first
    with pytest.raises(ValueError, match="Model has no size that is known here; use rule='best'"):
        chosen([made(5, 3), made(4, None)], "1se")


@pytest.mark.parametrize("name", ["max_depth", "max_leaf_nodes", "min_samples_leaf", "ccp_alpha"])
def test_the_least_error_is_the_choice_of_a_grid_search(name: str) -> None:
    """Each candidate has the folds and errors that `GridSearchCV` finds; of equal ones the smaller tree is taken."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[::2], y[::2]
    values = {"max_depth": [1, 2, 3], "max_leaf_nodes": [2, 3, 6], "min_samples_leaf": [1, 20, 60]}
    over = {name: values.get(name, [0.0, 0.01, 0.1])}
    result = select(DecisionTreeClassifier(), X, y, over, cv=5)
    search = GridSearchCV(DecisionTreeClassifier(), over, cv=5).fit(X, y)
    errors = np.array([e.error for e in result.estimates])
    np.testing.assert_allclose(errors, 1 - search.cv_results_["mean_test_score"], rtol=1e-12)
    assert errors[result.index] == errors.min()
    assert list(result.params) == search.cv_results_["params"]
    assert result.model.fingerprint() == DecisionTreeClassifier(**result.best_params).fit(X, y).fingerprint()
    assert result.best.size == result.model.get_n_leaves()


@pytest.mark.parametrize(
    ("model", "scoring"),
    [
        (DecisionTreeClassifier(), "roc_auc"),
        (DecisionTreeClassifier(), lambda model, X, y: -abs(model.get_depth() - 2)),
        (make_pipeline(StandardScaler(), TheirTree(random_state=0)), "neg_log_loss"),
    ],
)
def test_the_greatest_score_is_the_choice_of_a_grid_search(model: Any, scoring: Any) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[::3], y[::3]
    over = {f"{'' if isinstance(model, DecisionTreeClassifier) else 'decisiontreeclassifier__'}max_depth": [1, 2, 4]}
    result = select(model, X, y, over, cv=4, rule=ByScore(scoring))
    search = GridSearchCV(model, over, cv=4, scoring=scoring).fit(X, y)
    scores = np.array([e.scores for e in result.estimates])
    np.testing.assert_allclose(scores.mean(axis=1), search.cv_results_["mean_test_score"], rtol=1e-12)
    assert result.best_params == search.best_params_
    assert [e.error for e in result.estimates] == [e.error for e in select(model, X, y, over, cv=4).estimates]
    np.testing.assert_array_equal(result.to_frame("pandas")["score"], scores.mean(axis=1))
    said = " ".join(str(result).split())
    assert f"rule ByScore(scoring={'<function' if callable(scoring) else repr(scoring)}" in said
    assert "rule='best'): mean score of the folds, and wrong labels score error s.e." in said


def test_one_standard_error_of_scores_by_hand() -> None:
    """Mean scores of .5, .7 and .8, the last with a standard error of .1 over folds."""
    over = [
        replace(made(0, size), scores=np.array(s)) for size, s in ((2, [0.5, 0.5]), (3, [0.7, 0.7]), (9, [0.7, 0.9]))
    ]
    assert chosen(over, "best") == 2
    assert chosen(over, "1se") == 1


def test_scores_that_cannot_be() -> None:
    X, y = load_iris(return_X_y=True)
    for scoring, kind, text in (
        ("acc", ValueError, "acc"),
        (["accuracy"], TypeError, r"scoring=\['accuracy'\] must be the name of a scorer"),
        (lambda *_: np.nan, ValueError, r"gives fold 0 nan with {'max_depth': 2}"),
        (lambda *_: -np.inf, ValueError, r"gives fold 0 -inf with {'max_depth': 2}"),
        (lambda *_: None, TypeError, "the scorer gave None .*for fold 0; give one that returns a number"),
    ):
        with pytest.raises(kind, match=text):
            select(DecisionTreeClassifier(), X, y, {"max_depth": [2]}, cv=3, rule=ByScore(scoring))


def test_parameters_of_rules_are_tried() -> None:
    """By the names that `GridSearchCV` knows; others are refused by ``set_params``."""
    X, y = load_breast_cancer(return_X_y=True)
    model, limits = DecisionTreeClassifier(pruning=ErrorBased(raising=False)), [0.01, 0.25]
    result = select(model, X, y, {"pruning__cf": limits}, cv=3)
    errors = [estimate_error(DecisionTreeClassifier(pruning=ErrorBased(cf, raising=False)), X, y, 3) for cf in limits]
    assert [e.error for e in result.estimates] == [e.error for e in errors]
    both = {"pruning": [ErrorBased(raising=False)], "pruning__cf": limits}
    again = select(DecisionTreeClassifier(), X, y, both, cv=3)
    assert [e.error for e in again.estimates] == [e.error for e in errors]
    with pytest.raises(ValueError, match="pruning__delta is no parameter of pruning: ErrorBased has "):
        select(model, X, y, {"pruning__delta": limits}, cv=3)
    with pytest.raises(ValueError, match="over names 'max_depth__cf', which DecisionTreeClassifier does not have"):
        select(model, X, y, {"max_depth__cf": limits}, cv=3)
    with pytest.raises(ValueError, match="ccp_alpha='path', which is that of one tree, and RandomForestClassifier has"):
        select(RandomForestClassifier(2), X, y, {"ccp_alpha": "path"}, cv=3)


def test_parameters_of_rules_within_a_pipeline() -> None:
    """As `GridSearchCV` takes them; the sequence is that of a tree alone."""
    X, y = load_iris(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), DecisionTreeClassifier(pruning=CostComplexity(0.1)))
    over = {"decisiontreeclassifier__pruning__alpha": [0.3, 0.01]}
    result, search = select(pipe, X, y, over, cv=3), GridSearchCV(pipe, over, cv=3).fit(X, y)
    errors = [e.error for e in result.estimates]
    np.testing.assert_allclose(errors, 1 - search.cv_results_["mean_test_score"], rtol=1e-12)
    assert errors[0] > errors[1]
    for name in ("decisiontreeclassifier__max_depth__alpha", "tree__pruning__alpha"):
        with pytest.raises(ValueError, match=f"over names '{name}', which Pipeline does not have"):
            select(pipe, X, y, {name: [0.1]}, cv=3)
    with pytest.raises(ValueError, match=r"decisiontreeclassifier__ccp_alpha='path', and .* that of a tree alone"):
        select(pipe, X, y, {"decisiontreeclassifier__ccp_alpha": "path"}, cv=3)


def test_a_score_with_a_rule_that_is_none() -> None:
    with pytest.raises(ValueError, match="rule='x' must be one of 'best', '1se'"):
        ByScore("f1", rule="x")


def test_the_cost_complexity_sequence() -> None:
    """Breiman et al. 3.4: every pruned tree of all rows is a candidate, at the geometric mean of its two alphas."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::2] + np.random.default_rng(0).normal(scale=0.3, size=(75, 4)), y[::2]
    tree = DecisionTreeClassifier()
    alphas = np.unique(tree.cost_complexity_pruning_path(X, y).ccp_alphas)
    result = select(tree, X, y, {"ccp_alpha": "path"}, cv=5, rule="1se")
    given = [params["ccp_alpha"] for params in result.params]
    np.testing.assert_allclose(given[:-1], np.sqrt(alphas[:-1] * alphas[1:]))
    for alpha, estimate in zip(given, result.estimates, strict=True):
        model = DecisionTreeClassifier(ccp_alpha=alpha)
        assert estimate.size == model.fit(X, y).get_n_leaves()
        np.testing.assert_allclose(1 - estimate.fold_errors, cross_val_score(model, X, y, cv=5), rtol=1e-12)
    sizes = [e.size for e in result.estimates]
    assert sizes == sorted(sizes, reverse=True) == sorted(set(sizes), reverse=True)  # each subtree once
    assert sizes[-1] == 1
    assert result.estimates[-1].error == pytest.approx(2 / 3)
    least = min(result.estimates, key=lambda e: e.error)
    within = [e.size for e in result.estimates if e.error <= least.error + least.standard_error]
    assert result.best.size == min(within)


def test_the_sequence_ends_at_the_root_in_every_fold() -> None:
    X, y = load_diabetes(return_X_y=True)
    y = y.copy()
    y[3] = 20_000.0  # most of the variance
    for model in (DecisionTreeRegressor(max_depth=4), TheirTree(max_depth=3, random_state=0)):
        table = (X, y) if isinstance(model, DecisionTreeRegressor) else load_iris(return_X_y=True)
        result = select(model, *table, {"ccp_alpha": "path"}, cv=KFold(3, shuffle=True, random_state=0))
        last = clone(model).set_params(ccp_alpha=result.params[-1]["ccp_alpha"])
        for train, _ in KFold(3, shuffle=True, random_state=0).split(X):
            rows = train[train < len(table[1])]
            assert clone(last).fit(table[0][rows], table[1][rows]).get_n_leaves() == 1


def test_rows_kept_for_the_end_take_no_part() -> None:
    """Their labels can be anything: only the test error changes."""
    X, y = load_breast_cancer(return_X_y=True)
    parts = Holdout(0.25, 0.25, random_state=4)
    over = {"max_leaf_nodes": [2, 3, 4, 8]}
    result = select(DecisionTreeClassifier(), X, y, over, cv=parts)
    kept = parts.kept_rows(X, y)
    other = y.copy()
    other[kept] = 1 - y[kept]
    again = select(DecisionTreeClassifier(), X, other, over, cv=parts)
    assert again.model.fingerprint() == result.model.fingerprint()
    assert again.test_error == pytest.approx(1 - result.test_error)
    rest = np.setdiff1d(np.arange(y.size), kept)
    model = DecisionTreeClassifier(**result.best_params).fit(X[rest], y[rest])
    assert model.fingerprint() == result.model.fingerprint()
    assert result.test_error == pytest.approx(1 - model.score(X[kept], y[kept]))
    ((train, held),) = parts.split(X, y)
    by_hand = DecisionTreeClassifier(max_leaf_nodes=4).fit(X[train], y[train]).score(X[held], y[held])
    assert result.estimates[2].error == pytest.approx(1 - by_hand)
    assert f"kept for the end: {result.test_error:.4f}" in str(result)
    assert select(DecisionTreeClassifier(), X, y, over, cv="train-validation-test").test_error is not None
    assert select(DecisionTreeClassifier(), X, y, over, cv="holdout").test_error is None


def test_pipelines_and_models_of_others() -> None:
    X, y = load_iris(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), KNeighborsClassifier())
    over = {"kneighborsclassifier__n_neighbors": [1, 5, 15]}
    result = select(pipe, X, y, over, cv=5)
    search = GridSearchCV(pipe, over, cv=5).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    np.testing.assert_allclose([e.error for e in result.estimates], 1 - scores, rtol=1e-12)
    assert pipe.get_params()["kneighborsclassifier__n_neighbors"] == 5  # as it was given
    steps = select(pipe, X, y, {"kneighborsclassifier": [KNeighborsClassifier(1), DecisionTreeClassifier()]}, cv=5)
    assert len(steps.to_frame("pandas")) == 2


def test_several_grids_and_their_frame() -> None:
    X, y = load_iris(return_X_y=True)
    over = [{"max_depth": [1, 2], "criterion": ["gini", "entropy"]}, {"max_leaf_nodes": [4, None]}]
    result = select(DecisionTreeClassifier(), X, y, over, cv=3)
    assert len(result.params) == 6
    for library in ("pandas", "polars", "pyarrow"):
        pytest.importorskip(library)
        frame: Any = result.to_frame(library)  # type: ignore[arg-type]
        names = list(getattr(frame, "column_names", None) or frame.columns)
        assert names[:3] == ["criterion", "max_depth", "max_leaf_nodes"]
        assert names[-1] == "chosen"
    frame = result.to_frame("pandas")
    assert frame["chosen"].sum() == 1
    assert frame["error"][frame["chosen"]].item() == min(frame["error"])


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ({}, "must name at least one parameter"),
        ([], "must name at least one parameter"),
        ("max_depth", "over='max_depth' must name at least one parameter"),
        (
            {"depth": [1]},
            "over names 'depth', which DecisionTreeClassifier does not have; its parameters are .*max_depth",
        ),
        ({"max_depth": []}, r"over gives max_depth=\[\]; give a list of at least one value"),
        ([1, 2], r"over=\[1, 2\] must name at least one parameter and its values"),
        ([{"max_depth": [1]}, None], "must name at least one parameter and its values"),
        ({"max_depth": 3}, "over gives max_depth=3; give a list"),
        ({"max_depth": "path"}, "over gives max_depth='path'; give a list"),
        ({"max_depth": [0]}, "max_depth"),
        ({"ccp_alpha": [0.0, -1.0]}, "ccp_alpha"),
    ],
    ids=str,
)
def test_what_names_nothing_to_try_is_refused(over: Any, message: str) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        select(DecisionTreeClassifier(), X, y, over, cv=3)


def test_candidates_of_many_parameters_are_told_in_full() -> None:
    """In several lines, where one would be too long."""
    X, y = load_iris(return_X_y=True)
    over = {"max_depth": [1, 2], "criterion": ["gini"], "min_impurity_decrease": [0.125], "min_samples_leaf": [1, 2]}
    text = str(select(DecisionTreeClassifier(), X, y, over, cv=2))
    assert max(map(len, text.split("\n"))) <= 80
    cells = [line[:40].strip() for line in text.split("\n")[2:]]
    assert " ".join(cells).count("min_impurity_decrease=0.125, min_samples_leaf=") == 4
    assert all(f"max_depth={depth}" in text and f"min_samples_leaf={depth}" in text for depth in (1, 2))
    near = select(DecisionTreeClassifier(), X, y, {"ccp_alpha": [0.01, 0.010000001, 0.02]}, cv=2)
    assert [line[2:].split()[0] for line in str(near).split("\n")[2:]] == [
        f"ccp_alpha={a}" for a in (0.01, 0.010000001, 0.02)
    ]


def test_other_errors() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="rule='2se' must be one of 'best', '1se'"):
        select(DecisionTreeClassifier(), X, y, {"max_depth": [1]}, rule="2se")
    with pytest.raises(ValueError, match="DummyClassifier has no size that is known here"):
        select(DummyClassifier(), X, y, {"strategy": ["prior", "most_frequent"]}, rule="1se")
    with pytest.raises(TypeError, match=r"cv=1\.5 must be"):
        select(DecisionTreeClassifier(), X, y, {"max_depth": [1]}, cv=1.5)


def test_leave_one_out_in_a_grid_search_and_here() -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[::5], y[::5]
    over = {"max_depth": [1, 2, 3]}
    search = GridSearchCV(DecisionTreeClassifier(), over, cv=LeaveOneOut()).fit(X, y)
    result = select(DecisionTreeClassifier(), X, y, over, cv="loo")
    np.testing.assert_allclose(
        [e.error for e in result.estimates], 1 - search.cv_results_["mean_test_score"], atol=1e-12
    )


def test_one_standard_error_in_a_search() -> None:
    """The mean over four folds is at best .9 with deviation .1, so a standard error of .1 / sqrt(3) = .058."""
    results: dict[str, Any] = {
        "param_max_depth": [1, 2, 4, None],
        "mean_test_score": [0.83, 0.85, 0.9, 0.86],
        "std_test_score": [0.1, 0.1, 0.1, 0.1],
        **{f"split{i}_test_score": [0] * 4 for i in range(4)},
    }
    assert OneStandardError("max_depth")(results) == 1
    assert OneStandardError("max_depth", reverse=True)(results) == 3
    assert OneStandardError("max_depth")(results | {"mean_test_score": [0.2, 0.8, 0.9, 0.8]}) == 2
    with pytest.raises(ValueError, match="parameter='depth' is not searched over; max_depth are"):
        OneStandardError("depth")(results)
    named = {name.replace("_score", "_f1"): value for name, value in results.items()}
    assert OneStandardError("max_depth", scoring="f1")(named) == 1
    X, y = load_iris(return_X_y=True)
    alphas = [0.0, 0.01, 0.02, 0.3, 1.0]
    rule = OneStandardError("ccp_alpha", reverse=True)
    grids = [{"ccp_alpha": alphas}, {"max_depth": [1]}]
    search = GridSearchCV(DecisionTreeClassifier(), grids, cv=5, refit=rule).fit(X, y)
    scores = np.array([cross_val_score(DecisionTreeClassifier(ccp_alpha=alpha), X, y, cv=5) for alpha in alphas])
    best = scores[scores.mean(axis=1).argmax()]
    within = scores.mean(axis=1) >= best.mean() - best.std(ddof=1) / np.sqrt(5)
    assert search.best_params_ == {"ccp_alpha": max(np.array(alphas)[within])}


def test_text_of_80_columns() -> None:
    X, y = load_iris(return_X_y=True)
    over = {"min_samples_leaf": range(1, 23), "criterion": ["gini", "entropy"], "categorical_split": ["multiway"]}
    result = select(DecisionTreeClassifier(), X, y, over, cv=3)
    lines = str(result).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("* ") for line in lines) == 1
    assert "more candidates: to_frame()" in lines[-1]
    short = str(select(DecisionTreeClassifier(), X, y, {"max_depth": [1, 2]}, cv=3)).splitlines()
    assert short[1].split() == ["error", "s.e.", "pooled", "training", "size"]
    assert len(short) == 4
    first = estimate_error(DecisionTreeClassifier(max_depth=1), X, y, 3)
    assert short[2].split()[0] == "max_depth=1"
    assert short[2].split()[1] == f"{first.error:.4f}"


def test_equal_errors_of_folds_are_equal() -> None:
    """Means of 0.15, 0.2, 0.3 and of 0.15, 0.25, 0.25 differ in their last bit as sums of floats."""
    fold, rows = np.repeat(np.arange(3), 20), np.arange(60)
    errors = []
    for wrong in ((3, 4, 6), (3, 5, 5)):
        loss = np.concatenate([(np.arange(20) < n).astype(float) for n in wrong])
        errors.append(ErrorEstimate("Model", KFold(), True, fold, rows, loss, 0.0, 1, 0.0, 0.0).error)
    assert np.mean([0.15, 0.2, 0.3]) != np.mean([0.15, 0.25, 0.25])
    assert errors[0] == errors[1] == 13 / 60


def test_of_equal_errors_the_smallest_model_is_chosen() -> None:
    rng = np.random.default_rng(39)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + rng.normal(size=60) * 0.5 > 0).astype(int)
    found = select(DecisionTreeClassifier(), X, y, over={"max_depth": [1, 2, 3, 4, 5]}, cv=10)
    least = min(one.error for one in found.estimates)
    sizes = [one.size for one in found.estimates if one.error == least]
    assert len(sizes) > 1
    assert found.estimates[found.index].size == min(sizes)


def test_a_null_leaf_is_an_error_in_the_kept_part_too() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 5, (80, 3)), rng.integers(0, 2, 80)
    found = select(ID3Classifier(empty="null"), X, y, over={"max_depth": [1, 3]}, cv="train-validation-test")
    assert found.test_error is not None
    assert 0 < found.test_error <= 1


@pytest.mark.parametrize("over", ["path", [0.02, 0.0, 0.005]], ids=str)
def test_one_growth_gives_what_a_fit_for_every_alpha_gives(over: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow way: every candidate is fitted on all rows by itself."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[::3], y[::3]
    fits = 0
    original = DecisionTreeClassifier.fit

    def counted(self: Any, *args: Any) -> Any:
        nonlocal fits
        fits += 1
        return original(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(DecisionTreeClassifier, "fit", counted)
        result = select(DecisionTreeClassifier(), X, y, {"ccp_alpha": over}, cv=4, rule="1se")
    assert fits == 2 + (over == "path")
    for params, estimate in zip(result.params, result.estimates, strict=True):
        model = DecisionTreeClassifier(**params).fit(X, y)
        slow = estimate_error(DecisionTreeClassifier(**params), X, y, cv=4)
        assert estimate.size == slow.size == model.get_n_leaves()
        assert estimate.train_error == slow.train_error == pytest.approx(1 - model.score(X, y))
        np.testing.assert_array_equal(estimate.loss, slow.loss)
