"""The pseudo-code of the ID3 family, line by line, as plain recursion over lists of rows.

A tree is `Leaf` or `Fork`. Gains are compared exactly: x log x added up over branches and classes is the logarithm of a
product of whole powers, so that two features tie where the fractions of whole numbers are equal, and nowhere else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Row = tuple[Any, ...]  # the values of the features, then the label
Domains = Mapping[int, Sequence[Any]]  # feature -> its values, in the order of the branches


@dataclass(frozen=True)
class Leaf:
    """A label, None for null; or the shares of the labels, in their order."""

    says: Any


@dataclass(frozen=True)
class Fork:
    feature: int
    branches: tuple[Any, ...]  # in the order of the values


def labels(rows: Sequence[Row]) -> list[Any]:
    return [row[-1] for row in rows]


def plurality(rows: Sequence[Row]) -> Any:
    """The most frequent label, the first in order among equals."""
    count = Counter(labels(rows))
    return min(count, key=lambda label: (-count[label], label))


def where(rows: Sequence[Row], feature: int, value: Any) -> list[Row]:
    return [row for row in rows if row[feature] == value]


def order(rows: Sequence[Row]) -> Fraction:
    """2 to the power of the sum of x log x over the labels, less n log n."""
    power = Fraction(1)
    for count in Counter(labels(rows)).values():
        power *= count**count
    return power / len(rows) ** len(rows) if rows else power


def gain(rows: Sequence[Row], feature: int, domains: Domains) -> Fraction:
    """2 to the power of the information gain times n: 1 where nothing is gained, larger the more is."""
    power = Fraction(1)
    for value in domains[feature]:
        power *= order(where(rows, feature, value))
    return power / order(rows)


def best(rows: Sequence[Row], features: Sequence[int], domains: Domains) -> int:
    """The feature of the largest gain, the first in order among equals."""
    return max(sorted(features), key=lambda feature: gain(rows, feature, domains))


Offered = Callable[[Sequence[Row], Sequence[int]], Sequence[int]]


def everything(rows: Sequence[Row], features: Sequence[int]) -> Sequence[int]:
    """All features that are left, as the listings say."""
    return features


def that_part(rows: Sequence[Row], features: Sequence[int]) -> Sequence[int]:
    """Those that have two values among the rows."""
    return [f for f in features if len({row[f] for row in rows}) > 1]


def without(features: Sequence[int], feature: int) -> list[int]:
    return [f for f in features if f != feature]


def id3_binary(S: Sequence[Row], A: Sequence[int], domains: Domains, offered: Offered, empty: Leaf | None) -> Any:
    """ID3(S, A): Shalev-Shwartz and Ben-David (2014), section 18.2; ``empty`` None: the literal reading of all()."""
    if not S and empty is not None:
        return empty
    if all(label == 1 for label in labels(S)):  # true of an empty S
        return Leaf(1)
    if all(label == 0 for label in labels(S)):
        return Leaf(0)
    if not (A := offered(S, A)):
        return Leaf(plurality(S))
    j = best(S, A, domains)
    if len(set(labels(S))) == 1:  # the redundant test of the listing
        return Leaf(S[0][-1])
    majority = None if empty is None else Leaf(plurality(S))
    T1 = id3_binary(where(S, j, 1), without(A, j), domains, offered, majority)
    T2 = id3_binary(where(S, j, 0), without(A, j), domains, offered, majority)
    return Fork(j, (T1, T2))


def id3(S: Sequence[Row], A: Sequence[int], domains: Domains, offered: Offered) -> Any:
    """Quinlan (1986): a branch for each value, null where no row has it."""
    if not S:
        return Leaf(None)
    if len(set(labels(S))) == 1:
        return Leaf(S[0][-1])
    if not (A := offered(S, A)):
        return Leaf(plurality(S))
    a = best(S, A, domains)
    return Fork(a, tuple(id3(where(S, a, v), without(A, a), domains, offered) for v in domains[a]))


def learn_dt(
    examples: Sequence[Row], features: Sequence[int], parent_examples: Sequence[Row], domains: Domains, offered: Offered
) -> Any:
    """LEARN-DT(examples, features, parent examples): Russell and Norvig; Procaccia, lecture 16."""
    if not examples:
        return Leaf(plurality(parent_examples))
    if len(set(labels(examples))) == 1:
        return Leaf(examples[0][-1])
    if not (features := offered(examples, features)):
        return Leaf(plurality(examples))
    f = best(examples, features, domains)
    subtrees = []
    for value in domains[f]:
        exs = where(examples, f, value)
        subtrees.append(learn_dt(exs, without(features, f), examples, domains, offered))
    return Fork(f, tuple(subtrees))


def prob(rows: Sequence[Row], classes: Sequence[Any]) -> tuple[float, ...]:
    count = Counter(labels(rows))
    return tuple(count[label] / len(rows) for label in classes)


def dtl(
    rows: Sequence[Row],
    features: Sequence[int],
    probs: tuple[float, ...],
    domains: Domains,
    offered: Offered,
    classes: Sequence[Any],
) -> Any:
    """DTL(X, Y, features, probs) of the lecture notes."""
    if not rows:
        return Leaf(probs)
    if len(set(labels(rows))) == 1:
        return Leaf(tuple(float(label == rows[0][-1]) for label in classes))
    if not (features := offered(rows, features)):
        return Leaf(prob(rows, classes))
    f = best(rows, features, domains)
    own = prob(rows, classes)
    return Fork(
        f,
        tuple(dtl(where(rows, f, v), without(features, f), own, domains, offered, classes) for v in domains[f]),
    )


def generate_tree(D: Sequence[Row], features: Sequence[int], domains: Domains) -> Any:
    """GenerateTree(D): Raschka, STAT 479 chapter 6, 6.3, with its footnote: a leaf where the gain is not above 0."""
    if all(label == 1 for label in labels(D)) or all(label == 0 for label in labels(D)):
        return Leaf(D[0][-1])
    if not features:
        return Leaf(plurality(D))
    x = best(D, features, domains)
    if gain(D, x, domains) <= 1:
        return Leaf(plurality(D))
    D0, D1 = where(D, x, 0), where(D, x, 1)
    return Fork(x, (generate_tree(D0, features, domains), generate_tree(D1, features, domains)))


def size(tree: Any) -> int:
    """Nodes of a tree."""
    return 1 if isinstance(tree, Leaf) else 1 + sum(map(size, tree.branches))


def follow(tree: Any, row: Row, domains: Domains) -> Any:
    """What a tree says of a row whose values are all in the domains."""
    while isinstance(tree, Fork):
        tree = tree.branches[list(domains[tree.feature]).index(row[tree.feature])]
    return tree.says
