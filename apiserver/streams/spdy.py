"""The frames of SPDY/3.1, as the server of a connection reads and writes them: bytes in, events out, and nothing of I/O.

Kubernetes' clients tunnel it through a WebSocket to forward ports (reference: kubernetes-api §3.7). The protocol is that of
https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1/. A peer that breaks it is not talked to any more: `BadFrame`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

VERSION = 3
WINDOW = 64 * 1024  # bytes of a stream, and of all streams, that may be on their way until another number is agreed on
LARGEST_WINDOW = (1 << 31) - 1
MAX_DATA = 1 << 20  # bytes in one frame that are taken; a frame is held until it is whole
MAX_CONTROL = 16 * 1024  # bytes of any other frame …
MAX_HEADERS = 16 * 1024  # … and of its headers, which came compressed
PROTOCOL_ERROR, REFUSED_STREAM, INTERNAL_ERROR = 1, 3, 6  # of a RST_STREAM; of a GOAWAY only the first
FIN = 0x01
_HEAD = struct.Struct(">II")
_NUMBER = struct.Struct(">I")
_TWO_NUMBERS = struct.Struct(">II")
_SYN_STREAM = struct.Struct(">IIBB")
_CONTROL, _STREAM = 1 << 31, (1 << 31) - 1
_INITIAL_WINDOW = 7  # in SETTINGS

# What headers are compressed with, which both sides have to know alike.
_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length content-location "
    "content-md5 content-range content-type date etag expect expires from host if-match if-modified-since if-none-match "
    "if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate proxy-authorization range "
    "referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get "
    "status 200\xa0OK version HTTP/1.1 url public set-cookie keep-alive origin"
)
_TEXT = (
    "1001012012022052063003023033043053063074024054064074084094104114124134144154164175025045052"
    "03 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct "
    "Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    "application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,"
    "utf-,*,enq=0."
)
DICTIONARY = (
    b"".join(_NUMBER.pack(len(word)) + word.replace("\xa0", " ").encode() for word in _WORDS.split(" "))
    + _TEXT.encode()
)


class BadFrame(ValueError):
    """The other side does not keep to the protocol; the message says how."""


class Kind(IntEnum):
    """What a frame is that carries no data."""

    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    HEADERS = 8
    WINDOW_UPDATE = 9


class Opened(NamedTuple):
    """The client has opened a stream; `fin`: it sends nothing on it."""

    stream: int
    headers: dict[str, str]  # their names in small letters
    fin: bool


class Data(NamedTuple):
    """Bytes of a stream; `fin`: the last ones."""

    stream: int
    data: bytes
    fin: bool


class Reset(NamedTuple):
    """The client wants nothing more of a stream."""

    stream: int


class Pinged(NamedTuple):
    """The client wants the same frame back, to see that somebody is there."""

    number: int


class Granted(NamedTuple):
    """So many more bytes of a stream may be sent; of all streams together where that is 0."""

    stream: int
    size: int


class InitialWindow(NamedTuple):
    """So many bytes of each stream may be sent before any are granted."""

    size: int


class GoneAway(NamedTuple):
    """The client opens no more streams."""


Event = Opened | Data | Reset | Pinged | Granted | InitialWindow | GoneAway


class Reader:
    """Finds the frames in the bytes of one client, however these are cut."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._inflater = zlib.decompressobj(zdict=DICTIONARY)
        self.last_stream = 0

    def feed(self, data: bytes) -> Iterator[Event]:
        """Yield what the bytes bring about, together with those of before; BadFrame when it is nothing that may be."""
        self._held += data
        while len(self._held) >= _HEAD.size:
            first, second = _HEAD.unpack_from(self._held)
            flags, size = second >> 24, second & 0xFFFFFF
            if size > (MAX_CONTROL if first & _CONTROL else MAX_DATA):
                raise BadFrame(f"A frame of {size} bytes is too long.")
            if len(self._held) < _HEAD.size + size:
                return
            body = bytes(self._held[_HEAD.size : _HEAD.size + size])
            del self._held[: _HEAD.size + size]
            if not first & _CONTROL:
                yield Data(first, body, bool(flags & FIN))
            elif (event := self._control(first, flags, body)) is not None:
                yield event

    def _control(self, first: int, flags: int, body: bytes) -> Event | None:
        version, kind = first >> 16 & 0x7FFF, first & 0xFFFF
        if version != VERSION:
            raise BadFrame(f"A frame of version {version}, where {VERSION} is spoken.")
        try:
            return self._event(kind, flags, body)
        except struct.error:
            raise BadFrame(f"A frame of kind {kind} and {len(body)} bytes has not what belongs there.") from None

    def _event(self, kind: int, flags: int, body: bytes) -> Event | None:
        match kind:
            case Kind.SYN_STREAM:
                return self._opened(flags, body)
            case Kind.HEADERS | Kind.SYN_REPLY:  # nobody wants them, but those to come are compressed by what they say
                self._headers(body[_NUMBER.size :])
            case Kind.RST_STREAM:
                return Reset(_TWO_NUMBERS.unpack(body)[0] & _STREAM)
            case Kind.SETTINGS:
                return _initial_window(body)
            case Kind.PING:
                return Pinged(*_NUMBER.unpack(body))
            case Kind.GOAWAY:
                return GoneAway()
            case Kind.WINDOW_UPDATE:
                stream, count = _TWO_NUMBERS.unpack(body)
                return Granted(stream & _STREAM, count & _STREAM)
        return None  # what is not known is to be ignored

    def _opened(self, flags: int, body: bytes) -> Opened:
        stream = _SYN_STREAM.unpack_from(body)[0] & _STREAM
        if stream % 2 == 0 or stream <= self.last_stream:
            raise BadFrame(f"A client opened stream {stream} after {self.last_stream}; its numbers are odd and grow.")
        self.last_stream = stream
        return Opened(stream, self._headers(body[_SYN_STREAM.size :]), bool(flags & FIN))

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            text = self._inflater.decompress(block, MAX_HEADERS + 1)
        except zlib.error as error:
            raise BadFrame(f"Headers cannot be decompressed: {error}.") from None
        if len(text) > MAX_HEADERS or self._inflater.unconsumed_tail:
            raise BadFrame(f"Headers of more than {MAX_HEADERS} bytes are too long.")
        return _pairs(text)


