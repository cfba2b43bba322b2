"""Zip archives whose members are stored as they are, aligned. May import everything below.

Every zip tool reads them. They are written and read here, not by `zipfile`, for three things that it lacks: the data of
a member begins at a multiple of 64 bytes, so that its arrays can be mapped into memory; an archive can be written to a
pipe; and the reader needs no trust, for it decompresses nothing, and every byte belongs to one member or the directory.

The records are those of PKWARE's APPNOTE.TXT 6.3.10: sections 4.3.7 (local header), 4.3.12 (directory), 4.3.14 to
4.3.16 (its end) and 4.5.3 (sizes beyond 32 bits).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TypeAlias

from gputree.core.checks import brief
from gputree.inspect.check import expect

Chunks: TypeAlias = Sequence[bytes | memoryview]  # the bytes of a member, in parts

ALIGNMENT = 64  # a cache line, and what the headers of NPY files are padded to
PADDING = 0xD935  # extra field by which Android's tools align members
WIDE = 0x0001  # extra field of the sizes and places that need more than 32 bits
FULL = 0xFFFFFFFF  # stands where such a number would
LARGE = FULL  # the least of them
MOST_MEMBERS = 0xFFFE  # no model has as many arrays, and more would need wider counts
LONGEST_NAME = 200
MIDNIGHT = 0x00210000  # 1980-01-01 00:00: the same content gives the same bytes
REGULAR = 0o100644 << 16  # mode of the files that unzip makes
PLAIN = 0  # method of members that are not compressed
TEXT = 0x0800  # the only flag that says nothing about the data: names are UTF-8

LOCAL = struct.Struct("<4s3H4L2H")  # mark, version, flags, method, time, crc, 2 sizes, 2 lengths
ENTRY = struct.Struct("<4s4H4L5H2L")  # mark, 2 versions, flags, method, time, crc, 2 sizes, 3 lengths, ..., place
END = struct.Struct("<4s4H2LH")  # mark, 2 disks, 2 counts, size and place of the directory, length of a comment
WIDE_END = struct.Struct("<4sQ2H2L4Q")  # mark, size of this, 2 versions, 2 disks, 2 counts, size and place
LOCATOR = struct.Struct("<4sLQL")  # mark, disk, place of WIDE_END, disks


@dataclass(frozen=True, slots=True)
class Member:
    """Where the data of a member lie: ``size`` bytes from ``start`` on, behind its header at ``place``."""

    name: str
    place: int
    start: int
    size: int
    crc: int
    stored: bool  # neither compressed nor encrypted


def write_archive(file: IO[bytes], members: Iterable[tuple[str, Chunks]]) -> None:
    """Write members to a file that is open for writing, also one that cannot seek."""
    place, directory = 0, []
    for name, chunks in members:
        size, crc = sum(map(len, chunks)), 0
        for chunk in chunks:
            crc = zlib.crc32(chunk, crc)
        head = local_header(Member(name, place, 0, size, crc, True))
        file.write(head)
        for chunk in chunks:
            file.write(chunk)
        directory.append(entry(Member(name, place, place + len(head), size, crc, True)))
        place += len(head) + size
    file.write(b"".join(directory))
    file.write(ending(len(directory), sum(map(len, directory)), place))


def local_header(member: Member) -> bytes:
    """What stands before the data: it ends at a multiple of ALIGNMENT."""
    wide = struct.pack("<2H2Q", WIDE, 16, member.size, member.size) if member.size >= LARGE else b""
    length = LOCAL.size + len(member.name) + len(wide) + 6
    padding = -(member.place + length) % ALIGNMENT
    extra = wide + struct.pack("<3H", PADDING, 2 + padding, ALIGNMENT) + bytes(padding)
    size = FULL if wide else member.size
    numbers = (PLAIN, MIDNIGHT, member.crc, size, size, len(member.name), len(extra))
    return LOCAL.pack(b"PK\3\4", 45 if wide else 20, 0, *numbers) + member.name.encode("ascii") + extra


def entry(member: Member) -> bytes:
    """A member in the directory."""
    wide = [member.size] * 2 * (member.size >= LARGE) + [member.place] * (member.place >= LARGE)
    extra = struct.pack(f"<2H{len(wide)}Q", WIDE, 8 * len(wide), *wide) if wide else b""
    size = FULL if member.size >= LARGE else member.size
    version = 45 if wide else 20
    numbers = (PLAIN, MIDNIGHT, member.crc, size, size, len(member.name), len(extra), 0, 0, 0, REGULAR)
    place = FULL if member.place >= LARGE else member.place
    unix = 3 << 8  # the system whose file modes these are
    return ENTRY.pack(b"PK\1\2", unix | version, version, 0, *numbers, place) + member.name.encode("ascii") + extra


def ending(count: int, size: int, place: int) -> bytes:
    """The end of an archive, after a directory of so many entries and bytes that begins at ``place``."""
    wide = b""
    if max(size, place) >= LARGE:
        wide = WIDE_END.pack(b"PK\6\6", WIDE_END.size - 12, 45, 45, 0, 0, count, count, size, place)
        wide += LOCATOR.pack(b"PK\6\7", 0, place + size, 1)
        place = FULL
    return wide + END.pack(b"PK\5\6", 0, 0, count, count, min(size, FULL), place, 0)


def read_directory(data: memoryview) -> dict[str, Member]:
    """The members of an archive by name, in the order in which they stand in it; their data are not read.

    Raises
    ------
    ValueError
        If these bytes are no such archive; the message says what is wrong.
    """
    count, place, stop = find_directory(data)
    expect(count <= MOST_MEMBERS, f"it has {count} members, more than any model")
    members, at = [], place
    for _ in range(count):
        member, at = read_entry(data, at, (place, stop))
        members.append(member)
    expect(at == stop, "its directory does not end where it says")
    members.sort(key=lambda member: member.place)
    begin = 0
    for member in members:
        expect(member.place == begin, f"member {member.name!r} does not follow the one before it")
        begin = member.start + member.size
    expect(begin == place, "there is something between its members and the directory")
    found = {member.name: member for member in members}
    expect(len(found) == count, "two members have one name")
    return found


def find_directory(data: memoryview) -> tuple[int, int, int]:
    """Number of entries of the directory, its place and its end."""
    stop = len(data) - END.size
    expect(
        stop >= 0 and bytes(data[stop : stop + 4]) == b"PK\5\6",
        "it does not end as a zip archive does: it is none, or was cut short",
    )
    _, *disks, here, count, size, place, comment = END.unpack_from(data, stop)
    expect(disks == [0, 0] and here == count and not comment, "the end of the archive is damaged")
    mark = stop - LOCATOR.size
    if mark >= 0 and bytes(data[mark : mark + 4]) == b"PK\6\7":
        _, first, stop, total = LOCATOR.unpack_from(data, mark)
        expect(stop == mark - WIDE_END.size and (first, total) == (0, 1), "the end of the archive is damaged")
        sign, length, _, _, *disks, here, wide_count, wide_size, wide_place = WIDE_END.unpack_from(data, stop)
        known = sign == b"PK\6\6" and length == WIDE_END.size - 12 and disks == [0, 0] and here == wide_count
        agree = (count in (wide_count, 0xFFFF), size in (wide_size, FULL), place in (wide_place, FULL))
        expect(known and all(agree), "the end of the archive is damaged")
        count, size, place = wide_count, wide_size, wide_place
    expect(place + size == stop, "its directory is not where the end of the archive says")
    return count, place, stop


def read_entry(data: memoryview, at: int, span: tuple[int, int]) -> tuple[Member, int]:
    """A member, from its entry at ``at`` in a directory that spans these bytes, and where the next entry begins."""
    directory, stop = span
    expect(at + ENTRY.size <= stop, "its directory is cut short")
    mark, _, _, flags, method, time, crc, packed, size, *lengths, _, _, _, place = ENTRY.unpack_from(data, at)
    text = at + ENTRY.size
    expect(mark == b"PK\1\2" and text + sum(lengths) <= stop, "its directory is damaged")
    name = bytes(data[text : text + min(lengths[0], LONGEST_NAME + 1)])
    if not name.isascii() or not 0 < len(name) <= LONGEST_NAME:
        raise ValueError(
            f"a member has the name {brief(name)}, which is no text of at most {LONGEST_NAME} ASCII characters"
        )
    extra = data[text + lengths[0] : text + sum(lengths[:2])]
    size, packed, place = widened([size, packed, place], extra, name)
    own = (flags, method, time, crc, packed, size)
    start = locate(data, place, name, own, directory)
    stored = method == PLAIN and not flags & ~TEXT and packed == size
    return Member(name.decode("ascii"), place, start, packed, crc, stored), text + sum(lengths)


def locate(data: memoryview, place: int, name: bytes, own: tuple[int, ...], limit: int) -> int:
    """Where the data of a member begin, if the header at ``place`` agrees with the directory and all is before it."""
    what = f"member {name.decode('ascii')!r}"
    expect(place + LOCAL.size <= limit, f"{what} lies behind the directory")
    mark, _, *record, packed, size, length, more = LOCAL.unpack_from(data, place)
    text = place + LOCAL.size
    start: int = text + length + more
    expect(mark == b"PK\3\4" and start <= limit, f"the header of {what} is damaged")
    size, packed = widened([size, packed], data[text + length : start], name)
    expect(
        bytes(data[text : text + length]) == name and (*record, packed, size) == own,
        f"the header of {what} does not agree with the directory",
    )
    expect(start + packed <= limit, f"{what} lies behind the directory")
    return start


def widened(numbers: list[int], extra: memoryview, name: bytes) -> list[int]:
    """The numbers, those that are FULL from the extra field where they stand in order."""
    wide: list[int] = []
    for kind, content in extra_fields(extra, name):
        if kind == WIDE:
            wide = [number for (number,) in struct.iter_unpack("<Q", content[: len(content) & ~7])]
        elif kind == PADDING:
            expect(not any(content[2:]), f"the padding of member {name.decode('ascii')!r} is not empty")
    return [wide.pop(0) if number == FULL and wide else number for number in numbers]


def extra_fields(extra: memoryview, name: bytes) -> Iterator[tuple[int, memoryview]]:
    """Numbers and contents of extra fields."""
    at = 0
    while at < len(extra):
        expect(at + 4 <= len(extra), f"an extra field of member {name.decode('ascii')!r} is cut short")
        kind, size = struct.unpack_from("<2H", extra, at)
        at += 4 + size
        expect(at <= len(extra), f"an extra field of member {name.decode('ascii')!r} is cut short")
        yield kind, extra[at - size : at]


def content(data: memoryview, member: Member) -> memoryview:
    """The data of a member.

    Raises
    ------
    ValueError
        If they are compressed, or have changed since they were written.
    """
    expect(member.stored, f"member {member.name!r} is compressed or encrypted; members must be stored as they are")
    own = data[member.start : member.start + member.size]
    expect(zlib.crc32(own) == member.crc, f"member {member.name!r} is damaged: its checksum is another")
    return own
