from __future__ import annotations

from collections.abc import Callable

import pytest

from gputree.backends.source import kernels_folder
from tests.emulator.compiler import HERE
from tests.emulator.driver import Emulator
from tests.emulator.errors import KernelError
from tests.emulator.module import Kernel

OPTIONS = ("--fmad=false",)
Load = Callable[[Emulator, str, str], Kernel]


def error_of(call: Callable[[], object]) -> KernelError | None:
    """The error of a kernel that a call ends with, if any."""
    try:
        call()
    except KernelError as error:
        return error
    return None


@pytest.fixture(params=["plain", "checked"])
def checked(request: pytest.FixtureRequest, compiler: str) -> bool:
    return bool(request.param == "checked")


@pytest.fixture(scope="session")
def sample() -> str:
    """The text of the right kernels, as source.py would splice it."""
    name = "kernels.cu"
    text = (HERE / "samples" / name).read_text(encoding="utf-8")
    line = text[: text.index("#include")].count("\n") + 1
    common = (kernels_folder() / "common.cuh").read_text(encoding="utf-8").replace("#pragma once", "")
    spliced = f'#line 1 "common.cuh"\n{common}#line {line + 1} "{name}"'
    return f'#line 1 "{name}"\n' + text.replace('#include "common.cuh"', spliced)


@pytest.fixture(scope="session")
def load(compiler: str) -> Load:
    """Return a kernel of a text: load(emulator, text, name)."""

    def kernel(emulator: Emulator, text: str, name: str) -> Kernel:
        return emulator.load(text, OPTIONS).get_function(name)

    return kernel
