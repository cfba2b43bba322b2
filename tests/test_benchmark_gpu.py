"""`python -m benchmarks.gpu` at toy size on the emulator: on the day a card is there, it must not be broken."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gputree.backends.cuda
from benchmarks import gpu, gpu_fits, gpu_kernels, gpu_tools
from benchmarks.gpu_checks import recount
from benchmarks.gpu_model import MODEL, Load
from benchmarks.gpu_tables import Generated
from benchmarks.gpu_tools import Budget, Clock, Lab, LeftOut, Mismatch, PeakMemory, alternate, same
from gputree.backends.cuda import Cuda
from gputree.backends.source import kernels_folder
from gputree.core.criteria import CRITERIA
from gputree.core.target import class_target, sum_target
from tests.emulator.driver import Emulator

SPREAD = {"median", "low", "high", "runs"}
FIELDS = {
    "checks": {"check", "rows", "features", "cells", "nodes", "live_slots", "values_compared"},
    "kernels": {
        *("kernel", "scene", "launches", "model", "seconds", "bytes", "bytes_per_second", "share_of_copy"),
    },
    "fits": {"fit", "features", "parameters", "equal_to_cpu", "peak_device_bytes", "libraries", "unusable"},
}


@pytest.fixture
def xp(monkeypatch: pytest.MonkeyPatch, compiler: str) -> Any:
    """The emulator as the module that stands for CuPy, for the public estimators too."""
    xp = Emulator(checked=False).xp
    monkeypatch.setattr(gputree.backends.cuda, "import_cupy", lambda: xp)
    monkeypatch.setattr(gputree.backends.cuda, "COMPILED", {})  # kernels belong to one emulator
    monkeypatch.setattr(gpu, "import_cupy", lambda: xp)
    return xp


@pytest.fixture
def lab(xp: Any) -> Lab:
    return Lab(xp, True, Budget(60.0), Clock(xp))


def all_kernels() -> set[str]:
    """Names of the kernels in the text of kernels/*.cu."""
    text = "".join(file.read_text(encoding="utf-8") for file in kernels_folder().glob("*.cu"))
    heads = re.findall(r'extern "C" __global__ void[^{]*?\b(\w+)\s*\(\s*(?:const|unsigned|gt_)', text)
    assert len(heads) == text.count("__global__")
    return set(heads)


@pytest.mark.parametrize(("into", "half"), [("checks", 0), ("checks", 1), ("kernels", None), ("fits", None)])
def test_everything_runs_and_is_written(
    xp: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], into: str, half: int | None
) -> None:
    names = [part.name for part in gpu.parts() if part.into == into]
    if half is not None:
        names = names[half::2]
    result, file = gpu.run(xp, toy=True, only=tuple(names), folder=tmp_path)
    assert result["failures"] == []
    assert result["left_out"] == []
    assert [part["part"] for part in result["parts"]] == names
    assert file.name.startswith("toy-emulated-device-20")
    written = json.loads(file.read_text(encoding="utf-8"))
    check_fields(written, into)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_all_parts_are_among_these() -> None:
    assert {part.into for part in gpu.parts()} == set(FIELDS)


def check_fields(written: dict[str, Any], into: str) -> None:
    """The fields that the head of benchmarks/gpu.py documents, and the three runs behind every figure."""
    documented = re.findall(r"^``(\w+)``", gpu.__doc__ or "", flags=re.MULTILINE)
    assert set(written) == set(documented)
    assert {"name", "driver", "cuda", "cupy", "memory_bytes"} <= set(written["machine"]["card"])
    assert written["options"]["clock"] == "wall"
    assert written[into]
    assert all(set(record) == FIELDS[into] for record in written[into])
    seconds = [record["seconds"] for record in written["kernels"]]
    if into == "kernels":
        assert {record["kernel"] for record in written["kernels"]} == {*all_kernels(), "copy"}
    for fit in written["fits"]:
        assert [side["library"] for side in fit["libraries"]][:2] == ["gputree", "scikit-learn"]
        seconds += [side["seconds"] for side in fit["libraries"]]
        assert fit["peak_device_bytes"] > 0
        assert fit["libraries"][0]["nodes"] > 1
    for one in seconds:
        assert set(one) == SPREAD
        assert len(one["runs"]) >= 3
        assert one["low"] <= one["median"] <= one["high"]


def test_every_method_of_the_protocol_is_compared(xp: Any, tmp_path: Path) -> None:
    parts = ("check: regression", "check: weights")
    result, _ = gpu.run(xp, toy=True, only=parts, folder=tmp_path)
    compared = {method for record in result["checks"] for method, n in record["values_compared"].items() if n}
    assert compared == {
        *("edges", "encode", "totals", "read", "search", "search of all", "children", "partition", "extent"),
        *("residuals", "apply", "predict"),
    }


@pytest.mark.parametrize("method", ["totals", "read", "search", "children", "residuals", "apply", "predict"])
def test_a_wrong_result_is_a_failure(
    xp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One value off by one in the last result of the backend's method; the next part still runs, the status is 1."""
    right = getattr(Cuda, method)

    def wrong(self: Cuda, *args: Any) -> Any:
        found = right(self, *args)
        array = found if isinstance(found, np.ndarray) else found.cut if method == "search" else found[-1]
        array[(-1,) * array.ndim] += 1
        return found

    monkeypatch.setattr(Cuda, method, wrong)
    monkeypatch.setattr(gpu, "RESULTS", tmp_path)
    assert gpu.main(["--toy", "--parts", "check: regression", "kernels: sparse"]) == 1
    written = json.loads(next(tmp_path.glob("*.json")).read_text(encoding="utf-8"))
    assert [one["part"] for one in written["failures"]] == ["check: regression"]
    assert "Mismatch" in written["failures"][0]["error"]
    assert "Traceback" in written["failures"][0]["traceback"]
    assert [one["part"] for one in written["parts"]] == ["kernels: sparse"]
    assert "FAILED" in capsys.readouterr().out


@pytest.mark.parametrize("method", ["totals", "read", "search", "children", "apply", "predict"])
def test_a_wrong_result_at_large_size_is_a_failure(lab: Lab, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    right = getattr(Cuda, method)

    def wrong(self: Cuda, *args: Any) -> Any:
        found = right(self, *args)
        array = found if isinstance(found, np.ndarray) else found.cut if method == "search" else found[method == "read"]
        array[(0,) * array.ndim] += 1
        return found

    monkeypatch.setattr(Cuda, method, wrong)
    with pytest.raises(Mismatch):
        next(part for part in gpu.parts() if part.name.startswith("check: beyond")).run(lab)


def test_list_prints_the_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["--list"]) == 0
    *printed, last = capsys.readouterr().out.splitlines()
    assert [line for line in printed if line.startswith("kernels: levels ")]
    assert len(printed) == len(gpu.parts()) == len({part.name for part in gpu.parts()})
    total = sum(part.seconds for part in gpu.parts())
    assert total <= gpu.SECONDS < 8 * 60  # all parts fit
    assert re.sub(" +", " ", last) == f"{len(printed)} parts together about {total:.0f} s of {gpu.SECONDS:.0f} s"


def test_list_names_the_parts_that_do_not_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """8 s of 10 s are taken, so that 5 s do not fit and 2 s do."""
    some = [gpu.Part(f"{seconds:.0f} s", "fits", seconds, lambda lab: []) for seconds in (8.0, 5.0, 2.0)]
    monkeypatch.setattr(gpu, "parts", lambda: some)
    assert gpu.main(["--list", "--seconds", "10"]) == 0
    *_, total, out = capsys.readouterr().out.splitlines()
    assert re.sub(" +", " ", total) == "2 parts together about 10 s of 10 s"
    assert out == "would be left out: 5 s"


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as status:
        gpu.main(["--parts", "speed"])
    assert status.value.code == 2
    assert "no part 'speed'" in capsys.readouterr().err


# --- time -------------------------------------------------------------------------------------------------------------


class FakeEvent:
    """As cupy.cuda.Event: a place in the queue of the device."""

    def record(self) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        pass


def test_the_clock_reads_events_where_there_are_some(xp: Any, tmp_path: Path) -> None:
    xp.cuda.Event = FakeEvent
    xp.cuda.get_elapsed_time = lambda a, b: 1000 * (b.at - a.at)
    result, _ = gpu.run(xp, toy=True, only=("kernels: sparse",), folder=tmp_path)
    assert result["failures"] == []
    assert result["options"]["clock"] == "events"
    assert {record["kernel"] for record in result["kernels"]} >= {"make_keys", "make_cells", "copy"}
    assert all(0 < record["seconds"]["low"] < 60 for record in result["kernels"])


def test_a_figure_is_the_model_s_bytes_over_the_median() -> None:
    """1 ms, 4 ms and 2 ms for 6 MB: 3 GB/s, half of a copy of 6 GB/s."""
    found = gpu_kernels.figures({}, gpu_tools.Timing((0.001, 0.004, 0.002)), 6_000_000, 6e9)
    assert found["bytes_per_second"] == pytest.approx(3e9)
    assert found["share_of_copy"] == pytest.approx(0.5)
    assert found["seconds"] == {"median": 0.002, "low": 0.001, "high": 0.004, "runs": [0.001, 0.004, 0.002]}


def test_the_model_of_a_few_kernels_by_hand() -> None:
    """10 rows of 28 float32, two classes: records of 32 bytes, one slot of 28 x 256 codes x 2 channels x 4 bytes.

    Ten draws meet six rows, each listed by a word.
    """
    load = Load(10)
    names = ("encode_bytes", "list_drawn", "count_shared", "move_rows", "best_of_slots")
    assert {name: MODEL[name][1](load) for name in names} == {
        "encode_bytes": 10 * (112 + 28),
        "list_drawn": 10 * 4 + 6 * 4,
        "count_shared": 10 * (4 + 32) + 57_344,
        "move_rows": 100,
        "best_of_slots": 28 * 48,
    }


def test_every_kernel_has_a_model() -> None:
    assert set(MODEL) == all_kernels()


def test_what_does_not_fit_into_the_time_is_left_out(xp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that begins only to find that its runs would take too long, and a full-size part that does not begin."""
    monkeypatch.setattr(Budget, "left", -1.0)
    result, _ = gpu.run(xp, toy=True, only=("fit: 10,000 rows",), folder=tmp_path)
    assert [one["part"] for one in result["left_out"]] == ["fit: 10,000 rows"]
    assert "3 runs of gputree, scikit-learn" in result["left_out"][0]["why"]
    result, _ = gpu.run(xp, toy=False, only=("check: weights",), folder=tmp_path)
    assert result["left_out"] == [{"part": "check: weights", "why": "check: weights takes about 6 s; 0 s are left"}]
    assert result["failures"] == []


def test_runs_alternate() -> None:
    calls: list[str] = []
    sides = {name: lambda name=name: calls.append(name) for name in "ab"}  # type: ignore[misc]
    times = alternate(Budget(60.0), sides, 1.0)
    assert "".join(calls) == "ababab"
    assert [len(times[name].runs) for name in "ab"] == [3, 3]


def test_runs_that_take_too_long_are_not_begun() -> None:
    with pytest.raises(LeftOut, match="3 runs of a"):
        alternate(Budget(5.0), {"a": lambda: pytest.fail("it was begun")}, 2.0)


def test_peak_memory_is_over_what_was_in_use(lab: Lab) -> None:
    kept = lab.xp.zeros(1 << 20, np.uint8)
    with PeakMemory(lab) as peak:
        used = lab.xp.zeros(3 << 20, np.uint8)
        time.sleep(0.05)
        del used
    assert peak.nbytes == 3 << 20
    assert kept.size == 1 << 20


# --- tables and comparisons -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("skewed", [False, True])
def test_the_device_s_table_is_what_numpy_says(lab: Lab, skewed: bool) -> None:
    made = Generated(5000, 5, 255, skewed)
    X = made.on_device(lab).get()
    np.testing.assert_array_equal(X, made.rows(np.arange(5000)))
    for f in (0, 4):
        np.testing.assert_array_equal(made.code(f), np.where(np.isnan(X[:, f]), 0, np.nan_to_num(X[:, f]) + 1))
    common = np.nanmean(X == 7)
    assert 0.85 < common < 0.95 if skewed else common < 0.02
    assert 0.005 < np.isnan(X).mean() < 0.02
    assert np.nanmax(X) == 254
    assert np.nanmin(X) == 0


def test_recount_of_labels_and_of_weighted_sums_by_hand() -> None:
    group = np.array([1, 0, 1])
    labels = class_target(np.array([[0], [2], [2]]), (3,), None)
    assert recount(labels, group, 2).tolist() == [[0, 1], [0, 0], [1, 1]]
    sums = sum_target(np.array([[0.0], [8.0], [4.0]]), CRITERIA["squared_error"], np.array([1.0, 2.0, 3.0]))
    assert sums.sums is not None
    unit = sums.sums.values[0, 0] // -4  # y less the middle of its range: -4, 4, 0
    assert recount(sums, group, 2).tolist() == [[2, 4], [8 * unit, -4 * unit], [1, 2]]


@pytest.mark.parametrize(
    ("ours", "other"),
    [
        (np.array([1, 2]), np.array([1, 3])),
        (np.array([1.0]), np.array([1])),
        (np.zeros(2), np.zeros(3)),
        (np.array([0.0]), np.array([-0.0])),
        (np.array([np.nan]), np.array([0.0])),
        ((1, 2), (1, 3)),
        ((1,), (1, 2)),
        (Load(1), Load(2)),
    ],
)
def test_what_differs_is_not_the_same(ours: Any, other: Any) -> None:
    with pytest.raises(Mismatch, match="here"):
        same("here", ours, other)


def test_equal_values_are_counted() -> None:
    """Two values, one of them NaN, and the ten fields of a record."""
    assert same("here", np.array([np.nan, 1.0]), np.array([np.nan, 1.0])) == 2
    assert same("here", (Load(1), 5), (Load(1), 5)) == 11


def test_other_libraries_join_where_they_are_installed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for XGBoost and cuML: scikit-learn's tree under their names, which keeps what it is told."""
    from sklearn.tree import DecisionTreeClassifier

    told: list[dict[str, Any]] = []

    class Stand(DecisionTreeClassifier):
        def __init__(self, **told_: Any) -> None:
            told.append(told_)
            super().__init__(max_depth=told_["max_depth"])

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            return {}

    both = {
        name: SimpleNamespace(build_info=lambda: {"USE_CUDA": True}, XGBClassifier=Stand, RandomForestClassifier=Stand)
        for name in ("xgboost", "cuml.ensemble")
    }
    monkeypatch.setattr(Lab, "peer", lambda self, name: both[name])
    (record,) = gpu_fits.measure(lab, "10,000 rows")
    assert [side["library"] for side in record["libraries"]] == ["gputree", "scikit-learn", "XGBoost", "cuML"]
    assert [one["max_depth"] for one in told] == [2, 2]
    assert told[0]["device"] == "cuda"
    assert gpu.fit_lines(record)[2].startswith("  XGBoost")


def test_a_library_that_fails_does_not_take_the_others_along(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def __init__(self, **told: Any) -> None:
            pass

        def fit(self, X: Any, y: Any) -> None:
            raise RuntimeError("no kernel image is available")

    monkeypatch.setattr(
        Lab,
        "peer",
        lambda self, name: (
            SimpleNamespace(build_info=lambda: {"USE_CUDA": True}, XGBClassifier=Broken) if name == "xgboost" else None
        ),
    )
    (record,) = gpu_fits.measure(lab, "10,000 rows")
    assert [side["library"] for side in record["libraries"]] == ["gputree", "scikit-learn"]
    assert record["unusable"] == {"XGBoost": "RuntimeError: no kernel image is available"}
    assert any("XGBoost is left out" in line for line in gpu.fit_lines(record))


def test_trees_that_differ_between_devices_are_a_failure(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    prints = iter("ab")
    monkeypatch.setattr("gputree.DecisionTreeClassifier.fingerprint", lambda self: next(prints))
    with pytest.raises(Mismatch, match="device='cuda' grows a, device='cpu' b"):
        gpu_fits.measure(lab, "10,000 rows")


def test_without_a_card_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(gputree.backends.cuda, "import_cupy", lambda: Emulator(devices=0).xp)
    assert gpu.main([]) == 2
    assert "nothing to measure on" in capsys.readouterr().out


def test_nodes_of_xgboost_are_the_lines_of_its_dump() -> None:
    booster = SimpleNamespace(get_dump=lambda: ["0:[f0<1]\n\t1:leaf=1\n\t2:leaf=0\n"])
    assert gpu_fits.count_nodes(SimpleNamespace(get_booster=lambda: booster)) == 3
