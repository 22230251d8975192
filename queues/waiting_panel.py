"""The pod groups that wait in a queue, in the order in which a cycle tries them, and the sum of all minima."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cluster import access
from kube import amounts
from kube.amounts import Amounts
from kube.volcano.pod_groups import job_of
from scheduler import waiting_lines
from scheduler.waiting_lines import Waiting

MOST = 10  # named; the table below has all jobs
NAMED_AMOUNTS = 3


class Row(NamedTuple):
    """A pod group at its position: `name` is "" if the reader may not see it, `job` if it is not a job's."""

    position: int
    namespace: str
    name: str
    job: str
    priority: int
    asks: str
    created: int


class Panel(NamedTuple):
    """The first of the `of` groups that wait in a queue.

    `pending` is the sum of the minima of all that wait in it and in the queues below it, `total` in number.
    """

    rows: list[Row]
    of: int
    pending: Amounts
    total: int

    @property
    def more(self) -> int:
        """How many wait behind those in `rows`."""
        return self.of - len(self.rows)


def of_queue(head: int, name: str, below: Iterable[str], visible: frozenset[str] | access.Everywhere) -> Panel:
    """Return the groups that wait in a queue at a revision, for a reader who may see the jobs of the visible namespaces."""
    with waiting_lines.current(head) as lines:
        rows = [
            _row(position, waiting, priority, visible)
            for position, (waiting, priority) in enumerate(lines.line(name, MOST), 1)
        ]
        names = [name, *below]
        pending: Amounts = {}
        for each in names:
            pending = amounts.add(pending, lines.requested(each))
        return Panel(rows, lines.number(name), pending, sum(map(lines.number, names)))


def _row(position: int, waiting: Waiting, priority: int, visible: frozenset[str] | access.Everywhere) -> Row:
    if not (isinstance(visible, access.Everywhere) or waiting.namespace in visible):
        return Row(position, "", "", "", priority, "", waiting.created)
    asks = ", ".join(amounts.show(name, amount) for name, amount in waiting.requests[:NAMED_AMOUNTS])
    job = job_of(waiting.name)
    return Row(position, waiting.namespace, waiting.name, job, priority, asks, waiting.created)
