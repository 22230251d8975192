"""Groups that could not be written: the timers that bring them back, and the events and rows for people meanwhile.

They come back at once the first time, later and later after that. What goes on failing gets an event now and then,
and a `Refusal` row for as long as it lasts, which the pages show beside its object.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from django.db.models import Q, QuerySet

from cluster.models import Refusal
from cluster.store import Stored
from cluster.writes import Create, Group, Timer
from kube import events
from kube.errors import ApiError
from kube.meta import Object
from kube.resources import EVENTS

RETRY = "retry"  # the kind of the timers that bring failed groups back
RETRY_MS = 50  # a group that fails a second time waits this long, then twice as long each time
RETRY_MAX_MS = 30_000
REPORTED_AFTER = 8  # tries, some three seconds: what only met another change is over by then
REPORTED_AFTER_MS = 3000  # the same where the tries are further apart
REFUSED = "WriteRefused"  # the reason of the event
log = logging.getLogger(__name__)


def event_groups(
    timers: Sequence[Timer], about: Callable[[str], Object | None], now: int, component: str
) -> list[Group]:
    """Return events with the errors of groups that go on failing: at first, then at twice as many tries each time.

    `about` gives the object that a group's key is about, as much of it as an event names, or None.
    """
    groups = []
    for timer in timers:
        is_due = timer.kind == RETRY and timer.payload.get("news")
        if is_due and (obj := about(timer.key)) is not None:
            text = f"Tried {timer.payload['tries']} times: {timer.payload['error']}"
            event = events.event(obj, REFUSED, text, now, component=component, kind=events.WARNING)
            groups.append(Group([Create(EVENTS, event)]))
    return groups


class Try(NamedTuple):
    """How often a group has failed, since when (epoch ms), and whether that is noted."""

    tries: int
    since: int
    is_noted: bool = False

    def again(self, now: int) -> Try:
        """Return the record after one more failure."""
        tries = self.tries + 1
        lasts = tries >= REPORTED_AFTER or (tries > 1 and now - self.since >= REPORTED_AFTER_MS)
        return Try(tries, self.since, self.is_noted or lasts)


class Retries:
    """How often the groups of one consumer's shard have failed, by their keys, since each was last written.

    What goes on failing is noted as a `Refusal` as well, for people and for the process that comes next.
    """

    def __init__(self, consumer: str, cursor: str, using: str) -> None:
        self._consumer, self._cursor, self._using = consumer, cursor, using
        self._cached: dict[str, Try] | None = None

    @property
    def _failing(self) -> dict[str, Try]:
        """The failing groups by key, at first those that another process has noted."""
        if self._cached is None:
            self._cached = {row.key: Try(row.tries, row.since, True) for row in self._rows()}
        return self._cached

    def timers(self, groups: Sequence[Group], outcomes: Sequence[list[Stored] | ApiError], now: int) -> list[Timer]:
        """Return the timers that bring failed groups back, and note what people should know; call it inside a transaction."""
        timers, lasting, done = [], [], []
        for group, outcome in zip(groups, outcomes, strict=True):
            if not isinstance(outcome, ApiError):
                done.append(group.key)
                continue
            before = self._failing.get(group.key, Try(0, now))
            tries, since, is_noted = self._failing[group.key] = before.again(now)
            log.info("consumer %s will look at %s again: %s", self._cursor, group.key, outcome)
            if not group.key:
                continue
            due = now + (0 if tries == 1 else min(RETRY_MAX_MS, RETRY_MS << min(tries - 2, 20)))
            is_reported = is_noted and (not before.is_noted or tries & (tries - 1) == 0)
            payload = {"error": str(outcome), "tries": tries, "news": is_reported}
            timers.append(Timer(RETRY, group.key, due, payload))
            if is_noted:
                about = {"consumer": self._consumer, "key": group.key, "since": since}
                lasting.append(Refusal(**about, tries=tries, error=str(outcome), due=due))
        Refusal.objects.using(self._using).bulk_create(
            lasting, update_conflicts=True, unique_fields=["consumer", "key"], update_fields=["tries", "error", "due"]
        )
        self._forget(done)
        return timers

    def outlived(self, timers: Sequence[Timer], groups: Sequence[Group], wanted: Sequence[Timer]) -> None:
        """Forget what came back, and is neither planned now nor wanted back; call it inside the transaction of the plan."""
        planned = {group.key for group in groups} | {each.key for each in wanted if each.kind == RETRY}
        self._forget(timer.key for timer in timers if timer.kind == RETRY and timer.key not in planned)

    def _forget(self, keys: Iterable[str]) -> None:
        gone = {key: failing for key in keys if (failing := self._failing.pop(key, None)) is not None}
        noted = [key for key, failing in gone.items() if failing.is_noted]
        if noted:
            self._rows().filter(key__in=noted).delete()

    def forget_memory(self) -> None:
        """Go by what is noted, since a transaction has come to nothing."""
        self._cached = None

    def _rows(self) -> QuerySet[Refusal]:
        return Refusal.objects.using(self._using).filter(consumer=self._consumer)


def current_refusals(keys: Mapping[str, str]) -> list[Refusal]:
    """Return what cannot be written now, the oldest first; `keys` by consumer may be `namespace/*` for all of one."""
    wanted = Q()
    for consumer, key in keys.items():
        of_key = Q(key__startswith=key[:-1]) if key.endswith("/*") else Q(key=key)
        wanted |= Q(of_key, consumer=consumer)
    return list(Refusal.objects.filter(wanted).order_by("since", "consumer", "key")) if wanted else []
