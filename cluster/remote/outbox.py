"""Plans that are written down and not done: the table in which a consumer's groups wait for the cluster's answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cluster.models import Outgoing

if TYPE_CHECKING:
    from collections.abc import Sequence


class Row(NamedTuple):
    """A group as it was written down; the term is that of the leadership under which it was planned."""

    id: int
    term: str
    body: bytes


def put(cursor: str, term: str, bodies: Sequence[bytes], using: str) -> None:
    """Write down a plan in the transaction that moves its cursor."""
    Outgoing.objects.using(using).bulk_create(
        Outgoing(cursor=cursor, term=term, body=body) for body in bodies
    )


def cursors(using: str) -> list[str]:
    """Return the cursors of the plans that are not done."""
    return list(Outgoing.objects.using(using).values_list("cursor", flat=True).distinct())


def rows(cursors: Sequence[str], using: str) -> list[Row]:
    """Return the groups of cursors, in the order in which they were planned."""
    found = Outgoing.objects.using(using).filter(cursor__in=cursors).order_by("id")
    return [Row(id_, term, bytes(body)) for id_, term, body in found.values_list("id", "term", "body")]


def remove(found: Sequence[Row], using: str) -> None:
    """Forget groups of which the store shows what became of them."""
    if found:
        # Those of one plan follow one another; another plan of these cursors waits for them.
        Outgoing.objects.using(using).filter(id__in=[row.id for row in found]).delete()
