"""The arguments of a plugin: flags as Go's package `flag` reads them (reference: volcano-job §5.1).

`--name=value`, `-name=value` or `--name value`; a boolean flag stands alone or with `=`. Parsing stops at the first wrong
word: flags before it keep their values, all others their defaults. A word that is not a flag ends the flags, as `--`
does. If a flag is given twice, the later value counts.
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
    """The value of every flag, and a sentence about the word at which parsing stopped, "" for none."""

    values: Values
    problem: str = ""


class _Wrong(ValueError):
    """A word at which parsing stops."""


def parse(words: Sequence[str], flags: Flags) -> Parsed:
    """Return the values of the flags after these words."""
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
    """Return the name and value of the flag in a word; the value may be the next word, which is then taken from `left`."""
    if word == "--":
        raise _Wrong('"--" ends the flags')
    body = word[2:] if word.startswith("--") else word[1:]
    if not word.startswith("-") or not body or body.startswith(("-", "=")):
        raise _Wrong(f'"{word}" is no flag')
    # `body` does not begin with "=" (checked above), so the name is not empty.
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
    """Return a number as Go's strconv.ParseInt reads it with base 0: decimal, 0x…, 0o…, 0b… or 0…, with underscores."""
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
