"""Sets of rules: what they predict, how they do, and their text. May import everything below."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gputree.core.checks import row_number
from gputree.core.rule_bits import RuleBits
from gputree.core.rule_checks import Names
from gputree.core.rule_parser import Parser
from gputree.core.rule_words import facts_text, literal, word, wrapped
from gputree.core.rules import Rule, as_number, facts_of, labels_of, type_of
from gputree.core.schema import Feature, Kind
from gputree.learners.labels import as_columns, numbers_of
from gputree.learners.looks import RuleLooks
from gputree.learners.rule_reading import blocks, matrix_of
from gputree.learners.tasks import checked_weight


@dataclass(frozen=True)
class RuleSet(RuleLooks):
    """Rules in order, and what they were made from.

    Two sets are equal if all their parts are. `predict` reads only the columns that some rule asks for; of a frame it
    takes them by name, whatever else the frame holds.

    Parameters
    ----------
    rules : tuple of Rule
        In order.
    features : tuple of Feature
        The columns of the table, in order.
    default : Rule, optional
        Without conditions: what holds where no rule does.
    classes : tuple, optional
        The labels in order; None where rules predict numbers.
    dtype : str, optional
        NumPy type of the labels, such as ``"<U3"``; by default that of an array of them.
    weight : float, optional
        Weight of the training rows.
    shares : tuple of float, optional
        Shares of the classes in it.
    conflict : {"first", "vote"}
        What decides where several rules hold: "first" the first of them; "vote" the class whose rules have the largest
        sum of confidences, the first among equals. Votes need the confidence of every rule: those of `measured` are put
        to the vote by ``dataclasses.replace(measured, conflict="vote")``.

    Raises
    ------
    ValueError
        If rules name what the table does not have, or hold for no value; if a weight, a confidence or shares are no
        such numbers; if votes cannot be counted.

    References
    ----------
    Quinlan (1993), "C4.5: Programs for Machine Learning", chapter 5, for the ordered list; the weighted votes are those
    of C5.0.

    Examples
    --------
    >>> import pandas as pd
    >>> from gputree import RuleSet
    >>> rules = RuleSet.from_text("if (Work=True) then stay in if (Outlook=Rainy) then cinema else go out")
    >>> rules.predict(pd.DataFrame({"Work": [False, True], "Outlook": ["Rainy", "Sunny"]}))
    array(['cinema', 'stay in'], dtype='<U7')
    >>> print(rules)
    column Work in {True}
    column Outlook in {Rainy}
    class "<U7" in {cinema, go out, stay in}
    conflict first
    <BLANKLINE>
    if (Work=True) then stay in
    if (Outlook=Rainy) then cinema
    else go out
    """

    rules: tuple[Rule, ...]
    features: tuple[Feature, ...]
    default: Rule | None = None
    classes: tuple[Any, ...] | None = None
    dtype: str = ""
    weight: float | None = None
    shares: tuple[float, ...] = ()
    conflict: str = "first"

    def __post_init__(self) -> None:
        if self.classes is not None and not self.dtype:
            object.__setattr__(self, "dtype", type_of(self.classes))
        names = Names.of(self.features, self.classes, self.dtype)
        names.check_training(self.weight, self.shares)
        names.check_rules(self.rules, self.default)
        names.check_conflict(self.conflict, self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __str__(self) -> str:
        return self.to_text().rstrip("\n")

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels (n_classes,) in order."""
        if self.classes is None:
            raise ValueError("these rules predict numbers, and have no classes")
        labels = np.empty(len(self.classes), object)
        labels[:] = self.classes
        return labels.astype(self.dtype)

    def predict(self, X: Any) -> NDArray[Any]:
        """What the rules say of every row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            As for `predict` of a tree.

        Returns
        -------
        array (n_rows,)
            Labels, or float64.

        Raises
        ------
        ValueError
            If a row meets no rule and there is no default; if X lacks a column.
        """
        return self._labels(self._read(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class shares of every row, float64 (n_rows, n_classes).

        Of the rule that decides, among its training rows (all for its own class where they are not known); of votes,
        the sums of confidences.

        Raises
        ------
        ValueError
            If the rules predict numbers; if a row meets no rule and there is no default.
        """
        return self._shares(self._read(X))

    def apply(self, X: Any) -> NDArray[np.int64]:
        """The first rule that every row meets, int64 (n_rows,); -1 for the default."""
        return self._first(self._read(X))

    def matches(self, X: Any) -> NDArray[np.bool_]:
        """Whether rows meet the rules, bool (n_rows, n_rules)."""
        return np.concatenate([np.zeros((0, len(self)), bool), *map(self._bits.met, blocks(self._read(X)))])

    def conflicts(self, X: Any) -> NDArray[np.bool_]:
        """Rows that meet rules of different outcomes, bool (n_rows,)."""
        known: dict[Any, int] = {}
        outcome = np.array([known.setdefault(rule.outcome, len(known)) for rule in self.rules], np.int32)
        found = [np.zeros(0, bool)]
        for block in blocks(self._read(X)):
            met = self._bits.met(block)
            most = np.where(met, outcome, -1).max(axis=1, initial=-1)
            found.append(np.where(met, outcome, most[:, None]).min(axis=1, initial=len(known)) < most)
        return np.concatenate(found)

    @property
    def coverage(self) -> NDArray[np.float64]:
        """Share of the training weight that meets each rule, float64 (n_rules,); NaN where that is not known."""
        return or_nan(rule.weight for rule in self.rules) / (np.nan if self.weight is None else self.weight)

    @property
    def support(self) -> NDArray[np.float64]:
        """Share of the training weight that meets each rule and has its class, float64 (n_rules,)."""
        return self.coverage * or_nan(self._share_of(rule, rule.shares) for rule in self.rules)

    @property
    def confidence(self) -> NDArray[np.float64]:
        """How likely each rule is to be right, float64 (n_rules,); NaN where that is not known."""
        return or_nan(rule.confidence for rule in self.rules)

    @property
    def lift(self) -> NDArray[np.float64]:
        """Confidence of each rule over the share of its class in the training weight, float64 (n_rules,)."""
        prior = or_nan(self._share_of(rule, self.shares) for rule in self.rules)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.confidence / prior

    def of(self, outcome: Any) -> RuleSet:
        """The rules with this outcome, in order, and no default: together they say when it holds."""
        return replace(self, rules=tuple(rule for rule in self.rules if rule.outcome == outcome), default=None)

    def measured(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> RuleSet:
        """The same rules with weights, shares and confidences from these rows.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            As for `predict`.
        y : array-like of shape (n_rows,)
            Labels among ``classes``, or numbers.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        RuleSet
            Every rule over all rows that meet it, the default over those that meet none; the confidence is the share of
            the rule's class, and not known where no row meets it (a vote keeps its own). Numbers: the weights alone.
        """
        matrix = self._read(X)
        (column,) = as_columns(y, matrix.shape[0])
        number = np.zeros(column.size, np.int32) if self.classes is None else numbers_of(column, self.classes_)
        sums = self._sums(matrix, number, checked_weight(sample_weight, column))
        with np.errstate(all="ignore"):  # a weight of inf is refused by name
            parts = (sums / sums.sum(axis=1, keepdims=True)).tolist()
            total = sums.sum(axis=1).tolist()
        shares = [tuple(own) if self.classes and n else () for own, n in zip(parts, total, strict=True)]

        def counted(rule: Rule, i: int) -> Rule:
            known = rule.confidence if self.conflict == "vote" and not shares[i] else self._share_of(rule, shares[i])
            return replace(rule, weight=total[i], shares=shares[i], confidence=known)

        rules = tuple(counted(rule, i) for i, rule in enumerate(self.rules))
        default = counted(self.default, -2) if self.default else None
        return replace(self, rules=rules, default=default, weight=total[-1], shares=shares[-1])

    def to_text(self, width: int | None = None) -> str:
        """The set as text, from which `from_text` makes an equal one.

        Parameters
        ----------
        width : int, optional
            Break lines that are wider, where blanks allow it.

        Raises
        ------
        TypeError
            If a label or category is neither text nor a number nor a boolean.
        """
        rules = [f"{rule}{facts_text(facts_of(rule))}" for rule in self.rules]
        if self.default is not None:
            rules.append(f"else {literal(self.default.outcome)}{facts_text(facts_of(self.default))}")
        lines = [*self._header(), "", *rules]
        return "".join(f"{part}\n" for line in lines for part in (wrapped(line, width) if width and line else [line]))

    @classmethod
    def from_text(cls, text: str) -> RuleSet:
        """The set that a text describes, see `gputree.core.rule_parser.Parser` for the grammar.

        Parameters
        ----------
        text : str
            What `to_text` wrote, or rules alone: columns, categories and classes are then those that they name.

        Raises
        ------
        ValueError
            If it is no such text; the message has the line and the column, what stands there and what is wanted.
        """
        found = Parser(text).parse()
        outcomes = [rule.outcome for rule in (*found.rules, *([found.default] if found.default else []))]
        numbers = found.numbers or (not found.target and all(type(outcome) is float for outcome in outcomes))
        dtype, classes = found.target or ("", None if numbers else labels_of(outcomes))
        return cls(
            tuple(as_number(rule) for rule in found.rules) if numbers else tuple(found.rules),
            tuple(found.columns.values()),
            as_number(found.default) if numbers and found.default else found.default,
            classes,
            dtype,
            found.facts.get("weight"),
            found.facts.get("shares", ()),
            found.conflict,
        )

    def _header(self) -> Iterator[str]:
        """What stands above the rules."""
        for feature in self.features:
            values = ", ".join(map(literal, feature.categories))
            yield f"column {word(feature.name)}" + (f" in {{{values}}}" if feature.kind == Kind.CATEGORICAL else "")
        facts = facts_text([("weight", self.weight), ("shares", self.shares)])
        if self.classes is None:
            yield f"number{facts}"
        else:
            yield f"class {word(self.dtype)} in {{{', '.join(map(literal, self.classes))}}}{facts}"
        yield f"conflict {self.conflict}"

    @cached_property
    def _asked(self) -> tuple[int, ...]:
        """Numbers of the columns that some rule asks for."""
        names = {condition.name for rule in self.rules for condition in rule.conditions}
        return tuple(i for i, feature in enumerate(self.features) if feature.name in names)

    @cached_property
    def _bits(self) -> RuleBits:
        """The rules as `_blocks` needs them."""
        return RuleBits.of([rule.conditions for rule in self.rules], [self.features[i] for i in self._asked])

    @cached_property
    def _places(self) -> dict[Any, int]:
        """Label -> its number."""
        return {label: i for i, label in enumerate(self.classes or ())}

    def _read(self, X: Any) -> Any:
        """The columns that rules ask for, f4/f8 (n, asked), dense or csr."""
        return matrix_of(X, self.features, self._asked)

    def _labels(self, matrix: Any) -> NDArray[Any]:
        """What `predict` returns, of the columns that rules ask for."""
        if self.conflict == "vote":
            best: NDArray[Any] = self.classes_[self._shares(matrix).argmax(axis=1)]
            return best
        labels: NDArray[Any] = self._outcomes()[self._decided(matrix)]
        return labels

    def _first(self, matrix: Any) -> NDArray[np.int64]:
        """What `apply` returns, of the columns that rules ask for."""
        return np.concatenate([np.zeros(0, np.int64), *map(self._bits.first, blocks(matrix))])

    def _decided(self, matrix: Any) -> NDArray[np.int64]:
        """The rule that decides of every row; -1 for the default, if there is one."""
        found = self._first(matrix)
        self._need_default(found < 0)
        return found

    def _need_default(self, rows: NDArray[np.bool_]) -> None:
        """Refuse rows without a rule where there is no default."""
        if self.default is None and rows.any():
            raise ValueError(
                f"{row_number(int(rows.argmax()))} meets no rule, and the set has no default; add one: a text of rules "
                "may end with `else` and an outcome"
            )

    def _outcomes(self) -> NDArray[Any]:
        """Outcomes of the rules and of the default at the end."""
        rules = [*self.rules, *([self.default] if self.default else [])]
        if self.classes is None:
            return np.array([rule.outcome for rule in rules], np.float64)
        labels: NDArray[Any] = self.classes_[np.array([self._places[rule.outcome] for rule in rules], np.intp)]
        return labels

    def _class_shares(self, rule: Rule) -> NDArray[np.float64]:
        """Class shares of a rule, all for its own class where they are not known."""
        if rule.shares:
            return np.array(rule.shares)
        own = np.zeros(len(self._places))
        own[self._places[rule.outcome]] = 1.0
        return own

    def _shares(self, matrix: Any) -> NDArray[np.float64]:
        """What `predict_proba` returns, of the columns that rules ask for."""
        if self.classes is None:
            raise ValueError("these rules predict numbers, and have no classes; call predict")
        if self.conflict == "vote":
            return np.concatenate([np.zeros((0, len(self.classes))), *map(self._votes, blocks(matrix))])
        rules = [*self.rules, *([self.default] if self.default else [])]
        table = np.array([self._class_shares(rule) for rule in rules]).reshape(len(rules), len(self.classes))
        shares: NDArray[np.float64] = table[self._decided(matrix)]
        return shares

    def _votes(self, block: NDArray[Any]) -> NDArray[np.float64]:
        """Shares of the votes of some rows, added in the order of the rules."""
        met = np.ascontiguousarray(self._bits.met(block).T)
        votes = np.zeros((len(self._places), len(block)))
        for rule, own in zip(self.rules, met, strict=True):
            votes[self._places[rule.outcome]] += own * float(rule.confidence or 0.0)
        none: NDArray[np.bool_] = votes.max(axis=0, initial=0.0) == 0
        self._need_default(none)
        if self.default is not None:
            votes[:, none] = self._class_shares(self.default)[:, None]
        shares: NDArray[np.float64] = (votes / votes.sum(axis=0)).T
        return shares

    def _sums(self, matrix: Any, number: NDArray[np.int32], weight: Any) -> NDArray[np.float64]:
        """Weights by class of the rows of each rule, of no rule, and of all: f8 (n_rules + 2, k); number (n,)."""
        weight = np.ones(number.size) if weight is None else weight
        sums, start = np.zeros((len(self) + 2, max(len(self._places), 1))), 0
        for block in blocks(matrix):
            own = slice(start, start + len(block))
            met = self._bits.met(block)
            for i, inside in enumerate([*met.T, ~met.any(axis=1), np.ones(len(met), bool)]):
                sums[i] += np.bincount(number[own][inside], weight[own][inside], sums.shape[1])
            start += len(block)
        return sums

    def _share_of(self, rule: Rule, shares: tuple[float, ...]) -> float | None:
        """The share of a rule's class, if shares are known."""
        return shares[self._places[rule.outcome]] if shares else None

    def __getstate__(self) -> dict[str, Any]:
        """What pickle keeps: nothing that follows from the rest."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


def or_nan(values: Any) -> NDArray[np.float64]:
    """Numbers (n,), NaN for None."""
    return np.array([np.nan if value is None else value for value in values], np.float64)
