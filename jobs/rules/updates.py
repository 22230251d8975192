"""What of a job may change after it was created (reference: volcano-job §1.6, §7.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kube import lenient
from kube.errors import Cause, forbidden
from kube.meta import Object

REMEDY = "delete the job and create it again to change this."
_MAY_CHANGE = ("minAvailable", "priorityClassName")
_TASK_MAY_CHANGE = ("replicas", "minAvailable")


def check(job: Object, old: Object) -> list[Cause]:
    """Return a refusal for each part of the spec that changed and may not."""
    spec, before = lenient.mapping(job, "spec"), lenient.mapping(old, "spec")
    return [*_check_fields(spec, before), *_check_tasks(spec, before), *_check_volumes(spec, before)]


def _check_fields(spec: dict[str, Any], before: dict[str, Any]) -> Iterator[Cause]:
    for field in sorted({*spec, *before} - {*_MAY_CHANGE, "tasks", "volumes"}, key=str):
        if spec.get(field) != before.get(field):
            yield _refusal(f"spec.{field}")


def _check_tasks(spec: dict[str, Any], before: dict[str, Any]) -> Iterator[Cause]:
    tasks, old_tasks = lenient.sequence(spec, "tasks"), lenient.sequence(before, "tasks")
    if len(tasks) != len(old_tasks):
        yield forbidden("spec.tasks", f"job updates may not add or remove tasks; {REMEDY}")
        return
    for number, (task, old) in enumerate(zip(tasks, old_tasks, strict=True)):
        for field in _changed(task, old, _TASK_MAY_CHANGE):
            yield _refusal(f"spec.tasks[{number}].{field}")


def _check_volumes(spec: dict[str, Any], before: dict[str, Any]) -> Iterator[Cause]:
    volumes, old_volumes = lenient.sequence(spec, "volumes"), lenient.sequence(before, "volumes")
    if len(volumes) != len(old_volumes):
        yield _refusal("spec.volumes")
        return
    for number, (volume, old) in enumerate(zip(volumes, old_volumes, strict=True)):
        # The controller stores the name of a claim that it made.
        free = ("volumeClaimName",) if lenient.mapping(volume, "volumeClaim") else ()
        for field in _changed(volume, old, free):
            yield _refusal(f"spec.volumes[{number}].{field}")


def _changed(value: Any, old: Any, free: tuple[str, ...]) -> list[str]:
    new, before = lenient.mapping(value), lenient.mapping(old)
    return [field for field in sorted({*new, *before} - {*free}, key=str) if new.get(field) != before.get(field)]


def _refusal(path: str) -> Cause:
    allowed = "minAvailable, tasks[*].replicas, tasks[*].minAvailable and priorityClassName"
    return forbidden(path, f"job updates may not change fields other than {allowed}; {REMEDY}")
