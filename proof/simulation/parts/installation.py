"""An installation of these pages that works on the cluster from elsewhere: its database, its processes, and how it is judged.

In a world with one the cluster has no controllers and no scheduler of Volcano's kinds. Those of the installation work
in-place (docs/design/remote.md): a mirror hears, workers plan, write down, send and see it confirmed.
"""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from random import Random
from typing import Any
from unittest.mock import patch

from django.conf import settings
from django.db import connection

from cluster import clock
from cluster.models import MirroredCluster
from cluster.remote import mirror, outbox, recorder
from cluster.remote.dispatch import sending
from cluster.remote.http.target import Target
from cluster.remote.in_place import InPlace
from cluster.remote.leader_election import election, lease, standby
from cluster.remote.mirror import ClusterMirror
from cluster.remote.mirroring import kinds, reflection
from cluster.remote.mirroring.ways import READERS, WRITERS, Way
from cluster.runtime import nudge, registry, retention
from cluster.runtime.registry import Registration
from cluster.store import Change, Group, Store, Stored, sql, store
from kube.errors import ApiError
from kube.meta import Object
from kube.resources import Resource
from proof.harness.inline import Inline
from proof.harness.system_context import SystemContext
from proof.invariants import Broken
from proof.simulation.parts import database, past, troubles
from proof.simulation.parts.asking import URL, Asking
from proof.simulation.parts.broker import Broker
from proof.simulation.parts.faults import Steps
from proof.simulation.parts.processes import Beat, Process, Worker
from proof.simulation.parts.server import Server
from proof.simulation.parts.strands import Line, Strand
from proof.simulation.parts.troubles import Troubles
from proof.simulation.parts.virtual import VirtualClock
from proof.simulation.people.picture import uid
from proof.simulation.story import Trouble

NAME = "the mirror is the cluster"
UP = "up"
IDENTITY = "volcano-ui_1"
OURS = READERS | WRITERS
MIRROR, BEAT = "mirror", "beat"
UNREAD = 50  # changes of the mirror that a worker has not read: as many are looked at
# How often somebody looks who nearly always finds nothing.
PACE: tuple[tuple[Any, str, Any], ...] = ((lease, "RETRY_S", 5.0), (mirror, "PULSE_S", 30.0))
SMALL: tuple[tuple[Any, str, Any], ...] = (
    (mirror, "BATCH", 4),
    (mirror, "MAX_WAITING", 4),
    (reflection, "PAGE", 3),
    (reflection, "WATCH_S", (20, 60)),
    (sending, "AT_ONCE", 3),
)
# Longer than anybody is away.
LONG: tuple[tuple[Any, str, Any], ...] = ((settings, "HISTORY_HOURS", 0.2),)


def of_cluster(registration: Registration) -> bool:
    """Whether a controller is the cluster's own business: what kube-controller-manager does."""
    return registration.name not in OURS


