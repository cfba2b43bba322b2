"""The command line: what each command prints, and what it says when something is wrong."""

from __future__ import annotations

import csv
import errno
import itertools
import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn

import gputree
from gputree import report
from gputree.cli import fit_seconds, joined, main
from gputree.datasets import load_penguins, make_higgs_like
from gputree.inspect.words import shortened
from gputree.learners import ESTIMATORS
from gputree.readers import tables

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("GPUTREE_DEVICE", raising=False)


def write(path: str, *rows: str) -> str:
    Path(path).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def penguins(path: str = "penguins.csv") -> str:
    table = load_penguins()
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.names)
        for row in zip(*(column.tolist() for column in table.columns), strict=True):
            writer.writerow(["" if value is None or value != value else value for value in row])
    return path


class Run:
    """Runs commands in this process and keeps what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *argv: str, code: int = 0, wide: bool = False) -> str:
        assert main(argv) == code
        out, self.err = self.capsys.readouterr()
        assert "Traceback" not in self.err
        if not wide:
            assert max(map(len, [*out.splitlines(), *self.err.splitlines(), ""])) <= 80
        return out

    def fails(self, *argv: str, code: int = 2) -> str:
        """The message, on one line."""
        self(*argv, code=code)
        assert self.err.startswith("gputree: error: ")
        return " ".join(self.err.split())


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


def value(out: str, label: str) -> str:
    (line,) = [line for line in out.splitlines() if line.startswith(f"{label} ")]
    return line[len(label) :].strip()


# Commands


def test_demo(run: Run) -> None:
    out = run("demo", "--rows", "2000")
    accuracies = [float(line.split()[3]) for line in out.splitlines() if line.startswith("held out")]
    assert accuracies[0] > 0.95
    assert accuracies[1] > 0.6
    assert "|--- flipper_length_mm <= 206.50 (or missing)" in out
    assert "2,000 generated rows x 28 columns, depth 10" in out
    X, y = make_higgs_like(2500)
    assert gputree.DecisionTreeClassifier(max_depth=10).fit(X[:2000], y[:2000]).fingerprint() in out


def test_demo_with_progress(run: Run) -> None:
    run("demo", "--rows", "100", "--verbose")
    assert "[gputree]" in run.err
    assert "too few" in run.fails("demo", "--rows", "3")


def test_the_time_of_a_fit_has_no_compiling_in_it() -> None:
    """The demonstration fits again where the first fit had to wait for kernels."""

    class Model:
        def __init__(self, backend: str) -> None:
            self.fit_info_, self.fits = SimpleNamespace(backend=backend), 0

        def fit(self) -> None:
            self.fits += 1

    for backend, fits in (("numpy", 1), ("jit", 2), ("cuda", 2)):
        model = Model(backend)
        first, last = fit_seconds(model)
        assert (model.fits, first != last) == (fits, fits == 2)


def test_fit_evaluate_predict_show(run: Run) -> None:
    table = penguins()
    out = run("fit", table, "--target", "species", "--max-depth", "4", "-o", "model")
    assert value(out, "table") == "344 rows, 7 features (2 of categories)"
    assert value(out, "missing") == "19 cells"
    assert value(out, "target") == "species: text, 3 classes"
    assert value(out, "learner") == "DecisionTreeClassifier, a branch a category (--categorical-split)"
    X = load_penguins().to_frame("pandas").drop(columns="species")
    same = gputree.DecisionTreeClassifier(categorical_split="multiway", max_depth=4)
    same.fit(X, load_penguins().column("species"))
    assert value(out, "fingerprint") == same.fingerprint()
    assert run("fingerprint", "model").strip() == same.fingerprint()

    out = run("evaluate", "model", table)
    accuracy = same.score(X, load_penguins().column("species"))
    assert value(out, "accuracy") == f"{accuracy:.4f}"
    assert value(out, "AUC").endswith("(one against the rest, mean of 3 classes)")
    assert "true          Adelie  Chinstrap     Gentoo" in out

    out = run("show", "model", "--max-depth", "0")
    assert out.startswith("DecisionTreeClassifier(categorical_split='multiway', max_depth=4)\n")
    assert value(out, "classes") == "3: Adelie, Chinstrap, Gentoo"
    assert "|--- flipper_length_mm <= 206.50 (or missing)\n|   |--- truncated branch of depth 4" in out

    rows = list(csv.DictReader(run("predict", "model", table, "--proba", wide=True).splitlines()))
    assert [row["prediction"] for row in rows] == same.predict(X).tolist()
    shares = np.array([[float(row[f"share_{c}"]) for c in same.classes_] for row in rows])
    np.testing.assert_array_equal(shares, same.predict_proba(X))
    assert run("predict", "model", table, "--proba", "-o", "out.csv") == ""
    assert list(csv.DictReader(Path("out.csv").read_text().splitlines())) == rows


def test_a_model_of_the_command_line_reads_frames_by_name(run: Run) -> None:
    run("fit", penguins(), "--target", "species", "-o", "model")
    X = load_penguins().to_frame("polars").drop("species")
    model = gputree.load("model")
    assert model.score(X, load_penguins().column("species")) == 1.0
    with pytest.raises(ValueError, match="in the same order"):
        model.predict(X.select(X.columns[::-1]))


def test_a_forest(run: Run) -> None:
    table, y = penguins(), load_penguins().column("species")
    X = load_penguins().to_frame("pandas").drop(columns="species")
    model = gputree.RandomForestClassifier(5, max_depth=3, categorical_split="multiway").fit(X, y)
    gputree.save(model, "forest")
    out = run("show", "forest")
    assert value(out, "size").startswith(f"5 trees, {model.forest_.n_nodes} nodes, ")
    assert value(out, "fitted").startswith("on 344 rows in ")
    assert "give --tree 0, or another up to --tree 4." in out
    root = f"|--- {X.columns[model.estimators_[4].forest_.feature[0]]} "
    assert root in run("show", "forest", "--tree", "4")
    assert "--tree 5 is none of the 5 trees; they are 0 to 4" in run.fails("show", "forest", "--tree", "5")
    assert run("fingerprint", "forest").strip() == model.fingerprint()
    run("predict", "forest", table, "--proba", "-o", "out.csv")
    found = pd.read_csv("out.csv")
    np.testing.assert_array_equal(found["prediction"], model.predict(X))
    np.testing.assert_array_equal(found.iloc[:, 1:].to_numpy(), model.predict_proba(X))
    assert value(run("evaluate", "forest", table), "accuracy") == f"{model.score(X, y):.4f}"
    gputree.save(model.estimators_[0], "tree")
    assert "a DecisionTreeClassifier is one tree" in run.fails("show", "tree", "--tree", "0")


@pytest.mark.parametrize(("target", "score"), [("species", "accuracy"), ("body_mass_g", "R2")])
def test_the_score_out_of_bag_is_reported(target: str, score: str, run: Run) -> None:
    options = ["--learner", "forest", "--n-estimators", "20", "--oob-score", "true", "--drop-missing", "-o", "model"]
    told = value(run("fit", penguins(), "--target", target, *options), "out of bag")
    assert told == f"{score} {gputree.load('model').oob_score_:.4f}" == value(run("show", "model"), "out of bag")


def test_a_regression(run: Run) -> None:
    table = penguins()
    out = run("fit", table, "--target", "body_mass_g", "--drop-missing", "--min-samples-leaf", "0.05", "-o", "model")
    assert value(out, "learner") == "DecisionTreeRegressor"
    out = run("evaluate", "model", table, "--drop-missing")
    assert value(out, "table") == "342 rows, target body_mass_g"
    assert 200 < float(value(out, "RMSE")) < 400
    assert 0.7 < float(value(out, "R2")) < 1
    assert "has no value in 2 rows of 344" in run.fails("evaluate", "model", table)
    assert run("predict", "model", table).splitlines()[0] == "prediction"
    run("show", "model")
    assert "--proba needs a classifier, and model holds DecisionTreeRegressor" in run.fails(
        "predict", "model", table, "--proba"
    )


@pytest.mark.parametrize(
    ("target", "learner"),
    [
        (["a", "b", "a"], "DecisionTreeClassifier"),
        (["0", "1", "7"], "DecisionTreeClassifier"),
        (["0.5", "1", "7"], "DecisionTreeRegressor"),
        ([str(i) for i in range(20)], "DecisionTreeClassifier"),
        ([str(i) for i in range(21)], "DecisionTreeRegressor"),
        (["2024_01", "2024_02"], "DecisionTreeClassifier"),
    ],
)
def test_the_target_decides_on_the_learner(target: list[str], learner: str, run: Run) -> None:
    write("t.csv", "x,y", *(f"{i},{y}" for i, y in enumerate(target)))
    assert value(run("fit", "t.csv", "--target", "y"), "learner") == learner
    assert "the model is not saved" in run.err


def test_parameters_reach_the_learner(run: Run) -> None:
    write("t.csv", "x,z,y", *(f"{i},{i % 3},{int(i > 4)}" for i in range(10)))
    given = {
        "--learner": "extratreeclassifier",
        "--criterion": "entropy",
        "--max-features": "1.0",
        "--min-samples-leaf": "2",
        "--class-weight": "{0: 2, 1: 1}",
        "--monotonic-cst": "1,0",
        "--max-leaf-nodes": "none",
        "--random-state": "5",
    }
    run("fit", "t.csv", "--target", "y", "-o", "model", *itertools.chain(*given.items()))
    model = gputree.load("model")
    assert isinstance(model, gputree.ExtraTreeClassifier)
    wanted = {"criterion": "entropy", "max_features": 1.0, "min_samples_leaf": 2, "class_weight": {0: 2, 1: 1}}
    wanted |= {"monotonic_cst": [1, 0], "max_leaf_nodes": None, "random_state": 5}
    assert {name: getattr(model, name) for name in wanted} == wanted
    assert type(model.max_features) is float
    assert type(model.min_samples_leaf) is int


def test_help_shows_the_default_of_every_learner(run: Run) -> None:
    out = " ".join(run("fit", "--help").split())
    assert "--min-samples-split VALUE int or float, default=2. Least" in out
    assert "--min-samples-leaf VALUE int or float, default=1. Least" in out
    assert "default=2 and 1" not in out
    texts = report.parameter_help(ESTIMATORS.values())
    assert texts["splitter"].endswith(" ExtraTreeClassifier: default='random'. ExtraTreeRegressor: default='random'.")
    assert texts["max_features"].endswith(" ExtraTreeClassifier: default='sqrt'. ExtraTreeRegressor: default=1.0.")
    assert 'DecisionTreeRegressor: {"squared_error", "poisson"}, default=\'squared_error\'.' in texts["criterion"]


@pytest.mark.parametrize("command", ["demo", "fit", "evaluate", "predict", "show", "fingerprint", "info"])
def test_help(command: str, run: Run) -> None:
    assert command in run("--help")
    assert run(command, "--help").startswith(f"usage: gputree {command}")


def test_info_and_version(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    out = run("info")
    assert value(out, "gputree") == gputree.__version__
    assert f"scikit-learn  {sklearn.__version__}" in out
    assert "cpu           backend numpy, available" in out
    assert "backend cuda, " in out
    assert "GPUTREE_DEVICE is not set" in out
    monkeypatch.setenv("GPUTREE_DEVICE", "cpu")
    assert value(run("info"), "device") == "cpu (from the environment variable GPUTREE_DEVICE)"
    assert run("--version").strip() == f"gputree {gputree.__version__}"


def test_a_class_that_the_model_never_met(run: Run) -> None:
    write("a.csv", "x,y", "1,no", "2,yes")
    write("b.csv", "x,y", "1,no", "2,yes", "2,perhaps")
    run("fit", "a.csv", "--target", "y", "-o", "model")
    out = run("evaluate", "model", "b.csv")
    assert "the model was never shown 1 class: perhaps" in " ".join(run.err.split())
    assert value(out, "accuracy") == "0.6667"
    write("b.csv", "x,y", "1,no")
    assert value(run("evaluate", "model", "b.csv"), "AUC").startswith("not defined")


def test_a_confusion_of_forty_classes_fits_the_screen(run: Run) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{x:.2f},class of number {int(x * 40):02d}" for x in rng.random(4000)]
    write("t.csv", "x,y", *rows)
    run("fit", "t.csv", "--target", "y", "--max-leaf-nodes", "25", "-o", "model")
    out = run("evaluate", "model", "t.csv")
    assert "classes of lowest recall (of 40)" in out
    assert "most frequent confusions" in out
    assert len(out.splitlines()) < 35


def test_a_long_name_loses_its_middle() -> None:
    assert shortened("species number 12", 17) == "species number 12"
    assert shortened("species number 12", 16) == "species...ber 12"
    assert len(shortened("x" * 99, 24)) == 24


def test_whole_numbers_as_labels(run: Run) -> None:
    write("t.csv", "x,y", "1,0", "2,1", "3,1", "0,0")
    run("fit", "t.csv", "--target", "y", "-o", "model")
    assert gputree.load("model").classes_.dtype == np.int64
    assert value(run("evaluate", "model", "t.csv"), "accuracy") == "1.0000"
    assert run("predict", "model", "t.csv").split() == ["prediction", "0", "1", "1", "0"]


def test_a_column_of_codes_is_read_as_the_model_knows_it(run: Run) -> None:
    write("a.csv", "code,y", "1,a", "2,b", "x,c")
    write("b.csv", "extra,code", "7,2", "8,1", "9,")
    run("fit", "a.csv", "--target", "y", "-o", "model")
    assert run("predict", "model", "b.csv").split()[1:3] == ["b", "a"]


def test_columns_without_a_value_and_odd_files(run: Run) -> None:
    Path("t.csv").write_bytes('\ufeffx;gap;y\r\n1;NA;"a;b"\r\n\r\n2;;c\r\n'.encode())
    out = run("fit", "t.csv", "--target", "y", "--exclude", "gap")
    assert value(out, "table") == "2 rows, 1 feature (0 of categories)"
    assert value(run("fit", "t.csv", "--target", "y"), "missing") == "2 cells"


def test_parquet(run: Run) -> None:
    frame = pl.DataFrame(
        {
            "size": pl.Series([1.5, None, 2.5, 4.0], dtype=pl.Float32),
            "count": [1, 2, None, 4],
            "good": [True, False, None, True],
            "colour": pl.Series(["red", "blue", None, "red"], dtype=pl.Categorical),
            "name": ["a", "b", "c", None],
            "y": [True, False, True, False],
        }
    )
    frame.write_parquet("t.parquet")
    out = run("fit", "t.parquet", "--target", "y", "-o", "model")
    assert value(out, "table") == "4 rows, 5 features (3 of categories)"  # booleans too
    assert value(out, "target") == "y: booleans"
    assert value(out, "missing") == "5 cells"
    assert gputree.load("model").classes_.dtype == bool
    assert value(run("evaluate", "model", "t.parquet"), "accuracy") == value(out, "training").split()[1]
    frame.write_csv("t.csv")
    assert value(run("evaluate", "model", "t.csv"), "accuracy") == value(out, "training").split()[1]
    run("fit", "t.csv", "--target", "y", "-o", "text")  # which knows true and false as text
    assert run("predict", "text", "t.parquet", "--proba") == run("predict", "text", "t.csv", "--proba")
    frame.clear().write_parquet("empty.parquet")
    assert "no rows" in run.fails("fit", "empty.parquet", "--target", "y")
    frame.with_columns(day=pd.Timestamp("2024-01-01").to_pydatetime()).write_parquet("t.parquet")
    assert "column 'day' has type Datetime" in run.fails("fit", "t.parquet", "--target", "y")


def test_parquet_needs_a_library(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("t.parquet").write_bytes(b"PAR1")
    assert "is no Parquet file that polars reads" in run.fails("fit", "t.parquet", "--target", "y")
    monkeypatch.setattr(tables, "find_spec", lambda _: None)
    assert "run `pip install polars`, or give CSV" in run.fails("fit", "t.parquet", "--target", "y", code=1)


# Mistakes

TABLE = ("width,height,kind", "1,2,a", "2,3,b", "3,,a", "4,5,b")


@pytest.mark.parametrize(
    ("rows", "argv", "message"),
    [
        (TABLE, "fit t.csv --target knid", "t.csv has no column 'knid'; did you mean 'kind'?"),
        (TABLE, "fit t.csv --target zzz", "its columns are width, height, kind"),
        (TABLE, "fit t.csv --target kind --exclude hight", "no column 'hight'; did you mean 'height'?"),
        (TABLE, "fit t.csv --target kind --exclude width,height", "no column left to learn from"),
        (TABLE, "fit t.csv --target height", "column 'height' has no value in 1 row of 4; fill them in, or leave"),
        (TABLE, "fit t.csv", "the following arguments are required: --target"),
        (TABLE, "fit t.csv --target kind --target width", "argument --target: this is given twice; leave one of"),
        (TABLE, "fit t.csv --max-depth 2 --target kind --max-depth=3", "argument --max-depth: this is given twice"),
        (
            TABLE,
            "fit t.csv --target kind --max-depth",
            "expected one argument; see `gputree fit --learner cart --help`",
        ),
        (TABLE, "fit t.csv --soft-thresholds", "expected one argument; see `gputree fit --learner c45 --help`"),
        (TABLE, "predict model t.csv -o a -o b", "argument -o/--output: this is given twice"),
        (TABLE, "fit t.csv --target kind --max-dept 3", "--max-dept 3; did you mean --max-depth?"),
        (TABLE, "fit t.csv --exclude width height --target kind", "height; write `--exclude width --exclude height`"),
        (TABLE, "fit --exclude width height t.csv --target kind", "t.csv; write `--exclude width --exclude height`"),
        (TABLE, "fit --exclude width t.csv height --target kind", "height; write `--exclude width --exclude height`"),
        (TABLE, "fit --exclude width t.csv width --target kind", "unrecognized arguments: width; see `gputree fit --h"),
        (TABLE, "fit t.csv --target kind --exclude=width width", "unrecognized arguments: width; see `gputree fit --h"),
        (TABLE, "fit t.csv --target kind --stopping=no-gain collapse", "`--stopping no-gain --stopping collapse`"),
        (TABLE, "fit t.csv --target kind --cf 0.1", "--cf 0.1; write `--pruning error-based:cf=0.1`"),
        (TABLE, "prune model --strict=true", "; write `--rule reduced-error:strict=true`"),
        (TABLE, "prune model", "the following arguments are required: --rule; see `gputree prune --help`"),
        (TABLE, "predict model t.csv --sep ,", "unrecognized arguments: --sep ,; see `gputree predict --help`"),
        (
            TABLE,
            "fit t.csv --target kind --learner forest --oob-score",
            "expected one argument; write `--oob-score true`",
        ),
        (TABLE, "predict model t.csv --op x", "unrecognized arguments: --op x; see `gputree predict --help`"),
        (TABLE, "fit t.csv --target kind width", "unrecognized arguments: width; see `gputree fit --help`"),
        (TABLE, "fit t.csv --target kind --zzz", "unrecognized arguments: --zzz; see `gputree fit --help`"),
        (TABLE, "fit t.csv --target kind --max-depth 0", "'max_depth' parameter of cart must be an"),
        (TABLE, "fit t.csv --target kind --max-depth deep", "Got 'deep' instead"),
        (TABLE, "fit t.csv --target kind --criterion gin", "criterion='gin' must be one of 'gini', "),
        (TABLE, "fit t.csv --target kind --learner Tree", "--learner Tree is unknown; learners are cart, extra-tree,"),
        (TABLE, "fit t.csv --target kind --criterion squared", "(for a target of numbers: criterion='squared' must be"),
        (
            TABLE,
            "fit t.csv --target kind --monotonic-cst -1,0,1",
            "has 3 signs, and there are 2 features: width, heigh",
        ),
        (TABLE, "fit t.csv --target kind --class-weight {'a':2", "--class-weight {'a':2 is no Python literal; close"),
        (TABLE, "fit t.csv --target kind --class-weight {'a':2,'no':1}", "names 'no', which is no class of column 'ki"),
        (TABLE, "fit t.csv --target kind --class-weight {'no':1}", "its classes are 'a', 'b'"),
        (TABLE, "fit t.csv --target kind --class-weight {'a':'x'}", "gives 'a' the weight 'x'; weights are numbers"),
        (TABLE, "fit t.csv --target kind --sample-weight wide", "t.csv has no column 'wide'; did you mean 'width'"),
        (TABLE, "fit t.csv --target kind --sample-weight kind", "cannot be both --target and --sample-weight"),
        (
            TABLE,
            "fit t.csv --target width --sample-weight kind",
            "--sample-weight kind holds text such as 'a'; weights",
        ),
        (TABLE, "fit t.csv --target kind --sample-weight height", "height holds nothing in 1 row; give each row a"),
        (("a,w,y", "1,-2,a", "1,2,b"), "fit t.csv --target y --sample-weight w", "--sample-weight w holds -2 in 1 row"),
        (("a,w,y", "1,0,a", "1,0,b"), "fit t.csv --target y --sample-weight w", "--sample-weight w is 0 in every row"),
        (TABLE, "fit t.csv --target kind --learner DecisionTreeRegressor", "y holds 'a', which is no number"),
        (
            TABLE,
            "fit t.csv --target width --learner ExtraTreeRegressor --class-weight balanced",
            "--class-weight is",
        ),
        (TABLE, "fit t.csv --target kind --device tpu", "device='tpu' must be 'auto', 'cpu'"),
        (TABLE, "predict t.csv t.csv", "t.csv is no model file; `gputree fit` makes one from a table"),
        (TABLE, "show t.csv", "t.csv is no model file; `gputree fit` makes one from a table"),
        (TABLE, "fingerprint t.csv", "t.csv is no model file; `gputree fit` makes one from a table"),
        (TABLE, "grow t.csv", "invalid choice: 'grow'"),
        (TABLE, "", "the following arguments are required: COMMAND"),
        ((), "fit t.csv --target kind", "t.csv is empty; a table begins with a line of column names"),
        (TABLE[:1], "fit t.csv --target kind", "t.csv has names of columns and no rows"),
        (("a,a", "1,2"), "fit t.csv --target a", "two columns called 'a'"),
        (("1,2", "1,2"), "fit t.csv --target a", "the first line of t.csv holds numbers only"),
        (
            ("a,b", "1,2", "1,2,3"),
            "fit t.csv --target b",
            "row 1 (counted from 0) of t.csv has 3 cells where the first line names 2",
        ),
        (("a,b", '1,"2'), "fit t.csv --target b", "t.csv is neither CSV in UTF-8 nor Parquet: "),
        (("a,b", "1,NA", "2,"), "fit t.csv --target b --drop-missing", "has no value in 2 rows of 2; fill them in"),
    ],
)
def test_a_mistake_is_explained(rows: tuple[str, ...], argv: str, message: str, run: Run) -> None:
    write("t.csv", *rows)
    assert message in run.fails(*argv.split())


def test_binary_data_is_no_table(run: Run) -> None:
    Path("t.csv").write_bytes(bytes(range(256)))
    assert "neither CSV in UTF-8 nor Parquet" in run.fails("fit", "t.csv", "--target", "y")


@pytest.mark.parametrize(
    ("rows", "argv", "message"),
    [
        (("width,other", "1,2"), "evaluate model t.csv", "t.csv has no column 'height'; its columns are width, other"),
        (("width,height", "1,2"), "evaluate other t.csv", "there is no column in t.csv beside those that the model"),
        (("width,height,a,b", "1,2,3,4"), "evaluate other t.csv", "there are 2 columns (a, b) in t.csv beside"),
        (
            ("width,height,a,b", "1,2,3,4"),
            "evaluate model t.csv",
            "no column 'kind', the target of the fit; name another",
        ),
        (("width,height,a", "1,2,3"), "evaluate model t.csv --target width", "the model reads column 'width'"),
        (("width,kind", "1,a"), "evaluate model t.csv --target kind", "t.csv has no column 'height'"),
        (("width,hight", "1,2"), "predict model t.csv", "no column 'height'; did you mean 'hight'"),
        (
            ("width,height", "1,2", "tall,3"),
            "predict model t.csv",
            "holds 'tall' in column 'width', row 1 (counted from 0), where",
        ),
    ],
)
def test_a_table_that_does_not_fit_the_model(rows: tuple[str, ...], argv: str, message: str, run: Run) -> None:
    write("t.csv", *TABLE)
    run("fit", "t.csv", "--target", "kind", "-o", "model")
    other = gputree.load("model")
    del other._target_name  # as of a fit in Python
    gputree.save(other, "other")
    write("t.csv", *rows)
    assert message in run.fails(*argv.split())


@pytest.mark.parametrize("learner", ["cart", "forest", "c45-rules"])
def test_a_model_knows_its_target_by_name(learner: str, run: Run) -> None:
    """So that neither evaluate nor prune asks for it, be there other columns, or the name of none in older files."""
    write("t.csv", "id,width,kind", *(f"{i},{i},{'ab'[i // 8]}" for i in range(16)))
    run("fit", "t.csv", "--target", "kind", "--exclude", "id", "--learner", learner, "-o", "model")
    assert value(run("evaluate", "model", "t.csv"), "table") == "16 rows, target kind"
    write("t.csv", "id,width", "1,1", "2,2")
    assert "t.csv has no column 'kind', the target of the fit; name" in run.fails("evaluate", "model", "t.csv")
    write("t.csv", "id,width,kind", "1,1,a", "2,2,b")
    grown = report.grown(gputree.load("model")).fit(pd.DataFrame({"width": [1, 2]}), ["a", "b"])
    assert not hasattr(grown, "_target_name")
    gputree.save(grown, "other")
    assert "name the target with --target" in run.fails("evaluate", "other", "t.csv")


def test_text_where_the_model_predicts_numbers(run: Run) -> None:
    write("t.csv", "x,y", "1,0.5", "2,1.5")
    run("fit", "t.csv", "--target", "y", "-o", "model")
    write("t.csv", "x,y", "1,high", "2,low")
    assert "column 'y' holds text such as 'high', and the model predicts numbers" in run.fails(
        "evaluate", "model", "t.csv"
    )


def test_several_outputs(run: Run) -> None:
    y = np.array([["a", "x"], ["b", "x"], ["b", "y"]])
    model = gputree.DecisionTreeClassifier().fit(pd.DataFrame({"w": [1.0, 2.0, 3.0]}), y)
    gputree.save(model, "model")
    write("t.csv", "w,y", "1,a", "3,b")
    assert "has 2 outputs" in run.fails("evaluate", "model", "t.csv")
    assert run("predict", "model", "t.csv", "--proba").split() == [
        "prediction_0,prediction_1,share_0_a,share_0_b,share_1_x,share_1_y",
        "a,x,1.0,0.0,1.0,0.0",
        "b,y,0.0,1.0,0.0,1.0",
    ]
    run("show", "model")


def test_a_constant_target_is_a_warning(run: Run) -> None:
    write("t.csv", "x,y", "1,a", "2,a")
    out = run("fit", "t.csv", "--target", "y", "-o", "model")
    assert run.err.startswith("gputree: warning: column 'y' is a in every row, so the tree is one leaf")
    assert value(out, "tree") == "1 node, 1 leaf, depth 0"


@pytest.mark.parametrize(
    "argv", ["fit none.csv --target y", "predict none t.csv", "show none", "predict model none.csv", "fingerprint none"]
)
def test_a_file_that_is_not_there(argv: str, run: Run) -> None:
    write("t.csv", *TABLE)
    run("fit", "t.csv", "--target", "kind", "-o", "model")
    assert "No such file or directory" in run.fails(*argv.split(), code=1)


@pytest.mark.parametrize("argv", ["fit none.csv --target y -o no/model", "predict none none.csv -o no/model"])
def test_a_folder_that_is_not_there_is_named_before_anything_is_read(argv: str, run: Run) -> None:
    error = run.fails(*argv.split(), code=1)
    assert error == "gputree: error: no/model: there is no folder no; make it, or write elsewhere"


def test_places_that_cannot_be_written(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkdir("folder")
    argv = ["fit", "none.csv", "--target", "y", "-o"]
    assert "folder: this is a folder; name a file in it" in run.fails(*argv, "folder", code=1)
    monkeypatch.setattr("gputree.io.os.access", lambda *_: False)
    assert "folder/m: the folder folder may not be written to" in run.fails(*argv, "folder/m", code=1)


def test_a_model_and_a_table_in_each_others_place(run: Run) -> None:
    write("t.csv", *TABLE)
    run("fit", "t.csv", "--target", "kind", "-o", "model")
    for command in ("evaluate", "predict"):
        message = run.fails(command, "t.csv", "model")
        assert message.endswith("t.csv is no model file, but model is; the model comes first: `model t.csv`")
    assert "model is a model and no table" in run.fails("fit", "model", "--target", "kind")
    assert "model is a model and no table" in run.fails("evaluate", "model", "model")
    Path("model").write_bytes(Path("model").read_bytes()[:-40])
    assert "model is no model file that this version reads: " in run.fails("show", "model")


@pytest.mark.parametrize("option", ["--max-depth=0", "--criterion=gin", "--device=tpu", "--min-samples-leaf=0"])
@pytest.mark.parametrize("learner", [[], ["--learner", "DecisionTreeRegressor"]])
def test_a_parameter_out_of_range_is_refused_before_the_table_is_read(
    option: str, learner: list[str], run: Run
) -> None:
    name = option.strip("-").split("=")[0].replace("-", "_")
    assert name in run.fails("fit", "none.csv", "--target", "y", option, *learner)


def test_a_parameter_that_does_not_fit_the_target_is_refused_before_the_summary(run: Run) -> None:
    write("t.csv", *TABLE)
    run("fit", "t.csv", "--target", "width", "--learner", "DecisionTreeRegressor", "--criterion", "poisson")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gputree.readers.fitter.show", lambda *_: pytest.fail("the summary was printed"))
        assert "criterion='poisson' must be one of" in run.fails(
            "fit", "t.csv", "--target", "kind", "--criterion=poisson"
        )


def test_a_device_that_cannot_be_used(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write("t.csv", *TABLE)
    monkeypatch.setenv("GPUTREE_DEVICE", "nonsense")
    assert "from the environment variable GPUTREE_DEVICE" in run.fails("fit", "t.csv", "--target", "kind")

    def broken(*_: Any) -> None:
        raise RuntimeError("device='cuda' cannot be used: no driver")

    monkeypatch.setattr("gputree.readers.fitter.choose", broken)
    assert "cannot be used: no driver" in run.fails("fit", "t.csv", "--target", "kind", code=1)


def test_verbose_prints_progress(run: Run) -> None:
    run("fit", penguins(), "--target", "species", "--verbose")
    assert run.err.count("[gputree]") > 2


def test_a_reader_that_has_seen_enough() -> None:
    """``gputree predict ... | head -1`` ends without a word."""
    penguins()
    assert main(["fit", "penguins.csv", "--target", "species", "-o", "model"]) == 0
    with open("big.csv", "w") as file:
        lines = Path("penguins.csv").read_text().splitlines(keepends=True)
        file.writelines([lines[0], *lines[1:] * 60])
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "gputree.cli", "predict", "model", "big.csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


@pytest.mark.parametrize(
    "argv",
    [
        "fit t.csv --target kind --verbose -o new",
        "prune model --rule collapse -o new",
        "fit t.csv --target width -o new",
    ],
)
def test_a_file_is_written_though_nobody_reads_the_report(argv: str, run: Run) -> None:
    """Neither the report nor the warnings."""
    write("t.csv", *TABLE)
    run("fit", "t.csv", "--target", "kind", "-o", "model")
    read, closed = os.pipe()
    os.close(read)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "gputree.cli", *argv.split()]
    assert subprocess.run(command, stdout=closed, stderr=closed, env=environment).returncode == 0
    os.close(closed)
    assert run("fingerprint", "new")


def test_columns_to_leave_out_before_the_table(run: Run) -> None:
    write("t.csv", '"a,b",c,d,y', "1,2,3,4", "2,3,4,5")
    out = run("fit", "--target", "y", "--exclude", "a,b", "t.csv")
    assert value(out, "table") == "2 rows, 2 features (0 of categories)"
    out = run("fit", "--exclude", "c,d", "--target", "y", "t.csv")
    assert value(out, "table") == "2 rows, 1 feature (0 of categories)"
    out = run("fit", "t.csv", "--exclude", "c", "--target", "y", "--exclude", "d")
    assert value(out, "table") == "2 rows, 1 feature (0 of categories)"


def test_a_pipe_is_refused(run: Run) -> None:
    read, to = os.pipe()
    os.close(to)
    assert "is a pipe, and a table is read more than once" in run.fails("fit", f"/dev/fd/{read}", "--target", "y")
    os.close(read)


def test_stopped_by_hand(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gputree.cli.load_model", stop)
    assert "stopped" in run.fails("show", "model", code=130)


# Advice


def wide_table(*names: str, n: int = 30) -> None:
    """A table with a number x, a label y, and columns of these names, each odd in its way."""
    odd = {
        "row": lambda i: i,
        "row one": lambda i: i + 1,
        "skips": lambda i: i + 2,
        "date": lambda i: f"2024-01-{i + 1:02d}",
        "hour": lambda i: f"{i % 24}:30",
        "dirty": lambda i: "unknown" if i == 17 else i * 0.5,
        "often": lambda i: "?" if i < 8 else "" if i == 9 else i,
        "name": lambda i: f"person {i}" if i != 3 else "",
        "month": lambda i: f"{['Jan', 'Feb', 'Mar'][i % 3]} {1 + i % 12} 2024" if i else "soon",
        "season": lambda i: f"2024-{i % 4:02d}-01",
        "price": lambda i: f'"{i % 9},{i % 4}"' if i % 3 else i % 9,
        "many": lambda i: f'"{1 + i % 5},{100 + i},000.5"',
        "pair": lambda i: f'"{i % 2},{i % 3},{i % 2}"',
        "few": lambda i: f"kind {i % 20}",
        "code": lambda i: "x" if i % 3 == 0 else i % 3,
    }
    rows = [",".join(str(odd[name](i)) for name in names) for i in range(n)]
    write("t.csv", ",".join([*names, "x", "y"]), *(f"{row},{i % 7}.5,{'ab'[i % 2]}" for i, row in enumerate(rows)))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("row", "column 'row' looks like a row index; leave it out with `--exclude row`"),
        ("row one", "column 'row one' looks like a row index; leave it out with `--exclude 'row one'`"),
        ("skips", ""),
        ("date", "column 'date' is text with 30 categories that look like dates or times; give numbers instead, or"),
        ("hour", "column 'hour' is text with 24 categories that look like dates or times"),
        ("dirty", "column 'dirty' is text, though 29 of its 30 known cells are numbers: the first that is none is"),
        (
            "dirty",
            "is 'unknown' in row 17 (counted from 0); mend or empty such cells, or leave it out with `--exclude dirty`",
        ),
        ("often", "column 'often' is text, though 21 of its 29 known cells are numbers: the first that is none is '?'"),
        ("name", "column 'name' is text with 29 categories in 29 known cells, nearly all distinct; leave it out with"),
        ("month", "column 'month' is text with 13 categories that look like dates or times"),
        ("price", "column 'price' is text whose cells look like numbers with commas, such as '1,1'; write a"),
        ("many", "look like numbers with commas, such as '1,100,000.5'; write a decimal point (1.5) and no"),
        ("pair", ""),
        ("season", ""),
        ("few", ""),
        ("code", ""),
    ],
)
def test_advice(name: str, message: str, run: Run) -> None:
    wide_table(name)
    run("fit", "t.csv", "--target", "y", "-o", "model")
    told = " ".join(run.err.split())
    assert told.startswith("gputree: warning: ") if message else not told
    assert message in told
    run("fit", "t.csv", "--target", "y", "--exclude", name, "-o", "model")
    assert run.err == ""


def test_advice_on_decimal_commas(run: Run) -> None:
    """As they are written where semicolons part the cells, in features and the target."""
    write("t.csv", "x;y", *(f"{i},{i % 10};{i % 3},5" for i in range(12)))
    run("fit", "t.csv", "--target", "y", "-o", "model")
    told = " ".join(run.err.split())
    assert "column 'x' is text whose cells look like numbers with commas, such as '0,0'; write a decimal point" in told
    assert (
        "such as '0,5'; write a decimal point (1.5) and no thousands separator (1000), or name another --target" in told
    )


def test_advice_on_the_target(run: Run) -> None:
    wide_table("dirty", "name")
    run("fit", "t.csv", "--target", "dirty", "--exclude", "name", "-o", "model")
    told = " ".join(run.err.split())
    assert "29 of its 30 known cells are numbers" in told
    assert "in row 17 (counted from 0); mend or empty such cells, or name another --target" in told
    wide_table("dirty", "name", n=29)
    run("fit", "t.csv", "--target", "name", "--exclude", "dirty", "--drop-missing", "-o", "model")
    assert "nearly all distinct; name another --target" in " ".join(run.err.split())


def test_rows_without_a_target_count_in_the_row_that_advice_names(run: Run) -> None:
    rows = [f"{i},{'bad' if i == 25 else i},{'' if i < 10 else 'ab'[i % 2]}" for i in range(40)]
    write("t.csv", "id,dirty,y", *rows)
    out = run("fit", "t.csv", "--target", "y", "--drop-missing", "-o", "model")
    told = " ".join(run.err.split())
    assert "'bad' in row 25 (counted from 0);" in told
    assert "column 'id' looks like a row index" in told
    assert value(out, "categories") == "dirty (30)"


@pytest.mark.parametrize("name", ["row", "name", "date"])
def test_ten_rows_may_be_numbered_or_named_by_accident(name: str, run: Run) -> None:
    for n, told in ((9, False), (11, True)):
        wide_table(name, n=n)
        run("fit", "t.csv", "--target", "y", "-o", "model")
        assert bool(run.err) is told


def test_columns_of_text_are_named_as_far_as_they_fit(run: Run) -> None:
    names = [f"column number {i}" for i in range(12)]
    write("t.csv", ",".join([*names, "y"]), *(f"{','.join(row * 12)},{row}" for row in "abba"))
    out = run("fit", "t.csv", "--target", "y", "-o", "model")
    assert value(out, "categories") == "column number 0 (2), column number 1 (2) and 10 more"


# Weights


def weighted(path: str) -> None:
    rng = np.random.default_rng(2)
    rows = zip(rng.integers(0, 9, 60), rng.integers(0, 9, 60), rng.integers(0, 4, 60), strict=True)
    write(path, "a,b,w,y", *(f"{a},{b},{w},{'no' if a > b else 'yes'}" for a, b, w in rows))


def test_weights_are_copies_and_no_feature(run: Run) -> None:
    weighted("t.csv")
    lines = Path("t.csv").read_text().splitlines()
    cells = [line.split(",") for line in lines[1:]]
    write("copies.csv", "a,b,y", *(f"{a},{b},{y}" for a, b, w, y in cells for _ in range(int(w))))
    out = run("fit", "t.csv", "--target", "y", "--sample-weight", "w", "--max-depth", "2", "-o", "model")
    assert value(out, "table") == "60 rows, 2 features (0 of categories)"
    assert value(out, "weights") == "w: 0 to 3"
    copies = run("fit", "copies.csv", "--target", "y", "--max-depth", "2", "-o", "again")
    assert [value(out, name) for name in ("tree", "training")] == [value(copies, name) for name in ("tree", "training")]
    out = run("evaluate", "model", "t.csv", "--sample-weight", "w")
    copies = run("evaluate", "model", "copies.csv")
    assert [value(out, name) for name in ("accuracy", "AUC")] == [value(copies, name) for name in ("accuracy", "AUC")]
    assert "Accuracy and AUC are weighted; the tables count rows." in out
    assert value(run("evaluate", "model", "t.csv"), "table") == "60 rows, target y"


def test_weights_of_a_regression(run: Run) -> None:
    write("t.csv", "x,w,y", "1,1,0.5", "1,3,2.5", "2,1,4")
    out = run("fit", "t.csv", "--target", "y", "--sample-weight", "w", "-o", "model")
    # the leaf of x = 1 predicts 2: errors 1.5 (once) and 0.5 (three times) in a weight of 5
    assert value(out, "training").startswith("RMSE 0.774597; R2 ")
    assert value(run("evaluate", "model", "t.csv", "--sample-weight", "w"), "RMSE") == "0.774597"
    assert float(value(run("evaluate", "model", "t.csv", "--target", "y"), "RMSE")) == pytest.approx(0.912871)


# Lists and dicts


def test_a_list_that_begins_with_a_minus(run: Run) -> None:
    write("t.csv", *TABLE)
    for option in (["--monotonic-cst", "-1,0"], ["--monotonic-cst=-1,0"], ["--monotonic-cst", "[-1, 0]"]):
        run("fit", "t.csv", "--target", "kind", "-o", "model", *option)
        assert gputree.load("model").monotonic_cst == [-1, 0]
    assert "max_depth" in run.fails("fit", "t.csv", "--target", "kind", "--max-depth", "-1")
    assert joined(["a", "--x", "-1", "--", "-2"]) == ["a", "--x=-1", "--", "-2"]


# Show


def test_thresholds_show_three_digits(run: Run) -> None:
    write("t.csv", "x,y", "-0.004,a", "-0.0036,b", "5,c")
    run("fit", "t.csv", "--target", "y", "-o", "model")
    assert "|--- x <= -0.00380\n" in run("show", "model")
    assert "|--- x <= -0.0\n" in run("show", "model", "--decimals", "1")
    assert "decimals=-1 must be a whole number" in run.fails("show", "model", "--decimals", "-1")


def test_long_names_stay_different(run: Run) -> None:
    """In trees, lists and tables of classes, which cut them."""
    kinds = [f"{'k' * 40}{i}{'l' * 40}" for i in range(9)]
    write("t.csv", "x,y", *(f"{i},{kinds[i % 9]}" for i in range(18)))
    run("fit", "t.csv", "--target", "y", "-o", "model")
    for shown in (run("show", "model", wide=True), run("evaluate", "model", "t.csv", wide=True)):
        assert len(set(re.findall(r"k+\d?[.kl]*\dl*", shown))) == 9


def test_all_categories_are_shown_when_asked_for(run: Run) -> None:
    write("t.csv", "x,y", *(f"kind {i:02d},{'ab'[i % 2]}" for i in range(40)))
    run("fit", "t.csv", "--target", "y", "-o", "model")
    assert "... 15 more}" in run("show", "model")
    assert "kind 39}" in run("show", "model", "--all-categories", wide=True)


def test_weights_of_leaves_are_shown_when_asked_for(run: Run) -> None:
    write("t.csv", *TABLE)
    run("fit", "t.csv", "--target", "kind", "-o", "model")
    assert "weights" not in run("show", "model")
    assert "weights: [2.00, 0.00] class: a" in run("show", "model", "--show-weights")


def test_max_depth_of_show_is_that_of_export_text(run: Run) -> None:
    run("fit", penguins(), "--target", "species", "-o", "model")
    text = gputree.export_text(gputree.load("model"), max_depth=0)
    assert run("show", "model", "--max-depth", "0").endswith(text)
    assert "0 shows the root's test" in " ".join(run("show", "--help").split())


@pytest.mark.parametrize("width", [60, 80])
def test_every_report_keeps_to_the_screen(width: int, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of forty categories and classes and a deep tree; but fingerprints, of which a part is none."""
    monkeypatch.setenv("COLUMNS", str(width))
    rows = (f"category number {i % 40},{i % 101},label number {i * i % 97 % 41}" for i in range(400))
    write("t.csv", "the name of a column,x,y", *rows)
    out = run("fit", "t.csv", "--target", "y", "--max-leaf-nodes", "60", "-o", "m")
    out += run("show", "m", "--max-depth", "6") + run("rules", "m") + run("evaluate", "m", "t.csv")
    assert max(len(line) for line in out.splitlines() if "fingerprint" not in line) <= width
    assert gputree.RuleSet.from_text(run("rules", "m")) == gputree.load("m").rules()


