"""Who works on a cluster: one installation of these pages at a time, by a Lease that the mirror program renews.

The rules are client-go's: who leads renews the Lease, who does not watches it, and takes it when it has not changed for as
long as it lasts. Times of others are never compared with a clock of ours. Volcano's own controllers and scheduler
may have Leases too, and pods, of which its installer runs one each without a Lease; while there are such pods or
Leases that are renewed nothing is written here. All of this is pure; `election` asks the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from kube.kinds.pod import ENDED
from kube.meta import Object

NAME = "volcano-ui"
VOLCANOS = ("vc-controller-manager", "vc-scheduler", "volcano")  # the last is how newer schedulers call theirs
APP_LABEL = "app"
APPS = ("volcano-controller", "volcano-scheduler")  # how Volcano's installer labels the pods of its programs
PROGRAMS = (  # of Volcano: what people call one, its Leases, the label of its pods
    ("controller manager", VOLCANOS[:1], APPS[0]),
    ("scheduler", VOLCANOS[1:], APPS[1]),
)
DURATION_S = 15
RENEW_WITHIN_S = 10  # who leads and could not renew for so long writes nothing any more
RETRY_S = 2.0


class ObservedLease(NamedTuple):
    """A Lease as it was first seen like this, by a clock of ours that never goes back; version "" when there is none."""

    version: str = ""
    holder: str = ""
    duration_s: int = DURATION_S
    since: float = 0.0

    def is_held(self, now: float) -> bool:
        """Whether somebody may still renew it."""
        return bool(self.holder) and now - self.since < self.duration_s


def observe(before: ObservedLease | None, lease: Object | None, now: float) -> ObservedLease:
    """Return a Lease as observed now."""
    spec: Mapping[str, Any] = (lease or {}).get("spec") or {}
    version = str(((lease or {}).get("metadata") or {}).get("resourceVersion") or "")
    duration = int(spec.get("leaseDurationSeconds") or DURATION_S)
    return observed_again(before, ObservedLease(version, str(spec.get("holderIdentity") or ""), duration, now))


def observed_again(before: ObservedLease | None, current: ObservedLease) -> ObservedLease:
    """Return the later of two observations, or the earlier one while the version is the same."""
    return before if before is not None and before.version == current.version else current


def running(pods: Iterable[Object], now: float) -> dict[str, ObservedLease]:
    """Return an observation of this moment for each of Volcano's programs that has a pod which has not ended.

    A running pod renews nothing that could be compared, so each observation of one counts as a renewal.
    """
    labels = [
        str((pod["metadata"].get("labels") or {}).get(APP_LABEL) or "")
        for pod in pods
        if (pod.get("status") or {}).get("phase") not in ENDED
    ]
    return {app: ObservedLease(f"pod at {now}", app, DURATION_S, now) for app in APPS if app in labels}


def turn(observed: ObservedLease, identity: str, now: float) -> Literal["create", "renew", "take", "wait"]:
    """Say what to do about our Lease."""
    if not observed.version:
        return "create"
    if observed.holder == identity:
        return "renew"
    return "wait" if observed.is_held(now) else "take"


def content(namespace: str, identity: str, moment: str, before: Object | None) -> Object:
    """Return the Lease as who leads writes it; the term of one who had it before goes on."""
    spec = (before or {}).get("spec") or {}
    is_mine = spec.get("holderIdentity") == identity
    metadata: Object = {"name": NAME, "namespace": namespace}
    if before is not None:
        metadata["resourceVersion"] = before["metadata"]["resourceVersion"]
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {
            "holderIdentity": identity,
            "leaseDurationSeconds": DURATION_S,
            "acquireTime": spec.get("acquireTime") if is_mine else moment,
            "renewTime": moment,
            "leaseTransitions": int(spec.get("leaseTransitions") or 0) + (before is not None and not is_mine),
        },
    }


def term_of(lease: Object) -> str:
    """Return what tells this leadership from every other: another one in between leaves another number."""
    spec = lease["spec"]
    return f"{spec['holderIdentity']}/{spec.get('leaseTransitions') or 0}/{spec.get('acquireTime')}"


def hindrance(observed: Mapping[str, ObservedLease], now: float) -> str:
    """Say which of Volcano's own programs work on the cluster, and what to do about it; "" when none does."""
    working = sorted({each.holder.partition("_")[0] for each in observed.values() if each.is_held(now)})
    if not working:
        return ""
    return (
        f"Volcano's own controllers or scheduler work there ({', '.join(working)}). Scale them to 0, or set"
        " VOLCANO_UI_WAY to beside."
    )


def absence(observed: Mapping[str, ObservedLease], now: float, at: Callable[[float], str]) -> str:
    """Say which of Volcano's programs do not work on the cluster; "" when both do.

    observed are its Leases by name, and by app the pods of `running`, which count for a program that has no Lease. `at` returns
    the time of day of a moment of our clock.
    """
    sentences = []
    for program, names, app in PROGRAMS:
        leases = [observed[name] for name in names if name in observed and observed[name].version]
        pods = [observed[app]] if app in observed else []
        if any(each.is_held(now) for each in leases or pods):
            continue
        if leases:
            since = max(each.since for each in leases)
            sentences.append(f"Volcano's {program} has not renewed its Lease since {at(since)}.")
        else:
            sentences.append(f"Volcano's {program} does not run there: it has neither a Lease nor a pod.")
    return " ".join(sentences)