class Installation:
    """The system, apart from the cluster that it works on, in whose place this is made and asked."""

    def __init__(
        self,
        clock: VirtualClock,
        steps: Steps,
        server: Callable[[], Server | None],
        rest: Callable[[int], None],
        seed: int,
    ) -> None:
        self.seed = seed
        self.broker = Broker(clock)
        self.troubles = Troubles()
        self.steps = steps
        self.cluster = SystemContext.here()
        self.asking = Asking(self.cluster, server, steps, self.troubles, rest)
        self.planned: dict[str, int] = {}  # cursor → when its plan was true, in epoch ms
        self.times: dict[int, int] = {}  # the cluster's revisions → when they were written
        self.unheard: defaultdict[str, deque[tuple[int, int]]] = defaultdict(deque)  # kind → revisions, times
        self._chance = itertools.count(seed * 1000 + 3)
        self._cached: tuple[int, bool, election.Leadership] = (-1, False, election.Leadership())
        self._stack = ExitStack()

    def begin(self, *, is_tight: bool, forgets: bool, random: Random) -> None:
        """Take the process's settings, and a database."""
        numbers = itertools.count(10**9)
        pace = (*PACE, *(SMALL if is_tight else ()), *(() if forgets else LONG))
        ways = [(settings, "WAY", Way.IN_PLACE), (settings, "LEASE_NAMESPACE", "default")]
        for where, name, value in (*pace, *ways):
            self._stack.enter_context(patch.object(where, name, value))
        self.context = self.cluster.but(
            database.another(),
            listeners=[self.steps.committed, nudge.send],
            random=random,
            uids=lambda: uid(next(numbers)),
            carrier=self.broker,
            runs=lambda registration: registration.name in OURS,
            refresh=lambda: None,  # definitions of custom kinds are the cluster's
            target=Target("simulated", URL, ""),
        )
        # Each thread of the mirror is one that is let go on in turn.
        self._stack.callback(self.context.database.close)
        for each in (self.context.database, self.cluster.database):
            each.inc_thread_sharing()
            self._stack.callback(each.dec_thread_sharing)
        with self.context:
            past.leave_a_cursor()
            recorder.claim(URL)
            MirroredCluster.objects.update(identity=IDENTITY)
            standby.Candidate(UP).turn()
            self.queues = registry.queues()
        self.names = [MIRROR, *self.queues, BEAT]

    def end(self) -> None:
        """Give back what was taken."""
        self._stack.close()

    # Its processes.

    def process(self, name: str) -> Process:
        """Return a process of it that starts."""
        kind = name.partition("+")[0]
        if kind == MIRROR:
            return Mirroring(name, self)
        if kind == BEAT:
            return Beat(name, self.broker, self.queues, self.context, self.is_in_trouble)
        context = self.context.but(backend=None)
        worker = Worker(name, kind, self.broker, context)
        context.values["backend"] = Noting(self, worker)
        return worker

    def chance(self) -> Random:
        """Return the chance of a process that starts."""
        return Random(next(self._chance))

    def is_in_trouble(self) -> bool:
        """Whether nobody may plan yet, and so nobody will say when he can: ticks find it out."""
        with self.context:
            written = connection.connection.total_changes
            if self._cached[0] != written:
                is_whole = not reflection.incomplete(recorder.statuses(), kinds.BY_ID)
                self._cached = written, is_whole, election.current()
            _, is_whole, leadership = self._cached
            return not is_whole or not leadership.is_held(clock.milliseconds())

    # What happens to it.

    def meet(self, trouble: Trouble) -> None:
        """Have requests meet a trouble."""
        self.broker.doubt()
        if trouble.what == troubles.CUT:
            self.asking.cut()
        elif trouble.what == troubles.FORGETS:
            retention.run(clock.monotonic() + 5, now=clock.milliseconds() + settings.HISTORY_HOURS * 3_600_000)
        else:
            self.troubles.add(trouble)

    def heal(self) -> None:
        """Have all troubles end."""
        self.troubles.clear()

    # What it knows.

    def take(self, change: Change) -> None:
        """Note what there is to hear of."""
        if change.resource in kinds.BY_ID:
            self.times[change.revision] = change.at
            self.unheard[change.resource].append((change.revision, change.at))

    def knows_until(self, worker: Worker) -> int:
        """Return the time (epoch ms) of the first change of the cluster that a worker does not know of; now, if he knows all."""
        now = clock.milliseconds()
        sooner = [now]
        for kind, status in recorder.statuses().items():
            waiting = self.unheard[kind]
            while waiting and status.version and waiting[0][0] <= int(status.version):
                waiting.popleft()
            sooner += [waiting[0][1]] if waiting else []
        unread = store.changes(max(worker.read_revision, store.compacted()), limit=UNREAD)
        sooner += [self.times.get(int(each.object["metadata"]["resourceVersion"]), now) for each in unread]
        return min(sooner)

    def lag_ms(self, process: Process) -> int:
        """Return how old what a worker knows may be when it writes now: a plan is of the time when it was made."""
        if not isinstance(process, Worker):
            return 0
        made = [self.planned[cursor] for cursor in process.runners if cursor in self.planned]
        return max(0, clock.milliseconds() - min(made, default=clock.milliseconds()))

    def rows(self, text: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return what its database says."""
        with self.context:
            return sql.rows("default", text, params)

    @property
    def owes(self) -> list[str]:
        """The consumers whose plans are not done."""
        with self.context:
            return outbox.cursors("default")

    @property
    def written(self) -> int:
        """How much was written to its database."""
        return int(self.context.database.connection.total_changes)

    def settle(self) -> None:
        """At rest: raise Broken unless the mirror has what the cluster has."""
        for kind in kinds.mirrored(works=True):
            wanted = dict(_objects(kind))
            with self.context:
                found = dict(_objects(kind))
            for key in sorted(wanted.keys() | found.keys()):
                if wanted.get(key) != found.get(key):
                    text = f"the mirror has {found.get(key)}, and the cluster {wanted.get(key)}"
                    raise Broken(NAME, store.revision(), f"{kind.id}/{key}", text)


def _objects(kind: Resource) -> Iterator[tuple[str, Object]]:
    for stored in store.find(kind):
        obj = kinds.stored_part(kind, stored.object)
        yield stored.key, {**obj, "apiVersion": kind.api_version, "kind": kind.kind}


class Noting(InPlace):
    """The backend of a worker's process, of which is noted when a plan was true."""

    def __init__(self, installation: Installation, worker: Worker) -> None:
        super().__init__(lambda: installation.asking, Inline, installation.chance())
        self._installation, self._worker = installation, worker

    def commit(
        self, cursor: str, groups: Sequence[Group], now: int, using: Store
    ) -> list[list[Stored] | ApiError] | None:
        if groups:
            self._installation.planned[cursor] = self._installation.knows_until(self._worker)
        return super().commit(cursor, groups, now, using)


class Mirroring(Process):
    """`manage.py mirror`: of its threads one after the other goes on, in any order."""

    def __init__(self, name: str, installation: Installation) -> None:
        super().__init__(name, installation.context)
        self._random = installation.chance()
        self.strands: list[Strand] = []
        with installation.context:
            term = standby.term_of(UP)
        assert term is not None
        program = ClusterMirror(term, lambda: installation.asking, thread=self._strand, line=Line, random=self._random)
        self._strand(target=program.run, name="main").start()

    def _strand(
        self, *, target: Callable[..., Any], name: str, args: tuple[Any, ...] = (), daemon: bool = True
    ) -> Strand:
        self.strands.append(Strand(target=target, name=name, args=args, daemon=daemon))
        return self.strands[-1]

    @property
    def is_ready(self) -> bool:
        return any(each.is_ready for each in self.strands)

    @property
    def due(self) -> float | None:
        return min((each.due for each in self.strands if each.is_alive() and each.due is not None), default=None)

    def step(self) -> None:
        ready = [each for each in self.strands if each.is_ready]
        if ready:
            self._random.choice(ready).go_on()

    def die(self) -> None:
        for each in self.strands:
            each.kill()
