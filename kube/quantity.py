"""Kubernetes quantities: exact numbers with a unit, such as `500m`, `1.5Gi` or `2e3`.

A quantity is read into a `Fraction`, so that nothing is lost; `milli` and
`units` round up, as Kubernetes does. Input that would take long (huge
exponents, endless digits) is refused before any arithmetic.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

LARGEST = 2**63 - 1
LONGEST_TEXT = 64
LARGEST_EXPONENT = 36

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SYMBOL = {exponent: suffix for suffix, exponent in DECIMAL.items()}
_MULTIPLES = {suffix: Fraction(2**power) for suffix, power in BINARY.items()} | {
    suffix: Fraction(10) ** power for suffix, power in DECIMAL.items()
}
# Of the text of a quantity, as Python and Go understand it.
PATTERN = r"([+-]?)(\d+\.?\d*|\.\d+)(?:(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])|[eE]([+-]?\d{1,6}))?"
_TEXT = re.compile(PATTERN, re.ASCII)


class QuantityError(ValueError):
    """The text is not a quantity; the message says why."""


Readable = str | int | float | Fraction


def parse(text: str | int | float) -> Fraction:
    """Return the exact value of a quantity as JSON holds it: a text, or a plain number."""
    if type(text) is str:
        return _parse(text)
    if isinstance(text, bool) or not isinstance(text, int | float):
        raise QuantityError(f"A quantity is a text or a number, not {type(text).__name__}.")
    if isinstance(text, int) and abs(text) > LARGEST:
        raise QuantityError(f"The quantity is larger than {LARGEST}.")
    return _parse(repr(text))


def milli(q: Readable) -> int:
    """Return q in thousandths, rounded up."""
    return _ceil(_value(q) * 1000)


def units(q: Readable) -> int:
    """Return q in whole units, rounded up."""
    return _ceil(_value(q))


def canonical(q: Readable, *, binary: bool = False) -> str:
    """Write q as Kubernetes does: the largest suffix that leaves a whole number.

    A text keeps its way of writing (1024Ki becomes 1Mi, 1000k becomes 1M, 1000e3
    becomes 1e6); a Fraction is written in decimal, or with Ki, Mi ... if binary.
    What is finer than a billionth is rounded up.
    """
    value = _value(q)
    if value == 0:
        return "0"
    written = _TEXT.fullmatch(q) if isinstance(q, str) else None
    if written and written[3] in BINARY:
        binary = True
    if binary and value.denominator == 1 and abs(value) >= 1024:
        return _binary(int(value))
    return _decimal(value, exponent_form=bool(written and written[4]))


@lru_cache(maxsize=8192)
def _parse(text: str) -> Fraction:
    match = _TEXT.fullmatch(text) if len(text) <= LONGEST_TEXT else None
    if match is None:
        raise QuantityError(
            f"{text[:LONGEST_TEXT]!r} is not a quantity; write a number and one of n u m k M G T P E Ki Mi Gi Ti Pi Ei."
        )
    sign, digits, suffix, exponent = match.groups()
    if exponent and abs(int(exponent)) > LARGEST_EXPONENT:
        raise QuantityError(f"The exponent of {text!r} is out of range; it may be at most {LARGEST_EXPONENT}.")
    factor = Fraction(10) ** int(exponent) if exponent else _MULTIPLES[suffix or ""]
    value = Fraction(digits) * factor
    if value > LARGEST:
        raise QuantityError(f"The quantity {text!r} is larger than {LARGEST}.")
    return -value if sign == "-" else value


def _value(q: Readable) -> Fraction:
    return q if isinstance(q, Fraction) else parse(q)


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)


def _binary(number: int) -> str:
    power = 0
    while number % 1024 == 0 and power < 60:
        number //= 1024
        power += 10
    suffix = next((s for s, p in BINARY.items() if p == power), "")
    return f"{number}{suffix}"


def _decimal(value: Fraction, *, exponent_form: bool) -> str:
    # Kubernetes keeps nine decimals and rounds away from zero.
    nanos = _ceil(abs(value) * 10**9)
    exponent = -9
    while nanos % 1000 == 0 and exponent < 18:
        nanos //= 1000
        exponent += 3
    sign = "-" if value < 0 else ""
    if exponent_form:
        return f"{sign}{nanos}e{exponent}" if exponent else f"{sign}{nanos}"
    return f"{sign}{nanos}{_SYMBOL[exponent]}"
