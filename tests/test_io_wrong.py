"""Model files that are wrong in one place: written anew, so that only the checks of the content can see it."""

from __future__ import annotations

import copy
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gputree
from gputree.inspect.values import decode, encode
from gputree.io import load, save
from gputree.stopping import Validation
from tests.model_files import MODELS, Parts, labels, made, mixed, numbers, parts, same_model, write


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("io")
    makers = MODELS | {
        "dates": lambda: tree(labels(np.array(["2020-01-01", "2021-01-01"], "M8[D]"))),
        "booleans": lambda: tree(labels([True, False])),
        "texts": lambda: tree(labels(["a", "b"])),
        "integers": lambda: tree(labels([3, 7])),
        "floats": lambda: tree(labels([3.0, 7.0])),
    }

    def file(name: str) -> Path:
        if not (folder / name).exists():
            save(makers[name]()[0] if name != "penguins" else mixed(), folder / name, compact=False)
        return folder / name

    return file


def tree(y: NDArray[Any]) -> tuple[Any, Any]:
    return gputree.DecisionTreeClassifier(max_depth=2).fit(numbers(), y), numbers()


Change = Callable[[Parts], Any]


def header(*keys: Any, to: Any) -> Change:
    def change(found: Parts) -> None:
        place: Any = found[0]
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to

    return change


def cell(name: str, place: Any, to: Any) -> Change:
    def change(found: Parts) -> None:
        found[1][f"forest/{name}.npy"][place] = to

    return change


def array(name: str, make: Callable[[NDArray[Any]], NDArray[Any]]) -> Change:
    def change(found: Parts) -> None:
        name_ = name if "/" in name else f"forest/{name}.npy"
        found[1][name_] = make(found[1][name_])

    return change


def several(*changes: Change) -> Change:
    return lambda found: [change(found) for change in changes]


def drop(*keys: Any) -> Change:
    def change(found: Parts) -> None:
        place: Any = found[0]
        for key in keys[:-1]:
            place = place[key]
        del place[keys[-1]]

    return change


