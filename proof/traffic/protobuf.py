"""Bodies in protobuf: an object that replaces another names its uid and its version, which each server has made itself."""

from __future__ import annotations

from kube.protobuf import wire
from kube.protobuf.envelope import MAGIC

RAW, METADATA, UID, VERSION = 2, 1, 5, 6  # numbers of the fields in the envelope, an object, and its metadata


def naming(body: bytes, uid: str, version: str) -> bytes:
    """Return an object in its envelope with another uid and version; "" leaves what is written."""
    texts = {UID: uid.encode(), VERSION: version.encode()}
    return MAGIC + _with_texts(
        body[len(MAGIC) :], (RAW, METADATA), {number: text for number, text in texts.items() if text}
    )


def _with_texts(message: bytes, path: tuple[int, ...], texts: dict[int, bytes]) -> bytes:
    """Return a message with other texts in the message that a path of numbers leads to."""
    found, at = b"", 0
    while at < len(message):
        key, value = wire.varint(message, at, len(message))
        after = wire.skip(message, value, len(message), key & 7)
        number = key >> 3
        content: bytes | None = None
        if path and number == path[0]:
            start, end = wire.extent(message, value, after)
            content = _with_texts(message[start:end], path[1:], texts)
        elif not path:
            content = texts.get(number)
        found += message[at:after] if content is None else message[at:value] + _varint(len(content)) + content
        at = after
    return found


def _varint(number: int) -> bytes:
    return bytes((number,)) if number < 0x80 else bytes((number & 0x7F | 0x80,)) + _varint(number >> 7)
