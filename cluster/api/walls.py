"""The walls between pods and the machines of the embedded cluster, as their nodes tell of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from cluster.api.cluster_view import ClusterView
from cluster.rules import node_walls
from cluster.store import store

if TYPE_CHECKING:
    from cluster.rules.node_walls import NodeWall


def told() -> list[NodeWall]:
    """Return the walls of all nodes that tell of one; none where another cluster is behind the pages."""
    if settings.TARGET is not None:
        return []
    return [wall for node in ClusterView(store).machines() if (wall := node_walls.read(node)) is not None]


def is_for_administrators(wall: NodeWall) -> bool:
    """Say whether a node runs pods of administrators of all namespaces only."""
    return not wall.holds and not settings.ALLOW_UNWALLED


def who_may(wall: NodeWall) -> str:
    """Return whose pods run on a node; nothing where its wall holds."""
    if wall.holds:
        return ""
    if settings.ALLOW_UNWALLED:
        return "Pods of everybody run there all the same, as VOLCANO_UI_ALLOW_UNWALLED=1 says."
    return "Only pods of administrators of all namespaces run there; VOLCANO_UI_ALLOW_UNWALLED=1 would allow everybody's."
