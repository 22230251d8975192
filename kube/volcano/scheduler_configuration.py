"""Where Volcano's scheduler is configured: one ConfigMap of the cluster (reference/volcano-scheduler §4.1)."""

from __future__ import annotations

from kube.resources import CONFIGMAPS, Resource

NAMESPACE = "volcano-system"
NAME = "volcano-scheduler-configmap"
KEY = "volcano-scheduler.conf"
"""The entry of its data that holds the YAML."""


def is_configuration(resource: Resource, namespace: str, name: str) -> bool:
    """Whether this is the object that configures the scheduler."""
    return resource is CONFIGMAPS and (namespace, name) == (NAMESPACE, NAME)
