"""The Events by which the controller tells people of a job."""

from __future__ import annotations

from jobs.controller.facts import JobFact
from jobs.lifecycle import policy_firings
from jobs.lifecycle.policy_firings import PolicyFiring
from kube import events
from kube.meta import Object
from kube.resources import JOBS

COMPONENT = "vc-controller-manager"


def event(
    job: JobFact, reason: str, message: str, now: int, *, kind: str, firing: PolicyFiring | None = None
) -> Object:
    """Return an Event about a job, with the policy firing that it tells of."""
    annotations = policy_firings.as_annotations(firing)
    return events.event(about(job), reason, message, now, component=COMPONENT, kind=kind, annotations=annotations)


def about(job: JobFact) -> Object:
    """Return as much of a job as an Event names."""
    metadata = {"namespace": job.namespace, "name": job.name, "uid": job.uid}
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata}