# The tree of the penguins: see `mixed`. Node 0 tests a number, node 2 the island, and the last node is a leaf.
HEADER: list[tuple[Change, str]] = [
    (header("estimator", to="Popen"), "its estimator 'Popen' is unknown; known are DecisionTreeClassifier"),
    (header("estimator", to=["DecisionTreeClassifier"]), "'estimator' is ['DecisionTreeClassifier'], which is no str"),
    (header("estimator", to="DecisionTreeRegressor"), "the parameters of DecisionTreeRegressor are not those"),
    (header("parameters", "max_depth", to="deep"), "The 'max_depth' parameter of DecisionTreeClassifier must be"),
    (header("parameters", "max_depth", to={"call": "x"}), "{'call': 'x'} is no value of this format"),
    (header("parameters", "max_depth", to={"scalar": 3.5, "dtype": "<i8"}), "is no value of this format"),
    (header("parameters", "max_depth", to={"scalar": "3", "dtype": "<i8"}), "is no value of this format"),
    (header("parameters", "max_depth", to={"scalar": [3], "dtype": "<i8"}), "is no value of this format"),
    (header("parameters", "max_depth", to={"scalar": 2**70, "dtype": "<i8"}), "Python int too large"),
    (header("parameters", "max_depth", to={"scalar": 3, "dtype": "<i8", "x": 1}), "is no value of this format"),
    (header("parameters", "ccp_alpha", to={"scalar": 1e39, "dtype": "<f4"}), "is no value of this format"),
    (header("parameters", "max_depth", to={"scalar": 3, "dtype": "|O"}), "array type '|O' is not allowed here"),
    (header("parameters", "monotonic_cst", to={"array": [1, 300], "dtype": "|i1"}), "out of bounds"),
    (header("parameters", "monotonic_cst", to={"array": [[1], [1, 2]], "dtype": "<i8"}), "inhomogeneous"),
    (header("parameters", "monotonic_cst", to={"array": ["ab"], "dtype": "<U1"}), "is no value of this format"),
    (header("parameters", "monotonic_cst", to={"array": [1], "dtype": "i8,i8"}), "'i8,i8' is no array type"),
    (header("parameters", "monotonic_cst", to={"array": [1], "dtype": "<i8" * 9}), "is no array type"),
    (header("parameters", "monotonic_cst", to={"array": [1], "dtype": "<f3"}), "'<f3' is no array type"),
    (header("parameters", "monotonic_cst", to={"array": [1], "dtype": "<f16"}), "'<f16' is not allowed here"),
    (header("parameters", "categories", to={"dict": [[1]]}), "are no pairs of a dict"),
    (header("parameters", "categories", to={"dict": [[[1], 2]]}), "a key of a dict is a list"),
    (header("parameters", "categories", to={"dict": [["a", 1], ["a", 2]]}), "two keys of a dict are equal"),
    (header("parameters", "categories", to={"dict": [[1, 1], [True, 2]]}), "two keys of a dict are equal"),
    (header("parameters", "depth", to=3), "are not those of this format: unknown 'depth'"),
    (drop("parameters", "max_depth"), "are not those of this format: missing 'max_depth'"),
    (header("features", 0, "kind", to="text"), "column 'island' is of the unknown kind 'text'"),
    (header("features", 0, "kind", to="numeric"), "unknown 'categories', 'declared'"),
    (header("features", 0, to={"name": "island", "kind": "numeric"}), "a test does not fit the kind of its column"),
    (header("features", 0, "name", to=3), "'name' is 3, which is no str"),
    (header("features", 0, "declared", to=1), "'declared' is 1, which is no bool"),
    (header("features", 0, "categories", to="ab"), "'categories' is 'ab', which is no list"),
    (header("features", 0, "categories", to=["a", "b"]), "a code that is no category"),
    (header("features", 0, "categories", to=["a", "a", "b"]), "categories of column 'island' are not distinct"),
    (header("features", 0, "categories", to=["a", None, "b"]), "categories of column 'island' are not distinct"),
    (header("features", 0, "categories", to=["a", {"float": "nan"}, "b"]), "of column 'island' are not distinct"),
    (header("features", 0, "categories", to=[1, 1.0, True]), "categories of column 'island' are not distinct"),
    (header("features", 0, "categories", to=[["a"], "b", "c"]), "categories of column 'island' are not distinct"),
    (header("features", 0, "categories", to=list(range(65535))), "has 65535 categories, more than 65534"),
    (header("features", 1, "categories", to=["a"]), "column 'bill_length_mm' are not those of this format"),
    (header("features", to=[]), "it has no feature"),
    (header("features", to=[3]), "an item of 'features' is 3, which is no dict"),
    (header("gputree", to=1), "'gputree' is 1, which is no str"),
    (header("named", to=1), "'named' is 1, which is no bool"),
    (header("layout", "kind", to="raw sums"), "its layout has classes and sums"),
    (header("layout", "kind", to="sums"), "its layout is of the unknown kind 'sums'"),
    (header("layout", "sizes", to=[2]), "its classes do not fit its layout"),
    (header("layout", "sizes", to=[3.0]), "an item of 'sizes' is 3.0, which is no int"),
    (header("layout", "sizes", to=[]), "its layout has no outputs"),
    (header("layout", "sizes", to=[10**30]), "its classes do not fit its layout"),
    (header("layout", "scale", to=[0.0]), "the scale of its layout is not positive"),
    (header("layout", "scale", to=[0.3]), "the scale of its layout is no power of two"),
    (header("layout", "scale", to=[1]), "an item of 'scale' is 1, which is no float"),
    (header("layout", "rows", to=1), "its layout has rows in channel 1"),
    (header("weight_unit", to=-1.0), "its weight_unit is -1.0, which is not positive"),
    (header("weight_unit", to=1), "'weight_unit' is 1, which is no float"),
    (header("max_features", to=0), "its max_features is 0"),
    (header("max_features", to=8), "its max_features is 8"),
    (header("fit_info", to={}), "the fields of fit_info are not those of this format: missing 'backend'"),
    (header("fit_info", "seconds", to=1), "'seconds' is 1, which is no float"),
    (header("classes", to=[["a", "b"]]), "its classes do not fit its layout"),
    (header("classes", to=[["a", "b", "b"]]), "two classes of output 0 are equal"),
    (header("classes", to=[["a", "b", None]]), "the classes of output 0 hold something that is no text"),
    (header("classes", to=[["a", "b", ["c"]]]), "the classes of output 0 hold something that is no text"),
    (header("classes", to=[]), "its classes do not fit its layout"),
    (
        header("classes", to=["forest/low.npy"]),
        "the classes of output 0 are listed in 'forest/low.npy', not in classes/0.npy",
    ),
    (header("classes", to=["classes/0.npy"]), "it has no member classes/0.npy"),
    (header("classes", to=[3]), "the entry of the classes of output 0 is 3, which is no str"),
    (header("list_of_classes", to=0), "'list_of_classes' is 0, which is no bool"),
    (drop("list_of_classes"), "the fields of the header are not those of this format: missing 'list_of_classes'"),
    (drop("classes"), "the fields of the header are not those of this format: unknown 'list_of_classes'"),
    (several(drop("classes"), drop("list_of_classes")), "its estimator and its layout differ"),
    (header("more", to=1), "the fields of the header are not those of this format: unknown 'more'"),
    (drop("layout"), "missing 'layout'"),
    (header("fingerprint", to=5), "'fingerprint' is 5, which is no str"),
]

