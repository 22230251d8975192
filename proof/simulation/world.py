"""A world: one cluster in this process. It does what moves say, and has each revision judged."""

from __future__ import annotations

import contextvars
import itertools
import random
import tempfile
from collections.abc import Callable, Container, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import msgspec
from django.contrib.auth import get_user_model
from django.db import connection

from cluster import access, bootstrap, clock
from cluster.access import Actor, accounts, authorizer
from cluster.api import custom_kinds, quota_room
from cluster.runtime import idle_room, nudge, registry
from cluster.store import sql, store
from jobs.consumers.maker import AGAIN
from jobs.controller import ssh_keys
from jobs.plugins.contract import KeyPair
from kube.errors import ApiError
from kube.resources import CRON_JOBS, JOB_FLOWS, JOBS, LEASES, POD_GROUPS, PODS, Resource
from proof.invariants import Judge
from proof.invariants.invariant import Broken
from proof.simulation import story, tight
from proof.simulation.checks.doers import Doers
from proof.simulation.checks.lies import Lies
from proof.simulation.checks.memory import Memory
from proof.simulation.checks.news import ReadLag
from proof.simulation.checks.rights import Rights
from proof.simulation.parts import database, past
from proof.simulation.parts.asking import INSTALLED
from proof.simulation.parts.broker import Broker
from proof.simulation.parts.faults import Killed, Steps
from proof.simulation.parts.installation import Installation, of_cluster
from proof.simulation.parts.machine import Processes
from proof.simulation.parts.processes import Beat, Fleet, NodeAgent, Process, Worker, clean
from proof.simulation.parts.readers import Watchers, Web
from proof.simulation.parts.server import Answer, Server, Wrong
from proof.simulation.parts.virtual import VirtualClock
from proof.simulation.people.client import ROLES, Request
from proof.simulation.people.picture import LogPicture, uid
from proof.simulation.people.request import path
from proof.simulation.people.wishes import things
from proof.simulation.story import Move, Setup
from scheduler.idle_watch import IdleWatch

ROUNDS, PATIENCE_S = 20, 300.0  # how often and for how long things may go on after the last fault
STEPS_AT_ONE_MOMENT = 20_000  # more would be a circle
IDLE_STEPS = 1000  # in a row after which nobody has written anything, which would be one, too
MAKERS = {"jobflows": JOB_FLOWS, "cronjobs": CRON_JOBS}  # consumer → what makes jobs
IN_VAIN = "SELECT cursor, key FROM cluster_timer WHERE kind = %s ORDER BY key"
REFUSED = "SELECT consumer, key FROM cluster_refusal WHERE consumer IN ('jobs', 'jobflows', 'cronjobs') ORDER BY key"
# Two are for ever: the nodes' looks for leases that are not renewed, history's for jobs to record.
FINITE = "cursor <> 'nodes/0' AND NOT (cursor = 'history/0' AND kind = 'sweep')"
TIMERS = f"SELECT cursor, kind, key FROM cluster_timer WHERE due <= %s AND {FINITE}"
HELD = f"SELECT cursor, kind, key, due FROM cluster_timer WHERE due > %s AND {FINITE}"
NEXT = "SELECT at FROM cluster_change WHERE revision > %s ORDER BY revision LIMIT 1"
MOMENT_US = 1000  # what a round of steps takes
LAG_MS = 1  # how old what somebody knows may be when he writes: each turn is one step
LIAR = "a node that lies"
MANAGER, MANAGER_BEAT = (
    "manager",
    "manager-beat",
)  # what the cluster's own controllers run in, where ours are elsewhere
SILENCE_S = 60.0  # longer than anybody waits before he tries again


class Endless(AssertionError):
    """Work that should come to an end does not."""


