"""Models to save, and model files to read, to write anew and to damage; shared by the tests of the model file.

`python -m tests.model_files` writes the file of the current format in tests/data and what it predicts. Once a
version of gputree that writes this format is out, that file stays as it is.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import io
import itertools
import json
import zipfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

import gputree
from gputree.core.forest import Forest
from gputree.datasets import load_penguins
from gputree.io import save
from gputree.learners.bagging import Bagging
from gputree.pruning import Collapse, ErrorBased
from gputree.stopping import ChiSquare, MaxDepth, MaxNodes, Rule, Validation

DATA = Path(__file__).parent / "data"

Parts = tuple[dict[str, Any], dict[str, NDArray[Any]]]  # header and arrays


def penguins() -> tuple[pd.DataFrame, NDArray[Any]]:
    table = load_penguins()
    return table.to_frame("pandas").drop(columns="species"), table.column("species")


def odd_penguins() -> pd.DataFrame:
    """Rows with values that are missing or of a category that there was none of."""
    islands, lengths, depths = (
        ["Biscoe", "Dream", "Torgersen", "Nowhere", None],
        [40.0, 44.0, 50.0, None],
        [14, 19, None],
    )
    rows = [(*row, 200.0, 4000.0, "male", 2008.0) for row in itertools.product(islands, lengths, depths)]
    return pd.DataFrame(rows, columns=penguins()[0].columns).astype({"bill_depth_mm": float})


def numbers(n: int = 120) -> NDArray[np.float64]:
    X = np.random.default_rng(3).normal(size=(n, 4))
    X[::7, 1] = np.nan
    return X


def labels(values: Any, n: int = 120) -> NDArray[Any]:
    return np.asarray(values)[np.random.default_rng(5).integers(0, len(values), n)]


def classifier(y: NDArray[Any] | None = None, **parameters: Any) -> Any:
    return gputree.DecisionTreeClassifier(**parameters).fit(numbers(), labels([0, 1, 2]) if y is None else y)


def mixed(**parameters: Any) -> Any:
    """Node 0 of this tree tests a number, node 2 the island, and the last node is a leaf."""
    return gputree.DecisionTreeClassifier(categorical_split="multiway", max_depth=4, **parameters).fit(*penguins())


def declared() -> pd.DataFrame:
    """Categories of three types; grade 0 was declared and never occurs, and c is missing in some rows."""
    rng = np.random.default_rng(8)
    return pd.DataFrame(
        {
            "grade": pd.Categorical([3, 1, 2] * 40, categories=[3, 2, 1, 0], ordered=True),
            "yes": [True, False] * 60,
            "size": np.arange(120, dtype=np.float32),
            "c": np.array(["x", "y", "z", None], object)[rng.integers(0, 4, 120)],
        }
    )


def alone() -> tuple[pd.DataFrame, NDArray[Any]]:
    """The best test of the only column, one of categories, is whether it is missing."""
    c = np.array(["a", None, "b", None] * 30, object)
    return pd.DataFrame({"c": c}), np.array([0, 1] * 60)


def monotone() -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Two classes whose shares monotone constraints clip in some leaves."""
    rng = np.random.default_rng(14)
    X = rng.normal(size=(300, 2))
    return X, (X[:, 0] + np.sin(9 * X[:, 1]) + rng.normal(size=300) > 0).astype(int)


def tree(kind: str, X: Any, y: Any, **parameters: Any) -> tuple[Any, Any]:
    return getattr(gputree, kind)(**parameters).fit(X, y), X


def in_two() -> NDArray[Any]:
    return np.asarray(penguins()[1]) == "Adelie"


def forest(kind: str, X: Any, y: Any, weight: Any = None, **parameters: Any) -> tuple[Any, Any]:
    return getattr(gputree, kind)(20, random_state=3, **parameters).fit(X, y, weight), X


def some_weights(n: int) -> NDArray[np.float64]:
    """Every fifth row is left out, the others differ."""
    return np.where(np.arange(n) % 5 == 0, 0.0, 1 + np.arange(n) % 3)


