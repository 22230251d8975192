"""The events that a node writes about its pods: a container waits to be started again; a pod ended with its machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cluster.store import Create, Patch
from kube import meta
from kube.events import WARNING, event
from kube.kinds.core import Event
from kube.resources import EVENTS, PODS
from node.attempt import SHUTDOWN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cluster.store import Write
    from kube.kinds.core import Pod
    from node.agent.cluster import Cluster

REASON = "BackOff"
_CRASH_LOOP = "CrashLoopBackOff"
_KINDS = {"containerStatuses": "containers", "initContainerStatuses": "initContainers"}


def begun(pod: Pod, status: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (kind in the spec, name) of the containers that wait to be started again in a new status and did not before."""
    before = {
        each.name
        for each in (*pod.status.container_statuses, *pod.status.init_container_statuses)
        if each.state.waiting is not None and each.state.waiting.reason == _CRASH_LOOP
    }
    return [
        (kind, each["name"])
        for statuses, kind in _KINDS.items()
        for each in status.get(statuses) or ()
        if each["state"].get("waiting", {}).get("reason") == _CRASH_LOOP and each["name"] not in before
    ]


def writes(cluster: Cluster, pod: Pod, status: Mapping[str, Any], now: int) -> list[Write]:
    """Return what tells of the containers that have begun to wait: a new event, or one more time of the one there is."""
    return [_write(cluster, pod, kind, name, now) for kind, name in begun(pod, status)]


def lost(pod: Pod, why: str, now: int) -> dict[str, Any]:
    """Return the event that says why a pod is taken away."""
    return event(_about(pod), SHUTDOWN, why, now, component="kubelet", kind=WARNING)


def _about(pod: Pod) -> dict[str, Any]:
    place = pod.metadata
    metadata = {"namespace": place.namespace, "name": place.name, "uid": place.uid}
    return {"apiVersion": PODS.api_version, "kind": PODS.kind, "metadata": metadata}


def _write(cluster: Cluster, pod: Pod, kind: str, name: str, now: int) -> Write:
    place = pod.metadata
    message = (
        f"Back-off restarting failed container {name} in pod {place.name}_{place.namespace}({place.uid})"
    )
    for stored in cluster.events_about(place.namespace, place.uid):
        told = stored.read(Event)
        if told.reason == REASON and told.message == message:
            again = {"count": told.times + 1, "lastTimestamp": meta.timestamp(now)}
            return Patch(EVENTS, stored.namespace, stored.name, again, uid=stored.uid)
    made = event(_about(pod), REASON, message, now, component="kubelet", kind=WARNING)
    made["involvedObject"]["fieldPath"] = f"spec.{kind}{{{name}}}"
    return Create(EVENTS, made)
