"""Which container of a pod is meant, and which of its instances: one answer for log, exec, attach and port-forward (§3.7)."""

from __future__ import annotations

from typing import Any

from kube.errors import BadRequest
from kube.kinds.pod import ENDED
from kube.meta import Object
from node.logs import SIMULATED

MAX_DIGITS = 10  # of the number of an attempt


def chosen(pod: Object, requested: str) -> str:
    """Return the name of the container that is meant; BadRequest in Kubernetes' words when none or several may be."""
    name = pod["metadata"]["name"]
    main, starting = _names(pod, "containers"), _names(pod, "initContainers")
    if requested:
        if requested not in (*main, *starting):
            raise BadRequest(f"container {requested} is not valid for pod {name}")
        return requested
    if len(main) == 1:
        return main[0]
    message = f"a container name must be specified for pod {name}"
    if main:
        message += f", choose one of: [{' '.join(main)}]"
    if main and starting:
        message += f" or one of the init containers: [{' '.join(starting)}]"
    raise BadRequest(message)


def spec(pod: Object, container: str) -> Object:
    """Return a container as the pod's spec describes it; {} when it does not."""
    return _named(pod["spec"], ("containers", "initContainers"), container)


def instance(pod: Object, container: str, *, previous: bool = False) -> str:
    """Return the id of the instance whose log is meant; BadRequest says why there is none (as kubelets do)."""
    state, last = _states(pod, container)
    ended = (last.get("terminated") or {}).get("containerID") or ""
    pod_name = pod["metadata"]["name"]
    if previous:
        if not ended:
            raise BadRequest(f'previous terminated container "{container}" in pod "{pod_name}" not found')
        return ended
    current: str = (
        _container_id(pod, container)
        if state.get("running") is not None
        else (state.get("terminated") or {}).get("containerID") or ended
    )
    if current:
        return current
    if state.get("terminated"):
        raise BadRequest(f'container "{container}" in pod "{pod_name}" is terminated')
    reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
    raise BadRequest(f'container "{container}" in pod "{pod_name}" is waiting to start: {reason}')


def running(pod: Object, container: str, verb: str) -> str:
    """Return the id of the instance that runs; BadRequest when none does, or when it only seems to.

    verb is what is to be done with it: "exec" or "attach".
    """
    pod_name = pod["metadata"]["name"]
    phase = (pod.get("status") or {}).get("phase")
    if phase in ENDED:
        deed = "exec into" if verb == "exec" else "attach"
        raise BadRequest(f"cannot {deed} a container in a completed pod; current phase is {phase}")
    if not pod["spec"].get("nodeName"):
        raise BadRequest(f"pod {pod_name} does not have a host assigned")
    state, _ = _states(pod, container)
    if state.get("running") is None:
        raise BadRequest(f"container {container} in pod {pod_name} is not running")
    instance_id = _container_id(pod, container)
    if is_simulated(instance_id):
        raise BadRequest(
            f"pod {pod_name} runs on a simulated node: nothing is executed there, so there is no process to join"
        )
    return instance_id


def check_running(pod: Object) -> None:
    """Raise BadRequest when no container of a pod runs, or when they only seem to."""
    name, status = pod["metadata"]["name"], pod.get("status") or {}
    if not pod["spec"].get("nodeName"):
        raise BadRequest(f"pod {name} does not have a host assigned")
    every = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    running = [one for one in every if (one.get("state") or {}).get("running") is not None]
    if not running:
        raise BadRequest(f"pod {name} is not running. Current status={status.get('phase')}")
    if is_simulated(running[0].get("containerID") or ""):
        raise BadRequest(f"pod {name} runs on a simulated node: nothing is executed there, so nothing listens")


def is_simulated(container_id: str) -> bool:
    """Whether the instance only passed on a clock."""
    return container_id.startswith(SIMULATED)


def number(container_id: str) -> int:
    """Return which attempt of its container an instance is, 0 where a node says what cannot be one."""
    text = container_id.rpartition("/")[2]
    return int(text) if text.isdecimal() and len(text) <= MAX_DIGITS else 0


def _names(pod: Object, field: str) -> list[str]:
    return [one.get("name", "") for one in pod["spec"].get(field) or ()]


def _named(holder: Object, fields: tuple[str, ...], name: str) -> Object:
    every = (one for field in fields for one in holder.get(field) or ())
    return next((one for one in every if one.get("name") == name), {})


def _status(pod: Object, container: str) -> Object:
    return _named(pod.get("status") or {}, ("containerStatuses", "initContainerStatuses"), container)


def _states(pod: Object, container: str) -> tuple[dict[str, Any], dict[str, Any]]:
    status = _status(pod, container)
    return status.get("state") or {}, status.get("lastState") or {}


def _container_id(pod: Object, container: str) -> str:
    return _status(pod, container).get("containerID") or ""
