"""What a server makes up, such as uids and versions: symbols in its place, so that two servers' answers can be compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

UID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
HASH = r"[0-9A-F]{128}"  # of a document of OpenAPI
# Values that are another each time and that nobody refers to: only that they look like this is compared.
SHAPES = {
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "microtime": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z",
    "age": r"(?:\d+[smhdy])+",
    "address": r"127\.0\.0\.1:\d+",
    "token": r"[\w-]+(?:[._][\w-]+)*",
}
# Values that requests refer to: one number for each.
NUMBERED = {"uid": UID, "hash": HASH, "version": r"\d+", "name": r"[a-z0-9.-]+", "continue": r"[\w=-]+"}
SYMBOL = re.compile(rf"<({'|'.join(NUMBERED)}):(\d+)>|<({'|'.join(SHAPES)})>")
_BY_KEY = {"resourceVersion": "version", "continue": "continue"}
_SUFFIX = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}")


class Symbols:
    """Gives the values of one recording their symbols, in the order in which they come."""

    def __init__(self) -> None:
        self._symbols: dict[str, dict[str, str]] = {kind: {} for kind in NUMBERED}

    def of(self, kind: str, value: str) -> str:
        """Return the symbol of a value."""
        symbols = self._symbols[kind]
        return symbols.setdefault(value, f"<{kind}:{len(symbols) + 1}>")

    def note_name(self, request: Any, answer: Any) -> None:
        """Learn the name that a server made for an object."""
        try:
            prefix, name = request["metadata"]["generateName"], answer["metadata"]["name"]
        except (KeyError, TypeError):
            return
        if name.startswith(prefix) and _SUFFIX.fullmatch(name[len(prefix) :]):
            self.of("name", name)

    def text(self, text: str) -> str:
        """Put symbols in the place of uids, made names and addresses."""
        for kind in ("uid", "hash"):
            text = re.sub(NUMBERED[kind], self._replacing(kind), text)
        text = re.sub(SHAPES["address"], "<address>", text)
        for name, symbol in self._symbols["name"].items():
            text = text.replace(name, symbol)
        return text

    def path(self, path: str) -> str:
        """Put symbols into a path with its query."""
        for key, kind in _BY_KEY.items():
            path = re.sub(rf"(?<=[?&]{key}=)({NUMBERED[kind]})", self._replacing(kind), path)
        return self.text(path)

    def _replacing(self, kind: str) -> Callable[[re.Match[str]], str]:
        return lambda found: found[0] if found[0] == "0" else self.of(kind, found[0])

    def requested(self, value: Any, key: str = "") -> Any:
        """Put symbols into a request's body; times stay, since a server has to be able to read them."""
        return _mapped(value, key, lambda text, of: self._value(text, of, is_answer=False))

    def answered(self, value: Any) -> Any:
        """Put symbols into an answer."""
        return _mapped(value, "", lambda text, of: self._value(text, of, is_answer=True))

    def _value(self, text: str, key: str, *, is_answer: bool) -> str:
        kind = _BY_KEY.get(key)
        if kind and text not in {"", "0"} and re.fullmatch(NUMBERED[kind], text):
            return self.of(kind, text)
        if is_answer and key == "token":
            return "<token>"
        if is_answer:
            for shape in ("time", "microtime"):
                text = re.sub(SHAPES[shape], f"<{shape}>", text)
            if key == "cells" and re.fullmatch(SHAPES["age"], text):
                return "<age>"
        return self.text(text)


class Bindings:
    """What the symbols of a recording stand for at another server."""

    def __init__(self) -> None:
        self._bound: dict[str, str] = {}

    def fill(self, value: Any) -> Any:
        """Put what they stand for in the place of symbols; KeyError for one that no answer has had."""
        return _mapped(value, "", lambda text, _: SYMBOL.sub(lambda found: self._bound[found[0]], text))

    def fill_bound(self, text: str) -> str:
        """Put what they stand for in the place of those symbols that are known."""
        return SYMBOL.sub(lambda found: self._bound.get(found[0], found[0]), text)

    def matches(self, recorded: str, found: str, *, is_bound: bool = True) -> bool:
        """Whether a text is the recorded one but for what symbols stand for; learn what they stand for.

        With is_bound=False it may be something else than at another place.
        """
        names: dict[str, str] = {}
        pattern, end = "", 0
        for symbol in SYMBOL.finditer(recorded):
            pattern += re.escape(recorded[end : symbol.start()]) + self._pattern(symbol, names, is_bound=is_bound)
            end = symbol.end()
        matched = re.fullmatch(pattern + re.escape(recorded[end:]), found)
        if matched:
            for name, group in names.items():
                self._bound.setdefault(name, matched[group])
        return matched is not None

    def _pattern(self, symbol: re.Match[str], names: dict[str, str], *, is_bound: bool) -> str:
        if symbol[3]:
            return SHAPES[symbol[3]]
        if is_bound and symbol[0] in self._bound:
            return re.escape(self._bound[symbol[0]])
        if symbol[0] in names:
            return f"(?P={names[symbol[0]]})"
        names[symbol[0]] = f"symbol{len(names)}"
        return f"(?P<{names[symbol[0]]}>{NUMBERED[symbol[1]]})"


def _mapped(value: Any, key: str, change: Callable[[str, str], str]) -> Any:
    """Return a JSON value with each of its texts changed, knowing the key that it is under."""
    if isinstance(value, dict):
        if value.get("path") == "/metadata/resourceVersion" and "value" in value:  # an operation of a JSON patch
            return {**value, "value": _mapped(value["value"], "resourceVersion", change)}
        return {_mapped(name, "", change): _mapped(each, name, change) for name, each in value.items()}
    if isinstance(value, list):
        return [_mapped(each, key, change) for each in value]
    return change(value, key) if isinstance(value, str) else value
