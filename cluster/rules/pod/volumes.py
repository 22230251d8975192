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
        causes += _check_update(claim, old)
    return causes


def _check_update(claim: Object, old: Object) -> list[Cause]:
    new, before = claim["spec"], {"volumeMode": "Filesystem", **(old.get("spec") or {})}
    if _rest(new, bound=_is_bound(old)) != _rest(before, bound=_is_bound(old)):
        return [forbidden("spec", FIXED)]
    wanted, had = (lenient.mapping(each, "resources", "requests").get("storage") for each in (new, before))
    if wanted is not None and had is not None and amount(wanted) < amount(had):
        return [forbidden("spec.resources.requests.storage", SHRUNK)]
    return []


def _is_bound(claim: Object) -> bool:
    return lenient.mapping(claim, "status").get("phase") != "Pending"


def _rest(spec: Object, *, bound: bool) -> Object:
    """Return the part of a claim's spec that stays; its volume is named once."""
    loose = {"resources", "volumeAttributesClassName"} if bound else {"volumeName"}
    return {key: value for key, value in spec.items() if key not in loose and value not in (None, "", [], {})}
