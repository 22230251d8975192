"""Objects that tests make on a cluster, and what the cluster has of them."""

import json

from kube import resources
from kube.indexes import HOLDS_LABEL, HOLDS_SWEEP
from kube.resources import JOBS
from proof.harness.waiting import until
from proof.systems.work import job, shell

_TASK = {"name": "main", "replicas": 1, "template": {"spec": {"containers": [{"name": "main", "image": "any"}]}}}
_NOBODY = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "nobody", "uid": "none"}
_INVOLVED = {"kind": "Pod", "namespace": "default", "name": "nobody"}
_MEMBER = {"type": "Node", "selector": {"exactMatch": {"name": "nobody"}}}

# What there is in an object of each kind that is mirrored, beside its kind and name.
PARTS = {
    resources.NAMESPACES: {},
    resources.QUEUES: {"spec": {"weight": 2}},
    resources.NODES: {},
    resources.JOBS: {"spec": {"minAvailable": 1, "queue": "default", "tasks": [_TASK]}},
    resources.POD_GROUPS: {"spec": {"minMember": 3}},
    resources.PODS: {"spec": {"containers": [{"name": "main", "image": "any"}]}},
    resources.EVENTS: {"involvedObject": _INVOLVED, "reason": "Tried", "type": "Normal"},
    resources.PRIORITY_CLASSES: {"value": 7},
    resources.COMMANDS: {"action": "AbortJob", "target": _NOBODY},
    resources.CRON_JOBS: {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"tasks": [_TASK]}}}},
    resources.JOB_FLOWS: {"spec": {"flows": [{"name": "nobody"}]}},
    resources.JOB_TEMPLATES: {"spec": {"tasks": [_TASK]}},
    resources.CONFIGMAPS: {"data": {"answer": "42"}},
    resources.CLAIMS: {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    resources.RESOURCE_QUOTAS: {"spec": {"hard": {"count/secrets": "100"}}},
    resources.HYPER_NODES: {"spec": {"tier": 1, "members": [_MEMBER]}},
    resources.LIMIT_RANGES: {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "64"}}]}},
}


def sample(kind, name, *, namespace="default"):
    """Return a plain object of a kind."""
    metadata = {"name": name, "labels": {HOLDS_LABEL: HOLDS_SWEEP}}  # without it config maps are not mirrored
    if kind.namespaced:
        metadata["namespace"] = namespace
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **PARTS[kind]}


def staying(name, **fields):
    """A job whose pods are played until they are released."""
    note = {"stays": "until this is taken away"}
    return job(name, shell("sleep 3600", annotations=note, **fields), queue="default")


def release(cluster, name):
    """Let the pods of a job end."""
    cluster.kubectl("annotate", "pods", "-l", f"volcano.sh/job-name={name}", "stays-")


def there(cluster, kind, name, namespace="default"):
    """An object as the cluster has it, None when it has none."""
    options = ("-n", namespace, "--ignore-not-found", "--show-managed-fields", "-o", "json")
    found = cluster.kubectl("get", kind.id, name, *options)
    return json.loads(found) if found else None


def state(cluster, name, namespace="default"):
    return ((there(cluster, JOBS, name, namespace) or {}).get("status") or {}).get("state") or {}


def comes_to(cluster, name, *phases, namespace="default"):
    """Wait until a job is in one of the phases; where it does not come to that, say what the cluster tells of it."""

    def event_texts():
        events = cluster.get("events", "-n", namespace)["items"]
        messages = [
            (each["reason"], each["message"]) for each in events if each["involvedObject"]["name"].startswith(name)
        ]
        return f"that {name} is {phases}: {there(cluster, JOBS, name, namespace)}; {messages[-12:]}"

    until(lambda: state(cluster, name, namespace).get("phase") in phases, every_s=0.2, what=event_texts)


def pods(cluster, name, namespace="default"):
    """The pods of a job by their names."""
    found = cluster.get("pods", "-n", namespace, "-l", f"volcano.sh/job-name={name}")["items"]
    return {each["metadata"]["name"]: each for each in found}


def uids(cluster, name, namespace="default"):
    return {each: pod["metadata"]["uid"] for each, pod in pods(cluster, name, namespace).items()}


def refused(entries):
    """The requests of an audit that were forbidden."""
    return [(each["verb"], each["requestURI"]) for each in entries if each["responseStatus"]["code"] == 403]
