import math
import re
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputree.core import expr
from gputree.core.expr import Expr, absolute, constant, log2, ratio, xlogx
from gputree.core.keys import below, mix, unit
from gputree.core.scores import grid

COMMON = Path(__file__).resolve().parents[2] / "kernels" / "common.cuh"
TINY, DENORMAL, HUGE = 2.0**-1022, 5e-324, np.finfo(float).max
EDGES = np.array([0.0, DENORMAL, 3 * DENORMAL, TINY - DENORMAL, TINY, 0.5, 1.0, 2.0, 65535.0, 65536.0, 2.0**53, HUGE])
HARNESS = """
extern "C" void run(long size, const double* a, const double* b, const gt_u64* h, const gt_u64* n,
                    double* real, gt_u64* whole) {
    for (long i = 0; i < size; ++i) {
        real[i] = gt_log2(a[i]);
        real[size + i] = gt_xlogx(a[i]);
        real[2 * size + i] = gt_ratio(a[i], b[i]);
        real[3 * size + i] = gt_abs(b[i]);
        real[4 * size + i] = gt_grid(b[i], a[i]);
        real[5 * size + i] = gt_unit(h[i]);
        whole[i] = gt_mix(h[i], n[i]);
        whole[size + i] = gt_below(h[i], n[i] >> 32);
        whole[2 * size + i] = gt_draw(h[i], GT_BAG, n[i]);
    }
}
"""


def doubles(rng: np.random.Generator, size: int) -> np.ndarray:
    """Return finite doubles >= 0: any bits, about 1, denormals, whole numbers, neighbours of powers of two."""
    powers = 2.0 ** rng.integers(-1022, 1023, size)
    parts = [
        rng.integers(0, 0x7FF0000000000000, size).view(np.float64),
        np.exp(rng.normal(0, 1, size)),
        1 + rng.normal(0, 1e-9, size),
        rng.integers(0, 2**52, size).view(np.float64),
        rng.integers(0, 70_000, size).astype(np.float64),
        np.nextafter(powers, np.inf),
        np.nextafter(powers, 0),
        EDGES,
    ]
    return np.concatenate(parts)


def exact_log2(x: float) -> Fraction:
    """Return log2(x) to 2^-100 or better, from exact fractions alone."""
    mantissa, exponent = math.frexp(x)
    mantissa, exponent = (mantissa * 2, exponent - 1) if mantissa < math.sqrt(0.5) else (mantissa, exponent)
    return exponent + atanh2((Fraction(mantissa) - 1) / (Fraction(mantissa) + 1)) / LN2


def atanh2(s: Fraction) -> Fraction:
    one = 1 << 160  # fixed point
    power, square, total = int(s * one), int(s * s * one), 0
    for k in range(1, 240, 2):
        total += power // k
        power = power * square >> 160
    return Fraction(2 * total, one)


LN2 = atanh2(Fraction(1, 3))


def bits(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(np.uint64)


def test_log2_of_powers_of_two_is_exact() -> None:
    exponents = np.arange(-1074, 1024)
    np.testing.assert_array_equal(log2(np.ldexp(1.0, exponents)), exponents)


def test_log2_and_xlogx_are_accurate() -> None:
    x = doubles(np.random.default_rng(0), 300)
    x = x[(x > 0) & (x != 1) & (x < 1e300)]  # x log2(x) of larger ones may overflow
    logs, products = log2(x), xlogx(x)
    for value, log, product in zip(x, logs, products, strict=True):
        exact = exact_log2(float(value))
        assert abs(Fraction(float(log)) / exact - 1) < 5e-16
        if abs(product) > 2 * TINY:  # a denormal has fewer digits
            assert abs(Fraction(float(product)) / (exact * Fraction(float(value))) - 1) < 6e-16


def test_log2_of_a_million_numbers_agrees_with_long_double() -> None:
    if np.finfo(np.longdouble).nmant < 63:
        pytest.skip("expected: long double is no wider than double here")
    x = doubles(np.random.default_rng(1), 150_000)
    x = x[(x > 0) & (x != 1)]
    exact = np.log2(x.astype(np.longdouble))
    assert float(np.max(np.abs(log2(x) / exact - 1))) < 5e-16


def test_the_polynomial_is_atanh() -> None:
    largest = (math.sqrt(2) - 1) / (math.sqrt(2) + 1)
    for i in range(1, 101):
        s = Fraction(largest) * i / 100
        value = s * sum(Fraction(c) * s ** (2 * k) for k, c in enumerate(expr.ATANH))
        assert abs(value / (atanh2(s) / LN2) - 1) < 2e-17


def test_log2_increases_across_powers_of_two_and_near_one() -> None:
    for centre in (0.5, 1.0, 2.0**-1022, math.sqrt(0.5), math.sqrt(2), 2.0**40):
        x = centre + np.arange(-50, 50) * np.spacing(centre) * 0.5
        assert (np.diff(log2(x[x > 0])) >= 0).all()


def test_zero_is_quiet() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zero = np.zeros(3)
        assert (log2(zero) == -1077).all()
        for value in (xlogx(zero), xlogx(np.array([0.0, 0.5]))[:1], ratio(np.ones(3), zero), ratio(zero, zero)):
            assert (bits(value) == 0).all()  # not -0


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 4), (2, 3, 4)])
def test_shapes_are_kept(shape: tuple[int, ...]) -> None:
    for fill in (7.0, 7.5, 1e6):
        x = np.full(shape, fill)
        assert np.shape(log2(x)) == np.shape(xlogx(x)) == np.shape(ratio(x, x)) == shape
        np.testing.assert_allclose(xlogx(x), fill * math.log2(fill), rtol=1e-15)


