"""``gputree rules``: what it prints is read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gputree import C45Classifier, C45Rules, DecisionTreeClassifier, RandomForestClassifier, RuleSet, save
from gputree.cli import main
from tests.model_files import penguins


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path / "model"


def printed(capsys: pytest.CaptureFixture[str], *argv: Any) -> str:
    assert main([str(a) for a in argv]) == 0
    return capsys.readouterr().out


def test_rules_of_a_tree_within_80_columns(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = DecisionTreeClassifier(categorical_split="multiway", max_depth=3).fit(*penguins())
    save(model, path)
    text = printed(capsys, "rules", path)
    assert max(map(len, text.split("\n"))) <= 80
    assert RuleSet.from_text(text) == model.rules()


def test_rules_that_are_the_model_and_their_tree(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = C45Rules().fit(*penguins())
    save(model, path)
    text = printed(capsys, "rules", path)
    assert RuleSet.from_text(text) == model.rules_
    head, _, shown = printed(capsys, "show", path).partition("\n\n")
    assert head.startswith("C45Rules()\n")
    assert f"{len(model.rules_)} rules, {sum(len(rule.conditions) for rule in model.rules_)} conditions" in head
    assert model.fingerprint() in head
    assert shown == text
    assert printed(capsys, "fingerprint", path).strip() == model.fingerprint()


def test_what_rules_cannot_say_is_a_warning_beside_them(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(C45Classifier(pruning=None).fit(*penguins()), path)
    assert main(["rules", str(path)]) == 0
    text, told = capsys.readouterr()
    assert len(RuleSet.from_text(text)) > 2
    assert told.startswith("gputree: warning: the tree sends rows down every branch")


def test_a_forest_has_the_rules_of_a_tree(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = RandomForestClassifier(2, categorical_split="multiway", max_depth=2).fit(*penguins())
    save(model, path)
    assert RuleSet.from_text(printed(capsys, "rules", path, "--tree", 1)) == model.estimators_[1].rules()
    assert main(["rules", str(path)]) == 2
    assert "the trees of a RandomForestClassifier have rules; give --tree 0, or another up to 1" in " ".join(
        capsys.readouterr().err.split()
    )