ARRAYS: list[tuple[Change, str]] = [
    (lambda found: found[1].pop("forest/low.npy"), "it has no member forest/low.npy"),
    (lambda found: found[1].update(more=np.zeros(1)), "it has the unknown member 'more'"),
    (lambda found: found[1].update({"classes/0.npy": np.arange(3)}), "it has the unknown member 'classes/0.npy'"),
    (array("low", lambda a: a[:-1]), "low has shape"),
    (array("low", lambda a: a.astype(">f8")), "an array has type >f8, not little-endian"),
    (array("feature", lambda a: a.astype(np.int64)), "feature has type int64, not int32"),
    (array("value", lambda a: a[:, :2]), "value has shape"),
    (array("stats", lambda a: np.asfortranarray(a)), "has no header of NPY format 1.0"),
    (array("roots", lambda a: np.array([0, 1], np.int32)), "the children are not all nodes but the roots"),
    (array("kind", lambda a: a[:0]), "has shape"),
    (cell("roots", 0, 1), "the root is node 1, not 0"),
    (cell("kind", 0, 2), "a node has an unknown kind"),
    (cell("kind", 0, 0), "a leaf has feature other than -1"),
    (cell("kind", -1, 1), "a test has fewer than two children"),
    (cell("low", -1, 1.0), "a leaf has low other than 0"),
    (cell("score", -1, 1.0), "a leaf has score other than 0"),
    (cell("met_missing", -1, 1), "a leaf has met_missing other than 0"),
    (cell("n_children", 0, 3), "a threshold has other than two children"),
    (cell("n_children", 2, 65535), "the children are not all nodes but the roots"),
    (cell("n_children", 2, 1), "a test has fewer than two children"),
    (cell("first_child", 0, 0), "children are not in breadth-first order"),
    (cell("first_child", 0, 1000), "children are not in breadth-first order"),
    (cell("first_child", 0, -(2**31)), "children are not in breadth-first order"),
    (cell("parent", 1, 1), "parents differ from children"),
    (cell("parent", 0, 0), "parents differ from children"),
    (cell("depth", 1, 2), "a depth is not its parent's plus 1"),
    (cell("depth", 0, 1), "a depth is not its parent's plus 1"),
    (cell("feature", 0, 7), "a test is of none of 7 features"),
    (cell("feature", 0, -1), "a test is of none of 7 features"),
    (cell("feature", 0, 0), "a test does not fit the kind of its column"),
    (cell("feature", 2, 1), "a test does not fit the kind of its column"),
    (cell("low", 0, np.nan), "a threshold is NaN"),
    (cell("low", 0, np.inf), "a threshold is infinite where the test does not ask whether a value is missing"),
    (cell("low", 2, 1.0), "a lookup has low other than 0"),
    (cell("missing", 0, 2), "missing names a branch that is not there"),
    (cell("unseen", 0, 65533), "unseen names a branch that is not there"),
    (cell("met_missing", 0, 2), "met_missing is neither 0 nor 1"),
    (cell("unseen", 2, 2), "unseen is not the child of larger weight"),
    (cell("missing", 2, 2), "missing is not the child of larger weight where no row was missing"),
    (cell("lookup_ptr", 1, 1), "lookup_ptr does not rise from 0"),
    (cell("lookup_ptr", -1, 2**40), "lookup_ptr does not end at the number of cells"),
    (cell("lookup_ptr", slice(1, 3), 3), "a lookup has no cells, or another node has some"),
    (cell("lookup_code", 0, 0), "a code that is no category"),
    (cell("lookup_code", 1, 1), "the codes of a lookup do not ascend"),
    (cell("lookup_branch", 0, 9), "a lookup names a branch that is not there"),
    (cell("lookup_branch", 0, 1), "no value leads to a branch"),
    (cell("stats", (0, 0), -1), "a count is negative"),
    (cell("stats", (0, 0), 1), "the stats of a node are not the sum of its children's"),
    (array("stats", lambda a: a * 2**55), "the counts of a node overflow"),
    (array("stats", lambda a: a * 0), "the root has no weight"),
    (cell("value", (0, 0), np.inf), "value is not finite"),
    (cell("value", (0, 0), 1.5), "a share of a class is not in 0 to 1"),
    (cell("value", (0, 0), 0.5), "a share of a class is not that of its counts"),
    (cell("value", (-1, slice(None)), [0.2, 0.3, 0.5]), "a share of a class is not that of its counts"),
    (cell("score", 0, np.nan), "score is not finite"),
    (cell("impurity", 0, -1.0), "an impurity is negative"),
    (cell("impurity", 0, np.nan), "impurity is not finite"),
]