def test_nothing_is_printed_before_a_mistake_is_found(run: Run) -> None:
    write("t.csv", *TABLE)
    run("fit", "t.csv", "--target", "kind", "-o", "model")
    assert run("show", "model", "--max-depth", "-1", code=2) == ""


def test_a_warning_is_a_sentence(run: Run) -> None:
    """It names no place in the library, which nobody on the command line can look at."""
    run("fit", penguins(), "--target", "species", "--learner", "forest", "--n-estimators", "2", "--oob-score", "true")
    assert re.match(r"gputree: warning: \d+ of 344 rows are in every bag", run.err)
    assert ".py" not in run.err


def test_a_full_disk_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", Full())
        assert main(["info"]) == 1
    assert run.capsys.readouterr().err == "gputree: error: standard output: No space left on device\n"


def test_long_names_are_cut(run: Run) -> None:
    label, word = "the label " * 20, "the category " * 20
    write("t.csv", f"{'x' * 99},y", *(f"{word}{i % 12},{label}{i % 12}" for i in range(24)))
    run("fit", "t.csv", "--target", "y", "-o", "model")
    out = run("show", "model")
    assert value(out, "classes") == "12: the label the label... label the label 0 and 11 more"
    assert "xxx...xxx" in out
    assert "= the category the ca...the category 0" not in out
    assert " = the category the ca...ory the\n|      category 9\n" in out


