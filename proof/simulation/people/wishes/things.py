"""ConfigMaps and claims that jobs use; owners, finalizers, and fields that two managers want."""

from __future__ import annotations

from kube.meta import Object
from kube.resources import CLAIMS, CONFIGMAPS, JOBS, POD_GROUPS, PODS, SECRETS, SERVICES, Resource
from proof.simulation.people.desk import OVER, Desk, SoftLimit, has_owner, is_going, wish
from proof.simulation.people.request import (
    APPLY,
    STRATEGIC,
    Picture,
    Request,
    create,
    delete,
    name_of,
    patch,
    path,
    replace,
    version_of,
)

FINALIZER = "simulation.example/keep"
SHARED = "settings"  # a ConfigMap that two managers apply to
MANAGERS = ("gitops", "console")
FINALIZED = (JOBS, PODS, CONFIGMAPS, POD_GROUPS)
MAX_MAPS, MAX_CLAIMS = 40, 20


def _is_map(obj: Object) -> bool:
    return name_of(obj).startswith(("m", "o")) and name_of(obj)[1:].isdecimal()


# ---- ConfigMaps and claims


@wish(0.7)
def make_a_map(desk: Desk) -> Request:
    """Settings for pods."""
    who, name = desk.submitter(), desk.name("m")
    body = {"metadata": {"name": name, "namespace": desk.namespace()}, "data": {"key": "1"}}
    return create(who, CONFIGMAPS, body, f"{who} makes the ConfigMap {name}")


@wish(0.5)
def change_a_map(desk: Desk) -> Request | None:
    """By a patch, or by replacing what was read."""
    found = desk.any(CONFIGMAPS, _is_map)
    if found is None:
        return None
    who, value = desk.whose(found), str(desk.random.randint(2, 99))
    words = f"{who} writes {value} into the ConfigMap {name_of(found)}"
    if desk.chance(0.5):
        return replace(who, CONFIGMAPS, {**found, "data": {"key": value}}, words)
    return patch(who, CONFIGMAPS, found, {"data": {"key": value}}, words, STRATEGIC)


@wish(0.3, soft_limit=SoftLimit(CONFIGMAPS, MAX_MAPS, _is_map))
def delete_a_map(desk: Desk) -> Request | None:
    """Also one that pods use."""
    found = desk.any(CONFIGMAPS, _is_map)
    if found is None:
        return None
    who = desk.whose(found)
    return delete(who, CONFIGMAPS, found, f"{who} deletes the ConfigMap {name_of(found)}")


@wish(0.4)
def make_a_claim(desk: Desk) -> Request:
    """Room for files."""
    who, name = desk.submitter(), desk.name("v")
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {"metadata": {"name": name, "namespace": desk.namespace()}, "spec": spec}
    return create(who, CLAIMS, body, f"{who} makes the claim {name}")


@wish(0.3, soft_limit=SoftLimit(CLAIMS, MAX_CLAIMS))
def delete_a_claim(desk: Desk) -> Request | None:
    """Also one that a job made."""
    found = desk.any(CLAIMS)
    if found is None:
        return None
    who = desk.whose(found)
    return delete(who, CLAIMS, found, f"{who} deletes the claim {name_of(found)}")


# ---- owners


def owner(desk: Desk, resource: Resource, obj: Object) -> Object:
    """Return a reference to an owner that controls nothing."""
    found = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name_of(obj),
        "uid": obj["metadata"]["uid"],
    }
    return {**found, "blockOwnerDeletion": True} if desk.chance(0.4) else found


@wish(0.6)
def make_a_map_of_a_job(desk: Desk) -> Request | None:
    """It goes with the job, or with the last of its owners."""
    job = desk.any(JOBS)
    if job is None:
        return None
    namespace, owners = job["metadata"]["namespace"], [owner(desk, JOBS, job)]
    other = desk.any(CONFIGMAPS, lambda each: _is_map(each) and each["metadata"]["namespace"] == namespace)
    if other and desk.chance(0.4):
        owners.append(owner(desk, CONFIGMAPS, other))
    who, name = "olga" if len(owners) > 1 else desk.whose(job), desk.name("o")
    body = {"metadata": {"name": name, "namespace": namespace, "ownerReferences": owners}, "data": {"key": "1"}}
    named = " and ".join(each["name"] for each in owners)
    return create(who, CONFIGMAPS, body, f"{who} makes the ConfigMap {name}, which belongs to {named}")


@wish(0.4)
def disown_a_map(desk: Desk) -> Request | None:
    """It belongs to nobody, or to one owner less."""
    found = desk.any(CONFIGMAPS, has_owner)
    return None if found is None else _disown(desk, CONFIGMAPS, found)


