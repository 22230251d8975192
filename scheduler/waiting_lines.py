"""Which pod groups wait in each queue, in which order, and for what: for people, in the process that shows pages.

None of it is stored: a position in the status would have to be rewritten for every group behind whenever one leaves.
So it is read once and follows the log (`cluster.runtime.picture`); a position is found by a search in a sorted list.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from cluster.runtime.picture import SharedPicture
from cluster.store import Stored, store
from cluster.store.types import Single
from kube import amounts
from kube.amounts import Amounts
from kube.kinds.scheduling import PodGroupPhase
from kube.meta import parse_time
from kube.priorities import PriorityClasses
from kube.quantity import QuantityError
from kube.resources import CONFIGMAPS, POD_GROUPS, PRIORITY_CLASSES
from kube.usage import queue_named
from kube.volcano import scheduler_configuration
from scheduler.cycle.order import Rank, in_line
from scheduler.gangs.nominations import is_nominated
from scheduler.policy.config_map import Configuration
from scheduler.records.reading import GroupView
from scheduler.snapshot.snapshot import Changed

CONFIGURATION = Single(CONFIGMAPS, scheduler_configuration.NAMESPACE, scheduler_configuration.NAME)
KINDS = (POD_GROUPS, PRIORITY_CLASSES, CONFIGURATION)
WAITING = ("", PodGroupPhase.PENDING, PodGroupPhase.INQUEUE, PodGroupPhase.UNKNOWN)
"""Phases of groups whose minimum does not run."""
_groups = msgspec.json.Decoder(GroupView)


class Waiting(NamedTuple):
    """A pod group that waits, with what its minimum requests; created is in epoch ms."""

    namespace: str
    name: str
    queue: str
    priority_class: str
    created: int
    waits: str
    nominated: bool
    requests: tuple[tuple[str, int], ...]

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"


class LinePosition(NamedTuple):
    """A group's position among those that wait in its queue: its number from 1, of how many, and the groups just before it.

    before holds the nearest groups, the nearest last, each with the value of its priority class.
    """

    number: int
    of: int
    before: tuple[tuple[Waiting, int], ...] = ()


class Lines:
    """The groups that wait, by queue, at one revision."""

    def __init__(self, revision: int = -1) -> None:
        self.revision = revision
        self._waiting: dict[str, tuple[Waiting, Rank]] = {}
        self._lines: dict[str, list[tuple[Rank, str]]] = {}
        self._classes = PriorityClasses()
        self._configuration = Configuration()

    @classmethod
    def loaded(cls, head: int) -> Lines:
        """Return the lines as they are stored."""
        lines = cls(head)
        for found in store.find(PRIORITY_CLASSES):
            lines._classes.put(found.name, found.body)
        for change in reversed(store.history(CONFIGMAPS, CONFIGURATION.namespace, CONFIGURATION.name)):
            lines._configuration.take(None if change.verb == "DELETED" else change.body)
        for found in store.find(POD_GROUPS, phase=[str(phase) for phase in WAITING]):
            lines._take_group(found, gone=False)
        return lines

    def take(self, change: Changed) -> None:
        """Take over one change."""
        gone = change.verb == "DELETED"
        if change.resource == POD_GROUPS.id:
            self._take_group(change, gone=gone)
            return
        if change.resource == PRIORITY_CLASSES.id:
            self._classes.put(change.name, None if gone else change.body)
        else:
            self._configuration.take(None if gone else change.body)
        self._sort_anew()

    def position(self, key: str, nearest: int = 3) -> LinePosition | None:
        """Return the position of a group (namespace/name) and the groups before it; None when it does not wait."""
        entry = self._waiting.get(key)
        if entry is None:
            return None
        waiting, rank = entry
        line = self._lines[waiting.queue]
        at = bisect_left(line, (rank, key))
        return LinePosition(at + 1, len(line), tuple(self._named(line[max(at - nearest, 0) : at])))

    def queue_of(self, key: str) -> str:
        """Return the queue in which a group (namespace/name) waits; "" when it does not."""
        entry = self._waiting.get(key)
        return entry[0].queue if entry is not None else ""

    def line(self, queue: str, limit: int, offset: int = 0) -> list[tuple[Waiting, int]]:
        """Return the groups that wait in a queue, in order, each with the value of its priority class."""
        return list(self._named(self._lines.get(queue, [])[offset : offset + limit]))

    def number(self, queue: str) -> int:
        """Return how many wait in a queue."""
        return len(self._lines.get(queue, ()))

    def requested(self, queue: str) -> Amounts:
        """Return the sum of what the minima of the groups that wait in a queue request."""
        total: Amounts = {}
        for _, key in self._lines.get(queue, ()):
            for name, amount in self._waiting[key][0].requests:
                total[name] = total.get(name, 0) + amount
        return total

    def _named(self, some: list[tuple[Rank, str]]) -> Iterator[tuple[Waiting, int]]:
        for _, key in some:
            waiting = self._waiting[key][0]
            yield waiting, self._classes.value(waiting.priority_class)

    def _take_group(self, stored: Stored | Changed, *, gone: bool) -> None:
        key = f"{stored.namespace}/{stored.name}"
        entry = self._waiting.pop(key, None)
        if entry is not None:
            line = self._lines[entry[0].queue]
            del line[bisect_left(line, (entry[1], key))]
        waiting = None if gone else _waiting(stored)
        if waiting is not None:
            self._put(waiting)

    def _put(self, waiting: Waiting) -> None:
        rank = in_line(self._configuration.policy, self._classes.value)(waiting, waiting.nominated)
        self._waiting[waiting.key] = waiting, rank
        insort(self._lines.setdefault(waiting.queue, []), (rank, waiting.key))

    def _sort_anew(self) -> None:
        every = [waiting for waiting, _ in self._waiting.values()]
        self._waiting, self._lines = {}, {}
        for waiting in every:
            self._put(waiting)


def _waiting(stored: Stored | Changed) -> Waiting | None:
    """Return a stored pod group as one that waits; None if it does not wait or cannot be read."""
    try:
        view = _groups.decode(stored.body)
        created = parse_time(view.metadata.creation_timestamp)
        requests = amounts.of(view.spec.min_resources or view.spec.total_resources or {})
    except (msgspec.ValidationError, QuantityError, ValueError):
        return None
    if view.status.phase not in WAITING:
        return None
    notes = view.metadata.annotations
    return Waiting(
        stored.namespace,
        stored.name,
        queue_named(view.spec.queue),
        view.spec.priority_class_name or "",
        created,
        (notes.waits or notes.waits_too) if notes else "",
        is_nominated(view),
        tuple((name, each) for name, each in requests.items() if each and not name.startswith(_QUOTA)),
    )


_QUOTA = ("requests.", "limits.", "count/")  # prefixes under which quotas repeat the same amounts
_picture = SharedPicture(KINDS, Lines.loaded)
current, forget = _picture.current, _picture.forget
