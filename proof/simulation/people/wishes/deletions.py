"""Jobs and pods that go: deleted in each way, evicted, one by one and many at once."""

from __future__ import annotations

from typing import Any

from kube.meta import Object
from kube.resources import BATCH_JOBS, JOBS, POD_GROUPS, PODS, Resource
from proof.simulation.people.desk import OVER, Desk, SoftLimit, has_owner, is_unfinished, phase_of, pod_phase, wish
from proof.simulation.people.request import Request, delete, name_of, path, path_of

PROPAGATIONS = {"Background": 5, "Foreground": 3, "Orphan": 1}
MAX_JOBS = 150
ENDED = ("Succeeded", "Failed")


def options(desk: Desk, obj: Object) -> Object:
    """Return options of a deletion: often none, sometimes what becomes of dependents, sometimes a precondition."""
    found: Object = {}
    if desk.chance(0.5):
        found["propagationPolicy"] = desk.weighed(PROPAGATIONS)
    if desk.chance(0.15):
        found["preconditions"] = {"uid": obj["metadata"]["uid"]}
    return found


def _deleted(desk: Desk, resource: Resource, obj: Object | None, what: str, **more: Any) -> Request | None:
    if obj is None:
        return None
    who, how = desk.whose(obj), {**options(desk, obj), **more}
    suffix = f" ({how['propagationPolicy']})" if "propagationPolicy" in how else ""
    return delete(who, resource, obj, f"{who} deletes {what} {name_of(obj)}{suffix}", **how)


@wish(3, soft_limit=SoftLimit(JOBS, MAX_JOBS, is_unfinished))
def delete_a_job(desk: Desk) -> Request | None:
    """In whichever phase it is."""
    job = desk.job()
    return _deleted(desk, JOBS, job, f"the {phase_of(job)} job" if job else "")


@wish(2, soft_limit=SoftLimit(JOBS, MAX_JOBS, lambda job: not is_unfinished(job)))
def clear_away_a_job(desk: Desk) -> Request | None:
    """One that is over."""
    return _deleted(desk, JOBS, desk.job(*OVER), "the finished job")


@wish(0.2, soft_limit=SoftLimit(JOBS, MAX_JOBS * 2))
def delete_a_lot_of_jobs(desk: Desk) -> Request | None:
    """All with a label in one namespace."""
    job = desk.any(JOBS, lambda each: (each["metadata"].get("labels") or {}).get("lot"))
    if job is None:
        return None
    namespace, lot = job["metadata"]["namespace"], job["metadata"]["labels"]["lot"]
    where = path(JOBS, namespace, labelSelector=f"lot%3D{lot}")
    words = f"olga deletes all jobs of the lot {lot} in {namespace}"
    return Request(actor="olga", method="DELETE", path=where, wish=words)


@wish(1.5, soft_limit=SoftLimit(PODS, 1000))
def delete_a_pod(desk: Desk) -> Request | None:
    """Whoever's it is; some clients do not wait for its end."""
    grace = {"gracePeriodSeconds": desk.one((0, 1, 30))} if desk.chance(0.4) else {}
    return _deleted(desk, PODS, desk.any(PODS), "the pod", **grace)


@wish(0.6, meant="either")
def delete_a_pod_once_more(desk: Desk) -> Request | None:
    """One that is going already; a second deletion may only make it go sooner."""
    grace = desk.one((0, 1, 30, 120))
    return _deleted(desk, PODS, desk.going(PODS), "once more the pod", gracePeriodSeconds=grace)


@wish(1, soft_limit=SoftLimit(PODS, 100, lambda pod: not has_owner(pod)))
def clear_away_a_pod(desk: Desk) -> Request | None:
    """One without a job, that has ended."""
    pod = desk.any(PODS, lambda each: not has_owner(each) and pod_phase(each) in ENDED)
    return _deleted(desk, PODS, pod, "the ended pod")


@wish(1.5, meant="either")
def evict_a_pod(desk: Desk) -> Request | None:
    """As drain does it; a disruption budget may be against it."""
    pod = desk.any(PODS, lambda each: pod_phase(each) == "Running")
    if pod is None:
        return None
    who, metadata = desk.whose(pod), {"name": name_of(pod), "namespace": pod["metadata"]["namespace"]}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    where = path_of(PODS, pod, "eviction")
    return Request(actor=who, method="POST", path=where, body=body, wish=f"{who} evicts {name_of(pod)}")


@wish(0.4, soft_limit=SoftLimit(BATCH_JOBS, 20))
def delete_a_batch_job(desk: Desk) -> Request | None:
    """Its pods stay unless one says otherwise."""
    return _deleted(desk, BATCH_JOBS, desk.any(BATCH_JOBS), "the batch/v1 job")


@wish(0.4, soft_limit=SoftLimit(POD_GROUPS, 20, lambda group: not has_owner(group)))
def delete_a_group(desk: Desk) -> Request | None:
    """A group without a job."""
    group = desk.any(POD_GROUPS, lambda each: not has_owner(each))
    return _deleted(desk, POD_GROUPS, group, "the group")


@wish(0.2)
def delete_the_group_of_a_job(desk: Desk) -> Request | None:
    """By mistake; the job's controller has to cope."""
    return _deleted(desk, POD_GROUPS, desk.any(POD_GROUPS, has_owner), "the job's group")
