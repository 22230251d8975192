"""The nodes of another cluster, reached through its API server: the logs of pods.

Kubelets keep the log of the present and of the previous instance of a container, while the pod is there. Its attempts
are counted as in the pod's status: an instance's number is how often the container was started anew.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from cluster import clock
from cluster.backend import Line, LogChunk, LogExtent, LogText, Nodes, NoLog
from cluster.remote.http.request import Impersonation
from cluster.remote.logs import log_offsets
from cluster.remote.logs.log_ends import Instance, LogName
from cluster.remote.logs.log_memory import LogMemory
from cluster.remote.logs.log_offsets import PlacedLine
from cluster.remote.logs.log_reading import LogTarget
from cluster.store import Stored, store
from kube.kinds.pod import ENDED
from kube.meta import Object
from kube.resources import PODS

CHUNK = 1024 * 1024  # bytes of one read, which begins with the second before the one in which the last one ended
TAIL_MOST = 4 * 1024 * 1024
AT_ONCE = 8  # requests for the ends of logs
PODS_AT_ONCE = 500


class RemoteNodes:
    """The nodes of a cluster with an API of its own, for a person or the kubeconfig's user (None). Thread-safe."""

    offsets_are_bytes = False
    answer_at_once = False

    def __init__(self, memory: LogMemory | None = None, impersonation: Impersonation | None = None) -> None:
        self._memory = memory or LogMemory()
        self._impersonation = impersonation

    def acting_as(self, impersonation: Impersonation | None) -> RemoteNodes:
        """Return the same nodes, read as a person; both share what is remembered."""
        return RemoteNodes(self._memory, impersonation)

    def on(self, node: str) -> Nodes:
        """Return the same: the cluster's API finds the node."""
        return self

    def away(self, node: str) -> str:
        """Return "": that a node cannot be reached shows in the API's answer to a request for its logs."""
        return ""

    def log_attempts(self, uid: str, container: str) -> list[int]:
        """Return the attempts of a container whose logs its node still has: the present one and the one before."""
        return [each.attempt for pod in _pods([uid]) for each in instances(pod.object, container)]

    def log_extents(self, pods: Mapping[str, str]) -> list[LogExtent]:
        """Return how far the logs of pods go, as last checked: logs of running containers are checked in turns."""
        targets: dict[LogName, LogTarget] = {}
        for pod in _pods(pods):
            for status in _statuses(pod.object):
                container = status["name"]
                for run in _runs(status):
                    target = LogTarget(pod.namespace, pod.name, container, run, self._impersonation)
                    targets[LogName(pod.uid, container, run.attempt)] = target
        due = self._memory.due(targets)
        list(_threads().map(lambda log: self._memory.look(log, targets[log]), due))
        now = log_offsets.offset_of(clock.milliseconds())
        extents = []
        for log in targets:
            end = self._memory.end(log)
            if end is None:  # too many are new at once: whether this one exists shows when it is read
                extents.append(LogExtent(*log, 0, now, ended=False))
            elif not end.why:
                extents.append(LogExtent(*log, 0, end.end, end.is_final))
        return extents

    def read_log(
        self, uid: str, container: str, attempt: int | None = None, *, since_offset: int = 0, most: int | None = None
    ) -> LogChunk:
        """Return a stretch of a log from an offset on (`log_offsets`); NoLog when there is none."""
        log, target = self._find_log(uid, container, attempt)
        stretch = self._memory.read_on(log, target, since_offset, CHUNK if most is None else most)
        begin = stretch.lines[0].offset if stretch.lines else since_offset
        following = stretch.lines[-1].offset + 1 if stretch.lines else since_offset
        ended = target.instance.has_ended and stretch.is_all
        return LogChunk(log.attempt, _lines(stretch.lines), begin, following, ended)

    def tail_log(
        self,
        uid: str,
        container: str,
        attempt: int | None = None,
        *,
        lines: int,
        most: int | None = None,
        before: int | None = None,
    ) -> LogChunk:
        """Return the last lines of a log, or of its part before an offset; NoLog when there is none."""
        log, target = self._find_log(uid, container, attempt)
        limit = TAIL_MOST if most is None else most
        block = self._memory.block(log, target, before, lines)
        while (tail := block.tail(lines, limit, before)) is None:
            block = self._memory.longer(log, target, block)
        last_lines, begin = tail
        following = block.end if before is None else before
        ended = target.instance.has_ended and before is None
        return LogChunk(log.attempt, _lines(last_lines), begin, following, ended)

    def log_offset(self, uid: str, container: str, attempt: int, since_us: int) -> int:
        """Return the offset at which the entries of a time begin; those of its millisecond are among them."""
        return log_offsets.offset_of(since_us // 1000)

    def why_no_log(self, pod: Object) -> str:
        """Say in a sentence why a pod has no log."""
        if not (pod.get("spec") or {}).get("nodeName"):
            return "This pod has not been placed on a node yet, so there is no output."
        if reasons := self._memory.reasons(pod["metadata"]["uid"]):
            return f"The cluster does not hand out the log of this pod: {' '.join(reasons)}"
        if (pod.get("status") or {}).get("phase") in ENDED:
            return "This pod has no output, or its node has removed the log."
        return "This pod's container has not started yet, so there is no output."

    async def log_text(self, uid: str, container: str, attempt: int, wanted: LogText) -> AsyncIterator[bytes]:
        """Refused: only our own API server calls this, and it does not run beside another one."""
        raise NoLog("Ask the cluster's own API for this log.")

    async def log_output(self, uid: str, container: str, attempt: int) -> AsyncIterator[list[tuple[str, bytes]]]:
        """Refused, as `log_text`."""
        raise NoLog("Ask the cluster's own API for this output.")

    def connect(self, request: dict[str, Any], fds: list[int]) -> socket.socket:
        """Refused, as `log_text`."""
        raise ConnectionRefusedError("Ask the cluster's own API to run a command in a pod.")

    def usage(self, now: int) -> list[dict[str, Any]]:
        """No figures: the cluster's own metrics have them."""
        return []

    def _find_log(self, uid: str, container: str, attempt: int | None) -> tuple[LogName, LogTarget]:
        """Return the name of a log and where to request it; NoLog when its node has none."""
        pod = next(_pods([uid]), None)
        if pod is None:
            raise NoLog("The pod is gone, and its node keeps no log of it.")
        runs = instances(pod.object, container)
        chosen = runs[-1:] if attempt is None else [each for each in runs if each.attempt == attempt]
        if not chosen:
            raise NoLog(f"The container {container} has no log of that run.")
        target = LogTarget(pod.namespace, pod.name, container, chosen[0], self._impersonation)
        return LogName(uid, container, chosen[0].attempt), target


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="logs")