def test_memory_layout_does_not_matter() -> None:
    x = np.random.default_rng(0).random((100, 300)) * 1e5
    x[::3] = np.floor(x[::3])
    for function in (log2, xlogx):
        plain = function(x)
        np.testing.assert_array_equal(function(np.asfortranarray(x)), plain)
        np.testing.assert_array_equal(function(x[::2, ::-3]), plain[::2, ::-3])


def test_the_table_is_the_function() -> None:
    whole = np.arange(70_000.0)
    mixed = np.random.default_rng(0).permutation(np.concatenate([whole, whole + 0.5, whole * 1e9]))
    for x in (whole, whole[:65536], mixed, whole + 0.25):
        np.testing.assert_array_equal(bits(xlogx(x)), bits(x * log2(x) + 0.0))


def test_ratio_broadcasts() -> None:
    np.testing.assert_array_equal(ratio(np.ones((2, 1)), np.array([0.0, 2.0, 4.0])), [[0, 0.5, 0.25]] * 2)


def test_formulas_are_traced_in_order() -> None:
    x, n = Expr("x"), Expr("n")
    assert (x + n * 2 - 1 / x).text == "((x + (n * 2.0)) - (1.0 / x))"
    assert (x - (n - 1)).text == "(x - (n - 1.0))"
    assert (3 - x * x / n + 1).text == "((3.0 - ((x * x) / n)) + 1.0)"
    assert (-x * -0.5).text == "((-x) * (-0.5))"
    assert (2.5 + x).text == "(2.5 + x)"
    assert (np.float64(0.1) * x).text == "(0.1 * x)"
    assert ratio(xlogx(x), absolute(log2(n))).text == "gt_ratio(gt_xlogx(x), gt_abs(gt_log2(n)))"
    assert constant(0.1, x).text == "0.1"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_literals_are_exact(value: float) -> None:
    text = constant(value, Expr("x")).text
    assert bits(np.array(float(text.strip("()")))) == bits(np.array(value))
    assert re.search(r"[.e]", text)  # a C literal without either is an int


@pytest.mark.parametrize("value", [math.inf, math.nan, 2**53 + 1])
def test_literals_that_c_cannot_write_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"constant .* in a formula; it must be finite and exact"):
        Expr("x") * value


def test_the_header_has_the_same_constants() -> None:
    text = COMMON.read_text(encoding="utf-8")
    assert re.findall(r"= (?:z \* |\(p \+ )(\d\.\d+)", text) == [repr(c) for c in reversed(expr.ATANH)]
    assert f"0x{int(expr.SQRT_HALF_BITS):X}LL" in text
    assert bits(np.array(math.sqrt(0.5))) == expr.SQRT_HALF_BITS


def test_c_and_numpy_agree_to_the_bit(compile_c: Callable[[str, str], Callable[..., None]]) -> None:
    rng = np.random.default_rng(2)
    a = doubles(rng, 200_000)
    b = rng.permutation(a) * rng.choice([-1.0, 1.0], a.size)
    h, n = rng.integers(0, 2**64, (2, a.size), dtype=np.uint64)
    real, whole = np.empty((6, a.size)), np.empty((3, a.size), np.uint64)
    compile_c(HARNESS, "run")(a.size, a, b, h, n, real, whole)
    with np.errstate(over="ignore"):  # these numbers go beyond what a criterion meets
        expected = [log2(a), xlogx(a), ratio(a, b), absolute(b), grid(b, a), unit(h)]
    for got, want in zip(real, expected, strict=True):
        np.testing.assert_array_equal(bits(got), bits(want))
    bag = mix(mix(h, 3), n)
    for got, want in zip(whole, [mix(h, n), below(h, n >> np.uint64(32)), bag], strict=True):
        np.testing.assert_array_equal(got, want)
