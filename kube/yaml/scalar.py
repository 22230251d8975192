"""What a plain YAML scalar means to kubectl.

kubectl reads YAML 1.1 as Go's yaml.v2 does, which is neither YAML 1.2 nor PyYAML: `on`, `no` and `y`
are booleans, `010` is eight, `1e3` a number, `1:30` and dates are strings. A file has to mean
the same in the editor and on the command line, so those rules are written out here.
"""

from __future__ import annotations

import re

Scalar = str | int | float | bool | None

WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}
LONGEST = 100  # characters of a number; what is longer is a text, since long digits take time to become one
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?\Z")


def resolve(text: str) -> Scalar:
    """Return the value of an unquoted scalar."""
    if text in WORDS:
        return WORDS[text]
    if text[0] not in "+-.0123456789" or len(text) > LONGEST:
        return text
    plain = text.replace("_", "")
    if _INTEGER.match(plain) and len(plain) <= 66:
        return _bounded(_integer(plain))
    return _whole(float(plain)) if _FLOAT.match(plain) else text


def meaning(value: Scalar) -> str:
    """Return what a value is, in words, for a message about it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "a number" if isinstance(value, (int, float)) else "text"


def _integer(plain: str) -> int:
    sign = -1 if plain[0] == "-" else 1
    digits = plain.lstrip("+-").lower()
    if digits.startswith(("0x", "0b", "0o")):
        return sign * int(digits, 0)
    # A leading zero means octal in YAML 1.1: the trap of `mode: 0644`.
    return sign * int(digits, 8 if digits[0] == "0" else 10)


def _whole(number: float) -> int | float:
    # Go writes a float without a fraction as an integer, so that 1e3 replicas are 1000.
    return int(number) if number.is_integer() and abs(number) < 1e21 else number


def _bounded(number: int) -> int | float:
    # Go has no integers beyond 64 bits; what is larger becomes a float there.
    return number if -(2**63) <= number < 2**64 else float(number)
