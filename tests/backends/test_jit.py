"""The compiled backend: its trees are those of NumPy, its cache is found again, and it is chosen where it pays."""

from __future__ import annotations

import gc
import inspect
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gputree
import gputree.backends
import gputree.learners.grower
from gputree.backends import COLD_CELLS, JIT_CELLS, choose, jit
from gputree.backends.cpu import formulas, host, module, numbers
from gputree.backends.jit import Jit
from gputree.backends.oracle import Oracle
from gputree.backends.protocol import Backend, CodeSpec, heard, tell
from gputree.core import expr, keys, scores
from gputree.core.criteria import CRITERIA, Criterion, Fold, Gini
from gputree.core.expr import Scalar
from gputree.core.forest import Forest
from gputree.core.schema import Feature, Schema
from gputree.core.splits import MULTIWAY, THRESHOLD, Limits, Search, Stop
from gputree.core.target import class_target
from gputree.core.texts import python_text
from gputree.engine.grow import grow
from gputree.engine.recipe import Order, Recipe

numba = pytest.importorskip("numba")

ROOT = Path(__file__).resolve().parents[2]
CPU = ROOT / "gputree" / "backends" / "cpu"
CORE = ROOT / "gputree" / "core"


# ---- learners ----


@dataclass(frozen=True)
class Job:
    """A table and a learner: numbers are learnt by a regressor, whole numbers by a classifier."""

    X: NDArray[Any]
    y: NDArray[Any]
    learner: str = "DecisionTree"
    weight: NDArray[np.float64] | None = None
    parameters: dict[str, Any] = field(default_factory=dict)

    def fit(self, device: str) -> Any:
        kind = "Regressor" if self.y.dtype == np.float64 else "Classifier"
        model = getattr(gputree, self.learner + kind)(device=device, random_state=3, **self.parameters)
        return model.fit(self.X, self.y, self.weight)


def columns(n: int = 300, missing: float = 0.1) -> NDArray[np.float64]:
    """Three columns of numbers with ties, then three and nine categories; codes of one byte."""
    rng = np.random.default_rng(n)
    numbers = rng.normal(size=(n, 3)).round(1)
    X = np.column_stack([np.floor(numbers[:, 0] * 2), numbers[:, 1:], rng.integers(0, [3, 9], (n, 2))])
    X[rng.random(X.shape) < missing] = np.nan
    return X


def labels(n: int = 300, classes: int = 3, outputs: int = 1) -> NDArray[np.int64]:
    y = np.random.default_rng(1).integers(0, classes, (n, outputs))
    return y[:, 0] if outputs == 1 else y


def numbers_of(n: int = 300, outputs: int = 1) -> NDArray[np.float64]:
    y = np.random.default_rng(2).normal(1e3, 5.0, (n, outputs))
    return y[:, 0] if outputs == 1 else y


def counts(n: int = 300) -> NDArray[np.float64]:
    return np.random.default_rng(3).poisson(2.0, n).astype(np.float64)


def copies(n: int = 300) -> NDArray[np.float64]:
    return np.random.default_rng(4).integers(0, 4, n).astype(np.float64)


def shares(n: int = 300) -> NDArray[np.float64]:
    return np.random.default_rng(5).random(n)


def job(y: NDArray[Any], learner: str = "DecisionTree", weight: Any = None, **parameters: Any) -> Job:
    """A learner on the usual table."""
    return Job(columns(len(y)), y, learner, weight, parameters)


def branches(y: NDArray[Any], learner: str = "DecisionTree", weight: Any = None, **parameters: Any) -> Job:
    """A learner on the usual table whose last columns are categories, a branch for each."""
    return job(y, learner, weight, **{"categorical_features": [3, 4], "categorical_split": "multiway"} | parameters)


def subsets(y: NDArray[Any], learner: str = "DecisionTree", weight: Any = None, **parameters: Any) -> Job:
    """The same in two branches."""
    return branches(y, learner, weight, categorical_split="binary", **parameters)


def two_bytes(y: NDArray[Any], **parameters: Any) -> Job:
    """Columns of more values than a byte has."""
    return Job(np.random.default_rng(6).normal(size=(len(y), 3)), y, parameters=parameters)


def listed(learner: str = "DecisionTree", weight: Any = None, **parameters: Any) -> Job:
    """Thirty classes, two columns of some 300 values with ties, one of few values and one of nine categories."""
    rng, n = np.random.default_rng(8), 700
    X = np.column_stack([rng.normal(size=(n, 2)).round(2), rng.integers(0, [20, 9], (n, 2))])
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(3 * X[:, 0] + X[:, 2]).astype(int) + rng.integers(0, 3, n)) % 30
    return Job(X, y, learner, weight, {"categorical_features": [3], "categorical_split": "multiway"} | parameters)


