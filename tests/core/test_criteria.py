import functools
import math
import operator
import warnings
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputree.core.criteria import CRITERIA, Criterion, Fold, TargetKind, fold
from gputree.core.scores import gains, gains_segmented, grid, parent
from gputree.core.texts import c_text

COUNT_CRITERIA = [name for name, c in CRITERIA.items() if c.needs is TargetKind.COUNTS and name != "log_loss"]
ALL = [name for name in CRITERIA if name != "log_loss"]
HARNESS = """
static double side(long channels, long stride, const double* x, double n, const double* X, double N) {
    double s = 0.0;
    for (long c = 0; c < channels; ++c) {
        const double t = gt_term(x[c * stride], n, X[c * stride], N);
        s = GT_FOLD_MAX ? (s < t ? t : s) : s + t;
    }
    return gt_branch(s, n, N);
}
extern "C" void run(long size, long channels, long branches, const double* x, const double* n,
                    const double* X, const double* N, double* out) {
    for (long i = 0; i < size; ++i) {
        double gain = 0.0, info = 0.0;
        for (long b = 0; b < branches; ++b) {
            gain += side(channels, size, x + b * channels * size + i, n[b * size + i], X + i, N[i]);
            info += gt_info(n[b * size + i], N[i]);
        }
        gain -= side(channels, size, X + i, N[i], X + i, N[i]);
        out[i] = gain;
        out[size + i] = info;
        out[2 * size + i] = gt_final(gain, info, N[i]);
        out[3 * size + i] = gt_grid(out[2 * size + i], gt_scale(N[i], X[i]));
    }
}
"""


def score(name: str, *branches: list[float]) -> float:
    """Return the score of one table of class counts, a list per branch."""
    x = [np.array(counts, float)[:, None] for counts in branches]
    n = [fold(Fold.SUM, counts) for counts in x]
    X, N = np.sum(x, axis=0), np.sum(n, axis=0)
    gain, info = gains(CRITERIA[name], x, n, X, N)
    return float(CRITERIA[name].final(gain, info, N)[0])


def impurity(name: str, *counts: float) -> float:
    X = np.array(counts, float)[:, None]
    return float(CRITERIA[name].impurity(X, X.sum(axis=0))[0])


