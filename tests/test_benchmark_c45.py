"""`python -m benchmarks.bench_c45` at tiny size: what it prints and writes follows from its times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import bench_c45
from benchmarks.bench_c45 import OURS, PEER, Entry, Side


def entry(table: str, rows: int, ours: float, peer: float | None) -> Entry:
    sides = [Side(OURS, [ours], [ours / 10])] + ([] if peer is None else [Side(PEER, [peer, peer], [peer / 2] * 2)])
    return Entry(table, rows, rows // 4, sides)


def test_a_small_run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_c45, "find_spec", lambda _: None)
    options = bench_c45.arguments(["--rows", "400", "--runs", "1", "--warm-up", "0", "--save"])
    results = bench_c45.run(options, tmp_path)
    assert [(e.table, e.rows, e.held) for e in results] == [("whole", 400, 100), ("missing", 400, 100)]
    printed = capsys.readouterr().out
    (file,) = tmp_path.glob("c45-*.json")
    written = json.loads(file.read_text())
    assert [r["sides"][0]["fit"] for r in written["results"]] == [e.sides[0].fit for e in results]
    whole, missing = (e.sides[0].fit[0] for e in results)
    assert f"fit: with a tenth missing {missing / whole:.2f} times as long as whole (bar 3)" in printed
    assert "c50py is not installed" in printed
    assert all(bar in printed for bar in written["bars"])


def test_tables_are_the_same_but_for_what_is_missing() -> None:
    (whole, y), (gaps, same) = bench_c45.make(2000, 0.0), bench_c45.make(2000, 0.1)
    assert (y == same).all()
    assert whole.shape == (2000, 20)
    assert whole.notna().all().all()
    assert abs(gaps.isna().to_numpy().mean() - 0.1) < 0.01
    assert ((gaps == whole) | gaps.isna()).all().all()
    assert [whole[f"c{j}"].nunique() for j in range(10)] == list(bench_c45.CATEGORIES)


def test_bars_are_those_of_the_largest_size_at_which_both_ran() -> None:
    small = [entry("whole", 1000, 1.0, 20.0), entry("missing", 1000, 2.0, 30.0)]
    large = [entry("whole", 4000, 4.0, None), entry("missing", 4000, 10.0, None)]
    found = bench_c45.bars(small + large)
    assert found[0] == "fit, whole, 1,000 rows: 20.0 times as fast as c50py (bar 10)"
    assert found[3] == "predict, missing, 1,000 rows: 75.0 times as fast as c50py"
    assert found[-2:] == [
        "fit: with a tenth missing 2.50 times as long as whole (bar 3)",
        "predict: with a tenth missing 2.50 times as long as whole (bar 3)",
    ]


def test_what_a_larger_size_would_take() -> None:
    """By hand: 4 times the rows took 8 times as long, so another 4 times take 8 times 80 seconds."""
    known = [entry("whole", 1000, 1.0, 10.0), entry("whole", 4000, 1.0, 80.0)]
    assert bench_c45.foretold([], "whole", 1000) == 0.0
    assert bench_c45.foretold(known[:1], "whole", 4000) == 40.0
    assert bench_c45.foretold(known, "whole", 16_000) == pytest.approx(640.0)
    assert bench_c45.foretold([*known, entry("whole", 16_000, 1.0, None)], "whole", 64_000) == float("inf")
    assert bench_c45.sizes(100_000) == [6250, 25_000, 100_000]
    assert bench_c45.sizes(500) == [500]
