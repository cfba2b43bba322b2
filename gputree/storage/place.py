"""Where a model file lies: written whole or not at all, read or mapped. May import nothing of gputree."""

from __future__ import annotations

import errno
import mmap
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeAlias

Path_: TypeAlias = "str | os.PathLike[str]"


def require_place(path: Path_, *inputs: Path_) -> None:
    """Refuse a path that no file can be written to, before the work that the file is to hold.

    Raises
    ------
    OSError
        If the path is a folder, lies in none that is there and may be written to, or is one of the inputs.
    """
    target, name = Path(path), os.fspath(path)
    if any(target.exists() and os.path.exists(other) and target.samefile(other) for other in inputs):
        raise FileExistsError(errno.EEXIST, "this file is read, so it is not written over; name another", name)
    folder = target.parent
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file in it", name)
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {folder}; make it, or write elsewhere", name)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"the folder {folder} may not be written to; write elsewhere", name)


@contextmanager
def whole_file(path: Path_) -> Iterator[IO[bytes]]:
    """A file that takes its place when it is whole, or never: of several writers at once, the last one wins."""
    require_place(path)
    target = Path(os.path.realpath(path))  # a link stays a link to the file that it names
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        if target.exists() and not target.is_file():  # a pipe or a device is written to, never replaced
            with open(target, "wb") as stream:
                yield stream
            return
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, part)
        os.replace(part, target)
    except OSError as error:
        if error.errno is None:
            raise
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        part.unlink(missing_ok=True)


def read_file(path: Path_) -> memoryview:
    """All bytes of a file, or of what comes through a pipe.

    Raises
    ------
    OSError
        If it cannot be read, or is a device, which may never end.
    """
    with open(path, "rb") as file:
        if stat.S_ISCHR(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.ENODEV, "this is a device and holds no file; name a file", os.fspath(path))
        return memoryview(file.read())


def map_file(path: Path_) -> memoryview:
    """All bytes of a file, read from it when they are looked at; processes that map the same file share them.

    Raises
    ------
    OSError
        If it cannot be read, or is nothing that can be mapped, such as a pipe.
    """
    mode = os.stat(path).st_mode
    remedy = "load it with mmap=False"
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a folder cannot be opened, which says what it is
        raise OSError(errno.ENODEV, f"only a file can be mapped, no pipe or device; {remedy}", os.fspath(path))
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return memoryview(b"")  # nothing to map
        try:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError, OverflowError) as error:
            number = getattr(error, "errno", None) or errno.ENODEV
            raise OSError(number, f"it cannot be mapped ({error}); {remedy}", os.fspath(path)) from error
