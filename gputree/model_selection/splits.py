"""How the rows of a table are parted into those that a model is fitted on and those that judge it.

The two parters here are those that scikit-learn has not, or not for classes of few rows; each works in its functions
too. May import everything below.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from numbers import Integral
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import LeaveOneOut, check_cv
from sklearn.utils.validation import _num_samples

from gputree.core.bags import Bags, strata
from gputree.core.checks import brief, is_number, row_number, whole, yes_or_no
from gputree.core.keys import Stream, draw

Rows = NDArray[np.intp]
Pair = tuple[Rows, Rows]  # to fit on, held out

SEEDS = 2**32  # as in scikit-learn


@dataclass(frozen=True)
class Holdout:
    """One part of the rows is held out, and perhaps another one kept for the end.

    Rows are drawn by a hash of the seed and their number, the same on every machine. With ``stratify`` every class of
    y is parted in the same proportions, to within a row, be it ever so small.

    Parameters
    ----------
    test_size : float or int, default=1/3
        Rows that judge, those that `split` holds out: a share between 0 and 1, or a number of rows.
    kept_size : float or int, default=0
        Rows that `split` leaves out altogether, in the same way: `select` measures with them what it has chosen.
    stratify : bool, default=False
        Whether y holds classes. ``cv="holdout"`` does so for classifiers.
    random_state : int or None, default=0
        Seed of the hash, from 0 to 2**32 - 1; None is 0.

    Raises
    ------
    ValueError
        If a parameter is out of range, or no row is left to fit on.

    Notes
    -----
    Nilsson, *Introduction to Machine Learning*, chapter 6, 6.4.2, holds out a third; Procaccia, lecture 16, parts rows
    in training, validation and test.

    Examples
    --------
    >>> import numpy as np
    >>> from gputree.model_selection import Holdout
    >>> [(train, held)] = Holdout(test_size=0.3, kept_size=0.2).split(np.zeros((10, 1)))
    >>> train.size, held.size
    (5, 3)
    """

    test_size: float = 1 / 3
    kept_size: float = 0.0
    stratify: bool = False
    random_state: int | None = 0

    def __post_init__(self) -> None:
        yes_or_no("stratify", self.stratify)
        seed_of(self.random_state)
        if not (is_size(self.test_size) and self.test_size > 0 and is_size(self.kept_size) and self.fits(np.inf)):
            raise ValueError(
                f"test_size={self.test_size!r} and kept_size={self.kept_size!r} must be shares of the rows, below 1 "
                "together, or numbers of rows: test_size above 0, kept_size 0 or more"
            )

    def fits(self, n_rows: float) -> bool:
        """Whether rows are left to fit on."""
        return share_of(self.test_size, n_rows) + share_of(self.kept_size, n_rows) < 1

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """One."""
        return 1

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Pair]:
        """The rows to fit on and those held out, ascending."""
        parts = self.parts(X, y)
        yield np.flatnonzero(parts == 0), np.flatnonzero(parts == 1)

    def kept_rows(self, X: Any, y: Any = None) -> NDArray[np.intp]:
        """The rows kept for the end, ascending."""
        return np.flatnonzero(self.parts(X, y) == 2)

    def parts(self, X: Any, y: Any) -> NDArray[np.int8]:
        """Part of every row (n,): 0 to fit on, 1 held out, 2 kept for the end."""
        n = _num_samples(X)
        if not self.fits(n):
            raise ValueError(f"{self} leaves none of {n} rows to fit on: give smaller parts")
        kept, held = share_of(self.kept_size, n), share_of(self.test_size, n)
        hashes = draw(seed_of(self.random_state), Stream.HOLDOUT, np.arange(n))
        classes = np.unique(np.asarray(y), return_inverse=True)[1].ravel() if self.stratify else np.zeros(n, int)
        order = np.lexsort((hashes, classes))
        last = evenly(n, kept)
        rest = np.flatnonzero(~last)
        parts = np.where(last, 2, 0).astype(np.int8)
        parts[rest[evenly(rest.size, held / (1 - kept))]] = 1
        found = np.empty(n, np.int8)
        found[order] = parts
        return found


def is_size(value: Any) -> bool:
    """Whether a value is a share of rows or a number of them, not below 0."""
    return is_number(value) and value >= 0 and (is_number(value, Integral) or value < 1)


def share_of(size: Any, n_rows: float) -> float:
    """The share that a part is of so many rows."""
    return float(size) / max(n_rows, 1) if is_number(size, Integral) else float(size)


def seed_of(random_state: Any) -> int:
    """The seed that a parameter stands for.

    Raises
    ------
    ValueError
        If it stands for none.
    """
    if random_state is None:
        return 0
    if not is_number(random_state, Integral) or not 0 <= random_state < SEEDS:
        raise ValueError(f"random_state={random_state!r} must be a whole number from 0 to {SEEDS - 1}, or None for 0")
    return int(random_state)


def evenly(n: int, share: float) -> NDArray[np.bool_]:
    """A share of n places (n,), spread evenly over them."""
    steps = np.floor(np.arange(n + 1) * share + 0.5)
    chosen: NDArray[np.bool_] = np.diff(steps) > 0
    return chosen


@dataclass(frozen=True)
class Bootstrap:
    """Resamples of as many rows as there are, drawn with replacement; the rows that a resample lacks are held out.

    A resample that lacks no row is drawn anew.

    Parameters
    ----------
    n_splits : int, default=100
        Resamples.
    random_state : int or None, default=0
        Seed of the hash that draws, from 0 to 2**32 - 1; None is 0.

    Raises
    ------
    ValueError
        If a parameter is out of range, or if there are fewer than two rows.

    Notes
    -----
    Efron (1983), "Estimating the error rate of a prediction rule", JASA 78:316-331.

    Examples
    --------
    >>> import numpy as np
    >>> from gputree.model_selection import Bootstrap
    >>> train, held = next(Bootstrap().split(np.zeros((1000, 1))))
    >>> train.size, held.size
    (1000, 363)
    """

    n_splits: int = 100
    random_state: int | None = 0

    def __post_init__(self) -> None:
        whole("n_splits", self.n_splits, 1)
        seed_of(self.random_state)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of resamples."""
        return int(self.n_splits)

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Pair]:
        """Rows of each resample, ascending and some more than once, and the rows that it lacks."""
        n, found = _num_samples(X), 0
        if n < 2:
            raise ValueError(f"the bootstrap needs at least 2 rows, and there is {n}")
        draws = strata(None, n, np.array([n], np.int64), None, True)
        # a forest on a resample must not draw its rows again
        seed = int(draw(seed_of(self.random_state), Stream.RESAMPLE, 0))
        for number in count():
            rows = np.sort(Bags(1, number, seed, draws).drawn(0)).astype(np.intp)
            left = np.setdiff1d(np.arange(n), rows)
            if left.size:
                yield rows, left
                found += 1
            if found == self.n_splits:
                return


