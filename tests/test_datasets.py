"""The tables that travel with the package."""

from __future__ import annotations

import csv
import importlib.util
from collections import Counter
from collections.abc import Callable
from importlib import resources
from typing import get_args

import numpy as np
import pytest

from gputree import DecisionTreeClassifier, table
from gputree.datasets import (
    Classroom,
    Table,
    load_classroom,
    load_lenses,
    load_penguins,
    load_restaurant,
    load_weather,
    make_monks,
)
from gputree.table import FrameLibrary

NUMERIC = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g", "year")
MEASURED = NUMERIC[:4]


@pytest.fixture(scope="module")
def penguins() -> Table:
    return load_penguins()


def test_penguins_shape_and_types(penguins: Table) -> None:
    expected = ("species", "island", *MEASURED, "sex", "year")
    assert penguins.names == expected
    assert {column.shape for column in penguins.columns} == {(344,)}
    for name, column in zip(penguins.names, penguins.columns, strict=True):
        assert column.dtype == (np.float64 if name in NUMERIC else object), name
    assert penguins.target == "species"


def test_penguins_missing_cells(penguins: Table) -> None:
    measurements = np.column_stack([penguins.column(name) for name in MEASURED])
    assert np.isnan(measurements).sum() == 8
    assert np.isnan(measurements).all(axis=1).sum() == 2
    assert sum(sex is None for sex in penguins.column("sex")) == 11
    for name in ("species", "island"):
        assert None not in penguins.column(name)
    assert not np.isnan(penguins.column("year")).any()


def test_penguins_published_counts(penguins: Table) -> None:
    """Counts from the package's own documentation (Horst, Hill & Gorman 2020)."""
    names, counts = np.unique(penguins.column("species"), return_counts=True)
    assert dict(zip(names, counts.tolist(), strict=True)) == {"Adelie": 152, "Chinstrap": 68, "Gentoo": 124}
    names, counts = np.unique(penguins.column("island"), return_counts=True)
    assert dict(zip(names, counts.tolist(), strict=True)) == {"Biscoe": 168, "Dream": 124, "Torgersen": 52}
    assert np.nanmin(penguins.column("bill_length_mm")) == 32.1
    assert np.nanmax(penguins.column("body_mass_g")) == 6300


def test_penguins_file_has_a_header_and_nothing_else() -> None:
    text = resources.files("gputree").joinpath("data/penguins.csv").read_text(encoding="utf-8")
    rows = list(csv.reader(text.splitlines()))
    assert len(rows) == 345
    assert {len(row) for row in rows} == {8}
    assert "NA" not in text.replace("\n", ",").split(",")


def test_every_table_names_its_source_and_licence(penguins: Table) -> None:
    folder = resources.files("gputree").joinpath("data")
    sources = folder.joinpath("SOURCES.md").read_text(encoding="utf-8")
    for file in folder.iterdir():
        assert not file.name.endswith(".csv") or f"## {file.name}" in sources
    for text in (sources, penguins.source):
        for word in ("CC0", "Gorman", "e90081"):
            assert word in text


def test_unknown_column_names_the_choices(penguins: Table) -> None:
    with pytest.raises(ValueError, match=r"no column 'colour'.*bill_length_mm"):
        penguins.column("colour")


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_keep_values_and_missing_cells(penguins: Table, library: FrameLibrary) -> None:
    pytest.importorskip(library)
    import narwhals as nw

    frame = nw.from_native(penguins.to_frame(library), eager_only=True)
    assert frame.shape == (344, 8)
    assert tuple(frame.columns) == penguins.names
    for name, column in zip(penguins.names, penguins.columns, strict=True):
        missing = np.array([value is None or str(value) == "nan" for value in column])
        assert frame[name].dtype == (nw.Float64 if name in NUMERIC else nw.String)
        np.testing.assert_array_equal(frame[name].is_null().to_numpy(), missing)
        np.testing.assert_array_equal(frame[name].to_numpy()[~missing], column[~missing])


