"""Tables from files: what a cell means, and that a file means the same whatever reads it."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import compute

from gputree.core.schema import Feature, Kind
from gputree.readers import delimited, regular
from gputree.readers.cells import InputError, Spellings, as_numbers, booleans_as_known
from gputree.readers.learner import parse_value
from gputree.readers.tables import is_parquet, read_table

LIBRARIES = ("polars", "pyarrow")


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(data: bytes, library: str | None, piece: int = 2**20) -> tuple[Any, list[bool]]:
    """What a file holds, types and all, or the message; and whether the library has split each piece it was given."""
    Path("t.csv").write_bytes(data)
    split, given = regular.Splitter.split, []

    def noted(self: regular.Splitter, text: bytes, skip: int) -> regular.Frame | None:
        frame = split(self, text, skip)
        given.append(frame is not None)
        return frame

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "SMALL", -1)
        patch.setattr(delimited, "library", lambda: library)
        patch.setattr(regular, "PIECE", piece)
        patch.setattr(regular.Splitter, "split", noted)
        try:
            table = read_table("t.csv")
        except InputError as error:
            return str(error), given
    return (table.columns, [(a.dtype.str, list(map(repr, a.tolist()))) for a in table.arrays]), given


# name -> the file, and whether a frame library may split it as a whole
FILES: dict[str, tuple[bytes, bool]] = {
    "numbers": (b"a,b\n1,2.5\n-3e4,+7\n.5,5.\n", True),
    "no last line feed": (b"a,b\n1,2\n3,4", True),
    "many last line feeds": (b"a,b\n1,2\n3,4\n\n\n", False),
    "missing": (b"a,b,c\n1,,NA\n,NaN,NULL\nnull,N/A,nan\n", True),
    "quotes": (b'"a","b"\n"1","x"\n"2","say ""hi"""\n"","y"\n', True),
    "embedded": (b'a,b\n1,"x,y\nz"\n2,"\n\n"\n', True),
    "embedded, with returns between lines": (b'a,b\r\n1,"x\ny"\r\n2,"z"\r\n', True),
    "embedded returns": (b'a,b\n1,"x\r\ny"\n2,"\r"\n', False),
    "returns": (b"a,b\r\n1,x\r\n2,y\r\n", True),
    "returns alone": (b"a,b\r1,x\r2,y\r", False),
    "mark": (b"\xef\xbb\xbfa,b\n1,x\n", True),
    "two marks": (b"\xef\xbb\xbf\xef\xbb\xbfa,b\n1,x\n", False),
    "a mark within": (b"a,b\n\xef\xbb\xbf1,x\n", False),
    "semicolons": (b"a;b\n1,5;x\n2;y,z\n", True),
    "tabs": (b"a\tb\n1\tx y\n2\t'q\n", True),
    "bars": (b"a|b\n1|x;y\n2|z\n", True),
    "blanks before cells": (b"a, b,  c\n 1, x,  NA\n  2,y , 3\n", True),
    "blanks before quotes": (b'a,b\n1, "x,y"\n2,z\n', False),
    "blanks inside quotes": (b'a,b\n1," NA"\n2," x"\n', True),
    "blanks around numbers": (b"a,b\n1 ,\t2\n3\xc2\xa0,4\x0b\n", True),
    "a line of blanks": (b"a\n1\n  \n2\n", False),
    "blank lines": (b"a,b\n\n1,2\n\n3,4\n", False),
    "underscores": (b"a,b\n1_000,x\n2,y\n", True),
    "hex": (b"a,b\n0x1F,0b1\n2,3\n", True),
    "infinity": (b"a,b\ninf,-Infinity\n+INF,1e999\n", True),
    "not a number": (b"a,b\nNAN,-nan\n1,2\n", True),
    "tiny": (b"a\n1e-999\n4.9e-324\n2.4703282292062328e-324\n-0.0\n", True),
    "digits of other scripts": ("a,b\n\u0661,é\n2,ü\n".encode(), True),
    "numbers and later text": (b"a,b\n" + b"1,2\n" * 30 + b"1,x\n", True),
    "ragged": (b"a,b\n1,2\n3\n4,5\n", False),
    "ragged, the right number of commas": (b"a,b\n1,2,3\n4\n", False),
    "too wide": (b"a,b\n1,2\n3,4,5\n", False),
    "quote inside a cell": (b'a,b\n5" pipe,x\n6,y\n', False),
    "text after quotes": (b'a,b\n"5"x,1\n', False),
    "open quotes": (b'a,b\n1,"x\n2,y\n', False),
    "empty quotes": (b'a\n""\n1\n', True),
    "blank lines of one column": (b"\na\n1\n\n\n2\n\n", False),
    "no rows": (b"a,b\n", True),
    "no text": (b"a,b\n\xff,1\n", False),
    "zero bytes": (b"a,b\n\0,1\n", False),
    "a long cell": (b"a,b\n" + b"x" * 140_000 + b",1\n", False),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_means_the_same_whatever_reads_it(name: str) -> None:
    data, is_regular = FILES[name]
    expected, _ = read(data, None)
    for library in LIBRARIES:
        found, split = read(data, library)
        assert found == expected
        assert (bool(split) and all(split)) == is_regular
        for piece in (1, 5, 16):
            assert read(data, library, piece)[0] == expected


