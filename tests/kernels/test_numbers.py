"""Numbers in text, against Python's own int() and float()."""

import math
import re
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import njit

from graphprep.kernels.cpu.text import numbers

relaxed = settings(deadline=None, max_examples=300)


@njit(nogil=True)
def _uint(buf, start, stop):
    return numbers.parse_uint(buf, start, stop)


@njit(nogil=True)
def _int(buf, start, stop):
    return numbers.parse_int(buf, start, stop)


@njit(nogil=True)
def _float(buf, start, stop):
    return numbers.parse_float(buf, start, stop)


def call(kernel, text):
    """Parse ``text`` with bytes around it that must not count."""
    data = np.frombuffer(b"7" + text.encode() + b"7", np.uint8)
    return kernel(data, 1, data.size - 1)


def bits(value):
    return struct.pack("<d", value)


def expected_float(text):
    stripped = text.strip(" \t")
    if not stripped:
        return numbers.EMPTY, None
    if not re.fullmatch(r"[+-]?(inf|infinity|nan|[0-9.]+(e[+-]?[0-9]+)?)", stripped, re.I | re.A):
        return numbers.INVALID, None
    try:
        value = float(stripped)
    except ValueError:
        return numbers.INVALID, None
    if math.isnan(value):
        value = math.nan
    if math.isinf(value) and "f" not in stripped.lower():
        return numbers.OVERFLOW, value
    return numbers.OK, value


def check_float(text):
    code, value = call(_float, text)
    want_code, want = expected_float(text)
    assert code == want_code, text
    if want is not None:
        assert bits(value) == bits(want), text


def expected_int(text, low, high):
    stripped = text.strip(" \t")
    if not stripped:
        return numbers.EMPTY, None
    if not re.fullmatch(r"[+-]?[0-9]+", stripped, re.A):
        return numbers.INVALID, None
    value = int(stripped)
    if low == 0 and value < 0:
        return numbers.NEGATIVE, None
    return (numbers.OK, value) if low <= value <= high else (numbers.OVERFLOW, None)


def check_int(text):
    for kernel, low, high in ((_uint, 0, 2**64 - 1), (_int, -(2**63), 2**63 - 1)):
        code, value = call(kernel, text)
        want_code, want = expected_int(text, low, high)
        assert code == want_code, text
        if want is not None:
            assert int(value) == want, text


blanks = st.sampled_from(["", " ", "\t", " \t "])
signs = st.sampled_from(["", "+", "-"])
digits = st.text("0123456789", max_size=25)


@relaxed
@given(blanks, signs, st.integers(0, 2**66) | st.sampled_from([2**63 - 1, 2**63, 2**64 - 1, 2**64]), st.integers(0, 3), blanks)
def test_integers_agree_with_python(before, sign, value, zeros, after):
    check_int(f"{before}{sign}{'0' * zeros}{value}{after}")


@relaxed
@given(st.text("+-0123456789 \te.x_ab", max_size=22))
@example("")
@example("-")
@example("+-1")
@example("1 2")
@example("1_0")
@example("0x1")
@example("-0")
@example("-00")
@example("-9223372036854775808")
@example("-9223372036854775809")
@example("00000000000000000000000000000000000001")
@example("99999999999999999999999999999999999999x")
@example("-99999999999999999999999999999999999999")
def test_any_text_as_an_integer(text):
    check_int(text)


@relaxed
@given(st.text("+-0123456789 \teE._infatyINFATYx", max_size=12))
@example("")
@example(".")
@example("-.")
@example(".e1")
@example("1.")
@example(".5")
@example("1.e5")
@example("1e")
@example("1e+")
@example("1e5.")
@example("1.2.3")
@example("1_0.0")
@example("0x1p3")
@example("infinit")
@example("-Infinity")
@example("+iNF")
@example("-nan")
@example("nano")
@example("nan(1)")
@example("-0")
@example("-0.0e999999999999999999999999")
@example("0e-999999999999999999999999")
@example("1e999999999999999999999999")
@example("-1e309")
@example("1e-999999999999999999999999")
@example("i\x0ef")
def test_any_text_as_a_float(text):
    check_float(text)


@relaxed
@given(signs, digits, digits, st.integers(-400, 400) | st.none())
def test_decimals_agree_with_python(sign, whole, fraction, exponent):
    check_float(f"{sign}{whole}.{fraction}" + ("" if exponent is None else f"e{exponent}"))


@relaxed
@given(st.integers(0, 2**64 - 1).map(lambda i: struct.unpack("<d", struct.pack("<Q", i))[0]))
@example(5e-324)
@example(2.2250738585072014e-308)
@example(2.225073858507201e-308)
@example(1.7976931348623157e308)
def test_every_float_comes_back_from_its_shortest_and_longer_texts(value):
    if math.isnan(value):
        value = math.nan
    for text in (repr(value), f"{value:.17e}", f"{value:.20g}", f"{value:.30e}", f"{value:.19f}"):
        check_float(text)


def exact_decimal(numerator, power_of_two):
    """Write ``numerator * 2**power_of_two`` as all its decimal digits, and the power of ten they stand for."""
    if power_of_two >= 0:
        return str(numerator << power_of_two), 0
    return str(numerator * 5**-power_of_two), power_of_two