JOBS: dict[str, Callable[[], Job]] = {
    "classes": lambda: job(labels()),
    "two classes": lambda: job(labels(classes=2)),
    "numbers": lambda: job(numbers_of()),
    "nothing missing": lambda: Job(columns(missing=0), labels()),
    "all missing": lambda: Job(np.full((80, 2), np.nan), labels(80)),
    "one column": lambda: Job(columns()[:, :1], labels()),
    "two rows": lambda: Job(columns(2), labels(2)),
    "float32": lambda: Job(columns().astype(np.float32), labels()),
    "extreme values": lambda: Job(
        np.random.default_rng(7).choice([-np.inf, -1e300, -5e-324, -0.0, 0.0, 5e-324, 1e300, np.inf, np.nan], (300, 3)),
        labels(),
    ),
    "branches": lambda: branches(labels()),
    "branches of numbers": lambda: branches(numbers_of()),
    "subsets": lambda: subsets(labels(classes=2)),
    "subsets of many classes": lambda: subsets(labels(classes=5), "ExtraTree"),
    "subsets of numbers": lambda: subsets(numbers_of()),
    "copies": lambda: subsets(labels(classes=2), weight=copies()),
    "shares": lambda: branches(labels(), weight=shares()),
    "weighted numbers": lambda: subsets(numbers_of(), weight=shares()),
    "two outputs": lambda: branches(labels(outputs=2)),
    "two numbers": lambda: branches(numbers_of(outputs=2)),
    "monotone": lambda: job(labels(classes=2), monotonic_cst=[1, -1, 0, 0, 0]),
    "monotone numbers": lambda: job(numbers_of(), weight=copies(), monotonic_cst=[1, -1, 0, 0, 0]),
    "poisson": lambda: subsets(counts(), criterion="poisson", weight=copies()),
    "entropy": lambda: branches(labels(), criterion="entropy"),
    "best first": lambda: subsets(labels(classes=2), max_leaf_nodes=25),
    "best first of numbers": lambda: branches(numbers_of(), max_leaf_nodes=25),
    "least rows": lambda: branches(labels(), min_samples_leaf=7, min_samples_split=20),
    "least rows and copies": lambda: subsets(numbers_of(), weight=copies(), min_samples_leaf=7),
    "least weight": lambda: subsets(labels(classes=2), weight=shares(), min_weight_fraction_leaf=0.03),
    "least gain": lambda: subsets(numbers_of(), min_impurity_decrease=0.05),
    "few levels": lambda: job(labels(), max_depth=3),
    "pruned": lambda: job(numbers_of(), ccp_alpha=0.1),
    "few codes": lambda: job(labels(), max_bins=5),
    "some columns": lambda: job(labels(), max_features=2),
    "two bytes": lambda: two_bytes(labels(400)),
    "two bytes, best first": lambda: two_bytes(labels(400), max_leaf_nodes=20),
    "listed": lambda: listed(),
    "listed, nothing missing": lambda: Job(np.nan_to_num(listed().X), listed().y),
    "listed, best first": lambda: listed(criterion="entropy", max_leaf_nodes=40),
    "listed, copies and least rows": lambda: listed(weight=copies(700), min_samples_leaf=4),
    "listed, shares and least weight": lambda: listed(weight=shares(700), min_weight_fraction_leaf=0.01),
    "listed, random cuts": lambda: listed("ExtraTree", max_features=2),
    "listed, in bags": lambda: listed("RandomForest", n_estimators=3, max_features=2, min_samples_leaf=2),
    "random cuts": lambda: subsets(labels(), "ExtraTree"),
    "random cuts of numbers": lambda: subsets(numbers_of(), "ExtraTree", weight=copies()),
    "random cuts, few codes": lambda: job(labels(), "ExtraTree", max_bins=5),
    "random cuts, limits": lambda: job(labels(), "ExtraTree", weight=copies(), min_samples_leaf=3),
    "random cuts, least weight": lambda: job(labels(), "ExtraTree", weight=shares(), min_weight_fraction_leaf=0.01),
    "random cuts, monotone": lambda: job(numbers_of(), "ExtraTree", monotonic_cst=[1, -1, 0, 0, 0]),
    "random cuts, Poisson": lambda: job(counts(), "ExtraTree", criterion="poisson"),
    "forest": lambda: subsets(labels(classes=2), "RandomForest", n_estimators=4),
    "forest of numbers": lambda: branches(numbers_of(), "RandomForest", n_estimators=4, max_features=2),
    "forest of copies": lambda: job(labels(), "RandomForest", weight=copies(), n_estimators=4, min_samples_leaf=3),
    "forest, best first": lambda: job(labels(), "RandomForest", n_estimators=3, max_leaf_nodes=15),
    "forest that repeats": lambda: job(labels(), "RandomForest", n_estimators=3, feature_draws="repeats"),
    "random forest of cuts": lambda: subsets(labels(), "ExtraTrees", n_estimators=4),
    "random forest of numbers": lambda: job(numbers_of(outputs=2), "ExtraTrees", n_estimators=4),
}