BAGS = ("fitted", "bagging_", "bagging")


def member(name: str, make: Callable[[NDArray[Any]], NDArray[Any]]) -> Change:
    return array(f"fitted/{name}.npy", make)


def no_sizes(found: Parts) -> None:
    del found[1]["fitted/bagging_.sizes.npy"]


FORESTS: list[tuple[str, Change, str]] = [
    ("forest", header("fitted", "more_", to=1), "a RandomForestClassifier keeps no 'more_' of its fit"),
    ("regressor", header("fitted", "seed_", to=1), "a DecisionTreeRegressor keeps no 'seed_' of its fit"),
    ("forest", drop("fitted", "seed_"), "a RandomForestClassifier needs seed_, and the file has none"),
    ("forest", several(drop("fitted", "bagging_"), no_sizes), "needs bagging_, and the file has none"),
    ("forest", header("fitted", "_grown_by", to=1), "what the trees were grown by is 1, which is no dict"),
    ("forest", header("fitted", "pruned_by_", to=1), "what the trees were pruned by is 1, which is no str"),
    ("forest", header("fitted", "_target_name", to=[]), "the name of the target is [], which is no str"),
    ("regressor", header("fitted", "_root_key", to=True), "the key of the root is True, which is no int"),
    ("regressor", header("fitted", "_root_key", to=-1), "the key of the root is -1, and keys are 0 to"),
    ("forest", header("fitted", "seed_", to="x"), "the seed is 'x', which is no int"),
    ("forest", header("fitted", "seed_", to=-1), "the seed is -1, and seeds are 0 to 4294967295"),
    ("forest", header("fitted", "n_rows_", to=7), "the bags are of other rows than 7"),
    (
        "forest",
        several(header("fitted", "bagging_", to=None), no_sizes),
        "a tree has other rows than the first, and the file has no bags",
    ),
    ("forest", several(header("fitted", "bagging_", to=3), no_sizes), "bagging_ is 3, which is no Bagging"),
    ("extra forest", header("fitted", "n_rows_", to=119), "the fit had 119 rows, and a tree has more"),
    ("forest", member("bagging_.sizes", lambda a: a - 1), "a tree has other draws than 119"),
    ("forest", member("bagging_.sizes", lambda a: a * 0), "a bag has [0] draws"),
    ("forest", member("bagging_.sizes", lambda a: np.stack([a, a])), "the draws of a bag are no list of numbers"),
    ("forest", member("bagging_.sizes", lambda a: np.append(a, a)), "drawn from 2 strata, and the rows have one"),
    ("forest", header(*BAGS, "replace", to=1), "whether rows are drawn again is 1, which is no bool"),
    ("forest", header(*BAGS, "labels", to=[0]), "rows are drawn from strata that are not there"),
    ("forest", header(*BAGS, "more", to=0), "the fields of bagging_ are not those of this format: unknown 'more'"),
    ("forest", header(*BAGS, "kept", to=[1, 2]), "the rows that bags draw from are no list of numbers"),
    ("forest", several(header(*BAGS, "n_rows", to=9), header("fitted", "n_rows_", to=9)), "and a tree has more"),
    ("forest of means", member("bagging_.kept", lambda a: a[::-1].copy()), "bags draw from rows that are not there"),
    ("forest of means", member("bagging_.kept", lambda a: a + 1), "bags draw from rows that are not there"),
    ("forest of means", member("bagging_.weight", lambda a: a[1:]), "a row is drawn with a probability that is none"),
    ("forest of means", member("bagging_.weight", lambda a: a * 0), "a row is drawn with a probability that is none"),
    ("forest of means", member("bagging_.weight", lambda a: a * np.nan), "drawn with a probability that is none"),
    ("forest of means", member("oob_prediction_", lambda a: a[1:]), "oob_prediction_ has another number of rows"),
    (
        "forest of means",
        header("fitted", "oob_prediction_", "member", to="fitted/seed_.npy"),
        "oob_prediction_ is listed in 'fitted/seed_.npy', not in fitted/oob_prediction_.npy",
    ),
    ("forest of means", header("fitted", "oob_prediction_", "dtype", to="|u1"), "does not fit its type |u1"),
    ("forest", cell("roots", 1, 0), "the roots do not ascend"),
    ("forest", cell("roots", 1, 2**31 - 1), "the roots do not ascend"),
    ("forest", array("roots", lambda a: a[:0]), "there are no roots"),
    ("forest", array("roots", lambda a: a[:-1]), "the children are not all nodes but the roots"),
    ("forest", cell("roots", 1, 3), "children are not in breadth-first order"),
]

