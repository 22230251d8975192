"""What a write makes of an object: pure functions from the stored JSON to the next.

Sources: reference/kubernetes-api-and-batch-job.md §2.4 (create, update, delete) and §4.5 (metadata). Arguments are
never changed; parts of them are shared with the result.
"""

from __future__ import annotations

from random import Random
from typing import Any

from cluster.writes import Delete, Mirror, Patch, Update
from kube import apply, definitions, gates, names, patch, schema
from kube.errors import BadRequest, Conflict, Forbidden, Invalid, forbidden
from kube.kinds.pod import ENDED
from kube.meta import SERVER_METADATA, Object, parse_time, timestamp
from kube.resources import Resource

DEFAULT_GRACE_S = 30
GENERATED_BASE = 58  # generateName is cut so that five more characters fit a label (§2.4)
FINALIZER_OF = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


def generated_name(base: str, random: Random) -> str:
    """Return a name for `generateName` (reference: kubernetes-api §2.4); whether it is free is for others to see."""
    return base[:GENERATED_BASE] + names.suffix(random)


def created(resource: Resource, obj: Object, now: int, uid: str) -> Object:
    """Return obj as it is first stored, without its resourceVersion."""
    metadata = dict(obj.get("metadata") or {})
    if metadata.get("resourceVersion"):
        raise BadRequest("resourceVersion should not be set on objects to be created")
    for field in SERVER_METADATA:
        metadata.pop(field, None)
    metadata["uid"] = uid
    metadata["creationTimestamp"] = timestamp(now)
    if resource.has_generation:
        metadata["generation"] = 1
    new = {"apiVersion": resource.api_version, "kind": resource.kind, **obj, "metadata": metadata}
    return gates.with_condition(new, now) if resource.id == "pods" else new


def mirrored(write: Mirror) -> Object:
    """Return another cluster's object as it is stored here.

    Objects of a list do not say what they are. An API server writes null for a time that is not there, where ours
    writes nothing; it means the same, and readers expect values.
    """
    resource, metadata = write.resource, write.object["metadata"]
    check_namespace(resource, metadata.get("namespace") or "")
    if not (metadata.get("name") and metadata.get("uid") and metadata.get("resourceVersion")):
        raise BadRequest(f"{resource.id}: an object of another cluster has a name, a uid and a resourceVersion.")
    whole = {"apiVersion": resource.api_version, "kind": resource.kind, **write.object}
    return schema.without_nulls(whole, definitions.of(resource))


def updated(write: Update, old: Object, now: int) -> Object:
    """Return the object after an Update; the same as `old` when nothing changes."""
    resource, sent = write.resource, write.object
    metadata = sent["metadata"]
    check_preconditions(resource, old, metadata.get("uid") or "", str(metadata.get("resourceVersion") or ""))
    if write.subresource == "finalize":
        # Only this takes away the finalizers in the spec of a namespace.
        finalizers = (sent.get("spec") or {}).get("finalizers") or []
        spec = old.get("spec") or {}
        if finalizers == (spec.get("finalizers") or []):
            return old
        return {**old, "spec": {**spec, "finalizers": finalizers}}
    if write.subresource != "status":
        return _replaced(resource, old, sent)
    new = _with_status(old, sent.get("status"))
    if write.managed is None:
        return new
    new = {**new, "metadata": {**old["metadata"], "managedFields": write.managed}}
    return old if apply.same_but_times(old, new) else new


def patched(write: Patch, old: Object, now: int) -> Object:
    """Return the object after a Patch; the same as `old` when nothing changes."""
    check_preconditions(write.resource, old, write.uid, write.version)
    if write.subresource == "status":
        return _with_status(old, patch.merge(old.get("status") or {}, write.patch.get("status") or {}))
    if write.subresource == "binding":
        # A node is no change of what is wanted of a pod, so its generation stays.
        spec, metadata = old.get("spec") or {}, old["metadata"]
        if problem := _unbindable(metadata, spec, old):
            detail = f"pod {metadata['name']} {problem}"
            raise Conflict.of(f"{write.resource.id}/binding", metadata["name"], detail)
        status = patch.merge(old.get("status") or {}, write.patch.get("status") or {})
        return {**old, "spec": {**spec, "nodeName": write.patch["spec"]["nodeName"]}, "status": status}
    return _replaced(write.resource, old, patch.merge(old, write.patch))


def check_preconditions(resource: Resource, old: Object, uid: str, version: str) -> None:
    """Raise Conflict when a uid or a resourceVersion is given and is not the stored one."""
    metadata = old["metadata"]
    if uid and uid != metadata["uid"]:
        detail = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata['uid']}"
        raise Conflict.of(resource.id, metadata["name"], detail)
    if version and version != metadata["resourceVersion"]:
        raise Conflict.of(resource.id, metadata["name"])


def _with_status(old: Object, status: Any) -> Object:
    if status is None:
        return {key: value for key, value in old.items() if key != "status"}
    return old if status == old.get("status") else {**old, "status": status}