@dataclass(frozen=True)
class Parts:
    """Sizes of the pieces of work, and threads."""

    part_rows: int
    chunk: int
    features: int
    rows: int
    threads: int

    def put(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(jit, "PART_ROWS", self.part_rows)
        monkeypatch.setattr(jit, "DRAWN_ROWS", self.part_rows)
        monkeypatch.setattr(jit, "CHUNK", self.chunk)
        monkeypatch.setattr(jit, "FEATURES", self.features)
        monkeypatch.setattr(jit, "ROWS", self.rows)
        monkeypatch.setattr(jit, "threads", lambda n_jobs=None: self.threads)


PARTS = {
    "small parts": Parts(64, 32, 1, 50, 1),
    "small parts, two threads": Parts(64, 32, 2, 50, 2),
    "large parts": Parts(1 << 13, 1 << 11, 16, 1 << 14, 1),
    "large parts, two threads": Parts(1 << 13, 1 << 11, 16, 1 << 14, 2),
}


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("name", JOBS)
def test_learners_equal_numpys(monkeypatch: pytest.MonkeyPatch, name: str, parts: str) -> None:
    PARTS[parts].put(monkeypatch)
    task = JOBS[name]()
    ours, theirs = task.fit("jit"), task.fit("numpy")
    assert (ours.fit_info_.backend, theirs.fit_info_.backend) == ("jit", "numpy")
    assert ours.fingerprint() == theirs.fingerprint()
    strange = np.vstack([task.X, task.X[:50] + 0.5, task.X[:9] + 400, np.full((2, task.X.shape[1]), np.nan)])
    np.testing.assert_array_equal(ours.apply(strange), theirs.apply(strange))
    np.testing.assert_array_equal(ours.predict(strange), theirs.predict(strange))


def calls_of(monkeypatch: pytest.MonkeyPatch, *names: str) -> list[str]:
    """A list to which the methods of the backend add their names, each when it is called."""
    called: list[str] = []
    for name in names:
        inner = getattr(Jit, name)

        def outer(*given: Any, inner: Callable[..., Any] = inner, name: str = name, **named: Any) -> Any:
            called.append(name)
            return inner(*given, **named)

        monkeypatch.setattr(Jit, name, outer)
    return called


@pytest.mark.parametrize(
    ("name", "parts", "expected"),
    [
        ("classes", "small parts", {"search", "finish"}),
        ("classes", "large parts", {"finish"}),
        ("best first", "large parts", {"search"}),
        ("forest that repeats", "large parts", {"search"}),
        ("two bytes", "small parts", {"search", "finish"}),
    ],
)
def test_large_nodes_are_searched_and_small_ones_finished(
    monkeypatch: pytest.MonkeyPatch, name: str, parts: str, expected: set[str]
) -> None:
    PARTS[parts].put(monkeypatch)
    called = calls_of(monkeypatch, "search", "finish")
    JOBS[name]().fit("jit")
    assert set(called) == expected


@pytest.mark.parametrize(
    "name", ["two bytes", "few codes", "two outputs", *(n for n in JOBS if n.startswith("listed"))]
)
def test_rows_are_listed_where_classes_are_many(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """In the columns of many values alone."""
    found: set[tuple[int, ...]] = set()
    inner = host.linked_columns

    def outer(*given: Any) -> NDArray[np.uint8]:
        columns = inner(*given)
        found.add(tuple(columns.tolist()))
        return columns

    monkeypatch.setattr(host, "linked_columns", outer)
    task = JOBS[name]()
    task.fit("jit")
    assert found == {(1, 1, 0, 0) if name.startswith("listed") else (0,) * task.X.shape[1]}


@pytest.mark.parametrize("n_jobs", [1, 2, None])
def test_threads_do_not_show(n_jobs: int | None) -> None:
    task = job(labels(), "RandomForest", n_estimators=4, n_jobs=n_jobs)
    assert task.fit("jit").fingerprint() == task.fit("numpy").fingerprint()


def read_only(task: Job) -> Job:
    """The same with arrays that may not be written to, as joblib gives them to its workers."""
    arrays = [task.X.copy(), task.y.copy(), copies(len(task.y))]
    for array in arrays:
        array.flags.writeable = False
    return Job(arrays[0], arrays[1], task.learner, arrays[2], task.parameters)


def signatures() -> dict[tuple[str, str], set[Any]]:
    """Kinds of arguments that the functions of all modules have met here, compiled or read from disk."""
    modules = [m for name, m in sys.modules.items() if name.startswith("gputree_kernels_")]
    entries = [(m.__name__, name, v) for m in modules for name, v in vars(m).items() if hasattr(v, "dispatcher")]
    return {(module, name): set(entry.dispatcher.signatures) for module, name, entry in entries}


def test_a_criterion_is_compiled_once_for_all_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba compiles anew for every kind of array: other layouts, weights, outputs or bags must not make another."""
    PARTS["small parts"].put(monkeypatch)
    names = ("branches", "subsets", "copies", "shares", "two outputs", "monotone", "best first", "random cuts")
    forests = ("forest", "forest of copies", "random forest of cuts")
    task = job(labels())
    for base in (task, job(labels(classes=2)), Job(task.X.astype(np.float32), task.y)):
        base.fit("jit")
    before = signatures()
    assert any("finish_slots" in key for key in before)
    for other in (
        *(JOBS[name]() for name in (*names, *forests)),
        Job(np.asfortranarray(task.X), task.y),
        Job(task.X[::2, ::-1], task.y[::2]),
        Job(task.X, np.asfortranarray(labels(outputs=2))),
        read_only(task),
    ):
        other.fit("jit")
    assert signatures() == before


# ---- the cache ----

COUNTED = """
from numba.core import event

with event.install_recorder("numba:compile") as seen:
    import numpy as np
    {work}
print(sum(e.is_start for _, e in seen.buffer))
"""
ENCODE = """
    from gputree.backends.jit import Jit
    from gputree.backends.protocol import CodeSpec
    from gputree.core.schema import Feature, Schema
    import sys
    X = np.arange(40, dtype=sys.argv[1])[:, None]
    cuts = Jit(1).edges(X, CodeSpec(Schema((Feature("x"),))), None)
    print(Jit(1).encode(X, cuts).columns[0].tolist() == list(range(1, 41)))
"""
FIT = """
    import gputree
    X = np.arange(60.0).reshape(30, 2) % 7
    model = gputree.DecisionTreeClassifier(device="jit", max_leaf_nodes=4).fit(X, np.arange(30) % 3)
    print(model.fingerprint(), model.predict(X).tolist())
"""


def start(text: str, *arguments: Any, **environment: Any) -> subprocess.Popen[str]:
    """A Python of its own."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **{name: str(value) for name, value in environment.items()}}
    command = [sys.executable, "-c", text, *map(str, arguments)]
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lines(process: subprocess.Popen[str], timeout: float = 120) -> list[str]:
    """What it prints; one that hangs is ended, and fails."""
    try:
        out, problem = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    assert process.returncode == 0, problem
    return out.splitlines()


WORK = [pytest.param(ENCODE, id="encode"), pytest.param(FIT, id="fit", marks=pytest.mark.slow)]


@pytest.mark.parametrize("work", WORK)
def test_a_second_process_compiles_nothing(tmp_path: Path, work: str) -> None:
    first = lines(start(COUNTED.format(work=work), "f8", GPUTREE_CACHE_DIR=tmp_path))
    second = lines(start(COUNTED.format(work=work), "f8", GPUTREE_CACHE_DIR=tmp_path))
    assert int(first[-1]) > 0
    assert int(second[-1]) == 0
    assert first[:-1] == second[:-1]


def test_many_processes_fill_an_empty_cache(tmp_path: Path) -> None:
    """Also with code for different kinds of arrays; afterwards nothing is compiled."""
    program = COUNTED.format(work=ENCODE)
    for process in [start(program, kind, GPUTREE_CACHE_DIR=tmp_path) for kind in ("f8", "f4", "f8", "f4")]:
        assert lines(process)[0] == "True"
    for kind in ("f8", "f4"):
        assert lines(start(program, kind, GPUTREE_CACHE_DIR=tmp_path)) == ["True", "0"]


def test_a_damaged_text_is_written_again(tmp_path: Path) -> None:
    program = COUNTED.format(work=ENCODE)
    assert lines(start(program, "f8", GPUTREE_CACHE_DIR=tmp_path))[0] == "True"
    (text,) = tmp_path.glob("*/*.py")
    good = text.read_text()
    text.write_text(good[:1000])
    assert lines(start(program, "f8", GPUTREE_CACHE_DIR=tmp_path))[0] == "True"
    assert text.read_text() == good


@pytest.fixture
def fresh_folder() -> Iterator[None]:
    """The folder of the cache is looked for anew, before and after."""
    module.cache_folder.cache_clear()
    yield
    module.cache_folder.cache_clear()


@pytest.mark.usefixtures("fresh_folder")
def test_the_cache_stands_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUTREE_CACHE_DIR", str(tmp_path / "own" / "folder"))
    assert module.cache_folder() == tmp_path / "own" / "folder"
    module.cache_folder.cache_clear()
    monkeypatch.delenv("GPUTREE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert module.cache_folder() == tmp_path / "xdg" / "gputree"
    module.cache_folder.cache_clear()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert module.cache_folder() == tmp_path / "home" / ".cache" / "gputree"


@pytest.mark.usefixtures("fresh_folder")
@pytest.mark.parametrize("given", [True, False])
def test_a_user_without_a_home_has_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: bool) -> None:
    """As in a container under a user number that has no entry and no HOME."""

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("GPUTREE_CACHE_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if given:
        monkeypatch.setenv("GPUTREE_CACHE_DIR", str(tmp_path / "given"))
    assert module.cache_folder().parent == tmp_path
    assert (module.cache_folder().name == "given") == given


@pytest.mark.parametrize("work", WORK)
def test_folders_that_cannot_be_written_stop_nothing(tmp_path: Path, work: str) -> None:
    """Below a file there can be no folder, for root neither."""
    file, free = tmp_path / "file", tmp_path / "free"
    file.write_text("")
    free.mkdir()
    places = {name: file / name for name in ("GPUTREE_CACHE_DIR", "XDG_CACHE_HOME", "HOME")}
    found = lines(start(COUNTED.format(work=work), "f8", **places, TMPDIR=free))
    assert int(found[-1]) > 0
    assert list(free.iterdir()) == []  # what was compiled goes with the process
    assert file.read_text() == ""


def copied(monkeypatch: pytest.MonkeyPatch, folder: Path) -> dict[str, Path]:
    """The texts of the kernels and of core, put elsewhere to be edited."""
    places = {"_HERE": folder / "cpu", "_CORE": folder / "core", "_COMPILED": folder / "compiled.py"}
    for name, home in {"_HERE": CPU, "_CORE": CORE}.items():
        shutil.copytree(home, places[name], ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(module._COMPILED, places["_COMPILED"])
    for name, place in places.items():
        monkeypatch.setattr(module, name, place)
    return places


def imported(folder: str, texts: list[str]) -> set[str]:
    """Modules of a folder that some texts import."""
    return {
        name for text in texts for name in re.findall(rf"^from gputree\.{folder}\.(\w+) import", text, re.MULTILINE)
    }


def test_an_edit_of_any_part_is_another_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = copied(monkeypatch, tmp_path)
    own = [places["_HERE"] / f"{name}.py" for name in {*module._SHARED, *module._OF_CRITERION} - {"formulas"}]
    core = imported("core", [path.read_text() for path in own])
    assert core
    of_all = [places["_COMPILED"], *(places["_CORE"] / f"{name}.py" for name in core)]
    for path in [*own, *of_all]:
        texts = [module.module_text(None), module.module_text(Gini())]
        path.write_text(path.read_text() + "\nEDITED = 1\n")
        edited = [module.module_text(None), module.module_text(Gini())]
        assert (edited[0] != texts[0]) == (path.stem in module._SHARED or path in of_all), path
        assert (edited[1] != texts[1]) == (path.stem in module._OF_CRITERION or path in of_all), path


def test_a_module_holds_all_that_it_calls() -> None:
    """What a text imports of ours is taken out of it: it must be in the module, before the text."""
    for parts in (module._SHARED, module._OF_CRITERION):
        before: set[str] = {"marks"}
        for name in parts:
            assert imported("backends.cpu", [(CPU / f"{name}.py").read_text()]) <= before, name
            before.add(name)


def test_every_criterion_has_a_module_of_its_own() -> None:
    texts = [module.module_text(criterion) for criterion in [None, *dict.fromkeys(CRITERIA.values())]]
    assert len(set(texts)) == len(texts) == 9


class Cubes(Gini):
    """Another formula under another name."""

    name = "cubes"

    def term(self, x: Scalar, n: Scalar, X: Scalar, N: Scalar) -> Scalar:
        return x * x * x

    def branch(self, s: Scalar, n: Scalar, N: Scalar) -> Scalar:
        return expr.ratio(s, n * n)


class Namesake(Cubes):
    """The formula edited once more, the name kept."""

    def term(self, x: Scalar, n: Scalar, X: Scalar, N: Scalar) -> Scalar:
        return x * x * x * 2.0 - x * n * n


def grown(backend: Backend, criterion: Criterion) -> Forest:
    """A tree that only `search` grows, best first."""
    X, target = columns()[:, :3], class_target(labels()[:, None], (3,), None)
    cuts = backend.edges(X, CodeSpec(Schema(tuple(Feature(str(f)) for f in range(3)))), None)
    stop = Stop(min_gain=-np.inf, max_leaves=20)
    recipe = Recipe(Search((THRESHOLD, MULTIWAY), criterion, Limits()), stop, Order.BEST)
    return grow(backend, backend.encode(X, cuts), target, recipe, 3)


def test_an_edited_criterion_is_compiled_anew() -> None:
    forests = [grown(Jit(1), criterion) for criterion in (Gini(), Cubes(), Namesake())]
    modules = [jit.kernels(criterion) for criterion in (Gini(), Cubes(), Namesake())]
    assert len({m.__file__ for m in modules}) == 3
    assert len({f.fingerprint() for f in forests}) == 3
    for forest, criterion in zip(forests, (Gini(), Cubes(), Namesake()), strict=True):
        assert forest.fingerprint() == grown(Oracle(), criterion).fingerprint()


# ---- without Numba ----

HIDDEN = """
import importlib.util
import sys
import warnings

class Without:
    "A finder that does not find Numba."

    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, *rest):
        return None if name.partition(".")[0] in ("numba", "llvmlite") else self.finder.find_spec(name, *rest)

    def __getattr__(self, name):
        return getattr(self.finder, name)

warnings.simplefilter("error")
sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
assert importlib.util.find_spec("numba") is None

import numpy as np
import gputree
from gputree import backends
"""


def test_without_numba_fits_of_any_size_run_on_numpy() -> None:
    text = """
X = np.arange(2.0 * backends.JIT_CELLS).reshape(-1, 2) % 5
for device in ("auto", "cpu"):
    for n in (10, len(X)):
        model = gputree.DecisionTreeClassifier(device=device, max_depth=1).fit(X[:n], X[:n, 0] > 2)
        print(model.fit_info_.backend, int((model.predict(X[:n]) == (X[:n, 0] > 2)).all()))
print(backends.choose("cpu", 1 << 60, n_jobs=2).name)
"""
    found = lines(start(HIDDEN + text, GPUTREE_DEVICE="cpu"))
    assert found == ["numpy 1"] * 4 + ["numpy"]


def test_without_numba_jit_is_refused() -> None:
    text = """
for call in (
    lambda: backends.choose("jit", 10),
    lambda: gputree.DecisionTreeRegressor(device="jit").fit([[0.0], [1.0]], [0.0, 1.0]),
    lambda: gputree.RandomForestClassifier(2, device="jit").fit([[0.0], [1.0]], [0, 1]),
):
    try:
        call()
    except RuntimeError as error:
        print(error)
print([(a.available, a.reason) for a in backends.report() if a.name == "jit"][0])
"""
    found = lines(start(HIDDEN + text))
    assert len(found) == 4
    assert all("pip install gputree[cpu]" in line for line in found)
    assert all("device='jit'" in line for line in found[:3])
    assert found[3].startswith("(False")


def test_without_numba_a_model_of_the_compiled_backend_predicts(tmp_path: Path) -> None:
    task = job(labels())
    model = task.fit("jit")
    (tmp_path / "model").write_bytes(pickle.dumps((model, task.X)))
    text = """
import pickle
from pathlib import Path
model, X = pickle.loads(Path(sys.argv[1]).read_bytes())
print(model.predict(X).tolist(), "numba" in sys.modules)
"""
    assert lines(start(HIDDEN + text, tmp_path / "model")) == [f"{model.predict(task.X).tolist()} False"]


@pytest.mark.parametrize(
    "work",
    [
        "import gputree",
        "import gputree.backends.cpu.search, gputree.backends.cpu.finish, gputree.backends.jit",
        "import gputree; gputree.DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1]).predict([[0.0]])",
        "import gputree; gputree.DecisionTreeClassifier(device='cpu').fit([[0.0], [1.0]], [0, 1])",
    ],
)
def test_numba_is_imported_when_it_is_used(work: str) -> None:
    program = f"import sys\n{work}\nprint([m for m in ('numba', 'llvmlite') if m in sys.modules])"
    assert lines(start(program, GPUTREE_DEVICE="cpu")) == ["[]"]


# ---- choice ----


@pytest.mark.parametrize("cold", [False, True])
def test_much_work_is_compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cold: bool) -> None:
    """More is little while nothing is compiled: NumPy is done before a compiler is."""
    assert gputree.DecisionTreeClassifier(device="jit").fit(columns(20), labels(20)).fit_info_.backend == "jit"
    if cold:
        monkeypatch.setattr("gputree.backends.cpu.module.cache_folder", lambda: tmp_path)
    least = COLD_CELLS if cold else JIT_CELLS
    for n_jobs in (None, 1):
        assert type(choose("cpu", least - 1, n_jobs=n_jobs)) is Oracle
        assert type(choose("cpu", 1)) is Oracle
        assert type(choose("cpu", least, n_jobs=n_jobs)) is Jit
    assert type(choose("numpy", JIT_CELLS)) is Oracle
    assert type(choose("jit", 1)) is Jit


def test_kernels_of_another_criterion_or_number_of_classes_are_cold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A fit that NumPy does in a second must not wait for a compiler because another one has compiled."""
    monkeypatch.setattr("gputree.backends.cpu.module.cache_folder", lambda: tmp_path)
    monkeypatch.setattr(gputree.backends, "JIT_CELLS", 1)
    for text in (module.module_text(None), module.module_text(CRITERIA["gini"], pair=True)):
        (module.path_of(text).parent / "__pycache__").mkdir(parents=True)
        (module.path_of(text).parent / "__pycache__" / "some.nbi").touch()
    used = []
    monkeypatch.setattr(gputree.backends, "open_jit", lambda *_: used.append(1) or Oracle())
    X = columns(80)
    gputree.DecisionTreeClassifier(device="cpu", max_depth=1).fit(X, labels(80, classes=2)).predict(X)
    assert len(used) == 2  # a fit and a prediction
    gputree.DecisionTreeClassifier(device="cpu").fit(X, labels(80))
    gputree.DecisionTreeClassifier(device="cpu", criterion="entropy").fit(X, labels(80, classes=2))
    gputree.DecisionTreeRegressor(device="cpu").fit(X, numbers_of(80))
    assert len(used) == 2


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_a_fit_is_compiled_by_its_size(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    """Rows x columns x trees: the same table may be little work for a tree and much for a forest."""
    monkeypatch.delenv("GPUTREE_DEVICE", raising=False)
    monkeypatch.setattr("gputree.backends.cpu.module.has_compiled", lambda *_: True)
    X, y = columns(80), labels(80)
    monkeypatch.setattr(gputree.backends, "JIT_CELLS", X.size + 1)
    assert gputree.DecisionTreeClassifier(device=device).fit(X, y).fit_info_.backend == "numpy"
    assert gputree.RandomForestClassifier(2, device=device).fit(X, y).fit_info_.backend == "jit"
    monkeypatch.setattr(gputree.backends, "JIT_CELLS", X.size)
    assert gputree.DecisionTreeClassifier(device=device).fit(X, y).fit_info_.backend == "jit"


@pytest.mark.parametrize(("n_classes", "compiled"), [(2, False), (10, False), (1000, True)])
def test_many_classes_are_work(monkeypatch: pytest.MonkeyPatch, n_classes: int, compiled: bool) -> None:
    """2,000 rows of 20 columns and 1,000 classes take NumPy half a minute."""
    work: list[int] = []
    monkeypatch.setattr(gputree.learners.grower, "choose", lambda device, cells, *_: work.append(cells) or Oracle())
    gputree.DecisionTreeClassifier().fit(np.zeros((2000, 20)), np.arange(2000) % n_classes)
    assert (work[0] >= JIT_CELLS) == compiled


@pytest.mark.parametrize(
    ("n_jobs", "limit", "expected"),
    [
        (1, None, 1),
        (2, None, 2),
        (9, None, 9),
        (-1, None, 6),
        (-2, None, 5),
        (-9, None, 1),
        (None, None, 6),
        (None, "1", 1),
        (None, "4", 4),
        (None, "4,2", 4),  # of nested regions
        (None, "64", 6),
        (None, "0", 6),
        (None, "", 6),
        (None, "many", 6),
        (2, "1", 2),
        (-1, "1", 6),
    ],
)
def test_threads(monkeypatch: pytest.MonkeyPatch, n_jobs: int | None, limit: str | None, expected: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(6)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if limit is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
    assert jit.threads(n_jobs) == expected
    assert Jit(n_jobs).n_threads == expected
    assert choose("jit", 1, n_jobs=n_jobs).n_threads == expected  # type: ignore[attr-defined]


def test_a_forest_takes_as_many_threads_as_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int | None] = []

    def threads(n_jobs: int | None = None) -> int:
        asked.append(n_jobs)
        return 1

    monkeypatch.setattr(jit, "threads", threads)
    model = job(labels(80), "RandomForest", n_estimators=2, n_jobs=3).fit("jit")
    model.predict(columns(80))
    assert asked
    assert set(asked) == {3}


# ---- numbers ----

RNG = np.random.default_rng(0)
TINY = 2.0**-1022
EDGES = [0.0, 5e-324, 3e-320, np.nextafter(TINY, 0), TINY, np.nextafter(TINY, 1), 0.5, 1.0, 2.0, 3.0, 1024.0, 65535.0]
EDGES += [65536.0, 1e-300, 1e300, 2.0**1011, 2.0**1012, np.finfo(float).max, *np.nextafter(np.sqrt(0.5), [0, 1])]
SPREAD = [RNG.integers(0, 70_000, 200), 10.0 ** RNG.uniform(-323, 308, 500), RNG.uniform(0.7, 1.5, 2000)]
SIZES = np.concatenate([EDGES, np.sqrt([0.5, 2.0]), *SPREAD])
SCORES = np.concatenate([SIZES, -SIZES, RNG.normal(size=200), [np.inf, -np.inf]])
SCALES = np.resize(RNG.permutation([*SIZES, *np.zeros(50)]), SCORES.size)
WORDS = np.array([0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1, *RNG.integers(0, 2**64, 200, np.uint64)], np.uint64)
OTHERS = RNG.permutation(WORDS)
OUTCOMES = np.array([1, 2, 3, 2**31, 2**32 - 1, *RNG.integers(1, 2**32, WORDS.size - 5)], np.uint64)
STREAMS = np.resize(np.array(list(keys.Stream), np.uint64), WORDS.size)


def draws(key: NDArray[np.uint64], stream: NDArray[np.uint64], i: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return np.array([keys.draw(*three) for three in zip(key, map(keys.Stream, stream.tolist()), i, strict=True)])


TWINS: dict[str, tuple[Callable[..., NDArray[Any]], tuple[NDArray[Any], ...]]] = {
    "gt_log2": (expr.log2, (SIZES,)),
    "gt_xlogx": (expr.xlogx, (SIZES,)),
    "gt_ratio": (expr.ratio, (SCORES, SCALES)),
    "gt_abs": (expr.absolute, (SCORES,)),
    "on_grid": (scores.grid, (SCORES, SCALES)),
    "mix": (keys.mix, (WORDS, OTHERS)),
    "drawn": (draws, (WORDS, STREAMS, OTHERS)),
    "unit_of": (keys.unit, (WORDS,)),
    "below": (keys.below, (WORDS, OUTCOMES)),
}


def same_bits(a: NDArray[Any], b: NDArray[Any]) -> None:
    """Equal to the sign of 0."""
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(np.signbit(a.astype(np.float64)), np.signbit(b.astype(np.float64)))
    assert a.dtype == b.dtype


def loop(function: Any, arguments: tuple[NDArray[Any], ...]) -> NDArray[Any]:
    """A scalar function in Python, number by number."""
    with np.errstate(all="ignore"):
        return np.array([function(*given) for given in zip(*arguments, strict=True)])


def compiled(function: Any, arguments: tuple[NDArray[Any], ...]) -> NDArray[Any]:
    """The same for a compiled function, which only compiled functions can call."""
    callers = {1: lambda a: function(a), 2: lambda a, b: function(a, b), 3: lambda a, b, c: function(a, b, c)}
    with np.errstate(all="ignore"):
        return np.asarray(numba.vectorize(nopython=True)(callers[len(arguments)])(*arguments))


def expected_of(name: str) -> tuple[NDArray[Any], tuple[NDArray[Any], ...]]:
    twin, arguments = TWINS[name]
    with np.errstate(all="ignore"):
        return np.asarray(twin(*arguments)), arguments


@pytest.mark.parametrize("name", TWINS)
def test_numbers_equal_cores_in_python(name: str) -> None:
    expected, arguments = expected_of(name)
    same_bits(loop(getattr(numbers, name), arguments), expected)


@pytest.mark.parametrize("name", TWINS)
def test_numbers_equal_cores_compiled(name: str) -> None:
    expected, arguments = expected_of(name)
    same_bits(compiled(getattr(jit.kernels(CRITERIA["gini"]), name), arguments), expected)


# ---- formulas ----

FORMULAS = ("gt_term", "gt_branch", "gt_info", "gt_final", "gt_scale", "gt_decrease")


def quantities(criterion: Criterion) -> dict[str, NDArray[np.float64]]:
    """A channel and the weight of a branch, those of its node, and what follows from them: whole numbers, parts, 0."""
    rng, n = np.random.default_rng(1), 400
    N = np.where(rng.random(n) < 0.5, rng.integers(1, 2000, n), rng.random(n) * 10.0 ** rng.integers(-3, 13, n))
    share, part, inner = rng.choice([0.0, 1.0, 0.25, 1 / 3, *rng.random(9)], (3, n))
    X = N * share if criterion.needs.name == "COUNTS" else rng.random(n) * 10.0 ** rng.integers(-6, 6, n)
    x = X * part
    if criterion.needs.name == "CENTRED_SUMS":
        x, X = rng.choice([-1.0, 1.0], n) * x, rng.choice([-1.0, 1.0], n) * X
    gain, info = rng.normal(size=n) * N, N * inner
    return {"x": x, "X": X, "n": N * inner, "N": N, "s": x * x, "gain": gain, "info": info}


def as_text(criterion: Criterion) -> dict[str, Any]:
    """The functions of `python_text`, as Python runs them."""
    space: dict[str, Any] = {name: getattr(numbers, name) for name in ("gt_log2", "gt_xlogx", "gt_ratio", "gt_abs")}
    exec(python_text(criterion), space | {"kernel": lambda function: function}, space)
    return space


def terms(criterion: Criterion, space: dict[str, Any]) -> Iterator[tuple[Any, tuple[Any, ...], NDArray[Any]]]:
    """Every formula of a criterion: the scalar function, what it is given, and what core makes of that."""
    known = quantities(criterion)
    for name in FORMULAS:
        given = tuple(known[a] for a in inspect.signature(space[name]).parameters)
        with np.errstate(all="ignore"):
            yield space[name], given, np.asarray(getattr(criterion, name.removeprefix("gt_"))(*given))


@pytest.mark.parametrize("name", CRITERIA)
def test_the_text_of_a_criterion_computes_its_formulas(name: str) -> None:
    criterion = CRITERIA[name]
    space = as_text(criterion)
    for function, given, expected in terms(criterion, space):
        assert np.isfinite(expected).all()
        same_bits(loop(function, given), expected)
    flags = space["FOLD_MAX"], space["TWO_BRANCHES"], space["POSITIVE_SUMS"]
    assert flags == (criterion.fold is Fold.MAX, criterion.two_branches, criterion.positive_sums)


@pytest.mark.parametrize("name", ["gini", "entropy", "twoing", "chi2", "poisson"])
def test_a_compiled_criterion_computes_its_formulas(name: str) -> None:
    """No product and sum are fused into one rounding."""
    kernels, criterion = jit.kernels(CRITERIA[name]), CRITERIA[name]
    for function, given, expected in terms(criterion, as_text(criterion)):
        if len(given) <= 3:
            same_bits(compiled(getattr(kernels, function.__name__), given), expected)


def test_the_file_of_formulas_is_ginis() -> None:
    space, own = as_text(CRITERIA["gini"]), vars(formulas)
    for function, given, expected in terms(CRITERIA["gini"], {name: own[name] for name in FORMULAS}):
        same_bits(loop(function, given), expected)
    for name in ("FOLD_MAX", "TWO_BRANCHES", "POSITIVE_SUMS"):
        assert own[name] == space[name]


# ---- processes ----

WORKERS = """
import sys
import numpy as np
import gputree
from sklearn.model_selection import cross_val_score

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)).round(1), rng.integers(0, 2, 90)
    for forest in (False, True):
        scores = []
        for device in ("numpy", "jit"):
            tree = gputree.DecisionTreeClassifier(device=device)
            model = gputree.RandomForestClassifier(3, n_jobs=2, device=device) if forest else tree
            model.fit(X, y)  # threads have run here before workers start
            scores.append(cross_val_score(model, X, y, cv=3, n_jobs=2 if device == "jit" else 1).tolist())
        print(scores[0] == scores[1])
"""
FORK = """
import os
import warnings
import numpy as np
import gputree

warnings.simplefilter("ignore")  # Python warns of a fork where threads are
rng = np.random.default_rng(0)
X, y = rng.normal(size=(90, 3)).round(1), rng.integers(0, 2, 90)

def fingerprint():
    return gputree.RandomForestClassifier(4, n_jobs=2, device="jit").fit(X, y).fingerprint()

mine = fingerprint()
ours, theirs = os.pipe()
child = os.fork()
if child == 0:
    os.write(theirs, fingerprint().encode())
    os._exit(0)
os.waitpid(child, 0)
print(os.read(ours, 1000).decode() == mine)
"""


def test_workers_of_joblib_fit(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(WORKERS)
    assert lines(start("import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')", program)) == ["True"] * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="expected: this system has no fork")
def test_a_child_of_fork_fits() -> None:
    assert lines(start(FORK)) == ["True"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("learner", ["DecisionTree", "RandomForest"])
def test_a_table_is_not_copied(learner: str, dtype: type) -> None:
    """Neither as it is nor in another type: codes take a byte a cell, columns are sorted one by one."""
    X = np.random.default_rng(0).normal(size=(70_000, 60)).astype(dtype)
    more = {"n_estimators": 2} if learner == "RandomForest" else {}
    task = Job(X, labels(len(X)), learner, None, {"max_depth": 3, **more})
    Job(X[:100], labels(100), learner, None, more).fit("jit")
    tracemalloc.start()
    try:
        model = task.fit("jit")
        model.predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * X.size  # a byte a cell, some columns, and the rows of nodes; a copy has four or eight a cell


def test_little_work_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row, or a block of them, is predicted where it is asked for."""
    task = job(labels(), "RandomForest", n_estimators=3, n_jobs=2)
    model = task.fit("jit")
    usual = model.predict_proba(task.X[:40])
    monkeypatch.setattr(jit, "ThreadPoolExecutor", None)
    for rows in (1, 40):
        np.testing.assert_array_equal(model.predict_proba(task.X[:rows]), usual[:rows])
        assert model.apply(task.X[:rows]).shape == (rows, 3)
    with pytest.raises(TypeError):
        model.predict(np.repeat(task.X, 1 + 2 * jit.ROWS // len(task.X), axis=0))


def test_a_fit_in_a_thread_is_that_of_the_main_one() -> None:
    """Threads may compile and fit at once."""
    task = job(labels(), "RandomForest", n_estimators=3, n_jobs=2)
    expected = task.fit("numpy").fingerprint()
    with ThreadPoolExecutor(4) as pool:
        assert [f.result() for f in [pool.submit(lambda: task.fit("jit").fingerprint()) for _ in range(8)]] == (
            [expected] * 8
        )


# ---- prediction ----


def test_what_a_walk_reads_is_made_once_and_given_back() -> None:
    task = job(labels())
    model = task.fit("jit")
    before = len(host.WALKS)
    first = model.predict(task.X)
    assert host.walk_of(model.forest_) is host.walk_of(model.forest_)
    assert len(host.WALKS) == before + 1
    np.testing.assert_array_equal(model.predict(task.X), first)
    del model
    gc.collect()
    assert len(host.WALKS) == before


def test_a_forest_that_can_be_written_is_read_anew() -> None:
    task = job(numbers_of())
    model = task.fit("jit")
    own = replace(model.forest_, value=model.forest_.value.copy())
    before = Jit().predict(own, task.X)
    own.value[:] += 1.0
    np.testing.assert_array_equal(Jit().predict(own, task.X), before + 1.0)


# ---- waiting ----


@dataclass
class Slow:
    """Stands for a function of Numba's that takes its time to compile."""

    seconds: float
    py_func: Callable[..., Any] = columns

    def compile(self, signature: Any) -> None:
        time.sleep(self.seconds)

    def __call__(self) -> int:
        return 7


@pytest.mark.parametrize(("seconds", "lines_told"), [(0.0, 0), (0.5, 1)])
def test_compiling_is_told_once_when_it_takes_its_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seconds: float, lines_told: int
) -> None:
    monkeypatch.setattr(jit, "PATIENCE", 0.1)
    entry, said = jit.Entry(Slow(seconds)), list[str]()
    entry.lock = tmp_path / "here.lock"
    with heard(said.append):
        assert entry() == entry() == 7
    assert len(said) == lines_told
    assert all("compiling" in line and str(tmp_path) in line for line in said)


@pytest.mark.parametrize("verbose", [0, 1])
def test_a_verbose_fit_prints_what_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verbose: int
) -> None:
    inner = Jit.open

    def outer(*given: Any) -> Any:
        tell("compiling, for a test")
        return inner(*given)

    monkeypatch.setattr(Jit, "open", outer)
    gputree.DecisionTreeClassifier(device="jit", verbose=verbose, max_depth=1).fit(columns(50), labels(50))
    tell("to nobody")
    printed = capsys.readouterr().err
    assert ("[gputree] compiling, for a test" in printed) == bool(verbose)
    assert "to nobody" not in printed