OTHERS: list[tuple[str, Change, str]] = [
    ("regressor", header("classes", to=[["a"]]), "missing 'list_of_classes'"),
    ("regressor", header("layout", "kind", to="counts"), "its estimator and its layout differ"),
    ("regressor", header("layout", "sizes", to=[2]), "its layout has classes and sums"),
    ("regressor", cell("value", (0, 0), 1e9), "the mean of a node is beyond those of its children"),
    ("regressor", cell("value", (-1, 0), np.nan), "value is not finite"),
    ("regressor", cell("stats", (-1, 0), -5), "a count is negative"),
    ("regressor", cell("stats", (-1, 1), 7), "the stats of a node are not the sum of its children's"),
    ("declared means", lambda found: empty_value(found), "a node without rows has not the value of its parent"),
    (
        "class outputs",
        array("stats", lambda a: np.ascontiguousarray(a[:, [0, 1, 2, 4, 4]])),
        "the weights of a node differ by output",
    ),
    ("class outputs", header("list_of_classes", to=False), "its outputs have one list of classes"),
    ("weights", array("stats", lambda a: a * [1, 1, 1, 0]), "a node has rows without weight, or weight without rows"),
    ("weights", array("stats", lambda a: a * [1, 1, 1, 2**50]), "a node has more rows than units of weight"),
    ("missing alone", cell("met_missing", 0, 0), "a threshold is infinite where the test does not ask"),
    ("missing alone", cell("missing", 0, 0), "a threshold is infinite where the test does not ask"),
    ("missing alone", cell("unseen", 0, 1), "unseen is not the child of larger weight"),
    ("missing alone", cell("low", 0, 0.5), "a test does not fit the kind of its column"),
    ("clipped", header("parameters", "monotonic_cst", to=None), "a share of a class is not that of its counts"),
    ("clipped", cell("value", (0, slice(None)), [0.25, 0.75]), "the share of a class in the root is not that"),
    ("clipped", cell("value", (-1, 0), 0.123), "the shares of two classes do not add up to 1"),
    ("dates", array("classes/0.npy", lambda a: a[::-1]), "does not hold distinct labels in order"),
    ("dates", array("classes/0.npy", lambda a: np.array(["2020", "NaT"], a.dtype)), "does not hold distinct labels"),
    ("floats", array("classes/0.npy", lambda a: np.array([1.0, np.nan])), "does not hold distinct labels in order"),
    ("integers", array("classes/0.npy", lambda a: a[:, None]), "is no list of labels"),
    ("integers", array("classes/0.npy", lambda a: np.array([3, 3])), "does not hold distinct labels in order"),
    ("integers", array("classes/0.npy", lambda a: np.array([3, 4, 5])), "its classes do not fit its layout"),
    ("booleans", array("classes/0.npy", lambda a: np.array([0, 2], np.uint8).view(bool)), "neither true nor false"),
    (
        "texts",
        array("classes/0.npy", lambda a: np.array([1, 0x110000], np.uint32).view("<U1")),
        "characters that there are none of",
    ),
]

