"""Changes of jobs by every kind of patch, and by replacing what was read."""

from __future__ import annotations

import copy

from kube.meta import Object
from kube.resources import BATCH_JOBS, JOBS
from proof.simulation.people.desk import Desk, is_unfinished, wish
from proof.simulation.people.request import APPLY, JSON_PATCH, STRATEGIC, Request, name_of, patch, replace, version_of

MAX_REPLICAS = 8
EDITABLE = ("name", "labels", "namespace", "resourceVersion")


def _changeable(job: Object) -> bool:
    tasks = job["spec"].get("tasks")
    return is_unfinished(job) and bool(tasks) and not any("partitionPolicy" in each for each in tasks)


def _scaled(desk: Desk, job: Object) -> Object:
    """Return the spec of a job with other numbers of pods, all minimums within them."""
    spec: Object = copy.deepcopy(job["spec"])
    chosen = desk.one(spec["tasks"])
    chosen["replicas"] = desk.random.randint(0 if desk.chance(0.1) else 1, MAX_REPLICAS)
    least = min(chosen.get("minAvailable") or 0, chosen["replicas"])
    chosen["minAvailable"] = least
    pods = sum(each.get("replicas") or 0 for each in spec["tasks"])
    spec["minAvailable"] = min(spec.get("minAvailable") or 0, pods)
    return spec


def _size(spec: Object) -> str:
    return " and ".join(f"{each.get('replicas') or 0} {each['name']}" for each in spec["tasks"])


@wish(1.5)
def scale_a_job(desk: Desk) -> Request | None:
    """A merge patch, which writes the list of tasks whole."""
    job = desk.any(JOBS, _changeable)
    if job is None:
        return None
    who, spec = desk.whose(job), _scaled(desk, job)
    change = {"spec": {field: spec[field] for field in ("tasks", "minAvailable")}}
    if desk.chance(0.5):
        change["metadata"] = {"resourceVersion": version_of(job)}
    return patch(who, JOBS, job, change, f"{who} scales {name_of(job)} to {_size(spec)}")


@wish(1)
def scale_a_job_precisely(desk: Desk) -> Request | None:
    """A JSON patch that changes nothing else, of the version that was seen."""
    job = desk.any(JOBS, _changeable)
    if job is None:
        return None
    who, spec = desk.whose(job), _scaled(desk, job)
    change: list[Object] = [{"op": "test", "path": "/metadata/resourceVersion", "value": version_of(job)}]
    change.append({"op": "replace", "path": "/spec/minAvailable", "value": spec["minAvailable"]})
    for number, each in enumerate(spec["tasks"]):
        for field in ("replicas", "minAvailable"):
            where = f"/spec/tasks/{number}/{field}"
            change.append({"op": "add", "path": where, "value": each.get(field) or 0})
    return patch(who, JOBS, job, change, f"{who} scales {name_of(job)} to {_size(spec)}", JSON_PATCH)


@wish(0.8)
def edit_a_job(desk: Desk) -> Request | None:
    """`kubectl edit`: the whole object goes back, changed."""
    job = desk.any(JOBS, _changeable)
    if job is None:
        return None
    who, changed = desk.whose(job), copy.deepcopy(job)
    changed["spec"] = _scaled(desk, job)
    return replace(who, JOBS, changed, f"{who} edits {name_of(job)} to {_size(changed['spec'])}")


@wish(0.5)
def apply_a_job_again(desk: Desk) -> Request | None:
    """Server-side apply by the same manager, with other numbers."""
    job = desk.any(JOBS, lambda each: _changeable(each) and _is_applied(each))
    if job is None:
        return None
    who, metadata = desk.whose(job), job["metadata"]
    identity = {field: metadata[field] for field in ("name", "namespace", "labels")}
    spec = _scaled(desk, job)
    whole = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": identity, "spec": spec}
    words = f"{who} applies {name_of(job)} again, with {_size(spec)}"
    return patch(who, JOBS, job, whole, words, APPLY, fieldManager="kubectl", force="true")


def _is_applied(job: Object) -> bool:
    return (job["metadata"].get("labels") or {}).get("applied") == "true"


@wish(0.6)
def lower_the_minimum(desk: Desk) -> Request | None:
    """Let a gang begin with one pod less, or go on with fewer."""
    job = desk.any(JOBS, lambda each: _changeable(each) and (each["spec"].get("minAvailable") or 0) > 1)
    if job is None:
        return None
    who, least = desk.whose(job), job["spec"]["minAvailable"] - 1
    change = {"spec": {"minAvailable": least}}
    return patch(who, JOBS, job, change, f"{who} lets {name_of(job)} begin with {least} pods")


@wish(0.6)
def change_the_priority_of_a_job(desk: Desk) -> Request | None:
    """Raise or lower it while it waits or runs."""
    job, name = desk.any(JOBS, is_unfinished), desk.priority_class()
    if job is None or name is None:
        return None
    who, change = desk.whose(job), {"spec": {"priorityClassName": name}}
    how = desk.one(("application/merge-patch+json", STRATEGIC))
    return patch(who, JOBS, job, change, f"{who} gives {name_of(job)} the priority {name}", how)


@wish(0.6)
def note_something_on_a_job(desk: Desk) -> Request | None:
    """A label or an annotation, which changes nothing that runs."""
    job = desk.any(JOBS)
    if job is None:
        return None
    who, kind = desk.whose(job), desk.one(("labels", "annotations"))
    value = desk.one(("x", "y", None))
    change = {"metadata": {kind: {"note": value}}}
    return patch(who, JOBS, job, change, f"{who} notes {value} in the {kind} of {name_of(job)}")


@wish(0.5)
def suspend_or_resume_a_batch_job(desk: Desk) -> Request | None:
    """The field that jobs of batch/v1 have for it."""
    job = desk.any(BATCH_JOBS)
    if job is None:
        return None
    who, wanted = desk.whose(job), not job["spec"].get("suspend")
    words = f"{who} {'suspends' if wanted else 'resumes'} the batch/v1 job {name_of(job)}"
    return patch(who, BATCH_JOBS, job, {"spec": {"suspend": wanted}}, words)
