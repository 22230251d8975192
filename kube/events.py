"""Events: what happened to an object, in words, as `kubectl describe` shows it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from zlib import crc32

from kube import meta
from kube.meta import Object

NORMAL, WARNING = "Normal", "Warning"
LONGEST_MESSAGE = 1024  # bytes; Kubernetes refuses longer ones


def event(
    about: Object,
    reason: str,
    message: str,
    now: int,
    *,
    component: str,
    kind: str = NORMAL,
    annotations: Mapping[str, str] = MappingProxyType({}),
) -> Object:
    """Return an Event about an object (as much of it as apiVersion, kind and metadata).

    The name is made of the moment and the text, so that the same news about the
    same object at the same moment is the same event. An event about an object
    without a namespace lives in `default`, as in Kubernetes.
    """
    metadata = about["metadata"]
    fingerprint = crc32(f"{metadata.get('uid')} {reason} {message}".encode())
    moment = meta.timestamp(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "namespace": metadata.get("namespace") or "default",
            "name": f"{metadata['name'][:220]}.{now:x}{fingerprint:08x}",
            **({"annotations": dict(annotations)} if annotations else {}),
        },
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            **{key: metadata[key] for key in ("namespace", "name", "uid") if metadata.get(key)},
        },
        "reason": reason,
        "message": _shortened(message),
        "type": kind,
        "source": {"component": component},
        "reportingComponent": component,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }


def _shortened(message: str) -> str:
    if len(message.encode()) <= LONGEST_MESSAGE:
        return message
    return message.encode()[: LONGEST_MESSAGE - 3].decode(errors="ignore") + "…"
