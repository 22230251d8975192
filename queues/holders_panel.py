"""The owners besides Volcano Jobs that hold something of a queue; the jobs are listed on the same page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cluster import access
from dashboard.parts import usage_bar
from kube import amounts
from kube.amounts import Amounts
from kube.usage import Holder

MOST = 10


class Row(NamedTuple):
    """What an owner has in a queue; `name` is "" in the row for all owners that the reader may not see."""

    namespace: str
    kind: str
    name: str
    placed: int
    waiting: int
    holds: str


class Panel(NamedTuple):
    """The owners that hold most, and how many owners there are."""

    rows: list[Row]
    of: int

    @property
    def more(self) -> int:
        """How many owners are not named."""
        return self.of - len(self.rows)


def of_queue(holders: Sequence[Holder], visible: frozenset[str] | access.Everywhere) -> Panel:
    """Return the owners for a reader who may see the pods of the visible namespaces; `holders` are in their order."""

    def may_see(each: Holder) -> bool:
        return isinstance(visible, access.Everywhere) or each.namespace in visible

    seen = [each for each in holders if may_see(each)]
    hidden = [each for each in holders if not may_see(each)]
    rows = [
        Row(each.namespace, each.owner.kind, each.owner.name, each.placed, each.waiting, usage_bar.in_words(each.held))
        for each in seen[:MOST]
    ]
    if hidden:
        held: Amounts = {}
        for each in hidden:
            held = amounts.add(held, each.held)
        placed, waiting = sum(each.placed for each in hidden), sum(each.waiting for each in hidden)
        rows.append(Row("", "", "", placed, waiting, usage_bar.in_words(held)))
    return Panel(rows, len(rows) + len(seen[MOST:]))
