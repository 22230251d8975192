"""At rest nobody waits without a reason: not for a node, not to begin, not to go."""

from __future__ import annotations

from collections.abc import Mapping

from kube.meta import parse_time
from proof.invariants.invariant import Invariant
from proof.invariants.picture import Picture, Step
from proof.invariants.views import GROUPS, NODES, PODS, Group, Node, Pod, Seen
from scheduler.idle import facts, placing
from scheduler.idle.waiting_pod import WaitingPod

GRACE_MS = 11_000  # pods of a gang may be about to be made for ten seconds before that is called waiting
LATE_MS = 5_000  # after its time a pod is ended and taken away
PASSING = ("ContainerCreating", "PodInitializing", "RunContainerError", "")  # no reasons to wait for ever
# How scheduler/reasons/sentence.py says that no node has room, or never can have.
NO_ROOM = (
    "the most free on one node ",
    "which no node has free at once",
    "This can never start: a pod needs",
    "even on empty nodes",
    "This can never start: no single node",
)


class Waiting:
    """The pods of one group that wait for nodes; those behind scheduling gates do not count."""

    def __init__(self, group: Group, pods: Mapping[str, tuple[Pod, WaitingPod]], members: Mapping[str, Pod]) -> None:
        self.group = group
        self.pods = pods  # key → (pod, what it waits for)
        self.ready = [pod for pod in members.values() if pod.ready]
        self.failed = sum(pod.phase == "Failed" for pod in members.values())

    @property
    def reason(self) -> str:
        """What people are told: by the group's condition; by the pods where the minimum has its nodes, or had them and has failed."""
        conditions = self.group.status.conditions
        message = next((c.message for c in conditions if c.type == "Unschedulable" and c.status == "True"), "")
        if not message and len(self.ready) + self.failed >= self.group.minimum:
            message = next((waiting.message for _, waiting in self.pods.values() if waiting.message), "")
        return message

    @property
    def needed(self) -> int:
        """How many pods must get nodes together."""
        roles = {role: least - sum(pod.role == role for pod in self.ready) for role, least in self.group.roles.items()}
        by_role = sum(number for number in roles.values() if number > 0)
        return max(self.group.minimum - len(self.ready), by_role, 1)


class SaysWhy(Invariant):
    """Source: reference volcano-queue-podgroup-cli §3.4; design §4, "every refusal leaves a reason".

    A group of which something changed lately is left alone, as its other pods
    may be about to be made. Pods of a group that does not exist, and pods
    behind gates, are not judged.
    """

    name = "waiting says why"
    meaning = "At rest each pod group that waits has a condition Unschedulable with a message, or its pods do."
    kinds = (PODS, GROUPS)

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        self._changed: dict[str, int] = {}

    def take(self, step: Step) -> None:
        if step.change.resource == GROUPS:
            self._changed[step.key] = step.change.at
        elif type(step.seen) is Pod and step.seen.group:
            self._changed[step.seen.group] = step.change.at

    def settle(self, now: int) -> None:
        for key, group in self.picture.groups.items():
            if type(group) is not Group or now - self._changed.get(key, 0) < GRACE_MS:
                continue
            waiting = waiting_of(self.picture, key, group)
            if waiting.pods and not waiting.reason:
                raise self.broken(f"{GROUPS}/{key}", f"{len(waiting.pods)} pods wait, and nothing says why")
            if not group.status.phase or (group.phase == "Pending" and not waiting.reason):
                raise self.broken(f"{GROUPS}/{key}", "is not let in, and nothing says why")


class SaysTrue(Invariant):
    """Source: design §1, "see why it waits"; §4, "a gang that does not fit holds nothing partially".

    Nor while somebody waits for victims that do not go, as some with finalizers never do, or has a reservation: room is kept for him.
    Only gangs whose waiting pods are all alike: then counting how often one
    fits is exact. For pods of several kinds the order of placing decides, and
    to find none is no proof that there is none.
    """

    name = "no room means no room"
    meaning = "At rest a pod group that is told that no node has room does not fit on what the log shows to be free."
    kinds = ()

    def settle(self, now: int) -> None:
        if any(_has_reserved_room(group) for group in self.picture.groups.values()):
            return
        nodes = {key.removeprefix("/"): node.facts for key, node in self.picture.nodes.items() if type(node) is Node}
        for key, group in self.picture.groups.items():
            if type(group) is Group:
                waiting = waiting_of(self.picture, key, group)
                if waiting.pods and any(text in waiting.reason for text in NO_ROOM):
                    self._judge(key, waiting, nodes)

    def _judge(self, key: str, waiting: Waiting, nodes: Mapping[str, facts.Node]) -> None:
        pods = list(waiting.pods.values())
        if len({placing.likeness(pod.ask.request, waiting) for pod, waiting in pods}) > 1 or len(pods) < waiting.needed:
            return
        pod, first = pods[0]
        fitting = placing.room(pod.ask.request, first, nodes, self.picture.used)
        if fitting >= waiting.needed:
            text = f"is told {waiting.reason!r}, and nodes have room for {fitting} of {waiting.needed} such pods"
            raise self.broken(f"{GROUPS}/{key}", text)


