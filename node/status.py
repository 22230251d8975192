"""A pod's status as a kubelet writes it, from the attempts of its containers.

The agent and the simulator both write statuses with this module, so that a
simulated pod reads like a real one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from kube.kinds.core import Container, ContainerRestartPolicy, Pod, PodPhase
from node.attempt import NEVER_RAN, Attempt, AttemptState, Run, time_text


class Waiting(NamedTuple):
    """Why a container does not run."""

    reason: str
    message: str = ""


class PodAddress(NamedTuple):
    """A pod's own address and its node's, and when the node took it on."""

    pod_ip: str
    host_ip: str
    start_us: int


def is_sidecar(container: Container) -> bool:
    """Whether an init container keeps running beside the others."""
    return container.restart_policy == ContainerRestartPolicy.ALWAYS


def compose(
    pod: Pod,
    runs: Mapping[str, Run],
    address: PodAddress,
    *,
    phase: str,
    now_us: int,
    reason: str = "",
    message: str = "",
    waiting: Mapping[str, Waiting] | None = None,
    scheme: str = "process",
) -> dict[str, Any]:
    """Return the whole status of a pod as JSON.

    Conditions that did not change keep their transition time, and conditions of
    types that a node does not write stay as they are. The scheme of container
    ids tells real containers from simulated ones.
    """
    waiting = waiting or {}
    prefix = f"{scheme}://{pod.metadata.uid}"
    creating = Waiting("PodInitializing" if pod.spec.init_containers else "ContainerCreating")
    if phase == PodPhase.FAILED and not runs:  # it was refused: nobody creates anything
        creating = Waiting(reason, message)

    def entries(containers: Sequence[Container], default: Waiting, *, init: bool) -> list[dict[str, Any]]:
        return [
            _container(one, runs.get(one.name, NEVER_RAN), waiting.get(one.name), default, prefix, init=init)
            for one in containers
        ]

    status: dict[str, Any] = {
        "phase": str(phase),
        "conditions": conditions(pod, runs, phase, now_us),
        "hostIP": address.host_ip,
        "hostIPs": [{"ip": address.host_ip}],
        "podIP": address.pod_ip,
        "podIPs": [{"ip": address.pod_ip}],
        "startTime": time_text(address.start_us),
        "containerStatuses": entries(pod.spec.containers, creating, init=False),
        "qosClass": pod.status.qos_class or qos_class(pod.spec.containers),
    }
    if pod.spec.init_containers:
        status["initContainerStatuses"] = entries(pod.spec.init_containers, Waiting("PodInitializing"), init=True)
    if reason:
        status["reason"] = reason
    if message:
        status["message"] = message
    return status


def _container(
    container: Container, run: Run, wait: Waiting | None, default: Waiting, prefix: str, *, init: bool
) -> dict[str, Any]:
    """Return a container's entry; one that has ended and has a reason to wait is to start again."""
    current, last = run
    prefix = f"{prefix}/{container.name}"
    running = current is not None and current.state is AttemptState.RUNNING
    started = running and current is not None and current.started
    done = current is not None and current.state is AttemptState.ENDED and current.exit_code == 0
    state: dict[str, Any]
    if current is None or current.state is AttemptState.ORDERED:
        state = {"waiting": _without_empty(**(wait or default)._asdict())}
    elif running:
        state = {"running": {"startedAt": time_text(current.started_us)}}
    elif wait is not None:
        state, last = {"waiting": _without_empty(**wait._asdict())}, current
    else:
        state = {"terminated": _terminated(current, prefix)}
    result: dict[str, Any] = {
        "name": container.name,
        "image": container.image,
        "imageID": current.image_id if current is not None else "",
        "ready": done if init and not is_sidecar(container) else _is_ready(run),
        "started": started,
        "restartCount": current.number if current is not None else 0,
        "state": state,
        "lastState": {} if last is None else {"terminated": _terminated(last, prefix)},
    }
    if current is not None:
        result["containerID"] = current.engine_id or f"{prefix}/{current.number}"
    return result


def container_id(pod: Pod, container: Container, number: int) -> str:
    """Return the containerID of one attempt of a container that really runs."""
    return f"process://{pod.metadata.uid}/{container.name}/{number}"


