"""ID3Classifier: the pseudo-code of the family gives its trees; parameters, refusals, what predicts nothing."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import gputree
from gputree import DecisionTreeClassifier, ID3Classifier
from gputree.core.forest import STAY, Test
from gputree.core.schema import Feature, Kind, Schema
from gputree.impurity import entropy
from gputree.learners.frames import as_frame
from gputree.learners.tables import read_matrix
from tests.backends import cards
from tests.learners.id3_pseudocode import (
    Fork,
    Leaf,
    Offered,
    dtl,
    everything,
    follow,
    generate_tree,
    id3,
    id3_binary,
    learn_dt,
    plurality,
    size,
    that_part,
)

HOW: dict[str, Offered] = {"skip": that_part, "test": everything}


@dataclass(frozen=True)
class Case:
    """Rows of small numbers with a label, and the values of every column, some of which no row has."""

    rows: list[tuple[int, ...]]
    domains: dict[int, Sequence[int]]

    @property
    def features(self) -> list[int]:
        """Columns with more than one value."""
        return [f for f, values in self.domains.items() if len(values) > 1]

    @property
    def X(self) -> Any:
        return np.array([row[:-1] for row in self.rows])

    @property
    def y(self) -> Any:
        return np.array([row[-1] for row in self.rows])

    @property
    def classes(self) -> list[int]:
        return sorted(set(self.y.tolist()))

    def fit(self, **settings: Any) -> ID3Classifier:
        values = {f: list(v) for f, v in self.domains.items()}
        return ID3Classifier(categories=values, **{"device": "numpy", **settings}).fit(self.X, self.y)


def tables(n: int, *, binary: bool = False, seed: int = 0) -> Iterator[Case]:
    """Random tables: few rows, so that ties, zero gains, contradictions and empty branches are frequent."""
    rng = np.random.default_rng(seed)
    while n:
        columns = int(rng.integers(1, 6))
        sizes = np.full(columns, 2) if binary else rng.integers(1, 5, columns)
        X = rng.integers(0, sizes, (int(rng.integers(2, 25)), columns))
        y = rng.integers(0, 2 if binary else 3, len(X))
        if binary and len(set(y)) < 2:
            continue
        spare = 0 if binary else 1
        domains = {f: range(int(k) + spare * int(rng.integers(2))) for f, k in enumerate(sizes)}
        yield Case([(*map(int, x), int(label)) for x, label in zip(X, y, strict=True)], domains)
        n -= 1


def tree_of(model: ID3Classifier, node: int = 0, shares: bool = False) -> Any:
    """The fitted arrays as the pseudo-code's tree."""
    forest = model.forest_
    if forest.kind[node] == Test.LEAF:
        value = model._values[node]
        if shares:
            return Leaf(tuple(value.tolist()))
        return Leaf(None if np.isnan(value).any() else model.classes_[value.argmax()].item())
    children = forest.node(node).children
    assert forest.lookup_branch[slice(*forest.lookup_ptr[node : node + 2])].tolist() == list(range(len(children)))
    return Fork(int(forest.feature[node]), tuple(tree_of(model, child, shares) for child in children))


# -- the pseudo-code


@pytest.mark.parametrize("constant", HOW)
def test_id3_binary(constant: str) -> None:
    for case in tables(150, binary=True):
        domains = dict.fromkeys(case.domains, (1, 0))  # children on 1, then on 0
        start = Leaf(plurality(case.rows))
        wanted = id3_binary(case.rows, case.features, domains, HOW[constant], start)
        assert tree_of(case.fit(variant="binary", constant=constant)) == wanted


def test_id3_binary_to_the_letter() -> None:
    """T5: an empty set has all its rows labelled 1; that is the leaf of a branch that no row takes."""
    found = 0
    for case in tables(150, binary=True, seed=1):
        domains = dict.fromkeys(case.domains, (1, 0))
        wanted = id3_binary(case.rows, case.features, domains, everything, None)
        model = case.fit(variant="binary", constant="test", literal_empty=1)
        assert tree_of(model) == wanted
        found += wanted != id3_binary(case.rows, case.features, domains, everything, Leaf(plurality(case.rows)))
    assert found > 5


@pytest.mark.parametrize("constant", HOW)
def test_id3(constant: str) -> None:
    for case in tables(200):
        wanted = id3(case.rows, case.features, case.domains, HOW[constant])
        assert tree_of(case.fit(empty="null", constant=constant)) == wanted