NAMED = ("loo", "holdout", "train-validation-test", "bootstrap")


def splitter_of(cv: Any, y: NDArray[Any], classifier: bool) -> Any:
    """What parts the rows, with a method ``split``.

    Raises
    ------
    ValueError, TypeError
        If ``cv`` is nothing that parts rows.
    """
    if isinstance(cv, str):
        return named(cv, classifier and y.ndim == 1)
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if not 2 <= cv <= len(y):
            raise ValueError(f"cv={cv} folds of {len(y)} rows; give a number from 2 to the number of rows")
        return check_cv(int(cv), y, classifier=classifier)
    if hasattr(cv, "split") and hasattr(cv, "get_n_splits"):
        return cv
    pairs: list[Any] = list(cv) if isinstance(cv, Iterable) else [None]
    if all(isinstance(pair, tuple | list | np.ndarray) and len(pair) == 2 for pair in pairs):
        return check_cv(pairs, y, classifier=classifier)
    raise TypeError(
        f"cv={brief(cv)} must be a whole number of folds, one of {', '.join(map(repr, NAMED))}, something that "
        "parts rows (a splitter of sklearn.model_selection, Holdout, Bootstrap), or pairs of row numbers (to fit on, "
        "held out)"
    )


def named(cv: str, stratify: bool) -> Any:
    """A way of parting rows by its name."""
    known = {
        "loo": LeaveOneOut(),
        "holdout": Holdout(stratify=stratify),
        "train-validation-test": Holdout(0.25, 0.25, stratify),
        "bootstrap": Bootstrap(),
    }
    if cv not in known:
        raise ValueError(f"cv={cv!r} must be one of {', '.join(map(repr, NAMED))}, or a whole number of folds")
    return known[cv]


