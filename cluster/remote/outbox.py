"""Plans that are written down and not done: the table in which a consumer's groups wait for the cluster's answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cluster.models import Outgoing


class Row(NamedTuple):
    """A group as it was written down; the term is that of the leadership under which it was planned.

    Before `commands_seen` the Commands that it deletes are still to be looked for, and nothing of it was sent.
    """

    id: int
    term: str
    body: bytes
    commands_seen: bool


def put(cursor: str, term: str, bodies: Sequence[bytes], using: str, *, commands_seen: Sequence[bool]) -> None:
    """Write down a plan in the transaction that moves its cursor."""
    Outgoing.objects.using(using).bulk_create(
        Outgoing(cursor=cursor, term=term, body=body, commands_seen=seen)
        for body, seen in zip(bodies, commands_seen, strict=True)
    )


def note_commands_seen(groups: Sequence[Row], using: str) -> None:
    """Note that the Commands of groups exist, and that the groups may be sent from now on."""
    Outgoing.objects.using(using).filter(id__in=[row.id for row in groups]).update(commands_seen=True)


def cursors(using: str) -> list[str]:
    """Return the cursors of the plans that are not done."""
    return list(Outgoing.objects.using(using).values_list("cursor", flat=True).distinct())


def rows(cursors: Sequence[str], using: str) -> list[Row]:
    """Return the groups of cursors, in the order in which they were planned."""
    query = Outgoing.objects.using(using).filter(cursor__in=cursors).order_by("id")
    fields = query.values_list("id", "term", "body", "commands_seen")
    return [Row(id_, term, bytes(body), seen) for id_, term, body, seen in fields]


def remove(groups: Sequence[Row], using: str) -> None:
    """Forget groups of which the store shows what became of them."""
    if groups:
        # Those of one plan follow one another; another plan of these cursors waits for them.
        Outgoing.objects.using(using).filter(id__in=[row.id for row in groups]).delete()
