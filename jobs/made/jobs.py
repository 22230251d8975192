"""Jobs that a controller makes for an object: how they are made, and what is read of them.

They do not pass through the API, so what it does for a person's job is done here: the same defaults and the same rules.
Their creator is whoever created the object that they are made for.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from jobs.lifecycle.phases import FINISHED, phase_of
from jobs.rules import admission
from jobs.rules.admission import JobRulesView
from kube import lenient, meta, names
from kube.errors import Cause
from kube.kinds.batch import JobPhase, JobStatus
from kube.kinds.fields import View
from kube.kinds.meta import ObjectMeta
from kube.meta import Object
from kube.owners import controller_reference
from kube.resources import CREATOR_ANNOTATION, JOBS, Resource

COMPONENT = "vc-controller-manager"


class _Task(View):
    name: str = ""
    min_available: int | None = None


class _Spec(View):
    tasks: list[_Task] = []


class OwnedJob(View):
    """The part of a job that the controller of its owner reads."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()
    status: JobStatus = JobStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def phase(self) -> JobPhase:
        """The job's phase; Pending if no controller has seen it yet."""
        return phase_of(self.status.state.phase)

    @property
    def is_finished(self) -> bool:
        return self.phase in FINISHED

    @property
    def is_deleted(self) -> bool:
        """Whether the job is being deleted; it may still exist because of its pods."""
        return bool(self.metadata.deletion_timestamp)

    @property
    def ended(self) -> str:
        """When the job finished, as a timestamp in whole seconds; "" if it has not."""
        since = self.status.state.last_transition_time
        return meta.timestamp(meta.parse_time(since)) if self.is_finished and since else ""


def about(resource: Resource, metadata: ObjectMeta) -> dict[str, Any]:
    """Return the part of an owner of jobs that its events and status writes need."""
    named = {"namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": named}


def make(
    resource: Resource,
    owner: ObjectMeta,
    name: str,
    spec: Object,
    *,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
) -> Object:
    """Return a new job for an owner, without defaults; its creator is taken from the owner only."""
    noted = {key: value for key, value in annotations.items() if key != CREATOR_ANNOTATION}
    if creator := owner.annotations.get(CREATOR_ANNOTATION):
        noted[CREATOR_ANNOTATION] = creator
    metadata: dict[str, Any] = {"name": name, "namespace": owner.namespace}
    if labels:
        metadata["labels"] = dict(labels)
    if noted:
        metadata["annotations"] = noted
    metadata["ownerReferences"] = [controller_reference(resource, owner.name, owner.uid)]
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata, "spec": copy.deepcopy(spec)}


def complete(job: Object, view: JobRulesView) -> list[Cause]:
    """Fill in a job's defaults, and return everything that is wrong with it, as for a job that a person submits."""
    admission.default(job, None, view)
    return admission.validate(job, None, view)


def check_spec(name: str, namespace: str, spec: Any, view: JobRulesView, path: str) -> list[Cause]:
    """Return what is wrong with a spec from which jobs will be made; `path` is where the spec is.

    `name` is the longest name of such a job, or its known part, since pod names contain it. Whether the queue accepts jobs
    is only checked when one is made.
    """
    job = {"metadata": {"name": name, "namespace": namespace}, "spec": copy.deepcopy(spec)}
    causes = []
    for cause in complete(job, view):
        if cause.field != "spec.queue" and not cause.field.startswith("metadata."):
            below = cause.field.removeprefix("spec").removeprefix(".")
            causes.append(cause._replace(field=f"{path}.{below}" if below else path))
    return causes


def warnings(name: str, namespace: str, spec: Any, view: JobRulesView, path: str) -> list[str]:
    """Return warnings about a spec from which jobs will be made, for example that its queue is closed."""
    job = {"metadata": {"name": name, "namespace": namespace}, "spec": copy.deepcopy(spec)}
    closed = [str(cause) for cause in complete(job, view) if cause.field == "spec.queue"]
    texts = [*closed, *admission.warn(job, None, view)]
    return [f"{path}{text.removeprefix('spec')}" if text.startswith("spec") else text for text in texts]


def default_spec(owner: Object, old: Object | None) -> None:
    """Replace the seeds' spellings in an owner's spec that is a job's spec, as a template's is.

    Defaults are only filled in when a job is made, since they may depend on what a patch changes, as the minimum does on
    the replicas.
    """
    spec = lenient.mapping(owner, "spec")
    if spec:
        admission.respell(spec, lenient.mapping(old, "spec"))


def as_label(text: str) -> str:
    """Return the text if it is valid as a label's value, else ""."""
    return "" if names.label_value(text) else text
