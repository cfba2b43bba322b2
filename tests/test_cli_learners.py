"""`gputree fit` grows every learner: the model of a file is that of the data frame that pandas reads from it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, is_classifier

import gputree
from gputree import (
    BaggingTreeClassifier,
    C45Classifier,
    C45Rules,
    DecisionTreeClassifier,
    ExtraTreeClassifier,
    ExtraTreesClassifier,
    ID3Classifier,
    IsolationForest,
    MDLTreeClassifier,
    RandomForestClassifier,
    RandomTreesEmbedding,
    RuleSet,
)
from gputree.cli import main
from gputree.pruning import ChiSquare as PruneByChiSquare
from gputree.pruning import Collapse, ErrorBased, ReducedError, RiskBound
from gputree.readers.learner import FAMILIES, LEARNERS, family_of
from gputree.readers.rules import KNOWN
from gputree.report import parameter_help
from gputree.stopping import ChiSquare, CrossValidated, MaxDepth, MaxNodes, NoGain

FIVE = ["--n-estimators", "5"]
EXPECTED: dict[str, tuple[list[str], Any]] = {
    "cart": ([], DecisionTreeClassifier(categorical_split="multiway")),
    "extra-tree": ([], ExtraTreeClassifier()),
    "id3": ([], ID3Classifier()),
    "forest": (FIVE, RandomForestClassifier(5, categorical_split="multiway")),
    "extra-trees": (FIVE, ExtraTreesClassifier(5)),
    "random-trees-embedding": (FIVE, RandomTreesEmbedding(n_estimators=5)),
    "isolation-forest": (FIVE, IsolationForest(n_estimators=5)),
    "c45": (
        ["--confidence", "0.4", "--subtree-raising", "false"],
        C45Classifier(confidence=0.4, subtree_raising=False),
    ),
    "bagging-tree": (["--estimator", "c45", *FIVE], BaggingTreeClassifier(C45Classifier(), 5)),
    "mdl": (["--code", "wallace-patrick"], MDLTreeClassifier(code="wallace-patrick")),
    "c45-rules": (["--tree", "cart"], C45Rules(DecisionTreeClassifier(categorical_split="multiway"))),
}

UNPRUNED = {
    "c45-rules": "a C45Rules is no tree or forest",
    "random-trees-embedding": "RandomTreesEmbedding learns no y",
    "isolation-forest": "IsolationForest learns no y",
}


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def table(path: str = "t.csv", whole: bool = False, classes: int = 3) -> tuple[pd.DataFrame, Any]:
    """A file with quotes, commas and line feeds in its text, of which a tenth is missing unless it is to be whole."""
    rng = np.random.default_rng(7)
    n, gone = 150, (lambda: rng.random(150) < (0 if whole else 0.1))
    colour = rng.choice(['dark "blue"', "green, light", "two\nlines", "red"], n)
    size, year, flag = rng.normal(size=n).round(3), rng.integers(2007, 2011, n), rng.choice(["True", "False"], n)
    y = np.array(["no", "yes, sir", 'the "third"'])[((size > 0).astype(int) + (colour == "red")) % classes]
    columns = (
        {"colour": colour, "size": size, "year": year, "flag": flag} if not whole else {"colour": colour, "year": year}
    )
    cells = {name: np.where(gone(), "", values.astype(object)) for name, values in columns.items()}
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*cells, "y"])
        writer.writerows(zip(*cells.values(), y, strict=True))
    frame = pd.read_csv(path)
    return frame.drop(columns="y"), frame["y"].to_numpy()


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(argv) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def fails(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(argv) == 2
    return " ".join(capsys.readouterr().err.split())


def value(out: str, label: str) -> str:
    (line,) = [line for line in out.splitlines() if line.startswith(f"{label} ")]
    return line[len(label) :].strip()


@pytest.mark.filterwarnings("ignore:the tree sends rows down every branch")
@pytest.mark.parametrize("family", EXPECTED)
def test_a_learner_fits_shows_and_predicts(family: str, capsys: pytest.CaptureFixture[str]) -> None:
    options, model = EXPECTED[family]
    X, y = table(whole=family == "id3")
    supervised = is_classifier(model)
    model.fit(X, y if supervised else None)
    columns = ["--target", "y"] if supervised else ["--exclude", "y"]
    out = run(capsys, "fit", "t.csv", "--learner", family, *columns, *options, "-o", "m")
    assert value(out, "learner").split(",")[0] == type(model).__name__
    assert value(out, "fingerprint") == model.fingerprint() == run(capsys, "fingerprint", "m").strip()
    assert type(gputree.load("m")) is type(model)
    forest = hasattr(model, "estimators_")
    assert value(run(capsys, "show", "m"), "features").startswith(f"{X.shape[1]} (")
    text = run(capsys, "rules", "m", *(["--tree", "2"] if forest else []))
    rules = model.estimators_[2].rules() if forest else model.rules_ if family == "c45-rules" else model.rules()
    assert RuleSet.from_text(text) == rules
    run(capsys, "predict", "m", "t.csv", "-o", "out.csv")
    found = pd.read_csv("out.csv")
    expected = model.predict(X) if hasattr(model, "predict") else model.apply(X)
    np.testing.assert_array_equal(found.to_numpy().reshape(expected.shape), expected)
    if supervised:
        out = run(capsys, "evaluate", "m", "t.csv")
        assert value(out, "accuracy") == f"{model.score(X, y):.4f}"
        run(capsys, "predict", "m", "t.csv", "--proba", "-o", "out.csv")
        np.testing.assert_array_equal(pd.read_csv("out.csv").iloc[:, 1:].to_numpy(), model.predict_proba(X))
    else:
        assert "which has no target to be measured by" in fails(capsys, "evaluate", "m", "t.csv")


@pytest.mark.parametrize("family", [name for name in EXPECTED if name not in UNPRUNED])
def test_a_model_is_pruned(family: str, capsys: pytest.CaptureFixture[str]) -> None:
    table(whole=family == "id3")
    columns = ["--target", "y"] if is_classifier(EXPECTED[family][1]) else ["--exclude", "y"]
    run(capsys, "fit", "t.csv", "--learner", family, *columns, "-o", "m")
    run(capsys, "prune", "m", "--rule", "cost-complexity:alpha=0.02", "-o", "small")
    assert gputree.load("small").forest_.n_nodes <= gputree.load("m").forest_.n_nodes


@pytest.mark.parametrize("family", UNPRUNED)
def test_what_no_rule_prunes_is_refused(family: str, capsys: pytest.CaptureFixture[str]) -> None:
    table()
    columns = ["--target", "y"] if family == "c45-rules" else ["--exclude", "y"]
    run(capsys, "fit", "t.csv", "--learner", family, *columns, "-o", "m")
    assert UNPRUNED[family] in fails(capsys, "prune", "m", "--rule", "cost-complexity:alpha=0.02")


@pytest.mark.parametrize(
    ("family", "learner"),
    [
        ("cart", "DecisionTreeRegressor"),
        ("extra-tree", "ExtraTreeRegressor"),
        ("forest", "RandomForestRegressor"),
        ("extra-trees", "ExtraTreesRegressor"),
        ("bagging-tree", "BaggingTreeRegressor"),
    ],
)
def test_the_target_chooses_between_classes_and_numbers(
    family: str, learner: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table()
    out = run(capsys, "fit", "t.csv", "--target", "size", "--learner", family, "--drop-missing", "-o", "m")
    assert value(out, "learner") == learner
    assert "R2" in run(capsys, "evaluate", "m", "t.csv", "--drop-missing")


def test_every_estimator_of_the_library_has_a_name() -> None:
    public = {name: getattr(gputree, name) for name in gputree.__all__}
    estimators = {n for n, kind in public.items() if isinstance(kind, type) and issubclass(kind, BaseEstimator)}
    assert estimators == set(LEARNERS) == {name for family in FAMILIES.values() for name in family}
    assert list(EXPECTED)[:3] == list(FAMILIES)[:3]


@pytest.mark.parametrize(
    ("written", "learner"),
    [("C4.5", "C45Classifier"), ("c45_rules", "C45Rules"), ("randomforestregressor", "RandomForestRegressor")],
)
def test_names_are_read_in_any_case(written: str, learner: str) -> None:
    assert family_of(written) == (learner,)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_help_of_a_learner_tells_its_parameters(family: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "fit", "--learner", family, "--help")
    assert max(map(len, out.splitlines())) <= 80
    texts = parameter_help(LEARNERS[name] for name in FAMILIES[family])
    own = {name for learner in FAMILIES[family] for name in LEARNERS[learner]().get_params(deep=False)}
    assert own == set(texts)
    for name, text in texts.items():
        kind = text.split(", default=")[0]
        assert kind, name  # what others' docstrings say where its own refers to them
        assert text.rstrip()[-1] in ".:)", name
        metavar = "RULE" if name in ("stopping", "pruning") else "VALUE"
        assert (f"--{name.replace('_', '-')} {metavar}" in out) == (name != "verbose")
    others = {name for kind in LEARNERS.values() for name in kind().get_params(deep=False)} - own
    assert not any(f"--{name.replace('_', '-')} {v}" in out for name in others for v in ("VALUE", "RULE"))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("--learner forst", "--learner forst is unknown; did you mean forest? learners are cart, extra-tree, id3,"),
        ("--learner c45 --min-samples-leaf 3", "--min-samples-leaf is no parameter of C45Classifier; leave it out"),
        ("--learner c45 --min-samples-leaf 3", "`gputree fit --learner c45 --help` shows those that are"),
        ("--learner c45 --confidence 2", "'confidence' parameter of C45Classifier must be a float in the range"),
        ("--learner c45 --constants j47", "'constants' parameter of C45Classifier must be a str among"),
        ("--learner c45-rules --sample-weight size", "--sample-weight size: C45Rules counts every row once; leave it"),
        ("--learner c45-rules --verbose", "--verbose is no parameter of C45Rules"),
        ("--learner c45-rules --tree oak", "--learner oak is unknown"),
        ("--learner id3", "column 'colour' has nan in row"),
        ("--learner id3 --variant dtl --empty null", "variant='dtl' gives an empty branch what its parent predicts"),
        ("--learner isolation-forest", "--target y: IsolationForest has no target; leave it out, or --exclude the"),
        ("--learner forest --n-estimators 0", "'n_estimators' parameter of forest must be an int"),
        ("--learner mdl --critrion gini", "unrecognized arguments: --critrion gini; did you mean --criterion?"),
    ],
)
def test_a_mistake_is_explained(argv: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    table()
    assert message in fails(capsys, "fit", "t.csv", "--target", "y", *argv.split())


def test_numbers_with_a_fraction_are_no_names_for_id3(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text("x,y\n1.5,a\n2.5,b\n")
    assert "column 'x' holds real numbers" in fails(capsys, "fit", "t.csv", "--target", "y", "--learner", "id3")
    run(capsys, "fit", "t.csv", "--target", "y", "--learner", "id3", "--numeric", "thresholds", "-o", "m")
    assert run(capsys, "predict", "m", "t.csv").split() == ["prediction", "a", "b"]


def test_a_category_that_is_a_number_is_known_however_a_file_writes_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Where a cell of the column is missing, the fit reads 1.0 and 2.0 and not 1 and 2."""
    Path("t.csv").write_text("x,y\n1,a\n2,b\n1,a\n2,b\n3,a\n,b\n")
    run(capsys, "fit", "t.csv", "--target", "y", "--categorical-features", "['x']", "-o", "m")
    assert gputree.load("m").schema_.features[0].categories == (1.0, 2.0, 3.0)
    for texts in (["1", "2", "3"], ["1.0", "2.0", "3.00"]):
        Path("other.csv").write_text("\n".join(["x", *texts]))
        assert run(capsys, "predict", "m", "other.csv").split()[1:] == ["a", "b", "a"]