class Trains(Sequence[Rows]):
    """Rows to fit on, fold by fold; those that are all rows but the held-out ones are made when they are asked for."""

    def __init__(self, n_rows: int, pairs: Iterable[Pair]) -> None:
        self.everyone = np.arange(n_rows)
        self.held: list[Rows] = []
        self.own: list[Rows | None] = []
        for train, held in pairs:
            rest = train.size + held.size == n_rows and np.array_equal(train, np.delete(self.everyone, held))
            self.own.append(None if rest else train)
            self.held.append(held)

    def __len__(self) -> int:
        return len(self.held)

    @overload
    def __getitem__(self, i: int) -> Rows: ...
    @overload
    def __getitem__(self, i: slice) -> list[Rows]: ...
    def __getitem__(self, i: int | slice) -> Rows | list[Rows]:
        if isinstance(i, slice):
            return [self[fold] for fold in range(*i.indices(len(self)))]
        own = self.own[i]
        return np.delete(self.everyone, self.held[i]) if own is None else own

    def named(self) -> Rows:
        """The rows that some fold names, ascending."""
        there = np.zeros(self.everyone.size, bool)
        for train, held in zip(self.own, self.held, strict=True):
            there[slice(None) if train is None else train] = True
            there[held] = True
        return np.flatnonzero(there)


def trains_of(splitter: Any, X: Any, y: NDArray[Any]) -> Trains:
    """Rows to fit on, and with them those held out, fold by fold.

    Raises
    ------
    ValueError
        If a part is empty, names rows that are not there, or shares some with the other.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")  # some folds then lack a class
        trains = Trains(len(y), ((numbers(a, len(y)), numbers(b, len(y))) for a, b in pairs_of(splitter, X, y)))
    if not trains:
        raise ValueError(
            f"cv={brief(splitter)} has no fold; give at least one pair of row numbers (to fit on, held out)"
        )
    for fold, held in enumerate(trains.held):
        for rows, what in ((trains[fold], "rows to fit on"), (held, "held-out rows")):
            if not rows.size:
                raise ValueError(f"fold {fold} of cv has no {what}, of {len(y)} rows: give it at least one")
        shared = held[:0] if trains.own[fold] is None else held[np.isin(held, trains[fold])]
        if shared.size:
            raise ValueError(
                f"fold {fold} of cv fits {shared.size} of the rows that it holds out, such as {row_number(shared[0])}; "
                "give parts that share no row"
            )
    return trains


def pairs_of(splitter: Any, X: Any, y: Any) -> Iterator[Pair]:
    """What a splitter gives, if it needs nothing else."""
    try:
        yield from splitter.split(X, y)
    except ValueError as error:
        if "'groups' parameter" not in str(error):
            raise
        raise ValueError(
            f"cv={splitter} parts rows by groups, which are not known here; give its folds as "
            "cv=list(splitter.split(X, y, groups))"
        ) from error


def numbers(rows: Any, n: int) -> NDArray[np.intp]:
    """Row numbers, from a mask too."""
    given = np.asarray(rows)
    if given.dtype == bool and given.shape == (n,):
        return np.flatnonzero(given)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise ValueError(f"cv gives rows of type {given.dtype} and shape {given.shape}; give whole numbers (k,)")
    odd = given[(given < 0) | (given >= n)]
    if odd.size:
        raise ValueError(f"cv names {row_number(odd[0])}, and there are {n} rows: give numbers from 0 to {n - 1}")
    return given.astype(np.intp)


def check_classes(trains: Trains, y: NDArray[Any]) -> None:
    """Refuse a single fold that judges by a class that it has never shown; of several folds, such rows are mistakes."""
    if len(trains) > 1 or y.ndim > 1:
        return
    strange = np.setdiff1d(y[trains.held[0]], y[trains[0]])
    if strange.size:
        raise ValueError(
            f"class {strange[0].item()!r} occurs in the held-out rows and not in those to fit on; leave its "
            f"{int((y == strange[0]).sum())} rows out, or use several folds, where such rows count as mistakes"
        )


def describe(splitter: Any, n_folds: int) -> str:
    """A way of parting rows in words."""
    if isinstance(splitter, LeaveOneOut):
        return "leave-one-out"
    if isinstance(splitter, Bootstrap):
        return f"{n_folds} bootstrap resamples"
    if isinstance(splitter, Holdout) or n_folds == 1:
        return "holdout"
    return f"{n_folds} folds"
