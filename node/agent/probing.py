"""The probes of one pod: which are due, their results, and what follows from these for its containers' attempts.

`node.rules.probes` is the rule, `node.agent.checks` runs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kube.kinds.core import EventType, Pod, RestartPolicy
from node.agent.checks import Check, CheckResult
from node.attempt import UNHEALTHY, AttemptState, Run
from node.containers import actions
from node.pods.environment import ConfigError
from node.pods.events import ContainerEvent, listed
from node.rules import probes
from node.rules.lifecycle import grace_s
from node.rules.probes import Health
from node.status import container_id

MESSAGE_LETTERS = 1000  # letters of a probe's words in an event


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

    def with_health(self, pod: Pod, runs: Mapping[str, Run]) -> dict[str, Run]:
        """Return a pod's runs with the readiness and start that its probes have found."""
        updated = dict(runs)
        for name, container in self._containers.items():
            attempt = runs[name].current if name in runs else None
            if attempt is None or attempt.state is not AttemptState.RUNNING:
                self._health.pop(name, None)
                continue
            health = self._health.get(name)
            if health is None or health.number != attempt.number:
                own_id = container_id(pod, container, attempt.number)
                statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
                status = next((one for one in statuses if one.container_id == own_id), None)
                health = self._health[container.name] = probes.begin(probes.of(container), attempt, status)
            ready = health.started and health.ready
            updated[name] = runs[name]._replace(current=attempt._replace(started=health.started, ready=ready))
        return updated

    def record(self, pod: Pod, result: CheckResult) -> None:
        """Record the result of a probe; one of an attempt that has ended is dropped."""
        name, kind = result.check.container, result.check.kind
        health, container = self._health.get(name), self._containers.get(name)
        if health is None or container is None or health.number != result.check.number:
            return
        probe = probes.of(container)[kind]
        health = self._health[name] = probes.with_result(health, kind, probe, passed=result.passed)
        if result.passed is False and probes.is_worth_event(health, kind, probe):
            message = f"{kind} probe failed: {result.message[:MESSAGE_LETTERS]}"
            self.events.append(ContainerEvent(listed(pod, name), name, UNHEALTHY, message))
        if health.failed is kind and result.passed is False:
            policy = container.restart_policy or pod.spec.restart_policy
            consequence = "" if policy == RestartPolicy.NEVER else ", will be restarted"
            message = f"Container {name} failed {kind.lower()} probe{consequence}"
            self.events.append(ContainerEvent(listed(pod, name), name, "Killing", message, EventType.NORMAL))

    def due_checks(self, pod: Pod, address: str, now_us: int) -> list[Check]:
        """Return the checks that are due now, and set the time of the next."""
        checks, wake_times = [], []
        for name, health in self._health.items():
            container = self._containers[name]
            by_kind = probes.of(container)
            kinds, wake_us = probes.due(health, by_kind, now_us, deleted=bool(pod.metadata.deletion_timestamp))
            if wake_us is not None:
                wake_times.append(wake_us)
            for kind in kinds:
                self._health[name] = probes.with_pending(self._health[name], kind, by_kind[kind], now_us)
                seconds = float(by_kind[kind].timeout_seconds or probes.TIMEOUT_S)
                try:
                    action = actions.of_probe(by_kind[kind], container, address)
                except ConfigError as error:
                    check = Check(pod.metadata.uid, name, health.number, kind, actions.NOTHING, seconds)
                    self.record(pod, CheckResult(check, False, str(error)))
                    wake_times.append(self._health[name].tallies[kind].due_us)
                else:
                    checks.append(Check(pod.metadata.uid, name, health.number, kind, action, seconds))
        self.wake_us = min(wake_times, default=None)
        return checks

    def endings(self, pod: Pod) -> list[Ending]:
        """Return the containers that are to end because of a probe, with their grace."""
        return [
            Ending(name, probes.grace_s(health, probes.of(self._containers[name]), float(grace_s(pod))))
            for name, health in self._health.items()
            if health.failed
        ]