def tables(
    criterion: Criterion, rng: np.random.Generator, shape: tuple[int, int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return x (branches, channels, size), n (branches, size), X and N: small, large, fractional and empty entries."""
    branches, _, size = shape
    limit = rng.choice([2, 20, 1000, 10**6, 10**9], size)
    x = np.floor(rng.random(shape) * limit) * rng.choice([1.0, 1.0, 2.0**-20, 3.0], size)
    if criterion.needs is TargetKind.COUNTS:
        n = fold(Fold.SUM, x.swapaxes(0, 1))
    else:
        n = 1.0 + np.floor(rng.random((branches, size)) * limit)
        if criterion.needs is TargetKind.CENTRED_SUMS:
            x = x * rng.choice([-1.0, 1.0], shape)
    return x, n, fold(Fold.SUM, x), fold(Fold.SUM, n)


# ---- hand-worked values ----


# Shalev-Shwartz & Ben-David, chapter 18, 18.2.1: the three measures C(a)
@pytest.mark.parametrize(
    ("a", "error", "entropy", "gini"),
    [
        (0, 0, 0.0, 0),
        (0.1, 0.1, 0.4689955935892812, 0.18),
        (0.25, 0.25, 0.8112781244591328, 0.375),
        (0.5, 0.5, 1.0, 0.5),
        (0.75, 0.25, 0.8112781244591328, 0.375),
        (0.9, 0.1, 0.4689955935892812, 0.18),
        (1, 0, 0.0, 0),
    ],
)
def test_impurities_of_two_classes(a: float, error: float, entropy: float, gini: float) -> None:
    for weight in (1.0, 20.0, 1e6):
        counts = (a * weight, (1 - a) * weight)
        assert impurity("train_error", *counts) == pytest.approx(error, abs=1e-15)
        assert impurity("entropy", *counts) == pytest.approx(entropy, abs=1e-14)  # log2(N) cancels
        assert impurity("gini", *counts) == pytest.approx(gini, abs=1e-15)


def test_impurities_of_raschka() -> None:
    # Raschka, STAT 479 chapter 6, 6.7 (printed 1, 0.81, 3.32) and 6.9
    assert impurity("entropy", 1, 1) == 1.0
    assert impurity("entropy", 3, 1) == pytest.approx(0.8112781244591328, abs=1e-15)
    assert impurity("entropy", *[1] * 10) == pytest.approx(3.321928094887362, abs=1e-15)
    assert [impurity("gini", *counts) for counts in ([1, 1], [3, 1])] == [0.5, 0.375]
    assert impurity("gini", 1, 1, 1) == pytest.approx(2 / 3, abs=1e-15)


def test_entropy_of_procaccia() -> None:
    # Procaccia, lecture 16: H(fair coin) = 1, H(0.99) printed as 0.08
    assert impurity("entropy", 0.99, 0.01) == pytest.approx(0.08079313589591118, abs=1e-15)
    # ... and the restaurants: Type has no gain, Patrons 0.541 (None 0:2, Some 4:0, Full 2:4)
    assert score("entropy", [1, 1], [1, 1], [2, 2], [2, 2]) == 0.0
    assert score("entropy", [0, 2], [4, 0], [2, 4]) / 12 == pytest.approx(0.541, abs=5e-4)


def test_gains_of_raschka() -> None:
    # Raschka, STAT 479 chapter 6, 6.8, figures 6 and 7: (40, 80) -> (28, 42) and (12, 38); printed gains 0.02 and 0
    left, right = [28.0, 42.0], [12.0, 38.0]
    entropies = [impurity("entropy", *counts) for counts in ([40, 80], left, right)]
    assert entropies == pytest.approx([0.9182958340544896, 0.9709505944546686, 0.7950402793845223], abs=1e-15)
    assert score("entropy", left, right) / 120 == pytest.approx(0.020641204212381914, abs=1e-14)
    assert score("train_error", left, right) == 0.0
    assert score("gini", left, right) / 120 == pytest.approx(0.01244444444444437, abs=1e-15)


def test_gains_of_nilsson() -> None:
    # Nilsson, chapter 6, 6.2.2: eight patterns, y = x1 x3; printed H = 0.81, R1 = 0.31, R2 = 0, R3 = 0.31
    assert impurity("entropy", 6, 2) == pytest.approx(0.8112781244591328, abs=1e-15)
    assert score("entropy", [4, 0], [2, 2]) / 8 == pytest.approx(0.31127812445913283, abs=1e-15)
    assert score("entropy", [3, 1], [3, 1]) == pytest.approx(0.0, abs=1e-14)  # exactly 0 on the grid, see below


def test_gain_ratio_of_the_weather() -> None:
    # Raschka, STAT 479 chapter 6, 6.10.1, on Quinlan's weather data: outlook .2467 / 1.5774 = .1564
    assert score("gain_ratio", [2, 3], [4, 0], [3, 2]) == pytest.approx(0.1564, abs=5e-5)


def test_variance_reduction_of_raschka() -> None:
    # Raschka, STAT 479 chapter 6, 6.12: y = 1, 2, 3, 6, mean 3; mean squared errors 3.5 -> 2/3 and 0, weighted 0.5
    squared = CRITERIA["squared_error"]
    one = np.ones(1)
    gain, _ = gains(squared, [np.array([[-3.0]]), np.array([[3.0]])], [3 * one, one], np.zeros((1, 1)), 4 * one)
    assert gain[0] / 4 == pytest.approx(3.0)
    y = np.array([1.0, 2.0, 3.0, 6.0])
    losses = [squared.loss(part - part.mean(), np.full(part.size, part.mean())).mean() for part in (y, y[:3], y[3:])]
    assert losses == pytest.approx([3.5, 2 / 3, 0], rel=1e-15)


@given(st.lists(st.integers(0, 50), min_size=2, max_size=2), st.lists(st.integers(0, 50), min_size=2, max_size=2))
def test_twoing_is_half_the_gini_decrease_for_two_classes(left: list[float], right: list[float]) -> None:
    # Breiman et al. (1984), 4.3.2
    N = sum(left) + sum(right)
    if min(sum(left), sum(right)) > 0:
        assert score("twoing", left, right) / N == pytest.approx(score("gini", left, right) / N / 2, abs=1e-14)


def test_twoing_by_hand() -> None:
    # p(j|L) = (.5, .5, 0), p(j|R) = (0, 0, 1), pL = 4/6: (2/9) / 4 * 2^2
    assert score("twoing", [2, 2, 0], [0, 0, 2]) / 6 == pytest.approx(2 / 9, rel=1e-15)


def test_chi_square_by_hand() -> None:
    # expected counts (10, 10) in each row: 4 * 5^2 / 10
    assert score("chi2", [15, 5], [5, 15]) == pytest.approx(10.0, rel=1e-14)
    assert score("chi2", [3, 1, 0], [3, 1, 0]) == pytest.approx(0.0, abs=1e-14)  # an absent class


def test_poisson_is_half_the_deviance() -> None:
    y = np.array([0.0, 1.0, 2.0, 5.0, 0.5, 4.0])
    poisson = CRITERIA["poisson"]
    parts = [y[:3], y[3:]]

    def loss(values: np.ndarray) -> float:
        mean = values.mean()
        return sum((v * math.log(v / mean) if v else 0.0) - v + mean for v in values)

    x, n = [np.array([[v.sum()]]) for v in parts], [np.array([float(v.size)]) for v in parts]
    gain, _ = gains(poisson, x, n, np.array([[y.sum()]]), np.array([6.0]))
    assert gain[0] * poisson.unit == pytest.approx(loss(y) - loss(parts[0]) - loss(parts[1]), rel=1e-14)
    assert poisson.loss(y - y.mean(), np.full(6, y.mean())).sum() == pytest.approx(loss(y), rel=1e-14)


# ---- what must always hold ----


def test_names() -> None:
    assert CRITERIA["log_loss"] is CRITERIA["entropy"]
    assert all(CRITERIA[name].name == name for name in ALL)
    assert [name for name in ALL if CRITERIA[name].two_branches] == ["twoing"]
    assert [name for name in ALL if CRITERIA[name].positive_sums] == ["poisson"]
    assert CRITERIA["poisson"].unit == math.log(2)


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_entropy_and_gini_bound_the_error(a: int, b: int) -> None:
    # Shalev-Shwartz & Ben-David, chapter 18, 18.2.1: both are upper bounds of the train error
    error = impurity("train_error", a, b)
    assert impurity("gini", a, b) >= error
    assert impurity("entropy", a, b) >= error


COUNTS = st.integers(2, 6).flatmap(
    lambda classes: st.lists(
        st.lists(st.integers(0, 50), min_size=classes, max_size=classes).filter(any), min_size=2, max_size=4
    )
)


@given(COUNTS)
def test_gains_are_positive_where_children_differ(branches: list[list[float]]) -> None:
    shares = {tuple(Fraction(int(c), int(sum(counts))) for c in counts) for counts in branches}
    N = np.array([float(sum(map(sum, branches)))])
    for name in COUNT_CRITERIA:
        criterion = CRITERIA[name]
        if criterion.two_branches and len(branches) > 2:
            continue
        rounded = grid(np.array([score(name, *branches)]), criterion.scale(N, N))
        assert rounded[0] >= 0
        if len(shares) == 1:
            assert rounded[0] == 0
        elif name != "train_error":
            assert rounded[0] > 0


@pytest.mark.parametrize("name", ALL)
def test_empty_branches_and_nodes_are_quiet(name: str) -> None:
    criterion = CRITERIA[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x, zero = np.array([[3.0]]), np.zeros((1, 1))
        for X, N in ((x, 4 * np.ones(1)), (zero, np.zeros(1))):
            gain, info = gains(criterion, [X, zero], [N, np.zeros(1)], X, N)
            assert gain[0] == 0
            assert criterion.final(gain, info, N)[0] == 0
            if criterion.needs is TargetKind.COUNTS:
                assert criterion.impurity(X, N)[0] >= 0
            else:
                assert criterion.loss(zero[0], zero[0])[0] == 0


def test_a_criterion_of_counts_has_no_loss() -> None:
    with pytest.raises(TypeError, match="'gini' reads counts"):
        CRITERIA["gini"].loss(np.ones(1), np.ones(1))


# ---- order of additions ----


def test_fold_adds_in_channel_order() -> None:
    terms = np.random.default_rng(0).random((100, 3))
    # not sum(): from Python 3.12 on it compensates for rounding
    expected = [functools.reduce(operator.add, column, 0.0) for column in terms.T.tolist()]
    np.testing.assert_array_equal(fold(Fold.SUM, terms), expected)
    # contiguous along the channels, where NumPy's own sum adds in pairs
    np.testing.assert_array_equal(fold(Fold.SUM, terms[:, :1].copy()), expected[:1])
    np.testing.assert_array_equal(fold(Fold.MAX, terms), terms.max(axis=0))


@pytest.mark.parametrize("name", [name for name in ALL if name != "twoing"])
def test_segmented_gains_equal_gains(name: str) -> None:
    rng = np.random.default_rng(3)
    criterion = CRITERIA[name]
    channels = 5 if criterion.needs is TargetKind.COUNTS else 1
    gain, info, columns, starts = [], [], [], [0]
    for branches in (1, 2, 3, 8, 9, 100, 2, 700):
        x, n, X, N = tables(criterion, rng, (branches, channels, 1))
        one_gain, one_info = gains(criterion, list(x), list(n), X, N)
        gain.append(one_gain[0])
        info.append(one_info[0])
        columns.append(np.vstack([x[:, :, 0].T, n.T, np.repeat(X, branches, 1), np.repeat(N, branches)[None]]))
        starts.append(starts[-1] + branches)
    cells = np.hstack(columns)
    x, n, X, N = cells[:channels], cells[channels], cells[channels + 1 : -1], cells[-1]
    got = gains_segmented(criterion, x, n, X, N, np.array(starts[:-1]))
    np.testing.assert_array_equal(got[0], gain)
    np.testing.assert_array_equal(got[1], info)


def test_node_totals_broadcast() -> None:
    rng = np.random.default_rng(4)
    for name in ALL:
        criterion = CRITERIA[name]
        x, n, X, N = tables(criterion, rng, (2, 3 if criterion.needs is TargetKind.COUNTS else 1, 50))
        X, N = np.repeat(X[:, :1] + X.max(), 50, axis=1), np.full(50, N.sum())
        wide, _ = gains(criterion, list(x), list(n), X, N)
        narrow, _ = gains(criterion, list(x), list(n), X[:, :1], N[:1])
        np.testing.assert_array_equal(wide, narrow)
        assert parent(criterion, X, N).shape == (50,)


@pytest.mark.parametrize("name", ALL)
def test_traced_c_and_numpy_agree_to_the_bit(name: str, compile_c: Callable[[str, str], Callable[..., None]]) -> None:
    rng = np.random.default_rng(5)
    criterion = CRITERIA[name]
    run = compile_c(c_text(criterion) + HARNESS, "run")
    classes = range(2, 13) if criterion.needs is TargetKind.COUNTS else [1]
    for channels in classes:
        for branches in (2,) if criterion.two_branches else (2, 3):
            size = 100_000 // len(classes) // (1 if criterion.two_branches else 2) + 1
            x, n, X, N = tables(criterion, rng, (branches, channels, size))
            out = np.empty((4, size))
            run(size, channels, branches, np.ascontiguousarray(x), np.ascontiguousarray(n), X, N, out)
            gain, info = gains(criterion, list(x), list(n), X, N)
            final = criterion.final(gain, info, N)
            expected = np.array([gain, info, final, grid(final, criterion.scale(N, X[0]))])
            np.testing.assert_array_equal(out.view(np.uint64), expected.view(np.uint64))


def test_traced_text_of_gain_ratio() -> None:
    # written out, so that a changed formula shows in review
    head = "static __device__ __forceinline__ double "
    assert c_text(CRITERIA["gain_ratio"]).splitlines() == [
        "#define GT_FOLD_MAX 0",
        head + "gt_term(double x, double n, double X, double N) { return gt_xlogx(x); }",
        head + "gt_branch(double s, double n, double N) { return (s - gt_xlogx(n)); }",
        head + "gt_info(double n, double N) { return gt_xlogx(n); }",
        head + "gt_final(double gain, double info, double N) { return gt_ratio(gain, (gt_xlogx(N) - info)); }",
        head + "gt_scale(double N, double X) { return 1.0; }",
        head + "gt_gain_scale(double N, double X) { return gt_xlogx(N); }",
    ]


# ---- grid ----

FINITE = st.floats(allow_nan=False, allow_infinity=False)
SCALE = st.floats(0, 2.0**1000)


def exact_grid(score: float, scale: float) -> float:
    size = max(abs(score), scale)
    if size == 0:
        return 0.0
    mantissa, exponent = math.frexp(size)  # 0.5 <= mantissa < 1
    q = Fraction(2) ** ((exponent - 1 if mantissa == 0.5 else exponent) - 40)
    return float(round(Fraction(score) / q) * q)  # half to even


@given(st.floats(-(2.0**1000), 2.0**1000), SCALE)
def test_grid_is_the_definition(score: float, scale: float) -> None:
    if max(abs(score), scale) >= 2.0**-1022:
        assert grid(np.array([score]), np.array([scale]))[0] == exact_grid(score, scale)


@given(FINITE, FINITE, SCALE)
def test_grid_is_monotone_and_idempotent(a: float, b: float, scale: float) -> None:
    scores = np.sort([a, b])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rounded = grid(scores, np.array(scale))
        assert rounded[0] <= rounded[1]
        np.testing.assert_array_equal(grid(rounded, np.array(scale)), rounded)


def test_grid_of_special_scores() -> None:
    scores = np.array([0.0, -0.0, np.inf, -np.inf, 2.0**-1000, 1e308])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(grid(scores, np.zeros(6)), scores)
        np.testing.assert_array_equal(grid(np.array([0.0, 5e-324]), np.array([5.0, 0.0])), [0.0, 0.0])
    assert grid(np.array(0.5), np.array(1.0)) == 0.5


def test_grid_joins_what_rounding_parts() -> None:
    # one gain by three routes: branches in either order, and classes renamed
    tables_ = [([28, 42], [12, 38]), ([12, 38], [28, 42]), ([42, 28], [38, 12])]
    N = np.array([120.0])
    for name in COUNT_CRITERIA:
        values = np.array([score(name, *table) for table in tables_])
        assert np.unique(grid(values, CRITERIA[name].scale(N, N))).size == 1