class Writer:
    """Writes the frames of one server. Headers are compressed by what went before: frames have to be sent in the order in which they were made."""

    def __init__(self) -> None:
        self._deflater = zlib.compressobj(zdict=DICTIONARY)

    def reply(self, stream: int) -> bytes:
        """Return the frame that accepts a stream."""
        return control(Kind.SYN_REPLY, _NUMBER.pack(stream) + self.block({}))

    def block(self, headers: Mapping[str, str]) -> bytes:
        """Return headers as they stand in a frame."""
        words = [text.encode("latin-1") for pair in headers.items() for text in pair]
        text = b"".join(_NUMBER.pack(len(word)) + word for word in words)
        whole = _NUMBER.pack(len(headers)) + text
        return self._deflater.compress(whole) + self._deflater.flush(zlib.Z_SYNC_FLUSH)


def control(kind: Kind, body: bytes, flags: int = 0) -> bytes:
    """Return a frame that carries no data."""
    return _HEAD.pack(_CONTROL | VERSION << 16 | kind, flags << 24 | len(body)) + body


def data(stream: int, content: bytes, *, fin: bool = False) -> bytes:
    """Return a frame of data; `fin`: the last one of its stream."""
    return _HEAD.pack(stream, (FIN if fin else 0) << 24 | len(content)) + content


def reset(stream: int, status: int) -> bytes:
    """Return the frame that ends a stream both ways, without its being done."""
    return control(Kind.RST_STREAM, _TWO_NUMBERS.pack(stream, status))


