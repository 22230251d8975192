"""One plain object of each kind that is mirrored."""

from __future__ import annotations

from kube import resources
from kube.indexes import HOLDS_LABEL, HOLDS_SWEEP

_TASK = {"name": "main", "replicas": 1, "template": {"spec": {"containers": [{"name": "main", "image": "any"}]}}}
_NOBODY = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "nobody", "uid": "none"}
_INVOLVED = {"kind": "Pod", "namespace": "default", "name": "nobody"}

# What there is in an object beside its kind and name.
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
    resources.HYPER_NODES: {
        "spec": {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "nobody"}}}]}
    },
    resources.LIMIT_RANGES: {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "64"}}]}},
}


def sample(kind, name, *, namespace="default"):
    """Return an object of a kind."""
    metadata = {"name": name, "labels": {HOLDS_LABEL: HOLDS_SWEEP}}  # without it config maps are not mirrored
    if kind.namespaced:
        metadata["namespace"] = namespace
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **PARTS[kind]}