@relaxed
@given(st.integers(0, 0x7FEFFFFFFFFFFFFF), st.sampled_from([-1, 0, 1]), st.integers(0, 30), st.booleans(), st.integers(0, 900))
@example(0, 0, 0, True, 3)
@example(0, 1, 800, True, 3)
@example(0x7FEFFFFFFFFFFFFF, 0, 0, False, 0)
@example(0x7FEFFFFFFFFFFFFF, -1, 0, False, 0)
@example(0x000FFFFFFFFFFFFF, 0, 0, True, 1)
def test_halfway_cases_round_as_python_does(pattern, nudge, zeros, pointed, at):
    exponent, fraction = pattern >> 52, pattern & ((1 << 52) - 1)
    mantissa = fraction | (1 << 52) if exponent else fraction
    text, power = exact_decimal(2 * mantissa + 1, max(exponent, 1) - 1076)
    text = str(int(text + "0" * (zeros + 1)) + nudge)
    power -= zeros + 1
    if pointed:
        at = min(at, len(text))
        power += len(text) - at
        text = f"{text[:at]}.{text[at:]}"
    check_float(f"{text}e{power}")


@relaxed
@given(st.integers(1, 1200), st.text("0123456789", max_size=40), st.integers(-1500, 400), st.sampled_from(["", "."]))
def test_long_mantissas_agree_with_python(length, seed, exponent, point):
    text = (seed + "9") * length
    check_float(f"{text[:3]}{point}{text[3:length]}e{exponent}")
    check_float(f"0.{'0' * length}{text[:60]}e{length + exponent % 300 - 310}")


def test_round_to_says_where_a_finite_number_became_infinite():
    values = np.array([1.5, np.inf, 65520.0, 1e300])
    rounded, at = numbers.round_to(values, np.dtype(np.float16))
    assert (rounded.dtype, at) == (np.float16, 2)
    assert numbers.round_to(values, np.dtype(np.float32))[1] == 3
    assert numbers.round_to(values, np.dtype(np.float64))[1] == -1
    assert numbers.round_to(values[:2], np.dtype(np.float32))[1] == -1


@pytest.mark.parametrize(
    ("data", "start", "want"),
    [(b"ab\r\ncd", 0, (2, 4)), (b"ab\r\ncd", 4, (6, 6)), (b"\n", 0, (0, 1)), (b"a\r\r\n", 0, (2, 4)), (b"a\r", 0, (1, 2))],
)
def test_find_line_takes_one_cr_off(data, start, want):
    assert tuple(numbers.find_line(np.frombuffer(data, np.uint8), start)) == want


@njit(nogil=True)
def _scaled(buf, start, stop, scale):
    return numbers.parse_scaled_int(buf, start, stop, scale)


def check_scaled(text, scale):
    data = np.frombuffer(b"7" + text.encode() + b"7", np.uint8)
    code, value = _scaled(data, 1, data.size - 1, scale)
    stripped = text.strip(" \t")
    if not stripped:
        assert code == numbers.EMPTY
        return
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", stripped, re.I | re.A):
        assert code == numbers.INVALID, text
        return
    exact = Fraction(stripped) * 10**scale
    if exact.denominator != 1:
        assert code == numbers.FRACTION, text
    elif not -(2**63) <= exact < 2**63:
        assert code == numbers.OVERFLOW, text
    else:
        assert (code, value) == (numbers.OK, exact), text


@relaxed
@given(signs, digits, digits, st.integers(-40, 40) | st.none(), st.sampled_from([0, 3, 6, 9]))
@example("", "9223372036854775", "807", None, 3)
@example("", "9223372036854775", "808", None, 3)
@example("-", "9223372036854775", "808", None, 3)
@example("", "1", "5", None, 0)
@example("", "5", "0000", None, 0)
@example("", "18446744073709551616", "", None, 0)
@example("", "18446744073709551616", "", -1, 0)
@example("", "18446744073709551620", "", -1, 0)
@example("", "0", "", 40, 9)
def test_scaled_integers_are_exact(sign, whole, fraction, exponent, scale):
    check_scaled(f"{sign}{whole}.{fraction}" + ("" if exponent is None else f"e{exponent}"), scale)


@relaxed
@given(st.text("+-0123456789 \teE._infat", max_size=8), st.sampled_from([0, 3]))
@example("inf", 0)
@example("-nan", 0)
@example("1e-999", 3)
@example("00", 3)
def test_any_text_as_a_scaled_integer(text, scale):
    check_scaled(text, scale)


@njit(nogil=True)
def _bool(buf, start, stop):
    return numbers.parse_bool(buf, start, stop)


@pytest.mark.parametrize(
    ("text", "want"),
    [("0", False), ("1", True), (" TrUe\t", True), ("FALSE", False), ("2", None), ("yes", None), ("tru", None), ("01", None)],
)
def test_bools(text, want):
    assert call(_bool, text) == ((numbers.INVALID, False) if want is None else (numbers.OK, want))
    assert call(_bool, " ") == (numbers.EMPTY, False)
