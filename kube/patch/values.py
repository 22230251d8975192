"""What the kinds of patches share: their errors, and copying, comparing and ordering JSON."""

from __future__ import annotations

from typing import Any


class PatchError(ValueError):
    """The patch cannot be read or does not apply; the message says why.

    `detail` is the message with values of the object, for clients that may read that.
    """

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail or message


class PatchTooLargeError(PatchError):
    """The patch has too many operations or would blow up the object."""


def copy(value: Any) -> Any:
    """Return JSON that shares nothing with value."""
    if type(value) is dict:
        return {key: copy(item) for key, item in value.items()}
    if type(value) is list:
        return [copy(item) for item in value]
    return value


def same(a: Any, b: Any) -> bool:
    """Compare as JSON does: true is not 1, but 1 is 1.0."""
    if type(a) is dict and type(b) is dict:
        return a.keys() == b.keys() and all(same(item, b[key]) for key, item in a.items())
    if type(a) is list and type(b) is list:
        return len(a) == len(b) and all(map(same, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def in_order(result: dict[str, Any], target: dict[str, Any]) -> dict[str, Any]:
    """Give the keys that were there before their old places, so that a patch does not shuffle an object."""
    return {key: result[key] for key in target if key in result} | result
