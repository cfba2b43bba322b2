"""The text of rules: what is written is read again, and what cannot be read is named with its place."""

from __future__ import annotations

import math
import string
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gputree import RuleSet
from gputree.core.conditions import Condition, Interval, Subset
from gputree.core.rule_words import conditions_text, literal, value_of, wrapped
from gputree.core.rules import Rule
from gputree.core.schema import Feature, Kind

BAD = ["a,b", 'say "no"', "x <= 3", " ", "", "a  b", "or", "this or that", "True", "1e5", "inf", "nan", "10-19", "{}"]
BAD += [
    "line\nfeed",
    "tab\t",
    "\u202eright to left",
    "Größe",
    "日本語",
    "💡",
    "\ud800",
    "back\\slash",
    "a]b",
    "#",
    "'",
    "in",
]
PLAIN = st.text(st.sampled_from(string.ascii_lowercase + "_- "), min_size=1, max_size=8)
TEXTS = st.one_of(st.sampled_from(BAD), PLAIN, st.text(max_size=6))
NUMBERS = st.floats(allow_nan=False)
LABELS = st.one_of(TEXTS, st.integers(), NUMBERS, st.booleans())


@st.composite
def sets(draw: st.DrawFn) -> RuleSet:
    """Sets of rules on columns with any names and categories, for classes of any kind or numbers."""
    names = draw(st.lists(TEXTS, min_size=1, max_size=4, unique=True))
    features = []
    for name in names:
        values = draw(st.lists(LABELS, min_size=1, max_size=4, unique=True)) if draw(st.booleans()) else []
        features.append(Feature(name, Kind.CATEGORICAL if values else Kind.NUMERIC, tuple(values)))
    classes = tuple(draw(st.lists(TEXTS, min_size=1, max_size=3, unique=True))) if draw(st.booleans()) else None
    rules = tuple(
        Rule(
            tuple(draw(conditions(f)) for f in draw(st.lists(st.sampled_from(features), unique=True))),
            draw(NUMBERS if classes is None else st.sampled_from(classes)),
            draw(st.none() | st.floats(0, 1e9)),
            draw(st.none() | st.floats(0, 1)),
            draw(shares(classes)),
        )
        for _ in range(draw(st.integers(0, 4)))
    )
    default = Rule(
        (), draw(NUMBERS if classes is None else st.sampled_from(classes)), draw(st.none() | st.floats(0, 9))
    )
    ends = any(label.endswith("\0") for label in classes or ())  # which NumPy's texts lose
    dtype = "" if classes is None else "|O" if ends else f"<U{max(1, *map(len, classes))}"
    weight = draw(st.none() | st.floats(0, 1e300))
    end = draw(st.sampled_from([default, None]))
    return RuleSet(rules, tuple(features), end, classes, dtype, weight, draw(shares(classes)))


def shares(classes: tuple[str, ...] | None) -> st.SearchStrategy[tuple[float, ...]]:
    """Of each class, or none where they are not known."""
    n = len(classes or ())
    parts = st.lists(st.integers(0, 7), min_size=n, max_size=n).filter(any)
    return st.just(()) | parts.map(lambda own: tuple(part / sum(own) for part in own)) if n else st.just(())


def conditions(feature: Feature) -> st.SearchStrategy[Condition]:
    missing = st.booleans()
    if feature.kind == Kind.CATEGORICAL:
        some = st.lists(st.sampled_from(feature.categories), unique=True, min_size=1).map(tuple)
        states = st.sampled_from([Subset(feature.name, others=True), Subset(feature.name, missing=True)])
        return st.builds(Subset, st.just(feature.name), some, st.booleans(), missing) | states
    bounds = st.tuples(NUMBERS, NUMBERS).filter(lambda b: b[0] < b[1] and math.inf not in b)
    states = st.sampled_from([Interval(feature.name), Interval(feature.name, low=math.inf, missing=True)])
    one = bounds.flatmap(
        lambda b: st.sampled_from(
            [Interval(feature.name, *b), Interval(feature.name, b[0]), Interval(feature.name, None, b[1])]
        )
    )
    return states | st.builds(lambda i, m: Interval(i.name, i.low, i.high, m), one, missing)


