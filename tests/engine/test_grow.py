"""The growth loop: what may not change the forest, what must be learnt, and the shape of the result."""

from __future__ import annotations

import itertools
import pickle
from collections import deque
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import gputree
import gputree.backends.cells
import gputree.backends.oracle
import gputree.engine.frontier
import gputree.learners.grower
from gputree.backends.oracle import Oracle
from gputree.backends.protocol import CodeSpec
from gputree.core.criteria import CRITERIA, TargetKind
from gputree.core.forest import Forest, Test
from gputree.core.keys import root_keys
from gputree.core.schema import Feature, Kind, Schema
from gputree.core.splits import MULTIWAY, RANDOM, RANDOM_SUBSET, SUBSET, THRESHOLD, Generator, Limits, Search, Stop
from gputree.core.target import class_target, sum_target
from gputree.engine.grow import grow
from gputree.engine.recipe import Order, Recipe
from gputree.engine.sampling import FeatureDraws, Sampler

COUNTS = [name for name, c in CRITERIA.items() if c.needs is TargetKind.COUNTS and name != "log_loss"]
SUMS = ["squared_error", "poisson"]
CATEGORY = tuple("abcd")


@dataclass(frozen=True)
class Data:
    X: NDArray[Any]
    y: NDArray[Any]
    weight: NDArray[np.float64] | None = None
    criterion: str = "gini"
    categories: tuple[int, ...] = ()

    def schema(self) -> Schema:
        columns = range(self.X.shape[1])
        return Schema(tuple(Feature(str(f), *self.kind(f)) for f in columns))

    def kind(self, f: int) -> tuple[Any, ...]:
        return (Kind.CATEGORICAL, CATEGORY) if f in self.categories else (Kind.NUMERIC,)

    def rows(self, order: NDArray[Any]) -> Data:
        weight = None if self.weight is None else self.weight[order]
        return Data(self.X[order], self.y[order], weight, self.criterion, self.categories)


