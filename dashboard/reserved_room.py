"""Who has room kept for him, how much and on which nodes, as overview, queues, nodes and jobs show it, and who may give it back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cluster import access
from cluster.access import Actor
from cluster.api import backend
from cluster.runtime import registry
from cluster.store import Stored
from dashboard.parts import usage_bar
from kube import amounts
from kube.amounts import Amounts
from kube.resources import POD_GROUPS
from kube.volcano import reserved_room
from kube.volcano.reserved_room import GroupReservation

MOST_NODES = 4  # named; of the others their number


class Row(NamedTuple):
    """Room that is kept for a pod group: group and job are "" where the reader may not see whose it is, job also where it is no job's.

    amounts are in words, "" where nobody knows; nodes are the first ones, more how many others there are, both nothing for a place in line.
    """

    namespace: str
    group: str
    uid: str
    job: str
    queue: str
    amounts: str
    nodes: list[str]
    more: int
    since: int
    expected: int | None
    until: int
    may_release: bool

    @property
    def name(self) -> str:
        """What people call it."""
        return self.job or self.group


def rows(
    actor: Actor, rooms: Iterable[GroupReservation], visible: frozenset[str] | access.Everywhere, *, node: str = ""
) -> list[Row]:
    """Return what is kept, or what of it is on one node; visible are the namespaces whose jobs the actor may see."""
    return [_row(actor, each, visible, node) for each in rooms]


def of_group(actor: Actor, group: Stored | None) -> Row | None:
    """Return what is kept for a pod group that the actor may see; None where nothing is."""
    found = reserved_room.reserved_for(group.namespace, group.name, group.body) if group is not None else None
    return _row(actor, found, access.ALL, "") if found is not None else None


def may_release(actor: Actor, room: GroupReservation) -> bool:
    """Say whether the actor may give back what is kept; nobody may where another scheduler works, as it would not heed that."""
    if not backend.runs(registry.get("scheduler")):
        return False
    return access.allowed(actor, "patch", POD_GROUPS, room.namespace, owner=room.creator or None)


def _row(actor: Actor, room: GroupReservation, visible: frozenset[str] | access.Everywhere, node: str) -> Row:
    on_nodes = room.on_nodes()
    nodes = [] if node else sorted(on_nodes)
    seen = isinstance(visible, access.Everywhere) or room.namespace in visible
    named = nodes[:MOST_NODES] if seen else []
    return Row(
        namespace=room.namespace if seen else "",
        group=room.group if seen else "",
        uid=room.uid,
        job=room.job if seen else "",
        queue=room.queue,
        amounts=said(on_nodes.get(node, {}) if node else room.total()),
        nodes=named,
        more=len(nodes) - len(named),
        since=room.reservation.made,
        expected=room.reservation.expected,
        until=room.reservation.until,
        may_release=seen and may_release(actor, room),
    )


def said(kept: Amounts) -> str:
    """Say how much is kept; how many pods that is for only where it is all that is known."""
    named = usage_bar.in_order(name for name, amount in kept.items() if amount and name != "pods")
    named = named or [name for name in ("pods",) if kept.get(name)]
    return ", ".join(amounts.show(name, kept[name]) for name in named)
