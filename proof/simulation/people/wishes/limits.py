"""What bounds work from outside: quotas, limit ranges, disruption budgets, priority classes, namespaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kube.meta import Object
from kube.resources import (
    DISRUPTION_BUDGETS,
    JOBS,
    LIMIT_RANGES,
    NAMESPACES,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    Resource,
)
from proof.simulation.people.before import QUOTA, ROOMY
from proof.simulation.people.desk import PROTECTED, Desk, SoftLimit, is_unfinished, wish
from proof.simulation.people.request import Request, create, delete, name_of, patch

TIGHT = {"pods": "2", "requests.cpu": "2"}
JOB_NAME = "volcano.sh/job-name"  # the label of a job's pods
BUDGETS: tuple[Object, ...] = (
    {"minAvailable": 1},
    {"maxUnavailable": 1},
    {"minAvailable": "50%"},
    {"maxUnavailable": 0},
)
MAX_NAMESPACES, MAX_BUDGETS, MAX_CLASSES = 8, 15, 10


def _delete(desk: Desk, resource: Resource, obj: Object | None, what: str) -> Request | None:
    return None if obj is None else delete("admin", resource, obj, f"admin deletes {what} {name_of(obj)}")


# ---- quotas


def _is_tight(quota: Object) -> bool:
    return bool((quota.get("spec") or {}).get("hard", {}).get("pods") == TIGHT["pods"])


def _set_quota(desk: Desk, hard: Mapping[str, str], what: str, test: Callable[[Object], object]) -> Request | None:
    quota = desk.any(RESOURCE_QUOTAS, test)
    if quota is None:
        return None
    namespace = quota["metadata"]["namespace"]
    words = f"admin {what} the quota {name_of(quota)} of {namespace}"
    return patch("admin", RESOURCE_QUOTAS, quota, {"spec": {"hard": hard}}, words)


@wish(0.4)
def tighten_a_quota(desk: Desk) -> Request | None:
    """Less than what is used, perhaps."""
    return _set_quota(desk, TIGHT, "tightens", lambda each: not _is_tight(each))


@wish(0.8)
def relax_a_quota(desk: Desk) -> Request | None:
    """Room again."""
    return _set_quota(desk, ROOMY, "relaxes", _is_tight)


@wish(0.2)
def make_a_quota(desk: Desk) -> Request | None:
    """A second one, or one for a namespace that had none."""
    namespace, name = desk.side_namespace(), desk.name("quota")
    if namespace is None or len(desk.all(RESOURCE_QUOTAS)) >= MAX_NAMESPACES:
        return None
    body = {"metadata": {"name": name, "namespace": namespace}, "spec": {"hard": ROOMY}}
    return create("admin", RESOURCE_QUOTAS, body, f"admin makes the quota {name} in {namespace}")


@wish(0.2, soft_limit=SoftLimit(RESOURCE_QUOTAS, MAX_NAMESPACES // 2))
def delete_a_quota(desk: Desk) -> Request | None:
    """Any but the first."""
    quota = desk.any(RESOURCE_QUOTAS, lambda each: name_of(each) != QUOTA)
    return _delete(desk, RESOURCE_QUOTAS, quota, "the quota")


# ---- limit ranges


def _range(desk: Desk) -> list[Object]:
    most = {"cpu": desk.one(("2", "8", "16"))}
    return [{"type": "Container", "defaultRequest": {"cpu": "250m"}, "default": most, "max": most}]


@wish(0.3)
def make_a_limit_range(desk: Desk) -> Request | None:
    """What a container gets that says nothing, and the most that one may ask for."""
    namespace, name = desk.side_namespace(), desk.name("l")
    if namespace is None or len(desk.all(LIMIT_RANGES)) >= MAX_NAMESPACES // 2:
        return None
    body = {"metadata": {"name": name, "namespace": namespace}, "spec": {"limits": _range(desk)}}
    return create("admin", LIMIT_RANGES, body, f"admin makes the limit range {name} in {namespace}")


@wish(0.3)
def change_a_limit_range(desk: Desk) -> Request | None:
    """Smaller or larger."""
    found = desk.any(LIMIT_RANGES)
    if found is None:
        return None
    words = f"admin changes the limit range {name_of(found)}"
    return patch("admin", LIMIT_RANGES, found, {"spec": {"limits": _range(desk)}}, words)


@wish(0.4)
def delete_a_limit_range(desk: Desk) -> Request | None:
    """No bounds any more."""
    return _delete(desk, LIMIT_RANGES, desk.any(LIMIT_RANGES), "the limit range")


# ---- disruption budgets


@wish(0.6)
def protect_a_job(desk: Desk) -> Request | None:
    """A disruption budget for a job's pods, named for it: eviction does not work with two."""
    budgets = desk.picture.objects(DISRUPTION_BUDGETS.id)
    job = desk.any(JOBS, lambda each: is_unfinished(each) and _budget_key(each) not in budgets)
    if job is None or len(budgets) >= MAX_BUDGETS:
        return None
    namespace, name = _budget_key(job)
    amount = desk.one(BUDGETS)
    spec = {"selector": {"matchLabels": {JOB_NAME: name_of(job)}}, **amount}
    body = {"metadata": {"name": name, "namespace": namespace}, "spec": spec}
    return create("olga", DISRUPTION_BUDGETS, body, f"olga protects the pods of {name_of(job)}: {amount}")


def _budget_key(job: Object) -> tuple[str, str]:
    return job["metadata"]["namespace"], f"for-{name_of(job)}"


@wish(0.5, soft_limit=SoftLimit(DISRUPTION_BUDGETS, MAX_BUDGETS // 2))
def lift_a_protection(desk: Desk) -> Request | None:
    """Delete a disruption budget."""
    found = desk.any(DISRUPTION_BUDGETS)
    words = "olga deletes the disruption budget"
    return None if found is None else delete("olga", DISRUPTION_BUDGETS, found, f"{words} {name_of(found)}")


# ---- priority classes


@wish(0.2)
def make_a_priority_class(desk: Desk) -> Request | None:
    """Above, between or below the first ones."""
    if len(desk.all(PRIORITY_CLASSES)) >= MAX_CLASSES:
        return None
    name, value = desk.name("pc"), desk.one((-5, 0, 500, 5000))
    body = {"metadata": {"name": name}, "value": value}
    if desk.chance(0.3):
        body["preemptionPolicy"] = "Never"
    return create("admin", PRIORITY_CLASSES, body, f"admin makes the priority class {name} of {value}")


@wish(0.2)
def delete_a_priority_class(desk: Desk) -> Request | None:
    """Also one that jobs name; the first ones stay."""
    found = desk.any(PRIORITY_CLASSES, lambda each: name_of(each).startswith("pc"))
    return _delete(desk, PRIORITY_CLASSES, found, "the priority class")


# ---- namespaces


@wish(0.3)
def make_a_namespace(desk: Desk) -> Request | None:
    """A place for some time."""
    if len(desk.all(NAMESPACES)) >= MAX_NAMESPACES + len(PROTECTED):
        return None
    name = desk.name("n")
    return create("admin", NAMESPACES, {"metadata": {"name": name}}, f"admin makes the namespace {name}")


@wish(0.3)
def delete_a_namespace(desk: Desk) -> Request | None:
    """With all that is in it."""
    found = desk.any(NAMESPACES, lambda each: name_of(each)[0] == "n" and name_of(each)[1:].isdecimal())
    return _delete(desk, NAMESPACES, found, "the namespace")
