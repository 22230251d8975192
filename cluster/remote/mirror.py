"""The program that mirrors another cluster: a thread watches each kind, one writes, one checks the cluster's pulse."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from random import Random, SystemRandom
from typing import Any, Protocol

from django.db import connection as database

from cluster import clock
from cluster.remote import recorder
from cluster.remote.door import server
from cluster.remote.http import discovery
from cluster.remote.http.request import RestClient, Unreachable, decode
from cluster.remote.leader_election import standby
from cluster.remote.leader_election.election import Election
from cluster.remote.leader_election.volcano import VolcanoWatch
from cluster.remote.mirroring import kinds
from cluster.remote.mirroring.reflection import KindStatus, Phase, Step, Update
from cluster.remote.mirroring.reflector import Reflector
from cluster.runtime.outage import AWAY, Outage
from kube.errors import ApiError, Forbidden, NotFound
from kube.resources import Resource

PULSE_S = 5.0
AGAIN_S = 1.0
PULSE_ANSWER_S = 5.0
DISCOVER_S = 60.0  # a kind that is installed later shows within so long
MAX_WAITING = 64  # updates that wait for the writer; more make the readers wait
BATCH = 1000  # objects written in one transaction
IDENTITY = "/api/v1/namespaces/kube-system"
log = logging.getLogger(__name__)


class OtherCluster(Exception):
    """Another cluster answers at the address; what was read of the one before counts for nothing."""


class Thread(Protocol):
    """As much of `threading.Thread` as a mirror needs."""

    def start(self) -> None: ...
    def is_alive(self) -> bool: ...


class UpdateQueue(Protocol):
    """As much of `queue.Queue` as a mirror needs."""

    def put(self, item: Update) -> None: ...
    def get(self) -> Update: ...
    def empty(self) -> bool: ...


class ClusterMirror:
    """Mirrors one cluster until the process ends, and writes in one term of its `up` alone.

    It asks by the connection that `connect` returns. `thread` makes its threads, `line` the queue in which updates wait
    for the writer.
    """

    def __init__(
        self,
        term: int,
        connect: Callable[[], RestClient] = server.connection,
        *,
        thread: Callable[..., Thread] = threading.Thread,
        line: Callable[[int], UpdateQueue] = queue.Queue,
        random: Random | None = None,
    ) -> None:
        self._term = term
        self._connect, self._thread, self._random = connect, thread, random or SystemRandom()
        self._updates = line(MAX_WAITING)
        self._outage = Outage("storing what the cluster reported", log)
        self._followed: dict[str, Thread] = {}
        self._unfollowed: dict[str, KindStatus] = {}
        self._discovered = -DISCOVER_S

    def run(self) -> None:
        """Mirror; OtherCluster ends it, and it must begin again in a new process. So does Superseded, when it is its turn again."""
        self._patiently(recorder.claim, server.target().server)
        self._patiently(recorder.choose)
        writer = self._thread(target=self._write, name="writer", daemon=True)
        writer.start()
        self._unfollowed = self._patiently(recorder.statuses)
        if recorder.works():
            election = self._patiently(Election, self._connect)
            self._thread(target=election.run, args=(self._patiently,), name="lease", daemon=True).start()
        else:
            watch = VolcanoWatch(self._connect)
            self._thread(target=watch.run, args=(self._patiently,), name="volcano", daemon=True).start()
        failures = 0
        while writer.is_alive():  # a defect ended it otherwise, and whoever starts this again begins where it was
            try:
                self._pulse(self._connect())
                failures = 0
            except (Unreachable, ApiError) as error:
                failures += 1
                if failures > 1:  # one cut of a connection says nothing yet
                    reason = error.cause if isinstance(error, Unreachable) else error.message
                    self._patiently(recorder.note_silence, reason)
            clock.sleep(AGAIN_S if failures else PULSE_S)

    def _pulse(self, connection: RestClient) -> None:
        """Check whether the cluster answers and which it is, and from time to time which kinds it serves."""
        try:
            answer = decode(connection.request("GET", IDENTITY, answer_s=PULSE_ANSWER_S))
        except (Forbidden, NotFound):
            answer = {}  # it does not let us see which it is
        if not self._patiently(recorder.identify, str((answer.get("metadata") or {}).get("uid") or "")):
            raise OtherCluster
        while self._unfollowed:  # what was served before is followed at once
            name, status = self._unfollowed.popitem()
            if status.phase is not Phase.ABSENT:
                self._follow(connection, kinds.BY_ID[name], status)
        if clock.monotonic() - self._discovered >= DISCOVER_S:
            self._look_for_kinds(connection)
        self._patiently(recorder.note_answer)

    def _look_for_kinds(self, connection: RestClient) -> None:
        """Follow what the server serves by now, and note what it does not."""
        served = discovery.served(connection, recorder.followed())
        self._discovered = clock.monotonic()
        statuses = self._patiently(recorder.statuses)
        for kind in recorder.followed():
            thread = self._followed.get(kind.id)
            if thread is not None and thread.is_alive():
                continue
            status = statuses.get(kind.id)
            if kind.id in served:
                self._follow(connection, kind, status or KindStatus())
            elif status is None or status.phase is not Phase.ABSENT:
                self._updates.put(Update(kind, Step.ABSENT))

    def _follow(self, connection: RestClient, kind: Resource, status: KindStatus) -> None:
        selectors = kinds.selectors(works=recorder.works())
        reflector = Reflector(connection, kind, status, self._updates.put, selectors=selectors, random=self._random)
        thread = self._thread(target=reflector.run, name=kind.id, daemon=True)
        self._followed[kind.id] = thread
        thread.start()

    def _write(self) -> None:
        while True:
            updates = [self._updates.get()]
            while sum(len(each.writes) for each in updates) < BATCH and not self._updates.empty():
                updates.append(self._updates.get())
            self._patiently(recorder.record, updates)

    def _patiently(self, function: Any, *arguments: Any) -> Any:
        """Return what the function returns, as soon as the database lets it; Superseded when the term is over."""
        while True:
            try:
                with standby.in_term(self._term):
                    outcome = function(*arguments)
            except AWAY as error:
                self._outage.lasts(error)
                database.close()
                clock.sleep(1)
            else:
                self._outage.over()
                return outcome
