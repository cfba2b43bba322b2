"""Parts of rows: shares, classes, draws; and scikit-learn's functions take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, cross_val_score

from gputree import DecisionTreeClassifier, RandomForestClassifier
from gputree.core.keys import Stream, draw
from gputree.model_selection import Bootstrap, Holdout
from gputree.model_selection.curves import part_of
from gputree.model_selection.splits import trains_of


@given(
    st.lists(st.integers(0, 3), min_size=4, max_size=60),
    st.floats(0.05, 0.6),
    st.floats(0, 0.35),
    st.integers(0, 9),
)
def test_every_class_is_parted_in_proportion(y: list[int], validation: float, test: float, seed: int) -> None:
    classes, X = np.array(y), np.zeros((len(y), 1))
    holdout = Holdout(validation, test, stratify=True, random_state=seed)
    ((train, held),) = holdout.split(X, classes)
    kept = holdout.kept_rows(X, classes)
    assert sorted([*train, *held, *kept]) == list(range(len(y)))
    assert abs(held.size - validation * len(y)) <= 1
    assert abs(kept.size - test * len(y)) <= 0.5
    for c in set(y):
        n = (classes == c).sum()
        assert abs((classes[kept] == c).sum() - test * n) <= 1
        assert abs((classes[held] == c).sum() - validation * n) <= 2


def test_a_third_is_held_out_and_the_seed_says_which() -> None:
    X, y = load_iris(return_X_y=True)
    ((train, held),) = Holdout(stratify=True).split(X, y)
    assert np.bincount(y[held]).tolist() == [17, 16, 17]
    assert train.size == 100
    ((_, again),) = Holdout(stratify=True).split(X, y)
    ((_, other),) = Holdout(stratify=True, random_state=1).split(X, y)
    assert again.tolist() == held.tolist() != other.tolist()
    assert not np.array_equal(np.diff(held), np.full(held.size - 1, 3))  # no pattern of places


@pytest.mark.parametrize("shares", [(0.0, 0.0), (1.0, 0.0), (0.5, 0.5), (0.5, -0.1), (float("nan"), 0.0)])
def test_shares_out_of_range_are_refused(shares: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="must be shares of the rows"):
        Holdout(*shares)


def test_resamples_are_draws_with_replacement() -> None:
    pairs = list(Bootstrap(40, random_state=2).split(np.zeros((60, 1))))
    assert len(pairs) == 40
    for rows, left in pairs:
        assert rows.size == 60
        assert sorted({*rows, *left}) == list(range(60))
        assert not set(rows) & set(left)
    share = np.mean([left.size for _, left in pairs]) / 60
    assert abs(share - (1 - 1 / 60) ** 60) < 0.03
    drawn = np.bincount(np.concatenate([rows for rows, _ in pairs]))
    assert abs(drawn / 40 - 1).max() < 0.6  # standard deviation .16


def test_a_resample_that_lacks_no_row_is_drawn_anew() -> None:
    assert all(left.size for _, left in Bootstrap(50).split(np.zeros((2, 1))))
    with pytest.raises(ValueError, match="at least 2 rows, and there is 1"):
        next(Bootstrap().split(np.zeros((1, 1))))
    for wrong in (0, 1.5):
        with pytest.raises(ValueError, match=f"n_splits={wrong} must be a whole number"):
            Bootstrap(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("cv", [Holdout(0.3), Bootstrap(5), LeaveOneOut()], ids=lambda cv: type(cv).__name__)
def test_scikit_learn_takes_trees_and_parts(cv: Any) -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    model = DecisionTreeClassifier()
    scores = cross_val_score(model, X, y, cv=cv)
    assert scores.size == cv.get_n_splits(X)
    by_hand = [DecisionTreeClassifier().fit(X[a], y[a]).score(X[b], y[b]) for a, b in cv.split(X, y)]
    assert scores.tolist() == by_hand
    search = GridSearchCV(model, {"max_depth": [1, 3]}, cv=cv).fit(X, y)
    assert search.best_params_ == {"max_depth": 3}


@pytest.mark.parametrize(
    "cv", [LeaveOneOut(), Bootstrap(4), Holdout(0.2, 0.3), KFold(3, shuffle=True, random_state=0)], ids=str
)
def test_rows_to_fit_on_are_kept_only_where_they_are_not_all_others(cv: Any) -> None:
    """Leave-one-out of n rows would hold n^2 numbers."""
    X, y = np.zeros((50, 1)), np.arange(50)
    trains = trains_of(cv, X, y)
    pairs = list(cv.split(X, y))
    assert len(trains) == len(pairs)
    for train, held, (a, b) in zip(trains, trains.held, pairs, strict=True):
        np.testing.assert_array_equal(train, a)
        np.testing.assert_array_equal(held, b)
    assert [rows.tolist() for rows in trains[1:3]] == [a.tolist() for a, _ in pairs[1:3]]
    assert all(own is None for own in trains.own) == isinstance(cv, LeaveOneOut | KFold)
    np.testing.assert_array_equal(trains.named(), np.unique(np.concatenate([part for pair in pairs for part in pair])))


def test_resamples_are_not_the_bags_of_a_forest() -> None:
    X, y = np.zeros((50, 1)), np.arange(50) % 2
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    for number, (rows, _) in enumerate(Bootstrap(3).split(X)):
        assert rows.tolist() != np.sort(forest._bag(number)).tolist()


def test_sizes_may_be_numbers_of_rows() -> None:
    X, y = np.zeros((11, 1)), np.arange(11) % 2
    for stratify in (False, True):
        holdout = Holdout(4, 2, stratify)
        ((train, held),) = holdout.split(X, y)
        assert (train.size, held.size, holdout.kept_rows(X, y).size) == (5, 4, 2)
    with pytest.raises(ValueError, match=r"test_size=4.*leaves none of 5 rows to fit on"):
        next(Holdout(4, 1).split(X[:5]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Holdout(True), "test_size=True and kept_size=0.0 must be shares of the rows"),
        (lambda: Holdout("a"), "test_size='a' and"),
        (lambda: Holdout(0.2, False), "kept_size=False must be shares"),
        (lambda: Holdout(0.2, -1), "kept_size=-1 must be shares"),
        (lambda: Holdout(0.2, 0.0, 1), "stratify=1 must be True or False"),
        (
            lambda: Holdout(random_state=-1),
            "random_state=-1 must be a whole number from 0 to 4294967295, or None for 0",
        ),
        (lambda: Holdout(random_state=1.0), "random_state=1.0 must be"),
        (lambda: Holdout(random_state=True), "random_state=True must be"),
        (lambda: Bootstrap(True), "n_splits=True must be a whole number"),
        (lambda: Bootstrap(random_state="a"), "random_state='a' must be"),
    ],
)
def test_parameters_that_are_none_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_no_seed_is_seed_0() -> None:
    X = np.zeros((9, 1))
    for one, other in ((Holdout(random_state=None), Holdout()), (Bootstrap(1, None), Bootstrap(1))):
        assert [a.tolist() for a in next(one.split(X))] == [a.tolist() for a in next(other.split(X))]


def test_parts_folds_and_shorter_rows_are_drawn_apart() -> None:
    """With one stream, the rows of a short learning curve would be the first that are held out."""
    order = np.argsort(draw(0, Stream.HOLDOUT, np.arange(1000)))
    short = part_of(np.arange(1000), 0.5)
    assert 200 < np.isin(order[:500], short).sum() < 300
