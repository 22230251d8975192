"""The arguments of a plugin: flags as Go's package `flag` reads them (reference: volcano-job §5.1).

`--name=value`, `-name=value` or `--name value`; a yes-or-no flag stands alone or with `=`. At the first word that is
wrong the reading stops: what was read before it holds, and everything else keeps its default. A word that is no flag
ends the flags, as `--` does. Of two of a name the later one holds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Value = str | int | bool
Values = Mapping[str, Value]
Flags = Mapping[str, Value]  # name → default, whose type is that of the flag

_YES = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_NO = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_WHOLE = re.compile(r"[+-]?[0-9][0-9A-Za-z_]*")
_OCTAL = re.compile(r"([+-]?)0([0-7_]+)")
_LEAST, _MOST = -(2**63), 2**63 - 1


class Parsed(NamedTuple):
    """The value of every flag, and what stopped the reading, as a sentence for people."""

    values: Values
    problem: str = ""


class _Wrong(ValueError):
    """A word at which the reading stops."""


def parse(words: Sequence[str], flags: Flags) -> Parsed:
    """Return what the words make of the flags."""
    values = dict(flags)
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--" and not left:
            break
        try:
            name, value = _read(word, left, flags)
        except _Wrong as error:
            return Parsed(values, f"{error}; {'it and what follows it are' if left else 'it is'} ignored.")
        values[name] = value
    return Parsed(values)


def _read(word: str, left: list[str], flags: Flags) -> tuple[str, Value]:
    """Return the flag that a word begins and its value, which may be the next word."""
    if word == "--":
        raise _Wrong('"--" ends the flags')
    body = word[2:] if word.startswith("--") else word[1:]
    if not word.startswith("-") or not body or body.startswith(("-", "=")):
        raise _Wrong(f'"{word}" is no flag')
    # The first character is never the separator.
    name, separator, text = body.partition("=")
    if name not in flags:
        names = ", ".join(f"--{each}" for each in flags) or "none"
        raise _Wrong(f"--{name} is not known (flags: {names})")
    default = flags[name]
    if isinstance(default, bool):
        if separator and text not in _YES | _NO:
            raise _Wrong(f'--{name} must be true or false, and is "{text}"')
        return name, not separator or text in _YES
    if not separator:
        if not left:
            raise _Wrong(f"--{name} needs a value")
        text = left.pop(0)
    return name, _whole(name, text) if isinstance(default, int) else text


def _whole(name: str, text: str) -> int:
    """Read a number as Go's strconv.ParseInt does with base 0: decimal, 0x…, 0o…, 0b… or 0…, with underscores."""
    try:
        octal = _OCTAL.fullmatch(text)
        if octal is not None:
            number = int(f"{octal[1]}0o{octal[2]}", 0)
        elif _WHOLE.fullmatch(text):
            number = int(text, 0)
        else:
            raise ValueError
    except ValueError:
        raise _Wrong(f'--{name} must be a whole number, and is "{text}"') from None
    if not _LEAST <= number <= _MOST:
        raise _Wrong(f"--{name} must be a whole number of 64 bits, and is {text}")
    return number
