"""Looks now and then for jobs that wait although nobody uses the room that they need (`scheduler.idle`), and reports them.

A state is judged when the scheduler has read all of it and has left it so, or has not read it for so long that this alone is a fault.
While changes are still on their way to the scheduler, as on a busy cluster most of the time, nothing is judged; nor where the
scheduler's configuration closes nodes to some jobs or at some times.
"""

from __future__ import annotations

import logging
from itertools import takewhile

from cluster import clock
from cluster.api import backend
from cluster.consumers.consumer import RETRY, timers_of
from cluster.runtime import division, idle_room, registry
from cluster.runtime.idle_room import EVERY_MS, Check, Wait
from cluster.runtime.picture import SharedPicture
from cluster.store import Change, sql, store
from cluster.store.types import Single
from kube.errors import Expired
from kube.kinds.pod import UNENDED
from kube.meta import parse_time
from kube.resources import CONFIGMAPS, POD_GROUPS, PODS
from kube.volcano import scheduler_configuration
from scheduler.idle import judge
from scheduler.idle.facts import Group, World
from scheduler.idle.reader import KINDS, WAITING, Reader
from scheduler.policy.actions import Action
from scheduler.policy.config_map import Configuration

BUDGET_S = 0.5
"""How long one check may judge groups: the worker also runs controllers. The next check goes on where it ended."""
STUCK_MS = 30_000
"""A change unread for longer is not on its way any more: a cycle over a large cluster takes only seconds."""
CONFIGURATION = Single(CONFIGMAPS, scheduler_configuration.NAMESPACE, scheduler_configuration.NAME)
SCHEDULER = "scheduler"
log = logging.getLogger(__name__)


class _Picture:
    """What is known of the cluster at one revision, with the scheduler's configuration."""

    def __init__(self, head: int) -> None:
        self.reader = Reader(head, backend.schedulers, heeds_claims=backend.is_mirror)
        self.configuration = Configuration()
        self.revision = head

    @classmethod
    def loaded(cls, head: int) -> _Picture:
        """Return the picture of what is stored."""
        picture = cls(head)
        for kind in KINDS:
            for found in store.find(kind, phase=UNENDED if kind == PODS else None):
                picture.reader.take(found, gone=False)
        for change in reversed(store.history(CONFIGMAPS, CONFIGURATION.namespace, CONFIGURATION.name)):
            picture.take(change)
        return picture

    def take(self, change: Change) -> None:
        """Take over one change."""
        gone = change.verb == "DELETED"
        if change.resource == CONFIGMAPS.id:
            self.configuration.take(None if gone else change.body)
        else:
            self.reader.take(change, gone=gone)

    @property
    def is_exact(self) -> bool:
        """Whether a naive count is right: everything could be read, and every node is open to every job at any time."""
        policy = self.configuration.policy
        closes = policy.node_groups or policy.usage or policy.zones or policy.spared
        return self.reader.is_whole and not closes and Action.ALLOCATE in policy.actions


class IdleWatch:
    """Checks again and again; it keeps what it knows of the cluster between checks."""

    def __init__(self) -> None:
        self._pictures = SharedPicture((*KINDS, CONFIGURATION), _Picture.loaded)
        self._due = 0
        self._last = ""  # the key of the group with which the last check ended

    def check(self, now: int) -> None:
        """Check, unless that was done less than EVERY_MS ago, and save the outcome; now is in epoch ms."""
        if now < self._due <= now + EVERY_MS or not backend.runs(registry.get(SCHEDULER)):
            return
        before = idle_room.last() or Check(0)
        check = self._check(before, now)
        if check is None:
            self._forget_gone(before)
            return
        self._due = now + EVERY_MS
        self._warn(before, check)
        idle_room.save(check)

    def _check(self, before: Check, now: int) -> Check | None:
        """Return the outcome; None while changes are still on their way to the scheduler."""
        with store.reading() as head:
            waiting = sum(store.count(POD_GROUPS, phase=list(WAITING)).values())
            if not waiting:
                return Check(now)
            since = _pending_since(head, now)
            if since is None:
                return None
            with self._pictures.current(head) as picture:
                if not picture.is_exact:
                    return Check(now, waiting)
                return self._judged(picture.reader, before, since, Check(now, waiting))

    def _judged(self, reader: Reader, before: Check, since: int, check: Check) -> Check:
        world = reader.world()
        earlier = {each.group: each for each in before.found}
        resting = {timer.key for timer in timers_of(SCHEDULER, 0, RETRY)}
        # First the groups found before, then the others from where the last check ended.
        keys = sorted(sorted(world.groups.keys() - resting), key=lambda key: (key not in earlier, key <= self._last))
        groups = [world.groups[key] for key in keys if _is_judged(reader, world, world.groups[key])]
        deadline = clock.monotonic() + BUDGET_S
        judged: list[Group] = []

        def in_time(group: Group) -> bool:
            if judged and clock.monotonic() > deadline:
                return False
            judged.append(group)
            return True

        found = []
        for group, pods in judge.startable(world, takewhile(in_time, groups)):
            begun = max(since, _created(reader.created(group.key)))
            found.append(earlier.get(group.key) or Wait(group.key, begun, pods))
        self._last = judged[-1].key if judged else ""
        return Check(check.at, check.waiting, len(judged), tuple(found))

    def _warn(self, before: Check, check: Check) -> None:
        """Log the groups that the check before did not report."""
        reported = {each.group for each in before.waits()}
        for wait in check.waits():
            if wait.group not in reported:
                log.warning(
                    "pod group %s could have started %.0f s ago: there is room for its %d pods that nobody uses."
                    " The scheduler does not see that, or does not run: see its log; a new start of its worker lets it look at"
                    " everything anew. Please report it as a fault.",
                    wait.group,
                    (check.at - wait.since) / 1000,
                    wait.pods,
                )

    def _forget_gone(self, before: Check) -> None:
        """Remove groups that no longer wait from the last check, while there is no new outcome."""
        if not before.found:
            return
        stored = store.by_keys(POD_GROUPS, [each.group for each in before.found])
        left = store.names(POD_GROUPS, uid=[each.uid for each in stored.values()], phase=list(WAITING)).values()
        found = tuple(each for each in before.found if each.group in left)
        if found != before.found:
            idle_room.save(Check(before.at, before.waiting, before.judged, found))


def _pending_since(head: int, now: int) -> int | None:
    """Return since when (epoch ms) the scheduler could act on what is stored at revision head; None while that is on its way to it."""
    registration = registry.get(SCHEDULER)
    if backend.owes(registration, 0, store) or not backend.may_plan(registration, 0, store):
        return None
    cursor = division.read(registration, store.using).get(registration.cursor_of(0))
    position = cursor.position if cursor else 0
    try:
        unread = store.changes(position, registration.resources, limit=1, until=head)
    except Expired:
        return None
    if unread:
        return unread[0].at if now - unread[0].at > STUCK_MS else None
    rows = sql.rows(store.using, "SELECT at FROM cluster_change WHERE revision = %s", [position])
    return int(rows[0][0]) if rows else now


def _is_judged(reader: Reader, world: World, group: Group) -> bool:
    """Tell whether a group is refused for lack of room, or has no reason although its queue takes work."""
    if group.reason:
        return judge.is_about_room(world, group)
    return group.phase in ("Pending", "Inqueue") and reader.takes_work(group.queue)


def _created(text: str) -> int:
    try:
        return parse_time(text)
    except ValueError:
        return 0
