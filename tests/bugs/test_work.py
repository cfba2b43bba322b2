"""Work and memory follow rows and live nodes; processes, threads and imports stay clean. No test here reads a clock."""

from __future__ import annotations

import gc
import multiprocessing
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from gputree import ExtraTreeRegressor
from gputree.backends.oracle import Oracle
from gputree.core.forest import Test
from tests.bugs.shared import EIGHT, STEP, TASKS, WAYS, Classifier, Regressor

KILOBYTE = 1024
MEGABYTE = 1024 * KILOBYTE


def peak(call: Callable[[], Any]) -> int:
    """Bytes that a call needs at one time, after a call that fills what is kept for ever."""
    call()
    tracemalloc.start()
    call()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def chain(n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """One row is split off at every level: n leaves, depth n - 1."""
    return np.arange(float(n))[:, None], np.arange(n) % 2


def searched_rows(model: Any) -> int:
    """Rows of the nodes that may be split: those with more than one value of y, inner ones here."""
    forest = model.forest_
    rows = model.layout_.count(forest.stats.T)
    return int(rows[forest.kind != Test.LEAF].sum())


# -- performance cliffs


@pytest.mark.parametrize("criterion", ["absolute_error", "friedman_mse"])
def test_Q01_the_criterion_that_was_quadratic_is_refused_with_the_alternatives(criterion: str) -> None:
    """No median: the message says what there is."""
    with pytest.raises(ValueError, match=rf"criterion='{criterion}' must be one of 'squared_error', 'poisson'"):
        Regressor(criterion=criterion).fit(EIGHT, STEP)


@pytest.mark.parametrize("criterion", ["squared_error", "poisson", "gini", "entropy", "chi2"])
def test_Q01_work_grows_with_rows_not_their_square(criterion: str) -> None:
    """A hundred times the rows: one more level of the same depth visits a hundred times the rows and cells."""
    work = []
    for n in (300, 30_000):
        X = np.random.default_rng(0).normal(size=(n, 2))
        cls = Regressor if criterion in ("squared_error", "poisson") else Classifier
        info = cls(criterion=criterion, max_depth=1).fit(X, np.arange(n) % 3).fit_info_
        work.append((info.rows_visited, info.cells_scored))
    assert work == [(300, 600), (30_000, 60_000)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", TASKS)
def test_Q02_small_tables_start_no_thread_and_visit_every_row_once_a_level(cls: Any, way: str) -> None:
    """Eight rows: two levels of them at most, whichever way, and the same threads before and after."""
    threads = threading.active_count()
    model = cls(**WAYS[way]).fit(EIGHT, STEP)
    assert threading.active_count() == threads
    assert model.fit_info_.rows_visited == searched_rows(model)
    assert model.fit_info_.cells_scored <= model.fit_info_.rows_visited


@pytest.mark.parametrize("leaves", [20, 20_000])
def test_Q04_one_row_costs_its_path_not_the_tree(leaves: int) -> None:
    """A prediction of one row needs a few kilobytes, starts no thread, and does not grow with the nodes."""
    X = np.arange(float(leaves))[:, None]
    model = Regressor().fit(X, np.random.default_rng(0).normal(size=leaves))
    threads = threading.active_count()
    assert peak(lambda: model.predict([[3.0]])) < 32 * KILOBYTE
    assert threading.active_count() == threads


@pytest.mark.parametrize("cls", TASKS)
def test_Q05_a_chain_costs_its_rows_not_two_to_the_depth(cls: Any) -> None:
    """Depth 299: nodes, visited rows and tables are those of the live nodes, by hand; no limit of depth."""
    X, y = chain(300)
    model = cls().fit(X, y)
    assert model.get_depth() == 299
    assert model.forest_.n_nodes == 2 * 300 - 1
    assert model.fit_info_.rows_visited == sum(range(2, 301))
    assert model.fit_info_.cells_scored == sum(range(2, 301))
    assert model.fit_info_.peak_table_bytes <= 300 * 64


def test_Q05_memory_of_a_fit_follows_the_table_not_the_depth() -> None:
    """100,000 x 8: a few bytes a cell; a tree of depth 14 of fewer rows needs little more than a stump of them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100_000, 8)).astype(np.float32), rng.integers(0, 2, 100_000)
    assert peak(lambda: Classifier(max_depth=2).fit(X, y)) < 16 * X.size
    few, labels = X[:20_000], y[:20_000]
    stump, deep = (peak(lambda d=d: Classifier(max_depth=d, max_bins=64).fit(few, labels)) for d in (1, 14))
    assert deep < 2 * stump + 4 * MEGABYTE


def test_Q05_many_classes_do_not_square() -> None:
    """120 classes of four rows: memory of the nodes times the classes, a few times over, whatever the depth."""
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(120), 4))
    X = y[:, None].astype(float)
    assert peak(lambda: Classifier().fit(X, y)) < 8 * 239 * 120 * 4 + 2 * MEGABYTE


def test_Q05_a_sparse_table_is_never_made_dense() -> None:
    """5,000 columns of 400 rows, 1 cell in 100 set: the dense table would take 16 MB."""
    X = sp.random_array((400, 5000), density=0.01, rng=np.random.default_rng(0), format="csc")
    model = Classifier(max_depth=1)
    assert peak(lambda: model.fit(X, np.arange(400) % 2)) < 12 * MEGABYTE


# -- memory over time, failures, processes


def left_by(once: Callable[[], Any], times: int) -> int:
    """Bytes that are still there after some calls, without what a first call leaves."""
    once()
    gc.collect()
    tracemalloc.start()
    for _ in range(times):
        once()
    gc.collect()
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return left


@pytest.mark.parametrize("cls", [Classifier, ExtraTreeRegressor])
def test_G04_a_loop_of_fits_is_flat(cls: Any) -> None:
    """Twenty fits and predictions of 2,000 rows, all that a model offers included, leave less than two tables."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 2)), rng.integers(0, 2, 2000)

    def once() -> None:
        model = cls(max_depth=3).fit(X, y)
        model.predict(X)
        _ = model.tree_, model.feature_importances_, model.decision_path(X)

    assert left_by(once, 20) < 2 * X.nbytes


def test_G04_a_loop_of_fits_of_frames_keeps_no_frame() -> None:
    """Twenty copies of a frame of 80 kilobytes: what pandas remembers of them is far less than one."""
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame({"x": rng.normal(size=5000), "c": rng.choice([*"uv"], 5000)}), rng.integers(0, 2, 5000)

    def once() -> None:
        frame = X.copy(deep=True)
        Classifier(max_depth=3).fit(frame, y).predict(frame)

    assert left_by(once, 20) < 60 * KILOBYTE


@pytest.mark.parametrize("method", ["search", "children", "partition", "encode", "edges", "totals"])
@pytest.mark.parametrize("cls", TASKS)
def test_G08_after_a_failure_the_next_fit_works(cls: Any, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that runs out at any step is a MemoryError, leaves no half-grown model, and holds no memory."""
    X = np.random.default_rng(0).normal(size=(10_000, 4))
    y = np.arange(10_000) % 3
    expected = cls(max_depth=3).fit(X, y).fingerprint()
    model = cls(max_depth=3).fit(X, y)

    def fail(*args: Any) -> Any:
        raise MemoryError("out of memory")

    tracemalloc.start()
    with monkeypatch.context() as patch:
        patch.setattr(Oracle, method, fail)
        with pytest.raises(MemoryError):
            model.fit(X, y)
    assert not hasattr(model, "forest_")
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert left < 200 * KILOBYTE
    assert model.fit(X, y).fingerprint() == expected


QUIET = """
import os, sys
before = set(sys.modules)
import gputree
heavy = {"cupy", "numba", "pandas", "polars", "pyarrow", "matplotlib", "dask", "sklearn", "torch"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
model = gputree.DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1])
assert not {"cupy", "numba", "matplotlib", "dask"} & set(sys.modules), sorted(sys.modules)
assert model.predict([[1.0]]).tolist() == [1]
try:
    gputree.DecisionTreeClassifier(device="cuda").fit([[0.0], [1.0]], [0, 1])
except RuntimeError as error:
    assert "use device='cpu' or 'auto'" in str(error)
else:
    raise AssertionError("there is no card here")
"""


def test_G01_import_is_quiet_without_a_card() -> None:
    """Not a word on either stream, no optional library; a card that is asked for and not there is a clear error."""
    clean = {"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-W", "error", "-c", QUIET], env=clean, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def in_a_child(model: Any, X: Any, y: Any, answers: Any) -> None:
    answers.put((model.predict(X).tolist(), type(model)().fit(X, y).fingerprint()))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # newer Pythons warn of any fork beside threads
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="expected: no fork on this system")
def test_G02_a_forked_child_predicts_and_fits() -> None:
    """After a fit in the parent: the same predictions, the same tree."""
    model = Classifier().fit(EIGHT, STEP)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=in_a_child, args=(model, EIGHT, STEP, answers))
    child.start()
    assert answers.get(timeout=60) == (STEP.tolist(), model.fingerprint())
    child.join(60)
    assert child.exitcode == 0
