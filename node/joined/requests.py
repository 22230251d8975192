"""What an agent's writes are as requests of an API: pure."""

from __future__ import annotations

from cluster.remote.dispatch import requests
from cluster.remote.dispatch.requests import Request
from cluster.remote.http import paths
from cluster.remote.http.request import MEDIA_TYPES
from cluster.writes import Patch, Write


def of(write: Write) -> Request:
    """Return the request that carries out a write, pinned to the uid and version that the write names."""
    if not isinstance(write, Patch) or write.subresource != "status":
        return requests.of(write)
    # A node is the one who writes the status of its pods: it is merged, as in the store.
    pins = {"uid": write.uid, "resourceVersion": write.version}
    body = {"metadata": {name: pin for name, pin in pins.items() if pin}, **write.patch}
    path = paths.one(write.resource, write.namespace, write.name, "status")
    return Request("PATCH", path, body, MEDIA_TYPES["merge"])
