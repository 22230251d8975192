"""The processes of a world: the real parts of the system, each waiting to be let take its next step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Generic, Protocol, TextIO, TypeVar

from django.db import DatabaseError, connection

from cluster import clock, pid_lock
from cluster.consumers.backlog import Backlog
from cluster.consumers.consumer import Runner
from cluster.runtime import nudge, registry
from cluster.store import sql
from node.agent import daemon
from node.listen import Listener
from node.simulator.fleet import Size
from node.simulator.simulator import Simulator
from proof.harness.system_context import SystemContext
from proof.simulation.parts.broker import Broker, Message
from proof.simulation.parts.machine import Processes, SimulatedAgent

TICK, CLEAN = "tick", "clean"
NODE_SIZE = Size("8", "32Gi", "40")


class Process(ABC):
    """One process of the system. What it needs to know after its death is in the database."""

    def __init__(self, name: str, context: SystemContext | None = None) -> None:
        self.name = name
        self.context = context  # the system that it is part of, unless that is the cluster itself

    @property
    @abstractmethod
    def is_ready(self) -> bool:
        """Whether it has anything to do at this moment."""

    @property
    @abstractmethod
    def due(self) -> float | None:
        """The monotonic second at which it has something to do; None when only others can give it some."""

    @abstractmethod
    def step(self) -> None:
        """Do the next thing, as far as nobody else can come between."""

    @property
    def is_serving(self) -> bool:
        """Whether it does something for a process that is in the middle of a step."""
        return False

    def die(self) -> None:  # noqa: B027  most hold nothing
        """Let go of what this Python process holds for it."""


class Worker(Process):
    """A Celery worker of one queue: it takes message after message, and of a run batch after batch."""

    def __init__(self, name: str, queue: str, broker: Broker, context: SystemContext | None = None) -> None:
        super().__init__(name, context)
        self.queue = queue
        self.broker = broker
        self.backlog = Backlog()
        self.runners: dict[str, Runner[Any]] = {}
        self.rounds: Iterator[None] | None = None

    @property
    def is_ready(self) -> bool:
        return self.rounds is not None or self._next() is not None

    @property
    def due(self) -> float | None:
        dues = (m.due for m in self.broker.messages if m.queue == self.queue)
        return None if self.broker.is_away else min(dues, default=None)

    def _next(self) -> Message | None:
        if self.broker.is_away:
            return None
        now = self.broker.clock.monotonic()
        return next((m for m in self.broker.messages if m.queue == self.queue and m.due <= now), None)

    def step(self) -> None:
        try:
            if self.rounds is None:
                self._take()
            if self.rounds is not None and next(self.rounds, self) is self:
                self.rounds = None
        except DatabaseError:
            self.rounds = None  # put off, as `cluster.tasks` does
        except Exception:
            self.rounds = None
            raise

    def _take(self) -> None:
        message = self._next()
        if message is None:
            return
        self.broker.messages.remove(message)
        if message.name == TICK:
            self._tick()
        elif message.name == CLEAN:
            clean()
        else:
            self.rounds = self._runner(message.name, message.shard).rounds()

    @property
    def read_revision(self) -> int:
        """The revision up to which the consumers of this queue have read, all of them."""
        return min((runner.position for runner in self.runners.values()), default=0)

    def _tick(self) -> None:
        for registration, shard in self.backlog.of(self.queue, clock.milliseconds()):
            nudge.wake(registration, shard)

    def _runner(self, name: str, shard: int) -> Runner[Any]:
        cursor = f"{name}/{shard}"
        if cursor not in self.runners:
            registration = registry.get(name)
            self.runners[cursor] = Runner(registration, shard, registration.make(), holder=self.name)
        return self.runners[cursor]


def clean() -> None:
    """Do what beat asks for each minute."""
    from cluster import tasks

    tasks.clean.run()


class Beat(Process):
    """Beat: a tick for each queue each second, and cleaning each minute.

    What is written wakes those whom it concerns by itself: where nothing went
    wrong lately, a tick finds only timers that are due, and waits for these.
    """

    def __init__(
        self,
        name: str,
        broker: Broker,
        queues: Sequence[str],
        context: SystemContext | None = None,
        is_in_trouble: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(name, context)
        self.broker = broker
        self.queues = queues
        self._is_in_trouble = is_in_trouble
        self.next_tick = self.next_clean = 0.0
        # How much was written to the database, and which timer was the soonest then.
        self._timer: tuple[int, int | None] = (-1, None)

    @property
    def is_ready(self) -> bool:
        now = self.broker.clock.monotonic()
        return self.next_clean <= now or (self.next_tick <= now and self._tick_due() <= now)

    @property
    def due(self) -> float:
        return min(self._tick_due(), self.next_clean)

    def _tick_due(self) -> float:
        if self.broker.doubtful_until > self.broker.clock.monotonic() or self._is_in_trouble():
            return self.next_tick
        soonest = self._soonest_timer()
        if soonest is None:
            return float("inf")
        return max(self.next_tick, self.broker.clock.monotonic() + (soonest - clock.milliseconds()) / 1000)

    def _soonest_timer(self) -> int | None:
        with self.context or nullcontext():
            written = connection.connection.total_changes
            if self._timer[0] != written:
                self._timer = written, sql.rows("default", "SELECT MIN(due) FROM cluster_timer")[0][0]
        return self._timer[1]

    def step(self) -> None:
        if self.broker.is_away:
            self.next_tick = self.next_clean = self.broker.clock.monotonic() + 1
            return
        now = self.broker.clock.monotonic()
        if self.next_clean <= now:
            self.next_clean = now + 60
            self._send(CLEAN, registry.QUEUE)
        if self.next_tick <= now:
            self.next_tick = now + 1
            for queue in self.queues:
                self._send(TICK, queue)

    def _send(self, task: str, queue: str) -> None:
        """Send a task; one that was sent before and not taken has expired."""
        old = [m for m in self.broker.messages if m.name == task and m.queue == queue]
        for message in old:
            self.broker.messages.remove(message)
        self.broker.put(queue, task)


class Subscription:
    """The subscription of a process that is let work when it has news: nothing to wait on, always there."""

    is_alive = True

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.has_events = True
        broker.listeners.append(self._notify)

    def _notify(self, revision: int) -> None:
        self.has_events = True

    def renew(self) -> bool:
        return False

    def drain(self) -> None:
        self.has_events = False

    def close(self) -> None:
        if self._notify in self.broker.listeners:
            self.broker.listeners.remove(self._notify)


class Works(Protocol):
    """A Simulator, or an Agent."""

    @property
    def listener(self) -> Listener:
        """Where it is in the log."""

    def begin(self) -> None:
        """Look at what there is."""

    def work(self) -> None:
        """Do what is due."""

    def patience(self) -> float:
        """Return for how many seconds nothing is due."""


W = TypeVar("W", bound=Works)


class Nodes(Process, Generic[W]):
    """A process that works for nodes: it begins, hears of the log, and does what is due."""

    has_begun = False

    def __init__(self, name: str, subscription: Subscription, works: W | None) -> None:
        super().__init__(name)
        self.subscription = subscription
        self.works = works  # None while another agent works

    def step(self) -> None:
        assert self.works is not None
        if not self.has_begun:
            try:
                self.works.begin()
            except DatabaseError:
                return
            self.has_begun = True
        if self.subscription.has_events:
            self.works.listener.hear()
        self.works.work()

    def die(self) -> None:
        self.subscription.close()


class Fleet(Nodes[Simulator]):
    """`manage.py simulator`."""

    def __init__(self, name: str, nodes: int, broker: Broker) -> None:
        subscription = Subscription(broker)
        self.simulator = Simulator(nodes, NODE_SIZE, subscription=subscription)
        super().__init__(name, subscription, self.simulator)

    @property
    def is_ready(self) -> bool:
        return self.subscription.has_events or self.simulator.patience() <= 0

    @property
    def due(self) -> float:
        return clock.monotonic() + self.simulator.patience()

    @property
    def waiting(self) -> list[str]:
        """The uids of the pods that wait for a moment at which they go on."""
        pods = self.simulator.pods
        return [uid for _, turn, uid in self.simulator.heap if uid in pods and pods[uid].turn == turn]

    def die(self) -> None:
        super().die()
        self.simulator.selector.close()


class NodeAgent(Nodes[SimulatedAgent]):
    """`manage.py agent` on the machine with these processes: while another one works there, it waits."""

    def __init__(self, name: str, machine: Processes, directory: Path, broker: Broker) -> None:
        super().__init__(name, Subscription(broker), None)
        self.machine = machine
        self.directory = directory
        self.lock: TextIO | None = None

    @property
    def is_ready(self) -> bool:
        agent = self._agent
        if agent is None:
            return False
        due = self.machine.due()
        return (
            self.subscription.has_events
            or agent.has_events
            or (due is not None and due <= clock.monotonic())
            or not self.has_begun
            or agent.patience() <= 0
        )

    @property
    def _agent(self) -> SimulatedAgent | None:
        """None while another agent has the lock. When that one ends, the kernel gives it to who asks first."""
        if self.lock is None:
            self.lock = pid_lock.take(daemon.lock_of(self.directory))
            if self.lock is not None:
                self.works = SimulatedAgent(self.machine, self.directory, subscription=self.subscription)
        return self.works

    @property
    def due(self) -> float | None:
        agent = self._agent
        if agent is None:
            return None
        due = self.machine.due()
        mine = clock.monotonic() + agent.patience() if self.has_begun else clock.monotonic()
        return mine if due is None else min(mine, due)

    def step(self) -> None:
        if self._agent is not None:
            self.machine.advance()
            super().step()

    def die(self) -> None:
        super().die()
        if self.works is not None:
            self.works.abandon()
        if self.lock is not None:
            self.lock.close()