@wish(0.2)
def disown_a_pod(desk: Desk) -> Request | None:
    """A job's pod that is not the job's any more."""
    found = desk.any(PODS, has_owner)
    return None if found is None else _disown(desk, PODS, found)


def _disown(desk: Desk, resource: Resource, obj: Object) -> Request:
    who, left = desk.whose(obj), obj["metadata"]["ownerReferences"][1:]
    change = {"metadata": {"ownerReferences": left or None, "resourceVersion": version_of(obj)}}
    words = f"{who} takes an owner from {resource.kind} {name_of(obj)}"
    return patch(who, resource, obj, change, words)


# ---- what plugins make

MADE = ((CONFIGMAPS, "-svc"), (SECRETS, "-ssh"), (SERVICES, ""))


@wish(0.5)
def delete_what_a_plugin_made(desk: Desk) -> Request | None:
    """Its job may still need it."""
    resource = desk.one((CONFIGMAPS, SECRETS, SERVICES))
    found = desk.any(resource, has_owner)
    if found is None:
        return None
    who = desk.whose(found)
    return delete(who, resource, found, f"{who} deletes the {resource.kind} {name_of(found)} of a job")


@wish(0.3)
def take_a_name_of_a_plugin(desk: Desk) -> Request | None:
    """Before the next run of a job, or the next job of its name, comes to make it."""
    job = desk.job(*OVER)
    if job is None:
        return None
    who, (resource, suffix) = desk.submitter(), desk.one(MADE)
    name = f"{name_of(job)}{suffix}"
    body = {"metadata": {"name": name, "namespace": job["metadata"]["namespace"]}}
    if resource == SERVICES:
        body["spec"] = {"ports": [{"port": 80}]}
    return create(who, resource, body, f"{who} makes the {resource.kind} {name}, which a plugin might want")


# ---- finalizers


def _finalizers(obj: Object) -> list[str]:
    return obj["metadata"].get("finalizers") or []


def _has_finalizer(obj: Object) -> bool:
    return FINALIZER in _finalizers(obj)


def _with_finalizers(who: str, resource: Resource, obj: Object, left: list[str], what: str) -> Request:
    # The list is written whole, so only if nobody else has changed the object.
    change = {"metadata": {"finalizers": left or None, "resourceVersion": version_of(obj)}}
    return patch(who, resource, obj, change, f"{who} {what} {resource.kind} {name_of(obj)}")


@wish(0.4)
def keep_something(desk: Desk) -> Request | None:
    """A finalizer: when it is deleted it stays until somebody lets it go."""
    resource = desk.one(FINALIZED)
    found = desk.any(resource, lambda each: not _has_finalizer(each))
    if found is None:
        return None
    left = [*_finalizers(found), FINALIZER]
    return _with_finalizers(desk.whose(found), resource, found, left, "puts a finalizer on")


@wish(0.6)
def let_something_go(desk: Desk) -> Request | None:
    """What is being deleted comes first."""
    found = finalized(desk.picture)
    chosen = desk.one_or_none([each for each in found if is_going(each[1])] or found)
    return None if chosen is None else let_go(*chosen)


def finalized(picture: Picture) -> list[tuple[Resource, Object]]:
    """Return what people have put a finalizer on, with its kind."""
    stored = {resource: picture.objects(resource.id) for resource in FINALIZED}
    return [
        (resource, objects[key])
        for resource, objects in stored.items()
        for key in sorted(objects)
        if _has_finalizer(objects[key])
    ]


def let_go(resource: Resource, obj: Object) -> Request:
    """Return the request by which an operator takes that finalizer away."""
    left = [each for each in _finalizers(obj) if each != FINALIZER]
    return _with_finalizers("olga", resource, obj, left, "takes a finalizer from")


# ---- fields with managers


def _apply(desk: Desk, manager: str, data: dict[str, str], what: str, **query: str) -> Request:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": SHARED}, "data": data}
    where = path(CONFIGMAPS, "default", SHARED, fieldManager=manager, **query)
    words = f"olga applies as {manager} {what} to the ConfigMap {SHARED}"
    return Request(actor="olga", method="PATCH", path=where, body=body, content_type=APPLY, wish=words)


@wish(0.4)
def apply_own_fields(desk: Desk) -> Request:
    """Two managers, each with fields of its own."""
    manager = desk.one(MANAGERS)
    return _apply(desk, manager, {manager: str(desk.random.randint(1, 99))}, "its own field")


@wish(0.3, meant="either")
def apply_a_shared_field(desk: Desk) -> Request:
    """A conflict, once the other manager has it with another value."""
    return _apply(desk, desk.one(MANAGERS), {"shared": desk.one("12")}, "the shared field")


@wish(0.2)
def apply_by_force(desk: Desk) -> Request:
    """Whoever has the field has it no more."""
    return _apply(desk, desk.one(MANAGERS), {"shared": desk.one("12")}, "by force", force="true")
