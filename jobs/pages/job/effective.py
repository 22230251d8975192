"""What the system made of a job: what it added to what was written, and the pod of each task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from cluster.store import Stored, store
from jobs.controller import facts
from jobs.controller.pods import Blueprint, claim_name
from jobs.rules import additions, yaml_write
from jobs.rules.written import written
from kube import lenient
from kube.meta import Object
from kube.priorities import PriorityClasses
from kube.resources import CLAIMS, LIMIT_RANGES, PODS, PRIORITY_CLASSES

MAX_FIELDS = 100  # of one table
MAX_TASKS = 20
BY_CONTROLLER, BY_DEFAULT, BY_SCHEDULER = "the job controller", "a default", "the scheduler"


class Addition(NamedTuple):
    """A field that differs between the written and the stored, and who changed it."""

    name: str
    title: str
    before: Any
    after: Any
    by: str


@dataclass(frozen=True, slots=True)
class Added:
    """Added fields; `more` is how many others were cut off."""

    fields: Sequence[Addition]
    more: int


@dataclass(frozen=True, slots=True)
class Author:
    """A job as it was written, as YAML, and what was added; `is_known` is False if it is inferred."""

    text: str
    is_known: bool
    added: Added


@dataclass(frozen=True, slots=True)
class PodOf:
    """What a pod of a task gets besides its template. `pod` is its name; "" if none exists and one was made up."""

    task: str
    pod: str
    text: str
    added: Added


def author(job: Stored) -> Author:
    """Return a stored job as it was written, and what was added."""
    fact = facts.read_job(job.body)
    count = len(lenient.sequence(job.object, "spec", "volumes"))
    source = written(job.object, {claim_name(fact, index) for index in range(count)})
    plain = yaml_write.copy_of(job.object, job.name)
    differences = additions.of({"spec": source.spec}, {"spec": job.object.get("spec") or {}})
    added = [
        Addition(*each, BY_CONTROLLER if each.name.endswith("volumeClaimName") else BY_DEFAULT) for each in differences
    ]
    return Author(yaml_write.dump({**plain, "spec": source.spec}), source.is_known, _bounded(added))


def first_pods(job: Stored) -> list[str]:
    """Return the names of the displayed pods, one of each task."""
    return [f"{job.name}-{task.name}-0" for task in facts.read_job(job.body).tasks[:MAX_TASKS]]


def pods(job: Stored, *, is_there: bool = True) -> list[PodOf]:
    """Return what a pod of each task gets, from the real pod if there is one."""
    fact, whole = facts.read_job(job.body), job.object
    claims = {key.partition("/")[2] for key in store.names(CLAIMS, namespace=job.namespace).values()}
    world = priority_classes(), claims, ranges(job.namespace)
    tasks = lenient.sequence(whole, "spec", "tasks")
    names = first_pods(job)
    stored_pods = store.find(PODS, namespace=job.namespace, owner=job.uid, name=names) if is_there else ()
    real = {stored.name: stored.object for stored in stored_pods}
    return [
        _pod(Blueprint(fact, whole, index, *world), tasks[index], real.get(name)) for index, name in enumerate(names)
    ]


def _pod(blueprint: Blueprint, task: Object, real: Object | None) -> PodOf:
    drafts = [*blueprint.drafts(0)]
    whose: dict[str, str] = {}
    for (_, before), (name, after) in pairwise(drafts):
        for each in additions.of(_part(before.annotations, before.spec), _part(after.annotations, after.spec)):
            whose[each.name] = f"the plugin {name}"
    pod = real or blueprint.pod(0)
    metadata = pod["metadata"]
    template = lenient.mapping(task, "template")
    labels = lenient.mapping(template, "metadata", "labels")
    written_ = _part(lenient.mapping(template, "metadata", "annotations"), lenient.mapping(template, "spec"), labels)
    resulting = _part(metadata.get("annotations") or {}, pod["spec"], metadata.get("labels") or {})
    fields = [
        Addition(*each, whose.get(each.name, BY_SCHEDULER if each.name == "spec.nodeName" else BY_CONTROLLER))
        for each in additions.of(written_, resulting)
    ]
    text = yaml_write.dump({"metadata": {"name": metadata["name"], **resulting["metadata"]}, "spec": resulting["spec"]})
    return PodOf(blueprint.task, metadata["name"] if real else "", text, _bounded(fields))


def _part(annotations: Any, spec: Any, labels: Any = None) -> dict[str, Any]:
    return {"metadata": {"labels": dict(labels or {}), "annotations": dict(annotations)}, "spec": spec}


def _bounded(fields: Sequence[Addition]) -> Added:
    return Added(fields[:MAX_FIELDS], max(len(fields) - MAX_FIELDS, 0))


def priority_classes() -> PriorityClasses:
    """Return all priority classes."""
    classes = PriorityClasses()
    for stored in store.find(PRIORITY_CLASSES):
        classes.put(stored.name, stored.body)
    return classes


def ranges(namespace: str) -> list[Object]:
    """Return the limit ranges of a namespace."""
    return [stored.object for stored in store.find(LIMIT_RANGES, namespace=namespace)]