CLASSES, MEANS = "DecisionTreeClassifier", "DecisionTreeRegressor"
MODELS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "numbers": lambda: (classifier(), numbers()),
    "extra": lambda: tree("ExtraTreeClassifier", numbers(), labels(["a", "b"]), random_state=4),
    "regressor": lambda: tree(MEANS, numbers(), numbers()[:, 0], max_depth=5),
    "poisson": lambda: tree("ExtraTreeRegressor", numbers(), labels([0.0, 1.5, 2.0]), criterion="poisson"),
    "outputs": lambda: tree(MEANS, numbers(), numbers()[:, [0, 2, 3]]),
    "class outputs": lambda: (classifier(np.stack([labels(["a", "b", "c"]), labels(["x", "y"])], axis=1)), numbers()),
    "frame": lambda: (mixed(), penguins()[0]),
    "subsets": lambda: tree(CLASSES, penguins()[0], in_two(), categorical_split="binary", unknown="error"),
    "drawn subsets": lambda: tree("ExtraTreeClassifier", *penguins(), categorical_split="binary", max_depth=5),
    "declared": lambda: tree(CLASSES, declared(), labels([0, 1]), categorical_split="multiway"),
    "declared means": lambda: tree(MEANS, declared(), numbers()[:, 0], categorical_split="multiway"),
    "means by category": lambda: tree(MEANS, declared(), numbers()[:, 0], categorical_split="binary"),
    "null leaves": lambda: tree(
        "ID3Classifier", declared()[["grade", "yes"]], labels([0, 1]), empty="null", base="classes"
    ),
    "missing alone": lambda: tree(CLASSES, *alone(), categorical_split="binary"),
    "clipped": lambda: tree(CLASSES, *monotone(), monotonic_cst=[1, 0], max_leaf_nodes=30),
    "clipped means": lambda: tree(MEANS, *monotone(), monotonic_cst=[1, 0], max_leaf_nodes=30),
    "stopped": lambda: tree(CLASSES, *monotone(), stopping=MaxDepth(6) & ChiSquare(0.1) | MaxNodes(31)),
    "stopped by rows": lambda: tree(MEANS, *monotone(), stopping=Validation(numbers(20)[:, :2], [0.0, 1.0] * 10)),
    "message": lambda: tree("MDLTreeClassifier", penguins()[0], penguins()[1], numeric_cuts="sqrt"),
    "pruned": lambda: tree(CLASSES, *monotone(), ccp_alpha=0.005),
    "pruned by a rule": lambda: tree(CLASSES, *monotone(), pruning=ErrorBased(0.1)),
    "weights": lambda: (
        gputree.DecisionTreeClassifier(class_weight={0: 0.3, 1: 2, 2: 1}).fit(
            numbers(), labels([0, 1, 2]), np.linspace(0.1, 3, 120)
        ),
        numbers(),
    ),
    "c4.5": lambda: tree("C45Classifier", *penguins()),
    "one against the rest": lambda: tree("C45Classifier", *penguins(), categorical_split="binary", pruning=None),
    "c4.5 grouped": lambda: tree("C45Classifier", *penguins(), categorical_split="grouped"),
    "c4.5 soft": lambda: tree("C45Classifier", *penguins(), soft_thresholds=True),
    "root alone": lambda: tree(MEANS, numbers(), np.ones(120)),
    "forest": lambda: forest("RandomForestClassifier", numbers(), labels([0, 1, 2]), max_depth=5, oob_score=True),
    "forest of categories": lambda: forest(
        "RandomForestClassifier", *penguins(), some_weights(344), categorical_split="multiway", max_depth=3
    ),
    "forest of means": lambda: forest(
        "RandomForestRegressor", numbers(), numbers()[:, 0], some_weights(120), max_samples=80, oob_score=True
    ),
    "forest of outputs": lambda: forest(
        "RandomForestClassifier",
        numbers(),
        np.stack([labels(["a", "b", "c"]), labels(["x", "y"])], axis=1),
        max_depth=4,
        oob_score=True,
    ),
    "forest, clipped": lambda: forest("RandomForestClassifier", *monotone(), monotonic_cst=[1, 0], max_leaf_nodes=20),
    "forest, pruned": lambda: forest("RandomForestClassifier", numbers(), labels([0, 1, 2]), pruning=Collapse()),
    "forest, stopped": lambda: forest("RandomForestClassifier", *monotone(), stopping=MaxDepth(5) | ChiSquare(0.1)),
    "extra forest": lambda: forest("ExtraTreesClassifier", declared(), labels([0, 1]), max_depth=4),
    "extra forest of means": lambda: forest(
        "ExtraTreesRegressor", numbers(), labels([0.0, 1.5, 2.0]), criterion="poisson", max_depth=4
    ),
    "bags of c4.5": lambda: (
        gputree.BaggingTreeClassifier(gputree.C45Classifier(min_weight=4), 40, oob_score=True).fit(*penguins()),
        penguins()[0],
    ),
    "bags of means": lambda: (
        gputree.BaggingTreeRegressor(gputree.ExtraTreeRegressor(max_depth=4), 60, oob_score=True).fit(
            numbers(), numbers()[:, 0], some_weights(120)
        ),
        numbers(),
    ),
    "one class": lambda: (classifier(np.array(["only"] * 120)), numbers()),
}


