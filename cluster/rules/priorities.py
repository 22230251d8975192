"""PriorityClass: bounds, what stays, and one default at most (§6.3)."""

from __future__ import annotations

from cluster.rules.checks import IMMUTABLE, RulesView
from kube.errors import Cause, Forbidden, forbidden, invalid
from kube.meta import Object

SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
HIGHEST = 1_000_000_000  # of a class that people make
RESERVED = "system-"
KIND = "priorityclasses.scheduling.k8s.io"


def default(written: Object, old: Object | None, view: RulesView) -> None:
    """A class lets its pods preempt others unless it says otherwise."""
    written["preemptionPolicy"] = written.get("preemptionPolicy") or "PreemptLowerPriority"


def validate(written: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with a class; a second default is a Forbidden."""
    name, value = written["metadata"].get("name") or "", written.get("value") or 0
    for each in view.priority_classes() if written.get("globalDefault") else ():
        other = each["metadata"]["name"]
        if each.get("globalDefault") and (old is None or other != name):
            detail = f"PriorityClass {other} is already marked as default. Only one default can exist"
            raise Forbidden.of(KIND, name, detail)
    causes = []
    if name.startswith(RESERVED):
        causes += _check_reserved(name, value, is_default=bool(written.get("globalDefault")))
    elif value > HIGHEST:
        causes.append(forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST}"))
    if old is not None:
        if value != (old.get("value") or 0):
            causes.append(forbidden("value", "may not be changed in an update."))
        before = old.get("preemptionPolicy") or "PreemptLowerPriority"
        if written["preemptionPolicy"] != before:
            causes.append(invalid("preemptionPolicy", written["preemptionPolicy"], IMMUTABLE))
    return causes


def _check_reserved(name: str, value: int, *, is_default: bool) -> list[Cause]:
    if name not in SYSTEM:
        error = f"{name} is not a known system priority class"
    elif value != SYSTEM[name]:
        error = f"value of {name} PriorityClass must be {SYSTEM[name]}"
    elif is_default:
        error = f"globalDefault of {name} PriorityClass must be false"
    else:
        return []
    detail = f"priority class names with '{RESERVED}' prefix are reserved for system use only. error: {error}"
    return [forbidden("metadata.name", detail)]


def deletion(stored: Object, view: RulesView) -> list[Cause]:
    """The two classes of the system exist always."""
    if stored["metadata"]["name"] in SYSTEM:
        return [forbidden("metadata.name", "this priority class may not be deleted")]
    return []
