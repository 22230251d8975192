"""The engines that run images on the machines of the embedded cluster, as their nodes report them."""

from __future__ import annotations

from django.conf import settings

from cluster.api.cluster_view import ClusterView
from cluster.rules.node import node_engines
from cluster.rules.node.node_engines import NodeEngine
from cluster.store import store


def reported() -> list[NodeEngine]:
    """Return the engines that nodes report, also "none"; nothing where another cluster is behind the pages."""
    if settings.TARGET is not None:
        return []
    return [engine for node in ClusterView(store).machines() if (engine := node_engines.read(node)) is not None]
