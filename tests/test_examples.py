"""Every example runs and prints something."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import gputree.examples

NAMES = [module.name for module in pkgutil.iter_modules(gputree.examples.__path__)]


def test_there_are_examples() -> None:
    assert NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_example_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    importlib.import_module(f"gputree.examples.{name}").main()
    assert capsys.readouterr().out
