"""The probes of one pod: what is asked now, what was heard, and what its containers' attempts are by it.

`node.rules.probes` is the rule, `node.agent.checks` asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kube.kinds.core import EventType, Pod, RestartPolicy
from node.agent.checks import Check, Checked
from node.attempt import UNHEALTHY, AttemptState, Run
from node.containers import actions
from node.pods.environment import ConfigError
from node.pods.events import ContainerEvent, listed
from node.rules import probes
from node.rules.lifecycle import grace_s
from node.rules.probes import Health
from node.status import container_id

WORDS_MOST = 1000  # letters of a probe's words in an event


class Ending(NamedTuple):
    """A container that is to end because of its probe, and how many seconds it has."""

    container: str
    grace_s: float


class Probing:
    """The probes of a pod that has some."""

    def __init__(self, pod: Pod) -> None:
        containers = (*pod.spec.init_containers, *pod.spec.containers)
        self._containers = {one.name: one for one in containers if probes.of(one)}
        self._health: dict[str, Health] = {}
        self.events: list[ContainerEvent] = []  # events that are not written yet
        self.wake_us: int | None = None

    def __bool__(self) -> bool:
        return bool(self._containers)

    def seen(self, pod: Pod, runs: Mapping[str, Run]) -> dict[str, Run]:
        """Return a pod's runs with what its probes say of them."""
        found = dict(runs)
        for name, container in self._containers.items():
            attempt = runs[name].current if name in runs else None
            if attempt is None or attempt.state is not AttemptState.RUNNING:
                self._health.pop(name, None)
                continue
            health = self._health.get(name)
            if health is None or health.number != attempt.number:
                own = container_id(pod, container, attempt.number)
                statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
                known = next((one for one in statuses if one.container_id == own), None)
                health = self._health[container.name] = probes.begin(probes.of(container), attempt, known)
            ready = health.started and health.ready
            found[name] = runs[name]._replace(current=attempt._replace(started=health.started, ready=ready))
        return found

    def hear(self, pod: Pod, answer: Checked) -> None:
        """Take the answer of a probe; one of an attempt that is over is dropped."""
        name, kind = answer.check.container, answer.check.kind
        health, container = self._health.get(name), self._containers.get(name)
        if health is None or container is None or health.number != answer.check.number:
            return
        probe = probes.of(container)[kind]
        health = self._health[name] = probes.hear(health, kind, probe, passed=answer.passed)
        if answer.passed is False and probes.is_worth_telling(health, kind, probe):
            words = f"{kind} probe failed: {answer.message[:WORDS_MOST]}"
            self.events.append(ContainerEvent(listed(pod, name), name, UNHEALTHY, words))
        if health.failed is kind and answer.passed is False:
            policy = container.restart_policy or pod.spec.restart_policy
            again = "" if policy == RestartPolicy.NEVER else ", will be restarted"
            words = f"Container {name} failed {kind.lower()} probe{again}"
            self.events.append(ContainerEvent(listed(pod, name), name, "Killing", words, EventType.NORMAL))

    def ask(self, pod: Pod, address: str, now_us: int) -> list[Check]:
        """Return what is to be asked now, and note when more is."""
        found, wakes = [], []
        for name, health in self._health.items():
            container = self._containers[name]
            given = probes.of(container)
            kinds, wake_us = probes.due(health, given, now_us, deleted=bool(pod.metadata.deletion_timestamp))
            if wake_us is not None:
                wakes.append(wake_us)
            for kind in kinds:
                self._health[name] = probes.ask(self._health[name], kind, given[kind], now_us)
                seconds = float(given[kind].timeout_seconds or probes.TIMEOUT_S)
                try:
                    action = actions.of_probe(given[kind], container, address)
                except ConfigError as error:
                    check = Check(pod.metadata.uid, name, health.number, kind, actions.NOTHING, seconds)
                    self.hear(pod, Checked(check, False, str(error)))
                    wakes.append(self._health[name].tallies[kind].due_us)
                else:
                    found.append(Check(pod.metadata.uid, name, health.number, kind, action, seconds))
        self.wake_us = min(wakes, default=None)
        return found

    def endings(self, pod: Pod) -> list[Ending]:
        """Return the containers that are to end because of a probe, with their grace."""
        return [
            Ending(name, probes.grace_s(health, probes.of(self._containers[name]), float(grace_s(pod))))
            for name, health in self._health.items()
            if health.failed
        ]
