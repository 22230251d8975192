"""What the scheduler keeps of a pod, from its object (reference/volcano-scheduler §1.3)."""

from __future__ import annotations

from collections.abc import Callable, Collection

from kube.kinds.core import PodPhase
from kube.priorities import NEVER
from scheduler.engine.cause import Constraint
from scheduler.policy.arguments import duration_of
from scheduler.records import claims, reading
from scheduler.records.constraints import understood
from scheduler.records.decoding import decode, time_of
from scheduler.records.reading import PodSpecView, PodView
from scheduler.records.records import Pod, TaskStatus, preemptable
from scheduler.records.shapes import PodShape

ShapeOf = Callable[[PodSpecView, Constraint | None], PodShape]
"""Returns the shape of a pod from its spec and the constraint of it that cannot be judged."""


def pod_record(
    namespace: str, name: str, view: PodView, shape_of: ShapeOf, schedulers: Collection[str], *, heeds_claims: bool
) -> Pod:
    """Return the record of a pod. schedulers are the names of this scheduler; with heeds_claims pods wait for their claims."""
    metadata, spec = view.metadata, view.spec
    notes = metadata.annotations or reading.PodAnnotations()
    raw_labels = bytes(metadata.labels)  # some labels stand in for annotations
    labels = reading.PodLabels() if raw_labels in (b"", b"null") else decode(raw_labels, reading.PodLabels)
    ours = (spec.scheduler_name or "") in schedulers
    cooldown = notes.cooldown or labels.cooldown
    demands, constraint = understood(spec, namespace, metadata.labels)
    return Pod(
        namespace,
        name,
        metadata.uid,
        time_of(metadata.creation_timestamp),
        f"{namespace}/{notes.group}" if ours and notes.group else "",
        notes.queue or notes.job_queue,
        ours,
        notes.role or labels.role,
        shape_of(spec, constraint),
        spec.node_name or "",
        _status(view),
        bool(spec.scheduling_gates),
        _number(notes.priority) if notes.priority else spec.priority,
        spec.priority_class_name or "",
        view.status.conditions,
        metadata.deletion_timestamp is not None,
        any(each.controller for each in metadata.owner_references or ()),
        claims.named(name, spec.volumes) if heeds_claims else (),
        metadata.labels,
        demands,
        preemptable(notes, labels),
        spec.preemption_policy != NEVER,
        cooldown=(duration_of(cooldown) or 0) if cooldown else 0,
        revocable=notes.revocable == "*" if notes.revocable else preemptable(notes, None) is True,
    )


def is_orphan(pod: Pod, view: PodView) -> bool:
    """Tell whether a pod of this scheduler waits and names no group."""
    group = view.metadata.annotations.group if view.metadata.annotations else ""
    return pod.ours and not group and pod.status is TaskStatus.PENDING and not pod.deleting


def _status(view: PodView) -> TaskStatus:
    phase, deleting = view.status.phase, view.metadata.deletion_timestamp is not None
    if phase == PodPhase.SUCCEEDED:
        return TaskStatus.SUCCEEDED
    if phase == PodPhase.FAILED:
        return TaskStatus.FAILED
    if deleting:
        return TaskStatus.RELEASING
    if phase == PodPhase.RUNNING:
        return TaskStatus.RUNNING
    if phase in (PodPhase.PENDING, ""):
        return TaskStatus.BOUND if view.spec.node_name else TaskStatus.PENDING
    return TaskStatus.UNKNOWN


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
