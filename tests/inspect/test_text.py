"""The text of a tree: scikit-learn's where it can say it, and what it cannot."""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.tree
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.tree._tree import NODE_DTYPE, Tree

import gputree
from gputree.core.criteria import TargetKind
from gputree.core.forest import Forest, Test
from gputree.core.schema import Feature, Kind, Schema
from gputree.core.target import Layout
from gputree.inspect.text import Style, export_text, fitting_decimals, heights, tree_text
from gputree.inspect.words import make_words
from tests.inspect.samples import counties, holes, odd, penguins, sample

N_FEATURES = 5


def in_sklearn(model: Any, X: NDArray[Any], y: NDArray[Any]) -> Any:
    """scikit-learn's estimator with the tree of ours, so that tied features do not matter."""
    own = model.tree_
    nodes = np.zeros(own.node_count, NODE_DTYPE)
    nodes["left_child"], nodes["right_child"] = own.children_left, own.children_right
    for name in ("feature", "threshold", "impurity", "n_node_samples", "weighted_n_node_samples"):
        nodes[name] = getattr(own, name)
    tree = Tree(own.n_features, own.n_classes, own.n_outputs)
    tree.__setstate__(
        {"max_depth": own.max_depth, "node_count": own.node_count, "nodes": nodes, "values": own.value.copy()}
    )
    theirs = getattr(sklearn.tree, type(model).__name__)(max_depth=1).fit(X, y)
    theirs.tree_ = tree
    return theirs


def table(n: int = 300) -> tuple[NDArray[np.float32], np.random.Generator]:
    rng = np.random.default_rng(7)
    return rng.normal(size=(n, N_FEATURES)).astype(np.float32), rng


def target(kind: str, X: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    noise = rng.normal(size=X.shape[0])
    if kind == "words":
        return np.array(["ash", "beech", "elm"])[np.digitize(X[:, 0] + noise, [-0.5, 0.5])]
    if kind == "numbers":
        return (X[:, 1] + noise > 0).astype(np.int64) * 10
    if kind == "outputs":
        return np.stack([X[:, 0] + noise, 1000 * X[:, 2]], axis=1)
    return X[:, 0] * 100 + noise


CASES = [
    ("DecisionTreeClassifier", "words"),
    ("DecisionTreeClassifier", "numbers"),
    ("ExtraTreeClassifier", "words"),
    ("DecisionTreeRegressor", "reals"),
    ("DecisionTreeRegressor", "outputs"),
    ("ExtraTreeRegressor", "reals"),
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"show_weights": True},
    {"max_depth": 0},
    {"max_depth": 3, "spacing": 1, "decimals": 0},
    {"max_depth": 50, "decimals": 7, "spacing": 5, "show_weights": True},
    {"feature_names": [f"width {i}" for i in range(N_FEATURES)]},
    {"feature_names": np.array(list("abcde")), "class_names": True, "max_depth": 2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "default")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_text_is_that_of_sklearn(name: str, kind: str, weighted: bool, options: dict[str, Any]) -> None:
    X, rng = table()
    y = target(kind, X, rng)
    weight = rng.integers(1, 9, X.shape[0]) / 4 if weighted else None
    model = getattr(gputree, name)().fit(X, y, weight)
    assert model.get_depth() > 4
    if options.get("class_names"):
        options = {**options, "class_names": [f"<{i}>" for i in range(np.unique(y).size)]}
        if "Regressor" in name:
            options = {**options, "class_names": ["left unread"]}
    assert export_text(model, **options) == sklearn.tree.export_text(in_sklearn(model, X, y), **options)


def test_two_fits_give_the_same_text() -> None:
    """No help from a rebuilt tree: the best cut of a large node of noise has no tie."""
    X, rng = table(2000)
    y = target("reals", X, rng)
    trees = [m.DecisionTreeRegressor(max_depth=5, min_samples_leaf=20).fit(X, y) for m in (gputree, sklearn.tree)]
    assert export_text(trees[0]) == sklearn.tree.export_text(trees[1])


def test_a_root_alone() -> None:
    X, _ = table(10)
    for module in (gputree, sklearn.tree):
        assert module.export_text(module.DecisionTreeRegressor().fit(X, np.full(10, 3))) == "|--- value: [3.00]\n"
    # scikit-learn prints the number of the class here, 0
    assert export_text(gputree.DecisionTreeClassifier().fit(X, ["x"] * 10)) == "|--- class: x\n"


def test_several_class_outputs_are_listed() -> None:
    X = np.arange(4.0).reshape(-1, 1)
    y = np.array([["a", "n"], ["a", "n"], ["b", "n"], ["b", "y"]])
    model = gputree.DecisionTreeClassifier(max_depth=1).fit(X, y)
    assert export_text(model, show_weights=True) == (
        "|--- feature_0 <= 1.50\n"
        "|   |--- weights: [[2.00, 0.00], [2.00, 0.00]] class: [a, n]\n"
        "|--- feature_0 >  1.50\n"
        "|   |--- weights: [[0.00, 2.00], [1.00, 1.00]] class: [b, n]\n"
    )
    with pytest.raises(ValueError, match="class_names name the classes of one output, and this tree has 2"):
        export_text(model, class_names=["a", "b"])


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "colour": ["red", "red", "blue", "blue", "red", "red", "red", None, None],
            "size": [1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0],
        }
    )


