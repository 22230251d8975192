"""The list of nodes with their use, and the page of one node with its pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from cluster import access
from cluster.access import Actor, joining
from cluster.api import backend
from cluster.rules.node import node_engines
from cluster.rules.simulation import WISH
from cluster.store import Stored, store
from dashboard import cluster_usage, live, reserved_room
from dashboard.cluster_usage import NodeFacts, Picture
from dashboard.live import Parts, TopicRequest, Watch
from dashboard.pages import node_devices
from dashboard.parts import paging, phases, svg, usage_bar
from dashboard.parts.filters import Filter
from dashboard.parts.table import Column, Spec, Table, TableView
from kube import amounts, pod_health
from kube.amounts import Amounts
from kube.errors import NotFound
from kube.kinds.core import Pod
from kube.resources import JOBS, NODES, POD_GROUPS, PODS

UP = ("Ready", "Unschedulable")
STATES = (*phases.NODE_STATES, "Unschedulable")
KINDS = Filter("kind", "Kind", choices=("real", "simulated"), everything="Real and simulated")


def spec(*, is_mirror: bool) -> Spec:
    """Return the spec of the list; nodes of a cluster with an API of its own have no kind (real or simulated)."""
    return Spec(
        name="dashboard:nodes",
        columns=(
            Column("Node", sort="name", kind="name"),
            Column("State", sort="phase"),
            *(() if is_mirror else (Column("Kind", priority="low"),)),
            Column("CPU", sort="cpu", kind="bar"),
            Column("Memory", sort="memory", kind="bar"),
            Column("Pods", sort="pods", kind="bar"),
            Column("Age", sort="created", kind="time", priority="low"),
        ),
        filters=(Filter("phase", "State", choices=STATES, hidden=True), *(() if is_mirror else (KINDS,))),
        search="Part of a node's name",
        noun="node",
        plural="nodes",
    )


SPEC = spec(is_mirror=backend.is_mirror)
PODS_SPEC = Spec(
    name="dashboard:node-pods",
    columns=(
        Column("Pod", sort="name", kind="name"),
        Column("Phase", sort="phase"),
        Column("Job"),
        Column("Asks for", priority="low"),
        Column("Created", sort="created", kind="time"),
    ),
    filters=(Filter("phase", "Phase", choices=phases.POD_PHASES, hidden=True),),
    order="-created",
    noun="pod",
    plural="pods",
)
EMPTY = {
    "symbol": "server",
    "title": "There are no nodes",
    "text": (
        "The cluster has none, or these pages may not read them; the strip at the top says so then."
        if backend.is_mirror
        else "The node agent of this machine registers it when it starts; simulated nodes come with"
        f" VOLCANO_UI_NODES=10 {settings.UP_COMMAND}."
    ),
}


@live.topic(SPEC.name)
def node_list_topic(request: TopicRequest) -> Parts:
    """The list of nodes with its sums."""
    return node_table(request.actor, SPEC.read(request.params)).parts()


def node_table(actor: Actor, view: TableView) -> Table:
    """Return a page of the nodes."""
    access.require(actor, "list", NODES, "")
    with store.reading() as head, cluster_usage.current(head) as picture:
        nodes = [node for node in picture.nodes.values() if view.q.lower() in node.name]
        if kind := view.get("kind"):
            nodes = [node for node in nodes if node.simulated == (kind == "simulated")]
        counts = Counter(node.state for node in nodes)
        if state := view.get("phase"):
            nodes = [node for node in nodes if node.state == state]
        key = _ORDERS[view.sort.removeprefix("-")]
        nodes.sort(key=lambda node: (key(node, picture.on_node), node.name), reverse=view.sort.startswith("-"))
        page = paging.Page(view.page, view.per, len(nodes))
        rows = {}
        for node in nodes[page.offset : page.offset + page.size]:
            taken = picture.on_node.get(node.name, {})
            pairs = tuple((taken.get(name, 0), node.allocatable.get(name, 0)) for name in usage_bar.FIRST)
            rows[f"node-{node.name}"] = row_html(
                node.name, node.state, node.simulated, node.created, pairs, is_mirror=backend.is_mirror
            )
        extra = {"nodes-summary": summary(picture)}
    return Table(
        view=view,
        rows=rows,
        page=page,
        watches=[Watch(NODES.id), Watch(PODS.id)],
        counts=counts,
        phases=STATES,
        revision=head,
        empty=EMPTY,
        extra=extra,
    )


def summary(picture: Picture) -> str:
    """Return the sums over all nodes."""
    context = {
        "ready": sum(node.state in UP for node in picture.nodes.values()),
        "total": len(picture.nodes),
        "simulated": sum(node.simulated for node in picture.nodes.values()),
        "uses": usage_bar.table(picture.used(), picture.capacity()),
        "ready_bar": ready_bar(picture),
    }
    return render_to_string("dashboard/_nodes_summary.html", context)


def ready_bar(picture: Picture) -> SafeString:
    """Draw how many nodes are ready and how many are not."""
    ready = sum(node.state in UP for node in picture.nodes.values())
    return svg.stack([svg.Share(ready, "green", "ready"), svg.Share(len(picture.nodes) - ready, "red", "not ready")])


_ORDERS: dict[str, Callable[[NodeFacts, dict[str, Amounts]], Any]] = {
    "name": lambda node, _: node.name,
    "phase": lambda node, _: node.state,
    "created": lambda node, _: node.created,
    "cpu": lambda node, taken: _share(node, taken, "cpu"),
    "memory": lambda node, taken: _share(node, taken, "memory"),
    "pods": lambda node, taken: taken.get(node.name, {}).get("pods", 0),
}


def _share(node: NodeFacts, taken: dict[str, Amounts], resource: str) -> float:
    return taken.get(node.name, {}).get(resource, 0) / (node.allocatable.get(resource) or 1)


# Of a thousand nodes few change at a time: most rows are the same text as before.
@lru_cache(maxsize=4096)
def row_html(
    name: str, state: str, simulated: bool, created: str, pairs: tuple[tuple[int, int], ...], *, is_mirror: bool
) -> str:
    """Return a node's row, with as many cells as `spec` has columns."""
    uses = [usage_bar.of(resource, *pair) for resource, pair in zip(usage_bar.FIRST, pairs, strict=True)]
    return render_to_string(
        "dashboard/_node_row.html",
        {
            "name": name,
            "state": state,
            "simulated": simulated,
            "created": created,
            "uses": uses,
            "is_mirror": is_mirror,
        },
    )


