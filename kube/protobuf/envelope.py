"""The envelope of a protobuf body: which kind it holds, and the kind's own message."""

from __future__ import annotations

from typing import Any

from kube.errors import BadRequest, UnsupportedMediaType
from kube.meta import Object
from kube.protobuf import tables
from kube.protobuf.reader import read
from kube.protobuf.wire import WireError

MAGIC = b"k8s\x00"
LARGEST = 4 * 1024 * 1024  # bytes of a body
_OTHER_FORMS = ("application/json", "application/yaml")


def decode(body: bytes) -> Object:
    """Read a body as a JSON object with apiVersion and kind.

    BadRequest for what cannot be read, UnsupportedMediaType for a kind that is read only from JSON.
    """
    if len(body) > LARGEST:
        raise BadRequest(f"A protobuf body has at most {LARGEST} bytes.")
    if not body.startswith(MAGIC):
        raise BadRequest(f"provided data does not appear to be a protobuf message, expected prefix {list(MAGIC)}")
    try:
        return _decode(body)
    except WireError as error:
        raise BadRequest(f"couldn't read the protobuf body: {error}") from None


def _decode(body: bytes) -> Object:
    envelope: dict[str, Any] = {}
    read(tables.ENVELOPE, body[len(MAGIC) :], into=envelope)
    about = envelope.get("typeMeta") or {}
    api_version, kind = about.get("apiVersion", ""), about.get("kind", "")
    if not kind or not api_version:
        missing = "apiVersion" if kind else "Kind"
        raise BadRequest(f"Object '{missing}' is missing in the protobuf body")
    message = tables.KINDS.get((api_version, kind)) or tables.KINDS.get(("*", kind))
    if message is None:
        other = UnsupportedMediaType.of(_OTHER_FORMS).message
        raise UnsupportedMediaType(f"{other}; {kind[:63]} of {api_version[:99]} is not read from protobuf")
    obj: Object = {"kind": kind, "apiVersion": api_version}
    read(message, envelope.get("raw", b""), into=obj)
    return obj
