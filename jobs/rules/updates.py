"""Which fields of a job may change after it was created (reference: volcano-job §1.6, §7.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kube import lenient
from kube.errors import Cause, forbidden
from kube.meta import Object

REMEDY = "delete the job and create it again to change this."
_MAY_CHANGE = ("minAvailable", "priorityClassName")
_TASK_MAY_CHANGE = ("replicas", "minAvailable")


def check(job: Object, old: Object) -> Iterator[Cause]:
    """Yield a refusal for each part of the spec that changed and may not."""
    spec, before = lenient.mapping(job, "spec"), lenient.mapping(old, "spec")
    for field in _changed(spec, before, (*_MAY_CHANGE, "tasks", "volumes")):
        yield _refusal(f"spec.{field}")
    tasks, old_tasks = lenient.sequence(spec, "tasks"), lenient.sequence(before, "tasks")
    if len(tasks) != len(old_tasks):
        yield forbidden("spec.tasks", f"job updates may not add or remove tasks; {REMEDY}")
        tasks = []
    for number, (task, old_task) in enumerate(zip(tasks, old_tasks, strict=False)):
        for field in _changed(task, old_task, _TASK_MAY_CHANGE):
            yield _refusal(f"spec.tasks[{number}].{field}")
    volumes, old_volumes = lenient.sequence(spec, "volumes"), lenient.sequence(before, "volumes")
    if len(volumes) != len(old_volumes):
        yield _refusal("spec.volumes")
        volumes = []
    for number, (volume, old_volume) in enumerate(zip(volumes, old_volumes, strict=False)):
        # The controller stores the name of a claim that it made.
        free = ("volumeClaimName",) if lenient.mapping(volume, "volumeClaim") else ()
        for field in _changed(volume, old_volume, free):
            yield _refusal(f"spec.volumes[{number}].{field}")


def _changed(value: Any, old: Any, free: tuple[str, ...]) -> list[str]:
    new, before = lenient.mapping(value), lenient.mapping(old)
    return [field for field in sorted({*new, *before} - {*free}, key=str) if new.get(field) != before.get(field)]


def _refusal(path: str) -> Cause:
    allowed = "minAvailable, tasks[*].replicas, tasks[*].minAvailable and priorityClassName"
    return forbidden(path, f"job updates may not change fields other than {allowed}; {REMEDY}")