@pytest.mark.parametrize("constant", HOW)
def test_learn_dt(constant: str) -> None:
    for case in tables(200, seed=2):
        wanted = learn_dt(case.rows, case.features, case.rows, case.domains, HOW[constant])
        assert tree_of(case.fit(variant="learn-dt", constant=constant)) == wanted
        assert tree_of(case.fit(constant=constant)) == wanted


@pytest.mark.parametrize("constant", HOW)
def test_dtl(constant: str) -> None:
    for case in tables(200, seed=3):
        wanted = dtl(case.rows, case.features, (), case.domains, HOW[constant], case.classes)
        assert tree_of(case.fit(variant="dtl", constant=constant), shares=True) == wanted


def test_generate_tree() -> None:
    """Ends where no test has a gain, by whatever rounding leaves of 0."""
    stopped = 0
    for case in tables(200, binary=True, seed=4):
        wanted = generate_tree(case.rows, case.features, case.domains)
        assert tree_of(case.fit(variant="generate-tree")) == wanted
        stopped += size(wanted) < size(learn_dt(case.rows, case.features, case.rows, case.domains, that_part))
    assert stopped > 20


def test_rows_follow_the_tree() -> None:
    for case in tables(60, seed=5):
        model = case.fit(empty="null")
        wanted = id3(case.rows, case.features, case.domains, that_part)
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.choice(list(values), 40) for values in case.domains.values()])
        says = [follow(wanted, tuple(row), case.domains) for row in X.tolist()]
        shares = model.predict_proba(X)
        null = np.isnan(shares).any(axis=1)
        assert null.tolist() == [says_ is None for says_ in says]
        assert (
            model.predict(X[~null]).tolist() == [label for label in says if label is not None] if (~null).any() else 1
        )


def test_weights_are_copies() -> None:
    for case in tables(40, seed=6):
        weight = np.random.default_rng(1).integers(1, 4, len(case.rows))
        copies = Case([row for row, k in zip(case.rows, weight, strict=True) for _ in range(k)], case.domains)
        model = ID3Classifier(categories=dict(case.domains.items()), device="numpy")
        assert tree_of(model.fit(case.X, case.y, weight)) == tree_of(copies.fit())


# -- everywhere the same

SETTINGS: list[dict[str, Any]] = [
    {},
    {"empty": "null", "constant": "test"},
    {"constant": "test", "criterion": "gain_ratio"},
    {"criterion": "train_error", "max_depth": 2, "base": 3},
]


def same_everywhere(device: str, n: int) -> None:
    for settings in SETTINGS:
        for case in tables(n, seed=7):
            models = [case.fit(**settings, device=name) for name in ("numpy", device)]
            assert models[0].fingerprint() == models[1].fingerprint()
            X = np.random.default_rng(2).integers(0, 7, (30, case.X.shape[1]))  # values beyond those known
            assert models[0].apply(X).tolist() == models[1].apply(X).tolist()
    for variant in ("binary", "generate-tree"):
        for case in tables(n, binary=True, seed=8):
            models = [case.fit(variant=variant, device=name) for name in ("numpy", device)]
            assert models[0].fingerprint() == models[1].fingerprint()


def test_the_compiled_backend_grows_the_same() -> None:
    pytest.importorskip("numba", reason="expected: without Numba")
    same_everywhere("jit", 25)


def test_the_emulated_card_grows_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    cards.emulate(monkeypatch)
    same_everywhere("cuda", 6)


def large() -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.integers(0, 4, (3000, 6))
    X[:, 2] = 1  # one value: never a test
    return X, (X[:, 0] == X[:, 1]) ^ (rng.random(3000) < 0.1)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_large_nodes_grow_the_same(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="expected: without Numba")
    cards.emulate(monkeypatch)
    prints = {ID3Classifier(device=d, **settings).fit(*large()).fingerprint() for d in ("numpy", "jit", "cuda")}
    assert len(prints) == 1


# -- numbers

INDICATORS = {"variant": "binary", "device": "numpy"}