def instances(pod: Object, container: str) -> list[Instance]:
    """Return the runs of a container whose logs a node keeps, in order.

    While a container waits to be started again, the run that ended last is the present one.
    """
    status = next((each for each in _statuses(pod) if each.get("name") == container), None)
    return [] if status is None else _runs(status)


def _runs(status: Object) -> list[Instance]:
    number, state = int(status.get("restartCount") or 0), status.get("state") or {}
    before = "terminated" in (status.get("lastState") or {})
    if not ("running" in state or "terminated" in state):
        return [Instance(number, is_previous=False, has_ended=True)] if before else []
    present = Instance(number, is_previous=False, has_ended="terminated" in state)
    return [Instance(number - 1, is_previous=True, has_ended=True), present] if before and number else [present]


def _statuses(pod: Object) -> list[Object]:
    """Return the statuses of its containers, those that run at the start first."""
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _lines(lines: Iterable[PlacedLine]) -> tuple[Line, ...]:
    """Return lines as readers know them; of which stream they are the API does not tell."""
    return tuple(Line(each.time, "", each.data, True, each.offset) for each in lines)


def _pods(uids: Iterable[str]) -> Iterator[Stored]:
    """Yield the pods that there are; the API has no log of others."""
    wanted = list(uids)
    for begin in range(0, len(wanted), PODS_AT_ONCE):
        pods = {pod.uid: pod for pod in store.find(PODS, uid=wanted[begin : begin + PODS_AT_ONCE])}
        yield from (pods[uid] for uid in wanted if uid in pods)


_answers_for_nodes: Nodes = RemoteNodes()
