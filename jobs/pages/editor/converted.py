"""A Job of `batch/v1` as the Volcano Job that does the same work: pure."""

from __future__ import annotations

from typing import Any

from cluster.rules.batch.jobs import JOB_NAME, JOB_UID, LEGACY_JOB_NAME, LEGACY_JOB_UID
from jobs.rules import yaml_write
from jobs.rules.job_text import API_VERSION, KIND
from kube import lenient
from kube.kinds.batch import Action, JobEvent
from kube.kinds.workloads import CompletionMode
from kube.meta import Object

TASK = "main"
_GENERATED = (JOB_NAME, JOB_UID, LEGACY_JOB_NAME, LEGACY_JOB_UID)


def text(job: Object) -> str:
    """Return the YAML of the Volcano Job, headed by the differences."""
    return "".join(f"# {note}\n" for note in notes(job)) + yaml_write.dump(of(job))


def of(job: Object) -> Object:
    """Return the Volcano Job: a pod for each completion, and each starts as soon as it fits."""
    spec = lenient.mapping(job, "spec")
    # Drop what was generated for the Job, and its scheduler: Volcano's is used.
    template = lenient.mapping(spec, "template")
    pod = {key: value for key, value in lenient.mapping(template, "spec").items() if key != "schedulerName"}
    if (deadline_s := lenient.whole(spec, "activeDeadlineSeconds")) is not None:
        pod.setdefault("activeDeadlineSeconds", deadline_s)
    labels = lenient.mapping(template, "metadata", "labels")
    authored = {
        "labels": {key: value for key, value in labels.items() if key not in _GENERATED},
        "annotations": lenient.mapping(template, "metadata", "annotations"),
    }
    pod_metadata = {key: value for key, value in authored.items() if value}
    template = {**({"metadata": pod_metadata} if pod_metadata else {}), "spec": pod}
    volcano_spec: dict[str, Any] = {"minAvailable": 1, "queue": "default"}
    if retries := lenient.whole(spec, "backoffLimit"):
        volcano_spec |= {
            "maxRetry": retries,
            "policies": [{"event": str(JobEvent.POD_FAILED), "action": str(Action.RESTART_POD)}],
        }
    if (ttl := lenient.whole(spec, "ttlSecondsAfterFinished")) is not None:
        volcano_spec["ttlSecondsAfterFinished"] = ttl
    if _is_indexed(spec):
        volcano_spec["plugins"] = {"env": []}
    volcano_spec["tasks"] = [{"name": TASK, "replicas": _pods(spec), "minAvailable": 1, "template": template}]
    metadata = {field: job["metadata"][field] for field in ("name", "namespace")}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": volcano_spec}


def notes(job: Object) -> list[str]:
    """Return sentences on what the Volcano Job does otherwise."""
    spec = lenient.mapping(job, "spec")
    notes_ = [f"The Job {lenient.text(job, 'metadata', 'name')} of batch/v1, written as a Volcano Job."]
    at_once, pods = lenient.whole(spec, "parallelism"), _pods(spec)
    if at_once is not None and at_once < pods:
        notes_.append(f"All {pods} pods may run at once, where parallelism was {at_once}.")
    if _is_indexed(spec):
        notes_.append("A pod's number is VC_TASK_INDEX, where it was JOB_COMPLETION_INDEX.")
    if lenient.whole(spec, "activeDeadlineSeconds") is not None:
        notes_.append("activeDeadlineSeconds holds for each pod, where it held for the job.")
    if spec.get("suspend"):
        notes_.append("It starts when it is submitted, where it was suspended.")
    dropped = [name for name in ("podFailurePolicy", "successPolicy") if spec.get(name)]
    if dropped:
        notes_.append(f"Left out: {' and '.join(dropped)}; write policies for what they did.")
    return notes_


def _pods(spec: Object) -> int:
    for field in ("completions", "parallelism"):
        if (number := lenient.whole(spec, field)) is not None:
            return number
    return 1


def _is_indexed(spec: Object) -> bool:
    return spec.get("completionMode") == CompletionMode.INDEXED