MULTIWAY = """\
|--- colour = blue
|   |--- value: [5.00]
|--- colour = red (or other)
|   |--- size <= 2.50
|   |   |--- value: [1.00]
|   |--- size >  2.50 (or missing)
|   |   |--- value: [2.00]
|--- colour is missing
|   |--- value: [9.00]
"""
SUBSETS = """\
|--- colour = red (or other)
|   |--- size <= 2.50
|   |   |--- value: [1.00]
|   |--- size >  2.50 (or missing)
|   |   |--- value: [2.00]
|--- colour = blue (or missing)
|   |--- colour is known (or other)
|   |   |--- value: [5.00]
|   |--- colour is missing
|   |   |--- value: [9.00]
"""


@pytest.mark.parametrize(("split", "text"), [("multiway", MULTIWAY), ("binary", SUBSETS)])
def test_categories_and_a_branch_of_missing_values(split: str, text: str) -> None:
    model = gputree.DecisionTreeRegressor(categorical_split=split).fit(frame(), [1, 1, 5, 5, 2, 2, 2, 9, 9])
    assert export_text(model) == text
    bare = export_text(model, show_missing=False)
    assert bare == re.sub(r" \(or .*\)", "", export_text(model, show_missing=True))
    assert bare.count("colour is missing") == 1


def test_what_says_where_missing_values_go() -> None:
    """By default a tree of numbers says so if it met any, wherever they went, and then every test does."""
    X = np.array([[1.0, 0], [2.0, 0], [3.0, 1], [4.0, 1], [5.0, 2], [6.0, 3]])
    y = [0, 0, 1, 1, 1, 2]
    assert "missing" not in export_text(gputree.DecisionTreeClassifier().fit(X, y))
    silent = export_text(gputree.DecisionTreeClassifier().fit(X, y), show_missing=True)
    assert silent.count("(or missing)") * 2 == silent.count("feature")
    X[4, 0] = np.nan  # goes where most rows go, so that its branch alone proves nothing
    model = gputree.DecisionTreeClassifier().fit(X, y)
    text = export_text(model)
    assert model.forest_.met_missing.any()
    assert text.count("(or missing)") * 2 == text.count("feature")
    assert "missing" not in export_text(model, show_missing=False)


@pytest.mark.parametrize("value", ["yes", None, 1, ["auto"]])
def test_show_missing_is_one_of_three(value: Any) -> None:
    with pytest.raises(ValueError, match=r"show_missing=.* must be True, False or 'auto'"):
        export_text(sample("iris"), show_missing=value)


def test_booleans_read_as_such() -> None:
    X = pd.DataFrame({"smoker": [True, False, True, False, False]})
    for split in ("binary", "multiway"):
        text = export_text(gputree.DecisionTreeRegressor(categorical_split=split).fit(X, [2, 1, 2, 1, 1]))
        assert [line for line in text.splitlines() if "smoker" in line] == [
            "|--- smoker = False (or missing)",
            "|--- smoker = True",
        ]


def test_names_of_a_frame_are_used() -> None:
    X = frame()[["size"]]
    text = export_text(gputree.DecisionTreeRegressor(max_depth=1).fit(X, X["size"] > 2))
    assert text.startswith("|--- size <= 2.50\n")


