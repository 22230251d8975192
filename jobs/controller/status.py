"""A job's status: counters, state and the history of its phases (reference: volcano-job §1.5)."""

from __future__ import annotations

from typing import Any

from jobs.controller.facts import JobFact
from jobs.controller.pods import claim_name
from jobs.lifecycle.counts import Counts
from jobs.lifecycle.phases import Decision
from jobs.plugins.table import PLUGINS
from kube import meta
from kube.meta import Object

_RECOUNTED = ("pending", "running", "succeeded", "failed", "unknown", "terminating", "taskStatusCount")


def status_after(job: JobFact, decision: Decision, counts: Counts, now: int, **changes: Any) -> dict[str, Any]:
    """Return the status of a job after a decision.

    The last transition time and the conditions change only with the phase (reference: volcano-job §10, Q-9). Fields that
    are not counted here are kept; a change to None removes a field.
    """
    status = {name: value for name, value in job.status.items() if name not in _RECOUNTED}
    state = dict(job.status.get("state") or {})
    if job.is_new or decision.phase != job.phase:
        state["lastTransitionTime"] = meta.now_text(now)
        others = [each for each in status.get("conditions") or [] if each.get("status") != decision.phase]
        status["conditions"] = [
            *others,
            {"status": str(decision.phase), "lastTransitionTime": state["lastTransitionTime"]},
        ]
    state["phase"] = str(decision.phase)
    if decision.reason:
        text = decision.text
        state |= {"reason": decision.reason, "message": text.message}
        # If there are causes, the parts of the message besides them are also stored separately.
        parts = {"summary": text.summary if text.causes.groups else "", "next": text.next}
        state = {name: value for name, value in {**state, **parts}.items() if value or name not in parts}
    status["state"] = state
    status["minAvailable"] = job.min_available
    status |= counts.fields() | changes
    return {name: value for name, value in status.items() if value is not None}


def running_duration(job: JobFact, now: int) -> str:
    """Return the time since the job's creation, in whole seconds, as a kill writes it."""
    return meta.duration_text(max(now - job.created, 0) // 1000 * 1000)


def controlled_resources(job: JobFact, whole: Object) -> dict[str, str]:
    """Return the plugins and claims that a job controls (reference: volcano-job §1.5)."""
    controlled = {f"plugin-{name}": name for name in job.plugins if PLUGINS[name].is_registered}
    for number, volume in enumerate(whole["spec"].get("volumes") or []):
        name = volume.get("volumeClaimName") or (claim_name(job, number) if volume.get("volumeClaim") else "")
        if name:
            controlled[f"volume-pvc-{name}"] = name
    return controlled
