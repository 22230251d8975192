"""Room that is kept for pod groups, as overview, queues, nodes and jobs show it: for whom, how much, on which nodes."""

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

MAX_NODES = 4  # that a row names; it counts the others


class Row(NamedTuple):
    """Room that is kept for a pod group.

    `group` and `job` are "" if the reader may not see the group, `job` also if it is not a job's. `amounts` are in words,
    "" if they are not determined yet. `nodes` are the first ones and `more` is the number of the others; a place in line
    reserves no nodes yet.
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
        """The job's name, or the pod group's if it is not a job's."""
        return self.job or self.group


def rows(
    actor: Actor, rooms: Iterable[GroupReservation], visible: frozenset[str] | access.Everywhere, *, node: str = ""
) -> list[Row]:
    """Return a row for each of the rooms, or of its part on one node; `visible` are the namespaces with jobs to be seen."""
    return [_row(actor, each, visible, node) for each in rooms]


def of_group(actor: Actor, group: Stored | None) -> Row | None:
    """Return the room that is kept for a pod group which the actor may see; None if there is none."""
    room = reserved_room.reserved_for(group.namespace, group.name, group.body) if group is not None else None
    return _row(actor, room, access.ALL, "") if room is not None else None


def may_release(actor: Actor, room: GroupReservation) -> bool:
    """Return whether the actor may release the room; nobody may if another scheduler works, which would ignore that."""
    if not backend.runs(registry.get("scheduler")):
        return False
    return access.allowed(actor, "patch", POD_GROUPS, room.namespace, owner=room.creator or None)


def _row(actor: Actor, room: GroupReservation, visible: frozenset[str] | access.Everywhere, node: str) -> Row:
    on_nodes = room.on_nodes()
    nodes = [] if node else sorted(on_nodes)
    is_visible = isinstance(visible, access.Everywhere) or room.namespace in visible
    named = nodes[:MAX_NODES] if is_visible else []
    return Row(
        namespace=room.namespace if is_visible else "",
        group=room.group if is_visible else "",
        uid=room.uid,
        job=room.job if is_visible else "",
        queue=room.queue,
        amounts=amounts_text(on_nodes.get(node, {}) if node else room.total()),
        nodes=named,
        more=len(nodes) - len(named),
        since=room.reservation.made,
        expected=room.reservation.expected,
        until=room.reservation.until,
        may_release=is_visible and may_release(actor, room),
    )


def amounts_text(reserved: Amounts) -> str:
    """Return reserved amounts in words; the number of pods only if they reserve nothing else."""
    pods = reserved.get("pods", 0)
    return usage_bar.in_words(reserved) or (amounts.show("pods", pods) if pods else "")
