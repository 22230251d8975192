"""The engines that run images on the machines of the embedded cluster, as their nodes tell of them."""

from __future__ import annotations

from django.conf import settings

from cluster.api.cluster_view import ClusterView
from cluster.rules.node import node_engines
from cluster.rules.node.node_engines import NodeEngine
from cluster.store import store


def reported() -> list[NodeEngine]:
    """Return the engines of all nodes that tell of one or of none; nothing where another cluster is behind the pages."""
    if settings.TARGET is not None:
        return []
    return [found for node in ClusterView(store).machines() if (found := node_engines.read(node)) is not None]