@functools.cache
def fitted(name: str) -> tuple[Any, Any]:
    return MODELS[name]()


def made(name: str) -> tuple[Any, Any]:
    """One of the models, as a test's own copy, and a table for it."""
    return copy.deepcopy(fitted(name))


def of_this_format() -> Any:
    """The model in the file of the current format: declared, missing and unknown categories, weights, many types."""
    X, y = penguins()
    model = gputree.DecisionTreeClassifier(
        max_depth=4,
        class_weight={np.str_("Adelie"): 2, "Gentoo": 1.5, "Chinstrap": np.int64(1)},
        categorical_features=["island", "sex", "year"],
        categories={"island": ["Torgersen", "Dream", "Biscoe", "Cormorant"], "year": [2007.0, 2008.0, 2009.0]},
        categorical_split="multiway",
        min_samples_leaf=2,
    )
    return model.fit(X, y, sample_weight=np.linspace(0.5, 2, len(y)))


def same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
        assert [type(v) for v in a.tolist()] == [type(v) for v in b.tolist()]
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, BaseEstimator):
        same(a.get_params(), b.get_params())
    elif isinstance(a, Bagging | Rule):
        same(*([getattr(record, f.name) for f in fields(a)] for record in (a, b)))  # type: ignore[arg-type]
    elif isinstance(a, dict):
        same(list(a), list(b))
        same(list(a.values()), list(b.values()))
    else:
        assert a == b


def same_model(a: Any, b: Any, X: Any) -> None:
    """Every attribute is equal and of the same type, and so are the predictions."""
    assert type(a) is type(b)
    assert a.fingerprint() == b.fingerprint()
    assert set(vars(a)) - {"_n_columns"} == set(vars(b)) - {"_n_columns"}
    for name in set(vars(b)) - {"forest_", "_n_columns"}:
        same(getattr(a, name), getattr(b, name))
    for f in fields(Forest):
        same(getattr(a.forest_, f.name), getattr(b.forest_, f.name))
    same(a.predict(X), b.predict(X))
    same(a.feature_importances_, b.feature_importances_)
    same(a.apply(X), b.apply(X))
    if hasattr(a, "predict_proba"):
        same(a.predict_proba(X), b.predict_proba(X))
    if hasattr(a, "estimators_"):
        same(a.estimators_samples_, b.estimators_samples_)
        same(a.estimators_[3].forest_.value, b.estimators_[3].forest_.value)


def parts(path: Path) -> Parts:
    """Header and arrays of a model file, as `zipfile` and NumPy read them."""
    with zipfile.ZipFile(path) as archive:
        arrays = {name: np.load(io.BytesIO(archive.read(name))) for name in archive.namelist() if name.endswith("y")}
        return json.loads(archive.read("header.json")), arrays


def fingerprint(arrays: dict[str, NDArray[Any]]) -> str:
    """The fingerprint as the head of `gputree.io` defines it."""
    digest = hashlib.sha256()
    for name, array in arrays.items():
        if name.startswith("forest/"):
            field = name.removeprefix("forest/").removesuffix(".npy")
            digest.update(f"{field} {array.dtype.str} {array.shape}\n".encode() + array.tobytes())
    return digest.hexdigest()


def npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def write(path: Path, header: Any, arrays: dict[str, NDArray[Any]], repair: bool = True) -> None:
    """A model file by other means than gputree's; checksums always fit, the fingerprint if it is repaired."""
    if repair and "fingerprint" in header and "nodes" not in header:
        header = {**header, "fingerprint": fingerprint(arrays)}
    rewrite(path, header, {name: npy(array) for name, array in arrays.items()})


def rewrite(path: Path, header: Any, members: dict[str, bytes]) -> None:
    """The same, of arrays that are bytes already."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        for name, data in members.items():
            archive.writestr(name, data)


def expected(number: int) -> NDArray[np.float64]:
    """What the file of a format predicts for the penguins, and the odd ones."""
    return np.loadtxt(DATA / f"format_{number}.csv", delimiter=",", skiprows=1)


def predictions(model: Any) -> NDArray[np.float64]:
    return np.concatenate([model.predict_proba(penguins()[0]), model.predict_proba(odd_penguins())])


if __name__ == "__main__":
    made = of_this_format()
    save(made, DATA / "format_5.gputree")
    table = [",".join(map(repr, row)) for row in predictions(made).tolist()]
    (DATA / "format_5.csv").write_text("\n".join([",".join(made.classes_), *table]) + "\n")
