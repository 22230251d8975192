"""What a reader sees of what belongs to a job: the right to see the job says nothing about its pods and events."""

from __future__ import annotations

from typing import NamedTuple

from cluster import access
from cluster.access import Actor
from kube.resources import EVENTS, JOBS, POD_GROUPS, PODS

LOGS = f"{PODS.id}/log"


class Sees(NamedTuple):
    """Whether somebody may list the pods, pod groups and events of a namespace, and read logs there.

    jobs are the namespaces whose jobs he may list.
    """

    pods: bool = True
    groups: bool = True
    events: bool = True
    logs: bool = True
    jobs: frozenset[str] | access.Everywhere = access.ALL

    @classmethod
    def of(cls, actor: Actor, namespace: str) -> Sees:
        """Return what an actor sees in a namespace."""
        pods, groups, events = (access.allowed(actor, "list", kind, namespace) for kind in (PODS, POD_GROUPS, EVENTS))
        logs = access.allowed(actor, "get", LOGS, namespace)
        return cls(pods, groups, events, logs, access.namespaces(actor, JOBS))

    @property
    def lacking(self) -> str:
        """What is not seen, for a sentence; "" for nothing."""
        words = {"pods": self.pods, "pod groups": self.groups, "events": self.events}
        *some, last = [word for word, is_seen in words.items() if not is_seen] or [""]
        return f"{', '.join(some)} and {last}" if some else last


ALL = Sees()
