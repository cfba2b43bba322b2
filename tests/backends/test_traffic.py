"""Bytes and atomics of a level: benchmarks/traffic_model.py against the emulator's counts, kernel by kernel."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from benchmarks import traffic
from benchmarks.traffic import CLASSES, ROWS, columns, measure
from benchmarks.traffic import total as whole
from benchmarks.traffic_model import FLOOR, KERNELS, Level, Traffic, distinct, model, sectors

NEAR = 1.3


def far(said: Traffic, seen: Traffic) -> list[str]:
    """What differs by more than NEAR; nothing must be nothing."""
    pairs = {f.name: (getattr(said, f.name), getattr(seen, f.name)) for f in fields(Traffic)}
    return [f"{name}: {a:,.0f} for {b:,}" for name, (a, b) in pairs.items() if a > NEAR * b or b > NEAR * a]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("rows", ROWS)
def test_a_level_moves_and_adds_what_the_model_says(rows: int, classes: int) -> None:
    level = Level(rows, classes)
    said, seen = model(level), measure(level)
    assert set(seen) == set(KERNELS)  # no other kernel runs in a level
    wrong = {name: far(said[name], seen[name]) for name in KERNELS} | {"all": far(whole(said), whole(seen))}
    assert not any(wrong.values()), wrong


def test_the_sizes_cover_every_way_of_counting() -> None:
    shared = {(n, c): how.parts for n in ROWS for c in CLASSES if (how := Level(n, c).shared)}
    # whole records where 256 codes x classes x 28 columns fit, else four features a block: seven parts
    assert shared == {(20_000, 2): 1, (20_000, 7): 1, (100_000, 2): 1, (100_000, 7): 1, (100_000, 30): 7}


def test_slots_are_of_equal_size_and_codes_equally_frequent() -> None:
    level = Level(4_080, 2)  # 255 codes, 16 times each
    X = columns(level, np.random.default_rng(1))
    assert X.shape == (4_080, 28)
    assert np.bincount((X[:, 0] > 127) + 2 * (X[:, 1] > 127)).tolist() == [1_020] * 4
    assert all(np.bincount(X[:, f].astype(int)).tolist() == [16] * 255 for f in range(2, 28))


@pytest.mark.parametrize(
    ("kinds", "draws", "expected"),
    [(1, 5, 1.0), (2, 0, 0.0), (2, 1, 1.0), (2, 2, 1.5), (3, 2, 5 / 3), (2, 3, 1.75)],  # 1.75: two of 8 give one kind
)
def test_distinct_kinds_of_some_draws(kinds: int, draws: int, expected: float) -> None:
    assert distinct(kinds, draws) == pytest.approx(expected, rel=1e-12)


def test_traffic_of_counting_worked_by_hand() -> None:
    # 4 codes x 2 classes <= 16 rows a slot: in shared memory, where each slot is one tile and has a block of its own
    shared = model(Level(32, 2, slots=2, features=4, known=3))["count"]
    threads = 2 * 512 * (8 + 8 + 24 + 12)  # tile_ptr[k], one probe for the slot, three 64-bit numbers, three of 32 bits
    met = 2 * 4 * 6 * (1 - (5 / 6) ** 16)  # cells of two slots and four features: 6 each, 16 rows in them
    assert shared.bytes_read == pytest.approx(threads + 32 * 4 * (4 + 1 + 4) + 8 * met)
    assert (shared.shared_atomics, shared.global_atomics) == (128, pytest.approx(met))
    # 4 codes x 20 classes > 16 rows: row_ptr[k], one probe, start, row_ptr; seven words; the code
    wide = model(Level(32, 20, slots=2, features=4, known=3))["count"]
    assert wide == Traffic(bytes_read=128 * (8 + 8 + 16 + 28 + 1), global_atomics=128)


def test_traffic_of_a_block_that_counts_two_slots_worked_by_hand() -> None:
    # 256 codes x 4 classes: two slots of 1,024 rows, a tile each, pay for one block of 1,024 cells a feature, not two
    shared = model(Level(2_048, 4, slots=2, features=4))["count"]
    threads = 512 * (8 + 8) + 512 * 2 * (24 + 12)  # the block begins once and visits two slots
    met = 2 * 4 * 1_020 * (1 - (1_019 / 1_020) ** 1_024)  # cells of two slots and four features; no missing values
    assert shared.bytes_read == pytest.approx(threads + 2_048 * 4 * (4 + 1 + 4) + 8 * met)
    assert (shared.shared_atomics, shared.global_atomics) == (8_192, pytest.approx(met))


def test_traffic_of_the_branches_of_a_tile_worked_by_hand() -> None:
    # 32 rows, one node: row, place, code and label of each; the branch goes out; both counts in and out once
    narrow = model(Level(32, 2, slots=1, features=4, known=3))["count_branches"]
    tile = 32 * (11 * 8 + 3 * 4) + 2 * (
        8 + 4
    )  # eleven numbers of 64 bits and three of 32 a lane; sizes of two branches
    assert narrow.bytes_read == 32 * (4 + 4 + 1 + 4) + 2 * 4 + tile
    assert narrow.bytes_written == 32 * 2 + 2 * 4
    assert (narrow.shared_atomics, narrow.global_atomics) == (32, 2 * 2 + 2)  # joined: two classes, and the rows
    # two branches x 40 classes > 64 totals: every row is added in global memory, and the sizes of the branches
    wide = model(Level(32, 40, slots=1, features=4, known=3))["count_branches"]
    assert (wide.shared_atomics, wide.global_atomics) == (0, 32 + 2)


def test_sectors_of_one_node_worked_by_hand() -> None:
    n = 1_000_000
    memory = sectors(Level(n, 2, slots=1))
    assert memory["count"] == n * (4 + 32)  # row word, record with the label in it
    assert memory["count_branches"] == n * (4 + 32 + 2)  # the same again; the branch goes out
    assert memory["move_rows"] == n * (4 + 2 + 4)
    assert memory["put_back"] == n * (4 + 4)
    cells = 28 * 256 * 2 * 4
    known = 28 * 255 * 2 * 4  # no missing values; all other cells are met
    assert memory["table"] == pytest.approx(2 * cells + 2 * known)
    assert FLOOR == 4 + 32 + 4


@pytest.mark.parametrize("classes", [2, 300])  # counted in shared memory or in global
def test_labels_of_scattered_rows_take_no_sector_beside_the_record(classes: int) -> None:
    memory = sectors(Level(10_240_000, classes, slots=4_096))  # 2,500 rows a slot
    assert memory["count"] == 10_240_000 * (4 + 32)
    assert memory["count_branches"] == 10_240_000 * (4 + 32 + 2)


# ---- the program ----


def cells(text: str) -> list[str]:
    return [cell.strip() for cell in text.strip("|").split("|")]


@pytest.mark.usefixtures("compiler")
def test_the_table_alone_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert traffic.main(["--rows", "100,400", "--classes", "1000"]) == 0
    out, err = capsys.readouterr()
    head, ruler, *lines = out.splitlines()
    assert err == ""
    assert len(set(cells(head))) == len(cells(head)) == len(cells(ruler)) == 12  # no heading stands twice
    assert [cells(one)[:3] for one in lines] == [["100", "1,000", "global"], ["400", "1,000", "global"]]


def test_the_model_of_many_rows_ends_the_whole_table_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], compiler: str
) -> None:
    monkeypatch.setattr(traffic, "ROWS", (100,))
    assert traffic.main(["--classes", "2"]) == 0
    rows = [(cells(one)[0], cells(one)[-1] == "not run") for one in capsys.readouterr().out.splitlines()[2:]]
    assert rows == [("100", False), ("11,000,000", True)]


@pytest.mark.parametrize(
    "given", [["--rows", "99"], ["--classes", "2,1"], ["--rows", "2000,"], ["--rows", "1e3"], ["--classes", "-7"]]
)
def test_wrong_sizes_are_refused_in_a_line(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as status:
        traffic.main(given)
    assert status.value.code == 2
    usage, error = capsys.readouterr().err.splitlines()
    assert usage.startswith("usage: python -m benchmarks.traffic ")
    assert f"argument {given[0]}: " in error
    assert "least" in error or given[1] == "-7"  # argparse takes that for an option


def test_without_a_compiler_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "")
    assert traffic.main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert "g++" in line
