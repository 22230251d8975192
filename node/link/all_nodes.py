"""Every node of the cluster, wherever it is: this machine by its files and agent, others by their links.

Which node answers for a pod is decided here, by the node that it is bound to in the store: no node gets a request
about another's pods, so none can answer for them.
"""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from typing import Any

from django.conf import settings

from cluster.backend import LogChunk, LogExtent, LogText, Nodes
from cluster.store import store
from kube.meta import Object
from kube.resources import PODS
from node.link import presence
from node.link.linked_node import LinkedNode
from node.link.local_nodes import LocalNodes

MAX_CACHED = 20_000  # pods whose node is cached, where there are other machines


class AllNodes:
    """Every node of an embedded cluster: `cluster.backend.Nodes`. Without another machine ever linked, this one answers for all."""

    offsets_are_bytes = True

    def __init__(self) -> None:
        self._here = LocalNodes()
        self._node_of_pod: dict[str, str] = {}  # the node of a pod, by its uid

    @property
    def answer_at_once(self) -> bool:
        """Whether all nodes are this machine."""
        return not presence.names(settings.DATA)

    def on(self, node: str) -> Nodes:
        """Return what answers for a node."""
        return LinkedNode(node) if node in presence.names(settings.DATA) else self._here

    def away(self, node: str) -> str:
        """Return a sentence about why a node cannot answer now; "" when it can."""
        return self.on(node).away(node)

    def log_attempts(self, uid: str, container: str) -> list[int]:
        return self._for_pod(uid).log_attempts(uid, container)

    def log_extents(self, pods: Mapping[str, str]) -> list[LogExtent]:
        """Return the extents of the logs of pods, in their order; none of those whose node is away."""
        linked = presence.names(settings.DATA)
        if not linked:
            return self._here.log_extents(pods)
        self._cache(pods)
        by_node: dict[str, dict[str, str]] = defaultdict(dict)
        for uid, node in pods.items():
            by_node[node if node in linked else ""][uid] = node
        here = by_node.pop("", {})
        extents = self._here.log_extents(here)
        for node, pods_there in by_node.items():
            extents += LinkedNode(node).log_extents(pods_there)
        order = {uid: number for number, uid in enumerate(pods)}
        return sorted(extents, key=lambda extent: order[extent.uid])

    def read_log(
        self, uid: str, container: str, attempt: int | None = None, *, since_offset: int = 0, most: int | None = None
    ) -> LogChunk:
        return self._for_pod(uid).read_log(uid, container, attempt, since_offset=since_offset, most=most)

    def tail_log(
        self,
        uid: str,
        container: str,
        attempt: int | None = None,
        *,
        lines: int,
        most: int | None = None,
        before: int | None = None,
    ) -> LogChunk:
        return self._for_pod(uid).tail_log(uid, container, attempt, lines=lines, most=most, before=before)

    def log_offset(self, uid: str, container: str, attempt: int, since_us: int) -> int:
        return self._for_pod(uid).log_offset(uid, container, attempt, since_us)

    def why_no_log(self, pod: Object) -> str:
        node = (pod.get("spec") or {}).get("nodeName") or ""
        return self.away(node) or self._here.why_no_log(pod)

    async def log_text(self, uid: str, container: str, attempt: int, wanted: LogText) -> AsyncIterator[bytes]:
        """Return the requested part of a log of this machine; for another one see `on`."""
        return await self._here.log_text(uid, container, attempt, wanted)

    async def log_output(self, uid: str, container: str, attempt: int) -> AsyncIterator[list[tuple[str, bytes]]]:
        """Return the output of an instance of this machine; for another one see `on`."""
        return await self._here.log_output(uid, container, attempt)

    def connect(self, request: dict[str, Any], fds: list[int]) -> socket.socket:
        """Hand a request and descriptors to this machine's agent; for another node see `on`."""
        return self._here.connect(request, fds)

    def usage(self, now: int) -> list[dict[str, Any]]:
        linked = [LinkedNode(node).usage(now) for node in sorted(presence.names(settings.DATA))]
        return sum(linked, self._here.usage(now))

    def _for_pod(self, uid: str) -> Nodes:
        """Return what answers for the node of a pod."""
        linked = presence.names(settings.DATA)
        if not linked:
            return self._here
        node = self._node_of_pod.get(uid)
        if node is None:
            stored = store.find(PODS, uid=[uid], limit=1)
            node = (stored[0].object["spec"].get("nodeName") or "") if stored else ""
            self._cache({uid: node})
        return LinkedNode(node) if node in linked else self._here

    def _cache(self, pods: Mapping[str, str]) -> None:
        for uid, node in pods.items():
            self._node_of_pod.pop(uid, None)  # to the end: the least recently used go first
            self._node_of_pod[uid] = node
        while len(self._node_of_pod) > MAX_CACHED:
            self._node_of_pod.pop(next(iter(self._node_of_pod)))


_answers_for_nodes: Nodes = AllNodes()