def _terminated(attempt: Attempt, prefix: str) -> dict[str, Any]:
    ended: dict[str, Any] = {
        "exitCode": attempt.exit_code,
        "reason": attempt.reason or ("Completed" if attempt.exit_code == 0 else "Error"),
        "startedAt": time_text(attempt.started_us or attempt.finished_us),
        "finishedAt": time_text(attempt.finished_us),
        "containerID": attempt.engine_id or f"{prefix}/{attempt.number}",
    }
    if attempt.signal:
        ended["signal"] = attempt.signal
    if attempt.message:
        ended["message"] = attempt.message
    return ended


def _without_empty(**fields: str) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value}


def conditions(pod: Pod, runs: Mapping[str, Run], phase: str, now_us: int) -> list[dict[str, Any]]:
    """Return the pod's conditions; those of other types than the node's own stay as they are."""
    wanted = {
        "PodScheduled": ("True", "", ""),
        "Initialized": _initialized(pod, runs, phase),
        "ContainersReady": (ready := _ready(pod.spec.containers, runs, phase)),
        "Ready": ready,
    }
    existing = {condition.type: condition for condition in pod.status.conditions}
    result = []
    for kind, (value, reason, message) in wanted.items():
        old = existing.pop(kind, None)
        changed = old is None or old.status != value or not old.last_transition_time
        fields = {"reason": reason, "message": message}
        result.append(
            {
                "type": kind,
                "status": value,
                "lastTransitionTime": time_text(now_us) if changed or old is None else old.last_transition_time,
                **{name: text for name, text in fields.items() if text},
            }
        )
    others: list[dict[str, Any]] = msgspec.to_builtins(list(existing.values()))
    return [*others, *result]


def mark_disrupted(status: dict[str, Any], message: str, now_us: int) -> None:
    """Add Kubernetes' condition for a pod that is about to go and not by its own fault to a status."""
    others = [one for one in status["conditions"] if one["type"] != "DisruptionTarget"]
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "TerminationByKubelet",
        "message": message,
        "lastTransitionTime": time_text(now_us),
    }
    status["conditions"] = [condition, *others]


def _initialized(pod: Pod, runs: Mapping[str, Run], phase: str) -> tuple[str, str, str]:
    if phase == PodPhase.SUCCEEDED:
        return "True", "PodCompleted", ""
    undone = [one.name for one in pod.spec.init_containers if not is_initialized(one, runs.get(one.name, NEVER_RAN))]
    if undone:
        return "False", "ContainersNotInitialized", f"containers with incomplete status: [{' '.join(undone)}]"
    return "True", "", ""


def is_initialized(container: Container, run: Run) -> bool:
    """Whether an init container lets those after it begin: it has succeeded, or it is a sidecar and has started."""
    if run.current is None:
        return False
    if is_sidecar(container):
        return run.current.state is not AttemptState.ORDERED and run.current.started
    return run.current.state is AttemptState.ENDED and run.current.exit_code == 0


def _ready(containers: Sequence[Container], runs: Mapping[str, Run], phase: str) -> tuple[str, str, str]:
    if phase == PodPhase.SUCCEEDED:
        return "False", "PodCompleted", ""
    if phase == PodPhase.FAILED:
        return "False", "PodFailed", ""
    unready = [one.name for one in containers if not _is_ready(runs.get(one.name, NEVER_RAN))]
    if unready:
        return "False", "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
    return "True", "", ""


def _is_ready(run: Run) -> bool:
    return run.current is not None and run.current.state is AttemptState.RUNNING and run.current.ready


def qos_class(containers: Sequence[Container]) -> str:
    """Return Guaranteed, Burstable or BestEffort, by Kubernetes' rule over CPU and memory."""
    constrained = guaranteed = 0
    for container in containers:
        requests, limits = container.resources.requests, container.resources.limits
        constrained += any(name in requests or name in limits for name in ("cpu", "memory"))
        guaranteed += all(
            name in limits and requests.get(name, limits[name]) == limits[name] for name in ("cpu", "memory")
        )
    if not constrained:
        return "BestEffort"
    return "Guaranteed" if guaranteed == len(containers) else "Burstable"
