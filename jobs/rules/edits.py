"""Editing a job: its editable fields, what somebody changed in them, and what others changed meanwhile.

The fields are those that `jobs.rules.updates` allows to change, and the labels, by
names such as `minAvailable` and `tasks.0.replicas`. An edit has three versions of
them: the base that the form was filled from, what was typed, and the job as it is now.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kube import lenient
from kube.meta import Object

Fields = dict[str, Any]
TITLES = {
    "minAvailable": "Pods that must start together",
    "priorityClassName": "Priority class",
    "labels": "Labels",
    "replicas": "Replicas",
}


class Difference(NamedTuple):
    """A field that is not the same in two versions."""

    name: str
    title: str
    before: Any
    after: Any


def read(job: Object) -> Fields:
    """Return a job's editable fields."""
    spec = lenient.mapping(job, "spec")
    fields: Fields = {
        "minAvailable": spec.get("minAvailable", 0),
        "priorityClassName": spec.get("priorityClassName") or "",
        "labels": dict(lenient.mapping(job, "metadata", "labels")),
    }
    for index, task in enumerate(lenient.sequence(spec, "tasks")):
        replicas = task.get("replicas", 0)
        fields[f"tasks.{index}.replicas"] = replicas
        fields[f"tasks.{index}.minAvailable"] = task.get("minAvailable", replicas)
    return fields


def write(job: Object, fields: Fields) -> Object:
    """Return a copy of a job with these editable fields."""
    before = read(job)
    changed = {name: value for name, value in fields.items() if value != before.get(name)}
    spec = {**job["spec"], "tasks": [dict(task) for task in job["spec"].get("tasks") or ()]}
    metadata = dict(job["metadata"])
    for name, value in changed.items():
        if name == "labels":
            metadata["labels"] = dict(value)
        elif name.startswith("tasks."):
            _, index, field = name.split(".")
            spec["tasks"][int(index)][field] = value
        else:
            spec[name] = value
    return {**job, "metadata": metadata, "spec": spec}


def path_of(name: str) -> str:
    """Return a field's path in a job: `spec.tasks[0].replicas`."""
    if name == "labels":
        return "metadata.labels"
    if name.startswith("tasks."):
        _, index, field = name.split(".")
        return f"spec.tasks[{index}].{field}"
    return f"spec.{name}"


def title_of(name: str, job: Object) -> str:
    """Return what a field of a job is called on its form."""
    if not name.startswith("tasks."):
        return TITLES[name]
    _, index, field = name.split(".")
    task = lenient.text(lenient.sequence(job, "spec", "tasks")[int(index)], "name")
    return f"{TITLES['replicas'] if field == 'replicas' else 'Minimum'} of {task}"


def differences(job: Object, before: Fields, after: Fields) -> list[Difference]:
    """Return the fields in which two versions of a job differ, in the order of the form."""
    return [
        Difference(name, title_of(name, job), before.get(name), value)
        for name, value in after.items()
        if value != before.get(name)
    ]


def merge(base: Fields, typed: Fields, now: Fields) -> Fields:
    """Return the fields that an edit wants: what was typed if that differs from the base, else the current value."""
    changed = {name: value for name, value in typed.items() if value != base.get(name)}
    return {name: changed.get(name, value) for name, value in now.items()}


def with_minimums(before: Fields, after: Fields) -> Fields:
    """Return the fields with the minimums of tasks, and of the job, shifted by the change of replicas.

    No minimum becomes negative, no task's higher than its replicas.
    """
    moved = dict(after)
    shift = 0
    for name, replicas in after.items():
        if not name.endswith(".replicas") or replicas == before.get(name):
            continue
        minimum = name.replace(".replicas", ".minAvailable")
        wanted = before[minimum] + replicas - before[name]
        moved[minimum] = min(max(wanted, 0), replicas)
        shift += moved[minimum] - before[minimum]
    moved["minAvailable"] = max(before["minAvailable"] + shift, 0)
    return moved


def effect(before: Fields, after: Fields) -> str:
    """Return in words what happens to a live job's pods when its fields change; "" if nothing."""
    changes = [value - (before.get(name) or 0) for name, value in after.items() if name.endswith(".replicas")]
    more = sum(change for change in changes if change > 0)
    fewer = -sum(change for change in changes if change < 0)
    sentences = [f"{_pods(more)} more will be started, when there is room."] if more else []
    if fewer:
        sentences.append(f"{_pods(fewer)} will be removed.")
    return " ".join(sentences)


def _pods(number: int) -> str:
    return f"{number:,} {'pod' if number == 1 else 'pods'}"