def test_small_numbers_have_digits() -> None:
    """Of a feature, or of what is predicted: not where others of its kind show what size they are."""
    X = np.array([[1e-9, -3.0], [1.5e-9, 0.001], [4e-9, 0.002], [5e-9, 2.0]])
    text = export_text(gputree.DecisionTreeRegressor(splitter="random", max_features=1).fit(X, [1e-4, 0, -3e-4, 0]))
    values = re.findall(r"feature_0 <= (.*)", text)
    assert values
    assert all(re.fullmatch(r"[\d.]+e-09", value) for value in values)
    assert re.findall(r"value: \[(.*)\]", text).count("0") == 2
    assert "value: [-0.0003]" in text
    model = gputree.DecisionTreeClassifier().fit(X[:, 1:], [0, 1, 2, 3])
    assert export_text(model).count("<= 0.00\n") == 1
    assert export_text(model, decimals=3).count("<= 0.002\n") == 1


def test_all_categories_are_shown_when_asked_for() -> None:
    X = np.array([[f"kind {i:02d}"] for i in range(40)], object)
    model = gputree.DecisionTreeClassifier(max_depth=1, categorical_features=[0]).fit(X, np.arange(40) % 2)
    shown = [set(re.findall(r"kind \d\d", export_text(model, width=width))) for width in (80, 200, None)]
    assert len(shown[0]) < len(shown[1]) < len(shown[2]) == 40
    with pytest.raises(ValueError, match="width=0 must be a whole number of at least 1"):
        export_text(model, width=0)


def test_long_names_stay_different() -> None:
    """Though a picture cuts them to some characters."""
    X = pd.DataFrame({f"{'a' * 30}{c}{'b' * 30}": [f"{'m' * 50}{c}{i}{'n' * 50}" for i in range(4)] for c in "xy"})
    model = gputree.DecisionTreeClassifier(max_depth=2).fit(X, [0, 1, 0, 1])
    words = make_words(model, X.columns, lambda value, feature: "", longest=20)
    assert len(set(words.names)) == 2
    assert len({category for branch in words.branches(0) for category in branch.values}) == 4


def test_a_test_that_asks_for_missing_values() -> None:
    X = np.array([[1.0], [2.0], [np.nan], [np.nan]])
    model = gputree.DecisionTreeClassifier().fit(X, [0, 0, 1, 1])
    assert export_text(model) == (
        "|--- feature_0 is known\n|   |--- class: 0\n|--- feature_0 is missing\n|   |--- class: 1\n"
    )


@pytest.mark.parametrize(("missing", "line"), [(0, "<= 2.50 (or missing)"), (1, ">  2.50 (or missing)")])
def test_missing_values_that_share_a_branch(missing: int, line: str) -> None:
    # the smaller child takes them, which proves that there were some
    X = np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [np.nan]])
    if missing:
        X[:7] = 5 - X[:7]  # 4 .. -2: the larger child is the left one
        y = [1, 1, 0, 0, 0, 0, 0, 1]
    else:
        y = [0, 0, 1, 1, 1, 1, 1, 0]
    text = export_text(gputree.DecisionTreeClassifier().fit(X, y))
    assert text.count("missing") == 1
    assert line in text


def test_branches_without_rows_are_one_line() -> None:
    colours = [f"c{i:02d}" for i in range(40)]
    X = pd.DataFrame({"colour": pd.Categorical(["c00", "c01", "c02", "c02"], categories=colours)})
    model = gputree.DecisionTreeRegressor(categorical_split="multiway").fit(X, [1, 2, 3, 4])
    assert export_text(model).splitlines()[4:] == [
        "|--- colour = c02 (or missing, or other)",
        "|   |--- value: [3.50]",
        "|--- colour in {c03, c04, c05, ... 34 more} (37 categories, no training rows)",
        "|   |--- value: [2.50]",
    ]
    model.fit(X.assign(colour=X["colour"].cat.set_categories(colours[:4])), [1, 2, 3, 4])
    assert export_text(model).splitlines()[-2:] == ["|--- colour = c03 (no training rows)", "|   |--- value: [2.50]"]


def test_lines_of_categories_fit_a_terminal() -> None:
    for name in ("counties_subset", "counties_multiway", "wide"):
        assert max(map(len, export_text(sample(name)).splitlines())) <= 80


def test_categories_that_could_be_misread_are_quoted() -> None:
    X = pd.DataFrame({"word": ["", "a b", "c,d", "e\nf", "... 3 more", "\u202eg"]})
    text = export_text(gputree.DecisionTreeRegressor(categorical_split="multiway").fit(X, [1, 2, 3, 4, 5, 6]))
    assert text.splitlines()[::2] == [
        "|--- word = '' (or missing, or other)",
        "|--- word = '... 3 more'",
        "|--- word = a b",
        "|--- word = 'c,d'",
        "|--- word = 'e\\nf'",
        "|--- word = '\\u202eg'",
    ]


