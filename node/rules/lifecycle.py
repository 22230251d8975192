"""What a node does next for one pod, and the status that it writes: a pure rule.

`decide` looks at the pod as it is in the store and at the attempts that are on
disk, and at nothing else. It is called again whenever one of the two has changed or
the time it named has come, so an agent that was killed loses nothing: the next
one calls it with the same two things.

The rules are a kubelet's (pod lifecycle, restart policy and back-off of
Kubernetes; design §5), with three reasons of this system: `NoCommand`,
`UnsupportedVolume` and `NodeShutdown`. A pod that its machine has ended has not
failed: its containers are started again where its restart policy allows, and
where not it is taken away, so that whoever made it makes it again (`lost`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kube.kinds.core import Container, Pod, PodPhase, RestartPolicy
from kube.kinds.pod import ENDED
from node import status
from node.attempt import (
    DEADLINE,
    EVICTED,
    NEVER_RAN,
    POST_START,
    SHUTDOWN,
    UNHEALTHY,
    UNKNOWN_REASON,
    Attempt,
    AttemptState,
    Run,
    parse_us,
)
from node.status import PodAddress, Waiting, is_sidecar

SECOND = 1_000_000
BACK_OFF_S = 10
BACK_OFF_MAX_S = 300
STEADY_S = 600  # an attempt that ran this long starts the back-off anew
GRACE_S = 30

MESSAGES = {
    EVICTED: "The pod used more of the disk than it may.",
    DEADLINE: "Pod was active on the node longer than the specified deadline",
    SHUTDOWN: "The pod was ended with the cluster on this machine; its restart policy is Never, and it belongs to no job "
    "that would make it again.",
}
LOST = {
    SHUTDOWN: "The pod was ended with the cluster on this machine. It did not fail: it is taken away, and what it belongs to "
    "makes it again.",
    UNKNOWN_REASON: "The pod ended with its machine, or with the process that watched over it, so how it ended is not known. "
    "It is taken away, and what it belongs to makes it again.",
}


class Start(NamedTuple):
    """Begin this attempt."""

    container: Container
    number: int
    streak: int


class Stop(NamedTuple):
    """End every attempt that runs."""

    reason: str
    grace_s: float


class Refusal(NamedTuple):
    """Why this node cannot run the pod at all."""

    reason: str
    message: str


@dataclass(slots=True)
class Decision:
    """What to do for a pod, what to write about it, and when to decide again."""

    status: dict[str, Any] = field(default_factory=dict)
    start: list[Start] = field(default_factory=list)
    stop: Stop | None = None
    wake_us: int | None = None
    over: bool = False  # nothing runs, and nothing will
    lost: str = ""  # why the pod is to be taken away, once nothing of it runs; empty: it stays


def decide(
    pod: Pod,
    runs: Mapping[str, Run],
    address: PodAddress,
    now_us: int,
    *,
    refusal: Refusal | None = None,
    problems: Mapping[str, Waiting] | None = None,
) -> Decision:
    """Return what is next for a pod.

    refusal ends the pod before it begins; problems tell of containers that
    cannot be started at the moment, or not again, for example because their
    ConfigMap is not there.
    """
    verdict = refusal or _verdict(pod, runs, address, now_us)
    lost = None if verdict else _lost(pod, runs)
    # A controller makes another pod when its own is deleted.
    if lost and not any(owner.controller for owner in pod.metadata.owner_references):
        verdict = Refusal(SHUTDOWN, MESSAGES[SHUTDOWN]) if lost == SHUTDOWN else None
        lost = None
    decision = Decision(lost=LOST[lost] if lost else "")
    waiting: dict[str, Waiting] = {}
    if verdict or lost or pod.metadata.deletion_timestamp or pod.status.phase in ENDED:
        if any(run.current is not None and run.current.active for run in runs.values()):
            decision.stop = _stop(pod, verdict or (Refusal(SHUTDOWN, "") if lost else None))
    else:
        _run_on(pod, runs, now_us, decision, waiting)
        if pod.spec.active_deadline_seconds is not None:
            _wake(decision, address.start_us + pod.spec.active_deadline_seconds * SECOND)
    due = {start.container.name for start in decision.start}
    ended = {name for name, run in runs.items() if run.current is not None and not run.current.active}
    hindered = {name: why for name, why in (problems or {}).items() if name in due or name not in ended}
    waiting = hindered | waiting
    _describe(pod, runs, address, now_us, decision, verdict, waiting)
    return decision


def _verdict(pod: Pod, runs: Mapping[str, Run], address: PodAddress, now_us: int) -> Refusal | None:
    """Return why the pod as a whole has failed, whatever its containers still do."""
    stops = {run.current.stopped for run in runs.values() if run.current is not None}
    if EVICTED in stops:
        return Refusal(EVICTED, pod.status.message or MESSAGES[EVICTED])
    seconds = pod.spec.active_deadline_seconds
    if seconds is None or (DEADLINE not in stops and now_us < address.start_us + seconds * SECOND):
        return None
    if DEADLINE in stops or not _all_done(pod, runs):
        return Refusal(DEADLINE, MESSAGES[DEADLINE])
    return None


def _lost(pod: Pod, runs: Mapping[str, Run]) -> str | None:
    """Return the reason by which the machine has ended the pod for good, None when it has not.

    Only what the machine did counts: a container that had failed by itself has
    failed, and one that may be started again is not lost.
    """
    if pod.metadata.deletion_timestamp or pod.status.phase in ENDED:
        return None
    reasons: list[str] = []
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        ended = runs.get(container.name, NEVER_RAN).current
        if ended is None or ended.active or _restarts(pod, container, ended):
            continue
        if ended.stopped == SHUTDOWN:
            reasons.append(SHUTDOWN)
        elif ended.reason == UNKNOWN_REASON and not ended.stopped:
            reasons.append(UNKNOWN_REASON)
        elif ended.failed:
            return None
    return reasons[0] if reasons else None


def _all_done(pod: Pod, runs: Mapping[str, Run]) -> bool:
    current = [runs.get(container.name, NEVER_RAN).current for container in pod.spec.containers]
    return all(one is not None and not one.active and not _restarts(pod, container, one)
               for one, container in zip(current, pod.spec.containers, strict=True))  # fmt: skip


def _stop(pod: Pod, verdict: Refusal | None) -> Stop:
    if pod.metadata.deletion_timestamp:
        requested = pod.metadata.deletion_grace_period_seconds
        return Stop("Deleted", float(grace_s(pod) if requested is None else requested))
    reason = verdict.reason if verdict else pod.status.reason or "Failed"
    return Stop(reason, float(grace_s(pod)))


def grace_s(pod: Pod) -> int:
    """Return how many seconds the containers of a pod have to end; none at all is a number, too."""
    seconds = pod.spec.termination_grace_period_seconds
    return GRACE_S if seconds is None else seconds


def _wake(decision: Decision, at_us: int) -> None:
    decision.wake_us = at_us if decision.wake_us is None else min(decision.wake_us, at_us)


def _run_on(pod: Pod, runs: Mapping[str, Run], now_us: int, decision: Decision, waiting: dict[str, Waiting]) -> None:
    """Start what is due: init containers one after another, then all containers together."""
    if _all_done(pod, runs):
        active = {name for name, run in runs.items() if run.current is not None and run.current.active}
        if any(one.name in active for one in pod.spec.init_containers):
            decision.stop = Stop("Completed", float(grace_s(pod)))
        return
    for container in pod.spec.init_containers:
        run = runs.get(container.name, NEVER_RAN)
        _advance(pod, container, run, now_us, decision, waiting)
        if not status.is_initialized(container, run):
            return
    for container in pod.spec.containers:
        _advance(pod, container, runs.get(container.name, NEVER_RAN), now_us, decision, waiting)


def _advance(
    pod: Pod, container: Container, run: Run, now_us: int, decision: Decision, waiting: dict[str, Waiting]
) -> None:
    current = run.current
    if current is None:
        decision.start.append(Start(container, 0, 0))
        return
    if current.active or not _restarts(pod, container, current):
        return
    streak, delay_s = back_off(current)
    due_us = current.finished_us + delay_s * SECOND
    # A clock that was set back must not hold a container for longer than its back-off.
    if due_us <= now_us or current.finished_us > now_us + SECOND:
        decision.start.append(Start(container, current.number + 1, streak))
        return
    name, key = container.name, f"{pod.metadata.name}_{pod.metadata.namespace}({pod.metadata.uid})"
    cause = f": {current.message}" if current.message else ""
    span = f"{delay_s}s" if delay_s < 60 else f"{delay_s // 60}m{delay_s % 60}s"
    waiting[name] = Waiting("CrashLoopBackOff", f"back-off {span} restarting failed container={name} pod={key}{cause}")
    _wake(decision, due_us)


def back_off(ended: Attempt) -> tuple[int, int]:
    """Return the next attempt's streak, and how many seconds after this one's end it may begin.

    The first restart is at once, then 10 s doubling to 5 min; who ran for ten
    minutes begins anew, and being stopped with the cluster does not count.
    """
    if ended.stopped == SHUTDOWN:
        return ended.streak, 0
    steady = ended.finished_us - ended.started_us >= STEADY_S * SECOND
    streak = 0 if steady else ended.streak
    delay = 0 if streak == 0 else min(BACK_OFF_S * 2 ** min(streak - 1, 10), BACK_OFF_MAX_S)
    return streak + 1, delay


def _restarts(pod: Pod, container: Container, ended: Attempt) -> bool:
    if pod.metadata.deletion_timestamp:
        return False
    init = any(container is one for one in pod.spec.init_containers)
    policy = container.restart_policy or pod.spec.restart_policy or RestartPolicy.ALWAYS
    if policy == RestartPolicy.NEVER:
        return False
    # One that was ended for its probe or hook starts again whatever its exit code.
    if ended.stopped in (SHUTDOWN, UNHEALTHY, POST_START):
        return True
    if policy == RestartPolicy.ALWAYS and (not init or is_sidecar(container)):
        return True
    return ended.exit_code != 0


def _describe(
    pod: Pod,
    runs: Mapping[str, Run],
    address: PodAddress,
    now_us: int,
    decision: Decision,
    verdict: Refusal | None,
    waiting: Mapping[str, Waiting],
) -> None:
    active = any(run.current is not None and run.current.active for run in runs.values())
    reason, message = pod.status.reason, pod.status.message
    if pod.status.phase in ENDED:
        phase = pod.status.phase
    elif decision.lost:
        phase = pod.status.phase or PodPhase.PENDING
    elif verdict and not active:
        phase, reason, message = PodPhase.FAILED, verdict.reason, verdict.message
    else:
        phase = _phase(pod, runs, active)
    decision.over = (phase in ENDED or bool(decision.lost)) and not active and not decision.start
    if pod.metadata.deletion_timestamp and not active:
        decision.over = True
    decision.status = status.compose(
        pod, runs, address, phase=phase, now_us=now_us, reason=reason, message=message, waiting=waiting
    )
    if decision.lost:
        status.mark_disrupted(decision.status, decision.lost, now_us)


def _phase(pod: Pod, runs: Mapping[str, Run], active: bool) -> str:
    """Return the phase that the containers add up to."""
    for container in pod.spec.init_containers:
        run = runs.get(container.name, NEVER_RAN)
        if run.current is not None and run.current.failed and not _restarts(pod, container, run.current):
            return PodPhase.PENDING if active else PodPhase.FAILED
    current = [runs.get(container.name, NEVER_RAN).current for container in pod.spec.containers]
    if any(one is None or (one.state is AttemptState.ORDERED and one.number == 0) for one in current):
        return PodPhase.FAILED if pod.metadata.deletion_timestamp and not active else PodPhase.PENDING
    if active or not _all_done(pod, runs):
        return PodPhase.RUNNING
    return PodPhase.FAILED if any(one is not None and one.failed for one in current) else PodPhase.SUCCEEDED


def start_of(pod: Pod, now_us: int) -> int:
    """Return when the node took the pod on: what its status says, otherwise now."""
    return parse_us(pod.status.start_time, now_us)
