"""What the README shows is what happens: its Python block prints its text block, and its commands exist."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from gputree import cli

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_the_examples_print_what_they_say(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(blocks("python")[number], "README.md", "exec"), {})
    assert printed.getvalue() == blocks("text")[number]


def test_two_commands_set_everything_up() -> None:
    lines = [line for block in blocks("bash") for line in block.splitlines() if "pip install" in line]
    assert lines[:2] == ["pip install . && gputree demo", 'pip install ".[test]" && pytest']


def test_every_command_it_names_exists() -> None:
    named = set(re.findall(r"^gputree (\w+)", "\n".join(blocks("bash")), flags=re.MULTILINE))
    assert named >= {"fit", "show", "evaluate", "predict", "fingerprint", "info"}
    help_text = io.StringIO()
    with contextlib.redirect_stdout(help_text), contextlib.suppress(SystemExit):
        cli.main(["--help"])
    assert all(name in help_text.getvalue() for name in named)


def test_the_house_lists_what_is_there() -> None:
    house = blocks("text")[-1]
    for place in re.findall(r"^(\S+)  ", house, flags=re.MULTILINE):
        assert (Path(__file__).parents[1] / place).exists(), place


def test_the_accuracy_it_names_is_that_of_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    (named,) = re.findall(r"rows held out \((0\.\d+)\)", README)
    assert cli.main(["demo", "--rows", "2000"]) == 0
    assert f"accuracy {named} on 114 rows" in capsys.readouterr().out