def ping(number: int) -> bytes:
    """Return the frame that answers a ping."""
    return control(Kind.PING, _NUMBER.pack(number))


def go_away(last_stream: int, status: int) -> bytes:
    """Return the frame that ends all: streams up to the last one were taken up."""
    return control(Kind.GOAWAY, _TWO_NUMBERS.pack(last_stream, status))


def window_update(stream: int, count: int) -> bytes:
    """Return the frame that lets so many more bytes of a stream come; of all together with 0."""
    return control(Kind.WINDOW_UPDATE, _TWO_NUMBERS.pack(stream, count))


def _pairs(text: bytes) -> dict[str, str]:
    """Return headers from their names and values, each behind its length."""
    words: list[str] = []
    (count,), at = _NUMBER.unpack_from(text), _NUMBER.size
    while at < len(text) and len(words) < 2 * count:
        (size,) = _NUMBER.unpack_from(text, at)
        at += _NUMBER.size + size
        words.append(text[at - size : at].decode("latin-1"))
    if at != len(text) or len(words) != 2 * count:
        raise BadFrame("Headers are not as long as they say.")
    return dict(zip(words[::2], words[1::2], strict=True))


def _initial_window(body: bytes) -> InitialWindow | None:
    (count,) = _NUMBER.unpack_from(body)
    if len(body) != _NUMBER.size + count * _TWO_NUMBERS.size:
        raise BadFrame("SETTINGS are not as many as they say.")
    for number, value in _TWO_NUMBERS.iter_unpack(body[_NUMBER.size :]):
        if number & 0xFFFFFF == _INITIAL_WINDOW:
            return InitialWindow(value)
    return None


class SendWindows:
    """How many bytes may be sent: of each stream, and of all together.

    It binds from when the peer shows that it counts. The library of Kubernetes' own clients (moby/spdystream) neither grants
    anything nor knows bounds: whoever waited for it would wait for ever. There the connection itself holds up who sends.
    """

    def __init__(self) -> None:
        self._initial = WINDOW
        self._left = {0: WINDOW}
        self._binds = False

    def open(self, stream: int) -> None:
        """Count a stream."""
        self._left[stream] = self._initial

    def close(self, stream: int) -> None:
        """Forget a stream."""
        self._left.pop(stream, None)

    def take(self, stream: int, wanted: int) -> int:
        """Return how many of the wanted bytes may be sent now, and count them."""
        taken = max(0, min(wanted, self._left[stream], self._left[0])) if self._binds else wanted
        self._left[stream] -= taken
        self._left[0] -= taken
        return taken

    def grant(self, granted: Granted) -> None:
        """Let more be sent; BadFrame when that is nothing, or more than can be. Of a stream that is closed it means nothing."""
        self._binds = True
        if granted.stream not in self._left:
            return
        self._left[granted.stream] += granted.size
        if not granted.size or self._left[granted.stream] > LARGEST_WINDOW:
            raise BadFrame(f"A window cannot grow by {granted.size}.")

    def begin_with(self, size: int) -> None:
        """Let so many bytes of each stream be sent from its start, of those that are open as well; BadFrame when they are too many."""
        if size > LARGEST_WINDOW:
            raise BadFrame(f"A window cannot be {size} bytes.")
        self._binds = True
        more, self._initial = size - self._initial, size
        for stream in self._left.keys() - {0}:
            self._left[stream] += more


class ReceiveWindow:
    """What of a stream was received and is not granted anew yet: many small grants would be as many frames."""

    def __init__(self) -> None:
        self._owed = 0

    def done(self, count: int) -> int:
        """Note that so many bytes were handed on; return how many are to be granted, 0 for later."""
        self._owed += count
        if self._owed < WINDOW // 2:
            return 0
        granted, self._owed = self._owed, 0
        return granted