def test_names_stay_on_their_line() -> None:
    X = np.array([[1.0], [2.0]])
    model = gputree.DecisionTreeClassifier().fit(X, ["o\nne", "tw\to"])
    text = export_text(model, feature_names=["a\r\n\x1b[0m\u2028b"])
    assert text.splitlines()[:2] == ["|--- a\\r\\n\\x1b[0m\\u2028b <= 1.50", "|   |--- class: o\\nne"]
    assert len(text.splitlines()) == 4


def made(schema: Schema, **arrays: Any) -> Any:
    """A fitted regression tree with a forest made by hand."""
    parent = np.array(arrays["parent"], np.int32)
    n = parent.size
    children = np.bincount(parent[parent >= 0], minlength=n)
    first = np.where(children > 0, np.searchsorted(parent, np.arange(n)), -1)
    depth = np.zeros(n, np.int32)
    for i in range(1, n):
        depth[i] = depth[parent[i]] + 1
    blank = {"missing": np.zeros(n), "unseen": np.zeros(n), "lookup_code": [], "lookup_branch": []}
    types = dict.fromkeys(blank, np.uint16) | {"met_missing": np.uint8}
    blank["met_missing"] = np.zeros(n)
    rest = {name: np.array(arrays.get(name, blank[name]), types[name]) for name in blank}
    forest = Forest(
        roots=np.zeros(1, np.int32),
        kind=np.where(children > 0, arrays["kind"], Test.LEAF).astype(np.uint8),
        feature=np.where(children > 0, 0, -1).astype(np.int32),
        low=np.zeros(n),
        first_child=first.astype(np.int32),
        n_children=children.astype(np.uint16),
        lookup_ptr=np.array(arrays.get("lookup_ptr", np.zeros(n + 1)), np.int64),
        stats=np.ones((n, 2), np.int64),
        score=np.zeros(n),
        parent=parent,
        depth=depth,
        impurity=np.zeros(n),
        value=np.arange(n, dtype=np.float64).reshape(-1, 1),
        **rest,
    )
    model = gputree.DecisionTreeRegressor()
    model.forest_, model.schema_, model.weight_unit_ = forest, schema, 1.0
    model.layout_ = Layout(TargetKind.CENTRED_SUMS, (1,), (1.0,))
    return model


def test_a_branch_of_many_categories_is_cut_with_a_count() -> None:
    colours = tuple(f"colour {i}" for i in range(45))
    model = made(
        Schema((Feature("paint", Kind.CATEGORICAL, colours),)),
        parent=[-1, 0, 0],
        kind=Test.LOOKUP,
        lookup_ptr=[0, 45, 45, 45],
        lookup_code=np.arange(1, 46),
        lookup_branch=[0] * 42 + [1] * 3,
        missing=[1, 0, 0],
    )
    lines = export_text(model).splitlines()
    assert lines[0] == "|--- paint in {colour 0, colour 1, colour 2, colour 3, ... 38 more} (or other)"
    assert lines[2] == "|--- paint in {colour 42, colour 43, colour 44} (or missing)"
    assert len(lines) == 4
    whole = tree_text(model, None, None, Style(width=None)).splitlines()
    assert whole[0] == f"|--- paint in {{{', '.join(colours[:42])}}} (or other)"


def test_a_branch_that_no_category_takes() -> None:
    """Forests made elsewhere may have one for all that is not listed, and for missing values besides."""
    schema = Schema((Feature("paint", Kind.CATEGORICAL, ("red", "blue")),))
    arrays = {"parent": [-1, 0, 0], "kind": Test.LOOKUP, "lookup_ptr": [0, 2, 2, 2]}
    cells = {"lookup_code": [1, 2], "lookup_branch": [0, 0]}
    texts = [export_text(made(schema, **arrays, **cells, unseen=[1, 0, 0], missing=[m, 0, 0])) for m in (0, 1)]
    assert [text.splitlines()[::2] for text in texts] == [
        ["|--- paint in {red, blue} (or missing)", "|--- paint is any other"],
        ["|--- paint in {red, blue}", "|--- paint is missing (or other)"],
    ]