def data(criterion: str, n: int = 100, *, weighted: bool = False, seed: int = 0) -> Data:
    """Two numeric columns with ties and missing values, one all distinct, one of categories."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 9, n), rng.integers(0, 60, n), rng.permutation(n), rng.integers(0, 4, n)])
    X = np.where(rng.random(X.shape) < [0.2, 0.1, 0, 0.1], np.nan, X)
    noisy = np.nan_to_num(X[:, 0]) + (X[:, 2] > n / 2) * np.nan_to_num(X[:, 3]) + rng.integers(0, 3, n)
    y = noisy.astype(int) % 4 if criterion in COUNTS else noisy + 1.0
    return Data(X, y, rng.integers(1, 4, n).astype(float) if weighted else None, criterion, (3,))


def plant(
    table: Data,
    *,
    generator: Generator = THRESHOLD,
    categorical: Generator = MULTIWAY,
    stop: Stop = Stop(min_gain=-np.inf),  # noqa: B008 - frozen
    sampler: Sampler = Sampler(),  # noqa: B008 - frozen
    table_bytes: int = 1 << 28,
    seed: int = 3,
) -> tuple[Forest, Oracle]:
    """Grow on the NumPy backend; best first where the leaves are limited."""
    backend, criterion = Oracle(), CRITERIA[table.criterion]
    if table.criterion in COUNTS:
        target = class_target(table.y[:, None], (int(table.y.max()) + 1,), table.weight)
    else:
        target = sum_target(table.y[:, None], criterion, table.weight)
    cuts = backend.edges(table.X, CodeSpec(table.schema()), target.weights.units)
    order = Order.LEVEL if stop.max_leaves is None else Order.BEST
    recipe = Recipe(Search((generator, categorical), criterion, Limits()), stop, order, sampler, table_bytes)
    return grow(backend, backend.encode(table.X, cuts), target, recipe, seed), backend


def fingerprint(table: Data, **settings: Any) -> str:
    return plant(table, **settings)[0].fingerprint()


TABLES = {
    "gini": data("gini"),
    "weighted entropy": data("entropy", weighted=True),
    "gain ratio": data("gain_ratio", 70),
    "squared error": data("squared_error"),
    "weighted poisson": data("poisson", weighted=True),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "levels": {},
    "best first": {"stop": Stop(min_gain=-np.inf, max_leaves=23)},
    "random": {"generator": RANDOM, "sampler": Sampler(max_features=2)},
    "subsets": {"categorical": SUBSET},
    "random subsets": {"generator": RANDOM, "categorical": RANDOM_SUBSET},
    "three trees": {"sampler": Sampler(n_trees=3, max_features=1)},
    "three trees of repeats": {"sampler": Sampler(3, 3, feature_draws=FeatureDraws.REPEATS)},
    "three trees best first": {"sampler": Sampler(3, 2), "stop": Stop(min_gain=-np.inf, max_leaves=14)},
}


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest) -> Data:
    return TABLES[request.param]


@pytest.fixture(params=SETTINGS)
def settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    return SETTINGS[request.param]


# -- what may not change the forest


@pytest.mark.parametrize("table_bytes", [1, 5_000, 100_000])
def test_batches_do_not_matter(table: Data, settings: dict[str, Any], table_bytes: int) -> None:
    usual, backend = plant(table, **settings)
    batched, other = plant(table, table_bytes=table_bytes, **settings)
    assert batched.fingerprint() == usual.fingerprint()
    assert other.work.batches > backend.work.batches if table_bytes == 1 else other.work.batches >= backend.work.batches
    assert other.work.rows == backend.work.rows


@pytest.mark.parametrize("chunk", [1, 700, 1 << 40])
def test_chunks_do_not_matter(
    table: Data, settings: dict[str, Any], chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = fingerprint(table, **settings)
    monkeypatch.setattr(gputree.backends.oracle, "CHUNK", chunk)
    monkeypatch.setattr(gputree.backends.oracle, "BLOCK", chunk)
    assert fingerprint(table, **settings) == usual


@pytest.mark.parametrize("dense", [0, 1 << 40], ids=["compact", "dense"])
def test_the_form_of_tables_does_not_matter(
    table: Data, settings: dict[str, Any], dense: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = fingerprint(table, **settings)
    monkeypatch.setattr(gputree.backends.cells, "DENSE", dense)
    assert fingerprint(table, **settings) == usual


@pytest.mark.parametrize("ahead", [1, 2, 1000])
@pytest.mark.parametrize("leaves", [2, 17, 60])
def test_searching_ahead_does_not_matter(table: Data, leaves: int, ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = Stop(min_gain=-np.inf, max_leaves=leaves)
    usual = fingerprint(table, stop=stop)
    monkeypatch.setattr(gputree.engine.frontier, "AHEAD", ahead)
    assert fingerprint(table, stop=stop) == usual


def test_row_order_does_not_matter(table: Data, settings: dict[str, Any]) -> None:
    order = np.random.default_rng(1).permutation(len(table.X))
    assert fingerprint(table.rows(order), **settings) == fingerprint(table, **settings)
    assert fingerprint(table.rows(order[::-1]), **settings) == fingerprint(table, **settings)


def test_layout_and_type_of_equal_values_do_not_matter(table: Data) -> None:
    usual = fingerprint(table)
    for X in (np.asfortranarray(table.X), table.X.astype(np.float32), np.asfortranarray(table.X, np.float32)):
        assert fingerprint(Data(X, table.y, table.weight, table.criterion, table.categories)) == usual


def test_an_ample_number_of_leaves_gives_the_tree_of_all_levels(table: Data) -> None:
    assert fingerprint(table, stop=Stop(min_gain=-np.inf, max_leaves=10_000)) == fingerprint(table)


# -- several trees in one frontier

GOLDEN = 0x9E3779B97F4A7C15  # mix(seed, tree) is a function of seed + (tree + 1) * GOLDEN


def tree_of(forest: Forest, t: int) -> dict[str, Any]:
    """Arrays of one tree, node ids counted from its root; look-up cells of all nodes in one list."""
    stop = int(forest.roots[t + 1]) if t + 1 < forest.roots.size else forest.n_nodes
    start = int(forest.roots[t])
    own = slice(start, stop)
    cells = slice(int(forest.lookup_ptr[start]), int(forest.lookup_ptr[stop]))
    arrays = {f.name: getattr(forest, f.name)[own] for f in fields(forest) if len(getattr(forest, f.name)) > 2}
    for name in ("first_child", "parent"):
        arrays[name] = np.where(arrays[name] < 0, -1, arrays[name] - start)
    arrays |= {name: getattr(forest, name)[cells] for name in ("lookup_code", "lookup_branch")}
    arrays["lookup_ptr"] = np.diff(forest.lookup_ptr[start : stop + 1])
    arrays.pop("roots", None)
    return arrays


@pytest.mark.parametrize("name", ["random", "three trees", "three trees best first"])
def test_a_tree_of_a_forest_is_the_tree_of_its_key(table: Data, name: str) -> None:
    settings = {**SETTINGS[name], "sampler": Sampler(3, 2)}
    forest, _ = plant(table, seed=5, **settings)
    assert forest.roots.size == 3
    trees = [tree_of(forest, t) for t in range(3)]
    for t, tree in enumerate(trees):
        seed = (5 + t * GOLDEN) % 2**64
        assert root_keys(seed, np.array([0])) == root_keys(5, np.array([t]))
        alone, _ = plant(table, seed=seed, **{**settings, "sampler": Sampler(1, 2)})
        expected = tree_of(alone, 0)
        assert tree.keys() == expected.keys()
        for field, array in tree.items():
            np.testing.assert_array_equal(array, expected[field], err_msg=field)
    assert not np.array_equal(trees[0]["feature"], trees[1]["feature"])


# -- what must be learnt


@pytest.mark.parametrize("criterion", [*COUNTS, *SUMS])
def test_xor_is_learnt(criterion: str) -> None:
    """No first split gains anything; it is legal all the same."""
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], float)
    y = np.array([1, 2, 2, 1])
    forest, backend = plant(Data(X, y if criterion in COUNTS else y.astype(float), None, criterion))
    predicted = backend.predict(forest, X)
    assert (predicted.argmax(1) if criterion in COUNTS else predicted[:, 0]).tolist() == y.tolist()
    assert forest.score[0] == 0
    assert forest.n_leaves == 4


def learnt(X: NDArray[Any], y: NDArray[Any], criterion: str, categories: tuple[int, ...] = ()) -> bool:
    forest, backend = plant(Data(X, y, None, criterion, categories))
    return bool((backend.predict(forest, X).argmax(1) == y).all())


@pytest.mark.parametrize("categories", [(), (0, 1, 2)], ids=["threshold", "multiway"])
@pytest.mark.parametrize("criterion", ["gini", "entropy", "train_error"])
def test_all_boolean_functions_of_three_inputs_are_learnt(criterion: str, categories: tuple[int, ...]) -> None:
    X = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    for y in itertools.product([0, 1], repeat=8):
        assert learnt(X, np.array(y), criterion, categories), y


@pytest.mark.parametrize("missing", [False, True], ids=["known", "missing"])
@pytest.mark.parametrize("criterion", [*COUNTS, *SUMS])
def test_rows_that_differ_are_told_apart(criterion: str, missing: bool) -> None:
    """Random labels on distinct rows of a small grid, where most splits gain nothing: the training error is 0."""
    grid = np.array(list(itertools.product(range(4), repeat=3)), float)
    grid[grid == 3] = np.nan if missing else 3
    rng = np.random.default_rng(2)
    for _ in range(8):
        X = rng.permutation(grid)[: rng.integers(2, 64)]
        y = rng.integers(0, 3, len(X)) if criterion in COUNTS else rng.integers(1, 100, len(X)) / 7
        forest, backend = plant(Data(X, y, None, criterion))
        predicted = backend.predict(forest, X)
        np.testing.assert_array_equal(predicted.argmax(1) if criterion in COUNTS else predicted[:, 0], y)


# -- the shape of the result


@pytest.mark.parametrize("leaves", [2, 3, 5, 16, 40])
def test_max_leaves_is_met_exactly(leaves: int) -> None:
    for criterion in ("gini", "squared_error"):
        numeric = data(criterion)
        numeric = Data(numeric.X[:, :3], numeric.y, None, criterion)
        assert plant(numeric, stop=Stop(min_gain=-np.inf, max_leaves=leaves))[0].n_leaves == leaves
        three = plant(numeric, stop=Stop(min_gain=-np.inf, max_leaves=leaves), sampler=Sampler(3, 1))[0]
        assert three.n_leaves == 3 * leaves


def test_the_best_leaf_is_split_first() -> None:
    """Each step adds the split of highest score among the leaves of the tree before it."""
    numeric = Data(data("gini").X[:, :3], data("gini").y)
    full, _ = plant(numeric)
    scores = sorted(full.score[full.kind != Test.LEAF].tolist(), reverse=True)
    for leaves in (2, 3, 9):
        tree, _ = plant(numeric, stop=Stop(min_gain=-np.inf, max_leaves=leaves))
        taken = tree.score[tree.kind != Test.LEAF]
        assert len(taken) == leaves - 1
        assert taken[0] == full.score[0]
        assert taken.sum() <= sum(scores[: leaves - 1]) + 1e-9


@pytest.mark.parametrize("ahead", [1, 64])
def test_equal_scores_go_to_the_older_node(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both halves of 0 1 | 10 11 gain the same; three leaves split the left one. Likewise below."""
    monkeypatch.setattr(gputree.engine.frontier, "AHEAD", ahead)
    y = np.array([0.0, 1, 10, 11])
    X = np.arange(4.0)[:, None]
    tree, _ = plant(Data(X, y, None, "squared_error"), stop=Stop(min_gain=-np.inf, max_leaves=3))
    assert tree.low[:3].tolist() == [1.5, 0.5, 0.0]
    wide, _ = plant(
        Data(np.arange(8.0)[:, None], np.append(y, y + 100), None, "squared_error"),
        stop=Stop(min_gain=-np.inf, max_leaves=6),
    )
    assert np.flatnonzero(wide.kind != Test.LEAF).tolist() == [0, 1, 2, 3, 4]
    assert wide.low[[3, 4]].tolist() == [0.5, 2.5]


