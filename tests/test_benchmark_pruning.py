"""`python -m benchmarks.pruning` at small size: its figures follow from the folds, and the documentation shows them."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from benchmarks import pruning, pruning_report
from benchmarks.data import CATEGORIES, load
from benchmarks.pruning_report import Figures, Results
from gputree import DecisionTreeClassifier
from gputree.pruning import ErrorBased, prune


def test_a_small_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = pruning.arguments(["--tables", "wine,penguins", "--folds", "2", "--save"])
    figures = pruning.run(options, tmp_path)
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 120
    assert pruning_report.newest(tmp_path) == figures
    found = Results(figures)
    assert found.tables == ["wine", "penguins"]
    X, y = load("wine")
    errors, pruned_errors, leaves = [], [], []
    for own, held in StratifiedKFold(2, shuffle=True, random_state=0).split(X, y):
        grown = DecisionTreeClassifier().fit(X[own], y[own])
        smaller = prune(grown, ErrorBased(), X[own], y[own])
        errors.append(100 * float(np.mean(grown.predict(X[held]) != y[held])))
        pruned_errors.append(100 * float(np.mean(smaller.predict(X[held]) != y[held])))
        leaves.append(smaller.get_n_leaves())
    one, before = found.found["wine", "grown", "ErrorBased()"], found.found["wine", "grown", "grown"]
    assert found.error(before) == f"{statistics.mean(errors):.1f}"
    assert found.spread(before) == f"{statistics.stdev(errors) / 2**0.5:.1f}"
    changes = [b - a for a, b in zip(errors, pruned_errors, strict=True)]
    assert found.spread(one) == f"{statistics.stdev(changes) / 2**0.5:.1f}"
    assert one.leaves == tuple(leaves)
    row = next(text for text in printed.splitlines() if text.startswith("  ErrorBased() "))
    assert row.split()[1] == f"{statistics.mean(pruned_errors):.1f}"


def test_no_subtree_is_better_than_the_best() -> None:
    """On the rows held out, of rules that cut the grown tree."""
    figures = pruning.measure("diabetes", pruning.arguments(["--folds", "2"]))
    wrong = {one.method: np.array(one.wrong) for one in figures if one.before == "grown"}
    on_path, of_all = (wrong[name] for name in pruning_report.BEST)
    cut = ("grown", "Collapse()", "ErrorBased(raising=False)", "ChiSquare()", "CostComplexity, by folds, 1se")
    assert all((of_all <= wrong[name]).all() for name in (*cut, pruning_report.BEST[0]))
    assert all((on_path <= wrong[name]).all() for name in ("grown", "CostComplexity, by folds, 1se"))


def test_figures_by_hand() -> None:
    """Four folds: the mean, the spread of the differences, ratios, and a tree that errs nowhere."""
    held = (10, 10, 10, 10)
    grown = Figures("vote", "grown", "grown", held, (2, 2, 4, 4), (8, 12, 10, 10))
    half = Figures("vote", "grown", "Collapse()", held, (1, 2, 2, 1), (5, 5, 5, 5))
    best = Figures("vote", "grown", pruning_report.BEST[1], held, (1, 1, 1, 3), (3, 3, 3, 3))
    found = Results([grown, half, best])
    assert (found.error(half), found.leaves(half), found.leaves(grown)) == ("15.0", "5.0", "10")
    assert found.spread(half) == f"{statistics.stdev([10, 0, 20, 30]) / 2:.1f}" == "6.5"
    assert found.ratio(best) == "0.50"
    assert [text.split() for text in found.grid(found.error).splitlines()] == [
        *(["vote"], ["grown", "30.0"], ["Collapse()", "15.0"])
    ]
    assert found.grid(found.ratio, best=True).splitlines()[1].split() == ["best", "of", "all", "subtrees", "0.50"]
    assert found.means().splitlines()[2].split() == ["Collapse()", "15.0", "50", "%"]
    right = Figures("vote", "grown", "grown", held, (0, 0, 0, 0), (1, 1, 1, 1))
    assert Results([right]).ratio(right) == "-"


@pytest.mark.parametrize("name", [name for name in pruning.TABLES if name != "flights"])
def test_tables_are_those_of_their_sources(name: str) -> None:
    X, y = pruning.table_of(name, 3000)
    rows, columns, classes, missing = {
        "digits": (1797, 64, 10, 0),
        "breast_cancer": (569, 30, 2, 0),
        "wine": (178, 13, 3, 0),
        "penguins": (344, 7, 3, 19),
        "diabetes": (442, 10, 2, 0),
        "vote": (435, 16, 2, 392),
        "breast_cancer_ljubljana": (286, 9, 2, 9),
    }.get(name, (1000, 10, 2, 0))
    assert (X.shape, len(np.unique(y)), int(np.isnan(X).sum())) == ((rows, columns), classes, missing)
    assert all(np.nanmax(X[:, column]) < 20 for column in CATEGORIES.get(name, ()))
    if name in pruning.NOISE:
        one, two, three, four, five, six, seven = X[:, :7].T == 1
        truth = (one & two & three) | (~one & four & five) | (six & seven)
        assert abs(np.mean(truth != y) - pruning.NOISE[name]) < 0.03


def test_flights_are_there_if_they_are_installed() -> None:
    try:
        X, y = pruning.table_of("flights", 300)
    except ImportError as error:
        pytest.skip(f"expected: {error}")
    assert X.shape == (300, 24)
    assert 0 < y.mean() < 0.5


def test_the_documentation_shows_the_saved_results() -> None:
    figures = pruning_report.newest()
    assert Results(figures).tables == list(pruning.TABLES)
    for file, marks, expected in pruning_report.places(figures):
        text = file.read_text(encoding="utf-8")
        assert text.split(marks[0])[1].split(marks[1])[0] == expected
        assert max(map(len, expected.splitlines())) <= 120


@pytest.mark.parametrize(
    ("given", "message"), [("--folds 1", "a spread needs 2"), ("--tables iris", "no table 'iris'; choose from digits")]
)
def test_what_cannot_be_measured(given: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        pruning.arguments(given.split())
    assert message in capsys.readouterr().err
