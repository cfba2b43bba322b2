"""The tests of a tree in words, for every text and picture of it. May import everything below."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from gputree.core.checks import brief, what_is
from gputree.core.forest import SPREAD, Forest, Test
from gputree.core.routes import branch_shares
from gputree.core.schema import Feature, Kind, Schema
from gputree.learners.base import BaseTree
from gputree.learners.forest import BaseForest

LIST_WIDTH = 60  # characters that a list of categories may take before the rest is counted
HARMLESS = "\u200c\u200d"  # joiners, invisible by themselves, that letters and emoji are made of


Threshold = Callable[[float, int], str]  # its text, from it and the number of the feature


@dataclass(frozen=True, slots=True)
class Branch:
    """One way out of a test: its words, and the nodes that it leads to.

    ``children`` are several where leaves that no training row took share a line; they predict the same. ``test`` is
    what follows the name of the feature and ``answer`` what stands beside an edge; ``values`` are the categories of
    the branch, which come in the place of both.
    """

    children: tuple[int, ...]
    test: str = ""
    answer: str = ""
    values: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    empty: bool = False

    @property
    def child(self) -> int:
        """The first of the nodes, which stands for all."""
        return self.children[0]

    def text(self, width: int | None = LIST_WIDTH) -> str:
        """The words of the test, a list of categories cut with a count where it is wider than ``width``."""
        test = category_text(self.values, width) if self.values else self.test
        return test + (f" ({', '.join(self.marks)})" if self.marks else "")


@dataclass(frozen=True, slots=True)
class Words:
    """Puts the tests of a tree into words.

    ``names`` are those of the features, ``number`` writes a threshold. ``missing``: whether every test says where
    missing values go, and every test of categories where others go. ``empty`` bool (N,) marks leaves without rows;
    ``share`` f8 (N,) is that of each node in the weight of its parent. ``bounds`` f8 (N, 2) are those of soft
    thresholds, None of hard ones.
    """

    forest: Forest
    schema: Schema
    names: Sequence[str]
    number: Threshold
    missing: bool
    empty: NDArray[np.bool_]
    share: NDArray[np.float64]
    longest: int | None = None  # characters of a category, of which longer ones lose their middle
    bounds: NDArray[np.float64] | None = None
    texts: dict[int, list[str]] = field(default_factory=dict)  # of categories, by feature

    def name(self, node: int) -> str:
        """Name of the feature that a node tests."""
        return self.names[int(self.forest.feature[node])]

    def feature(self, node: int) -> Feature:
        """The feature that a node tests."""
        return self.schema.features[int(self.forest.feature[node])]

    def asks_missing(self, node: int) -> bool:
        """Whether a test only tells known from missing."""
        at_top = self.forest.low[node] == np.inf and self.forest.missing[node] == 1
        return bool(self.forest.kind[node] == Test.THRESHOLD and at_top)

    def question(self, node: int) -> str:
        """The test of a node as the heading of a box, whose answers stand beside its branches."""
        if self.forest.kind[node] == Test.LOOKUP:
            return self.name(node)
        return f"{self.name(node)} {self.branches(node)[0].test}"

    def branches(self, node: int) -> list[Branch]:
        """The branches of a test in their order, those of several leaves without rows last."""
        if self.forest.kind[node] == Test.LOOKUP:
            return self.lookup(node)
        first = int(self.forest.first_child[node])
        if self.asks_missing(node):
            others = ("or other",) if self.missing and self.has_others(node) else ()
            return [
                Branch((first,), "is known", "True", marks=others),
                Branch((first + 1,), "is missing", "False"),
            ]
        low = self.number(float(self.forest.low[node]), int(self.forest.feature[node])) + self.between(node)
        return [
            Branch((first,), f"<= {low}", "True", marks=self.marks(node, 0)),
            Branch((first + 1,), f">  {low}", "False", marks=self.marks(node, 1)),  # scikit-learn pads the sign
        ]

    def between(self, node: int) -> str:
        """The bounds of a soft threshold, as C4.5 prints them: `` [70.00,80.16]``."""
        if self.bounds is None or not self.bounds[node, 0] < self.bounds[node, 1]:
            return ""
        low, high = (self.number(bound, int(self.forest.feature[node])) for bound in self.bounds[node].tolist())
        return f" [{low},{high}]"

    def has_others(self, node: int) -> bool:
        """Whether there may be categories that were never declared: not in a column of booleans or numbers."""
        feature = self.feature(node)
        booleans = feature.categories == (False, True) and isinstance(feature.categories[0], bool | np.bool_)
        return feature.kind == Kind.CATEGORICAL and not booleans

    def marks(self, node: int, branch: int) -> tuple[str, ...]:
        """What else takes a branch: missing values, categories that the test does not list."""
        if not self.missing:
            return ()
        ways = {"missing": int(self.forest.missing[node])}
        if self.forest.kind[node] == Test.LOOKUP and self.has_others(node):
            ways["other"] = int(self.forest.unseen[node])
        found = [f"or {what}" for what, way in ways.items() if way == branch]
        share = float(self.share[int(self.forest.first_child[node]) + branch])
        spread = " and ".join(what for what, way in ways.items() if way == SPREAD and share > 0)
        return (*found, *([f"{share:.1%} of {spread}"] if spread else []))

    def lookup(self, node: int) -> list[Branch]:
        """A branch for each set of categories, for missing values alone, and for all leaves without rows."""
        first = int(self.forest.first_child[node])
        found: list[Branch] = []
        bare: list[int] = []
        values: list[str] = []
        for branch, own in enumerate(self.category_lists(node)):
            marks = self.marks(node, branch)
            if self.empty[first + branch] and not marks:
                bare.append(first + branch)
                values += own
            elif own:
                found.append(Branch((first + branch,), values=own, marks=marks))
            else:  # no category has this branch: missing values alone, or whatever is not listed
                what = "missing" if branch == self.forest.missing[node] else "any other"
                rest = tuple(mark for mark in marks if mark.removeprefix("or ") not in what)
                found.append(Branch((first + branch,), f"is {what}", what, marks=rest))
        if bare:
            count = "" if len(bare) == 1 else f"{len(bare):,} categories, "
            found.append(Branch(tuple(bare), values=tuple(values), marks=(f"{count}no training rows",), empty=True))
        return found

    def category_lists(self, node: int) -> list[tuple[str, ...]]:
        """The categories of every branch of a LOOKUP node, as text."""
        cells = slice(*self.forest.lookup_ptr[node : node + 2])
        codes, branch = self.forest.lookup_code[cells], self.forest.lookup_branch[cells]
        categories = self.categories(int(self.forest.feature[node]))
        lists: list[list[str]] = [[] for _ in range(self.forest.n_children[node])]
        for code, b in zip(codes.tolist(), branch.tolist(), strict=True):
            lists[b].append(readable(categories[code - 1]))
        return [tuple(own) for own in lists]

    def categories(self, feature: int) -> list[str]:
        """The categories of a feature as text."""
        if feature not in self.texts:
            self.texts[feature] = told_apart([str(c) for c in self.schema.features[feature].categories], self.longest)
        return self.texts[feature]


def require_tree(model: Any) -> None:
    """Refuse what is no fitted tree of this library."""
    if isinstance(model, type) or not isinstance(model, BaseTree):
        name = what_is(model)
        if isinstance(model, BaseForest):
            raise TypeError(
                f"{name} is a forest and no tree of gputree; give one of its trees, model.estimators_[0] or on"
            )
        raise TypeError(
            f"{name} is no tree of gputree; give a fitted DecisionTree* or ExtraTree* of gputree: gputree.from_sklearn "
            "makes one of a tree of scikit-learn, and of a pipeline it is the last step"
        )
    check_is_fitted(model)


def make_words(
    model: Any, names: Sequence[str], number: Threshold, missing: Any = "auto", longest: int | None = None
) -> Words:
    """The words of a fitted model; ``missing`` is the ``show_missing`` of `export_text`."""
    forest: Forest = model.forest_
    weight = model.layout_.weight(forest.stats.T)
    return Words(
        forest,
        model.schema_,
        told_apart([plain(name) for name in names], longest),
        number,
        says_missing(model, missing),
        (forest.kind == Test.LEAF) & (weight == 0),
        branch_shares(forest, weight),
        longest,
        getattr(model, "threshold_bounds_", None),
    )


def spread_rows(model: Any) -> int:
    """Rows of the fit that the test which sends most of them down every branch does: each counts in all children."""
    forest: Forest = model.forest_
    rows = model.layout_.count(forest.stats.T)
    below = np.bincount(forest.parent[forest.parent >= 0], rows[forest.parent >= 0], forest.n_nodes)
    more = np.where(forest.kind == Test.LEAF, 0, below - rows) / np.maximum(forest.n_children - 1.0, 1.0)
    return int(np.ceil(more.max(initial=0.0)))


def says_missing(model: Any, given: Any) -> bool:
    """Whether tests say where missing values go: always, never, or if it matters.

    It does if some test met one, if it is about categories and sends those that it does not know down one branch, or if
    rows of the fit went down several, as they do where a raised test does not list their categories.
    """
    if isinstance(given, bool | np.bool_):
        return bool(given)
    if not isinstance(given, str) or given != "auto":
        raise ValueError(f"show_missing={given!r} must be True, False or 'auto'")
    forest: Forest = model.forest_
    one_way = (forest.kind == Test.LOOKUP) & (forest.unseen != SPREAD)
    return bool(forest.met_missing.any() or one_way.any() or spread_rows(model) > 0)


def category_text(texts: Sequence[str], width: int | None = LIST_WIDTH) -> str:
    """``= red``, or ``in {red, green, ... 37 more}`` for several."""
    if len(texts) == 1:
        return f"= {texts[0]}"
    return "in {" + cut_words(texts, width) + "}"


def cut_words(texts: Sequence[str], width: int | None) -> str:
    """Texts with commas; of more than fit the width, as many as fit with the count of the rest, but at least one."""
    whole = ", ".join(texts)
    if width is None or len(whole) <= width or len(texts) == 1:
        return whole
    room = width - len(f"... {len(texts):,} more")
    shown = max(1, sum(end <= room for end in accumulate(len(text) + 2 for text in texts)))
    return f"{', '.join(texts[:shown])}, ... {len(texts) - shown:,} more"


def readable(text: str) -> str:
    """A category as it is, or quoted where it is empty or its text could be misread."""
    odd = not text or text != text.strip() or text.startswith("...") or bool(set(text) & set(",{}()'\""))
    return repr(text) if odd or plain(text) != text else text


def plain(text: str) -> str:
    """A text on one line: control characters, and those that turn the direction of writing, as their escapes."""
    return text if text.isprintable() else "".join(c if shows(c) else repr(c)[1:-1] for c in text)


def shows(character: str) -> bool:
    """Whether a character prints, be it as a blank."""
    kind = unicodedata.category(character)
    return kind == "Zs" or kind[0] not in "CZ" or character in HARMLESS


def shortened(text: str, width: int | None) -> str:
    """A text with its middle cut out: names differ at their ends as often as at their beginnings."""
    if width is None or len(text) <= width:
        return text
    return f"{text[: (width - 2) // 2]}...{text[len(text) - (width - 3) // 2 :]}"


def told_apart(texts: Sequence[str], width: int | None) -> list[str]:
    """Texts as `shortened` makes them, those that it would make equal a little longer.

    Examples
    --------
    >>> told_apart(["length of the petals, in cm", "length of the sepals, in cm", "species of the flower"], 16)
    ['length of ...etals, in cm', 'length of ...epals, in cm', 'species...flower']
    """
    found: dict[str, str] = {}
    left = set(texts)
    while left:
        short = {text: shortened(text, width) for text in left}
        times = Counter(short.values())
        found |= {text: own for text, own in short.items() if times[own] == 1}
        left -= found.keys()
        width = None if width is None else max(width, 0) + 1 + max(width, 0) // 4
    return [found[text] for text in texts]


def checked_names(model: Any, given: Any, pattern: str) -> list[str]:
    """A name for every feature: as given, else those of columns if they are text, else numbers in a pattern.

    A column of categories has its name in any case: of these a number would say too little.
    """
    n = model.schema_.n_features
    if given is None:
        own = hasattr(model, "feature_names_in_") or (model.schema_.kinds == Kind.CATEGORICAL).any()
        return list(model.schema_.names) if own else [pattern.format(i) for i in range(n)]
    if isinstance(given, str | bytes):
        raise ValueError(f"feature_names={brief(given)} must be a list of {n} names, one for each feature")
    names = [str(name) for name in given]
    if len(names) != n:
        raise ValueError(f"feature_names must contain {n} elements, got {len(names)}")
    return names


def checked_classes(model: Any, given: Any) -> list[list[str]] | None:
    """Names of the classes of every output; None for numbers."""
    if not is_classifier(model):
        return None
    own = model.classes_ if isinstance(model.classes_, list) else [model.classes_]
    if given is None:
        return [[plain(str(label)) for label in labels] for labels in own]
    if isinstance(given, str | bytes | bool):
        raise ValueError(f"class_names={given!r} must be a list of names, one for each class")
    if len(own) > 1:
        raise ValueError(f"class_names name the classes of one output, and this tree has {len(own)}; leave them out")
    if len(given) != len(own[0]):
        raise ValueError(f"class_names must contain {len(own[0])} elements, one for each class, got {len(given)}")
    return [[plain(str(name)) for name in given]]


def likeliest(names: Sequence[str], shares: NDArray[np.float64]) -> str:
    """The class of the largest share, ``null`` of a node that predicts none."""
    return "null" if np.isnan(shares).any() else names[int(shares.argmax())]


def listed(texts: Sequence[str]) -> str:
    """One text as it is, several in brackets."""
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