def test_node_order_is_breadth_first(table: Data, settings: dict[str, Any]) -> None:
    forest, _ = plant(table, **settings)
    order = []
    for root in forest.roots.tolist():
        assert (forest.parent[root], forest.depth[root]) == (-1, 0)
        queue = deque([root])
        while queue:
            node = queue.popleft()
            order.append(node)
            queue.extend(forest.node(node).children if not forest.node(node).is_leaf else ())
    assert order == list(range(forest.n_nodes))


def test_children_belong_to_their_parent(table: Data, settings: dict[str, Any]) -> None:
    forest, _ = plant(table, **settings)
    for i in range(forest.n_nodes):
        node = forest.node(i)
        if node.is_leaf:
            blank = (forest.feature[i], forest.first_child[i], forest.n_children[i], forest.score[i])
            assert blank == (-1, -1, 0, 0)
            continue
        children = list(node.children)
        assert (forest.parent[children] == i).all()
        assert (forest.depth[children] == forest.depth[i] + 1).all()
        np.testing.assert_array_equal(forest.stats[children].sum(axis=0), forest.stats[i])
        assert max(forest.missing[i], forest.unseen[i]) < len(children)


def chain(n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Labels in turn: a cut after k rows gains 1/(2k) + 1/(2(n-k)), so the best cut takes off one row, n - 1 times."""
    return np.arange(float(n))[:, None], np.arange(n) % 2


def check_chain(n: int, rows: NDArray[np.intp]) -> None:
    X, y = chain(n)
    model = gputree.DecisionTreeClassifier().fit(X, y)
    assert model.get_depth() == n - 1
    assert model.get_n_leaves() == n
    np.testing.assert_array_equal(model.predict(X), y)
    path = model.decision_path(X[rows])
    assert path.sum() == model.forest_.depth[model.apply(X[rows])].sum() + len(rows)
    assert pickle.loads(pickle.dumps(model)).fingerprint() == model.fingerprint()
    best = gputree.DecisionTreeClassifier(max_leaf_nodes=n).fit(X, y)
    assert best.fingerprint() == model.fingerprint()


def test_a_chain_deeper_than_the_stack_of_python() -> None:
    check_chain(1100, np.array([0, 700, 1099]))


@pytest.mark.slow
def test_a_chain_twenty_thousand_deep() -> None:
    check_chain(20_001, np.array([0, 20_000]))


def test_pruning_a_chain_deeper_than_the_stack_of_python() -> None:
    X, y = chain(1050)
    path = gputree.DecisionTreeClassifier().cost_complexity_pruning_path(X, y)
    assert path.impurities[-1] == pytest.approx(0.5)


# -- memory


@pytest.mark.parametrize("n", [300, 1000])
@pytest.mark.parametrize("dense", [0, gputree.backends.cells.DENSE, 64], ids="dense={}".format)
def test_tables_stay_below_table_bytes(n: int, dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest table keeps the limit, unless one slot alone is larger."""
    monkeypatch.setattr(gputree.backends.cells, "DENSE", dense)
    table = data("gini", n)
    table = Data(table.X[:, :3], table.y)
    for table_bytes in (1, 10_000, 60_000, 1_000_000):
        _, backend = plant(table, table_bytes=table_bytes)
        one_slot = 3 * (n + 1) * 8 * (2 + 4)  # the root: at most every row a cell, of code, segment, four classes
        assert 0 < backend.work.table_bytes <= max(table_bytes, one_slot)
        if table_bytes < one_slot:
            continue
        monkeypatch.setattr(gputree.learners.grower, "TABLE_BYTES", table_bytes)
        info = gputree.DecisionTreeClassifier().fit(table.X, table.y).fit_info_
        assert info.table_bytes == table_bytes
        assert info.peak_table_bytes <= table_bytes


@pytest.mark.parametrize("table_bytes", [2_000, 10_000])
def test_a_batch_of_slots_stays_below_table_bytes(table_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a slot that is alone in its batch may have more rows than fit."""
    table = data("gini", 1000)
    table = Data(table.X[:, :3], table.y)
    sizes: list[NDArray[np.int64]] = []
    histogram = Oracle.histogram

    def watched(self: Oracle, shard: Any, slots: Any, features: Any) -> Any:
        sizes.append(slots.rows)
        return histogram(self, shard, slots, features)

    monkeypatch.setattr(Oracle, "histogram", watched)
    plant(table, table_bytes=table_bytes)
    least = 3 * 8 * (1 + 4)  # three columns; a cell holds its code and four classes
    assert len(sizes) > 20
    for rows in sizes:
        assert rows.size == 1 or rows.sum() * least <= table_bytes, f"{rows.size} slots of {rows.sum()} rows"


@pytest.mark.parametrize("leaves", [2, 5, 9, 10, 11, 25])
def test_many_branches_never_exceed_the_leaves_that_are_allowed(leaves: int) -> None:
    """A test of nine categories that does not fit any more is passed over; smaller ones still take their turn."""
    rng = np.random.default_rng(4)
    colour, x = rng.integers(0, 9, 400), rng.normal(size=400)
    frame = pd.DataFrame({"colour": [f"c{c}" for c in colour], "x": x})
    y = (colour % 3 == 0) ^ (x > 0.3) ^ (rng.random(400) < 0.1)
    model = gputree.DecisionTreeClassifier(max_leaf_nodes=leaves).fit(frame, y)
    assert 2 <= model.get_n_leaves() <= leaves
