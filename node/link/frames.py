"""The messages of a link: one frame in each binary message of the WebSocket.

A frame is a byte for its kind, four for the conversation that it belongs to,
one for the channel, then data. A conversation begins with an OPEN of the server's.

| frame  | from   | data |
|--------|--------|------|
| OPEN   | server | the request, as JSON |
| DATA   | both   | bytes of a channel |
| END    | both   | of who writes a channel: it ends here; of who reads it: nobody reads it any more |
| CREDIT | reader | how many more bytes of a channel may come |
| CLOSE  | both   | from the server: the conversation is not wanted any more; from the node: the answer is complete |
| BEAT   | node   | that the node is there, with what it uses, as JSON |
"""

from __future__ import annotations

import json
import struct
from enum import IntEnum
from typing import Any, NamedTuple

HEADER = struct.Struct(">BIB")
COUNT = struct.Struct(">I")
MAX_DATA = 32 * 1024  # bytes of a channel in one frame, so that a long log lets keystrokes pass
MAX_JSON = 512 * 1024
LARGEST_FRAME = HEADER.size + MAX_JSON
STDIN, STDOUT, STDERR, LINE = 0, 1, 2, 3
CHANNELS = (STDIN, STDOUT, STDERR, LINE)
CHANNEL_OF = {"stdin": STDIN, "stdout": STDOUT, "stderr": STDERR}


class BadFrame(ValueError):
    """The other side breaks the protocol; the message says how."""


class Kind(IntEnum):
    """What a frame is."""

    OPEN = 1
    DATA = 2
    END = 3
    CREDIT = 4
    CLOSE = 5
    BEAT = 6


class Frame(NamedTuple):
    """One message of a link."""

    kind: Kind
    conversation: int = 0
    channel: int = 0
    data: bytes = b""


def encode(frame: Frame) -> bytes:
    """Return a frame as a message; BadFrame when it is longer than the other side takes."""
    if len(frame.data) > _longest(frame.kind):
        raise BadFrame(f"A frame {frame.kind.name} of {len(frame.data)} bytes is too long to be sent.")
    return HEADER.pack(frame.kind, frame.conversation, frame.channel) + frame.data


def decode(message: bytes) -> Frame:
    """Return the frame in a message; BadFrame when there is none."""
    if len(message) < HEADER.size:
        raise BadFrame(f"A message of {len(message)} bytes is no frame.")
    number, conversation, channel = HEADER.unpack_from(message)
    try:
        kind = Kind(number)
    except ValueError:
        raise BadFrame(f"There is no kind {number} of frames.") from None
    if channel not in CHANNELS:
        raise BadFrame(f"There is no channel {channel}.")
    if len(message) - HEADER.size > _longest(kind):
        raise BadFrame(f"A frame {kind.name} of {len(message)} bytes is too long.")
    return Frame(kind, conversation, channel, message[HEADER.size :])


def _longest(kind: Kind) -> int:
    if kind in (Kind.OPEN, Kind.BEAT):
        return MAX_JSON
    return {Kind.DATA: MAX_DATA, Kind.CREDIT: COUNT.size}.get(kind, 0)


def credit(conversation: int, channel: int, count: int) -> Frame:
    """Return the frame that lets so many more bytes of a channel come."""
    return Frame(Kind.CREDIT, conversation, channel, COUNT.pack(count))


def count_of(frame: Frame) -> int:
    """Return how many bytes a CREDIT lets come."""
    if len(frame.data) != COUNT.size:
        raise BadFrame("A CREDIT without a number.")
    count: int = COUNT.unpack(frame.data)[0]
    return count


def json_of(data: bytes) -> dict[str, Any]:
    """Return the object that an OPEN or BEAT carries."""
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise BadFrame("A frame does not carry the JSON object that its kind says.")
    return parsed