def _has_reserved_room(group: Seen) -> bool:
    """Say whether room is kept for a group: that of its victims, or because it has waited long (condition Reserved)."""
    conditions = group.status.conditions if type(group) is Group else ()
    active = [each for each in conditions if each.status == "True"]
    return any(each.type == "Reserved" or each.reason == "WaitingForVictims" for each in active)


def waiting_of(picture: Picture, key: str, group: Group) -> Waiting:
    """Return what of a pod group waits."""
    members = picture.members.get(key, {})
    pods: dict[str, tuple[Pod, WaitingPod]] = {}
    for name, pod in members.items():
        if pod.phase == "Pending" and not pod.node and not pod.deleting and pod.ours:
            waiting = placing.read(pod.waiting)
            if waiting is not None and not waiting.is_gated:
                pods[name] = pod, waiting
    return Waiting(group, pods, members)


class Begins(Invariant):
    """Source: design §5; reference kubernetes-api-and-batch-job, pod lifecycle.

    A pod stays Pending while its init containers run, and where a container
    cannot be made; then its status says so. A start that the machine refused
    is tried again each second.
    """

    name = "bound pods begin"
    meaning = "At rest no pod that is bound to a Ready node is Pending without saying what it waits for."
    kinds = ()

    def settle(self, now: int) -> None:
        for key, pod in self.picture.pods.items():
            if type(pod) is not Pod or not pod.holds or pod.phase != "Pending" or pod.deleting:
                continue
            if is_on_ready_node(self.picture, pod) and not _says_why(pod):
                raise self.broken(f"{PODS}/{key}", f"is bound to {pod.node} and Pending")


def is_on_ready_node(picture: Picture, pod: Pod) -> bool:
    """Say whether the node of a pod is there and Ready."""
    node = picture.nodes.get(f"/{pod.node}")
    return type(node) is Node and node.is_ready


def _says_why(pod: Pod) -> bool:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return any(
        each.state.running is not None
        or each.state.terminated is not None
        or (each.state.waiting and each.state.waiting.reason not in PASSING)
        for each in statuses
    )


class Goes(Invariant):
    """Source: reference kubernetes-api-and-batch-job §2.4, graceful deletion.

    Finalizers of others may hold a pod; so may the time that it was given.
    """

    name = "deleted pods go"
    meaning = "At rest no pod is left on a Ready node whose time to end is over."
    kinds = (NODES,)

    def settle(self, now: int) -> None:
        for key, pod in self.picture.pods.items():
            if type(pod) is not Pod or not pod.deleting or pod.metadata.finalizers:
                continue
            due = parse_time(pod.metadata.deletion_timestamp) + LATE_MS
            if due < now and (not pod.node or is_on_ready_node(self.picture, pod)):
                where = f"on {pod.node}" if pod.node else "without a node"
                raise self.broken(f"{PODS}/{key}", f"is left {where}, and was to be gone {now - due} ms ago")


class Ends(Invariant):
    """Source: reference kubernetes-api-and-batch-job, pod lifecycle: activeDeadlineSeconds."""

    name = "pods end in time"
    meaning = "At rest no pod is left on a Ready node longer after its start than its activeDeadlineSeconds."
    kinds = ()

    def settle(self, now: int) -> None:
        for key, pod in self.picture.pods.items():
            if type(pod) is not Pod or pod.deadline is None or not pod.holds or pod.deleting:
                continue
            begun = parse_time(pod.status.start_time) if pod.status.start_time else now
            late = now - begun - pod.deadline * 1000
            if late > LATE_MS and is_on_ready_node(self.picture, pod):
                raise self.broken(f"{PODS}/{key}", f"is {pod.phase}, and was to end {late} ms ago")


INVARIANTS = (SaysWhy, SaysTrue, Begins, Goes, Ends)
