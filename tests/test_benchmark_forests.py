"""`python -m benchmarks.forests` at tiny size: the figures that it prints and writes follow from those of the seeds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import sklearn.ensemble

from benchmarks import forests
from benchmarks.data import load


def test_a_small_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = forests.arguments(["--tables", "breast_cancer,diabetes", "--trees", "4", "--seeds", "2", "--save"])
    results = forests.run(options, tmp_path)
    assert [(r.table, r.forest) for r in results] == [
        ("breast_cancer", "RandomForestClassifier"),
        ("breast_cancer", "ExtraTreesClassifier"),
        ("diabetes", "RandomForestRegressor"),
        ("diabetes", "ExtraTreesRegressor"),
    ]
    X, y = load("diabetes")
    order = np.random.default_rng(1).permutation(442)
    peer = sklearn.ensemble.RandomForestRegressor(4, random_state=1).fit(X[order[:294]], y[order[:294]])
    assert results[2].scores[1][1] == peer.score(X[order[294:]], y[order[294:]])
    printed = capsys.readouterr().out
    (file,) = tmp_path.glob("forests-*.json")
    for one, record in zip(results, json.loads(file.read_text())["results"], strict=True):
        (a, b), (c, d) = one.scores
        assert record["difference"] == pytest.approx((a - b + c - d) / 2)
        assert record["standard_error"] == pytest.approx(abs((a - b) - (c - d)) / 2)
        assert f"{one.difference:+.4f}" in printed
        assert record["scores"] == [[a, b], [c, d]]
        assert len(record["seconds"]) == 2
    assert str(file) in printed


def test_flights_are_there_if_they_are_installed() -> None:
    pytest.importorskip("pandas")
    try:
        load("flights", 30)
    except ImportError as error:
        pytest.skip(f"expected: {error}")
    options = forests.arguments(["--tables", "flights", "--rows", "300", "--trees", "2", "--seeds", "2"])
    (first, _) = forests.run(options)
    assert (first.rows, first.forest) == (300, "RandomForestClassifier")


@pytest.mark.parametrize(
    ("given", "message"), [("--seeds 1", "a standard error needs 2"), ("--tables iris", "no table 'iris'; choose from")]
)
def test_what_cannot_be_measured(given: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        forests.arguments(given.split())
    assert message in capsys.readouterr().err
