"""The network between nodes: HyperNodes as a tree, with the capacity and the use of their nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.template.loader import render_to_string

from cluster import access
from cluster.access import Actor
from cluster.store import store
from dashboard import cluster_usage, live
from dashboard.cluster_usage import Picture
from dashboard.live import Parts, TopicRequest, Watch
from dashboard.pages.nodes import UP
from dashboard.parts import paging, usage_bar
from dashboard.parts.table import Column, Spec, Table, TableView
from kube import amounts
from kube.amounts import Amounts
from kube.resources import HYPER_NODES, NODES, PODS
from kube.volcano import topology
from kube.volcano.topology import Domain

SPEC = Spec(
    name="dashboard:hypernodes",
    columns=(
        Column("HyperNode", sort="name", kind="name"),
        Column("Tier", kind="number"),
        Column("Nodes", kind="number"),
        Column("CPU", kind="bar"),
        Column("Memory", kind="bar"),
        Column("Pods", kind="bar", priority="low"),
        Column("What is odd", kind="message"),
    ),
    search="Part of a HyperNode's name",
    noun="HyperNode",
    plural="HyperNodes",
)
EMPTY = {
    "symbol": "list-tree",
    "title": "There are no HyperNodes",
    "text": (
        "They say which nodes are close together in the network, such as those of a rack, in tiers. Jobs ask with "
        "networkTopology to be in one of them. An administrator makes them with kubectl (kind HyperNode)."
    ),
}
INDENTS = 4  # of the tree; what lies deeper is not indented further


@live.topic(SPEC.name)
def hyper_node_topic(request: TopicRequest) -> Parts:
    """The tree of HyperNodes."""
    return hyper_node_table(request.actor, SPEC.read(request.params)).parts()


def hyper_node_table(actor: Actor, view: TableView) -> Table:
    """Return a page of the HyperNodes; each is followed by those below it unless a filter is set."""
    access.require(actor, "list", HYPER_NODES, "")
    with store.reading() as head, cluster_usage.current(head) as picture:
        hyper_nodes = (topology.read(stored.object) for stored in store.find(HYPER_NODES))
        labels = {name: facts.node.metadata.labels for name, facts in picture.nodes.items()}
        lines = list(tree(topology.domains({each.name: each for each in hyper_nodes}, labels)))
        if view.filtered:
            lines = [(domain, 0) for domain, _ in lines if view.q.lower() in domain.name]
        if view.sort.startswith("-"):
            lines = [(domain, 0) for domain, _ in sorted(lines, key=lambda line: line[0].name, reverse=True)]
        page = paging.Page(view.page, view.per, len(lines))
        rows = {
            f"hypernode-{domain.name}": _row(picture, domain, depth)
            for domain, depth in lines[page.offset : page.offset + page.size]
        }
    return Table(
        view=view,
        rows=rows,
        page=page,
        watches=[Watch(HYPER_NODES.id), Watch(NODES.id), Watch(PODS.id)],
        revision=head,
        empty=EMPTY,
    )


def tree(domains: Sequence[Domain]) -> Iterator[tuple[Domain, int]]:
    """Yield each domain once, with its depth: top ones by name, each followed by those below it."""
    by_name = {domain.name: domain for domain in domains}
    inner = {name for domain in domains for name in domain.below}
    pending = [(by_name[name], 0) for name in sorted(by_name.keys() - inner, reverse=True)]
    seen: set[str] = set()
    while pending:
        domain, depth = pending.pop()
        if domain.name not in seen:
            seen.add(domain.name)
            yield domain, depth
            pending += [(by_name[name], depth + 1) for name in reversed(domain.below)]


def _row(picture: Picture, domain: Domain, depth: int) -> str:
    taken: Amounts = {}
    allocatable: Amounts = {}
    ready = 0
    for name in domain.nodes:
        ready += picture.nodes[name].state in UP
        allocatable = amounts.add(allocatable, picture.nodes[name].allocatable)
        taken = amounts.add(taken, picture.on_node.get(name, {}))
    context = {
        "domain": domain,
        "depth": min(depth, INDENTS),
        "ready": ready,
        "uses": [usage_bar.of(name, taken.get(name, 0), allocatable.get(name, 0)) for name in usage_bar.FIRST],
    }
    return render_to_string("dashboard/_hyper_node_row.html", context)
