"""The messages of the live socket, JSON in both directions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

LONGEST_TOPIC = 2000
Short = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_TOPIC)]


class Subscribe(msgspec.Struct, tag_field="op", tag="subscribe", kw_only=True):
    """Ask for a topic from a revision on, or for a stream; the id of a topic is the topic itself."""

    id: Short
    topic: Annotated[str, msgspec.Meta(max_length=LONGEST_TOPIC)] = ""
    stream: Annotated[str, msgspec.Meta(max_length=LONGEST_TOPIC)] = ""
    revision: Annotated[int, msgspec.Meta(ge=0)] = 0


class Unsubscribe(msgspec.Struct, tag_field="op", tag="unsubscribe"):
    """End what was subscribed under the id."""

    id: Short


class Ping(msgspec.Struct, tag_field="op", tag="ping"):
    """Ask for a head at once."""


_reader: msgspec.json.Decoder[Subscribe | Unsubscribe | Ping] = msgspec.json.Decoder(Subscribe | Unsubscribe | Ping)


def _plain(value: object) -> str:
    """Return the text of a rendered template: msgspec takes str itself, and no class derived from it."""
    if isinstance(value, str):
        return str.__str__(value)
    raise NotImplementedError(f"{type(value)} cannot be sent.")


_writer = msgspec.json.Encoder(enc_hook=_plain)


def read(text: str | bytes) -> Subscribe | Unsubscribe | Ping:
    """Read a client's message or raise msgspec.MsgspecError."""
    return _reader.decode(text)


def parts(topic: str, revision: int, changed: Mapping[str, str], order: list[str] | None) -> str:
    """Changed parts of a topic, and its order when the members changed."""
    message: dict[str, Any] = {"op": "parts", "id": topic, "revision": revision, "set": changed}
    if order is not None:
        message["order"] = order
    return _text(message)


def denied(topic: str, message: str) -> str:
    """The end of a subscription, and why."""
    return _text({"op": "denied", "id": topic, "message": message})


def head(revision: int, now: int) -> str:
    """The newest revision and the server's clock."""
    return _text({"op": "head", "revision": revision, "now": now})


def log(stream: str, item: Mapping[str, Any]) -> str:
    """One item of a stream."""
    return _text({"op": "log", "id": stream, **item})


def _text(message: Mapping[str, Any]) -> str:
    return _writer.encode(message).decode()
