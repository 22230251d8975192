"""The real system in one process: every controller, the scheduler and a simulated fleet, in random turns.

What people do goes through the door; the judge hears each change as soon as it
is there. Consumers are now and then thrown away and made anew, as after a kill.
With `between`, something else may happen after a consumer has planned and
before it commits, as it does where they run beside each other.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

import pytest

from cluster import access, api, clock
from cluster.bootstrap import bootstrap
from cluster.consumers.consumer import Plan
from cluster.runtime import registry
from cluster.runtime.registry import Registration
from cluster.store import Change, Stored, store
from kube.errors import ApiError
from kube.meta import Object
from kube.resources import Resource
from node.simulator.fleet import Size
from node.simulator.simulator import Simulator
from proof.harness.answers import Killed
from proof.invariants import LAG_MS, Judge
from proof.invariants.judge import BY_REQUESTS
from proof.modes.in_place import InPlaceMode
from proof.modes.mode import EmbeddedMode, Runner, others

T = TypeVar("T")
QUIET_ROUNDS = 3
LATER_MS = 90_000
INTERRUPTED = 0.2


class _Ahead:
    """The clock as the consumers see it, and those who count, who rest for a time after they did."""

    def __init__(self, cluster: SmallCluster) -> None:
        self.milliseconds = cluster.now
        self.monotonic = lambda: clock.monotonic() + cluster.ahead_ms / 1000


class SmallCluster:
    """Everything that runs in a mode, taking turns; `judge` has heard the log up to `judge.revision`."""

    def __init__(
        self,
        choices: Random,
        monkeypatch: pytest.MonkeyPatch,
        mode: EmbeddedMode | InPlaceMode,
        *,
        hasty: bool = False,
        nodes: int = 4,
        cpu: str = "4",
    ) -> None:
        self.choices, self.mode, self.hasty = choices, mode, hasty
        self.busy: set[int] = set()  # places of those who take a step
        # What people may do while a consumer is about to commit.
        self.between: Callable[[], object] | None = None
        by_requests = mode.name == "in-place"
        self.judge = Judge(only=BY_REQUESTS if by_requests else None, lag_ms=LAG_MS if hasty or by_requests else 0)
        self.changes: list[Change] = []
        self.ahead_ms = 0
        for module in ("cluster.consumers.consumer", "cluster.controllers.status_counter"):
            monkeypatch.setattr(f"{module}.clock", _Ahead(self))
        bootstrap()
        self.runners = [self._runner(each, n) for each in registry.running() for n in range(each.shards)]
        self.simulator = Simulator(nodes, Size(cpu=cpu, memory="8Gi", pods="16"))
        self.simulator.begin()

    def close(self) -> None:
        self.simulator.listener.close()
        self.simulator.selector.close()

    def now(self) -> int:
        """The clock of the consumers, which the end of a history moves on."""
        return clock.milliseconds() + self.ahead_ms

    def try_(self, call: Callable[..., T], *arguments: Any, **named: Any) -> T | ApiError:
        """Do what a person does through the door; a refusal is an answer."""
        try:
            return call(access.SYSTEM, *arguments, **named)
        except ApiError as error:
            return error

    def make(self, resource: Resource, obj: Object) -> Stored | ApiError:
        """Make an object through the door."""
        return self.try_(api.create, resource, obj)

    def turns(self, number: int) -> None:
        """Let so many of those who run do something."""
        for _ in range(number):
            index = self.choices.randrange(len(self.runners) + 1)
            if index not in self.busy:  # no runner takes a step within its own
                self.busy.add(index)
                self._turn(index)
                self.busy.discard(index)
            self.hear()

    def _turn(self, index: int) -> None:
        if index == len(self.runners):
            self._simulate()
            return
        if self.choices.random() < 0.02:
            self._begin_anew(index)
        try:
            self.runners[index].step()
        except Killed:
            self._begin_anew(index)

    def _begin_anew(self, index: int) -> None:
        """Let a consumer go on in another process."""
        old = self.runners[index]
        self.runners[index] = self._runner(old.registration, old.shard)

    def _runner(self, registration: Registration, shard: int) -> Runner[Any]:
        runner = Runner(registration, shard, registration.make())
        if self.hasty:
            # Of this consumer alone, whatever its class does.
            runner.consumer.plan = self._interrupted(runner.consumer.plan)  # type: ignore[method-assign]
        return runner

    def _interrupted(self, plan: Callable[..., Plan]) -> Callable[..., Plan]:
        def planned(*arguments: Any) -> Plan:
            found = plan(*arguments)
            if self.between is not None and self.choices.random() < INTERRUPTED:
                interruption, self.between = self.between, None
                with others():
                    interruption()
                    self.turns(2)
                self.between = interruption
            return found

        return planned

    def _simulate(self) -> None:
        one = self.simulator
        one.listener.hurry()
        one._wait(0)
        one._read_changes()
        while one._play():
            pass
        one.fleet.beat()

    def hear(self) -> None:
        """Let the judge hear what is new."""
        while found := store.changes(self.judge.revision, limit=1000):
            self.changes += found
            for change in found:
                self.judge.take(change)

    def rest(self, within_s: int = 60) -> None:
        """Let everybody work until nothing happens any more, then judge what must hold."""
        self._work_off(within_s)
        before = -1
        while self.judge.revision != before:
            # Graces and pauses of the controllers pass, while nodes stay alive: their silence is real time. What
            # happens then may begin a pause of its own.
            before = self.judge.revision
            self.ahead_ms += LATER_MS
            self._work_off(within_s)
        self.judge.settle(self.now())

    def _work_off(self, within_s: float) -> None:
        deadline, quiet = clock.monotonic() + within_s, 0
        while quiet < QUIET_ROUNDS or self.simulator.heap:
            before = self.judge.revision
            for index in range(len(self.runners) + 1):
                while index < len(self.runners) and self.runners[index].step():
                    self.hear()
            self._simulate()
            self.hear()
            quiet = quiet + 1 if self.judge.revision == before and self.mode.is_settled() else 0
            assert clock.monotonic() < deadline, "the cluster does not come to rest"
