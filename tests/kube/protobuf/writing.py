"""Just enough of a protobuf writer to make messages that no client would send."""

from __future__ import annotations

import struct


def varint(number):
    number &= 0xFFFF_FFFF_FFFF_FFFF
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])


def field(number, value):
    """A field: an int as a varint, a float as a double, text and bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(*fields):
    return b"".join(field(number, value) for number, value in fields)


def body(api_version, kind, raw):
    return b"k8s\x00" + message((1, message((1, api_version), (2, kind))), (2, raw), (3, ""), (4, ""))
