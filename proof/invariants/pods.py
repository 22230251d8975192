"""The life of one pod."""

from __future__ import annotations

from typing import NamedTuple

from proof.invariants.invariant import Invariant
from proof.invariants.picture import Picture, Step
from proof.invariants.views import PODS, ContainerStatus, Pod, key_of

# Reference: kubernetes-api-and-batch-job, pod lifecycle. Unknown is written by nobody on this cluster.
NEXT = {"Pending": ("Running", "Succeeded", "Failed"), "Running": ("Succeeded", "Failed")}


class OneNode(Invariant):
    """Source: reference kubernetes-api-and-batch-job, binding: spec.nodeName is set once."""

    name = "pod stays on its node"
    meaning = "A pod's nodeName never changes once it is set."
    kinds = (PODS,)

    def take(self, step: Step) -> None:
        before, seen = step.before, step.seen
        if type(before) is not Pod or type(seen) is not Pod:
            return
        if before.node and before.node != seen.node:
            raise self.broken(key_of(step.change), f"went from node {before.node} to {seen.node or 'none'}")


class BoundToStay(Invariant):
    """Source: reference kubernetes-api-and-batch-job, binding: a pod that is being deleted cannot be assigned to a host."""

    name = "no pod is bound while it goes"
    meaning = "A pod that is being deleted is given no node."
    kinds = (PODS,)

    def take(self, step: Step) -> None:
        before, seen = step.before, step.seen
        if type(before) is not Pod or type(seen) is not Pod:
            return
        if before.deleting and seen.node and not before.node:
            text = f"was given the node {seen.node} while it was being deleted"
            raise self.broken(key_of(step.change), text)


class PhasesGoOn(Invariant):
    """Source: reference kubernetes-api-and-batch-job, pod lifecycle; design §7, "no pod doubled".

    A report that is known to be untrue is not judged; what is made of it is.
    """

    name = "pod phase goes on"
    meaning = "A pod goes from Pending to Running to Succeeded or Failed, may leave steps out, and never goes back."
    kinds = (PODS,)

    def take(self, step: Step) -> None:
        before, seen = step.before, step.seen
        if type(before) is not Pod or type(seen) is not Pod:
            return
        if before.phase == seen.phase or step.change.verb == "ADDED":
            return
        if step.change.revision in self.picture.untrue:
            return
        if seen.phase not in NEXT.get(before.phase, ()):
            raise self.broken(key_of(step.change), f"went from {before.phase} to {seen.phase}")


class Attempt(NamedTuple):
    """What is known of one attempt of a container; empty where nothing was said yet."""

    started: str = ""
    ended: tuple[()] | tuple[str, int] = ()  # when, and with which exit code


class OneRun(Invariant):
    """Source: docs/design/node.md, attempts; design §7, "no pod doubled".

    An attempt is named by its containerID, as the state and the last state of
    a status can be about different ones. The attempt before the present one is
    told of until the next begins. Nothing is learnt from a report that is known
    to be untrue.
    """

    name = "each attempt runs once"
    meaning = "One attempt of a container has one start and one end, which stay told; restartCount never falls, and is 0 under Never."
    kinds = (PODS,)

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        # Key of a pod → attempts by container id.
        self._attempts: dict[str, dict[str, Attempt]] = {}
        # Key of a pod → restarts by container, and whether the attempt before is told of.
        self._restarts: dict[str, dict[str, tuple[int, bool]]] = {}

    def take(self, step: Step) -> None:
        key = step.key
        if step.after is None:
            self._attempts.pop(key, None)
            self._restarts.pop(key, None)
        elif type(step.after) is Pod:
            if type(step.before) is Pod and step.before.status == step.after.status:
                return
            if step.change.revision in self.picture.untrue:
                return
            status = step.after.status
            for container in (*status.container_statuses, *status.init_container_statuses):
                self._count(step, step.after, container)
                self._read(step, container)

    def _count(self, step: Step, pod: Pod, status: ContainerStatus) -> None:
        restarts = self._restarts.setdefault(step.key, {})
        before, had_last_state = restarts.get(status.name, (0, False))
        if status.restart_count < before:
            text = f"container {status.name} went from {before} to {status.restart_count} restarts"
            raise self.broken(key_of(step.change), text)
        has_last_state = status.last_state.terminated is not None
        if had_last_state and not has_last_state and status.restart_count == before:
            text = f"container {status.name} tells no more of the attempt before number {before}"
            raise self.broken(key_of(step.change), text)
        restarts[status.name] = status.restart_count, has_last_state
        if status.restart_count and pod.restart_policy == "Never" and not pod.restarting:
            text = f"container {status.name} began attempt {status.restart_count}, and its restartPolicy is Never"
            raise self.broken(key_of(step.change), text)

    def _read(self, step: Step, status: ContainerStatus) -> None:
        for state in (status.state, status.last_state):
            if state.terminated is not None:
                ended = state.terminated
                attempt = Attempt(ended.started_at, (ended.finished_at, ended.exit_code))
                self._note(step, status.name, ended.container_id, attempt)
            elif state.running is not None:
                self._note(step, status.name, status.container_id, Attempt(state.running.started_at))

    def _note(self, step: Step, container: str, number: str, attempt: Attempt) -> None:
        if not number:
            return
        attempts = self._attempts.setdefault(step.key, {})
        recorded = attempts.get(number, Attempt())
        if recorded.started and attempt.started and recorded.started != attempt.started:
            text = f"attempt {number} of container {container} began at {recorded.started} and at {attempt.started}"
            raise self.broken(key_of(step.change), text)
        if recorded.ended and attempt.ended != recorded.ended:
            text = f"attempt {number} of container {container} ended as {recorded.ended} and then was {attempt}"
            raise self.broken(key_of(step.change), text)
        attempts[number] = Attempt(attempt.started or recorded.started, attempt.ended or recorded.ended)


INVARIANTS = (OneNode, BoundToStay, PhasesGoOn, OneRun)