def _replaced(resource: Resource, old: Object, sent: Object) -> Object:
    old_metadata = old["metadata"]
    metadata = {k: v for k, v in sent["metadata"].items() if k not in SERVER_METADATA}
    metadata.update({field: old_metadata[field] for field in SERVER_METADATA if field in old_metadata})
    metadata["name"] = old_metadata["name"]
    if old_metadata.get("namespace"):
        metadata["namespace"] = old_metadata["namespace"]
    _check_finalizers(resource, old_metadata, metadata)
    new = {**sent, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    if resource.status_subresource:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
    if spec_finalizers(resource, old):
        new["spec"] = {**(new.get("spec") or {}), "finalizers": old["spec"]["finalizers"]}
    if new == old or apply.same_but_times(old, new):
        return old
    if resource.has_generation and _desired(resource, new) != _desired(resource, old):
        metadata["generation"] = old_metadata.get("generation", 1) + 1
    return new


def _desired(resource: Resource, obj: Object) -> Object:
    """Return what a generation counts: of a custom kind without a status subresource the status too."""
    without = ["apiVersion", "metadata"]
    if resource.schema is None or resource.status_subresource:
        without.append("status")
    return {k: v for k, v in obj.items() if k not in without}


def _check_finalizers(resource: Resource, old_metadata: Object, metadata: Object) -> None:
    if "deletionTimestamp" not in old_metadata:
        return
    new = set(metadata.get("finalizers") or ()) - set(old_metadata.get("finalizers") or ())
    if new:
        detail = f"no new finalizers can be added if the object is being deleted, found new finalizers {sorted(new)}"
        raise Invalid(
            f"{resource.kind} {old_metadata['name']!r} is invalid: metadata.finalizers: Forbidden: {detail}",
            causes=[forbidden("metadata.finalizers", detail)],
        )


def _unbindable(metadata: Object, spec: Object, pod: Object) -> str:
    """Return why a pod cannot be given a node, "" when it can."""
    if "deletionTimestamp" in metadata:
        return "is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'is already assigned to node "{spec["nodeName"]}"'
    return "has non-empty .spec.schedulingGates" if gates.is_gated(pod) else ""


def deleted(write: Delete, old: Object, now: int) -> Object | None:
    """Return the object marked for deletion, or None when it goes at once."""
    check_preconditions(write.resource, old, write.uid, write.version)
    metadata = dict(old["metadata"])
    finalizers = list(metadata.get("finalizers") or ())
    if write.grace != 0:  # which is how its node ends a pod
        # What becomes of dependents a second deletion says anew.
        wanted = FINALIZER_OF.get(write.propagation)
        finalizers = [each for each in finalizers if each == wanted or each not in FINALIZER_OF.values()]
        if wanted is not None and wanted not in finalizers:
            finalizers.append(wanted)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    grace = _grace(write, old)
    held = spec_finalizers(write.resource, old)
    if grace == 0 and not finalizers and not held:
        return None
    _mark(metadata, grace, now)
    if metadata == old["metadata"]:
        return old
    marked = {**old, "metadata": metadata}
    if held:
        marked["status"] = {**(old.get("status") or {}), "phase": "Terminating"}
    return marked


def spec_finalizers(resource: Resource, obj: Object) -> list[str]:
    """Return who must agree before a namespace goes (§4.6); other kinds have only metadata.finalizers."""
    return (obj.get("spec") or {}).get("finalizers") or [] if resource.id == "namespaces" else []


def _mark(metadata: Object, grace: int, now: int) -> None:
    """Set the deletion fields; a second deletion may only come sooner."""
    due = now + grace * 1000
    if "deletionTimestamp" not in metadata:
        if "generation" in metadata:
            metadata["generation"] += 1
    elif parse_time(metadata["deletionTimestamp"]) <= due:
        return
    metadata["deletionTimestamp"] = timestamp(due)
    metadata["deletionGracePeriodSeconds"] = grace


def _grace(write: Delete, old: Object) -> int:
    """Return the grace in seconds: only a bound, unfinished pod has any (§2.4)."""
    if write.resource.kind != "Pod":
        return 0
    spec = old.get("spec") or {}
    if not spec.get("nodeName") or (old.get("status") or {}).get("phase") in ENDED:
        return 0
    if write.grace is not None:
        return max(0, write.grace)
    seconds = spec.get("terminationGracePeriodSeconds")
    return DEFAULT_GRACE_S if seconds is None else int(seconds)


def is_released(resource: Resource, obj: Object) -> bool:
    """Tell whether an object marked for deletion has nothing left that holds it."""
    metadata = obj["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not spec_finalizers(resource, obj)
        and not metadata.get("deletionGracePeriodSeconds")
    )


def check_namespace(resource: Resource, namespace: str) -> None:
    """Raise when the namespace does not fit the scope of the kind."""
    if resource.namespaced and not namespace:
        raise BadRequest(f"{resource.id}: a namespace is needed; {resource.kind} objects live in one.")
    if not resource.namespaced and namespace:
        raise Forbidden(f"{resource.id}: {resource.kind} objects belong to no namespace; leave it out.")