def chain(depth: int) -> Any:
    """A tree whose left children are leaves and whose right children go on."""
    parent = np.concatenate([[-1], np.repeat(np.arange(0, 2 * depth, 2), 2)])
    # the first of two children is the leaf, so the node that goes on is 2, 4, 6 ...
    return made(Schema((Feature("x"),)), parent=parent, kind=Test.THRESHOLD, missing=np.ones(parent.size))


def test_a_chain_100_000_deep() -> None:
    model = chain(100_000)
    lines = export_text(model).splitlines()
    assert lines[-1] == "|   " * 11 + "|--- truncated branch of depth 99990"
    assert len(lines) == 11 * 3 + 1
    assert heights(model.forest_)[0] == 100_000


def test_no_limit_of_depth() -> None:
    assert export_text(chain(30), max_depth=None, spacing=1).count("value") == 31


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_depth": -1}, "max_depth=-1 must be a whole number of at least 0"),
        ({"spacing": 0}, "spacing=0 must be a whole number of at least 1"),
        ({"decimals": 1.5}, "decimals=1.5 must be"),
        ({"spacing": None}, "spacing=None must be"),
        ({"feature_names": ["a"]}, "feature_names must contain 5 elements, got 1"),
        ({"feature_names": "abcde"}, "feature_names='abcde' must be a list of 5 names"),
        ({"class_names": "ab"}, "class_names='ab' must be a list of names"),
        ({"class_names": True}, "class_names=True must be a list of names"),
        ({"class_names": ["a"]}, "class_names must contain 2 elements, one for each class, got 1"),
    ],
)
def test_a_wrong_parameter_is_refused(options: dict[str, Any], message: str) -> None:
    X, rng = table(30)
    model = gputree.DecisionTreeClassifier().fit(X, target("numbers", X, rng))
    with pytest.raises(ValueError, match=message):
        export_text(model, **options)


def test_what_is_not_fitted_is_refused() -> None:
    with pytest.raises(NotFittedError):
        export_text(gputree.DecisionTreeClassifier())


def test_penguins_say_where_missing_values_go() -> None:
    text = export_text(sample("penguins_multiway"))
    numeric = [line for line in text.splitlines() if "<=" in line or "> " in line]
    assert sum("(or missing)" in line for line in numeric) * 2 == len(numeric)
    assert "island" in text