# One node.


@live.topic("dashboard:node")
def node_topic(request: TopicRequest) -> Parts:
    """State, facts and use of one node."""
    name = request.params.get("name", "")
    watches = [Watch(NODES.id, "", name), Watch(PODS.id), Watch(POD_GROUPS.id)]
    return Parts(node_parts(request.actor, name)[1], watches=watches)


def node_parts(actor: Actor, name: str) -> tuple[str, dict[str, str]]:
    """Return a node's uid and the parts about it; raise NotFound if there is none of that name."""
    access.require(actor, "get", NODES, "", name)
    with store.reading() as head, cluster_usage.current(head) as picture:
        facts = picture.nodes.get(name)
        if facts is None:
            raise NotFound.of(NODES.id, name)
        rooms = [room for room in picture.reservations() if name in room.on_nodes()]
        reserved: Amounts = {}
        for room in rooms:
            reserved = amounts.add(reserved, room.on_nodes()[name])
        uses = usage_bar.table(picture.on_node.get(name, {}), facts.allocatable, reserved)
    conditions = sorted(facts.node.status.conditions, key=lambda each: (each.type != "Ready", each.type))
    devices, measured = node_devices.rows(actor, facts.node)
    context = {
        "facts": facts,
        "node": facts.node,
        "engine": node_engines.of(facts.node.metadata.name, facts.node.metadata.annotations),
        "uses": uses,
        "rooms": reserved_room.rows(actor, rooms, access.namespaces(actor, JOBS), node=name),
        "conditions": conditions,
        "wish": WISH,
        "devices": devices,
        "measured": measured,
        "joined": None if facts.simulated else joining.since(name),
    }
    parts: dict[str, str] = {
        f"node-{part}": render_to_string(f"dashboard/_node_{part}.html", context) for part in ("room", "head", "use")
    }
    return facts.uid, parts


@live.topic(PODS_SPEC.name)
def node_pods_topic(request: TopicRequest) -> Parts:
    """The pods of one node."""
    name = request.params.get("name", "")
    return pod_table(request.actor, name, PODS_SPEC.read(request.params)).parts()


def pod_table(actor: Actor, name: str, view: TableView) -> Table:
    """Return a page of the pods on a node that the actor may see."""
    visible = access.namespaces(actor, PODS)
    scope: dict[str, Any] = {} if visible is access.ALL else {"namespace": visible}
    with store.reading() as head:
        counts = store.count(PODS, node=name, text=view.q or None, **scope)
        total = counts.get(view.get("phase"), 0) if view.get("phase") else sum(counts.values())
        page = paging.Page(view.page, view.per, total)
        pods = store.find(
            PODS, node=name, phase=view.get("phase") or None, text=view.q or None,
            order=view.order, **page.span, **scope,
        )  # fmt: skip
    return Table(
        view=view,
        rows={f"pod-{stored.uid}": _pod_row(stored) for stored in pods},
        page=page,
        watches=[Watch(PODS.id)] if visible is access.ALL else [Watch(PODS.id, each) for each in sorted(visible)],
        counts=counts,
        phases=phases.POD_PHASES,
        revision=head,
        fixed={"name": name},
        empty={
            "symbol": "boxes",
            "title": "No pod is on this node",
            "text": "The scheduler binds pods to this node when a job fits. You see the pods of namespaces in which you may list them.",
        },
    )


def _pod_row(stored: Stored) -> str:
    pod = stored.read(Pod)
    owner = next((each for each in pod.metadata.owner_references if each.controller), None)
    try:
        request = amounts.pod_request(pod.spec)
    except ValueError:
        request = {}  # a quantity cannot be parsed: the column stays empty
    return render_to_string(
        "dashboard/_pod_row.html",
        {
            "pod": pod,
            "id": f"pod-{stored.uid}",
            "job": owner.name if owner and owner.kind == JOBS.kind else "",
            "trouble": pod_health.TEXTS.get(PODS.index(stored.object).trouble, ""),
            "phase": "Terminating" if pod.metadata.deletion_timestamp else pod.status.phase or "Pending",
            "requests": [amounts.show(name, request[name]) for name in usage_bar.in_order(request) if name != "pods"],
            "created": stored.created,
        },
    )