@settings(max_examples=300, deadline=None)
@given(sets(), st.sampled_from([None, 20, 80]))
def test_a_set_comes_back_from_its_text(found: RuleSet, width: int | None) -> None:
    """Any names, categories, labels and numbers, in one line a rule or broken."""
    again = RuleSet.from_text(found.to_text(width))
    assert again == found
    assert [type(v) for f in again.features for v in f.categories] == [
        type(v) for f in found.features for v in f.categories
    ]
    assert again.to_text() == found.to_text()


@pytest.mark.parametrize("classes", [(False, True), (1, 2.5), (1, "a"), ("b", "aa")])
def test_labels_of_no_given_type_come_back(classes: tuple[Any, ...]) -> None:
    """The type is that of an array of them, in the set as in its text."""
    found = RuleSet((Rule((), classes[0]),), (Feature("x"),), None, classes)
    assert RuleSet.from_text(found.to_text()) == found


@given(LABELS)
@example("1_000")
@example("\u0661")  # a digit to Python
@example(-0.0)
def test_a_value_comes_back_from_its_text_in_its_type(value: Any) -> None:
    (again,) = RuleSet.from_text(f"column a in {{{literal(value)}}}").features[0].categories
    assert (again, type(again)) == (value, type(value))


@pytest.mark.parametrize("text", ["stay in", "10-19", "left_up", "Friends busy", "$$$", "0x10", "Größe", "a.b"])
def test_a_text_that_reads_as_itself_is_not_quoted(text: str) -> None:
    assert literal(text) == text == value_of(text)


def test_the_rule_of_the_chapter_and_its_set_come_back() -> None:
    """Raschka, STAT 479 chapter 6, 6.1.3: one rule, and the union of the rules for a class (4)."""
    text = "(Work=False) and (Outlook=Rainy) and (Friends busy=Yes)"
    (rule,) = RuleSet.from_text(f"if {text} then stay in")
    want = Subset("Work", (False,)), Subset("Outlook", ("Rainy",)), Subset("Friends busy", ("Yes",))
    assert rule == Rule(want, "stay in")
    assert conditions_text(rule.conditions) == text
    union = RuleSet.from_text(f"if (Work=True) then stay in\nif {text} then stay in")
    assert RuleSet.from_text(union.to_text()) == union
    assert [str(r) for r in union] == ["if (Work=True) then stay in", f"if {text} then stay in"]


def test_every_form_of_a_condition() -> None:
    forms = {
        "(x<=3.5)": Interval("x", high=3.5),
        "(x>3.5 or missing)": Interval("x", low=3.5, missing=True),
        "(-1.0<x<=1e-300)": Interval("x", -1.0, 1e-300),
        "(-inf<x<=0.0 or missing)": Interval("x", -math.inf, 0.0, True),
        "(c=a b)": Subset("c", ("a b",)),
        '(c in {a, "a,b"} or missing)': Subset("c", ("a", "a,b"), missing=True),
        '(c not in {1, 1.5, "True"})': Subset("c", (1, 1.5, "True"), others=True),
        "(c is known)": Subset("c", others=True),
        "(c is missing)": Subset("c", missing=True),
    }
    for text, condition in forms.items():
        assert conditions_text((condition,)) == text
        assert RuleSet.from_text(f"if {text} then a").rules[0].conditions == (condition,)


