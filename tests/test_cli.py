"""The command line: what each command prints, and what it says when something is wrong."""

from __future__ import annotations

import csv
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn

import gputree
from gputree import readers, report
from gputree.cli import main
from gputree.datasets import load_penguins, make_higgs_like
from gputree.io import ESTIMATORS

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


def test_fit_evaluate_predict_show(run: Run) -> None:
    table = penguins()
    out = run("fit", table, "--target", "species", "--max-depth", "4", "-o", "model")
    assert value(out, "table") == "344 rows, 7 features (2 of text)"
    assert value(out, "missing") == "19 cells"
    assert value(out, "target") == "species: text, 3 classes"
    assert value(out, "learner") == "DecisionTreeClassifier"
    X = load_penguins().to_frame("pandas").drop(columns="species")
    same = gputree.DecisionTreeClassifier(max_depth=4).fit(X, load_penguins().column("species"))
    assert value(out, "fingerprint") == same.fingerprint()
    assert run("fingerprint", "model").strip() == same.fingerprint()

    out = run("evaluate", "model", table)
    accuracy = same.score(X, load_penguins().column("species"))
    assert value(out, "accuracy") == f"{accuracy:.4f}"
    assert value(out, "AUC").endswith("(one against the rest, mean of 3 classes)")
    assert "true          Adelie  Chinstrap     Gentoo" in out

    out = run("show", "model", "--max-depth", "0")
    assert out.startswith("DecisionTreeClassifier(max_depth=4)\n")
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
    assert "--proba needs a classifier, and model is a DecisionTreeRegressor" in run.fails(
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


def test_every_parameter_is_explained(run: Run) -> None:
    out = run("fit", "--help")
    texts: dict[str, str] = {}
    for learner in ESTIMATORS.values():
        texts = report.parameter_help(learner) | texts
        assert set(learner().get_params()) <= set(texts)
    assert all(f"--{name.replace('_', '-')}" in out for name in set(texts) - {"verbose"})
    assert "at most 20 distinct values are classes" in out


@pytest.mark.parametrize("command", ["demo", "fit", "evaluate", "predict", "show", "fingerprint", "info"])
def test_help(command: str, run: Run) -> None:
    assert command in run("--help")
    assert run(command, "--help").startswith(f"usage: gputree {command}")


def test_info_and_version(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    out = run("info")
    assert value(out, "gputree") == gputree.__version__
    assert f"scikit-learn  {sklearn.__version__}" in out
    assert "numpy         cpu, available" in out
    assert "cuda          cuda, " in out
    assert "GPUTREE_DEVICE is not set" in out
    monkeypatch.setenv("GPUTREE_DEVICE", "cpu")
    assert value(run("info"), "device") == "cpu"
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
    assert report.shortened("species number 12", 17) == "species number 12"
    assert report.shortened("species number 12", 16) == "species...ber 12"
    assert len(report.shortened("x" * 99, 24)) == 24


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
    assert value(out, "table") == "2 rows, 1 feature (0 of text)"
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
    assert value(out, "table") == "4 rows, 5 features (3 of text)"
    assert value(out, "target") == "y: booleans"
    assert value(out, "missing") == "5 cells"
    assert gputree.load("model").classes_.dtype == bool
    assert value(run("evaluate", "model", "t.parquet"), "accuracy") == value(out, "training").split()[1]
    frame.write_csv("t.csv")
    assert value(run("evaluate", "model", "t.csv"), "accuracy") == value(out, "training").split()[1]
    frame.clear().write_parquet("empty.parquet")
    assert "no rows" in run.fails("fit", "empty.parquet", "--target", "y")
    frame.with_columns(day=pd.Timestamp("2024-01-01").to_pydatetime()).write_parquet("t.parquet")
    assert "column 'day' has type Datetime" in run.fails("fit", "t.parquet", "--target", "y")


def test_parquet_needs_a_library(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("t.parquet").write_bytes(b"PAR1")
    assert "is no Parquet file that polars reads" in run.fails("fit", "t.parquet", "--target", "y")
    monkeypatch.setattr(readers, "find_spec", lambda _: None)
    assert "run `pip install polars`, or give CSV" in run.fails("fit", "t.parquet", "--target", "y", code=1)


# Mistakes

TABLE = ("width,height,kind", "1,2,a", "2,3,b", "3,,a", "4,5,b")


@pytest.mark.parametrize(
    ("rows", "argv", "message"),
    [
        (TABLE, "fit t.csv --target knid", "t.csv has no column 'knid'; did you mean 'kind'?"),
        (TABLE, "fit t.csv --target zzz", "its columns are width, height, kind"),
        (TABLE, "fit t.csv --target kind --exclude hight", "no column 'hight'; did you mean 'height'?"),
        (TABLE, "fit t.csv --target kind --exclude width height", "no column left to learn from"),
        (TABLE, "fit t.csv --target height", "column 'height' has no value in 1 row of 4; fill them in, or leave"),
        (TABLE, "fit t.csv", "the following arguments are required: --target"),
        (TABLE, "fit t.csv --target kind --max-dept 3", "--max-dept 3; did you mean --max-depth?"),
        (TABLE, "fit t.csv --target kind --zzz", "unrecognized arguments: --zzz; see `gputree fit --help`"),
        (TABLE, "fit t.csv --target kind --max-depth 0", "'max_depth' parameter of DecisionTreeClassifier must be an"),
        (TABLE, "fit t.csv --target kind --max-depth deep", "Got 'deep' instead"),
        (TABLE, "fit t.csv --target kind --criterion gin", "criterion='gin' must be one of 'gini', "),
        (TABLE, "fit t.csv --target kind --learner Tree", "--learner Tree is unknown; learners are DecisionTreeC"),
        (TABLE, "fit t.csv --target kind --learner ExtraTreesClassifier", "did you mean ExtraTreeClassifier?"),
        (TABLE, "fit t.csv --target kind --learner DecisionTreeRegressor", "y holds 'a', which is no number"),
        (
            TABLE,
            "fit t.csv --target width --learner ExtraTreeRegressor --class-weight balanced",
            "--class-weight is",
        ),
        (TABLE, "fit t.csv --target kind --device tpu", "device='tpu' must be 'auto', 'cpu'"),
        (TABLE, "predict t.csv t.csv", "t.csv is no model file that this version reads: File is not a zip file"),
        (TABLE, "grow t.csv", "invalid choice: 'grow'"),
        (TABLE, "", "the following arguments are required: COMMAND"),
        ((), "fit t.csv --target kind", "t.csv is empty; a table begins with a line of column names"),
        (TABLE[:1], "fit t.csv --target kind", "t.csv has names of columns and no rows"),
        (("a,a", "1,2"), "fit t.csv --target a", "two columns called 'a'"),
        (("1,2", "1,2"), "fit t.csv --target a", "the first line of t.csv holds numbers only"),
        (("a,b", "1,2", "1,2,3"), "fit t.csv --target b", "row 2 of t.csv has 3 cells where the first line names 2"),
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
        (("width,height", "1,2"), "evaluate model t.csv", "there is no column in t.csv beside those that the model"),
        (("width,height,a,b", "1,2,3,4"), "evaluate model t.csv", "there are 2 columns (a, b) in t.csv beside"),
        (("width,height,a", "1,2,3"), "evaluate model t.csv --target width", "the model reads column 'width'"),
        (("width,kind", "1,a"), "evaluate model t.csv --target kind", "t.csv has no column 'height'"),
        (("width,hight", "1,2"), "predict model t.csv", "no column 'height'; did you mean 'hight'"),
        (("width,height", "1,2", "tall,3"), "predict model t.csv", "holds 'tall' in column 'width', row 2, where the"),
    ],
)
def test_a_table_that_does_not_fit_the_model(rows: tuple[str, ...], argv: str, message: str, run: Run) -> None:
    write("t.csv", *TABLE)
    run("fit", "t.csv", "--target", "kind", "-o", "model")
    write("t.csv", *rows)
    assert message in run.fails(*argv.split())


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


def test_a_folder_that_is_not_there(run: Run) -> None:
    write("t.csv", *TABLE)
    assert "No such file or directory" in run.fails("fit", "t.csv", "--target", "kind", "-o", "no/model", code=1)


def test_a_device_that_cannot_be_used(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write("t.csv", *TABLE)
    monkeypatch.setenv("GPUTREE_DEVICE", "nonsense")
    assert "from the environment variable GPUTREE_DEVICE" in run.fails("fit", "t.csv", "--target", "kind")

    def broken(*_: Any) -> None:
        raise RuntimeError("device='cuda' cannot be used: no driver")

    monkeypatch.setattr("gputree.learners.base.choose", broken)
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


def test_stopped_by_hand(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gputree.cli.load", stop)
    assert "stopped" in run.fails("show", "model", code=130)


# Reading


def test_numbers_and_text_beyond_one_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "CHUNK_ROWS", 3)
    write("t.csv", "a,b,c", *(f"{i},{'x' if i == 8 else i},{'' if i % 2 else i}" for i in range(10)))
    table = readers.read_table("t.csv")
    np.testing.assert_array_equal(table.arrays[0], np.arange(10.0))
    assert table.arrays[1].tolist() == [*map(str, range(8)), "x", "9"]
    np.testing.assert_array_equal(table.arrays[2], [0, np.nan, 2, np.nan, 4, np.nan, 6, np.nan, 8, np.nan])
    write("t.csv", "a", *(["1"] * 7), "oops")
    with pytest.raises(readers.InputError, match="holds 'oops' in column 'a', row 8, where the model knows numbers"):
        readers.read_table("t.csv", {"a": gputree.core.schema.Feature("a")})


def test_area_under_the_curve_by_hand() -> None:
    # one of the four pairs of a positive and a negative row is in the wrong order
    shares = np.array([0.1, 0.6, 0.4, 0.9])
    assert report.area_under_curve(np.array([0, 0, 1, 1]), np.stack([1 - shares, shares], axis=1)) == "0.7500"


def test_everything_runs_where_no_frame_library_is(tmp_path: Path) -> None:
    """The demo and CSV with NumPy, scikit-learn and narwhals alone."""
    block = "import sys; sys.modules.update(dict.fromkeys(['pandas', 'polars', 'pyarrow', 'rich', 'numba']))\n"
    code = block + "from gputree.cli import main\nimport sys\nsys.exit(main(sys.argv[1:]))\n"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for argv in (["demo", "--rows", "500"], ["fit", penguins(), "--target", "species", "-o", "m"], ["show", "m"]):
        done = subprocess.run([sys.executable, "-c", code, *argv], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout
