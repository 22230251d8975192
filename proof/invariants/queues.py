"""Queues: their states, what they take in, and what their pods may use (design §4; seed: queue state management)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from kube import amounts
from kube.amounts import Amounts
from proof.invariants.gangs import bound
from proof.invariants.invariant import Invariant
from proof.invariants.picture import Picture, Step
from proof.invariants.views import (
    DEFAULT_QUEUE,
    ENDED,
    GROUPS,
    JOBS,
    PODS,
    QUEUES,
    ROOT_QUEUE,
    Group,
    Job,
    Pod,
    Queue,
    Seen,
    key_of,
    readable,
)

NEXT = {
    "Open": {"Closing", "Closed"},
    "Closing": {"Closed", "Open"},
    "Closed": {"Open"},
    "": {"Open", "Closing", "Closed"},
}
PHASES = ("Pending", "Inqueue", "Running", "Unknown", "Completed")
BEHIND_MS = 60_000


class Work:
    """The unfinished pod groups of each queue, and since when they are that there."""

    def __init__(self) -> None:
        self.since: defaultdict[str, dict[str, int]] = defaultdict(dict)

    def note(self, step: Step, at: int) -> None:
        """Take over a step of a pod group."""
        key, before, after = step.key, _working_in(step.before), _working_in(step.after)
        if before != after:
            if before:
                self.since[before].pop(key, None)
            if after:
                self.since[after][key] = at


def _working_in(group: Seen | None) -> str:
    return group.queue if type(group) is Group and group.phase != "Completed" else ""


class StatesFollow(Invariant):
    """Source: docs of queues/rules/states.py; reference volcano-queue-podgroup-cli §2.3.

    A Closed queue goes to Closing when work comes into it or below it after all: the group
    of a job that was admitted while it was open, one that is moved there, or a pod.
    Who writes the state may be behind the log: a job that starts again has no
    group for a moment, and that moment may be seen later.
    """

    name = "queue state follows the table"
    meaning = "A queue goes Open, Closing, Closed and back to Open, and is Closed only without unfinished pod groups in it or below it."
    kinds = (QUEUES, GROUPS)

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        self._work = Work()

    def take(self, step: Step) -> None:
        if step.change.resource == GROUPS:
            self._work.note(step, self.picture.at)
        elif type(step.before) is Queue and type(step.seen) is Queue:
            before, seen = step.before.status.state, step.seen.status.state
            if before != seen:
                work: dict[str, int] = {}
                for name in self.picture.queue_use.below(step.change.name):
                    work |= self._work.since.get(name, {})
                self._judge(step, before, seen, work)

    def _judge(self, step: Step, before: str, seen: str, work: Mapping[str, int]) -> None:
        late = before == "Closed" and seen == "Closing" and (work or _has_pods(self.picture, step.change.name))
        if seen not in NEXT.get(before, ()) and not late:
            raise self.broken(key_of(step.change), f"went from {before} to {seen or 'none'}")
        unfinished = [key for key, since in work.items() if self.picture.at - since > BEHIND_MS]
        if seen == "Closed" and unfinished:
            text = (
                f"is Closed, and {len(unfinished)} pod groups in it or below it are unfinished, such as {unfinished[0]}"
            )
            raise self.broken(key_of(step.change), text)


class OpenForAdmission(Invariant):
    """Source: reference volcano-queue-podgroup-cli §4 (jobs) and §3.7 (pod groups).

    The groups of jobs are made for what was admitted before. The scheduler,
    which makes groups for pods that have none, may be behind the log.
    """

    name = "only open queues take in"
    meaning = "No job, and no pod group but that of a job, begins in a queue that is not Open."
    kinds = (JOBS, GROUPS, QUEUES)

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        self._shut: dict[str, int] = {}  # queue → since when it is not Open

    def take(self, step: Step) -> None:
        if step.change.resource == QUEUES:
            self._follow(step)
        elif step.change.verb == "ADDED" and isinstance(step.after, Job | Group):
            maker = step.after.metadata.controller if type(step.after) is Group else None
            if maker is None or not maker.api_version.startswith("batch.volcano.sh/"):
                self._judge(step, step.after, BEHIND_MS if maker else 0)

    def _follow(self, step: Step) -> None:
        if type(step.after) is Queue and _state(step.after) != "Open":
            self._shut.setdefault(step.change.name, self.picture.at)
        else:
            self._shut.pop(step.change.name, None)

    def _judge(self, step: Step, thing: Job | Group, behind_ms: int) -> None:
        name = thing.spec.queue or DEFAULT_QUEUE
        since, queue = self._shut.get(name), self.picture.queues.get(f"/{name}")
        if since is not None and type(queue) is Queue and self.picture.at - since >= behind_ms:
            raise self.broken(key_of(step.change), f"begins in queue {name}, which is {_state(queue)}")


def _state(queue: Queue) -> str:
    return queue.status.state or queue.spec.state or "Open"


class DeletedEmpty(Invariant):
    """Source: design §4, "deleting a queue"; reference volcano-queue-podgroup-cli §1.10."""

    name = "only closed queues are deleted"
    meaning = "A queue that is deleted was Closed and had none below it; default and root stay."
    kinds = (QUEUES,)

    def take(self, step: Step) -> None:
        if step.after is not None or type(step.before) is not Queue:
            return
        name, state = step.change.name, step.before.status.state
        if name in (DEFAULT_QUEUE, ROOT_QUEUE):
            raise self.broken(key_of(step.change), f"{name} was deleted, and the cluster needs it")
        if state != "Closed":
            raise self.broken(key_of(step.change), f"was deleted while it was {state or 'Open'}")
        below = [key for key, each in self.picture.queues.items() if type(each) is Queue and each.spec.parent == name]
        if below:
            raise self.broken(key_of(step.change), f"was deleted, and{below[0].replace('/', ' ')} is below it")


class WithinCapability(Invariant):
    """Source: design §4, "queue limits hold for every action"; reference volcano-scheduler §3.6.

    Judged when a pod is bound, for what it asks for: a limit that is lowered,
    a group that moves or a queue that gets another parent evicts nobody.
    """

    name = "queue within its capability"
    meaning = "What the pods bound in a queue and below it ask for is never more than its capability."
    kinds = (PODS, QUEUES)

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        self._limits: dict[str, Amounts] = {}

    def take(self, step: Step) -> None:
        if step.change.resource == QUEUES:
            self._limits.pop(step.change.name, None)
            if type(step.after) is Queue and step.after.spec.capability:
                self._limits[step.change.name] = step.after.capability
        elif self._limits and (pod := bound(step)) is not None and pod.holds:
            self._judge(step, pod)

    def _judge(self, step: Step, pod: Pod) -> None:
        use, request = self.picture.queue_use, pod.ask.request
        for name in use.line(use.queue_of(step.key, pod)):
            if name not in self._limits or self.picture.is_recent(use.disturbed.get(name, 0)):
                continue
            for resource, limit in self._limits[name].items():
                if request.get(resource, 0) > 0 and (held := use.held(name, resource)) > limit:
                    usage = f"{amounts.show(resource, held)} of {amounts.show(resource, limit)}"
                    raise self.broken(key_of(step.change), f"with it queue {name} holds {usage}")


def _has_pods(picture: Picture, name: str) -> bool:
    """Whether pods of a queue or of one below it keep it from being empty: those of a group, and on nodes all."""
    use, groups = picture.queue_use, picture.groups
    below = set(use.below(name))
    return any(
        type(pod) is Pod
        and pod.ours
        and pod.phase not in ENDED
        and (pod.node or type(groups.get(pod.group)) is Group)
        and use.queue_of(key, pod) in below
        for key, pod in picture.pods.items()
    )


def _phase(group: Group, members: Iterable[Pod]) -> str:
    """Return the phase that counts: a group with a pod that has not ended is not Completed."""
    alive = [pod for pod in members if type(pod) is Pod and pod.ours and pod.phase not in ENDED]
    if group.phase != "Completed" or not alive:
        return group.phase
    return "Running" if any(pod.node for pod in alive) else "Inqueue"


class Settled(Invariant):
    """Source: seed, queue state management; reference volcano-queue-podgroup-cli §1.3."""

    name = "queue tells of its work"
    meaning = "At rest a queue's state follows from its wish and its work, and its counters equal its groups and pods."
    kinds = ()

    def settle(self, now: int) -> None:
        own: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for key, group in self.picture.groups.items():
            if type(group) is Group:
                own[group.queue][_phase(group, self.picture.members.get(key, {}).values())] += 1
        for key, queue in self.picture.queues.items():
            if type(queue) is Queue and not queue.metadata.deletion_timestamp:
                below = self.picture.queue_use.below(key.removeprefix("/"))
                self._judge(key.removeprefix("/"), queue, sum((own[each] for each in below), Counter()))

    def _judge(self, name: str, queue: Queue, counts: Counter[str]) -> None:
        status, key = queue.status, f"{QUEUES}/{name}"
        state = self._state(name, counts)
        if status.state != state:
            raise self.broken(key, f"is {status.state or 'without a state'}, and should be {state}")
        for phase in PHASES:
            reported = getattr(status, phase.lower())
            if reported != counts[phase]:
                raise self.broken(key, f"status.{phase.lower()} is {reported}, there are {counts[phase]}")
        reported = {name: amount for name, amount in readable(status.allocated).items() if amount}
        held = self._held(name)
        if reported != held:
            text = f"status.allocated is {amounts.resource_list(reported)}, its pods hold {amounts.resource_list(held)}"
            raise self.broken(key, text)

    def _state(self, name: str, counts: Counter[str]) -> str:
        line = self.picture.queue_use.line(name)
        found = (self.picture.queues.get(f"/{each}") for each in line if each != ROOT_QUEUE)
        if not any(type(queue) is Queue and queue.spec.state == "Closed" for queue in found):
            return "Open"
        unfinished = sum(counts.values()) - counts["Completed"]
        return "Closing" if unfinished or _has_pods(self.picture, name) else "Closed"

    def _held(self, name: str) -> Amounts:
        use = self.picture.queue_use
        total: Counter[str] = Counter()
        for queue in use.below(name):
            total.update(use.own.get(queue, {}))
        return {resource: amount for resource, amount in total.items() if amount}


INVARIANTS = (StatesFollow, OpenForAdmission, DeletedEmpty, WithinCapability, Settled)
