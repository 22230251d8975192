"""Looking one thing up in the cluster itself, where the mirror does not have it or would be behind."""

from __future__ import annotations

from typing import Any

import msgspec

from cluster.remote.http.request import RestClient
from kube.errors import NotFound
from kube.meta import Object

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def look_up(connection: RestClient, path: str, answer_s: float) -> Object | None:
    """Return what is at a path, None where nothing is; ApiError and Unreachable say why nobody knows."""
    try:
        return _decode(connection.request("GET", path, answer_s=answer_s))
    except NotFound:
        return None