def cell_by_cell(path: str) -> tuple[Any, Any]:
    """What a file holds by the rule of the head of `gputree.readers.delimited`, one cell after the other."""
    with open(path, newline="", encoding="utf-8") as file:
        names, *rows = filter(None, csv.reader(file, skipinitialspace=True, strict=True))
    arrays = []
    for cells in zip(*rows, strict=True):
        known = [None if cell in ("", "NA", "N/A", "NaN", "nan", "NULL", "null") else cell for cell in cells]
        try:
            assert not any("_" in cell for cell in cells)
            values = [float("nan") if cell is None else float(cell) for cell in known]
        except (ValueError, AssertionError):
            arrays.append(("|O", list(map(repr, known))))
        else:
            arrays.append(("<f8", list(map(repr, values))))
    return tuple(names), arrays


@pytest.mark.parametrize("library", [None, *LIBRARIES])
@pytest.mark.parametrize("piece", [500, 2**20])
def test_a_mixed_file_is_read_as_cell_by_cell(library: str | None, piece: int) -> None:
    """Thousands of categories, quotes, commas, line feeds, blank cells, text that comes late, numbers as text."""
    words = ["red", "", "two words", 'say ""hi""', "a,b", "l\nm", " lead", "NA", "null", "é", "0x1", "'"]
    rows = []
    for i in range(6000):
        word = words[i * 7 % 12]
        late, number = "late" if i == 4500 else i % 9, "" if i % 10 == 3 else i / 8
        rows.append(f'{i},key {i * 17 % 5000},"{word}",{number},{late},{i % 3 or "NaN"},{i % 2 == 0},')
    data = "\n".join(["id,key,word,x,late,code,flag,nothing", *rows, ""]).encode()
    found, _ = read(data, library, piece)
    assert found == cell_by_cell("t.csv")
    assert [kind for kind, _ in found[1]] == ["<f8", "|O", "|O", "<f8", "|O", "<f8", "|O", "<f8"]


def test_a_blank_line_of_one_column_is_a_missing_cell() -> None:
    """But at the end, where editors leave one."""
    Path("t.csv").write_text("\na\n1\n\n3\n\n\n")
    np.testing.assert_array_equal(read_table("t.csv").arrays[0], [1, np.nan, 3])


def test_equal_cells_are_one_object() -> None:
    read(b"a\nx\ny\nx\n", None)
    first, _, last = read_table("t.csv").arrays[0]
    assert first is last


def test_a_number_is_the_category_that_python_reads_it_as() -> None:
    known = Spellings((2007.0, 3))
    assert [known[text] for text in ("2007", "2007.00", "3.0", "3e0", "", "NA")] == [2007.0, 2007.0, 3, 3, None, None]
    assert [known[text] for text in ("4", "x", "3_0")] == ["4", "x", "3_0"]
    assert Spellings(("1",))["1.0"] == "1.0"
    assert Spellings((True, False))["1"] == "1"


CELLS = st.sampled_from(
    [
        *(
            "1",
            "2.5",
            "-3e4",
            "",
            "NA",
            " 4",
            "5 ",
            "x",
            "a,b",
            "l\nm",
            "l\r\nm",
            'q"q',
            "1_0",
            "0x1",
            "inf",
            "é",
            "\ufeffz",
        ),
        *("\u0661", "\xa01", "\t", " ", "a;b", "1,5", "1" * 30, "1e999", "#", "'"),
    ]
)


@st.composite
def tables(draw: st.DrawFn) -> bytes:
    """Files that the csv module has written, some of them spoilt."""
    n, file = draw(st.integers(1, 4)), io.StringIO(newline="")
    writer = csv.writer(
        file,
        delimiter=draw(st.sampled_from(",;\t|")),
        lineterminator=draw(st.sampled_from(["\n", "\r\n"])),
        quoting=draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
    )
    pool = draw(st.lists(CELLS, min_size=1, max_size=5))
    writer.writerow([f"c{i}" for i in range(n)])
    writer.writerows(draw(st.lists(st.lists(st.sampled_from(pool), min_size=n, max_size=n), max_size=8)))
    data = file.getvalue().encode()
    place = draw(st.integers(0, len(data)))
    return data[:place] + draw(st.sampled_from([b"", b"", b"", b" ", b"\n", b'"', b",", b"\r", b"\xff"])) + data[place:]


TEXT = st.text('ab12,;"\n\r \t_.-\ufeffé\0|', max_size=30).map(lambda text: f"x,y\n{text}".encode())


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables() | TEXT, st.sampled_from(LIBRARIES), st.sampled_from([3, 17, 2**20]))
def test_any_file_means_the_same_whatever_reads_it(data: bytes, library: str, piece: int) -> None:
    assert read(data, library, piece)[0] == read(data, None)[0]


def by_polars(text: str) -> float | None:
    return polars.Series([text]).cast(polars.Float64, strict=False).item()  # type: ignore[no-any-return]


def by_pyarrow(text: str) -> float | None:
    try:
        return compute.cast(pyarrow.scalar(text), pyarrow.float64()).as_py()  # type: ignore[no-any-return]
    except pyarrow.ArrowInvalid:
        return None


@pytest.mark.parametrize("cast", [by_polars, by_pyarrow])
@settings(max_examples=1000, deadline=None)
@given(
    st.text("0123456789+-.eE", max_size=9)
    | st.text("01+-.eE_infatyINFATYxX \t\xa0\u0661", max_size=7)
    | st.floats(allow_nan=False).map(repr)
    | st.decimals(allow_nan=False, allow_infinity=False).map(str)
)
def test_no_library_reads_a_number_that_python_does_not(cast: Callable[[str], float | None], text: str) -> None:
    found = cast(text)
    if found is not None:
        np.testing.assert_array_equal(as_numbers([text]), [found])


def test_booleans_as_files_write_them() -> None:
    assert [Spellings((False, True))[text] for text in ("true", "TRUE", "True", "false")] == [True, True, True, False]
    assert "true" not in Spellings(("True",))
    text = Feature("a", Kind.CATEGORICAL, ("false", "true", "x"))
    assert booleans_as_known([True, None, False, "x"], text) == ["true", None, "false", "x"]
    assert booleans_as_known([True, None], Feature("a")) == [True, None]


@pytest.mark.parametrize("library", [None, *LIBRARIES])
def test_a_cell_that_is_no_number_is_named_with_its_row(library: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "CHUNK_ROWS", 3)
    monkeypatch.setattr(delimited, "SMALL", -1)
    monkeypatch.setattr(delimited, "library", lambda: library)
    monkeypatch.setattr(regular, "PIECE", 6)
    Path("t.csv").write_text("a\n" + "1\n" * 7 + "oops\n")
    with pytest.raises(
        InputError, match=r"holds 'oops' in column 'a', row 7 \(counted from 0\), where the model knows numbers"
    ):
        read_table("t.csv", {"a": Feature("a")})


def test_numbers_and_text_beyond_one_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "CHUNK_ROWS", 3)
    rows = [f"{i},{'x' if i == 8 else i},{'' if i % 2 else i}" for i in range(10)]
    Path("t.csv").write_text("\n".join(["a,b,c", *rows, ""]))
    table = read_table("t.csv")
    np.testing.assert_array_equal(table.arrays[0], np.arange(10.0))
    assert table.arrays[1].tolist() == [*map(str, range(8)), "x", "9"]
    np.testing.assert_array_equal(table.arrays[2], [0, np.nan, 2, np.nan, 4, np.nan, 6, np.nan, 8, np.nan])


def test_small_files_need_no_frame_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "library", lambda: pytest.fail("a frame library was asked for"))
    Path("t.csv").write_text("a\n1\n")
    assert read_table("t.csv").arrays[0].tolist() == [1.0]


def test_the_csv_module_reads_on_where_a_file_gets_odd() -> None:
    rows = b"1,x\n" * 10 + b'2," y"\n' * 10
    (columns, arrays), split = read(b"a,b\n" + rows + b'3, "z"\n' + rows, "polars", 20)
    assert columns == ("a", "b")
    assert [len(cells) for _, cells in arrays] == [41, 41]
    assert split.count(True) > 4
    assert split.count(False) == 1  # numbers and text are read in one pass


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("gzip", gzip.compress),
        ("bzip2", bz2.compress),
        ("xz", lzma.compress),
        ("zstd", lambda d: b"\x28\xb5\x2f\xfd" + d),
    ],
)
def test_a_compressed_file_is_recognised(name: str, compress: Callable[[bytes], bytes]) -> None:
    Path("t.csv.z").write_bytes(compress(b"a,b\n1,2\n"))
    with pytest.raises(InputError, match=rf"t\.csv\.z is compressed \({name}\); decompress it first"):
        read_table("t.csv.z")


def test_a_sheet_is_no_table() -> None:
    with zipfile.ZipFile("t.xlsx", "w") as archive:
        archive.writestr("[Content_Types].xml", "")
    with pytest.raises(InputError, match=r"t\.xlsx is a zip archive; unpack it, or save the sheet as CSV"):
        is_parquet("t.xlsx")


@pytest.mark.parametrize(("text", "value"), [("false", False), ("TRUE", True), ("None", None), ("1", 1), ("1.0", 1.0)])
def test_words_of_the_command_line(text: str, value: Any) -> None:
    found = parse_value("--raising", text)
    assert found == value
    assert type(found) is type(value)
