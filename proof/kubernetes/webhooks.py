"""What tests of the webhooks share."""

from __future__ import annotations

from typing import Any

from cluster.remote.webhooks import hooks
from kube.meta import Object
from kube.resources import QUEUES
from proof.kubernetes.cluster import Kubernetes

CONFIGURATIONS = [plural for _, plural in hooks.KINDS.values()]


def forget(kubernetes: Kubernetes, *queues: str) -> None:
    """Have the API server ask nobody any more, and let queues go."""
    for plural in CONFIGURATIONS:
        kubernetes.kubectl("delete", plural, hooks.NAME, "--ignore-not-found")
    kubernetes.kubectl("delete", QUEUES.id, *queues, "--ignore-not-found")


def queue(name: str, **spec: Any) -> Object:
    """Return a queue as a person writes it."""
    return {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
