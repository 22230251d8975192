"""What the scheduler would say of a gang that is not stored if the nodes were empty: for people, in the process that shows pages.

It runs the scheduling cycle itself, so the reason and its numbers are those that a waiting job would get. The snapshot holds
everything except pods and their groups, because room that others will leave does not matter here. It is
read once and follows the log (`cluster.runtime.picture`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from cluster.api import backend
from cluster.runtime.picture import SharedPicture
from cluster.store import store
from cluster.store.types import Single
from kube.meta import Object
from kube.resources import (
    CONFIGMAPS,
    HYPER_NODES,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    Resource,
)
from kube.volcano import scheduler_configuration
from scheduler.cycle.cycle import schedule
from scheduler.engine.cause import Reason
from scheduler.snapshot.snapshot import Changed, Snapshot

CONFIGURATION = Single(CONFIGMAPS, scheduler_configuration.NAMESPACE, scheduler_configuration.NAME)
OBJECTS = (NODES, HYPER_NODES, QUEUES, PRIORITY_CLASSES, NAMESPACES)
NO_NODE = (Reason.NO_MATCHING_NODE, Reason.UNTOLERATED_TAINT, Reason.NODE_GROUP)
"""Reasons for which a gang cannot start until somebody changes it or the nodes, besides refusals marked `never`."""
_encode = msgspec.json.Encoder().encode


class Verdict(NamedTuple):
    """Why a gang could not start: the reason, and the sentence that its job would show."""

    reason: Reason
    sentence: str


class _Imagined(NamedTuple):
    """A change that is not in the log."""

    resource: str
    namespace: str
    name: str
    verb: str
    at: int
    body: bytes


class World:
    """Nodes, queues and the configuration at one revision."""

    def __init__(self, revision: int = -1) -> None:
        self.revision = revision
        self._snapshot = Snapshot(backend.schedulers)

    @classmethod
    def loaded(cls, head: int) -> World:
        """Return the world as it is stored."""
        world = cls(head)
        for resource in OBJECTS:
            for each in store.find(resource):
                world._apply(resource, each.namespace, each.name, each.body)
        for change in reversed(store.history(CONFIGMAPS, CONFIGURATION.namespace, CONFIGURATION.name)):
            world.take(change)
        return world

    def take(self, change: Changed) -> None:
        """Take over one change."""
        self._snapshot.apply(change)

    def rehearse(self, group: Object, pods: Sequence[Object], now: int) -> Verdict | None:
        """Return why a gang could not start even if nothing else ran; the world stays unchanged.

        None if it could start, or if there is no node yet, which is not the gang's fault.
        """
        if not self._snapshot.nodes.names():
            return None
        objects = [(POD_GROUPS, group), *((PODS, pod) for pod in pods)]
        for resource, obj in objects:
            metadata = obj["metadata"]
            self._apply(resource, metadata["namespace"], metadata["name"], _encode(obj), now)
        try:
            decisions = schedule(self._snapshot, now)
        finally:
            for resource, obj in reversed(objects):
                metadata = obj["metadata"]
                self._apply(resource, metadata["namespace"], metadata["name"], b"", now, "DELETED")
        found = next((each for each in decisions.groups if each.name == group["metadata"]["name"]), None)
        if found is None or found.refusal is None:
            return None
        reason, sentence = found.refusal
        return Verdict(Reason(reason), sentence) if found.never or reason in NO_NODE else None

    def _apply(
        self, resource: Resource, namespace: str, name: str, body: bytes, at: int = 0, verb: str = "ADDED"
    ) -> None:
        self._snapshot.apply(_Imagined(resource.id, namespace, name, verb, at, body))


_picture = SharedPicture((*OBJECTS, CONFIGURATION), World.loaded)
current, forget = _picture.current, _picture.forget