# Parts


@pytest.mark.parametrize("width", [40, 61, 72, 80])
def test_a_command_in_a_sentence_stays_on_one_line(width: int) -> None:
    command = "`gputree fit table.csv --exclude 'row index'`"
    text = report.wrapped(f"gputree: warning: some words and then {command} and more of them", width, "  ")
    assert any(command in line for line in text.splitlines())
    assert " ".join(text.split()).startswith("gputree: warning: some words and then `gputree fit")


def test_a_list_is_cut_to_the_line() -> None:
    assert report.cut_line(["a", "b"], 4) == "a, b"
    assert report.cut_line([f"{i}" for i in range(100)], 20) == "0, 1, 2 and 97 more"
    assert report.cut_line(["a" * 30, "b"], 20) == f"{'a' * 30} and 1 more"


def test_predictions_are_written_with_all_their_digits(run: Run) -> None:
    write("t.csv", "x,y", f"1,{1 / 3!r}", f"2,{0.1 + 0.2!r}", "3,1e-20", "4,12345678.9")
    run("fit", "t.csv", "--target", "y", "-o", "model")
    written = run("predict", "model", "t.csv").split()[1:]
    assert written == ["0.3333333333333333", "0.30000000000000004", "1e-20", "12345678.9"]


def test_python_runs_the_package(run: Run) -> None:
    command = [sys.executable, "-m", "gputree", "--version"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.stdout == run("--version")


def test_area_under_the_curve_by_hand() -> None:
    # one of the four pairs of a positive and a negative row is in the wrong order
    shares = np.array([0.1, 0.6, 0.4, 0.9])
    assert report.area_under_curve(np.array([0, 0, 1, 1]), np.stack([1 - shares, shares], axis=1)) == "0.7500"
    for truth, why in (([1, 1], "one class only"), ([2, 3], "no class of the model")):  # 2, 3: classes never fitted
        assert why in report.area_under_curve(np.array(truth), np.full((2, 2), 0.5))


def test_everything_runs_where_no_frame_library_is(tmp_path: Path) -> None:
    """The demo and CSV with NumPy, scikit-learn and narwhals alone."""
    block = "import sys; sys.modules.update(dict.fromkeys(['pandas', 'polars', 'pyarrow', 'rich', 'numba']))\n"
    code = block + "from gputree.cli import main\nimport sys\nsys.exit(main(sys.argv[1:]))\n"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for argv in (["demo", "--rows", "500"], ["fit", penguins(), "--target", "species", "-o", "m"], ["show", "m"]):
        done = subprocess.run([sys.executable, "-c", code, *argv], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_labels_of_one_number_stay_apart(run: Run) -> None:
    """Postal codes: 1 and 01 are two labels, though they read as one number."""
    write("t.csv", "x,t", *(f"{i},{('1', '01', 'a')[i % 3]}" for i in range(12)))
    run("fit", "t.csv", "--target", "t", "-o", "model")
    assert value(run("evaluate", "model", "t.csv"), "accuracy") == "1.0000"


def test_nothing_that_is_read_is_written_over(run: Run) -> None:
    """The table of a fit, the table and the model of a prediction, also by another name."""
    Path("t.csv").write_text("a,y\n1,u\n2,v\n")
    run("fit", "t.csv", "--target", "y", "-o", "m")
    os.symlink("t.csv", "link.csv")
    for command in (
        ["fit", "t.csv", "--target", "y", "-o", "t.csv"],
        ["fit", "t.csv", "--target", "y", "-o", "link.csv"],
        ["predict", "m", "t.csv", "-o", "t.csv"],
        ["predict", "m", "t.csv", "-o", "m"],
    ):
        before = Path("t.csv").read_bytes(), Path("m").read_bytes()
        assert main(command) != 0
        assert (Path("t.csv").read_bytes(), Path("m").read_bytes()) == before


def test_booleans_of_a_file_are_those_of_a_data_frame(run: Run) -> None:
    """A model of a CSV file predicts for the frame that pandas reads from it."""
    Path("t.csv").write_text("a,y\nTrue,u\nFalse,v\nTrue,u\n,v\n")
    run("fit", "t.csv", "--target", "y", "-o", "m")
    model = gputree.load("m")
    assert model.schema_.features[0].categories == (False, True)
    frame = pd.read_csv("t.csv")
    assert model.predict(frame[["a"]]).tolist() == ["u", "v", "u", "v"]


# prune


def fitted(run: Run, *options: str) -> tuple[str, str, str]:
    """A model of two thirds of the penguins, these rows, and the others."""
    lines = Path(penguins()).read_text(encoding="utf-8").splitlines()
    parts = [[line for i, line in enumerate(lines[1:]) if (i % 3 == 2) == other] for other in (False, True)]
    names = [write(f"{name}.csv", lines[0], *part) for name, part in zip(("train", "other"), parts, strict=True)]
    run("fit", names[0], "--target", "species", "-o", "m.gputree", *options)
    return "m.gputree", *names


def test_prune_by_a_rule_that_needs_no_rows(run: Run) -> None:
    model, train, _ = fitted(run)
    out = run("prune", model, "--rule", "cost-complexity:alpha=0.01", "-o", "small.gputree")
    assert value(out, "rule") == "CostComplexity(alpha=0.01, penalty='leaves', cost='impurity')"
    before, after = gputree.load(model), gputree.load("small.gputree")
    assert value(out, "before").startswith(f"{before.forest_.n_nodes} nodes, ")
    assert value(out, "after").startswith(f"{after.forest_.n_nodes} nodes, ")
    assert after.forest_.n_nodes < before.forest_.n_nodes
    assert value(out, "fingerprint") == after.fingerprint()
    assert value(out, "saved").startswith("small.gputree (")
    assert value(run("show", "small.gputree"), "pruned").startswith("by CostComplexity(alpha=0.01, ")
    out = run("prune", model, "--rule", "CHI-SQUARE", "--table", train)
    assert "accuracy 1.0000" in value(out, "before")
    assert "the model is not saved" in run.err


@pytest.mark.parametrize(
    ("rule", "table"),
    [
        ("reduced-error:strict=true", 2),
        ("reduced-error:greedy=True", 2),
        ("validation-set", 2),
        ("risk-bound:delta=0.1,n-tests=20", 1),
        ("error-based:cf=0.05,limit=c45", 1),
        ("error-based:raising=false", 0),
        ("collapse", 0),
        ("description-length:tree-weight=2,code=wallace-patrick", 1),
    ],
)
def test_prune_by_rows(run: Run, rule: str, table: int) -> None:
    files = fitted(run)
    given = ["--table", files[table]] if table else []
    out = run("prune", files[0], "--rule", rule, *given, "-o", "small.gputree")
    assert gputree.load("small.gputree").forest_.n_nodes <= gputree.load(files[0]).forest_.n_nodes
    assert ("table" in out) == bool(table)


def test_prune_a_regressor(run: Run) -> None:
    write("t.csv", "x,y", *(f"{i},{i * i % 17}.5" for i in range(60)))
    run("fit", "t.csv", "--target", "y", "-o", "m.gputree")
    out = run("prune", "m.gputree", "--rule", "reduced-error", "--table", "t.csv", "--target", "y")
    assert "RMSE 0; R2 1.0000" in value(out, "before")
    assert "gputree: warning: ReducedError(strict=False, greedy=False) needs" in run.err
    assert "counts errors of one output of classes" in run.fails("prune", "m.gputree", "--rule", "chi-square")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--rule", "bottom"], "--rule bottom is unknown; rules are collapse, error-based,"),
        (["--rule", "reduced-error"], "--rule reduced-error needs validation rows, which the fit has not seen; give"),
        (["--rule", "risk-bound"], "--rule risk-bound needs the rows of the fit; give them with --table"),
        (["--rule", "risk-bound:delta=2", "--table", "other.csv"], "delta=2 must be a number above 0"),
        (["--rule", "error-based:cf=0", "--table", "train.csv"], "cf=0 must be a number above 0"),
        (["--rule", "risk-bound", "--table", "other.csv"], "give the rows"),
        (["--rule", "description-length"], "--rule description-length needs the rows of the fit; give them with"),
        (["--rule", "reduced-error:strict=no", "--table", "other.csv"], "strict='no' must be True or False"),
        (["--rule", "cost-complexity"], "--rule cost-complexity needs alpha; write cost-complexity:alpha=NUMBER,"),
        (["--rule", "collapse:alpha=1"], "'alpha=1' sets no parameter of the rule; write collapse"),
        (["--rule", "chi-square:cf=1"], "'cf=1' sets no parameter of the rule; write chi-square:alpha=0.05"),
        (["--rule", "reduced-error", "--table", "none.csv"], "has no column"),
        (["--rule", "reduced-error", "--table", "empty.csv"], "row"),
        (
            ["--rule", "reduced-error", "--table", "strange.csv"],
            "column 'species' holds 1 class that the model was never",
        ),
    ],
)
def test_prune_says_what_is_wrong(run: Run, argv: list[str], message: str) -> None:
    model, _, other = fitted(run)
    lines = Path(other).read_text(encoding="utf-8").splitlines()
    write("none.csv", "species,island", "Adelie,Dream")
    write("empty.csv", lines[0])
    write("strange.csv", lines[0], lines[1].replace("Adelie", "Emperor"))
    assert message in run.fails("prune", model, *argv)


def test_prune_does_not_write_over_what_it_reads(run: Run) -> None:
    model, *_ = fitted(run)
    run.fails("prune", model, "--rule", "collapse", "-o", model, code=1)
    assert run("fingerprint", model)
