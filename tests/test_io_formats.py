"""The formats of the model file: past ones are read for ever, this one by anybody, those to come are refused."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

import gputree
from gputree.io import FORMAT, load, save
from gputree.storage import upgrade
from tests.model_files import (
    DATA,
    MODELS,
    alone,
    declared,
    expected,
    labels,
    made,
    mixed,
    numbers,
    odd_penguins,
    of_this_format,
    parts,
    penguins,
    predictions,
    same_model,
    write,
)

PAGE = Path(__file__).parents[1] / ".docs" / "model_file.md"


# Formats of the past.


def test_there_is_a_file_and_a_step_for_every_format() -> None:
    files = sorted(path.name for path in DATA.glob("format_*.gputree"))
    assert files == [f"format_{number}.gputree" for number in range(1, FORMAT + 1)]
    assert sorted(upgrade.STEPS) == list(range(1, FORMAT))
    assert re.findall(r"^\| (\d+) \|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE) == list("12345")


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("number", range(1, FORMAT + 1))
def test_a_file_of_every_format_predicts_what_it_always_did(number: int, mapped: bool, tmp_path: Path) -> None:
    model = load(DATA / f"format_{number}.gputree", mmap=mapped)
    assert_array_equal(predictions(model), expected(number))
    save(model, tmp_path / "model")
    again = load(tmp_path / "model", mmap=mapped)
    same_model(model, again, penguins()[0])
    assert_array_equal(predictions(again), expected(number))


def test_what_format_1_did_not_know() -> None:
    model = load(DATA / "format_1.gputree")
    given = {
        name: getattr(model, name) for name in ("categorical_features", "categories", "categorical_split", "unknown")
    }
    assert given == {
        "categorical_features": "from_dtype",
        "categories": None,
        "categorical_split": "multiway",
        "unknown": "majority",
    }
    assert not any(feature.declared for feature in model.schema_.features)
    assert model.class_weight == {"Adelie": 2, "Gentoo": 1, "Chinstrap": 1}
    header, arrays = parts(DATA / "format_1.gputree")
    assert "forest/met_missing.npy" not in arrays
    # node 4 sends missing values to Chinstraps: its other branch has fewer rows, and more weight
    assert model.forest_.met_missing.tolist() == [0, 0, 0, 0, 1] + [0] * 9
    assert header["members"].keys() == arrays.keys()


def test_a_file_of_format_1_can_be_fitted_again() -> None:
    model = load(DATA / "format_1.gputree")
    X, y = penguins()
    assert_array_equal(model.fit(X, y).predict_proba(X), expected(1)[: len(X)])


def test_what_format_4_did_not_know() -> None:
    """Trees inside bags get the parameters of their class too."""
    model = load(DATA / "format_4.gputree")
    assert (model.pruning, model.validation_fraction) == (None, 1 / 3)
    header, _ = parts(DATA / "format_4.gputree")
    assert not {"pruning", "validation_fraction"} & set(header["parameters"])
    tree = {name: header[name] for name in ("estimator", "parameters")}
    bags = {"estimator": "BaggingTreeClassifier", "parameters": {"estimator": tree, "voting": "soft"}}
    upgraded, _ = upgrade.from_4(bags, {})
    given = upgraded["parameters"]["estimator"]["parameters"]
    assert set(given) == set(gputree.DecisionTreeClassifier().get_params())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: h["members"].pop("forest/low.npy"), "its members are not those that the header lists"),
        (lambda h, a: h["members"]["forest/low.npy"].update(dtype="<i8"), "its members are not those that the header"),
        (lambda h, a: h["members"]["forest/low.npy"].update(shape=[3]), "its members are not those that the header"),
        (lambda h, a: h["members"]["forest/low.npy"].update(shape=14), "'shape' is 14, which is no list"),
        (lambda h, a: h.update(members=[]), "'members' is [], which is no dict"),
        (lambda h, a: h.pop("layout"), "its header has no 'layout'"),
        (lambda h, a: h["layout"].update(sizes=[]), "its layout has no outputs"),
        (lambda h, a: h["layout"].update(sizes=["3"]), "an item of 'sizes' is '3', which is no int"),
        (lambda h, a: h.update(parameters=3), "'parameters' is 3, which is no dict"),
        (lambda h, a: h["parameters"].update(depth=3), "unknown 'depth'"),
        (lambda h, a: h.update(features=[3]), "an item of 'features' is 3, which is no dict"),
        (lambda h, a: h["features"][0].pop("categories"), "missing 'categories'"),
        (lambda h, a: a["forest/n_children.npy"].fill(9), "the children are not all nodes but the root"),
        (lambda h, a: a["forest/n_children.npy"].fill(65535), "the children are not all nodes but the root"),
        (lambda h, a: a["forest/missing.npy"].__setitem__(0, 9), "missing names a branch that is not there"),
        (lambda h, a: a["forest/stats.npy"].fill(-1), "a count is negative"),
        (
            lambda h, a: (a.pop("forest/kind.npy"), h["members"].pop("forest/kind.npy")),
            "it has no member forest/kind.npy",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_file_of_format_1_is_refused(change: Any, message: str, tmp_path: Path) -> None:
    header, arrays = parts(DATA / "format_1.gputree")
    change(header, arrays)
    write(tmp_path / "wrong", header, arrays)
    with pytest.raises(ValueError, match="wrong is no model file that this version reads: ") as caught:
        load(tmp_path / "wrong")
    assert message in str(caught.value)


# Formats to come.


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("number", [FORMAT + 1, 999, 10**300])
def test_a_newer_format_names_the_version_that_wrote_it(number: int, mapped: bool, tmp_path: Path) -> None:
    header, arrays = parts(DATA / "format_2.gputree")
    arrays["forest/more.npy"] = np.zeros(3)
    new = {"format": number, "gputree": "7.8.9", "fingerprint": "of another kind", "more": header}
    write(tmp_path / "new", new, arrays, repair=False)
    with pytest.raises(
        ValueError, match=r"it has format .*, written by gputree '7\.8\.9'; update gputree, which reads up to 5"
    ):
        load(tmp_path / "new", mmap=mapped)


@pytest.mark.parametrize("number", [0, -1, True, "2", 2.0, None, [2]])
def test_a_format_that_never_was(number: Any, tmp_path: Path) -> None:
    header, arrays = parts(DATA / "format_2.gputree")
    write(tmp_path / "odd", {**header, "format": number}, arrays)
    with pytest.raises(ValueError, match=r"its format .* is unknown|'format' is .*, which is no int"):
        load(tmp_path / "odd")


# This format without gputree: the block of the documentation.


def reader() -> dict[str, Any]:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    used = [node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert {name.name for node in used for name in node.names} == {"json", "zipfile", "numpy"}
    names: dict[str, Any] = {}
    exec(compile(block, str(PAGE), "exec"), names)
    return names


def rows_of(X: Any) -> list[list[Any]]:
    """Cells as Python objects, None where missing."""
    frame = pd.DataFrame(X)
    return [[None if pd.isna(x) else x for x in row] for row in frame.astype(object).to_numpy()]


def unseen(X: pd.DataFrame) -> pd.DataFrame:
    """Rows of which some have categories that the fit did not know."""
    frame = X.astype({name: object for name in X.columns if X[name].dtype not in (np.float64, np.float32)})
    for name in frame.columns:
        kinds = set(map(type, frame[name].dropna())) if frame[name].dtype == object else {bool}
        if bool not in kinds:  # of booleans there are no others
            frame.loc[frame.index[::3], name] = "no such thing" if str in kinds else 99
    return frame


CASES: dict[str, tuple[Any, Any]] = dict.fromkeys(MODELS, (None, None)) | {
    "odd penguins": (mixed, odd_penguins),
    "this format": (of_this_format, odd_penguins),
    "unknown classes": (lambda: made("frame")[0], lambda: unseen(penguins()[0])),
    "unknown means": (lambda: made("declared means")[0], lambda: unseen(declared())),
    "unknown in subsets": (lambda: made("means by category")[0], lambda: unseen(declared())),
    "unknown, or missing": (lambda: made("missing alone")[0], lambda: unseen(alone()[0])),
    "infinities": (
        lambda: gputree.DecisionTreeRegressor().fit(np.array([[-np.inf], [0], [np.inf], [np.nan]]), [1.0, 2, 3, 4]),
        lambda: np.array([[-np.inf], [-1e308], [1e308], [np.inf], [np.nan]]),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_lines_of_the_page_predict_the_same(name: str, tmp_path: Path) -> None:
    make, table = CASES[name]
    model, X = made(name) if make is None else (make(), table())
    if name == "subsets":
        X = X[X["sex"].notna()]
    names = reader()
    save(model, tmp_path / "model")
    header, arrays = names["read_model"](tmp_path / "model")
    compact = [names["predict_row"](header, arrays, row) for row in rows_of(X)]
    save(model, tmp_path / "model", compact=False)
    header, arrays = names["read_model"](tmp_path / "model")
    found: NDArray[Any] = names["predict"](header, arrays, rows_of(X))
    wanted = model.predict(X)
    if name in ("class outputs", "forest of outputs"):
        wanted = wanted[:, 0]
    assert_array_equal(found, wanted)
    values = [names["predict_row"](header, arrays, row) for row in rows_of(X)]
    assert_array_equal(compact, values)
    if hasattr(model, "predict_proba"):
        shares = model.predict_proba(X)
        assert_array_equal(values, np.hstack(shares) if isinstance(shares, list) else shares)


def test_the_fingerprint_stands_in_the_header(tmp_path: Path) -> None:
    model = gputree.DecisionTreeClassifier().fit(numbers(), labels([0, 1]))
    save(model, tmp_path / "model")
    assert parts(tmp_path / "model")[0]["fingerprint"] == model.fingerprint()


def test_the_page_lists_every_array() -> None:
    text = PAGE.read_text(encoding="utf-8")
    arrays = parts(DATA / "format_2.gputree")[1]
    assert [name for name in arrays if f"`{Path(name).stem}`" not in text] == []
