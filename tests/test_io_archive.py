"""The archive of a model file: other tools read it, and nothing that only looks like one is believed."""

from __future__ import annotations

import io
import json
import os
import resource
import struct
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gputree.io import load, save
from gputree.storage import archive as own
from gputree.storage.arrays import as_npy, from_npy
from tests.model_files import DATA, MODELS, made, mixed, npy, parts, penguins, same_model, write


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("io") / "model"
    save(mixed(), path, compact=False)
    return path


def refused(path: Path, message: str) -> None:
    for mapped in (False, True):
        with pytest.raises(ValueError, match="is no model file that this version reads: ") as caught:
            load(path, mmap=mapped)
        assert message in str(caught.value)


# What is written.


@pytest.mark.parametrize("name", MODELS)
def test_other_tools_read_it_and_every_array_is_aligned(name: str, tmp_path: Path) -> None:
    save(made(name)[0], tmp_path / "model")
    data = (tmp_path / "model").read_bytes()
    with zipfile.ZipFile(tmp_path / "model") as archive:
        assert archive.testzip() is None
        for info in archive.infolist():
            assert (info.compress_type, info.flag_bits, info.create_system) == (zipfile.ZIP_STORED, 0, 3)
            assert (info.date_time, info.external_attr >> 16) == ((1980, 1, 1, 0, 0, 0), 0o100644)
            lengths = struct.unpack_from("<2H", data, info.header_offset + 26)
            start = info.header_offset + 30 + sum(lengths)
            assert start % 64 == 0
            extra = data[start - lengths[1] : start]
            assert struct.unpack_from("<3H", extra) == (0xD935, len(extra) - 4, 64)  # well formed
            if info.filename != "header.json":
                array = np.load(io.BytesIO(archive.read(info)), allow_pickle=False)
                assert (start + info.file_size - array.nbytes) % 64 == 0


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    model = mixed()
    save(model, tmp_path / "a")
    save(model, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("limit", [1, 140, 2_000, 6_000])
def test_sizes_and_places_of_more_than_32_bits(limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if 32 bits ended much earlier, all numbers from there on are written as 64 bits; `zipfile` reads them too."""
    monkeypatch.setattr(own, "LARGE", limit)
    model = mixed()
    save(model, tmp_path / "model", compact=False)
    same_model(model, load(tmp_path / "model", mmap=True), penguins()[0])
    with zipfile.ZipFile(tmp_path / "model") as archive:
        assert archive.testzip() is None
        assert any(info.extra for info in archive.infolist())
    data = (tmp_path / "model").read_bytes()
    for place in range(len(data) - 1_500, len(data), 3):  # the directory and its end
        (tmp_path / "changed").write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            assert load(tmp_path / "changed").fingerprint() == model.fingerprint()
        except ValueError as error:
            assert "is no model file" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(0),
        np.zeros((3, 0), np.uint8),
        np.arange(6.0).reshape(2, 3),
        np.array([True, False]),
        np.array(["ü", "abc"]),
        np.array([b"ab", b""]),
        np.array(["2020-01-31"], "M8[ns]"),
        np.arange(3).astype(">i2"),
        np.array(3),
    ],
    ids=lambda array: f"{array.dtype.str} {array.shape}",
)
def test_arrays_are_npy_files(array: Any) -> None:
    data = b"".join(as_npy(array))
    found = np.load(io.BytesIO(data), allow_pickle=False)
    for again in (found, from_npy(memoryview(data), "it"), from_npy(memoryview(npy(array)), "it")):
        np.testing.assert_array_equal(again, array)
        assert (again.dtype.str, again.shape) == (array.dtype.str, array.shape)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93NUMPY\x01\x00",
        npy(np.zeros(3))[:-1],
        npy(np.zeros(3)) + b"\0",
        npy(np.zeros(3)).replace(b"\x01\x00v", b"\x02\x00v", 1),
        npy(np.zeros(3)).replace(b"NUMPY\x01", b"NUMPY\x02", 1),
        npy(np.zeros(3)).replace(b"<f8", b"|O8", 1),
        npy(np.zeros(3)).replace(b"<f8", b"<f9", 1),
        npy(np.zeros(3)).replace(b"<f8", b"<V8", 1),
        npy(np.zeros(3)).replace(b"<f8", b"<U0", 1),
        npy(np.zeros(3)).replace(b"False", b"True ", 1),
        npy(np.zeros(3)).replace(b"(3,)", b"(-3)", 1),
        npy(np.zeros(3)).replace(b"(3,)", b"f()", 1),
        npy(np.zeros(3)).replace(b"(3,), }       ", b"(999999999999,", 1),
        npy(np.zeros(3)).replace(b"<f8", b"<M8", 1).replace(b"'shape'", b"'shapf'", 1),
        npy(np.array(["a"])).replace(b"<U1'", b"<U99999999'"[:4], 1),
    ],
    ids=range(16),
)
def test_arrays_that_are_none(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"it has no header|it is no array|it holds|no array type|is not allowed"):
        from_npy(memoryview(data), "it")


# What is not read.


@pytest.mark.parametrize("data", [b"", b"PK", b"not a model", b"\x00" * 5000, b"PK\5\6" + bytes(18), b"PK\5\6" * 100])
def test_what_is_no_archive_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    refused(tmp_path / "x", "")


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    data = (DATA / "format_2.gputree").read_bytes()
    path = tmp_path / "short"
    path.write_bytes(data)
    for size in range(len(data) - 1, -1, -1):
        os.truncate(path, size)
        for mapped in (False, True) if size % 16 == 0 else (False,):
            with pytest.raises(ValueError, match="is no model file that this version reads: it does not end as a zip"):
                load(path, mmap=mapped)


def test_a_file_with_something_before_or_behind_is_refused(saved: Path, tmp_path: Path) -> None:
    data = saved.read_bytes()
    (tmp_path / "x").write_bytes(data + b"\0")
    refused(tmp_path / "x", "it does not end as a zip archive does")
    (tmp_path / "x").write_bytes(b"\0" + data)
    refused(tmp_path / "x", "its directory is not where the end of the archive says")
    (tmp_path / "x").write_bytes(data + data)
    refused(tmp_path / "x", "its directory is not where the end of the archive says")
    (tmp_path / "x").write_bytes(data[:-2] + b"\3\0abc")
    refused(tmp_path / "x", "it does not end as a zip archive does")


def archive_of(path: Path, members: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)


def members_of(path: Path) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressed_members_are_refused(method: int, saved: Path, tmp_path: Path) -> None:
    archive_of(tmp_path / "x", members_of(saved), method)
    refused(tmp_path / "x", "member 'header.json' is compressed or encrypted; members must be stored as they are")
    with zipfile.ZipFile(tmp_path / "x", "w") as archive:
        for name, data in members_of(saved):
            archive.writestr(name, data, method if name == "forest/low.npy" else zipfile.ZIP_STORED)
    refused(tmp_path / "x", "member 'forest/low.npy' is compressed or encrypted")


def test_bombs_are_refused_before_they_are_read(saved: Path, tmp_path: Path) -> None:
    """Deflated zeros, a bomb inside a bomb, huge sizes that are only claimed, members that lie in one another."""
    begin, peak = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    archive_of(tmp_path / "x", [("header.json", b" " * 10**8)], zipfile.ZIP_DEFLATED)
    refused(tmp_path / "x", "is compressed or encrypted")
    inner = (tmp_path / "x").read_bytes()
    archive_of(tmp_path / "x", [("header.json", inner)])
    refused(tmp_path / "x", "its header is no text in UTF-8")
    data = saved.read_bytes()
    at = data.index(b"PK\1\2")
    for size in (2**31, 2**32 - 2, 2**32 - 1):
        claimed = bytearray(data)
        struct.pack_into("<2L", claimed, at + 20, size, size)
        struct.pack_into("<2L", claimed, 18, size, size)
        (tmp_path / "x").write_bytes(claimed)
        refused(tmp_path / "x", "member 'header.json' lies behind the directory")
    inside = bytearray(data)
    struct.pack_into("<L", inside, data.index(b"PK\1\2", at + 4) + 42, 0)  # the second member lies where the first does
    (tmp_path / "x").write_bytes(inside)
    refused(tmp_path / "x", "the header of member 'forest/roots.npy' does not agree with the directory")
    assert time.perf_counter() - begin < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 500_000  # kB


def test_an_array_larger_than_the_file_is_refused(saved: Path, tmp_path: Path) -> None:
    header, arrays = parts(saved)
    write(tmp_path / "x", header, arrays)
    for text in (f"({2**39},)", f"({2**30}, {2**30})", f"(0, {2**49})", "(0, 999999999999999, 999999999999999)"):
        head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {text}, }}\n".encode()
        huge = b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head
        changed = [(n, huge if n == "forest/low.npy" else data) for n, data in members_of(tmp_path / "x")]
        archive_of(tmp_path / "y", changed)
        refused(tmp_path / "y", "")


def test_many_members_are_refused_at_once(tmp_path: Path) -> None:
    entry = own.entry(own.Member("x", 0, 0, 0, 0, True))
    for count in (10, 60_000):
        local = own.local_header(own.Member("x", 0, 0, 0, 0, True))
        (tmp_path / "x").write_bytes(local + entry * count + own.ending(count, len(entry) * count, len(local)))
        begin = time.perf_counter()
        refused(tmp_path / "x", "member 'x' does not follow the one before it")
        assert time.perf_counter() - begin < 10
    wide = own.WIDE_END.pack(b"PK\6\6", 44, 45, 45, 0, 0, 10**9, 10**9, len(entry), len(local))
    wide += own.LOCATOR.pack(b"PK\6\7", 0, len(local) + len(entry), 1)
    end = own.END.pack(b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, own.FULL, own.FULL, 0)
    (tmp_path / "x").write_bytes(local + entry + wide + end)
    refused(tmp_path / "x", "it has 1000000000 members, more than any model")


@pytest.mark.parametrize(
    "name",
    ["../low.npy", "/etc/passwd", "forest/../low.npy", "C:\\low.npy", "forest/low.npy/", "classes/1.npy", "forest/"],
)
def test_members_of_other_names_are_refused(name: str, saved: Path, tmp_path: Path) -> None:
    archive_of(tmp_path / "x", [*members_of(saved), (name, npy(np.zeros(3)))])
    before = sorted(os.listdir(tmp_path))
    refused(tmp_path / "x", "it has the unknown member")
    header, arrays = parts(saved)
    write(tmp_path / "x", header, {**arrays, name: np.zeros(3)})
    refused(tmp_path / "x", "it has the unknown member")
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("name", [b"f\xffrest", "förest".encode()])
def test_names_that_are_no_ascii_are_refused(name: bytes, saved: Path, tmp_path: Path) -> None:
    data = saved.read_bytes().replace(b"forest/kind.npy", name.ljust(15, b"x"))
    (tmp_path / "x").write_bytes(data)
    refused(tmp_path / "x", "which is no text of at most 200 ASCII characters")


def test_a_name_that_comes_twice_is_refused(saved: Path, tmp_path: Path) -> None:
    """Readers differ on which of the two counts."""
    with pytest.warns(UserWarning, match="Duplicate name"):
        archive_of(tmp_path / "x", [*members_of(saved), members_of(saved)[1]])
    refused(tmp_path / "x", "two members have one name")


def test_members_that_are_absent_or_changed_places(saved: Path, tmp_path: Path) -> None:
    members = members_of(saved)
    archive_of(tmp_path / "x", members[1:])
    refused(tmp_path / "x", "it has no member header.json")
    header, arrays = parts(saved)
    for name in list(arrays):
        left = {n: a for n, a in arrays.items() if n != name}
        write(tmp_path / "x", header, left)
        refused(tmp_path / "x", f"it has no member {name}")
    archive_of(tmp_path / "x", [*members[1:], members[0]])  # the header may stand anywhere
    same_model(load(saved), load(tmp_path / "x"), penguins()[0])


def test_damaged_data_with_repaired_checksums_are_refused(saved: Path, tmp_path: Path) -> None:
    """Arrays that were swapped, or edited: the checksums of the archive fit, the fingerprint does not."""
    header, arrays = parts(saved)
    changes: list[Callable[[dict[str, Any]], Any]] = [
        lambda a: a.update({"forest/missing.npy": a["forest/unseen.npy"] ^ 1}),
        lambda a: a.update({"forest/low.npy": np.nextafter(a["forest/low.npy"], 0)}),
        lambda a: a.update(
            {"forest/impurity.npy": a["forest/score.npy"], "forest/score.npy": a["forest/impurity.npy"]}
        ),
        lambda a: a.update({"forest/stats.npy": 2 * a["forest/stats.npy"]}),
        lambda a: a.update({"forest/kind.npy": a["forest/kind.npy"][:-1]}),
    ]
    for change in changes:
        changed = dict(arrays)
        change(changed)
        write(tmp_path / "x", header, changed, repair=False)
        refused(tmp_path / "x", "its fingerprint is not that of its arrays")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "its header is no JSON"),
        (b"[]", "its header is [], which is no dict"),
        (b"{", "its header is no JSON"),
        (b"[" * 100_000, "its header is nested too deeply"),
        (b'{"a":' * 100_000, "its header is nested too deeply"),
        (b'{"format": 2}', "its header has no 'fingerprint'"),
        (b'{"format": NaN}', "its header holds NaN, which is no JSON"),
        (b'{"format": -Infinity}', "its header holds -Infinity, which is no JSON"),
        (b'{"format": 1e999}', "its header holds the number '1e999', which is no float64"),
        (b'{"format": ' + b"1" * 5000 + b"}", "its header holds a number of 5000 digits"),
        (b'{"format": ' + b"1" * 10**7 + b"}", "its header holds a number of 10000000 digits"),
        (b'{"format": 2, "format": 2}', "its header has two fields of one name"),
        (b'{"format": "\xff"}', "its header is no text in UTF-8"),
        (b"\xef\xbb\xbf{}", "its header is no JSON"),
        ('{"format": 2}'.encode("utf-16"), "its header is no text in UTF-8"),
        (b'{"format": 2} {}', "its header is no JSON"),
        (b'{"format": 2,}', "its header is no JSON"),
        (b"{}", "its header has no 'format'"),
    ],
    ids=lambda value: str(value[:20]) if isinstance(value, bytes) else "",
)
def test_a_header_that_is_none_is_refused(text: bytes, message: str, tmp_path: Path) -> None:
    archive_of(tmp_path / "x", [("header.json", text)])
    refused(tmp_path / "x", message)


def test_a_header_written_by_another_program(saved: Path, tmp_path: Path) -> None:
    """Other spacing, other order of the fields, and letters that need no escape."""
    header, arrays = parts(saved)
    text = json.dumps(dict(reversed(header.items())), ensure_ascii=False, separators=(",", ":")).encode()
    archive_of(tmp_path / "x", [("header.json", text), *((name, npy(array)) for name, array in arrays.items())])
    same_model(load(saved), load(tmp_path / "x", mmap=True), penguins()[0])


def test_padding_is_empty(saved: Path, tmp_path: Path) -> None:
    data = bytearray(saved.read_bytes())
    data[60] = 1
    assert zlib.crc32(data[64:128]) == zlib.crc32(saved.read_bytes()[64:128])
    (tmp_path / "x").write_bytes(data)
    refused(tmp_path / "x", "the padding of member 'header.json' is not empty")
