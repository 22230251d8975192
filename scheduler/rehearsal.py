"""What the scheduler would say of a gang that is not stored, were nothing else on the nodes: for people, in the process that shows pages.

The cycle that places gangs is asked, so the reason and its numbers are those of a job that waits. Of the world
it is told all but pods and their groups: what a gang waits for that others leave is no matter of this. The world is
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
"""Why a gang cannot start before somebody changes it or the nodes, beside all that the scheduler says can never be."""
_encode = msgspec.json.Encoder().encode


class Verdict(NamedTuple):
    """Why a gang could not start: the reason, and the sentence that its job would have."""

    reason: Reason
    sentence: str


class _Imagined(NamedTuple):
    """A change that nobody made."""

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
        """Return why a gang could not start even if nothing else ran; the world stays as it is.

        None if it could, or where there is no node yet, which is no matter of the gang.
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
