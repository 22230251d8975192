"""Leader election: the mirror program's thread that renews our Lease, and its outcome for the other processes."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from django.conf import settings

from cluster import clock
from cluster.models import MirroredCluster
from cluster.remote.http import paths
from cluster.remote.http.request import RestClient, Unreachable, decode, look_up
from cluster.remote.leader_election import lease
from cluster.remote.leader_election.lease import ObservedLease
from cluster.remote.mirroring.ways import READERS
from cluster.runtime import division, registry
from cluster.store import store
from kube.errors import ApiError, Conflict, NotFound
from kube.meta import Object, now_text
from kube.resources import LEASES, PODS

ANSWER_S = 5.0
MARGIN_MS = (lease.DURATION_S - lease.RENEW_WITHIN_S) * 1000
log = logging.getLogger(__name__)


class Leadership(NamedTuple):
    """Who leads, as the store has it: our term ("" while we do not), and why we do not; times in epoch ms."""

    leader: str = ""
    term: str = ""
    until: int = 0
    hindrance: str = ""
    passed: int = 0  # the revision up to which others have handled what happened

    def is_held(self, now: int) -> bool:
        """Whether we may write now: what is sent arrives before anybody else can have taken the Lease."""
        return bool(self.term) and now < self.until - MARGIN_MS


def current() -> Leadership:
    """Return what the mirror program has noted last."""
    fields = ("leader", "term", "leads_until", "hindrance")
    row = MirroredCluster.objects.values_list(*fields).first()
    return Leadership(*row) if row else Leadership()


class Election:
    """Renews the Lease of this installation, or watches that of another one."""

    def __init__(self, connect: Callable[[], RestClient]) -> None:
        self._connect = connect
        self._observed: ObservedLease | None = None
        self._volcanos: dict[str, ObservedLease] = {}
        self._works: dict[str, str] = {}  # name of a Lease → the version in which others were last seen to hold it
        self._heads = (0, 0)  # the newest revision when somebody was last seen at work, and the time before that
        row = MirroredCluster.objects.get(id=1)
        if not row.identity:
            MirroredCluster.objects.filter(id=1, identity="").update(identity=f"volcano-ui_{uuid.uuid4()}")
            row.refresh_from_db()
        self.identity = str(row.identity)  # which stays with the store: whoever starts again leads on at once

    def run(self, patiently: Callable[..., Any]) -> None:
        """Take part until the process ends; `patiently` calls a function until the database lets it."""
        while True:
            try:
                patiently(note, self.turn())
            except (Unreachable, ApiError) as error:
                reason = error.cause if isinstance(error, Unreachable) else error.message
                text = f"The Lease {settings.LEASE_NAMESPACE}/{lease.NAME} cannot be renewed: {reason}."
                if isinstance(error, NotFound):
                    text += " VOLCANO_UI_LEASE_NAMESPACE says in which namespace it is kept."
                patiently(note, Leadership(hindrance=text))
            clock.sleep(lease.RETRY_S)

    def turn(self) -> Leadership | None:
        """Look at the Leases and at Volcano's pods once, renew or take ours if that is our turn; None when somebody was faster."""
        connection = self._connect()
        current = self._read(connection, lease.NAME)
        now = clock.monotonic()
        self._observed = lease.observe(self._observed, current, now)
        for name in lease.VOLCANOS:
            self._volcanos[name] = lease.observe(self._volcanos.get(name), self._read(connection, name), now)
        # Volcano's pods are asked of the cluster itself: a mirror that is behind would not do.
        query = {"labelSelector": f"{lease.APP_LABEL} in ({','.join(lease.APPS)})"}
        path = paths.collection(PODS, settings.LEASE_NAMESPACE)
        pods = decode(connection.request("GET", path, query=query, answer_s=ANSWER_S))["items"]
        self._volcanos |= lease.running(pods, now)
        if text := lease.hindrance(self._volcanos, now):
            return Leadership(hindrance=text, passed=self._passed())
        step = lease.turn(self._observed, self.identity, now)
        if step == "wait":
            text = f"Another installation of these pages works on the cluster ({self._observed.holder})."
            return Leadership(self._observed.holder, hindrance=text, passed=self._passed())
        begun = clock.milliseconds()
        try:
            written = self._write(connection, current)
        except Conflict:
            return None
        self._observed = lease.observe(None, written, now)
        return Leadership(self.identity, lease.term_of(written), begun + lease.DURATION_S * 1000)

    def _passed(self) -> int:
        """Return the log's revision when others were observed at work for the last time but one.

        What happened before, they have handled. What happened since, perhaps not: who leads next looks at it again.
        """
        versions = {name: observed.version for name, observed in self._volcanos.items()}
        versions[lease.NAME] = self._observed.version if self._observed is not None else ""
        if versions != self._works:
            self._works, self._heads = versions, (store.revision(), self._heads[0])
        return self._heads[1]

    def _read(self, connection: RestClient, name: str) -> Object | None:
        return look_up(connection, paths.one(LEASES, settings.LEASE_NAMESPACE, name), ANSWER_S)

    def _write(self, connection: RestClient, before: Object | None) -> Object:
        moment = now_text(clock.milliseconds())
        body = lease.content(settings.LEASE_NAMESPACE, self.identity, moment, before)
        if before is None:
            path, method = paths.collection(LEASES, settings.LEASE_NAMESPACE), "POST"
        else:
            path, method = paths.one(LEASES, settings.LEASE_NAMESPACE, lease.NAME), "PUT"
        return decode(connection.request(method, path, body=body, answer_s=ANSWER_S))


def note(leadership: Leadership | None) -> None:
    """Note who leads for the other processes. A term that could not be renewed lasts as long as it was given."""
    if leadership is None:
        return
    if leadership.passed:
        writers = [each for each in registry.running() if each.name not in READERS]
        cursors = [name for each in writers for name in each.cursors]
        division.skip(cursors, leadership.passed, store.using)
    changes: dict[str, Any] = {"leader": leadership.leader, "hindrance": leadership.hindrance}
    if leadership.term:
        changes |= {"term": leadership.term, "leads_until": leadership.until}
    MirroredCluster.objects.filter(id=1).update(**changes)