@pytest.mark.parametrize(
    ("thresholds", "decimals"),
    [
        ([206.5], 2),
        ([206.5, 0.0], 2),
        ([2.5, -0.0038], 5),  # -0.00380
        ([0.0999], 4),  # 0.0999
        ([0.1], 3),
        ([-1e-15], 10),
        ([], 2),
    ],
)
def test_decimals_that_show_three_digits_of_every_threshold(thresholds: list[float], decimals: int) -> None:
    values = sorted(thresholds)
    X = np.array([x for t in values for x in (np.nextafter(t, -np.inf), np.nextafter(t, np.inf))] or [1.0])
    model = gputree.DecisionTreeClassifier().fit(X.reshape(-1, 1), np.arange(X.size) // 2 + np.arange(X.size) % 2)
    assert fitting_decimals(model) == decimals


def test_decimals_count_the_tests_that_are_shown() -> None:
    X = np.array([[0.0], [0.0002], [5.0], [6.0], [7.0], [8.0]])
    model = gputree.DecisionTreeClassifier().fit(X, [0, 1, 2, 2, 2, 2])
    assert [fitting_decimals(model, depth) for depth in (0, 1, None)] == [2, 6, 6]


def test_decimals_of_a_small_prediction() -> None:
    model = gputree.DecisionTreeRegressor().fit([[1.0], [2.0]], [0.00123, 0.0])
    assert fitting_decimals(model) == 5
    assert fitting_decimals(gputree.DecisionTreeRegressor().fit([[1.0], [2.0]], [0.0, 0.0])) == 2


def test_a_long_category_loses_its_middle_where_that_is_asked_for() -> None:
    X = pd.DataFrame({"word": ["a" * 99, "b" * 99 + ",", ""]})
    model = gputree.DecisionTreeRegressor(categorical_split="multiway").fit(X, [1, 2, 3])
    text = tree_text(model, None, None, Style(longest=11))
    assert [line for line in text.splitlines() if "word" in line] == [
        "|--- word = '' (or missing, or other)",
        "|--- word = aaaa...aaaa",
        "|--- word = 'bbbb...bbb,'",
    ]
    assert "a" * 99 in export_text(model)


# Rules read back and followed, row by row


def read_rules(text: str, names: list[str]) -> list[tuple[int, str, str]]:
    """Depth, feature and test of every line; a leaf has no feature."""
    found = []
    for line in text.splitlines():
        depth, body = line.index("|--- ") // 4, line[line.index("|--- ") + 5 :]
        name = max((n for n in names if body.startswith(f"{n} ")), key=len, default="")
        found.append((depth, name, body[len(name) + 1 :] if name else body))
    return found


def words_in(text: str) -> list[str]:
    """The categories of a list, some of them quoted."""
    found = []
    while text:
        quoted = re.match(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(, |$)""", text)
        plain = quoted or re.match(r"(.*?)(, |$)", text)
        assert plain is not None
        found.append(ast.literal_eval(plain[1]) if quoted else plain[1])
        text = text[plain.end() :]
    return found


def takes(test: str, value: Any, listed: set[str]) -> bool:
    """Whether a value takes a branch; ``listed`` are the categories of all branches of the test."""
    test, _, marks = re.fullmatch(r"(.*?)( \(([^()]*(?:or missing|or other|no training rows))\))?", test).groups()
    if value is None:
        return test == "is missing" or "or missing" in (marks or "")
    if test in ("is known", "is missing"):
        return test == "is known"
    if test[0] in "<>":
        return value <= float(test[2:]) if test[0] == "<" else value > float(test[2:])
    own = words_in(test[4:-1] if test.startswith("in {") else test[2:])
    return value in own or (value not in listed and "or other" in (marks or ""))


def followed(rules: list[tuple[int, str, str]], row: dict[str, Any]) -> str:
    """The leaf of a row: exactly one branch of every test takes it."""
    start, depth = 0, 0
    while rules[start][1]:
        end = next((i for i in range(start, len(rules)) if rules[i][0] < depth), len(rules))
        own = [i for i in range(start, end) if rules[i][0] == depth]
        tests = [rules[i][2].split(" (")[0] for i in own]
        listed = {w for t in tests for w in words_in(t[4:-1] if t.startswith("in {") else t[2:])}
        taken = [i for i in own if takes(rules[i][2], row[rules[i][1]], listed)]
        assert len(taken) == 1, (row, [rules[i] for i in own])
        start, depth = taken[0] + 1, depth + 1
    return rules[start][2]


def strange(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The rows with missing cells and categories that no one has seen strewn in."""
    frame = frame.copy()
    for name in frame.columns:
        text = isinstance(frame[name].dtype, pd.CategoricalDtype | pd.StringDtype) or frame[name].dtype == object
        column = frame[name].astype(object)
        if text:
            column[rng.random(len(frame)) < 0.2] = "never seen"
        column[rng.random(len(frame)) < 0.2] = None
        frame[name] = column if text else column.astype(frame[name].dtype)
    return frame


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("penguins_multiway", lambda: penguins("species")),
        ("penguins_subset", lambda: penguins("body_mass_g")),
        ("counties_multiway", counties),
        ("counties_subset", counties),
        ("known_or_missing", holes),
        ("odd", odd),
    ],
)
def test_rules_that_are_read_back_give_the_predictions(name: str, rows: Any) -> None:
    """Known, missing and unknown values alike: the text says for each of them where it goes."""
    model, (X, _) = sample(name), rows()
    rules = read_rules(tree_text(model, None, None, Style(None, decimals=12, width=None)), list(X.columns))
    X = strange(X, np.random.default_rng(11)).head(500)
    kinds = set()
    for row, expected in zip(X.to_dict("records"), model.predict(X).tolist(), strict=True):
        row = {k: None if pd.isna(v) else v if isinstance(v, float) else str(v) for k, v in row.items()}
        leaf = followed(rules, row)
        kinds |= {"missing" if v is None else v for v in row.values()} & {"missing", "never seen"}
        assert leaf == (f"class: {expected}" if isinstance(expected, str) else f"value: [{expected:.12f}]")
    assert "missing" in kinds


@pytest.mark.parametrize(
    "show", [gputree.export_text, gputree.plot_tree, gputree.export_graphviz, gputree.tree_html, gputree.export_dict]
)
def test_other_trees_are_refused_with_the_remedy(show: Any) -> None:
    theirs = sklearn.tree.DecisionTreeClassifier().fit([[0], [1]], [0, 1])
    with pytest.raises(TypeError, match=r"no tree of gputree; .* gputree\.from_sklearn"):
        show(theirs)