def test_whether_a_number_is_known_may_come_before_its_thresholds() -> None:
    """Without a list of columns, the kind of a column is what a later condition says."""
    found = RuleSet.from_text("if (x is missing) then 1 if (x is known) and (y=a) then 2 if (x<=3) then 3 else 4")
    assert found.features == (Feature("x"), Feature("y", Kind.CATEGORICAL, ("a",)))
    assert found.rules[0].conditions == (Interval("x", low=math.inf, missing=True),)
    assert found.rules[1].conditions == (Interval("x"), Subset("y", ("a",)))


def test_lines_are_broken_between_words_and_not_in_quotes() -> None:
    lines = list(wrapped('if ("a long name in quotes"=1) and (b=2) then "x y"', 20))
    assert lines == ["if", '    ("a long name in quotes"=1)', "    and (b=2) then", '    "x y"']


WRONG = [
    ("if (a=1) then", 1, 14, "the end of the text stands where the text of rules needs a label or number"),
    ("if (a=1)\nthan b", 2, 1, "'than' stands where the text of rules needs 'then'"),
    ("if (a=1 then b", 1, 9, "'then' stands where the text of rules needs ')'"),
    ("if (a<3) then b", 1, 5, "needs a number before '<'; write x<=3 for an upper bound, which it includes"),
    ("if (a>=3) then b", 1, 7, "'=' stands where the text of rules needs a number"),
    ("if (a<=x) then b", 1, 8, "'x' stands where the text of rules needs a number"),
    ("if (a<=nan) then b", 1, 8, "'nan' stands where the text of rules needs a number"),
    ('if ("a<=3) then b', 1, 5, "needs a text in quotes that ends"),
    ('if ("\\q"<=3) then b', 1, 5, "needs a text in quotes with the escapes of JSON"),
    ("if (3<=3) then b", 1, 5, 'needs the name of a column; a name like this one is quoted: "3"'),
    (
        "if (or<=3) then b",
        1,
        5,
        "'or' stands where the text of rules needs the name of a column, or a number, or \"or\"",
    ),
    ("if (a=1) and (a=2) then b", 1, 15, "needs another column: 'a' has a condition; join the two, as in 1<x<=2"),
    (
        "if (a<=1) then b if (a=2) then b",
        1,
        24,
        "needs a condition with '<=' or '>', because column 'a' holds numeric values",
    ),
    (
        "if (a=1) then b if (a<=2) then b",
        1,
        21,
        "needs a condition with '=' or 'in', because column 'a' holds categorical values",
    ),
    ("column a in {x, y}\n\nif (a=z) then b", 3, 7, "of which 'z' is none: 'x', 'y'"),
    ("column a in {x, x}", 1, 17, "needs a value that was not listed before"),
    ("column a column a", 1, 17, "needs a column that was not named before"),
    ("column a if (b>1) then c", 1, 14, "needs a declared column, and 'b' is none: 'a'"),
    ('class "<U1" in {x} if (a=1) then y', 1, 34, "'y' stands where the text of rules needs one of the classes: 'x'"),
    ("number if (a=1) then y", 1, 22, "'y' stands where the text of rules needs a number"),
    ("else a else b", 1, 13, "needs the end of the text: it has an 'else' already"),
    ("else a [weight x]", 1, 16, "'x' stands where the text of rules needs a number"),
    ("else a [weight 1, weight 2]", 1, 19, "needs 'confidence' or 'shares'"),
    ("else a [shares]", 1, 15, "']' stands where the text of rules needs a number"),
    ("conflict last", 1, 10, "'last' stands where the text of rules needs 'first' or 'vote'"),
    ("rule 1", 1, 1, "needs 'column' or 'class' or 'number' or 'conflict' or 'if' or 'else'"),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), WRONG, ids=[text for text, *_ in WRONG])
def test_what_is_wrong_is_named_with_its_place(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^line {line}, column {column}: ") as caught:
        RuleSet.from_text(text)
    assert message in str(caught.value)


def test_labels_of_other_types_have_no_text() -> None:
    with pytest.raises(TypeError, match="turn such labels or categories into text before the fit"):
        literal(b"bytes")
