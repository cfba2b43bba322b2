"""Find the CUDA text of the kernels and splice its headers.

Imports the standard library only, so that the tests can read kernels on a machine without a GPU.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

_PACKAGE = Path(__file__).resolve().parents[1]
_INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')
_PRAGMA_ONCE = re.compile(r"\s*#\s*pragma\s+once\b")


def kernels_folder() -> Path:
    """Return the folder that holds the ``.cu`` and ``.cuh`` files.

    A wheel carries them inside the package; in a checkout, and so in an editable install, they lie beside it.

    Returns
    -------
    Path
        An absolute path.

    Raises
    ------
    FileNotFoundError
        When neither place holds kernels.

    Examples
    --------
    >>> kernels_folder().name
    'kernels'
    """
    places = (_PACKAGE / "kernels", _PACKAGE.parent / "kernels")
    for place in places:
        # A header must lie in it: beside an installed package, a folder of this name may belong to somebody else.
        if any(place.glob("*.cuh")):
            return place
    looked = " and ".join(map(str, places))
    raise FileNotFoundError(f"gputree was installed without its kernels/ folder (looked in {looked}); reinstall it")


def read_kernel(name: str, instead: Mapping[str, str] = MappingProxyType({})) -> str:
    r"""Return the text of a kernel file with every ``#include "..."`` replaced by the text of that header.

    CuPy's disk cache is keyed by the source string and does not see headers, so an edited header would leave a stale
    binary in use; a compiler given one string also needs no search path. ``#line`` marks keep the real file and line
    in the compiler's messages. A header is spliced where it is first named and nowhere else, as with ``#pragma once``,
    so includes must not stand under a condition. ``#include <...>`` is left to the compiler.

    Parameters
    ----------
    name : str
        A file of the kernels folder, for instance ``"search.cu"``.
    instead : mapping of str to str
        Texts that take the place of headers, by name: a criterion's.

    Returns
    -------
    str
        The text. It names files without their folders, so it is the same wherever gputree is installed.

    Raises
    ------
    FileNotFoundError
        When the folder, the file or a header is absent.

    Examples
    --------
    >>> read_kernel("common.cuh").splitlines()[0]
    '#line 1 "common.cuh"'
    """
    return "".join(f"{line}\n" for line in _spliced(kernels_folder(), name, {name}, instead))


def _spliced(folder: Path, name: str, seen: set[str], instead: Mapping[str, str]) -> list[str]:
    """Return the lines of one file, headers spliced; add the headers met to `seen`."""
    lines = [f'#line 1 "{name}"']
    text = instead[name] if name in instead else _text(folder, name)
    for number, line in enumerate(text.splitlines(), start=1):
        include = _INCLUDE.match(line)
        if include is None:
            # Only the compiler's main file is left, where the pragma would earn a warning.
            lines.append("" if _PRAGMA_ONCE.match(line) else line)
        elif (header := include[1]) in seen:
            lines.append("")
        else:
            seen.add(header)
            lines += [*_spliced(folder, header, seen, instead), f'#line {number + 1} "{name}"']
    return lines


def _text(folder: Path, name: str) -> str:
    """Return the text of one file of the folder."""
    path = folder / name
    if not path.is_file():
        known = ", ".join(sorted(file.name for file in folder.glob("*.cu*")))
        raise FileNotFoundError(f"kernel file {name!r} is not in {folder}; it must be one of: {known}")
    return path.read_text(encoding="utf-8")
