"""The kernels of one criterion as one module text, in a folder where Numba keeps what it compiles.

Numba's own cache does not see what a function calls in other files, so the text holds everything, and the folder is
named by its hash: an edit of any part is another folder. Standard library and core only.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from gputree.core.criteria import Criterion
from gputree.core.texts import python_text

_HERE = Path(__file__).parent
_COMPILED = _HERE.parent / "compiled.py"  # flags, and what stands for `marks`
_CORE = _HERE.parents[1] / "core"
_OURS = re.compile(r"^from (gputree\.backends\.cpu|__future__)\S* import (\([^)]*\)|.*)\n", re.MULTILINE)
_CONSTANTS = ("expr", "forest", "keys", "scores", "splits")  # core modules whose constants the kernels import
_SHARED = ("records", "arrays", "rows", "spread", "encode", "walk")
_CELLS = ("records", "arrays", "numbers", "formulas", "cells")
_OF_CRITERION = (*_CELLS, "cuts", "drawn", "ruled", "categories", "search", "rows", "finish", "groups")


def module_text(criterion: Criterion | None, pair: bool = False) -> str:
    """The kernels that need no criterion (None), or those of one."""
    names = _SHARED if criterion is None else _OF_CRITERION
    parts = {name: (_HERE / f"{name}.py").read_text("utf-8") for name in names}
    if criterion is not None:
        parts["formulas"] = python_text(criterion, pair)
    others = [_COMPILED, *(_CORE / f"{name}.py" for name in _CONSTANTS)]
    core = hashlib.sha256(b"".join(path.read_bytes() for path in others)).hexdigest()
    text = "\n".join(_OURS.sub("", part) for part in parts.values())
    return f"from __future__ import annotations\n\n# compiled as told and with constants from {core}\n{text}"


def load_module(criterion: Criterion | None, pair: bool, marks: dict[str, Any]) -> ModuleType:
    """The module of a criterion; ``marks`` take the place of `gputree.backends.cpu.marks`."""
    text = module_text(criterion, pair)
    path = path_of(text)
    name = path.stem
    write(path, text)
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    module.__dict__.update(marks)
    sys.modules[name] = module  # Numba's files name the records by their module
    spec.loader.exec_module(module)
    return module


def path_of(text: str) -> Path:
    """Where the module of a text is kept."""
    name = f"gputree_kernels_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    return cache_folder() / name / f"{name}.py"


def has_compiled(criterion: Criterion | None = None, pair: bool = False) -> bool:
    """Whether kernels of these sources are in the cache: of a criterion, or those that every fit needs."""
    return any((path_of(module_text(criterion, pair)).parent / "__pycache__").glob("*.nbi"))


def write(path: Path, text: str) -> None:
    """Write a file at once, unless it is there."""
    if path.is_file() and path.read_text("utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(draft, path)


@cache
def cache_folder() -> Path:
    """``GPUTREE_CACHE_DIR``, or gputree's folder in the user's cache, or else one for this process."""
    own, shared = os.environ.get("GPUTREE_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME")
    with suppress(OSError):
        if own:
            return writable(Path(own))
    with suppress(OSError, RuntimeError):  # RuntimeError: a user without a home
        return writable((Path(shared) if shared else Path.home() / ".cache") / "gputree")
    place = Path(tempfile.mkdtemp(prefix="gputree-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def writable(place: Path) -> Path:
    """The folder, made and tried."""
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=place):
        return place
