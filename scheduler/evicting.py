"""Evictions as writes: an event and a condition on each evicted pod, and its deletion (reference/volcano-scheduler §1.9).

When a group is evicted for others for the first time, the time is noted on it (`kube.volcano.evictions`).

The job's controller sees that somebody else deleted the pod, takes it as evicted, and applies the job's policies for that.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.store import Create, Delete, Patch, Write
from kube import events
from kube.kinds.core import EventType
from kube.meta import now_text
from kube.resources import EVENTS, POD_GROUPS, PODS
from kube.usage import value_of
from kube.volcano.evictions import FIRST_EVICTED
from scheduler.decisions import MOVED, Eviction
from scheduler.policy.actions import Action

COMPONENT = "volcano"
REASON = "Evict"
TARGET = "DisruptionTarget"
_OWN_REASONS = {None: "RevocableZoneClosed", Action.SHUFFLE: MOVED}
"""Reasons of evictions that make room for no other group."""


def writes_of(evictions: Sequence[Eviction], now: int) -> list[Write]:
    """Return the writes of evictions: notes on groups, then each pod's event, its condition, and its deletion."""
    time = now_text(now)
    groups = dict.fromkeys((*each.pod.group.split("/", 1), each.noted_on) for each in evictions if each.noted_on)
    note = {"metadata": {"annotations": {FIRST_EVICTED: time}}}
    return [
        *(Patch(POD_GROUPS, namespace, name, note, uid=uid) for namespace, name, uid in groups),
        *(Create(EVENTS, _event(each, now)) for each in evictions),
        *(_marked(each, time) for each in evictions),
        *(Delete(PODS, each.pod.namespace, each.pod.name, uid=each.pod.uid) for each in evictions),
    ]


def _event(eviction: Eviction, now: int) -> dict[str, object]:
    pod = eviction.pod
    metadata = {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
    about = {"apiVersion": PODS.api_version, "kind": PODS.kind, "metadata": metadata}
    return events.event(about, REASON, eviction.message, now, component=COMPONENT, kind=EventType.WARNING)


def _marked(eviction: Eviction, time: str) -> Patch:
    """Return the write of the condition that tells others that a scheduler evicts the pod."""
    pod, own = eviction.pod, _OWN_REASONS.get(eviction.action)
    preempting = f"{COMPONENT}: preempting to accommodate a higher priority pod"
    condition = {
        "type": TARGET,
        "status": "True",
        "reason": own or "PreemptionByScheduler",
        "message": eviction.message if own else preempting,
        "lastTransitionTime": time,
    }
    others = [each for each in value_of(pod.conditions) or () if each.get("type") != TARGET]
    patch = {"status": {"conditions": [*others, condition]}}
    return Patch(PODS, pod.namespace, pod.name, patch, subresource="status", uid=pod.uid)
