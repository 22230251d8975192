"""The status of a pod in a few words (reference: kubernetes-api §3.3)."""

from __future__ import annotations

from typing import Any

from kube import lenient
from kube.kinds.pod import ENDED
from kube.meta import Object
from kube.printing import ages


class Restarts:
    """How often containers were restarted, and when last."""

    def __init__(self) -> None:
        self.count = 0
        self.last: int | None = None

    def add(self, status: Object) -> None:
        """Count the restarts of a container."""
        self.count += lenient.whole(status, "restartCount") or 0
        ended = ages.moment(lenient.mapping(status, "lastState", "terminated").get("finishedAt"))
        if ended is not None and (self.last is None or ended > self.last):
            self.last = ended


class Summary:
    """A pod in four values: the word for its status, ready and all containers, restarts.

    Containers that initialise the pod speak first; once they are through, the
    last of the others that has something to say does. Init containers that
    keep running (sidecars) count among the others.
    """

    def __init__(self, pod: Object) -> None:
        self._spec = lenient.mapping(pod, "spec")
        self._status = lenient.mapping(pod, "status")
        sidecars = [each for each in _maps(self._spec, "initContainers") if each.get("restartPolicy") == "Always"]
        self._sidecars = {lenient.text(each, "name") for each in sidecars}
        self.total = len(_maps(self._spec, "containers")) + len(sidecars)
        self.ready = 0
        self.reason = lenient.text(self._status, "reason") or lenient.text(self._status, "phase")
        gates = (each for each in _maps(self._status, "conditions") if each.get("type") == "PodScheduled")
        if any(each.get("reason") == "SchedulingGated" for each in gates):
            self.reason = "SchedulingGated"
        self._restarts = Restarts()
        self._sidecar_restarts = Restarts()
        initialising = self._look_at_init_containers()
        if not initialising or self._condition("Initialized"):
            self._look_at_containers()
        self.reason = self._deleted_reason(pod) or self.reason

    @property
    def restarts(self) -> int:
        """How often containers were restarted."""
        return self._restarts.count

    @property
    def last_restart(self) -> int | None:
        """When the container ended that was restarted last."""
        return self._restarts.last

    def _deleted_reason(self, pod: Object) -> str:
        if lenient.mapping(pod, "metadata").get("deletionTimestamp") is None:
            return ""
        if self._status.get("reason") == "NodeLost":
            return "Unknown"
        return "" if self._status.get("phase") in ENDED else "Terminating"

    def _condition(self, kind: str) -> bool:
        return any(
            each.get("type") == kind and each.get("status") == "True" for each in _maps(self._status, "conditions")
        )

    def _look_at_init_containers(self) -> bool:
        """Whether one is at work or has failed; that one gives the reason."""
        for number, container in enumerate(_maps(self._status, "initContainerStatuses")):
            self._restarts.add(container)
            sidecar = lenient.text(container, "name") in self._sidecars
            if sidecar:
                self._sidecar_restarts.add(container)
            terminated = _state(container, "terminated")
            if terminated is not None and not terminated.get("exitCode"):
                continue
            if sidecar and container.get("started") is True:
                self.ready += container.get("ready") is True
                continue
            self.reason = f"Init:{self._init_reason(container, number)}"
            return True
        return False

    def _init_reason(self, container: Object, number: int) -> str:
        terminated = _state(container, "terminated")
        if terminated is not None:
            return _ended(terminated)
        waiting = lenient.text(_state(container, "waiting"), "reason")
        if waiting and waiting != "PodInitializing":
            return waiting
        return f"{number}/{len(_maps(self._spec, 'initContainers'))}"

    def _look_at_containers(self) -> None:
        # Of the init containers only sidecars go on to be restarted.
        self._restarts = self._sidecar_restarts
        running, error = False, ""
        for container in reversed(_maps(self._status, "containerStatuses")):
            self._restarts.add(container)
            terminated = _state(container, "terminated")
            if waiting := lenient.text(_state(container, "waiting"), "reason"):
                self.reason = waiting
            elif terminated is not None:
                self.reason = _ended(terminated)
                if terminated.get("exitCode"):
                    error = self.reason
            elif container.get("ready") is True and _state(container, "running") is not None:
                running = True
                self.ready += 1
        if self.reason == "Completed":
            self.reason = self._completed_reason(running, error)

    def _completed_reason(self, running: bool, error: str) -> str:
        """Return the reason where the first container has completed and others may have not."""
        if running and self._condition("Ready"):
            return "Running"
        return error or ("NotReady" if running else "Completed")


def _ended(terminated: Object) -> str:
    if reason := lenient.text(terminated, "reason"):
        return reason
    if signal := lenient.whole(terminated, "signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{lenient.whole(terminated, 'exitCode') or 0}"


def _state(container: Object, name: str) -> Object | None:
    state: Any = lenient.mapping(container, "state").get(name)
    return state if isinstance(state, dict) else None


def _maps(value: Object, key: str) -> list[Object]:
    return [item for item in lenient.sequence(value, key) if isinstance(item, dict)]
