"""A system that works on the cluster of this process: its mirror, its leadership, and the consumers that run there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from cluster import clock
from cluster.consumers.consumer import Runner
from cluster.remote import outbox, recorder
from cluster.remote.in_place import InPlace
from cluster.remote.leader_election import election
from cluster.remote.leader_election.election import Leadership
from cluster.remote.mirroring import kinds
from cluster.remote.mirroring.reflection import KindStatus, Update
from cluster.remote.mirroring.reflector import Reflector
from cluster.remote.mirroring.ways import READERS, WRITERS
from cluster.store import store
from kube.resources import Resource
from proof.harness.inline import Inline
from proof.harness.system_context import SystemContext, new_database
from proof.modes.api_server import ApiServer
from proof.modes.bad_luck import BadLuck

HOUR_MS = 3_600_000


class InPlaceMode:
    """Consumers work on the cluster by its API, each as in a process of its own.

    The mirror hears before one begins to work, and then only when he has nothing more to do: till then the answers to what
    he has sent must be enough.
    """

    name = "in-place"

    def __init__(self) -> None:
        self.cluster = SystemContext.here()
        self.server = ApiServer()
        self.connection = BadLuck(self.server)
        self.database = new_database()
        self.read = 0  # the cluster's revision up to which `newest` is known
        self.newest: dict[str, int] = {}  # kind → the newest revision of its objects in the cluster
        self.pending_updates: list[Update] = []  # heard, and not written down yet
        self.contexts: dict[Runner[Any], SystemContext] = {}  # consumer's process → its part of this one
        self.at_work: set[Runner[Any]] = set()  # consumers whose last step said that there may be more to do
        with self.cluster.but(self.database):
            recorder.claim("https://cluster")
            recorder.choose()
            self.reflectors = {kind.id: self._reflector(kind) for kind in recorder.followed()}

    def close(self) -> None:
        """End, and leave nothing of it in the process."""
        self.server.close()
        self.database.close()

    def _reflector(self, kind: Resource) -> Reflector:
        return Reflector(self.connection, kind, KindStatus(), self.pending_updates.append, wait=lambda seconds: None)

    def step(self, runner: Runner[Any], step: Callable[[], bool]) -> bool:
        """Take a step of a consumer where it runs; tell whether there may be more."""
        if runner.registration.name not in WRITERS | READERS:
            return step()  # what kube-controller-manager does is the cluster's own
        if runner not in self.contexts:
            self.contexts[runner] = self.cluster.but(self.database, backend=InPlace(lambda: self.connection, Inline))
        with self.contexts[runner]:
            election.note(Leadership("we", "we/0", clock.milliseconds() + HOUR_MS))
            if runner not in self.at_work:
                self.hear()
            more = step() or self.hear()
        (self.at_work.add if more else self.at_work.discard)(runner)
        return more

    def ours(self) -> SystemContext:
        """A block in which the store is that of the consumers."""
        return self.cluster.but(self.database)

    def hear(self) -> bool:
        """Let the mirror hear what has happened in the cluster; tell whether something has."""
        behind = self._behind()
        try:
            for kind in behind:
                self.reflectors[kind].turn()
        finally:
            updates, self.pending_updates[:] = list(self.pending_updates), []
            recorder.record(updates)
        return bool(behind)

    def _behind(self) -> list[str]:
        """The kinds of which the mirror has not heard all."""
        with self.cluster:
            while changes := store.changes(self.read, [kinds.BY_ID[each] for each in self.reflectors]):
                self.newest |= {change.resource: change.revision for change in changes}
                self.read = changes[-1].revision
        versions = {kind: int(status.version or 0) for kind, status in recorder.statuses().items()}
        return [kind for kind in self.reflectors if self.newest.get(kind, 0) > versions.get(kind, -1)]

    @contextmanager
    def failing(self, share: float, choices: Random) -> Iterator[None]:
        """A block in which a share of all requests to the cluster fails, as `choices` draws it."""
        self.connection.share, self.connection.choices = share, choices
        try:
            yield
        finally:
            self.connection.share = 0.0

    def is_settled(self) -> bool:
        """Whether nothing that was planned is on its way, and nothing is to be heard."""
        with self.cluster.but(self.database):
            return not outbox.cursors(store.using) and not self._behind()
