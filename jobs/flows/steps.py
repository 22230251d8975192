"""The jobs of a flow: how each is named and made from its template, and what it waits for.

A flow lists its jobs as steps in `spec.flows`; each is made from the JobTemplate of the step's name (reference:
volcano-queue-podgroup-cli §7.1). Steps of one name make one job: by the first of them that may start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jobs.made import jobs
from jobs.made.jobs import OwnedJob
from kube import lenient, patch
from kube.kinds.batch import JobPhase
from kube.kinds.core import PodPhase
from kube.kinds.flow import Flow, JobFlow, TaskStatus
from kube.meta import Object
from kube.resources import JOB_FLOWS, JOBS

BY_TEMPLATE, BY_FLOW = "volcano.sh/createdByJobTemplate", "volcano.sh/createdByJobFlow"
POD_TEMPLATE = "io.k8s.api.core.v1.PodTemplateSpec"


def job_name(flow: str, step: str) -> str:
    """Return the name of the job that a flow makes from a template."""
    return f"{flow}-{step}"


def templates(flow: JobFlow) -> list[str]:
    """Return the names of a flow's templates, each once."""
    return list(dict.fromkeys(step.name for step in flow.spec.flows))


def job_for(flow: JobFlow, step: Flow, template: Object) -> Object:
    """Return the job of a flow's step, without defaults; raise PatchError if the step's patch does not fit the template.

    Annotations and labels say what it was made from; a label is left out if its value is not valid for a label.
    """
    owner = flow.metadata
    annotations = {BY_TEMPLATE: f"{owner.namespace}.{step.name}", BY_FLOW: f"{owner.namespace}.{owner.name}"}
    labels = {key: value for key, value in annotations.items() if jobs.as_label(value)}
    spec = patched(lenient.mapping(template, "spec"), step.patch.job_spec)
    name = job_name(owner.name, step.name)
    return jobs.make(JOB_FLOWS, owner, name, spec, labels=labels, annotations=annotations)


def by_hand(template: Object) -> Object:
    """Return a job made by hand from a template, without defaults; it belongs to no flow."""
    namespace, name = (lenient.text(template, "metadata", field) for field in ("namespace", "name"))
    source = {BY_TEMPLATE: f"{namespace}.{name}"}
    metadata: dict[str, Any] = {"generateName": f"{name}-", "namespace": namespace, "annotations": source}
    if jobs.as_label(source[BY_TEMPLATE]):
        metadata["labels"] = dict(source)
    spec = patch.merge(lenient.mapping(template, "spec"), {})
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata, "spec": spec}


def patched(spec: Object, changes: Mapping[str, Any]) -> Object:
    """Return a job's spec with a flow's changes applied; raise PatchError if they cannot be.

    Tasks are matched by name, volumes by mountPath; a pod template is changed by a strategic merge patch; every other
    field replaces the template's (Volcano's design for overriding templates). null removes a field.
    """
    rest = {key: value for key, value in changes.items() if key not in ("tasks", "volumes")}
    patched_spec = patch.merge(spec, rest)

    def task(before: Object, change: Object) -> Object:
        merged = patch.merge(before, {key: value for key, value in change.items() if key != "template"})
        if isinstance(change.get("template"), dict):
            merged["template"] = patch.strategic(before.get("template") or {}, change["template"], POD_TEMPLATE)
        return merged

    if "tasks" in changes:
        patched_spec["tasks"] = _merged(spec.get("tasks"), changes["tasks"], "name", task)
    if "volumes" in changes:
        patched_spec["volumes"] = _merged(spec.get("volumes"), changes["volumes"], "mountPath", patch.merge)
    return patched_spec


def _merged(items: Any, changes: Any, key: str, merge: Callable[[Object, Object], Object]) -> list[Any]:
    """Return the items, matched by `key` and merged with the changes; new items come last."""
    by_key = {lenient.text(item, key): item for item in items or () if isinstance(item, dict)}
    for change in changes if isinstance(changes, list) else ():
        if not isinstance(change, dict) or not lenient.text(change, key):
            raise patch.PatchError(f"Each item must be an object with a {key}, by which it is found.")
        name = change[key]
        by_key[name] = merge(by_key.get(name, {}), change)
    return list(by_key.values())


def may_start(step: Flow, existing: Mapping[str, OwnedJob], phases: Mapping[str, JobPhase]) -> bool:
    """Tell whether all targets of a flow's step let its job start.

    `existing` are the flow's existing jobs, `phases` the phases of all jobs that were made, both by the name of the
    template. A target must have completed, or the probe must hold for those of its tasks that it names.
    """
    probe = step.depends_on.probe
    statuses = probe.task_status_list if probe else []
    return all(
        phases.get(target) is JobPhase.COMPLETED or (target in existing and _holds(statuses, existing[target]))
        for target in step.depends_on.targets
    )


def _holds(statuses: Sequence[TaskStatus], job: OwnedJob) -> bool:
    """Tell whether enough pods of each task named in `statuses` are in its phase; False if the job has none of the tasks."""
    least = {task.name: max(1 if task.min_available is None else task.min_available, 1) for task in job.spec.tasks}
    of_job = [each for each in statuses if each.task_name in least]
    for each in of_job:
        counted = job.status.task_status_count.get(each.task_name)
        # A pod that has succeeded has been running.
        phases = (PodPhase.RUNNING, PodPhase.SUCCEEDED) if each.phase == PodPhase.RUNNING else (each.phase,)
        if counted is None or sum(counted.phase.get(phase, 0) for phase in phases) < least[each.task_name]:
            return False
    return bool(of_job)
