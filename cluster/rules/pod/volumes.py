"""PersistentVolumeClaims: what they ask for, and what of it stays."""

from __future__ import annotations

from cluster.rules.checks import RulesView, amount, check_selector, one_of
from kube import lenient
from kube.errors import Cause, forbidden, invalid, required
from kube.meta import Object

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
FIXED = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
SHRUNK = "field can not be less than status.capacity"


def default_claim(claim: Object, old: Object | None, view: RulesView) -> None:
    """A claim is for files unless it says otherwise."""
    spec = claim["spec"] = dict(claim.get("spec") or {})
    spec["volumeMode"] = spec.get("volumeMode") or "Filesystem"
    if old is None:
        # Its volume is a directory of this machine, so there is nothing to wait for.
        capacity = lenient.mapping(spec, "resources", "requests")
        claim["status"] = {"phase": "Bound", "accessModes": spec.get("accessModes") or [], "capacity": capacity}


def validate_claim(claim: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with a claim; once it is made only its size may grow."""
    spec = claim["spec"]
    modes = spec.get("accessModes") or []
    causes = [*one_of(spec["volumeMode"], VOLUME_MODES, "spec.volumeMode")]
    if not modes:
        causes.append(required("spec.accessModes", "at least 1 access mode is required"))
    for number, mode in enumerate(modes):
        causes += one_of(mode, ACCESS_MODES, f"spec.accessModes[{number}]")
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        detail = "may not use ReadWriteOncePod with other access modes"
        causes.append(forbidden("spec.accessModes", detail))
    causes += check_selector(spec.get("selector"), "spec.selector")
    wanted = lenient.mapping(spec, "resources", "requests").get("storage")
    if wanted is None:
        causes.append(required("spec.resources[storage]"))
    elif amount(wanted) <= 0:
        causes.append(invalid("spec.resources[storage]", wanted, "must be greater than zero"))
    if old is not None:
        before = {"volumeMode": "Filesystem", **(old.get("spec") or {})}
        had = lenient.mapping(before, "resources", "requests").get("storage")
        is_bound = lenient.mapping(old, "status").get("phase") != "Pending"
        # Its volume is named once.
        loose = {"resources", "volumeAttributesClassName"} if is_bound else {"volumeName"}
        fields = (spec.keys() | before.keys()) - loose
        if any(spec.get(field) != before.get(field) for field in fields if spec.get(field) or before.get(field)):
            causes.append(forbidden("spec", FIXED))
        elif wanted is not None and had is not None and amount(wanted) < amount(had):
            causes.append(forbidden("spec.resources.requests.storage", SHRUNK))
    return causes
