"""One simulated pod: its state, and what a stage makes of it. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from kube.kinds.core import Pod, PodPhase
from kube.kinds.pod import ENDED, ContainerStatus
from node import status
from node.attempt import Attempt, AttemptState, Run, parse_us
from node.rules.lifecycle import SECOND, start_of
from node.simulator import stages
from node.simulator.stages import Stage, StagedPod
from node.status import PodAddress

SCHEME = "simulated"


@dataclass(slots=True)
class Simulated:
    """A pod's state in the simulator between two of its stages."""

    pod: Pod
    revision: int
    phase: str
    accepted: bool
    since_us: int  # when it came into its present state
    begun_us: int = 0  # when its containers began their first attempt; by then its init containers had ended
    started_us: int = 0  # when its containers began their present attempt
    restarts: int = 0
    last: Attempt | None = None
    exit_code: int = 0
    reason: str = ""  # why the pod as a whole has failed, in a word and in a sentence
    message: str = ""
    stage: Stage | None = None  # what happens next ...
    turn: int = 0  # ... and which entry of the heap is the valid one
    removed: bool = False

    @classmethod
    def of(cls, pod: Pod, revision: int, now_us: int) -> Simulated:
        """Return the state that follows from a pod's status, as after a restart of the simulator."""
        container = pod.status.container_statuses[0] if pod.status.container_statuses else None
        running = container.state.running if container else None
        started = parse_us(running.started_at or "", now_us) if running else 0
        inits = pod.status.init_container_statuses
        initialized = inits[0].state.terminated if inits else None
        return cls(
            pod,
            revision,
            pod.status.phase,
            bool(pod.status.start_time),
            since_us=started or start_of(pod, now_us),
            begun_us=parse_us(initialized.finished_at, started) if initialized else started,
            started_us=started,
            restarts=container.restart_count if container else 0,
            last=_last(container, now_us) if container else None,
        )

    @property
    def staged(self) -> StagedPod:
        """The pod as stages see it."""
        meta = self.pod.metadata
        return StagedPod(
            self.phase,
            self.pod.spec.restart_policy or "Always",
            self.accepted,
            bool(meta.deletion_timestamp),
            meta.annotations,
        )

    @property
    def deadline_us(self) -> int | None:
        """When the pod will have been on its node for as long as it may; None where nothing ends it."""
        seconds, begun_us = self.pod.spec.active_deadline_seconds, parse_us(self.pod.status.start_time, 0)
        if seconds is None or not begun_us or self.phase in ENDED or self.staged.deleted:
            return None
        return begun_us + seconds * SECOND

    def pass_through(self, stage: Stage, now_us: int) -> None:
        """Come into the state that a stage leads to."""
        after = stage.next
        ends = after.exit_code is not None and self.started_us
        if ends:
            self.exit_code = stages.exit_code(after.exit_code, self.pod.metadata.annotations)
        if after.restart and self.started_us:
            self.last = self._attempt(AttemptState.ENDED, now_us)
            self.restarts += 1
            self.started_us = now_us
        elif after.phase == PodPhase.RUNNING and not self.started_us:
            self.begun_us = self.started_us = now_us
        self.phase = after.phase or self.phase
        self.reason, self.message = after.reason or self.reason, after.message or self.message
        self.accepted = True
        self.since_us = now_us
        self.removed = after.delete

    def status(self, host_ip: str, now_us: int) -> dict[str, Any]:
        """Return the pod's whole status."""
        pod = self.pod
        state = AttemptState.RUNNING if self.phase == PodPhase.RUNNING else AttemptState.ENDED
        run = Run(self._attempt(state, self.since_us), self.last) if self.started_us else Run()
        runs = dict.fromkeys((container.name for container in pod.spec.containers), run)
        if self.started_us and pod.spec.init_containers:
            done = Run(Attempt(0, AttemptState.ENDED, 0, self.begun_us, self.begun_us))
            runs |= dict.fromkeys((container.name for container in pod.spec.init_containers), done)
        pod_address = PodAddress(pod.status.pod_ip or address(pod.metadata.uid), host_ip, start_of(pod, now_us))
        return status.compose(
            pod, runs, pod_address, phase=self.phase, now_us=now_us, reason=self.reason or pod.status.reason,
            message=self.message or pod.status.message, scheme=SCHEME,
        )  # fmt: skip

    def _attempt(self, state: AttemptState, now_us: int) -> Attempt:
        if state is AttemptState.RUNNING:
            return Attempt(self.restarts, state, 0, self.started_us)
        return Attempt(self.restarts, AttemptState.ENDED, 0, self.started_us, now_us, self.exit_code)


def _last(container: ContainerStatus, now_us: int) -> Attempt | None:
    """Return the attempt before the present one, from a container's status."""
    ended = container.last_state.terminated
    if ended is None:
        return None
    times = parse_us(ended.started_at, now_us), parse_us(ended.finished_at, now_us)
    return Attempt(container.restart_count - 1, AttemptState.ENDED, 0, *times, ended.exit_code)


def address(uid: str) -> str:
    """Return the address that a simulated pod shows; nothing listens there."""
    digest = hashlib.blake2b(uid.encode(), digest_size=3).digest()
    return f"10.{128 + digest[0] % 128}.{digest[1]}.{digest[2]}"
