"""The Events that the controller sends about a job."""

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
    """Return an Event about a job; its annotations hold the policy firing, if it reports one."""
    annotations = policy_firings.as_annotations(firing)
    return events.event(about(job), reason, message, now, component=COMPONENT, kind=kind, annotations=annotations)


def about(job: JobFact) -> Object:
    """Return the part of a job that an Event's involvedObject needs."""
    metadata = {"namespace": job.namespace, "name": job.name, "uid": job.uid}
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata}