@pytest.mark.parametrize("seed", range(20))
def test_indicator_columns_give_the_error_and_size_of_thresholds(seed: int) -> None:
    """B1.6: a real column is its indicators x < t, one for each t between neighbouring values."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(30, 3)), 1)
    y = rng.integers(0, 3, 30)
    cuts = [(f, (a + b) / 2) for f in range(3) for a, b in pairwise(np.unique(X[:, f]))]
    indicators = np.column_stack([X[:, f] < t for f, t in cuts]).astype(int)
    reduced = ID3Classifier(**INDICATORS, numeric="thresholds").fit(X, y)
    wide = ID3Classifier(**INDICATORS).fit(indicators, y)
    assert reduced.forest_.n_nodes == wide.forest_.n_nodes
    assert reduced.score(X, y) == wide.score(indicators, y)
    assert [cuts[f][0] for f in wide.forest_.feature if f >= 0] == [f for f in reduced.forest_.feature if f >= 0]


def test_real_numbers_are_refused_by_name() -> None:
    X = pd.DataFrame({"a": [0, 1, 0, 1], "size": [0.5, 1.0, 1.5, 2.0]})
    with pytest.raises(ValueError, match=r"column 'size' holds real numbers.*numeric='thresholds'"):
        ID3Classifier().fit(X, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="'feature_0' holds real numbers"):
        ID3Classifier().fit([[0.0], [1.0]], [0, 1])
    assert ID3Classifier(numeric="thresholds").fit(X, [0, 0, 0, 1]).predict(X).tolist() == [0, 0, 0, 1]
    assert ID3Classifier(categorical_features=[0, 1]).fit(X, [0, 0, 0, 1]).score(X, [0, 0, 0, 1]) == 1.0


def test_thresholds_of_sparse_tables() -> None:
    X = np.array([[0.0, 2.0], [1.0, 0.0], [0.0, 3.0], [4.0, 0.0]])
    y = [0, 1, 0, 1]
    model = ID3Classifier(numeric="thresholds")
    prints = {model.fit(table, y).fingerprint() for table in (X, csr_matrix(X))}
    assert len(prints) == 1
    with pytest.raises(ValueError, match="real numbers"):
        ID3Classifier().fit(csr_matrix(X), y)


TABLES = {
    "array": lambda X: X,
    "lists": lambda X: X.tolist(),
    "pandas": pd.DataFrame,
    "nullable": lambda X: pd.DataFrame(X).astype("Int16"),
    "polars": lambda X: pl.DataFrame(X.astype(np.uint8)),
    "objects": lambda X: X.astype(object),
    "objects and text": lambda X: np.column_stack([X.astype(object), np.array(list("aaaa"), object)]),
    "arrow": lambda X: pl.DataFrame(X).to_arrow(),
}


@pytest.mark.parametrize("kind", TABLES)
def test_integers_are_names_in_every_table(kind: str) -> None:
    X, y = np.array([[3, 0], [7, 0], [5, 1], [3, 1]]), np.array([0, 1, 0, 0])
    table = TABLES[kind](X)
    model = ID3Classifier().fit(table, y)
    assert [feature.categories for feature in model.schema_.features][:2] == [(3, 5, 7), (0, 1)]
    assert model.forest_.n_children[0] == 3
    assert model.predict(table).tolist() == y.tolist()


def test_booleans_and_text() -> None:
    X = pd.DataFrame({"b": [True, False, True, False], "t": ["x", "y", "z", "x"], "c": pd.Categorical(list("pqpq"))})
    model = ID3Classifier().fit(X, [1, 0, 0, 0])
    assert [f.categories for f in model.schema_.features] == [(False, True), ("x", "y", "z"), ("p", "q")]
    assert ID3Classifier().fit(np.array([[True], [False]]), [1, 0]).schema_.features[0].categories == (False, True)


@pytest.mark.parametrize("dtype", ["int8", "uint64", "Int32", "int64"])
def test_columns_of_integers_are_read_as_their_values_one_by_one(dtype: str) -> None:
    """In whatever order the categories are declared, and with values that are none of them."""
    values = np.random.default_rng(4).integers(0, 9, 200)
    feature = Feature("c", Kind.CATEGORICAL, (5, 3, 8, 0, 1))
    frame = as_frame(pd.DataFrame({"c": values}).astype(dtype))
    assert frame is not None
    wanted = [[float(feature.categories.index(v)) if v in feature.categories else -1.0] for v in values.tolist()]
    assert read_matrix(frame, Schema((feature,))).tolist() == wanted


def test_large_integers_are_told_apart() -> None:
    X = np.array([[2**60], [2**60 + 1]] * 2)
    assert ID3Classifier().fit(X, [0, 1, 0, 1]).predict(X).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("variant", ["binary", "generate-tree"])
def test_columns_of_more_than_two_values_are_refused_by_name(variant: str) -> None:
    X = pd.DataFrame({"two": [0, 1, 0], "three": ["a", "b", "c"]})
    with pytest.raises(ValueError, match=r"column 'three' has 3 values, and variant=.*OneHotEncoder"):
        ID3Classifier(variant=variant).fit(X, [0, 1, 1])
    assert ID3Classifier(variant=variant).fit(X[["two"]], [0, 1, 1]).forest_.n_nodes == 3


def test_the_branch_of_1_comes_first_in_the_binary_form() -> None:
    X, y = np.array([[0], [1], [1]]), [0, 1, 1]
    for variant, first in (("binary", 1), ("generate-tree", 0), ("id3", 0)):
        model = ID3Classifier(variant=variant).fit(X, y)
        assert model.forest_.value[1].argmax() == first
        assert model.predict(X).tolist() == y


# -- missing, unseen, empty


@pytest.mark.parametrize(
    "X",
    [[["a"], [None]], np.array([[1.0], [np.nan]]), pd.DataFrame({"feature_0": pd.Series([1, None], dtype="Int64")})],
)
def test_missing_values_are_refused(X: Any) -> None:
    with pytest.raises(ValueError, match=r"NaN or infinity: column 'feature_0' has nan in row 1.*SimpleImputer"):
        ID3Classifier(numeric="thresholds").fit(X, [0, 1])


def test_missing_values_are_refused_in_predictions() -> None:
    model = ID3Classifier().fit([["a"], ["b"]], [0, 1])
    with pytest.raises(ValueError, match="NaN or infinity"):
        model.predict([["a"], [None]])


def unseen() -> tuple[Any, Any]:
    """The root looks up c: a has classes x, x, y; b has z; k is declared and has no row."""
    frame = pd.DataFrame({"c": pd.Categorical(list("aaabb"), categories=list("abk")), "d": list("ppqqp")})
    return frame, np.array(["x", "x", "y", "z", "z"])


ODD = pd.DataFrame({"c": ["k", "new", "a", "b"], "d": ["p", "p", "new", "q"]})


@pytest.mark.parametrize("device", ["numpy", "jit", "cuda"])
def test_values_without_rows_predict_what_the_node_above_does(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if device == "jit":
        pytest.importorskip("numba", reason="expected: without Numba")
    if device == "cuda":
        cards.emulate(monkeypatch)
    X, y = unseen()
    model = ID3Classifier(device=device).fit(X, y)
    assert model.predict(ODD).tolist() == ["x", "x", "x", "z"]
    assert model.predict_proba(ODD)[:3].tolist() == [[0.4, 0.2, 0.4], [0.4, 0.2, 0.4], [2 / 3, 1 / 3, 0.0]]
    assert model.apply(ODD).tolist()[1] == 0  # the new value ends at the root
    inner = model.forest_.kind != Test.LEAF
    assert (model.forest_.unseen[inner] == STAY).all()
    assert (model.forest_.missing[inner] == STAY).all()
    assert model.decision_path(ODD).toarray().sum(axis=1).tolist() == [2, 1, 2, 2]


def test_null_leaves_predict_nothing() -> None:
    X, y = unseen()
    model = ID3Classifier(empty="null").fit(X, y)
    shares = model.predict_proba(ODD)
    assert np.isnan(shares).all(axis=1).tolist() == [True, True, True, False]
    assert np.isnan(model.predict_log_proba(ODD)[0]).all()
    with pytest.raises(
        ValueError, match=r"row 0 \(counted from 0\) of X ends where no row of the fit was.*3 in all.*literal_empty"
    ):
        model.predict(ODD)
    assert model.predict(ODD[3:]).tolist() == ["z"]
    assert model.score(ODD, ["x", "x", "x", "z"]) == 0.25  # as Weka counts what is not classified
    assert model.score(ODD, ["x", "x", "x", "z"], [1, 1, 1, 3]) == 0.5
    with pytest.raises(ValueError, match="y has 2 rows"):
        model.score(ODD, ["x", "x"])


def test_a_class_for_what_no_row_taught() -> None:
    X, y = unseen()
    model = ID3Classifier(literal_empty="y").fit(X, y)
    assert model.predict(ODD).tolist() == ["y", "y", "y", "z"]
    assert model.score(ODD, ["y", "y", "y", "z"]) == 1.0
    with pytest.raises(ValueError, match="literal_empty='w' is no class of y, whose classes are 'x', 'y', 'z'"):
        ID3Classifier(literal_empty="w").fit(X, y)
    with pytest.raises(ValueError, match="is no class of y"):
        ID3Classifier(literal_empty=np.array(["x", "y"])).fit(X, y)


@pytest.mark.parametrize("variant", ["dtl", "learn-dt"])
@pytest.mark.parametrize("settings", [{"empty": "null"}, {"literal_empty": 1}])
def test_variants_that_leave_no_choice(variant: str, settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"variant='{variant}' gives an empty branch what its parent predicts"):
        ID3Classifier(variant=variant, **settings).fit([[0], [1]], [0, 1])


def test_several_outputs_are_refused() -> None:
    with pytest.raises(ValueError, match="y has 2 outputs, and a tree of ID3 has one"):
        ID3Classifier().fit([[0], [1]], [[0, 1], [1, 0]])


# -- the base of logarithms


@pytest.mark.parametrize("criterion", ["entropy", "gain_ratio"])
def test_the_base_scales_what_is_shown_and_moves_no_choice(criterion: str) -> None:
    for case in tables(30, seed=9):
        bits = case.fit(criterion=criterion)
        counts = bits.forest_.stats
        for base, k in ((3, 3.0), (np.e, np.e), ("classes", max(2, len(case.classes)))):
            model = case.fit(criterion=criterion, base=base)
            assert tree_of(model) == tree_of(bits)
            assert model.tree_.impurity == pytest.approx(entropy(counts, base=k), abs=1e-12)
            assert pickle.loads(pickle.dumps(model)).fingerprint() == model.fingerprint()


def test_other_criteria_have_no_logarithm() -> None:
    case = next(tables(1))
    assert case.fit(criterion="gini", base=3).fingerprint() == case.fit(criterion="gini").fingerprint()


# -- the contract


@pytest.mark.filterwarnings("ignore")
def test_the_contract_of_scikit_learn() -> None:
    """Its tables are of real numbers."""
    results = check_estimator(ID3Classifier(numeric="thresholds"), on_fail=None)
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] not in ("passed", "skipped")]
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 45


def test_a_model_file_keeps_it(tmp_path: Any) -> None:
    X, y = unseen()
    for settings in ({"empty": "null"}, {"base": "classes"}, {"literal_empty": "z"}, {"constant": "test"}):
        model = ID3Classifier(**settings).fit(X, y)
        gputree.save(model, tmp_path / "tree.gputree")
        again = gputree.load(tmp_path / "tree.gputree")
        assert again.fingerprint() == model.fingerprint()
        assert again.get_params() == model.get_params()
        np.testing.assert_array_equal(again.predict_proba(ODD), model.predict_proba(ODD))
        assert clone(again).fit(X, y).fingerprint() == model.fingerprint()


def test_scikit_learn_has_no_such_tree() -> None:
    with pytest.raises(TypeError, match="scikit-learn has no ID3Classifier"):
        ID3Classifier().fit([[0], [1]], [0, 1]).to_sklearn()


def test_depth_and_pruning() -> None:
    X, y = large()
    assert ID3Classifier(max_depth=2).fit(X, y).get_depth() == 2
    path = ID3Classifier().cost_complexity_pruning_path(X, y)
    assert ID3Classifier(ccp_alpha=path.ccp_alphas[-1]).fit(X, y).forest_.n_nodes == 1
    assert 0.8 < cross_val_score(ID3Classifier(ccp_alpha=0.002), X, y, cv=3).mean() < 0.95


def test_without_empty_branches_it_is_a_tree_of_the_other_class() -> None:
    """The engine is the same: only the domain of a column and what has no branch differ."""
    X, y = large()
    values = {f: np.unique(column) for f, column in enumerate(X.T)}
    other = DecisionTreeClassifier(criterion="entropy", categorical_split="multiway", categories=values).fit(X, y)
    mine = ID3Classifier().fit(X, y)
    for name in ("feature", "n_children", "stats", "score", "value"):
        np.testing.assert_array_equal(getattr(mine.forest_, name), getattr(other.forest_, name))
