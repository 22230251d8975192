"""Metrics: what nodes and containers use, as `kubectl top` shows it (metrics.k8s.io/v1beta1)."""

from __future__ import annotations

from kube.kinds.fields import View
from kube.meta import ObjectMeta


class NodeMetrics(View):
    """What a node uses, all of its processes together."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    timestamp: str = ""
    window: str = ""
    usage: dict[str, str] = {}


class ContainerMetrics(View):
    """What a container uses."""

    name: str = ""
    usage: dict[str, str] = {}


class PodMetrics(View):
    """What the containers of a pod use."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    timestamp: str = ""
    window: str = ""
    containers: list[ContainerMetrics] = []