CASES = [("penguins", change, message) for change, message in HEADER + ARRAYS] + FORESTS + OTHERS


def empty_value(found: Parts) -> None:
    weight = found[1]["forest/stats.npy"][:, 0]
    found[1]["forest/value.npy"][np.flatnonzero(weight == 0)[0]] += 0.5


@pytest.mark.parametrize(("name", "change", "message"), CASES, ids=[f"{name}: {text}" for name, _, text in CASES])
def test_a_wrong_file_is_refused(
    name: str, change: Change, message: str, files: Callable[[str], Path], tmp_path: Path
) -> None:
    found = parts(files(name))
    change(found)
    write(tmp_path / "wrong", *found, repair="fingerprint" not in message)
    for mapped in (False, True):
        with pytest.raises(ValueError, match="wrong is no model file that this version reads: ") as caught:
            load(tmp_path / "wrong", mmap=mapped)
        assert message in str(caught.value)


def test_sums_that_only_agree_modulo_two_to_the_64th(files: Callable[[str], Path], tmp_path: Path) -> None:
    """Counts of children that overflow: nothing may take the wrapped sum for the sum."""
    found = parts(files("regressor"))
    stats, first = found[1]["forest/stats.npy"], found[1]["forest/first_child.npy"]
    stats[:, 1] = 0
    chain = [int(first[0])]
    for node in range(len(stats) - 1, 0, -1):
        stats[found[1]["forest/parent.npy"][node], 1] += stats[node, 1]
    stats[chain[0], 1] += 2**62 + 2**61
    stats[chain[0] + 1, 1] += 2**62 + 2**61
    below = first[chain[0]]
    while below > 0:
        stats[below, 1] += 2**62 + 2**61
        below = first[below]
    below = first[chain[0] + 1]
    while below > 0:
        stats[below, 1] += 2**62 + 2**61
        below = first[below]
    stats[0, 1] = -(2**62)  # the wrapped sum
    write(tmp_path / "wrong", *found)
    with pytest.raises(ValueError, match="the stats of the children of a node overflow"):
        load(tmp_path / "wrong")


@pytest.mark.parametrize("name", MODELS)
def test_the_wrong_files_are_wrong_in_one_place_only(name: str, files: Callable[[str], Path], tmp_path: Path) -> None:
    write(tmp_path / "right", *parts(files(name)))
    for mapped in (False, True):
        same_model(load(files(name)), load(tmp_path / "right", mmap=mapped), made(name)[1])


def test_a_forest_in_the_file_of_a_tree_is_refused(files: Callable[[str], Path], tmp_path: Path) -> None:
    head, arrays = parts(files("forest"))
    own = gputree.DecisionTreeClassifier().get_params()
    head["parameters"] = {name: head["parameters"].get(name, own[name]) for name in own}
    write(
        tmp_path / "wrong",
        {**head, "estimator": "DecisionTreeClassifier", "fitted": {}},
        {name: values for name, values in arrays.items() if not name.startswith("fitted/")},
    )
    with pytest.raises(ValueError, match="a DecisionTreeClassifier has one tree, and the file has 20"):
        load(tmp_path / "wrong")


COMPACT: list[tuple[Change, str]] = [
    (array("packed/leaf.npy", lambda a: a[:-1]), "nodes, and leaf does not have as many bits"),
    (array("packed/leaf.npy", lambda a: a.astype(bool)), "nodes, and leaf does not have as many bits"),
    (header("nodes", to=0), "it has 0 nodes, and leaf does not have as many bits"),
    (header("nodes", to=1.0), "'nodes' is 1.0, which is no int"),
    (drop("nodes"), "it has the unknown member 'packed/"),
    (array("packed/leaf.npy", lambda a: ~a), "n_children has shape (10,), and its nodes ask for (14,)"),
    (lambda found: found[1].pop("packed/leaf.npy"), "it has no member packed/leaf.npy"),
    (lambda found: found[1].pop("packed/counts.npy"), "there is no array 'counts', and it does not follow"),
    (lambda found: found[1].pop("packed/lookup_branch.npy"), "there is no array 'lookup_branch'"),
    (lambda found: found[1].update({"packed/roots.npy": np.zeros(1, np.uint8)}), "roots has shape (1,)"),
    (lambda found: found[1].update({"packed/x.npy": np.zeros(1)}), "a forest has no array 'x'"),
    (lambda found: found[1].update({"forest/low.npy": np.zeros(1)}), "it has the unknown member 'forest/low.npy'"),
    (array("packed/low.npy", lambda a: a[:-1]), "low has shape"),
    (array("packed/low.npy", lambda a: a.astype(np.int64)), "low has type int64, which is no shorter float64"),
    (array("packed/feature.npy", lambda a: a.astype(np.int64) + 2**40), "feature holds numbers beyond int32"),
    (array("packed/n_children.npy", lambda a: a * 0), "a test has fewer than two children"),
    (array("packed/lookup_count.npy", lambda a: a + 1), "the cells of lookups are not as many as their nodes say"),
    (array("packed/lookup_branch.npy", lambda a: a + 9), "a lookup names a branch that is not there"),
    (array("packed/feature.npy", lambda a: a[::-1].copy()), "its fingerprint is not that of its arrays"),
]