def test_outliers_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    X, _ = table()
    model = IsolationForest(contamination=0.1).fit(X)
    options = ["--learner", "isolation-forest", "--exclude", "y", "--contamination", "0.1", "-o", "m"]
    out = run(capsys, "fit", "t.csv", *options)
    assert value(out, "training") == f"{(model.predict(X) == -1).sum()} outliers"
    assert "target" not in out


def test_the_target_of_a_learner_that_has_one_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    table()
    message = "the following arguments are required: --target"
    assert message in fails(capsys, "fit", "t.csv", "--learner", "mdl")


# Rules as parameters.


@pytest.mark.parametrize(
    ("options", "model"),
    [
        ("--stopping max-depth:depth=3", DecisionTreeClassifier(stopping=MaxDepth(3))),
        (
            "--stopping MaxDepth:depth=4 --stopping chi-square:alpha=0.2 --stopping no_gain",
            DecisionTreeClassifier(stopping=MaxDepth(4) | ChiSquare(0.2) | NoGain()),
        ),
        ("--stopping none --pruning none", DecisionTreeClassifier()),
        ("--pruning error-based:cf=0.1,raising=false", DecisionTreeClassifier(pruning=ErrorBased(0.1, raising=False))),
        ("--pruning error-based:limit=c45", DecisionTreeClassifier(pruning=ErrorBased(limit="c45"))),
        ("--pruning risk-bound:n-tests=none", DecisionTreeClassifier(pruning=RiskBound())),
        (
            "--pruning reduced-error --validation-fraction 0.5",
            DecisionTreeClassifier(pruning=ReducedError(), validation_fraction=0.5),
        ),
        ("--learner c45 --pruning reduced_error", C45Classifier(pruning="reduced_error")),
        ("--learner c45 --pruning none", C45Classifier(pruning=None)),
        ("--learner c45 --pruning chi-square", C45Classifier(pruning=PruneByChiSquare())),
        ("--learner c45 --stopping max-nodes:nodes=9", C45Classifier(stopping=MaxNodes(9))),
        ("--learner forest --n-estimators 3 --pruning collapse", RandomForestClassifier(3, pruning=Collapse())),
        (
            "--learner forest --n-estimators 3 --stopping max-depth:depth=2",
            RandomForestClassifier(3, stopping=MaxDepth(2)),
        ),
        ("--learner mdl --stopping cross-validated:cv=3", MDLTreeClassifier(stopping=CrossValidated(3))),
        ("--learner mdl --prune false --pruning collapse", MDLTreeClassifier(prune=False, pruning=Collapse())),
    ],
)
def test_rules_on_the_command_line(options: str, model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = table(classes=2)
    out = run(capsys, "fit", "t.csv", "--target", "y", *options.split(), "-o", "m")
    assert gputree.load("m").get_params() == model.get_params()
    assert value(out, "fingerprint") == model.fit(X, y).fingerprint()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--stopping depth", "--stopping depth is unknown; rules are chi-square, cross-validated, max-depth,"),
        ("--stopping validation", "--stopping validation is unknown"),
        ("--pruning error", "--pruning error is unknown; rules are collapse, error-based, reduced-error,"),
        ("--pruning 3", "--pruning 3 is unknown"),
        ("--stopping max-depth", "--stopping max-depth needs depth; write max-depth:depth=NUMBER"),
        ("--pruning cost-complexity:penalty=nodes", "needs alpha; write cost-complexity:alpha=NUMBER,penalty=leaves"),
        ("--pruning error-based:cf", "'cf' sets no parameter of the rule; write error-based:cf=0.25,limit=j48"),
        ("--pruning error-based:alpha=2", "'alpha=2' sets no parameter of the rule; write error-based:cf=0.25"),
        ("--pruning error-based:cf=0.1,cf=0.2", "--pruning error-based:cf=0.1,cf=0.2 gives cf twice; leave one of"),
        ("--pruning error-based:cf=2", "cf=2 must be a number above 0 and below 1"),
        ("--stopping max-depth:depth=three", "depth='three' must be"),
        ("--pruning collapse --ccp-alpha 0.1", "are two rules of pruning: leave one of them out"),
        ("--learner forest --pruning reduced-error", "forest cannot follow a rule: bags keep no rows"),
        ("--learner forest --stopping cross-validated", "follows the rows of one tree; give rules that look at counts"),
        ("--learner mdl --pruning collapse", "are two rules of pruning: give prune=False, or leave the other out"),
        ("--learner c45-rules --pruning collapse", "--pruning is no parameter of C45Rules; leave it out"),
    ],
)
def test_a_mistake_in_a_rule_is_explained(options: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    table()
    assert message in fails(capsys, "fit", "t.csv", "--target", "y", *options.split())


def test_the_help_lists_the_rules_of_a_learner(capsys: pytest.CaptureFixture[str]) -> None:
    """Each on a line of its own, with its defaults; of a learner that takes some."""
    lines = run(capsys, "fit", "--help").splitlines()
    for name, known in KNOWN.items():
        first = next(i for i, text in enumerate(lines) if text.startswith(f"  --{name}, "))
        own = [text.split()[0] for text in lines[first + 1 : first + 40] if text.startswith("    ") and text[4] != " "]
        assert own[: len(known)] == list(known)
    assert any(text.split() == ["error-based", "cf=0.25", "limit=j48", "raising=true"] for text in lines)
    assert "rules:" not in run(capsys, "fit", "--learner", "isolation-forest", "--help")
