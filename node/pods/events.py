"""The events that a node writes about its pods: a container waits to be started again, a probe or hook has failed, a pod ended with its machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cluster.store import Create, Patch, Write
from kube import meta
from kube.events import WARNING, event
from kube.kinds.core import Event, EventType, Pod
from kube.resources import EVENTS, PODS
from node.attempt import NEVER_RAN, POST_START, SHUTDOWN, Run
from node.pods.cluster import Cluster
from node.status import container_id

REASON = "BackOff"
PRE_STOP = "FailedPreStopHook"
_CRASH_LOOP = "CrashLoopBackOff"
_KINDS = {"containerStatuses": "containers", "initContainerStatuses": "initContainers"}


class ContainerEvent(NamedTuple):
    """An event about a container; `listed` is the list of its pod's spec that has it."""

    listed: str
    container: str
    reason: str
    message: str
    type: EventType = EventType.WARNING


def newly_backing_off(pod: Pod, status: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (kind in the spec, name) of the containers that wait to be started again in a new status and did not before."""
    waiting = {
        each.name
        for each in (*pod.status.container_statuses, *pod.status.init_container_statuses)
        if each.state.waiting is not None and each.state.waiting.reason == _CRASH_LOOP
    }
    return [
        (kind, each["name"])
        for statuses, kind in _KINDS.items()
        for each in status.get(statuses) or ()
        if each["state"].get("waiting", {}).get("reason") == _CRASH_LOOP and each["name"] not in waiting
    ]


def writes(cluster: Cluster, pod: Pod, status: Mapping[str, Any], now: int) -> list[Write]:
    """Return the events of containers that have begun to back off: a new one, or one more count of the one there is."""
    metadata = pod.metadata
    pod_text = f"in pod {metadata.name}_{metadata.namespace}({metadata.uid})"
    return [
        event_write(
            cluster,
            pod,
            ContainerEvent(kind, name, REASON, f"Back-off restarting failed container {name} {pod_text}"),
            now,
        )
        for kind, name in newly_backing_off(pod, status)
    ]


def failed_hooks(pod: Pod, runs: Mapping[str, Run]) -> list[ContainerEvent]:
    """Return the events of hooks that have failed, for attempts whose end is not in the pod's status yet."""
    recorded = {
        state.terminated.container_id
        for each in (*pod.status.container_statuses, *pod.status.init_container_statuses)
        for state in (each.state, each.last_state)
        if state.terminated is not None
    }
    return [
        ContainerEvent(
            listed(pod, container.name),
            container.name,
            (POST_START if ended.stopped == POST_START else PRE_STOP),
            ended.hook,
        )
        for container in (*pod.spec.init_containers, *pod.spec.containers)
        for ended in reversed(runs.get(container.name, NEVER_RAN))
        if ended is not None
        and ended.hook
        and (ended.engine_id or container_id(pod, container, ended.number)) not in recorded
    ]


def listed(pod: Pod, container: str) -> str:
    """Return which list of a pod's spec has a container."""
    return "initContainers" if any(one.name == container for one in pod.spec.init_containers) else "containers"


def lost(pod: Pod, reason: str, now: int) -> dict[str, Any]:
    """Return the event that says why a pod is taken away."""
    return event(_about(pod), SHUTDOWN, reason, now, component="kubelet", kind=WARNING)


def _about(pod: Pod) -> dict[str, Any]:
    pod_metadata = pod.metadata
    metadata = {"namespace": pod_metadata.namespace, "name": pod_metadata.name, "uid": pod_metadata.uid}
    return {"apiVersion": PODS.api_version, "kind": PODS.kind, "metadata": metadata}


def event_write(cluster: Cluster, pod: Pod, container_event: ContainerEvent, now: int) -> Write:
    """Return the write that records an event of a container: a new one, or one more count of the one there is."""
    metadata = pod.metadata
    for stored in cluster.events_about(metadata.namespace, metadata.uid):
        existing = stored.read(Event)
        if existing.reason == container_event.reason and existing.message == container_event.message:
            patch = {"count": existing.times + 1, "lastTimestamp": meta.timestamp(now)}
            return Patch(EVENTS, stored.namespace, stored.name, patch, uid=stored.uid)
    created = event(
        _about(pod),
        container_event.reason,
        container_event.message,
        now,
        component="kubelet",
        kind=container_event.type,
    )
    created["involvedObject"]["fieldPath"] = f"spec.{container_event.listed}{{{container_event.container}}}"
    return Create(EVENTS, created)