@pytest.mark.parametrize(("change", "message"), COMPACT, ids=[message for _, message in COMPACT])
def test_a_wrong_compact_file_is_refused(change: Change, message: str, tmp_path: Path) -> None:
    save(mixed(), tmp_path / "model")
    found = parts(tmp_path / "model")
    change(found)
    write(tmp_path / "wrong", *found)
    for mapped in (False, True):
        with pytest.raises(ValueError, match="wrong is no model file that this version reads: ") as caught:
            load(tmp_path / "wrong", mmap=mapped)
        assert message in str(caught.value)


def cycles(found: Parts) -> list[Change]:
    """A child that is its own parent, two nodes that are each other's, the root below a leaf."""
    n = len(found[1]["forest/kind.npy"])
    return [
        several(cell("first_child", 2, 2), cell("parent", 2, 2)),
        several(cell("first_child", 3, 1), cell("parent", 1, 3), cell("parent", 2, 3)),
        several(cell("first_child", 0, 3), cell("first_child", 1, 1)),
        several(*(cell("first_child", i, 0) for i in range(n))),
        array("first_child", lambda a: a[::-1].copy()),
        array("parent", lambda a: np.roll(a, 1)),
        several(cell("parent", 0, n - 1), cell("first_child", n - 1, 0), cell("kind", n - 1, 1)),
    ]


@pytest.mark.parametrize("number", range(7))
def test_cycles_are_refused(number: int, files: Callable[[str], Path], tmp_path: Path) -> None:
    found = parts(files("penguins"))
    cycles(found)[number](found)
    write(tmp_path / "wrong", *found)
    with pytest.raises(
        ValueError, match=r"not in breadth-first order|parents differ|fewer than two children|a leaf has first_child"
    ):
        load(tmp_path / "wrong")


def test_arrays_that_took_each_others_place(files: Callable[[str], Path], tmp_path: Path) -> None:
    """With a fingerprint that fits: the tree itself tells."""
    found = parts(files("penguins"))
    names = list(found[1])
    for a in names:
        for b in names:
            if a < b and found[1][a].dtype == found[1][b].dtype and found[1][a].shape == found[1][b].shape:
                if np.array_equal(found[1][a], found[1][b]):
                    continue
                write(tmp_path / "wrong", found[0], found[1] | {a: found[1][b], b: found[1][a]})
                with pytest.raises(ValueError, match="is no model file"):
                    load(tmp_path / "wrong")


def test_a_file_may_lack_a_field_of_a_rule_that_has_a_default() -> None:
    """As those that were written before it was there; others are asked for."""
    whole = encode(Validation([[1]], [1]), "stopping")
    rule = copy.deepcopy(whole)
    del rule["fields"]["sample_weight"]
    assert encode(decode(rule), "stopping") == whole
    del rule["fields"]["y"]
    with pytest.raises(ValueError, match="are not the fields of the rule"):
        decode(rule)


@pytest.mark.parametrize(
    "value",
    [
        {"array": ["a", "a"], "dtype": "<U500000000"},
        {"array": [["a"], ["bb"]], "dtype": "<U300000000"},
        {"dict": [[{"tuple": [{"array": [1], "dtype": "<i8"}]}, 1]]},
    ],
    ids=str,
)
def test_values_cost_no_more_than_the_file_holds(value: Any) -> None:
    """An array of text is as wide as its longest text; what cannot be a key of a dict is refused in words."""
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"no value of this format|a key of a dict is a list"):
        decode(value)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()
