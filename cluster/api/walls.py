"""The walls between pods and the machines of the embedded cluster, as their nodes report them."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings

from cluster.access import Actor, hostpaths, makers
from cluster.api.cluster_view import ClusterView
from cluster.rules import simulation
from cluster.rules.node import node_walls
from cluster.rules.node.node_walls import NodeWall
from cluster.store import store
from kube import resources
from kube.meta import Object
from kube.resources import Resource

# What has pods run as it is; templates and flows only have such things made.
RUNNING = (resources.PODS, resources.JOBS, resources.BATCH_JOBS, resources.CRON_JOBS)


def reported(view: ClusterView | None = None) -> list[NodeWall]:
    """Return the walls that nodes report; none where another cluster is behind the pages."""
    if settings.TARGET is not None:
        return []
    machines = (view or ClusterView(store)).machines()
    return [wall for node in machines if (wall := node_walls.read(node)) is not None]


def warnings(actor: Actor, resource: Resource, obj: Object, view: ClusterView) -> Iterator[str]:
    """Warn that the pods of a new object will wait, because no machine has the wall that they need."""
    if resource not in RUNNING or makers.is_administrator(actor):
        return
    node_walls = reported(view)
    if not node_walls or not all(wall.runs_nothing or is_for_administrators(wall) for wall in node_walls):
        return
    if not any(simulation.may_be_simulated(spec) for spec in hostpaths.pod_specs(obj)):
        wall = node_walls[0]
        why = who_may(wall) if is_for_administrators(wall) else wall.sentence
        yield f"spec: the pods wait, for want of a wall round them on the node {wall.node}. {why}"


def is_for_administrators(wall: NodeWall) -> bool:
    """Say whether a node runs pods of administrators of all namespaces only."""
    return not wall.holds and not settings.ALLOW_UNWALLED


def who_may(wall: NodeWall) -> str:
    """Return whose pods run on a node; nothing where its wall holds."""
    if wall.holds:
        return ""
    if settings.ALLOW_UNWALLED:
        return "Pods of everybody run there all the same, as VOLCANO_UI_ALLOW_UNWALLED=1 says."
    return (
        "Only pods of administrators of all namespaces run there; VOLCANO_UI_ALLOW_UNWALLED=1 would allow everybody's."
    )
