"""JSON patch (RFC 6902): a list of operations on places in an object."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from kube.errors import quoted
from kube.patch.values import PatchError, PatchTooLargeError, copy, same

MAX_OPERATIONS = 10_000  # reference: kubernetes-api §2.3
MAX_COPIED_BYTES = 3 * 2**20  # what "copy" operations may add; each can double the object

_INDEX = re.compile(r"0|[1-9]\d{0,9}", re.ASCII)


def apply(target: Any, ops: Any) -> Any:
    """Return target after all operations; PatchError names the first that does not apply."""
    if not isinstance(ops, list | tuple):
        raise PatchError("A JSON patch is a list of operations.")
    if len(ops) > MAX_OPERATIONS:
        raise PatchTooLargeError(f"The patch has {len(ops)} operations; {MAX_OPERATIONS} are allowed.")
    document = _Document(copy(target))
    for number, op in enumerate(ops):
        try:
            _do(document, op)
        except PatchError as error:
            texts = (f"Operation {number} does not apply: {text}" for text in (error, error.detail))
            raise type(error)(*texts) from None
    return document.root


def _do(document: _Document, op: Any) -> None:
    if type(op) is not dict or type(op.get("path")) is not str:
        raise PatchError("an operation is an object with op and path.")
    run = _RUN.get(op["op"]) if type(op.get("op")) is str else None
    if run is None:
        raise PatchError(f"{str(op.get('op'))[:40]!r} is not an operation; use {', '.join(_RUN)}.")
    run(document, op["path"], op)


def _value(op: dict[str, Any]) -> Any:
    if "value" not in op:
        raise PatchError(f"{op['op']} needs a value.")
    return op["value"]


def _source(op: dict[str, Any]) -> str:
    if type(op.get("from")) is not str:
        raise PatchError(f"{op['op']} needs from.")
    return str(op["from"])


def _move(document: _Document, path: str, op: dict[str, Any]) -> None:
    source = _source(op)
    if path.startswith(source + "/"):
        raise PatchError("a value cannot be moved into itself.")
    if path == source:
        document.get(path)  # nothing moves, but the value must be there
    else:
        document.add(path, document.remove(source))


def _test(document: _Document, path: str, op: dict[str, Any]) -> None:
    actual, expected = document.get(path), _value(op)
    if not same(actual, expected):
        value_text = f"the value at {path[:200]!r}"
        raise PatchError(
            f"{value_text} is another one than the test expects.",
            f"{value_text} is {quoted(actual)}, and the test expects {quoted(expected)}.",
        )


_RUN: dict[str, Callable[[_Document, str, dict[str, Any]], object]] = {
    "add": lambda document, path, op: document.add(path, copy(_value(op))),
    "remove": lambda document, path, _: document.remove(path),
    "replace": lambda document, path, op: document.replace(path, copy(_value(op))),
    "move": _move,
    "copy": lambda document, path, op: document.add(path, document.copied(_source(op))),
    "test": _test,
}


class _Document:
    """The value that a JSON patch works on, changed in place."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.copied_bytes = 0

    def get(self, path: str) -> Any:
        value = self.root
        for part in _pointer(path):
            value = value[_existing(value, part, path)]
        return value

    def add(self, path: str, value: Any) -> None:
        if not path:
            self.root = value
            return
        parent, part = self._parent(path)
        if type(parent) is list:
            parent.insert(len(parent) if part == "-" else _index(part, len(parent), path), value)
        elif type(parent) is dict:
            parent[part] = value
        else:
            raise _missing(path)

    def remove(self, path: str) -> Any:
        if not path:
            value, self.root = self.root, None
            return value
        parent, part = self._parent(path)
        there = _existing(parent, part, path)
        return parent.pop(there)

    def replace(self, path: str, value: Any) -> None:
        if not path:
            self.root = value
            return
        parent, part = self._parent(path)
        parent[_existing(parent, part, path)] = value

    def copied(self, path: str) -> Any:
        value = self.get(path)
        self.copied_bytes += len(msgspec.json.encode(value))
        if self.copied_bytes > MAX_COPIED_BYTES:
            raise PatchTooLargeError(f"the copies come to more than {MAX_COPIED_BYTES} bytes.")
        return copy(value)

    def _parent(self, path: str) -> tuple[Any, str]:
        *above, part = _pointer(path)
        value = self.root
        for name in above:
            value = value[_existing(value, name, path)]
        return value, part


def _pointer(path: str) -> list[str]:
    if path and not path.startswith("/"):
        raise PatchError(f"{path[:200]!r} is not a JSON pointer; it must start with a slash.")
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _existing(value: Any, part: str, path: str) -> Any:
    """Return the key or index of an existing item of value."""
    if type(value) is dict and part in value:
        return part
    if type(value) is list:
        return _index(part, len(value) - 1, path)
    raise _missing(path)


def _index(part: str, last: int, path: str) -> int:
    if not _INDEX.fullmatch(part) or int(part) > last:
        raise _missing(path)
    return int(part)


def _missing(path: str) -> PatchError:
    return PatchError(f"there is nothing at {path[:200]!r}.")
