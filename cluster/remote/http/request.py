"""What a request to an API server is made of beside its path, and what is raised when nobody answers it.

Apart from `connection`, so that processes which never ask do not load the official client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import msgspec

from kube.errors import NotFound
from kube.meta import Object

decode = msgspec.json.Decoder(dict[str, Any]).decode  # the body of an answer
JSON = "application/json"
MANAGER = "volcano-ui"  # who is noted to manage the fields that change
MEDIA_TYPES = MappingProxyType(
    {
        "merge": "application/merge-patch+json",
        "json": "application/json-patch+json",
        "strategic": "application/strategic-merge-patch+json",
    }
)


def delete_options(uid: str, version: str, grace: int | None, propagation: str | None) -> Object:
    """Return the body of a deletion; "" and None leave out a precondition, the grace in seconds or the propagation."""
    pins = {"uid": uid, "resourceVersion": version}
    fields = {
        "propagationPolicy": propagation,
        "preconditions": {name: pin for name, pin in pins.items() if pin} or None,
        "gracePeriodSeconds": grace,
    }
    set_fields = {name: value for name, value in fields.items() if value is not None}
    return {"apiVersion": "v1", "kind": "DeleteOptions", **set_fields}


class Unreachable(Exception):
    """A server gave no answer; `sent` says whether it may have got the request all the same."""

    def __init__(self, server: str, cause: str, *, sent: bool = False) -> None:
        super().__init__(f"{server} does not answer: {cause}")
        self.server, self.cause, self.sent = server, cause, sent


class Impersonation(NamedTuple):
    """Somebody as whom a request is made (impersonation), instead of the kubeconfig's user."""

    user: str
    groups: tuple[str, ...] = ()


def look_up(connection: RestClient, path: str, answer_s: float) -> Object | None:
    """Return what is at a path of the cluster itself, where the mirror does not have it or would be behind; None for nothing.

    ApiError and Unreachable say why nobody knows.
    """
    try:
        return decode(connection.request("GET", path, answer_s=answer_s))
    except NotFound:
        return None


class RestClient(Protocol):
    """What asks an API server, however that is reached."""

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        media_type: str = JSON,
        impersonation: Impersonation | None = None,
        answer_s: float = ...,
    ) -> bytes:
        """Return the body of the answer; ApiError is the server's refusal, Unreachable says that there was none."""

    def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        impersonation: Impersonation | None = None,
        silence_s: float = ...,
    ) -> AbstractContextManager[Iterator[bytes]]:
        """Hold an answer open and hand out its lines as they come."""
