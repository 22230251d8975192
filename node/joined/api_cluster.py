"""A cluster on another machine as its agent sees it: the API in place of the store (`node.pods.cluster.Cluster`).

Nothing of it lies on the disk. What a machine needs when it starts again are its pods' attempts, which are there, and
the pods themselves, which it lists.
"""

from __future__ import annotations

import logging
import selectors
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from cluster.remote.http import paths
from cluster.remote.mirroring import reflection
from cluster.store import Create, Delete, Group, Stored, Write
from kube import lenient
from kube.errors import ApiError, NotFound
from kube.kinds.core import Event
from kube.kinds.pod import ENDED
from kube.meta import Object
from kube.resources import EVENTS, NAMESPACES, PODS, Resource
from node.joined import requests
from node.joined.api_lookup import ApiLookup
from node.joined.client import Client
from node.joined.pod_watch import PodWatch

AT_ONCE = 6  # groups that are written at a time
MAX_EVENTS = 2000  # that are cached, so that one that happens again is counted
_encode = msgspec.json.Encoder().encode
log = logging.getLogger(__name__)


class ApiCluster:
    """A cluster's API, for one node, as `node.pods.cluster.Cluster`; `cluster` is its uid."""

    def __init__(self, client: Client, node: str, selector: selectors.BaseSelector, cluster: str) -> None:
        self._client = client
        self.listener = PodWatch(client, node, selector)
        self.lookup = ApiLookup(client, self.listener.put, cluster)
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="writes")
        self._events: dict[str, Stored] = {}  # by name, oldest first

    def pods(self, node: str) -> tuple[int, list[Stored]]:
        query = {"fieldSelector": f"spec.nodeName={node}", "limit": str(reflection.PAGE)}
        listed: list[Stored] = []
        while True:
            answer = self._client.call("GET", paths.collection(PODS), query=query)
            metadata = answer.get("metadata") or {}
            listed += [stored(PODS, item) for item in answer.get("items") or ()]
            for item in answer.get("items") or ():
                if lenient.text(item, "status", "phase") not in ENDED:
                    self.lookup.follow(item)
            if not metadata.get("continue"):
                return int(metadata.get("resourceVersion") or 0), listed
            query["continue"] = metadata["continue"]

    def get(self, resource: Resource, namespace: str, name: str) -> Stored:
        return stored(resource, self._client.call("GET", paths.one(resource, namespace, name)))

    def events_about(self, namespace: str, uid: str) -> list[Stored]:
        """Return the events about an object that this process has made, newest first; older ones are not counted on."""
        return [
            each
            for each in reversed(self._events.values())
            if each.namespace == namespace and each.read(Event).involved_object.uid == uid
        ]

    def write(self, *writes: Write) -> list[Stored]:
        """Do one write after the other; the first ApiError ends it."""
        return [result for write in writes if (result := self._carry_out(write)) is not None]

    def commit(self, groups: Sequence[Group]) -> list[list[Stored] | ApiError]:
        """Do groups of writes, some at a time. Without an answer to one all are to be done again: each is pinned to a version."""
        waiting = [self._threads.submit(self._group, group) for group in groups]
        outcomes = [(each.exception(), each) for each in waiting]
        for error, _ in outcomes:
            if error is not None:
                raise error
        return [each.result() for _, each in outcomes]

    def _group(self, group: Group) -> list[Stored] | ApiError:
        try:
            return self.write(*group.writes)
        except ApiError as error:
            return error

    def _carry_out(self, write: Write) -> Stored | None:
        """Do one write and return the object after it; None for one that is gone, and for an event that was refused."""
        if write.resource is NAMESPACES:  # that of leases, which the cluster has; a node may make none
            return None
        request = requests.of(write)
        try:
            answer = self._client.call(
                request.method, request.path, query=request.query, body=request.body, media_type=request.media_type
            )
        except NotFound:
            if isinstance(write, Delete):
                return None
            raise
        except ApiError as error:
            if write.resource is not EVENTS:
                raise
            # A pod's status must not wait for its events.
            log.warning("an event was not taken: %s", error)
            return None
        if answer.get("kind") == "Status":
            return None
        result = stored(write.resource, answer)
        if write.resource is EVENTS:
            if isinstance(write, Create) and len(self._events) >= MAX_EVENTS:
                del self._events[next(iter(self._events))]
            self._events.pop(result.name, None)
            self._events[result.name] = result
        return result


def stored(resource: Resource, obj: Object) -> Stored:
    """Return an object that an API answered with as the store would hand it out; its version is its revision there."""
    meta = obj["metadata"]
    body = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
    return Stored(
        resource.id,
        meta.get("namespace") or "",
        meta["name"],
        meta["uid"],
        int(meta["resourceVersion"]),
        0,
        _encode(body),
    )
