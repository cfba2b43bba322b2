"""The tables that travel with the package, and the generators."""

from __future__ import annotations

import csv
import importlib.util
from importlib import resources

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from gputree import datasets
from gputree.datasets import FrameLibrary, Table, load_penguins, make_higgs_like

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
    monkeypatch.setattr(datasets, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pandas or polars or pyarrow.*pip install pandas"):
        penguins.to_frame()
    with pytest.raises(ImportError, match="pip install polars"):
        penguins.to_frame("polars")
    with pytest.raises(ValueError, match="library='dask' is not supported; choose one of pandas"):
        penguins.to_frame("dask")  # type: ignore[arg-type]


def test_frame_takes_the_first_library_installed(penguins: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    real = importlib.util.find_spec
    monkeypatch.setattr(datasets, "find_spec", lambda name: real(name) if name == "pyarrow" else None)
    assert type(penguins.to_frame()).__module__.startswith("pyarrow")


def test_higgs_like_shape_and_balance() -> None:
    X, y = make_higgs_like(20_000, seed=3)
    assert X.shape == (20_000, 28)
    assert X.dtype == np.float32
    assert X.flags.c_contiguous
    assert y.shape == (20_000,)
    assert y.dtype == np.int64
    assert set(np.unique(y)) == {0, 1}
    assert np.isfinite(X).all()
    assert 0.4 < y.mean() < 0.6
    assert np.abs(X[:, :21].mean(axis=0)).max() < 0.05
    assert np.abs(X[:, :21].std(axis=0) - 1).max() < 0.05


def test_higgs_like_follows_the_seed() -> None:
    first, again, other = make_higgs_like(500, seed=7), make_higgs_like(500, seed=7), make_higgs_like(500, seed=8)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert (first[0] != other[0]).mean() > 0.9
    assert (first[1] != other[1]).any()


@pytest.mark.parametrize("chunk", [1, 31, 1000, 10_000])
def test_higgs_like_does_not_depend_on_chunks(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_higgs_like(1000)
    monkeypatch.setattr(datasets, "_CHUNK_ROWS", chunk)
    np.testing.assert_array_equal(make_higgs_like(1000)[0], X)
    np.testing.assert_array_equal(make_higgs_like(1000)[1], y)


def test_higgs_like_longer_tables_begin_with_the_shorter() -> None:
    rows = datasets._CHUNK_ROWS + 1
    X, y = make_higgs_like(rows)
    np.testing.assert_array_equal(make_higgs_like(33)[0], X[:33])
    np.testing.assert_array_equal(make_higgs_like(33)[1], y[:33])


def test_bell_from_its_definition() -> None:
    """Words whose four quarters are known: all zero, all 65535, and 1 + 2 + 3 + 4."""
    words = np.array([0, 2**64 - 1, 0x0001_0002_0003_0004], dtype=np.uint64)
    expected = np.array([-131_070.0, 131_070.0, 10 - 131_070.0]) * (1.0 / 37_837.0)
    np.testing.assert_array_equal(datasets._bell(words), expected)


def test_higgs_like_derived_columns_follow_the_measured_ones() -> None:
    X, _ = make_higgs_like(2000)
    np.testing.assert_allclose(X[:, 21], np.hypot(X[:, 0], X[:, 1]), rtol=1e-5)
    np.testing.assert_allclose(X[:, 24], np.abs(X[:, 9] - X[:, 10]), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(X[:, 25], X[:, 12] * X[:, 13], rtol=1e-5)


def test_higgs_like_is_hard_but_learnable() -> None:
    X, y = make_higgs_like(80_000)
    tree = DecisionTreeClassifier(max_depth=10, random_state=0).fit(X[:60_000], y[:60_000])
    assert 0.65 < tree.score(X[60_000:], y[60_000:]) < 0.80


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_rows": 0}, ValueError, "n_rows must be at least 1, got 0"),
        ({"n_rows": 10, "seed": -1}, ValueError, "seed must be at least 0, got -1"),
        ({"n_rows": 1.5}, TypeError, "n_rows must be an integer, got 1.5"),
        ({"n_rows": 10, "seed": None}, TypeError, "seed must be an integer, got None"),
    ],
)
def test_higgs_like_refuses(arguments: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_higgs_like(**arguments)  # type: ignore[arg-type]
