"""Protobuf's wire format: numbers of variable length, and what follows a field's number."""

from __future__ import annotations

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """The bytes are not the message that they should be; the message says why."""


def varint(body: bytes, at: int, end: int) -> tuple[int, int]:
    """Read an unsigned number; return it and where it ends."""
    # Most numbers are short.
    if at < end and body[at] < 0x80:
        return body[at], at + 1
    number = shift = 0
    while at < end:
        byte = body[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
        if shift >= 70:
            raise WireError("a number is longer than 64 bits")
    raise WireError("the bytes end within a number")


def extent(body: bytes, at: int, end: int) -> tuple[int, int]:
    """Read the length of what follows; return where that starts and ends."""
    length, start = varint(body, at, end)
    if length > end - start:
        raise WireError("the bytes end within a field")
    return start, start + length


def skip(body: bytes, at: int, end: int, wire: int) -> int:
    """Return where the value of an unknown field ends."""
    if wire == VARINT:
        return varint(body, at, end)[1]
    if wire == BYTES:
        return extent(body, at, end)[1]
    if wire not in (FIXED32, FIXED64):
        raise WireError(f"there is no wire type {wire}")
    after = at + (8 if wire == FIXED64 else 4)
    if after > end:
        raise WireError("the bytes end within a field")
    return after


def int32(number: int) -> int:
    """Return the lower 32 bits as a signed number."""
    number &= 0xFFFF_FFFF
    return number - (1 << 32) if number >> 31 else number


def int64(number: int) -> int:
    """Return 64 bits as a signed number."""
    return number - (1 << 64) if number >> 63 else number
