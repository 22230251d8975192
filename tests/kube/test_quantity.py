from __future__ import annotations

import contextlib
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import quantity
from tests.tables import cases

SUFFIXES = ["", *[s for s in quantity.DECIMAL if s], *quantity.BINARY]
values = st.fractions(min_value=-(2**40), max_value=2**40, max_denominator=1).map(lambda f: f / 1000)
texts = st.builds(
    lambda sign, whole, decimals, suffix: f"{sign}{whole}{decimals}{suffix}",
    st.sampled_from(["", "+", "-"]),
    st.integers(0, 7),
    st.sampled_from(["", ".", ".5", ".125", ".000001"]),
    st.sampled_from(SUFFIXES),
)


@cases("text, expected", {
    "whole": ("1", 1),
    "milli": ("500m", Fraction(1, 2)),
    "nano": ("1n", Fraction(1, 10**9)),
    "micro": ("2u", Fraction(2, 10**6)),
    "kilo": ("3k", 3000),
    "binary with decimals": ("1.5Gi", 1536 * 2**20),
    "largest binary suffix": ("7Ei", 7 * 2**60),
    "E alone is exa": ("9E", 9 * 10**18),
    "E with digits is an exponent": ("2E3", 2000),
    "negative exponent": ("2e-3", Fraction(1, 500)),
    "signed exponent": ("1e+2", 100),
    "no digit before the point": (".5", Fraction(1, 2)),
    "no digit after the point": ("5.", 5),
    "negative": ("-1Ki", -1024),
    "plus sign": ("+1M", 10**6),
    "plain number": (2, 2),
    "number with decimals means its decimals": (0.1, Fraction(1, 10)),
})  # fmt: skip
def test_every_spelling_is_read_exactly(text, expected):
    assert quantity.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "1 ", " 1", "1\n", ".", "-", "1.2.3", "1ki", "1KI", "1mi", "1Kib", "1e", "1e1.5", "0x10", "1_000",
        "\u0661", "1e999999", "1e-999999", "1e37", "9" * 10_000_000, "1e" + "9" * 1000, "8Ei", "1e19", 2**63,
        float("nan"), float("inf"), 1e300, True, None, [], {}, b"1",
    ],
    ids=lambda text: repr(text)[:20],
)  # fmt: skip
def test_what_is_no_quantity_is_refused_with_a_sentence(text):
    with pytest.raises(quantity.QuantityError) as refused:
        quantity.parse(text)
    assert str(refused.value).endswith(".")
    assert len(str(refused.value)) < 250


@cases("text, expected", {
    "zero has no suffix": ("0Gi", "0"),
    "binary moves up": ("1024Ki", "1Mi"),
    "binary without decimals": ("1.5Gi", "1536Mi"),
    "binary stays": ("512Ki", "512Ki"),
    "small binary becomes decimal": ("0.5Ki", "512"),
    "binary that is not whole becomes decimal": ("1.0001Ki", "1024102400u"),
    "decimal moves up": ("1000", "1k"),
    "decimals move down": ("1.5", "1500m"),
    "milli moves up": ("1000000m", "1k"),
    "less than a thousand stays": ("100", "100"),
    "exponent stays an exponent": ("1000e3", "1e6"),
    "exponent of zero is left out": ("1e0", "1"),
    "finer than nano is rounded up": ("0.1n", "1n"),
    "negative": ("-1.5", "-1500m"),
    "fraction": (Fraction(1, 3), "333333334n"),
    "number is decimal": (2048, "2048"),
})  # fmt: skip
def test_canonical_form_is_that_of_kubernetes(text, expected):
    assert quantity.canonical(text) == expected
    assert quantity.canonical(Fraction(3 * 2**30), binary=True) == "3Gi"


@given(values, st.booleans())
def test_canonical_form_keeps_the_value(value, binary):
    assert quantity.parse(quantity.canonical(value, binary=binary)) == value
    assert 0 <= quantity.units(value) - value < 1
    assert 0 <= quantity.milli(value) - value * 1000 < 1


@given(texts, texts)
def test_canonical_form_keeps_the_order_of_what_is_not_rounded(a, b):
    low, high = sorted((a, b), key=quantity.parse)
    assert quantity.parse(quantity.canonical(low)) <= quantity.parse(quantity.canonical(high))
    assert quantity.canonical(quantity.canonical(a)) == quantity.canonical(a)


@given(st.decimals(min_value=-(10**9), max_value=10**9, places=3))
def test_reading_agrees_with_decimal_arithmetic(number):
    assert quantity.parse(f"{number}") == Fraction(Decimal(number))


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(quantity.QuantityError):
        quantity.parse(text)