def test_frame_without_a_library_says_what_to_install(penguins: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pandas or polars or pyarrow.*pip install pandas"):
        penguins.to_frame()
    with pytest.raises(ImportError, match="pip install polars"):
        penguins.to_frame("polars")
    with pytest.raises(ValueError, match="library='dask' is not supported; choose one of pandas"):
        penguins.to_frame("dask")  # type: ignore[arg-type]


def test_frame_takes_the_first_library_installed(penguins: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    real = importlib.util.find_spec
    monkeypatch.setattr(table, "find_spec", lambda name: real(name) if name == "pyarrow" else None)
    assert type(penguins.to_frame()).__module__.startswith("pyarrow")


LOADERS: dict[str, Callable[[], Table]] = {
    "weather": load_weather,
    "golf": lambda: load_weather("numeric"),
    "golf unknown": lambda: load_weather("unknown"),
    "lenses": load_lenses,
    "restaurant": load_restaurant,
    "restaurant chapter": lambda: load_restaurant("chapter"),
    "monks": make_monks,
    **{name: lambda name=name: load_classroom(name) for name in get_args(Classroom)},
}
every_table = pytest.mark.parametrize("load", LOADERS.values(), ids=LOADERS)
SIZES = {
    "weather": (14, 5, {"yes": 9, "no": 5}),
    "golf": (14, 5, {"yes": 9, "no": 5}),
    "golf unknown": (14, 5, {"yes": 9, "no": 5}),
    "lenses": (24, 5, {"soft": 5, "hard": 4, "none": 15}),
    "restaurant": (12, 11, {"Y": 6, "N": 6}),
    "restaurant chapter": (12, 11, {"Y": 6, "N": 6}),
    "monks": (432, 7, {"yes": 216, "no": 216}),
    "dtl": (6, 3, {1.0: 3, 0.0: 3}),
    "eight_patterns": (8, 4, {1.0: 2, 0.0: 6}),
    "exercise_18_2": (4, 4, {1.0: 2, 0.0: 2}),
    "papaya": (4, 3, {"yes": 1, "no": 3}),
    "xor": (4, 3, {"t": 2, "f": 2}),
}


@pytest.mark.parametrize("name", LOADERS)
def test_textbook_tables_have_their_rows_and_classes(name: str) -> None:
    found = LOADERS[name]()
    rows, columns, classes = SIZES[name]
    assert {column.shape for column in found.columns} == {(rows,)}
    assert len(found.names) == len(set(found.names)) == columns
    assert found.target == found.names[-1]
    assert Counter(found.column(found.target).tolist()) == classes
    assert {column.dtype for column in found.columns} <= {np.dtype(object), np.dtype(np.float64)}


@every_table
def test_textbook_tables_name_their_source(load: Callable[[], Table]) -> None:
    assert any(word in load().source for word in ("Facts", "CC BY 4.0", "CMU-CS-91-197"))


@every_table
def test_each_load_gives_arrays_of_its_own(load: Callable[[], Table]) -> None:
    first, again = load(), load()
    for mine, other in zip(first.columns, again.columns, strict=True):
        np.testing.assert_array_equal(mine, other)
        mine[:] = mine[::-1].copy()
        assert not np.shares_memory(mine, other)


def test_weather_as_quinlan_printed_it() -> None:
    nominal, golf, unknown = (load_weather(kind) for kind in ("nominal", "numeric", "unknown"))
    assert [column[0] for column in nominal.columns] == ["sunny", "hot", "high", "FALSE", "no"]
    assert [column[0] for column in golf.columns] == ["sunny", 85.0, 85.0, "FALSE", "no"]
    for name in ("outlook", "windy", "play"):
        np.testing.assert_array_equal(nominal.column(name), golf.column(name))
    assert golf.column("temperature").sum() == 1030
    assert golf.column("humidity").sum() == 1143
    assert [column[11] for column in unknown.columns] == [None, 72.0, 90.0, "TRUE", "yes"]
    assert sum(cell is None for column in unknown.columns for cell in column) == 1
    for name in ("temperature", "humidity"):  # high: above 80 (C4.5's cut), hot: 80 and more
        words, numbers = nominal.column(name), golf.column(name)
        assert max(numbers[words == ("cool" if name == "temperature" else "normal")]) <= 80


def test_restaurants_differ_in_one_cell() -> None:
    """With 0-30 the branch of a full restaurant has another best test than the published tree."""
    aima, chapter = load_restaurant(), load_restaurant("chapter")
    differences = [
        (name, i, a, b)
        for name in aima.names
        for i, (a, b) in enumerate(zip(aima.column(name), chapter.column(name), strict=True))
        if a != b
    ]
    assert differences == [("Est", 9, "10-30", "0-30")]
    assert aima.categories["Est"] == ("0-10", "10-30", "30-60", ">60")
    assert chapter.categories["Est"] == ("0-10", "0-30", "10-30", "30-60", ">60")


def test_lenses_are_a_full_table() -> None:
    lenses = load_lenses()
    cells = list(zip(*lenses.columns[:-1], strict=True))
    assert len(set(cells)) == 24 == np.prod([len(values) for values in lenses.categories.values()])
    reduced = lenses.column("tear-prod-rate") == "reduced"
    assert set(lenses.column("contact-lenses")[reduced]) == {"none"}


def test_classroom_functions() -> None:
    patterns, exercise = load_classroom("eight_patterns"), load_classroom("exercise_18_2")
    np.testing.assert_array_equal(patterns.column("y"), patterns.column("x1") * patterns.column("x3"))
    np.testing.assert_array_equal(exercise.column("y"), exercise.column("x2") == exercise.column("x3"))
    xor, papaya = load_classroom("xor"), load_classroom("papaya")
    assert ((xor.column("x1") != xor.column("x2")) == (xor.column("y") == "t")).all()
    good = (papaya.column("color") == "in range") & (papaya.column("softness") == "gives slightly")
    assert (good == (papaya.column("tasty") == "yes")).all()
    assert load_classroom("dtl").column("f1").tolist() == ["1", "1", "2", "1", "3", "2"]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@every_table
def test_frames_keep_declared_categories(load: Callable[[], Table], library: FrameLibrary) -> None:
    pytest.importorskip(library)
    import narwhals.stable.v2 as nw

    given = load()
    frame = nw.from_native(given.to_frame(library), eager_only=True)
    assert tuple(frame.columns) == given.names
    for name, column in zip(given.names, given.columns, strict=True):
        missing = [cell is None for cell in column]
        assert frame[name].is_null().to_list() == missing
        assert [cell for cell, gone in zip(frame[name].to_list(), missing, strict=True) if not gone] == [
            cell for cell in column if cell is not None
        ]
        if name in given.categories:
            assert frame[name].cat.get_categories().to_list() == list(given.categories[name])
            assert nw.is_ordered_categorical(frame[name])
        else:
            assert frame[name].dtype == (nw.String if column.dtype == object else nw.Float64)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_models_see_categories_that_a_subset_lacks(library: FrameLibrary) -> None:
    """Whatever the library, the order and number of branches are those that were declared."""
    pytest.importorskip(library)
    import narwhals as nw

    weather = load_weather()
    frame = nw.from_native(weather.to_frame(library), eager_only=True)
    kept = [i for i, outlook in enumerate(weather.column("outlook")) if outlook != "overcast"]
    X = frame.drop("play")[kept].to_native()
    model = DecisionTreeClassifier(categorical_split="multiway").fit(X, weather.column("play")[kept])
    assert model.schema_.features[0].categories == ("sunny", "overcast", "rainy")


def test_a_table_refuses_values_that_it_did_not_declare() -> None:
    column = np.array(["a", None, "c"], object)
    with pytest.raises(ValueError, match="column 'x' holds 'c'; its categories are a, b: add it"):
        Table(("x",), (column,), "x", "", {"x": ("a", "b")})
    with pytest.raises(ValueError, match="column 'x' holds numbers, which have no categories"):
        Table(("x",), (np.zeros(2),), "x", "", {"x": ("0",)})
    with pytest.raises(ValueError, match="no column 'z'"):
        Table(("x",), (column,), "x", "", {"z": ("a",)})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: load_weather("words"), "kind='words' is not offered; choose one of 'nominal', 'numeric', 'unknown'"),
        (lambda: load_restaurant("book"), "variant='book' is not offered; choose one of 'aima', 'chapter'"),
        (lambda: load_classroom("iris"), "name='iris' is not offered; choose one of 'dtl', 'eight_patterns'"),
        (lambda: make_monks(4), "problem=4 is not offered; choose one of 1, 2, 3"),
    ],
)
def test_loaders_name_what_they_offer(call: Callable[[], Table], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