class World:
    """One cluster; `perform` does a move. Raises whatever is found to be wrong."""

    def __init__(self, setup: Setup, judge: Judge) -> None:
        self.setup = setup
        self.judge = judge
        judge.set_lag(LAG_MS)
        self.clock = VirtualClock()
        self.broker = self.nodes_broker = Broker(self.clock)  # the workers', and that of nodes
        self.steps = Steps(self._come_between)
        self.random = tight.FewNames(setup.seed) if setup.is_tight else random.Random(setup.seed)
        self.key_pairs = itertools.count(1)
        self.picture = LogPicture()
        self.read_lag = ReadLag()
        self.machine = Processes(random.Random(setup.seed + 1))
        self.lies = Lies(self.picture, judge.excuse)
        self.doers = Doers(self.steps, self.picture, self.machine)
        self.installation: Installation | None = None
        # The processes that a healthy system has, and those that live.
        self.queues: list[str] = []
        self.names: list[str] = []
        self.processes: dict[str, Process] = {}
        self.answers: list[tuple[Request, Answer]] = []
        self.head = self.revision = self.busy_revision = 0  # written, judged, judged but for leases
        self.held: set[tuple[Any, ...]] = set()  # timers that were set before the wall clock was set back
        self.rights = Rights(self.picture)
        self.memory = Memory()
        self.found: Exception | None = None
        self._stack = ExitStack()

    # From its beginning to its end.

    def __enter__(self) -> World:
        self._stack.__enter__()
        database.renew()
        self.directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="volcano-ui-")))
        self._hand_in()
        self._name_processes()
        bootstrap.bootstrap()
        past.leave_a_cursor()
        self.actors = self._people()
        for name in self.names:
            self.start(name)
        self._doubt()
        self.look()
        return self

    def __exit__(self, *error: object) -> None:
        for name in list(self.processes):
            self.kill(name)
        self._stack.__exit__(None, None, None)

    def _hand_in(self) -> None:
        """Give the system the world's clock, chance and carrier, and take them back at the end."""
        numbers = itertools.count(1)
        previous = (store.random, store.uids, store.listeners)
        store.random = self.random
        store.uids = lambda: uid(next(numbers))
        store.listeners = [
            self._committed,
            self.doers.committed,
            self.steps.committed,
            custom_kinds.on_commit,
            nudge.send,
        ]
        self._stack.callback(self._restore, *previous)
        self._stack.callback(ssh_keys.use, ssh_keys.use(self._key_pair))
        self._stack.callback(clock.use, clock.use(self.clock))
        self._stack.callback(nudge.use, nudge.use(self.broker))
        self._stack.enter_context(tight.pace(self.setup.seed))
        if self.setup.is_tight:
            self._stack.enter_context(tight.rooms())
        if self.setup.is_remote:
            self._stack.callback(registry.use, registry._runs)
            registry.use(of_cluster)
            self.installation = Installation(self.clock, self.steps, self._server, self._rest_beside, self.setup.seed)
            self._stack.callback(self.installation.end)
            self.installation.begin(is_tight=self.setup.is_tight, forgets=self.setup.forgets, random=self.random)
            self.broker = self.installation.broker
        authorizer._grow()
        custom_kinds.look_again()
        quota_room._usages.clear()  # by uid, which another world gave to another pod

    def _name_processes(self) -> None:
        others = [*(["agent"] if self.setup.has_agent else []), *(["web"] if self.setup.has_pages else [])]
        nodes = ["server", "fleet", "watchers", *others]
        if self.installation is None:
            self.queues = registry.queues()
            self.names = [*nodes, *self.queues, "beat"]
        else:
            self.queues = self.installation.queues
            self.names = [*nodes, MANAGER, MANAGER_BEAT, *self.installation.names]

    def _restore(self, chance: Any, uids: Any, listeners: Any) -> None:
        store.random, store.uids, store.listeners = chance, uids, listeners

    def _key_pair(self) -> KeyPair:
        """Return a key pair that opens nothing: pods of a world are not logged in to."""
        number = next(self.key_pairs)
        return KeyPair(f"private key {number}", f"public key {number}")

    def _people(self) -> dict[str, Actor]:
        people: dict[str, Actor] = {INSTALLED: access.SYSTEM}
        for name, role in ROLES.items():
            user = get_user_model().objects.create(username=name)
            accounts.bind_role(access.SYSTEM, access.Role(role), "*", user=user)
            people[name] = access.for_user(user)
        return people

    def _committed(self, touched: frozenset[str], revision: int) -> None:
        self.head = revision

    # Moves.

    def perform(self, move: Move) -> None:
        """Do a move, and have judged what it wrote; whatever is found stays found.

        Who is in the middle of a step when it is found may take it for an error of his own.
        """
        if not isinstance(move, story.Rest | story.Ask | story.Settle | story.Trouble):
            self.read_lag.doubt()
        try:
            MOVES[type(move)](self, move)
            self.look()
        except Exception as error:
            self.found = self.found or error
            raise
        if self.found:
            raise self.found

    def look(self) -> None:
        """Read what is new in the log, and have it judged."""
        while self.revision < self.head:
            changes = store.changes(self.revision, limit=4000)
            for change in changes:
                self.revision = change.revision
                if change.resource != LEASES.id:
                    self.busy_revision = change.revision
                self.doers.take(change)
                self.picture.take(change)
                self.lies.take(change)
                self.rights.take(change)
                self.judge.take(change)
                self.read_lag.take(change)
                if self.installation is not None:
                    self.installation.take(change)

    def start(self, name: str) -> None:
        """Start a process unless it lives."""
        if name in self.processes:
            return
        self.processes[name] = self._process(name)

    def _process(self, name: str) -> Process:
        """Return a process that starts: "jobs+2" is another worker of the queue "jobs", "agent+2" another agent."""
        kind = name.partition("+")[0]
        makers: dict[str, Callable[[], Process]] = {
            "server": lambda: Server(name, self.clock, self.actors),
            "fleet": lambda: Fleet(name, self.setup.nodes, self.nodes_broker),
            "agent": lambda: NodeAgent(name, self.machine, self.directory, self.nodes_broker),
            "watchers": lambda: Watchers(name, self._server, lambda: self.kill("server"), self.picture),
            "web": lambda: Web(name, self.clock, self.actors),
            MANAGER: lambda: Worker(name, registry.QUEUE, self.nodes_broker),
            MANAGER_BEAT: lambda: Beat(name, self.nodes_broker, [registry.QUEUE]),
        }
        if kind in makers:
            return makers[kind]()
        if self.installation is not None:
            return self.installation.process(name)
        return Beat(name, self.broker, self.queues) if kind == "beat" else Worker(name, kind, self.broker)

    def _server(self) -> Server | None:
        """The API server, when it can be asked."""
        server = self.processes.get("server")
        return server if isinstance(server, Server) and not self._is_busy("server") else None

    def _is_busy(self, name: str) -> bool:
        """Whether a process is in the middle of a step."""
        return self.steps.takes(name) or self.processes[name].is_serving

    def kill(self, name: str) -> None:
        """Let a process die."""
        if process := self.processes.pop(name, None):
            process.die()
            self.memory.forget(name)
            self._doubt()

    def _doubt(self) -> None:
        """Note that something went wrong: for a while only ticks find all that is to be done."""
        self.broker.doubt()
        self.nodes_broker.doubt()

    def run(self, move: story.Run) -> None:
        """Let a process take a step."""
        process = self.processes.get(move.process)
        if process is None or self._is_busy(move.process):
            return
        if move.fails:
            self._doubt()
        head = self.head
        try:
            with process.context or nullcontext(), self.steps.take(move):
                process.step()
        except Killed:
            self.kill(move.process)
        self._look_after(process, head)

    def _look_after(self, process: Process, head: int) -> None:
        """Have judged what a step wrote: a worker decides by what he has read, which may be less than `head`."""
        self.memory.look_into(process, self.revision)
        if self.installation is not None and process.context is not None:
            self.judge.set_lag(LAG_MS + self.installation.lag_ms(process))
        elif self.head > head and isinstance(process, Worker) and process.read_revision < head:
            sent = sql.rows("default", NEXT, [process.read_revision])
            self.judge.set_lag(LAG_MS + max(0, clock.milliseconds() - sent[0][0]) if sent else LAG_MS)
        self.look()
        self.judge.set_lag(LAG_MS)

    def _come_between(self, step: story.Run | story.Ask) -> None:
        """Do the moves that come between two statements of a step; they are other processes' doing."""
        with self.installation.cluster if self.installation is not None else nullcontext():
            for move in step.between:
                contextvars.Context().run(self.perform, move)

    def _rest_beside(self, us: int) -> None:
        """Let all others work for a time in the middle of a step."""
        self._come_between(story.Run("", between=(story.Rest(us),)))

    def trouble(self, move: story.Trouble) -> None:
        """Have requests to the API server meet a trouble."""
        if self.installation is not None:
            self.installation.meet(move)

    def ask(self, move: story.Ask) -> Answer:
        """Send a request to the API server; without an answer the client knows nothing."""
        server = self._server()
        answer = Answer(0)
        if server is not None:
            try:
                with self.steps.take(move):
                    answer = server.ask(self._meant(move.request))
            except Killed:
                self.kill("server")
        if answer.status >= 500 and not (move.fails or move.dies):
            raise Wrong(f"{move.request.method} {move.request.path}: {answer.status} {answer.body.decode()}")
        self.answers.append((move.request, answer))
        if not move.between:
            self.rights.judge(move.request, answer, self.revision)
        return answer

    def _meant(self, request: Request) -> Request:
        """Return a request with this world's uids."""
        text = msgspec.json.encode(request).decode()
        return msgspec.json.decode(self.picture.meant(text).encode(), type=Request)

    def harm(self, move: story.Harm) -> None:
        """Let something happen to the process node."""
        if move.what == "reboot":
            for name in [each for each in self.processes if each.partition("+")[0] == "agent"]:
                self.kill(name)
            self.machine.reboot()
        elif running := self.machine.running:
            uid, container = running[move.index % len(running)]
            (self.machine.kill if move.what == "kill" else self.machine.kill_shim)(uid, container)

    def lie(self, move: story.Lie) -> None:
        """Let a node report what is not true; nobody's step is interrupted by what goes wrong with that."""
        with self.steps.take(story.Run(LIAR)):
            self.lies.tell(move.what, move.index)

    def grant(self, move: story.Grant) -> None:
        user = get_user_model().objects.get(username=move.user)
        self.rights.grant(move)
        try:
            if move.lost:
                accounts.unbind_role(access.SYSTEM, move.namespace, user=user)
            else:
                accounts.bind_role(access.SYSTEM, access.Role(move.role), move.namespace, user=user)
        except ApiError:
            pass  # he has none there

    def set_clock(self, move: story.SetClock) -> None:
        """Set the wall clock; what is due by it comes later when it is set back."""
        self.clock.set_wall(move.by_us)
        if move.by_us < 0:
            self.held |= set(self._rows(HELD, [clock.milliseconds()]))

    def messages(self, move: story.Messages) -> None:
        """Do something to the messages in the queues."""
        self.broker.doubt()
        if move.what in ("away", "back"):
            self.broker.is_away = move.what == "away"
        elif move.what == "lost":
            self.broker.messages.clear()
        elif self.broker.messages:
            index = move.index % len(self.broker.messages)
            message = self.broker.messages.pop(index)
            if move.what == "double":
                self.broker.messages[index:index] = [message, message]
            elif move.what == "delay":
                self.broker.messages.append(message)

    def settle(self, move: story.Settle | None = None) -> None:
        """Let all faults end, bring what has begun to its end, and judge that.

        What runs for long, or again and again, is deleted, so that what waits for it gets its turn; finalizers
        of people are taken away.
        """
        self.heal()
        for _ in range(ROUNDS):
            if self._rest_until_quiet(self.clock.monotonic() + PATIENCE_S):
                self._clean()
                self._each(lambda: past.check(clock.milliseconds()))
                return
            self._clear_away()
        raise Endless(f"after {ROUNDS * PATIENCE_S:g} s without faults something still goes on: {self._work_due()}")

    def _rest_until_quiet(self, until: float) -> bool:
        """Let everybody work until nothing happens and is to come; False when that takes too long.

        Each silence is judged, also one in which pods run, unless somebody
        set a timer before the wall clock was set back: he looks again then.
        """
        silent_from, is_judged, was_latest = self.clock.monotonic(), False, self.clock.is_at_its_latest
        while self.clock.monotonic() < until:
            before = self.busy_revision
            self.rest_until(min(self.due(), until))
            is_latest = self.clock.is_at_its_latest
            if self.busy_revision != before or is_latest != was_latest or self._waits_for_clock():
                silent_from, is_judged, was_latest = self.clock.monotonic(), False, is_latest
            elif self.clock.monotonic() - silent_from < SILENCE_S or is_judged:
                pass
            elif self._clear_refused():
                silent_from = self.clock.monotonic()
            else:
                self.judge.settle(clock.milliseconds())
                self._compare_pictures()
                self.doers.settle()
                self._check_idle_room()
                is_judged = True
            if is_judged and is_latest and not self._work_due():
                return True
        return False

    def _check_idle_room(self) -> None:
        """Have the scheduler's own check look, which must find what the invariant finds: nothing."""
        with self.installation.context if self.installation is not None else nullcontext():
            IdleWatch().check(clock.milliseconds())
            check = idle_room.last()
        for wait in check.found if check else ():
            text = f"waits, and there is idle room for its {wait.pods} pods"
            raise Broken("the check for idle room", self.revision, f"{POD_GROUPS.id}/{wait.group}", text)

    def _waits_for_clock(self) -> bool:
        """Whether a timer is left that was set before the wall clock was set back: it is due late."""
        if self.clock.is_at_its_latest:
            self.held.clear()
        elif self.held:
            self.held &= set(self._rows(HELD, [clock.milliseconds()]))
        return bool(self.held)

    def _clean(self) -> None:
        """Have retention run in each system."""
        self._each(clean)

    def _each(self, do: Callable[[], object]) -> None:
        """Do something in the cluster, and in the installation where there is one."""
        do()
        if self.installation is not None:
            with self.installation.context:
                do()

    def _rows(self, text: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return what the databases say, the cluster's first."""
        found: list[tuple[Any, ...]] = []
        self._each(lambda: found.extend(sql.rows("default", text, params)))
        return found

    def _compare_pictures(self) -> None:
        if self.installation is not None:
            self.installation.settle()
        for process in self.processes.values():
            if isinstance(process, Watchers | Web):
                process.compare()

    def _clear_away(self) -> None:
        """Have the administrator delete what runs, with the job that it belongs to, and people let go of what they keep.

        So does what would make such a job again, and what tries in vain to make one.
        """
        for resource, obj in things.finalized(self.picture):
            self.ask(story.Ask(things.let_go(resource, obj)))
        for cursor, key in self._rows(IN_VAIN, [AGAIN]):
            self._delete(MAKERS[cursor.partition("/")[0]], *key.split("/"))
        for pod in list(self.picture.objects(PODS.id).values()):
            if (pod.get("status") or {}).get("phase") == "Running":
                meta = pod["metadata"]
                job = next((o for o in meta.get("ownerReferences") or () if o["kind"] == "Job"), None)
                self._delete(PODS, meta["namespace"], meta["name"])
                if job is not None and job["apiVersion"] == JOBS.api_version:
                    self._delete_job(meta["namespace"], job["name"])

    def _clear_refused(self) -> bool:
        """Have people delete what the API server refuses to let begin or go on, as its page tells them; say whether there is any."""
        refused = [(MAKERS.get(consumer, JOBS), tuple(key.split("/"))) for consumer, key in self._rows(REFUSED, [])]
        found = [(kind, key) for kind, key in refused if key in self.picture.objects(kind.id)]
        for kind, (namespace, name) in found:
            self._delete(kind, namespace, name)
        return bool(found)

    def _delete_job(self, namespace: str, name: str) -> None:
        job = self.picture.objects(JOBS.id).get((namespace, name)) or {"metadata": {}}
        for owner in job["metadata"].get("ownerReferences") or ():
            for kind in MAKERS.values():
                if (owner["apiVersion"], owner["kind"]) == (kind.api_version, kind.kind):
                    self._delete(kind, namespace, owner["name"])
        self._delete(JOBS, namespace, name)

    def _delete(self, kind: Resource, namespace: str, name: str) -> None:
        self.ask(story.Ask(Request(actor="admin", method="DELETE", path=path(kind, namespace, name))))

    def heal(self) -> None:
        """Let all faults end: Redis is there, and exactly the processes that a healthy system has."""
        self.broker.is_away = False
        self._doubt()
        if self.installation is not None:
            self.installation.heal()
        for name in list(self.processes):
            if name not in self.names:
                self.kill(name)
        for name in self.names:
            self.start(name)

    def _work_due(self) -> list[Any]:
        """Some of the timers that come before things have to be settled, and of the pods that wait for their next stage."""
        soon = clock.milliseconds() + round(PATIENCE_S * 1000)
        timers = self._rows(TIMERS, [soon])
        owes = self.installation.owes if self.installation is not None else []
        fleet = self.processes["fleet"]
        assert isinstance(fleet, Fleet)
        return [*timers[:5], *owes, *fleet.waiting[:5], *self.machine.running[:5]]

    # Time.

    def ready(self) -> list[str]:
        """The names of the processes that have something to do now; who is in the middle of a step waits for its end."""
        return [n for n, process in self.processes.items() if process.is_ready and not self._is_busy(n)]

    def due(self, but: Container[str] = ()) -> float:
        """The monotonic second at which the next thing is to be done, unless something is to be done now."""
        dues = [process.due for name, process in self.processes.items() if name not in but and not self._is_busy(name)]
        soonest = min((due for due in dues if due is not None), default=self.clock.monotonic() + 1)
        return max(soonest, self.clock.monotonic() + MOMENT_US / 1e6)

    def rest(self, move: story.Rest) -> None:
        """Let time pass, and every process do in turn what it has to do."""
        self.rest_until(self.clock.monotonic() + move.us / 1e6)

    def rest_until(self, until: float) -> None:
        """The same, until a monotonic second."""
        while True:
            self.work_off()
            now = self.clock.monotonic()
            if now >= until:
                return
            self.clock.go_on(max(1, round((min(self.due(), until) - now) * 1e6)))

    def work_off(self) -> None:
        """Let every process do what it has to do at this moment, in turn; the controllers find batches."""
        written, idle = self._written(), 0
        for _ in range(STEPS_AT_ONE_MOMENT):
            names = self.ready()
            if not names:
                if not self.steps.taken:  # who is in the middle of a step hears nothing
                    self.read_lag.check(self.processes.values())
                return
            before, written = written, self._written()
            idle = idle + 1 if written == before else 0
            if idle > IDLE_STEPS:
                break
            for name in [n for n in names if n != registry.QUEUE] or names:
                self.run(story.Run(name))
            self.look()
            self.clock.go_on(MOMENT_US)
        raise Endless(f"{', '.join(names)} have something to do for ever")

    def _written(self) -> int:
        """How much was written to the databases."""
        own = int(connection.connection.total_changes)
        return own if self.installation is None else own + self.installation.written


def _pass(world: World, move: story.Pass) -> None:
    world.clock.go_on(move.us)


def _clean_now(world: World, move: story.Clean) -> None:
    world._clean()


MOVES: dict[type[Move], Callable[[World, Any], object]] = {
    story.Pass: _pass,
    story.Rest: World.rest,
    story.Run: World.run,
    story.Ask: World.ask,
    story.Kill: lambda world, move: world.kill(move.process),
    story.Start: lambda world, move: world.start(move.process),
    story.Messages: World.messages,
    story.Clean: _clean_now,
    story.SetClock: World.set_clock,
    story.Grant: World.grant,
    story.Harm: World.harm,
    story.Lie: World.lie,
    story.Trouble: World.trouble,
    story.Settle: World.settle,
}
