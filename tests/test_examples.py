"""Every example runs and prints something."""

from __future__ import annotations

import importlib
import pkgutil
import runpy

import pytest

import gputree.examples

NAMES = [module.name for module in pkgutil.iter_modules(gputree.examples.__path__)]


def test_there_are_examples() -> None:
    assert NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_example_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    importlib.import_module(f"gputree.examples.{name}").main()
    assert capsys.readouterr().out


def test_a_library_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gputree.table.find_spec", lambda _: None)
    with pytest.raises(SystemExit, match="needs pandas, which is not installed; run `pip install pandas`"):
        runpy.run_path(f"{gputree.examples.__path__[0]}/penguins.py", run_name="__main__")
