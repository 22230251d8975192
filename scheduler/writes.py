"""Decisions as writes to the store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from cluster.store import Create, Group, Patch, Write
from cluster.writes import Minimum, removal
from kube import events
from kube.kinds.core import EventType
from kube.meta import Object, now_text
from kube.owners import controller_reference
from kube.resources import CONFIGMAPS, EVENTS, POD_GROUPS, PODS
from kube.usage import value_of
from kube.volcano import scheduler_configuration
from kube.volcano.topology import ALLOCATED
from scheduler import decided, evicting
from scheduler.decisions import ROOM, Adoption, Bind, Decisions, Eviction, GroupDecision, Note
from scheduler.evicting import COMPONENT
from scheduler.policy.config_map import Refused
from scheduler.records.records import Group as PodGroup
from scheduler.records.records import Pod

ABOUT = "/about"  # suffix of the keys of writes that only report on a group; they may succeed where a bind fails
GROUP_ANNOTATION = "scheduling.k8s.io/group-name"


def groups_of(decisions: Decisions, now: int) -> list[Group]:
    """Return the writes: one Group per gang, so that it is bound whole or not at all."""
    time = now_text(now)
    groups: list[Group] = []
    victims: dict[str, list[Eviction]] = {}
    for eviction in decisions.evictions:
        victims.setdefault(eviction.beneficiary, []).append(eviction)
    for decision in decisions.groups:
        writes: list[Write] = [_bind(bind, time) for bind in decision.binds]
        writes += removal(decision.given_back)
        writes += _about_group(decision, now)
        evictions = victims.pop(decision.key, ())
        writes += evicting.writes_of(evictions, now)
        if writes:
            key = decision.key if decision.binds else decision.key + (ROOM if evictions else ABOUT)
            minima = [Minimum(need, places) for need, places in decision.minima]
            stored = [*decided.about_group(decision, now), *decided.evicted(evictions, now)]
            announced = [_status(decision, decision.announced)] if decision.announced else []
            groups.append(Group(writes, key, minima=minima, announced=announced, decisions=stored))
        notes = [_note(note, time) for note in decision.notes]
        if notes:
            groups.append(Group(notes))
    groups += [
        Group(list(evicting.writes_of(some, now)), key + ROOM, decisions=list(decided.evicted(some, now)))
        for key, some in victims.items()
    ]
    groups += [Group(list(_adopt(each)), f"{each.namespace}/{each.name}") for each in decisions.adoptions]
    return groups


def _bind(bind: Bind, time: str) -> Patch:
    patch = {"spec": {"nodeName": bind.node}, "status": _scheduled(bind.pod, time, status="True")}
    return Patch(PODS, bind.pod.namespace, bind.pod.name, patch, subresource="binding", uid=bind.pod.uid)


def _note(note: Note, time: str) -> Patch:
    status = _scheduled(note.pod, time, status="False", reason="Unschedulable", message=note.message)
    pod = note.pod
    return Patch(PODS, pod.namespace, pod.name, {"status": status}, subresource="status", uid=pod.uid)


def _scheduled(pod: Pod, time: str, **fields: str) -> dict[str, Any]:
    """Return the pod's status with a new condition PodScheduled and all others: a merge patch replaces whole lists."""
    others = [c for c in value_of(pod.conditions) or () if c.get("type") != "PodScheduled"]
    return {"conditions": [*others, {"type": "PodScheduled", **fields, "lastTransitionTime": time}]}


def _about_group(decision: GroupDecision, now: int) -> Iterable[Write]:
    if decision.status:
        yield _status(decision, decision.status)
    if decision.hyper_node is not None:
        patch = {"metadata": {"annotations": {ALLOCATED: decision.hyper_node or None}}}
        yield Patch(POD_GROUPS, decision.namespace, decision.name, patch, uid=decision.uid)
    if decision.report is not None:
        about, report = _about(decision.namespace, decision.name, decision.uid), decision.report
        event = events.event(about, report.reason, report.message, now, component=COMPONENT, kind=str(report.type))
        yield Create(EVENTS, event)


def _status(decision: GroupDecision, status: Object) -> Patch:
    patch = {"status": status}
    return Patch(POD_GROUPS, decision.namespace, decision.name, patch, subresource="status", uid=decision.uid)


def group_key(key: str) -> str:
    """Return the key of the pod group that a Group of writes is about."""
    return key.removesuffix(ABOUT).removesuffix(ROOM)


def about_group(group: PodGroup | None) -> Object | None:
    """Return the fields of a stored pod group that an Event names, else None."""
    return _about(group.namespace, group.name, group.uid) if group is not None and group.uid else None


def _about(namespace: str, name: str, uid: str) -> Object:
    metadata = {"namespace": namespace, "name": name, "uid": uid}
    return {"apiVersion": POD_GROUPS.api_version, "kind": POD_GROUPS.kind, "metadata": metadata}


def about_configuration(refused: Refused, now: int) -> Create:
    """Return the write of an Event on the scheduler's ConfigMap that says that it is not used."""
    about = {
        "apiVersion": CONFIGMAPS.api_version,
        "kind": CONFIGMAPS.kind,
        "metadata": {
            "namespace": scheduler_configuration.NAMESPACE,
            "name": scheduler_configuration.NAME,
            "uid": refused.uid,
        },
    }
    message = f"{refused.message} The configuration before it holds."
    return Create(
        EVENTS, events.event(about, "ConfigurationRefused", message, now, component=COMPONENT, kind=EventType.WARNING)
    )


def _adopt(adoption: Adoption) -> Iterable[Write]:
    if adoption.create:
        yield Create(POD_GROUPS, _group_for(adoption))
    for pod in (orphan.pod for orphan in adoption.pods):
        patch = {"metadata": {"annotations": {GROUP_ANNOTATION: adoption.name}}}
        yield Patch(PODS, pod.namespace, pod.name, patch, uid=pod.uid)


def _group_for(adoption: Adoption) -> dict[str, Any]:
    """Return the pod group for pods that named none: minMember 1, with the pods' owner or else owned by the first pod."""
    first = adoption.pods[0]
    owner = controller_reference(PODS, first.pod.name, first.pod.uid)
    if first.owner is not None:
        owner = {**msgspec.to_builtins(first.owner), "controller": True}
    spec: dict[str, Any] = {"minMember": 1, "queue": adoption.queue}
    if first.pod.priority_class:
        spec["priorityClassName"] = first.pod.priority_class
    return {
        "metadata": {"namespace": adoption.namespace, "name": adoption.name, "ownerReferences": [owner]},
        "spec": spec,
        "status": {"phase": "Pending"},
    }
